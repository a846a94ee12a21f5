//! Minima of the bins of one permutation.
//!
//! The distribution into bins is scalar. The mixing before it is vectorized, one batch at a time.

use crate::mix::mix;

/// Shingles mixed at once.
const BATCH: usize = 256;

/// Lowers each bin to the smallest value that falls into it. A shingle's bin and value are the high
/// and the low half of `mix(shingle ^ seed) * bins.len()`; values stay below `u64::MAX`.
pub(crate) fn lower_bins(shingles: &[u64], seed: u64, bins: &mut [u64]) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512dq") && is_x86_feature_detected!("bmi2") {
        // SAFETY: the processor has AVX-512 DQ, which implies F, and BMI2, as just checked.
        return unsafe { lower_bins_avx512(shingles, seed, bins) };
    }
    lower_bins_portable(shingles, seed, bins);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,bmi2")]
fn lower_bins_avx512(shingles: &[u64], seed: u64, bins: &mut [u64]) {
    lower_bins_portable(shingles, seed, bins);
}

#[inline(always)]
fn lower_bins_portable(shingles: &[u64], seed: u64, bins: &mut [u64]) {
    let mut mixed = [0; BATCH];
    for batch in shingles.chunks(BATCH) {
        for (mixed, &shingle) in mixed.iter_mut().zip(batch) {
            *mixed = mix(shingle ^ seed);
        }
        for &mixed in &mixed[..batch.len()] {
            let product = u128::from(mixed) * bins.len() as u128;
            let bin = &mut bins[(product >> 64) as usize];
            *bin = (product as u64).min(u64::MAX - 1).min(*bin);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mix::SplitMix;

    #[test]
    fn chosen_equals_portable() {
        let mut random = SplitMix::new(1);
        for (n_shingles, t) in [(1, 1), (255, 84), (257, 128), (10_000, 1000)] {
            let shingles: Vec<u64> = (0..n_shingles).map(|_| random.next_u64()).collect();
            let (mut chosen, mut portable) = (vec![u64::MAX; t], vec![u64::MAX; t]);
            lower_bins(&shingles, 42, &mut chosen);
            lower_bins_portable(&shingles, 42, &mut portable);
            assert_eq!(chosen, portable);
        }
    }
}
