//! The filter polynomial: the probability that a pair of given similarity is accepted.
//!
//! *Question.* Documents count as similar if at least `r` of their `k` super-shingles match
//! ([`crate::feature`]). Which pairs does this accept?
//!
//! *Idea.* A super-shingle of `s` MinHash values matches with probability `p = rho^s`.
//! Super-shingles are independent, so the number of matches is binomial:
//!
//! `P(accept | rho) = sum over i = r..=k of C(k, i) p^i (1 - p)^(k - i)`.
//!
//! This is an S-shaped curve: nearly 0 for low similarity, nearly 1 for high. More values per
//! super-shingle move it to the right; more super-shingles at a fixed `r / k` make it steeper. With
//! `s = 1` the super-shingles are the MinHash values themselves, so the full sketch ("at least c of
//! t values match") follows the same formula ([`Filter::full_sketch`]), and so does LSH banding (`r
//! = 1`, see [`crate::banding`]).
//!
//! *Paper.* Broder 2000. The lecture's "more than r" is "at least r" here; "more than 2 of 6" would
//! move the 50% point from 0.909 to 0.940. Its full-sketch sum starts at the sketch size; it must
//! start at a separate count, such as 76 = ceil(0.9 * 84).
//!
//! | rho | 6 x 14, r = 2 | 8 x 25, r = 1 | 76 of 84 |
//! |---|---|---|---|
//! | 0.50 | 5.6e-8 | 2.4e-7 | 2.5e-15 |
//! | 0.80 | 0.026 | 0.030 | 0.008 |
//! | 0.90 | 0.415 | 0.449 | 0.534 |
//! | 0.95 | 0.879 | 0.926 | 0.975 |
//!
//! *Cost.* A few dozen operations. *Error.* None for independent permutations; one-permutation
//! sketches of sets smaller than the sketch deviate by a few hundredths.

use crate::feature::{Features, b_sim};
use crate::{Error, binomial};

/// The condition that at least `r` of the `k` super-shingles match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Filter {
    features: Features,
    r: usize,
}

impl Filter {
    /// At least 2 of 6 super-shingles of 14 MinHash values. The default.
    pub const TWO_OF_SIX: Self = Self {
        features: Features::SIX_BY_FOURTEEN,
        r: 2,
    };

    /// At least 1 of 8 super-shingles of 25 MinHash values.
    pub const ONE_OF_EIGHT: Self = Self {
        features: Features::EIGHT_BY_TWENTY_FIVE,
        r: 1,
    };

    /// Creates a filter that requires at least `r` of the super-shingles.
    ///
    /// # Errors
    ///
    /// Returns an error if `r` is zero, which accepts everything, or above `k`, which accepts
    /// nothing.
    pub fn new(features: Features, r: usize) -> Result<Self, Error> {
        if !(1..=features.k()).contains(&r) {
            return Err(Error::parameter("r", r, "1 up to the number of features"));
        }
        Ok(Self { features, r })
    }

    /// Creates a filter that requires at least `c` of the `t` MinHash values of a full sketch.
    ///
    /// # Errors
    ///
    /// Returns an error if `t` is zero or above 65,535, or `c` is not in `1..=t`.
    pub fn full_sketch(t: usize, c: usize) -> Result<Self, Error> {
        Self::new(Features::new(t, 1)?, c)
    }

    /// Returns how sketches are divided into super-shingles.
    #[must_use]
    pub const fn features(self) -> Features {
        self.features
    }

    /// Returns the number of super-shingles that must match.
    #[must_use]
    pub const fn r(self) -> usize {
        self.r
    }

    /// Returns whether two documents with these super-shingles are B-similar.
    #[must_use]
    pub fn accepts(self, a: &[u64], b: &[u64]) -> bool {
        b_sim(a, b) >= self.r
    }

    /// Returns P(accept | rho), for a similarity `rho` in `0..=1` (clamped).
    ///
    /// ```
    /// use arose::filter::Filter;
    /// assert!((Filter::TWO_OF_SIX.acceptance(0.9) - 0.415051).abs() < 1e-6);
    /// ```
    #[must_use]
    pub fn acceptance(self, rho: f64) -> f64 {
        let p = rho.clamp(0.0, 1.0).powf(self.features.s() as f64);
        binomial::at_least(self.features.k() as u64, p, self.r as u64)
    }

    /// Returns the similarity at which pairs are accepted with the given probability.
    ///
    /// ```
    /// use arose::filter::Filter;
    /// assert!((Filter::TWO_OF_SIX.similarity_at(0.5) - 0.90937).abs() < 1e-5);
    /// ```
    #[must_use]
    pub fn similarity_at(self, probability: f64) -> f64 {
        // Bisection: acceptance grows with rho. It ends when there is no number between the two.
        let (mut low, mut high) = (0.0, 1.0);
        loop {
            let middle = f64::midpoint(low, high);
            if middle <= low || middle >= high {
                return high;
            }
            if self.acceptance(middle) < probability {
                low = middle;
            } else {
                high = middle;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mix::{SplitMix, mix};
    use proptest::prelude::*;

    /// `actual` must equal `expected` within half a unit of its last printed digit.
    #[track_caller]
    fn check(actual: f64, expected: f64, unit: f64) {
        assert!(
            (actual - expected).abs() <= 0.51 * unit,
            "{actual:e}, expected {expected:e}"
        );
    }

    fn full() -> Filter {
        Filter::full_sketch(84, 76).unwrap()
    }

    /// The whole table, each value with the unit of its last printed digit.
    #[test]
    fn acceptance_table() {
        let rows = [
            (
                0.50,
                (5.587e-8, 1e-11),
                (2.384e-7, 1e-10),
                (2.511e-15, 1e-18),
            ),
            (0.70, (6.776e-4, 1e-7), (1.0724e-3, 1e-7), (6.295e-6, 1e-9)),
            (0.80, (0.025776, 1e-6), (0.029827, 1e-6), (0.007818, 1e-6)),
            (0.85, (0.119758, 1e-6), (0.129580, 1e-6), (0.100403, 1e-6)),
            (0.90, (0.415051, 1e-6), (0.448976, 1e-6), (0.534027, 1e-6)),
            // Exactly 0.878638465: the 0.878639 sometimes printed is rounded up.
            (0.95, (0.878638, 1e-6), (0.925658, 1e-6), (0.975494, 1e-6)),
            (0.98, (0.995673, 1e-6), (0.999389, 1e-6), (0.999951, 1e-6)),
        ];
        for (rho, two_of_six, one_of_eight, full_sketch) in rows {
            check(
                Filter::TWO_OF_SIX.acceptance(rho),
                two_of_six.0,
                two_of_six.1,
            );
            check(
                Filter::ONE_OF_EIGHT.acceptance(rho),
                one_of_eight.0,
                one_of_eight.1,
            );
            check(full().acceptance(rho), full_sketch.0, full_sketch.1);
        }
    }

    #[test]
    fn points_of_given_acceptance() {
        check(Filter::TWO_OF_SIX.similarity_at(0.5), 0.90937, 1e-5);
        check(Filter::ONE_OF_EIGHT.similarity_at(0.5), 0.90524, 1e-5);
        check(full().similarity_at(0.5), 0.89721, 1e-5);
        check(Filter::TWO_OF_SIX.similarity_at(0.01), 0.7721, 1e-4);
        check(Filter::TWO_OF_SIX.similarity_at(0.99), 0.9754, 1e-4);
        check(Filter::ONE_OF_EIGHT.similarity_at(0.01), 0.7655, 1e-4);
        check(Filter::ONE_OF_EIGHT.similarity_at(0.99), 0.9675, 1e-4);
        // "More than 2", read literally.
        let three_of_six = Filter::new(Features::SIX_BY_FOURTEEN, 3).unwrap();
        check(three_of_six.similarity_at(0.5), 0.940, 1e-3);
    }

    #[test]
    fn helper_quantities() {
        let one_feature = |s| Filter::new(Features::new(1, s).unwrap(), 1).unwrap();
        check(one_feature(14).acceptance(0.9), 0.228768, 1e-6);
        check(one_feature(25).acceptance(0.9), 0.071790, 1e-6);
    }

    /// MinHash values of the online index: P(Binomial(200, J) >= m).
    #[test]
    fn acceptance_of_full_sketches_of_200() {
        let at_least = |m, rho| Filter::full_sketch(200, m).unwrap().acceptance(rho);
        check(at_least(160, 0.70), 0.0009, 1e-4);
        check(at_least(160, 0.75), 0.058, 1e-3);
        check(at_least(160, 0.80), 0.542, 1e-3);
        check(at_least(160, 0.85), 0.978, 1e-3);
        check(at_least(160, 0.90), 0.99999, 1e-5);
        check(at_least(180, 0.85), 0.025, 1e-3);
        check(at_least(180, 0.90), 0.559, 1e-3);
        check(at_least(180, 0.95), 0.9988, 1e-4);
        // One common value is not evidence.
        check(at_least(1, 0.01), 0.866, 1e-3);
        check(at_least(1, 0.05), 0.99996, 1e-5);
    }

    #[test]
    fn borders() {
        assert!(Filter::new(Features::SIX_BY_FOURTEEN, 0).is_err());
        assert!(Filter::new(Features::SIX_BY_FOURTEEN, 7).is_err());
        assert!(Filter::full_sketch(84, 85).is_err());
        assert_eq!(Filter::TWO_OF_SIX.acceptance(0.0), 0.0);
        assert_eq!(Filter::TWO_OF_SIX.acceptance(1.0), 1.0);
        assert_eq!(Filter::TWO_OF_SIX.acceptance(1.5), 1.0);
        assert_eq!(Filter::TWO_OF_SIX.similarity_at(2.0), 1.0);
        assert!(Filter::TWO_OF_SIX.similarity_at(0.0) < 1e-300);
        assert!(Filter::TWO_OF_SIX.acceptance(f64::NAN).is_nan());
    }

    #[test]
    fn accepts_counts_features() {
        let features = [1, 2, 3, 4, 5, 6];
        assert!(Filter::TWO_OF_SIX.accepts(&features, &[1, 0, 0, 0, 0, 6]));
        assert!(!Filter::TWO_OF_SIX.accepts(&features, &[1, 0, 0, 0, 6, 5]));
    }

    /// Sketches of two sets with `n_common` of 100 elements in common, the rest halved between
    /// them.
    fn sketch_pair(n_common: usize, seeds: &[u64], random: &mut SplitMix) -> (Vec<u64>, Vec<u64>) {
        let union: Vec<u64> = (0..100).map(|_| random.next_u64()).collect();
        let (common, rest) = union.split_at(n_common);
        let (only_a, only_b) = rest.split_at(rest.len() / 2);
        let smallest = |set: &[u64], seed| set.iter().map(|x| mix(x ^ seed)).min().unwrap();
        let with_common = |own: &[u64], seed| smallest(own, seed).min(smallest(common, seed));
        let sketch = |own| seeds.iter().map(|&seed| with_common(own, seed)).collect();
        (sketch(only_a), sketch(only_b))
    }

    /// 2,000 pairs at each exact similarity; the observed rate must lie within four standard
    /// errors `sqrt(P (1 - P) / 2000)` of the polynomial.
    #[test]
    fn observed_rates_follow_the_polynomial() {
        const N_PAIRS: usize = 2000;
        let mut random = SplitMix::new(19_970_407);
        let seeds: Vec<u64> = (0..200).map(|_| random.next_u64()).collect();
        for n_common in [70, 80, 90, 95] {
            let mut n_accepted = [0; 2];
            for _ in 0..N_PAIRS {
                let (a, b) = sketch_pair(n_common, &seeds, &mut random);
                for (n, filter) in n_accepted
                    .iter_mut()
                    .zip([Filter::TWO_OF_SIX, Filter::ONE_OF_EIGHT])
                {
                    let features = filter.features();
                    let of = |sketch: &[u64]| features.of(&sketch[..features.t()]).unwrap();
                    *n += usize::from(filter.accepts(&of(&a), &of(&b)));
                }
            }
            for (n, filter) in n_accepted
                .into_iter()
                .zip([Filter::TWO_OF_SIX, Filter::ONE_OF_EIGHT])
            {
                let expected = filter.acceptance(n_common as f64 / 100.0);
                let observed = n as f64 / N_PAIRS as f64;
                let standard_error = (expected * (1.0 - expected) / N_PAIRS as f64).sqrt();
                assert!(
                    (observed - expected).abs() <= 4.0 * standard_error,
                    "{filter:?} at {n_common} %: observed {observed}, expected {expected}"
                );
            }
        }
    }

    proptest! {
        #[test]
        fn points_invert_the_polynomial(
            k in 1_usize..20,
            s in 1_usize..30,
            r in 1_usize..20,
            probability in 0.001..0.999_f64,
        ) {
            prop_assume!(r <= k);
            let filter = Filter::new(Features::new(k, s).unwrap(), r).unwrap();
            let rho = filter.similarity_at(probability);
            prop_assert!((filter.acceptance(rho) - probability).abs() < 1e-9);
        }
    }
}
