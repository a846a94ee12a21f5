//! The URLs themselves, one after the other, for sets without collisions.
//!
//! Each is its length, 4 bytes little-endian, and its bytes. The file only grows. The log and the
//! manifest have its valid length; bytes after that were left by a crash and are overwritten.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use arose_dedup::disk::File;

use crate::error::{Context, Error};

/// An open file of strings.
#[derive(Debug)]
pub(super) struct StringFile {
    path: PathBuf,
    file: File,
    /// The valid length of the file.
    written: u64,
    /// Bytes after it that are not written yet.
    pending: Vec<u8>,
}

impl StringFile {
    /// Opens the file, or creates an empty one.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let file = File::open_or_create(path).context("opening", path)?;
        let metadata = file.as_file().metadata();
        let written = metadata.context("reading", path)?.len();
        Ok(Self {
            path: path.to_owned(),
            file,
            written,
            pending: Vec::new(),
        })
    }

    /// Drops everything after `end`.
    pub(super) fn cut(mut self, end: u64) -> Result<Self, Error> {
        if self.written < end {
            return Err(Error::damaged(&self.path, "it is too short"));
        }
        self.written = end;
        Ok(self)
    }

    /// Adds a string; returns its position.
    pub(super) fn push(&mut self, text: &str) -> u64 {
        let place = self.end();
        let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
        let text = &text.as_bytes()[..length as usize];
        self.pending.extend_from_slice(&length.to_le_bytes());
        self.pending.extend_from_slice(text);
        place
    }

    /// Whether `text` is the string at `place`.
    pub(super) fn is_at(&self, place: u64, text: &str) -> Result<bool, Error> {
        let mut found = vec![0; 4 + text.len()];
        let n_before = text.len() + 4;
        if let Some(offset) = place.checked_sub(self.written) {
            let kept = self.pending.get(offset as usize..).unwrap_or_default();
            let kept = &kept[..kept.len().min(n_before)];
            return Ok(kept.len() == n_before && is_string(kept, text));
        }
        // Near the end of the file, fewer bytes may be left to read.
        let n_bytes = (self.written - place).min(n_before as u64) as usize;
        found.truncate(n_bytes);
        self.file
            .as_file()
            .read_exact_at(&mut found, place)
            .context("reading", &self.path)?;
        Ok(n_bytes == n_before && is_string(&found, text))
    }

    /// Returns the position of the next string.
    pub(super) fn end(&self) -> u64 {
        self.written + self.pending.len() as u64
    }

    /// Writes pending bytes. On failure, they stay pending.
    pub(super) fn write(&mut self) -> Result<(), Error> {
        self.file
            .write_all_at(&self.pending, self.written)
            .context("writing", &self.path)?;
        self.written = self.end();
        self.pending.clear();
        Ok(())
    }

    /// Returns when all written bytes are on the disk.
    pub(super) fn sync(&self) -> Result<(), Error> {
        self.file.sync().context("writing", &self.path)
    }
}

fn is_string(bytes: &[u8], text: &str) -> bool {
    let (length, bytes) = bytes.split_at(4);
    length == (text.len() as u32).to_le_bytes() && bytes == text.as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_compared_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("strings");
        let mut strings = StringFile::open(&path).unwrap();
        let texts = ["http://h/a", "", "http://h/ab", "http://h/"];
        let places: Vec<u64> = texts.iter().map(|text| strings.push(text)).collect();
        for _ in 0..2 {
            for (&place, text) in places.iter().zip(texts) {
                for other in texts {
                    assert_eq!(strings.is_at(place, other).unwrap(), text == other);
                }
            }
            strings.write().unwrap();
        }
        let end = strings.end();
        drop(strings);
        let strings = StringFile::open(&path).unwrap();
        assert_eq!(strings.end(), end);
        assert!(strings.is_at(places[2], texts[2]).unwrap());
        assert!(strings.cut(end + 1).is_err());
    }
}
