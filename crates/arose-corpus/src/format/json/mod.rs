//! JSON: `scan` finds a few fields of an object, `lines` cuts a stream into blocks of whole lines.

pub(crate) mod lines;
pub(crate) mod scan;
