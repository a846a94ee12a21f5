//! `arose estimate corpus-size`: the number of pages of a search engine.

use std::path::PathBuf;

use anyhow::ensure;
use arose_corpus::{Config as Reading, Item, read};
use arose_estimate::corpus_size::{self, CorpusSizeSettings, Pools};
use arose_estimate::pool::choose;
use arose_estimate::vocabulary;

use super::asking::{Asking, Words};
use super::pool::PoolChoice;
use super::shown::show;
use crate::read::Outcome;

/// Estimate the number of pages of one engine from queries alone.
///
/// Queries random words of a pool. Each result is weighted by one divided by the number of pool
/// words that return it, which gives the number of pages with a pool word. A uniform sample of
/// pages (--uniform), or a second pool that is independent of the first (--second), extends the
/// estimate to all pages.
#[derive(clap::Args)]
#[command(after_help = examples())]
pub(crate) struct Options {
    /// Search engine
    #[arg(value_name = "ENGINE")]
    engines: Vec<String>,
    /// Queries per pool
    #[arg(short = 'n', long, value_name = "N", default_value_t = 200)]
    queries: usize,
    /// `.tsv` list, or documents, with the words of a second pool; repeatable
    #[arg(long, value_name = "PATH")]
    second: Vec<PathBuf>,
    /// Documents that are a uniform sample of the pages of the search engine; repeatable
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
    ensure!(
        ready.panel.n_engines() == 1,
        "pass exactly one search engine"
    );
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
    let settings = CorpusSizeSettings {
        n_queries: options.queries,
        n_controls: 10,
        seed: options.asking.seed,
    };
    let findings =
        ready.watched(|panel, words| corpus_size::run(panel, 0, words, &pools, &settings))?;
    show(&[findings], options.asking.json)
}
