//! Texts and sketches of chosen documents, stored or computed again from the tokens.

use std::path::Path;
use std::sync::Arc;

use bytemuck::Pod;
use rayon::prelude::*;

use crate::Error;
use crate::column::{Column, Writer};
use crate::config::Config;
use crate::dictionary::{TokenColumn, TokenPlace};
use crate::lookup::{Chosen, Lookup};
use crate::record::{DocRecord, IN_SOURCE, NOT_STORED, Ordinal, Samples};
use crate::stage::again::{LinePlace, SourceLines};
use crate::stage::columns::{DOCS, FEATURES, SAMPLES};
use crate::stage::row::SketchMaker;

/// The positions of the text and the sketch of a document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TextPlace {
    /// The position of its tokens, or of its line in the source.
    at: u64,
    pub(crate) n_tokens: u32,
    n_literals: u32,
    sketch_at: u32,
    source: u32,
    dictionary: u16,
    pub(crate) flags: u16,
}

impl TextPlace {
    fn of(record: DocRecord) -> Self {
        Self {
            at: match record.dictionary {
                IN_SOURCE => record.offset,
                _ => record.tokens_at,
            },
            n_tokens: record.n_tokens,
            n_literals: record.n_literals,
            sketch_at: record.sketch_at,
            source: record.source,
            dictionary: record.dictionary,
            flags: record.flags,
        }
    }

    /// Returns the position of its tokens, which must be stored.
    pub(crate) fn tokens(&self) -> TokenPlace {
        TokenPlace {
            at: self.at,
            n_tokens: self.n_tokens,
            n_literals: self.n_literals,
            dictionary: self.dictionary,
        }
    }

    fn line(&self) -> LinePlace {
        LinePlace {
            source: self.source,
            offset: self.at,
            n_bytes: self.n_literals,
            n_tokens: self.n_tokens,
        }
    }
}

/// The texts of chosen documents.
pub(crate) struct Texts {
    places: Lookup<DocRecord, TextPlace>,
    tokens: TokenColumn,
    lines: SourceLines,
}

impl Texts {
    /// Loads the positions into memory if they take at most `allowance` bytes.
    pub(crate) fn open(
        read: &Path,
        chosen: &Arc<Chosen>,
        allowance: u64,
        config: &Config,
    ) -> Result<Self, Error> {
        Ok(Self {
            places: Lookup::open_part(&read.join(DOCS), chosen, allowance, TextPlace::of)?,
            tokens: TokenColumn::open(read)?,
            lines: SourceLines::new(read, config),
        })
    }

    pub(crate) fn place(&self, doc: Ordinal) -> Result<TextPlace, Error> {
        self.places.get(doc)
    }

    /// Appends the tokens at a position.
    pub(crate) fn read(&self, place: &TextPlace, tokens: &mut Vec<u64>) -> Result<(), Error> {
        match place.dictionary {
            IN_SOURCE => self.lines.read(&place.line(), tokens),
            _ => self.tokens.read(&place.tokens(), tokens),
        }
    }

    /// Returns an error if an input file has changed since the first of its lines was read here.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.lines.check()
    }
}

/// A source of sketches of documents.
pub(crate) trait Sketches<S>: Sync {
    /// Returns the sketch of a document, which must be a chosen one.
    fn sketch(&self, doc: Ordinal) -> Result<S, Error>;
}

impl<S: Pod + Send + Sync> Sketches<S> for Lookup<S> {
    fn sketch(&self, doc: Ordinal) -> Result<S, Error> {
        self.get(doc)
    }
}

/// The sketches of the policy `jaccard`, of chosen documents.
pub(crate) struct SampleSketches {
    texts: Texts,
    stored: StoredSketches,
}

impl SampleSketches {
    pub(crate) fn open(read: &Path, chosen: &Arc<Chosen>, config: &Config) -> Result<Self, Error> {
        Ok(Self {
            texts: Texts::open(read, chosen, config.part(8), config)?,
            stored: StoredSketches::open(read, config)?,
        })
    }
}

impl Sketches<Samples> for SampleSketches {
    fn sketch(&self, doc: Ordinal) -> Result<Samples, Error> {
        let place = self.texts.place(doc)?;
        self.stored
            .samples(&place, |tokens| self.texts.read(&place, tokens))
    }
}

/// The stored sketches of the policy `jaccard`, and the sketcher for the others.
pub(crate) struct StoredSketches {
    samples: Column<Samples>,
    features: Column<[u64; 6]>,
    maker: SketchMaker,
}

impl StoredSketches {
    pub(crate) fn open(read: &Path, config: &Config) -> Result<Self, Error> {
        Ok(Self {
            samples: Column::open(&read.join(SAMPLES), 0)?,
            features: Column::open(&read.join(FEATURES), 0)?,
            maker: SketchMaker::new(config)?,
        })
    }

    /// Returns the MinHash values of a document. `read` appends its tokens if they are needed.
    pub(crate) fn samples(
        &self,
        place: &TextPlace,
        read: impl FnOnce(&mut Vec<u64>) -> Result<(), Error>,
    ) -> Result<Samples, Error> {
        if place.sketch_at != NOT_STORED {
            return self.samples.get(place.sketch_at);
        }
        let mut tokens = Vec::with_capacity(place.n_tokens as usize);
        read(&mut tokens)?;
        Ok(self.maker.samples(&tokens, place.flags))
    }

    /// Returns the super-shingles of a document with these tokens.
    pub(crate) fn features(&self, place: &TextPlace, tokens: &[u64]) -> Result<[u64; 6], Error> {
        match place.sketch_at {
            NOT_STORED => Ok(self.maker.features(tokens, place.flags)),
            stored => self.features.get(stored),
        }
    }
}

/// Number of sketches that are computed together.
const BATCH: usize = 1 << 14;

/// The sketches of chosen documents, gathered in memory or in a file of their own.
pub(crate) struct Gathered<S> {
    chosen: Arc<Chosen>,
    sketches: Column<S>,
}

impl<S: Pod + Send> Gathered<S> {
    /// Gathers sketches in at most `allowance` bytes of memory, or in the file at `path`.
    pub(crate) fn new(
        sketches: &impl Sketches<S>,
        chosen: &Arc<Chosen>,
        allowance: u64,
        path: &Path,
    ) -> Result<Self, Error> {
        let fits = u64::from(chosen.len()) * size_of::<S>() as u64 <= allowance;
        let mut gathered = Vec::with_capacity(if fits { chosen.len() as usize } else { 0 });
        let mut file = (!fits).then(|| Writer::create(path)).transpose()?;
        let mut docs = chosen.iter();
        loop {
            let batch: Vec<Ordinal> = docs.by_ref().take(BATCH).collect();
            if batch.is_empty() {
                break;
            }
            let made = batch.par_iter().map(|&doc| sketches.sketch(doc));
            let made = made.collect::<Result<Vec<S>, Error>>()?;
            match &mut file {
                Some(file) => file.extend(&made)?,
                None => gathered.extend(made),
            }
        }
        let sketches = match file {
            Some(file) => {
                file.finish()?;
                Column::open(path, 0)?
            }
            None => Column::Memory(gathered),
        };
        Ok(Self {
            chosen: Arc::clone(chosen),
            sketches,
        })
    }

    pub(crate) fn get(&self, doc: Ordinal) -> Result<S, Error> {
        self.sketches.get(self.chosen.place(doc) as u32)
    }

    /// Removes the file, if there is one.
    pub(crate) fn remove(self) -> Result<(), Error> {
        match self.sketches {
            Column::Memory(_) => Ok(()),
            Column::File { path, .. } => {
                std::fs::remove_file(&path).map_err(Error::io("remove", &path))
            }
        }
    }
}
