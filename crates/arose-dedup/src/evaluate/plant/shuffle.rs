//! A permutation of `0..n` that needs no table, and its inverse.
//!
//! A Feistel network permutes the numbers of an even number of bits. It splits a number into two
//! halves and mixes one into the other in several rounds, each of which can be undone (Luby &
//! Rackoff 1988). Numbers beyond `n` are permuted again until the result is below `n`. This takes
//! fewer than four permutations on average, since the halves fit closely.

use arose::mix::mix;

/// Number of mixing rounds.
const N_ROUNDS: u64 = 4;

#[derive(Debug, Clone, Copy)]
pub(super) struct Shuffle {
    n: u32,
    half_bits: u32,
    seed: u64,
}

impl Shuffle {
    pub(super) fn new(n: u32, seed: u64) -> Self {
        let bits = u32::BITS - n.saturating_sub(1).leading_zeros();
        Self {
            n,
            half_bits: bits.div_ceil(2).max(1),
            seed: mix(seed ^ 0x5EED),
        }
    }

    /// Returns the slot at a position, both below `n`.
    pub(super) fn slot(&self, position: u32) -> u32 {
        self.walk(position, Self::forward)
    }

    /// Returns the position of a slot.
    pub(super) fn position(&self, slot: u32) -> u32 {
        self.walk(slot, Self::backward)
    }

    fn walk(&self, from: u32, step: fn(&Self, u64) -> u64) -> u32 {
        let mut value = step(self, u64::from(from));
        while value >= u64::from(self.n) {
            value = step(self, value);
        }
        value as u32
    }

    fn forward(&self, value: u64) -> u64 {
        let (mut left, mut right) = self.halves(value);
        for round in 0..N_ROUNDS {
            (left, right) = (right, left ^ self.noise(round, right));
        }
        left << self.half_bits | right
    }

    fn backward(&self, value: u64) -> u64 {
        let (mut left, mut right) = self.halves(value);
        for round in (0..N_ROUNDS).rev() {
            (left, right) = (right ^ self.noise(round, left), left);
        }
        left << self.half_bits | right
    }

    fn halves(&self, value: u64) -> (u64, u64) {
        (value >> self.half_bits, value & self.mask())
    }

    fn noise(&self, round: u64, half: u64) -> u64 {
        mix(self.seed ^ mix(round << 32 | half)) & self.mask()
    }

    fn mask(&self) -> u64 {
        (1 << self.half_bits) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_a_permutation(n in 1_u32..500, seed: u64) {
            let shuffle = Shuffle::new(n, seed);
            let mut slots: Vec<u32> = (0..n).map(|position| shuffle.slot(position)).collect();
            prop_assert!((0..n).all(|i| shuffle.position(slots[i as usize]) == i));
            slots.sort_unstable();
            prop_assert_eq!(slots, (0..n).collect::<Vec<_>>());
        }

        #[test]
        fn large_ones_turn_round(n in 1_u32.., seed: u64, at: u32) {
            let shuffle = Shuffle::new(n, seed);
            prop_assert_eq!(shuffle.position(shuffle.slot(at % n)), at % n);
        }
    }

    /// Neighbours are separated: of 10,000 positions hardly any keep their successor.
    #[test]
    fn it_shuffles() {
        let shuffle = Shuffle::new(10_000, 1);
        let n_kept = (0..9_999)
            .filter(|&i| shuffle.slot(i + 1) == shuffle.slot(i) + 1)
            .count();
        assert!(n_kept < 10, "{n_kept}");
    }
}
