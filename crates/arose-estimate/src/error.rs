//! Errors of queries and estimates.

use std::io;
use std::path::{Path, PathBuf};

/// The reason why there is no estimate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A search index could not be built or queried.
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
        /// The failed action.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A settings file is invalid.
    #[error("cannot parse `{}`: {what}", path.display())]
    Settings {
        /// The file.
        path: PathBuf,
        /// The error.
        what: String,
    },
    /// The description of a search engine is incomplete.
    #[error("description of the search engine {name}: {what}")]
    Description {
        /// The search engine.
        name: String,
        /// The error.
        what: String,
    },
    /// Two search engines have the same name.
    #[error("two search engines are named {name}; rename them, e.g. a=out1 b=out2")]
    SameName {
        /// The name of both.
        name: String,
    },
    /// A search engine does not respond at all.
    #[error("search engine {engine} did not respond to the first {n} queries: {reason}")]
    Silent {
        /// The search engine.
        engine: String,
        /// The number of queries.
        n: u64,
        /// The reason why the last one got no response.
        reason: String,
    },
    /// The request budget is spent.
    #[error("the budget of {budget} requests is spent; raise --budget to resume from the log")]
    Budget {
        /// The budget.
        budget: u64,
    },
    /// A line of a log is invalid.
    #[error("line {line} of the log `{}`: {what}", path.display())]
    Log {
        /// The log.
        path: PathBuf,
        /// The line.
        line: u64,
        /// The error.
        what: String,
    },
    /// A replay needs a response that is not in the log.
    #[error(
        "the log `{}` has no response to {what}; replay it with the same settings and seed",
        path.display()
    )]
    NotInLog {
        /// The log.
        path: PathBuf,
        /// The query.
        what: String,
    },
    /// There are not enough words to query.
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
    /// Whether a study must end with the responses received, because there will be no more.
    pub(crate) fn ends_study(&self) -> bool {
        matches!(self, Self::Budget { .. } | Self::NotInLog { .. })
    }

    /// Makes an error from the failed action and its file.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }
}
