//! The schedule: pages in the order of the time at which a visit becomes worth it.
//!
//! The naive way computes the value of every page at every moment and takes the largest. Instead
//! there is a threshold: the time at which a page will reach it is known in advance, so pages wait
//! in a queue ordered by that time. At every moment the first few of the queue are compared, the
//! most valuable ones are visited, and the threshold follows the least value that was taken: it
//! rises if more pages are due than the budget pays for, and falls if there are fewer. Times that
//! were computed with another threshold are good enough to order pages by; where it has fallen by a
//! tenth, all of them are computed again, a few at a time.
//!
//! *Cost.* 8 bytes and a bit per page here and 16 for its [`Stats`], which the caller keeps; about
//! 3 decisions per visit. Politeness needs nothing more: a page of a busy host waits, and its value
//! grows.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use super::{History, Posterior, Prior, Quality, Value};

/// Seconds of a day.
const DAY: f64 = 86_400.0;

/// Changes that are counted before the past is halved, so that it fits.
const MAX_CHANGES: f32 = 8_000.0;

/// What a schedule knows of a page, in 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Stats {
    /// When it was visited last, in seconds of the caller's clock.
    pub last: u32,
    unchanged: f32,
    changed: f32,
    /// Changes, in eighths.
    n_changes: u16,
    /// The importance, in logarithms to the base 2 with 10 digits behind the point.
    weight: u16,
}

impl Stats {
    /// A page visited once, of this importance.
    #[must_use]
    pub fn new(last: u32, mu: f64) -> Self {
        let mut stats = Self {
            last,
            ..Self::default()
        };
        stats.set_importance(mu);
        stats
    }

    /// With a past.
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

    /// What visits have told.
    #[must_use]
    pub fn history(&self) -> History {
        History {
            unchanged: self.unchanged,
            changed: self.changed,
            n_changes: f32::from(self.n_changes) / 8.0,
        }
    }

    /// The importance.
    #[must_use]
    pub fn importance(&self) -> f64 {
        ((f64::from(self.weight) - 32_768.0) / 1024.0).exp2()
    }

    /// Sets the importance, kept within 2^-32 and 2^32 and to 0.04 %.
    pub fn set_importance(&mut self, mu: f64) {
        let log = (mu.max(1e-9).log2() * 1024.0).round() + 32_768.0;
        self.weight = log.clamp(0.0, 65_535.0) as u16;
    }

    /// Takes down a visit. A clock that was set back makes no interval.
    pub fn visit(&mut self, now: u32, is_changed: bool) {
        let days = f64::from(now.saturating_sub(self.last)) / DAY;
        let mut history = self.history();
        history.note(days, is_changed);
        *self = self.with_history(history);
        self.last = now;
    }
}

/// The pages of a schedule, as their owner keeps them.
pub trait Pages {
    /// What is known of a page; nothing if it is not to be visited.
    fn stats(&self, page: u32) -> Option<Stats>;

    /// The prior that holds for it.
    fn prior(&self, page: u32) -> &Prior;

    /// How good the signals of its site are and how many came since the last visit, if its site has
    /// any.
    fn signals(&self, _page: u32) -> Option<(Quality, u32)> {
        None
    }
}

/// Says which pages are to be visited.
#[derive(Debug, Clone)]
pub struct Schedule {
    value: Value,
    min_interval: u32,
    threshold: f64,
    /// The highest threshold that a time in the queue was computed with.
    highest: f64,
    /// Times and pages in one number, the time first.
    due: BinaryHeap<Reverse<u64>>,
    /// Those whose times are being computed again.
    outdated: BinaryHeap<Reverse<u64>>,
    /// Which pages are in one of these queues.
    is_queued: Vec<u64>,
    /// Pages that were announced to have changed, with earlier times than those in the queues.
    announced: BTreeSet<(u32, u32)>,
    /// Visits that the budget has paid for and that were not made.
    owed: f64,
    n_decisions: u64,
}

/// A page whose turn may have come.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    page: u32,
    time: u32,
    /// Whether it comes from the announced ones.
    is_announced: bool,
    value: f64,
}

/// What a visit would be worth now.
enum Worth {
    Value(f64),
    /// It is too early to say.
    From(u32),
    /// The page is not to be visited.
    Nothing,
}

impl Schedule {
    /// One without pages, which visits none twice within so many seconds.
    #[must_use]
    pub fn new(value: Value, min_interval: u32) -> Self {
        Self {
            value,
            min_interval,
            threshold: 1.0,
            highest: 0.0,
            due: BinaryHeap::new(),
            outdated: BinaryHeap::new(),
            is_queued: Vec::new(),
            announced: BTreeSet::new(),
            owed: 0.0,
            n_decisions: 0,
        }
    }

    /// The value at which pages are visited, in days.
    #[must_use]
    pub fn threshold(&self) -> f64 {
        self.threshold
    }

    /// Sets the threshold, as an earlier run left it. One that is no positive number is ignored.
    pub fn set_threshold(&mut self, threshold: f64) {
        if threshold.is_finite() && threshold > 0.0 {
            self.threshold = threshold.clamp(LEAST, MOST);
        }
    }

    /// Pages that wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.due.len() + self.outdated.len()
    }

    /// Whether no page waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Values and times that were computed so far.
    #[must_use]
    pub fn n_decisions(&self) -> u64 {
        self.n_decisions
    }

    /// Sets the threshold so that pages like these, `n_pages` in all, are visited `per_second`
    /// times a second; not above what a visit of any of them is worth now, or none would be due.
    pub fn calibrate(
        &mut self,
        sample: &[(Stats, &Prior)],
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
            .map(|(stats, prior)| {
                let posterior = Posterior::new(prior, &stats.history());
                (posterior, stats.importance())
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
            .map(|((posterior, mu), (stats, _))| {
                let days = f64::from(now.saturating_sub(stats.last)) / DAY;
                mu * posterior.value(self.value, days)
            });
        let most = worth.fold(LEAST, f64::max);
        self.threshold = (low * high).sqrt().min(most);
    }

    /// The days after which a page reaches a value.
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

    /// When a page is to be visited by the present threshold; none if never.
    pub fn time_of(&mut self, page: u32, pages: &impl Pages, now: u32) -> Option<u32> {
        let stats = pages.stats(page)?;
        self.n_decisions += 1;
        // A visit in the future is one of a clock that was wrong: the page is due.
        if stats.last > now {
            return Some(now);
        }
        let posterior = Posterior::new(pages.prior(page), &stats.history());
        let mu = stats.importance();
        let days = match pages.signals(page) {
            Some((quality, n)) if self.value == Value::Harmonic => {
                let signals = quality.signals(posterior.rate());
                signals.wait(mu, n, self.threshold)
            }
            _ => self.days(&posterior, self.threshold / mu),
        };
        self.highest = self.highest.max(self.threshold);
        let wait = (days * DAY).min(f64::from(u32::MAX)) as u32;
        Some(stats.last.saturating_add(wait.max(self.min_interval)))
    }

    /// Adds a page; returns when it will come up. One that is there stays where it is.
    pub fn add(&mut self, page: u32, pages: &impl Pages, now: u32) -> Option<u32> {
        let time = self.time_of(page, pages, now)?;
        self.add_at(page, time);
        Some(time)
    }

    /// Adds a page whose time is known. One that is there stays where it is.
    pub fn add_at(&mut self, page: u32, time: u32) {
        if self.set_queued(page, true) {
            return;
        }
        self.highest = self.highest.max(self.threshold);
        // Growing by doubling would take the memory of as many pages again.
        if self.due.len() == self.due.capacity() {
            self.due.reserve_exact(self.due.len() / 16 + 64);
        }
        self.due.push(Reverse(entry(page, time)));
    }

    /// Takes down whether a page is in a queue; returns whether it was.
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

    /// Looks at a page again that a signal has announced.
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

    /// The pages to be visited now, if the budget pays for so many visits since this was asked
    /// last. They leave the schedule; their owner adds them again when they were visited.
    pub fn tick(&mut self, pages: &impl Pages, now: u32, budget: f64) -> Vec<u32> {
        let budget = match budget.is_finite() {
            true => budget.max(0.0),
            false => 0.0,
        };
        self.renew(pages, now);
        // What could not be spent is not saved up for a burst.
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

    /// Moves the threshold towards the least value that was taken, within bounds: it may change by
    /// a factor of e while one page in fifty is visited, however long that takes.
    fn follow(&mut self, value: f64, n_visits: usize) {
        let share = n_visits as f64 / (self.len() + n_visits) as f64;
        let factor = (AGILITY * share).min(1.0).exp();
        let threshold = value.clamp(self.threshold / factor, self.threshold * factor);
        self.threshold = threshold.clamp(LEAST, MOST);
    }

    /// Computes some times again if all are to be. Where the threshold has fallen, pages wait for
    /// times that are too late.
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
            self.set_queued(entry as u32, false);
            self.add(entry as u32, pages, now);
        }
        // What one queue grows by the other one gives back.
        if self.outdated.capacity() > self.outdated.len() + self.outdated.len() / 8 + 64 {
            self.outdated.shrink_to_fit();
        }
    }

    /// Pages that may be the most valuable ones: the first of the queue, half as many again as are
    /// to be visited.
    fn candidates(&mut self, pages: &impl Pages, now: u32, n: usize) -> Vec<Candidate> {
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

    /// Adds pages that were announced and are due, however long the queue is: most of them have
    /// changed.
    fn add_announced(
        &mut self,
        pages: &impl Pages,
        now: u32,
        n_most: usize,
        found: &mut Vec<Candidate>,
    ) {
        for _ in 0..n_most {
            let Some(&(time, page)) = self.announced.first().filter(|(time, _)| *time <= now)
            else {
                return;
            };
            self.announced.pop_first();
            if let Worth::Value(value) = self.worth(page, pages, now) {
                found.push(Candidate {
                    page,
                    time,
                    is_announced: true,
                    value,
                });
            }
        }
    }

    /// The page that comes up first.
    fn first(&self) -> Option<Candidate> {
        let queued = [&self.due, &self.outdated].map(|queue| queue.peek().map(|first| first.0));
        let queued = queued.into_iter().flatten().min();
        let announced = self.announced.first().copied();
        let announced = announced.map(|(time, page)| entry(page, time));
        let entry = queued.into_iter().chain(announced).min()?;
        Some(Candidate {
            page: entry as u32,
            time: (entry >> 32) as u32,
            is_announced: queued != Some(entry),
            value: 0.0,
        })
    }

    fn remove(&mut self, first: Candidate) {
        if first.is_announced {
            self.announced.pop_first();
            return;
        }
        let entry = Reverse(entry(first.page, first.time));
        let is_outdated = self.outdated.peek() == Some(&entry);
        let queue = match is_outdated {
            true => &mut self.outdated,
            false => &mut self.due,
        };
        queue.pop();
        self.set_queued(first.page, false);
    }

    /// Has a page wait on that was looked at. One that comes next keeps its time, one that is worth
    /// a visit comes up again at once, and another has a later time by the present threshold.
    fn put_back(&mut self, candidate: Candidate, pages: &impl Pages, now: u32) {
        let Candidate { page, time, .. } = candidate;
        // One that was visited since it was announced waits in a queue like all others.
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

    /// What a visit is worth now.
    fn worth(&mut self, page: u32, pages: &impl Pages, now: u32) -> Worth {
        let Some(stats) = pages.stats(page) else {
            return Worth::Nothing;
        };
        // A visit in the future is one of a clock that was wrong: the page is due.
        let Some(seconds) = now.checked_sub(stats.last) else {
            return Worth::Value(f64::INFINITY);
        };
        let least = self.min_interval.max(1);
        if seconds < least {
            return Worth::From(stats.last.saturating_add(least));
        }
        self.n_decisions += 1;
        let posterior = Posterior::new(pages.prior(page), &stats.history());
        let days = f64::from(seconds) / DAY;
        let mu = stats.importance();
        Worth::Value(match pages.signals(page) {
            Some((quality, n)) if self.value == Value::Harmonic => {
                let signals = quality.signals(posterior.rate());
                signals.harmonic_value(mu, days, n)
            }
            _ => mu * posterior.value(self.value, days),
        })
    }
}

/// How fast the threshold follows, by the share of pages visited.
const AGILITY: f64 = 50.0;

/// Times are computed again when the threshold is below this part of what it was.
const FALLEN: f64 = 0.8;

/// Pages that were visited a moment ago and are passed over in one go, at most.
const MAX_RESTING: usize = 256;

/// Times that are computed again in one go, at most: some hundredths of a second.
const MAX_RENEWED: usize = 20_000;

/// Bounds of the threshold, in days: what a second and a few million years are worth.
const LEAST: f64 = 1e-9;
const MOST: f64 = 1e9;

fn entry(page: u32, time: u32) -> u64 {
    u64::from(time) << 32 | u64::from(page)
}
