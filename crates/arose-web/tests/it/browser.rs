//! A real browser visits every page; see `tests/browser.mjs`.
//!
//! It needs Node, `playwright-core` (the variable `AROSE_PLAYWRIGHT` names it) and Chromium, all of
//! which `.ci/run` installs. Where they are missing the test says so and passes.

use std::path::Path;
use std::process::Command;

use crate::documents::archive;
use crate::server::{pages, serve_folder, start};

#[test]
fn a_browser_visits_every_page() {
    let Ok(module) = std::env::var("AROSE_PLAYWRIGHT") else {
        eprintln!("SKIPPED: no browser; `.ci/run` installs one and sets AROSE_PLAYWRIGHT");
        return;
    };
    let mut lines = pages();
    // Two with differences far from each other, and two with differences near each other.
    for (id, every) in [("a", 97), ("b", 97), ("c", 20), ("d", 20)] {
        let word = |i: usize| match i % every {
            7 => format!("{id}{i} "),
            _ => format!("w{i} "),
        };
        let text: String = (0..4000).map(word).collect();
        lines.push(
            serde_json::json!({ "id": id, "url": format!("https://long.org/{id}"), "text": text }),
        );
    }
    let server = start(&lines, None);
    let study = serde_json::json!({ "engines": ["a", "b"], "findings": [{ "method": "overlap",
        "figures": [{ "name": "share of a in b", "value": 0.405, "interval": [0.31, 0.52], "n_samples": 400 }],
        "warnings": ["b changed during the study"],
        "biases": [{ "name": "length", "effect": "long pages are found more often" }] }] });
    std::fs::create_dir(server.out.join("study")).unwrap();
    std::fs::write(server.out.join("study/estimates.json"), study.to_string()).unwrap();
    let crawl = tempfile::tempdir().unwrap();
    let archived = [("http://x.org/1", "rose"), ("http://y.org/2", "tulip")];
    std::fs::write(crawl.path().join("a.warc"), archive(&archived)).unwrap();
    let crawl_address = serve_folder(crawl.path(), None);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser.mjs");
    let mut visit = Command::new("node");
    visit
        .arg(script)
        .arg(format!("http://{}", server.address))
        .arg(&server.out)
        .arg(format!("http://{crawl_address}"));
    if let Ok(folder) = std::env::var("AROSE_SCREENSHOTS") {
        visit.arg(folder);
    }
    let output = visit.env("AROSE_PLAYWRIGHT", module).output().unwrap();
    assert!(
        output.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}
