//! What a finished run has left in its folder, for those who show it.
//!
//! *Question.* A run of [`run`](crate::run) writes tables, a summary and the documents it kept. How
//! does one look up a document, the pairs it is in, or its text, without reading everything?
//!
//! *Idea.* [`Summary`] is the whole of `summary.json`. [`documents`] and [`pairs`] read rows of the
//! two tables, all of them or only those asked for; a row is found by its number or by the order
//! of the table, so that what is not asked for is not decoded. [`texts()`] reads documents again
//! from where they came from, and says so where that is no longer possible.
//!
//! *Cost.* A look-up decodes a page or two of each column it needs, some milliseconds in a table of
//! a million rows.

pub mod documents;
pub mod pairs;
mod quality;
pub(crate) mod repeated;
mod summary;
pub(crate) mod table;
mod texts;

use std::io;
use std::path::{Path, PathBuf};

pub use documents::{Detail, details};
pub use pairs::Pair;
pub use quality::{Example, QualityCounts, RuleCount};
pub use repeated::Repeated;
pub use summary::{Cap, Counts, Promise, Recall, Skipped, Stage, Summary, kinds};
pub use texts::{Text, texts};

/// Why results cannot be read or shown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Reading or writing failed.
    #[error("{what} `{}`", path.display())]
    Io {
        /// What was being done.
        what: &'static str,
        /// To which file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// A table could not be read.
    #[error("parquet file `{}`", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// What the format's library says.
        source: parquet::errors::ParquetError,
    },
    /// The summary is not what a run writes.
    #[error("summary `{}`", path.display())]
    Summary {
        /// The file.
        path: PathBuf,
        /// What the format's library says.
        source: serde_json::Error,
    },
    /// A file holds what no run writes.
    #[error("damaged file `{}`: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
}

impl Error {
    pub(crate) fn damaged(path: &Path, what: impl Into<String>) -> Self {
        Error::Damaged {
            path: path.to_owned(),
            what: what.into(),
        }
    }
}
