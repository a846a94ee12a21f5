//! Detects parts of a host that give nothing new: directories, and URLs with the same query
//! parameters.
//!
//! *Question.* A calendar, a maze of session IDs, an error page for every URL: some servers
//! generate URLs without end. How can a crawler notice that without a list of all traps? And how
//! can it distinguish a trap from a mirror, or from documentation whose pages resemble each other
//! but are all wanted?
//!
//! *Idea.* Three properties distinguish a trap. It shows the same few pages again and again,
//! whereas a mirror shows each page once. It generates its URLs itself: they are found on pages
//! that repeat others, whereas the similar pages of a manual are found in its table of contents.
//! And it has no end: each of its pages leads to at least one new URL on average. So a page
//! *repeats* if [`COPIES`] pages of its host resemble it: they duplicate the same page, or have the
//! same words except for digits and URLs. Repeats count if they were found on a page that
//! duplicates another or has the words of another. If such a page has no further links, it counts
//! only where others have repeated.
//!
//! A page counts for the *patterns* that its URL belongs to: the directories above it, up to the
//! host itself, and the names of its query parameters. A pattern with enough consecutive repeats is
//! *stale* if two of them lead to a new URL on average. It then gets one request per day; URLs
//! found elsewhere than on repeats are not affected. One new page clears it. A run of repeats
//! counts against the most specific pattern that it fills, so a calendar does not close its host.
//! But a pattern with [`PARTS`] stale ones below it is stale itself, because a calendar has a
//! directory for each of endless years. (In a simulation, the endless calendar of the tests gets 87
//! to 356 requests, depending on the order, and has no bound if years do not count against their
//! directory.)
//!
//! *Cost.* One bit in the journal per queued URL. About 40 bytes per pattern with repeats and 16
//! per page that others resemble, at most [`MOST`] of each. *Error.* A directory of short pages
//! that differ only in numbers and are found only on each other counts as stale. Its URLs wait, and
//! `duplicates.stale_after = 0` turns this off.

use std::collections::HashMap;
use std::time::Duration;

use arose::digest::digest64;

use crate::journal::{Decoder, push_number};

/// How often a stale pattern is tried.
pub(crate) const PROBE: Duration = Duration::from_secs(24 * 3600);

/// Number of pages of a host that may resemble each other before a further one repeats them, such
/// as the versions and translations of a page.
const COPIES: u32 = 8;

/// Number of stale patterns that make the pattern above them stale.
const PARTS: u32 = 3;

/// Maximum number of patterns and pages watched per host; beyond that, a site generates them faster
/// than they could matter.
const MOST: usize = 16_384;

/// What a page adds to the earlier pages of its host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Novelty {
    /// The digest of the URL of the page that it duplicates.
    pub(crate) original: Option<u64>,
    /// The digest of its words without digits and URLs, if pages of traps are likely.
    pub(crate) shape: Option<u64>,
    /// Whether it links to further URLs of its own kind.
    pub(crate) leads_on: bool,
    /// Whether it was found on a page that repeats another.
    pub(crate) of_repeat: bool,
    /// Number of new URLs of its host that were found on it.
    pub(crate) n_found: u32,
}

impl Novelty {
    /// Creates the data of a page that was not read yet.
    pub(crate) fn of(of_repeat: bool) -> Self {
        Self {
            of_repeat,
            ..Self::default()
        }
    }
}

/// The patterns of a host with repeats, by hash.
#[derive(Debug, Default)]
pub(crate) struct Folders {
    runs: HashMap<u64, Streak>,
    /// Numbers of pages that duplicate the same page, or have the same words.
    faces: HashMap<u64, u32>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Streak {
    /// Consecutive pages that repeated, and the number of new URLs found on them.
    n_repeats: u32,
    n_found: u32,
    /// Number of more specific patterns that became stale, without those that count against another
    /// one of them.
    n_stale: u32,
    /// Time of the last request since it became stale.
    probed: Option<Duration>,
}

impl Streak {
    /// Adds a page.
    fn add(&mut self, page: &Novelty) {
        self.n_repeats = self.n_repeats.saturating_add(1);
        self.n_found = self.n_found.saturating_add(page.n_found);
    }

    /// Takes out what counts against a more specific pattern, which becomes stale. In its place,
    /// that pattern itself counts.
    fn pass_on(&mut self, part: &Self) {
        self.n_repeats = self.n_repeats.saturating_sub(part.n_repeats);
        self.n_found = self.n_found.saturating_sub(part.n_found);
        self.n_stale = (self.n_stale + 1).saturating_sub(part.n_stale);
    }

    /// Whether there are enough repeats, and no end of them in sight.
    fn is_stale(&self, stale_after: u32) -> bool {
        let is_endless = u64::from(self.n_found) * 2 >= u64::from(self.n_repeats);
        self.n_repeats >= stale_after && is_endless || self.n_stale >= PARTS
    }
}

impl Folders {
    /// Records what the page at a path and query turned out to be.
    pub(crate) fn record(&mut self, rest: &str, page: Novelty, stale_after: u32) {
        let patterns = patterns(rest);
        let faces = [page.original, page.shape].into_iter().flatten();
        let n_like = faces.map(|face| self.count(face)).max();
        // There are too many pages to tell.
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
        // The patterns that this page makes stale.
        let mut parts: Vec<Streak> = Vec::new();
        for pattern in patterns {
            if !begins && !self.runs.contains_key(&pattern) {
                continue;
            }
            let run = self.runs.entry(pattern).or_default();
            let was_stale = run.is_stale(stale_after);
            run.add(&page);
            // The page counts against this pattern alone.
            if was_stale {
                return;
            }
            parts.iter().for_each(|part| run.pass_on(part));
            if run.is_stale(stale_after) {
                parts.push(*run);
            }
        }
    }

    /// Records the words of a page that is being read, so that pages read at the same time know
    /// them.
    pub(crate) fn meet(&mut self, page: &Novelty) {
        if let Some(shape) = page.shape
            && self.faces.len() < MOST
        {
            self.faces.entry(shape).or_default();
        }
    }

    /// Whether a page has the words of an earlier one.
    pub(crate) fn knows(&self, page: &Novelty) -> bool {
        page.shape
            .is_some_and(|shape| self.faces.contains_key(&shape))
    }

    /// Counts a page; returns the number of earlier ones, if they are counted.
    fn count(&mut self, face: u64) -> Option<u32> {
        if self.faces.len() >= MOST && !self.faces.contains_key(&face) {
            return None;
        }
        let n = self.faces.entry(face).or_default();
        *n = n.saturating_add(1);
        Some(*n - 1)
    }

    /// Appends the state as bytes.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let mut runs: Vec<(&u64, &Streak)> = self.runs.iter().collect();
        runs.sort_unstable_by_key(|(pattern, _)| **pattern);
        push_number(out, runs.len() as u64);
        for (&pattern, run) in runs {
            let probed = run.probed.map_or(0, |probed| 1 + probed.as_millis() as u64);
            let counts = [run.n_repeats, run.n_found, run.n_stale].map(u64::from);
            push_number(out, pattern);
            counts.iter().for_each(|&count| push_number(out, count));
            push_number(out, probed);
        }
        let mut faces: Vec<(u64, u32)> = self.faces.iter().map(|(&face, &n)| (face, n)).collect();
        faces.sort_unstable();
        push_number(out, faces.len() as u64);
        for (face, n) in faces {
            push_number(out, face);
            push_number(out, n.into());
        }
    }

    /// Reads the state from bytes.
    pub(super) fn read(reader: &mut Decoder<'_>) -> Option<Self> {
        let mut folders = Self::default();
        for _ in 0..reader.number()? {
            let pattern = reader.number()?;
            let run = Streak {
                n_repeats: reader.number()?.try_into().ok()?,
                n_found: reader.number()?.try_into().ok()?,
                n_stale: reader.number()?.try_into().ok()?,
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

    /// Whether a page that was found on a repeat may be requested; if so, it counts as the daily
    /// request of the stale patterns.
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

/// Returns hashes of the patterns that a path and query belong to, the most specific first; the
/// last is the host.
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

    /// A host that has shown the maximum number of copies of a page.
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
        // They are not new either: they do not clear the repeats of other pages.
        (0..5).for_each(|n| folders.record(&format!("/reference/r{n}"), REPEAT, 5));
        folders.record("/reference/x", page, 5);
        assert!(folders.admits("/reference/y", 5, Duration::ZERO));
        assert!(!folders.admits("/reference/z", 5, Duration::ZERO));
    }

    /// Pages that are found on others of their kind and lead to nothing new come to an end.
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

    /// Texts that differ only in digits repeat if they lead to more of their kind.
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

    /// The links of a page of the calendar of the tests.
    fn calendar_links(path: &str) -> Vec<String> {
        let numbers = path.split('/').skip(2).map(|part| part.parse().unwrap());
        let numbers: Vec<i64> = numbers.collect();
        let (year, month) = (numbers[0], numbers[1]);
        let name = |n: i64| format!("/cal/{}/{}", n.div_euclid(12), n.rem_euclid(12) + 1);
        let n = year * 12 + month - 1;
        let mut links = [n - 1, n + 1, n + 12].map(name).to_vec();
        if numbers.len() == 2 {
            links.extend((1..=28).map(|day| format!("{path}/{day}")));
        }
        links
    }

    /// Returns the number of requests for an endless calendar whose pages are fetched in the order
    /// of this key, at most 2,000.
    fn n_of_calendar<K: Ord>(key: impl Fn(&str) -> K) -> usize {
        let home = "/cal/2026/1".to_owned();
        let mut folders = Folders::default();
        let mut seen = std::collections::BTreeSet::from([home.clone()]);
        let (mut queue, mut n) = (vec![(home, false)], 0);
        while n < 2000
            && let Some(at) = (0..queue.len()).min_by_key(|&at| key(&queue[at].0))
        {
            let (path, of_repeat) = queue.remove(at);
            if of_repeat && !folders.admits(&path, 50, Duration::ZERO) {
                continue;
            }
            n += 1;
            let shape = Some(path.split('/').count() as u64);
            let mut page = Novelty {
                shape,
                leads_on: true,
                of_repeat,
                ..Novelty::default()
            };
            let is_known = folders.knows(&page);
            folders.meet(&page);
            for link in calendar_links(&path) {
                if seen.insert(link.clone()) {
                    page.n_found += 1;
                    queue.push((link, is_known));
                }
            }
            folders.record(&path, page, 50);
        }
        n
    }

    /// Each year of a calendar is a directory. Fetched year by year, each gets enough repeats to be
    /// stale, and there is always another one.
    #[test]
    fn issue_24_a_calendar_ends_in_any_order() {
        let year = |path: &str| path.split('/').nth(2).unwrap().parse::<i64>().unwrap();
        let n_by_year = n_of_calendar(|path| ((year(path) - 2026).abs(), path.to_owned()));
        let n_of_months = n_of_calendar(|path| (path.split('/').count(), path.to_owned()));
        let n_of_days = n_of_calendar(|path| (9 - path.split('/').count(), path.to_owned()));
        println!("{n_by_year} {n_of_months} {n_of_days}");
        for n in [n_by_year, n_of_months, n_of_days] {
            assert!((50..400).contains(&n), "{n}");
        }
    }

    /// Stale directories close the directory above them, but not the rest of the host.
    #[test]
    fn issue_24_stale_parts_make_a_stale_whole() {
        let mut folders = seasoned();
        let fill = |folders: &mut Folders, path: &str| {
            (0..5).for_each(|n| folders.record(&format!("{path}/{n}"), REPEAT, 5));
        };
        let is_open = |folders: &mut Folders, rest: &str| {
            let admits = |_| folders.admits(rest, 5, Duration::ZERO);
            (0..2).map(admits).filter(|&admits| admits).count() == 2
        };
        fill(&mut folders, "/cal/1");
        fill(&mut folders, "/cal/2");
        assert!(is_open(&mut folders, "/cal/x/1"));
        fill(&mut folders, "/cal/3");
        assert!(!is_open(&mut folders, "/cal/y/1"));
        fill(&mut folders, "/list");
        assert!(!is_open(&mut folders, "/list/9") && is_open(&mut folders, "/other/1"));
        fill(&mut folders, "/third");
        assert!(!is_open(&mut folders, "/more/1"));
        folders.record("/new", NEW, 5);
        assert!(is_open(&mut folders, "/other/1") && !is_open(&mut folders, "/cal/z/1"));
    }

    /// Pages that are read at the same time know the words of each other.
    #[test]
    fn issue_24_pages_being_read_are_known() {
        let page = Novelty {
            shape: Some(7),
            leads_on: true,
            ..NEW
        };
        let mut folders = Folders::default();
        assert!(!folders.knows(&page));
        folders.meet(&page);
        assert!(folders.knows(&page));
        for n in 0..=COPIES {
            assert!(folders.runs.is_empty());
            folders.record(&format!("/cal/{n}"), page, 5);
        }
        assert_eq!(folders.runs.len(), 2);
    }

    /// Beyond the maximum number of watched pages, nothing is concluded.
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
