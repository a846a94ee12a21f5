//! From seeds and links to queued URLs.

use super::start::{MAX_BAD_SEEDS, judge};
use super::*;
use crate::counters::{Counter, Refusal};
use crate::fingerprint::Fingerprint;
use crate::frontier::LAST;
use crate::guard::Counts;
use crate::journal::{Event, Queued};
use crate::seen::{Entry, Membership};

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
        let nowhere: Rc<str> = "".into();
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
                    self.found.push(Pending {
                        found,
                        depth: 0,
                        n_redirects: 0,
                        from: None,
                        found_on: Rc::clone(&nowhere),
                        is_last: false,
                    });
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
                self.commit_if_due()?;
            }
        }
        self.commit()
    }

    /// Takes a link in, to be asked for with others.
    pub(super) fn take_link(&mut self, pending: Pending) -> Result<(), Error> {
        if !(self.seams.is_ours)(&pending.found.url) {
            self.counters.refuse(Refusal::NotOurs);
            return Ok(());
        }
        if pending.n_redirects > self.settings().fetch.max_redirects {
            self.counters.refuse(Refusal::Redirects);
            return Ok(());
        }
        self.found.push(pending);
        match self.found.len() >= BATCH {
            true => self.queue_found(),
            false => Ok(()),
        }
    }

    /// Asks for all links that were found, and queues those that are new.
    pub(super) fn queue_found(&mut self) -> Result<(), Error> {
        let found = std::mem::take(&mut self.found);
        if found.is_empty() {
            return Ok(());
        }
        let entry = |pending: &'_ Pending| Entry {
            fingerprint: pending.found.fingerprint,
            url: "",
        };
        let entries: Vec<Entry<'_>> = found.iter().map(entry).collect();
        let answers = self.seen.insert(&entries)?;
        for (pending, answer) in found.iter().zip(answers) {
            let host = match answer {
                Membership::New => self.queue(pending),
                Membership::Known => {
                    self.counters.add(Counter::Known, 1);
                    self.frontier.find(pending.found.fingerprint.host)
                }
            };
            self.refer(pending.from, host);
        }
        // Its memory is used again.
        self.found = found;
        self.found.clear();
        Ok(())
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
        self.n_journal_urls += 1;
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
