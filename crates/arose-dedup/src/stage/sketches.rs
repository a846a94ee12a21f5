//! The sketches of the documents that share a key: stored ones, and others made from their tokens.
//!
//! They are gathered in the order of the documents, in one pass over the columns of the first
//! stage, and held in memory if they fit their allowance. Otherwise they are in a file of their
//! own, without those of all other documents between them.

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use rayon::prelude::*;

use crate::Error;
use crate::column::{BUFFER_BYTES, Column, Scan, Writer};
use crate::config::Config;
use crate::dictionary::TokenColumn;
use crate::docs::DocScan;
use crate::lookup::Chosen;
use crate::record::{DocRecord, NOT_STORED, Ordinal, Samples, Vectors};
use crate::stage::columns::{FEATURES, SAMPLES, VECTORS};
use crate::stage::row::SketchMaker;

/// Sketches in memory whatever the allowance is.
const MIN_BLOCK: usize = 1 << 10;
/// Sketches that are made together.
const BATCH: usize = 1 << 14;

/// The sketches of chosen documents.
pub(crate) struct Gathered<S> {
    chosen: Arc<Chosen>,
    sketches: Column<S>,
    /// Sketches that memory has room for.
    n_at_once: usize,
}

/// Sketches of neighbours that are in memory.
pub(crate) struct Block<'a, S: Clone> {
    chosen: &'a Chosen,
    /// Their places among the chosen documents.
    places: Range<usize>,
    sketches: Cow<'a, [S]>,
}

impl<S: Clone> Block<'_, S> {
    /// Whether a chosen document is among them.
    pub(crate) fn contains(&self, doc: Ordinal) -> bool {
        self.places.contains(&self.chosen.place(doc))
    }

    /// The sketch of a document that is among them.
    pub(crate) fn sketch(&self, doc: Ordinal) -> &S {
        &self.sketches[self.chosen.place(doc) - self.places.start]
    }
}

/// The sketches after a block, in order.
pub(crate) struct Later<'a, S> {
    chosen: &'a Chosen,
    scan: Option<Scan<S>>,
    next: usize,
}

impl<S: Pod> Later<'_, S> {
    /// The sketch of a document after all that were asked for.
    pub(crate) fn sketch(&mut self, doc: Ordinal) -> Result<S, Error> {
        let place = self.chosen.place(doc);
        let scan = self
            .scan
            .as_mut()
            .expect("there are sketches after the block");
        loop {
            let sketch = scan.next()?.expect("a sketch for every chosen document");
            self.next += 1;
            if self.next > place {
                return Ok(sketch);
            }
        }
    }
}

impl<S: Pod> Gathered<S> {
    /// Of no documents.
    pub(crate) fn none() -> Self {
        Self {
            chosen: Arc::default(),
            sketches: Column::Memory(Vec::new()),
            n_at_once: 1,
        }
    }

    /// Blocks of sketches that fit memory, each alone; one if all do.
    pub(crate) fn n_blocks(&self) -> usize {
        (self.chosen.len() as usize).div_ceil(self.n_at_once)
    }

    /// A block by number.
    pub(crate) fn block(&self, number: usize) -> Result<Block<'_, S>, Error> {
        let n = self.chosen.len() as usize;
        let start = number * self.n_at_once;
        let places = start..n.min(start + self.n_at_once);
        let sketches = match &self.sketches {
            Column::Memory(sketches) => Cow::Borrowed(&sketches[places.clone()]),
            file @ Column::File { .. } => {
                let mut sketches = vec![S::zeroed(); places.len()];
                file.read_into(places.start as u64, &mut sketches)?;
                Cow::Owned(sketches)
            }
        };
        Ok(Block {
            chosen: &self.chosen,
            places,
            sketches,
        })
    }

    /// The sketches after a block.
    pub(crate) fn after(&self, block: &Block<'_, S>) -> Result<Later<'_, S>, Error> {
        let n = u64::from(self.chosen.len());
        let next = block.places.end;
        let scan = match &self.sketches {
            Column::Memory(_) => None,
            Column::File { path, .. } => {
                let rest = next as u64..n;
                Some(Scan::open_part(path, rest, n, BUFFER_BYTES)?)
            }
        };
        Ok(Later {
            chosen: &self.chosen,
            scan,
            next,
        })
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

    /// The sketch of a document, which must be a chosen one.
    pub(crate) fn get(&self, doc: Ordinal) -> Result<S, Error> {
        self.sketches.get(self.chosen.place(doc) as u32)
    }

    /// Gathers what `source` gives for some of the chosen documents after the other, in at most
    /// `allowance` bytes of memory or in the file at `path`.
    fn gather(
        chosen: &Arc<Chosen>,
        allowance: u64,
        path: &Path,
        mut source: impl FnMut(&[Ordinal]) -> Result<Vec<S>, Error>,
    ) -> Result<Self, Error> {
        let fits = u64::from(chosen.len()) * size_of::<S>() as u64 <= allowance;
        let mut sketches = Vec::new();
        let mut file = (!fits).then(|| Writer::create(path)).transpose()?;
        let mut docs = chosen.iter();
        loop {
            let batch: Vec<Ordinal> = docs.by_ref().take(BATCH).collect();
            if batch.is_empty() {
                break;
            }
            match &mut file {
                Some(file) => file.extend(&source(&batch)?)?,
                None => {
                    sketches.reserve_exact(chosen.len() as usize - sketches.len());
                    sketches.extend(source(&batch)?);
                }
            }
        }
        let n_chosen = chosen.len() as usize;
        let n_fitting = (allowance / size_of::<S>() as u64) as usize;
        let (sketches, n_at_once) = match file {
            Some(file) => {
                file.finish()?;
                (Column::open(path, 0)?, n_fitting.max(MIN_BLOCK))
            }
            None => (Column::Memory(sketches), n_chosen.max(1)),
        };
        Ok(Self {
            chosen: Arc::clone(chosen),
            sketches,
            n_at_once,
        })
    }
}

/// Gathers the sketches of samples.
pub(crate) fn gather_samples(
    read: &Path,
    chosen: &Arc<Chosen>,
    config: &Config,
    allowance: u64,
    path: &Path,
) -> Result<Gathered<Samples>, Error> {
    let mut source = Source::open(read, config)?;
    let samples = Column::<Samples>::open(&read.join(SAMPLES), 0)?;
    Gathered::gather(chosen, allowance, path, |docs| {
        source.make(
            docs,
            |sketch_at| samples.get(sketch_at),
            SketchMaker::samples,
        )
    })
}

/// Gathers the super-shingles of the policy that takes samples.
pub(crate) fn gather_features(
    read: &Path,
    chosen: &Arc<Chosen>,
    config: &Config,
    allowance: u64,
    path: &Path,
) -> Result<Gathered<Vectors>, Error> {
    let mut source = Source::open(read, config)?;
    let stored = Column::<[u64; 6]>::open(&read.join(FEATURES), 0)?;
    let vectors = |features| Vectors {
        features,
        ..Vectors::zeroed()
    };
    Gathered::gather(chosen, allowance, path, |docs| {
        source.make(
            docs,
            |sketch_at| stored.get(sketch_at).map(vectors),
            |maker, tokens, flags| vectors(maker.features(tokens, flags)),
        )
    })
}

/// Gathers the sketches of the other policies, which are stored for all documents.
pub(crate) fn gather_vectors(
    read: &Path,
    chosen: &Arc<Chosen>,
    allowance: u64,
    path: &Path,
) -> Result<Gathered<Vectors>, Error> {
    let mut scan = Scan::<Vectors>::open(&read.join(VECTORS))?;
    let mut next = 0;
    Gathered::gather(chosen, allowance, path, |docs| {
        let vectors = docs.iter().map(|&doc| {
            loop {
                let vectors = scan.next()?.expect("a sketch for every document");
                next += 1;
                if next > doc {
                    return Ok(vectors);
                }
            }
        });
        vectors.collect()
    })
}

/// What sketches are made of, in the order of the documents.
struct Source {
    docs: DocScan,
    next: Ordinal,
    tokens: TokenColumn,
    maker: SketchMaker,
}

impl Source {
    fn open(read: &Path, config: &Config) -> Result<Self, Error> {
        Ok(Self {
            docs: DocScan::open(read)?,
            next: 0,
            tokens: TokenColumn::open(read)?,
            maker: SketchMaker::new(config)?,
        })
    }

    /// What `stored` or `made` give for some documents, which come after all asked for before.
    fn make<S: Send>(
        &mut self,
        docs: &[Ordinal],
        stored: impl Fn(u32) -> Result<S, Error> + Sync,
        made: impl Fn(&SketchMaker, &[u64], u16) -> S + Sync,
    ) -> Result<Vec<S>, Error> {
        let records = docs.iter().map(|&doc| self.record(doc));
        let records = records.collect::<Result<Vec<_>, Error>>()?;
        let (tokens, maker) = (&self.tokens, &self.maker);
        let sketches = records.par_iter().map_init(
            || (Vec::new(), Vec::new()),
            |(units, room), record| match record.sketch_at {
                NOT_STORED => {
                    tokens.read_into(&record.tokens(), units, room)?;
                    Ok(made(maker, room, record.flags))
                }
                place => stored(place),
            },
        );
        sketches.collect()
    }

    fn record(&mut self, doc: Ordinal) -> Result<DocRecord, Error> {
        loop {
            let record = self.docs.next()?.expect("a record for every document");
            self.next += 1;
            if self.next > doc {
                return Ok(record);
            }
        }
    }
}
