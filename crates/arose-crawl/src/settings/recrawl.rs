//! Settings of visits to pages that were fetched before.

use serde::{Deserialize, Serialize};

/// How pages are visited again.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Recrawl {
    /// Whether pages are visited again; such a crawl goes on until it is stopped.
    pub on: bool,
    /// Requests for pages per second, visits and new URLs together; zero to visit every page once
    /// in so many days.
    pub per_second: f64,
    /// Days between two visits of a page, on average, where there is no rate.
    pub every: f64,
    /// The share of the requests that visits have while new URLs wait.
    pub share: f64,
    /// Seconds between two visits of a page, at least.
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
