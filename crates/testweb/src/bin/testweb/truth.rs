//! `testweb truth`: prints the ground truth.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Context;
use serde_json::json;
use testweb::truth::{Likeness, Visit};
use testweb::{PageId, Web};

use crate::options::WebOptions;

/// Print every page of a web as a line of JSON: its URL, whether a crawl within the rules reaches
/// it, and the page it duplicates.
///
/// Pages of traps and faults are not listed, nor the files of directories.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  testweb truth --hosts 5000 --mixture plain
  testweb truth --from http://plain0.test:8080/ --minute 720")]
pub(crate) struct Options {
    #[command(flatten)]
    web: WebOptions,
    /// URL to start from [default: home page of the first host]
    #[arg(long, value_name = "URL")]
    from: Vec<String>,
    /// Maximum number of consecutive redirects
    #[arg(long, value_name = "N", default_value_t = 5)]
    max_redirects: u32,
    /// Minute of the day at which visiting hours are checked [default: ignore visiting hours]
    #[arg(long, value_name = "MINUTE")]
    minute: Option<u16>,
}

pub(crate) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let web = Web::new(options.web.config()?)?;
    let seeds = match &options.from[..] {
        [] => vec![web.url(PageId { host: 0, page: 0 })],
        given => given.to_vec(),
    };
    let reachable = web.reachable(&Visit {
        seeds,
        max_redirects: options.max_redirects,
        minute: options.minute,
    });
    let mut out = io::BufWriter::new(io::stdout().lock());
    for id in web.pages() {
        let original = web.original(id);
        let line = json!({
            "url": web.url(id),
            "kind": web.hosts()[id.host as usize].kind.as_str(),
            "reachable": reachable.contains(&id),
            "original": original.map(|(original, _)| web.url(original)),
            "likeness": original.map(|(_, likeness)| match likeness {
                Likeness::Exact => "exact",
                Likeness::Near => "near",
            }),
        });
        writeln!(out, "{line}").context("cannot write the truth")?;
    }
    out.flush().context("cannot write the truth")?;
    Ok(ExitCode::SUCCESS)
}
