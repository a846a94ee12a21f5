//! Configuration files: defaults for options, and `arose config`, which shows them.
//!
//! A file sets options by their long names. The options of [`FOR_ALL`] stand at the top and apply
//! to all commands that have them. The options of one command stand in a table with the name of
//! that command. The settings become the defaults of the options before the command line is parsed.
//! They are therefore checked like arguments, and the command line wins.

mod shown;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::options::{FOR_ALL, NEVER_SET};

pub(crate) use shown::{Options, run};

/// Help on configuration files.
pub(crate) const HELP: &str =
    "arose reads defaults of options from two files: arose/arose.toml in the user's configuration
directory ($XDG_CONFIG_HOME, by default ~/.config), and arose.toml in the current directory, which
wins. Arguments on the command line win over both; --no-config ignores both.

Keys are the long names of options. A table has the name of a command:

    threads = 4                # for every command that has --threads

    [dedup]
    threshold = 0.9
    exclude = [\"drafts\", \"*.bak\"]
    quality = true

    [index.create]
    policy = \"site\"

Only color, json, memory, progress, quiet, shingle, threads and verbose can stand at the top.
Options that discard work or say what one call is to do (--force, --rebuild, --dry-run,
--print-settings) cannot be set. Unknown keys and invalid values are errors. To turn off a flag
that a file sets, pass --FLAG=false. A setting that conflicts with an argument is ignored.

`arose config` lists the files and what they set; `arose config dedup` lists every option of a
command with its value and where the value comes from.";

/// The name of the file in the current directory.
const NAME: &str = "arose.toml";

/// A default that a file sets.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Setting {
    /// The names of the command, without `arose`.
    command: Vec<String>,
    /// The long name of the option.
    option: String,
    values: Vec<String>,
    /// `file:line`.
    place: String,
}

/// A file that may set defaults.
#[derive(Debug, Clone)]
struct File {
    path: PathBuf,
    exists: bool,
}

/// The defaults of all files.
#[derive(Debug, Clone, Default)]
pub(crate) struct Config {
    files: Vec<File>,
    /// At most one for each option.
    settings: Vec<Setting>,
}

impl Config {
    /// Reads the files of the user and of the current directory.
    pub(crate) fn load(command: &Command) -> anyhow::Result<Self> {
        let mut config = Self::default();
        for path in paths() {
            let text = match fs::read_to_string(&path) {
                Ok(text) => Some(text),
                // The home directory of another user is unreadable: treat the file as missing.
                Err(error) if is_missing(&error) || fs::metadata(&path).is_err() => None,
                Err(error) => {
                    let error = anyhow::Error::from(error);
                    return Err(error.context(format!("cannot read `{}`", path.display())));
                }
            };
            if let Some(text) = &text {
                config.add(command, &path.display().to_string(), text)?;
            }
            let exists = text.is_some();
            config.files.push(File { path, exists });
        }
        config.check_conflicts(command)?;
        Ok(config)
    }

    /// Adds the settings of a file, which override those of files added before.
    fn add(&mut self, command: &Command, file: &str, text: &str) -> anyhow::Result<()> {
        let table = DeTable::parse(text).map_err(|error| {
            let line = error.span().map_or(1, |span| line_at(text, span.start));
            anyhow::anyhow!("{file}:{line}: {}", error.message())
        })?;
        let mut for_all = Vec::new();
        let mut own = Vec::new();
        for (key, value) in table.get_ref() {
            let (name, place) = (key.get_ref(), place(file, text, key));
            match value.get_ref() {
                DeValue::Table(inner) => {
                    let names = vec![name.to_string()];
                    let found = command.find_subcommand(&**name);
                    let found = found.with_context(|| unknown(&place, &names))?;
                    read_table(found, inner, &names, file, text, &mut own)?;
                }
                _ => {
                    ensure!(
                        FOR_ALL.contains(&&**name),
                        "{place}: unknown key `{name}`; put options of a command in its table, \
                         e.g. [dedup]"
                    );
                    for path in commands_with(command, name) {
                        for_all.push(Setting {
                            command: path,
                            option: name.to_string(),
                            values: values_of(&place, name, value)?,
                            place: place.clone(),
                        });
                    }
                }
            }
        }
        for setting in for_all.into_iter().chain(own) {
            check(command, &setting)?;
            let is_same =
                |old: &Setting| old.command == setting.command && old.option == setting.option;
            self.settings.retain(|old| !is_same(old));
            self.settings.push(setting);
        }
        Ok(())
    }

    /// Two settings of one command must not conflict.
    fn check_conflicts(&self, command: &Command) -> anyhow::Result<()> {
        for (n, a) in self.settings.iter().enumerate() {
            for b in &self.settings[..n] {
                let Some(found) = at_path(command, &a.command).filter(|_| a.command == b.command)
                else {
                    continue;
                };
                let both = (option(found, &a.option), option(found, &b.option));
                if let (Some(first), Some(second)) = both
                    && conflict(found, first, second)
                {
                    bail!(
                        "{}: `{}` conflicts with `{}` at {}; remove one of them",
                        a.place,
                        a.option,
                        b.option,
                        b.place
                    );
                }
            }
        }
        Ok(())
    }

    /// Makes the settings the defaults of options.
    pub(crate) fn apply(&self, command: Command) -> Command {
        self.settings.iter().fold(command, |command, setting| {
            with_default(command, &setting.command, setting)
        })
    }

    /// Removes settings that conflict with arguments, which win. Returns whether there were any.
    pub(crate) fn yield_to(&mut self, command: &Command, matches: &ArgMatches) -> bool {
        let before = self.settings.len();
        self.settings.retain(|setting| {
            let mut matches = matches;
            for name in &setting.command {
                match matches.subcommand() {
                    Some((given, inner)) if given == name => matches = inner,
                    _ => return true,
                }
            }
            let Some(found) = at_path(command, &setting.command) else {
                return true;
            };
            let Some(own) = option(found, &setting.option) else {
                return true;
            };
            let is_given = |other: &&Arg| {
                let id = other.get_id().as_str();
                matches.try_contains_id(id).is_ok()
                    && matches.value_source(id) == Some(ValueSource::CommandLine)
            };
            let mut given = found.get_arguments().filter(is_given);
            !given.any(|given| conflict(found, own, given))
        });
        self.settings.len() != before
    }

    /// The settings that the files make for a command, e.g. `--threshold 0.9 (./arose.toml:3)`.
    pub(crate) fn in_words(&self, matches: &ArgMatches) -> Vec<String> {
        let mut names = Vec::new();
        let mut inner = matches;
        while let Some((name, next)) = inner.subcommand() {
            names.push(name.to_owned());
            inner = next;
        }
        let is_own = |set: &&Setting| set.command.is_empty() || set.command == names;
        let own = self.settings.iter().filter(is_own);
        own.map(|set| {
            let values: String = set.values.iter().map(|value| format!(" {value}")).collect();
            format!("--{}{values} ({})", set.option, set.place)
        })
        .collect()
    }
}

/// Whether the file is missing; a directory of that name does not count.
fn is_missing(error: &io::Error) -> bool {
    use io::ErrorKind::{IsADirectory, NotADirectory, NotFound};
    matches!(error.kind(), NotFound | IsADirectory | NotADirectory)
}

/// The files that may set defaults; the last wins.
fn paths() -> Vec<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let user = set("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| set("HOME").map(|home| Path::new(&home).join(".config")));
    let user = user.map(|folder| folder.join("arose").join(NAME));
    user.into_iter().chain([PathBuf::from(NAME)]).collect()
}

fn line_at(text: &str, byte: usize) -> usize {
    let end = byte.min(text.len());
    1 + text.as_bytes()[..end]
        .iter()
        .filter(|&&b| b == b'\n')
        .count()
}

fn place<T>(file: &str, text: &str, what: &Spanned<T>) -> String {
    format!("{file}:{}", line_at(text, what.span().start))
}

fn unknown(place: &str, names: &[String]) -> String {
    format!("{place}: no command `{}`", names.join(" "))
}

/// Reads the table of a command and the tables of its subcommands.
fn read_table(
    command: &Command,
    table: &DeTable<'_>,
    names: &[String],
    file: &str,
    text: &str,
    settings: &mut Vec<Setting>,
) -> anyhow::Result<()> {
    for (key, value) in table {
        let (name, place) = (key.get_ref(), place(file, text, key));
        if let DeValue::Table(inner) = value.get_ref() {
            let names: Vec<String> = names.iter().cloned().chain([name.to_string()]).collect();
            let found = command.find_subcommand(&**name);
            let found = found.with_context(|| unknown(&place, &names))?;
            read_table(found, inner, &names, file, text, settings)?;
            continue;
        }
        let command_name = names.join(" ");
        ensure!(
            !NEVER_SET.contains(&&**name),
            "{place}: `{name}` cannot be set in a file; pass --{name} on the command line"
        );
        ensure!(
            option(command, name).is_some(),
            match FOR_ALL.contains(&&**name) {
                true => format!("{place}: `{name}` is for all commands; put it above all tables"),
                false => format!(
                    "{place}: unknown key `{name}`; `arose {command_name} --help` lists the options"
                ),
            }
        );
        settings.push(Setting {
            command: names.to_vec(),
            option: name.to_string(),
            values: values_of(&place, name, value)?,
            place,
        });
    }
    Ok(())
}

/// The values of a key, in the form they have on the command line.
fn values_of(place: &str, name: &str, value: &Spanned<DeValue<'_>>) -> anyhow::Result<Vec<String>> {
    let one = |value: &DeValue<'_>| match value {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(number) => {
            let digits = i128::from_str_radix(number.as_str(), number.radix());
            let digits = digits.with_context(|| format!("{place}: `{name}` is too large"))?;
            Ok(digits.to_string())
        }
        DeValue::Float(number) => Ok(number.as_str().to_owned()),
        DeValue::Boolean(flag) => Ok(flag.to_string()),
        other => bail!(
            "{place}: `{name}` cannot be {}; expected text, a number, true, false, or a list of these",
            other.type_str()
        ),
    };
    match value.get_ref() {
        DeValue::Array(values) => values.iter().map(|value| one(value.get_ref())).collect(),
        value => Ok(vec![one(value)?]),
    }
}

/// The names of the commands that have an option. An option of all commands belongs to `arose`
/// itself, which has no names.
fn commands_with(command: &Command, name: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut left = vec![(Vec::new(), command)];
    while let Some((names, command)) = left.pop() {
        if option(command, name).is_some() {
            found.push(names.clone());
        }
        for inner in command.get_subcommands() {
            let name = inner.get_name().to_owned();
            left.push((names.iter().cloned().chain([name]).collect(), inner));
        }
    }
    found
}

fn at_path<'a>(command: &'a Command, names: &[String]) -> Option<&'a Command> {
    let next = |command: &'a Command, name: &String| command.find_subcommand(name);
    names.iter().try_fold(command, next)
}

/// An option of a command by its long name.
fn option<'a>(command: &'a Command, name: &str) -> Option<&'a Arg> {
    let mut options = command.get_arguments();
    options.find(|arg| arg.get_long() == Some(name) && !arg.is_hide_set())
}

fn is_flag(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::SetTrue)
}

fn conflict(command: &Command, a: &Arg, b: &Arg) -> bool {
    let excludes = |a: &Arg, b: &Arg| {
        let others = command.get_arg_conflicts_with(a);
        others.iter().any(|other| other.get_id() == b.get_id())
    };
    excludes(a, b) || excludes(b, a)
}

/// Checks a value as an argument is checked.
fn check(command: &Command, setting: &Setting) -> anyhow::Result<()> {
    let Setting {
        option: name,
        place,
        values,
        ..
    } = setting;
    let arg = at_path(command, &setting.command).and_then(|command| option(command, name));
    let arg = arg.with_context(|| format!("{place}: unknown key `{name}`"))?;
    if is_flag(arg) {
        let is_bool = matches!(&values[..], [value] if value == "true" || value == "false");
        ensure!(is_bool, "{place}: `{name}` must be true or false");
        return Ok(());
    }
    let is_list = matches!(arg.get_action(), ArgAction::Append);
    ensure!(
        values.len() == 1 || (is_list && !values.is_empty()),
        "{place}: `{name}` takes one value"
    );
    let given = values.iter().map(|value| format!("--{name}={value}"));
    let names = setting.command.iter().cloned();
    let line = ["arose".to_owned()].into_iter().chain(names).chain(given);
    match command.clone().try_get_matches_from(line) {
        Err(error) if is_about_value(error.kind()) => {
            let text = error.render().to_string();
            let line = text.lines().next().unwrap_or_default();
            let line = line.trim_start_matches("error: ");
            bail!("{place}: {line}")
        }
        _ => Ok(()),
    }
}

fn is_about_value(kind: ErrorKind) -> bool {
    use ErrorKind::{InvalidUtf8, InvalidValue, TooFewValues, TooManyValues, ValueValidation};
    matches!(
        kind,
        InvalidUtf8 | InvalidValue | TooFewValues | TooManyValues | ValueValidation
    )
}

fn with_default(command: Command, names: &[String], setting: &Setting) -> Command {
    if let [name, rest @ ..] = names {
        return command.mut_subcommand(name, |inner| with_default(inner, rest, setting));
    }
    let Some(id) = option(&command, &setting.option).map(|arg| arg.get_id().to_string()) else {
        return command;
    };
    command.mut_arg(id, |arg| match is_flag(&arg) {
        // A flag that is on by default can be turned off by `--flag=false`.
        true => arg
            .action(ArgAction::Set)
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true")
            .hide_default_value(true)
            .default_values(setting.values.iter().map(|value| forever(value))),
        false => arg
            .required(false)
            .default_values(setting.values.iter().map(|value| forever(value))),
    })
}

/// Defaults live as long as the process, which parses its arguments once.
fn forever(text: &str) -> &'static str {
    text.to_owned().leak()
}

#[cfg(test)]
mod tests;
