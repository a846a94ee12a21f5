//! Fourth stage: computes the exact Jaccard similarity of every candidate pair and applies the
//! policy.
//!
//! Candidates are verified in blocks of a few million tokens, component by component
//! ([`placed`](super::placed)), so that similar documents are in memory together. The shingles of
//! each component are numbered in the order in which they first occur, and a document becomes the
//! set of its numbers, stored as intervals. Similar documents share long stretches of text with
//! consecutive numbers. So most shingles are numbered without a lookup in the hash table, because
//! they have the number after the last one, and a thousand shingles form a few dozen intervals,
//! which are quickly intersected as sorted lists. The result is exact, and no set of shingles is
//! ever sorted.

use std::path::Path;
use std::sync::Arc;

use arose::content;
use arose::feature::b_sim;
use arose::rule::{Criterion, Rule};
use arose::shingle::Shingler;
use arose::simhash::Fingerprint384;
use bytemuck::Zeroable;
use serde::{Deserialize, Serialize};

use crate::column::{Scan, Writer};
use crate::config::{Config, Verify};
use crate::lookup::{Chosen, Lookup};
use crate::record::{
    Accepted, CandidateKey, DocRecord, NO_SCORE, Ordinal, Samples, Scores, UNSPACED, Vectors,
};
use crate::score::Scorer;
use crate::stage::candidates::CANDIDATES;
use crate::stage::columns::{DOCS, VECTORS};
use crate::stage::placed::{self, Placed, Queue, members, places};
use crate::stage::room::Room;
use crate::stage::row::SketchMaker;
use crate::stage::sequences::Sequences;
use crate::stage::sites::{self, Frames};
use crate::stage::sketches::{StoredSketches, TextPlace, Texts};
use crate::{Error, Progress};

/// Accepted pairs, component by component.
pub(crate) const PAIRS: &str = "pairs";

/// Maximum number of tokens in a block, unless one document has more.
const BLOCK_TOKENS: u64 = 1 << 21;
/// Maximum memory in bytes per token while its block is verified.
const BYTES_PER_TOKEN: u64 = 80;

/// The results of the stage.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct VerifyResults {
    pub(crate) n_pairs: u64,
    /// Pairs that cause a document to be dropped.
    #[serde(default)]
    pub(crate) n_removing: u64,
    /// The inverse of the probability of being found, summed over the pairs: an estimate of the
    /// number of true pairs.
    pub(crate) estimated_pairs: f64,
}

/// The directories with the texts of the documents and with the counts of repeated text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TextsIn<'a> {
    pub(crate) read: &'a Path,
    /// Only for the policy `content`.
    pub(crate) sites: &'a Path,
}

/// Verifies the candidates and writes the accepted pairs to `folder`.
pub(crate) fn run(
    texts: &TextsIn<'_>,
    candidates: &Path,
    config: &Config,
    folder: &Path,
    progress: &Progress,
) -> Result<VerifyResults, Error> {
    let pairs = candidates.join(CANDIDATES);
    let n_docs = Scan::<DocRecord>::open(&texts.read.join(DOCS))?.left();
    let chosen = Arc::new(placed::chosen(&pairs, n_docs as usize)?);
    let judge = Judge::open(texts, &chosen, config)?;
    progress.expect(Scan::<CandidateKey>::open(&pairs)?.left());
    // Two blocks per batch and thread, in a quarter of the memory.
    let n_at_once = 8 * rayon::current_num_threads() as u64;
    let max_tokens = (config.memory / n_at_once / BYTES_PER_TOKEN).min(BLOCK_TOKENS);
    let n_tokens = |doc| Ok(judge.texts.place(doc)?.tokens.n_tokens);
    let queue = Queue::new(&pairs, &chosen, n_tokens, max_tokens, config, folder)?;
    let mut out = Writer::create(&folder.join(PAIRS))?;
    let mut found = VerifyResults::default();
    queue.judge(
        |batch| judge.judge(batch),
        |batch, accepted| {
            out.extend(&accepted)?;
            let rules = accepted.iter().map(|pair| pair.scores.rule());
            let removing = rules.filter(|rule| config.policy.criterion.removes(*rule));
            found.n_removing += removing.count() as u64;
            found.estimated_pairs += accepted
                .iter()
                .map(|pair| judge.scorer.inverse_chance(pair))
                .sum::<f64>();
            progress.advance(batch.len() as u64)
        },
    )?;
    found.n_pairs = out.finish()?;
    Ok(found)
}

/// Reused memory for contents.
#[derive(Default)]
struct ContentRoom {
    weighed: sites::Room,
    sequences: Sequences,
    /// The tokens of the documents, and the position of the first token of each.
    tokens: Vec<u64>,
    starts: Vec<(Ordinal, usize)>,
}

/// The data from which scores are computed.
struct Judge<'a> {
    config: &'a Config,
    texts: Texts,
    vectors: VectorsOf,
    /// Only for the policy `content`.
    frames: Option<Frames>,
    scorer: Scorer,
    spaced: Shingler,
    unspaced: Shingler,
}

/// The source of super-shingles and simhashes.
enum VectorsOf {
    /// Stored for all documents.
    Column(Lookup<Vectors>),
    /// The policy `jaccard`, which stores super-shingles of some documents.
    Stored(Box<StoredSketches>),
    /// The policy `content`, which does not use them.
    Texts(Box<SketchMaker>),
}

impl<'a> Judge<'a> {
    fn open(texts: &TextsIn<'_>, chosen: &Arc<Chosen>, config: &'a Config) -> Result<Self, Error> {
        let read = texts.read;
        let frames = match config.policy.criterion {
            Criterion::Content(_) => Some(Frames::open(texts.sites, config)?),
            _ => None,
        };
        let vectors = match config.policy.criterion {
            Criterion::Jaccard(_) => {
                VectorsOf::Stored(Box::new(StoredSketches::open(read, config)?))
            }
            Criterion::Content(_) => VectorsOf::Texts(Box::new(SketchMaker::new(config)?)),
            _ => VectorsOf::Column(Lookup::open(&read.join(VECTORS), chosen, config.part(4))?),
        };
        Ok(Self {
            config,
            texts: Texts::open(read, chosen, config.part(8))?,
            vectors,
            frames,
            scorer: Scorer::new(config)?,
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
            Verify::Sketch | Verify::None => self.judge_sketches(batch, &mut accepted)?,
        }
        Ok(accepted)
    }

    /// Verifies pairs of one component by their texts.
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

    /// Verifies pairs of one component by their contents. Accepted pairs get all scores.
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
            let place = self.texts.place(doc)?;
            let start = held.len();
            self.texts.read(&place, held)?;
            starts.push((doc, start));
            frames.push(place.tokens.at, &held[start..], weighed, sequences)?;
        }
        let scored = pairs.iter().filter_map(|pair| {
            // Pairs with the same first document are consecutive.
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
        self.load_by(&docs, room, |doc, place, tokens| {
            let found = starts.binary_search_by_key(&doc, |(doc, _)| *doc);
            let (_, start) = starts[found.expect("found pairs are among all")];
            tokens.extend_from_slice(&held[start..][..place.tokens.n_tokens as usize]);
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
        self.load_by(members, room, |_, place, tokens| {
            self.texts.read(place, tokens)
        })
    }

    /// Like [`Judge::load`], with tokens from another source.
    fn load_by(
        &self,
        members: &[Ordinal],
        room: &mut Room,
        read: impl Fn(Ordinal, &TextPlace, &mut Vec<u64>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        room.clear();
        for &doc in members {
            let place = self.texts.place(doc)?;
            room.tokens.clear();
            read(doc, &place, &mut room.tokens)?;
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
            let features = match &self.vectors {
                VectorsOf::Texts(maker) => Some(maker.features_of(&room.shingles)),
                _ => self.features(&place, &room.tokens)?,
            };
            room.features.extend(features);
        }
        Ok(())
    }

    /// Returns the super-shingles of a document whose text was read, unless a column stores them.
    fn features(&self, place: &TextPlace, tokens: &[u64]) -> Result<Option<[u64; 6]>, Error> {
        Ok(match &self.vectors {
            VectorsOf::Column(_) => None,
            VectorsOf::Stored(stored) => Some(stored.features(place, tokens)?),
            VectorsOf::Texts(maker) => Some(maker.features(tokens, place.flags)),
        })
    }

    fn decide(
        &self,
        pair: &Placed,
        places: [usize; 2],
        jaccard: f64,
        room: &Room,
    ) -> Result<Option<Accepted>, Error> {
        let vectors = match &self.vectors {
            VectorsOf::Column(vectors) => [vectors.get(pair.a)?, vectors.get(pair.b)?],
            _ => places.map(|place| with_features(room.features[place])),
        };
        let simhashes = places.map(|place| room.simhashes[place]);
        Ok(self
            .scorer
            .by_text(pair.pair(), &vectors, jaccard, simhashes))
    }

    /// Verifies pairs by the sketches of their documents, each of which is computed once.
    fn judge_sketches(&self, pairs: &[Placed], accepted: &mut Vec<Accepted>) -> Result<(), Error> {
        let docs = members(pairs);
        let sketches = docs.iter().map(|&doc| self.sketch(doc));
        let sketches = sketches.collect::<Result<Vec<_>, Error>>()?;
        for pair in pairs {
            let both = places(&docs, pair).map(|place| sketches[place]);
            let vectors = both.map(|(vectors, _)| vectors);
            let samples = match both.map(|(_, samples)| samples) {
                [Some(a), Some(b)] => Some([a, b]),
                _ => None,
            };
            let found = self
                .scorer
                .by_sketch(pair.pair(), &vectors, samples.as_ref());
            accepted.extend(found);
        }
        Ok(())
    }

    /// Returns the super-shingles and simhash of a document, and its MinHash values if they decide.
    fn sketch(&self, doc: Ordinal) -> Result<(Vectors, Option<Samples>), Error> {
        if let VectorsOf::Column(vectors) = &self.vectors {
            return Ok((vectors.get(doc)?, None));
        }
        let place = self.texts.place(doc)?;
        let mut tokens = Vec::new();
        self.texts.read(&place, &mut tokens)?;
        let features = self.features(&place, &tokens)?.unwrap_or_default();
        let samples = match &self.vectors {
            VectorsOf::Stored(stored) if self.scorer.needs_samples() => {
                let take = |own: &mut Vec<u64>| {
                    own.extend(&tokens);
                    Ok(())
                };
                Some(stored.samples(&place, take)?)
            }
            _ => None,
        };
        Ok((with_features(features), samples))
    }
}

fn with_features(features: [u64; 6]) -> Vectors {
    Vectors {
        features,
        ..Vectors::zeroed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arose::shingle::{self, ShingleSet};
    use proptest::prelude::*;

    /// Documents made of stretches of one text, so that many shingles are consecutive in several
    /// documents.
    fn stretches() -> impl Strategy<Value = Vec<u64>> {
        let stretch = (0_u64..200, 1_u64..40).prop_map(|(start, n)| start..start + n);
        prop::collection::vec(stretch, 1..8).prop_map(|parts| parts.into_iter().flatten().collect())
    }

    proptest! {
        /// Intersections of intervals equal intersections of sorted sets.
        #[test]
        fn jaccard_is_that_of_the_shingle_sets(
            docs in prop::collection::vec(prop_oneof![
                prop::collection::vec(0_u64..40, 1..60),
                stretches(),
            ], 2..6)
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
                    prop_assert_eq!(Some(jaccard), shingle::jaccard(&sets[a], &sets[b]));
                }
            }
        }
    }
}
