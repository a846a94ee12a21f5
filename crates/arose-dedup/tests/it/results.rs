//! What is written, for documents of every kind.

use std::fs;
use std::path::PathBuf;

use arose::rule::Criterion;
use arose_corpus::html::Mode;
use arose_dedup::{Config, Error, ListedPairs};
use serde_json::{Value, json};

use crate::support::{Bench, family_texts};

fn all_pairs() -> Config {
    Config {
        pairs: ListedPairs::All,
        ..Config::of(Criterion::jaccard())
    }
}

const ROSE: &str = "rose is a rose is a rose is a rose and so is every other rose that grows here";

pub(crate) fn counts_add_up(summary: &Value) {
    let count = |name: &str| summary["counts"][name].as_u64().unwrap();
    let copies = count("dropped_exact") + count("dropped_near");
    let dropped = copies + count("dropped_known") + count("dropped_empty");
    let dropped = dropped + count("dropped_filtered") + count("dropped_superseded");
    assert_eq!(count("read"), count("kept") + dropped, "{summary}");
    let skipped = summary["counts"]["skipped"]["by_reason"]
        .as_object()
        .unwrap();
    let by_reason: u64 = skipped.values().map(|n| n.as_u64().unwrap()).sum();
    assert_eq!(
        summary["counts"]["skipped"]["total"].as_u64(),
        Some(by_reason)
    );
}

/// The table says how the text of each web page was read.
#[test]
fn issue_24_modes_of_documents() {
    let prose = "<p>one sentence that is long enough to be read as prose, twice over.</p>";
    let article = format!("<title>T</title>{}", prose.repeat(5));
    let links = "<title>T</title><nav><a href=/1>one</a> <a href=/2>two</a></nav>";
    let documents = [
        json!({ "text": ROSE }),
        json!({ "html": article }),
        json!({ "html": links }),
    ];
    let lines = documents.map(|document| document.to_string() + "\n");
    let modes = |mode: Mode| {
        let bench = Bench::new();
        bench.write("input.jsonl", &lines.concat());
        let mut config = Config::default();
        config.corpus.html.mode = mode;
        bench.run(&config);
        let docs = bench.docs().into_iter();
        docs.map(|doc| doc.mode.unwrap_or_default())
            .collect::<Vec<_>>()
    };
    assert_eq!(Config::default().corpus.html.mode, Mode::Visible);
    assert_eq!(modes(Mode::Visible), ["", "visible", "visible"]);
    assert_eq!(modes(Mode::Henzinger), ["", "henzinger", "henzinger"]);
    assert_eq!(modes(Mode::Content), ["", "content", "visible"]);
    assert_eq!(modes(Mode::Plain), ["", "plain", "plain"]);
}

#[test]
fn counts_add_up_and_kept_lines_are_untouched() {
    let bench = Bench::new();
    let first = format!("{{\"text\": \"{ROSE}\",   \"odd\": [1.50, \"x\\u0041\"]}}");
    let other = json!({ "text": family_texts(1, 1)[0], "id": "other" }).to_string();
    let copy = json!({ "text": ROSE.replace(' ', "\n") }).to_string();
    bench.write("input.jsonl", &format!("{first}\n[1, 2]\n{copy}\n{other}"));
    let summary = bench.run(&Config::of(Criterion::jaccard()));
    counts_add_up(&summary);
    assert_eq!(summary["counts"]["read"], 3);
    assert_eq!(summary["counts"]["dropped_exact"], 1);
    assert_eq!(
        summary["counts"]["skipped"]["by_reason"]["not a JSON object"],
        1
    );
    let kept = fs::read_to_string(bench.path("out/kept.jsonl")).unwrap();
    assert_eq!(kept, format!("{first}\n{other}\n"));
    let docs = bench.docs();
    assert_eq!(
        docs[0].id,
        format!("{}#0", bench.path("input.jsonl").display())
    );
    assert_eq!(
        (docs[1].kept_doc, docs[1].rule.as_deref()),
        (Some(0), Some("exact"))
    );
    assert_eq!(docs[2].id, "other");
}

#[test]
fn short_and_empty_documents_never_collapse() {
    let texts = [
        "",
        "...",
        "a rose",
        "a rose is",
        "A ROSE!",
        "",
        "a rose is a rose is a rose",
        " ...",
    ];
    let bench = Bench::with_texts(&texts.map(str::to_owned));
    let summary = bench.run(&Config::of(Criterion::jaccard()));
    counts_add_up(&summary);
    assert_eq!(summary["counts"]["empty"], 2);
    assert_eq!(summary["counts"]["short"], 6);
    let kept: Vec<bool> = bench.docs().iter().map(|doc| doc.kept).collect();
    assert_eq!(kept, [true, true, true, true, true, true, true, false]);
    let pairs = bench.pairs();
    assert_eq!((pairs.len(), &*pairs[0].rule), (1, "exact"));
    // Documents without words have no similarity.
    assert_eq!(
        (pairs[0].jaccard, pairs[0].b_sim, pairs[0].c_sim),
        (None, None, None)
    );
}

#[test]
fn chinese_texts_are_compared_by_character() {
    let text = "春眠不觉晓处处闻啼鸟夜来风雨声花落知多少床前明月光疑是地上霜举头望明月低头思故乡";
    let edited = text.replace('霜', "雪");
    let texts = [
        text.to_owned(),
        edited,
        "白日依山尽黄河入海流欲穷千里目更上一层楼".to_owned(),
    ];
    let bench = Bench::with_texts(&texts);
    bench.run(&Config::of(Criterion::jaccard()));
    let pairs = bench.pairs();
    assert_eq!(pairs.len(), 0, "31 of 41 shingles agree: {pairs:?}");
    let config = Config {
        shingle: arose::shingle::ShingleLength::uniform(2.try_into().unwrap()),
        ..Config::of(Criterion::jaccard())
    };
    let bench = Bench::with_texts(&texts);
    bench.run(&config);
    assert_eq!(bench.pairs().len(), 1);
}

#[test]
fn nothing_in_nothing_out() {
    let bench = Bench::new();
    bench.write("input.jsonl", "");
    let summary = bench.run(&Config::of(Criterion::jaccard()));
    counts_add_up(&summary);
    assert_eq!(summary["counts"]["read"], 0);
    assert!(bench.docs().is_empty() && bench.pairs().is_empty());
}

#[test]
fn pages_of_a_folder_stay_under_their_names() {
    let bench = Bench::new();
    let page = |text: &str| format!("<title>x</title><p>{text}</p>");
    bench.write("pages/a/one.html", &page(ROSE));
    bench.write("pages/b/two.html", &page(ROSE));
    bench.write("pages/b/three.html", &page(&family_texts(1, 2)[0]));
    bench
        .run_on(&["pages"], &Config::of(Criterion::jaccard()))
        .unwrap();
    let kept = bench.path("out/kept.files");
    assert_eq!(
        fs::read_to_string(kept.join("a/one.html")).unwrap(),
        page(ROSE)
    );
    assert!(kept.join("b/three.html").exists() && !kept.join("b/two.html").exists());
}

/// An array stays an array; two of them stay two files, since one after the other is not JSON.
#[test]
fn json_arrays_stay_arrays() {
    let array = |texts: &[&str]| {
        let objects: Vec<Value> = texts.iter().map(|text| json!({ "text": text })).collect();
        serde_json::to_string_pretty(&objects).unwrap()
    };
    let read = |path: PathBuf| -> Value {
        serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
    };
    let other = &family_texts(1, 2)[0];
    let bench = Bench::new();
    bench.write("a.json", &array(&[ROSE, other, ROSE]));
    bench
        .run_on(&["a.json"], &Config::of(Criterion::jaccard()))
        .unwrap();
    let expected = json!([{ "text": ROSE }, { "text": other }]);
    assert_eq!(read(bench.path("out/kept.json")), expected);
    let bench = Bench::new();
    bench.write("in/a.json", &array(&[ROSE]));
    bench.write("in/b.json", &array(&[ROSE, other]));
    bench
        .run_on(&["in"], &Config::of(Criterion::jaccard()))
        .unwrap();
    let kept = bench.path("out/kept.files");
    assert_eq!(read(kept.join("a.json")), json!([{ "text": ROSE }]));
    assert_eq!(read(kept.join("b.json")), json!([{ "text": other }]));
}

/// A pair of contents with copies stands for all pairs of the copies.
#[test]
fn copies_multiply_pairs() {
    let texts = family_texts(60, 3);
    let doubled: Vec<String> = texts.iter().chain(&texts).cloned().collect();
    let single = Bench::with_texts(&texts);
    single.run(&all_pairs());
    let double = Bench::with_texts(&doubled);
    double.run(&all_pairs());
    let near = |bench: &Bench| {
        bench
            .pairs()
            .iter()
            .filter(|pair| pair.rule == "jaccard")
            .count()
    };
    assert!(near(&single) > 10);
    assert_eq!(near(&double), 4 * near(&single));
    assert!(double.pairs().is_sorted_by_key(|pair| (pair.a, pair.b)));
}

#[test]
fn a_thousand_copies_are_not_a_million_pairs() {
    let texts = vec![ROSE.to_owned(); 20_000];
    let bench = Bench::with_texts(&texts);
    let summary = bench.run(&all_pairs());
    assert_eq!(summary["counts"]["kept"], 1);
    assert_eq!(bench.pairs().len(), 19_999);
    assert!(summary["counts"]["pairs_not_listed"].as_u64().unwrap() > 100_000_000);
    let bench = Bench::with_texts(&texts);
    let summary = bench.run(&Config::of(Criterion::jaccard()));
    assert_eq!(bench.pairs().len(), 19_999);
    assert_eq!(summary["counts"]["pairs_not_listed"], 0);
}

#[test]
fn what_cannot_be_reached_is_refused_before_anything_is_written() {
    let bench = Bench::with_texts(&family_texts(3, 1));
    let config = Config {
        recall: arose::Threshold::new(1.0).unwrap(),
        ..Config::of(Criterion::jaccard())
    };
    let error = bench.run_on(&["input.jsonl"], &config).unwrap_err();
    assert!(matches!(error, Error::Recall { .. }), "{error}");
    assert!(!bench.path("out").exists());
}
