//! Scores a run against the ground truth.
//!
//! *Question.* A run has written its pairs, its clusters and the dropped documents. How much of the
//! ground truth did it find, how much of what it found is correct, and was a document dropped that
//! should not be?
//!
//! *Idea.* The ground truth lists all similar pairs with their exact Jaccard similarities. The rest
//! is counting:
//!
//! - *pairs*: listed pairs that reach the threshold, divided by all listed pairs (precision) and by
//!   all true pairs that do (recall), with the recall by similarity as well. Exact duplicates are
//!   one document: a run that collapses them first lists one pair for all of theirs. The recall of
//!   a run that lists only the pairs verified to decide is not known;
//! - *documents*: documents that have a duplicate according to the run, and according to the ground
//!   truth;
//! - *kept*: similar pairs of which both documents are kept, which a run has missed;
//! - *closure*: pairs inside clusters, of which two dropped documents need not be similar;
//! - *removal*: each dropped document must be similar to the one kept in its place, which must
//!   itself be kept;
//! - *rules*: pairs by the rule that accepted them and by whether they are on the same site. A rule
//!   on sketches does not follow the Jaccard similarity, so pairs are also counted by whether they
//!   were planted as a duplicate or as a template that only looks like one.
//!
//! *Cost.* Memory of about 40 bytes per document, 24 per pair of the ground truth and 8 per pair
//! found; time for reading the files and sorting. *Error.* None, if the ground truth is complete
//! down to the threshold.
//!
//! *Not for* a ground truth by another score: lists counted with other shingles disagree.

mod output;
mod truth;

use std::collections::BTreeMap;
use std::path::PathBuf;

use arose::Threshold;
use arose::rule::SiteRelation;

use super::Error;
use super::metric::ratio;
use super::plant::FamilyKind;
use output::{Documents, FoundPair, RunSettings};
use truth::{True, Truth};

/// A run and its ground truth.
#[derive(Debug, Clone)]
pub struct ScoreConfig {
    /// The output directory of a run.
    pub folder: PathBuf,
    /// The similar pairs: JSON Lines with `a`, `b`, `jaccard` and optionally `kind`, or the first
    /// three separated by tabs.
    pub truth: PathBuf,
    /// The threshold. Default: that of the run, or else 0.8.
    pub threshold: Option<Threshold>,
}

/// A count out of a total.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Share {
    /// The count.
    pub part: u64,
    /// The total.
    pub whole: u64,
}

impl Share {
    /// Returns the share; none if the total is zero.
    #[must_use]
    pub fn value(&self) -> Option<f64> {
        ratio(self.part, self.whole)
    }

    fn count(&mut self, counts: bool) {
        self.part += u64::from(counts);
        self.whole += 1;
    }
}

/// The scores of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunScore {
    /// The policy in the run's summary.
    pub policy: Option<String>,
    /// The threshold of similar pairs.
    pub threshold: Threshold,
    /// Tokens per shingle of the run and of the ground truth, if both are known and differ.
    pub other_w: Option<[u64; 2]>,
    /// Documents that the run read.
    pub n_documents: u64,
    /// Pairs of the ground truth with a document that the run did not read.
    pub n_unread: u64,
    /// Whether the run lists all pairs. If not, the recall of pairs is not known: `pair_recall`,
    /// `bins` and `kinds` are empty.
    pub lists_all_pairs: bool,
    /// Similar pairs that were found.
    pub pair_recall: Share,
    /// Found pairs that are similar.
    pub pair_precision: Share,
    /// Found pairs that are not in the ground truth.
    pub n_unlisted: u64,
    /// Documents with a similar document for which the run also found one.
    pub document_recall: Share,
    /// Documents for which the run found a similar document and that have one.
    pub document_precision: Share,
    /// Similar pairs that are in one cluster.
    pub closure_recall: Share,
    /// Pairs of one cluster that are similar.
    pub closure_precision: Share,
    /// Similar pairs of which both documents are kept.
    pub both_kept: Share,
    /// Pairs found, by similarity in the ground truth; from [`BINS`].
    pub bins: Vec<Share>,
    /// Pairs found, by kind of planted duplicate.
    pub kinds: BTreeMap<FamilyKind, Share>,
    /// The pairs that each rule accepted.
    pub rules: BTreeMap<(String, Place), RuleRow>,
    /// The dropped documents.
    pub removal: Removal,
    /// Found pairs with a similarity in the ground truth, and their maximum difference.
    pub coefficients: (u64, f64),
}

/// Starts of the similarity ranges. The last one contains only equal sets.
pub const BINS: [f64; 12] = [
    0.0, 0.3, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.98, 1.0,
];

/// The relation of the sites of the two pages of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// On one site.
    SameSite,
    /// On two sites.
    CrossSite,
    /// Unknown.
    Unknown,
}

impl Place {
    /// Returns the name in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SameSite => "same",
            Self::CrossSite => "cross",
            Self::Unknown => "unknown",
        }
    }
}

impl From<SiteRelation> for Place {
    fn from(relation: SiteRelation) -> Self {
        match relation {
            SiteRelation::Same => Self::SameSite,
            SiteRelation::Different => Self::CrossSite,
            SiteRelation::Unknown => Self::Unknown,
        }
    }
}

/// The pairs that one rule accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RuleRow {
    /// Those that are similar in the ground truth.
    pub similar: Share,
    /// Those planted as duplicates, among those whose kind is known.
    pub copies: Share,
}

/// Dropped documents, and errors among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Removal {
    /// Documents dropped.
    pub n_dropped: u64,
    /// Of these, dropped for a document that is itself dropped or does not exist.
    pub n_for_dropped: u64,
    /// Of these, dropped for a document with which the run lists no pair.
    pub n_unlisted: u64,
    /// Of these, dropped by Jaccard similarity for a document that is not similar in the ground
    /// truth, at the run's own threshold.
    pub n_dissimilar: u64,
}

impl Removal {
    /// Returns whether every dropped document was dropped correctly.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.n_for_dropped == 0 && self.n_unlisted == 0 && self.n_dissimilar == 0
    }
}

/// Scores the output of a run.
///
/// # Errors
///
/// If a file cannot be read, or if ground truth and run are about different corpora.
pub fn score(config: &ScoreConfig) -> Result<RunScore, Error> {
    let settings = RunSettings::read(&config.folder)?;
    let fallback = || Threshold::new(0.8).expect("it lies in 0..=1");
    let threshold = config
        .threshold
        .or(settings.threshold)
        .unwrap_or_else(fallback);
    let documents = Documents::read(&config.folder)?;
    let truth = Truth::read(&config.truth, &documents)?;
    let mut tally = Tallies::new(documents, truth, threshold);
    tally.promised = settings.threshold.unwrap_or(threshold);
    tally.is_against_index = settings.is_against_index;
    tally.lists_some = settings.lists_some;
    output::for_each_pair(&config.folder, |pair| tally.take(&pair))?;
    let truth_w = truth::shingle_length(&config.truth);
    let both = settings.w.zip(truth_w).map(|(run, truth)| [run, truth]);
    let other_w = both.filter(|[run, truth]| run != truth);
    Ok(tally.finish(settings.policy, other_w))
}

/// Counts while the found pairs are processed.
struct Tallies {
    documents: Documents,
    truth: Truth,
    threshold: Threshold,
    /// The threshold of the run itself.
    promised: Threshold,
    /// Whether the run dropped documents already in an index, which the ground truth does not
    /// contain.
    is_against_index: bool,
    /// Whether the run does not list all pairs.
    lists_some: bool,
    /// The found pairs, each as the first documents of their contents.
    found: Vec<(u32, u32)>,
    /// Documents that occur in a found pair.
    flagged: Vec<bool>,
    precision: Share,
    n_unlisted: u64,
    rules: BTreeMap<(String, Place), RuleRow>,
    coefficients: (u64, f64),
}

impl Tallies {
    fn new(documents: Documents, truth: Truth, threshold: Threshold) -> Self {
        Self {
            flagged: documents.in_exact_classes(),
            documents,
            truth,
            threshold,
            promised: threshold,
            is_against_index: false,
            lists_some: false,
            found: Vec::new(),
            precision: Share::default(),
            n_unlisted: 0,
            rules: BTreeMap::new(),
            coefficients: (0, 0.0),
        }
    }

    fn take(&mut self, pair: &FoundPair<'_>) -> Result<(), String> {
        let n = self.documents.len() as u64;
        let (a, b) = match (pair.a < n, pair.b < n, pair.a == pair.b) {
            (true, true, false) => (pair.a as u32, pair.b as u32),
            _ => {
                return Err(format!(
                    "{} and {} are not a pair of documents",
                    pair.a, pair.b
                ));
            }
        };
        self.flagged[a as usize] = true;
        self.flagged[b as usize] = true;
        self.found.extend(self.documents.class_pair(a, b));
        let listed = self.truth.find(a, b);
        let is_equal = self.documents.are_equal(a, b);
        let jaccard = if is_equal {
            Some(1.0)
        } else {
            listed.map(|truth| truth.jaccard)
        };
        let is_similar = jaccard.is_some_and(|jaccard| self.threshold.reached_by(jaccard));
        self.precision.count(is_similar);
        self.n_unlisted += u64::from(jaccard.is_none());
        if let Some((found, listed)) = pair.jaccard.zip(jaccard) {
            let difference = (found - listed).abs().max(self.coefficients.1);
            self.coefficients = (self.coefficients.0 + 1, difference);
        }
        let place = self.documents.relation(a, b).into();
        let row = self.rules.entry((pair.rule.to_owned(), place)).or_default();
        row.similar.count(is_similar);
        match listed.map(|truth| truth.kind) {
            Some(Some(kind)) => row.copies.count(kind.is_copy()),
            // Pages of two families are not duplicates, unless the ground truth has no kinds.
            None if self.truth.has_kinds => row.copies.count(is_equal),
            _ => {}
        }
        Ok(())
    }

    fn finish(mut self, policy: Option<String>, other_w: Option<[u64; 2]>) -> RunScore {
        self.found.sort_unstable();
        self.found.dedup();
        let removal = self.removal();
        let mut score = RunScore {
            policy,
            threshold: self.threshold,
            other_w,
            n_documents: self.documents.len() as u64,
            n_unread: self.truth.n_unread,
            lists_all_pairs: !self.lists_some,
            pair_recall: Share::default(),
            pair_precision: self.precision,
            n_unlisted: self.n_unlisted,
            document_recall: Share::default(),
            document_precision: Share::default(),
            closure_recall: Share::default(),
            closure_precision: Share::default(),
            both_kept: Share::default(),
            bins: vec![Share::default(); BINS.len()],
            kinds: BTreeMap::new(),
            rules: std::mem::take(&mut self.rules),
            removal,
            coefficients: self.coefficients,
        };
        self.count_truth(&mut score);
        score
    }

    /// Processes the ground truth once for recall, closure and documents.
    fn count_truth(&self, score: &mut RunScore) {
        let mut has_partner = vec![false; self.documents.len()];
        for truth in &self.truth.pairs {
            if !self.lists_some {
                self.count_found(truth, score);
            }
            if self.threshold.reached_by(truth.jaccard) {
                let clusters = [truth.a, truth.b].map(|doc| self.documents.cluster(doc));
                let kept = [truth.a, truth.b].map(|doc| self.documents.is_kept(doc));
                score.both_kept.count(kept == [true, true]);
                score.closure_recall.count(clusters[0] == clusters[1]);
                has_partner[truth.a as usize] = true;
                has_partner[truth.b as usize] = true;
            }
        }
        if !self.lists_some {
            // A pair of a document that was not read counts as not found.
            score.pair_recall.whole += self.truth.n_unread_similar(self.threshold);
        }
        score.closure_precision = Share {
            part: score.closure_recall.part,
            whole: self.documents.n_pairs_in_clusters(),
        };
        for (&is_flagged, &has_partner) in self.flagged.iter().zip(&has_partner) {
            if has_partner {
                score.document_recall.count(is_flagged);
            }
            if is_flagged {
                score.document_precision.count(has_partner);
            }
        }
    }

    /// Counts whether a pair of the ground truth was found.
    fn count_found(&self, truth: &True, score: &mut RunScore) {
        let is_found = self.is_found(truth.a, truth.b);
        score.bins[bin(truth.jaccard)].count(is_found);
        if let Some(kind) = truth.kind {
            score.kinds.entry(kind).or_default().count(is_found);
        }
        if self.threshold.reached_by(truth.jaccard) {
            score.pair_recall.count(is_found);
        }
    }

    fn is_found(&self, a: u32, b: u32) -> bool {
        let pair = self.documents.class_pair(a, b);
        pair.is_none_or(|pair| self.found.binary_search(&pair).is_ok())
    }

    fn removal(&self) -> Removal {
        let mut removal = Removal::default();
        for (doc, kept_doc, by_jaccard) in self.documents.dropped() {
            if self.is_against_index && kept_doc.is_none() {
                continue;
            }
            removal.n_dropped += 1;
            let Some(kept) = kept_doc.filter(|&kept| self.documents.is_kept(kept)) else {
                removal.n_for_dropped += 1;
                continue;
            };
            removal.n_unlisted += u64::from(!self.is_found(doc, kept));
            let listed = self.truth.find(doc, kept);
            let is_similar = self.documents.are_equal(doc, kept)
                || listed.is_some_and(|truth| self.promised.reached_by(truth.jaccard));
            removal.n_dissimilar += u64::from(by_jaccard && !is_similar);
        }
        removal
    }
}

fn bin(jaccard: f64) -> usize {
    BINS.partition_point(|&begin| begin <= jaccard)
        .saturating_sub(1)
}

/// Returns the host of a URL, with its port.
pub(crate) fn host(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    let host = authority.rsplit('@').next()?;
    (!host.is_empty()).then_some(host)
}

#[cfg(test)]
mod tests;
