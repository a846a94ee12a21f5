//! LSH banding: candidates above a similarity threshold, by hashing bands of a sketch.
//!
//! *Question.* Given `t` MinHash values per document and a threshold `T` on the Jaccard similarity,
//! how can the pairs above it be found without comparing all pairs?
//!
//! *Idea.* Divide the sketch into `b` bands of `q` rows and hash each band to a key. Two documents
//! are candidates if any band matches: `P(candidate | s) = 1 - (1 - s^q)^b`. The curve is steepest
//! near `(1/b)^(1/q)`, so `b` and `q` place the step: many short bands for low thresholds, few long
//! ones for high thresholds. This is the filter of [`crate::filter`] with `r = 1`. Broder's 8 x 25
//! super-shingles are the best banding of 200 values at `T = 0.9`.
//!
//! *Papers.* Indyk & Motwani 1998; Leskovec, Rajaraman & Ullman 2014, chapter 3.
//!
//! *Parameters.* Either weigh the two errors: `wfp` times the area under the curve below `T`, plus
//! `wfn` times the area over it above `T` ([`Banding::choose`]). Or require a recall at `T`
//! ([`Banding::for_recall`]). Equal weights put P(T) near one half, so half of the pairs *at* the
//! threshold are missed; require a recall if that matters.
//!
//! | t | T | best b x q | (1/b)^(1/q) | P(T) |
//! |---|---|---|---|---|
//! | 200 | 0.8 | 14 x 14 | 0.828 | 0.467 |
//! | 200 | 0.9 | 8 x 25 | 0.920 | 0.449 |
//! | 84 | 0.9 | 4 x 21 | 0.936 | 0.371 |
//! | 84 | 0.8 | 7 x 12 | 0.850 | 0.393 |
//! | 128 | 0.5 | 25 x 5 | 0.525 | 0.548 |
//!
//! *Cost.* `b` keys of 8 bytes per document. The choice tries all `t ln t` bandings at 402 points
//! each, which takes about 20 milliseconds for `t = 200`. *Error.* None against the keys; the curve
//! describes the error against the similarity.
//!
//! *Not for* requiring several matches at once: super-shingles with `r >= 2` give a steeper curve
//! from the same values.

use crate::feature::Features;
use crate::{Error, Threshold};

/// `b` bands of `q` rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Banding {
    features: Features,
}

/// The cost of each kind of error, relative to the other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ErrorCosts {
    /// The cost of a candidate below the threshold, which verification must discard.
    pub false_positive: f64,
    /// The cost of a pair above the threshold that is missed.
    pub false_negative: f64,
}

impl ErrorCosts {
    /// Both errors cost the same.
    pub const EQUAL: Self = Self {
        false_positive: 0.5,
        false_negative: 0.5,
    };

    fn check(self) -> Result<(), Error> {
        let Self {
            false_positive,
            false_negative,
        } = self;
        for (name, weight) in [
            ("false_positive", false_positive),
            ("false_negative", false_negative),
        ] {
            if !(weight.is_finite() && weight >= 0.0) {
                return Err(Error::parameter(name, weight, "a weight of at least 0"));
            }
        }
        Ok(())
    }
}

impl Banding {
    /// Creates `b` bands of `q` rows.
    ///
    /// # Errors
    ///
    /// Returns an error if either is zero or above 65,535.
    pub fn new(b: usize, q: usize) -> Result<Self, Error> {
        let features = Features::new(b, q).map_err(|_| {
            Error::parameter("bands x rows", format!("{b} x {q}"), "1..=65535 each")
        })?;
        Ok(Self { features })
    }

    /// Returns the banding of at most `t` MinHash values with the smallest weighted error around
    /// `threshold`.
    ///
    /// Both integrals are computed by Simpson's rule with 200 intervals. If several bandings have
    /// the same error, the one with the fewest bands is chosen.
    ///
    /// # Errors
    ///
    /// Returns an error if `t` is zero or above 65,535, or a weight is negative or not finite.
    ///
    /// ```
    /// use arose::{Threshold, banding::{Banding, ErrorCosts}};
    /// let best = Banding::choose(200, Threshold::new(0.9)?, ErrorCosts::EQUAL)?;
    /// assert_eq!((best.b(), best.q()), (8, 25));
    /// # Ok::<(), arose::Error>(())
    /// ```
    pub fn choose(t: usize, threshold: Threshold, weights: ErrorCosts) -> Result<Self, Error> {
        weights.check()?;
        check_samples(t)?;
        let mut best = Self::new(1, 1)?;
        let mut least = f64::INFINITY;
        for b in 1..=t {
            for q in 1..=t / b {
                let banding = Self::new(b, q)?;
                let error = banding.weighted_error(threshold.get(), weights);
                if error < least {
                    (best, least) = (banding, error);
                }
            }
        }
        Ok(best)
    }

    /// Returns the banding of at most `t` MinHash values with the longest bands, and as few of them
    /// as possible, that finds pairs *at* the threshold with probability `recall` or more.
    ///
    /// # Errors
    ///
    /// Returns an error if `t` is zero or above 65,535, or no banding of `t` MinHash values reaches
    /// the recall.
    ///
    /// ```
    /// use arose::{Threshold, banding::Banding};
    /// let banding = Banding::for_recall(200, Threshold::new(0.8)?, Threshold::new(0.95)?)?;
    /// assert_eq!((banding.b(), banding.q()), (21, 9));
    /// # Ok::<(), arose::Error>(())
    /// ```
    pub fn for_recall(t: usize, threshold: Threshold, recall: Threshold) -> Result<Self, Error> {
        check_samples(t)?;
        for q in (1..=t).rev() {
            let ln_band_misses = (-threshold.get().powf(q as f64)).ln_1p();
            let b = ((-recall.get()).ln_1p() / ln_band_misses).ceil().max(1.0);
            // An infinite `b` is skipped, since no number of bands suffices.
            if b * q as f64 <= t as f64 {
                return Self::new(b as usize, q);
            }
        }
        let expected = "a recall that bands of the sketch can reach";
        Err(Error::parameter("recall", recall.get(), expected))
    }

    /// Returns the number of bands.
    #[must_use]
    pub const fn b(self) -> usize {
        self.features.k()
    }

    /// Returns the number of rows in each band.
    #[must_use]
    pub const fn q(self) -> usize {
        self.features.s()
    }

    /// Returns P(candidate | s) for a pair of similarity `s` in `0..=1` (clamped).
    #[must_use]
    pub fn candidate_probability(self, s: f64) -> f64 {
        let band_agrees = s.clamp(0.0, 1.0).powf(self.q() as f64);
        -(self.b() as f64 * (-band_agrees).ln_1p()).exp_m1()
    }

    /// Returns `(1/b)^(1/q)`, near which the curve is steepest.
    #[must_use]
    pub fn threshold(self) -> f64 {
        (1.0 / self.b() as f64).powf(1.0 / self.q() as f64)
    }

    /// Returns the key of each band: a hash of the band's number and its values, so that keys of
    /// different bands may share one table. Values after the last band are not used.
    ///
    /// [`crate::candidates::candidate_pairs`] makes pairs of them.
    ///
    /// # Errors
    ///
    /// Returns an error if the sketch has fewer than `b q` MinHash values.
    pub fn keys<V: Copy + Into<u64>>(self, sketch: &[V]) -> Result<Vec<u64>, Error> {
        let used = sketch.get(..self.features.t());
        let expected = "bands * rows samples or more";
        self.features
            .of(used.ok_or_else(|| Error::parameter("samples", sketch.len(), expected))?)
    }

    fn weighted_error(self, threshold: f64, weights: ErrorCosts) -> f64 {
        let accepted = |s| self.candidate_probability(s);
        weights.false_positive * simpson(accepted, 0.0, threshold)
            + weights.false_negative * simpson(|s| 1.0 - accepted(s), threshold, 1.0)
    }
}

fn check_samples(t: usize) -> Result<(), Error> {
    if (1..=u16::MAX as usize).contains(&t) {
        Ok(())
    } else {
        Err(Error::parameter("t", t, "1..=65535"))
    }
}

/// Returns the integral of `f` from `from` to `to` by Simpson's rule with 200 intervals.
fn simpson(f: impl Fn(f64) -> f64, from: f64, to: f64) -> f64 {
    const N_INTERVALS: u32 = 200;
    let step = (to - from) / f64::from(N_INTERVALS);
    let inner: f64 = (1..N_INTERVALS)
        .map(|i| f64::from(2 + 2 * (i % 2)) * f(from + f64::from(i) * step))
        .sum();
    (f(from) + inner + f(to)) * step / 3.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DocId;
    use crate::candidates::{Candidate, candidate_pairs};
    use crate::mix::SplitMix;
    use proptest::prelude::*;

    fn threshold(value: f64) -> Threshold {
        Threshold::new(value).unwrap()
    }

    #[track_caller]
    fn check_choice(t: usize, at: f64, best: (usize, usize), step: f64, probability: f64) {
        let banding = Banding::choose(t, threshold(at), ErrorCosts::EQUAL).unwrap();
        assert_eq!((banding.b(), banding.q()), best);
        assert!(
            (banding.threshold() - step).abs() < 0.51e-4,
            "{}",
            banding.threshold()
        );
        let actual = banding.candidate_probability(at);
        assert!((actual - probability).abs() < 0.51e-4, "{actual}");
    }

    #[test]
    fn choices_by_equal_weights() {
        check_choice(200, 0.8, (14, 14), 0.8282, 0.4672);
        check_choice(200, 0.9, (8, 25), 0.9202, 0.4490);
        check_choice(84, 0.9, (4, 21), 0.9361, 0.3709);
        check_choice(84, 0.8, (7, 12), 0.8503, 0.3925);
        check_choice(128, 0.5, (25, 5), 0.5253, 0.5478);
    }

    /// A larger weight of an error moves the step away from that error.
    #[test]
    fn weights_move_the_step() {
        let choose = |false_positive, false_negative| {
            let weights = ErrorCosts {
                false_positive,
                false_negative,
            };
            Banding::choose(128, threshold(0.7), weights)
                .unwrap()
                .threshold()
        };
        assert!(choose(0.1, 0.9) < choose(0.5, 0.5));
        assert!(choose(0.5, 0.5) < choose(0.9, 0.1));
        // If one weight is zero, every banding except one extreme has no error.
        let free = ErrorCosts {
            false_positive: 1.0,
            false_negative: 0.0,
        };
        let longest = Banding::choose(30, threshold(0.7), free).unwrap();
        assert_eq!((longest.b(), longest.q()), (1, 30));
        // Of equal errors the first is chosen: here all are zero.
        let none = ErrorCosts {
            false_positive: 0.0,
            false_negative: 0.0,
        };
        let first = Banding::choose(30, threshold(0.7), none).unwrap();
        assert_eq!((first.b(), first.q()), (1, 1));
    }

    #[test]
    fn choices_by_recall() {
        for (at, bands, probability) in [(0.8, (21, 9), 0.9515), (0.9, (13, 15), 0.9501)] {
            let banding = Banding::for_recall(200, threshold(at), threshold(0.95)).unwrap();
            assert_eq!((banding.b(), banding.q()), bands);
            assert!((banding.candidate_probability(at) - probability).abs() < 0.51e-4);
        }
        assert!(Banding::for_recall(200, threshold(0.01), threshold(0.99)).is_err());
        assert!(Banding::for_recall(200, threshold(0.0), threshold(0.5)).is_err());
        assert!(Banding::for_recall(200, threshold(0.9), threshold(1.0)).is_err());
        let certain = Banding::for_recall(200, threshold(1.0), threshold(1.0)).unwrap();
        assert_eq!((certain.b(), certain.q()), (1, 200));
    }

    #[test]
    fn twenty_bands_of_ten() {
        let banding = Banding::new(20, 10).unwrap();
        for (s, expected, unit) in [
            (0.6, 0.114, 1e-3),
            (0.7, 0.436, 1e-3),
            (0.8, 0.897, 1e-3),
            (0.9, 0.9998, 1e-4),
        ] {
            let actual = banding.candidate_probability(s);
            assert!((actual - expected).abs() < 0.51 * unit, "{s}: {actual}");
        }
        assert_eq!(banding.candidate_probability(0.0), 0.0);
        assert_eq!(banding.candidate_probability(1.0), 1.0);
        // 20 * 1e-30, which `1 - (1 - s^q)^b` would round to zero.
        assert!((banding.candidate_probability(1e-3) / 2e-29 - 1.0).abs() < 1e-12);
    }

    #[test]
    fn bad_settings_are_refused() {
        assert!(Banding::new(0, 5).is_err());
        assert!(Banding::new(5, 0).is_err());
        assert!(Banding::choose(0, threshold(0.5), ErrorCosts::EQUAL).is_err());
        assert!(Banding::choose(70_000, threshold(0.5), ErrorCosts::EQUAL).is_err());
        assert!(Banding::for_recall(0, threshold(0.5), threshold(0.5)).is_err());
        for bad in [-1.0, f64::NAN, f64::INFINITY] {
            let weights = ErrorCosts {
                false_positive: bad,
                false_negative: 1.0,
            };
            assert!(Banding::choose(10, threshold(0.5), weights).is_err());
        }
        assert!(Banding::new(5, 4).unwrap().keys(&[0_u64; 19]).is_err());
    }

    #[test]
    fn keys_ignore_what_no_band_covers() {
        let banding = Banding::new(3, 2).unwrap();
        let keys = banding.keys(&[1_u64, 2, 3, 4, 5, 6, 7]).unwrap();
        assert_eq!(keys, banding.keys(&[1_u32, 2, 3, 4, 5, 6, 0, 9]).unwrap());
        assert_eq!(keys.len(), 3);
        assert_ne!(keys, banding.keys(&[1_u64, 2, 3, 4, 5, 7]).unwrap());
    }

    #[test]
    fn simpson_is_exact_for_cubics() {
        let integral = simpson(|x| 4.0 * x * x * x - 3.0 * x * x + 1.0, -1.0, 2.0);
        assert!((integral - 9.0).abs() < 1e-12, "{integral}");
    }

    /// 4,000 pairs of sketches whose MinHash values match independently with probability s; the
    /// rate of candidates must lie within four standard errors of P(candidate | s).
    #[test]
    fn observed_rates_follow_the_curve() {
        const N_PAIRS: usize = 4000;
        let mut random = SplitMix::new(3);
        for (b, q) in [(20, 10), (14, 14), (8, 25)] {
            let banding = Banding::new(b, q).unwrap();
            for s in [0.6, 0.7, 0.8, 0.9] {
                let n_found = (0..N_PAIRS)
                    .filter(|_| found(banding, s, &mut random))
                    .count();
                let expected = banding.candidate_probability(s);
                let observed = n_found as f64 / N_PAIRS as f64;
                let standard_error = (expected * (1.0 - expected) / N_PAIRS as f64).sqrt();
                assert!(
                    (observed - expected).abs() <= 4.0 * standard_error,
                    "{b} x {q} at {s}: observed {observed}, expected {expected}"
                );
            }
        }
    }

    fn found(banding: Banding, s: f64, random: &mut SplitMix) -> bool {
        let a: Vec<u64> = (0..banding.features.t())
            .map(|_| random.next_u64())
            .collect();
        let change = |&v: &u64, random: &mut SplitMix| if random.next_f64() < s { v } else { !v };
        let b: Vec<u64> = a.iter().map(|v| change(v, random)).collect();
        let (a, b) = (banding.keys(&a).unwrap(), banding.keys(&b).unwrap());
        a.iter().zip(&b).any(|(x, y)| x == y)
    }

    proptest! {
        /// The table of band keys finds the pairs that share a band, no more and no fewer.
        #[test]
        fn pairs_equal_brute_force(
            sketches in prop::collection::vec(prop::collection::vec(0..3_u64, 6), 0..12),
            seed: u64,
        ) {
            let banding = Banding::new(3, 2).unwrap();
            let docs: Vec<(DocId, &Vec<u64>)> = (0..).map(DocId).zip(&sketches).collect();
            let mut entries = Vec::new();
            for &(doc, sketch) in &docs {
                entries.extend(banding.keys(sketch).unwrap().into_iter().map(|key| (key, doc)));
            }
            SplitMix::new(seed).shuffle(&mut entries);
            let mut expected = Vec::new();
            for (i, &(a, x)) in docs.iter().enumerate() {
                for &(b, y) in &docs[i + 1..] {
                    if x.chunks(2).zip(y.chunks(2)).any(|(p, q)| p == q) {
                        expected.push(Candidate { a, b });
                    }
                }
            }
            prop_assert_eq!(candidate_pairs(entries, 1000).pairs, expected);
        }
    }
}
