//! Reads the output directory of a run: documents, pairs, settings.

use std::path::Path;

use arose::Threshold;
use arose::digest::Digest;
use arose::rule::{Rule, SiteRelation};
use arose::site::{SiteKind, site};
use arose::token::fingerprint;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{Array, BooleanArray, PrimitiveArray, RecordBatch, StringArray};

use super::host;
use crate::evaluate::Error;
use crate::results;
use crate::results::table::scan;

/// The value for no document.
const NONE: u32 = u32::MAX;

/// The settings in the run's summary; empty if there is no summary.
#[derive(Debug, Default)]
pub(super) struct RunSettings {
    pub(super) policy: Option<String>,
    pub(super) threshold: Option<Threshold>,
    pub(super) w: Option<u64>,
    /// Whether the run dropped documents already in an index.
    pub(super) is_against_index: bool,
    /// Whether the run lists only the pairs that it verified to decide, and not all pairs.
    pub(super) lists_some: bool,
}

impl RunSettings {
    pub(super) fn read(folder: &Path) -> Result<Self, Error> {
        let path = folder.join("summary.json");
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self::default());
            }
            Err(error) => return Err(Error::io("read", &path)(error)),
        };
        let summary: serde_json::Value = serde_json::from_slice(&text)
            .map_err(|error| Error::file(&path, format!("not JSON: {error}")))?;
        let setting = |name: &str| summary.get("settings").and_then(|all| all.get(name));
        let policy = setting("policy").and_then(|value| value.as_str());
        let threshold = setting("threshold").and_then(|value| value.as_f64());
        Ok(Self {
            policy: policy.map(str::to_owned),
            // Other policies have no such threshold, or one with another meaning.
            threshold: threshold.and_then(|value| Threshold::new(value).ok()),
            w: setting("w").and_then(|value| value.as_u64()),
            is_against_index: setting("against").is_some(),
            lists_some: setting("pairs").is_some_and(|value| value != "all"),
        })
    }
}

/// The data of every document of a run.
#[derive(Debug, Default)]
pub(super) struct Documents {
    /// Fingerprints of the IDs with the documents, ascending.
    ids: Vec<(u64, u32)>,
    /// The first document with the same content.
    classes: Vec<u32>,
    clusters: Vec<u32>,
    /// The document for which each was dropped; itself if it was kept.
    kept_docs: Vec<u32>,
    /// Whether it was dropped by Jaccard similarity.
    by_jaccard: Vec<bool>,
    /// Fingerprints of the sites; 0 if there is none.
    sites: Vec<u64>,
}

impl Documents {
    pub(super) fn read(folder: &Path) -> Result<Self, Error> {
        let path = folder.join("documents.parquet");
        let mut documents = Self::default();
        let mut digests: Vec<(u64, u32)> = Vec::new();
        let columns = [
            "doc", "id", "url", "digest", "cluster", "kept", "kept_doc", "rule",
        ];
        for_each_batch(&path, &columns, |batch| documents.take(batch, &mut digests))?;
        documents.classes = classes(digests);
        documents.ids.sort_unstable();
        let twice = documents.ids.windows(2).find(|two| two[0].0 == two[1].0);
        match twice {
            Some(two) => {
                let flaw = format!("documents {} and {} have the same ID", two[0].1, two[1].1);
                Err(Error::file(&path, flaw))
            }
            None => Ok(documents),
        }
    }

    fn take(&mut self, batch: &RecordBatch, digests: &mut Vec<(u64, u32)>) -> Result<(), String> {
        let docs: &PrimitiveArray<UInt64Type> = numbers(batch, "doc")?;
        let ids = texts(batch, "id")?;
        let urls = texts(batch, "url")?;
        let digest = texts(batch, "digest")?;
        let clusters: &PrimitiveArray<UInt64Type> = numbers(batch, "cluster")?;
        let kept = flags(batch, "kept")?;
        let kept_docs: &PrimitiveArray<UInt64Type> = numbers(batch, "kept_doc")?;
        let rules = texts(batch, "rule")?;
        let empty = Digest::EMPTY.to_string();
        for row in 0..batch.num_rows() {
            let doc = self.len() as u32;
            if docs.value(row) != u64::from(doc) || doc == NONE {
                return Err(format!(
                    "document {} found in place of {doc}",
                    docs.value(row)
                ));
            }
            let ordinal = |value: u64| u32::try_from(value).unwrap_or(NONE);
            let kept_doc = value(kept_docs, row).map_or(NONE, ordinal);
            self.ids.push((fingerprint(ids.value(row).as_bytes()), doc));
            let digest = digest.value(row);
            // Empty documents are never duplicates.
            let class = match digest == empty {
                true => doc.into(),
                false => fingerprint(digest.as_bytes()),
            };
            digests.push((class, doc));
            self.clusters.push(ordinal(clusters.value(row)));
            self.kept_docs
                .push(if kept.value(row) { doc } else { kept_doc });
            self.by_jaccard
                .push(text(rules, row) == Some(Rule::Jaccard.as_str()));
            self.sites
                .push(text(urls, row).and_then(host).map_or(0, |host| {
                    fingerprint(site(host, SiteKind::Henzinger).as_bytes())
                }));
        }
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.clusters.len()
    }

    /// Returns the document with an ID.
    pub(super) fn find(&self, id: &str) -> Option<u32> {
        let key = fingerprint(id.as_bytes());
        let place = self.ids.binary_search_by_key(&key, |entry| entry.0);
        place.ok().map(|place| self.ids[place].1)
    }

    pub(super) fn are_equal(&self, a: u32, b: u32) -> bool {
        self.classes[a as usize] == self.classes[b as usize]
    }

    /// Returns the pair as the first documents of their contents; none for exact duplicates.
    pub(super) fn class_pair(&self, a: u32, b: u32) -> Option<(u32, u32)> {
        let (a, b) = (self.classes[a as usize], self.classes[b as usize]);
        (a != b).then(|| (a.min(b), a.max(b)))
    }

    /// Returns for each document whether it has an exact duplicate.
    pub(super) fn in_exact_classes(&self) -> Vec<bool> {
        let mut sizes = vec![0_u32; self.len()];
        self.classes
            .iter()
            .for_each(|&class| sizes[class as usize] += 1);
        self.classes
            .iter()
            .map(|&class| sizes[class as usize] > 1)
            .collect()
    }

    pub(super) fn cluster(&self, doc: u32) -> u32 {
        self.clusters[doc as usize]
    }

    pub(super) fn is_kept(&self, doc: u32) -> bool {
        self.kept_docs.get(doc as usize) == Some(&doc)
    }

    /// Returns each dropped document, the document for which it was dropped, and whether by Jaccard
    /// similarity.
    pub(super) fn dropped(&self) -> impl Iterator<Item = (u32, Option<u32>, bool)> {
        let rows = (0..).zip(&self.kept_docs).zip(&self.by_jaccard);
        let dropped = rows.filter(|((doc, kept), _)| doc != *kept);
        dropped.map(|((doc, &kept), &by_jaccard)| (doc, (kept != NONE).then_some(kept), by_jaccard))
    }

    /// Returns the pairs of documents of one cluster.
    pub(super) fn n_pairs_in_clusters(&self) -> u64 {
        let mut clusters = self.clusters.clone();
        clusters.sort_unstable();
        let sizes = clusters.chunk_by(|x, y| x == y).map(|run| run.len() as u64);
        sizes.map(|size| size * (size - 1) / 2).sum()
    }

    pub(super) fn relation(&self, a: u32, b: u32) -> SiteRelation {
        match [a, b].map(|doc| self.sites[doc as usize]) {
            [0, _] | [_, 0] => SiteRelation::Unknown,
            [a, b] if a == b => SiteRelation::Same,
            _ => SiteRelation::Different,
        }
    }
}

/// Returns for each document the first one with the same digest.
fn classes(mut digests: Vec<(u64, u32)>) -> Vec<u32> {
    digests.sort_unstable();
    let mut classes = vec![0; digests.len()];
    for run in digests.chunk_by(|x, y| x.0 == y.0) {
        run.iter()
            .for_each(|&(_, doc)| classes[doc as usize] = run[0].1);
    }
    classes
}

/// A pair that the run lists.
#[derive(Debug)]
pub(super) struct FoundPair<'batch> {
    pub(super) a: u64,
    pub(super) b: u64,
    pub(super) jaccard: Option<f64>,
    pub(super) rule: &'batch str,
}

/// Calls `each` with every pair of the run.
pub(super) fn for_each_pair(
    folder: &Path,
    mut each: impl FnMut(FoundPair<'_>) -> Result<(), String>,
) -> Result<(), Error> {
    let path = folder.join("pairs.parquet");
    for_each_batch(&path, &["a", "b", "jaccard", "rule", "verified"], |batch| {
        let a: &PrimitiveArray<UInt64Type> = numbers(batch, "a")?;
        let b: &PrimitiveArray<UInt64Type> = numbers(batch, "b")?;
        let jaccard: &PrimitiveArray<Float64Type> = numbers(batch, "jaccard")?;
        let rules = texts(batch, "rule")?;
        let verified = texts(batch, "verified")?;
        for row in 0..batch.num_rows() {
            // Only scores computed from the texts can be compared with the ground truth.
            let is_exact = verified.value(row) == "text";
            each(FoundPair {
                a: a.value(row),
                b: b.value(row),
                jaccard: value(jaccard, row).filter(|_| is_exact),
                rule: rules.value(row),
            })?;
        }
        Ok(())
    })
}

fn for_each_batch(
    path: &Path,
    columns: &[&str],
    mut each: impl FnMut(&RecordBatch) -> Result<(), String>,
) -> Result<(), Error> {
    scan(path, columns, |batch| {
        each(batch.columns()).map_err(|flaw| Failed::Here(Error::file(path, flaw)))
    })
    .map_err(|failed| match failed {
        Failed::Here(error) => error,
        Failed::Table(error) => of_table(error),
    })
}

/// Why a table could not be read completely.
enum Failed {
    /// Its content is not that of a run.
    Here(Error),
    /// It is not a readable table.
    Table(results::Error),
}

impl From<results::Error> for Failed {
    fn from(error: results::Error) -> Self {
        Self::Table(error)
    }
}

fn of_table(error: results::Error) -> Error {
    match error {
        results::Error::Io { path, source, .. } => Error::io("open", &path)(source),
        results::Error::Parquet { path, source } => Error::Parquet { path, source },
        results::Error::Damaged { path, what } => Error::file(&path, what),
        results::Error::Summary { path, source } => Error::file(&path, source.to_string()),
    }
}

fn column<'batch>(batch: &'batch RecordBatch, name: &str) -> Result<&'batch dyn Array, String> {
    let column = batch.column_by_name(name).map(AsRef::as_ref);
    column.ok_or_else(|| format!("no column `{name}`"))
}

fn numbers<'batch, T: arrow_array::ArrowPrimitiveType>(
    batch: &'batch RecordBatch,
    name: &str,
) -> Result<&'batch PrimitiveArray<T>, String> {
    let array = column(batch, name)?.as_primitive_opt::<T>();
    array.ok_or_else(|| format!("column `{name}` is not of type {}", T::DATA_TYPE))
}

fn texts<'batch>(batch: &'batch RecordBatch, name: &str) -> Result<&'batch StringArray, String> {
    let array = column(batch, name)?.as_string_opt::<i32>();
    array.ok_or_else(|| format!("column `{name}` is not text"))
}

fn flags<'batch>(batch: &'batch RecordBatch, name: &str) -> Result<&'batch BooleanArray, String> {
    let array = column(batch, name)?.as_boolean_opt();
    array.ok_or_else(|| format!("column `{name}` is not boolean"))
}

fn value<T: arrow_array::ArrowPrimitiveType>(
    array: &PrimitiveArray<T>,
    row: usize,
) -> Option<T::Native> {
    array.is_valid(row).then(|| array.value(row))
}

fn text(array: &StringArray, row: usize) -> Option<&str> {
    array.is_valid(row).then(|| array.value(row))
}
