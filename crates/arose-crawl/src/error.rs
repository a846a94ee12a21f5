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
