//! Measures time and memory of a large frontier: `pool_scale DIR [QUEUED_MILLIONS]`, or
//! `pool_scale --queues [QUEUED_MILLIONS [URLS_PER_HOST]]`.
//!
//! Queues URLs in a crawl, 500 at each host. Prints the time for each million, the memory of the
//! process, and the memory per URL. Needs 120 MB of disk per million. `seen_scale` measures URLs
//! that are already known. With `--queues`, only the queues are filled, without
//! journal, seen set and caches.
#![expect(clippy::print_stdout, reason = "that is what it is for")]

use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use arose::mix::mix;
use arose_crawl::connect::{Allowed, Tcp};
use arose_crawl::rehearsal::Queues;
use arose_crawl::resolve::NameServers;
use arose_crawl::{Crawl, Error, Seams, Settings};

const PER_HOST: u64 = 500;
const MILLION: u64 = 1_000_000;

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().unwrap_or_else(|| "pool-scale".to_owned()));
    let n_queued = arguments.next().and_then(|text| text.parse().ok());
    let n_queued = n_queued.unwrap_or(10);
    if folder.as_os_str() == "--queues" {
        let per_host = arguments.next().and_then(|text| text.parse().ok());
        queues_alone(n_queued, per_host.unwrap_or(PER_HOST));
        return Ok(());
    }
    let seams = Seams {
        connector: Rc::new(Tcp {
            addresses: Allowed::Loopback,
        }),
        resolver: Rc::new(
            NameServers::new(&["127.0.0.1:53".parse().expect("an address")]).expect("servers"),
        ),
        clock: Box::new(|| Duration::ZERO),
        priority: Box::new(|_, depth| depth),
        is_ours: Box::new(|_| true),
    };
    let mut settings = Settings::default();
    settings.network.allow_private = true;
    settings.machine.hosts_in_memory = usize::MAX;
    let mut crawl = Crawl::open(&folder, settings, seams)?;
    let before = resident();
    for million in 0..n_queued {
        let begun = Instant::now();
        let numbers = million * MILLION..(million + 1) * MILLION;
        crawl.add_seeds(numbers.map(|n| url(n, n_queued * MILLION / PER_HOST)))?;
        let n_bytes = resident().saturating_sub(before);
        println!(
            "{:>4} million queued: {:.2} us each, {} MB more, {:.1} bytes each",
            million + 1,
            begun.elapsed().as_secs_f64(),
            n_bytes / MILLION,
            n_bytes as f64 / ((million + 1) * MILLION) as f64
        );
    }
    let begun = Instant::now();
    drop(crawl);
    let status = arose_crawl::status(&folder)?;
    println!(
        "{} queued after reading the journal again, {:.1} s",
        status.n_queued,
        begun.elapsed().as_secs_f64()
    );
    Ok(())
}

/// Queues this many million URLs and prints the memory they take.
fn queues_alone(n_queued: u64, per_host: u64) {
    let before = resident();
    let mut queues = Queues::new((n_queued * MILLION / per_host.max(1)) as usize);
    (0..n_queued * MILLION).for_each(|n| queues.push(n));
    let n_bytes = resident().saturating_sub(before);
    println!(
        "{} queued: {} MB, {:.2} bytes each",
        queues.len(),
        n_bytes / MILLION,
        n_bytes as f64 / queues.len() as f64
    );
}

/// A page of a random host.
fn url(n: u64, n_hosts: u64) -> String {
    let host = mix(n) % n_hosts;
    format!(
        "http://host{host}.example/folder{}/page-{n}.html?session={:x}",
        n % 100,
        mix(!n) >> 40
    )
}

/// Returns the memory of the process in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    1024 * kilobytes.unwrap_or(0)
}
