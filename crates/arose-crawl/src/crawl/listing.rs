//! Lists the pages of a crawl, which may be running, and estimates the benefit of further visits.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::Read;

use arose::freshness::{Demand, History, PageStatistics, Posterior, Prior, Value, fixed_intervals};

use super::look;
use super::store::ARCHIVE;
use super::*;
use crate::archive;
use crate::error::Context;
use crate::fingerprint::Fingerprint;
use crate::pages::{self, PageId, Record, TABLE};
use crate::url::Normalizer;

/// The data of a page that was fetched.
#[derive(Debug, Clone)]
pub struct PageInfo {
    /// Its URL; `None` if it is no longer in the archive.
    pub url: Option<String>,
    /// The time of the first fetch, in seconds since 1970.
    pub first: u32,
    /// The time of the last visit.
    pub last: u32,
    /// The time of the next visit; 0 if it is unknown.
    pub due: u32,
    /// The status of the last response.
    pub status: u16,
    /// `live`, `missing`, `gone` or `forbidden`.
    pub state: &'static str,
    /// Number of versions seen.
    pub n_versions: u16,
    /// Days in intervals without and with a change, and the number of intervals with a change.
    pub history: History,
    /// The importance.
    pub importance: f64,
    /// Expected changes per day.
    pub rate: f64,
    /// The probability that the last version is current.
    pub fresh: f64,
    /// The entity tag that the server sent last.
    pub etag: Option<String>,
    /// The date that the server sent last.
    pub last_modified: Option<String>,
}

/// The benefit of further visits.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Number of pages that are visited.
    pub n_pages: u64,
    /// The estimated share of pages that are up to date now.
    pub fresh_now: f64,
    /// Average number of days between two visits of a page.
    pub every: f64,
    /// The estimated average share of pages that would be up to date.
    pub fresh: f64,
    /// The same if all pages were visited in turn.
    pub fresh_in_turn: f64,
}

/// Number of pages that a plan is computed from.
const SAMPLE: usize = 10_000;

/// Rounds of expectation maximization, starting from an uninformative prior.
const ROUNDS: usize = 30;

/// Passes the data of each page of a crawl to `take`, in the order of first fetches. `date` is the
/// current time, in seconds since 1970.
///
/// # Errors
///
/// If there is no crawl in the directory, it is damaged, or `take` fails.
pub fn pages(
    folder: &Path,
    date: u32,
    mut take: impl FnMut(PageInfo) -> Result<(), Error>,
) -> Result<(), Error> {
    let journaled = journaled(folder)?;
    let prior = prior(folder, &journaled)?;
    let mut heads = archive::Heads::new(&folder.join(ARCHIVE));
    each(folder, &journaled, |page, record| {
        let posterior = Posterior::new(&prior, &record.statistics.history());
        let days = f64::from(date.saturating_sub(record.statistics.last)) / 86_400.0;
        let recalled = pages::recall(&mut heads, page, *record)?;
        let validators = recalled.as_ref().map(|recalled| &recalled.validators);
        let validator = |value: Option<&Box<str>>| value.map(|value| value.to_string());
        take(PageInfo {
            first: record.first,
            last: record.statistics.last,
            due: record.due,
            status: record.status,
            state: record.state.as_str(),
            n_versions: record.n_versions,
            history: record.statistics.history(),
            importance: record.statistics.importance(),
            rate: posterior.rate(),
            fresh: posterior.freshness(days),
            etag: validator(validators.and_then(|v| v.etag.as_ref())),
            last_modified: validator(validators.and_then(|v| v.last_modified.as_ref())),
            url: recalled.map(|recalled| recalled.url),
        })
    })
}

/// Returns the benefit of this many visits per second; with zero, only the current estimates.
///
/// # Errors
///
/// If there is no crawl in the directory, it is damaged, or it has no pages.
pub fn plan(folder: &Path, date: u32, per_second: f64) -> Result<Plan, Error> {
    let journaled = journaled(folder)?;
    let prior = prior(folder, &journaled)?;
    let (mut n_pages, mut fresh_now) = (0_u64, 0.0);
    let mut sample: Vec<PageStatistics> = Vec::new();
    let mut stride = 1;
    each(folder, &journaled, |_, record| {
        if !matches!(record.state, pages::State::Live) || record.kind == Kind::Requisite {
            return Ok(());
        }
        if n_pages % stride == 0 {
            sample.push(record.statistics);
        }
        n_pages += 1;
        // Twice the sample size: drop every second page.
        if sample.len() >= 2 * SAMPLE {
            let mut n = 0;
            sample.retain(|_| {
                n += 1;
                n % 2 == 1
            });
            stride *= 2;
        }
        Ok(())
    })?;
    if sample.is_empty() {
        let message = format!("no page of `{}` can be visited again", folder.display());
        return Err(Error::Settings(message));
    }
    let mut demands = Vec::with_capacity(sample.len());
    for statistics in &sample {
        let posterior = Posterior::new(&prior, &statistics.history());
        let days = f64::from(date.saturating_sub(statistics.last)) / 86_400.0;
        fresh_now += posterior.freshness(days);
        demands.push(Demand {
            mu: statistics.importance(),
            rate: posterior.rate(),
        });
    }
    let per_page = per_second * 86_400.0 / n_pages as f64;
    let unweighted = |demand: &Demand| Demand { mu: 1.0, ..*demand };
    let pages: Vec<Demand> = demands.iter().map(unweighted).collect();
    let budget = per_page * sample.len() as f64;
    let allocation = fixed_intervals(Value::Harmonic, &demands, budget);
    let in_turn = arose::freshness::Allocation {
        visits: vec![per_page; pages.len()],
        threshold: 0.0,
    };
    Ok(Plan {
        n_pages,
        fresh_now: fresh_now / sample.len() as f64,
        every: 1.0 / per_page,
        fresh: allocation.freshness(&pages),
        fresh_in_turn: in_turn.freshness(&pages),
    })
}

/// Returns the state of a page: `live`, `missing`, `gone` or `forbidden`; `None` if it was never
/// fetched. Reads the whole page table.
///
/// # Errors
///
/// If there is no crawl in the directory, it is damaged, or the text is not a URL.
pub fn page_state(folder: &Path, url: &str) -> Result<Option<&'static str>, Error> {
    let normalizer = crate::page::normalizer(&kept_settings(folder)?);
    let normal = normalizer.normalize(url, None);
    let normal =
        normal.map_err(|error| Error::Settings(format!("`{url}` is not a URL: {error}")))?;
    let wanted = Fingerprint::of(&normal);
    let mut found = None;
    each(folder, &journaled(folder)?, |_, record| {
        if record.fingerprint == wanted {
            found = Some(record.state.as_str());
        }
        Ok(())
    })?;
    Ok(found)
}

/// The pages of a crawl that are gone: three visits found nothing there.
#[derive(Debug, Default)]
pub struct GonePages {
    normalizer: Option<Normalizer>,
    keys: HashSet<u128>,
}

impl GonePages {
    /// Returns whether a page is gone.
    #[must_use]
    pub fn has(&self, url: &str) -> bool {
        let normalizer = self.normalizer.as_ref().filter(|_| !self.keys.is_empty());
        let normal = normalizer.and_then(|normalizer| normalizer.normalize(url, None).ok());
        normal.is_some_and(|url| self.keys.contains(&Fingerprint::of(&url).key()))
    }
}

/// Returns the pages of a crawl that are gone, 16 bytes each; none if there is no crawl in the
/// directory. Reads the page table, which may be some seconds behind a running crawl.
///
/// # Errors
///
/// If the crawl is damaged.
pub fn gone_pages(folder: &Path) -> Result<GonePages, Error> {
    let mut gone = GonePages::default();
    if !is_crawl(folder) {
        return Ok(gone);
    }
    gone.normalizer = Some(crate::page::normalizer(&kept_settings(folder)?));
    each(folder, &BTreeMap::new(), |_, record| {
        if record.state == pages::State::Gone {
            gone.keys.insert(record.fingerprint.key());
        }
        Ok(())
    })?;
    Ok(gone)
}

/// What the journal knows of pages and the table may not.
fn journaled(folder: &Path) -> Result<BTreeMap<PageId, Record>, Error> {
    Ok(look::restore(folder)?.visited)
}

/// The prior of the pages of a crawl.
fn prior(folder: &Path, journaled: &BTreeMap<PageId, Record>) -> Result<Prior, Error> {
    let mut histories: Vec<History> = Vec::new();
    let (mut n, mut stride) = (0_u64, 1);
    each(folder, journaled, |_, record| {
        if n % stride == 0 {
            histories.push(record.statistics.history());
        }
        n += 1;
        if histories.len() >= 2 * SAMPLE {
            let mut n = 0;
            histories.retain(|_| {
                n += 1;
                n % 2 == 1
            });
            stride *= 2;
        }
        Ok(())
    })?;
    Ok(Prior::default().learned(&histories, ROUNDS))
}

/// Reads the records of all pages. The table of a running crawl may be ahead of the journal that
/// was read: what was visited later counts.
pub(super) fn each(
    folder: &Path,
    journaled: &BTreeMap<PageId, Record>,
    mut take: impl FnMut(PageId, &Record) -> Result<(), Error>,
) -> Result<(), Error> {
    let path = folder.join(TABLE).join("records");
    let bytes: Box<dyn Read> = match File::open(&path) {
        Ok(file) => Box::new(std::io::BufReader::new(file)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Box::new(std::io::empty()),
        Err(error) => return Err(error).context("reading", &path),
    };
    let mut bytes = bytes;
    let mut page = 0;
    loop {
        let mut row = [0; 64];
        let is_there = bytes.read_exact(&mut row).is_ok();
        let stored = Record::from_bytes(&row).filter(|_| is_there);
        let known = journaled.get(&page).copied();
        let newest = match (stored, known) {
            (Some(stored), Some(known)) if stored.statistics.last > known.statistics.last => {
                Some(stored)
            }
            (stored, known) => known.or(stored),
        };
        if let Some(record) = newest {
            take(page, &record)?;
        }
        let has_more = journaled.range(page.saturating_add(1)..).next().is_some();
        if !is_there && !has_more {
            return Ok(());
        }
        page += 1;
    }
}
