//! Errors of building and searching an index.

use std::io;
use std::path::{Path, PathBuf};

use tantivy::TantivyError;
use tantivy::directory::error::OpenReadError;

/// The reason why there is no index or no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is nothing to search.
    #[error(
        "`{}` contains neither a run of `arose dedup` nor web archives; pass the directory given to -o",
        path.display()
    )]
    OtherKind {
        /// The directory.
        path: PathBuf,
    },
    /// There is no index, or an incomplete one.
    #[error("no complete search index in `{}`; build one with `arose search`", path.display())]
    NoIndex {
        /// The directory.
        path: PathBuf,
    },
    /// The index is missing or out of date, and may not be written.
    #[error(
        "`{}` is read-only and its search index is missing or out of date; keep the index elsewhere with --index DIR",
        path.display()
    )]
    ReadOnly {
        /// The directory.
        path: PathBuf,
    },
    /// The index may not be read.
    #[error(
        "no permission to read the search index `{}`; keep another one elsewhere with --index DIR",
        path.display()
    )]
    Forbidden {
        /// The index.
        path: PathBuf,
    },
    /// The index is damaged.
    #[error("search index `{}` is damaged: {detail}; rebuild it with --rebuild", path.display())]
    Damaged {
        /// The index.
        path: PathBuf,
        /// The damage.
        detail: String,
    },
    /// Another process is writing the index.
    #[error("another process is writing the search index `{}`; wait until it is done", path.display())]
    Busy {
        /// The index.
        path: PathBuf,
    },
    /// Results too far down the list.
    #[error("only the first {max} results are listed; narrow the query")]
    TooFar {
        /// Number of results that are returned.
        max: usize,
    },
    /// The text to find quotations of is too long.
    #[error("the text has {n_tokens} tokens; the maximum is {max}; split the text")]
    TooLong {
        /// Its number of tokens.
        n_tokens: usize,
        /// The maximum number of tokens.
        max: usize,
    },
    /// The results of a run cannot be read.
    #[error(transparent)]
    Results(#[from] arose_dedup::results::Error),
    /// Documents cannot be read.
    #[error(transparent)]
    Corpus(#[from] arose_corpus::Error),
    /// Reading or writing a file failed.
    #[error("cannot {action} `{}`", path.display())]
    Io {
        /// The failed action.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The caller stopped the operation.
    #[error("interrupted; run the same command to resume")]
    Stopped,
}

impl Error {
    /// Makes an error from the failed action and its file.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }

    /// Converts an error of the index library about the index at `path`.
    pub(crate) fn index(path: &Path) -> impl Fn(TantivyError) -> Self {
        move |error| match error {
            TantivyError::LockFailure(..) => Self::Busy {
                path: path.to_owned(),
            },
            TantivyError::IoError(source) => Self::Io {
                action: "use the index",
                path: path.to_owned(),
                source: io::Error::new(source.kind(), source.to_string()),
            },
            TantivyError::OpenReadError(OpenReadError::IoError { io_error, .. })
                if io_error.kind() == io::ErrorKind::PermissionDenied =>
            {
                Self::Forbidden {
                    path: path.to_owned(),
                }
            }
            error => Self::Damaged {
                path: path.to_owned(),
                detail: error.to_string(),
            },
        }
    }
}
