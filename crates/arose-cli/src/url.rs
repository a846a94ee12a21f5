//! `arose url`: normalized URLs, and whether the crawler would fetch them.

mod learn;

use std::io::{self, Write};

use anyhow::{Context, bail};
use arose_crawl::fingerprint::{Fingerprint, Md5Halves};
use arose_crawl::guard::{Candidate, Config, Guard, Reason};
use arose_crawl::url::{Invalid, NormalUrl, Normalizer, SessionIds, Url};
use clap::ValueEnum;
use serde_json::{Value, json};

use crate::answers::{self, Answer, Format};
use crate::output::printable;
use crate::read::Outcome;

/// Show how the crawler normalizes URLs and whether it would fetch them.
///
/// Without URLs, or with `-`, reads JSON Lines from standard input: {"url": URL}, with an optional
/// field "base" against which relative URLs are resolved. Other fields are ignored.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  arose url 'HTTP://ABC.com:80/%7Esmith/../a?#top'
  arose url --base http://abc.com/a/b ../c
  arose url --json --domain example.org --exclude '[?&]print=' http://www.example.org/?print=1
  arose url --json < urls.jsonl
  arose url learn index.cdxj > rules.jsonl

The JSON fields are url, host, site, fingerprint, approved and reason. url is null if it is not a
valid http or https URL; reason is null if the URL is approved.

Exit code: 0 if all URLs were processed, 1 if there were none, 2 on error."
)]
pub(crate) struct Options {
    #[command(subcommand)]
    command: Option<Command>,
    /// URLs [default: JSON Lines from standard input]
    #[arg(value_name = "URL")]
    urls: Vec<String>,
    /// Base of relative URLs
    #[arg(long, value_name = "URL")]
    base: Option<String>,
    /// Approve only this host; repeatable, also with --domain
    #[arg(long, value_name = "HOST")]
    host: Vec<String>,
    /// Approve only this domain and all hosts below it; repeatable, also with --host
    #[arg(long, value_name = "DOMAIN")]
    domain: Vec<String>,
    /// Approve only URLs that match this regular expression; repeatable
    #[arg(long, value_name = "REGEX")]
    include: Vec<String>,
    /// Reject URLs that match this regular expression; repeatable
    #[arg(long, value_name = "REGEX")]
    exclude: Vec<String>,
    /// Remove session IDs and tracking parameters such as PHPSESSID and utm_source
    #[arg(long)]
    drop_session_ids: bool,
    /// Fingerprint function
    #[arg(long, value_enum, default_value_t = Hash::Xxh3)]
    fingerprint: Hash,
    #[command(flatten)]
    format: Format,
}

#[derive(clap::Subcommand)]
enum Command {
    Learn(learn::Options),
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Hash {
    /// 64 bits of the host and 64 bits of the rest, as stored by the crawler
    Xxh3,
    /// Two MD5 digests of 128 bits
    Md5,
}

/// Shows all URLs, in order.
pub(crate) fn run(options: &Options) -> anyhow::Result<Outcome> {
    if let Some(Command::Learn(options)) = &options.command {
        return learn::run(options);
    }
    let judge = Judge::new(options)?;
    let format = options.format;
    let base = options.base.as_deref();
    if options.urls.is_empty() || options.urls == ["-"] {
        return answers::from_standard_input(format, |row| {
            let Some(url) = row.text("url")? else {
                bail!("no field \"url\"; expected e.g. {{\"url\": \"http://…\"}}");
            };
            Ok(judge.view(url, row.text("base")?.or(base)))
        });
    }
    let mut out = io::BufWriter::new(io::stdout().lock());
    for url in &options.urls {
        format.write(&mut out, &judge.view(url, base))?;
    }
    out.flush().context("cannot write the result")?;
    Ok(Outcome::Found)
}

/// Normalizes and filters URLs according to the options.
struct Judge {
    normalizer: Normalizer,
    guard: Guard,
    hash: Hash,
}

impl Judge {
    fn new(options: &Options) -> anyhow::Result<Self> {
        let mut normalizer = Normalizer::default();
        if options.drop_session_ids {
            normalizer.session_ids = SessionIds::Drop;
        }
        let guard = Guard::new(Config {
            hosts: options.host.clone(),
            domains: options.domain.clone(),
            include: options.include.clone(),
            exclude: options.exclude.clone(),
            ..Config::default()
        })?;
        Ok(Self {
            normalizer,
            guard,
            hash: options.fingerprint,
        })
    }

    fn view(&self, url: &str, base: Option<&str>) -> View {
        let normal = self.normalize(url, base);
        let judgement = match &normal {
            Ok(url) => self.guard.approve(&Candidate {
                url,
                link_depth: 0,
                robots: None,
            }),
            Err(invalid) => Err(Reason::from(*invalid)),
        };
        View {
            written: url.to_owned(),
            fingerprint: normal.as_ref().ok().map(|url| self.fingerprint(url)),
            normal,
            judgement,
        }
    }

    fn normalize(&self, url: &str, base: Option<&str>) -> Result<NormalUrl, Invalid> {
        let base = base.map(Url::parse).transpose().map_err(Invalid::Syntax)?;
        self.normalizer.normalize(url, base.as_ref())
    }

    fn fingerprint(&self, url: &NormalUrl) -> String {
        match self.hash {
            Hash::Xxh3 => Fingerprint::of(url).to_string(),
            Hash::Md5 => Md5Halves::of(url).to_string(),
        }
    }
}

/// A URL as the crawler normalizes it, with the decision to fetch it or not.
struct View {
    written: String,
    normal: Result<NormalUrl, Invalid>,
    fingerprint: Option<String>,
    judgement: Result<(), Reason>,
}

impl Answer for View {
    fn as_json(&self) -> Value {
        let normal = self.normal.as_ref().ok();
        json!({
            "url": normal.map(NormalUrl::as_str),
            "host": normal.map(NormalUrl::host),
            "site": normal.map(NormalUrl::site),
            "fingerprint": self.fingerprint,
            "approved": self.judgement.is_ok(),
            "reason": self.judgement.err().map(Reason::as_str),
        })
    }

    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        match &self.normal {
            Ok(url) => {
                writeln!(out, "{url}")?;
                writeln!(out, "  host         {}", url.host())?;
                writeln!(out, "  site         {}", url.site())?;
            }
            Err(_) => writeln!(out, "{}", printable(&self.written))?,
        }
        if let Some(fingerprint) = &self.fingerprint {
            writeln!(out, "  fingerprint  {fingerprint}")?;
        }
        match (&self.normal, self.judgement) {
            (_, Ok(())) => writeln!(out, "  approved"),
            (Err(invalid), _) => writeln!(out, "  invalid URL: {invalid}"),
            (_, Err(reason)) => writeln!(out, "  rejected     {}: {reason}", reason.as_str()),
        }
    }
}
