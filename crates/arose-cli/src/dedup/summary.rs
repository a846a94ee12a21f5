//! The summary of a finished run of `arose dedup` or `arose passages`.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use arose_dedup::IncompleteFile;
use arose_dedup::report::html::counted;
use arose_dedup::results::kinds;
use serde_json::Value;

use crate::losses;
use crate::output::{percent, printable, remark, row, say};
use crate::read::Outcome;

/// Maximum number of incomplete files that the summary on standard output names.
const MAX_FILES: usize = 20;

/// The outcome of a run. Names the files that could not be read completely, on standard error.
pub(crate) fn outcome(summary: &Value) -> Outcome {
    if let n_files @ 1.. = incomplete(summary) {
        for file in incomplete_files(summary) {
            say(format_args!("arose: {}", printable(&file)));
        }
        losses::say_incomplete(n_files);
        return Outcome::Incomplete;
    }
    match summary["counts"]["read"].as_u64() {
        Some(0) | None => {
            remark(format_args!("arose: no documents in the input"));
            Outcome::NothingFound
        }
        Some(_) => Outcome::Found,
    }
}

/// The files that could not be read completely, each with the reason.
fn incomplete_files(summary: &Value) -> Vec<String> {
    let files = summary["incomplete_files"].as_array().into_iter().flatten();
    let files =
        files.filter_map(|file| serde_json::from_value::<IncompleteFile>(file.clone()).ok());
    files.map(|file| file.to_string()).collect()
}

/// Writes the warnings of a run, except those about incomplete files, which are listed before.
fn tell_warnings(out: &mut impl Write, summary: &Value) -> io::Result<()> {
    let named = incomplete_files(summary);
    let warnings = summary["warnings"].as_array().into_iter().flatten();
    for warning in warnings.filter_map(Value::as_str) {
        if !named.iter().any(|file| file == warning) {
            writeln!(out, "  {}", printable(warning))?;
        }
    }
    Ok(())
}

/// The number of files that could not be read completely.
fn incomplete(summary: &Value) -> u64 {
    let n_files = summary["counts"]["incomplete_files"].as_u64();
    n_files.unwrap_or(0)
}

/// Writes the counts of a run and the paths of its results.
pub(super) fn tell(out: &mut impl Write, summary: &Value, folder: &Path) -> io::Result<()> {
    let counts = &summary["counts"];
    let count = |name: &str| counts[name].as_u64().unwrap_or(0);
    let read = count("read");
    let share = |n: u64| percent(n, read);
    row(out, "read", read, "")?;
    let near = match summary["settings"]["policy"].as_str() {
        Some("contained") => "contained",
        Some("url") => "same URL",
        _ => "near duplicates",
    };
    for (label, name) in [
        ("kept", "kept"),
        ("exact duplicates", "dropped_exact"),
        (near, "dropped_near"),
    ] {
        let n = count(name);
        row(out, label, n, &share(n))?;
    }
    tell_index(out, summary)?;
    if let n @ 1.. = count("not_judged") {
        let note = format!("{}  kept; too short to compare", share(n));
        row(out, "not compared", n, &note)?;
    }
    if let n @ 1.. = count("empty") {
        let decision = match count("dropped_empty") {
            0 => "kept; see --drop-empty",
            _ => "dropped",
        };
        row(out, "empty", n, &format!("{}  {decision}", share(n)))?;
    }
    tell_quality(out, summary)?;
    if let n @ 1.. = count("dropped_superseded") {
        let note = format!("{}  fetched again later", percent(n, count("read")));
        row(out, "superseded", n, &note)?;
    }
    tell_skipped(out, summary)?;
    let clusters = count("clusters");
    let largest = count("largest_cluster");
    let note = format!("clusters: {clusters}, largest: {largest}");
    row(out, "pairs", count("pairs"), &note)?;
    if let n @ 1.. = count("versions") {
        let groups = counted(count("version_groups"), "group", "groups");
        let note = format!("kept documents in {groups} of the same content");
        row(out, "versions", n, &note)?;
    }
    if let Some(recall) = summary["recall"]["estimated"].as_f64() {
        row(out, "recall", format!("{recall:.4}"), "estimated")?;
    }
    if let Some(n @ 1..) = summary["cap"]["pairs_not_compared"].as_u64() {
        row(
            out,
            "not compared",
            n,
            "pairs under very common keys; see --cap",
        )?;
    }
    if let Some(added @ 1..) = summary["index"]["added"].as_u64() {
        row(out, "added to the index", added, "")?;
    }
    let kept = summary["kept_in"].as_str().unwrap_or("kept");
    writeln!(out, "kept documents: {}", folder.join(kept).display())?;
    writeln!(out, "report: {}", folder.join("report.html").display())
}

/// Writes the number of documents already in the index.
fn tell_index(out: &mut impl Write, summary: &Value) -> io::Result<()> {
    let Some(held) = summary["index"]["documents"].as_u64() else {
        return Ok(());
    };
    let count = |name: &str| summary["counts"][name].as_u64().unwrap_or(0);
    let n = count("dropped_known");
    let documents = counted(held, "document", "documents");
    let note = format!("{}  (index: {documents})", percent(n, count("read")));
    row(out, "already in the index", n, &note)?;
    if summary["index"]["agrees"] == false {
        let policy = summary["index"]["policy"].as_str().unwrap_or_default();
        writeln!(
            out,
            "  the index decides by {policy}, which is not this run's policy; each may keep what \
             the other drops"
        )?;
    }
    Ok(())
}

/// Writes the number of documents that a filter dropped, and the number that each family of rules
/// would drop.
fn tell_quality(out: &mut impl Write, summary: &Value) -> io::Result<()> {
    let quality = &summary["quality"];
    let Some(any) = quality["fails_any"].as_u64() else {
        return Ok(());
    };
    let read = summary["counts"]["read"].as_u64().unwrap_or(0);
    let share = |n: u64| percent(n, read);
    let n = summary["counts"]["dropped_filtered"].as_u64().unwrap_or(0);
    let note = match quality["filter"]
        .as_array()
        .is_some_and(|rules| !rules.is_empty())
    {
        true => "dropped by the filter",
        false => "no filter; see --filter",
    };
    row(out, "filtered", n, &format!("{}  {note}", share(n)))?;
    let families = quality["fails_by_family"].as_object();
    for (family, n) in families.into_iter().flatten() {
        let n = n.as_u64().unwrap_or(0);
        row(out, &format!("  fail {family}"), n, &share(n))?;
    }
    row(out, "  fail any", any, &share(any))
}

/// Writes the skipped records, the lost input and the warnings.
pub(crate) fn tell_skipped(out: &mut impl Write, summary: &Value) -> io::Result<()> {
    let skipped = &summary["counts"]["skipped"];
    row(out, "skipped", skipped["total"].as_u64().unwrap_or(0), "")?;
    if let Some(reasons) = skipped["by_reason"].as_object() {
        for (reason, n) in reasons {
            row(out, &format!("  {reason}"), n, "")?;
        }
    }
    tell_losses(out, summary)?;
    tell_warnings(out, summary)
}

/// Writes the input that was left aside or could not be read.
fn tell_losses(out: &mut impl Write, summary: &Value) -> io::Result<()> {
    if let Some(n @ 1..) = summary["counts"]["null_text"].as_u64() {
        let records = counted(n, "record", "records");
        writeln!(out, "  {records} with null text in the kept output")?;
    }
    let unknown: Result<BTreeMap<String, u64>, _> =
        serde_json::from_value(summary["unknown_files"].clone());
    if let Ok(unknown) = unknown
        && !unknown.is_empty()
    {
        let kinds = printable(&kinds(&unknown));
        let n: u64 = unknown.values().sum();
        row(out, "unknown formats", n, &kinds)?;
    }
    let n @ 1.. = incomplete(summary) else {
        return Ok(());
    };
    row(out, "incomplete files", n, "not read completely")?;
    let files = incomplete_files(summary);
    for file in files.iter().take(MAX_FILES) {
        writeln!(out, "  {}", printable(file))?;
    }
    match n.saturating_sub(MAX_FILES as u64) {
        0 => Ok(()),
        n => writeln!(
            out,
            "  and {}; see summary.json",
            counted(n, "other", "others")
        ),
    }
}
