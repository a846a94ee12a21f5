//! `arose estimate simulate`: methods on synthetic engines whose truth is known.

use std::io::{self, BufWriter, Write};

use anyhow::{Context, ensure};
use arose::estimate::simulate::{CorpusConfig, EngineConfig};
use arose_estimate::engine::Fault;
use arose_estimate::simulate::{self, Fared, Part, Settings};
use clap::ValueEnum;

use super::shown::show;
use crate::output::write_json;
use crate::read::Outcome;

/// Runs the methods on synthetic engines of known size and overlap.
///
/// The truth stands beside every figure. With --studies the same is done many times, each time with
/// other samples, and told how often the intervals hold the truth. The last engine can be made to
/// misbehave.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  arose estimate simulate
  arose estimate simulate --shares 0.5,0.4 -n 1000 --method overlap
  arose estimate simulate --shares 0.5,0.4 --fault times-out
  arose estimate simulate --method corpus-size --studies 300")]
pub(crate) struct Options {
    /// Pages of the corpus.
    #[arg(long, value_name = "N", default_value_t = 4000)]
    pages: usize,
    /// The share of them that each engine holds.
    #[arg(long, value_name = "SHARE", value_delimiter = ',', default_values_t = [0.5, 0.4, 0.16, 0.085])]
    shares: Vec<f64>,
    /// How far engines hold the same popular pages, 0 to 1.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    dependence: f64,
    /// The share of pages that copy another.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    copied: f64,
    /// Results that engines show at most.
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,
    /// How far claimed counts are off, as a share of them.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    count_noise: f64,
    /// What is wrong with the last engine.
    #[arg(long, value_enum, default_value_t = FaultName::None)]
    fault: FaultName,
    /// Pages drawn from each engine, or queries.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 400)]
    samples: usize,
    /// Which methods; all if not given.
    #[arg(long, value_enum)]
    method: Vec<PartName>,
    /// Studies to run instead of one.
    #[arg(long, value_name = "N")]
    studies: Option<u64>,
    /// The seed of all choices.
    #[arg(long, value_name = "K", default_value_t = 1)]
    seed: u64,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum FaultName {
    None,
    /// Claims three times what it holds, or a third.
    Lies,
    /// Times out on every tenth question.
    TimesOut,
    /// Shows every other result twice.
    Repeats,
    /// Answers every third question with nonsense.
    Nonsense,
    /// Forgets half of its pages on the way.
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
            ensure!(n_studies > 0, "--studies must be above zero");
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

fn settings(options: &Options) -> Settings {
    let parts = options.method.iter().map(|part| part.part());
    let parts: Vec<Part> = match options.method.is_empty() {
        true => Part::ALL.to_vec(),
        false => parts.collect(),
    };
    Settings {
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
    let width = width.unwrap_or(0).max(6);
    writeln!(
        out,
        "  {:width$}   studies   mean error   deviation   intervals that hold the truth",
        "figure"
    )?;
    for one in fared {
        let covering = match one.n_intervals {
            0 => "-".to_owned(),
            n => format!("{} of {n}", one.n_covering),
        };
        writeln!(
            out,
            "  {:width$}   {:>7}   {:>8.2} %   {:>7.2} %   {covering}",
            one.name,
            one.n_given,
            100.0 * one.mean_error,
            100.0 * one.deviation
        )?;
    }
    Ok(())
}
