//! `arose serve`: web pages for search, clusters, pairs, ratings and crawls.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::ensure;
use arose_search::{SearchDir, Versions};
use arose_web::Config;

use crate::dedup::VersionsName;
use crate::output::say;
use crate::read::Outcome;

/// Browse results: search, clusters, pairs side by side, ratings, crawl statistics.
///
/// The pages load nothing from other servers. Only this machine can reach them, unless you set
/// another IP address and an access token. When the directory changes, the pages are updated.
/// Writes only the search index and ratings.jsonl to the directory.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  arose serve out
  arose serve out --listen 127.0.0.1:9000
  arose serve crawl --listen 0.0.0.0:8080 --token \"$(openssl rand -hex 16)\"

The same data is available as JSON under /api/; /api/openapi.json describes it. Ctrl-C stops the
server.")]
pub(crate) struct Options {
    /// Output directory of `arose dedup` or `arose crawl`, or a directory of web archives
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// IP address and port to listen on; port 0 selects a free port
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Access token; required unless listening on loopback
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
    /// Seed of the sample of pairs to rate
    #[arg(long, value_name = "N", default_value_t = SEED)]
    seed: u64,
    /// Pairs to rate per similarity range
    #[arg(long, value_name = "N", default_value_t = SAMPLE)]
    sample: usize,
    /// Which versions of a page to search, if the input has several of a URL
    #[arg(long, value_enum, default_value_t = VersionsName::Current)]
    versions: VersionsName,
    /// Directory for the search index, if DIR is read-only
    #[arg(long, value_name = "DIR")]
    index: Option<PathBuf>,
    /// Rebuild the search index
    #[arg(long)]
    rebuild: bool,
}

/// Default seed of the sample of pairs to rate.
const SEED: u64 = 1;

/// Default number of pairs to rate per similarity range.
const SAMPLE: usize = 50;

/// Minimum interval between checks whether the directory has changed.
const WATCH: Duration = Duration::from_secs(2);

pub(crate) fn run(options: &Options) -> anyhow::Result<Outcome> {
    if let Some(token) = &options.token {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.~".contains(c);
        ensure!(
            token.len() >= 8 && token.chars().all(is_plain),
            "--token must have at least 8 characters from a-z, A-Z, 0-9, - _ . ~"
        );
    }
    let config = Config {
        address: options.listen,
        token: options.token.clone(),
        seed: options.seed,
        n_per_stratum: options.sample,
        versions: options.versions.into(),
        watch: WATCH,
    };
    let is_open = !config.address.ip().is_loopback();
    if is_open && config.token.is_none() {
        return Err(arose_web::Error::NeedsToken {
            address: config.address.ip(),
        }
        .into());
    }
    let folder = crate::search::folder(&options.folder, options.index.as_deref())?;
    serve(folder, options.rebuild, &config)?;
    Ok(Outcome::Found)
}

/// Serves a directory on loopback until Ctrl-C, with the settings of `arose serve DIR`.
pub(crate) fn serve_here(folder: &Path, address: SocketAddr) -> anyhow::Result<()> {
    let config = Config {
        address,
        token: None,
        seed: SEED,
        n_per_stratum: SAMPLE,
        versions: Versions::Current,
        watch: WATCH,
    };
    serve(crate::search::folder(folder, None)?, false, &config)
}

fn serve(folder: SearchDir, rebuild: bool, config: &Config) -> anyhow::Result<()> {
    let index = crate::search::index(&folder, rebuild)?;
    index.verify()?;
    arose_web::serve(folder, index, config, |address| match &config.token {
        Some(token) => say(format_args!("arose: open http://{address}/?token={token}")),
        None => say(format_args!("arose: open http://{address}/")),
    })?;
    Ok(())
}
