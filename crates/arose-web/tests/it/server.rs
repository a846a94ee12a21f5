//! A directory, a server on a free port, and a client of a few lines.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc;

use arose::rule::Criterion;
use arose_dedup::{Config as DedupConfig, ListedPairs, Progress as DedupProgress, Start};
use arose_search::{Config as IndexConfig, Index, Progress, SearchDir, update};
use arose_web::{Config, serve};
use serde_json::{Value, json};

/// A served directory; it is removed with the test, and the server ends with the process.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) out: PathBuf,
    pub(crate) folder: tempfile::TempDir,
}

/// A response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// Pages on two sites: twelve of one template, a mirror, two unrelated pages, one of hostile text.
pub(crate) fn pages() -> Vec<Value> {
    let prose = |seed: usize| -> String {
        (0..120)
            .map(|i| format!("word{} ", i * (10 * seed + 7) % 97))
            .collect()
    };
    let mut pages: Vec<Value> = (0..12)
        .map(|i| {
            let text = format!("{}visited {i} times, a rose by any name", prose(1));
            json!({ "id": format!("t{i}"), "url": format!("https://a.example.org/{i}"), "text": text })
        })
        .collect();
    for i in 0..3 {
        let text = format!("{}mirrored page {i}, a rose", prose(2));
        let site = ["a.example.org", "b.example.net", "c.example.com"][i];
        pages.push(
            json!({ "id": format!("m{i}"), "url": format!("https://{site}/m"), "text": text }),
        );
    }
    pages.push(json!({ "id": "s", "url": "https://a.example.org/s", "title": "A stranger", "text": "only one rose of its kind" }));
    pages.push(json!({ "id": "<script>alert(1)</script>", "url": "javascript:alert(1)",
        "title": "<img src=x onerror=alert(2)>", "text": "</bdi><script>alert(3)</script>\u{202e} hostile & \"rose\"" }));
    pages
}

/// Writes documents and deduplicates them by Jaccard similarity.
pub(crate) fn dedup(folder: &Path, lines: &[Value]) -> PathBuf {
    // Ratings are found again in a run with another order only if that lists all pairs.
    let config = DedupConfig {
        pairs: ListedPairs::All,
        ..DedupConfig::of(Criterion::jaccard())
    };
    dedup_by(folder, lines, &config)
}

/// Like [`dedup`], with a configuration.
pub(crate) fn dedup_by(folder: &Path, lines: &[Value], config: &DedupConfig) -> PathBuf {
    let (input, out) = (folder.join("pages.jsonl"), folder.join("out"));
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(&input, text).unwrap();
    let progress = DedupProgress::default();
    arose_dedup::run(&[input], config, &out, Start::Anew, &progress).unwrap();
    out
}

/// Writes documents, deduplicates, indexes and serves them.
pub(crate) fn start(lines: &[Value], token: Option<&str>) -> Server {
    let folder = tempfile::tempdir().unwrap();
    let out = dedup(folder.path(), lines);
    Server {
        address: serve_folder(&out, token),
        out,
        folder,
    }
}

/// Serves a directory in a separate thread.
pub(crate) fn serve_folder(out: &Path, token: Option<&str>) -> SocketAddr {
    let opened = SearchDir::open(out).unwrap();
    // Another server may be indexing the same directory.
    while let Err(error) = update(&opened, &IndexConfig::default(), &Progress::default()) {
        assert!(matches!(error, arose_search::Error::Busy { .. }), "{error}");
        std::thread::yield_now();
    }
    let index = Index::open(&opened).unwrap();
    serve_opened(opened, index, token)
}

/// Serves a directory with an existing index.
pub(crate) fn serve_opened(opened: SearchDir, index: Index, token: Option<&str>) -> SocketAddr {
    let (sender, receiver) = mpsc::channel();
    let config = Config {
        address: "127.0.0.1:0".parse().unwrap(),
        token: token.map(str::to_owned),
        seed: 1,
        n_per_stratum: 10,
        versions: arose_search::Versions::All,
        watch: std::time::Duration::from_millis(50),
    };
    std::thread::spawn(move || {
        serve(opened, index, &config, |address| {
            sender.send(address).unwrap()
        })
        .unwrap();
    });
    receiver.recv().unwrap()
}

impl Server {
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send(
            &format!("GET {path} HTTP/1.1\r\nHost: {}\r\n", self.address),
            "",
        )
    }

    pub(crate) fn json(&self, path: &str) -> Value {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        serde_json::from_str(&answer.body).unwrap()
    }

    pub(crate) fn post(&self, path: &str, form: &str) -> Answer {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/x-www-form-urlencoded\r\n\
             Content-Length: {}\r\n",
            self.address,
            form.len()
        );
        self.send(&head, form)
    }

    /// Sends requests until the response is as expected; a server is updated within moments.
    pub(crate) fn wait_for(&self, path: &str, is_expected: impl Fn(&Answer) -> bool) -> Answer {
        let begin = std::time::Instant::now();
        loop {
            let answer = self.get(path);
            if is_expected(&answer) {
                return answer;
            }
            assert!(begin.elapsed().as_secs() < 120, "{path}: {}", answer.body);
            std::thread::yield_now();
        }
    }

    /// Sends a head, which ends with its last header, and a body.
    pub(crate) fn send(&self, head: &str, body: &str) -> Answer {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let request = format!("{head}Connection: close\r\n\r\n{body}");
        // A server that rejects a request early may close the connection before everything is sent.
        let _ = stream.write_all(request.as_bytes());
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let text = String::from_utf8_lossy(&bytes);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        Answer {
            status: status.unwrap_or(0),
            head: head.to_owned(),
            body: unchunked(head, body),
        }
    }
}

fn unchunked(head: &str, body: &str) -> String {
    if !head.to_lowercase().contains("transfer-encoding: chunked") {
        return body.to_owned();
    }
    let mut parts = body.split("\r\n");
    let mut text = String::new();
    while let Some(size) = parts.next() {
        match usize::from_str_radix(size, 16) {
            Ok(n) if n > 0 => text.push_str(parts.next().unwrap_or_default()),
            _ => break,
        }
    }
    text
}
