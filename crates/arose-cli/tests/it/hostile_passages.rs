//! Cost of `arose passages` on hostile texts: CPU time per token compared with ordinary pages.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

/// Approximate number of tokens in each corpus.
const N_TOKENS: usize = 1_000_000;

/// A pseudorandom number.
fn scattered(n: usize) -> usize {
    n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40
}

/// Pages of 500 words, half of which are copied from earlier pages, as in documentation.
fn ordinary(page: usize) -> String {
    let words = |page: usize, range: std::ops::Range<usize>| {
        range.map(move |i| format!("w{} ", scattered(page * 1000 + i) % 50_000))
    };
    let source = scattered(page) % page.max(1);
    let own = words(page, 0..250);
    let start = scattered(page + 7) % 200;
    own.chain(words(source, start..start + 250)).collect()
}

/// Bits as words of one letter.
fn binary(bits: impl Iterator<Item = bool>) -> String {
    bits.map(|bit| if bit { "a " } else { "b " }).collect()
}

/// The Fibonacci word.
fn fibonacci(n: usize) -> Vec<bool> {
    let (mut last, mut word) = (vec![false], vec![true]);
    while word.len() < n {
        let next = [&word[..], &last].concat();
        (last, word) = (word, next);
    }
    word.truncate(n);
    word
}

fn corpus(shape: &str, path: &Path) {
    let mut out = BufWriter::new(File::create(path).unwrap());
    let mut push = |text: &str| writeln!(out, "{}", json!({ "text": text })).unwrap();
    let line = "one line of a dozen words that stands everywhere and never changes at all\n";
    match shape {
        "ordinary" => (0..N_TOKENS / 500).for_each(|page| push(&ordinary(page))),
        "one token" => push(&"x ".repeat(N_TOKENS)),
        "one line" => push(&line.repeat(N_TOKENS / 14)),
        "a line in each" => (0..N_TOKENS / 56).for_each(|_| push(&line.repeat(4))),
        "fibonacci" => push(&binary(fibonacci(N_TOKENS).into_iter())),
        "thue-morse" => push(&binary((0..N_TOKENS).map(|i| i.count_ones() % 2 == 0))),
        "one passage" => {
            let passage: String = (0..60).map(|i| format!("p{i} ")).collect();
            (0..N_TOKENS / 100).for_each(|page| {
                let own: String = (0..20)
                    .map(|i| format!("w{} ", scattered(page * 40 + i)))
                    .collect();
                push(&format!("{own}{passage}{own}"));
            });
        }
        "equal documents" => (0..N_TOKENS / 100).for_each(|_| push(&ordinary(3)[..700])),
        _ => unreachable!("all shapes are listed"),
    }
}

/// CPU seconds per million tokens, and bytes of memory.
fn cost(folder: &Path, shape: &str) -> (f64, u64) {
    let [input, out] = ["in.jsonl", "out"].map(|name| folder.join(name));
    corpus(shape, &input);
    let mut best = f64::INFINITY;
    let mut memory = 0;
    // The minimum of three, since other processes only add time.
    for _ in 0..3 {
        let output = Command::new(env!("CARGO_BIN_EXE_arose"))
            .arg("passages")
            .arg(&input)
            .args([
                "--json",
                "--threads",
                "1",
                "--memory",
                "256MiB",
                "--force",
                "-o",
            ])
            .arg(&out)
            .output()
            .unwrap();
        let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
        let stages = summary["stages"].as_array().unwrap();
        let seconds: f64 = stages
            .iter()
            .filter_map(|stage| stage["cpu_seconds"].as_f64())
            .sum();
        let n_tokens = summary["counts"]["tokens"].as_f64().unwrap();
        best = best.min(seconds / n_tokens * 1e6);
        memory = summary["peak_memory_bytes"].as_u64().unwrap_or(0);
    }
    fs::remove_dir_all(&out).unwrap();
    (best, memory)
}

/// Shapes, and how many times as expensive per token as ordinary pages each may be. None should be
/// more expensive at all. Measured in a development build: one token 0.5, one line 0.9, a line in
/// each 1.7, Fibonacci 1.8, Thue-Morse 1.6, one passage 1.9, equal documents 1.2. The bounds are
/// above that, because of noise. Short documents cost more per token than pages, and windows of
/// many contexts of one anchor are sorted.
const SHAPES: [(&str, f64); 7] = [
    ("one token", 1.5),
    ("one line", 2.0),
    ("a line in each", 3.0),
    ("fibonacci", 3.0),
    ("thue-morse", 3.0),
    ("one passage", 3.0),
    ("equal documents", 2.0),
];

#[test]
fn issue_29_no_text_is_dearer_than_ordinary_pages() {
    let folder = tempfile::tempdir().unwrap();
    let (ordinary, _) = cost(folder.path(), "ordinary");
    let mut dear = Vec::new();
    for (shape, most) in SHAPES {
        let (seconds, memory) = cost(folder.path(), shape);
        if seconds > most * ordinary || memory >= 400 << 20 {
            dear.push(format!("{shape}: {seconds} s, {memory} bytes"));
        }
    }
    assert!(dear.is_empty(), "ordinary {ordinary} s; {dear:?}");
}
