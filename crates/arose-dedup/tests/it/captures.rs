//! Archives with several captures of a URL, of which only the current one is wanted.

use std::fs;

use arose::rule::Criterion;
use arose_corpus::warc::write::{NewRecord, Packing, WarcWriter};
use arose_dedup::{Config, Keep, Versions};

use crate::support::{Bench, Doc};

const HTML: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n";

/// What a capture has: a text, or the statement that the page is as on another day at a URL.
enum Body<'a> {
    Text(&'a str),
    As(&'a str, i64),
}

const BEGIN: i64 = 1_700_000_000;

fn archive(captures: &[(&str, i64, Body<'_>)]) -> Vec<u8> {
    let mut writer = WarcWriter::new(Vec::new(), Packing::Plain);
    for (number, (url, day, body)) in captures.iter().enumerate() {
        let id = format!("urn:uuid:00000000-0000-4000-8000-{number:012}");
        let url = format!("http://site.example/{url}");
        let (kind, text, fields) = match body {
            Body::Text(text) => ("response", format!("<p>{text}"), Vec::new()),
            Body::As(other, day) => (
                "revisit",
                String::new(),
                vec![
                    (
                        "WARC-Profile",
                        "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
                            .to_owned(),
                    ),
                    (
                        "WARC-Refers-To-Target-URI",
                        format!("http://site.example/{other}"),
                    ),
                    (
                        "WARC-Refers-To-Date",
                        arose_corpus::time::format(BEGIN + day * 86_400),
                    ),
                ],
            ),
        };
        let fields: Vec<(&str, &str)> = fields.iter().map(|(k, v)| (*k, &**v)).collect();
        let record = NewRecord {
            kind,
            url: Some(&url),
            date: BEGIN + day * 86_400,
            id: Some(&id),
            content_type: "application/http; msgtype=response",
            http_head: HTML.as_bytes(),
            body: text.as_bytes(),
            fields: &fields,
        };
        writer.write(&record).unwrap();
    }
    writer.into_inner()
}

fn words(seed: usize) -> String {
    let word = |i: usize| format!("word{} ", seed * 1000 + i);
    (0..100).map(word).collect()
}

fn config() -> Config {
    Config {
        versions: Versions::Current,
        ..Config::of(Criterion::jaccard())
    }
}

/// Which documents are kept, and the rules of the others, by their order.
fn fates(docs: &[Doc]) -> Vec<&str> {
    let fate = |doc| -> &str {
        let doc: &Doc = doc;
        match doc.kept {
            true => "kept",
            false => doc.rule.as_deref().unwrap_or("?"),
        }
    };
    docs.iter().map(fate).collect()
}

#[track_caller]
fn check(captures: &[(&str, i64, Body<'_>)], config: &Config, expected: &[&str]) {
    let bench = Bench::new();
    fs::write(bench.path("a.warc"), archive(captures)).unwrap();
    let summary = bench.run_on(&["a.warc"], config).unwrap();
    assert_eq!(fates(&bench.docs()), expected);
    let n = expected
        .iter()
        .filter(|fate| **fate == "superseded")
        .count();
    assert_eq!(summary["counts"]["dropped_superseded"], n);
    assert_eq!(summary["counts"]["read"], expected.len());
    assert_eq!(summary["counts"]["empty"], 0);
}

#[test]
fn only_the_last_version_stays() {
    let [one, two, three, other] = [1, 2, 3, 4].map(words);
    let captures = || {
        [
            ("p", 1, Body::Text(&one)),
            ("q", 1, Body::Text(&other)),
            ("p", 3, Body::Text(&three)),
            ("p", 2, Body::Text(&two)),
        ]
    };
    let kept = ["superseded", "kept", "kept", "superseded"];
    check(&captures(), &config(), &kept);
    check(&captures(), &Config::of(Criterion::jaccard()), &["kept"; 4]);
}

/// A copy of what a page was must not be dropped for a version that does not stay itself.
#[test]
fn nothing_is_dropped_for_what_is_superseded() {
    let [old, new] = [1, 2].map(words);
    let captures = || {
        [
            ("p", 1, Body::Text(&old)),
            ("copy", 2, Body::Text(&old)),
            ("p", 3, Body::Text(&new)),
        ]
    };
    check(&captures(), &config(), &["superseded", "kept", "kept"]);
    let newest = Config {
        keep: Keep::Newest,
        ..config()
    };
    check(&captures(), &newest, &["superseded", "kept", "kept"]);
    let all = Config::of(Criterion::jaccard());
    check(&captures(), &all, &["kept", "exact", "kept"]);
}

#[test]
fn revisits_say_which_version_is_current() {
    let [one, two, other] = [1, 2, 3].map(words);
    let back = [
        ("p", 1, Body::Text(&one)),
        ("p", 2, Body::Text(&two)),
        ("p", 3, Body::As("p", 1)),
    ];
    check(&back, &config(), &["kept", "superseded"]);
    let same = [
        ("p", 1, Body::Text(&one)),
        ("p", 2, Body::Text(&two)),
        ("p", 3, Body::As("p", 2)),
    ];
    check(&same, &config(), &["superseded", "kept"]);
    // The page is now a copy of another one, and that one has the text.
    let moved = [
        ("q", 1, Body::Text(&other)),
        ("p", 1, Body::Text(&one)),
        ("p", 3, Body::As("q", 1)),
    ];
    check(&moved, &config(), &["kept", "superseded"]);
}

/// Lines without a time have no order, and stay.
#[test]
fn without_times_all_versions_stay() {
    let bench = Bench::new();
    let line = |text: &str| format!("{{\"url\":\"http://x.org/\",\"text\":\"{text}\"}}\n");
    bench.write("a.jsonl", &(line(&words(1)) + &line(&words(2))));
    let summary = bench.run_on(&["a.jsonl"], &config()).unwrap();
    assert_eq!(summary["counts"]["kept"], 2);
    assert_eq!(summary["counts"]["dropped_superseded"], 0);
}
