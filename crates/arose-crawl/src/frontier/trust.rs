//! Trust of sites, and how many pages it is worth.
//!
//! *Question.* A site that many others link to should have as many pages as a large one has, while
//! a farm of a thousand domains that five pages link to should not. Both grow without end.
//!
//! *Idea.* Three rules. Trust is conserved: what a site passes on to others it no longer has, so
//! domains that link to each other have together what came in. One link brings a site at most
//! [`LINK`] of all trust, so that many referrers count and one that has nothing else to link to
//! does not count for many (after Andersen et al. 2008, who bound the part of a rank that one
//! supporter may have). And trust is worth pages in proportion to the crawl: a site has [`TIMES`]
//! as many at full priority as its part of all trust. So one link is worth a part of the crawl, 1
//! in 78, however many seeds there are and however long it goes on.
//! `bench/records/2026-11-17-order.md` has what comes of that.
//!
//! *Error.* What trust is worth doubles when it has to, so it is up to a half too little.

use super::{Frontier, SiteId, Stage};
use crate::frontier::workbench::Rank;
use crate::journal::{Event, HostId};
use crate::order::Gift;

/// Hosts taken, at least, before it is asked whether trust is to be worth more.
pub(super) const ROUND: usize = 1000;

/// The part of all trust that one link brings to another site at most.
const LINK: f64 = 1.0 / 5000.0;

/// By how much the part of a site in the pages at full priority may exceed its part in all trust.
const TIMES: f64 = 64.0;

impl Frontier {
    /// Takes down how much a site is trusted, while the journal is read again.
    pub(crate) fn set_trust(&mut self, site: SiteId, trust: f32) {
        let of = &mut self.sites[site as usize];
        let before = std::mem::replace(&mut of.trust, trust.max(0.0));
        self.trust += f64::from(of.trust) - f64::from(before);
        self.note_trusted(site);
    }

    /// What a link from a host brings to another one: not all, where a single link would count for
    /// many.
    pub(crate) fn carried(&self, from: HostId, to: HostId, gift: Gift) -> Gift {
        let is_own = self.hosts.site(from) == self.hosts.site(to);
        match is_own || !gift.is_link {
            true => gift,
            false => Gift {
                trust: gift.trust.min((self.trust * LINK) as f32),
                ..gift
            },
        }
    }

    /// Takes down that trust came to a host from a site, which has less of it now, or from outside.
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
        // Where a site has its share in full, more trust changes nothing.
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
        if !std::mem::replace(&mut site.is_changed, true) {
            self.changed.push(number);
            self.note_trusted(number);
        }
    }

    /// What changed of sites since this was asked last, for the journal.
    pub(crate) fn take_changes(&mut self) -> Vec<Event<'static>> {
        let mut events = Vec::with_capacity(self.changed.len());
        for number in std::mem::take(&mut self.changed) {
            let site = &mut self.sites[number as usize];
            site.is_changed = false;
            let (host, trust) = (site.host, site.trust);
            events.push(Event::Trust { host, trust });
        }
        if std::mem::take(&mut self.has_doubled) {
            let n = self.scale.n_doublings.into();
            events.push(Event::Doublings { n });
        }
        events
    }

    /// Counts pages that a site was asked for.
    pub(crate) fn count_pages(&mut self, site: SiteId, n: u64) {
        self.sites[site as usize].n_pages += n;
        self.n_pages += n;
    }

    /// Has trust be worth twice as many pages when the crawl has grown, or hardly any priority is
    /// left.
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
