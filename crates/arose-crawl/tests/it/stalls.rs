//! A loop that does not wait for files.

use std::time::Duration;

use arose_crawl::{Summary, Turns};
use arose_dedup::disk::Recording;
use testweb::{Config, PageCount, Server};

use crate::web::{fetched, homes, reachable, run, settings};

/// How long the disk takes for every sync.
const SYNC: Duration = Duration::from_millis(120);

/// A crawl on a slow disk, whose journal is rewritten after nearly every commit, with many syncs.
fn crawl(n_threads: usize) -> (Summary, usize) {
    let server = Server::start(Config {
        pages: PageCount::Fixed(10),
        median_bytes: 2000,
        ..Config::plain(12)
    });
    let server = server.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings(&server);
    settings.machine.threads = n_threads;
    settings.polite.delay = 0.2;
    settings.archive.commit = 0.1;
    settings.archive.compact = 1000;
    let recording = Recording::start_slow(folder.path(), SYNC);
    let seeds = homes(&server);
    let summary = run(folder.path(), settings, &seeds);
    let n_changes = recording.n_changes();
    let n_expected = reachable(&server, &seeds, None).len();
    assert!(fetched(&server).len() >= n_expected);
    server.stop().unwrap();
    (summary, n_changes)
}

fn n_over(turns: &Turns, ms: u64) -> u64 {
    let n_within = turns.up_to().find(|(bound, _)| *bound == ms).unwrap().1;
    turns.n() - n_within
}

/// A sync takes 120 ms, a rewrite of the journal a dozen of them. Only a crawl without threads
/// waits for that in a turn of its loop.
#[test]
fn issue_22_syncs_and_rewrites_stall_no_turn() {
    let (waits, _) = crawl(0);
    assert!(n_over(&waits.turns, 500) >= 1, "{:?}", waits.turns);
    let (goes_on, n_changes) = crawl(1);
    assert!(n_changes > 100, "{n_changes}");
    // A busy machine may keep the loop from running for a while, but not for so long.
    assert_eq!(n_over(&goes_on.turns, 500), 0, "{:?}", goes_on.turns);
}
