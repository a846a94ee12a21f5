//! Tests that the items do not depend on the number of threads or the block size, for any bytes.

use std::path::Path;

use arose_corpus::{Config, Item, Limits};
use proptest::prelude::*;

use crate::support::{Folder, config, gzip, items_with, noise, piped, response, shared, zstd};

/// Limits small enough to be reached.
fn tight(threads: usize, block_bytes: usize) -> Config {
    Config {
        limits: Limits {
            record_bytes: 40_000,
            line_bytes: 3000,
            header_bytes: 8000,
            body_bytes: 50_000,
            ..Limits::default()
        },
        ..config(threads, block_bytes)
    }
}

/// Reads `bytes` in several ways, which must agree. Returns the common result.
fn agreed(name: &str, bytes: &[u8]) -> Vec<Item> {
    let first = piped(name, bytes, tight(1, 1 << 20));
    for (threads, block_bytes) in [(1, 1), (3, 700), (2, 20_000)] {
        let other = piped(name, bytes, tight(threads, block_bytes));
        assert_eq!(
            first, other,
            "{name}: {threads} threads, blocks of {block_bytes}"
        );
    }
    agreed_on_disk(name, bytes);
    let text: usize = first
        .iter()
        .map(|item| match item {
            Item::Document(document) => document.text.len(),
            Item::Skipped(_) => 0,
        })
        .sum();
    // Each byte of input may become U+FFFD, and a compressed byte may become 400.
    assert!(
        text <= 1200 * bytes.len() + 100,
        "{name}: {text} from {}",
        bytes.len()
    );
    first
}

/// The same from a file, parts of which threads may decode ahead of each other. (A pipe cannot go
/// back, so the two may lose different amounts to damage.)
fn agreed_on_disk(name: &str, bytes: &[u8]) {
    let folder = Folder::new();
    let name = Path::new(name)
        .file_name()
        .expect("a name")
        .to_string_lossy();
    let path = folder.file(&name, bytes);
    let first = items_with(&[&path], tight(1, 1 << 20));
    for (threads, block_bytes) in [(2, 3000), (4, 20_000)] {
        let other = items_with(&[&path], tight(threads, block_bytes));
        assert_eq!(
            first, other,
            "{name}: {threads} threads, blocks of {block_bytes}"
        );
    }
}

fn lines() -> Vec<u8> {
    let line = |n: u64| {
        let text = noise(n, (n * 7 % 90) as usize);
        format!("{{\"id\":{n},\"text\":\"{text}\\n\\u00e9\",\"meta\":{{\"a\":[1,2,\"x\"]}}}}\n")
    };
    (0..60).map(line).collect::<String>().into_bytes()
}

fn rows() -> Vec<u8> {
    let row = |n: u64| {
        format!(
            "{n},\"{}\"\"\n,\",http://x/{n}\n",
            noise(n, (n % 50) as usize)
        )
    };
    let rows: String = (0..60).map(row).collect();
    format!("id,text,url\n{rows}").into_bytes()
}

fn archive(pack: fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    (0..12)
        .flat_map(|n| pack(&response(n, &noise(n as u64, n * 20))))
        .collect()
}

/// Small corpora of every streamed format.
fn corpora() -> Vec<(&'static str, Vec<u8>)> {
    let plain: fn(&[u8]) -> Vec<u8> = <[u8]>::to_vec;
    let arc = "filedesc://a.arc 0.0.0.0 20080430204825 text/plain 3\n1 1\n\n\
               http://x/1 1.2.3.4 20080430204825 text/plain 4\nrose\n\
               http://x/2 1.2.3.4 20080430204825 text/html 40\nHTTP/1.1 200 OK\nContent-Type: a/b\n\n<p>rose\n\n";
    vec![
        ("a.jsonl", lines()),
        ("a.jsonl.gz", gzip(&lines())),
        ("a.jsonl.zst", zstd(&lines())),
        ("a.csv", rows()),
        ("a.warc", archive(plain)),
        ("a.warc.gz", archive(gzip)),
        ("a.warc.zst", archive(zstd)),
        ("a.arc", arc.repeat(5).into_bytes()),
        ("a.html", b"<html><title>t</title><p>x</p>".to_vec()),
        (
            "a.xml",
            b"<rss><title>t</title><item><description>&lt;p&gt;x</description></item></rss>"
                .to_vec(),
        ),
    ]
}

#[test]
fn threads_and_blocks_do_not_matter() {
    for (name, bytes) in corpora() {
        let items = agreed(name, &bytes);
        assert!(
            items.iter().any(|item| matches!(item, Item::Document(_))),
            "{name}"
        );
    }
}

#[test]
fn positions_ascend() {
    for (name, bytes) in corpora() {
        let items = agreed(name, &bytes);
        let places: Vec<_> = items.iter().map(|item| item.place().1).collect();
        assert!(places.is_sorted(), "{name}: {places:?}");
    }
}

#[test]
fn a_folder_of_everything_in_order() {
    let folder = Folder::new();
    for (n, (name, bytes)) in corpora().into_iter().enumerate() {
        folder.file(&format!("{n:02}/{name}"), &bytes);
    }
    for n in 0..100 {
        folder.file(&format!("50/{n:03}.txt"), noise(n, 30).as_bytes());
    }
    let first = items_with(&[folder.path()], config(1, 1 << 20));
    assert!(first.len() > 300);
    for (threads, block_bytes) in [(1, 1), (4, 500), (8, 100_000)] {
        assert_eq!(
            first,
            items_with(&[folder.path()], config(threads, block_bytes))
        );
    }
}

#[test]
fn an_abandoned_reader_stops() {
    let folder = Folder::new();
    let path = folder.file("a.jsonl", &lines().repeat(100));
    for taken in [0, 1, 50] {
        let documents = arose_corpus::read(std::slice::from_ref(&path), config(3, 100));
        let n = documents.expect("it exists").take(taken).count();
        assert_eq!(n, taken);
    }
}

#[test]
fn work_is_done_in_order_and_a_panic_is_passed_on() {
    let folder = Folder::new();
    let path = folder.file("a.jsonl", &lines());
    let lengths =
        arose_corpus::read_map(
            std::slice::from_ref(&path),
            config(3, 100),
            |item| match item {
                Item::Document(document) => document.id,
                Item::Skipped(_) => None,
            },
        );
    let ids: Vec<_> = lengths.expect("it exists").flatten().collect();
    assert_eq!(ids, (0..60).map(|n| n.to_string()).collect::<Vec<_>>());
    let result = std::panic::catch_unwind(|| {
        let failing = arose_corpus::read_map(&[path], config(3, 100), |item| {
            assert_ne!(item.place().1.offset, 0, "on purpose");
        });
        failing.expect("it exists").count()
    });
    assert!(result.is_err());
}

/// How a corpus is damaged.
#[derive(Debug, Clone)]
enum Harm {
    Change(prop::sample::Index, u8),
    Cut(prop::sample::Index),
    Drop(prop::sample::Index, usize),
    Repeat(prop::sample::Index, usize),
}

fn harm() -> impl Strategy<Value = Harm> {
    let place = any::<prop::sample::Index>;
    prop_oneof![
        4 => (place(), any::<u8>()).prop_map(|(at, byte)| Harm::Change(at, byte)),
        1 => place().prop_map(Harm::Cut),
        2 => (place(), 1..300usize).prop_map(|(at, n)| Harm::Drop(at, n)),
        2 => (place(), 1..300usize).prop_map(|(at, n)| Harm::Repeat(at, n)),
    ]
}

fn spoil(bytes: &mut Vec<u8>, harm: &Harm) {
    if bytes.is_empty() {
        return;
    }
    match harm {
        Harm::Change(at, byte) => {
            let at = at.index(bytes.len());
            bytes[at] = *byte;
        }
        Harm::Cut(at) => bytes.truncate(at.index(bytes.len())),
        Harm::Drop(at, n) => {
            let at = at.index(bytes.len());
            bytes.drain(at..(at + n).min(bytes.len()));
        }
        Harm::Repeat(at, n) => {
            let at = at.index(bytes.len());
            let part = bytes[at..(at + n).min(bytes.len())].to_vec();
            bytes.splice(at..at, part);
        }
    }
}

/// The small sample archives.
fn samples() -> Vec<(String, Vec<u8>)> {
    let Some(root) = shared("warc-samples") else {
        return Vec::new();
    };
    let mut samples = Vec::new();
    for folder in ["warcio", "commoncrawl", "webarchive-commons"] {
        let entries = std::fs::read_dir(root.join(folder)).expect("a folder");
        for entry in entries {
            let path = entry.expect("readable").path();
            let bytes = std::fs::read(&path).expect("readable");
            if bytes.len() < 20_000 {
                samples.push((path.to_string_lossy().into_owned(), bytes));
            }
        }
    }
    samples.sort();
    samples
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn spoilt_corpora(harms in proptest::collection::vec(harm(), 1..4)) {
        for (name, mut bytes) in corpora() {
            for harm in &harms {
                spoil(&mut bytes, harm);
            }
            agreed(name, &bytes);
        }
    }

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..2000), which in 0..10usize) {
        let starts: [&[u8]; 10] = [
            b"", b"{", b"WARC/1.0\r\n", b"\x1f\x8b\x08\0", b"\x28\xb5\x2f\xfd", b"PAR1",
            b"filedesc://a 0.0.0.0 20080430204825 a/b 3\n", b"text,", b"<", b"\xff\xfe",
        ];
        let bytes = [starts[which], &bytes].concat();
        for name in ["a", "a.jsonl", "a.csv", "a.warc"] {
            agreed(name, &bytes);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn spoilt_samples(harms in proptest::collection::vec(harm(), 1..3)) {
        for (name, mut bytes) in samples() {
            for harm in &harms {
                spoil(&mut bytes, harm);
            }
            agreed(&name, &bytes);
        }
    }

    #[test]
    fn spoilt_parquet(harms in proptest::collection::vec(harm(), 1..4)) {
        let found = piped("a.jsonl", &lines(), config(1, 1 << 20));
        let mut writer = arose_corpus::ParquetWriter::new(Vec::new()).expect("to memory");
        for item in found {
            if let Item::Document(document) = item {
                writer.write(*document).expect("to memory");
            }
        }
        let mut bytes = writer.finish().expect("to memory");
        for harm in &harms {
            spoil(&mut bytes, harm);
        }
        agreed("a.parquet", &bytes);
    }
}
