//! A scorer with a weight for each word: trained from examples, or read from a file.

use std::fmt::Write;

use super::{PageScorer, Words, bucket, sigmoid};
use crate::error::Error;
use crate::mix::SplitMix;
use crate::token::{Tokenizer, fingerprint};

/// The maximum number of buckets for words, as a power of two.
pub const MAX_BITS: u32 = 24;

/// The first line of a model file.
const MAGIC: &str = "arose-linear 1";

/// Rounds of training, and the size of its first steps.
const N_ROUNDS: u32 = 30;
const STEP: f64 = 2.0;

/// A logistic regression over hashed words.
///
/// The score is `1 / (1 + e^-z)` with `z = bias + sum of weight(word) * v(word)`, where `v(word)`
/// is `1 + ln(count)`, divided by the Euclidean length of all values of the page. A word has one of
/// `2^bits` weights; words that share a weight are not distinguished.
///
/// # Model files
///
/// Text in UTF-8: the line `arose-linear 1`, then `bits B`, `bias X`, `weights N`, then `N` lines
/// that are each `bucket NUMBER WEIGHT` or `word WORD WEIGHT`, then the line `end`. A `word` is one
/// normalized [token](crate::token); its weight is added to its bucket, so a program can write such
/// a file without knowing the hash function. Numbers are decimal and finite.
///
/// ```
/// use arose::focus::{Linear, PageScorer, Words};
/// let file = "arose-linear 1\nbits 18\nbias -1\nweights 2\nword violin 4\nword bond -2.5\nend\n";
/// let mut model = Linear::parse(file)?;
/// assert!(model.score(&Words::of("Violin")) > 0.95);
/// let mut copy = Linear::parse(&model.to_text())?;
/// assert_eq!(copy.score(&Words::of("bond")), model.score(&Words::of("bond")));
/// assert!(Linear::parse(&file[..60]).is_err());
/// # Ok::<(), arose::focus::ModelError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Linear {
    bits: u32,
    bias: f64,
    weights: Box<[f32]>,
}

/// An error in a model file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct ModelError {
    /// The line, counted from 1.
    pub line: usize,
    /// The error in that line.
    pub reason: String,
}

impl Linear {
    /// Trains a model on pages that are on the topic and pages that are not. Both kinds have the
    /// same total weight, however many pages there are of each. The same pages give the same model.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Parameter`] if one of the kinds has no page with words, or `bits` is not
    /// between 8 and [`MAX_BITS`].
    pub fn train(liked: &[Words], others: &[Words], bits: u32) -> Result<Self, Error> {
        if !(8..=MAX_BITS).contains(&bits) {
            return Err(Error::parameter("bits", bits, "8 to 24"));
        }
        let [liked, others] = [("liked pages", liked), ("disliked pages", others)].map(
            |(name, pages)| -> Result<Vec<_>, Error> {
                let pages = pages.iter().filter(|page| !page.is_empty());
                let pages: Vec<_> = pages.map(|page| values(page, bits)).collect();
                match pages.is_empty() {
                    true => Err(Error::parameter(name, 0, "at least 1 page with text")),
                    false => Ok(pages),
                }
            },
        );
        let (liked, others) = (liked?, others?);
        let mut model = Self {
            bits,
            bias: 0.0,
            weights: vec![0.0; 1 << bits].into(),
        };
        model.fit(&liked, &others);
        Ok(model)
    }

    fn fit(&mut self, liked: &[Vec<(usize, f64)>], others: &[Vec<(usize, f64)>]) {
        let n = (liked.len() + others.len()) as f64;
        let parts = [(liked, 1.0), (others, 0.0)];
        let examples = parts.iter().flat_map(|&(pages, truth)| {
            let weight = n / 2.0 / pages.len() as f64;
            pages.iter().map(move |page| (page, truth, weight))
        });
        let mut examples: Vec<_> = examples.collect();
        let mut random = SplitMix::new(1);
        for round in 0..N_ROUNDS {
            for at in (1..examples.len()).rev() {
                examples.swap(at, random.below(at as u64 + 1) as usize);
            }
            let step = STEP / (1.0 + 0.1 * f64::from(round));
            for &(page, truth, weight) in &examples {
                let error = weight * (truth - sigmoid(self.sum(page)));
                self.bias += 0.1 * step * error;
                for &(at, value) in page {
                    self.weights[at] += (step * error * value) as f32;
                }
            }
        }
    }

    fn sum(&self, page: &[(usize, f64)]) -> f64 {
        let products = page
            .iter()
            .map(|&(at, value)| f64::from(self.weights[at]) * value);
        self.bias + products.sum::<f64>()
    }

    /// Reads a model file.
    ///
    /// # Errors
    ///
    /// Returns a [`ModelError`] if the text is not a complete model file.
    pub fn parse(text: &str) -> Result<Self, ModelError> {
        Parser::new(text).model()
    }

    /// Returns the text of a model file, with buckets instead of words.
    #[must_use]
    pub fn to_text(&self) -> String {
        let weights = self.weights.iter().enumerate();
        let weights: Vec<_> = weights.filter(|&(_, &weight)| weight != 0.0).collect();
        let mut text = format!(
            "{MAGIC}\nbits {}\nbias {}\nweights {}\n",
            self.bits,
            self.bias,
            weights.len()
        );
        for (at, weight) in weights {
            let _ = writeln!(text, "bucket {at} {weight}");
        }
        text.push_str("end\n");
        text
    }
}

impl PageScorer for Linear {
    fn score(&mut self, page: &Words) -> f32 {
        sigmoid(self.sum(&values(page, self.bits))) as f32
    }

    fn log_odds(&self, word: u64) -> f32 {
        self.weights[bucket(word, self.bits)]
    }
}

/// Returns the buckets and values of the words of a page.
fn values(page: &Words, bits: u32) -> Vec<(usize, f64)> {
    let value = |(word, n): (u64, u32)| (bucket(word, bits), 1.0 + f64::from(n).ln());
    let mut values: Vec<_> = page.iter().map(value).collect();
    let length = values.iter().map(|&(_, value)| value * value).sum::<f64>();
    let length = length.sqrt().max(1e-9);
    values.iter_mut().for_each(|(_, value)| *value /= length);
    values
}

struct Parser<'a> {
    lines: std::iter::Enumerate<std::str::Lines<'a>>,
    line: usize,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            lines: text.lines().enumerate(),
            line: 0,
        }
    }

    fn model(mut self) -> Result<Linear, ModelError> {
        if self.next()?.trim_end() != MAGIC {
            return Err(self.error(format!("expected `{MAGIC}`")));
        }
        let bits: u32 = self.field("bits")?;
        if !(1..=MAX_BITS).contains(&bits) {
            return Err(self.error(format!("`bits` is {bits}, expected 1 to {MAX_BITS}")));
        }
        let bias = self.field("bias")?;
        let bias = self.finite(bias)?;
        let n_weights: usize = self.field("weights")?;
        let mut weights = vec![0.0_f32; 1 << bits].into_boxed_slice();
        for _ in 0..n_weights {
            let (at, weight) = self.weight(bits)?;
            weights[at] += weight;
            self.finite(weights[at].into())?;
        }
        if self.next()?.trim_end() != "end" {
            return Err(self.error("expected `end` after the last weight".to_owned()));
        }
        Ok(Linear {
            bits,
            bias,
            weights,
        })
    }

    fn weight(&mut self, bits: u32) -> Result<(usize, f32), ModelError> {
        let line = self.next()?;
        let mut parts = line.split_whitespace();
        let (kind, name, weight) = (parts.next(), parts.next(), parts.next());
        let (Some(kind), Some(name), Some(weight), None) = (kind, name, weight, parts.next())
        else {
            let expected = "expected `bucket NUMBER WEIGHT` or `word WORD WEIGHT`";
            return Err(self.error(expected.to_owned()));
        };
        let at = match kind {
            "bucket" => name.parse().ok().filter(|&at: &usize| at >> bits == 0),
            "word" => token(name).map(|word| bucket(word, bits)),
            _ => None,
        };
        let Some(at) = at else {
            return Err(self.error(format!("`{kind} {name}` is not a bucket or a single word")));
        };
        let weight: f32 = self.number(weight)?;
        self.finite(weight.into())?;
        Ok((at, weight))
    }

    fn field<T: std::str::FromStr>(&mut self, name: &str) -> Result<T, ModelError> {
        let line = self.next()?;
        match line.trim_end().split_once(' ') {
            Some((found, value)) if found == name => self.number(value),
            _ => Err(self.error(format!("expected `{name} NUMBER`"))),
        }
    }

    fn number<T: std::str::FromStr>(&self, text: &str) -> Result<T, ModelError> {
        text.parse()
            .map_err(|_| self.error(format!("`{text}` is not a valid number here")))
    }

    fn finite(&self, number: f64) -> Result<f64, ModelError> {
        match number.is_finite() {
            true => Ok(number),
            false => Err(self.error(format!("`{number}` is not finite"))),
        }
    }

    fn next(&mut self) -> Result<&'a str, ModelError> {
        self.line += 1;
        let line = self.lines.next().map(|(_, line)| line);
        line.ok_or_else(|| self.error("the file ends too early".to_owned()))
    }

    fn error(&self, reason: String) -> ModelError {
        ModelError {
            line: self.line,
            reason,
        }
    }
}

/// Returns the fingerprint of a text that consists of one token.
fn token(text: &str) -> Option<u64> {
    let mut tokens = Vec::new();
    Tokenizer::default().for_each(text, |token| tokens.push(fingerprint(token.as_bytes())));
    (tokens.len() == 1).then(|| tokens[0])
}
