//! The frontier: hosts, what waits at each of them, and how much a site may take.
//!
//! A URL that is new goes to the queue of its host; the host goes to the [`Workbench`] when its
//! address is known. Where a host is on its way, [`Stage`] says. Among hosts that may be asked, the
//! one goes first whose best URL has the highest priority: its mass ([`crate::order`]) times the
//! *share* of its site. Sites (what one owner has registered) have shares, so that a site which
//! makes up pages for ever, or domains, cannot crowd out the others: as many pages at full priority
//! as the trust is worth that came from other sites and was not passed on to others, and less
//! priority with each further page. That orders hosts and leaves nothing idle. When hardly any
//! priority is left, trust is worth twice as many pages. A host whose site has had all the pages it
//! may have is *parked*. What waits is never dropped.
//!
//! URLs found on duplicates go last: behind the others of their host, and in the spare lane.
//!
//! A directory of a host whose last pages all repeated is *stale*: a mirror, a calendar, a maze of
//! sessions. Its URLs are put aside, except for one per day.
//!
//! Memory: hosts beyond a limit rest in a file ([`Hosts`]) and leave about 30 bytes, or about 100
//! with their place in the workbench; a site takes about 30, a queued URL 16 while its host is in
//! memory. The text of URLs is in the journal.

mod cold;
mod folders;
mod host;
mod hosts;
mod queue;
mod ranking;
mod shelf;
mod site;
mod standing;
mod table;
#[cfg(test)]
mod tests;
mod workbench;

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::IpAddr;
use std::time::Duration;

use arose::mix::mix;

use crate::error::Error;
use crate::journal::{Event, HostId, Place, Queued};
use crate::order::{Gift, Level, Weight};
use crate::settings::{Budget, Order};
use crate::url::NormalUrl;

pub(crate) use folders::{Folders, Novelty, PROBE};
pub(crate) use host::{Host, RobotsJob, Rules, Stage, Turn};
pub(crate) use hosts::Hosts;
use queue::Entry;
pub(crate) use ranking::{Arrival, Scale};
pub(crate) use site::{Site, SiteId};
pub(crate) use standing::Waiting;
pub use standing::{SiteStanding, Standing};
use table::Numbers;
pub(crate) use workbench::{EntryId, Judgement, Lane, Rank, Workbench};

/// By how much the rank of a host must change to be noted: a sixteenth of a factor of two.
const NOTED: Rank = 64;

/// Hosts taken, at least, before it is asked whether any priority is left.
const ROUND: usize = 1000;

/// Hosts that are looked at again in one go.
const MAX_WATCHED: usize = 20_000;

/// All hosts and their queues.
#[derive(Debug)]
pub(crate) struct Frontier {
    pub(crate) hosts: Hosts,
    pub(crate) sites: Vec<Site>,
    by_site: Numbers,
    pub(crate) bench: Workbench,
    budget: Budget,
    scale: Scale,
    /// Hosts taken in the present round, and the best rank among them.
    n_taken: usize,
    best: Rank,
    /// Whether the number of doublings has changed since it was written down, and sites whose trust
    /// has.
    has_doubled: bool,
    changed: Vec<SiteId>,
    /// Sites that are trusted most.
    trusted: Vec<SiteId>,
    /// Hosts that are parked or in the spare lane, to be looked at again, the next one first.
    watched: VecDeque<HostId>,
    /// How many of them are left of the present round.
    n_left: usize,
    /// Mixed with the names of URLs, so that no site knows where they are.
    seed: u64,
    /// Whether only URLs that were lost are wanted.
    wants_lost_only: bool,
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
    pub(crate) fn new(budget: Budget, order: Order) -> Self {
        Self {
            hosts: Hosts::default(),
            sites: Vec::new(),
            by_site: Numbers::default(),
            bench: Workbench::default(),
            scale: Scale {
                order,
                pages: budget.pages as f64,
                n_doublings: 0,
            },
            budget,
            n_taken: 0,
            best: 0,
            has_doubled: false,
            changed: Vec::new(),
            trusted: Vec::new(),
            watched: VecDeque::new(),
            n_left: 0,
            seed: RandomState::new().build_hasher().finish(),
            wants_lost_only: false,
            unresolved: Vec::new(),
            n_queued: 0,
            first_turn: Duration::ZERO,
        }
    }

    /// Has sites take as much as this from now on.
    pub(crate) fn set_budget(&mut self, budget: Budget) {
        self.scale.pages = budget.pages as f64;
        self.budget = budget;
    }

    /// Takes down how much a site is trusted, while the journal is read again.
    pub(crate) fn set_trust(&mut self, site: SiteId, trust: f32) {
        self.sites[site as usize].trust = trust.max(0.0);
        self.note_trusted(site);
    }

    /// How hosts are ranked.
    pub(crate) fn scale(&self) -> Scale {
        self.scale
    }

    /// Takes down how often trust became worth twice as many pages, while the journal is read
    /// again.
    pub(crate) fn set_doublings(&mut self, n: u32) {
        self.scale.n_doublings = n;
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
        let of = &mut self.sites[site as usize];
        if of.n_hosts == 0 {
            of.host = self.hosts.len() as HostId;
        }
        of.n_hosts += 1;
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

    /// What stands for a URL at its host; `rest_hash` is the second half of its fingerprint.
    pub(crate) fn tag(&self, rest_hash: u64) -> u32 {
        (mix(rest_hash ^ self.seed) >> 32) as u32
    }

    /// Puts a URL into the queue of its host.
    pub(crate) fn push(&mut self, queued: &Queued<'_>, tag: u32, place: Place) {
        let entry = Entry::new(tag, place, queued.weight, queued.class);
        self.hosts[queued.host as usize].push(entry, queued.is_last);
        self.n_queued += 1;
    }

    /// Gives something to a URL that waits; returns its place and what it has now, if that is more
    /// than before. `rest_hash` is the second half of its fingerprint.
    pub(crate) fn give(
        &mut self,
        id: HostId,
        rest_hash: u64,
        gift: Gift,
    ) -> Option<(Place, Weight)> {
        if !self.hosts.may_have_work(id) {
            return None;
        }
        let gift = self.scale.order.received(gift);
        let tag = self.tag(rest_hash);
        let given = self.hosts[id as usize].give(tag, rest_hash, gift)?;
        self.raise(id, given.1.mass);
        Some(given)
    }

    /// Raises a URL that waits to the weight of a seed; returns its place and what it has now, if
    /// that is more than before.
    pub(crate) fn lift(&mut self, id: HostId, tag: u32, number: u32) -> Option<(Place, Weight)> {
        let least = self.scale.order.weigh(Arrival {
            is_seed: true,
            is_list: false,
            gift: Gift::NONE,
            number,
        });
        let (place, weight, before) = self.hosts[id as usize].lift(tag, least)?;
        self.entrust(None, id, weight.trust.amount() - before.amount());
        self.raise(id, weight.mass);
        Some((place, weight))
    }

    /// Takes down that trust came to a host from a site, which has less of it now, or from outside.
    pub(crate) fn entrust(&mut self, from: Option<SiteId>, id: HostId, trust: f32) {
        let number = self.hosts.site(id);
        if from == Some(number) || trust.is_nan() || trust <= 0.0 {
            return;
        }
        self.change_trust(number, trust);
        if let Some(from) = from {
            self.change_trust(from, -trust);
        }
        let site = &self.sites[number as usize];
        // Where a site has its share in full, more trust changes nothing.
        let is_limited = site.share(self.scale.pages()) < 1.0;
        if is_limited
            && self.hosts.is_warm(id)
            && self.hosts[id as usize].stage == Stage::Bench
            && let Some(first) = self.hosts[id as usize].first()
        {
            self.raise(id, first.mass);
        }
    }

    fn change_trust(&mut self, number: SiteId, by: f32) {
        let site = &mut self.sites[number as usize];
        site.trust = (site.trust + by).max(0.0);
        if !std::mem::replace(&mut site.is_changed, true) {
            self.changed.push(number);
            self.note_trusted(number);
        }
    }

    /// What changed of sites since this was asked last, for the journal.
    pub(crate) fn take_changes(&mut self) -> Vec<Event<'static>> {
        let mut events = Vec::with_capacity(self.changed.len());
        for number in std::mem::take(&mut self.changed) {
            let site = &mut self.sites[number as usize];
            site.is_changed = false;
            let (host, trust) = (site.host, site.trust);
            events.push(Event::Trust { host, trust });
        }
        if std::mem::take(&mut self.has_doubled) {
            let n = self.scale.n_doublings.into();
            events.push(Event::Doublings { n });
        }
        events
    }

    /// Has a host go sooner that waits with URLs of a lower rank than one with this mass.
    pub(crate) fn raise(&mut self, id: HostId, mass: Level) {
        let site = &self.sites[self.hosts.site(id) as usize];
        let rank = self.scale.rank(mass, site.share(self.scale.pages()));
        let host = &mut self.hosts[id as usize];
        let is_noted = rank > host.rank.saturating_add(NOTED);
        if host.stage != Stage::Bench || host.is_asleep || !is_noted {
            return;
        }
        if let Some(address) = host.address {
            host.rank = rank;
            host.entry = self.bench.insert(id, address, host.lane, host.next, rank);
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
                host.rank = rank_of(host, &self.sites, self.scale);
                host.entry = self.bench.insert(id, address, lane, time, host.rank);
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
        if !host.jobs.is_empty() {
            return Some(Lane::First);
        }
        if site.n_pages >= self.budget.max_pages {
            return None;
        }
        Some(match host.goes_last() {
            true => Lane::Spare,
            false => Lane::First,
        })
    }

    fn watch(&mut self, id: HostId) {
        let host = &mut self.hosts[id as usize];
        if !std::mem::replace(&mut host.is_watched, true) {
            self.watched.push_back(id);
        }
    }

    /// A host that may be asked now. Its address is taken until [`Self::release`].
    pub(crate) fn take(&mut self, now: Duration) -> Option<HostId> {
        let (hosts, sites, scale) = (&mut self.hosts, &self.sites, self.scale);
        let judge = |id: HostId, entry, rank: Rank| {
            let host = &mut hosts[id as usize];
            if host.entry != entry {
                return Judgement::Outdated;
            }
            let now = rank_of(host, sites, scale);
            if now.saturating_add(NOTED) < rank {
                host.rank = now;
                return Judgement::Lower(now);
            }
            Judgement::Fine
        };
        let (id, rank) = self.bench.take(now, judge)?;
        self.hosts[id as usize].stage = Stage::Busy;
        self.note_taken(rank);
        Some(id)
    }

    /// Has trust be worth twice as many pages when hardly any priority is left.
    fn note_taken(&mut self, rank: Rank) {
        self.n_taken += 1;
        if rank < Rank::MAX {
            self.best = self.best.max(rank);
        }
        if self.n_taken < ROUND.max(self.bench.n_entries) {
            return;
        }
        if self.scale.is_scarce(self.best) {
            self.scale.n_doublings += 1;
            self.has_doubled = true;
        }
        (self.n_taken, self.best) = (0, 0);
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

    /// Looks again at the hosts that are parked or in the spare lane, so many at a time: other URLs
    /// may have come, or limits may have changed.
    pub(crate) fn rebalance(&mut self) {
        if self.n_left == 0 {
            self.n_left = self.watched.len();
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
            self.watch(id);
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
}

/// The rank of a host: that of what it is asked for next.
fn rank_of(host: &Host, sites: &[Site], scale: Scale) -> Rank {
    if !host.jobs.is_empty() {
        return Rank::MAX;
    }
    let mass = host.first().map_or(Level::NONE, |first| first.mass);
    let site = &sites[host.site as usize];
    scale.rank(mass, site.share(scale.pages()))
}
