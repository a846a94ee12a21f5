//! The command `arose`: parses the arguments and runs one function per command.
//!
//! A library, so that the binary and the Python wheel run the same code; both call [`main`].
#![forbid(unsafe_code)]

mod answers;
mod compare;
mod completions;
mod corpus;
mod crawl;
mod dedup;
mod demo;
mod estimate;
mod evaluate;
mod index;
mod input;
mod losses;
mod output;
mod passages;
mod policy;
mod quality;
mod read;
mod robots;
mod search;
mod serve;
mod sketch;
mod url;

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use clap::Parser;

pub use crawl::{crawl_status, expand};
pub use search::PER_SITE;

use read::Outcome;

/// Find exact and near duplicates in text.
///
/// Exit code: 0 if done or found, 1 if nothing was found, 2 on error, 3 if done but part of the
/// input could not be read.
#[derive(Parser)]
#[command(
    name = "arose",
    version,
    max_term_width = 100,
    arg_required_else_help = true
)]
enum Arguments {
    Dedup(Box<dedup::Options>),
    Passages(Box<passages::Options>),
    Index(index::Options),
    Crawl(Box<crawl::Options>),
    Read(read::Options),
    Sketch(sketch::Options),
    Compare(compare::Options),
    Search(search::Options),
    Serve(serve::Options),
    #[command(subcommand)]
    Evaluate(evaluate::Command),
    #[command(subcommand)]
    Estimate(estimate::Command),
    Url(url::Options),
    Robots(robots::Options),
    Demo(demo::Options),
    Completions(completions::Options),
    Man(completions::ManOptions),
}

/// Runs a command. The first argument is the name of the program.
///
/// Invalid arguments and `--help` end the process.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    ExitCode::from(run(arguments))
}

/// Like [`main`], with the exit code as a number.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments = search::with_negations(arguments);
    let result = match Arguments::parse_from(arguments) {
        Arguments::Dedup(options) => dedup::run(&options),
        Arguments::Passages(options) => passages::run(&options),
        Arguments::Index(options) => index::run(&options),
        Arguments::Crawl(options) => crawl::run(&options),
        Arguments::Read(options) => read::run(&options),
        Arguments::Sketch(options) => sketch::run(&options),
        Arguments::Compare(options) => compare::run(&options).map(|()| Outcome::Found),
        Arguments::Search(options) => search::run(&options),
        Arguments::Serve(options) => serve::run(&options),
        Arguments::Evaluate(command) => evaluate::run(&command),
        Arguments::Estimate(command) => estimate::run(&command),
        Arguments::Url(options) => url::run(&options),
        Arguments::Robots(options) => robots::run(&options),
        Arguments::Demo(options) => demo::run(&options),
        Arguments::Completions(options) => completions::run(&options),
        Arguments::Man(options) => completions::write_man_pages(&options),
    };
    match result {
        Ok(Outcome::Found) => 0,
        Ok(Outcome::NothingFound) => 1,
        Ok(Outcome::Incomplete) => 3,
        // The reader closed the pipe, which is not an error.
        Err(error) if is_broken_pipe(&error) => 0,
        Err(error) => {
            output::say(format_args!("arose: {error:#}"));
            2
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let mut causes = error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>());
    causes.any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}
