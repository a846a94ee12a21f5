//! What a host costs in memory when it is not among those that are kept there.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use arose_crawl::connect::{Allowed, Tcp};
use arose_crawl::resolve::NameServers;
use arose_crawl::{Crawl, Seams, Settings};
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const N: u64 = 20_000;

fn open(folder: &Path, n_warm: usize) -> Crawl {
    let mut settings = Settings::default();
    settings.machine.threads = 0;
    settings.machine.hosts_in_memory = n_warm;
    settings.duplicates.check = false;
    let seams = Seams {
        connector: Rc::new(Tcp {
            addresses: Allowed::Loopback,
        }),
        resolver: Rc::new(NameServers::new(&["127.0.0.1:53".parse().unwrap()]).unwrap()),
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

/// About 70 of the bytes are for a URL in the buffer of the seen set, and 50 for its text, both of
/// which are bounded. Tables double now and then, which falls on few hosts here.
#[test]
fn issue_22_cold_hosts_are_small() {
    let (cold, warm) = (growth(1000), growth(usize::MAX));
    assert!(warm > 600.0, "{warm}");
    assert!(cold < 300.0, "{cold}");
}
