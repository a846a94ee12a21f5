//! Scores every policy against labelled pairs.
//!
//! *Question.* Which of the labelled pairs does each policy call duplicates at each threshold, and
//! with what precision and recall?
//!
//! *Idea.* Profile the documents once for a shingle length, compare the two documents of each pair
//! by every score, and let each policy decide. There is no search for candidates: this scores
//! rules, not the search, so that the only errors are those of the rules.
//!
//! The tables by B-sim and by C-sim are those of Henzinger 2006: what is the precision of B or C on
//! the pairs with just this score? So are the correlation of the two scores, the categories of
//! difference of the pairs that B or C calls similar, and her suggestion to compute C on shingles
//! (the score `c_shingles`).
//!
//! *Cost.* Comparing a pair merges two shingle sets, about 5 µs for 1,000 words each.
//!
//! *Not for* the recall of a search: score a run for that ([`super::run`]).

use std::num::NonZeroUsize;

use arose::Threshold;
use arose::compare::{Comparison, Profile, Profiler};
use arose::content::{self, Content, Level};
use arose::judgement::{
    C_SIM_BINS, Correlation, Interval, Judged, Tally, Verdict, by_b_sim, by_c_sim,
};
use arose::rule::{Criterion, Policy, ShortPolicy, SiteRelation};
use arose::shingle::{CountedShingles, ShingleSet, Shingler, jaccard};
use arose::simhash::Fingerprint384;
use arose::site::SiteKind;

use super::difference::difference;
use super::labelled::{LabelledPairs, MAX_GROUPED};
use super::metric::{Best, Score, auc, best_f1, bootstrap};
use super::run::host;
use crate::RepeatCounter;

/// Number of resamples for the interval of an F1.
const N_BOOTSTRAP: usize = 1000;

/// Number of pairs above which that interval is omitted: it would be narrow, and slow to compute.
const MAX_BOOTSTRAP: usize = 10_000;

/// The settings to evaluate.
#[derive(Debug, Clone)]
pub struct PairsConfig {
    /// Tokens in a shingle.
    pub w: NonZeroUsize,
    /// The thresholds for the Jaccard similarity.
    pub thresholds: Vec<Threshold>,
    /// How short documents are matched.
    pub short: ShortPolicy,
}

/// The results of the rules with shingles of one length.
#[derive(Debug, Clone, PartialEq)]
pub struct Study {
    /// Tokens in a shingle.
    pub w: NonZeroUsize,
    /// Number of all pairs by label.
    pub all: Tally,
    /// How each score orders the pairs.
    pub measures: Vec<MeasureRow>,
    /// The decisions of each policy.
    pub policies: Vec<PolicyRow>,
    /// The labels of pairs of B-sim 2, 3, 4, 5 and 6.
    pub by_b_sim: [Tally; 5],
    /// The labels of pairs in each of [`arose::judgement::C_SIM_BINS`].
    pub by_c_sim: [Tally; 4],
    /// The correlation of B-sim and C-sim.
    pub correlation: Correlation,
    /// The labels of pairs that B or C calls similar, for each of
    /// [`Difference::ALL`](super::difference::Difference::ALL).
    pub by_difference: [Tally; 5],
}

/// A score without a threshold.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasureRow {
    /// Its name.
    pub name: &'static str,
    /// The probability that it ranks a duplicate above a distinct pair.
    pub auc: Option<f64>,
    /// The threshold that would have been best for this set.
    pub best: Option<Best>,
}

/// A policy with its thresholds.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyRow {
    /// Its name on the command line. For the policy `content`, the level from which pairs are
    /// accepted, with `-no-sites` if repeated text of sites has full weight.
    pub name: &'static str,
    /// The threshold, for the policy `jaccard`.
    pub threshold: Option<Threshold>,
    /// The decisions on the pairs.
    pub score: Score,
    /// The interval of the F1 of 95% of samples like this one; none for sets that are too large.
    pub f1_interval: Option<Interval>,
}

/// The scores of a pair.
struct Compared {
    comparison: Comparison,
    counted: Option<f64>,
    /// Matching simhash bits of the shingles.
    c_shingles: Option<u32>,
    /// Weighted by the text that the sites of the set repeat.
    by_site: content::Score,
    site: SiteRelation,
    verdict: Verdict,
}

/// Applies every policy to every pair.
#[must_use]
pub fn study(labelled: &LabelledPairs, config: &PairsConfig) -> Study {
    let compared = compare(labelled, config.w);
    let judged: Vec<Judged> = compared.iter().map(Compared::judged).collect();
    Study {
        w: config.w,
        all: compared.iter().map(|pair| pair.verdict).collect(),
        measures: measures(&compared),
        policies: policies(&compared, config),
        by_b_sim: by_b_sim(&judged),
        by_c_sim: by_c_sim(&judged),
        correlation: correlation(&judged),
        by_difference: by_difference(labelled, &judged),
    }
}

fn correlation(judged: &[Judged]) -> Correlation {
    let mut correlation = Correlation::default();
    for pair in judged {
        correlation.add(pair.b_sim, pair.c_sim);
    }
    correlation
}

fn by_difference(labelled: &LabelledPairs, judged: &[Judged]) -> [Tally; 5] {
    let is_similar = |pair: &Judged| pair.b_sim >= 2 || pair.c_sim >= *C_SIM_BINS[0].start();
    let similar = labelled.pairs.iter().zip(judged);
    let similar = similar.filter(|(_, judged)| is_similar(judged));
    let mut tallies = [Tally::default(); 5];
    for (pair, judged) in similar {
        let [a, b] = [pair.a, pair.b].map(|place| &labelled.documents[place].content);
        tallies[difference(a, b) as usize].extend([judged.verdict]);
    }
    tallies
}

fn compare(labelled: &LabelledPairs, w: NonZeroUsize) -> Vec<Compared> {
    let profiler = Profiler::new(w);
    let shingler = Shingler::new(w);
    let tokens = labelled.documents.iter();
    let tokens = tokens.map(|document| &document.content.tokens);
    let simhashes = tokens.clone().map(|tokens| {
        let mut shingles = Vec::new();
        shingler.shingles_into(&tokens.fingerprints, &mut shingles);
        Fingerprint384::of(&shingles)
    });
    let simhashes: Vec<Option<Fingerprint384>> = simhashes.collect();
    let profiles = labelled.documents.iter();
    let profiles: Vec<Profile> = profiles
        .map(|document| profiler.profile_of_tokens(&document.content.tokens, document.digest))
        .collect();
    let counted: Vec<CountedShingles> = tokens
        .map(|tokens| shingler.counted(&tokens.fingerprints))
        .collect();
    let (contents, mut scorer) = (contents(labelled), content::Scorer::default());
    let hosts = labelled
        .documents
        .iter()
        .map(|document| document.url.as_deref().and_then(host));
    let hosts: Vec<Option<&str>> = hosts.collect();
    labelled
        .pairs
        .iter()
        .map(|pair| Compared {
            comparison: profiler.compare(&profiles[pair.a], &profiles[pair.b]),
            counted: counted[pair.a].jaccard(&counted[pair.b]),
            c_shingles: simhashes[pair.a]
                .zip(simhashes[pair.b])
                .map(|(a, b)| a.c_sim(&b)),
            by_site: scorer.score(&contents[pair.a], &contents[pair.b]),
            site: SiteRelation::of(hosts[pair.a], hosts[pair.b], SiteKind::Henzinger),
            verdict: pair.verdict,
        })
        .collect()
}

/// Returns the contents of all documents, weighted by the text that their sites repeat in the set.
fn contents(labelled: &LabelledPairs) -> Vec<Content> {
    let shingler = content::shingler();
    let shingles = labelled.documents.iter().map(|document| {
        let mut shingles = Vec::new();
        shingler.shingles_into(&document.content.tokens.fingerprints, &mut shingles);
        shingles
    });
    let shingles: Vec<Vec<u64>> = shingles.collect();
    let mut counter = RepeatCounter::new(SiteKind::Registrable);
    for (document, shingles) in labelled.documents.iter().zip(&shingles) {
        counter.push(document.url.as_deref(), document.digest, shingles);
    }
    let repeats = counter.finish();
    let contents = labelled.documents.iter().zip(&shingles);
    contents
        .map(|(document, shingles)| repeats.content(document.url.as_deref(), shingles))
        .collect()
}

impl Compared {
    fn judged(&self) -> Judged {
        Judged {
            b_sim: self.comparison.b_sim,
            c_sim: self.comparison.c_sim.unwrap_or(0),
            verdict: self.verdict,
        }
    }

    /// Returns the share of the smaller set that the larger one contains.
    fn containment(&self) -> f64 {
        let [a, b] = self
            .comparison
            .containment
            .map(|share| share.unwrap_or(0.0));
        a.max(b)
    }
}

fn measures(compared: &[Compared]) -> Vec<MeasureRow> {
    type Measure = fn(&Compared) -> f64;
    let measures: [(&str, Measure); 8] = [
        ("jaccard", |pair| pair.comparison.jaccard.unwrap_or(0.0)),
        ("counted", |pair| pair.counted.unwrap_or(0.0)),
        ("containment", Compared::containment),
        ("b_sim", |pair| f64::from(pair.comparison.b_sim)),
        ("c_sim", |pair| {
            f64::from(pair.comparison.c_sim.unwrap_or(0))
        }),
        ("c_shingles", |pair| f64::from(pair.c_shingles.unwrap_or(0))),
        ("content_unweighted", |pair| pair.by_site.u),
        ("content", |pair| pair.by_site.s),
    ];
    let row = |(name, measure): (&'static str, Measure)| {
        let scored = compared.iter().map(|pair| (measure(pair), pair.verdict));
        let scored: Vec<_> = scored.collect();
        MeasureRow {
            name,
            auc: auc(&scored),
            best: best_f1(&scored),
        }
    };
    measures.map(row).into()
}

/// Decides whether a rule accepts a pair.
type Rule<'a> = Box<dyn Fn(&Compared) -> bool + 'a>;

fn policies(compared: &[Compared], config: &PairsConfig) -> Vec<PolicyRow> {
    let short = config.short;
    let by_policy = |criterion| -> Rule<'_> {
        let policy = Policy { criterion, short };
        Box::new(move |pair| pair.comparison.rule(&policy, pair.site).is_some())
    };
    let jaccard = config.thresholds.iter().map(|&threshold| {
        let criterion = Criterion::Jaccard(threshold);
        ("jaccard", Some(threshold), by_policy(criterion))
    });
    let published = [
        ("b", None, by_policy(Criterion::PUBLISHED_B)),
        ("c", None, by_policy(Criterion::PUBLISHED_C)),
        ("combined", None, by_policy(Criterion::PUBLISHED_COMBINED)),
        ("site", None, by_policy(Criterion::SITE)),
    ];
    let levels = [("same", Level::Same), ("content", Level::Content)];
    let by_site = levels.map(|(name, least)| -> (_, _, Rule<'_>) {
        let rule = move |pair: &Compared| pair.by_site.level() <= least;
        (name, None, Box::new(rule))
    });
    let levels = [
        ("same-no-sites", Level::Same),
        ("content-no-sites", Level::Content),
    ];
    let alone = levels.map(|(name, least)| -> (_, _, Rule<'_>) {
        let rule = move |pair: &Compared| pair.comparison.content.level() <= least;
        (name, None, Box::new(rule))
    });
    let rules = jaccard.chain(published).chain(by_site).chain(alone);
    rules
        .map(|(name, threshold, rule)| row(name, threshold, compared, &rule))
        .collect()
}

fn row(
    name: &'static str,
    threshold: Option<Threshold>,
    compared: &[Compared],
    rule: &Rule<'_>,
) -> PolicyRow {
    let decided = compared.iter().map(|pair| (rule(pair), pair.verdict));
    let decided: Vec<_> = decided.collect();
    let is_small = decided.len() <= MAX_BOOTSTRAP;
    PolicyRow {
        name,
        threshold,
        score: Score::of(decided.iter().copied()),
        f1_interval: is_small
            .then(|| bootstrap(&decided, N_BOOTSTRAP, 1))
            .flatten(),
    }
}

/// The agreement of listed and computed Jaccard similarities.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedAgreement {
    /// Tokens in a shingle.
    pub w: NonZeroUsize,
    /// Pairs with a listed similarity.
    pub n_listed: u64,
    /// The largest difference.
    pub max_difference: f64,
    /// Pairs that differ by more than each of [`DIFFERENCES`].
    pub n_differ: [u64; DIFFERENCES.len()],
    /// The pair with the largest difference: IDs, listed, computed.
    pub worst: Option<(String, String, f64, f64)>,
    /// The pairs at or above thresholds; empty if there are too many documents to compare all.
    pub at: Vec<AgreementAt>,
}

/// Distinguished differences of similarities: rounding, noticeable, large.
pub const DIFFERENCES: [f64; 3] = [1e-5, 1e-3, 1e-2];

/// The pairs that reach a threshold by the list, and by comparing all documents.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AgreementAt {
    /// The threshold.
    pub threshold: Threshold,
    /// Pairs that reach it in the list.
    pub n_listed: u64,
    /// Pairs that reach it here.
    pub n_ours: u64,
    /// Pairs that reach it in both.
    pub n_both: u64,
}

/// Compares listed similarities with computed ones; none if no similarity is listed.
#[must_use]
pub fn agreement(labelled: &LabelledPairs, config: &PairsConfig) -> Option<ListedAgreement> {
    let shingler = Shingler::new(config.w);
    let tokens = labelled
        .documents
        .iter()
        .map(|document| &document.content.tokens.fingerprints);
    let sets: Vec<ShingleSet> = tokens.map(|tokens| shingler.set(tokens)).collect();
    let listed = labelled.pairs.iter().filter_map(|pair| {
        let ours = jaccard(&sets[pair.a], &sets[pair.b]).unwrap_or(0.0);
        Some((pair, pair.jaccard?, ours))
    });
    let listed: Vec<_> = listed.collect();
    let difference = |(_, listed, ours): &(_, f64, f64)| (listed - ours).abs();
    let worst = listed
        .iter()
        .max_by(|x, y| difference(x).total_cmp(&difference(y)))?;
    let differ = |by: f64| listed.iter().filter(|pair| difference(pair) > by).count() as u64;
    let id = |place: usize| labelled.documents[place].id.clone();
    Some(ListedAgreement {
        w: config.w,
        n_listed: listed.len() as u64,
        max_difference: difference(worst),
        n_differ: DIFFERENCES.map(differ),
        worst: Some((id(worst.0.a), id(worst.0.b), worst.1, worst.2)),
        at: agreement_at(labelled, &sets, &config.thresholds),
    })
}

fn agreement_at(
    labelled: &LabelledPairs,
    sets: &[ShingleSet],
    thresholds: &[Threshold],
) -> Vec<AgreementAt> {
    if sets.len() > MAX_GROUPED {
        return Vec::new();
    }
    let listed = labelled.pairs.iter().filter_map(|pair| {
        let places = (pair.a.min(pair.b), pair.a.max(pair.b));
        Some((places, pair.jaccard?))
    });
    let mut listed: Vec<((usize, usize), f64)> = listed.collect();
    listed.sort_unstable_by(|x, y| x.0.cmp(&y.0).then(x.1.total_cmp(&y.1)));
    let mut at: Vec<AgreementAt> = thresholds
        .iter()
        .map(|&threshold| AgreementAt {
            threshold,
            n_listed: listed
                .iter()
                .filter(|pair| threshold.reached_by(pair.1))
                .count() as u64,
            n_ours: 0,
            n_both: 0,
        })
        .collect();
    let lowest = thresholds.iter().map(|t| t.get()).fold(1.0, f64::min);
    for a in 0..sets.len() {
        for b in a + 1..sets.len() {
            // The size of the smaller set divided by that of the larger one bounds the similarity.
            let sizes = [sets[a].len(), sets[b].len()].map(|n| n as f64);
            if sizes[0].min(sizes[1]) < lowest * sizes[0].max(sizes[1]) {
                continue;
            }
            let ours = jaccard(&sets[a], &sets[b]).unwrap_or(0.0);
            let place = listed.binary_search_by_key(&(a, b), |pair| pair.0);
            let theirs = place.map_or(0.0, |place| listed[place].1);
            for row in &mut at {
                let reached = row.threshold.reached_by(ours);
                row.n_ours += u64::from(reached);
                row.n_both += u64::from(reached && row.threshold.reached_by(theirs));
            }
        }
    }
    at
}

#[cfg(test)]
mod tests;
