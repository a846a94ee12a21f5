//! What stops a crawl: its own files.

use std::path::{Path, PathBuf};

/// A reason to stop. Whatever comes from the web is none.
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
        source: std::io::Error,
    },
    /// A file is not what was written into it.
    #[error("`{}` is damaged: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A file is not what was written into it, from some byte on.
    #[error("`{}` is damaged at byte {offset}: {what}; nothing was changed, rebuild it with `arose crawl repair`", path.display())]
    DamagedAt {
        /// The file.
        path: PathBuf,
        /// Where the damage begins.
        offset: u64,
        /// What is wrong there.
        what: &'static str,
    },
    /// There are web archives and no journal that says which of their records count.
    #[error("`{}` has web archives but no journal; rebuild it with `arose crawl repair`", path.display())]
    NoJournal {
        /// The folder of the crawl.
        path: PathBuf,
    },
    /// A folder was written with other settings, or by another version.
    #[error("`{}` was made with {setting} {found}, not {expected}", path.display())]
    Mismatch {
        /// The file that says so.
        path: PathBuf,
        /// Which setting.
        setting: &'static str,
        /// What it says.
        found: u64,
        /// What is needed.
        expected: u64,
    },
    /// A setting cannot be used.
    #[error("{0}")]
    Settings(String),
    /// The index of contents refused or failed.
    #[error("the index of contents")]
    Contents(#[source] arose_dedup::index::Error),
    /// A thread that reads pages has ended.
    #[error("a thread that reads pages has failed; the crawl can be resumed")]
    Worker,
    /// So much has happened in a crawl that places of further URLs cannot be told apart.
    #[error("`{}` has written 1 TB of events, as many as one crawl can have; start another one with other seeds", path.display())]
    Full {
        /// The folder of the crawl.
        path: PathBuf,
    },
    /// Agents of a cluster cannot talk to each other, or cannot work together.
    #[error("the cluster: {0}")]
    Cluster(String),
    /// Another process uses the folder.
    #[error("`{}` is in use by another process", path.display())]
    Locked {
        /// The folder.
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

/// Says what was being done to which file when the system refused.
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
