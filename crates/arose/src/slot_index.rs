//! The online sketch index: finds documents that match in at least `m` of `t` MinHash values.
//!
//! *Question.* A page arrives, and the index contains sketches of all earlier pages. Which of them
//! match it in at least `m` MinHash values, and in how many exactly?
//!
//! *Idea.* The naive method compares all sketches. Instead, keep the entries `(i, v_i, document)`
//! sorted: the documents whose value `i` is `v_i` form a list. Equal values under different
//! permutations do not match, hence the `i`. A document matches in as many values as it has lists
//! of the query, so lists are *counted*, not intersected. Most need not be read at all: if `m` of
//! `t` values match, any `t - m + 1` slots contain a match. So the candidates are in the `t - m +
//! 1` shortest lists, and their exact counts come from the stored sketches. For `t = 200` and `m =
//! 160` that is 41 lists, and never the long ones of boilerplate.
//!
//! *Source.* Balke & Pinto 2017; the prefix rule is that of set-similarity joins (Chaudhuri, Ganti
//! & Kaushik 2006).
//!
//! *Parameters.* `t` MinHash values per sketch; `m` per query. The count that corresponds to a
//! similarity follows from [`crate::filter::Filter::full_sketch`]. `m = 1` filters nothing: pairs
//! with similarity 0.05 share a value with probability 0.99996.
//!
//! *Cost.* `t` entries per document, of 24 bytes plus the slack of a B-tree, and the sketch itself.
//! Insertion and removal take `t` searches. A query reads the `t - m + 1` shortest lists, reads
//! just enough of the others to know that they are longer, and reads one sketch per candidate.
//! *Error.* None: the result equals that of counting over all sketches ([`SlotIndex::scan`]).
//!
//! *Not for* small `m`, which reads nearly all lists: the scan itself is faster there. Nor for
//! corpora larger than memory, where 15 mega-shingles per document replace 200 MinHash values.

use std::collections::{BTreeMap, BTreeSet};

use crate::feature::agreement;
use crate::{DocId, Error};

/// An index of sketches of `t` MinHash values, in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotIndex {
    n_slots: usize,
    entries: BTreeSet<Entry>,
    sketches: BTreeMap<DocId, Box<[u64]>>,
}

/// Slot, value, document.
type Entry = (u32, u64, DocId);

/// A document found, and its number of matching values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Match {
    /// The document.
    pub doc: DocId,
    /// The number of MinHash values that match the query.
    pub n_agreeing: usize,
}

impl SlotIndex {
    /// Creates an empty index of sketches of `t` MinHash values.
    ///
    /// # Errors
    ///
    /// Returns an error if `t` is zero or above 65,535.
    ///
    /// ```
    /// use arose::{DocId, slot_index::SlotIndex};
    /// let mut index = SlotIndex::new(4)?;
    /// index.insert(DocId(7), &[192, 155, 187, 255])?;
    /// // The 155 stands in another slot and does not count.
    /// let found = index.query(&[143, 179, 187, 155], 1)?;
    /// assert_eq!((found[0].doc, found[0].n_agreeing), (DocId(7), 1));
    /// # Ok::<(), arose::Error>(())
    /// ```
    pub fn new(t: usize) -> Result<Self, Error> {
        if !(1..=u16::MAX as usize).contains(&t) {
            return Err(Error::parameter("t", t, "1..=65535"));
        }
        Ok(Self {
            n_slots: t,
            entries: BTreeSet::new(),
            sketches: BTreeMap::new(),
        })
    }

    /// Adds a document.
    ///
    /// # Errors
    ///
    /// Returns an error if the document is already in the index (use [`SlotIndex::replace`] to
    /// replace it), or the sketch does not have `t` MinHash values. The index is then unchanged.
    pub fn insert(&mut self, doc: DocId, sketch: &[u64]) -> Result<(), Error> {
        self.check_length(sketch)?;
        if self.sketches.contains_key(&doc) {
            return Err(Error::parameter(
                "doc",
                doc,
                "an id that is not in the index",
            ));
        }
        let entries = slots(sketch).map(|(i, value)| (i, value, doc));
        self.entries.extend(entries);
        self.sketches.insert(doc, sketch.into());
        Ok(())
    }

    /// Sets the sketch of a document, new or not, and returns the previous one.
    ///
    /// # Errors
    ///
    /// Returns an error if the sketch does not have `t` MinHash values. The index is then
    /// unchanged.
    pub fn replace(&mut self, doc: DocId, sketch: &[u64]) -> Result<Option<Box<[u64]>>, Error> {
        self.check_length(sketch)?;
        let former = self.remove(doc);
        self.insert(doc, sketch)?;
        Ok(former)
    }

    /// Removes a document and returns its sketch, if it was in the index.
    pub fn remove(&mut self, doc: DocId) -> Option<Box<[u64]>> {
        let sketch = self.sketches.remove(&doc)?;
        for (i, value) in slots(&sketch) {
            self.entries.remove(&(i, value, doc));
        }
        Some(sketch)
    }

    /// Returns all documents that match the sketch in at least `m` MinHash values, by ascending ID.
    ///
    /// # Errors
    ///
    /// Returns an error if `m` is not in `1..=t`, or the sketch does not have `t` MinHash values.
    pub fn query(&self, sketch: &[u64], m: usize) -> Result<Vec<Match>, Error> {
        self.check_query(sketch, m)?;
        let mut candidates = self.shortest_lists(sketch, n_probes(self.n_slots, m));
        candidates.sort_unstable();
        candidates.dedup();
        let stored = candidates
            .iter()
            .filter_map(|doc| self.sketches.get_key_value(doc));
        Ok(matching(stored, sketch, m))
    }

    /// Returns the result of [`SlotIndex::query`] by comparing with every sketch: the reference
    /// implementation.
    ///
    /// # Errors
    ///
    /// Returns an error under the conditions of [`SlotIndex::query`].
    pub fn scan(&self, sketch: &[u64], m: usize) -> Result<Vec<Match>, Error> {
        self.check_query(sketch, m)?;
        Ok(matching(self.sketches.iter(), sketch, m))
    }

    /// Returns the stored sketch of a document.
    #[must_use]
    pub fn sketch(&self, doc: DocId) -> Option<&[u64]> {
        self.sketches.get(&doc).map(AsRef::as_ref)
    }

    /// Returns the number of documents.
    #[must_use]
    pub fn n_docs(&self) -> usize {
        self.sketches.len()
    }

    /// Returns the number of entries: always `t` times the number of documents.
    #[must_use]
    pub fn n_entries(&self) -> usize {
        self.entries.len()
    }

    /// Returns the documents of the `n` shortest lists of a sketch, `n` being at most `t`.
    fn shortest_lists(&self, sketch: &[u64], n: usize) -> Vec<DocId> {
        // Lists have no stored length. Count each up to a limit, and raise the limit until `n` of
        // them stay below it: the long ones are never counted to their end.
        let mut limit = 16_usize;
        loop {
            let mut short: Vec<(usize, (u32, u64))> = slots(sketch)
                .map(|slot| (self.list(slot).take(limit + 1).count(), slot))
                .filter(|&(length, _)| length <= limit)
                .collect();
            if short.len() >= n {
                short.sort_unstable();
                short.truncate(n);
                return short
                    .into_iter()
                    .flat_map(|(_, slot)| self.list(slot))
                    .collect();
            }
            limit = limit.saturating_mul(4).min(usize::MAX - 1);
        }
    }

    /// Returns the documents with a value in a slot, ascending.
    fn list(&self, (i, value): (u32, u64)) -> impl Iterator<Item = DocId> {
        let all_docs = (i, value, DocId(0))..=(i, value, DocId(u64::MAX));
        self.entries.range(all_docs).map(|entry| entry.2)
    }

    fn check_length(&self, sketch: &[u64]) -> Result<(), Error> {
        if sketch.len() == self.n_slots {
            Ok(())
        } else {
            Err(Error::parameter(
                "samples",
                sketch.len(),
                "as many as the index has slots",
            ))
        }
    }

    fn check_query(&self, sketch: &[u64], m: usize) -> Result<(), Error> {
        if (1..=self.n_slots).contains(&m) {
            self.check_length(sketch)
        } else {
            Err(Error::parameter("m", m, "1 up to the number of slots"))
        }
    }
}

/// Returns the number of `t` slots that are certain to contain one of `m` matches: the prefix rule.
///
/// ```
/// use arose::slot_index::n_probes;
/// assert_eq!(n_probes(200, 160), 41);
/// assert_eq!(n_probes(6, 2), 5);
/// ```
#[must_use]
pub const fn n_probes(t: usize, m: usize) -> usize {
    t.saturating_sub(m.saturating_sub(1))
}

/// Returns the slots of a sketch: numbers and values.
fn slots(sketch: &[u64]) -> impl Iterator<Item = (u32, u64)> {
    (0..).zip(sketch.iter().copied())
}

fn matching<'a>(
    stored: impl Iterator<Item = (&'a DocId, &'a Box<[u64]>)>,
    sketch: &[u64],
    m: usize,
) -> Vec<Match> {
    stored
        .map(|(&doc, other)| Match {
            doc,
            n_agreeing: agreement(sketch, other),
        })
        .filter(|found| found.n_agreeing >= m)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mix::SplitMix;
    use proptest::prelude::*;

    /// A sketch of 200 MinHash values at a random distance from one of the given sketches, or
    /// unrelated to all.
    fn relative_of(known: &[Vec<u64>], random: &mut SplitMix) -> Vec<u64> {
        let share = random.next_f64().sqrt();
        let fresh = |random: &mut SplitMix| random.below(1000);
        match known.get(random.below(known.len() as u64 + 1) as usize) {
            None => (0..200).map(|_| fresh(random)).collect(),
            Some(sketch) => sketch
                .iter()
                .map(|&v| {
                    if random.next_f64() < share {
                        v
                    } else {
                        fresh(random)
                    }
                })
                .collect(),
        }
    }

    /// 2,000 sketches of 200 MinHash values: unrelated ones, relatives at all distances, and exact
    /// copies.
    #[test]
    fn queries_equal_counting_over_all_sketches() {
        let mut random = SplitMix::new(160);
        let mut index = SlotIndex::new(200).unwrap();
        let mut known: Vec<Vec<u64>> = Vec::new();
        for id in 0..2000 {
            let sketch = match id % 40 {
                39 => known[random.below(id) as usize].clone(),
                _ => relative_of(&known, &mut random),
            };
            index.insert(DocId(id), &sketch).unwrap();
            known.push(sketch);
        }
        assert_eq!(index.n_entries(), 200 * 2000);
        check_queries(&index, &known, &mut random);
        for id in (0..2000).step_by(3) {
            index.remove(DocId(id));
        }
        assert_eq!(index.n_entries(), 200 * 1333);
        check_queries(&index, &known, &mut random);
    }

    fn check_queries(index: &SlotIndex, known: &[Vec<u64>], random: &mut SplitMix) {
        for m in [1, 40, 160, 200] {
            let mut n_found = 0;
            for _ in 0..50 {
                let query = &known[random.below(2000) as usize];
                let found = index.query(query, m).unwrap();
                assert_eq!(found, index.scan(query, m).unwrap());
                n_found += found.len();
            }
            assert!(n_found > 25, "m = {m}: only {n_found} documents to find");
        }
    }

    /// Lists of 100 documents in slots 0 and 1, of 1 and 2 in the others.
    #[test]
    fn the_shortest_lists_are_read() {
        let mut index = SlotIndex::new(4).unwrap();
        for id in 0..100 {
            index.insert(DocId(id), &[7, 8, id, id / 2]).unwrap();
        }
        let lists = |n| index.shortest_lists(&[7, 8, 50, 30], n);
        assert_eq!(lists(1), [DocId(50)]);
        assert_eq!(lists(2), [50, 60, 61].map(DocId));
        assert_eq!(lists(3).len(), 103);
        assert_eq!(lists(4).len(), 203);
        // A value that no document has is the shortest list.
        assert_eq!(index.shortest_lists(&[7, 8, 50, 99], 1), []);
    }

    /// A slot of one permutation contains the value of another: no match.
    #[test]
    fn values_of_different_slots_never_match() {
        let mut index = SlotIndex::new(3).unwrap();
        index.insert(DocId(1), &[1, 2, 3]).unwrap();
        assert_eq!(index.query(&[2, 3, 1], 1).unwrap(), []);
        assert_eq!(index.query(&[9, 2, 1], 1).unwrap().len(), 1);
        assert_eq!(index.query(&[9, 2, 1], 2).unwrap(), []);
    }

    #[test]
    fn refusals_leave_the_index_unchanged() {
        let mut index = SlotIndex::new(2).unwrap();
        index.insert(DocId(1), &[5, 6]).unwrap();
        let before = index.clone();
        assert!(index.insert(DocId(1), &[7, 8]).is_err());
        assert!(index.insert(DocId(2), &[7]).is_err());
        assert!(index.replace(DocId(1), &[7, 8, 9]).is_err());
        assert_eq!(index.remove(DocId(2)), None);
        assert_eq!(index, before);
        assert!(index.query(&[5, 6], 0).is_err());
        assert!(index.query(&[5, 6], 3).is_err());
        assert!(index.query(&[5], 1).is_err());
        assert!(index.scan(&[5, 6], 3).is_err());
        assert!(SlotIndex::new(0).is_err());
        assert!(SlotIndex::new(65_536).is_err());
    }

    #[test]
    fn probes() {
        assert_eq!(n_probes(200, 1), 200);
        assert_eq!(n_probes(200, 200), 1);
        assert_eq!(n_probes(200, 201), 0);
        assert_eq!(n_probes(200, 0), 200);
    }

    const T: usize = 5;

    #[derive(Debug, Clone)]
    enum Step {
        Insert(DocId, Vec<u64>),
        Replace(DocId, Vec<u64>),
        Remove(DocId),
        Query(Vec<u64>, usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        let doc = || (0..8_u64).prop_map(DocId);
        let sketch = || prop::collection::vec(0..3_u64, T);
        prop_oneof![
            (doc(), sketch()).prop_map(|(doc, sketch)| Step::Insert(doc, sketch)),
            (doc(), sketch()).prop_map(|(doc, sketch)| Step::Replace(doc, sketch)),
            doc().prop_map(Step::Remove),
            (sketch(), 1..=T).prop_map(|(sketch, m)| Step::Query(sketch, m)),
        ]
    }

    /// The model: a map of sketches, compared one by one.
    type Model = BTreeMap<DocId, Vec<u64>>;

    fn apply(step: Step, index: &mut SlotIndex, model: &mut Model) {
        match step {
            Step::Insert(doc, sketch) => {
                assert_eq!(
                    index.insert(doc, &sketch).is_err(),
                    model.contains_key(&doc)
                );
                model.entry(doc).or_insert(sketch);
            }
            Step::Replace(doc, sketch) => {
                let former = index.replace(doc, &sketch).unwrap();
                assert_eq!(former.as_deref(), model.insert(doc, sketch).as_deref());
            }
            Step::Remove(doc) => {
                assert_eq!(index.remove(doc).as_deref(), model.remove(&doc).as_deref());
            }
            Step::Query(sketch, m) => {
                let expected: Vec<Match> = model
                    .iter()
                    .map(|(&doc, other)| Match {
                        doc,
                        n_agreeing: agreement(&sketch, other),
                    })
                    .filter(|found| found.n_agreeing >= m)
                    .collect();
                assert_eq!(index.query(&sketch, m).unwrap(), expected);
                assert_eq!(index.scan(&sketch, m).unwrap(), expected);
            }
        }
    }

    proptest! {
        #[test]
        fn any_history_behaves_like_a_plain_map(steps in prop::collection::vec(step(), 0..60)) {
            let mut index = SlotIndex::new(T).unwrap();
            let mut model = Model::new();
            for step in steps {
                apply(step, &mut index, &mut model);
                prop_assert_eq!(index.n_docs(), model.len());
                prop_assert_eq!(index.n_entries(), T * index.n_docs());
            }
            for (&doc, sketch) in &model {
                prop_assert_eq!(index.sketch(doc), Some(&sketch[..]));
            }
        }
    }
}
