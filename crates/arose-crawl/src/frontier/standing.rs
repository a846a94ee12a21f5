//! Explains the position of URLs and sites in the queue.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Frontier, SiteId, Turn};
use crate::error::Error;
use crate::journal::{HostId, Place};
use crate::url::NormalUrl;

/// Sites that are remembered as the most trusted ones, and as those with the most bad pages.
const MOST: usize = 10;

/// Why a URL that waits stands where it stands: its priority is its mass times the share of its
/// site.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Standing {
    /// The URL.
    pub url: String,
    /// What the pages that link to it gave it, and what every page has.
    pub mass: f64,
    /// How much it is trusted: what reached it of the trust of the seeds.
    pub trust: f64,
    /// Whether it goes behind all others, because duplicates alone link to it.
    pub is_last: bool,
    /// Its site.
    pub site: SiteStanding,
    /// What the pages of its site were like in the last run, if that is one of those with the most
    /// pages of low quality. They pass less mass on.
    pub quality: Option<SiteQuality>,
    /// By this it is compared with the URLs of other sites.
    pub priority: f64,
}

/// How much of a crawl a site gets.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SiteStanding {
    /// Its registrable domain.
    pub name: String,
    /// The trust of its seeds and what came from other sites, less what it passed on to others.
    pub trust: f64,
    /// Pages asked for.
    pub n_pages: u64,
    /// The part of its priority that its next page has.
    pub share: f64,
}

/// What the pages of a site are like.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SiteQuality {
    /// Its registrable domain.
    pub name: String,
    /// Pages that were read in this run.
    pub n_pages: u64,
    /// Of these: pages that weigh less than 0.5, not counting that they are copies.
    pub n_low: u64,
    /// Whether it gets one request per day, because nearly all of them weigh at most 0.2 or because
    /// a thousand hosts show its template.
    pub is_bad: bool,
}

/// A URL that waits, and where.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waiting {
    pub(crate) host: HostId,
    pub(crate) place: Place,
    turn: Turn,
    is_last: bool,
}

impl Frontier {
    /// The URLs with the highest priority, so many, the first one first.
    pub(crate) fn most_important(&mut self, n: usize) -> Result<Vec<Waiting>, Error> {
        let mut best: BinaryHeap<Reverse<(u64, Reverse<Place>, HostId)>> = BinaryHeap::new();
        for host in 0..self.hosts.len() as HostId {
            if !self.hosts.may_have_work(host) {
                continue;
            }
            let share = self.site_share(self.hosts.site(host));
            for (turn, is_last) in self.hosts[host as usize].waiting() {
                let by_mass = f64::from(turn.weight.mass.amount()) * share;
                // Positive numbers are ordered like their bits.
                let priority = if is_last { 0 } else { by_mass.to_bits() };
                best.push(Reverse((priority, Reverse(turn.place), host)));
                if best.len() > n {
                    best.pop();
                }
            }
            // Hosts beyond the limit go back to where they were.
            self.hosts.shelve(2)?;
        }
        let best = best.into_sorted_vec().into_iter();
        let found = best.filter_map(|Reverse((_, Reverse(place), host))| self.waiting(host, place));
        Ok(found.collect())
    }

    /// The URL at a place of a host, if it waits there.
    pub(crate) fn waiting(&self, host: HostId, place: Place) -> Option<Waiting> {
        let mut all = self.hosts[host as usize].waiting();
        let (turn, is_last) = all.find(|(turn, _)| turn.place == place)?;
        Some(Waiting {
            host,
            place,
            turn,
            is_last,
        })
    }

    /// The URL whose turn it is at a host, if that is in memory.
    pub(crate) fn best_of(&self, host: HostId) -> Option<Waiting> {
        if !self.hosts.is_warm(host) {
            return None;
        }
        let place = self.hosts[host as usize].first_place()?;
        self.waiting(host, place)
    }

    fn site_share(&self, site: SiteId) -> f64 {
        let share = self.sites[site as usize].share(self.scale.pages());
        share.powf(self.scale.power())
    }

    /// Why a URL stands where it stands.
    pub(crate) fn standing(&self, waiting: Waiting, rest: &str) -> Standing {
        let host = &self.hosts[waiting.host as usize];
        let site = self.site_standing(host.site);
        let mass = f64::from(waiting.turn.weight.mass.amount());
        Standing {
            url: format!("{}{rest}", host.origin),
            mass,
            trust: waiting.turn.weight.trust.amount().into(),
            is_last: waiting.is_last,
            priority: mass * site.share,
            quality: None,
            site,
        }
    }

    /// How much of the crawl a site gets.
    pub(crate) fn site_standing(&self, id: SiteId) -> SiteStanding {
        let site = &self.sites[id as usize];
        SiteStanding {
            name: self.site_name(id),
            trust: site.trust.into(),
            n_pages: site.n_pages,
            share: self.site_share(id),
        }
    }

    fn site_name(&self, id: SiteId) -> String {
        let host = self.sites[id as usize].host;
        let url = NormalUrl::from_parts(&self.hosts[host as usize].origin, "/");
        url.map_or_else(String::new, |url| url.site().to_owned())
    }

    /// The sites that are trusted most, so many.
    pub(crate) fn most_trusted(&self, n: usize) -> Vec<SiteStanding> {
        let mut sites: Vec<SiteId> = (0..self.sites.len() as SiteId).collect();
        let key = |&site: &SiteId| (Reverse(self.sites[site as usize].trust.to_bits()), site);
        if sites.len() > n && n > 0 {
            sites.select_nth_unstable_by_key(n - 1, key);
        }
        sites.truncate(n);
        sites.sort_by_key(key);
        sites.iter().map(|&site| self.site_standing(site)).collect()
    }

    /// Takes down that a site may be among the most trusted ones.
    pub(super) fn note_trusted(&mut self, id: SiteId) {
        let sites = &self.sites;
        keep_most(&mut self.trusted, id, |id| sites[id as usize].trust);
    }

    /// Takes down that a site may be among those with the most bad pages.
    pub(crate) fn note_quality(&mut self, id: SiteId) {
        let conduct = &self.conduct;
        let n_low = |id| conduct.get(&id).map_or(0, |conduct| conduct.n_pages().1);
        if n_low(id) > 0 {
            keep_most(&mut self.poor, id, |id| n_low(id) as f32);
        }
    }

    /// Sites with bad pages, those with the most first.
    pub(crate) fn poor_sites(&self) -> Vec<SiteQuality> {
        let quality = |&id: &SiteId| {
            let conduct = self.conduct.get(&id)?;
            let (n_pages, n_low) = conduct.n_pages();
            Some(SiteQuality {
                name: self.site_name(id),
                n_pages: n_pages.into(),
                n_low: n_low.into(),
                is_bad: conduct.is_bad(),
            })
        };
        let mut sites: Vec<SiteQuality> = self.poor.iter().filter_map(quality).collect();
        sites.sort_by(|a, b| (b.n_low, &a.name).cmp(&(a.n_low, &b.name)));
        sites
    }

    /// The sites that were found to be trusted most, without a look at all of them.
    pub(crate) fn trusted_sites(&self) -> Vec<SiteStanding> {
        let mut sites = self.trusted.clone();
        sites.sort_by_key(|&site| (Reverse(self.sites[site as usize].trust.to_bits()), site));
        sites.iter().map(|&site| self.site_standing(site)).collect()
    }

    /// Pages that a site gets with full priority for as much trust as a seed has, by now.
    pub(crate) fn pages_for_trust(&self) -> f64 {
        self.scale.pages()
    }
}

/// Adds a site to a short list of those with the largest keys, if it belongs there.
fn keep_most(list: &mut Vec<SiteId>, id: SiteId, key: impl Fn(SiteId) -> f32) {
    if list.contains(&id) {
        return;
    }
    if list.len() < MOST {
        list.push(id);
        return;
    }
    let least = (0..MOST).min_by(|&a, &b| key(list[a]).total_cmp(&key(list[b])));
    if let Some(least) = least
        && key(id) > key(list[least])
    {
        list[least] = id;
    }
}
