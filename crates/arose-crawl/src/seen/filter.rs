//! Bloom filters of single blocks, which exclude most keys that are not there.
//!
//! A filter over a whole sorted run would be read at seven random positions per key. Here each
//! block of a sorted run has a filter of its own, with the size of a CPU cache line. A sorted batch
//! of keys goes through the filters in memory order. With 31 keys per block there are 16.5 bits per
//! key, and with 7 hashes 0.06% of lookups are false positives (Bloom 1970). A false positive costs
//! a search in the block, but never gives a wrong result.

use arose::mix::mix;

/// The size of a filter in a file in bytes.
pub(super) const FILTER_BYTES: usize = 64;

const N_HASHES: u32 = 7;

/// The filter of one block.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
pub(super) struct Filter([u64; 8]);

impl Filter {
    pub(super) fn add(&mut self, key: u128) {
        for (word, bit) in bits(key) {
            self.0[word] |= 1 << bit;
        }
    }

    /// Whether the key may have been added; if false, it was not. Checks all bits, because a
    /// mispredicted early exit costs more.
    pub(super) fn may_contain(&self, key: u128) -> bool {
        bits(key).fold(1, |all, (word, bit)| all & self.0[word] >> bit) & 1 == 1
    }

    pub(super) const fn any_byte(&self) -> u8 {
        self.0[0] as u8
    }

    pub(super) fn to_bytes(self) -> [u8; FILTER_BYTES] {
        let mut bytes = [0; FILTER_BYTES];
        for (place, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(self.0) {
            *place = word.to_le_bytes();
        }
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8; FILTER_BYTES]) -> Self {
        let mut words = [0; 8];
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        Self(words)
    }
}

/// Returns the word and the bit in it for each hash, from nine bits each.
fn bits(key: u128) -> impl Iterator<Item = (usize, u32)> {
    let hash = mix((key >> 64) as u64 ^ mix(key as u64));
    (0..N_HASHES).map(move |n| {
        let nine = hash >> (9 * n);
        ((nine & 7) as usize, (nine >> 3 & 63) as u32)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use arose::mix::SplitMix;

    fn key(random: &mut SplitMix) -> u128 {
        u128::from(random.next_u64()) << 64 | u128::from(random.next_u64())
    }

    /// The probability that these bits of 512 are all left empty.
    fn empty(n: f64) -> f64 {
        (1.0 - n / 512.0).powi(7 * 31)
    }

    #[test]
    fn what_was_added_is_found() {
        let mut random = SplitMix::new(1);
        let mut filter = Filter::default();
        let keys: Vec<u128> = (0..31).map(|_| key(&mut random)).collect();
        keys.iter().for_each(|&key| filter.add(key));
        let read = Filter::from_bytes(&filter.to_bytes());
        assert!(keys.iter().all(|&key| read.may_contain(key)));
    }

    /// A key passes a filter with the share `f` of its bits set with probability `f^7`. Its mean
    /// over filters is `p^7 (1 + 21 v / p^2)` to the second order, for mean `p` and variance `v` of
    /// the share of 512 bins that 7 * 31 balls fall into: 0.00059. 10,000 filters are tested with
    /// 1,000 keys each. Because results of one filter are correlated, the standard error is
    /// computed from the rates of the filters.
    #[test]
    fn false_positives_are_as_rare_as_computed() {
        let mut random = SplitMix::new(2);
        let rates: Vec<f64> = (0..10_000)
            .map(|_| {
                let mut filter = Filter::default();
                (0..31).for_each(|_| filter.add(key(&mut random)));
                let found = (0..1000).filter(|_| filter.may_contain(key(&mut random)));
                found.count() as f64 / 1000.0
            })
            .collect();
        let n = rates.len() as f64;
        let mean = rates.iter().sum::<f64>() / n;
        let variance = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / n;
        let error = (variance / n).sqrt();
        let (one_empty, two_empty) = (empty(1.0), empty(2.0));
        let p = 1.0 - one_empty;
        let v = two_empty + (one_empty - two_empty) / 512.0 - one_empty * one_empty;
        let expected = p.powi(7) * (1.0 + 21.0 * v / (p * p));
        assert!(
            (mean - expected).abs() < 4.0 * error,
            "{mean} {expected} {error}"
        );
    }
}
