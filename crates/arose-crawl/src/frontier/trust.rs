//! Trust of sites, and the number of pages that it is worth.
//!
//! *Question.* A site that many others link to should get as many pages as a large site has. A farm
//! of a thousand domains that five pages link to should not. Both grow without end.
//!
//! *Idea.* Three rules. First, trust is conserved: a site loses the trust that it passes on, so
//! domains that link to each other share the trust that came in. Second, one link brings a site at
//! most [`LINK`] of all trust. So many referrers count, and one referrer with no other links does
//! not count for many. (Andersen et al. 2008 likewise bound the part of a rank that one supporter
//! may have.) Third, trust is worth pages in proportion to the crawl: a site's part of the pages at
//! full priority is [`TIMES`] times its part of all trust. So one link is worth a part of the
//! crawl, 1 in 78, regardless of the number of seeds and the length of the crawl.
//! `bench/records/2026-11-17-order.md` has the results.
//!
//! *Error.* The worth of trust doubles when necessary, so it is up to a half too low.

use super::{Frontier, SiteId, Stage};
use crate::frontier::workbench::Rank;
use crate::journal::{Event, HostId};
use crate::order::Gift;

/// Minimum number of hosts taken between two checks of the worth of trust.
pub(super) const ROUND: usize = 1000;

/// Maximum part of all trust that one link brings to another site.
const LINK: f64 = 1.0 / 5000.0;

/// Maximum ratio of a site's part of the pages at full priority to its part of all trust.
const TIMES: f64 = 64.0;

impl Frontier {
    /// Sets the trust of a site, during the replay of the journal.
    pub(crate) fn set_trust(&mut self, site: SiteId, trust: f32) {
        let of = &mut self.sites[site as usize];
        let before = std::mem::replace(&mut of.trust, trust.max(0.0));
        self.trust += f64::from(of.trust) - f64::from(before);
        self.note_trusted(site);
    }

    /// Returns the gift of a link from one host to another, which is limited if a single link would
    /// count for many.
    pub(crate) fn carried(&self, from: HostId, to: HostId, gift: Gift) -> Gift {
        match self.hosts.site(from) == self.hosts.site(to) {
            true => gift,
            false => self.limited(gift),
        }
    }

    /// Limits what one link brings to another site.
    fn limited(&self, gift: Gift) -> Gift {
        match gift.is_link {
            false => gift,
            true => Gift {
                trust: gift.trust.min((self.trust * LINK) as f32),
                ..gift
            },
        }
    }

    /// Takes trust from the site of a host for a link to a site that another agent crawls, and
    /// returns the gift of the link.
    pub(crate) fn give_away(&mut self, from: HostId, gift: Gift) -> Gift {
        let gift = self.limited(gift);
        if gift.trust > 0.0 {
            self.change_trust(self.hosts.site(from), -gift.trust);
        }
        gift
    }

    /// Records that a host received trust from a site, which loses it, or from outside.
    pub(crate) fn entrust(&mut self, from: Option<SiteId>, id: HostId, trust: f32) {
        let number = self.hosts.site(id);
        if from == Some(number) || trust.is_nan() || trust <= 0.0 {
            return;
        }
        self.change_trust(number, trust);
        if let Some(from) = from {
            self.change_trust(from, -trust);
        }
        let site = &self.sites[number as usize];
        // If a site has its full share, more trust changes nothing.
        let is_limited = site.share(self.scale.pages()) < 1.0;
        if is_limited && self.hosts.is_warm(id) && self.hosts[id as usize].stage == Stage::Bench {
            self.raise_first(id);
        }
    }

    fn change_trust(&mut self, number: SiteId, by: f32) {
        let site = &mut self.sites[number as usize];
        let before = site.trust;
        site.trust = (before + by).max(0.0);
        self.trust += f64::from(site.trust) - f64::from(before);
        if !self.is_changed.replace(number, true) {
            self.changed.push(number);
            self.note_trusted(number);
        }
    }

    /// Returns the sites whose trust changed since the last call, for the journal.
    pub(crate) fn take_changes(&mut self) -> Vec<Event<'static>> {
        let mut events = Vec::with_capacity(self.changed.len());
        for number in std::mem::take(&mut self.changed) {
            let site = &self.sites[number as usize];
            self.is_changed.replace(number, false);
            let (host, trust) = (site.host, site.trust);
            events.push(Event::Trust { host, trust });
        }
        if std::mem::take(&mut self.has_doubled) {
            let n = self.scale.n_doublings.into();
            events.push(Event::Doublings { n });
        }
        events
    }

    /// Counts pages requested from a site.
    pub(crate) fn count_pages(&mut self, site: SiteId, n: u64) {
        let of_site = &mut self.sites[site as usize].n_pages;
        *of_site = of_site.saturating_add(u32::try_from(n).unwrap_or(u32::MAX));
        self.n_pages += n;
    }

    /// Makes trust worth twice as many pages when the crawl has grown, or when hardly any priority
    /// is left.
    pub(super) fn note_taken(&mut self, rank: Rank) {
        self.n_turns += 1;
        if rank < Rank::MAX {
            self.best = self.best.max(rank);
        }
        if self.n_turns < ROUND.max(self.bench.n_entries) {
            return;
        }
        let all = self.trust * self.scale.pages();
        let has_grown = all > 0.0 && self.n_pages as f64 * TIMES >= 2.0 * all;
        if has_grown || self.scale.is_scarce(self.best) {
            self.scale.n_doublings += 1;
            self.has_doubled = true;
        }
        (self.n_turns, self.best) = (0, 0);
    }
}
