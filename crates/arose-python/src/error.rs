//! Errors as Python sees them: the same words, causes included.

use std::any::Any;
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

/// An error and its causes in one line, with parameters as Python names them.
pub(crate) fn words(error: &dyn Error) -> String {
    in_python(&chain(error))
}

/// Options of the command line become parameters.
fn in_python(words: &str) -> String {
    /// Parameters that are true or false.
    const FLAGS: [&str; 3] = ["force", "strict", "drop_empty"];
    let mut parts = words.split("--");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_name = |c: &char| c.is_ascii_lowercase() || *c == '-';
        let n = part.chars().take_while(is_name).count();
        let (option, rest) = part.split_at(n);
        let name = option.trim_end_matches('-').replace('-', "_");
        match (n, FLAGS.contains(&&*name)) {
            (0, _) => text.push_str("--"),
            (_, true) => text.push_str(&format!("{name}=True")),
            (_, false) => text.push_str(&name),
        }
        text.push_str(rest);
    }
    text
}

fn chain(error: &dyn Error) -> String {
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
        E::InputLost { .. } => InputLost::new_err(words(&error)),
        E::Corpus(_) | E::InsideOutput { .. } | E::InputChanged { .. } => input(error),
        _ => AroseError::new_err(words(&error)),
    }
}

/// A panic, which is a mistake of the program. Python must be able to catch it.
pub(crate) fn panicked(panic: &(dyn Any + Send)) -> PyErr {
    let words = panic.downcast_ref::<String>().map(String::as_str);
    let words = words.or_else(|| panic.downcast_ref::<&str>().copied());
    let words = words.unwrap_or("unknown cause");
    AroseError::new_err(format!("internal error: {words}; please report it"))
}

/// An error of the columnar library.
pub(crate) fn arrow(error: arrow_schema::ArrowError) -> PyErr {
    AroseError::new_err(words(&error))
}
