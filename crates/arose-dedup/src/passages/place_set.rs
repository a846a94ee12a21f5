//! Hashes of sets of places, which show whether two windows occur at the same places, shifted.
//!
//! A place is a document `d` and a token `t`. The hash of a set is the sum of `g(d) r^t` over its
//! places, in the field of `2^61 - 1` elements, with a fixed `r` and a hash `g` of documents. So
//! the hashes of disjoint sets add up, and a shift of all places by `n` tokens multiplies the hash
//! by `r^n`. Different sets of a corpus have equal hashes with a probability of about `2^-61`. If
//! that happens, the lengths of occurrences differ, and the run ends with an error.

use std::sync::LazyLock;

use arose::mix::mix;

const P: u64 = (1 << 61) - 1;
/// Digits of pi, in the field.
const R: u64 = 0x0299_F31D_0082_EFA9;
/// Bits of an exponent that one table covers.
const BITS: u32 = 11;

/// Powers of `r`: digit `i` of an exponent, in base `2^11`, selects from table `i`.
static POWERS: LazyLock<[Vec<u64>; 3]> = LazyLock::new(|| {
    let table = |base: u64| -> Vec<u64> {
        let next = |power: &u64| Some(multiply(*power, base));
        std::iter::successors(Some(1), next)
            .take(1 << BITS)
            .collect()
    };
    let power = |base: u64, n: u32| (0..n).fold(base, |power, _| multiply(power, power));
    let second = power(R, BITS);
    [table(R), table(second), table(power(second, BITS))]
});

/// The hash of a set of places.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PlaceSet(pub(crate) u64);

impl PlaceSet {
    /// Returns the set of one place.
    pub(crate) fn of(doc: u32, token: u32) -> Self {
        let document = mix(u64::from(doc) + 1) & P;
        Self(if document == P { 1 } else { document }).shifted(token)
    }

    /// Returns the union with a disjoint set.
    pub(crate) fn and(self, other: Self) -> Self {
        Self(add(self.0, other.0))
    }

    /// Returns the set with all places moved by this many tokens.
    pub(crate) fn shifted(self, n_tokens: u32) -> Self {
        let mask = (1 << BITS) - 1;
        let digits = [0, 1, 2].map(|i| (n_tokens >> (BITS * i) & mask) as usize);
        let tables = POWERS.iter().zip(digits);
        let power = tables
            .filter(|(_, digit)| *digit > 0)
            .fold(1, |power, (table, digit)| multiply(power, table[digit]));
        Self(multiply(self.0, power))
    }
}

fn add(a: u64, b: u64) -> u64 {
    let sum = a + b;
    if sum >= P { sum - P } else { sum }
}

fn multiply(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    add(product as u64 & P, (product >> 61) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(places: &[(u32, u32)]) -> PlaceSet {
        let sets = places.iter().map(|(doc, token)| PlaceSet::of(*doc, *token));
        sets.fold(PlaceSet::default(), PlaceSet::and)
    }

    #[test]
    fn shifted_sets_are_equal() {
        let places = [(0, 5), (3, 1 << 20), (3, 70_000), (9, u32::MAX - 4000)];
        for n in [0, 1, 26, 2047, 2048, 3333] {
            let moved = places.map(|(doc, token)| (doc, token + n));
            assert_eq!(set(&places).shifted(n), set(&moved));
        }
    }

    #[test]
    fn other_sets_differ() {
        // Equal sums of places in one document.
        assert_ne!(set(&[(1, 3), (1, 5)]), set(&[(1, 2), (1, 6)]));
        assert_ne!(set(&[(1, 3), (2, 5)]), set(&[(1, 5), (2, 3)]));
        assert_ne!(set(&[(1, 3)]), set(&[(1, 3), (1, 3)]));
    }
}
