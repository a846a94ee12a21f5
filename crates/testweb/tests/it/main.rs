//! Tests of the web through network connections.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod client;
mod command;
mod crawl;
mod faults;
mod names;
mod wire;
