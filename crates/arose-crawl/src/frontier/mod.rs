//! The frontier: hosts, what waits at each of them, and how much a site may take.
//!
//! A URL that is new goes to the queue of its host; the host goes to the [`Workbench`] when its
//! address is known. Where a host is on its way, [`Stage`] says. Sites (what one owner has
//! registered) have budgets, so that a site which makes up pages for ever cannot crowd out the
//! others (Lee et al. 2008, IRLbot): a site is worth a few pages, and more for every other site
//! that links to it. Budgets order hosts and leave nothing idle: a host of a site that is over
//! budget waits in the spare lane of the workbench, where it is taken when nobody else is ready.
//! When nearly all hosts wait there, all budgets double. A host whose site has had all the pages
//! it may have is *parked*. What waits is never dropped.
//!
//! URLs found on duplicates go last: behind the others of their host, and in the spare lane.
//!
//! A directory of a host whose last pages all repeated is *stale*: a mirror, a calendar, a maze of
//! sessions. Its URLs are put aside, except for one per day.
//!
//! Memory: hosts beyond a limit rest in a file ([`Hosts`]) and leave about 30 bytes, or about 100
//! with their place in the workbench; a site takes about 30, a queued URL eight while its host is
//! in memory. The text of URLs is in the journal.

mod cold;
mod folders;
mod host;
mod hosts;
mod shelf;
mod site;
mod table;
mod workbench;

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use arose::mix::mix;

use crate::error::Error;
use crate::journal::{HostId, Place, Queued};
use crate::settings::Budget;
use crate::url::NormalUrl;

pub(crate) use folders::{Folders, Novelty, PROBE};
pub(crate) use host::{Host, LAST, RobotsJob, Rules, Stage, Turn};
pub(crate) use hosts::Hosts;
pub(crate) use site::{Site, SiteId};
use table::{Hashes, Numbers};
pub(crate) use workbench::{EntryId, Lane, Workbench};

/// How many hosts must be over budget for each that is not before all budgets double.
const SPARE_SHARE: usize = 10;

/// Hosts whose budget is looked at again in one go.
const MAX_WATCHED: usize = 20_000;

/// All hosts and their queues.
#[derive(Debug)]
pub(crate) struct Frontier {
    pub(crate) hosts: Hosts,
    pub(crate) sites: Vec<Site>,
    by_site: Numbers,
    /// Which sites link to which, by a hash of both.
    referrers: Hashes,
    pub(crate) bench: Workbench,
    budget: Budget,
    /// How often budgets were doubled.
    epoch: u32,
    /// Hosts that are parked or in the spare lane, to be looked at again, the next one first.
    watched: VecDeque<HostId>,
    /// How many of them are left of the present round, and how many were over budget in it.
    n_left: usize,
    n_over: usize,
    /// Hosts that are being asked.
    n_busy: usize,
    /// Whether only URLs that were lost are wanted.
    wants_lost_only: bool,
    /// Hosts whose address is wanted.
    pub(crate) unresolved: Vec<HostId>,
    /// URLs that wait for a request.
    pub(crate) n_queued: u64,
    /// When hosts may be asked first.
    pub(crate) first_turn: Duration,
    /// Hosts with pages to be visited again, and how many: budgets are for new pages.
    pub(crate) revisited: HashMap<HostId, u32>,
}

/// Why a URL has no host here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooManyHosts;

impl Frontier {
    pub(crate) fn new(budget: Budget) -> Self {
        Self {
            hosts: Hosts::default(),
            sites: Vec::new(),
            by_site: Numbers::default(),
            referrers: Hashes::default(),
            bench: Workbench::default(),
            budget,
            epoch: 0,
            watched: VecDeque::new(),
            n_left: 0,
            n_over: 0,
            n_busy: 0,
            wants_lost_only: false,
            unresolved: Vec::new(),
            n_queued: 0,
            first_turn: Duration::ZERO,
            revisited: HashMap::new(),
        }
    }

    /// Has sites take as much as this from now on.
    pub(crate) fn set_budget(&mut self, budget: Budget) {
        self.budget = budget;
    }

    /// The host of a URL, if it is known; `origin_hash` is the first half of its fingerprint.
    pub(crate) fn find(&self, origin_hash: u64) -> Option<HostId> {
        self.hosts.find(origin_hash)
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
        let mut host = Host::new(url, site);
        host.next = self.first_turn;
        host.holds_queue = self.wants_lost_only;
        self.hosts.push(host, origin_hash);
    }

    /// The site of a URL, made known if it was not.
    pub(crate) fn site_of(&mut self, url: &NormalUrl) -> SiteId {
        let hash = site::hash(url.site());
        let sites = &mut self.sites;
        if let Some(site) = self.by_site.find(hash, |site| sites[site as usize].hash) {
            return site;
        }
        let site = sites.len() as SiteId;
        sites.push(Site::new(hash));
        self.by_site.insert(site, |site| sites[site as usize].hash);
        site
    }

    /// Puts a URL into the queue of its host.
    pub(crate) fn push(&mut self, queued: &Queued<'_>, place: Place) {
        self.hosts[queued.host as usize].push(queued.priority, place);
        self.n_queued += 1;
    }

    /// Puts a page into the queue of its host that is to be visited again.
    pub(crate) fn push_again(&mut self, queued: &Queued<'_>, place: Place) {
        *self.revisited.entry(queued.host).or_default() += 1;
        self.push(queued, place);
    }

    /// Takes down that a page waits no more to be visited again.
    pub(crate) fn end_again(&mut self, host: HostId) {
        if let Some(n) = self.revisited.get_mut(&host) {
            *n -= 1;
            if *n == 0 {
                self.revisited.remove(&host);
            }
        }
    }

    /// Moves a host that has something to fetch on to where that can happen: a host at rest, or one
    /// just done with.
    pub(crate) fn advance(&mut self, id: HostId) {
        let host = &mut self.hosts[id as usize];
        let has_work = host.has_work();
        let is_woken = host.stage == Stage::Bench && host.is_asleep && has_work;
        if host.stage != Stage::Rest && !is_woken {
            return;
        }
        let is_awaited = matches!(host.rules, Rules::Awaited);
        if !has_work && (is_awaited || self.wants_lost_only || !host.sleeps()) {
            return;
        }
        host.is_asleep = !has_work;
        let lane = self.lane(id);
        if lane != Some(Lane::First) {
            self.watch(id);
        }
        let host = &mut self.hosts[id as usize];
        let Some(lane) = lane else {
            host.stage = Stage::Parked;
            return;
        };
        match host.address {
            Some(address) => {
                host.stage = Stage::Bench;
                host.lane = lane;
                let time = match host.is_asleep {
                    true => host.next.max(host.wakes),
                    false => host.next,
                };
                let priority = host.priority();
                host.entry = self.bench.insert(id, address, lane, time, priority);
            }
            None => {
                host.stage = Stage::Names;
                self.unresolved.push(id);
            }
        }
    }

    /// Where a host has to wait; none if its site has had all its pages.
    fn lane(&self, id: HostId) -> Option<Lane> {
        let host = &self.hosts[id as usize];
        let site = &self.sites[host.site as usize];
        // What others wait for goes before budgets.
        if !host.jobs.is_empty() || self.revisited.contains_key(&id) {
            return Some(Lane::First);
        }
        if site.n_pages >= self.budget.max_pages {
            return None;
        }
        let is_spare = host.goes_last() || self.is_over_budget(host.site);
        Some(if is_spare { Lane::Spare } else { Lane::First })
    }

    fn watch(&mut self, id: HostId) {
        let host = &mut self.hosts[id as usize];
        if !std::mem::replace(&mut host.is_watched, true) {
            self.watched.push_back(id);
        }
    }

    /// A host that may be asked now. Its address is taken until [`Self::release`].
    pub(crate) fn take(&mut self, now: Duration) -> Option<HostId> {
        let hosts = &self.hosts;
        let counts = |id: HostId, entry| hosts[id as usize].entry == entry;
        let id = self.bench.take(now, counts)?;
        self.hosts[id as usize].stage = Stage::Busy;
        self.n_busy += 1;
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
        self.n_busy = self.n_busy.saturating_sub(1);
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

    /// Looks again at the hosts that are parked or in the spare lane, so many at a time: budgets
    /// may have grown. At the end of a round all budgets double if nearly nobody is left who has
    /// not used up his.
    pub(crate) fn rebalance(&mut self) {
        if self.n_left == 0 {
            (self.n_left, self.n_over) = (self.watched.len(), 0);
        }
        for _ in 0..self.n_left.min(MAX_WATCHED) {
            self.n_left -= 1;
            let Some(id) = self.watched.pop_front() else {
                break;
            };
            self.hosts[id as usize].is_watched = false;
            let lane = self.lane(id);
            let host = &mut self.hosts[id as usize];
            let waits = host.stage == Stage::Bench && host.lane == Lane::Spare;
            if host.stage != Stage::Parked && !waits {
                continue;
            }
            if lane == Some(Lane::First) || lane.is_some() && !waits {
                // An entry in the spare lane does not count any more.
                host.stage = Stage::Rest;
                self.advance(id);
                continue;
            }
            self.n_over += usize::from(waits && !host.goes_last());
            self.watch(id);
        }
        let n_first = self.bench.n_first + self.n_busy;
        if self.n_left == 0 && self.n_over > SPARE_SHARE * n_first {
            self.epoch = self.epoch.saturating_add(1);
        }
    }

    /// URLs that are lost for now.
    pub(crate) fn n_lost(&self) -> u64 {
        self.hosts.n_lost_and_aside().0
    }

    /// URLs of stale directories.
    pub(crate) fn n_aside(&self) -> u64 {
        self.hosts.n_lost_and_aside().1
    }

    /// Holds back all that is not lost.
    pub(crate) fn hold_queues(&mut self) -> Result<(), Error> {
        self.wants_lost_only = true;
        for id in 0..self.hosts.len() {
            self.hosts[id].hold_queue();
            self.hosts.shelve(1)?;
        }
        Ok(())
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
        let is_new = site.n_referrers < most && self.referrers.insert(mix(site.hash) ^ from);
        site.n_referrers += u64::from(is_new);
        is_new
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

    fn push(frontier: &mut Frontier, host: HostId, priority: u64, place: Place) {
        let queued = Queued {
            host,
            depth: 0,
            priority,
            n_redirects: 0,
            kind: Kind::Page,
            rest: "/",
            found_on: "",
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

    /// A host with an address and one URL that waits.
    fn add_ready(frontier: &mut Frontier, text: &str, n: u8) -> HostId {
        let host = add(frontier, text).unwrap();
        frontier.hosts[host as usize].address = Some(IpAddr::from([1, 1, 1, n]));
        push(frontier, host, 0, u64::from(n));
        host
    }

    fn site(frontier: &mut Frontier, host: HostId) -> &mut Site {
        let site = frontier.hosts[host as usize].site;
        &mut frontier.sites[site as usize]
    }

    /// Over budget a host lets others go first, is taken when there are none, and comes first again
    /// when another site links to it. With all the pages it may have it is parked.
    #[test]
    fn budgets_order_and_never_drop() {
        let mut frontier = Frontier::new(BUDGET);
        let over = add_ready(&mut frontier, "http://h.org/", 1);
        let other = add_ready(&mut frontier, "http://o.org/", 2);
        site(&mut frontier, over).n_pages = 2;
        frontier.advance(over);
        frontier.advance(other);
        let take = |frontier: &mut Frontier| frontier.take(Duration::ZERO);
        assert_eq!(take(&mut frontier), Some(other));
        assert_eq!(take(&mut frontier), Some(over));
        let now = Duration::ZERO;
        frontier.release(over, now, IpAddr::from([1, 1, 1, 1]), now);
        frontier.release(other, now, IpAddr::from([1, 1, 1, 2]), now);
        let of = frontier.hosts[over as usize].site;
        assert!(frontier.add_referrer(of, 77) && !frontier.add_referrer(of, 77));
        frontier.rebalance();
        let lane = |frontier: &Frontier| frontier.hosts[over as usize].lane;
        assert_eq!(lane(&frontier), Lane::First);
        assert_eq!(take(&mut frontier), Some(other));
        assert_eq!(take(&mut frontier), Some(over));
        assert_eq!(take(&mut frontier), None);
        site(&mut frontier, over).n_pages = 40;
        frontier.release(over, now, IpAddr::from([1, 1, 1, 1]), now);
        assert_eq!(frontier.hosts[over as usize].stage, Stage::Parked);
        frontier.rebalance();
        assert_eq!((take(&mut frontier), frontier.n_queued), (None, 2));
    }

    /// Where nearly all hosts are over budget, budgets double until they are not.
    #[test]
    fn budgets_double_when_all_are_used_up() {
        let mut frontier = Frontier::new(BUDGET);
        for n in 0..20 {
            let host = add_ready(&mut frontier, &format!("http://h{n}.org/"), n);
            site(&mut frontier, host).n_pages = 7;
            frontier.advance(host);
        }
        for lane in [Lane::Spare, Lane::Spare, Lane::First] {
            frontier.rebalance();
            assert!((0..20).all(|host| frontier.hosts[host].lane == lane));
        }
    }

    /// What was found on duplicates goes behind everything else, at its host and between hosts.
    #[test]
    fn links_of_duplicates_go_last() {
        let mut frontier = Frontier::new(BUDGET);
        let last = add(&mut frontier, "http://l.org/").unwrap();
        frontier.hosts[last as usize].address = Some(IpAddr::from([1, 1, 1, 1]));
        push(&mut frontier, last, LAST, 5);
        frontier.advance(last);
        let other = add_ready(&mut frontier, "http://o.org/", 2);
        push(&mut frontier, other, LAST, 8);
        push(&mut frontier, other, 9, 9);
        frontier.advance(other);
        assert_eq!(frontier.take(Duration::ZERO), Some(other));
        assert_eq!(frontier.take(Duration::ZERO), Some(last));
        assert_eq!(frontier.hosts[other as usize].drain(), [2, 9, 8]);
    }

    /// Lost URLs are asked for alone, or with all others.
    #[test]
    fn lost_urls_are_kept() {
        let mut frontier = Frontier::new(BUDGET);
        let host = add_ready(&mut frontier, "http://h.org/", 1);
        push(&mut frontier, host, 0, 7);
        frontier.hosts[host as usize].lose(7);
        let gone = add_ready(&mut frontier, "http://g.org/", 2);
        frontier.hosts[gone as usize].is_lost = true;
        assert_eq!((frontier.n_lost(), frontier.n_queued), (2, 3));
        frontier.hold_queues().unwrap();
        (0..2).for_each(|host| frontier.hosts[host].forgive());
        let pop = |host: &mut Host| host.pop().map(|turn| turn.place);
        let host = &mut frontier.hosts[host as usize];
        assert_eq!((pop(host), pop(host)), (Some(7), None));
        assert_eq!(host.drain(), [1]);
        assert_eq!(pop(&mut frontier.hosts[gone as usize]), Some(2));
    }
}
