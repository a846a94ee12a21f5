//! Tests of the pace of a crawl: order, visiting hours, deferral, and delays that double.

use std::net::IpAddr;
use std::time::Duration;

use arose_crawl::counters::Counter;
use arose_crawl::{End, Settings};

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
/// does not depend on the order of links.
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
        let mut settings = settings();
        settings.crawl.order = arose_crawl::settings::Order::Breadth;
        web.crawl_in_order(folder.path(), settings, HOME, priority);
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

/// Pages are fetched only within the visiting hours; the rest wait for the next day.
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

/// A host that requires a longer delay than the settings accept is deferred and counted at once.
/// One that requires exactly the accepted delay gets it.
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
    assert_eq!(times(&web), [Duration::ZERO; 0]);
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

/// Hosts that send their robots.txt one byte per second, and hosts that require a delay.
fn slow_host(request: &Request) -> Reply {
    let is_robots = request.target == "/robots.txt";
    match request.address {
        IpAddr::V4(ip) if is_robots && ip.octets()[3] % 2 == 0 => {
            let head = "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n";
            Reply::Trickle(format!("{head}{}", "#".repeat(50)).into_bytes())
        }
        _ => chain(request, 300, "User-agent: *\nCrawl-delay: 2\n"),
    }
}

/// Returns when the last request was sent to a site of 100 pages, which exceeds its budget after
/// ten, beside this many slow hosts.
fn crawl_beside(n_slow: u8, in_flight: usize) -> Duration {
    let fast = ("fast.test".to_owned(), "10.0.0.1".to_owned());
    let slow = (0..n_slow).map(|n| (format!("slow{n}.test"), format!("10.0.1.{n}")));
    let names: Vec<(String, String)> = std::iter::once(fast).chain(slow).collect();
    let addresses: Vec<[&str; 1]> = names.iter().map(|(_, ip)| [ip.as_str()]).collect();
    let table: Vec<(&str, &[&str])> = names
        .iter()
        .zip(&addresses)
        .map(|((name, _), ip)| (name.as_str(), ip.as_slice()))
        .collect();
    let web = Web::new(&table, |request| match request.host.as_str() {
        "fast.test" => chain(request, 100, ""),
        _ => slow_host(request),
    });
    let seeds: Vec<String> = names
        .iter()
        .map(|(name, _)| format!("http://{name}/"))
        .collect();
    let seeds: Vec<&str> = seeds.iter().map(String::as_str).collect();
    let mut settings = Settings::default();
    settings.machine.threads = 0;
    settings.fetch.in_flight = in_flight;
    settings.stop.seconds = 400.0;
    let folder = tempfile::tempdir().unwrap();
    web.crawl(folder.path(), settings, &seeds);
    let log = web.log();
    let fast = log.iter().filter(|request| request.host == "fast.test");
    assert_eq!(fast.clone().count(), 101, "{n_slow} {in_flight}");
    let n_others = log.len() - 101;
    assert!(n_others >= usize::from(n_slow), "{n_others}");
    fast.map(|request| request.at).max().unwrap()
}

/// Budgets order hosts and leave no capacity idle. Beside twenty slow hosts, a fast site is fetched
/// within 5% of the time that it takes alone, even if they could use all open requests.
#[test]
fn issue_21_slow_hosts_leave_no_site_waiting() {
    for in_flight in [1000, 8] {
        let alone = crawl_beside(0, in_flight);
        let beside = crawl_beside(20, in_flight);
        assert!(
            beside <= alone.mul_f64(1.05),
            "{in_flight}: {beside:?} beside, {alone:?} alone"
        );
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
