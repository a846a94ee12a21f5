//! Quality of a text: signals of spam and boilerplate, and the rules of published filters.
//!
//! *Question.* Is this page worth reading before others, and would a filter for training data keep
//! it?
//!
//! *Idea.* Spam repeats itself: stuffed pages use few words, spun pages fill one template again and
//! again, farms have only links (Ntoulas et al., *Detecting spam web pages through content
//! analysis*, 2006). Each such signal is a number that gradually lowers a weight above its
//! threshold. The weight `q` is a product of steps, each 1 up to the threshold and 0.1 at twice the
//! threshold or more. The weight itself is at least 0.1: it orders pages and never rejects one.
//!
//! The rules by which C4 (Raffel et al., 2020), Gopher (Rae et al., 2021) and FineWeb (Penedo et
//! al., 2024) reject documents are also here, each a [`QualityRule`] with a name, a value and a
//! bound. Words are separated by whitespace. If punctuation counted as words, the rule about
//! alphabetic words would reject more than a third of good articles.
//!
//! *Cost.* One pass over the text, then one over its words for each length of n-grams: time and
//! memory in proportion to the text. The table that numbers words and n-grams is keyed by the text
//! itself, so that no text can make it slow. If only the weight is needed, bounds from hashes of
//! words make these tables unnecessary for most texts.
//!
//! *Error.* Words are distinguished by 64-bit digests and n-grams by mixing these.
//!
//! *Not for* rejecting pages of a crawl: on 555 reviewed web pages the published rules together
//! reject 35%, and more than half of documentation. Not for text without spaces between words, in
//! which whole sentences count as words: only signals without words apply to it.

mod glance;
mod grams;
mod rules;
mod signals;
#[cfg(test)]
mod tests;

pub use rules::{Bound, Family, N_RULES, QualityRule, RULES, Selection};
pub use signals::{Analyzer, Repetition, Signals};

/// Facts about a page in addition to its text. By default, nothing is known.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Facts {
    /// Bytes of the first [`RATIO_CHARS`] characters, divided by their bytes after compression
    /// (zlib, level 6).
    pub ratio: Option<f64>,
    /// Words of the title.
    pub title_words: u32,
    /// Share of the text, in bytes, that is inside links.
    pub anchor: f64,
    /// Share of the text, in bytes, that readers do not see.
    pub hidden: f64,
    /// Number of links of the page.
    pub n_links: u32,
}

impl Facts {
    /// Returns the links per word. A hundred additional words are assumed, so that a page of a few
    /// words, rendered by scripts or not, does not count as a list of links.
    #[must_use]
    pub fn links_per_word(&self, n_words: u32) -> f64 {
        f64::from(self.n_links) / (f64::from(n_words) + 100.0)
    }

    /// Returns the bytes of text inside links for each byte of text outside.
    #[must_use]
    pub fn anchor_odds(&self) -> f64 {
        let share = self.anchor.clamp(0.0, 1.0);
        share / (1.0 - share).max(1e-6)
    }
}

/// Number of characters for which the compression ratio is computed, since the ratio grows with the
/// length.
pub const RATIO_CHARS: usize = 4_500;

/// The minimum weight.
pub const LEAST: f64 = 0.1;

/// With fewer words, shares of words are not meaningful.
pub const FEW_WORDS: u32 = 50;

/// Up to these values, a signal has no effect on the weight. At twice the value or more, it has its
/// full effect. Chosen on 555 good pages (`docs/quality.md`): one page in a hundred exceeds the
/// middle.
pub mod threshold {
    /// Threshold of [`Facts::ratio`](super::Facts::ratio).
    pub const RATIO: f64 = 2.7;
    /// Threshold of [`Repetition::reuse`](super::Repetition::reuse).
    pub const REUSE: f64 = 3.6;
    /// Threshold of [`Repetition::top_word`](super::Repetition::top_word).
    pub const TOP_WORD: f64 = 0.1;
    /// Threshold of [`Repetition::dup_line_chars`](super::Repetition::dup_line_chars).
    pub const DUP_LINE_CHARS: f64 = 0.4;
    /// Threshold of [`Repetition::dup_5_grams`](super::Repetition::dup_5_grams).
    pub const DUP_5_GRAMS: f64 = 0.35;
    /// Threshold of [`Facts::title_words`](super::Facts::title_words).
    pub const TITLE_WORDS: f64 = 30.0;
    /// Threshold of [`Facts::anchor_odds`](super::Facts::anchor_odds).
    pub const ANCHOR_ODDS: f64 = 8.0;
    /// Threshold of [`Facts::hidden`](super::Facts::hidden).
    pub const HIDDEN: f64 = 0.4;
    /// Threshold of [`Facts::links_per_word`](super::Facts::links_per_word).
    pub const LINKS_PER_WORD: f64 = 0.45;
}

/// Returns the value of a soft step: 1 up to the threshold, 0.1 at twice the threshold or more,
/// linear between.
///
/// ```
/// use arose::quality::step;
/// assert_eq!([1.0, 2.0, 3.0, 4.0, 9.0].map(|x| step(x, 2.0)), [1.0, 1.0, 0.55, 0.1, 0.1]);
/// ```
#[must_use]
pub fn step(value: f64, threshold: f64) -> f64 {
    let beyond = ((value - threshold) / threshold).clamp(0.0, 1.0);
    match beyond.is_nan() {
        true => 1.0,
        false => (1.0 - (1.0 - LEAST) * beyond).max(LEAST),
    }
}

/// Returns the weight of a page, from 0.1 to 1.
#[must_use]
pub fn weight(text: &Repetition, facts: &Facts) -> f64 {
    let of_words = match text.n_words < FEW_WORDS {
        true => 1.0,
        false => {
            step(text.reuse, threshold::REUSE)
                * step(text.top_word, threshold::TOP_WORD)
                * step(text.dup_line_chars, threshold::DUP_LINE_CHARS)
                * step(text.dup_5_grams, threshold::DUP_5_GRAMS)
                * step(facts.anchor_odds(), threshold::ANCHOR_ODDS)
        }
    };
    let product = of_words
        * facts
            .ratio
            .map_or(1.0, |ratio| step(ratio, threshold::RATIO))
        * step(f64::from(facts.title_words), threshold::TITLE_WORDS)
        * step(facts.hidden, threshold::HIDDEN)
        * step(
            facts.links_per_word(text.n_words),
            threshold::LINKS_PER_WORD,
        );
    product.max(LEAST)
}
