//! Rabin fingerprints: short hashes of long byte strings with a proven bound on collisions.
//!
//! *Question.* Are two strings equal, if only 64 bits of each were stored?
//!
//! *Idea.* Read the string as a polynomial over GF(2), one coefficient per bit, and keep its
//! remainder modulo an irreducible polynomial `P` of degree 64. Two different strings have the same
//! remainder only if `P` divides their difference, and a polynomial of degree `m` has at most `m /
//! 64` such factors among the about 2^58 irreducible ones. Since the remainder is linear, a window
//! can slide: add the new end, subtract the old one (see [`crate::shingle`]).
//!
//! *Paper.* Rabin 1981; Broder 1993.
//!
//! *Parameters.* `P = x^64 + c`. The default `c` is the first one at or above the hexadecimal
//! digits of pi for which `P` is irreducible; [`Rabin::from_seed`] chooses another. A fingerprint
//! of variable-length input starts from the state 1 (a leading one bit, without which leading zeros
//! would not count); windows of fixed length start from 0.
//!
//! *Cost.* One table lookup per byte; the table has 2 KiB. *Error.* [`collision_probability`]:
//! among `n` strings of `m` bits some pair collides with probability about `n^2 m / 2^64`: 1.4e-5
//! for a million strings of 256 bits.
//!
//! *Not for* uniform values: a string shorter than 8 bytes *is* its fingerprint, so pass
//! fingerprints through [`crate::mix::mix`] before taking minima. Not secure against adversaries
//! either: anyone who knows `P` can construct collisions.

use crate::Error;
use crate::mix::SplitMix;

/// The default `c` of `P = x^64 + c`.
pub const PI_POLYNOMIAL: u64 = 0x3243_F6A8_885A_30B3;

/// Fingerprints modulo one irreducible polynomial.
///
/// ```
/// use arose::rabin::Rabin;
/// let rabin = Rabin::default();
/// assert_eq!(rabin.fingerprint(b"rose"), 0x0000_0001_726F_7365);
/// // A fingerprint can be continued: the state is the fingerprint so far.
/// let begun = rabin.fingerprint(b"a rose");
/// assert_eq!(rabin.update(begun, b" is a"), rabin.fingerprint(b"a rose is a"));
/// ```
#[derive(Clone)]
pub struct Rabin {
    modulus: Modulus,
    /// `table[i] = i * x^64 mod P`.
    table: [u64; 256],
}

impl Rabin {
    /// Creates fingerprints modulo `x^64 + polynomial`.
    ///
    /// # Errors
    ///
    /// Returns an error if that polynomial is not irreducible.
    pub fn new(polynomial: u64) -> Result<Self, Error> {
        if !is_irreducible(polynomial) {
            let expected = "c such that x^64 + c is irreducible over GF(2)";
            return Err(Error::parameter(
                "polynomial",
                format!("{polynomial:#018x}"),
                expected,
            ));
        }
        let modulus = Modulus(polynomial);
        Ok(Self {
            modulus,
            table: modulus.byte_table(modulus.power_of(2, 64)),
        })
    }

    /// Creates fingerprints modulo an irreducible polynomial that `seed` determines. About one odd
    /// polynomial in 32 is irreducible.
    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        let mut random = SplitMix::new(seed);
        loop {
            if let Ok(rabin) = Self::new(random.next_u64() | 1) {
                return rabin;
            }
        }
    }

    /// Returns the low coefficients `c` of `P = x^64 + c`.
    #[must_use]
    pub fn polynomial(&self) -> u64 {
        self.modulus.0
    }

    /// Returns the fingerprint of a string of any length.
    #[must_use]
    pub fn fingerprint(&self, bytes: &[u8]) -> u64 {
        self.update(1, bytes)
    }

    /// Continues from `state` over `bytes`. Start from 1 for strings of any length, from 0 for
    /// windows of equal length.
    #[must_use]
    pub fn update(&self, state: u64, bytes: &[u8]) -> u64 {
        bytes
            .iter()
            .fold(state, |state, &byte| self.push(state, byte))
    }

    #[inline]
    pub(crate) fn push(&self, state: u64, byte: u8) -> u64 {
        ((state << 8) | u64::from(byte)) ^ self.table[(state >> 56) as usize]
    }

    pub(crate) fn modulus(&self) -> Modulus {
        self.modulus
    }
}

impl Default for Rabin {
    fn default() -> Self {
        Self::new(PI_POLYNOMIAL).expect("the default polynomial is irreducible, as a test shows")
    }
}

impl std::fmt::Debug for Rabin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Rabin(x^64 + {:#018x})", self.modulus.0)
    }
}

/// Returns whether `x^64 + polynomial` is irreducible over GF(2), by Rabin's test.
///
/// A polynomial of degree 64 is irreducible iff it divides `x^(2^64) - x` and has no factor in
/// common with `x^(2^32) - x`, since 2 is the only prime that divides 64.
///
/// ```
/// assert!(arose::rabin::is_irreducible(arose::rabin::PI_POLYNOMIAL));
/// // CRC-64/ECMA-182 looks like a Rabin modulus, but is not one.
/// assert!(!arose::rabin::is_irreducible(0x42F0_E1EB_A9EA_3693));
/// ```
#[must_use]
pub fn is_irreducible(polynomial: u64) -> bool {
    const X: u64 = 2;
    let modulus = Modulus(polynomial);
    let square_times =
        |from: u64, n: u32| (0..n).fold(from, |power, _| modulus.multiply(power, power));
    let half_way = square_times(X, 32);
    square_times(half_way, 32) == X
        && greatest_common_divisor(modulus.full(), u128::from(half_way ^ X)) == 1
}

/// Returns the probability that any two of `n_strings` different strings of `n_bits` bits have the
/// same fingerprint: about `n^2 m / 2^64`, at most 1.
///
/// ```
/// // A million strings of 256 bits.
/// let chance = arose::rabin::collision_probability(1e6, 256.0);
/// assert!((chance - 1.4e-5).abs() < 0.05e-5);
/// ```
#[must_use]
pub fn collision_probability(n_strings: f64, n_bits: f64) -> f64 {
    (n_strings * n_strings * n_bits / 2_f64.powi(64)).min(1.0)
}

/// Arithmetic on remainders modulo `x^64 + c`.
#[derive(Clone, Copy)]
pub(crate) struct Modulus(pub(crate) u64);

impl Modulus {
    fn full(self) -> u128 {
        (1 << 64) | u128::from(self.0)
    }

    /// `a * x mod P`.
    fn times_x(self, a: u64) -> u64 {
        (a << 1) ^ if a >> 63 == 1 { self.0 } else { 0 }
    }

    /// `a * b mod P`, bit by bit.
    pub(crate) fn multiply(self, a: u64, b: u64) -> u64 {
        let step = |sum, bit: u32| self.times_x(sum) ^ if (b >> bit) & 1 == 1 { a } else { 0 };
        (0..64).rev().fold(0, step)
    }

    /// `base^exponent mod P`; the base 2 is the polynomial x.
    pub(crate) fn power_of(self, base: u64, exponent: usize) -> u64 {
        let step = |power, bit| {
            let square = self.multiply(power, power);
            if (exponent >> bit) & 1 == 1 {
                self.multiply(square, base)
            } else {
                square
            }
        };
        (0..usize::BITS).rev().fold(1, step)
    }

    /// `floor(x^128 / P)` without its leading term, the constant of Barrett's reduction.
    pub(crate) fn barrett(self) -> u64 {
        // Long division of x^128: after the leading quotient bit, the remainder is c * x^64. Each
        // step removes one bit.
        let step = |(quotient, remainder): (u64, u64), _| {
            let carry = remainder >> 63;
            (quotient << 1 | carry, self.times_x(remainder))
        };
        (0..64).fold((0, self.0), step).0
    }

    /// `table[i] = i * factor mod P` for all bytes `i`.
    pub(crate) fn byte_table(self, factor: u64) -> [u64; 256] {
        std::array::from_fn(|byte| self.multiply(factor, byte as u64))
    }
}

fn greatest_common_divisor(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, remainder(a, b));
    }
    a
}

/// Returns the remainder of polynomial division over GF(2); the divisor is not zero.
fn remainder(mut dividend: u128, divisor: u128) -> u128 {
    while dividend.leading_zeros() <= divisor.leading_zeros() {
        dividend ^= divisor << (divisor.leading_zeros() - dividend.leading_zeros());
    }
    dividend
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, expected: u64) {
        assert_eq!(
            Rabin::default().fingerprint(text.as_bytes()),
            expected,
            "{text:?}"
        );
    }

    #[test]
    fn published_values() {
        check("", 0x0000_0000_0000_0001);
        check("a", 0x0000_0000_0000_0161);
        check("rose", 0x0000_0001_726F_7365);
        check("a rose is a", 0xAC12_FD01_8823_3EC7);
        check(
            "The quick brown fox jumps over the lazy dog",
            0x1D4F_9F07_4337_C66F,
        );
    }

    #[test]
    fn table_values() {
        let table = Rabin::default().table;
        assert_eq!(
            (table[1], table[255]),
            (PI_POLYNOMIAL, 0x902B_B239_DB31_14C7)
        );
    }

    /// The default is the first irreducible polynomial at or above the digits of pi.
    #[test]
    fn default_is_the_first_irreducible_after_pi() {
        assert_eq!(
            (0x3243_F6A8_885A_308D_u64..).find(|&c| is_irreducible(c)),
            Some(PI_POLYNOMIAL)
        );
    }

    #[test]
    fn irreducibility_of_known_polynomials() {
        for irreducible in [0x1B, 0x85FA_72C1_FA1C_C1E7, PI_POLYNOMIAL] {
            assert!(is_irreducible(irreducible), "{irreducible:#x}");
        }
        // x^64 + 1 = (x + 1)^64; an even constant has the factor x; the last is a CRC.
        for reducible in [1, 2, 0, 0x42F0_E1EB_A9EA_3693] {
            assert!(!is_irreducible(reducible), "{reducible:#x}");
            assert!(Rabin::new(reducible).is_err());
        }
    }

    #[test]
    fn small_division() {
        assert_eq!(remainder(0b10011, 0b1011), 0b101);
    }

    /// Without the leading one bit, 0011 and 11 would collide.
    #[test]
    fn leading_zeros_count() {
        let rabin = Rabin::default();
        assert_ne!(rabin.fingerprint(&[0, 0, 3]), rabin.fingerprint(&[3]));
        assert_eq!(rabin.update(0, &[0, 0, 3]), rabin.update(0, &[3]));
    }

    fn bit_by_bit(modulus: Modulus, start: u64, bytes: &[u8]) -> u64 {
        let bits = bytes
            .iter()
            .flat_map(|byte| (0..8).rev().map(move |bit| u64::from(byte >> bit & 1)));
        bits.fold(start, |state, bit| modulus.times_x(state) ^ bit)
    }

    proptest! {
        #[test]
        fn table_equals_bit_by_bit(seed in 0_u64..20, start: u64, bytes: Vec<u8>) {
            let rabin = Rabin::from_seed(seed);
            let expected = bit_by_bit(rabin.modulus(), start, &bytes);
            prop_assert_eq!(rabin.update(start, &bytes), expected);
        }

        #[test]
        fn concatenation_continues(a: Vec<u8>, b: Vec<u8>) {
            let rabin = Rabin::default();
            let whole = [a.as_slice(), b.as_slice()].concat();
            prop_assert_eq!(rabin.update(rabin.fingerprint(&a), &b), rabin.fingerprint(&whole));
        }

        #[test]
        fn linear_for_equal_lengths(pairs: Vec<(u8, u8)>) {
            let rabin = Rabin::default();
            let (a, b): (Vec<u8>, Vec<u8>) = pairs.iter().copied().unzip();
            let sum: Vec<u8> = pairs.iter().map(|(a, b)| a ^ b).collect();
            prop_assert_eq!(rabin.update(0, &sum), rabin.update(0, &a) ^ rabin.update(0, &b));
        }

        #[test]
        fn inputs_below_eight_bytes_are_kept(bytes in prop::collection::vec(any::<u8>(), 0..8)) {
            let as_number = bytes.iter().fold(1, |n, &byte| n << 8 | u64::from(byte));
            prop_assert_eq!(Rabin::default().fingerprint(&bytes), as_number);
        }

        /// Barrett's constant divides: q = floor(h * x^64 / P) for every h.
        #[test]
        fn barrett_constant_is_the_quotient(seed in 0_u64..20, high: u64) {
            let modulus = Rabin::from_seed(seed).modulus();
            let wide = (0..64).filter(|bit| high >> bit & 1 == 1)
                .fold(0_u128, |sum, bit| sum ^ (u128::from(modulus.barrett()) << bit));
            let quotient = high ^ (wide >> 64) as u64;
            let product = (0..64).filter(|bit| quotient >> bit & 1 == 1)
                .fold(0_u128, |sum, bit| sum ^ (u128::from(modulus.0) << bit));
            prop_assert_eq!(product as u64, modulus.multiply(high, modulus.power_of(2, 64)));
        }
    }
}
