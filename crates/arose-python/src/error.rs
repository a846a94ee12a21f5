//! Errors for Python, with the same messages and their causes.

use std::any::Any;
use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(
    arose,
    AroseError,
    PyException,
    "An error of arose. Its message uses the parameter names of Python."
);
create_exception!(
    arose,
    SettingError,
    AroseError,
    "An invalid or unknown setting."
);
create_exception!(
    arose,
    InputError,
    AroseError,
    "An input that does not exist, cannot be read or is malformed."
);

create_exception!(
    arose,
    InputLost,
    InputError,
    "Part of the input cannot be read, and strict=True was set."
);

/// Returns an error and its causes in one line, with parameters as Python names them.
pub(crate) fn words(error: &dyn Error) -> String {
    in_python(&chain(error))
}

/// Turns options and commands of the command line into parameters and functions. Text between
/// backticks is a name of the caller and stays unchanged.
pub(crate) fn in_python(words: &str) -> String {
    let mut words = words.to_owned();
    for (command, function) in COMMANDS {
        words = words.replace(command, function);
    }
    let parts = words.split('`').enumerate().map(|(i, part)| match i % 2 {
        0 => with_parameters(part),
        _ => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("`")
}

fn with_parameters(words: &str) -> String {
    let (mut text, mut rest) = (String::new(), words);
    while let Some(at) = rest.find("--") {
        let (before, option) = (&rest[..at], &rest[at + 2..]);
        let is_name = |c: &char| c.is_ascii_lowercase() || *c == '-';
        let n = option.chars().take_while(is_name).count();
        let is_word = !before.ends_with(|c: char| !c.is_whitespace() && c != '(');
        text.push_str(before);
        if n == 0 || !is_word {
            text.push_str("--");
            rest = option;
            continue;
        }
        let name = option[..n].trim_end_matches('-').replace('-', "_");
        rest = &option[n..];
        text.push_str(&name);
        if FLAGS.contains(&&*name) {
            text.push_str("=True");
        } else if let Some((value, after)) = rest
            .strip_prefix(' ')
            .and_then(|words| value_of(&name, words))
        {
            text.push_str(&format!("='{value}'"));
            rest = after;
        }
    }
    text + rest
}

/// Boolean parameters.
const FLAGS: [&str; 8] = [
    "force",
    "strict",
    "drop_empty",
    "whole_first",
    "all_text",
    "rebuild",
    "update_index",
    "ids_only",
];

/// Options that take a word.
const CHOICES: [&str; 11] = [
    "policy", "keep", "unit", "remove", "exact", "pairs", "dropped", "verify", "scope", "cut",
    "versions",
];

/// Phrases of the command line, and their counterparts in Python.
const COMMANDS: [(&str, &str); 7] = [
    ("`arose index create`", "arose.Index.create"),
    ("`arose read`", "arose.read"),
    ("`arose dedup`", "arose.dedup"),
    ("`arose search`", "arose.search"),
    ("the directory given to -o", "its output directory"),
    ("with --index DIR", "with index"),
    ("run the same command to resume", "the same call resumes it"),
];

/// Returns the word after an option, and the rest.
fn value_of<'w>(option: &str, words: &'w str) -> Option<(&'w str, &'w str)> {
    let is_word = |c: &char| c.is_ascii_lowercase() || *c == '-';
    let n = words.chars().take_while(is_word).count();
    let (word, rest) = words.split_at(n);
    let is_value = CHOICES.contains(&option) && VALUES.contains(&word);
    is_value.then_some((word, rest))
}

/// The words that options take.
const VALUES: [&str; 36] = [
    "exact",
    "jaccard",
    "content",
    "b",
    "c",
    "combined",
    "site",
    "site-union",
    "contained",
    "url",
    "first",
    "longest",
    "newest",
    "copies",
    "priority",
    "token",
    "line",
    "paragraph",
    "sentence",
    "later",
    "all",
    "spans",
    "documents",
    "same",
    "text",
    "bytes",
    "verified",
    "revisit",
    "sketch",
    "none",
    "any",
    "across",
    "within",
    "words",
    "keep",
    "zero",
];

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

/// Converts the error that ended a run.
pub(crate) fn run(error: arose_dedup::Error) -> PyErr {
    use arose_dedup::Error as E;
    match error {
        E::Setting(_)
        | E::Recall { .. }
        | E::Bits { .. }
        | E::Choice(_)
        | E::Times
        | E::PolicyOption { .. }
        | E::BytesAgainstIndex
        | E::NoArchive => setting(error),
        E::InputLost { .. } => InputLost::new_err(words(&error)),
        E::Corpus(_)
        | E::InsideOutput { .. }
        | E::InputChanged { .. }
        | E::NoTime
        | E::NoPriority { .. }
        | E::CutPage { .. }
        | E::EmptyReference { .. } => input(error),
        E::Index(cause) => crate::index::failed(cause),
        _ => AroseError::new_err(words(&error)),
    }
}

/// Converts a panic, which is a bug in the program. Python must be able to catch it.
pub(crate) fn panicked(panic: &(dyn Any + Send)) -> PyErr {
    let words = panic.downcast_ref::<String>().map(String::as_str);
    let words = words.or_else(|| panic.downcast_ref::<&str>().copied());
    let words = words.unwrap_or("unknown cause");
    AroseError::new_err(format!("internal error: {words}; please report it"))
}

/// Runs code and turns panics into errors.
pub(crate) fn guarded<T>(run: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| Err(panicked(&*panic)))
}

/// An error of the columnar library.
pub(crate) fn arrow(error: arrow_schema::ArrowError) -> PyErr {
    AroseError::new_err(words(&error))
}
