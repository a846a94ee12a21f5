//! The eight-byte sketch: a document in one machine word.
//!
//! *Question.* How small can a sketch be and still find near duplicates?
//!
//! *Idea.* Take eight super-shingles of `s` MinHash values and truncate each to one byte. A byte
//! matches with probability `p = rho^s + (1 - rho^s) / 256`, so unrelated documents match in some
//! bytes by chance, and the required number of matches must grow with the corpus:
//!
//! - *3 of 8* with `s = 8` finds three quarters of the pairs at rho = 0.9. Chance makes 4,112 false
//!   pairs among 50,000 documents, about 0.16 per document. That is its limit, and every pair must
//!   be verified.
//! - *7 of 8* with `s = 4` makes half a false pair among 100 million documents, 55 among a billion.
//!   It also needs no index: one differing byte leaves the first or the last four bytes equal, so
//!   two sorted tables with 4-byte keys find every pair ([`pairs_with_seven_of_eight`]).
//!
//! *Paper.* Broder 2000, in his lecture on duplicate documents; the lengths `s` are chosen here.
//!
//! *Cost.* 8 bytes per document; two sorts, and one comparison for each pair that shares a half.
//! *Error.* The curve is not sharp: 7 of 8 accepts 0.010 at rho = 0.8, 0.180 at 0.9, 0.549 at 0.95
//! and 0.877 at 0.98. *Not for* high precision if you can afford 48 bytes.

use crate::candidates::Candidate;
use crate::feature::{Features, agreement};
use crate::{DocId, Error, binomial};

/// Eight super-shingles of one byte each.
pub type Sketch = [u8; 8];

/// The condition that at least `r` of 8 bytes match, each made from `s` MinHash values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EightByte {
    features: Features,
    r: usize,
}

impl EightByte {
    /// 3 of 8 bytes of 8 MinHash values: up to about 50,000 documents, with verification.
    pub const THREE_OF_EIGHT: Self = Self {
        features: Features { k: 8, s: 8 },
        r: 3,
    };

    /// 7 of 8 bytes of 4 MinHash values: up to about 100 million documents.
    pub const SEVEN_OF_EIGHT: Self = Self {
        features: Features { k: 8, s: 4 },
        r: 7,
    };

    /// Creates the condition of at least `r` of 8 bytes of `s` MinHash values.
    ///
    /// # Errors
    ///
    /// Returns an error if `s` is zero or above 65,535, or `r` is not in `1..=8`.
    pub fn new(s: usize, r: usize) -> Result<Self, Error> {
        if !(1..=8).contains(&r) {
            return Err(Error::parameter("r", r, "1..=8"));
        }
        let features = Features::new(8, s)?;
        Ok(Self { features, r })
    }

    /// Returns the sketch of `8 s` MinHash values: the low byte of each super-shingle.
    ///
    /// # Errors
    ///
    /// Returns an error if there are not `8 s` MinHash values.
    pub fn sketch<V: Copy + Into<u64>>(self, samples: &[V]) -> Result<Sketch, Error> {
        let features = self.features.of(samples)?;
        let mut sketch = [0; 8];
        for (byte, feature) in sketch.iter_mut().zip(features) {
            *byte = feature.to_le_bytes()[0];
        }
        Ok(sketch)
    }

    /// Returns whether enough bytes match.
    #[must_use]
    pub fn accepts(self, a: Sketch, b: Sketch) -> bool {
        agreement(&a, &b) >= self.r
    }

    /// Returns the probability that one byte matches, by similarity or by chance.
    #[must_use]
    pub fn byte_agreement(self, rho: f64) -> f64 {
        let feature_agrees = rho.clamp(0.0, 1.0).powf(self.features.s() as f64);
        feature_agrees + (1.0 - feature_agrees) / 256.0
    }

    /// Returns P(accept | rho), for a similarity `rho` in `0..=1` (clamped).
    ///
    /// ```
    /// use arose::eight_byte::EightByte;
    /// assert!((EightByte::THREE_OF_EIGHT.acceptance(0.9) - 0.749).abs() < 5e-4);
    /// ```
    #[must_use]
    pub fn acceptance(self, rho: f64) -> f64 {
        binomial::at_least(8, self.byte_agreement(rho), self.r as u64)
    }

    /// Returns the probability that two unrelated documents are accepted.
    #[must_use]
    pub fn false_pair_probability(self) -> f64 {
        self.acceptance(0.0)
    }

    /// Returns the number of unrelated pairs accepted among `n_docs` documents, on average.
    #[must_use]
    pub fn expected_false_pairs(self, n_docs: u64) -> f64 {
        let n = n_docs as f64;
        n * (n - 1.0).max(0.0) / 2.0 * self.false_pair_probability()
    }
}

/// Returns every pair of documents that matches in at least 7 of 8 bytes, sorted.
///
/// Sorts the sketches by their first half and again by their last. All pairs with an equal half are
/// compared. No pair is missed, for any input. If very many documents share a half, the cost is the
/// square of their number.
#[must_use]
pub fn pairs_with_seven_of_eight(docs: &[(DocId, Sketch)]) -> Vec<Candidate> {
    let mut pairs = Vec::new();
    for half in [first_half, last_half] {
        let mut table = docs.to_vec();
        table.sort_unstable_by_key(|&(doc, sketch)| (half(sketch), doc));
        for run in table.chunk_by(|x, y| half(x.1) == half(y.1)) {
            append_accepted(run, &mut pairs);
        }
    }
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

/// Returns the same pairs by comparing all pairs: the reference implementation, and the better
/// method for a few documents.
#[must_use]
pub fn pairs_by_comparison(docs: &[(DocId, Sketch)]) -> Vec<Candidate> {
    let mut pairs = Vec::new();
    append_accepted(docs, &mut pairs);
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

fn append_accepted(docs: &[(DocId, Sketch)], pairs: &mut Vec<Candidate>) {
    for (i, &(doc, sketch)) in docs.iter().enumerate() {
        let close = docs[i + 1..]
            .iter()
            .filter(|other| EightByte::SEVEN_OF_EIGHT.accepts(sketch, other.1));
        pairs.extend(close.filter_map(|other| Candidate::new(doc, other.0)));
    }
}

fn first_half(sketch: Sketch) -> u32 {
    (u64::from_be_bytes(sketch) >> 32) as u32
}

fn last_half(sketch: Sketch) -> u32 {
    u64::from_be_bytes(sketch) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mix::SplitMix;
    use proptest::prelude::*;

    #[track_caller]
    fn check(actual: f64, expected: f64, unit: f64) {
        assert!(
            (actual - expected).abs() <= 0.51 * unit,
            "{actual:e}, expected {expected:e}"
        );
    }

    #[test]
    fn false_pairs() {
        check(
            EightByte::THREE_OF_EIGHT.false_pair_probability(),
            3.289e-6,
            1e-9,
        );
        check(
            EightByte::SEVEN_OF_EIGHT.false_pair_probability(),
            1.1064e-16,
            1e-20,
        );
        let at_limit = EightByte::THREE_OF_EIGHT.expected_false_pairs(50_000);
        check(at_limit, 4112.0, 1.0);
        check(2.0 * at_limit / 50_000.0, 0.16, 0.01);
        check(
            EightByte::SEVEN_OF_EIGHT.expected_false_pairs(100_000_000),
            0.55,
            0.01,
        );
        check(
            EightByte::SEVEN_OF_EIGHT.expected_false_pairs(1_000_000_000),
            55.0,
            1.0,
        );
        assert_eq!(EightByte::THREE_OF_EIGHT.expected_false_pairs(0), 0.0);
        assert_eq!(EightByte::THREE_OF_EIGHT.expected_false_pairs(1), 0.0);
    }

    #[test]
    fn acceptance_table() {
        check(EightByte::SEVEN_OF_EIGHT.acceptance(0.80), 0.0103, 1e-4);
        check(EightByte::SEVEN_OF_EIGHT.acceptance(0.90), 0.180, 1e-3);
        check(EightByte::SEVEN_OF_EIGHT.acceptance(0.95), 0.549, 1e-3);
        check(EightByte::SEVEN_OF_EIGHT.acceptance(0.98), 0.877, 1e-3);
        check(EightByte::THREE_OF_EIGHT.acceptance(0.80), 0.143, 1e-3);
        check(EightByte::THREE_OF_EIGHT.acceptance(0.90), 0.749, 1e-3);
        check(EightByte::THREE_OF_EIGHT.acceptance(0.95), 0.980, 1e-3);
        check(EightByte::THREE_OF_EIGHT.byte_agreement(1.0), 1.0, 1e-15);
    }

    #[test]
    fn settings() {
        assert_eq!(EightByte::new(8, 3), Ok(EightByte::THREE_OF_EIGHT));
        assert_eq!(EightByte::new(4, 7), Ok(EightByte::SEVEN_OF_EIGHT));
        assert!(EightByte::new(4, 0).is_err());
        assert!(EightByte::new(4, 9).is_err());
        assert!(EightByte::new(0, 3).is_err());
        assert!(EightByte::SEVEN_OF_EIGHT.sketch(&[0_u64; 33]).is_err());
    }

    /// Files contain sketches, so this value must never change.
    #[test]
    fn golden_value() {
        let samples: Vec<u64> = (0..64).map(crate::mix::mix).collect();
        let sketch = EightByte::THREE_OF_EIGHT.sketch(&samples).unwrap();
        assert_eq!(sketch, [146, 187, 97, 118, 11, 247, 168, 56]);
    }

    /// 20,000 pairs whose MinHash values match independently with probability 0.9: the rate must
    /// lie within four standard errors. At 0 the rate of single equal bytes is 1/256.
    #[test]
    fn observed_rates() {
        const N_PAIRS: usize = 20_000;
        let mut random = SplitMix::new(8);
        for rule in [EightByte::THREE_OF_EIGHT, EightByte::SEVEN_OF_EIGHT] {
            for rho in [0.0, 0.9] {
                let mut n_accepted = 0;
                let mut n_bytes = 0;
                for _ in 0..N_PAIRS {
                    let (a, b) = sketch_pair(rule, rho, &mut random);
                    n_accepted += usize::from(rule.accepts(a, b));
                    n_bytes += agreement(&a, &b);
                }
                check_rate(n_accepted, N_PAIRS, rule.acceptance(rho));
                check_rate(n_bytes, 8 * N_PAIRS, rule.byte_agreement(rho));
            }
        }
    }

    #[track_caller]
    fn check_rate(n_hits: usize, n_trials: usize, expected: f64) {
        let observed = n_hits as f64 / n_trials as f64;
        let standard_error = (expected * (1.0 - expected) / n_trials as f64).sqrt();
        assert!(
            (observed - expected).abs() <= 4.0 * standard_error,
            "observed {observed}, expected {expected}"
        );
    }

    fn sketch_pair(rule: EightByte, rho: f64, random: &mut SplitMix) -> (Sketch, Sketch) {
        let a: Vec<u64> = (0..rule.features.t()).map(|_| random.next_u64()).collect();
        let change = |&v: &u64, random: &mut SplitMix| if random.next_f64() < rho { v } else { !v };
        let b: Vec<u64> = a.iter().map(|v| change(v, random)).collect();
        (rule.sketch(&a).unwrap(), rule.sketch(&b).unwrap())
    }

    /// 3,000 sketches around 300 centres, with 0 to 3 bytes changed.
    #[test]
    fn two_tables_find_every_pair() {
        let mut random = SplitMix::new(78);
        let centres: Vec<Sketch> = (0..300).map(|_| random.next_u64().to_le_bytes()).collect();
        let mut docs = Vec::new();
        for id in 0..3000 {
            let mut sketch = centres[random.below(300) as usize];
            for _ in 0..random.below(4) {
                sketch[random.below(8) as usize] = random.next_u64() as u8;
            }
            docs.push((DocId(id), sketch));
        }
        random.shuffle(&mut docs);
        let pairs = pairs_with_seven_of_eight(&docs);
        assert_eq!(pairs, pairs_by_comparison(&docs));
        assert!(pairs.len() > 1000, "only {} pairs to find", pairs.len());
    }

    proptest! {
        #[test]
        fn any_input_gives_the_pairs_of_brute_force(
            docs in prop::collection::vec((0..20_u64, prop::array::uniform8(0..2_u8)), 0..25),
        ) {
            let docs: Vec<(DocId, Sketch)> =
                docs.into_iter().map(|(id, sketch)| (DocId(id), sketch)).collect();
            prop_assert_eq!(pairs_with_seven_of_eight(&docs), pairs_by_comparison(&docs));
        }
    }
}
