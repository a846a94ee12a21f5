//! Reads a list of HTML files and prints the megabytes per second of text and link extraction.
//!
//! `cargo run --release --example html_speed -- LIST`, where `LIST` holds one path per line. Files
//! are read into memory first, so that only extraction is timed; the best of three rounds counts.
//! Where the system tells it (Linux), the time is that of the processor, so that a busy machine
//! does not matter.
#![expect(clippy::print_stdout, reason = "a command-line tool")]

use std::sync::LazyLock;
use std::time::Instant;

use arose_corpus::html::{Config, Links, Mode, extract};
use url::Url;

fn main() {
    let list = std::env::args().nth(1).expect("usage: html_speed LIST");
    let list = std::fs::read_to_string(list).expect("the list can be read");
    let pages: Vec<(Url, String)> = list
        .lines()
        .filter_map(|path| {
            let bytes = std::fs::read(path).ok()?;
            let url = Url::parse("https://docs.example.org")
                .ok()?
                .join(path)
                .ok()?;
            Some((url, String::from_utf8_lossy(&bytes).into_owned()))
        })
        .collect();
    let bytes: usize = pages.iter().map(|(_, html)| html.len()).sum();
    println!("{} pages, {:.1} MB", pages.len(), bytes as f64 / 1e6);
    for (mode, links) in [
        (Mode::Henzinger, Links::Skip),
        (Mode::Henzinger, Links::Collect),
        (Mode::Content, Links::Skip),
    ] {
        let config = Config {
            mode,
            links,
            ..Config::default()
        };
        time(
            &format!("{mode:?}, links {links:?}"),
            &pages,
            bytes,
            &config,
        );
    }
}

fn time(name: &str, pages: &[(Url, String)], bytes: usize, config: &Config) {
    let mut best = f64::INFINITY;
    let (mut n_text, mut n_links) = (0, 0);
    for _ in 0..3 {
        (n_text, n_links) = (0, 0);
        let start = seconds();
        for (url, html) in pages {
            let page = extract(html, Some(url), config);
            n_text += page.text.len();
            n_links += page.metadata.links.len();
        }
        best = best.min(seconds() - start);
    }
    println!(
        "{name}: {:.1} MB/s, {:.1} us/page ({n_text} bytes of text, {n_links} links)",
        bytes as f64 / 1e6 / best,
        best * 1e6 / pages.len() as f64
    );
}

/// Seconds this thread has run.
fn seconds() -> f64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let on_cpu = std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|stat| {
            let nanoseconds: f64 = stat.split(' ').next()?.parse().ok()?;
            Some(nanoseconds / 1e9)
        });
    on_cpu.unwrap_or_else(|| START.elapsed().as_secs_f64())
}
