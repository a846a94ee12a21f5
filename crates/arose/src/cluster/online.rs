//! Star clusters of a stream: documents are added and removed one at a time.
//!
//! A new document joins the most similar representative, or starts a cluster. When a representative
//! is removed, the member with the highest priority takes its place. The other members are compared
//! with it, and those no longer similar enough are placed as if they were new. At all times every
//! document is in exactly one cluster and reaches the threshold with its representative.
//!
//! Unlike [`stars`](super::stars()), the result depends on the order of arrival: a better document
//! that arrives later does not replace a representative. The same stream gives the same clusters.
//!
//! This module only does the bookkeeping. The caller stores the sketches, and finds and scores
//! similar documents; the search need not know the representatives.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::{Cluster, Priority, Scored};
use crate::{DocId, Error, Threshold};

/// Star clusters that change with every document.
///
/// ```
/// use arose::cluster::{OnlineClusters, Placement, Priority, Scored};
/// use arose::{DocId, Threshold};
/// let mut clusters = OnlineClusters::new(Threshold::new(0.8)?);
/// clusters.insert(Priority::of(DocId(1)), &[])?;
/// let similar = [Scored { doc: DocId(1), similarity: 0.9 }];
/// let placement = clusters.insert(Priority::of(DocId(2)), &similar)?;
/// assert_eq!(placement, Placement::Joined(similar[0]));
/// # Ok::<(), arose::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct OnlineClusters {
    tau: Threshold,
    /// Every document, with its representative.
    docs: BTreeMap<DocId, (Priority, DocId)>,
    /// Every representative, with its members and their similarities to it.
    stars: BTreeMap<DocId, BTreeMap<DocId, f64>>,
}

/// The cluster that a document was added to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Placement {
    /// To this representative, at this similarity.
    Joined(Scored),
    /// A new cluster.
    Founded,
}

/// The effect of removing a document.
#[derive(Debug, Clone, PartialEq)]
pub struct RemovalEffect {
    /// The member that took over, if a representative with members was removed.
    pub promoted: Option<DocId>,
    /// The members no longer similar enough to it, in the order in which they were placed again.
    pub replaced: Vec<(DocId, Placement)>,
}

impl OnlineClusters {
    /// Starts without documents.
    #[must_use]
    pub fn new(tau: Threshold) -> Self {
        Self {
            tau,
            docs: BTreeMap::new(),
            stars: BTreeMap::new(),
        }
    }

    /// Places a new document, given the documents found similar to it.
    ///
    /// Of these, the representative with the greatest similarity counts (ties: the smaller ID).
    /// Members, unknown documents and similarities below the threshold are skipped.
    ///
    /// # Errors
    ///
    /// Returns an error if the document is already in a cluster; remove it first to replace it.
    pub fn insert(&mut self, new: Priority, similar: &[Scored]) -> Result<Placement, Error> {
        if self.docs.contains_key(&new.id) {
            let expected = "a document that is not yet in a cluster";
            return Err(Error::parameter("document", new.id, expected));
        }
        Ok(self.place(new, similar))
    }

    /// Removes a document and repairs its cluster.
    ///
    /// `similarity` compares a member with the document that took over. `search` returns the
    /// documents similar to one that must be placed again, as for [`insert`](Self::insert). It is
    /// called in order of descending priority.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such document.
    pub fn remove(
        &mut self,
        doc: DocId,
        similarity: impl FnMut(DocId, DocId) -> f64,
        mut search: impl FnMut(DocId) -> Vec<Scored>,
    ) -> Result<RemovalEffect, Error> {
        let Some((_, representative)) = self.docs.remove(&doc) else {
            return Err(Error::parameter("document", doc, "a document in a cluster"));
        };
        if let Some(members) = self.stars.get_mut(&representative) {
            members.remove(&doc);
        }
        let orphans = self.disband(doc);
        let promoted = orphans.first().map(|heir| heir.id);
        let strangers = self.succeed(&orphans, similarity);
        let mut place = |orphan: Priority| (orphan.id, self.place(orphan, &search(orphan.id)));
        Ok(RemovalEffect {
            promoted,
            replaced: strangers.into_iter().map(&mut place).collect(),
        })
    }

    /// Returns the representative of a document, possibly the document itself; `None` if the
    /// document is unknown.
    #[must_use]
    pub fn representative(&self, doc: DocId) -> Option<DocId> {
        self.docs
            .get(&doc)
            .map(|&(_, representative)| representative)
    }

    /// Returns all clusters, by ascending ID of the representative.
    pub fn clusters(&self) -> impl Iterator<Item = Cluster> {
        self.stars.iter().map(|(&representative, members)| Cluster {
            representative,
            members: members
                .iter()
                .map(|(&doc, &similarity)| Scored { doc, similarity })
                .collect(),
        })
    }

    fn place(&mut self, new: Priority, similar: &[Scored]) -> Placement {
        match self.best(similar) {
            Some(best) => {
                self.join(new, best);
                Placement::Joined(best)
            }
            None => {
                self.found(new);
                Placement::Founded
            }
        }
    }

    fn best(&self, similar: &[Scored]) -> Option<Scored> {
        let counts = |scored: &&Scored| {
            self.tau.reached_by(scored.similarity) && self.stars.contains_key(&scored.doc)
        };
        let best = similar.iter().filter(counts).max_by(|left, right| {
            let by_similarity = left.similarity.total_cmp(&right.similarity);
            by_similarity.then_with(|| right.doc.cmp(&left.doc))
        });
        best.copied()
    }

    fn join(&mut self, member: Priority, representative: Scored) {
        self.docs.insert(member.id, (member, representative.doc));
        let members = self.stars.entry(representative.doc).or_default();
        members.insert(member.id, representative.similarity);
    }

    fn found(&mut self, representative: Priority) {
        let id = representative.id;
        self.docs.insert(id, (representative, id));
        self.stars.insert(id, BTreeMap::new());
    }

    /// Dissolves the cluster that `doc` represented, if any; returns its members, highest priority
    /// first.
    fn disband(&mut self, doc: DocId) -> Vec<Priority> {
        let members = self.stars.remove(&doc).unwrap_or_default();
        let priority_of = |id| self.docs.remove(&id).map(|(priority, _)| priority);
        let mut orphans: Vec<Priority> = members.into_keys().filter_map(priority_of).collect();
        orphans.sort_unstable_by_key(|&orphan| Reverse(orphan));
        orphans
    }

    /// Makes the first orphan the representative of those similar to it; returns the others.
    fn succeed(
        &mut self,
        orphans: &[Priority],
        mut similarity: impl FnMut(DocId, DocId) -> f64,
    ) -> Vec<Priority> {
        let Some((&heir, others)) = orphans.split_first() else {
            return Vec::new();
        };
        self.found(heir);
        let mut strangers = Vec::new();
        for &orphan in others {
            let similarity = similarity(orphan.id, heir.id);
            if self.tau.reached_by(similarity) {
                let doc = heir.id;
                self.join(orphan, Scored { doc, similarity });
            } else {
                strangers.push(orphan);
            }
        }
        strangers
    }
}
