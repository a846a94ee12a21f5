//! Documents on their way into the columns: tokens, keys and sketches, made on the worker threads.

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
use arose::site::site;
use arose::sketch::{NarrowMinHash, Sketcher};
use arose::token::{Tokenizer, Tokens};
use arose_corpus::{Document, Item, Position, Warning};
use bytemuck::Zeroable;

use crate::Error;
use crate::config::{Config, Exact};
use crate::record::{
    DocRecord, EMPTY, N_SAMPLES, NOT_FETCHED, NOT_STORED, SHORT, Samples, UNSPACED, Vectors,
};
use crate::scheme::{Bands, Rules, Tables};
use crate::source::path_text;

/// Sketches of documents with no more shingles are made again where they are needed, which then
/// costs about as much as writing and reading them.
pub(crate) const MAX_REMADE: usize = 128;

/// A document, ready to be written.
pub(crate) struct DocRow {
    pub(crate) record: DocRecord,
    id: Option<String>,
    pub(crate) url: Option<String>,
    pub(crate) source: Arc<Path>,
    pub(crate) position: Position,
    pub(crate) tokens: Vec<u64>,
    /// Its keys in all tables; none if it is short or nobody asked.
    pub(crate) keys: Vec<u32>,
    /// All zero if the sketch is not stored.
    pub(crate) samples: Samples,
    /// Without features if the sketch is not stored.
    pub(crate) vectors: Vectors,
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

/// What rows are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The columns of this stage: keys, and sketches that are not made again.
    Files,
    /// Another engine, which takes the sketches of all documents.
    Shuffle,
}

/// Makes rows on the worker threads.
pub(crate) struct Maker {
    config: Config,
    purpose: Purpose,
    tokenizer: Tokenizer,
    sketches: SketchMaker,
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

const N_FEATURE_SAMPLES: usize = Features::SIX_BY_FOURTEEN.t();

/// Makes the sketches of a policy from tokens.
pub(crate) struct SketchMaker {
    /// Of the Jaccard policy.
    bands: Option<Bands>,
    /// Of the others.
    rules: Rules,
    spaced: Shingler,
    unspaced: Shingler,
    sketcher: NarrowMinHash,
}

impl SketchMaker {
    pub(crate) fn new(config: &Config) -> Result<Self, Error> {
        let (bands, n_samples) = match config.policy.criterion {
            Criterion::Jaccard(threshold) => (Some(Bands::new(config, threshold)?), N_SAMPLES),
            _ => (None, N_FEATURE_SAMPLES),
        };
        let t = NonZeroU16::new(n_samples as u16).expect("there are samples");
        Ok(Self {
            bands,
            rules: Rules::new(config)?,
            spaced: Shingler::new(config.shingle.w),
            unspaced: Shingler::new(config.shingle.unspaced_w),
            sketcher: NarrowMinHash::new(t, config.seed),
        })
    }

    /// Takes the sketch of a document with these flags; `take` gets it with its shingles.
    fn with_sketch<R>(
        &self,
        tokens: &[u64],
        flags: u16,
        take: impl FnOnce(&[u32], &[u64]) -> R,
    ) -> R {
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

    /// What is kept of the samples of a document; nothing but zeros if the policy takes none.
    pub(crate) fn samples(&self, tokens: &[u64], flags: u16) -> Samples {
        self.with_sketch(tokens, flags, |sketch, shingles| match &self.bands {
            Some(bands) => bands.keep(sketch, shingles),
            None => Samples::zeroed(),
        })
    }

    /// The super-shingles of a document.
    pub(crate) fn features(&self, tokens: &[u64], flags: u16) -> [u64; 6] {
        self.with_sketch(tokens, flags, |sketch, _| features(sketch))
    }
}

/// The super-shingles of a sketch.
pub(crate) fn features(sketch: &[u32]) -> [u64; 6] {
    let features = Features::SIX_BY_FOURTEEN.of(&sketch[..N_FEATURE_SAMPLES]);
    let features = features.expect("as many samples as features need");
    std::array::from_fn(|i| features[i])
}

/// Takes the samples that super-shingles are made of, and no others.
pub(crate) fn feature_sketcher(config: &Config) -> NarrowMinHash {
    let t = NonZeroU16::new(N_FEATURE_SAMPLES as u16).expect("there are samples");
    NarrowMinHash::new(t, config.seed)
}

impl Maker {
    pub(crate) fn new(config: &Config, purpose: Purpose) -> Result<Self, Error> {
        Ok(Self {
            sketches: SketchMaker::new(config)?,
            config: config.clone(),
            purpose,
            tokenizer: Tokenizer::default(),
            with_simhash: has_simhash(config),
        })
    }

    /// In how many tables documents have keys.
    pub(crate) fn n_tables(&self) -> u32 {
        match &self.sketches.bands {
            Some(bands) => bands.n_tables(),
            None => self.sketches.rules.n_tables(),
        }
    }

    pub(crate) fn row(&self, item: Item) -> Row {
        match item {
            Item::Document(document) => Row::Document(Box::new(self.doc_row(*document))),
            Item::Skipped(warning) => Row::Skipped(warning),
        }
    }

    fn doc_row(&self, document: Document) -> DocRow {
        let tokens = tokens(&self.tokenizer, &document);
        let mut row = DocRow {
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
        row.vectors.site = self.site(row.url.as_deref());
        let is_exact = self.config.policy.criterion == Criterion::Exact;
        if row.record.flags & (SHORT | EMPTY) == 0 && !is_exact {
            self.sketch(&mut row);
        }
        row
    }

    fn record(&self, document: &Document, tokens: &Tokens) -> DocRecord {
        let content = document.content_digest();
        let Digest(digest) = match self.config.exact {
            Exact::Text => content,
            Exact::Bytes => document.digest,
        };
        let w = self.config.shingle.of(tokens);
        let is_short = is_short(tokens.len(), w)
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
                | flag(content == Digest::EMPTY, EMPTY)
                | flag(tokens.is_mostly_unspaced(), UNSPACED),
        }
    }

    fn site(&self, url: Option<&str>) -> u64 {
        let Some(host) = url.and_then(host) else {
            return 0;
        };
        let site = site(host, self.config.site);
        // Zero stands for none.
        arose::digest::digest64(site.as_bytes()).max(1)
    }

    fn sketch(&self, row: &mut DocRow) {
        let SketchMaker { bands, rules, .. } = &self.sketches;
        let flags = row.record.flags;
        let (keys, samples, vectors) = (&mut row.keys, &mut row.samples, &mut row.vectors);
        self.sketches
            .with_sketch(&row.tokens, flags, |sketch, shingles| {
                let is_for_files = self.purpose == Purpose::Files;
                if let Some(bands) = bands {
                    if is_for_files {
                        *keys = bands.keys(sketch);
                    }
                    if is_for_files && shingles.len() <= MAX_REMADE {
                        return;
                    }
                    *samples = bands.keep(sketch, shingles);
                    row.record.sketch_at = 0;
                }
                vectors.features = features(sketch);
            });
        if self.with_simhash {
            let simhash = Fingerprint384::of(&row.tokens);
            row.vectors.simhash = simhash.map_or([0; 6], |simhash| simhash.0);
        }
        if bands.is_none() && self.purpose == Purpose::Files {
            let tables = 0..rules.n_tables();
            row.keys = tables.map(|table| rules.key(table, &row.vectors)).collect();
        }
    }
}

/// Whether the policy asks for simhashes of all documents.
pub(crate) fn has_simhash(config: &Config) -> bool {
    let criterion = config.policy.criterion;
    !matches!(
        criterion,
        Criterion::Exact | Criterion::Jaccard(_) | Criterion::B { .. }
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
/// The host of an address, as written.
pub(crate) fn host(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    (!host.is_empty()).then_some(host)
}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_cut_out_of_addresses() {
        let cases = [
            ("http://site1.example/page274", Some("site1.example")),
            ("https://user:pw@x.org:8080?q#f", Some("x.org:8080")),
            ("file:///tmp/x", None),
            ("mailto:a@b.c", None),
            ("", None),
        ];
        for (url, expected) in cases {
            assert_eq!(host(url), expected, "{url}");
        }
    }

    #[test]
    fn pages_of_one_site_have_one_number() {
        let maker = Maker::new(&Config::default(), Purpose::Files).unwrap();
        let [one, other, none] = ["http://site1.example/a", "http://site1.example/b", "x"]
            .map(|url| maker.site(Some(url)));
        assert_eq!(one, other);
        assert_eq!(none, 0);
    }
}
