//! The parts of a crawler, one module a part.
//!
//! A crawler is a loop: fetch a page, take its links, approve them, drop those seen before, queue
//! the rest. The parts here need no network and no clock, which come in as arguments:
//!
//! - [`url`]: the one spelling of a URL; [`fingerprint`]: sixteen bytes that stand for it.
//! - [`fetch`]: one request, over HTTP or to a local file; the trait for other protocols.
//! - [`guard`]: whether a URL may be crawled at all, with the reason if not.
//! - [`scope`]: how far from its seeds a crawl goes.
//! - [`robots`]: what a site allows, with the line that decided.
//! - [`sitemap`]: the pages a site lists itself.
//! - [`visit`]: single pages on demand, for whoever decides itself what comes next.
//! - [`rehearsal`]: the order that a crawl would have on a known graph.
//! - [`seen`]: which URLs were met before, in bounded memory, whatever happens to the process.
#![forbid(unsafe_code)]

pub mod address;
mod archive;
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
    BadSeed, Control, Crawl, End, Freshness, GonePages, PageInfo, PageVersion, Plan, Priority,
    Refresh, Repaired, Seams, Seeds, Snapshot, Status, Summary, Topic, UrlRule, archives, crawl,
    gone_pages, index_lines, is_crawl, is_paused, is_running, kept_settings, order_rules,
    page_state, pages as list_pages, pause, plan, queued_urls, refresh, reload, repair, resume,
    retry, standing, status, url_rules, versions,
};
pub use error::Error;
pub use frontier::{SiteQuality, SiteStanding, Standing};
pub use log::{FailedUrl, failures};
pub use settings::Settings;
pub use turns::Turns;
