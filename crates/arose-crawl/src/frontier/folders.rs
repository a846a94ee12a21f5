//! Parts of a host that give nothing new: directories, and URLs with the same query parameters.
//!
//! *Question.* A calendar, a maze of session IDs, an error page for every URL: a server makes up
//! URLs for ever. How is that noticed without a list of all traps? And how is a trap told from a
//! mirror, or from documentation whose pages resemble each other, of which each page may be wanted?
//!
//! *Idea.* Three things are true of a trap only. It shows the same few pages again and again,
//! whereas a mirror shows each page once. It makes up its URLs itself: they are found on pages that
//! repeat others, whereas the similar pages of a manual are found in its table of contents. And it
//! has no end: its pages lead to new URLs, on average at least to one each. So a page *repeats* if
//! [`COPIES`] pages of its host were like it: they duplicate the same page, or have the same words,
//! digits and URLs aside. Repeats count if they were found on a page that duplicates another, or
//! has the words of one. If such a page leads nowhere it counts only where others have repeated.
//!
//! Every page that counts does so for the *patterns* that its URL belongs to: the directories above
//! it, up to the host itself, and the names of its query parameters. A pattern with enough repeats
//! in a row is *stale* if two of them lead to a new URL on average, and gets one request per day;
//! URLs found elsewhere than on repeats are not affected. One new page clears it. A run of repeats
//! counts against the most specific pattern that it fills, so a calendar does not close its host.
//! (In a simulation, the endless calendar of the tests gets 87 requests, and 56 if all that repeats
//! counts at once.)
//!
//! *Cost.* A bit in the journal per queued URL. About 40 bytes per pattern in which something
//! repeated and 16 per page that others are like, at most [`MOST`] of each. *Error.* A directory of
//! short pages that differ in numbers alone, and are found only on each other, counts as stale. Its
//! URLs wait, and `duplicates.stale_after = 0` turns this off.

use std::collections::HashMap;
use std::time::Duration;

use arose::digest::digest64;

use crate::journal::{Decoder, push_number};

/// How often a stale pattern is tried.
pub(crate) const PROBE: Duration = Duration::from_secs(24 * 3600);

/// Number of pages of a host that may be like another one before a further one repeats them: the
/// versions and translations of a page.
const COPIES: u32 = 8;

/// Patterns and pages watched at a host; beyond that a site makes them up faster than they could
/// matter.
const MOST: usize = 16_384;

/// What a page added to what its host had shown before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Novelty {
    /// The digest of the URL of the page that it duplicates.
    pub(crate) original: Option<u64>,
    /// The digest of its words without digits and URLs, where traps are likely.
    pub(crate) shape: Option<u64>,
    /// Whether it links to further URLs of its own kind.
    pub(crate) leads_on: bool,
    /// Whether it was found on a page that repeats another.
    pub(crate) of_repeat: bool,
    /// New URLs of its host that were found on it.
    pub(crate) n_found: u32,
}

impl Novelty {
    /// Returns that of a page that was not read yet.
    pub(crate) fn of(of_repeat: bool) -> Self {
        Self {
            of_repeat,
            ..Self::default()
        }
    }
}

/// The patterns of a host in which pages repeated, by hash.
#[derive(Debug, Default)]
pub(crate) struct Folders {
    runs: HashMap<u64, Streak>,
    /// Numbers of pages that duplicate the same page, or have the same words.
    faces: HashMap<u64, u32>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Streak {
    /// Pages in a row that repeated, and new URLs found on them.
    n_repeats: u32,
    n_found: u32,
    /// When it was asked last, since it became stale.
    probed: Option<Duration>,
}

impl Streak {
    /// Adds a page, without what a more specific pattern is blamed for: that is not this one's
    /// fault.
    fn add(&mut self, page: &Novelty, blamed: Self) {
        self.n_repeats = (self.n_repeats + 1).saturating_sub(blamed.n_repeats);
        let n_found = self.n_found.saturating_add(page.n_found);
        self.n_found = n_found.saturating_sub(blamed.n_found);
    }

    /// Whether there are enough repeats, and no end of them is in sight.
    fn is_stale(&self, stale_after: u32) -> bool {
        self.n_repeats >= stale_after && u64::from(self.n_found) * 2 >= u64::from(self.n_repeats)
    }
}

impl Folders {
    /// Takes down what the page at a path and query turned out to be.
    pub(crate) fn record(&mut self, rest: &str, page: Novelty, stale_after: u32) {
        let patterns = patterns(rest);
        let faces = [page.original, page.shape].into_iter().flatten();
        let n_like = faces.map(|face| self.count(face)).max();
        // There are too many to tell.
        if n_like == Some(None) {
            return;
        }
        if n_like.flatten().unwrap_or_default() < COPIES {
            for pattern in &patterns {
                self.runs.remove(pattern);
            }
            return;
        }
        if !page.of_repeat {
            return;
        }
        let begins = (page.original.is_some() || page.leads_on) && self.runs.len() < MOST;
        let mut blamed = Streak::default();
        for pattern in patterns {
            if !begins && !self.runs.contains_key(&pattern) {
                continue;
            }
            let run = self.runs.entry(pattern).or_default();
            run.add(&page, blamed);
            if run.is_stale(stale_after) && blamed.n_repeats == 0 {
                blamed = *run;
            }
        }
    }

    /// Whether a page has the words of an earlier one.
    pub(crate) fn knows(&self, page: &Novelty) -> bool {
        page.shape
            .is_some_and(|shape| self.faces.contains_key(&shape))
    }

    /// Counts a page; returns the number of those before it, if they are counted.
    fn count(&mut self, face: u64) -> Option<u32> {
        if self.faces.len() >= MOST && !self.faces.contains_key(&face) {
            return None;
        }
        let n = self.faces.entry(face).or_default();
        *n = n.saturating_add(1);
        Some(*n - 1)
    }

    /// Appends all of it as bytes.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let mut runs: Vec<(&u64, &Streak)> = self.runs.iter().collect();
        runs.sort_unstable_by_key(|(pattern, _)| **pattern);
        push_number(out, runs.len() as u64);
        for (&pattern, run) in runs {
            let probed = run.probed.map_or(0, |probed| 1 + probed.as_millis() as u64);
            for number in [pattern, run.n_repeats.into(), run.n_found.into(), probed] {
                push_number(out, number);
            }
        }
        let mut faces: Vec<(u64, u32)> = self.faces.iter().map(|(&face, &n)| (face, n)).collect();
        faces.sort_unstable();
        push_number(out, faces.len() as u64);
        for (face, n) in faces {
            push_number(out, face);
            push_number(out, n.into());
        }
    }

    /// Reads what was written.
    pub(super) fn read(reader: &mut Decoder<'_>) -> Option<Self> {
        let mut folders = Self::default();
        for _ in 0..reader.number()? {
            let pattern = reader.number()?;
            let run = Streak {
                n_repeats: reader.number()?.try_into().ok()?,
                n_found: reader.number()?.try_into().ok()?,
                probed: reader.number()?.checked_sub(1).map(Duration::from_millis),
            };
            folders.runs.insert(pattern, run);
        }
        for _ in 0..reader.number()? {
            let face = reader.number()?;
            folders
                .faces
                .insert(face, reader.number()?.try_into().ok()?);
        }
        Some(folders)
    }

    /// Whether a page that was found on a repeat may be asked for; counts as the probe of the
    /// patterns that are stale.
    pub(crate) fn admits(&mut self, rest: &str, stale_after: u32, now: Duration) -> bool {
        if self.runs.is_empty() || stale_after == 0 {
            return true;
        }
        let patterns = patterns(rest);
        let is_stale = |run: &Streak| run.is_stale(stale_after);
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

    const NEW: Novelty = Novelty {
        original: None,
        shape: None,
        leads_on: false,
        of_repeat: true,
        n_found: 1,
    };
    const REPEAT: Novelty = Novelty {
        original: Some(1),
        ..NEW
    };

    /// A host that has shown as many copies of a page as may be.
    fn seasoned() -> Folders {
        let mut folders = Folders::default();
        for n in 0..COPIES {
            folders.record(&format!("/versions/{n}"), REPEAT, 1);
            assert!(folders.runs.is_empty());
        }
        folders
    }

    #[test]
    fn a_directory_of_repeats_is_probed_once_a_day() {
        let mut folders = seasoned();
        for n in 0..3 {
            assert!(folders.admits("/maze/x", 3, Duration::from_secs(n)));
            folders.record(&format!("/maze/a/{n}"), REPEAT, 3);
        }
        let day = PROBE;
        assert!(folders.admits("/maze/a/4", 3, day));
        assert!(!folders.admits("/maze/a/5", 3, day + Duration::from_secs(1)));
        assert!(!folders.admits("/maze/a/6", 3, day * 2 - Duration::from_secs(1)));
        assert!(folders.admits("/other", 3, day) && folders.admits("/other", 3, day));
        assert!(folders.admits("/maze/a/6", 3, day * 2));
    }

    /// Directories with a few repeats each make a stale host; so do sessions in the query.
    #[test]
    fn runs_are_blamed_on_the_most_specific_pattern() {
        let mut folders = seasoned();
        for n in 0..6 {
            folders.record(&format!("/{n}/x"), REPEAT, 6);
        }
        assert!(folders.admits("/a/x", 6, Duration::ZERO));
        assert!(!folders.admits("/b/x", 6, Duration::ZERO));
        let mut folders = seasoned();
        for n in 0..6 {
            folders.record(&format!("/{n}/x?sid={n}&a=1"), REPEAT, 6);
        }
        assert!(folders.admits("/1/x?a=2&sid=9", 6, Duration::ZERO));
        assert!(!folders.admits("/1/x?a=2&sid=9", 6, Duration::ZERO));
        assert!(folders.admits("/1/x?a=2", 6, Duration::ZERO));
        assert!(folders.admits("/1/x", 6, Duration::ZERO));
    }

    #[test]
    fn one_page_of_its_own_clears_a_directory() {
        let mut folders = seasoned();
        for _ in 0..5 {
            folders.record("/a/b?c/d", REPEAT, 5);
        }
        assert!(folders.admits("/a/x?c", 5, Duration::ZERO));
        folders.record("/a/y?c=1", NEW, 5);
        assert!(folders.admits("/a/x?c", 5, Duration::ZERO));
    }

    /// A mirror shows each page once, and several versions show each a few times.
    #[test]
    fn issue_26_mirrors_are_not_stale() {
        let mut folders = Folders::default();
        for n in 0..1000 {
            let page = Novelty {
                original: Some(n % 250),
                ..REPEAT
            };
            folders.record(&format!("/{}/{}", n / 250, n % 250), page, 5);
        }
        assert!(folders.runs.is_empty());
    }

    /// Pages that resemble each other, found in a table of contents.
    #[test]
    fn issue_26_pages_of_an_index_are_not_stale() {
        let mut folders = Folders::default();
        let page = Novelty {
            of_repeat: false,
            leads_on: true,
            ..REPEAT
        };
        for n in 0..1000 {
            folders.record(&format!("/reference/{n}"), page, 5);
        }
        assert!(folders.runs.is_empty());
        // Nor are they new: they do not clear what others repeat.
        (0..5).for_each(|n| folders.record(&format!("/reference/r{n}"), REPEAT, 5));
        folders.record("/reference/x", page, 5);
        assert!(folders.admits("/reference/y", 5, Duration::ZERO));
        assert!(!folders.admits("/reference/z", 5, Duration::ZERO));
    }

    /// Pages that are found on others of their kind, and lead to nothing new: there is an end.
    #[test]
    fn issue_26_what_ends_is_not_stale() {
        for (n_found, n_admitted) in [(0, 2), (1, 1)] {
            let mut folders = seasoned();
            for n in 0..50 {
                let page = Novelty {
                    n_found: u32::from(n % 2 == 0) * n_found,
                    ..REPEAT
                };
                folders.record(&format!("/uses/{n}"), page, 50);
            }
            let admits = |_| folders.admits("/uses/x", 50, Duration::ZERO);
            let n = (0..2).map(admits).filter(|&admits| admits).count();
            assert_eq!(n, n_admitted, "{n_found}");
        }
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
            assert!(!folders.knows(&page));
            let n_first = COPIES as usize + 1;
            for (n, page) in std::iter::repeat_n(page, n_first)
                .chain([day; 4])
                .enumerate()
            {
                folders.record(&format!("/cal/{n}"), page, 5);
            }
            assert_eq!(folders.knows(&page), page.shape.is_some());
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

    /// Beyond the number of pages that are watched nothing is concluded.
    #[test]
    fn memory_is_bounded() {
        let mut folders = seasoned();
        (0..5).for_each(|n| folders.record(&format!("/a/{n}"), REPEAT, 5));
        for n in 0..2 * MOST as u64 {
            let page = Novelty {
                original: Some(1000 + n),
                ..REPEAT
            };
            folders.record(&format!("/b/{n}/"), page, 5);
            folders.record(&format!("/b/{n}/"), REPEAT, 5);
        }
        assert_eq!(folders.faces.len(), MOST);
        assert!(folders.runs.len() <= MOST + 3);
    }
}
