//! Tests of the results of runs against brute force.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;

use arose::Threshold;
use arose::compare::Profiler;
use arose::rule::{Criterion, SiteRelation};
use arose::site::SiteKind;
use arose_dedup::{Config, Keep, ListedPairs, Verify};
use serde_json::Value;

use crate::support::{Bench, family_texts, results};

fn with_criterion(criterion: Criterion) -> Config {
    let mut config = Config {
        pairs: ListedPairs::All,
        ..Config::of(Criterion::jaccard())
    };
    config.policy.criterion = criterion;
    config
}

fn jaccard(threshold: f64) -> Config {
    with_criterion(Criterion::Jaccard(Threshold::new(threshold).unwrap()))
}

/// Every pair that a policy accepts, by brute force.
fn all_pairs(texts: &[String], config: &Config) -> BTreeMap<(u64, u64), f64> {
    let profiler = Profiler::new(config.shingle.w);
    let profiles: Vec<_> = texts.iter().map(|text| profiler.profile(text)).collect();
    let host = |i: usize| format!("site{}.example", i % 7);
    let mut found = BTreeMap::new();
    for b in 0..texts.len() {
        for a in 0..b {
            let comparison = profiler.compare(&profiles[a], &profiles[b]);
            let (x, y) = (host(a), host(b));
            let site = SiteRelation::of(Some(&x), Some(&y), SiteKind::Registrable);
            if comparison.rule(&config.policy, site).is_some() {
                found.insert((a as u64, b as u64), comparison.jaccard.unwrap());
            }
        }
    }
    found
}

/// The run finds at least the given share of the pairs, no others, and each with the exact
/// similarity.
#[track_caller]
fn check(config: &Config, min_recall: f64) {
    let mut texts = family_texts(600, 5);
    if matches!(config.policy.criterion, Criterion::Site { .. }) {
        // Exact duplicates share the decision on the first, whose site may be different.
        texts.sort();
        texts.dedup();
    }
    let bench = Bench::with_texts(&texts);
    bench.run(config);
    let expected = all_pairs(&texts, config);
    assert!(expected.len() > 80, "{}", expected.len());
    let pairs = bench.pairs();
    for pair in &pairs {
        let exact = expected.get(&(pair.a, pair.b));
        assert_eq!(pair.jaccard.as_ref(), exact, "{pair:?}");
        assert_eq!(pair.verified, "text");
        assert!(pair.b_sim.is_some() && pair.c_sim.is_some());
    }
    let recall = pairs.len() as f64 / expected.len() as f64;
    assert!(recall >= min_recall, "{recall} of {}", expected.len());
}

/// Four standard errors below the expected recall of 0.995 at the threshold, where few of the pairs
/// are.
#[test]
fn jaccard_finds_what_is_there() {
    check(&jaccard(0.8), 0.99);
    check(&jaccard(0.9), 0.99);
    check(&jaccard(0.5), 0.99);
}

#[test]
fn other_policies_lose_nothing() {
    for criterion in [
        Criterion::PUBLISHED_B,
        Criterion::PUBLISHED_C,
        Criterion::PUBLISHED_COMBINED,
        Criterion::SITE,
        Criterion::SITE_UNION,
    ] {
        let mut config = with_criterion(criterion);
        config.shingle = arose::shingle::ShingleLength::uniform(arose::shingle::FEATURE_W);
        check(&config, 1.0);
    }
}

/// Every dropped document is similar to the one kept in its place, and kept documents are not
/// similar.
#[test]
fn removal_never_chains() {
    let texts = family_texts(600, 8);
    for keep in [Keep::First, Keep::Longest, Keep::Newest, Keep::Copies] {
        let bench = Bench::with_texts(&texts);
        let config = Config {
            keep,
            ..jaccard(0.8)
        };
        bench.run(&config);
        let (docs, pairs) = (bench.docs(), bench.pairs());
        let scores: BTreeMap<_, _> = pairs.iter().map(|p| ((p.a, p.b), p.jaccard)).collect();
        for (doc, row) in (0_u64..).zip(&docs) {
            let Some(kept) = row.kept_doc else {
                assert!(row.kept && row.rule.is_none() && row.similarity.is_none());
                continue;
            };
            assert!(!row.kept && docs[kept as usize].kept, "{row:?}");
            assert_eq!(row.cluster, docs[kept as usize].cluster);
            let score = scores[&(doc.min(kept), doc.max(kept))];
            assert_eq!(row.similarity, score, "{doc} for {kept}");
        }
        for pair in &pairs {
            let both = docs[pair.a as usize].kept && docs[pair.b as usize].kept;
            assert!(!both, "{pair:?} are alike and both kept");
        }
    }
}

#[test]
fn the_longest_stays() {
    let texts = family_texts(300, 9);
    let bench = Bench::with_texts(&texts);
    bench.run(&Config {
        keep: Keep::Longest,
        ..jaccard(0.8)
    });
    for (doc, row) in bench.docs().iter().enumerate() {
        if let Some(kept) = row.kept_doc {
            assert!(texts[kept as usize].len() >= texts[doc].len());
        }
    }
}

/// The number in the field decides, first among exact duplicates, then among near duplicates.
#[test]
fn the_document_of_greatest_priority_stays() {
    let text = &family_texts(1, 1)[0];
    let longer = format!("{text} and a word");
    let rank = |text: &str, rank: &str| format!("{{\"text\": \"{text}\", \"rank\": {rank}}}\n");
    let bench = Bench::new();
    let lines = [
        rank(text, "0.5"),
        rank(text, "\"2\""),
        rank(&longer, "1"),
        rank(text, "null"),
    ];
    bench.write("input.jsonl", &lines.concat());
    let mut config = Config {
        keep: Keep::Priority,
        ..jaccard(0.8)
    };
    config.corpus.fields.priority = vec!["rank".to_owned()];
    bench.run(&config);
    let kept: Vec<_> = bench.docs().iter().map(|doc| doc.kept_doc).collect();
    assert_eq!(kept, [Some(1), None, Some(1), Some(1)]);
}

/// Results do not depend on threads, memory or the cap.
#[test]
fn results_do_not_depend_on_threads_or_memory() {
    let texts = family_texts(500, 6);
    let mut outcomes = BTreeSet::new();
    for (threads, memory) in [(1, 1 << 30), (3, 1 << 30), (2, 1 << 16), (4, 1)] {
        let bench = Bench::with_texts(&texts);
        let mut config = jaccard(0.7);
        config.corpus.threads = NonZeroUsize::new(threads).unwrap();
        config.corpus.block_bytes = NonZeroUsize::new(1 + memory as usize % 10_000).unwrap();
        config.memory = memory;
        bench.run(&config);
        // The rows contain the path of the input, which differs each time.
        let docs = format!("{:?}", bench.docs());
        let pairs = format!("{:?}", bench.pairs());
        let kept = std::fs::read(bench.path("out/kept.jsonl")).unwrap();
        outcomes.insert((docs, pairs, kept));
        assert_eq!(results(&bench.path("out")).len(), 3);
    }
    assert_eq!(outcomes.len(), 1);
}

/// With a cap of four, families of up to six and their keys are never compared in full. Every
/// document is still compared with a similar one.
#[test]
fn a_cap_ties_together_what_it_does_not_compare() {
    let texts = family_texts(400, 7);
    let uncapped = Bench::with_texts(&texts);
    uncapped.run(&jaccard(0.8));
    let capped = Bench::with_texts(&texts);
    let summary = capped.run(&Config {
        cap: NonZeroUsize::new(2).unwrap(),
        ..jaccard(0.8)
    });
    assert!(summary["cap"]["runs"].as_u64().unwrap() > 0);
    let clusters = |bench: &Bench| {
        let docs = bench.docs();
        docs.into_iter().map(|doc| doc.cluster).collect::<Vec<_>>()
    };
    assert_eq!(clusters(&capped), clusters(&uncapped));
}

/// Pages that share most of their keys are compared under two of them, and become candidates of at
/// most four leaders under each. So similar pages end up in one cluster, and few of the others pass
/// the test of their sketches.
#[test]
fn a_template_makes_few_candidates() {
    let n = 500;
    let pages = |n_own: usize| {
        let page = |page| {
            let own = (0..n_own).map(move |i| format!("page{page}own{i}"));
            let words = (0..80).map(|i| format!("word{i}")).chain(own);
            words.collect::<Vec<_>>().join(" ")
        };
        let bench = Bench::with_texts(&(0..n).map(page).collect::<Vec<String>>());
        bench.run(&Config {
            cap: NonZeroUsize::new(10).unwrap(),
            ..jaccard(0.8)
        })
    };
    let n_candidates = |summary: &Value| summary["counts"]["candidates"].as_u64().unwrap();
    for (n_own, most) in [(12, n), (16, n / 50)] {
        let others = pages(n_own);
        assert!(others["cap"]["documents"].as_u64().unwrap() > n);
        assert!(n_candidates(&others) <= most, "{}", n_candidates(&others));
    }
    let alike = pages(4);
    assert_eq!(alike["counts"]["largest_cluster"], n, "{alike}");
    assert!((n - 1..=8 * n).contains(&n_candidates(&alike)));
}

#[test]
fn sketches_alone_say_so() {
    let texts = family_texts(300, 4);
    for (verify, name) in [(Verify::Sketch, "sketch"), (Verify::None, "none")] {
        let bench = Bench::with_texts(&texts);
        bench.run(&Config {
            verify,
            ..jaccard(0.8)
        });
        let pairs = bench.pairs();
        assert!(pairs.len() > 50);
        for pair in pairs.iter().filter(|pair| pair.rule != "exact") {
            assert_eq!(pair.verified, name);
            assert_eq!(pair.jaccard.is_some(), verify == Verify::Sketch);
            assert_eq!(pair.c_sim, None);
        }
    }
}
