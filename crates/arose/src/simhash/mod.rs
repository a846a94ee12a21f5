//! Simhash: a few words whose differing bits measure the angle between two documents.
//!
//! *Question.* How similar are two texts as bags of features, wherever the changes are?
//!
//! *Idea.* A document is a vector with one axis per feature (token or shingle); each coordinate is
//! the number of occurrences. Storing the vectors and computing their cosine is exact but large.
//! Instead, take a random hyperplane through the origin and store on which side the vector lies:
//! one bit. A hyperplane separates two vectors at an angle `theta` with probability `theta / pi`,
//! so `b` hyperplanes give a fingerprint of `b` bits whose matches measure the angle (Charikar
//! 2002; "algorithm C" of Henzinger 2006). The hyperplanes need not be stored: hash each feature to
//! `b` signs, add the signs of all features, and keep the signs of the sums.
//!
//! *Definition.* Word `j` of the signs of a feature `x` is `mix(x ^ mix(j + 1))`, where a set bit
//! means +1. With the weights `w`, bit `i` of the fingerprint is 1 iff the sum of `w(x) *
//! sign_i(x)` is above zero; **zero gives 0**. `C-sim` is the number of matching bits.
//!
//! | parameter | meaning | default |
//! |---|---|---|
//! | `W` | 64-bit words, `b = 64 W` | 6: 384 bits, 48 bytes |
//! | [`Features`] | tokens, or shingles of `w` tokens | tokens |
//! | [`Weights`] | occurrences, presence, or a frozen table | occurrences |
//! | [`MinCSim`] | minimum number of matching bits | 372 alone, 355 as a filter |
//!
//! *Cost.* 5.5 ns per feature for 384 bits with AVX2, by counting in bit slices; the simple
//! counters of [`plain`] take 352 ns, and so do real-valued weights. A comparison takes `W`
//! exclusive ors and population counts.
//!
//! *Error.* C-sim is binomial around `b (1 - theta / pi)`: 371.8 +- 3.4 bits at a cosine of 0.995.
//! See [`law`] for the exact tails. The order of features and a common factor of all weights have
//! no effect.
//!
//! *Not for* documents with fewer than about 50 features, whose sums are often zero, so that too
//! many bits match (20 tokens, one replaced: 350.2 expected, 345.2 by the law); nor for word order:
//! with tokens as features, shuffled sentences look equal; nor for containment.
//!
//! Searching: [`pieces`] finds the pairs that differ in up to about 12 of 384 bits, [`tables`]
//! those that differ in up to 3 of 64.
//!
//! ```
//! use arose::mix::mix;
//! use arose::simhash::{Fingerprint384, MinCSim};
//!
//! let text: Vec<u64> = (0..1000).map(mix).collect();
//! let edited: Vec<u64> = (1..1001).map(mix).collect();
//! let other: Vec<u64> = (5000..6000).map(mix).collect();
//! let [text, edited, other] = [text, edited, other].map(|f| Fingerprint384::of(&f).unwrap());
//!
//! assert!(MinCSim::ALONE.reached_by(text.c_sim(&edited)));
//! assert!(!MinCSim::FILTER.reached_by(text.c_sim(&other)));
//! assert_eq!(Fingerprint384::of(&[]), None);
//! ```

pub mod law;
pub mod pieces;
pub mod plain;
pub mod tables;
mod weights;

#[cfg(test)]
mod tests;

pub use weights::{Weight, WeightTable};

use std::num::NonZeroU32;

use crate::Error;
use crate::rule::{MIN_BITS_ALONE, MIN_BITS_FILTER};
use crate::simd::project;

/// The fingerprint of 48 bytes used throughout.
pub type Fingerprint384 = Fingerprint<6>;

/// `64 W` bits, one per hyperplane: on which side of it a document lies.
///
/// Bit `i` is bit `i % 64` of word `i / 64`. Compare only fingerprints of one [`Kind`]; a
/// [`Sketch`] carries its kind along.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint<const W: usize>(pub [u64; W]);

impl<const W: usize> Fingerprint<W> {
    /// The number of bits. A fingerprint without any does not compile.
    pub const BITS: u32 = {
        assert!(W > 0, "a fingerprint has at least one word");
        64 * W as u32
    };

    /// The fingerprint of `features`, weighted by how often they occur; none without features.
    #[must_use]
    pub fn of(features: &[u64]) -> Option<Self> {
        const { assert!(Self::BITS > 0) };
        (!features.is_empty()).then(|| Self(project::majority(features)))
    }

    /// The fingerprint of the set of `features`, where each counts once.
    #[must_use]
    pub fn of_distinct(features: &[u64]) -> Option<Self> {
        let mut distinct = features.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        Self::of(&distinct)
    }

    /// The fingerprint of features with weights, those of one feature adding up.
    ///
    /// None when no weight is above zero. For tf-idf pass every occurrence with its idf, or every
    /// feature once with the product.
    #[must_use]
    pub fn of_weighted(features: &[(u64, Weight)]) -> Option<Self> {
        plain::weighted(features.iter().copied())
    }

    /// The number of agreeing bits.
    #[inline]
    #[must_use]
    pub fn c_sim(&self, other: &Self) -> u32 {
        Self::BITS - self.distance(other)
    }

    /// The number of differing bits, their Hamming distance.
    #[inline]
    #[must_use]
    pub fn distance(&self, other: &Self) -> u32 {
        let words = self.0.iter().zip(&other.0);
        words.map(|(a, b)| (a ^ b).count_ones()).sum()
    }
}

/// How many bits of similar documents agree, at least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct MinCSim<const W: usize>(u32);

impl MinCSim<6> {
    /// At least 372 of 384, for fingerprints as the only evidence (Henzinger 2006).
    pub const ALONE: Self = Self(MIN_BITS_ALONE);
    /// At least 355 of 384, for pairs that share super-shingles already (Henzinger 2006).
    pub const FILTER: Self = Self(MIN_BITS_FILTER);
}

impl<const W: usize> MinCSim<W> {
    /// Checks that there are as many bits.
    ///
    /// # Errors
    ///
    /// When `agreeing` exceeds `64 W`.
    pub fn new(agreeing: u32) -> Result<Self, Error> {
        if agreeing <= Fingerprint::<W>::BITS {
            Ok(Self(agreeing))
        } else {
            let expected = "at most the bits of a fingerprint";
            Err(Error::parameter("c_sim", agreeing, expected))
        }
    }

    /// Whether `c_sim` agreeing bits are enough.
    #[inline]
    #[must_use]
    pub fn reached_by(self, c_sim: u32) -> bool {
        c_sim >= self.0
    }

    /// The bits that may differ: 12 for 372, 29 for 355.
    #[must_use]
    pub fn max_distance(self) -> u32 {
        Fingerprint::<W>::BITS - self.0
    }
}

/// What the features of a fingerprint are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Features {
    /// Token fingerprints: blind to order.
    #[default]
    Tokens,
    /// Fingerprints of shingles of so many tokens: sensitive to order, and to each changed token
    /// as many times, so that thresholds must be tuned again.
    Shingles(NonZeroU32),
}

/// How much a feature counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Weights<'table> {
    /// Its occurrences.
    #[default]
    Count,
    /// Once, however often it occurs.
    Binary,
    /// Its occurrences, each times the feature's weight in a frozen table.
    Table(&'table WeightTable),
}

/// What fingerprints of `64 W` bits are made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Simhash<'table, const W: usize = 6> {
    /// What the caller passes in as features.
    pub features: Features,
    /// How much each counts.
    pub weights: Weights<'table>,
}

impl<const W: usize> Simhash<'_, W> {
    /// What distinguishes these fingerprints from others.
    #[must_use]
    pub fn kind(&self) -> Kind {
        let weighting = match self.weights {
            Weights::Count => Weighting::Count,
            Weights::Binary => Weighting::Binary,
            Weights::Table(table) => Weighting::Table(table.digest()),
        };
        Kind {
            features: self.features,
            weighting,
        }
    }

    /// The fingerprint of one document; none if nothing in it has weight.
    ///
    /// The features come in any order, repeated as they occur.
    #[must_use]
    pub fn fingerprint(&self, features: &[u64]) -> Option<Fingerprint<W>> {
        match self.weights {
            Weights::Count => Fingerprint::of(features),
            Weights::Binary => Fingerprint::of_distinct(features),
            Weights::Table(table) => {
                plain::weighted(features.iter().map(|&x| (x, table.weight(x))))
            }
        }
    }

    /// The fingerprint of one document together with its kind.
    #[must_use]
    pub fn sketch(&self, features: &[u64]) -> Option<Sketch<W>> {
        let fingerprint = self.fingerprint(features)?;
        let kind = self.kind();
        Some(Sketch { kind, fingerprint })
    }
}

/// What a fingerprint was made from; the number of bits is in its type.
///
/// Stored once with a collection of fingerprints, or with each in a [`Sketch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Kind {
    /// What the features were.
    pub features: Features,
    /// How much they counted.
    pub weighting: Weighting,
}

/// The [`Weights`] of a fingerprint, with a table known by its digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Weighting {
    /// See [`Weights::Count`].
    #[default]
    Count,
    /// See [`Weights::Binary`].
    Binary,
    /// See [`Weights::Table`]; the value is its [`WeightTable::digest`].
    Table(u64),
}

/// A fingerprint that knows its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sketch<const W: usize> {
    /// What the fingerprint was made from.
    pub kind: Kind,
    /// The bits.
    pub fingerprint: Fingerprint<W>,
}

impl<const W: usize> Sketch<W> {
    /// The number of agreeing bits; none between different kinds, where it would mean nothing.
    #[must_use]
    pub fn c_sim(&self, other: &Self) -> Option<u32> {
        (self.kind == other.kind).then(|| self.fingerprint.c_sim(&other.fingerprint))
    }
}
