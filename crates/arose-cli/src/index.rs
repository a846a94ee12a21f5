//! `arose index`: the online index on the command line.

mod add;
mod query;

use std::io::{self, BufRead as _, BufWriter, Write};
use std::num::{NonZeroU16, NonZeroUsize};
use std::path::PathBuf;

use anyhow::{Context, ensure};
use arose::rule::Criterion;
use arose::shingle::ShingleLength;
use arose::site::SiteKind;
use arose_corpus::{Config, Documents, Item, Warning};
use arose_dedup::index::{self, FeatureKeys, Index, Kind, Reader, Settings, Sketch, Sketcher};
use clap::{Subcommand, ValueEnum};
use serde_json::json;

use crate::output::{printable, write_json};
use crate::read::Outcome;

/// Keeps what was seen so far and tells what is much like it.
///
/// An index is a folder. It holds sketches of documents, about 215 bytes each, not the documents.
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
  arose index create --policy b --keys mega seen
  arose index create --policy full --samples 200 --agree 160 seen

Policies:
  exact       equal texts only
  b           2 of 6 features agree
  c           372 of 384 bits of the simhash agree
  combined    2 features and 355 bits agree
  site        combined on one site, 372 bits between sites, both where sites are unknown
  site-union  as site, and combined also between sites
  full        --agree of --samples samples of the full sketch agree, 8 bytes a sample
Equal texts are duplicates under every policy. Texts below twice the shingle length are
duplicates only if equal. All this is fixed when the index is made.")]
struct Create {
    /// The folder, empty or not yet there.
    folder: PathBuf,
    /// What makes two documents duplicates.
    #[arg(long, value_enum, default_value_t = PolicyName::Site)]
    policy: PolicyName,
    /// Tokens in a shingle.
    #[arg(long, value_name = "W", default_value_t = arose::shingle::DEFAULT_W)]
    shingle: NonZeroUsize,
    /// How documents with common features are found: by one of five features, or by any two of six
    /// together, which takes more space and less time where many documents share a template.
    #[arg(long, value_enum, default_value_t = KeysName::Tables)]
    keys: KeysName,
    /// Where hosts are cut to give sites.
    #[arg(long, value_enum, default_value_t = SiteName::Registrable)]
    site: SiteName,
    /// Samples in a full sketch, for the policy `full`; 200 if not given.
    #[arg(long, value_name = "T")]
    samples: Option<NonZeroU16>,
    /// Samples that must agree, for the policy `full`; four fifths if not given.
    #[arg(long, value_name = "M")]
    agree: Option<NonZeroU16>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PolicyName {
    Exact,
    B,
    C,
    Combined,
    Site,
    SiteUnion,
    Full,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum KeysName {
    Tables,
    Mega,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum SiteName {
    Registrable,
    Henzinger,
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
    let is_full = options.policy == PolicyName::Full;
    ensure!(
        is_full || (options.samples.is_none() && options.agree.is_none()),
        "--samples and --agree are for the policy full only"
    );
    let settings = Settings {
        kind: kind(options),
        shingle: ShingleLength::uniform(options.shingle),
        site: match options.site {
            SiteName::Registrable => SiteKind::Registrable,
            SiteName::Henzinger => SiteKind::Henzinger,
        },
        ..Settings::default()
    };
    Index::create(&options.folder, settings)?;
    Ok(Outcome::Found)
}

fn kind(options: &Create) -> Kind {
    let criterion = match options.policy {
        PolicyName::Exact => return Kind::Exact,
        PolicyName::Full => {
            let n_samples = options.samples.unwrap_or(DEFAULT_SAMPLES);
            let four_fifths = NonZeroU16::new(n_samples.get() - n_samples.get() / 5);
            return Kind::Full {
                n_samples,
                min_agreeing: options.agree.or(four_fifths).unwrap_or(n_samples),
            };
        }
        PolicyName::B => Criterion::PUBLISHED_B,
        PolicyName::C => Criterion::PUBLISHED_C,
        PolicyName::Combined => Criterion::PUBLISHED_COMBINED,
        PolicyName::Site => Criterion::SITE,
        PolicyName::SiteUnion => Criterion::SITE_UNION,
    };
    let keys = match options.keys {
        KeysName::Tables => FeatureKeys::Tables,
        KeysName::Mega => FeatureKeys::Mega,
    };
    Kind::Compact { criterion, keys }
}

/// Samples of Broder's full sketch.
const DEFAULT_SAMPLES: NonZeroU16 = NonZeroU16::new(200).expect("200 is not zero");

fn remove(options: &Remove) -> anyhow::Result<Outcome> {
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
    let policy = policy_name(&reader.settings().kind);
    let mut out = BufWriter::new(io::stdout().lock());
    let written = if options.json {
        let mut object = json!({ "policy": policy, "shingle": reader.settings().shingle.w });
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

fn policy_name(kind: &Kind) -> String {
    let Kind::Compact { criterion, .. } = kind else {
        return match kind {
            Kind::Full {
                n_samples,
                min_agreeing,
            } => format!("full, {min_agreeing} of {n_samples}"),
            _ => "exact".to_owned(),
        };
    };
    let name = match *criterion {
        Criterion::SITE_UNION => "site-union",
        Criterion::B { .. } => "b",
        Criterion::C { .. } => "c",
        Criterion::Combined(_) => "combined",
        Criterion::Site { .. } => "site",
        Criterion::Jaccard(_) => "jaccard",
        Criterion::Exact => "exact",
    };
    name.to_owned()
}

fn verify(options: &Folder) -> anyhow::Result<Outcome> {
    let verified = index::verify(&options.folder)?;
    eprintln!(
        "{} files, {} records and {} entries are sound",
        verified.n_files, verified.n_records, verified.n_entries
    );
    Ok(Outcome::Found)
}

fn compact(options: &Folder) -> anyhow::Result<Outcome> {
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
