//! The pages of a crawl alone, to measure the cost of many revisits.

use std::collections::BTreeMap;
use std::path::Path;

use arose::freshness::{PageStatistics, Prior, Schedule, Value};
use arose::mix::mix;

use crate::error::{Context, Error};
use crate::fingerprint::Fingerprint;
use crate::journal::Kind;
use crate::pages::{PageId, PageStates, Position, Record, State, Table};

/// Pages of a site.
const SITE: u32 = 10_000;

/// Number of pages after which the table is synced, as a crawl does it.
const COMMIT: u32 = 10_000;

/// Page table, statistics and schedule, as in a crawl that visits pages again.
///
/// ```
/// let folder = tempfile::tempdir().unwrap();
/// let mut pages = arose_crawl::rehearsal::Pages::new(folder.path(), 1000, 30)?;
/// pages.decide();
/// let mut n_visits = 0;
/// for _hour in 0..240 {
///     n_visits += pages.tick(3600)?;
/// }
/// // At most as many as are paid for in ten days.
/// assert!((1..=350).contains(&n_visits), "{n_visits}");
/// assert_eq!(pages.table_bytes(folder.path())?, 64_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Pages {
    table: Table,
    known: PageStates,
    schedule: Schedule,
    n_pages: u32,
    every: u32,
    now: u32,
}

impl Pages {
    /// Creates the table of this many pages in a directory and schedules them. Each was fetched
    /// within the last `every` days, known for 60 days, and one in eight has changed.
    ///
    /// # Errors
    ///
    /// If the directory cannot be written.
    pub fn new(folder: &Path, n_pages: u32, every: u32) -> Result<Self, Error> {
        let mut pages = Self {
            table: Table::open(folder, 0, BTreeMap::new())?,
            known: PageStates::default(),
            schedule: Schedule::new(Value::Harmonic, 3600),
            n_pages,
            every: every.max(1),
            now: 1_700_000_000,
        };
        pages.schedule.reserve(n_pages as usize);
        for page in 0..n_pages {
            let record = pages.record(page);
            pages.table.put(page, record);
            pages.known.put(page, &record, page / SITE);
            if page % COMMIT == COMMIT - 1 || page == n_pages - 1 {
                pages.table.sync()?;
            }
        }
        pages.known.learn();
        let sample = pages.known.sample(500).into_iter();
        let sample: Vec<(PageStatistics, &Prior)> = sample
            .map(|(statistics, prior, _)| (statistics, prior))
            .collect();
        let (rate, now) = (pages.rate(), pages.now);
        pages.schedule.calibrate(&sample, n_pages.into(), rate, now);
        Ok(pages)
    }

    /// Decides for every page when it is to be visited next.
    pub fn decide(&mut self) {
        for page in 0..self.n_pages {
            self.schedule.add(page, &self.known, self.now);
        }
    }

    fn record(&self, page: PageId) -> Record {
        let random = mix(page.into());
        let age = (random % u64::from(self.every * 86_400)) as u32;
        let mut statistics = PageStatistics::new(
            self.now - age - 60 * 86_400,
            0.2 + (random >> 50) as f64 / 4096.0,
        );
        statistics.visit(self.now - age, random >> 40 & 7 == 0);
        Record {
            fingerprint: Fingerprint {
                host: u64::from(page / SITE),
                rest: random,
            },
            statistics,
            first: self.now - age - 60 * 86_400,
            due: 0,
            position: Position::default(),
            status: 200,
            n_versions: 1,
            kind: Kind::Page,
            state: State::Live,
            depth: 3,
            digest: random,
        }
    }

    /// Visits that are paid for per second.
    fn rate(&self) -> f64 {
        f64::from(self.n_pages) / (f64::from(self.every) * 86_400.0)
    }

    /// Lets seconds go by and visits the pages that are due; one in eight has changed. Returns how
    /// many were visited.
    ///
    /// # Errors
    ///
    /// If the table cannot be read.
    pub fn tick(&mut self, seconds: u32) -> Result<usize, Error> {
        self.now += seconds;
        let budget = self.rate() * f64::from(seconds);
        let visits = self.schedule.tick(&self.known, self.now, budget);
        for &page in &visits {
            let Some(mut record) = self.table.get(page)? else {
                continue;
            };
            record.statistics.visit(self.now, page.is_multiple_of(8));
            self.table.put(page, record);
            self.known.put(page, &record, page / SITE);
            self.schedule.add(page, &self.known, self.now);
        }
        Ok(visits.len())
    }

    /// Returns how often the time of a visit was computed.
    #[must_use]
    pub fn n_decisions(&self) -> u64 {
        self.schedule.n_decisions()
    }

    /// Returns the size of the table on disk.
    ///
    /// # Errors
    ///
    /// If the directory cannot be read or the table cannot be written.
    pub fn table_bytes(&mut self, folder: &Path) -> Result<u64, Error> {
        self.table.sync()?;
        let size = |entry: std::io::Result<std::fs::DirEntry>| Ok(entry?.metadata()?.len());
        let entries = std::fs::read_dir(folder).context("reading", folder)?;
        let sizes = entries.map(size).collect::<std::io::Result<Vec<u64>>>();
        Ok(sizes.context("reading", folder)?.iter().sum())
    }
}
