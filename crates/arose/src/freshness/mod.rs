//! Freshness: decides which pages of a crawl to visit again, and when.
//!
//! *Question.* Pages change at unknown rates, and a crawler can visit only a limited number of
//! pages per second. Each visit shows whether a page changed since the last one, but not how often.
//! Which visits keep the most pages up to date?
//!
//! *Idea.* Model the changes of a page as a Poisson process. Three numbers about its past suffice
//! ([`History`]): the time in intervals without a change, the time in intervals with a change, and
//! the number of the latter. A [`Posterior`] over 48 rates follows from them and a [`Prior`], which
//! is learned from all pages of the crawl. A closed formula, the *crawl value* ([`Value`]), gives
//! the value of a visit after some time. The page with the largest value goes first. No solver is
//! needed to allocate the budget: a [`Schedule`] visits a page when its value reaches a threshold,
//! and moves the threshold until the budget is spent.
//!
//! Two mistakes make such a scheduler worse than visiting all pages in turn. First, a bounded value
//! with an estimated rate gives up on pages that changed twice in a row, and never corrects that.
//! So values are averaged over the posterior, and the default value is unbounded in time. Second,
//! pages whose bytes change with every request take the whole budget. So only changes of content
//! count, which the caller must detect.
//!
//! *Papers.* Cho & Garcia-Molina 2003; Kolobov et al. 2019; Azar et al. 2018; Busa-Fekete et al.
//! 2025 for the values with signals. *Cost.* 23 bytes per page; a decision takes about a
//! microsecond. *Error.* Changes of real pages come in bursts; the replay in `bench/freshness`
//! measures how close the result is to the optimum. *Not for* pages whose rate changes with the
//! season: histories do not forget.
//!
//! Times are in days, rates per day.

mod entry;
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
pub use schedule::{PageStatistics, Pages, Schedule};
pub use signals::{PolicyResult, Quality, SignalRates};
pub use value::Value;

/// The results of the visits to a page.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct History {
    /// Days in intervals at whose end the page was unchanged.
    pub unchanged: f32,
    /// Days in intervals at whose end the page had changed.
    pub changed: f32,
    /// The number of intervals with a change.
    pub n_changes: f32,
}

impl History {
    /// Records the result of a visit, `days` after the previous one. Intervals that are negative or
    /// not finite, which occur if a clock is set, are ignored.
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

    /// Reduces the weight of the past: by half if `days` is the half-life.
    pub fn fade(&mut self, days: f64, half_life: f64) {
        let factor = (-days.max(0.0) / half_life).exp2() as f32;
        self.unchanged *= factor;
        self.changed *= factor;
        self.n_changes *= factor;
    }
}
