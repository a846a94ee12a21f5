//! Weighted MinHash: samples each element with a probability proportional to its weight.
//!
//! *Question.* Elements of two bags have weights, and common elements have the same weight in both.
//! What share of the total weight do both bags have in common?
//!
//! *Idea.* Put the elements into a random order in which an element of weight `w` has the position
//! `-ln(u) / w`, `u` uniform. Then each element of a set is the first with a probability
//! proportional to its weight. So two sets have the same first element with a probability that *is*
//! the weighted Jaccard similarity. Only positions near the beginning matter, and there `-ln(1 -
//! u)` is `u`: elements have the position `u / w`, which takes one multiplication.
//!
//! *Paper.* Manasse, McSherry & Talwar 2010; the exponential form: Moulton & Jiang 2018. *Cost.*
//! `O(n t)`, 8 lanes at once. *Error.* As [`NarrowMinHash`](super::NarrowMinHash); using `u` for
//! `-ln(1 - u)` favours heavy elements by a share of about `1 / W` in a set of weight `W`. *Not
//! for* elements that weigh more than 1, nor for sets with a total weight below about 5.

use std::num::NonZeroU16;

use crate::mix::SplitMix;
use crate::simd::min_hash::lower_minima;
pub use crate::simd::weighted::Element as LightElement;
use crate::simd::weighted::{LANES, find_firsts};

/// The first elements of `t` weighted orders.
///
/// ```
/// use arose::sketch::WeightedMinHash;
/// let sketcher = WeightedMinHash::new(160.try_into()?, 1);
/// // Both have 100 elements of weight 1, and 900 of weight 0.01 that the other does not have.
/// let sketch = |others: std::ops::Range<u64>| {
///     let own = (0..100).map(|element| (element, 1.0));
///     sketcher.sketch(own.chain(others.map(|element| (element, 0.01))))
/// };
/// let (a, b) = (sketch(1000..1900), sketch(2000..2900));
/// let n_equal = a.iter().zip(&b).filter(|(a, b)| a == b).count();
/// // The truth is 100 / 118 = 0.85; four standard errors are 0.11.
/// assert!((n_equal as f64 / 160.0 - 0.85).abs() < 0.11);
/// # Ok::<(), std::num::TryFromIntError>(())
/// ```
#[derive(Debug, Clone)]
pub struct WeightedMinHash {
    t: NonZeroU16,
    /// Padded to whole vectors.
    factors: Vec<u32>,
}

impl WeightedMinHash {
    /// Creates `t` orders chosen by `seed`.
    #[must_use]
    pub fn new(t: NonZeroU16, seed: u64) -> Self {
        let n_lanes = usize::from(t.get()).next_multiple_of(LANES);
        let mut random = SplitMix::new(seed);
        let factors = (0..n_lanes).map(|_| (random.next_u64() >> 32) as u32 | 1);
        Self {
            t,
            factors: factors.collect(),
        }
    }

    /// Returns the sketch of a set of elements, each given once with its weight in `0.0..=1.0`. The
    /// sketch is empty if there are none. Elements of weight 0 have no effect.
    pub fn sketch(&self, elements: impl IntoIterator<Item = (u64, f64)>) -> Vec<u32> {
        let (mut whole, mut light) = (Vec::new(), Vec::new());
        for (element, weight) in elements {
            match weight == 1.0 {
                true => whole.push(element),
                false => light.push(LightElement::new(element, weight)),
            }
        }
        if whole.is_empty() && light.is_empty() {
            return Vec::new();
        }
        let mut firsts = Vec::new();
        self.minima_into(self.factors.len(), &whole, &mut firsts);
        self.add_light(&light, &mut firsts);
        firsts.truncate(self.t.get().into());
        firsts
    }

    /// Returns the number of orders, including those that pad vectors.
    #[must_use]
    pub fn n_orders(&self) -> usize {
        self.factors.len()
    }

    /// Replaces `minima` by the smallest hashes of `elements` in the first `n` orders, a multiple
    /// of 4: the sketch of a set in which every element weighs 1. All are `u32::MAX` if there are
    /// no elements.
    pub fn minima_into(&self, n: usize, elements: &[u64], minima: &mut Vec<u32>) {
        minima.clear();
        minima.resize(n, u32::MAX);
        self.lower_minima(elements, minima);
    }

    /// Adds elements of weight 1 to a sketch of the first orders; `minima` has one value per order.
    pub fn lower_minima(&self, elements: &[u64], minima: &mut [u32]) {
        lower_minima(elements, &self.factors[..minima.len()], minima);
    }

    /// Adds lighter elements to a sketch, in all orders, of elements that weigh 1.
    pub fn add_light(&self, light: &[LightElement], firsts: &mut [u32]) {
        find_firsts(light, &self.factors, firsts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The share of matching values is the weighted Jaccard similarity, within four standard errors
    /// and the preference for heavy elements.
    #[test]
    fn issue_24_agreement_is_the_weighted_similarity() {
        let t = 4000;
        for seed in 1..4 {
            let mut random = SplitMix::new(seed);
            let sketcher = WeightedMinHash::new(t.try_into().unwrap(), seed);
            for n_heavy in [10, 40, 400] {
                let (mut a, mut b) = (Vec::new(), Vec::new());
                let (mut common, mut all) = (0.0, 0.0);
                for n in 0..3 * n_heavy {
                    let n_others = if n < n_heavy { 0 } else { random.below(30) };
                    let weight = crate::content::weight(n_others);
                    let element = (random.next_u64(), weight);
                    all += weight;
                    match random.below(4) {
                        0 => a.push(element),
                        1 => b.push(element),
                        _ => {
                            common += weight;
                            a.push(element);
                            b.push(element);
                        }
                    }
                }
                let expected: f64 = common / all;
                let [a, b] = [a, b].map(|set| sketcher.sketch(set));
                let n_equal = a.iter().zip(&b).filter(|(a, b)| a == b).count();
                let found = n_equal as f64 / f64::from(t);
                let error = (expected * (1.0 - expected) / f64::from(t)).sqrt();
                let bias = 0.5 / f64::from(n_heavy as u32);
                assert!(
                    (found - expected).abs() < 4.0 * error + bias,
                    "{found} for {expected} of {n_heavy}"
                );
            }
        }
    }

    /// An element has one hash, whatever its weight, so values of two sites can match.
    #[test]
    fn issue_24_weights_of_two_sites() {
        let sketcher = WeightedMinHash::new(160.try_into().unwrap(), 1);
        let set = |weight: f64| sketcher.sketch((0..100).map(|element| (element, weight)));
        assert_eq!(set(1.0), set(0.01));
        assert!(sketcher.sketch([]).is_empty());
    }
}
