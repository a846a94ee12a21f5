//! The frontier: hosts with their queues, and the shares of sites.
//!
//! A new URL enters the queue of its host. The host enters the [`Workbench`] once its IP address is
//! known; [`Stage`] is its current stage. Among the hosts that may receive a request, the one whose
//! best URL has the highest priority comes first. The priority is the mass of the URL
//! ([`crate::order`]) times the *share* of its site. Shares keep a site (all hosts of one
//! registered domain) that generates pages or domains without end from crowding out the others. A
//! site gets as many pages at full priority as the trust that it received from other sites and did
//! not pass on is worth (`trust.rs`), and less priority with each further page. This orders hosts
//! and leaves none idle. A host whose site has reached its maximum number of pages is *parked*.
//! Queued URLs are never dropped.
//!
//! URLs found on duplicates go last: behind the others of their host, and in the spare lane.
//!
//! A directory of a host whose last pages all repeated others and were found on such pages is
//! *stale*: a calendar, a maze of sessions. URLs found there are put aside, except for one per day
//! (`folders.rs`). So are those of sites whose pages are nearly all bad (`quality.rs`).
//!
//! Memory: hosts beyond a limit rest in a file ([`Hosts`]) and leave about 40 bytes, or about 110
//! with their place in the workbench; a site takes about 30, a queued URL 13 while its host is in
//! memory. The text of URLs is in the journal.

mod arriving;
mod blocks;
mod cold;
mod folders;
mod host;
mod hosts;
mod keeper;
mod outline;
mod quality;
mod queue;
mod ranking;
mod shelf;
mod site;
mod standing;
mod table;
#[cfg(test)]
mod tests;
mod trust;
mod visits;
mod workbench;

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use crate::journal::{HostId, Place, Queued};
use crate::order::{Gift, Level, Weight};
use crate::settings::{Budget, Order};
use crate::url::NormalUrl;

pub(crate) use arriving::Arriving;
pub(crate) use folders::{Folders, Novelty, PROBE};
pub(crate) use host::{Host, HostRules, RECALLED, RobotsJob, Stage, Turn};
pub(crate) use hosts::{Hosts, nameless};
use outline::Outline;
pub(crate) use quality::{Conduct, LOW, SPAM, Templates};
pub(crate) use queue::{MAX_PLACE, Queue, QueueEntry, Tag};
pub(crate) use ranking::{Arrival, Scale};
pub(crate) use site::{SiteId, SiteState};
pub(crate) use standing::QueuedUrl;
pub use standing::{SiteQuality, SiteStanding, Standing};
use table::{Flags, Numbers};
pub(crate) use workbench::{Choice, EntryId, Judgement, Lane, Rank, Workbench};

/// Minimum change of the rank of a host that is noted: a sixteenth of a factor of two.
const NOTED: Rank = 64;

/// Maximum number of hosts that are checked again at once.
const MAX_WATCHED: usize = 20_000;

/// All hosts and their queues.
#[derive(Debug)]
pub(crate) struct Frontier {
    pub(crate) hosts: Hosts,
    pub(crate) sites: Vec<SiteState>,
    by_site: Numbers,
    pub(crate) bench: Workbench,
    budget: Budget,
    scale: Scale,
    /// The trust of all sites, and the number of pages requested from all of them.
    trust: f64,
    n_pages: u64,
    /// Number of hosts taken in the current round, and the best rank among them.
    n_turns: usize,
    best: Rank,
    /// Whether the number of doublings has changed since it was written, and the sites whose trust
    /// has.
    has_doubled: bool,
    changed: Vec<SiteId>,
    is_changed: Flags,
    /// The sites with the most trust.
    trusted: Vec<SiteId>,
    /// Sites with the most bad pages.
    poor: Vec<SiteId>,
    /// The names of both.
    names: HashMap<SiteId, Box<str>>,
    /// Hosts that are parked or in the spare lane and are to be checked again, in order.
    watched: VecDeque<HostId>,
    is_watched: Flags,
    /// How many of them are left in the current round.
    n_left: usize,
    /// Whether only lost URLs are wanted.
    wants_lost_only: bool,
    /// Number of hosts that were taken off the workbench and are being read into memory.
    pub(crate) n_coming: usize,
    /// Hosts whose IP address is needed, in order.
    pub(crate) unresolved: VecDeque<HostId>,
    /// The quality of the pages of sites, as far as some were read.
    pub(crate) conduct: HashMap<SiteId, Conduct>,
    /// Home pages by IP address and template.
    pub(crate) templates: Templates,
    /// Number of queued URLs.
    pub(crate) n_queued: u64,
    /// The earliest time of the first requests.
    pub(crate) first_turn: Duration,
    /// Hosts with pages to be visited again, and the number of these: budgets are for new pages.
    pub(crate) revisited: HashMap<HostId, u32>,
}

/// A host that was taken off the workbench.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    /// It may receive a request.
    Host(HostId),
    /// It must be read into memory first, or its entry is no longer valid.
    Later,
}

/// Why a URL gets no host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooManyHosts;

impl Frontier {
    pub(crate) fn new(budget: Budget, order: Order) -> Self {
        Self {
            hosts: Hosts::default(),
            sites: Vec::new(),
            conduct: HashMap::new(),
            templates: Templates::default(),
            by_site: Numbers::default(),
            bench: Workbench::default(),
            scale: Scale {
                order,
                pages: budget.pages as f64,
                n_doublings: 0,
                is_focused: false,
            },
            budget,
            trust: 0.0,
            n_pages: 0,
            n_turns: 0,
            best: 0,
            has_doubled: false,
            changed: Vec::new(),
            is_changed: Flags::default(),
            trusted: Vec::new(),
            poor: Vec::new(),
            names: HashMap::new(),
            watched: VecDeque::new(),
            is_watched: Flags::default(),
            n_left: 0,
            wants_lost_only: false,
            n_coming: 0,
            unresolved: VecDeque::new(),
            n_queued: 0,
            first_turn: Duration::ZERO,
            revisited: HashMap::new(),
        }
    }

    /// Uses these limits for sites from now on.
    pub(crate) fn set_budget(&mut self, budget: Budget) {
        self.scale.pages = budget.pages as f64;
        self.budget = budget;
    }

    /// Ranks hosts as in a crawl with a topic.
    pub(crate) fn set_focused(&mut self) {
        self.scale.is_focused = true;
    }

    /// Returns how hosts are ranked.
    pub(crate) fn scale(&self) -> Scale {
        self.scale
    }

    /// Records how often trust became worth twice as many pages, during the replay of the journal.
    pub(crate) fn set_doublings(&mut self, n: u32) {
        self.scale.n_doublings = n;
    }

    /// Returns the host of a URL, if it is known; `origin_hash` is the first half of its
    /// fingerprint.
    pub(crate) fn find(&self, origin_hash: u64) -> Option<HostId> {
        self.hosts.find(origin_hash)
    }

    /// Reads what is in memory of the hosts with these hashes before they are needed, which takes
    /// less time for many at once.
    pub(crate) fn touch(&self, hashes: impl Iterator<Item = u64>) {
        let sites = self.hosts.touch(hashes).into_iter();
        let touched = sites.fold(0, |all, site| all ^ self.sites[site as usize].n_hosts);
        std::hint::black_box(touched);
    }

    /// Adds the host of a URL, unless its site has the maximum number of hosts.
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

    /// Whether the host of a URL may be added.
    pub(crate) fn admits_host(&self, url: &NormalUrl) -> bool {
        let (hash, sites) = (site::hash(url.site()), &self.sites);
        let site = self.by_site.find(hash, |site| sites[site as usize].hash);
        site.is_none_or(|site| sites[site as usize].n_hosts < self.budget.max_hosts)
    }

    /// Adds a host that was admitted before.
    pub(crate) fn restore_host(&mut self, url: &NormalUrl, origin_hash: u64) {
        let site = self.admit_host(url);
        let host = self.new_host(url.origin(), site);
        self.hosts.push(host, origin_hash);
    }

    /// Counts a host at its site; returns the site.
    pub(crate) fn admit_host(&mut self, url: &NormalUrl) -> SiteId {
        let site = self.site_of(url);
        let of = &mut self.sites[site as usize];
        if of.n_hosts == 0 {
            of.host = self.hosts.len() as HostId;
        }
        of.n_hosts += 1;
        site
    }

    /// Creates a host without any state.
    pub(crate) fn new_host(&self, origin: &str, site: SiteId) -> Host {
        let mut host = Host::named(origin, site);
        host.next = self.first_turn;
        host.holds_queue = self.wants_lost_only;
        host
    }

    /// Returns the site of a URL, which is added if it is new.
    pub(crate) fn site_of(&mut self, url: &NormalUrl) -> SiteId {
        let hash = site::hash(url.site());
        let sites = &mut self.sites;
        if let Some(site) = self.by_site.find(hash, |site| sites[site as usize].hash) {
            return site;
        }
        let site = sites.len() as SiteId;
        sites.push(SiteState::new(hash));
        self.by_site.insert(site, |site| sites[site as usize].hash);
        site
    }

    /// Puts a URL into the queue of its host.
    pub(crate) fn push(&mut self, queued: &Queued<'_>, tag: Tag, place: Place) {
        let entry = QueueEntry::new(tag, place, queued.weight, queued.class);
        match self.hosts.bring(queued.host) {
            true => self.hosts[queued.host as usize].push(entry, queued.is_last),
            false => self.hosts.queue(queued.host, entry, queued.is_last),
        }
        self.n_queued += 1;
    }

    /// Adds a contribution to a queued URL; returns its position and its new weight, if that has
    /// grown. A host that is not in memory gets the contribution when it is. `rest_hash` is the
    /// second half of the fingerprint of the URL.
    pub(crate) fn give(
        &mut self,
        id: HostId,
        rest_hash: u64,
        gift: Gift,
    ) -> Option<(Place, Weight)> {
        if !self.hosts.may_have_work(id) {
            return None;
        }
        if !self.hosts.bring(id) {
            self.hosts.arriving(id).gifts.push((rest_hash, gift));
            return None;
        }
        let gift = self.scale.order.received(gift);
        let tag = Tag::of(rest_hash);
        let given = self.hosts[id as usize].give(tag, rest_hash, gift)?;
        self.raise(id, given.1.mass);
        Some(given)
    }

    /// Sets the mass of a queued URL; returns its position and its new weight, if that has changed.
    /// A host that is not in memory gets the mass when it is. `rest_hash` is the second half of the
    /// fingerprint of the URL.
    pub(crate) fn reweigh(
        &mut self,
        id: HostId,
        rest_hash: u64,
        mass: Level,
    ) -> Option<(Place, Weight)> {
        if !self.hosts.may_have_work(id) {
            return None;
        }
        if !self.hosts.bring(id) {
            self.hosts.arriving(id).masses.push((rest_hash, mass));
            return None;
        }
        let tag = Tag::of(rest_hash);
        let changed = self.hosts[id as usize].reweigh(tag, mass)?;
        self.raise(id, mass);
        Some(changed)
    }

    /// Raises a queued URL to the weight of a seed; returns its position and its new weight, if
    /// that has grown. A host that is not in memory is handled when it is.
    pub(crate) fn lift(&mut self, id: HostId, tag: Tag, number: u32) -> Option<(Place, Weight)> {
        let least = self.scale.order.weigh(Arrival {
            is_seed: true,
            is_list: false,
            gift: Gift::NONE,
            number,
        });
        if !self.hosts.bring(id) {
            self.hosts.arriving(id).lifts.push((tag, number));
            return None;
        }
        let (place, weight, before) = self.hosts[id as usize].lift(tag, least)?;
        self.entrust(None, id, weight.trust.amount() - before.amount());
        self.raise(id, weight.mass);
        Some((place, weight))
    }

    /// Moves a host forward if what is next to be requested from it has a higher rank than its
    /// entry.
    pub(crate) fn raise_first(&mut self, id: HostId) {
        if let Some(first) = self.hosts[id as usize].first() {
            self.raise(id, first.mass);
        }
    }

    /// Moves a host forward if a URL with this mass has a higher rank than its entry. A host that
    /// is not in memory is checked when it is.
    pub(crate) fn raise(&mut self, id: HostId, mass: Level) {
        if !self.hosts.is_warm(id) {
            return;
        }
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

    /// Queues a request for robots.txt at a host.
    pub(crate) fn push_job(&mut self, id: HostId, job: RobotsJob) {
        match self.hosts.bring(id) {
            true => self.hosts[id as usize].jobs.push_back(job),
            false => self.hosts.arriving(id).jobs.push(job),
        }
        self.advance(id);
    }

    /// Moves a host with something to fetch to its next stage, if it was at rest or its request has
    /// ended.
    pub(crate) fn advance(&mut self, id: HostId) {
        if !self.hosts.bring(id) {
            self.hosts.arriving(id).advances = true;
            return;
        }
        let host = &mut self.hosts[id as usize];
        let has_work = host.has_work();
        let is_woken = host.stage == Stage::Bench && host.is_asleep && has_work;
        if host.stage != Stage::Rest && !is_woken {
            return;
        }
        let is_awaited = matches!(host.rules, HostRules::Awaited);
        if !has_work && (is_awaited || self.wants_lost_only || !host.sleeps()) {
            return;
        }
        host.is_asleep = !has_work;
        let lane = self.lane(id, self.hosts.outline(id));
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
                host.rank = rank_of(host, &self.sites, self.scale);
                let time = host.bench_time();
                host.entry = self.bench.insert(id, address, lane, time, host.rank);
            }
            None => {
                host.stage = Stage::Names;
                self.unresolved.push_back(id);
            }
        }
    }

    /// Returns the lane of a host; `None` if its site has reached its maximum number of pages.
    fn lane(&self, id: HostId, outline: Outline) -> Option<Lane> {
        // Requests that other hosts or users wait for take precedence over budgets.
        if outline.has_jobs || self.revisited.contains_key(&id) {
            return Some(Lane::First);
        }
        if !self.admits_pages(id) {
            return None;
        }
        Some(match outline.goes_last {
            true => Lane::Spare,
            false => Lane::First,
        })
    }

    fn watch(&mut self, id: HostId) {
        if !self.is_watched.replace(id, true) {
            self.watched.push_back(id);
        }
    }

    /// Takes a host that may receive a request now. Its IP address stays taken until
    /// [`Self::release`]. A host that is not in memory is [claimed](Self::claim) when it is.
    pub(crate) fn take(&mut self, now: Duration) -> Option<Taken> {
        let (hosts, sites, scale) = (&mut self.hosts, &self.sites, self.scale);
        let judge = |id: HostId, entry, rank| match hosts.is_warm(id) {
            true => judge(&mut hosts[id as usize], entry, rank, sites, scale),
            false => Judgement::Fine,
        };
        let choice = self.bench.take(now, judge)?;
        if !self.hosts.bring(choice.host) {
            self.hosts.arriving(choice.host).taken = Some(choice);
            self.n_coming += 1;
            return Some(Taken::Later);
        }
        Some(match self.mark_busy(choice) {
            true => Taken::Host(choice.host),
            false => Taken::Later,
        })
    }

    /// Continues with a host that was taken before it was in memory; returns whether it may receive
    /// a request now.
    pub(crate) fn claim(&mut self, choice: Choice) -> bool {
        self.n_coming -= 1;
        self.mark_busy(choice)
    }

    /// Whether an entry of the workbench is still valid; if so, its host is busy from now on.
    fn mark_busy(&mut self, choice: Choice) -> bool {
        let host = &mut self.hosts[choice.host as usize];
        let judgement = judge(host, choice.entry, choice.rank, &self.sites, self.scale);
        if judgement == Judgement::Fine {
            host.stage = Stage::Busy;
            // A page that is due says nothing about the priority that is left for new pages.
            let is_due = self.revisited.contains_key(&choice.host);
            self.note_taken(if is_due { Rank::MAX } else { choice.rank });
            return true;
        }
        self.bench.release(choice.address, Duration::ZERO);
        if let Judgement::Lower(rank) = judgement {
            let (lane, time) = (host.lane, host.bench_time());
            host.entry = self
                .bench
                .insert(choice.host, choice.address, lane, time, rank);
        }
        false
    }

    /// Releases a host and its IP address, which may receive requests again from these times on.
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

    /// Checks some of the hosts again that are parked or in the spare lane: they may have new URLs,
    /// or limits may have changed.
    pub(crate) fn rebalance(&mut self) {
        if self.n_left == 0 {
            self.n_left = self.watched.len();
        }
        for _ in 0..self.n_left.min(MAX_WATCHED) {
            self.n_left -= 1;
            let Some(id) = self.watched.pop_front() else {
                break;
            };
            self.is_watched.replace(id, false);
            let outline = self.hosts.outline(id);
            if !outline.is_parked && !outline.is_spare {
                continue;
            }
            if self.has_better_lane(id, outline) {
                match self.hosts.bring(id) {
                    true => self.move_up(id),
                    false => self.hosts.arriving(id).moves = true,
                }
                continue;
            }
            self.watch(id);
        }
    }

    /// Whether a host may leave the place where it waits.
    fn has_better_lane(&self, id: HostId, outline: Outline) -> bool {
        let lane = self.lane(id, outline);
        lane == Some(Lane::First) || lane.is_some() && !outline.is_spare
    }

    /// Moves a host that is parked or in the spare lane to where it may wait now.
    pub(crate) fn move_up(&mut self, id: HostId) {
        let outline = self.hosts.outline(id);
        if !outline.is_parked && !outline.is_spare {
            return;
        }
        if self.has_better_lane(id, outline) {
            // Its entry in the spare lane is no longer valid.
            self.hosts[id as usize].stage = Stage::Rest;
            self.advance(id);
        } else {
            self.watch(id);
        }
    }
}

/// Decides what happens to an entry of the workbench whose turn it is.
fn judge(
    host: &mut Host,
    entry: EntryId,
    rank: Rank,
    sites: &[SiteState],
    scale: Scale,
) -> Judgement {
    if host.entry != entry {
        return Judgement::Outdated;
    }
    let now = rank_of(host, sites, scale);
    if now.saturating_add(NOTED) < rank {
        host.rank = now;
        return Judgement::Lower(now);
    }
    Judgement::Fine
}

/// Returns the rank of a host: that of the next request to it.
fn rank_of(host: &Host, sites: &[SiteState], scale: Scale) -> Rank {
    if !host.jobs.is_empty() {
        return Rank::MAX;
    }
    let mass = host.first().map_or(Level::NONE, |first| first.mass);
    let site = &sites[host.site as usize];
    scale.rank(mass, site.share(scale.pages()))
}
