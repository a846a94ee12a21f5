//! Reads a part of the input into chunks of shards.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arose::rule::Criterion;
use arose_corpus::{Counts, Item, Loss, Part, Reason, Warning};
use serde_json::json;

use super::chunks::ChunkWriter;
use super::document::Docs;
use crate::Error;
use crate::config::Config;
use crate::losses::Losses;
use crate::record::{EMPTY, NullText, SHORT};
use crate::stage::row::{DocRow, Maker, ReadRow};

/// Maximum number of documents in a shard, which a step that looks up sketches has in memory.
const SHARD_DOCS: usize = 1 << 16;
/// Approximate number of tokens in a shard.
const SHARD_TOKENS: usize = 1 << 22;
/// Approximate number of tokens in a chunk. The engine copies a row many times, and a row that fits
/// into the processor cache is copied fast.
const CHUNK_TOKENS: usize = 1 << 16;
const CHUNK_DOCS: usize = 1 << 11;
/// Maximum number of shards of one part of the input.
pub(super) const MAX_SHARDS: i64 = 1 << 20;
/// Maximum number of warnings that are stored verbatim.
const MAX_WARNINGS: usize = 20;

/// Some documents of a shard, as columns of bytes or their positions.
#[derive(Debug, Clone, Default)]
pub struct Chunk {
    /// The shard, which is a part of later messages.
    pub part: i64,
    /// The position of its first document in the shard.
    pub seq: i64,
    /// Number of documents in it.
    pub n_docs: u32,
    /// Number of tokens in them.
    pub n_tokens: u64,
    /// Records and names.
    pub docs: Vec<u8>,
    /// The data from which keys are computed.
    pub sketches: Vec<u8>,
    /// Super-shingles, simhashes and sites, if sketches are something else.
    pub vectors: Vec<u8>,
    /// Tokens.
    pub tokens: Vec<u8>,
    /// Counters and warnings, in the last chunk of a part.
    pub note: Option<String>,
}

/// Reads part `number` of the input and outputs its chunks. If a directory is given, columns stay
/// there.
///
/// # Errors
///
/// If `give` returns one, or the part cannot be opened. Malformed documents are counted in the
/// note.
pub fn read_part(
    number: i64,
    part: &Part,
    config: &Config,
    folder: Option<&Path>,
    give: impl FnMut(Chunk) -> Result<(), Error>,
) -> Result<(), Error> {
    let maker = Maker::of_shards(config)?;
    let mut rows =
        arose_corpus::read_part(part, config.corpus.clone(), move |item| maker.row(item))?;
    let mut cutter = Cutter::new(number, config, folder, give)?;
    cutter.run(rows.by_ref())?;
    let range_of = part.range.as_ref().and(part.files.first());
    cutter.finish(rows.counts(), range_of.map(|file| file.path.as_path()))
}

/// Reads a file from bytes that an engine provides.
///
/// # Errors
///
/// As [`read_part`].
pub fn read_bytes(
    number: i64,
    name: &Path,
    bytes: Vec<u8>,
    config: &Config,
    folder: Option<&Path>,
    give: impl FnMut(Chunk) -> Result<(), Error>,
) -> Result<(), Error> {
    let maker = Maker::of_shards(config)?;
    let reader = std::io::Cursor::new(bytes);
    let mut items = arose_corpus::read_from(name, reader, config.corpus.clone());
    let mut cutter = Cutter::new(number, config, folder, give)?;
    cutter.run(items.by_ref().map(|item: Item| maker.row(item)))?;
    cutter.finish(items.counts(), None)
}

struct Cutter<F> {
    number: i64,
    is_jaccard: bool,
    /// The shard being filled, and its current content.
    shard: i64,
    n_docs: usize,
    n_tokens: usize,
    chunk: Chunk,
    docs: Docs,
    sources: BTreeMap<PathBuf, u32>,
    /// The last source, and its number in the chunk.
    last: Option<(Arc<Path>, u32)>,
    found: ReadCounts,
    /// Writes the columns, if chunks are not to contain them.
    file: Option<ChunkWriter>,
    give: F,
}

#[derive(Default)]
struct ReadCounts {
    n_docs: u64,
    n_tokens: u64,
    n_empty: u64,
    n_short: u64,
    text_bytes: u64,
    skipped: BTreeMap<&'static str, u64>,
    first_loss: Option<Warning>,
    warnings: Vec<String>,
}

impl<F: FnMut(Chunk) -> Result<(), Error>> Cutter<F> {
    fn new(number: i64, config: &Config, folder: Option<&Path>, give: F) -> Result<Self, Error> {
        let file = folder.map(|folder| ChunkWriter::create(folder, number));
        Ok(Self {
            number,
            is_jaccard: matches!(config.policy.criterion, Criterion::Jaccard(_)),
            shard: 0,
            n_docs: 0,
            n_tokens: 0,
            chunk: Chunk::default(),
            docs: Docs::default(),
            sources: BTreeMap::new(),
            last: None,
            found: ReadCounts::default(),
            file: file.transpose()?,
            give,
        })
    }

    fn run(&mut self, rows: impl Iterator<Item = ReadRow>) -> Result<(), Error> {
        for row in rows {
            match row {
                ReadRow::Document(row) => self.push(&row)?,
                ReadRow::Skipped(warning) => {
                    let found = &mut self.found;
                    *found.skipped.entry(warning.reason.name()).or_default() += 1;
                    if warning.loss != Loss::Nothing {
                        found.first_loss.get_or_insert_with(|| warning.clone());
                    }
                    if warning.is_reported() && found.warnings.len() < MAX_WARNINGS {
                        found.warnings.push(warning.to_string());
                    }
                    if warning.reason == Reason::NullText {
                        self.push_null(&warning)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Ends the part. If nothing of a range could be read, this does not apply to its file: the
    /// driver checks whether another range of the file could be read.
    fn finish(mut self, counts: &Counts, range_of: Option<&Path>) -> Result<(), Error> {
        let found = &self.found;
        let mut losses = Losses::from(counts);
        let mut files = std::mem::take(&mut losses.files);
        let mut unreadable = Vec::new();
        if let (Some(_), Some(first)) = (range_of, &found.first_loss) {
            // The reader counts from the start of the range.
            files
                .iter_mut()
                .for_each(|file| file.position = first.position.to_string());
            if first.reason.loss() == Loss::Record {
                std::mem::swap(&mut files, &mut unreadable);
            }
        }
        let has_record = found.n_docs > 0 || found.skipped.contains_key(Reason::NullText.name());
        let readable = range_of.filter(|_| has_record);
        let note = json!({
            "docs": found.n_docs,
            "tokens": found.n_tokens,
            "empty": found.n_empty,
            "short": found.n_short,
            "text_bytes": found.text_bytes,
            "skipped": found.skipped,
            "more_incomplete": losses.n_files - (files.len() + unreadable.len()) as u64,
            "incomplete": files,
            "unreadable": unreadable,
            "readable": Vec::from_iter(readable),
            "damaged": losses.n_records,
            "unknown": losses.unknown_files,
            "warnings": found.warnings,
        });
        self.chunk.note = Some(note.to_string());
        self.end_chunk()?;
        self.file.map_or(Ok(()), ChunkWriter::finish)
    }

    fn push(&mut self, row: &DocRow) -> Result<(), Error> {
        let source = self.source(&row.source);
        self.docs
            .push(source, &row.record, &row.name(), row.url.as_deref());
        let chunk = &mut self.chunk;
        if self.is_jaccard {
            chunk
                .sketches
                .extend_from_slice(bytemuck::bytes_of(&row.samples));
            chunk
                .vectors
                .extend_from_slice(bytemuck::bytes_of(&row.vectors));
        } else {
            chunk
                .sketches
                .extend_from_slice(bytemuck::bytes_of(&row.vectors));
        }
        chunk
            .tokens
            .extend_from_slice(bytemuck::cast_slice(&row.tokens));
        chunk.n_docs += 1;
        chunk.n_tokens += row.tokens.len() as u64;
        let found = &mut self.found;
        found.n_docs += 1;
        found.n_tokens += row.tokens.len() as u64;
        found.text_bytes += u64::from(row.record.n_bytes);
        found.n_empty += u64::from(row.record.flags & EMPTY != 0);
        found.n_short += u64::from(row.record.flags & (SHORT | EMPTY) == SHORT);
        let is_full =
            chunk.n_docs as usize >= CHUNK_DOCS || chunk.n_tokens as usize >= CHUNK_TOKENS;
        match is_full {
            true => self.end_chunk(),
            false => Ok(()),
        }
    }

    /// Returns the number of a source in the chunk.
    fn source(&mut self, path: &Arc<Path>) -> u32 {
        if let Some((last, number)) = &self.last
            && (Arc::ptr_eq(last, path) || last == path)
        {
            return *number;
        }
        let next = self.docs.sources.len() as u32;
        let number = *self.sources.entry(path.to_path_buf()).or_insert(next);
        if number == next {
            self.docs.sources.push(path.to_path_buf());
        }
        self.last = Some((Arc::clone(path), number));
        number
    }

    /// Adds a record without text, for the kept output.
    fn push_null(&mut self, warning: &Warning) -> Result<(), Error> {
        let source = self.source(&warning.source);
        self.docs.nulls.push(NullText {
            offset: warning.position.offset,
            inner: warning.position.inner,
            end: 0,
            source: source.into(),
        });
        match self.docs.nulls.len() >= CHUNK_DOCS {
            true => self.end_chunk(),
            false => Ok(()),
        }
    }

    fn end_chunk(&mut self) -> Result<(), Error> {
        let mut chunk = std::mem::take(&mut self.chunk);
        let docs = std::mem::take(&mut self.docs);
        self.sources.clear();
        self.last = None;
        chunk.docs = docs.to_bytes();
        chunk.part = self.number * MAX_SHARDS + self.shard;
        chunk.seq = self.n_docs as i64;
        self.n_docs += chunk.n_docs as usize;
        self.n_tokens += chunk.n_tokens as usize;
        if self.n_docs + CHUNK_DOCS > SHARD_DOCS || self.n_tokens >= SHARD_TOKENS {
            self.shard += 1;
            (self.n_docs, self.n_tokens) = (0, 0);
        }
        if let Some(file) = &mut self.file {
            let Chunk {
                docs,
                sketches,
                vectors,
                tokens,
                ..
            } = &mut chunk;
            for column in [docs, sketches, vectors, tokens] {
                *column = file.put(column)?;
            }
        }
        (self.give)(chunk)
    }
}
