//! Revisits: which pages are visited again, when, and with what result.
//!
//! Once a second, the schedule selects as many pages as the budget allows. The data of the last
//! visit are read back from the archive ([`Files::recall`](super::files::Files)), and the page is
//! queued at its host like any other URL. So politeness, retries and crashes are handled as for all
//! URLs: the journal records the page as [`Event::Again`]. Once the page is read, its statistics
//! change in the same commit that removes it from the queue.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use arose::freshness::{PageStatistics, Prior, Quality, Schedule, Value};

use super::background::{Command, Wanted};
use super::files::Recall;
use super::*;
use crate::counters::Counter;
use crate::fingerprint::Fingerprint;
use crate::frontier::{SiteId, Tag};
use crate::journal::{Event, Queued};
use crate::order::Level;
use crate::pages::{NO_SITE, PageId, PageStates, Recalled, Record, Signal, State, Table};

/// Seconds per day.
pub(super) const DAY: u32 = 86_400;

/// Maximum number of visits that wait at hosts: those of ten minutes, within these bounds.
const WAITING: std::ops::RangeInclusive<f64> = 1000.0..=100_000.0;

/// The position of pages in the queues of their hosts: after requests by users, before new URLs.
/// All have the largest mass; the class of priority distinguishes them.
const PRIORITY: u8 = 6;
pub(super) const URGENT: u8 = 7;

/// Identifies a page to be visited again among the URLs of its host. It differs from the name that
/// the page had when it was new, so links to it add nothing.
pub(super) fn again_name(rest_hash: u64) -> u64 {
    !rest_hash
}

/// Number of pages from which the threshold of the schedule is computed.
const SAMPLE: usize = 500;

/// The pages that are visited again.
#[derive(Debug)]
pub(super) struct RecrawlState {
    pub(super) is_on: bool,
    /// Whether no further visits are started.
    pub(super) is_ending: bool,
    /// Number of pages fetched so far, by which they are numbered.
    pub(super) n_pages: u32,
    pub(super) known: PageStates,
    schedule: Schedule,
    /// Pages with a fixed time of their next visit: nothing was there, or no content came.
    fixed: BTreeSet<(u32, PageId)>,
    /// Pages queued at their hosts, by journal position.
    pub(super) places: HashMap<Place, PageId>,
    /// The data for their visits.
    pub(super) waiting: HashMap<PageId, WaitingVisit>,
    /// Number of pages on their way from the schedule to the queues, which are being read back from
    /// the archive.
    n_recalled: usize,
    /// Pages that were queued when the last run ended, and are being read back.
    restored: HashSet<PageId>,
    /// Pages that a user waits for.
    pub(super) urgent: HashSet<PageId>,
    pub(super) untrusted: HashSet<HostId>,
    /// What became known of pages without a response.
    pub(super) visited: Vec<(PageId, Record)>,
    /// Number of new URLs that may be requested within the budget.
    n_new: f64,
    ticked: Duration,
    learned: Option<u32>,
    /// The latest date so far.
    dated: u32,
    /// Visits at fixed times that were made and are not yet charged to the budget.
    debt: f64,
    /// Pages that sites announce as changed, by fingerprint, with the dates: those since the last
    /// lookup, and those being looked up.
    announced: HashMap<u128, u32>,
    matched: HashMap<u128, u32>,
    /// Ticks until the next lookup.
    n_matching: f64,
    /// The estimates of freshness, and their date.
    pub(super) believed: (u32, Option<Freshness>),
    /// Records of pages that have moved, by the fingerprints of their new URLs, which are not
    /// fetched yet. After a crash, the new URLs start without a history.
    moved: HashMap<u128, Record>,
}

/// Maximum number of moved pages whose new URLs are awaited.
const MAX_MOVED: usize = 1 << 16;

/// A header of a conditional request, and its value.
type Condition = (&'static str, Box<str>);

/// Maximum number of announcements that wait.
const MAX_HEARD: usize = 1 << 20;

/// Number of pages of the table per tick of pause between two lookups. A lookup takes about a
/// second for ten million pages, so lookups take at most a tenth of the time.
const PAGES_PER_TICK: f64 = 1e6;

/// Returns the site of a page.
fn site_of(frontier: &Frontier, record: &Record) -> SiteId {
    let host = frontier.find(record.fingerprint.host);
    host.map_or(NO_SITE, |host| frontier.hosts.site(host))
}

#[derive(Debug)]
pub(super) struct WaitingVisit {
    pub(super) recalled: Recalled,
    /// Whether the complete page is requested, after the response "not modified".
    pub(super) is_full: bool,
    /// Its position in the queue of its host.
    class: u8,
}

impl WaitingVisit {
    fn new(recalled: Recalled, class: u8) -> Self {
        Self {
            recalled,
            is_full: false,
            class,
        }
    }

    /// Whether a user waits for it, and the queue of its host has it among the first.
    pub(super) fn is_in_front(&self) -> bool {
        self.class == URGENT
    }
}

impl RecrawlState {
    /// Reads the page table, if pages are to be visited again.
    pub(super) fn new(
        settings: &Settings,
        table: &Table,
        again: BTreeMap<Place, PageId>,
        untrusted: HashSet<HostId>,
        date: u32,
        frontier: &Frontier,
        qualities: &BTreeMap<HostId, Quality>,
    ) -> Result<Self, Error> {
        let least = settings
            .recrawl
            .min_interval
            .clamp(1.0, f64::from(u32::MAX));
        let mut recrawl = Self {
            is_on: settings.recrawl.on,
            is_ending: false,
            n_pages: table.n_pages(),
            known: PageStates::default(),
            schedule: Schedule::new(Value::Harmonic, least as u32),
            fixed: BTreeSet::new(),
            n_recalled: 0,
            restored: again.values().copied().collect(),
            places: again.into_iter().collect(),
            waiting: HashMap::new(),
            urgent: HashSet::new(),
            untrusted,
            visited: Vec::new(),
            n_new: 0.0,
            ticked: Duration::ZERO,
            learned: None,
            dated: date,
            debt: 0.0,
            announced: HashMap::new(),
            matched: HashMap::new(),
            n_matching: 0.0,
            believed: (0, None),
            moved: HashMap::new(),
        };
        if recrawl.is_on {
            for (host, quality) in qualities {
                recrawl
                    .known
                    .set_quality(frontier.hosts.site(*host), *quality);
            }
            recrawl.load(table, &settings.recrawl, frontier)?;
        }
        Ok(recrawl)
    }

    fn load(
        &mut self,
        table: &Table,
        settings: &crate::settings::Recrawl,
        frontier: &Frontier,
    ) -> Result<(), Error> {
        let mut n_live = 0;
        table.each(|page, record| {
            n_live += usize::from(record.state == State::Live);
            self.know(page, record, site_of(frontier, record));
        })?;
        self.schedule.reserve(n_live);
        self.known.learn();
        self.calibrate(settings);
        table.each(|page, record| {
            if self.restored.contains(&page) {
                return;
            }
            match (record.state, record.due) {
                // A visit in the future comes from a clock that was wrong.
                (State::Live, due) if due == 0 || record.statistics.last > self.dated => {
                    self.schedule.add(page, &self.known, self.dated);
                }
                (State::Live, due) => self.schedule.add_at(page, due),
                (State::Missing(_), due) => {
                    self.fixed.insert((due, page));
                }
                (State::Gone | State::Forbidden, _) => {}
            }
        })
    }

    /// Adds the statistics of a page to those in memory. Requisites of pages are not visited again.
    /// Lists of pages, which announce others, are not announced themselves.
    pub(super) fn know(&mut self, page: PageId, record: &Record, site: SiteId) {
        let site = match record.kind {
            Kind::Sitemap => NO_SITE,
            _ => site,
        };
        let kept = match record.kind {
            Kind::Requisite => State::Gone,
            _ => record.state,
        };
        let record = Record {
            state: kept,
            ..*record
        };
        self.known.put(page, &record, site);
    }

    /// Returns the visits per second that the settings allow.
    fn rate(&self, settings: &crate::settings::Recrawl) -> f64 {
        let per_second = settings.per_second;
        match per_second.is_finite() && per_second > 0.0 {
            true => per_second,
            false => f64::from(self.n_pages) / (settings.every.max(1e-3) * f64::from(DAY)),
        }
    }

    fn calibrate(&mut self, settings: &crate::settings::Recrawl) {
        let sample = self.known.sample(SAMPLE).into_iter();
        let sample: Vec<(PageStatistics, &Prior)> = sample
            .map(|(statistics, prior, _)| (statistics, prior))
            .collect();
        let rate = self.rate(settings);
        let (n_pages, date) = (self.n_pages.into(), self.dated);
        self.schedule.calibrate(&sample, n_pages, rate, date);
    }

    /// Whether there are pages to visit, even if none is due for a long time.
    pub(super) fn goes_on(&self) -> bool {
        let n_waiting = self.places.len() + self.n_recalled;
        let n_pages = self.schedule.len() + self.fixed.len() + n_waiting;
        self.is_on && n_pages > 0
    }

    /// Whether a queued URL is a page to be visited again.
    pub(super) fn is_again(&self, place: Place) -> bool {
        self.places.contains_key(&place)
    }

    /// Whether the data of a page to be visited again is no longer available.
    pub(super) fn is_forgotten(&self, place: Place) -> bool {
        let page = self.places.get(&place);
        page.is_some_and(|page| !self.waiting.contains_key(page))
    }

    /// Returns the version that a visit is compared with, and the header of a conditional request.
    pub(super) fn visit(
        &self,
        host: HostId,
        place: Place,
    ) -> (Option<Box<Revisit>>, Option<Condition>) {
        let page = self.places.get(&place);
        let Some(waiting) = page.and_then(|page| self.waiting.get(page)) else {
            return (None, None);
        };
        let asks_for_all = waiting.is_full || self.untrusted.contains(&host);
        let condition = waiting.recalled.validators.header();
        let condition = condition.filter(|_| !asks_for_all);
        let condition = condition.map(|(name, value)| (name, value.into()));
        (Some(waiting.recalled.revisit.clone()), condition)
    }

    /// Counts a request for a new URL.
    pub(super) fn spend_new(&mut self) {
        self.n_new -= 1.0;
    }

    /// Schedules the visit of a page by its statistics; returns its time.
    pub(super) fn schedule(
        &mut self,
        page: PageId,
        record: &Record,
        site: SiteId,
        now: u32,
    ) -> u32 {
        if !self.is_on {
            return 0;
        }
        self.know(page, record, site);
        self.schedule.add(page, &self.known, now).unwrap_or(0)
    }

    /// Records that a page has moved to a URL.
    pub(super) fn note_moved(&mut self, to: u128, record: Record) {
        if self.moved.len() < MAX_MOVED || self.moved.contains_key(&to) {
            self.moved.insert(to, record);
        }
    }

    /// Returns the record of the page that has moved to a URL.
    pub(super) fn take_moved(&mut self, to: u128) -> Option<Record> {
        self.moved.remove(&to)
    }

    /// Records announcements of lists. Each page counts once.
    pub(super) fn hear(&mut self, announced: &[(u128, u32)]) {
        for &(key, date) in announced {
            if self.announced.len() < MAX_HEARD || self.announced.contains_key(&key) {
                let latest = self.announced.entry(key).or_default();
                *latest = date.max(*latest);
            }
        }
    }

    /// Returns the announcements to be looked up now. A lookup reads the whole page table, so the
    /// pause between two grows with the size of the table.
    fn take_heard(&mut self) -> Option<HashSet<u128>> {
        self.n_matching -= 1.0;
        if self.announced.is_empty() || !self.matched.is_empty() || self.n_matching > 0.0 {
            return None;
        }
        self.n_matching = f64::from(self.n_pages) / PAGES_PER_TICK;
        self.matched = std::mem::take(&mut self.announced);
        Some(self.matched.keys().copied().collect())
    }

    /// Sets the date. If the clock was set back, pages do not wait until it reaches its earlier
    /// time.
    fn set_date(&mut self, date: u32) {
        if date.saturating_add(3600) < self.dated {
            self.schedule.clear();
            for page in 0..self.n_pages {
                self.schedule.add(page, &self.known, date);
            }
            let fixed = std::mem::take(&mut self.fixed).into_iter();
            self.fixed = fixed.map(|(time, page)| (time.min(date), page)).collect();
        }
        self.dated = date;
    }

    /// Schedules a visit of a page at a fixed time.
    pub(super) fn visit_at(&mut self, page: PageId, time: u32) {
        if self.is_on {
            self.fixed.insert((time, page));
        }
    }

    /// Returns the pages with a fixed time that has come.
    fn take_fixed(&mut self, now: u32, budget: f64) -> Vec<PageId> {
        let mut pages = Vec::new();
        while budget > 0.0
            && (pages.len() as f64) < budget.max(1.0)
            && self.debt < 1.0
            && let Some(&(time, page)) = self.fixed.first()
            && time <= now
        {
            self.fixed.pop_first();
            pages.push(page);
        }
        pages
    }
}

impl Crawl {
    /// Returns the current date, in seconds since 1970.
    pub(super) fn date(&self) -> u32 {
        u32::try_from((self.seams.clock)().as_secs()).unwrap_or(u32::MAX)
    }

    /// Starts the visits that are due.
    pub(super) fn visit_pages(&mut self) -> Result<(), Error> {
        let (now, date) = (self.now(), self.date());
        let recrawl = &mut self.recrawl;
        // After a delay of the loop, missed visits are not made up for.
        let seconds = (now - recrawl.ticked).as_secs_f64().min(5.0);
        recrawl.ticked = now;
        if !recrawl.is_on || recrawl.is_ending {
            return Ok(());
        }
        recrawl.set_date(date);
        let settings = &self.shared.settings.recrawl;
        let is_old = |learned: u32| date.abs_diff(learned) >= DAY;
        if recrawl.learned.is_none_or(is_old) {
            recrawl.learned = Some(date);
            recrawl.known.learn();
        }
        let rate = recrawl.rate(settings);
        let n_waiting = recrawl.places.len();
        let has_new = self.frontier.n_queued > n_waiting as u64;
        let share = match has_new && settings.per_second > 0.0 {
            true => settings.share.clamp(0.0, 1.0),
            false => 1.0,
        };
        let most = (rate * 600.0).clamp(*WAITING.start(), *WAITING.end());
        let budget = match (n_waiting as f64) < most {
            true => rate * share * seconds,
            false => 0.0,
        };
        let heard = recrawl.take_heard();
        let mut visits = recrawl.take_fixed(date, budget);
        recrawl.debt += visits.len() as f64;
        let paid = recrawl.debt.min(budget);
        recrawl.debt -= paid;
        let budget = budget - paid;
        visits.extend(recrawl.schedule.tick(&recrawl.known, date, budget));
        let n_left = rate * seconds - visits.len() as f64;
        recrawl.n_new = (recrawl.n_new + n_left).min(2.0 * rate.max(1.0));
        if let Some(keys) = heard {
            self.background.send(Command::Find(Wanted::Signals, keys))?;
        }
        match visits.is_empty() {
            true => Ok(()),
            false => self.recall(visits),
        }
    }

    /// Starts reading pages back from the archive.
    pub(super) fn recall(&mut self, pages: Vec<PageId>) -> Result<(), Error> {
        self.recrawl.n_recalled += pages.len();
        self.background.send(Command::Recall(pages))
    }

    /// Schedules visits of the pages whose sites announce changes.
    pub(super) fn take_announced(&mut self, found: &HashMap<u128, PageId>) {
        let date = self.date();
        let recrawl = &mut self.recrawl;
        let matched = std::mem::take(&mut recrawl.matched);
        let mut pages: Vec<(PageId, u32)> = found
            .iter()
            .filter_map(|(key, page)| Some((*page, *matched.get(key)?)))
            .collect();
        pages.sort_unstable();
        for (page, announced) in pages {
            match recrawl.known.announce(page, announced, date) {
                Signal::New => {
                    self.counters.add(Counter::Signals, 1);
                    recrawl.schedule.announce(page, &recrawl.known, date);
                }
                Signal::Implausible => self.counters.add(Counter::ImplausibleSignals, 1),
                Signal::Old => {}
            }
        }
    }

    /// Returns how long a host whose next URL is new must wait, if the budget for new URLs is used
    /// up.
    pub(super) fn wait_for_new(&self, host: HostId) -> Option<Duration> {
        let has_visits = self.frontier.revisited.contains_key(&host);
        (self.has_spent_new() && !has_visits).then_some(Duration::from_secs(1))
    }

    /// Whether the budget for new URLs is used up.
    fn has_spent_new(&self) -> bool {
        let is_limited = self.recrawl.is_on && self.settings().recrawl.per_second > 0.0;
        is_limited && self.recrawl.n_new < 1.0
    }

    /// Returns the share of the turns of a host that visits have while new URLs wait there. If more
    /// visits are due than a host may get requests, new URLs would otherwise never have a turn.
    pub(super) fn visit_share(&self, host: HostId) -> f32 {
        match self.has_spent_new() || !self.frontier.admits_pages(host) {
            true => 1.0,
            false => self.settings().recrawl.share.clamp(0.0, 1.0) as f32,
        }
    }

    /// Reads back the data for visits that were queued when the last run ended.
    pub(super) fn recall_waiting(&mut self) -> Result<(), Error> {
        let pages: Vec<PageId> = self.recrawl.restored.iter().copied().collect();
        if pages.is_empty() {
            return Ok(());
        }
        self.recall(pages)?;
        self.settle()
    }

    /// Queues pages that were read back to be visited again.
    pub(super) fn take_recalled(&mut self, recalls: Vec<Recall>) -> Result<(), Error> {
        let n = recalls.len();
        self.recrawl.n_recalled = self.recrawl.n_recalled.saturating_sub(n);
        let mut wanted = HashSet::new();
        for (page, recalled) in recalls {
            let is_queued = self.recrawl.restored.remove(&page);
            let is_urgent = self.recrawl.urgent.remove(&page);
            // Not committed yet, or its archive is not available at present.
            let Some(recalled) = recalled else {
                let tomorrow = self.date().saturating_add(DAY);
                self.recrawl.visit_at(page, tomorrow);
                continue;
            };
            if is_queued {
                let waiting = WaitingVisit::new(recalled, PRIORITY);
                self.recrawl.waiting.insert(page, waiting);
            } else if !self.recrawl.waiting.contains_key(&page) {
                self.queue_again(recalled, if is_urgent { URGENT } else { PRIORITY });
                continue;
            }
            if is_urgent {
                wanted.insert(page);
            }
        }
        if !wanted.is_empty() {
            self.move_forward(&wanted);
        }
        self.frontier.hosts.shelve(2 * n)
    }

    pub(super) fn queue_again(&mut self, recalled: Recalled, class: u8) {
        let record = recalled.revisit.record;
        let url = self.shared.normalize(&recalled.url, None).ok();
        // The settings may normalize URLs differently by now.
        let url = url.filter(|url| Fingerprint::of(url) == record.fingerprint);
        let host = url.as_ref();
        let host = host.and_then(|url| self.host_of(url, record.fingerprint.host));
        let (Some(url), Some(host)) = (url, host) else {
            return self.set_state(&recalled.revisit, State::Forbidden);
        };
        let queued = Queued {
            host,
            depth: record.depth.into(),
            weight: Weight {
                mass: Level::MOST,
                trust: Level::NONE,
            },
            class,
            is_last: false,
            of_repeat: false,
            n_redirects: 0,
            kind: record.kind,
            rest: url.rest(),
            found_on: "",
        };
        let page = recalled.page;
        let place = self.journal.push(Event::Again { page, queued });
        let tag = Tag::of(again_name(record.fingerprint.rest));
        self.frontier.push_again(&queued, tag, place);
        self.recrawl.places.insert(place, page);
        let waiting = WaitingVisit::new(recalled, class);
        self.recrawl.waiting.insert(page, waiting);
        self.frontier.advance(host);
        self.frontier.raise(host, queued.weight.mass);
    }

    pub(super) fn set_state(&mut self, revisit: &Revisit, state: State) {
        let mut record = revisit.record;
        record.state = state;
        record.due = 0;
        self.counters.add(Counter::ForbiddenPages, 1);
        if self.recrawl.is_on {
            let site = site_of(&self.frontier, &record);
            self.recrawl.know(revisit.page, &record, site);
        }
        self.recrawl.visited.push((revisit.page, record));
    }
}
