//! Input formats: detects them, splits them into records, and reads the records.
//!
//! A cutter goes through a stream in order, under the lock of the pipeline, and returns blocks of
//! complete records. Any thread turns a block into documents.

pub(crate) mod cell;
pub(crate) mod csv;
pub(crate) mod json;
pub(crate) mod parquet;
pub(crate) mod row;
pub(crate) mod sniff;
pub mod warc;

use crate::document::Item;

/// The output of a cutter.
pub(crate) enum Cut<B> {
    /// Records for a worker.
    Block(B),
    /// Input that did not become a record.
    Skipped(Item),
}
