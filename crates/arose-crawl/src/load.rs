//! The load monitor: adapts the number of concurrent requests.
//!
//! *Idea.* As in TCP, increase by steps and decrease by halves. Once per second the limit rises by
//! a sixteenth. It falls by half if the machine or the network is overloaded. Signs of overload are
//! memory use, pages waiting to be read (CPU), and failing requests (network, DNS). Bandwidth is a
//! bucket that fills at the allowed rate; requests wait while it is empty.

use std::time::Duration;

use crate::settings::Settings;

/// Adapts the number of open requests.
#[derive(Debug)]
pub(crate) struct Load {
    /// Maximum number of open requests.
    pub(crate) limit: usize,
    most: usize,
    max_memory: u64,
    max_errors: f64,
    bytes_per_second: u64,
    /// Bytes that may still be received; below zero, requests wait.
    bucket: f64,
    filled: Duration,
}

/// Measurements of one second.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) memory: u64,
    pub(crate) n_requests: u64,
    pub(crate) n_failures: u64,
    /// Pages waiting to be read, as a share of their maximum.
    pub(crate) backlog: f64,
}

const LEAST: usize = 16;
/// Minimum number of requests for an error rate.
const MIN_REQUESTS: u64 = 50;

impl Load {
    pub(crate) fn new(settings: &Settings) -> Self {
        let most = settings.fetch.in_flight.max(1);
        Self {
            limit: most.min(256),
            most,
            max_memory: settings.machine.max_memory,
            max_errors: settings.machine.max_errors,
            bytes_per_second: settings.network.max_bytes_per_second,
            bucket: settings.network.max_bytes_per_second as f64,
            filled: Duration::ZERO,
        }
    }

    /// Adjusts the limit to the last second.
    pub(crate) fn adapt(&mut self, sample: &Sample) {
        let errors = sample.n_failures as f64 / sample.n_requests.max(1) as f64;
        let is_failing = sample.n_requests >= MIN_REQUESTS && errors > self.max_errors;
        let is_full = sample.memory > self.max_memory;
        self.limit = if is_failing || is_full {
            (self.limit / 2).max(LEAST.min(self.most))
        } else if sample.backlog > 0.5 {
            self.limit
        } else {
            (self.limit + self.limit.div_ceil(16)).min(self.most)
        };
    }

    /// Takes received bytes out of the bucket.
    pub(crate) fn receive(&mut self, n_bytes: u64) {
        if self.bytes_per_second > 0 {
            self.bucket -= n_bytes as f64;
        }
    }

    /// Returns how long requests must wait for bandwidth.
    pub(crate) fn wait(&mut self, now: Duration) -> Duration {
        if self.bytes_per_second == 0 {
            return Duration::ZERO;
        }
        let rate = self.bytes_per_second as f64;
        let gained = (now - self.filled.min(now)).as_secs_f64() * rate;
        self.bucket = (self.bucket + gained).min(rate);
        self.filled = now;
        Duration::from_secs_f64((-self.bucket / rate).max(0.0))
    }
}

/// Returns the memory of this process in bytes; zero if that is unknown.
pub(crate) fn memory() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm
        .split_whitespace()
        .nth(1)
        .and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * rustix::param::page_size() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: Sample = Sample {
        memory: 0,
        n_requests: 100,
        n_failures: 0,
        backlog: 0.0,
    };

    #[test]
    fn the_limit_grows_slowly_and_falls_fast() {
        let mut load = Load::new(&Settings::default());
        for _ in 0..100 {
            load.adapt(&GOOD);
        }
        assert_eq!(load.limit, 1000);
        load.adapt(&Sample {
            n_failures: 60,
            ..GOOD
        });
        assert_eq!(load.limit, 500);
        load.adapt(&Sample {
            memory: u64::MAX,
            ..GOOD
        });
        assert_eq!(load.limit, 250);
        load.adapt(&Sample {
            backlog: 1.0,
            ..GOOD
        });
        assert_eq!(load.limit, 250);
        load.adapt(&Sample {
            n_requests: 5,
            n_failures: 5,
            ..GOOD
        });
        assert_eq!(load.limit, 266);
        for _ in 0..100 {
            load.adapt(&Sample {
                memory: u64::MAX,
                ..GOOD
            });
        }
        assert_eq!(load.limit, 16);
    }

    #[test]
    fn bandwidth_is_waited_for() {
        let mut settings = Settings::default();
        settings.network.max_bytes_per_second = 1000;
        let mut load = Load::new(&settings);
        load.receive(3000);
        assert_eq!(load.wait(Duration::ZERO), Duration::from_secs(2));
        assert_eq!(load.wait(Duration::from_secs(2)), Duration::ZERO);
        load.receive(500);
        assert_eq!(
            load.wait(Duration::from_secs(2)),
            Duration::from_millis(500)
        );
    }
}
