//! Sorting what one part of messages brings, in memory or in files of the executor.
//!
//! The documents under one very common key, the copies of one content and the pairs around one
//! document all meet in one part, which may have any size. So parts are sorted by [`Sorter`]s,
//! which hold [`SORT_BYTES`] and write the rest to files.

use tempfile::TempDir;

use bytemuck::Pod;

use super::Context;
use crate::Error;
use crate::sorter::Sorter;

/// Bytes that a sorter holds before it writes to a file, unless the driver says otherwise.
const SORT_BYTES: u64 = 64 << 20;

/// A directory for sorters, which goes with the step.
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

    /// A new sorter.
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
