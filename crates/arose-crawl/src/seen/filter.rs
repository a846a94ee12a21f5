//! Bloom filters of single blocks: most keys that are not there are not looked for.
//!
//! A filter over a whole run would be read at seven random places per key. Here each block of a run
//! has a filter of its own, 80 bytes, and a sorted batch of keys walks through them in the order of
//! memory. With 63 keys a block that is 10 bits a key, and 7 hashes give a false positive in 0.8 %
//! of cases (Bloom 1970). Being wrong costs a look into the block, never a wrong answer.

use arose::mix::mix;

/// The size of one filter.
pub(super) const FILTER_BYTES: usize = 80;

const N_BITS: u64 = 8 * FILTER_BYTES as u64;
const N_HASHES: u64 = 7;

/// Adds a key to a filter of [`FILTER_BYTES`] bytes.
pub(super) fn add(filter: &mut [u8], key: u128) {
    for bit in bits(key) {
        filter[bit / 8] |= 1 << (bit % 8);
    }
}

/// Whether the key may have been added; if not, it was not.
pub(super) fn may_contain(filter: &[u8], key: u128) -> bool {
    bits(key).all(|bit| filter[bit / 8] & 1 << (bit % 8) != 0)
}

/// Two hashes make all seven (Kirsch & Mitzenmacher 2006).
fn bits(key: u128) -> impl Iterator<Item = usize> {
    let hash = mix((key >> 64) as u64 ^ mix(key as u64));
    let (first, step) = (hash & 0xFFFF_FFFF, hash >> 32 | 1);
    (0..N_HASHES).map(move |n| {
        let hash = (first + n * step) & 0xFFFF_FFFF;
        ((hash * N_BITS) >> 32) as usize
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use arose::mix::SplitMix;

    fn key(random: &mut SplitMix) -> u128 {
        u128::from(random.next_u64()) << 64 | u128::from(random.next_u64())
    }

    #[test]
    fn what_was_added_is_found() {
        let mut random = SplitMix::new(1);
        let mut filter = [0; FILTER_BYTES];
        let keys: Vec<u128> = (0..63).map(|_| key(&mut random)).collect();
        keys.iter().for_each(|&key| add(&mut filter, key));
        assert!(keys.iter().all(|&key| may_contain(&filter, key)));
    }

    /// `(1 - (1 - 1/640)^(7 * 63))^7 = 0.0077` on average over filters, a little more for the
    /// spread of the bits set. 10,000 filters are asked for 100 keys each. Since answers of one
    /// filter hang together, the standard error is taken from the rates of the filters.
    #[test]
    fn false_positives_are_as_rare_as_computed() {
        let mut random = SplitMix::new(2);
        let rates: Vec<f64> = (0..10_000)
            .map(|_| {
                let mut filter = [0; FILTER_BYTES];
                (0..63).for_each(|_| add(&mut filter, key(&mut random)));
                let found = (0..100).filter(|_| may_contain(&filter, key(&mut random)));
                found.count() as f64 / 100.0
            })
            .collect();
        let n = rates.len() as f64;
        let mean = rates.iter().sum::<f64>() / n;
        let variance = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / n;
        let error = (variance / n).sqrt();
        let expected = (1.0 - (1.0 - 1.0 / 640.0_f64).powi(7 * 63)).powi(7);
        let spread = 0.0004;
        assert!(
            (mean - expected).abs() < 4.0 * error + spread,
            "{mean} {expected} {error}"
        );
    }
}
