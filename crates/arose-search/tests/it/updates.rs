//! Indexes that are brought up to date.

use std::fs;
use std::sync::atomic::Ordering;

use arose_search::{Config, Error, Folder, Index, Progress, Query, Request, Updated, update};

use crate::support::{Page, dedup, indexed, updated, write_archive, write_archive_of, write_pages};

fn page(number: usize, text: &str) -> Page {
    Page {
        url: format!("https://x.org/{number}"),
        text: text.to_owned(),
        ..Page::default()
    }
}

fn texts(n: usize) -> Vec<Page> {
    (0..n)
        .map(|i| page(i, &format!("number{i} of some pages that differ {i} times")))
        .collect()
}

#[track_caller]
fn check(updated: Updated, n_documents: u64, n_added: u64, n_removed: u64) {
    let counts = (updated.n_documents, updated.n_added, updated.n_removed);
    assert_eq!(counts, (n_documents, n_added, n_removed));
}

#[test]
fn only_what_has_changed_is_indexed() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("pages.jsonl"), folder.path().join("out"));
    let mut pages = texts(50);
    write_pages(&input, &pages);
    dedup(&input, &out);
    check(updated(&out).unwrap(), 50, 50, 0);
    check(updated(&out).unwrap(), 50, 0, 0);
    // The same run again has another summary but the same rows.
    dedup(&input, &out);
    check(updated(&out).unwrap(), 50, 0, 0);
    pages.push(page(50, "one more"));
    pages[49].text = "another text for the last one".to_owned();
    write_pages(&input, &pages);
    dedup(&input, &out);
    let count = |text: &str| indexed(&out).count(&Query::words(text)).unwrap();
    assert_eq!(
        (count("another"), count("number49"), count("number48")),
        (1, 0, 1)
    );
    let copy = pages[0].clone();
    pages.push(copy);
    write_pages(&input, &pages);
    dedup(&input, &out);
    let results = indexed(&out)
        .search(&Query::words("number0"), &Request::default())
        .unwrap();
    assert_eq!((results.n_documents, results.n_results), (2, 1));
}

#[test]
fn archives_grow() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    write_archive(
        &at("a.warc"),
        &[("http://x.org/1", "red rose"), ("http://x.org/2", "thorn")],
    );
    check(updated(folder.path()).unwrap(), 2, 2, 0);
    check(updated(folder.path()).unwrap(), 2, 0, 0);
    write_archive(&at("b.warc"), &[("http://y.org/1", "white rose")]);
    check(updated(folder.path()).unwrap(), 3, 1, 0);
    let index = indexed(folder.path());
    assert_eq!(index.count(&Query::words("rose")).unwrap(), 2);
    let results = index
        .search(&"site:y.org".parse().unwrap(), &Request::default())
        .unwrap();
    assert_eq!(results.hits[0].title.as_deref(), Some("white rose"));
    fs::remove_file(at("a.warc")).unwrap();
    check(updated(folder.path()).unwrap(), 1, 1, 3);
    assert_eq!(
        indexed(folder.path()).count(&Query::words("rose")).unwrap(),
        1
    );
}

/// Whoever reads sees the old rows until the new ones are complete.
#[test]
fn readers_see_all_or_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("pages.jsonl"), folder.path().join("out"));
    write_pages(&input, &texts(30));
    dedup(&input, &out);
    let index = indexed(&out);
    write_pages(&input, &texts(60));
    dedup(&input, &out);
    let stopped = Progress::default();
    stopped.stop.store(true, Ordering::Relaxed);
    let opened = Folder::open(&out).unwrap();
    let result = update(&opened, &Config::default(), &stopped);
    assert!(matches!(result, Err(Error::Stopped)));
    index.reload().unwrap();
    assert_eq!(index.n_documents(), 30);
    assert_eq!(Index::open(&opened).unwrap().n_documents(), 30);
    updated(&out).unwrap();
    assert_eq!(index.n_documents(), 30);
    index.reload().unwrap();
    assert_eq!(index.n_documents(), 60);
}

#[test]
fn a_first_index_that_was_stopped_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("pages.jsonl"), folder.path().join("out"));
    write_pages(&input, &texts(30));
    dedup(&input, &out);
    let stopped = Progress::default();
    stopped.stop.store(true, Ordering::Relaxed);
    let opened = Folder::open(&out).unwrap();
    assert!(update(&opened, &Config::default(), &stopped).is_err());
    assert!(matches!(Index::open(&opened), Err(Error::NoIndex { .. })));
    check(updated(&out).unwrap(), 30, 30, 0);
}

/// Another title, URL, language or time is another row, whatever the text.
#[test]
fn issue_23_edits_beside_the_text_reach_the_index() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("pages.jsonl"), folder.path().join("out"));
    let mut pages = texts(20);
    let edits: [fn(&mut Page); 4] = [
        |page| page.title = Some("an edited heading".to_owned()),
        |page| page.url = "https://moved.org/".to_owned(),
        |page| page.language = Some("de".to_owned()),
        |page| page.time = Some(86_400),
    ];
    write_pages(&input, &pages);
    dedup(&input, &out);
    check(updated(&out).unwrap(), 20, 20, 0);
    for (i, edit) in edits.into_iter().enumerate() {
        edit(&mut pages[i]);
        write_pages(&input, &pages);
        dedup(&input, &out);
        let changes = updated(&out).unwrap();
        assert!(
            changes.n_added >= 1 && changes.n_added == changes.n_removed,
            "{changes:?}"
        );
        check(updated(&out).unwrap(), 20, 0, 0);
    }
    let index = indexed(&out);
    for query in ["title:edited", "site:moved.org", "lang:de", "year:1970"] {
        assert_eq!(index.count(&query.parse().unwrap()).unwrap(), 1, "{query}");
    }
}

/// Where a search is started from does not matter: sources are where the run found them.
#[test]
fn issue_23_sources_are_found_from_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("pages.jsonl"), folder.path().join("out"));
    write_pages(&input, &texts(5));
    dedup(&input, &out);
    // What a run in this directory would have written.
    let summary = fs::read_to_string(out.join("summary.json")).unwrap();
    let mut summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    assert!(summary["directory"].is_string(), "{summary}");
    summary["directory"] = "..".into();
    fs::write(out.join("summary.json"), summary.to_string()).unwrap();
    assert_eq!(updated(&out).unwrap().n_without_text, 0);
    assert_eq!(indexed(&out).count(&Query::words("number3")).unwrap(), 1);
}

/// The crawler says which page another one duplicates, and both are one result.
#[test]
fn issue_23_duplicates_of_a_crawl_are_collapsed() {
    let folder = tempfile::tempdir().unwrap();
    let original = [
        ("http://x.org/1", "red rose"),
        ("http://x.org/2", "white rose"),
    ];
    write_archive(&folder.path().join("a.warc"), &original);
    check(updated(folder.path()).unwrap(), 2, 2, 0);
    let duplicates = [
        ("http://y.org/1", "red rose again", Some("http://x.org/1")),
        (
            "http://y.org/2",
            "a rose of its own",
            Some("http://gone.org/"),
        ),
    ];
    write_archive_of(&folder.path().join("b.warc"), &duplicates);
    check(updated(folder.path()).unwrap(), 4, 2, 0);
    let index = indexed(folder.path());
    let results = index
        .search(&Query::words("rose"), &Request::default())
        .unwrap();
    assert_eq!((results.n_documents, results.n_results), (4, 3));
    let first = results.hits.iter().find(|hit| hit.n_alike == 1).unwrap();
    assert_eq!(
        (first.url.as_deref(), first.kept),
        (Some("http://x.org/1"), true)
    );
    let again = index
        .search(&Query::words("again"), &Request::default())
        .unwrap();
    assert_eq!(
        (again.hits[0].cluster, again.hits[0].kept),
        (first.doc, false)
    );
}
