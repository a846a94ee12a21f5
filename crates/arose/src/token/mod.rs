//! Tokens: the normalized words of a text, each with a 64-bit fingerprint.
//!
//! *Question.* How is a text in any language reduced to words, without layout, case and
//! punctuation?
//!
//! *Idea.* The naive method splits at spaces; then `Rose,` and `rose` differ, and Chinese is one
//! long word. Instead, normalize the text (Unicode NFC, then simple case folding) and take maximal
//! runs of letters, digits and marks. Scripts written without spaces are split by rule: one token
//! per Han or Hiragana character, per run of Katakana or Hangul, per grapheme cluster of Thai, Lao,
//! Khmer and Myanmar. A change between these groups ends a token, so `東京タワー2024` has four; a change
//! between scripts with spaces, such as from Latin to Greek, does not.
//!
//! *Parameters.* [`Case`]: folded by default.
//!
//! *Fingerprints.* A token of up to 16 bytes is two little-endian words, padded with zeros, mixed
//! one after the other ([`fingerprint`]). This needs no branch on the length, and no two tokens of
//! up to 8 bytes ever collide, since mixing is a bijection. Longer tokens are hashed with XXH3 and
//! a fixed seed. Both are frozen.
//!
//! *Cost.* Linear. ASCII text takes a vectorized path ([`Tokenizer::fingerprints_into`]) that gives
//! the tokens of the reference implementation ([`Tokenizer::for_each`]) many times faster. *Error.*
//! Two tokens collide with probability 2^-64.
//!
//! *Not for* linguistic word segmentation: `I'm` is `i` and `m`, and Thai is split at grapheme
//! clusters, not at words.

mod ascii;
mod class;
mod unicode;

use std::ops::Range;

use icu_normalizer::ComposingNormalizerBorrowed;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::mix::mix;
use unicode::Cutter;

/// Separates token fingerprints from other uses of the same hash; the first hexadecimal digits of
/// e.
const TOKEN_SEED: u64 = 0xB7E1_5162_8AED_2A6A;
/// Separates images from words: the next digits of e.
const IMAGE_SEED: u64 = 0xBF71_5880_9CF4_F3C7;

/// How upper and lower case are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Case {
    /// `Rose` and `rose` are one token (Unicode simple case folding).
    #[default]
    Fold,
    /// `Rose` and `rose` are two tokens.
    Keep,
}

/// Splits texts into tokens.
///
/// ```
/// use arose::token::Tokenizer;
/// let mut words = Vec::new();
/// Tokenizer::default().for_each("A Rose, 東京タワー2024!", |word| words.push(word.to_owned()));
/// assert_eq!(words, ["a", "rose", "東", "京", "タワー", "2024"]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tokenizer {
    /// How upper and lower case are treated.
    pub case: Case,
}

impl Tokenizer {
    /// Calls `sink` with each normalized token; the reference implementation, which the optimized
    /// version must equal.
    pub fn for_each(&self, text: &str, mut sink: impl FnMut(&str)) {
        let normal = ComposingNormalizerBorrowed::new_nfc().normalize(text);
        Cutter::new(self.case, |token: &str, _, _| sink(token)).cut(&normal);
    }

    /// As [`Self::for_each`], with the position of each token in the text, so that it can be
    /// marked there.
    ///
    /// If a stretch without ASCII separators is not in NFC, its tokens all have the position of the
    /// stretch.
    ///
    /// ```
    /// use arose::token::Tokenizer;
    /// let mut places = Vec::new();
    /// Tokenizer::default().for_each_place("A Rosé, 東京", |_, place| places.push(place));
    /// assert_eq!(places, [0..1, 2..7, 9..12, 12..15]);
    /// ```
    pub fn for_each_place(&self, text: &str, sink: impl FnMut(&str, Range<usize>)) {
        ascii::for_each_place(self.case, text, sink);
    }

    /// Calls `sink` with the [`fingerprint`] and the position of each token. Only the first
    /// `max_bytes` of a token count, up to the last complete character. This is faster than
    /// [`Self::for_each_place`], since no token is copied.
    ///
    /// ```
    /// use arose::token::{Tokenizer, fingerprint};
    /// let mut found = Vec::new();
    /// Tokenizer::default().for_each_fingerprint("A Rose", 3, |token, at| found.push((token, at)));
    /// assert_eq!(found, [(fingerprint(b"a"), 0..1), (fingerprint(b"ros"), 2..6)]);
    /// ```
    pub fn for_each_fingerprint(
        &self,
        text: &str,
        max_bytes: usize,
        sink: impl FnMut(u64, Range<usize>),
    ) {
        ascii::for_each_fingerprint(self.case, text, max_bytes, sink);
    }

    /// Appends the fingerprint of each token to `out` and returns how many of them belong to
    /// unspaced scripts.
    pub fn fingerprints_into(&self, text: &str, out: &mut Vec<u64>) -> usize {
        ascii::fingerprints_into(self.case, text, out, None)
    }

    /// Appends the fingerprint of each token to `out`, and the byte where it begins to `starts`.
    /// Positions are those of [`Self::for_each_place`]; texts have less than 4 GiB.
    ///
    /// ```
    /// use arose::token::{Tokenizer, fingerprint};
    /// let (mut tokens, mut starts) = (Vec::new(), Vec::new());
    /// Tokenizer::default().fingerprints_with_starts("A Rose", &mut tokens, &mut starts);
    /// assert_eq!(tokens, [fingerprint(b"a"), fingerprint(b"rose")]);
    /// assert_eq!(starts, [0, 2]);
    /// ```
    pub fn fingerprints_with_starts(&self, text: &str, out: &mut Vec<u64>, starts: &mut Vec<u32>) {
        ascii::fingerprints_into(self.case, text, out, Some(starts));
    }

    /// Returns the tokens of a text.
    #[must_use]
    pub fn tokens(&self, text: &str) -> Tokens {
        let mut tokens = Tokens::default();
        tokens.push_text(self, text);
        tokens
    }

    /// Like [`Self::tokens`], by the definition.
    pub(crate) fn tokens_plain(&self, text: &str) -> Tokens {
        let normal = ComposingNormalizerBorrowed::new_nfc().normalize(text);
        let mut tokens = Tokens::default();
        Cutter::new(self.case, |token: &str, script, _| {
            tokens.fingerprints.push(fingerprint(token.as_bytes()));
            tokens.n_unspaced += usize::from(script == Spacing::Unspaced);
        })
        .cut(&normal);
        tokens
    }
}

/// Whether the script of a token uses spaces between words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spacing {
    Spaced,
    Unspaced,
}

/// A document as a sequence of token fingerprints.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tokens {
    /// One fingerprint per token, in text order.
    pub fingerprints: Vec<u64>,
    /// The number of tokens in scripts written without spaces (Han, Kana, Hangul, Thai and
    /// similar).
    pub n_unspaced: usize,
}

impl Tokens {
    /// Appends the tokens of `text`. No token extends beyond its ends.
    pub fn push_text(&mut self, tokenizer: &Tokenizer, text: &str) {
        self.n_unspaced += tokenizer.fingerprints_into(text, &mut self.fingerprints);
    }

    /// Appends an image as one token: its URL as written, trimmed. It is hashed with a separate
    /// seed, so it never equals a word.
    pub fn push_image(&mut self, src: &str) {
        self.fingerprints
            .push(xxh3_64_with_seed(src.trim().as_bytes(), IMAGE_SEED));
    }

    /// Returns the number of tokens.
    #[must_use]
    pub fn len(&self) -> usize {
        self.fingerprints.len()
    }

    /// Returns whether there are no tokens. Such a document is not a near duplicate of any other.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fingerprints.is_empty()
    }

    /// Returns whether more than half of the tokens belong to unspaced scripts, for which longer
    /// shingles are appropriate.
    #[must_use]
    pub fn is_mostly_unspaced(&self) -> bool {
        2 * self.n_unspaced > self.len()
    }

    /// Clears the document and keeps its memory for the next one.
    pub fn clear(&mut self) {
        self.fingerprints.clear();
        self.n_unspaced = 0;
    }
}

/// Returns the fingerprint of a token's bytes, which never changes. Tokens contain no NUL, with
/// which shorter tokens are padded.
///
/// ```
/// use arose::token::fingerprint;
/// assert_eq!(fingerprint(b"rose"), 0xB2AA_1D99_CC8D_C205);
/// ```
#[must_use]
pub fn fingerprint(token: &[u8]) -> u64 {
    if token.len() > 16 {
        return xxh3_64_with_seed(token, TOKEN_SEED);
    }
    let mut padded = [0; 16];
    padded[..token.len()].copy_from_slice(token);
    let [low, high] = words(&padded);
    fingerprint_words(low, high)
}

/// Returns the fingerprint of a token of up to 16 bytes as two little-endian words padded with
/// zeros.
#[inline]
pub(crate) fn fingerprint_words(low: u64, high: u64) -> u64 {
    mix(mix(low ^ TOKEN_SEED) ^ high)
}

/// Returns the two little-endian words of 16 bytes.
#[inline]
pub(crate) fn words(bytes: &[u8; 16]) -> [u64; 2] {
    let word = |half: usize| {
        let eight = bytes[8 * half..][..8]
            .try_into()
            .expect("a slice of eight bytes");
        u64::from_le_bytes(eight)
    };
    [word(0), word(1)]
}

#[cfg(test)]
mod tests;
