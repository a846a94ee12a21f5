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
    for (index, input) in inputs.iter_mut().enumerate() {
        heads.extend(input.next()?.map(|record| (record, index)));
    }
    let mut writer = RunWriter::create(path, width)?;
    let mut last = None;
    while !heads.is_empty() {
        let place = least(&heads);
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

/// The place of the least key, the first among equals. There are a handful: looking at each beats a
/// heap.
fn least(heads: &[(Record, usize)]) -> usize {
    let mut least = 0;
    for place in 1..heads.len() {
        if heads[place].0.key < heads[least].0.key {
            least = place;
        }
    }
    least
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
