//! Tests on real text with a known ground truth: 4,598 encyclopedia articles in search engines of
//! known sizes.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use arose::mix::{SplitMix, mix};
use arose::rule::Criterion;
use arose_corpus::Config as Reading;
use arose_dedup::{Config as DedupConfig, Progress as DedupProgress, Start};
use arose_estimate::engine::{Engine, Http, Local, Log, Pages, Panel};
use arose_estimate::overlap::OverlapSettings;
use arose_estimate::pool::{PageMeasure, PoolConfig, Way, choose};
use arose_estimate::vocabulary::{self, Vocabulary};
use arose_estimate::{Findings, corpus_size, overlap, pool};
use arose_search::{Collapse, Config, Index, Progress, SearchDir, update};
use serde_json::{Value, json};

use crate::omega;

/// A page: its URL and its text.
type Article = (String, String);

#[expect(clippy::print_stdout, reason = "a skipped test must say so")]
fn articles() -> Option<Vec<Article>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/data/crawl-wikispeedia/articles.jsonl.zst");
    let Ok(file) = std::fs::File::open(&path) else {
        println!("skipped: {} is not there", path.display());
        return None;
    };
    let mut text = String::new();
    let mut decoder = zstd::Decoder::new(file).unwrap();
    decoder.read_to_string(&mut text).unwrap();
    let articles = text.lines().map(|line| {
        let article: Value = serde_json::from_str(line).unwrap();
        let title = article["title"].as_str().unwrap();
        let text = article["text"].as_str().unwrap().to_owned();
        (format!("http://wiki.example/{title}"), text)
    });
    Some(articles.collect())
}

/// The articles of a search engine: a share of all.
fn dealt(articles: &[Article], share: f64, engine: u64) -> Vec<Article> {
    let is_dealt = |place: usize| {
        let chance = mix(mix(place as u64) ^ mix(engine)) >> 11;
        (chance as f64) < share * (1_u64 << 53) as f64
    };
    let places = (0..articles.len()).filter(|&place| is_dealt(place));
    places.map(|place| articles[place].clone()).collect()
}

fn write(path: &Path, articles: &[Article]) {
    let lines = articles
        .iter()
        .map(|(url, text)| format!("{}\n", json!({ "url": url, "text": text })));
    std::fs::write(path, lines.collect::<String>()).unwrap();
}

fn local(folder: &Path, articles: &[Article]) -> Local {
    let (input, out): (PathBuf, PathBuf) = (folder.join("pages.jsonl"), folder.join("out"));
    write(&input, articles);
    let (config, progress) = (
        DedupConfig::of(Criterion::jaccard()),
        DedupProgress::default(),
    );
    arose_dedup::run(&[input], &config, &out, Start::Anew, &progress).unwrap();
    let folder = SearchDir::open(&out).unwrap();
    update(&folder, &Config::default(), &Progress::default()).unwrap();
    let index = Index::open(&folder).unwrap();
    Local::new(index, Collapse::Nothing, 100)
}

fn words(articles: &[Article]) -> Vocabulary {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pages.jsonl");
    write(&path, articles);
    vocabulary::open(&[path], Reading::default()).unwrap()
}

fn alone(name: &str, engine: impl Engine + 'static) -> Panel {
    Panel::new(
        vec![(name.to_owned(), Box::new(engine))],
        &[],
        Log::off(),
        u64::MAX,
    )
    .unwrap()
}

fn value(findings: &Findings, name: &str) -> f64 {
    let figure = findings.figure(name);
    let figure = figure.unwrap_or_else(|| panic!("no {name} in {findings:#?}"));
    figure.value.unwrap_or_else(|| panic!("{figure:?}"))
}

#[track_caller]
fn check_near(findings: &Findings, name: &str, truth: f64, tolerance: f64) {
    let value = value(findings, name);
    let error = value / truth - 1.0;
    assert!(
        error.abs() <= tolerance,
        "{name}: {value}, not {truth} ({error:+.3})"
    );
}

/// A local index and Xapian's, with 60% and 45% of the articles, and 200 pages sampled from each;
/// then the same again from the log alone. `bench/estimate` does it with 1,000 pages, which takes a
/// minute.
#[test]
fn two_kinds_of_engines() {
    let (Some(articles), Some(program)) = (articles(), omega::program()) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let (ours, theirs) = (dealt(&articles, 0.6, 1), dealt(&articles, 0.45, 2));
    let local = local(folder.path(), &ours);
    let omega = omega::start(&program, &folder.path().join("omega"), &theirs);
    // The server of the test has the texts; nothing else is fetched.
    let pages = Rc::new(Pages::new(arose_crawl::Settings::default()));
    let engines: Vec<(String, Box<dyn Engine>)> = vec![
        ("ours".to_owned(), Box::new(local)),
        (
            "omega".to_owned(),
            Box::new(Http::new(&omega, &pages).unwrap()),
        ),
    ];
    let words = words(&articles);
    let path = folder.path().join("requests.jsonl");
    let log = Log::open(&path).unwrap();
    let mut panel = Panel::new(engines, &words, log, u64::MAX).unwrap();
    let settings = OverlapSettings {
        n_samples: 200,
        ..OverlapSettings::default()
    };
    let findings = overlap::run(&mut panel, &words, &settings).unwrap();
    let (n_ours, n_theirs) = (ours.len() as f64, theirs.len() as f64);
    let mut union: Vec<&Article> = ours.iter().chain(&theirs).collect();
    union.sort_unstable();
    union.dedup();
    let n_union = union.len() as f64;
    // Two and a half standard errors each.
    check_near(&findings, "omega / ours", n_theirs / n_ours, 0.25);
    check_near(&findings, "ours / union", n_ours / n_union, 0.10);
    check_near(&findings, "omega / union", n_theirs / n_union, 0.15);
    let is_cut = |warning: &String| warning.contains("cut to at most 100 results");
    assert!(
        findings.warnings.iter().all(is_cut),
        "{:?}",
        findings.warnings
    );

    let log = Log::replay(&path).unwrap();
    let words = log.header().unwrap().words.clone();
    let replayed = overlap::run(&mut Panel::replay(log), &words, &settings).unwrap();
    assert_eq!(replayed, findings);
}

#[test]
fn number_of_articles() {
    let Some(articles) = articles() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let ours = dealt(&articles, 0.6, 1);
    let mut panel = alone("ours", local(folder.path(), &ours));
    let words = words(&articles);
    let pools = corpus_size::Pools {
        first: choose(&words, &PoolConfig::default()),
        ..corpus_size::Pools::default()
    };
    for seed in 1..=5 {
        let settings = corpus_size::CorpusSizeSettings {
            n_queries: 800,
            n_controls: 10,
            seed,
        };
        let findings = corpus_size::run(&mut panel, 0, &words, &pools, &settings).unwrap();
        check_near(
            &findings,
            "pages matched by the pool",
            ours.len() as f64,
            0.10,
        );
    }
}

/// Articles truncated to very different lengths: the uncorrected sampler favours the long ones.
#[test]
fn mean_length() {
    let Some(articles) = articles() else {
        return;
    };
    let mut random = SplitMix::new(5);
    let cut = |(url, text): &Article| {
        // Log-normal lengths, from the sum of uniform numbers.
        let factor: f64 = (0..12).map(|_| random.next_f64()).sum::<f64>() - 6.0;
        let n = (60.0 * (0.9 * factor).exp()).clamp(10.0, 700.0) as usize;
        let words: Vec<&str> = text.split_whitespace().take(n).collect();
        (url.clone(), words.join(" "))
    };
    let articles: Vec<Article> = articles.iter().take(3000).map(cut).collect();
    let folder = tempfile::tempdir().unwrap();
    let mut panel = alone("ours", local(folder.path(), &articles));
    let words = words(&articles);
    let pool = choose(&words, &PoolConfig::default());
    let settings = pool::PoolSettings {
        n_samples: 1000,
        measure: PageMeasure::Words,
        ways: vec![Way::Importance, Way::Plain],
        n_controls: 10,
        seed: 1,
    };
    let findings = pool::run(&mut panel, 0, &words, pool, &settings).unwrap();
    let lengths: usize = articles.iter().map(|(_, text)| n_words(text)).sum();
    let truth = lengths as f64 / articles.len() as f64;
    check_near(
        &findings,
        "words per page, importance-weighted",
        truth,
        0.05,
    );
    let plain = value(&findings, "words per page, plain");
    assert!(plain > 1.2 * truth, "{plain} for {truth}");
}

fn n_words(text: &str) -> usize {
    let mut n = 0;
    arose::token::Tokenizer::default().for_each_place(text, |_, _| n += 1);
    n
}
