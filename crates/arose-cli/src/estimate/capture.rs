//! `arose estimate capture`: the size of a population from the overlap of samples.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, ensure};
use arose_estimate::capture;

use super::shown::show;
use crate::read::Outcome;

/// Estimate a population from the overlap of samples.
///
/// Uses Chapman's formula for two samples. For more, uses Chao's lower bound, from the numbers of
/// pages on exactly one and exactly two lists.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  arose estimate capture --counts 200,150,30
  arose estimate capture monday.txt tuesday.txt
  arose estimate capture *.txt --json

Exit code: 0 if done, 1 if the samples give no estimate, 2 on error.")]
pub(crate) struct Options {
    /// Lists of pages, one per line; repeated lines count once
    #[arg(
        value_name = "FILE",
        conflicts_with = "counts",
        required_unless_present = "counts"
    )]
    lists: Vec<PathBuf>,
    /// Number of pages in the first sample, in the second, and in both
    #[arg(long, value_name = "N1,N2,BOTH", value_delimiter = ',')]
    counts: Vec<u64>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(options: &Options) -> anyhow::Result<Outcome> {
    if let [n_first, n_second, n_both] = options.counts[..] {
        return show(
            &[capture::of_counts(n_first, n_second, n_both)],
            options.json,
        );
    }
    ensure!(
        options.counts.is_empty(),
        "--counts takes three numbers, e.g. 200,150,30"
    );
    ensure!(options.lists.len() >= 2, "pass at least two lists");
    let mut lists = Vec::new();
    for path in &options.lists {
        let text = fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", crate::input::name(path)))?;
        let names = text.lines().map(str::trim).filter(|line| !line.is_empty());
        lists.push(names.map(str::to_owned).collect::<BTreeSet<String>>());
    }
    show(&[capture::of_lists(&lists)], options.json)
}
