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
    let mut heads = Vec::with_capacity(inputs.len());
    for input in &mut inputs {
        heads.push(input.next()?);
    }
    let mut writer = RunWriter::create(path, width)?;
    let mut last = None;
    // There are a handful of inputs: looking at each beats a heap.
    while let Some((index, record)) = least(&heads) {
        heads[index] = inputs[index].next()?;
        if last != Some(record.key) {
            writer.push(record)?;
            last = Some(record.key);
        }
    }
    writer.finish()
}

/// The input with the least key, the oldest among equals.
fn least(heads: &[Option<Record>]) -> Option<(usize, Record)> {
    let heads = heads.iter().enumerate();
    let heads = heads.filter_map(|(index, head)| head.map(|record| (index, record)));
    heads.min_by_key(|(_, record)| record.key)
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
