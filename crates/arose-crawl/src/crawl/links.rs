//! Queues seeds and links.

use super::background::Command;
use super::start::{MAX_BAD_SEEDS, judge};
use super::*;
use crate::counters::{Counter, Refusal};
use crate::fingerprint::Fingerprint;
use crate::frontier::{Arrival, Tag};
use crate::guard::Counts;
use crate::journal::{Event, Queued};
use crate::seen::Membership;

/// Number of links that are looked up together.
const BATCH: usize = 1024;

impl Crawl {
    /// Queues seeds, one URL each. Invalid and rejected URLs are counted.
    ///
    /// # Errors
    ///
    /// If the directory cannot be written.
    pub fn add_seeds(&mut self, seeds: impl Iterator<Item = String>) -> Result<(), Error> {
        self.add_seeds_of(Kind::Page, seeds)
    }

    /// Queues sitemaps, whose pages become seeds.
    ///
    /// # Errors
    ///
    /// If the directory cannot be written.
    pub fn add_sitemaps(&mut self, sitemaps: impl Iterator<Item = String>) -> Result<(), Error> {
        self.add_seeds_of(Kind::Sitemap, sitemaps)
    }

    fn add_seeds_of(
        &mut self,
        kind: Kind,
        seeds: impl Iterator<Item = String>,
    ) -> Result<(), Error> {
        for seed in seeds {
            let mut counts = Counts::default();
            let judged = judge(&seed, &self.shared.normalizer, &self.shared.guard);
            counts.add(judged.as_ref().map(|_| ()).map_err(|reason| *reason));
            self.counters.judge(&counts);
            match judged {
                Ok(url) => self.found.push(Item::Link(seed_of(url, kind))),
                Err(reason) => {
                    self.counters.add(Counter::BadSeeds, 1);
                    if self.bad_seeds.len() < MAX_BAD_SEEDS {
                        self.bad_seeds.push(BadSeed { text: seed, reason });
                    }
                }
            }
            if self.found.len() >= BATCH {
                self.queue_found()?;
                self.take_replies()?;
                self.take_hosts()?;
                self.commit_if_due()?;
                if self.is_behind() {
                    self.catch_up()?;
                }
            }
        }
        self.commit_all()
    }

    /// Returns why a link must not be followed, whatever it leads to.
    pub(super) fn refusal(&self, pending: &Pending) -> Option<Refusal> {
        if !(self.seams.is_ours)(&pending.found.url) {
            return Some(Refusal::NotOurs);
        }
        let is_over = pending.n_redirects > self.settings().fetch.max_redirects;
        is_over.then_some(Refusal::Redirects)
    }

    /// Looks up all links that were found.
    pub(super) fn queue_found(&mut self) -> Result<(), Error> {
        if self.found.is_empty() {
            return Ok(());
        }
        let found = std::mem::take(&mut self.found);
        self.background.send(Command::Ask(found))
    }

    /// Queues the new links, and completes the pages on which they were found.
    pub(super) fn take_answers(
        &mut self,
        items: Vec<Item>,
        answers: &[Membership],
    ) -> Result<(), Error> {
        let mut answers = answers.iter();
        let n_items = items.len();
        self.frontier
            .touch(items.iter().filter_map(|item| match item {
                Item::Link(pending) => Some(pending.found.fingerprint.host),
                Item::Moved(moved) => moved.fingerprint().map(|fingerprint| fingerprint.host),
                Item::Page(_) | Item::Rules { .. } => None,
            }));
        // The links of a page come right before it.
        let mut n_found = 0;
        for item in items {
            match item {
                Item::Link(pending) => {
                    let membership = answers.next().copied();
                    let membership = membership.unwrap_or(Membership::Known);
                    match membership {
                        Membership::New => {
                            n_found += u32::from(pending.is_further());
                            self.queue(&pending);
                        }
                        Membership::Known => {
                            self.counters.add(Counter::Known, 1);
                            self.meet(&pending);
                        }
                    }
                    self.follow_mark(pending, membership);
                }
                Item::Page(page) => {
                    self.n_reported -= 1;
                    self.finish_report(*page, std::mem::take(&mut n_found))?;
                }
                Item::Rules { host, date, text } => self.push_rules(host, date, text),
                Item::Moved(moved) => {
                    // What was queued by another agent waits here, whether it was met or not.
                    if moved.fingerprint().is_some() {
                        answers.next();
                    }
                    self.take_moved(moved);
                }
            }
        }
        // At most as many hosts were loaded into memory as there were links.
        self.frontier.hosts.shelve(2 * n_items)
    }

    /// Queues a new URL.
    fn queue(&mut self, pending: &Pending) {
        let found = &pending.found;
        let url = &found.url;
        let Some(host) = self.host_of(url, found.fingerprint.host) else {
            self.counters.refuse(Refusal::TooManyHosts);
            return;
        };
        let gift = match pending.from {
            Some(from) => self.frontier.carried(from, host, pending.gift),
            None => pending.gift,
        };
        let weight = self.settings().crawl.order.weigh(Arrival {
            is_seed: pending.is_seed(),
            is_list: found.kind == Kind::Sitemap,
            gift,
            number: (self.seams.priority)(url, pending.depth),
        });
        let weight = self.focused(weight, pending, gift.mass);
        let queued = Queued {
            host,
            depth: pending.depth,
            weight,
            class: found.class,
            is_last: pending.is_last,
            of_repeat: pending.of_repeat,
            n_redirects: pending.n_redirects,
            kind: found.kind,
            rest: url.rest(),
            found_on: below(url.origin(), &pending.found_on),
        };
        let place = self.journal.push(Event::Url(queued));
        let tag = Tag::of(found.fingerprint.rest);
        self.counters.add(Counter::Queued, 1);
        if self.defers(pending) {
            self.defer_url(host, place, tag, weight);
            return;
        }
        self.frontier.push(&queued, tag, place);
        let from = pending.from.map(|from| self.frontier.hosts.site(from));
        self.frontier.entrust(from, host, weight.trust.amount());
        self.frontier.advance(host);
        self.frontier.raise(host, weight.mass);
    }

    /// Records the contribution of a link to a known URL.
    fn meet(&mut self, pending: &Pending) {
        let fingerprint = pending.found.fingerprint;
        self.meet_again(pending);
        if pending.is_seed() {
            self.n_known_seeds += 1;
            let number = (self.seams.priority)(&pending.found.url, pending.depth);
            let tag = Tag::of(fingerprint.rest);
            if let Some(host) = self.frontier.find(fingerprint.host) {
                let lifted = self.frontier.lift(host, tag, number);
                self.note_weight(host, lifted);
            }
        } else if !pending.is_again {
            match pending.from {
                Some(from) => self.give(from, fingerprint, pending.gift),
                None => self.give_from_afar(fingerprint, pending.gift),
            }
        }
    }

    /// Adds a contribution to a known URL that a host links to, if it is queued. The trust counts
    /// for its site in any case.
    pub(super) fn give(&mut self, from: HostId, to: Fingerprint, gift: Gift) {
        if gift.is_nothing() {
            return;
        }
        let host = self.frontier.find(to.host);
        let Some(host) = host.filter(|&host| !self.is_away(host)) else {
            return self.give_away(from, to, gift);
        };
        let gift = self.frontier.carried(from, host, gift);
        let gift = self.give_mass(to, gift);
        let site = self.frontier.hosts.site(from);
        self.frontier.entrust(Some(site), host, gift.trust);
        let given = self.frontier.give(host, to.rest, gift);
        self.note_weight(host, given);
    }

    /// Adds a contribution that another agent has sent.
    fn give_from_afar(&mut self, to: Fingerprint, gift: Gift) {
        let Some(host) = self.frontier.find(to.host) else {
            return;
        };
        let gift = self.give_mass(to, gift);
        self.frontier.entrust(None, host, gift.trust);
        let given = self.frontier.give(host, to.rest, gift);
        self.note_weight(host, given);
    }

    /// Writes the new weight of a URL to the journal.
    pub(super) fn note_weight(&mut self, host: HostId, changed: Option<(Place, Weight)>) {
        if let Some((place, weight)) = changed {
            self.journal.push(Event::Weight {
                host,
                place,
                weight,
            });
        }
    }

    /// Returns the host of a URL, which is added if it is new; none if its site has too many hosts.
    pub(super) fn host_of(&mut self, url: &NormalUrl, origin_hash: u64) -> Option<HostId> {
        if let Some(host) = self.frontier.find(origin_hash) {
            return Some(host);
        }
        let host = self.frontier.add_host(url, origin_hash).ok()?;
        self.journal.push(Event::Host(url.origin()));
        if let Some(member) = &mut self.member {
            member.meet(url);
        }
        Some(host)
    }
}

/// Returns a seed as a link without a source.
pub(super) fn seed_of(url: NormalUrl, kind: Kind) -> Pending {
    let found = Found {
        fingerprint: Fingerprint::of(&url),
        url,
        kind,
        is_redirect: false,
        class: 0,
        is_repeat: false,
        words: None,
    };
    Pending {
        found,
        depth: 0,
        n_redirects: 0,
        from: None,
        found_on: "".into(),
        is_last: false,
        of_repeat: false,
        gift: Gift::NONE,
        is_again: false,
        parent: Default::default(),
        mark: None,
    }
}

/// Returns a URL without its origin if that is the given one.
fn below<'u>(origin: &str, url: &'u str) -> &'u str {
    let rest = url.strip_prefix(origin);
    rest.filter(|rest| rest.starts_with('/')).unwrap_or(url)
}
