//! JSON Lines on standard input: `arose url` and `arose robots` for scripts.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

fn ask(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_arose"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    child.wait_with_output().unwrap()
}

fn rows(output: &Output) -> Vec<Value> {
    let text = std::str::from_utf8(&output.stdout).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn urls() {
    let input = concat!(
        r#"{"url": "http://ABC.com/%7Ea?"}"#,
        "\n\n",
        r#"{"url": "../b", "base": "http://abc.com/x/y", "note": 1}"#,
        "\n",
        r#"{"url": "../b", "base": null}"#,
        "\n",
        r#"{"url": "http://h/\ud800"}"#,
    );
    for arguments in [&["url", "--json"][..], &["url", "--json", "-"]] {
        let output = ask(arguments, input);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let rows = rows(&output);
        assert_eq!(
            rows[0],
            json!({
                "url": "http://abc.com/~a", "host": "abc.com", "site": "abc.com",
                "fingerprint": rows[0]["fingerprint"], "approved": true, "reason": null,
            })
        );
        assert_eq!(rows[0]["fingerprint"].as_str().unwrap().len(), 32);
        assert_eq!(rows[1]["url"], "http://abc.com/b");
        assert_eq!(
            rows[2],
            json!({
                "url": null, "host": null, "site": null, "fingerprint": null,
                "approved": false, "reason": "invalid",
            })
        );
        assert_eq!(rows[3]["url"], "http://h/%EF%BF%BD");
        assert_eq!(rows.len(), 4);
    }
}

#[test]
fn robots() {
    let input = concat!(
        r#"{"case": "x", "robots_txt": "User-agent: a\nDisallow: /p\nCrawl-delay: 2.5", "agent": "a", "url": "http://h/p"}"#,
        "\n",
        r#"{"robots_base64": "VXNlci1hZ2VudDogKgpSZXF1ZXN0LXJhdGU6IDEvNQpWaXNpdC10aW1lOiAwNjAwLTA4NDUK", "agent": "a", "url": ""}"#,
        "\n",
        r#"{"robots_txt": "User-agent: b\nDisallow: /", "url": "/"}"#,
    );
    let output = ask(&["robots", "--json", "--agent", "b"], input);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let expected = [
        json!({"allowed": false, "rule": "Disallow: /p", "line": 2, "crawl_delay": 2.5,
               "request_rate": null, "visit_time": null}),
        json!({"allowed": true, "rule": null, "line": null, "crawl_delay": null,
               "request_rate": "1/5", "visit_time": "0600-0845"}),
        json!({"allowed": false, "rule": "Disallow: /", "line": 2, "crawl_delay": null,
               "request_rate": null, "visit_time": null}),
    ];
    assert_eq!(rows(&output), expected);
}

/// An invalid line is reported with its number and the remedy, and has an output line in its place.
/// The other lines are still processed.
#[test]
fn bad_lines() {
    let input = "http://h/\n[1]\n{\"url\": 5}\n{}\n{\"url\": \"http://h/\"}\n";
    let output = ask(&["url", "--json"], input);
    assert_eq!(output.status.code(), Some(2));
    let rows = rows(&output);
    assert_eq!(rows.len(), 5);
    assert_eq!(rows[4]["approved"], true);
    let errors = std::str::from_utf8(&output.stderr).unwrap();
    let errors: Vec<&str> = errors.lines().collect();
    assert_eq!(errors.len(), 5);
    for (number, error) in errors[..4].iter().enumerate() {
        assert!(
            error.starts_with(&format!("arose: line {}: ", number + 1)),
            "{error}"
        );
        assert!(error.contains("expected "), "{error}");
        assert_eq!(rows[number]["error"], error["arose: ".len()..]);
    }
    assert_eq!(errors[4], "arose: 4 of 5 lines are invalid");
}

#[test]
fn many_bad_lines_are_counted() {
    let output = ask(&["url"], &"?\n".repeat(1000));
    assert_eq!(output.status.code(), Some(2));
    let errors = std::str::from_utf8(&output.stderr).unwrap();
    let last: Vec<&str> = errors.lines().skip(20).collect();
    assert_eq!(
        last,
        [
            "arose: further invalid lines are only counted",
            "arose: 1000 of 1000 lines are invalid"
        ]
    );
}

#[test]
fn bad_questions_about_robots() {
    for (line, message) in [
        (
            r#"{"agent": "a", "url": "/"}"#,
            "expected exactly one of the fields \"robots_txt\" and",
        ),
        (
            r#"{"robots_txt": "", "robots_base64": "", "agent": "a", "url": "/"}"#,
            "expected exactly one of the fields",
        ),
        (
            r#"{"robots_base64": "?", "agent": "a", "url": "/"}"#,
            "the field \"robots_base64\" is not valid base64",
        ),
        (
            r#"{"robots_txt": "", "url": "/"}"#,
            "no field \"agent\"; add it",
        ),
        (
            r#"{"robots_txt": "", "agent": "a"}"#,
            "no field \"url\"; add",
        ),
        (
            r#"{"robots_txt": "", "agent": "a", "url": "ftp://h/"}"#,
            "\"ftp://h/\" is not a URL that can be fetched",
        ),
    ] {
        let output = ask(&["robots", "--json"], line);
        assert_eq!(output.status.code(), Some(2));
        let errors = std::str::from_utf8(&output.stderr).unwrap();
        assert!(
            errors.starts_with(&format!("arose: line 1: {message}")),
            "{errors}"
        );
    }
}

#[test]
fn nothing_asked() {
    for command in ["url", "robots"] {
        let output = ask(&[command, "--json"], "\n");
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(output.stdout.is_empty() && output.stderr.is_empty());
    }
}
