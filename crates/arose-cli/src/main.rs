//! The binary `arose`, a wrapper around the library.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// A crawl makes and drops millions of small hosts and URLs. With the system's allocator, a third
/// of a start with ten million hosts is spent on merging and splitting free memory.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    arose_cli::main(std::env::args_os())
}
