//! The learned rule: a forest of small decision trees gives each block the probability that it is
//! content, and the blocks with the largest expected F1 score are chosen.
//!
//! Why a forest: the signs of content differ by kind of page. A link is noise in an article and the
//! point of a listing, so thresholds must depend on each other. Gradient-boosted trees (Friedman,
//! 2001) learn this from pages whose main content is known. `bench/extract/train.py` trains them on
//! exactly the numbers of [`features`](super::features) and writes the table.
//!
//! Why not a fixed threshold: the threshold that maximizes F1 depends on how certain the whole page
//! is. For blocks of `w` words with probability `p`, the expected score of a choice `S` is about `2
//! Σ_S p w / (Σ_S w + Σ p w)`. A prefix of the blocks ordered by `p` reaches its maximum. A page
//! whose best expected score is low has no main content.
//!
//! Cost: `O(b log b + b T d)` for `b` blocks, `T` trees and depth `d`. Not for fragments: half of
//! the features describe the page around the block.

use super::features::Row;
use super::forest_table::{LEAVES, ROOTS, SPLITS};

/// A page with a lower expected score has no main content.
const MIN_EXPECTED_F1: f64 = 0.35;

/// The probability that each of `n` blocks is content; `row` computes the features of one.
pub(super) fn probabilities(n: usize, row: impl Fn(usize) -> Row) -> Vec<f64> {
    let mut probabilities = Vec::with_capacity(n);
    let mut rows = Vec::with_capacity(ROWS_AT_ONCE);
    // A tree and some rows fit into the first-level cache, but not all trees.
    for first in (0..n).step_by(ROWS_AT_ONCE) {
        rows.clear();
        rows.extend((first..n.min(first + ROWS_AT_ONCE)).map(&row));
        let mut logits = [0i32; ROWS_AT_ONCE];
        for &root in &ROOTS {
            for (row, logit) in rows.iter().zip(&mut logits) {
                *logit += i32::from(leaf(row, root));
            }
        }
        let logits = logits.iter().take(rows.len());
        probabilities
            .extend(logits.map(|&logit| 1.0 / (1.0 + (-f64::from(logit) / LEAF_SCALE).exp())));
    }
    probabilities
}

const ROWS_AT_ONCE: usize = 32;

/// Leaves are stored in thousandths.
const LEAF_SCALE: f64 = 1000.0;

/// Walks one tree. A split `(feature, threshold, targets)` goes to its first target if the feature
/// is at most the threshold, otherwise to the second. A negative target `t` is leaf `-t - 1`. The
/// target is indexed instead of branched to, because branches would be unpredictable.
#[inline]
fn leaf(row: &Row, root: i16) -> i16 {
    let mut at = root;
    while at >= 0 {
        let (feature, threshold, targets) = SPLITS[at as usize];
        at = targets[usize::from(row[feature as usize] > threshold)];
    }
    LEAVES[(-at - 1) as usize]
}

/// The choice with the largest expected F1, given the probability and the number of words of each
/// block.
pub(super) fn choose(probabilities: &[f64], words: impl Fn(usize) -> f64) -> Vec<bool> {
    let hits = probabilities.iter().enumerate();
    let expected: f64 = hits.map(|(at, p)| p * words(at)).sum();
    let mut order: Vec<usize> = (0..probabilities.len()).collect();
    order.sort_unstable_by(|&a, &b| {
        probabilities[b]
            .total_cmp(&probabilities[a])
            .then(a.cmp(&b))
    });
    let (mut hits, mut size) = (0.0, 0.0);
    let (mut best, mut n_best) = (0.0, 0);
    for (at, &block) in order.iter().enumerate() {
        hits += probabilities[block] * words(block);
        size += words(block);
        let score = 2.0 * hits / (size + expected);
        if score > best {
            (best, n_best) = (score, at + 1);
        }
    }
    let mut chosen = vec![false; probabilities.len()];
    if best >= MIN_EXPECTED_F1 {
        for &block in &order[..n_best] {
            chosen[block] = true;
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The best of all choices, by brute force.
    fn best_score(probabilities: &[f64], words: &[f64]) -> f64 {
        let expected: f64 = probabilities.iter().zip(words).map(|(p, w)| p * w).sum();
        (1u32..1 << words.len())
            .map(|set| {
                let in_set = |at: &usize| set >> at & 1 != 0;
                let chosen: Vec<usize> = (0..words.len()).filter(in_set).collect();
                let hits: f64 = chosen.iter().map(|&at| probabilities[at] * words[at]).sum();
                let size: f64 = chosen.iter().map(|&at| words[at]).sum();
                2.0 * hits / (size + expected)
            })
            .fold(0.0, f64::max)
    }

    #[test]
    fn a_prefix_is_the_best_choice() {
        let probabilities = [0.9, 0.1, 0.6, 0.45, 0.7, 0.3, 0.2];
        let words = [40.0, 10.0, 3.0, 80.0, 5.0, 20.0, 100.0];
        let chosen = choose(&probabilities, |at| words[at]);
        let pick = |values: &[f64]| -> f64 {
            values
                .iter()
                .zip(&chosen)
                .filter(|(_, chosen)| **chosen)
                .map(|(value, _)| value)
                .sum()
        };
        let hits: Vec<f64> = probabilities
            .iter()
            .zip(&words)
            .map(|(p, w)| p * w)
            .collect();
        let score = 2.0 * pick(&hits) / (pick(&words) + hits.iter().sum::<f64>());
        assert!((score - best_score(&probabilities, &words)).abs() < 1e-12);
    }

    #[test]
    fn a_page_of_doubts_has_no_content() {
        assert_eq!(choose(&[0.05, 0.1], |_| 100.0), [false, false]);
        assert_eq!(choose(&[], |_| 0.0), [] as [bool; 0]);
    }

    #[test]
    fn every_tree_ends_in_a_leaf() {
        for &(feature, _, targets) in &SPLITS {
            assert!((feature as usize) < super::super::features::N_FEATURES);
            for target in targets {
                assert!(target < SPLITS.len() as i16 && -target <= LEAVES.len() as i16);
            }
        }
    }
}
