//! The batch job as its users see it: files in, a folder out.

#![expect(clippy::unwrap_used, reason = "a test may panic")]
#![expect(clippy::print_stdout, reason = "a test says what it skips")]

mod again;
mod against;
mod archives;
mod captures;
mod contained;
mod content;
mod content_bounds;
mod content_data;
mod exact;
mod exactness;
mod faults;
mod identity;
mod index_faults;
mod linear;
mod losses;
mod passages;
mod quality;
mod results;
mod shared_data;
mod support;
