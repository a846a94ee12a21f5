//! `arose estimate overlap`: relative sizes, union and coverage.

use anyhow::ensure;
use arose::estimate::least_squares::Form;
use arose_estimate::overlap::{self, Settings};
use clap::ValueEnum;

use super::asking::{Asking, Lookup, Words};
use super::shown::show;
use crate::read::Outcome;

/// Draws random pages of each engine and looks them up in all others.
///
/// A page is drawn by a query of two random words, and looked up by its rarest words: the same
/// URL, a page it leads to, or a near duplicate counts as found. `--check both` also looks it up by
/// its URL. All pairs together give relative sizes, the union, and the share of it that each engine
/// holds.
#[derive(clap::Args)]
#[command(after_help = examples())]
pub(crate) struct Options {
    /// The engines, two at least; the first is the unit.
    #[arg(value_name = "ENGINE")]
    engines: Vec<String>,
    /// Pages drawn from each engine.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 400)]
    samples: usize,
    #[command(flatten)]
    lookup: Lookup,
    /// Which sum of squares is made small.
    #[arg(long, value_enum, default_value_t = FormName::Logarithmic)]
    form: FormName,
    #[command(flatten)]
    asking: Asking,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum FormName {
    /// Of logarithms, weighted by what each pair knows; no engine is special.
    Logarithmic,
    /// Of overlaps, in units of the first engine, as in the literature.
    Linear,
}

fn examples() -> String {
    format!(
        "Examples:\n  arose estimate overlap out1 out2 -n 600\n  arose estimate overlap ours=out \
         theirs=solr:http://127.0.0.1:8983/solr/pages \\\n      --log requests.jsonl --budget \
         5000\n  arose estimate overlap --replay requests.jsonl\n\n{}",
        super::ENGINES
    )
}

pub(super) fn run(options: &Options) -> anyhow::Result<Outcome> {
    let mut ready = options.asking.open(&options.engines, Words::Needed)?;
    ensure!(
        ready.panel.n_engines() >= 2,
        "an overlap needs two engines at least; for one see `arose estimate corpus-size`"
    );
    let settings = Settings {
        n_samples: options.samples,
        checking: options.lookup.checking(),
        form: match options.form {
            FormName::Logarithmic => Form::Logarithmic,
            FormName::Linear => Form::Linear,
        },
        seed: options.asking.seed,
        ..Settings::default()
    };
    let findings = ready.watched(|panel, words| overlap::run(panel, words, &settings))?;
    show(&[findings], options.asking.json)
}
