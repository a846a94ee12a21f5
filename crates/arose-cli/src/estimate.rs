//! `arose estimate`: how large is it, and how much do two overlap?

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

/// Estimates sizes and overlaps of indexes, corpora and webs, with intervals.
///
/// Every figure comes with its interval and with the biases that no interval shows. Try `simulate`
/// first: it shows on synthetic engines how far each method can be trusted.
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

/// Does what was asked for.
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

/// How engines are named on the command line, for the help of all that ask them.
const ENGINES: &str = "Engines:
  out                         the output of `arose dedup`, a crawl, or a folder of archives
  engine.toml                 an engine behind HTTP, described in a file
  arose:http://HOST:PORT      what `arose serve` serves
  elasticsearch:URL           an index of Elasticsearch or OpenSearch, http://host:9200/index
  solr:URL                    a core of Solr, http://host:8983/solr/core
  omega:URL                   Xapian Omega, http://host/cgi-bin/omega?DB=default
  NAME=ENGINE                 any of these under another name

docs/estimation.md describes methods, biases and the file.";
