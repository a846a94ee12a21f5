//! What can go wrong with an index.

use std::io;
use std::path::{Path, PathBuf};

/// Why an index refused or failed. After any of these it can still be read, unless a file is
/// [damaged](Error::Damaged).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system refused to read or write.
    #[error("cannot {what} `{}`", path.display())]
    Io {
        /// What was being done.
        what: &'static str,
        /// To which file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// A file that is no file of an index.
    #[error("`{}` is not a file of an arose index", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A file that an earlier version of this program wrote: its digests mean something else.
    #[error("`{}` has format {version}, older than {known}; create the index again", path.display())]
    Older {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u16,
        /// The version this program reads.
        known: u16,
    },
    /// A file that a later version of this program wrote.
    #[error("`{}` has format {version}, newer than {known}; use a later arose", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u16,
        /// The newest version this program reads.
        known: u16,
    },
    /// A file whose content is not what was written.
    #[error("`{}` is damaged: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What does not hold.
        what: String,
    },
    /// There is no index in the folder.
    #[error("no index in `{}`; `arose index create` makes one", path.display())]
    NoIndex {
        /// The folder.
        path: PathBuf,
    },
    /// The folder holds an index, or something else, already.
    #[error("`{}` is not empty; choose another folder", path.display())]
    NotEmpty {
        /// The folder.
        path: PathBuf,
    },
    /// Another writer has the index open.
    #[error("another process is writing to `{}`; wait for it", path.display())]
    Locked {
        /// The folder.
        path: PathBuf,
    },
    /// A document of this name is there already.
    #[error("`{name}` is in the index already")]
    Exists {
        /// The name.
        name: String,
    },
    /// A document that cannot be stored, or a setting that cannot be used.
    #[error("`{name}` is {value}, expected {expected}")]
    Parameter {
        /// What it is about.
        name: &'static str,
        /// The value given.
        value: String,
        /// What would be accepted.
        expected: &'static str,
    },
    /// A number of documents that row numbers cannot express.
    #[error("the index is full")]
    Full,
    /// An earlier failure left the writer in an unknown state; opening the index again repairs it.
    #[error("the index failed before and must be opened again")]
    Broken,
}

impl Error {
    pub(super) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { what, path, source }
    }

    pub(super) fn damaged(path: &Path, what: impl Into<String>) -> Self {
        let (path, what) = (path.to_owned(), what.into());
        Self::Damaged { path, what }
    }

    pub(super) fn parameter(
        name: &'static str,
        value: impl ToString,
        expected: &'static str,
    ) -> Self {
        let value = value.to_string();
        Self::Parameter {
            name,
            value,
            expected,
        }
    }
}
