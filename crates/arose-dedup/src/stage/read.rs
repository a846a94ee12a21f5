//! First stage: reads the input once into columns of tokens, keys and names.
//!
//! Documents are read, tokenized and sketched on all threads ([`row`](super::row)) and written in
//! input order on one thread ([`columns`](super::columns)), so ordinals and columns do not depend
//! on the number of threads. The tokens are stored in little more than two bytes each
//! ([`dictionary`](crate::dictionary)). Verification computes exact shingles from them without
//! reading and parsing the input again, and an input that changes in the meantime cannot affect a
//! decision. Sketches that would take more space than the tokens are computed again from them;
//! their keys are stored.
//!
//! A checkpoint is written at intervals (`checkpoint.rs`), from which a run that was killed while
//! reading resumes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use arose_corpus::Reason;
use serde::{Deserialize, Serialize};

use crate::config::{Config, Keep};
use crate::losses::Losses;
use crate::progress::InputPlace;
use crate::record::SUPERSEDED;
use crate::source::InputFile;
use crate::stage::captures::Superseded;
use crate::stage::checkpoint::{Checkpoint, Clock};
use crate::stage::columns::Columns;
pub(crate) use crate::stage::columns::{NAMES, NULLS};
use crate::stage::quality::{self, QualityTally};
pub use crate::stage::row::tokens;
use crate::stage::row::{Maker, ReadRow};
use crate::{Error, Progress};

/// The results of the stage.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Read {
    pub(crate) sources: Vec<InputFile>,
    pub(crate) n_docs: u64,
    pub(crate) n_tokens: u64,
    pub(crate) n_empty: u64,
    pub(crate) n_short: u64,
    /// Number of documents with a fetch time.
    pub(crate) n_fetched: u64,
    /// Number of documents with a priority.
    pub(crate) n_weighted: u64,
    pub(crate) text_bytes: u64,
    /// Skipped records by reason.
    pub(crate) skipped: BTreeMap<String, u64>,
    /// The first warnings, for people.
    pub(crate) warnings: Vec<String>,
    pub(crate) losses: Losses,
    /// Counts of documents that quality rules reject, if quality is measured.
    #[serde(default)]
    pub(crate) quality: QualityTally,
}

impl Read {
    /// Records whose text is null.
    pub(crate) fn n_null(&self) -> u64 {
        let n = self.skipped.get(Reason::NullText.name());
        n.copied().unwrap_or(0)
    }

    /// Returns an error if no document has the property by which the kept document is chosen.
    fn check_choice(&self, config: &Config) -> Result<(), Error> {
        let is_missing = |n| self.n_docs > 0 && n == 0;
        match config.keep {
            Keep::Newest if is_missing(self.n_fetched) => Err(Error::NoTime),
            Keep::Priority if is_missing(self.n_weighted) => Err(Error::NoPriority {
                fields: config.corpus.fields.priority.join(", "),
            }),
            _ => Ok(()),
        }
    }
}

/// Reads `inputs` and writes the columns to `folder`. Directories in `skip` are not entered.
pub(crate) fn run(
    inputs: &[PathBuf],
    config: &Config,
    skip: Vec<PathBuf>,
    folder: &Path,
    progress: &Progress,
) -> Result<Read, Error> {
    let found = read(inputs, config, skip, folder, progress)?;
    found.check_choice(config)?;
    Ok(found)
}

fn read(
    inputs: &[PathBuf],
    config: &Config,
    skip: Vec<PathBuf>,
    folder: &Path,
    progress: &Progress,
) -> Result<Read, Error> {
    let maker = Maker::new(config)?;
    let mut corpus = config.corpus.clone();
    corpus.files.skip.extend(skip);
    quality::ask(config, &mut corpus);
    let mut superseded = Superseded::find(inputs, config, &corpus, folder, progress)?;
    let checkpoint = Checkpoint::read(folder)?;
    let bookmark = checkpoint.as_ref().map(|there| there.bookmark.clone());
    let bookmark = bookmark.unwrap_or_default();
    let work = move |item| maker.row(item);
    let mut rows = arose_corpus::read_from_bookmark(inputs, corpus, &bookmark, work)?;
    let mut columns = match checkpoint {
        Some(checkpoint) => Columns::resume(folder, config, checkpoint)?,
        None => Columns::create(folder, config)?,
    };
    progress.advance(columns.n_rows)?;
    let mut place = InputPlace::default();
    let mut clock = Clock::new(config.checkpoint);
    while let Some(row) = rows.next() {
        match row {
            ReadRow::Document(mut row) => {
                place.reach(&row.source, row.position, progress);
                if superseded.has(columns.found.n_docs)? {
                    row.leave_out(SUPERSEDED);
                }
                columns.push(row)?;
            }
            ReadRow::Skipped(warning) => {
                place.reach(&warning.source, warning.position, progress);
                progress.skip();
                columns.skip(&warning)?;
            }
        }
        columns.n_rows += 1;
        progress.advance(1)?;
        if clock.is_due(columns.n_rows)
            && let Some(bookmark) = rows.bookmark()
        {
            columns.checkpoint(bookmark)?.write(folder)?;
            clock = Clock::new(config.checkpoint);
        }
    }
    columns.found.losses = Losses::from(rows.counts());
    columns.finish()
}
