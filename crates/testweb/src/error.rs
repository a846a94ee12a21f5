//! Errors that prevent a web from being generated or served.

use std::io;

/// An invalid setting, or a socket or file that cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting is out of range.
    #[error("`{name}` is {value}, expected {expected}")]
    Parameter {
        /// The field of [`Config`](crate::Config).
        name: &'static str,
        /// The value given.
        value: String,
        /// The accepted values.
        expected: &'static str,
    },
    /// A system call failed.
    #[error("{what}")]
    Io {
        /// The failed action and its object.
        what: String,
        /// The error of the system.
        source: io::Error,
    },
    /// A line of a log file is not a record.
    #[error("line {line} of the log is not a record")]
    Log {
        /// Its number, from 1.
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
