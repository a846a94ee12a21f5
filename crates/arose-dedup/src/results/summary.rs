//! The summary of a run: `summary.json`.
//!
//! Only the fields that are shown to people are read; fields of later versions are skipped.

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
    /// The version of the program that made the run.
    pub version: String,
    /// The inputs as passed by the user.
    pub inputs: Vec<String>,
    /// The working directory of the run, relative to the output directory.
    #[serde(default, rename = "directory")]
    pub from_out: Option<String>,
    /// The settings, unchanged, because each policy has its own.
    pub settings: Map<String, Value>,
    /// Counts of documents, records and pairs.
    pub counts: Counts,
    /// Estimated recall.
    #[serde(default)]
    pub recall: Recall,
    /// Pairs that were not compared because a key was too common.
    #[serde(default)]
    pub cap: Cap,
    /// The first input files that could not be read completely.
    #[serde(default)]
    pub incomplete_files: Vec<IncompleteFile>,
    /// Number of files in directories whose format is unknown, by extension.
    #[serde(default)]
    pub unknown_files: BTreeMap<String, u64>,
    /// Number of documents by the quality rules that they fail, if quality was measured.
    #[serde(default)]
    pub quality: Option<QualityCounts>,
    /// The stages, in order.
    #[serde(default)]
    pub stages: Vec<Stage>,
    /// Peak memory in bytes.
    pub peak_memory_bytes: Option<u64>,
}

/// Counts of documents, records and pairs.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Counts {
    /// Documents read: the sum of kept and dropped ones.
    pub read: u64,
    /// Kept documents.
    pub kept: u64,
    /// Exact duplicates of kept documents.
    pub dropped_exact: u64,
    /// Near duplicates of kept documents.
    pub dropped_near: u64,
    /// Documents dropped because they were already in an index.
    #[serde(default)]
    pub dropped_known: u64,
    /// Empty documents, dropped on request.
    #[serde(default)]
    pub dropped_empty: u64,
    /// Documents that a quality filter rejected.
    #[serde(default)]
    pub dropped_filtered: u64,
    /// Versions of pages that were fetched again later.
    #[serde(default)]
    pub dropped_superseded: u64,
    /// Documents without text and images.
    pub empty: u64,
    /// Documents shorter than two shingles.
    pub short: u64,
    /// Records whose text is null. They are skipped, and are part of the kept output.
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
    /// Candidate pairs that were compared.
    pub candidates: u64,
    /// Listed pairs.
    pub pairs: u64,
    /// Clusters of at least two documents.
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
    /// Returns the number of dropped documents.
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
    /// Number of all skipped records.
    pub total: u64,
    /// Their number by reason.
    pub by_reason: BTreeMap<String, u64>,
}

/// Estimated recall.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Recall {
    /// Computed from the settings.
    #[serde(default)]
    pub promised: Vec<Promise>,
    /// Estimated from the pairs found.
    pub estimated: Option<f64>,
}

/// The probability that a pair of some similarity becomes a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct Promise {
    /// The similarity of the pair.
    pub similarity: f64,
    /// The probability.
    pub probability: f64,
}

/// Pairs that were not compared because a key was too common.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Cap {
    /// Keys shared by too many documents.
    pub runs: u64,
    /// Documents with such keys.
    pub documents: u64,
    /// Pairs that were not compared for this reason.
    pub pairs_not_compared: u64,
}

/// A stage of the run.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Stage {
    /// Its name.
    pub name: String,
    /// Its duration in seconds.
    pub seconds: f64,
    /// Number of records processed.
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

    /// Returns the directory from which relative sources start, for the run in `out`. If it is not
    /// recorded, that is the working directory.
    #[must_use]
    pub fn directory(&self, out: &Path) -> PathBuf {
        let Some(from_out) = &self.from_out else {
            return PathBuf::new();
        };
        // Symbolic links are resolved first: `..` is the parent of their target.
        let out = out.canonicalize().unwrap_or_else(|_| out.to_owned());
        let directory = path_in(&out, from_out);
        directory.canonicalize().unwrap_or(directory)
    }

    /// Returns the path of the file that the table of the run in `out` calls `source`.
    #[must_use]
    pub fn source(&self, out: &Path, source: &str) -> PathBuf {
        path_in(&self.directory(out), source)
    }

    /// Returns the seed of random choices.
    #[must_use]
    pub fn seed(&self) -> u64 {
        let seed = self.settings.get("seed").and_then(Value::as_u64);
        seed.unwrap_or(0)
    }

    /// Returns the number of tokens per shingle.
    #[must_use]
    pub fn shingle_length(&self) -> NonZeroUsize {
        let w = self.settings.get("w").and_then(Value::as_u64);
        let w = w.and_then(|w| NonZeroUsize::new(usize::try_from(w).ok()?));
        w.unwrap_or(arose::shingle::DEFAULT_W)
    }

    /// Returns how upper and lower case were treated.
    #[must_use]
    pub fn case(&self) -> Case {
        match self.settings.get("case").and_then(Value::as_str) {
            Some("keep") => Case::Keep,
            _ => Case::Fold,
        }
    }

    /// Returns the settings with which the input was read, so that it can be read again.
    #[must_use]
    pub fn reading(&self) -> Config {
        let mut config = Config::default();
        let text = |name: &str| self.settings.get(name).and_then(Value::as_str);
        let is_named = |mode: &Mode| text("mode") == Some(mode.as_str());
        config.html.mode = Mode::ALL.into_iter().find(is_named).unwrap_or_default();
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

/// Formats numbers of files by kind, the most frequent kind first: `.py 12, .rst 3`.
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
