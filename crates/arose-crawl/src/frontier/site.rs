//! Sites (registrable domains by default) and their trust.

use arose::digest::digest64;

use crate::journal::HostId;
use crate::order;

/// A site's number.
pub(crate) type SiteId = u32;

/// A registrable domain by default, in 24 bytes.
#[derive(Debug)]
pub(crate) struct SiteState {
    /// The digest of its name.
    pub(crate) hash: u64,
    /// Number of pages requested.
    pub(crate) n_pages: u32,
    /// The first of its hosts, and their number.
    pub(crate) host: HostId,
    pub(crate) n_hosts: u32,
    /// Trust from seeds and from links of other sites, minus the trust passed on to others.
    pub(crate) trust: f32,
}

impl SiteState {
    pub(crate) fn new(hash: u64) -> Self {
        Self {
            hash,
            n_pages: 0,
            host: 0,
            n_hosts: 0,
            trust: 0.0,
        }
    }

    /// Returns the share of its priority that its next page has, if a unit of trust is worth this
    /// many pages.
    pub(crate) fn share(&self, pages: f64) -> f64 {
        order::share(self.trust, self.n_pages.into(), pages)
    }
}

/// Returns the digest of the name of a site.
pub(crate) fn hash(name: &str) -> u64 {
    digest64(name.as_bytes())
}
