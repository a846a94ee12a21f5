//! Tests of quality on real pages, against values measured with zlib and Python.

use std::collections::BTreeMap;

use arose::quality::{Analyzer, Family, Selection, weight};
use arose_corpus::html::{HtmlConfig, Links, Mode, Switch, extract};
use arose_corpus::quality::{Assessor, Detail};
use serde_json::Value;

use crate::shared::pages;

/// Typical words of spam.
const WORDS: &str = "price buy cheap online discount pharmacy insurance mortgage casino poker free \
    shipping gold tablets prescription loan credit hotel travel flights rolex \
    replica watches software download music movies dating singles degree diploma \
    university weight loss pills bonus jackpot roulette betting forex trading \
    ringtones wallpapers games mobile phone cards gift vacation tickets";

/// 500 random words from the first `n_distinct`.
fn stuffing(n_distinct: u64) -> String {
    let words: Vec<&str> = WORDS.split(' ').collect();
    let mut state = n_distinct;
    let draws: Vec<&str> = (0..500)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005);
            state = state.wrapping_add(1_442_695_040_888_963_407);
            words[((state >> 33) % n_distinct) as usize]
        })
        .collect();
    draws.join(" ")
}

/// In the literature, stuffing with 5, 20 and 50 longer words has compression ratios of 9.3, 6.0
/// and 5.0. With these words, zlib gives the ratios below. zlib-rs is within 2%.
#[test]
fn ratios_of_stuffed_texts() {
    let mut assessor = Assessor::default();
    for (n_distinct, expected) in [(5, 8.2165), (20, 4.6795), (50, 3.5967)] {
        let ratio = assessor.ratio(&stuffing(n_distinct)).unwrap();
        println!("{n_distinct} words: {ratio:.4}, zlib {expected}");
        assert!(
            (ratio / expected - 1.0).abs() < 0.02,
            "{n_distinct}: {ratio}"
        );
    }
    let phrase = "cheap pills online without prescription ".repeat(200);
    let ratio = assessor.ratio(&phrase).unwrap();
    println!("one phrase: {ratio:.1}");
    assert!((40.0..=70.0).contains(&ratio), "one phrase: {ratio}");
    assert_eq!(assessor.ratio(""), None);
    assert!(assessor.ratio("x").unwrap() < 1.0);
    // Only the beginning counts, in characters and not in bytes.
    let long = "ü".repeat(4_500) + &phrase;
    assert_eq!(assessor.ratio(&long), assessor.ratio(&"ü".repeat(4_500)));
}

fn good_pages() -> Vec<Value> {
    let text = |page: &Value| {
        page["main_content"]
            .as_str()
            .unwrap_or("")
            .trim()
            .to_owned()
    };
    let mut pages = pages("extract-wcxb-dev");
    pages.retain(|page| !text(page).is_empty());
    pages
}

/// Median 2.17 and 4 pages above 4 with zlib, on the first 4,500 characters.
#[test]
fn ratios_of_good_texts() {
    let pages = good_pages();
    if pages.is_empty() {
        return;
    }
    let mut assessor = Assessor::default();
    let mut ratios: Vec<f64> = pages
        .iter()
        .map(|page| {
            assessor
                .ratio(page["main_content"].as_str().unwrap())
                .unwrap()
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    let median = ratios[ratios.len() / 2];
    let n_high = ratios.iter().filter(|ratio| **ratio > 4.0).count();
    println!("median {median:.3}, {n_high} above 4");
    assert!((median / 2.17 - 1.0).abs() < 0.02, "{median}");
    assert!((3..=7).contains(&n_high), "{n_high}");
}

/// The shares of good pages that the published rules reject: within one point of 5.9% (Gopher's
/// quality rules), 12% (its repetition rules), 33% (FineWeb) and 35% (any of these). By type of
/// page, they are within 2.5 points, since a page is 1.9% of the second smallest type.
#[test]
fn false_alarms_on_good_pages() {
    let pages = good_pages();
    if pages.is_empty() {
        return;
    }
    assert_eq!(pages.len(), 555);
    let gopher = Selection::named("gopher").unwrap();
    let is_repetition = |name: &str| name.contains("_dup_") || name.contains("_top_");
    let (mut counts, mut types) = (BTreeMap::new(), BTreeMap::new());
    let mut analyzer = Analyzer::default();
    for page in &pages {
        let signals = analyzer.signals(page["main_content"].as_str().unwrap());
        let failed = Selection::failed(&signals);
        let of = |family: Family| {
            let rules = Selection::named(family.as_str()).unwrap();
            !failed.intersection(rules).is_empty()
        };
        let mut rules = failed.intersection(gopher).rules();
        let repeats = rules.any(|rule| is_repetition(rule.name));
        let mut rules = failed.intersection(gopher).rules();
        let is_poor = rules.any(|rule| !is_repetition(rule.name));
        let any = of(Family::Gopher) || of(Family::FineWeb);
        for (name, is_rejected) in [
            ("gopher quality", is_poor),
            ("gopher repetition", repeats),
            ("gopher", of(Family::Gopher)),
            ("c4", of(Family::C4)),
            ("fineweb", of(Family::FineWeb)),
            ("gopher or fineweb", any),
            ("any", !failed.is_empty()),
        ] {
            *counts.entry(name).or_insert(0) += u32::from(is_rejected);
        }
        let kind = page["page_type"].as_str().unwrap().to_owned();
        let kind: &mut (u32, u32) = types.entry(kind).or_default();
        *kind = (kind.0 + 1, kind.1 + u32::from(any));
    }
    let percent = |n: u32, of: u32| 100.0 * f64::from(n) / f64::from(of);
    println!("{counts:?} of 555; gopher or fineweb by type {types:?}");
    for (name, expected) in [
        ("gopher quality", 5.9),
        ("gopher repetition", 12.0),
        ("fineweb", 33.0),
        ("gopher or fineweb", 35.0),
    ] {
        let share = percent(counts[name], 555);
        assert!((share - expected).abs() <= 1.0, "{name}: {share}");
    }
    for (name, expected) in [
        ("article", 17.0),
        ("product", 35.0),
        ("forum", 49.0),
        ("documentation", 52.0),
        ("listing", 57.0),
        ("collection", 58.0),
    ] {
        let (n, rejected) = types[name];
        let share = percent(rejected, n);
        assert!((share - expected).abs() <= 2.5, "{name}: {share}");
    }
}

/// Number of pages with a weight below 0.5, read like the crawler reads them.
fn count_light(pages: &[Value]) -> usize {
    let config = HtmlConfig {
        mode: Mode::Henzinger,
        links: Links::Collect,
        visibility: Switch::On,
        ..HtmlConfig::default()
    };
    let mut assessor = Assessor::default();
    let (mut n_light, mut n_spared) = (0, 0);
    for page in pages {
        let page_of = extract(page["html"].as_str().unwrap(), None, &config);
        let metadata = &page_of.metadata;
        let mut judge = |detail| {
            let title = metadata.title.as_deref();
            assessor.page(&page_of.text, title, Some(metadata), detail)
        };
        let (exact, (text, facts)) = (judge(Detail::Exact), judge(Detail::IfNotable));
        let q = weight(&text, &facts);
        // Where the ratio is not computed, it would not have mattered.
        assert!(
            (weight(&exact.0, &exact.1) - q).abs() < 0.02,
            "{}",
            page["id"]
        );
        n_spared += usize::from(facts.ratio.is_none());
        if q < 0.5 {
            n_light += 1;
            println!(
                "q {q:.2} {} {} odds {:.2} {text:?} {facts:?}",
                page["id"],
                page["page_type"],
                facts.anchor_odds()
            );
        }
    }
    println!(
        "{n_light} of {} below 0.5; {n_spared} ratios spared",
        pages.len()
    );
    assert!(2 * n_spared > pages.len(), "{n_spared}");
    n_light
}

/// The weight of whole pages: at least 0.5 for 98%.
#[test]
fn good_pages_weigh_enough() {
    let pages = good_pages();
    if pages.is_empty() {
        return;
    }
    let n_light = count_light(&pages);
    assert!(n_light * 50 <= pages.len(), "{n_light}");
}

/// The same on pages that were not used to choose a threshold. The synthetic pages of the second
/// set, which are tests of a parser, repeat placeholder text and do look like spam.
#[test]
fn issue_26_other_good_pages_weigh_enough() {
    let is_made_up = |page: &Value| {
        let html = page["html"].as_str().unwrap().to_lowercase();
        html.contains("lorem ipsum") || html.contains("regarding item#")
    };
    for name in ["extract-articles-181", "extract-readability-130"] {
        let mut pages = pages(name);
        if pages.is_empty() {
            return;
        }
        let n_all = pages.len();
        pages.retain(|page| !is_made_up(page));
        let n_light = count_light(&pages);
        println!("{name}: {n_light} of {}, {n_all} in all", pages.len());
        assert!(
            n_all - pages.len() <= 30 && n_light * 50 <= pages.len(),
            "{name}: {n_light}"
        );
    }
}
