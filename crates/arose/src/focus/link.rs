//! The link model: predicts the score of a page from the links to it, and learns from each fetch.

use super::{PageScorer, Words, bucket, sigmoid};
use crate::mix::mix;

/// Maximum number of words of a link that count.
pub const MAX_WORDS: usize = 24;

/// The number of buckets for words is 2^18.
pub(super) const BITS: u32 = 18;

/// Separates tag paths from words.
const TAG_SEED: u64 = 0x7461_6750_6174_6801;

/// Learning rates of the weights of features and of words.
const FEATURE_STEP: f64 = 0.05;
const WORD_STEP: f64 = 0.3;

/// Log-odds are clipped to this value.
const MAX_ODDS: f64 = 3.0;

/// Data about a page that was not fetched.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Link {
    pub(super) n_parents: u32,
    pub(super) sum: f32,
    pub(super) max: f32,
    /// The log-odds of the words according to the scorer.
    pub(super) odds: f32,
    pub(super) words: Vec<u32>,
}

/// The evidence of a link: the words of its anchor and URL, and its place on the page.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LinkWords {
    /// Buckets of words, each once; the highest bit marks tag paths.
    buckets: Vec<u32>,
    odds: Vec<f32>,
}

/// Marks a bucket as that of a tag path, which has no log-odds.
pub(super) const TAG: u32 = 1 << 31;

impl LinkWords {
    /// Creates the words of a link: its anchor text, the path and query of its URL, and its tag
    /// path, such as `div.menu>ul>li` (empty if unknown). The scorer gives the log-odds of each
    /// word.
    #[must_use]
    pub fn new(anchor: &str, url: &str, tag_path: &str, scorer: &dyn PageScorer) -> Self {
        let mut words = Self::default();
        let anchor = Words::of(anchor);
        let url = Words::of(url);
        for (word, _) in anchor.iter().chain(url.iter()) {
            words.push(bucket(word, BITS) as u32, || scorer.log_odds(word));
        }
        if !tag_path.is_empty() {
            let place = mix(crate::digest::digest64(tag_path.as_bytes()) ^ TAG_SEED);
            // There is always space for the tag path.
            words.buckets.truncate(MAX_WORDS - 1);
            words.odds.truncate(MAX_WORDS - 1);
            words.push(bucket(place, BITS) as u32 | TAG, || 0.0);
        }
        words
    }

    /// Adds the words of another link on the same page with the same target.
    pub fn merge(&mut self, other: &Self) {
        for (&bucket, &odds) in other.buckets.iter().zip(&other.odds) {
            self.push(bucket, || odds);
        }
    }

    fn push(&mut self, bucket: u32, odds: impl FnOnce() -> f32) {
        if self.buckets.len() < MAX_WORDS && !self.buckets.contains(&bucket) {
            self.buckets.push(bucket);
            self.odds.push(odds());
        }
    }
}

impl Link {
    /// Records a link from a page with a score.
    pub fn add(&mut self, score: f32, words: &LinkWords) {
        let score = if score.is_finite() { score } else { 0.5 };
        self.n_parents = self.n_parents.saturating_add(1);
        self.sum += score;
        self.max = self.max.max(score);
        for (&word, &odds) in words.buckets.iter().zip(&words.odds) {
            if self.words.len() < MAX_WORDS && !self.words.contains(&word) {
                self.words.push(word);
                self.odds += odds;
            }
        }
    }

    /// Corrects the score of a page that links here, if it arrives late.
    pub fn correct(&mut self, from: f32, to: f32) {
        if to.is_finite() {
            self.sum += to - from;
            self.max = self.max.max(to);
        }
    }

    /// Returns the number of pages that link here.
    #[must_use]
    pub fn n_parents(&self) -> u32 {
        self.n_parents
    }
}

/// Predicts scores of pages from the links to them.
///
/// The prediction is `1 / (1 + e^-z)`. `z` is the sum of the weights of all words and of five
/// features times their weights. The weights of the features start at 2, 1, 0.4, 0.1 and -2. The
/// features are the mean and the largest score of the pages that link there, the log-odds of the
/// words (clipped to 3), the logarithm of the number of these pages, and 1. Half of the log-odds
/// comes from the scorer. The other half comes from the texts of fetched pages: how much more often
/// pages on the topic have a word.
///
/// After a fetch, with the error `e` of the prediction, each feature `f` moves its weight by
/// `0.05 e f`, and each word its own by `0.3 e`.
///
/// ```
/// use arose::focus::{Keywords, Link, LinkModel, LinkWords};
/// let scorer = Keywords::new(["violin"])?;
/// let mut model = LinkModel::new();
/// let words = LinkWords::new("string quartets", "/music/quartets", "", &scorer);
/// let mut link = Link::default();
/// link.add(0.2, &words);
/// let before = model.score(&link);
/// model.learn(&link, 1.0);
/// assert!(model.score(&link) > before);
/// # Ok::<(), arose::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct LinkModel {
    pub(super) weights: [f64; 5],
    pub(super) words: Box<[f32]>,
    /// For each word, the sum over pages that have it of the score and of 1 minus the score.
    pub(super) with: Box<[[f32; 2]]>,
    /// The same for all pages.
    pub(super) all: [f64; 2],
    /// Words whose numbers have changed, if changes are taken.
    pub(super) touched: Option<Vec<u32>>,
}

impl Default for LinkModel {
    fn default() -> Self {
        Self::new()
    }
}

impl LinkModel {
    /// Creates a model that has not learned anything.
    #[must_use]
    pub fn new() -> Self {
        Self {
            weights: [2.0, 1.0, 0.4, 0.1, -2.0],
            words: vec![0.0; 1 << BITS].into(),
            with: vec![[0.0; 2]; 1 << BITS].into(),
            all: [0.0; 2],
            touched: None,
        }
    }

    /// Returns the weights of the five features.
    #[must_use]
    pub fn weights(&self) -> [f64; 5] {
        self.weights
    }

    /// Returns the predicted score of a page.
    #[must_use]
    pub fn score(&self, link: &Link) -> f32 {
        self.predict(link, &self.features(link)) as f32
    }

    /// Learns from the actual score of a page that was predicted from `link`.
    pub fn learn(&mut self, link: &Link, score: f32) {
        if link.n_parents == 0 || !score.is_finite() {
            return;
        }
        let features = self.features(link);
        let error = f64::from(score.clamp(0.0, 1.0)) - self.predict(link, &features);
        for (weight, feature) in self.weights.iter_mut().zip(features) {
            *weight += FEATURE_STEP * error * feature;
        }
        let words = link.words.iter().map(|word| word & !TAG);
        for word in words.clone() {
            self.words[word as usize] += (WORD_STEP * error) as f32;
        }
        if let Some(touched) = &mut self.touched {
            touched.extend(words);
        }
    }

    /// Learns from the text of a page which words pages with its score have.
    pub fn read(&mut self, page: &Words, score: f32) {
        if !score.is_finite() {
            return;
        }
        let score = score.clamp(0.0, 1.0);
        self.all[0] += f64::from(score);
        self.all[1] += f64::from(1.0 - score);
        for (word, _) in page.iter() {
            let at = bucket(word, BITS);
            let with = &mut self.with[at];
            with[0] += score;
            with[1] += 1.0 - score;
            if let Some(touched) = &mut self.touched {
                touched.push(at as u32);
            }
        }
    }

    /// Returns the weight of an anchor word for a page, as learned from errors so far.
    #[must_use]
    pub fn weight_of(&self, word: u64) -> f32 {
        self.words[bucket(word, BITS)]
    }

    fn predict(&self, link: &Link, features: &[f64; 5]) -> f64 {
        let products = features.iter().zip(&self.weights).map(|(a, b)| a * b);
        let words = link
            .words
            .iter()
            .map(|&word| f64::from(self.words[(word & !TAG) as usize]));
        sigmoid(products.sum::<f64>() + words.sum::<f64>())
    }

    fn features(&self, link: &Link) -> [f64; 5] {
        let n = f64::from(link.n_parents.max(1));
        let words = link.words.iter().filter(|&&word| word & TAG == 0);
        let learned: f64 = words.map(|&word| self.learned_odds(word as usize)).sum();
        let odds = 0.5 * (f64::from(link.odds) + learned);
        [
            (f64::from(link.sum) / n).clamp(0.0, 1.0),
            link.max.into(),
            odds.clamp(-MAX_ODDS, MAX_ODDS),
            n.ln(),
            1.0,
        ]
    }

    /// Returns the log-odds of a word from the pages that had it, relative to all pages. One
    /// average page is added, so that rare words have little effect.
    pub(super) fn learned_odds(&self, at: usize) -> f64 {
        let [on, off] = self.all.map(|sum| sum + 1.0);
        let prior = on / (on + off);
        let [with_on, with_off] = self.with[at].map(f64::from);
        ((with_on + prior) / (with_off + 1.0 - prior)).ln() - (on / off).ln()
    }
}
