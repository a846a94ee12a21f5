//! `testweb judge`: checks whether a crawler was polite.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::json;
use testweb::Web;
use testweb::judge::By;
use testweb::log::Log;

use crate::options::WebOptions;

/// Read a log of `testweb serve` and print counts of impolite requests as one line of JSON.
///
/// Describe the web with the options it was served with.
#[derive(clap::Args)]
#[command(after_help = "Example:
  testweb judge requests.tsv --delay 1 --hosts 5000 --mixture plain")]
pub(crate) struct Options {
    /// Log file
    log: PathBuf,
    #[command(flatten)]
    web: WebOptions,
    /// Minimum seconds between two requests to a host or IP address
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    delay: f64,
}

pub(crate) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    ensure!(
        (0.0..1e9).contains(&options.delay),
        "--delay must be 0 to 1e9 seconds"
    );
    let delay = Duration::from_secs_f64(options.delay);
    let web = Web::new(options.web.config()?)?;
    let log = Log::open(&options.log)?;
    let offences = [
        ("overlaps_by_host", log.overlaps(By::Host).len()),
        ("overlaps_by_address", log.overlaps(By::Address).len()),
        (
            "short_gaps_by_host",
            log.gaps_shorter_than_asked(&web, delay).len(),
        ),
        (
            "short_gaps_by_address",
            log.gaps_shorter_than(By::Address, delay).len(),
        ),
        ("early_retries", log.early_retries().len()),
        ("disallowed", log.disallowed(&web).len()),
        ("before_robots", log.before_robots().len()),
    ];
    let mut verdict = json!({ "requests": log.records.len(), "repeats": log.repeats().len() });
    for (name, count) in offences {
        verdict[name] = count.into();
    }
    writeln!(io::stdout().lock(), "{verdict}").context("cannot write the verdict")?;
    let is_polite = offences.iter().all(|&(_, count)| count == 0);
    Ok(ExitCode::from(u8::from(!is_polite)))
}
