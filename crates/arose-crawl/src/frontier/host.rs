//! A host: its queue, robots.txt rules and delays.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::queue::{Queue, QueueEntry, Tag};
use super::{EntryId, Folders, Lane, Rank, SiteId};
use crate::contain::contain;
use crate::journal::{HostId, Place};
use crate::order::{Gift, Level, Weight};
use crate::pace::Pace;
use crate::robots::Robots;

/// An origin (scheme, host name and port) and its state.
#[derive(Debug)]
pub(crate) struct Host {
    /// `scheme://host[:port]`.
    pub(crate) origin: Box<str>,
    pub(crate) site: SiteId,
    pub(crate) stage: Stage,
    /// Its lane in the workbench.
    pub(super) lane: Lane,
    /// The entry of the workbench that stands for it, and its rank there.
    pub(super) entry: EntryId,
    pub(super) rank: Rank,
    /// Its last known IP address.
    pub(crate) address: Option<IpAddr>,
    /// The earliest time of the next request.
    pub(crate) next: Duration,
    pub(crate) pace: Pace,
    pub(crate) rules: HostRules,
    /// Since when its robots.txt is not available, in seconds since 1970; 0 if it is available.
    pub(crate) unreachable_since: u64,
    /// robots.txt files to be fetched before pages, for this host or for another that redirects
    /// here.
    pub(crate) jobs: VecDeque<RobotsJob>,
    /// Queued URLs, by mass.
    pub(super) queue: Queue,
    /// URLs that go after all others of their host, and only use capacity that other hosts leave.
    /// Few hosts have any.
    pub(super) last: Option<Box<Queue>>,
    /// Pages to be visited again. Few hosts have any.
    pub(super) again: Option<Box<Queue>>,
    /// The share of a visit that is owed to them while new URLs wait.
    owed: f32,
    /// Failed URLs to be retried, with their numbers of tries.
    pub(super) retries: VecDeque<Turn>,
    /// URLs with stale path prefixes.
    pub(crate) aside: Vec<Turn>,
    /// URLs that are lost for now: no try got a response.
    pub(crate) lost: Vec<Turn>,
    /// URLs that rules defer, by journal position.
    pub(crate) deferred: BTreeMap<Place, (Tag, Weight)>,
    /// Whether the host itself is lost for now, with all its queued URLs.
    pub(crate) is_lost: bool,
    /// When URLs with stale path prefixes and lost URLs are tried again.
    pub(crate) wakes: Duration,
    /// Whether it is in the workbench only for those.
    pub(super) is_asleep: bool,
    /// Whether only lost URLs are to be fetched from it.
    pub(crate) holds_queue: bool,
    /// Whether it has sent a response in this run.
    pub(crate) has_answered: bool,
    /// When the open request was sent.
    pub(crate) asked_at: Duration,
    /// Whether the last request was slow.
    pub(crate) is_slow: bool,
    /// Whether the open request counts as slow.
    pub(crate) counts_as_slow: bool,
    pub(crate) folders: Option<Box<Folders>>,
}

/// The stage of a host in the crawl loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// None: nothing to fetch, or between two stages.
    Rest,
    /// Waiting for its IP address.
    Names,
    /// Waiting for its time in the workbench.
    Bench,
    /// A request is open.
    Busy,
    /// Waiting for budget.
    Parked,
}

/// The robots.txt rules of a host.
#[derive(Debug, Clone)]
pub(crate) enum HostRules {
    /// Not requested yet.
    Unknown,
    /// A redirect leads to another host, which is being requested.
    Awaited,
    /// These rules, until that time.
    Known(Arc<Robots>, Duration),
    /// The rules in this robots.txt, which is the same for all crawlers, until that time.
    Kept(Box<str>, Duration),
}

/// A robots.txt to be fetched.
#[derive(Debug, Clone)]
pub(crate) struct RobotsJob {
    /// The host that it is for.
    pub(crate) host: HostId,
    /// Path and query at the host that is requested.
    pub(crate) rest: Box<str>,
    pub(crate) n_redirects: u32,
    /// The number of earlier tries.
    pub(crate) n_tries: u8,
}

/// The number of tries of a URL that a rule deferred and that is to be fetched after all.
pub(crate) const RECALLED: u8 = u8::MAX;

/// A URL whose turn it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) place: Place,
    /// The mass and trust from its links.
    pub(crate) weight: Weight,
    /// The number of earlier tries.
    pub(crate) n_tries: u8,
}

impl Turn {
    /// Creates the first turn of a URL.
    fn first(entry: QueueEntry) -> Self {
        Self {
            place: entry.place(),
            weight: entry.weight(),
            n_tries: 0,
        }
    }

    /// Returns the turn as that of a URL that was not deferred.
    pub(crate) fn without_recall(self) -> Self {
        match self.n_tries {
            RECALLED => self.afresh(),
            _ => self,
        }
    }

    /// Returns the turn without its earlier tries.
    fn afresh(self) -> Self {
        Self { n_tries: 0, ..self }
    }
}

impl Host {
    /// Creates a host from its `scheme://host[:port]`.
    pub(crate) fn named(origin: &str, site: SiteId) -> Self {
        Self {
            origin: origin.into(),
            site,
            stage: Stage::Rest,
            lane: Lane::First,
            entry: 0,
            rank: 0,
            address: None,
            next: Duration::ZERO,
            pace: Pace::default(),
            rules: HostRules::Unknown,
            unreachable_since: 0,
            jobs: VecDeque::new(),
            queue: Queue::default(),
            last: None,
            again: None,
            owed: 0.0,
            retries: VecDeque::new(),
            aside: Vec::new(),
            lost: Vec::new(),
            deferred: BTreeMap::new(),
            is_lost: false,
            wakes: Duration::ZERO,
            is_asleep: false,
            holds_queue: false,
            has_answered: false,
            asked_at: Duration::ZERO,
            is_slow: false,
            counts_as_slow: false,
            folders: None,
        }
    }

    /// Parses its rules if they are kept as text.
    pub(crate) fn read_rules(&mut self) {
        if let HostRules::Kept(text, until) = &self.rules {
            let robots = contain(|| Robots::parse(text.as_bytes(), ""));
            self.rules = match robots {
                Some(robots) => HostRules::Known(Arc::new(robots), *until),
                None => HostRules::Unknown,
            };
        }
    }

    /// Returns its host name or IP address, without scheme and port.
    pub(crate) fn name(&self) -> &str {
        let authority = self.authority();
        match authority.rfind(':') {
            Some(colon) if !authority.ends_with(']') => &authority[..colon],
            _ => authority,
        }
    }

    /// Returns its host name with the port, as in the header `Host`.
    pub(crate) fn authority(&self) -> &str {
        self.origin.split_once("://").map_or("", |(_, rest)| rest)
    }

    pub(crate) fn is_tls(&self) -> bool {
        self.origin.starts_with("https")
    }

    /// Whether it stands for local files.
    pub(crate) fn is_file(&self) -> bool {
        self.origin.starts_with("file:")
    }

    /// Files need neither DNS lookups nor robots.txt.
    pub(crate) fn be_here(&mut self) {
        self.address = Some(IpAddr::from([127, 0, 0, 1]));
        self.stage = Stage::Rest;
        self.allow_all();
    }

    /// Allows all URLs.
    pub(crate) fn allow_all(&mut self) {
        const LONG: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
        if !matches!(self.rules, HostRules::Known(..)) {
            self.rules = HostRules::Known(Arc::new(Robots::parse(b"", "")), LONG);
        }
    }

    pub(crate) fn port(&self) -> u16 {
        let authority = self.authority();
        let written = authority[self.name().len()..].strip_prefix(':');
        let default = if self.is_tls() { 443 } else { 80 };
        written
            .and_then(|port| port.parse().ok())
            .unwrap_or(default)
    }

    pub(crate) fn push(&mut self, entry: QueueEntry, is_last: bool) {
        match is_last {
            true => self.last.get_or_insert_default().push(entry),
            false => self.queue.push(entry),
        }
    }

    /// Queues a page to be visited again.
    pub(crate) fn push_again(&mut self, entry: QueueEntry) {
        self.again.get_or_insert_default().push(entry);
    }

    /// Adds a gift to the URL with a tag. Returns its position and its new weight, if it is queued
    /// and its weight has grown.
    pub(super) fn give(&mut self, tag: Tag, name: u64, gift: Gift) -> Option<(Place, Weight)> {
        let given = self.queue.give(tag, name, gift);
        given.or_else(|| self.last.as_mut()?.give(tag, name, gift))
    }

    /// Sets the mass of the URL with a tag. Returns its position and its new weight.
    pub(super) fn reweigh(&mut self, tag: Tag, mass: Level) -> Option<(Place, Weight)> {
        let changed = self.queue.reweigh(tag, mass);
        changed.or_else(|| self.last.as_mut()?.reweigh(tag, mass))
    }

    /// Raises the URL with a tag to at least this weight. Returns its position, its new weight, and
    /// its old trust.
    pub(super) fn lift(&mut self, tag: Tag, least: Weight) -> Option<(Place, Weight, Level)> {
        let trust = self.queue.trust(tag)?;
        let (place, weight) = self.queue.lift(tag, least)?;
        Some((place, weight, trust))
    }

    /// Sets the weight of a URL during the replay of the journal.
    pub(crate) fn set_weight(&mut self, place: Place, weight: Weight) {
        if !self.queue.set(place, weight)
            && let Some(last) = &mut self.last
        {
            last.set(place, weight);
        }
    }

    /// Removes and returns the URL whose turn it is: first the pages to be visited again, then new
    /// URLs. Failed URLs come after all others; otherwise a page that always fails would block
    /// them.
    pub(crate) fn pop(&mut self) -> Option<Turn> {
        if self.holds_queue {
            return self.retries.pop_front();
        }
        let entry = self.again.as_mut().and_then(|again| again.pop());
        let entry = entry.or_else(|| self.pop_new());
        entry.map(Turn::first).or_else(|| self.retries.pop_front())
    }

    fn pop_new(&mut self) -> Option<QueueEntry> {
        let entry = self.queue.pop();
        entry.or_else(|| self.last.as_mut()?.pop())
    }

    /// As [`Self::pop`], but while both wait, visits have this share of the turns. Pages that a
    /// user waits for come first in any case.
    pub(crate) fn pop_shared(&mut self, share: f32) -> Option<Turn> {
        let first = self.again.as_ref().and_then(|again| again.first());
        let is_shared = first.is_some_and(|first| !first.is_urgent());
        let has_new = self.queue.len() > 0 || self.last.as_ref().is_some_and(|last| last.len() > 0);
        if self.holds_queue || !is_shared || !has_new {
            return self.pop();
        }
        self.owed += share;
        if self.owed < 1.0 {
            return self.pop_new().map(Turn::first);
        }
        self.owed -= 1.0;
        self.pop()
    }

    /// Puts a URL back, to be tried after all others.
    pub(crate) fn put_back(&mut self, turn: Turn) {
        self.retries.push_back(turn);
    }

    /// Whether there is something to fetch from it now.
    pub(crate) fn has_work(&self) -> bool {
        let has_queue = self.n_queued() > 0 && !self.holds_queue;
        let has_pages = has_queue || !self.retries.is_empty();
        !self.jobs.is_empty() || has_pages && !matches!(self.rules, HostRules::Awaited)
    }

    fn n_queued(&self) -> usize {
        let n_of = |queue: &Option<Box<Queue>>| queue.as_ref().map_or(0, |queue| queue.len());
        self.queue.len() + n_of(&self.last) + n_of(&self.again)
    }

    /// Returns the weight of the URL whose turn it is.
    pub(super) fn first(&self) -> Option<Weight> {
        let first = if self.holds_queue {
            None
        } else {
            self.first_entry()
        };
        let weight = first.map(QueueEntry::weight);
        weight.or_else(|| self.retries.front().map(|turn| turn.weight))
    }

    fn first_entry(&self) -> Option<&QueueEntry> {
        let again = self.again.as_ref().and_then(|again| again.first());
        let first = again.or_else(|| self.queue.first());
        first.or_else(|| self.last.as_ref()?.first())
    }

    /// Returns the position of the URL whose turn it is, unless it is a failed one.
    pub(super) fn first_place(&self) -> Option<Place> {
        self.first_entry().map(QueueEntry::place)
    }

    /// Returns the earliest time at which it may be taken from the workbench.
    pub(super) fn bench_time(&self) -> Duration {
        match self.is_asleep {
            true => self.next.max(self.wakes),
            false => self.next,
        }
    }

    /// Whether all its queued URLs go last.
    pub(super) fn goes_last(&self) -> bool {
        let has_again = self.again.as_ref().is_some_and(|again| again.len() > 0);
        let has_first = (self.queue.len() > 0 || has_again) && !self.holds_queue;
        self.retries.is_empty() && self.jobs.is_empty() && !has_first
    }

    /// Returns the queued URLs, and whether each goes last; failed ones are left out.
    pub(super) fn waiting(&self) -> impl Iterator<Item = (Turn, bool)> {
        let last = self.last.iter().flat_map(|last| last.iter());
        let last = last.map(|entry| (Turn::first(*entry), true));
        let again = self.again.iter().flat_map(|again| again.iter());
        let first = again.chain(self.queue.iter());
        let first = first.map(|entry| (Turn::first(*entry), false));
        first.chain(last)
    }

    /// Whether URLs wait for the time at which they are tried again.
    pub(crate) fn sleeps(&self) -> bool {
        !self.aside.is_empty() || !self.lost.is_empty()
    }

    /// Puts all sleeping URLs back if it is time, and returns the first of them.
    pub(crate) fn pop_woken(&mut self, now: Duration) -> Option<Turn> {
        if now < self.wakes || self.holds_queue {
            return None;
        }
        let aside = std::mem::take(&mut self.aside);
        let turns = aside.into_iter().chain(std::mem::take(&mut self.lost));
        self.retries.extend(turns.map(Turn::afresh));
        self.retries.pop_front()
    }

    /// Forgets failed tries that were the crawler's own fault.
    pub(crate) fn forgive(&mut self) {
        self.pace.n_failures = 0;
        let tried = self.retries.iter_mut();
        let tried = tried.filter(|turn| turn.n_tries != RECALLED);
        tried.for_each(|turn| turn.n_tries = 0);
        self.is_lost = false;
        let lost = std::mem::take(&mut self.lost);
        self.retries.extend(lost.into_iter().map(Turn::afresh));
    }

    /// Records that a URL is lost for now, during the replay of the journal.
    pub(crate) fn lose(&mut self, place: Place) {
        let removed = self.remove(place);
        self.lost.extend(removed);
    }

    /// Returns the number of URLs that are lost for now.
    pub(crate) fn n_lost(&self) -> u64 {
        let others = self.retries.len() + self.aside.len();
        let n_all = if self.is_lost {
            self.n_queued() + others
        } else {
            0
        };
        (n_all + self.lost.len()) as u64
    }

    /// Holds back all URLs that are not lost.
    pub(super) fn hold_queue(&mut self) {
        self.holds_queue = !self.is_lost;
        if self.holds_queue {
            self.aside.extend(std::mem::take(&mut self.retries));
        }
    }

    /// Removes and returns all URLs.
    pub(crate) fn drain(&mut self) -> Vec<Place> {
        self.holds_queue = false;
        let mut places: Vec<Place> = std::iter::from_fn(|| self.pop())
            .map(|turn| turn.place)
            .collect();
        let others = self.aside.drain(..).chain(self.lost.drain(..));
        places.extend(others.map(|turn| turn.place));
        places
    }

    /// Removes a URL during the replay of the journal.
    pub(crate) fn remove(&mut self, place: Place) -> Option<Turn> {
        if let Some((_, weight)) = self.deferred.remove(&place) {
            let n_tries = 0;
            return Some(Turn {
                place,
                weight,
                n_tries,
            });
        }
        let queued = self.queue.remove(place);
        let queued = queued.or_else(|| self.last.as_mut()?.remove(place));
        let queued = queued.or_else(|| self.again.as_mut()?.remove(place));
        if let Some(entry) = queued {
            return Some(Turn::first(entry));
        }
        let is_it = |turn: &Turn| turn.place == place;
        if let Some(at) = self.retries.iter().position(is_it) {
            return self.retries.remove(at);
        }
        let at = self.lost.iter().position(is_it)?;
        Some(self.lost.remove(at))
    }

    /// Defers a URL during the replay of the journal; returns whether it was queued.
    pub(crate) fn defer(&mut self, place: Place, tag: Tag) -> bool {
        let turn = self.remove(place);
        let weight = turn.map(|turn| turn.weight);
        weight.is_some_and(|weight| self.deferred.insert(place, (tag, weight)).is_none())
    }

    /// Queues deferred URLs again, after all others; returns their positions.
    pub(crate) fn recall(&mut self) -> Vec<Place> {
        let deferred = std::mem::take(&mut self.deferred);
        let places = deferred.keys().copied().collect();
        let turns = deferred.into_iter().map(|(place, (_, weight))| Turn {
            place,
            weight,
            n_tries: RECALLED,
        });
        self.retries.extend(turns);
        places
    }

    /// Removes the queued URLs at these positions, which must ascend. Returns those that were
    /// there.
    pub(crate) fn remove_all(&mut self, places: &[Place]) -> Vec<Place> {
        let mut removed = Vec::new();
        let mut stays = |place: Place| {
            let is_removed = places.binary_search(&place).is_ok();
            removed.extend(is_removed.then_some(place));
            !is_removed
        };
        self.queue.retain(&mut stays);
        for others in [&mut self.last, &mut self.again].into_iter().flatten() {
            others.retain(&mut stays);
        }
        self.retries.retain(|turn| stays(turn.place));
        self.aside.retain(|turn| stays(turn.place));
        self.lost.retain(|turn| stays(turn.place));
        removed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::url::Normalizer;

    #[track_caller]
    fn check(text: &str, name: &str, port: u16) {
        let url = Normalizer::default().normalize(text, None).unwrap();
        let host = Host::named(url.origin(), 0);
        assert_eq!((host.name(), host.port()), (name, port), "{text}");
    }

    #[test]
    fn names_and_ports() {
        check("http://h.org/x", "h.org", 80);
        check("https://h.org/", "h.org", 443);
        check("http://h.org:8080/", "h.org", 8080);
        check("http://127.0.0.1:81/", "127.0.0.1", 81);
        check("http://[::1]/", "[::1]", 80);
        check("https://[::1]:444/", "[::1]", 444);
    }

    fn turn(place: Place, n_tries: u8) -> Turn {
        Turn {
            place,
            n_tries,
            weight: Weight::default(),
        }
    }

    fn entry(place: Place, mass: f32) -> QueueEntry {
        let weight = Weight {
            mass: Level::of(mass),
            trust: Level::NONE,
        };
        QueueEntry::new(Tag::of(place), place, weight, 0)
    }

    /// A page that fails again and again does not delay the others.
    #[test]
    fn retries_come_last() {
        let url = Normalizer::default().normalize("http://h/", None).unwrap();
        let mut host = Host::named(url.origin(), 0);
        host.put_back(turn(5, 2));
        assert_eq!(
            (host.has_work(), host.first()),
            (true, Some(Weight::default()))
        );
        for place in [10, 20, 30] {
            host.push(entry(place, 1.0), false);
        }
        assert_eq!(host.remove_all(&[5, 20, 40]), [20, 5]);
        host.put_back(turn(7, 1));
        let order: Vec<(Place, u8)> = std::iter::from_fn(|| host.pop())
            .map(|turn| (turn.place, turn.n_tries))
            .collect();
        assert_eq!(order, [(10, 0), (30, 0), (7, 1)]);
    }

    /// While new URLs wait, visits have their share of the turns; pages that a user waits for come
    /// first.
    #[test]
    fn issue_25_visits_have_their_share() {
        let order = |share: f32| -> Vec<Place> {
            let mut host = Host::named("http://h", 0);
            for place in 1..=4 {
                host.push(entry(place, 1.0), place == 4);
                let weight = entry(place, 1.0).weight();
                let class = if place == 3 { 7 } else { 6 };
                let again = QueueEntry::new(Tag::of(!place), 10 + place, weight, class);
                host.push_again(again);
            }
            assert_eq!(host.n_queued(), 8);
            let turns = std::iter::from_fn(|| host.pop_shared(share));
            turns.map(|turn| turn.place).collect()
        };
        assert_eq!(order(1.0), [13, 11, 12, 14, 1, 2, 3, 4]);
        assert_eq!(order(0.5), [13, 1, 11, 2, 12, 3, 14, 4]);
        assert_eq!(order(0.25), [13, 1, 2, 3, 11, 4, 12, 14]);
        assert_eq!(order(0.0), [13, 1, 2, 3, 4, 11, 12, 14]);
    }

    #[test]
    fn removal_finds_every_priority() {
        let url = Normalizer::default().normalize("http://h/", None).unwrap();
        let mut host = Host::named(url.origin(), 0);
        for (mass, place) in [(1.0, 10), (3.0, 20), (2.0, 30)] {
            host.push(entry(place, mass), place == 30);
        }
        host.push_again(entry(40, 2.0));
        let mut is_removed = |place| host.remove(place).is_some();
        assert!(is_removed(40) && !is_removed(40));
        assert!(is_removed(30) && is_removed(20) && !is_removed(20));
        assert_eq!(host.drain(), [10]);
    }
}
