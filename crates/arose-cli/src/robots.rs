//! `arose robots`: what a robots.txt says about a URL.

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

/// Says whether a robots.txt lets a crawler fetch URLs, and which line decides.
///
/// Without a file, reads JSON lines from standard input, each with "robots_txt" or "robots_base64",
/// "agent" and "url". Other fields are ignored; --agent stands for an agent that is not given.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  arose robots robots.txt --agent arose http://example.org/private/
  arose robots robots.txt --agent arose --json /a /b /c
  curl -s example.org/robots.txt | arose robots - --agent arose http://example.org/
  arose robots --json < questions.jsonl

In JSON the fields are allowed, rule, line, crawl_delay (seconds), request_rate and visit_time, as
they are written in the file; null means that it says nothing. Visit times are UTC. Exit code 0
means that all URLs were answered for, 1 that there were none, 2 an error.")]
pub(crate) struct Options {
    /// A robots.txt; `-` is standard input.
    file: Option<PathBuf>,
    /// URLs, or paths on the site of the file.
    #[arg(value_name = "URL")]
    urls: Vec<String>,
    /// The crawler's name, as robots.txt files have it: without version.
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    #[command(flatten)]
    format: Format,
}

/// Answers for all URLs, in their order.
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
        bail!("no crawler to judge for; name it with --agent NAME");
    };
    ensure!(
        !options.urls.is_empty(),
        "no URLs to judge; name them after {}",
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

/// As much of the file as counts, and a byte more to tell that there is more.
fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = MAX_BYTES as u64 + 1;
    if path == Path::new("-") {
        io::stdin().lock().take(limit).read_to_end(&mut bytes)?;
    } else {
        ensure!(!path.is_dir(), "it is a folder; name a file");
        File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

fn from_row(row: &Row, default_agent: Option<&str>) -> anyhow::Result<Judgement> {
    let file = match (row.text("robots_txt")?, row.text("robots_base64")?) {
        (Some(text), None) => text.as_bytes().to_vec(),
        (None, Some(text)) => BASE64
            .decode(text.as_bytes())
            .context("the field \"robots_base64\" is no base64")?,
        _ => bail!("it needs one field \"robots_txt\" or \"robots_base64\" with the file"),
    };
    let Some(agent) = row.text("agent")?.or(default_agent) else {
        bail!("it has no field \"agent\"; add it, or name one for all with --agent NAME");
    };
    let Some(url) = row.text("url")? else {
        bail!("it has no field \"url\"; add the URL to judge");
    };
    Judgement::new(&Robots::parse(&file, agent), url)
}

/// What a robots.txt says about a URL, in words.
struct Judgement {
    url: NormalUrl,
    allowed: bool,
    /// The rule that decided, and its line.
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

/// The URL as it is asked for: an empty query stays, since some patterns end in one. A path is one
/// of the site of the file, whichever that is.
fn normalize(url: &str) -> anyhow::Result<NormalUrl> {
    let normalizer = Normalizer {
        empty_query: EmptyQuery::Keep,
        ..Normalizer::default()
    };
    let base = Url::parse("http://localhost/")?;
    normalizer
        .normalize(url, Some(&base))
        .with_context(|| format!("{url:?} is no URL to fetch"))
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
