//! What a large frontier takes: `pool_scale FOLDER [QUEUED_MILLIONS] [SEEN_MILLIONS]`.
//!
//! Fills the seen set of a crawl with fingerprints, queues URLs of 100,000 hosts, and says how long
//! each million took and how much memory the process holds. Needs some 3 GB of disk for 10 and 50.
#![expect(clippy::print_stdout, reason = "that is what it is for")]

use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use arose::mix::mix;
use arose_crawl::connect::{Allowed, Tcp};
use arose_crawl::fingerprint::Fingerprint;
use arose_crawl::resolve::NameServers;
use arose_crawl::seen::{Config, Entry, Seen};
use arose_crawl::{Crawl, Error, Seams, Settings};

const N_HOSTS: u64 = 100_000;
const MILLION: u64 = 1_000_000;

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().unwrap_or_else(|| "pool-scale".to_owned()));
    let mut number = |default| {
        arguments
            .next()
            .and_then(|text| text.parse().ok())
            .unwrap_or(default)
    };
    let (n_queued, n_seen) = (number(10), number(50));
    fill_seen(&folder, n_seen - n_queued.min(n_seen))?;
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
    settings.budget.max_hosts = u32::MAX;
    let mut crawl = Crawl::open(&folder, settings, seams)?;
    for million in 0..n_queued {
        let begun = Instant::now();
        let numbers = million * MILLION..(million + 1) * MILLION;
        crawl.add_seeds(numbers.map(url))?;
        report("queued", million + 1, begun);
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

/// A page of a random host.
fn url(n: u64) -> String {
    let host = mix(n) % N_HOSTS;
    format!(
        "http://host{host}.example/folder{}/page-{n}.html?session={:x}",
        n % 100,
        mix(!n) >> 40
    )
}

fn fill_seen(folder: &std::path::Path, millions: u64) -> Result<(), Error> {
    let folder = folder.join("seen");
    let mut seen = Seen::open(&folder, Config::default())?;
    for million in 0..millions {
        let begun = Instant::now();
        for batch in 0..1000 {
            let first = million * MILLION + batch * 1000;
            let entries: Vec<Entry<'_>> = (first..first + 1000)
                .map(|n| Entry {
                    fingerprint: Fingerprint {
                        host: mix(mix(n) % N_HOSTS),
                        rest: mix(n ^ 0x5eed),
                    },
                    url: "",
                })
                .collect();
            seen.insert(&entries)?;
            // The crawl begins with its first commit, and knows of none before.
            seen.commit_as(0)?;
        }
        if (million + 1) % 10 == 0 {
            report("seen", million + 1, begun);
        }
    }
    Ok(())
}

fn report(what: &str, millions: u64, begun: Instant) {
    let statm = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let memory = statm
        .lines()
        .filter(|line| line.starts_with("VmRSS") || line.starts_with("VmHWM"));
    let memory: Vec<String> = memory
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    println!(
        "{millions:>4} million {what}: {:.2} us each, {}",
        begun.elapsed().as_secs_f64(),
        memory.join(", ")
    );
}
