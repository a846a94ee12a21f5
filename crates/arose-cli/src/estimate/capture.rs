//! `arose estimate capture`: the size of what samples were drawn from.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, ensure};
use arose_estimate::capture;

use super::shown::show;
use crate::read::Outcome;

/// Estimates how many pages there are from what two or more samples share.
///
/// Two samples: Chapman's formula. More: Chao's lower bound, from what is on one list and on two.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  arose estimate capture --counts 200,150,30
  arose estimate capture monday.txt tuesday.txt
  arose estimate capture *.txt --json

Exit code 0 means done, 1 that the samples give no figure, 2 an error.")]
pub(crate) struct Options {
    /// Lists of pages, one a line; each counts once per list.
    #[arg(
        value_name = "FILE",
        conflicts_with = "counts",
        required_unless_present = "counts"
    )]
    lists: Vec<PathBuf>,
    /// Pages in the first sample, in the second, and in both.
    #[arg(long, value_name = "N1,N2,BOTH", value_delimiter = ',')]
    counts: Vec<u64>,
    /// Prints one JSON object.
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
        "--counts takes three numbers, as in 200,150,30"
    );
    ensure!(options.lists.len() >= 2, "name two lists at least");
    let mut lists = Vec::new();
    for path in &options.lists {
        let text = fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", crate::input::name(path)))?;
        let names = text.lines().map(str::trim).filter(|line| !line.is_empty());
        lists.push(names.map(str::to_owned).collect::<BTreeSet<String>>());
    }
    show(&[capture::of_lists(&lists)], options.json)
}
