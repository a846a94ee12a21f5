//! Folders of a host that give nothing but duplicates.

use std::collections::HashMap;
use std::time::Duration;

use arose::digest::digest64;

/// How often a stale folder is tried.
pub(crate) const PROBE: Duration = Duration::from_secs(24 * 3600);

/// Folders watched at a host; beyond that a site makes them up faster than they could matter.
const MAX_FOLDERS: usize = 4096;

/// The folders in which duplicates were found, by the hash of their path.
#[derive(Debug, Default)]
pub(crate) struct Folders {
    runs: HashMap<u64, Run>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Run {
    /// Duplicates in a row.
    n_duplicates: u32,
    /// When it was asked last, since it became stale.
    probed: Option<Duration>,
}

impl Folders {
    /// Takes down what a page turned out to be.
    pub(crate) fn record(&mut self, path: &str, is_duplicate: bool) {
        for folder in above(path) {
            if !is_duplicate {
                self.runs.remove(&folder);
            } else if self.runs.len() < MAX_FOLDERS || self.runs.contains_key(&folder) {
                self.runs.entry(folder).or_default().n_duplicates += 1;
            }
        }
    }

    /// Whether a page may be asked for; counts as the probe of the folders that are stale.
    pub(crate) fn admits(&mut self, path: &str, stale_after: u32, now: Duration) -> bool {
        if self.runs.is_empty() || stale_after == 0 {
            return true;
        }
        let is_stale = |run: &Run| run.n_duplicates >= stale_after;
        let is_closed =
            |run: &Run| is_stale(run) && run.probed.is_some_and(|probed| now < probed + PROBE);
        if above(path).any(|folder| self.runs.get(&folder).is_some_and(is_closed)) {
            return false;
        }
        for folder in above(path) {
            if let Some(run) = self.runs.get_mut(&folder).filter(|run| is_stale(run)) {
                run.probed = Some(now);
            }
        }
        true
    }
}

/// Hashes of the folders that a path lies in, the root not among them: it is the host.
fn above(path: &str) -> impl Iterator<Item = u64> {
    let path = path.split('?').next().unwrap_or_default().as_bytes();
    let slashes = memchr::memchr_iter(b'/', path).filter(|&at| at > 0);
    slashes.map(|at| digest64(&path[..=at]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_duplicates_is_probed_once_a_day() {
        let mut folders = Folders::default();
        for n in 0..3 {
            assert!(folders.admits("/maze/x", 3, Duration::from_secs(n)));
            folders.record(&format!("/maze/a/{n}"), true);
        }
        let day = Duration::from_secs(24 * 3600);
        assert!(folders.admits("/maze/a/4", 3, day));
        assert!(!folders.admits("/maze/a/5", 3, day + Duration::from_secs(1)));
        assert!(!folders.admits("/maze/6", 3, day * 2 - Duration::from_secs(1)));
        assert!(folders.admits("/other", 3, day));
        assert!(folders.admits("/maze/6", 3, day * 2));
    }

    #[test]
    fn one_page_of_its_own_clears_a_folder() {
        let mut folders = Folders::default();
        for _ in 0..5 {
            folders.record("/a/b?c/d", true);
        }
        assert!(folders.admits("/a/x", 5, Duration::ZERO));
        assert!(!folders.admits("/a/x", 5, Duration::ZERO));
        folders.record("/a/y", false);
        assert!(folders.admits("/a/x", 5, Duration::ZERO));
    }
}
