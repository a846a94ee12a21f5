//! A list of queued URLs in blocks of one size.
//!
//! *Question.* Queues grow by one URL at a time, and there are many of them. A vector that grows by
//! a little is moved each time. It leaves a gap that the other vectors, which have grown meanwhile,
//! do not fit into: with vectors, queues of 800 URLs took 14.9 bytes for each entry of 11. A vector
//! that doubles is a quarter empty on average. How can queues avoid both?
//!
//! *Idea.* All blocks but the last are full and have the same size, so a block that is freed fits
//! the next queue that needs one. Adding or removing an entry moves those after it by one, across
//! blocks.
//!
//! *Cost.* 24 bytes for each full block of [`SIZE`] entries, and room for at most [`STEP`] entries.
//! Adding or removing takes time linear in the length, so lists must be short or grow at the end.

use super::queue::QueueEntry;

/// Number of entries in a full block.
const SIZE: usize = 64;
/// Number of entries by which the last block grows.
const STEP: usize = 8;

/// Entries in an order that the caller keeps.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    #[expect(clippy::vec_box, reason = "blocks of one size are the point")]
    full: Vec<Box<[QueueEntry; SIZE]>>,
    /// Fewer entries than a full block.
    last: Vec<QueueEntry>,
}

impl Blocks {
    /// Returns a list of these entries.
    pub(super) fn of(entries: &[QueueEntry]) -> Self {
        let mut blocks = Self::default();
        blocks.full.reserve_exact(entries.len() / SIZE);
        let (full, last) = entries.as_chunks();
        blocks
            .full
            .extend(full.iter().map(|block| Box::new(*block)));
        blocks.last.reserve_exact(last.len().next_multiple_of(STEP));
        blocks.last.extend(last);
        blocks
    }

    pub(super) fn len(&self) -> usize {
        self.full.len() * SIZE + self.last.len()
    }

    pub(super) fn get(&self, at: usize) -> Option<&QueueEntry> {
        match self.full.get(at / SIZE) {
            Some(block) => block.get(at % SIZE),
            None => self.last.get(at - self.full.len() * SIZE),
        }
    }

    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut QueueEntry> {
        let n_full = self.full.len();
        match self.full.get_mut(at / SIZE) {
            Some(block) => block.get_mut(at % SIZE),
            None => self.last.get_mut(at - n_full * SIZE),
        }
    }

    pub(super) fn last(&self) -> Option<&QueueEntry> {
        self.get(self.len().checked_sub(1)?)
    }

    /// Returns the entries, block by block.
    pub(super) fn slices(&self) -> impl Iterator<Item = &[QueueEntry]> {
        let full = self.full.iter().map(|block| block.as_slice());
        full.chain([self.last.as_slice()])
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &QueueEntry> {
        self.slices().flatten()
    }

    /// Returns the index of the first entry that is not `is_before`; all entries that are must come
    /// first.
    pub(super) fn partition_point(&self, is_before: impl Fn(&QueueEntry) -> bool) -> usize {
        let n_whole = self
            .full
            .partition_point(|block| is_before(&block[SIZE - 1]));
        let block = match self.full.get(n_whole) {
            Some(block) => block.as_slice(),
            None => &self.last,
        };
        n_whole * SIZE + block.partition_point(is_before)
    }

    /// Adds an entry at the end.
    pub(super) fn push(&mut self, entry: QueueEntry) {
        self.insert(self.len(), entry);
    }

    /// Adds an entry before the one at `at`, or at the end.
    pub(super) fn insert(&mut self, at: usize, mut entry: QueueEntry) {
        let mut from = at % SIZE;
        for block in self.full.iter_mut().skip(at / SIZE) {
            let pushed_out = block[SIZE - 1];
            block.copy_within(from..SIZE - 1, from + 1);
            block[from] = entry;
            (entry, from) = (pushed_out, 0);
        }
        if self.last.len() == self.last.capacity() {
            self.last.reserve_exact(STEP);
        }
        self.last.insert(from, entry);
        if let Ok(block) = <&[QueueEntry; SIZE]>::try_from(self.last.as_slice()) {
            self.full.reserve_exact(1);
            self.full.push(Box::new(*block));
            self.last = Vec::new();
        }
    }

    /// Removes the entry at `at`; returns `None` if there are fewer entries.
    pub(super) fn remove(&mut self, at: usize) -> Option<QueueEntry> {
        let removed = *self.get(at)?;
        if self.last.is_empty() {
            self.last = self.full.pop()?.to_vec();
        }
        let n_full = self.full.len();
        match at / SIZE < n_full {
            true => {
                let mut pulled_in = self.last.remove(0);
                for (n, block) in self.full.iter_mut().enumerate().skip(at / SIZE).rev() {
                    let to = if n == at / SIZE { at % SIZE } else { 0 };
                    let first = block[to];
                    block.copy_within(to + 1.., to);
                    block[SIZE - 1] = pulled_in;
                    pulled_in = first;
                }
            }
            false => {
                self.last.remove(at - n_full * SIZE);
            }
        }
        if self.last.len() + 2 * STEP <= self.last.capacity() {
            self.last.shrink_to(self.last.len() + STEP);
        }
        Some(removed)
    }

    /// Returns the bytes allocated in addition to the value itself, by an allocator whose blocks
    /// have a header of eight bytes and are rounded up to sixteen.
    #[cfg(test)]
    pub(super) fn n_bytes(&self) -> usize {
        let block = |n_bytes: usize| match n_bytes {
            0 => 0,
            _ => (n_bytes + 8).next_multiple_of(16).max(32),
        };
        self.full.len() * block(SIZE * size_of::<QueueEntry>())
            + block(self.full.capacity() * size_of::<usize>())
            + block(self.last.capacity() * size_of::<QueueEntry>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontier::Tag;
    use crate::journal::Place;
    use crate::order::Weight;
    use arose::mix::SplitMix;

    fn entry(place: Place) -> QueueEntry {
        QueueEntry::new(Tag::of(place), place, Weight::default(), 0)
    }

    fn places(blocks: &Blocks) -> Vec<Place> {
        blocks.iter().map(QueueEntry::place).collect()
    }

    /// Whatever is inserted and removed, the list equals a vector.
    #[test]
    fn as_a_vector() {
        let mut random = SplitMix::new(5);
        let (mut blocks, mut model) = (Blocks::default(), Vec::new());
        for round in 0..6000_u64 {
            let is_growing = round / 1500 % 2 == 0;
            let at = random.below(model.len() as u64 + 1) as usize;
            if random.below(10) < if is_growing { 7 } else { 2 } {
                blocks.insert(at, entry(round));
                model.insert(at, round);
            } else {
                let removed = blocks.remove(at).map(|entry| entry.place());
                let expected = (at < model.len()).then(|| model.remove(at));
                assert_eq!(removed, expected);
            }
            assert_eq!(blocks.len(), model.len());
            assert_eq!(
                blocks.get(at).map(QueueEntry::place),
                model.get(at).copied()
            );
            assert_eq!(blocks.last().map(QueueEntry::place), model.last().copied());
            if round % 50 == 0 {
                assert_eq!(places(&blocks), model);
            }
            let slack = blocks.last.capacity() - blocks.last.len();
            assert!(slack < 2 * STEP && blocks.last.len() < SIZE, "{slack}");
        }
    }

    #[test]
    fn any_length() {
        for n in [0, 1, 63, 64, 65, 127, 128, 200] {
            let entries: Vec<QueueEntry> = (0..n).map(entry).collect();
            let mut blocks = Blocks::of(&entries);
            assert!(places(&blocks).into_iter().eq(0..n));
            for place in [0, n / 3, n / 2, n] {
                let found = blocks.partition_point(|entry| entry.place() < place);
                assert_eq!(found as u64, place);
            }
            let last = blocks.len().wrapping_sub(1);
            assert_eq!(blocks.get_mut(last).is_some(), n > 0);
            assert!(blocks.get_mut(blocks.len()).is_none());
            blocks.push(entry(n));
            assert!(places(&blocks).into_iter().eq(0..=n));
        }
    }
}
