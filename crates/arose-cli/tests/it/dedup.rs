//! Tests of `arose dedup` with inputs and options that must not be accepted silently.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn arose(folder: &Path, arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_arose"))
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that rejects its arguments may end before it reads.
    let written = child.stdin.take().unwrap().write_all(input.as_bytes());
    if let Err(error) = written {
        assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
    }
    child.wait_with_output().unwrap()
}

/// Runs a command that must fail with a message that contains `expected`.
#[track_caller]
fn refused(folder: &Path, arguments: &[&str], input: &str, expected: &str) {
    let output = arose(folder, arguments, input);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
    assert!(message.contains(expected), "{arguments:?}: {message}");
}

#[test]
fn standard_input_is_never_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let first = arose(
        path,
        &["dedup", "-", "-o", "out", "--json"],
        "{\"text\": \"a\"}\n",
    );
    assert_eq!(first.status.code(), Some(0));
    let two = "{\"text\": \"b\"}\n{\"text\": \"c\"}\n";
    refused(
        path,
        &["dedup", "-", "-o", "out"],
        two,
        "standard input may differ",
    );
    let again = arose(path, &["dedup", "-", "-o", "out", "--json", "--force"], two);
    let summary: serde_json::Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(summary["counts"]["read"], 2);
}

#[test]
fn options_without_effect_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("a.jsonl"), "{\"text\": \"a\"}\n").unwrap();
    for (options, expected) in [
        (
            &["--policy", "b", "--threshold", "0.9"][..],
            "--threshold has no effect",
        ),
        (
            &["--policy", "site", "--recall", "0.9"],
            "--recall has no effect",
        ),
        (
            &["--site", "henzinger", "--threshold", "0.9"],
            "--site has no effect with --policy jaccard",
        ),
        (
            &["--policy", "exact", "--shingle", "3"],
            "--shingle has no effect",
        ),
        (
            &["--priority-field", "rank"],
            "--priority-field has no effect",
        ),
        (&["--time-field", "when"], "--time-field has no effect"),
        (
            &["--keep", "priority", "--priority-field", "rank"],
            "check --priority-field",
        ),
        (&["--keep", "newest"], "--time-field"),
    ] {
        let arguments = [&["dedup", "a.jsonl", "-o", "out", "--force"], options].concat();
        refused(path, &arguments, "", expected);
    }
    let line = "{\"text\": \"a\", \"when\": \"2020-01-01\"}\n";
    fs::write(path.join("a.jsonl"), line).unwrap();
    let newest = ["--keep", "newest", "--time-field", "when"];
    let arguments = [&["dedup", "a.jsonl", "-o", "out", "--force"], &newest[..]].concat();
    assert_eq!(arose(path, &arguments, "").status.code(), Some(0));
}

#[test]
fn a_known_name_with_another_text_is_settled_as_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let write = |name: &str, text: &str| {
        let line = format!("{{\"id\": \"1\", \"text\": \"{text}\"}}\n");
        fs::write(path.join(name), line).unwrap();
    };
    let add = |options: &[&str]| {
        let output = arose(path, &[&["index", "add", "seen"], options].concat(), "");
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code().unwrap(), message)
    };
    write("a.jsonl", "the first text");
    write("b.jsonl", "a text of another file under the same ID");
    arose(path, &["index", "create", "seen"], "");
    assert_eq!(add(&["a.jsonl", "b.jsonl"]), (0, "2 added\n".to_owned()));
    assert_eq!(
        add(&["a.jsonl"]),
        (0, "0 added, 1 already in the index\n".to_owned())
    );
    write("a.jsonl", "a second text");
    let (code, message) = add(&["a.jsonl"]);
    assert_eq!(code, 2, "{message}");
    assert!(
        message.contains("`a.jsonl#1` is in the index with another text"),
        "{message}"
    );
    assert!(message.contains("documents refused: 1"), "{message}");
    let skip = add(&["a.jsonl", "--on-conflict", "skip"]);
    assert_eq!(skip, (0, "0 added, 1 skipped\n".to_owned()));
    let replace = add(&["a.jsonl", "--on-conflict", "replace"]);
    assert_eq!(replace, (0, "0 added, 1 replaced\n".to_owned()));
    let again = add(&["a.jsonl"]);
    assert_eq!(again, (0, "0 added, 1 already in the index\n".to_owned()));
}
