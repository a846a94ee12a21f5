//! A compact hash table for ten million entries.
//!
//! A general map takes about 30 bytes for a hash and a number. Here the numbers index an array that
//! has the hashes anyway, so a slot takes four bytes ([`Numbers`]). Slots are probed from the
//! position of the hash, mixed with a seed that sites do not know. At most three quarters of the
//! slots are used.

use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};

use arose::mix::mix;

/// Numbers by hashes that are stored elsewhere.
#[derive(Debug)]
pub(crate) struct Numbers {
    /// The number plus one; zero if the slot is empty.
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
    /// Returns the number with a hash; `hash_of` returns the hash of each number.
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

    /// Adds a number, whose hash must be new.
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

/// Hashes numbers of hosts. They follow each other, so no site can choose them.
pub(super) type NumberHash = BuildHasherDefault<NumberHasher>;

#[derive(Debug, Default)]
pub(super) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u32(byte.into()));
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = mix(self.0 ^ u64::from(number));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A bit for each of many numbers.
#[derive(Debug, Default)]
pub(crate) struct Flags(Vec<u64>);

impl Flags {
    /// Sets or clears a bit; returns its old value.
    pub(crate) fn replace(&mut self, at: u32, flag: bool) -> bool {
        let (word, bit) = (at as usize / 64, at % 64);
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        let word = &mut self.0[word];
        let was_set = *word >> bit & 1 == 1;
        *word = *word & !(1 << bit) | u64::from(flag) << bit;
        was_set
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
        let mut flags = Flags::default();
        let mut replace = |at, flag| flags.replace(at, flag);
        assert!(!replace(200, true) && !replace(199, true) && replace(200, false));
        assert!(!replace(200, false) && replace(199, true));
    }
}
