//! Counts of the text that one site repeats, in tables that fit into the cache.
//!
//! The word pairs of all documents of a site are gathered first, and each raises one of many small
//! counters. Several word pairs may share a counter, so a counter is never too low, and most are so
//! low that their word pairs are on too few pages to count. Only the others, the text that may be
//! repeated, enter the table of entries, which has the number of pages of each. Entries are in the
//! order of their first occurrence. So text that a site repeats passes through the table from one
//! entry to the next, and most entries are found without a lookup in the index.

use std::ops::Range;

use arose::mix::GOLDEN;

use super::counts::MIN_PAGES;
use super::weigher::Others;

/// Maximum number of documents of a site that can be counted: the capacity of an entry.
pub(super) const MAX_COUNT: u32 = u16::MAX as u32;

/// Minimum and maximum number of counters.
const MIN_COUNTERS: usize = 1 << 12;
const MAX_COUNTERS: usize = 1 << 20;

/// Minimum number of slots of the index.
const N_SLOTS: usize = 1 << 10;

/// The place of a word pair without an entry.
const NONE: u32 = u32::MAX;

/// Counts the word pairs of one site after the other.
#[derive(Default)]
pub(super) struct SiteTable {
    /// The word pairs of all documents.
    shingles: Vec<u64>,
    /// Upper limits of the number of documents that contain a word pair, up to [`MIN_PAGES`].
    counters: Vec<u8>,
    /// Positions of entries plus one; zero is a free slot. Doubles when it is half full.
    index: Vec<u32>,
    entries: Vec<Entry>,
    /// The number of documents counted so far, and the first document of the current page.
    n_docs: u32,
    page: u32,
    /// The entry of each word pair of the documents counted so far.
    places: Vec<u32>,
}

/// A word pair that may be on enough pages.
#[derive(Clone, Copy)]
struct Entry {
    shingle: u64,
    /// The last document that contains it, from 1.
    doc: u32,
    n_pages: u16,
}

impl SiteTable {
    /// Begins a site with this many tokens.
    pub(super) fn begin(&mut self, n_tokens: u64) {
        let n_tokens = n_tokens as usize;
        let n_counters = (2 * n_tokens).next_power_of_two();
        self.shingles.clear();
        self.shingles.reserve(n_tokens);
        self.counters.clear();
        self.counters
            .resize(n_counters.clamp(MIN_COUNTERS, MAX_COUNTERS), 0);
        self.index.clear();
        self.index.resize(N_SLOTS, 0);
        self.entries.clear();
        self.n_docs = 0;
        self.places.clear();
        self.places.reserve(n_tokens);
    }

    /// Gathers the word pairs of a document, which `write` appends.
    pub(super) fn gather(&mut self, write: impl FnOnce(&mut Vec<u64>)) {
        let start = self.shingles.len();
        write(&mut self.shingles);
        let shift = counter_shift(&self.counters);
        for shingle in &self.shingles[start..] {
            let counter = &mut self.counters[counter_of(*shingle, shift)];
            *counter += u8::from(u32::from(*counter) < MIN_PAGES);
        }
    }

    /// Begins a page; its documents follow.
    pub(super) fn begin_page(&mut self) {
        self.page = self.n_docs + 1;
    }

    /// Counts the word pairs of the next document, when all have been gathered.
    pub(super) fn count(&mut self, places: Range<usize>) {
        self.n_docs += 1;
        let shift = counter_shift(&self.counters);
        let mut next = 0;
        for at in places {
            let shingle = self.shingles[at];
            let place = match self.entries.get(next) {
                Some(entry) if entry.shingle == shingle => next,
                _ if u32::from(self.counters[counter_of(shingle, shift)]) < MIN_PAGES => {
                    self.places.push(NONE);
                    continue;
                }
                _ => self.place(shingle),
            };
            let entry = &mut self.entries[place];
            entry.n_pages += u16::from(entry.doc < self.page);
            entry.doc = self.n_docs;
            self.places.push(place as u32);
            next = place + 1;
        }
    }

    /// Returns the entry of a word pair, and creates it if it is missing.
    fn place(&mut self, shingle: u64) -> usize {
        let at = self.slot(shingle);
        if let Some(place) = (self.index[at] as usize).checked_sub(1) {
            return place;
        }
        let place = self.entries.len();
        self.entries.push(Entry {
            shingle,
            doc: 0,
            n_pages: 0,
        });
        self.index[at] = place as u32 + 1;
        if 2 * self.entries.len() > self.index.len() {
            self.grow();
        }
        place
    }

    /// Returns the slot of a word pair in the index, or the slot where it would be.
    fn slot(&self, shingle: u64) -> usize {
        let mask = self.index.len() - 1;
        let mut at = (shingle.wrapping_mul(GOLDEN) >> 32) as usize & mask;
        loop {
            match self.index[at] {
                0 => return at,
                place if self.entries[place as usize - 1].shingle == shingle => return at,
                _ => at = (at + 1) & mask,
            }
        }
    }

    fn grow(&mut self) {
        let n_slots = 2 * self.index.len();
        self.index.clear();
        self.index.resize(n_slots, 0);
        for place in 0..self.entries.len() {
            let at = self.slot(self.entries[place].shingle);
            self.index[at] = place as u32 + 1;
        }
    }

    /// Returns the word pairs at these positions.
    pub(super) fn shingles(&self, places: Range<usize>) -> &[u64] {
        &self.shingles[places]
    }

    /// Returns, for these positions, the number of other pages of the site that contain the word
    /// pair; zero if they are too few to count.
    pub(super) fn others(&self, places: Range<usize>) -> impl Iterator<Item = Others> {
        self.places[places].iter().map(|&place| match place {
            NONE => 0,
            place => match self.entries[place as usize].n_pages {
                n_pages if u32::from(n_pages) >= MIN_PAGES => n_pages - 1,
                _ => 0,
            },
        })
    }

    /// Returns the word pairs of the site that weigh less than 1, with the number of other pages of
    /// each.
    pub(super) fn framed(&self) -> impl Iterator<Item = (u64, u64)> {
        let entries = self.entries.iter();
        let framed = entries.filter(|entry| u32::from(entry.n_pages) >= MIN_PAGES);
        framed.map(|entry| (entry.shingle, u64::from(entry.n_pages) - 1))
    }
}

/// Returns the shift that leaves the number of a counter.
fn counter_shift(counters: &[u8]) -> u32 {
    64 - counters.len().ilog2()
}

fn counter_of(shingle: u64, shift: u32) -> usize {
    (shingle.wrapping_mul(GOLDEN) >> shift) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use arose::mix::{SplitMix, mix};
    use std::collections::{BTreeMap, BTreeSet};

    /// Several sites through one table: the pages of each word pair equal those of maps.
    #[test]
    fn issue_24_sites_are_counted_one_by_one() {
        let mut table = SiteTable::default();
        let mut random = SplitMix::new(24);
        for n_docs in [1, 30, 7, 60, 4] {
            let docs: Vec<(u64, Vec<u64>)> = (0..n_docs)
                .map(|doc| {
                    let n = random.below(80);
                    let words = (0..n).map(|_| mix(1 + random.below(120)));
                    // Two documents of every third page.
                    (doc - doc % 3 / 2, words.collect())
                })
                .collect();
            // Counters for all of them, or too few.
            table.begin(80 * (n_docs % 2) * n_docs);
            let mut places = Vec::new();
            for (_, doc) in &docs {
                let start = places.last().map_or(0, |places: &Range<usize>| places.end);
                places.push(start..start + doc.len());
                table.gather(|shingles| shingles.extend(doc));
            }
            let mut pages: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
            let mut last = None;
            for ((page, doc), places) in docs.iter().zip(&places) {
                if last.replace(page) != Some(page) {
                    table.begin_page();
                }
                table.count(places.clone());
                for shingle in doc {
                    pages.entry(*shingle).or_default().insert(*page);
                }
            }
            for ((_, doc), places) in docs.iter().zip(places) {
                assert_eq!(table.shingles(places.clone()), doc);
                let expected = doc.iter().map(|shingle| match pages[shingle].len() {
                    n_pages @ 5.. => n_pages as u16 - 1,
                    _ => 0,
                });
                assert!(table.others(places).eq(expected));
            }
            let framed: BTreeMap<u64, u64> = table.framed().collect();
            let expected = pages
                .iter()
                .map(|(&shingle, pages)| (shingle, pages.len() as u64 - 1));
            let expected: BTreeMap<u64, u64> = expected.filter(|(_, n)| *n >= 4).collect();
            assert_eq!(framed, expected);
        }
    }
}
