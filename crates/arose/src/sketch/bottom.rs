//! Kind 2: the `s` smallest values of one permutation.

use std::num::NonZeroU16;

use super::{Mergeable, Sketcher};
use crate::mix::mix;

/// The `s` smallest values of one permutation (Broder's MIN_s), ascending.
///
/// The estimate takes the `s` smallest values of the *union* and counts those that are in both
/// sketches. Dividing the number of shared values by `s`, or by the size of their union, would be
/// biased. The variance is `J (1 - J) / s * (N - s) / (N - 1)` for a union of `N` elements; with
/// `N <= s` the result is exact.
///
/// ```
/// use arose::sketch::{BottomS, Sketcher};
/// let sketcher = BottomS::new(100.try_into()?, 1);
/// let (a, b) = (sketcher.sketch(&[1, 3, 4]), sketcher.sketch(&[2, 3, 5]));
/// assert_eq!(sketcher.estimate(&a, &b), Some(1.0 / 5.0));
/// # Ok::<(), std::num::TryFromIntError>(())
/// ```
#[derive(Debug, Clone)]
pub struct BottomS {
    s: usize,
    seed: u64,
}

impl BottomS {
    /// Creates a sketcher of the `s` smallest values under the permutation of `seed`.
    #[must_use]
    pub fn new(s: NonZeroU16, seed: u64) -> Self {
        Self {
            s: s.get().into(),
            seed: mix(seed),
        }
    }
}

impl Sketcher for BottomS {
    type Value = u64;

    fn sketch_into(&self, shingles: &[u64], out: &mut Vec<u64>) {
        out.clear();
        // Values are collected in a buffer of twice the size. When it is full, the lower half is
        // kept, and its greatest value becomes a limit that rejects most later values.
        let (s, mut bar) = (self.s, u64::MAX);
        for &x in shingles {
            let value = mix(x ^ self.seed);
            if value <= bar {
                out.push(value);
                if out.len() >= 2 * s + 64 {
                    keep_smallest(out, s);
                    bar = if out.len() == s { out[s - 1] } else { u64::MAX };
                }
            }
        }
        keep_smallest(out, s);
    }

    fn estimate(&self, a: &[u64], b: &[u64]) -> Option<f64> {
        let union = self.merge(a, b);
        let in_both =
            |value: &&u64| a.binary_search(value).is_ok() && b.binary_search(value).is_ok();
        let comparable = !a.is_empty() && !b.is_empty();
        comparable.then(|| union.iter().filter(in_both).count() as f64 / union.len() as f64)
    }
}

impl Mergeable for BottomS {
    fn merge(&self, a: &[u64], b: &[u64]) -> Vec<u64> {
        let mut union = [a, b].concat();
        keep_smallest(&mut union, self.s);
        union
    }
}

fn keep_smallest(values: &mut Vec<u64>, s: usize) {
    values.sort_unstable();
    values.dedup();
    values.truncate(s);
}
