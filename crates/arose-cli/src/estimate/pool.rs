//! `arose estimate pool`: shares and means over uniformly sampled pages.

use anyhow::ensure;
use arose_estimate::pool::{self, PageMeasure, PoolConfig, PoolSettings, Way, choose};
use clap::ValueEnum;

use super::asking::{Asking, Words};
use super::shown::show;
use crate::read::Outcome;

/// Sample pages of one engine uniformly and measure them.
///
/// Queries are single words of a pool. Long pages match more words, so each page is weighted by one
/// divided by the number of pool words that return it.
#[derive(clap::Args)]
#[command(after_help = examples())]
pub(crate) struct Options {
    /// Search engine
    #[arg(value_name = "ENGINE")]
    engines: Vec<String>,
    /// Pages to sample, or steps of a walk
    #[arg(short = 'n', long, value_name = "N", default_value_t = 400)]
    samples: usize,
    /// What to measure: `words`, `longer:N`, `contains:WORDS` or `url:PART`
    #[arg(long, value_name = "WHAT", default_value = "words", value_parser = measure)]
    measure: PageMeasure,
    /// How to correct for unequal probabilities; repeatable
    #[arg(long, value_enum, default_values_t = [WayName::Importance, WayName::Plain])]
    way: Vec<WayName>,
    #[command(flatten)]
    choice: PoolChoice,
    #[command(flatten)]
    asking: Asking,
}

/// Options that select the words of the pool.
#[derive(clap::Args)]
pub(crate) struct PoolChoice {
    /// Minimum lexicon pages per pool word
    #[arg(long, value_name = "N", default_value_t = 2)]
    min_pages: u64,
    /// Maximum lexicon pages per pool word
    #[arg(long, value_name = "N", default_value_t = 50)]
    max_pages: u64,
    /// Maximum number of pool words
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pool_size: usize,
}

impl PoolChoice {
    pub(crate) fn config(&self) -> PoolConfig {
        PoolConfig {
            least: self.min_pages,
            most: self.max_pages,
            size: self.pool_size,
        }
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum WayName {
    /// Weight each page
    Importance,
    /// No correction, for comparison
    Plain,
    /// Reject pages at random; queries all pool words of each page
    Rejection,
    /// Metropolis-Hastings walk; queries all pool words of each page
    Metropolis,
}

fn examples() -> String {
    format!(
        "Examples:\n  arose estimate pool out -n 1000\n  arose estimate pool \
         omega:http://127.0.0.1/cgi-bin/omega?DB=default \\\n      --lexicon crawl.warc.gz --measure \
         longer:500\n\n{}",
        super::ENGINES
    )
}

fn measure(text: &str) -> Result<PageMeasure, String> {
    match text.split_once(':') {
        None if text == "words" => Ok(PageMeasure::Words),
        Some(("longer", n)) => n
            .parse()
            .map(PageMeasure::LongerThan)
            .map_err(|_| format!("`{n}` is not a number of words")),
        Some(("contains", words)) if !words.is_empty() => {
            Ok(PageMeasure::Contains(words.to_owned()))
        }
        Some(("url", part)) if !part.is_empty() => Ok(PageMeasure::Address(part.to_owned())),
        _ => Err("expected words, longer:N, contains:WORDS or url:PART".to_owned()),
    }
}

pub(super) fn run(options: &Options) -> anyhow::Result<Outcome> {
    let mut ready = options.asking.open(&options.engines, Words::Needed)?;
    ensure!(
        ready.panel.n_engines() == 1,
        "pass exactly one search engine"
    );
    let settings = PoolSettings {
        n_samples: options.samples,
        measure: options.measure.clone(),
        ways: options.way.iter().map(|way| way.way()).collect(),
        n_controls: 10,
        seed: options.asking.seed,
    };
    let config = options.choice.config();
    let findings = ready
        .watched(|panel, words| pool::run(panel, 0, words, choose(words, &config), &settings))?;
    show(&[findings], options.asking.json)
}

impl WayName {
    fn way(self) -> Way {
        match self {
            Self::Importance => Way::Importance,
            Self::Plain => Way::Plain,
            Self::Rejection => Way::Rejection,
            Self::Metropolis => Way::Metropolis,
        }
    }
}
