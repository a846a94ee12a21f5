//! The ground truth: reading and lookup.

use std::path::Path;

use arose::Threshold;

use super::output::Documents;
use crate::evaluate::Error;
use crate::evaluate::lines::{for_each_line, record};
use crate::evaluate::plant::FamilyKind;

/// All similar pairs.
#[derive(Debug, Default)]
pub(super) struct Truth {
    /// By ascending documents.
    pub(super) pairs: Vec<True>,
    /// Whether the file has the kinds of planted duplicates.
    pub(super) has_kinds: bool,
    /// Pairs omitted because the run did not read one of their documents.
    pub(super) n_unread: u64,
    unread: Vec<f64>,
}

/// A pair in the ground truth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct True {
    pub(super) jaccard: f64,
    pub(super) a: u32,
    pub(super) b: u32,
    pub(super) kind: Option<FamilyKind>,
}

/// A line of the file.
struct Line {
    a: String,
    b: String,
    jaccard: f64,
    kind: Option<FamilyKind>,
}

impl Truth {
    pub(super) fn read(path: &Path, documents: &Documents) -> Result<Self, Error> {
        let mut truth = Self::default();
        for_each_line(path, |line| {
            let line = match line.first() {
                Some(b'{') => json_line(line)?,
                _ => tab_line(line)?,
            };
            truth.has_kinds |= line.kind.is_some();
            truth.add(line, documents)
        })?;
        if truth.pairs.is_empty() && truth.n_unread > 0 {
            let flaw =
                "the run has read none of its documents; pass the ground truth of this corpus";
            return Err(Error::file(path, flaw));
        }
        truth.pairs.sort_unstable_by_key(|pair| (pair.a, pair.b));
        let twice = truth
            .pairs
            .windows(2)
            .find(|two| (two[0].a, two[0].b) == (two[1].a, two[1].b));
        match twice {
            Some(two) => {
                let flaw = format!("documents {} and {} are listed twice", two[0].a, two[0].b);
                Err(Error::file(path, flaw))
            }
            None => Ok(truth),
        }
    }

    fn add(&mut self, line: Line, documents: &Documents) -> Result<(), String> {
        let Line { jaccard, kind, .. } = line;
        match [&line.a, &line.b].map(|id| documents.find(id)) {
            [Some(a), Some(b)] if a == b => {
                Err("a document cannot be paired with itself".to_owned())
            }
            [Some(a), Some(b)] => {
                let (a, b) = (a.min(b), a.max(b));
                self.pairs.push(True {
                    jaccard,
                    a,
                    b,
                    kind,
                });
                Ok(())
            }
            _ => {
                self.n_unread += 1;
                self.unread.push(jaccard);
                Ok(())
            }
        }
    }

    /// Returns the entry of two documents, in either order.
    pub(super) fn find(&self, a: u32, b: u32) -> Option<&True> {
        let key = (a.min(b), a.max(b));
        let place = self
            .pairs
            .binary_search_by_key(&key, |pair| (pair.a, pair.b));
        place.ok().map(|place| &self.pairs[place])
    }

    /// Returns the number of similar pairs that were not read.
    pub(super) fn n_unread_similar(&self, threshold: Threshold) -> u64 {
        let similar = self
            .unread
            .iter()
            .filter(|&&jaccard| threshold.reached_by(jaccard));
        similar.count() as u64
    }
}

fn json_line(line: &[u8]) -> Result<Line, String> {
    let record = record(line)?;
    let id = |name: &str| {
        let id = record.get(name).and_then(|value| value.as_str());
        id.map(str::to_owned)
            .ok_or_else(|| format!("no text in field `{name}`"))
    };
    let jaccard = record.get("jaccard").and_then(|value| value.as_f64());
    let kind = record
        .get("kind")
        .and_then(|value| value.as_str())
        .map(str::parse);
    Ok(Line {
        a: id("a")?,
        b: id("b")?,
        jaccard: checked(jaccard)?,
        kind: kind.transpose().map_err(|error: Error| error.to_string())?,
    })
}

/// Parses `a`, `b` and the similarity, separated by tabs.
fn tab_line(line: &[u8]) -> Result<Line, String> {
    let line = std::str::from_utf8(line).map_err(|_| "not UTF-8")?;
    let mut parts = line.split('\t');
    let mut next = || {
        parts
            .next()
            .ok_or("neither JSON nor `a`, `b` and `jaccard` separated by tabs")
    };
    Ok(Line {
        a: next()?.to_owned(),
        b: next()?.to_owned(),
        jaccard: checked(next()?.parse().ok())?,
        kind: None,
    })
}

fn checked(jaccard: Option<f64>) -> Result<f64, String> {
    let jaccard = jaccard.filter(|jaccard| (0.0..=1.0).contains(jaccard));
    jaccard.ok_or_else(|| "`jaccard` is not a number from 0 to 1".to_owned())
}

/// Returns the shingle length in `plant.json` next to the ground truth.
pub(super) fn shingle_length(truth: &Path) -> Option<u64> {
    let text = std::fs::read(truth.with_file_name("plant.json")).ok()?;
    let plant: serde_json::Value = serde_json::from_slice(&text).ok()?;
    plant.get("settings")?.get("w")?.as_u64()
}
