//! Tests of pages fetched on demand, compared with the log of the web they are on.

use std::collections::BTreeSet;
use std::time::Duration;

use arose_crawl::visit::{Visit, Visits};
use testweb::{Config, Kind, PageCount, PageId, Robots, Server, Target};

use crate::web::{check_polite, home, homes, reachable, settings};

/// All pages that can be reached from the seeds by following every link.
fn everything(visits: &Visits, seeds: &[String]) -> Vec<(String, Visit)> {
    let mut met: BTreeSet<String> = seeds.iter().cloned().collect();
    let mut open = seeds.to_vec();
    let mut all = Vec::new();
    while !open.is_empty() {
        let now: Vec<String> = std::mem::take(&mut open);
        for (url, visit) in now.iter().cloned().zip(visits.visit(&now)) {
            let links = match &visit {
                Visit::Page(links) => links.clone(),
                Visit::Redirect(target) => vec![target.clone()],
                _ => Vec::new(),
            };
            let links = links.iter().map(ToString::to_string);
            open.extend(links.filter(|link| met.insert(link.clone())));
            all.push((url, visit));
        }
    }
    all
}

fn page_of(server: &Server, url: &str) -> Option<PageId> {
    let (host, target) = server.web.split_url(url)?;
    let name = &server.web.hosts()[host as usize].name;
    match server.web.target(name, target) {
        Target::Page(id) => Some(id),
        _ => None,
    }
}

/// Hosts that share IP addresses, robots.txt files of every kind, a delay: all pages that a crawl
/// may fetch are fetched, and no rule is broken.
#[test]
fn as_polite_as_a_crawl() {
    let robots = Robots::EVERY
        .iter()
        .filter(|(robots, _)| *robots != Robots::VisitTime);
    let server = Server::start(Config {
        n_hosts: 24,
        n_addresses: 9,
        pages: PageCount::Fixed(10),
        kinds: vec![(Kind::Plain, 1)],
        robots: robots.copied().collect(),
        copies: 0.0,
        ..Config::default()
    });
    let server = server.unwrap();
    let delay = Duration::from_millis(20);
    let mut settings = settings(&server);
    settings.polite.delay = delay.as_secs_f64();
    settings.polite.address_delay = delay.as_secs_f64();
    settings.fetch.first_byte = 0.5;
    let visits = Visits::open(settings, 10_000).unwrap();
    let seeds = homes(&server);
    let all = everything(&visits, &seeds);
    let is_quick = |id: &PageId| server.web.robots(id.host) != Robots::Slow;
    let is_page = |visit: &Visit| matches!(visit, Visit::Page(_));
    let pages = all.iter().filter(|(_, visit)| is_page(visit));
    let found: BTreeSet<PageId> = pages
        .filter_map(|(url, _)| page_of(&server, url))
        .filter(is_quick)
        .collect();
    let expected: BTreeSet<PageId> = reachable(&server, &seeds, None)
        .into_iter()
        .filter(is_quick)
        .collect();
    assert_eq!(found, expected);
    assert!(all.iter().any(|(_, visit)| *visit == Visit::Disallowed));
    check_polite(&server, delay);
    assert_eq!(server.log().records.len() as u64, visits.n_requests());
    server.stop().unwrap();
}

/// Hosts with trouble of every kind: each page gets a response or a reason, and servers that
/// require a pause get it.
#[test]
fn hosts_in_trouble() {
    let server = Server::start(Config {
        n_hosts: 30,
        n_addresses: 30,
        pages: PageCount::Fixed(4),
        robots: vec![(Robots::AllowAll, 1)],
        ..Config::default()
    });
    let server = server.unwrap();
    let mut settings = settings(&server);
    settings.fetch.first_byte = 0.3;
    settings.fetch.whole = 0.6;
    settings.fetch.tries = 2;
    settings.polite.defer_above = 2.0;
    settings.stop.patience = 2.0;
    settings.budget.max_pages = 50;
    let visits = Visits::open(settings, 400).unwrap();
    let all = everything(&visits, &homes(&server));
    let count = |is: &dyn Fn(&Visit) -> bool| all.iter().filter(|(_, visit)| is(visit)).count();
    assert!(count(&|visit| matches!(visit, Visit::Page(_))) > 50);
    assert!(count(&|visit| matches!(visit, Visit::Missing(_))) > 0);
    check_polite(&server, Duration::ZERO);
    assert!(server.log().records.len() <= 400);
    server.stop().unwrap();
}

/// Never sends more requests than allowed, including those for robots.txt.
#[test]
fn the_budget_is_kept() {
    let server = Server::start(Config::plain(3)).unwrap();
    let visits = Visits::open(settings(&server), 7).unwrap();
    let all = everything(&visits, &[home(&server, 0)]);
    assert_eq!(server.log().records.len(), 7);
    assert_eq!(visits.n_requests(), 7);
    assert!(all.iter().any(|(_, visit)| *visit == Visit::Unasked));
    server.stop().unwrap();
}

/// URLs out of scope are not requested, and links to them are dropped.
#[test]
fn scope_and_bad_urls() {
    let server = Server::start(Config::plain(3)).unwrap();
    let mut settings = settings(&server);
    let own = &server.web.hosts()[0].name;
    settings.scope.hosts = vec![own.clone()];
    let visits = Visits::open(settings, 1000).unwrap();
    let asked = [home(&server, 1), "ftp://h.test/".to_owned(), "x".to_owned()];
    for visit in visits.visit(&asked) {
        assert!(matches!(visit, Visit::Nothing(_)), "{visit:?}");
    }
    assert_eq!(visits.n_requests(), 0);
    let all = everything(&visits, &[home(&server, 0)]);
    assert!(all.len() > 10, "{}", all.len());
    assert!(
        server
            .log()
            .records
            .iter()
            .all(|record| *record.host == **own)
    );
    server.stop().unwrap();
}
