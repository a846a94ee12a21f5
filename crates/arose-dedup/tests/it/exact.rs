//! Tests of exact duplicates and of empty documents.

use arose::rule::Criterion;
use arose_corpus::html::Mode;
use arose_dedup::{Config, Empty, Error, Exact};
use serde_json::{Value, json};

use crate::support::{Bench, Doc};

fn run(texts: &[&str], config: &Config) -> (Value, Vec<Doc>) {
    let texts: Vec<String> = texts.iter().map(|&text| text.to_owned()).collect();
    let bench = Bench::with_texts(&texts);
    let summary = bench.run(config);
    let docs = bench.docs();
    (summary, docs)
}

/// A text long enough for near duplicates to be found, with `mark` in its middle.
fn long(mark: &str) -> String {
    let words: Vec<String> = (0..40).map(|i| format!("word{i}")).collect();
    format!("{} {mark} {}", words[..20].join(" "), words[20..].join(" "))
}

#[test]
fn symbols_tell_short_documents_apart() {
    let texts = [
        "C++", "C", "C#", "x += 1", "x -= 1", "😀", "🎉", "Hello", "hello",
    ];
    let (summary, docs) = run(&texts, &Config::of(Criterion::jaccard()));
    assert!(docs.iter().all(|doc| doc.kept), "{docs:?}");
    assert_eq!(summary["counts"]["dropped_exact"], 0);
    assert_eq!(summary["counts"]["empty"], 0);
}

#[test]
fn equal_symbols_are_exact_duplicates() {
    let (summary, docs) = run(
        &["😀", "C++", "😀", " C++\n"],
        &Config::of(Criterion::jaccard()),
    );
    let kept: Vec<_> = docs.iter().map(|doc| doc.kept_doc).collect();
    assert_eq!(kept, [None, None, Some(0), Some(1)]);
    assert_eq!(summary["counts"]["dropped_exact"], 2);
}

#[test]
fn whitespace_and_unicode_form_do_not_count() {
    let texts = [
        "un caf\u{e9} au lait",
        " un  cafe\u{301}\u{a0}au\r\n\tlait\u{2003}",
        "un café au-lait",
    ];
    let (_, docs) = run(&texts, &Config::of(Criterion::jaccard()));
    let rules: Vec<_> = docs.iter().map(|doc| doc.rule.as_deref()).collect();
    assert_eq!(rules, [None, Some("exact"), None]);
}

/// Equal tokens with different symbols: a near duplicate, with its score.
#[test]
fn other_symbols_make_a_near_duplicate() {
    let texts = [long("a += b"), long("a -= b"), long("a += b")];
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let (summary, docs) = run(&texts, &Config::of(Criterion::jaccard()));
    let rules: Vec<_> = docs.iter().map(|doc| doc.rule.as_deref()).collect();
    assert_eq!(rules, [None, Some("jaccard"), Some("exact")]);
    assert_eq!(docs[1].similarity, Some(1.0));
    assert_eq!(summary["counts"]["dropped_near"], 1);
    assert_eq!(summary["counts"]["dropped_exact"], 1);
}

#[test]
fn empty_documents_are_kept_and_counted() {
    let (summary, docs) = run(
        &["", "a rose", " \n\t", "", "\u{a0}"],
        &Config::of(Criterion::jaccard()),
    );
    assert!(docs.iter().all(|doc| doc.kept), "{docs:?}");
    assert_eq!(summary["counts"]["empty"], 4);
    assert_eq!(summary["counts"]["dropped_exact"], 0);
    assert_eq!(summary["counts"]["pairs"], 0);
    assert_eq!(summary["counts"]["clusters"], 0);
}

/// A page that contains only pictures is not an empty document.
#[test]
fn pages_of_pictures_are_told_apart_by_them() {
    let bench = Bench::new();
    let page = |src: &str| json!({ "html": format!("<p><img src={src}></p>") }).to_string() + "\n";
    let lines = [page("a.png"), page("b.png"), page("a.png")];
    bench.write("input.jsonl", &lines.concat());
    let mut config = Config::of(Criterion::jaccard());
    config.corpus.html.mode = Mode::Henzinger;
    let summary = bench.run(&config);
    let kept: Vec<_> = bench.docs().iter().map(|doc| doc.kept_doc).collect();
    assert_eq!(kept, [None, None, Some(0)]);
    assert_eq!(summary["counts"]["empty"], 0);
    // Visible text has no pictures, so these pages are empty and all are kept.
    let visible = Bench::new();
    visible.write("input.jsonl", &lines.concat());
    let summary = visible.run(&Config::default());
    assert!(visible.docs().iter().all(|doc| doc.kept));
    assert_eq!(summary["counts"]["empty"], 3);
}

#[test]
fn empty_documents_are_dropped_on_request() {
    let config = Config {
        empty: Empty::Drop,
        ..Config::of(Criterion::jaccard())
    };
    let (summary, docs) = run(&["", "a rose", " "], &config);
    let rules: Vec<_> = docs.iter().map(|doc| doc.rule.as_deref()).collect();
    assert_eq!(rules, [Some("empty"), None, Some("empty")]);
    assert!(docs.iter().all(|doc| doc.kept_doc.is_none()));
    let counts = &summary["counts"];
    assert_eq!(
        (&counts["kept"], &counts["dropped_empty"]),
        (&json!(1), &json!(2))
    );
    assert_eq!(
        (&counts["read"], &counts["dropped_near"]),
        (&json!(3), &json!(0))
    );
}

#[test]
fn the_policy_exact_finds_nothing_else() {
    let mut config = Config::of(Criterion::jaccard());
    config.policy.criterion = Criterion::Exact;
    let texts = [long("a"), long("b"), long("a"), long("A")];
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let (summary, docs) = run(&texts, &config);
    let kept: Vec<_> = docs.iter().map(|doc| doc.kept_doc).collect();
    assert_eq!(kept, [None, None, Some(0), None]);
    assert_eq!(summary["counts"]["pairs"], 1);
    assert_eq!(summary["settings"]["policy"], "exact");
}

#[test]
fn bytes_tell_whitespace_apart() {
    let mut config = Config {
        exact: Exact::Bytes,
        ..Config::of(Criterion::jaccard())
    };
    config.policy.criterion = Criterion::Exact;
    let (_, docs) = run(&["a rose", "a  rose", "a rose", ""], &config);
    let kept: Vec<_> = docs.iter().map(|doc| doc.kept_doc).collect();
    assert_eq!(kept, [None, None, Some(0), None]);
    config.against = Some(arose_dedup::Against {
        index: "nowhere".into(),
        update: arose_dedup::Update::Leave,
    });
    let bench = Bench::with_texts(&["a".to_owned()]);
    let error = bench.run_on(&["input.jsonl"], &config).unwrap_err();
    assert!(matches!(error, Error::BytesAgainstIndex), "{error}");
}
