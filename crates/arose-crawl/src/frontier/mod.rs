//! The frontier: hosts, what waits at each of them, and how much a site may take.
//!
//! A URL that is new goes to the queue of its host; the host goes to the [`Workbench`] when its
//! address is known. Where a host is on its way, [`Stage`] says. Sites (what one owner has
//! registered) have budgets, so that a site which makes up pages for ever cannot crowd out the
//! others (Lee et al. 2008, IRLbot): a site is worth a few pages, and more for every other site
//! that links to it. A host of a site that is over budget is *parked*; when nothing else is left to
//! do all budgets double. Parked URLs wait and are never dropped.
//!
//! A folder of a host whose last pages were all duplicates is *stale*: a mirror, a calendar, a maze
//! of sessions. Its URLs are put aside, but for one a day.
//!
//! Memory: some 200 bytes a host, eight a queued URL, whose text is in the journal.

mod folders;
mod host;
mod site;
mod workbench;

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use crate::journal::{HostId, Place, Queued};
use crate::settings::Budget;
use crate::url::NormalUrl;

pub(crate) use folders::Folders;
pub(crate) use host::{Host, RobotsJob, Rules, Stage, Turn};
pub(crate) use site::{Site, SiteId};
pub(crate) use workbench::Workbench;

/// All hosts and their queues.
#[derive(Debug)]
pub(crate) struct Frontier {
    pub(crate) hosts: Vec<Host>,
    /// By the first half of the fingerprint of their URLs.
    by_origin: HashMap<u64, HostId>,
    pub(crate) sites: Vec<Site>,
    by_site: HashMap<u64, SiteId>,
    pub(crate) bench: Workbench,
    budget: Budget,
    /// How often budgets were doubled.
    epoch: u32,
    parked: Vec<HostId>,
    /// Hosts whose address is wanted.
    pub(crate) unresolved: Vec<HostId>,
    /// URLs that wait for a request.
    pub(crate) n_queued: u64,
    /// When hosts may be asked first.
    pub(crate) first_turn: Duration,
}

/// Why a URL has no host here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooManyHosts;

impl Frontier {
    pub(crate) fn new(budget: Budget) -> Self {
        Self {
            hosts: Vec::new(),
            by_origin: HashMap::new(),
            sites: Vec::new(),
            by_site: HashMap::new(),
            bench: Workbench::default(),
            budget,
            epoch: 0,
            parked: Vec::new(),
            unresolved: Vec::new(),
            n_queued: 0,
            first_turn: Duration::ZERO,
        }
    }

    /// The host of a URL, if it is known; `origin_hash` is the first half of its fingerprint.
    pub(crate) fn find(&self, origin_hash: u64) -> Option<HostId> {
        self.by_origin.get(&origin_hash).copied()
    }

    /// Adds the host of a URL, unless its site has as many hosts as it may.
    pub(crate) fn add_host(
        &mut self,
        url: &NormalUrl,
        origin_hash: u64,
    ) -> Result<HostId, TooManyHosts> {
        let site = self.site_of(url);
        if self.sites[site as usize].n_hosts >= self.budget.max_hosts {
            return Err(TooManyHosts);
        }
        self.restore_host(url, origin_hash);
        Ok((self.hosts.len() - 1) as HostId)
    }

    /// Adds a host that was admitted before.
    pub(crate) fn restore_host(&mut self, url: &NormalUrl, origin_hash: u64) {
        let site = self.site_of(url);
        self.sites[site as usize].n_hosts += 1;
        let id = self.hosts.len() as HostId;
        let mut host = Host::new(url, site);
        host.next = self.first_turn;
        self.hosts.push(host);
        self.by_origin.insert(origin_hash, id);
    }

    /// The site of a URL, made known if it was not.
    pub(crate) fn site_of(&mut self, url: &NormalUrl) -> SiteId {
        let sites = &mut self.sites;
        let hash = site::hash(url.site());
        *self.by_site.entry(hash).or_insert_with(|| {
            sites.push(Site::new(hash));
            (sites.len() - 1) as SiteId
        })
    }

    /// Puts a URL into the queue of its host.
    pub(crate) fn push(&mut self, queued: &Queued<'_>, place: Place) {
        self.hosts[queued.host as usize].push(queued.priority, place);
        self.n_queued += 1;
    }

    /// Moves a host that has something to fetch on to where that can happen: a host at rest, or one
    /// just done with.
    pub(crate) fn advance(&mut self, id: HostId) {
        let host = &self.hosts[id as usize];
        if !matches!(host.stage, Stage::Rest) || !host.has_work() {
            return;
        }
        // What others wait for goes before budgets.
        if host.jobs.is_empty() && self.is_over_budget(host.site) {
            self.hosts[id as usize].stage = Stage::Parked;
            self.parked.push(id);
            return;
        }
        let host = &mut self.hosts[id as usize];
        match host.address {
            Some(address) => {
                host.stage = Stage::Bench;
                let (time, priority) = (host.next, host.priority());
                self.bench.insert(id, address, time, priority);
            }
            None => {
                host.stage = Stage::Names;
                self.unresolved.push(id);
            }
        }
    }

    /// A host that may be asked now. Its address is taken until [`Self::release`].
    pub(crate) fn take(&mut self, now: Duration) -> Option<HostId> {
        let id = self.bench.take(now)?;
        self.hosts[id as usize].stage = Stage::Busy;
        Some(id)
    }

    /// Gives host and address free, to be asked again from these times on.
    pub(crate) fn release(
        &mut self,
        id: HostId,
        host_next: Duration,
        address: IpAddr,
        next: Duration,
    ) {
        self.bench.release(address, next);
        let host = &mut self.hosts[id as usize];
        host.next = host.next.max(host_next);
        host.stage = Stage::Rest;
        self.advance(id);
    }

    /// Whether the site of a host may have no further page for now.
    pub(crate) fn is_over_budget(&self, site: SiteId) -> bool {
        let site = &self.sites[site as usize];
        site.n_pages >= site.allowance(&self.budget, self.epoch)
    }

    /// Doubles all budgets and moves the parked hosts on; whether any of them has work now. Those
    /// whose site has had all its pages stay parked.
    pub(crate) fn raise_budgets(&mut self) -> bool {
        let is_final = |frontier: &Self, id: HostId| {
            let site = &frontier.sites[frontier.hosts[id as usize].site as usize];
            site.n_pages >= frontier.budget.max_pages
        };
        if self.parked.iter().all(|&id| is_final(self, id)) {
            return false;
        }
        while self
            .parked
            .iter()
            .all(|&id| is_final(self, id) || self.is_over_budget(self.hosts[id as usize].site))
        {
            self.epoch += 1;
        }
        self.unpark();
        true
    }

    /// Moves parked hosts on as far as budgets, which may have grown, allow.
    pub(crate) fn unpark(&mut self) {
        for id in std::mem::take(&mut self.parked) {
            self.hosts[id as usize].stage = Stage::Rest;
            self.advance(id);
        }
    }

    /// Takes down that a site links to a host of another one; whether that is new.
    pub(crate) fn refer(&mut self, from: SiteId, to: HostId) -> bool {
        let site = self.hosts[to as usize].site;
        let hash = self.sites[from as usize].hash;
        site != from && self.add_referrer(site, hash)
    }

    /// Takes down that a site, by the hash of its name, links to another one.
    pub(crate) fn add_referrer(&mut self, site: SiteId, from: u64) -> bool {
        let site = &mut self.sites[site as usize];
        // Beyond this a site has all the budget there is.
        let most = self.budget.max_pages / self.budget.pages_per_referrer.max(1);
        (site.referrers.len() as u64) < most && site.referrers.insert(from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fingerprint::Fingerprint;
    use crate::journal::Kind;
    use crate::url::Normalizer;

    fn add(frontier: &mut Frontier, text: &str) -> Result<HostId, TooManyHosts> {
        let url = Normalizer::default().normalize(text, None).unwrap();
        frontier.add_host(&url, Fingerprint::of(&url).host)
    }

    fn push(frontier: &mut Frontier, host: HostId, priority: u32, place: Place) {
        let queued = Queued {
            host,
            depth: 0,
            priority,
            n_redirects: 0,
            kind: Kind::Page,
            rest: "/",
        };
        frontier.push(&queued, place);
    }

    const BUDGET: Budget = Budget {
        max_pages: 40,
        pages: 2,
        pages_per_referrer: 3,
        max_hosts: 2,
    };

    #[test]
    fn a_site_has_only_so_many_hosts() {
        let mut frontier = Frontier::new(BUDGET);
        assert_eq!(add(&mut frontier, "http://a.x.org/"), Ok(0));
        assert_eq!(add(&mut frontier, "http://b.x.org/"), Ok(1));
        assert_eq!(add(&mut frontier, "http://c.x.org/"), Err(TooManyHosts));
        assert_eq!(add(&mut frontier, "http://y.org/"), Ok(2));
    }

    #[test]
    fn urls_leave_by_priority_then_in_order() {
        let mut frontier = Frontier::new(BUDGET);
        let host = add(&mut frontier, "http://h.org/").unwrap();
        for (priority, place) in [(1, 10), (0, 20), (1, 30), (0, 40)] {
            push(&mut frontier, host, priority, place);
        }
        let host = &mut frontier.hosts[host as usize];
        let order: Vec<Place> = std::iter::from_fn(|| host.pop())
            .map(|turn| turn.place)
            .collect();
        assert_eq!(order, [20, 40, 10, 30]);
    }

    /// Over budget a host waits until referrers come or budgets double, and never beyond the most.
    #[test]
    fn budgets_park_and_never_drop() {
        let mut frontier = Frontier::new(BUDGET);
        let host = add(&mut frontier, "http://h.org/").unwrap();
        let site = frontier.hosts[host as usize].site;
        frontier.hosts[host as usize].address = Some(IpAddr::from([1, 1, 1, 1]));
        push(&mut frontier, host, 0, 1);
        frontier.sites[site as usize].n_pages = 2;
        frontier.advance(host);
        assert_eq!(frontier.hosts[host as usize].stage, Stage::Parked);
        assert!(frontier.add_referrer(site, 77) && !frontier.add_referrer(site, 77));
        frontier.unpark();
        assert_eq!(frontier.take(Duration::ZERO), Some(host));
        frontier.sites[site as usize].n_pages = 39;
        let address = IpAddr::from([1, 1, 1, 1]);
        frontier.release(host, Duration::ZERO, address, Duration::ZERO);
        assert_eq!(frontier.hosts[host as usize].stage, Stage::Parked);
        assert!(frontier.raise_budgets());
        assert_eq!(frontier.take(Duration::ZERO), Some(host));
        frontier.sites[site as usize].n_pages = 40;
        frontier.release(host, Duration::ZERO, address, Duration::ZERO);
        assert!(!frontier.raise_budgets());
        assert_eq!(frontier.n_queued, 1);
    }
}
