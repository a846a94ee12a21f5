//! `arose index`: the online index on the command line.

mod add;
mod passages;
mod query;

use std::io::{self, BufRead as _, BufWriter, Write};
use std::num::{NonZeroU16, NonZeroUsize};
use std::path::PathBuf;

use anyhow::{Context, ensure};
use arose::Threshold;
use arose::rule::Criterion;
use arose_corpus::{Config, Documents, Item, Warning};
use arose_dedup::Config as DedupConfig;
use arose_dedup::index::{self, FeatureKeys, Index, Kind, Reader, Settings, Sketch, Sketcher};
use arose_dedup::passages::index::is_index;
use clap::{Subcommand, ValueEnum};
use serde_json::json;

use crate::output::{printable, write_json};
use crate::policy::{
    PolicyName, ShortName, SiteName, shingle_length, short_policy, site_kind, threshold,
};
use crate::read::Outcome;

/// Keeps what was seen so far and tells what is much like it.
///
/// An index is a folder. It holds sketches of documents, about 465 bytes each, not the documents;
/// about 215 bytes with the policies b, c, combined and site.
/// It survives being killed at any moment; one process writes to it while others read.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  arose index create seen
  arose index add seen 'crawl/*.warc.gz'
  arose index query seen tomorrow.jsonl
  arose index query seen < page.txt
  arose index remove seen https://example.org/gone
  arose index stats seen")]
pub(crate) struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Create(Create),
    Add(add::Options),
    Query(query::Options),
    Remove(Remove),
    Stats(Stats),
    /// Reads every file of an index and checks that all fits together.
    ///
    /// Names the first file that is damaged. Changes nothing.
    #[command(after_help = "Examples:
  arose index verify seen")]
    Verify(Folder),
    /// Gives back the space of removed documents and merges all runs into one.
    ///
    /// Needs room for a second copy of the index until it is done.
    #[command(after_help = "Examples:
  arose index compact seen")]
    Compact(Folder),
}

/// Makes an empty index.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  arose index create seen
  arose index create --policy site seen
  arose index create --policy b --keys mega seen
  arose index create --samples 200 --agree 160 seen
  arose index create --passages --min 13 books

Policies, which are those of `arose dedup`:
  exact       the text is the same, symbols included
  jaccard     the share of common shingles reaches --threshold, as far as sketches tell
  b           2 of 6 super-shingles agree
  c           372 of 384 simhash bits agree
  combined    b, and 355 bits agree
  site        combined inside a site, c between sites, both where sites are unknown
  site-union  as site, and combined between sites too
Exact duplicates are duplicates under every policy. All settings are fixed when the index is made.
`arose dedup --against` finds nothing new in documents that it has added with the same settings.")]
struct Create {
    /// The folder, empty or not yet there.
    folder: PathBuf,
    /// Keep passages, not sketches: finds which documents contain parts of a text
    #[arg(long)]
    passages: bool,
    /// Minimum length of a passage in tokens, with --passages [default: 50]
    #[arg(long, value_name = "N", requires = "passages")]
    min: Option<usize>,
    /// What makes two documents duplicates.
    #[arg(long, value_enum, default_value_t = PolicyName::Jaccard, conflicts_with = "passages")]
    policy: PolicyName,
    /// Minimum Jaccard similarity of duplicates (policy jaccard). [default: 0.8]
    #[arg(long, value_name = "J", value_parser = threshold, conflicts_with = "passages")]
    threshold: Option<Threshold>,
    /// Tokens per shingle. [default: 5, and 8 where features decide]
    #[arg(short, long, value_name = "N")]
    w: Option<NonZeroUsize>,
    /// Tokens per shingle in scripts written without spaces. [default: as --w]
    #[arg(long, value_name = "N")]
    cjk_w: Option<NonZeroUsize>,
    /// Share of the pairs at the threshold to find, at least (policy jaccard). [default: 0.995]
    #[arg(long, value_name = "SHARE", value_parser = threshold)]
    recall: Option<Threshold>,
    /// What makes duplicates of documents under two shingles. [default: exact]
    #[arg(long, value_enum)]
    short: Option<ShortName>,
    /// How documents with common super-shingles are found: by one of five, or by any two of six
    /// together, which takes more space and less time where many documents share a template.
    /// [default: tables]
    #[arg(long, value_enum)]
    keys: Option<KeysName>,
    /// What a site is (policies site and site-union). [default: registrable]
    #[arg(long, value_enum)]
    site: Option<SiteName>,
    /// Seed of the MinHash permutations. [default: 1]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Keep this many whole MinHash values, 8 bytes each; --agree of them decide, not --threshold
    /// (policy jaccard).
    #[arg(long, value_name = "T", conflicts_with_all = ["threshold", "recall"])]
    samples: Option<NonZeroU16>,
    /// MinHash values that must agree. [default: four fifths of --samples]
    #[arg(long, value_name = "M", requires = "samples")]
    agree: Option<NonZeroU16>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum KeysName {
    Tables,
    Mega,
}

/// Removes documents by name.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  arose index remove seen https://example.org/gone
  arose index remove seen - < gone.txt

Exit code 0 means all were there, 1 not all, 2 an error. `arose index compact` gives back their
space.")]
struct Remove {
    /// The index.
    folder: PathBuf,
    /// Names as `arose index query` prints them; `-` takes those on standard input, one a line.
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
}

/// Shows what an index holds and what it takes.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  arose index stats seen
  arose index stats --json seen")]
struct Stats {
    /// The index.
    folder: PathBuf,
    /// Prints one JSON object.
    #[arg(long)]
    json: bool,
}

/// An index and nothing else.
#[derive(clap::Args)]
struct Folder {
    /// The index.
    folder: PathBuf,
}

/// Does what was asked of an index.
pub(crate) fn run(options: &Options) -> anyhow::Result<Outcome> {
    match &options.command {
        Command::Create(options) => create(options),
        Command::Add(options) => add::run(options),
        Command::Query(options) => query::run(options),
        Command::Remove(options) => remove(options),
        Command::Stats(options) => stats(options),
        Command::Verify(options) => verify(options),
        Command::Compact(options) => compact(options),
    }
}

fn create(options: &Create) -> anyhow::Result<Outcome> {
    if options.passages {
        return passages::create(&options.folder, options.min);
    }
    let is_indexed = options.policy.has_sketches() || options.policy == PolicyName::Exact;
    ensure!(
        is_indexed,
        "an index of sketches cannot decide --policy {}; use it with `arose dedup`",
        options.policy.criterion(None).name()
    );
    check_used(options)?;
    let default = Settings::default();
    let criterion = options.policy.criterion(options.threshold);
    let settings = Settings {
        kind: kind(options, criterion),
        short: short_policy(options.short),
        shingle: shingle_length(criterion, options.w, options.cjk_w),
        seed: options.seed.unwrap_or(default.seed),
        site: site_kind(options.site),
    };
    Index::create(&options.folder, settings)?;
    Ok(Outcome::Found)
}

fn check_used(options: &Create) -> anyhow::Result<()> {
    let policy = options.policy;
    let is_jaccard = policy == PolicyName::Jaccard;
    let is_near = policy != PolicyName::Exact;
    let has_features = is_near && !matches!(policy, PolicyName::Jaccard | PolicyName::C);
    policy.check_used(&[
        ("--threshold", options.threshold.is_some(), is_jaccard),
        ("--recall", options.recall.is_some(), is_jaccard),
        ("--samples", options.samples.is_some(), is_jaccard),
        ("--site", options.site.is_some(), policy.is_by_site()),
        ("--keys", options.keys.is_some(), has_features),
        ("--w", options.w.is_some(), is_near),
        ("--cjk-w", options.cjk_w.is_some(), is_near),
        ("--short", options.short.is_some(), is_near),
        ("--seed", options.seed.is_some(), is_near),
    ])
}

fn kind(options: &Create, criterion: Criterion) -> Kind {
    if let Some(n_samples) = options.samples {
        let four_fifths = NonZeroU16::new(n_samples.get() - n_samples.get() / 5);
        return Kind::Full {
            n_samples,
            min_agreeing: options.agree.or(four_fifths).unwrap_or(n_samples),
        };
    }
    let recall = options.recall.unwrap_or(DedupConfig::default().recall);
    match (Kind::of(criterion, recall), options.keys) {
        (Kind::Compact { criterion, .. }, Some(KeysName::Mega)) => Kind::Compact {
            criterion,
            keys: FeatureKeys::Mega,
        },
        (kind, _) => kind,
    }
}

fn remove(options: &Remove) -> anyhow::Result<Outcome> {
    passages::refuse(&options.folder, "remove")?;
    let index = Index::open(&options.folder)?;
    let mut n_missing = 0;
    let mut remove = |name: &str| -> anyhow::Result<()> {
        if !index.remove(name)? {
            n_missing += 1;
            eprintln!("arose: no document `{}`", printable(name));
        }
        Ok(())
    };
    for name in &options.names {
        if name == "-" {
            for line in io::stdin().lock().lines() {
                remove(&line.context("cannot read standard input")?)?;
            }
        } else {
            remove(name)?;
        }
    }
    index.commit()?;
    Ok(match n_missing {
        0 => Outcome::Found,
        _ => Outcome::NothingFound,
    })
}

fn stats(options: &Stats) -> anyhow::Result<Outcome> {
    if is_index(&options.folder) {
        return passages::stats(&options.folder, options.json);
    }
    let reader = Reader::open(&options.folder)?;
    let stats = reader.stats();
    let rows = [
        ("documents", stats.n_docs),
        ("removed", stats.n_dead),
        ("in_log", stats.n_recent),
        ("runs", stats.n_runs as u64),
        ("record_files", stats.n_record_files as u64),
        ("entries", stats.n_entries),
        ("disk_bytes", stats.disk_bytes),
        ("memory_bytes", stats.memory_bytes),
    ];
    let policy = reader.settings().describe();
    let mut out = BufWriter::new(io::stdout().lock());
    let written = if options.json {
        let mut object = json!({ "policy": policy, "w": reader.settings().shingle.w });
        for (name, value) in rows {
            object[name] = value.into();
        }
        write_json(&mut out, &object)
    } else {
        let text = |name: &str| name.replace('_', " ");
        writeln!(out, "{:<14}{policy}", "policy").and_then(|()| {
            rows.iter()
                .try_for_each(|(name, value)| writeln!(out, "{:<14}{value}", text(name)))
        })
    };
    written
        .and_then(|()| out.flush())
        .context("cannot write the result")?;
    Ok(Outcome::Found)
}

fn verify(options: &Folder) -> anyhow::Result<Outcome> {
    passages::refuse(&options.folder, "verify")?;
    let verified = index::verify(&options.folder)?;
    eprintln!(
        "{} files, {} records and {} entries are sound",
        verified.n_files, verified.n_records, verified.n_entries
    );
    Ok(Outcome::Found)
}

fn compact(options: &Folder) -> anyhow::Result<Outcome> {
    passages::refuse(&options.folder, "compact")?;
    let index = Index::open(&options.folder)?;
    let before = index.stats()?;
    index.compact()?;
    let after = index.stats()?;
    eprintln!(
        "{} documents in {} bytes; {} removed ones are gone",
        after.n_docs, after.disk_bytes, before.n_dead
    );
    Ok(Outcome::Found)
}

/// A document on its way into an index or a question to it.
enum Work {
    Document(String, Sketch),
    Skipped(Warning),
}

/// Reads documents and sketches them on all threads.
fn sketches(
    inputs: &[PathBuf],
    config: Config,
    settings: &Settings,
) -> anyhow::Result<Documents<Work>> {
    let sketcher = Sketcher::new(settings);
    let work = move |item| match item {
        Item::Document(document) => {
            let name = arose_dedup::index::name(&document);
            Work::Document(name, sketcher.sketch_of_document(&document))
        }
        Item::Skipped(warning) => Work::Skipped(warning),
    };
    Ok(arose_corpus::read_map(inputs, config, work)?)
}
