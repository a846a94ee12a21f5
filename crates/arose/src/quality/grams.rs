//! Numbers for words and n-grams, and the share of repeated text.

use crate::mix::mix;

/// Gives equal keys equal numbers, counted from 0 in order of appearance.
///
/// Open addressing at half load. Slots depend on a seed. If the seed depends on all keys, an
/// attacker cannot choose keys that share a slot. Slots of earlier texts count as free, so clearing
/// takes no time.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    slots: Vec<Slot>,
    /// The number of slots in use, a power of two, minus one.
    mask: usize,
    seed: u64,
    n_used: u32,
    round: u32,
}

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    key: u64,
    number: u32,
    /// The round in which it was occupied; in any other round it is free.
    round: u32,
}

impl Numbers {
    /// Clears the table and makes room for about `n_keys`.
    pub(super) fn clear(&mut self, n_keys: usize, seed: u64) {
        let n_slots = (2 * n_keys).next_power_of_two().max(16);
        if self.round == u32::MAX || self.slots.len() < n_slots {
            self.slots = vec![Slot::default(); n_slots.max(self.slots.len())];
            self.round = 0;
        }
        self.round += 1;
        self.mask = n_slots - 1;
        self.seed = seed;
        self.n_used = 0;
    }

    /// Returns the number of a key.
    pub(super) fn of(&mut self, key: u64) -> u32 {
        if 2 * self.len() > self.mask {
            self.grow();
        }
        let at = self.find(key);
        let slot = &mut self.slots[at];
        if slot.round != self.round {
            *slot = Slot {
                key,
                number: self.n_used,
                round: self.round,
            };
            self.n_used += 1;
        }
        slot.number
    }

    /// Returns the slot of a key, or the free one where it belongs.
    fn find(&self, key: u64) -> usize {
        let mut at = mix(key ^ self.seed) as usize & self.mask;
        while self.slots[at].round == self.round && self.slots[at].key != key {
            at = (at + 1) & self.mask;
        }
        at
    }

    #[cold]
    fn grow(&mut self) {
        let n_slots = (2 * (self.mask + 1)).max(16);
        let old = std::mem::replace(&mut self.slots, vec![Slot::default(); n_slots]);
        self.mask = n_slots - 1;
        for slot in old.into_iter().filter(|slot| slot.round == self.round) {
            let at = self.find(slot.key);
            self.slots[at] = slot;
        }
    }

    /// Returns the number of distinct keys so far.
    pub(super) fn len(&self) -> usize {
        self.n_used as usize
    }
}

/// The words of a text: a number for each, and the position of its end in the text without
/// whitespace.
#[derive(Debug, Clone, Copy)]
pub(super) struct WordNumbers<'a> {
    pub(super) numbers: &'a [u32],
    pub(super) ends: &'a [u64],
}

impl WordNumbers<'_> {
    /// Returns the number of characters of the words from `start` to `end`.
    fn n_chars(&self, start: usize, end: usize) -> u64 {
        let before = |at: usize| at.checked_sub(1).map_or(0, |last| self.ends[last]);
        before(end) - before(start)
    }
}

/// Memory for n-grams.
#[derive(Debug, Default)]
pub(super) struct Grams {
    /// A key for the n-gram that begins at each word.
    keys: Vec<u64>,
    n: usize,
    counts: Vec<u32>,
}

impl Grams {
    /// Starts with single words.
    pub(super) fn start(&mut self, words: WordNumbers<'_>) {
        self.keys.clear();
        self.keys
            .extend(words.numbers.iter().map(|number| u64::from(*number)));
        self.n = 1;
    }

    /// Starts with 5-grams.
    pub(super) fn start_with_five(&mut self, words: WordNumbers<'_>) {
        // Odd and different, so that the same words in another order have another sum.
        const FACTORS: [u64; 5] = [
            0x9E37_79B9_7F4A_7C15,
            0xBF58_476D_1CE4_E5B9,
            0x94D0_49BB_1331_11EB,
            0xD6E8_FEB8_6659_FD93,
            0xA076_1D64_78BD_642F,
        ];
        self.keys.clear();
        self.keys.extend(words.numbers.windows(5).map(|gram| {
            let parts = gram.iter().zip(FACTORS);
            let sum = parts.map(|(word, factor)| (u64::from(*word) + 1).wrapping_mul(factor));
            sum.fold(0, u64::wrapping_add)
        }));
        self.n = 5;
    }

    /// Extends n-grams by one word.
    pub(super) fn grow(&mut self, words: WordNumbers<'_>) {
        let n_grams = (words.numbers.len() + 1).saturating_sub(self.n + 1);
        self.keys.truncate(n_grams);
        let added = words.numbers.iter().skip(self.n);
        for (key, word) in self.keys.iter_mut().zip(added) {
            *key = mix(key.rotate_left(32) ^ u64::from(*word) ^ 0x6772_616d_0000_0000);
        }
        self.n += 1;
    }

    /// Returns the characters of the most frequent n-gram, spaces included, times its number of
    /// occurrences. Of equally frequent ones, the first counts.
    pub(super) fn top_chars(
        &mut self,
        words: WordNumbers<'_>,
        numbers: &mut Numbers,
        seed: u64,
    ) -> u64 {
        numbers.clear(self.keys.len(), seed);
        self.counts.clear();
        let mut firsts: Vec<u32> = Vec::new();
        for (at, key) in self.keys.iter().enumerate() {
            let number = numbers.of(*key) as usize;
            if number == self.counts.len() {
                self.counts.push(0);
                firsts.push(at as u32);
            }
            self.counts[number] += 1;
        }
        let top = (0..self.counts.len()).rev().max_by_key(|&i| self.counts[i]);
        let Some(top) = top else { return 0 };
        let first = firsts[top] as usize;
        let n_chars = words.n_chars(first, first + self.n) + self.n as u64 - 1;
        n_chars * u64::from(self.counts[top])
    }

    /// Returns the characters of n-grams that repeat an earlier one, each word counted once: after
    /// a repeated n-gram, the search continues after its last word.
    pub(super) fn repeated_chars(
        &self,
        words: WordNumbers<'_>,
        numbers: &mut Numbers,
        seed: u64,
    ) -> u64 {
        numbers.clear(self.keys.len(), seed);
        let mut n_chars = 0;
        let mut at = 0;
        while at < self.keys.len() {
            let n_known = numbers.len();
            let is_new = numbers.of(self.keys[at]) as usize == n_known;
            if is_new {
                at += 1;
            } else {
                n_chars += words.n_chars(at, at + self.n);
                at += self.n;
            }
        }
        n_chars
    }
}
