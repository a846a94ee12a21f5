//! `arose estimate study`: runs every applicable method and writes a report.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use anyhow::Context;
use arose_estimate::engine::Progress;
use arose_estimate::study::{self, Config, Source, Study};
use clap::ValueEnum;

use super::shown::{show, step_of};
use crate::output::{printable, remark, say, write_json};
use crate::progress::{Step, watch};
use crate::read::Outcome;

/// Run every applicable method and write a report.
///
/// Writes estimates.json, report.html (which works offline) and requests.jsonl, the log of all
/// queries and responses. An interrupted study resumes from the log. --offline recomputes the
/// estimates from the log without sending requests.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  arose estimate study study.toml -o results
  arose estimate study study.toml -o results --offline

Settings of a study:
  samples = 1000                 # pages to sample from each search engine
  size_queries = 200             # queries for the size of each; 0 omits it
  pool_samples = 0               # pages for the mean length; 0 omits it
  queries = \"log.txt\"            # compare the results of these queries; optional
  pages = \"pages.jsonl\"          # estimate the share of these pages in each; see walk --draw
  check = \"words\"                # look up pages by words, url or both
  choice = \"rarest\"              # by the rarest words, or by robust ones
  terms = 8                      # words per query; default: 8, or 5 for robust ones
  compare = 3                    # top results to compare as near duplicates; 0 compares URLs only
  lexicon = [\"crawl.warc.gz\"]    # source of query words; default: the first directory
  budget = 100000                # maximum number of requests
  contact = \"https://me.example/bot\"  # required to fetch result pages beyond loopback
  seed = 1

  [[engine]]
  name = \"ours\"
  directory = \"out\"

  [[engine]]
  name = \"theirs\"
  preset = \"solr\"                # or arose, elasticsearch, omega; docs/estimation.md has the rest
  url = \"http://127.0.0.1:8983/solr/pages\"
  delay = 1")]
pub(crate) struct Options {
    /// Settings file (TOML)
    #[arg(value_name = "CONFIG")]
    config: PathBuf,
    /// Output directory; created if missing
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Read all responses from the log in DIR; send no requests
    #[arg(long = "offline")]
    replay: bool,
    /// Maximum number of requests; overrides the settings
    #[arg(long, value_name = "N")]
    budget: Option<u64>,
    /// Random seed; overrides the settings
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// What to print
    #[arg(long, value_enum, default_value_t = Printed::Text)]
    print: Printed,
    /// Print one JSON object, like --print json
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Printed {
    /// All estimates
    Text,
    /// One JSON object
    Json,
    /// Nothing
    None,
}

pub(super) fn run(options: &Options) -> anyhow::Result<Outcome> {
    let mut config = Config::open(&options.config)?;
    config.budget = options.budget.unwrap_or(config.budget);
    config.seed = options.seed.unwrap_or(config.seed);
    let source = match options.replay {
        true => Source::Log,
        false => Source::Engines,
    };
    // Known once the search engines are open.
    let progress: OnceLock<Arc<Progress>> = OnceLock::new();
    let step = || match progress.get() {
        Some(progress) => step_of(progress)(),
        None => Step::default(),
    };
    let study = watch(step, || {
        study::run(&config, &options.output, source, |opened| {
            progress.get_or_init(|| opened);
        })
    })?;
    let outcome = match (options.json, options.print) {
        (true, _) | (_, Printed::Json) => print_json(&study)?,
        (_, Printed::Text) => show(&study.findings, false)?,
        (_, Printed::None) => Outcome::Found,
    };
    for refused in &study.refused {
        say(format_args!(
            "arose: {}: {}",
            printable(&refused.method),
            printable(&refused.reason)
        ));
    }
    remark(format_args!(
        "arose: report: {}",
        crate::input::name(&options.output.join("report.html"))
    ));
    Ok(match study.findings.is_empty() {
        true => Outcome::NothingFound,
        false => outcome,
    })
}

fn print_json(study: &Study) -> anyhow::Result<Outcome> {
    let mut out = BufWriter::new(io::stdout().lock());
    let value = serde_json::to_value(study)?;
    let written = write_json(&mut out, &value).and_then(|()| out.flush());
    written.context("cannot write the result")?;
    Ok(Outcome::Found)
}
