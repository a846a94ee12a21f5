//! Tests of directories with missing or damaged files.

use std::fs;
use std::path::Path;

use arose_search::{Error, Index, MAX_RESULTS, Request, SearchDir, remove};

use crate::support::{Page, dedup, indexed, n_matching, query, updated, write_pages};

fn pages() -> Vec<Page> {
    (0..40)
        .map(|i| Page {
            url: format!("https://x.org/{i}"),
            text: format!("page {i} is about roses and not about thorns"),
            ..Page::default()
        })
        .collect()
}

fn run(folder: &Path) -> std::path::PathBuf {
    let (input, out) = (folder.join("pages.jsonl"), folder.join("out"));
    write_pages(&input, &pages());
    dedup(&input, &out);
    out
}

#[test]
fn another_kind_of_folder_is_named() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("notes.txt"), "nothing").unwrap();
    let error = SearchDir::open(folder.path()).unwrap_err();
    assert!(matches!(error, Error::OtherKind { .. }));
    assert!(
        error.to_string().contains("contains neither a run"),
        "{error}"
    );
    assert!(SearchDir::open(&folder.path().join("missing")).is_err());
    fs::write(folder.path().join("documents.parquet"), "nonsense").unwrap();
    fs::write(folder.path().join("summary.json"), "{}").unwrap();
    assert!(matches!(
        SearchDir::open(folder.path()),
        Err(Error::Results(_))
    ));
}

/// A missing source is reported by every update, and read as soon as it is back.
#[test]
fn a_source_that_has_gone_is_read_when_it_is_back() {
    let folder = tempfile::tempdir().unwrap();
    let out = run(folder.path());
    let (input, aside) = (
        folder.path().join("pages.jsonl"),
        folder.path().join("aside"),
    );
    fs::rename(&input, &aside).unwrap();
    for n_added in [40, 0] {
        let updated = updated(&out).unwrap();
        assert_eq!((updated.n_documents, updated.n_without_text), (40, 40));
        assert_eq!(updated.n_added, n_added);
        assert_eq!(
            updated.without_text.as_deref(),
            Some(&*input.canonicalize().unwrap_or(input.clone()))
        );
        let index = indexed(&out);
        assert_eq!(n_matching(&index, &query("roses")), 0);
        assert_eq!(n_matching(&index, &"url:7".parse().unwrap()), 1);
    }
    fs::rename(&aside, &input).unwrap();
    let restored = updated(&out).unwrap();
    assert_eq!((restored.n_documents, restored.n_without_text), (40, 0));
    assert_eq!((restored.n_added, restored.n_removed), (40, 40));
    let index = indexed(&out);
    assert_eq!(n_matching(&index, &query("roses")), 40);
    assert_eq!(n_matching(&index, &"url:7".parse().unwrap()), 1);
}

/// A source that was truncated and is restored: missing documents are counted, then found.
#[test]
fn a_source_that_has_changed_gives_what_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let out = run(folder.path());
    let input = folder.path().join("pages.jsonl");
    write_pages(&input, &pages()[..10]);
    let cut = updated(&out).unwrap();
    assert_eq!((cut.n_documents, cut.n_without_text), (40, 30));
    assert_eq!(n_matching(&indexed(&out), &query("roses")), 10);
    write_pages(&input, &pages());
    let restored = updated(&out).unwrap();
    assert_eq!(
        (
            restored.n_without_text,
            restored.n_added,
            restored.n_removed
        ),
        (0, 30, 30)
    );
    assert_eq!(n_matching(&indexed(&out), &query("roses")), 40);
}

/// Every file of an index, truncated, emptied, overwritten or deleted: a result or an error, never
/// a panic.
#[test]
fn a_damaged_index_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let out = run(folder.path());
    let opened = SearchDir::open(&out).unwrap();
    updated(&out).unwrap();
    let files: Vec<_> = fs::read_dir(opened.index_path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| !path.to_string_lossy().ends_with(".lock"))
        .collect();
    assert!(files.len() > 5);
    let mut n_errors = 0;
    for file in &files {
        let bytes = fs::read(file).unwrap();
        let mut flipped = bytes.clone();
        flipped.iter_mut().step_by(7).for_each(|byte| *byte ^= 0x55);
        for damage in [Vec::new(), bytes[..bytes.len() / 2].to_vec(), flipped] {
            fs::write(file, damage).unwrap();
            n_errors += usize::from(ask(&opened).is_err());
        }
        fs::write(file, bytes).unwrap();
    }
    assert!(
        n_errors > 2 * files.len(),
        "only {n_errors} faults were noticed"
    );
    ask(&opened).unwrap();
    remove(&opened).unwrap();
    assert!(matches!(Index::open(&opened), Err(Error::NoIndex { .. })));
}

fn ask(folder: &SearchDir) -> Result<(), Error> {
    let index = Index::open(folder)?;
    index.verify()?;
    index.search(
        &"\"about roses\" page".parse().unwrap(),
        &Request::default(),
    )?;
    Ok(())
}

#[test]
fn no_documents() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("pages.jsonl"), folder.path().join("out"));
    fs::write(&input, "").unwrap();
    dedup(&input, &out);
    let index = indexed(&out);
    let results = index.search(&query("roses"), &Request::default()).unwrap();
    assert_eq!((results.n_documents, results.n_results), (0, 0));
}

#[test]
fn pages_that_nobody_turns_to() {
    let folder = tempfile::tempdir().unwrap();
    let index = indexed(&run(folder.path()));
    for offset in [MAX_RESULTS, usize::MAX] {
        let request = Request {
            offset,
            ..Request::default()
        };
        let result = index.search(&query("roses"), &request);
        assert!(matches!(result, Err(Error::TooFar { .. })));
    }
}

/// A text of one line of five million letters without a space, and one with spaces.
#[test]
fn a_huge_line() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("pages.jsonl"), folder.path().join("out"));
    let text = |text: String| Page {
        url: "https://x.org/".to_owned(),
        text,
        ..Page::default()
    };
    write_pages(
        &input,
        &[text("x".repeat(5_000_000)), text("ab ".repeat(1_700_000))],
    );
    dedup(&input, &out);
    let index = indexed(&out);
    let results = index.search(&query("ab"), &Request::default()).unwrap();
    assert_eq!(results.n_documents, 1);
    let shown: usize = results.hits[0]
        .snippet
        .iter()
        .map(|fragment| fragment.text.len())
        .sum();
    assert!(shown < 1000);
    assert_eq!(n_matching(&index, &query(&"x".repeat(200))), 1);
}
