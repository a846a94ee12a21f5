//! The crate from outside, on the collections beside the repository.
#![expect(clippy::unwrap_used, reason = "a test may panic")]
#![expect(
    clippy::print_stdout,
    reason = "a skipped test says so, figures are shown"
)]

mod crash;
mod damage;
mod faults;
mod killed;
mod power;
mod restart;
mod robots;
mod shared;
mod simulated;
mod sitemaps;
mod tls;
mod urls;
mod visits;
mod web;
