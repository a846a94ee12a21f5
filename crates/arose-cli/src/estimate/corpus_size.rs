//! `arose estimate corpus-size`: how many pages an engine holds.

use std::path::PathBuf;

use anyhow::ensure;
use arose_corpus::{Config as Reading, Item, read};
use arose_estimate::corpus_size::{self, Pools, Settings};
use arose_estimate::pool::choose;
use arose_estimate::vocabulary;

use super::asking::{Asking, Words};
use super::pool::PoolChoice;
use super::shown::show;
use crate::read::Outcome;

/// Estimates how many pages one engine holds, by queries alone.
///
/// Random words of a pool are asked for, and every result counts one over the number of pool words
/// that return it. That gives the pages with a word of the pool; a uniform sample of pages, or a
/// second pool that has nothing to do with the first, gives all of them.
#[derive(clap::Args)]
#[command(after_help = examples())]
pub(crate) struct Options {
    /// The engine.
    #[arg(value_name = "ENGINE")]
    engines: Vec<String>,
    /// Queries of each pool.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 200)]
    queries: usize,
    /// A `.tsv` list or documents whose words are a second pool.
    #[arg(long, value_name = "PATH")]
    second: Vec<PathBuf>,
    /// Documents that are a uniform sample of the engine's pages.
    #[arg(long, value_name = "PATH")]
    uniform: Vec<PathBuf>,
    #[command(flatten)]
    choice: PoolChoice,
    #[command(flatten)]
    asking: Asking,
}

fn examples() -> String {
    format!(
        "Examples:\n  arose estimate corpus-size out -n 800\n  arose estimate corpus-size \
         engine.toml --lexicon crawl.warc.gz --second numbers.tsv\n\n{}",
        super::ENGINES
    )
}

pub(super) fn run(options: &Options) -> anyhow::Result<Outcome> {
    let mut ready = options.asking.open(&options.engines, Words::Needed)?;
    ensure!(ready.panel.n_engines() == 1, "name one engine");
    let second = vocabulary::open(&options.second, Reading::default())?;
    let mut uniform_texts = Vec::new();
    if !options.uniform.is_empty() {
        for item in read(&options.uniform, Reading::default())? {
            if let Item::Document(document) = item {
                uniform_texts.push(document.text);
            }
        }
    }
    let pools = Pools {
        first: choose(&ready.words, &options.choice.config()),
        second: second.into_iter().map(|(word, _)| word).collect(),
        uniform_texts,
    };
    let settings = Settings {
        n_queries: options.queries,
        n_controls: 10,
        seed: options.asking.seed,
    };
    let findings =
        ready.watched(|panel, words| corpus_size::run(panel, 0, words, &pools, &settings))?;
    show(&[findings], options.asking.json)
}
