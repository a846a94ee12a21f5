//! The crate from outside, on the collections beside the repository.
#![expect(clippy::unwrap_used, reason = "a test may panic")]
#![expect(
    clippy::print_stdout,
    reason = "a skipped test says so, figures are shown"
)]

mod cluster;
mod cluster_faults;
mod crash;
mod curves;
mod damage;
mod edges;
mod faults;
mod files;
mod focus;
mod hosts;
mod https;
mod ipv6;
mod killed;
mod mutations;
mod nats;
mod operators;
mod pace;
mod power;
mod priority;
mod progress;
mod quality;
mod recrawl;
mod restart;
mod robots;
mod rules;
mod script;
mod shared;
mod signals;
mod simulated;
mod sitemaps;
mod stalls;
mod tls;
mod traps;
mod twins;
mod urls;
mod visits;
mod web;
