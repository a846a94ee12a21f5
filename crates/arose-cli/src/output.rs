//! Output for terminals and as JSON.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::{PoisonError, RwLock};

use serde_json::Value;

use crate::options::{Everywhere, How, When};
use crate::progress::write_line;

/// How a command presents its output.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    pub(crate) progress: How,
    pub(crate) color: When,
    pub(crate) is_quiet: bool,
    pub(crate) is_verbose: bool,
}

/// The look of the command that runs. A process runs one command at a time; the Python wheel runs
/// several, one after the other.
static LOOK: RwLock<Look> = RwLock::new(Look {
    progress: How::Auto,
    color: When::Auto,
    is_quiet: false,
    is_verbose: false,
});

pub(crate) fn set_look(options: &Everywhere) {
    *LOOK.write().unwrap_or_else(PoisonError::into_inner) = Look {
        progress: match options.quiet {
            true => How::Never,
            false => options.progress,
        },
        color: options.color,
        is_quiet: options.quiet,
        is_verbose: options.verbose,
    };
}

pub(crate) fn look() -> Look {
    *LOOK.read().unwrap_or_else(PoisonError::into_inner)
}

/// Whether standard output has colours.
pub(crate) fn has_color() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    match look().color {
        When::Always => true,
        When::Never => false,
        When::Auto => io::stdout().is_terminal() && !is_set("NO_COLOR") && !is_dumb(),
    }
}

/// Writes one JSON object on one line.
pub(crate) fn write_json(out: &mut impl Write, value: &Value) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    writeln!(out)
}

/// Writes a warning or an error to standard error, on a line of its own.
pub(crate) fn say(line: fmt::Arguments<'_>) {
    write_line(&line.to_string());
}

/// Writes a remark to standard error, unless --quiet is given.
pub(crate) fn remark(line: fmt::Arguments<'_>) {
    if !look().is_quiet {
        say(line);
    }
}

/// Writes a row of a summary: a label, a number and a note, which may be empty.
pub(crate) fn row(
    out: &mut impl Write,
    label: &str,
    value: impl fmt::Display,
    note: &str,
) -> io::Result<()> {
    // JSON values ignore the width.
    let value = value.to_string();
    let line = format!("{label:<24} {value:>10}  {note}");
    writeln!(out, "{}", line.trim_end())
}

/// A share of documents or tokens, e.g. ` 12.5%`.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    format!("{:5.1}%", 100.0 * part as f64 / whole.max(1) as f64)
}

/// 64-bit words in hexadecimal, in order, without separators.
pub(crate) fn hex(words: &[u64]) -> String {
    words.iter().map(|word| format!("{word:016x}")).collect()
}

/// A similarity with four decimals, or a dash if there is none.
pub(crate) fn similarity(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.4}"))
}

/// Text that is safe to print: control characters, which could move the cursor, become U+FFFD.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c.is_control() {
                char::REPLACEMENT_CHARACTER
            } else {
                c
            }
        })
        .collect()
}
