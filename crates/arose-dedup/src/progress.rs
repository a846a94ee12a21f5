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
#[derive(Debug, Default)]
pub struct Progress {
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

impl Progress {
    /// Where the run is now.
    #[must_use]
    pub fn look(&self) -> Snapshot {
        let total = self.total.load(Relaxed);
        Snapshot {
            stage: STAGES[self.stage.load(Relaxed)],
            done: self.done.load(Relaxed),
            total: (total > 0).then_some(total),
        }
    }

    /// Asks the run to stop soon; it then ends with [`Error::Stopped`].
    pub fn stop(&self) {
        self.is_stopped.store(true, Relaxed);
    }

    pub(crate) fn begin(&self, stage: &str) {
        let index = STAGES.iter().position(|name| *name == stage);
        self.stage.store(index.unwrap_or(0), Relaxed);
        self.done.store(0, Relaxed);
        self.total.store(0, Relaxed);
    }

    /// Announces `n` more records to be done in this stage.
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
