use super::*;
use crate::evaluate::plant::{Plan, PlantConfig, Recipe};
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray, UInt32Array, UInt64Array,
};
use parquet::arrow::ArrowWriter;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

/// A document as a run describes it.
#[derive(Debug, Clone)]
struct DocumentRow {
    id: String,
    url: Option<String>,
    digest: String,
    cluster: u64,
    kept_doc: Option<u64>,
    rule: Option<&'static str>,
}

/// A pair as a run lists it.
#[derive(Debug, Clone, Copy)]
struct Found {
    a: u64,
    b: u64,
    jaccard: Option<f64>,
    rule: &'static str,
}

fn write_table(path: &Path, columns: Vec<(&str, ArrayRef)>) {
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, array)| (name, array, true)),
    )
    .unwrap();
    let file = File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

fn texts<'a>(values: impl Iterator<Item = Option<&'a str>>) -> ArrayRef {
    Arc::new(values.collect::<StringArray>())
}

/// Writes the output directory of a run.
fn write_run(folder: &Path, rows: &[DocumentRow], pairs: &[Found]) {
    let ordinals = 0..rows.len() as u64;
    let clusters = rows.iter().map(|row| row.cluster);
    let kept: Vec<bool> = rows.iter().map(|row| row.rule.is_none()).collect();
    write_table(
        &folder.join("documents.parquet"),
        vec![
            ("doc", Arc::new(ordinals.collect::<UInt64Array>())),
            ("id", texts(rows.iter().map(|row| Some(row.id.as_str())))),
            ("url", texts(rows.iter().map(|row| row.url.as_deref()))),
            ("source", texts(rows.iter().map(|_| Some("x.jsonl")))),
            ("position", texts(rows.iter().map(|_| Some("0")))),
            (
                "digest",
                texts(rows.iter().map(|row| Some(row.digest.as_str()))),
            ),
            (
                "n_tokens",
                Arc::new(rows.iter().map(|_| 10).collect::<UInt32Array>()),
            ),
            ("cluster", Arc::new(clusters.collect::<UInt64Array>())),
            ("kept", Arc::new(BooleanArray::from(kept))),
            (
                "kept_doc",
                Arc::new(rows.iter().map(|row| row.kept_doc).collect::<UInt64Array>()),
            ),
            ("rule", texts(rows.iter().map(|row| row.rule))),
        ],
    );
    write_table(
        &folder.join("pairs.parquet"),
        vec![
            (
                "a",
                Arc::new(pairs.iter().map(|pair| pair.a).collect::<UInt64Array>()),
            ),
            (
                "b",
                Arc::new(pairs.iter().map(|pair| pair.b).collect::<UInt64Array>()),
            ),
            (
                "jaccard",
                Arc::new(
                    pairs
                        .iter()
                        .map(|pair| pair.jaccard)
                        .collect::<Float64Array>(),
                ),
            ),
            ("rule", texts(pairs.iter().map(|pair| Some(pair.rule)))),
            ("verified", texts(pairs.iter().map(|_| Some("text")))),
        ],
    );
}

fn rows(n: u64) -> Vec<DocumentRow> {
    let row = |doc| DocumentRow {
        id: format!("p{doc}"),
        url: Some(format!("https://www.site{}.example/{doc}", doc % 2)),
        digest: format!("{doc:032x}"),
        cluster: doc,
        kept_doc: None,
        rule: None,
    };
    (0..n).map(row).collect()
}

fn found(a: u64, b: u64, jaccard: f64) -> Found {
    let (jaccard, rule) = (Some(jaccard), "jaccard");
    Found {
        a,
        b,
        jaccard,
        rule,
    }
}

fn drop_for(rows: &mut [DocumentRow], doc: u64, kept: u64) {
    let row = &mut rows[doc as usize];
    (row.kept_doc, row.rule, row.cluster) = (Some(kept), Some("jaccard"), kept);
}

fn score_with(rows: &[DocumentRow], pairs: &[Found], truth: &str) -> Result<RunScore, Error> {
    score_listing("all", rows, pairs, truth)
}

/// Scores a run with a setting of `--pairs`.
fn score_listing(
    listed: &str,
    rows: &[DocumentRow],
    pairs: &[Found],
    truth: &str,
) -> Result<RunScore, Error> {
    let folder = tempfile::tempdir().unwrap();
    write_run(folder.path(), rows, pairs);
    let summary = format!(r#"{{"settings": {{"pairs": "{listed}"}}}}"#);
    fs::write(folder.path().join("summary.json"), summary).unwrap();
    let path = folder.path().join("truth");
    fs::write(&path, truth).unwrap();
    score(&ScoreConfig {
        folder: folder.path().to_owned(),
        truth: path,
        threshold: None,
    })
}

fn share(part: u64, whole: u64) -> Share {
    Share { part, whole }
}

/// Documents 0, 1 and 2 are similar, 3 is a template page of 0, and 4 and 5 are unrelated.
const TRUTH: &str = r#"{"a":"p0","b":"p1","kind":"mirror","jaccard":0.9}
{"a":"p2","b":"p0","kind":"block","jaccard":0.8}
{"a":"p1","b":"p2","kind":"block","jaccard":0.79}
{"a":"p0","b":"p3","kind":"template","jaccard":0.6}
"#;

#[test]
fn a_perfect_run() {
    let mut rows = rows(6);
    drop_for(&mut rows, 1, 0);
    drop_for(&mut rows, 2, 0);
    let score = score_with(&rows, &[found(0, 1, 0.9), found(0, 2, 0.8)], TRUTH).unwrap();
    assert_eq!(
        (score.pair_recall, score.pair_precision),
        (share(2, 2), share(2, 2))
    );
    assert_eq!(
        (score.document_recall, score.document_precision),
        (share(3, 3), share(3, 3))
    );
    assert_eq!(
        (score.closure_recall, score.closure_precision),
        (share(2, 2), share(2, 3))
    );
    assert_eq!(
        score.removal,
        Removal {
            n_dropped: 2,
            ..Removal::default()
        }
    );
    assert_eq!((score.coefficients, score.n_unlisted), ((2, 0.0), 0));
    assert_eq!(score.bins[bin(0.8)], share(1, 1));
    assert_eq!(score.bins[bin(0.79)], share(0, 1));
    assert_eq!(score.kinds[&FamilyKind::Block], share(1, 2));
    let key = |place| ("jaccard".to_owned(), place);
    assert_eq!(score.rules[&key(Place::CrossSite)].copies, share(1, 1));
    assert_eq!(score.rules[&key(Place::SameSite)].similar, share(1, 1));
}

/// A run lists only verified pairs by default, so its list shows nothing about missed pairs.
#[test]
fn issue_32_recall_of_pairs_needs_all_pairs() {
    let mut rows = rows(6);
    drop_for(&mut rows, 1, 0);
    drop_for(&mut rows, 2, 0);
    let pairs = [found(0, 1, 0.9)];
    let score = |listed| score_listing(listed, &rows, &pairs, TRUTH).unwrap();
    let (all, some) = (score("all"), score("verified"));
    assert!(all.lists_all_pairs && !some.lists_all_pairs);
    assert_eq!(
        (all.pair_recall, some.pair_recall.value()),
        (share(1, 2), None)
    );
    assert!(some.kinds.is_empty() && some.bins.iter().all(|bin| bin.whole == 0));
    assert_eq!(all.pair_precision, some.pair_precision);
    assert_eq!(all.document_recall, some.document_recall);
}

#[test]
fn errors_of_a_run_are_counted() {
    let mut rows = rows(6);
    drop_for(&mut rows, 3, 0);
    drop_for(&mut rows, 4, 3);
    drop_for(&mut rows, 5, 0);
    let pairs = [found(0, 3, 0.81), found(0, 4, 0.9)];
    let score = score_with(&rows, &pairs, TRUTH).unwrap();
    assert_eq!(
        (score.pair_recall, score.pair_precision),
        (share(0, 2), share(0, 2))
    );
    assert_eq!(
        (score.document_recall, score.document_precision),
        (share(1, 3), share(1, 3))
    );
    assert_eq!(score.n_unlisted, 1);
    assert!((score.coefficients.1 - 0.21).abs() < 1e-12);
    // Document 4 was dropped for a dropped one, 5 without a pair, 3 and 5 for one not similar.
    let expected = Removal {
        n_dropped: 3,
        n_for_dropped: 1,
        n_unlisted: 1,
        n_dissimilar: 2,
    };
    assert_eq!(score.removal, expected);
    assert!(!score.removal.is_sound());
    let row = score.rules[&("jaccard".to_owned(), Place::SameSite)];
    assert_eq!(row.copies, share(0, 1), "a pair of two families is no copy");
}

/// A run that collapses exact duplicates lists one pair for all of theirs.
#[test]
fn equal_documents_are_one() {
    let mut rows = rows(4);
    rows[1].digest = rows[0].digest.clone();
    drop_for(&mut rows, 1, 0);
    rows[1].rule = Some("exact");
    drop_for(&mut rows, 2, 0);
    let truth = "p0\tp1\t1\np0\tp2\t0.9\np1\tp2\t0.9\n";
    let score = score_with(&rows, &[found(0, 2, 0.9)], truth).unwrap();
    assert_eq!(
        (score.pair_recall, score.pair_precision),
        (share(3, 3), share(1, 1))
    );
    assert_eq!(
        (score.document_recall, score.document_precision),
        (share(3, 3), share(3, 3))
    );
    assert_eq!(score.closure_precision, share(3, 3));
    assert!(score.removal.is_sound() && score.kinds.is_empty());
    assert_eq!(
        score.rules[&("jaccard".to_owned(), Place::SameSite)].copies,
        share(0, 0)
    );
}

#[test]
fn summary_and_truth_tell_their_settings() {
    let folder = tempfile::tempdir().unwrap();
    let mut rows = rows(6);
    drop_for(&mut rows, 3, 0);
    write_run(folder.path(), &rows, &[found(0, 3, 0.6)]);
    fs::write(folder.path().join("truth.jsonl"), TRUTH).unwrap();
    let summary = r#"{"settings":{"policy":"jaccard","threshold":0.6,"w":5}}"#;
    fs::write(folder.path().join("summary.json"), summary).unwrap();
    fs::write(folder.path().join("plant.json"), r#"{"settings":{"w":8}}"#).unwrap();
    let mut config = ScoreConfig {
        folder: folder.path().to_owned(),
        truth: folder.path().join("truth.jsonl"),
        threshold: None,
    };
    let by_run = score(&config).unwrap();
    assert_eq!(
        (by_run.policy.as_deref(), by_run.threshold.get()),
        (Some("jaccard"), 0.6)
    );
    assert_eq!(
        (by_run.other_w, by_run.pair_precision),
        (Some([5, 8]), share(1, 1))
    );
    config.threshold = Some(Threshold::new(0.9).unwrap());
    let strict = score(&config).unwrap();
    assert_eq!(strict.pair_precision, share(0, 1));
    assert!(strict.removal.is_sound(), "by its own threshold");
}

#[test]
fn documents_that_were_not_read_are_lost() {
    let score = score_with(&rows(2), &[found(0, 1, 0.9)], TRUTH).unwrap();
    assert_eq!((score.n_unread, score.pair_recall), (3, share(1, 2)));
}

#[track_caller]
fn check_error(result: Result<RunScore, Error>, part: &str) {
    let error = result.unwrap_err().to_string();
    assert!(error.contains(part), "{error}");
}

#[test]
fn what_is_wrong_is_named() {
    let none: [Found; 0] = [];
    check_error(
        score_with(&rows(1), &none, "x\ty\t0.9"),
        "pass the ground truth of this corpus",
    );
    check_error(
        score_with(&rows(2), &none, "p0\tp0\t0.9"),
        ":1: a document cannot be paired with itself",
    );
    check_error(
        score_with(&rows(2), &none, "p0\tp1"),
        ":1: neither JSON nor",
    );
    check_error(
        score_with(&rows(2), &none, "p0\tp1\t2"),
        "`jaccard` is not a number from 0 to 1",
    );
    check_error(
        score_with(&rows(2), &none, "{\"a\":\"p0\"}"),
        ":1: no text in field `b`",
    );
    let twice = "p0\tp1\t0.9\np1\tp0\t0.9";
    check_error(
        score_with(&rows(2), &none, twice),
        "0 and 1 are listed twice",
    );
    let kind = r#"{"a":"p0","b":"p1","kind":"odd","jaccard":1}"#;
    check_error(score_with(&rows(2), &none, kind), "`odd` is not a kind");
    check_error(
        score_with(&rows(2), &[found(1, 2, 1.0)], ""),
        "1 and 2 are not a pair",
    );
    let mut same = rows(2);
    same[1].id = same[0].id.clone();
    check_error(
        score_with(&same, &none, ""),
        "documents 0 and 1 have the same ID",
    );
    let folder = tempfile::tempdir().unwrap();
    let config = ScoreConfig {
        folder: folder.path().to_owned(),
        truth: folder.path().join("truth"),
        threshold: None,
    };
    check_error(score(&config), "documents.parquet");
    fs::write(folder.path().join("documents.parquet"), "no table").unwrap();
    check_error(score(&config), "cannot read");
    write_table(
        &folder.path().join("documents.parquet"),
        vec![("doc", texts([None].into_iter()))],
    );
    check_error(score(&config), "column `doc` is not of type UInt64");
}

#[test]
fn bins_hold_what_their_names_say() {
    for (i, &begin) in BINS.iter().enumerate() {
        assert_eq!(bin(begin), i);
        assert_eq!(bin(begin - 1e-9), i.saturating_sub(1));
    }
}

#[test]
fn hosts() {
    for (url, expected) in [
        ("https://www.x.org/a?b#c", Some("www.x.org")),
        ("http://user@x.org:80", Some("x.org:80")),
        ("http://x.org?b/c", Some("x.org")),
        ("x.org/a", None),
        ("http:///a", None),
    ] {
        assert_eq!(host(url), expected, "{url}");
    }
}

/// An exact run over a planted corpus has no error, whatever the family.
#[test]
fn the_truth_itself_scores_one() {
    let plan = Plan::new(PlantConfig {
        n_documents: 400,
        n_sites: 9,
        seed: 3,
        median_words: 50,
        w: 5.try_into().unwrap(),
        recipe: Recipe::Mixed,
    })
    .unwrap();
    let truth: Vec<_> = (0..plan.n_families())
        .flat_map(|index| plan.truth(index))
        .collect();
    let lines: Vec<String> = truth
        .iter()
        .map(|pair| format!("p{}\tp{}\t{}", pair.a, pair.b, pair.jaccard))
        .collect();
    let similar = truth.iter().filter(|pair| pair.jaccard >= 0.8);
    let pairs: Vec<Found> = similar
        .map(|pair| found(pair.a.into(), pair.b.into(), pair.jaccard))
        .collect();
    let score = score_with(&rows(400), &pairs, &lines.join("\n")).unwrap();
    let n = pairs.len() as u64;
    assert!(n > 50, "{n}");
    assert_eq!(
        (score.pair_recall, score.pair_precision),
        (share(n, n), share(n, n))
    );
    assert_eq!(score.document_recall.value(), Some(1.0));
    assert_eq!(score.document_precision.value(), Some(1.0));
}

/// Pairs `a < b < n` with a value of 0 to 10 for each.
fn scored_pairs(n: u64) -> impl Strategy<Value = Vec<(u64, u64, u8)>> {
    let pair = (0..n, 0..n, 0_u8..=10).prop_filter("two documents", |(a, b, _)| a != b);
    let ordered = pair.prop_map(|(a, b, value)| (a.min(b), a.max(b), value));
    prop::collection::vec(ordered, 0..20).prop_map(|mut pairs| {
        pairs.sort_unstable();
        pairs.dedup_by_key(|pair| (pair.0, pair.1));
        pairs
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Precision, recall, closure and documents by brute force over all pairs of all documents.
    #[test]
    fn scores_are_those_of_brute_force(
        truth in scored_pairs(8),
        listed in scored_pairs(8),
        clusters in prop::collection::vec(0_u64..8, 8),
    ) {
        let mut rows = rows(8);
        rows.iter_mut().zip(&clusters).for_each(|(row, &cluster)| row.cluster = cluster);
        let lines: Vec<String> = truth
            .iter()
            .map(|(a, b, value)| format!("p{a}\tp{b}\t{}", f64::from(*value) / 10.0))
            .collect();
        let pairs: Vec<Found> = listed.iter().map(|&(a, b, _)| found(a, b, 0.5)).collect();
        let score = score_with(&rows, &pairs, &lines.join("\n")).unwrap();

        let all = (0..8_u64).flat_map(|a| (a + 1..8).map(move |b| (a, b)));
        let is_true = |(a, b): (u64, u64)| {
            truth.iter().any(|&(x, y, value)| (x, y) == (a, b) && value >= 8)
        };
        let is_listed = |(a, b): (u64, u64)| listed.iter().any(|&(x, y, _)| (x, y) == (a, b));
        let is_together = |(a, b): (u64, u64)| clusters[a as usize] == clusters[b as usize];
        let count = |wanted: &dyn Fn((u64, u64)) -> bool| {
            all.clone().filter(|&pair| wanted(pair)).count() as u64
        };
        let (n_true, n_listed) = (count(&is_true), count(&is_listed));
        let n_both = count(&|pair| is_true(pair) && is_listed(pair));
        prop_assert_eq!(score.pair_recall, share(n_both, n_true));
        prop_assert_eq!(score.pair_precision, share(n_both, n_listed));
        let n_joined = count(&|pair| is_true(pair) && is_together(pair));
        prop_assert_eq!(score.closure_recall, share(n_joined, n_true));
        prop_assert_eq!(score.closure_precision, share(n_joined, count(&is_together)));
        let documents = |wanted: &dyn Fn((u64, u64)) -> bool| -> BTreeSet<u64> {
            all.clone().filter(|&pair| wanted(pair)).flat_map(|(a, b)| [a, b]).collect()
        };
        let (gold, flagged) = (documents(&is_true), documents(&is_listed));
        let n_right = gold.intersection(&flagged).count() as u64;
        prop_assert_eq!(score.document_recall, share(n_right, gold.len() as u64));
        prop_assert_eq!(score.document_precision, share(n_right, flagged.len() as u64));
    }
}
