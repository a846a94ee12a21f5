//! Compares the set with a set in memory, with collisions, restarts and crashes.

use std::collections::BTreeSet;
use std::fs;

use proptest::prelude::*;

use super::*;

/// Small enough that a few hundred URLs make several sorted runs.
fn small(strings: Strings) -> SeenConfig {
    SeenConfig {
        buffer_keys: 50,
        held_bytes: 3000,
        strings,
        merges: Merges::Here,
    }
}

/// As [`small`], with merges on a thread.
fn aside(strings: Strings) -> SeenConfig {
    SeenConfig {
        merges: Merges::Aside,
        ..small(strings)
    }
}

fn url(n: u64) -> String {
    format!("http://h{}.org/{n}", n % 3)
}

/// With `n_hashes` different hashes per half, so that a small number gives many collisions.
fn entries(urls: &[String], n_hashes: u64) -> Vec<Entry<'_>> {
    let hash = |text: &str| arose::digest::digest64(text.as_bytes()) % n_hashes;
    let entry = |url: &'_ String| Fingerprint {
        host: hash(&url[..12]),
        rest: hash(&url[12..]),
    };
    urls.iter()
        .map(|url| Entry {
            fingerprint: entry(url),
            url,
        })
        .collect()
}

/// Inserts batches, reopening between some, and compares with a set in memory.
fn check(config: SeenConfig, batches: &[Vec<u64>], n_hashes: u64) {
    let folder = tempfile::tempdir().unwrap();
    let mut seen = Seen::open(folder.path(), config).unwrap();
    let mut model = BTreeSet::new();
    for (number, batch) in batches.iter().enumerate() {
        let urls: Vec<String> = batch.iter().map(|&n| url(n)).collect();
        let answers = seen.insert(&entries(&urls, n_hashes)).unwrap();
        for (url, answer) in urls.iter().zip(answers) {
            let is_new = model.insert(url.clone());
            assert_eq!(answer == Membership::New, is_new, "{url}");
        }
        assert_eq!(seen.len(), model.len() as u64);
        seen.commit().unwrap();
        if number % 3 == 2 {
            drop(seen);
            seen = Seen::open(folder.path(), config).unwrap();
            assert_eq!(seen.len(), model.len() as u64);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn as_a_set_in_memory(batches in prop::collection::vec(prop::collection::vec(0..900_u64, 0..120), 0..20)) {
        for config in [small, aside] {
            check(config(Strings::Drop), &batches, u64::MAX);
            check(config(Strings::Keep), &batches, u64::MAX);
        }
    }

    /// Three hashes for each half: nine keys for 300 URLs, which are distinguished by their
    /// strings.
    #[test]
    fn collisions_are_resolved_by_strings(batches in prop::collection::vec(prop::collection::vec(0..300_u64, 0..60), 0..10)) {
        check(small(Strings::Keep), &batches, 3);
    }
}

/// URLs that were new after the committed count are forgotten by a crash and reported as new again,
/// regardless of how many sorted runs were written meanwhile.
#[test]
fn issue_22_a_commit_takes_the_first_alone() {
    for config in [small(Strings::Drop), aside(Strings::Drop)] {
        let folder = tempfile::tempdir().unwrap();
        let mut seen = Seen::open(folder.path(), config).unwrap();
        let mut next = 0;
        for mark in 1..30 {
            let urls: Vec<String> = (next..next + 40).map(url).collect();
            seen.insert(&entries(&urls[..25], u64::MAX)).unwrap();
            let n_new = seen.n_new();
            seen.insert(&entries(&urls[25..], u64::MAX)).unwrap();
            seen.is_full().unwrap();
            seen.commit_first(n_new, mark).unwrap();
            assert_eq!((seen.len(), seen.n_committed()), (next + 40, next + 25));
            next += 25;
            if mark % 5 == 0 {
                drop(seen);
                seen = Seen::open(folder.path(), config).unwrap();
                assert_eq!(seen.len(), next);
            } else {
                // Uncommitted URLs are known as long as the set is open.
                seen.commit_as(mark).unwrap();
                next += 15;
            }
        }
    }
}

/// A merge on a thread changes no result, and gives the same sorted runs as a merge here.
#[test]
fn issue_22_merges_aside_end() {
    let folder = tempfile::tempdir().unwrap();
    let mut seen = Seen::open(folder.path(), aside(Strings::Drop)).unwrap();
    let mut n_full = 0;
    for n in 0..200 {
        let urls: Vec<String> = (n * 20..n * 20 + 20).map(url).collect();
        seen.insert(&entries(&urls, u64::MAX)).unwrap();
        n_full += u64::from(seen.is_full().unwrap());
        seen.commit_as(n + 1).unwrap();
        assert!(seen.buffer.len() < 5 * 50, "{}", seen.buffer.len());
    }
    assert!(
        n_full > 3 && seen.runs.len() < 12,
        "{n_full} {}",
        seen.runs.len()
    );
    let urls: Vec<String> = (0..4000).map(url).collect();
    let answers = seen.insert(&entries(&urls, u64::MAX)).unwrap();
    assert!(answers.iter().all(|&answer| answer == Membership::Known));
}

#[test]
fn without_strings_a_collision_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let mut seen = Seen::open(folder.path(), small(Strings::Drop)).unwrap();
    let urls = [url(0), url(3)];
    let answers = seen.insert(&entries(&urls, 1)).unwrap();
    assert_eq!(answers, [Membership::New, Membership::Known]);
}

fn insert(seen: &mut Seen, range: std::ops::Range<u64>) -> usize {
    let urls: Vec<String> = range.map(url).collect();
    let answers = seen.insert(&entries(&urls, u64::MAX)).unwrap();
    answers
        .iter()
        .filter(|&&answer| answer == Membership::New)
        .count()
}

#[test]
fn what_was_not_committed_is_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let mut seen = Seen::open(folder.path(), small(Strings::Keep)).unwrap();
    assert_eq!(insert(&mut seen, 0..10), 10);
    seen.commit().unwrap();
    assert_eq!(insert(&mut seen, 5..200), 190);
    drop(seen);
    let mut seen = Seen::open(folder.path(), small(Strings::Keep)).unwrap();
    assert_eq!(seen.len(), 10);
    assert_eq!(insert(&mut seen, 0..20), 10);
}

#[test]
fn a_folder_is_used_by_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let seen = Seen::open(folder.path(), small(Strings::Drop)).unwrap();
    let error = Seen::open(folder.path(), small(Strings::Drop)).unwrap_err();
    assert!(matches!(error, Error::Locked { .. }), "{error}");
    drop(seen);
    Seen::open(folder.path(), small(Strings::Drop)).unwrap();
}

#[test]
fn a_folder_stays_what_it_was_made_as() {
    let folder = tempfile::tempdir().unwrap();
    drop(Seen::open(folder.path(), small(Strings::Drop)).unwrap());
    let error = Seen::open(folder.path(), small(Strings::Keep)).unwrap_err();
    assert!(
        matches!(
            error,
            Error::Mismatch {
                setting: "width",
                ..
            }
        ),
        "{error}"
    );
}

/// The current files of a directory.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries
        .map(|path| (path.clone(), fs::read(&path).unwrap()))
        .collect()
}

fn file_names(folder: &Path) -> BTreeSet<PathBuf> {
    files(folder).into_iter().map(|(path, _)| path).collect()
}

/// Writing a sorted run creates new files, then a manifest, then removes old files. A crash in
/// between leaves extra files, with the old manifest or with the new one: both are complete sets.
#[test]
fn crashes_while_a_run_is_written() {
    for strings in [Strings::Drop, Strings::Keep] {
        let folder = tempfile::tempdir().unwrap();
        let mut seen = Seen::open(folder.path(), small(strings)).unwrap();
        for n in 0..4 {
            insert(&mut seen, n * 40..(n + 1) * 40);
            seen.commit().unwrap();
            let before = files(folder.path());
            insert(&mut seen, (n + 1) * 40..(n + 2) * 40);
            seen.commit().unwrap();
            let after = files(folder.path());
            for (manifest, n_expected) in [(&before, (n + 1) * 40), (&after, (n + 2) * 40)] {
                let copy = tempfile::tempdir().unwrap();
                for (path, bytes) in after.iter().chain(&before).chain(manifest) {
                    fs::write(copy.path().join(path.file_name().unwrap()), bytes).unwrap();
                }
                fs::write(copy.path().join("manifest.tmp"), "half of a").unwrap();
                let mut again = Seen::open(copy.path(), small(strings)).unwrap();
                // The log is shared if no sorted run was written; then the later commit counts.
                assert!(again.len() == n_expected || again.len() == (n + 2) * 40);
                let n_known = again.len();
                assert_eq!(insert(&mut again, 0..400) as u64, 400 - n_known);
                drop(again);
                let n_files = 4 + usize::from(strings == Strings::Keep) + 4;
                assert!(
                    file_names(copy.path()).len() <= n_files,
                    "nothing is left behind"
                );
            }
        }
    }
}

/// If nothing can be written, a commit fails; it succeeds once writing is possible again.
#[test]
fn a_failed_commit_can_be_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let mut seen = Seen::open(folder.path(), small(Strings::Drop)).unwrap();
    insert(&mut seen, 0..60);
    // A directory in place of the sorted run, which therefore cannot be created, even by root.
    let obstacle = manifest::run_path(folder.path(), seen.manifest.next_number());
    fs::create_dir(&obstacle).unwrap();
    let error = seen.commit().unwrap_err();
    assert!(error.to_string().starts_with("creating"), "{error}");
    assert_eq!(insert(&mut seen, 0..61), 1);
    fs::remove_dir(&obstacle).unwrap();
    seen.commit().unwrap();
    drop(seen);
    let mut seen = Seen::open(folder.path(), small(Strings::Drop)).unwrap();
    assert_eq!(insert(&mut seen, 0..61), 0);
}

#[test]
fn few_runs_and_few_rewrites() {
    let folder = tempfile::tempdir().unwrap();
    let mut seen = Seen::open(folder.path(), small(Strings::Drop)).unwrap();
    for n in 0..64 {
        insert(&mut seen, n * 50..(n + 1) * 50);
        seen.commit().unwrap();
        assert!(seen.runs.len() <= 6, "{}", seen.runs.len());
    }
    assert_eq!(seen.len(), 3200);
}
