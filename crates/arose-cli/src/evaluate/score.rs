//! `arose evaluate score`: scores a run against the ground truth.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Context, ensure};
use arose::Threshold;
use arose::judgement::{Z_95, wilson};
use arose_dedup::evaluate::run::{self, BINS, Removal, RunScore, ScoreConfig, Share};
use arose_dedup::report::html;
use serde_json::{Value, json};

use super::{counted, share};
use crate::output::{printable, say, write_json};
use crate::read::Outcome;

/// Score a run of `arose dedup` against the ground truth.
///
/// Prints precision and recall of pairs, of documents that have a duplicate, and of the pairs
/// inside clusters; recall by similarity range and by kind of planted duplicate; and the pairs that
/// each rule accepted, on the same site and between sites. Checks that every dropped document is
/// itself similar to the document kept in its place.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  arose evaluate plant -o planted --documents 100000
  arose dedup planted/documents.jsonl -o OUT
  arose evaluate score OUT --truth planted/truth.jsonl

The ground truth is JSON Lines with a, b, jaccard and optionally kind, or lines of a, b and jaccard
separated by tabs, uncompressed or compressed with gzip or zstd. Unlisted pairs are not similar.
Exact duplicates count as one document: a pair counts as found if a pair of exact duplicates of
both was found.

Exit code: 0 if done, 1 if the run found no duplicates, 2 on error or if a dropped document is not
similar to the one kept in its place.")]
pub(crate) struct Options {
    /// Output directory of the run
    #[arg(value_name = "DIR")]
    output: PathBuf,
    /// File with the ground truth
    #[arg(long, value_name = "FILE")]
    truth: PathBuf,
    /// Minimum similarity of duplicates [default: threshold of the run, or 0.8 if it has none]
    #[arg(long, value_name = "J", value_parser = crate::options::threshold)]
    threshold: Option<Threshold>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Scores the run and prints the result.
pub(super) fn run(options: &Options) -> anyhow::Result<Outcome> {
    let score = run::score(&ScoreConfig {
        folder: options.output.clone(),
        truth: options.truth.clone(),
        threshold: options.threshold,
    })?;
    if let Some([of_run, of_truth]) = score.other_w {
        say(format_args!(
            "arose: the run has {of_run} tokens per shingle, the ground truth {of_truth}"
        ));
    }
    if score.n_unread > 0 {
        say(format_args!(
            "arose: {} of the ground truth with documents that the run did not read",
            html::counted(score.n_unread, "pair", "pairs")
        ));
    }
    let mut out = io::BufWriter::new(io::stdout().lock());
    let written = if options.json {
        write_json(&mut out, &as_json(&score))
    } else {
        write_text(&mut out, &score)
    };
    let written = written.and_then(|()| out.flush());
    written.context("cannot write the result")?;
    ensure!(
        score.removal.is_sound(),
        "some dropped documents are not similar to the one kept in their place"
    );
    Ok(match score.pair_precision.whole + score.removal.n_dropped {
        0 => Outcome::NothingFound,
        _ => Outcome::Found,
    })
}

fn write_text(out: &mut impl Write, score: &RunScore) -> io::Result<()> {
    let policy = printable(score.policy.as_deref().unwrap_or("unknown"));
    let threshold = score.threshold.get();
    writeln!(
        out,
        "{} documents, policy {policy}, threshold {threshold}\n",
        score.n_documents
    )?;
    writeln!(
        out,
        "  pairs      precision  {}",
        counted(score.pair_precision)
    )?;
    let recall = match score.lists_all_pairs {
        true => counted(score.pair_recall),
        false => "     -  needs a run with --pairs all".to_owned(),
    };
    writeln!(out, "             recall     {recall}")?;
    writeln!(
        out,
        "  documents  precision  {}",
        counted(score.document_precision)
    )?;
    writeln!(
        out,
        "             recall     {}",
        counted(score.document_recall)
    )?;
    writeln!(
        out,
        "  closure    precision  {}",
        counted(score.closure_precision)
    )?;
    writeln!(
        out,
        "             recall     {}",
        counted(score.closure_recall)
    )?;
    writeln!(out, "  both kept             {}", counted(score.both_kept))?;
    let (n_compared, difference) = score.coefficients;
    writeln!(
        out,
        "\n  found pairs not in the ground truth: {}; {n_compared} similarities differ by at most \
         {difference:.6}",
        score.n_unlisted
    )?;
    write_removal(out, &score.removal)?;
    if score.lists_all_pairs {
        writeln!(out, "\n  similarity    pairs     found  recall")?;
    }
    for (i, bin) in score
        .bins
        .iter()
        .enumerate()
        .filter(|(_, bin)| bin.whole > 0)
    {
        write_found(out, &bin_name(i), *bin)?;
    }
    if !score.kinds.is_empty() {
        writeln!(out, "\n  planted       pairs     found   share")?;
        for (kind, found) in &score.kinds {
            write_found(out, kind.as_str(), *found)?;
        }
    }
    write_rules(out, score)
}

fn write_removal(out: &mut impl Write, removal: &Removal) -> io::Result<()> {
    let Removal { n_dropped, .. } = removal;
    if removal.is_sound() {
        return writeln!(
            out,
            "  dropped documents: {n_dropped}, each similar to the one kept in its place"
        );
    }
    writeln!(
        out,
        "  dropped documents: {n_dropped}; for one that is not kept: {}, for one without a listed \
         pair: {}, for one that is not similar: {}",
        removal.n_for_dropped, removal.n_unlisted, removal.n_dissimilar
    )
}

fn bin_name(i: usize) -> String {
    match BINS.get(i + 1) {
        Some(end) => format!("{:.2}-{end:.2}", BINS[i]),
        None => "1.00".to_owned(),
    }
}

fn write_found(out: &mut impl Write, name: &str, found: Share) -> io::Result<()> {
    let Share { part, whole } = found;
    writeln!(
        out,
        "  {name:<10} {whole:>8}  {part:>8}  {}",
        share(found.value())
    )
}

fn write_rules(out: &mut impl Write, score: &RunScore) -> io::Result<()> {
    if score.rules.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n  rule        sites      pairs  similar  copies     95%"
    )?;
    for ((rule, place), row) in &score.rules {
        let Share { part, whole } = row.copies;
        let within = wilson(part, whole, Z_95);
        writeln!(
            out,
            "  {:<10}  {:<7}  {:>7}  {:>7}  {:>6}  {:.2}-{:.2}",
            printable(rule),
            place.as_str(),
            row.similar.whole,
            share(row.similar.value()),
            share(row.copies.value()),
            within.low,
            within.high
        )?;
    }
    Ok(())
}

fn share_as_json(share: Share) -> Value {
    json!({ "value": share.value(), "part": share.part, "whole": share.whole })
}

fn as_json(score: &RunScore) -> Value {
    let bins = score.bins.iter().enumerate().map(|(i, bin)| {
        json!({ "from": BINS[i], "pairs": bin.whole, "found": bin.part, "recall": bin.value() })
    });
    let kinds: serde_json::Map<_, _> = score
        .kinds
        .iter()
        .map(|(kind, found)| (kind.to_string(), share_as_json(*found)))
        .collect();
    let rules = score.rules.iter().map(|((rule, place), row)| {
        json!({
            "rule": rule,
            "sites": place.as_str(),
            "similar": share_as_json(row.similar),
            "copies": share_as_json(row.copies),
        })
    });
    json!({
        "policy": score.policy,
        "threshold": score.threshold.get(),
        "documents": score.n_documents,
        "unread": score.n_unread,
        "unlisted": score.n_unlisted,
        "pairs": precision_and_recall(score.pair_precision, score.pair_recall),
        "with_partner": precision_and_recall(score.document_precision, score.document_recall),
        "closure": precision_and_recall(score.closure_precision, score.closure_recall),
        "both_kept": share_as_json(score.both_kept),
        "bins": bins.collect::<Vec<_>>(),
        "kinds": kinds,
        "rules": rules.collect::<Vec<_>>(),
        "removal": {
            "dropped": score.removal.n_dropped,
            "for_dropped": score.removal.n_for_dropped,
            "without_pair": score.removal.n_unlisted,
            "dissimilar": score.removal.n_dissimilar,
            "sound": score.removal.is_sound(),
        },
        "coefficients": {
            "compared": score.coefficients.0,
            "max_difference": score.coefficients.1,
        },
    })
}

fn precision_and_recall(precision: Share, recall: Share) -> Value {
    json!({ "precision": share_as_json(precision), "recall": share_as_json(recall) })
}
