//! What stops a run: inputs that do not exist and outputs that cannot be written.

use std::path::PathBuf;

/// A reason to stop. Bad content is none: see [`Warning`](crate::Warning).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A bookmark whose place is not in the inputs.
    #[error("the place where reading stopped is no longer in the input; start over with --force")]
    Bookmark,
    /// An input named by the user is not there.
    #[error("no file or folder `{}`", path.display())]
    NotFound {
        /// As it was named.
        path: PathBuf,
    },
    /// A pattern that is not a pattern.
    #[error("bad pattern `{pattern}`")]
    Pattern {
        /// As it was written.
        pattern: String,
        /// What is wrong with it.
        source: glob::PatternError,
    },
    /// A pattern that matches nothing.
    #[error("no file matches `{pattern}`")]
    NoMatch {
        /// As it was written.
        pattern: String,
    },
    /// Reading or writing failed.
    #[error("{what} `{}`", path.display())]
    Io {
        /// What was being done.
        what: &'static str,
        /// To which file.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A Parquet file could not be read or written.
    #[error("parquet file `{}`", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// What the format's library says.
        source: parquet::errors::ParquetError,
    },
}
