//! Counts, in memory, the word pairs that the sites of a few documents repeat.
//!
//! A run counts in its stage `sites`, on disk. This module does the same for documents that are in
//! memory anyway: those of a labelled set, or the neighbours of two documents that are compared.
//! Memory: 16 bytes per distinct word pair of a document.

use std::collections::HashMap;

use arose::content::{Content, FREE_PAGES};
use arose::digest::{Digest, digest64};
use arose::site::SiteKind;

use crate::stage::urls::site_digest;
use crate::stage::weigher::{key, salt};

/// Collects documents whose word pairs are to be counted.
#[derive(Debug, Clone)]
pub struct RepeatCounter {
    kind: SiteKind,
    /// A word pair of a site, and a page that contains it.
    records: Vec<[u64; 2]>,
    /// A site and a page of it.
    pages: Vec<[u64; 2]>,
}

impl RepeatCounter {
    /// Creates a counter for sites of this kind.
    #[must_use]
    pub fn new(kind: SiteKind) -> Self {
        Self {
            kind,
            records: Vec::new(),
            pages: Vec::new(),
        }
    }

    /// Adds a document, by its shingles of two tokens. Documents with the same URL are one page.
    /// Documents without a URL form one site, and those with the same digest are one page.
    pub fn push(&mut self, url: Option<&str>, digest: Digest, shingles: &[u64]) {
        let page = url.map_or(digest.0 as u64, |url| digest64(url.as_bytes()));
        let site = site_digest(url, self.kind);
        let salt = salt(site);
        self.pages.push([site, page]);
        let keys = shingles.iter().map(|&shingle| [key(shingle, salt), page]);
        let start = self.records.len();
        self.records.extend(keys);
        self.records[start..].sort_unstable();
        let mut own = self.records.split_off(start);
        own.dedup();
        self.records.append(&mut own);
    }

    /// Counts.
    #[must_use]
    pub fn finish(self) -> Repeats {
        let mut counts = n_pages(self.records);
        counts.retain(|_, n| *n > FREE_PAGES + 1);
        Repeats {
            kind: self.kind,
            counts,
            pages: n_pages(self.pages),
        }
    }
}

/// Returns the number of different second numbers of each first number.
fn n_pages(mut records: Vec<[u64; 2]>) -> HashMap<u64, u64> {
    records.sort_unstable();
    records.dedup();
    let runs = records.chunk_by(|one, other| one[0] == other[0]);
    runs.map(|run| (run[0][0], run.len() as u64)).collect()
}

/// Counts of the text that sites repeat.
#[derive(Debug, Clone)]
pub struct Repeats {
    kind: SiteKind,
    /// The number of pages of word pairs that weigh less than 1.
    counts: HashMap<u64, u64>,
    /// The number of pages of each site.
    pages: HashMap<u64, u64>,
}

impl Repeats {
    /// Returns the number of pages of a document's site.
    #[must_use]
    pub fn n_pages(&self, url: Option<&str>) -> u64 {
        let n_pages = self.pages.get(&site_digest(url, self.kind));
        n_pages.copied().unwrap_or(0)
    }

    /// Returns the content of a document that was counted.
    #[must_use]
    pub fn content(&self, url: Option<&str>, shingles: &[u64]) -> Content {
        let salt = salt(site_digest(url, self.kind));
        Content::of_site(shingles, |shingle| {
            let n_pages = self.counts.get(&key(shingle, salt));
            n_pages.map_or(0, |n| n - 1)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issue_24_pages_are_counted_once() {
        let mut counter = RepeatCounter::new(SiteKind::Registrable);
        let url = |page: u64| format!("http://www.example.org/{page}");
        for page in 0..6 {
            for _ in 0..2 {
                counter.push(Some(&url(page)), Digest(9), &[1, 1, 2, 100 + page]);
            }
        }
        counter.push(Some("http://example.com/"), Digest(9), &[1, 2]);
        for text in [1, 2, 3, 4, 5, 1] {
            counter.push(None, Digest(text), &[1]);
        }
        let repeats = counter.finish();
        let weights =
            |url: Option<&str>, shingles: &[u64]| repeats.content(url, shingles).weights().to_vec();
        // Five other pages: 9 / 25.
        assert_eq!(weights(Some(&url(0)), &[1, 2, 100]), [0.36, 0.36, 1.0]);
        assert_eq!(weights(Some("http://example.com/"), &[1, 2]), [1.0, 1.0]);
        assert_eq!(weights(None, &[1, 2]), [0.5625, 1.0]);
        assert_eq!(repeats.n_pages(Some(&url(7))), 6);
        assert_eq!(repeats.n_pages(None), 5);
        assert_eq!(repeats.n_pages(Some("http://other.net/")), 0);
    }
}
