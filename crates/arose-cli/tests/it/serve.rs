//! Tests of `arose serve` and `arose search` on directories of every kind: results, or a message
//! with the problem and the remedy, and exit code 2.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Runs the program to its end. Returns the exit code and the messages on standard error.
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

/// Checks that serving fails immediately, with this message.
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
    let files = fs::read_dir(out.join("search-5")).unwrap();
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
        &["search-5` is damaged", "rebuild it with --rebuild"],
    );
    assert_eq!(arose(folder, &["search", "out", "roses", "--rebuild"]).0, 0);
}

#[test]
fn other_folders_and_damaged_ones_are_named() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    let out = run(folder);
    fs::create_dir(folder.join("empty")).unwrap();
    check(folder, "empty", &["`empty` contains neither a run"]);
    check(
        folder,
        "pages.jsonl",
        &["`pages.jsonl` contains neither a run"],
    );
    check(folder, "missing", &["cannot open the directory `missing`"]);
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
        (&*long, 2, "the maximum is 4096"),
        ("\"roses", 2, "unclosed quote"),
        ("\u{1b}[31m\u{7}", 1, ""),
        ("about\u{1}\u{1b}roses", 0, ""),
        ("\u{1}", 2, "missing word"),
    ] {
        let (seen, message) = arose(folder, &["search", "out", query]);
        assert_eq!(seen, code, "{message}");
        assert!(message.contains(expected), "{message}");
        assert!(!message.contains('\u{1b}'), "{message:?}");
    }
}

/// A search from another directory finds the same as one next to the sources.
#[test]
fn issue_23_the_working_directory_does_not_matter() {
    let temporary = tempfile::tempdir().unwrap();
    let out = run(temporary.path());
    fs::remove_dir_all(out.join("search-5")).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let (code, message) = arose(
        elsewhere.path(),
        &["search", out.to_str().unwrap(), "roses"],
    );
    assert_eq!(code, 0, "{message}");
    assert!(!message.contains("without text"), "{message}");
    // Moved together with its sources, it is still complete.
    let moved = tempfile::tempdir().unwrap();
    for name in ["out", "pages.jsonl"] {
        fs::rename(temporary.path().join(name), moved.path().join(name)).unwrap();
    }
    fs::remove_dir_all(moved.path().join("out/search-5")).unwrap();
    let out = moved.path().join("out");
    let (code, message) = arose(
        elsewhere.path(),
        &["search", out.to_str().unwrap(), "roses"],
    );
    assert_eq!(code, 0, "{message}");
    // Without its sources, this is reported every time.
    fs::remove_file(moved.path().join("pages.jsonl")).unwrap();
    for _ in 0..2 {
        let (_, message) = arose(
            elsewhere.path(),
            &["search", out.to_str().unwrap(), "roses"],
        );
        assert!(message.contains("9 documents without text"), "{message}");
        assert!(
            message.contains("pages.jsonl` as it was in the run"),
            "{message}"
        );
    }
}

#[test]
fn issue_23_words_are_excluded_without_quotes() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    run(folder);
    assert_eq!(arose(folder, &["search", "out", "roses", "-thorns"]).0, 1);
    assert_eq!(
        arose(folder, &["search", "out", "roses", "-lilies", "-l", "3"]).0,
        0
    );
    let (code, message) = arose(folder, &["search", "out", "author:smith"]);
    assert_eq!(code, 2);
    assert!(
        message.contains("the fields are site, lang, year"),
        "{message}"
    );
    for query in ["ros*", "lang:en_GB OR roses", "site:https://x/ OR roses"] {
        let (code, message) = arose(folder, &["search", "out", query]);
        assert_eq!(code, 0, "{query}: {message}");
    }
}

/// If standard error is closed, there is still a result and no panic.
#[test]
fn issue_23_a_broken_error_pipe_is_no_panic() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    let out = run(folder);
    for arguments in [
        &["search", "out", "roses"][..],
        &["search", "missing", "roses"],
    ] {
        drop(fs::remove_dir_all(out.join("search-5")));
        let mut child = Command::new(env!("CARGO_BIN_EXE_arose"))
            .current_dir(folder)
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stderr.take());
        let output = child.wait_with_output().unwrap();
        let code = output.status.code();
        match arguments[1] {
            "out" => {
                let text = String::from_utf8_lossy(&output.stdout).into_owned();
                assert_eq!(code, Some(0));
                assert!(text.starts_with("9 documents"), "{text}");
            }
            _ => assert_eq!(code, Some(2)),
        }
    }
}

/// A read-only directory, for a user who is not root.
#[cfg(unix)]
#[test]
fn issue_23_a_read_only_directory() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    let out = run(folder);
    let is_root = fs::metadata(folder).unwrap().uid() == 0;
    let program = match is_root {
        // Root can write anywhere, so another user runs a copy of the program that they can access.
        true => {
            let copy = folder.join("arose");
            fs::copy(env!("CARGO_BIN_EXE_arose"), &copy).unwrap();
            copy
        }
        false => env!("CARGO_BIN_EXE_arose").into(),
    };
    let allow = |path: &Path, mode: u32| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let search = |more: &[&str]| -> (i32, String) {
        let mut command = Command::new(&program);
        command
            .current_dir("/")
            .arg("search")
            .arg(&out)
            .arg("roses")
            .args(more);
        if is_root {
            command.uid(65_534).gid(65_534);
        }
        let output = command.output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code().unwrap(), message)
    };
    let index = out.join("search-5");
    for entry in fs::read_dir(&index).unwrap() {
        allow(&entry.unwrap().path(), 0o444);
    }
    for path in [&index, &out, folder] {
        allow(path, 0o555);
    }
    // An index that is up to date is enough.
    let (code, message) = search(&[]);
    assert_eq!((code, &*message), (0, ""));
    // An unreadable index is not damaged.
    allow(&index.join("meta.json"), 0o000);
    let (code, message) = search(&[]);
    assert_eq!(code, 2, "{message}");
    assert!(
        message.contains("no permission to read the search index") && message.contains("--index"),
        "{message}"
    );
    for path in [folder, &out, &index] {
        allow(path, 0o755);
    }
    fs::remove_dir_all(&index).unwrap();
    let writable = tempfile::tempdir().unwrap();
    allow(writable.path(), 0o777);
    allow(&out, 0o555);
    let (code, message) = search(&[]);
    assert_eq!(code, 2, "{message}");
    assert!(
        message.contains("is read-only") && message.contains("--index DIR"),
        "{message}"
    );
    let (code, message) = search(&["--index", writable.path().to_str().unwrap()]);
    assert_eq!(code, 0, "{message}");
    allow(&out, 0o755);
}
