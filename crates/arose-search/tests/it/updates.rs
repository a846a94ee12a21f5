//! Tests of updates of an index.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arose_search::{
    Collapse, Config, Error, GoOn, Index, Progress, Query, Request, SearchDir, Updated, Versions,
    update,
};

use crate::support::{
    Page, add_capture, add_revisit, dedup, dedup_by, indexed, n_matching, query, updated,
    write_archive, write_archive_of, write_pages,
};

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
    let count = |text: &str| n_matching(&indexed(&out), &query(text));
    assert_eq!(
        (count("another"), count("number49"), count("number48")),
        (1, 0, 1)
    );
    let copy = pages[0].clone();
    pages.push(copy);
    write_pages(&input, &pages);
    dedup(&input, &out);
    let results = indexed(&out)
        .search(&query("number0"), &Request::default())
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
    assert_eq!(n_matching(&index, &query("rose")), 2);
    let results = index
        .search(&"site:y.org".parse().unwrap(), &Request::default())
        .unwrap();
    assert_eq!(results.hits[0].title.as_deref(), Some("white rose"));
    fs::remove_file(at("a.warc")).unwrap();
    check(updated(folder.path()).unwrap(), 1, 1, 3);
    assert_eq!(n_matching(&indexed(folder.path()), &query("rose")), 1);
}

/// Readers see the old rows until the new ones are complete.
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
    let opened = SearchDir::open(&out).unwrap();
    let result = update(&opened, &Config::default(), &stopped);
    assert!(matches!(result, Err(Error::Stopped)));
    assert_eq!(index.n_documents(), 30);
    assert_eq!(Index::open(&opened).unwrap().n_documents(), 30);
    updated(&out).unwrap();
    assert_eq!(index.n_documents(), 30);
    assert_eq!(Index::open(&opened).unwrap().n_documents(), 60);
}

#[test]
fn a_first_index_that_was_stopped_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("pages.jsonl"), folder.path().join("out"));
    write_pages(&input, &texts(30));
    dedup(&input, &out);
    let stopped = Progress::default();
    stopped.stop.store(true, Ordering::Relaxed);
    let opened = SearchDir::open(&out).unwrap();
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
        assert_eq!(n_matching(&index, &query.parse().unwrap()), 1, "{query}");
    }
}

/// Everyone who can read the directory can read its index: its files are not private to their
/// owner.
#[cfg(unix)]
#[test]
fn issue_23_an_index_has_the_usual_permissions() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("pages.jsonl"), folder.path().join("out"));
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for n in [5, 6] {
        write_pages(&input, &texts(n));
        dedup(&input, &out);
        check(
            updated(&out).unwrap(),
            n as u64,
            if n == 5 { 5 } else { 1 },
            0,
        );
        let index = SearchDir::open(&out).unwrap().index_path();
        for file in fs::read_dir(index).unwrap() {
            let file = file.unwrap().path();
            assert_eq!(mode(&file), mode(&input), "{}", file.display());
        }
    }
}

/// The crawler recorded a page as a duplicate of another, and both are one result.
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
    let results = index.search(&query("rose"), &Request::default()).unwrap();
    assert_eq!((results.n_documents, results.n_results), (4, 3));
    let first = results.hits.iter().find(|hit| hit.n_near == 1).unwrap();
    assert_eq!(
        (first.url.as_deref(), first.kept),
        (Some("http://x.org/1"), true)
    );
    let again = index.search(&query("again"), &Request::default()).unwrap();
    assert_eq!(
        (again.hits[0].cluster, again.hits[0].kept),
        (first.doc, false)
    );
}

const SAME: &str = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest";
const NEAR: &str = "urn:arose:revisit:near-duplicate";

/// A page that a crawl stored as equal to another one is found by its words and by its URL, and
/// counted, even if the other one was indexed long before.
#[test]
fn issue_23_exact_duplicates_of_a_crawl_are_found_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let first = folder.path().join("a.warc");
    write_archive(
        &first,
        &[("http://x.org/1", "red rose"), ("http://x.org/2", "thorn")],
    );
    add_revisit(&first, "http://mirror.org/copy", SAME, "http://x.org/1");
    check(updated(folder.path()).unwrap(), 3, 3, 0);
    let second = folder.path().join("b.warc");
    write_archive_of(
        &second,
        &[("http://y.org/", "a red rose", Some("http://x.org/1"))],
    );
    add_revisit(&second, "http://late.org/rose", SAME, "http://x.org/1");
    // A second visit to a page is not another page, whether it was the original or a duplicate.
    add_revisit(&second, "http://x.org/1", SAME, "http://x.org/1");
    add_revisit(&second, "http://mirror.org/copy", SAME, "http://x.org/1");
    check(updated(folder.path()).unwrap(), 5, 2, 0);
    check(updated(folder.path()).unwrap(), 5, 0, 0);
    let index = indexed(folder.path());
    let ask = |query: &str| {
        let query: Query = query.parse().unwrap();
        index.search(&query, &Request::default()).unwrap()
    };
    let all = ask("rose");
    assert_eq!((all.n_documents, all.n_results), (4, 1));
    let hit = &all.hits[0];
    assert_eq!(
        (hit.url.as_deref(), hit.n_exact, hit.n_near, hit.kept),
        (Some("http://x.org/1"), 2, 1, true)
    );
    assert_eq!(
        hit.duplicates().unwrap(),
        "2 exact duplicates and 1 near duplicate"
    );
    for query in [
        "site:late.org",
        "url:late red",
        "\"red rose\" site:late.org",
    ] {
        let found = ask(query);
        let hit = &found.hits[0];
        assert_eq!(
            (found.n_documents, hit.doc, hit.kept),
            (1, 4, false),
            "{query}"
        );
        assert_eq!(hit.url.as_deref(), Some("http://late.org/rose"));
        assert_eq!(hit.title.as_deref(), Some("red rose"));
        assert_eq!(hit.cluster, 0);
    }
    let copy = index.document(2).unwrap().unwrap();
    let original = index.document(0).unwrap().unwrap();
    assert!(copy.is_revisit && !original.is_revisit);
    assert_eq!(
        (copy.title, copy.text.clone()),
        (original.title, original.text)
    );
    let copy = index.document(2).unwrap().unwrap();
    // Its page is in the record of the original.
    let opened = SearchDir::open(folder.path()).unwrap();
    let stored = opened.stored(&copy).unwrap().unwrap();
    assert!(String::from_utf8_lossy(&stored.body).contains("<p>red rose</p>"));
}

/// The URLs and titles, or else texts, of current captures that match, in the order of URLs.
fn current(folder: &std::path::Path, text: &str) -> Vec<(String, String)> {
    let request = Request {
        versions: Versions::Current,
        collapse: Collapse::Nothing,
        ..Request::default()
    };
    let index = indexed(folder);
    let results = index.search(&query(text), &request).unwrap();
    assert_eq!(results.n_documents, results.hits.len() as u64);
    let facets = index.facets_while(&query(text), &request, &(Arc::new(|| true) as GoOn));
    let facets = facets.unwrap().unwrap();
    let n_counted: u64 = facets.years.iter().map(|(_, n)| *n).sum();
    let dated = results.hits.iter().filter(|hit| hit.time.is_some());
    assert_eq!(n_counted, dated.count() as u64, "{text}");
    let mut found: Vec<(String, String)> = results
        .hits
        .iter()
        .map(|hit| {
            let document = index.document(hit.doc).unwrap().unwrap();
            let words = document.title.or(document.text).unwrap();
            (hit.url.clone().unwrap(), words.trim().to_owned())
        })
        .collect();
    found.sort();
    found
}

/// Of several captures of a page, the last one is current, whatever other pages have, and even if
/// the archive has its text in an earlier one. All of them are found if all are wanted.
#[test]
fn issue_25_current_versions_are_known() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (x, y) = ("http://x.org/", "http://y.org/");
    let check = |expected: &[(&str, &str)], n_all: u64| {
        let expected: Vec<(String, String)> = expected
            .iter()
            .map(|(url, text)| ((*url).to_owned(), (*text).to_owned()))
            .collect();
        assert_eq!(current(folder.path(), "rose"), expected);
        assert_eq!(n_matching(&indexed(folder.path()), &query("rose")), n_all);
    };
    add_capture(&at("1.warc"), x, 1, Ok("red rose"));
    add_capture(&at("1.warc"), y, 1, Ok("white rose"));
    check(&[(x, "red rose"), (y, "white rose")], 2);
    add_capture(&at("2.warc"), x, 2, Ok("blue rose"));
    add_capture(&at("2.warc"), y, 2, Err((y, 1)));
    check(&[(x, "blue rose"), (y, "white rose")], 3);
    // The first text again, twice, and one that is that of the other page.
    add_capture(&at("3.warc"), x, 3, Err((x, 1)));
    add_capture(&at("3.warc"), x, 4, Err((x, 1)));
    add_capture(&at("3.warc"), y, 4, Err((x, 2)));
    check(&[(x, "red rose"), (y, "blue rose")], 5);
    add_capture(&at("4.warc"), x, 5, Err((x, 2)));
    add_capture(&at("4.warc"), y, 5, Ok("no flower at all"));
    check(&[(x, "blue rose")], 6);
    add_capture(&at("5.warc"), x, 6, Err((x, 1)));
    check(&[(x, "red rose")], 7);
    // Built at once, the index is the same.
    arose_search::remove(&SearchDir::open(folder.path()).unwrap()).unwrap();
    check(&[(x, "red rose")], 7);
    assert_eq!(current(folder.path(), "flower").len(), 1);
}

/// What a run has dropped as superseded is not current, and documents without a time always are.
#[test]
fn issue_25_current_versions_of_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("pages.jsonl"), folder.path().join("out"));
    let capture = |number, text: &str, time| Page {
        time,
        ..page(number, text)
    };
    let mut pages = vec![
        capture(1, "an old rose in a garden", Some(1_000)),
        capture(1, "a new rose by the wall", Some(2_000)),
        capture(2, "a rose without a date", None),
        capture(2, "another rose without any date", None),
    ];
    for versions in [Versions::All, Versions::Current] {
        write_pages(&input, &pages);
        let config = arose_dedup::Config {
            versions,
            ..arose_dedup::Config::default()
        };
        dedup_by(&input, &out, &config);
        let texts: Vec<String> = current(&out, "rose").into_iter().map(|(_, t)| t).collect();
        assert_eq!(texts.len(), 3, "{texts:?}");
        assert!(!texts.contains(&pages[0].text), "{texts:?}");
        assert_eq!(n_matching(&indexed(&out), &query("rose")), 4);
    }
    pages[0].time = Some(3_000);
    write_pages(&input, &pages);
    dedup(&input, &out);
    let texts: Vec<String> = current(&out, "rose").into_iter().map(|(_, t)| t).collect();
    assert!(
        !texts.contains(&pages[1].text) && texts.len() == 3,
        "{texts:?}"
    );
}

/// Pages that were dropped, or whose original is not in the archives, have no text. They are found
/// by URL, and every update reports their number.
#[test]
fn issue_23_duplicates_without_text_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("a.warc");
    write_archive(&archive, &[("http://x.org/1", "red rose")]);
    add_revisit(&archive, "http://near.org/", NEAR, "http://x.org/1");
    add_revisit(&archive, "http://orphan.org/", SAME, "http://gone.org/");
    for n_added in [3, 0] {
        let changes = updated(folder.path()).unwrap();
        assert_eq!((changes.n_added, changes.n_without_text), (n_added, 2));
    }
    write_archive(
        &folder.path().join("b.warc"),
        &[("http://x.org/2", "thorn")],
    );
    let changes = updated(folder.path()).unwrap();
    assert_eq!((changes.n_added, changes.n_without_text), (1, 2));
    let index = indexed(folder.path());
    assert_eq!(n_matching(&index, &query("rose")), 1);
    let near = index.search(&"site:near.org".parse().unwrap(), &Request::default());
    let near = &near.unwrap().hits[0];
    assert_eq!(
        (near.cluster, near.kept, near.title.as_deref()),
        (0, false, None)
    );
    assert_eq!(n_matching(&index, &"site:orphan.org".parse().unwrap()), 1);
}

/// For a crawl, its archive is searched, but neither its robots.txt files nor a run in it.
#[test]
fn issue_22_a_crawl_is_searched_by_its_archive() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for (directory, url, word) in [
        ("archive", "http://x.org/", "rose"),
        ("robots", "http://x.org/robots.txt", "disallow"),
        ("dedup", "http://x.org/kept", "rose"),
    ] {
        fs::create_dir(at(directory)).unwrap();
        write_archive(&at(directory).join("1.warc"), &[(url, word)]);
    }
    // Any other directory is searched with all its subdirectories.
    check(updated(folder.path()).unwrap(), 3, 3, 0);
    fs::write(at("journal"), "").unwrap();
    check(updated(folder.path()).unwrap(), 1, 0, 2);
    let index = indexed(folder.path());
    assert_eq!(n_matching(&index, &query("disallow")), 0);
    let opened = SearchDir::open(folder.path()).unwrap();
    let document = index.document(0).unwrap().unwrap();
    assert_eq!(document.source, "archive/1.warc");
    assert!(opened.stored(&document).unwrap().is_some());
}
