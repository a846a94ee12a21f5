//! What stops a web from being made or served.

use std::io;

/// A setting that makes no web, or a socket or file that cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting lies outside what can be served.
    #[error("`{name}` is {value}, expected {expected}")]
    Parameter {
        /// The field of [`Config`](crate::Config).
        name: &'static str,
        /// The value given.
        value: String,
        /// What would be accepted.
        expected: &'static str,
    },
    /// The system refused.
    #[error("{what}")]
    Io {
        /// What was being done, and to what.
        what: String,
        /// The system's answer.
        source: io::Error,
    },
    /// A line of a log file that is no record.
    #[error("line {line} of the log is no record")]
    Log {
        /// Counted from one.
        line: usize,
    },
}

impl Error {
    pub(crate) fn parameter(
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

    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        |source| Self::Io { what, source }
    }
}
