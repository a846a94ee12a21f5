//! The parts of a crawler, one module a part.
//!
//! A crawler is a loop: fetch a page, take its links, approve them, drop those seen before, queue
//! the rest. The parts here need no network and no clock, which come in as arguments:
//!
//! - [`url`]: the one spelling of a URL; [`fingerprint`]: sixteen bytes that stand for it.
//! - [`guard`]: whether a URL may be crawled at all, with the reason if not.
//! - [`robots`]: what a site allows, with the line that decided.
//! - [`sitemap`]: the pages a site lists itself.
//! - [`seen`]: which URLs were met before, in bounded memory, whatever happens to the process.
#![forbid(unsafe_code)]

mod error;
mod escape;
pub mod fingerprint;
pub mod guard;
mod mark;
pub mod robots;
pub mod seen;
pub mod sitemap;
pub mod url;

pub use error::Error;
