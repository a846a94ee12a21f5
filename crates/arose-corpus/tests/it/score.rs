//! The scores of the extraction data sets.

use std::collections::HashMap;

/// Runs of letters, digits and underscores.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    text.split(|char: char| !char.is_alphanumeric() && char != '_')
        .filter(|word| !word.is_empty())
}

/// F1 of the multisets of words, in lower case. If nothing is expected, only an empty result is
/// correct.
pub(crate) fn word_f1(found: &str, truth: &str) -> f64 {
    let (found, truth) = (found.to_lowercase(), truth.to_lowercase());
    let [n_found, n_truth, n_both] = overlap(tokens(&found), tokens(&truth));
    if n_truth == 0.0 {
        return f64::from(u8::from(n_found == 0.0));
    }
    2.0 * n_both / (n_found + n_truth)
}

/// Precision and recall of four-word shingles, averaged over pages. Pages without a found shingle
/// do not count for precision, and pages without a true shingle do not count for recall.
#[derive(Default)]
pub(crate) struct Shingles {
    precision: Vec<f64>,
    recall: Vec<f64>,
}

impl Shingles {
    /// Adds a page.
    pub(crate) fn add(&mut self, found: &str, truth: &str) {
        let (found, truth) = (shingles(found), shingles(truth));
        let [n_found, n_truth, n_both] = overlap(found.iter(), truth.iter());
        if n_found > 0.0 {
            self.precision.push(n_both / n_found);
        }
        if n_truth > 0.0 {
            self.recall.push(n_both / n_truth);
        }
    }

    /// F1, precision and recall of all pages.
    pub(crate) fn result(&self) -> [f64; 3] {
        let (precision, recall) = (mean(&self.precision), mean(&self.recall));
        [
            2.0 * precision * recall / (precision + recall),
            precision,
            recall,
        ]
    }
}

/// The average.
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Windows of four words; a shorter text is one window.
fn shingles(text: &str) -> Vec<Vec<&str>> {
    let words: Vec<&str> = tokens(text).collect();
    match words.len() {
        0 => Vec::new(),
        1..4 => vec![words],
        _ => words.windows(4).map(<[&str]>::to_vec).collect(),
    }
}

/// Sizes of two multisets and of their intersection.
fn overlap<T: std::hash::Hash + Eq>(
    found: impl Iterator<Item = T>,
    truth: impl Iterator<Item = T>,
) -> [f64; 3] {
    let mut left: HashMap<T, u64> = HashMap::new();
    let (mut n_found, mut n_truth, mut n_both) = (0u64, 0u64, 0u64);
    for item in truth {
        n_truth += 1;
        *left.entry(item).or_default() += 1;
    }
    for item in found {
        n_found += 1;
        if let Some(count) = left.get_mut(&item).filter(|count| **count > 0) {
            *count -= 1;
            n_both += 1;
        }
    }
    [n_found, n_truth, n_both].map(|count| count as f64)
}
