//! Reference implementations: the definitions, written to be read.
//!
//! Each function follows a definition word for word and takes its time. The optimized versions must
//! return the same, which tests check with random input. Use them for tests and measurements of
//! your own, and to learn what an optimized version computes.
//!
//! ```
//! use arose::{testing, token::Tokenizer};
//!
//! let tokenizer = Tokenizer::default();
//! let text = "A rose is a rose is a rose.";
//! assert_eq!(tokenizer.tokens(text), testing::tokens(&tokenizer, text));
//! ```

use crate::lead_byte::{LeadByte, Sample};
use crate::shingle::Shingler;
use crate::simhash::{self, Fingerprint};
use crate::sketch::{NarrowMinHash, OnePermutation};
use crate::token::{Tokenizer, Tokens};

pub use crate::content::plain::score_plain as content_score;
pub use crate::passage::search::brute_force as repeated_passages;

/// Returns the tokens of a text, which [`Tokenizer::tokens`] must equal: the text is normalized,
/// cut and hashed token by token.
#[must_use]
pub fn tokens(tokenizer: &Tokenizer, text: &str) -> Tokens {
    tokenizer.tokens_plain(text)
}

/// Returns the shingles of tokens, which [`Shingler::shingles_into`] must equal: each window is
/// computed from its bytes.
#[must_use]
pub fn shingles(shingler: &Shingler, tokens: &[u64]) -> Vec<u64> {
    shingler.shingles_plain(tokens)
}

/// Returns the MinHash values of shingles, one permutation after the other.
#[must_use]
pub fn min_hash(sketcher: &NarrowMinHash, shingles: &[u64]) -> Vec<u32> {
    sketcher.sketch_plain(shingles)
}

/// Returns the one-permutation sketch of shingles, bin by bin.
#[must_use]
pub fn one_permutation(sketcher: &OnePermutation, shingles: &[u64]) -> Vec<u64> {
    sketcher.sketch_plain(shingles)
}

/// Returns the minima of all 9-byte values, which [`LeadByte::sketch`] must equal; none without
/// shingles.
#[must_use]
pub fn lead_byte(family: &LeadByte, shingles: &[u64]) -> Option<Vec<Sample>> {
    family.sketch_directly(shingles)
}

/// Returns the simhash of features, with a counter for each bit; none without features.
#[must_use]
pub fn simhash<const W: usize>(features: &[u64]) -> Option<Fingerprint<W>> {
    simhash::plain::fingerprint(features)
}
