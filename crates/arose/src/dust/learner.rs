//! The learner: hypotheses, evidence, probes, deferral, audits and blame.

use super::hypothesis::{Hypothesis, OfSite};
use super::memory::{Frequent, Recent, Table};
use super::rule::{PartRule, Parts};
use super::sequential::{Outcome, Sequential};
use super::standing::{Canonical, Config, Event, RuleId, Standing, State, Treatment};
use super::wishes::{Wish, Wishes};
use crate::digest::digest64;
use crate::mix::mix;
use std::collections::BTreeSet;

/// Maximum number of remembered values of a part.
const MAX_VALUES: usize = 64;
/// Number of probes without a page after which no more are sent.
const MAX_FAILED: u32 = 5;
/// Maximum number of hypotheses of one template.
const MAX_RULES: usize = 64;
/// One site may have one in this many of all hypotheses.
const SITE_PART: usize = 20;
/// Number of responses without a page after which a rule that other templates confirm is active.
const MIN_BLANK: u32 = 5;
/// Maximum number of rounds in which rules are applied.
const MAX_ROUNDS: usize = 10;
/// Equal pairs that a rule about session IDs needs in a template if its site confirms it: it is
/// active in another template, or the pairs of all templates suffice, and it is wrong in none.
const CONFIRM: f64 = 3.0;

/// Learns the rules of all sites of a crawl.
#[derive(Debug, Clone)]
pub struct Learner {
    pub(super) config: Config,
    pub(super) rules: Vec<Hypothesis>,
    /// Rules by scope.
    scopes: Table<Vec<RuleId>>,
    /// Sites that have active rules.
    active: Table<u32>,
    /// Frequencies of contents in a scope.
    common: Table<Frequent>,
    /// Contents of URLs, and of groups of URLs that differ in one part.
    pub(super) contents: Recent<u64>,
    pub(super) wishes: Wishes,
    events: Vec<Event>,
    /// Number of hypotheses of each site, so that one site cannot take the space of all others.
    n_of_site: Table<u32>,
    /// The evidence for a rule in all templates of a site.
    pub(super) of_sites: Table<OfSite>,
    /// Rules whose state has changed since the last call of `take_changed`.
    changed: BTreeSet<RuleId>,
    n_ignored: u64,
}

impl Learner {
    /// Creates a learner without rules.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            contents: Recent::new(config.max_contents),
            config,
            rules: Vec::new(),
            scopes: Table::default(),
            active: Table::default(),
            common: Table::default(),
            wishes: Wishes::default(),
            events: Vec::new(),
            n_of_site: Table::default(),
            of_sites: Table::default(),
            changed: BTreeSet::new(),
            n_ignored: 0,
        }
    }

    /// Returns all rules, in the order of their creation.
    pub fn rules(&self) -> impl Iterator<Item = &Standing> {
        self.rules.iter().map(|rule| &rule.standing)
    }

    /// Returns one rule.
    #[must_use]
    pub fn rule(&self, id: RuleId) -> Option<&Standing> {
        Some(&self.rules.get(id as usize)?.standing)
    }

    /// Returns how often a page was no evidence because there were too many hypotheses.
    #[must_use]
    pub fn n_ignored(&self) -> u64 {
        self.n_ignored
    }

    /// Returns the events since the last call.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// Returns the rules whose state has changed since the last call, in order.
    pub fn take_changed(&mut self) -> Vec<RuleId> {
        std::mem::take(&mut self.changed).into_iter().collect()
    }

    /// Sets the state of a rule, as given by a file or a person. Its evidence is used if the
    /// learner has none yet.
    pub fn set(&mut self, standing: &Standing) -> Option<RuleId> {
        let id = self.hypothesis(&standing.scope, &standing.rule)?;
        let rule = self.touch(id);
        if rule.standing.n_same + rule.standing.n_different == 0 {
            let state = rule.standing.state;
            rule.standing = Standing {
                state,
                ..standing.clone()
            };
        }
        self.change(id, standing.state);
        Some(id)
    }

    /// Returns the canonical form of a URL under the active rules, if it differs from the URL.
    #[must_use]
    pub fn canonical(&self, url: &str) -> Option<Canonical> {
        let parts = Parts::of(url)?;
        self.active.get(&key(parts.site()))?;
        let mut canonical = Canonical {
            url: url.to_owned(),
            is_fetchable: true,
            is_known: false,
            rules: Vec::new(),
        };
        for _ in 0..MAX_ROUNDS {
            let applied = canonical.rules.len();
            self.apply_all(&mut canonical);
            if canonical.rules.len() == applied {
                break;
            }
        }
        canonical.is_known = self.known(&canonical).is_some();
        (!canonical.rules.is_empty()).then_some(canonical)
    }

    /// Returns the content of a fetched page of this form.
    pub(super) fn known(&self, canonical: &Canonical) -> Option<u64> {
        let groups = canonical
            .rules
            .iter()
            .map(|&id| self.group(id, &canonical.url));
        let mut keys = std::iter::once(key(&canonical.url)).chain(groups);
        keys.find_map(|key| self.contents.get(key))
    }

    fn apply_all(&self, canonical: &mut Canonical) {
        let Some(parts) = Parts::of(&canonical.url) else {
            return;
        };
        let mut rules: Vec<RuleId> = Vec::new();
        for scope in [parts.site().to_owned(), parts.template()] {
            let of_scope = self.scopes.get(&key(&scope)).into_iter().flatten();
            rules.extend(of_scope.filter(|&&id| self.is_active(id)));
        }
        rules.sort_by_cached_key(|&id| self.rules[id as usize].standing.rule.order());
        for id in rules {
            let standing = &self.rules[id as usize].standing;
            if let Some(url) = standing.rule.apply(&canonical.url) {
                canonical.url = url;
                canonical.is_fetchable &= standing.is_removable;
                if !canonical.rules.contains(&id) {
                    canonical.rules.push(id);
                }
            }
        }
    }

    pub(super) fn is_active(&self, id: RuleId) -> bool {
        self.rules[id as usize].standing.state == State::Active
    }

    /// Returns a rule and marks it as changed.
    pub(super) fn touch(&mut self, id: RuleId) -> &mut Hypothesis {
        self.changed.insert(id);
        &mut self.rules[id as usize]
    }

    /// Returns whether all rules that led to a canonical form are still active.
    #[must_use]
    pub fn holds(&self, canonical: &Canonical) -> bool {
        canonical.rules.iter().all(|&id| self.is_active(id))
    }

    /// Returns whether the content of a URL is needed for learning: for a probe or an audit.
    #[must_use]
    pub fn is_wanted(&self, url: &str) -> bool {
        self.wishes.has(key(url))
    }

    /// Returns the content of a fetched URL, if it is remembered.
    #[must_use]
    pub fn content(&self, url: &str) -> Option<u64> {
        self.contents.get(key(url))
    }

    /// Returns a hash for all URLs that differ only in one part.
    fn group(&self, id: RuleId, bare: &str) -> u64 {
        mix(key(bare) ^ mix(self.rules[id as usize].name))
    }

    /// Returns how to treat a URL that was found. The caller fetches the canonical form if it is
    /// new, and otherwise [defers](Self::defer) the URL.
    #[must_use]
    pub fn place(&self, url: &str) -> Treatment {
        self.canonical(url)
            .map_or(Treatment::Fetch, Treatment::Same)
    }

    /// Counts a URL that was not fetched because its canonical form is known. Returns whether the
    /// URL is to be fetched nevertheless, as an audit.
    pub fn defer(&mut self, url: &str, canonical: &Canonical) -> bool {
        let mut share = 0.0;
        for &id in &canonical.rules {
            let n_deferred = &mut self.touch(id).standing.n_deferred;
            *n_deferred = n_deferred.saturating_add(1);
            share = f64::max(share, self.audit_share(id));
        }
        let draw = mix(key(url) ^ 0x0061_7564_6974) as f64 / u64::MAX as f64;
        if draw < share {
            self.audit(url, canonical);
        }
        draw < share
    }

    /// Returns the share of the deferred URLs of a rule that are fetched nevertheless by now.
    fn audit_share(&self, id: RuleId) -> f64 {
        let rule = &self.rules[id as usize];
        let site = rule.standing.scope.split('/').next().unwrap_or_default();
        let n_pages = self.common.get(&key(site)).map_or(0, Frequent::n);
        let of_site = self.of_sites.get(&rule.of_site());
        let general = self.config.audit_share;
        rule.audit_share(general, of_site.unwrap_or(&OfSite::default()), n_pages)
    }

    /// Requests that the content of a URL is compared with that of its canonical form when it is
    /// fetched.
    pub fn audit(&mut self, url: &str, canonical: &Canonical) {
        self.wish(url, Wish::Audit(canonical.clone()));
        for &id in &canonical.rules {
            let rule = self.touch(id);
            rule.standing.n_audited += 1;
            let of_site = rule.of_site();
            self.of_sites.entry(of_site).or_default().n_audited += 1;
        }
    }

    /// Records the content of a fetched URL: an ID shared by its text and its near duplicates, or
    /// none for pages that do not count, such as errors and empty pages. Returns URLs to fetch for
    /// learning, except those that are already waiting for a request.
    pub fn fetched(&mut self, url: &str, content: Option<u64>) -> Vec<String> {
        let mut wanted = Vec::new();
        let wishes = self.wishes.take(key(url));
        let is_wish = !wishes.is_empty();
        if wishes
            .iter()
            .any(|wish| matches!(wish, Wish::Probe(_) | Wish::Audit(_)))
        {
            self.wishes.note(key(url), None);
        }
        for wish in wishes {
            self.grant(url, content, wish, &mut wanted);
        }
        let Some(content) = content else {
            self.learn_nothing(url);
            return wanted;
        };
        let own = self.canonical(url).map_or(url.to_owned(), |form| form.url);
        // A page that is fetched again is not new evidence.
        let is_new = self.contents.get(key(&own)).is_none();
        self.contents.insert(key(url), content);
        self.contents.insert(key(&own), content);
        if is_new {
            self.count(&own, content);
            self.learn(&own, content, is_wish, &mut wanted);
        }
        wanted
    }

    /// Records a response without a page. Links to missing pages have session IDs too, and no pair
    /// of pages can show that these do not matter. So a rule that is active in another template of
    /// the site, and wrong in none, becomes active after some of them. A page that an audit finds
    /// suspends it.
    fn learn_nothing(&mut self, url: &str) {
        let Some(parts) = Parts::of(url) else {
            return;
        };
        let template = parts.template();
        for rule in PartRule::candidates(url) {
            let is_parameter = matches!(rule, PartRule::Parameter(_));
            let site = key(&format!("{} {rule}", parts.site()));
            let is_confirmed = |site: &OfSite| site.is_confirmed();
            if !is_parameter || !self.of_sites.get(&site).is_some_and(is_confirmed) {
                continue;
            }
            let Some(id) = self.hypothesis(&template, &rule) else {
                continue;
            };
            let rule = self.touch(id);
            let standing = &mut rule.standing;
            if standing.state == State::Testing && standing.n_same + standing.n_different == 0 {
                rule.n_blank += 1;
                if rule.n_blank >= MIN_BLANK {
                    standing.is_removable = true;
                    self.change(id, State::Active);
                }
            }
        }
    }

    /// Counts how frequent a content is among the paths of a site.
    fn count(&mut self, url: &str, content: u64) {
        let content = self.words(content);
        let Some(parts) = Parts::of(url) else {
            return;
        };
        let (site, page) = (key(parts.site()), mix(key(&parts.skeleton()) ^ content));
        // One page under many URLs counts once.
        if self.contents.get(page).is_none() {
            self.contents.insert(page, content);
            if self.common.len() < self.config.max_hypotheses || self.common.contains_key(&site) {
                self.common.entry(site).or_default().note(content);
            }
        }
    }

    /// Compares a page with pages whose URLs differ in one part, and chooses a probe.
    fn learn(&mut self, own: &str, content: u64, is_wish: bool, wanted: &mut Vec<String>) {
        let Some(parts) = Parts::of(own) else {
            return;
        };
        let (site, template) = (parts.site().to_owned(), parts.template());
        let is_common = self.common.get(&key(&site));
        let words = self.words(content);
        let is_common = is_common.is_some_and(|common| common.is_too_common(words));
        // It may be what remains of URLs fetched before, without the part.
        for scope in [&site, &template] {
            for id in self.scopes.get(&key(scope)).cloned().unwrap_or_default() {
                let group = self.group(id, own);
                if let Some(other) = self.contents.remove(group) {
                    self.touch(id).standing.is_removable |= other == content;
                    self.judge(id, other == content, content, is_common);
                    self.contents.insert(group, content);
                }
            }
        }
        let mut probe = None;
        for rule in PartRule::candidates(own) {
            let scope = match rule {
                PartRule::Parameter(_) => &template,
                _ => &site,
            };
            let Some(id) = self.hypothesis(scope, &rule) else {
                continue;
            };
            if self.rules[id as usize].standing.state != State::Testing {
                continue;
            }
            let Some(bare) = rule.apply(own) else {
                continue;
            };
            let bare = self.canonical(&bare).map_or(bare, |form| form.url);
            // A probe repeats the values of another URL.
            let is_due = !is_wish && self.note_value(id, own);
            let group = self.group(id, &bare);
            if let Some(other) = self.contents.get(key(&bare)) {
                self.touch(id).standing.is_removable |= other == content;
                self.judge(id, other == content, content, is_common);
            } else if let Some(other) = self.contents.get(group) {
                self.judge(id, other == content, content, is_common);
            } else if is_due && !is_common && probe.is_none() && self.needs_probes(id) {
                probe = Some((id, bare));
            }
            self.contents.insert(group, content);
        }
        if let Some((id, bare)) = probe {
            self.wish(&bare, Wish::Probe(id));
            let rule = self.touch(id);
            rule.standing.n_probes += 1;
            rule.n_open += 1;
            wanted.push(bare);
        }
    }

    /// Records the value of a part. Returns whether it is time for a probe.
    fn note_value(&mut self, id: RuleId, url: &str) -> bool {
        let max_probes = self.config.max_probes;
        let rule = self.touch(id);
        let Some(value) = rule.standing.rule.value(url) else {
            return false;
        };
        let value = key(value) as u32;
        rule.n_values += 1;
        if !rule.values.contains(&value) {
            rule.n_new += 1;
            let at = rule.n_new as usize % MAX_VALUES;
            match rule.values.len() < MAX_VALUES {
                true => rule.values.push(value),
                false => rule.values[at] = value,
            }
        }
        let standing = &rule.standing;
        let may = standing.rule.may_probe()
            && rule.n_failed < MAX_FAILED
            && standing.n_probes < max_probes;
        may && (rule.n_values > 2 || standing.rule.is_known())
    }

    /// Returns the amount that an equal pair adds to the test of a rule, and the sum at which the
    /// rule is accepted.
    fn test(&self, id: RuleId) -> (f64, f64) {
        let rule = &self.rules[id as usize];
        let is_session = rule.is_session();
        let same = match is_session {
            true => self.config.test.same,
            false => self.config.strict.same,
        };
        let of_site = self.of_sites.get(&rule.of_site());
        let is_confirmed = of_site.is_some_and(OfSite::is_confirmed);
        let start = if rule.has_prior {
            Sequential::KNOWN
        } else {
            0.0
        };
        let accept = match is_confirmed && is_session {
            true => start + (CONFIRM - 0.5) * same,
            false => Sequential::ACCEPT,
        };
        (same, accept)
    }

    /// Returns whether the probes under way are too few to accept a rule.
    fn needs_probes(&self, id: RuleId) -> bool {
        let (same, accept) = self.test(id);
        let rule = &self.rules[id as usize];
        rule.sum + f64::from(rule.n_open) * same < accept
    }

    /// Records whether the pages of a pair were the same.
    fn judge(&mut self, id: RuleId, is_same: bool, content: u64, is_common: bool) {
        let min_contents = self.config.min_contents;
        let content = self.words(content);
        let (same, accept) = self.test(id);
        let rule = &mut self.rules[id as usize];
        if rule.standing.state != State::Testing || (is_same && is_common) {
            return;
        }
        let name = rule.of_site();
        let was_confirmed = self.of_sites.get(&name).is_some_and(OfSite::is_confirmed);
        self.changed.insert(id);
        match is_same {
            true => {
                rule.standing.n_same += 1;
                rule.sum += same;
                if rule.contents.len() < min_contents && !rule.contents.contains(&content) {
                    rule.contents.push(content);
                    rule.standing.n_contents += 1;
                }
            }
            false => {
                rule.standing.n_different += 1;
                rule.sum += self.config.test.different;
            }
        }
        // A template may have fewer pages than the required number of contents, so those of its
        // site count.
        let of_site = self.of_sites.entry(name).or_default();
        of_site.count(rule, is_same.into(), (!is_same).into());
        let contents = &mut of_site.contents;
        if is_same && contents.len() < min_contents && !contents.contains(&content) {
            contents.push(content);
        }
        let n_contents = rule.contents.len().max(contents.len());
        match Sequential::outcome(rule.sum) {
            Outcome::Rejected => self.change(id, State::Rejected),
            _ if rule.sum >= accept && n_contents >= min_contents => {
                self.change(id, State::Active);
            }
            // Evidence beyond the limit is not accumulated.
            Outcome::Accepted => rule.sum = Sequential::ACCEPT,
            Outcome::Open => {}
        }
        if !was_confirmed {
            self.confirm(name);
        }
    }

    /// Accepts a rule in all templates with enough evidence, if their site confirms it by now.
    fn confirm(&mut self, name: u64) {
        let of_site = self.of_sites.get(&name);
        let Some(of_site) = of_site.filter(|of_site| of_site.is_confirmed()) else {
            return;
        };
        let n_of_site = of_site.contents.len();
        for id in of_site.rules.clone() {
            let (_, accept) = self.test(id);
            let rule = &self.rules[id as usize];
            let n_contents = rule.contents.len().max(n_of_site);
            let is_ready = rule.sum >= accept && n_contents >= self.config.min_contents;
            if is_ready && rule.standing.state == State::Testing {
                self.change(id, State::Active);
            }
        }
    }

    pub(super) fn change(&mut self, id: RuleId, state: State) {
        let rule = self.touch(id);
        let before = std::mem::replace(&mut rule.standing.state, state);
        if state != State::Testing {
            rule.values = Vec::new();
        }
        let site = rule.standing.scope.split('/').next().unwrap_or_default();
        let (site, of_site) = (key(site), rule.of_site());
        self.of_sites
            .entry(of_site)
            .or_default()
            .note(before, state);
        match (before == State::Active, state == State::Active) {
            (false, true) => {
                *self.active.entry(site).or_default() += 1;
                self.events.push(Event::Activated(id));
            }
            (true, false) => {
                if let Some(n) = self.active.get_mut(&site) {
                    *n -= 1;
                    if *n == 0 {
                        self.active.remove(&site);
                    }
                }
                self.events.push(Event::Suspended(id));
            }
            _ => {}
        }
    }

    /// Returns the number of a rule in a scope, created if there is space.
    pub(super) fn hypothesis(&mut self, scope: &str, rule: &PartRule) -> Option<RuleId> {
        let of_scope = self.scopes.get(&key(scope)).map_or(&[][..], Vec::as_slice);
        let found = of_scope.iter().find(|&&id| {
            let standing = &self.rules[id as usize].standing;
            standing.rule == *rule && standing.scope == scope
        });
        if let Some(&id) = found {
            return Some(id);
        }
        if self.rules.len() >= self.config.max_hypotheses || of_scope.len() >= MAX_RULES {
            self.n_ignored += 1;
            return None;
        }
        let site = scope.split('/').next().unwrap_or_default();
        let n_of_site = self.n_of_site.entry(key(site)).or_default();
        if *n_of_site as usize >= (self.config.max_hypotheses / SITE_PART).max(MAX_RULES) {
            self.n_ignored += 1;
            return None;
        }
        *n_of_site += 1;
        let id = self.rules.len() as RuleId;
        let is_known = self.config.has_prior && rule.is_known();
        self.rules.push(Hypothesis {
            standing: Standing::new(scope, rule.clone(), State::Testing),
            name: key(&format!("{scope} {rule}")),
            sum: if is_known { Sequential::KNOWN } else { 0.0 },
            has_prior: is_known,
            contents: Vec::new(),
            values: Vec::new(),
            n_values: 0,
            n_new: 0,
            n_failed: 0,
            n_blank: 0,
            n_open: 0,
        });
        self.scopes.entry(key(scope)).or_default().push(id);
        let of_site = self.rules[id as usize].of_site();
        self.of_sites.entry(of_site).or_default().rules.push(id);
        Some(id)
    }
}

pub(super) fn key(text: &str) -> u64 {
    digest64(text.as_bytes())
}
