//! `arose crawl rules`: lists URL rules with their evidence, and exports, imports and switches
//! them.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use arose::dust::{PartRule, State};
use arose_crawl::UrlRule;
use arose_crawl::rules::{parse_line, to_line};
use serde_json::Value;

use crate::output::printable;
use crate::read::Outcome;

#[derive(clap::Args)]
pub(super) struct Options {
    /// Directory of the crawl
    dir: PathBuf,
    /// Print one JSON object per line, as in rules.jsonl
    #[arg(long)]
    json: bool,
    /// Write all rules to this file instead; `-` is standard output
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    export: Option<PathBuf>,
    /// Import the rules in this file; `-` is standard input
    #[arg(long, value_name = "FILE")]
    import: Option<PathBuf>,
    /// Switch a rule on, named as in the list, e.g. 'example.org/item/* parameter sid'; repeatable
    #[arg(long, value_name = "RULE")]
    on: Vec<String>,
    /// Switch a rule off, and queue its deferred URLs; repeatable
    #[arg(long, value_name = "RULE")]
    off: Vec<String>,
}

/// Lists rules, or passes changed rules to the crawl.
pub(super) fn run(options: &Options) -> anyhow::Result<Outcome> {
    let mut rules = arose_crawl::url_rules(&options.dir)?;
    let mut wanted = match &options.import {
        Some(path) => import(path)?,
        None => Vec::new(),
    };
    for (names, state) in [
        (&options.on, State::Active),
        (&options.off, State::Suspended),
    ] {
        for name in names {
            wanted.push(switched(&rules, name, state)?);
        }
    }
    if !wanted.is_empty() {
        arose_crawl::order_rules(&options.dir, &wanted)?;
        rules = arose_crawl::url_rules(&options.dir)?;
    }
    let is_quiet = !wanted.is_empty() && !options.json && options.export.is_none();
    let mut out: Box<dyn Write> = match &options.export {
        Some(path) if path.as_os_str() != "-" => {
            let file = std::fs::File::create(path);
            let file = file.with_context(|| format!("cannot write {}", path.display()))?;
            Box::new(io::BufWriter::new(file))
        }
        _ => Box::new(io::BufWriter::new(io::stdout().lock())),
    };
    let shown = if is_quiet { &wanted } else { &rules };
    let is_json = options.json || options.export.is_some();
    shown
        .iter()
        .try_for_each(|rule| match is_json {
            true => writeln!(out, "{}", to_line(rule)),
            false => write_rule(&mut out, rule),
        })
        .and_then(|()| out.flush())
        .context("cannot write the rules")?;
    Ok(match shown.is_empty() {
        true => Outcome::NothingFound,
        false => Outcome::Found,
    })
}

/// Reads the rules of a file. Every line must be a rule.
fn import(path: &Path) -> anyhow::Result<Vec<UrlRule>> {
    let read = || match path.as_os_str() == "-" {
        true => io::read_to_string(io::stdin().lock()),
        false => std::fs::read_to_string(path),
    };
    let text = read().with_context(|| format!("cannot read {}", path.display()))?;
    let lines = (1..).zip(text.lines());
    let lines = lines.filter(|(_, line)| !line.trim().is_empty());
    let rules = lines.map(|(number, line)| match parse_line(line) {
        Ok(rule) => Ok(rule),
        Err(wrong) => bail!("{}:{number}: not a rule: {wrong}", path.display()),
    });
    rules.collect()
}

/// Returns the rule with this scope and text, in another state.
fn switched(rules: &[UrlRule], name: &str, state: State) -> anyhow::Result<UrlRule> {
    let Some((scope, text)) = name.split_once(' ') else {
        bail!("`{name}` is not a rule; expected e.g. 'example.org/item/* parameter sid'");
    };
    let rule: PartRule = text.parse()?;
    let known = rules
        .iter()
        .find(|known| known.scope == scope && known.rule == rule);
    let Some(known) = known else {
        bail!("the crawl has no rule `{name}`; `arose crawl rules DIR` lists them");
    };
    Ok(UrlRule {
        state,
        ..known.clone()
    })
}

/// One rule as a line for people.
pub(super) fn write_rule(out: &mut (impl Write + ?Sized), rule: &UrlRule) -> io::Result<()> {
    writeln!(
        out,
        "{:<9}  {} {}  {} same, {} different, {} probes, {} deferred, {} audited",
        rule.state.as_str(),
        printable(&rule.scope),
        printable(&rule.rule.to_string()),
        rule.n_same,
        rule.n_different,
        rule.n_probes,
        rule.n_deferred,
        rule.n_audited
    )
}

/// A rule as in rules.jsonl.
pub(super) fn rule_json(rule: &UrlRule) -> Value {
    serde_json::from_str(&to_line(rule)).unwrap_or_default()
}
