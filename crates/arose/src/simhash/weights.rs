//! Token weights: fixed-point weights and the frozen table that assigns them.
//!
//! A rare word characterizes a text better than a common one. The usual weight of a feature is its
//! number of occurrences times the logarithm of its rarity (tf-idf; Spärck Jones 1972). Rarity is
//! measured once on a sample and then *frozen*: another table gives other fingerprints, which must
//! not be compared with the old ones. For this reason, [`WeightTable::digest`] is part of every
//! [`FingerprintKind`](super::FingerprintKind).
//!
//! Weights are fixed-point numbers with 16 bits after the point, so that sums are exact and do not
//! depend on their order. A lookup is a binary search; a table needs 16 bytes per feature.

use crate::Error;
use crate::mix::mix;

/// A weight in `0..65536` with 16 bits after the point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Weight(u32);

impl Weight {
    /// The weight of an occurrence that counts once.
    pub const ONE: Self = Self(1 << 16);

    /// Rounds `weight` to the nearest multiple of `2^-16`.
    ///
    /// # Errors
    ///
    /// Returns an error if `weight` is not a number in `0.0..=65535.0`.
    ///
    /// ```
    /// use arose::simhash::Weight;
    /// assert_eq!(Weight::new(1.0)?, Weight::ONE);
    /// assert!(Weight::new(-1.0).is_err());
    /// assert!(Weight::new(f64::NAN).is_err());
    /// # Ok::<(), arose::Error>(())
    /// ```
    pub fn new(weight: f64) -> Result<Self, Error> {
        if (0.0..=65535.0).contains(&weight) {
            Ok(Self((weight * 65536.0).round() as u32))
        } else {
            Err(Error::parameter("weight", weight, "0..=65535"))
        }
    }

    /// Returns the inverse document frequency `ln(n_docs / n_docs_with)` of a feature.
    ///
    /// Contradictory counts are adjusted to the nearest possible ones, so the weight is between 0
    /// (in every document) and `ln(n_docs)` (in one document or none).
    #[must_use]
    pub fn idf(n_docs_with: u64, n_docs: u64) -> Self {
        let n_docs = n_docs.max(1);
        let idf = (n_docs as f64 / n_docs_with.clamp(1, n_docs) as f64).ln();
        Self((idf * 65536.0).round() as u32)
    }

    /// Returns the weight times `2^16`.
    #[must_use]
    pub const fn to_fixed(self) -> u32 {
        self.0
    }
}

/// A frozen assignment of weights to features.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeightTable {
    /// Sorted by feature, one row each.
    rows: Vec<(u64, Weight)>,
    unseen: Weight,
}

impl WeightTable {
    /// Freezes `rows`; any other feature weighs `unseen`.
    ///
    /// The order of rows does not matter. If there are several rows for a feature, the one with the
    /// smallest weight counts.
    #[must_use]
    pub fn new(mut rows: Vec<(u64, Weight)>, unseen: Weight) -> Self {
        rows.sort_unstable();
        rows.dedup_by_key(|row| row.0);
        Self { rows, unseen }
    }

    /// Returns the weight of one occurrence of `feature`.
    #[must_use]
    pub fn weight(&self, feature: u64) -> Weight {
        let found = self.rows.binary_search_by_key(&feature, |row| row.0);
        found.map_or(self.unseen, |row_idx| self.rows[row_idx].1)
    }

    /// Returns a digest that is equal for equal tables. Different tables have the same digest with
    /// probability `2^-64`.
    #[must_use]
    pub fn digest(&self) -> u64 {
        let start = mix(u64::from(self.unseen.0) + 1);
        self.rows.iter().fold(start, |digest, &(feature, weight)| {
            mix(mix(digest ^ feature).wrapping_add(u64::from(weight.0) + 1))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idf_of_the_common_and_the_rare() {
        assert_eq!(Weight::idf(1000, 1000), Weight::default());
        assert_eq!(Weight::idf(10, 1000), Weight::new(100_f64.ln()).unwrap());
        assert_eq!(Weight::idf(0, 1000), Weight::idf(1, 1000));
        assert_eq!(Weight::idf(5, 0), Weight::default());
    }

    #[test]
    fn weights_outside_the_range_are_refused() {
        for weight in [-0.1, 65535.1, f64::INFINITY, f64::NAN] {
            assert!(Weight::new(weight).is_err(), "{weight}");
        }
        assert_eq!(Weight::new(65535.0).unwrap().to_fixed(), 65535 << 16);
    }

    #[test]
    fn lookup_and_default() {
        let heavy = Weight::new(2.5).unwrap();
        let table = WeightTable::new(vec![(7, heavy), (3, Weight::ONE)], Weight::default());
        assert_eq!(table.weight(3), Weight::ONE);
        assert_eq!(table.weight(7), heavy);
        assert_eq!(table.weight(5), Weight::default());
    }

    #[test]
    fn digest_sees_the_content_and_not_the_order() {
        let (one, none) = (Weight::ONE, Weight::default());
        let table =
            |rows: &[(u64, Weight)], unseen| WeightTable::new(rows.to_vec(), unseen).digest();
        let digest = table(&[(1, one), (2, none)], none);
        assert_eq!(digest, table(&[(2, none), (1, one)], none));
        assert_ne!(digest, table(&[(1, one), (2, none)], one));
        assert_ne!(digest, table(&[(1, none), (2, one)], none));
        assert_ne!(digest, table(&[(1, one)], none));
        assert_ne!(digest, table(&[(1, one), (3, none)], none));
    }
}
