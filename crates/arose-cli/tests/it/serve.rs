//! `arose serve` and `arose search` over folders that are not what they should be: a message that
//! names the thing and the remedy, and exit code 2.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs the program to its end: exit code and what it says on standard error.
fn arose(folder: &Path, arguments: &[&str]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_arose"));
    let output = command
        .current_dir(folder)
        .args(arguments)
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code().unwrap(), message)
}

/// Serving fails at once, for this reason.
#[track_caller]
fn check(folder: &Path, name: &str, expected: &[&str]) {
    let (code, message) = arose(folder, &["serve", name, "--listen", "127.0.0.1:0"]);
    assert_eq!(code, 2, "{message}");
    for part in expected {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert!(!message.contains("panicked"), "{message}");
}

/// A run in `out`, with its index.
fn run(folder: &Path) -> PathBuf {
    let page = |i: u32| format!("{{\"text\": \"page {i} is about roses and not about thorns\"}}\n");
    fs::write(
        folder.join("pages.jsonl"),
        (0..9).map(page).collect::<String>(),
    )
    .unwrap();
    let (code, message) = arose(folder, &["dedup", "pages.jsonl", "-o", "out"]);
    assert_eq!(code, 0, "{message}");
    assert_eq!(arose(folder, &["search", "out", "roses"]).0, 0);
    folder.join("out")
}

#[test]
fn a_damaged_index_is_told_with_the_remedy() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    let out = run(folder);
    let files = fs::read_dir(out.join("search-1")).unwrap();
    let store = files
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|kind| kind == "store"))
        .unwrap();
    let mut bytes = fs::read(&store).unwrap();
    bytes.iter_mut().step_by(5).for_each(|byte| *byte ^= 0x2a);
    fs::write(&store, bytes).unwrap();
    check(
        folder,
        "out",
        &["search-1` is damaged", "--rebuild makes it anew"],
    );
    assert_eq!(arose(folder, &["search", "out", "roses", "--rebuild"]).0, 0);
}

#[test]
fn other_folders_and_damaged_ones_are_named() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    let out = run(folder);
    fs::create_dir(folder.join("empty")).unwrap();
    check(folder, "empty", &["`empty` is no folder with a run"]);
    check(folder, "pages.jsonl", &["`pages.jsonl` is no folder"]);
    check(folder, "missing", &["cannot open the folder `missing`"]);
    fs::write(out.join("ratings.jsonl"), "{\"time\": 1}\n").unwrap();
    check(
        folder,
        "out",
        &["ratings.jsonl:1: not a rating", "remove the line"],
    );
    fs::remove_file(out.join("ratings.jsonl")).unwrap();
    fs::write(out.join("pairs.parquet"), "no table").unwrap();
    check(folder, "out", &["pairs.parquet"]);
}

#[test]
fn queries_of_any_kind() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    run(folder);
    let long = "roses ".repeat(17_000);
    for (query, code, expected) in [
        (&*long, 2, "a query may have 4096 bytes"),
        ("\"roses", 2, "a quote is opened and not closed"),
        ("\u{1b}[31m\u{7}", 1, ""),
        ("about\u{1}\u{1b}roses", 0, ""),
        ("\u{1}", 2, "a word is missing"),
    ] {
        let (seen, message) = arose(folder, &["search", "out", query]);
        assert_eq!(seen, code, "{message}");
        assert!(message.contains(expected), "{message}");
        assert!(!message.contains('\u{1b}'), "{message:?}");
    }
}
