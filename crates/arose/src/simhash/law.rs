//! The relation between matching simhash bits and the angle.
//!
//! *Question.* Which documents does a threshold on C-sim accept, and with what probability?
//!
//! *Idea.* A random hyperplane separates two vectors if and only if it passes between them, which
//! happens with probability `theta / pi` (Goemans & Williamson 1995; Charikar 2002). So each bit
//! matches with probability `1 - theta / pi`, and the number of matches among `b` independent bits
//! is binomial. Note that the *angle* is linear in the matching bits; the cosine is not.
//!
//! Functions take the number of bits `b` and cosines in `-1..=1`; values outside are clamped.
//! *Cost.* Time `O(b)` for [`tail`], constant for the rest. *Error.* Exact except for rounding: the
//! tails are sums of positive terms, accurate to about 12 digits even at `10^-72`.
//!
//! *Not for* documents with fewer than about 50 features: signs of feature sums act like a
//! hyperplane only by the central limit theorem, and sums of zero count as matches.

use std::f64::consts::PI;

use crate::binomial;

/// Returns the probability that one bit matches between documents of the given cosine.
#[must_use]
pub fn agreement(cosine: f64) -> f64 {
    1.0 - cosine.clamp(-1.0, 1.0).acos() / PI
}

/// Returns the expected C-sim of documents of the given cosine.
///
/// ```
/// use arose::simhash::law;
/// assert!((law::expected_c_sim(0.98, 384) - 359.51).abs() < 0.005);
/// ```
#[must_use]
pub fn expected_c_sim(cosine: f64, n_bits: u32) -> f64 {
    f64::from(n_bits) * agreement(cosine)
}

/// Returns the standard deviation of C-sim if each bit matches with the given probability.
#[must_use]
pub fn deviation(agreement: f64, n_bits: u32) -> f64 {
    (f64::from(n_bits) * agreement * (1.0 - agreement)).sqrt()
}

/// Returns the angle, in radians, at which `c_sim` of `n_bits` are expected to match.
#[must_use]
pub fn implied_angle(c_sim: u32, n_bits: u32) -> f64 {
    PI * f64::from(n_bits.saturating_sub(c_sim)) / f64::from(n_bits)
}

/// Returns the cosine at which `c_sim` of `n_bits` are expected to match.
#[must_use]
pub fn implied_cosine(c_sim: u32, n_bits: u32) -> f64 {
    implied_angle(c_sim, n_bits).cos()
}

/// Returns the cosine after features of weight 1 were replaced by new ones.
///
/// `squared_norm` is the sum of squared counts, the number of features if all are distinct.
#[must_use]
pub fn cosine_after_replacing(n_replaced: f64, squared_norm: f64) -> f64 {
    1.0 - n_replaced / squared_norm
}

/// Returns the probability that documents of the given cosine have a C-sim of at least `min_c_sim`.
///
/// ```
/// use arose::simhash::law;
/// assert!((law::tail(372, 0.995, 384) - 0.5495).abs() < 5e-5);
/// ```
#[must_use]
pub fn tail(min_c_sim: u32, cosine: f64, n_bits: u32) -> f64 {
    binomial::at_least(n_bits.into(), agreement(cosine), min_c_sim.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BITS: u32 = 384;

    /// The first table of the specification, as printed there.
    #[test]
    fn implied_angles_and_cosines() {
        for (c_sim, angle, cosine, sd) in [
            (384, 0.0, 1.0, 0.0),
            (378, 0.04909, 0.998_795, 2.43),
            (375, 0.07363, 0.997_290, 2.96),
            (372, 0.09817, 0.995_185, 3.41),
            (355, 0.23726, 0.971_987, 5.18),
        ] {
            assert!((implied_angle(c_sim, BITS) - angle).abs() < 5e-6, "{c_sim}");
            assert!(
                (implied_cosine(c_sim, BITS) - cosine).abs() < 5e-7,
                "{c_sim}"
            );
            let agreement = f64::from(c_sim) / f64::from(BITS);
            assert!((deviation(agreement, BITS) - sd).abs() < 5e-3, "{c_sim}");
        }
    }

    /// The second table of the specification, as printed there.
    #[test]
    fn expectations_and_tails() {
        for (cosine, expected, alone, filter) in [
            (0.95, 345.18, 0.0000, 0.0531),
            (0.97, 353.98, 0.0001, 0.4716),
            (0.98, 359.51, 0.0033, 0.8521),
            (0.99, 366.70, 0.1150, 0.9972),
            (0.995, 371.77, 0.5495, 1.0000),
            (0.998, 376.27, 0.9501, 1.0000),
            (0.999, 378.53, 0.9960, 1.0000),
        ] {
            assert!(
                (expected_c_sim(cosine, BITS) - expected).abs() < 5e-3,
                "{cosine}"
            );
            assert!((tail(372, cosine, BITS) - alone).abs() < 5e-5, "{cosine}");
            assert!((tail(355, cosine, BITS) - filter).abs() < 5e-5, "{cosine}");
        }
    }

    /// Computed with exact integers: 9.318534787474972e-73.
    #[test]
    fn unrelated_pages_never_pass() {
        let exact = 9.318_534_787_474_972e-73;
        assert!((tail(355, 0.0, BITS) / exact - 1.0).abs() < 1e-11);
    }

    #[test]
    fn implied_and_expected_are_inverse() {
        for c_sim in 0..=BITS {
            let back = expected_c_sim(implied_cosine(c_sim, BITS), BITS);
            assert!((back - f64::from(c_sim)).abs() < 1e-5, "{c_sim}: {back}");
        }
    }

    #[test]
    fn limits() {
        assert_eq!(tail(0, 0.3, BITS), 1.0);
        assert_eq!(tail(BITS, 1.0, BITS), 1.0);
        assert_eq!(tail(BITS + 1, 1.0, BITS), 0.0);
        assert_eq!(tail(BITS + 1, 0.5, BITS), 0.0);
        assert_eq!(tail(1, -1.0, BITS), 0.0);
        assert_eq!(agreement(1.5), 1.0);
        assert_eq!(implied_angle(BITS + 5, BITS), 0.0);
    }

    #[test]
    fn replacing_tokens() {
        assert!((cosine_after_replacing(4.0, 200.0) - 0.98).abs() < 1e-15);
        assert!((cosine_after_replacing(2.0, 400.0) - 0.995).abs() < 1e-15);
        // Shingles of 8 tokens: each changed token alters up to 8 of them.
        let cosine = cosine_after_replacing(16.0, 400.0);
        assert!((cosine - 0.96).abs() < 1e-15);
        assert_eq!(expected_c_sim(cosine, BITS).round(), 349.0);
    }
}
