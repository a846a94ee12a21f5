//! `arose completions` and `arose man`, generated from the definitions of the commands.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Context;
use clap_complete::Shell;

use crate::output::remark;
use crate::read::Outcome;

/// Print a completion script for a shell.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  arose completions bash > ~/.local/share/bash-completion/completions/arose
  arose completions zsh > ~/.zfunc/_arose
  arose completions fish > ~/.config/fish/completions/arose.fish")]
pub(crate) struct Options {
    /// Shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

pub(crate) fn run(options: &Options) -> anyhow::Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut crate::command(), "arose", &mut script);
    let mut out = io::stdout().lock();
    let written = out.write_all(&script).and_then(|()| out.flush());
    written.context("cannot write the script")?;
    Ok(Outcome::Found)
}

/// Write man pages, one for each command.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  arose man ~/.local/share/man/man1
  arose man man && man ./man/arose-dedup.1")]
pub(crate) struct ManOptions {
    /// Output directory; created if missing
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

pub(crate) fn write_man_pages(options: &ManOptions) -> anyhow::Result<Outcome> {
    let folder = &options.folder;
    let unwritable = || format!("cannot write man pages to `{}`", folder.display());
    fs::create_dir_all(folder).with_context(unwritable)?;
    clap_mangen::generate_to(crate::command(), folder).with_context(unwritable)?;
    remark(format_args!(
        "arose: wrote man pages to `{0}`; `man {0}/arose.1` shows the first",
        folder.display()
    ));
    Ok(Outcome::Found)
}
