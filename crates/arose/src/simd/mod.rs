//! Vectorized kernels: a portable function each, and a faster version for processors that support
//! it.
//!
//! This is the one place with `unsafe` code, and only to call functions compiled for instructions
//! whose presence was just checked. Every kernel has a portable twin that it equals bit for bit.

pub(crate) mod ascii;
pub(crate) mod bins;
pub(crate) mod fingerprint;
pub(crate) mod gaps;
pub(crate) mod min_hash;
pub(crate) mod project;
pub(crate) mod shingle;
pub(crate) mod weighted;
