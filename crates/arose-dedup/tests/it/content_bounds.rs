//! Tests of the cost of the policy `content` on uniform corpora: twice the pages take twice the
//! work.

use std::fs;
use std::num::NonZeroUsize;

use arose::mix::SplitMix;
use arose::rule::Remove;
use arose_dedup::Config;
use arose_dedup::evaluate::plant;
use serde_json::Value;

use crate::content::{Page, bench, config};
use crate::support::Bench;

/// Counts of work that may grow linearly with the pages.
const WORK: [&str; 3] = ["tested", "candidates", "pairs"];

fn count(summary: &Value, name: &str) -> u64 {
    summary["counts"][name].as_u64().unwrap()
}

/// Runs on `n` and on `2 n` pages. Each count of the second run is at most 2.25 times that of the
/// first, or small compared with the pages.
#[track_caller]
fn check_doubling(n: usize, pages: impl Fn(usize) -> Vec<Page>) -> [Value; 2] {
    let summaries = [n, 2 * n].map(|n| {
        let config = Config {
            cap: NonZeroUsize::new(50).unwrap(),
            ..config(Remove::Same)
        };
        bench(&pages(n)).run(&config)
    });
    let costs = summaries
        .each_ref()
        .map(|summary| WORK.map(|name| count(summary, name)));
    for (small, large) in costs[0].iter().zip(costs[1]) {
        assert!(large <= small * 9 / 4 + n as u64, "{costs:?}");
    }
    summaries
}

fn url(site: usize, page: usize) -> Option<String> {
    Some(format!("http://www.site{site}.example/{page}"))
}

fn words(name: &str, n: usize) -> String {
    (0..n).map(|i| format!("{name}{i} ")).collect()
}

/// Pages of one template with an item each: all are kept, and each has a bounded number of
/// candidates.
#[test]
fn issue_24_a_template_is_linear() {
    let (before, after) = (words("before", 60), words("after", 60));
    let page = |page: usize| {
        let item = words(&format!("page{page}item"), 15);
        (url(0, page), format!("{before}{item}{after}"))
    };
    let summaries = check_doubling(800, |n| (0..n).map(page).collect());
    for (summary, n) in summaries.iter().zip([800, 1600]) {
        assert_eq!(count(summary, "kept"), n);
        assert!(count(summary, "tested") <= 7 * 100 * n, "{summary}");
    }
}

/// Pages of one template with only one word of their own: nearly the same, and one is kept.
#[test]
fn issue_24_nearly_equal_pages_are_linear() {
    let (before, after) = (words("before", 60), words("after", 60));
    let page = |page: usize| (url(0, page), format!("{before}number{page} {after}"));
    let summaries = check_doubling(800, |n| (0..n).map(page).collect());
    for summary in &summaries {
        assert_eq!(count(summary, "kept"), 1, "{summary}");
    }
}

/// Exact duplicates, on one site and on a site each, are dropped before any comparison.
#[test]
fn issue_24_equal_pages_are_linear() {
    for one_site in [true, false] {
        let page = |page: usize| {
            let url = if one_site { url(0, page) } else { url(page, 0) };
            (url, words("word", 100))
        };
        let summaries = check_doubling(500, |n| (0..n).map(page).collect());
        for summary in &summaries {
            assert_eq!(count(summary, "kept"), 1);
            assert_eq!(count(summary, "tested"), 0);
        }
    }
}

/// Texts of the same few words, so that most pairs of words are on many pages of a large site.
fn small_vocabulary(n: usize, site: impl Fn(usize) -> usize) -> Vec<Page> {
    let mut random = SplitMix::new(5);
    let mut text = || -> String {
        let words = (0..80).map(|_| {
            let limit = random.below(300) + 1;
            format!("w{} ", random.below(limit))
        });
        words.collect()
    };
    (0..n).map(|page| (url(site(page), page), text())).collect()
}

/// One large site: its word pairs are counted once, however many pages contain them.
#[test]
fn issue_24_one_large_site_is_linear() {
    let summaries = check_doubling(800, |n| small_vocabulary(n, |_| 0));
    for (summary, n) in summaries.iter().zip([800, 1600]) {
        assert_eq!(count(summary, "kept"), n);
        assert_eq!(summary["sites"]["sites"], 1);
        assert_eq!(summary["sites"]["pages"], n);
        assert!(summary["sites"]["framed_word_pairs"].as_u64() > Some(500));
    }
}

/// Sites of one page and of four: nothing is counted.
#[test]
fn issue_24_many_small_sites_are_linear() {
    for n_pages in [1, 4] {
        let summaries = check_doubling(800, |n| small_vocabulary(n, |page| page / n_pages));
        for summary in &summaries {
            assert_eq!(summary["sites"]["sites"], 0);
            assert_eq!(summary["sites"]["framed_word_pairs"], 0);
        }
    }
}

/// Documents as in the measurements: copies, versions, templates, mirrors and unrelated pages.
#[test]
fn issue_24_planted_documents_are_linear() {
    let summaries = [1000, 2000, 4000].map(|n_documents| {
        let plan = plant::Plan::new(plant::PlantConfig {
            n_documents,
            n_sites: n_documents / 50,
            seed: 24,
            median_words: 60,
            w: NonZeroUsize::new(5).unwrap(),
            recipe: plant::Recipe::Mixed,
        });
        let bench = Bench::new();
        plant::write(&plan.unwrap(), &bench.path("planted")).unwrap();
        let planted = bench.path("planted/documents.jsonl");
        fs::rename(planted, bench.path("input.jsonl")).unwrap();
        bench.run(&config(Remove::Same))
    });
    for two in summaries.windows(2) {
        let [small, large] =
            [&two[0], &two[1]].map(|summary| WORK.map(|name| count(summary, name)));
        for (name, (small, large)) in WORK.iter().zip(small.iter().zip(large)) {
            assert!(large <= small * 9 / 4, "{name}: {small} {large}");
        }
        let kept = [&two[0], &two[1]].map(|summary| count(summary, "kept"));
        assert!(kept[1] > kept[0] * 7 / 4, "{kept:?}");
    }
}
