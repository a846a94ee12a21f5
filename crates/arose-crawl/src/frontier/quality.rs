//! Detects sites of bad pages, and large numbers of hosts with one template at one IP address.
//!
//! *Question.* A spammer can generate pages and hosts without end. When is enough known about a
//! site?
//!
//! *Idea.* A page is *bad* if its own text weighs at most [`SPAM`], as 95% of spam does. References
//! and lists are repetitive too: four fifths of the pages of a manual may weigh less than a half,
//! but not that little. Copies are left to the check for stale path prefixes, because a mirror may
//! be wanted. A site with at least [`FEWEST`] pages, more than four fifths of them bad, gets one
//! request per day, like a stale path prefix; good pages clear it. Home pages with the same tags in
//! the same order at one IP address belong to one *template*. Once [`MOST_HOSTS`] have it, their
//! sites count as bad, and so does every further one.
//!
//! *Cost.* About 40 bytes per site with pages and 4 per home page, for at most [`MOST_HOMES`]. Like
//! stale path prefixes, this is not part of the journal: a resumed crawl learns it again.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use super::SiteId;
use super::folders::PROBE;

/// The largest weight of a bad page.
pub(crate) const SPAM: f32 = 0.2;
/// The weight below which a page is of low quality.
pub(crate) const LOW: f32 = 0.5;
/// Minimum number of pages before a site is judged.
pub(crate) const FEWEST: u32 = 20;
/// Number of hosts of one template at one IP address that is too high.
pub(crate) const MOST_HOSTS: usize = 1_000;
/// Maximum number of home pages that are watched.
const MOST_HOMES: usize = 1 << 22;

/// The quality of the pages of a site.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Conduct {
    n_pages: u32,
    /// Pages of low quality, and bad ones among them.
    n_low: u32,
    n_bad: u32,
    /// Time of the last request since the site is bad, in seconds, plus one; 0 for never.
    probed: u32,
    is_template: bool,
}

impl Conduct {
    /// Records a page by the weight of its own text.
    pub(crate) fn record(&mut self, weight: f32) {
        self.n_pages = self.n_pages.saturating_add(1);
        self.n_low = self.n_low.saturating_add((weight < LOW).into());
        self.n_bad = self.n_bad.saturating_add((weight <= SPAM).into());
    }

    /// Returns the numbers of read pages and of pages of low quality.
    pub(crate) fn n_pages(&self) -> (u32, u32) {
        (self.n_pages, self.n_low)
    }

    /// Counts the site as bad from now on, whatever its pages.
    pub(crate) fn join_template(&mut self) {
        self.is_template = true;
    }

    /// Whether more than four fifths of enough pages are bad.
    pub(crate) fn is_bad(&self) -> bool {
        let is_poor = u64::from(self.n_bad) * 5 > u64::from(self.n_pages) * 4;
        self.is_template || self.n_pages >= FEWEST && is_poor
    }

    /// Whether a page may be requested; counts as the daily request of a bad site.
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

/// Home pages by IP address and template.
#[derive(Debug, Default)]
pub(crate) struct Templates {
    sites: HashMap<u64, Vec<SiteId>>,
    n_homes: usize,
    /// Templates with too many hosts.
    closed: HashSet<u64>,
}

impl Templates {
    /// Records the home page of a site; returns the sites that it shows to be bad.
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
    const BAD: f32 = 0.1;

    #[test]
    fn a_site_of_bad_pages_is_probed_once_a_day() {
        let mut site = Conduct::default();
        for _ in 0..19 {
            site.record(BAD);
        }
        assert!(site.admits(DAY) && site.admits(DAY));
        site.record(BAD);
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
        (0..16).for_each(|_| site.record(BAD));
        (0..4).for_each(|_| site.record(LOW));
        assert!(!site.is_bad());
        (0..5).for_each(|_| site.record(BAD));
        assert!(site.is_bad());
        (0..2).for_each(|_| site.record(LOW));
        assert!(!site.is_bad());
    }

    /// A reference weighs little, but not as little as spam.
    #[test]
    fn issue_26_references_are_not_spam() {
        let mut site = Conduct::default();
        (0..79).for_each(|_| site.record(SPAM));
        (0..21).for_each(|_| site.record(0.3));
        assert_eq!(site.n_pages(), (100, 100));
        assert!(!site.is_bad());
        (0..6).for_each(|_| site.record(SPAM));
        assert!(site.is_bad());
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
