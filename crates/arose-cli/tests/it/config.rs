//! Tests of configuration files, through the command line.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Runs the command in a directory, with a separate configuration directory.
fn arose(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_arose"));
    command.args(arguments).current_dir(folder);
    command.env("XDG_CONFIG_HOME", folder.join("user"));
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let lines = [
        r#"{"id": "a", "text": "a rose is a rose is a rose is a rose"}"#,
        r#"{"id": "b", "text": "a rose is a rose is a rose is a rose"}"#,
    ];
    fs::write(folder.path().join("in.jsonl"), lines.join("\n")).unwrap();
    fs::create_dir_all(folder.path().join("user/arose")).unwrap();
    folder
}

#[test]
fn issue_32_files_set_defaults_and_the_command_line_wins() {
    let folder = folder();
    let path = folder.path();
    let user = "[dedup]\nkeep = 'longest'\nthreshold = 0.9\n";
    fs::write(path.join("user/arose/arose.toml"), user).unwrap();
    fs::write(path.join("arose.toml"), "[dedup]\nthreshold = 0.7\n").unwrap();
    let run = |options: &[&str]| -> serde_json::Value {
        let base = ["dedup", "in.jsonl", "-o", "out", "--force", "--json"];
        let output = arose(path, &[&base, options].concat());
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()["settings"].clone()
    };
    let settings = run(&[]);
    assert_eq!(settings["threshold"], 0.7, "{settings}");
    assert_eq!(settings["keep"], "longest", "{settings}");
    let settings = run(&["--threshold", "0.6", "--keep", "first"]);
    assert_eq!(settings["threshold"], 0.6, "{settings}");
    assert_eq!(settings["keep"], "first", "{settings}");
    assert_eq!(
        run(&["--no-config", "--policy", "jaccard"])["threshold"],
        0.8
    );

    let shown = text(&arose(path, &["config"]).stdout);
    assert!(
        shown.contains("threshold  0.7      arose.toml:2"),
        "{shown}"
    );
    assert!(shown.contains("user/arose/arose.toml:2"), "{shown}");
    let shown = text(&arose(path, &["config", "dedup"]).stdout);
    assert!(shown.contains("recall"), "{shown}");
    assert!(
        shown
            .lines()
            .any(|line| line.contains("policy") && line.ends_with("default"))
    );
    let rows = text(&arose(path, &["config", "--json"]).stdout);
    assert_eq!(rows.lines().count(), 2, "{rows}");
}

#[test]
fn issue_32_a_bad_file_is_an_error_except_for_help() {
    let folder = folder();
    let path = folder.path();
    fs::write(path.join("arose.toml"), "[dedup]\ntreshold = 0.7\n").unwrap();
    let output = arose(path, &["dedup", "in.jsonl", "-o", "out"]);
    assert_eq!(output.status.code(), Some(2));
    let error = text(&output.stderr);
    let expected =
        "arose: arose.toml:2: unknown key `treshold`; `arose dedup --help` lists the options\n";
    assert_eq!(error, expected);
    assert!(!path.join("out").exists());
    for good in [
        &["help", "dedup"][..],
        &["dedup", "--help"],
        &["completions", "bash"],
        &["--no-config", "dedup", "in.jsonl", "-o", "out"],
    ] {
        assert!(arose(path, good).status.success(), "{good:?}");
    }
}

#[test]
fn issue_32_errors_name_what_files_set() {
    let folder = folder();
    let path = folder.path();
    fs::write(path.join("arose.toml"), "[dedup]\nthreshold = 0.7\n").unwrap();
    let output = arose(
        path,
        &["dedup", "in.jsonl", "-o", "out", "--policy", "exact"],
    );
    assert_eq!(output.status.code(), Some(2));
    let error = text(&output.stderr);
    assert!(
        error.contains("set by files: --threshold 0.7 (arose.toml:2)"),
        "{error}"
    );
}

#[test]
fn issue_32_quiet_verbose_and_colours() {
    let folder = folder();
    let path = folder.path();
    let run = ["dedup", "in.jsonl", "-o", "out", "--progress", "lines"];
    assert_eq!(text(&arose(path, &run).stderr), "");
    let again = text(&arose(path, &run).stderr);
    let expected = "arose: the run in `out` was already complete; --force starts over\n";
    assert_eq!(again, expected);
    let quiet = arose(path, &[&run[..], &["-q"]].concat());
    assert_eq!(text(&quiet.stderr), "");
    assert!(text(&quiet.stdout).contains("exact duplicates"));
    let verbose = text(&arose(path, &[&run[..], &["-v"]].concat()).stderr);
    assert!(
        verbose.contains("probability of finding a pair"),
        "{verbose}"
    );
    let plain = arose(path, &["--help", "--color", "never"]);
    let colourful = arose(path, &["--help", "--color=always"]);
    assert!(!text(&plain.stdout).contains('\x1b'));
    assert!(text(&colourful.stdout).contains('\x1b'));
}

#[test]
fn issue_32_help_is_short_and_topics_are_long() {
    let folder = folder();
    let path = folder.path();
    let short = text(&arose(path, &["dedup", "--help"]).stdout);
    let long = text(&arose(path, &["help", "dedup"]).stdout);
    assert!(
        short.lines().count() * 2 < long.lines().count() * 3,
        "{short}"
    );
    assert!(short.contains("--recall") && long.contains("--recall"));
    let policies = text(&arose(path, &["help", "policies"]).stdout);
    for name in ["jaccard", "site-union", "contained"] {
        assert!(policies.contains(name), "{policies}");
    }
    let output = arose(path, &["help", "roses"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("no command or topic `roses`"));
}
