//! The columns written by the first stage: tokens, the starts of their cells, and the texts.

use std::ops::Range;
use std::path::{Path, PathBuf};

use arose::passage::Cells;
use bytemuck::{Pod, Zeroable};

use crate::column::{Ahead, Column, Scan};
use crate::{Error, Progress};

pub(crate) const DOCS: &str = "docs";
pub(crate) const TOKENS: &str = "tokens";
pub(crate) const STARTS: &str = "starts";
pub(crate) const TEXTS: &str = "texts";

/// The data of a document that every stage needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct TextRecord {
    /// Its first token in the file of tokens.
    pub(crate) tokens_at: u64,
    /// Its first byte in the file of texts.
    pub(crate) text_at: u64,
    /// Its position in its source.
    pub(crate) offset: u64,
    pub(crate) inner: u64,
    pub(crate) source: u32,
    pub(crate) n_tokens: u32,
    pub(crate) n_bytes: u32,
    /// Whether its text is ASCII, so that bytes are characters.
    pub(crate) is_ascii: u32,
}

/// The columns of all documents.
#[derive(Debug, Clone)]
pub(crate) struct Texts {
    folder: PathBuf,
}

/// Maximum memory for the records of documents, in bytes. If they take more, they are read when
/// needed.
const DOCS_ALLOWANCE: u64 = 4 << 20;

/// Maximum number of documents in one batch.
const MAX_BATCH: usize = 1 << 12;

impl Texts {
    pub(crate) fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
        }
    }

    pub(crate) fn path(&self, column: &str) -> PathBuf {
        self.folder.join(column)
    }

    pub(crate) fn docs(&self) -> Result<Scan<TextRecord>, Error> {
        Scan::open(&self.path(DOCS))
    }

    /// Returns the total number of tokens.
    pub(crate) fn n_tokens(&self) -> Result<u64, Error> {
        Ok(Scan::<u64>::open(&self.path(TOKENS))?.left())
    }

    /// Calls `take` for one batch after the other, with the numbers and tokens of its documents.
    pub(crate) fn batches(
        &self,
        max_tokens: u64,
        progress: &Progress,
        mut take: impl FnMut(&[(u32, &[u64])]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut docs = self.docs()?;
        let column = Column::<u64>::open(&self.path(TOKENS), 0)?;
        progress.expect(docs.left());
        // The tokens of a batch follow each other in the file.
        let (mut tokens, mut tokens_at) = (Vec::new(), 0);
        let mut doc = 0;
        loop {
            let (mut lengths, mut n_tokens) = (Vec::new(), 0);
            while n_tokens < max_tokens
                && lengths.len() < MAX_BATCH
                && let Some(record) = docs.next()?
            {
                lengths.push(record.n_tokens as usize);
                n_tokens += u64::from(record.n_tokens);
            }
            tokens.resize(n_tokens as usize, 0);
            column.read_into(tokens_at, &mut tokens)?;
            tokens_at += n_tokens;
            let mut rest = &tokens[..];
            let mut batch = Vec::with_capacity(lengths.len());
            for n in lengths {
                let (own, after) = rest.split_at(n);
                batch.push((doc, own));
                rest = after;
                doc += 1;
            }
            take(&batch)?;
            progress.advance(batch.len() as u64)?;
            if batch.is_empty() {
                return Ok(());
            }
        }
    }

    pub(crate) fn parts(&self) -> Result<PartReader, Error> {
        Ok(PartReader {
            docs: Column::open(&self.path(DOCS), DOCS_ALLOWANCE)?,
            tokens: Ahead::open(&self.path(TOKENS))?,
            texts: Ahead::open(&self.path(TEXTS))?,
        })
    }

    pub(crate) fn reader(&self) -> Result<TextReader, Error> {
        Ok(TextReader {
            docs: Column::open(&self.path(DOCS), DOCS_ALLOWANCE)?,
            tokens: Column::open(&self.path(TOKENS), 0)?,
            tokens_ahead: Ahead::open(&self.path(TOKENS))?,
            starts: Ahead::open(&self.path(STARTS))?,
            texts: Column::open(&self.path(TEXTS), 0)?,
        })
    }
}

/// Reads documents by number. Those in order need few reads of the files.
pub(crate) struct TextReader {
    docs: Column<TextRecord>,
    tokens: Column<u64>,
    tokens_ahead: Ahead<u64>,
    starts: Ahead<u32>,
    texts: Column<u8>,
}

impl TextReader {
    pub(crate) fn record(&self, doc: u32) -> Result<TextRecord, Error> {
        self.docs.get(doc)
    }

    /// Returns the tokens of a document. Those of the last document are not read again.
    pub(crate) fn tokens(&mut self, doc: u32) -> Result<&[u64], Error> {
        let record = self.docs.get(doc)?;
        self.tokens_ahead
            .get(record.tokens_at, record.n_tokens as usize)
    }

    /// Returns a range of tokens of a document.
    pub(crate) fn some_tokens(&self, doc: u32, start: u32, out: &mut [u64]) -> Result<(), Error> {
        let record = self.docs.get(doc)?;
        self.tokens
            .read_into(record.tokens_at + u64::from(start), out)
    }

    /// Returns tokens by their number in the file of tokens.
    pub(crate) fn tokens_at(&self, start: u64, out: &mut [u64]) -> Result<(), Error> {
        self.tokens.read_into(start, out)
    }

    pub(crate) fn cells(&mut self, record: &TextRecord) -> Result<Cells, Error> {
        let starts = self.starts(record)?.to_vec();
        Ok(Cells::from_starts(starts, record.n_bytes))
    }

    /// Returns the starts of the cells of a document.
    fn starts(&mut self, record: &TextRecord) -> Result<&[u32], Error> {
        self.starts.get(record.tokens_at, record.n_tokens as usize)
    }

    pub(crate) fn text(&self, record: &TextRecord) -> Result<String, Error> {
        let mut bytes = vec![0; record.n_bytes as usize];
        self.texts.read_into(record.text_at, &mut bytes)?;
        Ok(valid(bytes))
    }

    /// Puts the bytes of a text into `out`.
    fn text_into(&self, record: &TextRecord, out: &mut Vec<u8>) -> Result<(), Error> {
        out.resize(record.n_bytes as usize, 0);
        self.texts.read_into(record.text_at, out)
    }

    /// Returns the bytes of the cells of a range of tokens.
    pub(crate) fn bytes(&mut self, doc: u32, tokens: Range<u32>) -> Result<Range<u32>, Error> {
        let record = self.docs.get(doc)?;
        let mut start = |token: u32| {
            if token >= record.n_tokens {
                return Ok(record.n_bytes);
            }
            let at = record.tokens_at + u64::from(token);
            Ok::<u32, Error>(self.starts.get(at, 1)?[0])
        };
        Ok(start(tokens.start)?..start(tokens.end)?)
    }
}

/// Reads parts of documents, mostly in the order of their places.
pub(crate) struct PartReader {
    docs: Column<TextRecord>,
    tokens: Ahead<u64>,
    texts: Ahead<u8>,
}

impl PartReader {
    /// Returns a range of tokens of a document.
    pub(crate) fn tokens(&mut self, doc: u32, range: Range<u32>) -> Result<&[u64], Error> {
        let start = self.docs.get(doc)?.tokens_at + u64::from(range.start);
        self.tokens.get(start, range.len())
    }

    /// Returns the first characters of a byte range of a text, without surrounding whitespace.
    pub(crate) fn shown(
        &mut self,
        doc: u32,
        [start, end]: [u32; 2],
        n_chars: usize,
    ) -> Result<String, Error> {
        let record = self.docs.get(doc)?;
        let n = (end - start).min(4 * n_chars as u32 + 64);
        let n = n.min(record.n_bytes.saturating_sub(start));
        let bytes = self
            .texts
            .get(record.text_at + u64::from(start), n as usize)?;
        // Up to the last complete character.
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
        };
        let text = text.trim();
        let end = text
            .char_indices()
            .nth(n_chars)
            .map_or(text.len(), |(at, _)| at);
        Ok(text[..end].to_owned())
    }
}

/// Finds bytes and characters of tokens. Reuses the data of the last document.
pub(crate) struct Places {
    reader: TextReader,
    doc: Option<u32>,
    starts: Vec<u32>,
    text: Vec<u8>,
    /// Number of characters before each block of the text; none if the text is ASCII.
    chars: Vec<u32>,
}

/// Number of bytes between two counts of characters.
const BLOCK: usize = 256;

impl Places {
    pub(crate) fn new(reader: TextReader) -> Self {
        Self {
            reader,
            doc: None,
            starts: Vec::new(),
            text: Vec::new(),
            chars: Vec::new(),
        }
    }

    /// Returns the bytes and characters of a range of tokens.
    pub(crate) fn of(&mut self, doc: u32, tokens: Range<u32>) -> Result<[[u32; 2]; 2], Error> {
        if self.doc != Some(doc) {
            self.open(doc)?;
        }
        let bytes = [tokens.start, tokens.end].map(|token| self.starts[token as usize]);
        if self.chars.is_empty() {
            return Ok([bytes, bytes]);
        }
        let chars = bytes.map(|byte| {
            let (block, within) = (byte as usize / BLOCK, byte as usize % BLOCK);
            self.chars[block] + n_chars(&self.text[block * BLOCK..][..within])
        });
        Ok([bytes, chars])
    }

    fn open(&mut self, doc: u32) -> Result<(), Error> {
        let record = self.reader.record(doc)?;
        self.starts.clear();
        self.starts.extend_from_slice(self.reader.starts(&record)?);
        self.starts.push(record.n_bytes);
        self.chars.clear();
        if record.is_ascii == 0 {
            self.reader.text_into(&record, &mut self.text)?;
            let mut n = 0;
            self.chars.push(n);
            for block in self.text.chunks(BLOCK) {
                n += n_chars(block);
                self.chars.push(n);
            }
        }
        self.doc = Some(doc);
        Ok(())
    }
}

/// Returns the number of characters that begin in a byte range.
fn n_chars(bytes: &[u8]) -> u32 {
    // A count of 128 fits into a byte, so that many bytes are counted at once.
    let n_starts = |bytes: &[u8]| {
        let starts = bytes.iter().map(|byte| u8::from((*byte as i8) >= -64));
        u32::from(starts.sum::<u8>())
    };
    bytes.chunks(128).map(n_starts).sum()
}

fn valid(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}
