//! Digests: exact equality in 8 or 16 bytes.
//!
//! *Question.* Is this document, byte for byte or token for token, one that was seen before?
//!
//! *Idea.* Keep a digest instead of the document. XXH3 (Collet 2019) has a published specification
//! and a frozen output in both widths, so digests may be written into files and compared across
//! machines, languages and versions.
//!
//! *Cost.* About 10 GB/s. *Error.* Among `n` documents some pair of different ones shares the
//! 128-bit digest with probability about `n^2 / 2^129`: 1.5e-19 for ten billion.
//!
//! *Not for* hostile input where a forged equality does harm: XXH3 is no cryptographic hash.

use xxhash_rust::xxh3::{Xxh3Default, xxh3_64, xxh3_128};

/// A 128-bit name for exact equality, printed as 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub u128);

impl Digest {
    /// The digest of bytes as they came: equal for byte-identical bodies.
    ///
    /// ```
    /// use arose::digest::Digest;
    /// assert_eq!(Digest::of_bytes(b"").to_string(), "99aa06d3014798d86001c324468d497f");
    /// ```
    #[must_use]
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(xxh3_128(bytes))
    }

    /// The digest of a token sequence (its fingerprints, little-endian): equal for texts that
    /// differ only in what the tokeniser drops, such as case, punctuation and white space.
    #[must_use]
    pub fn of_tokens(fingerprints: &[u64]) -> Self {
        let mut hasher = Xxh3Default::new();
        let mut buffer = [0; 4096];
        for chunk in fingerprints.chunks(buffer.len() / 8) {
            for (bytes, fingerprint) in buffer.chunks_exact_mut(8).zip(chunk) {
                bytes.copy_from_slice(&fingerprint.to_le_bytes());
            }
            hasher.update(&buffer[..chunk.len() * 8]);
        }
        Self(hasher.digest128())
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl std::fmt::Debug for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Digest({self})")
    }
}

/// The 64-bit digest of `bytes`, for tables in memory and keys in files.
#[must_use]
pub fn digest64(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Values of the published XXH3, which files depend on.
    #[test]
    fn frozen_values() {
        assert_eq!(digest64(b""), 0x2D06_8005_38D3_94C2);
        assert_eq!(
            Digest::of_bytes(b"").0,
            0x99AA_06D3_0147_98D8_6001_C324_468D_497F
        );
        assert_eq!(Digest::of_tokens(&[]), Digest::of_bytes(b""));
    }

    proptest! {
        #[test]
        fn tokens_are_digested_as_little_endian_bytes(fingerprints: Vec<u64>) {
            let bytes: Vec<u8> = fingerprints.iter().flat_map(|f| f.to_le_bytes()).collect();
            prop_assert_eq!(Digest::of_tokens(&fingerprints), Digest::of_bytes(&bytes));
        }
    }
}
