//! Settings of visits to pages that were fetched before.

use serde::{Deserialize, Serialize};

/// How pages are visited again.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Recrawl {
    /// Whether pages are visited again; such a crawl continues until it is stopped.
    pub on: bool,
    /// Requests for pages per second, visits and new URLs together; zero to visit every page once
    /// in `every` days.
    pub per_second: f64,
    /// Average number of days between two visits of a page, if there is no rate.
    pub every: f64,
    /// Share of the requests for visits while new URLs are queued.
    pub share: f64,
    /// Minimum number of seconds between two visits of a page.
    pub min_interval: f64,
}

impl Default for Recrawl {
    fn default() -> Self {
        Self {
            on: false,
            per_second: 0.0,
            every: 30.0,
            share: 0.5,
            min_interval: 3600.0,
        }
    }
}
