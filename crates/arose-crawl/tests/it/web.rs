//! Tests of crawls of a synthetic web, compared with its log and its ground truth.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use arose_crawl::counters::Counter;
use arose_crawl::settings::{DuplicateBody, DuplicateLinks, Reach};
use arose_crawl::{Control, End, Seeds, Settings, Summary, crawl, index_lines};
use testweb::judge::By;
use testweb::truth::Visit;
use testweb::{Config, Kind, PageCount, PageId, Robots, Server};

/// No delays, no budgets, all links: everything is fetched as fast as possible.
pub(crate) fn settings(server: &Server) -> Settings {
    let mut settings = Settings::default();
    settings.scope.reach = Reach::Web;
    settings.network.allow_private = true;
    settings.network.dns_servers = vec![server.dns];
    settings.polite.delay = 0.0;
    settings.polite.address_delay = 0.0;
    settings.polite.factor = 0.0;
    settings.duplicates.links = DuplicateLinks::First;
    settings.duplicates.stale_after = 0;
    settings.fetch.retry_delay = 0.05;
    settings.fetch.first_byte = 2.0;
    settings.fetch.whole = 4.0;
    settings.stop.patience = 5.0;
    settings
}

pub(crate) fn home(server: &Server, host: u32) -> String {
    server.web.url(PageId { host, page: 0 })
}

/// The home pages of all hosts that have pages.
pub(crate) fn homes(server: &Server) -> Vec<String> {
    let hosts = (0..).zip(server.web.hosts());
    let hosts = hosts.filter(|(_, host)| host.kind.has_pages());
    hosts.map(|(host, _)| home(server, host)).collect()
}

pub(crate) fn run(folder: &Path, settings: Settings, seeds: &[String]) -> Summary {
    let seeds = Seeds {
        pages: seeds.to_vec(),
        sitemaps: Vec::new(),
    };
    crawl(folder, settings, seeds, &Control::default()).unwrap()
}

/// The pages with status 200 in the log, with their numbers of requests.
pub(crate) fn fetched(server: &Server) -> BTreeMap<PageId, u32> {
    let mut pages = BTreeMap::new();
    for record in &server.log().records {
        let url = server.web.origin(&record.host) + &record.target;
        if record.status == 200
            && let Some(id) = page_of(server, &url)
        {
            *pages.entry(id).or_default() += 1;
        }
    }
    pages
}

/// Returns the ordinary page at a URL, if there is one.
pub(crate) fn page_of(server: &Server, url: &str) -> Option<PageId> {
    let (host, target) = server.web.split_url(url)?;
    match server
        .web
        .target(&server.web.hosts()[host as usize].name, target)
    {
        testweb::Target::Page(id) => Some(id),
        _ => None,
    }
}

pub(crate) fn reachable(
    server: &Server,
    seeds: &[String],
    minute: Option<u16>,
) -> BTreeSet<PageId> {
    let visit = Visit {
        seeds: seeds.to_vec(),
        max_redirects: 5,
        minute,
    };
    server.web.reachable(&visit)
}

#[track_caller]
pub(crate) fn check_polite(server: &Server, delay: Duration) {
    let log = server.log();
    for by in [By::Host, By::Address] {
        assert_eq!(log.overlaps(by), [], "{by:?}");
        assert_eq!(log.gaps_shorter_than(by, delay), [], "{by:?}");
    }
    assert_eq!(log.gaps_shorter_than_asked(&server.web, delay), []);
    assert_eq!(log.early_retries(), []);
    assert_eq!(log.disallowed(&server.web), [0_usize; 0]);
    assert_eq!(log.before_robots(), [0_usize; 0]);
}

#[test]
fn every_page_once() {
    let server = Server::start(Config {
        pages: PageCount::Fixed(20),
        ..Config::plain(40)
    });
    let server = server.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let seeds = [home(&server, 0)];
    let summary = run(folder.path(), settings(&server), &seeds);
    assert_eq!(summary.end, End::Done);
    let expected = reachable(&server, &seeds, None);
    assert!(expected.len() > 500, "{}", expected.len());
    let fetched = fetched(&server);
    assert_eq!(fetched.keys().copied().collect::<BTreeSet<_>>(), expected);
    assert_eq!(fetched.values().max(), Some(&1));
    check_polite(&server, Duration::ZERO);
    let counters = &summary.counters;
    assert_eq!(counters.get(Counter::Pages), expected.len() as u64);
    assert_eq!((counters.balance(), summary.n_queued), (0, 0));
    let lines = index_lines(folder.path()).unwrap();
    let is_page = |line: &&String| line.contains("\"mime\": \"text/html\"");
    assert_eq!(lines.iter().filter(is_page).count(), expected.len());
    // Another run finds nothing to do.
    let again = run(folder.path(), settings(&server), &seeds);
    assert_eq!((again.end, again.n_fetched), (End::Done, 0));
    server.stop().unwrap();
}

/// Hosts that share IP addresses, robots.txt files of every kind, a delay.
#[test]
fn polite_by_host_and_address() {
    let robots = Robots::EVERY
        .iter()
        .filter(|(robots, _)| *robots != Robots::VisitTime);
    let server = Server::start(Config {
        n_hosts: 30,
        n_addresses: 12,
        pages: PageCount::Fixed(5),
        kinds: vec![(Kind::Plain, 1)],
        robots: robots.copied().collect(),
        copies: 0.0,
        ..Config::default()
    });
    let server = server.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let delay = Duration::from_millis(20);
    let mut settings = settings(&server);
    settings.polite.delay = delay.as_secs_f64();
    settings.polite.address_delay = delay.as_secs_f64();
    settings.fetch.first_byte = 0.5;
    // A robots.txt sent at one byte per 50 ms must arrive completely, however busy the machine is.
    settings.fetch.whole = 60.0;
    let seeds = homes(&server);
    let summary = run(folder.path(), settings, &seeds);
    let slow = |id: &PageId| server.web.robots(id.host) != Robots::Slow;
    let expected: BTreeSet<PageId> = reachable(&server, &seeds, None)
        .into_iter()
        .filter(slow)
        .collect();
    let fetched: BTreeSet<PageId> = fetched(&server).into_keys().filter(slow).collect();
    assert_eq!(fetched, expected);
    // If no robots.txt is available, the seed stays queued.
    let unreachable = [Robots::ServerError, Robots::Silent];
    let n_waiting = (0..30).filter(|&host| unreachable.contains(&server.web.robots(host)));
    let n_waiting = n_waiting.count() as u64;
    assert_eq!(summary.end == End::Waiting, n_waiting > 0);
    assert!(summary.n_queued >= n_waiting, "{}", summary.n_queued);
    check_polite(&server, delay);
    server.stop().unwrap();
}

/// Mirrors, near mirrors, session IDs in URLs: at least 95% of the copies are dropped, and no page
/// that is not a copy.
#[test]
fn duplicates_are_dropped_and_nothing_else() {
    let server = Server::start(Config {
        n_hosts: 40,
        n_addresses: 40,
        pages: PageCount::Fixed(25),
        kinds: vec![
            (Kind::Plain, 4),
            (Kind::Mirror, 1),
            (Kind::NearMirror, 2),
            (Kind::Template, 1),
        ],
        robots: vec![(Robots::AllowAll, 1)],
        copies: 0.2,
        ..Config::default()
    });
    let server = server.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings(&server);
    settings.duplicates.body = DuplicateBody::Drop;
    run(folder.path(), settings, &homes(&server));
    // Pages and dropped pages by original. The order of the index does not matter: the record of a
    // copy may reach the archive before that of the page that another thread compared first.
    let mut groups: BTreeMap<PageId, (u32, u32)> = BTreeMap::new();
    for line in index_lines(folder.path()).unwrap() {
        let json = &line[line.find('{').unwrap()..];
        let json: serde_json::Value = serde_json::from_str(json).unwrap();
        let Some(id) = page_of(&server, json["url"].as_str().unwrap()) else {
            continue;
        };
        let original = server.web.original(id).map_or(id, |(original, _)| original);
        let (n_pages, n_dropped) = groups.entry(original).or_default();
        *n_pages += 1;
        *n_dropped += u32::from(json["mime"] == "warc/revisit");
    }
    // One page of each group is kept, whichever came first; the others are its copies.
    let (mut n_near, mut n_dropped) = (0, 0);
    for (original, (n_pages, n_gone)) in groups {
        assert!(
            n_gone < n_pages,
            "{original:?}: {n_gone} of {n_pages} dropped"
        );
        n_near += n_pages - 1;
        n_dropped += n_gone;
    }
    assert!(n_near > 200, "{n_near}");
    assert!(
        f64::from(n_dropped) >= 0.95 * f64::from(n_near),
        "{n_dropped} of {n_near}"
    );
    server.stop().unwrap();
}
