//! ASCII text with one space for each gap, 64 bytes at a time.
//!
//! Each block becomes a mask of its whitespace. If no two bytes of whitespace are adjacent, which
//! is nearly always the case, the block is copied with spaces in their places. Otherwise the bytes
//! to keep are moved together.

use super::ascii::BLOCK;

/// Copies `text` to `room` with one space for each run of whitespace; a run at the beginning is
/// omitted if `in_gap` is set. Afterwards `in_gap` says whether the last byte is whitespace. Stops
/// before the ASCII character that precedes the first non-ASCII one, or if less than [`BLOCK`]
/// bytes of space are left. Returns the numbers of bytes read and written.
pub(crate) fn collapse(text: &[u8], in_gap: &mut bool, room: &mut [u8]) -> (usize, usize) {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vbmi2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("popcnt")
        {
            // SAFETY: the processor has the features the function is compiled for, as just checked.
            return unsafe { collapse_avx512(text, in_gap, room) };
        }
        if is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("popcnt")
        {
            // SAFETY: as above.
            return unsafe { collapse_avx2(text, in_gap, room) };
        }
    }
    collapse_by(text, in_gap, room, spaced_portable, pack)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,bmi1,popcnt")]
fn collapse_avx512(text: &[u8], in_gap: &mut bool, room: &mut [u8]) -> (usize, usize) {
    let spaced = |block: &mut [u8; BLOCK]| wide::spaced_avx512(block);
    let pack = |block: &[u8; BLOCK], kept, out: &mut [u8; BLOCK]| {
        wide::pack_avx512(block, kept, out);
    };
    collapse_by(text, in_gap, room, spaced, pack)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,popcnt")]
fn collapse_avx2(text: &[u8], in_gap: &mut bool, room: &mut [u8]) -> (usize, usize) {
    let spaced = |block: &mut [u8; BLOCK]| wide::spaced_avx2(block);
    collapse_by(text, in_gap, room, spaced, pack)
}

/// One bit per byte of a block, the first byte lowest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Marks {
    /// Spaces, tabs and line ends.
    gaps: u64,
    /// Bytes of 128 and above.
    non_ascii: u64,
}

#[inline(always)]
fn collapse_by(
    text: &[u8],
    in_gap: &mut bool,
    room: &mut [u8],
    spaced: impl Fn(&mut [u8; BLOCK]) -> Marks,
    pack: impl Fn(&[u8; BLOCK], u64, &mut [u8; BLOCK]),
) -> (usize, usize) {
    let (mut n_read, mut n_written) = (0, 0);
    while let rest = &text[n_read..]
        && !rest.is_empty()
        && let Some(out) = room[n_written..].first_chunk_mut()
    {
        let mut block = rest.first_chunk().copied().unwrap_or_else(|| filled(rest));
        let Marks { gaps, non_ascii } = spaced(&mut block);
        let n_ascii = match rest.get(BLOCK) {
            _ if non_ascii != 0 => non_ascii.trailing_zeros() as usize,
            Some(next) if !next.is_ascii() => BLOCK,
            Some(_) => BLOCK + 1,
            None => rest.len() + 1,
        };
        let n = n_ascii.saturating_sub(1);
        if n == 0 {
            break;
        }
        let is_taken = u64::MAX >> (BLOCK - n);
        let doubled = gaps & (gaps << 1 | u64::from(*in_gap)) & is_taken;
        match doubled {
            0 => *out = block,
            _ => pack(&block, !doubled & is_taken, out),
        }
        *in_gap = gaps >> (n - 1) & 1 == 1;
        n_read += n;
        n_written += n - doubled.count_ones() as usize;
    }
    (n_read, n_written)
}

/// Returns the last bytes of a text, padded with non-whitespace.
#[cold]
fn filled(rest: &[u8]) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    block[..rest.len()].copy_from_slice(rest);
    block
}

/// Replaces each byte of whitespace by a space.
fn spaced_portable(block: &mut [u8; BLOCK]) -> Marks {
    let (mut gaps, mut non_ascii) = (0, 0);
    for (i, byte) in block.iter_mut().enumerate() {
        let is_gap = matches!(byte, b' ' | b'\t'..=b'\r');
        gaps |= u64::from(is_gap) << i;
        non_ascii |= u64::from(!byte.is_ascii()) << i;
        *byte = if is_gap { b' ' } else { *byte };
    }
    Marks { gaps, non_ascii }
}

/// Moves the bytes to keep together. The bytes after them are arbitrary.
#[inline(always)]
fn pack(block: &[u8; BLOCK], kept: u64, out: &mut [u8; BLOCK]) {
    let mut n = 0;
    // Without branches, and without writing beyond the last byte.
    for (i, &byte) in block.iter().enumerate() {
        out[n % BLOCK] = byte;
        n += (kept >> i & 1) as usize;
    }
}

#[cfg(target_arch = "x86_64")]
mod wide {
    use super::{BLOCK, Marks};
    use std::arch::x86_64::*;

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) fn spaced_avx512(block: &mut [u8; BLOCK]) -> Marks {
        // SAFETY: the bytes read are those of `block`, and the load requires no alignment.
        let bytes = unsafe { _mm512_loadu_si512(block.as_ptr().cast()) };
        let space = _mm512_set1_epi8(b' ' as i8);
        let shifted = _mm512_sub_epi8(bytes, _mm512_set1_epi8(b'\t' as i8));
        let gaps = _mm512_cmplt_epu8_mask(shifted, _mm512_set1_epi8(5))
            | _mm512_cmpeq_epi8_mask(bytes, space);
        let spaced = _mm512_mask_mov_epi8(bytes, gaps, space);
        // SAFETY: as above, of what is written.
        unsafe { _mm512_storeu_si512(block.as_mut_ptr().cast(), spaced) };
        Marks {
            gaps,
            non_ascii: _mm512_movepi8_mask(bytes),
        }
    }

    /// As [`super::pack`].
    #[inline]
    #[target_feature(enable = "avx512f,avx512vbmi2")]
    pub(super) fn pack_avx512(block: &[u8; BLOCK], kept: u64, out: &mut [u8; BLOCK]) {
        // SAFETY: both the load and the store are of the 64 bytes of an array, at any alignment.
        unsafe {
            let bytes = _mm512_loadu_si512(block.as_ptr().cast());
            let packed = _mm512_maskz_compress_epi8(kept, bytes);
            _mm512_storeu_si512(out.as_mut_ptr().cast(), packed);
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn spaced_avx2(block: &mut [u8; BLOCK]) -> Marks {
        let (halves, _) = block.as_chunks_mut::<32>();
        let [low, high] = halves else {
            unreachable!("a block has two halves");
        };
        let [low, high] = [spaced_half(low), spaced_half(high)];
        Marks {
            gaps: u64::from(low.0) | u64::from(high.0) << 32,
            non_ascii: u64::from(low.1) | u64::from(high.1) << 32,
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn spaced_half(half: &mut [u8; 32]) -> (u32, u32) {
        // SAFETY: the 32 bytes read are those of `half`, and the load requires no alignment.
        let bytes = unsafe { _mm256_loadu_si256(half.as_ptr().cast()) };
        let space = _mm256_set1_epi8(b' ' as i8);
        // After a shift down to the smallest signed values, one comparison tests both ends.
        let shifted = _mm256_add_epi8(bytes, _mm256_set1_epi8((0x80 - b'\t') as i8));
        let controls = _mm256_cmpgt_epi8(_mm256_set1_epi8(0x85_u8 as i8), shifted);
        let gaps = _mm256_or_si256(controls, _mm256_cmpeq_epi8(bytes, space));
        let spaced = _mm256_blendv_epi8(bytes, space, gaps);
        // SAFETY: as above, of what is written.
        unsafe { _mm256_storeu_si256(half.as_mut_ptr().cast(), spaced) };
        let mask = |bytes| _mm256_movemask_epi8(bytes) as u32;
        (mask(gaps), mask(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Collapse = unsafe fn(&[u8], &mut bool, &mut [u8]) -> (usize, usize);

    fn portable(text: &[u8], in_gap: &mut bool, room: &mut [u8]) -> (usize, usize) {
        collapse_by(text, in_gap, room, spaced_portable, pack)
    }

    /// Every version that this processor can run.
    fn versions() -> Vec<Collapse> {
        let mut versions: Vec<Collapse> = vec![portable, collapse];
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            versions.push(collapse_avx2);
        }
        versions
    }

    #[test]
    fn all_bytes_at_all_positions() {
        for byte in 0..=255 {
            for position in 0..BLOCK {
                let mut block = [b'x'; BLOCK];
                block[position] = byte;
                let is_gap = byte == b' ' || (b'\t'..=b'\r').contains(&byte);
                let marks = spaced_portable(&mut block);
                assert_eq!(marks.gaps, u64::from(is_gap) << position);
                assert_eq!(marks.non_ascii, u64::from(byte >= 128) << position);
                assert_eq!(block[position], if is_gap { b' ' } else { byte });
            }
        }
    }

    proptest! {
        #[test]
        fn all_versions_agree(
            text in "[a-c \n\t~]{0,300}(é[a-c \n]{0,80}){0,2}",
            in_gap: bool,
            n_room in 0_usize..500,
        ) {
            let run = |collapse: Collapse| {
                let (mut in_gap, mut room) = (in_gap, vec![0; n_room]);
                // SAFETY: the processor has what the version needs, as checked above.
                let (n_read, n) = unsafe { collapse(text.as_bytes(), &mut in_gap, &mut room) };
                room.truncate(n);
                (n_read, room, in_gap)
            };
            let (n_read, written, is_gap) = run(portable);
            let (mut plain, mut was_gap) = (Vec::new(), in_gap);
            for byte in text.bytes().take(n_read) {
                let is_gap = byte.is_ascii_whitespace();
                if !(is_gap && was_gap) {
                    plain.push(if is_gap { b' ' } else { byte });
                }
                was_gap = is_gap;
            }
            prop_assert_eq!((&written, is_gap), (&plain, was_gap));
            let first = text.bytes().position(|byte| !byte.is_ascii());
            let n_ascii = first.map_or(text.len(), |first| first.saturating_sub(1));
            prop_assert!(n_read == n_ascii || n_room - written.len() < BLOCK);
            for version in versions() {
                prop_assert_eq!(run(version), (n_read, written.clone(), is_gap));
            }
        }
    }
}
