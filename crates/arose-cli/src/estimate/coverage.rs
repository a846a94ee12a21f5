//! `arose estimate coverage`: the share of sampled pages that search engines have.

use std::path::PathBuf;

use arose_estimate::coverage;

use super::asking::{Asking, Lookup, Words};
use super::shown::show;
use crate::read::Outcome;

/// Look up sampled pages in search engines and estimate the share that each has.
///
/// The pages are JSON Lines with `url`, `text` and `walk`, as written by
/// `arose estimate walk --draw`. You can use any other uniform sample of pages; omit `walk` if the
/// pages are independent. Do not use pages sampled through a search engine: they favour long pages.
#[derive(clap::Args)]
#[command(after_help = examples())]
pub(crate) struct Options {
    /// Search engines
    #[arg(value_name = "ENGINE")]
    engines: Vec<String>,
    /// File of sampled pages
    #[arg(long = "pages-from", value_name = "FILE")]
    pages: PathBuf,
    #[command(flatten)]
    lookup: Lookup,
    #[command(flatten)]
    asking: Asking,
}

fn examples() -> String {
    format!(
        "Examples:\n  arose estimate walk crawl --draw pages.jsonl\n  arose estimate coverage out \
         --pages-from pages.jsonl\n  arose estimate coverage out solr:http://127.0.0.1:8983/solr/pages \
         --pages-from pages.jsonl \\\n      --check both\n\n{}",
        super::ENGINES
    )
}

pub(super) fn run(options: &Options) -> anyhow::Result<Outcome> {
    let mut ready = options.asking.open(&options.engines, Words::Needed)?;
    let pages = coverage::read(&options.pages)?;
    let checking = options.lookup.checking();
    let seed = options.asking.seed;
    let findings =
        ready.watched(|panel, words| coverage::run(panel, words, &pages, checking, seed))?;
    show(&[findings], options.asking.json)
}
