//! What can go wrong while an engine is asked or an estimate is made.

use std::io;
use std::path::{Path, PathBuf};

/// Why there is no estimate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A search index could not be made or asked.
    #[error(transparent)]
    Search(#[from] arose_search::Error),
    /// Result pages cannot be fetched with these settings.
    #[error(transparent)]
    Crawl(#[from] arose_crawl::Error),
    /// Documents could not be read.
    #[error(transparent)]
    Corpus(#[from] arose_corpus::Error),
    /// Reading or writing a file failed.
    #[error("cannot {action} `{}`", path.display())]
    Io {
        /// What was being done.
        action: &'static str,
        /// To which file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A file of settings cannot be understood.
    #[error("cannot understand `{}`: {what}", path.display())]
    Settings {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The description of an engine lacks something.
    #[error("the description of the engine {name}: {what}")]
    Description {
        /// The engine.
        name: String,
        /// What is wrong with it.
        what: String,
    },
    /// Two engines cannot be told apart.
    #[error("two engines are called {name}; name them, as in a=out1 b=out2")]
    SameName {
        /// The name of both.
        name: String,
    },
    /// An engine does not answer at all.
    #[error("the engine {engine} gave no answer to its first {n} questions: {reason}")]
    Silent {
        /// The engine.
        engine: String,
        /// The questions.
        n: u64,
        /// Why the last one had no answer.
        reason: String,
    },
    /// As many requests as allowed were made.
    #[error("the budget of {budget} requests is spent; give more, the log keeps what there is")]
    Budget {
        /// The requests allowed.
        budget: u64,
    },
    /// A line of a log is not one.
    #[error("line {line} of the log `{}`: {what}", path.display())]
    Log {
        /// The log.
        path: PathBuf,
        /// The line.
        line: u64,
        /// What is wrong with it.
        what: String,
    },
    /// A replay needs an answer that was never given.
    #[error(
        "the log `{}` has no answer to {what}; replay with the settings and seed it was made with",
        path.display()
    )]
    NotInLog {
        /// The log.
        path: PathBuf,
        /// The question.
        what: String,
    },
    /// There are not enough words to ask with.
    #[error("{what}")]
    Words {
        /// What is missing, and what to do.
        what: String,
    },
    /// The data do not determine an estimate, or a setting is out of range.
    #[error(transparent)]
    Estimate(#[from] arose::Error),
}

impl Error {
    /// Whether a study must end here with what it has: no further answer is to be had.
    pub(crate) fn ends_study(&self) -> bool {
        matches!(self, Self::Budget { .. } | Self::NotInLog { .. })
    }

    /// Says what was being done to which file.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }
}
