//! Crawl values: what is a visit worth now?
//!
//! If being out of date costs `c(t)` per day, `t` days after the last visit, then a visit is worth
//! `V(t) = t c(t) - integral of c from 0 to t`: what the page costs at its present rate beyond what
//! it has cost on average. Visiting the page with the largest value reaches the optimal rates
//! without knowing them.

/// The cost that a crawl wants to be small.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Value {
    /// The time that pages are out of date. Bounded by `mu/r`: pages that change too often are
    /// given up.
    Binary,
    /// Changes missed, each counting less than the one before: the `i`-th costs `1/i`. Grows with
    /// time without bound, so every page has its turn.
    #[default]
    Harmonic,
    /// The age of what is out of date.
    Age,
}

impl Value {
    /// The value of visiting a page of importance `mu` and rate `r`, `t` days after the last visit.
    #[must_use]
    pub fn of(self, mu: f64, r: f64, t: f64) -> f64 {
        if t <= 0.0 || r <= 0.0 {
            return 0.0;
        }
        let x = r * t;
        if x < 1e-3 {
            return mu * self.near_zero(r, t);
        }
        // The expected time until the first change, and what is left of the page.
        let fresh = -(-x).exp_m1() / r;
        let left = (-x).exp();
        mu * match self {
            Self::Binary => fresh - t * left,
            Self::Harmonic => t - fresh,
            Self::Age => t * t / 2.0 + t * left / r - fresh / r,
        }
    }

    /// The first terms of the series, where differences of closed forms have no digits left.
    fn near_zero(self, r: f64, t: f64) -> f64 {
        let x = r * t;
        match self {
            Self::Binary => t * x * (0.5 - x / 3.0 + x * x / 8.0),
            Self::Harmonic => t * x * (0.5 - x / 6.0 + x * x / 24.0),
            Self::Age => t * t * x * (1.0 / 3.0 - x / 8.0 + x * x / 30.0),
        }
    }

    /// The time after which the harmonic value of a page of importance 1 and rate `r` is `value`.
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
