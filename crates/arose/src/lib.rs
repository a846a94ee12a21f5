//! The algorithms of duplicate detection, pure and checked against brute force.
#![forbid(unsafe_op_in_unsafe_fn)]

pub mod banding;
pub mod binomial;
pub mod candidates;
pub mod doc;
pub mod eight_byte;
mod error;
pub mod feature;
pub mod filter;
pub mod lead_byte;
pub mod mix;
pub mod slot_index;
mod threshold;
pub mod winnow;

pub use doc::DocId;
pub use error::Error;
pub use threshold::Threshold;
