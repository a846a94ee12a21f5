//! How results look on a terminal and in JSON.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;

/// Writes one JSON object on a line of its own.
pub(crate) fn write_json(out: &mut impl Write, value: &Value) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    writeln!(out)
}

/// Writes a line to standard error. If nobody reads it any more, nothing is said: the work matters,
/// and not its comments.
pub(crate) fn say(line: fmt::Arguments<'_>) {
    drop(writeln!(io::stderr(), "{line}"));
}

/// Words of 64 bits in hexadecimal, in order, without separators.
pub(crate) fn hex(words: &[u64]) -> String {
    words.iter().map(|word| format!("{word:016x}")).collect()
}

/// A similarity for reading; a dash where there is none.
pub(crate) fn similarity(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.4}"))
}

/// Text for a terminal: control characters, which could move the cursor or worse, become U+FFFD.
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

/// Runs `work` while another thread says now and then how far it is: on a terminal in one line that
/// is written over, elsewhere in a line every ten seconds.
pub(crate) fn watch<T>(line: impl FnMut() -> String + Send, work: impl FnOnce() -> T) -> T {
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| tell_progress(line, &is_done));
        let result = work();
        is_done.store(true, Ordering::Relaxed);
        watcher.thread().unpark();
        result
    })
}

fn tell_progress(mut line: impl FnMut() -> String, is_done: &AtomicBool) {
    let is_terminal = io::stderr().is_terminal();
    let pause = Duration::from_millis(if is_terminal { 200 } else { 10_000 });
    loop {
        std::thread::park_timeout(pause);
        if is_done.load(Ordering::Relaxed) {
            break;
        }
        match is_terminal {
            true => drop(write!(io::stderr(), "\r\x1b[K{}", line())),
            false => say(format_args!("{}", line())),
        }
    }
    if is_terminal {
        drop(write!(io::stderr(), "\r\x1b[K"));
    }
}
