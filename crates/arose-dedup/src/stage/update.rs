//! After the last stage: what is kept goes into the index.
//!
//! The run may die at any moment, the machine may go down, and yet every document kept is to be in
//! the index once. So what will be added is first written down and forced to the disk, with the
//! results and the summary; from then on the run is decided, and whoever finds the note carries it
//! out. Adding is made so that doing it twice changes nothing (`index/pending.rs`). Asking the
//! index again after a part was added would be wrong: it knows those documents then.

use std::fs;
use std::path::Path;

use rayon::prelude::*;
use serde_json::Value;

use crate::column::Scan;
use crate::disk;
use crate::index::{Index, Pending};
use crate::inputs::Naming;
use crate::record::Ordinal;
use crate::source::Source;
use crate::stage::known::{Holder, Rows, Sketches};
use crate::work::{read_json, write_json};
use crate::{Error, Progress};

/// The ordinals of the documents kept, among the files of the last stage.
pub(crate) const KEPT: &str = "kept";

const PENDING: &str = "pending";
const SUMMARY: &str = "summary.json";

/// Documents that are written down together.
const BATCH: usize = 1 << 10;

/// Writes down, to stay, what will be added to the index and what the run will say of itself.
pub(crate) fn prepare(
    [read, written]: [&Path; 2],
    holder: &Holder,
    (sources, naming): (&[Source], Naming),
    summary: &Value,
    folder: &Path,
    progress: &Progress,
) -> Result<(), Error> {
    let sketches = Sketches::open(read, holder.settings(), sources, naming)?;
    let mut rows = Rows::open(read)?;
    let mut kept = Scan::<Ordinal>::open(&written.join(KEPT))?;
    progress.expect(kept.left());
    let mut pending = Pending::create(&folder.join(PENDING))?;
    let mut group = Vec::new();
    while let Some(doc) = kept.next()? {
        group.push(rows.of(doc)?);
        if group.len() == BATCH || kept.left() == 0 {
            progress.advance(group.len() as u64)?;
            let sketched = group.par_drain(..);
            let sketched = sketched.map(|(record, name)| sketches.of(&record, name));
            pending.push(&sketched.collect::<Result<Vec<_>, Error>>()?)?;
        }
    }
    pending.finish()?;
    write_json(&folder.join(SUMMARY), summary)?;
    sync(&folder.join(SUMMARY))
}

/// The summary of a run that is decided.
pub(crate) fn prepared(folder: &Path) -> Result<Option<Value>, Error> {
    read_json(&folder.join(SUMMARY))
}

/// Adds what was written down and is not yet there.
pub(crate) fn carry_out(folder: &Path, index: &Index) -> Result<(), Error> {
    index.add_pending(&folder.join(PENDING))?;
    Ok(index.commit()?)
}

/// Forces a file, or all that is in a folder, to the disk.
pub(crate) fn sync(path: &Path) -> Result<(), Error> {
    if path.is_dir() {
        for entry in fs::read_dir(path).map_err(Error::io("read", path))? {
            sync(&entry.map_err(Error::io("read", path))?.path())?;
        }
    }
    sync_file(path)
}

/// Forces to the disk that a file or folder which is whole has its name.
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
