//! `testweb serve`: serves a web until it is stopped.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use serde_json::json;
use testweb::{LogTo, PageId, Server};

use crate::options::WebOptions;

/// Serve a web on loopback, with a DNS server for it.
///
/// Prints one line of JSON when it is ready: the port of every host, the IP address and port of the
/// DNS server, and the home page from which every host can be found.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  testweb serve --hosts 5000 --mixture plain --log requests.tsv
  testweb serve --hosts 1 --docs python3-doc,bzip2-doc --for 60")]
pub(crate) struct Options {
    #[command(flatten)]
    web: WebOptions,
    /// UDP port of the DNS server on 127.0.0.1; 0 selects a free port
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    dns: u16,
    /// Write one line per request to this file, for `testweb judge`
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Stop after this time [default: run until killed]
    #[arg(long = "for", value_name = "SECONDS")]
    seconds: Option<u64>,
}

pub(crate) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let mut config = options.web.config()?;
    config.dns_port = options.dns;
    config.log = match &options.log {
        Some(path) => LogTo::File(path.clone()),
        None => LogTo::Nothing,
    };
    let server = Server::start(config)?;
    let ready = json!({
        "port": server.web.config().port,
        "dns": server.dns.to_string(),
        "hosts": server.web.hosts().len(),
        "home": server.web.url(PageId { host: 0, page: 0 }),
    });
    let mut out = io::stdout().lock();
    writeln!(out, "{ready}")
        .and_then(|()| out.flush())
        .context("cannot write where the web is")?;
    let forever = u64::MAX;
    std::thread::sleep(Duration::from_secs(options.seconds.unwrap_or(forever)));
    server.stop()?;
    Ok(ExitCode::SUCCESS)
}
