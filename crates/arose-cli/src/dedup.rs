//! `arose dedup`: finds the duplicates in files and keeps one of each group.

use std::io::{self, BufWriter, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use arose::rule::{Criterion, Policy, ShortPolicy};
use arose::shingle::ShingleLength;
use arose::site::SiteKind;
use arose::{Threshold, shingle};
use arose_dedup::{Against, Config, Keep, ListedPairs, Progress, Snapshot, Start, Update, Verify};
use clap::ValueEnum;
use serde_json::{Value, json};

use crate::corpus;
use crate::output::{printable, watch, write_json};
use crate::read::Outcome;

/// Finds exact and near duplicates in files and keeps one document of each group.
///
/// Reads what `arose read` reads: WARC, JSON lines, Parquet, CSV, folders of pages, each plain,
/// gzip or zstd. Writes into OUT: documents.parquet (a row per document: kept or not, for which
/// document, by which rule, how similar), pairs.parquet (each dropped document and its kept one),
/// kept.* (the documents that stay, in the format they came in), summary.json and report.html.
/// A run that was interrupted goes on where it was when it is started again.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  arose dedup corpus.jsonl -o out
  arose dedup 'crawl/*.warc.gz' -o out --policy site
  arose dedup pages/ -o out --threshold 0.9 --keep longest
  zcat corpus.jsonl.gz | arose dedup - -o out
  arose dedup crawl -o out                    # the folder of arose crawl
  arose dedup corpus.parquet -o out --dry-run
  arose dedup tomorrow.warc.gz -o out --against seen --update-index

Policies:
  jaccard   the share of common shingles reaches --threshold
  b         2 of 6 super-shingles agree (Broder)
  c         372 of 384 simhash bits agree (Charikar)
  combined  b, and 355 bits agree (Henzinger)
  site      combined inside a site, c between sites

Exit code 0 means done, 1 no documents, 2 an error.")]
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
    /// The least Jaccard coefficient (policy jaccard).
    #[arg(long, value_name = "J", default_value_t = 0.8)]
    threshold: f64,
    /// Tokens per shingle. [default: 5, and 8 for the other policies]
    #[arg(short, long, value_name = "N")]
    w: Option<NonZeroUsize>,
    /// Tokens per shingle of documents in scripts without blanks. [default: as --w]
    #[arg(long, value_name = "N")]
    cjk_w: Option<NonZeroUsize>,
    /// The share of the pairs at the threshold that must be found (policy jaccard).
    #[arg(long, value_name = "SHARE", default_value_t = 0.995)]
    recall: f64,
    /// What pairs are checked against before they are reported.
    #[arg(long, value_enum, default_value_t = VerifyName::Text)]
    verify: VerifyName,
    /// Which document of a group stays.
    #[arg(long, value_enum, default_value_t = KeepName::First)]
    keep: KeepName,
    /// The field or column with the number for --keep priority; the greatest stays.
    #[arg(long, value_name = "NAME", required_if_eq("keep", "priority"))]
    priority_field: Option<String>,
    /// What may make duplicates of documents under two shingles.
    #[arg(long, value_enum, default_value_t = ShortName::Exact)]
    short: ShortName,
    /// What a site is (policy site).
    #[arg(long, value_enum, default_value_t = SiteName::Registrable)]
    site: SiteName,
    /// Documents under one key whose sketches are all compared; with more, each meets fewer.
    #[arg(long, value_name = "N", default_value = "4096")]
    cap: NonZeroUsize,
    /// Pairs to list in pairs.parquet; does not affect which documents are kept.
    #[arg(long, value_enum, default_value_t = PairsName::Dropped)]
    pairs: PairsName,
    /// Selects the permutations.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Memory to stay under, such as 2GiB; results do not depend on it. [default: half of all]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    memory: Option<u64>,
    /// Drops what this index (see `arose index`) knows by its own rule, before anything else.
    #[arg(long, value_name = "INDEX")]
    against: Option<PathBuf>,
    /// Adds the documents kept to the index, once the run is complete.
    #[arg(long, requires = "against")]
    update_index: bool,
    /// Removes a run that is in OUT and begins anew.
    #[arg(long)]
    force: bool,
    /// Prints what would be done, found and needed, and does nothing.
    #[arg(long)]
    dry_run: bool,
    /// Prints the summary as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    corpus: corpus::Reading,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PolicyName {
    Jaccard,
    B,
    C,
    Combined,
    Site,
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
enum PairsName {
    /// Each dropped document with the one it was dropped for.
    Dropped,
    /// Every pair found at or above the threshold.
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ShortName {
    /// Equal content only.
    Exact,
    /// The same as for any other.
    Any,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SiteName {
    /// The public suffix and one label more.
    Registrable,
    /// Everything after the first dot.
    Henzinger,
}

pub(crate) fn run(options: &Options) -> anyhow::Result<Outcome> {
    crate::input::check_standard_input_once(&options.inputs)?;
    let inputs = crate::crawl::expand(&options.inputs)?;
    let mut config = config(options)?;
    // Of a crawl, what servers send in place of a page is no document.
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
    let summary = watch(line_of(&progress), || {
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
    Ok(match summary["counts"]["read"].as_u64() {
        Some(0) | None => Outcome::NothingFound,
        Some(_) => Outcome::Found,
    })
}

fn config(options: &Options) -> anyhow::Result<Config> {
    let criterion = match options.policy {
        PolicyName::Jaccard => Criterion::Jaccard(Threshold::new(options.threshold)?),
        PolicyName::B => Criterion::PUBLISHED_B,
        PolicyName::C => Criterion::PUBLISHED_C,
        PolicyName::Combined => Criterion::PUBLISHED_COMBINED,
        PolicyName::Site => Criterion::SITE,
    };
    let default = Config::default();
    let mut corpus = options.corpus.config();
    corpus.fields.priority = options.priority_field.iter().cloned().collect();
    // A document of half a gigabyte is one, if memory allows; what is larger is skipped and told.
    corpus.limits.line_bytes = MAX_DOCUMENT;
    corpus.limits.record_bytes = MAX_DOCUMENT;
    corpus.limits.body_bytes = MAX_DOCUMENT;
    let w = options.w.unwrap_or(match options.policy {
        PolicyName::Jaccard => default.shingle.w,
        _ => shingle::DEFAULT_W,
    });
    Ok(Config {
        policy: Policy {
            criterion,
            short: match options.short {
                ShortName::Exact => ShortPolicy::ExactOnly,
                ShortName::Any => ShortPolicy::LikeAny,
            },
        },
        shingle: ShingleLength {
            w,
            unspaced_w: options.cjk_w.unwrap_or(w),
        },
        recall: Threshold::new(options.recall).context("--recall")?,
        verify: match options.verify {
            VerifyName::Text => Verify::Text,
            VerifyName::Sketch => Verify::Sketch,
            VerifyName::None => Verify::None,
        },
        keep: match options.keep {
            KeepName::First => Keep::First,
            KeepName::Longest => Keep::Longest,
            KeepName::Newest => Keep::Newest,
            KeepName::Copies => Keep::Copies,
            KeepName::Priority => Keep::Priority,
        },
        cap: options.cap,
        pairs: match options.pairs {
            PairsName::Dropped => ListedPairs::Dropped,
            PairsName::All => ListedPairs::All,
        },
        site: match options.site {
            SiteName::Registrable => SiteKind::Registrable,
            SiteName::Henzinger => SiteKind::Henzinger,
        },
        seed: options.seed,
        memory: options.memory.unwrap_or_else(half_of_memory),
        against: options.against.clone().map(|index| Against {
            index,
            update: match options.update_index {
                true => Update::Add,
                false => Update::Leave,
            },
        }),
        corpus,
    })
}

/// A number of bytes: `512MiB`, `2GB`, `1073741824`.
fn size(text: &str) -> Result<u64, String> {
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
    if bytes.is_finite() && bytes >= MIN_MEMORY as f64 {
        Ok(bytes as u64)
    } else {
        Err(format!("expected at least {} MiB", MIN_MEMORY >> 20))
    }
}

const MIN_MEMORY: u64 = 64 << 20;
/// The largest document that is read, in bytes.
const MAX_DOCUMENT: usize = 1 << 30;

fn half_of_memory() -> u64 {
    let info = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = info.lines().find(|line| line.starts_with("MemTotal:"));
    let kib = total.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kib.map_or(4 << 30, |kib| kib * 512).max(MIN_MEMORY)
}

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
    if !options.json {
        eprintln!(
            "arose dedup: {}; a pair is found with probability {}",
            arose_dedup::method(config)?,
            chances.join(", ")
        );
    }
    Ok(())
}

/// Says where a run is, with the rate of the stage it is in.
fn line_of(progress: &Progress) -> impl FnMut() -> String + Send {
    let mut stage = (progress.look().stage, Instant::now());
    move || {
        let now = progress.look();
        if now.stage != stage.0 {
            stage = (now.stage, Instant::now());
        }
        progress_line(&now, stage.1.elapsed())
    }
}

fn progress_line(now: &Snapshot, elapsed: Duration) -> String {
    let rate = now.done as f64 / elapsed.as_secs_f64().max(0.001);
    let left = now.total.filter(|_| now.done > 0).map(|total| {
        let seconds = total.saturating_sub(now.done) as f64 / rate.max(0.001);
        format!(", {seconds:.0} s left")
    });
    let total = now
        .total
        .map_or(String::new(), |total| format!(" of {total}"));
    let left = left.unwrap_or_default();
    format!(
        "{}: {}{total}, {rate:.0} a second{left}",
        now.stage, now.done
    )
}

fn tell(out: &mut impl Write, summary: &Value, folder: &Path) -> io::Result<()> {
    let counts = &summary["counts"];
    let count = |name: &str| counts[name].as_u64().unwrap_or(0);
    let read = count("read");
    let share = |n: u64| 100.0 * n as f64 / read.max(1) as f64;
    writeln!(out, "read            {read:>10}")?;
    for (label, name) in [
        ("kept", "kept"),
        ("dropped, equal", "dropped_exact"),
        ("dropped, alike", "dropped_near"),
    ] {
        let n = count(name);
        writeln!(out, "{label:<15} {n:>10}  {:5.1} %", share(n))?;
    }
    if let Some(held) = summary["index"]["documents"].as_u64() {
        let n = count("dropped_known");
        writeln!(
            out,
            "{:<15} {n:>10}  {:5.1} %  by an index of {held} documents",
            "dropped, held",
            share(n)
        )?;
    }
    let skipped = counts["skipped"]["total"].as_u64().unwrap_or(0);
    writeln!(out, "skipped         {skipped:>10}")?;
    if let Some(reasons) = counts["skipped"]["by_reason"].as_object() {
        for (reason, n) in reasons {
            writeln!(out, "  {reason}: {n}")?;
        }
    }
    for warning in summary["warnings"].as_array().into_iter().flatten() {
        writeln!(out, "  {}", printable(warning.as_str().unwrap_or_default()))?;
    }
    writeln!(
        out,
        "pairs           {:>10}  clusters: {}, largest: {}",
        count("pairs"),
        count("clusters"),
        count("largest_cluster")
    )?;
    if let Some(recall) = summary["recall"]["estimated"].as_f64() {
        writeln!(out, "recall          {recall:>10.4}  estimated")?;
    }
    let capped = summary["cap"]["pairs_not_compared"].as_u64().unwrap_or(0);
    if capped > 0 {
        writeln!(
            out,
            "not compared    {capped:>10}  pairs under very common keys; see --cap"
        )?;
    }
    if let Some(added @ 1..) = summary["index"]["added"].as_u64() {
        writeln!(out, "added to index  {added:>10}")?;
    }
    let kept = summary["kept_in"].as_str().unwrap_or("kept");
    writeln!(out, "kept documents: {}", folder.join(kept).display())?;
    writeln!(out, "report: {}", folder.join("report.html").display())
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
