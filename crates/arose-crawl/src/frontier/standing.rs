//! Explains the position of URLs and sites in the queue.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use super::{Frontier, SiteId, Turn};
use crate::error::Error;
use crate::journal::{HostId, Place};
use crate::url::NormalUrl;

/// Number of sites that are remembered as those with the most trust, and as those with the most bad
/// pages.
const MOST: usize = 10;

/// Explains the position of a queued URL: its priority is its mass times the share of its site.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Standing {
    /// The URL.
    pub url: String,
    /// Its mass: what every page has, and the contributions of the pages that link to it.
    pub mass: f64,
    /// Its trust: the part of the trust of the seeds that has reached it.
    pub trust: f64,
    /// Whether it goes after all others, because only duplicates link to it.
    pub is_last: bool,
    /// Its site.
    pub site: SiteStanding,
    /// The quality of the pages of its site in the last run, if the site is one of those with the
    /// most pages of low quality. Such pages pass on less mass.
    pub quality: Option<SiteQuality>,
    /// Compared with the priorities of the URLs of other sites.
    pub priority: f64,
}

/// The share of a crawl that a site gets.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SiteStanding {
    /// Its registrable domain.
    pub name: String,
    /// The trust of its seeds and from other sites, minus the trust that it passed on.
    pub trust: f64,
    /// Number of pages requested.
    pub n_pages: u64,
    /// The share of its priority that its next page has.
    pub share: f64,
}

/// The quality of the pages of a site.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SiteQuality {
    /// Its registrable domain.
    pub name: String,
    /// Number of pages read in this run.
    pub n_pages: u64,
    /// Of these: pages that weigh less than 0.5, whether or not they are duplicates.
    pub n_low: u64,
    /// Whether it gets one request per day, because nearly all of its pages weigh at most 0.2 or
    /// because a thousand hosts have its template.
    pub is_bad: bool,
}

/// A queued URL and its position.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueuedUrl {
    pub(crate) host: HostId,
    pub(crate) place: Place,
    turn: Turn,
    is_last: bool,
}

impl Frontier {
    /// Returns the `n` URLs with the highest priority, highest first.
    pub(crate) fn most_important(&mut self, n: usize) -> Result<Vec<QueuedUrl>, Error> {
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
            // Hosts beyond the limit go back to the shelf.
            self.hosts.shelve(2)?;
        }
        let best = best.into_sorted_vec().into_iter();
        let found = best.filter_map(|Reverse((_, Reverse(place), host))| self.waiting(host, place));
        Ok(found.collect())
    }

    /// Returns the URL at a position of a host, if it is queued.
    pub(crate) fn waiting(&self, host: HostId, place: Place) -> Option<QueuedUrl> {
        let mut all = self.hosts[host as usize].waiting();
        let (turn, is_last) = all.find(|(turn, _)| turn.place == place)?;
        Some(QueuedUrl {
            host,
            place,
            turn,
            is_last,
        })
    }

    /// Returns the URL whose turn it is at a host, if the host is in memory.
    pub(crate) fn best_of(&self, host: HostId) -> Option<QueuedUrl> {
        if !self.hosts.is_warm(host) {
            return None;
        }
        let place = self.hosts[host as usize].first_place()?;
        self.waiting(host, place)
    }

    /// Returns the number of URLs that are lost for now.
    pub(crate) fn n_lost(&self) -> u64 {
        self.hosts.n_lost_and_aside().0
    }

    /// Returns the number of URLs put aside in stale directories.
    pub(crate) fn n_aside(&self) -> u64 {
        self.hosts.n_lost_and_aside().1
    }

    /// Holds back all URLs that are not lost.
    pub(crate) fn hold_queues(&mut self) -> Result<(), Error> {
        self.wants_lost_only = true;
        for id in 0..self.hosts.len() {
            self.hosts[id].hold_queue();
            self.hosts.shelve(1)?;
        }
        Ok(())
    }

    fn site_share(&self, site: SiteId) -> f64 {
        let share = self.sites[site as usize].share(self.scale.pages());
        share.powf(self.scale.power())
    }

    /// Explains the position of a queued URL.
    pub(crate) fn standing(&self, waiting: QueuedUrl, rest: &str) -> Standing {
        let host = &self.hosts[waiting.host as usize];
        let site = self.site_as(host.site, site_of(&host.origin));
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

    /// Returns the share of the crawl that a site gets. One of its hosts is read if it is not in
    /// memory.
    pub(crate) fn site_standing(&self, id: SiteId) -> SiteStanding {
        let host = self.sites[id as usize].host;
        self.site_as(id, site_of(&self.hosts[host as usize].origin))
    }

    fn site_as(&self, id: SiteId, name: String) -> SiteStanding {
        let site = &self.sites[id as usize];
        SiteStanding {
            name,
            trust: site.trust.into(),
            n_pages: site.n_pages.into(),
            share: self.site_share(id),
        }
    }

    /// Finds the names of listed sites. Those whose hosts are not in memory are found by a later
    /// call, when they are.
    pub(crate) fn name_sites(&mut self) {
        let listed: BTreeSet<SiteId> = self.trusted.iter().chain(&self.poor).copied().collect();
        self.names.retain(|site, _| listed.contains(site));
        for site in listed {
            if self.names.contains_key(&site) {
                continue;
            }
            let host = self.sites[site as usize].host;
            if self.hosts.bring(host) {
                let name = site_of(&self.hosts[host as usize].origin);
                self.names.insert(site, name.into());
            }
        }
    }

    /// Returns the name of a site, if it is among those that were [found](Self::name_sites).
    pub(crate) fn site_name(&self, id: SiteId) -> Option<&str> {
        self.names.get(&id).map(|name| &**name)
    }

    /// Returns the `n` sites with the most trust.
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

    /// Records that a site may be one of those with the most trust.
    pub(super) fn note_trusted(&mut self, id: SiteId) {
        let sites = &self.sites;
        keep_most(&mut self.trusted, id, |id| sites[id as usize].trust);
    }

    /// Records that a site may be one of those with the most bad pages.
    pub(crate) fn note_quality(&mut self, id: SiteId) {
        let conduct = &self.conduct;
        let n_low = |id| conduct.get(&id).map_or(0, |conduct| conduct.n_pages().1);
        if n_low(id) > 0 {
            keep_most(&mut self.poor, id, |id| n_low(id) as f32);
        }
    }

    /// Returns the sites with bad pages, those with the most first.
    pub(crate) fn poor_sites(&self) -> Vec<SiteQuality> {
        let quality = |&id: &SiteId| {
            let conduct = self.conduct.get(&id)?;
            let (n_pages, n_low) = conduct.n_pages();
            Some(SiteQuality {
                name: self.site_name(id)?.to_owned(),
                n_pages: n_pages.into(),
                n_low: n_low.into(),
                is_bad: conduct.is_bad(),
            })
        };
        let mut sites: Vec<SiteQuality> = self.poor.iter().filter_map(quality).collect();
        sites.sort_by(|a, b| (b.n_low, &a.name).cmp(&(a.n_low, &b.name)));
        sites
    }

    /// Returns the sites recorded as those with the most trust, without looking at all sites.
    pub(crate) fn trusted_sites(&self) -> Vec<SiteStanding> {
        let mut sites = self.trusted.clone();
        sites.sort_by_key(|&site| (Reverse(self.sites[site as usize].trust.to_bits()), site));
        let standing = |&site: &SiteId| Some(self.site_as(site, self.site_name(site)?.to_owned()));
        sites.iter().filter_map(standing).collect()
    }

    /// Returns the number of pages that a site currently gets with full priority, per trust of one
    /// seed.
    pub(crate) fn pages_for_trust(&self) -> f64 {
        self.scale.pages()
    }
}

/// Returns the site of a host.
fn site_of(origin: &str) -> String {
    let url = NormalUrl::from_parts(origin, "/");
    url.map_or_else(String::new, |url| url.site().to_owned())
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
