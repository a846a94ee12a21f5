//! Errors as Python sees them: the same words, causes included.

use std::error::Error;

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(
    arose,
    AroseError,
    PyException,
    "What stopped arose. The message is the one of the command line."
);
create_exception!(
    arose,
    SettingError,
    AroseError,
    "A setting that no algorithm can work with, or that is not known."
);
create_exception!(
    arose,
    InputError,
    AroseError,
    "An input that is not there, cannot be read or is not what was expected."
);

create_exception!(
    arose,
    InputLost,
    InputError,
    "Part of the input cannot be read, and strict=True was set."
);

/// An error and its causes in one line.
pub(crate) fn words(error: &dyn Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if !words.ends_with(&text) {
            words = format!("{words}: {text}");
        }
        cause = error.source();
    }
    words
}

pub(crate) fn setting(error: impl Error) -> PyErr {
    SettingError::new_err(words(&error))
}

pub(crate) fn input(error: impl Error) -> PyErr {
    InputError::new_err(words(&error))
}

/// What ended a run.
pub(crate) fn run(error: arose_dedup::Error) -> PyErr {
    use arose_dedup::Error as E;
    match error {
        E::Setting(_) | E::Recall { .. } => setting(error),
        E::InputLost { .. } => InputLost::new_err(words(&error).replace("--strict", "strict=True")),
        E::Corpus(_) | E::InsideOutput { .. } | E::InputChanged { .. } => input(error),
        _ => AroseError::new_err(words(&error)),
    }
}

/// An error of the columnar library.
pub(crate) fn arrow(error: arrow_schema::ArrowError) -> PyErr {
    AroseError::new_err(words(&error))
}
