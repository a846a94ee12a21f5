//! Change rates: estimates how often a page changes, from its past and from all other pages.
//!
//! The likelihood of a rate `r` given a [`History`] is `exp(-r U) (1 - exp(-r C/k))^k`, which
//! treats the `k` changed intervals as equally long. Full histories are not worth storing: they
//! change freshness by at most 0.0015. The prior is a weight for each rate of a fixed grid, found
//! by expectation maximization over the pages of a crawl.

use super::exponential::{Column, decays, dot, exp_minus};
use super::{History, Value};

/// Number of rates of the grid.
pub const N_RATES: usize = 48;

/// The rates of the grid, in changes per day: from once in 3,000 days to three times a day, each
/// about a quarter larger than the one before.
#[rustfmt::skip]
pub const RATES: [f64; N_RATES] = [
    0.0003333333333333336, 0.00040458666510817927, 0.0004910711087500736, 0.0005960424666605045,
    0.0007234525015470792, 0.0008780977048953081, 0.0010657998661882156, 0.0012936252406015006,
    0.00157015056598418, 0.0019057859436277774, 0.002313166738027219, 0.0028076292491327915,
    0.0034077880643004527, 0.004136236824992326, 0.0050203987893638665, 0.0060935592111055915,
    0.007396118399581318, 0.008977112634095534, 0.010896060188787644, 0.013225201963798762,
    0.01605222107374644, 0.019483543775418912, 0.023648346001757886, 0.028703416332526682,
    0.03483905847356582, 0.04228625544998651, 0.0513253652172678, 0.0622966750461411,
    0.0756132120127384, 0.09177629185905459, 0.11139439157774941, 0.13520605620058876,
    0.16410770214187567, 0.19918736378444366, 0.24176565373571293, 0.2934454787478928,
    0.3561723829130485, 0.43230778981927126, 0.5247179009497995, 0.6368815970035294,
    0.7730214042012874, 0.9382624559491214, 1.138825434145994, 1.3822607536245066,
    1.6777328058565733, 2.0363649625922946, 2.471658327475076, 2.9999999999999982,
];

/// The minimum weight that all rates together have in a learned prior.
const FLOOR: f64 = 0.001;

/// The frequency of each rate among pages.
#[derive(Debug, Clone, PartialEq)]
pub struct Prior {
    weights: Column,
    logarithms: Column,
}

impl Default for Prior {
    /// Creates a prior in which all rates of the grid are equally common.
    fn default() -> Self {
        Self::of([1.0 / N_RATES as f64; N_RATES])
    }
}

impl Prior {
    fn of(weights: Column) -> Self {
        Self {
            logarithms: weights.map(f64::ln),
            weights,
        }
    }

    /// Returns a prior with these weights, which are normalized; none if they are negative, not
    /// finite or all zero.
    #[must_use]
    pub fn from_weights(weights: &[f64; N_RATES]) -> Option<Self> {
        let sum: f64 = weights.iter().sum();
        let is_valid = weights.iter().all(|weight| *weight >= 0.0) && sum.is_finite() && sum > 0.0;
        is_valid.then(|| {
            let least = FLOOR / N_RATES as f64;
            Self::of(weights.map(|weight| weight / sum * (1.0 - FLOOR) + least))
        })
    }

    /// Returns the weight of each rate; they sum to 1.
    #[must_use]
    pub fn weights(&self) -> &[f64; N_RATES] {
        &self.weights
    }

    /// Learns a prior from the pages of a crawl, by `n_rounds` rounds of expectation maximization
    /// that start from this prior. Pages with one visit have no effect. Takes 384 bytes of memory
    /// per page: callers with many pages pass a sample.
    #[must_use]
    pub fn learned(&self, histories: &[History], n_rounds: usize) -> Self {
        let likelihoods: Vec<Column> = histories
            .iter()
            .filter(|history| history.unchanged > 0.0 || history.n_changes > 0.0)
            .map(|history| likelihood(&log_likelihood(history)))
            .collect();
        if likelihoods.is_empty() {
            return self.clone();
        }
        let mut prior = self.clone();
        for _ in 0..n_rounds {
            prior = prior.round(&likelihoods);
        }
        prior
    }

    fn round(&self, likelihoods: &[Column]) -> Self {
        let mut sums = [0.0; N_RATES];
        for likelihood in likelihoods {
            let factor = 1.0 / dot(likelihood, &self.weights);
            for (sum, likelihood) in sums.iter_mut().zip(likelihood) {
                *sum += likelihood * factor;
            }
        }
        let n = likelihoods.len() as f64;
        let mut weights = self.weights;
        for (weight, sum) in weights.iter_mut().zip(&sums) {
            *weight = (*weight * sum / n).max(FLOOR / N_RATES as f64);
        }
        let sum: f64 = weights.iter().sum();
        Self::of(weights.map(|weight| weight / sum))
    }
}

/// Returns the logarithm of each rate's likelihood.
fn log_likelihood(history: &History) -> Column {
    let unchanged = f64::from(history.unchanged.max(0.0));
    let n = f64::from(history.n_changes.max(0.0));
    let mut column = RATES.map(|rate| -rate * unchanged);
    if n > 0.0 {
        // Two visits at almost the same time: a change is equally likely at every rate.
        let mean = f64::from(history.changed) / n;
        let mean = mean.max(1e-9);
        for (log, rate) in column.iter_mut().zip(&RATES) {
            *log += n * ln_share(rate * mean);
        }
    }
    column
}

/// Computes `ln(1 - exp(-x))` for positive `x`.
#[inline]
fn ln_share(x: f64) -> f64 {
    match x < 1e-5 {
        true => x.ln() - x / 2.0,
        false => (-(-x).exp_m1()).ln(),
    }
}

/// Computes exponentials of logarithms, scaled so that the largest is 1.
fn likelihood(logarithms: &Column) -> Column {
    let largest = logarithms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut column = [0.0; N_RATES];
    for (value, log) in column.iter_mut().zip(logarithms) {
        *value = exp_minus(largest - log);
    }
    column
}

/// The posterior distribution of the change rate of one page.
#[derive(Debug, Clone, PartialEq)]
pub struct Posterior {
    weights: Column,
    /// The weights divided by the rates, and the sums of both products.
    over_rates: Column,
    mean_over_rate: f64,
    rate: f64,
}

impl Posterior {
    /// Creates the posterior of a page with this past.
    #[must_use]
    pub fn new(prior: &Prior, history: &History) -> Self {
        let mut logarithms = log_likelihood(history);
        for (log, prior) in logarithms.iter_mut().zip(&prior.logarithms) {
            *log += prior;
        }
        let mut weights = likelihood(&logarithms);
        let sum: f64 = weights.iter().sum();
        let factor = 1.0 / sum;
        weights.iter_mut().for_each(|weight| *weight *= factor);
        let mut over_rates = weights;
        for (weight, rate) in over_rates.iter_mut().zip(&RATES) {
            *weight /= rate;
        }
        Self {
            rate: dot(&weights, &RATES),
            mean_over_rate: over_rates.iter().sum(),
            over_rates,
            weights,
        }
    }

    /// Returns the expected rate.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Returns the weight of each rate.
    #[must_use]
    pub fn weights(&self) -> &[f64; N_RATES] {
        &self.weights
    }

    /// Returns the probability that the page has not changed for `days`.
    #[must_use]
    pub fn freshness(&self, days: f64) -> f64 {
        dot(&self.weights, &decays(days.max(0.0)))
    }

    /// Returns the value of a visit after `days`, averaged over the rates.
    #[must_use]
    pub fn value(&self, value: Value, days: f64) -> f64 {
        if value == Value::Harmonic && days > HARMONIC_EXACT {
            return days - (self.mean_over_rate - dot(&self.over_rates, &decays(days)));
        }
        let each = RATES.iter().zip(&self.weights);
        each.map(|(rate, weight)| weight * value.of(1.0, *rate, days))
            .sum()
    }

    /// Returns the days after which the harmonic value reaches `value`. Within minutes after a
    /// visit, sums over rates lose precision: results below 0.01 days are accurate only to one
    /// percent.
    #[must_use]
    pub fn wait(&self, value: f64) -> f64 {
        if value <= 0.0 {
            return 0.0;
        }
        // Start right of the root, from where Newton's method on a convex function descends to it.
        let mut days = value + (2.0 * value / self.rate).sqrt();
        for _ in 0..MAX_STEPS {
            let decays = decays(days);
            let reached = days - (self.mean_over_rate - dot(&self.over_rates, &decays));
            let slope = 1.0 - dot(&self.weights, &decays);
            let step = (reached - value) / slope;
            if !step.is_finite() {
                break;
            }
            days = (days - step).max(value);
            if step.abs() <= days * TOLERANCE {
                break;
            }
        }
        days
    }
}

/// Below this many days, the sum of closed forms loses too much precision.
const HARMONIC_EXACT: f64 = 1e-2;

/// The relative tolerance of Newton's method: three seconds in a month.
const TOLERANCE: f64 = 1e-6;

const MAX_STEPS: usize = 50;

/// Returns the most likely rate under a prior in the logarithm of the rate: the root of
/// `sum_changed t/(e^{rt} - 1) - U + a/r - b`, for use without a grid. With `a` and `b` of 0, it is
/// the maximum of the likelihood: 0 if no interval had a change, and `most` if every interval had
/// one.
#[must_use]
pub fn map_rate(changed: &[f64], unchanged: f64, a: f64, b: f64, most: f64) -> f64 {
    let slope = |rate: f64| {
        let of_changes: f64 = changed.iter().map(|t| t / (rate * t).exp_m1()).sum();
        of_changes - unchanged + a / rate - b
    };
    if changed.is_empty() && a <= 0.0 {
        return 0.0;
    }
    let (mut low, mut high) = (1e-12_f64.min(most), most);
    if slope(high) >= 0.0 {
        return most;
    }
    for _ in 0..200 {
        let middle = (low * high).sqrt();
        match slope(middle) > 0.0 {
            true => low = middle,
            false => high = middle,
        }
    }
    (low * high).sqrt()
}
