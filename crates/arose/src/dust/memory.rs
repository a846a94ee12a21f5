//! Recent values and frequent values, in bounded memory.

use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasherDefault;

use crate::mix::mix;

/// A hasher for keys that are already hashes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Scatter(u64);

impl std::hash::Hasher for Scatter {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = mix(self.0 ^ u64::from(byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = mix(self.0 ^ value);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

pub(super) type Table<V> = HashMap<u64, V, BuildHasherDefault<Scatter>>;

/// A map that discards entries that were not used for a long time. It has between one and two times
/// `capacity` entries. It also lists new entries, which the caller must take from time to time.
#[derive(Debug, Clone)]
pub(super) struct Recent<V> {
    young: Table<V>,
    old: Table<V>,
    capacity: usize,
    news: Vec<(u64, V)>,
}

/// Maximum number of listed new entries; further ones are not listed.
const MAX_NEWS: usize = 1 << 16;

impl<V: Copy + PartialEq> Recent<V> {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            young: Table::default(),
            old: Table::default(),
            capacity: capacity.max(1),
            news: Vec::new(),
        }
    }

    pub(super) fn get(&self, key: u64) -> Option<V> {
        self.young.get(&key).or_else(|| self.old.get(&key)).copied()
    }

    pub(super) fn insert(&mut self, key: u64, value: V) {
        if self.young.len() >= self.capacity {
            self.old = std::mem::take(&mut self.young);
        }
        if self.young.insert(key, value) != Some(value) && self.news.len() < MAX_NEWS {
            self.news.push((key, value));
        }
    }

    /// Returns the new entries since the last call.
    pub(super) fn take_news(&mut self) -> Vec<(u64, V)> {
        std::mem::take(&mut self.news)
    }

    pub(super) fn remove(&mut self, key: u64) -> Option<V> {
        let old = self.old.remove(&key);
        self.young.remove(&key).or(old)
    }
}

/// Counts the most frequent values of a stream (Metwally et al. 2005).
#[derive(Debug, Clone, Default)]
pub(super) struct Frequent {
    counts: BTreeMap<u64, u32>,
    n: u32,
}

impl Frequent {
    /// Returns the number of values noted.
    pub(super) fn n(&self) -> u32 {
        self.n
    }

    /// Number of values that are counted.
    const CAPACITY: usize = 16;

    pub(super) fn note(&mut self, key: u64) {
        self.n = self.n.saturating_add(1);
        if let Some(count) = self.counts.get_mut(&key) {
            *count += 1;
            return;
        }
        let mut count = 1;
        if self.counts.len() >= Self::CAPACITY
            && let Some((&least, &n)) = self.counts.iter().min_by_key(|&(_, n)| n)
        {
            self.counts.remove(&least);
            count = n + 1;
        }
        self.counts.insert(key, count);
    }

    /// Returns whether this value makes up more than a tenth of at least twenty values.
    pub(super) fn is_too_common(&self, key: u64) -> bool {
        let count = self.counts.get(&key).copied().unwrap_or_default();
        self.n >= 20 && u64::from(count) * 10 > u64::from(self.n) && count > 2
    }
}
