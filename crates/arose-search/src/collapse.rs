//! Collapses near duplicates: the best document of each cluster, with exact counts.
//!
//! *Question.* Many of the documents that match a query are duplicates of each other. Which ten
//! results does a person want to see, and how many are there?
//!
//! *Idea.* A result is a cluster: a kept document and the documents dropped for it. It may also be
//! several clusters that are versions of the same content ([`Collapse`]). A result is shown by one
//! of its matching documents: the kept one if it matches, otherwise the one with the highest rank.
//! Results are ranked by the document shown. Most documents are alone in their cluster. As they
//! match, they go to a heap of the best `k`. For the others, a table contains the best document of
//! each cluster. Every match is counted, so the numbers of documents and of results are both exact.
//!
//! *Optimization.* Queries for one word, or for any of several words, match most documents. For
//! them, the first pass counts without scores and notes the clusters whose kept document matches.
//! The second pass only needs the best `k`, and skips blocks of documents that cannot be among them
//! (block-max WAND; Ding and Suel, 2011).
//!
//! *Order.* By BM25, or newest first; ties are in input order. Scores are sums whose last bits
//! depend on the order of addition. They are compared without their last [`IGNORED_BITS`] bits, one
//! part in 32,768, so the result does not depend on how the index is split into segments.
//!
//! *Stop.* Between blocks of matches, and inside phrases ([`crate::phrase`]), a search checks
//! whether to continue. A search whose client is gone therefore ends early.
//!
//! *Cost.* A few nanoseconds per match, and `O(log k)` for a document alone in its cluster that may
//! be among the best. Memory for `k` results, for the matching clusters, and up to 9 bytes per
//! cluster.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::sync::Arc;

use tantivy::query::{EnableScoring, Weight};
use tantivy::{
    COLLECT_BLOCK_BUFFER_LEN, DocAddress, DocId, Score, Searcher, SegmentOrdinal, SegmentReader,
    TERMINATED,
};

use crate::columns::{Columns, Place, Segment};
use crate::compile::Compiled;

/// Number of low bits of a score that are ignored.
const IGNORED_BITS: u32 = 8;

/// If more results than this are requested, few documents can be skipped.
const MAX_PRUNED: usize = 200;

/// Number of matches between two checks whether to continue. A check takes 30 ns, and a match of a
/// long phrase 0.1 ms.
const MATCHES_PER_LOOK: usize = 64;

/// Returns whether to continue a search. It is not called again for a stopped search.
pub type GoOn = Arc<dyn Fn() -> bool + Send + Sync>;

/// How results are ranked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// Best matches first (BM25).
    #[default]
    Score,
    /// Most recently fetched first, then documents without a time.
    Newest,
}

/// What counts as one result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Collapse {
    /// Documents with the same content: a cluster and its other versions, which the policy
    /// `content` finds.
    #[default]
    Content,
    /// A cluster.
    Same,
    /// A document.
    Nothing,
}

/// Which results to return.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    /// Number of results, at least 1.
    pub(crate) size: usize,
    pub(crate) order: Order,
    pub(crate) collapse: Collapse,
}

impl Wanted {
    #[inline]
    fn place(&self, segment: &Segment, doc: DocId) -> Place {
        match self.collapse {
            Collapse::Content if !segment.group_places.is_empty() => {
                segment.group_places[doc as usize]
            }
            Collapse::Content | Collapse::Same => segment.places[doc as usize],
            Collapse::Nothing => Place::ALONE,
        }
    }
}

/// The results of a search.
#[derive(Debug, Default)]
pub(crate) struct Ranking {
    pub(crate) n_documents: u64,
    pub(crate) n_results: u64,
    /// The best results, best first.
    pub(crate) best: Vec<Representative>,
}

/// The document shown for a cluster, and the number of matching documents. The greatest is ranked
/// first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Representative {
    ranked: Ranked,
    /// Matching documents of its cluster, including itself.
    matches: Matches,
    place: Place,
    /// Its position in the index.
    segment: SegmentOrdinal,
    local: DocId,
}

/// Matching documents of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Matches {
    n_documents: u32,
    /// Number that are exact duplicates of the kept document.
    n_exact: u32,
    /// Number in other clusters than the kept document.
    n_versions: u32,
}

impl Matches {
    #[inline]
    fn add(&mut self, place: Place) {
        self.n_documents += 1;
        self.n_exact += u32::from(place.is_exact());
        self.n_versions += u32::from(place.is_version());
    }
}

/// A position in the ranking. The greatest is first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Ranked {
    /// Greater is better.
    key: u64,
    /// The ordinal of the document; smaller is better.
    doc: Reverse<u64>,
}

impl Representative {
    /// A document that represents only itself so far.
    fn new(
        key: u64,
        place: Place,
        segment: &Segment,
        (number, local): (SegmentOrdinal, DocId),
    ) -> Self {
        let mut matches = Matches::default();
        matches.add(place);
        Self {
            ranked: Ranked {
                key,
                doc: Reverse(segment.docs.get_val(local)),
            },
            matches,
            place,
            segment: number,
            local,
        }
    }

    pub(crate) fn address(&self) -> DocAddress {
        DocAddress::new(self.segment, self.local)
    }

    /// The number of other matching documents of the result: exact duplicates of this one, near
    /// duplicates, and other versions. For a version that is not the first of its group, all others
    /// are versions.
    pub(crate) fn n_others(&self) -> [u64; 3] {
        if self.place.is_version() {
            return [0, 0, u64::from(self.matches.n_documents) - 1];
        }
        let n_exact = match (self.place.is_first(), self.place.is_exact()) {
            (true, _) => self.matches.n_exact,
            (false, true) => self.matches.n_exact - 1,
            (false, false) => 0,
        };
        let n_versions = self.matches.n_versions;
        let n_near = self.matches.n_documents - 1 - n_exact - n_versions;
        [n_exact, n_near, n_versions].map(u64::from)
    }

    /// The score it was ranked by; none if results were ranked by time.
    pub(crate) fn score(&self, order: Order) -> Option<Score> {
        match order {
            Order::Score => Some(score_of(self.ranked.key)),
            Order::Newest => None,
        }
    }
}

impl Ord for Representative {
    fn cmp(&self, other: &Self) -> Ordering {
        self.ranked.cmp(&other.ranked)
    }
}

impl PartialOrd for Representative {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A number with the same order as scores, which are never negative.
#[inline]
fn ordered(score: Score) -> u64 {
    u64::from(score.max(0.0).to_bits() >> IGNORED_BITS)
}

/// The smallest score that maps to a number.
fn score_of(key: u64) -> Score {
    f32::from_bits((key as u32) << IGNORED_BITS)
}

/// A number with the same order as times.
fn ordered_time(time: i64) -> u64 {
    (time as u64) ^ (1 << 63)
}

/// Finds the best results of a query, and counts all; none if the search was stopped.
pub(crate) fn find(
    searcher: &Searcher,
    columns: &Columns,
    query: &Compiled,
    wanted: &Wanted,
    go_on: &GoOn,
) -> tantivy::Result<Option<Ranking>> {
    let scored = || EnableScoring::enabled_from_searcher(searcher);
    let unscored = EnableScoring::disabled_from_searcher(searcher);
    let readers = || (0..).zip(searcher.segment_readers()).zip(&columns.segments);
    match (wanted.order, &query.choice) {
        (Order::Score, Some(choice)) if wanted.size <= MAX_PRUNED => {
            let (matching, scored) = (choice.weight(unscored)?, query.scored.weight(scored())?);
            let mut tally = Tally::new(columns, wanted);
            for ((_, reader), segment) in readers() {
                let count = |docs: &[DocId]| tally.count(docs, segment, wanted);
                if !for_each_block(&*matching, reader, go_on, count)? {
                    return Ok(None);
                }
            }
            let mut top = Top::new(wanted.size, tally);
            for ((number, reader), segment) in readers() {
                if !top.add(&*scored, reader, (number, segment), wanted, go_on)? {
                    return Ok(None);
                }
            }
            Ok(Some(top.finish()))
        }
        (order, _) => {
            let weight = match order {
                Order::Score => query.scored.weight(scored())?,
                Order::Newest => query
                    .choice
                    .as_ref()
                    .unwrap_or(&query.scored)
                    .weight(unscored)?,
            };
            let mut harvest = Harvest::new(columns, wanted);
            for ((number, reader), segment) in readers() {
                if !harvest.collect(&*weight, reader, (number, segment), wanted, go_on)? {
                    return Ok(None);
                }
            }
            Ok(Some(harvest.finish(wanted.size)))
        }
    }
}

/// Calls `each` with the matching live documents, block by block; false if the search was stopped.
pub(crate) fn for_each_block(
    weight: &dyn Weight,
    reader: &SegmentReader,
    go_on: &GoOn,
    mut each: impl FnMut(&[DocId]),
) -> tantivy::Result<bool> {
    let alive = reader.alive_bitset();
    let mut scorer = weight.scorer(reader, 1.0)?;
    let mut buffer = [0; COLLECT_BLOCK_BUFFER_LEN];
    let mut n_matches = 0;
    loop {
        if n_matches % MATCHES_PER_LOOK == 0 && !go_on() {
            return Ok(false);
        }
        let n = scorer.fill_buffer(&mut buffer);
        n_matches += n;
        match alive {
            None => each(&buffer[..n]),
            Some(alive) => {
                let mut n_alive = 0;
                for i in 0..n {
                    buffer[n_alive] = buffer[i];
                    n_alive += usize::from(alive.is_alive(buffer[i]));
                }
                each(&buffer[..n_alive]);
            }
        }
        if n < buffer.len() {
            // A stopped phrase has no more matches.
            return Ok(go_on());
        }
    }
}

/// Calls `each` with every matching live document and its rank; false if the search was stopped.
fn for_each(
    weight: &dyn Weight,
    reader: &SegmentReader,
    segment: &Segment,
    (order, go_on): (Order, &GoOn),
    mut each: impl FnMut(DocId, u64),
) -> tantivy::Result<bool> {
    if order == Order::Newest {
        return for_each_block(weight, reader, go_on, |docs| {
            for &doc in docs {
                each(doc, segment.times.first(doc).map_or(0, ordered_time));
            }
        });
    }
    let alive = reader.alive_bitset();
    let mut scorer = weight.scorer(reader, 1.0)?;
    let (mut doc, mut n_matches) = (scorer.doc(), 0);
    while doc != TERMINATED {
        if n_matches % MATCHES_PER_LOOK == 0 && !go_on() {
            return Ok(false);
        }
        n_matches += 1;
        if alive.is_none_or(|alive| alive.is_alive(doc)) {
            each(doc, ordered(scorer.score()));
        }
        doc = scorer.advance();
    }
    Ok(go_on())
}

/// The results collected so far.
struct Harvest {
    n_documents: u64,
    n_singles: u64,
    /// The best documents that represent only themselves, the worst of them on top.
    singles: BinaryHeap<Reverse<Representative>>,
    /// The best document of each matching cluster; kept documents take precedence.
    members: Vec<Representative>,
    /// For each cluster, one more than its index in `members`, or 0.
    slots: Vec<u32>,
}

impl Harvest {
    fn new(columns: &Columns, wanted: &Wanted) -> Self {
        Self {
            n_documents: 0,
            n_singles: 0,
            singles: BinaryHeap::new(),
            members: Vec::new(),
            slots: vec![0; n_slots(columns, wanted)],
        }
    }

    fn collect(
        &mut self,
        weight: &dyn Weight,
        reader: &SegmentReader,
        (number, segment): (SegmentOrdinal, &Segment),
        wanted: &Wanted,
        go_on: &GoOn,
    ) -> tantivy::Result<bool> {
        for_each(
            weight,
            reader,
            segment,
            (wanted.order, go_on),
            |local, key| {
                self.n_documents += 1;
                let place = wanted.place(segment, local);
                let document = || Representative::new(key, place, segment, (number, local));
                match place.cluster() {
                    None => {
                        self.n_singles += 1;
                        if self.may_be_among_best(key, wanted.size) {
                            self.add(document(), wanted.size);
                        }
                    }
                    Some(cluster) => self.add_member(cluster, (place, key), document),
                }
            },
        )
    }

    #[inline]
    fn may_be_among_best(&self, key: u64, size: usize) -> bool {
        let worst = self.singles.peek();
        self.singles.len() < size || worst.is_some_and(|worst| worst.0.ranked.key <= key)
    }

    fn add(&mut self, document: Representative, size: usize) {
        self.singles.push(Reverse(document));
        if self.singles.len() > size {
            self.singles.pop();
        }
    }

    /// Counts a document of a cluster, and keeps it if it is better than the best so far.
    #[inline]
    fn add_member(
        &mut self,
        cluster: usize,
        (place, key): (Place, u64),
        document: impl Fn() -> Representative,
    ) {
        let slot = &mut self.slots[cluster];
        let Some(best) = (*slot as usize).checked_sub(1) else {
            self.members.push(document());
            *slot = self.members.len() as u32;
            return;
        };
        let best = &mut self.members[best];
        best.matches.add(place);
        if (place.is_first(), key) < (best.place.is_first(), best.ranked.key) {
            return;
        }
        let document = document();
        if (place.is_first(), document) > (best.place.is_first(), *best) {
            let matches = best.matches;
            *best = Representative {
                matches,
                ..document
            };
        }
    }

    fn finish(mut self, size: usize) -> Ranking {
        let n_results = self.n_singles + self.members.len() as u64;
        for best in std::mem::take(&mut self.members) {
            if self.may_be_among_best(best.ranked.key, size) {
                self.add(best, size);
            }
        }
        let best = self.singles.into_sorted_vec();
        Ranking {
            n_documents: self.n_documents,
            n_results,
            best: best.into_iter().map(|Reverse(document)| document).collect(),
        }
    }
}

fn n_slots(columns: &Columns, wanted: &Wanted) -> usize {
    match wanted.collapse {
        Collapse::Content => columns.n_groups.unwrap_or(columns.n_clusters),
        Collapse::Same => columns.n_clusters,
        Collapse::Nothing => 0,
    }
}

/// Number of matching documents, in total and per cluster.
struct Tally {
    n_documents: u64,
    n_results: u64,
    clusters: Vec<Matches>,
    /// For each cluster, whether its kept document matches.
    is_kept_found: Vec<bool>,
}

impl Tally {
    fn new(columns: &Columns, wanted: &Wanted) -> Self {
        let n_slots = n_slots(columns, wanted);
        Self {
            n_documents: 0,
            n_results: 0,
            clusters: vec![Matches::default(); n_slots],
            is_kept_found: vec![false; n_slots],
        }
    }

    fn count(&mut self, docs: &[DocId], segment: &Segment, wanted: &Wanted) {
        self.n_documents += docs.len() as u64;
        for &doc in docs {
            let place = wanted.place(segment, doc);
            match place.cluster() {
                None => self.n_results += 1,
                Some(cluster) => {
                    let matches = &mut self.clusters[cluster];
                    self.n_results += u64::from(matches.n_documents == 0);
                    matches.add(place);
                    self.is_kept_found[cluster] |= place.is_first();
                }
            }
        }
    }
}

/// The best results so far, after all matches have been counted.
struct Top {
    size: usize,
    tally: Tally,
    /// Best first.
    best: Vec<Representative>,
}

impl Top {
    fn new(size: usize, tally: Tally) -> Self {
        let best = Vec::with_capacity(size + 1);
        Self { size, tally, best }
    }

    fn add(
        &mut self,
        weight: &dyn Weight,
        reader: &SegmentReader,
        (number, segment): (SegmentOrdinal, &Segment),
        wanted: &Wanted,
        go_on: &GoOn,
    ) -> tantivy::Result<bool> {
        let alive = reader.alive_bitset();
        let (mut n_matches, mut is_stopped) = (0, false);
        weight.for_each_pruning(self.threshold(), reader, &mut |local, score| {
            if n_matches % MATCHES_PER_LOOK == 0 {
                is_stopped |= !go_on();
            }
            n_matches += 1;
            if is_stopped {
                // No score is greater, so the remaining documents are skipped.
                return Score::INFINITY;
            }
            if alive.is_none_or(|alive| alive.is_alive(local)) {
                let (key, place) = (ordered(score), wanted.place(segment, local));
                let document = Representative::new(key, place, segment, (number, local));
                self.offer(document);
            }
            self.threshold()
        })?;
        Ok(!is_stopped)
    }

    /// Documents with scores up to this are skipped.
    fn threshold(&self) -> Score {
        match self.best.last() {
            Some(worst) if self.best.len() == self.size => score_of(worst.ranked.key).next_down(),
            _ => Score::MIN,
        }
    }

    fn offer(&mut self, mut document: Representative) {
        let cluster = document.place.cluster();
        if let Some(cluster) = cluster {
            if self.tally.is_kept_found[cluster] && !document.place.is_first() {
                return;
            }
            document.matches = self.tally.clusters[cluster];
            // If another document of its cluster is there, the better one stays.
            let mut held = self.best.iter();
            if let Some(at) = held.position(|other| other.place.cluster() == Some(cluster)) {
                if self.best[at] >= document {
                    return;
                }
                self.best.remove(at);
            }
        }
        let at = self.best.partition_point(|other| *other > document);
        self.best.insert(at, document);
        self.best.truncate(self.size);
    }

    fn finish(self) -> Ranking {
        Ranking {
            n_documents: self.tally.n_documents,
            n_results: self.tally.n_results,
            best: self.best,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn keys_are_ordered_as_scores(a in 0_f32..1e6, b in 0_f32..1e6) {
            prop_assert!(ordered(a) == ordered(b) || ordered(a).cmp(&ordered(b)) == a.total_cmp(&b));
            let kept = score_of(ordered(a));
            prop_assert!(kept <= a && a - kept <= a / 32_768.0, "{a} {kept}");
            prop_assert_eq!(ordered(kept), ordered(a));
            prop_assert!(a == 0.0 || ordered(kept.next_down()) < ordered(a));
        }

        #[test]
        fn keys_are_ordered_as_times(a: i64, b: i64) {
            prop_assert_eq!(ordered_time(a).cmp(&ordered_time(b)), a.cmp(&b));
        }
    }
}
