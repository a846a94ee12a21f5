//! Tests of the state that a crawl keeps from one run to the next, and of its growth.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use arose_corpus::Item;
use arose_crawl::counters::Counter;
use arose_crawl::{End, index_lines, queued_urls, status};
use testweb::{Config, Kind, PageCount, Robots, Server};

use crate::faults::{run_with, seams, web};
use crate::power::check_references;
use crate::web::{fetched, home, homes, reachable, run, settings};

const DAY: u64 = 24 * 3600;

fn plain(n_hosts: u32, n_pages: u32) -> Server {
    let server = Server::start(Config {
        pages: PageCount::Fixed(n_pages),
        median_bytes: 1000,
        ..Config::plain(n_hosts)
    });
    server.unwrap()
}

fn robots_requests(server: &Server) -> BTreeMap<String, usize> {
    let mut hosts = BTreeMap::new();
    let log = server.log();
    for record in log
        .records
        .iter()
        .filter(|record| record.target == "/robots.txt".into())
    {
        *hosts.entry(record.host.to_string()).or_default() += 1;
    }
    hosts
}

/// The journal has queued URLs, not finished ones. Of two equal crawls, the one that may rewrite it
/// ends with the states of hosts and counters alone, and with the same counters. With URL rules it
/// also has what pages are compared by: at most four pairs of numbers for a page.
#[test]
fn the_journal_stays_small() {
    let server = plain(8, 250);
    let mut settings = settings(&server);
    let seeds = homes(&server);
    settings.archive.commit = 0.01;
    let length = |folder: &Path| std::fs::metadata(folder.join("journal")).unwrap().len();
    for rules in [false, true] {
        settings.rules.on = rules;
        settings.archive.compact = arose_crawl::Settings::default().archive.compact;
        let large = tempfile::tempdir().unwrap();
        let expected = run(large.path(), settings.clone(), &seeds);
        settings.archive.compact = 4000;
        let small = tempfile::tempdir().unwrap();
        let summary = run(small.path(), settings.clone(), &seeds);
        assert_eq!((summary.end, summary.n_queued), (End::Done, 0));
        for counter in [Counter::Pages, Counter::Queued, Counter::Disallowed] {
            let of_status = status(small.path()).unwrap().counters.get(counter);
            assert_eq!(of_status, expected.counters.get(counter), "{counter:?}");
        }
        let (small, large) = (length(small.path()), length(large.path()));
        let n_pages = expected.counters.get(Counter::Pages);
        let n_compared = if rules { n_pages * 4 * 16 } else { 0 };
        assert!(small < large / 50 + n_compared, "{small} {large}");
    }
    server.stop().unwrap();
}

/// A crawl is stopped and restarted again and again, while its journal is rewritten all the time.
/// Each page is fetched once, and each robots.txt too, because its rules are saved.
#[test]
fn rules_and_queues_survive() {
    let server = plain(12, 30);
    let mut settings = settings(&server);
    settings.archive.commit = 0.005;
    settings.archive.compact = 500;
    let folder = tempfile::tempdir().unwrap();
    let seeds = homes(&server);
    for n_pages in (40..).step_by(60) {
        settings.stop.pages = n_pages;
        let summary = run(folder.path(), settings.clone(), &seeds);
        let waiting = queued_urls(folder.path()).unwrap();
        assert_eq!(waiting.len() as u64, summary.n_queued);
        if summary.end == End::Done {
            break;
        }
        assert_eq!(summary.end, End::Limit);
    }
    let expected = reachable(&server, &seeds, None);
    let fetched = fetched(&server);
    assert!(fetched.keys().eq(&expected));
    assert_eq!(fetched.values().max(), Some(&1));
    let robots = robots_requests(&server);
    assert_eq!((robots.len(), robots.values().max()), (12, Some(&1)));
    assert_eq!(server.log().disallowed(&server.web), [0_usize; 0]);
    server.stop().unwrap();
}

/// Any setting may change from one run to the next. Each page is fetched and archived once, and
/// duplicates refer to existing records.
#[test]
fn settings_change_between_runs() {
    type Change = fn(&mut arose_crawl::Settings);
    let changes: [Change; 7] = [
        |settings| settings.duplicates.check = false,
        |settings| settings.archive.max_file = 5000,
        |settings| settings.duplicates.check = true,
        |settings| settings.archive.compact = 300,
        |settings| settings.archive.requests = true,
        |settings| settings.machine.threads = 0,
        |settings| settings.archive.max_file = 1 << 30,
    ];
    let server = plain(10, 30);
    let folder = tempfile::tempdir().unwrap();
    let seeds = homes(&server);
    let mut settings = settings(&server);
    settings.archive.commit = 0.005;
    settings.scope.sitemaps = false;
    for (n, change) in (1..).zip(changes) {
        change(&mut settings);
        settings.stop.pages = 25 * n;
        let summary = run(folder.path(), settings.clone(), &seeds);
        assert_eq!(summary.end, End::Limit, "{n}");
    }
    settings.stop.pages = 0;
    let summary = run(folder.path(), settings, &seeds);
    assert_eq!((summary.end, summary.n_queued), (End::Done, 0));
    let expected = reachable(&server, &seeds, None);
    let fetched = fetched(&server);
    assert!(fetched.keys().eq(&expected));
    assert_eq!(fetched.values().max(), Some(&1));
    assert_eq!(index_lines(folder.path()).unwrap().len(), expected.len());
    check_references(folder.path());
    server.stop().unwrap();
}

/// A site whose robots.txt is not available receives no other requests for thirty days while its
/// URLs wait; then it counts as one without rules.
#[test]
fn an_unreachable_file_counts_for_thirty_days() {
    let server = Server::start(Config {
        pages: PageCount::Fixed(5),
        robots: vec![(Robots::ServerError, 1)],
        ..Config::plain(2)
    });
    let server = server.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings(&server);
    settings.fetch.retry_delay = 0.001;
    settings.fetch.tries = 2;
    settings.archive.compact = 100;
    // The first host of a web always has rules.
    let run_on = |day: u64| {
        run_with(
            folder.path(),
            settings.clone(),
            vec![home(&server, 1)],
            |settings| {
                let date = Duration::from_secs(1_700_000_000 + day * DAY);
                seams(settings, Box::new(move || date))
            },
        )
    };
    for day in [0, 1, 29] {
        let summary = run_on(day);
        assert_eq!((summary.end, summary.n_queued), (End::Waiting, 1), "{day}");
        assert_eq!(fetched(&server).len(), 0);
    }
    let summary = run_on(30);
    assert_eq!((summary.end, summary.n_queued), (End::Done, 0));
    assert!(fetched(&server).len() > 5);
    server.stop().unwrap();
}

/// The first file of an archive with this ending.
pub(crate) fn first_file(folder: &Path, ending: &str) -> PathBuf {
    let entries = std::fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let with_ending = paths.filter(|path| path.to_string_lossy().ends_with(ending));
    with_ending.min().unwrap()
}

pub(crate) fn unpacked(path: &Path) -> String {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).unwrap();
    flate2::read::MultiGzDecoder::new(file)
        .read_to_end(&mut bytes)
        .unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Every robots.txt is archived as received, separately from the pages; requests are archived if
/// the settings say so.
#[test]
fn robots_files_and_requests_are_archived() {
    let server = web(&[(Kind::Plain, 1)], 5);
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings(&server);
    settings.archive.requests = true;
    run(folder.path(), settings, &homes(&server));
    let pages = first_file(&folder.path().join("archive"), ".warc.gz");
    let robots = first_file(&folder.path().join("robots"), ".warc.gz");
    let text = unpacked(&pages);
    let n_records = index_lines(folder.path()).unwrap().len();
    assert_eq!(
        text.matches("\r\nWARC-Type: request\r\n").count(),
        n_records
    );
    assert_eq!(
        text.matches("\r\nWARC-Concurrent-To: <urn:uuid:").count(),
        n_records
    );
    assert!(text.contains("\r\n\r\nGET / HTTP/1.1\r\nHost: "));
    assert!(!text.contains("/robots.txt"));
    let files = arose_corpus::read(&[robots], arose_corpus::Config::default()).unwrap();
    let urls = files.filter_map(|item| match item {
        Item::Document(document) => document.url,
        Item::Skipped(_) => None,
    });
    let mut urls: Vec<String> = urls.collect();
    urls.sort();
    let mut expected: Vec<String> = homes(&server)
        .iter()
        .map(|home| format!("{home}robots.txt"))
        .collect();
    expected.sort();
    assert_eq!(urls, expected);
    server.stop().unwrap();
}
