//! The summary of a run: `summary.json`.
//!
//! Only what is shown to people is read; fields that later versions add are skipped.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use arose::token::Case;
use arose_corpus::html::Mode;
use arose_corpus::{Config, Statuses};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::Error;
use super::quality::QualityCounts;
use crate::IncompleteFile;
use crate::source::path_in;

/// The numbers of a run.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Summary {
    /// Of the program that made it.
    pub version: String,
    /// As they were named.
    pub inputs: Vec<String>,
    /// The working directory of the run, as seen from the output directory.
    #[serde(default, rename = "directory")]
    pub from_out: Option<String>,
    /// Kept as they are: each policy has its own.
    pub settings: Map<String, Value>,
    /// How many of what.
    pub counts: Counts,
    /// Estimated recall.
    #[serde(default)]
    pub recall: Recall,
    /// What was omitted because a key was too common.
    #[serde(default)]
    pub cap: Cap,
    /// Input files that could not be read completely; the first of them.
    #[serde(default)]
    pub incomplete_files: Vec<IncompleteFile>,
    /// Files in directories whose format is unknown, by extension.
    #[serde(default)]
    pub unknown_files: BTreeMap<String, u64>,
    /// Documents by the rules of quality that they fail, where it was measured.
    #[serde(default)]
    pub quality: Option<QualityCounts>,
    /// What was done, in order.
    #[serde(default)]
    pub stages: Vec<Stage>,
    /// Peak memory.
    pub peak_memory_bytes: Option<u64>,
}

/// How many of what.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Counts {
    /// Documents read: those kept and those dropped.
    pub read: u64,
    /// Documents that stay.
    pub kept: u64,
    /// Documents equal to one that stays.
    pub dropped_exact: u64,
    /// Documents similar to one that stays.
    pub dropped_near: u64,
    /// Dropped because they were already in an index.
    #[serde(default)]
    pub dropped_known: u64,
    /// Empty documents, dropped on request.
    #[serde(default)]
    pub dropped_empty: u64,
    /// Documents that a filter of quality rejected.
    #[serde(default)]
    pub dropped_filtered: u64,
    /// Versions of pages that were fetched again later.
    #[serde(default)]
    pub dropped_superseded: u64,
    /// Documents without text and images.
    pub empty: u64,
    /// Documents under two shingles.
    pub short: u64,
    /// Records whose text is null. They are skipped, and stay in the kept output.
    #[serde(default)]
    pub null_text: u64,
    /// Input files that could not be read completely.
    #[serde(default)]
    pub incomplete_files: u64,
    /// Records that could not be read.
    #[serde(default)]
    pub damaged_records: u64,
    /// Records that did not become documents.
    pub skipped: Skipped,
    /// Bytes of text.
    pub text_bytes: u64,
    /// Pairs that were compared.
    pub candidates: u64,
    /// Pairs listed.
    pub pairs: u64,
    /// Kept documents for which others were dropped.
    pub clusters: u64,
    /// Documents of the largest cluster.
    pub largest_cluster: u64,
    /// Groups of kept documents that are versions of the same content.
    #[serde(default)]
    pub version_groups: u64,
    /// Kept documents in them.
    #[serde(default)]
    pub versions: u64,
}

impl Counts {
    /// Documents that do not stay.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        let copies = self.dropped_exact.saturating_add(self.dropped_near);
        let others = self.dropped_known.saturating_add(self.dropped_empty);
        let others = others.saturating_add(self.dropped_filtered);
        let others = others.saturating_add(self.dropped_superseded);
        copies.saturating_add(others)
    }

    fn add_up(&self) -> bool {
        let reasons = self.skipped.by_reason.values();
        let skipped = reasons.fold(0_u64, |sum, &n| sum.saturating_add(n));
        self.kept.saturating_add(self.dropped()) == self.read && skipped == self.skipped.total
    }
}

/// Records that did not become documents.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Skipped {
    /// All of them.
    pub total: u64,
    /// How many for each reason.
    pub by_reason: BTreeMap<String, u64>,
}

/// Estimated recall.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Recall {
    /// By the mathematics of the settings.
    #[serde(default)]
    pub promised: Vec<Promise>,
    /// By the pairs that were found.
    pub estimated: Option<f64>,
}

/// With what probability a pair of a similarity becomes a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct Promise {
    /// Of the pair.
    pub similarity: f64,
    /// That it becomes a candidate.
    pub probability: f64,
}

/// What was omitted because a key was too common.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Cap {
    /// Keys that too many documents share.
    pub runs: u64,
    /// Documents under them.
    pub documents: u64,
    /// Pairs that were not compared for that.
    pub pairs_not_compared: u64,
}

/// One step of the run.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Stage {
    /// Of the stage.
    pub name: String,
    /// How long it took.
    pub seconds: f64,
    /// How many records it dealt with.
    #[serde(default)]
    pub records: u64,
}

impl Summary {
    /// Reads the file and checks that its counts add up.
    ///
    /// # Errors
    ///
    /// If it does not exist, or is not the summary of a run.
    pub fn open(path: &Path) -> Result<Self, Error> {
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
            false => Err(Error::damaged(path, "inconsistent counts")),
        }
    }

    /// The directory at which relative sources start, for the run in `out`. Without a record it is
    /// the working directory.
    #[must_use]
    pub fn directory(&self, out: &Path) -> PathBuf {
        let Some(from_out) = &self.from_out else {
            return PathBuf::new();
        };
        // Symbolic links are resolved first: `..` leads to the parent of what they lead to.
        let out = out.canonicalize().unwrap_or_else(|_| out.to_owned());
        let directory = path_in(&out, from_out);
        directory.canonicalize().unwrap_or(directory)
    }

    /// The file that the table of the run in `out` calls `source`.
    #[must_use]
    pub fn source(&self, out: &Path, source: &str) -> PathBuf {
        path_in(&self.directory(out), source)
    }

    /// The seed of random choices.
    #[must_use]
    pub fn seed(&self) -> u64 {
        let seed = self.settings.get("seed").and_then(Value::as_u64);
        seed.unwrap_or(0)
    }

    /// Tokens per shingle.
    #[must_use]
    pub fn shingle_length(&self) -> NonZeroUsize {
        let w = self.settings.get("w").and_then(Value::as_u64);
        let w = w.and_then(|w| NonZeroUsize::new(usize::try_from(w).ok()?));
        w.unwrap_or(arose::shingle::DEFAULT_W)
    }

    /// How letters were compared.
    #[must_use]
    pub fn case(&self) -> Case {
        match self.settings.get("case").and_then(Value::as_str) {
            Some("keep") => Case::Keep,
            _ => Case::Fold,
        }
    }

    /// How the input was read, so that it can be read again.
    #[must_use]
    pub fn reading(&self) -> Config {
        let mut config = Config::default();
        let text = |name: &str| self.settings.get(name).and_then(Value::as_str);
        config.html.mode = match text("mode") {
            Some("visible") => Mode::Visible,
            Some("content") => Mode::Content,
            Some("plain") => Mode::Plain,
            _ => Mode::Henzinger,
        };
        config.statuses = match text("statuses") {
            Some("success") => Statuses::Success,
            _ => Statuses::Any,
        };
        let lists = self.settings.get("fields").and_then(Value::as_object);
        let list = |name: &str| -> Option<Vec<String>> {
            let names = lists?.get(name)?.as_array()?.iter();
            names.map(|name| Some(name.as_str()?.to_owned())).collect()
        };
        let fields = &mut config.fields;
        let slots = [
            ("text", &mut fields.text),
            ("html", &mut fields.html),
            ("id", &mut fields.id),
            ("url", &mut fields.url),
            ("title", &mut fields.title),
            ("language", &mut fields.language),
            ("fetched", &mut fields.fetched),
        ];
        for (name, slot) in slots {
            *slot = list(name).unwrap_or_else(|| std::mem::take(slot));
        }
        config
    }
}

/// Numbers of files by kind in words, the most frequent kind first: `.py 12, .rst 3`.
#[must_use]
pub fn kinds(files: &BTreeMap<String, u64>) -> String {
    let mut kinds: Vec<(&String, &u64)> = files.iter().collect();
    kinds.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
    let kinds = kinds.iter().map(|(kind, n)| format!("{kind} {n}"));
    kinds.collect::<Vec<_>>().join(", ")
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
