//! The rows of removed documents: one bit per row.

use std::path::Path;

use super::Error;
use super::file::{Content, read_sealed, write_sealed};

/// The rows of removed documents. Their records and entries remain until the index is compacted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Dead {
    words: Vec<u64>,
    n: u64,
}

impl Dead {
    /// Returns the number of removed rows.
    pub(super) fn len(&self) -> u64 {
        self.n
    }

    #[inline]
    pub(super) fn contains(&self, row: u32) -> bool {
        let word = self.words.get(row as usize / 64);
        word.is_some_and(|word| word >> (row % 64) & 1 == 1)
    }

    /// Marks a row as removed.
    pub(super) fn insert(&mut self, row: u32) {
        let (word, bit) = (row as usize / 64, 1 << (row % 64));
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.n += u64::from(self.words[word] & bit == 0);
        self.words[word] |= bit;
    }

    pub(super) fn write(&self, path: &Path) -> Result<u64, Error> {
        let body: Vec<u8> = self
            .words
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        write_sealed(Content::Dead, path, &body)
    }

    pub(super) fn read(path: &Path, check: u64) -> Result<Self, Error> {
        let (body, found) = read_sealed(Content::Dead, path)?;
        let (chunks, rest) = body.as_chunks::<8>();
        if found != check || !rest.is_empty() {
            return Err(Error::damaged(
                path,
                "it is not the file that the manifest lists",
            ));
        }
        let words: Vec<u64> = chunks
            .iter()
            .map(|&chunk| u64::from_le_bytes(chunk))
            .collect();
        let n = words.iter().map(|word| u64::from(word.count_ones())).sum();
        Ok(Self { words, n })
    }
}
