//! Counts of the pages of a site that contain a word pair: counters that rule out most word pairs,
//! and exact numbers of the others in memory.

use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use arose::content::FREE_PAGES;
use bytemuck::{Pod, Zeroable};
use rayon::prelude::*;

use crate::Error;
use crate::column::{Scan, Writer};

/// Minimum number of pages of a site for any word pair to weigh less than 1.
pub(crate) const MIN_PAGES: u32 = FREE_PAGES as u32 + 2;

/// Counts keys up to [`MIN_PAGES`]. The counts may be too high, since keys may share a counter.
pub(crate) struct Counters {
    counters: Vec<AtomicU8>,
    mask: u64,
}

/// Minimum and maximum number of counters.
const MIN_COUNTERS: u64 = 1 << 10;
const MAX_COUNTERS: u64 = 1 << 32;

impl Counters {
    /// Allocates a power of two of counters, about one for two of `n_keys`, in at most `allowance`
    /// bytes.
    pub(crate) fn new(n_keys: u64, allowance: u64) -> Self {
        let wanted = (n_keys / 2)
            .clamp(MIN_COUNTERS, MAX_COUNTERS)
            .next_power_of_two();
        let n = wanted.min(1 << allowance.max(MIN_COUNTERS).ilog2());
        Self {
            counters: (0..n).map(|_| AtomicU8::new(0)).collect(),
            mask: n - 1,
        }
    }

    /// Counts these keys. `open` is scratch memory.
    pub(crate) fn add(&self, keys: &[u64], open: &mut Vec<u32>) {
        // All counters are read before any is changed, so that memory accesses overlap.
        open.clear();
        open.extend(keys.iter().map(|key| (key & self.mask) as u32));
        open.retain(|&counter| !self.is_full(counter));
        for &counter in &*open {
            // Threads that find it full add nothing; the others are too few to overflow it.
            if !self.is_full(counter) {
                self.counters[counter as usize].fetch_add(1, Relaxed);
            }
        }
    }

    /// Returns whether a key, or another key with the same counter, was counted often enough.
    pub(crate) fn may_be_framed(&self, key: u64) -> bool {
        self.is_full((key & self.mask) as u32)
    }

    fn is_full(&self, counter: u32) -> bool {
        u32::from(self.counters[counter as usize].load(Relaxed)) >= MIN_PAGES
    }
}

/// A word pair of a site that enough pages contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Framed {
    pub(crate) key: u64,
    pub(crate) n_others: u64,
}

/// Number of shards of [`PageCounts`], which threads fill in parallel.
const N_SHARDS: usize = 1 << SHARD_BITS;
const SHARD_BITS: u32 = 4;

/// The number of pages of each key, in memory.
pub(crate) struct PageCounts {
    shards: Vec<Shard>,
    allowance: u64,
}

/// The keys of one page after the other. The keys of a page are ascending and distinct.
#[derive(Default)]
pub(crate) struct PageKeys {
    keys: Vec<u64>,
    ends: Vec<usize>,
}

impl PageKeys {
    /// Adds a page, and sorts its keys.
    pub(crate) fn push(&mut self, keys: &mut Vec<u64>) {
        keys.sort_unstable();
        keys.dedup();
        self.keys.extend(&*keys);
        self.ends.push(self.keys.len());
    }

    fn pages(&self) -> impl Iterator<Item = &[u64]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let ranges = starts.zip(&self.ends);
        ranges.map(|(start, &end)| &self.keys[start..end])
    }
}

impl PageCounts {
    /// Creates counts that take at most `allowance` bytes.
    pub(crate) fn new(allowance: u64) -> Self {
        Self {
            shards: (0..N_SHARDS).map(|_| Shard::default()).collect(),
            allowance,
        }
    }

    /// Counts the keys of these pages. Returns whether there is space for more.
    pub(crate) fn add(&mut self, lists: &[PageKeys]) -> bool {
        let shards = self.shards.par_iter_mut().enumerate();
        shards.for_each(|(number, shard)| {
            for page in lists.iter().flat_map(PageKeys::pages) {
                let start = page.partition_point(|&key| shard_of(key) < number);
                let n = page[start..].partition_point(|&key| shard_of(key) == number);
                for &key in &page[start..start + n] {
                    shard.add(key);
                }
            }
        });
        self.has_room()
    }

    /// Counts one page of a key. Returns whether there is space for more.
    pub(crate) fn add_one(&mut self, key: u64) -> bool {
        self.shards[shard_of(key)].add(key);
        self.has_room()
    }

    fn has_room(&self) -> bool {
        let n_slots: usize = self.shards.iter().map(|shard| shard.slots.len()).sum();
        (n_slots * size_of::<Framed>()) as u64 <= self.allowance
    }

    /// Writes the keys that enough pages contain, in ascending order.
    pub(crate) fn write(self, path: &Path) -> Result<u64, Error> {
        let lists: Vec<Vec<Framed>> = self.shards.into_par_iter().map(Shard::framed).collect();
        let mut out = Writer::create(path)?;
        for list in &lists {
            out.extend(list)?;
        }
        out.finish()
    }
}

/// The order of the shards is that of their keys.
fn shard_of(key: u64) -> usize {
    (key >> (64 - SHARD_BITS)) as usize
}

/// An open hash table that doubles when it is three quarters full. A slot without pages is free.
#[derive(Default)]
struct Shard {
    slots: Vec<Framed>,
    n_keys: usize,
}

impl Shard {
    fn add(&mut self, key: u64) {
        if 4 * self.n_keys >= 3 * self.slots.len() {
            self.grow();
        }
        let at = slot_of(&self.slots, key);
        let slot = &mut self.slots[at];
        self.n_keys += usize::from(slot.n_others == 0);
        slot.key = key;
        slot.n_others += 1;
    }

    fn grow(&mut self) {
        let n_slots = (2 * self.slots.len()).max(64);
        let full = std::mem::replace(&mut self.slots, vec![Framed::zeroed(); n_slots]);
        for slot in full.into_iter().filter(|slot| slot.n_others > 0) {
            let at = slot_of(&self.slots, slot.key);
            self.slots[at] = slot;
        }
    }

    fn framed(self) -> Vec<Framed> {
        let framed = self.slots.into_iter();
        let framed = framed.filter(|slot| slot.n_others >= MIN_PAGES.into());
        let mut framed: Vec<Framed> = framed
            .map(|slot| Framed {
                n_others: slot.n_others - 1,
                ..slot
            })
            .collect();
        framed.sort_unstable();
        framed
    }
}

/// Returns the slot of a key, or the slot where it would be, in a table with a power of two of
/// slots that is not full.
fn slot_of(slots: &[Framed], key: u64) -> usize {
    free_slot(slots, key as usize & (slots.len() - 1), key)
}

/// Returns the slot of a key, or the first free slot, starting from one slot.
fn free_slot(slots: &[Framed], mut at: usize, key: u64) -> usize {
    let mask = slots.len() - 1;
    while slots[at].n_others > 0 && slots[at].key != key {
        at = (at + 1) & mask;
    }
    at
}

/// Number of keys that are looked up together.
const BATCH: usize = 64;

/// A lookup table of the number of other pages of every word pair in a frame.
pub(crate) struct CountTable {
    slots: Vec<Framed>,
    /// The remaining bits of a shifted key are its slot, so that keys in order go to slots in
    /// order.
    shift: u32,
}

impl CountTable {
    /// Reads the output of [`PageCounts::write`].
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let mut framed = Scan::<Framed>::open(path)?;
        let n_slots = (2 * framed.left() as usize).next_power_of_two().max(2);
        let mut table = Self {
            slots: vec![Framed::zeroed(); n_slots],
            shift: 64 - n_slots.ilog2(),
        };
        while let Some(slot) = framed.next()? {
            let at = table.slot(slot.key);
            table.slots[at] = slot;
        }
        Ok(table)
    }

    /// Calls `each` with the number of other pages that contain each key, in order.
    pub(crate) fn look_up(&self, keys: &[u64], mut each: impl FnMut(u64)) {
        // All slots of a batch are loaded before any is examined, so that memory accesses overlap.
        let mut found = [Framed::zeroed(); BATCH];
        for keys in keys.chunks(BATCH) {
            for (found, &key) in found.iter_mut().zip(keys) {
                *found = self.slots[(key >> self.shift) as usize];
            }
            for (found, &key) in found.iter().zip(keys) {
                each(match found.key == key || found.n_others == 0 {
                    true => found.n_others,
                    false => self.n_others(key),
                });
            }
        }
    }

    /// Returns the number of other pages that contain a key; zero if they are too few to count.
    pub(crate) fn n_others(&self, key: u64) -> u64 {
        self.slots[self.slot(key)].n_others
    }

    fn slot(&self, key: u64) -> usize {
        free_slot(&self.slots, (key >> self.shift) as usize, key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arose::mix::mix;
    use std::collections::BTreeMap;

    /// Counters never report fewer pages for a key than there are.
    #[test]
    fn issue_24_counters_lose_nothing() {
        let mut open = Vec::new();
        let counters = Counters::new(0, 0);
        for key in (0..3000).map(mix) {
            for _ in 0..key % 7 {
                counters.add(&[key], &mut open);
            }
        }
        let often = (0..3000).map(mix).filter(|key| key % 7 >= 5);
        assert!(often.into_iter().all(|key| counters.may_be_framed(key)));
        let few = Counters::new(1 << 20, 1 << 20);
        few.add(&[7; 4], &mut open);
        assert!(!few.may_be_framed(7));
        few.add(&[7; 1000], &mut open);
        assert!(few.may_be_framed(7) && !few.may_be_framed(8));
    }

    /// Pages are counted as with a map, and lookups give the same numbers.
    #[test]
    fn issue_24_counts_in_memory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("counts");
        let mut counts = PageCounts::new(1 << 20);
        let mut expected: BTreeMap<u64, u64> = BTreeMap::new();
        let pages: Vec<Vec<u64>> = (0..200_u64)
            .map(|page| (0..100).map(|i| mix(mix(page * 100 + i) % 3000)).collect())
            .collect();
        for part in pages.chunks(30) {
            let mut keys = PageKeys::default();
            for page in part {
                keys.push(&mut page.clone());
            }
            assert!(counts.add(&[keys]));
        }
        for page in &pages {
            let distinct: std::collections::BTreeSet<u64> = page.iter().copied().collect();
            for key in distinct {
                *expected.entry(key).or_default() += 1;
            }
        }
        let n_framed = counts.write(&path).unwrap();
        let table = CountTable::open(&path).unwrap();
        let framed = expected.values().filter(|n| **n >= 5).count();
        assert!(framed > 100 && framed < expected.len());
        assert_eq!(n_framed, framed as u64);
        for (&key, &n) in &expected {
            assert_eq!(table.n_others(key), if n >= 5 { n - 1 } else { 0 });
        }
        let keys: Vec<u64> = expected.keys().flat_map(|&key| [key, !key]).collect();
        let mut found = Vec::new();
        table.look_up(&keys, |n_others| found.push(n_others));
        let one_by_one: Vec<u64> = keys.iter().map(|&key| table.n_others(key)).collect();
        assert_eq!(found, one_by_one);
        assert_eq!(table.n_others(1), 0);
        let mut none = PageCounts::new(0);
        let mut keys = PageKeys::default();
        keys.push(&mut vec![1]);
        assert!(!none.add(&[keys]));
    }
}
