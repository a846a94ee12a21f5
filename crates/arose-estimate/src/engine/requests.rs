//! The request budget of a study.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Progress;
use crate::Error;

/// The number of requests sent so far, and the maximum.
///
/// Every request is taken from this budget before it is sent. The budget thus limits requests, not
/// queries: one query may need several pages of results, and each of these several tries.
#[derive(Debug)]
pub struct Requests {
    budget: u64,
    progress: Arc<Progress>,
}

impl Requests {
    /// A budget of at most `budget` requests.
    #[must_use]
    pub fn new(budget: u64) -> Self {
        Self {
            budget,
            progress: Arc::default(),
        }
    }

    /// Takes one request from the budget.
    ///
    /// # Errors
    ///
    /// If the budget is spent.
    pub fn take(&self) -> Result<(), Error> {
        // Only one thread sends requests; others only read the count.
        if self.n_left() == 0 {
            return Err(self.spent());
        }
        self.spend(1);
        Ok(())
    }

    /// Number of requests left.
    pub(super) fn n_left(&self) -> u64 {
        let n_requests = self.progress.n_requests.load(Ordering::Relaxed);
        self.budget.saturating_sub(n_requests)
    }

    /// Counts requests that were sent.
    pub(super) fn spend(&self, n: u64) {
        self.progress.n_requests.fetch_add(n, Ordering::Relaxed);
    }

    /// The error for a spent budget.
    pub(super) fn spent(&self) -> Error {
        let budget = self.budget;
        Error::Budget { budget }
    }

    /// The progress, for another thread.
    pub(super) fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }
}
