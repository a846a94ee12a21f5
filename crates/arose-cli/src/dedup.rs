//! `arose dedup`: finds duplicates in files and keeps one copy of each.

pub(crate) mod progress;
pub(crate) mod start;
pub(crate) mod summary;

use std::io::{self, BufWriter, Write};
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, ensure};
use arose::Threshold;
use arose::quality::Selection;
use arose::rule::Policy;
use arose_dedup::{
    Against, Config, DroppedAs, Empty, Exact, Keep, KeptAs, ListedPairs, OnLoss, Output, Progress,
    Quality, SiteCounts, Start, Update, Verify, Versions,
};
use clap::ValueEnum;
use serde_json::{Value, json};

use crate::corpus;
use crate::options::{file_size, memory, positive, threshold};
use crate::output::{look, row, say, write_json};
use crate::policy::{
    PolicyName, RemoveName, ShortName, SiteName, shingle_length, short_policy, site_kind,
};
use crate::progress::watch;
use crate::quality;
use crate::read::Outcome;
use summary::{outcome, tell};

/// Find exact and near duplicates in files and keep one copy of each.
///
/// Reads everything that `arose read` reads: WARC, JSON Lines, Parquet, CSV and directories of
/// pages, compressed with gzip, zstd, xz or bzip2 or not. Writes to OUT: documents.parquet (a row
/// per document: kept or dropped, for which document, by which rule, how similar), pairs.parquet
/// (each dropped document and its kept one, with their scores), kept.* (kept documents in their
/// input format), summary.json and report.html. An interrupted run resumes when you start it
/// again.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  arose dedup corpus.jsonl -o out
  arose dedup 'crawl/*.warc.gz' -o out --policy site
  arose dedup pages/ -o out --remove content --keep longest
  arose dedup corpus.jsonl -o out --policy jaccard --threshold 0.9
  zcat corpus.jsonl.gz | arose dedup - -o out
  arose dedup crawl -o out                    # the directory of arose crawl
  arose dedup corpus.parquet -o out --dry-run
  arose dedup . -o out --include '*.md' --exclude drafts
  arose dedup tomorrow.warc.gz -o out --against seen --update-index
  arose dedup corpus.jsonl -o out --filter gopher,fineweb_dup_chars
  arose dedup crawl.warc.gz -o out --dropped revisit --max-file-size 1GiB

`arose help policies` describes the policies.

Exit code: 0 if done, 1 if there were no documents, 2 on error, 3 if a file could not be read
completely.")]
pub(crate) struct Options {
    /// Files, directories, patterns; `-` is standard input
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Output directory; created if missing
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Definition of a duplicate; see `arose help policies` [default: content]
    #[arg(long, value_enum)]
    policy: Option<PolicyName>,
    /// Minimum Jaccard similarity of duplicates (policy jaccard), or share of a document that
    /// another contains (policy contained) [default: 0.8, or 0.9 for contained]
    #[arg(long, value_name = "J", value_parser = threshold)]
    threshold: Option<Threshold>,
    /// Level at which duplicates are dropped (policy content) [default: same]
    #[arg(long, value_enum)]
    remove: Option<RemoveName>,
    /// How to count the word pairs that sites repeat (policy content) [default: exact]
    #[arg(long, value_enum)]
    site_counts: Option<SiteCountsName>,
    /// Tokens per shingle [default: 5, or 8 for the policies b, c, combined, site and site-union]
    #[arg(short = 'w', long = "shingle", value_name = "N", value_parser = positive)]
    w: Option<NonZeroUsize>,
    /// Tokens per shingle in scripts written without spaces [default: value of --shingle]
    #[arg(long = "cjk-shingle", value_name = "N", value_parser = positive)]
    cjk_w: Option<NonZeroUsize>,
    /// Minimum recall of pairs at the threshold (policy jaccard) [default: 0.995]
    #[arg(long, value_name = "SHARE", value_parser = threshold)]
    recall: Option<Threshold>,
    /// How to verify candidate pairs [default: text]
    #[arg(long, value_enum)]
    verify: Option<VerifyName>,
    /// Which duplicate to keep
    #[arg(long, value_enum, default_value_t = KeepName::First)]
    keep: KeepName,
    /// Field or column with the number for --keep priority; the greatest is kept
    #[arg(long, value_name = "NAME", required_if_eq("keep", "priority"))]
    priority_field: Option<String>,
    /// Field or column with the time for --keep newest or copies, tried before the defaults
    #[arg(long, value_name = "NAME")]
    time_field: Option<String>,
    /// What must be the same in exact duplicates
    #[arg(long, value_enum, default_value_t = ExactName::Text)]
    exact: ExactName,
    /// Drop empty documents; otherwise they are kept and are never duplicates
    #[arg(long)]
    drop_empty: bool,
    /// Which versions of a page to keep, if the input has several of a URL; current reads the input
    /// twice
    #[arg(long, value_enum, default_value_t = VersionsName::All)]
    versions: VersionsName,
    /// How to match documents shorter than two shingles [default: exact]
    #[arg(long, value_enum)]
    short: Option<ShortName>,
    /// How to derive the site from a host (policies content, site and site-union)
    /// [default: registrable]
    #[arg(long, value_enum)]
    site: Option<SiteName>,
    /// Compare all pairs only for keys shared by at most N documents [default: 1024]
    #[arg(long, value_name = "N", value_parser = positive)]
    cap: Option<NonZeroUsize>,
    /// Pairs to list in pairs.parquet; does not affect which documents are kept
    #[arg(long, value_enum, default_value_t = PairsName::Verified)]
    pairs: PairsName,
    /// Seed of the MinHash permutations [default: 1]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Memory limit, e.g. 2GiB; does not affect results [default: half of the machine's or
    /// container's]
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    memory: Option<u64>,
    /// First drop documents already in this index, as decided by its own policy
    #[arg(long, value_name = "INDEX")]
    against: Option<PathBuf>,
    /// Add the kept documents to the index when the run is complete
    #[arg(long, requires = "against")]
    update_index: bool,
    /// What to write for dropped documents of web archives [default: remove]
    #[arg(long, value_enum, conflicts_with = "ids_only")]
    dropped: Option<DroppedName>,
    /// Maximum size of a file of kept documents, e.g. 1GiB; larger ones are split
    #[arg(long, value_name = "SIZE", value_parser = file_size, conflicts_with = "ids_only")]
    max_file_size: Option<NonZeroU64>,
    /// Write the names of kept documents to kept.ids.jsonl, not the documents
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
    /// Milliseconds between checkpoints of reading, for tests
    #[arg(long, value_name = "N", hide = true)]
    checkpoint_millis: Option<u64>,
    /// Replace an existing run in OUT
    #[arg(long)]
    force: bool,
    /// Print the method, expected recall and resource needs, then exit
    #[arg(long)]
    dry_run: bool,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    corpus: corpus::Choosing,
    /// Stop with exit code 2 if part of the input cannot be read, before any document is kept
    #[arg(long)]
    strict: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum VerifyName {
    /// By the exact similarity of the texts
    Text,
    /// By the similarity estimated from sketches
    Sketch,
    /// Not at all
    None,
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
    /// Nothing
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

/// Versions of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum VersionsName {
    /// All of them
    All,
    /// The one fetched last
    Current,
}

impl From<VersionsName> for Versions {
    fn from(name: VersionsName) -> Self {
        match name {
            VersionsName::All => Self::All,
            VersionsName::Current => Self::Current,
        }
    }
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
    /// The first in the input
    First,
    /// The one with the most text
    Longest,
    /// The one fetched last
    Newest,
    /// The one with the most exact duplicates
    Copies,
    /// The one with the greatest number in the field of --priority-field
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
    let before = start::look_at(&options.output, start);
    let progress = start::interruptible(Progress::default());
    let summary = watch(progress::step_of(&progress), || {
        arose_dedup::run(&inputs, &config, &options.output, start, &progress)
    })?;
    before.tell(&options.output);
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

impl Options {
    /// The policy, given or by default.
    fn policy(&self) -> PolicyName {
        let has_options_of_jaccard = self.threshold.is_some()
            || self.recall.is_some()
            || self.w.is_some()
            || self.cjk_w.is_some()
            || self.verify.is_some()
            || self.short.is_some();
        PolicyName::chosen(self.policy, has_options_of_jaccard)
    }
}

/// Returns an error for options that have no effect with the policy or with --keep.
fn check_used(options: &Options) -> anyhow::Result<()> {
    let policy = options.policy();
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
        options.time_field.is_none()
            || is_copies
            || options.keep == KeepName::Newest
            || options.versions == VersionsName::Current,
        "--time-field has no effect without --keep newest, --keep copies or --versions current"
    );
    Ok(())
}

fn config(options: &Options) -> anyhow::Result<Config> {
    let criterion = match options.remove {
        Some(level) => level.criterion(),
        None => options.policy().criterion(options.threshold),
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
        versions: options.versions.into(),
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

/// With --verbose, prints the method and the probability of finding a pair.
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
    match (look().is_verbose, options.policy().has_sketches()) {
        (false, _) => {}
        (true, false) => say(format_args!("arose dedup: {method}")),
        (true, true) => say(format_args!(
            "arose dedup: {method}; probability of finding a pair: {}",
            chances.join(", ")
        )),
    }
    Ok(())
}

/// Prints the method, the expected recall and the resource needs of a run.
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
    row(&mut out, "input", mib(plan.input_bytes), "MiB")?;
    row(&mut out, "documents", plan.documents, "estimated")?;
    row(&mut out, "text", mib(plan.text_bytes), "MiB, estimated")?;
    row(&mut out, "memory", mib(plan.memory_bytes), "MiB")?;
    row(&mut out, "disk", mib(plan.disk_bytes), "MiB while it runs")?;
    writeln!(out, "method: {}", arose_dedup::method(config)?)?;
    writeln!(out, "probability of finding a pair, by similarity:")?;
    for (similarity, probability) in promise {
        row(
            &mut out,
            &format!("  {similarity}"),
            format!("{probability:.4}"),
            "",
        )?;
    }
    out.flush().context("cannot write the result")?;
    Ok(Outcome::Found)
}
