//! The schedule: pages in the order of the time at which a visit becomes worth it.
//!
//! The naive way computes the value of every page at every moment and takes the largest. Instead
//! there is a threshold: the time at which a page will reach it is known in advance, so pages wait
//! in a queue ordered by that time. If more pages are ready than the budget pays for, the threshold
//! rises. If there are fewer, the next pages are visited before their time, and it falls. A page
//! that comes up is looked at again: the threshold may have moved since, and then it goes back.
//!
//! *Cost.* 8 bytes per page here and 16 for its [`Stats`], which the caller keeps; about 1.4
//! decisions per visit. Politeness needs nothing more: a page of a busy host waits, and its value
//! grows.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

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
    /// Pages that have reached the threshold.
    ready: VecDeque<u32>,
    /// Visits that the budget has paid for and that were not made.
    owed: f64,
    n_decisions: u64,
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
            ready: VecDeque::new(),
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

    /// Pages that wait, ready or not.
    #[must_use]
    pub fn len(&self) -> usize {
        self.due.len() + self.ready.len()
    }

    /// Whether no page waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Pages that could be visited now.
    #[must_use]
    pub fn n_ready(&self) -> usize {
        self.ready.len()
    }

    /// Times that were computed so far.
    #[must_use]
    pub fn n_decisions(&self) -> u64 {
        self.n_decisions
    }

    /// When the first page that is not ready is looked at again.
    #[must_use]
    pub fn next_due(&self) -> Option<u32> {
        self.due.peek().map(|Reverse(entry)| (entry >> 32) as u32)
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

    /// Adds a page; returns when it will come up.
    pub fn add(&mut self, page: u32, pages: &impl Pages, now: u32) -> Option<u32> {
        let time = self.time_of(page, pages, now)?;
        self.add_at(page, time);
        Some(time)
    }

    /// Adds a page whose time is known.
    pub fn add_at(&mut self, page: u32, time: u32) {
        self.highest = self.highest.max(self.threshold);
        // Growing by doubling would take the memory of as many pages again.
        if self.due.len() == self.due.capacity() {
            self.due.reserve_exact(self.due.len() / 16 + 64);
        }
        self.due.push(Reverse(entry(page, time)));
    }

    /// Removes all pages, so that the owner can add them again.
    pub fn clear(&mut self) {
        self.due.clear();
        self.ready.clear();
    }

    /// The pages to be visited now, if the budget pays for so many visits since this was asked
    /// last. They leave the schedule; their owner adds them again when they were visited.
    pub fn tick(&mut self, pages: &impl Pages, now: u32, budget: f64) -> Vec<u32> {
        let budget = match budget.is_finite() {
            true => budget.max(0.0),
            false => 0.0,
        };
        if self.threshold < 0.5 * self.highest {
            self.rebuild(pages, now);
        }
        self.fill(pages, now, budget);
        if self.ready.len() as f64 > 6.0 * budget {
            self.threshold = (self.threshold * 1.01).min(MOST);
        }
        // What could not be spent is not saved up for a burst.
        self.owed = (self.owed + budget).min(budget.max(1.0) * 2.0);
        let n = (self.owed as usize).min(self.ready.len());
        self.owed -= n as f64;
        self.ready.drain(..n).collect()
    }

    /// Computes all times again. Where the threshold has fallen, pages wait for times that are too
    /// late, and behind others that were added since.
    fn rebuild(&mut self, pages: &impl Pages, now: u32) {
        self.highest = 0.0;
        for Reverse(entry) in std::mem::take(&mut self.due) {
            let page = entry as u32;
            if let Some(time) = self.time_of(page, pages, now) {
                self.add_at(page, time);
            }
        }
    }

    /// Makes pages ready, as many as some ticks pay for: those whose time has come. If these are
    /// few, the threshold is too high; then those that come next are visited before their time, and
    /// the threshold falls, though not below what they are worth.
    fn fill(&mut self, pages: &impl Pages, now: u32, budget: f64) {
        let most = (8.0 * budget).ceil() as usize + 1;
        let least = (2.0 * budget).ceil() as usize;
        let mut back = Vec::new();
        let mut n_early = least + 4;
        let mut lowest = f64::INFINITY;
        for _ in 0..4 * most + 16 {
            let Some(Reverse(entry)) = self.due.peek().filter(|_| self.ready.len() < most) else {
                break;
            };
            let (page, time) = (*entry as u32, (entry >> 32) as u32);
            let is_early = time > now;
            if is_early && (self.ready.len() >= least || n_early == 0) {
                break;
            }
            n_early -= usize::from(is_early);
            self.due.pop();
            match self.time_of(page, pages, now) {
                Some(time) if time <= now => self.ready.push_back(page),
                Some(time) => match self.worth(page, pages, now).filter(|_| is_early) {
                    Some(worth) => {
                        lowest = lowest.min(worth);
                        self.ready.push_back(page);
                    }
                    None => back.push((page, time)),
                },
                None => {}
            }
        }
        if lowest.is_finite() {
            self.threshold = (self.threshold * 0.95)
                .max(lowest.min(self.threshold))
                .max(LEAST);
        }
        for (page, time) in back {
            self.add_at(page, time);
        }
    }

    /// What a visit is worth now; nothing if the last one was a moment ago.
    fn worth(&self, page: u32, pages: &impl Pages, now: u32) -> Option<f64> {
        let stats = pages.stats(page)?;
        let seconds = now.checked_sub(stats.last)?;
        if seconds < self.min_interval.max(1) {
            return None;
        }
        let posterior = Posterior::new(pages.prior(page), &stats.history());
        let days = f64::from(seconds) / DAY;
        let mu = stats.importance();
        Some(match pages.signals(page) {
            Some((quality, n)) if self.value == Value::Harmonic => {
                let signals = quality.signals(posterior.rate());
                signals.harmonic_value(mu, days, n)
            }
            _ => mu * posterior.value(self.value, days),
        })
    }
}

/// Bounds of the threshold, in days: what a second and a few million years are worth.
const LEAST: f64 = 1e-9;
const MOST: f64 = 1e9;

fn entry(page: u32, time: u32) -> u64 {
    u64::from(time) << 32 | u64::from(page)
}
