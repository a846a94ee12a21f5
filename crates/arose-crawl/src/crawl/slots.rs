//! Slots: decides which open requests count towards the limit.
//!
//! *Question.* The number of concurrent requests is limited. Hosts that hang or send one byte per
//! second occupy slots for minutes. How do the other hosts make progress?
//!
//! *Idea.* A request that has taken longer than [`SLOW`] is counted separately, with a limit of the
//! same size. A host whose last request was slow is counted separately from the start, and waits
//! while there are too many. So a host can occupy a slot that others need only once, for a quarter
//! of a second.
//!
//! *Cost.* 24 bytes for each request of the last quarter of a second. *Error.* If there are more
//! slow hosts than both limits together, and none is known to be slow, others still wait until they
//! time out.

use std::collections::VecDeque;
use std::time::Duration;

use crate::frontier::{Host, Hosts, Stage};
use crate::journal::HostId;

/// Duration after which a request is slow.
const SLOW: Duration = Duration::from_millis(250);

/// Open requests by their duration. Times are relative to the start of the run.
#[derive(Debug, Default)]
pub(super) struct Slots {
    /// Requests that are not slow so far, oldest first; some have ended.
    started: VecDeque<(Duration, HostId)>,
    n_slow: usize,
}

impl Slots {
    /// Whether a host has to wait because the limit of slow requests is reached.
    pub(super) fn hold_back(&self, host: &Host, limit: usize) -> bool {
        host.is_slow && self.n_slow >= limit
    }

    /// Returns when a host that has to wait is checked again.
    pub(super) fn again(now: Duration) -> Duration {
        now + SLOW
    }

    /// Records that a request is sent.
    pub(super) fn begin(&mut self, id: HostId, host: &mut Host, now: Duration) {
        host.asked_at = now;
        host.counts_as_slow = host.is_slow;
        match host.is_slow {
            true => self.n_slow += 1,
            false => self.started.push_back((now, id)),
        }
    }

    /// Records that a request has ended.
    pub(super) fn end(&mut self, host: &mut Host, now: Duration) {
        self.n_slow -= usize::from(host.counts_as_slow);
        host.counts_as_slow = false;
        host.is_slow = now.saturating_sub(host.asked_at) >= SLOW;
        // Its next turn may come before its next request; until then it has no open request.
        host.asked_at = Duration::MAX;
    }

    /// Counts requests separately that have become slow.
    pub(super) fn age(&mut self, hosts: &mut Hosts, now: Duration) {
        while let Some(&(since, id)) = self.started.front()
            && since + SLOW <= now
        {
            self.started.pop_front();
            // A host with an open request is in memory.
            let Some(host) = hosts.warm(id) else {
                continue;
            };
            let is_open = host.stage == Stage::Busy && host.asked_at == since;
            if is_open && !host.counts_as_slow {
                host.counts_as_slow = true;
                self.n_slow += 1;
            }
        }
    }

    /// Returns the number of requests that are counted separately.
    pub(super) fn n_apart(&self, limit: usize) -> usize {
        self.n_slow.min(limit)
    }

    /// Returns when the next request may become slow.
    pub(super) fn next(&self) -> Option<Duration> {
        self.started.front().map(|(since, _)| *since + SLOW)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::url::Normalizer;

    #[test]
    fn slow_requests_are_counted_apart() {
        let url = Normalizer::default().normalize("http://h/", None).unwrap();
        let mut hosts = Hosts::default();
        (0..3).for_each(|hash| hosts.push(Host::named(url.origin(), 0), hash));
        let mut slots = Slots::default();
        let at = Duration::from_millis;
        for id in 0..3 {
            let host = &mut hosts[id as usize];
            host.stage = Stage::Busy;
            slots.begin(id, host, at(0));
        }
        slots.age(&mut hosts, at(249));
        assert_eq!(slots.n_apart(9), 0);
        slots.end(&mut hosts[0], at(249));
        hosts[0].stage = Stage::Rest;
        slots.age(&mut hosts, at(250));
        assert_eq!((slots.n_apart(1), slots.n_apart(9)), (1, 2));
        slots.end(&mut hosts[1], at(800));
        assert!(hosts[1].is_slow && slots.hold_back(&hosts[1], 1));
        assert!(!slots.hold_back(&hosts[0], 1));
        slots.end(&mut hosts[2], at(900));
        assert!(!slots.hold_back(&hosts[1], 1));
        slots.begin(1, &mut hosts[1], at(900));
        assert_eq!((slots.n_apart(1), slots.next()), (1, None));
        slots.end(&mut hosts[1], at(901));
        assert!(!hosts[1].is_slow && slots.n_apart(1) == 0);
    }

    /// A host whose turn it is again, while its URL is still being read, has no open request.
    #[test]
    fn issue_22_a_host_without_a_request_is_not_slow() {
        let url = Normalizer::default().normalize("http://h/", None).unwrap();
        let mut hosts = Hosts::default();
        hosts.push(Host::named(url.origin(), 0), 0);
        let mut slots = Slots::default();
        let at = Duration::from_millis;
        slots.begin(0, &mut hosts[0], at(0));
        slots.end(&mut hosts[0], at(10));
        hosts[0].stage = Stage::Busy;
        slots.age(&mut hosts, at(250));
        assert_eq!(slots.n_apart(9), 0);
        slots.begin(0, &mut hosts[0], at(260));
        slots.end(&mut hosts[0], at(270));
        assert_eq!(slots.n_apart(9), 0);
    }
}
