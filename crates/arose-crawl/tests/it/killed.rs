//! Tests of the seen set after kill -9 at any moment.
//!
//! The test starts its own program again as a child that adds URLs without end and prints their
//! number after each commit. The parent kills it after a random number of commits and opens the
//! set.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use arose::mix::SplitMix;
use arose_crawl::fingerprint::Fingerprint;
use arose_crawl::seen::{Entry, Membership, Merges, Seen, SeenConfig, Strings};

const FOLDER: &str = "AROSE_SEEN_FOLDER";
const N_KILLS: u64 = 30;
const N_BATCH: u64 = 40;

/// So small that most commits write a sorted run, many of them by merging.
const CONFIG: SeenConfig = SeenConfig {
    buffer_keys: 60,
    held_bytes: 3000,
    strings: Strings::Keep,
    merges: Merges::Aside,
};

fn insert(seen: &mut Seen, range: std::ops::Range<u64>) -> Vec<Membership> {
    let urls: Vec<String> = range.map(|n| format!("http://h/{n}")).collect();
    let entries: Vec<Entry<'_>> = urls
        .iter()
        .map(|url| Entry {
            fingerprint: Fingerprint {
                host: 1,
                rest: arose::digest::digest64(url.as_bytes()),
            },
            url,
        })
        .collect();
    seen.insert(&entries).unwrap()
}

/// The code of the child; without a directory in the environment there is nothing to do.
#[test]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let mut seen = Seen::open(Path::new(&folder), CONFIG).unwrap();
    for n in seen.len() / N_BATCH.. {
        insert(&mut seen, n * N_BATCH..(n + 1) * N_BATCH);
        seen.commit().unwrap();
        println!("\ncommitted {}", (n + 1) * N_BATCH);
    }
}

/// Runs the child until it has committed `n_commits` times; returns the number of URLs.
fn run_and_kill(folder: &Path, n_commits: u64) -> u64 {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["killed::child", "--exact", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut commits =
        lines.filter_map(|line| line.unwrap().strip_prefix("committed ")?.parse().ok());
    let n_urls = commits.nth(n_commits as usize - 1).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    n_urls
}

#[test]
fn what_was_committed_survives_and_nothing_else_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = SplitMix::new(1);
    for _ in 0..N_KILLS {
        let n_committed = run_and_kill(folder.path(), 1 + random.below(6));
        let mut seen = Seen::open(folder.path(), CONFIG).unwrap();
        let n_seen = seen.len();
        // The child may be further than it printed, but only by complete commits.
        assert!(
            n_seen >= n_committed && n_seen.is_multiple_of(N_BATCH),
            "{n_seen} {n_committed}"
        );
        let answers = insert(&mut seen, 0..n_seen + 10);
        let (known, new) = answers.split_at(n_seen as usize);
        assert!(known.iter().all(|&answer| answer == Membership::Known));
        assert!(new.iter().all(|&answer| answer == Membership::New));
    }
}
