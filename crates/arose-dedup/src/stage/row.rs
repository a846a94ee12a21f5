//! Rows of the columns, computed from documents on the worker threads.

use std::borrow::Cow;
use std::cell::RefCell;
use std::num::NonZeroU16;
use std::path::Path;
use std::sync::Arc;

use arose::digest::Digest;
use arose::feature::Features;
use arose::rule::{Criterion, ShortPolicy};
use arose::shingle::{Shingler, is_short};
use arose::simhash::Fingerprint384;
use arose::sketch::{NarrowMinHash, Sketcher};
use arose::token::{Tokenizer, Tokens};
use arose_corpus::{Document, Item, Position, Warning};
use bytemuck::Zeroable;

use crate::Error;
use crate::config::{Config, Exact};
use crate::record::{
    ALONE, DocRecord, EMPTY, FILTERED, N_SAMPLES, NOT_FETCHED, NOT_STORED, SHORT, Samples,
    UNSPACED, Vectors, mode_flags,
};
use crate::scheme::Bands;
use crate::source::path_text;
use crate::stage::keys::{Key, packed};
use crate::stage::quality::{self, QualityRow};
use crate::stage::urls::{normal_url, site_digest};

/// Sketches of documents with fewer tokens are computed again when needed, because they would take
/// more space than the tokens.
pub(crate) const STORED_TOKENS: usize = 192;

/// A document, ready to be written.
pub(crate) struct DocRow {
    pub(crate) record: DocRecord,
    pub(super) id: Option<String>,
    pub(crate) url: Option<String>,
    pub(crate) source: Arc<Path>,
    pub(super) position: Position,
    pub(crate) tokens: Vec<u64>,
    /// Keys in all tables, for the policy `jaccard`; none if the document has no sketch.
    pub(super) keys: Vec<Key>,
    /// The stored part of the sketch; zero if there is none.
    pub(crate) samples: Samples,
    pub(crate) vectors: Vectors,
    pub(super) quality: Option<Box<QualityRow>>,
}

impl DocRow {
    /// Excludes the document from the rest of the run and sets this flag as the reason. Without
    /// tokens it is treated like an empty document, which is never a duplicate.
    pub(crate) fn leave_out(&mut self, flag: u16) {
        self.tokens = Vec::new();
        self.keys = Vec::new();
        self.samples = Samples::zeroed();
        self.vectors = Vectors {
            site: self.vectors.site,
            ..Vectors::zeroed()
        };
        let record = &mut self.record;
        record.n_tokens = 0;
        record.sketch_at = NOT_STORED;
        record.flags = record.flags & !FILTERED | flag | EMPTY | ALONE;
    }

    /// The name in the input, or else the file and position.
    pub(crate) fn name(&self) -> Cow<'_, str> {
        match &self.id {
            Some(id) => id.into(),
            None => format!("{}#{}", path_text(&self.source), self.position).into(),
        }
    }
}

pub(crate) enum ReadRow {
    Document(Box<DocRow>),
    Skipped(Warning),
}

/// Computes rows on the worker threads.
pub(crate) struct Maker {
    config: Config,
    tokenizer: Tokenizer,
    sketches: SketchMaker,
    /// Documents with fewer tokens have keys, but no sketch.
    stored_tokens: usize,
    with_simhash: bool,
    /// Whether the sites of documents are needed.
    with_site: bool,
}

impl Maker {
    /// Rows of a run, which computes sketches of short documents again when needed.
    pub(crate) fn new(config: &Config) -> Result<Self, Error> {
        // The policy `jaccard` writes neither all sketches nor sites.
        let is_jaccard = matches!(config.policy.criterion, Criterion::Jaccard(_));
        Ok(Self {
            stored_tokens: if is_jaccard { STORED_TOKENS } else { 0 },
            with_site: !is_jaccard,
            ..Self::of_shards(config)?
        })
    }

    /// Rows with all sketches.
    pub(crate) fn of_shards(config: &Config) -> Result<Self, Error> {
        Ok(Self {
            config: config.clone(),
            tokenizer: Tokenizer::default(),
            sketches: SketchMaker::new(config)?,
            stored_tokens: 0,
            with_simhash: has_simhash(config),
            with_site: true,
        })
    }

    pub(crate) fn row(&self, item: Item) -> ReadRow {
        match item {
            Item::Document(document) => ReadRow::Document(Box::new(self.doc_row(*document))),
            Item::Skipped(warning) => ReadRow::Skipped(warning),
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
            keys: Vec::new(),
            samples: Samples::zeroed(),
            vectors: Vectors::zeroed(),
            url: document.url,
            tokens: tokens.fingerprints,
        };
        if let (Some(found), Some(config)) = (&row.quality, self.config.quality) {
            found.filter(config, &mut row.record, &mut row.tokens);
        }
        if self.with_site {
            row.vectors.site = site_digest(row.url.as_deref(), self.config.site);
        }
        // Sketches of the policy `content` need the counts of repeated text.
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
        // The levels of the policy `content` require enough text themselves.
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
            n_literals: 0,
            sketch_at: NOT_STORED,
            dictionary: 0,
            flags: flag(is_short, SHORT)
                | flag(is_url && document.url.is_none(), ALONE)
                | flag(content == Digest::EMPTY, EMPTY)
                | flag(tokens.is_mostly_unspaced(), UNSPACED)
                | mode_flags(document.page.as_ref().and_then(|page| page.mode)),
        }
    }

    fn sketch(&self, row: &mut DocRow) {
        let DocRow {
            record,
            tokens,
            keys,
            samples,
            vectors,
            ..
        } = row;
        let is_stored = tokens.len() >= self.stored_tokens;
        self.sketches
            .with(tokens, record.flags, |sketch, shingles| {
                if let Some(bands) = &self.sketches.bands {
                    keys.extend(bands.keys(sketch).map(packed));
                    if is_stored {
                        *samples = bands.keep(sketch, shingles);
                    }
                }
                if is_stored {
                    vectors.features = features(sketch);
                    // The position is not known yet.
                    record.sketch_at = 0;
                }
            });
        if self.with_simhash {
            let simhash = Fingerprint384::of(tokens);
            vectors.simhash = simhash.map_or([0; 6], |simhash| simhash.0);
        }
    }
}

/// Computes sketches of tokens, always the same.
pub(crate) struct SketchMaker {
    /// Of the policy `jaccard`.
    bands: Option<Bands>,
    spaced: Shingler,
    unspaced: Shingler,
    sketcher: NarrowMinHash,
}

/// Memory that a worker reuses.
#[derive(Default)]
struct Scratch {
    shingles: Vec<u64>,
    sketch: Vec<u32>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

const N_FEATURE_SAMPLES: usize = Features::SIX_BY_FOURTEEN.t();

impl SketchMaker {
    pub(crate) fn new(config: &Config) -> Result<Self, Error> {
        let (bands, n_samples) = match config.policy.criterion {
            Criterion::Jaccard(threshold) => (Some(Bands::new(config, threshold)?), N_SAMPLES),
            _ => (None, N_FEATURE_SAMPLES),
        };
        let t = NonZeroU16::new(n_samples as u16).expect("there are samples");
        Ok(Self {
            bands,
            spaced: Shingler::new(config.shingle.w),
            unspaced: Shingler::new(config.shingle.unspaced_w),
            sketcher: NarrowMinHash::new(t, config.seed),
        })
    }

    /// Returns the stored part of the sketch of a document.
    pub(crate) fn samples(&self, tokens: &[u64], flags: u16) -> Samples {
        self.with(tokens, flags, |sketch, shingles| {
            let bands = self.bands.as_ref();
            bands.map_or_else(Samples::zeroed, |bands| bands.keep(sketch, shingles))
        })
    }

    /// Returns the super-shingles of a document.
    pub(crate) fn features(&self, tokens: &[u64], flags: u16) -> [u64; 6] {
        self.with(tokens, flags, |sketch, _| features(sketch))
    }

    /// Returns the super-shingles of a document, given its shingles.
    pub(crate) fn features_of(&self, shingles: &[u64]) -> [u64; 6] {
        SCRATCH.with_borrow_mut(|Scratch { sketch, .. }| {
            self.sketcher.sketch_into(shingles, sketch);
            features(sketch)
        })
    }

    /// Calls `take` with the sketch and the shingles of a document.
    fn with<R>(&self, tokens: &[u64], flags: u16, take: impl FnOnce(&[u32], &[u64]) -> R) -> R {
        let shingler = match flags & UNSPACED {
            0 => &self.spaced,
            _ => &self.unspaced,
        };
        SCRATCH.with_borrow_mut(|Scratch { shingles, sketch }| {
            shingles.clear();
            shingler.shingles_into(tokens, shingles);
            self.sketcher.sketch_into(shingles, sketch);
            take(sketch, shingles)
        })
    }
}

/// Returns zero without shingles.
fn features(sketch: &[u32]) -> [u64; 6] {
    let samples = sketch.get(..N_FEATURE_SAMPLES);
    let features = samples.and_then(|samples| Features::SIX_BY_FOURTEEN.of(samples).ok());
    let mut six = [0; 6];
    if let Some(features) = features {
        six.copy_from_slice(&features);
    }
    six
}

/// Whether the policy needs simhashes of all documents.
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

/// Returns the tokens of a document, including those of its images.
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
