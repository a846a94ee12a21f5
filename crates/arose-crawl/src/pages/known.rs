//! The pages of a recrawl in memory: 16 bytes each, and more for sites that are large or announce
//! changes.

use std::collections::{BTreeMap, HashMap};

use arose::freshness::{History, PageStatistics, Pages, Prior, Quality};

use super::record::{importance, weight};
use super::{PageId, Record, State};
use crate::frontier::SiteId;

/// Pages per block; memory grows by blocks, never by doubling.
const BLOCK: usize = 1 << 14;

/// Maximum number of pages that a prior is learned from, and of those of one site.
const SAMPLE: usize = 4096;
const SITE_SAMPLE: usize = 256;

/// Minimum number of pages of a site with a prior of its own, and maximum number of such sites.
const LARGE: usize = 1000;
const MAX_LARGE: usize = 200;

/// Rounds of expectation maximization per day.
const ROUNDS: usize = 10;

/// Maximum number of announced pages that are kept.
const MAX_ANNOUNCED: usize = 1 << 20;

/// Stands for a page that is not to be visited.
const NONE: u32 = 0;

/// Stands for no site.
pub(crate) const NO_SITE: SiteId = SiteId::MAX;

/// A page in 16 bytes. Times are rounded to 0.02%; the page table has them exactly.
#[derive(Debug, Clone, Copy, Default)]
struct Row {
    last: u32,
    unchanged: u16,
    changed: u16,
    /// In eighths.
    n_changes: u16,
    weight: u16,
    site: SiteId,
}

impl Row {
    fn new(statistics: &PageStatistics, site: SiteId) -> Self {
        let history = statistics.history();
        Self {
            last: statistics.last,
            unchanged: rounded(history.unchanged),
            changed: rounded(history.changed),
            n_changes: (history.n_changes * 8.0).round() as u16,
            weight: weight(statistics.importance()),
            site,
        }
    }

    fn history(&self) -> History {
        History {
            unchanged: days(self.unchanged),
            changed: days(self.changed),
            n_changes: f32::from(self.n_changes) / 8.0,
        }
    }

    fn statistics(&self) -> PageStatistics {
        PageStatistics::new(self.last, importance(self.weight)).with_history(self.history())
    }
}

/// Days as a logarithm: from one second to ten thousand years in steps of 0.04%.
fn rounded(days: f32) -> u16 {
    match days > 0.0 {
        true => (1.0 + (days.log2() + 17.0) * 1638.0)
            .round()
            .clamp(1.0, 65_535.0) as u16,
        false => 0,
    }
}

fn days(rounded: u16) -> f32 {
    match rounded {
        0 => 0.0,
        rounded => ((f32::from(rounded) - 1.0) / 1638.0 - 17.0).exp2(),
    }
}

/// The announcements for a page since its last visit.
#[derive(Debug, Clone, Copy)]
struct Announced {
    /// The latest date.
    date: u32,
    n: u8,
}

/// The result of an announcement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    /// It is new.
    New,
    /// It is known, or older than the last visit.
    Old,
    /// Its date is impossible.
    Implausible,
}

/// The statistics of all pages, by number.
#[derive(Debug, Default)]
pub(crate) struct PageStates {
    blocks: Vec<Box<[Row; BLOCK]>>,
    n_pages: usize,
    prior: Prior,
    /// Priors of large sites.
    priors: HashMap<SiteId, Prior>,
    /// The quality of the announcements of sites.
    qualities: HashMap<SiteId, Quality>,
    announced: HashMap<PageId, Announced>,
}

impl PageStates {
    /// Records the state of a page.
    pub(crate) fn put(&mut self, page: PageId, record: &Record, site: SiteId) {
        let is_visited = matches!(record.state, State::Live | State::Missing(_));
        let row = match is_visited {
            true => Row::new(&record.statistics, site),
            false => Row::default(),
        };
        self.n_pages = self.n_pages.max(page as usize + 1);
        let block = page as usize / BLOCK;
        while self.blocks.len() <= block {
            self.blocks.push(Box::new([Row::default(); BLOCK]));
        }
        self.blocks[block][page as usize % BLOCK] = row;
    }

    fn get(&self, page: PageId) -> Option<&Row> {
        let block = self.blocks.get(page as usize / BLOCK)?;
        Some(&block[page as usize % BLOCK]).filter(|row| row.last != NONE)
    }

    fn rows(&self) -> impl Iterator<Item = &Row> {
        let rows = self.blocks.iter().flat_map(|block| block.iter());
        rows.take(self.n_pages).filter(|row| row.last != NONE)
    }

    /// Returns the number of pages that are to be visited.
    pub(crate) fn n_visited(&self) -> usize {
        self.rows().count()
    }

    /// Returns about this many of the pages that are to be visited, at equal distances.
    pub(crate) fn sample(&self, n: usize) -> Vec<(PageStatistics, &Prior, SiteId)> {
        let stride = self.n_pages.div_ceil(n.max(1)).max(1);
        let pages = (0..self.n_pages).step_by(stride);
        pages
            .filter_map(|page| {
                let row = self.get(page as PageId)?;
                Some((row.statistics(), self.prior_of(row), row.site))
            })
            .collect()
    }

    /// Learns how often pages change, starting with the current priors.
    pub(crate) fn learn(&mut self) {
        let histories: Vec<History> = self
            .sample(SAMPLE)
            .iter()
            .map(|(statistics, ..)| statistics.history())
            .collect();
        self.prior = self.prior.learned(&histories, ROUNDS);
        self.learn_sites();
    }

    fn learn_sites(&mut self) {
        let mut n_of_site: BTreeMap<SiteId, usize> = BTreeMap::new();
        for row in self.rows() {
            *n_of_site.entry(row.site).or_default() += 1;
        }
        let large = n_of_site
            .into_iter()
            .filter(|(site, n)| *n >= LARGE && *site != NO_SITE);
        let mut large: Vec<(usize, SiteId)> = large.map(|(site, n)| (n, site)).collect();
        large.sort_unstable_by(|a, b| b.cmp(a));
        large.truncate(MAX_LARGE);
        let mut samples: BTreeMap<SiteId, (usize, usize, Vec<History>)> = large
            .into_iter()
            .map(|(n, site)| (site, (n.div_ceil(SITE_SAMPLE), 0, Vec::new())))
            .collect();
        for row in self.rows() {
            if let Some((stride, n, histories)) = samples.get_mut(&row.site) {
                if *n % *stride == 0 {
                    histories.push(row.history());
                }
                *n += 1;
            }
        }
        let mut priors = HashMap::new();
        for (site, (.., histories)) in samples {
            let before = self.priors.get(&site).unwrap_or(&self.prior);
            priors.insert(site, before.learned(&histories, ROUNDS));
        }
        self.priors = priors;
    }

    fn prior_of(&self, row: &Row) -> &Prior {
        self.priors.get(&row.site).unwrap_or(&self.prior)
    }

    /// Records that a site announces a change of a page at a date.
    pub(crate) fn announce(&mut self, page: PageId, date: u32, now: u32) -> Signal {
        // The first year of the web, and a tolerance of an hour for fast clocks.
        const EARLIEST: u32 = 662_688_000;
        let Some(row) = self.get(page).filter(|row| row.site != NO_SITE).copied() else {
            return Signal::Old;
        };
        if date < EARLIEST || date > now.saturating_add(3600) {
            return Signal::Implausible;
        }
        let before = self
            .announced
            .get(&page)
            .map_or(row.last, |before| before.date);
        if date <= before || self.announced.len() >= MAX_ANNOUNCED {
            return Signal::Old;
        }
        self.qualities.entry(row.site).or_default();
        let announced = self
            .announced
            .entry(page)
            .or_insert(Announced { date, n: 0 });
        announced.date = date;
        announced.n = announced.n.saturating_add(1);
        Signal::New
    }

    /// Records what a visit showed about the announcements of a site; returns their quality, if the
    /// site makes any.
    pub(crate) fn judge(
        &mut self,
        page: PageId,
        days: f64,
        is_changed: bool,
    ) -> Option<(SiteId, Quality)> {
        let n = self
            .announced
            .remove(&page)
            .map_or(0, |announced| announced.n);
        let site = self.get(page)?.site;
        let quality = self.qualities.get_mut(&site)?;
        quality.note(days, n.into(), is_changed);
        Some((site, *quality))
    }

    /// Restores the quality of the announcements of a site from earlier runs.
    pub(crate) fn set_quality(&mut self, site: SiteId, quality: Quality) {
        self.qualities.insert(site, quality);
    }
}

impl Pages for PageStates {
    fn statistics(&self, page: u32) -> Option<PageStatistics> {
        self.get(page).map(Row::statistics)
    }

    fn prior(&self, page: u32) -> &Prior {
        self.get(page).map_or(&self.prior, |row| self.prior_of(row))
    }

    fn signals(&self, page: u32) -> Option<(Quality, u32)> {
        let quality = self.qualities.get(&self.get(page)?.site)?;
        let n = self.announced.get(&page).map_or(0, |announced| announced.n);
        Some((*quality, n.into()))
    }
}
