//! The DNS handler: where is this host?
//!
//! *Question.* Every request needs an address, a lookup takes from a millisecond to seconds, and a
//! crawl meets the same names again and again. *Idea.* Ask as soon as a host has something to
//! fetch, long before its turn; remember answers for longer than they say ([`MIN_TTL`], on purpose:
//! pages stay where they are) but not for ever ([`MAX_TTL`]); go on with an old answer while a new
//! one is on its way; remember that there was none for [`NEGATIVE_TTL`]; and never ask for a name
//! that is being asked for.
//!
//! *Cost.* Some 100 bytes a name. This is a table without clock or network; the crawl asks
//! [`Names::want`] and reports what came of it to [`Names::resolved`].

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use crate::journal::HostId;
use crate::resolve::{Addresses, NoAddress};

/// How long an answer is used, at least.
pub(crate) const MIN_TTL: Duration = Duration::from_secs(3600);
/// How long an answer is used, at most.
pub(crate) const MAX_TTL: Duration = Duration::from_secs(24 * 3600);
/// How long it is remembered that there was no answer.
pub(crate) const NEGATIVE_TTL: Duration = Duration::from_secs(600);

/// Names that must fail one after another before that says nothing of each.
const MANY_FAILURES: usize = 5;

/// Lookups under way at once.
const MAX_LOOKUPS: usize = 64;

/// Questions under way or waiting at most: others are asked when their hosts are looked at.
const MAX_OPEN: usize = 16 * MAX_LOOKUPS;

/// Answers, and questions under way. Times are since the start of the crawl.
#[derive(Debug, Default)]
pub(crate) struct Names {
    known: HashMap<Box<str>, Remembered>,
    /// Questions that wait for their turn.
    queue: VecDeque<Box<str>>,
    n_asked: usize,
    /// Names without an answer since the last answer to any; no more than matter.
    failed: BTreeSet<Box<str>>,
}

#[derive(Debug)]
struct Remembered {
    resolved: Option<Result<Resolved, NoAddress>>,
    expires: Duration,
    is_asked: bool,
    waiting: Vec<HostId>,
}

/// The addresses of a name, of which one is in use.
#[derive(Debug)]
struct Resolved {
    addresses: Vec<IpAddr>,
    used: usize,
}

/// What is known of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    /// Its address.
    At(IpAddr),
    /// It has none, and is not asked for again before that time.
    Nowhere(NoAddress, Duration),
    /// The answer is on its way, and the host will be told.
    Soon,
}

/// Names that are remembered at most, those being asked for aside.
const MAX_NAMES: usize = 200_000;

impl Names {
    /// Whether something is known of a name, or it is an address.
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.known.contains_key(name) || name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok()
    }

    /// Forgets every second of too many names.
    fn forget(&mut self) {
        let mut n = 0_usize;
        self.known.retain(|_, entry| {
            n += 1;
            entry.is_asked || !entry.waiting.is_empty() || n.is_multiple_of(2)
        });
    }

    /// Where `host`, called `name`, is; asks if that is not known or too old.
    pub(crate) fn want(&mut self, name: &str, host: HostId, now: Duration) -> Known {
        if let Ok(address) = name.trim_matches(['[', ']']).parse() {
            return Known::At(address);
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
            Some(Ok(resolved)) => Known::At(resolved.addresses[resolved.used]),
            Some(Err(reason)) if !is_old => Known::Nowhere(*reason, entry.expires),
            _ => {
                entry.waiting.push(host);
                Known::Soon
            }
        }
    }

    /// A name that is to be looked up now.
    pub(crate) fn next_question(&mut self) -> Option<Box<str>> {
        if self.n_asked >= MAX_LOOKUPS {
            return None;
        }
        let name = self.queue.pop_front()?;
        self.n_asked += 1;
        Some(name)
    }

    /// Lookups under way or waiting.
    pub(crate) fn n_open(&self) -> usize {
        self.n_asked + self.queue.len()
    }

    /// Whether another name may be asked for.
    pub(crate) fn has_room(&self) -> bool {
        self.n_open() < MAX_OPEN
    }

    /// Takes an answer; returns the hosts that wait for it. A failure leaves an old answer in use.
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

    /// Whether lookups fail for one name after another: that is the DNS servers' trouble.
    pub(crate) fn are_failing(&self) -> bool {
        self.failed.len() >= MANY_FAILURES
    }

    /// The address did not answer: the next one of the name is tried, if it has another.
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
        assert_eq!(names.want("h", 1, seconds(0)), Known::Soon);
        assert_eq!(names.want("h", 2, seconds(0)), Known::Soon);
        assert_eq!(names.next_question().as_deref(), Some("h"));
        assert_eq!(names.next_question(), None);
        assert_eq!(names.want("h", 3, seconds(0)), Known::Soon);
        assert_eq!(names.next_question(), None);
        assert_eq!(names.resolved("h", found(&[1], 5), seconds(1)), [1, 2, 3]);
        assert_eq!(names.want("h", 1, seconds(2)), Known::At(at(1)));
        assert_eq!(names.n_open(), 0);
    }

    /// Kept for an hour though it said five seconds, used on while asked anew, and after failure.
    #[test]
    fn old_answers_are_used_while_new_ones_come() {
        let mut names = Names::default();
        names.want("h", 1, seconds(0));
        names.next_question();
        names.resolved("h", found(&[1], 5), seconds(0));
        names.want("h", 1, seconds(3599));
        assert_eq!(names.next_question(), None);
        assert_eq!(names.want("h", 1, seconds(3600)), Known::At(at(1)));
        assert_eq!(names.next_question().as_deref(), Some("h"));
        assert_eq!(names.want("h", 1, seconds(3601)), Known::At(at(1)));
        assert_eq!(names.next_question(), None);
        names.resolved("h", Err(NoAddress::Failed), seconds(3602));
        assert_eq!(names.want("h", 1, seconds(3603)), Known::At(at(1)));
        assert_eq!(names.next_question(), None);
        names.want("h", 1, seconds(4202));
        assert_eq!(names.next_question().as_deref(), Some("h"));
        names.resolved("h", found(&[2], 1 << 40), seconds(4203));
        assert_eq!(
            names.want("h", 1, seconds(4203 + 24 * 3600 - 1)),
            Known::At(at(2))
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
        let nowhere = Known::Nowhere(NoAddress::Unknown, seconds(600));
        assert_eq!(names.want("h", 1, seconds(599)), nowhere);
        assert_eq!(names.want("h", 1, seconds(600)), Known::Soon);
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
        assert_eq!(names.want("h", 1, seconds(1)), Known::At(at(2)));
        assert_eq!(names.turn("h"), Some(at(1)));
        assert_eq!(names.turn("other"), None);
    }

    #[test]
    fn literals_need_no_lookup() {
        let mut names = Names::default();
        assert_eq!(names.want("10.0.0.7", 1, seconds(0)), Known::At(at(7)));
        assert!(matches!(names.want("[::1]", 1, seconds(0)), Known::At(_)));
        assert_eq!(names.n_open(), 0);
    }
}
