//! Reading an index while another process or thread writes to it.

use std::ops::Range;
use std::path::Path;

use super::file::Allowance;
use super::folder::retry;
use super::manifest::Manifest;
use super::state::{IndexStatus, Match, State, check_sketch};
use super::{Error, MAX_COUNTED, Settings, Sketch};

/// An index as it was when opened, readable while a writer changes it, possibly in another process.
#[derive(Debug)]
pub struct Reader {
    state: Box<State>,
}

impl Reader {
    /// Opens an index without locking it.
    ///
    /// # Errors
    ///
    /// If there is no index, or a file is damaged or has an unknown format.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        retry(|| {
            let manifest = Manifest::read(folder)?;
            let (state, _) =
                State::open(folder, &manifest, Allowance::default(), None, MAX_COUNTED)?;
            let state = Box::new(state);
            Ok(Self { state })
        })
    }

    /// Returns the settings with which the index was created.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.state.plan.settings
    }

    /// As [`Index::query`](super::Index::query).
    ///
    /// # Errors
    ///
    /// As [`Index::query`](super::Index::query).
    pub fn query(&self, sketch: &Sketch) -> Result<Vec<Match>, Error> {
        check_sketch(sketch, self.state.plan.n_words, self.settings())?;
        self.state.query(sketch)
    }

    /// As [`Index::names_in`](super::Index::names_in).
    ///
    /// # Errors
    ///
    /// As [`Index::names_in`](super::Index::names_in).
    pub fn names_in(&self, rows: Range<u32>) -> Result<Vec<String>, Error> {
        self.state.names_in(rows)
    }

    /// As [`Index::next_row`](super::Index::next_row).
    #[must_use]
    pub fn next_row(&self) -> u32 {
        self.state.recent.next_row()
    }

    /// As [`Index::status`](super::Index::status).
    #[must_use]
    pub fn status(&self) -> IndexStatus {
        self.state.status()
    }
}
