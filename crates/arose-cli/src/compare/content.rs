//! The evidence under the policy `content`: counts over the given documents, and both texts side by
//! side.

use std::io::{self, Write};

use arose::content::shingler;
use arose::shingle::Shingler;
use arose::site::SiteKind;
use arose::token::Tokenizer;
use arose_corpus::Document;
use arose_dedup::explain::{Explained, Passage, SideRow, Source, explain};
use arose_dedup::{RepeatCounter, Repeats};
use serde_json::{Value, json};

use crate::output::{has_color, printable};

/// Width of a column in characters.
const WIDTH: usize = 47;

/// Maximum characters of a word; longer words are split.
const MAX_WORD: usize = WIDTH - 10;

/// Counts the word pairs that sites repeat.
pub(super) struct Counter {
    tokenizer: Tokenizer,
    shingler: Shingler,
    counter: RepeatCounter,
}

impl Counter {
    pub(super) fn new() -> Self {
        Self {
            tokenizer: Tokenizer::default(),
            shingler: shingler(),
            counter: RepeatCounter::new(SiteKind::Registrable),
        }
    }

    pub(super) fn push(&mut self, document: &Document) {
        let tokens = arose_dedup::tokens(&self.tokenizer, document);
        let mut shingles = Vec::new();
        self.shingler
            .shingles_into(&tokens.fingerprints, &mut shingles);
        let url = document.url.as_deref();
        self.counter.push(url, document.content_digest(), &shingles);
    }

    pub(super) fn finish(self) -> Repeats {
        self.counter.finish()
    }
}

/// Two documents with the weights of their word pairs.
pub(super) struct Explanation<'a> {
    pub(super) explained: Explained<'a>,
    /// Number of pages of each document's site.
    n_pages: [u64; 2],
}

impl<'a> Explanation<'a> {
    pub(super) fn new(documents: &'a [Document; 2], repeats: &Repeats) -> Self {
        let tokenizer = Tokenizer::default();
        let [a, b] = documents.each_ref().map(|document| {
            let url = document.url.as_deref();
            Source::new(document, &tokenizer, |shingles| {
                repeats.content(url, shingles)
            })
        });
        Self {
            explained: explain(&a, &b),
            n_pages: documents
                .each_ref()
                .map(|document| repeats.n_pages(document.url.as_deref())),
        }
    }

    pub(super) fn as_json(&self) -> Value {
        let score = &self.explained.score;
        json!({
            "weighted": score.s,
            "unweighted": score.u,
            "level": score.level().as_str(),
            "own": score.own,
            "site_pages": self.n_pages,
            "rows": self.explained.rows.iter().map(row_as_json).collect::<Vec<Value>>(),
        })
    }

    /// Writes the scores.
    pub(super) fn write_scores(&self, out: &mut impl Write) -> io::Result<()> {
        let score = &self.explained.score;
        writeln!(
            out,
            "content  {:.4} weighted, {:.4} unweighted: level {}",
            score.s,
            score.u,
            score.level().as_str()
        )?;
        let [a, b] = score.own;
        writeln!(out, "own      {a:.1} word pairs in a, {b:.1} in b")?;
        let [a, b] = self.n_pages;
        writeln!(out, "pages    {a} on the site of a, {b} on the site of b")
    }

    /// Writes both texts side by side.
    pub(super) fn write_rows(&self, out: &mut impl Write) -> io::Result<()> {
        let paint = Paint::of_terminal();
        writeln!(
            out,
            "\nText in [ ] is frame that other pages of the site repeat, with its weight. < > | mark \
             text that\nonly one document has in this order."
        )?;
        for row in &self.explained.rows {
            write_row(out, row, paint)?;
        }
        Ok(())
    }
}

fn row_as_json(row: &SideRow<'_>) -> Value {
    let side = |side: &[Passage<'_>]| -> Vec<Value> {
        let passages = side.iter().map(|passage| {
            json!({
                "text": passage.text,
                "tokens": passage.n_tokens,
                "frame": passage.is_frame(),
                "weight": passage.weight,
            })
        });
        passages.collect()
    };
    json!({
        "common": row.is_common,
        "a": side(&row.sides[0]),
        "b": side(&row.sides[1]),
    })
}

/// Whether to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Paint {
    Plain,
    Colour,
}

impl Paint {
    fn of_terminal() -> Self {
        match has_color() {
            true => Self::Colour,
            false => Self::Plain,
        }
    }
}

/// Appearance of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    Common,
    Frame,
    OnlyA,
    OnlyB,
}

impl Look {
    fn code(self) -> &'static str {
        match self {
            Self::Common => "0",
            Self::Frame => "2",
            Self::OnlyA => "31",
            Self::OnlyB => "32",
        }
    }
}

fn write_row(out: &mut impl Write, row: &SideRow<'_>, paint: Paint) -> io::Result<()> {
    let only = [Look::OnlyA, Look::OnlyB];
    let [a, b] = [0, 1].map(|side| {
        let look = if row.is_common {
            Look::Common
        } else {
            only[side]
        };
        lines(&row.sides[side], look)
    });
    let gutter = match (row.is_common, a.is_empty(), b.is_empty()) {
        (true, ..) => ' ',
        (false, false, true) => '<',
        (false, true, false) => '>',
        (false, ..) => '|',
    };
    for line in 0..a.len().max(b.len()) {
        let [a, b] = [&a, &b].map(|lines| lines.get(line).map_or(&[][..], Vec::as_slice));
        let text = format!("{} {gutter} {}", shown(a, WIDTH, paint), shown(b, 0, paint));
        writeln!(out, "{}", text.trim_end())?;
    }
    Ok(())
}

/// A word and its appearance.
type Word = (String, Look);

/// The words of passages in lines; frame is in square brackets, with its weight.
fn lines(passages: &[Passage<'_>], look: Look) -> Vec<Vec<Word>> {
    let mut words: Vec<Word> = Vec::new();
    for passage in passages {
        let text = printable_words(passage.text);
        if !passage.is_frame() {
            words.extend(text.map(|word| (word, look)));
            continue;
        }
        let first = words.len();
        words.extend(text.map(|word| (word, Look::Frame)));
        if let [first, ..] = &mut words[first..] {
            first.0 = format!("[{}: {}", weight(passage.weight), first.0);
        }
        if let [.., last] = &mut words[first..] {
            last.0.push(']');
        }
    }
    let mut lines: Vec<Vec<Word>> = Vec::new();
    // A line ends after each part of a split word.
    let (mut n_chars, mut is_cut) = (0, false);
    for word in words {
        let n = word.0.chars().count();
        let ends = std::mem::replace(&mut is_cut, n >= MAX_WORD);
        match lines.last_mut() {
            Some(line) if n_chars + 1 + n <= WIDTH && !ends => {
                n_chars += 1 + n;
                line.push(word);
            }
            _ => {
                n_chars = n;
                lines.push(vec![word]);
            }
        }
    }
    lines
}

/// The words of a text; words wider than a column are split.
fn printable_words(text: &str) -> impl Iterator<Item = String> {
    text.split_whitespace().flat_map(|word| {
        let chars: Vec<char> = printable(word).chars().collect();
        let parts = chars.chunks(MAX_WORD);
        parts
            .map(|part| part.iter().collect())
            .collect::<Vec<String>>()
    })
}

/// A weight with two significant digits.
fn weight(weight: f64) -> String {
    match weight {
        0.1.. => format!("{weight:.2}"),
        0.01.. => format!("{weight:.3}"),
        _ => format!("{weight:.4}"),
    }
}

/// A line of words, padded to a width.
fn shown(words: &[Word], width: usize, paint: Paint) -> String {
    let mut text = String::new();
    let mut n_chars = 0;
    for (place, (word, look)) in words.iter().enumerate() {
        if place > 0 {
            text.push(' ');
            n_chars += 1;
        }
        n_chars += word.chars().count();
        match paint {
            Paint::Plain => text.push_str(word),
            Paint::Colour => {
                text.push_str(&format!("\x1b[{}m{word}\x1b[0m", look.code()));
            }
        }
    }
    text.extend(std::iter::repeat_n(' ', width.saturating_sub(n_chars)));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passage(text: &str, weight: f64) -> Passage<'_> {
        Passage {
            text,
            n_tokens: 1,
            weight,
        }
    }

    #[track_caller]
    fn check(row: &SideRow<'_>, paint: Paint, expected: &str) {
        let mut out = Vec::new();
        write_row(&mut out, row, paint).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn issue_24_rows_on_a_terminal() {
        let common = SideRow {
            is_common: true,
            sides: [
                vec![passage("Home menu", 0.09), passage("one\u{7} two", 1.0)],
                vec![passage("Home", 0.0009), passage("one two", 1.0)],
            ],
        };
        let a = format!("{:<47}", "[0.090: Home menu] one\u{FFFD} two");
        check(
            &common,
            Paint::Plain,
            &format!("{a}   [0.0009: Home] one two\n"),
        );
        let only = SideRow {
            is_common: false,
            sides: [Vec::new(), vec![passage("three", 1.0)]],
        };
        let blank = " ".repeat(47);
        check(&only, Paint::Plain, &format!("{blank} > three\n"));
        check(
            &only,
            Paint::Colour,
            &format!("{blank} > \x1b[32mthree\x1b[0m\n"),
        );
        let long = "x".repeat(80);
        let wide = SideRow {
            is_common: false,
            sides: [vec![passage(&long, 1.0)], Vec::new()],
        };
        let lines = [37, 37, 6].map(|n| format!("{:<47} <\n", "x".repeat(n)));
        check(&wide, Paint::Plain, &lines.concat());
    }
}
