//! Measures the memory of a host that is not among those kept in memory.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use arose::dust::Learner;
use arose_crawl::connect::{Allowed, Tcp};
use arose_crawl::resolve::DnsServers;
use arose_crawl::settings::Rules;
use arose_crawl::{Crawl, Seams, Settings};
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const N: u64 = 20_000;

fn open(folder: &Path, n_warm: usize) -> Crawl {
    open_with(folder, n_warm, &[])
}

fn open_with(folder: &Path, n_warm: usize, excluded: &[&str]) -> Crawl {
    let mut settings = Settings::default();
    settings.scope.exclude = excluded.iter().map(|&part| part.to_owned()).collect();
    settings.machine.threads = 0;
    settings.machine.hosts_in_memory = n_warm;
    settings.duplicates.check = false;
    let seams = Seams {
        connector: Rc::new(Tcp {
            addresses: Allowed::Loopback,
        }),
        resolver: Rc::new(DnsServers::new(&["127.0.0.1:53".parse().unwrap()]).unwrap()),
        clock: Box::new(|| Duration::from_secs(1_700_000_000)),
        priority: Box::new(|_, depth| depth),
        is_ours: Box::new(|_| true),
    };
    Crawl::open(folder, settings, seams).unwrap()
}

/// Bytes per host by which memory grows from N hosts to twice as many, with a URL at each.
fn growth(n_warm: usize) -> f64 {
    let folder = tempfile::tempdir().unwrap();
    let mut crawl = open(folder.path(), n_warm);
    let mut add = |from: u64| {
        let urls = (from..from + N).map(|n| format!("http://www.host-{n}.site{n}.example/a/{n}"));
        crawl.add_seeds(urls).unwrap();
        ALLOCATOR.current_usage()
    };
    let before = add(0);
    let after = add(N);
    (after - before) as f64 / N as f64
}

/// A crawl that met this many hosts, nine in ten of which have nothing left, and was killed.
fn killed(n_hosts: u64) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut crawl = open(folder.path(), 1000);
    let part = |n: u64| if n.is_multiple_of(10) { "new" } else { "old" };
    let urls = (0..n_hosts).map(|n| format!("http://www.host-{n}.site{n}.example/{}/{n}", part(n)));
    crawl.add_seeds(urls).unwrap();
    drop(crawl);
    folder
}

/// The cost of a start: peak memory in bytes, and CPU time in nanoseconds.
fn start(folder: &Path, n_warm: usize) -> (usize, u64) {
    let (before, begun) = (ALLOCATOR.current_usage(), processor_time());
    ALLOCATOR.reset_peak_usage();
    let mut crawl = open_with(folder, n_warm, &["/old/"]);
    let peak = ALLOCATOR.peak_usage() - before;
    let took = processor_time() - begun;
    // URLs out of scope are removed from the queue permanently.
    crawl.add_seeds(std::iter::empty()).unwrap();
    (peak, took)
}

/// The CPU time of this thread, which does everything here.
fn processor_time() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}

/// A start with twice as many hosts takes twice the time, and little more memory. This holds for a
/// first start that finds most URLs out of scope, and for the next one. Of the memory of a host,
/// about 100 bytes are its events, which go to a file beyond a limit.
fn starts_are_small() {
    let folders = [killed(N), killed(2 * N)];
    for round in 0..2 {
        let [(once, _), (twice, _)] = folders.each_ref().map(|folder| start(folder.path(), 1000));
        let growth = (twice - once) as f64 / N as f64;
        assert!(growth < 400.0, "{growth} in round {round}");
    }
    let (warm, _) = start(folders[1].path(), usize::MAX);
    let (cold, _) = start(folders[1].path(), 1000);
    assert!(2 * warm > 3 * cold, "{warm} {cold}");
    let took = folders.each_ref().map(|folder| {
        let times = (0..3).map(|_| start(folder.path(), 1000).1);
        times.min().unwrap()
    });
    assert!(took[1] < 3 * took[0], "{took:?}");
}

/// Learning URL rules takes at most 200 MB for 100,000 templates with two parameters each, and for
/// any number of them.
fn rules_are_small() {
    let before = ALLOCATOR.current_usage();
    let mut learner = Learner::new(Rules::default().learning().unwrap());
    let mut megabytes = Vec::new();
    for n in 0..1_000_000_u64 {
        // Sites of a thousand templates.
        let letter = |place: u32| char::from(b'a' + (n / 10_u64.pow(place) % 10) as u8);
        let (site, directory) = (n / 1000, [2, 1, 0].map(letter));
        let directory: String = directory.iter().collect();
        let url = format!("http://host{site}.example/{directory}/page?sid={n}&lang=en");
        learner.fetched(&url, Some(n));
        if n + 1 == 100_000 || (n + 1).is_multiple_of(500_000) {
            let used = (ALLOCATOR.current_usage() - before) as f64 / 1e6;
            megabytes.push((n + 1, learner.rules().count(), used));
        }
    }
    assert!(megabytes[0].1 > 190_000, "{megabytes:?}");
    assert!(
        megabytes.iter().all(|(_, _, used)| *used < 200.0),
        "{megabytes:?}"
    );
}

/// About 70 of the bytes are for a URL in the buffer of the seen set, and 50 for its text, both of
/// which are bounded. Tables double occasionally, which affects few hosts here.
#[test]
fn issue_22_cold_hosts_are_small() {
    let (cold, warm) = (growth(1000), growth(usize::MAX));
    assert!(warm > 600.0, "{warm}");
    assert!(cold < 300.0, "{cold}");
    // In the same test, because others would allocate meanwhile.
    starts_are_small();
    rules_are_small();
}
