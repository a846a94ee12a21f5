//! Focused crawling: predicts which links lead to pages on a topic.
//!
//! *Question.* A crawl should collect pages on a topic, or pages that make good training data. The
//! text of a page shows whether it fits, but only after the page was fetched. Which of the waiting
//! links should be fetched first?
//!
//! *Idea.* Use two models. A *scorer* ([`PageScorer`]) reads a page and scores how well it fits,
//! from 0 to 1: by [keywords](Keywords), or by a [linear model](Linear) that was trained from
//! examples or read from a file. A [`LinkModel`] predicts the score of a page before it is fetched.
//! It uses the scores of the pages that link to it, the words of anchors and URL, and the places of
//! the links on their pages. After each fetch the actual score is known, and the model learns from
//! its error. So the crawl learns which words are good or bad signs, for any topic in any language.
//!
//! *Papers.* Chakrabarti, van den Berg & Dom 1999 (focused crawling); Meusel, Mika & Blanco 2014
//! (online learning while crawling); Robertson & Zaragoza 2009 (BM25). *Parameters.* The model's
//! start and its two learning rates are constants of [`LinkModel`]; the scorers document theirs.
//! *Cost.* The link model takes 3 MiB and less than a microsecond per prediction; a waiting link
//! takes about 100 bytes. A linear model takes 4 bytes times 2^bits, and training on thousands of
//! pages takes seconds. *Error.* A prediction from links is far from the score of the text: on
//! Wikipedia articles, about 54% of the first fetches are on topic, compared with 31% for breadth
//! first and 72% for an oracle that has read every page (`bench/focus`). *Not for* crawls that run
//! to their end: a soft focus only changes the order.
//!
//! ```
//! use arose::focus::{Linear, PageScorer, Words};
//! let liked = ["the violin sonata", "a sonata for piano", "violin and piano"].map(Words::of);
//! let others = ["stocks and bonds", "the price of bonds", "a stock market"].map(Words::of);
//! let mut model = Linear::train(&liked, &others, 18)?;
//! assert!(model.score(&Words::of("piano music")) > 0.5);
//! assert!(model.score(&Words::of("market prices of bonds")) < 0.5);
//! # Ok::<(), arose::Error>(())
//! ```

mod keywords;
mod linear;
mod link;
mod state;
#[cfg(test)]
mod tests;

pub use keywords::Keywords;
pub use linear::{Linear, MAX_BITS, ModelError};
pub use link::{Link, LinkModel, LinkWords, MAX_WORDS};
pub use state::LINK_BYTES;

use crate::mix::mix;
use crate::token::Tokenizer;

/// Scores pages by their words.
pub trait PageScorer {
    /// Returns how well a page fits, from 0 to 1. A scorer may learn from the pages it sees.
    fn score(&mut self, page: &Words) -> f32;

    /// Returns the evidence of a word for a page that has it; 0 if nothing is known. The word is a
    /// [token fingerprint](crate::token::fingerprint).
    fn log_odds(&self, word: u64) -> f32;
}

/// The distinct words of a text, with their numbers of occurrences.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Words {
    counts: Vec<(u64, u32)>,
    n_tokens: usize,
}

impl Words {
    /// Returns the words of a text.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let mut tokens = Vec::new();
        Tokenizer::default().fingerprints_into(text, &mut tokens);
        let n_tokens = tokens.len();
        tokens.sort_unstable();
        let runs = tokens.chunk_by(|a, b| a == b);
        let counts = runs.map(|run| (run[0], run.len().min(u32::MAX as usize) as u32));
        Self {
            counts: counts.collect(),
            n_tokens,
        }
    }

    /// Returns the fingerprints of the words, ascending, with the number of occurrences of each.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u32)> {
        self.counts.iter().copied()
    }

    /// Returns the number of occurrences of a word.
    #[must_use]
    pub fn count(&self, word: u64) -> u32 {
        let at = self.counts.binary_search_by_key(&word, |&(word, _)| word);
        at.map_or(0, |at| self.counts[at].1)
    }

    /// Returns the number of words of the text, including repetitions.
    #[must_use]
    pub fn n_tokens(&self) -> usize {
        self.n_tokens
    }

    /// Returns whether the text has no words.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }
}

/// Returns one of `2^bits` buckets for a word.
fn bucket(word: u64, bits: u32) -> usize {
    (mix(word) >> (64 - bits)) as usize
}

fn sigmoid(z: f64) -> f64 {
    1.0 / (1.0 + (-z).exp())
}
