//! `arose dedup`: finds the duplicates in files and keeps one of each group.

pub(crate) mod progress;
pub(crate) mod summary;

use std::io::{self, BufWriter, Write};
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, ensure};
use arose::Threshold;
use arose::quality::Selection;
use arose::rule::{Criterion, Policy, Remove};
use arose_dedup::{
    Against, Config, DroppedAs, Empty, Exact, Keep, KeptAs, ListedPairs, OnLoss, Output, Progress,
    Quality, SiteCounts, Start, Update, Verify,
};
use clap::ValueEnum;
use serde_json::{Value, json};

use crate::corpus;
use crate::output::{watch, write_json};
use crate::policy::{
    PolicyName, ShortName, SiteName, shingle_length, short_policy, site_kind, threshold,
};
use crate::quality;
use crate::read::Outcome;
use summary::{outcome, tell};

/// Finds exact and near duplicates in files and keeps one document of each group.
///
/// Reads what `arose read` reads: WARC, JSON, Parquet, CSV, folders of pages, each plain, gzip,
/// zstd, xz or bzip2. Writes into OUT: documents.parquet (a row per document: kept or not, for
/// which document, by which rule, how similar), pairs.parquet (each dropped document and its kept
/// one, with their scores), kept.* (the documents that stay, in the format they came in),
/// summary.json and report.html. A run that was interrupted goes on where it was when it is
/// started again.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  arose dedup corpus.jsonl -o out
  arose dedup 'crawl/*.warc.gz' -o out --policy site
  arose dedup pages/ -o out --threshold 0.9 --keep longest
  zcat corpus.jsonl.gz | arose dedup - -o out
  arose dedup crawl -o out                    # the folder of arose crawl
  arose dedup corpus.parquet -o out --dry-run
  arose dedup . -o out --include '*.md' --exclude drafts
  arose dedup tomorrow.warc.gz -o out --against seen --update-index
  arose dedup corpus.jsonl -o out --filter gopher,fineweb_dup_chars
  arose dedup crawl.warc.gz -o out --dropped revisit --max-file-size 1GiB

Policies:
  exact     the text is the same, symbols included
  jaccard   the share of common shingles reaches --threshold
  content   the own text is the same, in the same order; what a site repeats on
            its other pages counts less
  b         2 of 6 super-shingles agree (Broder)
  c         372 of 384 simhash bits agree (Charikar)
  combined  b, and 355 bits agree (Henzinger)
  site      combined inside a site, c between sites
  site-union  as site, and combined between sites too
  contained  a longer kept document has --threshold of its shingles (0.9): excerpts, teasers
  url       the normalized URL is the same, whatever the text

Exit code: 0 if done, 1 if there were no documents, 2 on error, 3 if a file could not be read
completely.")]
pub(crate) struct Options {
    /// Files, folders, patterns; `-` is standard input.
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// The folder to write into; it is made if it is not there.
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// What makes two documents duplicates.
    #[arg(long, value_enum, default_value_t = PolicyName::Jaccard)]
    policy: PolicyName,
    /// Minimum Jaccard similarity of duplicates (policy jaccard), or share of a document that
    /// another contains (policy contained). [default: 0.8, and 0.9 for contained]
    #[arg(long, value_name = "J", value_parser = threshold)]
    threshold: Option<Threshold>,
    /// Level at which duplicates are removed (policy content). [default: same]
    #[arg(long, value_enum)]
    remove: Option<RemoveName>,
    /// How the word pairs that sites repeat are counted (policy content). [default: exact]
    #[arg(long, value_enum)]
    site_counts: Option<SiteCountsName>,
    /// Tokens per shingle. [default: 5, and 8 for the other policies]
    #[arg(short = 'w', long = "shingle", value_name = "N")]
    w: Option<NonZeroUsize>,
    /// Tokens per shingle of documents in scripts without blanks. [default: as --shingle]
    #[arg(long = "cjk-shingle", value_name = "N")]
    cjk_w: Option<NonZeroUsize>,
    /// Share of the pairs at the threshold to find, at least (policy jaccard). [default: 0.995]
    #[arg(long, value_name = "SHARE", value_parser = threshold)]
    recall: Option<Threshold>,
    /// What pairs are verified against before they are reported. [default: text]
    #[arg(long, value_enum)]
    verify: Option<VerifyName>,
    /// Which document of a group stays.
    #[arg(long, value_enum, default_value_t = KeepName::First)]
    keep: KeepName,
    /// The field or column with the number for --keep priority; the greatest stays.
    #[arg(long, value_name = "NAME", required_if_eq("keep", "priority"))]
    priority_field: Option<String>,
    /// Field or column with the time for --keep newest or copies, before the usual guesses
    #[arg(long, value_name = "NAME")]
    time_field: Option<String>,
    /// What exact duplicates have in common
    #[arg(long, value_enum, default_value_t = ExactName::Text)]
    exact: ExactName,
    /// Drop empty documents, which are kept otherwise: they are never duplicates
    #[arg(long)]
    drop_empty: bool,
    /// What makes duplicates of documents under two shingles. [default: exact]
    #[arg(long, value_enum)]
    short: Option<ShortName>,
    /// What a site is (policies content, site and site-union). [default: registrable]
    #[arg(long, value_enum)]
    site: Option<SiteName>,
    /// Documents under one key whose sketches are all compared; with more, each meets fewer.
    /// [default: 1024]
    #[arg(long, value_name = "N")]
    cap: Option<NonZeroUsize>,
    /// Pairs to list in pairs.parquet; does not affect which documents are kept
    #[arg(long, value_enum, default_value_t = PairsName::Verified)]
    pairs: PairsName,
    /// Selects the permutations. [default: 1]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Memory to stay under, such as 2GiB; results do not depend on it. [default: half of
    /// the machine's or container's]
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    memory: Option<u64>,
    /// Drops what this index (see `arose index`) knows by its own rule, before anything else.
    #[arg(long, value_name = "INDEX")]
    against: Option<PathBuf>,
    /// Adds the documents kept to the index, once the run is complete.
    #[arg(long, requires = "against")]
    update_index: bool,
    /// What dropped documents of web archives become. [default: remove]
    #[arg(long, value_enum, conflicts_with = "ids_only")]
    dropped: Option<DroppedName>,
    /// Split the files of kept documents so that none is larger, e.g. 1GiB.
    #[arg(long, value_name = "SIZE", value_parser = file_size, conflicts_with = "ids_only")]
    max_file_size: Option<NonZeroU64>,
    /// Write the names of the kept documents to kept.ids.jsonl, and no copies.
    #[arg(long)]
    ids_only: bool,
    /// Measure the quality of documents: signals of spam and the rules of Gopher, C4 and FineWeb
    /// as columns of documents.parquet, with examples in the report
    #[arg(long)]
    quality: bool,
    /// Drop documents that fail these rules, before anything else: gopher, c4, fineweb, or rules by
    /// name, separated by commas; implies --quality
    #[arg(long, value_name = "RULES", value_delimiter = ',', value_parser = quality::filter)]
    filter: Vec<Selection>,
    /// Milliseconds between two checkpoints of reading, for tests.
    #[arg(long, value_name = "N", hide = true)]
    checkpoint_millis: Option<u64>,
    /// Removes a run that is in OUT and begins anew.
    #[arg(long)]
    force: bool,
    /// Prints what would be done, found and needed, and does nothing.
    #[arg(long)]
    dry_run: bool,
    /// Prints the summary as JSON.
    #[arg(long)]
    json: bool,
    /// Print how pairs are searched for, and the probability of finding one by its similarity
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    corpus: corpus::Choosing,
    /// Stop with exit code 2 if part of the input cannot be read, before any document is kept.
    #[arg(long)]
    strict: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum VerifyName {
    /// The shingles of the texts, exactly.
    Text,
    /// The sketches.
    Sketch,
    /// Nothing.
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RemoveName {
    /// The same document; other versions of its content are kept and grouped
    Same,
    /// The same content, in whatever version
    Content,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SiteCountsName {
    /// All of them
    Exact,
    /// One in 16, with less temporary disk; less accurate
    Sampled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DroppedName {
    /// Nothing: their records go
    Remove,
    /// Revisit records, which refer to the kept document
    Revisit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ExactName {
    /// The text after Unicode (NFC) and whitespace normalization, symbols included
    Text,
    /// The bytes of the text or page
    Bytes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PairsName {
    /// Each dropped document with its kept one, and the other pairs verified to find them
    Verified,
    /// Every pair found at or above the threshold
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum KeepName {
    /// The first in the input.
    First,
    /// The one with most text.
    Longest,
    /// The one fetched last.
    Newest,
    /// The one with most exact copies.
    Copies,
    /// The one with the greatest number in the field --priority-field.
    Priority,
}

pub(crate) fn run(options: &Options) -> anyhow::Result<Outcome> {
    crate::input::check_standard_input_once(&options.inputs)?;
    check_used(options)?;
    let inputs = crate::crawl::expand(&options.inputs)?;
    let mut config = config(options)?;
    // Error pages of a crawl are not documents.
    if inputs != options.inputs {
        config.corpus.statuses = arose_corpus::Statuses::Success;
    }
    if options.dry_run {
        return plan(options, &inputs, &config);
    }
    announce(options, &config)?;
    let start = match options.force {
        true => Start::Anew,
        false => Start::Resume,
    };
    let progress = Progress::default();
    let summary = watch(progress::line_of(&progress), || {
        arose_dedup::run(&inputs, &config, &options.output, start, &progress)
    })?;
    let mut out = BufWriter::new(io::stdout().lock());
    let written = if options.json {
        write_json(&mut out, &summary)
    } else {
        tell(&mut out, &summary, &options.output)
    };
    written
        .and_then(|()| out.flush())
        .context("cannot write the result")?;
    Ok(outcome(&summary))
}

/// An option that the policy or the choice of the kept document does not look at is a mistake.
fn check_used(options: &Options) -> anyhow::Result<()> {
    let policy = options.policy;
    let is_jaccard = policy == PolicyName::Jaccard;
    let is_near = policy.has_sketches();
    let is_content = policy == PolicyName::Content;
    let is_compared = is_near && !is_content;
    let has_shingles = is_compared || policy == PolicyName::Contained;
    let is_url = policy == PolicyName::Url;
    policy.check_used(&[
        (
            "--threshold",
            options.threshold.is_some(),
            policy.has_threshold(),
        ),
        ("--recall", options.recall.is_some(), is_jaccard),
        ("--site", options.site.is_some(), policy.is_by_site()),
        ("--remove", options.remove.is_some(), is_content),
        ("--site-counts", options.site_counts.is_some(), is_content),
        ("--shingle", options.w.is_some(), has_shingles),
        ("--cjk-shingle", options.cjk_w.is_some(), has_shingles),
        ("--drop-empty", options.drop_empty, !is_url),
        ("--verify", options.verify.is_some(), is_compared),
        ("--short", options.short.is_some(), is_compared),
        ("--cap", options.cap.is_some(), is_near),
        ("--seed", options.seed.is_some(), is_near),
    ])?;
    let is_copies = options.keep == KeepName::Copies;
    ensure!(
        options.priority_field.is_none() || is_copies || options.keep == KeepName::Priority,
        "--priority-field has no effect without --keep priority or --keep copies"
    );
    ensure!(
        options.time_field.is_none() || is_copies || options.keep == KeepName::Newest,
        "--time-field has no effect without --keep newest or --keep copies"
    );
    Ok(())
}

fn config(options: &Options) -> anyhow::Result<Config> {
    let criterion = match options.remove {
        Some(RemoveName::Content) => Criterion::Content(Remove::Content),
        _ => options.policy.criterion(options.threshold),
    };
    let default = Config::default();
    let index = options.against.iter().cloned();
    let skip = index.chain([options.output.clone()]).collect();
    let mut corpus = options.corpus.config(skip);
    corpus.fields.priority = options.priority_field.iter().cloned().collect();
    corpus
        .fields
        .fetched
        .splice(..0, options.time_field.iter().cloned());
    corpus::allow_large_documents(&mut corpus);
    Ok(Config {
        policy: Policy {
            criterion,
            short: short_policy(options.short),
        },
        shingle: shingle_length(criterion, options.w, options.cjk_w),
        recall: options.recall.unwrap_or(default.recall),
        verify: match options.verify {
            None | Some(VerifyName::Text) => Verify::Text,
            Some(VerifyName::Sketch) => Verify::Sketch,
            Some(VerifyName::None) => Verify::None,
        },
        keep: match options.keep {
            KeepName::First => Keep::First,
            KeepName::Longest => Keep::Longest,
            KeepName::Newest => Keep::Newest,
            KeepName::Copies => Keep::Copies,
            KeepName::Priority => Keep::Priority,
        },
        exact: match options.exact {
            ExactName::Text => Exact::Text,
            ExactName::Bytes => Exact::Bytes,
        },
        empty: match options.drop_empty {
            true => Empty::Drop,
            false => Empty::Keep,
        },
        cap: options.cap.unwrap_or(default.cap),
        pairs: match options.pairs {
            PairsName::Verified => ListedPairs::Verified,
            PairsName::All => ListedPairs::All,
        },
        site: site_kind(options.site),
        site_counts: match options.site_counts {
            None | Some(SiteCountsName::Exact) => SiteCounts::Exact,
            Some(SiteCountsName::Sampled) => SiteCounts::Sampled,
        },
        seed: options.seed.unwrap_or(default.seed),
        memory: options.memory.unwrap_or_else(arose_dedup::default_memory),
        against: options.against.clone().map(|index| Against {
            index,
            update: match options.update_index {
                true => Update::Add,
                false => Update::Leave,
            },
        }),
        output: Output {
            kept: match options.ids_only {
                true => KeptAs::Ids,
                false => KeptAs::Copies,
            },
            dropped: match options.dropped {
                None | Some(DroppedName::Remove) => DroppedAs::Nothing,
                Some(DroppedName::Revisit) => DroppedAs::Revisit,
            },
            max_file_bytes: options.max_file_size,
        },
        checkpoint: match options.checkpoint_millis {
            Some(millis) => Duration::from_millis(millis),
            None => default.checkpoint,
        },
        quality: quality::chosen(options.quality, &options.filter).map(|filter| Quality { filter }),
        on_loss: match options.strict {
            true => OnLoss::Refuse,
            false => OnLoss::Report,
        },
        corpus,
    })
}

/// Memory as written on the command line.
fn memory(text: &str) -> Result<u64, String> {
    match size(text)? {
        bytes if bytes >= MIN_MEMORY => Ok(bytes),
        _ => Err(format!("expected at least {} MiB", MIN_MEMORY >> 20)),
    }
}

/// The size of a file as written on the command line.
fn file_size(text: &str) -> Result<NonZeroU64, String> {
    NonZeroU64::new(size(text)?).ok_or_else(|| "expected at least 1 byte".to_owned())
}

/// A number of bytes: `512MiB`, `2GB`, `1073741824`.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..].to_ascii_lowercase()[..] {
        "" | "b" => 1_u64,
        "k" | "kib" => 1 << 10,
        "kb" => 1_000,
        "m" | "mib" => 1 << 20,
        "mb" => 1_000_000,
        "g" | "gib" => 1 << 30,
        "gb" => 1_000_000_000,
        "t" | "tib" => 1 << 40,
        "tb" => 1_000_000_000_000,
        _ => return Err("expected a size such as 2GiB or 500MB".to_owned()),
    };
    let number: f64 = digits
        .trim()
        .parse()
        .map_err(|_| "expected a size such as 2GiB".to_owned())?;
    let bytes = number * unit as f64;
    match bytes.is_finite() && bytes >= 0.0 {
        true => Ok(bytes as u64),
        false => Err("expected a size such as 2GiB".to_owned()),
    }
}

const MIN_MEMORY: u64 = 64 << 20;

/// Says what will be done before it is.
fn announce(options: &Options, config: &Config) -> anyhow::Result<()> {
    let promise = arose_dedup::promise(config)?;
    let at = |similarity: f64| {
        promise
            .iter()
            .find(|(s, _)| *s == similarity)
            .map(|(_, p)| *p)
    };
    let chances: Vec<String> = [0.7, 0.8, 0.85, 0.9, 0.95]
        .into_iter()
        .filter_map(|s| Some(format!("{:.4} at {s}", at(s)?)))
        .collect();
    let method = arose_dedup::method(config)?;
    match (options.verbose, options.policy.has_sketches()) {
        (false, _) => {}
        (true, false) => eprintln!("arose dedup: {method}"),
        (true, true) => eprintln!(
            "arose dedup: {method}; probability of finding a pair: {}",
            chances.join(", ")
        ),
    }
    Ok(())
}

/// What a run would do, find and need.
fn plan(options: &Options, inputs: &[PathBuf], config: &Config) -> anyhow::Result<Outcome> {
    let plan = arose_dedup::plan(inputs, config)?;
    let promise = arose_dedup::promise(config)?;
    let mut out = BufWriter::new(io::stdout().lock());
    if options.json {
        let curve: Vec<Value> = promise
            .iter()
            .map(|(s, p)| json!({ "similarity": s, "probability": p }))
            .collect();
        let value = json!({
            "method": arose_dedup::method(config)?,
            "recall": curve,
            "input_bytes": plan.input_bytes,
            "documents": plan.documents,
            "text_bytes": plan.text_bytes,
            "memory_bytes": plan.memory_bytes,
            "disk_bytes": plan.disk_bytes,
        });
        write_json(&mut out, &value)?;
        return Ok(Outcome::Found);
    }
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    writeln!(out, "input           {:>10} MiB", mib(plan.input_bytes))?;
    writeln!(out, "documents       {:>10} (estimated)", plan.documents)?;
    writeln!(
        out,
        "text            {:>10} MiB (estimated)",
        mib(plan.text_bytes)
    )?;
    writeln!(out, "memory          {:>10} MiB", mib(plan.memory_bytes))?;
    writeln!(
        out,
        "disk            {:>10} MiB while it runs",
        mib(plan.disk_bytes)
    )?;
    writeln!(out, "method: {}", arose_dedup::method(config)?)?;
    writeln!(
        out,
        "a pair of this similarity is found with this probability:"
    )?;
    for (similarity, probability) in promise {
        writeln!(out, "  {similarity:<6} {probability:.4}")?;
    }
    out.flush().context("cannot write the result")?;
    Ok(Outcome::Found)
}
