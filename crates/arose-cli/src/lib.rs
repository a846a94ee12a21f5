//! The command `arose`: parses the arguments and runs one function per command.
//!
//! This crate is a library, so that the binary and the Python wheel run the same code. Both call
//! [`main`].
#![forbid(unsafe_code)]

mod answers;
mod compare;
mod completions;
mod config;
mod corpus;
mod crawl;
mod dedup;
mod demo;
#[cfg(test)]
mod documented;
mod estimate;
mod evaluate;
mod help;
mod index;
mod input;
mod losses;
mod options;
mod output;
mod passages;
mod policy;
mod progress;
mod quality;
mod read;
mod robots;
mod search;
mod serve;
mod signals;
mod sketch;
mod url;

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

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
    arg_required_else_help = true,
    disable_help_flag = true,
    disable_help_subcommand = true
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    everywhere: options::Everywhere,
}

#[derive(Subcommand)]
enum Command {
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
    Config(config::Options),
    Completions(completions::Options),
    Man(completions::ManOptions),
    Help(help::Options),
}

impl Command {
    /// Whether the command ignores the contents of configuration files.
    fn is_about_arose(&self) -> bool {
        matches!(self, Self::Completions(_) | Self::Man(_) | Self::Help(_))
    }
}

/// All commands with their options.
fn command() -> clap::Command {
    // `--help` is always short, and `arose help` is always long.
    fn without_own_help(command: clap::Command) -> clap::Command {
        command
            .disable_help_flag(true)
            .disable_help_subcommand(true)
            .mut_subcommands(without_own_help)
    }
    without_own_help(Arguments::command())
}

/// Runs a command. The first argument is the name of the program.
///
/// Invalid arguments and `--help` end the process.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    ExitCode::from(run(arguments))
}

/// Like [`main`], with the exit code as a number.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments: Vec<OsString> = search::with_negations(arguments).collect();
    let (arguments, config, set) = match parse(&arguments) {
        Ok(parsed) => parsed,
        Err(error) => return fail(&error),
    };
    output::set_look(&arguments.everywhere);
    if output::look().is_verbose && !set.is_empty() {
        output::say(format_args!("arose: set by files: {}", set.join(", ")));
    }
    match run_command(&arguments.command, &config) {
        Ok(Outcome::Found) => 0,
        Ok(Outcome::NothingFound) => 1,
        Ok(Outcome::Incomplete) => 3,
        // The reader closed the pipe, which is not an error.
        Err(error) if is_broken_pipe(&error) => 0,
        Err(error) if is_interrupted(&error) => {
            fail(&error);
            signals::INTERRUPTED
        }
        Err(error) => {
            let code = fail(&error);
            // An option in the message may not have been typed.
            if !set.is_empty() {
                output::say(format_args!("arose: set by files: {}", set.join(", ")));
            }
            code
        }
    }
}

fn fail(error: &anyhow::Error) -> u8 {
    output::say(format_args!(
        "arose: {}",
        without_codes(&format!("{error:#}"))
    ));
    2
}

/// Removes the codes that follow the errors of the operating system: `(os error 2)`.
fn without_codes(message: &str) -> String {
    let mut parts = message.split(" (os error ");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text += part.split_once(')').map_or("", |(_, rest)| rest);
    }
    text
}

/// Parses the arguments with the defaults of configuration files. Also returns those defaults.
fn parse(arguments: &[OsString]) -> anyhow::Result<(Arguments, config::Config, Vec<String>)> {
    let color = color(arguments);
    let command = command().color(color);
    let typed = |matches: &clap::ArgMatches| {
        Arguments::from_arg_matches(matches).unwrap_or_else(|error| error.exit())
    };
    let is_ignored = arguments.iter().any(|argument| argument == "--no-config");
    let mut config = match is_ignored {
        true => config::Config::default(),
        false => match config::Config::load(&command) {
            Ok(config) => config,
            Err(error) => {
                // Help must not depend on the files.
                let parsed = typed(&command.get_matches_from(arguments));
                if parsed.command.is_about_arose() {
                    return Ok((parsed, config::Config::default(), Vec::new()));
                }
                return Err(error);
            }
        },
    };
    loop {
        let with_defaults = config.apply(command.clone());
        let matches = with_defaults.get_matches_from(arguments);
        if !config.yield_to(&command, &matches) {
            let set = config.in_words(&matches);
            return Ok((typed(&matches), config, set));
        }
    }
}

/// Colours of help and of errors in arguments, which are printed before arguments are parsed.
fn color(arguments: &[OsString]) -> clap::ColorChoice {
    let is_given = |value: &str| {
        let joined = format!("--color={value}");
        let mut pairs = arguments.windows(2);
        arguments.iter().any(|argument| *argument == *joined)
            || pairs.any(|pair| pair[0] == "--color" && pair[1] == value)
    };
    match (is_given("never"), is_given("always")) {
        (true, _) => clap::ColorChoice::Never,
        (_, true) => clap::ColorChoice::Always,
        _ => clap::ColorChoice::Auto,
    }
}

fn run_command(command: &Command, config: &config::Config) -> anyhow::Result<Outcome> {
    match command {
        Command::Dedup(options) => dedup::run(options),
        Command::Passages(options) => passages::run(options),
        Command::Index(options) => index::run(options),
        Command::Crawl(options) => crawl::run(options),
        Command::Read(options) => read::run(options),
        Command::Sketch(options) => sketch::run(options),
        Command::Compare(options) => compare::run(options).map(|()| Outcome::Found),
        Command::Search(options) => search::run(options),
        Command::Serve(options) => serve::run(options),
        Command::Evaluate(command) => evaluate::run(command),
        Command::Estimate(command) => estimate::run(command),
        Command::Url(options) => url::run(options),
        Command::Robots(options) => robots::run(options),
        Command::Demo(options) => demo::run(options),
        Command::Config(options) => config::run(options, config),
        Command::Completions(options) => completions::run(options),
        Command::Man(options) => completions::write_man_pages(options),
        Command::Help(options) => help::run(options),
    }
}

fn is_interrupted(error: &anyhow::Error) -> bool {
    let cause = error.downcast_ref::<arose_dedup::Error>();
    matches!(cause, Some(arose_dedup::Error::Stopped))
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let mut causes = error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>());
    causes.any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}
