//! Writes a new journal in frames.

use std::path::Path;

use crate::error::Error;
use crate::journal::{Batch, Event, Journal};

/// Size in bytes of a frame.
const FRAME: usize = 4 << 20;

/// The new journal.
pub(super) struct NewJournal {
    pub(super) journal: Journal,
    batch: Batch,
}

impl NewJournal {
    pub(super) fn begin(path: &Path, mark: u64) -> Result<Self, Error> {
        let journal = Journal::begin_at(&path.with_extension("new"), mark)?;
        let batch = journal.next_batch();
        Ok(Self { journal, batch })
    }

    pub(super) fn push(&mut self, event: Event<'_>) {
        self.batch.push(event);
    }

    pub(super) fn write(&mut self) -> Result<(), Error> {
        self.journal.append(&self.batch.take(), &[])
    }

    pub(super) fn write_if_full(&mut self) -> Result<(), Error> {
        match self.batch.n_bytes() < FRAME {
            true => Ok(()),
            false => self.write(),
        }
    }
}
