//! The pace of a crawl, end to end: order, visiting hours, deferral, and delays that double.

use std::time::Duration;

use arose_crawl::End;
use arose_crawl::counters::Counter;

use crate::script::{Reply, Request, Web, page, response, settings};

const ONE: &[(&str, &[&str])] = &[("a.test", &["10.0.0.1"])];
const HOME: &[&str] = &["http://a.test/"];

/// A chain of pages, `/`, `/1`, `/2` and so on.
fn chain(request: &Request, n_pages: u32, robots: &str) -> Reply {
    if request.target == "/robots.txt" {
        return response(200, "", robots.as_bytes());
    }
    let n: u32 = request.target[1..].parse().unwrap_or(0);
    let next = format!("/{}", n + 1);
    match n + 1 < n_pages {
        true => page(request, &[&next]),
        false => page(request, &[]),
    }
}

/// The times of the requests for pages.
fn times(web: &Web) -> Vec<Duration> {
    let log = web.log();
    let pages = log.iter().filter(|request| request.target != "/robots.txt");
    pages.map(|request| request.at).collect()
}

/// The order of URLs is an argument: depth first goes down before it goes on, and an order by URL
/// is kept whatever the order of the links.
#[test]
fn order_is_an_argument() {
    let tree = || {
        Web::new(ONE, |request| match request.target.as_str() {
            "/robots.txt" => response(404, "", b""),
            "/" => page(request, &["/b", "/a"]),
            "/a" | "/b" => {
                let below = ["/1", "/2"].map(|end| request.target.clone() + end);
                page(request, &[&below[0], &below[1]])
            }
            _ => page(request, &[]),
        })
    };
    let order = |priority: Box<arose_crawl::Priority>| {
        let web = tree();
        let folder = tempfile::tempdir().unwrap();
        web.crawl_in_order(folder.path(), settings(), HOME, priority);
        web.targets("a.test")
    };
    let breadth = ["/", "/b", "/a", "/b/1", "/b/2", "/a/1", "/a/2"];
    assert_eq!(order(Box::new(|_, depth| depth)), breadth);
    let depth = ["/", "/b", "/b/1", "/b/2", "/a", "/a/1", "/a/2"];
    assert_eq!(order(Box::new(|_, depth| u32::MAX - depth)), depth);
    let by_name = ["/", "/a", "/a/1", "/a/2", "/b", "/b/1", "/b/2"];
    let first_byte = |url: &arose_crawl::url::NormalUrl| url.rest().as_bytes().get(1).copied();
    assert_eq!(
        order(Box::new(move |url, _| first_byte(url).unwrap_or(0).into())),
        by_name
    );
}

/// Pages are fetched within the visiting hours alone; what is left when they end waits for the next
/// day.
#[test]
fn visiting_hours_are_kept() {
    let robots = "User-agent: *\nVisit-time: 0600-0630\n";
    let web = Web::new(ONE, move |request| chain(request, 20, robots));
    web.set_time_of_day(5, 50);
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings();
    settings.polite.delay = 120.0;
    settings.stop.patience = 3600.0;
    let summary = web.crawl(folder.path(), settings.clone(), HOME);
    assert_eq!(summary.end, End::Waiting);
    let minutes: Vec<u64> = times(&web).iter().map(|at| at.as_secs() / 60).collect();
    assert_eq!(minutes.first(), Some(&10));
    assert!(
        minutes.iter().all(|minute| (10..=40).contains(minute)),
        "{minutes:?}"
    );
    assert_eq!(minutes.len(), 16);
    web.set_time_of_day(5, 59);
    let summary = web.crawl(folder.path(), settings, HOME);
    assert_eq!((summary.end, times(&web).len()), (End::Done, 20));
    assert!(times(&web)[16] >= Duration::from_secs(60));
}

/// A host that asks for a longer delay than is acceptable is deferred and counted at once; one that
/// asks for as much as is acceptable gets it.
#[test]
fn long_delays_are_deferred() {
    let robots = "User-agent: *\nCrawl-delay: 301\n";
    let web = Web::new(ONE, move |request| chain(request, 3, robots));
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings();
    settings.stop.patience = 60.0;
    let summary = web.crawl(folder.path(), settings.clone(), HOME);
    assert_eq!((summary.end, summary.n_queued), (End::Waiting, 1));
    assert_eq!(summary.counters.get(Counter::DeferredHosts), 1);
    assert_eq!(times(&web), []);
    settings.polite.defer_above = 301.0;
    settings.stop.patience = 400.0;
    let summary = web.crawl(folder.path(), settings, HOME);
    assert_eq!(summary.end, End::Done);
    let times = times(&web);
    assert_eq!(times.len(), 3);
    for pair in times.windows(2) {
        assert!(pair[1] - pair[0] >= Duration::from_secs(301), "{times:?}");
    }
}

/// Each 503 doubles the delay, up to an hour; ten successes halve it.
#[test]
fn busy_hosts_have_their_delay_doubled() {
    const N_BUSY: usize = 5;
    let n_asked = std::cell::Cell::new(0);
    let web = Web::new(ONE, move |request| {
        let links: Vec<String> = (0..40).map(|n| format!("/{n}")).collect();
        let links: Vec<&str> = links.iter().map(String::as_str).collect();
        match request.target.as_str() {
            "/robots.txt" => response(404, "", b""),
            "/" => page(request, &links),
            _ => {
                n_asked.set(n_asked.get() + 1);
                match n_asked.get() <= N_BUSY {
                    true => response(503, "", b""),
                    false => page(request, &[]),
                }
            }
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let summary = web.crawl(folder.path(), settings(), HOME);
    assert_eq!(summary.end, End::Done);
    assert_eq!(summary.counters.get(Counter::Busy), N_BUSY as u64);
    assert_eq!(summary.counters.get(Counter::Pages), 41);
    let times = times(&web);
    let gaps: Vec<u64> = times
        .windows(2)
        .map(|pair| (pair[1] - pair[0]).as_secs())
        .collect();
    let (slower, rest) = gaps.split_at(1 + N_BUSY);
    assert_eq!(slower, [1, 2, 4, 8, 16, 32]);
    // The request after the last 503 is the first success.
    assert_eq!(rest[..9], [32; 9]);
    assert_eq!((rest[9], rest[19], rest[29]), (16, 8, 4));
}
