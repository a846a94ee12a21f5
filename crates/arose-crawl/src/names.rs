//! DNS lookups: a cache of IP addresses, and a queue of lookups.
//!
//! *Question.* Every request needs an IP address, a lookup takes from a millisecond to seconds, and
//! a crawl meets the same host names again and again. *Idea.* Start the lookup as soon as a host
//! has something to fetch, long before its turn. Keep results for longer than they allow
//! ([`MIN_TTL`], on purpose: hosts rarely move) but not indefinitely ([`MAX_TTL`]). Use an old
//! result while a new lookup is open. Remember failed lookups for [`NEGATIVE_TTL`]. Never look up a
//! host name twice at once.
//!
//! *Cost.* About 100 bytes per host name. This is a table without clock or network: the crawl calls
//! [`Names::want`] and reports results to [`Names::resolved`].

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use crate::journal::HostId;
use crate::resolve::{Addresses, NoAddress};

/// Minimum time for which a result is used.
pub(crate) const MIN_TTL: Duration = Duration::from_secs(3600);
/// Maximum time for which a result is used.
pub(crate) const MAX_TTL: Duration = Duration::from_secs(24 * 3600);
/// How long a failed lookup is remembered.
pub(crate) const NEGATIVE_TTL: Duration = Duration::from_secs(600);

/// Number of consecutive host names whose lookup must fail before the failures are blamed on the
/// DNS servers.
const MANY_FAILURES: usize = 5;

/// Maximum number of concurrent lookups.
const MAX_LOOKUPS: usize = 64;

/// Maximum number of open or waiting lookups; others start when their hosts are next examined.
const MAX_OPEN: usize = 16 * MAX_LOOKUPS;

/// Results, and open lookups. Times are relative to the start of the crawl.
#[derive(Debug, Default)]
pub(crate) struct Names {
    known: HashMap<Box<str>, Remembered>,
    /// Lookups that wait for their turn.
    queue: VecDeque<Box<str>>,
    n_asked: usize,
    /// Host names whose lookup failed since the last result for any; no more than matter.
    failed: BTreeSet<Box<str>>,
}

#[derive(Debug)]
struct Remembered {
    resolved: Option<Result<Resolved, NoAddress>>,
    expires: Duration,
    is_asked: bool,
    waiting: Vec<HostId>,
}

/// The IP addresses of a host name, of which one is in use.
#[derive(Debug)]
struct Resolved {
    addresses: Vec<IpAddr>,
    used: usize,
}

/// The state of a host name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostAddress {
    /// Its IP address.
    At(IpAddr),
    /// It has none, and is not looked up again before that time.
    Nowhere(NoAddress, Duration),
    /// The lookup is open, and the host will be notified.
    Soon,
}

/// Maximum number of host names that are remembered, without those being looked up.
const MAX_NAMES: usize = 200_000;

impl Names {
    /// Whether the host name is in the table, or is an IP address.
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.known.contains_key(name) || name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok()
    }

    /// Forgets every second host name when there are too many.
    fn forget(&mut self) {
        let mut n = 0_usize;
        self.known.retain(|_, entry| {
            n += 1;
            entry.is_asked || !entry.waiting.is_empty() || n.is_multiple_of(2)
        });
    }

    /// Returns the IP address of `host` with the host name `name`. Starts a lookup if that is
    /// unknown or too old.
    pub(crate) fn want(&mut self, name: &str, host: HostId, now: Duration) -> HostAddress {
        if let Ok(address) = name.trim_matches(['[', ']']).parse() {
            return HostAddress::At(address);
        }
        if self.known.len() >= MAX_NAMES && !self.known.contains_key(name) {
            self.forget();
        }
        let entry = self.known.entry(name.into()).or_insert(Remembered {
            resolved: None,
            expires: Duration::ZERO,
            is_asked: false,
            waiting: Vec::new(),
        });
        let is_old = entry.resolved.is_none() || entry.expires <= now;
        if is_old && !entry.is_asked {
            entry.is_asked = true;
            self.queue.push_back(name.into());
        }
        match &entry.resolved {
            Some(Ok(resolved)) => HostAddress::At(resolved.addresses[resolved.used]),
            Some(Err(reason)) if !is_old => HostAddress::Nowhere(*reason, entry.expires),
            _ => {
                entry.waiting.push(host);
                HostAddress::Soon
            }
        }
    }

    /// Returns a host name that is to be looked up now.
    pub(crate) fn next_question(&mut self) -> Option<Box<str>> {
        if self.n_asked >= MAX_LOOKUPS {
            return None;
        }
        let name = self.queue.pop_front()?;
        self.n_asked += 1;
        Some(name)
    }

    /// Returns the number of open and waiting lookups.
    pub(crate) fn n_open(&self) -> usize {
        self.n_asked + self.queue.len()
    }

    /// Whether another lookup may start.
    pub(crate) fn has_room(&self) -> bool {
        self.n_open() < MAX_OPEN
    }

    /// Records a result; returns the hosts that wait for it. After a failure, an old result stays
    /// in use.
    pub(crate) fn resolved(
        &mut self,
        name: &str,
        found: Result<Addresses, NoAddress>,
        now: Duration,
    ) -> Vec<HostId> {
        self.n_asked = self.n_asked.saturating_sub(1);
        match found {
            Err(NoAddress::Failed) if self.failed.len() < MANY_FAILURES => {
                self.failed.insert(name.into());
            }
            Err(NoAddress::Failed) => {}
            _ => self.failed.clear(),
        }
        let Some(entry) = self.known.get_mut(name) else {
            return Vec::new();
        };
        entry.is_asked = false;
        match found {
            Ok(found) if !found.addresses.is_empty() => {
                entry.expires = now + found.ttl.clamp(MIN_TTL, MAX_TTL);
                let addresses = found.addresses;
                entry.resolved = Some(Ok(Resolved { addresses, used: 0 }));
            }
            failed => {
                entry.expires = now + NEGATIVE_TTL;
                if !matches!(entry.resolved, Some(Ok(_))) {
                    entry.resolved = Some(Err(failed.err().unwrap_or(NoAddress::Unknown)));
                }
            }
        }
        std::mem::take(&mut entry.waiting)
    }

    /// Whether lookups fail for one host name after another, which is a problem of the DNS servers.
    pub(crate) fn are_failing(&self) -> bool {
        self.failed.len() >= MANY_FAILURES
    }

    /// Records that the IP address did not respond: the next one of the host name is tried, if
    /// there is another.
    pub(crate) fn turn(&mut self, name: &str) -> Option<IpAddr> {
        let Some(Ok(resolved)) = &mut self.known.get_mut(name)?.resolved else {
            return None;
        };
        resolved.used = (resolved.used + 1) % resolved.addresses.len();
        Some(resolved.addresses[resolved.used])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    fn at(n: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, n])
    }

    fn found(n: &[u8], ttl: u64) -> Result<Addresses, NoAddress> {
        Ok(Addresses {
            addresses: n.iter().map(|&n| at(n)).collect(),
            ttl: seconds(ttl),
        })
    }

    #[test]
    fn one_lookup_in_flight_per_name() {
        let mut names = Names::default();
        assert_eq!(names.want("h", 1, seconds(0)), HostAddress::Soon);
        assert_eq!(names.want("h", 2, seconds(0)), HostAddress::Soon);
        assert_eq!(names.next_question().as_deref(), Some("h"));
        assert_eq!(names.next_question(), None);
        assert_eq!(names.want("h", 3, seconds(0)), HostAddress::Soon);
        assert_eq!(names.next_question(), None);
        assert_eq!(names.resolved("h", found(&[1], 5), seconds(1)), [1, 2, 3]);
        assert_eq!(names.want("h", 1, seconds(2)), HostAddress::At(at(1)));
        assert_eq!(names.n_open(), 0);
    }

    /// A result is kept for an hour although its TTL was five seconds. It is used during the next
    /// lookup, and after it fails.
    #[test]
    fn old_answers_are_used_while_new_ones_come() {
        let mut names = Names::default();
        names.want("h", 1, seconds(0));
        names.next_question();
        names.resolved("h", found(&[1], 5), seconds(0));
        names.want("h", 1, seconds(3599));
        assert_eq!(names.next_question(), None);
        assert_eq!(names.want("h", 1, seconds(3600)), HostAddress::At(at(1)));
        assert_eq!(names.next_question().as_deref(), Some("h"));
        assert_eq!(names.want("h", 1, seconds(3601)), HostAddress::At(at(1)));
        assert_eq!(names.next_question(), None);
        names.resolved("h", Err(NoAddress::Failed), seconds(3602));
        assert_eq!(names.want("h", 1, seconds(3603)), HostAddress::At(at(1)));
        assert_eq!(names.next_question(), None);
        names.want("h", 1, seconds(4202));
        assert_eq!(names.next_question().as_deref(), Some("h"));
        names.resolved("h", found(&[2], 1 << 40), seconds(4203));
        assert_eq!(
            names.want("h", 1, seconds(4203 + 24 * 3600 - 1)),
            HostAddress::At(at(2))
        );
        assert_eq!(names.next_question(), None);
    }

    #[test]
    fn no_answer_is_remembered_for_ten_minutes() {
        let mut names = Names::default();
        names.want("h", 1, seconds(0));
        names.next_question();
        assert_eq!(
            names.resolved("h", Err(NoAddress::Unknown), seconds(0)),
            [1]
        );
        let nowhere = HostAddress::Nowhere(NoAddress::Unknown, seconds(600));
        assert_eq!(names.want("h", 1, seconds(599)), nowhere);
        assert_eq!(names.want("h", 1, seconds(600)), HostAddress::Soon);
    }

    #[test]
    fn dns_servers_fail_for_one_name_after_another() {
        let mut names = Names::default();
        for name in ["a", "b", "c", "d", "d", "d"] {
            names.resolved(name, Err(NoAddress::Failed), seconds(0));
        }
        assert!(!names.are_failing());
        names.resolved("e", Err(NoAddress::Failed), seconds(0));
        assert!(names.are_failing());
        names.resolved("f", Err(NoAddress::Unknown), seconds(0));
        assert!(!names.are_failing());
    }

    #[test]
    fn addresses_take_turns_when_they_fail() {
        let mut names = Names::default();
        names.want("h", 1, seconds(0));
        names.next_question();
        names.resolved("h", found(&[1, 2], 5), seconds(0));
        assert_eq!(names.turn("h"), Some(at(2)));
        assert_eq!(names.want("h", 1, seconds(1)), HostAddress::At(at(2)));
        assert_eq!(names.turn("h"), Some(at(1)));
        assert_eq!(names.turn("other"), None);
    }

    #[test]
    fn literals_need_no_lookup() {
        let mut names = Names::default();
        assert_eq!(
            names.want("10.0.0.7", 1, seconds(0)),
            HostAddress::At(at(7))
        );
        assert!(matches!(
            names.want("[::1]", 1, seconds(0)),
            HostAddress::At(_)
        ));
        assert_eq!(names.n_open(), 0);
    }
}
