//! Rows of `pairs.parquet`, which is sorted by its two documents.

use std::collections::BTreeSet;
use std::path::Path;

use arrow_array::{Array, Float64Array, StringArray, UInt32Array, UInt64Array};

use super::Error;
use super::table::{Batch, scan, scan_groups};

const COLUMNS: [&str; 9] = [
    "a",
    "b",
    "jaccard",
    "b_sim",
    "c_sim",
    "content",
    "content_unweighted",
    "rule",
    "verified",
];

/// Two documents that the run found to be duplicates.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// The document that comes first in the input.
    pub a: u64,
    /// The other one.
    pub b: u64,
    /// The Jaccard similarity of their shingles.
    pub jaccard: Option<f64>,
    /// Number of common super-shingles, `0..=6`.
    pub b_sim: Option<u32>,
    /// Number of matching simhash bits, `0..=384`.
    pub c_sim: Option<u32>,
    /// The weighted and the unweighted score of the policy `content`.
    pub content: Option<[f64; 2]>,
    /// The rule that makes them duplicates.
    pub rule: String,
    /// The basis of the scores: `text`, `sketch` or `none`.
    pub verified: String,
}

/// Calls `each` with every pair in order.
///
/// # Errors
///
/// If the table cannot be read, or `each` returns an error.
pub fn for_each(path: &Path, mut each: impl FnMut(Pair) -> Result<(), Error>) -> Result<(), Error> {
    for_each_row(path, |rows, row| each(rows.pair(row)))
}

/// Calls `each` with the position of every pair in order.
pub(crate) fn for_each_row(
    path: &Path,
    mut each: impl FnMut(&Rows<'_>, usize) -> Result<(), Error>,
) -> Result<(), Error> {
    scan(path, &COLUMNS, |batch| {
        let rows = Rows::of(batch)?;
        (0..batch.n_rows()).try_for_each(|row| each(&rows, row))
    })
}

/// Returns the pair of two documents, in either order, if the run lists it.
///
/// # Errors
///
/// If the table cannot be read.
pub fn find(path: &Path, a: u64, b: u64) -> Result<Option<Pair>, Error> {
    let (a, b) = (a.min(b), a.max(b));
    let found = among(path, &BTreeSet::from([a, b]), 1)?;
    Ok(found.into_iter().next())
}

/// Returns the first `max` pairs both of whose documents are in `docs`.
///
/// # Errors
///
/// If the table cannot be read.
pub fn among(path: &Path, docs: &BTreeSet<u64>, max: usize) -> Result<Vec<Pair>, Error> {
    let mut found = Vec::new();
    let (Some(&first), Some(&last)) = (docs.first(), docs.last()) else {
        return Ok(found);
    };
    scan_groups(path, &COLUMNS, ("a", first..=last), |batch| {
        let rows = Rows::of(batch)?;
        for row in 0..batch.n_rows() {
            let is_among = rows.docs(row).iter().all(|doc| docs.contains(doc));
            if is_among && found.len() < max {
                found.push(rows.pair(row));
            }
        }
        Ok(())
    })?;
    Ok(found)
}

/// A batch of pairs, by column.
pub(crate) struct Rows<'a> {
    a: &'a UInt64Array,
    b: &'a UInt64Array,
    jaccard: &'a Float64Array,
    b_sim: &'a UInt32Array,
    c_sim: &'a UInt32Array,
    /// Runs of earlier versions do not have this column.
    content: Option<[&'a Float64Array; 2]>,
    rule: &'a StringArray,
    verified: &'a StringArray,
}

impl<'a> Rows<'a> {
    fn of(batch: &'a Batch<'_>) -> Result<Self, Error> {
        Ok(Self {
            a: batch.u64s("a")?,
            b: batch.u64s("b")?,
            jaccard: batch.f64s("jaccard")?,
            b_sim: batch.u32s("b_sim")?,
            c_sim: batch.u32s("c_sim")?,
            content: match batch.has("content") {
                true => Some([batch.f64s("content")?, batch.f64s("content_unweighted")?]),
                false => None,
            },
            rule: batch.strings("rule")?,
            verified: batch.strings("verified")?,
        })
    }

    pub(crate) fn docs(&self, row: usize) -> [u64; 2] {
        [self.a.value(row), self.b.value(row)]
    }

    pub(crate) fn jaccard(&self, row: usize) -> Option<f64> {
        let similarity = self.jaccard.is_valid(row).then(|| self.jaccard.value(row));
        similarity.filter(|similarity| !similarity.is_nan())
    }

    pub(crate) fn pair(&self, row: usize) -> Pair {
        let [a, b] = self.docs(row);
        let number = |column: &UInt32Array| column.is_valid(row).then(|| column.value(row));
        Pair {
            a,
            b,
            jaccard: self.jaccard(row),
            b_sim: number(self.b_sim),
            c_sim: number(self.c_sim),
            content: self
                .content
                .filter(|columns| columns.iter().all(|column| column.is_valid(row)))
                .map(|columns| columns.map(|column| column.value(row))),
            rule: self.rule.value(row).to_owned(),
            verified: self.verified.value(row).to_owned(),
        }
    }
}
