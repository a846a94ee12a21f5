//! Pairs of kept documents that should be compared although no bucket made them candidates.
//!
//! *Question.* In a large bucket two documents that follow one leader are not compared. If their
//! leader is dropped for a third document, they may be kept although they are duplicates, of each
//! other or of that document. Which pairs of kept documents must be verified?
//!
//! *Idea.* Both are similar to the dropped leader, so it brings them together: each kept document
//! with a pair to a dropped one is compared with the document that was kept for it, and with the
//! first [`N_FIRST`] kept documents that also have a pair to it. Clusters are then made again from
//! all pairs, so nothing is dropped for a document that it is not similar to. After a few rounds
//! ([`MAX_ROUNDS`]), or when a round verifies no pair, kept documents stay.
//!
//! *Cost.* At most [`N_FIRST`] + 1 pairs for each pair there is, in each round.

use crate::Error;
use crate::record::{Ordinal, PairKey};

/// Rounds of repair. One more is needed for each kept document of a chain of leaders that a round
/// drops, since its followers are free again.
pub(crate) const MAX_ROUNDS: u32 = 8;
/// Kept documents with a pair to a dropped one that all other such documents are compared with.
const N_FIRST: usize = 4;

/// The documents with a pair to a dropped one, as far as they are kept.
#[derive(Default)]
pub(crate) struct Around {
    centre: Option<Ordinal>,
    /// The first of them, without the centre.
    first: Vec<Ordinal>,
}

impl Around {
    /// Begins with the document that the dropped one was dropped for; none if an index has it.
    pub(crate) fn begin(&mut self, centre: Option<Ordinal>) {
        self.centre = centre;
        self.first.clear();
    }

    /// Takes the next kept document, by ordinal; `push` gets the pairs to compare.
    pub(crate) fn add(
        &mut self,
        doc: Ordinal,
        mut push: impl FnMut(PairKey) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if Some(doc) == self.centre {
            return Ok(());
        }
        for &other in self.first.iter().chain(&self.centre) {
            push(PairKey {
                a: doc.min(other),
                b: doc.max(other),
            })?;
        }
        if self.first.len() < N_FIRST {
            self.first.push(doc);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_documents_are_compared_with_the_centre_and_the_first_few() {
        let mut around = Around::default();
        around.begin(Some(5));
        let mut pairs = Vec::new();
        for doc in [2, 5, 7, 8, 9, 10, 11] {
            let push = |PairKey { a, b }| {
                pairs.push((a, b));
                Ok(())
            };
            around.add(doc, push).unwrap();
        }
        assert_eq!(pairs[..4], [(2, 5), (2, 7), (5, 7), (2, 8)]);
        assert_eq!(
            pairs[pairs.len() - 5..],
            [(2, 11), (7, 11), (8, 11), (9, 11), (5, 11)]
        );
        assert_eq!(pairs.len(), 1 + 2 + 3 + 4 + 5 + 5);
    }
}
