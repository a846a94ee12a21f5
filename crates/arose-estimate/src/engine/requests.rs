//! The request budget of a study.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Progress;
use crate::Error;

/// Requests sent so far, and how many are allowed.
///
/// Every request is taken from here before it is sent, so a budget limits requests and not queries:
/// one query may need several pages of results, and each of these several tries.
#[derive(Debug)]
pub struct Requests {
    budget: u64,
    progress: Arc<Progress>,
}

impl Requests {
    /// At most `budget` requests.
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
    /// When the budget is spent.
    pub fn take(&self) -> Result<(), Error> {
        // One thread sends requests; others only look.
        if self.n_left() == 0 {
            return Err(self.spent());
        }
        self.spend(1);
        Ok(())
    }

    /// How many more may be sent.
    pub(super) fn n_left(&self) -> u64 {
        let n_requests = self.progress.n_requests.load(Ordering::Relaxed);
        self.budget.saturating_sub(n_requests)
    }

    /// Counts requests that were sent.
    pub(super) fn spend(&self, n: u64) {
        self.progress.n_requests.fetch_add(n, Ordering::Relaxed);
    }

    /// The error of a budget that is spent.
    pub(super) fn spent(&self) -> Error {
        let budget = self.budget;
        Error::Budget { budget }
    }

    /// What another thread may watch.
    pub(super) fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }
}
