//! Tests of failures of every kind, in bounded time and with bounded requests.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use arose_crawl::connect::{Allowed, Tcp};
use arose_crawl::counters::{Counter, Failure, Refusal};
use arose_crawl::resolve::DnsServers;
use arose_crawl::settings::DuplicateLinks;
use arose_crawl::{Control, Crawl, End, Seams, Settings};
use testweb::{Config, Fault, Kind, Names, PageCount, Robots, Server};

use crate::web::{fetched, home, homes, reachable, run, settings};

pub(crate) fn web(kinds: &[(Kind, u32)], n_hosts: u32) -> Server {
    let server = Server::start(Config {
        n_hosts,
        n_addresses: n_hosts,
        pages: PageCount::Fixed(8),
        median_bytes: 2000,
        kinds: kinds.to_vec(),
        robots: vec![(Robots::AllowAll, 1)],
        copies: 0.0,
        ..Config::default()
    });
    server.unwrap()
}

fn requests_by_host(server: &Server) -> BTreeMap<String, usize> {
    let mut hosts: BTreeMap<String, usize> = BTreeMap::new();
    for record in &server.log().records {
        *hosts.entry(record.host.to_string()).or_default() += 1;
    }
    hosts
}

/// Each broken page costs at most its tries, and all pages of other hosts are fetched.
#[test]
fn broken_servers() {
    let server = web(&[(Kind::Broken, 1), (Kind::Plain, 2)], 6);
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings(&server);
    settings.fetch.first_byte = 0.3;
    settings.fetch.whole = 0.6;
    settings.fetch.max_body = 1 << 20;
    settings.fetch.retry_delay = 0.001;
    let seeds = homes(&server);
    let summary = run(folder.path(), settings, &seeds);
    let expected = reachable(&server, &seeds, None);
    let fetched = fetched(&server);
    assert!(expected.iter().all(|id| fetched.contains_key(id)));
    let mut tries: BTreeMap<String, u32> = BTreeMap::new();
    for record in &server.log().records {
        *tries
            .entry(format!("{} {}", record.host, record.target))
            .or_default() += 1;
    }
    assert!(tries.values().all(|&n| n <= 3), "{tries:?}");
    let has_fault = |fault: &Fault| tries.keys().any(|key| key.ends_with(&fault.path()));
    assert!(Fault::ALL.iter().all(has_fault));
    assert!(summary.counters.get(Counter::Truncated) > 0);
    assert!(summary.counters.failed(Failure::NotHttp) > 0);
    assert!(summary.counters.failed(Failure::Slow) > 0);
    server.stop().unwrap();
}

#[test]
fn malformed_answers_without_end() {
    let server = web(&[(Kind::Broken, 1)], 11);
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings(&server);
    settings.fetch.tries = 1;
    settings.fetch.first_byte = 0.2;
    settings.fetch.whole = 0.2;
    let origins: Vec<String> = homes(&server)
        .iter()
        .map(|url| url.trim_end_matches('/').to_owned())
        .collect();
    let seeds: Vec<String> = (0..3000)
        .map(|n| format!("{}/noise/{n}", origins[n % origins.len()]))
        .collect();
    settings.scope.include = vec!["/noise/".to_owned()];
    let summary = run(folder.path(), settings, &seeds);
    // Connections that were closed too early may last longer on another day.
    assert_eq!(
        (summary.end, summary.n_queued),
        (End::Waiting, summary.n_lost)
    );
    assert_eq!(summary.counters.balance(), 0);
    server.stop().unwrap();
}

/// Each trap ends within the budget of its site, and all other hosts are fetched.
#[test]
fn traps_are_bounded() {
    let kinds = [
        (Kind::Plain, 3),
        (Kind::Calendar, 1),
        (Kind::Maze, 1),
        (Kind::Deep, 1),
        (Kind::SoftNotFound, 1),
        (Kind::EndlessHosts, 1),
        (Kind::Redirects, 1),
        (Kind::PathCrumb, 1),
    ];
    let server = web(&kinds, 11);
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings(&server);
    settings.budget.max_pages = 120;
    settings.budget.max_hosts = 20;
    settings.duplicates.links = DuplicateLinks::Last;
    settings.duplicates.stale_after = 20;
    let seeds = homes(&server);
    let summary = run(folder.path(), settings, &seeds);
    let mut sites: BTreeMap<String, usize> = BTreeMap::new();
    for (host, n) in requests_by_host(&server) {
        let labels: Vec<&str> = host.rsplitn(3, '.').collect();
        *sites.entry(labels[..2].join(".")).or_default() += n;
    }
    // The budget, and a robots.txt for each host.
    assert!(sites.values().all(|&n| n <= 120 + 20), "{sites:?}");
    assert!(summary.counters.refused(Refusal::TooManyHosts) > 0);
    let fetched = fetched(&server);
    let plain = (0..)
        .zip(server.web.hosts())
        .filter(|(_, host)| host.kind == Kind::Plain);
    for (host, _) in plain {
        let n_pages = fetched.keys().filter(|id| id.host == host).count();
        assert!(n_pages >= 6, "{host}: {n_pages}");
    }
    server.stop().unwrap();
}

#[test]
fn redirects_without_end() {
    let server = web(&[(Kind::Redirects, 1)], 3);
    let folder = tempfile::tempdir().unwrap();
    let origin = homes(&server)[1].trim_end_matches('/').to_owned();
    let seeds: Vec<String> = (0..1700)
        .map(|n| format!("{origin}/spiral/{}", n * 100))
        .collect();
    let mut settings = settings(&server);
    settings.scope.include = vec!["/spiral/".to_owned()];
    settings.budget.max_pages = 20_000;
    let summary = run(folder.path(), settings, &seeds);
    let host = origin
        .trim_start_matches("http://")
        .split(':')
        .next()
        .unwrap()
        .to_owned();
    // Each seed and five more, and the robots.txt: more than ten thousand.
    assert_eq!(requests_by_host(&server)[&host], 1700 * 6 + 1);
    assert_eq!(summary.counters.refused(Refusal::Redirects), 1700);
    server.stop().unwrap();
}

/// DNS lookups fail for a while: nothing is lost, and the next run fetches everything.
#[test]
fn names_that_fail_for_a_while() {
    let server = web(&[(Kind::Plain, 1)], 6);
    let folder = tempfile::tempdir().unwrap();
    let seeds = homes(&server);
    for trouble in [Names::Failing, Names::Silent] {
        server.control.set_names(trouble);
        let summary = run(folder.path(), settings(&server), &seeds);
        assert_eq!(
            (summary.end, summary.n_fetched),
            (End::Waiting, 0),
            "{trouble:?}"
        );
        assert_eq!(summary.n_queued, seeds.len() as u64);
    }
    server.control.set_names(Names::Fine);
    let summary = run(folder.path(), settings(&server), &seeds);
    assert_eq!(summary.end, End::Done);
    assert_eq!(
        fetched(&server).len(),
        reachable(&server, &seeds, None).len()
    );
    server.stop().unwrap();
}

/// Hosts that do not exist, do not respond or refuse connections do not affect other hosts.
#[test]
fn hosts_that_are_not_there() {
    let kinds = [(Kind::Plain, 3), (Kind::NoName, 1), (Kind::Refused, 1)];
    let server = web(&kinds, 10);
    let folder = tempfile::tempdir().unwrap();
    let seeds: Vec<String> = server
        .web
        .hosts()
        .iter()
        .map(|host| server.web.origin(&host.name) + "/")
        .collect();
    let mut settings = settings(&server);
    settings.fetch.retry_delay = 0.01;
    let summary = run(folder.path(), settings, &seeds);
    let count = |kind| {
        server
            .web
            .hosts()
            .iter()
            .filter(|host| host.kind == kind)
            .count() as u64
    };
    assert!(count(Kind::NoName) > 0 && count(Kind::Refused) > 0);
    assert_eq!(
        summary.counters.get(Counter::UnknownNames),
        count(Kind::NoName)
    );
    assert!(summary.counters.failed(Failure::Unreachable) >= count(Kind::Refused));
    // Hosts that refuse connections may accept them on another day.
    assert_eq!(
        (summary.end, summary.n_queued),
        (End::Waiting, count(Kind::Refused))
    );
    assert_eq!(summary.n_lost, summary.n_queued);
    assert_eq!(
        summary.counters.get(Counter::UnreachableHosts),
        count(Kind::Refused)
    );
    server.stop().unwrap();
}

/// A list with more garbage than URLs.
#[test]
fn garbage_among_the_seeds() {
    let server = web(&[(Kind::Plain, 1)], 2);
    let folder = tempfile::tempdir().unwrap();
    let good = homes(&server);
    let mut settings = settings(&server);
    settings.scope.hosts = server
        .web
        .hosts()
        .iter()
        .map(|host| host.name.clone())
        .collect();
    let mut seeds: Vec<String> = (0..20_000_u32)
        .map(|n| match n % 5 {
            0 => format!("http://[{n}"),
            1 => format!("mailto:{n}@x"),
            2 => "\u{0}\u{1b}[31m".repeat(n as usize % 50),
            3 => format!("http://elsewhere{n}.test/"),
            _ => "x".repeat(n as usize % 5000),
        })
        .collect();
    seeds.extend(good);
    let summary = run(folder.path(), settings, &seeds);
    assert_eq!(summary.counters.get(Counter::BadSeeds), 20_000);
    assert_eq!(summary.end, End::Done);
    assert!(summary.counters.get(Counter::Pages) >= 10);
    server.stop().unwrap();
}

pub(crate) fn seams(settings: &Settings, clock: Box<dyn Fn() -> Duration>) -> Seams {
    Seams {
        connector: Rc::new(Tcp {
            addresses: Allowed::Loopback,
        }),
        resolver: Rc::new(DnsServers::new(&settings.network.dns_servers).unwrap()),
        clock,
        priority: Box::new(|_, depth| depth),
        is_ours: Box::new(|_| true),
    }
}

/// Runs a crawl with its own seams.
pub(crate) fn run_with(
    folder: &std::path::Path,
    settings: Settings,
    seeds: Vec<String>,
    make: impl FnOnce(&Settings) -> Seams,
) -> arose_crawl::Summary {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let seams = make(&settings);
        let mut crawl = Crawl::open(folder, settings, seams).unwrap();
        crawl.add_seeds(seeds.into_iter()).unwrap();
        crawl.run(&Control::default()).await.unwrap()
    })
}

/// A million lines: two in five are not URLs, and every tenth URL was met before. The rest are
/// queued on the disk, and are still there when the crawl is opened again.
#[test]
fn a_million_seeds() {
    let folder = tempfile::tempdir().unwrap();
    let line = |n: u32| match n % 5 {
        0 => format!("http://[{n}"),
        1 => "\u{0}\u{1b}[31m\u{fffd}".repeat(n as usize % 9),
        _ => format!("http://host{}.test/page-{}", n % 1000, n - n % 50 / 45 * 5),
    };
    let urls = (0..1_000_000).filter(|n| n % 5 > 1).map(line);
    let n_urls = urls.collect::<std::collections::HashSet<String>>().len() as u64;
    let settings = Settings::default();
    let seams = || Seams {
        connector: Rc::new(Tcp {
            addresses: Allowed::Loopback,
        }),
        resolver: Rc::new(DnsServers::new(&["127.0.0.1:53".parse().unwrap()]).unwrap()),
        clock: Box::new(|| Duration::ZERO),
        priority: Box::new(|_, depth| depth),
        is_ours: Box::new(|_| true),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut crawl = Crawl::open(folder.path(), settings, seams()).unwrap();
        crawl.add_seeds((0..1_000_000).map(line)).unwrap();
    });
    let status = arose_crawl::status(folder.path()).unwrap();
    assert_eq!((status.n_queued, status.n_hosts), (n_urls, 600));
    assert_eq!(status.counters.get(Counter::BadSeeds), 400_000);
    assert_eq!(status.counters.get(Counter::Known), 600_000 - n_urls);
    assert_eq!(status.counters.balance(), 0);
}

/// The system clock jumps back and forth by years; delays do not.
#[test]
fn a_clock_that_jumps() {
    let server = web(&[(Kind::Plain, 1)], 5);
    let folder = tempfile::tempdir().unwrap();
    let seeds = homes(&server);
    let delay = Duration::from_millis(15);
    let mut settings = settings(&server);
    settings.polite.delay = delay.as_secs_f64();
    settings.polite.address_delay = delay.as_secs_f64();
    let count = std::cell::Cell::new(0_u64);
    let clock = move || {
        count.set(count.get() + 1);
        Duration::from_secs(1_700_000_000 + (count.get() % 3) * 400_000_000)
    };
    let begun = Instant::now();
    let summary = run_with(folder.path(), settings, seeds.clone(), |settings| {
        seams(settings, Box::new(clock))
    });
    assert_eq!(summary.end, End::Done);
    assert!(begun.elapsed() < Duration::from_secs(60));
    assert_eq!(
        fetched(&server).len(),
        reachable(&server, &seeds, None).len()
    );
    assert_eq!(
        server
            .log()
            .gaps_shorter_than(testweb::judge::By::Host, delay),
        []
    );
    server.stop().unwrap();
}

/// Hosts of another owner receive no requests.
#[test]
fn the_owner_is_an_argument() {
    let server = web(&[(Kind::Plain, 1)], 4);
    let folder = tempfile::tempdir().unwrap();
    let foreign = server.web.hosts()[1].name.clone();
    let own = foreign.clone();
    let seeds = vec![home(&server, 0)];
    let summary = run_with(folder.path(), settings(&server), seeds, |settings| {
        let clock = Box::new(|| Duration::from_secs(1_700_000_000));
        Seams {
            is_ours: Box::new(move |url| url.host() != own),
            ..seams(settings, clock)
        }
    });
    assert!(summary.counters.refused(Refusal::NotOurs) > 0);
    assert!(!requests_by_host(&server).contains_key(&foreign));
    server.stop().unwrap();
}

/// Loopback is closed to crawlers that are not allowed there, by host name and by IP address.
#[test]
fn private_addresses_are_never_asked() {
    let server = web(&[(Kind::Plain, 1)], 2);
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings(&server);
    settings.network.allow_private = false;
    settings.agent.contact = "https://example.org/bot".to_owned();
    let port = homes(&server)[0]
        .split(':')
        .nth(2)
        .unwrap()
        .trim_end_matches('/')
        .to_owned();
    let mut seeds = homes(&server);
    seeds.extend(
        [
            "127.1.0.1",
            "[::1]",
            "[::ffff:127.1.0.1]",
            "2130706433",
            "0x7f.1",
        ]
        .map(|host| format!("http://{host}:{port}/")),
    );
    let summary = run(folder.path(), settings, &seeds);
    assert_eq!(server.n_requests(), 0);
    assert_eq!(summary.n_fetched, 0);
    assert!(summary.counters.failed(Failure::Forbidden) >= 4);
    server.stop().unwrap();
}

#[test]
fn without_a_contact_nothing_leaves_loopback() {
    let folder = tempfile::tempdir().unwrap();
    let control = Control::default();
    let seeds = arose_crawl::Seeds::default();
    let error =
        arose_crawl::crawl(folder.path(), Settings::default(), seeds, &control).unwrap_err();
    assert!(error.to_string().contains("contact"), "{error}");
}
