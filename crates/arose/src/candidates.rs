//! Candidate pairs, from tables of (key, document).
//!
//! *Question.* Every document has several keys: super-shingles, mega-shingles, bands, or the values
//! of a sketch. Which pairs of documents share a key, and how many keys do they share?
//!
//! *Idea.* Sort the table by key, so that documents with the same key form a *bucket*. A bucket of
//! `L` documents is `L (L - 1) / 2` pairs (not the `L - 1` pairs of neighbours). There are three
//! ways to use it:
//!
//! - [`candidate_pairs`]: pairs that share any key. Buckets larger than a cap are not expanded,
//!   since a key that 100,000 pages share would make 5 billion pairs. Instead, each member is
//!   linked to the smallest ID, a *star*, and the bucket is reported with the number of pairs lost.
//! - [`similar_pairs`]: pairs that match in at least `r` of `k` super-shingles. Any `k - r + 1` of
//!   the `k` tables contain every such pair, so only those are sorted.
//! - [`common_values`]: the number of sketch values that two documents share, and from that their
//!   similarity. Very common values make no pairs. They still count in the sizes of the sketches,
//!   and in the common values of pairs found through a rarer value, so every similarity is that of
//!   the complete sketches.
//!
//! *Papers.* Broder, Glassman, Manasse & Zweig 1997 (the counting); Henzinger 2006 and
//! Vassilvitskii 2007 (sorted tables of super-shingles).
//!
//! *Parameters.* `cap`, the size of the largest bucket that is expanded: [`DEFAULT_CAP`].
//!
//! *Cost.* One sort of the entries and one of the pairs; 16 bytes per entry and 16 per pair, in
//! memory. *Error.* None except for the pairs that large buckets report as lost. The output is
//! sorted and does not depend on the order of the input.
//!
//! *Not for* tables larger than memory, where the same passes run as external sorts.

use std::collections::BTreeMap;

use crate::feature::b_sim;
use crate::slot_index::n_probes;
use crate::{DocId, Error, Threshold};

/// The size of the largest bucket that is expanded to all its pairs.
pub const DEFAULT_CAP: usize = 1000;

/// Two documents, `a` before `b`, that may be similar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Candidate {
    /// The document with the smaller ID.
    pub a: DocId,
    /// The document with the larger id.
    pub b: DocId,
}

impl Candidate {
    /// Returns the pair of two documents in either order; none if they are the same.
    #[must_use]
    pub fn new(one: DocId, other: DocId) -> Option<Self> {
        let (a, b) = (one.min(other), one.max(other));
        (a != b).then_some(Self { a, b })
    }
}

/// A bucket too large to expand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LongRun {
    /// The key they share.
    pub key: u64,
    /// The number of documents that share it.
    pub n_docs: usize,
    /// The number of pairs that this bucket did not yield. Other keys may have yielded some of
    /// them.
    pub n_pairs_lost: u64,
}

/// The pairs that share a key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Candidates {
    /// Every pair once, sorted.
    pub pairs: Vec<Candidate>,
    /// The buckets that became stars, by key.
    pub long_runs: Vec<LongRun>,
}

/// Returns the pairs of documents that share a key. Buckets larger than `cap` become stars.
///
/// A document that has a key twice counts once.
///
/// ```
/// use arose::{DocId, candidates::candidate_pairs};
/// let entries = [(7, 3), (5, 1), (7, 2), (7, 9)].map(|(key, doc)| (key, DocId(doc)));
/// let found = candidate_pairs(entries.to_vec(), 1000);
/// let pairs: Vec<_> = found.pairs.iter().map(|pair| (pair.a.0, pair.b.0)).collect();
/// assert_eq!(pairs, [(2, 3), (2, 9), (3, 9)]);
/// ```
#[must_use]
pub fn candidate_pairs(mut entries: Vec<(u64, DocId)>, cap: usize) -> Candidates {
    let mut found = Candidates::default();
    for run in sorted_runs(&mut entries) {
        if run.len() <= cap {
            append_pairs(run, &mut found.pairs);
        } else {
            append_star(run, &mut found.pairs);
            let n_pairs_lost = n_pairs(run.len()) - (run.len() as u64 - 1);
            found.long_runs.push(LongRun {
                key: run[0].0,
                n_docs: run.len(),
                n_pairs_lost,
            });
        }
    }
    found.pairs.sort_unstable();
    found.pairs.dedup();
    found
}

/// Returns table `j` of the super-shingles: (super-shingle `j`, document), sorted. Rows without
/// such a super-shingle are left out.
#[must_use]
pub fn sorted_table<F: AsRef<[u64]>>(rows: &[(DocId, F)], j: usize) -> Vec<(u64, DocId)> {
    let entry = |row: &(DocId, F)| row.1.as_ref().get(j).map(|&feature| (feature, row.0));
    let mut table: Vec<(u64, DocId)> = rows.iter().filter_map(entry).collect();
    table.sort_unstable();
    table
}

/// Pairs with enough matching super-shingles.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SimilarPairs {
    /// Every pair once with its B-sim, sorted.
    pub pairs: Vec<(Candidate, usize)>,
    /// The buckets that became stars, table by table.
    pub long_runs: Vec<LongRun>,
}

/// Returns the pairs of documents that match in at least `r` of their `k` super-shingles.
///
/// # Errors
///
/// Returns an error if `r` is not in `1..=k`, rows differ in length, or a document has two rows.
///
/// ```
/// use arose::{DocId, candidates::{DEFAULT_CAP, similar_pairs}};
/// let rows = [(DocId(2), [4523, 5498, 8754]), (DocId(3), [5487, 5498, 8754])];
/// assert_eq!(similar_pairs(&rows, 2, DEFAULT_CAP)?.pairs[0].1, 2);
/// # Ok::<(), arose::Error>(())
/// ```
pub fn similar_pairs<F: AsRef<[u64]>>(
    rows: &[(DocId, F)],
    r: usize,
    cap: usize,
) -> Result<SimilarPairs, Error> {
    let Some((_, first)) = rows.first() else {
        return Ok(SimilarPairs::default());
    };
    let k = first.as_ref().len();
    if !(1..=k).contains(&r) {
        return Err(Error::parameter("r", r, "1 up to the number of features"));
    }
    let features = features_by_doc(rows, k)?;
    let mut candidates = Candidates::default();
    for j in 0..n_probes(k, r) {
        let found = candidate_pairs(sorted_table(rows, j), cap);
        candidates.pairs.extend(found.pairs);
        candidates.long_runs.extend(found.long_runs);
    }
    candidates.pairs.sort_unstable();
    candidates.pairs.dedup();
    let with_b_sim = candidates.pairs.into_iter().map(|pair| {
        let similarity = b_sim(features[&pair.a], features[&pair.b]);
        (pair, similarity)
    });
    let pairs = with_b_sim
        .filter(|&(_, similarity)| similarity >= r)
        .collect();
    Ok(SimilarPairs {
        pairs,
        long_runs: candidates.long_runs,
    })
}

fn features_by_doc<F: AsRef<[u64]>>(
    rows: &[(DocId, F)],
    k: usize,
) -> Result<BTreeMap<DocId, &[u64]>, Error> {
    let mut by_doc = BTreeMap::new();
    for (doc, features) in rows {
        let features = features.as_ref();
        if features.len() != k {
            return Err(Error::parameter(
                "features",
                features.len(),
                "as many in every row",
            ));
        }
        if by_doc.insert(*doc, features).is_some() {
            return Err(Error::parameter("doc", doc, "one row per document"));
        }
    }
    Ok(by_doc)
}

/// The values that two documents share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PairCount {
    /// The documents.
    pub pair: Candidate,
    /// The number of values in both sketches, ignored ones included.
    pub n_common: usize,
    /// The number of those that were ignored because they are too common.
    pub n_common_ignored: usize,
    /// The number of values in either sketch.
    pub n_union: usize,
}

impl PairCount {
    /// Returns the share of common values: an unbiased estimate of the similarity for sketches that
    /// sample by value (mod-m), and the similarity itself for whole shingle sets.
    ///
    /// Not for sketches of the `s` smallest values, for which this ratio is biased.
    #[must_use]
    pub fn jaccard(&self) -> f64 {
        self.n_common as f64 / self.n_union as f64
    }
}

/// The values of one document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DocCount {
    /// The document.
    pub doc: DocId,
    /// The number of values in its sketch.
    pub n_values: usize,
    /// The number of them that were ignored because they are too common.
    pub n_ignored: usize,
}

impl DocCount {
    /// Returns whether more than half of the values were ignored, so that duplicates may have been
    /// missed. Compare such a document by exact digest and super-shingles instead.
    #[must_use]
    pub fn needs_fallback(&self) -> bool {
        self.n_ignored > self.n_values / 2
    }
}

/// The common values of all pairs of documents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommonValues {
    /// The pairs that share a value that was not ignored, sorted.
    pub pairs: Vec<PairCount>,
    /// Every document, sorted.
    pub docs: Vec<DocCount>,
    /// The values that were ignored, sorted.
    pub ignored: Vec<LongRun>,
}

impl CommonValues {
    /// Returns the pairs whose similarity reaches the threshold.
    pub fn similar(&self, threshold: Threshold) -> impl Iterator<Item = &PairCount> {
        self.pairs
            .iter()
            .filter(move |count| threshold.reached_by(count.jaccard()))
    }

    fn doc(&self, doc: DocId) -> Option<&DocCount> {
        let place = self.docs.binary_search_by_key(&doc, |count| count.doc);
        place.ok().map(|i| &self.docs[i])
    }
}

/// Counts the common values of all pairs from a table of (value, document).
///
/// Values of more than `cap` documents make no pairs. Pairs that share only such values are
/// missing; all others are counted completely. A document that has a value twice counts once.
///
/// ```
/// use arose::{DocId, candidates::common_values};
/// let entries = [(1, 0), (2, 0), (3, 0), (2, 1), (3, 1), (4, 1)];
/// let found = common_values(entries.map(|(value, doc)| (value, DocId(doc))).to_vec(), 1000);
/// assert_eq!(found.pairs[0].jaccard(), 0.5);
/// ```
#[must_use]
pub fn common_values(mut entries: Vec<(u64, DocId)>, cap: usize) -> CommonValues {
    let mut pairs = Vec::new();
    let mut ignored = Vec::new();
    let mut ignored_values: Vec<(DocId, u64)> = Vec::new();
    for run in sorted_runs(&mut entries) {
        if run.len() <= cap {
            append_pairs(run, &mut pairs);
        } else {
            let n_pairs_lost = n_pairs(run.len());
            ignored.push(LongRun {
                key: run[0].0,
                n_docs: run.len(),
                n_pairs_lost,
            });
            ignored_values.extend(run.iter().map(|&(value, doc)| (doc, value)));
        }
    }
    pairs.sort_unstable();
    ignored_values.sort_unstable();
    let docs = doc_counts(&entries, &ignored_values);
    let mut found = CommonValues {
        pairs: Vec::new(),
        docs,
        ignored,
    };
    for run in pairs.chunk_by(|x, y| x == y) {
        let count = pair_count(run[0], run.len(), &found, &ignored_values);
        found.pairs.push(count);
    }
    found
}

fn doc_counts(entries: &[(u64, DocId)], ignored_values: &[(DocId, u64)]) -> Vec<DocCount> {
    let mut docs: Vec<DocId> = entries.iter().map(|&(_, doc)| doc).collect();
    docs.sort_unstable();
    let count = |run: &[DocId]| DocCount {
        doc: run[0],
        n_values: run.len(),
        n_ignored: values_of(run[0], ignored_values).len(),
    };
    docs.chunk_by(|x, y| x == y).map(count).collect()
}

fn pair_count(
    pair: Candidate,
    n_expanded: usize,
    found: &CommonValues,
    ignored_values: &[(DocId, u64)],
) -> PairCount {
    let n_values = |doc| found.doc(doc).map_or(0, |count| count.n_values);
    let (a, b) = (
        values_of(pair.a, ignored_values),
        values_of(pair.b, ignored_values),
    );
    let n_common_ignored = n_common_values(a, b);
    let n_common = n_expanded + n_common_ignored;
    let n_union = n_values(pair.a) + n_values(pair.b) - n_common;
    PairCount {
        pair,
        n_common,
        n_common_ignored,
        n_union,
    }
}

/// Returns the rows of one document in a sorted table.
fn values_of(doc: DocId, table: &[(DocId, u64)]) -> &[(DocId, u64)] {
    let start = table.partition_point(|entry| entry.0 < doc);
    let length = table[start..].partition_point(|entry| entry.0 == doc);
    &table[start..start + length]
}

/// Returns the number of values that two sorted lists share.
fn n_common_values(a: &[(DocId, u64)], b: &[(DocId, u64)]) -> usize {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    let is_in_long = |value| long.binary_search_by_key(&value, |entry| entry.1).is_ok();
    short.iter().filter(|entry| is_in_long(entry.1)).count()
}

/// Sorts the entries, removes repeated ones, and yields the buckets.
fn sorted_runs(entries: &mut Vec<(u64, DocId)>) -> impl Iterator<Item = &[(u64, DocId)]> {
    entries.sort_unstable();
    entries.dedup();
    entries.chunk_by(|x, y| x.0 == y.0)
}

fn append_pairs(run: &[(u64, DocId)], pairs: &mut Vec<Candidate>) {
    for (i, &(_, a)) in run.iter().enumerate() {
        pairs.extend(run[i + 1..].iter().map(|&(_, b)| Candidate { a, b }));
    }
}

fn append_star(run: &[(u64, DocId)], pairs: &mut Vec<Candidate>) {
    if let Some((&(_, a), rest)) = run.split_first() {
        pairs.extend(rest.iter().map(|&(_, b)| Candidate { a, b }));
    }
}

/// Returns the number of pairs among `n` documents.
fn n_pairs(n: usize) -> u64 {
    let n = n as u64;
    (n * n.saturating_sub(1)) / 2
}

#[cfg(test)]
mod tests;
