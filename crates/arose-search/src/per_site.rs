//! Limits the number of results per site among those shown together.

use std::collections::HashMap;

/// Counts results by site.
pub(crate) struct PerSite {
    max: usize,
    /// For each site, the number of results taken, and the number of the last one.
    sites: HashMap<String, (usize, usize)>,
    /// Whether documents without a site were among them.
    has_others: bool,
}

impl PerSite {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            max,
            sites: HashMap::new(),
            has_others: false,
        }
    }

    pub(crate) fn is_limited(&self) -> bool {
        self.max != usize::MAX
    }

    /// Whether all results were of one site.
    pub(crate) fn is_one_site(&self) -> bool {
        self.sites.len() == 1 && !self.has_others
    }

    /// Takes result `number` of a site. If the site has enough results, returns the number of its
    /// last one instead. Documents without a site do not count as a site.
    pub(crate) fn take(&mut self, site: Option<String>, number: usize) -> Option<usize> {
        let Some(site) = site else {
            self.has_others = true;
            return None;
        };
        let (n, last) = self.sites.entry(site).or_default();
        if *n == self.max {
            return Some(*last);
        }
        *n += 1;
        *last = number;
        None
    }
}
