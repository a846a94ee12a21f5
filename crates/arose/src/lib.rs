//! The algorithms of duplicate detection, pure and checked against brute force.
#![deny(unsafe_code)]

pub mod banding;
pub mod binomial;
pub mod candidates;
pub mod cluster;
pub mod compare;
pub mod digest;
pub mod doc;
pub mod eight_byte;
mod error;
pub mod exact;
pub mod feature;
pub mod filter;
pub mod judgement;
pub mod lead_byte;
pub mod mix;
pub mod rabin;
pub mod rule;
pub mod shingle;
#[expect(
    unsafe_code,
    reason = "calls code compiled for processor features just checked"
)]
mod simd;
pub mod simhash;
pub mod site;
pub mod sketch;
pub mod slot_index;
mod threshold;
pub mod token;
pub mod winnow;

pub use doc::DocId;
pub use error::Error;
pub use threshold::Threshold;
