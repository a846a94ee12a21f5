//! What the crate promises as a whole: on synthetic corpora of known truth, on the pages that each
//! method gets wrong, and on published data sets, which live outside the repository.

#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, in helpers too"
)]
#![expect(
    clippy::print_stdout,
    reason = "measured rates and skipped tests are worth seeing"
)]

mod acceptance;
mod estimate;
mod fixtures;
mod one_permutation;
mod public_suffix;
mod shared_data;
mod statistics;
