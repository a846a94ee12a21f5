//! The bootstrap: intervals from resampling.
//!
//! *Question.* A size is computed by a formula from several samples, and no textbook has its
//! standard error. Within which interval does the true value lie?
//!
//! *Idea.* The sample is the best available picture of the population, so sample from it as it was
//! sampled from the population: as many units, with replacement, many times, and compute the
//! formula each time. The middle 95% of the values are the percentile interval. If the formula is
//! biased or its spread grows with its value, those percentiles are off. BCa shifts them by the
//! bias (how many resamples fall below the value itself) and by the acceleration (how skewed the
//! influence of single units is, from leaving out each unit once).
//!
//! If the formula has a standard error, however rough, a third method needs no correction: it
//! measures the distance of resamples from the value in *their own* standard errors
//! ([`Bootstrap::studentised`]). If a few units carry most of the value, the other two intervals
//! are too short, because resamples without these units look precise. Here such resamples count as
//! far away.
//!
//! Resample the *independent unit*: the query and not its results, the server and not its pages,
//! the walk and not its steps. Several samples are resampled separately.
//!
//! *Papers.* Efron 1979, 1987; Hall 1988 (studentized). *Parameters.* 2,000 resamples; a seed,
//! recorded with the result. *Cost.* One evaluation per resample, and for BCa one more per unit, up
//! to 1,000 for each sample. *Error.* Covers 90% to 97% instead of 95% from about 50 units; less if
//! few units carry most of the value, unless studentized. *Not for* maxima, whose resamples never
//! exceed the sample, nor for a single walk ([`crate::estimate::chain`]).

use crate::Error;
use crate::estimate::normal;
use crate::judgement::{Interval, Z_95};
use crate::mix::SplitMix;

/// Maximum share of resamples without a value; beyond it there is no interval.
const MAX_UNDEFINED: f64 = 0.01;

/// Maximum number of units, or blocks of units, of each sample that are omitted in turn.
const MAX_LEFT_OUT: usize = 1000;

/// How intervals are derived from the resamples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IntervalKind {
    /// The middle 95% of the resampled values.
    Percentile,
    /// Percentiles corrected for bias and acceleration.
    Bca,
}

/// A statistic with its standard error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// The statistic; infinite or NaN if there is none.
    pub value: f64,
    /// Its standard error.
    pub standard_error: f64,
}

impl Measured {
    /// Returns the number of standard errors by which it lies above a value. A resample without a
    /// value, or without an error, is infinitely far away in its direction.
    fn distance_from(self, value: f64) -> f64 {
        let distance = self.value - value;
        if distance == 0.0 {
            return 0.0;
        }
        match distance / self.standard_error {
            number if number.is_nan() => f64::INFINITY.copysign(distance),
            number => number,
        }
    }
}

/// Settings of the bootstrap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bootstrap {
    /// The number of resamples.
    pub n_resamples: u32,
    /// How intervals are derived from them.
    pub kind: IntervalKind,
    /// The seed of all choices.
    pub seed: u64,
}

impl Bootstrap {
    /// Creates a BCa bootstrap with 2,000 resamples.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self {
            n_resamples: 2000,
            kind: IntervalKind::Bca,
            seed,
        }
    }

    /// Returns the 95% interval of a statistic of one sample of `n_units`.
    ///
    /// The statistic is called with the number of times that each unit was drawn. `None` if no
    /// resample differs from the sample, so that there is no interval.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no unit or resample, or if the statistic is NaN on the sample
    /// itself or on more than 1% of the resamples.
    ///
    /// ```
    /// use arose::estimate::bootstrap::Bootstrap;
    /// let heights = [160.0, 171.0, 182.0, 168.0, 175.0, 166.0, 179.0, 173.0];
    /// let interval = Bootstrap::new(7).interval(heights.len(), |counts| {
    ///     let sum: f64 = heights.iter().zip(counts).map(|(h, &n)| h * f64::from(n)).sum();
    ///     sum / 8.0
    /// });
    /// let interval = interval.unwrap().unwrap();
    /// assert!(166.0 < interval.low && interval.high < 177.0);
    /// ```
    pub fn interval(
        &self,
        n_units: usize,
        mut statistic: impl FnMut(&[u32]) -> f64,
    ) -> Result<Option<Interval>, Error> {
        let intervals = self.intervals(&[n_units], |counts| vec![statistic(counts)])?;
        Ok(intervals.first().copied().flatten())
    }

    /// Returns the 95% intervals of several statistics of several samples.
    ///
    /// `n_units` has the size of each sample. The statistics are called with the number of times
    /// that each unit was drawn, all samples one after the other. Their number must always be the
    /// same.
    ///
    /// # Errors
    ///
    /// Returns an error under the conditions of [`Self::interval`].
    pub fn intervals(
        &self,
        n_units: &[usize],
        mut statistics: impl FnMut(&[u32]) -> Vec<f64>,
    ) -> Result<Vec<Option<Interval>>, Error> {
        if self.n_resamples == 0 {
            return Err(Error::parameter("n_resamples", 0, "at least one"));
        }
        if n_units.is_empty() || n_units.contains(&0) {
            return Err(Error::no_estimate("an interval", "a sample is empty"));
        }
        let mut counts = vec![1; n_units.iter().sum()];
        let observed = statistics(&counts);
        let mut resampled = vec![Vec::new(); observed.len()];
        let mut random = SplitMix::new(self.seed);
        for _ in 0..self.n_resamples {
            redraw(&mut counts, n_units, &mut random);
            push_each(&mut resampled, statistics(&counts));
        }
        let accelerations = match self.kind {
            IntervalKind::Percentile => vec![0.0; observed.len()],
            IntervalKind::Bca => accelerations(n_units, observed.len(), &mut statistics),
        };
        let each = observed.iter().zip(resampled).zip(accelerations);
        each.map(|((&observed, values), acceleration)| {
            self.read_off(observed, values, acceleration)
        })
        .collect()
    }

    /// Returns the 95% interval of a statistic of one sample that has a standard error.
    ///
    /// Both are computed from the number of times that each unit was drawn. Use a scale on which
    /// errors do not grow with the value, such as the logarithm of a ratio. `None` if the sample
    /// does not vary. An end is infinite if the sample sets no limit.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no unit or resample, or the sample itself has no value or no
    /// error.
    pub fn studentised(
        &self,
        n_units: usize,
        mut statistic: impl FnMut(&[u32]) -> Measured,
    ) -> Result<Option<Interval>, Error> {
        if self.n_resamples == 0 {
            return Err(Error::parameter("n_resamples", 0, "at least one"));
        }
        if n_units == 0 {
            return Err(Error::no_estimate("an interval", "a sample is empty"));
        }
        let mut counts = vec![1; n_units];
        let observed = statistic(&counts);
        if !observed.value.is_finite() || !observed.standard_error.is_finite() {
            return Err(Error::no_estimate("an interval", "the sample has no value"));
        }
        if observed.standard_error <= 0.0 {
            return Ok(None);
        }
        let mut random = SplitMix::new(self.seed);
        let mut distances: Vec<f64> = (0..self.n_resamples)
            .map(|_| {
                redraw(&mut counts, &[n_units], &mut random);
                statistic(&counts).distance_from(observed.value)
            })
            .collect();
        distances.sort_unstable_by(f64::total_cmp);
        let end =
            |level| observed.value - order_statistic(&distances, level) * observed.standard_error;
        Ok(Some(Interval {
            low: end(0.975),
            high: end(0.025),
        }))
    }

    /// Returns the interval of one statistic.
    fn read_off(
        &self,
        observed: f64,
        mut values: Vec<f64>,
        acceleration: f64,
    ) -> Result<Option<Interval>, Error> {
        if observed.is_nan() {
            return Err(Error::no_estimate("an interval", "the sample has no value"));
        }
        values.retain(|value| !value.is_nan());
        let n_undefined = self.n_resamples as usize - values.len();
        if n_undefined as f64 > MAX_UNDEFINED * f64::from(self.n_resamples) {
            let reason = format!(
                "{n_undefined} of {} resamples have no value",
                self.n_resamples
            );
            return Err(Error::no_estimate("an interval", reason));
        }
        values.sort_unstable_by(f64::total_cmp);
        if values.iter().all(|&value| value == observed) {
            return Ok(None);
        }
        let shift = match self.kind {
            IntervalKind::Percentile => 0.0,
            IntervalKind::Bca => bias_shift(observed, &values),
        };
        let end = |z: f64| order_statistic(&values, corrected_level(z, shift, acceleration));
        Ok(Some(Interval {
            low: end(-Z_95),
            high: end(Z_95),
        }))
    }
}

/// Resamples every sample, with as many draws as it has units.
fn redraw(counts: &mut [u32], n_units: &[usize], random: &mut SplitMix) {
    counts.fill(0);
    let mut rest = counts;
    for &n in n_units {
        let (sample, others) = rest.split_at_mut(n);
        for _ in 0..n {
            sample[random.below(n as u64) as usize] += 1;
        }
        rest = others;
    }
}

fn push_each(columns: &mut [Vec<f64>], row: Vec<f64>) {
    for (column, value) in columns.iter_mut().zip(row) {
        column.push(value);
    }
}

/// Returns the normal deviate of the share of resamples below the value itself. Ties count half.
fn bias_shift(observed: f64, sorted: &[f64]) -> f64 {
    let n_below = sorted.partition_point(|&value| value < observed);
    let n_up_to = sorted.partition_point(|&value| value <= observed);
    let n = sorted.len() as f64;
    let share = (n_below + n_up_to) as f64 / (2.0 * n);
    normal::quantile(share.clamp(0.5 / n, 1.0 - 0.5 / n))
}

/// Returns the percentile that BCa uses for the end at `z` deviations.
fn corrected_level(z: f64, shift: f64, acceleration: f64) -> f64 {
    let shifted = shift + z;
    let stretch = 1.0 - acceleration * shifted;
    if stretch <= 0.0 {
        return if z < 0.0 { 0.0 } else { 1.0 };
    }
    normal::cdf(shift + shifted / stretch)
}

/// Returns the value below which the share `level` of the sorted values lies, interpolated if
/// necessary.
fn order_statistic(sorted: &[f64], level: f64) -> f64 {
    let last = sorted.len() - 1;
    let place = (level * (sorted.len() + 1) as f64 - 1.0).clamp(0.0, last as f64);
    let (below, part) = (place.floor() as usize, place.fract());
    let (low, high) = (sorted[below], sorted[(below + 1).min(last)]);
    if part == 0.0 || low == high {
        return low;
    }
    low * (1.0 - part) + high * part
}

/// Returns the skewness of the influence of single units on each statistic, computed by omitting
/// each unit once.
///
/// Units of large samples are omitted in blocks: the squares and cubes of their influences have the
/// same sums. Zero if a statistic has no value without some unit.
fn accelerations(
    n_units: &[usize],
    n_statistics: usize,
    statistics: &mut impl FnMut(&[u32]) -> Vec<f64>,
) -> Vec<f64> {
    let mut counts = vec![1; n_units.iter().sum()];
    let (mut squares, mut cubes) = (vec![0.0; n_statistics], vec![0.0; n_statistics]);
    let mut first = 0;
    for &n in n_units {
        let n_blocks = n.min(MAX_LEFT_OUT);
        let mut left_out = vec![Vec::with_capacity(n_blocks); n_statistics];
        for block in 0..n_blocks {
            let end = |block: usize| first + block * n / n_blocks;
            let units = end(block)..end(block + 1);
            counts[units.clone()].fill(0);
            push_each(&mut left_out, statistics(&counts));
            counts[units].fill(1);
        }
        for (statistic, values) in left_out.iter().enumerate() {
            let mean = super::mean(values);
            let scale = (n_blocks as f64 - 1.0) / n_blocks as f64;
            for influence in values.iter().map(|value| scale * (mean - value)) {
                squares[statistic] += influence.powi(2);
                cubes[statistic] += influence.powi(3);
            }
        }
        first += n;
    }
    let each = cubes.iter().zip(&squares);
    each.map(|(cube, square)| cube / (6.0 * square.powf(1.5)))
        .map(|acceleration| {
            if acceleration.is_finite() {
                acceleration
            } else {
                0.0
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean_of(values: &[f64], counts: &[u32]) -> f64 {
        let sum: f64 = values
            .iter()
            .zip(counts)
            .map(|(v, &n)| v * f64::from(n))
            .sum();
        sum / counts.iter().sum::<u32>() as f64
    }

    fn mean_with_error(values: &[f64], counts: &[u32]) -> Measured {
        let value = mean_of(values, counts);
        let squares = values.iter().zip(counts);
        let squares = squares.map(|(v, &n)| f64::from(n) * (v - value).powi(2));
        let n = values.len() as f64;
        Measured {
            value,
            standard_error: (squares.sum::<f64>() / (n * (n - 1.0))).sqrt(),
        }
    }

    /// For the mean of n values the resamples are normal with the standard error, so both kinds
    /// must give mean +- 1.96 SE. With 20,000 resamples the 2.5% point has an error of 0.02 SE.
    #[test]
    fn mean_of_symmetric_values() {
        let values: Vec<f64> = (0..101).map(f64::from).collect();
        let standard_error = (850.0_f64 / 101.0).sqrt();
        for kind in [IntervalKind::Percentile, IntervalKind::Bca] {
            let bootstrap = Bootstrap {
                n_resamples: 20_000,
                kind,
                seed: 1,
            };
            let interval = bootstrap.interval(101, |counts| mean_of(&values, counts));
            let interval = interval.unwrap().unwrap();
            let half = Z_95 * standard_error;
            let tolerance = 4.0 * 0.02 * standard_error;
            assert!(
                (interval.low - (50.0 - half)).abs() < tolerance,
                "{interval:?}"
            );
            assert!(
                (interval.high - (50.0 + half)).abs() < tolerance,
                "{interval:?}"
            );
        }
    }

    /// The acceleration of a mean is the skewness over 6 sqrt(n): values 1 and nineteen zeros.
    #[test]
    fn acceleration_of_a_mean() {
        let mut values = [0.0; 20];
        values[3] = 1.0;
        let p = 0.05_f64;
        let skewness = (1.0 - 2.0 * p) / (p * (1.0 - p)).sqrt();
        let mut statistics = |counts: &[u32]| vec![mean_of(&values, counts)];
        let acceleration = accelerations(&[20], 1, &mut statistics)[0];
        assert!((acceleration - skewness / (6.0 * 20_f64.sqrt())).abs() < 1e-12);
    }

    /// 5,000 exponential values of skewness 2, omitted in blocks of five. The skewness of 1,000
    /// sums of five is known to about 15%; four of those.
    #[test]
    fn acceleration_of_a_large_sample() {
        let mut random = SplitMix::new(3);
        let values: Vec<f64> = (0..5000).map(|_| -(1.0 - random.next_f64()).ln()).collect();
        let mut n_evaluations = 0;
        let mut statistics = |counts: &[u32]| {
            n_evaluations += 1;
            vec![mean_of(&values, counts)]
        };
        let acceleration = accelerations(&[5000], 1, &mut statistics)[0];
        let expected = 2.0 / (6.0 * 5000_f64.sqrt());
        assert!(
            (acceleration / expected - 1.0).abs() < 0.6,
            "{acceleration}, {expected}"
        );
        assert_eq!(n_evaluations, 1000);
    }

    /// If values are skewed to the right, BCa moves both ends to the right.
    #[test]
    fn bca_moves_with_the_skew() {
        let values: Vec<f64> = (0..60).map(|i| (f64::from(i) / 12.0).exp()).collect();
        let [plain, corrected] = [IntervalKind::Percentile, IntervalKind::Bca].map(|kind| {
            let bootstrap = Bootstrap {
                kind,
                ..Bootstrap::new(5)
            };
            let interval = bootstrap.interval(60, |counts| mean_of(&values, counts));
            interval.unwrap().unwrap()
        });
        assert!(corrected.low > plain.low && corrected.high > plain.high);
    }

    /// The studentized interval of the mean of a normal sample is Student's: 20 values at normal
    /// quantiles. The 2.5% point of 20,000 resamples has an error of about 0.03 SE; the tolerance
    /// is four of those. Resamples of so few values are not normal samples themselves.
    #[test]
    fn studentised_mean() {
        let values: Vec<f64> = (0..20)
            .map(|i| normal::quantile((f64::from(i) + 0.5) / 20.0))
            .collect();
        let bootstrap = Bootstrap {
            n_resamples: 20_000,
            ..Bootstrap::new(4)
        };
        let statistic = |counts: &[u32]| mean_with_error(&values, counts);
        let interval = bootstrap.studentised(20, statistic).unwrap().unwrap();
        let standard_error = statistic(&[1; 20]).standard_error;
        let half = normal::student_quantile(0.975, 19) * standard_error;
        assert!(
            (interval.high - half).abs() < 0.2 * standard_error,
            "{interval:?}"
        );
        assert!(
            (interval.low + half).abs() < 0.2 * standard_error,
            "{interval:?}"
        );
    }

    /// 25 log-normal values, which are skewed: the studentized interval contains the mean in 90% to
    /// 99% of 300 samples, and the percentile interval does not.
    #[test]
    fn studentised_intervals_of_skewed_values() {
        let truth = 0.5_f64.exp();
        let [mut n_studentised, mut n_percentile] = [0, 0];
        for seed in 0..300 {
            let mut random = SplitMix::new(seed);
            let values: Vec<f64> = (0..25)
                .map(|_| normal::quantile(random.next_f64()).exp())
                .collect();
            let bootstrap = Bootstrap {
                n_resamples: 500,
                kind: IntervalKind::Percentile,
                seed,
            };
            let holds = |interval: Option<Interval>| u32::from(interval.unwrap().contains(truth));
            let statistic = |counts: &[u32]| mean_with_error(&values, counts);
            n_studentised += holds(bootstrap.studentised(25, statistic).unwrap());
            let plain = bootstrap.interval(25, |counts| mean_of(&values, counts));
            n_percentile += holds(plain.unwrap());
        }
        assert!((270..=297).contains(&n_studentised), "{n_studentised}");
        assert!(n_percentile < 270, "{n_percentile}");
    }

    /// Two samples are resampled separately: the difference of their means never mixes them.
    #[test]
    fn samples_stay_apart() {
        let values = [1.0, 3.0, 1.0, 3.0, 100.0, 100.0];
        let intervals = Bootstrap::new(2).intervals(&[4, 2], |counts| {
            assert_eq!(counts[..4].iter().sum::<u32>() / 3, 1);
            vec![
                mean_of(&values[..4], &counts[..4]),
                mean_of(&values[4..], &counts[4..]),
            ]
        });
        let intervals = intervals.unwrap();
        assert!(intervals[0].unwrap().high <= 3.0);
        assert_eq!(intervals[1], None);
    }

    #[test]
    fn the_seed_decides() {
        let values: Vec<f64> = (0..30).map(f64::from).collect();
        let interval = |seed| {
            Bootstrap::new(seed)
                .interval(30, |c| mean_of(&values, c))
                .unwrap()
        };
        assert_eq!(interval(1), interval(1));
        assert_ne!(interval(1), interval(2));
    }

    #[test]
    fn bad_data() {
        let bootstrap = Bootstrap::new(1);
        assert!(bootstrap.interval(0, |_| 1.0).is_err());
        assert!(bootstrap.interval(5, |_| f64::NAN).is_err());
        assert_eq!(bootstrap.interval(5, |_| 1.0), Ok(None));
        let measured = |value, standard_error| Measured {
            value,
            standard_error,
        };
        assert!(bootstrap.studentised(0, |_| measured(1.0, 1.0)).is_err());
        assert!(
            bootstrap
                .studentised(5, |_| measured(f64::NAN, 1.0))
                .is_err()
        );
        assert_eq!(bootstrap.studentised(5, |_| measured(1.0, 0.0)), Ok(None));
        let none = Bootstrap {
            n_resamples: 0,
            ..bootstrap
        };
        assert!(none.interval(5, |_| 1.0).is_err());
        // There is no value if the first unit is not drawn, which happens every third time.
        let fragile = |counts: &[u32]| {
            if counts[0] == 0 {
                f64::NAN
            } else {
                counts[1].into()
            }
        };
        assert!(bootstrap.interval(5, fragile).is_err());
        // Infinite resamples widen the interval.
        let infinite = |counts: &[u32]| 1.0 / f64::from(counts[0]);
        let interval = bootstrap.interval(5, infinite).unwrap().unwrap();
        assert_eq!(interval.high, f64::INFINITY);
    }
}
