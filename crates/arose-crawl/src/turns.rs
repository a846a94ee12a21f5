//! Measures how long the turns of the crawl loop take.
//!
//! The loop does one thing after another: takes in responses, gives out turns, queues links.
//! Meanwhile no request is sent and no response is read, so a long turn stalls the whole crawl. A
//! histogram shows how often that happens.

use std::time::Duration;

/// Duration from which a turn is a stall: hosts must not be blamed for the time it took.
pub(crate) const STALL: Duration = Duration::from_millis(20);

/// Durations of turns since the run began.
#[derive(Debug, Clone, Default)]
pub struct Turns {
    /// By bound, and those beyond the last.
    counts: [u64; Self::BOUNDS_MS.len() + 1],
    total: Duration,
    longest: Duration,
}

impl Turns {
    /// Upper bounds of the classes, in milliseconds.
    pub const BOUNDS_MS: [u64; 11] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000];

    pub(crate) fn note(&mut self, took: Duration) {
        let is_below = |&ms: &u64| Duration::from_millis(ms) < took;
        self.counts[Self::BOUNDS_MS.iter().take_while(|ms| is_below(ms)).count()] += 1;
        self.total += took;
        self.longest = self.longest.max(took);
    }

    /// Returns the number of turns.
    #[must_use]
    pub fn n(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns for each bound the number of turns that took no longer.
    pub fn up_to(&self) -> impl Iterator<Item = (u64, u64)> {
        let sums = self.counts.iter().scan(0, |sum, n| {
            *sum += n;
            Some(*sum)
        });
        Self::BOUNDS_MS.into_iter().zip(sums)
    }

    /// Returns the total time of all turns.
    #[must_use]
    pub fn total(&self) -> Duration {
        self.total
    }

    /// Returns the time of the longest turn.
    #[must_use]
    pub fn longest(&self) -> Duration {
        self.longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_counted_by_their_bounds() {
        let mut turns = Turns::default();
        for ms in [0, 1, 2, 3, 20, 21, 9000] {
            turns.note(Duration::from_millis(ms));
        }
        let counts: Vec<u64> = turns.up_to().map(|(_, n)| n).collect();
        assert_eq!(counts, [2, 3, 4, 4, 5, 6, 6, 6, 6, 6, 6]);
        assert_eq!((turns.n(), turns.longest().as_secs()), (7, 9));
        assert_eq!(turns.total(), Duration::from_millis(9047));
    }
}
