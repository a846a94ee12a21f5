//! The sites with the most dropped documents, found in bounded memory.
//!
//! *Question.* Ten million documents may come from as many sites. Which twenty sites have the most
//! dropped documents, without a count for every site?
//!
//! *Idea.* Two passes. The first finds the candidates with a table of `k` counters. A site without
//! a free counter subtracts one from all of them (Misra & Gries 1982). The second pass counts the
//! remaining sites exactly. *Error.* None for sites with more than `1 / (k + 1)` of all dropped
//! documents, or if there are at most `k` sites. *Cost.* `k` names; amortised `O(1)` per document.

use std::collections::HashMap;

/// Number of counters of the first pass.
const MAX_CANDIDATES: usize = 1 << 14;

/// Sites that may have many dropped documents.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    counters: HashMap<String, u64>,
}

impl Candidates {
    /// Counts a dropped document of this site.
    pub(super) fn add(&mut self, site: String) {
        self.add_within(site, MAX_CANDIDATES);
    }

    fn add_within(&mut self, site: String, n_counters: usize) {
        if let Some(counter) = self.counters.get_mut(&site) {
            *counter += 1;
        } else if self.counters.len() < n_counters {
            self.counters.insert(site, 1);
        } else {
            self.counters.retain(|_, counter| {
                *counter -= 1;
                *counter > 0
            });
        }
    }

    /// Begins the second pass.
    pub(super) fn into_tallies(self) -> Tallies {
        let names = self.counters.into_keys();
        Tallies(names.map(|name| (name, Tally::default())).collect())
    }
}

/// The number of documents of a site, and of those dropped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) documents: u64,
    pub(super) dropped: u64,
}

/// Exact counts of the candidates.
#[derive(Debug, Default)]
pub(super) struct Tallies(HashMap<String, Tally>);

impl Tallies {
    /// Counts a document.
    pub(super) fn add(&mut self, site: &str, dropped: u64) {
        if let Some(tally) = self.0.get_mut(site) {
            tally.documents += 1;
            tally.dropped += dropped;
        }
    }

    /// Returns whether there is anything to count.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the `n` sites with the most dropped documents, in descending order.
    pub(super) fn largest(self, n: usize) -> Vec<(String, Tally)> {
        let mut tallies: Vec<(String, Tally)> = self.0.into_iter().collect();
        tallies.sort_unstable_by(|(name, tally), (other_name, other)| {
            let by_count = other.dropped.cmp(&tally.dropped);
            by_count.then_with(|| name.cmp(other_name))
        });
        tallies.truncate(n);
        tallies
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A site with more than one part in `k + 1` is found, in any order.
        #[test]
        fn heavy_sites_survive(names in prop::collection::vec(0_u8..20, 1..200), k in 1_usize..10) {
            let mut candidates = Candidates::default();
            for name in &names {
                candidates.add_within(name.to_string(), k);
            }
            let tallies = candidates.into_tallies();
            for name in 0_u8..20 {
                let n = names.iter().filter(|&&other| other == name).count();
                if n * (k + 1) > names.len() {
                    prop_assert!(tallies.0.contains_key(&name.to_string()));
                }
            }
        }
    }

    #[test]
    fn largest_first_then_by_name() {
        let mut candidates = Candidates::default();
        for name in ["b", "a", "c", "c"] {
            candidates.add(name.to_owned());
        }
        let mut tallies = candidates.into_tallies();
        for (name, dropped) in [("a", 1), ("a", 0), ("b", 1), ("c", 1), ("c", 1), ("d", 1)] {
            tallies.add(name, dropped);
        }
        let tally = |documents, dropped| Tally { documents, dropped };
        let expected = [("c", tally(2, 2)), ("a", tally(2, 1))];
        assert_eq!(
            tallies.largest(2),
            expected.map(|(name, tally)| (name.to_owned(), tally))
        );
    }
}
