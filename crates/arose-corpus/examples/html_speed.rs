//! The arose part of `bench/html`: reads pages into memory, then times the requested operations.
//!
//! `html_speed LIST SAMPLE`: two files with one path per line, the second a part of the first.
//! Commands come on standard input, one per line. The output for each is a line `SECONDS BYTES`:
//!
//! | command | does |
//! |---|---|
//! | `text` | text of all pages, mode `henzinger` |
//! | `links` | the same, and resolved links |
//! | `content` | main content of the sample |
//! | `all content` | main content of all pages |
//! | `jsonl FILE` | documents of a JSON Lines file, with one thread |
//! | `dump FILE` | writes the results for the pages of the sample, as JSON Lines |
//!
//! Seconds are CPU time (Linux only): of this thread for pages, of the whole process for files.
#![expect(clippy::print_stdout, reason = "a command-line tool")]

use std::io::{self, BufRead, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use arose_corpus::html::{HtmlConfig, Links, Mode, extract};
use url::Url;

struct Page {
    url: Url,
    html: String,
}

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [list, sample] = arguments.as_slice() else {
        return Err(io::Error::other("usage: html_speed LIST SAMPLE"));
    };
    let (pages, sample) = (load(list)?, load(sample)?);
    for line in io::stdin().lock().lines() {
        let line = line?;
        let (command, file) = line.split_once(' ').unwrap_or((&line, ""));
        let (seconds, bytes) = match (command, file) {
            ("text", _) => time(&pages, Mode::Henzinger, Links::Skip),
            ("links", _) => time(&pages, Mode::Henzinger, Links::Collect),
            ("content", _) => time(&sample, Mode::Content, Links::Skip),
            ("all", "content") => time(&pages, Mode::Content, Links::Skip),
            ("jsonl", file) => read_lines(file.into())?,
            ("dump", file) => dump(&sample, file.into())?,
            _ => return Err(io::Error::other(format!("no command `{line}`"))),
        };
        println!("{seconds} {bytes}");
        io::stdout().flush()?;
    }
    Ok(())
}

fn load(list: &str) -> io::Result<Vec<Page>> {
    let root = Url::parse("https://docs.example.org").map_err(io::Error::other)?;
    let list = std::fs::read_to_string(list)?;
    let pages = list.lines().map(|path| {
        let url = root.join(path).map_err(io::Error::other)?;
        let html = String::from_utf8_lossy(&std::fs::read(path)?).into_owned();
        Ok(Page { url, html })
    });
    pages.collect()
}

fn time(pages: &[Page], mode: Mode, links: Links) -> (f64, usize) {
    let config = config(mode, links);
    let start = thread_seconds();
    let mut n_found = 0;
    for page in pages {
        let found = extract(&page.html, Some(&page.url), &config);
        n_found += found.text.len() + found.metadata.links.len();
    }
    let seconds = thread_seconds() - start;
    assert!(n_found > 0, "pages hold text");
    (seconds, pages.iter().map(|page| page.html.len()).sum())
}

fn config(mode: Mode, links: Links) -> HtmlConfig {
    HtmlConfig {
        mode,
        links,
        ..HtmlConfig::default()
    }
}

fn read_lines(file: PathBuf) -> io::Result<(f64, usize)> {
    let bytes = file.metadata()?.len();
    let config = arose_corpus::Config {
        threads: NonZeroUsize::MIN,
        ..arose_corpus::Config::default()
    };
    let start = process_seconds();
    let documents = arose_corpus::read(&[file], config).map_err(io::Error::other)?;
    let n_documents = documents.count();
    let seconds = process_seconds() - start;
    assert!(n_documents > 0, "lines hold documents");
    Ok((seconds, usize::try_from(bytes).unwrap_or(usize::MAX)))
}

fn dump(pages: &[Page], file: PathBuf) -> io::Result<(f64, usize)> {
    let mut out = io::BufWriter::new(std::fs::File::create(file)?);
    for page in pages {
        let all = config(Mode::Henzinger, Links::Collect);
        let all = extract(&page.html, Some(&page.url), &all);
        let content = config(Mode::Content, Links::Skip);
        let content = extract(&page.html, Some(&page.url), &content).text;
        let n_links = all.metadata.links.len();
        let line = serde_json::json!({ "text": all.text, "content": content, "links": n_links });
        writeln!(out, "{line}")?;
    }
    out.flush().map(|()| (0.0, 0))
}

/// CPU time of this thread in seconds.
fn thread_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = stat.split(' ').next().and_then(|field| field.parse().ok());
    nanoseconds.unwrap_or(f64::NAN) / 1e9
}

/// CPU time of all threads in seconds, in user and system mode.
fn process_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks = after_name.split_whitespace().skip(11).take(2);
    ticks
        .filter_map(|field| field.parse::<f64>().ok())
        .sum::<f64>()
        / 100.0
}
