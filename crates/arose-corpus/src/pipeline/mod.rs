//! The pipeline: splits inputs into tasks, runs them in many threads and keeps their order.
//!
//! `open` splits an input into tasks, and `read` runs them. `part` splits a corpus into parts for
//! many machines, `fetch` reads single records again, and `bookmark` lets another process resume.

pub(crate) mod bookmark;
pub(crate) mod fetch;
pub(crate) mod open;
pub(crate) mod part;
pub(crate) mod read;
