//! The records that stages write for each other.

use arose::content::NEARLY_EQUAL;
use arose::digest::Digest;
use arose::parity::{self, Parity};
use arose::rule::Rule;
use arose_corpus::Position;
use arose_corpus::html::Mode;
use bytemuck::{Pod, Zeroable};

use crate::dictionary::TokenPlace;

/// The number of a document in input order. Four bytes, because millions of pairs are stored.
pub(crate) type Ordinal = u32;

/// Number of MinHash values in a sketch of the policy `jaccard`.
pub(crate) const N_SAMPLES: usize = 128;
/// Maximum number of bands.
pub(crate) const MAX_BANDS: usize = 64;

/// The stored part of the MinHash values of a sketch, and parities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Samples {
    /// The lowest 16 bits of each.
    pub(crate) low: [u16; N_SAMPLES],
    /// Eight bits of a hash of the other bits of all MinHash values of a band.
    pub(crate) rest: [u8; MAX_BANDS],
    /// Parities of the shingles.
    pub(crate) parity: [u32; parity::N_WORDS],
    /// Number of shingles in the parities; zero if there are none.
    pub(crate) n_shingles: u32,
}

impl Samples {
    /// Returns an upper bound on the Jaccard similarity of two documents.
    pub(crate) fn most_jaccard(&self, other: &Self) -> f64 {
        match [self, other].map(Self::parity) {
            [Some(a), Some(b)] => a.max_jaccard(&b),
            _ => 1.0,
        }
    }

    fn parity(&self) -> Option<Parity> {
        (self.n_shingles > 0).then_some(Parity {
            bits: self.parity,
            n: self.n_shingles,
        })
    }
}

/// The data of a document that every stage needs.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct DocRecord {
    /// The digest that exact duplicates share, low half first.
    pub(crate) digest: [u64; 2],
    /// The position of its tokens, in units of the file of tokens.
    pub(crate) tokens_at: u64,
    /// Its first byte in the file of names.
    pub(crate) names_at: u64,
    /// Its position in its source.
    pub(crate) offset: u64,
    /// Its position in the compressed member at `offset`.
    pub(crate) inner: u64,
    /// The position of the next record of its source; the end of the source for the last one.
    pub(crate) end: u64,
    /// Seconds since 1970, or [`NOT_FETCHED`].
    pub(crate) fetched: i64,
    /// The priority set by the input; NaN if none.
    pub(crate) weight: f64,
    pub(crate) source: u32,
    pub(crate) n_tokens: u32,
    /// Length of the text in bytes.
    pub(crate) n_bytes: u32,
    /// Number of tokens stored as fingerprints because no dictionary contains them.
    pub(crate) n_literals: u32,
    /// Its position among the stored sketches, or [`NOT_STORED`].
    pub(crate) sketch_at: u32,
    pub(crate) flags: u16,
    /// The dictionary of its tokens.
    pub(crate) dictionary: u16,
}

impl DocRecord {
    /// Returns the position of its tokens.
    pub(crate) fn tokens(&self) -> TokenPlace {
        TokenPlace {
            at: self.tokens_at,
            n_tokens: self.n_tokens,
            n_literals: self.n_literals,
            dictionary: self.dictionary,
        }
    }

    /// Returns the mode in which its text was read; none if it is not a web page.
    pub(crate) fn mode(&self) -> Option<Mode> {
        let number = usize::from(self.flags >> MODE_BIT) & 7;
        Mode::ALL.get(number.checked_sub(1)?).copied()
    }

    /// Returns its position in its source.
    pub(crate) fn position(&self) -> Position {
        Position {
            offset: self.offset,
            inner: self.inner,
        }
    }

    /// Returns its digest.
    pub(crate) fn content(&self) -> Digest {
        Digest(u128::from(self.digest[1]) << 64 | u128::from(self.digest[0]))
    }
}

/// A record whose text is null. It is not a document, but part of the kept output.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct NullText {
    /// Its position in its source.
    pub(crate) offset: u64,
    pub(crate) inner: u64,
    /// The position of the next record of its source.
    pub(crate) end: u64,
    pub(crate) source: u64,
}

/// A document without a fetch time.
pub(crate) const NOT_FETCHED: i64 = i64::MIN;
/// A document whose sketch is computed again from its tokens when needed.
pub(crate) const NOT_STORED: u32 = u32::MAX;
/// Too few tokens for a meaningful sketch.
pub(crate) const SHORT: u16 = 1;
/// No text and no images.
pub(crate) const EMPTY: u16 = 2;
/// Without a URL, if URLs are compared: never a duplicate.
pub(crate) const ALONE: u16 = 8;
/// Rejected by a filter and excluded from the run.
pub(crate) const FILTERED: u16 = 16;
/// A version of a page that was fetched again later, if only the last version is wanted; excluded
/// from the run.
pub(crate) const SUPERSEDED: u16 = 32;
/// Mostly in a script written without spaces.
pub(crate) const UNSPACED: u16 = 4;
/// The first of three bits with the mode in which a web page was read: one more than its position
/// in [`Mode::ALL`], or zero if the document is not a web page.
const MODE_BIT: u32 = 8;

/// Returns the flags of a mode.
pub(crate) fn mode_flags(mode: Option<Mode>) -> u16 {
    let number = mode.and_then(|mode| Mode::ALL.iter().position(|one| *one == mode));
    number.map_or(0, |number| (number as u16 + 1) << MODE_BIT)
}

/// Super-shingles and simhash of a document, and its site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Vectors {
    /// Six super-shingles.
    pub(crate) features: [u64; 6],
    /// 384 bits; all zero if the policy does not need them.
    pub(crate) simhash: [u64; 6],
    /// A digest of the site; zero if there is none.
    pub(crate) site: u64,
}

/// An exact duplicate and the first document with the same content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Copied {
    pub(crate) doc: Ordinal,
    pub(crate) first: Ordinal,
}

/// A candidate pair, the earlier document first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct CandidateKey {
    pub(crate) a: Ordinal,
    pub(crate) b: Ordinal,
}

/// An accepted pair with its scores, in the order of the table of pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Accepted {
    pub(crate) a: Ordinal,
    pub(crate) b: Ordinal,
    pub(crate) scores: Scores,
}

impl Accepted {
    /// The pair with the earlier document first.
    pub(crate) fn new(one: Ordinal, other: Ordinal, scores: Scores) -> Self {
        Self {
            a: one.min(other),
            b: one.max(other),
            scores,
        }
    }
}

/// How similar two documents are, and the rule that makes them duplicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Scores {
    /// Bits of the Jaccard similarity; NaN if unknown.
    pub(crate) jaccard: u64,
    /// Bits of the weighted and unweighted content scores; NaN if unknown.
    pub(crate) content: [u64; 2],
    /// [`NO_SCORE`] if unknown.
    pub(crate) b_sim: u16,
    /// [`NO_SCORE`] if unknown.
    pub(crate) c_sim: u16,
    /// The position of the rule in [`Rule::ALL`].
    pub(crate) rule: u32,
}

impl Scores {
    /// Only the rule is known.
    pub(crate) fn unknown(rule: Rule) -> Self {
        Self {
            jaccard: f64::NAN.to_bits(),
            content: [f64::NAN.to_bits(); 2],
            b_sim: NO_SCORE,
            c_sim: NO_SCORE,
            rule: rule_index(rule),
        }
    }

    /// Returns the scores of two documents with one digest, by the rule for these.
    pub(crate) fn of_copies(rule: Rule, n_tokens: u32) -> Self {
        match rule {
            Rule::Exact => Self::equal(n_tokens),
            _ => Self::unknown(rule),
        }
    }

    /// Returns the scores of two exact duplicates, which have none without tokens.
    pub(crate) fn equal(n_tokens: u32) -> Self {
        let unknown = Self::unknown(Rule::Exact);
        match n_tokens {
            0 => unknown,
            _ => Self {
                jaccard: 1.0_f64.to_bits(),
                content: [1.0_f64.to_bits(); 2],
                b_sim: 6,
                c_sim: 384,
                ..unknown
            },
        }
    }

    pub(crate) fn rule(&self) -> Rule {
        Rule::ALL[self.rule as usize]
    }

    pub(crate) fn jaccard(&self) -> Option<f64> {
        known(self.jaccard)
    }

    /// The weighted and unweighted content scores.
    pub(crate) fn content(&self) -> [Option<f64>; 2] {
        self.content.map(known)
    }

    /// Returns the score by which the rule decided, if it is a fraction.
    pub(crate) fn similarity(&self) -> Option<f64> {
        match self.rule() {
            Rule::Same | Rule::Content => {
                let [weighted, plain] = self.content();
                plain.filter(|&u| u >= NEARLY_EQUAL).or(weighted)
            }
            _ => self.jaccard(),
        }
    }
}

/// Returns a score from its bits; none if it is NaN.
fn known(bits: u64) -> Option<f64> {
    let score = f64::from_bits(bits);
    (!score.is_nan()).then_some(score)
}

/// A score that was not computed.
pub(crate) const NO_SCORE: u16 = u16::MAX;

/// Returns the position of a rule in [`Rule::ALL`].
pub(crate) fn rule_index(rule: Rule) -> u32 {
    let index = Rule::ALL.iter().position(|other| *other == rule);
    index.expect("all rules are listed") as u32
}
