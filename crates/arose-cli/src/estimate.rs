//! `arose estimate`: size and overlap of search engines, corpora and webs.

mod addresses;
mod asking;
mod capture;
mod corpus_size;
mod coverage;
mod live;
mod lower_bound;
mod overlap;
mod pool;
mod searches;
mod shown;
mod simulate;
mod study;
mod walk;

use crate::read::Outcome;

/// Estimate the size and overlap of search engines, corpora and webs.
///
/// Every estimate has a 95% interval, warnings, and a list of biases that the interval does not
/// cover. Start with `simulate`, which shows on synthetic search engines how reliable each method
/// is.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    LowerBound(lower_bound::Options),
    Overlap(overlap::Options),
    Searches(searches::Options),
    Pool(pool::Options),
    CorpusSize(corpus_size::Options),
    Coverage(coverage::Options),
    Walk(walk::Options),
    Addresses(addresses::Options),
    Capture(capture::Options),
    Study(study::Options),
    Simulate(simulate::Options),
}

/// Runs a command.
pub(crate) fn run(command: &Command) -> anyhow::Result<Outcome> {
    match command {
        Command::LowerBound(options) => lower_bound::run(options),
        Command::Overlap(options) => overlap::run(options),
        Command::Searches(options) => searches::run(options),
        Command::Pool(options) => pool::run(options),
        Command::CorpusSize(options) => corpus_size::run(options),
        Command::Coverage(options) => coverage::run(options),
        Command::Walk(options) => walk::run(options),
        Command::Addresses(options) => addresses::run(options),
        Command::Capture(options) => capture::run(options),
        Command::Study(options) => study::run(options),
        Command::Simulate(options) => simulate::run(options),
    }
}

/// How to write search engines on the command line, for the help of all commands that query them.
const ENGINES: &str = "Search engines:
  out                         output of `arose dedup` or a crawl, or a directory of archives
  engine.toml                 HTTP search engine, described in a file
  arose:http://HOST:PORT      `arose serve`
  elasticsearch:URL           index of Elasticsearch or OpenSearch, http://host:9200/index
  solr:URL                    Solr core, http://host:8983/solr/core
  omega:URL                   Xapian Omega, http://host/cgi-bin/omega?DB=default
  NAME=ENGINE                 any of these under another name

docs/estimation.md describes the methods, their biases and the file format.";
