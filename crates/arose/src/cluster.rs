//! Clusters: groups of documents from duplicate pairs.
//!
//! *Question.* Given duplicate pairs, which documents form a cluster, and which of them is kept?
//!
//! *Idea.* Similarity is not transitive. Let `A_i = {i, ..., i + 9}`: neighbours have a Jaccard
//! similarity of 9/11 = 0.818, yet `A_0` and `A_10` have nothing in common. If "similar to some
//! member" makes a document a member, all of them are chained together. There are four methods:
//!
//! | method | similarity of two members | cost for n documents, m pairs |
//! |---|---|---|
//! | [`Components`] | none guaranteed | O(m) in practice, 4n bytes, any order, any threads |
//! | [`stars`] | J >= 2 tau - 1, and J >= tau with the representative | O(m log m) |
//! | [`complete_link`] | J >= tau | up to O(n m log m), for small groups |
//! | [`OnlineClusters`] | as stars, at all times | O(log n) per document, plus the search |
//!
//! The bound of stars is the triangle inequality of the distance `1 - J`: two members are at most
//! `1 - tau` from their representative, hence at most `2 - 2 tau` from each other. It holds for
//! exact similarities; with estimates, allow four standard errors of the estimate.
//!
//! Use components for statistics (Broder, Glassman, Manasse & Zweig 1997) and stars for removal:
//! every dropped document is itself similar to the one kept in its place. Pairs never leave a
//! component, so the pairs of one component suffice to find its stars, and components can be
//! processed one by one.
//!
//! *Not for* a hierarchy of similarity: each method makes one flat partition for one threshold.

mod complete;
mod components;
mod graph;
mod online;
mod stars;

use std::cmp::Ordering;

pub use complete::complete_link;
pub use components::Components;
pub use online::{OnlineClusters, Placement, RemovalEffect};
pub use stars::stars;

use crate::DocId;
use crate::mix::SplitMix;

/// Two documents and their verified similarity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    /// One of the two; the order does not matter.
    pub a: DocId,
    /// The other.
    pub b: DocId,
    /// Their similarity, in `0..=1`.
    pub similarity: f64,
}

/// A document and its similarity to another one, which follows from the context.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scored {
    /// The document.
    pub doc: DocId,
    /// Its similarity, in `0..=1`.
    pub similarity: f64,
}

/// A group of documents, each similar to the representative.
#[derive(Debug, Clone, PartialEq)]
pub struct Cluster {
    /// The document to keep.
    pub representative: DocId,
    /// The others by ascending ID, each with its similarity to the representative.
    pub members: Vec<Scored>,
}

impl Cluster {
    /// Returns the number of documents, representative included.
    #[must_use]
    pub fn size(&self) -> usize {
        self.members.len() + 1
    }

    /// Returns the smallest similarity of a member to the representative; 1 if there are no
    /// members.
    #[must_use]
    pub fn min_similarity(&self) -> f64 {
        let similarities = self.members.iter().map(|member| member.similarity);
        similarities.fold(1.0, f64::min)
    }

    /// Returns the minimum similarity of two documents of the cluster, 1 if there is only one.
    ///
    /// One minus this is the cluster's diameter. All pairs are compared if there are at most
    /// `max_pairs`; otherwise that many are sampled with replacement, and the result is an upper
    /// bound.
    pub fn min_pair_similarity(
        &self,
        max_pairs: u64,
        seed: u64,
        mut similarity: impl FnMut(DocId, DocId) -> f64,
    ) -> f64 {
        let members = self.members.iter().map(|member| member.doc);
        let docs: Vec<DocId> = std::iter::once(self.representative)
            .chain(members)
            .collect();
        let n_docs = docs.len() as u64;
        if n_docs * (n_docs - 1) / 2 <= max_pairs {
            let pairs = (0..docs.len()).flat_map(|i| (0..i).map(move |j| (i, j)));
            return pairs.fold(1.0, |min, (i, j)| min.min(similarity(docs[i], docs[j])));
        }
        let mut random = SplitMix::new(seed);
        (0..max_pairs).fold(1.0, |min, _| {
            let (i, j) = distinct_pair(&mut random, n_docs);
            min.min(similarity(docs[i], docs[j]))
        })
    }
}

/// Samples an ordered pair of different values below `n`, which is at least two.
fn distinct_pair(random: &mut SplitMix, n: u64) -> (usize, usize) {
    let first = random.below(n);
    let other = random.below(n - 1);
    let second = other + u64::from(other >= first);
    (first as usize, second as usize)
}

/// The priority of a document. The document with the highest priority represents its cluster.
///
/// Documents with more exact duplicates come first, then those with the greater weight, then the
/// older ones, then those with the smaller ID. Since the ID is included, two documents never have
/// equal priority.
///
/// ```
/// use arose::{DocId, cluster::Priority};
/// let old = Priority { exact_copies: 1, weight: 0.0, first_seen: 3, id: DocId(9) };
/// assert!(old > Priority { first_seen: 4, id: DocId(8), ..old });
/// assert!(old < Priority { weight: 0.1, first_seen: 4, ..old });
/// assert!(old < Priority { exact_copies: 2, weight: -1.0, ..old });
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Priority {
    /// Number of exact duplicates that this document represents, including itself.
    pub exact_copies: u64,
    /// PageRank, OPIC cash or any other measure of importance; NaN counts as the smallest.
    pub weight: f64,
    /// The time of its first occurrence, on any monotonic clock; use `u64::MAX` if unknown.
    pub first_seen: u64,
    /// The document.
    pub id: DocId,
}

impl Priority {
    /// Returns the priority of a document for which only the position in the input is known.
    #[must_use]
    pub fn of(id: DocId) -> Self {
        Self {
            exact_copies: 1,
            weight: 0.0,
            first_seen: u64::MAX,
            id,
        }
    }

    /// Returns the weight, without values that break a total order.
    fn ordered_weight(&self) -> f64 {
        if self.weight.is_nan() {
            f64::NEG_INFINITY
        } else {
            // Makes negative zero positive.
            self.weight + 0.0
        }
    }
}

impl Ord for Priority {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_copies = self.exact_copies.cmp(&other.exact_copies);
        by_copies
            .then_with(|| self.ordered_weight().total_cmp(&other.ordered_weight()))
            .then_with(|| other.first_seen.cmp(&self.first_seen))
            .then_with(|| other.id.cmp(&self.id))
    }
}

impl PartialOrd for Priority {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Priority {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Priority {}

#[cfg(test)]
mod tests;
