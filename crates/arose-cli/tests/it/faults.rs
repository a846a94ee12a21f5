//! Bad input: a clear message or a correct result, never a panic.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn arose(arguments: &[&str], folder: &Path) -> Output {
    let program = env!("CARGO_BIN_EXE_arose");
    Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Runs `arose sketch --json` on a file with these bytes. Returns its tokens and its messages on
/// standard error.
fn sketch(bytes: &[u8]) -> (u64, String) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("input"), bytes).unwrap();
    let output = arose(&["sketch", "--json", "input"], folder.path());
    assert!(output.status.success(), "{output:?}");
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    (
        result["tokens"].as_u64().unwrap(),
        text(&output.stderr).to_owned(),
    )
}

#[test]
fn empty_file() {
    let message = "arose: input: empty input: 0 bytes\n";
    assert_eq!(sketch(b""), (0, message.to_owned()));
}

#[test]
fn file_of_nuls() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("input"), [0; 100_000]).unwrap();
    let output = arose(&["sketch", "--json", "input"], folder.path());
    assert_eq!(output.status.code(), Some(3));
    let message = "arose: input: unknown format\n\
                   arose: 1 file could not be read completely; everything else is done\n";
    assert_eq!(text(&output.stderr), message);
}

#[test]
fn not_utf8() {
    assert_eq!(sketch(b"caf\xE9 noir"), (2, String::new()));
}

#[test]
fn byte_order_marks() {
    assert_eq!(sketch(b"\xEF\xBB\xBFa rose"), (2, String::new()));
    assert_eq!(sketch(b"\xFF\xFEa\0 \0b\0"), (2, String::new()));
}

#[test]
fn one_long_line() {
    let line = "a rose is a rose is ".repeat(500_000);
    assert_eq!(sketch(line.as_bytes()), (3_000_000, String::new()));
}

/// A sparse file of 2 GiB is rejected before it is read into memory.
#[test]
fn larger_than_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let mut file = File::create(folder.path().join("large")).unwrap();
    file.write_all("a rose is a rose ".repeat(9000).as_bytes())
        .unwrap();
    file.set_len(2 << 30).unwrap();
    let output = arose(&["sketch", "--max-size", "1MiB", "large"], folder.path());
    assert_eq!(output.status.code(), Some(3));
    let message = "arose: the limit is 1 MiB; raise it with --max-size\n\
                   arose: large: too large: a file of more than 1048576 bytes\n";
    assert!(text(&output.stderr).starts_with(message), "{output:?}");
}

/// A path that does not exist is an error in the command, not in the input.
#[test]
fn missing_files_stop_before_anything_is_done() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("there"), "a rose").unwrap();
    let output = arose(&["sketch", "--json", "there", "gone"], folder.path());
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text(&output.stdout), "");
    assert_eq!(
        text(&output.stderr),
        "arose: no such file or directory: `gone`\n"
    );
}

/// Control characters of a text cannot reach the terminal, not even inside a token.
#[test]
fn control_characters_are_not_printed() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("input"), "\x1B[31mred\u{9B}31m").unwrap();
    let output = arose(&["sketch", "--show-tokens", "input"], folder.path());
    assert!(output.status.success());
    assert!(!text(&output.stdout).contains(['\x1B', '\u{9B}']));
}

#[test]
fn a_broken_pipe_is_success() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_arose"))
        .args(["sketch", "--show-tokens", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut input = child.stdin.take().unwrap();
    input
        .write_all("a rose is a rose ".repeat(100_000).as_bytes())
        .unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn settings_that_the_policy_ignores_are_refused() {
    for setting in [["--threshold", "0.9"], ["--site", "same"]] {
        let arguments = [&["compare", "--policy", "b", "a", "b"], &setting[..]].concat();
        let output = arose(&arguments, Path::new("."));
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains(setting[0]), "{output:?}");
    }
}

/// The maximum shingle length: every text is shorter.
#[test]
fn longest_shingle() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("input"), "a rose is a rose").unwrap();
    let w = usize::MAX.to_string();
    let output = arose(&["sketch", "--json", "-w", &w, "input"], folder.path());
    assert!(output.status.success(), "{output:?}");
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&result["short"], &result["shingles"]),
        (&true.into(), &1.into())
    );
}

/// The first tokens are shown wherever they are in the text, and long ones are truncated.
#[test]
fn tokens_after_many_blanks() {
    let folder = tempfile::tempdir().unwrap();
    let words = format!("{}rose {}", " ".repeat(5000), "x".repeat(5000));
    fs::write(folder.path().join("input"), words).unwrap();
    let output = arose(&["sketch", "input"], folder.path());
    let expected = format!("            rose {}…\n", "x".repeat(60));
    assert!(text(&output.stdout).contains(&expected), "{output:?}");
}

#[test]
fn standard_input_twice_is_refused() {
    let output = arose(&["compare", "-", "-"], Path::new("."));
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        text(&output.stderr),
        "arose: standard input can be read only once\n"
    );
}
