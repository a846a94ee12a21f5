//! One host: its queue, its rules, its pace.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::{EntryId, Folders, Lane, SiteId};
use crate::contain::contain;
use crate::journal::{HostId, Place};
use crate::pace::Pace;
use crate::robots::Robots;

/// Added to the priority of URLs that go last at their host, and in capacity that others leave.
pub(crate) const LAST: u64 = 1 << 32;

/// Scheme, name and port, and what is known and wanted of them.
#[derive(Debug)]
pub(crate) struct Host {
    /// `scheme://host[:port]`.
    pub(crate) origin: Box<str>,
    pub(crate) site: SiteId,
    pub(crate) stage: Stage,
    /// Where it waits in the workbench.
    pub(super) lane: Lane,
    /// The entry of the workbench that stands for it.
    pub(super) entry: EntryId,
    /// Where it was last found.
    pub(crate) address: Option<IpAddr>,
    /// From when on it may be asked.
    pub(crate) next: Duration,
    pub(crate) pace: Pace,
    pub(crate) rules: Rules,
    /// Since when its robots.txt is not available, in seconds since 1970; 0 if it is.
    pub(crate) unreachable_since: u64,
    /// What is fetched before pages: robots.txt, for itself or for another host that leads here.
    pub(crate) jobs: VecDeque<RobotsJob>,
    /// By priority, the smallest first.
    pub(super) queues: Vec<(u64, VecDeque<Place>)>,
    /// URLs that failed, to be tried again, with how often they were tried.
    pub(super) retries: VecDeque<Turn>,
    /// URLs of stale directories.
    pub(crate) aside: Vec<Place>,
    /// URLs that are lost for now: no try got a response.
    pub(crate) lost: Vec<Place>,
    /// Whether the host itself is lost for now, and all that waits there.
    pub(crate) is_lost: bool,
    /// When URLs of stale directories and lost ones are asked for again.
    pub(crate) wakes: Duration,
    /// Whether it is in the workbench for those alone.
    pub(super) is_asleep: bool,
    /// Whether only URLs that were lost are wanted of it.
    pub(crate) holds_queue: bool,
    /// Whether it has sent a response in this run.
    pub(crate) has_answered: bool,
    /// When the request under way was sent.
    pub(crate) asked_at: Duration,
    /// Whether the last request took long.
    pub(crate) is_slow: bool,
    /// Whether the request under way counts among the slow ones.
    pub(crate) counts_as_slow: bool,
    pub(crate) folders: Option<Box<Folders>>,
}

/// Where a host is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Nowhere: nothing to fetch, or between two stages.
    Rest,
    /// Waits for its address.
    Names,
    /// Waits for its time in the workbench.
    Bench,
    /// Is being asked.
    Busy,
    /// Waits for budget.
    Parked,
}

/// What a host allows.
#[derive(Debug, Clone)]
pub(crate) enum Rules {
    /// Not asked yet.
    Unknown,
    /// Another host is being asked, to which a redirect leads.
    Awaited,
    /// So much, until that time.
    Known(Arc<Robots>, Duration),
    /// As much as this file for everybody says, until that time.
    Kept(Box<str>, Duration),
}

/// A robots.txt to be fetched.
#[derive(Debug, Clone)]
pub(crate) struct RobotsJob {
    /// Whose it is.
    pub(crate) host: HostId,
    /// Where it is at this host: path and query.
    pub(crate) rest: Box<str>,
    pub(crate) n_redirects: u32,
    /// How often it was tried before.
    pub(crate) n_tries: u8,
}

/// A URL whose turn it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) place: Place,
    /// How often it was tried before.
    pub(crate) n_tries: u8,
}

impl Host {
    /// A host by its `scheme://host[:port]`.
    pub(crate) fn named(origin: &str, site: SiteId) -> Self {
        Self {
            origin: origin.into(),
            site,
            stage: Stage::Rest,
            lane: Lane::First,
            entry: 0,
            address: None,
            next: Duration::ZERO,
            pace: Pace::default(),
            rules: Rules::Unknown,
            unreachable_since: 0,
            jobs: VecDeque::new(),
            queues: Vec::new(),
            retries: VecDeque::new(),
            aside: Vec::new(),
            lost: Vec::new(),
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

    /// Reads its rules if they are kept as text.
    pub(crate) fn read_rules(&mut self) {
        if let Rules::Kept(text, until) = &self.rules {
            let robots = contain(|| Robots::parse(text.as_bytes(), ""));
            self.rules = match robots {
                Some(robots) => Rules::Known(Arc::new(robots), *until),
                None => Rules::Unknown,
            };
        }
    }

    /// Its name or address, without scheme and port.
    pub(crate) fn name(&self) -> &str {
        let authority = self.authority();
        match authority.rfind(':') {
            Some(colon) if !authority.ends_with(']') => &authority[..colon],
            _ => authority,
        }
    }

    /// Its name with the port, as the header `Host` has it.
    pub(crate) fn authority(&self) -> &str {
        self.origin.split_once("://").map_or("", |(_, rest)| rest)
    }

    pub(crate) fn is_tls(&self) -> bool {
        self.origin.starts_with("https")
    }

    pub(crate) fn port(&self) -> u16 {
        let authority = self.authority();
        let written = authority[self.name().len()..].strip_prefix(':');
        let default = if self.is_tls() { 443 } else { 80 };
        written
            .and_then(|port| port.parse().ok())
            .unwrap_or(default)
    }

    pub(crate) fn push(&mut self, priority: u64, place: Place) {
        let at = self.queues.partition_point(|(other, _)| *other < priority);
        if self
            .queues
            .get(at)
            .is_none_or(|(other, _)| *other != priority)
        {
            self.queues.insert(at, (priority, VecDeque::new()));
        }
        self.queues[at].1.push_back(place);
    }

    /// The URL whose turn it is: those that failed come after all others, or a page that always
    /// fails would hold them up.
    pub(crate) fn pop(&mut self) -> Option<Turn> {
        let queue = self.queues.first_mut().filter(|_| !self.holds_queue);
        let Some((_, queue)) = queue else {
            return self.retries.pop_front();
        };
        let place = queue.pop_front();
        if queue.is_empty() {
            self.queues.remove(0);
        }
        place.map(|place| Turn { place, n_tries: 0 })
    }

    /// Puts a URL back, to be tried again after all others.
    pub(crate) fn put_back(&mut self, turn: Turn) {
        self.retries.push_back(turn);
    }

    /// Whether there is something to ask it now.
    pub(crate) fn has_work(&self) -> bool {
        let has_queue = !self.queues.is_empty() && !self.holds_queue;
        let has_pages = has_queue || !self.retries.is_empty();
        !self.jobs.is_empty() || has_pages && !matches!(self.rules, Rules::Awaited)
    }

    /// The smallest priority that waits; URLs to be tried again have the largest.
    pub(crate) fn priority(&self) -> u64 {
        let least = if self.jobs.is_empty() { u64::MAX } else { 0 };
        let queue = self.queues.first().filter(|_| !self.holds_queue);
        queue.map_or(least, |(priority, _)| *priority)
    }

    /// Whether all that waits is to go last.
    pub(super) fn goes_last(&self) -> bool {
        self.retries.is_empty() && self.priority() >= LAST
    }

    /// Whether URLs wait for the time at which they are asked for again.
    pub(crate) fn sleeps(&self) -> bool {
        !self.aside.is_empty() || !self.lost.is_empty()
    }

    /// The first of the URLs that slept, all of which are put back, if it is time.
    pub(crate) fn pop_woken(&mut self, now: Duration) -> Option<Turn> {
        if now < self.wakes || self.holds_queue {
            return None;
        }
        let aside = std::mem::take(&mut self.aside);
        let places = aside.into_iter().chain(std::mem::take(&mut self.lost));
        self.retries
            .extend(places.map(|place| Turn { place, n_tries: 0 }));
        self.retries.pop_front()
    }

    /// Forgets that tries failed, where that was nobody's fault but ours.
    pub(crate) fn forgive(&mut self) {
        self.pace.n_failures = 0;
        self.retries.iter_mut().for_each(|turn| turn.n_tries = 0);
        self.is_lost = false;
        let lost = std::mem::take(&mut self.lost);
        self.retries
            .extend(lost.into_iter().map(|place| Turn { place, n_tries: 0 }));
    }

    /// Takes down that a URL is lost for now, while the journal is read again.
    pub(crate) fn lose(&mut self, place: Place) {
        if self.remove(place) {
            self.lost.push(place);
        }
    }

    /// URLs that are lost for now.
    pub(crate) fn n_lost(&self) -> u64 {
        let n_queued: usize = self.queues.iter().map(|(_, queue)| queue.len()).sum();
        let others = self.retries.len() + self.aside.len();
        let n_all = if self.is_lost { n_queued + others } else { 0 };
        (n_all + self.lost.len()) as u64
    }

    /// Holds back all that is not lost.
    pub(super) fn hold_queue(&mut self) {
        self.holds_queue = !self.is_lost;
        if self.holds_queue {
            let retries = std::mem::take(&mut self.retries);
            self.aside.extend(retries.iter().map(|turn| turn.place));
        }
    }

    /// Takes all that waits.
    pub(crate) fn drain(&mut self) -> Vec<Place> {
        self.holds_queue = false;
        let mut places: Vec<Place> = std::iter::from_fn(|| self.pop())
            .map(|turn| turn.place)
            .collect();
        places.append(&mut self.aside);
        places.append(&mut self.lost);
        places
    }

    /// URLs outside the queues: to be tried again, put aside or lost for now.
    fn n_others(&self) -> usize {
        self.retries.len() + self.aside.len() + self.lost.len()
    }

    /// Removes a URL while the journal is read again. Places of one priority ascend.
    pub(crate) fn remove(&mut self, place: Place) -> bool {
        for at in 0..self.queues.len() {
            let queue = &mut self.queues[at].1;
            let Ok(found) = queue.binary_search(&place) else {
                continue;
            };
            queue.remove(found);
            if queue.is_empty() {
                self.queues.remove(at);
            }
            return true;
        }
        let n_before = self.n_others();
        self.retries.retain(|turn| turn.place != place);
        self.lost.retain(|&other| other != place);
        self.n_others() < n_before
    }

    /// Takes those of these places off the queues that are there. They must ascend.
    pub(crate) fn remove_all(&mut self, places: &[Place]) -> Vec<Place> {
        let mut removed = Vec::new();
        let mut stays = |place: Place| {
            let is_removed = places.binary_search(&place).is_ok();
            removed.extend(is_removed.then_some(place));
            !is_removed
        };
        for (_, queue) in &mut self.queues {
            queue.retain(|&place| stays(place));
        }
        self.queues.retain(|(_, queue)| !queue.is_empty());
        self.retries.retain(|turn| stays(turn.place));
        self.aside.retain(|&place| stays(place));
        self.lost.retain(|&place| stays(place));
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

    /// A page that fails again and again does not hold up the others.
    #[test]
    fn retries_come_last() {
        let url = Normalizer::default().normalize("http://h/", None).unwrap();
        let mut host = Host::named(url.origin(), 0);
        host.put_back(Turn {
            place: 5,
            n_tries: 2,
        });
        assert_eq!((host.has_work(), host.priority()), (true, u64::MAX));
        for place in [10, 20, 30] {
            host.push(1, place);
        }
        assert_eq!(host.remove_all(&[5, 20, 40]), [20, 5]);
        host.put_back(Turn {
            place: 7,
            n_tries: 1,
        });
        let order: Vec<(Place, u8)> = std::iter::from_fn(|| host.pop())
            .map(|turn| (turn.place, turn.n_tries))
            .collect();
        assert_eq!(order, [(10, 0), (30, 0), (7, 1)]);
    }

    #[test]
    fn removal_finds_every_priority() {
        let url = Normalizer::default().normalize("http://h/", None).unwrap();
        let mut host = Host::named(url.origin(), 0);
        for (priority, place) in [(1, 10), (0, 20), (1, 30)] {
            host.push(priority, place);
        }
        assert!(host.remove(30) && host.remove(20) && !host.remove(20));
        assert_eq!(host.drain(), [10]);
    }
}
