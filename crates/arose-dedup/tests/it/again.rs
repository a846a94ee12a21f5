//! Tests that long lines, whose tokens are read again, are treated like any others.

use std::fs;
use std::io::Write as _;
use std::num::NonZeroUsize;

use arose::rule::Criterion;
use arose_dedup::{Config, Progress, Start, Verify};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;

use crate::support::{Bench, docs, family_texts, pairs};

/// Lines of short and long texts, with everything that a line may have: escapes, letters beyond
/// ASCII, other fields, blank lines and line ends of two bytes, and a byte order mark at the start.
fn lines() -> String {
    let mut lines = "\u{feff}".to_owned();
    for (i, text) in family_texts(300, 5).into_iter().enumerate() {
        let text = match i % 4 {
            0 => text.replace(' ', "\t\"\\ "),
            1 => format!("{text} {}", "Größe 東京 ".repeat(100)),
            _ => text,
        };
        let line = json!({ "id": format!("d{i}"), "more": [{ "text": "x" }], "text": text });
        lines.push_str(&line.to_string());
        lines.push_str(["\n", "\r\n", "\n\n \n"][i % 3]);
    }
    // The last line has no end.
    lines.trim_end().to_owned()
}

/// A file that is read again gives the results of one whose tokens are stored, for any number of
/// threads and any memory.
#[test]
fn issue_20_lines_that_are_read_again_change_nothing() {
    let bench = Bench::new();
    let lines = lines();
    bench.write("plain.jsonl", &lines);
    let packed = fs::File::create(bench.path("packed.jsonl.gz")).unwrap();
    let mut packed = GzEncoder::new(packed, Compression::fast());
    packed.write_all(lines.as_bytes()).unwrap();
    packed.finish().unwrap();
    for verify in [Verify::Text, Verify::Sketch] {
        let mut found = Vec::new();
        for (input, threads, memory) in [
            ("packed.jsonl.gz", 2, 1 << 30),
            ("plain.jsonl", 2, 1 << 30),
            ("plain.jsonl", 1, 1),
        ] {
            let mut config = Config {
                memory,
                verify,
                ..Config::of(Criterion::jaccard())
            };
            config.corpus.threads = NonZeroUsize::new(threads).unwrap();
            let out = bench.path(&format!("out-{verify:?}-{input}-{threads}"));
            let inputs = [bench.path(input)];
            let progress = Progress::default();
            let summary = arose_dedup::run(&inputs, &config, &out, Start::Resume, &progress);
            let counts = summary.unwrap()["counts"].clone();
            found.push((docs(&out), pairs(&out), counts));
        }
        assert!(found[0].1.len() > 50, "{}", found[0].1.len());
        assert!(found[1] == found[0] && found[2] == found[0], "{verify:?}");
    }
}
