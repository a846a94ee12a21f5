//! Near duplicates as one result: the best of each cluster, with exact counts.
//!
//! *Question.* A query matches documents of which many are copies of each other. Which ten results
//! does a person want to see, and how many are there?
//!
//! *Idea.* A result is a cluster, shown by one of its documents that match: the one the run kept if
//! it matches, else the one that ranks highest. Results are ranked by the document shown. While
//! matches stream by, documents that are alone in their cluster, which most are, go to a heap of
//! the best `k`; for the others a table holds the best of each cluster. Every match is counted, so
//! both numbers are exact: of documents and of results.
//!
//! *Order.* By BM25, or the newest first; equal ones in the order of the input, so that the answer
//! does not depend on how the index is cut into segments.
//!
//! *Cost.* `O(log k)` for a single, one table access for others; memory for `k` results and for the
//! clusters that match.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use tantivy::collector::{Collector, SegmentCollector};
use tantivy::columnar::{Column, ColumnValues};
use tantivy::{DocAddress, DocId, Score, SegmentOrdinal, SegmentReader, TantivyError};

use crate::schema::{DOC, GROUP, TIME};

/// How results are ranked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// Those that match best first (BM25).
    #[default]
    Score,
    /// Those fetched last first, then those without a time.
    Newest,
}

/// What counts as one result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Collapse {
    /// A cluster.
    #[default]
    ByCluster,
    /// A document.
    Nothing,
}

/// Where a document stands in its cluster, as one number: 0 if it is alone, else the cluster and
/// whether it was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Group(u64);

impl Group {
    pub(crate) fn alone() -> Self {
        Self(0)
    }

    pub(crate) fn kept(cluster: u64) -> Self {
        Self(((cluster + 1) << 1) | 1)
    }

    pub(crate) fn dropped(cluster: u64) -> Self {
        Self((cluster + 1) << 1)
    }

    pub(crate) fn as_u64(self) -> u64 {
        self.0
    }
}

/// One document in the ranking. The greatest comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ranked {
    /// Greater is better.
    key: u64,
    /// The ordinal of the document; smaller is better.
    doc: Reverse<u64>,
    /// Where it is in the index.
    segment: SegmentOrdinal,
    local: DocId,
}

impl Ranked {
    pub(crate) fn address(&self) -> DocAddress {
        DocAddress::new(self.segment, self.local)
    }

    /// The score it was ranked by; none if results were ranked by time.
    pub(crate) fn score(&self, order: Order) -> Option<Score> {
        match order {
            Order::Score => Some(f32::from_bits(
                (self.key as u32) ^ sign_mask(self.key as u32),
            )),
            Order::Newest => None,
        }
    }
}

/// Undoes [`ordered`].
fn sign_mask(bits: u32) -> u32 {
    if bits >> 31 == 1 { 1 << 31 } else { u32::MAX }
}

/// A number that is ordered as scores are.
fn ordered(score: Score) -> u64 {
    let bits = score.to_bits();
    let flip = if bits >> 31 == 1 { u32::MAX } else { 1 << 31 };
    u64::from(bits ^ flip)
}

/// A number that is ordered as times are.
fn ordered_time(time: i64) -> u64 {
    (time as u64) ^ (1 << 63)
}

/// One result and how many documents it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) ranked: Ranked,
    pub(crate) n_documents: u64,
}

/// All that was found.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) n_documents: u64,
    pub(crate) n_results: u64,
    /// The best, best first.
    pub(crate) best: Vec<Found>,
}

/// Finds the best `size` results.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Collapsing {
    pub(crate) size: usize,
    pub(crate) order: Order,
    pub(crate) collapse: Collapse,
}

impl Collector for Collapsing {
    type Fruit = Findings;
    type Child = Segment;

    fn for_segment(
        &self,
        segment: SegmentOrdinal,
        reader: &SegmentReader,
    ) -> tantivy::Result<Segment> {
        let columns = reader.fast_fields();
        let times = match self.order {
            Order::Score => None,
            Order::Newest => Some(columns.i64(TIME)?),
        };
        Ok(Segment {
            segment,
            docs: columns.column_first_or_default(DOC)?,
            groups: columns.column_first_or_default(GROUP)?,
            times,
            size: self.size,
            collapse: self.collapse,
            harvest: Harvest::default(),
        })
    }

    fn requires_scoring(&self) -> bool {
        self.order == Order::Score
    }

    fn merge_fruits(&self, segments: Vec<Harvest>) -> Result<Findings, TantivyError> {
        let mut all = Harvest::default();
        for segment in segments {
            all.merge(segment, self.size);
        }
        Ok(all.finish(self.size))
    }
}

/// What matches in one segment.
pub(crate) struct Segment {
    segment: SegmentOrdinal,
    docs: Arc<dyn ColumnValues<u64>>,
    groups: Arc<dyn ColumnValues<u64>>,
    times: Option<Column<i64>>,
    size: usize,
    collapse: Collapse,
    harvest: Harvest,
}

impl SegmentCollector for Segment {
    type Fruit = Harvest;

    fn collect(&mut self, local: DocId, score: Score) {
        self.harvest.n_documents += 1;
        let key = match &self.times {
            None => ordered(score),
            Some(times) => times.first(local).map_or(0, ordered_time),
        };
        let group = match self.collapse {
            Collapse::ByCluster => Group(self.groups.get_val(local)),
            Collapse::Nothing => Group::alone(),
        };
        if group == Group::alone() {
            self.harvest.n_singles += 1;
            let is_hopeless = self.harvest.singles.len() == self.size
                && self
                    .harvest
                    .singles
                    .peek()
                    .is_some_and(|worst| worst.0.key > key);
            if is_hopeless {
                return;
            }
        }
        let ranked = Ranked {
            key,
            doc: Reverse(self.docs.get_val(local)),
            segment: self.segment,
            local,
        };
        match group == Group::alone() {
            true => self.harvest.add_single(ranked, self.size),
            false => self.harvest.add_member(group, ranked, 1),
        }
    }

    fn harvest(self) -> Harvest {
        self.harvest
    }
}

/// The best of a cluster so far: kept ones before others.
#[derive(Debug, Clone, Copy)]
struct Best {
    is_kept: bool,
    ranked: Ranked,
    n_documents: u64,
}

/// What was found so far.
#[derive(Debug, Default)]
pub(crate) struct Harvest {
    n_documents: u64,
    n_singles: u64,
    /// The best documents that stand for themselves, the worst of them on top.
    singles: BinaryHeap<Reverse<Ranked>>,
    /// The best of each cluster.
    clusters: HashMap<u64, Best>,
}

impl Harvest {
    fn add_single(&mut self, ranked: Ranked, size: usize) {
        self.singles.push(Reverse(ranked));
        if self.singles.len() > size {
            self.singles.pop();
        }
    }

    fn add_member(&mut self, group: Group, ranked: Ranked, n_documents: u64) {
        let is_kept = group.0 & 1 == 1;
        let new = Best {
            is_kept,
            ranked,
            n_documents,
        };
        let entry = self.clusters.entry(group.0 >> 1);
        entry.and_modify(|best| best.merge(new)).or_insert(new);
    }

    fn merge(&mut self, other: Harvest, size: usize) {
        self.n_documents += other.n_documents;
        self.n_singles += other.n_singles;
        for Reverse(ranked) in other.singles {
            self.add_single(ranked, size);
        }
        #[expect(
            clippy::iter_over_hash_type,
            reason = "the best of each cluster does not depend on the order"
        )]
        for (cluster, best) in other.clusters {
            let group = Group((cluster << 1) | u64::from(best.is_kept));
            self.add_member(group, best.ranked, best.n_documents);
        }
    }

    fn finish(self, size: usize) -> Findings {
        let n_results = self.n_singles + self.clusters.len() as u64;
        let singles = self.singles.into_iter().map(|Reverse(ranked)| Found {
            ranked,
            n_documents: 1,
        });
        let clusters = self.clusters.into_values().map(|best| Found {
            ranked: best.ranked,
            n_documents: best.n_documents,
        });
        let mut best: Vec<Found> = singles.chain(clusters).collect();
        if best.len() > size && size > 0 {
            best.select_nth_unstable_by_key(size - 1, |found| Reverse(found.ranked));
        }
        best.truncate(size);
        best.sort_unstable_by_key(|found| Reverse(found.ranked));
        Findings {
            n_documents: self.n_documents,
            n_results,
            best,
        }
    }
}

impl Best {
    fn merge(&mut self, other: Self) {
        let n_documents = self.n_documents + other.n_documents;
        if (other.is_kept, other.ranked) > (self.is_kept, self.ranked) {
            *self = other;
        }
        self.n_documents = n_documents;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn keys_are_ordered_as_scores(a: f32, b: f32) {
            prop_assume!(!a.is_nan() && !b.is_nan());
            prop_assert_eq!(ordered(a).cmp(&ordered(b)), a.total_cmp(&b));
            let ranked = Ranked { key: ordered(a), doc: Reverse(0), segment: 0, local: 0 };
            prop_assert_eq!(ranked.score(Order::Score).map(f32::to_bits), Some(a.to_bits()));
        }

        #[test]
        fn keys_are_ordered_as_times(a: i64, b: i64) {
            prop_assert_eq!(ordered_time(a).cmp(&ordered_time(b)), a.cmp(&b));
        }
    }
}
