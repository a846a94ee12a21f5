//! `arose estimate study`: a whole comparison with a report.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use anyhow::Context;
use arose_estimate::study::{self, Config, Source, Study};
use clap::ValueEnum;

use super::shown::{Watch, show};
use crate::output::{printable, say, write_json};
use crate::read::Outcome;

/// Compares engines by every method that applies and writes a report.
///
/// The folder gets estimates.json, report.html (offline) and requests.jsonl, the log of every
/// question and answer. A study that was stopped goes on with the log; --replay makes the same
/// estimates from it without asking anyone.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  arose estimate study study.toml -o results
  arose estimate study study.toml -o results --replay

A study:
  samples = 1000                 # pages drawn from each engine
  size_queries = 200             # queries for the size of each; 0 leaves it out
  pool_samples = 0               # pages for the mean length; 0 leaves it out
  queries = \"log.txt\"            # compares answers to these, if given
  pages = \"pages.jsonl\"          # pages drawn by `estimate walk --draw`: the share each holds
  check = \"words\"                # looks pages up by words, url or both
  choice = \"rarest\"              # by the rarest words, or by robust ones
  lexicon = [\"crawl.warc.gz\"]    # where words come from; the first folder if not given
  budget = 100000                # requests at most
  contact = \"https://me.example/bot\"  # to fetch result pages beyond loopback
  seed = 1

  [[engine]]
  name = \"ours\"
  folder = \"out\"

  [[engine]]
  name = \"theirs\"
  preset = \"solr\"                # or arose, elasticsearch, omega; docs/estimation.md has the rest
  url = \"http://127.0.0.1:8983/solr/pages\"
  delay = 1")]
pub(crate) struct Options {
    /// The settings.
    #[arg(value_name = "CONFIG")]
    config: PathBuf,
    /// The folder to write to.
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Takes every answer from the log in the folder and asks nothing.
    #[arg(long)]
    replay: bool,
    /// Requests at most, instead of what the settings say.
    #[arg(long, value_name = "N")]
    budget: Option<u64>,
    /// The seed of all choices, instead of what the settings say.
    #[arg(long, value_name = "K")]
    seed: Option<u64>,
    /// What is printed.
    #[arg(long, value_enum, default_value_t = Printed::Text)]
    print: Printed,
    /// Prints one JSON object: the same as --print json.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Printed {
    /// All figures.
    Text,
    /// One JSON object.
    Json,
    /// Nothing.
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
    let mut watch = None;
    let study = study::run(&config, &options.output, source, |progress| {
        watch = Some(Watch::start(progress));
    });
    if let Some(watch) = watch {
        watch.end();
    }
    let study = study?;
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
    say(format_args!(
        "arose: the report is {}",
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
