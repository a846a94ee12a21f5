//! Progress of a crawl: no host waits for others, nothing is given up for good, traps end.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use arose_crawl::counters::Counter;
use arose_crawl::settings::{DuplicateBody, DuplicateLinks};
use arose_crawl::{End, Settings, index_lines};
use testweb::{Config, Kind, PageCount, Robots, Server};

use crate::faults::web;
use crate::web::{check_polite, fetched, home, homes, reachable, run, settings};

/// The settings of the other tests, with the defaults for duplicates.
fn with_duplicates(server: &Server) -> Settings {
    Settings {
        duplicates: Settings::default().duplicates,
        ..settings(server)
    }
}

/// Returns the time from the first request of a host to the end of its last, and the number of
/// requests.
fn course(server: &Server, name: &str) -> (Duration, usize) {
    let log = server.log();
    let records = || log.records.iter().filter(|record| *record.host == *name);
    let start = log.records.iter().map(|record| record.start).min();
    let end = records().map(|record| record.end).max();
    let end = end.unwrap_or_default();
    (end - start.unwrap_or_default().min(end), records().count())
}

/// A site of a few hundred pages, over its budget after ten of them, beside many hosts that send
/// their robots.txt at a byte per second or require two seconds between requests.
fn crawl_beside(n_slow: u32, n_seconds: f64) -> (Duration, usize) {
    let server = Server::start(Config {
        n_hosts: 1 + n_slow,
        n_addresses: 1 + n_slow,
        pages: PageCount::Fixed(90),
        median_bytes: 2000,
        kinds: vec![(Kind::Plain, 1)],
        robots: vec![(Robots::Trickle, 1), (Robots::CrawlDelay, 1)],
        copies: 0.0,
        ..Config::default()
    });
    let server = server.unwrap();
    let fast = server.web.hosts()[0].name.clone();
    let mut settings = settings(&server);
    settings.polite.delay = 0.05;
    settings.fetch.whole = 60.0;
    settings.stop.seconds = n_seconds;
    settings.scope.sitemaps = false;
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), settings, &homes(&server));
    check_polite(&server, Duration::from_millis(50));
    let course = course(&server, &fast);
    server.stop().unwrap();
    course
}

/// Budgets order hosts and leave nothing idle: beside twenty slow hosts, a fast site is fetched
/// within 5% of the time that it takes alone. The machine may be busy with other tests, so the best
/// of three attempts counts.
#[test]
fn slow_hosts_leave_no_site_waiting() {
    let (alone, n_alone) = crawl_beside(0, 30.0);
    assert!(n_alone > 75, "{n_alone}");
    let seconds = alone.as_secs_f64() * 1.5 + 1.0;
    let beside: Vec<_> = (0..3)
        .map(|_| crawl_beside(20, seconds))
        .take_while(|(beside, n)| *n < n_alone || *beside > alone.mul_f64(1.05))
        .collect();
    assert!(beside.len() < 3, "{beside:?} beside {alone:?} alone");
}

/// Three sites with the same home page: all are seeds, so all are crawled, even if the links of
/// duplicates are never followed.
#[test]
fn seeds_are_followed_whatever_they_duplicate() {
    for links in [DuplicateLinks::Last, DuplicateLinks::Never] {
        let server = web(&[(Kind::SameHome, 1)], 4);
        let folder = tempfile::tempdir().unwrap();
        let mut settings = with_duplicates(&server);
        settings.duplicates.links = links;
        settings.scope.sitemaps = false;
        let seeds = homes(&server);
        let summary = run(folder.path(), settings, &seeds);
        let expected = reachable(&server, &seeds, None);
        let fetched: BTreeSet<_> = fetched(&server).into_keys().collect();
        assert_eq!(fetched, expected, "{links:?}");
        assert!(summary.counters.get(Counter::ExactDuplicates) >= 2);
        assert_eq!(summary.counters.get(Counter::UnfollowedDuplicates), 0);
        assert_eq!((summary.end, summary.n_queued), (End::Done, 0));
        server.stop().unwrap();
    }
}

/// An endless calendar, whose pages differ in numbers alone, and links that carry a new session
/// each time: neither gets many more requests than are needed to notice it, and all real pages are
/// fetched.
#[test]
fn calendars_and_sessions_are_noticed() {
    let server = web(&[(Kind::Calendar, 1), (Kind::FreshSessions, 1)], 5);
    let folder = tempfile::tempdir().unwrap();
    let mut settings = with_duplicates(&server);
    settings.stop.seconds = 20.0;
    let seeds = homes(&server);
    let summary = run(folder.path(), settings, &seeds);
    let mut requests: BTreeMap<String, usize> = BTreeMap::new();
    for record in &server.log().records {
        *requests.entry(record.host.to_string()).or_default() += 1;
    }
    assert!(requests.values().all(|&n| n < 250), "{requests:?}");
    let fetched = fetched(&server);
    assert!(
        reachable(&server, &seeds, None)
            .iter()
            .all(|id| fetched.contains_key(id))
    );
    assert!(summary.counters.get(Counter::Stale) > 0);
    assert_eq!(summary.end, End::Waiting);
    server.stop().unwrap();
}

/// Lines of the index as JSON, by URL.
fn lines(folder: &Path) -> BTreeMap<String, serde_json::Value> {
    let lines = index_lines(folder).unwrap();
    let json = lines.iter().map(|line| {
        let json: serde_json::Value =
            serde_json::from_str(&line[line.find('{').unwrap()..]).unwrap();
        (json["url"].as_str().unwrap().to_owned(), json)
    });
    json.collect()
}

/// Returns the record at the position of a line of the index, as text.
fn record(folder: &Path, line: &serde_json::Value) -> String {
    let text = |name: &str| line[name].as_str().unwrap().to_owned();
    let number = |name: &str| text(name).parse::<usize>().unwrap();
    let bytes = std::fs::read(folder.join("archive").join(text("filename"))).unwrap();
    let member = &bytes[number("offset")..][..number("length")];
    let mut record = Vec::new();
    flate2::read::GzDecoder::new(member)
        .read_to_end(&mut record)
        .unwrap();
    String::from_utf8_lossy(&record).into_owned()
}

fn field<'r>(record: &'r str, name: &str) -> Option<&'r str> {
    let mut lines = record.lines().take_while(|line| !line.is_empty());
    lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

/// A shop, whose pages differ in number and price, and mirrors.
fn duplicates() -> Server {
    web(
        &[(Kind::Shop, 1), (Kind::Mirror, 1), (Kind::NearMirror, 1)],
        7,
    )
}

/// Near duplicates are stored completely and name the page they duplicate. A page with the payload
/// of another is a revisit, and the record that it refers to has that payload. So every page
/// replays.
#[test]
fn archives_replay() {
    let server = duplicates();
    let folder = tempfile::tempdir().unwrap();
    let summary = run(folder.path(), with_duplicates(&server), &homes(&server));
    assert!(summary.counters.get(Counter::NearDuplicates) >= 10);
    let lines = lines(folder.path());
    let (mut n_revisits, mut n_near) = (0, 0);
    for (url, line) in &lines {
        let own = record(folder.path(), line);
        if line["mime"] != "warc/revisit" {
            assert_eq!(field(&own, "WARC-Type"), Some("response"), "{url}");
            assert_eq!(field(&own, "WARC-Refers-To-Target-URI"), None, "{url}");
            n_near += u32::from(field(&own, "Arose-Duplicate-Of").is_some());
            continue;
        }
        n_revisits += 1;
        let profile = field(&own, "WARC-Profile").unwrap();
        assert!(profile.ends_with("/identical-payload-digest"), "{profile}");
        let target = field(&own, "WARC-Refers-To-Target-URI").unwrap();
        let other = record(folder.path(), &lines[target]);
        assert_eq!(field(&other, "WARC-Type"), Some("response"), "{url}");
        for (own_name, name) in [
            ("WARC-Refers-To", "WARC-Record-ID"),
            ("WARC-Refers-To-Date", "WARC-Date"),
            ("WARC-Payload-Digest", "WARC-Payload-Digest"),
        ] {
            assert_eq!(field(&own, own_name), field(&other, name), "{url}");
        }
    }
    assert!(n_revisits >= 5 && n_near >= 10, "{n_revisits} {n_near}");
    let is_shop = |url: &&String| url.contains("//shop") && url.ends_with(".html");
    let shop: Vec<&String> = lines.keys().filter(is_shop).collect();
    assert!(shop.len() >= 7, "{}", shop.len());
    assert!(shop.iter().all(|url| lines[*url]["mime"] == "text/html"));
    replay_by_warcio(folder.path());
    server.stop().unwrap();
}

/// Bodies of near duplicates are dropped if the settings say so, and those of no other page.
#[test]
fn bodies_are_dropped_on_demand() {
    let server = duplicates();
    let folder = tempfile::tempdir().unwrap();
    let mut settings = with_duplicates(&server);
    settings.duplicates.body = DuplicateBody::Drop;
    let summary = run(folder.path(), settings, &homes(&server));
    let lines = lines(folder.path());
    let records = lines.values().map(|line| record(folder.path(), line));
    let near = "urn:arose:revisit:near-duplicate";
    let n_near = records.filter(|record| field(record, "WARC-Profile") == Some(near));
    let n_near = n_near.count() as u64;
    assert!(n_near >= summary.counters.get(Counter::NearDuplicates));
    server.stop().unwrap();
}

/// Replays every line of the index, and prints how many had the payload of their digest.
const REPLAY: &str = r#"
import base64, glob, hashlib, json, sys
from warcio.archiveiterator import ArchiveIterator
folder = sys.argv[1]
lines = [json.loads(line[line.index("{"):]) for path in glob.glob(folder + "/*.cdxj") for line in open(path)]
def read(line):
    with open(folder + "/" + line["filename"], "rb") as stream:
        stream.seek(int(line["offset"]))
        record = next(iter(ArchiveIterator(stream)))
        return record.rec_type, record.rec_headers, record.raw_stream.read()
by_url = {line["url"]: line for line in lines}
for line in lines:
    kind, headers, payload = read(line)
    if kind == "revisit":
        target = by_url[headers.get_header("WARC-Refers-To-Target-URI")]
        kind, headers, payload = read(target)
    assert kind == "response", line
    digest = "sha1:" + base64.b32encode(hashlib.sha1(payload).digest()).decode()
    assert digest == line["digest"], line
print(len(lines))
"#;

/// The reference implementation in Python replays the archive, if it is installed.
fn replay_by_warcio(folder: &Path) {
    let Ok(python) = std::env::var("AROSE_PYTHON") else {
        println!("skipped: AROSE_PYTHON names no interpreter with the package warcio");
        return;
    };
    let output = Command::new(python)
        .args(["-c", REPLAY])
        .arg(folder.join("archive"))
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let n_lines: usize = String::from_utf8_lossy(&output.stdout)
        .trim()
        .parse()
        .unwrap();
    assert_eq!(n_lines, index_lines(folder).unwrap().len());
}

/// The pages of a mirror are duplicates. With `last` and `first` all of them are fetched; with
/// `never`, those that its home page links to, because that is a seed.
#[test]
fn links_of_duplicates_are_followed_as_set() {
    let server = Server::start(Config {
        pages: PageCount::Fixed(60),
        median_bytes: 2000,
        kinds: vec![(Kind::Mirror, 1)],
        ..Config::plain(2)
    });
    let server = server.unwrap();
    let mirror = server.web.hosts()[1].name.clone();
    let all = reachable(&server, &homes(&server), None);
    let n_all = all.iter().filter(|id| id.host == 1).count();
    let mut n_before = 0;
    for (links, is_all) in [
        (DuplicateLinks::Never, false),
        (DuplicateLinks::Last, true),
        (DuplicateLinks::First, true),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = with_duplicates(&server);
        settings.duplicates.links = links;
        settings.duplicates.stale_after = 0;
        settings.scope.sitemaps = false;
        settings.scope.hosts = vec![mirror.clone()];
        // The original comes first, so that the whole mirror is known.
        let original = Settings {
            scope: arose_crawl::settings::Scope {
                hosts: vec![server.web.hosts()[0].name.clone()],
                ..settings.scope.clone()
            },
            ..settings.clone()
        };
        run(folder.path(), original, &[home(&server, 0)]);
        let summary = run(folder.path(), settings, &[home(&server, 1)]);
        let n_fetched: u32 = fetched(&server)
            .iter()
            .filter(|(id, _)| id.host == 1)
            .map(|(_, n)| n)
            .sum();
        let n_pages = (n_fetched - n_before) as usize;
        n_before = n_fetched;
        let unfollowed = summary.counters.get(Counter::UnfollowedDuplicates);
        assert_eq!(
            (n_pages == n_all, unfollowed == 0),
            (is_all, is_all),
            "{links:?}: {n_pages} of {n_all}, {unfollowed}"
        );
        assert!(n_pages > 1);
    }
    server.stop().unwrap();
}

/// The IPv4 address of a host name is not returned in time, while its IPv6 address is said not to
/// exist. That host may exist, so its URLs stay queued.
#[test]
fn half_an_answer_is_none() {
    let server = web(&[(Kind::NameHalfSilence, 1)], 2);
    let folder = tempfile::tempdir().unwrap();
    let name = &server.web.hosts()[1].name;
    let seeds = vec![home(&server, 0), server.web.origin(name) + "/"];
    let summary = run(folder.path(), settings(&server), &seeds);
    assert_eq!(summary.counters.get(Counter::UnknownNames), 0);
    assert_eq!((summary.end, summary.n_queued), (End::Waiting, 1));
    server.stop().unwrap();
}
