//! Parts of a host that give nothing new: directories, and URLs with the same query parameters.
//!
//! *Question.* A mirror, a calendar, a maze of session IDs: a server makes up URLs for ever. How is
//! that noticed without a list of all traps?
//!
//! *Idea.* Every page says something about the *patterns* that its URL belongs to: the directories
//! above it, up to the host itself, and the names of its query parameters. A page is new, or it
//! repeats: by content, if it is a duplicate, or by links, if it has the words of an earlier page,
//! digits and URLs aside, and links to more URLs of its own kind. If it has these words and leads
//! nowhere it counts only where others have repeated. A pattern whose last pages all repeated is
//! *stale* and gets one request per day. One new page clears it. A run of repeats counts against
//! the most specific pattern that it fills, so a calendar does not close its host.
//!
//! *Cost.* About 40 bytes per pattern in which something repeated and 16 per text whose words are
//! compared, at most [`MOST`] of each. *Error.* A directory of short pages that differ in numbers
//! alone, and link to each other, counts as stale. Its URLs wait, and `duplicates.stale_after = 0`
//! turns this off.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use arose::digest::digest64;

use crate::journal::{Decoder, push_number};

/// How often a stale pattern is tried.
pub(crate) const PROBE: Duration = Duration::from_secs(24 * 3600);

/// Patterns and texts watched at a host; beyond that a site makes them up faster than they could
/// matter.
const MOST: usize = 4096;

/// What a page added to what its host had shown before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Novelty {
    /// Whether the page duplicates another one.
    pub(crate) is_duplicate: bool,
    /// The digest of its words without digits and URLs, where traps are likely.
    pub(crate) shape: Option<u64>,
    /// Whether it links to further URLs of its own kind.
    pub(crate) leads_on: bool,
}

/// The patterns of a host in which pages repeated, by hash.
#[derive(Debug, Default)]
pub(crate) struct Folders {
    runs: HashMap<u64, Streak>,
    /// Digests of words without digits and URLs.
    shapes: HashSet<u64>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Streak {
    /// Pages in a row that repeated.
    n_repeats: u32,
    /// When it was asked last, since it became stale.
    probed: Option<Duration>,
}

impl Folders {
    /// Takes down what the page at a path and query turned out to be.
    pub(crate) fn record(&mut self, rest: &str, page: Novelty, stale_after: u32) {
        let patterns = patterns(rest);
        let is_known = self.knows(page.shape);
        if !page.is_duplicate && !is_known {
            for pattern in &patterns {
                self.runs.remove(pattern);
            }
            return;
        }
        let begins = (page.is_duplicate || page.leads_on) && self.runs.len() < MOST;
        let mut blamed = 0;
        for pattern in patterns {
            if !begins && !self.runs.contains_key(&pattern) {
                continue;
            }
            let run = self.runs.entry(pattern).or_default();
            // What a more specific pattern is blamed for is not this one's fault.
            run.n_repeats = (run.n_repeats + 1).saturating_sub(blamed);
            if run.n_repeats >= stale_after && blamed == 0 {
                blamed = run.n_repeats;
            }
        }
    }

    /// Appends all of it as bytes.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let mut runs: Vec<(&u64, &Streak)> = self.runs.iter().collect();
        runs.sort_unstable_by_key(|(pattern, _)| **pattern);
        push_number(out, runs.len() as u64);
        for (&pattern, run) in runs {
            let probed = run.probed.map_or(0, |probed| 1 + probed.as_millis() as u64);
            for number in [pattern, run.n_repeats.into(), probed] {
                push_number(out, number);
            }
        }
        let mut shapes: Vec<u64> = self.shapes.iter().copied().collect();
        shapes.sort_unstable();
        push_number(out, shapes.len() as u64);
        shapes.iter().for_each(|&shape| push_number(out, shape));
    }

    /// Reads what was written.
    pub(super) fn read(reader: &mut Decoder<'_>) -> Option<Self> {
        let mut folders = Self::default();
        for _ in 0..reader.number()? {
            let pattern = reader.number()?;
            let run = Streak {
                n_repeats: reader.number()?.try_into().ok()?,
                probed: reader.number()?.checked_sub(1).map(Duration::from_millis),
            };
            folders.runs.insert(pattern, run);
        }
        for _ in 0..reader.number()? {
            folders.shapes.insert(reader.number()?);
        }
        Some(folders)
    }

    /// Whether a page had these words before; now one has.
    fn knows(&mut self, shape: Option<u64>) -> bool {
        let Some(shape) = shape else {
            return false;
        };
        let is_known = self.shapes.contains(&shape);
        if self.shapes.len() < MOST {
            self.shapes.insert(shape);
        }
        is_known
    }

    /// Whether a page may be asked for; counts as the probe of the patterns that are stale.
    pub(crate) fn admits(&mut self, rest: &str, stale_after: u32, now: Duration) -> bool {
        if self.runs.is_empty() || stale_after == 0 {
            return true;
        }
        let patterns = patterns(rest);
        let is_stale = |run: &Streak| run.n_repeats >= stale_after;
        let is_closed =
            |run: &Streak| is_stale(run) && run.probed.is_some_and(|probed| now < probed + PROBE);
        if patterns
            .iter()
            .any(|pattern| self.runs.get(pattern).is_some_and(is_closed))
        {
            return false;
        }
        for pattern in &patterns {
            if let Some(run) = self.runs.get_mut(pattern).filter(|run| is_stale(run)) {
                run.probed = Some(now);
            }
        }
        true
    }
}

/// Hashes of the patterns that a path and query belong to, the most specific first; the last is
/// the host.
fn patterns(rest: &str) -> Vec<u64> {
    let (path, query) = match rest.split_once('?') {
        Some((path, query)) => (path.as_bytes(), Some(query)),
        None => (rest.as_bytes(), None),
    };
    let mut patterns = Vec::new();
    if let Some(query) = query {
        let names = query.split('&').map(|pair| pair.split('=').next());
        let mut names: Vec<&str> = names.flatten().collect();
        names.sort_unstable();
        names.dedup();
        patterns.push(digest64(format!("?{}", names.join("&")).as_bytes()));
    }
    let slashes = memchr::memrchr_iter(b'/', path);
    patterns.extend(slashes.map(|at| digest64(&path[..=at])));
    patterns
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUPLICATE: Novelty = Novelty {
        is_duplicate: true,
        shape: None,
        leads_on: false,
    };
    const NEW: Novelty = Novelty {
        is_duplicate: false,
        ..DUPLICATE
    };

    #[test]
    fn a_directory_of_duplicates_is_probed_once_a_day() {
        let mut folders = Folders::default();
        for n in 0..3 {
            assert!(folders.admits("/maze/x", 3, Duration::from_secs(n)));
            folders.record(&format!("/maze/a/{n}"), DUPLICATE, 3);
        }
        let day = PROBE;
        assert!(folders.admits("/maze/a/4", 3, day));
        assert!(!folders.admits("/maze/a/5", 3, day + Duration::from_secs(1)));
        assert!(!folders.admits("/maze/a/6", 3, day * 2 - Duration::from_secs(1)));
        assert!(folders.admits("/other", 3, day) && folders.admits("/other", 3, day));
        assert!(folders.admits("/maze/a/6", 3, day * 2));
    }

    /// Directories with a few duplicates each make a stale host; so do sessions in the query.
    #[test]
    fn runs_are_blamed_on_the_most_specific_pattern() {
        let mut folders = Folders::default();
        for n in 0..6 {
            folders.record(&format!("/{n}/x"), DUPLICATE, 6);
        }
        assert!(folders.admits("/a/x", 6, Duration::ZERO));
        assert!(!folders.admits("/b/x", 6, Duration::ZERO));
        let mut folders = Folders::default();
        for n in 0..6 {
            folders.record(&format!("/{n}/x?sid={n}&a=1"), DUPLICATE, 6);
        }
        assert!(folders.admits("/1/x?a=2&sid=9", 6, Duration::ZERO));
        assert!(!folders.admits("/1/x?a=2&sid=9", 6, Duration::ZERO));
        assert!(folders.admits("/1/x?a=2", 6, Duration::ZERO));
        assert!(folders.admits("/1/x", 6, Duration::ZERO));
    }

    #[test]
    fn one_page_of_its_own_clears_a_directory() {
        let mut folders = Folders::default();
        for _ in 0..5 {
            folders.record("/a/b?c/d", DUPLICATE, 5);
        }
        assert!(folders.admits("/a/x?c", 5, Duration::ZERO));
        folders.record("/a/y?c=1", NEW, 5);
        assert!(folders.admits("/a/x?c", 5, Duration::ZERO));
    }

    /// Texts that differ in digits alone repeat if they lead to more of their kind.
    #[test]
    fn numbers_alone_are_nothing_new() {
        let month = Novelty {
            shape: Some(7),
            leads_on: true,
            ..NEW
        };
        let count = |page: Novelty| {
            let mut folders = Folders::default();
            let day = Novelty {
                leads_on: false,
                ..page
            };
            for (n, page) in [page, page, day, day, day, day].into_iter().enumerate() {
                folders.record(&format!("/cal/{n}"), page, 5);
            }
            let admits = |_| folders.admits("/cal/9", 5, Duration::ZERO);
            (0..2).map(admits).filter(|&admits| admits).count()
        };
        assert_eq!(count(month), 1);
        let leads_on = false;
        assert_eq!(count(Novelty { leads_on, ..month }), 2);
        assert_eq!(
            count(Novelty {
                shape: None,
                ..month
            }),
            2
        );
    }
}
