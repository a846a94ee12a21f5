//! Idle connections that are kept for reuse, one per host.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use super::Connection;
use crate::journal::HostId;

/// A bounded pool; the oldest are closed first. Times are relative to the start of the crawl.
#[derive(Debug)]
pub(crate) struct Idle {
    kept: HashMap<HostId, (Connection, Duration)>,
    /// In the order in which they were kept. Hosts whose connection has been taken since are
    /// skipped.
    order: VecDeque<(Duration, HostId)>,
    most: usize,
    max_age: Duration,
}

impl Idle {
    pub(crate) fn new(most: usize, max_age: Duration) -> Self {
        Self {
            kept: HashMap::new(),
            order: VecDeque::new(),
            most,
            max_age,
        }
    }

    /// Keeps a connection to a host.
    pub(crate) fn put(&mut self, host: HostId, connection: Connection, now: Duration) {
        self.kept.insert(host, (connection, now));
        self.order.push_back((now, host));
        self.drop_old(now);
    }

    /// Returns the connection to a host, if one is kept and not too old.
    pub(crate) fn take(&mut self, host: HostId, now: Duration) -> Option<Connection> {
        let (connection, since) = self.kept.remove(&host)?;
        (now < since + self.max_age).then_some(connection)
    }

    /// Closes connections that are too old or exceed the limit.
    pub(crate) fn drop_old(&mut self, now: Duration) {
        while let Some(&(since, host)) = self.order.front() {
            let is_current = self.kept.get(&host).is_some_and(|(_, at)| *at == since);
            if is_current && self.kept.len() <= self.most && now < since + self.max_age {
                break;
            }
            if is_current {
                self.kept.remove(&host);
            }
            self.order.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection() -> Connection {
        Connection::Http1(Box::new(tokio::io::duplex(1).0))
    }

    #[test]
    fn the_pool_is_bounded_by_number_and_age() {
        let seconds = Duration::from_secs;
        let mut idle = Idle::new(2, seconds(10));
        for host in 0..3 {
            idle.put(host, connection(), seconds(host.into()));
        }
        assert!(idle.take(0, seconds(3)).is_none());
        assert!(idle.take(1, seconds(3)).is_some());
        assert!(idle.take(1, seconds(3)).is_none());
        assert!(idle.take(2, seconds(12)).is_none());
        idle.put(5, connection(), seconds(20));
        idle.drop_old(seconds(30));
        assert!(idle.kept.is_empty() && idle.order.is_empty());
    }
}
