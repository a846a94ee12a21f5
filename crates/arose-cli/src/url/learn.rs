//! `arose url learn`: URL rules from a list of URLs with digests.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::PathBuf;

use anyhow::Context;
use arose::dust::{Config, State};
use arose_crawl::rules::{Learned, learn, to_line};

use crate::progress::write_line;
use crate::read::Outcome;

/// Learn which parts of URLs do not select a page, from URLs with digests
///
/// FILE has a URL and a digest of its content on each line: JSON Lines with the fields url and
/// digest, tab-separated values, or a CDXJ index. Pages with equal digests are the same. Prints the
/// rules as in rules.jsonl, which `arose crawl rules DIR --import` takes.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  arose url learn index.cdxj > rules.jsonl
  arose crawl export crawl | arose url learn -
  arose url learn urls.tsv --active

Exit code: 0 if there are rules, 1 if there are none, 2 on error.")]
pub(crate) struct Options {
    /// List of URLs with digests; `-` is standard input
    file: PathBuf,
    /// Print active rules only
    #[arg(long)]
    active: bool,
    /// Require as much evidence for known names, such as PHPSESSID and utm_source, as for others
    #[arg(long)]
    no_known_names: bool,
}

/// Learns, and prints rules and counts.
pub(crate) fn run(options: &Options) -> anyhow::Result<Outcome> {
    let name = options.file.display().to_string();
    let lines: Box<dyn BufRead> = match options.file.as_os_str() == "-" {
        true => Box::new(io::stdin().lock()),
        false => {
            let file = File::open(&options.file);
            Box::new(BufReader::new(
                file.with_context(|| format!("cannot read {name}"))?,
            ))
        }
    };
    let config = Config {
        has_prior: !options.no_known_names,
        ..Config::default()
    };
    let learned = learn(lines, config).with_context(|| format!("cannot read {name}"))?;
    let n_shown = write(options, &learned).context("cannot write the rules")?;
    let Learned {
        n_urls,
        n_errors,
        n_bad,
        n_covered,
        ..
    } = learned;
    let mut message = format!("{n_urls} URLs, {n_covered} of them covered by active rules");
    if n_errors > 0 {
        message.push_str(&format!(", {n_errors} errors left out"));
    }
    if n_bad > 0 {
        message.push_str(&format!(", {n_bad} lines without URL and digest skipped"));
    }
    write_line(&format!("arose: {message}"));
    Ok(match n_shown {
        0 => Outcome::NothingFound,
        _ => Outcome::Found,
    })
}

fn write(options: &Options, learned: &Learned) -> io::Result<usize> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let rules = learned.rules.iter();
    let rules = rules.filter(|rule| !options.active || rule.state == State::Active);
    let mut n = 0;
    for rule in rules {
        writeln!(out, "{}", to_line(rule))?;
        n += 1;
    }
    out.flush()?;
    Ok(n)
}
