//! Metrics: counts of correct and incorrect pairs, precision, recall, F1 and AUC.
//!
//! *Question.* A rule accepted some of the labelled pairs. How good is it, in single numbers?
//!
//! *Idea.* *Precision* is the share of the accepted pairs that are duplicates, *recall* the share
//! of the duplicates that were accepted, *F1* their harmonic mean. They belong to a threshold. The
//! *AUC* does not: it is the probability that a random duplicate scores above a random distinct
//! pair, with ties counting half (Mann & Whitney 1947). It shows whether a score orders pairs as
//! the labels do.
//!
//! Undecided pairs stay in the denominator of the precision (Henzinger 2006) and are excluded from
//! recall and AUC.
//!
//! *Cost.* One sort of the scores. *Error.* That of the sample: [`bootstrap`] resamples the pairs
//! with replacement and returns the interval of the F1 of 95% of such samples (Efron 1979).
//!
//! *Not for* comparing rules on different sets of pairs: all three depend on the number of distinct
//! pairs in the set.

use arose::judgement::{Interval, Tally, Verdict, Z_95, wilson};
use arose::mix::SplitMix;

/// The decisions of a rule on labelled pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Score {
    /// The pairs it accepted.
    pub accepted: Tally,
    /// All pairs.
    pub all: Tally,
}

impl Score {
    /// Counts pairs, each with whether it was accepted.
    pub fn of(pairs: impl IntoIterator<Item = (bool, Verdict)>) -> Self {
        let mut score = Self::default();
        for (is_accepted, verdict) in pairs {
            score.all.extend([verdict]);
            score.accepted.extend(is_accepted.then_some(verdict));
        }
        score
    }

    /// Returns the share of duplicates among the accepted pairs; none if nothing was accepted.
    #[must_use]
    pub fn precision(&self) -> Option<f64> {
        self.accepted.precision()
    }

    /// Returns Wilson's 95% interval of the precision.
    #[must_use]
    pub fn precision_interval(&self) -> Interval {
        self.accepted.interval(Verdict::Correct)
    }

    /// Returns the share of accepted pairs among the duplicates; none if there are no duplicates.
    #[must_use]
    pub fn recall(&self) -> Option<f64> {
        ratio(self.accepted.correct, self.all.correct)
    }

    /// Returns Wilson's 95% interval of the recall.
    #[must_use]
    pub fn recall_interval(&self) -> Interval {
        wilson(self.accepted.correct, self.all.correct, Z_95)
    }

    /// Returns the harmonic mean of precision and recall; none if there is nothing to find.
    ///
    /// ```
    /// use arose::judgement::Verdict::{Correct, Incorrect};
    /// use arose_dedup::evaluate::metric::Score;
    /// let score = Score::of([(true, Correct), (true, Incorrect), (false, Correct)]);
    /// assert_eq!(score.f1(), Some(0.5));
    /// ```
    #[must_use]
    pub fn f1(&self) -> Option<f64> {
        let hits = 2 * self.accepted.correct;
        ratio(hits, self.all.correct + self.accepted.total()).filter(|_| self.all.correct > 0)
    }
}

/// Returns the probability that a random duplicate scores above a random distinct pair, with ties
/// counting half.
///
/// None unless there are both. NaN is below all other scores.
///
/// ```
/// use arose::judgement::Verdict::{Correct, Incorrect};
/// use arose_dedup::evaluate::metric::auc;
/// let scored = [(0.9, Correct), (0.5, Correct), (0.5, Incorrect), (0.1, Incorrect)];
/// assert_eq!(auc(&scored), Some(0.875));
/// ```
#[must_use]
pub fn auc(scored: &[(f64, Verdict)]) -> Option<f64> {
    let mut wins = 0.0;
    let mut below = Tally::default();
    for run in ascending(scored).chunk_by(|x, y| x.0 == y.0) {
        let own: Tally = run.iter().map(|&(_, verdict)| verdict).collect();
        wins += own.correct as f64 * (below.incorrect as f64 + own.incorrect as f64 / 2.0);
        below.extend(run.iter().map(|&(_, verdict)| verdict));
    }
    let n_both = below.correct as f64 * below.incorrect as f64;
    (n_both > 0.0).then(|| wins / n_both)
}

/// A threshold and its score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Best {
    /// Pairs with at least this score are accepted.
    pub threshold: f64,
    /// The decisions on the pairs.
    pub score: Score,
}

/// Returns the threshold with the greatest F1; of several, the greatest. None without duplicates.
#[must_use]
pub fn best_f1(scored: &[(f64, Verdict)]) -> Option<Best> {
    let all: Tally = scored.iter().map(|&(_, verdict)| verdict).collect();
    let mut accepted = Tally::default();
    let mut best: Option<Best> = None;
    for run in ascending(scored).chunk_by(|x, y| x.0 == y.0).rev() {
        accepted.extend(run.iter().map(|&(_, verdict)| verdict));
        let score = Score { accepted, all };
        if score.f1() > best.map_or(Some(0.0), |best| best.score.f1()) {
            let threshold = run[0].0;
            best = Some(Best { threshold, score });
        }
    }
    best
}

/// Returns the interval that contains the F1 of 95% of samples like this one.
///
/// None if a resample may have no duplicates to find.
#[must_use]
pub fn bootstrap(pairs: &[(bool, Verdict)], n_samples: usize, seed: u64) -> Option<Interval> {
    let mut random = SplitMix::new(seed);
    let n_pairs = pairs.len() as u64;
    let mut draw = || Score::of((0..n_pairs).map(|_| pairs[random.below(n_pairs) as usize])).f1();
    let mut values: Vec<f64> = (0..n_samples).map(|_| draw()).collect::<Option<_>>()?;
    values.sort_unstable_by(f64::total_cmp);
    let cut = n_samples / 40;
    let (low, high) = (*values.get(cut)?, *values.get(n_samples - 1 - cut)?);
    Some(Interval { low, high })
}

/// Returns `part / whole`; none if the whole is zero.
pub(crate) fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn ascending(scored: &[(f64, Verdict)]) -> Vec<(f64, Verdict)> {
    let below_all = |&(score, verdict): &(f64, Verdict)| match score.is_nan() {
        true => (f64::NEG_INFINITY, verdict),
        false => (score, verdict),
    };
    let mut sorted: Vec<_> = scored.iter().map(below_all).collect();
    sorted.sort_unstable_by(|x, y| x.0.total_cmp(&y.0));
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;
    use Verdict::{Correct, Incorrect, Undecided};
    use proptest::prelude::*;

    fn scored() -> impl Strategy<Value = Vec<(f64, Verdict)>> {
        let verdict = prop_oneof![Just(Correct), Just(Incorrect), Just(Undecided)];
        let score = (0_u8..8).prop_map(|score| f64::from(score) / 8.0);
        prop::collection::vec((score, verdict), 0..30)
    }

    fn at(scored: &[(f64, Verdict)], threshold: f64) -> Score {
        Score::of(
            scored
                .iter()
                .map(|&(score, verdict)| (score >= threshold, verdict)),
        )
    }

    #[test]
    fn undecided_pairs_lower_the_precision_only() {
        let score = Score::of([(true, Correct), (true, Undecided), (false, Undecided)]);
        assert_eq!(score.precision(), Some(0.5));
        assert_eq!(score.recall(), Some(1.0));
        assert_eq!(score.f1(), Some(2.0 / 3.0));
    }

    #[test]
    fn nothing_to_judge() {
        let score = Score::of([]);
        assert_eq!(
            (score.precision(), score.recall(), score.f1()),
            (None, None, None)
        );
        assert_eq!((auc(&[]), best_f1(&[])), (None, None));
        assert_eq!(auc(&[(0.3, Correct)]), None);
        assert_eq!(bootstrap(&[], 100, 1), None);
    }

    #[test]
    fn what_is_not_a_number_comes_last() {
        assert_eq!(auc(&[(f64::NAN, Correct), (0.0, Incorrect)]), Some(0.0));
    }

    /// Half of 400 pairs are correct. The standard deviation of the recall over samples is sqrt(1/4
    /// / 400) = 0.025, so the interval is about ±0.049, here of an F1 with the same value.
    #[test]
    fn bootstrap_of_a_coin() {
        let pairs = |i: usize| {
            (
                i.is_multiple_of(2),
                if i % 4 < 2 { Correct } else { Incorrect },
            )
        };
        let pairs: Vec<_> = (0..400).map(pairs).collect();
        let interval = bootstrap(&pairs, 2000, 7).unwrap();
        assert_eq!(Score::of(pairs.iter().copied()).f1(), Some(0.5));
        assert!((0.42..0.47).contains(&interval.low), "{interval:?}");
        assert!((0.53..0.58).contains(&interval.high), "{interval:?}");
    }

    proptest! {
        #[test]
        fn auc_is_that_of_all_comparisons(scored in scored()) {
            let of = |wanted| scored.iter().filter(move |pair| pair.1 == wanted).map(|pair| pair.0);
            let mut wins = Vec::new();
            for high in of(Correct) {
                wins.extend(of(Incorrect).map(|low| match high.total_cmp(&low) {
                    std::cmp::Ordering::Greater => 1.0,
                    std::cmp::Ordering::Equal => 0.5,
                    std::cmp::Ordering::Less => 0.0,
                }));
            }
            let n = wins.len() as f64;
            let expected = (n > 0.0).then(|| wins.iter().sum::<f64>() / n);
            prop_assert_eq!(auc(&scored), expected);
        }

        #[test]
        fn no_threshold_beats_the_best(scored in scored(), threshold in 0.0..1.1) {
            let best = best_f1(&scored).and_then(|best| best.score.f1());
            prop_assert!(at(&scored, threshold).f1().unwrap_or(0.0) <= best.unwrap_or(0.0));
        }

        #[test]
        fn the_best_is_what_its_threshold_does(scored in scored()) {
            if let Some(best) = best_f1(&scored) {
                prop_assert_eq!(best.score, at(&scored, best.threshold));
            }
        }
    }
}
