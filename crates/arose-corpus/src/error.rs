//! Errors: inputs that do not exist and outputs that cannot be written.

use std::path::PathBuf;

/// An error that stops reading or writing. Malformed content does not: see
/// [`Warning`](crate::Warning).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A bookmark whose position is not in the inputs.
    #[error(
        "the position where reading stopped is no longer in the input; start over with --force"
    )]
    Bookmark,
    /// An input that does not exist.
    #[error("no such file or directory: `{}`", path.display())]
    NotFound {
        /// The path as passed.
        path: PathBuf,
    },
    /// A malformed pattern.
    #[error("malformed pattern `{pattern}`")]
    Pattern {
        /// The pattern as written.
        pattern: String,
        /// The error in the pattern.
        source: glob::PatternError,
    },
    /// A pattern that matches nothing.
    #[error("no file matches `{pattern}`")]
    NoMatch {
        /// The pattern as written.
        pattern: String,
    },
    /// Reading or writing failed.
    #[error("{what} `{}`", path.display())]
    Io {
        /// The failed action.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// A Parquet file could not be read or written.
    #[error("parquet file `{}`", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// The error of the Parquet library.
        source: parquet::errors::ParquetError,
    },
}
