//! URL rules in the crawl loop: defers URLs whose page another URL has.
//!
//! *Question.* Rules ([`arose::dust`]) say which parts of URLs do not select a page. What does the
//! crawl do with a URL that such a rule covers, so that neither a wrong rule nor a crash loses a
//! page? *Idea.* The URL is queued like any other and then *deferred*: it stays in the journal, and
//! its host keeps its position there. Its canonical form is looked up in the same batch, so that no
//! commit has one without the other. If a URL was queued before its rule was found, this is done at
//! its turn. A failed audit suspends a rule, and all URLs deferred at the hosts of its site are
//! queued again. Those that other rules cover are deferred again at their turn, without a request.
//!
//! *Evidence* comes from pages with status 200 and some text. Two pages have the same content if
//! the duplicate checker says that one duplicates the other, or that both duplicate the same page.
//! They also do if they differ only in session IDs in their links, which the checker sees as text
//! ([`crate::page`]). Probes are links like others, with the mass of the page that they are for.
//!
//! *Memory.* That of the learner, and about 25 bytes for each deferred URL of a host in memory.
//! Rules, deferred URLs and the fingerprints of the contents of the last pages are in the journal.

use std::collections::BTreeMap;

use arose::digest::digest64;
use arose::dust::{Canonical, Event as RuleEvent, Learner, Saved, State, Treatment};

use super::background::Text;
pub(super) use super::rule_lines::Lines;
use super::*;
use crate::counters::Counter;
use crate::fingerprint::Fingerprint;
use crate::frontier::{Host, HostRules, RECALLED, Tag};
use crate::guard::Candidate;
use crate::journal::Event;
use crate::page::Likeness;
use crate::robots::Robots;
use crate::rules;
use crate::seen::Membership;

/// Rules with evidence, as in a file.
pub use arose::dust::Standing as UrlRule;

/// Maximum number of rules shown.
const N_SHOWN: usize = 20;

/// Distinguishes the keys of requests for learning from those of rules.
const ERRAND: u64 = 0x6572_7261_6e64;

/// Why a link is looked up, if rules are involved.
#[derive(Debug)]
pub(super) enum Mark {
    /// A rule covers it, and its canonical form is known or looked up with it.
    Covered(Canonical),
    /// The same, and it was found on a page that was fetched to learn.
    CoveredTwice(Canonical),
    /// It is the canonical form of a URL whose turn it was.
    Instead {
        host: HostId,
        turn: Turn,
        url: NormalUrl,
        canonical: Canonical,
    },
    /// It is fetched for learning.
    Wanted,
}

/// The hosts with deferred URLs, by site.
#[derive(Debug, Default)]
pub(super) struct Deferred {
    pub(super) hosts: BTreeMap<HostId, (u64, u64)>,
    n: u64,
}

impl Deferred {
    /// Records how many URLs are deferred at a host.
    pub(super) fn set(&mut self, id: HostId, host: &Host) {
        let n = host.deferred.len() as u64;
        let before = match n {
            0 => self.hosts.remove(&id),
            _ => self.hosts.insert(id, (site_key(site_of(&host.origin)), n)),
        };
        self.n = self.n + n - before.map_or(0, |(_, n)| n);
    }

    /// Returns the number of deferred URLs.
    pub(super) fn n(&self) -> u64 {
        self.n
    }

    fn of_site(&self, site: &str) -> Vec<HostId> {
        let key = site_key(site);
        let hosts = self.hosts.iter().filter(|(_, (other, _))| *other == key);
        hosts.map(|(&id, _)| id).collect()
    }
}

/// Returns the subject of the rules of an origin: its host and port without `www.`.
fn site_of(origin: &str) -> &str {
    let host = origin.split_once("://").map_or(origin, |(_, host)| host);
    host.strip_prefix("www.").unwrap_or(host)
}

fn site_key(site: &str) -> u64 {
    digest64(site.as_bytes())
}

/// The rules of a crawl.
#[derive(Debug)]
pub(super) struct Dust {
    /// `None` if rules are off.
    pub(super) learner: Option<Learner>,
    pub(super) deferred: Deferred,
    /// Whether all deferred URLs have been queued to be fetched.
    pub(super) audits_all: bool,
    /// Whether it was said that there are too many rules.
    pub(super) is_full: bool,
    /// Hosts whose deferred URLs are to be queued again, the last one first.
    pub(super) recalling: Vec<HostId>,
    /// URLs to fetch for learning because a crash or the end of a run came before them.
    resumed: Vec<String>,
}

/// The evidence from a page.
pub(super) struct Lesson {
    host: Option<HostId>,
    url: String,
    content: Option<u64>,
    depth: u32,
    gift: Gift,
}

impl Dust {
    /// Restores the rules from the journal and the log.
    pub(super) fn restore(
        settings: &Settings,
        lines: Lines,
        deferred: Deferred,
    ) -> Result<Self, Error> {
        let config = settings.rules.learning().map_err(Error::Settings)?;
        let mut learner = settings.rules.on.then(|| Learner::new(config));
        let mut resumed = Vec::new();
        if let Some(learner) = &mut learner {
            for saved in lines.saved()? {
                learner.restore(saved);
            }
            learner.recall(lines.contents.iter().copied());
            let errands = lines.errands();
            resumed.extend(errands.flat_map(|errand| learner.resume(errand)));
        }
        Ok(Self {
            learner,
            deferred,
            audits_all: false,
            is_full: false,
            recalling: Vec::new(),
            resumed,
        })
    }

    /// Returns the rules that defer most URLs, active ones first.
    pub(super) fn shown(&self) -> Vec<UrlRule> {
        most_important(self.learner.iter().flat_map(Learner::rules))
    }

    /// Whether there are hosts whose deferred URLs are to be queued again.
    pub(super) fn is_recalling(&self) -> bool {
        !self.recalling.is_empty()
    }

    /// Returns the number of rules that defer URLs.
    pub(super) fn n_active(&self) -> u64 {
        let rules = self.learner.iter().flat_map(Learner::rules);
        rules.filter(|rule| rule.state == State::Active).count() as u64
    }

    /// Returns the canonical form of a URL that rules may defer.
    fn form(&self, url: &NormalUrl) -> Option<Canonical> {
        let learner = self.learner.as_ref()?;
        match learner.place(url.as_str()) {
            Treatment::Same(canonical) if !learner.is_wanted(url.as_str()) => Some(canonical),
            _ => None,
        }
    }
}

/// Returns the most important rules: active ones first, then those that defer most.
pub(super) fn most_important<'r>(rules: impl Iterator<Item = &'r UrlRule>) -> Vec<UrlRule> {
    let order = |rule: &&UrlRule| {
        let is_active = rule.state == State::Active;
        let evidence = u64::from(rule.n_same) + u64::from(rule.n_different);
        Reverse((is_active, rule.n_deferred, evidence))
    };
    // This runs once per second, and there may be very many rules.
    let mut rules: Vec<&UrlRule> = rules
        .filter(|rule| rule.state != State::Testing || rule.n_same > 0)
        .collect();
    if rules.len() > N_SHOWN {
        rules.select_nth_unstable_by_key(N_SHOWN, order);
        rules.truncate(N_SHOWN);
    }
    rules.sort_by(|a, b| (order(a), &a.scope, &a.rule).cmp(&(order(b), &b.scope, &b.rule)));
    rules.into_iter().cloned().collect()
}

impl Crawl {
    /// Adds a link to be looked up, and its canonical form if a rule covers it.
    pub(super) fn push_found(&mut self, mut pending: Pending) {
        let found = &pending.found;
        let is_subject = pending.depth > 0 && pending.n_redirects == 0 && found.kind == Kind::Page;
        let form = is_subject.then(|| self.dust.form(&found.url)).flatten();
        let Some(canonical) = form else {
            self.found.push(Item::Link(pending));
            return;
        };
        let is_needed = canonical.is_fetchable && !canonical.is_known;
        let url = Some(&canonical.url).filter(|_| is_needed);
        let stand_in = url.and_then(|url| self.stand_in(url, pending.depth));
        if canonical.is_known || stand_in.is_some() {
            // Otherwise, links on copies of pages with a hundred links would be audited without
            // end.
            let learner = self.dust.learner.as_ref();
            let is_copy = learner.is_some_and(|learner| learner.is_wanted(&pending.found_on));
            pending.mark = Some(Box::new(match is_copy {
                true => Mark::CoveredTwice(canonical),
                false => Mark::Covered(canonical),
            }));
        }
        let words = pending.found.words.clone();
        let stand_in = stand_in.map(|found| Pending {
            found: Found { words, ..found },
            depth: pending.depth,
            n_redirects: 0,
            from: pending.from,
            found_on: Arc::clone(&pending.found_on),
            is_last: pending.is_last,
            of_repeat: pending.of_repeat,
            gift: pending.gift,
            is_again: pending.is_again,
            parent: pending.parent,
            mark: None,
        });
        self.found.push(Item::Link(pending));
        self.push_own(stand_in);
    }

    /// Adds a link that is not on any page.
    fn push_own(&mut self, pending: Option<Pending>) {
        if let Some(pending) = pending {
            self.counters.add(Counter::Discovered, 1);
            self.found.push(Item::Link(pending));
        }
    }

    /// Returns a URL to fetch in place of another or for learning, if no known rule forbids it.
    fn stand_in(&self, text: &str, depth: u32) -> Option<Found> {
        let url = self.shared.normalize(text, None).ok()?;
        let candidate = Candidate {
            url: &url,
            link_depth: depth,
            robots: None,
        };
        let is_approved = self.shared.guard.approve_for(&candidate, Kind::Page.into());
        let fingerprint = Fingerprint::of(&url);
        if url.as_str() != text || is_approved.is_err() || !(self.seams.is_ours)(&url) {
            return None;
        }
        let is_allowed = match self.frontier.find(fingerprint.host) {
            Some(id) if self.frontier.hosts.is_warm(id) => {
                let rules = &self.frontier.hosts[id as usize].rules;
                !matches!(rules, HostRules::Known(robots, _) if !robots.verdict(&url).allowed)
            }
            Some(_) => true,
            None => self.frontier.admits_host(&url),
        };
        if !is_allowed {
            return None;
        }
        Some(Found {
            url,
            fingerprint,
            kind: Kind::Page,
            is_redirect: false,
            class: 0,
            is_repeat: false,
            words: None,
        })
    }

    /// Whether a new URL is deferred immediately.
    pub(super) fn defers(&mut self, pending: &Pending) -> bool {
        match pending.mark.as_deref() {
            Some(Mark::Covered(canonical)) => self.is_deferred(&pending.found.url, canonical, 0),
            Some(Mark::CoveredTwice(canonical)) => {
                self.is_deferred(&pending.found.url, canonical, RECALLED)
            }
            _ => false,
        }
    }

    /// Counts a URL that a rule covers; returns whether to defer it.
    fn is_deferred(&mut self, url: &NormalUrl, canonical: &Canonical, n_tries: u8) -> bool {
        let Some(learner) = &mut self.dust.learner else {
            return false;
        };
        if !learner.holds(canonical) {
            return false;
        }
        if n_tries == RECALLED {
            return true;
        }
        let is_audit = learner.defer(url.as_str(), canonical);
        self.counters.add(Counter::Audits, is_audit.into());
        !is_audit
    }

    /// Defers a URL that is in the journal and not in a queue.
    pub(super) fn defer_url(&mut self, id: HostId, place: Place, tag: Tag, weight: Weight) {
        let host = &mut self.frontier.hosts[id as usize];
        host.deferred.insert(place, (tag, weight));
        self.dust.deferred.set(id, host);
        self.counters.add(Counter::DeferredUrls, 1);
        self.journal.push(Event::Deferred {
            host: id,
            place,
            tag: tag.to_number(),
        });
    }

    /// Whether a rule defers the URL whose turn it is.
    pub(super) fn puts_off(
        &mut self,
        id: HostId,
        turn: Turn,
        url: &NormalUrl,
        text: &Text,
        robots: &Robots,
    ) -> bool {
        let is_subject = text.depth > 0 && text.n_redirects == 0 && text.kind == Kind::Page;
        if !is_subject || self.recrawl.is_again(turn.place) {
            return false;
        }
        let Some(canonical) = self.dust.form(url) else {
            return false;
        };
        if self.dust.audits_all && turn.n_tries == RECALLED {
            if let Some(learner) = &mut self.dust.learner {
                learner.audit(url.as_str(), &canonical);
            }
            self.counters.add(Counter::Audits, 1);
            return false;
        }
        if canonical.is_known {
            let is_deferred = self.is_deferred(url, &canonical, turn.n_tries);
            if is_deferred {
                self.defer_turn(id, turn, url);
            }
            return is_deferred;
        }
        let stand_in = match canonical.is_fetchable {
            true => self.stand_in(&canonical.url, text.depth),
            false => None,
        };
        let Some(found) = stand_in.filter(|found| {
            found.url.origin() != url.origin() || robots.verdict(&found.url).allowed
        }) else {
            return false;
        };
        let pending = Pending {
            found,
            depth: text.depth,
            n_redirects: 0,
            from: Some(id),
            found_on: url.as_str().into(),
            is_last: text.is_last,
            of_repeat: text.of_repeat,
            gift: Gift::whole(turn.weight, digest64(url.as_str().as_bytes())),
            is_again: false,
            parent: Default::default(),
            mark: Some(Box::new(Mark::Instead {
                host: id,
                turn,
                url: url.clone(),
                canonical,
            })),
        };
        self.push_own(Some(pending));
        true
    }

    fn defer_turn(&mut self, id: HostId, turn: Turn, url: &NormalUrl) {
        let tag = Tag::of(Fingerprint::of(url).rest);
        self.frontier.n_queued = self.frontier.n_queued.saturating_sub(1);
        self.defer_url(id, turn.place, tag, turn.weight);
    }

    /// Applies rules to a link after its lookup; it is queued if it is new.
    pub(super) fn follow_mark(&mut self, pending: Pending, membership: Membership) {
        match pending.mark.map(|mark| *mark) {
            Some(Mark::Instead {
                host,
                turn,
                url,
                canonical,
            }) => match self.is_deferred(&url, &canonical, turn.n_tries) {
                true => self.defer_turn(host, turn, &url),
                false => {
                    self.frontier.hosts[host as usize].put_back(turn);
                    self.frontier.advance(host);
                }
            },
            Some(Mark::Wanted) if membership == Membership::Known => {
                self.recall_one(pending.found.fingerprint);
            }
            Some(Mark::Wanted | Mark::Covered(_) | Mark::CoveredTwice(_)) | None => {}
        }
    }

    /// Returns the evidence from a page; `None` if it was fetched before or is not a page.
    pub(super) fn lesson(&mut self, report: &Report) -> Option<Lesson> {
        let learner = self.dust.learner.as_mut()?;
        let is_first = report.ticket.is_some() && report.revisit.is_none();
        if !is_first || report.kind != Kind::Page {
            return None;
        }
        let origin = &self.frontier.hosts[report.host as usize].origin;
        let url = format!("{origin}{}", report.rest);
        let original = report.original.as_ref().map(|original| &*original.url);
        let counts = report.status == 200 && report.is_page && report.has_text;
        let content = counts.then(|| {
            let Likeness { all, words } = report.likeness;
            learner.content_id(all, words, original)
        });
        Some(Lesson {
            gift: Gift::whole(report.weight, digest64(url.as_bytes())),
            host: Some(report.host),
            url,
            content,
            depth: report.depth,
        })
    }

    /// Learns from a page, and looks up the URLs that the learner wants.
    pub(super) fn learn(&mut self, lesson: Option<Lesson>) {
        let (Some(lesson), Some(learner)) = (lesson, &mut self.dust.learner) else {
            return;
        };
        let wanted = learner.fetched(&lesson.url, lesson.content);
        self.want(wanted, lesson);
        self.hear_rules();
    }

    /// Looks up the URLs again that were wanted when the crawl was last interrupted.
    pub(super) fn resume_errands(&mut self) {
        for url in std::mem::take(&mut self.dust.resumed) {
            let lesson = Lesson {
                host: None,
                url: url.clone(),
                content: None,
                depth: 1,
                gift: Gift::NONE,
            };
            self.want(vec![url], lesson);
        }
        self.hear_rules();
    }

    fn want(&mut self, wanted: Vec<String>, lesson: Lesson) {
        let depth = lesson.depth.max(1);
        let found_on: Arc<str> = lesson.url.into();
        for text in wanted {
            let Some(found) = self.stand_in(&text, depth) else {
                continue;
            };
            self.counters.add(Counter::Probes, 1);
            self.push_own(Some(Pending {
                found,
                depth,
                n_redirects: 0,
                from: lesson.host,
                found_on: Arc::clone(&found_on),
                is_last: false,
                of_repeat: false,
                gift: lesson.gift,
                is_again: false,
                parent: Default::default(),
                mark: Some(Box::new(Mark::Wanted)),
            }));
        }
    }

    /// Queues URLs again that were deferred because of rules that are now suspended.
    pub(super) fn hear_rules(&mut self) {
        let Some(learner) = &mut self.dust.learner else {
            return;
        };
        for event in learner.take_events() {
            if let RuleEvent::Suspended(id) = event
                && let Some(rule) = self.dust.learner.as_ref().and_then(|all| all.rule(id))
            {
                let site = rule.scope.split('/').next().unwrap_or_default();
                let hosts = self.dust.deferred.of_site(site);
                // At once, so that no commit has the suspension without this.
                hosts.into_iter().for_each(|id| self.recall_host(id));
            }
        }
    }

    /// Writes changes of rules to the journal.
    pub(super) fn note_url_rules(&mut self) {
        let Some(learner) = &mut self.dust.learner else {
            return;
        };
        for id in learner.take_changed() {
            let Some(saved) = learner.saved(id).filter(has_evidence) else {
                continue;
            };
            let name = format!("{} {}", saved.standing.scope, saved.standing.rule);
            self.journal.push(Event::UrlRule {
                key: digest64(name.as_bytes()),
                text: &rules::to_saved(&saved),
            });
        }
        for (key, errand) in learner.take_errands() {
            let line = errand.as_ref().map(rules::to_errand);
            self.journal.push(Event::UrlRule {
                key: key ^ ERRAND,
                text: &line.unwrap_or_default(),
            });
        }
        let remembered = learner.take_remembered();
        let numbers = remembered.into_iter().flat_map(<[u64; 2]>::from);
        let bytes: Vec<[u8; 8]> = numbers.map(u64::to_le_bytes).collect();
        if !bytes.is_empty() {
            self.journal.push(Event::UrlContents(bytes.as_flattened()));
        }
    }
}

/// Whether a rule has anything to save.
fn has_evidence(saved: &Saved) -> bool {
    let rule = &saved.standing;
    let n = rule.n_same | rule.n_different | rule.n_probes | rule.n_deferred;
    rule.state != State::Testing || n > 0
}
