//! The lead-byte method: computes the minima under many permutations with few complete hash values.
//!
//! *Question.* A sketch takes the minimum of `n` shingles under each of `t` permutations. That is
//! `n t` values, of which only `t` are kept. Must every value be computed?
//!
//! *Idea.* Let a value have 9 bytes: a lead byte and an 8-byte tail, ordered by the lead byte
//! first. Mixing a shingle once yields the lead bytes of 8 permutations. A value can be smaller
//! than the current minimum only if its lead byte is at most that of the minimum, and only then is
//! its tail computed. All 8 comparisons take a few operations on one word, and almost always none
//! succeeds.
//!
//! *Paper.* Broder, Burrows & Manasse, in Broder's lecture on duplicate documents.
//!
//! *Parameters.* The number of permutations `t` and a seed.
//!
//! *Cost.* One mixing per 8 permutations and shingle. Tails per permutation ([`expected_tails`]):
//! 5.4 for 100 shingles, 10 for 1,000, 45 for 10,000. The lecture counts 6.1 (`H_256`, if no lead
//! byte occurred twice) or 7.1 (`1 + H_255`, with repetitions, up to the first lead byte of zero).
//!
//! *Error.* None: the result is the minimum over all 9-byte values ([`crate::testing::lead_byte`]).
//!
//! *Not for* machines with wide vectors, where a simple multiply-and-compare loop processes more
//! lanes at once.

use std::num::NonZeroU16;

use crate::mix::{SplitMix, mix};

/// A family of `t` permutations in groups of 8 that share the computation of their lead bytes.
#[derive(Debug, Clone)]
pub struct LeadByte {
    n_permutations: usize,
    groups: Vec<Group>,
}

/// The smallest value under one permutation, ordered as a 9-byte number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sample {
    /// The first byte.
    pub lead: u8,
    /// The other eight bytes. They are a bijection of the shingle, so tails alone can serve as the
    /// sketch.
    pub tail: u64,
}

/// A sketch and its cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeadSketch {
    /// The minimum under each permutation.
    pub samples: Vec<Sample>,
    /// The number of tails computed for it, over all permutations.
    pub n_tails: u64,
}

impl LeadByte {
    /// Creates the family of `t` permutations that belongs to `seed`.
    #[must_use]
    pub fn new(t: NonZeroU16, seed: u64) -> Self {
        let mut random = SplitMix::new(seed);
        let groups = (0..usize::from(t.get()).div_ceil(LANES))
            .map(|_| Group::new(&mut random))
            .collect();
        Self {
            n_permutations: t.get().into(),
            groups,
        }
    }

    /// Returns the minimum of the shingles under each permutation; none if there are no shingles.
    ///
    /// ```
    /// use arose::lead_byte::LeadByte;
    /// let family = LeadByte::new(84.try_into()?, 1);
    /// let sketch = family.sketch(&[3, 1, 4, 1, 5]).unwrap();
    /// assert_eq!(sketch.samples, arose::testing::lead_byte(&family, &[5, 4, 3, 1]).unwrap());
    /// # Ok::<(), std::num::TryFromIntError>(())
    /// ```
    #[must_use]
    pub fn sketch(&self, shingles: &[u64]) -> Option<LeadSketch> {
        let (&first, rest) = shingles.split_first()?;
        let mut samples = Vec::with_capacity(self.groups.len() * LANES);
        let mut n_tails = self.n_permutations as u64;
        for group in &self.groups {
            let n_lanes = (self.n_permutations - samples.len()).min(LANES);
            let mut minima = Minima::new(group, first);
            for &shingle in rest {
                n_tails += minima.lower(group, shingle, lanes(n_lanes));
            }
            samples.extend(minima.samples().take(n_lanes));
        }
        Some(LeadSketch { samples, n_tails })
    }

    /// Returns the same minima from all 9-byte values.
    pub(crate) fn sketch_directly(&self, shingles: &[u64]) -> Option<Vec<Sample>> {
        (0..self.n_permutations)
            .map(|i| {
                let (group, lane) = (&self.groups[i / LANES], i % LANES);
                shingles
                    .iter()
                    .map(|&shingle| group.sample(shingle, lane))
                    .min()
            })
            .collect()
    }
}

/// Returns the number of tails that one permutation computes on average for `n` distinct shingles.
///
/// A shingle with lead byte `v` needs its tail if no earlier one had a smaller lead byte. Summed
/// over positions and values: `n/256 + sum over v = 1..=255 of (1 - ((256 - v)/256)^n) / v`.
///
/// ```
/// use arose::lead_byte::expected_tails;
/// assert!((expected_tails(256) - 6.6636).abs() < 1e-4);
/// ```
#[must_use]
pub fn expected_tails(n: u64) -> f64 {
    let n = n as f64;
    let any_smaller = |v: f64| -(n * (-v / 256.0).ln_1p()).exp_m1();
    n / 256.0
        + (1..=255)
            .map(f64::from)
            .map(|v| any_smaller(v) / v)
            .sum::<f64>()
}

/// Permutations whose lead bytes come from one word.
const LANES: usize = 8;

/// The seeds of 8 permutations.
#[derive(Debug, Clone)]
struct Group {
    lead: u64,
    tails: [u64; LANES],
}

impl Group {
    fn new(random: &mut SplitMix) -> Self {
        Self {
            lead: random.next_u64(),
            tails: [(); LANES].map(|()| random.next_u64()),
        }
    }

    /// Returns the lead bytes under all 8 permutations, lane 0 lowest.
    fn leads(&self, shingle: u64) -> u64 {
        mix(shingle ^ self.lead)
    }

    fn tail(&self, shingle: u64, lane: usize) -> u64 {
        mix(shingle ^ self.tails[lane])
    }

    fn sample(&self, shingle: u64, lane: usize) -> Sample {
        let lead = self.leads(shingle).to_le_bytes()[lane];
        Sample {
            lead,
            tail: self.tail(shingle, lane),
        }
    }
}

/// The current minima of a group.
struct Minima {
    leads: u64,
    tails: [u64; LANES],
}

impl Minima {
    fn new(group: &Group, shingle: u64) -> Self {
        let tails = std::array::from_fn(|lane| group.tail(shingle, lane));
        Self {
            leads: group.leads(shingle),
            tails,
        }
    }

    /// Takes one more shingle into account and returns the number of tails computed.
    fn lower(&mut self, group: &Group, shingle: u64, lanes: u64) -> u64 {
        let leads = group.leads(shingle);
        let mut open = at_most(leads, self.leads) & lanes;
        let n_tails = u64::from(open.count_ones());
        while open != 0 {
            let lane = open.trailing_zeros() as usize / 8;
            self.lower_lane(group, shingle, leads, lane);
            open &= open - 1;
        }
        n_tails
    }

    /// Lowers one lane, whose lead byte is known to be at most the current one.
    fn lower_lane(&mut self, group: &Group, shingle: u64, leads: u64, lane: usize) {
        let byte = 0xFF << (8 * lane);
        let tail = group.tail(shingle, lane);
        if (leads ^ self.leads) & byte != 0 {
            self.leads = (self.leads & !byte) | (leads & byte);
            self.tails[lane] = tail;
        } else {
            self.tails[lane] = self.tails[lane].min(tail);
        }
    }

    fn samples(&self) -> impl Iterator<Item = Sample> {
        let leads = self.leads.to_le_bytes().into_iter();
        leads
            .zip(self.tails)
            .map(|(lead, tail)| Sample { lead, tail })
    }
}

/// The top bit of each byte.
const TOPS: u64 = 0x8080_8080_8080_8080;

/// Returns the top bits of the first `n_lanes` bytes.
fn lanes(n_lanes: usize) -> u64 {
    TOPS >> (8 * (LANES - n_lanes))
}

/// Compares byte by byte: the top bit of a byte is set if that byte of `x` is at most that of `y`.
fn at_most(x: u64, y: u64) -> u64 {
    // If the top bits are equal, the difference of the low 7 bits decides; a set top bit prevents
    // borrowing. Otherwise the top bits decide.
    let low_at_most = (y | TOPS) - (x & !TOPS);
    ((!x & y) | (!(x ^ y) & low_at_most)) & TOPS
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn family(t: usize, seed: u64) -> LeadByte {
        LeadByte::new(u16::try_from(t).unwrap().try_into().unwrap(), seed)
    }

    #[test]
    fn expected_tails_table() {
        let rows = [
            (1, 1.0, 1e-12),
            (10, 2.9466, 1e-4),
            (100, 5.387, 1e-3),
            (256, 6.6636, 1e-4),
            (1000, 10.0065, 1e-4),
            (10_000, 45.18, 1e-2),
        ];
        for (n, expected, unit) in rows {
            let actual = expected_tails(n);
            assert!(
                (actual - expected).abs() <= 0.51 * unit,
                "n = {n}: {actual}"
            );
        }
        assert_eq!(expected_tails(0), 0.0);
    }

    /// Two simpler processes on lead bytes: a random order of the 256 bytes sets a new minimum
    /// H_256 times; independent bytes up to the first zero set or equal it 1 + H_255 times.
    #[test]
    fn the_lectures_figures() {
        let harmonic = |n: u32| (1..=n).map(|i| 1.0 / f64::from(i)).sum::<f64>();
        assert!((harmonic(256) - 6.1243).abs() < 0.51e-4);
        assert!((harmonic(255) + 1.0 - 7.1204).abs() < 0.51e-4);
        // The formula tends to n/256 + H_255.
        assert!((expected_tails(100_000) - 100_000.0 / 256.0 - harmonic(255)).abs() < 1e-9);
    }

    /// The mean number of tails per permutation over 800 permutations x 40 documents must lie
    /// within four standard errors of the formula, the error taken from the spread of the document
    /// means.
    #[test]
    fn counted_tails_follow_the_formula() {
        const N_DOCS: usize = 40;
        let mut random = SplitMix::new(256);
        for n in [1, 10, 100, 256, 1000, 10_000] {
            let means: Vec<f64> = (0..N_DOCS).map(|_| mean_tails(n, &mut random)).collect();
            let mean = means.iter().sum::<f64>() / N_DOCS as f64;
            let squares: f64 = means.iter().map(|x| (x - mean).powi(2)).sum();
            let standard_error = (squares / ((N_DOCS - 1) * N_DOCS) as f64).sqrt();
            let expected = expected_tails(n);
            assert!(
                (mean - expected).abs() <= 4.0 * standard_error + 1e-12,
                "n = {n}: counted {mean}, expected {expected}, error {standard_error}"
            );
        }
    }

    fn mean_tails(n: u64, random: &mut SplitMix) -> f64 {
        const T: usize = 800;
        let shingles: Vec<u64> = (0..n).map(|_| random.next_u64()).collect();
        let sketch = family(T, random.next_u64()).sketch(&shingles).unwrap();
        sketch.n_tails as f64 / T as f64
    }

    /// Tails are bijections of the shingle, so the share of equal tails estimates the similarity:
    /// here 60 of 100 shingles, within four standard errors for 2,000 permutations.
    #[test]
    fn equal_tails_estimate_the_resemblance() {
        let mut random = SplitMix::new(5);
        let union: Vec<u64> = (0..100).map(|_| random.next_u64()).collect();
        let family = family(2000, 17);
        let a = family.sketch(&union[..80]).unwrap().samples;
        let b = family.sketch(&union[20..]).unwrap().samples;
        let n_equal = a.iter().zip(&b).filter(|(x, y)| x.tail == y.tail).count();
        assert!((n_equal as f64 / 2000.0 - 0.6).abs() <= 4.0 * (0.24_f64 / 2000.0).sqrt());
    }

    #[test]
    fn no_shingles_no_sketch() {
        assert_eq!(family(8, 0).sketch(&[]), None);
        assert_eq!(family(8, 0).sketch_directly(&[]), None);
    }

    /// The number of times, over all permutations, that a lead byte is at most every one before it.
    fn n_weak_minima(family: &LeadByte, shingles: &[u64]) -> u64 {
        let mut n = 0;
        for i in 0..family.n_permutations {
            let (group, lane) = (&family.groups[i / LANES], i % LANES);
            let mut smallest = u8::MAX;
            for &shingle in shingles {
                let lead = group.sample(shingle, lane).lead;
                n += u64::from(lead <= smallest);
                smallest = smallest.min(lead);
            }
        }
        n
    }

    proptest! {
        #[test]
        fn minima_are_those_of_nine_byte_values(
            t in 1_usize..30,
            seed: u64,
            shingles in prop::collection::vec(any::<u64>(), 1..300),
        ) {
            let family = family(t, seed);
            let sketch = family.sketch(&shingles).unwrap();
            prop_assert_eq!(sketch.samples.len(), t);
            prop_assert_eq!(Some(sketch.samples), family.sketch_directly(&shingles));
            prop_assert_eq!(sketch.n_tails, n_weak_minima(&family, &shingles));
        }

        #[test]
        fn order_and_repeats_do_not_matter(
            seed: u64,
            mut shingles in prop::collection::vec(0..50_u64, 1..60),
        ) {
            let family = family(12, seed);
            let sketch = family.sketch(&shingles).unwrap().samples;
            shingles.sort_unstable();
            shingles.dedup();
            prop_assert_eq!(sketch, family.sketch(&shingles).unwrap().samples);
        }

        #[test]
        fn bytes_are_compared_one_by_one(x: u64, y: u64, same in 0_u64..) {
            // Equal bytes are rare among random ones, so some are copied.
            let y = (y & !same) | (x & same);
            let expected = x.to_le_bytes().iter().zip(y.to_le_bytes()).enumerate()
                .filter(|(_, (a, b))| **a <= *b)
                .map(|(lane, _)| 0x80 << (8 * lane))
                .sum::<u64>();
            prop_assert_eq!(at_most(x, y), expected);
        }
    }

    #[test]
    fn all_byte_pairs_compare_right() {
        for x in 0..=255_u8 {
            for y in 0..=255_u8 {
                let spread = |byte: u8| u64::from_le_bytes([byte; 8]);
                assert_eq!(at_most(spread(x), spread(y)), if x <= y { TOPS } else { 0 });
            }
        }
    }
}
