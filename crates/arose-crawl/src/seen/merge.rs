//! Merges sorted runs and the buffer into one sorted run.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::record::{KeyRecord, Width};
use super::run::{Cursor, Run, RunWriter};
use crate::error::Error;

/// Number of records written between two checks whether to stop.
const PACE: u64 = 1 << 16;

/// Writes the records of `runs` and of `buffer`, which ascends, as one sorted run. Of records with
/// the same key, the oldest is kept. Returns the sorted run, or `None` if it was told to stop.
pub(super) fn merge(
    runs: &[Arc<Run>],
    buffer: Vec<KeyRecord>,
    path: &Path,
    width: Width,
    stop: &AtomicBool,
) -> Result<Option<Run>, Error> {
    let mut inputs: Vec<Source<'_>> = runs.iter().map(|run| Source::Run(run.cursor())).collect();
    inputs.push(Source::Buffer(buffer.into_iter()));
    let mut heads: Vec<(KeyRecord, usize)> = Vec::with_capacity(inputs.len());
    for (index, input) in inputs.iter_mut().enumerate() {
        heads.extend(input.next()?.map(|record| (record, index)));
    }
    let mut writer = RunWriter::create(path, width)?;
    let (mut last, mut n_written) = (None, 0_u64);
    // The oldest comes first among equals. There are only a few, so checking each is faster than a
    // heap.
    while let Some(place) = (0..heads.len()).min_by_key(|&place| heads[place].0.key) {
        let (record, index) = heads[place];
        match inputs[index].next()? {
            Some(next) => heads[place].0 = next,
            None => {
                heads.remove(place);
            }
        }
        if last != Some(record.key) {
            writer.push(record)?;
            last = Some(record.key);
            n_written += 1;
            if n_written.is_multiple_of(PACE) && stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
        }
    }
    writer.finish()?;
    Run::open(path, width).map(Some)
}

enum Source<'r> {
    Run(Cursor<'r>),
    Buffer(std::vec::IntoIter<KeyRecord>),
}

impl Source<'_> {
    fn next(&mut self) -> Result<Option<KeyRecord>, Error> {
        match self {
            Self::Run(cursor) => cursor.next(),
            Self::Buffer(records) => Ok(records.next()),
        }
    }
}
