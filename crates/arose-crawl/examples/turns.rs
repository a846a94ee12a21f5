//! Measures the turns of the crawl loop: `turns DIR [SEEN_MILLIONS] [SECONDS] [THREADS]`.
//!
//! Fills the seen set of a crawl with this many million URLs. Then crawls a synthetic web on this
//! machine for this many seconds, with small commits and a journal that is rewritten often. Prints
//! how many turns of the loop took how long. 50 million URLs need 1 GB of disk, and as much again
//! while they are merged. With 0 threads the loop does everything itself.
#![expect(clippy::print_stdout, reason = "a command-line tool")]

use std::path::Path;

use arose::mix::mix;
use arose_crawl::fingerprint::Fingerprint;
use arose_crawl::seen::{Entry, Seen, SeenConfig};
use arose_crawl::{Control, Error, Seeds, Settings};
use testweb::{PageCount, PageId, Server};

const MILLION: u64 = 1_000_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments
        .next()
        .ok_or("usage: turns DIR [SEEN_MILLIONS] [SECONDS] [THREADS]")?;
    let mut number = |default| {
        arguments
            .next()
            .map_or(Ok(default), |text| text.parse::<u64>())
    };
    let (n_seen, seconds, n_threads) = (number(50)?, number(60)?, number(1)?);
    let folder = Path::new(&folder);
    fill(&folder.join("seen"), n_seen)?;
    let server = Server::start(testweb::Config {
        pages: PageCount::Fixed(2000),
        median_bytes: 8000,
        ..testweb::Config::plain(500)
    })?;
    let mut settings = Settings::default();
    settings.network.allow_private = true;
    settings.network.dns_servers = vec![server.dns];
    settings.polite.delay = 0.0;
    settings.polite.address_delay = 0.0;
    settings.polite.factor = 0.0;
    settings.budget.pages = MILLION;
    settings.stop.seconds = seconds as f64;
    settings.archive.compact = 8 << 20;
    // Four hosts in five are read from their file when it is their turn.
    settings.machine.hosts_in_memory = 100;
    settings.machine.threads = usize::try_from(n_threads)?;
    let pages = (0..500).map(|host| server.web.url(PageId { host, page: 0 }));
    let seeds = Seeds {
        pages: pages.collect(),
        sitemaps: Vec::new(),
    };
    let summary = arose_crawl::crawl(folder, settings, seeds, &Control::default())?;
    let turns = &summary.turns;
    println!(
        "{} pages in {:.1} s, {} turns",
        summary.n_fetched,
        summary.elapsed.as_secs_f64(),
        turns.n()
    );
    for (ms, n) in turns.up_to() {
        println!(
            "{:>8.4} % within {ms} ms",
            100.0 * n as f64 / turns.n().max(1) as f64
        );
    }
    println!("longest {:.1} ms", turns.longest().as_secs_f64() * 1000.0);
    server.stop()?;
    Ok(())
}

/// Fills the set up to a quarter of a million URLs below a full merge.
fn fill(folder: &Path, millions: u64) -> Result<(), Error> {
    let mut seen = Seen::open(folder, SeenConfig::default())?;
    for first in (0..millions * MILLION).step_by(1000) {
        let entries: Vec<Entry<'_>> = (first..first + 1000)
            .map(|n| Entry {
                fingerprint: Fingerprint {
                    host: mix(mix(n) % 100_000),
                    rest: mix(n ^ 0x5eed),
                },
                url: "",
            })
            .collect();
        seen.insert(&entries)?;
        // The journal of the crawl has no commits yet.
        seen.commit_as(0)?;
    }
    seen.sync()
}
