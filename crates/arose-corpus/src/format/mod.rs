//! The formats of a corpus: detecting them, splitting them into records, reading the records.
//!
//! A cutter goes through a stream in order, under the lock of the pipeline, and gives blocks of
//! whole records; any thread makes documents of a block.

pub(crate) mod cell;
pub(crate) mod csv;
pub(crate) mod json;
pub(crate) mod parquet;
pub(crate) mod row;
pub(crate) mod sniff;
pub mod warc;

use crate::document::Item;

/// What a cutter gives.
pub(crate) enum Cut<B> {
    /// Records for a worker.
    Block(B),
    /// Something that no record came of.
    Skipped(Item),
}
