//! Chains: the error of a mean of dependent values.
//!
//! *Question.* A walk visits 50,000 pages, each reached from the last. How many independent pages
//! would give an equally good mean? And does the walk still depend on where it started?
//!
//! *Idea.* Divide the chain into batches so long that consecutive ones are hardly correlated: their
//! means are nearly independent, and their spread gives the error of the whole. A sufficient length
//! is ten times the autocorrelation time `tau = 1 + 2 (rho_1 + rho_2 + ..)`, the number of steps
//! equivalent to one independent sample. The sum ends where pairs of neighbours become negative,
//! since for a reversible chain they cannot be. To check the start, run several chains from
//! different places and compare the distance between them with the movement of each, counting the
//! halves of one chain as two ([`split_r_hat`]), or with their standard errors ([`disagreement`]).
//!
//! *Papers.* Geyer 1992 (the cut); Gelman & Rubin 1992 (R-hat). *Parameters.* At least 10 batches;
//! Student's quantile for their number; R-hat below 1.05 counts as converged. *Cost.* One pass per
//! lag up to a few tau. *Error.* Covers 90% to 97%. *Not for* chains shorter than 100 tau, which
//! are an error, nor for a chain confined to a small region, which looks converged from inside.

use crate::Error;
use crate::estimate::{Estimate, Method, Note, mean, normal};
use crate::judgement::Interval;

/// A batch is at least this many autocorrelation times long.
const TIMES_PER_BATCH: f64 = 10.0;

/// Fewer batches do not show their spread well enough.
const MIN_BATCHES: usize = 10;

/// More batches than this add nothing.
const MAX_BATCHES: usize = 100;

/// Below this, chains count as converged.
pub const MAX_R_HAT: f64 = 1.05;

/// A step of a chain: its value, and one over the factor by which such steps are too frequent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weighted {
    /// The value to average, such as an indicator or a length.
    pub value: f64,
    /// The weight: positive, and one if steps are uniform.
    pub weight: f64,
}

/// Sums over the steps of a chain or of a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Sums {
    /// The sum of the weights.
    pub weight: f64,
    /// The sum of the values, each times its weight.
    pub value: f64,
}

impl Sums {
    /// Adds a step.
    pub fn add(&mut self, step: Weighted) {
        self.weight += step.weight;
        self.value += step.weight * step.value;
    }
}

impl FromIterator<Weighted> for Sums {
    fn from_iter<I: IntoIterator<Item = Weighted>>(steps: I) -> Self {
        let mut sums = Self::default();
        steps.into_iter().for_each(|step| sums.add(step));
        sums
    }
}

impl std::iter::Sum for Sums {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::default(), |all, part| Self {
            weight: all.weight + part.weight,
            value: all.value + part.value,
        })
    }
}

/// The mean of a chain and its error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BatchMeans {
    /// The mean of all values.
    pub mean: f64,
    /// Its standard error, from the spread of the batches.
    pub standard_error: f64,
    /// The number of batches.
    pub n_batches: usize,
    /// The number of steps equivalent to one independent sample.
    pub autocorrelation_time: f64,
}

impl BatchMeans {
    /// Returns the 95% interval.
    #[must_use]
    pub fn interval(&self) -> Interval {
        let t = normal::student_quantile(0.975, self.n_batches as u64 - 1);
        Interval {
            low: self.mean - t * self.standard_error,
            high: self.mean + t * self.standard_error,
        }
    }
}

/// Returns the mean of a chain with the error of its dependent values.
///
/// # Errors
///
/// Returns an error if a value is not finite, if all are the same, or if the chain is shorter than
/// 100 times its autocorrelation time.
pub fn batch_means(values: &[f64]) -> Result<BatchMeans, Error> {
    let time = autocorrelation_time(values)?;
    let shortest = (TIMES_PER_BATCH * time).ceil() as usize;
    let n_batches = (values.len() / shortest.max(1)).min(MAX_BATCHES);
    if n_batches < MIN_BATCHES {
        let reason = format!(
            "{} steps are too few: {time:.0} of them are worth one independent sample; {} are needed",
            values.len(),
            shortest * MIN_BATCHES
        );
        return Err(Error::no_estimate("the error of a chain", reason));
    }
    let batch_len = values.len() / n_batches;
    let means: Vec<f64> = values.chunks_exact(batch_len).map(mean).collect();
    let n = means.len() as f64;
    Ok(BatchMeans {
        mean: mean(values),
        standard_error: (variance(&means) / n).sqrt(),
        n_batches: means.len(),
        autocorrelation_time: time,
    })
}

/// Returns the number of steps of a chain equivalent to one independent sample, at least one.
///
/// # Errors
///
/// Returns an error if a value is not finite, or all are the same.
pub fn autocorrelation_time(values: &[f64]) -> Result<f64, Error> {
    check_finite(values)?;
    let centre = mean(values);
    let deviations: Vec<f64> = values.iter().map(|value| value - centre).collect();
    let covariance = |lag: usize| {
        let pairs = deviations.iter().zip(&deviations[lag..]);
        pairs.map(|(a, b)| a * b).sum::<f64>()
    };
    let variance = covariance(0);
    if values.windows(2).all(|pair| pair[0] == pair[1]) || variance == 0.0 {
        return Err(Error::no_estimate(
            "the error of a chain",
            "its values never change",
        ));
    }
    let (mut sum, mut least) = (0.0, f64::INFINITY);
    for lag in (0..values.len().saturating_sub(1)).step_by(2) {
        let pair = covariance(lag) + covariance(lag + 1);
        if pair <= 0.0 {
            break;
        }
        least = f64::min(least, pair);
        sum += least;
    }
    Ok((2.0 * sum / variance - 1.0).max(1.0))
}

/// Returns the distance between chains from different starts: 1 if there is none, infinite if none
/// of them moves.
///
/// Each chain is split into halves, so a chain that drifts disagrees with itself.
///
/// # Errors
///
/// Returns an error if a value is not finite, if a chain has fewer than four values, or if all
/// values of all chains are the same, which is not informative.
///
/// ```
/// use arose::estimate::chain::split_r_hat;
/// let still = [0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0];
/// let drift = [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// assert!(split_r_hat(&[&still, &still]).unwrap() < 1.05);
/// assert!(split_r_hat(&[&drift, &drift]).unwrap() > 1.05);
/// ```
pub fn split_r_hat(chains: &[&[f64]]) -> Result<f64, Error> {
    let half = chains.iter().map(|chain| chain.len() / 2).min();
    let half = half.unwrap_or(0);
    chains.iter().try_for_each(|chain| check_finite(chain))?;
    let halves = chains
        .iter()
        .flat_map(|chain| [&chain[..half], &chain[chain.len() - half..]]);
    let parts: Vec<Part> = halves.map(Part::of).collect();
    r_hat(&parts)
}

/// A part of a chain: one of its halves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Part {
    /// The number of values.
    pub n: usize,
    /// Their mean.
    pub mean: f64,
    /// Their sample variance.
    pub variance: f64,
}

impl Part {
    /// Returns the part with these values.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        Self {
            n: values.len(),
            mean: mean(values),
            variance: variance(values),
        }
    }

    /// Returns the part with `n` values of which `n_ones` are one and the others zero.
    #[must_use]
    pub fn of_ones(n_ones: usize, n: usize) -> Self {
        let mean = n_ones as f64 / n as f64;
        let variance = mean * (1.0 - mean) * n as f64 / (n as f64 - 1.0);
        Self { n, mean, variance }
    }
}

/// Computes [`split_r_hat`] from summaries of the halves, without their values.
///
/// # Errors
///
/// Returns an error if there is no part, one has fewer than two values, or all values are the same.
pub fn r_hat(parts: &[Part]) -> Result<f64, Error> {
    let n = parts.iter().map(|part| part.n).min().unwrap_or(0);
    if n < 2 {
        let reason = "a chain has fewer than four values";
        return Err(Error::no_estimate("convergence", reason));
    }
    let means: Vec<f64> = parts.iter().map(|part| part.mean).collect();
    let variances: Vec<f64> = parts.iter().map(|part| part.variance).collect();
    let (between, within) = (variance(&means), mean(&variances));
    if between == 0.0 && within == 0.0 {
        return Err(Error::no_estimate("convergence", "the values never change"));
    }
    let n = n as f64;
    Ok(((n - 1.0) / n + between / within).sqrt())
}

/// Returns the distance of the means of two chains in standard errors. Above four, the chains
/// disagree.
///
/// This is more sensitive than R-hat, which compares the distance with the variation of single
/// values. Indicators with shares of 0.4 and 0.6 still count as converged there, however long the
/// chains are.
#[must_use]
pub fn disagreement(first: &BatchMeans, second: &BatchMeans) -> f64 {
    let error = first.standard_error.hypot(second.standard_error);
    (first.mean - second.mean).abs() / error
}

/// Returns the weighted mean over a chain, with an interval from batch means.
///
/// The error is that of the residuals `weight (value - mean)`, whose mean is zero: it takes into
/// account that the weights vary together with the values.
///
/// # Errors
///
/// Returns an error if there are no steps, a value is not finite, a weight is not positive, or the
/// chain is too short.
pub fn weighted_mean(method: Method, steps: &[Weighted]) -> Result<Estimate, Error> {
    let quantity = method.quantity();
    check_weighted(quantity, steps)?;
    let total: f64 = steps.iter().map(|step| step.weight).sum();
    let sum: f64 = steps.iter().map(|step| step.weight * step.value).sum();
    let estimate = Estimate::new(method, sum / total, steps.len() as u64)?;
    if steps.windows(2).all(|pair| pair[0].value == pair[1].value) {
        return Ok(estimate.with_notes([Note::NoSpread]));
    }
    let scale = steps.len() as f64 / total;
    let residuals: Vec<f64> = steps
        .iter()
        .map(|step| estimate.value + scale * step.weight * (step.value - estimate.value))
        .collect();
    let interval = batch_means(&residuals)?.interval();
    Ok(estimate.with_interval(interval))
}

/// Checks that a mean can be computed from the steps.
pub(super) fn check_weighted(quantity: &'static str, steps: &[Weighted]) -> Result<(), Error> {
    if steps.is_empty() {
        return Err(Error::no_estimate(quantity, "the sample is empty"));
    }
    for step in steps {
        if !step.value.is_finite() || !step.weight.is_finite() || step.weight <= 0.0 {
            let reason = format!(
                "a sample has value {} and weight {}",
                step.value, step.weight
            );
            return Err(Error::no_estimate(quantity, reason));
        }
    }
    Ok(())
}

fn check_finite(values: &[f64]) -> Result<(), Error> {
    if values.is_empty() {
        return Err(Error::no_estimate("the error of a chain", "it is empty"));
    }
    match values.iter().find(|value| !value.is_finite()) {
        Some(value) => {
            let reason = format!("a value is {value}");
            Err(Error::no_estimate("the error of a chain", reason))
        }
        None => Ok(()),
    }
}

/// Returns the sample variance, zero for a single value.
pub(super) fn variance(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let centre = mean(values);
    let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
    squares / (values.len() as f64 - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mix::SplitMix;

    /// A chain that keeps its value with probability `stay`, and otherwise draws 0 or 1 again.
    fn sticky(n: usize, stay: f64, seed: u64) -> Vec<f64> {
        let mut random = SplitMix::new(seed);
        let mut value = 0.0;
        (0..n)
            .map(|_| {
                if random.next_f64() >= stay {
                    value = random.below(2) as f64;
                }
                value
            })
            .collect()
    }

    /// Its autocorrelations are `stay^lag`, so tau = (1 + stay) / (1 - stay). The estimate of tau
    /// from n steps has a relative error near sqrt(10 tau / n) = 0.044 and 0.097; four of those.
    #[test]
    fn autocorrelation_of_a_sticky_chain() {
        for (stay, tolerance) in [(0.0, 0.05), (0.6, 0.18), (0.9, 0.39)] {
            let tau = (1.0 + stay) / (1.0 - stay);
            let measured = autocorrelation_time(&sticky(20_000, stay, 3)).unwrap();
            assert!(
                (measured / tau - 1.0).abs() < tolerance,
                "{stay}: {measured}, not {tau}"
            );
        }
    }

    /// Nominal 95% intervals of the mean contain 1/2 in 90% to 99% of 300 chains.
    #[test]
    fn batch_means_cover() {
        for stay in [0.0, 0.8] {
            let n_covering = (0..300)
                .map(|seed| batch_means(&sticky(4000, stay, seed)).unwrap().interval())
                .filter(|interval| interval.contains(0.5))
                .count();
            assert!(
                (270..=297).contains(&n_covering),
                "{stay}: {n_covering} of 300"
            );
        }
    }

    #[test]
    fn convergence() {
        let chains = [sticky(2000, 0.5, 1), sticky(2000, 0.5, 2)];
        assert!(split_r_hat(&[&chains[0], &chains[1]]).unwrap() < MAX_R_HAT);
        let elsewhere: Vec<f64> = chains[1].iter().map(|value| value + 1.0).collect();
        assert!(split_r_hat(&[&chains[0], &elsewhere]).unwrap() > 1.3);
        assert_eq!(split_r_hat(&[&[0.0; 8], &[1.0; 8]]), Ok(f64::INFINITY));
        let n_ones = chains[0].iter().filter(|value| **value == 1.0).count();
        let (part, values) = (Part::of_ones(n_ones, 2000), Part::of(&chains[0]));
        assert!((part.mean - values.mean).abs() < 1e-12);
        assert!((part.variance - values.variance).abs() < 1e-12);
    }

    /// Shares of 0.4 and 0.6: R-hat does not detect the difference, the standard errors do.
    #[test]
    fn shares_that_differ() {
        let shifted = |offset: f64, seed: u64| -> Vec<f64> {
            let mut random = SplitMix::new(seed);
            let draws = (0..5000).map(|_| random.next_f64() + offset);
            draws.map(|draw| f64::from(u8::from(draw > 0.5))).collect()
        };
        let (few, many, again) = (shifted(-0.1, 1), shifted(0.1, 2), shifted(0.1, 3));
        assert!(split_r_hat(&[&few, &many]).unwrap() < MAX_R_HAT);
        let apart =
            |a: &[f64], b: &[f64]| disagreement(&batch_means(a).unwrap(), &batch_means(b).unwrap());
        // 0.2 / sqrt(2 * 0.24 / 5000) = 20.4 standard errors.
        assert!(
            (15.0..27.0).contains(&apart(&few, &many)),
            "{}",
            apart(&few, &many)
        );
        assert!(apart(&many, &again) < 4.0);
    }

    /// Weights correct a chain in which ones are three times too frequent: their share is 1/2, not
    /// 3/4.
    #[test]
    fn weights_undo_the_bias() {
        let mut random = SplitMix::new(8);
        let steps: Vec<Weighted> = (0..20_000)
            .map(|_| {
                let value = f64::from(u8::from(random.next_f64() < 0.75));
                Weighted {
                    value,
                    weight: 1.0 / (1.0 + 2.0 * value),
                }
            })
            .collect();
        let estimate = weighted_mean(Method::RandomWalk, &steps).unwrap();
        // The standard error of the share is sqrt(0.75 * 0.25 / n) * (1/3) / (1/2)^2 = 0.0041.
        assert!((estimate.value - 0.5).abs() < 4.0 * 0.0041);
        assert!(estimate.interval.unwrap().contains(0.5));
    }

    #[test]
    fn bad_chains() {
        assert!(batch_means(&[]).is_err());
        assert!(batch_means(&[1.0; 500]).is_err());
        assert!(batch_means(&[0.0, f64::NAN, 1.0]).is_err());
        assert!(batch_means(&[0.0, 1.0, 0.0, 1.0]).is_err());
        assert!(
            batch_means(&sticky(2000, 0.99, 1)).is_err(),
            "shorter than 100 tau"
        );
        assert!(split_r_hat(&[]).is_err());
        assert!(split_r_hat(&[&[1.0, 2.0]]).is_err());
        assert!(split_r_hat(&[&[1.0; 9]]).is_err());
        for (value, weight) in [
            (1.0, 0.0),
            (1.0, -1.0),
            (f64::NAN, 1.0),
            (1.0, f64::INFINITY),
        ] {
            let steps = [Weighted { value, weight }];
            assert!(weighted_mean(Method::RandomWalk, &steps).is_err());
        }
        let same = [Weighted {
            value: 1.0,
            weight: 1.0,
        }; 40];
        let estimate = weighted_mean(Method::RandomWalk, &same).unwrap();
        assert_eq!(
            (estimate.interval, estimate.notes),
            (None, vec![Note::NoSpread])
        );
    }
}
