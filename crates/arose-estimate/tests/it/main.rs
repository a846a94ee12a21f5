//! Tests of complete estimates: on search engines of several kinds, real text and real graphs.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod http_engines;
mod loopback;
mod omega;
mod pools;
mod simulated;
mod webgraph;
mod wikispeedia;
