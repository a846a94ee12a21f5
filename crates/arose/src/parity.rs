//! Parity sketches: an upper bound on the similarity of two documents, from 64 bytes each.
//!
//! *Question.* Pages of one template share most of their shingles. Their MinHash values match about
//! as often as those of true duplicates, so a sketch accepts many of them, and verifying each such
//! pair requires both texts. Can a few more bytes distinguish them without ever losing a duplicate?
//!
//! *Idea.* Distribute the shingles of a document over 512 bins and store for each bin only whether
//! it has an odd number of shingles. A shingle in both documents changes both of their bits. So if
//! a bit differs, some shingle is in only one of the documents, and different bits have different
//! shingles: with `h` differing bits, `|A \ B| + |B \ A| >= h`. With `S = |A| + |B|` it follows
//! that `r <= (S - h) / (S + h)`. A repeated shingle must count once. So shingles are first mapped
//! to 16,384 positions, each occupied or not, and the parities are those of the positions: equal
//! shingles have the same position, and accidental collisions only reduce the difference.
//!
//! *Paper.* Sandes, Teodoro & Melo 2020, who also use ordinary bitmaps.
//!
//! *Parameters.* None. Of the `d` differences between two documents, `256 (1 - e^(-d/256))` bits
//! remain on average. Nearly all pairs with similarity 0.69 and 88 shingles each are rejected (32
//! differences, 20 allowed at a threshold of 0.8), and so are those with 400 shingles (147
//! differences, 89 allowed); about half of those with 800 are. Documents with more than
//! [`MAX_SHINGLES`] have no parities.
//!
//! *Cost.* About 1.2 ns per shingle, 50 ns per document and 12 ns per pair; 68 bytes with the size.
//! *Error.* One-sided: the bound is never too low. *Not for* estimates: a sketch is more accurate
//! on average.

use std::array;

use crate::mix::GOLDEN;

/// Maximum number of shingles of a document with parities.
pub const MAX_SHINGLES: usize = 2048;
/// Words of parities.
pub const N_WORDS: usize = 16;

/// Words of positions, a multiple of those of parities.
const N_PLACES: usize = 32 * N_WORDS;
/// The shift that reduces 64 bits to a position.
const PLACE_SHIFT: u32 = 64 - (N_PLACES * 32).ilog2();

/// The parities of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Parity {
    /// One bit per bin.
    pub bits: [u32; N_WORDS],
    /// The number of shingles, including repetitions.
    pub n: u32,
}

impl Parity {
    /// Returns the parities of shingles, given in any order and including repetitions; none if
    /// there are too many.
    ///
    /// ```
    /// use arose::parity::Parity;
    ///
    /// let [a, b] = [0..100, 20..120].map(|shingles| {
    ///     Parity::of(&shingles.collect::<Vec<u64>>()).expect("few")
    /// });
    /// assert!((0.66..0.8).contains(&a.max_jaccard(&b))); // 80 of 120
    /// ```
    #[must_use]
    pub fn of(shingles: &[u64]) -> Option<Self> {
        if shingles.len() > MAX_SHINGLES {
            return None;
        }
        let mut places = [0_u32; N_PLACES];
        for shingle in shingles {
            let place = shingle.wrapping_mul(GOLDEN) >> PLACE_SHIFT;
            places[(place >> 5) as usize] |= 1 << (place & 31);
        }
        let mut bits = [0; N_WORDS];
        for row in places.as_chunks::<N_WORDS>().0 {
            bits = array::from_fn(|word| bits[word] ^ row[word]);
        }
        Some(Self {
            bits,
            n: shingles.len() as u32,
        })
    }

    /// Returns the upper bound on the similarity of two documents; 1 for empty ones.
    #[must_use]
    pub fn max_jaccard(&self, other: &Self) -> f64 {
        let words = self.bits.iter().zip(&other.bits);
        let n_apart: u32 = words.map(|(a, b)| (a ^ b).count_ones()).sum();
        let (n_apart, n_both) = (f64::from(n_apart), f64::from(self.n) + f64::from(other.n));
        match n_both {
            0.0 => 1.0,
            _ => (n_both - n_apart) / (n_both + n_apart),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mix::SplitMix;
    use crate::shingle::{ShingleSet, jaccard};
    use proptest::prelude::*;

    proptest! {
        /// There are few values, so that repetitions and every similarity occur.
        #[test]
        fn the_bound_is_never_too_low(
            shared in prop::collection::vec(0_u64..1000, 0..200),
            own in prop::array::uniform2(prop::collection::vec(0_u64..1000, 0..60)),
        ) {
            let docs = own.map(|own| [&shared[..], &own[..]].concat());
            let [a, b] = [&docs[0], &docs[1]].map(|doc| Parity::of(doc).unwrap());
            let [x, y] = docs.map(ShingleSet::from_occurrences);
            if let Some(jaccard) = jaccard(&x, &y) {
                prop_assert!(a.max_jaccard(&b) >= jaccard);
            }
        }
    }

    /// The number of pairs, out of 400, that a bound of 0.8 rules out. Each document has `n`
    /// shingles, of which `n_shared` are in both.
    fn n_ruled_out(n: usize, n_shared: usize) -> usize {
        let mut random = SplitMix::new(n as u64);
        let pairs = (0..400).map(|_| {
            let all: Vec<u64> = (0..2 * n - n_shared).map(|_| random.next_u64()).collect();
            let [a, b] = [&all[..n], &all[n - n_shared..]].map(|doc| Parity::of(doc).unwrap());
            a.max_jaccard(&b)
        });
        pairs.filter(|most| *most < 0.8).count()
    }

    #[test]
    fn pages_of_a_template_are_ruled_out() {
        // Similarity 0.69 and 0.76.
        assert!(n_ruled_out(88, 72) >= 398);
        assert!(n_ruled_out(88, 76) >= 350);
        assert!(n_ruled_out(400, 327) >= 380);
        let n = n_ruled_out(800, 653);
        assert!((80..320).contains(&n), "{n}");
        // 0.82.
        assert_eq!(n_ruled_out(88, 80), 0);
    }

    /// Files contain these values.
    #[test]
    fn parities_are_frozen() {
        let parity = Parity::of(&[1, 2, 3]).unwrap();
        let bits = (0..512).filter(|bit| parity.bits[bit / 32] >> (bit % 32) & 1 == 1);
        assert_eq!(bits.collect::<Vec<_>>(), [169, 283, 397]);
    }

    #[test]
    fn of_long_documents_there_are_none() {
        assert!(Parity::of(&vec![1; MAX_SHINGLES]).is_some());
        assert!(Parity::of(&vec![1; MAX_SHINGLES + 1]).is_none());
    }

    #[test]
    fn order_and_repetition_do_not_matter() {
        let [a, b] = [[1, 2, 3, 3, 2], [3, 2, 1, 1, 1]].map(|doc| Parity::of(&doc).unwrap());
        assert_eq!(a, b);
        assert_eq!(a.max_jaccard(&b), 1.0);
    }
}
