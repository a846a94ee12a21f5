//! Groups of candidates that are verified together.
//!
//! Every pair goes to the group of the smallest candidate of its later document. In a clique this
//! is the same for all, so for most clusters a document is sent once. In a chain, groups are small
//! and overlap. A group that is too large for one part is split by its later documents, at the cost
//! of sending its smallest document to each piece. Candidates of a very common key are a few
//! leaders, so such groups are split into blocks of neighbours that are similar to each other. Most
//! documents are then needed in only one piece.

use arose::mix::mix;
use bytemuck::{Pod, Zeroable};
use serde_json::json;

use super::spill::Scratch;
use super::wire::{Message, Sink};
use super::{Context, Step, kind};
use crate::Error;
use crate::record::{CandidateKey, Ordinal};
use crate::sorter::{Sorted, Sorter};

/// A document that is needed in a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Want {
    pub(super) part: i64,
    pub(super) doc: u64,
}

/// A candidate and its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Judge {
    pub(super) group: u64,
    pub(super) pair: CandidateKey,
}

/// Number of documents in a block, whose pairs go to one part.
const BLOCK_DOCS: Ordinal = 1 << 12;

/// Sends a candidate to its part, by its later document.
pub(super) fn push_pair(
    context: &Context,
    pair: CandidateKey,
    out: &mut Sink,
) -> Result<(), Error> {
    let part = context.part_of(mix((pair.b / BLOCK_DOCS).into()));
    let seq = pair.b.into();
    out.push(kind::PAIR, part, seq, &[bytemuck::bytes_of(&pair)])
}

/// Average number of candidates of a document in a group up to which the group is split by blocks.
const FEW_EACH: usize = 8;

/// Number of pairs of a group in one part that are never split further.
const SMALL: usize = 64;

/// A pair in the order of its later document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Later {
    b: Ordinal,
    a: Ordinal,
}

/// A pair of a group, in the order of the later documents in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Grouped {
    group: u64,
    pair: Later,
}

pub(super) struct Groups {
    context: Context,
    scratch: Scratch,
    pairs: Option<Sorter<Later>>,
}

/// Consecutive pairs of a group, as many as may be verified together.
struct Piece<'a> {
    pairs: &'a [Grouped],
    /// Number of earlier pieces of the group.
    number: u64,
    /// Whether the group ends here.
    is_last: bool,
}

impl Groups {
    pub(super) fn new(context: Context) -> Self {
        Self {
            scratch: Scratch::new(&context),
            context,
            pairs: None,
        }
    }

    /// Returns the maximum number of pairs of a group that are verified together.
    fn most(&self) -> usize {
        self.context.group_docs.max(SMALL)
    }

    /// Sends at least one pair to be verified under a name.
    fn push_group(&self, name: u64, pairs: &[Grouped], out: &mut Sink) -> Result<(), Error> {
        let part = self.context.part_of(name);
        let docs = pairs.iter().flat_map(|one| [one.pair.a, one.pair.b]);
        let mut docs: Vec<Ordinal> = docs.collect();
        docs.sort_unstable();
        docs.dedup();
        for doc in docs {
            let want = Want {
                part,
                doc: doc.into(),
            };
            let shard = self.context.shard_of(doc);
            out.push(kind::WANT, shard, doc.into(), &[bytemuck::bytes_of(&want)])?;
        }
        let named = pairs.iter().map(|Grouped { pair, .. }| Judge {
            group: name,
            pair: CandidateKey {
                a: pair.a,
                b: pair.b,
            },
        });
        let named: Vec<Judge> = named.collect();
        let seq = pairs[0].pair.b.into();
        out.push(kind::JUDGE, part, seq, &[bytemuck::cast_slice(&named)])
    }

    /// Returns every pair once, with the smallest candidate of its later document as its group, and
    /// the number of pairs.
    fn grouped(&mut self, pairs: Sorter<Later>) -> Result<(Sorted<Grouped>, u64), Error> {
        let mut grouped = self.scratch.sorter()?;
        let mut pairs = pairs.finish()?;
        let (mut last, mut group, mut n) = (None, 0, 0);
        while let Some(pair) = pairs.next()? {
            if last == Some(pair) {
                continue;
            }
            if last.is_none_or(|last| last.b != pair.b) {
                group = pair.a.into();
            }
            last = Some(pair);
            n += 1;
            grouped.push(Grouped { group, pair })?;
        }
        Ok((grouped.finish()?, n))
    }

    fn place(
        &self,
        part: i64,
        piece: &Piece<'_>,
        common: &mut Sorter<Grouped>,
        out: &mut Sink,
    ) -> Result<(), Error> {
        let pairs = piece.pairs;
        let name = mix(pairs[0].group);
        let few = (self.most() / self.context.n_parts.max(1) as usize).max(SMALL);
        if piece.number == 0 && piece.is_last && pairs.len() <= few {
            return self.push_group(name, pairs, out);
        }
        let n_later = pairs.chunk_by(|x, y| x.pair.b == y.pair.b).count();
        if pairs.len() > FEW_EACH * n_later {
            let number = piece.number + 1;
            return self.push_group(mix(name ^ (part as u64) << 32 ^ number), pairs, out);
        }
        pairs.iter().try_for_each(|&Grouped { pair, .. }| {
            let group = (pair.b / BLOCK_DOCS).into();
            common.push(Grouped { group, pair })
        })
    }
}

/// Calls `each` with the pairs of every group in pieces of at most `most`.
fn in_pieces(
    mut pairs: Sorted<Grouped>,
    most: usize,
    mut each: impl FnMut(&Piece<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let (mut held, mut number): (Vec<Grouped>, u64) = (Vec::new(), 0);
    loop {
        let next = pairs.next()?;
        let is_of = |next: &Grouped| held.first().is_none_or(|held| held.group == next.group);
        let is_last = !next.as_ref().is_some_and(is_of);
        if !held.is_empty() && (is_last || held.len() == most) {
            each(&Piece {
                pairs: &held,
                number,
                is_last,
            })?;
            held.clear();
            number = if is_last { 0 } else { number + 1 };
        }
        match next {
            Some(next) => held.push(next),
            None => return Ok(()),
        }
    }
}

impl Step for Groups {
    fn take(&mut self, message: &Message<'_>, _: &mut Sink) -> Result<(), Error> {
        if self.pairs.is_none() {
            self.pairs = Some(self.scratch.sorter()?);
        }
        let pairs = self.pairs.as_mut().expect("just set");
        for CandidateKey { a, b } in message.records::<CandidateKey>()? {
            pairs.push(Later { b, a })?;
        }
        Ok(())
    }

    fn end(&mut self, part: i64, out: &mut Sink) -> Result<(), Error> {
        let Some(pairs) = self.pairs.take() else {
            return Ok(());
        };
        let (grouped, n_pairs) = self.grouped(pairs)?;
        let mut common = self.scratch.sorter()?;
        let most = self.most();
        in_pieces(grouped, most, |piece| {
            self.place(part, piece, &mut common, out)
        })?;
        in_pieces(common.finish()?, most, |piece| {
            let name = mix(!piece.pairs[0].group ^ (piece.number + 1) << 40);
            self.push_group(name, piece.pairs, out)
        })?;
        out.note(&json!({ "candidates": n_pairs }))
    }
}
