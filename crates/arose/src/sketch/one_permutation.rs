//! Kind 4: one permutation, split into bins.

use std::num::NonZeroU16;

use super::{Mergeable, Sketcher, minima};
use crate::mix::mix;
use crate::simd::bins::lower_bins;

/// The value of a bin into which no shingle fell.
pub const EMPTY_BIN: u64 = u64::MAX;

/// One permutation divided into `t` bins, with the minimum of each (Li, Owen & Zhang 2012).
///
/// One pass does the work of `t` permutations: the bin of a shingle is the high part of
/// `mix(x) * t`, its value the rest. The estimate divides the number of matching bins by the number
/// of bins that are not empty in both. The raw sketch can be merged, and small sets leave bins
/// empty. Super-shingles need every bin filled: [`Self::densify`].
///
/// Drawback: values are not independent if the set is smaller than `t`, so filter polynomials are
/// only approximate there. Flag sets below `2 t` as short.
///
/// ```
/// use arose::sketch::{OnePermutation, Sketcher};
/// let sketcher = OnePermutation::new(84.try_into()?, 1);
/// let raw = sketcher.sketch(&[1, 2, 3]);
/// assert_eq!(raw.len(), 84);
/// assert!(!sketcher.densify(&raw).values().contains(&arose::sketch::EMPTY_BIN));
/// # Ok::<(), std::num::TryFromIntError>(())
/// ```
#[derive(Debug, Clone)]
pub struct OnePermutation {
    t: usize,
    seed: u64,
}

impl OnePermutation {
    /// Creates `t` bins under the permutation of `seed`.
    #[must_use]
    pub fn new(t: NonZeroU16, seed: u64) -> Self {
        Self {
            t: t.get().into(),
            seed: mix(seed),
        }
    }

    /// Returns whether a set of `n` shingles is too small for nearly independent values.
    #[must_use]
    pub fn is_short(&self, n: usize) -> bool {
        n < 2 * self.t
    }

    /// Like [`Sketcher::sketch`], by the definition.
    pub(crate) fn sketch_plain(&self, shingles: &[u64]) -> Vec<u64> {
        if shingles.is_empty() {
            return Vec::new();
        }
        let placed: Vec<(usize, u64)> = shingles.iter().map(|&x| self.place(x)).collect();
        let minimum = |bin| {
            placed
                .iter()
                .filter(|place| place.0 == bin)
                .map(|place| place.1)
                .min()
        };
        (0..self.t)
            .map(|bin| minimum(bin).unwrap_or(EMPTY_BIN))
            .collect()
    }

    /// Fills each empty bin from a non-empty one: the first in an order that depends on the bin and
    /// is the same for all documents (Shrivastava 2017).
    ///
    /// The bin to try is `hash(bin, attempt)`. After `16 t` attempts, which only a nearly empty
    /// sketch needs, the next non-empty bin to the right is used.
    #[must_use]
    pub fn densify(&self, raw: &[u64]) -> Densified {
        let filled = |bin: usize| raw.get(bin).copied().filter(|&value| value != EMPTY_BIN);
        if raw.len() != self.t || (0..raw.len()).all(|bin| filled(bin).is_none()) {
            return Densified(Vec::new());
        }
        let donor = |bin: usize| {
            let tries = 1..=16 * raw.len() as u64;
            let donors = tries.map(|attempt| self.donor(bin, attempt));
            let rest = (1..raw.len()).map(|step| (bin + step) % raw.len());
            donors.chain(rest).find_map(filled).unwrap_or(EMPTY_BIN)
        };
        Densified(
            (0..raw.len())
                .map(|bin| filled(bin).unwrap_or_else(|| donor(bin)))
                .collect(),
        )
    }

    fn donor(&self, bin: usize, attempt: u64) -> usize {
        let hash = mix(mix(bin as u64 ^ self.seed).wrapping_add(attempt));
        ((u128::from(hash) * self.t as u128) >> 64) as usize
    }

    /// Returns the bin of a shingle and its value there.
    fn place(&self, shingle: u64) -> (usize, u64) {
        let product = u128::from(mix(shingle ^ self.seed)) * self.t as u128;
        // The value reserved for empty bins is replaced by its neighbour.
        (
            (product >> 64) as usize,
            (product as u64).min(EMPTY_BIN - 1),
        )
    }
}

impl Sketcher for OnePermutation {
    type Value = u64;

    fn sketch_into(&self, shingles: &[u64], out: &mut Vec<u64>) {
        out.clear();
        if shingles.is_empty() {
            return;
        }
        out.resize(self.t, EMPTY_BIN);
        lower_bins(shingles, self.seed, out);
    }

    fn estimate(&self, a: &[u64], b: &[u64]) -> Option<f64> {
        if a.len() != self.t || b.len() != self.t {
            return None;
        }
        let not_jointly_empty = a
            .iter()
            .zip(b)
            .filter(|(a, b)| **a != EMPTY_BIN || **b != EMPTY_BIN);
        let (n_match, n_bins) = not_jointly_empty.fold((0, 0), |(n_match, n_bins), (a, b)| {
            (n_match + u32::from(a == b), n_bins + 1)
        });
        (n_bins > 0).then(|| f64::from(n_match) / f64::from(n_bins))
    }
}

impl Mergeable for OnePermutation {
    fn merge(&self, a: &[u64], b: &[u64]) -> Vec<u64> {
        minima(a, b)
    }
}

/// A one-permutation sketch with every bin filled: suitable for super-shingles, but not for
/// merging.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Densified(Vec<u64>);

impl Densified {
    /// Returns one value per bin; empty for the empty set.
    #[must_use]
    pub fn values(&self) -> &[u64] {
        &self.0
    }

    /// Returns the share of matching bins; none if either set was empty.
    #[must_use]
    pub fn estimate(&self, other: &Self) -> Option<f64> {
        super::agreement(&self.0, &other.0)
    }
}
