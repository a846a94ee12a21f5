//! Focused crawling: which links lead to pages on a topic?
//!
//! *Question.* A crawl is to collect pages on a topic, or pages that are good to train on. The text
//! of a page tells whether it is one of them, but only after it was fetched. Which of the waiting
//! links should be fetched first?
//!
//! *Idea.* Two models. A *scorer* ([`Score`]) reads a page and says how well it fits, from 0 to 1:
//! by [keywords](Keywords), or by a [linear model](Linear) that was trained from examples or given
//! as a file. A [`LinkModel`] predicts the score of a page that was not fetched, from what is known
//! of it: the scores of the pages that link to it, the words of anchors and URL, and where on the
//! page the links are. After each fetch the truth is known, and the model learns from its error.
//! So words become good or bad signs during the crawl, for any topic in any language.
//!
//! *Papers.* Chakrabarti, van den Berg & Dom 1999 (focused crawling); Meusel, Mika & Blanco 2014
//! (online learning while crawling); Robertson & Zaragoza 2009 (BM25). *Parameters.* The model's
//! start and its two learning rates are constants of [`LinkModel`]; the scorers say what theirs
//! are. *Cost.* The link model takes 3 MiB and less than a microsecond per prediction; a waiting
//! link takes about 100 bytes. A linear model takes 4 bytes times 2^bits, and training on thousands
//! of pages takes seconds. *Error.* A prediction from links is far from the score of the text: on
//! Wikipedia articles about 54% of the first fetches are on topic where breadth first has 31% and
//! an oracle that has read every page 72% (`bench/focus`). *Not for* crawls that run to their end:
//! a soft focus only changes the order.
//!
//! ```
//! use arose::focus::{Linear, Score, Words};
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

/// Judges pages by their words.
pub trait Score {
    /// How well a page fits, from 0 to 1. A scorer may learn from the pages it sees.
    fn score(&mut self, page: &Words) -> f32;

    /// How much a word speaks for a page that has it; 0 if nothing is known. The word is a
    /// [token fingerprint](crate::token::fingerprint).
    fn log_odds(&self, word: u64) -> f32;
}

/// The different words of a text, and how often it has each.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Words {
    counts: Vec<(u64, u32)>,
    n_tokens: usize,
}

impl Words {
    /// The words of a text.
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

    /// The fingerprints of the words, ascending, with how often each occurs.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u32)> {
        self.counts.iter().copied()
    }

    /// How often a word occurs.
    #[must_use]
    pub fn count(&self, word: u64) -> u32 {
        let at = self.counts.binary_search_by_key(&word, |&(word, _)| word);
        at.map_or(0, |at| self.counts[at].1)
    }

    /// Words of the text, repeated ones included.
    #[must_use]
    pub fn n_tokens(&self) -> usize {
        self.n_tokens
    }

    /// Whether the text has no words.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }
}

/// One of `2^bits` places for a word.
fn bucket(word: u64, bits: u32) -> usize {
    (mix(word) >> (64 - bits)) as usize
}

fn sigmoid(z: f64) -> f64 {
    1.0 / (1.0 + (-z).exp())
}
