//! JSON: `scan` finds a few fields of an object, `lines` splits a stream into blocks of complete
//! lines, and `values` splits JSON that is not JSON Lines into blocks of objects.

pub(crate) mod lines;
pub(crate) mod scan;
pub(crate) mod values;
