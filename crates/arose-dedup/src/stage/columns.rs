//! The columns that the first stage writes, and how it resumes them after a kill.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arose::rule::Criterion;
use arose_corpus::{Bookmark, Position, Reason, Warning};

use crate::Error;
use crate::background::Background;
use crate::column::Writer;
use crate::config::Config;
use crate::dictionary::TokenWriter;
use crate::names;
use crate::record::{
    DocRecord, EMPTY, FILTERED, NOT_FETCHED, NOT_STORED, NullText, SHORT, SUPERSEDED, Samples,
    Vectors,
};
use crate::scheme::{Bands, KeyTables};
use crate::source::InputFile;
use crate::stage::checkpoint::{Checkpoint, Lines, WaitingBytes};
use crate::stage::keys::KeyWriter;
use crate::stage::quality::QualityColumn;
use crate::stage::read::Read;
use crate::stage::row::DocRow;
use crate::work::boot;

pub(crate) const DOCS: &str = "docs";
pub(crate) const NAMES: &str = "names";
/// Stored sketches of the policy `jaccard`.
pub(crate) const SAMPLES: &str = "samples";
/// Super-shingles of the same documents.
pub(crate) const FEATURES: &str = "features";
/// Sketches and sites of all documents for the other policies.
pub(crate) const VECTORS: &str = "vectors";
/// Sites of all documents for the policy `content`, which computes sketches later.
pub(crate) const SITES: &str = "sites";
pub(crate) const NULLS: &str = "nulls";
const SOURCES: &str = "sources";

/// Maximum number of warnings that are stored with their text.
const MAX_EXAMPLES: usize = 20;

/// A record whose end is not known yet.
pub(crate) enum Waiting {
    Document(DocRecord),
    Null(NullText),
}

/// The columns being written.
pub(crate) struct Columns {
    /// Number of documents and skipped records so far.
    pub(crate) n_rows: u64,
    /// The sources in `found`, in a file that grows with them.
    sources: Lines<InputFile>,
    docs: Writer<DocRecord>,
    names: Writer<u8>,
    tokens: TokenWriter,
    sketches: Sketches,
    quality: QualityColumn,
    /// The source of the last document, which is usually that of the next.
    last: Option<(Arc<Path>, u32)>,
    nulls: Writer<NullText>,
    /// A record whose end is set when the next record starts.
    waiting: Option<Waiting>,
    source_numbers: BTreeMap<PathBuf, u32>,
    pub(crate) found: Read,
    spent: Spent,
}

/// A row as the worker threads send it.
type BoxedRow = Box<DocRow>;

/// Rows that were written. Worker threads have allocated them, and it takes a tenth of the time of
/// the thread that writes to give their memory back, so another thread does it.
struct Spent {
    rows: Vec<BoxedRow>,
    n_tokens: usize,
    background: Option<Arc<Background>>,
}

impl Spent {
    /// Number of rows whose memory is given back together.
    const N_ROWS: usize = 256;
    /// Maximum number of tokens of these. A row with more is not worth waiting for.
    const N_TOKENS: usize = 1 << 14;

    fn new(background: Option<&Arc<Background>>) -> Self {
        Self {
            rows: Vec::new(),
            n_tokens: 0,
            background: background.cloned(),
        }
    }

    fn push(&mut self, row: BoxedRow) {
        let n_tokens = row.tokens.len();
        let Some(background) = &self.background else {
            return;
        };
        if n_tokens >= Self::N_TOKENS {
            return;
        }
        self.n_tokens += n_tokens;
        self.rows.push(row);
        if self.rows.len() >= Self::N_ROWS || self.n_tokens >= Self::N_TOKENS {
            self.n_tokens = 0;
            let rows = std::mem::take(&mut self.rows);
            // If the thread has ended, the next write says so.
            let _ = background.run(move || drop(rows));
        }
    }
}

/// Sketches being written.
enum Sketches {
    /// Keys of all documents that may have near duplicates, and sketches of some, by their position
    /// in the record.
    Samples {
        keys: KeyWriter,
        samples: Writer<Samples>,
        features: Writer<[u64; 6]>,
    },
    /// Of all documents.
    Vectors(Writer<Vectors>),
    /// The sites alone.
    Sites(Writer<u64>),
}

impl Sketches {
    fn create(
        background: Option<&Arc<Background>>,
        folder: &Path,
        config: &Config,
    ) -> Result<Self, Error> {
        Ok(match config.policy.criterion {
            Criterion::Jaccard(threshold) => {
                let n_tables = Bands::new(config, threshold)?.n_tables();
                Self::Samples {
                    keys: KeyWriter::create(background, folder, 0..n_tables)?,
                    samples: Writer::create_on(background, &folder.join(SAMPLES))?,
                    features: Writer::create_on(background, &folder.join(FEATURES))?,
                }
            }
            Criterion::Content(_) => {
                Self::Sites(Writer::create_on(background, &folder.join(SITES))?)
            }
            _ => Self::Vectors(Writer::create_on(background, &folder.join(VECTORS))?),
        })
    }

    /// Resumes after the sketches and keys at a checkpoint.
    fn resume(
        background: Option<&Arc<Background>>,
        folder: &Path,
        config: &Config,
        there: &Checkpoint,
    ) -> Result<Self, Error> {
        let n_sketches = there.n_sketches;
        Ok(match config.policy.criterion {
            Criterion::Jaccard(threshold) => {
                let n_tables = Bands::new(config, threshold)?.n_tables();
                Self::Samples {
                    keys: KeyWriter::resume(background, folder, n_tables, there.n_keyed)?,
                    samples: Writer::resume_on(background, &folder.join(SAMPLES), n_sketches)?,
                    features: Writer::resume_on(background, &folder.join(FEATURES), n_sketches)?,
                }
            }
            Criterion::Content(_) => {
                let path = folder.join(SITES);
                Self::Sites(Writer::resume_on(background, &path, n_sketches)?)
            }
            _ => {
                let path = folder.join(VECTORS);
                Self::Vectors(Writer::resume_on(background, &path, n_sketches)?)
            }
        })
    }

    fn len(&self) -> u64 {
        match self {
            Self::Samples { samples, .. } => samples.len(),
            Self::Vectors(vectors) => vectors.len(),
            Self::Sites(sites) => sites.len(),
        }
    }

    /// Returns the number of documents with keys.
    fn n_keyed(&self) -> u64 {
        match self {
            Self::Samples { keys, .. } => keys.len(),
            Self::Vectors(_) | Self::Sites(_) => 0,
        }
    }

    /// Writes the sketch of a row if it is stored, and returns its position.
    fn push(&mut self, row: &DocRow) -> Result<u32, Error> {
        let place = self.len() as u32;
        match self {
            Self::Samples {
                keys,
                samples,
                features,
            } => {
                keys.push(&row.keys)?;
                if row.record.sketch_at == NOT_STORED {
                    return Ok(NOT_STORED);
                }
                samples.push(&row.samples)?;
                features.push(&row.vectors.features)?;
            }
            Self::Vectors(vectors) => vectors.push(&row.vectors)?,
            Self::Sites(sites) => sites.push(&row.vectors.site)?,
        }
        Ok(place)
    }

    fn flush(&mut self) -> Result<(), Error> {
        match self {
            Self::Samples {
                keys,
                samples,
                features,
            } => {
                keys.flush()?;
                samples.flush()?;
                features.flush()
            }
            Self::Vectors(vectors) => vectors.flush(),
            Self::Sites(sites) => sites.flush(),
        }
    }
}

impl Columns {
    pub(crate) fn create(folder: &Path, config: &Config) -> Result<Self, Error> {
        let background = Background::start();
        let background = background.as_ref();
        Ok(Self {
            n_rows: 0,
            sources: Lines::create(&folder.join(SOURCES))?,
            docs: Writer::create_on(background, &folder.join(DOCS))?,
            names: Writer::create_on(background, &folder.join(NAMES))?,
            tokens: TokenWriter::create(background, folder)?,
            sketches: Sketches::create(background, folder, config)?,
            quality: QualityColumn::create(folder, config)?,
            last: None,
            nulls: Writer::create(&folder.join(NULLS))?,
            waiting: None,
            source_numbers: BTreeMap::new(),
            found: Read::default(),
            spent: Spent::new(background),
        })
    }

    /// Resumes from a checkpoint.
    pub(crate) fn resume(folder: &Path, config: &Config, there: Checkpoint) -> Result<Self, Error> {
        let background = Background::start();
        let background = background.as_ref();
        let sketches = Sketches::resume(background, folder, config, &there)?;
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
            docs: Writer::resume_on(background, &folder.join(DOCS), there.n_docs)?,
            names: Writer::resume_on(background, &folder.join(NAMES), there.n_name_bytes)?,
            tokens: TokenWriter::resume(background, folder, there.tokens)?,
            sketches,
            quality: QualityColumn::resume(folder, config, there.n_documents)?,
            last,
            nulls: Writer::resume(&folder.join(NULLS), there.n_nulls)?,
            waiting: there.waiting.and_then(|bytes| bytes.record()),
            found,
            spent: Spent::new(background),
        })
    }

    /// Passes all data to the operating system and returns the state from which to resume.
    pub(crate) fn checkpoint(&mut self, bookmark: Bookmark) -> Result<Checkpoint, Error> {
        self.sources.flush()?;
        self.docs.flush()?;
        self.names.flush()?;
        self.sketches.flush()?;
        self.nulls.flush()?;
        self.quality.flush()?;
        // They have a file of their own because there may be millions.
        let sources = std::mem::take(&mut self.found.sources);
        let found = self.found.clone();
        self.found.sources = sources;
        Ok(Checkpoint {
            boot: boot(),
            bookmark,
            n_rows: self.n_rows,
            n_documents: self.found.n_docs,
            n_docs: self.docs.len(),
            tokens: self.tokens.flush()?,
            n_sketches: self.sketches.len(),
            n_keyed: self.sketches.n_keyed(),
            n_name_bytes: self.names.len(),
            n_nulls: self.nulls.len(),
            n_sources: self.found.sources.len() as u64,
            last: self.last.as_ref().map(|(_, number)| *number),
            waiting: self.waiting.as_ref().map(WaitingBytes::from),
            found,
        })
    }

    pub(crate) fn push(&mut self, row: BoxedRow) -> Result<(), Error> {
        if self.docs.len() == u64::from(u32::MAX) - 1 {
            return Err(Error::TooManyDocuments);
        }
        self.end_waiting(&row.source, row.position)?;
        let tokens = self.tokens.push(&row.tokens)?;
        let record = DocRecord {
            tokens_at: tokens.at,
            n_literals: tokens.n_literals,
            dictionary: tokens.dictionary,
            names_at: self.names.len(),
            source: self.source(&row.source)?,
            sketch_at: self.sketches.push(&row)?,
            ..row.record
        };
        self.waiting = Some(Waiting::Document(record));
        if let Some(quality) = &row.quality {
            self.quality.push(quality)?;
            self.found.quality.add(quality, &row.name());
        }
        names::write(&mut self.names, &row.name(), row.url.as_deref())?;
        let found = &mut self.found;
        found.n_docs += 1;
        found.n_tokens += row.tokens.len() as u64;
        found.text_bytes += u64::from(record.n_bytes);
        let is_left_out = record.flags & (FILTERED | SUPERSEDED) != 0;
        found.n_empty += u64::from(record.flags & EMPTY != 0 && !is_left_out);
        found.quality.filtered += u64::from(record.flags & FILTERED != 0);
        found.n_fetched += u64::from(record.fetched != NOT_FETCHED);
        found.n_weighted += u64::from(!record.weight.is_nan());
        found.n_short += u64::from(record.flags & (SHORT | EMPTY) == SHORT);
        self.spent.push(row);
        Ok(())
    }

    /// Sets the end of the previous record to the start of the next record.
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
                let source = InputFile::of(path)?;
                self.sources.push(&source)?;
                self.found.sources.push(source);
                self.source_numbers.insert(path.to_path_buf(), number);
                number
            }
        };
        self.last = Some((Arc::clone(path), number));
        Ok(number)
    }

    pub(crate) fn skip(&mut self, warning: &Warning) -> Result<(), Error> {
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

    pub(crate) fn finish(mut self) -> Result<Read, Error> {
        self.end_waiting(&Path::new("").into(), Position::default())?;
        self.sources.flush()?;
        self.docs.finish()?;
        self.nulls.finish()?;
        self.names.finish()?;
        self.tokens.finish()?;
        self.sketches.flush()?;
        self.quality.finish()?;
        Ok(self.found)
    }
}
