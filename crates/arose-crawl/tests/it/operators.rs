//! Tests of features for operators of a crawl: the log, settings for single hosts, page requisites,
//! and a time limit.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use arose_crawl::counters::Counter;
use arose_crawl::settings::HostSettings;
use arose_crawl::{End, FailedUrl, Settings, failures, index_lines};

use crate::restart::{first_file, unpacked};
use crate::script::{Reply, Request, Web, page, response, settings};

const HOSTS: &[(&str, &[&str])] = &[
    ("a.test", &["10.0.0.1"]),
    ("b.test", &["10.0.0.2"]),
    ("c.test", &["10.0.0.3"]),
];
const HOME: &[&str] = &["http://a.test/"];

/// The lines of the log by URL; of several lines for one URL, the last.
fn log(folder: &Path) -> BTreeMap<String, Vec<String>> {
    let text = std::fs::read_to_string(folder.join("crawl.log")).unwrap();
    let lines = text.lines().map(|line| {
        let fields: Vec<String> = line.split(' ').map(str::to_owned).collect();
        assert_eq!(fields.len(), 9, "{line}");
        (fields[8].clone(), fields)
    });
    lines.collect()
}

fn troubled(request: &Request) -> Reply {
    match request.target.as_str() {
        "/robots.txt" => response(200, "", b"User-agent: *\nDisallow: /private\n"),
        "/" => page(
            request,
            &[
                "/same",
                "/missing",
                "/private",
                "/closed",
                "/moved",
                "http://gone.test/x",
            ],
        ),
        "/missing" => response(404, "Content-Type: text/plain\r\n", b"nothing"),
        "/closed" => Reply::Close(Vec::new()),
        "/moved" => response(301, "Location: /target\r\n", b""),
        "/same" | "/copy" => response(
            200,
            "Content-Type: text/html; charset=utf-8\r\n",
            format!("<a href=/copy>{}</a>", "the same words ".repeat(20)).as_bytes(),
        ),
        _ => page(request, &[]),
    }
}

/// Every URL that was tried or given up has a line with its result; the failures can be listed.
#[test]
fn issue_22_the_log_says_what_became_of_every_url() {
    let web = Web::new(HOSTS, troubled);
    let folder = tempfile::tempdir().unwrap();
    web.crawl(folder.path(), settings(), HOME);
    let log = log(folder.path());
    let outcome = |url: &str| log[url][1].clone();
    for (url, expected) in [
        ("http://a.test/robots.txt", "200"),
        ("http://a.test/", "200"),
        ("http://a.test/missing", "404"),
        ("http://a.test/private", "robots"),
        ("http://a.test/closed", "closed"),
        ("http://a.test/moved", "301"),
        ("http://a.test/target", "200"),
        ("http://gone.test/x", "unknown-name"),
    ] {
        assert_eq!(outcome(url), expected, "{url}");
    }
    assert_eq!(log["http://a.test/"][7], "-");
    assert_eq!(log["http://a.test/missing"][7], "http://a.test/");
    assert_eq!(log["http://a.test/target"][7], "http://a.test/moved");
    assert_eq!(log["http://gone.test/x"][7], "http://a.test/");
    let missing = &log["http://a.test/missing"];
    assert_eq!(
        (missing[2].as_str(), missing[4].as_str()),
        ("7", "text/plain")
    );
    assert!(missing[5].starts_with("sha1:"));
    let copies = [&log["http://a.test/same"][6], &log["http://a.test/copy"][6]];
    assert_eq!(copies, ["-", "http://a.test/same"]);
    // Every record of the archive has its line, with its digest.
    for line in index_lines(folder.path()).unwrap() {
        let json: serde_json::Value =
            serde_json::from_str(&line[line.find('{').unwrap()..]).unwrap();
        let fields = &log[json["url"].as_str().unwrap()];
        assert_eq!(fields[5], json["digest"].as_str().unwrap(), "{line}");
        assert_eq!(fields[1], json["status"].as_str().unwrap(), "{line}");
    }
    let failed = failures(folder.path()).unwrap();
    let failed: Vec<(&str, &str)> = failed
        .iter()
        .map(|FailedUrl { reason, url, .. }| (reason.as_str(), url.as_str()))
        .collect();
    assert_eq!(
        failed,
        [
            ("404", "http://a.test/missing"),
            ("closed", "http://a.test/closed"),
            ("robots", "http://a.test/private"),
            ("unknown-name", "http://gone.test/x"),
        ]
    );
}

fn with_host(name: &str, host: HostSettings) -> Settings {
    let mut settings = settings();
    settings.host.insert(name.to_owned(), host);
    settings
}

/// Credentials go only to their origin, including its robots.txt. They do not follow redirects or
/// links and are not in the archive or the log.
#[test]
fn issue_22_credentials_stay_at_home() {
    let web = Web::new(HOSTS, |request| match request.target.as_str() {
        "/robots.txt" => response(404, "", b""),
        "/" => page(
            request,
            &["/moved", "http://b.test/linked", "http://a.test:81/port"],
        ),
        "/moved" => response(302, "Location: http://b.test/target\r\n", b""),
        _ => page(request, &[]),
    });
    let folder = tempfile::tempdir().unwrap();
    let mut settings = with_host(
        "http://a.test",
        HostSettings {
            bearer: Some("S3CR3T".to_owned()),
            cookies: Some("id=S3CR3T".to_owned()),
            headers: [("X-Key".to_owned(), "S3CR3T".to_owned())].into(),
            ..HostSettings::default()
        },
    );
    settings.archive.requests = true;
    let summary = web.crawl(folder.path(), settings, HOME);
    assert_eq!(summary.end, End::Done);
    let (mut n_with, mut n_without) = (0, 0);
    for request in web.log() {
        let is_home = request.host == "a.test";
        for header in [
            "Authorization: Bearer S3CR3T\r\n",
            "Cookie: id=S3CR3T\r\n",
            "X-Key: S3CR3T\r\n",
        ] {
            assert_eq!(request.head.contains(header), is_home, "{}", request.head);
        }
        assert_eq!(request.head.contains("S3CR3T"), is_home);
        *(if is_home { &mut n_with } else { &mut n_without }) += 1;
    }
    assert_eq!((n_with, n_without), (3, 5));
    for part in ["archive", "robots"] {
        let text = unpacked(&first_file(&folder.path().join(part), ".warc.gz"));
        assert!(
            text.contains("warcinfo") && !text.contains("S3CR3T"),
            "{part}"
        );
    }
    let log = std::fs::read_to_string(folder.path().join("crawl.log")).unwrap();
    assert!(!log.contains("S3CR3T"));
}

/// A host has its own delay and its own limits; others keep theirs.
#[test]
fn issue_22_hosts_have_settings_of_their_own() {
    let web = Web::new(HOSTS, |request| match request.target.as_str() {
        "/robots.txt" => response(404, "", b""),
        target => {
            let n: u32 = target[1..].parse().unwrap_or(0);
            let next = format!("/{}", n + 1);
            match n < 8 {
                true => page(request, &[&next]),
                false => page(request, &[]),
            }
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let mut settings = with_host(
        "a.test",
        HostSettings {
            delay: Some(7.0),
            max_pages: Some(5),
            ..HostSettings::default()
        },
    );
    let short = HostSettings {
        max_body: Some(100),
        ..HostSettings::default()
    };
    settings.host.insert("c.test".to_owned(), short);
    settings.stop.patience = 100.0;
    let seeds = &["http://a.test/", "http://b.test/", "http://c.test/"];
    let summary = web.crawl(folder.path(), settings.clone(), seeds);
    assert_eq!((summary.end, summary.n_full_hosts), (End::Waiting, 1));
    let log = web.log();
    let times = |host: &str| -> Vec<Duration> {
        let requests = log.iter().filter(|request| request.host == host);
        requests.map(|request| request.at).collect()
    };
    // robots.txt, and five or nine pages.
    assert_eq!((times("a.test").len(), times("b.test").len()), (6, 10));
    let gaps = |host: &str| -> Vec<u64> {
        let times = times(host);
        let pairs = times.windows(2);
        pairs.map(|pair| (pair[1] - pair[0]).as_secs()).collect()
    };
    assert!(
        gaps("a.test").iter().all(|&gap| gap == 7),
        "{:?}",
        gaps("a.test")
    );
    assert!(
        gaps("b.test").iter().all(|&gap| gap == 1),
        "{:?}",
        gaps("b.test")
    );
    assert_eq!(summary.counters.get(Counter::Truncated), 1);
    // The limit applies to all runs together, and a higher one lets the crawl continue.
    let again = web.crawl(folder.path(), settings.clone(), &[]);
    assert_eq!((again.end, web.targets("a.test").len()), (End::Waiting, 5));
    settings.host.clear();
    let done = web.crawl(folder.path(), settings, &[]);
    assert_eq!((done.end, web.targets("a.test").len()), (End::Done, 9));
}

/// Requisites of pages are fetched from any host, and their links are not followed; without the
/// setting none are fetched.
#[test]
fn issue_22_requisites_come_from_anywhere() {
    let html = "<link rel=stylesheet href=/style.css><link rel=alternate href=/feed>\
        <style>p { background: url('http://b.test/inline.png') }</style>\
        <script src=//b.test/code.js></script><img src=small.png srcset='big.png 2x, huge.png 3x'>\
        <p style='background: url(/attribute.png)'>words <a href=http://b.test/page>elsewhere</a>";
    let web = || {
        Web::new(HOSTS, move |request| match request.target.as_str() {
            "/robots.txt" => response(404, "", b""),
            "/" => response(200, "Content-Type: text/html\r\n", html.as_bytes()),
            "/style.css" => response(
                200,
                "Content-Type: text/css\r\n",
                b"@import 'more.css'; @font-face { src: url(http://b.test/font.woff2) }",
            ),
            "/more.css" => response(200, "Content-Type: text/css\r\n", b"p { color: red }"),
            // A page in place of a picture has no links.
            "/inline.png" => page(request, &["/trap"]),
            _ => response(
                200,
                "Content-Type: image/png\r\n",
                request.target.as_bytes(),
            ),
        })
    };
    let mut settings = settings();
    settings.scope.hosts = vec!["a.test".to_owned()];
    settings.scope.max_depth = 0;
    let without = web();
    let folder = tempfile::tempdir().unwrap();
    without.crawl(folder.path(), settings.clone(), HOME);
    assert_eq!(without.log().len(), 2);
    settings.scope.requisites = true;
    let with = web();
    let folder = tempfile::tempdir().unwrap();
    let summary = with.crawl(folder.path(), settings, HOME);
    assert_eq!(summary.end, End::Done);
    let sorted = |host: &str| {
        let mut targets = with.targets(host);
        targets.sort();
        targets
    };
    assert_eq!(
        sorted("a.test"),
        [
            "/",
            "/attribute.png",
            "/big.png",
            "/huge.png",
            "/more.css",
            "/small.png",
            "/style.css"
        ]
    );
    assert_eq!(sorted("b.test"), ["/code.js", "/font.woff2", "/inline.png"]);
}

/// A run that may take 200 seconds ends within 210, whatever hosts do. URLs of open requests are
/// still queued.
#[test]
fn issue_22_a_run_ends_in_time() {
    let web = Web::new(HOSTS, |request| match request.target.as_str() {
        "/robots.txt" => response(404, "", b""),
        "/" => page(request, &["/slow"]),
        _ => Reply::Trickle(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n".repeat(100)),
    });
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings();
    settings.stop.seconds = 200.0;
    settings.fetch.first_byte = 1000.0;
    settings.fetch.whole = 5000.0;
    let summary = web.crawl(folder.path(), settings.clone(), HOME);
    assert_eq!((summary.end, summary.n_queued), (End::Limit, 1));
    let took = summary.elapsed.as_secs();
    assert!((200..210).contains(&took), "{took}");
    let again = web.crawl(folder.path(), settings, &[]);
    assert_eq!((again.end, web.targets("a.test").len()), (End::Limit, 3));
}
