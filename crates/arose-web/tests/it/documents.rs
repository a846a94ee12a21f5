//! Tests of the pages of documents, stored pages, exports and estimates.

use std::fs;

use arose::rule::{Criterion, Remove};
use serde_json::json;

use crate::server::{Server, dedup_by, pages, serve_folder, start};

/// Enough sentences to be the main content of a page.
const PROSE: &str = "It was written on a long evening in the garden, when the lamps were already lit and \
    nobody wanted to go inside. Whoever reads it will find that the first half is about the soil, \
    and the second about the patience that it takes to wait for a flower that opens once a year.";

/// An archive with a hostile HTML page for each URL and word.
pub(crate) fn archive(pages: &[(&str, &str)]) -> String {
    let records = pages.iter().map(|(url, word)| {
        let body = format!(
            "<html><head><title>About {word}</title><script>alert(1)</script>\
             <meta http-equiv=refresh content='0;url=http://evil.example/'></head>\
             <body style='color: green'><p>A page about {word}. {PROSE}</p>\
             <img src=http://evil.example/i.png><form action=http://evil.example/></form></body></html>"
        );
        let http = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        format!(
            "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\n\
             WARC-Date: 2026-01-01T00:00:00Z\r\nContent-Type: application/http; msgtype=response\r\n\
             Content-Length: {}\r\n\r\n{http}\r\n\r\n",
            http.len()
        )
    });
    records.collect()
}

#[test]
fn issue_23_a_document_has_a_page() {
    let server = start(&pages(), None);
    let found = server.get("/?q=stranger");
    assert!(
        found
            .body
            .contains("<a href=\"/document/15\">A stranger</a>"),
        "{}",
        found.body
    );
    let kept = server.get("/document/15").body;
    assert!(
        kept.contains("only one rose of its kind") && kept.contains("kept"),
        "{kept}"
    );
    assert!(!kept.contains("<iframe"), "there is no archive");
    let dropped = server.get("/document/1").body;
    for part in [
        "dropped for <a href=\"/document/0\">",
        "/pair?a=0&amp;b=1",
        "/cluster/0",
    ] {
        assert!(dropped.contains(part), "{part}: {dropped}");
    }
    let hostile = server.get("/document/16").body;
    assert!(
        !hostile.contains("<script>alert") && hostile.contains("&lt;script&gt;"),
        "{hostile}"
    );
    for (path, status) in [
        ("/document/17", 404),
        ("/document/x", 400),
        ("/document/0/page", 404),
    ] {
        assert_eq!(server.get(path).status, status, "{path}");
    }
}

/// Passages that other documents contain are marked, and the page links to those documents.
/// Versions of the same content are one result unless shown one by one, and link to each other.
#[test]
fn issue_24_versions_are_shown() {
    let version = |i: usize, n_other: usize| {
        let words = (0..60).map(|word| match word < 60 - n_other {
            true => format!("w{word}"),
            false => format!("v{i}w{word}"),
        });
        let text = format!("rose {}", words.collect::<Vec<_>>().join(" "));
        json!({ "url": format!("https://v{i}.example/"), "title": format!("Version {i}"), "text": text })
    };
    let pages = [
        version(0, 0),
        version(1, 10),
        version(2, 12),
        version(3, 59),
    ];
    let mut config = arose_dedup::Config::default();
    config.policy.criterion = Criterion::Content(Remove::Same);
    let folder = tempfile::tempdir().unwrap();
    let out = dedup_by(folder.path(), &pages, &config);
    let server = Server {
        address: serve_folder(&out, None),
        out,
        folder,
    };
    let together = server.get("/?q=rose").body;
    assert!(together.contains("2 versions"), "{together}");
    assert!(together.contains("show versions one by one"), "{together}");
    assert!(!together.contains("Version 1</a>"), "{together}");
    let alone = server.get("/?q=rose&versions=1").body;
    assert!(alone.contains("Version 1</a>"), "{alone}");
    let page = server.get("/document/0").body;
    for part in [
        "also kept, with the same content",
        "<a href=\"/document/1\"><bdi>Version 1</bdi></a>",
        "/pair?a=0&amp;b=2",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!server.get("/document/3").body.contains("also kept"));
    for (collapse, expected) in [("content", 2), ("same", 4), ("none", 4)] {
        let found = server.json(&format!("/api/search?q=rose&collapse={collapse}"));
        assert_eq!(found["results"], expected, "{found}");
    }
    assert_eq!(server.get("/api/search?q=rose&collapse=some").status, 400);
}

#[test]
fn issue_29_a_document_marks_what_occurs_elsewhere() {
    let passage: String = (0..60).map(|i| format!("shared{i} ")).collect();
    let other = |seed: &str| -> String { (0..200).map(|i| format!("{seed}{i} ")).collect() };
    let line = |id: &str, text: String| {
        let url = format!("https://{id}.org/");
        serde_json::json!({ "id": id, "url": url, "title": format!("About {id}"), "text": text })
    };
    let lines = [
        line(
            "quoting",
            format!("{}<b>{passage}</b>{}", other("a"), other("b")),
        ),
        line("quoted", format!("{}{passage}{}", other("c"), other("d"))),
        line("stranger", other("e")),
    ];
    let server = start(&lines, None);
    let page = server.get("/document/0").body;
    for part in [
        "<mark id=\"p1\">shared0 ",
        "1 passage of at least 50 tokens also occurs in 1 other document.",
        "<a href=\"/document/1\"><bdi>About quoted</bdi></a>",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert_eq!(page.matches("<mark").count(), 1);
    let stranger = server.get("/document/2").body;
    assert!(
        !stranger.contains("<mark") && !stranger.contains("Elsewhere"),
        "{stranger}"
    );
}

/// A stored page is sent with a policy that allows nothing but displaying it.
#[test]
fn issue_23_a_stored_page_is_sandboxed() {
    let folder = tempfile::tempdir().unwrap();
    let pages = [("http://x.org/1", "rose"), ("http://x.org/2", "tulip")];
    fs::write(folder.path().join("a.warc"), archive(&pages)).unwrap();
    let server = Server {
        address: serve_folder(folder.path(), None),
        out: folder.path().to_owned(),
        folder: tempfile::tempdir().unwrap(),
    };
    let page = server.get("/document/1").body;
    assert!(
        page.contains("<iframe class=\"stored\" sandbox src=\"/document/1/page\""),
        "{page}"
    );
    assert!(page.contains("A page about tulip."), "{page}");
    let stored = server.get("/document/1/page");
    assert_eq!(stored.status, 200);
    assert!(
        stored.body.contains("<p>A page about tulip. It was"),
        "{}",
        stored.body
    );
    let head = stored.head.to_lowercase();
    for part in [
        "content-security-policy: sandbox; default-src 'none'",
        "frame-ancestors 'self'",
        "x-frame-options: sameorigin",
        "content-type: text/html; charset=utf-8",
        "x-content-type-options: nosniff",
        "x-dns-prefetch-control: off",
    ] {
        assert!(head.contains(part), "{part}: {head}");
    }
    assert!(
        !head.contains("allow-scripts") && !head.contains("script-src"),
        "{head}"
    );
    let clusters = server.get("/clusters");
    assert_eq!(clusters.status, 404);
}

#[test]
fn issue_23_results_are_exported() {
    let server = start(&pages(), None);
    let lines = server.get("/export?q=rose&format=jsonl");
    assert!(lines.head.contains("attachment"), "{}", lines.head);
    assert_eq!(lines.body.lines().count(), 4);
    for line in lines.body.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(
            line["doc"].is_u64() && line["near_duplicates"].is_u64(),
            "{line}"
        );
    }
    let csv = server.get("/export?q=rose&all=1&format=csv");
    assert!(csv.body.starts_with("rank,doc,cluster,"), "{}", csv.body);
    assert_eq!(csv.body.lines().count(), 18);
    assert_eq!(server.get("/export?q=%22").status, 400);
    // A file has no limit per site, and the page links to both formats.
    let page = server.get("/?q=rose").body;
    assert!(page.contains("/export?q=rose&#38;format=csv"), "{page}");
    assert!(page.contains("more from <bdi>example.org</bdi>"), "{page}");
}

#[test]
fn issue_23_facets_narrow_a_search() {
    let server = start(&pages(), None);
    let page = server.get("/?q=rose").body;
    assert!(page.contains("q=rose%20site%3Aexample.net"), "{page}");
    let narrowed = server.get("/?q=rose%20site%3Aexample.net");
    assert!(narrowed.body.contains("1 document<"), "{}", narrowed.body);
    // A choice of words remains one condition when it is narrowed.
    let choice = server.get("/?q=rose+OR+hostile").body;
    assert!(
        choice.contains("q=%28rose%20OR%20hostile%29%20site%3A"),
        "{choice}"
    );
}

#[test]
fn issue_23_estimates_are_shown() {
    let server = start(&pages(), None);
    assert_eq!(server.get("/estimates").status, 404);
    assert!(!server.get("/").body.contains("/estimates"));
    let study = server.out.join("study");
    fs::create_dir(&study).unwrap();
    let text = serde_json::json!({
        "engines": ["a", "<b>"], "seed": 1,
        "refused": [{ "method": "pool of a", "reason": "the pool is empty" }],
        "findings": [{ "method": "overlap", "counted": "pages, near duplicates once", "figures": [
            { "name": "share of a in b", "value": 0.4052, "interval": [0.31, 0.52], "n_samples": 400,
              "notes": ["7 without an answer"] },
            { "name": "pages", "value": 123456.0, "interval": null, "n_samples": 3 },
            { "name": "union", "value": null, "interval": null, "n_samples": 0, "refused": "b is silent" },
        ], "warnings": ["b changed during the study"],
           "biases": [{ "name": "length", "effect": "long pages are found more often" }] }],
    });
    fs::write(study.join("estimates.json"), text.to_string()).unwrap();
    let page = server.get("/estimates").body;
    for part in [
        "0.405",
        "0.310 to 0.520",
        "123,456",
        "b changed",
        "<b>length</b>: long pages are found more often",
        "&lt;b&gt;",
        "7 without an answer",
        "b is silent",
        "<b>pool of a</b>: the pool is empty",
        "Counted: pages, near duplicates once",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(server.get("/").body.contains("href=\"/estimates\""));
    fs::write(study.join("estimates.json"), "{").unwrap();
    assert!(server.get("/estimates").body.contains("cannot be read"));
}

/// The pairs of a cluster link to each other, and long comparisons have steps.
#[test]
fn issue_23_pairs_and_differences_have_a_next() {
    let server = start(&pages(), None);
    let pair = server.get("/pair?a=0&b=5").body;
    for part in ["pair 5 of 11", "/pair?a=0&#38;b=4", "/pair?a=0&#38;b=6"] {
        assert!(pair.contains(part), "{part}: {pair}");
    }
    let far = |seed: &str| -> String {
        (0..3000)
            .map(|i| {
                if i % 200 == 7 {
                    format!("{seed}{i} ")
                } else {
                    format!("w{i} ")
                }
            })
            .collect()
    };
    let line = |id: &str| serde_json::json!({ "id": id, "text": far(id) });
    let server = start(&[line("a"), line("b")], None);
    let pair = server.get("/pair?a=0&b=1").body;
    assert!(
        pair.contains("data-differences") && pair.contains("<tr id=\"d15\">"),
        "{pair}"
    );
    // Many differences near each other are one row, and have steps as well.
    let near = |seed: &str| -> String {
        let word = |i: usize| match i % 20 {
            7 => format!("{seed}{i} "),
            _ => format!("w{i} "),
        };
        (0..3000).map(word).collect()
    };
    let line = |id: &str| serde_json::json!({ "id": id, "text": near(id) });
    let server = start(&[line("a"), line("b")], None);
    let pair = server.get("/pair?a=0&b=1").body;
    assert!(
        pair.contains("data-differences") && !pair.contains("<tr id=\"d2\">"),
        "{pair}"
    );
}
