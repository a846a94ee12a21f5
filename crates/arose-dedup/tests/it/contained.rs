//! Tests of the policies `contained` and `url`.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use arose::Threshold;
use arose::mix::SplitMix;
use arose::rule::Criterion;
use arose::shingle::{ShingleSet, Shingler};
use arose::token::Tokenizer;
use arose_dedup::{Config, Error, Keep, ListedPairs};
use serde_json::{Value, json};

use crate::shared_data::{DATA, rows};
use crate::support::{Bench, results};

fn config(threshold: f64) -> Config {
    let mut config = Config::default();
    config.policy.criterion = Criterion::Contained(Threshold::new(threshold).unwrap());
    config
}

fn words(random: &mut SplitMix, n: u64) -> Vec<String> {
    (0..n)
        .map(|_| format!("w{}", random.below(100_000)))
        .collect()
}

/// Documents, excerpts of them with some words changed, and excerpts of excerpts.
fn texts(n: usize, seed: u64) -> Vec<String> {
    let mut random = SplitMix::new(seed);
    let mut all: Vec<Vec<String>> = Vec::new();
    for _ in 0..n {
        let n_words = 15 + random.below(400);
        let mut text = words(&mut random, n_words);
        if !all.is_empty() && random.below(3) > 0 {
            let source = &all[random.below(all.len() as u64) as usize];
            let start = random.below(source.len() as u64) as usize;
            text = source[start..].to_vec();
            text.truncate(20 + random.below(300) as usize);
            for _ in 0..random.below(4) {
                let place = random.below(text.len() as u64) as usize;
                text[place] = format!("changed{}", random.below(1000));
            }
            let n_own = random.below(12);
            text.extend(words(&mut random, n_own));
        }
        all.push(text);
    }
    all.iter().map(|text| text.join(" ")).collect()
}

/// The result by the definition: for each dropped document, its kept one and the share.
fn by_definition(texts: &[String], w: usize, tau: f64) -> Vec<Option<(usize, f64)>> {
    let shingler = Shingler::new(w.try_into().unwrap());
    let tokens = |text: &String| Tokenizer::default().tokens(text).fingerprints;
    let all: Vec<Vec<u64>> = texts.iter().map(tokens).collect();
    let sets: Vec<ShingleSet> = all.iter().map(|tokens| shingler.set(tokens)).collect();
    let common = common(&sets);
    let n_common = |a: usize, b: usize| common.get(&(a, b)).or_else(|| common.get(&(b, a)));
    let mut order: Vec<usize> = (0..texts.len())
        .filter(|i| all[*i].len() >= 4 * w)
        .collect();
    order.sort_by_key(|i| (std::cmp::Reverse(sets[*i].len()), *i));
    let mut found = vec![None; texts.len()];
    let mut kept: Vec<usize> = Vec::new();
    for &doc in &order {
        let share = |other: usize| {
            n_common(doc, other).copied().unwrap_or(0) as f64 / sets[doc].len() as f64
        };
        let mut best: Option<(usize, f64)> = None;
        for &other in &kept {
            let share = share(other);
            if share >= tau && best.is_none_or(|(_, most)| share > most) {
                best = Some((other, share));
            }
        }
        match best {
            None => kept.push(doc),
            best => found[doc] = best,
        }
    }
    found
}

/// A document contained in kept documents is dropped for the one that contains most of it.
#[test]
fn issue_29_contained_documents_are_those_of_the_definition() {
    let mut n_dropped = 0;
    for (seed, tau) in [(1, 0.9), (2, 0.9), (3, 0.95), (4, 1.0)] {
        let texts = texts(300, seed);
        let bench = Bench::with_texts(&texts);
        let summary = bench.run(&config(tau));
        let expected = by_definition(&texts, 5, tau);
        for (number, doc) in bench.docs().iter().enumerate() {
            // Exact duplicates are dropped first.
            if doc.rule.as_deref() == Some("exact") {
                continue;
            }
            let found = doc
                .kept_doc
                .map(|kept| (kept as usize, doc.similarity.unwrap()));
            assert_eq!(found, expected[number], "{seed}: document {number}");
            if let Some((kept, _)) = found {
                assert_eq!(doc.rule.as_deref(), Some("contained"));
                assert!(bench.docs()[kept].kept);
                n_dropped += 1;
            }
        }
        assert!(summary["counts"]["not_judged"].as_u64().unwrap() > 0);
    }
    assert!(n_dropped > 60, "{n_dropped}");
}

/// Results do not depend on threads and memory.
#[test]
fn issue_29_contained_gives_the_same_bytes() {
    let texts = texts(400, 9);
    let bench = Bench::with_texts(&texts);
    bench.run(&config(0.9));
    let expected = results(&bench.path("out"));
    for threads in [1, 3] {
        std::fs::remove_dir_all(bench.path("out")).unwrap();
        let mut config = config(0.9);
        config.memory = 1 << 12;
        config.corpus.threads = threads.try_into().unwrap();
        bench.run(&config);
        assert!(results(&bench.path("out")) == expected, "{threads} threads");
    }
}

#[test]
fn issue_29_an_excerpt_goes_and_the_whole_stays() {
    let mut random = SplitMix::new(5);
    let article = words(&mut random, 500);
    let other = words(&mut random, 500);
    let texts = [
        article[100..160].join(" "),
        article.join(" "),
        format!("{} {}", article[..50].join(" "), other[..50].join(" ")),
        other.join(" "),
        article[3..18].join(" "),
    ];
    let bench = Bench::with_texts(&texts);
    let summary = bench.run(&config(0.9));
    let kept: Vec<bool> = bench.docs().iter().map(|doc| doc.kept).collect();
    // The last one is too short to be compared.
    assert_eq!(kept, [false, true, true, true, true]);
    assert_eq!(bench.docs()[0].kept_doc, Some(1));
    assert_eq!(bench.docs()[0].similarity, Some(1.0));
    assert_eq!(summary["counts"]["not_judged"], 1);
}

/// Pages with the same URL are duplicates, whatever their text. The first or the newest is kept.
#[test]
fn issue_29_the_same_url_is_kept_once() {
    let bench = Bench::new();
    let rows = [
        (Some("http://Example.org:80/%7Ea"), "first text", 3),
        (Some("http://example.org/~a"), "another text", 9),
        (Some("http://example.org/~b"), "first text", 1),
        (None, "first text", 5),
        (None, "first text", 6),
        (Some("http://example.org/~a#part"), "", 2),
    ];
    let line = |(url, text, date): &(Option<&str>, &str, u64)| {
        json!({ "url": url, "text": text, "date": date }).to_string() + "\n"
    };
    bench.write("input.jsonl", &rows.iter().map(line).collect::<String>());
    for (keep, kept) in [
        (Keep::First, [true, false, true, true, true, false]),
        (Keep::Newest, [false, true, true, true, true, false]),
    ] {
        let mut config = Config {
            keep,
            ..Config::default()
        };
        config.policy.criterion = Criterion::Url;
        let summary = bench.run(&config);
        let docs = bench.docs();
        assert_eq!(docs.iter().map(|doc| doc.kept).collect::<Vec<_>>(), kept);
        let rules: BTreeSet<_> = docs.iter().filter_map(|doc| doc.rule.clone()).collect();
        assert_eq!(rules, BTreeSet::from(["url".to_owned()]));
        assert!(docs.iter().all(|doc| doc.similarity.is_none()));
        assert_eq!(summary["counts"]["dropped_near"], 2);
        std::fs::remove_dir_all(bench.path("out")).unwrap();
        // Options that the policy does not support are errors.
        let all = Config {
            pairs: ListedPairs::All,
            ..config
        };
        let error = bench.run_on(&["input.jsonl"], &all).unwrap_err();
        assert!(matches!(error, Error::PolicyOption { .. }), "{error}");
    }
}

/// Rows of a published collection; none if it is not next to the repository.
fn published(name: &str) -> Option<Vec<Value>> {
    let path = Path::new(DATA).join(name);
    if !path.exists() {
        println!("skipped: no {name} beside the repository");
        return None;
    }
    let bytes = zstd::decode_all(std::fs::File::open(path).unwrap()).unwrap();
    Some(rows(&bytes))
}

fn sets(rows: &[Value], w: usize) -> Vec<ShingleSet> {
    let shingler = Shingler::new(w.try_into().unwrap());
    let texts = rows.iter().map(|row| row["text"].as_str().unwrap());
    texts
        .map(|text| shingler.set(&Tokenizer::default().tokens(text).fingerprints))
        .collect()
}

/// Common shingles of the smaller and the larger set of each pair that has any. Of equal sets the
/// later counts as the smaller, as in the policy.
fn common(sets: &[ShingleSet]) -> HashMap<(usize, usize), usize> {
    let mut holders: Vec<(u64, usize)> = Vec::new();
    for (doc, set) in sets.iter().enumerate() {
        holders.extend(set.as_slice().iter().map(|shingle| (*shingle, doc)));
    }
    holders.sort_unstable();
    let mut common = HashMap::new();
    for docs in holders.chunk_by(|a, b| a.0 == b.0) {
        for (i, &(_, b)) in docs.iter().enumerate() {
            for &(_, a) in &docs[..i] {
                let pair = if sets[a].len() < sets[b].len() {
                    (a, b)
                } else {
                    (b, a)
                };
                *common.entry(pair).or_default() += 1;
            }
        }
    }
    common
}

/// Pairs with containment of at least 0.5, 0.8, 0.9, 0.95 and 1, those of 0.9 with a similarity
/// below 0.8, and documents contained at 0.9 in a longer one.
#[track_caller]
fn check_counts(
    rows: &[Value],
    w: usize,
    expected: [usize; 5],
    below: Option<usize>,
    contained: usize,
) {
    let sets = sets(rows, w);
    let pairs: Vec<(usize, f64, f64)> = common(&sets)
        .into_iter()
        .map(|((a, b), n)| {
            let all = sets[a].len() + sets[b].len() - n;
            (a, n as f64 / sets[a].len() as f64, n as f64 / all as f64)
        })
        .collect();
    let at_least = |share: f64| pairs.iter().filter(move |pair| pair.1 >= share);
    let counts = [0.5, 0.8, 0.9, 0.95, 1.0].map(|share| at_least(share).count());
    assert_eq!(counts, expected, "w = {w}");
    let n_below = at_least(0.9).filter(|pair| pair.2 < 0.8).count();
    assert!(
        below.is_none_or(|below| n_below == below),
        "w = {w}: {n_below}"
    );
    let docs: BTreeSet<usize> = at_least(0.9).map(|pair| pair.0).collect();
    assert_eq!(docs.len(), contained, "w = {w}");
}

/// The counts of pairs, and the result of the policy compared with its definition.
#[test]
fn issue_29_containment_in_revisions() {
    let Some(rows) = published("neardup-pep-revisions/revisions.jsonl.zst") else {
        return;
    };
    check_counts(&rows, 5, [2810, 2135, 1732, 1325, 22], Some(255), 898);
    check_counts(&rows, 8, [2667, 1984, 1549, 1100, 22], None, 836);
    let texts: Vec<String> = rows
        .iter()
        .map(|row| row["text"].as_str().unwrap().to_owned())
        .collect();
    let expected = by_definition(&texts, 5, 0.9);
    let bench = Bench::with_texts(&texts);
    bench.run(&config(0.9));
    for (number, doc) in bench.docs().iter().enumerate() {
        if doc.rule.as_deref() != Some("exact") {
            let found = doc.kept_doc.map(|kept| kept as usize);
            assert_eq!(found, expected[number].map(|(kept, _)| kept), "{number}");
        }
    }
}

/// Short answers: pairs by containment, and the share of an answer that its source contains, by
/// kind.
#[test]
fn issue_29_containment_of_short_answers() {
    let Some(rows) = published("neardup-short-answers/answers.jsonl.zst") else {
        return;
    };
    let sets = sets(&rows, 3);
    let shares: Vec<f64> = common(&sets)
        .into_iter()
        .map(|((a, _), n)| n as f64 / sets[a].len() as f64)
        .collect();
    let at_least = |share: f64| shares.iter().filter(|found| **found >= share).count();
    assert_eq!([0.5, 0.8, 0.9, 1.0].map(at_least), [65, 23, 14, 0]);
    let tokens: Vec<Vec<u64>> = rows
        .iter()
        .map(|row| {
            Tokenizer::default()
                .tokens(row["text"].as_str().unwrap())
                .fingerprints
        })
        .collect();
    let source = |row: &Value| {
        rows.iter()
            .position(|other| other["category"] == "orig" && other["task"] == row["task"])
            .unwrap()
    };
    for (kind, n, containment, share, n_with) in [
        ("cut", 19, 0.651, 0.666, 17),
        ("light", 19, 0.504, 0.434, 18),
        ("heavy", 19, 0.301, 0.218, 16),
        ("non", 38, 0.025, 0.001, 1),
    ] {
        let of_kind = |(_, row): &(usize, &Value)| row["category"] == kind;
        let answers: Vec<(usize, usize)> = rows
            .iter()
            .enumerate()
            .filter(of_kind)
            .map(|(number, row)| (number, source(row)))
            .collect();
        assert_eq!(answers.len(), n);
        let mean = |values: Vec<f64>| values.iter().sum::<f64>() / n as f64;
        let contained = answers
            .iter()
            .map(|&(a, b)| sets[a].n_common(&sets[b]) as f64 / sets[a].len() as f64);
        assert_eq!(
            (mean(contained.collect()) * 1000.0).round(),
            containment * 1000.0
        );
        let covered: Vec<f64> = answers
            .iter()
            .map(|&(a, b)| covered(&tokens[a], &tokens[b], 8))
            .collect();
        let with = covered.iter().filter(|share| **share > 0.0).count();
        assert_eq!(
            ((mean(covered) * 1000.0).round(), with),
            (share * 1000.0, n_with),
            "{kind}"
        );
    }
}

/// The share of the tokens of a text in windows that another text also contains.
fn covered(tokens: &[u64], other: &[u64], n: usize) -> f64 {
    let windows: BTreeSet<&[u64]> = other.windows(n).collect();
    let mut is_covered = vec![false; tokens.len()];
    for (start, window) in tokens.windows(n).enumerate() {
        if windows.contains(window) {
            is_covered[start..start + n].fill(true);
        }
    }
    is_covered.iter().filter(|covered| **covered).count() as f64 / tokens.len() as f64
}
