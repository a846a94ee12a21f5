//! Fingerprints of the words of ASCII text, a batch of words at a time.
//!
//! The naive loop finds a word, hashes it and continues. The ends of words are unpredictable, so
//! the processor mispredicts a branch every few bytes, and each hash waits for four
//! multiplications. Here the beginnings and ends of words are extracted from a mask without
//! branches, and the words of a batch are mixed in parallel.

use super::ascii::{BLOCK, Masks, masks_portable, padded};
use crate::token::{fingerprint_words, words};

/// Words hashed at once.
const BATCH: usize = 128;
/// Maximum number of words: a block has at most half as many words as bytes, and one may be open.
const MAX_WORDS: usize = BATCH + BLOCK / 2;

/// Settings for hashing words.
#[derive(Clone, Copy)]
pub(crate) struct Hashing {
    /// Bits set in each byte of a word.
    pub(crate) case_bits: u64,
    /// Hashes words that are longer than 16 bytes or begin less than 16 bytes before the end.
    pub(crate) slow: fn(&[u8]) -> u64,
}

/// Where words are put.
pub(crate) struct Found<'a> {
    /// The fingerprint of each word.
    pub(crate) tokens: &'a mut Vec<u64>,
    /// The beginning of each word in the text, if wanted.
    pub(crate) starts: Option<&'a mut Vec<u32>>,
    /// The position in the text of the bytes that are hashed.
    pub(crate) offset: usize,
}

/// Memory for the words of a batch.
pub(crate) struct Batch {
    /// The beginnings and ends of words, alternating.
    edges: [usize; 2 * BATCH + BLOCK],
    /// The first eight bytes of each word, and the next eight.
    halves: [[u64; MAX_WORDS]; 2],
    /// The words that need the slow hash.
    slow: [usize; MAX_WORDS],
}

impl Batch {
    pub(crate) const fn new() -> Self {
        Self {
            edges: [0; 2 * BATCH + BLOCK],
            halves: [[0; MAX_WORDS]; 2],
            slow: [0; MAX_WORDS],
        }
    }

    /// Appends each run of ASCII letters and digits to `found`, up to the run that contains the
    /// first non-ASCII byte. Returns the beginning of that run, or of that byte (the length of
    /// `bytes` if all of it is ASCII).
    pub(crate) fn hash(&mut self, bytes: &[u8], hashing: Hashing, found: &mut Found<'_>) -> usize {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vbmi2")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("popcnt")
            {
                // SAFETY: the processor has the features the function is compiled for, as just
                // checked.
                return unsafe { self.hash_avx512(bytes, hashing, found) };
            }
            if is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("popcnt")
            {
                // SAFETY: as above.
                return unsafe { self.hash_avx2(bytes, hashing, found) };
            }
        }
        self.hash_by(bytes, hashing, masks_portable, spread, found)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vbmi2,bmi1,bmi2,popcnt")]
    fn hash_avx512(&mut self, bytes: &[u8], hashing: Hashing, found: &mut Found<'_>) -> usize {
        let masks = |block: &[u8; BLOCK]| avx512::masks(block);
        let spread = |edges, start, places: &mut [usize; BLOCK]| {
            avx512::spread(edges, start, places);
        };
        self.hash_by(bytes, hashing, masks, spread, found)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    fn hash_avx2(&mut self, bytes: &[u8], hashing: Hashing, found: &mut Found<'_>) -> usize {
        let masks = |block: &[u8; BLOCK]| super::ascii::masks_avx2(block);
        // A closure has the features of this function and is inlined; a function passed by name is
        // called for each block.
        let spread = |edges, start, places: &mut [usize; BLOCK]| spread(edges, start, places);
        self.hash_by(bytes, hashing, masks, spread, found)
    }

    #[inline(always)]
    fn hash_by(
        &mut self,
        bytes: &[u8],
        hashing: Hashing,
        masks: impl Fn(&[u8; BLOCK]) -> Masks,
        spread: impl Fn(u64, usize, &mut [usize; BLOCK]),
        found: &mut Found<'_>,
    ) -> usize {
        let (mut n_edges, mut inside, mut start) = (0, 0, 0);
        let end = loop {
            if n_edges >= 2 * BATCH {
                self.hash_words(n_edges / 2, bytes, hashing, found);
                // The open word, which has no end yet.
                self.edges[0] = self.edges[n_edges - 1];
                n_edges %= 2;
            }
            let Some(rest) = bytes.get(start..).filter(|rest| !rest.is_empty()) else {
                self.edges[n_edges] = bytes.len();
                n_edges += n_edges % 2;
                break bytes.len();
            };
            let Masks {
                alphanumeric,
                non_ascii,
            } = match rest.first_chunk() {
                Some(block) => masks(block),
                None => masks(&padded(rest)),
            };
            // All bits, or those below the first non-ASCII byte.
            let is_before = (non_ascii & non_ascii.wrapping_neg()).wrapping_sub(1);
            let edges = (alphanumeric ^ (alphanumeric << 1 | inside)) & is_before;
            inside = alphanumeric >> (BLOCK - 1);
            if let Some(places) = self.edges[n_edges..].first_chunk_mut() {
                spread(edges, start, places);
            }
            n_edges += edges.count_ones() as usize;
            if non_ascii != 0 {
                break match n_edges % 2 {
                    0 => start + non_ascii.trailing_zeros() as usize,
                    _ => self.edges[n_edges - 1],
                };
            }
            start += BLOCK;
        };
        self.hash_words(n_edges / 2, bytes, hashing, found);
        end
    }

    #[inline(always)]
    fn hash_words(&mut self, n: usize, bytes: &[u8], hashing: Hashing, found: &mut Found<'_>) {
        let (places, _) = self.edges.as_chunks::<2>();
        let [low, high] = &mut self.halves;
        let mut n_slow = 0;
        for (i, &[start, end]) in places[..n].iter().enumerate() {
            let window = bytes[start..].first_chunk();
            let len = end - start;
            self.slow[n_slow] = i;
            n_slow += usize::from(len > 16 || window.is_none());
            let [first, next] = words(window.unwrap_or(&[0; 16]));
            let [first_mask, next_mask] = LENGTH_MASKS[len.min(16)];
            low[i] = (first | hashing.case_bits) & first_mask;
            high[i] = (next | hashing.case_bits) & next_mask;
        }
        let begin = found.tokens.len();
        let halves = low[..n].iter().zip(&high[..n]);
        let hashed = halves.map(|(&low, &high)| fingerprint_words(low, high));
        found.tokens.extend(hashed);
        for &i in &self.slow[..n_slow] {
            let [start, end] = places[i];
            found.tokens[begin + i] = (hashing.slow)(&bytes[start..end]);
        }
        if let Some(starts) = &mut found.starts {
            let offset = found.offset;
            starts.extend(places[..n].iter().map(|[start, _]| (start + offset) as u32));
        }
    }
}

/// `LENGTH_MASKS[n]` keeps the first `n` of 16 bytes.
pub(crate) const LENGTH_MASKS: [[u64; 2]; 17] = {
    let mut masks = [[0; 2]; 17];
    let mut len = 1;
    while len <= 16 {
        let bits = u128::MAX >> (128 - 8 * len);
        masks[len] = [bits as u64, (bits >> 64) as u64];
        len += 1;
    }
    masks
};

/// Writes the position of each edge. Values after the last are arbitrary.
#[inline(always)]
fn spread(mut edges: u64, start: usize, places: &mut [usize; BLOCK]) {
    // In groups of sixteen, since the number of edges in a block is unpredictable too.
    for places in places.as_chunks_mut::<16>().0 {
        for place in places {
            *place = start + edges.trailing_zeros() as usize;
            edges &= edges.wrapping_sub(1);
        }
        if edges == 0 {
            return;
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use super::{BLOCK, Masks};
    use std::arch::x86_64::*;

    const INDICES: [u8; BLOCK] = {
        let mut indices = [0; BLOCK];
        let mut i = 0;
        while i < BLOCK {
            indices[i] = i as u8;
            i += 1;
        }
        indices
    };
    /// Usual maximum number of edges of a block.
    const USUAL: usize = 24;

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) fn masks(block: &[u8; BLOCK]) -> Masks {
        // SAFETY: the bytes read are those of `block`, and the load requires no alignment.
        let bytes = unsafe { _mm512_loadu_si512(block.as_ptr().cast()) };
        let in_range = |bytes, first: u8, n: u8| {
            let shifted = _mm512_sub_epi8(bytes, _mm512_set1_epi8(first as i8));
            _mm512_cmplt_epu8_mask(shifted, _mm512_set1_epi8(n as i8))
        };
        let lower = _mm512_or_si512(bytes, _mm512_set1_epi8(0x20));
        Masks {
            alphanumeric: in_range(bytes, b'0', 10) | in_range(lower, b'a', 26),
            non_ascii: _mm512_movepi8_mask(bytes),
        }
    }

    /// As [`super::spread`].
    #[inline]
    #[target_feature(enable = "avx512f,avx512vbmi2")]
    pub(super) fn spread(edges: u64, start: usize, places: &mut [usize; BLOCK]) {
        let mut indices = INDICES;
        // SAFETY: both the load and the store are of the 64 bytes of an array, at any alignment.
        unsafe {
            let all = _mm512_loadu_si512(INDICES.as_ptr().cast());
            let chosen = _mm512_maskz_compress_epi8(edges, all);
            _mm512_storeu_si512(indices.as_mut_ptr().cast(), chosen);
        }
        for (place, index) in places[..USUAL].iter_mut().zip(&indices[..USUAL]) {
            *place = start + usize::from(*index);
        }
        if edges.count_ones() as usize > USUAL {
            for (place, index) in places[USUAL..].iter_mut().zip(&indices[USUAL..]) {
                *place = start + usize::from(*index);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HASHING: Hashing = Hashing {
        case_bits: 0x2020_2020_2020_2020,
        slow: |word| word.len() as u64,
    };

    type Hash = unsafe fn(&mut Batch, &[u8], Hashing, &mut Found<'_>) -> usize;

    fn portable(batch: &mut Batch, bytes: &[u8], hashing: Hashing, found: &mut Found<'_>) -> usize {
        batch.hash_by(bytes, hashing, masks_portable, spread, found)
    }

    /// Every version that this processor can run.
    fn versions() -> Vec<Hash> {
        let mut versions: Vec<Hash> = vec![portable, Batch::hash];
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2") {
            versions.push(Batch::hash_avx2);
        }
        versions
    }

    proptest! {
        /// Enough words for several batches, of all lengths, with occasional non-ASCII letters.
        #[test]
        fn all_versions_equal_a_word_at_a_time(
            pieces in prop::collection::vec("[a-zA-Z0-9]{0,20}[ .,\n]{0,3}|[a-z0-9 ]{0,70}", 0..120),
            tail in "|[a-z]é[a-z]|é",
        ) {
            let text = pieces.concat() + &tail;
            let bytes = text.as_bytes();
            let (mut expected, mut expected_starts) = (Vec::new(), Vec::new());
            let offset = 7;
            let end = super::super::ascii::words(bytes, |start, end| {
                let word = &bytes[start..end];
                expected_starts.push((start + offset) as u32);
                expected.push(match bytes.get(start..start + 16) {
                    Some(_) if word.len() <= 16 => {
                        crate::token::fingerprint(&word.to_ascii_lowercase())
                    }
                    _ => word.len() as u64,
                });
            });
            for hash in versions() {
                let (mut tokens, mut starts) = (Vec::new(), Vec::new());
                let mut found = Found {
                    tokens: &mut tokens,
                    starts: Some(&mut starts),
                    offset,
                };
                // SAFETY: the processor has what the version needs, as checked above.
                let found_end = unsafe { hash(&mut Batch::new(), bytes, HASHING, &mut found) };
                prop_assert_eq!((&tokens, found_end), (&expected, end));
                prop_assert_eq!(&starts, &expected_starts);
            }
        }
    }
}
