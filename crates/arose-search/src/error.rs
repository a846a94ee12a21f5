//! What can go wrong while an index is made or asked.

use std::io;
use std::path::{Path, PathBuf};

/// Why there is no index, or no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The folder is none that can be searched.
    #[error(
        "`{}` is no folder with a run of `arose dedup` or web archives; name the one given to `-o`",
        path.display()
    )]
    OtherKind {
        /// The folder.
        path: PathBuf,
    },
    /// There is no index, or one that was never finished.
    #[error("there is no finished index in `{}`; `arose search` makes one", path.display())]
    NoIndex {
        /// The folder.
        path: PathBuf,
    },
    /// The index is not what was written.
    #[error("the index `{}` is damaged ({detail}); --rebuild makes it anew", path.display())]
    Damaged {
        /// The index.
        path: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
    /// Another process is writing the index.
    #[error("another process is at work on the index `{}`; wait for it", path.display())]
    Busy {
        /// The index.
        path: PathBuf,
    },
    /// Pages further than anyone turns.
    #[error("results beyond the first {max} are not given; make the query narrower")]
    TooFar {
        /// How many are given.
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
        /// What was being done.
        action: &'static str,
        /// To which file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The caller asked to stop.
    #[error("stopped; the same command goes on from here")]
    Stopped,
}

impl Error {
    /// Says what was being done to which file.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }

    /// What the index library says, about the index at `path`.
    pub(crate) fn index(path: &Path) -> impl Fn(tantivy::TantivyError) -> Self {
        move |error| match error {
            tantivy::TantivyError::LockFailure(..) => Self::Busy {
                path: path.to_owned(),
            },
            tantivy::TantivyError::IoError(source) => Self::Io {
                action: "use the index",
                path: path.to_owned(),
                source: io::Error::new(source.kind(), source.to_string()),
            },
            error => Self::Damaged {
                path: path.to_owned(),
                detail: error.to_string(),
            },
        }
    }
}
