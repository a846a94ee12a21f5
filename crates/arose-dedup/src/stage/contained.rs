//! The policy `contained`: drops excerpts, teasers and print versions for a longer document.
//!
//! A document is dropped if a kept document with at least as many shingles contains the given share
//! of its shingles. Documents are decided in order of descending size. So all longer kept documents
//! are known when the turn of a document comes, and nothing is dropped for a dropped document.
//!
//! Candidates come from anchors (robust winnowing with windows of four shingles). If few blocks of
//! a document differ from part of another, at least half of its anchors are anchors of the other.
//! Anchors that no other document has cannot be among them. If too few are left, no other document
//! contains this one. Otherwise one of the rarest must match (the prefix rule). Candidates are then
//! verified by their actual shingles. Anchors in more than [`MAX_GROUP`] kept documents are
//! compared only with the longest of these.
//!
//! Memory: the shingles of the current documents. Everything else is in files or sorted.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use arose::Threshold;
use arose::passage::{RollingHash, gram_length};
use arose::rule::Rule;
use arose::shingle::{ShingleSet, Shingler};
use arose::winnow::{Ties, anchors};
use bytemuck::{Pod, Zeroable};
use rayon::prelude::*;

use crate::column::{Column, Scan, Writer};
use crate::config::Config;
use crate::dictionary::TokenColumn;
use crate::lookup::Flags;
use crate::record::{Accepted, DocRecord, Ordinal, Scores, UNSPACED};
use crate::sorter::Sorter;
use crate::stage::candidates::{Candidates, active};
use crate::stage::cluster::{self, ClusterResults, Taken, write_keepers, write_stars};
use crate::stage::columns::DOCS;
use crate::stage::rank::{Rank, Ranks};
use crate::stage::verify::{PAIRS, VerifyResults};
use crate::{Error, Progress};

/// Number of shingles in a window.
const WINDOW_SHINGLES: usize = 4;
/// Maximum number of kept documents listed for an anchor.
const MAX_GROUP: u32 = 1000;
/// Number of tokens that are processed at once.
const BATCH_TOKENS: u64 = 1 << 20;

/// Documents by descending size, with the number of their shingles.
const ORDER: &str = "order";
/// The position of each document in that order, or [`NOT_JUDGED`].
const POSITIONS: &str = "positions";
/// The shared anchors of each document, by its position in the order, the rarest first.
const SHARED: &str = "shared";
/// The dropped documents.
pub(crate) const TAKEN: &str = "taken";

/// An exact duplicate, or too short.
const NOT_JUDGED: u32 = u32::MAX;

/// A document with its sort key: the longest first, then the one to be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Sized {
    /// The number of shingles with all bits inverted.
    n_shingles: u64,
    rank: Rank,
    doc: u64,
}

/// An anchor of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Anchor {
    /// Two halves, which keeps the record small.
    hash: [u32; 2],
    position: u32,
}

/// An anchor that several documents have, or the number of anchors of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Shared {
    position: u32,
    /// Number of documents that have it; 0 for the number of anchors.
    n_docs: u32,
    /// The position of the list of its kept documents, or the number of anchors.
    slot: u64,
}

/// Finds documents that may be contained in others and writes them to `folder`.
pub(crate) fn candidates(
    [read, exact]: [&Path; 2],
    config: &Config,
    folder: &Path,
    progress: &Progress,
) -> Result<Candidates, Error> {
    let texts = Texts::open(read, config)?;
    let active = active(read, exact)?;
    let n_unjudged = order([read, exact], &texts, &active, config, folder, progress)?;
    let mut hashes = Sorter::new(&folder.join("hashes"), config.part(4));
    let mut shared = Sorter::new(&folder.join("sort_shared"), config.part(4));
    let mut positions = Scan::<u32>::open(&folder.join(POSITIONS))?;
    texts.batches(progress, |batch| {
        let lists = batch
            .par_iter()
            .map(|(doc, tokens)| texts.anchors(*doc, tokens));
        let lists: Vec<Vec<u64>> = lists.collect::<Result<_, Error>>()?;
        for list in lists {
            let position = positions.next()?.expect("a place for each document");
            if position == NOT_JUDGED {
                continue;
            }
            shared.push(Shared {
                position,
                n_docs: 0,
                slot: list.len() as u64,
            })?;
            for hash in list {
                let hash = [(hash >> 32) as u32, hash as u32];
                hashes.push(Anchor { hash, position })?;
            }
        }
        Ok(())
    })?;
    let mut hashes = hashes.finish()?;
    let mut next = hashes.next()?;
    let mut group = Vec::new();
    let mut n_slots = 0;
    while let Some(first) = next {
        group.clear();
        while let Some(anchor) = next.filter(|anchor| anchor.hash == first.hash) {
            group.push(anchor.position);
            next = hashes.next()?;
        }
        let n_docs = group.len() as u32;
        if n_docs > 1 {
            for &position in &group {
                let slot = n_slots;
                shared.push(Shared {
                    position,
                    n_docs,
                    slot,
                })?;
            }
            n_slots += u64::from(room(n_docs)) + 1;
        }
    }
    shared.write(&folder.join(SHARED))?;
    Ok(Candidates {
        n_unjudged,
        n_slots,
        ..Candidates::default()
    })
}

/// Returns the maximum number of kept documents listed for an anchor.
fn room(n_docs: u32) -> u32 {
    n_docs.min(MAX_GROUP)
}

/// Writes the documents by descending size. Returns the number of documents that are too short.
fn order(
    [read, exact]: [&Path; 2],
    texts: &Texts,
    active: &Flags,
    config: &Config,
    folder: &Path,
    progress: &Progress,
) -> Result<u64, Error> {
    let ranks = Ranks::new(read, exact, config, folder)?;
    let mut sized = Sorter::new(&folder.join("sized"), config.part(4));
    let mut n_unjudged = 0;
    texts.batches(progress, |batch| {
        let sizes = batch
            .par_iter()
            .map(|(doc, tokens)| texts.set(*doc, tokens));
        let sizes: Vec<ShingleSet> = sizes.collect::<Result<_, Error>>()?;
        for ((doc, _), set) in batch.iter().zip(sizes) {
            let is_judged = texts.is_judged(*doc);
            n_unjudged += u64::from(!is_judged);
            if !is_judged || !active.is_set(*doc as usize) {
                continue;
            }
            sized.push(Sized {
                n_shingles: !(set.len() as u64),
                rank: ranks.of(*doc)?,
                doc: u64::from(*doc),
            })?;
        }
        Ok(())
    })?;
    let mut sized = sized.finish()?;
    let mut order = Writer::<[u32; 2]>::create(&folder.join(ORDER))?;
    let mut by_doc = Sorter::<[u32; 2]>::new(&folder.join("by_doc"), config.part(4));
    while let Some(next) = sized.next()? {
        by_doc.push([next.doc as u32, order.len() as u32])?;
        order.push(&[next.doc as u32, !next.n_shingles as u32])?;
    }
    order.finish()?;
    let mut by_doc = by_doc.finish()?;
    let mut positions = Writer::<u32>::create(&folder.join(POSITIONS))?;
    let mut next = by_doc.next()?;
    for doc in 0..texts.n_docs {
        match next.filter(|[this, _]| *this == doc) {
            Some([_, position]) => {
                positions.push(&position)?;
                next = by_doc.next()?;
            }
            None => positions.push(&NOT_JUDGED)?,
        }
    }
    positions.finish()?;
    Ok(n_unjudged)
}

/// Decides one document after the other and writes the pairs and the dropped documents to `folder`.
pub(crate) fn verify(
    [read, candidates]: [&Path; 2],
    n_slots: u64,
    least: Threshold,
    config: &Config,
    folder: &Path,
    progress: &Progress,
) -> Result<VerifyResults, Error> {
    let texts = Texts::open(read, config)?;
    let order = Column::<[u32; 2]>::open(&candidates.join(ORDER), config.part(8))?;
    let mut all = Scan::<[u32; 2]>::open(&candidates.join(ORDER))?;
    let mut shared = Scan::<Shared>::open(&candidates.join(SHARED))?;
    let mut next = shared.next()?;
    let mut slots = Slots::new(&folder.join("slots"), n_slots, config.part(4))?;
    let mut sets = Sets::new(&texts, config.part(4));
    let mut pairs = Writer::create(&folder.join(PAIRS))?;
    let mut taken = Sorter::new(&folder.join("sort_taken"), config.part(8));
    progress.expect(all.left());
    let (mut position, mut found) = (0, VerifyResults::default());
    let mut own = Vec::new();
    while let Some([doc, n_shingles]) = all.next()? {
        own.clear();
        let mut n_anchors = 0;
        while let Some(anchor) = next.filter(|anchor| anchor.position == position) {
            match anchor.n_docs {
                0 => n_anchors = anchor.slot as usize,
                _ => own.push(anchor),
            }
            next = shared.next()?;
        }
        let mut best: Option<(usize, u32)> = None;
        for other in likely(&own, n_anchors, &slots)? {
            let n_common = sets.get(doc)?.n_common(&*sets.get(order.get(other)?[0])?);
            let share = n_common as f64 / f64::from(n_shingles.max(1));
            // If scores are equal, the first one counts.
            if least.reached_by(share) && best.is_none_or(|(most, _)| n_common > most) {
                best = Some((n_common, other));
            }
        }
        match best {
            Some((n_common, other)) => {
                let [centre, n_there] = order.get(other)?;
                let n_union = n_shingles + n_there - n_common as u32;
                let scores = |share: f64| Scores {
                    jaccard: share.to_bits(),
                    ..Scores::unknown(Rule::Contained)
                };
                let similarity = n_common as f64 / f64::from(n_union);
                pairs.push(&Accepted::new(doc, centre, scores(similarity)))?;
                let share = n_common as f64 / f64::from(n_shingles);
                taken.push(Taken {
                    doc,
                    centre,
                    scores: scores(share),
                })?;
            }
            None => {
                for anchor in &own {
                    slots.push(anchor.slot, room(anchor.n_docs), position)?;
                }
            }
        }
        position += 1;
        progress.advance(1)?;
    }
    found.n_pairs = pairs.finish()?;
    found.estimated_pairs = found.n_pairs as f64;
    taken.write(&folder.join(TAKEN))?;
    drop(slots);
    Ok(found)
}

/// Returns the kept documents that have at least half of the anchors of a document, by their
/// position.
fn likely(own: &[Shared], n_anchors: usize, slots: &Slots) -> Result<Vec<u32>, Error> {
    let n_needed = n_anchors.div_ceil(2).max(1);
    let Some(n_more) = own.len().checked_sub(n_needed) else {
        return Ok(Vec::new());
    };
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    // A full list says nothing about documents that are not in it.
    let mut n_full = 0;
    for (place, anchor) in own.iter().enumerate() {
        let is_rare = place <= n_more;
        let is_full = slots.len(anchor.slot)? == MAX_GROUP;
        n_full += usize::from(is_full);
        if is_full && (!is_rare || counts.len() >= MAX_GROUP as usize) {
            continue;
        }
        for other in slots.get(anchor.slot)? {
            let n_more = usize::from(!is_full);
            match is_rare {
                true => *counts.entry(other).or_default() += n_more,
                false => {
                    counts.entry(other).and_modify(|n| *n += n_more);
                }
            }
        }
    }
    let enough = |(_, n): &(u32, usize)| n + n_full >= n_needed;
    let found = counts.into_iter().filter(enough);
    Ok(found.map(|(other, _)| other).collect())
}

/// Forms the clusters of the dropped documents.
pub(crate) fn clusters(
    [read, exact, verify]: [&Path; 3],
    config: &Config,
    folder: &Path,
) -> Result<ClusterResults, Error> {
    let n_docs = Scan::<DocRecord>::open(&read.join(DOCS))?.left() as usize;
    let ranks = Ranks::new(read, exact, config, folder)?;
    write_keepers(&ranks, n_docs, folder)?;
    let mut taken = Sorter::<Taken>::new(&folder.join("taken"), config.part(8));
    let mut scan = Scan::<Taken>::open(&verify.join(TAKEN))?;
    while let Some(one) = scan.next()? {
        taken.push(one)?;
    }
    write_stars(&mut taken.finish()?, n_docs, folder)?;
    Ok(cluster::ClusterResults::default())
}

/// The tokens of documents, and the values computed from them.
struct Texts {
    docs: Column<DocRecord>,
    tokens: TokenColumn,
    n_docs: u32,
    spaced: Shingler,
    unspaced: Shingler,
}

impl Texts {
    fn open(read: &Path, config: &Config) -> Result<Self, Error> {
        Ok(Self {
            docs: Column::open(&read.join(DOCS), config.part(8))?,
            tokens: TokenColumn::open(read)?,
            n_docs: Scan::<DocRecord>::open(&read.join(DOCS))?.left() as u32,
            spaced: Shingler::new(config.shingle.w),
            unspaced: Shingler::new(config.shingle.unspaced_w),
        })
    }

    fn tokens(&self, record: &DocRecord) -> Result<Vec<u64>, Error> {
        let mut tokens = Vec::new();
        self.tokens.read(&record.tokens(), &mut tokens)?;
        Ok(tokens)
    }

    /// Calls `take` for one batch of documents after the other.
    fn batches(
        &self,
        progress: &Progress,
        mut take: impl FnMut(&[(Ordinal, Vec<u64>)]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        progress.expect(u64::from(self.n_docs));
        let (mut batch, mut n_tokens) = (Vec::new(), 0);
        for doc in 0..self.n_docs {
            let tokens = self.tokens(&self.docs.get(doc)?)?;
            n_tokens += tokens.len() as u64;
            batch.push((doc, tokens));
            if n_tokens >= BATCH_TOKENS || doc + 1 == self.n_docs {
                take(&batch)?;
                progress.advance(batch.len() as u64)?;
                batch.clear();
                n_tokens = 0;
            }
        }
        Ok(())
    }

    fn shingler(&self, record: &DocRecord) -> &Shingler {
        match record.flags & UNSPACED {
            0 => &self.spaced,
            _ => &self.unspaced,
        }
    }

    /// Returns whether a document is long enough to have a window.
    fn is_judged(&self, doc: Ordinal) -> bool {
        let record = self.docs.get(doc);
        record.is_ok_and(|record| {
            let n = WINDOW_SHINGLES * self.shingler(&record).w().get();
            record.n_tokens as usize >= n
        })
    }

    fn set(&self, doc: Ordinal, tokens: &[u64]) -> Result<ShingleSet, Error> {
        Ok(self.shingler(&self.docs.get(doc)?).set(tokens))
    }

    /// Returns the distinct hashes of the anchors of a document.
    fn anchors(&self, doc: Ordinal, tokens: &[u64]) -> Result<Vec<u64>, Error> {
        let n = WINDOW_SHINGLES * self.shingler(&self.docs.get(doc)?).w().get();
        if tokens.len() < n {
            return Ok(Vec::new());
        }
        let gram = gram_length(n);
        let grams = RollingHash::new(tokens).grams(gram);
        let found = anchors(&grams, n - gram + 1, Ties::Robust);
        let mut hashes: Vec<u64> = found.into_iter().map(|anchor| anchor.hash).collect();
        hashes.sort_unstable();
        hashes.dedup();
        Ok(hashes)
    }
}

/// A cache of the shingles of recently used documents.
struct Sets<'a> {
    texts: &'a Texts,
    sets: HashMap<Ordinal, Rc<ShingleSet>>,
    n_bytes: u64,
    allowance: u64,
}

impl<'a> Sets<'a> {
    fn new(texts: &'a Texts, allowance: u64) -> Self {
        Self {
            texts,
            sets: HashMap::new(),
            n_bytes: 0,
            allowance,
        }
    }

    fn get(&mut self, doc: Ordinal) -> Result<Rc<ShingleSet>, Error> {
        if let Some(set) = self.sets.get(&doc) {
            return Ok(Rc::clone(set));
        }
        let tokens = self.texts.tokens(&self.texts.docs.get(doc)?)?;
        let set = Rc::new(self.texts.set(doc, &tokens)?);
        self.n_bytes += 8 * set.len() as u64;
        if self.n_bytes > self.allowance {
            self.sets.clear();
            self.n_bytes = 8 * set.len() as u64;
        }
        self.sets.insert(doc, Rc::clone(&set));
        Ok(set)
    }
}

/// Lists of kept documents. Each has its length, followed by space for some documents.
enum Slots {
    Memory(Vec<u32>),
    File { path: PathBuf, file: File },
}

impl Slots {
    fn new(path: &Path, n: u64, allowance: u64) -> Result<Self, Error> {
        if n * 4 <= allowance {
            return Ok(Self::Memory(vec![0; n as usize]));
        }
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)
            .map_err(Error::io("create", path))?;
        file.set_len(n * 4).map_err(Error::io("write", path))?;
        Ok(Self::File {
            path: path.to_owned(),
            file,
        })
    }

    fn read(&self, at: u64, out: &mut [u32]) -> Result<(), Error> {
        match self {
            Self::Memory(slots) => out.copy_from_slice(&slots[at as usize..][..out.len()]),
            Self::File { path, file } => file
                .read_exact_at(bytemuck::cast_slice_mut(out), at * 4)
                .map_err(Error::io("read", path))?,
        }
        Ok(())
    }

    fn write(&mut self, at: u64, value: u32) -> Result<(), Error> {
        match self {
            Self::Memory(slots) => slots[at as usize] = value,
            Self::File { path, file } => file
                .write_all_at(bytemuck::bytes_of(&value), at * 4)
                .map_err(Error::io("write", path))?,
        }
        Ok(())
    }

    fn len(&self, slot: u64) -> Result<u32, Error> {
        let mut n = [0];
        self.read(slot, &mut n)?;
        Ok(n[0])
    }

    fn get(&self, slot: u64) -> Result<Vec<u32>, Error> {
        let mut list = vec![0; self.len(slot)? as usize];
        self.read(slot + 1, &mut list)?;
        Ok(list)
    }

    /// Adds a document unless the list is full.
    fn push(&mut self, slot: u64, room: u32, value: u32) -> Result<(), Error> {
        let n = self.len(slot)?;
        if n < room {
            self.write(slot + 1 + u64::from(n), value)?;
            self.write(slot, n + 1)?;
        }
        Ok(())
    }
}

impl Drop for Slots {
    /// Removes the file. If this fails, it is removed with the work directory.
    fn drop(&mut self) {
        if let Self::File { path, .. } = self {
            _ = std::fs::remove_file(path);
        }
    }
}
