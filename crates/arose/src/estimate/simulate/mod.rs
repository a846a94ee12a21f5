//! Simulated worlds with known values, on which estimates can be checked.
//!
//! *Question.* How reliable is a method, before it is used on a real search engine?
//!
//! *Idea.* Generate a world with the difficulties of the methods and nothing else: a [`Corpus`]
//! whose pages differ widely in length and some of which are duplicates; [`Engine`]s that have
//! parts of it, rank, truncate, guess counts and time out; a [`LinkGraph`] with popular and
//! unreachable pages; an [`AddressSpace`] with hosts on several IP addresses. Everything follows
//! from a seed.
//!
//! *Parameters.* Those of each world; their defaults resemble the web where that matters to an
//! estimate, in skew and not in size. *Cost.* Linear in tokens and links; a corpus of 4,000 pages
//! takes about 50 ms. *Error.* None: the true values are counted, not computed from the settings.
//! *Not for* biases that are not simulated.

mod addresses;
mod corpus;
mod engine;
mod graph;

pub use addresses::{AddressConfig, AddressSpace, Host};
pub use corpus::{Corpus, CorpusConfig, Page};
pub use engine::{Engine, EngineConfig, holdings};
pub use graph::{GraphConfig, LinkGraph};

use std::f64::consts::TAU;

use crate::Error;
use crate::mix::SplitMix;

/// Returns `n` different numbers below `bound`, all choices equally likely; all of them if `n`
/// exceeds it.
///
/// ```
/// use arose::estimate::simulate::choose_distinct;
/// use arose::mix::SplitMix;
/// let mut chosen = choose_distinct(5, 3, &mut SplitMix::new(1));
/// chosen.sort();
/// chosen.dedup();
/// assert_eq!(chosen.len(), 3);
/// ```
pub fn choose_distinct(bound: usize, n: usize, random: &mut SplitMix) -> Vec<usize> {
    let mut numbers: Vec<usize> = (0..bound).collect();
    let n = n.min(bound);
    for place in 0..n {
        let other = place + random.below((bound - place) as u64) as usize;
        numbers.swap(place, other);
    }
    numbers.truncate(n);
    numbers
}

/// Returns a number from the standard normal distribution (Box & Muller 1958).
fn normal_deviate(random: &mut SplitMix) -> f64 {
    // One minus a number below one is never zero.
    let radius = (-2.0 * (1.0 - random.next_f64()).ln()).sqrt();
    radius * (TAU * random.next_f64()).cos()
}

/// Checks that a share is in `0..=1`.
fn check_share(name: &'static str, share: f64) -> Result<(), Error> {
    if (0.0..=1.0).contains(&share) {
        return Ok(());
    }
    Err(Error::parameter(name, share, "0..=1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 10,000 normal deviates the mean has standard error 0.01, the variance 0.0141.
    #[test]
    fn deviates_are_normal() {
        let mut random = SplitMix::new(1);
        let deviates: Vec<f64> = (0..10_000).map(|_| normal_deviate(&mut random)).collect();
        let mean = deviates.iter().sum::<f64>() / 1e4;
        let variance = deviates.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 1e4;
        assert!(
            mean.abs() < 0.04 && (variance - 1.0).abs() < 0.0566,
            "{mean}, {variance}"
        );
    }

    #[test]
    fn choices_are_distinct() {
        let mut chosen = choose_distinct(20, 50, &mut SplitMix::new(1));
        chosen.sort_unstable();
        assert_eq!(chosen, (0..20).collect::<Vec<_>>());
        assert!(choose_distinct(0, 3, &mut SplitMix::new(1)).is_empty());
    }
}
