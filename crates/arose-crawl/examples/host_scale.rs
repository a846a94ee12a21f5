//! Measures the cost of many hosts: `host_scale STEP DIR [THOUSANDS]`, one step per process.
//!
//! * `queue`: queues a page at each of this many thousand hosts, each on its own site.
//! * `withdraw`: opens the crawl with settings that allow one page in ten. Then nine hosts in ten
//!   are known and have nothing to fetch.
//! * `start`: opens it again, as after a kill.
//! * `more`: opens it and queues a million further pages at hosts chosen at random.
//!
//! Each step prints its wall time, its CPU time and its peak memory. Ten million hosts need about 4
//! GB of disk.
#![expect(clippy::print_stdout, reason = "a command-line tool")]

use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use arose::mix::mix;
use arose_crawl::connect::{Allowed, Tcp};
use arose_crawl::resolve::DnsServers;
use arose_crawl::{Crawl, Seams, Settings};
use mimalloc::MiMalloc;

/// As in the binary `arose`.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const MILLION: u64 = 1_000_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let usage = "usage: host_scale queue|withdraw|start|more DIR [THOUSANDS]";
    let mut arguments = std::env::args().skip(1);
    let (step, folder) = (
        arguments.next().ok_or(usage)?,
        arguments.next().ok_or(usage)?,
    );
    let n_hosts = 1000
        * arguments
            .next()
            .map_or(Ok(100), |text| text.parse::<u64>())?;
    let begun = Instant::now();
    let mut crawl = open(Path::new(&folder), step != "queue")?;
    println!("opened in {:.1} s", begun.elapsed().as_secs_f64());
    let begun = Instant::now();
    let n_urls = match step.as_str() {
        "queue" => {
            crawl.add_seeds((0..n_hosts).map(|n| url(n, 0)))?;
            n_hosts
        }
        "more" => {
            crawl.add_seeds((1..=MILLION).map(|n| url(mix(n) % n_hosts, n)))?;
            MILLION
        }
        "withdraw" => {
            // URLs that are no longer allowed are removed from the queue permanently.
            crawl.add_seeds(std::iter::empty())?;
            0
        }
        "start" => 0,
        _ => return Err(usage.into()),
    };
    if n_urls > 0 {
        let each = begun.elapsed().as_secs_f64() * 1e6 / n_urls as f64;
        println!("{n_urls} URLs queued, {each:.2} us each");
    }
    println!(
        "{:.1} s of CPU time, {}",
        processor_seconds(),
        peak_memory()
    );
    // As if the process were killed: nothing is closed.
    std::process::exit(0);
}

/// A page of a host. Of the pages queued first, one in ten is allowed in the end.
fn url(host: u64, n: u64) -> String {
    let part = if n == 0 && !host.is_multiple_of(10) {
        "old"
    } else {
        "new"
    };
    format!("http://host{host}.site{host}.example/{part}/{n}.html")
}

fn open(folder: &Path, is_later: bool) -> Result<Crawl, Box<dyn std::error::Error>> {
    let seams = Seams {
        connector: Rc::new(Tcp {
            addresses: Allowed::Loopback,
        }),
        resolver: Rc::new(DnsServers::new(&["127.0.0.1:53".parse()?])?),
        clock: Box::new(|| Duration::from_secs(1_700_000_000)),
        priority: Box::new(|_, depth| depth),
        is_ours: Box::new(|_| true),
    };
    let mut settings = Settings::default();
    settings.budget.max_hosts = u32::MAX;
    settings.machine.max_memory = 1 << 30;
    settings.duplicates.check = false;
    if is_later {
        settings.scope.exclude = vec!["/old/".to_owned()];
    }
    Ok(Crawl::open(folder, settings, seams)?)
}

fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace();
    let ticks: u64 = fields
        .skip(11)
        .take(2)
        .filter_map(|text| text.parse::<u64>().ok())
        .sum();
    ticks as f64 / 100.0
}

fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let lines = status
        .lines()
        .filter(|line| line.starts_with("VmHWM") || line.starts_with("VmRSS"));
    let lines: Vec<String> = lines
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    lines.join(", ")
}
