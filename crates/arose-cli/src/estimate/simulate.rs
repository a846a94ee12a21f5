//! `arose estimate simulate`: the methods on synthetic search engines of known size and overlap.

use std::io::{self, BufWriter, Write};

use anyhow::{Context, ensure};
use arose::estimate::simulate::{CorpusConfig, EngineConfig};
use arose_estimate::engine::Fault;
use arose_estimate::simulate::{self, Fared, Part, SimulationSettings};
use clap::ValueEnum;

use super::shown::show;
use crate::output::write_json;
use crate::read::Outcome;

/// Test the methods on synthetic engines of known size and overlap.
///
/// Prints the ground truth next to every estimate. With --studies, repeats the study with other
/// samples and reports how often the intervals contain the true value. --fault makes the last
/// search engine misbehave.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  arose estimate simulate
  arose estimate simulate --shares 0.5,0.4 -n 1000 --method overlap
  arose estimate simulate --shares 0.5,0.4 --fault times-out
  arose estimate simulate --method corpus-size --studies 300")]
pub(crate) struct Options {
    /// Number of pages in the corpus
    #[arg(long, value_name = "N", default_value_t = 4000)]
    pages: usize,
    /// Share of the pages in each search engine
    #[arg(long, value_name = "SHARE", value_delimiter = ',', default_values_t = [0.5, 0.4, 0.16, 0.085])]
    shares: Vec<f64>,
    /// Tendency of search engines to have the same popular pages, 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    dependence: f64,
    /// Share of pages that duplicate another
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    copied: f64,
    /// Maximum number of results per query
    #[arg(short, long, value_name = "N", default_value_t = 100)]
    limit: usize,
    /// Relative error of claimed result counts
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    count_noise: f64,
    /// Misbehaviour of the last search engine
    #[arg(long, value_enum, default_value_t = FaultName::None)]
    fault: FaultName,
    /// Pages to sample from each search engine, or number of queries
    #[arg(short = 'n', long, value_name = "N", default_value_t = 400)]
    samples: usize,
    /// Method to run; repeatable [default: all]
    #[arg(long, value_enum)]
    method: Vec<PartName>,
    /// Number of studies to run
    #[arg(long, value_name = "N")]
    studies: Option<u64>,
    /// Random seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum FaultName {
    None,
    /// Claims three times its size, or a third
    Lies,
    /// Times out on every tenth query
    TimesOut,
    /// Returns every other result twice
    Repeats,
    /// Returns nonsense for every third query
    Nonsense,
    /// Loses half of its pages during the study
    Changes,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum PartName {
    LowerBound,
    Overlap,
    Searches,
    Pool,
    CorpusSize,
    Capture,
}

pub(super) fn run(options: &Options) -> anyhow::Result<Outcome> {
    let settings = settings(options);
    match options.studies {
        None => show(&simulate::run(&settings)?, options.json),
        Some(n_studies) => {
            ensure!(n_studies > 0, "--studies must be at least 1");
            let fared = simulate::coverage(&settings, n_studies)?;
            let mut out = BufWriter::new(io::stdout().lock());
            let written = match options.json {
                true => write_json(&mut out, &serde_json::to_value(&fared)?),
                false => write_fared(&mut out, &fared),
            };
            written
                .and_then(|()| out.flush())
                .context("cannot write the result")?;
            Ok(Outcome::Found)
        }
    }
}

fn settings(options: &Options) -> SimulationSettings {
    let parts = options.method.iter().map(|part| part.part());
    let parts: Vec<Part> = match options.method.is_empty() {
        true => Part::ALL.to_vec(),
        false => parts.collect(),
    };
    SimulationSettings {
        corpus: CorpusConfig {
            n_pages: options.pages,
            copied: options.copied,
            seed: options.seed,
            ..CorpusConfig::default()
        },
        shares: options.shares.clone(),
        dependence: options.dependence,
        engine: EngineConfig {
            limit: options.limit,
            count_noise: options.count_noise,
            ..EngineConfig::default()
        },
        fault: match options.fault {
            FaultName::None => Fault::None,
            FaultName::Lies => Fault::Lies,
            FaultName::TimesOut => Fault::TimesOut,
            FaultName::Repeats => Fault::Repeats,
            FaultName::Nonsense => Fault::Nonsense,
            FaultName::Changes => Fault::Changes(options.samples as u64),
        },
        n_samples: options.samples,
        parts,
        seed: options.seed,
    }
}

impl PartName {
    fn part(self) -> Part {
        match self {
            Self::LowerBound => Part::LowerBound,
            Self::Overlap => Part::Overlap,
            Self::Searches => Part::Searches,
            Self::Pool => Part::Pool,
            Self::CorpusSize => Part::CorpusSize,
            Self::Capture => Part::Capture,
        }
    }
}

fn write_fared(out: &mut impl Write, fared: &[Fared]) -> io::Result<()> {
    let width = fared.iter().map(|one| one.name.chars().count()).max();
    let width = width.unwrap_or(0).max(8);
    writeln!(
        out,
        "  {:width$}   studies   mean error   deviation   intervals that contain the truth",
        "estimate"
    )?;
    for one in fared {
        let covering = match one.n_intervals {
            0 => "-".to_owned(),
            n => format!("{} of {n}", one.n_covering),
        };
        writeln!(
            out,
            "  {:width$}   {:>7}   {:>9.2}%   {:>8.2}%   {covering}",
            one.name,
            one.n_given,
            100.0 * one.mean_error,
            100.0 * one.deviation
        )?;
    }
    Ok(())
}
