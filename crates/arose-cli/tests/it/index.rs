//! A session with an index: made, filled, asked, damaged.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const RAVEN: &str = "Once upon a midnight dreary, while I pondered, weak and weary, over many a \
    quaint and curious volume of forgotten lore, while I nodded, nearly napping, suddenly there \
    came a tapping, as of some one gently rapping, rapping at my chamber door.";

fn arose(folder: &Path, arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_arose"))
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    child.wait_with_output().unwrap()
}

/// Runs a command and compares exit code, standard output and standard error.
#[track_caller]
fn check(folder: &Path, arguments: &[&str], input: &str, expected: (i32, &str, &str)) {
    let output = arose(folder, arguments, input);
    let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    let code = output.status.code().unwrap();
    assert_eq!((code, &*out, &*err), expected, "{arguments:?}");
}

/// Two texts and a copy of the first in capitals, as JSON lines.
fn corpus(folder: &Path) {
    let other = RAVEN.replace("tapping", "knocking at the garden gate");
    let mut lines = String::new();
    for (url, text) in [
        ("https://example.org/raven", RAVEN.to_owned()),
        ("https://example.com/other", other),
        ("https://example.net/copy", RAVEN.to_uppercase()),
    ] {
        lines += &serde_json::json!({ "url": url, "text": text }).to_string();
        lines += "\n";
    }
    fs::write(folder.join("corpus.jsonl"), lines).unwrap();
}

#[test]
fn session() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    corpus(folder);
    check(folder, &["index", "create", "seen"], "", (0, "", ""));
    let again = "arose: `seen` is not empty; choose another folder\n";
    check(folder, &["index", "create", "seen"], "", (2, "", again));

    let new = ["index", "add", "--new", "seen", "corpus.jsonl"];
    let names = "https://example.org/raven\nhttps://example.com/other\n";
    check(folder, &new, "", (0, names, "2 added, 1 duplicates\n"));
    check(
        folder,
        &["index", "add", "seen", "corpus.jsonl"],
        "",
        (0, "", "1 added, 2 there already\n"),
    );

    let found = "standard input\n  \
        1.0000  exact       https://example.org/raven  \n  \
        1.0000  exact       https://example.net/copy  \n";
    check(folder, &["index", "query", "seen"], RAVEN, (0, found, ""));
    check(
        folder,
        &["index", "query", "seen"],
        "something else",
        (1, "", ""),
    );

    let gone = "arose: no document `nobody`\n";
    let remove = [
        "index",
        "remove",
        "seen",
        "https://example.net/copy",
        "nobody",
    ];
    check(folder, &remove, "", (1, "", gone));
    let sound = "2 files, 3 records and 0 entries are sound\n";
    check(folder, &["index", "verify", "seen"], "", (0, "", sound));
    let output = arose(folder, &["index", "compact", "seen"], "");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.starts_with("2 documents, 1 removed ones gone; "),
        "{said}"
    );
    let sound = "4 files, 2 records and 40 entries are sound\n";
    check(folder, &["index", "verify", "seen"], "", (0, "", sound));
}

#[test]
fn matches_as_json() {
    let folder = tempfile::tempdir().unwrap();
    corpus(folder.path());
    arose(
        folder.path(),
        &["index", "create", "--policy", "exact", "seen"],
        "",
    );
    arose(folder.path(), &["index", "add", "seen", "corpus.jsonl"], "");
    let output = arose(
        folder.path(),
        &["index", "query", "--json", "seen", "corpus.jsonl"],
        "",
    );
    let lines = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<serde_json::Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(answers.len(), 3);
    assert_eq!(answers[0]["name"], "https://example.org/raven");
    assert_eq!(answers[0]["matches"].as_array().unwrap().len(), 2);
    assert_eq!(answers[1]["matches"].as_array().unwrap().len(), 1);
    assert_eq!(answers[2]["matches"][0]["rule"], "exact");
    let stats = arose(folder.path(), &["index", "stats", "--json", "seen"], "").stdout;
    let stats: serde_json::Value = serde_json::from_slice(&stats).unwrap();
    assert_eq!(
        (&stats["policy"], &stats["documents"]),
        (&"exact".into(), &3.into())
    );
}

#[test]
fn what_is_no_index_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let missing = "arose: no index in `nowhere`; `arose index create` makes one\n";
    check(
        folder.path(),
        &["index", "query", "nowhere"],
        "text",
        (2, "", missing),
    );
    arose(folder.path(), &["index", "create", "seen"], "");
    fs::write(
        folder.path().join("seen/manifest"),
        "something else altogether",
    )
    .unwrap();
    let foreign = "arose: `seen/manifest` is not a file of an arose index\n";
    check(
        folder.path(),
        &["index", "stats", "seen"],
        "",
        (2, "", foreign),
    );
    let samples = ["index", "create", "--samples", "10", "x"];
    let refused = "arose: --samples and --agree are for the policy full only\n";
    check(folder.path(), &samples, "", (2, "", refused));
}
