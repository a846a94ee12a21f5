//! Runs and the buffer into one run.

use std::path::Path;

use super::record::{Record, Width};
use super::run::{Cursor, Run, RunWriter};
use crate::error::Error;

/// Writes the records of `runs` and of `buffer`, which ascends, as one run. Of records with one key
/// the oldest stays.
pub(super) fn merge(
    runs: &[Run],
    buffer: Vec<Record>,
    path: &Path,
    width: Width,
) -> Result<(), Error> {
    let mut inputs: Vec<Input<'_>> = runs.iter().map(|run| Input::Run(run.cursor())).collect();
    inputs.push(Input::Buffer(buffer.into_iter()));
    let mut heads: Vec<(Record, usize)> = Vec::with_capacity(inputs.len());
    for (index, input) in inputs.iter_mut().enumerate() {
        heads.extend(input.next()?.map(|record| (record, index)));
    }
    let mut writer = RunWriter::create(path, width)?;
    let mut last = None;
    // The oldest comes first among equals. There are a handful: looking at each beats a heap.
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
        }
    }
    writer.finish()
}

enum Input<'r> {
    Run(Cursor<'r>),
    Buffer(std::vec::IntoIter<Record>),
}

impl Input<'_> {
    fn next(&mut self) -> Result<Option<Record>, Error> {
        match self {
            Self::Run(cursor) => cursor.next(),
            Self::Buffer(records) => Ok(records.next()),
        }
    }
}
