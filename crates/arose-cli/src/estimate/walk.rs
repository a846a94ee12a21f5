//! `arose estimate walk`: shares of the pages that links reach.

use std::path::PathBuf;

use anyhow::{Context, ensure};
use arose_corpus::Config as Reading;
use arose_search::estimate::graph::{Form, Graph};
use arose_search::estimate::walk::{self, Direction, Measure, Settings};
use clap::ValueEnum;

use super::shown::show;
use crate::read::Outcome;

/// Walks along links, with a jump now and then, and corrects for popular pages.
///
/// The links are those of a crawl, or of a file. Several walks begin at seeds of their own; how far
/// they agree is told. The truth over all pages that can be reached stands beside each figure, as
/// the whole graph is known here.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  arose estimate walk crawl --measure in:5
  arose estimate walk links.txt.zst --form gaps --steps 2000000 --measure in:5 --measure out:20
  arose estimate walk edges.tsv --form edges --both-ways

Forms of a file, plain or compressed by zstd or gzip:
  edges      two names a line, a page and one it links to
  adjacency  line i holds the numbers of the pages that page i links to
  gaps       the same, each number but the first as its difference to the last")]
pub(crate) struct Options {
    /// A crawl or archives; or files of links, with --form.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// How a file of links is written.
    #[arg(long, value_enum)]
    form: Option<FormName>,
    /// Walks; five at least.
    #[arg(long, value_name = "N", default_value_t = 5)]
    walks: usize,
    /// Steps of each walk.
    #[arg(long, value_name = "N", default_value_t = 50_000)]
    steps: usize,
    /// Where walks begin: names or numbers of pages; random pages if not given.
    #[arg(long, value_name = "PAGE")]
    from: Vec<String>,
    /// What is measured: `in:N` or `out:N` links at least, or `name:PART`.
    #[arg(long, value_name = "WHAT", default_value = "in:5", value_parser = measure)]
    measure: Vec<Measure>,
    /// Follows links backwards as well, without jumps.
    #[arg(long)]
    both_ways: bool,
    /// The seed of all choices.
    #[arg(long, value_name = "K", default_value_t = 1)]
    seed: u64,
    /// Prints one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum FormName {
    Edges,
    Adjacency,
    Gaps,
}

fn measure(text: &str) -> Result<Measure, String> {
    let number = |n: &str| {
        n.parse()
            .map_err(|_| format!("`{n}` is no number of links"))
    };
    match text.split_once(':') {
        Some(("in", n)) => number(n).map(Measure::InDegree),
        Some(("out", n)) => number(n).map(Measure::OutDegree),
        Some(("name", part)) if !part.is_empty() => Ok(Measure::Name(part.to_owned())),
        _ => Err("write in:N, out:N or name:PART".to_owned()),
    }
}

pub(super) fn run(options: &Options) -> anyhow::Result<Outcome> {
    let graph = match options.form {
        None => Graph::of_pages(&options.paths, Reading::default())?,
        Some(form) => {
            ensure!(options.paths.len() == 1, "name one file of links");
            let form = match form {
                FormName::Edges => Form::Edges,
                FormName::Adjacency => Form::Adjacency,
                FormName::Gaps => Form::Gaps,
            };
            Graph::open(&options.paths[0], form)?
        }
    };
    let seeds = options.from.iter().map(|name| {
        let found = graph.find(name);
        found.with_context(|| format!("there is no page {}", crate::output::printable(name)))
    });
    let settings = Settings {
        n_walks: options.walks,
        n_steps: options.steps,
        seeds: seeds.collect::<anyhow::Result<_>>()?,
        measures: options.measure.clone(),
        direction: match options.both_ways {
            false => Direction::Forwards,
            true => Direction::BothWays,
        },
        seed: options.seed,
    };
    show(&[walk::run(&graph, &settings)?], options.json)
}
