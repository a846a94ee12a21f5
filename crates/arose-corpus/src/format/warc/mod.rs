//! Reads and writes web archives: WARC 1.0 and 1.1 including WET and WAT, and the older ARC.
//!
//! Reading has two steps. `cut` finds the records of a stream in order (header, length, block) and
//! resolves disagreements between them. `record` makes a document of one record, on any thread.
//! [`mod@write`] writes new records.
//!
//! This parser is not a library because it must do more than parsers for intact files: report
//! damage by position and lose only the damaged record.

pub(crate) mod cut;
pub(crate) mod dialect;
pub(crate) mod record;
pub mod write;
