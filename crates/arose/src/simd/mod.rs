//! Kernels compiled for wider processors and chosen at run time: the only place with `unsafe`.
//!
//! A kernel is plain Rust that vectorises, compiled once for every processor and again with more
//! instructions allowed. The one unsafe step is to call the second after asking the processor.
#![allow(
    unsafe_code,
    reason = "calling a function compiled for instructions that were found at run time"
)]

pub(crate) mod project;
