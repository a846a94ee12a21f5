//! The most recent documents: in memory, found by key, until they become a sorted run.
//!
//! A hash table with open addressing leads from a prefix to its newest entry, and from there a
//! chain leads to the older ones. So a key that all documents share costs no more than any other.
//! An entry takes eight bytes, four for the chain and about eight for the table.

use super::Error;
use super::file::{Allowance, Content};
use super::folder::Fresh;
use super::keys::PREFIX_BITS;
use super::manifest::{Manifest, Part};
use super::order::Order;
use super::records::{Block, Records};
use super::run::{Entry, Run, RunWriter};
use super::sketch::Sketch;

/// Documents in memory.
#[derive(Debug)]
pub(super) struct Recent {
    /// The row of the first of them in the whole index.
    pub(super) first_row: u32,
    pub(super) block: Block,
    entries: Vec<Entry>,
    /// For each entry, the index plus one of an older entry with the same prefix; 0 if there is
    /// none.
    older: Vec<u32>,
    /// For each hash value, the index plus one of the newest entry of some prefix; 0 if there is
    /// none.
    slots: Vec<u32>,
}

impl Recent {
    pub(super) fn new(first_row: u32, n_words: usize) -> Self {
        Self {
            first_row,
            block: Block::new(n_words),
            entries: Vec::new(),
            older: Vec::new(),
            slots: vec![0; 1 << 10],
        }
    }

    /// Creates an empty block to follow this one. Its table has the size that this one needed,
    /// since growing costs as much as filling.
    pub(super) fn next(&self) -> Self {
        let mut next = Self::new(self.next_row(), self.block.n_words());
        next.slots = vec![0; self.slots.len()];
        next.entries.reserve(self.entries.len());
        next.older.reserve(self.entries.len());
        next
    }

    pub(super) fn n_rows(&self) -> usize {
        self.block.n_rows()
    }

    /// Returns the row that the next document will have.
    pub(super) fn next_row(&self) -> u32 {
        self.first_row + self.n_rows() as u32
    }

    /// Adds a document that is to be found under `keys`.
    pub(super) fn push(&mut self, name: &str, sketch: &Sketch, keys: &[u64]) {
        let row = self.n_rows() as u32;
        self.block.push(name, sketch);
        while 3 * (self.entries.len() + keys.len()) > 2 * self.slots.len() {
            self.grow();
        }
        for &key in keys {
            self.push_entry(Entry::new(key, row));
        }
    }

    /// Appends the rows, in the whole index, of all entries with the prefixes of `keys`.
    pub(super) fn find(&self, keys: &[u64], rows: &mut Vec<u32>) {
        for &key in keys {
            let mut place = self.slots[self.slot(Entry::new(key, 0).prefix())];
            while let Some(idx) = place.checked_sub(1) {
                rows.push(self.first_row + self.entries[idx as usize].row());
                place = self.older[idx as usize];
            }
        }
    }

    /// Visits the prefixes of all entries up to `end`.
    pub(super) fn for_each_prefix_up_to(&self, end: u64, visit: impl FnMut(u64)) {
        let prefixes = self.entries.iter().map(|entry| entry.prefix());
        prefixes.filter(|&prefix| prefix <= end).for_each(visit);
    }

    /// Writes everything as records and a sorted run, and lists both in the manifest.
    pub(super) fn write(
        &self,
        manifest: &mut Manifest,
        fresh: &mut Fresh<'_>,
        allowance: &Allowance,
    ) -> Result<(Records, Run), Error> {
        let number = manifest.take_number();
        let path = fresh.path(Content::Records, number);
        let check = self.block.write(&path, self.first_row)?;
        let mut records = Records::open(&path, check)?;
        records.hold(allowance)?;
        manifest.records.push(Part { number, check });

        let number = manifest.take_number();
        let path = fresh.path(Content::Run, number);
        let n_rows = self.n_rows() as u32;
        let n_entries = self.entries.len() as u32;
        let mut writer = RunWriter::create(&path, self.first_row, n_rows, n_entries)?;
        let mut order = Order::default();
        let mut sorted = order.sort(&self.entries, 0).iter();
        sorted.try_for_each(|&entry| writer.push(entry))?;
        let mut run = writer.finish(&path, number)?;
        run.hold(allowance)?;
        let check = run.check();
        manifest.runs.push(Part { number, check });
        Ok((records, run))
    }

    /// Returns the memory use in bytes.
    pub(super) fn n_bytes(&self) -> usize {
        self.block.n_bytes() + 12 * self.entries.len() + 4 * self.slots.len()
    }

    fn push_entry(&mut self, entry: Entry) {
        let slot = self.slot(entry.prefix());
        self.entries.push(entry);
        self.older.push(self.slots[slot]);
        self.slots[slot] = self.entries.len() as u32;
    }

    /// Returns the slot of a prefix in the table, or the slot where it would be.
    fn slot(&self, prefix: u64) -> usize {
        let mask = self.slots.len() - 1;
        // The first bits, scaled to the table.
        let mut slot = (prefix >> (PREFIX_BITS - self.slots.len().ilog2())) as usize;
        while let Some(idx) = self.slots[slot].checked_sub(1) {
            if self.entries[idx as usize].prefix() == prefix {
                break;
            }
            slot = (slot + 1) & mask;
        }
        slot
    }

    fn grow(&mut self) {
        let n_slots = 2 * self.slots.len();
        self.slots = vec![0; n_slots];
        let entries = std::mem::take(&mut self.entries);
        self.older.clear();
        self.entries.reserve(entries.len());
        for entry in entries {
            self.push_entry(entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arose::digest::Digest;
    use arose::mix::SplitMix;

    /// A thousand documents, with some keys that all of them share.
    #[test]
    fn documents_are_found_under_their_keys() {
        let mut random = SplitMix::new(3);
        let mut recent = Recent::new(100, 0);
        let sketch = Sketch {
            digest: Digest(7),
            site: None,
            is_short: false,
            words: Vec::new(),
            pairs: None,
        };
        let mut known = Vec::new();
        for row in 100..1100 {
            let keys = [random.next_u64(), random.below(5) << 60, 9 << 40];
            recent.push(&row.to_string(), &sketch, &keys);
            known.extend(keys.map(|key| (key, row)));
        }
        for &(key, _) in known.iter().step_by(7) {
            let mut found = Vec::new();
            recent.find(&[key], &mut found);
            found.sort_unstable();
            let same = known.iter().filter(|(other, _)| key >> 30 == other >> 30);
            assert_eq!(found, same.map(|&(_, row)| row).collect::<Vec<u32>>());
        }
        assert_eq!(recent.entries.len(), 3000);
        assert_eq!(recent.block.name(17), "117");
    }
}
