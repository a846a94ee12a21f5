//! Judgement: precision and recall of the pairs that an algorithm calls duplicates.
//!
//! *Question.* Only a person can say whether two pages really are duplicates. From a sample of
//! rated pairs, what is the precision of an algorithm, how certain is it, and how much does the
//! algorithm find compared with others?
//!
//! *Idea.* Sample pairs uniformly ([`Reservoir`]), let raters sort them into three classes
//! ([`Verdict`]), count ([`Tally`]) and give every share with its interval ([`wilson`]). Undecided
//! pairs stay in the denominator of the precision; the share without them is reported separately.
//! The naive interval `p +- z sqrt(p (1-p) / n)` has no width at p = 0 or 1; Wilson's (1927)
//! contains the true shares under which the observed one is not surprising.
//!
//! A cluster of m documents has m(m-1)/2 pairs, so a few large clusters dominate a uniform sample.
//! Weight each pair by [`pair_weight`] and take the [`weighted_mean`] to let every cluster count
//! about once.
//!
//! Recall needs all true pairs among about n^2/2 and cannot be known. [`relative_recall`] is the
//! share of the correct pairs that any of several algorithms found. [`kappa`] is the agreement of
//! two raters beyond chance (Cohen 1960).
//!
//! [`Correlation`] scores the pairs of each algorithm by the other.
//!
//! The classes, tables and published numbers are those of Henzinger 2006.
//!
//! *Parameters.* About 1,900 rated pairs and z = 1.96 ([`Z_95`]) give intervals of +- 0.022 at p =
//! 1/2. *Cost.* One pass; memory for the sample. *Error.* Only the sampling error, which the
//! interval states; Wilson's interval covers close to its nominal 95% from n = 10 upward. *Not for*
//! pairs chosen by hand or by score: strata must be weighted by their sampling rates.

mod correlation;

pub use correlation::Correlation;

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::Error;
use crate::mix::SplitMix;

/// The standard normal deviate of a two-sided 95% interval.
pub const Z_95: f64 = 1.959_963_984_540_054;

/// The ranges of matching bits by which precision is tabulated:
/// `[372,375) [375,378) [378,381) [381,384]`.
pub const C_SIM_BINS: [RangeInclusive<u32>; 4] = [372..=374, 375..=377, 378..=380, 381..=384];

/// A rating of a pair of pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// Duplicates: they differ only in a session ID, time, counter, message ID, server name or
    /// (part of) the URL, or in nothing that a visitor sees, or both are entry pages to the same
    /// site.
    Correct,
    /// The main item of the page differs, such as two products in one shop template.
    Incorrect,
    /// Everything else: a form filled in differently, a minor item, pages that cannot be rated.
    Undecided,
}

impl Verdict {
    /// Every rating, in the order of its declaration.
    pub const ALL: [Self; 3] = [Self::Correct, Self::Incorrect, Self::Undecided];

    /// Returns the rating's name in files; it never changes.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Correct => "correct",
            Self::Incorrect => "incorrect",
            Self::Undecided => "undecided",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Verdict {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let verdict = Self::ALL
            .into_iter()
            .find(|verdict| verdict.as_str() == name);
        verdict.ok_or_else(|| Error::parameter("verdict", name, "correct, incorrect or undecided"))
    }
}

/// Counts of ratings.
///
/// ```
/// use arose::judgement::{Tally, Verdict::*};
/// let tally: Tally = [Correct, Correct, Incorrect, Undecided].into_iter().collect();
/// assert_eq!(tally.precision(), Some(0.5));
/// assert_eq!(tally.precision_of_decided(), Some(2.0 / 3.0));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Pairs rated correct.
    pub correct: u64,
    /// Pairs rated incorrect.
    pub incorrect: u64,
    /// Pairs left undecided.
    pub undecided: u64,
}

impl Tally {
    /// Returns the number of all rated pairs.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.correct + self.incorrect + self.undecided
    }

    /// Returns the number of pairs with one rating.
    #[must_use]
    pub fn count(&self, verdict: Verdict) -> u64 {
        match verdict {
            Verdict::Correct => self.correct,
            Verdict::Incorrect => self.incorrect,
            Verdict::Undecided => self.undecided,
        }
    }

    /// Returns the share of one rating among all rated pairs; `None` if there are none.
    #[must_use]
    pub fn share(&self, verdict: Verdict) -> Option<f64> {
        share(self.count(verdict), self.total())
    }

    /// Returns the share of correct pairs among all rated pairs, including undecided ones; `None`
    /// if there are none.
    #[must_use]
    pub fn precision(&self) -> Option<f64> {
        self.share(Verdict::Correct)
    }

    /// Returns the share of correct pairs among those decided; `None` if there are none.
    #[must_use]
    pub fn precision_of_decided(&self) -> Option<f64> {
        share(self.correct, self.correct + self.incorrect)
    }

    /// Returns Wilson's 95% interval for the share of one rating.
    #[must_use]
    pub fn interval(&self, verdict: Verdict) -> Interval {
        wilson(self.count(verdict), self.total(), Z_95)
    }
}

impl Extend<Verdict> for Tally {
    fn extend<I: IntoIterator<Item = Verdict>>(&mut self, verdicts: I) {
        for verdict in verdicts {
            match verdict {
                Verdict::Correct => self.correct += 1,
                Verdict::Incorrect => self.incorrect += 1,
                Verdict::Undecided => self.undecided += 1,
            }
        }
    }
}

impl FromIterator<Verdict> for Tally {
    fn from_iter<I: IntoIterator<Item = Verdict>>(verdicts: I) -> Self {
        let mut tally = Self::default();
        tally.extend(verdicts);
        tally
    }
}

/// A pair with its scores and its rating.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Judged {
    /// Matching super-shingles, `0..=6`.
    pub b_sim: u32,
    /// Matching simhash bits, `0..=384`.
    pub c_sim: u32,
    /// The rating.
    pub verdict: Verdict,
}

/// Returns the ratings of pairs by number of matching super-shingles, 2 to 6.
#[must_use]
pub fn by_b_sim(judged: &[Judged]) -> [Tally; 5] {
    [2, 3, 4, 5, 6].map(|b_sim| tally_where(judged, |pair| pair.b_sim == b_sim))
}

/// Returns the ratings of pairs in each of the [`C_SIM_BINS`].
#[must_use]
pub fn by_c_sim(judged: &[Judged]) -> [Tally; 4] {
    C_SIM_BINS.map(|bin| tally_where(judged, |pair| bin.contains(&pair.c_sim)))
}

/// Bounds that contain the true value at the requested confidence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The smallest plausible value.
    pub low: f64,
    /// The greatest plausible value.
    pub high: f64,
}

impl Interval {
    /// Returns whether the interval contains `value`.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

/// Computes Wilson's interval for the share of successes in the population, `z` standard errors to
/// either side.
///
/// Without trials the interval is `0..=1`. If there are more successes than trials, all trials
/// count as successes.
///
/// ```
/// use arose::judgement::{Z_95, wilson};
/// let interval = wilson(50, 100, Z_95);
/// assert_eq!(format!("{:.4}-{:.4}", interval.low, interval.high), "0.4038-0.5962");
/// ```
#[must_use]
pub fn wilson(successes: u64, trials: u64, z: f64) -> Interval {
    if trials == 0 {
        return Interval {
            low: 0.0,
            high: 1.0,
        };
    }
    let n = trials as f64;
    let share = successes.min(trials) as f64 / n;
    let shrink = 1.0 + z * z / n;
    let centre = (share + z * z / (2.0 * n)) / shrink;
    let variance = share * (1.0 - share) / n + z * z / (4.0 * n * n);
    let half_width = z.abs() * variance.sqrt() / shrink;
    Interval {
        low: (centre - half_width).max(0.0),
        high: (centre + half_width).min(1.0),
    }
}

/// A uniform sample of a stream of unknown length (algorithm R, Vitter 1985).
///
/// The same seed and stream give the same sample; a stream in another order gives another.
///
/// ```
/// use arose::judgement::Reservoir;
/// let mut reservoir = Reservoir::new(10, 42);
/// (0..1000).for_each(|item| reservoir.offer(item));
/// assert_eq!(reservoir.sample.len(), 10);
/// assert_eq!(reservoir.n_offered, 1000);
/// ```
#[derive(Debug, Clone)]
pub struct Reservoir<T> {
    /// The items sampled so far, in no meaningful order.
    pub sample: Vec<T>,
    /// The number of items offered. Together with the length of the sample it gives the sampling
    /// rate.
    pub n_offered: u64,
    capacity: usize,
    random: SplitMix,
}

impl<T> Reservoir<T> {
    /// Starts a sample of up to `capacity` items. Record the seed with the sample.
    #[must_use]
    pub fn new(capacity: usize, seed: u64) -> Self {
        Self {
            sample: Vec::new(),
            n_offered: 0,
            capacity,
            random: SplitMix::new(seed),
        }
    }

    /// Offers the next item, which is kept with probability `capacity / n_offered`.
    pub fn offer(&mut self, item: T) {
        self.n_offered += 1;
        if self.sample.len() < self.capacity {
            self.sample.push(item);
            return;
        }
        let place = self.random.below(self.n_offered);
        if let Some(slot) = self.sample.get_mut(place as usize) {
            *slot = item;
        }
    }
}

/// Returns one over the number of pairs in the smaller of the two clusters to which the documents
/// of a pair belong.
///
/// A cluster of one document has no pairs and counts like a cluster of two.
#[must_use]
pub fn pair_weight(size_a: u64, size_b: u64) -> f64 {
    let size = size_a.min(size_b).max(2) as f64;
    2.0 / (size * (size - 1.0))
}

/// Returns the weighted mean of values; `None` if the weights do not sum to more than zero.
///
/// ```
/// use arose::judgement::weighted_mean;
/// // Henzinger's precision of C: 74% of the pairs on one site at 0.36, the others at 0.90.
/// let precision = weighted_mean([(0.74, 0.36), (0.26, 0.90)]).unwrap();
/// assert_eq!(format!("{precision:.3}"), "0.500");
/// ```
#[must_use]
pub fn weighted_mean(weights_and_values: impl IntoIterator<Item = (f64, f64)>) -> Option<f64> {
    let (mut total, mut sum) = (0.0, 0.0);
    for (weight, value) in weights_and_values {
        total += weight;
        sum += weight * value;
    }
    (total > 0.0).then(|| sum / total)
}

/// Pairs that the same algorithms found, and a rated uniform sample of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stratum {
    /// The algorithms that found these pairs.
    pub found_by: Finders,
    /// The number of pairs, rated or not.
    pub n_pairs: u64,
    /// The ratings of the sample.
    pub sample: Tally,
}

/// A set of algorithms: bit `i` stands for algorithm `i`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Finders(pub u64);

impl Finders {
    /// Returns whether the set contains an algorithm; at most 64 are distinguished.
    #[must_use]
    pub fn contains(self, algorithm: u32) -> bool {
        self.0
            .checked_shr(algorithm)
            .is_some_and(|bits| bits & 1 == 1)
    }
}

/// Returns the share of the correct pairs found by any algorithm that `algorithm` found.
///
/// `strata` divide the pooled output of all algorithms by the algorithms that found a pair. Each
/// counts with its estimated number of correct pairs, its size times the precision in its sample.
/// `None` if a stratum with pairs has no rated pair, or if no correct pair is known.
#[must_use]
pub fn relative_recall(strata: &[Stratum], algorithm: u32) -> Option<f64> {
    let (mut found, mut total) = (0.0, 0.0);
    for stratum in strata.iter().filter(|stratum| stratum.n_pairs > 0) {
        let n_correct = stratum.n_pairs as f64 * stratum.sample.precision()?;
        total += n_correct;
        if stratum.found_by.contains(algorithm) {
            found += n_correct;
        }
    }
    (total > 0.0).then(|| found / total)
}

/// Computes Cohen's kappa of two raters over the pairs rated by both: 1 for full agreement, 0 for
/// chance.
///
/// `None` if there is no pair, or if both gave every pair the same rating, so that chance would
/// agree as well.
#[must_use]
pub fn kappa(verdicts: &[(Verdict, Verdict)]) -> Option<f64> {
    let n = verdicts.len() as f64;
    let first: Tally = verdicts.iter().map(|&(first, _)| first).collect();
    let second: Tally = verdicts.iter().map(|&(_, second)| second).collect();
    let n_agreed = verdicts
        .iter()
        .filter(|(first, second)| first == second)
        .count();
    let by_chance = |verdict| first.count(verdict) as f64 * second.count(verdict) as f64;
    let n_expected = Verdict::ALL.map(by_chance).iter().sum::<f64>() / n;
    (n_expected < n).then(|| (n_agreed as f64 - n_expected) / (n - n_expected))
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn tally_where(judged: &[Judged], belongs: impl Fn(&Judged) -> bool) -> Tally {
    let own = judged.iter().filter(|pair| belongs(pair));
    own.map(|pair| pair.verdict).collect()
}

#[cfg(test)]
mod tests;
