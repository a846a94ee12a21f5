//! Records in parts that are small enough to be sorted in memory.
//!
//! A sort of everything would touch all memory repeatedly. Instead, records are written to one of
//! up to [`MAX_PARTS`] files by their key, and each file is read at once and sorted separately. If
//! a part is larger than the memory, [`Sorter`] sorts it in runs.

use std::path::{Path, PathBuf};

use bytemuck::Pod;

use crate::Error;
use crate::column::{Column, Scan, Writer};
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

/// A record whose order begins with a number.
pub(crate) trait Keyed: Pod + Ord + Send {
    /// A record with a smaller key is smaller.
    fn key(&self) -> u64;
}

/// Returns all records of a part, unless they take more than half of the allowance.
pub(crate) fn load<T: Pod>(
    base: &Path,
    part: u64,
    allowance: u64,
) -> Result<Option<Vec<T>>, Error> {
    match Column::open(&path(base, part), allowance / 2)? {
        Column::Memory(records) => Ok(Some(records)),
        Column::File { .. } => Ok(None),
    }
}

/// Returns the records of a part in order.
fn sorted<T: Keyed>(base: &Path, part: u64, allowance: u64) -> Result<Sorted<T>, Error> {
    match load(base, part, allowance)? {
        Some(records) => Ok(Sorted::Memory(in_order(records).into_iter())),
        None => sorted_runs(base, part, allowance, |_| true),
    }
}

/// Returns the `wanted` records of a part in order. They are sorted in runs if necessary.
pub(crate) fn sorted_runs<T: Keyed>(
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

/// Number of records that a bucket should have on average.
const BUCKET: usize = 8;
/// Maximum number of buckets, so that writing to all of them stays in the cache.
const MAX_BUCKET_BITS: u32 = 13;

/// Sorts records: first into buckets, by the highest bits in which keys differ, then each bucket.
/// Most buckets have few records, so this takes fewer steps than comparing all of them.
pub(crate) fn in_order<T: Keyed>(mut records: Vec<T>) -> Vec<T> {
    let keys = || records.iter().map(Keyed::key);
    let differing =
        keys().fold(0, |bits, key| bits | key) & !keys().fold(!0, |bits, key| bits & key);
    let n_bits = (records.len() / BUCKET).max(1).ilog2().min(MAX_BUCKET_BITS);
    let shift = (64 - differing.leading_zeros()).saturating_sub(n_bits);
    if n_bits == 0 || differing == 0 {
        records.sort_unstable();
        return records;
    }
    let mask = (1 << n_bits) - 1;
    let bucket = |record: &T| (record.key() >> shift & mask) as usize;
    let mut ends = vec![0; 1 << n_bits];
    records.iter().for_each(|record| ends[bucket(record)] += 1);
    let mut end = 0;
    for next in &mut ends {
        end += std::mem::replace(next, end);
    }
    let mut sorted = vec![T::zeroed(); records.len()];
    for record in &records {
        let next = &mut ends[bucket(record)];
        sorted[*next] = *record;
        *next += 1;
    }
    drop(records);
    let mut rest = &mut sorted[..];
    let mut start = 0;
    for end in ends {
        let (bucket, after) = rest.split_at_mut(end - start);
        bucket.sort_unstable();
        (rest, start) = (after, end);
    }
    sorted
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

impl<T: Keyed> InOrder<T> {
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
            self.sorted = Some(sorted(&self.base, self.part, self.allowance)?);
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
        // The highest bits are those of the part.
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

    impl Keyed for [u32; 2] {
        fn key(&self) -> u64 {
            u64::from(self[0]) << 32 | u64::from(self[1] / 8)
        }
    }

    /// Keys that are all equal, nearly equal, evenly spread, and mostly small.
    #[test]
    fn buckets_are_in_order() {
        let mut random = SplitMix::new(4);
        for n in [0, 1, 2, 100, 50_000] {
            for most in [1, 2, 9, 1 << 20, 1 << 32] {
                let mut number = || match random.below(3) {
                    0 => random.below(most) as u32,
                    _ => random.below(most.isqrt()) as u32,
                };
                let records = (0..n).map(|_| [number(), number()]);
                let records: Vec<[u32; 2]> = records.collect();
                let mut expected = records.clone();
                expected.sort_unstable();
                assert!(in_order(records) == expected, "{n} below {most}");
            }
        }
    }

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
