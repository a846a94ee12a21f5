//! Wald's sequential test: decides between two probabilities with as few trials as possible.

/// A test of whether URLs that differ in one part have the same content.
///
/// It decides between a share of equal pages of at most `p0` and one of at least `p1`. The error
/// probabilities are 1% for accepting wrongly and 5% for rejecting wrongly. With 0.80 and 0.995, a
/// rule is accepted after 21 consecutive equal pairs, and rejected if the first pair differs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sequential {
    /// The amount that a pair of equal pages adds.
    pub same: f64,
    /// The amount that a pair of different pages adds.
    pub different: f64,
}

/// The result of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The part does not matter.
    Accepted,
    /// The part matters.
    Rejected,
    /// More pairs are needed.
    Open,
}

impl Sequential {
    /// The minimum sum at which a rule is accepted: `ln((1 - 0.05) / 0.01)`.
    pub const ACCEPT: f64 = 4.553_876_891_600_541;
    /// The maximum sum at which a rule is rejected: `ln(0.05 / (1 - 0.01))`.
    pub const REJECT: f64 = -2.985_681_937_700_489_7;
    /// The initial sum of a rule with a known name: half of the required sum.
    pub const KNOWN: f64 = Self::ACCEPT / 2.0;

    /// Creates a test of a share of `p1` against one of `p0`, both between 0 and 1.
    #[must_use]
    pub fn new(p0: f64, p1: f64) -> Self {
        Self {
            same: (p1 / p0).ln(),
            different: ((1.0 - p1) / (1.0 - p0)).ln(),
        }
    }

    /// Returns the result for a sum.
    #[must_use]
    pub fn outcome(sum: f64) -> Outcome {
        if sum >= Self::ACCEPT {
            Outcome::Accepted
        } else if sum <= Self::REJECT {
            Outcome::Rejected
        } else {
            Outcome::Open
        }
    }
}

impl Default for Sequential {
    fn default() -> Self {
        Self::new(0.80, 0.995)
    }
}

/// Returns the lower bound, with 95% confidence, on the share of equal pairs if all of `n` pairs
/// were equal.
#[must_use]
pub fn lower_bound(n: u32) -> f64 {
    0.05_f64.powf(1.0 / f64::from(n))
}
