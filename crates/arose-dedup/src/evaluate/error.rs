//! Errors of an evaluation.

use std::path::{Path, PathBuf};

/// A file that cannot be read or written, or that has the wrong content.
///
/// Unlike a corpus, labelled pairs or a ground truth must not be damaged: a score computed from
/// half of it would be wrong without any sign of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Reading or writing a file failed.
    #[error("cannot {what} `{}`", path.display())]
    Io {
        /// The operation.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// A malformed line of a file.
    #[error("{}:{line}: {flaw}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        flaw: String,
    },
    /// A malformed file.
    #[error("{}: {flaw}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        flaw: String,
    },
    /// A Parquet file does not decode.
    #[error("cannot read `{}`", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// The error of the Parquet library.
        source: parquet::errors::ParquetError,
    },
    /// The results of a run cannot be read.
    #[error(transparent)]
    Results(#[from] crate::results::Error),
    /// An invalid setting.
    #[error("{0}")]
    Setting(String),
}

impl Error {
    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { what, path, source }
    }

    pub(crate) fn file(path: &Path, flaw: impl Into<String>) -> Self {
        let path = path.to_owned();
        let flaw = flaw.into();
        Self::File { path, flaw }
    }
}
