//! How far a run has come, for those who wait.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

use crate::Error;

/// The stages of a run, in order.
pub const STAGES: [&str; 8] = [
    "read",
    "exact",
    "known",
    "candidates",
    "verify",
    "cluster",
    "write",
    "update",
];

/// Counters that a run moves and anybody may look at from another thread.
#[derive(Debug)]
pub struct Progress {
    stages: &'static [&'static str],
    stage: AtomicUsize,
    done: AtomicU64,
    total: AtomicU64,
    is_stopped: AtomicBool,
}

/// A look at the counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Snapshot {
    /// The stage at work.
    pub stage: &'static str,
    /// Records done in it.
    pub done: u64,
    /// Records it has in all; none if not known.
    pub total: Option<u64>,
}

impl Default for Progress {
    /// Of a search for duplicates.
    fn default() -> Self {
        Self::of(&STAGES)
    }
}

impl Progress {
    /// Of a run with these stages, of which there is at least one.
    pub(crate) fn of(stages: &'static [&'static str]) -> Self {
        Self {
            stages,
            stage: AtomicUsize::default(),
            done: AtomicU64::default(),
            total: AtomicU64::default(),
            is_stopped: AtomicBool::default(),
        }
    }

    /// Of a search for passages.
    #[must_use]
    pub fn of_passages() -> Self {
        Self::of(&crate::passages::STAGES)
    }

    /// Where the run is now.
    #[must_use]
    pub fn look(&self) -> Snapshot {
        let total = self.total.load(Relaxed);
        Snapshot {
            stage: self.stages[self.stage.load(Relaxed)],
            done: self.done.load(Relaxed),
            total: (total > 0).then_some(total),
        }
    }

    /// Asks the run to stop soon; it then ends with [`Error::Stopped`].
    pub fn stop(&self) {
        self.is_stopped.store(true, Relaxed);
    }

    pub(crate) fn begin(&self, stage: &str) {
        let index = self.stages.iter().position(|name| *name == stage);
        self.stage.store(index.unwrap_or(0), Relaxed);
        self.done.store(0, Relaxed);
        self.total.store(0, Relaxed);
    }

    pub(crate) fn expect(&self, total: u64) {
        self.total.store(total, Relaxed);
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
