//! Output for terminals and as JSON.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;

/// Writes one JSON object on one line.
pub(crate) fn write_json(out: &mut impl Write, value: &Value) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    writeln!(out)
}

/// Writes a line to standard error. Errors are ignored: a closed standard error does not stop the
/// command.
pub(crate) fn say(line: fmt::Arguments<'_>) {
    drop(writeln!(io::stderr(), "{line}"));
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

/// Runs `work` while another thread shows its progress: on a terminal in one line that is
/// overwritten, elsewhere in a new line every ten seconds.
pub(crate) fn watch<T>(line: impl FnMut() -> String + Send, work: impl FnOnce() -> T) -> T {
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| show_progress(line, &is_done));
        let result = work();
        is_done.store(true, Ordering::Relaxed);
        watcher.thread().unpark();
        result
    })
}

fn show_progress(mut line: impl FnMut() -> String, is_done: &AtomicBool) {
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
