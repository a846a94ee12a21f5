//! Vectorized kernels. Each has a portable function and faster versions for processors that support
//! them.
//!
//! This is the only place with `unsafe` code, which calls functions compiled for instructions whose
//! presence was just checked. Every kernel equals its portable version bit for bit.

pub(crate) mod ascii;
pub(crate) mod bins;
pub(crate) mod fingerprint;
pub(crate) mod gaps;
pub(crate) mod min_hash;
pub(crate) mod project;
pub(crate) mod shingle;
pub(crate) mod weighted;
