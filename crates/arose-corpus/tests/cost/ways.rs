//! The ways by which untrusted bytes enter the crate and leave it again.

use std::io::Cursor;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use arose_corpus::html::{self, Links, Mode, extract};
use arose_corpus::{
    Change, Config, Documents, Item, Limits, Position, decode_content, is_rewritable, keep,
    payload, read, read_from, rewrite,
};
use url::Url;

/// One way in.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    /// A page, as a crawler reads it.
    Page(Mode),
    /// The body of a response in an archive, with this mode in `Config::html`.
    Response(Mode),
    /// The field `html` of a line of JSON Lines.
    JsonField(Mode),
    /// The field `html` of a CSV row.
    CsvField(Mode),
    /// A body of this media type, as a crawler reads it.
    Body(&'static str),
    /// A body with these content codings.
    Codings(&'static str),
    /// A pipe with this file name.
    Pipe(&'static str),
    /// A file with this name.
    File(&'static str),
    /// A copy of all documents of a file with this name, and of all its records with their texts.
    Copy(&'static str),
}

/// A prepared input, so that only reading is measured.
pub(crate) enum Owned {
    Text(String),
    Bytes(Vec<u8>),
    File(tempfile::TempDir, PathBuf),
    Copy(tempfile::TempDir, PathBuf, Vec<Position>),
}

impl Way {
    /// Wraps the output of a generator in its container format.
    pub(crate) fn wrap(self, bytes: Vec<u8>) -> Vec<u8> {
        match self {
            Way::Response(_) => response(&bytes),
            Way::JsonField(_) => {
                let html = String::from_utf8_lossy(&bytes);
                let line = serde_json::json!({ "url": URL, "html": html });
                format!("{line}\n").into_bytes()
            }
            Way::CsvField(_) => {
                let html = String::from_utf8_lossy(&bytes).replace('"', "\"\"");
                format!("url,html\n{URL},\"{html}\"\n").into_bytes()
            }
            _ => bytes,
        }
    }

    pub(crate) fn prepare(self, input: &[u8]) -> Owned {
        match self {
            Way::Page(_) => Owned::Text(String::from_utf8_lossy(input).into_owned()),
            Way::File(name) => {
                let folder = tempfile::tempdir().unwrap();
                let path = folder.path().join(name);
                std::fs::write(&path, input).unwrap();
                Owned::File(folder, path)
            }
            Way::Copy(name) => {
                let Owned::File(folder, path) = Way::File(name).prepare(input) else {
                    unreachable!();
                };
                let items = read(std::slice::from_ref(&path), config(Mode::Henzinger)).unwrap();
                let positions = items.filter_map(|item| match item {
                    Item::Document(document) => Some(document.position),
                    Item::Skipped(_) => None,
                });
                let positions = positions.collect();
                Owned::Copy(folder, path, positions)
            }
            _ => Owned::Bytes(input.to_vec()),
        }
    }

    /// Reads the input and drops the result, which must not be empty.
    pub(crate) fn run(self, owned: Owned) {
        match (self, owned) {
            (Way::Page(mode), Owned::Text(text)) => {
                let url = Url::parse(URL).unwrap();
                drop(extract(&text, Some(&url), &page(mode)));
            }
            (Way::Body(content_type), Owned::Bytes(bytes)) => {
                let page = page(Mode::Henzinger);
                drop(payload::read(&bytes, Some(content_type), Some(URL), &page));
            }
            (Way::Codings(codings), Owned::Bytes(bytes)) => {
                drop(decode_content(codings, &bytes, &Limits::default()));
            }
            (Way::File(_), Owned::File(_folder, path)) => {
                Consumer::take_all(read(&[path], config(Mode::Henzinger)).unwrap());
            }
            (Way::Copy(_), Owned::Copy(_folder, path, positions)) => {
                let config = config(Mode::Henzinger);
                let kept = keep(&path, &positions, std::io::sink(), &config).unwrap();
                assert_eq!(kept.copied, positions.len() as u64);
                if is_rewritable(&path, &config) {
                    let mut decide = |_| Ok(Change::Keep);
                    rewrite(&path, std::io::sink(), &config, &mut decide).unwrap();
                }
            }
            (_, Owned::Bytes(bytes)) => {
                let (name, mode) = match self {
                    Way::Response(mode) => ("a.warc", mode),
                    Way::JsonField(mode) => ("a.jsonl", mode),
                    Way::CsvField(mode) => ("a.csv", mode),
                    Way::Pipe(name) => (name, Mode::Henzinger),
                    _ => unreachable!(),
                };
                let config = config(mode);
                Consumer::take_all(read_from(name.as_ref(), Cursor::new(bytes), config));
            }
            _ => unreachable!(),
        }
    }
}

/// Takes documents as late as possible.
///
/// A worker hands out batches and waits while one of them is in its channel. Before the first item
/// of a batch is dropped, all other threads have gone as far as they can. Then the maximum number
/// of documents exists, whatever the scheduler does.
struct Consumer {
    /// Bytes of the current batch, counted like the worker does.
    n_bytes: usize,
}

impl Consumer {
    fn take_all(items: Documents<Item>) {
        let mut consumer = Self { n_bytes: 0 };
        for item in items {
            consumer.take(item);
        }
    }

    fn take(&mut self, item: Item) {
        if self.n_bytes == 0 {
            wait_for_others();
        }
        self.n_bytes += 128;
        if let Item::Document(document) = &item {
            self.n_bytes += document.text.len();
        }
        if self.n_bytes >= BLOCK_BYTES {
            self.n_bytes = 0;
        }
    }
}

/// Waits until all other threads of the process sleep.
fn wait_for_others() {
    while !others_sleep() {
        std::thread::sleep(Duration::from_micros(50));
    }
}

fn others_sleep() -> bool {
    let own = rustix::thread::gettid().as_raw_nonzero().to_string();
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let mut others = threads.filter_map(Result::ok);
    others.all(|thread| {
        if thread.file_name() == own.as_str() {
            return true;
        }
        // A thread that has ended meanwhile has no state.
        let Ok(stat) = std::fs::read_to_string(thread.path().join("stat")) else {
            return true;
        };
        let state = stat
            .rsplit(") ")
            .next()
            .and_then(|rest| rest.chars().next());
        matches!(state, Some('S' | 'Z' | 'X'))
    })
}

const URL: &str = "https://example.org/dir/page";

fn page(mode: Mode) -> html::HtmlConfig {
    html::HtmlConfig {
        mode,
        links: Links::Collect,
        visibility: html::Switch::On,
        ..html::HtmlConfig::default()
    }
}

/// Number of bytes that a worker hands out at once.
const BLOCK_BYTES: usize = 64 << 10;

/// Number of bytes of a table that may be decompressed at once, so that it counts as a constant.
const PAGE_BYTES: usize = 4 << 20;

/// One thread and small blocks, so that their memory is small compared with the input.
fn config(mode: Mode) -> Config {
    Config {
        html: page(mode),
        limits: Limits {
            page_bytes: PAGE_BYTES,
            ..Limits::default()
        },
        threads: NonZeroUsize::MIN,
        block_bytes: NonZeroUsize::new(BLOCK_BYTES).unwrap(),
        ..Config::default()
    }
}

/// A record with a page.
fn response(body: &[u8]) -> Vec<u8> {
    let http = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let head = format!(
        "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: {URL}\r\n\
         Content-Type: application/http; msgtype=response\r\nContent-Length: {}\r\n\r\n",
        http.len() + body.len()
    );
    [head.as_bytes(), http.as_bytes(), body, b"\r\n\r\n"].concat()
}
