//! A scorer that defines the topic by a list of words.

use super::{PageScorer, Words};
use crate::error::Error;

/// Scores pages by the keywords they contain, as BM25 does: a keyword that is rare in the crawl
/// counts for more, further occurrences for less, and occurrences in long pages for less.
///
/// A page scores 0.5 if it has [`HALF`](Self::HALF) of the sum that a page full of all keywords
/// would have. The rarity of words is learned from the pages scored.
///
/// ```
/// use arose::focus::{Keywords, PageScorer, Words};
/// let mut topic = Keywords::new(["violin", "Sonata"])?;
/// assert!(topic.score(&Words::of("a violin sonata by Brahms")) > 0.5);
/// assert_eq!(topic.score(&Words::of("the stock market")), 0.0);
/// # Ok::<(), arose::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Keywords {
    /// Fingerprints of the keywords, and the number of pages that had them.
    words: Vec<(u64, u64)>,
    n_pages: u64,
    n_tokens: u64,
}

impl Keywords {
    /// The share of the full sum that corresponds to a score of 0.5.
    pub const HALF: f64 = 0.3;
    /// The rate at which further occurrences lose weight: `k1` of BM25.
    const K: f64 = 1.2;
    /// The influence of the length of a page: `b` of BM25.
    const B: f64 = 0.75;

    /// Creates a topic with these keywords; phrases count as their words.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Parameter`] if no keyword has a letter or digit.
    pub fn new<'a>(keywords: impl IntoIterator<Item = &'a str>) -> Result<Self, Error> {
        let mut words: Vec<(u64, u64)> = keywords
            .into_iter()
            .flat_map(|keyword| Words::of(keyword).counts)
            .map(|(word, _)| (word, 0))
            .collect();
        words.sort_unstable();
        words.dedup();
        if words.is_empty() {
            return Err(Error::parameter("keywords", "empty", "at least one word"));
        }
        Ok(Self {
            words,
            n_pages: 0,
            n_tokens: 0,
        })
    }

    /// Returns the state learned from the pages scored: their number, their words, and the number
    /// of pages with each keyword.
    #[must_use]
    pub fn learned(&self) -> Vec<u64> {
        let with = self.words.iter().map(|&(_, n_with)| n_with);
        [self.n_pages, self.n_tokens]
            .into_iter()
            .chain(with)
            .collect()
    }

    /// Restores a state [learned](Self::learned) with the same keywords. Returns whether the state
    /// fits.
    pub fn resume(&mut self, learned: &[u64]) -> bool {
        let [n_pages, n_tokens, with @ ..] = learned else {
            return false;
        };
        if with.len() != self.words.len() {
            return false;
        }
        (self.n_pages, self.n_tokens) = (*n_pages, *n_tokens);
        for ((_, n_with), &learned) in self.words.iter_mut().zip(with) {
            *n_with = learned.min(*n_pages);
        }
        true
    }

    /// Returns the rarity of a word that `n_with` pages have.
    fn rarity(&self, n_with: u64) -> f64 {
        let (n_with, n_pages) = (n_with as f64, self.n_pages as f64);
        (1.0 + (n_pages - n_with + 0.5) / (n_with + 0.5)).ln()
    }
}

impl PageScorer for Keywords {
    fn score(&mut self, page: &Words) -> f32 {
        self.n_pages += 1;
        self.n_tokens += page.n_tokens() as u64;
        for (word, n_with) in &mut self.words {
            *n_with += u64::from(page.count(*word) > 0);
        }
        let mean = (self.n_tokens as f64 / self.n_pages as f64).max(1.0);
        let length = 1.0 - Self::B + Self::B * page.n_tokens() as f64 / mean;
        let (mut sum, mut full) = (0.0, 0.0);
        for &(word, n_with) in &self.words {
            let n = f64::from(page.count(word));
            let rarity = self.rarity(n_with);
            sum += rarity * n / (n + Self::K * length);
            full += rarity;
        }
        (1.0 - (-sum / full / Self::HALF * std::f64::consts::LN_2).exp()) as f32
    }

    fn log_odds(&self, word: u64) -> f32 {
        let at = self.words.binary_search_by_key(&word, |&(word, _)| word);
        if at.is_ok() { 3.0 } else { 0.0 }
    }
}
