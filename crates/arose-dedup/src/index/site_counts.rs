//! Counts of the pages of a site that contain a word pair, updated as pages are inserted.
//!
//! A table maps keys to numbers. A key stands for a word pair of a site, a page of a site, or a
//! site. One word pair in 4 is counted, about 120 per page of 500 words, and most are on one page
//! only. The table has a maximum size. When it is full, it discards the half of its keys with the
//! smallest numbers, so that repeated text stays and text met once goes. Within about fifty
//! thousand pages nothing is discarded. A discarded word pair starts again at zero. So numbers can
//! only be too small, which makes a frame weigh more.
//!
//! A slot has the first 40 bits of a key and 24 bits of its number. The key determines the first
//! slot in which it may be, and all slots are in ascending order (an ordered hash table: Amble &
//! Knuth 1974). So looking up a key that is missing is as fast as finding one. A table is enlarged
//! and reduced from one end to the other, and its file needs no sorting. With six million keys,
//! another key agrees in 40 bits with probability 5e-6.
//!
//! Tables of two sets of pages are merged by adding their numbers ([`SiteCountTable::add`]).

use std::path::Path;

use super::Error;
use super::file::{Content, NumberReader, Sealer, read_sealed};

/// Keys and their numbers.
#[derive(Debug, Clone)]
pub(super) struct SiteCountTable {
    /// Key and number; zero if it is free. The last [`MAX_SHIFT`] slots are the place of no key.
    slots: Vec<u64>,
    n_keys: usize,
    /// Maximum number of places, a power of two.
    max_places: usize,
    is_changed: bool,
}

/// Minimum number of places.
const MIN_PLACES: usize = 1 << 10;

/// Maximum distance of a key from its place, and maximum number of slots that a new key moves. A
/// key that would need more in a table of maximum size, which does not happen by chance, is not
/// counted.
const MAX_SHIFT: usize = 1 << 10;

/// The bits of a slot that are the number, which stops at this value.
const NUMBER: u64 = (1 << 24) - 1;

/// Numbers from which on a key is never discarded.
const OFTEN: usize = 1 << 12;

/// Number of keys that are looked up together.
const BATCH: usize = 64;

impl SiteCountTable {
    /// Creates an empty table with about this maximum number of keys, rounded to a possible size.
    pub(super) fn new(max_keys: u32) -> Self {
        let max_places = (max_keys as usize * 4 / 3).next_power_of_two();
        Self {
            slots: vec![0; MIN_PLACES + MAX_SHIFT],
            n_keys: 0,
            max_places: max_places.max(MIN_PLACES),
            is_changed: false,
        }
    }

    /// Returns the number of a key; zero if it is not in the table.
    pub(super) fn get(&self, key: u64) -> u32 {
        match self.slots[self.find(key)] {
            slot if slot & !NUMBER == key & !NUMBER => (slot & NUMBER) as u32,
            _ => 0,
        }
    }

    /// Appends the numbers of keys, in order.
    pub(super) fn get_all(&self, keys: &[u64], numbers: &mut Vec<u32>) {
        for keys in keys.chunks(BATCH) {
            // All places of a batch are loaded before any is examined, so that memory accesses
            // overlap.
            let places = keys.iter().map(|&key| self.slots[self.place(key)]);
            std::hint::black_box(places.fold(0, |all, slot| all ^ slot));
            numbers.extend(keys.iter().map(|&key| self.get(key)));
        }
    }

    /// Adds to the number of a key.
    pub(super) fn add(&mut self, key: u64, n: u32) {
        if n == 0 {
            return;
        }
        self.is_changed = true;
        let n = u64::from(n).min(NUMBER);
        let at = self.find(key);
        let slot = self.slots[at];
        if slot != 0 && slot & !NUMBER == key & !NUMBER {
            self.slots[at] += n.min(NUMBER - (slot & NUMBER));
            return;
        }
        let has_room = 4 * (self.n_keys + 1) <= 3 * self.n_places();
        if has_room && self.insert(at, key, n) {
            return;
        }
        // Keys that arrive in ascending order may fill a part of the table.
        if !has_room || self.n_places() < self.max_places {
            self.make_room();
            self.insert(self.find(key), key, n);
        }
    }

    /// Inserts a key at the position that [`SiteCountTable::find`] returned. Returns whether a free
    /// slot is near.
    fn insert(&mut self, at: usize, key: u64, n: u64) -> bool {
        if (1..key & !NUMBER).contains(&self.slots[at]) {
            return false;
        }
        let end = self.slots.len().min(at + MAX_SHIFT);
        let Some(n_moved) = self.slots[at..end].iter().position(|&slot| slot == 0) else {
            return false;
        };
        self.slots.copy_within(at..at + n_moved, at + 1);
        self.slots[at] = key & !NUMBER | n;
        self.n_keys += 1;
        true
    }

    /// Returns whether something was added since the table was written or read.
    pub(super) fn is_changed(&self) -> bool {
        self.is_changed
    }

    /// Records that the table is in a file.
    pub(super) fn set_written(&mut self) {
        self.is_changed = false;
    }

    /// Returns the memory use in bytes.
    pub(super) fn n_bytes(&self) -> usize {
        size_of::<u64>() * self.slots.len()
    }

    /// Writes all keys in ascending order.
    pub(super) fn write(&self, path: &Path) -> Result<u64, Error> {
        let mut sealer = Sealer::create(Content::SiteCounts, path)?;
        let mut body = Vec::new();
        for slots in self.slots.chunks(1 << 12) {
            body.clear();
            for slot in slots.iter().filter(|slot| **slot != 0) {
                body.extend((slot & !NUMBER).to_le_bytes());
                body.extend(((slot & NUMBER) as u32).to_le_bytes());
            }
            sealer.write(&body)?;
        }
        sealer.seal()
    }

    /// Reads the format that [`SiteCountTable::write`] writes.
    pub(super) fn read(path: &Path, check: u64, max_keys: u32) -> Result<Self, Error> {
        let (body, found) = read_sealed(Content::SiteCounts, path)?;
        if found != check || !body.len().is_multiple_of(12) {
            return Err(Error::damaged(
                path,
                "it is not the file that the manifest lists",
            ));
        }
        let mut counts = Self::new(max_keys);
        let n_places = (body.len() / 12 * 4 / 3 + 1).next_power_of_two();
        let n_places = n_places.clamp(MIN_PLACES, counts.max_places);
        counts.slots = vec![0; n_places + MAX_SHIFT];
        let mut fields = NumberReader::new(&body, path);
        while !fields.is_empty() {
            counts.add(fields.u64()?, fields.u32()?);
        }
        counts.set_written();
        Ok(counts)
    }

    fn n_places(&self) -> usize {
        self.slots.len() - MAX_SHIFT
    }

    /// Returns the first position at which a key may be.
    fn place(&self, key: u64) -> usize {
        (key >> (64 - self.n_places().ilog2())) as usize
    }

    /// Returns the position of a key, or the position where it would be inserted: that of a free
    /// slot or of a larger key, unless [`MAX_SHIFT`] slots have smaller ones.
    fn find(&self, key: u64) -> usize {
        let (wanted, place) = (key & !NUMBER, self.place(key));
        let slots = self.slots[place..place + MAX_SHIFT].iter();
        let is_before = |slot: &&u64| **slot != 0 && **slot & !NUMBER < wanted;
        place + slots.take_while(is_before).count().min(MAX_SHIFT - 1)
    }

    /// Enlarges the table, or discards the keys with the smallest numbers.
    fn make_room(&mut self) {
        let n_places = self.n_places();
        if n_places < self.max_places {
            let larger = vec![0; 2 * n_places + MAX_SHIFT];
            let smaller = std::mem::replace(&mut self.slots, larger);
            let keys = smaller.into_iter().filter(|&slot| slot != 0);
            self.refill(keys);
            return;
        }
        let least = self.median() + 1;
        // Every key stays where it is or moves towards its place, so this needs no second table.
        let mut next = 0;
        self.n_keys = 0;
        for from in 0..self.slots.len() {
            let slot = std::mem::take(&mut self.slots[from]);
            if slot & NUMBER >= least {
                let at = self.place(slot).max(next);
                self.slots[at] = slot;
                self.n_keys += 1;
                next = at + 1;
            }
        }
    }

    /// Fills an empty table with slots in ascending order.
    fn refill(&mut self, slots: impl Iterator<Item = u64>) {
        let mut next = 0;
        self.n_keys = 0;
        for slot in slots {
            let at = self.place(slot).max(next);
            if at < self.slots.len() {
                self.slots[at] = slot;
                self.n_keys += 1;
            }
            next = at + 1;
        }
    }

    /// Returns a number that half of all numbers do not exceed, below [`OFTEN`].
    fn median(&self) -> u64 {
        let mut n_by_number = vec![0_usize; OFTEN];
        for slot in self.slots.iter().filter(|slot| **slot != 0) {
            n_by_number[((slot & NUMBER) as usize).min(OFTEN - 1)] += 1;
        }
        let mut n = 0;
        let median = n_by_number.iter().position(|&with_number| {
            n += with_number;
            2 * n >= self.n_keys
        });
        median.map_or(0, |median| median.min(OFTEN - 2) as u64)
    }

    #[cfg(test)]
    fn iter(&self) -> impl Iterator<Item = (u64, u32)> {
        let slots = self.slots.iter().filter(|slot| **slot != 0);
        slots.map(|slot| (slot & !NUMBER, (slot & NUMBER) as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arose::mix::{SplitMix, mix};
    use std::collections::BTreeMap;

    /// Numbers equal those of a map, and the tables of two halves add up to the table of all.
    #[test]
    fn issue_24_counts_are_those_of_a_map_and_merge() {
        let mut random = SplitMix::new(24);
        let mut expected: BTreeMap<u64, u32> = BTreeMap::new();
        let (mut all, mut halves) = (
            SiteCountTable::new(1 << 16),
            [(); 2].map(|()| SiteCountTable::new(1 << 16)),
        );
        for i in 0..20_000 {
            let key = mix(random.below(3000) * random.below(3000));
            *expected.entry(key).or_default() += 1;
            all.add(key, 1);
            halves[i % 2].add(key, 1);
        }
        let [mut merged, other] = halves;
        other.iter().for_each(|(key, n)| merged.add(key, n));
        for (&key, &n) in &expected {
            assert_eq!((all.get(key), merged.get(key)), (n, n));
            assert_eq!(all.get(!key), 0);
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("counts");
        let check = all.write(&path).unwrap();
        assert_eq!(merged.write(&path).unwrap(), check);
        let read = SiteCountTable::read(&path, check, 1 << 16).unwrap();
        assert!(!read.is_changed());
        let listed: BTreeMap<u64, u32> = read.iter().collect();
        let expected = expected.into_iter().map(|(key, n)| (key & !NUMBER, n));
        assert!(expected.eq(listed));
        assert!(SiteCountTable::read(&path, !check, 1 << 16).is_err());
    }

    /// The table keeps its maximum size for any number of keys, and repeated keys stay.
    #[test]
    fn issue_24_counts_are_bounded() {
        let mut counts = SiteCountTable::new(3000);
        for i in 0..200_000_u64 {
            counts.add(mix(i), 1);
            counts.add(mix(u64::MAX - i % 20), 1);
            assert!(counts.n_bytes() <= 12 * 4096);
        }
        for i in 0..20 {
            assert_eq!(counts.get(mix(u64::MAX - i)), 10_000);
        }
        // All keys are equally frequent, so that half of them would be all.
        let mut even = SiteCountTable::new(3000);
        (0..4000).for_each(|i| even.add(mix(i), 1));
        assert!(even.get(mix(3999)) == 1 && even.n_keys < 3000);
    }
}
