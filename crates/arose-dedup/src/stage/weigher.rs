//! Weights of word pairs, computed from the number of other pages that contain them.

use arose::content::{MAX_PAGES, shingler, weight};
use arose::mix::mix;
use arose::shingle::Shingler;

use crate::config::{Config, SiteCounts};

/// If counts are sampled, one shingle in this many is counted.
const SAMPLED: u64 = 16;

/// An index, which cannot read a text again, counts one shingle in this many.
const ONLINE: u64 = 4;

/// The number of other pages of a word pair in its stored form, at most [`MAX_PAGES`].
pub(crate) type Others = u16;

/// Returns the number in its stored form.
pub(crate) fn others(n_others: u64) -> Others {
    n_others.min(MAX_PAGES) as Others
}

/// Returns a salt that makes the keys of the shingles of a site differ from those of others.
pub(crate) fn salt(site: u64) -> u64 {
    mix(site ^ 0x5172_6573)
}

/// Returns the key of a word pair of a site.
pub(crate) fn key(shingle: u64, salt: u64) -> u64 {
    mix(shingle ^ salt)
}

/// Computes weights from counts.
pub(crate) struct Weigher {
    shingler: Shingler,
    /// One shingle in this many is counted.
    every: u64,
}

impl Weigher {
    pub(crate) fn new(config: &Config) -> Self {
        Self::of(config.site_counts)
    }

    pub(crate) fn of(counts: SiteCounts) -> Self {
        Self::every(match counts {
            SiteCounts::Exact => 1,
            SiteCounts::Sampled => SAMPLED,
        })
    }

    /// Creates a weigher that counts as an index does.
    #[cfg(test)]
    pub(crate) fn online() -> Self {
        Self::every(ONLINE)
    }

    fn every(every: u64) -> Self {
        Self {
            shingler: shingler(),
            every,
        }
    }

    pub(crate) fn shingle(&self, tokens: &[u64], shingles: &mut Vec<u64>) {
        shingles.clear();
        self.shingles_into(tokens, shingles);
    }

    /// Appends the shingles of a text.
    pub(crate) fn shingles_into(&self, tokens: &[u64], shingles: &mut Vec<u64>) {
        self.shingler.shingles_into(tokens, shingles);
    }

    /// Returns whether a shingle is counted.
    pub(crate) fn counts(&self, shingle: u64) -> bool {
        !self.is_sampled() || mix(shingle).is_multiple_of(self.every)
    }

    /// Returns whether an index counts a shingle.
    pub(crate) fn counts_online(shingle: u64) -> bool {
        mix(shingle).is_multiple_of(ONLINE)
    }

    /// Computes the weight of the shingle at each position, given the number of other pages that
    /// contain a shingle.
    pub(crate) fn weigh(
        &self,
        shingles: &[u64],
        weights: &mut Vec<f64>,
        n_others: impl Fn(u64) -> u64,
    ) {
        weights.clear();
        if !self.is_sampled() {
            weights.extend(shingles.iter().map(|&shingle| weight(n_others(shingle))));
            return;
        }
        let mut numbers: Vec<Others> = shingles
            .iter()
            .map(|&shingle| others(n_others(shingle)))
            .collect();
        self.sample(shingles, &mut numbers);
        weights.extend(numbers.into_iter().map(|n| weight(n.into())));
    }

    pub(crate) fn is_sampled(&self) -> bool {
        self.every > 1
    }

    /// Replaces the number of other pages at every position by that at the nearest counted
    /// position.
    pub(crate) fn sample(&self, shingles: &[u64], numbers: &mut [Others]) {
        if !self.is_sampled() {
            return;
        }
        let sampled = shingles.iter().zip(&*numbers).enumerate();
        let sampled = sampled.filter(|(_, (shingle, _))| self.counts(**shingle));
        let sampled: Vec<(usize, Others)> = sampled
            .map(|(position, (_, &number))| (position, number))
            .collect();
        numbers.copy_from_slice(&nearest(&sampled, numbers.len()));
    }
}

/// Computes for each position the number at the nearest sampled position, the first of two equally
/// near ones; zero if there is no sample.
pub(crate) fn nearest(sampled: &[(usize, Others)], n: usize) -> Vec<Others> {
    let mut numbers = Vec::with_capacity(n);
    for (place, &(position, number)) in sampled.iter().enumerate() {
        // Halfway to the next.
        let end = match sampled.get(place + 1) {
            Some((next, _)) => (position + next) / 2 + 1,
            None => n,
        };
        numbers.resize(end, number);
    }
    numbers.resize(n, 0);
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issue_24_positions_take_the_nearest_sample() {
        assert_eq!(nearest(&[], 3), [0; 3]);
        assert_eq!(nearest(&[(1, 7)], 4), [7; 4]);
        assert_eq!(nearest(&[(0, 7), (3, 9)], 6), [7, 7, 9, 9, 9, 9]);
        assert_eq!(nearest(&[(1, 7), (3, 9)], 5), [7, 7, 7, 9, 9]);
    }
}
