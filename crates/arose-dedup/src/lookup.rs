//! Records of a few documents among many, by ordinal.
//!
//! Most documents have no duplicates and are never looked up. The others are known beforehand, so
//! their records are gathered in one pass over the column and stored in memory. With ten million
//! documents, a system call per lookup took half the time of a run. Only if these records do not
//! fit into their allowance, each record is read from the file, with the same result.

use std::path::Path;
use std::sync::Arc;

use bytemuck::Pod;

use crate::Error;
use crate::column::{Column, Scan};
use crate::record::Ordinal;

/// A flag for each document, one bit each.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flags {
    words: Vec<u64>,
    n: usize,
}

impl Flags {
    /// Creates flags for `n` documents, none of them set.
    pub(crate) fn new(n: usize) -> Self {
        Self {
            words: vec![0; n.div_ceil(64)],
            n,
        }
    }

    /// Creates flags for `n` documents, all of them set.
    pub(crate) fn all(n: usize) -> Self {
        let mut words = vec![u64::MAX; n.div_ceil(64)];
        if let Some(last) = words.last_mut() {
            *last >>= (64 - n % 64) % 64;
        }
        Self { words, n }
    }

    /// Returns the number of documents.
    pub(crate) fn len(&self) -> usize {
        self.n
    }

    pub(crate) fn set(&mut self, place: usize) {
        self.words[place / 64] |= 1 << (place % 64);
    }

    pub(crate) fn unset(&mut self, place: usize) {
        self.words[place / 64] &= !(1 << (place % 64));
    }

    pub(crate) fn is_set(&self, place: usize) -> bool {
        self.words[place / 64] >> (place % 64) & 1 == 1
    }

    /// Returns the number of set flags.
    pub(crate) fn count(&self) -> u64 {
        let counts = self.words.iter().map(|word| u64::from(word.count_ones()));
        counts.sum()
    }

    /// Returns the documents whose flags are set, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Ordinal> {
        ordinals(&self.words)
    }
}

/// Returns the numbers of the set bits, ascending.
fn ordinals(words: &[u64]) -> impl Iterator<Item = Ordinal> {
    let words = (0..).step_by(64).zip(words);
    words.flat_map(|(start, &word)| {
        let mut left = word;
        std::iter::from_fn(move || {
            let bit = (left != 0).then(|| left.trailing_zeros())?;
            left &= left - 1;
            Some(start + bit)
        })
    })
}

/// A set of ordinals that can count the members before each: a bit per document, and a count per
/// 64.
#[derive(Debug, Clone, Default)]
pub(crate) struct Chosen {
    words: Vec<u64>,
    /// Number of members in the words before each.
    before: Vec<u32>,
    n: u32,
}

impl Chosen {
    /// Creates the set of documents whose flags are set.
    pub(crate) fn new(Flags { words, .. }: Flags) -> Self {
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

    /// Returns the largest member.
    pub(crate) fn last(&self) -> Option<Ordinal> {
        let word = self.words.iter().rposition(|word| *word != 0)?;
        Some(64 * word as Ordinal + self.words[word].ilog2())
    }

    /// Returns the members, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Ordinal> {
        ordinals(&self.words)
    }

    /// Returns the number of members before `doc`.
    pub(crate) fn place(&self, doc: Ordinal) -> usize {
        let word = doc as usize / 64;
        let below = self.words[word] & ((1 << (doc % 64)) - 1);
        (self.before[word] + below.count_ones()) as usize
    }
}

/// Records are read one by one if at most one in this many is chosen.
const SPARSE: u64 = 64;

/// The records of the chosen documents, or a part `U` of each.
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
        if u64::from(chosen.len()) * SPARSE < scan.left() {
            let column = Column::open(path, 0)?;
            for doc in chosen.iter() {
                parts.push(part(column.get(doc)?));
            }
        }
        let mut doc = 0;
        while parts.len() < chosen.len() as usize
            && let Some(record) = scan.next()?
        {
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

    /// Returns the record of a document, which must be a chosen one.
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
        let mut is_chosen = Flags::new(1000);
        for doc in 0..1000 {
            if random.below(3) == 0 {
                is_chosen.set(doc);
            }
        }
        for doc in 0..1000 {
            writer.push(&(doc * doc)).unwrap();
        }
        writer.finish().unwrap();
        let chosen = Arc::new(Chosen::new(is_chosen.clone()));
        let members = is_chosen.count();
        assert_eq!(u64::from(chosen.len()), members);
        for allowance in [0, 8 * members] {
            let lookup = Lookup::<u64>::open(&path, &chosen, allowance).unwrap();
            assert_eq!(matches!(lookup, Lookup::File { .. }), allowance == 0);
            for doc in (0..1000).filter(|&doc| is_chosen.is_set(doc as usize)) {
                assert!(chosen.contains(doc));
                assert_eq!(lookup.get(doc).unwrap(), u64::from(doc) * u64::from(doc));
            }
        }
        let mut few = Flags::new(1000);
        for doc in [0, 64, 999] {
            few.set(doc);
        }
        let few = Arc::new(Chosen::new(few));
        assert_eq!(few.iter().collect::<Vec<_>>(), [0, 64, 999]);
        let lookup = Lookup::<u64>::open(&path, &few, 24).unwrap();
        assert_eq!(
            [0, 64, 999].map(|doc| lookup.get(doc).unwrap()),
            [0, 4096, 998_001]
        );
        assert!(!Chosen::new(Flags::new(65)).contains(64));
        assert!(!chosen.contains(5000));
    }
}
