//! Differences of the estimates of each tool from the exact values.

use std::collections::HashMap;

use arose::mix::SplitMix;
use arose::shingle::{ShingleSet, Shingler, jaccard};
use arose::token::Tokenizer;

/// Pairs of token sequences: a text, and the same with some of its words replaced.
pub struct Pairs {
    pairs: Vec<[Vec<u64>; 2]>,
}

const N_PAIRS: usize = 500;

impl Pairs {
    /// Takes the longest texts and replaces up to a twentieth of their words.
    pub fn new(texts: &[String]) -> Self {
        let tokenizer = Tokenizer::default();
        let mut random = SplitMix::new(1);
        let long = texts
            .iter()
            .map(|text| tokenizer.tokens(text).fingerprints)
            .filter(|tokens| tokens.len() >= 300);
        let pairs = long.take(N_PAIRS).enumerate().map(|(i, tokens)| {
            let mut edited = tokens.clone();
            for _ in 0..tokens.len() * (i % 20) / 400 {
                let at = random.below(tokens.len() as u64) as usize;
                edited[at] = random.next_u64();
            }
            [tokens, edited]
        });
        Self {
            pairs: pairs.collect(),
        }
    }

    /// Mean difference of an estimate from the exact similarity of the shingle sets.
    pub fn resemblance_error(&self, estimate: impl Fn(&[u64], &[u64]) -> f64) -> f64 {
        let shingler = Shingler::new(arose::shingle::FEATURE_W);
        self.mean(|[a, b]| {
            let [a, b]: [ShingleSet; 2] = [shingler.set(a), shingler.set(b)];
            let exact = jaccard(&a, &b).expect("long texts have shingles");
            (estimate(a.as_slice(), b.as_slice()) - exact).abs()
        })
    }

    /// Mean difference of an estimate from the exact cosine of the token counts.
    pub fn cosine_error(&self, estimate: impl Fn(&[u64], &[u64]) -> f64) -> f64 {
        self.mean(|[a, b]| (estimate(a, b) - cosine(a, b)).abs())
    }

    fn mean(&self, error: impl Fn(&[Vec<u64>; 2]) -> f64) -> f64 {
        self.pairs.iter().map(error).sum::<f64>() / self.pairs.len() as f64
    }
}

fn cosine(a: &[u64], b: &[u64]) -> f64 {
    let [count_a, count_b] = [a, b].map(|tokens| {
        let mut counts: HashMap<u64, f64> = HashMap::new();
        for &token in tokens {
            *counts.entry(token).or_default() += 1.0;
        }
        counts
    });
    let dot: f64 = count_a
        .iter()
        .filter_map(|(token, n)| Some(n * count_b.get(token)?))
        .sum();
    let square = |counts: &HashMap<u64, f64>| counts.values().map(|n| n * n).sum::<f64>();
    dot / (square(&count_a) * square(&count_b)).sqrt()
}
