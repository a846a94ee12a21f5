//! `arose evaluate`: precision and recall, by judged pairs, by planted ones, and by people.

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

/// Does what was asked for.
pub(crate) fn run(command: &Command) -> anyhow::Result<Outcome> {
    match command {
        Command::Pairs(options) => pairs::run(options),
        Command::Plant(options) => plant::run(options),
        Command::Score(options) => score::run(options),
        Command::Report(options) => report::run(options),
    }
}

/// A share for reading: four digits, a dash where there is none.
fn share(value: Option<f64>) -> String {
    crate::output::similarity(value)
}

/// A share with what it is made of.
fn counted(share: Share) -> String {
    let value = self::share(share.value());
    format!("{value}  {} of {}", share.part, share.whole)
}
