//! `arose evaluate`: precision and recall on labelled, planted or rated pairs.

mod correlation;
mod pairs;
mod plant;
mod report;
mod score;

use arose_dedup::evaluate::run::Share;

use crate::read::Outcome;

/// Measure precision and recall on labelled, planted or rated pairs.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    Pairs(pairs::Options),
    Plant(plant::Options),
    Score(score::Options),
    Report(report::Options),
}

/// Runs a command.
pub(crate) fn run(command: &Command) -> anyhow::Result<Outcome> {
    match command {
        Command::Pairs(options) => pairs::run(options),
        Command::Plant(options) => plant::run(options),
        Command::Score(options) => score::run(options),
        Command::Report(options) => report::run(options),
    }
}

/// A share with four decimals, or a dash if there is none.
fn share(value: Option<f64>) -> String {
    crate::output::similarity(value)
}

/// A share with its numerator and denominator.
fn counted(share: Share) -> String {
    let value = self::share(share.value());
    format!("{value}  {} of {}", share.part, share.whole)
}
