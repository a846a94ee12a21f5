//! Content: the share of their own text that two documents have in common, in the same order.
//!
//! *Question.* Do two pages say the same, whatever frame surrounds them? Jaccard similarity cannot
//! tell: two products in one shop template reach 0.9, two versions of one article with different
//! sidebars reach 0.5.
//!
//! *Idea.* Take the pairs of neighbouring words of both texts, including repetitions, and find a
//! longest [chain](Scorer::chain): word pairs that both texts have in the same order. The coverage
//! of a text is the share of its word pairs in the chain. The score is the smaller coverage of the
//! two, so text in only one document lowers it. The unweighted score [`Score::u`] counts every word
//! pair as one. The weighted score [`Score::s`] counts a word pair less, the more other pages of
//! its site contain it ([`weight`]), so a template has almost no weight and the [own](Content::own)
//! text remains. [`Score::level`] is the conclusion: `same` (safe to remove), `content` (another
//! version of the same content), `alike` (one template, or many versions on one site).
//!
//! If there are several longest chains, the choice treats both texts equally: step by step the
//! match nearest to the beginning of both texts, then the smaller shingle. So the score is
//! symmetric to the last bit.
//!
//! *Paper.* Longest increasing subsequences by patience sorting: Schensted 1961; Fredman 1975. The
//! score itself is specific to this project.
//!
//! *Parameters.* Word pairs ([`W`]); thresholds 0.9, 0.75 and 0.97; 5 word pairs of own text
//! ([`MIN_OWN`]); weights that fall from 1 at 3 other pages ([`FREE_PAGES`]) with the square of the
//! count. They were chosen together on labelled pairs, so they are constants, not settings.
//!
//! *Cost.* Preparing a text sorts its shingles: `O(n log n)`, 20 bytes per word. Scoring a pair
//! merges the sorted shingles and takes `O(m log m)` for `m` matches, without allocation once the
//! [`Scorer`] is warm: about 5 µs for two texts of 430 words.
//!
//! *Error.* None except collisions of Rabin fingerprints ([`crate::shingle`]). A score of `t`
//! implies a weighted bag Jaccard similarity of at least [`bag_bound`]`(t)` if a shingle has the
//! same weight in both texts; candidates are found by this bound.
//!
//! *Not for* templates with fewer than 5 pages in the corpus, which are not recognized as such.
//! *Not for* many versions on one site that differ by 3% to 10%, which look like a template and are
//! `same` only at 0.97 or more. *Not for* moved text, which costs the smaller of the two swapped
//! blocks.

pub(crate) mod plain;
mod sort;

use std::num::NonZeroUsize;

use crate::mix::mix;
use crate::shingle::Shingler;
use sort::sort;

/// Tokens per shingle.
pub const W: NonZeroUsize = NonZeroUsize::new(2).expect("two is not zero");

/// Other pages of a site that may contain a shingle before it weighs less.
pub const FREE_PAGES: u64 = 3;

/// Minimum own text, in word pairs. A page with less only repeats other pages of its site.
pub const MIN_OWN: f64 = 5.0;

/// Minimum weighted score of documents at the level `same`.
pub const SAME: f64 = 0.9;

/// Minimum weighted score of documents at the level `content`.
pub const CONTENT: f64 = 0.75;

/// Minimum unweighted score at which documents are at the level `same`, whatever their sites
/// repeat.
pub const NEARLY_EQUAL: f64 = 0.97;

/// Minimum unweighted score of documents at the level `alike`.
pub const ALIKE: f64 = 0.75;

/// Maximum number of other pages that are counted; more make no difference.
pub const MAX_PAGES: u64 = u16::MAX as u64;

/// Returns the weight of a shingle that `n_others` other URLs of its site contain. At [`MAX_PAGES`]
/// or more it is 2e-9.
///
/// ```
/// use arose::content::weight;
/// assert_eq!([0, 3, 4, 10, 100].map(weight), [1.0, 1.0, 0.5625, 0.09, 0.0009]);
/// ```
#[must_use]
#[inline]
pub fn weight(n_others: u64) -> f64 {
    // Most word pairs do not need the division.
    if n_others <= FREE_PAGES {
        return 1.0;
    }
    let n_others = n_others.min(MAX_PAGES) as f64;
    (FREE_PAGES * FREE_PAGES) as f64 / (n_others * n_others)
}

/// Returns the minimum weighted bag Jaccard similarity of two texts with this score, if a shingle
/// has the same weight in both.
///
/// ```
/// use arose::content::{CONTENT, SAME, bag_bound};
/// assert_eq!(bag_bound(CONTENT), 0.6);
/// assert_eq!(format!("{:.3}", bag_bound(SAME)), "0.818");
/// ```
#[must_use]
pub fn bag_bound(score: f64) -> f64 {
    score / (2.0 - score)
}

/// Makes the shingles of contents.
#[must_use]
pub fn shingler() -> Shingler {
    Shingler::new(W)
}

/// A text ready to be compared.
///
/// Positions are those of its shingles: the shingle at `i` is made of tokens `i` and `i + 1`. A
/// text of a single token has one shingle of a separate kind; an empty text has none.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Content {
    /// The shingles in ascending order; equal ones in text order.
    shingles: Vec<u64>,
    /// The position of each.
    positions: Vec<u32>,
    weights: Weights,
}

/// The weight of the shingle at each position of a text.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Weights {
    at: Vec<f64>,
    own: f64,
}

impl Weights {
    /// Creates weights from the weight at each position.
    #[must_use]
    pub fn new(at: Vec<f64>) -> Self {
        let own = at.iter().sum();
        Self { at, own }
    }
}

impl Content {
    /// Creates the content of a text in which all weights are 1, from its shingles of [`W`] tokens
    /// in text order.
    #[must_use]
    pub fn new(shingles: &[u64]) -> Self {
        Self::of_site(shingles, |_| 0)
    }

    /// Returns the content of a page of a site. `n_others` returns the number of other URLs of the
    /// site that contain a shingle. It is called once for each distinct shingle.
    #[must_use]
    pub fn of_site(shingles: &[u64], mut n_others: impl FnMut(u64) -> u64) -> Self {
        let mut content = Self::sorted(shingles);
        let mut weights = vec![0.0; shingles.len()];
        let mut start = 0;
        for run in content.shingles.chunk_by(|one, other| one == other) {
            let weight = weight(n_others(run[0]));
            for &position in &content.positions[start..][..run.len()] {
                weights[position as usize] = weight;
            }
            start += run.len();
        }
        content.weights = Weights::new(weights);
        content
    }

    /// Returns the content of a page of a site, given the number of other URLs of the site that
    /// contain the shingle at each position. A position without a number weighs 1.
    #[must_use]
    pub fn of_counts(shingles: &[u64], n_others: &[u64]) -> Self {
        let weights: Vec<f64> = n_others.iter().map(|&n| weight(n)).collect();
        Self::of_weights(shingles, &weights)
    }

    /// Returns the content of a page of a site, given the weight at each position; a position
    /// without one weighs 1.
    #[must_use]
    pub fn of_weights(shingles: &[u64], weights: &[f64]) -> Self {
        let mut content = Self::sorted(shingles);
        let mut weights = weights.to_vec();
        weights.resize(shingles.len(), 1.0);
        content.weights = Weights::new(weights);
        content
    }

    /// Returns the content without weights.
    fn sorted(shingles: &[u64]) -> Self {
        let (shingles, positions) = sort(shingles);
        Self {
            shingles,
            positions,
            weights: Weights::default(),
        }
    }

    /// Returns the elements by which texts are compared, each once, with their weights. An element
    /// is a shingle together with the number of its earlier occurrences in the text.
    pub fn elements(&self) -> impl Iterator<Item = (u64, f64)> {
        let runs = self.shingles.chunk_by(|one, other| one == other);
        let numbered = runs.flat_map(|run| run.iter().zip(0_u64..));
        numbered
            .zip(&self.positions)
            .map(|((&shingle, n_before), &position)| {
                (
                    element(shingle, n_before),
                    self.weights.at[position as usize],
                )
            })
    }

    /// Returns the number of shingles, repetitions included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shingles.len()
    }

    /// Returns whether the text has no token.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.shingles.is_empty()
    }

    /// Returns the sum of the weights: the number of word pairs of own text.
    #[must_use]
    pub fn own(&self) -> f64 {
        self.weights.own
    }

    /// Returns the weights of the shingles, in text order.
    #[must_use]
    pub fn weights(&self) -> &[f64] {
        &self.weights.at
    }
}

/// Returns one number for a shingle with `n_before` earlier occurrences; for the first occurrence,
/// the shingle itself.
#[must_use]
#[inline]
pub fn element(shingle: u64, n_before: u64) -> u64 {
    match n_before {
        0 => shingle,
        _ => mix(shingle ^ mix(n_before)),
    }
}

/// Makes the elements of texts from their shingles. It reuses its table for all texts.
#[derive(Debug, Clone, Default)]
pub struct Numbered {
    slots: Vec<Slot>,
    mask: usize,
    /// The number of the text; slots of other texts are free.
    text: u32,
}

/// A shingle, and the number of its occurrences in a text so far.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    shingle: u64,
    n: u32,
    text: u32,
}

impl Numbered {
    /// Replaces `elements` by those of a text, in text order: the same as [`Content::elements`].
    pub fn elements_into(&mut self, shingles: &[u64], elements: &mut Vec<u64>) {
        let n_slots = (2 * shingles.len()).next_power_of_two();
        self.mask = n_slots - 1;
        if self.slots.len() < n_slots || self.text == u32::MAX {
            self.slots = vec![Slot::default(); n_slots.max(self.slots.len())];
            self.text = 0;
        }
        self.text += 1;
        elements.clear();
        let numbered = shingles.iter();
        elements.extend(numbered.map(|&shingle| element(shingle, self.n_before(shingle))));
    }

    /// Returns the number of earlier occurrences of a shingle in this text.
    fn n_before(&mut self, shingle: u64) -> u64 {
        let mut at = mix(shingle) as usize & self.mask;
        loop {
            let slot = &mut self.slots[at];
            if slot.text != self.text {
                *slot = Slot {
                    shingle,
                    n: 0,
                    text: self.text,
                };
            }
            if slot.shingle == shingle {
                slot.n += 1;
                return u64::from(slot.n) - 1;
            }
            at = (at + 1) & self.mask;
        }
    }
}

/// The scores of two texts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Score {
    /// The weighted score: the smaller share of own text that the chain covers, from 0 to 1.
    pub s: f64,
    /// The unweighted score: the same with every weight 1.
    pub u: f64,
    /// The own text of each document.
    pub own: [f64; 2],
    /// The length of the chain.
    pub n_chain: usize,
}

/// The meaning of a score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// The same document: safe to remove.
    Same,
    /// Another version of the same content.
    Content,
    /// One template, or many versions on one site: worth showing, not a duplicate.
    Alike,
    /// None of these.
    Distinct,
}

impl Level {
    /// Returns the level's name in files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Content => "content",
            Self::Alike => "alike",
            Self::Distinct => "distinct",
        }
    }
}

impl Score {
    /// Returns the level of the score. A page without own text is a duplicate only if it is nearly
    /// equal. That takes at least [`MIN_OWN`] common word pairs, since very short texts with other
    /// symbols have the same tokens (`C++`, `C#`).
    #[must_use]
    pub fn level(&self) -> Level {
        let is_nearly_equal = self.u >= NEARLY_EQUAL && self.n_chain as f64 >= MIN_OWN;
        let weighted = match self.own.iter().all(|&own| own >= MIN_OWN) {
            true => self.s,
            false => 0.0,
        };
        if weighted >= SAME || is_nearly_equal {
            Level::Same
        } else if weighted >= CONTENT {
            Level::Content
        } else if self.u >= ALIKE {
            Level::Alike
        } else {
            Level::Distinct
        }
    }

    /// Returns the score of a chain of positions in both texts.
    fn of_chain(a: &Weights, b: &Weights, chain: &[(u32, u32)]) -> Self {
        let (mut in_a, mut in_b) = (0.0, 0.0);
        for &(i, j) in chain {
            in_a += a.at[i as usize];
            in_b += b.at[j as usize];
        }
        let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        let longer = a.at.len().max(b.at.len());
        Self {
            // Sums of the same weights in another order may exceed the total because of rounding.
            s: share(in_a, a.own).min(share(in_b, b.own)).min(1.0),
            u: share(chain.len() as f64, longer as f64),
            own: [a.own, b.own],
            n_chain: chain.len(),
        }
    }
}

/// Compares texts. It reuses its buffers for all pairs.
///
/// ```
/// use arose::content::{Content, Level, Scorer, shingler};
/// use arose::token::Tokenizer;
/// let shingler = shingler();
/// let content = |text| {
///     let mut shingles = Vec::new();
///     let tokens = Tokenizer::default().tokens(text).fingerprints;
///     shingler.shingles_into(&tokens, &mut shingles);
///     Content::new(&shingles)
/// };
/// let a = content("Once upon a midnight dreary, while I pondered");
/// let b = content("Once upon a time, while I pondered");
/// let score = Scorer::default().score(&a, &b);
/// assert_eq!((score.n_chain, score.u), (4, 4.0 / 7.0));
/// assert_eq!(score.level(), Level::Distinct);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Scorer {
    /// For each position of the first text its match.
    matches: Vec<TokenMatch>,
    /// For each length the greatest position in the second text at which a chain of this length can
    /// begin.
    begins: Vec<u32>,
    /// For each length the first match, by position in the first text, that begins such a chain.
    heads: Vec<u32>,
    chain: Vec<(u32, u32)>,
}

/// The match of a position of the first text.
#[derive(Debug, Clone, Copy)]
struct TokenMatch {
    shingle: u64,
    /// The position in the second text; [`NONE`] if there is none.
    other: u32,
    /// The next position of the first text whose longest chain has the same length.
    next: u32,
}

/// No position.
const NONE: u32 = u32::MAX;

/// A position without a match.
const UNMATCHED: TokenMatch = TokenMatch {
    shingle: 0,
    other: NONE,
    next: NONE,
};

impl Scorer {
    /// Returns the score of two texts.
    #[must_use]
    pub fn score(&mut self, a: &Content, b: &Content) -> Score {
        self.find_chain(a, b);
        Score::of_chain(&a.weights, &b.weights, &self.chain)
    }

    /// Returns the score of two texts whose matches are known: positions in the first, which
    /// ascend, and in the second text, and the shingle there. Each is the n-th occurrence of its
    /// shingle in both.
    #[must_use]
    pub fn score_matches(
        &mut self,
        [a, b]: [&Weights; 2],
        matches: impl IntoIterator<Item = (u32, u32, u64)>,
    ) -> Score {
        self.matches.clear();
        self.matches.resize(a.at.len(), UNMATCHED);
        for (position, other, shingle) in matches {
            let own = &mut self.matches[position as usize];
            (own.shingle, own.other) = (shingle, other);
        }
        self.measure();
        self.choose();
        Score::of_chain(a, b, &self.chain)
    }

    /// Returns a longest sequence of positions of equal shingles that ascends in both texts, the
    /// n-th occurrence of a shingle matched with its n-th in the other text.
    #[must_use]
    pub fn chain(&mut self, a: &Content, b: &Content) -> &[(u32, u32)] {
        self.find_chain(a, b);
        &self.chain
    }

    fn find_chain(&mut self, a: &Content, b: &Content) {
        self.join(a, b);
        self.measure();
        self.choose();
    }

    /// Matches the n-th occurrence of each shingle with its n-th in the other text.
    fn join(&mut self, a: &Content, b: &Content) {
        self.matches.clear();
        self.matches.resize(a.len(), UNMATCHED);
        let (mut i, mut j) = (0, 0);
        while let (Some(&x), Some(&y)) = (a.shingles.get(i), b.shingles.get(j)) {
            if x == y {
                let own = &mut self.matches[a.positions[i] as usize];
                own.shingle = x;
                own.other = b.positions[j];
            }
            // Without branches, since the result of the comparison is unpredictable.
            i += usize::from(x <= y);
            j += usize::from(y <= x);
        }
    }

    /// Computes, from the end, the length of the longest chain that begins at each match, and lists
    /// matches by that length.
    fn measure(&mut self) {
        self.begins.clear();
        self.heads.clear();
        let mut length = 0;
        for position in (0..self.matches.len()).rev() {
            let other = self.matches[position].other;
            if other == NONE {
                continue;
            }
            // Most often the match extends the chain of the match before.
            let extends = self.begins.get(length).is_some_and(|&begin| begin > other);
            let next = length + usize::from(extends);
            let is_first = self.begins.get(next).is_none_or(|&begin| begin <= other);
            length = match extends && is_first {
                true => next,
                false => self.begins.partition_point(|&begin| begin > other),
            };
            if length == self.begins.len() {
                self.begins.push(other);
                self.heads.push(NONE);
            }
            self.begins[length] = other;
            self.matches[position].next = self.heads[length];
            self.heads[length] = position as u32;
        }
    }

    /// Walks along a longest chain. Of the matches that continue it, the one nearest to the
    /// beginning of both texts is chosen, then the one with the smaller shingle. Matches that begin
    /// chains of the same length are never in the same order in both texts. So no two of them
    /// belong to one shingle, and the choice is unique, whichever text is first.
    fn choose(&mut self) {
        self.chain.clear();
        for &head in self.heads.iter().rev() {
            let own = self.matches[head as usize];
            // A longest chain needs a match of every length. If there is only one, it continues the
            // chain.
            let next = match own.next {
                NONE => (head, own.other),
                _ => self.nearest(head),
            };
            self.chain.push(next);
        }
    }

    /// Returns the nearest match in a list that continues the chain.
    fn nearest(&self, head: u32) -> (u32, u32) {
        let after = self.chain.last().copied();
        let (mut best, mut nearest) = ((u64::MAX, u64::MAX), (head, NONE));
        let mut position = head;
        while position != NONE {
            let own = self.matches[position as usize];
            let key = (u64::from(position) + u64::from(own.other), own.shingle);
            if after.is_none_or(|(i, j)| i < position && j < own.other) && key < best {
                (best, nearest) = (key, (position, own.other));
            }
            position = own.next;
        }
        nearest
    }
}

#[cfg(test)]
mod tests;
