//! The parts of a crawler, one module a part.
//!
//! A crawler is a loop: fetch a page, take its links, approve them, drop those seen before, queue
//! the rest. The parts here need no network and no clock, which come in as arguments:
//!
//! - [`url`]: the one spelling of a URL; [`fingerprint`]: sixteen bytes that stand for it.
//! - [`robots`]: what a site allows, with the line that decided.
#![forbid(unsafe_code)]

mod escape;
pub mod fingerprint;
pub mod robots;
pub mod url;
