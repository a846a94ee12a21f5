//! First stage: reads the input once into columns of tokens, cells, texts and names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arose::digest::Digest;
use arose::mix::mix;
use arose::passage::{Cells, Unit, units};
use arose::token::{Case, Tokenizer, Tokens, fingerprint};
use arose_corpus::{Document, Item, Position, Reason, Warning};
use serde::{Deserialize, Serialize};

use super::config::{Digits, PassagesConfig, TextElements};
use super::text::{DOCS, STARTS, TEXTS, TOKENS, TextRecord};
use crate::column::{ListWriter, Writer};
use crate::losses::Losses;
use crate::names;
use crate::record::NullText;
use crate::source::{InputFile, path_text};
use crate::stage::read::{NAMES, NULLS};
use crate::{Error, Progress};

/// Maximum number of warnings that are stored verbatim.
const MAX_EXAMPLES: usize = 20;
/// Placeholder for a unit that is never repeated, until its place is known.
const UNIQUE: u64 = 0;

/// The results of the stage.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Read {
    pub(crate) sources: Vec<InputFile>,
    pub(crate) n_docs: u64,
    pub(crate) n_tokens: u64,
    pub(crate) text_bytes: u64,
    /// Documents too short for a window.
    pub(crate) n_short: u64,
    /// Skipped records by reason.
    pub(crate) skipped: BTreeMap<String, u64>,
    /// The first of them, for people.
    pub(crate) warnings: Vec<String>,
    pub(crate) losses: Losses,
}

/// Reads `inputs` and writes the columns to `folder`. Directories in `skip` are not entered.
pub(crate) fn run(
    inputs: &[PathBuf],
    config: &PassagesConfig,
    skip: Vec<PathBuf>,
    folder: &Path,
    progress: &Progress,
) -> Result<Read, Error> {
    let mut corpus = config.corpus.clone();
    corpus.files.skip.extend(skip);
    let text = config.text;
    let mut rows = arose_corpus::read_map(inputs, corpus, move |item| match item {
        Item::Document(document) => ReadRow::Document(Box::new(row(*document, text))),
        Item::Skipped(warning) => ReadRow::Skipped(warning),
    })?;
    let mut columns = Columns::create(folder)?;
    for row in rows.by_ref() {
        match row {
            ReadRow::Document(row) => columns.push(*row, config)?,
            ReadRow::Skipped(warning) => columns.skip(&warning)?,
        }
        progress.advance(1)?;
    }
    columns.found.losses = Losses::from(rows.counts());
    columns.finish()
}

enum ReadRow {
    Document(Box<DocRow>),
    Skipped(Warning),
}

/// A document, ready to be written.
struct DocRow {
    id: String,
    url: Option<String>,
    source: Arc<Path>,
    position: Position,
    text: String,
    tokens: Vec<u64>,
    cells: Cells,
    is_ascii: bool,
    /// Whether the text was taken from a page.
    is_page: bool,
}

fn row(document: Document, text: TextElements) -> DocRow {
    let is_ascii = document.text.is_ascii();
    let (tokens, starts) = match text {
        TextElements::Words => words(&document),
        TextElements::Symbols => symbols(&document.text),
        TextElements::Units {
            unit,
            min_words,
            digits,
        } => of_units(&document.text, unit, min_words, digits),
    };
    let is_plain = is_ascii && text == TextElements::Words && document.images.is_empty();
    let cells = match is_plain {
        true => plain_cells(starts, document.text.len()),
        false => Cells::new(&document.text, starts.iter().map(|start| *start as usize)),
    };
    let id = match document.id {
        Some(id) => id,
        None => format!("{}#{}", path_text(&document.source), document.position),
    };
    DocRow {
        id,
        url: document.url,
        source: document.source,
        position: document.position,
        text: document.text,
        tokens,
        cells,
        is_ascii,
        is_page: document.page.is_some(),
    }
}

/// Returns the cells of words of ASCII text. No word begins inside a grapheme cluster, since the
/// only cluster of two ASCII characters is a line break.
fn plain_cells(mut starts: Vec<u32>, n_bytes: usize) -> Cells {
    if let Some(first) = starts.first_mut() {
        *first = 0;
    }
    Cells::from_starts(starts, n_bytes as u32)
}

/// Returns tokens as in `arose dedup`, including images, and the start of each.
fn words(document: &Document) -> (Vec<u64>, Vec<u32>) {
    let (mut tokens, mut starts) = (Tokens::default(), Vec::new());
    let tokenizer = Tokenizer::default();
    let push_text = |tokens: &mut Tokens, starts: &mut Vec<u32>, from: usize, to: usize| {
        let n_before = starts.len();
        let text = &document.text[from..to];
        tokenizer.fingerprints_with_starts(text, &mut tokens.fingerprints, starts);
        if from > 0 {
            starts[n_before..]
                .iter_mut()
                .for_each(|start| *start += from as u32);
        }
    };
    let mut from = 0;
    for image in &document.images {
        let end = document.text.floor_char_boundary(image.at).max(from);
        push_text(&mut tokens, &mut starts, from, end);
        tokens.push_image(&image.src);
        starts.push(end as u32);
        from = end;
    }
    push_text(&mut tokens, &mut starts, from, document.text.len());
    (tokens.fingerprints, starts)
}

/// Words with their case, and every other character except whitespace.
fn symbols(text: &str) -> (Vec<u64>, Vec<u32>) {
    let (mut tokens, mut starts) = (Vec::new(), Vec::new());
    let tokenizer = Tokenizer { case: Case::Keep };
    let gap = |tokens: &mut Vec<u64>, starts: &mut Vec<u32>, from: usize, to: usize| {
        let between = text.get(from..to).unwrap_or_default();
        for (at, symbol) in between.char_indices().filter(|(_, c)| !c.is_whitespace()) {
            let mut buffer = [0; 4];
            tokens.push(fingerprint(symbol.encode_utf8(&mut buffer).as_bytes()));
            starts.push((from + at) as u32);
        }
    };
    let mut end = 0;
    tokenizer.for_each_fingerprint(text, usize::MAX, |token, place| {
        gap(&mut tokens, &mut starts, end, place.start);
        tokens.push(token);
        starts.push(place.start as u32);
        end = place.end;
    });
    gap(&mut tokens, &mut starts, end, text.len());
    (tokens, starts)
}

fn of_units(text: &str, unit: Unit, min_words: u32, digits: Digits) -> (Vec<u64>, Vec<u32>) {
    let tokenizer = Tokenizer::default();
    let found = units(text, unit).into_iter().map(|range| {
        let content = &text[range.clone()];
        let is_short = min_words > 0 && tokenizer.tokens(content).len() < min_words as usize;
        let Digest(digest) = match digits {
            Digits::Keep => Digest::of_text(content),
            Digits::Zero => Digest::of_text(&zeros(content)),
        };
        // Zero stands for units that are never repeated.
        let token = if is_short {
            UNIQUE
        } else {
            (digest as u64).max(1)
        };
        (token, range.start as u32)
    });
    found.unzip()
}

/// Returns the text with every decimal digit as 0.
fn zeros(text: &str) -> String {
    let is_digit = |c: char| c.is_numeric() && (c.is_ascii_digit() || is_decimal(c));
    text.chars()
        .map(|c| if is_digit(c) { '0' } else { c })
        .collect()
}

/// Returns whether a character beyond ASCII is a decimal digit, which is a token class of its own.
fn is_decimal(c: char) -> bool {
    let mut buffer = [0; 4];
    !c.is_alphabetic()
        && Tokenizer::default()
            .tokens(c.encode_utf8(&mut buffer))
            .len()
            == 1
}

/// The columns being written.
struct Columns {
    docs: Writer<TextRecord>,
    names: Writer<u8>,
    tokens: ListWriter<u64>,
    starts: Writer<u32>,
    texts: Writer<u8>,
    nulls: Writer<NullText>,
    /// The source of the last document, usually also that of the next.
    last: Option<(Arc<Path>, u32)>,
    source_numbers: BTreeMap<PathBuf, u32>,
    found: Read,
}

impl Columns {
    fn create(folder: &Path) -> Result<Self, Error> {
        Ok(Self {
            docs: Writer::create(&folder.join(DOCS))?,
            names: Writer::create(&folder.join(NAMES))?,
            tokens: ListWriter::create(&folder.join(TOKENS))?,
            starts: Writer::create(&folder.join(STARTS))?,
            texts: Writer::create(&folder.join(TEXTS))?,
            nulls: Writer::create(&folder.join(NULLS))?,
            last: None,
            source_numbers: BTreeMap::new(),
            found: Read::default(),
        })
    }

    fn push(&mut self, mut row: DocRow, config: &PassagesConfig) -> Result<(), Error> {
        if self.docs.len() == u64::from(u32::MAX) - 1 {
            return Err(Error::TooManyDocuments);
        }
        if row.is_page && config.remove.is_some() {
            return Err(Error::CutPage {
                path: row.source.to_path_buf(),
            });
        }
        let source = self.source(&row.source)?;
        let first = self.tokens.len();
        for (number, token) in row.tokens.iter_mut().enumerate() {
            if *token == UNIQUE {
                *token = mix(mix(first + number as u64) ^ 1).max(1);
            }
        }
        self.docs.push(&TextRecord {
            tokens_at: first,
            text_at: self.texts.len(),
            offset: row.position.offset,
            inner: row.position.inner,
            source,
            n_tokens: row.tokens.len() as u32,
            n_bytes: row.text.len() as u32,
            is_ascii: u32::from(row.is_ascii),
        })?;
        names::write(&mut self.names, &row.id, row.url.as_deref())?;
        self.texts.extend(row.text.as_bytes())?;
        self.starts.extend(row.cells.starts())?;
        let found = &mut self.found;
        found.n_docs += 1;
        found.n_tokens += row.tokens.len() as u64;
        found.text_bytes += row.text.len() as u64;
        found.n_short += u64::from(row.tokens.len() < config.min);
        self.tokens.push(row.tokens)
    }

    fn source(&mut self, path: &Arc<Path>) -> Result<u32, Error> {
        if let Some((last, number)) = &self.last
            && (Arc::ptr_eq(last, path) || last == path)
        {
            return Ok(*number);
        }
        let number = match self.source_numbers.get(&**path) {
            Some(number) => *number,
            None => {
                let number = self.found.sources.len() as u32;
                self.found.sources.push(InputFile::of(path)?);
                self.source_numbers.insert(path.to_path_buf(), number);
                number
            }
        };
        self.last = Some((Arc::clone(path), number));
        Ok(number)
    }

    fn skip(&mut self, warning: &Warning) -> Result<(), Error> {
        let reason = warning.reason.name().to_owned();
        *self.found.skipped.entry(reason).or_default() += 1;
        if self.found.warnings.len() < MAX_EXAMPLES && warning.is_reported() {
            self.found.warnings.push(warning.to_string());
        }
        if warning.reason == Reason::NullText {
            let source = u64::from(self.source(&warning.source)?);
            let Position { offset, inner } = warning.position;
            let end = 0;
            self.nulls.push(&NullText {
                offset,
                inner,
                end,
                source,
            })?;
        }
        Ok(())
    }

    fn finish(self) -> Result<Read, Error> {
        self.docs.finish()?;
        self.names.finish()?;
        self.tokens.finish()?;
        self.starts.finish()?;
        self.texts.finish()?;
        self.nulls.finish()?;
        Ok(self.found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_tokens_and_case_counts() {
        let (tokens, starts) = symbols("if (A) a;");
        assert_eq!(starts, [0, 3, 4, 5, 7, 8]);
        assert_ne!(tokens[2], tokens[4]);
        assert_eq!(tokens[1], fingerprint(b"("));
        let (_, starts) = symbols("東京, é!");
        assert_eq!(starts, [0, 3, 6, 8, 10]);
    }

    #[test]
    fn cells_of_ascii_text_are_those_of_any_text() {
        for text in ["", " ", "  a rose\r\n is\n\na-rose \r\n", "A.", "x\ny\r\nz"] {
            let mut starts = Vec::new();
            let push = |_, place: std::ops::Range<usize>| starts.push(place.start);
            Tokenizer::default().for_each_fingerprint(text, usize::MAX, push);
            let plain = starts.iter().map(|start| *start as u32).collect();
            assert_eq!(plain_cells(plain, text.len()), Cells::new(text, starts));
        }
    }

    #[test]
    fn digits_may_be_zeros() {
        assert_eq!(zeros("12 ½ ٣ x9"), "00 ½ 0 x0");
    }

    #[test]
    fn short_units_are_unique() {
        let text = "one two three\nhome\n";
        let (tokens, starts) = of_units(text, Unit::Line, 2, Digits::Keep);
        assert_eq!(starts, [0, 14]);
        assert_eq!(tokens[1], UNIQUE);
        assert_ne!(tokens[0], UNIQUE);
    }
}
