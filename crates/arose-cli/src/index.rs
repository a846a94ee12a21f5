//! `arose index`: creates, fills, queries and checks an index.

mod add;
mod passages;
mod query;

use std::fs;
use std::io::{self, BufRead as _, BufWriter, Write};
use std::num::{NonZeroU16, NonZeroUsize};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use arose::Threshold;
use arose::rule::Criterion;
use arose_corpus::{Config, Documents, Item, Warning};
use arose_dedup::Config as DedupConfig;
use arose_dedup::index::{self, FeatureKeys, Index, Kind, Reader, Settings, Sketch, Sketcher};
use arose_dedup::passages::index::is_index;
use arose_dedup::report::html::counted;
use clap::{Subcommand, ValueEnum};
use serde_json::json;

use crate::options::{positive, threshold};
use crate::output::{printable, remark, row, say, write_json};
use crate::policy::{
    PolicyName, RemoveName, ShortName, SiteName, shingle_length, short_policy, site_kind,
};
use crate::read::Outcome;

/// Maintain an index of documents and look up duplicates in it.
///
/// An index is a directory with sketches of documents, not the documents: per document its name and
/// 1.5 kB with the default policy content, 460 bytes with jaccard, or 210 bytes with b, c,
/// combined and site. One process can write to it while others read. It survives a kill at any
/// moment.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  arose index create seen
  arose index add seen 'crawl/*.warc.gz'
  arose index query seen tomorrow.jsonl
  arose index query seen < page.txt
  arose index remove seen https://example.org/gone
  arose index status seen")]
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
    Status(StatusOptions),
    /// Check every file for damage.
    ///
    /// Reports the first damaged file. Changes nothing.
    #[command(after_help = "Examples:
  arose index verify seen")]
    Verify(IndexDir),
    /// Reclaim the space of removed documents and merge all sorted runs.
    ///
    /// Needs disk space for a second copy of the index until it is done.
    #[command(after_help = "Examples:
  arose index compact seen")]
    Compact(IndexDir),
}

/// Create an empty index.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  arose index create seen
  arose index create --policy site seen
  arose index create --policy b --keys mega seen
  arose index create --minhash 200 --agree 160 seen
  arose index create --passages --min 13 books

`arose help policies` describes the policies. All settings are fixed when the index is created.
`arose dedup --against` finds nothing new in documents that it has added with the same settings.")]
struct Create {
    /// Directory of the index; must be empty or missing
    #[arg(value_name = "INDEX")]
    folder: PathBuf,
    /// Index passages instead of sketches, to find documents that contain parts of a text
    #[arg(long)]
    passages: bool,
    /// Minimum length of a passage in tokens, with --passages [default: 50]
    #[arg(long, value_name = "N", requires = "passages")]
    min: Option<usize>,
    /// Definition of a duplicate; see `arose help policies` [default: content]
    #[arg(long, value_enum, conflicts_with = "passages")]
    policy: Option<PolicyName>,
    /// Minimum Jaccard similarity (policy jaccard) [default: 0.8]
    #[arg(long, value_name = "J", value_parser = threshold, conflicts_with = "passages")]
    threshold: Option<Threshold>,
    /// Tokens per shingle [default: 5, or 8 for the policies b, c, combined, site and site-union]
    #[arg(short = 'w', long, value_name = "N", value_parser = positive)]
    shingle: Option<NonZeroUsize>,
    /// Tokens per shingle in scripts written without spaces [default: value of --shingle]
    #[arg(long, value_name = "N", value_parser = positive)]
    cjk_shingle: Option<NonZeroUsize>,
    /// Minimum recall of pairs at the threshold (policy jaccard) [default: 0.995]
    #[arg(long, value_name = "SHARE", value_parser = threshold)]
    recall: Option<Threshold>,
    /// Level at which documents are duplicates (policy content) [default: same]
    #[arg(long, value_enum, value_name = "LEVEL")]
    remove: Option<RemoveName>,
    /// How to match documents shorter than two shingles [default: exact]
    #[arg(long, value_enum)]
    short: Option<ShortName>,
    /// Lookup keys: five of the six super-shingles, or all pairs of the six. Pairs need more space,
    /// and less time if many documents share a template [default: tables]
    #[arg(long, value_enum)]
    keys: Option<KeysName>,
    /// How to derive the site from a host (policies content, site and site-union) [default:
    /// registrable]
    #[arg(long, value_enum)]
    site: Option<SiteName>,
    /// Seed of the MinHash permutations [default: 1]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Store this many complete MinHash values of 8 bytes; duplicates match in --agree of them,
    /// which replaces --threshold (policy jaccard)
    #[arg(long = "minhash", value_name = "T", conflicts_with_all = ["threshold", "recall"])]
    samples: Option<NonZeroU16>,
    /// Minimum number of matching MinHash values [default: four fifths of --minhash]
    #[arg(long, value_name = "M", requires = "samples")]
    agree: Option<NonZeroU16>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum KeysName {
    Tables,
    Mega,
}

/// Remove documents by name.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  arose index remove seen https://example.org/gone
  arose index remove seen - < gone.txt

Exit code: 0 if all were in the index, 1 if not, 2 on error. `arose index compact` reclaims their
space.")]
struct Remove {
    /// Directory of the index
    #[arg(value_name = "INDEX")]
    folder: PathBuf,
    /// Names as printed by `arose index query`; `-` reads them from standard input, one per line
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
}

/// Show document counts, disk use and memory use.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  arose index status seen
  arose index status --json seen")]
struct StatusOptions {
    /// Directory of the index
    #[arg(value_name = "INDEX")]
    folder: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The options of commands that take only an index.
#[derive(clap::Args)]
struct IndexDir {
    /// Directory of the index
    #[arg(value_name = "INDEX")]
    folder: PathBuf,
}

/// Runs a command on an index.
pub(crate) fn run(options: &Options) -> anyhow::Result<Outcome> {
    match &options.command {
        Command::Create(options) => create(options),
        Command::Add(options) => add::run(options),
        Command::Query(options) => query::run(options),
        Command::Remove(options) => remove(options),
        Command::Status(options) => status(options),
        Command::Verify(options) => verify(options),
        Command::Compact(options) => compact(options),
    }
}

fn create(options: &Create) -> anyhow::Result<Outcome> {
    if options.passages {
        return passages::create(&options.folder, options.min);
    }
    let policy = options.policy();
    let is_indexed = policy.has_sketches() || policy == PolicyName::Exact;
    ensure!(
        is_indexed,
        "an index does not support --policy {}; use that policy with `arose dedup`",
        policy.criterion(None).name()
    );
    check_used(options)?;
    let default = Settings::default();
    let criterion = match options.remove {
        Some(level) => level.criterion(),
        None => policy.criterion(options.threshold),
    };
    let settings = Settings {
        kind: kind(options, criterion),
        short: short_policy(options.short),
        shingle: shingle_length(criterion, options.shingle, options.cjk_shingle),
        seed: options.seed.unwrap_or(default.seed),
        site: site_kind(options.site),
    };
    Index::create(&options.folder, settings)?;
    remark(format_args!(
        "arose: created an index in `{}`",
        options.folder.display()
    ));
    Ok(Outcome::Found)
}

impl Create {
    /// The policy, given or by default.
    fn policy(&self) -> PolicyName {
        let has_options_of_jaccard = self.threshold.is_some()
            || self.recall.is_some()
            || self.shingle.is_some()
            || self.cjk_shingle.is_some()
            || self.short.is_some()
            || self.samples.is_some();
        PolicyName::chosen(self.policy, has_options_of_jaccard)
    }
}

fn check_used(options: &Create) -> anyhow::Result<()> {
    let policy = options.policy();
    let is_jaccard = policy == PolicyName::Jaccard;
    let is_content = policy == PolicyName::Content;
    let is_near = policy != PolicyName::Exact;
    let is_compared = is_near && !is_content;
    let has_features = is_compared && !matches!(policy, PolicyName::Jaccard | PolicyName::C);
    policy.check_used(&[
        ("--threshold", options.threshold.is_some(), is_jaccard),
        ("--recall", options.recall.is_some(), is_jaccard),
        ("--minhash", options.samples.is_some(), is_jaccard),
        ("--site", options.site.is_some(), policy.is_by_site()),
        ("--keys", options.keys.is_some(), has_features),
        ("--shingle", options.shingle.is_some(), is_compared),
        ("--cjk-shingle", options.cjk_shingle.is_some(), is_compared),
        ("--short", options.short.is_some(), is_compared),
        ("--remove", options.remove.is_some(), is_content),
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
            say(format_args!("arose: no document `{}`", printable(name)));
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

fn status(options: &StatusOptions) -> anyhow::Result<Outcome> {
    if is_index(&options.folder) {
        return passages::status(&options.folder, options.json);
    }
    let reader = Reader::open(&options.folder)?;
    let status = reader.status();
    let rows = [
        ("documents", status.n_docs),
        ("removed", status.n_dead),
        ("in_log", status.n_recent),
        ("sorted_runs", status.n_runs as u64),
        ("record_files", status.n_record_files as u64),
        ("entries", status.n_entries),
        ("disk_bytes", bytes_on_disk(&options.folder)?),
        ("memory_bytes", status.memory_bytes),
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
        writeln!(out, "policy: {policy}").and_then(|()| {
            rows.iter()
                .try_for_each(|(name, value)| row(&mut out, &text(name), value, ""))
        })
    };
    written
        .and_then(|()| out.flush())
        .context("cannot write the result")?;
    Ok(Outcome::Found)
}

/// Bytes of all files of an index, the log included. A file that a writer removes meanwhile does
/// not count.
fn bytes_on_disk(folder: &Path) -> anyhow::Result<u64> {
    let files =
        fs::read_dir(folder).with_context(|| format!("cannot read `{}`", folder.display()))?;
    let sizes = files.flatten().filter_map(|file| file.metadata().ok());
    Ok(sizes.map(|file| file.len()).sum())
}

fn verify(options: &IndexDir) -> anyhow::Result<Outcome> {
    passages::refuse(&options.folder, "verify")?;
    let verified = index::verify(&options.folder)?;
    remark(format_args!(
        "no damage in {}, {} and {}",
        counted(verified.n_files, "file", "files"),
        counted(verified.n_records, "record", "records"),
        counted(verified.n_entries, "entry", "entries")
    ));
    Ok(Outcome::Found)
}

fn compact(options: &IndexDir) -> anyhow::Result<Outcome> {
    passages::refuse(&options.folder, "compact")?;
    let index = Index::open(&options.folder)?;
    let before = index.status()?;
    index.compact()?;
    let after = index.status()?;
    remark(format_args!(
        "{} in {} bytes; reclaimed {}",
        counted(after.n_docs, "document", "documents"),
        after.disk_bytes,
        counted(before.n_dead, "removed document", "removed documents")
    ));
    Ok(Outcome::Found)
}

/// A document to add or to look up, or a skipped record.
enum Work {
    Document(String, Sketch),
    Skipped(Warning),
}

/// Reads documents and sketches them in all threads.
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
