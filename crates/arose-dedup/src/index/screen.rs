//! A Bloom filter of names, which shows that a name is certainly new.
//!
//! Every insertion checks whether its name is already in the index, and nearly always it is not.
//! The filters of the sorted runs can tell, but there are a dozen of them, each costs two or three
//! cache lines, and they contain entries of all keys. So a writer that inserts many documents keeps
//! one Bloom filter of all names, with all bits of a name in one cache line (Putze, Sanders &
//! Singler 2007). Only names that pass are looked up. The filter is built from the runs in memory,
//! where names come first. When it is full, it is rebuilt at twice the size.
//!
//! *Cost.* 10 to 20 bits per name, and one cache line per lookup. *Error.* About 2% of new names
//! pass, and cost a lookup in the sorted runs.

use arose::mix::mix;

use super::keys::prefix_of;
use super::state::State;

/// Bits per name when the filter is full.
const NAME_BITS: usize = 10;

/// Number of bits that a name sets in its block.
const N_SET: u32 = 5;

/// Minimum capacity, in names.
const MIN_NAMES: usize = 1 << 16;

/// A set of names with false positives and without false negatives.
#[derive(Debug)]
pub(super) struct Screen {
    blocks: Vec<[u64; 8]>,
    n_names: usize,
    capacity: usize,
}

impl Screen {
    /// Builds a filter of all names of an index, with space for as many again.
    pub(super) fn of(state: &State) -> Self {
        let n_names = state.recent.next_row() as usize;
        let mut screen = Self::with_capacity((2 * n_names).max(MIN_NAMES));
        let end = prefix_of(state.plan.names_end);
        for run in &state.runs {
            run.for_each_prefix_up_to(end, |prefix| screen.set(prefix));
        }
        state
            .recent
            .for_each_prefix_up_to(end, |prefix| screen.set(prefix));
        screen.n_names = n_names;
        screen
    }

    fn with_capacity(capacity: usize) -> Self {
        let n_blocks = (capacity * NAME_BITS).div_ceil(512);
        Self {
            blocks: vec![[0; 8]; n_blocks],
            n_names: 0,
            capacity,
        }
    }

    pub(super) fn has_room_for(&self, n: usize) -> bool {
        self.n_names + n <= self.capacity
    }

    /// Adds the key of a name.
    pub(super) fn insert(&mut self, key: u64) {
        self.set(prefix_of(key));
        self.n_names += 1;
    }

    /// Returns whether a name with this key may be in the index.
    #[inline]
    pub(super) fn may_hold(&self, key: u64) -> bool {
        let (block, bits) = self.places(prefix_of(key));
        let block = &self.blocks[block];
        places(bits).all(|bit| block[bit / 64] >> (bit % 64) & 1 == 1)
    }

    #[inline]
    fn set(&mut self, prefix: u64) {
        let (block, bits) = self.places(prefix);
        let block = &mut self.blocks[block];
        places(bits).for_each(|bit| block[bit / 64] |= 1 << (bit % 64));
    }

    /// Returns the block of a prefix, and a number that selects bits in it.
    #[inline]
    fn places(&self, prefix: u64) -> (usize, u64) {
        let hash = mix(prefix);
        let block = (u128::from(hash) * self.blocks.len() as u128) >> 64;
        (block as usize, mix(hash))
    }
}

/// Returns bits of a block, using nine bits of the number for each.
#[inline]
fn places(bits: u64) -> impl Iterator<Item = usize> {
    (0..N_SET).map(move |i| (bits >> (9 * i) & 511) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arose::mix::SplitMix;

    /// No name in the set is rejected, and about one in fifty other names passes a full filter.
    #[test]
    fn names_pass_and_strangers_do_not() {
        let mut random = SplitMix::new(11);
        let mut screen = Screen::with_capacity(MIN_NAMES);
        let keys: Vec<u64> = (0..MIN_NAMES).map(|_| random.next_u64()).collect();
        keys.iter().for_each(|&key| screen.insert(key));
        assert!(!screen.has_room_for(1));
        assert!(keys.iter().all(|&key| screen.may_hold(key)));
        let n_passed = (0..100_000)
            .filter(|_| screen.may_hold(random.next_u64()))
            .count();
        assert!((500..2500).contains(&n_passed), "{n_passed}");
    }
}
