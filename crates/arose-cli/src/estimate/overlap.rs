//! `arose estimate overlap`: relative sizes, union and coverage of search engines.

use anyhow::ensure;
use arose::estimate::least_squares::Form;
use arose_estimate::overlap::{self, OverlapSettings};
use clap::ValueEnum;

use super::asking::{Asking, Lookup, Words};
use super::shown::show;
use crate::read::Outcome;

/// Estimate relative sizes by sampling pages and looking them up elsewhere.
///
/// A query of two random words samples a page, and a query of its rarest words looks it up in the
/// other search engines. The page counts as found if the results contain its URL, the URL it
/// redirects to, or a near duplicate. `--check both` also looks up the URL itself. All pairs of
/// search engines together give relative sizes, the size of the union, and the share of the union
/// that each engine has.
#[derive(clap::Args)]
#[command(after_help = examples())]
pub(crate) struct Options {
    /// At least two search engines; sizes are relative to the first
    #[arg(value_name = "ENGINE")]
    engines: Vec<String>,
    /// Pages to sample from each search engine
    #[arg(short = 'n', long, value_name = "N", default_value_t = 400)]
    samples: usize,
    #[command(flatten)]
    lookup: Lookup,
    /// Least-squares form
    #[arg(long, value_enum, default_value_t = FormName::Logarithmic)]
    form: FormName,
    #[command(flatten)]
    asking: Asking,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum FormName {
    /// On logarithms, weighted by the information of each pair; treats all engines equally
    Logarithmic,
    /// On overlaps, in units of the first engine, as in the literature
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
        "an overlap needs at least two search engines; for one, use `arose estimate corpus-size`"
    );
    let settings = OverlapSettings {
        n_samples: options.samples,
        checking: options.lookup.checking(),
        form: match options.form {
            FormName::Logarithmic => Form::Logarithmic,
            FormName::Linear => Form::Linear,
        },
        seed: options.asking.seed,
        ..OverlapSettings::default()
    };
    let findings = ready.watched(|panel, words| overlap::run(panel, words, &settings))?;
    show(&[findings], options.asking.json)
}
