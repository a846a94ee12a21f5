//! Which candidates are judged together.
//!
//! Every pair goes to the group of the smallest candidate of its later document. In a clique that
//! is the same for all, so a document's tokens travel once for most clusters; in a chain groups are
//! small and overlap. A group that is too large for one part is cut, at the cost of sending its
//! smallest document to each piece.

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

    fn push_group(&self, group: u64, pairs: &[(Ordinal, PairKey)], out: &mut Sink) {
        let part = self.context.part_of(group);
        let mut docs: Vec<Ordinal> = pairs
            .iter()
            .flat_map(|(_, pair)| [pair.a, pair.b])
            .collect();
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
        for &(_, pair) in pairs {
            let judge = Judge { group, pair };
            out.push(
                kind::JUDGE,
                part,
                pair.b.into(),
                &[bytemuck::bytes_of(&judge)],
            );
        }
    }
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
        let mut grouped: Vec<(Ordinal, PairKey)> = Vec::with_capacity(pairs.len());
        for of_one in pairs.chunk_by(|x, y| x.b == y.b) {
            grouped.extend(of_one.iter().map(|&pair| (of_one[0].a, pair)));
        }
        grouped.sort_unstable();
        let most = self.context.group_docs.max(SMALL);
        let few = (most / self.context.n_parts.max(1) as usize).max(SMALL);
        for group in grouped.chunk_by(|x, y| x.0 == y.0) {
            let name = mix(group[0].0.into());
            if group.len() <= few {
                self.push_group(name, group, out);
                continue;
            }
            for (piece, pairs) in (1..).zip(group.chunks(most)) {
                self.push_group(mix(name ^ (part as u64) << 32 ^ piece), pairs, out);
            }
        }
        out.note(&json!({ "candidates": pairs.len() }));
        Ok(())
    }
}
