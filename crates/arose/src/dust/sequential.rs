//! Wald's sequential test: decides between two probabilities with as few trials as possible.

/// A test of whether URLs that differ in one part have the same content.
///
/// Against a share of at most `p0` equal pages it wants to show a share of at least `p1`, with
/// error probabilities of 1% for accepting wrongly and 5% for rejecting wrongly. With 0.80 and
/// 0.995 a rule is accepted after 21 equal pairs in a row, and rejected at the first pair that
/// differs when nothing is known yet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sequential {
    /// What a pair of equal pages adds.
    pub same: f64,
    /// What a pair of different pages adds.
    pub different: f64,
}

/// What a test has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The part does not matter.
    Accepted,
    /// It does.
    Rejected,
    /// More pairs are needed.
    Open,
}

impl Sequential {
    /// The sum from which a rule is accepted: `ln((1 - 0.05) / 0.01)`.
    pub const ACCEPT: f64 = 4.553_876_891_600_541;
    /// The sum up to which it is rejected: `ln(0.05 / (1 - 0.01))`.
    pub const REJECT: f64 = -2.985_681_937_700_489_7;
    /// Where a rule with a known name starts: half of the way.
    pub const KNOWN: f64 = Self::ACCEPT / 2.0;

    /// A test of a share of `p1` against one of `p0`, both between 0 and 1.
    #[must_use]
    pub fn new(p0: f64, p1: f64) -> Self {
        Self {
            same: (p1 / p0).ln(),
            different: ((1.0 - p1) / (1.0 - p0)).ln(),
        }
    }

    /// What a sum has come to.
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

/// The share of equal pairs that holds with 95% confidence when all of `n` were equal.
#[must_use]
pub fn lower_bound(n: u32) -> f64 {
    0.05_f64.powf(1.0 / f64::from(n))
}
