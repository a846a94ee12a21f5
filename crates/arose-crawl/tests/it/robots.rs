//! Compares verdicts with those that other implementations agree on, and lists the differences with
//! reasons.

use std::collections::BTreeMap;
use std::fs;

use arose_crawl::robots::{Robots, Rule};
use arose_crawl::url::{EmptyQuery, NormalUrl, Normalizer};
use data_encoding::BASE64;
use serde_json::Value;
use url::Url;

use crate::shared;

fn file(row: &Value) -> Vec<u8> {
    match row["robots_txt"].as_str() {
        Some(text) => text.as_bytes().to_vec(),
        None => BASE64
            .decode(row["robots_base64"].as_str().unwrap().as_bytes())
            .unwrap(),
    }
}

/// An empty URL means the root. An empty query is kept, because some patterns end in one.
fn url(text: &str) -> NormalUrl {
    let base = Url::parse("http://example.org/").unwrap();
    let normalizer = Normalizer {
        empty_query: EmptyQuery::Keep,
        ..Normalizer::default()
    };
    normalizer.normalize(text, Some(&base)).unwrap()
}

/// Rows for which `file` gives another verdict than the collection, as text.
fn differences(rows: &[Value], file: impl Fn(&Value) -> Vec<u8>) -> Vec<String> {
    let differs = |row: &&Value| {
        let robots = Robots::parse(&file(row), row["agent"].as_str().unwrap());
        let verdict = robots.verdict(&url(row["url"].as_str().unwrap()));
        verdict.allowed != row["allowed"].as_bool().unwrap()
    };
    rows.iter()
        .filter(differs)
        .map(|row| {
            let name = row["case"].as_str().or(row["host"].as_str()).unwrap();
            format!("{name} {} {}", row["agent"], row["url"])
        })
        .collect()
}

/// Four differences, all of them parts of RFC 9309 that the tested program does not follow:
///
/// - It compares characters as they are. The RFC (2.2.2) escapes characters beyond ASCII on both
///   sides before the comparison, so `/foo/bar/ツ` matches its own pattern, in either spelling.
/// - It does not decode escapes of unreserved characters. The RFC does, so `/foo/bar/%62%61%7A`
///   matches `/foo/bar/baz`, as the table of the RFC says.
/// - It reads `Allow: /dir/index.html` as allowing `/dir/`, which is its own extension and allows
///   what the site forbids.
#[test]
fn reference_cases() {
    let Some(rows) = shared::rows("robots-suites/google_robots_test.jsonl") else {
        return;
    };
    let expected = [
        r#"ID_Encoding "FooBot" "http://foo.bar/foo/bar/ツ""#,
        r#"ID_Encoding "FooBot" "http://foo.bar/foo/bar/ツ""#,
        r#"ID_Encoding "FooBot" "http://foo.bar/foo/bar/baz""#,
        r#"GoogleOnly_IndexHTMLisDirectory "foobot" "http://foo.com/allowed-slash/""#,
    ];
    assert_eq!(rows.len(), 141);
    assert_eq!(differences(&rows, file), expected);
}

#[test]
fn agreed_verdicts_on_real_files() {
    let (Some(files), Some(rows)) = (
        shared::rows("robots-real/robots.jsonl.zst"),
        shared::rows("robots-real/verdicts_sample.jsonl.zst"),
    ) else {
        return;
    };
    let by_host: BTreeMap<&str, Vec<u8>> = files
        .iter()
        .map(|row| (row["host"].as_str().unwrap(), file(row)))
        .collect();
    assert_eq!(rows.len(), 4971);
    let found = differences(&rows, |row| by_host[row["host"].as_str().unwrap()].clone());
    assert_eq!(found, [""; 0]);
}

/// Every real file is read to its end, and its delays and hours are understood.
#[test]
fn extensions_in_real_files() {
    let Some(files) = shared::rows("robots-real/robots.jsonl.zst") else {
        return;
    };
    let (mut n_delays, mut n_rates, mut n_hours, mut n_sitemaps) = (0, 0, 0, 0);
    for row in &files {
        let robots = Robots::parse(&file(row), "arose");
        n_delays += usize::from(robots.crawl_delay.is_some());
        n_rates += robots.request_rates.len();
        n_hours += robots.visit_times.len();
        n_sitemaps += robots.sitemaps.len();
    }
    println!("{n_delays} delays, {n_rates} rates, {n_hours} visiting hours, {n_sitemaps} sitemaps");
    assert_eq!((n_delays, n_rates, n_hours, n_sitemaps), (255, 4, 5, 5951));
}

fn sample(name: &str) -> Option<Vec<u8>> {
    let path = shared::path("robots-suites/crawler-commons")?.join(name);
    Some(fs::read(path).unwrap())
}

#[track_caller]
fn check(name: &str, agent: &str, path: &str, allowed: bool) {
    let Some(file) = sample(name) else {
        return;
    };
    let robots = Robots::parse(&file, agent);
    let verdict = robots.verdict(&url(path));
    assert_eq!(
        verdict.allowed,
        allowed,
        "{name} {agent} {path}: {:?}",
        verdict.rule.map(Rule::to_string)
    );
}

#[test]
fn samples() {
    check("merge-rules.txt", "wget", "/foo/bar", true);
    check("merge-rules.txt", "wget", "/tmp/bar", false);
    check("merge-rules.txt", "curl", "/", false);
    check("directive-typos-robots.txt", "bot1", "/desallow/", false);
    check("directive-typos-robots.txt", "bot1", "/dissalow/", false);
    check("directive-typos-robots.txt", "bot2", "/useragent/", false);
    check(
        "directive-typos-robots.txt",
        "bot4",
        "/useragent-no-colon/",
        false,
    );
    check(
        "format-errors-robots.txt",
        "bot1",
        "/whitespace-before-colon/",
        false,
    );
    check("format-errors-robots.txt", "bot1", "/no-colon/", false);
    check(
        "format-errors-robots.txt",
        "bot2",
        "/no-colon-useragent/",
        false,
    );
    check("crawl-delay-group-merging.txt", "mybot", "/private/", false);
    check("crawl-delay-group-merging.txt", "mybot", "/login/", true);
    check("crawl-delay-group-merging.txt", "yourbot", "/login/", false);
}

#[test]
fn extensions_of_samples() {
    let Some(file) = sample("extended-standard-robots.txt") else {
        return;
    };
    let shown = |agent: &str| {
        let robots = Robots::parse(&file, agent);
        let rates: Vec<String> = robots
            .request_rates
            .iter()
            .map(|rate| rate.to_string())
            .collect();
        let hours: Vec<String> = robots
            .visit_times
            .iter()
            .map(|hours| hours.to_string())
            .collect();
        format!("{} {}", rates.join(","), hours.join(","))
    };
    assert_eq!(shown("bot1"), "30/1m 0100-0600");
    assert_eq!(shown("bot2"), "1/15 ");
    assert_eq!(shown("bot3"), "5/1m 0200-2259,20/1m 2300-0159 ");
    assert_eq!(shown("bot4"), "8/1s ");
}
