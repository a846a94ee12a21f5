//! JSON: `scan` finds a few fields of an object, `lines` cuts a stream into blocks of whole lines,
//! `values` into blocks of objects that do not keep to lines.

pub(crate) mod lines;
pub(crate) mod scan;
pub(crate) mod values;
