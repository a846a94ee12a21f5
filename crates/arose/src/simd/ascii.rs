//! Boundaries of words in ASCII text, 64 bytes at a time.
//!
//! Each block becomes two masks: bytes that are letters or digits, and bytes that are not ASCII. A
//! word begins or ends where the first mask changes.

/// Bytes classified at once.
pub(super) const BLOCK: usize = 64;

/// Calls `emit(start, end)` for each run of ASCII letters and digits, up to the run that contains
/// the first non-ASCII byte. Returns the beginning of that run, or of that byte (the length of
/// `bytes` if all of it is ASCII).
#[inline]
pub(crate) fn words(bytes: &[u8], emit: impl FnMut(usize, usize)) -> usize {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
    {
        // SAFETY: the processor has the features the function is compiled for, as just checked.
        return unsafe { words_avx2(bytes, emit) };
    }
    words_by(bytes, masks_portable, emit)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn words_avx2(bytes: &[u8], emit: impl FnMut(usize, usize)) -> usize {
    words_by(bytes, |block| masks_avx2(block), emit)
}

/// One bit per byte of a block, the first byte lowest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Masks {
    /// `0-9`, `A-Z`, `a-z`.
    pub(super) alphanumeric: u64,
    /// Bytes of 128 and above.
    pub(super) non_ascii: u64,
}

#[inline(always)]
fn words_by(
    bytes: &[u8],
    masks: impl Fn(&[u8; BLOCK]) -> Masks,
    mut emit: impl FnMut(usize, usize),
) -> usize {
    let mut word_start = None;
    let mut block_start = 0;
    while block_start < bytes.len() {
        let Masks {
            alphanumeric,
            non_ascii,
        } = match bytes[block_start..].first_chunk() {
            Some(block) => masks(block),
            None => masks(&padded(&bytes[block_start..])),
        };
        let inside = u64::from(word_start.is_some());
        let mut edges = alphanumeric ^ (alphanumeric << 1 | inside);
        if non_ascii != 0 {
            edges &= (non_ascii & non_ascii.wrapping_neg()) - 1;
        }
        if let (Some(start), true) = (word_start, edges != 0) {
            emit(start, block_start + edges.trailing_zeros() as usize);
            word_start = None;
            edges &= edges - 1;
        }
        while edges != 0 {
            let start = block_start + edges.trailing_zeros() as usize;
            edges &= edges - 1;
            if edges == 0 {
                word_start = Some(start);
                break;
            }
            emit(start, block_start + edges.trailing_zeros() as usize);
            edges &= edges - 1;
        }
        if non_ascii != 0 {
            return word_start.unwrap_or(block_start + non_ascii.trailing_zeros() as usize);
        }
        block_start += BLOCK;
    }
    if let Some(start) = word_start {
        emit(start, bytes.len());
    }
    bytes.len()
}

/// Returns the last bytes of a text, padded with spaces.
#[cold]
pub(super) fn padded(rest: &[u8]) -> [u8; BLOCK] {
    let mut block = [b' '; BLOCK];
    block[..rest.len()].copy_from_slice(rest);
    block
}

/// Eight bytes at a time inside a 64-bit word.
pub(super) fn masks_portable(block: &[u8; BLOCK]) -> Masks {
    let mut masks = Masks {
        alphanumeric: 0,
        non_ascii: 0,
    };
    let (words, _) = block.as_chunks::<8>();
    for (index, &bytes) in words.iter().enumerate() {
        let word = u64::from_le_bytes(bytes);
        masks.alphanumeric |= alphanumeric_of_word(word) << (8 * index);
        masks.non_ascii |= high_bits(word) << (8 * index);
    }
    masks
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x80 * ONES;

fn alphanumeric_of_word(word: u64) -> u64 {
    // Without their high bits, bytes can be added without a carry into the next.
    let low = word & !HIGH;
    let in_range = |bytes: u64, first: u8, last: u8| {
        let at_least_first = bytes + ONES * u64::from(0x80 - first);
        let above_last = bytes + ONES * u64::from(0x7F - last);
        at_least_first & !above_last
    };
    high_bits((in_range(low, b'0', b'9') | in_range(low | (0x20 * ONES), b'a', b'z')) & !word)
}

/// Gathers the high bit of each of eight bytes.
fn high_bits(word: u64) -> u64 {
    ((word & HIGH) >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
pub(super) fn masks_avx2(block: &[u8; BLOCK]) -> Masks {
    let (halves, _) = block.as_chunks::<32>();
    let [low, high] = [masks_of_half(&halves[0]), masks_of_half(&halves[1])];
    Masks {
        alphanumeric: u64::from(low.0) | u64::from(high.0) << 32,
        non_ascii: u64::from(low.1) | u64::from(high.1) << 32,
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn masks_of_half(half: &[u8; 32]) -> (u32, u32) {
    use std::arch::x86_64::*;
    // SAFETY: the 32 bytes read are those of `half`, and the load requires no alignment.
    let bytes = unsafe { _mm256_loadu_si256(half.as_ptr().cast()) };
    // Shift the wanted range down to the smallest signed values; then one comparison tests both
    // ends.
    let in_range = |bytes, first: u8, n: u8| {
        let shifted = _mm256_add_epi8(bytes, _mm256_set1_epi8((0x80_u8).wrapping_sub(first) as i8));
        _mm256_cmpgt_epi8(_mm256_set1_epi8((0x80 + n) as i8), shifted)
    };
    let lower = _mm256_or_si256(bytes, _mm256_set1_epi8(0x20));
    let alphanumeric = _mm256_or_si256(in_range(bytes, b'0', 10), in_range(lower, b'a', 26));
    (
        _mm256_movemask_epi8(alphanumeric) as u32,
        _mm256_movemask_epi8(bytes) as u32,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn masks_naive(block: &[u8; BLOCK]) -> Masks {
        let gather = |test: fn(&u8) -> bool| {
            block
                .iter()
                .rev()
                .fold(0, |mask, byte| mask << 1 | u64::from(test(byte)))
        };
        Masks {
            alphanumeric: gather(u8::is_ascii_alphanumeric),
            non_ascii: gather(|byte| !byte.is_ascii()),
        }
    }

    /// Every byte value at every position of a block.
    #[test]
    fn all_bytes_at_all_positions() {
        for byte in 0..=255 {
            for position in 0..BLOCK {
                let mut block = [b' '; BLOCK];
                block[position] = byte;
                check_masks(&block);
            }
        }
    }

    #[track_caller]
    fn check_masks(block: &[u8; BLOCK]) {
        assert_eq!(masks_portable(block), masks_naive(block), "{block:?}");
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2, as just checked.
            let fast = unsafe { masks_avx2(block) };
            assert_eq!(fast, masks_naive(block), "{block:?}");
        }
    }

    proptest! {
        #[test]
        fn any_block(bytes in prop::collection::vec(any::<u8>(), BLOCK)) {
            check_masks(bytes.first_chunk().unwrap());
        }

        #[test]
        fn portable_words_equal_fast_words(text in "[ -~é]{0,300}") {
            let (mut fast, mut portable) = (Vec::new(), Vec::new());
            let fast_end = words(text.as_bytes(), |start, end| fast.push((start, end)));
            let portable_end =
                words_by(text.as_bytes(), masks_portable, |start, end| portable.push((start, end)));
            prop_assert_eq!((fast, fast_end), (portable, portable_end));
        }
    }
}
