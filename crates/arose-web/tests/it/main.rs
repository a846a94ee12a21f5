//! Tests of the server through HTTP.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod api;
mod browser;
mod changes;
mod documents;
mod hostile;
mod pages;
mod ratings;
mod safety;
mod server;
