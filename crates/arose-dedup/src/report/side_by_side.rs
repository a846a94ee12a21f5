//! Two texts in two columns, with differences marked.

use std::fmt::{self, Write};
use std::ops::Range;

use arose::token::Tokenizer;

use super::diff::{Bounds, Change, Diff, Hunk, Pieces};
use super::html::{Count, Text, clip, counted};
use crate::results::Repeated;

/// Number of pieces shown at each end of one long change.
const MAX_RUN: usize = 60;

/// Maximum number of characters shown of one run of text, whatever its pieces.
const MAX_CHARS: usize = 4000;

/// Number of pieces shown of equal texts.
const N_OPENING: usize = 60;

/// How two texts are shown.
#[derive(Debug, Clone, Copy)]
pub struct Showing<'a> {
    /// How they are split into pieces.
    pub tokenizer: Tokenizer,
    /// How much is shown.
    pub bounds: Bounds,
    /// The text that sites repeat, with the URLs of both, if frames are to be marked.
    pub frames: Option<(&'a Repeated, [Option<&'a str>; 2])>,
}

/// Returns the rows of a table of two columns, one for each text.
///
/// # Errors
///
/// None: memory can be written to.
pub fn rows(f: &mut String, texts: [&str; 2], showing: Showing<'_>) -> fmt::Result {
    table(f, texts, showing, |_| String::new()).map(drop)
}

/// The same, but each row with differences has an ID, `d1` and so on. Also returns their number.
///
/// # Errors
///
/// None: memory can be written to.
pub fn numbered_rows(
    f: &mut String,
    texts: [&str; 2],
    showing: Showing<'_>,
) -> Result<usize, fmt::Error> {
    table(f, texts, showing, |number| format!(" id=\"d{number}\""))
}

/// Writes the rows, each with the attribute of its number. Returns the number of rows with
/// differences.
fn table(
    f: &mut String,
    texts: [&str; 2],
    showing: Showing<'_>,
    attribute: impl Fn(usize) -> String,
) -> Result<usize, fmt::Error> {
    let is_same_text = texts[0] == texts[1];
    let [a, b] = [0, 1].map(|side| {
        let mut pieces = Pieces::new(texts[side], showing.tokenizer);
        if let Some((repeated, urls)) = showing.frames {
            pieces.weigh(&repeated.weights(urls[side], &pieces.word_pairs()));
        }
        pieces
    });
    let diff = Diff::new(&a, &b, showing.bounds);
    if diff.hunks.is_empty() {
        let n = N_OPENING.min(a.len());
        f.write_str("<tr>")?;
        cell(f, &a, 0..n, &[])?;
        cell(f, &b, 0..n, &[])?;
        f.write_str("</tr>")?;
        let how = match is_same_text {
            true => "the two texts are identical",
            false => "they differ only in case, punctuation or whitespace",
        };
        let n = counted(a.len() as u64, "token is", "tokens are");
        gap(f, &format!("All {n} equal: {how}."))?;
        return Ok(0);
    }
    for (number, hunk) in (1..).zip(&diff.hunks) {
        hidden(f, hunk.n_hidden)?;
        show(f, hunk, &a, &b, &attribute(number))?;
    }
    hidden(f, diff.n_hidden_after)?;
    let n_hunks = diff.hunks.len();
    match diff.n_left {
        [0, 0] => {}
        [a, b] => {
            let (a, b) = (Count(a as u64), Count(b as u64));
            gap(
                f,
                &format!(
                    "There are more differences; the remaining {a} and {b} tokens are not shown."
                ),
            )?;
        }
    }
    Ok(n_hunks)
}

fn hidden(f: &mut String, n: usize) -> fmt::Result {
    match n {
        0 => Ok(()),
        n => gap(f, &counted(n as u64, "equal token", "equal tokens")),
    }
}

fn gap(f: &mut String, what: &str) -> fmt::Result {
    write!(f, "<tr><td class=\"gap\" colspan=\"2\">{what}</td></tr>")
}

fn show(
    f: &mut String,
    hunk: &Hunk,
    a: &Pieces<'_>,
    b: &Pieces<'_>,
    attribute: &str,
) -> fmt::Result {
    let side = |of: fn(&Change) -> &Range<usize>| -> Vec<Range<usize>> {
        hunk.changes
            .iter()
            .map(|change| of(change).clone())
            .collect()
    };
    write!(f, "<tr{attribute}>")?;
    cell(f, a, hunk.a.clone(), &side(|change| &change.a))?;
    cell(f, b, hunk.b.clone(), &side(|change| &change.b))?;
    f.write_str("</tr>")
}

/// Writes one text's part of a hunk, with text marked that only this text has.
fn cell(
    f: &mut String,
    pieces: &Pieces<'_>,
    shown: Range<usize>,
    marked: &[Range<usize>],
) -> fmt::Result {
    f.write_str("<td><bdi>")?;
    let mut at = shown.start;
    for mark in marked {
        run(f, pieces, at..mark.start)?;
        if !mark.is_empty() {
            marked_run(f, pieces, mark.clone())?;
        }
        at = mark.end;
    }
    run(f, pieces, at..shown.end)?;
    f.write_str("</bdi></td>")
}

/// Marks the text of a range of pieces, without the whitespace after it.
fn marked_run(f: &mut String, pieces: &Pieces<'_>, range: Range<usize>) -> fmt::Result {
    let text = pieces.text(range.clone());
    let blanks = &text[text.trim_end().len()..];
    let mut marked = String::new();
    run(&mut marked, pieces, range)?;
    let marked = marked.strip_suffix(blanks).unwrap_or(&marked);
    write!(f, "<mark>{marked}</mark>{}", Text(&clip(blanks, 2)))
}

/// Writes the text of a range of pieces, shortened if there are very many.
fn run(f: &mut String, pieces: &Pieces<'_>, range: Range<usize>) -> fmt::Result {
    if range.len() <= 2 * MAX_RUN {
        for (range, weight) in pieces.runs(range) {
            shade(f, &clip(pieces.text(range), MAX_CHARS), weight)?;
        }
        return Ok(());
    }
    let head = range.start..range.start + MAX_RUN;
    let tail = range.end - MAX_RUN..range.end;
    let n = Count((range.len() - 2 * MAX_RUN) as u64);
    run(f, pieces, head)?;
    write!(f, "<span class=\"gap\"> [{n} more tokens] </span>")?;
    run(f, pieces, tail)
}

/// Writes a text, as frame if it has a weight.
fn shade(f: &mut String, text: &str, weight: Option<f64>) -> fmt::Result {
    let Some(weight) = weight else {
        return write!(f, "{}", Text(text));
    };
    let (shown, blanks) = text.split_at(text.trim_end().len());
    let title = format!("frame: weight {weight:.4}");
    write!(
        f,
        "<span class=\"frame\" title=\"{title}\">{}</span>{}",
        Text(shown),
        Text(blanks)
    )
}
