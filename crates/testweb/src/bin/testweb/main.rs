//! The command `testweb`: serves a synthetic web, prints its ground truth, and checks its log.
#![forbid(unsafe_code)]

mod judge;
mod load;
mod options;
mod serve;
mod truth;

use std::io;
use std::process::ExitCode;

use clap::Parser;

/// A synthetic web on loopback, to test crawlers.
///
/// Exit code: 0 if done or polite, 1 if impolite, 2 on error.
#[derive(Parser)]
#[command(
    name = "testweb",
    version,
    max_term_width = 100,
    arg_required_else_help = true
)]
enum Arguments {
    Serve(serve::Options),
    Truth(truth::Options),
    Judge(judge::Options),
    Load(load::Options),
}

fn main() -> ExitCode {
    let result = match Arguments::parse() {
        Arguments::Serve(options) => serve::run(&options),
        Arguments::Truth(options) => truth::run(&options),
        Arguments::Judge(options) => judge::run(&options),
        Arguments::Load(options) => load::run(&options),
    };
    match result {
        Ok(code) => code,
        // The reader closed the pipe, which is not an error.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("testweb: {error:#}");
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
