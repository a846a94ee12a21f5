//! Crawl values: the value of a visit now.
//!
//! Let `c(t)` be the cost per day of being out of date, `t` days after the last visit. The value of
//! a visit is `V(t) = t c(t) - integral of c from 0 to t`: the cost of the page at its current rate
//! in excess of its actual cost so far. Visiting the page with the largest value reaches the
//! optimal rates without knowing them.

/// The cost that a crawl minimizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Value {
    /// The time for which pages are out of date. The value is bounded by `mu/r`: pages that change
    /// too often are given up.
    Binary,
    /// Changes missed, each counting less than the one before: the `i`-th costs `1/i`. The value
    /// grows with time without bound, so every page has its turn.
    #[default]
    Harmonic,
    /// The age of outdated pages.
    Age,
}

impl Value {
    /// Returns the value of visiting a page of importance `mu` and rate `r`, `t` days after the
    /// last visit.
    #[must_use]
    pub fn of(self, mu: f64, r: f64, t: f64) -> f64 {
        if t <= 0.0 || r <= 0.0 {
            return 0.0;
        }
        let x = r * t;
        if x < 1e-3 {
            return mu * self.near_zero(r, t);
        }
        // The expected time until the first change, and the probability that the page is unchanged.
        let fresh = -(-x).exp_m1() / r;
        let left = (-x).exp();
        mu * match self {
            Self::Binary => fresh - t * left,
            Self::Harmonic => t - fresh,
            Self::Age => t * t / 2.0 + t * left / r - fresh / r,
        }
    }

    /// Returns the first terms of the series, for use where differences of closed forms lose all
    /// precision.
    fn near_zero(self, r: f64, t: f64) -> f64 {
        let x = r * t;
        match self {
            Self::Binary => t * x * (0.5 - x / 3.0 + x * x / 8.0),
            Self::Harmonic => t * x * (0.5 - x / 6.0 + x * x / 24.0),
            Self::Age => t * t * x * (1.0 / 3.0 - x / 8.0 + x * x / 30.0),
        }
    }

    /// Returns the time after which the harmonic value of a page of importance 1 and rate `r` is
    /// `value`.
    #[must_use]
    pub fn harmonic_wait(r: f64, value: f64) -> f64 {
        if value <= 0.0 {
            return 0.0;
        }
        if r <= 0.0 {
            return f64::INFINITY;
        }
        let mut t = (2.0 * value / r).sqrt().max(value);
        for _ in 0..100 {
            let slope = -(-r * t).exp_m1();
            let step = (Self::Harmonic.of(1.0, r, t) - value) / slope;
            t = (t - step).max(value);
            if step.abs() <= t * 1e-14 {
                break;
            }
        }
        t
    }
}
