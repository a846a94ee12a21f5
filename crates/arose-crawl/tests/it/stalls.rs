//! Tests that the crawl loop does not wait for files.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use arose_crawl::connect::Waiting;
use arose_crawl::counters::Counter;
use arose_crawl::resolve::{Addresses, NoAddress, Resolve};
use arose_crawl::{Control, Crawl, End, Seams, Settings, Summary, Turns, failures};
use arose_dedup::disk::Recording;
use testweb::{Config, PageCount, Server};

use crate::faults::seams;
use crate::web::{fetched, homes, reachable, run, settings};

/// The duration of every sync of the disk.
const SYNC: Duration = Duration::from_millis(120);

/// A crawl on a slow disk, whose journal is rewritten after nearly every commit, with many syncs.
fn crawl(n_threads: usize) -> (Summary, usize) {
    let server = Server::start(Config {
        pages: PageCount::Fixed(10),
        median_bytes: 2000,
        ..Config::plain(12)
    });
    let server = server.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings(&server);
    settings.machine.threads = n_threads;
    settings.polite.delay = 0.2;
    settings.archive.commit = 0.1;
    settings.archive.compact = 1000;
    let recording = Recording::start_slow(folder.path(), SYNC);
    let seeds = homes(&server);
    let summary = run(folder.path(), settings, &seeds);
    let n_changes = recording.n_changes();
    let n_expected = reachable(&server, &seeds, None).len();
    assert!(fetched(&server).len() >= n_expected);
    server.stop().unwrap();
    (summary, n_changes)
}

fn n_over(turns: &Turns, ms: u64) -> u64 {
    let n_within = turns.up_to().find(|(bound, _)| *bound == ms).unwrap().1;
    turns.n() - n_within
}

/// A sync takes 120 ms, and a rewrite of the journal a dozen syncs. Only a crawl without threads
/// waits for that in a turn of its loop.
#[test]
fn issue_22_syncs_and_rewrites_stall_no_turn() {
    let (waits, _) = crawl(0);
    assert!(n_over(&waits.turns, 500) >= 1, "{:?}", waits.turns);
    let (goes_on, n_changes) = crawl(1);
    assert!(n_changes > 100, "{n_changes}");
    // A busy machine may delay the loop for a while, but not for this long.
    assert_eq!(n_over(&goes_on.turns, 500), 0, "{:?}", goes_on.turns);
}

/// Resolves no host name.
struct Nowhere;

impl Resolve for Nowhere {
    fn resolve<'a>(&'a self, _: &'a str) -> Waiting<'a, Result<Addresses, NoAddress>> {
        Box::pin(async { Err(NoAddress::Unknown) })
    }
}

/// A host name does not exist, and an earlier run has queued many URLs there. Each of them has its
/// line in the log, and no turn of the loop waits until they are read.
#[test]
fn issue_22_urls_of_unknown_names_stall_no_turn() {
    const N_URLS: usize = 60_000;
    let folder = tempfile::tempdir().unwrap();
    let mut settings = Settings::default();
    settings.machine.threads = 1;
    settings.network.dns_servers = vec!["127.0.0.1:53".parse().unwrap()];
    let open = || {
        let clock = Box::new(|| Duration::from_secs(1_700_000_000));
        let resolver = Rc::new(Nowhere);
        let seams = Seams {
            resolver,
            ..seams(&settings, clock)
        };
        Crawl::open(folder.path(), settings.clone(), seams).unwrap()
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let summary = tokio::task::LocalSet::new().block_on(&runtime, async {
        let urls = (0..N_URLS).map(|n| format!("http://gone.test/{n}"));
        open().add_seeds(urls).unwrap();
        open().run(&Control::default()).await.unwrap()
    });
    assert_eq!((summary.end, summary.n_queued), (End::Done, 0));
    assert_eq!(summary.counters.get(Counter::Lost), N_URLS as u64);
    let failed = failures(folder.path()).unwrap();
    assert_eq!(failed.len(), N_URLS);
    assert!(failed.iter().all(|url| url.reason == "unknown-name"));
    assert_eq!(n_over(&summary.turns, 500), 0, "{:?}", summary.turns);
}

/// A turn of the loop takes long while responses arrive: their hosts, which would have to wait for
/// ten times as long, are not blamed for it.
#[test]
fn issue_22_a_stall_is_not_taken_for_a_slow_host() {
    const STALL: Duration = Duration::from_millis(2500);
    let server = Server::start(Config {
        pages: PageCount::Fixed(10),
        median_bytes: 2000,
        ..Config::plain(8)
    });
    let server = server.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings(&server);
    settings.polite.factor = 10.0;
    settings.stop.patience = 100.0;
    let n_queued = Cell::new(0);
    let seams = Seams {
        priority: Box::new(move |_, depth| {
            n_queued.set(n_queued.get() + 1);
            if n_queued.get() % 20 == 0 && n_queued.get() <= 40 {
                std::thread::sleep(STALL);
            }
            depth
        }),
        ..Seams::real(&settings).unwrap()
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let summary = tokio::task::LocalSet::new().block_on(&runtime, async {
        let mut crawl = Crawl::open(folder.path(), settings, seams).unwrap();
        crawl.add_seeds(homes(&server).into_iter()).unwrap();
        crawl.run(&Control::default()).await.unwrap()
    });
    assert_eq!(summary.end, End::Done);
    assert!(n_over(&summary.turns, 500) >= 1, "{:?}", summary.turns);
    assert!(summary.elapsed < 8 * STALL, "{:?}", summary.elapsed);
    server.stop().unwrap();
}
