//! Kind 3: the values divisible by `m`.

use std::num::NonZeroU64;

use super::{Mergeable, Sketcher};
use crate::mix::mix;

/// The values of one permutation that are divisible by `m`, ascending (Broder et al. 1997,
/// `m = 25`).
///
/// Every set is sampled at the same rate, so containment can be estimated as well as similarity; in
/// return, the sketch grows with the set. If the sketch of a small set is empty, there is no
/// estimate.
///
/// ```
/// use arose::sketch::{ModM, Sketcher};
/// let sketcher = ModM::new(4.try_into()?, 1);
/// let (a, b): (Vec<u64>, Vec<u64>) = ((0..1000).collect(), (0..4000).collect());
/// let (a, b) = (sketcher.sketch(&a), sketcher.sketch(&b));
/// assert_eq!(sketcher.containment(&a, &b), Some(1.0));
/// # Ok::<(), std::num::TryFromIntError>(())
/// ```
#[derive(Debug, Clone)]
pub struct ModM {
    m: NonZeroU64,
    seed: u64,
}

impl ModM {
    /// Keeps one value in `m` under the permutation of `seed`.
    #[must_use]
    pub fn new(m: NonZeroU64, seed: u64) -> Self {
        Self { m, seed: mix(seed) }
    }

    /// Returns a sketch of bounded size: the values divisible by `2^j`, with the smallest `j` that
    /// leaves at most `cap` of them; `m` itself is not used. Compare two such sketches after
    /// [`Self::coarsen`] to the larger `j`.
    #[must_use]
    pub fn sketch_capped(&self, shingles: &[u64], cap: usize) -> (u32, Vec<u64>) {
        let mut values = self.values(shingles, |_| true);
        let mut j = 0;
        while values.len() > cap && j < 63 {
            j += 1;
            Self::coarsen(&mut values, j);
        }
        (j, values)
    }

    /// Keeps the values divisible by `2^j`: the sketch that a larger `m` would give.
    pub fn coarsen(values: &mut Vec<u64>, j: u32) {
        values.retain(|value| value.trailing_zeros() >= j);
    }

    /// Returns the estimated containment of `A` in `B`; none if `A` has no value.
    #[must_use]
    pub fn containment(&self, a: &[u64], b: &[u64]) -> Option<f64> {
        (!a.is_empty()).then(|| n_common(a, b) as f64 / a.len() as f64)
    }

    fn values(&self, shingles: &[u64], keep: impl Fn(u64) -> bool) -> Vec<u64> {
        let mut values: Vec<u64> = shingles
            .iter()
            .map(|&x| mix(x ^ self.seed))
            .filter(|&value| keep(value))
            .collect();
        values.sort_unstable();
        values.dedup();
        values
    }
}

impl Sketcher for ModM {
    type Value = u64;

    fn sketch_into(&self, shingles: &[u64], out: &mut Vec<u64>) {
        *out = self.values(shingles, |value| value % self.m == 0);
    }

    fn estimate(&self, a: &[u64], b: &[u64]) -> Option<f64> {
        let n_common = n_common(a, b);
        let n_union = a.len() + b.len() - n_common;
        (n_union > 0).then(|| n_common as f64 / n_union as f64)
    }
}

impl Mergeable for ModM {
    fn merge(&self, a: &[u64], b: &[u64]) -> Vec<u64> {
        let mut union = [a, b].concat();
        union.sort_unstable();
        union.dedup();
        union
    }
}

fn n_common(a: &[u64], b: &[u64]) -> usize {
    a.iter()
        .filter(|value| b.binary_search(value).is_ok())
        .count()
}
