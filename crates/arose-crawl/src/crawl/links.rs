//! From seeds and links to queued URLs.

use super::background::Command;
use super::start::{MAX_BAD_SEEDS, judge};
use super::*;
use crate::counters::{Counter, Refusal};
use crate::fingerprint::Fingerprint;
use crate::frontier::LAST;
use crate::guard::Counts;
use crate::journal::{Event, Queued};
use crate::seen::Membership;

/// Links that are asked for in one go.
const BATCH: usize = 1024;

impl Crawl {
    /// Queues seeds: URLs, one each. What is no URL, or not approved, is counted.
    ///
    /// # Errors
    ///
    /// If the folder cannot be written.
    pub fn add_seeds(&mut self, seeds: impl Iterator<Item = String>) -> Result<(), Error> {
        self.add_seeds_of(Kind::Page, seeds)
    }

    /// Queues sitemaps, whose pages become seeds.
    ///
    /// # Errors
    ///
    /// If the folder cannot be written.
    pub fn add_sitemaps(&mut self, sitemaps: impl Iterator<Item = String>) -> Result<(), Error> {
        self.add_seeds_of(Kind::Sitemap, sitemaps)
    }

    fn add_seeds_of(
        &mut self,
        kind: Kind,
        seeds: impl Iterator<Item = String>,
    ) -> Result<(), Error> {
        let nowhere: Arc<str> = "".into();
        for seed in seeds {
            let mut counts = Counts::default();
            let judged = judge(&seed, &self.shared.normalizer, &self.shared.guard);
            counts.add(judged.as_ref().map(|_| ()).map_err(|reason| *reason));
            self.counters.judge(&counts);
            match judged {
                Ok(url) => {
                    let found = Found {
                        fingerprint: Fingerprint::of(&url),
                        url,
                        kind,
                        is_redirect: false,
                    };
                    self.found.push(Item::Link(Pending {
                        found,
                        depth: 0,
                        n_redirects: 0,
                        from: None,
                        found_on: Arc::clone(&nowhere),
                        is_last: false,
                    }));
                }
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
                self.commit_if_due()?;
                if self.background.is_behind() {
                    self.settle()?;
                }
            }
        }
        self.commit_all()
    }

    /// Why a link is not to be followed, whatever it leads to.
    pub(super) fn refusal(&self, pending: &Pending) -> Option<Refusal> {
        if !(self.seams.is_ours)(&pending.found.url) {
            return Some(Refusal::NotOurs);
        }
        let is_over = pending.n_redirects > self.settings().fetch.max_redirects;
        is_over.then_some(Refusal::Redirects)
    }

    /// Asks for all links that were found.
    pub(super) fn queue_found(&mut self) -> Result<(), Error> {
        if self.found.is_empty() {
            return Ok(());
        }
        let found = std::mem::take(&mut self.found);
        self.background.send(Command::Ask(found))
    }

    /// Queues the links that are new, and takes in the pages that they were found on.
    pub(super) fn take_answers(
        &mut self,
        items: Vec<Item>,
        answers: &[Membership],
    ) -> Result<(), Error> {
        let mut answers = answers.iter();
        let n_items = items.len();
        for item in items {
            match item {
                Item::Link(pending) => {
                    let host = match answers.next() {
                        Some(Membership::New) => self.queue(&pending),
                        _ => {
                            self.counters.add(Counter::Known, 1);
                            self.n_known_seeds += u64::from(pending.is_seed());
                            self.frontier.find(pending.found.fingerprint.host)
                        }
                    };
                    self.refer(pending.from, host);
                }
                Item::Page(page) => {
                    self.n_reported -= 1;
                    self.finish_report(*page)?;
                }
                Item::Rules { host, date, text } => self.push_rules(host, date, text),
            }
        }
        // No more hosts can have come into memory than there were links.
        self.frontier.hosts.shelve(2 * n_items)
    }

    /// Queues a URL that is new; returns its host, if it has one here.
    fn queue(&mut self, pending: &Pending) -> Option<HostId> {
        let url = &pending.found.url;
        let Some(host) = self.host_of(url, pending.found.fingerprint.host) else {
            self.counters.refuse(Refusal::TooManyHosts);
            return None;
        };
        let last = if pending.is_last { LAST } else { 0 };
        let queued = Queued {
            host,
            depth: pending.depth,
            priority: u64::from((self.seams.priority)(url, pending.depth)) + last,
            n_redirects: pending.n_redirects,
            kind: pending.found.kind,
            rest: url.rest(),
            found_on: below(url.origin(), &pending.found_on),
        };
        let place = self.journal.push(Event::Url(queued));
        self.frontier.push(&queued, place);
        self.counters.add(Counter::Queued, 1);
        self.frontier.advance(host);
        Some(host)
    }

    /// The host of a URL, made known if it was not; none if its site has too many.
    pub(super) fn host_of(&mut self, url: &NormalUrl, origin_hash: u64) -> Option<HostId> {
        if let Some(host) = self.frontier.find(origin_hash) {
            return Some(host);
        }
        let host = self.frontier.add_host(url, origin_hash).ok()?;
        self.journal.push(Event::Host(url.origin()));
        Some(host)
    }

    /// A site that others link to is worth more pages.
    fn refer(&mut self, from: Option<HostId>, to: Option<HostId>) {
        let (Some(from), Some(to)) = (from, to) else {
            return;
        };
        if from == to {
            return;
        }
        let site = self.frontier.hosts[from as usize].site;
        if self.frontier.refer(site, to) {
            let site = self.frontier.sites[site as usize].hash;
            self.journal.push(Event::Referrer { host: to, site });
        }
    }
}

/// A URL without its origin if that is this one.
fn below<'u>(origin: &str, url: &'u str) -> &'u str {
    let rest = url.strip_prefix(origin);
    rest.filter(|rest| rest.starts_with('/')).unwrap_or(url)
}
