//! Compares the CPU time of a first crawl with that of visiting every page again: `visit_cost
//! [PAGES] [ROUNDS] [KIND]`.
//!
//! A process of its own serves the pages on loopback, about 8 kB each, so its time is not counted.
//! Kinds of pages:
//!
//! * `validators`: no page changes, and all have an `ETag`.
//! * `same`: no page changes, and none has validators.
//! * `noise`: every response has other bytes and the same text.
//! * `changed`: at the second visit, every page has another text.
//!
//! Each round crawls a new directory, fetches as many pages of another host into it, opens and
//! closes the crawl, and visits the pages of the first host again. The pages of the other host show
//! what a first fetch costs in a crawl that is not empty. Each of the four is a run of its own. A
//! crawl that visits pages again runs for months, so what it takes to open and close a crawl of so
//! many pages is subtracted from further pages and from visits. Prints microseconds of CPU time
//! (user and system) per page, and medians.
#![expect(clippy::print_stdout, reason = "a command-line tool")]

use std::error::Error;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use arose::mix::SplitMix;
use arose_crawl::counters::Counter;
use arose_crawl::{Control, Seeds, Settings, crawl, refresh};
use mimalloc::MiMalloc;

/// As in the binary `arose`.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const KINDS: [&str; 4] = ["validators", "same", "noise", "changed"];

/// Words and links of a page.
const N_WORDS: u64 = 900;
const N_LINKS: u64 = 30;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |n: usize, default: u64| {
        let text = arguments.get(n);
        text.map_or(Ok(default), |text| text.parse::<u64>())
    };
    if arguments.first().is_some_and(|name| name == "serve") {
        return serve(&arguments[1], number(2, 0)?);
    }
    let (n_pages, n_rounds) = (number(0, 5000)?, number(1, 3)?);
    let kinds = KINDS
        .iter()
        .filter(|kind| arguments.get(2).is_none_or(|wanted| wanted == *kind));
    for kind in kinds {
        let mut rows = Vec::new();
        for _ in 0..n_rounds {
            let row = round(kind, n_pages)?;
            let [first, further, open, visit] = row;
            println!(
                "{kind}: first {first:.0} us; without {open:.0} us to open and close the crawl: \
                 further {further:.0} us, visit {visit:.0} us"
            );
            rows.push(row);
        }
        let of = |n: usize| median(rows.iter().map(|row| row[n]));
        let [first, further, open, visit] = [0, 1, 2, 3].map(of);
        println!(
            "{kind}, medians: first {first:.0} us, further {further:.0} us, open {open:.0} us, \
             visit {visit:.0} us; visit {:.3} of first, {:.3} of further",
            visit / first,
            visit / further
        );
    }
    Ok(())
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The CPU time per page of a first crawl, of further pages, of opening and closing the crawl, and
/// of visits.
fn round(kind: &str, n_pages: u64) -> Result<[f64; 4], Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let folder = folder.path();
    let (mut server, mut orders, port) = start(kind, n_pages)?;
    let home = |host: u8| format!("http://127.0.0.{host}:{port}/");
    let first = measured(folder, &[home(1)], Counter::Pages, n_pages)?;
    let half_open = measured(folder, &[], Counter::Pages, 0)? / n_pages as f64;
    let further = measured(folder, &[home(2)], Counter::Pages, n_pages)?;
    let open = measured(folder, &[], Counter::Pages, 0)? / n_pages as f64;
    writeln!(orders, "next")?;
    let urls: Vec<String> = std::iter::once(home(1))
        .chain((1..n_pages).map(|page| format!("{}p{page}", home(1))))
        .collect();
    refresh(folder, &urls)?;
    let visit = measured(folder, &[], Counter::Revisits, n_pages)?;
    server.kill()?;
    server.wait()?;
    Ok([first, further - half_open, open, visit - open])
}

/// Runs a crawl until nothing is left to do, which must add at least `expected` to the counter;
/// returns its CPU time per unit of what was added, or all of it if nothing was.
fn measured(
    folder: &Path,
    pages: &[String],
    counter: Counter,
    expected: u64,
) -> Result<f64, Box<dyn Error>> {
    let mut settings = Settings::default();
    settings.network.allow_private = true;
    settings.polite.delay = 0.0;
    settings.polite.address_delay = 0.0;
    settings.polite.factor = 0.0;
    settings.duplicates.stale_after = 0;
    settings.budget.pages = 1 << 30;
    settings.scope.hosts = vec!["127.0.0.1".to_owned(), "127.0.0.2".to_owned()];
    settings.stop.patience = 2.0;
    let seeds = Seeds {
        pages: pages.to_vec(),
        sitemaps: Vec::new(),
    };
    let known = arose_crawl::is_crawl(folder)
        .then(|| arose_crawl::status(folder))
        .transpose()?
        .map_or(0, |status| status.counters.get(counter));
    let before = processor_seconds()?;
    let summary = crawl(folder, settings, seeds, &Control::default())?;
    let n = summary.counters.get(counter) - known;
    if summary.counters.get(Counter::Failures) > 0 || n < expected {
        let n_failures = summary.counters.get(Counter::Failures);
        return Err(format!("{n} of {expected} pages, {n_failures} failures").into());
    }
    Ok(1e6 * (processor_seconds()? - before) / n.max(1) as f64)
}

fn processor_seconds() -> Result<f64, Box<dyn Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let fields = fields.split_whitespace().skip(11).take(2);
    let ticks: Vec<u64> = fields.map(str::parse).collect::<Result<_, _>>()?;
    Ok(ticks.iter().sum::<u64>() as f64 / 100.0)
}

/// Starts the process that serves the pages.
fn start(kind: &str, n_pages: u64) -> Result<(Child, ChildStdin, u16), Box<dyn Error>> {
    let mut server = Command::new(std::env::current_exe()?)
        .args(["serve", kind, &n_pages.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let orders = server.stdin.take().ok_or("no standard input")?;
    let mut line = String::new();
    let output = server.stdout.take().ok_or("no standard output")?;
    BufReader::new(output).read_line(&mut line)?;
    Ok((server, orders, line.trim().parse()?))
}

/// The version of all pages.
static VERSION: AtomicU64 = AtomicU64::new(0);

/// The number of responses so far.
static RESPONSES: AtomicU64 = AtomicU64::new(0);

/// Serves two hosts. Each line of the standard input begins a new version of all pages.
fn serve(kind: &str, n_pages: u64) -> Result<(), Box<dyn Error>> {
    let first = TcpListener::bind("127.0.0.1:0")?;
    let port = first.local_addr()?.port();
    let second = TcpListener::bind(("127.0.0.2", port))?;
    println!("{port}");
    for (host, listener) in [(1, first), (2, second)] {
        let kind = kind.to_owned();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let kind = kind.clone();
                // A client that disconnects is not an error of the server.
                std::thread::spawn(move || drop(answer(&stream, host, &kind, n_pages)));
            }
        });
    }
    for line in std::io::stdin().lines() {
        line?;
        VERSION.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

fn answer(mut stream: &TcpStream, host: u64, kind: &str, n_pages: u64) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    while let Some(request) = lines.next() {
        let request = request?;
        let mut has_validator = false;
        for line in lines.by_ref() {
            let line = line?;
            has_validator |= line.to_ascii_lowercase().starts_with("if-none-match:");
            if line.is_empty() {
                break;
            }
        }
        let target = request.split(' ').nth(1).unwrap_or_default();
        let page = match target {
            "/" => Some(0),
            _ => target.strip_prefix("/p").and_then(|n| n.parse().ok()),
        };
        let tag = match kind {
            "validators" => "ETag: \"1\"\r\n",
            _ => "",
        };
        let (status, body) = match page {
            None => ("404 Not Found", String::new()),
            Some(_) if has_validator => ("304 Not Modified", String::new()),
            Some(page) => ("200 OK", body(host, page, kind, n_pages)),
        };
        let length = match has_validator {
            true => String::new(),
            false => format!("Content-Length: {}\r\n", body.len()),
        };
        let response =
            format!("HTTP/1.1 {status}\r\nContent-Type: text/html\r\n{tag}{length}\r\n{body}");
        stream.write_all(response.as_bytes())?;
    }
    Ok(())
}

/// A page. The home page links to all others, and these to some.
fn body(host: u64, page: u64, kind: &str, n_pages: u64) -> String {
    let version = match kind {
        "changed" => VERSION.load(Ordering::Relaxed),
        _ => 0,
    };
    let mut random = SplitMix::new(host << 60 | page << 8 | version);
    let mut html = format!("<!DOCTYPE html><title>Page {page}</title><ul>");
    if kind == "noise" {
        let n = RESPONSES.fetch_add(1, Ordering::Relaxed);
        let _ = write!(html, "<!-- {n} --><li class=c{n}>");
    }
    let links: Vec<u64> = match page {
        0 => (1..n_pages).collect(),
        page => (1..=N_LINKS).map(|n| (page + n * n) % n_pages).collect(),
    };
    for link in links {
        let _ = write!(html, "<li><a href=\"/p{link}\">Page {link}</a>");
    }
    html.push_str("</ul><p>");
    for n in 0..N_WORDS {
        let _ = write!(html, "{} ", word(random.below(20_000)));
        if n % 60 == 59 {
            html.push_str("</p>\n<p>");
        }
    }
    html
}

/// A word of the vocabulary.
fn word(n: u64) -> String {
    let syllables = [
        "ka", "ro", "mi", "tel", "san", "bu", "dor", "li", "ven", "po",
    ];
    let mut word = String::new();
    let mut rest = n;
    loop {
        word.push_str(syllables[(rest % 10) as usize]);
        rest /= 10;
        if rest == 0 {
            return word;
        }
    }
}
