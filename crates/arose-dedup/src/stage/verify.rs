//! Fourth stage: the exact Jaccard coefficient of every candidate, and what the rule says.
//!
//! Documents with a candidate are put into blocks of a few million tokens, component by component,
//! and candidates are sorted by the blocks of their two documents, so that documents alike are in
//! memory together and a component larger than a block is read once per pair of its blocks. There
//! the shingles of each component are numbered as they are met; a document becomes a list of small numbers without
//! repeats. To compare a document with its partners, mark its numbers once and count the marks on
//! each partner's list: exact, linear in the partner's length, no sorting. (Merging sorted lists of
//! 64-bit shingles costs five times as much, mostly for sorting them.)

use std::path::Path;

use arose::cluster::Components;
use arose::mix::mix;
use arose::rule::{Criterion, Evidence, Rule, SiteRelation, decide};
use arose::shingle::Shingler;
use arose::simhash::Fingerprint384;
use arose::{DocId, feature::b_sim};
use bytemuck::{Pod, Zeroable};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::column::{Column, Scan, Writer};
use crate::config::{Config, Verify};
use crate::record::{
    Accepted, DocRecord, NO_SCORE, Ordinal, PairKey, Samples, UNSPACED, Vectors, rule_index,
};
use crate::scheme::{Bands, Rules};
use crate::sorter::{Sorted, Sorter};
use crate::stage::candidates::CANDIDATES;
use crate::stage::read::{self, DOCS, SAMPLES, TOKENS, VECTORS};
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
    let mut queue = place(read, candidates, config, folder, progress)?;
    let judge = Judge::open(read, config)?;
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
                .map(|pair| judge.inverse_chance(pair))
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

/// Sorts the candidates such that those judged together come together.
fn place(
    read: &Path,
    candidates: &Path,
    config: &Config,
    folder: &Path,
    progress: &Progress,
) -> Result<Queue, Error> {
    let mut docs = Scan::<DocRecord>::open(&read.join(DOCS))?;
    let n_docs = docs.left() as usize;
    let components = Components::new(n_docs)?;
    let mut has_candidate = vec![false; n_docs];
    let path = candidates.join(CANDIDATES);
    let mut scan = Scan::<PairKey>::open(&path)?;
    progress.expect(scan.left());
    while let Some(PairKey { a, b }) = scan.next()? {
        components.union(DocId(a.into()), DocId(b.into()))?;
        (has_candidate[a as usize], has_candidate[b as usize]) = (true, true);
    }
    let mut members = Sorter::new(&folder.join("members"), config.part(8));
    for (doc, has_candidate) in (0..).zip(&has_candidate) {
        let n_tokens = docs.next()?.map_or(0, |doc| doc.n_tokens);
        if *has_candidate {
            let component = components.find(DocId(u64::from(doc)))?.0 as Ordinal;
            members.push([component, doc, n_tokens])?;
        }
    }
    let blocks = blocks(&mut members.finish()?, n_docs, config)?;
    let mut sorter = Sorter::new(&folder.join("placed"), config.part(4));
    let mut scan = Scan::<PairKey>::open(&path)?;
    while let Some(PairKey { a, b }) = scan.next()? {
        sorter.push(Placed {
            blocks: [blocks[a as usize], blocks[b as usize]],
            component: components.find(DocId(a.into()))?.0 as Ordinal,
            a,
            b,
        })?;
    }
    Ok(Queue {
        sorted: sorter.finish()?,
        head: None,
    })
}

/// The block of each document, given component, ordinal and length of those that need one.
fn blocks(
    members: &mut Sorted<[u32; 3]>,
    n_docs: usize,
    config: &Config,
) -> Result<Vec<u32>, Error> {
    // Two blocks a batch, on every thread, in a quarter of the memory.
    let n_at_once = 8 * rayon::current_num_threads() as u64;
    let max_tokens = (config.memory / n_at_once / BYTES_PER_TOKEN).min(BLOCK_TOKENS);
    let mut blocks = vec![0; n_docs];
    let (mut block, mut n_tokens) = (0, 0);
    while let Some([_, doc, length]) = members.next()? {
        n_tokens += u64::from(length);
        if n_tokens > max_tokens {
            block += 1;
            n_tokens = u64::from(length);
        }
        blocks[doc as usize] = block;
    }
    Ok(blocks)
}

/// Everything that scores are taken from.
struct Judge<'a> {
    config: &'a Config,
    docs: Column<DocRecord>,
    tokens: Column<u64>,
    vectors: Column<Vectors>,
    samples: Option<Column<Samples>>,
    bands: Option<Bands>,
    rules: Rules,
    /// Whether the first stage had no use for simhashes.
    is_without_simhash: bool,
    spaced: Shingler,
    unspaced: Shingler,
}

impl<'a> Judge<'a> {
    fn open(read: &Path, config: &'a Config) -> Result<Self, Error> {
        let bands = match config.policy.criterion {
            Criterion::Jaccard(threshold) => Some(Bands::new(config, threshold)?),
            _ => None,
        };
        let samples = match (&bands, config.verify) {
            (Some(_), Verify::Sketch) => Some(Column::open(&read.join(SAMPLES), config.part(8))?),
            _ => None,
        };
        Ok(Self {
            config,
            docs: Column::open(&read.join(DOCS), config.part(8))?,
            tokens: Column::open(&read.join(TOKENS), 0)?,
            vectors: Column::open(&read.join(VECTORS), config.part(8))?,
            samples,
            bands,
            rules: Rules::new(config)?,
            is_without_simhash: !read::has_simhash(config),
            spaced: Shingler::new(config.shingle.w),
            unspaced: Shingler::new(config.shingle.unspaced_w),
        })
    }

    fn judge(&self, batch: &[Placed]) -> Result<Vec<Accepted>, Error> {
        let mut accepted = Vec::new();
        match self.config.verify {
            Verify::Text => {
                let mut room = Room::default();
                for pairs in batch.chunk_by(|one, next| one.component == next.component) {
                    self.judge_component(pairs, &mut room, &mut accepted)?;
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
        let mut members: Vec<Ordinal> = pairs.iter().flat_map(|pair| [pair.a, pair.b]).collect();
        members.sort_unstable();
        members.dedup();
        self.load(&members, room)?;
        let index = |doc| {
            members
                .binary_search(&doc)
                .expect("members hold both of a pair")
        };
        for partners in pairs.chunk_by(|one, next| one.a == next.a) {
            let a = index(partners[0].a);
            room.mark(a);
            for pair in partners {
                let b = index(pair.b);
                let jaccard = room.jaccard(a, b);
                accepted.extend(self.decide(pair, [a, b], jaccard, room)?);
            }
        }
        Ok(())
    }

    /// Reads the tokens of `members` and numbers their shingles.
    fn load(&self, members: &[Ordinal], room: &mut Room) -> Result<(), Error> {
        let records = members.iter().map(|&doc| self.docs.get(doc));
        let records = records.collect::<Result<Vec<_>, Error>>()?;
        room.clear();
        for record in &records {
            room.tokens.resize(record.n_tokens as usize, 0);
            self.tokens.read_into(record.tokens_at, &mut room.tokens)?;
            let shingler = match record.flags & UNSPACED {
                0 => &self.spaced,
                _ => &self.unspaced,
            };
            room.shingles.clear();
            shingler.shingles_into(&room.tokens, &mut room.shingles);
            room.push_doc();
            // Most documents here are in a pair that will be accepted.
            let simhash = self
                .is_without_simhash
                .then(|| Fingerprint384::of(&room.tokens));
            room.simhashes.push(simhash.flatten());
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
        let mut evidence = self.rules.evidence(&vectors[0], &vectors[1]);
        evidence.jaccard = Some(jaccard);
        let Some(rule) = decide(&self.config.policy, &evidence) else {
            return Ok(None);
        };
        let c_sim = match places.map(|place| room.simhashes[place]) {
            [Some(a), Some(b)] => a.c_sim(&b),
            _ => evidence.c_sim,
        };
        Ok(Some(Accepted {
            a: pair.a,
            b: pair.b,
            jaccard,
            b_sim: evidence.b_sim as u16,
            c_sim: c_sim as u16,
            rule: rule_index(rule),
        }))
    }

    fn judge_sketches(&self, pair: &Placed) -> Result<Option<Accepted>, Error> {
        let (a, b) = (self.vectors.get(pair.a)?, self.vectors.get(pair.b)?);
        let mut evidence = self.rules.evidence(&a, &b);
        if let Some(samples) = &self.samples {
            evidence.jaccard = Some(Bands::estimate(
                &samples.get(pair.a)?,
                &samples.get(pair.b)?,
            ));
        }
        let rule = match self.config.verify {
            Verify::None => Some(self.unverified_rule(&evidence)),
            _ => decide(&self.config.policy, &evidence),
        };
        Ok(rule.map(|rule| Accepted {
            a: pair.a,
            b: pair.b,
            jaccard: evidence.jaccard.unwrap_or(f64::NAN),
            b_sim: b_sim(&a.features, &b.features) as u16,
            c_sim: if self.is_without_simhash {
                NO_SCORE
            } else {
                evidence.c_sim as u16
            },
            rule: rule_index(rule),
        }))
    }

    /// The rule that a candidate would have to pass.
    fn unverified_rule(&self, evidence: &Evidence) -> Rule {
        match self.config.policy.criterion {
            Criterion::Jaccard(_) => Rule::Jaccard,
            Criterion::B { .. } => Rule::B,
            Criterion::C { .. } => Rule::C,
            Criterion::Combined(_) => Rule::Combined,
            Criterion::Site { .. } => match evidence.site {
                SiteRelation::Same => Rule::SiteSame,
                SiteRelation::Different => Rule::SiteCross,
                SiteRelation::Unknown => Rule::Combined,
            },
        }
    }

    /// How many pairs like this one there are for each that is found.
    fn inverse_chance(&self, pair: &Accepted) -> f64 {
        match &self.bands {
            Some(bands) if pair.jaccard.is_finite() => 1.0 / bands.probability(pair.jaccard),
            _ => 1.0,
        }
    }
}

/// The documents of one component as lists of shingle numbers, and memory to be used again.
#[derive(Default)]
struct Room {
    tokens: Vec<u64>,
    shingles: Vec<u64>,
    simhashes: Vec<Option<Fingerprint384>>,
    numbers: Numbers,
    /// The lists, one after the other.
    lists: Vec<u32>,
    /// Where the list of each document ends.
    ends: Vec<usize>,
    /// For each number, the last document that was seen with it, plus one.
    seen: Vec<u32>,
    /// For each number, the last document that was marked, plus one.
    marks: Vec<u32>,
    marked: u32,
}

impl Room {
    fn clear(&mut self) {
        self.simhashes.clear();
        self.lists.clear();
        self.ends.clear();
        self.seen.clear();
        self.marks.clear();
        self.numbers.clear();
    }

    /// Takes `shingles` as those of the next document.
    fn push_doc(&mut self) {
        let doc = self.ends.len() as u32 + 1;
        for &shingle in &self.shingles {
            let number = self.numbers.number(shingle);
            if number as usize == self.seen.len() {
                self.seen.push(0);
            }
            if std::mem::replace(&mut self.seen[number as usize], doc) != doc {
                self.lists.push(number);
            }
        }
        self.ends.push(self.lists.len());
    }

    fn list(&self, doc: usize) -> &[u32] {
        let start = if doc == 0 { 0 } else { self.ends[doc - 1] };
        &self.lists[start..self.ends[doc]]
    }

    fn mark(&mut self, doc: usize) {
        self.marks.resize(self.seen.len(), 0);
        self.marked = doc as u32 + 1;
        let start = if doc == 0 { 0 } else { self.ends[doc - 1] };
        for &number in &self.lists[start..self.ends[doc]] {
            self.marks[number as usize] = self.marked;
        }
    }

    /// The coefficient of the marked document `a` and another.
    fn jaccard(&self, a: usize, b: usize) -> f64 {
        let (list_a, list_b) = (self.list(a), self.list(b));
        let common = list_b.iter();
        let common = common
            .filter(|&&number| self.marks[number as usize] == self.marked)
            .count();
        common as f64 / (list_a.len() + list_b.len() - common) as f64
    }
}

/// Numbers shingles in the order in which they are first met: an open hash table that doubles when
/// it is half full.
#[derive(Default)]
struct Numbers {
    /// Shingle and number plus one; zero is a free slot.
    slots: Vec<(u64, u32)>,
    n: u32,
}

/// Slots of an empty table.
const N_SLOTS: usize = 1 << 12;

impl Numbers {
    fn clear(&mut self) {
        self.slots.clear();
        self.slots.resize(N_SLOTS, (0, 0));
        self.n = 0;
    }

    fn number(&mut self, shingle: u64) -> u32 {
        let at = self.slot(shingle);
        let slot = &mut self.slots[at];
        if slot.1 == 0 {
            self.n += 1;
            *slot = (shingle, self.n);
            let number = self.n - 1;
            if 2 * self.n as usize > self.slots.len() {
                self.grow();
            }
            return number;
        }
        slot.1 - 1
    }

    /// Where a shingle is, or would be.
    fn slot(&self, shingle: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = mix(shingle) as usize & mask;
        while self.slots[at].1 != 0 && self.slots[at].0 != shingle {
            at = (at + 1) & mask;
        }
        at
    }

    fn grow(&mut self) {
        let n_slots = 2 * self.slots.len();
        let old = std::mem::replace(&mut self.slots, vec![(0, 0); n_slots]);
        for slot in old {
            if slot.1 != 0 {
                let at = self.slot(slot.0);
                self.slots[at] = slot;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arose::shingle::{ShingleSet, resemblance};
    use proptest::prelude::*;

    proptest! {
        /// Marks count what merging sorted sets counts.
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
                room.mark(a);
                for b in a + 1..sets.len() {
                    prop_assert_eq!(Some(room.jaccard(a, b)), resemblance(&sets[a], &sets[b]));
                }
            }
        }
    }
}
