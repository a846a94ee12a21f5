//! The command `arose`: arguments become options, one function per command does the work.
#![forbid(unsafe_code)]

mod compare;
mod input;
mod output;
mod sketch;

use std::io;
use std::process::ExitCode;

use clap::Parser;

/// Finds exact and near duplicates in texts.
///
/// Exit code 0 means done, 2 an error.
#[derive(Parser)]
#[command(
    name = "arose",
    version,
    max_term_width = 100,
    arg_required_else_help = true
)]
enum Arguments {
    Sketch(sketch::Options),
    Compare(compare::Options),
}

fn main() -> ExitCode {
    let result = match Arguments::parse() {
        Arguments::Sketch(options) => sketch::run(&options),
        Arguments::Compare(options) => compare::run(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads our output has read enough.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("arose: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let mut causes = error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>());
    causes.any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}
