//! Errors that stop a crawl: those of its own files.

use std::path::{Path, PathBuf};

/// An error that stops a crawl. Web content never does.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
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
    /// A file has unexpected contents.
    #[error("`{}` is damaged: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A file has unexpected contents from some byte on.
    #[error("`{}` is damaged at byte {offset}: {what}; nothing was changed, rebuild it with `arose crawl repair`", path.display())]
    DamagedAt {
        /// The file.
        path: PathBuf,
        /// The position at which the damage begins.
        offset: u64,
        /// What is wrong there.
        what: &'static str,
    },
    /// The directory contains web archives, but no journal that says which of their records are
    /// valid.
    #[error("`{}` has web archives but no journal; rebuild it with `arose crawl repair`", path.display())]
    NoJournal {
        /// The directory of the crawl.
        path: PathBuf,
    },
    /// A directory was written with other settings or by another version.
    #[error("`{}` was made with {setting} {found}, not {expected}", path.display())]
    Mismatch {
        /// The file that records the setting.
        path: PathBuf,
        /// The setting.
        setting: &'static str,
        /// Its value in the file.
        found: u64,
        /// The required value.
        expected: u64,
    },
    /// An invalid setting.
    #[error("{0}")]
    Settings(String),
    /// The index of contents failed.
    #[error("the index of contents")]
    Contents(#[source] arose_dedup::index::Error),
    /// A thread that parses pages has stopped.
    #[error("a thread that reads pages has failed; the crawl can be resumed")]
    Worker,
    /// The crawl has so many events that positions of further URLs would not be unique.
    #[error("`{}` has written 1 TB of events, as many as one crawl can have; start another one with other seeds", path.display())]
    Full {
        /// The directory of the crawl.
        path: PathBuf,
    },
    /// Agents of a cluster cannot reach each other or cannot work together.
    #[error("the cluster: {0}")]
    Cluster(String),
    /// Another process is using the directory.
    #[error("`{}` is in use by another process", path.display())]
    Locked {
        /// The directory.
        path: PathBuf,
    },
}

impl Error {
    pub(crate) fn damaged(path: &Path, what: &'static str) -> Self {
        Self::Damaged {
            path: path.to_owned(),
            what,
        }
    }

    pub(crate) fn damaged_at(path: &Path, offset: u64, what: &'static str) -> Self {
        Self::DamagedAt {
            path: path.to_owned(),
            offset,
            what,
        }
    }
}

/// Returns a function that adds the action and the file to an error of the system.
pub(crate) trait Context<T> {
    fn context(self, what: &'static str, path: &Path) -> Result<T, Error>;
}

impl<T> Context<T> for std::io::Result<T> {
    fn context(self, what: &'static str, path: &Path) -> Result<T, Error> {
        self.map_err(|source| Error::Io {
            what,
            path: path.to_owned(),
            source,
        })
    }
}
