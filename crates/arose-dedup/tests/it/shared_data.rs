//! Tests of the complete job on collections with known similarities.
//!
//! They are next to the repository. If they are missing, each test reports that it is skipped.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use arose::Threshold;
use arose::rule::Criterion;
use arose_dedup::{Config, ListedPairs, Progress, Start};
use serde_json::Value;

use crate::support::pairs;

pub(crate) const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");

pub(crate) fn rows(bytes: &[u8]) -> Vec<Value> {
    let lines = bytes
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    lines
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}

/// Runs the job at each threshold and compares its pairs with the published list. Values must agree
/// to every printed digit, nothing else may be found, and no more may be missing than the expected
/// recall allows.
///
/// The list was computed with slightly different tokens, so values may differ where those do.
/// `max_odd` pairs may be off by more than rounding, or be on the other side of the threshold.
fn check(set: &str, documents: &str, max_odd: usize) {
    let folder = Path::new(DATA).join(set);
    if !folder.exists() {
        println!("skipped: no {set} beside the repository");
        return;
    }
    let read = |name: &str| zstd::decode_all(fs::File::open(folder.join(name)).unwrap()).unwrap();
    let docs = rows(&read(documents));
    let id = |doc: &Value| match doc["id"].as_str() {
        Some(id) => id.to_owned(),
        None => format!("{}#{}", doc["doc"].as_str().unwrap(), doc["rev"]),
    };
    let ordinals: BTreeMap<String, u64> = docs.iter().map(id).zip(0..).collect();
    let listed: BTreeMap<(u64, u64), f64> = rows(&read("exact_pairs_w5.jsonl.zst"))
        .iter()
        .map(|row| {
            let [a, b] = ["a", "b"].map(|side| ordinals[row[side].as_str().unwrap()]);
            ((a.min(b), a.max(b)), row["jaccard"].as_f64().unwrap())
        })
        .collect();
    for threshold in [0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99] {
        let mut config = Config {
            pairs: ListedPairs::All,
            ..Config::of(Criterion::jaccard())
        };
        config.policy.criterion = Criterion::Jaccard(Threshold::new(threshold).unwrap());
        let out = tempfile::tempdir().unwrap();
        let path = out.path().join("out");
        let input = [folder.join(documents)];
        arose_dedup::run(&input, &config, &path, Start::Resume, &Progress::default()).unwrap();
        let found = pairs(&path);
        let mut odd = 0;
        for pair in &found {
            let value = listed.get(&(pair.a, pair.b)).copied().unwrap_or(0.0);
            odd += usize::from((value - pair.jaccard.unwrap()).abs() > 1e-5);
        }
        assert!(
            odd <= max_odd,
            "{threshold}: {odd} of {} differ",
            found.len()
        );
        let expected = listed.values().filter(|value| **value >= threshold).count();
        let missing = expected.saturating_sub(found.len());
        // The expected recall is for pairs at the threshold; most are far above it.
        let allowed = (0.005 * expected as f64).ceil() as usize + max_odd;
        assert!(
            missing <= allowed,
            "{threshold}: {missing} of {expected} missing"
        );
        println!(
            "{set} {threshold}: {} of {expected}, {odd} odd",
            found.len()
        );
    }
}

#[test]
fn licences() {
    check("neardup-licenses", "licenses.jsonl.zst", 1);
}

#[test]
fn revisions() {
    check("neardup-pep-revisions", "revisions.jsonl.zst", 19);
}
