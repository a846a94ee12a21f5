//! Parts of a host that give nothing new: directories, and URLs with the same query parameters.
//!
//! *Question.* A mirror, a calendar, a maze of session IDs: a server makes up URLs for ever. How is
//! that noticed without a list of all traps?
//!
//! *Idea.* Every page says something about the *patterns* that its URL belongs to: the directories
//! above it, up to the host itself, and the names of its query parameters. A page is new, or it
//! repeats: by content, if it is one more copy of a page that the host has shown many times, or by
//! links, if it has the words of an earlier page, digits and URLs aside, and links to more URLs of
//! its own kind. If it has these words and leads nowhere it counts only where others have repeated.
//! A pattern whose last pages all repeated is *stale* and gets one request per day. One new page
//! clears it. A run of repeats counts against the most specific pattern that it fills, so a
//! calendar does not close its host.
//!
//! Duplicates alone are no trap: a mirror, an older version and a manual that is translated in part
//! copy each page a few times, and pages of a reference may resemble one page by the hundred. A
//! trap shows the same pages for ever. So the first [`COPIES`] copies of a page are not repeats,
//! nor the first [`VARIANTS`] pages that resemble it in words of their own.
//!
//! *Cost.* About 40 bytes per pattern in which something repeated, 16 per text whose words are
//! compared and 24 per page that was copied, at most [`MOST`], [`MOST_TEXTS`] and [`MOST_COPIED`]
//! of them. A trap that shows *n* pages gets at most [`COPIES`] times *n* requests before its pages
//! count. *Error.* A directory of short pages that differ in numbers alone, and link to each other,
//! counts as stale. Its URLs wait, and `duplicates.stale_after = 0` turns this off.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use arose::digest::digest64;

use crate::journal::{Decoder, push_number};

/// How often a stale pattern is tried.
pub(crate) const PROBE: Duration = Duration::from_secs(24 * 3600);

/// Patterns watched at a host; beyond that a site makes them up faster than they could matter.
const MOST: usize = 4096;
/// Texts whose words are compared.
const MOST_TEXTS: usize = 1 << 15;
/// Pages of which copies are counted; beyond that every copy is a repeat.
const MOST_COPIED: usize = 1 << 15;

/// Copies of a page that a host may have: the languages of a manual, and mirrors.
const COPIES: u16 = 16;
/// Pages that may resemble one page in words of their own.
const VARIANTS: u16 = 1024;

/// What a page added to what its host had shown before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Novelty {
    /// Stands for the page that it duplicates.
    pub(crate) original: Option<u64>,
    /// The digest of its words without digits and URLs, for duplicates and where traps are likely.
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
    /// How many copies of a page there were.
    copies: HashMap<u64, u16>,
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
        let has_known_words = self.knows(page.shape);
        let is_repeat = match page.original {
            Some(original) => self.has_many(original, has_known_words),
            None => has_known_words,
        };
        if !is_repeat {
            for pattern in &patterns {
                self.runs.remove(pattern);
            }
            return;
        }
        let begins = (page.original.is_some() || page.leads_on) && self.runs.len() < MOST;
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
        let mut copies: Vec<(u64, u16)> = self.copies.iter().map(|(&of, &n)| (of, n)).collect();
        copies.sort_unstable();
        push_number(out, copies.len() as u64);
        for (original, n_copies) in copies {
            push_number(out, original);
            push_number(out, n_copies.into());
        }
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
        for _ in 0..reader.number()? {
            let original = reader.number()?;
            let n_copies = reader.number()?.try_into().ok()?;
            folders.copies.insert(original, n_copies);
        }
        Some(folders)
    }

    /// Whether a page had these words before; now one has.
    fn knows(&mut self, shape: Option<u64>) -> bool {
        let Some(shape) = shape else {
            return false;
        };
        if self.shapes.len() < MOST_TEXTS {
            return !self.shapes.insert(shape);
        }
        self.shapes.contains(&shape)
    }

    /// Counts a copy of a page; whether there were so many before that it adds nothing.
    fn has_many(&mut self, original: u64, has_known_words: bool) -> bool {
        let most = if has_known_words { COPIES } else { VARIANTS };
        if let Some(n_copies) = self.copies.get_mut(&original) {
            let n_before = *n_copies;
            *n_copies = n_copies.saturating_add(1);
            return n_before >= most;
        }
        if self.copies.len() == MOST_COPIED {
            return true;
        }
        self.copies.insert(original, 1);
        false
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
        original: Some(1),
        shape: Some(2),
        leads_on: false,
    };
    const NEW: Novelty = Novelty {
        original: None,
        shape: None,
        leads_on: false,
    };

    /// A host that has shown a page many times.
    fn weary() -> Folders {
        let mut folders = Folders::default();
        (0..=COPIES).for_each(|_| folders.record("/", DUPLICATE, 0));
        folders.record("/", NEW, 0);
        folders
    }

    /// How many of some pages are fetched, if they come one a second.
    fn n_admitted(pages: impl Iterator<Item = (String, Novelty)>) -> usize {
        let mut folders = Folders::default();
        let mut n = 0;
        for (rest, page) in pages {
            if folders.admits(&rest, 50, Duration::from_secs(1)) {
                folders.record(&rest, page, 50);
                n += 1;
            }
        }
        n
    }

    /// Copies of a whole site in other directories, such as mirrors, versions and languages, and
    /// pages of a reference that resemble one of them in words of their own.
    #[test]
    fn issue_26_copies_and_variants_are_no_trap() {
        let mirrors = (0..12_u64).flat_map(|mirror| {
            (0..300_u64).map(move |page| {
                let novelty = Novelty {
                    original: (mirror > 0).then_some(page),
                    shape: Some(page),
                    leads_on: true,
                };
                (format!("/{mirror}/{page}"), novelty)
            })
        });
        assert_eq!(n_admitted(mirrors), 12 * 300);
        let variants = (0..950).map(|n| {
            let novelty = Novelty {
                shape: Some(n),
                ..DUPLICATE
            };
            (format!("/api/{n}"), novelty)
        });
        assert_eq!(n_admitted(variants), 950);
    }

    /// A site of ten pages under a new session ID each time, in the path or in the query, and pages
    /// that echo a word of their URL.
    #[test]
    fn issue_26_traps_end() {
        let endless = |rest: fn(u64) -> String| {
            let pages = (0..100_000_u64).map(move |n| {
                let novelty = Novelty {
                    original: Some(n % 10),
                    shape: Some(n % 10),
                    leads_on: true,
                };
                (rest(n), novelty)
            });
            n_admitted(pages)
        };
        assert!(endless(|n| format!("/S-{n:011x}/page{}", n % 10)) <= 10 * 17 + 51);
        assert!(endless(|n| format!("/page?sid={n}")) <= 10 * 17 + 51);
        let echoes = (0..100_000).map(|n| {
            let novelty = Novelty {
                shape: Some(n),
                ..DUPLICATE
            };
            (format!("/gone/{n:x}"), novelty)
        });
        assert!(n_admitted(echoes) <= 1024 + 52);
    }

    #[test]
    fn a_directory_of_duplicates_is_probed_once_a_day() {
        let mut folders = weary();
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
        let mut folders = weary();
        for n in 0..6 {
            folders.record(&format!("/{n}/x"), DUPLICATE, 6);
        }
        assert!(folders.admits("/a/x", 6, Duration::ZERO));
        assert!(!folders.admits("/b/x", 6, Duration::ZERO));
        let mut folders = weary();
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
        let mut folders = weary();
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
