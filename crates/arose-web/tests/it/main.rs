//! The server as its visitors meet it.

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
