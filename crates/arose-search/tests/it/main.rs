//! Whole folders: indexed, asked, changed, damaged.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod answers;
mod damage;
mod http_engines;
mod loopback;
mod omega;
mod oracle;
mod simulated;
mod support;
mod updates;
mod webgraph;
mod wikispeedia;
