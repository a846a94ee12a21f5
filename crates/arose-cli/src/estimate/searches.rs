//! `arose estimate searches`: compares search engines on the results of logged queries.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, ensure};
use arose_estimate::engine::Question;
use arose_estimate::searches::{self, SearchSettings, Verification};

use super::asking::{Asking, Words};
use super::shown::show;
use crate::read::Outcome;

/// Compare engines on the results of logged queries.
///
/// Fetches the results of every query, discards pages without the query words, and counts near
/// duplicates once. Relative sizes are ratios of the sums over all queries; resampling the queries
/// gives the interval. Queries with more results than an engine shows, or more than 600 in total,
/// are excluded.
#[derive(clap::Args)]
#[command(after_help = examples())]
pub(crate) struct Options {
    /// At least two search engines; sizes are relative to the first
    #[arg(value_name = "ENGINE")]
    engines: Vec<String>,
    /// File of queries, one per line; phrases in quotation marks
    #[arg(long = "queries-from", value_name = "FILE")]
    queries: PathBuf,
    /// Trust result lists without fetching pages; compare URLs only
    #[arg(long)]
    trust: bool,
    /// Number of pages of the first search engine, to estimate the total number of pages
    #[arg(long, value_name = "N")]
    size: Option<u64>,
    #[command(flatten)]
    asking: Asking,
}

fn examples() -> String {
    format!(
        "Examples:\n  arose estimate searches out1 out2 --queries-from log.txt\n  arose estimate searches \
         a=out1 b=engine.toml --queries-from log.txt --size 4598\n\n{}",
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
        "`{}` contains no query; write one per line",
        crate::input::name(path)
    );
    let mut ready = options.asking.open(&options.engines, Words::NotNeeded)?;
    ensure!(
        ready.panel.n_engines() >= 2,
        "a comparison needs at least two search engines"
    );
    let settings = SearchSettings {
        checking: match options.trust {
            true => Verification::Believed,
            false => Verification::Verified,
        },
        size_of_first: options.size,
        seed: options.asking.seed,
    };
    let findings = ready.watched(|panel, _| searches::run(panel, &queries, &settings))?;
    show(&[findings], options.asking.json)
}
