//! The binary `arose`, a wrapper around the library.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    arose_cli::main(std::env::args_os())
}
