//! The algorithms of duplicate detection, pure and checked against brute force.
#![forbid(unsafe_op_in_unsafe_fn)]

pub mod cluster;
pub mod doc;
mod error;
pub mod judgement;
pub mod mix;
pub mod rule;
pub mod site;
mod threshold;

pub use doc::DocId;
pub use error::Error;
pub use threshold::Threshold;
