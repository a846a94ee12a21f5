//! `arose robots`: tests URLs against a robots.txt file.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use arose_crawl::robots::{MAX_BYTES, Robots};
use arose_crawl::url::{EmptyQuery, NormalUrl, Normalizer, Url};
use data_encoding::BASE64;
use serde_json::{Value, json};

use crate::answers::{self, Answer, Format, Row};
use crate::input;
use crate::output::printable;
use crate::read::Outcome;

/// Test URLs against a robots.txt file and show the deciding line.
///
/// Without a file, reads JSON Lines from standard input, each with "robots_txt" or "robots_base64",
/// "agent" and "url". Other fields are ignored. --agent applies to lines without "agent".
#[derive(clap::Args)]
#[command(after_help = "Examples:
  arose robots robots.txt --agent arose http://example.org/private/
  arose robots robots.txt --agent arose --json /a /b /c
  curl -s example.org/robots.txt | arose robots - --agent arose http://example.org/
  arose robots --json < requests.jsonl

The JSON fields are allowed, rule, line, crawl_delay (seconds), request_rate and visit_time, as
written in the file; null if the file does not say. Visit times are UTC.

Exit code: 0 if all URLs were processed, 1 if there were none, 2 on error.")]
pub(crate) struct Options {
    /// robots.txt file; `-` is standard input [default: JSON Lines from standard input]
    file: Option<PathBuf>,
    /// URLs, or paths on the host of the file
    #[arg(value_name = "URL")]
    urls: Vec<String>,
    /// Name of the crawler as in robots.txt, without version
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    #[command(flatten)]
    format: Format,
}

/// Tests all URLs, in order.
pub(crate) fn run(options: &Options) -> anyhow::Result<Outcome> {
    match &options.file {
        Some(path) if !(path == Path::new("-") && options.urls.is_empty()) => {
            from_file(path, options)
        }
        _ => answers::from_standard_input(options.format, |row| {
            from_row(row, options.agent.as_deref())
        }),
    }
}

fn from_file(path: &Path, options: &Options) -> anyhow::Result<Outcome> {
    let Some(agent) = &options.agent else {
        bail!("no crawler; pass its name with --agent NAME");
    };
    ensure!(
        !options.urls.is_empty(),
        "no URLs to test; pass them after {}",
        input::name(path)
    );
    let file = read(path).with_context(|| format!("cannot read {}", input::name(path)))?;
    let robots = Robots::parse(&file, agent);
    let mut out = io::BufWriter::new(io::stdout().lock());
    for url in &options.urls {
        options
            .format
            .write(&mut out, &Judgement::new(&robots, url)?)?;
    }
    out.flush().context("cannot write the result")?;
    Ok(Outcome::Found)
}

/// Reads as much of the file as is used, and one more byte to detect that there is more.
fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = MAX_BYTES as u64 + 1;
    if path == Path::new("-") {
        io::stdin().lock().take(limit).read_to_end(&mut bytes)?;
    } else {
        ensure!(!path.is_dir(), "it is a directory; pass a file");
        File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

fn from_row(row: &Row, default_agent: Option<&str>) -> anyhow::Result<Judgement> {
    let file = match (row.text("robots_txt")?, row.text("robots_base64")?) {
        (Some(text), None) => text.as_bytes().to_vec(),
        (None, Some(text)) => BASE64
            .decode(text.as_bytes())
            .context("the field \"robots_base64\" is not valid base64")?,
        _ => bail!("expected exactly one of the fields \"robots_txt\" and \"robots_base64\""),
    };
    let Some(agent) = row.text("agent")?.or(default_agent) else {
        bail!("no field \"agent\"; add it, or pass --agent NAME");
    };
    let Some(url) = row.text("url")? else {
        bail!("no field \"url\"; add the URL to test");
    };
    Judgement::new(&Robots::parse(&file, agent), url)
}

/// The decision of a robots.txt file about a URL.
struct Judgement {
    url: NormalUrl,
    allowed: bool,
    /// The deciding rule and its line.
    rule: Option<(String, u32)>,
    crawl_delay: Option<f64>,
    request_rate: Option<String>,
    visit_time: Option<String>,
}

impl Judgement {
    fn new(robots: &Robots, url: &str) -> anyhow::Result<Self> {
        let url = normalize(url)?;
        let verdict = robots.verdict(&url);
        let rule = verdict.rule.map(|rule| (rule.to_string(), rule.line));
        Ok(Self {
            allowed: verdict.allowed,
            rule,
            crawl_delay: robots.crawl_delay.map(|delay| delay.as_secs_f64()),
            request_rate: list(&robots.request_rates),
            visit_time: list(&robots.visit_times),
            url,
        })
    }
}

/// The URL as requested. An empty query is kept because some patterns end in one. A path belongs to
/// the host of the file.
fn normalize(url: &str) -> anyhow::Result<NormalUrl> {
    let normalizer = Normalizer {
        empty_query: EmptyQuery::Keep,
        ..Normalizer::default()
    };
    let base = Url::parse("http://localhost/")?;
    normalizer
        .normalize(url, Some(&base))
        .with_context(|| format!("{url:?} is not a URL that can be fetched"))
}

fn list(values: &[impl ToString]) -> Option<String> {
    let values: Vec<String> = values.iter().map(ToString::to_string).collect();
    (!values.is_empty()).then(|| values.join(", "))
}

impl Answer for Judgement {
    fn as_json(&self) -> Value {
        let rule = self.rule.as_ref();
        json!({
            "allowed": self.allowed,
            "rule": rule.map(|(rule, _)| rule),
            "line": rule.map(|(_, line)| line),
            "crawl_delay": self.crawl_delay,
            "request_rate": self.request_rate,
            "visit_time": self.visit_time,
        })
    }

    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", self.url.rest())?;
        let verdict = if self.allowed {
            "allowed"
        } else {
            "disallowed"
        };
        match &self.rule {
            Some((rule, line)) => {
                writeln!(out, "  {verdict} by line {line}: {}", printable(rule))?;
            }
            None => writeln!(out, "  {verdict}, no rule matches")?,
        }
        if let Some(delay) = self.crawl_delay {
            writeln!(out, "  crawl delay   {delay} s")?;
        }
        if let Some(rate) = &self.request_rate {
            writeln!(out, "  request rate  {}", printable(rate))?;
        }
        if let Some(hours) = &self.visit_time {
            writeln!(out, "  visit time    {hours} UTC")?;
        }
        Ok(())
    }
}
