//! First elements of many weighted orders over one set.
//!
//! An element of weight `w` has the position `h / w` in an order, where `h` is its hash. The first
//! element is the one with the smallest position. As in [`min_hash`](super::min_hash), the first
//! elements of a block of orders stay in registers while all elements are processed.

use super::min_hash::narrow;

/// The number of orders is a multiple of this.
pub(crate) const LANES: usize = 16;

/// An element that weighs less than 1, ready to be sketched.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Element {
    /// Narrowed, and not zero.
    hash: u32,
    /// The inverse of its weight.
    stretch: f32,
}

impl Element {
    /// Creates an element with its weight.
    #[must_use]
    pub fn new(element: u64, weight: f64) -> Self {
        Self {
            hash: narrow(element),
            stretch: (1.0 / weight) as f32,
        }
    }
}

/// Replaces each `firsts[i]` by the hash of the first element in the order of `factors[i]`, if an
/// element precedes it. `firsts[i]` itself is the hash of an element of weight 1, or `u32::MAX` for
/// none. Both lists have the same length, a multiple of [`LANES`].
pub(crate) fn find_firsts(elements: &[Element], factors: &[u32], firsts: &mut [u32]) {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512dq") {
            // SAFETY: the processor has AVX-512, as just checked.
            return unsafe { find_firsts_avx512(elements, factors, firsts) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2, as just checked.
            return unsafe { find_firsts_avx2(elements, factors, firsts) };
        }
    }
    find_firsts_portable(elements, factors, firsts);
}

/// Blocks of 96 orders take 18 of the 32 registers.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq")]
fn find_firsts_avx512(elements: &[Element], factors: &[u32], firsts: &mut [u32]) {
    let (factors, firsts) = find_blocks::<96>(elements, factors, firsts);
    let (factors, firsts) = find_blocks::<64>(elements, factors, firsts);
    find_blocks::<LANES>(elements, factors, firsts);
}

/// Blocks of 32 orders take 12 of the 16 registers.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn find_firsts_avx2(elements: &[Element], factors: &[u32], firsts: &mut [u32]) {
    let (factors, firsts) = find_blocks::<32>(elements, factors, firsts);
    find_blocks::<LANES>(elements, factors, firsts);
}

fn find_firsts_portable(elements: &[Element], factors: &[u32], firsts: &mut [u32]) {
    find_blocks::<LANES>(elements, factors, firsts);
}

/// Finds the first elements of as many whole blocks of `N` orders as there are; returns the rest.
#[inline(always)]
fn find_blocks<'a, const N: usize>(
    elements: &[Element],
    factors: &'a [u32],
    firsts: &'a mut [u32],
) -> (&'a [u32], &'a mut [u32]) {
    let (factors, factors_rest) = factors.as_chunks::<N>();
    let (firsts, firsts_rest) = firsts.as_chunks_mut::<N>();
    for (factors, firsts) in factors.iter().zip(firsts) {
        find_block(elements, factors, firsts);
    }
    (factors_rest, firsts_rest)
}

#[inline(always)]
fn find_block<const N: usize>(elements: &[Element], factors: &[u32; N], firsts: &mut [u32; N]) {
    let mut found = *firsts;
    let mut least = found.map(|hash| match hash {
        u32::MAX => f32::INFINITY,
        _ => (hash >> 1) as i32 as f32,
    });
    for element in elements {
        for lane in 0..N {
            let hash = factors[lane].wrapping_mul(element.hash);
            // Vector instructions convert only signed numbers.
            let place = (hash >> 1) as i32 as f32 * element.stretch;
            let is_before = place < least[lane];
            least[lane] = if is_before { place } else { least[lane] };
            found[lane] = if is_before { hash } else { found[lane] };
        }
    }
    *firsts = found;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mix::SplitMix;

    /// Every version that this processor can run gives the result of the portable one.
    #[test]
    fn all_versions_agree() {
        let mut random = SplitMix::new(1);
        for (n_elements, t) in [(0, 16), (1, 16), (100, 96), (430, 160), (1025, 240)] {
            let elements: Vec<Element> = (0..n_elements)
                .map(|_| Element {
                    hash: random.next_u64() as u32 | 1,
                    stretch: 1.0 + random.below(100) as f32,
                })
                .collect();
            let factors: Vec<u32> = (0..t).map(|_| random.next_u64() as u32 | 1).collect();
            let start: Vec<u32> = (0..t).map(|i| [u32::MAX, 1 << 26][i % 2]).collect();
            let mut expected = start.clone();
            find_firsts_portable(&elements, &factors, &mut expected);
            let check = |version: &dyn Fn(&mut [u32])| {
                let mut firsts = start.clone();
                version(&mut firsts);
                assert_eq!(firsts, expected);
            };
            check(&|firsts| find_firsts(&elements, &factors, firsts));
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx2") {
                // SAFETY: the processor has AVX2, as just checked.
                check(&|firsts| unsafe { find_firsts_avx2(&elements, &factors, firsts) });
            }
        }
    }
}
