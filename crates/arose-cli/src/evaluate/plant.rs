//! `arose evaluate plant`: generates a corpus with known duplicates.

use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::Context;
use arose_dedup::evaluate::plant::{self, FamilyKind, Plan, PlantConfig, Planted, Recipe};
use clap::ValueEnum;
use serde_json::json;

use crate::options::positive;
use crate::output::write_json;
use crate::read::Outcome;

/// Generate a corpus with known duplicates.
///
/// Writes documents.jsonl (id, url, text), truth.jsonl (a, b, kind, jaccard: every pair of related
/// pages, with the exact Jaccard similarity) and plant.json (settings and counts). The same
/// settings give the same bytes.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  arose evaluate plant -o planted --documents 100000 --sites 500
  arose evaluate plant -o short --documents 10000000 --words 60
  arose evaluate plant -o acceptance --preset acceptance
  arose evaluate score OUT --truth planted/truth.jsonl

Kinds: exact, mirror, crumb, stamp, block, scatter, truncation and extension are duplicates of a
page; template and table are similar pages of one site that are not duplicates.

Presets:
  mixed       single pages and families of all kinds; family sizes follow Pareto's law up to 50,
              words follow Zipf's law
  acceptance  50 pages on each of 400 sites: 20 of one template, 5 of one table, 5 pages at two
              times, 5 pages with mirrors on other sites, and 5 single pages; no word repeats")]
pub(crate) struct Options {
    /// Output directory; created if missing
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Kind of corpus
    #[arg(long, value_enum, default_value_t = Preset::Mixed)]
    preset: Preset,
    /// Number of documents [default: 10000, or 50 per site with --preset acceptance]
    #[arg(long, value_name = "N")]
    documents: Option<u32>,
    /// Number of sites [default: 100, or 400 with --preset acceptance]
    #[arg(long, value_name = "N")]
    sites: Option<u32>,
    /// Seed of the corpus
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Median number of words per page, with --preset mixed [default: 400]
    #[arg(long, value_name = "N")]
    words: Option<u32>,
    /// Tokens per shingle for the similarities in truth.jsonl [default: 5, or 8 with --preset
    /// acceptance]
    #[arg(short = 'w', long, value_name = "N", value_parser = positive)]
    shingle: Option<NonZeroUsize>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Preset {
    Mixed,
    Acceptance,
}

/// Writes the corpus and prints its counts.
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

fn config(options: &Options) -> anyhow::Result<PlantConfig> {
    let is_acceptance = options.preset == Preset::Acceptance;
    anyhow::ensure!(
        !is_acceptance || options.words.is_none(),
        "--words requires --preset mixed"
    );
    let n_sites = options
        .sites
        .unwrap_or(if is_acceptance { 400 } else { 100 });
    let n_documents = match is_acceptance {
        true => n_sites.saturating_mul(Recipe::ACCEPTANCE_PAGES),
        false => 10_000,
    };
    let default_w = NonZeroUsize::new(if is_acceptance { 8 } else { 5 });
    Ok(PlantConfig {
        n_documents: options.documents.unwrap_or(n_documents),
        n_sites,
        seed: options.seed,
        median_words: options.words.unwrap_or(400),
        w: options.shingle.or(default_w).context("no shingle length")?,
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
    for kind in FamilyKind::ALL {
        let n_documents = planted.documents_by_kind.get(&kind).copied();
        let n_pairs = planted.pairs_by_kind.get(&kind).copied().unwrap_or(0);
        if let Some(n_documents) = n_documents {
            writeln!(out, "  {kind:<10}  {n_documents:>9}  {n_pairs:>8}")?;
        }
    }
    Ok(())
}

fn as_json(options: &Options, planted: &Planted) -> serde_json::Value {
    let by_kind = |counts: &std::collections::BTreeMap<FamilyKind, u64>| -> serde_json::Map<_, _> {
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
