//! Tests of a crawl after kill -9 at any moment, and on a full disk.
//!
//! The test serves the web and starts its own program again as a child that crawls it. It kills the
//! child after a random number of requests, thirty times, and lets the last one end. Every second
//! child rewrites its journal as often as possible.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use arose::mix::SplitMix;
use arose_corpus::Item;
use arose_crawl::{End, archives, index_lines, queued_urls, status};
use arose_dedup::disk::Recording;
use testweb::judge::By;
use testweb::{Config, Kind, PageCount, Robots, Server};

use crate::power::check_references;
use crate::web::{fetched, home, homes, reachable, run, settings};

const FOLDER: &str = "AROSE_CRAWL_FOLDER";
const DNS: &str = "AROSE_CRAWL_DNS";
const SEED: &str = "AROSE_CRAWL_SEED";
const COMPACT: &str = "AROSE_CRAWL_COMPACT";
const CHANGES: &str = "AROSE_CRAWL_CHANGES";
const N_KILLS: u64 = 30;
const DELAY: Duration = Duration::from_millis(20);

fn web() -> Server {
    let config = Config {
        pages: PageCount::Fixed(12),
        median_bytes: 2000,
        ..Config::plain(60)
    };
    Server::start(config).unwrap()
}

fn careful(dns: std::net::SocketAddr) -> arose_crawl::Settings {
    let mut settings = arose_crawl::Settings::default();
    settings.scope.reach = arose_crawl::settings::Reach::Web;
    settings.network.allow_private = true;
    settings.network.dns_servers = vec![dns];
    settings.polite.delay = DELAY.as_secs_f64();
    settings.polite.address_delay = DELAY.as_secs_f64();
    settings.polite.factor = 0.0;
    settings.duplicates.links = arose_crawl::settings::DuplicateLinks::First;
    settings.scope.sitemaps = false;
    settings.archive.commit = 0.01;
    settings.archive.max_file = 100_000;
    // Most hosts are on the disk.
    settings.machine.hosts_in_memory = 10;
    settings
}

/// The code of the child; without a directory in the environment there is nothing to do.
#[test]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let value = |name| std::env::var(name).unwrap();
    let mut settings = careful(value(DNS).parse().unwrap());
    settings.archive.compact = value(COMPACT).parse().unwrap();
    if let Ok(n_changes) = std::env::var(CHANGES) {
        abort_after(n_changes.parse().unwrap(), Path::new(&folder));
    }
    run(Path::new(&folder), settings, &[value(SEED)]);
}

/// Ends the process after this many changes of its files: between any two steps of a commit, which
/// a kill from outside hardly ever hits.
fn abort_after(n_changes: usize, folder: &Path) {
    let recording = Recording::start(folder);
    std::thread::spawn(move || {
        while recording.n_changes() < n_changes {
            std::hint::spin_loop();
        }
        std::process::abort();
    });
}

fn start(folder: &Path, server: &Server, limit: Option<&str>, compact: u64) -> Child {
    command(folder, server, limit, compact).spawn().unwrap()
}

fn command(folder: &Path, server: &Server, limit: Option<&str>, compact: u64) -> Command {
    let program = std::env::current_exe().unwrap();
    let mut command = match limit {
        None => Command::new(program),
        Some(limit) => {
            let mut shell = Command::new("sh");
            shell
                .args(["-c", "trap '' XFSZ; ulimit -f \"$0\"; exec \"$@\"", limit])
                .arg(program);
            shell
        }
    };
    command
        .args(["crash::child", "--exact"])
        .env(FOLDER, folder)
        .env(DNS, server.dns.to_string())
        .env(SEED, home(server, 0))
        .env(COMPACT, compact.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// Waits until this many requests were made; returns whether the child still runs.
fn wait_for(server: &Server, n_requests: u64, child: &mut Child) -> bool {
    loop {
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        if server.n_requests() >= n_requests {
            return true;
        }
        std::thread::park_timeout(Duration::from_millis(1));
    }
}

/// Waits until the server has processed the requests of the killed child. Otherwise its log would
/// attribute late requests to the next child.
fn wait_for_silence(server: &Server) {
    let (mut n_before, mut n_quiet) = (server.n_requests(), 0);
    while n_quiet < 30 {
        std::thread::park_timeout(Duration::from_millis(1));
        let n_now = server.n_requests();
        n_quiet = if n_now == n_before { n_quiet + 1 } else { 0 };
        n_before = n_now;
    }
}

/// All records of all archives can be read, and the index lists each of them.
#[track_caller]
fn check_archive(folder: &Path) -> BTreeMap<String, u32> {
    let archives = archives(folder).unwrap();
    let mut urls: BTreeMap<String, u32> = BTreeMap::new();
    for item in arose_corpus::read(&archives, arose_corpus::Config::default()).unwrap() {
        match item {
            Item::Document(document) => *urls.entry(document.url.unwrap()).or_default() += 1,
            // The first record of each file.
            Item::Skipped(warning) => {
                assert!(warning.to_string().ends_with("warcinfo"), "{warning}")
            }
        }
    }
    let n_records: u32 = urls.values().sum();
    assert_eq!(index_lines(folder).unwrap().len() as u32, n_records);
    urls
}

#[test]
fn nothing_is_lost_and_nothing_comes_twice() {
    let server = web();
    let folder = tempfile::tempdir().unwrap();
    let mut random = SplitMix::new(3);
    let mut n_kills = 0;
    while n_kills < N_KILLS {
        let compact = if n_kills % 2 == 0 { 1000 } else { 64 << 20 };
        let mut child = start(folder.path(), &server, None, compact);
        let n_requests = server.n_requests() + 1 + random.below(60);
        if !wait_for(&server, n_requests, &mut child) {
            break;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        wait_for_silence(&server);
        n_kills += 1;
        if arose_crawl::is_crawl(folder.path()) {
            let status = status(folder.path()).unwrap();
            assert!(!status.is_running);
            let n_queued = queued_urls(folder.path()).unwrap().len();
            assert_eq!(n_queued as u64, status.n_queued);
        }
    }
    assert!(n_kills >= N_KILLS, "{n_kills}");
    let seeds = [home(&server, 0)];
    let summary = run(folder.path(), careful(server.dns), &seeds);
    assert_eq!((summary.end, summary.n_queued), (End::Done, 0));
    let expected = reachable(&server, &seeds, None);
    let found: BTreeSet<_> = fetched(&server).into_keys().collect();
    assert_eq!(found, expected);
    let urls = check_archive(folder.path());
    let stored: BTreeSet<String> = urls.keys().cloned().collect();
    let wanted: BTreeSet<String> = expected.iter().map(|&id| server.web.url(id)).collect();
    assert_eq!(stored, wanted);
    assert_eq!(urls.values().max(), Some(&1));
    let log = server.log();
    for by in [By::Host, By::Address] {
        assert_eq!(log.overlaps(by), []);
        assert_eq!(log.gaps_shorter_than(by, DELAY), []);
    }
    assert_eq!(log.disallowed(&server.web), [0_usize; 0]);
    server.stop().unwrap();
}

/// Ends between the moment a page becomes known as an original and the moment the journal says that
/// it is in the archive. No duplicate refers to a missing record.
#[test]
fn duplicates_refer_to_records_after_kills() {
    let server = Server::start(Config {
        n_hosts: 30,
        n_addresses: 30,
        pages: PageCount::Fixed(12),
        median_bytes: 2000,
        kinds: vec![(Kind::Plain, 3), (Kind::Mirror, 2)],
        robots: vec![(Robots::AllowAll, 1)],
        copies: 0.3,
        ..Config::default()
    });
    let server = server.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut random = SplitMix::new(5);
    for n_ends in 0..20 {
        let mut command = command(folder.path(), &server, None, 1000 << (n_ends % 8));
        command.env(CHANGES, (30 + random.below(120)).to_string());
        let status = command.spawn().unwrap().wait().unwrap();
        wait_for_silence(&server);
        if status.success() {
            break;
        }
    }
    let seeds = [home(&server, 0)];
    let summary = run(folder.path(), careful(server.dns), &seeds);
    assert_eq!((summary.end, summary.n_queued), (End::Done, 0));
    let expected = reachable(&server, &seeds, None);
    let lines = index_lines(folder.path()).unwrap();
    let url = |line: &String| line.split('"').nth(3).unwrap().to_owned();
    let urls: BTreeSet<String> = lines.iter().map(url).collect();
    assert_eq!(urls.len(), lines.len());
    assert!(expected.len() > 100);
    assert!(
        expected
            .iter()
            .all(|&id| urls.contains(&server.web.url(id)))
    );
    assert!(check_references(folder.path()) > 10);
    server.stop().unwrap();
}

/// A full disk, simulated by a limit on the size of files, ends the crawl with an error. With
/// enough space, it resumes from the last commit.
#[test]
fn a_full_disk_loses_nothing() {
    let server = web();
    let folder = tempfile::tempdir().unwrap();
    let mut child = start(folder.path(), &server, Some("60"), 1000);
    assert!(!child.wait().unwrap().success());
    let seeds = homes(&server);
    let summary = run(folder.path(), careful(server.dns), &seeds);
    assert_eq!(summary.end, End::Done);
    let expected = reachable(&server, &seeds, None);
    let urls = check_archive(folder.path());
    assert_eq!(urls.len(), expected.len());
    assert_eq!(urls.values().max(), Some(&1));
    server.stop().unwrap();
}

#[test]
fn a_folder_is_used_by_one_crawl_at_a_time() {
    let server = web();
    let folder = tempfile::tempdir().unwrap();
    let mut child = start(folder.path(), &server, None, 1000);
    assert!(wait_for(&server, 5, &mut child));
    let seeds = arose_crawl::Seeds::default();
    let control = arose_crawl::Control::default();
    let error = arose_crawl::crawl(folder.path(), settings(&server), seeds, &control).unwrap_err();
    assert!(
        error.to_string().contains("in use by another process"),
        "{error}"
    );
    assert!(status(folder.path()).unwrap().is_running);
    child.kill().unwrap();
    child.wait().unwrap();
    server.stop().unwrap();
}
