//! Sorting entries whose keys are uniformly distributed, like random numbers.
//!
//! A comparison sort takes `log n` steps per entry, of which the processor mispredicts half. But
//! the first bits of a random key nearly determine its position. With about as many *slots* as
//! entries, count the entries of each slot, move every entry to its slot, and sort the one or two
//! entries in a slot. This is one pass of a radix sort (Knuth 1973, 5.2.5). Entries with equal keys
//! keep their order. The cost is two moves per entry and four bytes per slot. Keys that are not
//! random make long slots, which are sorted by comparison: slower, but still correct.

use super::run::Entry;

/// A sorter that reuses its memory.
#[derive(Debug, Default)]
pub(super) struct Order {
    ends: Vec<u32>,
    sorted: Vec<Entry>,
}

impl Order {
    /// Sorts the entries, which agree in the first `n_common` bits.
    pub(super) fn sort(&mut self, entries: &[Entry], n_common: u32) -> &[Entry] {
        // Between one and two entries per slot.
        let slot_bits = entries.len().max(2).ilog2().min(63 - n_common);
        let slot = |entry: &Entry| (entry.0 << n_common >> (64 - slot_bits)) as usize;
        self.ends.clear();
        self.ends.resize(1 << slot_bits, 0);
        for entry in entries {
            self.ends[slot(entry)] += 1;
        }
        let mut start = 0;
        for end in &mut self.ends {
            start += std::mem::replace(end, start);
        }
        self.sorted.clear();
        self.sorted.resize(entries.len(), Entry(0));
        for entry in entries {
            let end = &mut self.ends[slot(entry)];
            self.sorted[*end as usize] = *entry;
            *end += 1;
        }
        let mut start = 0;
        for &end in &self.ends {
            let in_slot = &mut self.sorted[start..end as usize];
            match in_slot {
                [] | [_] => {}
                [a, b] => {
                    if a > b {
                        std::mem::swap(a, b);
                    }
                }
                _ => in_slot.sort_unstable(),
            }
            start = end as usize;
        }
        &self.sorted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Equals a comparison sort, for random keys and for keys that are not.
        #[test]
        fn sorted_as_by_comparing(
            keys in prop::collection::vec(prop_oneof![any::<u64>(), 0..9_u64], 0..300),
            n_common in 0..30_u32,
        ) {
            let entry = |key: u64| Entry(key >> n_common);
            let mut entries: Vec<Entry> = keys.into_iter().map(entry).collect();
            let sorted = Order::default().sort(&entries, n_common).to_vec();
            entries.sort_unstable();
            prop_assert_eq!(sorted, entries);
        }
    }
}
