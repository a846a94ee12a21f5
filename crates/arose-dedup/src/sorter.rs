//! Sorts more records than fit in memory.
//!
//! Records are gathered until the allowance is used up, then sorted and written as a sorted run. At
//! the end the runs are merged (external merge sort). If there are more runs than the allowance has
//! buffers for, the oldest are merged into one first, in several passes if necessary. The result is
//! the same for any allowance. Disk: the size of the records once, and only if they did not fit.
//! During a pass, the runs that it merges exist twice.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::path::{Path, PathBuf};

use bytemuck::Pod;
use rayon::slice::ParallelSliceMut;

use crate::Error;
use crate::column::{BUFFER_BYTES, Scan, Writer};

/// Minimum number of runs that are merged at once, whatever the allowance is.
const MIN_FAN_IN: u64 = 16;
/// Bytes of a buffer from which on it gets its full capacity. To double it again and again would
/// need up to half as much memory once more while records are copied, and the allocator keeps what
/// was freed for a while. Memory that is reserved takes nothing before it is written.
const SMALL_BYTES: usize = 1 << 18;

/// Takes records in any order and returns them sorted.
pub(crate) struct Sorter<T> {
    /// The path with which the names of runs begin.
    base: PathBuf,
    buffer: Vec<T>,
    capacity: usize,
    /// Number of runs that are merged at once.
    fan_in: usize,
    /// The oldest first.
    runs: VecDeque<PathBuf>,
    n_runs: usize,
}

impl<T: Pod + Ord + Send> Sorter<T> {
    /// Creates a sorter that uses at most `allowance` bytes of memory, and files whose names begin
    /// with `base`.
    pub(crate) fn new(base: &Path, allowance: u64) -> Self {
        let capacity = (allowance / size_of::<T>() as u64).max(1 << 12) as usize;
        Self {
            base: base.to_owned(),
            buffer: Vec::new(),
            capacity,
            fan_in: (allowance / BUFFER_BYTES as u64).max(MIN_FAN_IN) as usize,
            runs: VecDeque::new(),
            n_runs: 0,
        }
    }

    pub(crate) fn push(&mut self, record: T) -> Result<(), Error> {
        if self.buffer.len() == self.capacity {
            self.write_run()?;
        }
        if self.buffer.len() == self.buffer.capacity() {
            self.grow();
        }
        self.buffer.push(record);
        Ok(())
    }

    #[cold]
    fn grow(&mut self) {
        let n = self.buffer.len();
        if size_of::<T>() * n >= SMALL_BYTES {
            self.buffer.reserve_exact(self.capacity - n);
        }
    }

    pub(crate) fn extend(&mut self, records: &[T]) -> Result<(), Error> {
        records.iter().try_for_each(|record| self.push(*record))
    }

    pub(crate) fn finish(mut self) -> Result<Sorted<T>, Error> {
        if self.runs.is_empty() {
            sort(&mut self.buffer);
            return Ok(Sorted::Memory(self.buffer.into_iter()));
        }
        self.write_run()?;
        self.buffer = Vec::new();
        while self.runs.len() > self.fan_in {
            self.merge_oldest()?;
        }
        merge(self.runs.into())
    }

    /// Writes the records in order. Returns their number.
    pub(crate) fn write(self, path: &Path) -> Result<u64, Error> {
        let mut sorted = self.finish()?;
        let mut out = Writer::create(path)?;
        while let Some(record) = sorted.next()? {
            out.push(&record)?;
        }
        out.finish()
    }

    fn write_run(&mut self) -> Result<(), Error> {
        sort(&mut self.buffer);
        let path = self.next_path();
        let mut writer = Writer::create(&path)?;
        writer.extend(&self.buffer)?;
        writer.finish()?;
        self.buffer.clear();
        self.runs.push_back(path);
        Ok(())
    }

    /// Merges the oldest runs, which are the shortest, into one.
    fn merge_oldest(&mut self) -> Result<(), Error> {
        let n = self.fan_in.min(self.runs.len() + 1 - self.fan_in);
        let mut sorted = merge::<T>(self.runs.drain(..n.max(2)).collect())?;
        let path = self.next_path();
        let mut writer = Writer::create(&path)?;
        while let Some(record) = sorted.next()? {
            writer.push(&record)?;
        }
        writer.finish()?;
        self.runs.push_back(path);
        Ok(())
    }

    fn next_path(&mut self) -> PathBuf {
        let mut path = self.base.clone().into_os_string();
        path.push(format!(".run{}", self.n_runs));
        self.n_runs += 1;
        path.into()
    }
}

/// Sorts on all threads. One thread alone is faster with the sort of the standard library.
fn sort<T: Ord + Send>(records: &mut [T]) {
    match rayon::current_num_threads() {
        1 => records.sort_unstable(),
        _ => records.par_sort_unstable(),
    }
}

/// The records of several runs in order.
fn merge<T: Pod + Ord>(paths: Vec<PathBuf>) -> Result<Sorted<T>, Error> {
    let mut sources = Vec::with_capacity(paths.len());
    let mut heads = BinaryHeap::with_capacity(paths.len());
    for (index, path) in paths.iter().enumerate() {
        let mut scan = Scan::open(path)?;
        heads.extend(scan.next()?.map(|first| Reverse((first, index))));
        sources.push(scan);
    }
    Ok(Sorted::Merge {
        heads,
        sources,
        paths,
    })
}

/// Sorted records.
pub(crate) enum Sorted<T> {
    Memory(std::vec::IntoIter<T>),
    Merge {
        heads: BinaryHeap<Reverse<(T, usize)>>,
        sources: Vec<Scan<T>>,
        paths: Vec<PathBuf>,
    },
}

impl<T: Pod + Ord> Sorted<T> {
    pub(crate) fn next(&mut self) -> Result<Option<T>, Error> {
        match self {
            Self::Memory(records) => Ok(records.next()),
            Self::Merge { heads, sources, .. } => {
                let Some(mut head) = heads.peek_mut() else {
                    return Ok(None);
                };
                let Reverse((record, index)) = *head;
                match sources[index].next()? {
                    Some(next) => *head = Reverse((next, index)),
                    None => drop(std::collections::binary_heap::PeekMut::pop(head)),
                }
                Ok(Some(record))
            }
        }
    }
}

impl<T> Drop for Sorted<T> {
    /// Removes the runs. If this fails, they are removed with the work directory.
    fn drop(&mut self) {
        if let Self::Merge { paths, .. } = self {
            for path in paths {
                _ = std::fs::remove_file(path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arose::mix::SplitMix;

    /// Sorts this many records, many of them equal, with this much memory.
    fn check(n: u32, allowance: u64) {
        let folder = tempfile::tempdir().unwrap();
        let mut sorter = Sorter::new(&folder.path().join("sort"), allowance);
        let mut random = SplitMix::new(3);
        let mut expected: Vec<[u32; 2]> = Vec::new();
        for i in 0..n {
            let record = [random.below(1000) as u32, i];
            expected.push(record);
            sorter.push(record).unwrap();
        }
        expected.sort_unstable();
        let mut sorted = sorter.finish().unwrap();
        let mut records = Vec::new();
        while let Some(record) = sorted.next().unwrap() {
            records.push(record);
        }
        assert_eq!(records, expected);
        drop(sorted);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn in_memory() {
        check(50_000, 1 << 20);
    }

    #[test]
    fn in_many_runs() {
        check(50_000, 0);
    }

    /// 25 runs, of which 16 are merged at once, and 300, of which some are merged twice.
    #[test]
    fn in_several_passes() {
        check(100_000, 0);
        check(1_200_000, 0);
    }
}
