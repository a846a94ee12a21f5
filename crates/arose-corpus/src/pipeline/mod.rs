//! The pipeline that splits inputs into tasks, runs them in many threads and keeps their order.
//!
//! `open` makes an input a sequence of tasks, `read` runs them; `part` cuts a corpus into parts for
//! many machines, `fetch` reads single records again, and `bookmark` lets another process go on.

pub(crate) mod bookmark;
pub(crate) mod fetch;
pub(crate) mod open;
pub(crate) mod part;
pub(crate) mod read;
