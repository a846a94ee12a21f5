//! Outages of the crawler's own connection: the crawl pauses when no host can be reached.
//!
//! *Question.* A request fails. Is it the host's fault, so that the URL loses a try, or the
//! crawler's own, so that no URL may lose a try?
//!
//! *Idea.* Hosts fail one at a time, while others respond. If [`MANY`] hosts that responded earlier
//! in this run fail one after another, and no response arrives in between, the fault is on this
//! side. The crawl pauses: [`MANY`] requests at a time find out whether the outage is over, first
//! after five seconds, later after up to a minute. Any response ends it. Failures during the pause
//! do not count, and those that revealed the outage are forgiven.
//!
//! *Error.* A crawl of fewer hosts cannot distinguish the two cases. URLs that it cannot reach are
//! lost for now.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::journal::HostId;

/// Number of hosts that must fail one after another.
const MANY: usize = 5;

const FIRST_PROBE: Duration = Duration::from_secs(5);
const LAST_PROBE: Duration = Duration::from_secs(60);

/// Watches failures. Times are relative to the start of the run.
#[derive(Debug, Default)]
pub(super) struct Outage {
    /// Hosts that responded before and have failed since the last response.
    failed: BTreeSet<HostId>,
    pause: Option<Halt>,
}

#[derive(Debug, Clone, Copy)]
struct Halt {
    since: Duration,
    /// When requests are sent again, and the wait between then and the next ones.
    probe: Duration,
    wait: Duration,
    /// Requests that may still be sent now.
    n_left: usize,
}

impl Outage {
    /// Records that a response arrived.
    pub(super) fn note_response(&mut self) {
        self.failed.clear();
        self.pause = None;
    }

    /// Records the first failure of a host that responded before. Returns the hosts to forgive if
    /// this failure reveals an outage.
    pub(super) fn note_failure(&mut self, host: HostId, now: Duration) -> BTreeSet<HostId> {
        self.failed.insert(host);
        if self.failed.len() < MANY || self.pause.is_some() {
            return BTreeSet::new();
        }
        self.pause = Some(Halt {
            since: now,
            probe: now + FIRST_PROBE,
            wait: FIRST_PROBE,
            n_left: 0,
        });
        std::mem::take(&mut self.failed)
    }

    pub(super) fn is_on(&self) -> bool {
        self.pause.is_some()
    }

    /// Returns how long the outage has lasted.
    pub(super) fn lasted(&self, now: Duration) -> Duration {
        self.pause.map_or(Duration::ZERO, |pause| now - pause.since)
    }

    /// Whether a request may be sent; if so, it counts as sent.
    pub(super) fn admits(&mut self, now: Duration) -> bool {
        let Some(pause) = &mut self.pause else {
            return true;
        };
        if now >= pause.probe {
            pause.wait = (pause.wait * 2).min(LAST_PROBE);
            pause.probe = now + pause.wait;
            pause.n_left = MANY;
        }
        let admits = pause.n_left > 0;
        pause.n_left = pause.n_left.saturating_sub(1);
        admits
    }

    /// Returns when requests are sent again, during an outage.
    pub(super) fn next(&self) -> Option<Duration> {
        self.pause.map(|pause| pause.probe)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_many_failures_in_a_row_are_an_outage() {
        let second = Duration::from_secs;
        let mut outage = Outage::default();
        for host in [1, 2, 2, 3, 4] {
            assert!(outage.note_failure(host, second(1)).is_empty());
        }
        outage.note_response();
        for host in 1..5 {
            assert!(outage.note_failure(host, second(2)).is_empty());
        }
        assert!(outage.admits(second(2)) && !outage.is_on());
        assert_eq!(outage.note_failure(9, second(3)).len(), 5);
        assert!(outage.is_on() && !outage.admits(second(7)));
        let admitted = (0..9).filter(|_| outage.admits(second(8))).count();
        assert_eq!((admitted, outage.next()), (5, Some(second(18))));
        assert_eq!(outage.lasted(second(13)), second(10));
        outage.note_response();
        assert!(outage.admits(second(14)));
    }
}
