//! `arose estimate searches`: engines compared by their answers to real queries.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, ensure};
use arose_estimate::engine::Question;
use arose_estimate::searches::{self, Checking, Settings};

use super::asking::{Asking, Words};
use super::shown::show;
use crate::read::Outcome;

/// Sends the queries of a log to every engine and compares their verified results.
///
/// Results are fetched; those without the words are dropped and near duplicates count once. Sums of
/// results are divided, and queries drawn anew for the interval. Queries with more results than an
/// engine shows, or 600 in all, are left out.
#[derive(clap::Args)]
#[command(after_help = examples())]
pub(crate) struct Options {
    /// The engines, two at least; the first is the unit.
    #[arg(value_name = "ENGINE")]
    engines: Vec<String>,
    /// The queries, one a line; phrases in quotation marks.
    #[arg(long, value_name = "FILE")]
    queries: PathBuf,
    /// Trust result lists without fetching pages; compare URLs only.
    #[arg(long)]
    believe: bool,
    /// The number of pages of the first engine, for the number of all pages.
    #[arg(long, value_name = "N")]
    size: Option<u64>,
    #[command(flatten)]
    asking: Asking,
}

fn examples() -> String {
    format!(
        "Examples:\n  arose estimate searches out1 out2 --queries log.txt\n  arose estimate searches \
         a=out1 b=engine.toml --queries log.txt --size 4598\n\n{}",
        super::ENGINES
    )
}

pub(super) fn run(options: &Options) -> anyhow::Result<Outcome> {
    let path = &options.queries;
    let text = fs::read_to_string(path)
        .with_context(|| format!("cannot read {}", crate::input::name(path)))?;
    let queries: Vec<Question> = text.lines().filter_map(Question::typed).collect();
    ensure!(
        !queries.is_empty(),
        "{} holds no query; write one a line",
        crate::input::name(path)
    );
    let mut ready = options.asking.open(&options.engines, Words::NotNeeded)?;
    ensure!(
        ready.panel.n_engines() >= 2,
        "a comparison needs two engines at least"
    );
    let settings = Settings {
        checking: match options.believe {
            true => Checking::Believed,
            false => Checking::Verified,
        },
        size_of_first: options.size,
        seed: options.asking.seed,
    };
    let findings = ready.watched(|panel, _| searches::run(panel, &queries, &settings))?;
    show(&[findings], options.asking.json)
}
