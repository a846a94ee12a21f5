//! The replay: time goes by in steps, a policy visits pages, and freshness is measured exactly.

use crate::histories::Page;
use crate::policies::Policy;

/// Days of a step.
pub const STEP: f64 = 0.25;

/// The share of the time, at its beginning, that is not measured.
const WARM: f64 = 0.25;

pub struct Replayed {
    /// The share of pages up to date, on average over time.
    pub fresh: f64,
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
pub fn replay(pages: &[Page], every: f64, policy: &mut dyn Policy) -> Replayed {
    let start = pages
        .iter()
        .map(|page| page.created)
        .fold(f64::INFINITY, f64::min);
    let end = pages
        .iter()
        .flat_map(|page| page.changes.last())
        .fold(start, |a, b| a.max(*b));
    let measured = start + WARM * (end - start);
    let mut order: Vec<u32> = (0..pages.len() as u32).collect();
    order.sort_by(|a, b| {
        pages[*a as usize]
            .created
            .total_cmp(&pages[*b as usize].created)
    });
    let mut order = order.into_iter().peekable();
    let mut states: Vec<State> = pages
        .iter()
        .map(|page| State {
            last: page.created,
            next: 0,
        })
        .collect();
    let mut live: Vec<u32> = Vec::new();
    let (mut fresh, mut total, mut longest_gap) = (0.0, 0.0, 0.0_f64);
    let mut now = start;
    while now < end {
        while let Some(page) = order.next_if(|page| pages[*page as usize].created <= now) {
            live.push(page);
            policy.add(page, pages[page as usize].created);
        }
        live.retain(|page| {
            let is_live = pages[*page as usize].deleted > now;
            if !is_live {
                policy.remove(*page);
            }
            is_live
        });
        for page in policy.step(now, live.len() as f64 * STEP / every) {
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
        now += STEP;
    }
    for (page, state) in pages.iter().zip(&states) {
        let until = end.min(page.deleted).max(state.last);
        fresh += fresh_days(page, state, until, measured);
        total += days(state.last, until, measured);
    }
    Replayed {
        fresh: fresh / total,
        longest_gap,
    }
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
