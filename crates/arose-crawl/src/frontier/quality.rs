//! Sites of bad pages, and hosts by the thousand that one address shows with one template.
//!
//! *Question.* A spammer makes up pages and hosts for ever. When is enough known of a site?
//!
//! *Idea.* A page is *bad* if its own text weighs less than a half; copies are left to stale
//! directories, since a mirror may be what somebody wants. A site with at least [`FEWEST`] pages,
//! more than four fifths of them bad, gets one request per day, as a stale directory does; good
//! pages clear it. Home pages with the same tags in the same order at one IP address belong to one
//! *template*; once [`MOST_HOSTS`] have it, their sites count as bad, and so does every further
//! one.
//!
//! *Cost.* About 40 bytes per site with pages and 4 per home page, at most [`MOST_HOMES`]. Like
//! stale directories this is not part of the journal: a crawl that is resumed learns it again.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use super::SiteId;
use super::folders::PROBE;

/// Pages of which a site is judged.
pub(crate) const FEWEST: u32 = 20;
/// Hosts of one template at one address that are too many.
pub(crate) const MOST_HOSTS: usize = 1_000;
/// Home pages that are watched.
const MOST_HOMES: usize = 1 << 22;

/// What the pages of a site were like.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Conduct {
    n_pages: u32,
    n_bad: u32,
    /// When it was asked last since it is bad, in seconds, plus one; 0 for never.
    probed: u32,
    is_template: bool,
}

impl Conduct {
    /// Takes down a page.
    pub(crate) fn record(&mut self, is_bad: bool) {
        self.n_pages = self.n_pages.saturating_add(1);
        self.n_bad = self.n_bad.saturating_add(is_bad.into());
    }

    /// Pages that were read, and those of them that are bad.
    pub(crate) fn n_pages(&self) -> (u32, u32) {
        (self.n_pages, self.n_bad)
    }

    /// Counts as bad from now on, whatever its pages are like.
    pub(crate) fn join_template(&mut self) {
        self.is_template = true;
    }

    /// Whether more than four fifths of enough pages are bad.
    pub(crate) fn is_bad(&self) -> bool {
        let is_poor = u64::from(self.n_bad) * 5 > u64::from(self.n_pages) * 4;
        self.is_template || self.n_pages >= FEWEST && is_poor
    }

    /// Whether a page may be asked for; counts as the probe of a bad site.
    pub(crate) fn admits(&mut self, now: Duration) -> bool {
        if !self.is_bad() {
            return true;
        }
        let second = u32::try_from(now.as_secs()).unwrap_or(u32::MAX - 1);
        let next = self.probed.saturating_add(PROBE.as_secs() as u32);
        // A clock that was set back must not close a site for longer.
        if self.probed > 0 && second + 1 >= self.probed && second + 1 < next {
            return false;
        }
        self.probed = second + 1;
        true
    }
}

/// Home pages by address and template.
#[derive(Debug, Default)]
pub(crate) struct Templates {
    sites: HashMap<u64, Vec<SiteId>>,
    n_homes: usize,
    /// Those with too many hosts.
    closed: HashSet<u64>,
}

impl Templates {
    /// Takes down the home page of a site; the sites that are bad by it.
    pub(crate) fn record(&mut self, template: u64, site: SiteId) -> Vec<SiteId> {
        if self.closed.contains(&template) {
            return vec![site];
        }
        if self.n_homes >= MOST_HOMES {
            return Vec::new();
        }
        self.n_homes += 1;
        let sites = self.sites.entry(template).or_default();
        sites.push(site);
        if sites.len() < MOST_HOSTS {
            return Vec::new();
        }
        self.closed.insert(template);
        let sites = self.sites.remove(&template).unwrap_or_default();
        self.n_homes -= sites.len();
        sites
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = PROBE;

    #[test]
    fn a_site_of_bad_pages_is_probed_once_a_day() {
        let mut site = Conduct::default();
        for _ in 0..19 {
            site.record(true);
        }
        assert!(site.admits(DAY) && site.admits(DAY));
        site.record(true);
        assert!(site.is_bad());
        assert!(site.admits(DAY));
        assert!(!site.admits(DAY) && !site.admits(DAY * 2 - Duration::from_secs(1)));
        assert!(site.admits(DAY * 2));
        // A clock that jumps back.
        assert!(site.admits(Duration::ZERO));
        assert!(!site.admits(Duration::from_secs(1)));
    }

    #[test]
    fn four_fifths_are_not_too_many() {
        let mut site = Conduct::default();
        (0..16).for_each(|_| site.record(true));
        (0..4).for_each(|_| site.record(false));
        assert!(!site.is_bad());
        (0..5).for_each(|_| site.record(true));
        assert!(site.is_bad());
        (0..2).for_each(|_| site.record(false));
        assert!(!site.is_bad());
    }

    #[test]
    fn hosts_by_the_thousand_share_a_template() {
        let mut templates = Templates::default();
        for site in 0..999 {
            assert!(templates.record(7, site).is_empty());
            assert!(templates.record(8 + u64::from(site), site).is_empty());
        }
        let sites = templates.record(7, 999);
        assert_eq!(sites, (0..1000).collect::<Vec<_>>());
        assert_eq!(templates.record(7, 1000), [1000]);
        assert!(templates.record(6, 1000).is_empty());
        let mut site = Conduct::default();
        site.join_template();
        assert!(site.is_bad());
    }
}
