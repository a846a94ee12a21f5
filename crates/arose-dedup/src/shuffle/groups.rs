//! Which candidates are judged together.
//!
//! Every pair goes to the group of the smallest candidate of its later document. In a clique that
//! is the same for all, so a document travels once for most clusters; in a chain groups are small
//! and overlap. A group that is too large for one part is cut by its later documents, at the cost
//! of sending its smallest document to each piece. Candidates of a very common key are a few
//! leaders, so such groups are cut into blocks of neighbours, all of them alike: most documents are
//! needed in one piece only.

use arose::mix::mix;
use bytemuck::{Pod, Zeroable};
use serde_json::json;

use super::wire::{Message, Sink};
use super::{Context, Step, kind};
use crate::Error;
use crate::record::{Ordinal, PairKey};

/// A document that is needed in a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Want {
    pub(super) part: i64,
    pub(super) doc: u64,
}

/// A candidate and what it is judged together with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Judge {
    pub(super) group: u64,
    pub(super) pair: PairKey,
}

/// Documents in a block, of which the pairs meet in one part.
const BLOCK_DOCS: Ordinal = 1 << 12;

/// Sends a candidate to its part, by its later document.
pub(super) fn push_pair(context: &Context, pair: PairKey, out: &mut Sink) {
    let part = context.part_of(mix((pair.b / BLOCK_DOCS).into()));
    let seq = pair.b.into();
    out.push(kind::PAIR, part, seq, &[bytemuck::bytes_of(&pair)]);
}

/// Candidates of a document in a group, on average, up to which the group is cut by blocks.
const FEW_EACH: usize = 8;

/// Pairs of a group in one part that are never worth a piece of their own.
const SMALL: usize = 64;

pub(super) struct Groups {
    context: Context,
    pairs: Vec<PairKey>,
}

impl Groups {
    pub(super) fn new(context: Context) -> Self {
        Self {
            context,
            pairs: Vec::new(),
        }
    }

    /// Has pairs, one at least, judged under a name.
    fn push_group(&self, name: u64, pairs: &[Judge], out: &mut Sink) {
        let part = self.context.part_of(name);
        let docs = pairs.iter().flat_map(|judge| [judge.pair.a, judge.pair.b]);
        let mut docs: Vec<Ordinal> = docs.collect();
        docs.sort_unstable();
        docs.dedup();
        for doc in docs {
            let want = Want {
                part,
                doc: doc.into(),
            };
            let shard = self.context.shard_of(doc);
            out.push(kind::WANT, shard, doc.into(), &[bytemuck::bytes_of(&want)]);
        }
        let named = pairs
            .iter()
            .map(|&Judge { pair, .. }| Judge { group: name, pair });
        let named: Vec<Judge> = named.collect();
        let seq = pairs[0].pair.b.into();
        out.push(kind::JUDGE, part, seq, &[bytemuck::cast_slice(&named)]);
    }
}

/// By group, and by the later documents in it.
fn sort(pairs: &mut [Judge]) {
    pairs.sort_unstable_by_key(|judge| (judge.group, judge.pair.b, judge.pair.a));
}

impl Step for Groups {
    fn take(&mut self, message: &Message<'_>, _: &mut Sink) -> Result<(), Error> {
        self.pairs.extend(message.records::<PairKey>()?);
        Ok(())
    }

    fn end(&mut self, part: i64, out: &mut Sink) -> Result<(), Error> {
        let mut pairs = std::mem::take(&mut self.pairs);
        pairs.sort_unstable_by_key(|pair| (pair.b, pair.a));
        pairs.dedup();
        let mut grouped: Vec<Judge> = Vec::with_capacity(pairs.len());
        for of_one in pairs.chunk_by(|x, y| x.b == y.b) {
            let group = of_one[0].a.into();
            grouped.extend(of_one.iter().map(|&pair| Judge { group, pair }));
        }
        sort(&mut grouped);
        let mut common = Vec::new();
        let most = self.context.group_docs.max(SMALL);
        let few = (most / self.context.n_parts.max(1) as usize).max(SMALL);
        for group in grouped.chunk_by(|x, y| x.group == y.group) {
            let name = mix(group[0].group);
            if group.len() <= few {
                self.push_group(name, group, out);
                continue;
            }
            let n_later = group.chunk_by(|x, y| x.pair.b == y.pair.b).count();
            if group.len() <= FEW_EACH * n_later {
                common.extend(group.iter().map(|&Judge { pair, .. }| Judge {
                    group: (pair.b / BLOCK_DOCS).into(),
                    pair,
                }));
                continue;
            }
            for (piece, pairs) in (1..).zip(group.chunks(most)) {
                self.push_group(mix(name ^ (part as u64) << 32 ^ piece), pairs, out);
            }
        }
        sort(&mut common);
        for block in common.chunk_by(|x, y| x.group == y.group) {
            for (piece, pairs) in (1..).zip(block.chunks(most)) {
                self.push_group(mix(!block[0].group ^ piece << 40), pairs, out);
            }
        }
        out.note(&json!({ "candidates": pairs.len() }));
        Ok(())
    }
}
