//! The documents of a component as sequences of numbers, for fast comparison of their contents.
//!
//! Word pairs are numbered in the order of their first occurrence ([`Numbers`]). Each occurrence in
//! a document has its own number, so that the n-th occurrence of a word pair has the same number in
//! all documents. The common text of two documents is then found without sorting or hashing.

use arose::content::{Score, Scorer, Weights, element};

use super::room::Numbers;

/// The documents of one component, and reused memory.
#[derive(Default)]
pub(crate) struct Sequences {
    numbers: Numbers,
    /// For each number, its word pair.
    shingles: Vec<u64>,
    /// For each number of a first occurrence, the number of its occurrences in the current
    /// document, and that document.
    met: Vec<(u32, u32)>,
    /// The numbers of all documents, and the start of those of each.
    sequences: Vec<u32>,
    starts: Vec<usize>,
    weights: Vec<Weights>,
    /// For each number a document and the position there.
    places: Vec<(u32, u32)>,
    /// The document with which `places` was filled last.
    placed: u32,
    scorer: Scorer,
}

impl Sequences {
    pub(crate) fn clear(&mut self) {
        self.numbers.clear();
        self.shingles.clear();
        self.met.clear();
        self.sequences.clear();
        self.starts.clear();
        self.starts.push(0);
        self.weights.clear();
        self.places.clear();
        self.placed = 0;
    }

    /// Adds the next document: its word pairs in text order and the weight of each.
    pub(crate) fn push(&mut self, shingles: &[u64], weights: Vec<f64>) {
        self.weights.push(Weights::new(weights));
        let (doc, mut next) = (self.weights.len() as u32, 0);
        for &shingle in shingles {
            let first = self.number(shingle, shingle, next);
            let (n_met, of_doc) = &mut self.met[first as usize];
            if *of_doc != doc {
                (*n_met, *of_doc) = (0, doc);
            }
            let n_before = *n_met;
            *n_met += 1;
            let number = match n_before {
                0 => first,
                _ => self.number(element(shingle, n_before.into()), shingle, next),
            };
            next = number + 1;
            self.sequences.push(number);
        }
        self.starts.push(self.sequences.len());
    }

    /// Returns the number of an element of a word pair, which usually is `guess`.
    fn number(&mut self, element: u64, shingle: u64, guess: u32) -> u32 {
        let number = self.numbers.number(element, guess);
        if number as usize == self.shingles.len() {
            self.shingles.push(shingle);
            self.met.push((0, 0));
            self.places.push((0, 0));
        }
        number
    }

    /// Returns the score of two documents.
    pub(crate) fn score(&mut self, [a, b]: [usize; 2]) -> Score {
        let b_doc = b as u32 + 1;
        if self.placed != b_doc {
            let numbers = &self.sequences[self.starts[b]..self.starts[b + 1]];
            for (&number, position) in numbers.iter().zip(0..) {
                self.places[number as usize] = (b_doc, position);
            }
            self.placed = b_doc;
        }
        let numbers = &self.sequences[self.starts[a]..self.starts[a + 1]];
        let (places, shingles) = (&self.places, &self.shingles);
        let matches = numbers.iter().zip(0..).filter_map(|(&number, position)| {
            let (doc, other) = places[number as usize];
            (doc == b_doc).then(|| (position, other, shingles[number as usize]))
        });
        let weights = [&self.weights[a], &self.weights[b]];
        self.scorer.score_matches(weights, matches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arose::content::{Content, weight};
    use arose::testing::content_score;
    use proptest::prelude::*;

    proptest! {
        /// Scores equal those of the definition, to the last bit, in any order of pairs.
        #[test]
        fn issue_24_scores_are_those_of_contents(
            docs in prop::collection::vec(prop::collection::vec(0_u64..25, 0..60), 2..6)
        ) {
            let mut sequences = Sequences::default();
            for _ in 0..2 {
                sequences.clear();
                let weights = |doc: &[u64]| doc.iter().map(|&word| weight(word % 7)).collect();
                for doc in &docs {
                    sequences.push(doc, weights(doc));
                }
                let content = |doc: &Vec<u64>| Content::of_weights(doc, &weights(doc));
                let contents: Vec<Content> = docs.iter().map(content).collect();
                for a in 0..docs.len() {
                    for b in 0..docs.len() {
                        let expected = content_score(&contents[a], &contents[b]);
                        prop_assert_eq!(sequences.score([a, b]), expected);
                    }
                }
            }
        }
    }
}
