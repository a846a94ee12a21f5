//! Compares the contents of files written by other tools with those that other tools read.
//!
//! `peers.py` writes the files and records their contents. Small files are in `tests/fixtures`.
//! Larger ones are written by the test if `AROSE_PEERS_PYTHON` contains the path of an interpreter
//! with the packages.

use std::path::{Path, PathBuf};
use std::process::Command;

use arose_corpus::{Config, Document, Fields, time};
use serde_json::Value;

use crate::support::{config, damage, documents, items_with, shared};

/// The configuration, with the fields that a line of the ground truth names instead of the
/// defaults.
fn with_fields(config: Config, named: &Value) -> Config {
    let list = |role: &str, usual: Vec<String>| match named[role].as_str() {
        Some(name) => vec![name.to_owned()],
        None => usual,
    };
    let usual = Fields::default();
    let fields = Fields {
        text: list("text", usual.text),
        id: list("id", usual.id),
        url: list("url", usual.url),
        fetched: list("fetched", usual.fetched),
        priority: list("priority", usual.priority),
        ..usual
    };
    Config { fields, ..config }
}

/// A value as text; numbers as written in JSON.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

#[track_caller]
fn check_document(found: &Document, expected: &Value, what: &str) {
    // The text of a page differs from the output of an archive reader.
    if let Some(text) = expected["text"].as_str() {
        assert_eq!(found.text, text, "{what}");
    }
    for (role, found) in [("id", &found.id), ("url", &found.url)] {
        assert_eq!(found, &text(&expected[role]), "{role} of {what}");
    }
    if let Some(priority) = expected.get("priority") {
        assert_eq!(found.priority, priority.as_f64(), "{what}");
    }
    if let Some(fetched) = expected["fetched"].as_str() {
        assert_eq!(found.fetched, time::parse(fetched), "{what}");
    }
}

/// Checks every file listed in `truth.jsonl` of a directory.
fn check(folder: &Path) -> usize {
    let truth = std::fs::read_to_string(folder.join("truth.jsonl")).unwrap();
    for line in truth.lines() {
        let truth: Value = serde_json::from_str(line).unwrap();
        let name = truth["file"].as_str().unwrap();
        let expected = truth["documents"].as_array().unwrap();
        for config in [config(1, 1 << 20), config(3, 5000)] {
            let config = with_fields(config, &truth["fields"]);
            let found = items_with(&[&folder.join(name)], config);
            // Only rows without text are reported.
            let damage = damage(&found).into_iter();
            let damage: Vec<_> = damage
                .filter(|w| !w.reason.name().contains("text"))
                .collect();
            assert!(damage.is_empty(), "{name}: {damage:?}");
            let found = documents(&found);
            assert_eq!(found.len(), expected.len(), "{name}");
            for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
                check_document(found, expected, &format!("document {i} of {name}"));
            }
        }
    }
    truth.lines().count()
}

#[test]
fn committed_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    assert!(check(&folder) > 25);
}

#[test]
fn larger_files_and_sample_archives() {
    let Ok(python) = std::env::var("AROSE_PEERS_PYTHON") else {
        println!("skipped: AROSE_PEERS_PYTHON names no interpreter with pyarrow and the others");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let samples = [
        "commoncrawl/whirlwind.warc",
        "commoncrawl/whirlwind.warc.gz",
        "commoncrawl/whirlwind.warc.wet",
        "commoncrawl/whirlwind.warc.wet.gz",
        "warcio/example.warc.gz",
        "warcio/example-resource.warc.gz",
        "warcio/example-iana.org-chunked.warc",
        "warcio/example.arc.gz",
    ];
    let samples = samples.map(|name| shared(&format!("warc-samples/{name}")));
    let samples: Vec<PathBuf> = samples.into_iter().flatten().collect();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers.py");
    let output = Command::new(python)
        .arg(script)
        .arg(folder.path())
        .arg("3000")
        .args(&samples)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert!(check(folder.path()) > 25 + samples.len());
}
