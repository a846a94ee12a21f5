//! The file that records which part of the log is known to be on disk.
//!
//! After a power failure, any part of the unsynced data may be missing, also in the middle. So an
//! unreadable frame is damage only if it was certainly on disk. This file says which frames were.
//! It is written after the log has been synced, and is not synced itself. If it is missing or older
//! than the log, fewer frames count as certain, but no intact frame is lost.

use std::fs;
use std::path::Path;

use arose::digest::digest64;

use super::Error;
use super::file::u64_at;
use crate::disk;

const NAME: &str = "committed";
const BYTES: usize = 24;

/// The part of the log of an index that is known to be on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Committed {
    /// The number of the log.
    pub log: u64,
    /// Its length in bytes.
    pub n_bytes: u64,
}

impl Committed {
    /// Returns how many bytes of a log cannot be partial.
    pub(super) fn n_safe(self, log: u64) -> u64 {
        match log.cmp(&self.log) {
            std::cmp::Ordering::Less => u64::MAX,
            std::cmp::Ordering::Equal => self.n_bytes,
            std::cmp::Ordering::Greater => 0,
        }
    }

    /// Reads the file in a directory. If it does not exist, nothing is certain.
    pub(super) fn read(folder: &Path) -> Self {
        let bytes = fs::read(folder.join(NAME)).unwrap_or_default();
        if !is_valid(&bytes) {
            return Self::default();
        }
        Self {
            log: u64_at(&bytes, 0),
            n_bytes: u64_at(&bytes, 8),
        }
    }

    /// Returns an error if the file is malformed. An empty file or a file of zeros was never on
    /// disk.
    pub(super) fn check(folder: &Path) -> Result<(), Error> {
        let path = folder.join(NAME);
        let bytes = fs::read(&path).unwrap_or_default();
        let is_blank = bytes.iter().all(|&byte| byte == 0);
        match is_blank || is_valid(&bytes) {
            true => Ok(()),
            false => Err(Error::damaged(&path, "its checksum is wrong")),
        }
    }

    pub(super) fn write(self, folder: &Path) -> Result<(), Error> {
        let path = folder.join(NAME);
        let mut bytes = Vec::with_capacity(BYTES);
        bytes.extend(self.log.to_le_bytes());
        bytes.extend(self.n_bytes.to_le_bytes());
        bytes.extend(digest64(&bytes).to_le_bytes());
        let file = disk::File::open_or_create(&path).map_err(Error::io("open", &path))?;
        file.write_all_at(&bytes, 0)
            .map_err(Error::io("write", &path))
    }
}

fn is_valid(bytes: &[u8]) -> bool {
    bytes.len() == BYTES && digest64(&bytes[..16]) == u64_at(bytes, 16)
}
