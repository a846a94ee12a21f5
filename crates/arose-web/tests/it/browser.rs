//! A real browser visits every page; see `tests/browser.mjs`.
//!
//! It needs Node, `playwright-core` (set in `AROSE_PLAYWRIGHT`) and Chromium, all of which
//! `.ci/run` installs. If they are missing, the test says so and passes.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use arose_crawl::{Control, Seeds, Settings};
use arose_dedup::passages::PassagesConfig;
use arose_dedup::{Progress, Start};

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
    // Reports are pages, too.
    let inputs = [server.folder.path().join("pages.jsonl")];
    let passages = server.folder.path().join("passages");
    let config = PassagesConfig::default();
    let progress = Progress::of_passages();
    arose_dedup::passages::run(&inputs, &config, &passages, Start::Anew, &progress).unwrap();
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

/// The buttons of a running crawl: it pauses, resumes, and applies new settings, or says why not.
#[test]
fn issue_22_a_browser_gives_orders_to_a_crawl() {
    let Ok(module) = std::env::var("AROSE_PLAYWRIGHT") else {
        eprintln!("SKIPPED: no browser; `.ci/run` installs one and sets AROSE_PLAYWRIGHT");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let (control, path) = (Arc::new(Control::default()), folder.path().to_owned());
    let mut settings = Settings::default();
    settings.network.allow_private = true;
    settings.polite.delay = 0.05;
    settings.polite.address_delay = 0.05;
    settings.stop.patience = 1e6;
    let seeds = Seeds {
        pages: vec![format!("http://{}/0", endless_site())],
        ..Seeds::default()
    };
    let crawl = std::thread::spawn({
        let (control, path) = (Arc::clone(&control), path.clone());
        move || arose_crawl::crawl(&path, settings, seeds, &control)
    });
    // The page of a crawl shows its statistics, which come after its first pages.
    let statistics = path.join("statistics.jsonl");
    let is_shown = || std::fs::metadata(&statistics).is_ok_and(|file| file.len() > 0);
    while arose_crawl::status(&path).map_or(0, |status| status.n_archive_bytes) == 0 || !is_shown()
    {
        assert!(!crawl.is_finished(), "{:?}", crawl.join());
        std::thread::sleep(Duration::from_millis(50));
    }
    let address = serve_folder(&path, None);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/orders.mjs");
    let mut visit = Command::new("node");
    visit
        .arg(script)
        .arg(format!("http://{address}"))
        .arg(&path);
    if let Ok(folder) = std::env::var("AROSE_SCREENSHOTS") {
        visit.arg(folder);
    }
    let output = visit.env("AROSE_PLAYWRIGHT", module).output().unwrap();
    control.stop();
    let summary = crawl.join().unwrap().unwrap();
    assert!(
        output.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(summary.n_fetched > 0);
}

/// A site with endless pages: each links to the next two.
fn endless_site() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer(&stream));
        }
    });
    address
}

fn answer(stream: &TcpStream) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream).lines();
    while let Some(Ok(request)) = lines.next() {
        while lines
            .next()
            .is_some_and(|line| line.is_ok_and(|line| !line.is_empty()))
        {}
        let path = request.split(' ').nth(1).unwrap_or_default();
        let (status, body) = match path.trim_start_matches('/').parse::<u64>() {
            Ok(n) => {
                let links = [2 * n + 1, 2 * n + 2].map(|n| format!("<a href=/{n}>{n}</a>"));
                let body = format!("<title>Page {n}</title><p>{}</p>", links.join(" "));
                ("200 OK", body)
            }
            Err(_) => ("404 Not Found", String::new()),
        };
        let mut stream = stream;
        write!(
            stream,
            "HTTP/1.1 {status}\r\ncontent-type: text/html\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )?;
    }
    Ok(())
}
