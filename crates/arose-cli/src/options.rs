//! Options that several commands share, and the values that options take.
//!
//! An option with a given name means the same in every command; a test compares all commands. This
//! module has the options of every command. `corpus` has those of commands that read documents, and
//! `policy` has the names of policies.

use std::num::{NonZeroU64, NonZeroUsize};
use std::time::Duration;

use arose::Threshold;
use clap::{ArgAction, ValueEnum};

/// Options of every command.
#[derive(Debug, Clone, Copy, clap::Args)]
#[command(next_help_heading = "Options of all commands")]
pub(crate) struct Everywhere {
    /// Print results, warnings and errors only: no progress, no remarks
    #[arg(short, long, global = true, display_order = 900)]
    pub(crate) quiet: bool,
    /// Also print the method, and the options that configuration files set
    #[arg(
        short,
        long,
        global = true,
        conflicts_with = "quiet",
        display_order = 901
    )]
    pub(crate) verbose: bool,
    /// When to use colours
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        value_enum,
        default_value_t,
        display_order = 902
    )]
    pub(crate) color: When,
    /// How to show progress on standard error
    #[arg(
        long,
        global = true,
        value_name = "HOW",
        value_enum,
        default_value_t,
        display_order = 903
    )]
    pub(crate) progress: How,
    /// Ignore configuration files; see `arose help config`
    #[arg(long, global = true, display_order = 904)]
    pub(crate) no_config: bool,
    /// Print this help; `arose help COMMAND` prints more
    #[arg(short, long, global = true, action = ArgAction::HelpShort, display_order = 905)]
    help: Option<bool>,
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum When {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// How to show progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum How {
    /// A bar on a terminal, otherwise a line every ten seconds
    #[default]
    Auto,
    /// A line every ten seconds
    Lines,
    /// Not at all
    Never,
}

/// Options that a configuration file can set for all commands that have them.
pub(crate) const FOR_ALL: [&str; 8] = [
    "color", "json", "memory", "progress", "quiet", "shingle", "threads", "verbose",
];

/// Options that no configuration file can set, because they discard work or select the action of
/// one call.
pub(crate) const NEVER_SET: [&str; 6] = [
    "dry-run",
    "force",
    "help",
    "no-config",
    "print-settings",
    "rebuild",
];

/// Help on the values of options, the topic `units`.
pub(crate) const UNITS: &str = "Sizes are numbers with a unit: 512MiB, 2GiB, 500MB, 64k. KiB, MiB, GiB and TiB (also K, M, G, T)
are powers of 1024; KB, MB, GB and TB powers of 1000. A number without a unit is bytes.

Durations are numbers with a unit: 500ms, 2s, 5min, 1h. A number without a unit is seconds.

Shares, thresholds and similarities are numbers from 0 to 1.";

/// Help on exit codes, the topic `exit-codes`.
pub(crate) const EXIT_CODES: &str = "0  done, or something was found
1  nothing was found, or no document was read
2  error; the message on standard error says what to do
3  done, but part of the input could not be read";

/// A number in 0..=1 as written on the command line.
pub(crate) fn threshold(argument: &str) -> Result<Threshold, &'static str> {
    let value = argument.parse().ok();
    let threshold = value.and_then(|value| Threshold::new(value).ok());
    threshold.ok_or("expected a number from 0 to 1")
}

/// A number of at least 1.
pub(crate) fn positive(text: &str) -> Result<NonZeroUsize, String> {
    let number = text.parse().ok().and_then(NonZeroUsize::new);
    number.ok_or_else(|| "expected a number of at least 1".to_owned())
}

/// A number of bytes: `512MiB`, `2GB`, `1073741824`.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let expected = || "expected a size such as 2GiB or 500MB".to_owned();
    let (number, unit) = number_and_unit(text).ok_or_else(expected)?;
    let unit = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1_u64,
        "k" | "kib" => 1 << 10,
        "kb" => 1_000,
        "m" | "mib" => 1 << 20,
        "mb" => 1_000_000,
        "g" | "gib" => 1 << 30,
        "gb" => 1_000_000_000,
        "t" | "tib" => 1 << 40,
        "tb" => 1_000_000_000_000,
        _ => return Err(expected()),
    };
    Ok((number * unit as f64) as u64)
}

/// The size of a file, at least one byte.
pub(crate) fn file_size(text: &str) -> Result<NonZeroU64, String> {
    NonZeroU64::new(size(text)?).ok_or_else(|| "expected at least 1 byte".to_owned())
}

const MAX_THREADS: usize = 1024;

/// A number of threads. More than a thousand would only compete for the cores.
pub(crate) fn threads(text: &str) -> Result<NonZeroUsize, String> {
    let number = text.parse().ok().and_then(NonZeroUsize::new);
    let number = number.filter(|number| number.get() <= MAX_THREADS);
    number.ok_or_else(|| format!("expected a number from 1 to {MAX_THREADS}"))
}

const MIN_MEMORY: u64 = 64 << 20;

/// A memory limit, at least 64 MiB.
pub(crate) fn memory(text: &str) -> Result<u64, String> {
    match size(text)? {
        bytes if bytes >= MIN_MEMORY => Ok(bytes),
        _ => Err(format!("expected at least {} MiB", MIN_MEMORY >> 20)),
    }
}

/// A duration: `500ms`, `2s`, `5min`, `1h`; a number alone is seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let expected = || "expected a duration such as 2s, 500ms or 5min".to_owned();
    let (number, unit) = number_and_unit(text).ok_or_else(expected)?;
    let seconds = match unit {
        "ms" => number / 1000.0,
        "" | "s" => number,
        "min" => number * 60.0,
        "h" => number * 3600.0,
        "d" => number * 86400.0,
        _ => return Err(expected()),
    };
    Duration::try_from_secs_f64(seconds).map_err(|_| format!("{text} is too long"))
}

/// Splits a number that is not negative from its unit, which may be empty.
fn number_and_unit(text: &str) -> Option<(f64, &str)> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: f64 = digits.trim().parse().ok()?;
    let is_number = number.is_finite() && number >= 0.0;
    is_number.then_some((number, &text[digits.len()..]))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn issue_32_sizes_have_units() {
        for (text, expected) in [
            ("0", Some(0)),
            ("64", Some(64)),
            ("1.5k", Some(1536)),
            ("2KB", Some(2000)),
            ("3 MiB", Some(3 << 20)),
            ("2gib", Some(2 << 30)),
            ("1TB", Some(1_000_000_000_000)),
            ("-1", None),
            ("inf", None),
            ("MiB", None),
            ("1 sack", None),
            ("", None),
        ] {
            assert_eq!(size(text).ok(), expected, "{text}");
        }
        assert!(memory("63MiB").is_err() && memory("64MiB").is_ok());
        assert!(file_size("0").is_err() && file_size("1").is_ok());
    }

    #[test]
    fn issue_32_durations_have_units() {
        for (text, expected) in [
            ("2", Some(2000)),
            ("0.5", Some(500)),
            ("250ms", Some(250)),
            ("1.5s", Some(1500)),
            ("2 min", Some(120_000)),
            ("1h", Some(3_600_000)),
            ("1d", Some(86_400_000)),
            ("2m", None),
            ("-1s", None),
            ("1e300", None),
            ("soon", None),
        ] {
            let expected = expected.map(Duration::from_millis);
            assert_eq!(duration(text).ok(), expected, "{text}");
        }
    }

    /// Every command that can be run, with its names.
    fn all(command: &clap::Command) -> Vec<(String, clap::Command)> {
        let mut found = vec![(command.get_name().to_owned(), command.clone())];
        for inner in command.get_subcommands() {
            let below = all(inner).into_iter();
            found.extend(
                below.map(|(name, inner)| (format!("{} {name}", command.get_name()), inner)),
            );
        }
        found
    }

    /// The kind of value that an option takes.
    fn kind(arg: &clap::Arg) -> &'static str {
        if matches!(arg.get_action(), ArgAction::SetTrue | ArgAction::HelpShort) {
            return "nothing";
        }
        let names = arg.get_value_names().unwrap_or_default();
        match names.first().map_or("", |name| name.as_str()) {
            "DIR" | "FILE" | "INDEX" | "OUT" | "PATH" | "REFERENCE" => "a path",
            "J" | "M" | "N" | "SHARE" | "T" => "a number",
            "SECONDS" => "a duration",
            "SIZE" => "a size",
            _ => "a word",
        }
    }

    /// An option takes values of the same kind, and has the same short name, in every command.
    #[test]
    fn issue_32_options_mean_the_same_everywhere() {
        let mut seen: BTreeMap<String, (String, &str, Option<char>)> = BTreeMap::new();
        let mut different = Vec::new();
        for (name, command) in all(&crate::command()) {
            for arg in command.get_arguments() {
                let Some(long) = arg.get_long() else { continue };
                let own = (name.clone(), kind(arg), arg.get_short());
                let first = seen.entry(long.to_owned()).or_insert_with(|| own.clone());
                if (first.1, first.2) != (own.1, own.2) {
                    different.push(format!("--{long}: {first:?}, {own:?}"));
                }
            }
        }
        assert!(seen.len() > 100, "too few options");
        assert!(different.is_empty(), "{}", different.join("\n"));
    }

    /// The shared options have one value syntax, checked by one function.
    #[test]
    fn issue_32_shared_options_take_the_same_values() {
        let command = crate::command();
        for (option, good, bad) in [
            ("threads", "2", "0"),
            ("threads", "1024", "1025"),
            ("threads", "1", "1000000"),
            ("memory", "64MiB", "1MiB"),
            ("shingle", "5", "0"),
            ("delay", "500ms", "soon"),
            ("seconds", "2h", "-1"),
            ("max-size", "1GiB", "large"),
            ("max-file-size", "1GiB", "0"),
            ("threshold", "0.5", "1.5"),
            ("recall", "0.5", "1.5"),
            ("color", "never", "red"),
            ("progress", "lines", "bar"),
        ] {
            let mut n_seen = 0;
            for (name, found) in all(&command) {
                if found
                    .get_arguments()
                    .all(|arg| arg.get_long() != Some(option))
                {
                    continue;
                }
                n_seen += 1;
                for (value, is_good) in [(good, true), (bad, false)] {
                    let given = format!("--{option}={value}");
                    let line = name.split(' ').chain([&*given]);
                    let error = command.clone().try_get_matches_from(line).err();
                    let is_refused = error.is_some_and(|error| {
                        use clap::error::ErrorKind::{InvalidValue, ValueValidation};
                        matches!(error.kind(), InvalidValue | ValueValidation)
                    });
                    assert_eq!(is_refused, !is_good, "{name} {given}");
                }
            }
            assert!(n_seen > 0, "no command has --{option}");
        }
    }
}
