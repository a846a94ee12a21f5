//! The algorithms of duplicate detection, pure and checked against brute force.
#![deny(unsafe_code)]

pub mod cluster;
pub mod digest;
pub mod doc;
mod error;
pub mod judgement;
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
mod threshold;
pub mod token;

pub use doc::DocId;
pub use error::Error;
pub use threshold::Threshold;
