//! `arose evaluate plant`: a corpus with exact truth.

use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::Context;
use arose_dedup::evaluate::plant::{self, Config, Kind, Plan, Planted, Recipe};
use clap::ValueEnum;
use serde_json::json;

use crate::output::write_json;
use crate::read::Outcome;

/// Makes a corpus whose duplicates are known.
///
/// Writes documents.jsonl (id, url, text), truth.jsonl (a, b, kind, jaccard: every pair of pages
/// that have to do with each other, with the exact coefficient of their shingles) and plant.json
/// (settings and counts). The same settings give the same bytes.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  arose evaluate plant -o planted --documents 100000 --sites 500
  arose evaluate plant -o short --documents 10000000 --words 60
  arose evaluate plant -o acceptance --preset acceptance
  arose evaluate score OUT --truth planted/truth.jsonl

Kinds: exact, mirror, crumb, stamp, block, scatter, truncation and extension are copies of a
page; template and table are pages of one site that look alike and are none.

Presets:
  mixed       single pages and families of all kinds, sizes by Pareto's law up to 50, words
              drawn by Zipf's
  acceptance  on each of 400 sites 50 pages: 20 of one template, 5 of one table, 5 pages at
              two times, 5 pages and their mirrors elsewhere, 5 single ones; every word new")]
pub(crate) struct Options {
    /// The folder to write to.
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// What kind of corpus.
    #[arg(long, value_enum, default_value_t = Preset::Mixed)]
    preset: Preset,
    /// Pages; 10,000 if not given, and 50 a site for the preset `acceptance`.
    #[arg(long, value_name = "N")]
    documents: Option<u32>,
    /// Sites; 100 if not given, and 400 for the preset `acceptance`.
    #[arg(long, value_name = "S")]
    sites: Option<u32>,
    /// Selects the corpus.
    #[arg(long, value_name = "K", default_value_t = 1)]
    seed: u64,
    /// Words of the median page, for the preset `mixed`; 400 if not given.
    #[arg(long, value_name = "MEDIAN")]
    words: Option<u32>,
    /// Tokens in the shingles of the truth; 5 if not given, and 8 for the preset `acceptance`.
    #[arg(long, value_name = "W")]
    w: Option<NonZeroUsize>,
    /// Prints one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Preset {
    Mixed,
    Acceptance,
}

/// Makes the corpus and says what is in it.
pub(super) fn run(options: &Options) -> anyhow::Result<Outcome> {
    let planted = plant::write(&Plan::new(config(options)?)?, &options.output)?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    let written = if options.json {
        write_json(&mut out, &as_json(options, &planted))
    } else {
        write_text(&mut out, options, &planted)
    };
    let written = written.and_then(|()| out.flush());
    written.context("cannot write the result")?;
    Ok(Outcome::Found)
}

fn config(options: &Options) -> anyhow::Result<Config> {
    let is_acceptance = options.preset == Preset::Acceptance;
    anyhow::ensure!(
        !is_acceptance || options.words.is_none(),
        "--words is for the preset mixed only"
    );
    let n_sites = options
        .sites
        .unwrap_or(if is_acceptance { 400 } else { 100 });
    let n_documents = match is_acceptance {
        true => n_sites.saturating_mul(Recipe::ACCEPTANCE_PAGES),
        false => 10_000,
    };
    let default_w = NonZeroUsize::new(if is_acceptance { 8 } else { 5 });
    Ok(Config {
        n_documents: options.documents.unwrap_or(n_documents),
        n_sites,
        seed: options.seed,
        median_words: options.words.unwrap_or(400),
        w: options.w.or(default_w).context("no shingle length")?,
        recipe: match options.preset {
            Preset::Mixed => Recipe::Mixed,
            Preset::Acceptance => Recipe::Acceptance,
        },
    })
}

fn write_text(out: &mut impl Write, options: &Options, planted: &Planted) -> io::Result<()> {
    let folder = crate::input::name(&options.output);
    writeln!(
        out,
        "{folder}: {} documents in {} families, {} pairs\n",
        planted.n_documents, planted.n_families, planted.n_pairs
    )?;
    writeln!(out, "  kind        documents     pairs")?;
    for kind in Kind::ALL {
        let n_documents = planted.documents_by_kind.get(&kind).copied();
        let n_pairs = planted.pairs_by_kind.get(&kind).copied().unwrap_or(0);
        if let Some(n_documents) = n_documents {
            writeln!(out, "  {kind:<10}  {n_documents:>9}  {n_pairs:>8}")?;
        }
    }
    Ok(())
}

fn as_json(options: &Options, planted: &Planted) -> serde_json::Value {
    let by_kind = |counts: &std::collections::BTreeMap<Kind, u64>| -> serde_json::Map<_, _> {
        counts
            .iter()
            .map(|(kind, &n)| (kind.to_string(), n.into()))
            .collect()
    };
    json!({
        "output": options.output.to_string_lossy(),
        "documents": planted.n_documents,
        "families": planted.n_families,
        "pairs": planted.n_pairs,
        "documents_by_kind": by_kind(&planted.documents_by_kind),
        "pairs_by_kind": by_kind(&planted.pairs_by_kind),
    })
}
