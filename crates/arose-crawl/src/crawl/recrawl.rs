//! Visiting pages again: which, when, and what came of it.
//!
//! Once a second the schedule names as many pages as the budget pays for. What a visit needs is
//! read back from the archive ([`Files::recall`](super::files::Files)), and the page is queued at its
//! host like any other URL, so politeness, retries and crashes are those of all URLs: the journal
//! knows it as [`Event::Again`]. When it has been read, its statistics change with the same commit
//! that takes it off the queue.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use arose::freshness::{Prior, Schedule, Stats, Value};
use arose::mix::mix;

use super::background::Command;
use super::files::{Recall, Visited};
use super::*;
use crate::counters::Counter;
use crate::fingerprint::Fingerprint;
use crate::journal::{Event, Queued};
use crate::pages::{self, Known, PageId, Recalled, Record, Slot, State, Table};

/// Seconds of a day.
const DAY: u32 = 86_400;

/// Visits that wait at hosts, at most: those of ten minutes, within these bounds.
const WAITING: std::ops::RangeInclusive<f64> = 1000.0..=100_000.0;

/// One of so many responses "not modified" is checked.
const CHECKED: u64 = 100;

/// Times that nothing may be at a URL before it is gone.
const TRIES: u8 = 3;

/// Where pages stand in the queues of their hosts: behind what somebody waits for, before new URLs.
const PRIORITY: u64 = 1;
const URGENT: u64 = 0;

/// Pages that the threshold of the schedule is found from.
const SAMPLE: usize = 500;

/// What a crawl knows of the pages that it visits again.
#[derive(Debug)]
pub(super) struct Recrawl {
    is_on: bool,
    /// Whether no further visits are to begin.
    pub(super) is_ending: bool,
    /// Pages fetched so far, which numbers them.
    n_pages: u32,
    known: Known,
    schedule: Schedule,
    /// Pages that are visited at a time of their own: nothing was there, or no content came.
    fixed: BTreeSet<(u32, PageId)>,
    /// Pages queued at their hosts, by their places in the journal.
    places: HashMap<Place, PageId>,
    /// What their visits need.
    waiting: HashMap<PageId, Waiting>,
    /// Pages that were queued when the last run ended, and are being read back.
    restored: HashSet<PageId>,
    /// Pages that somebody waits for.
    pub(super) urgent: HashSet<PageId>,
    untrusted: HashSet<HostId>,
    /// What became known of pages without a response.
    pub(super) visited: Vec<(PageId, Slot)>,
    /// New URLs that may be asked for within the budget.
    n_new: f64,
    ticked: Duration,
    learned: Option<u32>,
    /// The latest date so far.
    dated: u32,
    /// Visits at fixed times that were made and not paid for yet.
    debt: f64,
}

#[derive(Debug)]
struct Waiting {
    recalled: Recalled,
    /// Whether the server said "not modified" and is asked for all of it.
    is_full: bool,
}

impl Recrawl {
    /// Reads the page table, if pages are to be visited again.
    pub(super) fn new(
        settings: &Settings,
        table: &Table,
        again: BTreeMap<Place, PageId>,
        untrusted: HashSet<HostId>,
        date: u32,
    ) -> Result<Self, Error> {
        let least = settings
            .recrawl
            .min_interval
            .clamp(1.0, f64::from(u32::MAX));
        let mut recrawl = Self {
            is_on: settings.recrawl.on,
            is_ending: false,
            n_pages: table.n_pages(),
            known: Known::default(),
            schedule: Schedule::new(Value::Harmonic, least as u32),
            fixed: BTreeSet::new(),
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
        };
        if recrawl.is_on {
            recrawl.load(table, &settings.recrawl)?;
        }
        Ok(recrawl)
    }

    fn load(&mut self, table: &Table, settings: &crate::settings::Recrawl) -> Result<(), Error> {
        table.each(|page, record| self.know(page, record))?;
        self.known.learn();
        self.calibrate(settings);
        table.each(|page, record| {
            if self.restored.contains(&page) {
                return;
            }
            match (record.state, record.due) {
                // A visit in the future is one of a clock that was wrong.
                (State::Live, due) if due == 0 || record.stats.last > self.dated => {
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

    /// Holds the statistics of a page in memory. What pages need to be shown is not visited again.
    fn know(&mut self, page: PageId, record: &Record) {
        let kept = match record.kind {
            Kind::Requisite => State::Gone,
            _ => record.state,
        };
        let record = Record {
            state: kept,
            ..*record
        };
        self.known.put(page, &record);
    }

    /// Visits a second that the settings pay for.
    fn rate(&self, settings: &crate::settings::Recrawl) -> f64 {
        let per_second = settings.per_second;
        match per_second.is_finite() && per_second > 0.0 {
            true => per_second,
            false => f64::from(self.n_pages) / (settings.every.max(1e-3) * f64::from(DAY)),
        }
    }

    fn calibrate(&mut self, settings: &crate::settings::Recrawl) {
        let prior = self.known.common().clone();
        let sample = self.known.sample(SAMPLE);
        let sample: Vec<(Stats, &Prior)> = sample.iter().map(|stats| (*stats, &prior)).collect();
        let rate = self.rate(settings);
        let (n_pages, date) = (self.n_pages.into(), self.dated);
        self.schedule.calibrate(&sample, n_pages, rate, date);
    }

    /// Whether there will be pages to visit, however long none is due.
    pub(super) fn goes_on(&self) -> bool {
        let n_pages = self.schedule.len() + self.fixed.len() + self.places.len();
        self.is_on && n_pages > 0
    }

    /// Whether a queued URL is a page to be visited again.
    pub(super) fn is_again(&self, place: Place) -> bool {
        self.places.contains_key(&place)
    }

    /// Whether nothing is known any more of a page to be visited again.
    pub(super) fn is_forgotten(&self, place: Place) -> bool {
        let page = self.places.get(&place);
        page.is_some_and(|page| !self.waiting.contains_key(page))
    }

    /// The version that a visit is compared with, and how to ask for another one.
    pub(super) fn visit(
        &self,
        host: HostId,
        place: Place,
    ) -> (Option<Box<Revisit>>, Option<(&'static str, Box<str>)>) {
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

    /// Takes down that a new URL is asked for.
    pub(super) fn spend_new(&mut self) {
        self.n_new -= 1.0;
    }

    /// Has a page visited when it is due by its statistics; returns when that is.
    fn schedule(&mut self, page: PageId, record: &Record, now: u32) -> u32 {
        if !self.is_on {
            return 0;
        }
        self.know(page, record);
        self.schedule.add(page, &self.known, now).unwrap_or(0)
    }

    /// Looks at the clock. One that was set back would have pages wait for the time it had shown.
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

    /// Has a page visited at a time.
    fn visit_at(&mut self, page: PageId, time: u32) {
        if self.is_on {
            self.fixed.insert((time, page));
        }
    }

    /// The pages whose time has come, and whose time is fixed.
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
    /// Today, as pages are dated.
    fn date(&self) -> u32 {
        u32::try_from((self.seams.clock)().as_secs()).unwrap_or(u32::MAX)
    }

    /// Begins the visits that are due.
    pub(super) fn visit_pages(&mut self) -> Result<(), Error> {
        let (now, date) = (self.now(), self.date());
        let recrawl = &mut self.recrawl;
        // A loop that was late has no visits to make up for.
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
        let mut visits = recrawl.take_fixed(date, budget);
        recrawl.debt += visits.len() as f64;
        let paid = recrawl.debt.min(budget);
        recrawl.debt -= paid;
        let budget = budget - paid;
        visits.extend(recrawl.schedule.tick(&recrawl.known, date, budget));
        let n_left = rate * seconds - visits.len() as f64;
        recrawl.n_new = (recrawl.n_new + n_left).min(2.0 * rate.max(1.0));
        match visits.is_empty() {
            true => Ok(()),
            false => self.background.send(Command::Recall(visits)),
        }
    }

    /// How long a host must wait whose next URL is a new one, if the budget has none left.
    pub(super) fn wait_for_new(&self, host: HostId) -> Option<Duration> {
        let is_limited = self.recrawl.is_on && self.settings().recrawl.per_second > 0.0;
        let is_spent = self.recrawl.n_new < 1.0;
        let has_visits = self.frontier.revisited.contains_key(&host);
        (is_limited && is_spent && !has_visits).then_some(Duration::from_secs(1))
    }

    /// Reads back what the visits need that were queued when the last run ended.
    pub(super) fn recall_waiting(&mut self) -> Result<(), Error> {
        let pages: Vec<PageId> = self.recrawl.restored.iter().copied().collect();
        if pages.is_empty() {
            return Ok(());
        }
        self.background.send(Command::Recall(pages))?;
        self.settle()
    }

    /// Queues pages to be visited again.
    pub(super) fn take_recalled(&mut self, recalls: Vec<Recall>) -> Result<(), Error> {
        let n = recalls.len();
        for (page, recalled) in recalls {
            let is_queued = self.recrawl.restored.remove(&page);
            let is_urgent = self.recrawl.urgent.remove(&page);
            let Some(recalled) = recalled else { continue };
            if is_queued {
                let is_full = false;
                let waiting = Waiting { recalled, is_full };
                self.recrawl.waiting.insert(page, waiting);
            } else if !self.recrawl.waiting.contains_key(&page) {
                self.queue_again(recalled, if is_urgent { URGENT } else { PRIORITY });
            }
        }
        self.frontier.hosts.shelve(2 * n)
    }

    fn queue_again(&mut self, recalled: Recalled, priority: u64) {
        let record = recalled.revisit.slot.record;
        let url = self.shared.normalize(&recalled.url, None).ok();
        // Settings may write URLs in another way since.
        let url = url.filter(|url| Fingerprint::of(url) == record.fingerprint);
        let host = url.as_ref();
        let host = host.and_then(|url| self.host_of(url, record.fingerprint.host));
        let (Some(url), Some(host)) = (url, host) else {
            return self.set_state(&recalled.revisit, State::Forbidden);
        };
        let queued = Queued {
            host,
            depth: record.depth.into(),
            priority,
            n_redirects: 0,
            kind: record.kind,
            rest: url.rest(),
            found_on: "",
        };
        let page = recalled.page;
        let place = self.journal.push(Event::Again { page, queued });
        self.frontier.push_again(&queued, place);
        self.recrawl.places.insert(place, page);
        let is_full = false;
        let waiting = Waiting { recalled, is_full };
        self.recrawl.waiting.insert(page, waiting);
        self.frontier.advance(host);
    }

    fn set_state(&mut self, revisit: &Revisit, state: State) {
        let mut slot = revisit.slot;
        slot.record.state = state;
        slot.record.due = 0;
        self.counters.add(Counter::ForbiddenPages, 1);
        if self.recrawl.is_on {
            self.recrawl.know(revisit.page, &slot.record);
        }
        self.recrawl.visited.push((revisit.page, slot));
    }

    /// Whether a response "not modified" is one of those that are checked.
    pub(super) fn is_to_check(&mut self, page: &Page, response: &Response) -> bool {
        let status = response.message.head().map(|head| head.status);
        let Some(revisit) = page.revisit.as_ref().filter(|_| status == Some(304)) else {
            return false;
        };
        let last = u64::from(revisit.slot.record.stats.last);
        let is_drawn = mix(last << 32 | u64::from(revisit.page)) % CHECKED == 0;
        let waiting = self.recrawl.waiting.get_mut(&revisit.page);
        let is_to_check = is_drawn && page.condition.is_some();
        if let Some(waiting) = waiting.filter(|_| is_to_check) {
            waiting.is_full = true;
        }
        is_to_check
    }

    /// Takes down a page that was read: its statistics, and when it is visited next.
    pub(super) fn note_visit(&mut self, report: &Report) -> Option<Visited> {
        report.ticket?;
        if report.is_unread {
            return None;
        }
        match &report.revisit {
            None => Some(self.note_new(report)),
            Some(revisit) => Some(self.note_again(report, revisit)),
        }
    }

    fn note_new(&mut self, report: &Report) -> Visited {
        let date = self.date();
        let origin = &self.frontier.hosts[report.host as usize].origin;
        let page = self.recrawl.n_pages;
        self.recrawl.n_pages = page.saturating_add(1);
        let record = Record {
            fingerprint: Fingerprint {
                host: arose::digest::digest64(origin.as_bytes()),
                rest: arose::digest::digest64(report.rest.as_bytes()),
            },
            stats: Stats::new(date, pages::importance(report.kind)),
            first: date,
            due: 0,
            position: pages::Position::default(),
            status: report.status,
            n_versions: u16::from(report.version.digest != 0),
            kind: report.kind,
            state: match report.status {
                404 | 410 => State::Missing(1),
                _ => State::Live,
            },
            depth: u8::try_from(report.depth).unwrap_or(u8::MAX),
            digest: report.version.digest,
        };
        let mut slot = Slot {
            record,
            sketch: report.version.sketch,
        };
        slot.record.due = match record.state {
            State::Live => self.recrawl.schedule(page, &record, date),
            _ => self.try_later(page, &record),
        };
        Visited {
            page,
            slot,
            moves: true,
        }
    }

    /// Has a page visited at which nothing was, after twice the time since the last visit.
    fn try_later(&mut self, page: PageId, record: &Record) -> u32 {
        let date = self.date();
        let least = self.settings().recrawl.min_interval;
        let interval = date.saturating_sub(record.stats.last).max(least as u32);
        let due = date.saturating_add(interval.saturating_mul(2));
        self.recrawl.visit_at(page, due);
        due
    }

    fn note_again(&mut self, report: &Report, revisit: &Revisit) -> Visited {
        let date = self.date();
        let page = revisit.page;
        let is_checked = self
            .recrawl
            .waiting
            .remove(&page)
            .is_some_and(|w| w.is_full);
        let mut slot = revisit.slot;
        let record = &mut slot.record;
        self.counters.add(Counter::Revisits, 1);
        let is_content = matches!(report.status, 200..=399);
        let is_changed = is_content && !report.version.is_same;
        match report.status {
            200..=399 => {
                record.stats.visit(date, is_changed);
                record.state = State::Live;
                if report.status == 304 {
                    self.counters.add(Counter::NotModified, 1);
                } else {
                    record.status = report.status;
                }
                if is_changed {
                    self.counters.add(Counter::Changed, 1);
                    record.n_versions = record.n_versions.saturating_add(1);
                    record.digest = report.version.digest;
                    slot.sketch = report.version.sketch;
                }
                let record = slot.record;
                slot.record.due = self.recrawl.schedule(page, &record, date);
            }
            404 | 410 => {
                let before = match record.state {
                    State::Missing(n) => n,
                    _ => 0,
                };
                let n = before.saturating_add(1);
                record.status = report.status;
                let record = *record;
                slot.record.due = match n >= TRIES {
                    true => 0,
                    false => self.try_later(page, &record),
                };
                slot.record.stats.last = date;
                slot.record.state = State::Missing(n);
                if n >= TRIES {
                    slot.record.state = State::Gone;
                    self.counters.add(Counter::GonePages, 1);
                }
                if self.recrawl.is_on {
                    self.recrawl.know(page, &slot.record);
                }
            }
            _ => {
                record.status = report.status;
                record.due = date.saturating_add(DAY);
                let due = record.due;
                self.recrawl.visit_at(page, due);
            }
        }
        if is_checked && is_changed && self.recrawl.untrusted.insert(report.host) {
            self.counters.add(Counter::UntrustedHosts, 1);
            let host = report.host;
            self.journal.push(Event::Untrusted { host });
        }
        Visited {
            page,
            slot,
            moves: is_content && report.status != 304,
        }
    }

    /// Takes a URL off the list of pages to be visited again; whether it was one. A page of which
    /// no visit was taken down is tried again tomorrow.
    pub(super) fn end_visit(&mut self, host: HostId, place: Place) -> bool {
        let Some(page) = self.recrawl.places.remove(&place) else {
            return false;
        };
        self.frontier.end_again(host);
        if self.recrawl.waiting.remove(&page).is_some() {
            let tomorrow = self.date().saturating_add(DAY);
            self.recrawl.visit_at(page, tomorrow);
        }
        true
    }

    /// Takes down that a page may not be visited any more.
    pub(super) fn forbid(&mut self, host: HostId, place: Place) {
        let page = self.recrawl.places.get(&place);
        let waiting = page
            .copied()
            .and_then(|page| self.recrawl.waiting.remove(&page));
        if let Some(waiting) = waiting {
            self.set_state(&waiting.recalled.revisit, State::Forbidden);
        }
        self.end_visit(host, place);
    }
}
