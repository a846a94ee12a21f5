//! `arose estimate lower-bound`: a lower bound on size from claimed result counts.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, ensure};
use arose_estimate::lower_bound::{self, LANGUAGES};

use super::asking::{Asking, Words};
use super::shown::show;
use crate::read::Outcome;

/// Derive a lower bound on size from claimed result counts.
///
/// Queries each search engine for pages with any of the most frequent words; the largest count is
/// the bound. Contradictory counts show how reliable the claims are. Nothing is sampled, so there
/// is no interval.
#[derive(clap::Args)]
#[command(after_help = concat_examples())]
pub(crate) struct Options {
    /// Search engines
    #[arg(value_name = "ENGINE")]
    engines: Vec<String>,
    /// File of word lists, one list per line [default: lists of eight languages]
    #[arg(long = "words-from", value_name = "FILE")]
    words: Option<PathBuf>,
    #[command(flatten)]
    asking: Asking,
}

fn concat_examples() -> String {
    format!(
        "Examples:\n  arose estimate lower-bound out\n  arose estimate lower-bound \
         solr:http://127.0.0.1:8983/solr/pages --words-from words.txt\n\n{}",
        super::ENGINES
    )
}

pub(super) fn run(options: &Options) -> anyhow::Result<Outcome> {
    let lists: Vec<Vec<String>> = match &options.words {
        None => LANGUAGES
            .iter()
            .map(|(_, words)| words.map(str::to_owned).to_vec())
            .collect(),
        Some(path) => {
            let text = fs::read_to_string(path)
                .with_context(|| format!("cannot read {}", crate::input::name(path)))?;
            let lines = text.lines().map(|line| line.split_whitespace());
            let lists = lines.map(|words| words.map(str::to_owned).collect::<Vec<_>>());
            lists.filter(|list| !list.is_empty()).collect()
        }
    };
    ensure!(
        !lists.is_empty(),
        "the file passed with --words-from is empty; write one list per line"
    );
    let mut ready = options.asking.open(&options.engines, Words::NotNeeded)?;
    let seed = options.asking.seed;
    let findings = ready.watched(|panel, _| lower_bound::run(panel, &lists, seed))?;
    show(&[findings], options.asking.json)
}
