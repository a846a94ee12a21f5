//! Tests of the archive of a crawl in other tools: pywb serves it, warcio and cdxj-indexer agree.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// Replays a crawl with the script next to these tests, if pywb is installed.
fn replay(crawl: &Path, index: &Path, root: &Path) -> Option<Value> {
    let Ok(python) = std::env::var("AROSE_PYWB_PYTHON") else {
        eprintln!("SKIPPED: AROSE_PYWB_PYTHON names no interpreter with pywb and cdxj-indexer");
        return None;
    };
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/replay.py");
    let output = Command::new(python)
        .arg(script)
        .args([crawl, index, root])
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// Every page of the demo crawl is replayed with its own payload: pages, redirects, exact
/// duplicates and near duplicates.
#[test]
fn pywb_serves_every_page_of_the_demo() {
    let folder = tempfile::tempdir().unwrap();
    let demo = folder.path().join("demo");
    let arose = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_arose"));
        command.stdin(Stdio::null());
        command
    };
    let demo_arguments = ["demo", "--hosts", "20", "-o"];
    let output = arose().args(demo_arguments).arg(&demo).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    // It ends with a report to open and the command that serves the rest.
    let text = String::from_utf8(output.stdout).unwrap();
    let dedup = demo.join("dedup");
    let report = dedup.join("report.html");
    assert!(
        text.contains(&format!("\nreport: {}\n", report.display())),
        "{text}"
    );
    assert!(
        text.ends_with(&format!("arose serve {}\n", dedup.display())),
        "{text}"
    );
    assert!(report.is_file());
    let output = arose().args(["crawl", "export"]).arg(&demo).output();
    let index = folder.path().join("index.cdxj");
    let lines = output.unwrap().stdout;
    let text = String::from_utf8(lines).unwrap();
    std::fs::write(&index, &text).unwrap();
    let n_lines = text.lines().count();
    assert!(n_lines > 300, "{n_lines}");
    assert!(text.contains("\"warc/revisit\""));
    let Some(replayed) = replay(&demo, &index, folder.path()) else {
        return;
    };
    assert_eq!(replayed["problems"], serde_json::json!([]), "{replayed}");
    assert_eq!(
        (&replayed["lines"], &replayed["served"]),
        (&n_lines.into(), &n_lines.into())
    );
    if std::env::var_os("AROSE_PLAYWRIGHT").is_some() {
        let browser = &replayed["browser"];
        assert_eq!(browser["shown"], browser["pages"], "{replayed}");
    }
}

/// Debian documentation, crawled with the files that its pages need: pywb serves every record, and
/// a real browser shows every page with its styles.
#[test]
fn issue_22_documentation_replays_with_its_styles() {
    let root = Path::new("/usr/share/doc/valgrind/html");
    if !root.is_dir() {
        eprintln!("SKIPPED: no documentation of valgrind; `.ci/run` installs it");
        return;
    }
    let server = testweb::Server::start(testweb::Config {
        folders: vec![testweb::Folder {
            host: "docs.test".to_owned(),
            path: root.to_owned(),
        }],
        ..testweb::Config::plain(1)
    });
    let server = server.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("docs");
    let seed = server.web.origin("docs.test") + "/index.html";
    let arose = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_arose"));
        command.stdin(Stdio::null());
        command
    };
    let mut command = arose();
    command.args([
        "crawl",
        &seed,
        "--requisites",
        "--allow-private",
        "--delay",
        "0",
    ]);
    command.args([
        "--scope",
        "host",
        "--dns-server",
        &server.dns.to_string(),
        "-o",
    ]);
    let output = command.arg(&dir).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    server.stop().unwrap();
    let output = arose()
        .args(["crawl", "export"])
        .arg(&dir)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("vg_basic.css"), "{text}");
    let index = folder.path().join("index.cdxj");
    std::fs::write(&index, &text).unwrap();
    let Some(replayed) = replay(&dir, &index, folder.path()) else {
        return;
    };
    assert_eq!(replayed["problems"], serde_json::json!([]), "{replayed}");
    assert_eq!(replayed["lines"], replayed["served"]);
    if std::env::var_os("AROSE_PLAYWRIGHT").is_some() {
        let browser = &replayed["browser"];
        assert_eq!(browser["shown"], browser["pages"], "{replayed}");
        assert!(browser["styled"].as_u64() > Some(10), "{replayed}");
    }
}
