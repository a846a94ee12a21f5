//! Fourth stage: the exact Jaccard coefficient of every candidate, and what the rule says.
//!
//! Documents with a candidate are put into blocks of a few million tokens, component by component,
//! and candidates are sorted by the blocks of their two documents, so that documents alike are in
//! memory together and a component larger than a block is read once per pair of its blocks. There
//! the shingles of each component are numbered as they are met, and a document becomes the set of
//! its numbers, kept as intervals. Documents alike share long stretches of text, whose numbers
//! follow each other: most shingles are numbered without a look into the hash table, since the
//! number after the last one is theirs, and a thousand shingles make a few dozen intervals, which
//! two sorted lists intersect in no time. Exact, and no set of shingles is ever sorted.
//!
//! Components and blocks take eight bytes per document. Where a quarter of the memory has no room
//! for them, blocks follow the order of the documents, and the pairs of one document are judged
//! together.

use std::path::Path;
use std::sync::Arc;

use arose::DocId;
use arose::cluster::Components;
use arose::rule::Criterion;
use arose::shingle::Shingler;
use arose::simhash::Fingerprint384;
use arose::sketch::{NarrowMinHash, Sketcher as _};
use bytemuck::{Pod, Zeroable};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::column::{Column, Scan, Writer};
use crate::config::{Config, Verify};
use crate::dictionary::{TokenColumn, TokenPlace};
use crate::docs::{DOCS, DocScan, Packed};
use crate::lookup::{Chosen, Flags, Lookup};
use crate::record::{Accepted, NOT_STORED, Ordinal, PairKey, Samples, UNSPACED, Vectors};
use crate::score::Scorer;
use crate::sorter::{Sorted, Sorter};
use crate::stage::candidates::CANDIDATES;
use crate::stage::columns::{FEATURES, VECTORS};
use crate::stage::room::Room;
use crate::stage::row::{feature_sketcher, features};
use crate::stage::sketches::{Gathered, gather_features, gather_samples};
use crate::{Error, Progress};

/// Accepted pairs, component by component.
pub(crate) const PAIRS: &str = "pairs";

/// Most tokens in a block, unless one document has more.
const BLOCK_TOKENS: u64 = 1 << 21;
/// Bytes that a token takes in memory, at worst, while its block is judged.
const BYTES_PER_TOKEN: u64 = 80;
/// Pairs in a batch.
const BATCH_PAIRS: usize = 1 << 18;

/// What the stage found.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Verified {
    pub(crate) n_pairs: u64,
    /// The inverse of the chance of being found, summed over the pairs: an estimate of how many
    /// there are.
    pub(crate) estimated_pairs: f64,
}

/// Checks the candidates and leaves the accepted pairs in `folder`.
pub(crate) fn run(
    read: &Path,
    candidates: &Path,
    config: &Config,
    folder: &Path,
    progress: &Progress,
) -> Result<Verified, Error> {
    let (mut queue, chosen) = place(read, candidates, config, folder, progress)?;
    let judge = Judge::open(read, &Arc::new(chosen), config, folder)?;
    let mut out = Writer::create(&folder.join(PAIRS))?;
    let mut found = Verified::default();
    let n_batches = 2 * rayon::current_num_threads();
    loop {
        let mut batches = Vec::with_capacity(n_batches);
        while batches.len() < n_batches {
            let batch = queue.next_batch()?;
            if batch.is_empty() {
                break;
            }
            batches.push(batch);
        }
        if batches.is_empty() {
            break;
        }
        let results: Vec<_> = batches.par_iter().map(|batch| judge.judge(batch)).collect();
        for (batch, accepted) in batches.iter().zip(results) {
            let accepted = accepted?;
            out.extend(&accepted)?;
            found.estimated_pairs += accepted
                .iter()
                .map(|pair| judge.scorer.inverse_chance(pair))
                .sum::<f64>();
            progress.advance(batch.len() as u64)?;
        }
    }
    found.n_pairs = out.finish()?;
    judge.vectors.remove()?;
    Ok(found)
}

/// A candidate under the blocks of its documents and its component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Placed {
    blocks: [u32; 2],
    component: Ordinal,
    a: Ordinal,
    b: Ordinal,
}

/// Candidates still to be put into batches.
struct Queue {
    sorted: Sorted<Placed>,
    /// Taken out of the order, but not into a batch.
    head: Option<Placed>,
}

impl Queue {
    /// The next candidates that are in the same two blocks.
    fn next_batch(&mut self) -> Result<Vec<Placed>, Error> {
        let mut batch: Vec<Placed> = self.head.take().into_iter().collect();
        while let Some(next) = self.sorted.next()? {
            let is_other = batch
                .first()
                .is_some_and(|first| first.blocks != next.blocks);
            if is_other || batch.len() == BATCH_PAIRS {
                self.head = Some(next);
                break;
            }
            batch.push(next);
        }
        Ok(batch)
    }
}

/// Sorts the candidates such that those judged together come together, and says which documents
/// are in one.
fn place(
    read: &Path,
    candidates: &Path,
    config: &Config,
    folder: &Path,
    progress: &Progress,
) -> Result<(Queue, Chosen), Error> {
    let mut docs = DocScan::open(read)?;
    let n_docs = docs.left() as usize;
    let path = candidates.join(CANDIDATES);
    let mut scan = Scan::<PairKey>::open(&path)?;
    progress.expect(scan.left());
    let fits = n_docs as u64 * PLACE_BYTES <= config.part(4);
    let components = fits.then(|| Components::new(n_docs)).transpose()?;
    let mut has_candidate = Flags::new(n_docs);
    while let Some(PairKey { a, b }) = scan.next()? {
        if let Some(components) = &components {
            components.union(DocId(a.into()), DocId(b.into()))?;
        }
        has_candidate.set(a as usize);
        has_candidate.set(b as usize);
    }
    let chosen = Chosen::new(has_candidate);
    let places = match components {
        Some(components) => Places::near(components, &mut docs, &chosen, config, folder)?,
        None => Places::in_order(&mut docs, &chosen, config)?,
    };
    let mut sorter = Sorter::new(&folder.join("placed"), config.part(4));
    let mut scan = Scan::<PairKey>::open(&path)?;
    while let Some(pair) = scan.next()? {
        sorter.push(places.of(pair)?)?;
    }
    let queue = Queue {
        sorted: sorter.finish()?,
        head: None,
    };
    Ok((queue, chosen))
}

/// Bytes per document of [`Places::Near`].
const PLACE_BYTES: u64 = 8;

/// In which blocks documents are, and who is judged together.
enum Places {
    /// Documents that candidates connect are neighbours: a block for each document.
    Near {
        components: Components,
        blocks: Vec<u32>,
    },
    /// As they come, where memory has no room for more: the first document of each block. Pairs
    /// with the same first document are judged together, so a document is read more often.
    InOrder { starts: Vec<Ordinal> },
}

impl Places {
    fn near(
        components: Components,
        docs: &mut DocScan,
        chosen: &Chosen,
        config: &Config,
        folder: &Path,
    ) -> Result<Self, Error> {
        let n_docs = docs.left() as usize;
        let mut members = Sorter::new(&folder.join("members"), config.part(8));
        for doc in 0..n_docs as Ordinal {
            let n_tokens = docs.next()?.map_or(0, |doc| doc.n_tokens);
            if chosen.contains(doc) {
                let component = components.find(DocId(doc.into()))?.0 as Ordinal;
                members.push([component, doc, n_tokens])?;
            }
        }
        let mut members = members.finish()?;
        let mut blocks = vec![0; n_docs];
        let mut room = BlockRoom::new(config);
        while let Some([_, doc, n_tokens]) = members.next()? {
            blocks[doc as usize] = room.block_of(n_tokens);
        }
        Ok(Self::Near { components, blocks })
    }

    fn in_order(docs: &mut DocScan, chosen: &Chosen, config: &Config) -> Result<Self, Error> {
        let mut starts = vec![0];
        let mut room = BlockRoom::new(config);
        for doc in 0..docs.left() as Ordinal {
            let n_tokens = docs.next()?.map_or(0, |doc| doc.n_tokens);
            if chosen.contains(doc) && room.block_of(n_tokens) as usize == starts.len() {
                starts.push(doc);
            }
        }
        Ok(Self::InOrder { starts })
    }

    fn of(&self, PairKey { a, b }: PairKey) -> Result<Placed, Error> {
        let (blocks, component) = match self {
            Self::Near { components, blocks } => {
                let component = components.find(DocId(a.into()))?.0 as Ordinal;
                ([blocks[a as usize], blocks[b as usize]], component)
            }
            Self::InOrder { starts } => {
                let block = |doc| starts.partition_point(|start| *start <= doc) as u32 - 1;
                ([block(a), block(b)], a)
            }
        };
        Ok(Placed {
            blocks,
            component,
            a,
            b,
        })
    }
}

/// Puts documents into blocks, one after the other.
struct BlockRoom {
    max_tokens: u64,
    n_tokens: u64,
    block: u32,
}

impl BlockRoom {
    fn new(config: &Config) -> Self {
        // Two blocks a batch, on every thread, in a quarter of the memory.
        let n_at_once = 8 * rayon::current_num_threads() as u64;
        Self {
            max_tokens: (config.memory / n_at_once / BYTES_PER_TOKEN).min(BLOCK_TOKENS),
            n_tokens: 0,
            block: 0,
        }
    }

    /// The block of the next document.
    fn block_of(&mut self, n_tokens: u32) -> u32 {
        self.n_tokens += u64::from(n_tokens);
        if self.n_tokens > self.max_tokens {
            // A document larger than a block has one for itself.
            self.block += u32::from(self.n_tokens > u64::from(n_tokens));
            self.n_tokens = n_tokens.into();
        }
        self.block
    }
}

/// Where the tokens of a document are, and how they become shingles.
#[derive(Debug, Clone, Copy)]
struct TextPlace {
    tokens: TokenPlace,
    /// The place of its features, or [`NOT_STORED`].
    features_at: u32,
    flags: u16,
}

impl TextPlace {
    fn of(record: Packed) -> Self {
        let record = record.unpack();
        Self {
            tokens: record.tokens(),
            features_at: record.sketch_at,
            flags: record.flags,
        }
    }
}

/// Where super-shingles come from, and simhashes if the policy takes them.
enum VectorSource {
    /// The policy decides by them, so they are there.
    Stored(Lookup<Vectors>),
    /// They are looked up or made with the shingles of a text.
    Texts {
        features: Column<[u64; 6]>,
        sketcher: NarrowMinHash,
    },
    /// They were gathered with the sketches.
    Gathered {
        vectors: Gathered<Vectors>,
        samples: Option<Gathered<Samples>>,
    },
}

impl VectorSource {
    fn open(
        read: &Path,
        chosen: &Arc<Chosen>,
        scorer: &Scorer,
        config: &Config,
        folder: &Path,
    ) -> Result<Self, Error> {
        match config.policy.criterion {
            Criterion::Jaccard(_) => {}
            Criterion::Exact => {
                return Ok(Self::Gathered {
                    vectors: Gathered::none(),
                    samples: None,
                });
            }
            _ => {
                let vectors = Lookup::open(&read.join(VECTORS), chosen, config.part(4))?;
                return Ok(Self::Stored(vectors));
            }
        }
        if config.verify == Verify::Text {
            return Ok(Self::Texts {
                features: Column::open(&read.join(FEATURES), config.part(8))?,
                sketcher: feature_sketcher(config),
            });
        }
        let path = folder.join("features");
        let vectors = gather_features(read, chosen, config, config.part(8), &path)?;
        let path = folder.join("samples");
        let samples = scorer
            .needs_samples()
            .then(|| gather_samples(read, chosen, config, config.part(4), &path));
        Ok(Self::Gathered {
            vectors,
            samples: samples.transpose()?,
        })
    }

    fn get(&self, doc: Ordinal) -> Result<Vectors, Error> {
        match self {
            Self::Stored(vectors) => vectors.get(doc),
            Self::Gathered { vectors, .. } => vectors.get(doc),
            Self::Texts { .. } => Ok(Vectors::zeroed()),
        }
    }

    fn remove(self) -> Result<(), Error> {
        match self {
            Self::Gathered { vectors, samples } => {
                vectors.remove()?;
                samples.map_or(Ok(()), Gathered::remove)
            }
            _ => Ok(()),
        }
    }
}

/// Everything that scores are taken from.
struct Judge<'a> {
    config: &'a Config,
    texts: Lookup<Packed, TextPlace>,
    tokens: TokenColumn,
    vectors: VectorSource,
    scorer: Scorer,
    spaced: Shingler,
    unspaced: Shingler,
}

impl<'a> Judge<'a> {
    fn open(
        read: &Path,
        chosen: &Arc<Chosen>,
        config: &'a Config,
        folder: &Path,
    ) -> Result<Self, Error> {
        let scorer = Scorer::new(config)?;
        Ok(Self {
            config,
            texts: Lookup::open_part(&read.join(DOCS), chosen, config.part(8), TextPlace::of)?,
            tokens: TokenColumn::open(read)?,
            vectors: VectorSource::open(read, chosen, &scorer, config, folder)?,
            scorer,
            spaced: Shingler::new(config.shingle.w),
            unspaced: Shingler::new(config.shingle.unspaced_w),
        })
    }

    fn judge(&self, batch: &[Placed]) -> Result<Vec<Accepted>, Error> {
        let mut accepted = Vec::new();
        match self.config.verify {
            Verify::Text => {
                let mut texts = Texts::default();
                for pairs in batch.chunk_by(|one, next| one.component == next.component) {
                    self.judge_component(pairs, &mut texts, &mut accepted)?;
                }
            }
            Verify::Sketch | Verify::None => {
                for pair in batch {
                    accepted.extend(self.judge_sketches(pair)?);
                }
            }
        }
        Ok(accepted)
    }

    /// Judges pairs of one component by their texts.
    fn judge_component(
        &self,
        pairs: &[Placed],
        texts: &mut Texts,
        accepted: &mut Vec<Accepted>,
    ) -> Result<(), Error> {
        let mut members: Vec<Ordinal> = pairs.iter().flat_map(|pair| [pair.a, pair.b]).collect();
        members.sort_unstable();
        members.dedup();
        self.load(&members, texts)?;
        let index = |doc| {
            members
                .binary_search(&doc)
                .expect("members hold both of a pair")
        };
        for pair in pairs {
            let places = [index(pair.a), index(pair.b)];
            if self.scorer.is_too_low(texts.room.most_jaccard(places)) {
                continue;
            }
            let jaccard = texts.room.jaccard(places);
            if !self.scorer.is_too_low(jaccard) {
                accepted.extend(self.decide(pair, places, jaccard, texts)?);
            }
        }
        Ok(())
    }

    /// Reads the tokens of `members` and numbers their shingles.
    fn load(&self, members: &[Ordinal], texts: &mut Texts) -> Result<(), Error> {
        let places = members.iter().map(|&doc| self.texts.get(doc));
        let places = places.collect::<Result<Vec<_>, Error>>()?;
        texts.clear();
        for place in &places {
            self.tokens
                .read_into(&place.tokens, &mut texts.units, &mut texts.tokens)?;
            let shingler = match place.flags & UNSPACED {
                0 => &self.spaced,
                _ => &self.unspaced,
            };
            let Texts { tokens, room, .. } = texts;
            room.shingles.clear();
            shingler.shingles_into(tokens, &mut room.shingles);
            room.push_doc();
            // Most documents here are in a pair that will be accepted.
            let simhash = self
                .scorer
                .is_without_simhash
                .then(|| Fingerprint384::of(tokens));
            texts.simhashes.push(simhash.flatten());
            if let VectorSource::Texts { features, sketcher } = &self.vectors {
                texts.push_features(place, features, sketcher)?;
            }
        }
        Ok(())
    }

    fn decide(
        &self,
        pair: &Placed,
        places: [usize; 2],
        jaccard: f64,
        texts: &Texts,
    ) -> Result<Option<Accepted>, Error> {
        let vectors = match &self.vectors {
            VectorSource::Texts { .. } => places.map(|place| Vectors {
                features: texts.features[place],
                ..Vectors::zeroed()
            }),
            source => [source.get(pair.a)?, source.get(pair.b)?],
        };
        let simhashes = places.map(|place| texts.simhashes[place]);
        let pair = PairKey {
            a: pair.a,
            b: pair.b,
        };
        Ok(self.scorer.by_text(pair, &vectors, jaccard, simhashes))
    }

    fn judge_sketches(&self, pair: &Placed) -> Result<Option<Accepted>, Error> {
        let vectors = [self.vectors.get(pair.a)?, self.vectors.get(pair.b)?];
        let samples = match &self.vectors {
            VectorSource::Gathered {
                samples: Some(samples),
                ..
            } => Some([samples.get(pair.a)?, samples.get(pair.b)?]),
            _ => None,
        };
        let pair = PairKey {
            a: pair.a,
            b: pair.b,
        };
        Ok(self.scorer.by_sketch(pair, &vectors, samples.as_ref()))
    }
}

/// The documents of one component, and memory to be used again.
#[derive(Default)]
struct Texts {
    units: Vec<u16>,
    tokens: Vec<u64>,
    sketch: Vec<u32>,
    /// Of each document, if they are needed.
    features: Vec<[u64; 6]>,
    simhashes: Vec<Option<Fingerprint384>>,
    room: Room,
}

impl Texts {
    fn clear(&mut self) {
        self.features.clear();
        self.simhashes.clear();
        self.room.clear();
    }

    /// Adds the features of the next document, made from its shingles if they are not stored.
    fn push_features(
        &mut self,
        place: &TextPlace,
        stored: &Column<[u64; 6]>,
        sketcher: &NarrowMinHash,
    ) -> Result<(), Error> {
        self.features.push(match place.features_at {
            NOT_STORED => {
                sketcher.sketch_into(&self.room.shingles, &mut self.sketch);
                features(&self.sketch)
            }
            at => stored.get(at)?,
        });
        Ok(())
    }
}
