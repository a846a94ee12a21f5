//! Tests of edge cases of servers: robots.txt files that are encoded, truncated or moved, numbers
//! without bounds, pages that always fail, repeated headers.

use std::io::Write;

use arose_crawl::counters::{Counter, Failure};
use arose_crawl::settings::DuplicateLinks;
use arose_crawl::{End, Summary, index_lines, status};

use crate::script::{Reply, Request, Web, page, page_with, response, settings};

const ONE: &[(&str, &[&str])] = &[("a.test", &["10.0.0.1"])];
const HOME: &[&str] = &["http://a.test/"];

/// Serves this robots.txt, and a home page with links to `/private/x` and `/open`.
fn web_with_robots(robots: impl Fn() -> Reply + 'static) -> Web {
    Web::new(ONE, move |request| match request.target.as_str() {
        "/robots.txt" => robots(),
        "/" => page(request, &["/private/x", "/open"]),
        _ => page(request, &[]),
    })
}

fn crawl(web: &Web) -> Summary {
    let folder = tempfile::tempdir().unwrap();
    web.crawl(folder.path(), settings(), HOME)
}

const RULES: &[u8] = b"User-agent: *\nDisallow: /private/\n";

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn coded(coding: &str, body: &[u8]) -> Reply {
    response(200, &format!("Content-Encoding: {coding}\r\n"), body)
}

/// Rules apply in any content coding.
#[test]
fn issue_21_coded_robots_files_are_read() {
    let twice = gzip(&zlib(RULES));
    // A Brotli stream with one uncompressed block.
    let brotli = [&[139, 16, 128], RULES, &[3]].concat();
    let large = [RULES, &b"# filler\n".repeat(100_000)].concat();
    for (coding, body) in [
        ("gzip", gzip(RULES)),
        ("X-GZIP", gzip(RULES)),
        ("deflate", zlib(RULES)),
        ("br", brotli),
        ("zstd", zstd::encode_all(RULES, 3).unwrap()),
        ("deflate, gzip", twice),
        ("identity", RULES.to_vec()),
        ("gzip", gzip(&large)),
    ] {
        let web = web_with_robots(move || coded(coding, &body));
        let summary = crawl(&web);
        assert_eq!(web.targets("a.test"), ["/", "/open"], "{coding}");
        assert_eq!(summary.counters.get(Counter::Disallowed), 1, "{coding}");
    }
}

#[track_caller]
fn check_unreachable(robots: impl Fn() -> Reply + 'static) {
    let web = web_with_robots(robots);
    let summary = crawl(&web);
    assert_eq!(web.targets("a.test"), [""; 0]);
    assert_eq!((summary.end, summary.n_queued), (End::Waiting, 1));
    assert_eq!(summary.counters.get(Counter::UnreachableHosts), 1);
}

/// A coding that cannot be decoded closes the whole site.
#[test]
fn issue_21_undecodable_robots_files_count_as_unreachable() {
    check_unreachable(|| coded("rot13", RULES));
    check_unreachable(|| coded("gzip", b"User-agent: *\nDisallow:\n"));
    check_unreachable(|| {
        let packed = gzip(&RULES.repeat(100));
        coded("gzip", &packed[..packed.len() / 2])
    });
}

/// The missing part of a truncated file may have had any rule.
#[test]
fn issue_21_truncated_robots_files_count_as_unreachable() {
    let truncated = || {
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n";
        Reply::Close([head.as_slice(), b"User-agent: *\nAllow:"].concat())
    };
    check_unreachable(truncated);
    check_unreachable(|| {
        let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        Reply::Close([head.as_slice(), b"10\r\nUser-agent: *\n"].concat())
    });
    // A server that recovers is trusted again.
    let web = Web::new(ONE, move |request| match request.target.as_str() {
        "/robots.txt" if request.n_before == 0 => truncated(),
        "/robots.txt" => response(200, "", RULES),
        "/" => page(request, &["/private/x", "/open"]),
        _ => page(request, &[]),
    });
    assert_eq!(crawl(&web).end, End::Done);
    assert_eq!(web.targets("a.test"), ["/", "/open"]);
}

/// A robots.txt at a URL where the crawler does not go is unknown, not absent.
#[test]
fn issue_21_robots_files_beyond_max_hosts_count_as_unreachable() {
    let names: &[(&str, &[&str])] = &[("a.s.test", &["10.0.0.1"]), ("b.s.test", &["10.0.0.2"])];
    for location in ["http://b.s.test/robots.txt", "http://[", "mailto:x@a.test"] {
        let web = Web::new(names, move |request| match request.target.as_str() {
            "/robots.txt" => response(301, &format!("Location: {location}\r\n"), b""),
            _ => page(request, &[]),
        });
        let folder = tempfile::tempdir().unwrap();
        let mut settings = settings();
        settings.budget.max_hosts = 1;
        let summary = web.crawl(folder.path(), settings, &["http://a.s.test/"]);
        assert_eq!(web.targets("a.s.test"), [""; 0], "{location}");
        assert_eq!((summary.end, summary.n_queued), (End::Waiting, 1));
    }
}

/// Numbers that no clock can represent defer the host and do not stop the crawl.
#[test]
fn issue_21_delays_without_bounds_defer() {
    for line in [
        "Request-rate: 1/18446744073709551615",
        "Request-rate: 1/18446744073709551616h",
        "Crawl-delay: 1e300",
        "Crawl-delay: 99999999999999999999999999",
    ] {
        let text = format!("User-agent: *\n{line}\n");
        let web = web_with_robots(move || response(200, "", text.as_bytes()));
        let folder = tempfile::tempdir().unwrap();
        let summary = web.crawl(folder.path(), settings(), HOME);
        assert_eq!(web.targets("a.test"), [""; 0], "{line}");
        assert_eq!((summary.end, summary.n_queued), (End::Waiting, 1), "{line}");
        assert_eq!(summary.counters.get(Counter::DeferredHosts), 1, "{line}");
        // The delay was saved, and can be read again.
        let again = web.crawl(folder.path(), settings(), HOME);
        assert_eq!(again.end, End::Waiting, "{line}");
    }
}

/// If the settings accept any delay, one that no clock can represent counts as thirty days, and its
/// end can be computed.
#[test]
fn issue_21_delays_without_bounds_have_an_end() {
    for line in [
        "Request-rate: 1/18446744073709549568",
        "Crawl-delay: 18446744073709549568",
        "Crawl-delay: 1e300",
    ] {
        // The file takes so long that the current time plus the delay would overflow.
        let text = format!("User-agent: *\n{line}\n{}", "#".repeat(2500));
        let web = Web::new(ONE, move |request| match request.target.as_str() {
            "/robots.txt" => {
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", text.len());
                Reply::Trickle([head.as_bytes(), text.as_bytes()].concat())
            }
            _ => page(request, &[]),
        });
        let mut settings = settings();
        settings.fetch.first_byte = 1000.0;
        settings.fetch.whole = 10_000.0;
        settings.polite.defer_above = 18_446_744_073_709_549_568.0;
        let folder = tempfile::tempdir().unwrap();
        let summary = web.crawl(folder.path(), settings, HOME);
        assert_eq!(web.targets("a.test"), [""; 0], "{line}");
        assert_eq!((summary.end, summary.n_queued), (End::Waiting, 1), "{line}");
        assert_eq!(summary.counters.get(Counter::DeferredHosts), 0, "{line}");
    }
}

/// The same within one run: after a day the page is requested again.
#[test]
fn issue_21_waits_without_bounds_end_within_a_run() {
    let web = Web::new(ONE, |request| {
        match (request.target.as_str(), request.n_before) {
            ("/robots.txt", _) => response(404, "", b""),
            (_, 0) => response(503, "Retry-After: 99999999999999999999999\r\n", b""),
            _ => page(request, &[]),
        }
    });
    let mut settings = settings();
    settings.stop.patience = 25.0 * 3600.0;
    let folder = tempfile::tempdir().unwrap();
    let summary = web.crawl(folder.path(), settings, HOME);
    assert_eq!(summary.end, End::Done);
    let log = web.log();
    assert_eq!((log[2].at - log[1].at).as_secs(), 24 * 3600);
}

#[test]
fn issue_21_waits_without_bounds_last_a_day() {
    for value in ["Fri, 31 Dec 9999 23:59:59 GMT", "99999999999999999999999"] {
        let busy = format!("Retry-After: {value}\r\n");
        let web = Web::new(ONE, move |request| {
            match (request.target.as_str(), request.n_before) {
                ("/robots.txt", _) => response(404, "", b""),
                (_, 0) => response(503, &busy, b""),
                _ => page(request, &[]),
            }
        });
        let folder = tempfile::tempdir().unwrap();
        let mut settings = settings();
        settings.stop.patience = 100.0;
        let summary = web.crawl(folder.path(), settings.clone(), HOME);
        assert_eq!(
            (summary.end, summary.n_queued),
            (End::Waiting, 1),
            "{value}"
        );
        web.advance(24 * 3600 - 50);
        let summary = web.crawl(folder.path(), settings, HOME);
        assert_eq!(summary.end, End::Done, "{value}");
        let wait = web.log()[2].at.as_secs();
        assert!((40..=50).contains(&wait), "{wait}");
    }
}

/// A length beyond all machines is still a length: the received part is marked as truncated.
#[test]
fn issue_21_lengths_without_bounds_are_lengths() {
    let web = Web::new(ONE, |request| match request.target.as_str() {
        "/robots.txt" => response(404, "", b""),
        _ => Reply::Close(
            b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\nwords".to_vec(),
        ),
    });
    assert_eq!(crawl(&web).counters.get(Counter::Truncated), 1);
}

/// A panic while a response is read affects only that URL, once.
#[test]
fn issue_21_panics_are_contained() {
    let web = Web::new(ONE, |request| match request.target.as_str() {
        "/robots.txt" => response(404, "", b""),
        "/" => page(request, &["/bad", "/good"]),
        "/bad" => Reply::Panic,
        _ => page(request, &[]),
    });
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings();
    // A response that is never processed must not block the test.
    settings.stop.seconds = 600.0;
    for _ in 0..2 {
        let summary = web.crawl(folder.path(), settings.clone(), HOME);
        assert_eq!((summary.end, summary.n_queued), (End::Done, 0));
        assert_eq!(summary.counters.failed(Failure::Unreadable), 1);
        assert_eq!(summary.counters.get(Counter::Lost), 1);
        assert_eq!(web.targets("a.test"), ["/", "/bad", "/good"]);
    }
    assert_eq!(index_lines(folder.path()).unwrap().len(), 2);
}

/// A panic during a DNS lookup defers that host to another day, and the crawl continues.
#[test]
fn issue_21_panics_over_names_are_contained() {
    let web = Web::new(ONE, |request| match request.target.as_str() {
        "/robots.txt" => response(404, "", b""),
        "/" => page(request, &["/good"]),
        _ => page(request, &[]),
    });
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings();
    // A lookup that is never reported must not block the test.
    settings.stop.seconds = 10_000.0;
    let seeds = [HOME[0], "http://panic.test/"];
    let summary = web.crawl(folder.path(), settings, &seeds);
    assert_eq!((summary.end, summary.n_lost), (End::Waiting, 1));
    assert_eq!(web.targets("a.test"), ["/", "/good"]);
}

fn busy_page(request: &Request, headers: &'static str) -> Reply {
    match request.target.as_str() {
        "/robots.txt" => response(404, "", b""),
        "/" => page(request, &["/busy", "/1", "/2", "/3"]),
        "/busy" => response(503, headers, b"busy"),
        _ => page(request, &[]),
    }
}

/// A page that is always busy has a bounded number of tries, after all other pages of its host, and
/// ends as a server error.
#[test]
fn issue_21_busy_pages_come_last() {
    for headers in ["Retry-After: 0\r\n", ""] {
        let web = Web::new(ONE, move |request| busy_page(request, headers));
        let folder = tempfile::tempdir().unwrap();
        let summary = web.crawl(folder.path(), settings(), HOME);
        let expected = [
            "/", "/busy", "/1", "/2", "/3", "/busy", "/busy", "/busy", "/busy",
        ];
        assert_eq!(web.targets("a.test"), expected);
        assert_eq!((summary.end, summary.n_queued), (End::Done, 0));
        assert_eq!(summary.counters.get(Counter::ServerErrors), 1);
        let lines = index_lines(folder.path()).unwrap();
        assert!(lines.iter().any(|line| line.contains("\"503\"")));
    }
}

/// Tries are counted across all runs, with and without rewriting the journal.
#[test]
fn issue_21_tries_survive_restarts() {
    for compact in [1, 64 << 20] {
        let web = Web::new(ONE, |request| busy_page(request, "Retry-After: 3600\r\n"));
        let folder = tempfile::tempdir().unwrap();
        let mut settings = settings();
        settings.archive.compact = compact;
        settings.stop.patience = 10_000.0;
        settings.stop.seconds = 5000.0;
        let mut n_runs = 0;
        loop {
            n_runs += 1;
            let summary = web.crawl(folder.path(), settings.clone(), HOME);
            if summary.end == End::Done {
                break;
            }
            assert_eq!(status(folder.path()).unwrap().n_queued, summary.n_queued);
            assert!(n_runs < 20, "{summary:?}");
        }
        assert!(n_runs > 2, "{n_runs}");
        let targets = web.targets("a.test");
        let n_tries = targets.iter().filter(|target| *target == "/busy").count();
        assert_eq!((n_tries, targets.len()), (5, 9), "{targets:?}");
    }
}

/// Every header counts, whatever precedes the directive.
#[test]
fn issue_21_all_robots_tags_count() {
    for (headers, follows) in [
        ("X-Robots-Tag: noindex\r\nX-Robots-Tag: nofollow\r\n", false),
        (
            "X-Robots-Tag: unavailable_after: 25 Jun 2010 15:00:00 PST, nofollow\r\n",
            false,
        ),
        (
            "X-Robots-Tag: unavailable_after: Fri, 25 Jun 2100 15:00:00 GMT\r\nx-robots-tag: arose: none\r\n",
            false,
        ),
        (
            "X-Robots-Tag: \u{fffd}\r\nX-Robots-Tag: nofollow\r\n",
            false,
        ),
        ("X-Robots-Tag: other: noindex, nofollow\r\n", true),
        (
            "X-Robots-Tag: noindex\r\nX-Robots-Tag: max-snippet:-1\r\n",
            true,
        ),
    ] {
        let web = Web::new(ONE, move |request| match request.target.as_str() {
            "/robots.txt" => response(404, "", b""),
            "/" => page_with(request, headers, &["/next"]),
            _ => page(request, &[]),
        });
        crawl(&web);
        let expected: &[&str] = if follows { &["/", "/next"] } else { &["/"] };
        assert_eq!(web.targets("a.test"), expected, "{headers}");
    }
}

/// If the first IP address of a host does not respond, the next one is used, for its robots.txt as
/// for its pages.
#[test]
fn issue_21_robots_files_fail_over() {
    let names: &[(&str, &[&str])] = &[("a.test", &["10.0.0.1", "10.0.0.2"])];
    let web = Web::new(names, |request| match request.target.as_str() {
        "/robots.txt" => response(200, "", RULES),
        "/" => page(request, &["/private/x", "/open"]),
        _ => page(request, &[]),
    });
    let web = web.refusing("10.0.0.1");
    let summary = crawl(&web);
    assert_eq!(summary.end, End::Done);
    assert_eq!(web.targets("a.test"), ["/", "/open"]);
    assert_eq!(summary.counters.failed(Failure::Unreachable), 1);
}

/// The same for pages: the first IP address responds only for robots.txt.
#[test]
fn issue_21_pages_fail_over() {
    let names: &[(&str, &[&str])] = &[("a.test", &["10.0.0.1", "10.0.0.2"])];
    let web = Web::new(names, |request| match request.target.as_str() {
        "/robots.txt" => response(200, "", RULES),
        _ if request.address.to_string() == "10.0.0.1" => Reply::Close(Vec::new()),
        "/" => page(request, &["/private/x", "/open"]),
        _ => page(request, &[]),
    });
    let summary = crawl(&web);
    assert_eq!((summary.end, summary.n_lost), (End::Done, 0));
    assert_eq!(summary.counters.get(Counter::Pages), 2);
    let log = web.log();
    let n_first = log
        .iter()
        .filter(|request| request.address == log[0].address);
    assert_eq!((n_first.count(), log.len()), (2, 4));
}

/// Three sites with the same home page, whose other pages have no links from elsewhere. Links of
/// seeds are followed even if the seeds are duplicates.
#[test]
fn issue_21_seeds_with_equal_text_are_followed() {
    let names: &[(&str, &[&str])] = &[
        ("a.test", &["10.0.0.1"]),
        ("b.test", &["10.0.0.2"]),
        ("c.test", &["10.0.0.3"]),
    ];
    let seeds = names.iter().map(|(name, _)| format!("http://{name}/"));
    let seeds: Vec<String> = seeds.collect();
    let seeds: Vec<&str> = seeds.iter().map(String::as_str).collect();
    for links in [DuplicateLinks::Last, DuplicateLinks::Never] {
        let web = Web::new(names, |request| match request.target.as_str() {
            "/robots.txt" => response(404, "", b""),
            "/" => {
                let body = format!("{} <a href=one>one</a>", "the same words ".repeat(20));
                response(200, "Content-Type: text/html\r\n", body.as_bytes())
            }
            _ => page(request, &[]),
        });
        let mut settings = settings();
        settings.duplicates.links = links;
        let folder = tempfile::tempdir().unwrap();
        let summary = web.crawl(folder.path(), settings, &seeds);
        for (name, _) in names {
            assert_eq!(web.targets(name), ["/", "/one"], "{links:?} {name}");
        }
        assert_eq!(summary.counters.get(Counter::ExactDuplicates), 2);
        assert_eq!(summary.counters.get(Counter::UnfollowedDuplicates), 0);
        assert_eq!((summary.end, summary.n_queued), (End::Done, 0));
    }
}

/// A mirror is fetched completely: its pages are copies, but not spam.
#[test]
fn issue_26_a_mirror_is_not_spam() {
    let names: &[(&str, &[&str])] = &[("a.test", &["10.0.0.1"]), ("b.test", &["10.0.0.2"])];
    let web = Web::new(names, |request| {
        let links: Vec<String> = (0..40).map(|n| format!("/{n}")).collect();
        let links: Vec<&str> = links.iter().map(String::as_str).collect();
        let of_both = Request {
            host: "both".to_owned(),
            ..request.clone()
        };
        match request.target.as_str() {
            "/robots.txt" => response(404, "", b""),
            "/" => page(&of_both, &links),
            _ => page(&of_both, &[]),
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let seeds = ["http://a.test/", "http://b.test/"];
    let summary = web.crawl(folder.path(), settings(), &seeds);
    assert_eq!((summary.end, summary.n_queued), (End::Done, 0));
    assert_eq!(summary.counters.get(Counter::Pages), 82);
    assert_eq!(summary.counters.get(Counter::ExactDuplicates), 41);
    assert_eq!(summary.counters.get(Counter::BadSites), 0);
}

/// Links of a page whose text equals another's are followed after all others, in their turn, or
/// never, as the settings say.
#[test]
fn issue_21_links_of_duplicates_come_last() {
    for (links, expected) in [
        (
            DuplicateLinks::First,
            &["/original/1", "/copy/1", "/far/1", "/far/2"][..],
        ),
        (
            DuplicateLinks::Last,
            &["/original/1", "/far/1", "/far/2", "/copy/1"],
        ),
        (DuplicateLinks::Never, &["/original/1", "/far/1", "/far/2"]),
    ] {
        let web = Web::new(ONE, |request| match request.target.as_str() {
            "/robots.txt" => response(404, "", b""),
            "/" => page(request, &["/original/", "/copy/", "/far"]),
            "/original/" | "/copy/" => {
                // The words hardly repeat; otherwise both pages would look like spam and come last.
                let words = "a gardener who planted seven hedges beside an old stone wall found \
                     that only one rose survived its first winter and wrote down every storm \
                     in a small book which his daughter still keeps under her window today";
                let body = format!("{words} <a href=1>one</a>");
                response(200, "Content-Type: text/html\r\n", body.as_bytes())
            }
            "/far" => page(request, &["/far/1"]),
            "/far/1" => page(request, &["/far/2"]),
            _ => page(request, &[]),
        });
        let mut settings = settings();
        settings.duplicates.links = links;
        let folder = tempfile::tempdir().unwrap();
        let summary = web.crawl(folder.path(), settings, HOME);
        let targets = web.targets("a.test");
        assert_eq!(targets[..4], ["/", "/original/", "/copy/", "/far"]);
        assert_eq!(targets[4..], *expected, "{links:?}");
        assert_eq!(summary.counters.get(Counter::ExactDuplicates), 1);
    }
}

/// New exclusion rules also apply to URLs that are already queued: nothing that they exclude is
/// requested, not even the robots.txt of a host.
#[test]
fn issue_21_new_rules_reach_the_queue() {
    let names: &[(&str, &[&str])] = &[("a.test", &["10.0.0.1"]), ("b.test", &["10.0.0.2"])];
    let links = ["/x/1", "/y/2", "http://b.test/3", "/x/4", "/y/5"];
    for (change, expected) in [
        ("exclude", &["/y/2", "/y/5"][..]),
        ("blocked", &["/x/1", "/y/2", "/x/4", "/y/5"]),
        ("scope", &["/x/1", "/y/2", "/x/4", "/y/5"]),
        ("depth", &[]),
    ] {
        let web = Web::new(names, move |request| match request.target.as_str() {
            "/robots.txt" => response(404, "", b""),
            "/" => page(request, &links),
            _ => page(request, &[]),
        });
        let folder = tempfile::tempdir().unwrap();
        let mut first = settings();
        first.stop.pages = 1;
        // The second host has no turn in the first run.
        first.fetch.in_flight = 1;
        let before = web.crawl(folder.path(), first, HOME);
        assert_eq!((before.end, before.n_queued), (End::Limit, 5));
        let mut second = settings();
        match change {
            "exclude" => second.scope.exclude = vec!["/x/".to_owned(), "b\\.test".to_owned()],
            "blocked" => second.scope.blocked = vec!["b.test".to_owned()],
            "scope" => second.scope.hosts = vec!["a.test".to_owned()],
            _ => second.scope.max_depth = 0,
        }
        let summary = web.crawl(folder.path(), second.clone(), &[]);
        assert_eq!(web.targets("a.test")[1..], *expected, "{change}");
        assert!(
            web.log().iter().all(|request| request.host != "b.test"),
            "{change}"
        );
        assert_eq!((summary.end, summary.n_queued), (End::Done, 0));
        let n_withdrawn = 5 - expected.len() as u64;
        assert_eq!(
            summary.counters.get(Counter::Withdrawn),
            n_withdrawn,
            "{change}"
        );
        assert_eq!(summary.counters.balance(), 0);
        // This is permanent.
        assert_eq!(status(folder.path()).unwrap().n_queued, 0);
        let again = web.crawl(folder.path(), second, &[]);
        assert_eq!((again.end, again.n_fetched), (End::Done, 0));
    }
}

/// Sitemaps are read in any content coding, up to the 50 MiB that the protocol allows. That is far
/// more than the limit of a page, and compressed far better.
#[test]
fn issue_22_coded_and_large_sitemaps_are_read() {
    let map = b"<urlset><url><loc>http://a.test/listed</loc></url></urlset>";
    // As above.
    let brotli = [&[11, 29, 128], map.as_slice(), &[3]].concat();
    let padding = b" ".repeat(49 << 20);
    let large = [b"<urlset>", padding.as_slice(), &map[8..]].concat();
    for (coding, body) in [
        ("deflate", zlib(map)),
        ("br", brotli),
        ("zstd", zstd::encode_all(map.as_slice(), 3).unwrap()),
        ("gzip", gzip(&large)),
        ("identity", large),
    ] {
        let n_bytes = body.len();
        let web = Web::new(ONE, move |request| match request.target.as_str() {
            "/robots.txt" => response(200, "", b"Sitemap: /map.xml\n"),
            "/map.xml" => coded(coding, &body),
            _ => page(request, &[]),
        });
        let summary = crawl(&web);
        let targets = web.targets("a.test");
        assert_eq!(targets, ["/", "/map.xml", "/listed"], "{coding} {n_bytes}");
        assert_eq!(summary.counters.get(Counter::Truncated), 0, "{coding}");
    }
}
