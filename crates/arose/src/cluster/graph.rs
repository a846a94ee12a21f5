//! The documents of a set of pairs, numbered from zero, with the neighbours of each.

use std::cmp::Reverse;

use super::{Pair, Priority};
use crate::{DocId, Threshold};

/// An undirected graph whose links are the pairs that reach a threshold.
///
/// It is the same for any order of the pairs: documents ascend by ID, neighbours ascend, and if
/// several similarities are given for one pair, the greatest counts.
pub(super) struct Graph {
    /// The documents that have a neighbour, ascending.
    pub(super) docs: Vec<DocId>,
    /// The neighbours of document `i` are `links[starts[i]..starts[i + 1]]`.
    starts: Vec<usize>,
    links: Vec<Edge>,
}

/// One end of a link, as seen from the other end.
#[derive(Clone, Copy)]
pub(super) struct Edge {
    /// The neighbour's number.
    pub(super) to: usize,
    /// The similarity of the two.
    pub(super) similarity: f64,
}

impl Graph {
    pub(super) fn new(pairs: &[Pair], tau: Threshold) -> Self {
        let ends = directed(pairs, tau);
        let mut docs: Vec<DocId> = ends.iter().map(|&(from, _, _)| from).collect();
        docs.dedup();
        let mut starts = Vec::with_capacity(docs.len() + 1);
        let mut links = Vec::with_capacity(ends.len());
        for group in ends.chunk_by(|left, right| left.0 == right.0) {
            starts.push(links.len());
            links.extend(group.iter().map(|&(_, to, similarity)| Edge {
                to: docs.partition_point(|&doc| doc < to),
                similarity,
            }));
        }
        starts.push(links.len());
        Self {
            docs,
            starts,
            links,
        }
    }

    /// Returns the neighbours of a document, ascending.
    pub(super) fn neighbours(&self, doc: usize) -> &[Edge] {
        &self.links[self.starts[doc]..self.starts[doc + 1]]
    }

    /// Returns all documents, the one with the highest priority first.
    pub(super) fn by_priority(&self, priority: impl Fn(DocId) -> Priority) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.docs.len()).collect();
        order.sort_by_cached_key(|&doc| Reverse(priority(self.docs[doc])));
        order
    }
}

/// Returns both directions of every pair that counts, sorted, each once.
fn directed(pairs: &[Pair], tau: Threshold) -> Vec<(DocId, DocId, f64)> {
    let counts = |pair: &&Pair| pair.a != pair.b && tau.reached_by(pair.similarity);
    let mut ends: Vec<_> = pairs
        .iter()
        .filter(counts)
        .flat_map(|&Pair { a, b, similarity }| [(a, b, similarity), (b, a, similarity)])
        .collect();
    ends.sort_unstable_by(|left, right| {
        let by_docs = (left.0, left.1).cmp(&(right.0, right.1));
        by_docs.then_with(|| right.2.total_cmp(&left.2))
    });
    ends.dedup_by_key(|&mut (from, to, _)| (from, to));
    ends
}
