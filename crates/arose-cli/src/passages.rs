//! `arose passages`: finds repeated passages in files and removes them.

use std::io::{self, BufWriter, Write};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use arose::passage::{Removal, Scope, Unit};
use arose_dedup::passages::against::{self, Against, Found};
use arose_dedup::passages::{Config, Digits, Remove, Text};
use arose_dedup::report::html::counted;
use arose_dedup::{OnLoss, Progress, Start};
use clap::ValueEnum;
use serde_json::Value;

use crate::corpus;
use crate::dedup::progress::line_of;
use crate::dedup::{MAX_DOCUMENT, incomplete, incomplete_files, size, tell_losses};
use crate::losses;
use crate::output::{printable, watch, write_json};
use crate::read::Outcome;

/// Find passages that occur more than once, or that occur in a reference, and remove them.
///
/// A passage is a run of at least --min tokens that occurs at least twice, in one document or in
/// several. Nothing of that length is missed. Writes into OUT: passages.parquet, places.parquet
/// (where each passage occurs), documents.parquet (how much of each document is repeated),
/// removed.parquet (each repeated span with its source), summary.json and report.html. With
/// --remove, also kept.* (the documents without repeated passages, in their input format).
///
/// With --against, finds the documents of a reference (items: test questions, quotations) in the
/// input instead. Writes items.parquet (how much of each item occurs in the input, the longest run
/// and where), matches.parquet (every match with its places), documents.parquet, summary.json and
/// report.html.
///
/// An interrupted run resumes when you start it again.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  arose passages corpus.jsonl -o out
  arose passages corpus.jsonl -o out --remove later
  arose passages corpus.jsonl -o out --min 100 --remove later --whole-first
  arose passages corpus.jsonl -o out --unit line --remove later
  arose passages src/ -o out --all-text --tokens all
  arose passages corpus.jsonl -o out --against test.jsonl
  arose passages corpus.jsonl -o out --against test.jsonl --remove documents

Exit code: 0 if done, 1 if there were no documents, 2 on error, 3 if a file could not be read
completely.")]
pub(crate) struct Options {
    /// Files, directories, patterns; `-` is standard input
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Output directory; created if missing
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Find what these files or directories contain; repeatable
    #[arg(long, value_name = "REFERENCE")]
    against: Vec<PathBuf>,
    /// With --against, report passages in more than N documents separately [default: 1000]
    #[arg(long, value_name = "N", requires = "against")]
    common: Option<NonZeroU64>,
    /// Minimum length of a passage in tokens, 1 to 65536 [default: 50, and 13 with --against]
    #[arg(long, value_name = "N")]
    min: Option<usize>,
    /// Minimum number of occurrences; with --scope across, of documents [default: 2]
    #[arg(long, value_name = "N", conflicts_with = "against")]
    times: Option<NonZeroU64>,
    /// Which occurrences count [default: any]
    #[arg(long, value_enum, conflicts_with = "against")]
    scope: Option<ScopeName>,
    /// What a token is [default: words]
    #[arg(long, value_enum)]
    tokens: Option<TokensName>,
    /// Maximum number of places listed per passage or item; all are counted
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    list: u64,
    /// What to compare
    #[arg(long, value_enum, default_value_t = UnitName::Token)]
    unit: UnitName,
    /// Minimum length of a passage in units [default: 1, and 3 for sentences]
    #[arg(long, value_name = "N")]
    span: Option<usize>,
    /// Treat units with fewer words as unique [default: 10 for single lines and paragraphs, else 0]
    #[arg(long, value_name = "N")]
    min_unit: Option<u32>,
    /// How to compare digits in units [default: keep]
    #[arg(long, value_enum)]
    digits: Option<DigitsName>,
    /// Write the documents without the passages found
    #[arg(long, value_enum, value_name = "WHICH")]
    remove: Option<RemoveName>,
    /// Keep the first occurrence of each passage whole
    #[arg(long, requires = "remove")]
    whole_first: bool,
    /// Cut only whole sentences, lines or paragraphs
    #[arg(long, value_enum, value_name = "UNIT", requires = "remove")]
    cut: Option<CutName>,
    /// Text to insert where something was cut
    #[arg(long, value_name = "TEXT", requires = "remove")]
    seam: Option<String>,
    /// Drop cut documents with fewer tokens left; 0 keeps empty ones [default: 1]
    #[arg(long, value_name = "N", requires = "remove")]
    min_left: Option<u32>,
    /// Memory limit, e.g. 2GiB; does not affect results [default: half of the machine's or
    /// container's]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    memory: Option<u64>,
    /// Replace an existing run in OUT
    #[arg(long)]
    force: bool,
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
enum ScopeName {
    /// All occurrences
    Any,
    /// One per document; repetition inside a document is left alone
    Across,
    /// Occurrences in the same document
    Within,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TokensName {
    /// Words; case and symbols do not count
    Words,
    /// Words and symbols with their case, e.g. for code
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum UnitName {
    /// Runs of tokens
    Token,
    /// Whole lines
    Line,
    /// Whole paragraphs
    Paragraph,
    /// Runs of whole sentences
    Sentence,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DigitsName {
    /// As they are
    Keep,
    /// Every digit as 0
    Zero,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RemoveName {
    /// All occurrences except the first
    Later,
    /// All occurrences
    All,
    /// With --against: what occurs in the reference
    Spans,
    /// With --against: whole documents with anything that occurs in the reference
    Documents,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CutName {
    /// Sentences
    Sentence,
    /// Lines
    Line,
    /// Paragraphs
    Paragraph,
}

pub(crate) fn run(options: &Options) -> anyhow::Result<Outcome> {
    crate::input::check_standard_input_once(&options.inputs)?;
    check_used(options)?;
    let inputs = crate::crawl::expand(&options.inputs)?;
    let mut config = config(options);
    // Of a crawl, what servers send in place of a page is no document.
    if inputs != options.inputs {
        config.corpus.statuses = arose_corpus::Statuses::Success;
    }
    let start = match options.force {
        true => Start::Anew,
        false => Start::Resume,
    };
    let out_dir = &options.output;
    let against = against(options);
    let progress = match against {
        Some(_) => Progress::of_reference(),
        None => Progress::of_passages(),
    };
    let summary = watch(line_of(&progress), || match &against {
        Some(what) => against::run(&inputs, what, &config, out_dir, start, &progress),
        None => arose_dedup::passages::run(&inputs, &config, out_dir, start, &progress),
    })?;
    let mut out = BufWriter::new(io::stdout().lock());
    let written = match (options.json, &against) {
        (true, _) => write_json(&mut out, &summary),
        (false, Some(_)) => tell_items(&mut out, &summary, out_dir),
        (false, None) => tell(&mut out, &summary, out_dir),
    };
    written
        .and_then(|()| out.flush())
        .context("cannot write the result")?;
    if let n_files @ 1.. = incomplete(&summary) {
        for line in incomplete_files(&summary) {
            eprintln!("arose: {line}");
        }
        losses::say_incomplete(n_files);
        return Ok(Outcome::Incomplete);
    }
    Ok(match summary["counts"]["read"].as_u64() {
        Some(0) | None => Outcome::NothingFound,
        Some(_) => Outcome::Found,
    })
}

/// An option that the unit or the removal does not look at is a mistake.
fn check_used(options: &Options) -> anyhow::Result<()> {
    let is_token = options.unit == UnitName::Token;
    let unit = options.unit.to_possible_value();
    let unit = unit.as_ref().map_or("", |name| name.get_name());
    for (option, is_given, is_used) in [
        ("--min", options.min.is_some(), is_token),
        ("--tokens", options.tokens.is_some(), is_token),
        ("--cut", options.cut.is_some(), is_token),
        ("--span", options.span.is_some(), !is_token),
        ("--min-unit", options.min_unit.is_some(), !is_token),
        ("--digits", options.digits.is_some(), !is_token),
    ] {
        ensure!(
            is_used || !is_given,
            "{option} has no effect with --unit {unit}; remove it or choose another unit"
        );
    }
    let is_of_reference = |which| matches!(which, RemoveName::Spans | RemoveName::Documents);
    if let Some(which) = options.remove {
        let name = which.to_possible_value();
        let name = name.as_ref().map_or("", |name| name.get_name());
        ensure!(
            is_of_reference(which) != options.against.is_empty(),
            "--remove {name} {} --against; choose {}",
            if is_of_reference(which) {
                "requires"
            } else {
                "has no effect with"
            },
            if is_of_reference(which) {
                "later or all"
            } else {
                "spans or documents"
            },
        );
    }
    ensure!(
        options.remove != Some(RemoveName::Documents)
            || options.cut.is_none() && options.seam.is_none() && options.min_left.is_none(),
        "--cut, --seam and --min-left have no effect with --remove documents"
    );
    ensure!(
        !options.whole_first || options.remove == Some(RemoveName::Later),
        "--whole-first has no effect without --remove later; remove it or pass --remove later"
    );
    Ok(())
}

fn config(options: &Options) -> Config {
    let default = Config::default();
    let span = options.span.unwrap_or(match options.unit {
        UnitName::Sentence => 3,
        UnitName::Token | UnitName::Line | UnitName::Paragraph => 1,
    });
    let units = |unit| Text::Units {
        unit,
        min_words: options.min_unit.unwrap_or(match (unit, span) {
            (Unit::Line | Unit::Paragraph, 1) => 10,
            _ => 0,
        }),
        digits: match options.digits {
            None | Some(DigitsName::Keep) => Digits::Keep,
            Some(DigitsName::Zero) => Digits::Zero,
        },
    };
    let (text, min) = match options.unit {
        UnitName::Token => {
            let text = match options.tokens {
                None | Some(TokensName::Words) => Text::Words,
                Some(TokensName::All) => Text::Symbols,
            };
            let min = match options.against.is_empty() {
                true => default.min,
                false => against::DEFAULT_TOKENS,
            };
            (text, options.min.unwrap_or(min))
        }
        UnitName::Line => (units(Unit::Line), span),
        UnitName::Paragraph => (units(Unit::Paragraph), span),
        UnitName::Sentence => (units(Unit::Sentence), span),
    };
    let mut corpus = options.corpus.config(vec![options.output.clone()]);
    corpus.limits.line_bytes = MAX_DOCUMENT;
    corpus.limits.record_bytes = MAX_DOCUMENT;
    corpus.limits.body_bytes = MAX_DOCUMENT;
    Config {
        text,
        min,
        times: options.times.unwrap_or(default.times),
        scope: match options.scope {
            None | Some(ScopeName::Any) => Scope::Any,
            Some(ScopeName::Across) => Scope::Across,
            Some(ScopeName::Within) => Scope::Within,
        },
        list: options.list,
        remove: options.remove.map(|which| remove(options, which)),
        memory: options.memory.unwrap_or_else(arose_dedup::default_memory),
        on_loss: match options.strict {
            true => OnLoss::Refuse,
            false => OnLoss::Report,
        },
        corpus,
    }
}

fn against(options: &Options) -> Option<Against> {
    let default = NonZeroU64::new(against::DEFAULT_COMMON);
    (!options.against.is_empty()).then(|| Against {
        reference: options.against.clone(),
        common: options.common.or(default).unwrap_or(NonZeroU64::MIN),
        found: match options.remove {
            Some(RemoveName::Documents) => Found::Drop,
            _ => Found::Cut,
        },
    })
}

fn remove(options: &Options, which: RemoveName) -> Remove {
    let default = Remove::default();
    Remove {
        removal: match (which, options.whole_first) {
            (RemoveName::Later, false) => Removal::Later,
            (RemoveName::Later, true) => Removal::WholeFirst,
            (RemoveName::All | RemoveName::Spans | RemoveName::Documents, _) => Removal::All,
        },
        cut: options.cut.map(|cut| match cut {
            CutName::Sentence => Unit::Sentence,
            CutName::Line => Unit::Line,
            CutName::Paragraph => Unit::Paragraph,
        }),
        seam: options.seam.clone().unwrap_or_default(),
        min_left: options.min_left.unwrap_or(default.min_left),
    }
}

/// What was found of a reference.
fn tell_items(out: &mut impl Write, summary: &Value, folder: &Path) -> io::Result<()> {
    let count = |name: &str| summary["counts"][name].as_u64().unwrap_or(0);
    let percent = |part: u64, whole: u64| 100.0 * part as f64 / whole.max(1) as f64;
    let found = count("items_found");
    writeln!(out, "read            {:>10}", count("read"))?;
    writeln!(out, "items           {:>10}", count("items"))?;
    writeln!(
        out,
        "found           {found:>10}  {:5.1} %  {} whole",
        percent(found, count("items")),
        count("items_whole")
    )?;
    for (name, label, note) in [
        ("items_common_only", "common only", "see --common"),
        ("items_undecided", "undecided", "fewer than 8 tokens"),
        ("items_capped", "shortened", "not all documents known"),
        ("matches_not_listed", "not listed", "matches; see --list"),
    ] {
        if let n @ 1.. = count(name) {
            writeln!(out, "{label:<15} {n:>10}  {note}")?;
        }
    }
    let documents = count("documents_found");
    let share = percent(documents, count("read"));
    writeln!(out, "in documents    {documents:>10}  {share:5.1} %")?;
    if summary["removal"]["written"].as_bool() == Some(true) {
        let removal = |name: &str| summary["removal"][name].as_u64().unwrap_or(0);
        writeln!(
            out,
            "removed         {:>10}  {:5.1} %  in {}, {} dropped",
            removal("removed"),
            percent(removal("removed"), count("tokens")),
            counted(removal("documents_changed"), "document", "documents"),
            removal("documents_dropped")
        )?;
    }
    tell_end(out, summary, folder)
}

fn tell(out: &mut impl Write, summary: &Value, folder: &Path) -> io::Result<()> {
    let (counts, removal) = (&summary["counts"], &summary["removal"]);
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let count = |name: &str| number(&counts[name]);
    let percent = |part: u64, whole: u64| 100.0 * part as f64 / whole.max(1) as f64;
    let tokens = match summary["settings"]["unit"].as_str() {
        None | Some("token") => "tokens".to_owned(),
        Some(unit) => format!("{unit}s"),
    };
    writeln!(out, "read            {:>10}", count("read"))?;
    writeln!(out, "{tokens:<15} {:>10}", count("tokens"))?;
    let covered = count("covered");
    let share = percent(covered, count("tokens"));
    writeln!(out, "repeated        {covered:>10}  {share:5.1} %")?;
    writeln!(
        out,
        "passages        {:>10}  {}, longest {}",
        count("passages"),
        counted(count("occurrences"), "occurrence", "occurrences"),
        counted(count("longest"), tokens.trim_end_matches('s'), &tokens)
    )?;
    let removed = number(&removal["removed"]);
    let share = percent(removed, count("tokens"));
    let (label, dropped) = match removal["written"].as_bool() {
        Some(true) => ("removed", "dropped"),
        _ => ("removable", "would drop"),
    };
    writeln!(
        out,
        "{label:<15} {removed:>10}  {share:5.1} %  in {}",
        counted(
            number(&removal["documents_changed"]),
            "document",
            "documents"
        )
    )?;
    if let n @ 1.. = number(&removal["documents_dropped"]) {
        let note = "with too little left; see --min-left";
        writeln!(out, "{dropped:<15} {n:>10}  {note}")?;
    }
    if let n @ 1.. = count("capped_passages") {
        writeln!(
            out,
            "shortened lists {n:>10}  not all places listed; see --list"
        )?;
    }
    tell_end(out, summary, folder)
}

/// What was skipped, and where the results are.
fn tell_end(out: &mut impl Write, summary: &Value, folder: &Path) -> io::Result<()> {
    let counts = &summary["counts"];
    let skipped = counts["skipped"]["total"].as_u64().unwrap_or(0);
    writeln!(out, "skipped         {skipped:>10}")?;
    if let Some(reasons) = counts["skipped"]["by_reason"].as_object() {
        for (reason, n) in reasons {
            writeln!(out, "  {reason}: {n}")?;
        }
    }
    tell_losses(out, summary)?;
    for warning in summary["warnings"].as_array().into_iter().flatten() {
        writeln!(out, "  {}", printable(warning.as_str().unwrap_or_default()))?;
    }
    if let Some(kept) = summary["kept_in"].as_str() {
        writeln!(out, "kept documents: {}", folder.join(kept).display())?;
    }
    writeln!(out, "report: {}", folder.join("report.html").display())
}
