//! Counts of the text that one site repeats, in a table that fits into the cache.
//!
//! Documents of a site are processed one after the other, with those of one page adjacent. For each
//! word pair, the table has the number of pages that contain it, and its occurrences in the current
//! document. Word pairs are in the order of their first occurrence. So text that a site repeats
//! passes through the table from one entry to the next, and most entries are found without a lookup
//! in the index.

use arose::content::element;
use arose::mix::GOLDEN;

use super::counts::MIN_PAGES;
use super::weigher::Others;

/// Maximum number of documents of a site that can be counted, and of word pairs of each: the
/// capacity of an entry.
pub(super) const MAX_COUNT: u32 = u16::MAX as u32;

/// Minimum number of slots of the index.
const N_SLOTS: usize = 1 << 12;

/// Counts the word pairs of one site after the other.
#[derive(Default)]
pub(super) struct SiteTable {
    /// Positions of entries plus one; zero is a free slot. Doubles when it is half full.
    index: Vec<u32>,
    entries: Vec<Entry>,
    /// The number of documents of the site so far, and the first document of the current page.
    n_docs: u32,
    page: u32,
    /// Word pairs of all documents, with the number of their earlier occurrences ([`element`]).
    pub(super) elements: Vec<u64>,
    /// The entry of each.
    places: Vec<u32>,
}

/// A word pair of a site.
#[derive(Clone, Copy)]
struct Entry {
    shingle: u64,
    /// The last document that contains it, from 1.
    doc: u32,
    n_in_doc: u16,
    n_pages: u16,
}

impl SiteTable {
    /// Begins a site with this many tokens. Most sites repeat little, so the index gets room for
    /// nearly as many word pairs at once. Doubling it again and again takes longer.
    pub(super) fn begin(&mut self, n_tokens: u64) {
        let n_slots = (3 * n_tokens as usize / 2).next_power_of_two();
        self.index.clear();
        self.index.resize(n_slots.max(N_SLOTS), 0);
        self.entries.clear();
        self.n_docs = 0;
        self.elements.clear();
        self.places.clear();
    }

    /// Begins a page; its documents follow.
    pub(super) fn begin_page(&mut self) {
        self.page = self.n_docs + 1;
    }

    /// Counts the word pairs of a document.
    pub(super) fn add(&mut self, shingles: &[u64]) {
        self.n_docs += 1;
        self.elements.reserve(shingles.len());
        self.places.reserve(shingles.len());
        let mut next = 0;
        for &shingle in shingles {
            let place = match self.entries.get(next) {
                Some(entry) if entry.shingle == shingle => next,
                _ => self.place(shingle),
            };
            let n_before = self.count(place);
            self.elements.push(element(shingle, n_before));
            self.places.push(place as u32);
            next = place + 1;
        }
    }

    /// Counts a word pair. Returns the number of its earlier occurrences in the document.
    #[inline]
    fn count(&mut self, place: usize) -> u64 {
        let entry = &mut self.entries[place];
        if entry.doc == self.n_docs {
            entry.n_in_doc += 1;
            return u64::from(entry.n_in_doc) - 1;
        }
        entry.n_pages += u16::from(entry.doc < self.page);
        (entry.doc, entry.n_in_doc) = (self.n_docs, 1);
        0
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
            n_in_doc: 0,
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

    /// Returns the number of other pages of the site that contain the word pair at a position; zero
    /// if they are too few to count.
    pub(super) fn n_others(&self, position: usize) -> Others {
        let n_pages = self.entries[self.places[position] as usize].n_pages;
        match u32::from(n_pages) >= MIN_PAGES {
            true => n_pages - 1,
            false => 0,
        }
    }

    /// Returns the word pair at a position.
    pub(super) fn shingle(&self, position: usize) -> u64 {
        self.entries[self.places[position] as usize].shingle
    }

    /// Returns the word pairs of the site that weigh less than 1, with the number of other pages of
    /// each.
    pub(super) fn framed(&self) -> impl Iterator<Item = (u64, u64)> {
        let entries = self.entries.iter();
        let framed = entries.filter(|entry| u32::from(entry.n_pages) >= MIN_PAGES);
        framed.map(|entry| (entry.shingle, u64::from(entry.n_pages) - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arose::content::Content;
    use arose::mix::{SplitMix, mix};
    use std::collections::{BTreeMap, BTreeSet};

    /// Several sites through one table: pages and occurrences equal those of maps and contents.
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
            // Room for all of them, or for a few.
            table.begin(80 * (n_docs % 2) * n_docs);
            let mut pages: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
            let mut last = None;
            for (page, doc) in &docs {
                if last.replace(page) != Some(page) {
                    table.begin_page();
                }
                table.add(doc);
                for shingle in doc {
                    pages.entry(*shingle).or_default().insert(*page);
                }
            }
            let mut place = 0;
            for (_, doc) in &docs {
                let mut elements = table.elements[place..][..doc.len()].to_vec();
                let expected: BTreeSet<u64> = Content::new(doc)
                    .elements()
                    .map(|(element, _)| element)
                    .collect();
                elements.sort_unstable();
                assert_eq!(elements, expected.into_iter().collect::<Vec<_>>());
                for &shingle in doc {
                    let n_pages = pages[&shingle].len() as u16;
                    let n_others = if n_pages >= 5 { n_pages - 1 } else { 0 };
                    assert_eq!(table.n_others(place), n_others);
                    assert_eq!(table.shingle(place), shingle);
                    place += 1;
                }
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
