//! A real browser visits every page; see `tests/browser.mjs`.
//!
//! It needs Node, `playwright-core` (the variable `AROSE_PLAYWRIGHT` names it) and Chromium, all of
//! which `.ci/run` installs. Where they are missing the test says so and passes.

use std::path::Path;
use std::process::Command;

use crate::server::{pages, start};

#[test]
fn a_browser_visits_every_page() {
    let Ok(module) = std::env::var("AROSE_PLAYWRIGHT") else {
        eprintln!("SKIPPED: no browser; `.ci/run` installs one and sets AROSE_PLAYWRIGHT");
        return;
    };
    let server = start(&pages(), None);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser.mjs");
    let mut visit = Command::new("node");
    visit
        .arg(script)
        .arg(format!("http://{}", server.address))
        .arg(&server.out);
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
