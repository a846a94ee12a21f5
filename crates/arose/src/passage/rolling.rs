//! Rolling hashes of all windows of a text, each in constant time.
//!
//! The hash is a polynomial over the field of `2^61 - 1` elements. Modulo `2^64`, the Thue-Morse
//! text and its complement would collide for every odd base. A prime modulus has no such texts.

use crate::mix::mix;

const P: u64 = (1 << 61) - 1;
/// Bases of the two polynomials: digits of pi, in the field.
const BASES: [u64; 2] = [0x03A8_885A_308D_3131, 0x098A_2E03_7073_4481];

/// Number of stretches of a text whose grams are hashed at once.
const N_LANES: usize = 4;

/// The hash of a window by two polynomials: 122 bits.
pub type WindowHash = [u64; 2];

/// The prefixes of a text, hashed by one polynomial.
#[derive(Debug, Clone, Default)]
struct Prefixes {
    hashes: Vec<u64>,
    base: u64,
}

impl Prefixes {
    fn new(values: impl ExactSizeIterator<Item = u64>, base: u64) -> Self {
        let mut hashes = Vec::with_capacity(values.len() + 1);
        let mut hash = 0;
        hashes.push(hash);
        for value in values {
            hash = add(multiply(hash, base), reduce(value));
            hashes.push(hash);
        }
        Self { hashes, base }
    }

    /// Returns the hash of every window of `n` values.
    fn windows(&self, n: usize) -> impl Iterator<Item = u64> {
        let power = power(self.base, n);
        let ends = self.hashes.iter().skip(n);
        ends.zip(&self.hashes)
            .map(move |(end, start)| add(*end, P - multiply(*start, power)))
    }
}

/// Hashes every window of a text in constant time, whatever its length.
///
/// ```
/// use arose::passage::RollingHash;
/// let text = RollingHash::new(&[7, 8, 9, 7, 8]);
/// let grams = text.grams(2);
/// assert_eq!(grams[0], grams[3]);
/// assert_ne!(grams[0], grams[1]);
/// ```
#[derive(Debug, Clone)]
pub struct RollingHash<'a> {
    tokens: &'a [u64],
}

impl<'a> RollingHash<'a> {
    /// Prepares a text given as token fingerprints.
    #[must_use]
    pub fn new(tokens: &'a [u64]) -> Self {
        Self { tokens }
    }

    /// Returns a hash of every gram of `q` tokens, scattered over 64 bits; none if there are fewer
    /// tokens.
    #[must_use]
    pub fn grams(&self, q: usize) -> Vec<u64> {
        let q = q.max(1);
        let n_grams = (self.tokens.len() + 1).saturating_sub(q);
        let n_each = n_grams.saturating_sub(1) / N_LANES;
        let mut grams = Vec::with_capacity(n_grams);
        if n_each >= 4 * q {
            grams.resize(N_LANES * n_each, 0);
            self.hash_lanes(q, n_each, &mut grams);
        }
        if grams.len() < n_grams {
            let rest = Self::new(&self.tokens[grams.len()..]);
            rest.for_each_first(q, |_, hash| grams.push(mix(hash)));
        }
        grams
    }

    /// Puts the first hashes of grams into `out`, `n_each` per lane. Each hash depends on the one
    /// before it, so the processor would wait if it did not hash several stretches at once.
    fn hash_lanes(&self, q: usize, n_each: usize, out: &mut [u64]) {
        let roll = Roll::new(q);
        let mut hashes = [0; N_LANES];
        for (lane, hash) in hashes.iter_mut().enumerate() {
            *hash = Roll::first(&self.tokens[lane * n_each..][..q]);
        }
        let tokens = |from: usize| {
            std::array::from_fn::<_, N_LANES, _>(|lane| {
                &self.tokens[from + lane * n_each..][..n_each]
            })
        };
        let (gone, new) = (tokens(0), tokens(q));
        for i in 0..n_each {
            for (lane, hash) in hashes.iter_mut().enumerate() {
                out[lane * n_each + i] = mix(least(*hash));
                *hash = roll.next(*hash, gone[lane][i], new[lane][i]);
            }
        }
    }

    /// Calls `take` with the start and the first half of the hash of every window of `n_tokens`.
    pub(super) fn for_each_first(&self, n_tokens: usize, mut take: impl FnMut(usize, u64)) {
        let (head, rest) = self.tokens.split_at(n_tokens);
        let roll = Roll::new(n_tokens);
        let mut hash = Roll::first(head);
        take(0, hash);
        for (start, (&gone, &new)) in self.tokens.iter().zip(rest).enumerate() {
            hash = roll.next(hash, gone, new);
            take(start + 1, least(hash));
        }
    }

    /// Returns the hash of every window of `n_tokens`. Equal windows of any texts have equal
    /// hashes.
    #[must_use]
    pub fn windows(&self, n_tokens: usize) -> Vec<WindowHash> {
        let one = Prefixes::new(self.tokens.iter().copied(), BASES[0]);
        // Tokens that are equal in one field differ in the other.
        let other = Prefixes::new(self.tokens.iter().map(|&token| mix(token)), BASES[1]);
        let both = one.windows(n_tokens).zip(other.windows(n_tokens));
        both.map(|(one, other)| [one, other]).collect()
    }
}

/// The first polynomial of windows of one length.
struct Roll {
    /// The negative of the base to the power of the length.
    leave: u64,
}

impl Roll {
    fn new(n_tokens: usize) -> Self {
        Self {
            leave: P - power(BASES[0], n_tokens),
        }
    }

    /// Returns the hash of a window.
    fn first(tokens: &[u64]) -> u64 {
        let push = |hash, &token| add(multiply(hash, BASES[0]), reduce(token));
        tokens.iter().fold(0, push)
    }

    /// Returns a number that is congruent to the hash of the window one token further on, and at
    /// most 3 above the field.
    fn next(&self, hash: u64, gone: u64, new: u64) -> u64 {
        // After the shift, the token that leaves is multiplied by the power of the length. The sum
        // is below 2^124, so one reduction is enough for all terms.
        let sum = u128::from(hash) * u128::from(BASES[0])
            + u128::from(fold(gone)) * u128::from(self.leave)
            + u128::from(new);
        fold((sum as u64 & P) + (sum >> 61) as u64)
    }
}

/// Returns a congruent number of little more than 61 bits.
fn fold(value: u64) -> u64 {
    (value & P) + (value >> 61)
}

/// Returns the number of the field that is congruent to one less than twice as large.
fn least(value: u64) -> u64 {
    if value >= P { value - P } else { value }
}

fn reduce(value: u64) -> u64 {
    least(fold(value))
}

fn add(a: u64, b: u64) -> u64 {
    least(a + b)
}

fn multiply(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    add(product as u64 & P, (product >> 61) as u64)
}

fn power(base: u64, n: usize) -> u64 {
    let (mut result, mut square, mut left) = (1, base, n);
    while left > 0 {
        if left % 2 == 1 {
            result = multiply(result, square);
        }
        square = multiply(square, square);
        left /= 2;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn arithmetic_of_the_field() {
        assert_eq!(reduce(P), 0);
        assert_eq!(reduce(u64::MAX), 7);
        assert_eq!(multiply(P - 1, P - 1), 1);
        assert_eq!(power(3, 5), 243);
        assert!(BASES.iter().all(|base| *base < P));
    }

    #[test]
    fn thue_and_morse_do_not_collide() {
        let word: Vec<u64> = (0..1024_u64)
            .map(|i| u64::from(i.count_ones() % 2))
            .collect();
        let complement: Vec<u64> = word.iter().map(|bit| 1 - bit).collect();
        let [a, b] = [&word, &complement].map(|text| RollingHash::new(text).windows(1024)[0]);
        assert_ne!(a[0], b[0]);
        assert_ne!(a[1], b[1]);
    }

    /// Index files contain hashes, so they never change.
    #[test]
    fn hashes_are_those_of_the_polynomial() {
        let hard = [
            0,
            1,
            P - 1,
            P,
            P + 1,
            u64::MAX,
            u64::MAX - 1,
            7 << 61,
            (7 << 61) - 1,
        ];
        let tokens: Vec<u64> = (0..300_u64)
            .map(|i| match i % 3 {
                0 => mix(i),
                _ => hard[(mix(i) % 9) as usize],
            })
            .collect();
        for q in [1, 2, 5, 25] {
            let expected = tokens.windows(q).map(|window| {
                let hash = window.iter().fold(0, |hash, token| {
                    let next = u128::from(hash) * u128::from(BASES[0]) + u128::from(*token);
                    (next % u128::from(P)) as u64
                });
                mix(hash)
            });
            let expected: Vec<u64> = expected.collect();
            assert_eq!(RollingHash::new(&tokens).grams(q), expected);
        }
    }

    /// Long texts are hashed in several stretches at once, with the same result.
    #[test]
    fn stretches_have_the_hashes_of_the_whole() {
        for n_tokens in [0, 1, 7, 8, 100, 129, 130, 131, 1000, 1001, 1002, 1003] {
            let tokens: Vec<u64> = (0..n_tokens).map(mix).collect();
            let text = RollingHash::new(&tokens);
            for q in [1, 2, 7, 25] {
                let mut expected = Vec::new();
                if tokens.len() >= q {
                    text.for_each_first(q, |_, hash| expected.push(mix(hash)));
                }
                assert_eq!(text.grams(q), expected, "{n_tokens} tokens, {q}");
            }
        }
    }

    proptest! {
        /// Equal windows have equal hashes and different windows have different hashes, at any
        /// position.
        #[test]
        fn hashes_tell_windows_apart(
            tokens in prop::collection::vec(0..3_u64, 0..60),
            n in 1_usize..8,
        ) {
            let text = RollingHash::new(&tokens);
            let (grams, windows) = (text.grams(n), text.windows(n));
            let slices: Vec<&[u64]> = tokens.windows(n).collect();
            prop_assert_eq!(windows.len(), slices.len());
            prop_assert_eq!(grams.len(), slices.len());
            for i in 0..slices.len() {
                for j in 0..i {
                    prop_assert_eq!(slices[i] == slices[j], windows[i] == windows[j]);
                    prop_assert_eq!(slices[i] == slices[j], grams[i] == grams[j]);
                }
            }
        }
    }
}
