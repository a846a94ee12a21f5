//! Messages about input that could not be read.

use std::path::PathBuf;

use anyhow::{bail, ensure};
use arose_corpus::{Config, Item, Loss, Losses, Reason, Warning};
use arose_dedup::report::html::counted;

use crate::output::{printable, say};
use crate::read::Outcome;

/// Number of warnings shown one by one.
const MAX_WARNINGS: u64 = 20;

/// Prints warnings up to a limit.
#[derive(Default)]
pub(crate) struct Warnings {
    n: u64,
}

impl Warnings {
    /// Prints a warning, except about incomplete files, which are listed at the end.
    pub(crate) fn show(&mut self, warning: &Warning) {
        if !warning.is_reported() || warning.loss == Loss::File {
            return;
        }
        self.n += 1;
        if self.n <= MAX_WARNINGS {
            say(format_args!("arose: {}", words(warning)));
        } else if self.n == MAX_WARNINGS + 1 {
            say(format_args!("arose: further warnings are only counted"));
        }
    }
}

/// A warning with its remedy, if any.
pub(crate) fn words(warning: &Warning) -> String {
    let remedy = match (warning.reason, warning.loss) {
        (Reason::NoText, Loss::File | Loss::Record) => "; set --text-field",
        _ => "",
    };
    format!("{}{remedy}", printable(&warning.to_string()))
}

/// Lists the incomplete files and returns the outcome of a command that did the rest.
pub(crate) fn outcome(losses: &Losses, otherwise: Outcome) -> Outcome {
    if losses.n_files == 0 {
        return otherwise;
    }
    for warning in &losses.files {
        say(format_args!("arose: {}", words(warning)));
    }
    say_incomplete(losses.n_files);
    Outcome::Incomplete
}

/// The last line on standard error of a command that ends with exit code 3.
pub(crate) fn say_incomplete(n_files: u64) {
    let files = counted(n_files, "file", "files");
    say(format_args!(
        "arose: {files} could not be read completely; everything else is done"
    ));
}

/// Returns an error if a warning is about lost input.
pub(crate) fn refuse(warning: &Warning) -> anyhow::Result<()> {
    if warning.loss == Loss::Nothing {
        return Ok(());
    }
    bail!(
        "the input is incomplete: {}; repair the input or run without --strict",
        words(warning)
    )
}

/// Reads all input and returns an error if part of it is lost, before any of it is used.
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
