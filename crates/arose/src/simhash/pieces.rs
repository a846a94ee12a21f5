//! Piece search: finds fingerprints that differ in few bits without comparing all pairs.
//!
//! *Question.* Which pairs among a million fingerprints differ in at most 11 of 384 bits?
//!
//! *Idea.* Comparing all pairs is exact and quadratic. Instead, divide the bits into `p` pieces and
//! compare only pairs that match in a whole piece at the same position. If at most `p - 1` bits
//! differ, one piece has no differing bit (pigeonhole), so no such pair is lost; with more
//! differing bits some pairs are lost (Henzinger 2006).
//!
//! *Parameters.* `p` = 12 pieces of 32 bits as published: certain up to 11 differing bits, that is
//! C-sim >= 373. The threshold of 372 needs 13 pieces (seven of 30 and six of 29 bits) to be
//! certain; with 12 it loses 6.4e-5 of the pairs exactly there. More pieces are shorter and match
//! more unrelated fingerprints: see [`Pieces::expected_candidates`].
//!
//! *Cost.* `16 p` bytes per fingerprint, `p` sorts to build, `p` binary searches per query.
//! *Error.* [`Pieces::miss`] is the exact probability that a pair is lost.
//!
//! *Not for* C-sim >= 355: with 29 differing bits, 36% of the pairs are lost. There, fingerprints
//! only filter the pairs found by other means.

use super::Fingerprint;
use crate::Error;

/// A division of `64 W` bits into pieces whose sizes differ by at most one, the larger ones first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pieces<const W: usize> {
    n_pieces: u32,
}

impl Pieces<6> {
    /// Twelve pieces of 32 bits (Henzinger 2006): certain up to 11 differing bits.
    pub const TWELVE: Self = Self { n_pieces: 12 };
    /// Seven pieces of 30 bits and six of 29: certain up to 12 differing bits, C-sim >= 372.
    pub const THIRTEEN: Self = Self { n_pieces: 13 };
}

impl<const W: usize> Pieces<W> {
    /// Divides the bits into `n_pieces`.
    ///
    /// # Errors
    ///
    /// Returns an error if a piece would have more than 64 bits or none.
    pub fn new(n_pieces: u32) -> Result<Self, Error> {
        let n_bits = Fingerprint::<W>::BITS;
        if (n_bits / 64..=n_bits).contains(&n_pieces) {
            Ok(Self { n_pieces })
        } else {
            Err(Error::parameter(
                "pieces",
                n_pieces,
                "pieces of 1 to 64 bits",
            ))
        }
    }

    /// Returns the number of bits in each piece.
    pub fn sizes(self) -> impl Iterator<Item = u32> {
        let n_bits = Fingerprint::<W>::BITS;
        let (size, larger) = (n_bits / self.n_pieces, n_bits % self.n_pieces);
        (0..self.n_pieces).map(move |position| size + u32::from(position < larger))
    }

    /// Returns the bits of each piece, in order of position. Together with the position they are
    /// the keys of a fingerprint.
    pub fn keys(self, fingerprint: &Fingerprint<W>) -> impl Iterator<Item = u64> {
        let mut start = 0;
        self.sizes().map(move |size| {
            let key = bits(&fingerprint.0, start, size);
            start += size;
            key
        })
    }

    /// Returns the maximum number of differing bits at which a pair is certain to be found.
    #[must_use]
    pub fn certain_distance(self) -> u32 {
        self.n_pieces - 1
    }

    /// Returns the expected number of unrelated fingerprints among `n_stored` that share a piece
    /// with a query.
    #[must_use]
    pub fn expected_candidates(self, n_stored: u64) -> f64 {
        let per_piece = self.sizes().map(|size| 0.5_f64.powi(size as i32));
        n_stored as f64 * per_piece.sum::<f64>()
    }

    /// Returns the probability that a pair with `distance` differing bits, at random positions, is
    /// missed.
    ///
    /// That is the probability that every piece has a differing bit. Inclusion and exclusion over
    /// the pieces gives it in one line, as a sum of alternating terms that cancel. Here it is
    /// computed piece by piece from positive terms, which stays exact for any division, even an
    /// uneven one. Time `O(64 W distance)`.
    ///
    /// ```
    /// use arose::simhash::pieces::Pieces;
    /// assert_eq!(Pieces::TWELVE.miss(11), 0.0);
    /// assert!((Pieces::TWELVE.miss(12) - 6.391e-5).abs() < 5e-9);
    /// assert_eq!(Pieces::THIRTEEN.miss(12), 0.0);
    /// ```
    #[must_use]
    pub fn miss(self, distance: u32) -> f64 {
        let n_bits = Fingerprint::<W>::BITS;
        let distance = distance.min(n_bits) as usize;
        let ln_factorials = ln_factorials(n_bits);
        let ln_choose =
            |n: usize, k: usize| ln_factorials[n] - ln_factorials[k] - ln_factorials[n - k];
        // hit[k]: the probability that k differing bits among the pieces so far hit every piece.
        let mut hit = vec![0.0; distance + 1];
        hit[0] = 1.0;
        let mut before = 0;
        for size in self.sizes().map(|size| size as usize) {
            let after = before + size;
            for k in (1..=distance.min(after)).rev() {
                let here = 1.max(k.saturating_sub(before))..=size.min(k);
                hit[k] = here
                    .map(|i| {
                        let ln_ways = ln_choose(size, i) + ln_choose(before, k - i);
                        hit[k - i] * (ln_ways - ln_choose(after, k)).exp()
                    })
                    .sum();
            }
            hit[0] = 0.0;
            before = after;
        }
        hit[distance]
    }
}

/// Two fingerprints close to each other, by their indices, the smaller one first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Neighbours {
    /// The index of the first.
    pub a: usize,
    /// The index of the second.
    pub b: usize,
    /// The number of differing bits.
    pub distance: u32,
}

/// An in-memory index of fingerprints of one kind, searched by their pieces.
#[derive(Debug, Clone)]
pub struct PieceIndex<const W: usize> {
    pieces: Pieces<W>,
    fingerprints: Vec<Fingerprint<W>>,
    /// For each position, the pieces at that position with the index of their fingerprint, sorted.
    tables: Vec<Vec<(u64, usize)>>,
}

impl<const W: usize> PieceIndex<W> {
    /// Sorts the pieces of all fingerprints.
    #[must_use]
    pub fn new(pieces: Pieces<W>, fingerprints: Vec<Fingerprint<W>>) -> Self {
        let mut tables = vec![Vec::with_capacity(fingerprints.len()); pieces.n_pieces as usize];
        for (idx, fingerprint) in fingerprints.iter().enumerate() {
            for (table, key) in tables.iter_mut().zip(pieces.keys(fingerprint)) {
                table.push((key, idx));
            }
        }
        for table in &mut tables {
            table.sort_unstable();
        }
        Self {
            pieces,
            fingerprints,
            tables,
        }
    }

    /// Returns the fingerprints that share a piece with `query` and differ in at most
    /// `max_distance` bits, as index and distance, by index.
    ///
    /// All there are if `max_distance` is at most [`Pieces::certain_distance`].
    #[must_use]
    pub fn neighbours(&self, query: &Fingerprint<W>, max_distance: u32) -> Vec<(usize, u32)> {
        let mut found = Vec::new();
        for (position, (table, key)) in self.tables.iter().zip(self.pieces.keys(query)).enumerate()
        {
            for &(_, idx) in run(table, key) {
                let stored = &self.fingerprints[idx];
                let distance = query.distance(stored);
                if distance <= max_distance && self.first_shared(query, stored) == Some(position) {
                    found.push((idx, distance));
                }
            }
        }
        found.sort_unstable();
        found
    }

    /// Returns all pairs that share a piece and differ in at most `max_distance` bits, sorted.
    ///
    /// All there are if `max_distance` is at most [`Pieces::certain_distance`]. A run of `n` equal
    /// pieces costs `n (n - 1) / 2` comparisons.
    #[must_use]
    pub fn pairs(&self, max_distance: u32) -> Vec<Neighbours> {
        let mut found = Vec::new();
        for (position, table) in self.tables.iter().enumerate() {
            for run in table.chunk_by(|x, y| x.0 == y.0) {
                for (i, &(_, a)) in run.iter().enumerate() {
                    let rest = run[i + 1..].iter().map(|&(_, b)| b);
                    found.extend(rest.filter_map(|b| self.pair(a, b, max_distance, position)));
                }
            }
        }
        found.sort_unstable();
        found
    }

    /// Returns the pair if it is close and `position` is the first piece it shares. So a pair is
    /// found once, however many pieces it shares.
    fn pair(&self, a: usize, b: usize, max_distance: u32, position: usize) -> Option<Neighbours> {
        let (left, right) = (&self.fingerprints[a], &self.fingerprints[b]);
        let distance = left.distance(right);
        (distance <= max_distance && self.first_shared(left, right) == Some(position))
            .then_some(Neighbours { a, b, distance })
    }

    fn first_shared(&self, a: &Fingerprint<W>, b: &Fingerprint<W>) -> Option<usize> {
        let mut keys = self.pieces.keys(a).zip(self.pieces.keys(b));
        keys.position(|(a, b)| a == b)
    }
}

/// Returns the rows of a sorted table with the given key.
fn run(table: &[(u64, usize)], key: u64) -> &[(u64, usize)] {
    let rest = &table[table.partition_point(|row| row.0 < key)..];
    &rest[..rest.partition_point(|row| row.0 == key)]
}

/// Returns `size` bits, 1 to 64, starting at `start`.
fn bits(words: &[u64], start: u32, size: u32) -> u64 {
    let (word_idx, shift) = ((start / 64) as usize, start % 64);
    let mut bits = words[word_idx] >> shift;
    if shift + size > 64 {
        bits |= words[word_idx + 1] << (64 - shift);
    }
    bits & (u64::MAX >> (64 - size))
}

/// Returns the logarithms of `0!` to `n!`.
fn ln_factorials(n: u32) -> Vec<f64> {
    let mut sum = 0.0;
    let rest = (1..=n).map(|i| {
        sum += f64::from(i).ln();
        sum
    });
    std::iter::once(0.0).chain(rest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mix::SplitMix;
    use proptest::prelude::*;

    fn random_fingerprint(random: &mut SplitMix) -> Fingerprint<6> {
        Fingerprint([(); 6].map(|()| random.next_u64()))
    }

    /// A copy with `distance` bits flipped at random positions.
    fn flip(random: &mut SplitMix, from: &Fingerprint<6>, distance: u32) -> Fingerprint<6> {
        let mut flipped = *from;
        while from.distance(&flipped) < distance {
            let bit = random.below(384);
            let mask = 1 << (bit % 64);
            let word = bit as usize / 64;
            flipped.0[word] = (flipped.0[word] & !mask) | (!from.0[word] & mask);
        }
        flipped
    }

    /// 5,000 fingerprints, 960 of them planted: 80 at each distance 0..=11, some of one parent.
    fn planted() -> Vec<Fingerprint<6>> {
        let mut random = SplitMix::new(1);
        let mut all: Vec<_> = (0..4040).map(|_| random_fingerprint(&mut random)).collect();
        for i in 0..960 {
            let parent = all[random.below(500) as usize];
            let neighbour = flip(&mut random, &parent, i % 12);
            all.push(neighbour);
        }
        random.shuffle(&mut all);
        all
    }

    fn brute_force(all: &[Fingerprint<6>], max_distance: u32) -> Vec<Neighbours> {
        let mut found = Vec::new();
        for (a, left) in all.iter().enumerate() {
            for (b, right) in all.iter().enumerate().skip(a + 1) {
                let distance = left.distance(right);
                if distance <= max_distance {
                    found.push(Neighbours { a, b, distance });
                }
            }
        }
        found
    }

    #[track_caller]
    fn check_pairs(pieces: Pieces<6>) {
        let all = planted();
        let max_distance = pieces.certain_distance();
        let expected = brute_force(&all, max_distance);
        assert!(expected.len() >= 960.min(80 * max_distance as usize));
        assert_eq!(PieceIndex::new(pieces, all).pairs(max_distance), expected);
    }

    #[test]
    fn twelve_pieces_find_what_brute_force_finds() {
        check_pairs(Pieces::TWELVE);
    }

    #[test]
    fn thirteen_pieces_find_what_brute_force_finds() {
        check_pairs(Pieces::THIRTEEN);
    }

    #[test]
    fn six_pieces_find_what_brute_force_finds() {
        check_pairs(Pieces::new(6).unwrap());
    }

    #[test]
    fn neighbours_are_those_of_brute_force() {
        let all = planted();
        let index = PieceIndex::new(Pieces::TWELVE, all.clone());
        for query in &all[..500] {
            let distances = all.iter().map(|stored| query.distance(stored)).enumerate();
            let expected: Vec<_> = distances.filter(|&(_, distance)| distance <= 11).collect();
            assert_eq!(index.neighbours(query, 11), expected);
        }
    }

    #[test]
    fn nothing_stored_nothing_found() {
        let index = PieceIndex::new(Pieces::TWELVE, Vec::new());
        assert_eq!(index.pairs(384), []);
        assert_eq!(index.neighbours(&Fingerprint([0; 6]), 384), []);
    }

    #[test]
    fn sizes_of_the_cuts() {
        let sizes = |pieces: Pieces<6>| pieces.sizes().collect::<Vec<_>>();
        assert_eq!(sizes(Pieces::TWELVE), [32; 12]);
        assert_eq!(sizes(Pieces::THIRTEEN)[..7], [30; 7]);
        assert_eq!(sizes(Pieces::THIRTEEN)[7..], [29; 6]);
    }

    #[test]
    fn cuts_that_cannot_be() {
        for n_pieces in [0, 5, 385] {
            assert!(Pieces::<6>::new(n_pieces).is_err(), "{n_pieces}");
        }
        assert_eq!(Pieces::<6>::new(12).unwrap(), Pieces::TWELVE);
        assert_eq!(Pieces::<1>::new(1).unwrap().certain_distance(), 0);
    }

    proptest! {
        /// The concatenated pieces are the fingerprint.
        #[test]
        fn pieces_cover_each_bit_once(words: [u64; 6], n_pieces in 6_u32..=384) {
            let pieces = Pieces::new(n_pieces).unwrap();
            let mut joined = [0_u64; 6];
            let mut start = 0;
            for (size, key) in pieces.sizes().zip(pieces.keys(&Fingerprint(words))) {
                for i in 0..size {
                    joined[((start + i) / 64) as usize] |= (key >> i & 1) << ((start + i) % 64);
                }
                start += size;
            }
            prop_assert_eq!(start, 384);
            prop_assert_eq!(joined, words);
        }
    }

    /// The table of the specification, to all its digits.
    #[test]
    fn miss_of_twelve_pieces() {
        for (distance, miss, digit) in [
            (11, 0.0, 0.0),
            (12, 6.391e-5, 1e-8),
            (13, 4.154e-4, 1e-7),
            (14, 1.493e-3, 1e-6),
            (16, 8.461e-3, 1e-6),
            (20, 0.06008, 1e-5),
            (24, 0.17291, 1e-5),
            (29, 0.36336, 1e-5),
        ] {
            let found = Pieces::TWELVE.miss(distance);
            assert!((found - miss).abs() <= digit / 2.0, "{distance}: {found}");
        }
    }

    /// Compared with values from exact integers, for even and uneven divisions and another width.
    #[test]
    fn miss_is_exact() {
        let relative = |found: f64, exact: f64| (found / exact - 1.0).abs();
        assert!(relative(Pieces::TWELVE.miss(12), 6.390_912_384_911_194e-5) < 1e-11);
        assert!(relative(Pieces::TWELVE.miss(29), 0.363_364_552_340_640_25) < 1e-11);
        assert!(relative(Pieces::THIRTEEN.miss(13), 2.519_998_641_872_439_3e-5) < 1e-11);
        assert!(relative(Pieces::THIRTEEN.miss(20), 0.024_198_796_562_714_838) < 1e-11);
        let four = Pieces::<1>::new(4).unwrap();
        assert!(relative(four.miss(4), 0.103_145_224_245_171_36) < 1e-12);
        assert!(relative(four.miss(63), 1.0) < 1e-12);
    }

    /// miss(12) = 32^12 / C(384, 12), and inclusion and exclusion for the rest.
    #[test]
    fn miss_is_inclusion_and_exclusion() {
        let choose = |n: u32, k: u32| -> f64 {
            (1..=k)
                .map(|i| (f64::from(n) + 1.0 - f64::from(i)) / f64::from(i))
                .product()
        };
        let twelve = Pieces::TWELVE;
        assert!((twelve.miss(12) / (32_f64.powi(12) / choose(384, 12)) - 1.0).abs() < 1e-11);
        for distance in 0..=60 {
            let signed = |j: u32| {
                if j.is_multiple_of(2) {
                    choose(12, j)
                } else {
                    -choose(12, j)
                }
            };
            let sum: f64 = (0..=12)
                .map(|j| signed(j) * choose(384 - 32 * j, distance))
                .sum();
            let miss = twelve.miss(distance);
            assert!(
                (miss - sum / choose(384, distance)).abs() < 1e-11,
                "{distance}: {miss}"
            );
        }
    }

    /// 20,000 pairs at distance 24 on the real index keys; four standard errors are 0.0107.
    #[test]
    fn miss_is_what_happens() {
        let mut random = SplitMix::new(2);
        let n = 20_000;
        let zero = Fingerprint([0; 6]);
        let missed = (0..n).filter(|_| {
            let other = flip(&mut random, &zero, 24);
            Pieces::TWELVE.keys(&other).all(|key| key != 0)
        });
        let (expected, share) = (0.17291_f64, missed.count() as f64 / f64::from(n));
        let error = (expected * (1.0 - expected) / f64::from(n)).sqrt();
        assert!((share - expected).abs() < 4.0 * error, "{share}");
    }

    #[test]
    fn strangers_met() {
        let met = Pieces::TWELVE.expected_candidates(1_000_000_000);
        assert!((met - 2.8).abs() < 0.05, "{met}");
    }
}
