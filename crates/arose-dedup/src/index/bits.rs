//! Numbers of any width up to 64 bits, packed one after the other.
//!
//! Bit `i` is bit `i % 64` of word `i / 64`; a number starts with its lowest bit.

/// A growing sequence of packed numbers.
#[derive(Debug, Default)]
pub(super) struct Bits {
    words: Vec<u64>,
    n_bits: usize,
}

impl Bits {
    /// Creates a sequence with capacity for this many bits.
    pub(super) fn with_capacity(n_bits: usize) -> Self {
        let words = Vec::with_capacity(n_bits.div_ceil(64) + 1);
        Self { words, n_bits: 0 }
    }

    /// Appends the `width` low bits of `value`. All other bits are zero, and `width` is at most 64.
    pub(super) fn push(&mut self, value: u64, width: u32) {
        if width == 0 {
            return;
        }
        let shift = (self.n_bits % 64) as u32;
        if shift == 0 {
            self.words.push(value);
        } else {
            let last = self.words.len() - 1;
            self.words[last] |= value << shift;
            if shift + width > 64 {
                self.words.push(value >> (64 - shift));
            }
        }
        self.n_bits += width as usize;
    }

    /// Appends this many ones and a zero.
    pub(super) fn push_unary(&mut self, n: usize) {
        let mut left = n as u32;
        while left >= 63 {
            self.push(u64::MAX >> 1, 63);
            left -= 63;
        }
        self.push((1 << left) - 1, left + 1);
    }

    /// Returns the words. The last one is padded with zeros.
    pub(super) fn into_words(self) -> Vec<u64> {
        self.words
    }
}

/// Returns the `width` bits from `start` on. Bits past the end are zero.
#[inline]
pub(super) fn bits(words: &[u64], start: usize, width: u32) -> u64 {
    if width == 0 {
        return 0;
    }
    let (word_idx, shift) = (start / 64, (start % 64) as u32);
    let mut bits = words.get(word_idx).map_or(0, |word| word >> shift);
    if shift + width > 64 {
        bits |= words
            .get(word_idx + 1)
            .map_or(0, |word| word << (64 - shift));
    }
    bits & (u64::MAX >> (64 - width))
}

/// Returns the `width` bits from bit `start` of little-endian bytes. Bits past the end are zero.
/// `width` is at most 32.
#[inline]
pub(super) fn bits_of_bytes(bytes: &[u8], start: usize, width: u32) -> u32 {
    let (byte_idx, shift) = (start / 8, start % 8);
    let mut window = [0; 8];
    let rest = bytes.get(byte_idx..).unwrap_or_default();
    match rest.first_chunk::<8>() {
        Some(chunk) => window = *chunk,
        None => window[..rest.len()].copy_from_slice(rest),
    }
    let bits = u64::from_le_bytes(window) >> shift;
    (bits & ((1 << width) - 1)) as u32
}

/// Packs numbers of one width, at most 32 bits, into bytes, and emits full words.
#[derive(Debug)]
pub(super) struct BytePacker {
    width: u32,
    pending: u64,
    n_pending: u32,
}

impl BytePacker {
    pub(super) fn new(width: u32) -> Self {
        Self {
            width,
            pending: 0,
            n_pending: 0,
        }
    }

    /// Appends a number. Full words go to `out`.
    pub(super) fn push(&mut self, value: u32, out: &mut Vec<u8>) {
        self.pending |= u64::from(value) << self.n_pending;
        self.n_pending += self.width;
        if self.n_pending >= 32 {
            out.extend_from_slice(&(self.pending as u32).to_le_bytes());
            self.pending >>= 32;
            self.n_pending -= 32;
        }
    }

    /// Appends the remaining bytes. The last one may be filled only in part.
    pub(super) fn finish(self, out: &mut Vec<u8>) {
        let n_bytes = self.n_pending.div_ceil(8) as usize;
        out.extend_from_slice(&self.pending.to_le_bytes()[..n_bytes]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cut(value: u64, width: u32) -> u64 {
        value & u64::MAX.checked_shr(64 - width).unwrap_or(0)
    }

    proptest! {
        #[test]
        fn what_is_packed_can_be_read(numbers: Vec<(u64, u8)>) {
            let mut packed = Bits::with_capacity(0);
            let numbers: Vec<(u64, u32)> = numbers
                .into_iter()
                .map(|(value, width)| (cut(value, u32::from(width % 65)), u32::from(width % 65)))
                .collect();
            for &(value, width) in &numbers {
                packed.push(value, width);
            }
            let words = packed.into_words();
            let mut start = 0;
            for &(value, width) in &numbers {
                prop_assert_eq!(bits(&words, start, width), value);
                start += width as usize;
            }
            prop_assert_eq!(words.len(), start.div_ceil(64));
        }

        #[test]
        fn bytes_hold_numbers_of_one_width(values: Vec<u32>, width in 1_u32..=32) {
            let values: Vec<u32> =
                values.into_iter().map(|value| cut(value.into(), width) as u32).collect();
            let mut bytes = Vec::new();
            let mut packer = BytePacker::new(width);
            values.iter().for_each(|&value| packer.push(value, &mut bytes));
            packer.finish(&mut bytes);
            prop_assert_eq!(bytes.len(), (values.len() * width as usize).div_ceil(8));
            for (i, &value) in values.iter().enumerate() {
                prop_assert_eq!(bits_of_bytes(&bytes, i * width as usize, width), value);
            }
        }
    }

    #[test]
    fn past_the_end_there_is_nothing() {
        assert_eq!(bits(&[u64::MAX], 60, 64), 15);
        assert_eq!(bits(&[], 0, 64), 0);
        assert_eq!(bits_of_bytes(&[255], 4, 32), 15);
    }
}
