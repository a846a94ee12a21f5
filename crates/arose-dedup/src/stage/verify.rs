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

use std::num::NonZeroU16;
use std::path::Path;
use std::sync::Arc;

use arose::DocId;
use arose::cluster::Components;
use arose::content;
use arose::feature::{Features, b_sim};
use arose::rule::{Criterion, Rule};
use arose::shingle::Shingler;
use arose::simhash::Fingerprint384;
use arose::sketch::{NarrowMinHash, Sketcher};
use bytemuck::{Pod, Zeroable};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::column::{Column, Scan, Writer};
use crate::config::{Config, Verify};
use crate::lookup::{Chosen, Flags, Lookup};
use crate::record::{
    Accepted, DocRecord, NO_SCORE, Ordinal, PairKey, Samples, Scores, UNSPACED, Vectors,
};
use crate::score::Scorer;
use crate::sorter::{Sorted, Sorter};
use crate::stage::candidates::CANDIDATES;
use crate::stage::read::{DOCS, N_FEATURE_SAMPLES, SAMPLES, TOKENS, VECTORS};
use crate::stage::room::Room;
use crate::stage::sequences::Sequences;
use crate::stage::sites::{self, Frames};
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
    /// Those for which a document is dropped.
    #[serde(default)]
    pub(crate) n_removing: u64,
    /// The inverse of the chance of being found, summed over the pairs: an estimate of how many
    /// there are.
    pub(crate) estimated_pairs: f64,
}

/// Where the texts of documents are, and what their sites repeat.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TextsIn<'a> {
    pub(crate) read: &'a Path,
    /// Of the policy `content` only.
    pub(crate) sites: &'a Path,
}

/// Checks the candidates and leaves the accepted pairs in `folder`.
pub(crate) fn run(
    texts: &TextsIn<'_>,
    candidates: &Path,
    config: &Config,
    folder: &Path,
    progress: &Progress,
) -> Result<Verified, Error> {
    let (mut queue, chosen) = place(texts.read, candidates, config, folder, progress)?;
    let judge = Judge::open(texts, &Arc::new(chosen), config)?;
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
            let rules = accepted.iter().map(|pair| pair.scores.rule());
            let removing = rules.filter(|rule| config.policy.criterion.removes(*rule));
            found.n_removing += removing.count() as u64;
            found.estimated_pairs += accepted
                .iter()
                .map(|pair| judge.scorer.inverse_chance(pair))
                .sum::<f64>();
            progress.advance(batch.len() as u64)?;
        }
    }
    found.n_pairs = out.finish()?;
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
    let mut docs = Scan::<DocRecord>::open(&read.join(DOCS))?;
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
        docs: &mut Scan<DocRecord>,
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

    fn in_order(
        docs: &mut Scan<DocRecord>,
        chosen: &Chosen,
        config: &Config,
    ) -> Result<Self, Error> {
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
    tokens_at: u64,
    n_tokens: u32,
    flags: u32,
}

impl TextPlace {
    fn of(record: DocRecord) -> Self {
        Self {
            tokens_at: record.tokens_at,
            n_tokens: record.n_tokens,
            flags: record.flags,
        }
    }
}

/// Memory for contents, used again.
#[derive(Default)]
struct ContentRoom {
    weighed: sites::Room,
    sequences: Sequences,
    /// The tokens of the documents, and where those of each begin.
    tokens: Vec<u64>,
    starts: Vec<(Ordinal, usize)>,
}

/// Everything that scores are taken from.
struct Judge<'a> {
    config: &'a Config,
    texts: Lookup<DocRecord, TextPlace>,
    tokens: Column<u64>,
    vectors: Lookup<Vectors>,
    samples: Option<Lookup<Samples>>,
    /// Of the policy `content`.
    frames: Option<Frames>,
    /// Makes the features that sketches are without, the policy having no use for them.
    sketcher: NarrowMinHash,
    scorer: Scorer,
    spaced: Shingler,
    unspaced: Shingler,
}

impl<'a> Judge<'a> {
    fn open(texts: &TextsIn<'_>, chosen: &Arc<Chosen>, config: &'a Config) -> Result<Self, Error> {
        let scorer = Scorer::new(config)?;
        let read = texts.read;
        let frames = match config.policy.criterion {
            Criterion::Content(_) => Some(Frames::open(texts.sites, config)?),
            _ => None,
        };
        let samples = match scorer.needs_samples() {
            true => Some(Lookup::open(&read.join(SAMPLES), chosen, config.part(8))?),
            false => None,
        };
        Ok(Self {
            config,
            texts: Lookup::open_part(&read.join(DOCS), chosen, config.part(8), TextPlace::of)?,
            tokens: Column::open(&read.join(TOKENS), 0)?,
            vectors: Lookup::open(&read.join(VECTORS), chosen, config.part(4))?,
            samples,
            frames,
            sketcher: feature_sketcher(config.seed),
            scorer,
            spaced: Shingler::new(config.shingle.w),
            unspaced: Shingler::new(config.shingle.unspaced_w),
        })
    }

    fn judge(&self, batch: &[Placed]) -> Result<Vec<Accepted>, Error> {
        let mut accepted = Vec::new();
        match self.config.verify {
            Verify::Text => {
                let (mut room, mut contents) = (Room::default(), ContentRoom::default());
                for pairs in batch.chunk_by(|one, next| one.component == next.component) {
                    match &self.frames {
                        None => self.judge_component(pairs, &mut room, &mut accepted)?,
                        Some(frames) => {
                            let rooms = (&mut room, &mut contents);
                            self.judge_contents(frames, pairs, rooms, &mut accepted)?;
                        }
                    }
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
        room: &mut Room,
        accepted: &mut Vec<Accepted>,
    ) -> Result<(), Error> {
        let members = members(pairs);
        self.load(&members, room)?;
        for pair in pairs {
            let places = places(&members, pair);
            if self.scorer.is_too_low(room.most_jaccard(places)) {
                continue;
            }
            let jaccard = room.jaccard(places);
            if !self.scorer.is_too_low(jaccard) {
                accepted.extend(self.decide(pair, places, jaccard, room)?);
            }
        }
        Ok(())
    }

    /// Judges pairs of one component by their contents; those that are accepted get all scores.
    fn judge_contents(
        &self,
        frames: &Frames,
        pairs: &[Placed],
        (room, contents): (&mut Room, &mut ContentRoom),
        accepted: &mut Vec<Accepted>,
    ) -> Result<(), Error> {
        let docs = members(pairs);
        let ContentRoom {
            weighed,
            sequences,
            tokens: held,
            starts,
        } = contents;
        sequences.clear();
        starts.clear();
        held.clear();
        for &doc in &docs {
            let place = self.texts.get(doc)?;
            let start = held.len();
            held.resize(start + place.n_tokens as usize, 0);
            self.tokens.read_into(place.tokens_at, &mut held[start..])?;
            starts.push((doc, start));
            frames.push(place.tokens_at, &held[start..], weighed, sequences)?;
        }
        let scored = pairs.iter().filter_map(|pair| {
            // Pairs of one first document follow each other.
            let [a, b] = places(&docs, pair);
            let score = sequences.score([b, a]);
            Rule::of_level(score.level()).map(|rule| (*pair, score, rule))
        });
        let scored: Vec<(Placed, content::Score, Rule)> = scored.collect();
        if scored.is_empty() {
            return Ok(());
        }
        let found: Vec<Placed> = scored.iter().map(|(pair, ..)| *pair).collect();
        let docs = members(&found);
        self.load_by(&docs, room, |doc, _, tokens| {
            let place = starts.binary_search_by_key(&doc, |(doc, _)| *doc);
            let (_, start) = starts[place.expect("found pairs are among all")];
            let end = start + tokens.len();
            tokens.copy_from_slice(&held[start..end]);
            Ok(())
        })?;
        for (pair, score, rule) in scored {
            let places @ [a, b] = places(&docs, &pair);
            let c_sim = match [room.simhashes[a], room.simhashes[b]] {
                [Some(a), Some(b)] => a.c_sim(&b) as u16,
                _ => NO_SCORE,
            };
            let scores = Scores {
                jaccard: room.jaccard(places).to_bits(),
                content: [score.s, score.u].map(f64::to_bits),
                b_sim: b_sim(&room.features[a], &room.features[b]) as u16,
                c_sim,
                ..Scores::unknown(rule)
            };
            accepted.push(Accepted::new(pair.a, pair.b, scores));
        }
        Ok(())
    }

    /// Reads the tokens of `members` and numbers their shingles.
    fn load(&self, members: &[Ordinal], room: &mut Room) -> Result<(), Error> {
        self.load_by(members, room, |_, tokens_at, tokens| {
            self.tokens.read_into(tokens_at, tokens)
        })
    }

    /// As [`Judge::load`], with tokens from elsewhere.
    fn load_by(
        &self,
        members: &[Ordinal],
        room: &mut Room,
        read: impl Fn(Ordinal, u64, &mut [u64]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let places = members.iter().map(|&doc| self.texts.get(doc));
        let places = places.collect::<Result<Vec<_>, Error>>()?;
        room.clear();
        for (&doc, place) in members.iter().zip(&places) {
            room.tokens.resize(place.n_tokens as usize, 0);
            read(doc, place.tokens_at, &mut room.tokens)?;
            let shingler = match place.flags & UNSPACED {
                0 => &self.spaced,
                _ => &self.unspaced,
            };
            room.shingles.clear();
            shingler.shingles_into(&room.tokens, &mut room.shingles);
            room.push_doc();
            // Most documents here are in a pair that will be accepted.
            let simhash = self
                .scorer
                .is_without_simhash
                .then(|| Fingerprint384::of(&room.tokens));
            room.simhashes.push(simhash.flatten());
            if self.frames.is_some() {
                let sketch = self.sketcher.sketch(&room.shingles);
                let features = Features::SIX_BY_FOURTEEN.of(&sketch);
                room.features.push(features.unwrap_or_default());
            }
        }
        Ok(())
    }

    fn decide(
        &self,
        pair: &Placed,
        places: [usize; 2],
        jaccard: f64,
        room: &Room,
    ) -> Result<Option<Accepted>, Error> {
        let vectors = [self.vectors.get(pair.a)?, self.vectors.get(pair.b)?];
        let simhashes = places.map(|place| room.simhashes[place]);
        let pair = PairKey {
            a: pair.a,
            b: pair.b,
        };
        Ok(self.scorer.by_text(pair, &vectors, jaccard, simhashes))
    }

    fn judge_sketches(&self, pair: &Placed) -> Result<Option<Accepted>, Error> {
        let vectors = [self.vectors.get(pair.a)?, self.vectors.get(pair.b)?];
        let samples = match &self.samples {
            Some(samples) => Some([samples.get(pair.a)?, samples.get(pair.b)?]),
            None => None,
        };
        let pair = PairKey {
            a: pair.a,
            b: pair.b,
        };
        Ok(self.scorer.by_sketch(pair, &vectors, samples.as_ref()))
    }
}

/// Makes the samples that features are made of.
fn feature_sketcher(seed: u64) -> NarrowMinHash {
    let t = NonZeroU16::new(N_FEATURE_SAMPLES as u16).expect("there are samples");
    NarrowMinHash::new(t, seed)
}

/// The documents of some pairs, each once.
fn members(pairs: &[Placed]) -> Vec<Ordinal> {
    let mut members: Vec<Ordinal> = pairs.iter().flat_map(|pair| [pair.a, pair.b]).collect();
    members.sort_unstable();
    members.dedup();
    members
}

/// Where the documents of a pair are among the members.
fn places(members: &[Ordinal], pair: &Placed) -> [usize; 2] {
    [pair.a, pair.b].map(|doc| {
        let place = members.binary_search(&doc);
        place.expect("members hold both of a pair")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use arose::shingle::{ShingleSet, resemblance};
    use proptest::prelude::*;

    proptest! {
        /// Intervals have in common what sorted sets have.
        #[test]
        fn jaccard_is_that_of_the_shingle_sets(
            docs in prop::collection::vec(prop::collection::vec(0_u64..40, 1..60), 2..6)
        ) {
            let mut room = Room::default();
            room.clear();
            for doc in &docs {
                room.shingles.clone_from(doc);
                room.push_doc();
            }
            let sets: Vec<_> = docs.into_iter().map(ShingleSet::from_occurrences).collect();
            for a in 0..sets.len() {
                for b in a + 1..sets.len() {
                    let jaccard = room.jaccard([a, b]);
                    prop_assert_eq!(Some(jaccard), resemblance(&sets[a], &sets[b]));
                }
            }
        }
    }
}
