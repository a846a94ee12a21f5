//! Collects the documents of a group and verifies its candidates.

use std::collections::BTreeMap;
use std::sync::Arc;

use arose::content::weight;
use arose::feature::b_sim;
use arose::mix::mix;
use arose::rule::{Criterion, Rule};
use arose::shingle::Shingler;
use arose::simhash::Fingerprint384;
use bytemuck::{Pod, Zeroable};
use serde_json::json;

use super::chunks::{ChunkPlace, ChunkReader};
use super::document::{Class, Docs};
use super::groups::{Judge, Want};
use super::sites::OthersHead;
use super::wire::{Cursor, Message, Sink, misfit, records, torn};
use super::{Context, Step, kind};
use crate::Error;
use crate::config::{Config, Verify as By};
use crate::record::{
    Accepted, CandidateKey, NO_SCORE, Ordinal, Samples, Scores, UNSPACED, Vectors,
};
use crate::score::Scorer;
use crate::stage::cluster::Link;
use crate::stage::rank::{Rank, rank};
use crate::stage::room::Room;
use crate::stage::row::SketchMaker;
use crate::stage::sequences::Sequences;
use crate::stage::weigher::{Others, Weigher};

/// A document on its way to a group, followed by its tokens or their position, and MinHash values.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct CardHead {
    doc: Ordinal,
    flags: u32,
    /// Bytes of tokens, or of their position.
    n_text: u32,
    n_samples: u32,
    /// Bytes of the numbers of other pages that contain each word pair.
    n_others: u32,
    unused: u32,
    /// The rank of the best document of its content.
    rank: Rank,
    vectors: Vectors,
}

/// The step that fetches documents.
pub(super) struct Fetch {
    config: Config,
    context: Context,
    docs: Vec<Docs>,
    vectors: Vec<Vectors>,
    tokens: Vec<u64>,
    /// The positions of the tokens of each chunk, if they are elsewhere.
    places: Vec<ChunkPlace>,
    samples: Vec<u8>,
    classes: BTreeMap<Ordinal, Rank>,
    wants: Vec<Want>,
    /// The counts of requested documents, under the policy `content`.
    others: BTreeMap<Ordinal, Vec<u8>>,
}

impl Fetch {
    pub(super) fn new(config: &Config, context: Context) -> Self {
        Self {
            config: config.clone(),
            context,
            docs: Vec::new(),
            vectors: Vec::new(),
            tokens: Vec::new(),
            places: Vec::new(),
            samples: Vec::new(),
            classes: BTreeMap::new(),
            wants: Vec::new(),
            others: BTreeMap::new(),
        }
    }

    /// Takes the counts of documents; requests have arrived before.
    fn take_others(&mut self, message: &Message<'_>) -> Result<(), Error> {
        if self.others.is_empty() {
            self.wants.sort_unstable_by_key(|want| want.doc);
        }
        let mut cursor = Cursor(&message.bytes);
        while !cursor.is_empty() {
            let head: OthersHead = cursor.record()?;
            let bytes = cursor.bytes(size_of::<Others>() * head.n as usize)?;
            let wanted = self
                .wants
                .binary_search_by_key(&u64::from(head.doc), |want| want.doc);
            if wanted.is_ok() {
                self.others.insert(head.doc, bytes.to_vec());
            }
        }
        Ok(())
    }

    fn clear(&mut self) {
        self.docs.clear();
        self.vectors.clear();
        self.tokens.clear();
        self.places.clear();
        self.samples.clear();
        self.classes.clear();
        self.wants.clear();
        self.others.clear();
    }

    fn push_cards(&mut self, start: Ordinal, out: &mut Sink) -> Result<(), Error> {
        self.wants
            .sort_unstable_by_key(|want| (want.doc, want.part));
        self.wants.dedup();
        let mut wants = &self.wants[..];
        let (mut doc, mut tokens_at) = (start, 0);
        for (chunk, docs) in self.docs.iter().enumerate() {
            let chunk_at = tokens_at;
            for record in &docs.records {
                let n_own = wants.partition_point(|want| want.doc <= u64::from(doc));
                let (own, rest) = wants.split_at(n_own);
                wants = rest;
                let n_tokens = record.n_tokens as usize;
                if !own.is_empty() {
                    let place = self.places.get(chunk).map(|chunk| ChunkPlace {
                        start: chunk.start + 8 * (tokens_at - chunk_at) as u64,
                        n_bytes: 8 * n_tokens as u64,
                    });
                    let tokens = match &place {
                        Some(place) => bytemuck::bytes_of(place),
                        None if self.tokens.is_empty() => &[],
                        None => {
                            let tokens = self.tokens.get(tokens_at..tokens_at + n_tokens);
                            bytemuck::cast_slice(tokens.ok_or_else(torn)?)
                        }
                    };
                    let at = (doc - start) as usize;
                    let n_samples = size_of::<Samples>();
                    let samples = self.samples.get(at * n_samples..(at + 1) * n_samples);
                    let samples = samples.unwrap_or_default();
                    let alone = || rank(self.config.keep, record, 1, doc.into());
                    let rank = self.classes.get(&doc).copied().unwrap_or_else(alone);
                    let others = self.others.get(&doc).map_or(&[][..], Vec::as_slice);
                    let head = CardHead {
                        doc,
                        flags: record.flags.into(),
                        n_text: tokens.len() as u32,
                        n_samples: samples.len() as u32,
                        n_others: others.len() as u32,
                        unused: 0,
                        rank,
                        vectors: *self.vectors.get(at).ok_or_else(torn)?,
                    };
                    let pieces = [bytemuck::bytes_of(&head), tokens, samples, others];
                    for want in own {
                        out.push(kind::CARD, want.part, doc.into(), &pieces)?;
                    }
                }
                tokens_at += n_tokens;
                doc += 1;
            }
        }
        match wants.first() {
            Some(want) => Err(misfit("a candidate", want.doc)),
            None => Ok(()),
        }
    }
}

impl Step for Fetch {
    fn take(&mut self, message: &Message<'_>, _: &mut Sink) -> Result<(), Error> {
        match message.kind {
            kind::DOCS => {
                self.docs.push(Docs::of(message)?);
                let vectors = message.more.as_deref().unwrap_or_default();
                self.vectors.extend(records::<Vectors>(vectors)?);
            }
            kind::TOKENS => {
                if self.config.verify == By::Text {
                    self.tokens.extend(message.records::<u64>()?);
                }
                self.samples
                    .extend_from_slice(message.more.as_deref().unwrap_or_default());
            }
            kind::OTHERS => self.take_others(message)?,
            kind::PLACES => self.places.push(Cursor(&message.bytes).record()?),
            kind::CLASS => {
                for class in message.records::<Class>()? {
                    self.classes.insert(class.first, class.best);
                }
            }
            _ => self.wants.extend(message.records::<Want>()?),
        }
        Ok(())
    }

    fn end(&mut self, part: i64, out: &mut Sink) -> Result<(), Error> {
        if !self.wants.is_empty() {
            let start = self.context.start_of(part)?;
            self.push_cards(start, out)?;
        }
        self.clear();
        Ok(())
    }
}

/// A document that was fetched.
struct Card {
    head: CardHead,
    /// Tokens, or their position.
    text: Vec<u8>,
    samples: Option<Samples>,
    /// For each word pair, the number of other pages that contain it; empty if no page does.
    others: Vec<Others>,
}

/// The step that verifies candidates.
pub(super) struct VerifyPairs {
    by: By,
    criterion: Criterion,
    context: Context,
    scorer: Scorer,
    spaced: Shingler,
    unspaced: Shingler,
    /// The source of tokens, if they are not in cards.
    chunks: Option<ChunkReader>,
    cards: BTreeMap<Ordinal, Arc<Card>>,
    pairs: Vec<Judge>,
    tokens: Vec<u64>,
    room: Room,
    contents: Option<Contents>,
}

/// Compares documents under the policy `content`.
struct Contents {
    weigher: Weigher,
    sketches: SketchMaker,
    sequences: Sequences,
    shingles: Vec<u64>,
    /// The super-shingles of the documents of the group.
    features: Vec<[u64; 6]>,
}

impl Contents {
    fn push(&mut self, card: &Card, tokens: &[u64]) {
        self.weigher.shingle(tokens, &mut self.shingles);
        let mut weights: Vec<f64> = card.others.iter().map(|&n| weight(n.into())).collect();
        weights.resize(self.shingles.len(), 1.0);
        self.sequences.push(&self.shingles, weights);
        let features = self.sketches.features(tokens, card.head.flags as u16);
        self.features.push(features);
    }
}

impl VerifyPairs {
    pub(super) fn new(config: &Config, context: Context) -> Result<Self, Error> {
        Ok(Self {
            by: config.verify,
            criterion: config.policy.criterion,
            chunks: context.chunks.clone().map(ChunkReader::new),
            context,
            scorer: Scorer::new(config)?,
            spaced: Shingler::new(config.shingle.w),
            unspaced: Shingler::new(config.shingle.unspaced_w),
            cards: BTreeMap::new(),
            pairs: Vec::new(),
            tokens: Vec::new(),
            room: Room::default(),
            contents: match config.policy.criterion {
                Criterion::Content(_) => Some(Contents {
                    weigher: Weigher::new(config),
                    sketches: SketchMaker::new(config)?,
                    sequences: Sequences::default(),
                    shingles: Vec::new(),
                    features: Vec::new(),
                }),
                _ => None,
            },
        })
    }

    fn card(&self, doc: Ordinal) -> Result<Arc<Card>, Error> {
        let card = self.cards.get(&doc).ok_or_else(|| Error::Message {
            detail: format!("document {doc} is missing from its group"),
        })?;
        Ok(Arc::clone(card))
    }

    /// Reads the tokens of a document into `tokens`.
    fn load_tokens(&mut self, card: &Card) -> Result<(), Error> {
        let Some(chunks) = &mut self.chunks else {
            self.tokens = records(&card.text)?;
            return Ok(());
        };
        let place: ChunkPlace = Cursor(&card.text).record()?;
        self.tokens.resize(place.n_bytes as usize / 8, 0);
        let shard = self.context.shard_of(card.head.doc);
        let out = bytemuck::cast_slice_mut(&mut self.tokens);
        chunks.read(shard, place.start, out)
    }

    /// The members of a group, by ordinal, with their shingles in reused memory.
    fn load(&mut self, group: &[Judge]) -> Result<Members, Error> {
        let docs = group.iter().flat_map(|judge| [judge.pair.a, judge.pair.b]);
        let mut docs: Vec<Ordinal> = docs.collect();
        docs.sort_unstable();
        docs.dedup();
        self.room.clear();
        if let Some(contents) = &mut self.contents {
            contents.sequences.clear();
            contents.features.clear();
        }
        let mut cards = Vec::with_capacity(docs.len());
        for &doc in &docs {
            let card = self.card(doc)?;
            if self.by == By::Text {
                self.load_tokens(&card)?;
                let shingler = match card.head.flags & u32::from(UNSPACED) {
                    0 => &self.spaced,
                    _ => &self.unspaced,
                };
                self.room.shingles.clear();
                shingler.shingles_into(&self.tokens, &mut self.room.shingles);
                self.room.push_doc();
                if let Some(contents) = &mut self.contents {
                    contents.push(&card, &self.tokens);
                }
            }
            cards.push(card);
        }
        Ok(Members {
            simhashes: vec![None; docs.len()],
            docs,
            cards,
        })
    }

    fn judge(
        &mut self,
        pair: CandidateKey,
        members: &mut Members,
    ) -> Result<Option<Accepted>, Error> {
        let places = [pair.a, pair.b].map(|doc| members.docs.partition_point(|other| *other < doc));
        if self.contents.is_some() {
            return self.judge_content(pair, places, members);
        }
        let vectors = || places.map(|at| members.cards[at].head.vectors);
        if self.by != By::Text {
            let samples = match places.map(|at| members.cards[at].samples) {
                [Some(a), Some(b)] => Some([a, b]),
                _ => None,
            };
            return Ok(self.scorer.by_sketch(pair, &vectors(), samples.as_ref()));
        }
        if self.scorer.is_too_low(self.room.most_jaccard(places)) {
            return Ok(None);
        }
        let jaccard = self.room.jaccard(places);
        if self.scorer.is_too_low(jaccard) {
            return Ok(None);
        }
        let vectors = vectors();
        let mut simhashes = [None; 2];
        if self.scorer.is_without_simhash {
            for (simhash, at) in simhashes.iter_mut().zip(places) {
                *simhash = self.simhash(at, members)?;
            }
        }
        Ok(self.scorer.by_text(pair, &vectors, jaccard, simhashes))
    }

    /// Decides on a pair by its contents. A pair that is accepted gets all scores.
    fn judge_content(
        &mut self,
        pair: CandidateKey,
        places: [usize; 2],
        members: &mut Members,
    ) -> Result<Option<Accepted>, Error> {
        let Some(contents) = &mut self.contents else {
            return Ok(None);
        };
        let [a, b] = places;
        let score = contents.sequences.score([b, a]);
        let Some(rule) = Rule::of_level(score.level()) else {
            return Ok(None);
        };
        let b_sim = b_sim(&contents.features[a], &contents.features[b]);
        let c_sim = match [self.simhash(a, members)?, self.simhash(b, members)?] {
            [Some(a), Some(b)] => a.c_sim(&b) as u16,
            _ => NO_SCORE,
        };
        let scores = Scores {
            jaccard: self.room.jaccard(places).to_bits(),
            content: [score.s, score.u].map(f64::to_bits),
            b_sim: b_sim as u16,
            c_sim,
            ..Scores::unknown(rule)
        };
        Ok(Some(Accepted::new(pair.a, pair.b, scores)))
    }

    /// Returns the simhash of a member, computed at its first use. Most pairs do not need it.
    fn simhash(
        &mut self,
        at: usize,
        members: &mut Members,
    ) -> Result<Option<Fingerprint384>, Error> {
        if let Some(simhash) = members.simhashes[at] {
            return Ok(simhash);
        }
        self.load_tokens(&members.cards[at])?;
        let simhash = Fingerprint384::of(&self.tokens);
        members.simhashes[at] = Some(simhash);
        Ok(simhash)
    }

    fn push_accepted(&self, accepted: &Accepted, out: &mut Sink) -> Result<(), Error> {
        let ranks = [self.card(accepted.a)?, self.card(accepted.b)?].map(|card| card.head.rank);
        let link = Link::new(accepted, ranks);
        let a = u64::from(accepted.a);
        let part = self.context.part_of(mix(a));
        out.push(kind::LINK, part, a as i64, &[bytemuck::bytes_of(&link)])
    }
}

/// The documents of a group, by ordinal.
struct Members {
    docs: Vec<Ordinal>,
    cards: Vec<Arc<Card>>,
    /// The requested documents.
    simhashes: Vec<Option<Option<Fingerprint384>>>,
}

impl Step for VerifyPairs {
    fn take(&mut self, message: &Message<'_>, _: &mut Sink) -> Result<(), Error> {
        if message.kind == kind::JUDGE {
            self.pairs.extend(message.records::<Judge>()?);
            return Ok(());
        }
        let mut cursor = Cursor(&message.bytes);
        while !cursor.is_empty() {
            let head: CardHead = cursor.record()?;
            let card = Card {
                head,
                text: cursor.bytes(head.n_text as usize)?.to_vec(),
                samples: match head.n_samples {
                    0 => None,
                    _ => Some(cursor.record()?),
                },
                others: records(cursor.bytes(head.n_others as usize)?)?,
            };
            self.cards.insert(head.doc, Arc::new(card));
        }
        Ok(())
    }

    fn end(&mut self, _: i64, out: &mut Sink) -> Result<(), Error> {
        let mut pairs = std::mem::take(&mut self.pairs);
        pairs.sort_unstable();
        let (mut n_pairs, mut n_removing, mut estimated) = (0_u64, 0_u64, 0.0);
        for group in pairs.chunk_by(|one, next| one.group == next.group) {
            let mut members = self.load(group)?;
            for judge in group {
                if let Some(accepted) = self.judge(judge.pair, &mut members)? {
                    self.push_accepted(&accepted, out)?;
                    n_pairs += 1;
                    let removes = self.criterion.removes(accepted.scores.rule());
                    n_removing += u64::from(removes);
                    estimated += self.scorer.inverse_chance(&accepted);
                }
            }
        }
        self.cards.clear();
        out.note(&json!({
            "accepted": n_pairs,
            "removing": n_removing,
            "estimated_pairs": estimated,
        }))
    }
}
