//! The lower bound: the claimed size of a search engine, and the reliability of its claims.
//!
//! *Question.* Search engines print "about 9,870,000 results". What does this show about their
//! size?
//!
//! *Idea.* Query pages with any of the most frequent words of several languages. The search engine
//! has at least that many pages, if the count is true. It seldom is: counts are extrapolated from a
//! few shards, rounded, and change over time. So check them against each other. An OR of more words
//! can only match more pages. Of two claims `c > d` where `d` has all the words of `c`, one is
//! wrong by a factor of `1 + e` with `e` at least `(c - d) / (c + d)`. The largest such `e` is the
//! proven error of the claims ([`Noise`]).
//!
//! *Source.* Schütze's lecture. *Parameters.* Disjoint word lists, alone and joined. *Cost.* The
//! square of the number of claims. *Error.* A bound never has an interval: nothing was sampled.
//! *Not for* comparing search engines, whose counts mean different things.

use crate::Error;
use crate::estimate::Method;

/// A count that a search engine gave for pages with any of some words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim<W> {
    /// The words.
    pub words: Vec<W>,
    /// The claimed number of pages.
    pub count: u64,
}

/// The error of claims, derived from their contradictions.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Noise {
    /// Pairs of claims that can be compared, because one has all the words of the other.
    pub n_comparable: u64,
    /// Pairs in which more words gave a smaller count.
    pub n_violations: u64,
    /// The proven relative error: a lower bound on the error of the counts.
    pub least_error: f64,
}

/// The largest claim, with the proven error of the claims.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LowerBound {
    /// The method.
    pub method: Method,
    /// The largest count claimed.
    pub claimed: u64,
    /// The proven error of the claims.
    pub noise: Noise,
}

impl LowerBound {
    /// Returns the largest claim, lowered by the proven error.
    #[must_use]
    pub fn cautious(&self) -> f64 {
        self.claimed as f64 / (1.0 + self.noise.least_error)
    }
}

/// Returns the largest claim and the contradictions among all of them.
///
/// # Errors
///
/// Returns an error if there is no claim, or none above zero.
///
/// ```
/// use arose::estimate::lower_bound::{Claim, lower_bound};
/// let claim = |words: &[&'static str], count| Claim { words: words.to_vec(), count };
/// let bound = lower_bound(&[
///     claim(&["the", "of"], 1_100),
///     claim(&["der", "die"], 300),
///     claim(&["the", "of", "der", "die"], 900),
/// ])?;
/// assert_eq!((bound.claimed, bound.noise.n_violations), (1_100, 1));
/// assert_eq!(bound.noise.least_error, 0.1);
/// # Ok::<(), arose::Error>(())
/// ```
pub fn lower_bound<W: Ord + Clone>(claims: &[Claim<W>]) -> Result<LowerBound, Error> {
    let claimed = claims.iter().map(|claim| claim.count).max().unwrap_or(0);
    if claimed == 0 {
        let reason = "the engine claims no result for any query";
        return Err(Error::no_estimate(Method::LowerBound.quantity(), reason));
    }
    Ok(LowerBound {
        method: Method::LowerBound,
        claimed,
        noise: noise(claims),
    })
}

fn noise<W: Ord + Clone>(claims: &[Claim<W>]) -> Noise {
    let mut sorted = claims.to_vec();
    for claim in &mut sorted {
        claim.words.sort_unstable();
        claim.words.dedup();
    }
    let mut noise = Noise::default();
    for (at, claim) in sorted.iter().enumerate() {
        for other in &sorted[at + 1..] {
            let contradiction = if claim.words == other.words {
                Some(claim.count.abs_diff(other.count))
            } else if is_subset(&claim.words, &other.words) {
                Some(claim.count.saturating_sub(other.count))
            } else if is_subset(&other.words, &claim.words) {
                Some(other.count.saturating_sub(claim.count))
            } else {
                None
            };
            noise.add(contradiction, claim.count as f64 + other.count as f64);
        }
    }
    noise
}

impl Noise {
    fn add(&mut self, contradiction: Option<u64>, sum: f64) {
        let Some(difference) = contradiction else {
            return;
        };
        self.n_comparable += 1;
        if difference > 0 {
            self.n_violations += 1;
            self.least_error = self.least_error.max(difference as f64 / sum);
        }
    }
}

fn is_subset<W: Ord>(few: &[W], many: &[W]) -> bool {
    few.iter().all(|word| many.binary_search(word).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(words: &[u32], count: u64) -> Claim<u32> {
        Claim {
            words: words.to_vec(),
            count,
        }
    }

    #[test]
    fn honest_claims_have_no_noise() {
        let claims = [
            claim(&[1], 10),
            claim(&[2], 15),
            claim(&[2, 1], 20),
            claim(&[3, 2, 1], 20),
        ];
        let bound = lower_bound(&claims).unwrap();
        assert_eq!((bound.claimed, bound.cautious()), (20, 20.0));
        assert_eq!(
            bound.noise,
            Noise {
                n_comparable: 5,
                n_violations: 0,
                least_error: 0.0
            }
        );
    }

    #[test]
    fn contradictions_show_the_error() {
        // The same words with 80 and 120: an error of a fifth, whichever is queried first.
        let bound = lower_bound(&[claim(&[1, 2], 80), claim(&[2, 1, 2], 120)]).unwrap();
        assert_eq!(
            bound.noise,
            Noise {
                n_comparable: 1,
                n_violations: 1,
                least_error: 0.2
            }
        );
        assert_eq!(bound.cautious(), 100.0);
        // More words and fewer pages, in either order of queries.
        let few_then_many = lower_bound(&[claim(&[1], 30), claim(&[1, 2], 10)]).unwrap();
        let many_then_few = lower_bound(&[claim(&[1, 2], 10), claim(&[1], 30)]).unwrap();
        assert_eq!(few_then_many, many_then_few);
        assert_eq!(few_then_many.noise.least_error, 0.5);
    }

    #[test]
    fn nothing_claimed() {
        assert!(lower_bound::<u32>(&[]).is_err());
        assert!(lower_bound(&[claim(&[1], 0), claim(&[1, 2], 0)]).is_err());
        assert!(lower_bound(&[claim(&[1], u64::MAX), claim(&[1], 0)]).is_ok());
    }
}
