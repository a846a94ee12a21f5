//! Reads the results of a finished run.
//!
//! *Question.* A run of [`run`](crate::run) writes tables, a summary and the kept documents. How
//! can a document, the pairs it is in, or its text be looked up without reading everything?
//!
//! *Idea.* [`Summary`] is the content of `summary.json`. [`documents`] and [`pairs`] read rows of
//! the two tables, all of them or only those requested. A row is found by its number or by the
//! order of the table, so that other rows are not decoded. [`texts()`] reads documents again from
//! their sources, and reports if that is no longer possible.
//!
//! *Cost.* A lookup decodes one or two pages of each column it needs: a few milliseconds in a table
//! of a million rows.

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
pub use texts::{ReadText, texts};

/// An error while reading or showing results.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Reading or writing failed.
    #[error("{what} `{}`", path.display())]
    Io {
        /// The operation.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A table could not be read.
    #[error("parquet file `{}`", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// The error of the Parquet library.
        source: parquet::errors::ParquetError,
    },
    /// The summary is malformed.
    #[error("summary `{}`", path.display())]
    Summary {
        /// The file.
        path: PathBuf,
        /// The error of the JSON library.
        source: serde_json::Error,
    },
    /// A file with content that no run writes.
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
