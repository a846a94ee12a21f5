//! Minima of many 32-bit permutations over one set.

use crate::mix::mix;

/// Permutations whose minima, factors and offsets stay in registers together: three times four
/// vectors of eight lanes, of the sixteen that AVX2 has.
const LANES: usize = 32;

/// Shingles mixed at once; small enough to stay in the first cache while all permutations go by.
const BATCH: usize = 1024;

/// Lowers each `minima[i]` to the least `factors[i] * x + offsets[i]` over the high halves `x` of
/// the mixed shingles. The three lists are of equal length.
pub(crate) fn lower_minima(shingles: &[u64], factors: &[u32], offsets: &[u32], minima: &mut [u32]) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2, as just checked.
        return unsafe { lower_minima_avx2(shingles, factors, offsets, minima) };
    }
    lower_minima_by_blocks(shingles, factors, offsets, minima);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn lower_minima_avx2(shingles: &[u64], factors: &[u32], offsets: &[u32], minima: &mut [u32]) {
    lower_minima_by_blocks(shingles, factors, offsets, minima);
}

#[inline(always)]
fn lower_minima_by_blocks(shingles: &[u64], factors: &[u32], offsets: &[u32], minima: &mut [u32]) {
    let mut mixed = [0; BATCH];
    for batch in shingles.chunks(BATCH) {
        for (mixed, &shingle) in mixed.iter_mut().zip(batch) {
            *mixed = (mix(shingle) >> 32) as u32;
        }
        let mixed = &mixed[..batch.len()];
        let mut done = 0;
        for width in [LANES, LANES / 2, LANES / 4, 1] {
            let until = minima.len() - (minima.len() - done) % width;
            let blocks = minima[done..until].chunks_exact_mut(width);
            let parameters = factors[done..until]
                .chunks_exact(width)
                .zip(offsets[done..until].chunks_exact(width));
            for (minima, (factors, offsets)) in blocks.zip(parameters) {
                match width {
                    LANES => lower_block::<LANES>(mixed, factors, offsets, minima),
                    16 => lower_block::<16>(mixed, factors, offsets, minima),
                    8 => lower_block::<8>(mixed, factors, offsets, minima),
                    _ => lower_block::<1>(mixed, factors, offsets, minima),
                }
            }
            done = until;
        }
    }
}

#[inline(always)]
fn lower_block<const N: usize>(xs: &[u32], factors: &[u32], offsets: &[u32], minima: &mut [u32]) {
    let array = |list: &[u32]| -> [u32; N] { std::array::from_fn(|lane| list[lane]) };
    let (factors, offsets) = (array(factors), array(offsets));
    let mut least = array(minima);
    for &x in xs {
        for lane in 0..N {
            let value = factors[lane].wrapping_mul(x).wrapping_add(offsets[lane]);
            least[lane] = least[lane].min(value);
        }
    }
    minima.copy_from_slice(&least);
}
