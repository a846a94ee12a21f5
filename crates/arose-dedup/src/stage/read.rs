//! First stage: the input, once, into columns of tokens, sketches and names.
//!
//! Documents are read, tokenised and sketched on all threads and written in input order on one, so
//! ordinals and columns do not depend on the number of threads. The tokens are kept, eight bytes
//! each: verification takes exact shingles from them without reading and parsing the input again,
//! which costs three times the processor time of writing them, and an input that changes in the
//! meantime cannot spoil a verdict.
//!
//! Now and then a checkpoint is written (`checkpoint.rs`), so that a run that was killed while it
//! read goes on from there.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::num::NonZeroU16;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arose::digest::Digest;
use arose::feature::Features;
use arose::rule::{Criterion, ShortPolicy};
use arose::shingle::{Shingler, is_short};
use arose::simhash::Fingerprint384;
use arose::sketch::{NarrowMinHash, Sketcher};
use arose::token::{Tokenizer, Tokens};
use arose_corpus::{Bookmark, Document, Item, Position, Reason, Warning};
use bytemuck::Zeroable;
use serde::{Deserialize, Serialize};

use crate::column::{ListWriter, Writer};
use crate::config::{Config, Exact, Keep};
use crate::losses::Losses;
use crate::progress::InputPlace;
use crate::record::{
    ALONE, DocRecord, EMPTY, FILTERED, N_SAMPLES, NOT_FETCHED, NullText, SHORT, Samples, UNSPACED,
    Vectors,
};
use crate::scheme::Bands;
use crate::source::{Source, path_text};
use crate::stage::checkpoint::{Checkpoint, Clock, Lines, WaitingBytes};
use crate::stage::quality::{self, QualityColumn, QualityRow, QualityTally};
use crate::stage::urls::normal_url;
pub(crate) use crate::stage::urls::{host, site_digest};
use crate::work::boot;
use crate::{Error, Progress};

pub(crate) const DOCS: &str = "docs";
pub(crate) const NAMES: &str = "names";
pub(crate) const TOKENS: &str = "tokens";
pub(crate) const SAMPLES: &str = "samples";
pub(crate) const VECTORS: &str = "vectors";
pub(crate) const NULLS: &str = "nulls";
const SOURCES: &str = "sources";

/// Warnings that are kept word for word.
const MAX_EXAMPLES: usize = 20;

/// What the stage found.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Read {
    pub(crate) sources: Vec<Source>,
    pub(crate) n_docs: u64,
    pub(crate) n_tokens: u64,
    pub(crate) n_empty: u64,
    pub(crate) n_short: u64,
    /// Documents whose time is known.
    pub(crate) n_fetched: u64,
    /// Documents with a priority.
    pub(crate) n_weighted: u64,
    pub(crate) text_bytes: u64,
    /// Skipped records by reason.
    pub(crate) skipped: BTreeMap<String, u64>,
    /// The first of them, for people.
    pub(crate) warnings: Vec<String>,
    pub(crate) losses: Losses,
    /// What rules of quality reject, where it is measured.
    #[serde(default)]
    pub(crate) quality: QualityTally,
}

impl Read {
    /// Records whose text is null.
    pub(crate) fn n_null(&self) -> u64 {
        let n = self.skipped.get(Reason::NullText.name());
        n.copied().unwrap_or(0)
    }

    /// An error if no document has what the one to keep is chosen by.
    fn check_choice(&self, config: &Config) -> Result<(), Error> {
        let is_missing = |n| self.n_docs > 0 && n == 0;
        match config.keep {
            Keep::Newest if is_missing(self.n_fetched) => Err(Error::NoTime),
            Keep::Priority if is_missing(self.n_weighted) => Err(Error::NoPriority {
                fields: config.corpus.fields.priority.join(", "),
            }),
            _ => Ok(()),
        }
    }
}

/// Reads `inputs` and leaves the columns in `folder`. Directories in `skip` are not entered.
pub(crate) fn run(
    inputs: &[PathBuf],
    config: &Config,
    skip: Vec<PathBuf>,
    folder: &Path,
    progress: &Progress,
) -> Result<Read, Error> {
    let found = read(inputs, config, skip, folder, progress)?;
    found.check_choice(config)?;
    Ok(found)
}

fn read(
    inputs: &[PathBuf],
    config: &Config,
    skip: Vec<PathBuf>,
    folder: &Path,
    progress: &Progress,
) -> Result<Read, Error> {
    let maker = Maker::new(config)?;
    let mut corpus = config.corpus.clone();
    corpus.files.skip.extend(skip);
    quality::ask(config, &mut corpus);
    let checkpoint = Checkpoint::read(folder)?;
    let bookmark = checkpoint.as_ref().map(|there| there.bookmark.clone());
    let bookmark = bookmark.unwrap_or_default();
    let work = move |item| maker.row(item);
    let mut rows = arose_corpus::read_from_bookmark(inputs, corpus, &bookmark, work)?;
    let mut columns = match checkpoint {
        Some(checkpoint) => Columns::resume(folder, config, checkpoint)?,
        None => Columns::create(folder, config)?,
    };
    progress.advance(columns.n_rows)?;
    let mut place = InputPlace::default();
    let mut clock = Clock::new(config.checkpoint);
    while let Some(row) = rows.next() {
        match row {
            Row::Document(row) => {
                place.reach(&row.source, row.position, progress);
                columns.push(*row)?;
            }
            Row::Skipped(warning) => {
                place.reach(&warning.source, warning.position, progress);
                progress.skip();
                columns.skip(&warning)?;
            }
        }
        columns.n_rows += 1;
        progress.advance(1)?;
        if clock.is_due(columns.n_rows)
            && let Some(bookmark) = rows.bookmark()
        {
            columns.checkpoint(bookmark)?.write(folder)?;
            clock = Clock::new(config.checkpoint);
        }
    }
    columns.found.losses = Losses::from(rows.counts());
    columns.finish()
}

/// A document, ready to be written.
pub(crate) struct DocRow {
    pub(crate) record: DocRecord,
    id: Option<String>,
    pub(crate) url: Option<String>,
    pub(crate) source: Arc<Path>,
    position: Position,
    pub(crate) tokens: Vec<u64>,
    pub(crate) samples: Samples,
    pub(crate) vectors: Vectors,
    quality: Option<Box<QualityRow>>,
}

impl DocRow {
    /// The input's own name for it, else its file and position.
    pub(crate) fn name(&self) -> Cow<'_, str> {
        match &self.id {
            Some(id) => id.into(),
            None => format!("{}#{}", path_text(&self.source), self.position).into(),
        }
    }
}

pub(crate) enum Row {
    Document(Box<DocRow>),
    Skipped(Warning),
}

/// Makes rows on the worker threads.
pub(crate) struct Maker {
    /// Of the Jaccard policy.
    bands: Option<Bands>,
    config: Config,
    tokenizer: Tokenizer,
    spaced: Shingler,
    unspaced: Shingler,
    sketcher: NarrowMinHash,
    with_simhash: bool,
}

/// Memory that a worker uses again.
#[derive(Default)]
struct Scratch {
    shingles: Vec<u64>,
    sketch: Vec<u32>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

pub(crate) const N_FEATURE_SAMPLES: usize = Features::SIX_BY_FOURTEEN.t();

impl Maker {
    pub(crate) fn new(config: &Config) -> Result<Self, Error> {
        let (bands, n_samples) = match config.policy.criterion {
            Criterion::Jaccard(threshold) => (Some(Bands::new(config, threshold)?), N_SAMPLES),
            _ => (None, N_FEATURE_SAMPLES),
        };
        let t = NonZeroU16::new(n_samples as u16).expect("there are samples");
        Ok(Self {
            bands,
            config: config.clone(),
            tokenizer: Tokenizer::default(),
            spaced: Shingler::new(config.shingle.w),
            unspaced: Shingler::new(config.shingle.unspaced_w),
            sketcher: NarrowMinHash::new(t, config.seed),
            with_simhash: has_simhash(config),
        })
    }

    pub(crate) fn row(&self, item: Item) -> Row {
        match item {
            Item::Document(document) => Row::Document(Box::new(self.doc_row(*document))),
            Item::Skipped(warning) => Row::Skipped(warning),
        }
    }

    fn doc_row(&self, document: Document) -> DocRow {
        let tokens = tokens(&self.tokenizer, &document);
        let quality = quality::row(&self.config, &document, tokens.len());
        let mut row = DocRow {
            quality,
            record: self.record(&document, &tokens),
            id: document.id,
            source: document.source,
            position: document.position,
            samples: Samples::zeroed(),
            vectors: Vectors::zeroed(),
            url: document.url,
            tokens: tokens.fingerprints,
        };
        if let (Some(found), Some(config)) = (&row.quality, self.config.quality) {
            found.filter(config, &mut row.record, &mut row.tokens);
        }
        row.vectors.site = site_digest(row.url.as_deref(), self.config.site);
        // Under the policy content sketches need what sites repeat.
        let has_sketch = !matches!(
            self.config.policy.criterion,
            Criterion::Exact | Criterion::Content(_) | Criterion::Contained(_) | Criterion::Url
        );
        if row.record.flags & (SHORT | EMPTY) == 0 && has_sketch {
            self.sketch(&mut row);
        }
        row
    }

    fn record(&self, document: &Document, tokens: &Tokens) -> DocRecord {
        let content = document.content_digest();
        let is_url = self.config.policy.criterion == Criterion::Url;
        let Digest(digest) = match self.config.exact {
            _ if is_url => Digest::of_bytes(normal_url(document).as_bytes()),
            Exact::Text => content,
            Exact::Bytes => document.digest,
        };
        let w = self.config.shingle.of(tokens);
        // The levels of content ask for enough text themselves.
        let is_content = matches!(self.config.policy.criterion, Criterion::Content(_));
        let is_short = !is_content
            && is_short(tokens.len(), w)
            && (self.config.policy.short == ShortPolicy::ExactOnly || tokens.len() < w.get());
        let flag = |is_set: bool, flag| if is_set { flag } else { 0 };
        DocRecord {
            digest: [digest as u64, (digest >> 64) as u64],
            tokens_at: 0,
            names_at: 0,
            offset: document.position.offset,
            inner: document.position.inner,
            end: 0,
            fetched: document.fetched.unwrap_or(NOT_FETCHED),
            weight: document.priority.unwrap_or(f64::NAN),
            source: 0,
            n_tokens: u32::try_from(tokens.len()).unwrap_or(u32::MAX),
            n_bytes: u32::try_from(document.text.len()).unwrap_or(u32::MAX),
            flags: flag(is_short, SHORT)
                | flag(is_url && document.url.is_none(), ALONE)
                | flag(content == Digest::EMPTY, EMPTY)
                | flag(tokens.is_mostly_unspaced(), UNSPACED),
        }
    }

    fn sketch(&self, row: &mut DocRow) {
        let shingler = match row.record.flags & UNSPACED {
            0 => &self.spaced,
            _ => &self.unspaced,
        };
        SCRATCH.with_borrow_mut(|Scratch { shingles, sketch }| {
            shingles.clear();
            shingler.shingles_into(&row.tokens, shingles);
            self.sketcher.sketch_into(shingles, sketch);
            if let Some(bands) = &self.bands {
                row.samples = bands.keep(sketch, shingles);
            }
            let features = Features::SIX_BY_FOURTEEN.of(&sketch[..N_FEATURE_SAMPLES]);
            let features = features.expect("as many samples as features need");
            row.vectors.features.copy_from_slice(&features);
        });
        if self.with_simhash {
            let simhash = Fingerprint384::of(&row.tokens);
            row.vectors.simhash = simhash.map_or([0; 6], |simhash| simhash.0);
        }
    }
}

/// Whether the policy asks for simhashes of all documents.
pub(crate) fn has_simhash(config: &Config) -> bool {
    let criterion = config.policy.criterion;
    !matches!(
        criterion,
        Criterion::Exact
            | Criterion::Jaccard(_)
            | Criterion::Content(_)
            | Criterion::B { .. }
            | Criterion::Contained(_)
            | Criterion::Url
    )
}

/// The tokens of a document, its images among them.
#[must_use]
pub fn tokens(tokenizer: &Tokenizer, document: &Document) -> Tokens {
    let mut tokens = Tokens::default();
    let mut start = 0;
    for image in &document.images {
        let end = document.text.floor_char_boundary(image.at).max(start);
        tokens.push_text(tokenizer, &document.text[start..end]);
        tokens.push_image(&image.src);
        start = end;
    }
    tokens.push_text(tokenizer, &document.text[start..]);
    tokens
}

/// A record whose end is not known yet.
pub(crate) enum Waiting {
    Document(DocRecord),
    Null(NullText),
}

/// The columns being written.
struct Columns {
    /// Documents and skipped records so far.
    n_rows: u64,
    /// The sources in `found`, in a file that grows while they do.
    sources: Lines<Source>,
    docs: Writer<DocRecord>,
    names: Writer<u8>,
    tokens: ListWriter<u64>,
    samples: Option<Writer<Samples>>,
    vectors: Writer<Vectors>,
    quality: QualityColumn,
    /// The source of the last document, which most often is that of the next.
    last: Option<(Arc<Path>, u32)>,
    nulls: Writer<NullText>,
    /// A record that waits to be told where it ends.
    waiting: Option<Waiting>,
    source_numbers: BTreeMap<PathBuf, u32>,
    found: Read,
}

impl Columns {
    fn create(folder: &Path, config: &Config) -> Result<Self, Error> {
        let samples = match config.policy.criterion {
            Criterion::Jaccard(_) => Some(Writer::create(&folder.join(SAMPLES))?),
            _ => None,
        };
        Ok(Self {
            n_rows: 0,
            sources: Lines::create(&folder.join(SOURCES))?,
            docs: Writer::create(&folder.join(DOCS))?,
            names: Writer::create(&folder.join(NAMES))?,
            tokens: ListWriter::create(&folder.join(TOKENS))?,
            samples,
            vectors: Writer::create(&folder.join(VECTORS))?,
            quality: QualityColumn::create(folder, config)?,
            last: None,
            nulls: Writer::create(&folder.join(NULLS))?,
            waiting: None,
            source_numbers: BTreeMap::new(),
            found: Read::default(),
        })
    }

    /// Goes on where a checkpoint was written.
    fn resume(folder: &Path, config: &Config, there: Checkpoint) -> Result<Self, Error> {
        let samples = match config.policy.criterion {
            Criterion::Jaccard(_) => {
                Some(Writer::resume(&folder.join(SAMPLES), there.n_documents)?)
            }
            _ => None,
        };
        let mut found = there.found;
        let sources = Lines::resume(&folder.join(SOURCES), there.n_sources, &mut found.sources)?;
        let numbered = found.sources.iter().zip(0..);
        let last = there.last.and_then(|number| {
            let source = found.sources.get(number as usize)?;
            Some((source.path.as_path().into(), number))
        });
        Ok(Self {
            n_rows: there.n_rows,
            source_numbers: numbered
                .map(|(source, number)| (source.path.clone(), number))
                .collect(),
            sources,
            docs: Writer::resume(&folder.join(DOCS), there.n_docs)?,
            names: Writer::resume(&folder.join(NAMES), there.n_name_bytes)?,
            tokens: ListWriter::resume(&folder.join(TOKENS), found.n_tokens)?,
            samples,
            vectors: Writer::resume(&folder.join(VECTORS), there.n_documents)?,
            quality: QualityColumn::resume(folder, config, there.n_documents)?,
            last,
            nulls: Writer::resume(&folder.join(NULLS), there.n_nulls)?,
            waiting: there.waiting.and_then(|bytes| bytes.record()),
            found,
        })
    }

    /// Hands all that was written to the system and says how to go on from there.
    fn checkpoint(&mut self, bookmark: Bookmark) -> Result<Checkpoint, Error> {
        self.sources.flush()?;
        self.docs.flush()?;
        self.names.flush()?;
        self.tokens.flush()?;
        self.vectors.flush()?;
        self.nulls.flush()?;
        if let Some(samples) = &mut self.samples {
            samples.flush()?;
        }
        self.quality.flush()?;
        // They are in a file of their own: there may be millions.
        let sources = std::mem::take(&mut self.found.sources);
        let found = self.found.clone();
        self.found.sources = sources;
        Ok(Checkpoint {
            boot: boot(),
            bookmark,
            n_rows: self.n_rows,
            n_documents: self.vectors.len(),
            n_docs: self.docs.len(),
            n_name_bytes: self.names.len(),
            n_nulls: self.nulls.len(),
            n_sources: self.found.sources.len() as u64,
            last: self.last.as_ref().map(|(_, number)| *number),
            waiting: self.waiting.as_ref().map(WaitingBytes::from),
            found,
        })
    }

    fn push(&mut self, row: DocRow) -> Result<(), Error> {
        if self.docs.len() == u64::from(u32::MAX) - 1 {
            return Err(Error::TooManyDocuments);
        }
        self.end_waiting(&row.source, row.position)?;
        let record = DocRecord {
            tokens_at: self.tokens.len(),
            names_at: self.names.len(),
            source: self.source(&row.source)?,
            ..row.record
        };
        self.waiting = Some(Waiting::Document(record));
        self.vectors.push(&row.vectors)?;
        if let Some(samples) = &mut self.samples {
            samples.push(&row.samples)?;
        }
        if let Some(quality) = &row.quality {
            self.quality.push(quality)?;
            self.found.quality.add(quality, &row.name());
        }
        self.push_names(&row)?;
        let found = &mut self.found;
        found.n_docs += 1;
        found.n_tokens += row.tokens.len() as u64;
        found.text_bytes += u64::from(record.n_bytes);
        found.n_empty += u64::from(record.flags & (EMPTY | FILTERED) == EMPTY);
        found.quality.filtered += u64::from(record.flags & FILTERED != 0);
        found.n_fetched += u64::from(record.fetched != NOT_FETCHED);
        found.n_weighted += u64::from(!record.weight.is_nan());
        found.n_short += u64::from(record.flags & (SHORT | EMPTY) == SHORT);
        self.tokens.push(row.tokens)
    }

    /// Says of the record before where the next record, at this place, begins.
    fn end_waiting(&mut self, source: &Arc<Path>, position: Position) -> Result<(), Error> {
        let Some(waiting) = self.waiting.take() else {
            return Ok(());
        };
        let is_same = self.last.as_ref().is_some_and(|(last, _)| last == source);
        let number = match &waiting {
            Waiting::Document(record) => record.source as usize,
            Waiting::Null(record) => record.source as usize,
        };
        let n_bytes = self.found.sources[number].n_bytes;
        let end = if is_same { position.offset } else { n_bytes };
        match waiting {
            Waiting::Document(record) => self.docs.push(&DocRecord { end, ..record }),
            Waiting::Null(record) => self.nulls.push(&NullText { end, ..record }),
        }
    }

    /// Two lengths, then the bytes of id and address; an address that is missing has length
    /// `u32::MAX`.
    fn push_names(&mut self, row: &DocRow) -> Result<(), Error> {
        let id = row.name();
        let n_url = row.url.as_ref().map_or(u32::MAX, |url| url.len() as u32);
        self.names.extend(&(id.len() as u32).to_le_bytes())?;
        self.names.extend(&n_url.to_le_bytes())?;
        self.names.extend(id.as_bytes())?;
        self.names
            .extend(row.url.as_deref().unwrap_or_default().as_bytes())
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
                let source = Source::of(path)?;
                self.sources.push(&source)?;
                self.found.sources.push(source);
                self.source_numbers.insert(path.to_path_buf(), number);
                number
            }
        };
        self.last = Some((Arc::clone(path), number));
        Ok(number)
    }

    fn skip(&mut self, warning: &Warning) -> Result<(), Error> {
        self.end_waiting(&warning.source, warning.position)?;
        let reason = warning.reason.name().to_owned();
        *self.found.skipped.entry(reason).or_default() += 1;
        if self.found.warnings.len() < MAX_EXAMPLES && warning.is_reported() {
            self.found.warnings.push(warning.to_string());
        }
        if warning.reason == Reason::NullText {
            let Position { offset, inner } = warning.position;
            let source = u64::from(self.source(&warning.source)?);
            self.waiting = Some(Waiting::Null(NullText {
                offset,
                inner,
                end: 0,
                source,
            }));
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Read, Error> {
        self.end_waiting(&Path::new("").into(), Position::default())?;
        self.sources.flush()?;
        self.docs.finish()?;
        self.nulls.finish()?;
        self.names.finish()?;
        self.tokens.finish()?;
        self.vectors.finish()?;
        if let Some(samples) = self.samples {
            samples.finish()?;
        }
        self.quality.finish()?;
        Ok(self.found)
    }
}
