//! Sketches: summaries of a few hundred bytes from which the similarity of sets is estimated.
//!
//! *Question.* How similar are two sets, if neither is available any more?
//!
//! *Idea.* Put all possible shingles into a random order. The first shingle of `A ∪ B` in that
//! order is equally likely to be any of them, so it lies in `A ∩ B` with a probability that *is*
//! the Jaccard similarity. Exactly in this case, both sets have the same first shingle. Keep the
//! first shingles of many orders, or the first few of one order, and count matches.
//!
//! The kinds differ in what they store and in their cost. All share this vocabulary: a [`Sketcher`]
//! turns shingles into a list of values (empty if there are no shingles), estimates the similarity
//! from two lists, and, where possible ([`Mergeable`]), makes the sketch of a union from two lists.
//! The settings are in the sketcher, not in the values: only sketches of the same sketcher can be
//! compared.
//!
//! | kind | stores | time | variance at similarity J | for |
//! |---|---|---|---|---|
//! | [`MinHash`] | minima of `t` permutations, 64 bits each | `O(n t)` | `J (1 - J) / t` | the reference; super-shingles |
//! | [`NarrowMinHash`] | the same in 32 bits | `O(n t)`, 8 lanes at once | the same, plus 1e-6 false matches | the optimized default of that kind |
//! | [`BottomS`] | the `s` smallest of one permutation | `O(n)` | below `J (1 - J) / s` | exact for small sets |
//! | [`ModM`] | values divisible by `m` | `O(n)` | `≈ J (1 - J) m / N` | containment |
//! | [`OnePermutation`] | the minimum of each of `t` bins | `O(n + t)` | about `J (1 - J) / t` | speed; super-shingles after densification |
//! | [`WeightedMinHash`] | the first elements of `t` weighted orders, 32 bits each | `O(n t)`, 8 lanes at once | `J (1 - J) / t` | weighted sets and bags |
//! | [`BBit`] | the low `b` bits of `t` minima | as its source | `(1 - J) / t (J + 1 / (2^b - 1))` | memory |
//!
//! *Papers.* Broder 1997; Broder, Charikar, Frieze & Mitzenmacher 1998; Li & König 2010; Li, Owen &
//! Zhang 2012; Shrivastava 2017.
//!
//! *Not for* sets of fewer than about 50 elements, where every kind except bottom-s is coarse; nor
//! for similarities near 0, which a few values cannot distinguish from 0.

mod b_bit;
mod bottom;
mod min_hash;
mod modulo;
mod one_permutation;
mod weighted;

pub use b_bit::BBit;
pub use bottom::BottomS;
pub use min_hash::{MinHash, NarrowMinHash, Permutations, signature};
pub use modulo::ModM;
pub use one_permutation::{Densified, EMPTY_BIN, OnePermutation};
pub use weighted::{LightElement, WeightedMinHash};

use crate::feature;

/// Makes sketches of sets and compares them.
pub trait Sketcher {
    /// One entry of a sketch.
    type Value: Copy + Eq + std::fmt::Debug;

    /// Replaces `out` by the sketch of the set of `shingles`, which may repeat and come in any
    /// order; empty if there are none.
    fn sketch_into(&self, shingles: &[u64], out: &mut Vec<Self::Value>);

    /// Returns the estimated similarity of two sketched sets; none if it is undefined: if both
    /// sketches are empty, or if their sizes show that this sketcher did not make them.
    fn estimate(&self, a: &[Self::Value], b: &[Self::Value]) -> Option<f64>;

    /// Returns the sketch of the set of `shingles`.
    fn sketch(&self, shingles: &[u64]) -> Vec<Self::Value> {
        let mut out = Vec::new();
        self.sketch_into(shingles, &mut out);
        out
    }
}

/// A kind of sketch that can be merged into the sketch of a union.
pub trait Mergeable: Sketcher {
    /// Returns the sketch of `A ∪ B` from those of `A` and `B`.
    fn merge(&self, a: &[Self::Value], b: &[Self::Value]) -> Vec<Self::Value>;
}

/// Returns the share of positions at which two lists of equal, non-zero length agree.
fn agreement<V: Eq>(a: &[V], b: &[V]) -> Option<f64> {
    let comparable = !a.is_empty() && a.len() == b.len();
    comparable.then(|| feature::agreement(a, b) as f64 / a.len() as f64)
}

/// Returns the smaller value at each position. An empty list is ignored.
fn minima<V: Copy + Ord>(a: &[V], b: &[V]) -> Vec<V> {
    match (a, b) {
        ([], only) | (only, []) => only.to_vec(),
        _ => a.iter().zip(b).map(|(&a, &b)| a.min(b)).collect(),
    }
}

#[cfg(test)]
mod tests;
