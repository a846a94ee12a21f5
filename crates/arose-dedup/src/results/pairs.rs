//! Rows of `pairs.parquet`, which is sorted by its two documents.

use std::collections::BTreeSet;
use std::path::Path;

use arrow_array::Array;

use super::Error;
use super::table::{Batch, scan, scan_groups};

const COLUMNS: [&str; 7] = ["a", "b", "jaccard", "b_sim", "c_sim", "rule", "verified"];

/// Two documents that the run found to be alike.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// The document that comes first in the input.
    pub a: u64,
    /// The other one.
    pub b: u64,
    /// The Jaccard coefficient of their shingles.
    pub jaccard: Option<f64>,
    /// Features in common, `0..=6`.
    pub b_sim: Option<u32>,
    /// Simhash bits in agreement, `0..=384`.
    pub c_sim: Option<u32>,
    /// The rule that makes them duplicates.
    pub rule: String,
    /// What the scores were computed from: `text`, `sketch` or `none`.
    pub verified: String,
}

/// Calls `each` with every pair in order.
///
/// # Errors
///
/// If the table cannot be read, or `each` says so.
pub fn for_each(path: &Path, mut each: impl FnMut(Pair) -> Result<(), Error>) -> Result<(), Error> {
    scan(path, &COLUMNS, |batch| {
        (0..batch.n_rows()).try_for_each(|row| each(pair(batch, row)?))
    })
}

/// The pair of two documents, in either order, if the run lists it.
///
/// # Errors
///
/// If the table cannot be read.
pub fn find(path: &Path, a: u64, b: u64) -> Result<Option<Pair>, Error> {
    let (a, b) = (a.min(b), a.max(b));
    let found = among(path, &BTreeSet::from([a, b]), 1)?;
    Ok(found.into_iter().next())
}

/// The first `max` pairs both of whose documents are in `docs`.
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
        let (a, b) = (batch.u64s("a")?, batch.u64s("b")?);
        for row in 0..batch.n_rows() {
            let is_among = docs.contains(&a.value(row)) && docs.contains(&b.value(row));
            if is_among && found.len() < max {
                found.push(pair(batch, row)?);
            }
        }
        Ok(())
    })?;
    Ok(found)
}

fn pair(batch: &Batch<'_>, row: usize) -> Result<Pair, Error> {
    let (jaccard, b_sim) = (batch.f64s("jaccard")?, batch.u32s("b_sim")?);
    let c_sim = batch.u32s("c_sim")?;
    let similarity = jaccard.is_valid(row).then(|| jaccard.value(row));
    Ok(Pair {
        a: batch.u64s("a")?.value(row),
        b: batch.u64s("b")?.value(row),
        jaccard: similarity.filter(|similarity| !similarity.is_nan()),
        b_sim: b_sim.is_valid(row).then(|| b_sim.value(row)),
        c_sim: c_sim.is_valid(row).then(|| c_sim.value(row)),
        rule: batch.strings("rule")?.value(row).to_owned(),
        verified: batch.strings("verified")?.value(row).to_owned(),
    })
}
