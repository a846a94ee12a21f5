//! A polite crawler, with one module for each part.
//!
//! A crawler is a loop: fetch a page, extract its links, check them, drop those seen before, and
//! queue the rest. The parts need neither network nor clock, which are arguments:
//!
//! - [`url`]: normalizes URLs; [`fingerprint`]: 16 bytes that identify a URL.
//! - [`fetch`]: one request, over HTTP or to a local file; the trait for other protocols.
//! - [`guard`]: decides whether a URL may be crawled, with the reason if not.
//! - [`scope`]: how far from its seeds a crawl goes.
//! - [`robots`]: the URLs that a site allows, with the line that decided.
//! - [`sitemap`]: the pages that a site lists.
//! - [`visit`]: single pages on demand, for callers that choose the next page themselves.
//! - [`rehearsal`]: the order that a crawl would have on a known graph.
//! - [`seen`]: the URLs met before, in bounded memory; survives crashes.
#![forbid(unsafe_code)]

pub mod address;
mod archive;
pub mod cluster;
pub mod connect;
mod contain;
mod content;
pub mod counters;
mod crawl;
mod date;
mod error;
pub mod fetch;
pub mod fingerprint;
pub mod focus;
mod frontier;
pub mod guard;
mod journal;
mod load;
mod log;
mod mark;
mod names;
mod number;
mod order;
mod pace;
mod page;
mod pages;
pub mod rehearsal;
pub mod resolve;
pub mod robots;
pub mod rules;
pub mod scope;
pub mod seen;
pub mod settings;
pub mod sitemap;
mod statistics;
mod task;
mod turns;
pub mod visit;
mod workers;

pub use arose_corpus::url;
pub use crawl::{
    BadSeed, Cluster, Control, Crawl, End, Freshness, GonePages, Limit, PageInfo, PageVersion,
    Plan, Priority, Refresh, Repaired, Seams, Seeds, Servers, Snapshot, Status, Summary, Topic,
    UrlRule, agents, archives, crawl, gone_pages, index_lines, is_crawl, is_paused, is_running,
    join, kept_settings, order_rules, page_state, pages as list_pages, pause, plan, queued_urls,
    refresh, reload, repair, resume, retry, standing, status, url_rules, versions,
};
pub use error::Error;
pub use frontier::{SiteQuality, SiteStanding, Standing};
pub use log::{FailedUrl, failures};
pub use settings::Settings;
pub use turns::Turns;
