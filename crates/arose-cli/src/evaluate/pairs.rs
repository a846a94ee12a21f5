//! `arose evaluate pairs`: scores every policy against labelled pairs.

use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::{Context, ensure};
use arose::Threshold;
use arose::judgement::{C_SIM_BINS, Interval, Tally, Verdict};
use arose::rule::ShortPolicy;
use arose_dedup::evaluate::difference::Difference;
use arose_dedup::evaluate::labelled::{self, Fields, LabelledPairs, Labels, Pairing};
use arose_dedup::evaluate::metric::Best;
use arose_dedup::evaluate::pairs::{self, DIFFERENCES, ListedAgreement, PolicyRow, Study};
use serde_json::{Value, json};

use super::{correlation, share};
use crate::corpus::ModeName;
use crate::options::positive;
use crate::output::{printable, write_json};
use crate::read::Outcome;

/// Score every policy against labelled pairs.
///
/// Reads JSON Lines, uncompressed or compressed with gzip or zstd. Each line is one of: a pair with
/// both texts and a label; a pair of IDs with a label or a Jaccard similarity, and the texts in the
/// file passed with --documents-from; or a document, with --group for the field that duplicates
/// share.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  arose evaluate pairs labelled.jsonl.zst
  arose evaluate pairs exact-pairs.jsonl --documents-from texts.jsonl -w 5,8
  arose evaluate pairs snapshots.jsonl --group page --revision content_version --mode content
  arose evaluate pairs answers.jsonl --group task --source orig --field label=kind --duplicate cut

Roles of fields, with their default names; --field ROLE=NAME sets another name:
  a, b            IDs of a pair: a, id_a, doc_a, id1, left
  text_a, text_b  texts of a pair: text_a, text1; also url_a, url_b
  label           label of a pair: label, judgement, verdict, duplicate
  jaccard         similarity of a pair: jaccard, resemblance, similarity
  id, text, html, url  of a document; `doc#rev` joins two fields
Numbers of 1 or more, true, and words such as `correct` or `same` are labels of duplicates.

The tables by B-sim and C-sim, the correlation of the two, and the table of differences between
pairs that B or C calls similar are those of Henzinger's comparison. The score `c_shingles` is
C-sim computed on shingles instead of tokens.

Undecided pairs lower the precision and are not counted in the recall.

Exit code: 0 if done, 1 if there are no pairs, 2 on error.")]
pub(crate) struct Options {
    /// File of pairs, or of documents to pair; `-` is standard input
    #[arg(value_name = "PAIRS")]
    labelled: PathBuf,
    /// File with the documents of the pairs
    #[arg(long = "documents-from", value_name = "FILE")]
    documents: Option<PathBuf>,
    /// Tokens per shingle; several lengths are evaluated separately
    #[arg(
        short = 'w',
        long,
        value_name = "N",
        value_delimiter = ',',
        default_value = "5"
    , value_parser = positive)]
    shingle: Vec<NonZeroUsize>,
    /// Thresholds (policy jaccard)
    #[arg(
        long,
        value_name = "J",
        value_delimiter = ',',
        value_parser = crate::options::threshold,
        default_value = "0.5,0.6,0.7,0.8,0.9,0.95"
    )]
    threshold: Vec<Threshold>,
    /// Name of a field, e.g. label=judgement; repeatable
    #[arg(long, value_name = "ROLE=NAME")]
    field: Vec<String>,
    /// Labels of duplicates; all other labels then mean distinct
    #[arg(long, value_name = "LABEL", value_delimiter = ',')]
    duplicate: Vec<String>,
    /// Labels of undecided pairs
    #[arg(long, value_name = "LABEL", value_delimiter = ',')]
    undecided: Vec<String>,
    /// Minimum listed similarity at which a pair without a label is a duplicate
    #[arg(long = "min-similarity", value_name = "J", default_value = "0.8", value_parser = crate::options::threshold)]
    from: Threshold,
    /// Pair all documents; those with the same value of this field are duplicates
    #[arg(long, value_name = "FIELD", conflicts_with = "documents")]
    group: Option<String>,
    /// With --group, duplicates that differ in this field are undecided
    #[arg(
        long,
        value_name = "FIELD",
        requires = "group",
        conflicts_with = "source"
    )]
    revision: Option<String>,
    /// With --group, pair documents only with the one of their group that has this label
    #[arg(long, value_name = "LABEL", requires = "group")]
    source: Option<String>,
    /// How to extract text from web pages
    #[arg(long, value_enum, default_value_t = ModeName::DEFAULT)]
    mode: ModeName,
    /// Match texts shorter than two shingles like all others
    #[arg(long)]
    short_too: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The results for one shingle length.
struct Evaluation {
    study: Study,
    agreement: Option<ListedAgreement>,
}

/// Reads the labelled pairs, scores all policies and prints the tables.
pub(super) fn run(options: &Options) -> anyhow::Result<Outcome> {
    ensure!(
        options.documents.as_deref() != Some("-".as_ref()) || options.labelled.as_os_str() != "-",
        "standard input can be read only once"
    );
    let labelled = labelled::read(&config(options)?)?;
    let evaluations: Vec<Evaluation> = options
        .shingle
        .iter()
        .map(|&w| find(options, &labelled, w))
        .collect();
    let mut out = io::BufWriter::new(io::stdout().lock());
    let written = if options.json {
        write_json(&mut out, &as_json(options, &labelled, &evaluations))
    } else {
        write_text(&mut out, options, &labelled, &evaluations)
    };
    let written = written.and_then(|()| out.flush());
    written.context("cannot write the result")?;
    Ok(match labelled.pairs.is_empty() {
        true => Outcome::NothingFound,
        false => Outcome::Found,
    })
}

fn config(options: &Options) -> anyhow::Result<labelled::LabelledConfig> {
    let mut fields = Fields::default();
    for field in &options.field {
        let (role, name) = field
            .split_once('=')
            .with_context(|| format!("--field {field}: expected ROLE=NAME"))?;
        fields.prefer(role, name)?;
    }
    if let Some(group) = &options.group {
        fields.prefer("group", group)?;
    }
    if let Some(revision) = &options.revision {
        fields.prefer("version", revision)?;
    }
    let pairing = match (&options.group, &options.source) {
        (None, _) => Pairing::Listed,
        (Some(_), None) => Pairing::Groups,
        (Some(_), Some(_)) => Pairing::Sources,
    };
    Ok(labelled::LabelledConfig {
        labelled: options.labelled.clone(),
        documents: options.documents.clone(),
        fields,
        labels: Labels {
            duplicate: options.duplicate.clone(),
            undecided: options.undecided.clone(),
            source: options.source.clone(),
            min_jaccard: options.from,
        },
        pairing,
        mode: options.mode.into(),
    })
}

fn find(options: &Options, labelled: &LabelledPairs, w: NonZeroUsize) -> Evaluation {
    let config = pairs::PairsConfig {
        w,
        thresholds: options.threshold.clone(),
        short: match options.short_too {
            true => ShortPolicy::LikeAny,
            false => ShortPolicy::ExactOnly,
        },
    };
    Evaluation {
        study: pairs::study(labelled, &config),
        agreement: pairs::agreement(labelled, &config),
    }
}

fn write_text(
    out: &mut impl Write,
    options: &Options,
    labelled: &LabelledPairs,
    evaluations: &[Evaluation],
) -> io::Result<()> {
    let all: Tally = labelled.pairs.iter().map(|pair| pair.verdict).collect();
    writeln!(
        out,
        "{}: {} pairs of {} documents, {} duplicates, {} distinct, {} undecided",
        crate::input::name(&options.labelled),
        labelled.pairs.len(),
        labelled.documents.len(),
        all.correct,
        all.incorrect,
        all.undecided
    )?;
    for Evaluation { study, agreement } in evaluations {
        writeln!(out, "\n{} tokens per shingle", study.w)?;
        write_measures(out, study)?;
        write_policies(out, study)?;
        write_b_sim(out, study)?;
        write_c_sim(out, study)?;
        correlation::write(out, &study.correlation)?;
        write_differences(out, study)?;
        if let Some(agreement) = agreement {
            write_agreement(out, agreement)?;
        }
    }
    Ok(())
}

fn write_measures(out: &mut impl Write, study: &Study) -> io::Result<()> {
    writeln!(out, "\n  score                 AUC  best F1        at")?;
    for row in &study.measures {
        let best = row.best.and_then(|best| best.score.f1());
        let at = row
            .best
            .map_or_else(|| "-".to_owned(), |best| at(row.name, best));
        let (auc, best) = (share(row.auc), share(best));
        writeln!(out, "  {:<18} {auc:>6}  {best:>7}  {at:>8}", row.name)?;
    }
    Ok(())
}

/// Shares with four decimals, counts without.
fn at(measure: &str, best: Best) -> String {
    match measure {
        "b_sim" | "c_sim" | "c_shingles" => format!("{}", best.threshold),
        _ => format!("{:.4}", best.threshold),
    }
}

fn write_policies(out: &mut impl Write, study: &Study) -> io::Result<()> {
    let title =
        "policy              at  accepted  precision     95%       recall     95%           F1";
    writeln!(out, "\n  {title}     95%")?;
    for row in &study.policies {
        let at = row
            .threshold
            .map_or(String::new(), |at| format!("{:.2}", at.get()));
        let score = &row.score;
        writeln!(
            out,
            "  {:<16} {at:>5}  {:>8}  {:>9}  {}  {:>8}  {}  {:>8}  {}",
            row.name,
            score.accepted.total(),
            share(score.precision()),
            interval(Some(score.precision_interval())),
            share(score.recall()),
            interval(Some(score.recall_interval())),
            share(score.f1()),
            interval(row.f1_interval),
        )?;
    }
    Ok(())
}

fn interval(interval: Option<Interval>) -> String {
    let text = |interval: Interval| format!("{:.2}-{:.2}", interval.low, interval.high);
    format!("{:>9}", interval.map_or_else(|| "-".to_owned(), text))
}

fn write_b_sim(out: &mut impl Write, study: &Study) -> io::Result<()> {
    write_verdict_head(out, "B-sim")?;
    for (b_sim, tally) in (2..).zip(&study.by_b_sim) {
        write_verdicts(out, &b_sim.to_string(), tally)?;
    }
    Ok(())
}

fn write_c_sim(out: &mut impl Write, study: &Study) -> io::Result<()> {
    write_verdict_head(out, "C-sim")?;
    for (bin, tally) in C_SIM_BINS.iter().zip(&study.by_c_sim) {
        write_verdicts(out, &format!("{}-{}", bin.start(), bin.end()), tally)?;
    }
    Ok(())
}

fn write_differences(out: &mut impl Write, study: &Study) -> io::Result<()> {
    write_verdict_head(out, "differ in")?;
    for (difference, tally) in Difference::ALL.iter().zip(&study.by_difference) {
        write_verdicts(out, difference.as_str(), tally)?;
    }
    Ok(())
}

fn write_verdict_head(out: &mut impl Write, name: &str) -> io::Result<()> {
    let title = "pairs  correct     95%       incorrect     95%       undecided     95%";
    writeln!(out, "\n  {name:<9} {title}")
}

fn write_verdicts(out: &mut impl Write, name: &str, tally: &Tally) -> io::Result<()> {
    write!(out, "  {name:<9} {:>5}", tally.total())?;
    for (verdict, width) in [
        (Verdict::Correct, 7),
        (Verdict::Incorrect, 11),
        (Verdict::Undecided, 11),
    ] {
        let value = share(tally.share(verdict));
        let within = interval(Some(tally.interval(verdict)));
        write!(out, "  {value:>width$}  {within}")?;
    }
    writeln!(out)
}

fn write_agreement(out: &mut impl Write, agreement: &ListedAgreement) -> io::Result<()> {
    let ListedAgreement {
        n_listed,
        max_difference,
        ..
    } = agreement;
    writeln!(
        out,
        "\n  {n_listed} listed similarities differ from the computed ones by at most {max_difference:.6}"
    )?;
    for (by, n) in DIFFERENCES.iter().zip(agreement.n_differ) {
        writeln!(out, "  {n:>8} by more than {by}")?;
    }
    if let Some((a, b, listed, ours)) = &agreement.worst {
        let (a, b) = (printable(a), printable(b));
        writeln!(
            out,
            "  largest difference, {a} and {b}: listed {listed:.6}, computed {ours:.6}"
        )?;
    }
    if agreement.at.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n  threshold    listed  computed      both")?;
    for row in &agreement.at {
        let (at, listed, ours, both) = (row.threshold.get(), row.n_listed, row.n_ours, row.n_both);
        writeln!(out, "  {at:<10}  {listed:>7}  {ours:>8}  {both:>8}")?;
    }
    Ok(())
}

fn as_json(options: &Options, labelled: &LabelledPairs, evaluations: &[Evaluation]) -> Value {
    let all: Tally = labelled.pairs.iter().map(|pair| pair.verdict).collect();
    let studies: Vec<Value> = evaluations.iter().map(study_as_json).collect();
    json!({
        "file": options.labelled.to_string_lossy(),
        "documents": labelled.documents.len(),
        "pairs": tally_as_json(&all),
        "studies": studies,
    })
}

fn tally_as_json(tally: &Tally) -> Value {
    json!({
        "total": tally.total(),
        "correct": tally.correct,
        "incorrect": tally.incorrect,
        "undecided": tally.undecided,
    })
}

fn study_as_json(Evaluation { study, agreement }: &Evaluation) -> Value {
    let measures: Vec<Value> = study
        .measures
        .iter()
        .map(|row| {
            json!({
                "score": row.name,
                "auc": row.auc,
                "best_f1": row.best.and_then(|best| best.score.f1()),
                "best_at": row.best.map(|best| best.threshold),
            })
        })
        .collect();
    let by = |key: &str, name: Value, tally: &Tally| {
        let mut row = tally_as_json(tally);
        row[key] = name;
        row["precision"] = json!(tally.precision());
        row["precision_interval"] = interval_as_json(Some(tally.interval(Verdict::Correct)));
        row
    };
    let by_b_sim = (2..)
        .zip(&study.by_b_sim)
        .map(|(b_sim, tally)| by("b_sim", json!(b_sim), tally));
    let by_c_sim = C_SIM_BINS.iter().zip(&study.by_c_sim);
    let by_c_sim = by_c_sim.map(|(bin, tally)| by("c_sim", json!([bin.start(), bin.end()]), tally));
    let by_difference = Difference::ALL.iter().zip(&study.by_difference);
    let by_difference = by_difference
        .map(|(difference, tally)| by("difference", json!(difference.as_str()), tally));
    json!({
        "w": study.w,
        "scores": measures,
        "policies": study.policies.iter().map(policy_as_json).collect::<Vec<_>>(),
        "by_b_sim": by_b_sim.collect::<Vec<_>>(),
        "by_c_sim": by_c_sim.collect::<Vec<_>>(),
        "correlation": correlation::as_json(&study.correlation),
        "by_difference": by_difference.collect::<Vec<_>>(),
        "agreement": agreement.as_ref().map(agreement_as_json),
    })
}

fn interval_as_json(interval: Option<Interval>) -> Value {
    json!(interval.map(|interval| [interval.low, interval.high]))
}

fn policy_as_json(row: &PolicyRow) -> Value {
    let score = &row.score;
    json!({
        "policy": row.name,
        "threshold": row.threshold.map(Threshold::get),
        "accepted": tally_as_json(&score.accepted),
        "precision": score.precision(),
        "precision_interval": interval_as_json(Some(score.precision_interval())),
        "precision_of_decided": score.accepted.precision_of_decided(),
        "recall": score.recall(),
        "recall_interval": interval_as_json(Some(score.recall_interval())),
        "f1": score.f1(),
        "f1_interval": interval_as_json(row.f1_interval),
    })
}

fn agreement_as_json(agreement: &ListedAgreement) -> Value {
    let differ = DIFFERENCES.iter().zip(agreement.n_differ);
    let differ: Vec<Value> = differ
        .map(|(by, n)| json!({ "by": by, "pairs": n }))
        .collect();
    let at = agreement.at.iter().map(|row| {
        json!({
            "threshold": row.threshold.get(),
            "listed": row.n_listed,
            "computed": row.n_ours,
            "both": row.n_both,
        })
    });
    json!({
        "listed": agreement.n_listed,
        "max_difference": agreement.max_difference,
        "differ": differ,
        "at": at.collect::<Vec<_>>(),
    })
}
