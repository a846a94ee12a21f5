//! Tests of features for operators of a crawl: the log, settings for single hosts, page requisites,
//! and a time limit.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use arose_crawl::counters::{Counter, Failure};
use arose_crawl::settings::{DuplicateBody, HostSettings, ScorerKind};
use arose_crawl::{End, FailedUrl, Limit, Settings, failures, index_lines};
use data_encoding::BASE32;
use sha1::{Digest, Sha1};

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

/// Several hosts with trouble of all kinds.
fn manifold(request: &Request) -> Reply {
    let Request { host, target, .. } = request;
    match (host.as_str(), target.as_str()) {
        ("a.test", "/robots.txt") => response(
            200,
            "",
            b"User-agent: *\nDisallow: /private\nSitemap: http://a.test/map.xml\n",
        ),
        ("b.test", "/robots.txt") => response(301, "Location: http://a.test/robots.txt\r\n", b""),
        ("c.test", "/robots.txt") => response(503, "", b""),
        ("e.test", "/robots.txt") => response(200, "", b"User-agent: *\nCrawl-delay: 301\n"),
        (_, "/robots.txt") => response(404, "", b""),
        ("a.test", "/") => page(
            request,
            &[
                "/busy",
                "/private",
                "/loop0",
                "/late",
                "http://b.test/",
                "http://c.test/",
                "http://refused.test/",
                "http://d.test/",
                "http://e.test/",
                "http://gone.test/x",
            ],
        ),
        (_, "/map.xml") => response(
            200,
            "Content-Type: text/xml\r\n",
            b"<urlset><url><loc>/listed</loc></url></urlset>",
        ),
        (_, "/busy") => response(503, "", b"later"),
        (_, "/late") => Reply::Trickle(b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n".to_vec()),
        (_, target) if target.starts_with("/loop") => {
            let n: u32 = target[5..].parse().unwrap();
            response(302, &format!("Location: /loop{}\r\n", n + 1), b"")
        }
        _ => page(request, &[]),
    }
}

/// Each request has a line, whatever it is for and whatever came of it: robots.txt files, also of
/// other hosts and of deferred ones, sitemaps, redirects, and tries that are repeated. So has each
/// failed connection, and each URL that is given up without a request.
#[test]
fn issue_22_every_request_has_its_line() {
    const NAMES: &[(&str, &[&str])] = &[
        ("a.test", &["10.0.0.1"]),
        ("b.test", &["10.0.0.2"]),
        ("c.test", &["10.0.0.3"]),
        ("refused.test", &["10.0.0.4"]),
        ("d.test", &["10.0.0.6"]),
        ("e.test", &["10.0.0.5"]),
    ];
    let web = Web::new(NAMES, manifold).refusing("10.0.0.4");
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings();
    settings.stop.patience = 200.0;
    settings.fetch.first_byte = 5.0;
    let summary = web.crawl(folder.path(), settings.clone(), HOME);
    assert_eq!(summary.end, End::Waiting);
    assert_eq!((summary.n_deferred_hosts, summary.n_full_hosts), (1, 0));
    let text = std::fs::read_to_string(folder.path().join("crawl.log")).unwrap();
    let mut logged: Vec<(&str, &str)> = Vec::new();
    let mut reasons = BTreeSet::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let (reason, url) = (fields[1], fields[8]);
        if !["robots", "unknown-name", "unreachable"].contains(&reason) {
            logged.push((url.strip_prefix("http://").unwrap(), reason));
        }
        reasons.insert(reason);
    }
    let requests = web.log();
    let mut sent: Vec<String> = requests
        .iter()
        .map(|request| format!("{}{}", request.host, request.target))
        .collect();
    sent.sort();
    let mut urls: Vec<&str> = logged.iter().map(|(url, _)| *url).collect();
    urls.sort_unstable();
    assert_eq!(urls, sent);
    let expected = [
        "200",
        "301",
        "302",
        "404",
        "503",
        "robots",
        "timeout",
        "unknown-name",
        "unreachable",
    ];
    assert_eq!(Vec::from_iter(reasons), expected);
    let n_busy = logged.iter().filter(|(url, _)| *url == "a.test/busy");
    assert!(n_busy.count() > 1);
    // What is the case is said, however often it was counted: the next run defers the host again.
    let again = web.crawl(folder.path(), settings.clone(), &[]);
    assert_eq!((again.end, again.n_deferred_hosts), (End::Waiting, 1));
    settings.polite.defer_above = 1000.0;
    settings.stop.patience = 1000.0;
    let done = web.crawl(folder.path(), settings, &[]);
    assert_eq!(done.n_deferred_hosts, 0);
    assert_eq!(web.targets("e.test"), ["/"]);
    assert!(done.before.get(Counter::Requests) > 0);
    assert!(done.before.get(Counter::Requests) < done.counters.get(Counter::Requests));
    // A missing robots.txt is no failure.
    let failed = failures(folder.path()).unwrap();
    let is_listed = |url: &str| failed.iter().any(|failed| failed.url == url);
    assert!(is_listed("http://refused.test/robots.txt") && is_listed("http://c.test/robots.txt"));
    assert!(text.contains(" http://d.test/robots.txt\n") && !is_listed("http://d.test/robots.txt"));
}

/// The limit that ended a run is named.
#[test]
fn issue_22_the_limit_of_a_run_is_named() {
    let end = |change: fn(&mut Settings)| {
        let web = Web::new(HOSTS, |request| match request.target.as_str() {
            "/robots.txt" => response(404, "", b""),
            _ => page(request, &["/a", "/b", "/c", "/d"]),
        });
        let folder = tempfile::tempdir().unwrap();
        let mut settings = settings();
        change(&mut settings);
        let summary = web.crawl(folder.path(), settings, HOME);
        (summary.end, summary.limit)
    };
    assert_eq!(end(|_| ()), (End::Done, None));
    for (change, limit) in [
        (
            (|settings| settings.stop.pages = 2) as fn(&mut Settings),
            Limit::Pages,
        ),
        (|settings| settings.stop.bytes = 500, Limit::Bytes),
        (|settings| settings.stop.seconds = 2.0, Limit::Time),
    ] {
        assert_eq!(end(change), (End::Limit, Some(limit)));
    }
}

/// A record of an archive: its fields and its block.
struct Record {
    fields: BTreeMap<String, String>,
    block: Vec<u8>,
}

/// The records of an unpacked archive.
fn records(text: &str) -> Vec<Record> {
    let mut records = Vec::new();
    let mut rest = text.strip_prefix("WARC/1.1\r\n");
    while let Some(record) = rest {
        let (head, body) = record.split_once("\r\n\r\n").unwrap();
        let fields = head.lines().map(|line| {
            let (name, value) = line.split_once(": ").unwrap();
            (name.to_owned(), value.to_owned())
        });
        let fields: BTreeMap<String, String> = fields.collect();
        let length: usize = fields["Content-Length"].parse().unwrap();
        let (block, end) = body.split_at(length);
        records.push(Record {
            fields,
            block: block.as_bytes().to_vec(),
        });
        let end = end.strip_prefix("\r\n\r\n").unwrap();
        rest = end.strip_prefix("WARC/1.1\r\n");
        assert!(rest.is_some() || end.is_empty());
    }
    records
}

/// Records of every kind have the digest of their block and name the `warcinfo` record of their
/// file: pages, duplicates of both kinds, pages that have not changed, requests, scores, and
/// robots.txt files.
#[test]
fn issue_22_records_of_every_kind_are_complete() {
    let words = |seed: u32| -> String {
        let word = |n: u32| format!("w{:x} ", (seed + n).wrapping_mul(2_654_435_761));
        (0..400).map(word).collect()
    };
    let web = Web::new(HOSTS, move |request| match request.target.as_str() {
        "/robots.txt" => response(200, "", b"User-agent: *\nDisallow: /x\n"),
        "/" => page(request, &["/one", "/same", "/near"]),
        "/one" if request.head.contains("If-None-Match: \"v\"") => {
            response(304, "ETag: \"v\"\r\n", b"")
        }
        target => {
            let more = if target == "/near" { "rose" } else { "" };
            let body = format!("<p>{} {more}", words(0));
            response(
                200,
                "Content-Type: text/html\r\nETag: \"v\"\r\n",
                body.as_bytes(),
            )
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings();
    settings.archive.requests = true;
    settings.duplicates.body = DuplicateBody::Drop;
    settings.focus.scorer = ScorerKind::Keywords;
    settings.focus.keywords = vec!["rose".to_owned()];
    settings.recrawl.on = true;
    settings.recrawl.per_second = 0.2;
    settings.recrawl.min_interval = 60.0;
    settings.stop.seconds = 2000.0;
    web.crawl(folder.path(), settings, HOME);
    let mut kinds = BTreeSet::new();
    for part in ["archive", "robots"] {
        let text = unpacked(&first_file(&folder.path().join(part), ".warc.gz"));
        let records = records(&text);
        let id = &records[0].fields["WARC-Record-ID"];
        for record in &records {
            let field = |name: &str| record.fields.get(name).map(String::as_str);
            let digest = BASE32.encode(&Sha1::digest(&record.block));
            let expected = format!("sha1:{digest}");
            assert_eq!(
                field("WARC-Block-Digest"),
                Some(&*expected),
                "{:?}",
                record.fields
            );
            let kind = field("WARC-Type").unwrap();
            let info = field("WARC-Warcinfo-ID");
            assert_eq!(info, (kind != "warcinfo").then_some(id.as_str()), "{kind}");
            let profile = field("WARC-Profile").unwrap_or_default();
            let profile = profile.rsplit(['/', ':']).next().unwrap();
            kinds.insert(format!("{kind} {profile}"));
        }
    }
    let expected = [
        "metadata ",
        "request ",
        "response ",
        "revisit identical-payload-digest",
        "revisit near-duplicate",
        "revisit server-not-modified",
        "warcinfo ",
    ];
    assert_eq!(Vec::from_iter(kinds), expected);
}

/// The cookies of a file are sent to their hosts and stored nowhere. A file that cannot be read
/// stops the crawl before it writes anything.
#[test]
fn issue_22_cookie_files_are_sent_to_their_hosts() {
    let web = Web::new(HOSTS, |request| match request.target.as_str() {
        "/robots.txt" => response(404, "", b""),
        "/" => page(request, &["/docs/", "http://b.test/"]),
        _ => page(request, &[]),
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cookies.txt");
    let text = "# Netscape HTTP Cookie File\n\
        a.test\tFALSE\t/docs\tFALSE\t0\tid\tS3CR3T\n\
        a.test\tFALSE\t/\tTRUE\t0\tsafe\tS3CR3T\n\
        a.test\tFALSE\t/\tFALSE\t1000\told\tS3CR3T\n";
    std::fs::write(&file, text).unwrap();
    let mut settings = settings();
    settings.network.cookies = Some(file.clone());
    settings.archive.requests = true;
    let dir = folder.path().join("crawl");
    std::fs::create_dir(&dir).unwrap();
    web.crawl(&dir, settings.clone(), HOME);
    for request in web.log() {
        let is_sent = request.head.contains("Cookie: id=S3CR3T\r\n");
        let is_for_it = request.host == "a.test" && request.target == "/docs/";
        assert_eq!(is_sent, is_for_it, "{}", request.head);
        assert_eq!(request.head.contains("S3CR3T"), is_sent, "{}", request.head);
    }
    let archive = unpacked(&first_file(&dir.join("archive"), ".warc.gz"));
    assert!(archive.contains("GET /docs/ ") && !archive.contains("S3CR3T"));
    std::fs::write(&file, "a.test FALSE / FALSE 0 id 1\n").unwrap();
    let new = folder.path().join("new");
    settings.network.allow_private = true;
    let seeds = arose_crawl::Seeds {
        pages: vec!["http://127.0.0.1:9/".to_owned()],
        sitemaps: Vec::new(),
    };
    let error = arose_crawl::crawl(&new, settings, seeds, &arose_crawl::Control::default());
    let error = error.unwrap_err().to_string();
    assert!(error.contains("line 1: expected seven fields"), "{error}");
    assert!(!new.exists());
}

/// An address that may not be asked is refused, and asked as soon as the settings allow it. What
/// is said of requests of this run does not depend on earlier runs.
#[test]
fn issue_22_refused_addresses_are_asked_once_allowed() {
    let server = testweb::Server::start(testweb::Config {
        pages: testweb::PageCount::Fixed(3),
        ..testweb::Config::plain(1)
    });
    let server = server.unwrap();
    let mut settings = crate::web::settings(&server);
    settings.network.allow_private = false;
    settings.agent.contact = "me@example.org".to_owned();
    let folder = tempfile::tempdir().unwrap();
    let seeds = [crate::web::home(&server, 0)];
    let refused = crate::web::run(folder.path(), settings.clone(), &seeds);
    assert_eq!((server.n_requests(), refused.n_queued), (0, 1));
    let n_refused = |summary: &arose_crawl::Summary| {
        let of = |counters: &arose_crawl::counters::Counters| counters.failed(Failure::Forbidden);
        of(&summary.counters) - of(&summary.before)
    };
    assert_eq!(n_refused(&refused), 1);
    let failed = failures(folder.path()).unwrap();
    assert_eq!(failed[0].reason, "forbidden-address");
    settings.network.allow_private = true;
    let allowed = crate::web::run(folder.path(), settings, &[]);
    assert_eq!((allowed.end, n_refused(&allowed)), (End::Done, 0));
    assert_eq!(allowed.counters.failed(Failure::Forbidden), 1);
    let n_reachable = crate::web::reachable(&server, &seeds, None).len();
    assert_eq!(crate::web::fetched(&server).len(), n_reachable);
    let failed = failures(folder.path()).unwrap();
    assert!(
        failed.iter().all(|failed| failed.reason == "robots"),
        "{failed:?}"
    );
    server.stop().unwrap();
}
