//! Tests of the command, as used by a script.

use std::process::{Command, Output};

use serde_json::Value;

fn testweb(arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_testweb");
    Command::new(program).args(arguments).output().unwrap()
}

fn lines(output: &Output) -> Vec<Value> {
    let text = str::from_utf8(&output.stdout).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn serve_says_where() {
    let output = testweb(&["serve", "--hosts", "3", "--port", "0", "--for", "0"]);
    assert!(output.status.success(), "{output:?}");
    let ready = &lines(&output)[0];
    let port = ready["port"].as_u64().unwrap();
    assert_eq!(ready["home"], format!("http://plain0.test:{port}/"));
    assert!(ready["dns"].as_str().unwrap().starts_with("127.0.0.1:"));
}

#[test]
fn truth_is_a_line_for_each_page() {
    let output = testweb(&[
        "truth",
        "--hosts",
        "3",
        "--mixture",
        "plain",
        "--pages",
        "20",
    ]);
    let pages = lines(&output);
    assert_eq!(pages.len(), 60);
    assert_eq!(pages[0]["url"], "http://plain0.test:8080/");
    let n_reachable = pages
        .iter()
        .filter(|page| page["reachable"] == true)
        .count();
    assert!((40..60).contains(&n_reachable), "{n_reachable}");
}

#[test]
fn judge_finds_what_was_planted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let header = "# testweb log; start end address host target status retry bytes; from 0\n";
    let line = |start: u64, target: &str| {
        let end = start + 1_000_000;
        format!("{start}\t{end}\t127.1.0.1\tplain0.test\t{target}\t200\t0\t9\n")
    };
    let judge = |requests: &str| {
        std::fs::write(&path, format!("{header}{requests}")).unwrap();
        testweb(&[
            "judge",
            path.to_str().unwrap(),
            "--hosts",
            "3",
            "--mixture",
            "plain",
        ])
    };
    let polite = line(0, "/robots.txt") + &line(1_500_000_000, "/");
    assert_eq!(judge(&polite).status.code(), Some(0));
    let output = judge(&(polite + &line(1_500_500_000, "/private/p9.html")));
    assert_eq!(output.status.code(), Some(1));
    let verdict = &lines(&output)[0];
    assert_eq!(verdict["overlaps_by_host"], 1);
    assert_eq!(verdict["short_gaps_by_address"], 1);
    assert_eq!(verdict["disallowed"], 1);
    assert_eq!(judge("nonsense\n").status.code(), Some(2));
}

#[test]
fn load_counts_pages() {
    let arguments = [
        "load", "--hosts", "84", "--pages", "5", "--port", "0", "--for", "0",
    ];
    let output = testweb(&arguments);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(lines(&output)[0]["pages"], 0);
}
