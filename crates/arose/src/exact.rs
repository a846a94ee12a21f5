//! Brute force: exact results, against which everything else is tested.
//!
//! *Question.* Which pairs are similar, without any probability involved?
//!
//! *Idea.* Compare all pairs. This is slow and exact, so it is the oracle of every test here. Use
//! it on a sample of your own data to see what an approximate method misses.
//!
//! *Cost.* `n (n - 1) / 2` comparisons, each linear in the two sets: about 4 seconds for 1,000
//! documents of 1,000 words. *Error.* None.
//!
//! *Not for* more than a few thousand documents.

use crate::cluster::{Pair, Scored};
use crate::shingle::{ShingleSet, jaccard};
use crate::{DocId, Threshold};

/// Returns all pairs of sets whose similarity reaches the threshold, by ascending IDs; IDs are
/// positions.
///
/// Empty sets are similar to nothing, not even to each other.
///
/// ```
/// use arose::exact::similar_pairs;
/// use arose::shingle::ShingleSet;
/// let sets = [vec![1, 2, 3, 4], vec![2, 3, 4], vec![7]].map(ShingleSet::from_occurrences);
/// let pairs = similar_pairs(&sets, arose::Threshold::new(0.5)?);
/// assert_eq!(pairs.len(), 1);
/// assert_eq!((pairs[0].a.0, pairs[0].b.0, pairs[0].similarity), (0, 1, 0.75));
/// # Ok::<(), arose::Error>(())
/// ```
#[must_use]
pub fn similar_pairs(sets: &[ShingleSet], threshold: Threshold) -> Vec<Pair> {
    pairs_where(sets.len(), |i, j| {
        jaccard(&sets[i], &sets[j]).filter(|&similarity| threshold.reached_by(similarity))
    })
}

/// Returns all sets whose similarity to `query` reaches the threshold, by ascending ID.
#[must_use]
pub fn similar_to(query: &ShingleSet, sets: &[ShingleSet], threshold: Threshold) -> Vec<Scored> {
    let scored = |(position, set)| {
        let similarity = jaccard(query, set).filter(|&s| threshold.reached_by(s))?;
        let doc = DocId(position as u64);
        Some(Scored { doc, similarity })
    };
    sets.iter().enumerate().filter_map(scored).collect()
}

/// Returns all pairs `i < j < n` for which `similarity` returns a value, by ascending IDs. This is
/// brute force for any score, such as matching super-shingles or bits.
pub fn pairs_where(n: usize, similarity: impl Fn(usize, usize) -> Option<f64>) -> Vec<Pair> {
    let all = (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j)));
    let pair = |(i, j)| {
        similarity(i, j).map(|similarity| {
            let (a, b) = (DocId(i as u64), DocId(j as u64));
            Pair { a, b, similarity }
        })
    };
    all.filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `A_i = {i, ..., i + 9}`: neighbours share nine of eleven.
    fn chain() -> Vec<ShingleSet> {
        (0..11)
            .map(|i| ShingleSet::from_occurrences((i..i + 10).collect()))
            .collect()
    }

    #[test]
    fn chain_of_sets() {
        let pairs = similar_pairs(&chain(), Threshold::new(0.8).unwrap());
        let neighbours: Vec<(u64, u64)> = (0..10).map(|i| (i, i + 1)).collect();
        assert_eq!(
            pairs.iter().map(|p| (p.a.0, p.b.0)).collect::<Vec<_>>(),
            neighbours
        );
        assert!(pairs.iter().all(|pair| pair.similarity == 9.0 / 11.0));
    }

    #[test]
    fn one_against_all_is_a_row_of_all_pairs() {
        let sets = chain();
        let threshold = Threshold::new(0.05).unwrap();
        let row = similar_to(&sets[0], &sets[1..], threshold);
        let all = similar_pairs(&sets, threshold);
        let of_first: Vec<(u64, f64)> = all
            .iter()
            .filter(|p| p.a.0 == 0)
            .map(|p| (p.b.0 - 1, p.similarity))
            .collect();
        assert_eq!(
            row.iter()
                .map(|s| (s.doc.0, s.similarity))
                .collect::<Vec<_>>(),
            of_first
        );
        assert_eq!(of_first.last(), Some(&(8, 1.0 / 19.0)));
    }

    #[test]
    fn empty_sets_resemble_nothing() {
        let sets = vec![ShingleSet::default(); 3];
        assert_eq!(similar_pairs(&sets, Threshold::new(0.0).unwrap()), []);
    }
}
