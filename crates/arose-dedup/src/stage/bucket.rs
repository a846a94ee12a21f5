//! Candidates among the documents that share a key, at a cost linear in their number.
//!
//! *Question.* All documents of a bucket may be duplicates of each other. Which pairs must be
//! verified, so that each document is compared with one for which it may be dropped?
//!
//! *Idea.* Comparing all pairs takes `n^2 / 2` comparisons, and a template with `n` pages has as
//! many pairs. Instead, documents are processed one by one and compared with the *leaders* of the
//! bucket. A document is a follower if it is surely similar to a leader, or may be similar to
//! [`N_ENOUGH`] leaders. It becomes a candidate of the first leader to which it may be similar and
//! of its [`N_CLOSEST`] closest leaders, and is not compared with other documents. Any other
//! document becomes a leader, and a candidate of up to [`N_RIVALS`] of the leaders before it. All
//! pairs of small buckets ([`N_SMALL`]) are compared.
//!
//! The number of leaders is bounded ([`max_leaders`]). Beyond it, documents without a leader are
//! also compared with the [`N_NEIGHBOURS`] preceding documents of this kind. The pairs that were
//! not compared are counted.
//!
//! *Cost.* `O(n)` candidates; time and memory for at most [`max_leaders`] sketches. *Error.* Two
//! followers of one leader are not compared. The clustering stage compensates for this
//! ([`repair`](super::repair)).

use std::cmp::Reverse;
use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::record::{CandidateKey, Ordinal};
use crate::scheme::KeyTables;

/// Maximum size of a bucket of which all pairs are compared, unless the cap is less.
pub(crate) const N_SMALL: usize = 32;
/// Number of leaders of which a follower becomes a candidate, besides the first.
const N_CLOSEST: usize = 3;
/// Number of leaders at which a document that may be similar to them becomes a follower. It is
/// probably similar to one of them, and if all pages were that similar, every document would lead.
const N_ENOUGH: usize = 16;
/// Number of leaders of which a new leader becomes a candidate, besides the first.
const N_RIVALS: usize = 8;
/// Number of preceding documents without a leader with which the next one is compared.
const N_NEIGHBOURS: usize = 16;
/// Number of leaders of the largest buckets, unless the cap is less.
const MIN_LEADERS: usize = 256;

/// A bucket is huge if it is more than this many times as large as the cap.
const HUGE: usize = 4;
/// Number of huge buckets in which a document takes part, besides those in which it is among the
/// first ([`n_always`]). A million documents that share a key share many keys, and later buckets
/// would compare a document with the same leaders again.
pub(crate) const N_HUGE: usize = 2;

/// Returns the number of documents of a huge bucket that always take part in it, so that there are
/// leaders.
pub(crate) fn n_always(cap: usize) -> usize {
    MIN_LEADERS.min(cap)
}

/// Returns whether a bucket of `n` documents is huge.
pub(crate) fn is_huge(n: usize, cap: usize) -> bool {
    n > cap.saturating_mul(HUGE)
}

/// Returns the maximum number of leaders of a bucket of `n` documents. Up to the cap, all documents
/// may lead. Above, there are fewer leaders, so that the cost stays that of a bucket at the cap
/// until only [`MIN_LEADERS`] are left.
fn max_leaders(n: usize, cap: usize) -> usize {
    let shared = cap.saturating_mul(cap) / n.max(1);
    shared.clamp(MIN_LEADERS.min(cap), cap)
}

/// The documents of a bucket so far, processed one by one.
pub(crate) struct Bucket<S> {
    cap: usize,
    /// Number of documents still to come.
    n: usize,
    max_leaders: usize,
    leaders: Vec<(Ordinal, S)>,
    /// The last documents without a leader, oldest first.
    neighbours: VecDeque<(Ordinal, S)>,
    /// Leaders to which the current document may be similar: how close, and which.
    similar: Vec<(Reverse<u32>, usize)>,
    /// Number of documents without a leader when the maximum number of leaders was reached.
    n_unled: u64,
    /// Number of comparisons of such documents with each other, and of those that found a
    /// candidate.
    n_neighbours_tested: u64,
    n_neighbours_similar: u64,
    /// The comparisons in this bucket and the buckets before it.
    tally: Tally,
}

impl<S: Copy> Bucket<S> {
    /// Creates a bucket for `n` documents.
    pub(crate) fn new(n: usize, cap: usize) -> Self {
        Self {
            cap,
            n,
            max_leaders: max_leaders(n, cap),
            leaders: Vec::new(),
            neighbours: VecDeque::new(),
            similar: Vec::new(),
            n_unled: 0,
            n_neighbours_tested: 0,
            n_neighbours_similar: 0,
            tally: Tally::default(),
        }
    }

    /// Begins the next bucket, of `n` documents, and reuses the memory.
    pub(crate) fn begin(&mut self, n: usize) {
        self.end();
        self.n = n;
        self.max_leaders = max_leaders(n, self.cap);
    }

    /// Processes the next document, by ordinal, and adds its candidates to `pairs`.
    pub(crate) fn push<T: KeyTables<Sketch = S>>(
        &mut self,
        tables: &T,
        doc: Ordinal,
        sketch: S,
        pairs: &mut Vec<CandidateKey>,
    ) {
        self.tally.n_tested += self.leaders.len() as u64;
        if self.n <= N_SMALL.min(self.max_leaders) {
            let similar = self
                .leaders
                .iter()
                .filter(|(_, other)| tables.accepts(other, &sketch));
            pairs.extend(similar.map(|&(a, _)| CandidateKey { a, b: doc }));
            self.leaders.push((doc, sketch));
            return;
        }
        self.find_similar(tables, &sketch);
        let is_led = self.similar.len() > N_ENOUGH
            || self
                .similar
                .iter()
                .any(|(Reverse(close), _)| tables.is_sure(*close));
        let is_leader = !is_led && self.leaders.len() < self.max_leaders;
        self.push_similar(doc, if is_leader { N_RIVALS } else { N_CLOSEST }, pairs);
        if is_leader {
            self.leaders.push((doc, sketch));
        } else if !is_led {
            self.push_unled(tables, doc, sketch, pairs);
        }
    }

    fn find_similar<T: KeyTables<Sketch = S>>(&mut self, tables: &T, sketch: &S) {
        self.similar.clear();
        for (place, (_, leader)) in self.leaders.iter().enumerate() {
            if tables.accepts(leader, sketch) {
                let closeness = tables.closeness(leader, sketch);
                self.similar.push((Reverse(closeness), place));
            }
        }
    }

    /// Adds the first similar leader and the `n` closest. The first is the most likely to be kept.
    fn push_similar(&mut self, doc: Ordinal, n: usize, pairs: &mut Vec<CandidateKey>) {
        let Some(&(_, first)) = self.similar.first() else {
            return;
        };
        if self.similar.len() > n {
            self.similar.select_nth_unstable(n);
            self.similar.truncate(n);
        }
        let closest = self.similar.iter().map(|&(_, place)| place);
        let others = closest.filter(|place| *place != first);
        let places = std::iter::once(first).chain(others);
        pairs.extend(places.map(|place| CandidateKey {
            a: self.leaders[place].0,
            b: doc,
        }));
    }

    /// Compares a document that is not similar to any leader with its neighbours.
    fn push_unled<T: KeyTables<Sketch = S>>(
        &mut self,
        tables: &T,
        doc: Ordinal,
        sketch: S,
        pairs: &mut Vec<CandidateKey>,
    ) {
        self.n_unled += 1;
        self.n_neighbours_tested += self.neighbours.len() as u64;
        let similar = self
            .neighbours
            .iter()
            .filter(|(_, other)| tables.accepts(other, &sketch));
        let mut similar: Vec<(Reverse<u32>, Ordinal)> = similar
            .map(|&(a, other)| (Reverse(tables.closeness(&other, &sketch)), a))
            .collect();
        self.n_neighbours_similar += similar.len() as u64;
        similar.sort_unstable();
        let closest = similar.iter().take(N_CLOSEST);
        pairs.extend(closest.map(|&(_, a)| CandidateKey { a, b: doc }));
        if self.neighbours.len() == N_NEIGHBOURS {
            self.neighbours.pop_front();
        }
        self.neighbours.push_back((doc, sketch));
    }

    /// Returns the comparisons in all buckets so far.
    pub(crate) fn finish(mut self) -> Tally {
        self.end();
        self.tally
    }

    fn end(&mut self) {
        self.leaders.clear();
        self.neighbours.clear();
        let n = std::mem::take(&mut self.n_unled);
        let compared = std::mem::take(&mut self.n_neighbours_tested);
        let similar = std::mem::take(&mut self.n_neighbours_similar);
        self.tally.n_tested += compared;
        if n > 0 {
            self.tally.n_capped += 1;
            self.tally.largest_capped = self.tally.largest_capped.max(self.n as u64);
            self.tally.n_unled += n;
            let untested = n * (n - 1) / 2 - compared;
            self.tally.n_untested += untested;
            // Neighbours are equivalent to a random sample.
            self.tally.n_lost += untested as f64 * similar as f64 / compared.max(1) as f64;
        }
    }
}

/// Counts of the comparisons in some buckets.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Tally {
    /// Pairs whose sketches were compared.
    pub(crate) n_tested: u64,
    /// Number of buckets that exceeded the maximum number of leaders.
    pub(crate) n_capped: u64,
    /// Number of documents in the largest of them.
    pub(crate) largest_capped: u64,
    /// Number of documents without a leader in them, each counted once per bucket.
    pub(crate) n_unled: u64,
    /// Number of pairs of those documents that were not compared there.
    pub(crate) n_untested: u64,
    /// An estimate of how many of these pairs would have become candidates.
    pub(crate) n_lost: f64,
}

impl Tally {
    pub(crate) fn add(&mut self, other: &Self) {
        self.n_tested += other.n_tested;
        self.n_capped += other.n_capped;
        self.largest_capped = self.largest_capped.max(other.largest_capped);
        self.n_unled += other.n_unled;
        self.n_untested += other.n_untested;
        self.n_lost += other.n_lost;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arose::mix::SplitMix;

    /// Sketches are numbers: similar within 20 of each other, surely within 5.
    struct Numbers;

    impl KeyTables for Numbers {
        type Sketch = u64;

        fn n_tables(&self) -> u32 {
            1
        }

        fn key(&self, _: u32, _: &u64) -> u64 {
            0
        }

        fn accepts(&self, a: &u64, b: &u64) -> bool {
            a.abs_diff(*b) <= 20
        }

        fn closeness(&self, a: &u64, b: &u64) -> u32 {
            100 - a.abs_diff(*b) as u32
        }

        fn is_sure(&self, closeness: u32) -> bool {
            closeness >= 95
        }
    }

    fn pairs(sketches: &[u64], cap: usize) -> (Vec<CandidateKey>, Tally) {
        let mut bucket = Bucket::new(sketches.len(), cap);
        let mut pairs = Vec::new();
        for (doc, &sketch) in (0..).zip(sketches) {
            bucket.push(&Numbers, doc, sketch, &mut pairs);
        }
        (pairs, bucket.finish())
    }

    #[test]
    fn small_buckets_are_compared_in_full() {
        let (found, tally) = pairs(&[7; 32], 4096);
        assert_eq!(found.len(), 32 * 31 / 2);
        assert_eq!((tally.n_tested, tally.n_capped), (32 * 31 / 2, 0));
    }

    /// However large a bucket of similar documents is, each is compared with the first.
    #[test]
    fn documents_alike_follow_the_first() {
        let (found, tally) = pairs(&[7; 10_000], 4096);
        let expected: Vec<_> = (1..10_000).map(|b| CandidateKey { a: 0, b }).collect();
        assert_eq!(found, expected);
        assert_eq!((tally.n_tested, tally.n_capped), (9_999, 0));
    }

    /// Documents that may be similar, but not surely, are all compared up to the cap.
    #[test]
    fn doubtful_documents_lead() {
        let sketches: Vec<u64> = (0..1000).map(|i| i * 10).collect();
        let (found, tally) = pairs(&sketches, 4096);
        // Two before each document, except the first two.
        assert_eq!(found.len(), 2 * 1000 - 3);
        assert_eq!((tally.n_tested, tally.n_untested), (1000 * 999 / 2, 0));
    }

    #[test]
    fn what_the_cap_leaves_out_is_counted() {
        let sketches: Vec<u64> = (0..1000).map(|i| i * 100).collect();
        let (found, tally) = pairs(&sketches, 300);
        assert!(found.is_empty());
        assert_eq!((tally.n_capped, tally.largest_capped), (1, 1000));
        // 256 leaders, and 744 other documents, each of which is compared with 16 before it.
        assert_eq!(tally.n_unled, 744);
        let compared = 16 * 15 / 2 + (744 - 16) * 16;
        assert_eq!(tally.n_untested, 744 * 743 / 2 - compared);
        assert_eq!(tally.n_tested, 256 * 255 / 2 + 744 * 256 + compared);
    }

    /// For documents in random order, the number of missed candidates is estimated from neighbours.
    #[test]
    fn what_is_lost_is_estimated() {
        let mut random = SplitMix::new(4);
        let sketches: Vec<u64> = (0..3000).map(|_| random.below(1 << 14)).collect();
        let (_, tally) = pairs(&sketches, 300);
        let n_similar = |docs: &[u64]| {
            let alike = |&b: &u64| docs.iter().filter(|a| Numbers.accepts(a, &b)).count();
            (docs.iter().map(alike).sum::<usize>() - docs.len()) as f64 / 2.0
        };
        // Similar documents without a leader nearby.
        let leaders = &sketches[..256];
        let is_unled = |doc: &u64| !leaders.iter().any(|leader| leader.abs_diff(*doc) <= 5);
        let unled: Vec<u64> = sketches[256..].iter().copied().filter(is_unled).collect();
        let expected = n_similar(&unled) * (1.0 - 32.0 / unled.len() as f64);
        assert!(
            (0.8..1.25).contains(&(tally.n_lost / expected)),
            "{} of {expected}",
            tally.n_lost
        );
    }

    #[test]
    fn larger_buckets_have_fewer_leaders() {
        let leaders = [10, 4096, 8192, 65_536, 10_000_000].map(|n| max_leaders(n, 4096));
        assert_eq!(leaders, [4096, 4096, 2048, 256, 256]);
        assert_eq!([5, 1000].map(|n| max_leaders(n, 3)), [3, 3]);
    }
}
