//! Sites: what one owner has registered, and how much it is trusted.

use arose::digest::digest64;

use crate::journal::HostId;
use crate::order;

/// A site's number.
pub(crate) type SiteId = u32;

/// What one owner has registered.
#[derive(Debug)]
pub(crate) struct Site {
    /// Of its name.
    pub(crate) hash: u64,
    /// Pages asked for.
    pub(crate) n_pages: u64,
    /// The first of its hosts, and how many there are.
    pub(crate) host: HostId,
    pub(crate) n_hosts: u32,
    /// Trust that its seeds have or that came by links from other sites, less what went to others.
    pub(crate) trust: f32,
    /// Whether that has changed since it was written down.
    pub(super) is_changed: bool,
}

impl Site {
    pub(crate) fn new(hash: u64) -> Self {
        Self {
            hash,
            n_pages: 0,
            host: 0,
            n_hosts: 0,
            trust: 0.0,
            is_changed: false,
        }
    }

    /// The part of its priority that its next page has, where a unit of trust is worth so many
    /// pages.
    pub(crate) fn share(&self, pages: f64) -> f64 {
        order::share(self.trust, self.n_pages, pages)
    }
}

/// What stands for the name of a site.
pub(crate) fn hash(name: &str) -> u64 {
    digest64(name.as_bytes())
}
