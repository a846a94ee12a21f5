//! Tests that `arose dedup` stays within `--memory` for all kinds of documents.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

/// The memory limit of the runs.
const MEMORY: u64 = 64 << 20;
/// Memory of a process before it has read anything, and of buffers of threads and writers.
const BASE: u64 = 48 << 20;

/// A pseudorandom number.
fn mix(value: u64) -> u64 {
    let value = (value ^ value >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (value ^ value >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ value >> 32
}

/// A page with `n_words` words of a template and then `n_own` words of its own.
fn template(page: u64, n_words: u64, n_own: u64) -> String {
    let words = (0..n_words).map(|i| format!("word{i} "));
    let own = (0..n_own).map(|i| format!("own{:x} ", mix(page << 20 | i)));
    words.chain(own).collect()
}

/// Runs on `n` documents and returns the summary; memory must stay within the limit.
#[track_caller]
fn check(name: &str, n: u64, document: impl Fn(u64) -> String) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("input.jsonl");
    let mut lines = BufWriter::new(File::create(&input).unwrap());
    for page in 0..n {
        writeln!(lines, "{{\"text\": \"{}\"}}", document(page)).unwrap();
    }
    drop(lines);
    let out = folder.path().join("out");
    let summary = dedup(&input, &out);
    let peak = summary["peak_memory_bytes"].as_u64().unwrap();
    assert!(peak < MEMORY + BASE, "{name}: {} MiB", peak >> 20);
    assert!(fs::metadata(out.join("pairs.parquet")).unwrap().len() < 400 * n);
    summary
}

fn dedup(input: &Path, out: &Path) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_arose"));
    command.arg("dedup").arg(input).arg("-o").arg(out);
    command.args(["--memory", "64MiB", "--threads", "2", "--cap", "300"]);
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(status.unwrap().success());
    let summary = fs::read(out.join("summary.json")).unwrap();
    serde_json::from_slice(&summary).unwrap()
}

#[test]
fn memory_does_not_grow_with_the_corpus() {
    for n in [20_000, 80_000] {
        let document = |page: u64| template(page / 3, 0, 40) + &template(!page, 0, 2);
        check("families", n, document);
    }
}

#[test]
fn hostile_shapes_stay_in_bounds() {
    let n = 20_000;
    let equal = check("all equal", n, |_| template(0, 60, 0));
    assert_eq!(equal["counts"]["kept"], 1);
    // With `t` shared shingles and `m` of their own, pages have similarity `t / (t + 2 m)`.
    for (name, n_words, n_own) in [("0.76", 104, 16), ("0.8", 104, 12), ("0.99", 204, 1)] {
        let summary = check(name, n, |page| template(page, n_words, n_own));
        let candidates = summary["counts"]["candidates"].as_u64().unwrap();
        assert!(candidates <= 50 * n, "{name}: {candidates}");
    }
    check("half under one key", n, |page| match page % 2 {
        0 => template(page, 60, 20),
        _ => template(page, 0, 60),
    });
    check("just under the cap", 30 * 290, |page| {
        template(page / 290, 0, 80) + &template(!page, 0, 14)
    });
    let huge = check("a huge document", 2_000, |page| match page {
        1_000 => template(page, 0, 300_000),
        _ => template(page, 0, 40),
    });
    assert_eq!(huge["counts"]["kept"], 2_000);
}
