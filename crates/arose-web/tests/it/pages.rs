//! Tests of every page and its required content.

use std::fs;

use serde_json::json;

use crate::server::{Answer, Server, pages, start};

#[track_caller]
fn check(answer: &Answer, expected: &[&str]) {
    assert_eq!(answer.status, 200, "{}", answer.body);
    for text in expected {
        assert!(answer.body.contains(text), "no {text} in {}", answer.body);
    }
}

#[test]
fn search_collapses_expands_and_turns_pages() {
    let server = start(&pages(), None);
    check(&server.get("/"), &["Search 17 documents", "Query syntax"]);
    let found = server.get("/?q=rose");
    check(
        &found,
        &[
            "17 documents in 4 results",
            "<mark>rose</mark>",
            "more from <bdi>example.org</bdi>",
        ],
    );
    check(
        &server.get("/?q=rose+site:example.org"),
        &["14 documents in 3 results", "and 11 near duplicates"],
    );
    let expanded = server.get("/?q=rose+site:example.org&expand=0");
    check(&expanded, &["the whole cluster", "/pair?a=0&amp;b=1"]);
    check(
        &server.get("/?q=rose&all=1"),
        &[
            "17 documents<",
            "rel=\"next\"",
            "/?q=rose&#38;all=1&#38;from=10",
        ],
    );
    check(
        &server.get("/?q=rose&all=1&from=10"),
        &["after the first 10", "value=\"11\"", "First results"],
    );
    let kept = server.get("/?q=rose&kept=1&all=1");
    check(&kept, &["4 documents<"]);
    assert!(!kept.body.contains("class=\"duplicates\""), "{}", kept.body);
    check(&server.get("/?q=nothing"), &["0 documents", "No results."]);
    check(&server.get("/?q=rose&from=999"), &["17 documents"]);
    check(&server.get("/?q=rose&from=x"), &["17 documents"]);
}

#[test]
fn queries_that_make_no_sense_are_explained() {
    let server = start(&pages(), None);
    for (query, text) in [
        ("%22rose", "character 1 of the query: unclosed quote"),
        ("(rose", "unclosed parenthesis"),
        ("author:x", "no field `author`"),
        ("%00%01", "missing word"),
    ] {
        let answer = server.get(&format!("/?q={query}"));
        assert_eq!(answer.status, 400);
        assert!(answer.body.contains(text), "{query}: {}", answer.body);
    }
    let long = server.get(&format!("/?q={}", "rose+".repeat(1000)));
    assert_eq!(long.status, 400);
    assert!(long.body.contains("the maximum is 4096"), "{}", long.body);
    let longer = server.get(&format!("/?q={}", "a".repeat(60_000)));
    assert_eq!(longer.status, 414);
    assert!(longer.body.contains("The URL is too long"));
    // A URL this long is rejected before the page handlers, so there is no error page.
    assert_eq!(
        server.get(&format!("/?q={}", "a".repeat(100_000))).status,
        414
    );
    // Control characters separate words.
    check(
        &server.get("/?q=a%1B%07rose"),
        &["15 documents in 2 results"],
    );
}

#[test]
fn no_documents() {
    let server = start(&[], None);
    check(&server.get("/"), &["Search 0 documents"]);
    check(&server.get("/?q=rose"), &["0 documents", "No results."]);
    check(&server.get("/clusters"), &["No clusters match."]);
    check(&server.get("/rate?rater=x"), &["no pairs"]);
    check(&server.get("/ratings"), &["0 pairs rated"]);
    assert_eq!(server.get("/pair?a=0&b=1").status, 404);
    assert_eq!(server.get("/cluster/0").status, 404);
}

/// Indexed documents are still found; pages that must read sources again say that they cannot.
#[test]
fn a_source_that_has_gone() {
    let server = start(&pages(), None);
    fs::remove_file(server.folder.path().join("pages.jsonl")).unwrap();
    check(
        &server.get("/?q=rose"),
        &["17 documents in 4 results", "<mark>rose</mark>"],
    );
    check(&server.get("/cluster/0"), &["A cluster of 12 documents"]);
    check(
        &server.get("/pair?a=0&b=1"),
        &["Its source no longer exists."],
    );
    check(
        &server.get("/rate?rater=x"),
        &["Its source no longer exists."],
    );
}

#[test]
fn clusters_by_size_site_and_similarity() {
    let server = start(&pages(), None);
    let all = server.get("/clusters");
    check(
        &all,
        &[
            "<h1>2 clusters</h1>",
            "/cluster/0",
            "/cluster/12",
            "and others",
        ],
    );
    let places = |body: &str| {
        [
            body.find("/cluster/0").unwrap(),
            body.find("/cluster/12").unwrap(),
        ]
    };
    let [large, small] = places(&all.body);
    assert!(large < small);
    check(
        &server.get("/clusters?mixed=1"),
        &["1 cluster<", "/cluster/12"],
    );
    check(
        &server.get("/clusters?min=5"),
        &["1 cluster<", "/cluster/0"],
    );
    check(
        &server.get("/clusters?site=nowhere"),
        &["No clusters match."],
    );
    check(
        &server.get("/clusters?sort=lowest&page=x&min=y"),
        &["2 clusters<"],
    );
    let one = server.get("/cluster/0");
    check(
        &one,
        &[
            "A cluster of 12 documents",
            "One document is kept",
            "Jaccard similarity",
            "compare",
        ],
    );
    assert_eq!(server.get("/cluster/1").status, 404);
    assert_eq!(server.get("/cluster/-1").status, 404);
    assert_eq!(server.get("/cluster/99999999999999999999").status, 404);
}

#[test]
fn pairs_show_differences_and_scores() {
    let server = start(&pages(), None);
    let pair = server.get("/pair?a=1&b=0");
    check(
        &pair,
        &[
            "<mark>0</mark>",
            "<mark>1</mark>",
            "Jaccard similarity",
            "B-sim",
            "same site",
            "Both texts in full",
        ],
    );
    check(&server.get("/pair?a=12&b=13"), &["different sites"]);
    check(
        &server.get("/pair?a=0&b=15"),
        &["the run does not list this pair"],
    );
    check(
        &server.get("/pair?a=3&b=3"),
        &["the two texts are identical"],
    );
    assert_eq!(server.get("/pair?a=0&b=17").status, 404);
    assert_eq!(server.get("/pair").status, 400);
}

/// No markup of a page gets through, and only web URLs become links.
#[test]
fn hostile_text_is_shown() {
    let server = start(&pages(), None);
    for path in ["/?q=hostile", "/pair?a=16&b=0", "/clusters", "/cluster/0"] {
        let body = server.get(path).body;
        assert!(
            !body.contains("<script>") && !body.contains("<img"),
            "{path}"
        );
        assert!(!body.contains("href=\"javascript"), "{path}");
    }
    check(
        &server.get("/?q=hostile"),
        &["&lt;script&gt;", "<i>U+202E</i>"],
    );
    let echo = server
        .get("/?q=%22%3E%3Cscript%3Ealert(1)%3C/script%3E")
        .body;
    assert!(!echo.contains("<script>alert"), "{echo}");
}

#[test]
fn a_crawl_is_drawn_while_it_grows() {
    let server = start(&pages(), None);
    assert_eq!(server.get("/crawl").status, 404);
    let line = |i: u64| {
        json!({ "seconds": i, "pages": 100 * i, "queue": 50, "hosts": i,
        "exact_duplicates": i, "near_duplicates": i, "bytes": 1000 * i,
        "statuses": { "200": 90 * i, "404": i }, "slowest": [["<slow>.example", 2500.0]],
        "sites": [["<site>.example", 1.25, 0.5, 1234]],
        "poor_sites": [["<bad>.example", 29, 30, true], ["poor.example", 1, 7, false]],
        "deferred": 321, "url_rules": [["<shop>.example/item/*", "parameter <sid>", "active", 21, 1, 30, 400, 9]],
        "next": [["http://n.example/?a=<b>", 4.0, 0.5]],
        "fresh": 0.75, "revisits": 10 * i, "changed": i,
        "fresh_by_age": [[7.0, 40, 0.875], [30.0, 0, 0.0], [null, 60, 0.5]],
        "pages_by_rate": [[0.01, 1500], [null, 500]],
        "fresh_sites": [["<fresh>.example", 100, 0.625, 0.0123]] })
    };
    let mut text: String = (0..10).map(|i| format!("{}\n", line(i))).collect();
    let file = server.out.join("statistics.jsonl");
    fs::write(&file, &text).unwrap();
    check(
        &server.get("/crawl"),
        &[
            "running for 9.0 s",
            "Pages per second",
            "data-live",
            "&lt;slow&gt;.example",
            "Sites by quality",
            "&lt;bad&gt;.example",
            "one per day",
            "URLs deferred by rules",
            "&lt;shop&gt;.example/item/*",
            "parameter &lt;sid&gt;",
            "http://n.example/?a=&lt;b&gt;",
            "<td class=\"n\">4.000</td><td class=\"n\">0.500</td><td class=\"n\">2.000</td>",
            "Pages up to date in percent (estimate)",
            "Visits per second",
            "aria-label=\"≤ 7: 87.5%, ≤ 30: –, more: 50.0%\"",
            "aria-label=\"≤ 0.01: 1,500, more: 500\"",
            "<td class=\"n\">40</td><td class=\"n\">87.5%</td>",
            "<td class=\"n\">0</td><td class=\"n\">–</td>",
            "data-label=\"Deferred\">400</td>",
            "<bdi>&lt;fresh&gt;.example</bdi>",
        ],
    );
    // The process of the crawl is gone: there is a journal, but its lock is free.
    let journal = server.out.join("journal");
    fs::write(&journal, "").unwrap();
    check(&server.get("/crawl"), &["interrupted after 9.0 s"]);
    fs::remove_file(journal).unwrap();
    let mut last = line(10);
    last["is_done"] = json!(true);
    text.push_str(&format!("{last}\n"));
    fs::write(&file, text).unwrap();
    let done = server.get("/crawl");
    check(&done, &["finished after 10 s", "1,000"]);
    assert!(!done.body.contains("data-live"));
    assert_eq!(
        server.json("/api/crawl")["samples"]
            .as_array()
            .unwrap()
            .len(),
        11
    );
}

fn large(seed: usize) -> String {
    let word = |i: usize| match i % 50 {
        0 => format!("changed{seed} "),
        _ => format!("w{} ", i * 31 % 9973),
    };
    (0..8000).map(word).collect()
}

/// Two long documents with many differences, and a line of five million letters without a space.
#[test]
fn large_documents() {
    let lines = [
        json!({ "url": "https://x.org/1", "text": large(1) }),
        json!({ "url": "https://x.org/2", "text": large(2) }),
        json!({ "url": "https://x.org/3", "text": "x".repeat(5_000_000) }),
    ];
    let server: Server = start(&lines, None);
    check(
        &server.get("/pair?a=0&b=1"),
        &["Jaccard similarity", "<mark>changed1</mark>"],
    );
    check(
        &server.get("/pair?a=1&b=2"),
        &["the rest of 5.0 MB is not shown"],
    );
    let found = server.get("/?q=url:3");
    check(&found, &["1 document"]);
    assert!(found.body.len() < 20_000, "{}", found.body.len());
}
