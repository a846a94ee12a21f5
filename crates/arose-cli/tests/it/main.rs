//! Tests of the command line, and of the rules of the workspace.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod completions;
mod config;
mod crawl;
mod dedup;
mod estimate;
mod faults;
mod golden;
mod guides;
mod hostile_passages;
mod index;
mod killed;
mod losses;
mod memory;
mod operators;
mod questions;
mod replay;
mod revisit;
mod rules;
mod serve;
mod surface;
mod tidy;
mod words;
