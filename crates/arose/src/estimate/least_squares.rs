//! Least squares: one size per search engine from all pairs.
//!
//! *Question.* Four search engines make six pairs, and each pair gives a ratio of two sizes
//! ([`crate::estimate::overlap`]). With samples, the ratios contradict each other. Which four sizes
//! fit them best?
//!
//! *Idea.* Each pair states `f_xy s_x = f_yx s_y`, both being the size of the overlap. The method
//! of the lecture makes one size the unit and minimizes the squares of the differences
//! ([`linear`]): it gives large search engines more weight, and with noisy data another unit gives
//! another result. The default here ([`logarithmic`]) minimizes
//! `w (ln s_x - ln s_y - ln(f_yx / f_xy))^2` where `w` is one over the variance of that logarithm:
//! no size is special, and pairs with little information have little weight.
//!
//! Both are a system of as many linear equations as unknown sizes. Its matrix has no positive entry
//! off the diagonal, so its inverse has no negative one: no size can be negative.
//!
//! *Paper.* Bharat & Broder 1998 (linear form). *Parameters.* The reference, whose size is 1.
//! *Cost.* `k^3` for `k` search engines. *Error.* The intervals of [`crate::estimate::joint`]:
//! pairs share their samples, so the residual alone would be too optimistic. *Not for* groups of
//! search engines without overlap, whose sizes cannot be compared: they are an error.

use crate::Error;
use crate::estimate::Method;
use crate::estimate::overlap::{Check, Containment};

/// Sets of search engines are the bits of a word.
pub(super) const MAX_ENGINES: usize = 64;

/// The sum of squares that is minimized.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Form {
    /// Differences between overlaps, in units of the reference.
    Linear,
    /// Differences between logarithms, each weighted by its information. The default.
    #[default]
    Logarithmic,
}

impl Form {
    /// Returns the method of an estimate of this form.
    #[must_use]
    pub const fn method(self) -> Method {
        match self {
            Self::Linear => Method::LinearLeastSquares,
            Self::Logarithmic => Method::LogLeastSquares,
        }
    }
}

/// The number of pages that every search engine has of every other search engine's sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overlaps {
    n_engines: usize,
    cells: Vec<Containment>,
}

impl Overlaps {
    /// Starts without samples.
    ///
    /// # Errors
    ///
    /// Returns an error if there are fewer than 2 or more than 64 search engines.
    pub fn new(n_engines: usize) -> Result<Self, Error> {
        if !(2..=MAX_ENGINES).contains(&n_engines) {
            return Err(Error::parameter("engines", n_engines, "2 up to 64"));
        }
        Ok(Self {
            n_engines,
            cells: vec![Containment::default(); n_engines * n_engines],
        })
    }

    /// Returns the number of search engines.
    #[must_use]
    pub const fn n_engines(&self) -> usize {
        self.n_engines
    }

    /// Returns the sample of one search engine, looked up in another; empty for unknown search
    /// engines.
    #[must_use]
    pub fn of(&self, sampled: usize, checked: usize) -> Containment {
        let place = self.place(sampled, checked);
        place.map_or_else(Containment::default, |place| self.cells[place])
    }

    /// Sets the counts of one search engine's sample, looked up in another.
    ///
    /// # Errors
    ///
    /// Returns an error if a search engine is not below the number of search engines.
    pub fn set(
        &mut self,
        sampled: usize,
        checked: usize,
        containment: Containment,
    ) -> Result<(), Error> {
        *self.cell(sampled, checked)? = containment;
        Ok(())
    }

    /// Counts one lookup in a search engine of a page sampled from another.
    ///
    /// # Errors
    ///
    /// Returns an error under the conditions of [`Self::set`].
    pub fn record(&mut self, sampled: usize, checked: usize, check: Check) -> Result<(), Error> {
        self.cell(sampled, checked)?.extend([check]);
        Ok(())
    }

    fn place(&self, sampled: usize, checked: usize) -> Option<usize> {
        let inside = sampled < self.n_engines && checked < self.n_engines;
        inside.then(|| sampled * self.n_engines + checked)
    }

    fn cell(&mut self, sampled: usize, checked: usize) -> Result<&mut Containment, Error> {
        let place = self.place(sampled, checked).ok_or_else(|| {
            let largest = sampled.max(checked);
            Error::parameter("engine", largest, "below the number of engines")
        })?;
        Ok(&mut self.cells[place])
    }

    /// Returns the pairs of search engines that share a page, with the part of each sample that the
    /// other has.
    fn pairs(&self) -> impl Iterator<Item = Overlapping> + '_ {
        let pairs =
            (0..self.n_engines).flat_map(move |x| (x + 1..self.n_engines).map(move |y| (x, y)));
        let all = pairs.map(|(x, y)| Overlapping {
            x,
            y,
            x_in_y: self.of(x, y),
            y_in_x: self.of(y, x),
        });
        all.filter(Overlapping::is_seen)
    }
}

/// Two search engines that share a page.
struct Overlapping {
    x: usize,
    y: usize,
    x_in_y: Containment,
    y_in_x: Containment,
}

impl Overlapping {
    /// Returns whether both samples were looked up and at least one page was found.
    fn is_seen(&self) -> bool {
        let both_checked = self.x_in_y.n_checked() > 0 && self.y_in_x.n_checked() > 0;
        both_checked && (self.x_in_y.n_found > 0 || self.y_in_x.n_found > 0)
    }
}

/// Sizes of search engines in units of one of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// A size per search engine; that of the reference is 1.
    pub sizes: Vec<f64>,
    /// The remaining sum of squares.
    pub residual: f64,
    /// Counts of zero that were replaced by one half.
    pub n_zero_counts: usize,
}

/// Minimizes the sum of `(f_xy s_x - f_yx s_y)^2`.
///
/// # Errors
///
/// Returns an error if the reference is not one of the search engines, or if some search engine
/// shares no page with the others, directly or through further search engines.
pub fn linear(overlaps: &Overlaps, reference: usize) -> Result<Fit, Error> {
    let n = check(overlaps, reference)?;
    let mut system = System::new(n);
    for pair in overlaps.pairs() {
        let (x_share, y_share) = (pair.x_in_y.positive_share(), pair.y_in_x.positive_share());
        system.add(pair.x, pair.x, x_share * x_share);
        system.add(pair.y, pair.y, y_share * y_share);
        system.add(pair.x, pair.y, -x_share * y_share);
        system.add(pair.y, pair.x, -x_share * y_share);
    }
    let unknown: Vec<usize> = (0..n).filter(|&engine| engine != reference).collect();
    let right: Vec<f64> = unknown.iter().map(|&x| -system.at(x, reference)).collect();
    let solution = system.restricted(&unknown).solve(right)?;
    let sizes = with_reference(&solution, reference, 1.0);
    let residual = |pair: &Overlapping| {
        let x_side = pair.x_in_y.positive_share() * sizes[pair.x];
        (x_side - pair.y_in_x.positive_share() * sizes[pair.y]).powi(2)
    };
    let residual = overlaps.pairs().map(|pair| residual(&pair)).sum();
    fit(overlaps, sizes, residual)
}

/// Minimizes the weighted sum of `(ln s_x - ln s_y - ln(f_yx / f_xy))^2`.
///
/// The sizes do not depend on the reference, up to the unit.
///
/// # Errors
///
/// Returns an error under the conditions of [`linear`].
pub fn logarithmic(overlaps: &Overlaps, reference: usize) -> Result<Fit, Error> {
    let n = check(overlaps, reference)?;
    let mut system = System::new(n);
    let mut right = vec![0.0; n];
    for pair in overlaps.pairs() {
        let (weight, difference) = opinion(&pair);
        system.add(pair.x, pair.x, weight);
        system.add(pair.y, pair.y, weight);
        system.add(pair.x, pair.y, -weight);
        system.add(pair.y, pair.x, -weight);
        right[pair.x] += weight * difference;
        right[pair.y] -= weight * difference;
    }
    let unknown: Vec<usize> = (0..n).filter(|&engine| engine != reference).collect();
    let right = unknown.iter().map(|&x| right[x]).collect();
    let solution = system.restricted(&unknown).solve(right)?;
    let logs = with_reference(&solution, reference, 0.0);
    let residual = |pair: &Overlapping| {
        let (weight, difference) = opinion(pair);
        weight * (logs[pair.x] - logs[pair.y] - difference).powi(2)
    };
    let residual = overlaps.pairs().map(|pair| residual(&pair)).sum();
    fit(
        overlaps,
        logs.iter().map(|log| log.exp()).collect(),
        residual,
    )
}

/// Returns the smallest size of the union that the pairs alone allow: the sizes minus all overlaps.
///
/// Each overlap is estimated from both sides, and the larger estimate is subtracted. The result is
/// never below the largest size.
#[must_use]
pub fn union_lower_bound(overlaps: &Overlaps, sizes: &[f64]) -> f64 {
    let size = |engine: usize| sizes.get(engine).copied().unwrap_or(0.0);
    let shared = overlaps.pairs().map(|pair| {
        let view =
            |side: &Containment, size: f64| side.share().map_or(0.0, |(share, _)| share * size);
        f64::max(
            view(&pair.x_in_y, size(pair.x)),
            view(&pair.y_in_x, size(pair.y)),
        )
    });
    let bound = sizes.iter().sum::<f64>() - shared.sum::<f64>();
    sizes.iter().copied().fold(bound, f64::max)
}

/// Returns the weight of a pair, and the difference of logarithms that it implies.
fn opinion(pair: &Overlapping) -> (f64, f64) {
    let weight = 1.0 / (pair.x_in_y.log_variance() + pair.y_in_x.log_variance());
    let difference = (pair.y_in_x.positive_share() / pair.x_in_y.positive_share()).ln();
    (weight, difference)
}

fn fit(overlaps: &Overlaps, sizes: Vec<f64>, residual: f64) -> Result<Fit, Error> {
    if sizes.iter().any(|size| !size.is_finite() || *size <= 0.0) {
        return Err(no_sizes(format!("least squares give {sizes:?}")));
    }
    let is_zero = |side: &Containment| usize::from(side.n_found == 0);
    let zero_counts = overlaps
        .pairs()
        .map(|pair| is_zero(&pair.x_in_y) + is_zero(&pair.y_in_x));
    Ok(Fit {
        n_zero_counts: zero_counts.sum(),
        sizes,
        residual,
    })
}

fn no_sizes(reason: impl ToString) -> Error {
    Error::no_estimate(Method::LogLeastSquares.quantity(), reason)
}

/// Returns the number of search engines, checked to be connected.
fn check(overlaps: &Overlaps, reference: usize) -> Result<usize, Error> {
    let n = overlaps.n_engines;
    if reference >= n {
        let expected = "below the number of engines";
        return Err(Error::parameter("reference", reference, expected));
    }
    let mut reached = vec![false; n];
    reached[reference] = true;
    // If a round reaches no further search engine, no later round does.
    for _ in 1..n {
        for pair in overlaps.pairs() {
            let either = reached[pair.x] || reached[pair.y];
            (reached[pair.x], reached[pair.y]) = (either, either);
        }
    }
    match reached.iter().position(|reached| !reached) {
        Some(engine) => Err(no_sizes(format!(
            "engine {engine} shares no sampled page with engine {reference}, even through others"
        ))),
        None => Ok(n),
    }
}

fn with_reference(unknown: &[f64], reference: usize, value: f64) -> Vec<f64> {
    let mut all = unknown.to_vec();
    all.insert(reference, value);
    all
}

/// A small symmetric system of linear equations.
struct System {
    n: usize,
    matrix: Vec<f64>,
}

impl System {
    fn new(n: usize) -> Self {
        Self {
            n,
            matrix: vec![0.0; n * n],
        }
    }

    fn at(&self, row: usize, column: usize) -> f64 {
        self.matrix[row * self.n + column]
    }

    fn add(&mut self, row: usize, column: usize, value: f64) {
        self.matrix[row * self.n + column] += value;
    }

    /// Returns the rows and columns of some unknowns.
    fn restricted(&self, unknown: &[usize]) -> Self {
        let entries = unknown
            .iter()
            .flat_map(|&x| unknown.iter().map(move |&y| self.at(x, y)));
        Self {
            n: unknown.len(),
            matrix: entries.collect(),
        }
    }

    /// Solves for the right side by Gaussian elimination.
    ///
    /// A positive definite matrix needs no pivoting. A matrix that is not positive definite, up to
    /// rounding, has no solution here.
    fn solve(mut self, mut right: Vec<f64>) -> Result<Vec<f64>, Error> {
        let diagonal: Vec<f64> = (0..self.n).map(|row| self.at(row, row)).collect();
        for pivot in 0..self.n {
            let is_determined = self.at(pivot, pivot) > diagonal[pivot] * 1e-12;
            if !is_determined {
                return Err(no_sizes("the overlaps do not determine them"));
            }
            for row in pivot + 1..self.n {
                let factor = self.at(row, pivot) / self.at(pivot, pivot);
                for column in pivot..self.n {
                    self.add(row, column, -factor * self.at(pivot, column));
                }
                right[row] -= factor * right[pivot];
            }
        }
        for row in (0..self.n).rev() {
            let known: f64 = (row + 1..self.n)
                .map(|column| self.at(row, column) * right[column])
                .sum();
            right[row] = (right[row] - known) / self.at(row, row);
        }
        Ok(right)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::overlap::relative_size;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// The search engines a, h, e, i of the lecture's example, as sets of pages.
    fn example() -> [BTreeSet<u32>; 4] {
        [
            (1..=12).collect(),
            (5..=14).collect(),
            [1, 5, 9, 13, 15, 16].into(),
            [2, 6, 10, 14, 15, 17, 18, 19].into(),
        ]
    }

    fn exact_overlaps() -> Overlaps {
        let engines = example();
        let mut overlaps = Overlaps::new(4).unwrap();
        for (x, pages) in engines.iter().enumerate() {
            for (y, other) in engines.iter().enumerate().filter(|&(y, _)| y != x) {
                let n_found = pages.intersection(other).count() as u64;
                let containment = Containment::new(n_found, pages.len() as u64 - n_found);
                overlaps.set(x, y, containment).unwrap();
            }
        }
        overlaps
    }

    /// The same shares rounded to one decimal, of `n` pages each.
    fn rounded_overlaps(n: u64) -> Overlaps {
        let tenths = [[0, 7, 2, 2], [8, 0, 3, 3], [5, 5, 0, 2], [4, 4, 1, 0]];
        let mut overlaps = Overlaps::new(4).unwrap();
        for (x, row) in tenths.iter().enumerate() {
            for (y, tenths) in row.iter().enumerate().filter(|&(y, _)| y != x) {
                let n_found = tenths * n / 10;
                overlaps
                    .set(x, y, Containment::new(n_found, n - n_found))
                    .unwrap();
            }
        }
        overlaps
    }

    #[track_caller]
    fn check_sizes(fit: &Fit, expected: [f64; 4], tolerance: f64) {
        for (size, expected) in fit.sizes.iter().zip(expected) {
            assert!(
                (size - expected).abs() < tolerance,
                "{:?}, not {expected}",
                fit.sizes
            );
        }
    }

    #[test]
    fn exact_example() {
        let overlaps = exact_overlaps();
        let share = |x, y| overlaps.of(x, y).share().unwrap().0;
        assert_eq!(
            [share(0, 1), share(0, 2), share(1, 0)],
            [2.0 / 3.0, 0.25, 0.8]
        );
        assert_eq!(
            [share(2, 3), share(3, 0), share(3, 2)],
            [1.0 / 6.0, 0.375, 0.125]
        );
        for fit in [
            linear(&overlaps, 0).unwrap(),
            logarithmic(&overlaps, 0).unwrap(),
        ] {
            check_sizes(&fit, [1.0, 5.0 / 6.0, 0.5, 2.0 / 3.0], 1e-14);
            assert!(fit.residual < 1e-25, "{}", fit.residual);
        }
        let union = union_lower_bound(&overlaps, &[12.0, 10.0, 6.0, 8.0]);
        assert!((union - 15.0).abs() < 1e-12, "{union}");
    }

    #[test]
    fn noisy_example_depends_on_the_reference() {
        let overlaps = rounded_overlaps(100);
        let first = linear(&overlaps, 0).unwrap();
        check_sizes(&first, [1.0, 0.848_370, 0.442_241, 0.577_725], 5e-7);
        assert!(
            (first.residual - 0.004_470_99).abs() < 5e-9,
            "{}",
            first.residual
        );
        let mut last = linear(&overlaps, 3).unwrap();
        let unit = last.sizes[0];
        last.sizes.iter_mut().for_each(|size| *size /= unit);
        check_sizes(&last, [1.0, 0.852_410, 0.444_290, 0.602_769], 5e-7);
    }

    #[test]
    fn noisy_example_in_logarithms_does_not() {
        let overlaps = rounded_overlaps(100);
        for reference in 0..4 {
            let mut fit = logarithmic(&overlaps, reference).unwrap();
            let unit = fit.sizes[0];
            fit.sizes.iter_mut().for_each(|size| *size /= unit);
            check_sizes(&fit, [1.0, 0.843_648, 0.436_145, 0.611_062], 5e-7);
        }
    }

    #[test]
    fn two_engines_are_the_plain_ratio() {
        let mut overlaps = Overlaps::new(2).unwrap();
        let (there, back) = (Containment::new(300, 300), Containment::new(100, 500));
        overlaps.set(0, 1, there).unwrap();
        overlaps.set(1, 0, back).unwrap();
        let plain = relative_size(&there, &back).unwrap().value;
        for fit in [
            linear(&overlaps, 1).unwrap(),
            logarithmic(&overlaps, 1).unwrap(),
        ] {
            assert!((fit.sizes[0] - plain).abs() < 1e-12);
        }
    }

    /// Search engines of very different size share little of the larger one, and are still
    /// distinguished.
    #[test]
    fn tiny_overlaps() {
        let mut overlaps = Overlaps::new(3).unwrap();
        let (rare, half) = (Containment::new(1, 999_999_999), Containment::new(5, 5));
        for (small, large) in [(0, 1), (1, 2)] {
            overlaps.set(small, large, half).unwrap();
            overlaps.set(large, small, rare).unwrap();
        }
        for fit in [
            linear(&overlaps, 2).unwrap(),
            logarithmic(&overlaps, 2).unwrap(),
        ] {
            assert!((fit.sizes[1] / 2e-9 - 1.0).abs() < 1e-9, "{fit:?}");
            assert!((fit.sizes[0] / 4e-18 - 1.0).abs() < 1e-9, "{fit:?}");
        }
    }

    #[test]
    fn bad_data() {
        let mut overlaps = Overlaps::new(4).unwrap();
        let (some, none) = (Containment::new(3, 7), Containment::new(0, 10));
        for (x, y) in [(0, 1), (1, 0), (2, 3), (3, 2)] {
            overlaps.set(x, y, some).unwrap();
            overlaps.set(x, (y + 2) % 4, none).unwrap();
        }
        for form in [linear, logarithmic] {
            let error = form(&overlaps, 0).unwrap_err().to_string();
            assert!(error.contains("engine 2 shares no sampled page"), "{error}");
            assert!(form(&overlaps, 4).is_err());
        }
        for n_engines in [0, 1, 65, usize::MAX] {
            assert!(Overlaps::new(n_engines).is_err());
        }
        // One page found in one direction connects two search engines and gives a note.
        overlaps.set(1, 2, Containment::new(1, 9)).unwrap();
        overlaps.set(2, 1, none).unwrap();
        assert_eq!(linear(&overlaps, 0).unwrap().n_zero_counts, 1);
        assert!(overlaps.set(4, 0, some).is_err());
        assert!(overlaps.record(0, 9, Check::Found).is_err());
        assert_eq!(overlaps.of(9, 9), Containment::default());
    }

    proptest! {
        /// For any samples, sizes are positive, and the linear form is at its minimum: no other
        /// value of one size gives a smaller residual.
        #[test]
        fn sizes_are_positive_and_least(counts in prop::collection::vec(1_u64..30, 12)) {
            let mut overlaps = Overlaps::new(4).unwrap();
            let places = (0..4).flat_map(|x| (0..4).map(move |y| (x, y))).filter(|(x, y)| x != y);
            for ((x, y), &n_found) in places.zip(&counts) {
                overlaps.set(x, y, Containment::new(n_found, 30 - n_found)).unwrap();
            }
            let residual = |sizes: &[f64]| overlaps.pairs().map(|pair| {
                let x_side = pair.x_in_y.positive_share() * sizes[pair.x];
                (x_side - pair.y_in_x.positive_share() * sizes[pair.y]).powi(2)
            }).sum::<f64>();
            let fit = linear(&overlaps, 0).unwrap();
            prop_assert!(logarithmic(&overlaps, 0).unwrap().sizes.iter().all(|&size| size > 0.0));
            for engine in 1..4 {
                for factor in [0.99, 1.01] {
                    let mut moved = fit.sizes.clone();
                    moved[engine] *= factor;
                    prop_assert!(residual(&moved) >= fit.residual);
                }
            }
        }
    }
}
