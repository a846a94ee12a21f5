//! What commands say of input that could not be read.

use std::path::PathBuf;

use anyhow::{bail, ensure};
use arose_corpus::{Config, Item, Loss, Losses, Reason, Warning};
use arose_dedup::report::html::counted;

use crate::output::printable;
use crate::read::Outcome;

/// Warnings that are shown one by one.
const MAX_WARNINGS: u64 = 20;

/// Shows warnings up to a limit.
#[derive(Default)]
pub(crate) struct Warnings {
    n: u64,
}

impl Warnings {
    /// Shows a warning that people want to see. Incomplete files are named at the end.
    pub(crate) fn show(&mut self, warning: &Warning) {
        if !warning.is_reported() || warning.loss == Loss::File {
            return;
        }
        self.n += 1;
        if self.n <= MAX_WARNINGS {
            eprintln!("arose: {}", words(warning));
        } else if self.n == MAX_WARNINGS + 1 {
            eprintln!("arose: more warnings follow and are only counted");
        }
    }
}

/// A warning with its remedy, if there is one.
pub(crate) fn words(warning: &Warning) -> String {
    let remedy = match (warning.reason, warning.loss) {
        (Reason::NoText, Loss::File) => "; set --text-field",
        _ => "",
    };
    format!("{}{remedy}", printable(&warning.to_string()))
}

/// Names the incomplete files, and gives the outcome of a command that did the rest.
pub(crate) fn outcome(losses: &Losses, otherwise: Outcome) -> Outcome {
    if losses.n_files == 0 {
        return otherwise;
    }
    for warning in &losses.files {
        eprintln!("arose: {}", words(warning));
    }
    say_incomplete(losses.n_files);
    Outcome::Incomplete
}

/// The last line on standard error of a command that ends with exit code 3.
pub(crate) fn say_incomplete(n_files: u64) {
    let files = counted(n_files, "file", "files");
    eprintln!("arose: {files} could not be read completely; everything else is done");
}

/// An error if a warning tells of a loss.
pub(crate) fn refuse(warning: &Warning) -> anyhow::Result<()> {
    if warning.loss == Loss::Nothing {
        return Ok(());
    }
    bail!(
        "the input is incomplete: {}; repair the input or run without --strict",
        words(warning)
    )
}

/// Reads everything and gives an error if something is lost, before any of it is used.
pub(crate) fn check(inputs: &[PathBuf], config: Config) -> anyhow::Result<()> {
    let has_pipe = inputs.iter().any(|input| input.as_os_str() == "-");
    ensure!(
        !has_pipe,
        "--strict cannot check standard input before it is used; pass a file"
    );
    let warning = |item| match item {
        Item::Skipped(warning) => Some(warning),
        Item::Document(_) => None,
    };
    let warnings = arose_corpus::read_map(inputs, config, warning)?;
    warnings.flatten().try_for_each(|warning| refuse(&warning))
}
