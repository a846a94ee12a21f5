//! Records between two steps of a stage: in memory if they fit, otherwise in a file.

use std::path::{Path, PathBuf};

use bytemuck::Pod;

use crate::Error;
use crate::column::{Scan, Writer};

/// Takes records and returns them as often as wanted.
pub(crate) struct Spool<T> {
    path: PathBuf,
    records: Vec<T>,
    /// Maximum number of records in memory.
    capacity: usize,
    file: Option<Writer<T>>,
}

impl<T: Pod> Spool<T> {
    /// Creates a spool that uses at most `allowance` bytes of memory, and otherwise a file.
    pub(crate) fn new(path: &Path, allowance: u64) -> Self {
        Self {
            path: path.to_owned(),
            records: Vec::new(),
            capacity: (allowance / size_of::<T>() as u64) as usize,
            file: None,
        }
    }

    pub(crate) fn push(&mut self, record: &T) -> Result<(), Error> {
        self.extend(std::slice::from_ref(record))
    }

    pub(crate) fn extend(&mut self, records: &[T]) -> Result<(), Error> {
        if let Some(file) = &mut self.file {
            return file.extend(records);
        }
        self.records.extend_from_slice(records);
        if self.records.len() > self.capacity {
            let mut file = Writer::create(&self.path)?;
            file.extend(&self.records)?;
            self.records = Vec::new();
            self.file = Some(file);
        }
        Ok(())
    }

    /// Returns the number of records.
    pub(crate) fn len(&self) -> u64 {
        match &self.file {
            None => self.records.len() as u64,
            Some(file) => file.len(),
        }
    }

    /// Removes all records.
    pub(crate) fn clear(&mut self) {
        self.records.clear();
        self.file = None;
    }

    /// Returns the records in order, from the first one on.
    pub(crate) fn scan(&mut self) -> Result<SpoolScan<'_, T>, Error> {
        let Some(file) = &mut self.file else {
            return Ok(SpoolScan::Memory(self.records.iter()));
        };
        file.flush()?;
        Ok(SpoolScan::File(Scan::open(&self.path)?))
    }
}

/// Reads the records of a spool in order.
pub(crate) enum SpoolScan<'a, T> {
    Memory(std::slice::Iter<'a, T>),
    File(Scan<T>),
}

impl<T: Pod> SpoolScan<'_, T> {
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<T>, Error> {
        match self {
            Self::Memory(records) => Ok(records.next().copied()),
            Self::File(scan) => scan.next(),
        }
    }

    /// Skips this many records.
    pub(crate) fn skip(&mut self, n: u32) -> Result<(), Error> {
        match self {
            Self::Memory(records) => {
                *records = records
                    .as_slice()
                    .get(n as usize..)
                    .unwrap_or_default()
                    .iter();
                Ok(())
            }
            Self::File(scan) => (0..n).try_for_each(|_| scan.next().map(drop)),
        }
    }

    /// Returns the number of remaining records.
    pub(crate) fn left(&self) -> u64 {
        match self {
            Self::Memory(records) => records.len() as u64,
            Self::File(scan) => scan.left(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_the_same_in_memory_and_in_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("spool");
        for (allowance, is_file) in [(0, true), (799, true), (800, false)] {
            let mut spool = Spool::<u64>::new(&path, allowance);
            for first in [7, 0] {
                spool.clear();
                (first..60).for_each(|number| spool.push(&number).unwrap());
                spool.extend(&(60..100).collect::<Vec<_>>()).unwrap();
                for _ in 0..2 {
                    let mut scan = spool.scan().unwrap();
                    assert_eq!(scan.left(), 100 - first);
                    scan.skip(3).unwrap();
                    let first = first + 3;
                    let found = std::iter::from_fn(|| scan.next().unwrap());
                    assert!(found.eq(first..100), "{allowance}");
                }
            }
            assert_eq!(spool.file.is_some(), is_file);
        }
    }
}
