//! The correlation of B-sim and C-sim over the same pairs.

use super::C_SIM_BINS;

/// Minimum B-sim of a B-similar pair.
const B_SIMILAR: usize = 2;

/// The pairs of each B-sim, with sums of their C-sims: Henzinger's comparison of the algorithms.
///
/// Each algorithm's pairs are scored by the other. In Henzinger 2006 the mean C-sim grows with
/// B-sim, about 4% of the B-similar pairs are C-similar, and 95% of the C-similar ones have a
/// B-sim of 0.
///
/// ```
/// use arose::judgement::Correlation;
/// let mut correlation = Correlation::default();
/// for (b_sim, c_sim) in [(0, 300), (2, 320), (2, 340), (6, 380)] {
///     correlation.add(b_sim, c_sim);
/// }
/// assert_eq!(correlation.mean_c_sim(2), Some(330.0));
/// assert_eq!(format!("{:.4}", correlation.coefficient().unwrap()), "0.9695");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Correlation {
    rows: [Row; 7],
}

/// The pairs of one B-sim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Row {
    n_pairs: u64,
    n_c_similar: u64,
    sum: u64,
    squares: u64,
}

impl Correlation {
    /// Counts a pair. Scores above 6 and 384 count as 6 and 384.
    pub fn add(&mut self, b_sim: u32, c_sim: u32) {
        let c_sim = u64::from(c_sim.min(384));
        let row = &mut self.rows[b_sim.min(6) as usize];
        row.n_pairs += 1;
        row.n_c_similar += u64::from(c_sim >= u64::from(*C_SIM_BINS[0].start()));
        row.sum += c_sim;
        row.squares += c_sim * c_sim;
    }

    /// Returns the number of pairs with a B-sim.
    #[must_use]
    pub fn n_pairs(&self, b_sim: usize) -> u64 {
        self.rows.get(b_sim).map_or(0, |row| row.n_pairs)
    }

    /// Returns the mean C-sim of the pairs of a B-sim; none without pairs.
    #[must_use]
    pub fn mean_c_sim(&self, b_sim: usize) -> Option<f64> {
        let row = self.rows.get(b_sim)?;
        (row.n_pairs > 0).then(|| row.sum as f64 / row.n_pairs as f64)
    }

    /// Returns the number of pairs with a B-sim of at least 2.
    #[must_use]
    pub fn n_b_similar(&self) -> u64 {
        self.rows[B_SIMILAR..].iter().map(|row| row.n_pairs).sum()
    }

    /// Returns the number of pairs with a C-sim of at least 372.
    #[must_use]
    pub fn n_c_similar(&self) -> u64 {
        self.rows.iter().map(|row| row.n_c_similar).sum()
    }

    /// Returns the number of pairs that are B-similar and C-similar.
    #[must_use]
    pub fn n_both_similar(&self) -> u64 {
        let similar = self.rows[B_SIMILAR..].iter();
        similar.map(|row| row.n_c_similar).sum()
    }

    /// Returns the number of C-similar pairs with a B-sim of 0.
    #[must_use]
    pub fn n_c_alone(&self) -> u64 {
        self.rows[0].n_c_similar
    }

    /// Computes Pearson's correlation coefficient of B-sim and C-sim; none if either is the same
    /// for all pairs.
    #[must_use]
    pub fn coefficient(&self) -> Option<f64> {
        let (mut n, mut b_sum, mut b_squares) = (0.0, 0.0, 0.0);
        let (mut c_sum, mut c_squares, mut products) = (0.0, 0.0, 0.0);
        for (b_sim, row) in self.rows.iter().enumerate() {
            let (b_sim, n_pairs) = (b_sim as f64, row.n_pairs as f64);
            n += n_pairs;
            b_sum += n_pairs * b_sim;
            b_squares += n_pairs * b_sim * b_sim;
            c_sum += row.sum as f64;
            c_squares += row.squares as f64;
            products += row.sum as f64 * b_sim;
        }
        let spread = (n * b_squares - b_sum * b_sum) * (n * c_squares - c_sum * c_sum);
        (spread > 0.0).then(|| (n * products - b_sum * c_sum) / spread.sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(u32, u32)]) -> Correlation {
        let mut correlation = Correlation::default();
        for &(b_sim, c_sim) in pairs {
            correlation.add(b_sim, c_sim);
        }
        correlation
    }

    /// By hand: the deviations of B are -2.5, -0.5, -0.5, 3.5, those of C -35, -15, 5, 45; their
    /// products sum to 250, their squares to 19 and 3,500.
    #[test]
    fn the_coefficient_of_four_pairs() {
        let correlation = of(&[(0, 300), (2, 320), (2, 340), (6, 380)]);
        let expected = 250.0 / (19.0_f64 * 3500.0).sqrt();
        let coefficient = correlation.coefficient().unwrap();
        assert!((coefficient - expected).abs() < 1e-12, "{coefficient}");
        let opposite = of(&[(0, 380), (6, 300)]);
        assert_eq!(opposite.coefficient(), Some(-1.0));
    }

    #[test]
    fn pairs_of_each_algorithm_by_the_other() {
        let pairs = [(0, 384), (0, 372), (1, 373), (2, 371), (2, 372), (6, 384)];
        let correlation = of(&pairs);
        assert_eq!(correlation.n_b_similar(), 3);
        assert_eq!(correlation.n_c_similar(), 5);
        assert_eq!(correlation.n_both_similar(), 2);
        assert_eq!(correlation.n_c_alone(), 2);
        assert_eq!(correlation.n_pairs(2), 2);
        assert_eq!(correlation.mean_c_sim(0), Some(378.0));
        assert_eq!(correlation.mean_c_sim(2), Some(371.5));
        assert_eq!(correlation.mean_c_sim(3), None);
        assert_eq!(correlation.mean_c_sim(7), None);
    }

    #[test]
    fn no_spread_no_coefficient() {
        for pairs in [
            &[][..],
            &[(2, 300)],
            &[(2, 300), (2, 310)],
            &[(0, 5), (6, 5)],
        ] {
            assert_eq!(of(pairs).coefficient(), None, "{pairs:?}");
        }
    }
}
