//! A schedule of many pages: its memory, and what a visit costs.

use std::time::Instant;

use anyhow::{Context, Result};
use arose::freshness::{PageStatistics, Pages, Prior, Schedule, Value};
use arose::mix::mix;

struct Known {
    statistics: Vec<PageStatistics>,
    prior: Prior,
}

impl Pages for Known {
    fn statistics(&self, page: u32) -> Option<PageStatistics> {
        self.statistics.get(page as usize).copied()
    }

    fn prior(&self, _: u32) -> &Prior {
        &self.prior
    }
}

/// Days between two visits of a page.
const EVERY: f64 = 30.0;

/// Ticks of a second that are measured.
const TICKS: u32 = 3600;

pub fn run(n_pages: u32) -> Result<()> {
    let before = resident()?;
    let now = 1_000_000_000;
    let mut known = Known {
        statistics: Vec::with_capacity(n_pages as usize),
        prior: Prior::default(),
    };
    for page in 0..n_pages {
        let random = mix(page.into());
        let age = (random % (EVERY as u64 * 86_400)) as u32;
        let mut statistics =
            PageStatistics::new(now - age - 5_000_000, 0.2 + (random >> 50) as f64 / 4096.0);
        statistics.visit(now - age, random >> 40 & 7 == 0);
        known.statistics.push(statistics);
    }
    let per_second = f64::from(n_pages) / (EVERY * 86_400.0);
    let mut schedule = Schedule::new(Value::Harmonic, 3600);
    let sample: Vec<(PageStatistics, &Prior)> = known
        .statistics
        .iter()
        .step_by((n_pages as usize / 500).max(1))
        .map(|statistics| (*statistics, &known.prior))
        .collect();
    schedule.calibrate(&sample, n_pages.into(), per_second, now);
    drop(sample);
    let start = Instant::now();
    for page in 0..n_pages {
        schedule.add(page, &known, now);
    }
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{n_pages} pages: {:.0} decisions per second, {:.1} bytes per page",
        f64::from(n_pages) / seconds,
        (resident()? - before) as f64 / f64::from(n_pages)
    );
    let (start, decided) = (Instant::now(), schedule.n_decisions());
    let (mut n_visits, mut longest) = (0, 0.0_f64);
    for tick in 1..=TICKS {
        let begun = Instant::now();
        let visits = schedule.tick(&known, now + tick, per_second);
        n_visits += visits.len();
        for page in visits {
            known.statistics[page as usize].visit(now + tick, page % 8 == 0);
            schedule.add(page, &known, now + tick);
        }
        longest = longest.max(begun.elapsed().as_secs_f64());
    }
    let n_decisions = schedule.n_decisions() - decided;
    println!(
        "{TICKS} ticks: {n_visits} visits of {:.0} paid for, {:.1} decisions per visit, {:.3} s, \
         longest tick {:.1} ms, {:.1} bytes per page",
        per_second * f64::from(TICKS),
        n_decisions as f64 / n_visits.max(1) as f64,
        start.elapsed().as_secs_f64(),
        longest * 1000.0,
        (resident()? - before) as f64 / f64::from(n_pages)
    );
    Ok(())
}

/// Bytes of memory in use.
fn resident() -> Result<u64> {
    let text = std::fs::read_to_string("/proc/self/statm")?;
    let pages = text.split(' ').nth(1).context("no resident pages")?;
    Ok(pages.parse::<u64>()? * 4096)
}
