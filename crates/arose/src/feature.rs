//! Super-shingles (features): hashes of several MinHash values. Two super-shingles match only if
//! all of their values match.
//!
//! *Question.* A sketch of `t` MinHash values shows how similar two documents are, but comparing
//! all pairs of sketches is too expensive. Which few numbers can be looked up instead?
//!
//! *Idea.* Divide the `t = k s` values into `k` groups of `s` and hash each group to one
//! super-shingle. A super-shingle of two documents with similarity rho matches with probability
//! `rho^s`: 0.23 at rho = 0.9 and 6e-5 at rho = 0.5 for `s = 14`. Documents are *B-similar* if at
//! least `r` super-shingles match at the same positions. [`crate::filter`] has the resulting curve.
//! To look pairs up without counting, hash every `r`-subset of the super-shingles again
//! ([`mega_shingles`]): two documents share such a key exactly if they match in at least `r`
//! super-shingles.
//!
//! *Papers.* Broder, Glassman, Manasse & Zweig 1997 (super-shingles); Broder 2000 (6 x 14);
//! Fetterly, Manasse & Najork 2003 (mega-shingles); Henzinger 2006, whose algorithm B this is.
//!
//! *Parameters.* 6 x 14 with `r = 2` by default, 48 bytes per document; 8 x 25 with `r = 1`, 64
//! bytes. Super-shingles are numbered `0..k`.
//!
//! *Cost.* One pass over the sketch and `C(k, r)` mega-shingles of 8 bytes. *Error.* In addition to
//! the error of the filter, different groups have the same hash with probability 2^-64 per
//! comparison.
//!
//! *Not for* estimating a similarity, nor for similarities below about 0.8: keep the full sketch
//! there.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::mix::mix;
use crate::{Error, binomial};

/// How a sketch is divided: `k` super-shingles of `s` MinHash values each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Features {
    pub(crate) k: usize,
    pub(crate) s: usize,
}

impl Features {
    /// 84 MinHash values in 6 super-shingles; similar if 2 match. The default.
    pub const SIX_BY_FOURTEEN: Self = Self { k: 6, s: 14 };

    /// 200 MinHash values in 8 super-shingles; similar if 1 matches.
    pub const EIGHT_BY_TWENTY_FIVE: Self = Self { k: 8, s: 25 };

    /// Creates a division into `k` super-shingles of `s` MinHash values.
    ///
    /// # Errors
    ///
    /// Returns an error if either is zero or above 65,535.
    pub fn new(k: usize, s: usize) -> Result<Self, Error> {
        for (name, value) in [("k", k), ("s", s)] {
            if !(1..=MAX_PARTS).contains(&value) {
                return Err(Error::parameter(name, value, "1..=65535"));
            }
        }
        Ok(Self { k, s })
    }

    /// Returns the number of super-shingles.
    #[must_use]
    pub const fn k(self) -> usize {
        self.k
    }

    /// Returns the number of MinHash values in each super-shingle.
    #[must_use]
    pub const fn s(self) -> usize {
        self.s
    }

    /// Returns the number of MinHash values in a sketch, `k s`.
    #[must_use]
    pub const fn t(self) -> usize {
        self.k * self.s
    }

    /// Returns the super-shingles of a sketch.
    ///
    /// Narrow MinHash values are widened first, so 32-bit values give the super-shingles of the
    /// same 64-bit values. The function is frozen: super-shingle `j` is XXH3-64 with seed
    /// [`mix`]`(j)` over the MinHash values `j s .. (j + 1) s` as little-endian 64-bit integers.
    ///
    /// # Errors
    ///
    /// Returns an error if the sketch does not have `k s` MinHash values.
    ///
    /// ```
    /// use arose::feature::{Features, b_sim};
    /// let features = Features::SIX_BY_FOURTEEN;
    /// let sketch: Vec<u64> = (0..84).collect();
    /// let mut other = sketch.clone();
    /// other[20] = 7; // in feature 1
    /// assert_eq!(b_sim(&features.of(&sketch)?, &features.of(&other)?), 5);
    /// # Ok::<(), arose::Error>(())
    /// ```
    pub fn of<V: Copy + Into<u64>>(self, sketch: &[V]) -> Result<Vec<u64>, Error> {
        let mut features = Vec::with_capacity(self.k);
        self.append_to(sketch, &mut features)?;
        Ok(features)
    }

    /// Appends the super-shingles of a sketch to `features`, for use as one long table.
    ///
    /// # Errors
    ///
    /// Returns an error under the conditions of [`Features::of`]. Nothing is appended then.
    pub fn append_to<V: Copy + Into<u64>>(
        self,
        sketch: &[V],
        features: &mut Vec<u64>,
    ) -> Result<(), Error> {
        if sketch.len() != self.t() {
            return Err(Error::parameter("samples", sketch.len(), "k * s samples"));
        }
        let mut bytes = Vec::with_capacity(8 * self.s);
        let groups = sketch.chunks_exact(self.s).zip(0..);
        features.extend(groups.map(|(group, j)| hash_of(j, group, &mut bytes)));
        Ok(())
    }
}

const MAX_PARTS: usize = u16::MAX as usize;

/// Returns the number of positions at which two sketches, of any kind, have the same value.
#[must_use]
pub fn agreement<V: PartialEq>(a: &[V], b: &[V]) -> usize {
    a.iter().zip(b).filter(|(x, y)| x == y).count()
}

/// Returns the B-sim: the number of matching super-shingles at the same positions.
///
/// ```
/// use arose::feature::b_sim;
/// // Rows 2 and 3 of Vassilvitskii's table.
/// assert_eq!(b_sim(&[4523, 5498, 8754], &[5487, 5498, 8754]), 2);
/// ```
#[must_use]
pub fn b_sim(a: &[u64], b: &[u64]) -> usize {
    agreement(a, b)
}

/// Returns one key for every `r`-subset of the super-shingles, in lexicographic order of the
/// subsets.
///
/// Two documents have a key in common exactly if they match in at least `r` super-shingles, except
/// for hash collisions. The number of common keys is `C(B-sim, r)`.
///
/// # Errors
///
/// Returns an error if `r` is zero or above the number of super-shingles, or there would be more
/// than 65,536 keys.
///
/// ```
/// use arose::feature::mega_shingles;
/// assert_eq!(mega_shingles(&[1, 2, 3, 4, 5, 6], 2)?.len(), 15);
/// # Ok::<(), arose::Error>(())
/// ```
pub fn mega_shingles(features: &[u64], r: usize) -> Result<Vec<u64>, Error> {
    if r == 0 || r > features.len() {
        return Err(Error::parameter("r", r, "1 up to the number of features"));
    }
    let n_keys = binomial::choose(features.len() as u64, r as u64);
    if n_keys > MAX_KEYS {
        return Err(Error::parameter("r", r, "at most 65536 subsets"));
    }
    let mut keys = Vec::with_capacity(n_keys as usize);
    let mut bytes = Vec::with_capacity(8 * r);
    let mut subset: Vec<usize> = (0..r).collect();
    loop {
        let chosen: Vec<u64> = subset.iter().map(|&j| features[j]).collect();
        keys.push(hash_of(keys.len() as u64, &chosen, &mut bytes));
        if !advance(&mut subset, features.len()) {
            return Ok(keys);
        }
    }
}

const MAX_KEYS: f64 = 65_536.0;

/// Moves to the next subset of `0..k` in lexicographic order; false after the last.
fn advance(subset: &mut [usize], k: usize) -> bool {
    let r = subset.len();
    let Some(i) = (0..r).rfind(|&i| subset[i] < k - r + i) else {
        return false;
    };
    let first = subset[i] + 1;
    for (offset, member) in subset[i..].iter_mut().enumerate() {
        *member = first + offset;
    }
    true
}

/// Returns a hash of a position and the values there, as little-endian 64-bit integers; `bytes` is
/// scratch.
///
/// The seed is mixed because XXH3 adds it to short inputs unchanged. With the seeds 0, 1, 2, .. two
/// of the 15 pairs of the values 0..6 would have the same hash at different positions.
fn hash_of<V: Copy + Into<u64>>(position: u64, values: &[V], bytes: &mut Vec<u8>) -> u64 {
    bytes.clear();
    for &value in values {
        bytes.extend_from_slice(&value.into().to_le_bytes());
    }
    xxh3_64_with_seed(bytes, mix(position))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Files contain super-shingles, so these values must never change.
    #[test]
    fn golden_values() {
        let sketch: Vec<u64> = (0..200).map(mix).collect();
        let features = Features::SIX_BY_FOURTEEN.of(&sketch[..84]).unwrap();
        assert_eq!(
            features,
            [
                13_627_400_520_398_158_043,
                515_351_734_066_198_142,
                15_796_864_537_140_137_502,
                12_715_632_169_472_936_591,
                5_889_635_736_675_454_624,
                330_654_422_622_147_865,
            ]
        );
        let keys = mega_shingles(&features, 2).unwrap();
        assert_eq!(
            [keys[0], keys[14]],
            [14_477_691_215_170_561_056, 17_254_025_458_263_644_649]
        );
        let features = Features::EIGHT_BY_TWENTY_FIVE.of(&sketch).unwrap();
        assert_eq!(
            [features[0], features[7]],
            [6_486_728_914_706_777_148, 8_097_934_730_041_874_490]
        );
    }

    #[test]
    fn narrow_samples_are_widened() {
        let narrow: Vec<u32> = (0..84).map(|i| i * 51_126_789).collect();
        let wide: Vec<u64> = narrow.iter().map(|&v| v.into()).collect();
        let features = Features::SIX_BY_FOURTEEN;
        assert_eq!(features.of(&narrow).unwrap(), features.of(&wide).unwrap());
    }

    #[test]
    fn equal_groups_at_different_places_differ() {
        let features = Features::new(4, 3).unwrap().of(&[7_u64; 12]).unwrap();
        let mut distinct = features.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), 4, "{features:x?}");
    }

    #[test]
    fn bad_settings_are_refused() {
        assert!(Features::new(0, 14).is_err());
        assert!(Features::new(6, 0).is_err());
        assert!(Features::new(6, 65_536).is_err());
        assert_eq!(Features::new(6, 14), Ok(Features::SIX_BY_FOURTEEN));
        assert!(Features::SIX_BY_FOURTEEN.of(&[0_u64; 83]).is_err());
        assert!(Features::SIX_BY_FOURTEEN.of(&[0_u64; 85]).is_err());
        assert!(mega_shingles(&[1, 2, 3], 0).is_err());
        assert!(mega_shingles(&[1, 2, 3], 4).is_err());
        assert!(mega_shingles(&[], 1).is_err());
        assert!(mega_shingles(&[0; 40], 20).is_err());
    }

    /// Nothing is appended when the sketch has the wrong length.
    #[test]
    fn appending_keeps_what_is_there() {
        let mut table = vec![1];
        let features = Features::new(2, 2).unwrap();
        assert!(features.append_to(&[1_u64, 2, 3], &mut table).is_err());
        assert_eq!(table, [1]);
        features.append_to(&[1_u64, 2, 3, 4], &mut table).unwrap();
        assert_eq!(table[1..], features.of(&[1_u64, 2, 3, 4]).unwrap());
    }

    #[test]
    fn subsets_are_counted_by_the_binomial_coefficient() {
        for (k, r, n_keys) in [
            (6, 1, 6),
            (6, 2, 15),
            (6, 3, 20),
            (6, 6, 1),
            (8, 3, 56),
            (17, 8, 24_310),
        ] {
            let features: Vec<u64> = (0..k).collect();
            let mut keys = mega_shingles(&features, r).unwrap();
            keys.sort_unstable();
            keys.dedup();
            assert_eq!(keys.len(), n_keys, "{r} of {k}");
        }
    }

    fn n_common(a: &[u64], b: &[u64]) -> usize {
        a.iter().filter(|key| b.contains(key)).count()
    }

    proptest! {
        /// Both directions at once: `C(B-sim, r)` common keys, and none for fewer than `r` matches.
        #[test]
        fn common_keys_tell_the_agreement(
            pairs in prop::collection::vec((0..3_u64, 0..3_u64), 1..9),
            r in 1_usize..9,
        ) {
            prop_assume!(r <= pairs.len());
            // As real super-shingles do, these differ between positions.
            let (a, b): (Vec<u64>, Vec<u64>) =
                pairs.iter().zip(0..).map(|(&(x, y), j)| (10 * j + x, 10 * j + y)).unzip();
            let common = n_common(&mega_shingles(&a, r).unwrap(), &mega_shingles(&b, r).unwrap());
            prop_assert_eq!(common as f64, binomial::choose(b_sim(&a, &b) as u64, r as u64));
            prop_assert_eq!(common > 0, b_sim(&a, &b) >= r);
        }

        /// A super-shingle changes exactly if one of its MinHash values does.
        #[test]
        fn features_follow_their_samples(
            k in 1_usize..9,
            s in 1_usize..9,
            seed: u64,
            changes in prop::collection::vec(0_usize..64, 0..4),
        ) {
            let features = Features::new(k, s).unwrap();
            let mut random = crate::mix::SplitMix::new(seed);
            let sketch: Vec<u64> = (0..features.t()).map(|_| random.next_u64()).collect();
            let mut other = sketch.clone();
            for &i in &changes {
                other[i % sketch.len()] ^= 1 << i;
            }
            let expected = sketch.chunks(s).zip(other.chunks(s)).filter(|(x, y)| x == y).count();
            prop_assert_eq!(
                b_sim(&features.of(&sketch).unwrap(), &features.of(&other).unwrap()),
                expected
            );
        }
    }
}
