//! Tests of the policy `content` on collections with ground truth: the numbers of the reference.
//!
//! Labelled and real collections are next to the repository. If they are missing, each test reports
//! that it is skipped.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use arose::content::{Content, Level, Score, Scorer};
use arose::rule::{Criterion, Remove};
use arose_dedup::evaluate::plant::{self, Plan, Recipe};
use arose_dedup::{Config, ListedPairs, SiteCounts};
use serde_json::Value;

use crate::content::{Page, bench, config, contents, shingles};
use crate::shared_data::DATA;

/// The pairs that `arose dedup` lists, and whether each is at the level `same`.
fn pairs_of_run(pages: &[Page], config: &Config) -> BTreeMap<(u64, u64), bool> {
    let bench = bench(pages);
    bench.run(&Config {
        pairs: ListedPairs::All,
        ..config.clone()
    });
    let pairs = bench.pairs().into_iter();
    pairs
        .map(|pair| ((pair.a, pair.b), pair.rule != "content"))
        .collect()
}

/// Precision, recall and F1 of some pairs.
fn scores(found: impl Iterator<Item = (u64, u64)>, truth: &BTreeSet<(u64, u64)>) -> [f64; 3] {
    let (mut n, mut n_right) = (0.0, 0.0);
    for pair in found {
        n += 1.0;
        n_right += f64::from(u8::from(truth.contains(&pair)));
    }
    let all = truth.len() as f64;
    [n_right / n, n_right / all, 2.0 * n_right / (n + all)]
}

fn planted(recipe: Recipe, n_documents: u32, n_sites: u32) -> (Vec<Page>, BTreeSet<(u64, u64)>) {
    let plan = Plan::new(plant::PlantConfig {
        n_documents,
        n_sites,
        seed: 1,
        median_words: 400,
        w: arose::shingle::DEFAULT_W,
        recipe,
    })
    .unwrap();
    let pages = (0..n_documents).map(|position| {
        let page = plan.page(position);
        (Some(page.url), page.text)
    });
    let families = (0..plan.n_families()).flat_map(|family| plan.truth(family));
    let copies = families.filter(|pair| pair.kind.is_copy());
    let truth = copies.map(|pair| (pair.a.into(), pair.b.into()));
    (pages.collect(), truth.collect())
}

/// Duplicates among pages of templates and tables: all of them are found, and nothing else.
#[test]
fn issue_24_planted_acceptance() {
    let (pages, truth) = planted(Recipe::Acceptance, 1000, 20);
    assert_eq!(truth.len(), 200);
    for remove in [Remove::Same, Remove::Content] {
        let found = pairs_of_run(&pages, &config(remove));
        assert_eq!(scores(found.into_keys(), &truth), [1.0; 3]);
    }
    let jaccard = pairs_of_run(&pages, &Config::of(Criterion::jaccard()));
    let [precision, recall, _] = scores(jaccard.into_keys(), &truth);
    assert!(precision < 0.1 && recall == 1.0, "{precision} {recall}");
}

/// Precision and F1 of the pairs that a rule accepts among labelled pairs.
fn quality(judged: &[(bool, bool)]) -> (f64, f64) {
    let count = |accepted, is_pair| judged.iter().filter(|j| **j == (accepted, is_pair)).count();
    let (right, wrong, missed) = (count(true, true), count(true, false), count(false, true));
    let share = |n: usize, all: usize| n as f64 / all.max(1) as f64;
    (
        share(right, right + wrong),
        share(2 * right, 2 * right + wrong + missed),
    )
}

/// The numbers of the reference on pairs that people labelled, without and with sites.
#[test]
fn issue_24_reference_on_judged_pairs() {
    let Some(rows) = json_lines("neardup-gov-pairs/pairs.jsonl.zst") else {
        return;
    };
    let text = |row: &Value, side: &str| row[side].as_str().unwrap().to_owned();
    let labels: Vec<bool> = rows
        .iter()
        .map(|row| row["label"].as_u64().unwrap() > 0)
        .collect();
    let mut scorer = Scorer::default();
    let mut scores = |contents: &[Content]| -> Vec<Score> {
        let pairs = contents.chunks(2);
        pairs.map(|pair| scorer.score(&pair[0], &pair[1])).collect()
    };
    let sides: Vec<String> = rows
        .iter()
        .flat_map(|row| [text(row, "text_a"), text(row, "text_b")])
        .collect();
    let alone: Vec<Content> = sides
        .iter()
        .map(|text| Content::new(&shingles(text)))
        .collect();
    // A page in several pairs is one page.
    let names = rows
        .iter()
        .flat_map(|row| ["a", "b"].map(|side| row[side].to_string()));
    let pages: Vec<Page> = names
        .zip(&sides)
        .map(|(name, text)| (Some(format!("http://gov.example/{name}")), text.clone()))
        .collect();
    let one_site = contents(&pages, SiteCounts::Exact);
    let judged = |scores: &[Score], least: Level| -> Vec<(bool, bool)> {
        let accepted = scores.iter().map(|score| score.level() <= least);
        accepted.zip(labels.iter().copied()).collect()
    };
    let scores_alone = scores(&alone);
    let (_, f1) = quality(&judged(&scores_alone, Level::Content));
    assert!((f1 - 0.841).abs() < 0.01, "{f1}");
    let (precision, f1) = quality(&judged(&scores_alone, Level::Same));
    assert_eq!(precision, 1.0);
    assert!((f1 - 0.615).abs() < 0.01, "{f1}");
    let (_, f1) = quality(&judged(&scores(&one_site), Level::Content));
    assert!((f1 - 0.777).abs() < 0.01, "{f1}");
}

fn json_lines(set: &str) -> Option<Vec<Value>> {
    let Ok(file) = fs::File::open(Path::new(DATA).join(set)) else {
        println!("skipped: no {set} beside the repository");
        return None;
    };
    let text = String::from_utf8(zstd::decode_all(file).unwrap()).unwrap();
    let rows = text.lines().map(|line| serde_json::from_str(line).unwrap());
    Some(rows.collect())
}

/// Revisions of documents without URLs, which form one site, through the complete job.
#[test]
fn issue_24_reference_on_revisions() {
    let Some(rows) = json_lines("neardup-pep-revisions/revisions.jsonl.zst") else {
        return;
    };
    let text = |row: &Value| (None, row["text"].as_str().unwrap().to_owned());
    let pages: Vec<Page> = rows.iter().map(text).collect();
    let mut truth = BTreeSet::new();
    for (b, row) in (0_u64..).zip(&rows) {
        let same = (0..b).filter(|a| rows[*a as usize]["doc"] == row["doc"]);
        truth.extend(same.map(|a| (a, b)));
    }
    let found = pairs_of_run(&pages, &config(Remove::Content));
    let [precision, recall, f1] = scores(found.into_keys(), &truth);
    println!("revisions: {precision} {recall} {f1}");
    assert!((f1 - 0.697).abs() < 0.01, "{f1}");
}
