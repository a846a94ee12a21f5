//! The archive of a crawl in other tools: pywb serves it, warcio and cdxj-indexer agree with it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// Replays a crawl by the script beside these tests, where pywb is installed.
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
}
