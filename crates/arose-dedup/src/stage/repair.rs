//! Additional pairs of kept documents to compare, although no bucket made them candidates.
//!
//! *Question.* In a large bucket, two documents that follow one leader are not compared. If their
//! leader is dropped for a third document, they may be kept although they are duplicates, of each
//! other or of that document. Which pairs of kept documents must be verified?
//!
//! *Idea.* Both are similar to the dropped leader, so it connects them. Take each kept document
//! with a pair to a dropped document `d`. Compare it with the document kept in place of `d`, and
//! with the first [`N_FIRST`] kept documents that also have a pair to `d`. Do the same for a
//! document that was dropped for a worse document than `d` was. It would be kept next if that worse
//! document is dropped, and so on, one round for each. Clusters are then formed again from all
//! pairs, so nothing is dropped for a document to which it is not similar. Kept documents are final
//! after a few rounds ([`MAX_ROUNDS`]), or when a round verifies no pair.
//!
//! *Cost.* At most [`N_FIRST`] + 1 new pairs per existing pair and round; for most pairs, one.

use crate::Error;
use crate::record::{CandidateKey, Ordinal};
use crate::stage::rank::Rank;

/// Maximum number of repair rounds.
pub(crate) const MAX_ROUNDS: u32 = 8;
/// Number of kept documents with a pair to a dropped one with which all other such documents are
/// compared.
const N_FIRST: usize = 4;

/// The documents with a pair to a dropped one.
#[derive(Default)]
pub(crate) struct Around {
    centre: Option<Centre>,
    /// The first of them that are kept, without the centre.
    first: Vec<Ordinal>,
}

/// A document for which others were dropped.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Centre {
    pub(crate) doc: Ordinal,
    pub(crate) rank: Rank,
}

impl Around {
    /// Begins with the document for which the dropped one was dropped; none if it is in an index.
    pub(crate) fn begin(&mut self, centre: Option<Centre>) {
        self.centre = centre;
        self.first.clear();
    }

    /// Adds the next kept document, by ordinal. `push` gets the pairs to compare.
    pub(crate) fn add(
        &mut self,
        doc: Ordinal,
        mut push: impl FnMut(CandidateKey) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let centre = self.centre.map(|centre| centre.doc);
        if Some(doc) == centre {
            return Ok(());
        }
        for &other in self.first.iter().chain(&centre) {
            push(pair(doc, other))?;
        }
        if self.first.len() < N_FIRST {
            self.first.push(doc);
        }
        Ok(())
    }

    /// Adds a document that was dropped for another one.
    pub(crate) fn add_dropped(
        &self,
        doc: Ordinal,
        own: Centre,
        push: impl FnOnce(CandidateKey) -> Result<(), Error>,
    ) -> Result<(), Error> {
        match self.centre {
            Some(centre) if centre.rank < own.rank => push(pair(doc, centre.doc)),
            _ => Ok(()),
        }
    }
}

fn pair(one: Ordinal, other: Ordinal) -> CandidateKey {
    CandidateKey {
        a: one.min(other),
        b: one.max(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytemuck::Zeroable;

    fn centre(doc: Ordinal) -> Centre {
        let rank = Rank {
            doc: doc.into(),
            ..Rank::zeroed()
        };
        Centre { doc, rank }
    }

    /// A document that was dropped for a better one remains dropped for it.
    #[test]
    fn dropped_documents_are_compared_with_a_better_centre() {
        let mut around = Around::default();
        around.begin(Some(centre(5)));
        for (own, expected) in [(7, Some((5, 9))), (5, None), (2, None)] {
            let mut found = None;
            let push = |CandidateKey { a, b }| {
                found = Some((a, b));
                Ok(())
            };
            around.add_dropped(9, centre(own), push).unwrap();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn kept_documents_are_compared_with_the_centre_and_the_first_few() {
        let mut around = Around::default();
        around.begin(Some(centre(5)));
        let mut pairs = Vec::new();
        for doc in [2, 5, 7, 8, 9, 10, 11] {
            let push = |CandidateKey { a, b }| {
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
