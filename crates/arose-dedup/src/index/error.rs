//! Errors of an index.

use std::io;
use std::path::{Path, PathBuf};

/// An error of an index. The index can still be read after any of these, unless a file is
/// [damaged](Error::Damaged).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Reading or writing failed.
    #[error("cannot {what} `{}`", path.display())]
    Io {
        /// The operation.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A file that does not belong to an index.
    #[error("`{}` is not a file of an arose index", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A file that an earlier version of this program wrote, whose digests have another meaning.
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
    /// A file whose content has changed since it was written.
    #[error("`{}` is damaged: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The condition that is violated.
        what: String,
    },
    /// There is no index in the directory.
    #[error("no index in `{}`; create one with `arose index create`", path.display())]
    NoIndex {
        /// The directory.
        path: PathBuf,
    },
    /// The directory already contains an index or something else.
    #[error("`{}` is not empty; choose another directory", path.display())]
    NotEmpty {
        /// The directory.
        path: PathBuf,
    },
    /// Another writer has the index open.
    #[error("another process is writing to `{}`; wait for it", path.display())]
    Locked {
        /// The directory.
        path: PathBuf,
    },
    /// A document of this name is already in the index.
    #[error("`{name}` is already in the index")]
    Exists {
        /// The name.
        name: String,
    },
    /// A document that cannot be stored, or a setting that cannot be used.
    #[error("`{name}` is {value}, expected {expected}")]
    Parameter {
        /// The name of the argument or setting.
        name: &'static str,
        /// The value given.
        value: String,
        /// The accepted values.
        expected: &'static str,
    },
    /// More documents than row numbers can express.
    #[error("the index is full")]
    Full,
    /// An earlier failure left the writer in an unknown state. Opening the index again repairs it.
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
