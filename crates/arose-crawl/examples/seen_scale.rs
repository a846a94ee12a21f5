//! Adds generated URLs to the seen set and prints the cost of each as their number grows.
//!
//! `cargo run --release --example seen_scale -- DIR [MILLIONS] [BATCH] [SMALL]`, by default 50
//! million new URLs in batches of 65,536. For every new URL, a known one is looked up as well: half
//! of those were met recently on the same hosts, half at any time. Time is CPU time (Linux) of
//! normalizing, fingerprinting and lookup, without generating the URLs. A window is the last
//! million. `SMALL` sets the number of keys of the buffer.
#![expect(clippy::print_stdout, reason = "a command-line tool")]

use std::path::Path;

use arose::mix::{SplitMix, mix};
use arose_crawl::fingerprint::Fingerprint;
use arose_crawl::seen::{Entry, Membership, Seen, SeenConfig};
use arose_crawl::url::{NormalUrl, Normalizer};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("usage: seen_scale DIR")?;
    let mut number = |default: u64| -> Result<u64, std::num::ParseIntError> {
        arguments.next().map_or(Ok(default), |text| text.parse())
    };
    let n_new = number(50)? * 1_000_000;
    let n_batch = number(1 << 16)?;
    let mut config = SeenConfig::default();
    config.buffer_keys = number(config.buffer_keys as u64)? as usize;
    let mut seen = Seen::open(Path::new(&folder), config)?;
    let mut random = SplitMix::new(1);
    let mut window = Window::default();
    println!("new URLs  ns/URL (normal, asked)  in all  memory MB  disk MB");
    let mut n_made = seen.len();
    while n_made < n_new {
        let texts = batch(n_made, n_batch, &mut random);
        let start = seconds();
        let urls: Vec<NormalUrl> = texts.iter().filter_map(|text| normal(text)).collect();
        window.normal += seconds() - start;
        let start = seconds();
        let entries: Vec<Entry<'_>> = urls.iter().map(entry).collect();
        let answers = seen.insert(&entries)?;
        seen.commit()?;
        window.asked += seconds() - start;
        window.n_urls += urls.len() as u64;
        let n_found = answers
            .iter()
            .filter(|&&answer| answer == Membership::New)
            .count();
        assert_eq!(n_found as u64, n_batch / 2, "each URL is new once");
        n_made += n_batch / 2;
        if n_made / 1_000_000 > (n_made - n_batch / 2) / 1_000_000 {
            window.print(n_made, Path::new(&folder));
        }
    }
    assert_eq!(seen.len(), n_made);
    Ok(())
}

/// Half new URLs, half known ones, mixed.
fn batch(n_made: u64, n: u64, random: &mut SplitMix) -> Vec<String> {
    let mut texts = Vec::new();
    for offset in 0..n / 2 {
        let new = n_made + offset;
        texts.push(url(new));
        let known = if offset % 2 == 0 {
            random.below(new + 1)
        } else {
            new - random.below(1000).min(new)
        };
        texts.push(url(known));
    }
    texts
}

/// The URL of a number: 200 consecutive ones have the same host, and hosts recur.
fn url(n: u64) -> String {
    let host = mix(n / 200) % 200_000;
    format!(
        "http://www.host-{host}.example.org/articles/{}/page-{n}.html?view=full",
        n % 1000
    )
}

fn normal(text: &str) -> Option<NormalUrl> {
    Normalizer::default().normalize(text, None).ok()
}

fn entry(url: &NormalUrl) -> Entry<'_> {
    Entry {
        fingerprint: Fingerprint::of(url),
        url: url.as_str(),
    }
}

#[derive(Default)]
struct Window {
    normal: f64,
    asked: f64,
    n_urls: u64,
    all: (f64, u64),
}

impl Window {
    fn print(&mut self, n_made: u64, folder: &Path) {
        let each = |seconds: f64| seconds * 1e9 / self.n_urls as f64;
        self.all.0 += self.normal + self.asked;
        self.all.1 += self.n_urls;
        println!(
            "{n_made:>8}  {:>6.0} ({:>6.0}, {:>5.0})  {:>6.0}  {:>9}  {:>7}",
            each(self.normal + self.asked),
            each(self.normal),
            each(self.asked),
            self.all.0 * 1e9 / self.all.1 as f64,
            peak_memory_kb() / 1000,
            disk_bytes(folder) / 1_000_000,
        );
        *self = Self {
            all: self.all,
            ..Self::default()
        };
    }
}

/// CPU time of this thread in seconds, user and system.
fn seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = stat.split(' ').next().and_then(|text| text.parse().ok());
    nanoseconds.unwrap_or(0.0) / 1e9
}

fn peak_memory_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn disk_bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.metadata().ok())
        .map(|metadata| metadata.len())
        .sum()
}
