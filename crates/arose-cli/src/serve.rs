//! `arose serve`: the pages to look at everything.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::ensure;
use arose_search::Folder;
use arose_web::Config;

use crate::read::Outcome;

/// Shows a folder in the browser: search, clusters, pairs side by side, rating, a crawl's figures.
///
/// Everything is served from this machine and nothing is loaded from anywhere else. Only this
/// machine can reach the pages, unless another address and a token are given. Nothing in the folder
/// is changed but its index and ratings.jsonl.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  arose serve out
  arose serve out --listen 127.0.0.1:9000
  arose serve crawl --listen 0.0.0.0:8080 --token \"$(openssl rand -hex 16)\"

The same answers are given as JSON under /api/; /api/openapi.json describes them. Ctrl-C ends it.")]
pub(crate) struct Options {
    /// The output folder of `arose dedup` or `arose crawl`, or a folder of web archives.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Where to listen; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// What visitors must know; needed on any address that others can reach.
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
    /// Draws the pairs to be rated.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Pairs to be rated of each level of similarity.
    #[arg(long, value_name = "N", default_value_t = 50)]
    sample: usize,
    /// Removes the index and makes it anew.
    #[arg(long)]
    rebuild: bool,
}

pub(crate) fn run(options: &Options) -> anyhow::Result<Outcome> {
    if let Some(token) = &options.token {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.~".contains(c);
        ensure!(
            token.len() >= 8 && token.chars().all(is_plain),
            "a token has at least 8 characters of a-z, A-Z, 0-9, - _ . ~"
        );
    }
    let config = Config {
        address: options.listen,
        token: options.token.clone(),
        seed: options.seed,
        n_per_stratum: options.sample,
    };
    let is_open = !config.address.ip().is_loopback();
    if is_open && config.token.is_none() {
        return Err(arose_web::Error::NeedsToken {
            address: config.address.ip(),
        }
        .into());
    }
    let folder = Folder::open(&options.folder)?;
    let index = crate::search::index(&folder, options.rebuild)?;
    index.verify()?;
    arose_web::serve(folder, index, &config, |address| match &config.token {
        Some(token) => eprintln!("arose: open http://{address}/?token={token}"),
        None => eprintln!("arose: open http://{address}/"),
    })?;
    Ok(Outcome::Found)
}
