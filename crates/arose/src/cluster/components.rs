//! Connected components, by a union-find that any number of threads can share.
//!
//! Every document points to a parent, initially to itself. A document that points to itself is a
//! root, and two documents belong together if they lead to the same root. To unite two sets, the
//! larger root is pointed to the smaller. So a parent is never larger than its children, the root
//! is the smallest member, and the result depends only on the pairs, not on their order or on the
//! threads that process them.
//!
//! No lock is needed (Anderson & Woll 1991). A compare-and-exchange changes the parent only if it
//! is still a root, and parents only ever become smaller, so stale reads can cost a step but never
//! give a wrong result. Relaxed ordering suffices, since the parent is the only data.
//!
//! Paths are halved on the way up. Together with linking by index, which IDs in random order turn
//! into linking by random rank (Jayanti & Tarjan 2016), a step takes O(log n) at worst and is
//! nearly constant in practice. No rank is stored: four bytes per document, 6.4 GB for the 1.6
//! billion pages of Henzinger 2006. Parents are `u32`, since twice the memory would only allow more
//! than four billion IDs, which is more than one machine can handle. A larger number of documents
//! is an error when the structure is created.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::{DocId, Error};

/// The connected components of documents `0..n` under the pairs seen so far.
///
/// ```
/// use arose::{DocId, cluster::Components};
/// let components = Components::new(4)?;
/// components.union(DocId(3), DocId(1))?;
/// assert_eq!(components.find(DocId(3))?, DocId(1));
/// assert_eq!(components.labels().map(|label| label.0).collect::<Vec<_>>(), [0, 1, 2, 1]);
/// # Ok::<(), arose::Error>(())
/// ```
#[derive(Debug)]
pub struct Components {
    /// Never larger than the index; equal to it at a root.
    parents: Box<[AtomicU32]>,
}

impl Components {
    /// Starts with `n_docs` documents, each alone.
    ///
    /// # Errors
    ///
    /// Returns an error if `n_docs` exceeds the four billion that four-byte parents can
    /// distinguish.
    pub fn new(n_docs: usize) -> Result<Self, Error> {
        let Ok(end) = u32::try_from(n_docs) else {
            let expected = "at most 4294967295 documents";
            return Err(Error::parameter("n_docs", n_docs, expected));
        };
        let parents = (0..end).map(AtomicU32::new).collect();
        Ok(Self { parents })
    }

    /// Unites the components of `a` and `b`; returns whether they were separate.
    ///
    /// Over all threads, exactly one call reports each merger.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such document.
    pub fn union(&self, a: DocId, b: DocId) -> Result<bool, Error> {
        let (mut a, mut b) = (self.index(a)?, self.index(b)?);
        loop {
            (a, b) = (self.root(a), self.root(b));
            if a == b {
                return Ok(false);
            }
            let (small, large) = (a.min(b), a.max(b));
            let parent = &self.parents[large as usize];
            if parent
                .compare_exchange(large, small, Relaxed, Relaxed)
                .is_ok()
            {
                return Ok(true);
            }
        }
    }

    /// Returns the smallest member of the component of `doc`.
    ///
    /// While other threads unite components, the result may become outdated immediately, but the
    /// new ID is never larger.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such document.
    pub fn find(&self, doc: DocId) -> Result<DocId, Error> {
        let root = self.root(self.index(doc)?);
        Ok(DocId(u64::from(root)))
    }

    /// Returns the smallest member of each document's component, for documents `0..n` in order.
    pub fn labels(&self) -> impl Iterator<Item = DocId> {
        // The length was checked to fit when the parents were made.
        let docs = 0..self.parents.len() as u32;
        docs.map(|doc| DocId(u64::from(self.root(doc))))
    }

    /// Returns the number of components.
    #[must_use]
    pub fn count(&self) -> usize {
        let parents = (0_u32..).zip(&self.parents);
        let roots = parents.filter(|(doc, parent)| parent.load(Relaxed) == *doc);
        roots.count()
    }

    fn index(&self, doc: DocId) -> Result<u32, Error> {
        let index = u32::try_from(doc.0).ok();
        index
            .filter(|&index| (index as usize) < self.parents.len())
            .ok_or_else(|| Error::parameter("document", doc, "an id below the number of documents"))
    }

    /// Walks to the root and points every other document on the way to its grandparent.
    fn root(&self, mut doc: u32) -> u32 {
        loop {
            let parent = self.parents[doc as usize].load(Relaxed);
            let grandparent = self.parents[parent as usize].load(Relaxed);
            if parent == grandparent {
                return parent;
            }
            // If another thread was faster, its parent is also correct.
            let halved = &self.parents[doc as usize];
            _ = halved.compare_exchange_weak(parent, grandparent, Relaxed, Relaxed);
            doc = grandparent;
        }
    }
}
