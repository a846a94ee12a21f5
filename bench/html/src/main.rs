//! Compares tokenizers of HTML on the same pages: the one of `arose-corpus`, `html5gum` and
//! `lol_html`.
//!
//! `bench-html DATA [ROUNDS]` reads the page sets below `DATA`. Every tool counts start tags, the
//! bytes of text and the bytes of `href` values, which is what a text extractor needs from it; the
//! counts are shown before anything is timed. A figure is the median over the rounds of CPU
//! time of one thread.

use std::path::Path;

use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;

/// Only this module of the product is compiled: it needs nothing of the rest.
#[allow(dead_code, unused_imports)]
#[path = "../../../crates/arose-corpus/src/html/mod.rs"]
mod html;

/// What a tool found on a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Found {
    n_starts: usize,
    text_bytes: usize,
    href_bytes: usize,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(data) = arguments.first() else {
        eprintln!("usage: bench-html DATA [ROUNDS]");
        return;
    };
    let rounds = arguments
        .get(1)
        .map_or(15usize, |n| n.parse().expect("a number"));
    let pages = pages(Path::new(data));
    let n_bytes: usize = pages.iter().map(String::len).sum();
    println!("{} pages, {n_bytes} bytes\n", pages.len());
    let tools: [(&str, fn(&str) -> Found); 3] = [
        ("arose", arose),
        ("html5gum", html5gum),
        ("lol_html", lol_html),
    ];
    println!("| tool | start tags | text bytes | `href` bytes | pages with other counts |");
    println!("|---|---|---|---|---|");
    let own: Vec<Found> = pages.iter().map(|page| arose(page)).collect();
    for (name, tool) in tools {
        let found: Vec<Found> = pages.iter().map(|page| tool(page)).collect();
        let n_other = found.iter().zip(&own).filter(|(a, b)| a != b).count();
        let sum = |part: fn(&Found) -> usize| found.iter().map(part).sum::<usize>();
        println!(
            "| {name} | {} | {} | {} | {n_other} |",
            sum(|found| found.n_starts),
            sum(|found| found.text_bytes),
            sum(|found| found.href_bytes)
        );
    }
    let mut times = tools.map(|_| Vec::new());
    for _ in 0..rounds {
        for ((_, tool), times) in tools.iter().zip(&mut times) {
            let start = seconds();
            let n_starts: usize = pages.iter().map(|page| tool(page).n_starts).sum();
            times.push(seconds() - start);
            assert!(n_starts > 0, "pages hold tags");
        }
    }
    show(n_bytes, &tools.map(|(name, _)| name), times);
    let modes = [html::Mode::Henzinger, html::Mode::Content];
    let mut times = modes.map(|_| Vec::new());
    let url = url::Url::parse("https://example.org/dir/page").expect("a URL");
    for _ in 0..rounds.div_ceil(3) {
        for (mode, times) in modes.iter().zip(&mut times) {
            let config = html::HtmlConfig {
                mode: *mode,
                links: html::Links::Collect,
                ..html::HtmlConfig::default()
            };
            let start = seconds();
            for page in &pages {
                std::hint::black_box(html::extract(page, Some(&url), &config));
            }
            times.push(seconds() - start);
        }
    }
    show(
        n_bytes,
        &[
            "arose, `henzinger` text and links",
            "arose, `content` and links",
        ],
        times,
    );
}

fn show<const N: usize>(n_bytes: usize, names: &[&str; N], times: [Vec<f64>; N]) {
    println!("\n| tool | MB/s | slowest and fastest round |");
    println!("|---|---|---|");
    for (name, mut times) in names.iter().zip(times) {
        times.sort_by(f64::total_cmp);
        let speed = |at: usize| n_bytes as f64 / 1e6 / times[at];
        let (slow, fast) = (speed(times.len() - 1), speed(0));
        println!(
            "| {name} | {:.0} | {slow:.0} to {fast:.0} |",
            speed(times.len() / 2)
        );
    }
}

fn arose(page: &str) -> Found {
    use html::token::{Token, Tokenizer};
    let mut found = Found::default();
    let mut tokenizer = Tokenizer::new(page);
    while let Some(token) = tokenizer.next_token() {
        match token {
            Token::Start(_) => {
                found.n_starts += 1;
                found.href_bytes += tokenizer.attribute("href").map_or(0, |href| href.len());
            }
            Token::Text(text) => found.text_bytes += text.decoded().len(),
            _ => {}
        }
    }
    found
}

fn html5gum(page: &str) -> Found {
    use html5gum::{Token, Tokenizer};
    let mut found = Found::default();
    for token in Tokenizer::new(page) {
        match token.expect("a string cannot fail to be read") {
            Token::StartTag(tag) => {
                found.n_starts += 1;
                found.href_bytes += tag
                    .attributes
                    .get(&b"href"[..])
                    .map_or(0, |href| href.len());
            }
            Token::String(text) => found.text_bytes += text.len(),
            _ => {}
        }
    }
    found
}

fn lol_html(page: &str) -> Found {
    use lol_html::{DocumentContentHandlers, ElementContentHandlers, HtmlRewriter, Settings};
    use std::cell::Cell;
    let found = Cell::new(Found::default());
    let change = |by: &dyn Fn(&mut Found)| {
        let mut value = found.get();
        by(&mut value);
        found.set(value);
    };
    let mut rewriter = HtmlRewriter::new(
        Settings {
            element_content_handlers: vec![(
                std::borrow::Cow::Owned("*".parse().expect("a selector")),
                ElementContentHandlers::default().element(
                    |element: &mut lol_html::html_content::Element<'_, '_>| {
                        let href = element.get_attribute("href").map_or(0, |href| href.len());
                        change(&|found| {
                            found.n_starts += 1;
                            found.href_bytes += href;
                        });
                        Ok(())
                    },
                ),
            )],
            document_content_handlers: vec![DocumentContentHandlers::default().text(
                |text: &mut lol_html::html_content::TextChunk<'_>| {
                    change(&|found| found.text_bytes += text.as_str().len());
                    Ok(())
                },
            )],
            strict: false,
            ..Settings::new()
        },
        |_: &[u8]| {},
    );
    rewriter
        .write(page.as_bytes())
        .expect("within its memory limit");
    rewriter.end().expect("within its memory limit");
    found.get()
}

fn pages(data: &Path) -> Vec<String> {
    let sets = [
        "extract-articles-181",
        "extract-readability-130",
        "extract-wcxb-dev",
    ];
    let mut pages = Vec::new();
    for set in sets {
        let file = std::fs::File::open(data.join(set).join("pages.jsonl.zst")).expect("a page set");
        let text = std::io::read_to_string(zstd::Decoder::new(file).expect("zstd")).expect("UTF-8");
        pages.extend(text.lines().map(|line| {
            let page: Value = serde_json::from_str(line).expect("JSON");
            page["html"].as_str().unwrap_or_default().to_owned()
        }));
    }
    pages
}

fn seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
