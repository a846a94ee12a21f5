//! Results of visits: updates the statistics of pages and schedules their next visit.

use arose::freshness::{History, PageStatistics};
use arose::mix::mix;

use super::files::Visited;
use super::recrawl::DAY;
use super::*;
use crate::counters::Counter;
use crate::fingerprint::Fingerprint;
use crate::journal::Event;
use crate::pages::{self, PageId, Record, State};

/// One of this many "not modified" responses is checked.
const CHECKED: u64 = 100;

/// Number of visits in a row that find nothing before a page counts as gone.
pub(super) const TRIES: u8 = 3;

/// The importance of an old URL of a page relative to the page: the move may be undone.
const MOVED: f64 = 0.1;

/// Whether a status says that a page has moved permanently.
fn is_move(status: u16) -> bool {
    matches!(status, 301 | 308)
}

/// Whether a page with content has moved, according to the status of the next visit.
pub(super) fn is_moved(before: &Record, status: u16) -> bool {
    is_move(status) && matches!(before.status, 200..=299)
}

impl Crawl {
    /// Whether this "not modified" response is one of those that are checked.
    pub(super) fn is_to_check(&mut self, page: &Page, response: &Response) -> bool {
        let status = response.message.head().map(|head| head.status);
        let Some(revisit) = page.revisit.as_ref().filter(|_| status == Some(304)) else {
            return false;
        };
        let last = u64::from(revisit.record.statistics.last);
        let is_drawn = mix(last << 32 | u64::from(revisit.page)).is_multiple_of(CHECKED);
        let waiting = self.recrawl.waiting.get_mut(&revisit.page);
        let is_to_check = is_drawn && page.condition.is_some();
        if let Some(waiting) = waiting.filter(|_| is_to_check) {
            waiting.is_full = true;
        }
        is_to_check
    }

    /// Updates the statistics of a page that was read, and schedules its next visit.
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
            statistics: PageStatistics::new(
                date,
                pages::importance(report.kind, report.importance),
            ),
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
        let mut record = self.with_past(record);
        record.due = match record.state {
            State::Live => {
                let site = self.frontier.hosts.site(report.host);
                self.recrawl.schedule(page, &record, site, date)
            }
            _ => self.try_later(page, &record),
        };
        Visited {
            page,
            record,
            moves: true,
        }
    }

    /// Returns the record of a page with the history of the URL that has moved to it, if the page
    /// is not older than the last visit of that URL.
    fn with_past(&mut self, mut record: Record) -> Record {
        let before = self.recrawl.take_moved(record.fingerprint.key());
        let before = before.filter(|before| {
            matches!(record.status, 200..=299) && before.statistics.last <= record.first
        });
        if let Some(before) = before {
            let importance = record
                .statistics
                .importance()
                .max(before.statistics.importance());
            let [own, past] =
                [record.statistics, before.statistics].map(|statistics| statistics.history());
            record.statistics.set_importance(importance);
            record.statistics = record.statistics.with_history(History {
                unchanged: own.unchanged + past.unchanged,
                changed: own.changed + past.changed,
                n_changes: own.n_changes + past.n_changes,
            });
            record.first = before.first;
        }
        record
    }

    /// Records whether a page has moved since the last visit, or has come back.
    fn note_move(&mut self, report: &Report, before: &Record, record: &mut Record) {
        let is_back = is_move(before.status) && matches!(report.status, 200..=299);
        let factor = match is_moved(before, report.status) {
            true => MOVED,
            false if is_back => 1.0 / MOVED,
            false => return,
        };
        record
            .statistics
            .set_importance(before.statistics.importance() * factor);
        if is_back {
            return;
        }
        self.counters.add(Counter::MovedPages, 1);
        if let Some(to) = report.leads_to {
            self.recrawl.note_moved(to, *before);
        }
    }

    /// Schedules the next visit of a page that was not there, after twice the time since the last
    /// visit.
    fn try_later(&mut self, page: PageId, record: &Record) -> u32 {
        let date = self.date();
        let least = self.settings().recrawl.min_interval;
        let interval = date
            .saturating_sub(record.statistics.last)
            .max(least as u32);
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
        let mut record = revisit.record;
        let site = self.frontier.hosts.site(report.host);
        self.counters.add(Counter::Revisits, 1);
        let is_content = matches!(report.status, 200..=399);
        let is_changed = is_content && !report.version.is_same;
        match report.status {
            200..=399 => {
                let days = f64::from(date.saturating_sub(record.statistics.last)) / f64::from(DAY);
                if let Some((site, quality)) = self.recrawl.known.judge(page, days, is_changed) {
                    let host = self.frontier.sites[site as usize].host;
                    self.journal.push(Event::Signals { host, quality });
                }
                // A move to another URL is not a change of content.
                let is_moved = is_moved(&revisit.record, report.status);
                record.statistics.visit(date, is_changed && !is_moved);
                record.state = State::Live;
                if report.status == 304 {
                    self.counters.add(Counter::NotModified, 1);
                } else {
                    self.note_move(report, &revisit.record, &mut record);
                    record.status = report.status;
                }
                if is_changed {
                    self.counters.add(Counter::Changed, 1);
                    record.n_versions = record.n_versions.saturating_add(1);
                    record.digest = report.version.digest;
                }
                record = self.with_past(record);
                record.due = self.recrawl.schedule(page, &record, site, date);
            }
            404 | 410 => {
                let before = match record.state {
                    State::Missing(n) => n,
                    _ => 0,
                };
                let n = before.saturating_add(1);
                record.status = report.status;
                record.due = match n >= TRIES {
                    true => 0,
                    false => self.try_later(page, &record),
                };
                record.statistics.last = date;
                record.state = State::Missing(n);
                if n >= TRIES {
                    record.state = State::Gone;
                    self.counters.add(Counter::GonePages, 1);
                }
                if self.recrawl.is_on {
                    self.recrawl.know(page, &record, site);
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
            record,
            moves: is_content && report.status != 304,
        }
    }

    /// Removes a URL from the pages to be visited again; returns whether it was one. If no visit of
    /// the page was recorded, it is tried again the next day.
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

    /// Records that a page must not be visited any more.
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
