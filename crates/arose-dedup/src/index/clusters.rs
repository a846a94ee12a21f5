//! Clusters of a stream, kept up to date as documents are inserted and removed.
//!
//! A new document joins the most similar representative among those with which it matches the rule
//! of the index. If there is none, it starts a cluster. When a representative is removed, the
//! member of greatest priority replaces it, and the other members are compared with that one.
//! [`OnlineClusters`] stores the clusters; the index finds and compares documents. So at all times
//! each document is in exactly one cluster and matches the rule with its representative, and the
//! same stream gives the same clusters.
//!
//! Clusters are in memory and take about 100 bytes per document. To restore them after a restart,
//! replay the stream into a new index.

use std::collections::BTreeMap;

use arose::cluster::{OnlineClusters, Placement, Priority, RemovalEffect, Scored};
use arose::{DocId, Threshold};

use super::{Error, Index, Sketch};

/// An index that also assigns every document to a cluster.
///
/// ```
/// use arose_dedup::index::{Clusters, Index, Settings, Sketcher};
/// let folder = tempfile::tempdir().unwrap();
/// let mut clusters = Clusters::new(Index::create(folder.path(), Settings::default())?)?;
/// let sketcher = Sketcher::new(clusters.index().settings());
/// let rose = sketcher.sketch("a rose is a rose is a rose", None);
/// clusters.insert("first", &rose, 0.0)?;
/// clusters.insert("second", &rose, 0.0)?;
/// assert_eq!(clusters.representative("second"), Some("first"));
/// # Ok::<(), arose_dedup::index::Error>(())
/// ```
#[derive(Debug)]
pub struct Clusters {
    index: Index,
    clusters: OnlineClusters,
    /// Numbers in the order of insertion, which compaction does not change.
    ids: BTreeMap<String, DocId>,
    names: BTreeMap<DocId, String>,
    next_id: u64,
}

impl Clusters {
    /// Starts with an index without documents.
    ///
    /// # Errors
    ///
    /// If the index contains documents, whose clusters are unknown.
    pub fn new(index: Index) -> Result<Self, Error> {
        match index.status()?.n_docs {
            0 => Ok(Self {
                index,
                // Every document that matches the rule is similar enough; the similarity is only
                // for ranking.
                clusters: OnlineClusters::new(Threshold::new(0.0).expect("0 is a similarity")),
                ids: BTreeMap::new(),
                names: BTreeMap::new(),
                next_id: 0,
            }),
            n => Err(Error::parameter(
                "documents",
                n,
                "an index without documents",
            )),
        }
    }

    /// Returns the index.
    #[must_use]
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Adds a document and assigns it to a cluster; `weight` is its PageRank or any other weight.
    ///
    /// # Errors
    ///
    /// As [`Index::insert`].
    pub fn insert(&mut self, name: &str, sketch: &Sketch, weight: f64) -> Result<Placement, Error> {
        let similar = self.similar(sketch)?;
        self.index.insert(name, sketch)?;
        let id = DocId(self.next_id);
        self.next_id += 1;
        self.ids.insert(name.to_owned(), id);
        self.names.insert(id, name.to_owned());
        let first_seen = id.0;
        let priority = Priority {
            weight,
            first_seen,
            ..Priority::of(id)
        };
        let placement = self.clusters.insert(priority, &similar);
        Ok(placement.expect("numbers are given once"))
    }

    /// Removes a document and repairs its cluster. Returns none if there is no such document.
    ///
    /// # Errors
    ///
    /// As [`Index::remove`].
    pub fn remove(&mut self, name: &str) -> Result<Option<RemovalEffect>, Error> {
        let Some(&id) = self.ids.get(name) else {
            return Ok(None);
        };
        let sketches = self.sketches_of_cluster(id)?;
        self.index.remove(name)?;
        self.ids.remove(name);
        self.names.remove(&id);
        let mut failure = None;
        let similarity = |a: DocId, b: DocId| {
            let compared = self.index.compare(&sketches[&a], &sketches[&b]);
            match compared {
                Ok((Some(_), similarity)) => similarity,
                // NaN reaches no threshold.
                _ => f64::NAN,
            }
        };
        let search = |id: DocId| match similar(&self.index, &self.ids, &sketches[&id]) {
            Ok(similar) => similar,
            Err(error) => {
                failure = Some(error);
                Vec::new()
            }
        };
        let removal = self.clusters.remove(id, similarity, search);
        match failure {
            Some(error) => Err(error),
            None => Ok(removal.ok()),
        }
    }

    /// Returns the name of a document's representative, which may be the document itself; none if
    /// it is not in the index.
    #[must_use]
    pub fn representative(&self, name: &str) -> Option<&str> {
        let representative = self.clusters.representative(*self.ids.get(name)?)?;
        self.names.get(&representative).map(String::as_str)
    }

    /// Returns all clusters: the name of each representative with those of its members, in the
    /// order of insertion.
    pub fn clusters(&self) -> impl Iterator<Item = (&str, Vec<&str>)> {
        self.clusters.clusters().map(|cluster| {
            let members = cluster.members.iter().map(|member| member.doc);
            let names = members.map(|doc| self.names[&doc].as_str());
            (
                self.names[&cluster.representative].as_str(),
                names.collect(),
            )
        })
    }

    fn similar(&self, sketch: &Sketch) -> Result<Vec<Scored>, Error> {
        similar(&self.index, &self.ids, sketch)
    }

    /// Returns the sketches of the members of the cluster that a document represents.
    fn sketches_of_cluster(&self, id: DocId) -> Result<BTreeMap<DocId, Sketch>, Error> {
        let mut sketches = BTreeMap::new();
        if self.clusters.representative(id) != Some(id) {
            return Ok(sketches);
        }
        let mut clusters = self.clusters.clusters();
        let cluster = clusters.find(|cluster| cluster.representative == id);
        for member in cluster.iter().flat_map(|cluster| &cluster.members) {
            if let Some(sketch) = self.index.sketch(&self.names[&member.doc])? {
                sketches.insert(member.doc, sketch);
            }
        }
        Ok(sketches)
    }
}

fn similar(
    index: &Index,
    ids: &BTreeMap<String, DocId>,
    sketch: &Sketch,
) -> Result<Vec<Scored>, Error> {
    let found = index.query(sketch)?.into_iter().filter_map(|found| {
        Some(Scored {
            doc: *ids.get(&found.name)?,
            similarity: found.similarity,
        })
    });
    Ok(found.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::{FeatureKeys, Kind, Settings};
    use arose::digest::Digest;
    use arose::rule::Criterion;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[derive(Debug, Clone)]
    enum Step {
        Insert(u8, [u8; 6], u8),
        Remove(u8),
    }

    fn step() -> impl Strategy<Value = Step> {
        let features = prop::array::uniform6(0..2_u8);
        prop_oneof![
            3 => (0..20_u8, features, 0..3_u8).prop_map(|(n, f, w)| Step::Insert(n, f, w)),
            1 => (0..20_u8).prop_map(Step::Remove),
        ]
    }

    /// Super-shingles that often match; everything else differs.
    fn sketch(name: u8, features: [u8; 6]) -> Sketch {
        let numbered = features.into_iter().zip(0_u64..);
        let mut words: Vec<u64> = numbered.map(|(f, i)| 10 * i + u64::from(f)).collect();
        words.extend([0; 6]);
        Sketch {
            digest: Digest(u128::from(name) + 1),
            site: None,
            is_short: false,
            words,
            pairs: None,
        }
    }

    fn replay(steps: &[Step]) -> Clusters {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings {
            kind: Kind::Compact {
                criterion: Criterion::B { min_features: 4 },
                keys: FeatureKeys::Mega,
            },
            ..Settings::default()
        };
        let mut clusters = Clusters::new(Index::create(folder.path(), settings).unwrap()).unwrap();
        for step in steps {
            match *step {
                Step::Insert(name, features, weight) => {
                    // A name that is already in the index is an error.
                    let sketch = sketch(name, features);
                    let _ = clusters.insert(&name.to_string(), &sketch, weight.into());
                }
                Step::Remove(name) => drop(clusters.remove(&name.to_string()).unwrap()),
            }
            check_invariants(&clusters);
        }
        clusters
    }

    /// Each document is in one cluster and matches the rule with its representative.
    fn check_invariants(clusters: &Clusters) {
        let mut names = BTreeSet::new();
        for (representative, members) in clusters.clusters() {
            assert!(names.insert(representative));
            let own = clusters.index.sketch(representative).unwrap().unwrap();
            for member in members {
                assert!(names.insert(member));
                assert_eq!(clusters.representative(member), Some(representative));
                let sketch = clusters.index.sketch(member).unwrap().unwrap();
                assert!(clusters.index.compare(&own, &sketch).unwrap().0.is_some());
            }
        }
        assert_eq!(names.len() as u64, clusters.index.status().unwrap().n_docs);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(30))]

        #[test]
        fn the_same_stream_gives_the_same_clusters(
            steps in prop::collection::vec(step(), 1..40),
        ) {
            let (one, two) = (replay(&steps), replay(&steps));
            prop_assert_eq!(
                one.clusters().collect::<Vec<_>>(),
                two.clusters().collect::<Vec<_>>()
            );
        }
    }

    #[test]
    fn a_new_document_joins_the_most_similar_representative() {
        let steps = [
            Step::Insert(0, [0; 6], 0),
            Step::Insert(1, [1, 1, 1, 0, 0, 0], 0),
            Step::Insert(2, [1, 1, 0, 0, 0, 0], 0),
        ];
        let mut clusters = replay(&steps);
        assert_eq!(clusters.representative("2"), Some("1"));
        // One of the two documents of this cluster was removed; the other is left.
        let removal = clusters.remove("1").unwrap().unwrap();
        assert_eq!(removal.promoted, Some(DocId(2)));
        assert_eq!(clusters.representative("2"), Some("2"));
        assert!(clusters.remove("1").unwrap().is_none());
    }

    #[test]
    fn an_index_with_documents_has_unknown_clusters() {
        let clusters = replay(&[Step::Insert(0, [0; 6], 0)]);
        assert!(Clusters::new(clusters.index).is_err());
    }
}
