//! Freshness: which page of a crawl should be visited again now?
//!
//! *Question.* Pages change, at rates that nobody knows, and a crawler can visit only so many a
//! second. Each visit tells whether a page changed since the last one, never how often. Which
//! visits keep the most pages up to date?
//!
//! *Idea.* Changes of a page are taken for a Poisson process. Three numbers of its past suffice
//! ([`History`]): time in intervals without change, time in intervals with one, and the number of
//! these. A [`Posterior`] over 48 rates follows from them and a [`Prior`], which is learned from
//! all pages of the crawl. A closed formula, the *crawl value* ([`Value`]), says how much a visit
//! is worth after some time; the largest goes first. No solver allocates the budget: a [`Schedule`]
//! visits a page when its value reaches a threshold, and moves the threshold until the budget is
//! spent.
//!
//! Two mistakes make such a scheduler worse than visiting all pages in turn. Plugging an estimated
//! rate into a bounded value gives up on pages that changed twice in a row, and never learns
//! better. So values are averaged over the posterior, and the default value is unbounded in time.
//! And pages whose bytes change with every request take the whole budget: only changes of content
//! count, which is for the caller to decide.
//!
//! *Papers.* Cho & Garcia-Molina 2003; Kolobov et al. 2019; Azar et al. 2018; Busa-Fekete et al.
//! 2025 for the values with signals. *Cost.* 24 bytes per page; a decision takes about a
//! microsecond. *Error.* Changes of real pages come in bursts; the replay in `bench/freshness`
//! measures what remains of the optimum. *Not for* pages whose rate changes with the season:
//! histories do not forget.
//!
//! Times are in days, rates per day.

mod exponential;
mod optimum;
mod rates;
mod schedule;
mod signals;
#[cfg(test)]
mod tests;
mod value;

pub use optimum::{Allocation, Demand, capped, fixed_intervals, random_visits};
pub use rates::{N_RATES, Posterior, Prior, RATES, map_rate};
pub use schedule::{Pages, Schedule, Stats};
pub use signals::{Evidence, Quality, Signals};
pub use value::Value;

/// What visits have told about a page.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct History {
    /// Days in intervals at whose end the page was the same.
    pub unchanged: f32,
    /// Days in intervals at whose end it was another.
    pub changed: f32,
    /// The number of the latter.
    pub n_changes: f32,
}

impl History {
    /// Takes down what a visit found, `days` after the one before. Intervals that are negative or
    /// not finite, as clocks that were set produce them, say nothing.
    pub fn note(&mut self, days: f64, is_changed: bool) {
        if !days.is_finite() || days < 0.0 {
            return;
        }
        match is_changed {
            true => {
                self.changed += days as f32;
                self.n_changes += 1.0;
            }
            false => self.unchanged += days as f32,
        }
    }

    /// Lets the past count for less: by a half if `days` have gone by and are the half-life.
    pub fn fade(&mut self, days: f64, half_life: f64) {
        let factor = (-days.max(0.0) / half_life).exp2() as f32;
        self.unchanged *= factor;
        self.changed *= factor;
        self.n_changes *= factor;
    }
}
