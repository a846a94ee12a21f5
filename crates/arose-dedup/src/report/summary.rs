//! What a run says about itself: `summary.json`.
//!
//! Only what the report shows is read; fields that later versions add are passed over.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::Error;

/// A run in figures.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub(super) struct Summary {
    pub(super) version: String,
    pub(super) inputs: Vec<String>,
    /// Kept as they are: each policy has its own.
    pub(super) settings: Map<String, Value>,
    pub(super) counts: Counts,
    #[serde(default)]
    pub(super) recall: Recall,
    #[serde(default)]
    pub(super) cap: Cap,
    #[serde(default)]
    pub(super) stages: Vec<Stage>,
    pub(super) peak_memory_bytes: Option<u64>,
}

/// How many of what.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub(super) struct Counts {
    pub(super) read: u64,
    pub(super) kept: u64,
    pub(super) dropped_exact: u64,
    pub(super) dropped_near: u64,
    /// What an index held already.
    #[serde(default)]
    pub(super) dropped_known: u64,
    pub(super) empty: u64,
    pub(super) short: u64,
    pub(super) skipped: Skipped,
    pub(super) text_bytes: u64,
    pub(super) candidates: u64,
    pub(super) pairs: u64,
    pub(super) clusters: u64,
    pub(super) largest_cluster: u64,
}

impl Counts {
    pub(super) fn dropped(&self) -> u64 {
        let copies = self.dropped_exact.saturating_add(self.dropped_near);
        copies.saturating_add(self.dropped_known)
    }

    fn add_up(&self) -> bool {
        let reasons = self.skipped.by_reason.values();
        let skipped = reasons.fold(0_u64, |sum, &n| sum.saturating_add(n));
        self.kept.saturating_add(self.dropped()) == self.read && skipped == self.skipped.total
    }
}

/// Records that did not become documents.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub(super) struct Skipped {
    pub(super) total: u64,
    pub(super) by_reason: BTreeMap<String, u64>,
}

/// How much of what there is was found.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub(super) struct Recall {
    /// By the mathematics of the settings.
    #[serde(default)]
    pub(super) promised: Vec<Promise>,
    /// By the pairs that were found.
    pub(super) estimated: Option<f64>,
}

/// With what probability a pair of a similarity becomes a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub(super) struct Promise {
    pub(super) similarity: f64,
    pub(super) probability: f64,
}

/// What was left out because a key was too common.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub(super) struct Cap {
    pub(super) runs: u64,
    pub(super) documents: u64,
    pub(super) pairs_not_compared: u64,
}

/// One step of the run.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Stage {
    pub(super) name: String,
    pub(super) seconds: f64,
    #[serde(default)]
    pub(super) records: u64,
}

impl Summary {
    /// Reads the file and checks that its counts add up.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let bytes = std::fs::read(path).map_err(|source| Error::Io {
            what: "cannot read",
            path: path.to_owned(),
            source,
        })?;
        let summary: Self = serde_json::from_slice(&bytes).map_err(|source| Error::Summary {
            path: path.to_owned(),
            source,
        })?;
        match summary.counts.add_up() {
            true => Ok(summary),
            false => Err(Error::damaged(path, "its counts do not add up")),
        }
    }

    /// What choices are drawn with.
    pub(super) fn seed(&self) -> u64 {
        let seed = self.settings.get("seed").and_then(Value::as_u64);
        seed.unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(counts: &str, expected: bool) {
        let counts: Counts = serde_json::from_str(counts).unwrap();
        assert_eq!(counts.add_up(), expected);
    }

    #[test]
    fn counts_add_up_or_not() {
        let counts = |kept: u64, skipped: u64| {
            format!(
                r#"{{"read": 9, "kept": {kept}, "dropped_exact": 1, "dropped_near": 2, "empty": 0,
                "short": 0, "skipped": {{"total": {skipped}, "by_reason": {{"x": 1, "y": 2}}}},
                "text_bytes": 0, "candidates": 0, "pairs": 0, "clusters": 0, "largest_cluster": 0,
                "new": 1}}"#
            )
        };
        check(&counts(6, 3), true);
        check(&counts(7, 3), false);
        check(&counts(6, 4), false);
        check(&counts(u64::MAX, 3), false);
    }
}
