//! Tests of the policy `content` against brute force, which compares every pair by the definition.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::num::NonZeroUsize;

use arose::content::{Content, Level, Score, Scorer, shingler};
use arose::mix::{SplitMix, mix};
use arose::rule::{Criterion, Remove};
use arose::site::{SiteKind, site};
use arose::token::Tokenizer;
use arose_dedup::index::{Index, Settings};
use arose_dedup::{Against, Config, ListedPairs, Progress, SiteCounts, Start, Update};
use serde_json::json;

use crate::support::{Bench, results};

/// A document of a test: its URL, if any, and its text.
pub(crate) type Page = (Option<String>, String);

pub(crate) fn config(remove: Remove) -> Config {
    let mut config = Config::default();
    config.policy.criterion = Criterion::Content(remove);
    config
}

pub(crate) fn bench(pages: &[Page]) -> Bench {
    let bench = Bench::new();
    let lines = pages.iter().enumerate().map(|(i, (url, text))| {
        let mut line = json!({ "id": format!("d{i}"), "text": text });
        if let Some(url) = url {
            line["url"] = json!(url);
        }
        format!("{line}\n")
    });
    bench.write("input.jsonl", &lines.collect::<String>());
    bench
}

fn site_of(page: &Page) -> String {
    let host = page.0.as_deref().and_then(|url| url.split('/').nth(2));
    host.map_or_else(String::new, |host| {
        site(host, SiteKind::Registrable).to_string()
    })
}

pub(crate) fn shingles(text: &str) -> Vec<u64> {
    let mut shingles = Vec::new();
    let tokens = Tokenizer::default().tokens(text).fingerprints;
    shingler().shingles_into(&tokens, &mut shingles);
    shingles
}

/// The contents of all pages, weighted by counting.
pub(crate) fn contents(pages: &[Page], site_counts: SiteCounts) -> Vec<Content> {
    let mut holders: BTreeMap<(String, u64), BTreeSet<String>> = BTreeMap::new();
    for page in pages {
        let url = page.0.clone().unwrap_or_else(|| page.1.clone());
        for shingle in shingles(&page.1) {
            let key = (site_of(page), shingle);
            holders.entry(key).or_default().insert(url.clone());
        }
    }
    let content = |page: &Page| {
        let (site, shingles) = (site_of(page), shingles(&page.1));
        let n_others = |shingle| holders[&(site.clone(), shingle)].len() as u64 - 1;
        if site_counts == SiteCounts::Exact {
            return Content::of_site(&shingles, n_others);
        }
        let places = 0..shingles.len();
        let sampled = places
            .clone()
            .filter(|place| mix(shingles[*place]).is_multiple_of(16));
        let nearest = |place: usize| sampled.clone().min_by_key(|other| other.abs_diff(place));
        let counts = places.filter_map(|place| Some(n_others(shingles[nearest(place)?])));
        Content::of_counts(&shingles, &counts.collect::<Vec<u64>>())
    };
    pages.iter().map(content).collect()
}

/// The scores of all pairs that reach a level.
fn brute_force(pages: &[Page], site_counts: SiteCounts) -> BTreeMap<(u64, u64), Score> {
    let contents = contents(pages, site_counts);
    let mut scorer = Scorer::default();
    let mut found = BTreeMap::new();
    for b in 0..contents.len() {
        for a in 0..b {
            let score = scorer.score(&contents[a], &contents[b]);
            if score.level() <= Level::Content {
                found.insert((a as u64, b as u64), score);
            }
        }
    }
    found
}

/// Pages of a few sites, each with its own frame: articles, many of which have versions on the same
/// site and on others.
fn pages(n: usize, n_sites: u64, seed: u64) -> Vec<Page> {
    let mut random = SplitMix::new(seed);
    let mut pages = Vec::new();
    while pages.len() < n {
        let n_words = 40 + random.below(100);
        let article: Vec<u64> = (0..n_words).map(|_| random.below(20_000)).collect();
        for _ in 0..1 + random.below(3) {
            let mut words = article.clone();
            for _ in 0..random.below(12) {
                let at = random.below(n_words) as usize;
                words[at] = 20_000 + random.below(100_000);
            }
            let site = random.below(n_sites);
            let words: String = words.iter().map(|word| format!("w{word} ")).collect();
            let frame = |from: u64| -> String {
                let words = (from..from + 40).map(|i| format!("site{site}frame{i} "));
                words.collect()
            };
            let url = format!("http://www.site{site}.example/page{}", pages.len());
            pages.push((Some(url), format!("{}{words}{}", frame(0), frame(40))));
        }
    }
    for i in (1..pages.len()).rev() {
        pages.swap(i, random.below(i as u64 + 1) as usize);
    }
    pages.truncate(n);
    pages
}

fn level_name(score: &Score) -> &'static str {
    score.level().as_str()
}

/// Scores equal those of the definition to the last bit. All listed pairs are also found by brute
/// force, and hardly any is missing.
#[test]
fn issue_24_pairs_are_those_of_brute_force() {
    let pages = pages(500, 9, 1);
    let expected = brute_force(&pages, SiteCounts::Exact);
    let bench = bench(&pages);
    bench.run(&Config {
        pairs: ListedPairs::All,
        ..config(Remove::Same)
    });
    let found = bench.pairs();
    for pair in &found {
        let score = expected.get(&(pair.a, pair.b));
        let score = score.unwrap_or_else(|| panic!("{pair:?} is no pair"));
        assert_eq!(pair.content, Some(score.s));
        assert_eq!(pair.content_unweighted, Some(score.u));
        assert_eq!(pair.rule, level_name(score));
        assert!(pair.jaccard.is_some() && pair.b_sim.is_some() && pair.c_sim.is_some());
    }
    let found: BTreeSet<(u64, u64)> = found.iter().map(|pair| (pair.a, pair.b)).collect();
    for (is_inside, least) in [(true, 0.995), (false, 0.97)] {
        let all = expected.keys().filter(|(a, b)| {
            let [a, b] = [a, b].map(|doc| site_of(&pages[*doc as usize]));
            (a == b) == is_inside
        });
        let (n, n_found) = all.fold((0, 0), |(n, n_found), pair| {
            (n + 1, n_found + usize::from(found.contains(pair)))
        });
        assert!(n > 20, "{n} pairs");
        assert!(n_found as f64 >= least * f64::from(n), "{n_found} of {n}");
    }
    let n_same = expected
        .values()
        .filter(|score| score.level() == Level::Same);
    assert!(n_same.count() > 20);
}

/// Documents are dropped for one at the level `same`, no two kept documents are at that level, and
/// versions are grouped with one of which they are versions.
#[test]
fn issue_24_levels_decide_what_is_kept() {
    let pages = pages(400, 5, 2);
    let expected = brute_force(&pages, SiteCounts::Exact);
    let level = |a: u64, b: u64| {
        let score = expected.get(&(a.min(b), a.max(b)));
        score.map(Score::level)
    };
    for remove in [Remove::Same, Remove::Content] {
        let bench = bench(&pages);
        let summary = bench.run(&config(remove));
        let docs = bench.docs();
        let mut n_versions = 0;
        for (doc, row) in (0..).zip(&docs) {
            let Some(kept) = row.kept_doc else {
                assert!(row.kept && row.rule.is_none());
                if row.group != doc {
                    n_versions += 1;
                    assert_eq!(remove, Remove::Same);
                    assert_eq!(level(doc, row.group), Some(Level::Content), "{row:?}");
                    assert!(docs[row.group as usize].kept);
                    assert_eq!(docs[row.group as usize].group, row.group);
                }
                continue;
            };
            let level = level(doc, kept).unwrap();
            assert!(level == Level::Same || remove == Remove::Content, "{row:?}");
            assert_eq!(row.rule.as_deref(), Some(level.as_str()));
            assert_eq!(row.group, docs[kept as usize].group);
            let score = &expected[&(doc.min(kept), doc.max(kept))];
            let decided = if score.u >= 0.97 { score.u } else { score.s };
            assert_eq!(row.similarity, Some(decided));
        }
        let is_kept = |doc: &u64| docs[*doc as usize].kept;
        let both_kept = expected.iter().filter(|((a, b), score)| {
            let removes = score.level() == Level::Same || remove == Remove::Content;
            removes && is_kept(a) && is_kept(b)
        });
        let (n_missed, n_all) = (both_kept.count(), expected.len());
        assert!(n_missed * 100 <= n_all, "{n_missed} of {n_all}");
        assert_eq!(n_versions > 20, remove == Remove::Same, "{n_versions}");
        let groups = summary["counts"]["version_groups"].as_u64().unwrap();
        let members = summary["counts"]["versions"].as_u64().unwrap();
        assert_eq!(members - groups, n_versions);
    }
}

/// Pages of one template with different items: near duplicates by their shingles, but all kept.
#[test]
fn issue_24_templates_stay() {
    let mut pages: Vec<Page> = pages(60, 1, 3);
    let frame =
        |words: std::ops::Range<u32>| -> String { words.map(|i| format!("common{i} ")).collect() };
    let (before, after) = (frame(0..150), frame(150..300));
    for (i, page) in pages.iter_mut().enumerate() {
        let item: String = (0..20).map(|word| format!("item{i}word{word} ")).collect();
        page.1 = format!("{before}{item}{after}");
    }
    let near = bench(&pages);
    let jaccard = near.run(&Config::of(Criterion::jaccard()));
    assert!(jaccard["counts"]["dropped_near"].as_u64() > Some(50));
    let own = bench(&pages);
    let summary = own.run(&config(Remove::Content));
    assert_eq!(summary["counts"]["kept"], 60);
    assert_eq!(summary["sites"]["sites"], 1);
    // The same pages without URLs are also of one site.
    for page in &mut pages {
        page.0 = None;
    }
    let nameless = bench(&pages);
    assert_eq!(nameless.run(&config(Remove::Content))["counts"]["kept"], 60);
    // A page that was seen many times is one page, so no other page repeats it.
    for page in &mut pages {
        page.0 = Some("http://one.example/".to_owned());
    }
    let one = bench(&pages);
    let summary = one.run(&config(Remove::Content));
    assert_eq!(summary["sites"]["sites"], 0);
    assert!(summary["counts"]["dropped_near"].as_u64() > Some(50));
}

/// The same bytes with any number of threads and any memory, for all ways of counting.
#[test]
fn issue_24_same_bytes_at_any_thread_count_and_memory() {
    let bench = bench(&pages(300, 4, 4));
    for site_counts in [SiteCounts::Exact, SiteCounts::Sampled] {
        let mut expected = None;
        for (threads, memory) in [(1, 1 << 30), (2, 1 << 16), (5, 1 << 20)] {
            let mut config = Config {
                memory,
                site_counts,
                ..config(Remove::Same)
            };
            config.corpus.threads = NonZeroUsize::new(threads).unwrap();
            bench.run(&config);
            let found = results(&bench.path("out"));
            fs::remove_dir_all(bench.path("out")).unwrap();
            assert_eq!(expected.get_or_insert_with(|| found.clone()), &found);
        }
    }
}

/// Sampled counts give the scores of their definition to the last bit.
#[test]
fn issue_24_sampled_counts() {
    let pages = pages(400, 5, 5);
    let expected = brute_force(&pages, SiteCounts::Sampled);
    let bench = bench(&pages);
    bench.run(&Config {
        site_counts: SiteCounts::Sampled,
        ..config(Remove::Content)
    });
    let found = bench.pairs();
    assert!(found.len() > 50, "{}", found.len());
    for pair in found {
        let score = &expected[&(pair.a, pair.b)];
        assert_eq!(pair.content, Some(score.s));
        assert_eq!(pair.content_unweighted, Some(score.u));
        match pair.rule.as_str() {
            "exact" => assert_eq!(score.u, 1.0),
            rule => assert_eq!(rule, level_name(score)),
        }
    }
}

/// An index of the policy finds documents that a run has added to it, and the same text in another
/// frame.
#[test]
fn issue_24_a_run_beside_an_index() {
    let pages = pages(120, 3, 6);
    let bench = bench(&pages);
    let config = |update| Config {
        against: Some(Against {
            index: bench.path("index"),
            update,
        }),
        ..config(Remove::Same)
    };
    let settings = Settings::agreeing_with(&config(Update::Add));
    drop(Index::create(&bench.path("index"), settings).unwrap());
    let first = bench.run(&config(Update::Add));
    assert_eq!(first["index"]["agrees"], true);
    let n_kept = first["counts"]["kept"].as_u64().unwrap();
    assert!(n_kept > 50 && n_kept < 120, "{n_kept}");
    assert_eq!(first["index"]["added"], n_kept);
    let moved = pages.iter().enumerate().map(|(i, (_, text))| {
        let own = text
            .split_whitespace()
            .skip(40)
            .take_while(|word| word.starts_with('w'));
        let own = own.collect::<Vec<_>>().join(" ");
        let text = format!("{own} moved{i}");
        json!({ "url": format!("http://other.example/{i}"), "text": text }).to_string() + "\n"
    });
    bench.write("moved.jsonl", &moved.collect::<String>());
    let run = |input: &str, out: &str, config: &Config| {
        let (input, out) = (bench.path(input), bench.path(out));
        arose_dedup::run(&[input], config, &out, Start::Resume, &Progress::default()).unwrap()
    };
    let second = run("moved.jsonl", "second", &config(Update::Leave));
    let n_known = second["counts"]["dropped_known"].as_u64().unwrap();
    // The frames of all sites were known when their first documents were added.
    assert!((60..=120).contains(&n_known), "{n_known}");
    let again = run("input.jsonl", "again", &config(Update::Add));
    let n_again = again["counts"]["kept"].as_u64().unwrap();
    // A few documents that were dropped for others: the index counts one word pair in four, so its
    // scores differ from those of the run.
    assert!(n_again <= 8, "{n_again}");
}
