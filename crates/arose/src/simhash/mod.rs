//! Simhash: a few words whose differing bits measure the angle between two documents.
//!
//! *Question.* How similar are two texts as bags of features, regardless of where the changes are?
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
//! | [`FeatureKind`] | tokens, or shingles of `w` tokens | tokens |
//! | [`FeatureWeights`] | occurrences, presence, or a frozen table | occurrences |
//! | [`MinCSim`] | minimum number of matching bits | 372 alone, 355 as a filter |
//!
//! *Cost.* 5.5 ns per feature for 384 bits with AVX2, by counting in bit slices; the simple
//! counters of [`crate::testing::simhash`] take 352 ns, and so do real-valued weights. A comparison
//! takes `W` exclusive ors and population counts.
//!
//! *Error.* C-sim is binomial around `b (1 - theta / pi)`: 371.8 +- 3.4 bits at a cosine of 0.995.
//! See [`law`] for the exact tails. The order of features and a common factor of all weights have
//! no effect.
//!
//! *Not for* documents with fewer than about 50 features, whose sums are often zero, so that too
//! many bits match (20 tokens, one replaced: 350.2 expected, 345.2 by the law). *Not for* word
//! order: with tokens as features, shuffled sentences look equal. *Not for* containment.
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
pub(crate) mod plain;
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

/// `64 W` bits, one per hyperplane: the side on which a document lies.
///
/// Bit `i` is bit `i % 64` of word `i / 64`. Compare only fingerprints of the same
/// [`FingerprintKind`]; a [`KindedFingerprint`] includes its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint<const W: usize>(pub [u64; W]);

impl<const W: usize> Fingerprint<W> {
    /// The number of bits. A fingerprint without any does not compile.
    pub const BITS: u32 = {
        assert!(W > 0, "a fingerprint has at least one word");
        64 * W as u32
    };

    /// Returns the fingerprint of `features`, weighted by their number of occurrences; none without
    /// features.
    #[must_use]
    pub fn of(features: &[u64]) -> Option<Self> {
        const { assert!(Self::BITS > 0) };
        (!features.is_empty()).then(|| Self(project::majority(features)))
    }

    /// Returns the fingerprint of the set of `features`, where each counts once.
    #[must_use]
    pub fn of_distinct(features: &[u64]) -> Option<Self> {
        let mut distinct = features.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        Self::of(&distinct)
    }

    /// Returns the fingerprint of weighted features. The weights of the same feature add up.
    ///
    /// None if no weight is above zero. For tf-idf, pass every occurrence with its idf, or every
    /// feature once with the product.
    #[must_use]
    pub fn of_weighted(features: &[(u64, Weight)]) -> Option<Self> {
        plain::weighted(features.iter().copied())
    }

    /// Returns the number of matching bits.
    #[inline]
    #[must_use]
    pub fn c_sim(&self, other: &Self) -> u32 {
        Self::BITS - self.distance(other)
    }

    /// Returns the number of differing bits, their Hamming distance.
    #[inline]
    #[must_use]
    pub fn distance(&self, other: &Self) -> u32 {
        let words = self.0.iter().zip(&other.0);
        words.map(|(a, b)| (a ^ b).count_ones()).sum()
    }
}

/// The minimum number of matching bits of similar documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct MinCSim<const W: usize>(u32);

impl MinCSim<6> {
    /// At least 372 of 384, for fingerprints as the only evidence (Henzinger 2006).
    pub const ALONE: Self = Self(MIN_BITS_ALONE);
    /// At least 355 of 384, for pairs that share super-shingles already (Henzinger 2006).
    pub const FILTER: Self = Self(MIN_BITS_FILTER);
}

impl<const W: usize> MinCSim<W> {
    /// Checks that the fingerprint has at least this many bits.
    ///
    /// # Errors
    ///
    /// Returns an error if `agreeing` exceeds `64 W`.
    pub fn new(agreeing: u32) -> Result<Self, Error> {
        if agreeing <= Fingerprint::<W>::BITS {
            Ok(Self(agreeing))
        } else {
            let expected = "at most the bits of a fingerprint";
            Err(Error::parameter("c_sim", agreeing, expected))
        }
    }

    /// Returns whether `c_sim` matching bits are enough.
    #[inline]
    #[must_use]
    pub fn reached_by(self, c_sim: u32) -> bool {
        c_sim >= self.0
    }

    /// Returns the bits that may differ: 12 for 372, 29 for 355.
    #[must_use]
    pub fn max_distance(self) -> u32 {
        Fingerprint::<W>::BITS - self.0
    }
}

/// The kind of features of a fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum FeatureKind {
    /// Token fingerprints: insensitive to order.
    #[default]
    Tokens,
    /// Fingerprints of shingles of this many tokens. They are sensitive to order, and each changed
    /// token affects as many shingles, so thresholds must be tuned again.
    Shingles(NonZeroU32),
}

/// The weight of a feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FeatureWeights<'table> {
    /// Its number of occurrences.
    #[default]
    Count,
    /// Once, however often it occurs.
    Binary,
    /// Its number of occurrences times its weight in a frozen table.
    Table(&'table WeightTable),
}

/// The settings of fingerprints of `64 W` bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Simhash<'table, const W: usize = 6> {
    /// The kind of features that the caller passes.
    pub features: FeatureKind,
    /// The weight of each feature.
    pub weights: FeatureWeights<'table>,
}

impl<const W: usize> Simhash<'_, W> {
    /// Returns the kind of these fingerprints.
    #[must_use]
    pub fn kind(&self) -> FingerprintKind {
        let weighting = match self.weights {
            FeatureWeights::Count => Weighting::Count,
            FeatureWeights::Binary => Weighting::Binary,
            FeatureWeights::Table(table) => Weighting::Table(table.digest()),
        };
        FingerprintKind {
            features: self.features,
            weighting,
        }
    }

    /// Returns the fingerprint of one document; none if no feature has weight.
    ///
    /// The features may be in any order, with repetitions.
    #[must_use]
    pub fn fingerprint(&self, features: &[u64]) -> Option<Fingerprint<W>> {
        match self.weights {
            FeatureWeights::Count => Fingerprint::of(features),
            FeatureWeights::Binary => Fingerprint::of_distinct(features),
            FeatureWeights::Table(table) => {
                plain::weighted(features.iter().map(|&x| (x, table.weight(x))))
            }
        }
    }

    /// Returns the fingerprint of one document together with its kind.
    #[must_use]
    pub fn sketch(&self, features: &[u64]) -> Option<KindedFingerprint<W>> {
        let fingerprint = self.fingerprint(features)?;
        let kind = self.kind();
        Some(KindedFingerprint { kind, fingerprint })
    }
}

/// The settings with which a fingerprint was made. The number of bits is part of its type.
///
/// Stored once with a collection of fingerprints, or with each in a [`KindedFingerprint`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FingerprintKind {
    /// The kind of features.
    pub features: FeatureKind,
    /// The weights of the features.
    pub weighting: Weighting,
}

/// The [`FeatureWeights`] of a fingerprint, with a table identified by its digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Weighting {
    /// See [`FeatureWeights::Count`].
    #[default]
    Count,
    /// See [`FeatureWeights::Binary`].
    Binary,
    /// See [`FeatureWeights::Table`]; the value is its [`WeightTable::digest`].
    Table(u64),
}

/// A fingerprint with its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KindedFingerprint<const W: usize> {
    /// The settings with which the fingerprint was made.
    pub kind: FingerprintKind,
    /// The bits.
    pub fingerprint: Fingerprint<W>,
}

impl<const W: usize> KindedFingerprint<W> {
    /// Returns the number of matching bits; none between different kinds, which cannot be compared.
    #[must_use]
    pub fn c_sim(&self, other: &Self) -> Option<u32> {
        (self.kind == other.kind).then(|| self.fingerprint.c_sim(&other.fingerprint))
    }
}
