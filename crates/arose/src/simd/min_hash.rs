//! Minima of many 32-bit permutations over one set.
//!
//! The naive loop loads, lowers and stores every minimum for every shingle. Here the minima of a
//! block of permutations stay in registers, with their factors, while a batch of shingles is
//! processed. The batch is small enough to stay in the first-level cache until all blocks have
//! processed it.

use crate::mix::mix;

/// The number of permutations is a multiple of this.
pub(crate) const GRAIN: usize = 4;

/// Lanes of the widest vector.
const LANES: usize = 16;

/// Shingles per batch.
const BATCH: usize = 1024;

/// Returns the high half of a mixed shingle, with 1 instead of 0. Zero times any factor is zero, so
/// one shingle would be the minimum of every permutation.
#[inline(always)]
pub(crate) fn narrow(shingle: u64) -> u32 {
    ((mix(shingle) >> 32) as u32).max(1)
}

/// Lowers each `minima[i]` to the smallest `factors[i] * x` over the narrowed shingles `x`. Both
/// lists have the same length, a multiple of [`GRAIN`].
pub(crate) fn lower_minima(shingles: &[u64], factors: &[u32], minima: &mut [u32]) {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512dq") {
            // SAFETY: the processor has AVX-512, as just checked.
            return unsafe { lower_minima_avx512(shingles, factors, minima) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2, as just checked.
            return unsafe { lower_minima_avx2(shingles, factors, minima) };
        }
    }
    lower_minima_portable(shingles, factors, minima);
}

/// Sixteen lanes in each of 32 registers: blocks of 128 permutations take half.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq")]
fn lower_minima_avx512(shingles: &[u64], factors: &[u32], minima: &mut [u32]) {
    lower_by_batches(shingles, factors, minima, |batch, factors, minima| {
        let (factors, minima) = lower_blocks::<128>(batch, factors, minima);
        // Most of the 84 permutations of the literature; the other four are processed in parallel.
        let (factors, minima) = lower_blocks::<80>(batch, factors, minima);
        let (factors, minima) = lower_blocks::<64>(batch, factors, minima);
        let (factors, minima) = lower_blocks::<32>(batch, factors, minima);
        lower_rest(batch, factors, minima);
    });
}

/// Eight lanes in each of 16 registers: blocks of 32 permutations take half.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn lower_minima_avx2(shingles: &[u64], factors: &[u32], minima: &mut [u32]) {
    lower_by_batches(shingles, factors, minima, |batch, factors, minima| {
        let (factors, minima) = lower_blocks::<32>(batch, factors, minima);
        lower_rest(batch, factors, minima);
    });
}

fn lower_minima_portable(shingles: &[u64], factors: &[u32], minima: &mut [u32]) {
    lower_by_batches(shingles, factors, minima, lower_rest);
}

#[inline(always)]
fn lower_by_batches(
    shingles: &[u64],
    factors: &[u32],
    minima: &mut [u32],
    lower: impl Fn(&[u32], &[u32], &mut [u32]),
) {
    let mut mixed = [0; BATCH];
    for batch in shingles.chunks(BATCH) {
        for (mixed, &shingle) in mixed.iter_mut().zip(batch) {
            *mixed = narrow(shingle);
        }
        lower(&mixed[..batch.len()], factors, minima);
    }
}

/// Lowers the minima of as many whole blocks of `N` permutations as there are; returns the rest.
#[inline(always)]
fn lower_blocks<'a, const N: usize>(
    xs: &[u32],
    factors: &'a [u32],
    minima: &'a mut [u32],
) -> (&'a [u32], &'a mut [u32]) {
    let (factors, factors_rest) = factors.as_chunks::<N>();
    let (minima, minima_rest) = minima.as_chunks_mut::<N>();
    for (factors, minima) in factors.iter().zip(minima) {
        lower_block(xs, factors, minima);
    }
    (factors_rest, minima_rest)
}

/// Lowers the minima that remain after the large blocks.
#[inline(always)]
fn lower_rest(xs: &[u32], factors: &[u32], minima: &mut [u32]) {
    let (factors, minima) = lower_blocks::<LANES>(xs, factors, minima);
    let (factors, _) = factors.as_chunks();
    let (minima, _) = minima.as_chunks_mut();
    for (factors, minima) in factors.iter().zip(minima) {
        lower_side_by_side(xs, factors, minima);
    }
}

/// Lowers the minima of a few permutations, too few for a vector, over several shingles at once.
#[inline(always)]
fn lower_side_by_side(xs: &[u32], factors: &[u32; GRAIN], minima: &mut [u32; GRAIN]) {
    let repeated: [u32; LANES] = std::array::from_fn(|lane| factors[lane % GRAIN]);
    let mut least = [u32::MAX; LANES];
    let (groups, rest) = xs.as_chunks::<{ LANES / GRAIN }>();
    for group in groups {
        for lane in 0..LANES {
            least[lane] = least[lane].min(repeated[lane].wrapping_mul(group[lane / GRAIN]));
        }
    }
    for lane in 0..LANES {
        minima[lane % GRAIN] = minima[lane % GRAIN].min(least[lane]);
    }
    lower_block(rest, factors, minima);
}

#[inline(always)]
fn lower_block<const N: usize>(xs: &[u32], factors: &[u32; N], minima: &mut [u32; N]) {
    let mut least = *minima;
    for &x in xs {
        for lane in 0..N {
            least[lane] = least[lane].min(factors[lane].wrapping_mul(x));
        }
    }
    *minima = least;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mix::SplitMix;

    /// Every version that this processor can run gives the result of the portable one.
    #[test]
    fn all_versions_agree() {
        let mut random = SplitMix::new(1);
        let mut draw = |n| -> Vec<u64> { (0..n).map(|_| random.next_u64()).collect() };
        for (n_shingles, t) in [
            (1, 4),
            (3, 12),
            (100, 84),
            (1023, 128),
            (1025, 116),
            (5000, 208),
            (1000, 160),
        ] {
            let shingles = draw(n_shingles);
            let factors: Vec<u32> = draw(t).iter().map(|&x| x as u32 | 1).collect();
            let mut expected = vec![u32::MAX; t];
            lower_minima_portable(&shingles, &factors, &mut expected);
            let check = |version: &dyn Fn(&mut [u32])| {
                let mut minima = vec![u32::MAX; t];
                version(&mut minima);
                assert_eq!(minima, expected);
            };
            check(&|minima| lower_minima(&shingles, &factors, minima));
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx2") {
                // SAFETY: the processor has AVX2, as just checked.
                check(&|minima| unsafe { lower_minima_avx2(&shingles, &factors, minima) });
            }
        }
    }
}
