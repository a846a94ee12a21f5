//! Wishes: the URLs to fetch for learning, with the reason for each, in bounded memory.

use std::collections::{BTreeMap, VecDeque};

use super::memory::Table;
use super::rule::PartRule;
use super::standing::{Canonical, RuleId};

/// A request that is under way for learning, as it is stored from one run to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Errand {
    /// A URL without the part that a rule is about.
    Probe {
        /// The URL.
        url: String,
        /// The scope of the rule.
        scope: String,
        /// The rule.
        rule: PartRule,
    },
    /// A deferred URL that is fetched nevertheless.
    Audit {
        /// The URL.
        url: String,
    },
    /// An audited URL whose content is to be compared with that of its canonical form, or for which
    /// the wrong rule is searched.
    Compare {
        /// The URL.
        url: String,
        /// Its content.
        content: u64,
    },
}

/// A failed audit, for which the wrong rule must be found.
#[derive(Debug, Clone)]
pub(super) struct Blame {
    /// The key of its errand.
    pub(super) errand: u64,
    pub(super) content: u64,
    pub(super) rules: Vec<RuleId>,
    pub(super) n_open: usize,
    pub(super) is_settled: bool,
}

/// The reason why a URL is requested.
#[derive(Debug, Clone)]
pub(super) enum Wish {
    Probe(RuleId),
    Audit(Canonical),
    /// The canonical form, to be compared with an audited content.
    Compare {
        content: u64,
        url: String,
        rules: Vec<RuleId>,
    },
    Blame(u64, RuleId),
}

/// Maximum number of open wishes.
const MAX_WISHES: usize = 20_000;

/// Wishes by URL, of which the oldest are replaced first, and the failed audits.
#[derive(Debug, Clone, Default)]
pub(super) struct Wishes {
    by_url: Table<Vec<Wish>>,
    n: usize,
    /// URLs in the order of their wishes; some are already granted.
    order: VecDeque<u64>,
    blames: BTreeMap<u64, Blame>,
    n_blames: u64,
    /// Errands that have changed.
    news: Vec<(u64, Option<Errand>)>,
}

impl Wishes {
    /// Returns whether there is a wish for a URL.
    pub(super) fn has(&self, key: u64) -> bool {
        self.by_url.contains_key(&key)
    }

    /// Removes and returns the wishes for a URL, which are granted.
    pub(super) fn take(&mut self, key: u64) -> Vec<Wish> {
        let wishes = self.by_url.remove(&key).unwrap_or_default();
        self.n -= wishes.len();
        wishes
    }

    /// Adds a wish; returns one that it replaces, with the hash of its URL.
    pub(super) fn push(&mut self, key: u64, wish: Wish) -> Option<(u64, Wish)> {
        let mut old = None;
        while self.n >= MAX_WISHES && old.is_none() {
            old = self.pop();
        }
        // URLs whose wishes are granted must not fill the queue.
        if self.order.len() >= 2 * MAX_WISHES {
            let by_url = &self.by_url;
            self.order.retain(|key| by_url.contains_key(key));
        }
        self.n += 1;
        self.order.push_back(key);
        self.by_url.entry(key).or_default().push(wish);
        old
    }

    fn pop(&mut self) -> Option<(u64, Wish)> {
        let key = self.order.pop_front()?;
        let wishes = self.by_url.get_mut(&key)?;
        let wish = wishes.remove(0);
        if wishes.is_empty() {
            self.by_url.remove(&key);
        }
        self.n -= 1;
        Some((key, wish))
    }

    /// Records a failed audit; returns its number.
    pub(super) fn begin_blame(&mut self, blame: Blame) -> u64 {
        self.n_blames += 1;
        self.blames.insert(self.n_blames, blame);
        self.n_blames
    }

    pub(super) fn blame(&mut self, number: u64) -> Option<&mut Blame> {
        self.blames.get_mut(&number)
    }

    pub(super) fn end_blame(&mut self, number: u64) -> Option<Blame> {
        self.blames.remove(&number)
    }

    /// Records that an errand is under way, or that it is done.
    pub(super) fn note(&mut self, key: u64, errand: Option<Errand>) {
        if self.news.len() < MAX_WISHES {
            self.news.push((key, errand));
        }
    }

    /// Returns the errands that were begun and ended since the last call.
    pub(super) fn take_news(&mut self) -> Vec<(u64, Option<Errand>)> {
        std::mem::take(&mut self.news)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory is bounded, however many URLs are requested and whether they are fetched or not.
    #[test]
    fn the_oldest_wishes_give_way() {
        let mut wishes = Wishes::default();
        let mut n_old = 0;
        for key in 0..100_000_u64 {
            let old = wishes.push(key, Wish::Probe(key as RuleId));
            if let Some((_, Wish::Probe(id))) = old {
                n_old += 1;
                assert!(!wishes.has(id.into()));
            }
            if key % 3 == 0 {
                assert_eq!(wishes.take(key).len(), 1);
            }
            assert!(wishes.n <= MAX_WISHES && wishes.order.len() <= 2 * MAX_WISHES);
        }
        assert!(n_old > 40_000, "{n_old}");
        assert!(wishes.has(99_998) && !wishes.has(99_999));
    }
}
