//! Tests of an index that is queried, damaged, foreign, newer or missing. `golden/index.md` has a
//! session.

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
    // A command that rejects its arguments may end before it reads.
    let written = child.stdin.take().unwrap().write_all(input.as_bytes());
    if let Err(error) = written {
        assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
    }
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

/// Two texts and a copy of the first with different whitespace, as JSON Lines.
fn corpus(folder: &Path) {
    let other = RAVEN.replace("tapping", "knocking at the garden gate");
    let mut lines = String::new();
    for (url, text) in [
        ("https://example.org/raven", RAVEN.to_owned()),
        ("https://example.com/other", other),
        ("https://example.net/copy", RAVEN.replace(", ", ",\n")),
    ] {
        lines += &serde_json::json!({ "url": url, "text": text }).to_string();
        lines += "\n";
    }
    fs::write(folder.join("corpus.jsonl"), lines).unwrap();
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
    let status = arose(folder.path(), &["index", "status", "--json", "seen"], "").stdout;
    let status: serde_json::Value = serde_json::from_slice(&status).unwrap();
    assert_eq!(
        (&status["policy"], &status["documents"]),
        (&"exact".into(), &3.into())
    );
    // All of it is in the log.
    assert!(status["disk_bytes"].as_u64() > Some(0), "{status}");
}

/// An index of the corpus, compacted so that every kind of file exists.
fn filled() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    corpus(folder.path());
    for arguments in [
        &["create", "seen"][..],
        &["add", "seen", "corpus.jsonl"],
        &["remove", "seen", "https://example.net/copy"],
        &["compact", "seen"],
        &["remove", "seen", "https://example.com/other"],
    ] {
        let output = arose(folder.path(), &[&["index"], arguments].concat(), "");
        assert!(output.status.success(), "{output:?}");
    }
    folder
}

#[test]
fn a_text_on_standard_input_is_found() {
    let folder = filled();
    let query = ["index", "query", "seen"];
    let found = "standard input\n  1.0000  exact       https://example.org/raven\n";
    check(folder.path(), &query, RAVEN, (0, found, ""));
    let nothing = "arose: no duplicates in the index\n";
    check(folder.path(), &query, "something else", (1, "", nothing));
    check(folder.path(), &query, "", (1, "", nothing));
}

#[test]
fn nothing_to_add() {
    let folder = filled();
    fs::write(folder.path().join("empty.jsonl"), "").unwrap();
    let add = ["index", "add", "seen", "empty.jsonl"];
    let said = "arose: empty.jsonl: empty input: 0 bytes\n0 added\n";
    check(folder.path(), &add, "", (1, "", said));
    let twice = ["index", "add", "seen", "-", "-"];
    let refused = "arose: standard input can be read only once\n";
    check(folder.path(), &twice, "", (2, "", refused));
}

/// `verify` finds a flipped bit anywhere in any file, and names the file.
#[test]
fn a_flipped_bit_is_named() {
    let folder = filled();
    let seen = folder.path().join("seen");
    let mut n_files = 0;
    for entry in fs::read_dir(&seen).unwrap() {
        let path = entry.unwrap().path();
        let bytes = fs::read(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        for place in [0, bytes.len() / 2, bytes.len().saturating_sub(1)] {
            let mut damaged = bytes.clone();
            let Some(byte) = damaged.get_mut(place) else {
                continue;
            };
            *byte ^= 16;
            fs::write(&path, &damaged).unwrap();
            let output = arose(folder.path(), &["index", "verify", "seen"], "");
            let message = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2), "{name}, {place}: {message}");
            assert!(message.contains(&format!("`seen/{name}`")), "{message}");
        }
        n_files += u32::from(!bytes.is_empty());
        fs::write(&path, &bytes).unwrap();
    }
    assert_eq!(
        n_files, 6,
        "manifest, log, records, run, site counts, committed"
    );
    let sound = (0, "", "no damage in 5 files, 2 records and 96 entries\n");
    check(folder.path(), &["index", "verify", "seen"], "", sound);
}

/// The preamble of a file: magic, content, version, check.
#[test]
fn a_newer_format_is_refused_by_name() {
    let folder = filled();
    let path = folder.path().join("seen/manifest");
    let mut bytes = fs::read(&path).unwrap();
    bytes[10] = 99;
    let check_of = arose::digest::digest64(&bytes[..12]) as u32;
    bytes[12..16].copy_from_slice(&check_of.to_le_bytes());
    fs::write(&path, &bytes).unwrap();
    let newer = "arose: `seen/manifest` has format 99, newer than 2; use a later arose\n";
    for arguments in [
        &["index", "status", "seen"][..],
        &["index", "add", "seen", "corpus.jsonl"],
        &[
            "dedup",
            "corpus.jsonl",
            "-o",
            "out",
            "--json",
            "--against",
            "seen",
        ],
    ] {
        check(folder.path(), arguments, "", (2, "", newer));
    }
}

#[test]
fn what_is_no_index_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let missing = "arose: no index in `nowhere`; create one with `arose index create`\n";
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
        &["index", "status", "seen"],
        "",
        (2, "", foreign),
    );
    let samples = ["index", "create", "--policy", "b", "--minhash", "10", "x"];
    let refused =
        "arose: --minhash has no effect with --policy b; remove it or choose another policy\n";
    check(folder.path(), &samples, "", (2, "", refused));
}
