//! Runs and archives for tests.

use std::fs;
use std::path::Path;

use arose::rule::Criterion;
use arose_dedup::{Config as DedupConfig, Progress as DedupProgress, Start};
use arose_search::{Config, Error, Index, Progress, Query, Request, SearchDir, Updated, update};
use serde_json::json;

/// A document of a test.
#[derive(Debug, Clone, Default)]
pub(crate) struct Page {
    pub(crate) url: String,
    pub(crate) title: Option<String>,
    pub(crate) text: String,
    pub(crate) language: Option<String>,
    pub(crate) time: Option<i64>,
}

/// Writes pages as JSON Lines.
pub(crate) fn write_pages(path: &Path, pages: &[Page]) {
    let lines: String = pages
        .iter()
        .map(|page| {
            let line = json!({
                "url": page.url, "title": page.title, "text": page.text,
                "language": page.language, "timestamp": page.time,
            });
            format!("{line}\n")
        })
        .collect();
    fs::write(path, lines).unwrap();
}

/// Deduplicates a file into `out` by Jaccard similarity.
pub(crate) fn dedup(input: &Path, out: &Path) {
    dedup_by(input, out, &DedupConfig::of(Criterion::jaccard()));
}

/// Deduplicates a file into `out` with other settings.
pub(crate) fn dedup_by(input: &Path, out: &Path, config: &DedupConfig) {
    let inputs = [input.to_owned()];
    arose_dedup::run(&inputs, config, out, Start::Anew, &DedupProgress::default()).unwrap();
}

/// Updates the index of a directory.
pub(crate) fn updated(out: &Path) -> Result<Updated, Error> {
    let folder = SearchDir::open(out)?;
    update(&folder, &Config::default(), &Progress::default())
}

/// The index of a directory, up to date.
pub(crate) fn indexed(out: &Path) -> Index {
    updated(out).unwrap();
    Index::open(&SearchDir::open(out).unwrap()).unwrap()
}

/// A query as people type it.
#[track_caller]
pub(crate) fn query(text: &str) -> Query {
    text.parse().unwrap()
}

/// Number of matching documents.
pub(crate) fn n_matching(index: &Index, query: &Query) -> u64 {
    let results = index.search(query, &Request::default());
    results.unwrap().n_documents
}

/// Writes an archive with one HTML page for each URL and body.
pub(crate) fn write_archive(path: &Path, pages: &[(&str, &str)]) {
    let pages: Vec<_> = pages.iter().map(|&(url, body)| (url, body, None)).collect();
    write_archive_of(path, &pages);
}

/// The same, with the URLs that the crawler recorded as originals.
pub(crate) fn write_archive_of(path: &Path, pages: &[(&str, &str, Option<&str>)]) {
    let mut file = fs::File::create(path).unwrap();
    for (url, body, original) in pages {
        let body = format!("<title>{body}</title><p>{body}</p>");
        let http = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let original = original.map_or(String::new(), |original| {
            format!(
                "Arose-Duplicate-Of: {original}\r\nArose-Duplicate-Of-Date: 2026-01-01T00:00:00Z\r\n"
            )
        });
        archive_record(&mut file, ("response", url), &original, http.as_bytes());
    }
}

/// Adds a capture of a page to an archive, made on a day of 2026: its words, or the day of the
/// capture of a URL that it equals.
pub(crate) fn add_capture(path: &Path, url: &str, day: u32, content: Result<&str, (&str, u32)>) {
    let mut file = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .unwrap();
    let date = |day: u32| format!("2026-01-{day:02}T00:00:00Z");
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n";
    let (kind, fields, http) = match content {
        Ok(words) => (
            "response",
            String::new(),
            format!("{head}<title>{words}</title><p>{words}</p>"),
        ),
        Err((original, day)) => {
            let date = date(day);
            let fields = format!(
                "WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest\r\n\
                 WARC-Refers-To-Target-URI: {original}\r\nWARC-Refers-To-Date: {date}\r\n"
            );
            ("revisit", fields, head.to_owned())
        }
    };
    let date = date(day);
    dated_record(&mut file, (kind, url, &date), &fields, http.as_bytes());
}

/// Adds to an archive a page that equals another one, as `arose crawl` writes it: without its body.
pub(crate) fn add_revisit(path: &Path, url: &str, profile: &str, original: &str) {
    let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
    let fields = format!(
        "WARC-Profile: {profile}\r\nWARC-Refers-To-Target-URI: {original}\r\n\
         WARC-Refers-To-Date: 2026-01-01T00:00:00Z\r\n"
    );
    let http = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n";
    archive_record(&mut file, ("revisit", url), &fields, http.as_bytes());
}

fn archive_record(file: &mut fs::File, (kind, url): (&str, &str), fields: &str, http: &[u8]) {
    dated_record(file, (kind, url, "2026-01-01T00:00:00Z"), fields, http);
}

fn dated_record(
    file: &mut fs::File,
    (kind, url, date): (&str, &str, &str),
    fields: &str,
    http: &[u8],
) {
    use std::io::Write as _;
    write!(
        file,
        "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {url}\r\n\
         WARC-Date: {date}\r\n{fields}Content-Type: application/http; msgtype=response\r\n\
         Content-Length: {}\r\n\r\n",
        http.len()
    )
    .unwrap();
    file.write_all(http).unwrap();
    file.write_all(b"\r\n\r\n").unwrap();
}
