//! Counts of the pages of a site that contain a word pair, updated as pages are inserted.
//!
//! A table maps keys to numbers. A key stands for a word pair of a site, a page of a site, or a
//! site. One word pair in 4 is counted, about 120 per page of 500 words, and most are on one page
//! only. The table has a maximum size. When it is full, it discards the half of its keys with the
//! smallest numbers, so that repeated text stays and text met once goes. Within about fifty
//! thousand pages nothing is discarded. A discarded word pair starts again at zero. So numbers can
//! only be too small, which makes a frame weigh more.
//!
//! Tables of two sets of pages are merged by adding their numbers ([`SiteCountTable::add`]).

use std::path::Path;

use super::Error;
use super::file::{Content, NumberReader, read_sealed, write_sealed};

/// Keys and their numbers.
#[derive(Debug, Clone)]
pub(super) struct SiteCountTable {
    /// A slot with the number zero is free.
    keys: Vec<u64>,
    numbers: Vec<u32>,
    n_keys: usize,
    /// Maximum number of slots, a power of two.
    max_slots: usize,
    /// Number of keys added since the table was read or written.
    n_changes: u64,
}

/// Minimum number of slots.
const MIN_SLOTS: usize = 1 << 10;

impl SiteCountTable {
    /// Creates an empty table with about this maximum number of keys, rounded to a possible size.
    pub(super) fn new(max_keys: u32) -> Self {
        let max_slots = (max_keys as usize * 4 / 3).next_power_of_two();
        Self {
            keys: vec![0; MIN_SLOTS],
            numbers: vec![0; MIN_SLOTS],
            n_keys: 0,
            max_slots: max_slots.max(MIN_SLOTS),
            n_changes: 0,
        }
    }

    /// Returns the number of a key; zero if it is not in the table.
    pub(super) fn get(&self, key: u64) -> u32 {
        self.numbers[self.slot(key)]
    }

    /// Adds to the number of a key.
    pub(super) fn add(&mut self, key: u64, n: u32) {
        if n == 0 {
            return;
        }
        if 4 * (self.n_keys + 1) > 3 * self.keys.len() {
            self.make_room();
        }
        let slot = self.slot(key);
        self.n_keys += usize::from(self.numbers[slot] == 0);
        self.keys[slot] = key;
        self.numbers[slot] = self.numbers[slot].saturating_add(n);
        self.n_changes += 1;
    }

    /// Returns whether something was added since the table was written or read.
    pub(super) fn is_changed(&self) -> bool {
        self.n_changes > 0
    }

    /// Records that the table is in a file.
    pub(super) fn set_written(&mut self) {
        self.n_changes = 0;
    }

    /// Returns the memory use in bytes.
    pub(super) fn n_bytes(&self) -> usize {
        12 * self.keys.len()
    }

    /// Writes all keys in ascending order.
    pub(super) fn write(&self, path: &Path) -> Result<u64, Error> {
        let mut all: Vec<(u64, u32)> = self.iter().collect();
        all.sort_unstable();
        let mut body = Vec::with_capacity(12 * all.len());
        for (key, n) in all {
            body.extend(key.to_le_bytes());
            body.extend(n.to_le_bytes());
        }
        write_sealed(Content::SiteCounts, path, &body)
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
        let mut fields = NumberReader::new(&body, path);
        while !fields.is_empty() {
            counts.add(fields.u64()?, fields.u32()?);
        }
        counts.set_written();
        Ok(counts)
    }

    fn iter(&self) -> impl Iterator<Item = (u64, u32)> {
        let slots = self.keys.iter().copied().zip(self.numbers.iter().copied());
        slots.filter(|(_, n)| *n > 0)
    }

    fn slot(&self, key: u64) -> usize {
        let mask = self.keys.len() - 1;
        let mut slot = key as usize & mask;
        while self.numbers[slot] > 0 && self.keys[slot] != key {
            slot = (slot + 1) & mask;
        }
        slot
    }

    /// Enlarges the table, or discards the keys with the smallest numbers.
    fn make_room(&mut self) {
        let (n_slots, least) = match self.keys.len() < self.max_slots {
            true => (2 * self.keys.len(), 1),
            false => (self.keys.len(), self.median() + 1),
        };
        let kept: Vec<(u64, u32)> = self.iter().filter(|(_, n)| *n >= least).collect();
        self.keys = vec![0; n_slots];
        self.numbers = vec![0; n_slots];
        self.n_keys = kept.len();
        for (key, n) in kept {
            let slot = self.slot(key);
            (self.keys[slot], self.numbers[slot]) = (key, n);
        }
    }

    /// Returns a number that half of all numbers do not exceed.
    fn median(&self) -> u32 {
        let mut numbers: Vec<u32> = self.iter().map(|(_, n)| n).collect();
        let middle = numbers.len() / 2;
        match numbers.is_empty() {
            true => 0,
            false => *numbers.select_nth_unstable(middle).1,
        }
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
        assert_eq!(listed, expected);
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
