//! Verification: checks that every file is intact and that the files agree.
//!
//! Checksums find changed bytes. Whether a sorted run has exactly the entries of its records is
//! checked without looking any up. The sum of a hash over all entries does not depend on their
//! order, so it is computed once over the run and once over the keys of the records. Two different
//! multisets have the same sum with probability 2^-64.

use std::path::Path;

use arose::mix::mix;

use super::committed::Committed;
use super::dead::Dead;
use super::file::Allowance;
use super::file::Content;
use super::folder::retry;
use super::keys::KeyPlan;
use super::log;
use super::manifest::{Manifest, Part};
use super::records::Records;
use super::run::{Entry, Run};
use super::site_counts::SiteCountTable;
use super::sketch::Sketch;
use super::{Error, MAX_COUNTED};

/// Counts of what was verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Verified {
    /// Files.
    pub n_files: u64,
    /// Records, including those in the log.
    pub n_records: u64,
    /// Entries of sorted runs.
    pub n_entries: u64,
}

/// Reads every file of an index and checks it, whether or not the index is open elsewhere.
///
/// # Errors
///
/// The first problem found, with the name of the file.
pub fn verify(folder: &Path) -> Result<Verified, Error> {
    retry(|| verify_once(folder))
}

fn verify_once(folder: &Path) -> Result<Verified, Error> {
    let manifest = Manifest::read(folder)?;
    Committed::check(folder)?;
    let plan = KeyPlan::new(&manifest.settings);
    let mut verified = Verified {
        n_files: 2,
        ..Verified::default()
    };
    if let Some(part) = manifest.dead {
        Dead::read(&Content::Dead.path(folder, part.number), part.check)?;
        verified.n_files += 1;
    }
    if let Some(part) = manifest.counts {
        let path = Content::SiteCounts.path(folder, part.number);
        SiteCountTable::read(&path, part.check, MAX_COUNTED)?;
        verified.n_files += 1;
    }
    let mut records = manifest.records.iter();
    for part in &manifest.runs {
        let run = Run::open(
            &Content::Run.path(folder, part.number),
            part.number,
            part.check,
        )?;
        verify_run(folder, &plan, &run, &mut records, &mut verified)?;
    }
    log::replay(
        &Content::Log.path(folder, manifest.log),
        u64::MAX,
        |change| {
            if matches!(change, log::LogChange::Insert(..)) {
                verified.n_records += 1;
            }
            Ok(())
        },
    )?;
    // Opening checks that rows follow each other without a gap.
    super::state::State::open(folder, &manifest, Allowance::default(), None, MAX_COUNTED)?;
    Ok(verified)
}

/// Checks a sorted run against the files of records that follow.
fn verify_run<'a>(
    folder: &Path,
    plan: &KeyPlan,
    run: &Run,
    records: &mut impl Iterator<Item = &'a Part>,
    verified: &mut Verified,
) -> Result<(), Error> {
    let path = Content::Run.path(folder, run.number);
    run.verify()?;
    let sum = sum_of_run(run, &path)?;
    let (mut expected, mut n_rows, mut n_entries) = (0_u64, 0, 0);
    while n_rows < run.n_rows() {
        let Some(part) = records.next() else {
            return Err(Error::damaged(&path, "it has rows without records"));
        };
        let path = Content::Records.path(folder, part.number);
        let records = Records::open(&path, part.check)?;
        records.verify()?;
        let (sum, n) = sum_of_records(&records, plan, n_rows)?;
        expected = expected.wrapping_add(sum);
        n_entries += n;
        n_rows += records.n_rows();
        verified.n_records += u64::from(records.n_rows());
        verified.n_files += 1;
    }
    if (sum, u64::from(run.n_entries()), run.n_rows()) != (expected, n_entries, n_rows) {
        return Err(Error::damaged(
            &path,
            "its entries are not those of its records",
        ));
    }
    verified.n_entries += n_entries;
    verified.n_files += 1;
    Ok(())
}

fn sum_of_run(run: &Run, path: &Path) -> Result<u64, Error> {
    let mut entries = run.entries();
    let mut block = Vec::new();
    let mut last = Entry(0);
    let mut sum = 0_u64;
    for _ in 0..1_u64 << run.bucket_bits() {
        block.clear();
        entries.read_block(run.bucket_bits(), 0, &mut block)?;
        for &entry in &block {
            if entry < last {
                return Err(Error::damaged(path, "its entries are not sorted"));
            }
            last = entry;
            sum = sum.wrapping_add(mix(entry.0));
        }
    }
    Ok(sum)
}

/// Returns the sum over the entries that records should have in a run that starts this many rows
/// before them, and the number of entries.
fn sum_of_records(records: &Records, plan: &KeyPlan, shift: u32) -> Result<(u64, u64), Error> {
    let block = records.load()?;
    let mut sketch = Sketch::empty();
    let mut keys = Vec::new();
    let (mut sum, mut n) = (0_u64, 0);
    for number in 0..records.n_rows() {
        block.sketch_into(number as usize, &mut sketch);
        plan.document_keys(block.name(number as usize), &sketch, &mut keys);
        n += keys.len() as u64;
        for &key in &keys {
            sum = sum.wrapping_add(mix(Entry::new(key, shift + number).0));
        }
    }
    Ok((sum, n))
}
