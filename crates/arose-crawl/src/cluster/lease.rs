//! Leases: when must an agent stop, and when may another one take over?
//!
//! *Question.* Two agents must never crawl the same site at once. The servers between them lose
//! messages and may be away for seconds, clocks are not synchronized, and an agent may be stopped
//! and continued at any moment. Web servers cannot tell an old owner from a new one.
//!
//! *Idea.* Only durations count, each measured by one monotonic clock (Gray & Cheriton, 1989). An
//! agent renews its lease by replacing a document, and owns its partitions for `T - m` from the
//! moment *before* the renewal was sent. Another agent takes over when it has seen the same version
//! of the document for `T (1 + 2 rho) + m`, where `rho` bounds the error of clock rates, and when
//! it can still replace that version. The last version was sent before it was seen, so the old
//! owner has stopped by then: after `(T - m) (1 + rho)` at the latest, against
//! `(T (1 + 2 rho) + m) / (1 + rho)` at the earliest.
//!
//! *Not for* machines that sleep with clocks that stand still; the clock used here counts sleep.

use std::time::Duration;

/// Largest error of clock rates.
const RHO: f64 = 1e-3;

/// Returns how long a duration of the slowest clock may take on the fastest.
pub(crate) fn slowed(duration: Duration) -> Duration {
    duration.mul_f64(1.0 + 2.0 * RHO)
}

/// The terms of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// How long a lease lasts.
    pub lease: Duration,
    /// How much earlier its owner stops, and how much later others take over.
    pub margin: Duration,
}

impl Terms {
    /// The terms for leases of this length: the margin is a fifteenth of it, at most 2 seconds.
    #[must_use]
    pub fn new(lease: Duration) -> Self {
        Self {
            lease,
            margin: (lease / 15).min(Duration::from_secs(2)),
        }
    }

    /// When the owner has to stop, if its last renewal was sent at this time.
    #[must_use]
    pub fn owner_stops(&self, sent: Duration) -> Duration {
        sent + self.lease - self.margin
    }

    /// How long another agent has to see the same version before it may take over.
    #[must_use]
    pub fn taker_waits(&self) -> Duration {
        slowed(self.lease) + self.margin
    }

    /// How often leases are renewed.
    #[must_use]
    pub fn renewal(&self) -> Duration {
        self.lease / 6
    }
}

/// What an agent knows of the lease of another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Watched {
    /// The version that it saw last, and since when.
    pub(crate) revision: u64,
    pub(crate) since: Duration,
}

impl Watched {
    /// Notes a version.
    pub(crate) fn see(&mut self, revision: u64, now: Duration) {
        if revision != self.revision {
            *self = Self {
                revision,
                since: now,
            };
        }
    }

    /// Starts over: versions may have been missed until now.
    pub(crate) fn doubt(&mut self, now: Duration) {
        self.since = now;
    }

    /// Whether the lease has ended.
    pub(crate) fn has_ended(&self, terms: &Terms, now: Duration) -> bool {
        now.saturating_sub(self.since) >= terms.taker_waits()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arose::mix::SplitMix;

    const TERMS: Terms = Terms {
        lease: Duration::from_secs(30),
        margin: Duration::from_secs(1),
    };

    #[test]
    fn bounds_of_real_time() {
        let owner = TERMS.owner_stops(Duration::ZERO).as_secs_f64() * (1.0 + RHO);
        let taker = TERMS.taker_waits().as_secs_f64() / (1.0 + RHO);
        assert!((owner - 29.03).abs() < 0.005, "{owner}");
        assert!((taker - 31.03).abs() < 0.005, "{taker}");
        assert_eq!(Terms::new(TERMS.lease).margin, Duration::from_secs(2));
    }

    /// Owners that die or lose their connection at any moment, with messages that take any time and
    /// clocks that are wrong by the largest error: nobody takes over before they have stopped.
    #[test]
    fn skewed_clocks_never_overlap() {
        let mut random = SplitMix::new(28);
        let mut unit = move || random.below(1 << 20) as f64 / f64::from(1 << 20);
        for _ in 0..10_000 {
            let rates = [unit(), unit()].map(|unit| 1.0 + RHO * (2.0 * unit - 1.0));
            let offsets = [unit(), unit()].map(|unit| 1e6 * unit);
            let clock =
                |at: usize, real: f64| Duration::from_secs_f64(offsets[at] + real * rates[at]);
            let (mut real, mut revision) = (0.0, 0);
            let mut watched = Watched {
                revision,
                since: clock(1, real),
            };
            let mut stops = TERMS.owner_stops(clock(0, real));
            for _ in 0..(unit() * 5.0) as u32 {
                real += 5.0 * unit();
                let sent = clock(0, real);
                let written = real + 3.0 * unit();
                revision += 1;
                // Confirmed or not: the owner counts only what was confirmed.
                if unit() < 0.8 {
                    stops = TERMS.owner_stops(sent);
                }
                watched.see(revision, clock(1, written + 2.0 * unit()));
                real = written;
            }
            // The first moment of real time at which the taker may take.
            let since = watched.since + TERMS.taker_waits();
            let taken = (since.as_secs_f64() - offsets[1]) / rates[1];
            assert!(watched.has_ended(&TERMS, clock(1, taken + 1e-6)));
            assert!(clock(0, taken) > stops, "at {taken}");
        }
    }

    #[test]
    fn doubts_start_over() {
        let at = Duration::from_secs;
        let mut watched = Watched {
            revision: 1,
            since: at(0),
        };
        watched.see(1, at(20));
        assert!(watched.has_ended(&TERMS, at(32)));
        watched.doubt(at(32));
        assert!(!watched.has_ended(&TERMS, at(60)) && watched.has_ended(&TERMS, at(64)));
        watched.see(2, at(63));
        assert!(!watched.has_ended(&TERMS, at(94)));
    }
}
