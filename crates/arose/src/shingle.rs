//! Shingles: a text as the set of its short token sequences.
//!
//! *Question.* How much do two texts have in common, including word order?
//!
//! *Idea.* The naive comparison aligns the texts. Instead, split each into all sequences of `w`
//! consecutive tokens and compare the two *sets* of shingles: a changed word affects `w` of them, a
//! moved paragraph hardly any. The Jaccard similarity is the number of shared shingles divided by
//! the number of distinct shingles in either text, `|A ∩ B| / |A ∪ B|`. Containment divides by the
//! number in one text, `|A ∩ B| / |A|`. One minus the Jaccard similarity is a metric.
//!
//! *Paper.* Broder 1997; Broder, Glassman, Manasse & Zweig 1997.
//!
//! *Parameters.* `w` tokens per shingle, 8 by default; smaller values find looser duplicates.
//! Counted shingles label the i-th occurrence, so that frequency counts as well (Henzinger 2006).
//!
//! *Cost.* Linear: the fingerprint of a shingle is a Rabin fingerprint ([`crate::rabin`]) that
//! slides by one token, with two carry-less multiplications and a reduction. Memory is 8 bytes per
//! shingle. *Error.* None except collisions of Rabin fingerprints: about `n^2 w 64 / 2^64` for `n`
//! shingles.
//!
//! *Not for* texts shorter than `w` tokens, which become one shingle of a separate kind and equal
//! only themselves; nor as hash values: mix shingles before taking minima.

use std::num::NonZeroUsize;

use crate::rabin::Rabin;
use crate::simd::shingle::Slide;
use crate::token::Tokens;

/// Default number of tokens per shingle if the shingle sets themselves are compared.
pub const DEFAULT_W: NonZeroUsize = NonZeroUsize::new(5).expect("five is not zero");
/// Default number of tokens per shingle if super-shingles are compared (Henzinger 2006, Broder).
pub const FEATURE_W: NonZeroUsize = NonZeroUsize::new(8).expect("eight is not zero");

/// Makes the shingles of token sequences.
///
/// ```
/// use arose::shingle::{Shingler, jaccard};
/// use arose::token::Tokenizer;
/// let shingler = Shingler::new(4.try_into()?);
/// let rose = Tokenizer::default().tokens("a rose is a rose is a rose");
/// let set = shingler.set(&rose.fingerprints);
/// assert_eq!(set.len(), 3);
/// let short = shingler.set(&Tokenizer::default().tokens("a rose is a rose").fingerprints);
/// assert_eq!(jaccard(&set, &short), Some(2.0 / 3.0));
/// # Ok::<(), std::num::TryFromIntError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Shingler {
    /// How texts shorter than one shingle are treated.
    pub short: ShortText,
    w: NonZeroUsize,
    rabin: Rabin,
    slide: Slide,
}

/// How a text with fewer tokens than a shingle is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ShortText {
    /// One shingle of all its tokens and their number, so it equals only the same text.
    #[default]
    Single,
    /// No shingle, as if it were empty.
    Drop,
}

impl Shingler {
    /// Creates a shingler with `w` tokens per shingle and the default polynomial.
    #[must_use]
    pub fn new(w: NonZeroUsize) -> Self {
        Self::with_rabin(w, Rabin::default())
    }

    /// Creates a shingler with `w` tokens per shingle and the given polynomial. Only shingles of
    /// the same polynomial and the same `w` can be compared.
    #[must_use]
    pub fn with_rabin(w: NonZeroUsize, rabin: Rabin) -> Self {
        let slide = Slide::new(rabin.modulus(), w.get());
        let short = ShortText::default();
        Self {
            short,
            w,
            rabin,
            slide,
        }
    }

    /// Tokens per shingle.
    #[must_use]
    pub fn w(&self) -> NonZeroUsize {
        self.w
    }

    /// Appends the fingerprint of each window, in text order and with repeats.
    ///
    /// [`Self::short`] defines how a text of fewer than `w` tokens is treated.
    pub fn shingles_into(&self, tokens: &[u64], out: &mut Vec<u64>) {
        if tokens.len() < self.w.get() {
            out.extend(self.short_shingle(tokens));
        } else {
            self.slide.windows_into(tokens, out);
        }
    }

    /// Like [`Self::shingles_into`], but each window is computed from its bytes.
    pub(crate) fn shingles_plain(&self, tokens: &[u64]) -> Vec<u64> {
        if tokens.len() < self.w.get() {
            return self.short_shingle(tokens).into_iter().collect();
        }
        let windows = tokens.windows(self.w.get());
        windows.map(|window| self.window(window)).collect()
    }

    /// Returns the fingerprints of the windows, each once.
    #[must_use]
    pub fn set(&self, tokens: &[u64]) -> ShingleSet {
        let mut shingles = Vec::with_capacity(tokens.len());
        self.shingles_into(tokens, &mut shingles);
        ShingleSet::from_occurrences(shingles)
    }

    /// Returns the fingerprints of the windows, with the number of occurrences of each.
    #[must_use]
    pub fn counted(&self, tokens: &[u64]) -> CountedShingles {
        let mut sorted = Vec::with_capacity(tokens.len());
        self.shingles_into(tokens, &mut sorted);
        sorted.sort_unstable();
        CountedShingles { sorted }
    }

    fn window(&self, tokens: &[u64]) -> u64 {
        tokens.iter().fold(0, |state, token| {
            self.rabin.update(state, &token.to_be_bytes())
        })
    }

    fn short_shingle(&self, tokens: &[u64]) -> Option<u64> {
        let is_kept = !tokens.is_empty() && self.short == ShortText::Single;
        let length = (tokens.len() as u64).to_be_bytes();
        is_kept.then(|| self.rabin.update(self.window(tokens), &length))
    }
}

/// The number of tokens per shingle, by the script of the document.
///
/// A Chinese character carries less information than an English word, so documents in which more
/// than half of the tokens are of this kind may use a larger `w`. Two documents can be compared
/// only if they use the same `w`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShingleLength {
    /// For documents in scripts with spaces between words.
    pub w: NonZeroUsize,
    /// For documents mostly in scripts without spaces.
    pub unspaced_w: NonZeroUsize,
}

impl ShingleLength {
    /// Returns the same length for every script.
    #[must_use]
    pub fn uniform(w: NonZeroUsize) -> Self {
        Self { w, unspaced_w: w }
    }

    /// Returns the length for `tokens`.
    #[must_use]
    pub fn of(self, tokens: &Tokens) -> NonZeroUsize {
        if tokens.is_mostly_unspaced() {
            self.unspaced_w
        } else {
            self.w
        }
    }
}

/// Returns whether a document of `n_tokens` is so short that a policy may require equality: fewer
/// than `2w` tokens.
#[must_use]
pub fn is_short(n_tokens: usize, w: NonZeroUsize) -> bool {
    n_tokens / 2 < w.get()
}

/// A set of shingle fingerprints.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShingleSet {
    /// Ascending, each once.
    sorted: Vec<u64>,
}

impl ShingleSet {
    /// Returns the set of the given shingles, which may repeat and come in any order.
    #[must_use]
    pub fn from_occurrences(mut shingles: Vec<u64>) -> Self {
        shingles.sort_unstable();
        shingles.dedup();
        Self { sorted: shingles }
    }

    /// Returns the shingles, ascending.
    #[must_use]
    pub fn as_slice(&self) -> &[u64] {
        &self.sorted
    }

    /// Returns the number of distinct shingles.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Returns whether there is no shingle.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// Returns the number of shingles in both sets.
    #[must_use]
    pub fn n_common(&self, other: &Self) -> usize {
        n_common(&self.sorted, &other.sorted)
    }
}

/// A multiset of shingle fingerprints: element = (shingle, i-th occurrence).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CountedShingles {
    /// Ascending, each as often as it occurs.
    sorted: Vec<u64>,
}

impl CountedShingles {
    /// Returns the number of occurrences.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Returns whether there is no shingle.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// Returns the sum of minima divided by the sum of maxima of the counts; none if both are
    /// empty.
    #[must_use]
    pub fn jaccard(&self, other: &Self) -> Option<f64> {
        ratio(
            n_common(&self.sorted, &other.sorted),
            self.len(),
            other.len(),
        )
    }

    /// Returns one 64-bit label per element, so that sketches of sets also work for multisets. The
    /// label of the first occurrence is the shingle; the others are hashed with their number.
    #[must_use]
    pub fn labels(&self) -> Vec<u64> {
        let mut labels = Vec::with_capacity(self.len());
        for run in self.sorted.chunk_by(|a, b| a == b) {
            let label = |(i, &shingle): (usize, &u64)| match i {
                0 => shingle,
                _ => crate::mix::mix(shingle ^ crate::mix::mix(i as u64)),
            };
            labels.extend(run.iter().enumerate().map(label));
        }
        labels
    }
}

/// Returns the Jaccard similarity of two sets; none if both are empty.
#[must_use]
pub fn jaccard(a: &ShingleSet, b: &ShingleSet) -> Option<f64> {
    ratio(a.n_common(b), a.len(), b.len())
}

/// Returns the containment of `a` in `b`; none if `a` is empty.
#[must_use]
pub fn containment(a: &ShingleSet, b: &ShingleSet) -> Option<f64> {
    (!a.is_empty()).then(|| a.n_common(b) as f64 / a.len() as f64)
}

/// Returns the size of the intersection that a similarity `r` implies for sets of these sizes:
/// `r / (1 + r) * (a + b)`.
///
/// This turns an estimate of similarity into an estimate of containment.
///
/// ```
/// // 600 and 800 elements at similarity 0.4 share 400: two thirds of the smaller set.
/// assert_eq!(arose::shingle::implied_common(0.4, 600, 800).round() / 600.0, 2.0 / 3.0);
/// ```
#[must_use]
pub fn implied_common(r: f64, a: usize, b: usize) -> f64 {
    r / (1.0 + r) * (a + b) as f64
}

fn ratio(n_common: usize, a: usize, b: usize) -> Option<f64> {
    let n_union = a + b - n_common;
    (n_union > 0).then(|| n_common as f64 / n_union as f64)
}

/// Returns the size of the intersection of two ascending sequences. Repeats count up to the smaller
/// number.
fn n_common(a: &[u64], b: &[u64]) -> usize {
    let (mut i, mut j, mut n) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        // Both sides advance by a comparison, not by a branch, since the result is unpredictable.
        let (x, y) = (a[i], b[j]);
        n += usize::from(x == y);
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
    n
}

#[cfg(test)]
mod tests;
