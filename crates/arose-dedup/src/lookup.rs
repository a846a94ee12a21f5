//! Records of a few documents among many, by ordinal.
//!
//! Most documents have nothing alike and are never looked up. Those that are looked up are known
//! beforehand, so their records are gathered in one pass over the column and held in memory: at ten
//! million documents a system call for each lookup took half the time of a run. Only where even
//! these do not fit their allowance is each record read from the file, with the same result.

use std::path::Path;
use std::sync::Arc;

use bytemuck::Pod;

use crate::Error;
use crate::column::{Column, Scan};
use crate::record::Ordinal;

/// A set of ordinals that knows how many come before each: a bit per document, and a count per 64.
#[derive(Debug, Clone, Default)]
pub(crate) struct Chosen {
    words: Vec<u64>,
    /// Members in the words before each.
    before: Vec<u32>,
    n: u32,
}

impl Chosen {
    pub(crate) fn new(is_chosen: &[bool]) -> Self {
        let words = is_chosen.chunks(64).map(|chunk| {
            let bits = (0..).zip(chunk);
            bits.fold(0, |word, (bit, &is_set)| word | u64::from(is_set) << bit)
        });
        let words: Vec<u64> = words.collect();
        let mut n = 0;
        let before = words.iter().map(|word| {
            let before = n;
            n += word.count_ones();
            before
        });
        let before = before.collect();
        Self { words, before, n }
    }

    pub(crate) fn len(&self) -> u32 {
        self.n
    }

    pub(crate) fn contains(&self, doc: Ordinal) -> bool {
        let word = self.words.get(doc as usize / 64).copied().unwrap_or(0);
        word >> (doc % 64) & 1 == 1
    }

    /// How many members come before `doc`.
    pub(crate) fn place(&self, doc: Ordinal) -> usize {
        let word = doc as usize / 64;
        let below = self.words[word] & ((1 << (doc % 64)) - 1);
        (self.before[word] + below.count_ones()) as usize
    }
}

/// The records of the chosen documents, or the part `U` of them that is wanted.
pub(crate) enum Lookup<T, U = T> {
    Memory { chosen: Arc<Chosen>, parts: Vec<U> },
    File { column: Column<T>, part: fn(T) -> U },
}

impl<T: Pod> Lookup<T> {
    /// Gathers the records from the column at `path`, in at most `allowance` bytes.
    pub(crate) fn open(path: &Path, chosen: &Arc<Chosen>, allowance: u64) -> Result<Self, Error> {
        Self::open_part(path, chosen, allowance, |record| record)
    }
}

impl<T: Pod, U: Copy> Lookup<T, U> {
    /// Gathers a part of each record.
    pub(crate) fn open_part(
        path: &Path,
        chosen: &Arc<Chosen>,
        allowance: u64,
        part: fn(T) -> U,
    ) -> Result<Self, Error> {
        if u64::from(chosen.len()) * size_of::<U>() as u64 > allowance {
            let column = Column::open(path, 0)?;
            return Ok(Self::File { column, part });
        }
        let mut scan = Scan::<T>::open(path)?;
        let mut parts = Vec::with_capacity(chosen.len() as usize);
        let mut doc = 0;
        while let Some(record) = scan.next()? {
            if chosen.contains(doc) {
                parts.push(part(record));
            }
            doc += 1;
        }
        Ok(Self::Memory {
            chosen: Arc::clone(chosen),
            parts,
        })
    }

    /// The record of a document, which must be a chosen one.
    pub(crate) fn get(&self, doc: Ordinal) -> Result<U, Error> {
        match self {
            Self::Memory { chosen, parts } => Ok(parts[chosen.place(doc)]),
            Self::File { column, part } => column.get(doc).map(part),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::Writer;
    use arose::mix::SplitMix;

    #[test]
    fn members_are_found_in_memory_and_in_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("squares");
        let mut writer = Writer::<u64>::create(&path).unwrap();
        let mut random = SplitMix::new(5);
        let is_chosen: Vec<bool> = (0..1000).map(|_| random.below(3) == 0).collect();
        for doc in 0..1000 {
            writer.push(&(doc * doc)).unwrap();
        }
        writer.finish().unwrap();
        let chosen = Arc::new(Chosen::new(&is_chosen));
        let members = is_chosen.iter().filter(|is_set| **is_set).count();
        assert_eq!(chosen.len() as usize, members);
        for allowance in [0, 8 * members as u64] {
            let lookup = Lookup::<u64>::open(&path, &chosen, allowance).unwrap();
            assert_eq!(matches!(lookup, Lookup::File { .. }), allowance == 0);
            for doc in (0..1000).filter(|&doc| is_chosen[doc as usize]) {
                assert!(chosen.contains(doc));
                assert_eq!(lookup.get(doc).unwrap(), u64::from(doc) * u64::from(doc));
            }
        }
        assert!(!Chosen::new(&[false; 65]).contains(64));
        assert!(!chosen.contains(5000));
    }
}
