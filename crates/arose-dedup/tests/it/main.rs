//! The batch job as its users see it: files in, a folder out.

mod exactness;
mod faults;
mod results;
mod shared_data;
mod support;
