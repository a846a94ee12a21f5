//! `arose config`: which options are set, to what, and where.

use std::io::{self, BufWriter, Write};

use anyhow::{Context, ensure};
use clap::{Arg, ArgAction, Command};
use serde_json::{Value, json};

use super::{Config, File, Setting, at_path, option};
use crate::options::NEVER_SET;
use crate::output::{printable, write_json};
use crate::read::Outcome;

/// Show the options that configuration files set, and where
///
/// Without COMMAND, prints the files and every option they set. With COMMAND, prints every option
/// of the command with its value and the place that sets it.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:
  arose config
  arose config dedup
  arose config index create --json

`arose help config` describes the files.",
    after_long_help = super::HELP
)]
pub(crate) struct Options {
    /// Command, e.g. dedup or index create
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
    /// Print one JSON object per option
    #[arg(long)]
    json: bool,
}

/// An option with its value.
struct Row {
    command: String,
    option: String,
    value: Option<String>,
    source: String,
}

pub(crate) fn run(options: &Options, config: &Config) -> anyhow::Result<Outcome> {
    let command = crate::command();
    let names = &options.command;
    let found = at_path(&command, names);
    let found = found.with_context(|| format!("no command `{}`", names.join(" ")))?;
    ensure!(
        names.is_empty() || found.get_arguments().next().is_some(),
        "`{}` has no options itself; pass one of its commands, e.g. `{0} {}`",
        names.join(" "),
        found.get_subcommands().next().map_or("", Command::get_name)
    );
    let rows = match names.is_empty() {
        true => config.settings.iter().map(row_of_setting).collect(),
        false => rows(found, names, config),
    };
    let mut out = BufWriter::new(io::stdout().lock());
    let written = match options.json {
        true => rows
            .iter()
            .try_for_each(|row| write_json(&mut out, &as_json(row))),
        false => write_text(&mut out, &config.files, &rows),
    };
    let written = written.and_then(|()| out.flush());
    written.context("cannot write the options")?;
    Ok(Outcome::Found)
}

fn row_of_setting(setting: &Setting) -> Row {
    Row {
        command: setting.command.join(" "),
        option: setting.option.clone(),
        value: Some(setting.values.join(", ")),
        source: setting.place.clone(),
    }
}

/// Every option of a command that a file could set.
fn rows(command: &Command, names: &[String], config: &Config) -> Vec<Row> {
    let can_be_set = |arg: &&Arg| {
        let name = arg.get_long();
        name.is_some_and(|name| !NEVER_SET.contains(&name) && option(command, name).is_some())
    };
    let set_for = |option: &str| {
        let is_own = |set: &&Setting| set.command == names && set.option == option;
        config.settings.iter().find(is_own)
    };
    let own = command.get_arguments().filter(can_be_set);
    let of_all = config.settings.iter().filter(|set| set.command.is_empty());
    own.map(|arg| {
        let name = arg.get_long().unwrap_or_default();
        match set_for(name) {
            Some(setting) => row_of_setting(setting),
            None => {
                let value = default_of(arg);
                let source = if value.is_some() {
                    "default"
                } else {
                    "not set"
                };
                Row {
                    command: names.join(" "),
                    option: name.to_owned(),
                    value,
                    source: source.to_owned(),
                }
            }
        }
    })
    .chain(of_all.map(row_of_setting))
    .collect()
}

/// The default of an option. Defaults that depend on other options are only in its help.
fn default_of(arg: &Arg) -> Option<String> {
    let values = arg.get_default_values().iter();
    let values: Vec<String> = values.map(|v| v.to_string_lossy().into_owned()).collect();
    if !values.is_empty() {
        return Some(values.join(", "));
    }
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let (_, default) = help.rsplit_once("[default: ").unwrap_or_default();
    match (arg.get_action(), default.trim_end_matches([']', '.'])) {
        (ArgAction::SetTrue, _) => Some("false".to_owned()),
        (_, "") => None,
        (_, default) => Some(default.to_owned()),
    }
}

fn as_json(row: &Row) -> Value {
    json!({
        "command": row.command,
        "option": row.option,
        "value": row.value,
        "source": row.source,
    })
}

fn write_text(out: &mut impl Write, files: &[File], rows: &[Row]) -> io::Result<()> {
    for file in files {
        let state = if file.exists { "" } else { " (not found)" };
        writeln!(out, "file: {}{state}", file.path.display())?;
    }
    let width = |cell: fn(&Row) -> usize| rows.iter().map(cell).max().unwrap_or(0);
    let option_width = width(|row| row.option.chars().count());
    let value_width = width(|row| value(row).chars().count().min(40));
    let mut command = None;
    for row in rows {
        if command != Some(&row.command) {
            let name = match &*row.command {
                "" => "all commands",
                name => name,
            };
            writeln!(out, "\n{name}")?;
            command = Some(&row.command);
        }
        writeln!(
            out,
            "  {:<option_width$}  {:<value_width$}  {}",
            row.option,
            value(row),
            row.source
        )?;
    }
    Ok(())
}

fn value(row: &Row) -> String {
    row.value
        .as_deref()
        .map_or_else(|| "-".to_owned(), printable)
}
