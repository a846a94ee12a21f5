//! The pages of `arose serve`: search, documents, clusters, pairs, ratings, crawls and estimates.
//!
//! Everything is rendered on the server and works without scripts. One small script adds keys for
//! rating and for differences, and refreshes live statistics. Nothing is loaded from other servers,
//! so the pages work offline. The same data is available as JSON under `/api/`, described by
//! `/api/openapi.json`.
//!
//! *Safety.* Pages contain untrusted text. It is always escaped, and a content security policy
//! forbids the browser to run, load or send anything except files of this server. The server
//! listens on loopback unless a token is required ([`Config::token`]). Requests whose `Host` is not
//! that of the server are rejected, so that no web site can reach it through a host name of its
//! own. Ratings are accepted only from pages of this server. Connections, requests and their work
//! are bounded in number, size and time, even when their client is gone (`connections`, `lanes`).
//! No request names a file: documents are named by number, and only the files in the tables of the
//! run are read for them. Stored pages of a crawl are shown in a sandbox without scripts and
//! without network access.
#![forbid(unsafe_code)]

mod agents;
mod answer;
mod api;
mod bar_plot;
mod catalog;
mod clusters;
mod connections;
mod crawl;
mod document;
mod error;
mod estimates;
mod export;
mod guard;
mod history;
mod html;
mod lanes;
mod line_plot;
mod nav;
mod pair;
mod passages;
mod rate;
mod sample;
mod search;
mod site;

use std::net::SocketAddr;
use std::time::Duration;

use arose_search::{Index, SearchDir};
use axum::Router;
use axum::routing::{get, post};
use tokio::net::TcpListener;

pub use error::Error;
use site::{Shared, Site};

/// How to serve.
#[derive(Debug, Clone)]
pub struct Config {
    /// IP address and port to listen on.
    pub address: SocketAddr,
    /// Access token; required on every IP address except loopback.
    pub token: Option<String>,
    /// Seed of the sample of pairs to rate.
    pub seed: u64,
    /// Pairs to rate per similarity range.
    pub n_per_stratum: usize,
    /// Which captures of a page are searched, if there are several of its URL.
    pub versions: arose_search::Versions,
    /// Minimum interval between checks whether the directory has changed.
    pub watch: Duration,
}

/// Serves a directory until the process is stopped; calls `ready` with the IP address and port.
///
/// # Errors
///
/// If the results in the directory cannot be read, the IP address and port cannot be used, or an IP
/// address other than loopback is used without a token.
pub fn serve(
    folder: SearchDir,
    index: Index,
    config: &Config,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), Error> {
    if !config.address.ip().is_loopback() && config.token.is_none() {
        return Err(Error::NeedsToken {
            address: config.address.ip(),
        });
    }
    let site = Site::open(folder, index, config)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Error::Runtime)?;
    runtime.block_on(async {
        let unusable = |source| Error::Listen {
            address: config.address,
            source,
        };
        let listener = TcpListener::bind(config.address).await.map_err(unusable)?;
        let address = listener.local_addr().map_err(unusable)?;
        ready(address);
        connections::serve(listener, router(site), stop_signal()).await;
        Ok(())
    })
}

async fn stop_signal() {
    // Without a handler, the process ends at once, which is also safe.
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

fn router(site: Shared) -> Router {
    let pages = Router::new()
        .route("/", get(search::page))
        .route("/export", get(export::export))
        .route("/document/{doc}", get(document::page))
        .route("/document/{doc}/page", get(document::stored))
        .route("/clusters", get(clusters::list))
        .route("/cluster/{cluster}", get(clusters::one))
        .route("/pair", get(pair::page))
        .route("/rate", get(rate::page).post(rate::take))
        .route("/rate/undo", post(rate::undo))
        .route("/ratings", get(rate::tables))
        .route("/crawl", get(crawl::page))
        .route("/crawl/rules", post(crawl::switch))
        .route("/crawl/{order}", post(crawl::order))
        .route("/history", get(history::page))
        .route("/estimates", get(estimates::page))
        .route("/api/search", get(api::search))
        .route("/api/clusters", get(api::clusters))
        .route("/api/cluster/{cluster}", get(api::cluster))
        .route("/api/pair", get(api::pair))
        .route("/api/document/{doc}", get(api::document))
        .route("/api/ratings", get(api::ratings))
        .route("/api/crawl", get(api::crawl))
        .route("/api/refresh", post(api::refresh))
        .route("/api/openapi.json", get(api::description))
        .route("/assets/{name}", get(html::asset))
        .fallback(answer::not_found);
    pages
        .layer(axum::middleware::from_fn_with_state(
            site.clone(),
            guard::guard,
        ))
        .with_state(site)
}
