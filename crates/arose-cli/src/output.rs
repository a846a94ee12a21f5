//! How results look on a terminal and in JSON.

use std::io::{self, Write};

use serde_json::Value;

/// Writes one JSON object on a line of its own.
pub(crate) fn write_json(out: &mut impl Write, value: &Value) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    writeln!(out)
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
