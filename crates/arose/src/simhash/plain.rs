//! The reference implementation, as defined in the literature: one counter per bit.
//!
//! It is the oracle that the optimized projection must equal bit for bit, and the method for
//! real-valued weights, which do not fit bit-sliced counters. It takes `64 W` additions per
//! feature, about 350 ns for 384 bits.

use super::{Fingerprint, Weight};
use crate::simd::project::phi;

/// Returns the fingerprint of `features`, each occurrence of weight 1; none without features.
#[must_use]
pub(crate) fn fingerprint<const W: usize>(features: &[u64]) -> Option<Fingerprint<W>> {
    weighted(features.iter().map(|&feature| (feature, Weight::ONE)))
}

/// Returns the fingerprint of features with weights; those of one feature add up.
///
/// None if no weight is above zero: sums of zero would make all such documents similar. The sums
/// are integers, so their order does not matter, and cannot overflow below `2^31` features.
#[must_use]
pub(crate) fn weighted<const W: usize>(
    features: impl IntoIterator<Item = (u64, Weight)>,
) -> Option<Fingerprint<W>> {
    let mut sums = [[0_i64; 64]; W];
    let mut total = 0;
    for (feature, weight) in features {
        let weight = i64::from(weight.to_fixed());
        total += weight;
        for (j, sums) in sums.iter_mut().enumerate() {
            add(sums, phi(feature, j), weight);
        }
    }
    (total > 0).then(|| Fingerprint(sums.map(|sums| signs(&sums))))
}

/// Adds `weight` where a bit of `phi` is set and subtracts it elsewhere.
fn add(sums: &mut [i64; 64], phi: u64, weight: i64) {
    for (i, sum) in sums.iter_mut().enumerate() {
        *sum += if phi >> i & 1 == 1 { weight } else { -weight };
    }
}

/// Sets the bits whose sum is above zero.
fn signs(sums: &[i64; 64]) -> u64 {
    let bits = sums.iter().enumerate();
    bits.fold(0, |word, (i, &sum)| word | u64::from(sum > 0) << i)
}
