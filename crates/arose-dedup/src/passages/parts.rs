//! Records in parts that are small enough to be sorted in memory.
//!
//! A sort of everything would touch all memory repeatedly. Instead, records are written to one of
//! up to [`MAX_PARTS`] files by their key, and each file is sorted separately. If a part is larger
//! than the memory, [`Sorter`] sorts it in runs.

use std::path::{Path, PathBuf};

use bytemuck::Pod;

use crate::Error;
use crate::column::{Scan, Writer};
use crate::sorter::{Sorted, Sorter};

/// More parts would need more buffers than they save.
pub(crate) const MAX_PARTS: u64 = 64;

/// Records being distributed.
pub(crate) struct Parts<T> {
    writers: Vec<Writer<T>>,
}

impl<T: Pod> Parts<T> {
    /// Creates parts whose names begin with `base`.
    pub(crate) fn create(base: &Path, n_parts: u64) -> Result<Self, Error> {
        let writers = (0..n_parts).map(|part| Writer::create(&path(base, part)));
        Ok(Self {
            writers: writers.collect::<Result<_, Error>>()?,
        })
    }

    pub(crate) fn push(&mut self, part: u64, record: &T) -> Result<(), Error> {
        self.writers[part as usize].push(record)
    }

    /// Returns the number of records.
    pub(crate) fn finish(self) -> Result<u64, Error> {
        self.writers.into_iter().map(Writer::finish).sum()
    }
}

/// Returns the path of a part.
pub(crate) fn path(base: &Path, part: u64) -> PathBuf {
    let mut path = base.to_owned().into_os_string();
    path.push(format!(".part{part}"));
    path.into()
}

/// Returns the `wanted` records of a part in order.
pub(crate) fn sorted<T: Pod + Ord + Send>(
    base: &Path,
    part: u64,
    allowance: u64,
    wanted: impl Fn(&T) -> bool,
) -> Result<Sorted<T>, Error> {
    let path = path(base, part);
    let mut scan = Scan::<T>::open(&path)?;
    let mut sorter = Sorter::new(&path, allowance);
    while let Some(record) = scan.next()? {
        if wanted(&record) {
            sorter.push(record)?;
        }
    }
    sorter.finish()
}

/// Returns the records of all parts one after the other. They are in order if the keys of a part
/// are less than those of the next.
pub(crate) struct InOrder<T> {
    base: PathBuf,
    n_parts: u64,
    allowance: u64,
    part: u64,
    sorted: Option<Sorted<T>>,
}

impl<T: Pod + Ord + Send> InOrder<T> {
    pub(crate) fn new(base: &Path, n_parts: u64, allowance: u64) -> Self {
        Self {
            base: base.to_owned(),
            n_parts,
            allowance,
            part: 0,
            sorted: None,
        }
    }

    pub(crate) fn next(&mut self) -> Result<Option<T>, Error> {
        loop {
            if let Some(sorted) = &mut self.sorted
                && let Some(record) = sorted.next()?
            {
                return Ok(Some(record));
            }
            if self.part == self.n_parts {
                return Ok(None);
            }
            // The previous part is removed first, so that there is only one at a time.
            self.sorted = None;
            self.sorted = Some(sorted(&self.base, self.part, self.allowance, |_| true)?);
            self.part += 1;
        }
    }
}

/// Documents in parts of about equal numbers, in order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ByDocument {
    n_docs: u64,
    n_parts: u64,
}

impl ByDocument {
    pub(crate) fn new(n_docs: u64, n_parts: u64) -> Self {
        Self {
            n_docs: n_docs.max(1),
            n_parts,
        }
    }

    pub(crate) fn part(self, doc: u32) -> u64 {
        u64::from(doc) * self.n_parts / self.n_docs
    }
}

/// Records hashes compactly, to find those that may have occurred twice.
pub(crate) struct Twice {
    once: Vec<u64>,
    twice: Vec<u64>,
    mask: u64,
}

/// Maximum number of bits per table: 16 MiB for both tables.
const MAX_BITS: u64 = 1 << 26;

impl Twice {
    /// Creates a filter for about this many hashes.
    pub(crate) fn new(n: u64) -> Self {
        let n_bits = (8 * n).next_power_of_two().clamp(64, MAX_BITS);
        let empty = vec![0; (n_bits / 64) as usize];
        Self {
            once: empty.clone(),
            twice: empty,
            mask: n_bits - 1,
        }
    }

    fn place(&self, hash: u64) -> (usize, u64) {
        // The highest bits of minima are zero, and the lowest may have another meaning.
        let at = (hash >> 8) & self.mask;
        ((at / 64) as usize, 1 << (at % 64))
    }

    pub(crate) fn insert(&mut self, hash: u64) {
        let (at, bit) = self.place(hash);
        self.twice[at] |= self.once[at] & bit;
        self.once[at] |= bit;
    }

    /// Returns whether the hash may have occurred twice. Never false if it has.
    pub(crate) fn contains(&self, hash: u64) -> bool {
        let (at, bit) = self.place(hash);
        self.twice[at] & bit != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arose::mix::SplitMix;

    #[test]
    fn parts_by_document_are_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().join("records");
        for allowance in [0, 1 << 20] {
            let parts = ByDocument::new(1000, 7);
            let mut out = Parts::create(&base, 7).unwrap();
            let mut random = SplitMix::new(1);
            let mut expected = Vec::new();
            for _ in 0..50_000 {
                let record = [random.below(1000) as u32, random.below(10) as u32];
                expected.push(record);
                out.push(parts.part(record[0]), &record).unwrap();
            }
            assert_eq!(out.finish().unwrap(), 50_000);
            expected.sort_unstable();
            let mut sorted = InOrder::<[u32; 2]>::new(&base, 7, allowance);
            let found = std::iter::from_fn(|| sorted.next().unwrap());
            assert!(found.eq(expected));
        }
    }

    #[test]
    fn what_came_twice_is_known() {
        let mut random = SplitMix::new(2);
        let hashes: Vec<u64> = (0..10_000).map(|_| random.next_u64()).collect();
        let mut filter = Twice::new(10_000);
        hashes.iter().for_each(|hash| filter.insert(*hash));
        hashes[..100].iter().for_each(|hash| filter.insert(*hash));
        assert!(hashes[..100].iter().all(|hash| filter.contains(*hash)));
        let n_false = hashes[100..].iter().filter(|hash| filter.contains(**hash));
        // At most 1 in 8 collides with another by chance.
        assert!(n_false.count() < 1500);
    }
}
