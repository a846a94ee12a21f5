//! The ways by which foreign bytes come into the crate, and those by which they leave it again.

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
    /// The body of a response in an archive; `Config::html` of that mode.
    Response(Mode),
    /// The `html` of a JSON line.
    JsonField(Mode),
    /// The `html` of a CSV row.
    CsvField(Mode),
    /// A body of this media type, as a crawler reads it.
    Body(&'static str),
    /// A body with these content codings.
    Codings(&'static str),
    /// A pipe whose content has this name.
    Pipe(&'static str),
    /// A file of this name.
    File(&'static str),
    /// The copy of all documents of a file of this name, and of all its records with their texts.
    Copy(&'static str),
}

/// An input made ready, so that only reading is measured.
pub(crate) enum Owned {
    Text(String),
    Bytes(Vec<u8>),
    File(tempfile::TempDir, PathBuf),
    Copy(tempfile::TempDir, PathBuf, Vec<Position>),
}

impl Way {
    /// Puts what a generator made into the format that carries it.
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

    /// Reads the input and drops what comes of it, which must be something.
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

/// Takes documents as late as it can.
///
/// A worker hands out batches and waits while one of them lies in its channel. Before the first
/// item of a batch is dropped, all other threads have gone as far as they can: the most documents
/// there can be exist then, whatever the scheduler does.
struct Consumer {
    /// Bytes of the current batch, counted as the worker counts them.
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
        // A thread that has ended in the meantime has no state.
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

fn page(mode: Mode) -> html::Config {
    html::Config {
        mode,
        links: Links::Collect,
        visibility: html::Switch::On,
        ..html::Config::default()
    }
}

/// What a worker hands out at once.
const BLOCK_BYTES: usize = 64 << 10;

/// What may be decompressed at once of a table, so that it counts as a constant.
const PAGE_BYTES: usize = 4 << 20;

/// One thread and small blocks, so that what is kept for each of them is small beside the input.
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

/// A record that holds a page.
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
