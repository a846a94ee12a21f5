//! Checks whether a crawler was polite.
//!
//! Every result comes from the server's [log](Log), so it does not depend on what the crawler
//! reports. No result can be wrong to the disadvantage of the crawler (see there for the reason).

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::time::Duration;

use crate::log::{Log, Record};
use crate::robots::Verdict;
use crate::web::Web;

/// How requests are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// By the host they name.
    Host,
    /// By the IP address they were sent to.
    Address,
}

/// Two requests with too short a gap, as indices of [`Log::records`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// The earlier one.
    pub first: usize,
    /// The one that came too early.
    pub second: usize,
    /// From the end of the first to the start of the second; zero if they overlap.
    pub gap: Duration,
    /// The required gap.
    pub required: Duration,
}

impl Log {
    /// Pairs of requests that overlapped: each with the earlier one that ended last.
    #[must_use]
    pub fn overlaps(&self, by: By) -> Vec<(usize, usize)> {
        let pairs = self.neighbours(by).into_iter();
        pairs
            .filter(|&(first, second)| self.records[second].start < self.records[first].end)
            .collect()
    }

    /// Gaps shorter than `least`, including overlaps.
    #[must_use]
    pub fn gaps_shorter_than(&self, by: By, least: Duration) -> Vec<Gap> {
        self.gaps(by, |_| least)
    }

    /// Gaps between requests to a host that are shorter than `least` or than its robots file
    /// requires. Before the end of the first fetch of that file, only `least` applies.
    #[must_use]
    pub fn gaps_shorter_than_asked(&self, web: &Web, least: Duration) -> Vec<Gap> {
        let known = self.robots_known();
        self.gaps(By::Host, |(_, second)| {
            let record = &self.records[second];
            let is_known = known
                .get(&*record.host)
                .is_some_and(|&end| end <= record.start);
            match web.find_host(&record.host) {
                Some(host) if is_known => least.max(web.robots(host).delay()),
                _ => least,
            }
        })
    }

    /// Requests to a host that came before the `Retry-After` of the previous one had passed.
    #[must_use]
    pub fn early_retries(&self) -> Vec<Gap> {
        self.gaps(By::Host, |(first, _)| {
            Duration::from_secs(u64::from(self.records[first].retry_after))
        })
    }

    /// Requests that the robots file of the host forbids, including visiting hours.
    #[must_use]
    pub fn disallowed(&self, web: &Web) -> Vec<usize> {
        self.select(|record| {
            let minute = (self.started + record.start).as_secs() / 60 % 1440;
            let host = web.find_host(&record.host);
            host.is_some_and(|host| {
                let robots = web.robots(host);
                let is_file = record.target.starts_with("/robots");
                !is_file && robots.verdict(&record.target, Some(minute as u16)) != Verdict::Allowed
            })
        })
    }

    /// Requests to a host before its robots file had been fetched.
    #[must_use]
    pub fn before_robots(&self) -> Vec<usize> {
        let known = self.robots_known();
        self.select(|record| {
            let end = known.get(&*record.host);
            record.start < end.copied().unwrap_or(Duration::MAX) && !is_robots(record)
        })
    }

    /// Requests for URLs that had been served with status 200 before, except robots files.
    #[must_use]
    pub fn repeats(&self) -> Vec<usize> {
        let mut done = BTreeSet::new();
        let order = self.by_start();
        let is_repeat = |&idx: &usize| {
            let record = &self.records[idx];
            let is_new = record.status != 200 || done.insert((&record.host, &record.target));
            !is_new && !is_robots(record)
        };
        order.into_iter().filter(is_repeat).collect()
    }

    fn gaps(&self, by: By, required: impl Fn((usize, usize)) -> Duration) -> Vec<Gap> {
        let gap = |(first, second): (usize, usize)| Gap {
            first,
            second,
            gap: self.records[second]
                .start
                .saturating_sub(self.records[first].end),
            required: required((first, second)),
        };
        let gaps = self.neighbours(by).into_iter().map(gap);
        gaps.filter(|gap| gap.gap < gap.required).collect()
    }

    /// Each request with the one that ended last among those that started before it at the same
    /// host or IP address.
    fn neighbours(&self, by: By) -> Vec<(usize, usize)> {
        let mut last: BTreeMap<Key<'_>, usize> = BTreeMap::new();
        let mut pairs = Vec::new();
        for second in self.by_start() {
            let record = &self.records[second];
            let key = match by {
                By::Host => Key::Host(&record.host),
                By::Address => Key::Address(record.address),
            };
            let Some(first) = last.get_mut(&key) else {
                last.insert(key, second);
                continue;
            };
            pairs.push((*first, second));
            if record.end >= self.records[*first].end {
                *first = second;
            }
        }
        pairs
    }

    fn by_start(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.records.len()).collect();
        order.sort_by_key(|&idx| self.records[idx].start);
        order
    }

    /// When the robots file of each host was first fetched.
    fn robots_known(&self) -> BTreeMap<&str, Duration> {
        let mut known = BTreeMap::new();
        for record in self.records.iter().filter(|record| is_robots(record)) {
            let end = known.entry(&*record.host).or_insert(record.end);
            *end = record.end.min(*end);
        }
        known
    }

    fn select(&self, is_meant: impl Fn(&Record) -> bool) -> Vec<usize> {
        let records = self.records.iter().enumerate();
        let meant = records.filter(|(_, record)| is_meant(record));
        meant.map(|(idx, _)| idx).collect()
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Key<'a> {
    Host(&'a str),
    Address(Ipv4Addr),
}

fn is_robots(record: &Record) -> bool {
    &*record.target == "/robots.txt"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Kind};
    use crate::robots::Robots;

    /// Requests as (start in ms, end in ms, last octet, host, target).
    fn log(requests: &[(u64, u64, u8, &str, &str)]) -> Log {
        let record = |&(start, end, octet, host, target): &(u64, u64, u8, &str, &str)| Record {
            start: Duration::from_millis(start),
            end: Duration::from_millis(end),
            address: Ipv4Addr::new(127, 1, 0, octet),
            host: host.into(),
            target: target.into(),
            status: 200,
            retry_after: 0,
            n_bytes: 1,
        };
        Log {
            records: requests.iter().map(record).collect(),
            ..Log::default()
        }
    }

    #[test]
    fn overlaps_by_host_and_by_address() {
        let log = log(&[
            (0, 100, 1, "a", "/1"),
            (50, 60, 1, "b", "/1"),
            (99, 120, 2, "a", "/2"),
            (120, 130, 2, "a", "/3"),
        ]);
        assert_eq!(log.overlaps(By::Host), [(0, 2)]);
        assert_eq!(log.overlaps(By::Address), [(0, 1)]);
    }

    /// A long request overlaps with all that follow, not only with the next one.
    #[test]
    fn a_long_request_is_not_forgotten() {
        let log = log(&[
            (0, 100, 1, "a", "/1"),
            (10, 20, 1, "a", "/2"),
            (30, 40, 1, "a", "/3"),
        ]);
        assert_eq!(log.overlaps(By::Host), [(0, 1), (0, 2)]);
    }

    #[test]
    fn polite_logs_pass() {
        let log = log(&[
            (0, 1, 1, "a", "/"),
            (1001, 1002, 1, "a", "/2"),
            (5, 6, 2, "b", "/"),
        ]);
        let second = Duration::from_secs(1);
        assert!(log.overlaps(By::Host).is_empty() && log.overlaps(By::Address).is_empty());
        assert!(log.gaps_shorter_than(By::Host, second).is_empty());
    }

    /// The records of a file are in the order of their ends.
    #[test]
    fn short_gaps_whatever_the_order() {
        let log = log(&[(1000, 1001, 1, "a", "/2"), (0, 1, 1, "a", "/1")]);
        let gaps = log.gaps_shorter_than(By::Host, Duration::from_secs(1));
        let expected = Gap {
            first: 1,
            second: 0,
            gap: Duration::from_millis(999),
            required: Duration::from_secs(1),
        };
        assert_eq!(gaps, [expected]);
    }

    fn web(robots: Robots) -> Web {
        Web::new(Config {
            n_hosts: 2,
            kinds: vec![(Kind::Plain, 1)],
            robots: vec![(robots, 1)],
            ..Config::default()
        })
        .unwrap()
    }

    #[test]
    fn delays_asked_for_in_robots_files() {
        let web = web(Robots::CrawlDelay);
        let log = log(&[
            (0, 1, 1, "plain1.test", "/robots.txt"),
            (1500, 1501, 1, "plain1.test", "/"),
            (3501, 3502, 1, "plain1.test", "/x"),
            (5501, 5502, 1, "plain1.test", "/y"),
        ]);
        let gaps = log.gaps_shorter_than_asked(&web, Duration::from_secs(1));
        let found: Vec<(usize, usize)> = gaps.iter().map(|gap| (gap.first, gap.second)).collect();
        assert_eq!(found, [(0, 1), (2, 3)]);
    }

    #[test]
    fn disallowed_fetches() {
        let web = web(Robots::NotPrivate);
        let log = log(&[
            (0, 1, 1, "plain1.test", "/robots.txt"),
            (2, 3, 1, "plain1.test", "/private/p9.html"),
            (4, 5, 1, "plain1.test", "/"),
        ]);
        assert_eq!(log.disallowed(&web), [1]);
        assert!(log.before_robots().is_empty());
    }

    #[test]
    fn visiting_hours_by_the_clock() {
        let web = web(Robots::VisitTime);
        let mut log = log(&[(0, 1, 1, "plain1.test", "/")]);
        assert_eq!(log.disallowed(&web), [0]);
        log.started = Duration::from_secs(86_400 * 9 + 12 * 3600);
        assert!(log.disallowed(&web).is_empty());
    }

    #[test]
    fn pages_before_robots_files_and_twice() {
        let log = log(&[
            (0, 1, 1, "a", "/"),
            (2, 3, 1, "a", "/robots.txt"),
            (4, 5, 1, "a", "/"),
            (6, 7, 1, "b", "/"),
        ]);
        assert_eq!(log.before_robots(), [0, 3]);
        assert_eq!(log.repeats(), [2]);
    }

    #[test]
    fn retries_that_come_too_soon() {
        let mut log = log(&[(0, 1, 1, "a", "/"), (1900, 1901, 1, "a", "/")]);
        assert!(log.early_retries().is_empty());
        log.records[0].retry_after = 2;
        assert_eq!(log.early_retries().len(), 1);
    }
}
