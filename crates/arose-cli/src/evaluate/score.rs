//! `arose evaluate score`: a run beside the truth.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Context, ensure};
use arose::Threshold;
use arose::judgement::{Z_95, wilson};
use arose_dedup::evaluate::run::{self, BINS, Config, Removal, RunScore, Share};
use serde_json::{Value, json};

use super::{counted, share};
use crate::output::{printable, write_json};
use crate::read::Outcome;

/// Scores the output folder of `arose dedup` by the truth.
///
/// Precision and recall of pairs, of documents that have a partner, and of the pairs that clusters
/// join; recall by similarity and by what was planted; what each rule accepted on one site and
/// between sites; and a check that nothing was dropped that is not itself similar to the document
/// it was dropped for.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  arose evaluate plant -o planted --documents 100000
  arose dedup planted/documents.jsonl -o OUT
  arose evaluate score OUT --truth planted/truth.jsonl

The truth is JSON lines with a, b, jaccard and perhaps kind, or lines of a, b and jaccard
separated by tabs, plain, gzip or zstd. Pairs that it does not list are not similar. Documents of
equal content count as one: a pair of any of them was found if a pair of others equal to them was.
Exit code 0 means done, 1 the run found no duplicates, 2 an error, or something was dropped
without being similar to what was kept.")]
pub(crate) struct Options {
    /// The output folder of a run.
    output: PathBuf,
    /// The pairs that are there to be found.
    #[arg(long, value_name = "FILE")]
    truth: PathBuf,
    /// From where on pairs are similar; the run's own threshold if not given, else 0.8.
    #[arg(long, value_name = "J", value_parser = crate::policy::threshold)]
    threshold: Option<Threshold>,
    /// Prints one JSON object.
    #[arg(long)]
    json: bool,
}

/// Scores and prints.
pub(super) fn run(options: &Options) -> anyhow::Result<Outcome> {
    let score = run::score(&Config {
        folder: options.output.clone(),
        truth: options.truth.clone(),
        threshold: options.threshold,
    })?;
    if let Some([of_run, of_truth]) = score.other_w {
        eprintln!("arose: the run has shingles of {of_run} tokens and the truth of {of_truth}");
    }
    if score.n_unread > 0 {
        eprintln!(
            "arose: {} pairs of the truth name documents that the run did not read",
            score.n_unread
        );
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
        "documents were dropped that are not similar to a kept one"
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
        "{} documents, policy {policy}, similar from {threshold}\n",
        score.n_documents
    )?;
    writeln!(
        out,
        "  pairs      precision  {}",
        counted(score.pair_precision)
    )?;
    writeln!(
        out,
        "             recall     {}",
        counted(score.pair_recall)
    )?;
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
        "\n  {} found pairs are not in the truth; {n_compared} coefficients differ by at most {difference:.6}",
        score.n_unlisted
    )?;
    write_removal(out, &score.removal)?;
    writeln!(out, "\n  similarity    pairs     found  recall")?;
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
            "  {n_dropped} documents dropped, each similar to a kept one"
        );
    }
    writeln!(
        out,
        "  {n_dropped} documents dropped: {} for one that is not kept, {} for one without a pair, {} \
         for one that is not similar",
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
        "\n  rule        sites      pairs  similar  copies     95 %"
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
