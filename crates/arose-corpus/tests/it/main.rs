//! Tests of the public interface: formats, damage, order, copies, pages, and the data sets and
//! suites outside the repository.
#![expect(clippy::unwrap_used, reason = "a test may panic")]
#![expect(
    clippy::print_stdout,
    reason = "a skipped test says so, figures are shown"
)]

mod bad_input;
mod columns;
mod compression;
mod content;
mod copies;
mod fetching;
mod formats;
mod json_values;
mod keeping;
mod losses;
mod mutations;
mod order;
mod pages;
mod parse_suites;
mod pdf;
mod peers;
mod quality;
mod samples;
mod score;
mod shared;
mod support;
mod warcio;
