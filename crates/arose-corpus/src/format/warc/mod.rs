//! Web archives: WARC 1.0 and 1.1 including WET and WAT, and the older ARC.
//!
//! Reading is in two steps. `cut` finds the records of a stream in order: header, length, block,
//! and what to do when they disagree. `record` makes a document of one record, on any thread.
//! [`mod@write`] writes new records.
//!
//! The parser is our own since it must do what parsers for good files do not: report damage by
//! position and lose nothing but the damaged record.

pub(crate) mod cut;
pub(crate) mod dialect;
pub(crate) mod record;
pub mod write;
