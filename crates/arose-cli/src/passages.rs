//! `arose passages`: finds repeated passages in files and removes them.

use std::io::{self, BufWriter, Write};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use anyhow::Context;
use arose::passage::{Scope, Unit};
use arose_dedup::passages::against::{self, Reference};
use arose_dedup::passages::{Choices, Digits, PassagesConfig, Tokens, Which};
use arose_dedup::report::html::counted;
use arose_dedup::{OnLoss, Progress, Start};
use clap::ValueEnum;
use serde_json::Value;

use crate::corpus;
use crate::dedup::progress::step_of;
use crate::dedup::start;
use crate::dedup::summary::{outcome, tell_skipped};
use crate::options::memory;
use crate::output::{percent, row, write_json};
use crate::progress::watch;
use crate::read::Outcome;

/// Find passages that occur more than once, or that occur in a reference, and remove them.
///
/// A passage is a run of at least --min tokens that occurs at least twice, in one document or in
/// several. Nothing of that length is missed. Writes into OUT: passages.parquet, places.parquet
/// (where each passage occurs), documents.parquet (how much of each document is repeated),
/// removed.parquet (each repeated span with its source), summary.json and report.html. With
/// --remove, also kept.* (the documents without repeated passages, in their input format).
///
/// With --against, finds the documents of a reference (items such as test questions or quotations)
/// in the input instead. Writes items.parquet (the share of each item that occurs in the input, its
/// longest match and where), matches.parquet (every match with its places), documents.parquet,
/// summary.json and report.html.
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
    /// Find the documents of this file or directory in the input; repeatable
    #[arg(long, value_name = "REFERENCE")]
    against: Vec<PathBuf>,
    /// With --against, report passages in more than N documents separately [default: 1000]
    #[arg(long, value_name = "N", requires = "against")]
    common: Option<NonZeroU64>,
    /// Minimum length of a passage in tokens, 1 to 65536 [default: 50, or 13 with --against]
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
    /// Minimum length of a passage in units [default: 1, or 3 for sentences]
    #[arg(long, value_name = "N")]
    span: Option<usize>,
    /// Treat units with fewer words as unique [default: 10 for single lines and paragraphs, or 0]
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
    /// Text to insert at each cut
    #[arg(long, value_name = "TEXT", requires = "remove")]
    seam: Option<String>,
    /// Drop cut documents with fewer tokens left; 0 keeps empty ones [default: 1]
    #[arg(long, value_name = "N", requires = "remove")]
    min_left: Option<u32>,
    /// Memory limit, e.g. 2GiB; does not affect results [default: half of the machine's or
    /// container's]
    #[arg(long, value_name = "SIZE", value_parser = memory)]
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
    /// One per document; repetition inside a document is ignored
    Across,
    /// Occurrences in the same document
    Within,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TokensName {
    /// Words; case and symbols are ignored
    Words,
    /// Words and symbols, with case, e.g. for code
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
    /// Unchanged
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
    /// With --against: the text that occurs in the reference
    Spans,
    /// With --against: whole documents that contain text from the reference
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
    let choices = choices(options);
    choices.check(!options.against.is_empty())?;
    let inputs = crate::crawl::expand(&options.inputs)?;
    let mut config = config(options, &choices);
    // Error pages of a crawl are not documents.
    if inputs != options.inputs {
        config.corpus.statuses = arose_corpus::Statuses::Success;
    }
    let start = match options.force {
        true => Start::Anew,
        false => Start::Resume,
    };
    let out_dir = &options.output;
    let against = (!options.against.is_empty())
        .then(|| choices.against(Reference::Files(options.against.clone())));
    let before = start::look_at(out_dir, start);
    let progress = start::interruptible(match against {
        Some(_) => Progress::of_reference(),
        None => Progress::of_passages(),
    });
    let summary = watch(step_of(&progress), || match &against {
        Some(what) => against::run(&inputs, what, &config, out_dir, start, &progress),
        None => arose_dedup::passages::run(&inputs, &config, out_dir, start, &progress),
    })?;
    before.tell(out_dir);
    let mut out = BufWriter::new(io::stdout().lock());
    let written = match (options.json, &against) {
        (true, _) => write_json(&mut out, &summary),
        (false, Some(_)) => tell_items(&mut out, &summary, out_dir),
        (false, None) => tell(&mut out, &summary, out_dir),
    };
    written
        .and_then(|()| out.flush())
        .context("cannot write the result")?;
    Ok(outcome(&summary))
}

fn choices(options: &Options) -> Choices {
    Choices {
        unit: match options.unit {
            UnitName::Token => None,
            UnitName::Line => Some(Unit::Line),
            UnitName::Paragraph => Some(Unit::Paragraph),
            UnitName::Sentence => Some(Unit::Sentence),
        },
        min: options.min,
        span: options.span,
        min_unit: options.min_unit,
        digits: options.digits.map(|digits| match digits {
            DigitsName::Keep => Digits::Keep,
            DigitsName::Zero => Digits::Zero,
        }),
        tokens: options.tokens.map(|tokens| match tokens {
            TokensName::Words => Tokens::Words,
            TokensName::All => Tokens::All,
        }),
        times: options.times,
        scope: options.scope.map(|scope| match scope {
            ScopeName::Any => Scope::Any,
            ScopeName::Across => Scope::Across,
            ScopeName::Within => Scope::Within,
        }),
        list: Some(options.list),
        remove: options.remove.map(|which| match which {
            RemoveName::Later => Which::Later,
            RemoveName::All => Which::All,
            RemoveName::Spans => Which::Spans,
            RemoveName::Documents => Which::Documents,
        }),
        whole_first: options.whole_first,
        cut: options.cut.map(|cut| match cut {
            CutName::Sentence => Unit::Sentence,
            CutName::Line => Unit::Line,
            CutName::Paragraph => Unit::Paragraph,
        }),
        seam: options.seam.clone(),
        min_left: options.min_left,
        common: options.common,
    }
}

fn config(options: &Options, choices: &Choices) -> PassagesConfig {
    let mut corpus = options.corpus.config(vec![options.output.clone()]);
    corpus::allow_large_documents(&mut corpus);
    let memory = options.memory.unwrap_or_else(arose_dedup::default_memory);
    let on_loss = match options.strict {
        true => OnLoss::Refuse,
        false => OnLoss::Report,
    };
    choices.config(!options.against.is_empty(), memory, on_loss, corpus)
}

/// Prints which items of a reference were found.
fn tell_items(out: &mut impl Write, summary: &Value, folder: &Path) -> io::Result<()> {
    let count = |name: &str| summary["counts"][name].as_u64().unwrap_or(0);
    let found = count("items_found");
    row(out, "read", count("read"), "")?;
    row(out, "items", count("items"), "")?;
    let share = percent(found, count("items"));
    let note = format!("{share}  {} in full", count("items_whole"));
    row(out, "found", found, &note)?;
    for (name, label, note) in [
        ("items_common_only", "common only", "see --common"),
        ("items_undecided", "undecided", "fewer than 8 tokens"),
        ("items_capped", "shortened", "not all documents known"),
        ("matches_not_listed", "not listed", "matches; see --list"),
    ] {
        if let n @ 1.. = count(name) {
            row(out, label, n, note)?;
        }
    }
    let documents = count("documents_found");
    row(
        out,
        "in documents",
        documents,
        &percent(documents, count("read")),
    )?;
    if summary["removal"]["written"].as_bool() == Some(true) {
        let removal = |name: &str| summary["removal"][name].as_u64().unwrap_or(0);
        let note = format!(
            "{}  in {}, {} dropped",
            percent(removal("removed"), count("tokens")),
            counted(removal("documents_changed"), "document", "documents"),
            removal("documents_dropped")
        );
        row(out, "removed", removal("removed"), &note)?;
    }
    tell_end(out, summary, folder)
}

fn tell(out: &mut impl Write, summary: &Value, folder: &Path) -> io::Result<()> {
    let (counts, removal) = (&summary["counts"], &summary["removal"]);
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let count = |name: &str| number(&counts[name]);
    let tokens = match summary["settings"]["unit"].as_str() {
        None | Some("token") => "tokens".to_owned(),
        Some(unit) => format!("{unit}s"),
    };
    row(out, "read", count("read"), "")?;
    row(out, &tokens, count("tokens"), "")?;
    let covered = count("covered");
    row(out, "repeated", covered, &percent(covered, count("tokens")))?;
    let note = format!(
        "{}, longest {}",
        counted(count("occurrences"), "occurrence", "occurrences"),
        counted(count("longest"), tokens.trim_end_matches('s'), &tokens)
    );
    row(out, "passages", count("passages"), &note)?;
    let removed = number(&removal["removed"]);
    let (label, dropped) = match removal["written"].as_bool() {
        Some(true) => ("removed", "dropped"),
        _ => ("removable", "would drop"),
    };
    let changed = number(&removal["documents_changed"]);
    let note = format!(
        "{}  in {}",
        percent(removed, count("tokens")),
        counted(changed, "document", "documents")
    );
    row(out, label, removed, &note)?;
    if let n @ 1.. = number(&removal["documents_dropped"]) {
        row(out, dropped, n, "with too little left; see --min-left")?;
    }
    if let n @ 1.. = count("capped_passages") {
        row(
            out,
            "shortened lists",
            n,
            "not all places listed; see --list",
        )?;
    }
    tell_end(out, summary, folder)
}

/// Prints the skipped records and the paths of the results.
fn tell_end(out: &mut impl Write, summary: &Value, folder: &Path) -> io::Result<()> {
    tell_skipped(out, summary)?;
    if let Some(kept) = summary["kept_in"].as_str() {
        writeln!(out, "kept documents: {}", folder.join(kept).display())?;
    }
    writeln!(out, "report: {}", folder.join("report.html").display())
}
