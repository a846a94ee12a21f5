//! Tests of damage to the files of a crawl: it is reported, loses nothing, and can be repaired.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use arose_crawl::counters::Counter;
use arose_crawl::{Control, End, Seeds, Settings, crawl, index_lines, list_pages, repair, status};
use testweb::{Config, PageCount, Server};

use crate::restart::first_file;
use crate::web::{fetched, homes, reachable, run, settings};

fn web() -> Server {
    let config = Config {
        pages: PageCount::Fixed(15),
        median_bytes: 1500,
        ..Config::plain(12)
    };
    Server::start(config).unwrap()
}

/// A crawl that was stopped halfway, with a frame for nearly every page.
fn half(server: &Server, folder: &Path) -> Settings {
    let mut settings = settings(server);
    settings.archive.commit = 0.001;
    settings.archive.max_file = 40_000;
    settings.scope.sitemaps = false;
    settings.stop.pages = 90;
    let summary = run(folder, settings.clone(), &homes(server));
    assert_eq!(summary.end, End::Limit);
    settings.stop.pages = 0;
    settings
}

fn resume(folder: &Path, settings: &Settings) -> Result<arose_crawl::Summary, arose_crawl::Error> {
    crawl(
        folder,
        settings.clone(),
        Seeds::default(),
        &Control::default(),
    )
}

/// The contents of all files below a directory, except the lock and the statistics.
fn snapshot(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(snapshot(&path));
        } else {
            let content = std::fs::read(&path).unwrap();
            files.insert(path, content);
        }
    }
    files
}

fn archived(folder: &Path) -> BTreeMap<String, u32> {
    let mut urls = BTreeMap::new();
    for line in index_lines(folder).unwrap() {
        let json = &line[line.find('{').unwrap()..];
        let json: serde_json::Value = serde_json::from_str(json).unwrap();
        *urls
            .entry(json["url"].as_str().unwrap().to_owned())
            .or_default() += 1;
    }
    urls
}

/// The URLs of the page table.
fn paged(folder: &Path) -> BTreeSet<String> {
    let mut urls = BTreeSet::new();
    list_pages(folder, u32::MAX, |page| {
        assert!(urls.insert(page.url.unwrap()));
        Ok(())
    })
    .unwrap();
    urls
}

/// After repair, the crawl ends with every page of the web in the archive once, and with every file
/// that was there before.
#[track_caller]
fn check_repaired(server: &Server, folder: &Path, settings: &Settings) {
    let before = snapshot(&folder.join("archive"));
    let repaired = repair(folder, settings.clone()).unwrap();
    assert!(!repaired.is_sound);
    assert!(
        repaired.n_records >= 90 && repaired.n_queued > 0,
        "{repaired:?}"
    );
    assert!(repair(folder, settings.clone()).unwrap().is_sound);
    let after = snapshot(&folder.join("archive"));
    let is_archive = |path: &Path| path.to_string_lossy().ends_with(".warc.gz");
    for (path, content) in before.iter().filter(|(path, _)| is_archive(path)) {
        assert_eq!(after.get(path), Some(content), "{}", path.display());
    }
    assert_eq!(status(folder).unwrap().n_queued, repaired.n_queued);
    assert_eq!(paged(folder), archived(folder).into_keys().collect());
    let summary = resume(folder, settings).unwrap();
    assert_eq!((summary.end, summary.n_queued), (End::Done, 0));
    let seeds = homes(server);
    let expected = reachable(server, &seeds, None);
    let urls = archived(folder);
    let wanted: BTreeSet<String> = expected.iter().map(|&id| server.web.url(id)).collect();
    assert_eq!(urls.keys().cloned().collect::<BTreeSet<_>>(), wanted);
    assert_eq!(paged(folder), wanted);
    assert!(urls.values().all(|&n| n == 1), "{urls:?}");
    assert!(fetched(server).values().all(|&n| n == 1));
}

/// A flipped byte anywhere in the journal stops the crawl with an error that has the file and the
/// position, and nothing is changed.
#[test]
fn a_flipped_byte_in_the_journal_is_named_and_changes_nothing() {
    let server = web();
    let folder = tempfile::tempdir().unwrap();
    let settings = half(&server, folder.path());
    let journal = folder.path().join("journal");
    let whole = std::fs::read(&journal).unwrap();
    for at in [16, 50, whole.len() / 3, whole.len() / 2, whole.len() - 1] {
        let mut bad = whole.clone();
        bad[at] ^= 1;
        // One of the two notes of the synced length is enough.
        if at == 16 {
            bad[32] ^= 1;
        }
        std::fs::write(&journal, &bad).unwrap();
        let before = snapshot(folder.path());
        let error = resume(folder.path(), &settings).unwrap_err().to_string();
        assert!(error.contains("/journal` is damaged at byte "), "{error}");
        assert!(error.contains("arose crawl repair"), "{error}");
        assert_eq!(snapshot(folder.path()), before);
        assert!(status(folder.path()).is_err());
    }
    std::fs::write(&journal, &whole).unwrap();
    assert!(repair(folder.path(), settings.clone()).unwrap().is_sound);
    assert_eq!(resume(folder.path(), &settings).unwrap().end, End::Done);
    server.stop().unwrap();
}

#[test]
fn a_crawl_goes_on_after_repair() {
    let server = web();
    let folder = tempfile::tempdir().unwrap();
    let settings = half(&server, folder.path());
    let journal = folder.path().join("journal");
    let mut bytes = std::fs::read(&journal).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&journal, &bytes).unwrap();
    let n_pages = 90;
    check_repaired(&server, folder.path(), &settings);
    assert_eq!(
        std::fs::read(folder.path().join("journal.damaged-1")).unwrap(),
        bytes
    );
    let counters = status(folder.path()).unwrap().counters;
    assert!(counters.get(Counter::Pages) > n_pages);
    server.stop().unwrap();
}

/// Without a journal the archive is enough, and it is never discarded.
#[test]
fn a_lost_journal_is_rebuilt_from_the_archive() {
    let server = web();
    for is_empty in [true, false] {
        let server = if is_empty { &server } else { &web() };
        let folder = tempfile::tempdir().unwrap();
        let settings = half(server, folder.path());
        let journal = folder.path().join("journal");
        std::fs::remove_file(&journal).unwrap();
        if is_empty {
            std::fs::write(&journal, b"").unwrap();
        }
        let before = snapshot(&folder.path().join("archive"));
        let error = resume(folder.path(), &settings).unwrap_err().to_string();
        assert!(error.contains("arose crawl repair"), "{error}");
        assert_eq!(snapshot(&folder.path().join("archive")), before);
        check_repaired(server, folder.path(), &settings);
    }
    server.stop().unwrap();
}

/// A seen set and an index of the archive with missing entries, and a partial record.
#[test]
fn companions_are_mended_too() {
    let server = web();
    let folder = tempfile::tempdir().unwrap();
    let settings = half(&server, folder.path());
    std::fs::remove_file(folder.path().join("seen/manifest")).unwrap();
    std::fs::write(folder.path().join("seen/manifest"), b"nonsense").unwrap();
    let error = resume(folder.path(), &settings).unwrap_err().to_string();
    assert!(error.contains("seen/manifest"), "{error}");
    let index = first_file(&folder.path().join("archive"), ".cdxj");
    std::fs::write(index, b"").unwrap();
    let last = arose_crawl::archives(folder.path()).unwrap().pop().unwrap();
    let mut bytes = std::fs::read(&last).unwrap();
    let n_whole = bytes.len();
    bytes.extend_from_slice(&bytes.clone()[..20]);
    std::fs::write(&last, &bytes).unwrap();
    let repaired = repair(folder.path(), settings.clone()).unwrap();
    assert_eq!((repaired.n_index_files, repaired.n_cut_bytes), (1, 20));
    assert_eq!(std::fs::read(&last).unwrap().len(), n_whole);
    let summary = resume(folder.path(), &settings).unwrap();
    assert_eq!((summary.end, summary.n_queued), (End::Done, 0));
    let n_expected = reachable(&server, &homes(&server), None).len();
    let urls = archived(folder.path());
    assert_eq!((urls.len(), urls.values().max()), (n_expected, Some(&1)));
    server.stop().unwrap();
}
