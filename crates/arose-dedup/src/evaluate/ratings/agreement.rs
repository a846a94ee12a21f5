//! Agreement between raters.

use std::collections::BTreeMap;

use arose::judgement::{Tally, Verdict, kappa};

use super::{PairKey, Rating};

/// The agreement of two raters.
#[derive(Debug, Clone, PartialEq)]
pub struct Agreement {
    /// The two raters.
    pub raters: (String, String),
    /// Pairs that both have rated.
    pub n_pairs: u64,
    /// Pairs with the same rating by both.
    pub n_agreed: u64,
    /// Cohen's kappa; none if chance would agree as well.
    pub kappa: Option<f64>,
}

/// The ratings of each rater, and the agreement of each two.
type Raters = (Vec<(String, Tally)>, Vec<Agreement>);

/// Counts the ratings of each rater, and compares each two raters.
pub(super) fn raters(pairs: &BTreeMap<PairKey, BTreeMap<&str, &Rating>>) -> Raters {
    let mut tallies: BTreeMap<&str, Tally> = BTreeMap::new();
    let mut both: BTreeMap<(&str, &str), Vec<(Verdict, Verdict)>> = BTreeMap::new();
    for raters in pairs.values() {
        let said: Vec<(&str, Verdict)> = raters
            .iter()
            .filter_map(|(&rater, rating)| Some((rater, rating.verdict?)))
            .collect();
        for (i, &(rater, verdict)) in said.iter().enumerate() {
            tallies.entry(rater).or_default().extend([verdict]);
            for &(other, other_verdict) in &said[i + 1..] {
                both.entry((rater, other))
                    .or_default()
                    .push((verdict, other_verdict));
            }
        }
    }
    let agreements = both
        .into_iter()
        .map(|((rater, other), verdicts)| Agreement {
            raters: (rater.to_owned(), other.to_owned()),
            n_pairs: verdicts.len() as u64,
            n_agreed: verdicts.iter().filter(|(one, other)| one == other).count() as u64,
            kappa: kappa(&verdicts),
        });
    let tallies = tallies
        .into_iter()
        .map(|(rater, tally)| (rater.to_owned(), tally));
    (tallies.collect(), agreements.collect())
}
