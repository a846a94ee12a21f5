//! `arose evaluate report`: summarizes the ratings of a run.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use arose::judgement::Correlation;
use arose_dedup::evaluate::ratings::{Population, Ratings, Row, Tables, WeightedShare};
use arose_dedup::report::{self, html::counted};
use arose_dedup::results::{self, Summary};

use super::{correlation, share};
use crate::output::{printable, say, write_json};
use crate::read::Outcome;

/// Summarize the ratings of a run and add them to report.html.
///
/// People rate pairs on the pages of `arose serve`, which stores the ratings in ratings.jsonl in
/// the output directory. The tables are those of Henzinger's comparison: the shares of correct,
/// incorrect and undecided pairs by B-sim and C-sim, on the same site and between sites, with 95%
/// intervals; the agreement between raters; and the correlation of B-sim and C-sim over all pairs
/// of the run.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  arose serve OUT
  arose evaluate report OUT
  arose evaluate report OUT --json

Exit code: 0 if done, 1 if there are no ratings, 2 on error.")]
pub(crate) struct Options {
    /// Output directory of `arose dedup`
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Prints the tables and rewrites the report.
pub(super) fn run(options: &Options) -> anyhow::Result<Outcome> {
    let folder = &options.folder;
    let summary = Summary::open(&folder.join("summary.json"))?;
    let tables = Ratings::of_run(folder)?.tables(&Population::of_run(folder)?);
    let mut out = BufWriter::new(io::stdout().lock());
    let both = correlation_of_run(folder)?;
    let written = match options.json {
        true => {
            let mut json = tables.to_json();
            json["correlation"] = correlation::as_json(&both);
            write_json(&mut out, &json)
        }
        false => write_text(&mut out, &tables).and_then(|()| correlation::write(&mut out, &both)),
    };
    written
        .and_then(|()| out.flush())
        .context("cannot write the result")?;
    match (tables.all.total(), tables.n_elsewhere) {
        (0, 0) => {
            say(format_args!(
                "arose: no ratings yet; rate pairs with `arose serve DIR`"
            ));
            return Ok(Outcome::NothingFound);
        }
        (_, 0) => {}
        (_, n) => say(format_args!(
            "arose: {} for pairs that this run does not list: kept in ratings.jsonl, not counted",
            counted(n, "rating", "ratings")
        )),
    }
    report::write(folder, &summary.reading())?;
    Ok(match tables.all.total() {
        0 => Outcome::NothingFound,
        _ => Outcome::Found,
    })
}

/// The correlation of B-sim and C-sim over all pairs of the run that have both.
fn correlation_of_run(folder: &Path) -> anyhow::Result<Correlation> {
    let mut correlation = Correlation::default();
    results::pairs::for_each(&folder.join("pairs.parquet"), |pair| {
        if let (Some(b_sim), Some(c_sim)) = (pair.b_sim, pair.c_sim) {
            correlation.add(b_sim, c_sim);
        }
        Ok(())
    })?;
    Ok(correlation)
}

fn write_text(out: &mut impl Write, tables: &Tables) -> io::Result<()> {
    writeln!(out, "pairs rated: {}", tables.all.total())?;
    match tables.precision() {
        Some(WeightedShare { value, interval }) => writeln!(
            out,
            "precision of the run  {}  95% interval {:.2}-{:.2}",
            share(Some(value)),
            interval.low,
            interval.high
        )?,
        None => writeln!(out, "precision of the run  -")?,
    }
    writeln!(
        out,
        "of the decided pairs  {}",
        share(tables.all.precision_of_decided())
    )?;
    for (head, rows) in [
        ("B-sim", &tables.by_b),
        ("C-sim", &tables.by_c),
        ("sites", &tables.by_sites),
    ] {
        writeln!(
            out,
            "\n  {head:<15}    found  rated  correct     95%       incorrect     95%       undecided     95%"
        )?;
        for row in rows {
            write_row(out, row)?;
        }
    }
    if !tables.agreements.is_empty() {
        writeln!(
            out,
            "\n  raters                           both  agreed   kappa"
        )?;
    }
    for agreement in &tables.agreements {
        let (one, other) = &agreement.raters;
        let names = format!("{}, {}", printable(one), printable(other));
        let (n, agreed) = (agreement.n_pairs, agreement.n_agreed);
        writeln!(
            out,
            "  {names:<30}  {n:>5}  {agreed:>6}  {}",
            share(agreement.kappa)
        )?;
    }
    Ok(())
}

fn write_row(out: &mut impl Write, row: &Row) -> io::Result<()> {
    let n_found = row.n_found.map_or("-".to_owned(), |n| n.to_string());
    let (name, n_rated) = (&row.name, row.tally.total());
    write!(out, "  {name:<15} {n_found:>8}  {n_rated:>5}")?;
    for (each, width) in row.shares.into_iter().zip([7, 9, 9]) {
        match each {
            Some(WeightedShare { value, interval }) => write!(
                out,
                "  {:>width$}  {:.2}-{:.2}",
                share(Some(value)),
                interval.low,
                interval.high
            )?,
            None => write!(out, "  {:>width$}  {:>9}", "-", "-")?,
        }
    }
    writeln!(out)
}
