//! Progress of a run.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

use arose_corpus::Position;

use crate::Error;

/// The stages of a run, in order.
pub const STAGES: [&str; 9] = [
    "read",
    "exact",
    "lookup",
    "sites",
    "candidates",
    "verify",
    "cluster",
    "write",
    "update",
];

/// Counters that a run updates and any other thread may read.
#[derive(Debug)]
pub struct Progress {
    stages: &'static [&'static str],
    stage: AtomicUsize,
    done: AtomicU64,
    total: AtomicU64,
    bytes_done: AtomicU64,
    bytes_total: AtomicU64,
    skipped: AtomicU64,
    is_stopped: AtomicBool,
}

/// A snapshot of the counters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Snapshot {
    /// The current stage.
    pub stage: &'static str,
    /// Records processed in it.
    pub done: u64,
    /// Total records of the stage; none if unknown.
    pub total: Option<u64>,
    /// The completed share of the stage, in 0..=1; none if unknown. While the input is read, this
    /// is the share of its bytes.
    pub share: Option<f64>,
    /// Records of the input that were skipped so far, in any stage.
    pub skipped: u64,
}

impl Default for Progress {
    /// Creates the progress of a search for duplicates.
    fn default() -> Self {
        Self::of(&STAGES)
    }
}

impl Progress {
    /// Creates the progress of a run with these stages, at least one.
    pub(crate) fn of(stages: &'static [&'static str]) -> Self {
        Self {
            stages,
            stage: AtomicUsize::default(),
            done: AtomicU64::default(),
            total: AtomicU64::default(),
            bytes_done: AtomicU64::default(),
            bytes_total: AtomicU64::default(),
            skipped: AtomicU64::default(),
            is_stopped: AtomicBool::default(),
        }
    }

    /// Creates the progress of a search for passages.
    #[must_use]
    pub fn of_passages() -> Self {
        Self::of(&crate::passages::STAGES)
    }

    /// Creates the progress of a search for the items of a reference.
    #[must_use]
    pub fn of_reference() -> Self {
        Self::of(&crate::passages::against::STAGES)
    }

    /// Returns the current progress of the run.
    #[must_use]
    pub fn look(&self) -> Snapshot {
        let (done, total) = (self.done.load(Relaxed), self.total.load(Relaxed));
        let (bytes, all_bytes) = (
            self.bytes_done.load(Relaxed),
            self.bytes_total.load(Relaxed),
        );
        let share = |done: u64, total: u64| (total > 0).then(|| done as f64 / total as f64);
        Snapshot {
            stage: self.stages[self.stage.load(Relaxed)],
            done,
            total: (total > 0).then_some(total),
            share: share(done, total)
                .or_else(|| share(bytes, all_bytes).filter(|_| bytes > 0))
                .map(|share| share.min(1.0)),
            skipped: self.skipped.load(Relaxed),
        }
    }

    /// Asks the run to stop soon. It then ends with [`Error::Stopped`].
    pub fn stop(&self) {
        self.is_stopped.store(true, Relaxed);
    }

    pub(crate) fn begin(&self, stage: &str) {
        let index = self.stages.iter().position(|name| *name == stage);
        self.stage.store(index.unwrap_or(0), Relaxed);
        self.done.store(0, Relaxed);
        self.total.store(0, Relaxed);
        self.bytes_done.store(0, Relaxed);
        self.bytes_total.store(0, Relaxed);
    }

    /// Marks the stage as complete.
    pub(crate) fn end(&self) {
        let (done, total) = (self.done.load(Relaxed), self.total.load(Relaxed));
        debug_assert!(total == 0 || done == total, "{:?}", self.look());
        self.bytes_done
            .store(self.bytes_total.load(Relaxed), Relaxed);
    }

    /// Sets the total number of input bytes.
    pub(crate) fn expect_bytes(&self, n: u64) {
        self.bytes_total.store(n, Relaxed);
    }

    /// Counts a skipped record.
    pub(crate) fn skip(&self) {
        self.skipped.fetch_add(1, Relaxed);
    }

    /// Adds `n` records to the total of this stage.
    pub(crate) fn expect(&self, n: u64) {
        self.total.fetch_add(n, Relaxed);
    }

    /// Counts `n` more records.
    pub(crate) fn advance(&self, n: u64) -> Result<(), Error> {
        self.done.fetch_add(n, Relaxed);
        if self.is_stopped.load(Relaxed) {
            return Err(Error::Stopped);
        }
        Ok(())
    }
}

/// Computes how many bytes of the input come before a record.
#[derive(Default)]
pub(crate) struct InputPlace {
    source: Option<Arc<Path>>,
    /// Bytes of the files before that of the last record.
    n_before: u64,
    /// Bytes of that file.
    n_bytes: u64,
    /// Whether positions in it are rows.
    has_rows: bool,
}

impl InputPlace {
    /// Sets the position of the next record.
    pub(crate) fn reach(&mut self, source: &Arc<Path>, position: Position, progress: &Progress) {
        if self.source.as_ref().is_none_or(|last| last != source) {
            self.n_before += self.n_bytes;
            self.n_bytes = source.metadata().map_or(0, |metadata| metadata.len());
            self.has_rows = has_rows(source);
            self.source = Some(Arc::clone(source));
        }
        let n_own = match self.has_rows {
            true => 0,
            false => position.offset.min(self.n_bytes),
        };
        progress.bytes_done.store(self.n_before + n_own, Relaxed);
    }
}

/// Returns whether a file is Parquet.
fn has_rows(path: &Path) -> bool {
    let mut start = [0; 4];
    let file = File::open(path);
    file.is_ok_and(|mut file| file.read_exact(&mut start).is_ok() && &start == b"PAR1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_tell_how_much_was_read() {
        let folder = tempfile::tempdir().unwrap();
        let files: [Arc<Path>; 2] = ["a", "b"].map(|name| folder.path().join(name).into());
        for file in &files {
            std::fs::write(file, [b'x'; 100]).unwrap();
        }
        let progress = Progress::default();
        progress.begin("read");
        assert_eq!(progress.look().share, None);
        progress.expect_bytes(200);
        let mut place = InputPlace::default();
        let shares = [(0, 0), (0, 50), (1, 0), (1, 90)].map(|(file, offset)| {
            let position = Position { offset, inner: 0 };
            place.reach(&files[file], position, &progress);
            progress.look().share
        });
        assert_eq!(shares, [None, Some(0.25), Some(0.5), Some(0.95)]);
        progress.end();
        assert_eq!(progress.look().share, Some(1.0));
        progress.begin("exact");
        assert_eq!(progress.look().share, None);
    }
}
