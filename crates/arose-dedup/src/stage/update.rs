//! After the last stage: adds the kept documents to the index.
//!
//! The run may die at any moment, or the machine may crash, and yet every kept document must be in
//! the index exactly once. So the documents to add are first written to a file and forced to disk,
//! together with the results and the summary. From then on the run is decided, and any process that
//! finds the file adds its documents. Adding them twice changes nothing (`index/pending.rs`).
//! Querying the index again after a part was added would be wrong, since those documents are then
//! already in the index.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::column::Scan;
use crate::disk;
use crate::index::{Index, Pending};
use crate::inputs::Naming;
use crate::record::{DocRecord, Ordinal};
use crate::source::InputFile;
use crate::stage::columns::DOCS;
use crate::stage::indexed::{OpenIndex, Rows, Sketches};
use crate::work::{read_json, write_json};
use crate::{Error, Progress};

/// The ordinals of the kept documents, among the files of the last stage.
pub(crate) const KEPT: &str = "kept";

const PENDING: &str = "pending";
const SUMMARY: &str = "summary.json";

/// Number of documents that are written together.
const BATCH: usize = 1 << 10;

/// Durably writes the documents to add to the index, and the summary of the run.
pub(crate) fn prepare(
    [read, written]: [&Path; 2],
    index: &OpenIndex,
    (sources, naming): (&[InputFile], Naming),
    summary: &Value,
    folder: &Path,
    progress: &Progress,
) -> Result<(), Error> {
    let sketches = Sketches::open(read, index.settings(), sources, naming)?;
    let mut kept = Scan::<Ordinal>::open(&written.join(KEPT))?;
    let n_docs = match index.settings().is_content() {
        true => Scan::<DocRecord>::open(&read.join(DOCS))?.left(),
        false => 0,
    };
    progress.expect(n_docs + kept.left());
    let mut pending = Pending::create(&folder.join(PENDING))?;
    // Documents that are not added are also pages of their sites.
    let mut rows = Rows::open(read)?;
    for start in (0..n_docs).step_by(BATCH) {
        let docs = start..(start + BATCH as u64).min(n_docs);
        let group = docs.map(|doc| rows.of(doc as Ordinal));
        let group = group.collect::<Result<Vec<_>, Error>>()?;
        progress.advance(group.len() as u64)?;
        pending.push_pages(&sketches.all(group)?)?;
    }
    let mut rows = Rows::open(read)?;
    let mut group = Vec::new();
    while let Some(doc) = kept.next()? {
        group.push(rows.of(doc)?);
        if group.len() == BATCH || kept.left() == 0 {
            progress.advance(group.len() as u64)?;
            pending.push(&sketches.all(std::mem::take(&mut group))?)?;
        }
    }
    pending.finish()?;
    write_json(&folder.join(SUMMARY), summary)?;
    sync(&folder.join(SUMMARY))
}

/// Returns the summary of a run that is decided.
pub(crate) fn prepared(folder: &Path) -> Result<Option<Value>, Error> {
    read_json(&folder.join(SUMMARY))
}

/// Adds the written documents that are not yet in the index.
pub(crate) fn carry_out(folder: &Path, index: &Index) -> Result<(), Error> {
    index.add_pending(&folder.join(PENDING))?;
    Ok(index.commit()?)
}

/// Forces a file, or everything in a directory, to disk.
pub(crate) fn sync(path: &Path) -> Result<(), Error> {
    if path.is_dir() {
        for entry in fs::read_dir(path).map_err(Error::io("read", path))? {
            sync(&entry.map_err(Error::io("read", path))?.path())?;
        }
    }
    sync_file(path)
}

/// Forces the name of a complete file or directory to disk.
pub(crate) fn sync_entry(path: &Path) -> Result<(), Error> {
    sync_file(path)?;
    path.parent().map_or(Ok(()), sync_file)
}

fn sync_file(path: &Path) -> Result<(), Error> {
    let synced = match path.is_dir() {
        true => disk::sync_folder(path),
        false => disk::sync_file(path),
    };
    synced.map_err(Error::io("sync", path))
}
