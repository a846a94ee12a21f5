//! Policies: which pages to visit next, within a budget.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use anyhow::{Result, bail};
use arose::freshness::{History, PageStatistics, Pages, Posterior, Prior, Schedule, Value};

use crate::histories::Page;

/// All policies, in the order of the table.
pub const POLICIES: [&str; 8] = [
    "round robin",
    "Nutch's rule",
    "proportional",
    "estimate + binary",
    "prior + binary",
    "prior + harmonic",
    "largest harmonic value",
    "hindsight rates",
];

/// Chooses pages. Times are in days.
pub trait Policy {
    /// A page was fetched for the first time.
    fn add(&mut self, page: u32, now: f64);

    /// A page is gone.
    fn remove(&mut self, page: u32);

    /// The pages to visit now; `budget` is how many on average.
    fn step(&mut self, now: f64, budget: f64) -> Vec<u32>;

    /// What a visit found, so many days after the one before.
    fn visited(&mut self, page: u32, now: f64, days: f64, is_changed: bool);
}

/// The policy of this name, for a budget of a visit in `every` days.
pub fn new(name: &str, pages: &[Page], every: f64, half_life: f64) -> Result<Box<dyn Policy>> {
    let n = pages.len();
    Ok(match name {
        "round robin" => Box::new(RoundRobin {
            queue: VecDeque::new(),
            gone: vec![false; n],
            owed: 0.0,
        }),
        "Nutch's rule" => Box::new(Nutch {
            intervals: vec![every.min(365.0); n],
            due: BinaryHeap::new(),
            gone: vec![false; n],
            owed: 0.0,
        }),
        "proportional" => Box::new(Largest::new(n, |page, t| page.rate() * t)),
        "estimate + binary" => Box::new(Largest::new(n, |page, t| {
            Value::Binary.of(1.0, page.rate(), t)
        })),
        "hindsight rates" => {
            let end = pages
                .iter()
                .flat_map(|page| page.changes.last())
                .fold(0.0_f64, |a, b| a.max(*b));
            let mut policy = Largest::new(n, |page, t| Value::Harmonic.of(1.0, page.known, t));
            for (known, page) in policy.pages.iter_mut().zip(pages) {
                let days = (page.deleted.min(end) - page.created).max(1.0);
                // A page without changes still has a rate; half a change is the usual guess.
                known.known = (page.changes.len() as f64).max(0.5) / days;
            }
            Box::new(policy)
        }
        "prior + binary" => Box::new(Learned::new(Value::Binary, n, every, half_life)),
        "prior + harmonic" => Box::new(Learned::new(Value::Harmonic, n, every, half_life)),
        "largest harmonic value" => Box::new(Greedy::new(n)),
        _ => bail!("no policy `{name}`"),
    })
}

/// Whole visits that a budget pays for; the rest is carried over.
fn whole(owed: &mut f64, budget: f64) -> usize {
    *owed += budget;
    let n = *owed as usize;
    *owed -= n as f64;
    n
}

/// Every page in turn.
struct RoundRobin {
    queue: VecDeque<u32>,
    gone: Vec<bool>,
    owed: f64,
}

impl Policy for RoundRobin {
    fn add(&mut self, page: u32, _: f64) {
        self.queue.push_back(page);
    }

    fn remove(&mut self, page: u32) {
        self.gone[page as usize] = true;
    }

    fn step(&mut self, _: f64, budget: f64) -> Vec<u32> {
        let mut chosen = Vec::new();
        let n = whole(&mut self.owed, budget);
        while chosen.len() < n
            && let Some(page) = self.queue.pop_front()
        {
            if !self.gone[page as usize] {
                chosen.push(page);
            }
        }
        chosen
    }

    fn visited(&mut self, page: u32, _: f64, _: f64, _: bool) {
        self.queue.push_back(page);
    }
}

/// Intervals grow by 0.4 if a page is the same and shrink by 0.2 if not; the earliest due first.
struct Nutch {
    intervals: Vec<f64>,
    due: BinaryHeap<Reverse<(u64, u32)>>,
    gone: Vec<bool>,
    owed: f64,
}

impl Nutch {
    fn push(&mut self, page: u32, now: f64) {
        let due = (now + self.intervals[page as usize]) * 86_400.0;
        self.due.push(Reverse((due as u64, page)));
    }
}

impl Policy for Nutch {
    fn add(&mut self, page: u32, now: f64) {
        self.push(page, now);
    }

    fn remove(&mut self, page: u32) {
        self.gone[page as usize] = true;
    }

    fn step(&mut self, _: f64, budget: f64) -> Vec<u32> {
        let mut chosen = Vec::new();
        let n = whole(&mut self.owed, budget);
        while chosen.len() < n
            && let Some(Reverse((_, page))) = self.due.pop()
        {
            if !self.gone[page as usize] {
                chosen.push(page);
            }
        }
        chosen
    }

    fn visited(&mut self, page: u32, now: f64, _: f64, is_changed: bool) {
        let factor = if is_changed { 0.8 } else { 1.4 };
        let interval = &mut self.intervals[page as usize];
        *interval = (*interval * factor).clamp(60.0 / 86_400.0, 365.0);
        self.push(page, now);
    }
}

/// What a policy without a prior keeps of a page.
#[derive(Clone, Default)]
struct Counted {
    is_live: bool,
    last: f64,
    n_visits: f64,
    n_changed: f64,
    days: f64,
    /// The rate known in hindsight.
    known: f64,
}

impl Counted {
    /// The bias-reduced estimate of Cho and Garcia-Molina for the mean interval.
    fn rate(&self) -> f64 {
        if self.n_visits == 0.0 {
            return 0.01;
        }
        let interval = (self.days / self.n_visits).max(0.01);
        let rate =
            -((self.n_visits - self.n_changed + 0.5) / (self.n_visits + 0.5)).ln() / interval;
        rate.max(1e-4)
    }
}

/// The pages with the largest values, which are computed for every page at every step.
struct Largest {
    pages: Vec<Counted>,
    value: fn(&Counted, f64) -> f64,
    owed: f64,
}

impl Largest {
    fn new(n: usize, value: fn(&Counted, f64) -> f64) -> Self {
        Self {
            pages: vec![Counted::default(); n],
            value,
            owed: 0.0,
        }
    }
}

impl Policy for Largest {
    fn add(&mut self, page: u32, now: f64) {
        let page = &mut self.pages[page as usize];
        (page.is_live, page.last) = (true, now);
    }

    fn remove(&mut self, page: u32) {
        self.pages[page as usize].is_live = false;
    }

    fn step(&mut self, now: f64, budget: f64) -> Vec<u32> {
        let n = whole(&mut self.owed, budget);
        let live = (0..).zip(&self.pages).filter(|(_, page)| page.is_live);
        let mut values: Vec<(f64, u32)> = live
            .map(|(number, page)| ((self.value)(page, now - page.last), number))
            .collect();
        take_largest(&mut values, n)
    }

    fn visited(&mut self, page: u32, now: f64, days: f64, is_changed: bool) {
        let page = &mut self.pages[page as usize];
        page.last = now;
        page.days += days;
        page.n_visits += 1.0;
        page.n_changed += f64::from(u8::from(is_changed));
    }
}

/// The product's schedule with a prior that is learned daily.
struct Learned {
    known: Known,
    schedule: Schedule,
    every: f64,
    half_life: f64,
    learned: f64,
    is_calibrated: bool,
}

struct Known {
    statistics: Vec<Option<PageStatistics>>,
    prior: Prior,
}

impl Pages for Known {
    fn statistics(&self, page: u32) -> Option<PageStatistics> {
        self.statistics[page as usize]
    }

    fn prior(&self, _: u32) -> &Prior {
        &self.prior
    }
}

/// Pages that a prior is learned from.
const SAMPLE: usize = 4096;

/// Rounds of expectation maximization a day.
const ROUNDS: usize = 10;

impl Learned {
    fn new(value: Value, n: usize, every: f64, half_life: f64) -> Self {
        Self {
            known: Known {
                statistics: vec![None; n],
                prior: Prior::default(),
            },
            schedule: Schedule::new(value, 3600),
            every,
            half_life,
            learned: f64::NEG_INFINITY,
            is_calibrated: false,
        }
    }

    fn learn(&mut self, now: u32) {
        let statistics: Vec<PageStatistics> =
            self.known.statistics.iter().flatten().copied().collect();
        let stride = statistics.len().div_ceil(SAMPLE).max(1);
        let sample = statistics.iter().step_by(stride);
        let histories: Vec<History> = sample.clone().map(PageStatistics::history).collect();
        self.known.prior = self.known.prior.learned(&histories, ROUNDS);
        if !self.is_calibrated && !statistics.is_empty() {
            let sample: Vec<(PageStatistics, &Prior)> = sample
                .take(500)
                .map(|statistics| (*statistics, &self.known.prior))
                .collect();
            let per_second = statistics.len() as f64 / (self.every * 86_400.0);
            self.schedule
                .calibrate(&sample, statistics.len() as u64, per_second, now);
            self.is_calibrated = true;
            let pages = 0..self.known.statistics.len() as u32;
            self.schedule.clear();
            for page in pages {
                self.schedule.add(page, &self.known, now);
            }
        }
    }
}

fn seconds(days: f64) -> u32 {
    (days * 86_400.0) as u32
}

impl Policy for Learned {
    fn add(&mut self, page: u32, now: f64) {
        self.known.statistics[page as usize] = Some(PageStatistics::new(seconds(now), 1.0));
        self.schedule.add(page, &self.known, seconds(now));
    }

    fn remove(&mut self, page: u32) {
        self.known.statistics[page as usize] = None;
    }

    fn step(&mut self, now: f64, budget: f64) -> Vec<u32> {
        if now - self.learned >= 1.0 {
            self.learned = now;
            self.learn(seconds(now));
        }
        let mut chosen = self.schedule.tick(&self.known, seconds(now), budget);
        chosen.retain(|page| self.known.statistics[*page as usize].is_some());
        chosen
    }

    fn visited(&mut self, page: u32, now: f64, days: f64, is_changed: bool) {
        let statistics = self.known.statistics[page as usize]
            .as_mut()
            .expect("only live pages are visited");
        if self.half_life > 0.0 {
            let mut history = statistics.history();
            history.fade(days, self.half_life);
            *statistics = statistics.with_history(history);
        }
        statistics.visit(seconds(now), is_changed);
        self.schedule.add(page, &self.known, seconds(now));
    }
}

/// What the schedule approximates: the value of every page at every step, and the largest ones.
struct Greedy {
    statistics: Vec<Option<PageStatistics>>,
    posteriors: Vec<Option<Posterior>>,
    prior: Prior,
    learned: f64,
    owed: f64,
}

impl Greedy {
    fn new(n: usize) -> Self {
        Self {
            statistics: vec![None; n],
            posteriors: vec![None; n],
            prior: Prior::default(),
            learned: f64::NEG_INFINITY,
            owed: 0.0,
        }
    }

    fn learn(&mut self) {
        let histories: Vec<History> = self
            .statistics
            .iter()
            .flatten()
            .map(PageStatistics::history)
            .collect();
        self.prior = self.prior.learned(&histories, ROUNDS);
        for page in 0..self.statistics.len() {
            self.judge(page);
        }
    }

    fn judge(&mut self, page: usize) {
        let history = self.statistics[page].map(|statistics| statistics.history());
        self.posteriors[page] = history.map(|history| Posterior::new(&self.prior, &history));
    }
}

impl Policy for Greedy {
    fn add(&mut self, page: u32, now: f64) {
        self.statistics[page as usize] = Some(PageStatistics::new(seconds(now), 1.0));
        self.judge(page as usize);
    }

    fn remove(&mut self, page: u32) {
        self.statistics[page as usize] = None;
        self.posteriors[page as usize] = None;
    }

    fn step(&mut self, now: f64, budget: f64) -> Vec<u32> {
        if now - self.learned >= 1.0 {
            self.learned = now;
            self.learn();
        }
        let n = whole(&mut self.owed, budget);
        let pages = self.statistics.iter().zip(&self.posteriors);
        let mut values: Vec<(f64, u32)> = (0..)
            .zip(pages)
            .filter_map(|(page, (statistics, posterior))| {
                let days = now - f64::from((*statistics)?.last) / 86_400.0;
                Some((posterior.as_ref()?.value(Value::Harmonic, days), page))
            })
            .collect();
        take_largest(&mut values, n)
    }

    fn visited(&mut self, page: u32, now: f64, _: f64, is_changed: bool) {
        if let Some(statistics) = &mut self.statistics[page as usize] {
            statistics.visit(seconds(now), is_changed);
        }
        self.judge(page as usize);
    }
}

/// The pages with the largest values, so many.
fn take_largest(values: &mut Vec<(f64, u32)>, n: usize) -> Vec<u32> {
    let n = n.min(values.len());
    if n == 0 {
        return Vec::new();
    }
    values.select_nth_unstable_by(n - 1, |a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    values[..n].iter().map(|(_, page)| *page).collect()
}
