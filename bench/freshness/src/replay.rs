//! The replay: time goes by in steps, a policy visits pages, and freshness is measured exactly.

use arose::mix::mix;

use crate::histories::Page;
use crate::policies::Policy;

/// The share of the time, at its beginning, that is not measured.
const WARM: f64 = 0.25;

/// How a replay goes.
#[derive(Clone, Copy)]
pub struct Pace {
    /// Mean days between two visits of a page.
    pub every: f64,
    /// Days of a step, within which time does not pass.
    pub step: f64,
    /// Draws when the pages of the beginning were visited last, within `every` days before it;
    /// without it all were visited at the beginning.
    pub seed: Option<u64>,
}

pub struct Replayed {
    /// The share of pages up to date, on average over time.
    pub fresh: f64,
    /// The same, looked at once per step, when its visits are made.
    pub fresh_after_visits: f64,
    /// The most days between two visits.
    pub longest_gap: f64,
}

/// What the replay knows of a page that the policy does not.
struct State {
    last: f64,
    /// The first change that no visit has found.
    next: usize,
}

/// Visits every page once in `every` days on average. Pages are visited when they are created, and
/// leave when they are deleted.
pub fn replay(pages: &[Page], pace: Pace, policy: &mut dyn Policy) -> Replayed {
    let Pace { every, step, seed } = pace;
    let start = pages
        .iter()
        .map(|page| page.created)
        .fold(f64::INFINITY, f64::min);
    let end = pages
        .iter()
        .flat_map(|page| page.changes.last())
        .fold(start, |a, b| a.max(*b));
    let measured = start + WARM * (end - start);
    let mut states: Vec<State> = pages
        .iter()
        .zip(0..)
        .map(|(page, number)| State {
            last: match seed {
                Some(seed) if page.created <= start => start - every * unit(seed, number),
                _ => page.created,
            },
            next: 0,
        })
        .collect();
    // Pages of the beginning come in the order of their last visits, which a seed draws.
    let mut order: Vec<u32> = (0..pages.len() as u32).collect();
    order.sort_by(|a, b| {
        let last = |page: &u32| states[*page as usize].last;
        last(a).total_cmp(&last(b))
    });
    let mut order = order.into_iter().peekable();
    let (mut n_fresh, mut n_looked) = (0_u64, 0_u64);
    let mut live: Vec<u32> = Vec::new();
    let (mut fresh, mut total, mut longest_gap) = (0.0, 0.0, 0.0_f64);
    let mut now = start;
    while now < end {
        while let Some(page) = order.next_if(|page| pages[*page as usize].created <= now) {
            live.push(page);
            policy.add(page, states[page as usize].last);
        }
        live.retain(|page| {
            let is_live = pages[*page as usize].deleted > now;
            if !is_live {
                policy.remove(*page);
            }
            is_live
        });
        for page in policy.step(now, live.len() as f64 * step / every) {
            let (state, page_of) = (&mut states[page as usize], &pages[page as usize]);
            let is_changed = page_of
                .changes
                .get(state.next)
                .is_some_and(|time| *time <= now);
            fresh += fresh_days(page_of, state, now, measured);
            total += days(state.last, now, measured);
            longest_gap = longest_gap.max(now - state.last);
            state.next += page_of.changes[state.next..].partition_point(|time| *time <= now);
            policy.visited(page, now, now - state.last, is_changed);
            state.last = now;
        }
        if now >= measured {
            n_looked += live.len() as u64;
            let is_fresh = |page: &&u32| {
                let (page, state) = (&pages[**page as usize], &states[**page as usize]);
                let next = page.changes.get(state.next);
                next.is_none_or(|time| *time > now)
            };
            n_fresh += live.iter().filter(is_fresh).count() as u64;
        }
        now += step;
    }
    for (page, state) in pages.iter().zip(&states) {
        let until = end.min(page.deleted).max(state.last);
        fresh += fresh_days(page, state, until, measured);
        total += days(state.last, until, measured);
    }
    Replayed {
        fresh: fresh / total,
        fresh_after_visits: n_fresh as f64 / n_looked as f64,
        longest_gap,
    }
}

/// A number between 0 and 1.
fn unit(seed: u64, number: u64) -> f64 {
    (mix(seed << 32 ^ number) >> 11) as f64 / (1_u64 << 53) as f64
}

/// Days between two times, as far as they are measured.
fn days(from: f64, to: f64, measured: f64) -> f64 {
    (to.max(measured) - from.max(measured)).max(0.0)
}

/// Days since the last visit until the page changed, as far as they are measured.
fn fresh_days(page: &Page, state: &State, now: f64, measured: f64) -> f64 {
    let changed = page
        .changes
        .get(state.next)
        .copied()
        .unwrap_or(f64::INFINITY);
    days(state.last, changed.min(now), measured)
}
