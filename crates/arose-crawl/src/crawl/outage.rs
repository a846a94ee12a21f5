//! Outages of the crawler's own connection: when nothing can be reached any more, the crawl waits.
//!
//! *Question.* A request fails. Is that the host's trouble, which costs its URLs their tries, or
//! the crawler's own, which must not cost any URL anything?
//!
//! *Idea.* Hosts fail one at a time, and others answer meanwhile. If [`MANY`] hosts that answered
//! earlier in this run fail one after another, and no response comes in between, then the fault
//! lies here. The crawl pauses: [`MANY`] requests at a time find out whether the outage is over,
//! after five seconds first and up to a minute later. Any response ends it. Failures meanwhile do
//! not count, and those that revealed the outage are forgiven.
//!
//! *Error.* A crawl of fewer hosts cannot tell the two apart; what it cannot reach is lost for now.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::journal::HostId;

/// Hosts that must fail one after another.
const MANY: usize = 5;

const FIRST_PROBE: Duration = Duration::from_secs(5);
const LAST_PROBE: Duration = Duration::from_secs(60);

/// Watches failures. Times are since the start of the run.
#[derive(Debug, Default)]
pub(super) struct Outage {
    /// Hosts that answered before and have failed since the last response.
    failed: BTreeSet<HostId>,
    pause: Option<Halt>,
}

#[derive(Debug, Clone, Copy)]
struct Halt {
    since: Duration,
    /// When requests are sent again, and the wait from then to the next ones.
    probe: Duration,
    wait: Duration,
    /// Requests that may still be sent now.
    n_left: usize,
}

impl Outage {
    /// Takes in that a response came.
    pub(super) fn note_response(&mut self) {
        self.failed.clear();
        self.pause = None;
    }

    /// Takes in the first failure of a host that answered before; returns the hosts to forgive if
    /// this one reveals an outage.
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

    /// How long the outage has lasted.
    pub(super) fn lasted(&self, now: Duration) -> Duration {
        self.pause.map_or(Duration::ZERO, |pause| now - pause.since)
    }

    /// Whether a request may be sent; if so, one will be.
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

    /// When requests are sent again, in an outage.
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
