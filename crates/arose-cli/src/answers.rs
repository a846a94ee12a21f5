//! Inputs from the command line or as JSON Lines on standard input, with one result each.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::io::{self, BufRead, Read, Write};

use anyhow::{Context, bail, ensure};
use serde_json::{Map, Value, json};

use crate::output::{printable, say, write_json};
use crate::read::Outcome;

/// The result of a command for one input.
pub(crate) trait Answer {
    /// As JSON.
    fn as_json(&self) -> Value;
    /// As text.
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()>;
}

/// Output format.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Format {
    /// Print one JSON object per URL
    #[arg(long)]
    json: bool,
}

impl Format {
    pub(crate) fn write(self, out: &mut dyn Write, answer: &impl Answer) -> anyhow::Result<()> {
        let written = if self.json {
            write_json(&mut &mut *out, &answer.as_json())
        } else {
            answer.write_text(out)
        };
        written.context("cannot write the result")
    }

    /// In JSON, an invalid input line still produces an output line, so that lines correspond.
    fn write_error(self, out: &mut impl Write, message: &str) -> anyhow::Result<()> {
        if self.json {
            let written = write_json(out, &json!({ "error": message }));
            written.context("cannot write the result")?;
        }
        Ok(())
    }
}

/// Maximum length of a line.
const MAX_LINE: u64 = 64 << 20;

/// Invalid lines that are reported one by one; the rest are only counted.
const MAX_REPORTS: u64 = 20;

/// A JSON object, one line of the input.
pub(crate) struct Row(Map<String, Value>);

impl Row {
    /// The text of a field, if it has that field.
    pub(crate) fn text(&self, name: &str) -> anyhow::Result<Option<&str>> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => bail!("the field \"{name}\" is {other}; expected a string"),
        }
    }
}

/// Processes each line of standard input. An invalid line is reported with its number on standard
/// error and, in JSON, in its place. The other lines are still processed.
pub(crate) fn from_standard_input<A: Answer>(
    format: Format,
    mut answer: impl FnMut(&Row) -> anyhow::Result<A>,
) -> anyhow::Result<Outcome> {
    let mut input = io::stdin().lock();
    let mut out = io::BufWriter::new(io::stdout().lock());
    let (mut n_lines, mut n_bad, mut number) = (0_u64, 0, 0_u64);
    let mut line = Vec::new();
    loop {
        line.clear();
        number += 1;
        let read = (&mut input).take(MAX_LINE).read_until(b'\n', &mut line);
        if read.context("cannot read standard input")? == 0 {
            break;
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        n_lines += 1;
        match row(&line).and_then(|row| answer(&row)) {
            Ok(answer) => format.write(&mut out, &answer)?,
            Err(error) => {
                n_bad += 1;
                let message = format!("line {number}: {error:#}");
                format.write_error(&mut out, &message)?;
                report(n_bad, &message);
            }
        }
    }
    out.flush().context("cannot write the result")?;
    ensure!(n_bad == 0, "{n_bad} of {n_lines} lines are invalid");
    Ok(if n_lines > 0 {
        Outcome::Found
    } else {
        Outcome::NothingFound
    })
}

/// Reports the first invalid lines only.
fn report(n_bad: u64, message: &str) {
    match n_bad.cmp(&(MAX_REPORTS + 1)) {
        Ordering::Less => say(format_args!("arose: {}", printable(message))),
        Ordering::Equal => say(format_args!(
            "arose: further invalid lines are only counted"
        )),
        Ordering::Greater => {}
    }
}

fn row(line: &[u8]) -> anyhow::Result<Row> {
    ensure!((line.len() as u64) < MAX_LINE, "longer than 64 MiB");
    let parsed = serde_json::from_slice(line)
        .or_else(|error| serde_json::from_slice(&whole_pairs(line)).map_err(|_| error));
    match parsed {
        Ok(Value::Object(object)) => Ok(Row(object)),
        Ok(_) => bail!("not a JSON object; expected e.g. {{\"url\": \"http://…\"}}"),
        Err(error) => {
            bail!("not JSON: {error}; expected e.g. {{\"url\": \"http://…\"}}")
        }
    }
}

/// Replaces unpaired surrogates with U+FFFD, as browsers do. JSON can express them, but text cannot
/// contain them.
fn whole_pairs(line: &[u8]) -> Cow<'_, [u8]> {
    let half = |at: usize| {
        let escape = line.get(at..at + 6)?.strip_prefix(b"\\u")?;
        let unit = u32::from_str_radix(std::str::from_utf8(escape).ok()?, 16).ok()?;
        (0xD800..0xE000).contains(&unit).then_some(unit < 0xDC00)
    };
    let mut out = Vec::with_capacity(line.len());
    let mut at = 0;
    while at < line.len() {
        let n = match (half(at), half(at + 6)) {
            (Some(true), Some(false)) => 12,
            (Some(_), _) => {
                out.extend_from_slice(b"\\ufffd");
                at += 6;
                continue;
            }
            (None, _) if line[at] == b'\\' => 2,
            (None, _) => 1,
        };
        out.extend_from_slice(&line[at..line.len().min(at + n)]);
        at += n;
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_pairs_are_replaced() {
        for (line, expected) in [
            (r#"{"url":"\ud800"}"#, "\u{FFFD}"),
            (r#"{"url":"a\uDC00\ud83d\ude00b"}"#, "a\u{FFFD}\u{1F600}b"),
            (r#"{"url":"\\ud800\ud800\n"}"#, "\\ud800\u{FFFD}\n"),
        ] {
            let row = row(line.as_bytes()).unwrap();
            assert_eq!(row.text("url").unwrap(), Some(expected), "{line}");
        }
    }
}
