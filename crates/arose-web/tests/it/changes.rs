//! Tests of directories that change while they are served.

use std::fs;

use arose_search::{Config, Index, Progress, SearchDir, update};
use serde_json::json;

use crate::server::{Server, dedup, pages, serve_folder, serve_opened, start};

/// A run that is repeated with other input: search, clusters and ratings are updated.
#[test]
fn issue_23_a_repeated_run_is_followed() {
    let server = start(&pages(), None);
    assert!(server.get("/?q=tulip").body.contains("0 documents"));
    let mut others = pages();
    others.truncate(12);
    others.push(json!({ "id": "n", "url": "https://new.example.org/", "text": "a tulip at last" }));
    dedup(server.folder.path(), &others);
    server.wait_for("/?q=tulip", |answer| {
        answer.body.contains("<mark>tulip</mark>")
    });
    let clusters = server.get("/clusters").body;
    assert!(clusters.contains("<h1>1 cluster</h1>"), "{clusters}");
    assert_eq!(server.get("/pair?a=0&b=13").status, 404);
}

/// A crawl that grows.
#[test]
fn issue_23_a_growing_crawl_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, word: &str| {
        fs::write(
            folder.path().join(name),
            crate::documents::archive(&[("http://x.org/", word)]),
        )
        .unwrap();
    };
    write("a.warc", "rose");
    let server = Server {
        address: serve_folder(folder.path(), None),
        out: folder.path().to_owned(),
        folder: tempfile::tempdir().unwrap(),
    };
    assert!(server.get("/?q=tulip").body.contains("0 documents"));
    write("b.warc", "tulip");
    server.wait_for("/?q=tulip", |answer| {
        answer.body.contains("<mark>tulip</mark>")
    });
    // Empty tabs are not shown, and appear when there is something to show.
    assert!(!server.get("/").body.contains("href=\"/crawl\""));
    fs::write(
        folder.path().join("statistics.jsonl"),
        "{\"seconds\": 1, \"pages\": 2}\n",
    )
    .unwrap();
    assert!(server.get("/").body.contains("href=\"/crawl\""));
    assert!(!server.get("/").body.contains("href=\"/clusters\""));
}

/// An archive that has grown after it was indexed and before it is served: indexing a large crawl
/// takes minutes.
#[test]
fn issue_23_growth_while_it_was_indexed_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.warc");
    let pages = [("http://x.org/1", "rose"), ("http://x.org/2", "tulip")];
    fs::write(&file, crate::documents::archive(&pages[..1])).unwrap();
    let opened = SearchDir::open(folder.path()).unwrap();
    update(&opened, &Config::default(), &Progress::default()).unwrap();
    let index = Index::open(&opened).unwrap();
    fs::write(&file, crate::documents::archive(&pages)).unwrap();
    let server = Server {
        address: serve_opened(opened, index, None),
        out: folder.path().to_owned(),
        folder: tempfile::tempdir().unwrap(),
    };
    server.wait_for("/?q=tulip", |answer| {
        answer.body.contains("<mark>tulip</mark>")
    });
}

/// A directory that cannot be read for a while: the old pages stay, and say so.
#[test]
fn issue_23_trouble_is_told_and_passes() {
    let server = start(&pages(), None);
    let summary = fs::read(server.out.join("summary.json")).unwrap();
    fs::write(server.out.join("summary.json"), "{").unwrap();
    let told = server.wait_for("/?q=rose", |answer| {
        answer.body.contains("cannot be read now")
    });
    assert!(
        told.body.contains("17 documents in 4 results"),
        "{}",
        told.body
    );
    fs::write(server.out.join("summary.json"), summary).unwrap();
    server.wait_for("/?q=rose", |answer| {
        !answer.body.contains("cannot be read now")
    });
}
