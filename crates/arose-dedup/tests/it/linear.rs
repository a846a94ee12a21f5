//! Tests of large clusters: their cost, and that no duplicate is missed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use arose::Threshold;
use arose::compare::Profiler;
use arose::mix::SplitMix;
use arose::rule::Criterion;
use arose_dedup::evaluate::plant;
use arose_dedup::{Config, Keep, ListedPairs, Progress, Start};
use proptest::prelude::*;
use serde_json::Value;

use crate::support::{Bench, family_texts};

fn jaccard(threshold: f64) -> Config {
    let mut config = Config::of(Criterion::jaccard());
    config.policy.criterion = Criterion::Jaccard(Threshold::new(threshold).unwrap());
    config
}

fn count(summary: &Value, name: &str) -> u64 {
    summary["counts"][name].as_u64().unwrap()
}

/// Pages of a template with `n_own` words of their own at random places.
fn template(n: usize, n_words: u64, n_own: impl Fn(usize) -> u64, seed: u64) -> Vec<String> {
    let mut random = SplitMix::new(seed);
    let page = |page: usize| {
        let mut words: Vec<String> = (0..n_words).map(|i| format!("t{seed}word{i}")).collect();
        for i in 0..n_own(page) {
            words[random.below(n_words) as usize] = format!("page{page}own{i}");
        }
        words.join(" ")
    };
    (0..n).map(page).collect()
}

/// The similarities of all pairs that reach `least`.
fn all_pairs(texts: &[String], config: &Config, least: f64) -> BTreeMap<(u64, u64), f64> {
    let profiler = Profiler::new(config.shingle.w);
    let profiles: Vec<_> = texts.iter().map(|text| profiler.profile(text)).collect();
    let mut found = BTreeMap::new();
    for b in 0..texts.len() {
        for a in 0..b {
            let comparison = profiler.compare(&profiles[a], &profiles[b]);
            let jaccard = comparison.jaccard.unwrap_or(0.0);
            if jaccard >= least {
                found.insert((a as u64, b as u64), jaccard);
            }
        }
    }
    found
}

/// Every dropped document is similar to its kept one. Both documents are kept of at most the given
/// share of the similar pairs.
#[track_caller]
fn check_kept(texts: &[String], config: &Config, most: f64) -> f64 {
    let Criterion::Jaccard(threshold) = config.policy.criterion else {
        panic!("another policy");
    };
    let bench = Bench::with_texts(texts);
    bench.run(config);
    let docs = bench.docs();
    let exact = all_pairs(texts, config, threshold.get());
    for (doc, row) in (0_u64..).zip(&docs) {
        assert_eq!(row.cluster, row.kept_doc.unwrap_or(doc), "{row:?}");
        if let Some(kept) = row.kept_doc {
            assert!(docs[kept as usize].kept, "{row:?}");
            let similarity = exact.get(&(doc.min(kept), doc.max(kept)));
            assert_eq!(row.similarity.as_ref(), similarity, "{doc} for {kept}");
        }
    }
    let is_kept = |doc: u64| docs[doc as usize].kept;
    let kept = exact.keys().filter(|(a, b)| is_kept(*a) && is_kept(*b));
    let share = kept.count() as f64 / exact.len().max(1) as f64;
    assert!(share <= most, "{share} of {}", exact.len());
    share
}

/// Pages of which one word in a hundred differs have as many pairs as pages.
#[test]
fn a_template_costs_as_much_as_its_pages() {
    let n_tested = [500, 1_000].map(|n| {
        let bench = Bench::with_texts(&template(n, 100, |_| 1, 1));
        let summary = bench.run(&Config {
            cap: NonZeroUsize::new(50).unwrap(),
            ..Config::of(Criterion::jaccard())
        });
        let n = n as u64;
        assert_eq!(count(&summary, "kept"), 1);
        assert_eq!(count(&summary, "clusters"), 1);
        assert_eq!(count(&summary, "largest_cluster"), n);
        assert_eq!(count(&summary, "clustered_documents"), n);
        assert!(count(&summary, "candidates") <= 30 * n, "{summary}");
        let n_pairs = bench.pairs().len() as u64;
        assert!((n - 1..30 * n).contains(&n_pairs), "{n_pairs}");
        assert_eq!(count(&summary, "pairs"), n_pairs);
        count(&summary, "tested")
    });
    assert!(n_tested[1] < 3 * n_tested[0], "{n_tested:?}");
}

/// A template at full size: all pages form one cluster with a few comparisons each.
#[test]
fn issue_20_five_thousand_pages_of_one_template_are_cheap() {
    let n = 5_000;
    let page = |page: u64| {
        let words = (0..100).map(|i| match i {
            50 => format!("own{page} "),
            i => format!("word{i} "),
        });
        words.collect::<String>()
    };
    let texts: Vec<String> = (0..n).map(page).collect();
    let summary = Bench::with_texts(&texts).run(&Config::of(Criterion::jaccard()));
    assert_eq!(count(&summary, "kept"), 1);
    assert!(count(&summary, "tested") <= 400 * n, "{summary}");
    assert!(count(&summary, "pairs") <= 20 * n, "{summary}");
}

/// Twice the pages take twice the comparisons.
#[test]
fn issue_20_the_cost_of_a_template_doubles_with_its_pages() {
    let costs = [2_500, 5_000].map(|n| {
        let bench = Bench::with_texts(&template(n, 100, |_| 1, 3));
        let summary = bench.run(&Config::of(Criterion::jaccard()));
        assert_eq!(count(&summary, "kept"), 1);
        ["tested", "candidates", "pairs"].map(|name| count(&summary, name))
    });
    for (small, large) in costs[0].iter().zip(costs[1]) {
        assert!(large <= 2 * small + small / 4, "{costs:?}");
    }
}

/// For any similarity of the pages of a template, each has a few candidates.
#[test]
fn candidates_are_linear_at_any_similarity() {
    for n_own in [1, 2, 3, 4] {
        let bench = Bench::with_texts(&template(800, 150, |_| n_own, 2));
        let config = Config {
            cap: NonZeroUsize::new(50).unwrap(),
            ..jaccard(0.8)
        };
        let summary = bench.run(&config);
        assert!(
            count(&summary, "candidates") <= 40 * 800,
            "{n_own}: {summary}"
        );
        assert!(
            count(&summary, "tested") <= 18 * 100 * 800,
            "{n_own}: {summary}"
        );
    }
}

#[test]
fn what_is_kept_is_unlike_in_random_corpora() {
    for seed in 20..23 {
        let texts = family_texts(500, seed);
        check_kept(&texts, &jaccard(0.8), 0.002);
        check_kept(&texts, &jaccard(0.6), 0.002);
    }
}

/// Around the threshold, followers of one leader are often similar when their leader is dropped.
#[test]
fn what_is_kept_is_unlike_in_templates() {
    for keep in [Keep::First, Keep::Longest] {
        for (seed, n_own) in [(31, 2), (32, 3), (33, 4)] {
            let own = move |page: usize| page as u64 % (n_own + 1) + n_own / 2;
            let texts = template(400, 160, own, seed);
            let config = Config {
                keep,
                ..jaccard(0.8)
            };
            check_kept(&texts, &config, 0.005);
        }
    }
}

/// The kept documents do not depend on the listed pairs, on threads or on memory, even if buckets
/// are large.
#[test]
fn the_listing_threads_and_memory_change_nothing() {
    let mut texts = template(300, 120, |page| page as u64 % 5, 7);
    texts.extend(family_texts(200, 8));
    let mut kept = Vec::new();
    for (pairs, threads, memory, cap) in [
        (ListedPairs::Verified, 1, 1 << 30, 40),
        (ListedPairs::All, 2, 1 << 30, 40),
        (ListedPairs::Verified, 3, 1 << 16, 40),
        (ListedPairs::All, 2, 1, 40),
    ] {
        let bench = Bench::with_texts(&texts);
        let mut config = Config {
            pairs,
            memory,
            cap: NonZeroUsize::new(cap).unwrap(),
            ..jaccard(0.8)
        };
        config.corpus.threads = NonZeroUsize::new(threads).unwrap();
        let summary = bench.run(&config);
        let (docs, pairs) = (bench.docs(), bench.pairs());
        // Each dropped document is listed with its kept one.
        let mut listed: Vec<_> = docs.iter().zip(0_u64..).collect();
        listed.retain(|(doc, _)| doc.kept_doc.is_some());
        let n_dropped = listed.len();
        for (doc, ordinal) in listed {
            let other = doc.kept_doc.unwrap();
            let place = (ordinal.min(other), ordinal.max(other));
            let pair = pairs.iter().find(|pair| (pair.a, pair.b) == place).unwrap();
            assert_eq!(Some(&pair.rule), doc.rule.as_ref());
            assert_eq!(pair.jaccard, doc.similarity);
            assert!(pair.b_sim.is_some() && pair.c_sim.is_some());
        }
        assert!(pairs.is_sorted_by_key(|pair| (pair.a, pair.b)));
        assert_eq!(count(&summary, "pairs"), pairs.len() as u64);
        match config.pairs {
            ListedPairs::Verified => assert!((n_dropped..30 * n_dropped).contains(&pairs.len())),
            ListedPairs::All => assert!(pairs.len() > 2 * n_dropped),
        }
        kept.push(docs);
    }
    for other in &kept[1..] {
        assert_eq!(other, &kept[0]);
    }
}

/// The counts of a stage end at the announced total.
#[test]
fn progress_ends_at_its_total() {
    let bench = Bench::with_texts(&family_texts(400, 2));
    let progress = Progress::default();
    let inputs = [bench.path("input.jsonl")];
    let out = bench.path("out");
    arose_dedup::run(
        &inputs,
        &Config::of(Criterion::jaccard()),
        &out,
        Start::Resume,
        &progress,
    )
    .unwrap();
    let last = progress.look();
    assert_eq!(last.stage, "write");
    assert_eq!(Some(last.done), last.total);
}

/// A corpus of templates of various sizes and similarities, families of texts, exact duplicates and
/// empty texts.
fn mixture() -> impl Strategy<Value = Vec<String>> {
    let group = prop_oneof![
        (1..60_usize, 60..140_u64, 0..8_u64, 0..1000_u64)
            .prop_map(|(n, n_words, n_own, seed)| template(n, n_words, |_| n_own, seed)),
        (1..60_usize, 0..1000_u64).prop_map(|(n, seed)| family_texts(n, seed)),
        (1..5_usize).prop_map(|n| vec![String::new(); n]),
        (1..6_usize, 0..1000_u64).prop_map(|(n, seed)| vec![family_texts(1, seed).remove(0); n]),
    ];
    let texts = prop::collection::vec(group, 1..5).prop_map(|groups| groups.concat());
    texts.prop_shuffle()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Which documents are kept, and for which others are dropped, does not depend on the listed
    /// pairs. The similarity of every dropped document to its kept one reaches the threshold.
    #[test]
    fn issue_20_listing_all_pairs_changes_no_decision(texts in mixture(), cap in 2..100_usize) {
        let config = Config {
            cap: NonZeroUsize::new(cap).unwrap(),
            ..jaccard(0.8)
        };
        let bench = Bench::with_texts(&texts);
        bench.run(&config);
        let (docs, pairs) = (bench.docs(), bench.pairs());
        let all = Bench::with_texts(&texts);
        all.run(&Config { pairs: ListedPairs::All, ..config.clone() });
        prop_assert_eq!(&docs, &all.docs());
        let every: BTreeSet<_> = all.pairs().iter().map(|pair| (pair.a, pair.b)).collect();
        for pair in &pairs {
            prop_assert!(every.contains(&(pair.a, pair.b)), "{:?}", pair);
        }
        let exact = all_pairs(&texts, &config, 0.8);
        for (doc, row) in (0_u64..).zip(&docs) {
            if let Some(kept) = row.kept_doc {
                let place = (doc.min(kept), doc.max(kept));
                prop_assert!(exact.contains_key(&place), "{:?}", row);
                prop_assert!(docs[kept as usize].kept);
                prop_assert!(every.contains(&place));
            }
        }
    }
}

/// The maximum size in bytes of the work directory of a run, observed continuously.
fn peak_disk(bench: &Bench, config: &Config) -> u64 {
    let work = bench.path("out/.arose");
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut most = 0;
            while !is_done.load(Ordering::Relaxed) {
                most = most.max(used(&work));
            }
            most
        });
        bench.run(config);
        is_done.store(true, Ordering::Relaxed);
        watcher.join().unwrap()
    })
}

/// Returns the bytes in a directory, whose files may vanish meanwhile.
fn used(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => used(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

/// Documents of 60 words take at most 450 bytes each, in addition to one dictionary, even if
/// nothing fits into memory.
#[test]
fn issue_20_temporary_disk_is_bounded() {
    const DICTIONARY: u64 = 512 << 10;
    let n = 20_000;
    let plant = plant::PlantConfig {
        n_documents: n,
        n_sites: 100,
        seed: 1,
        median_words: 60,
        w: NonZeroUsize::new(5).unwrap(),
        recipe: plant::Recipe::Mixed,
    };
    let plan = plant::Plan::new(plant).unwrap();
    for memory in [1 << 30, 4 << 20] {
        let bench = Bench::new();
        plant::write(&plan, &bench.path("planted")).unwrap();
        let planted = bench.path("planted/documents.jsonl");
        fs::rename(planted, bench.path("input.jsonl")).unwrap();
        let config = Config {
            memory,
            ..Config::of(Criterion::jaccard())
        };
        let most = peak_disk(&bench, &config).saturating_sub(DICTIONARY) / u64::from(n);
        assert!((200..=450).contains(&most), "{most} bytes per document");
    }
}
