//! A small table of hashes, for what there is ten million of.
//!
//! A general map takes some 30 bytes for a hash and a number. Here the numbers index an array that
//! holds the hashes anyway, so a slot takes four bytes ([`Numbers`]). Slots are searched from where
//! the hash points to, mixed with a seed that no site knows; at most three quarters of them are
//! taken.

use std::hash::{BuildHasher, Hasher, RandomState};

use arose::mix::mix;

/// Numbers by hashes that somebody else holds.
#[derive(Debug)]
pub(crate) struct Numbers {
    /// One more than the number; zero where there is none.
    slots: Vec<u32>,
    n: usize,
    seed: u64,
}

impl Default for Numbers {
    fn default() -> Self {
        Self {
            slots: vec![0; 16],
            n: 0,
            seed: seed(),
        }
    }
}

impl Numbers {
    /// The number with a hash, where `hash_of` tells the hashes of all.
    pub(crate) fn find(&self, hash: u64, hash_of: impl Fn(u32) -> u64) -> Option<u32> {
        let mut at = self.start(hash);
        loop {
            let number = self.slots[at].checked_sub(1)?;
            if hash_of(number) == hash {
                return Some(number);
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    /// Adds a number, whose hash is not there yet.
    pub(crate) fn insert(&mut self, number: u32, hash_of: impl Fn(u32) -> u64) {
        if 4 * (self.n + 1) > 3 * self.slots.len() {
            let old = std::mem::take(&mut self.slots);
            self.slots = vec![0; 2 * old.len()];
            for slot in old.into_iter().filter(|&slot| slot > 0) {
                self.put(slot, hash_of(slot - 1));
            }
        }
        self.put(number + 1, hash_of(number));
        self.n += 1;
    }

    fn put(&mut self, slot: u32, hash: u64) {
        let mut at = self.start(hash);
        while self.slots[at] > 0 {
            at = (at + 1) & (self.slots.len() - 1);
        }
        self.slots[at] = slot;
    }

    fn start(&self, hash: u64) -> usize {
        mix(hash ^ self.seed) as usize & (self.slots.len() - 1)
    }
}

fn seed() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use arose::mix::SplitMix;

    #[test]
    fn as_maps_of_the_library() {
        let mut random = SplitMix::new(5);
        let hashes: Vec<u64> = (0..3000).map(|_| random.next_u64()).collect();
        let mut numbers = Numbers::default();
        let of = |number: u32| hashes[number as usize];
        for n in 0..hashes.len() as u32 {
            assert_eq!(numbers.find(of(n), of), None);
            numbers.insert(n, of);
        }
        assert!((0..3000).all(|n| numbers.find(of(n), of) == Some(n)));
        assert_eq!(numbers.find(7, of), None);
    }
}
