//! The schedule: pages ordered by the time at which a visit becomes worthwhile.
//!
//! The naive method computes the value of every page at every moment and takes the largest. Instead
//! there is a threshold. The time at which a page will reach it is known in advance, so pages wait
//! in a queue ordered by that time. At every moment, the first few pages of the queue are compared,
//! and the most valuable ones are visited. The threshold follows the smallest value that was taken:
//! it rises if more pages are due than the budget allows, and falls if there are fewer. Times that
//! were computed with another threshold are accurate enough for ordering pages. If the threshold
//! has fallen by a fifth, all of them are computed again, a few at a time.
//!
//! *Cost.* 7 bytes and one bit per page here, and 16 bytes for its [`PageStatistics`], which the
//! caller stores; about 3 decisions per visit. Times in the queue are rounded down to 8 seconds,
//! and those more than two years away to that; the value of a page is computed from exact times.
//! Politeness needs no additional code: a page of a busy host waits, and its value grows.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use super::entry::{Entry, SPAN, base_at};
use super::{History, Posterior, Prior, Quality, Value};

/// Seconds of a day.
const DAY: f64 = 86_400.0;

/// Number of changes at which the past is halved, so that it fits.
const MAX_CHANGES: f32 = 8_000.0;

/// The data about a page, in 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PageStatistics {
    /// The time of the last visit, in seconds of the caller's clock.
    pub last: u32,
    unchanged: f32,
    changed: f32,
    /// Changes, in eighths.
    n_changes: u16,
    /// The importance, as a logarithm to the base 2 with 10 binary digits after the point.
    weight: u16,
}

impl PageStatistics {
    /// Creates the data of a page with this importance that was visited once.
    #[must_use]
    pub fn new(last: u32, mu: f64) -> Self {
        let mut statistics = Self {
            last,
            ..Self::default()
        };
        statistics.set_importance(mu);
        statistics
    }

    /// Returns the same page with this past.
    #[must_use]
    pub fn with_history(mut self, history: History) -> Self {
        let mut history = history;
        while history.n_changes > MAX_CHANGES {
            history.fade(1.0, 1.0);
        }
        self.unchanged = history.unchanged;
        self.changed = history.changed;
        self.n_changes = (history.n_changes * 8.0).round() as u16;
        self
    }

    /// Returns the results of its visits.
    #[must_use]
    pub fn history(&self) -> History {
        History {
            unchanged: self.unchanged,
            changed: self.changed,
            n_changes: f32::from(self.n_changes) / 8.0,
        }
    }

    /// Returns the importance.
    #[must_use]
    pub fn importance(&self) -> f64 {
        ((f64::from(self.weight) - 32_768.0) / 1024.0).exp2()
    }

    /// Sets the importance, which is limited to the range from 2^-32 to 2^32 and stored to 0.04%.
    pub fn set_importance(&mut self, mu: f64) {
        let log = (mu.max(1e-9).log2() * 1024.0).round() + 32_768.0;
        self.weight = log.clamp(0.0, 65_535.0) as u16;
    }

    /// Records a visit. If the clock was set back, there is no interval.
    pub fn visit(&mut self, now: u32, is_changed: bool) {
        let days = f64::from(now.saturating_sub(self.last)) / DAY;
        let mut history = self.history();
        history.note(days, is_changed);
        *self = self.with_history(history);
        self.last = now;
    }
}

/// The pages of a schedule, stored by their owner.
pub trait Pages {
    /// Returns the data about a page; none if it is not to be visited.
    fn statistics(&self, page: u32) -> Option<PageStatistics>;

    /// Returns the prior of the page.
    fn prior(&self, page: u32) -> &Prior;

    /// Returns the quality of the signals of its site, and the number of signals since the last
    /// visit, if its site has any.
    fn signals(&self, _page: u32) -> Option<(Quality, u32)> {
        None
    }
}

/// Decides which pages to visit.
#[derive(Debug, Clone)]
pub struct Schedule {
    value: Value,
    min_interval: u32,
    threshold: f64,
    /// The highest threshold with which a time in the queue was computed.
    highest: f64,
    due: BinaryHeap<Reverse<Entry>>,
    /// Pages whose times are being computed again.
    outdated: BinaryHeap<Reverse<Entry>>,
    /// The time that entries count from.
    base: u32,
    /// A bit per page: whether it is in one of these queues.
    is_queued: Vec<u64>,
    /// Pages announced as changed, with earlier times than those in the queues.
    announced: BTreeSet<(u32, u32)>,
    /// Visits that the budget allowed and that were not made.
    owed: f64,
    n_decisions: u64,
}

/// A page whose turn may have come.
#[derive(Debug, Clone, Copy)]
struct DuePage {
    page: u32,
    time: u32,
    /// Whether it comes from the announced pages.
    is_announced: bool,
    value: f64,
}

/// The value of a visit now.
enum Worth {
    Value(f64),
    /// It is too early to know; ask again at this time.
    From(u32),
    /// The page is not to be visited.
    Nothing,
}

impl Schedule {
    /// Creates a schedule without pages, which visits no page twice within `min_interval` seconds.
    #[must_use]
    pub fn new(value: Value, min_interval: u32) -> Self {
        Self {
            value,
            min_interval,
            threshold: 1.0,
            highest: 0.0,
            due: BinaryHeap::new(),
            outdated: BinaryHeap::new(),
            base: 0,
            is_queued: Vec::new(),
            announced: BTreeSet::new(),
            owed: 0.0,
            n_decisions: 0,
        }
    }

    /// Returns the value at which pages are visited, in days.
    #[must_use]
    pub fn threshold(&self) -> f64 {
        self.threshold
    }

    /// Sets the threshold.
    #[cfg(test)]
    pub(super) fn set_threshold(&mut self, threshold: f64) {
        self.threshold = threshold;
    }

    /// Returns the number of waiting pages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.due.len() + self.outdated.len()
    }

    /// Returns whether no page is waiting.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of values and times computed so far.
    #[must_use]
    pub fn n_decisions(&self) -> u64 {
        self.n_decisions
    }

    /// Sets the threshold so that pages like these, `n_pages` in all, are visited `per_second`
    /// times per second. The threshold does not exceed the largest current value of a visit to any
    /// of them; otherwise none would be due.
    pub fn calibrate(
        &mut self,
        sample: &[(PageStatistics, &Prior)],
        n_pages: u64,
        per_second: f64,
        now: u32,
    ) {
        let per_day = per_second * DAY;
        if sample.is_empty() || n_pages == 0 || !per_day.is_finite() || per_day <= 0.0 {
            return;
        }
        let posteriors: Vec<(Posterior, f64)> = sample
            .iter()
            .map(|(statistics, prior)| {
                let posterior = Posterior::new(prior, &statistics.history());
                (posterior, statistics.importance())
            })
            .collect();
        let factor = n_pages as f64 / sample.len() as f64;
        let least = f64::from(self.min_interval.max(1)) / DAY;
        let visits = |threshold: f64| -> f64 {
            let each = posteriors
                .iter()
                .map(|(posterior, mu)| 1.0 / self.days(posterior, threshold / mu).max(least));
            each.sum::<f64>() * factor
        };
        let (mut low, mut high) = (LEAST, MOST);
        for _ in 0..40 {
            let middle = (low * high).sqrt();
            match visits(middle) > per_day {
                true => low = middle,
                false => high = middle,
            }
        }
        let worth = posteriors
            .iter()
            .zip(sample)
            .map(|((posterior, mu), (statistics, _))| {
                let days = f64::from(now.saturating_sub(statistics.last)) / DAY;
                mu * posterior.value(self.value, days)
            });
        let most = worth.fold(LEAST, f64::max);
        self.threshold = (low * high).sqrt().min(most);
    }

    /// Returns the days after which a page reaches a value.
    fn days(&self, posterior: &Posterior, value: f64) -> f64 {
        if self.value == Value::Harmonic {
            return posterior.wait(value);
        }
        let (mut low, mut high) = (0.0, 1e5);
        if posterior.value(self.value, high) < value {
            return f64::INFINITY;
        }
        for _ in 0..40 {
            let middle = (low + high) / 2.0;
            match posterior.value(self.value, middle) < value {
                true => low = middle,
                false => high = middle,
            }
        }
        high
    }

    /// Returns the time at which a page is to be visited under the current threshold; none if
    /// never.
    fn time_of(&mut self, page: u32, pages: &impl Pages, now: u32) -> Option<u32> {
        let statistics = pages.statistics(page)?;
        self.n_decisions += 1;
        // A visit in the future comes from a clock that was wrong: the page is due.
        if statistics.last > now {
            return Some(now);
        }
        let posterior = Posterior::new(pages.prior(page), &statistics.history());
        let mu = statistics.importance();
        let days = match pages.signals(page) {
            Some((quality, n)) if self.value == Value::Harmonic => {
                let signals = quality.signals(posterior.rate());
                signals.wait(mu, n, self.threshold)
            }
            _ => self.days(&posterior, self.threshold / mu),
        };
        self.highest = self.highest.max(self.threshold);
        let wait = (days * DAY).min(f64::from(u32::MAX)) as u32;
        Some(statistics.last.saturating_add(wait.max(self.min_interval)))
    }

    /// Adds a page; returns the time of its turn. A page that is already in the schedule keeps its
    /// time.
    pub fn add(&mut self, page: u32, pages: &impl Pages, now: u32) -> Option<u32> {
        let time = self.time_of(page, pages, now)?;
        self.add_at(page, time);
        self.rebase(now);
        Some(time)
    }

    /// Makes room for this many more pages, so that they take no more memory than they need.
    pub fn reserve(&mut self, n_pages: usize) {
        self.due.reserve_exact(n_pages);
    }

    /// Adds a page whose time is known. A page that is already in the schedule keeps its time.
    pub fn add_at(&mut self, page: u32, time: u32) {
        if self.set_queued(page, true) {
            return;
        }
        self.highest = self.highest.max(self.threshold);
        if self.is_empty() {
            self.base = base_at(time);
        }
        // Growing by doubling would take twice the memory.
        if self.due.len() == self.due.capacity() {
            self.due.reserve_exact(self.due.len() / 16 + 64);
        }
        let entry = Entry::new(page, time, self.base);
        self.due.push(Reverse(entry));
    }

    /// Makes entries count from another time, if the present is near the end of what they can hold.
    fn rebase(&mut self, now: u32) {
        let base = base_at(now);
        if self.base.abs_diff(base) <= SPAN / 4 {
            return;
        }
        let before = std::mem::replace(&mut self.base, base);
        for queue in [&mut self.due, &mut self.outdated] {
            let mut entries = std::mem::take(queue).into_vec();
            for Reverse(entry) in &mut entries {
                *entry = Entry::new(entry.page(), entry.time(before), base);
            }
            *queue = entries.into();
        }
    }

    /// Records whether a page is in a queue; returns whether it was.
    fn set_queued(&mut self, page: u32, is_queued: bool) -> bool {
        let (word, bit) = (page as usize / 64, 1 << (page % 64));
        if word >= self.is_queued.len() {
            self.is_queued.resize(word + 1, 0);
        }
        let was_queued = self.is_queued[word] & bit != 0;
        match is_queued {
            true => self.is_queued[word] |= bit,
            false => self.is_queued[word] &= !bit,
        }
        was_queued
    }

    /// Schedules a page again that a signal has announced.
    pub fn announce(&mut self, page: u32, pages: &impl Pages, now: u32) {
        if let Some(time) = self.time_of(page, pages, now) {
            self.announced.insert((time, page));
        }
    }

    /// Removes all pages, so that the owner can add them again.
    pub fn clear(&mut self) {
        self.due.clear();
        self.outdated.clear();
        self.announced.clear();
        self.is_queued.clear();
        self.highest = 0.0;
    }

    /// Returns the pages to visit now, if the budget allows `budget` visits since the last call.
    /// They leave the schedule; their owner adds them again after the visit.
    pub fn tick(&mut self, pages: &impl Pages, now: u32, budget: f64) -> Vec<u32> {
        let budget = match budget.is_finite() {
            true => budget.max(0.0),
            false => 0.0,
        };
        self.rebase(now);
        self.renew(pages, now);
        // An unspent budget is not accumulated for a burst.
        self.owed = (self.owed + budget).min(budget.max(1.0) * 2.0);
        let n = self.owed as usize;
        if n == 0 {
            return Vec::new();
        }
        let mut best = self.candidates(pages, now, n);
        best.sort_by(|a, b| b.value.total_cmp(&a.value).then(a.page.cmp(&b.page)));
        best.dedup_by_key(|candidate| candidate.page);
        let others = best.split_off(n.min(best.len()));
        self.owed -= best.len() as f64;
        if let Some(last) = best.last()
            && best.len() == n
        {
            self.follow(last.value, n);
        }
        for candidate in others {
            self.put_back(candidate, pages, now);
        }
        best.iter().map(|candidate| candidate.page).collect()
    }

    /// Moves the threshold towards the smallest value that was taken, within bounds: it may change
    /// by a factor of e while one page in fifty is visited, however long that takes.
    fn follow(&mut self, value: f64, n_visits: usize) {
        let share = n_visits as f64 / (self.len() + n_visits) as f64;
        let factor = (AGILITY * share).min(1.0).exp();
        let threshold = value.clamp(self.threshold / factor, self.threshold * factor);
        self.threshold = threshold.clamp(LEAST, MOST);
    }

    /// Computes some times again if all are outdated. After the threshold has fallen, pages wait
    /// for times that are too late.
    fn renew(&mut self, pages: &impl Pages, now: u32) {
        if self.outdated.is_empty() && self.threshold < FALLEN * self.highest {
            self.outdated = std::mem::take(&mut self.due);
            self.highest = self.threshold;
        }
        let n = (self.outdated.len() / 64).clamp(64, MAX_RENEWED);
        for _ in 0..n {
            let Some(Reverse(entry)) = self.outdated.pop() else {
                return;
            };
            self.set_queued(entry.page(), false);
            self.add(entry.page(), pages, now);
        }
        // The memory by which one queue grows is released by the other.
        if self.outdated.capacity() > self.outdated.len() + self.outdated.len() / 8 + 64 {
            self.outdated.shrink_to_fit();
        }
    }

    /// Returns pages that may be the most valuable ones: the first of the queue, 1.5 times as many
    /// as are to be visited.
    fn candidates(&mut self, pages: &impl Pages, now: u32, n: usize) -> Vec<DuePage> {
        let enough = n + n.div_ceil(2);
        let mut found = Vec::with_capacity(enough);
        let mut back = Vec::new();
        while found.len() < enough && back.len() < MAX_RESTING {
            let Some(mut candidate) = self.first() else {
                break;
            };
            self.remove(candidate);
            match self.worth(candidate.page, pages, now) {
                Worth::Value(value) => {
                    candidate.value = value;
                    found.push(candidate);
                }
                Worth::From(time) if !candidate.is_announced => back.push((candidate.page, time)),
                Worth::From(_) | Worth::Nothing => {}
            }
        }
        for (page, time) in back {
            self.add_at(page, time);
        }
        self.add_announced(pages, now, 4 * n + MAX_RESTING, &mut found);
        found
    }

    /// Adds all announced pages that are due, however many there are: most of them have changed.
    fn add_announced(
        &mut self,
        pages: &impl Pages,
        now: u32,
        n_most: usize,
        found: &mut Vec<DuePage>,
    ) {
        for _ in 0..n_most {
            let Some(&(time, page)) = self.announced.first().filter(|(time, _)| *time <= now)
            else {
                return;
            };
            self.announced.pop_first();
            if let Worth::Value(value) = self.worth(page, pages, now) {
                found.push(DuePage {
                    page,
                    time,
                    is_announced: true,
                    value,
                });
            }
        }
    }

    /// Returns the page whose turn is first.
    fn first(&self) -> Option<DuePage> {
        let queued = [&self.due, &self.outdated].map(|queue| queue.peek().map(|first| first.0));
        let queued = queued.into_iter().flatten().min();
        let announced = self.announced.first().copied();
        let announced = announced.map(|(time, page)| (Entry::new(page, time, self.base), time));
        let queued = queued.map(|entry| (entry, entry.time(self.base)));
        let is_announced = match (queued, announced) {
            (Some(queued), Some(announced)) => announced.0 < queued.0,
            (None, Some(_)) => true,
            (_, None) => false,
        };
        let (entry, time) = if is_announced { announced } else { queued }?;
        Some(DuePage {
            page: entry.page(),
            time,
            is_announced,
            value: 0.0,
        })
    }

    fn remove(&mut self, first: DuePage) {
        if first.is_announced {
            self.announced.pop_first();
            return;
        }
        let entry = Reverse(Entry::new(first.page, first.time, self.base));
        let is_outdated = self.outdated.peek() == Some(&entry);
        let queue = match is_outdated {
            true => &mut self.outdated,
            false => &mut self.due,
        };
        queue.pop();
        self.set_queued(first.page, false);
    }

    /// Puts back a page that was considered. A page whose time has not come, or that is worth a
    /// visit, keeps its time. Any other page gets a later time under the current threshold.
    fn put_back(&mut self, candidate: DuePage, pages: &impl Pages, now: u32) {
        let DuePage { page, time, .. } = candidate;
        // A page that was visited since it was announced waits in a queue like all others.
        let is_announced = pages.signals(page).is_some_and(|(_, n)| n > 0);
        let time = match time > now || candidate.value >= self.threshold {
            true => Some(time),
            false => self.time_of(page, pages, now).map(|time| time.max(now + 1)),
        };
        match (time, candidate.is_announced) {
            (Some(time), false) => self.add_at(page, time),
            (Some(time), true) if is_announced => {
                self.announced.insert((time, page));
            }
            _ => {}
        }
    }

    /// Returns the value of a visit to a page now.
    fn worth(&mut self, page: u32, pages: &impl Pages, now: u32) -> Worth {
        let Some(statistics) = pages.statistics(page) else {
            return Worth::Nothing;
        };
        // A visit in the future comes from a clock that was wrong: the page is due.
        let Some(seconds) = now.checked_sub(statistics.last) else {
            return Worth::Value(f64::INFINITY);
        };
        let least = self.min_interval.max(1);
        if seconds < least {
            return Worth::From(statistics.last.saturating_add(least));
        }
        self.n_decisions += 1;
        let posterior = Posterior::new(pages.prior(page), &statistics.history());
        let days = f64::from(seconds) / DAY;
        let mu = statistics.importance();
        Worth::Value(match pages.signals(page) {
            Some((quality, n)) if self.value == Value::Harmonic => {
                let signals = quality.signals(posterior.rate());
                signals.harmonic_value(mu, days, n)
            }
            _ => mu * posterior.value(self.value, days),
        })
    }
}

/// The speed at which the threshold follows, relative to the share of pages visited.
const AGILITY: f64 = 50.0;

/// Times are computed again when the threshold is below this fraction of its former value.
const FALLEN: f64 = 0.8;

/// Maximum number of recently visited pages that are skipped at a time.
const MAX_RESTING: usize = 256;

/// Maximum number of times that are computed again at a time, which takes some hundredths of a
/// second.
const MAX_RENEWED: usize = 20_000;

/// Bounds of the threshold, in days: the values of a second and of a few million years.
const LEAST: f64 = 1e-9;
const MOST: f64 = 1e9;
