//! Speed of reading JSON Lines: megabytes per second of CPU time, next to a full parser.
//!
//! `cargo bench -p arose-corpus --bench json_lines -- [FILE]`. The CPU time of all threads is the
//! time that one core would need, even on a busy machine (Linux only). Without a file, the
//! benchmark writes 300 MB of synthetic prose to a temporary file. It checks the number of
//! documents before it reports a time.

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use arose_corpus::{Config, Item, read};

const MADE_BYTES: usize = 300_000_000;

#[expect(clippy::print_stdout, reason = "a benchmark reports to its terminal")]
fn main() {
    let named = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with('-'));
    let made = tempfile::NamedTempFile::new().expect("a place for temporary files");
    let path = named.map_or_else(|| make(made.path()), PathBuf::from);
    let megabytes = std::fs::metadata(&path).expect("a file").len() as f64 / 1e6;
    let n_lines = full_parser(&path).1;
    for _ in 0..3 {
        let (seconds, n_documents) = ours(&path);
        assert_eq!(n_documents, n_lines, "a document per line");
        let (parser, _) = full_parser(&path);
        println!(
            "{megabytes:.0} MB, {n_lines} documents: {:.0} MB/s; serde_json trees {:.0} MB/s",
            megabytes / seconds,
            megabytes / parser
        );
    }
}

fn ours(path: &Path) -> (f64, usize) {
    let config = Config {
        threads: NonZeroUsize::MIN,
        ..Config::default()
    };
    let start = cpu_seconds();
    let documents = read(&[path.to_owned()], config).expect("a file");
    let n = documents
        .filter(|item| matches!(item, Item::Document(_)))
        .count();
    (cpu_seconds() - start, n)
}

fn full_parser(path: &Path) -> (f64, usize) {
    let start = cpu_seconds();
    let bytes = std::fs::read(path).expect("a file");
    let lines = bytes.split(|&b| b == b'\n').filter(|line| !line.is_empty());
    let n = lines
        .filter(|line| {
            let tree: Result<serde_json::Value, _> = serde_json::from_slice(line);
            tree.is_ok_and(|tree| tree["text"].is_string())
        })
        .count();
    (cpu_seconds() - start, n)
}

/// CPU time of this process so far, in user and system mode.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let after_name = stat.rsplit(')').next().expect("a name in brackets");
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let ticks: f64 = fields[11..13]
        .iter()
        .filter_map(|field| field.parse::<f64>().ok())
        .sum();
    ticks / 100.0
}

/// Prose with the escapes, quotes and letters of real pages, about 3 kB per line.
fn make(path: &Path) -> PathBuf {
    let sentence = "The café said \"a rose is a rose\" — and that it's the same 玫瑰 in any language.\n\
                    Nobody disagreed; the next line\tbegan after a tab, and went on for quite some while. ";
    let mut out = std::io::BufWriter::new(std::fs::File::create(path).expect("writable"));
    let mut written = 0;
    for n in 0.. {
        let line = serde_json::json!({
            "id": n,
            "url": format!("https://example.org/{n}"),
            "meta": {"lang": "en", "scores": [0.5, n]},
            "text": sentence.repeat(8 + n % 17),
        });
        let line = format!("{line}\n");
        out.write_all(line.as_bytes()).expect("writable");
        written += line.len();
        if written > MADE_BYTES {
            break;
        }
    }
    out.flush().expect("writable");
    path.to_owned()
}
