//! Sites and their budgets.

use arose::digest::digest64;

use super::quality::Standing;
use crate::settings::Budget;

/// A site's number.
pub(crate) type SiteId = u32;

/// What one owner has registered.
#[derive(Debug)]
pub(crate) struct Site {
    /// Of its name.
    pub(crate) hash: u64,
    pub(crate) n_hosts: u32,
    /// Pages asked for.
    pub(crate) n_pages: u64,
    /// Other sites that link here; no more than matter for the budget.
    pub(crate) n_referrers: u64,
    /// What its pages were like.
    pub(crate) standing: Standing,
}

impl Site {
    pub(crate) fn new(hash: u64) -> Self {
        Self {
            hash,
            n_hosts: 0,
            n_pages: 0,
            n_referrers: 0,
            standing: Standing::default(),
        }
    }

    /// Pages that it may have, after budgets were doubled `epoch` times.
    pub(crate) fn allowance(&self, budget: &Budget, epoch: u32) -> u64 {
        let by_referrers = budget.pages_per_referrer.saturating_mul(self.n_referrers);
        let pages = budget.pages.max(1).saturating_add(by_referrers);
        let doubled = pages.checked_mul(1_u64.checked_shl(epoch).unwrap_or(0));
        doubled
            .filter(|&pages| pages > 0)
            .unwrap_or(u64::MAX)
            .min(budget.max_pages)
    }
}

/// What stands for the name of a site.
pub(crate) fn hash(name: &str) -> u64 {
    digest64(name.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allowances_grow_up_to_the_most() {
        let budget = Budget {
            max_pages: 100,
            pages: 10,
            pages_per_referrer: 5,
            max_hosts: 1,
        };
        let mut site = Site::new(0);
        assert_eq!(site.allowance(&budget, 0), 10);
        assert_eq!(site.allowance(&budget, 2), 40);
        site.n_referrers = 2;
        assert_eq!(site.allowance(&budget, 0), 20);
        assert_eq!(site.allowance(&budget, 3), 100);
        assert_eq!(site.allowance(&budget, 64), 100);
    }
}
