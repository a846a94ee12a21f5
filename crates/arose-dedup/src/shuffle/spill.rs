//! Sorting the messages of one part, in memory or in files of the executor.
//!
//! All documents under one very common key, all exact duplicates of a document and all pairs of one
//! document arrive in one part, which may have any size. So parts are sorted by [`Sorter`]s, which
//! use [`SORT_BYTES`] of memory and write the rest to files.

use tempfile::TempDir;

use bytemuck::Pod;

use super::Context;
use crate::Error;
use crate::sorter::Sorter;

/// Default number of bytes that a sorter has in memory before it writes to a file.
const SORT_BYTES: u64 = 64 << 20;

/// A directory for sorters, which is removed with the step.
pub(super) struct Scratch {
    folder: Option<TempDir>,
    n_sorters: u32,
    sort_bytes: u64,
}

impl Scratch {
    pub(super) fn new(context: &Context) -> Self {
        Self {
            folder: None,
            n_sorters: 0,
            sort_bytes: context.sort_bytes.unwrap_or(SORT_BYTES),
        }
    }

    /// Creates a sorter.
    pub(super) fn sorter<T: Pod + Ord + Send>(&mut self) -> Result<Sorter<T>, Error> {
        let folder = match self.folder.take() {
            Some(folder) => folder,
            None => tempfile::tempdir().map_err(Error::io("create", &std::env::temp_dir()))?,
        };
        let base = folder.path().join(self.n_sorters.to_string());
        self.n_sorters += 1;
        self.folder = Some(folder);
        Ok(Sorter::new(&base, self.sort_bytes))
    }
}
