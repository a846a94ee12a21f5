//! Pages of web archives: the documents among them, and their duplicates.
//!
//! A crawl stores a page that equals an earlier one without its body, in a *revisit* record. Such a
//! page is a document like any other: it is found by its words and its URL, and counted. Its text
//! is read from the record of the original, and is stored in the index once, with the original. A
//! page that was visited again without a change is not another document. A page that has an earlier
//! text again, of itself or of another page, is one: it supersedes the text in between.
//!
//! *Cost.* 120 bytes of memory per page. The text of an exact duplicate takes one more record to
//! read.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use arose_corpus::{Document, DuplicateBody, Position, fetch};
use tantivy::schema::Value;
use tantivy::{Searcher, TantivyDocument};

use crate::Error;
use crate::current::{NO_PAGE, page_of};
use crate::index::address_of;
use crate::rows::{key_in_archive, key_of_return, key_of_revisit, row_in_archive, row_of_revisit};
use crate::schema::Fields;
use crate::search_dir::{SearchDir, State};
use crate::update::IndexedRow;

/// A page and its place in the index.
pub(crate) struct Page {
    pub(crate) row: u64,
    pub(crate) key: u64,
    pub(crate) doc: u64,
    pub(crate) cluster: u64,
    /// The key of the capture whose text it has.
    pub(crate) version: u64,
    /// Whether it is an exact duplicate of the kept page of its cluster.
    pub(crate) is_exact: bool,
    pub(crate) text: PageText,
}

/// The location of the text of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageText {
    /// In its own record.
    Own,
    /// In the record of its original.
    Original(Stored),
    /// In no available record.
    Unknown,
}

/// A page with a text of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) doc: u64,
    cluster: u64,
    row: u64,
    /// The number of its file and its position there; none if the index already has both.
    place: Option<(u32, Position)>,
}

/// The pages of all archives of a directory, as they are read.
pub(crate) struct Pages<'a> {
    folder: &'a SearchDir,
    state: &'a State,
    /// The pages with a text of their own, by key.
    stored: HashMap<u64, Stored>,
    /// The keys of the other pages.
    revisits: HashSet<u64>,
    /// The time and the version of the last capture of each page.
    latest: HashMap<u64, (i64, u64)>,
    n_pages: u64,
}

impl<'a> Pages<'a> {
    /// Starts with the pages that are in the index and need not be read again.
    pub(crate) fn new(folder: &'a SearchDir, state: &'a State, known: &[IndexedRow]) -> Self {
        let stored = known.iter().map(|row| {
            let stored = Stored {
                doc: row.doc,
                cluster: row.cluster,
                row: row.row,
                place: None,
            };
            (row.key, stored)
        });
        let mut latest = HashMap::new();
        for row in known {
            note(&mut latest, row.page, (row.time, row.version));
        }
        Self {
            latest,
            folder,
            state,
            stored: stored.collect(),
            revisits: known.iter().map(|row| row.key).collect(),
            n_pages: known.len() as u64,
        }
    }

    /// Adds the next page, which is in file `number`; none if it is not a new document.
    pub(crate) fn take(&mut self, number: usize, document: &Document) -> Option<Page> {
        let named = document.duplicate_of.as_deref();
        let original = named.and_then(|named| {
            let key = key_in_archive(Some(&named.url), named.fetched);
            self.stored.get(&key).copied()
        });
        let page = page_of(document.url.as_deref());
        let time = document.fetched.unwrap_or_default();
        let taken = match named.filter(|named| named.body != DuplicateBody::Stored) {
            None => self.take_stored(number, document, original),
            Some(named) => {
                let version = key_in_archive(Some(&named.url), named.fetched);
                let is_itself = document.url.as_ref() == Some(&named.url);
                let last = self.latest.get(&page).copied().filter(|_| page != NO_PAGE);
                let is_unchanged = last.is_some_and(|(_, last)| last == version);
                let is_late = last.is_some_and(|(last, _)| time < last);
                // A page itself that has not changed, or whose text nobody has.
                if is_unchanged || is_itself && (is_late || original.is_none()) {
                    return None;
                }
                let is_same = named.body == DuplicateBody::Same;
                let other = original.map_or(version, |original| original.doc);
                let key = key_of_revisit(document.url.as_deref(), other);
                let key = match self.revisits.contains(&key) {
                    true if is_late || page == NO_PAGE => return None,
                    true => key_of_return(key, document.fetched),
                    false => key,
                };
                if !self.revisits.insert(key) {
                    return None;
                }
                let page = self.take_revisit(number, key, original, is_same);
                Page { version, ..page }
            }
        };
        note(&mut self.latest, page, (time, taken.version));
        self.n_pages += 1;
        Some(taken)
    }

    fn take_stored(
        &mut self,
        number: usize,
        document: &Document,
        original: Option<Stored>,
    ) -> Page {
        let doc = self.n_pages;
        let key = key_in_archive(document.url.as_deref(), document.fetched);
        let cluster = original.map_or(doc, |original| original.doc);
        let row = row_in_archive(number as u64, (doc, cluster), document);
        let place = u32::try_from(number).ok();
        self.stored.entry(key).or_insert(Stored {
            doc,
            cluster,
            row,
            place: place.map(|file| (file, document.position)),
        });
        Page {
            row,
            key,
            doc,
            cluster,
            version: key,
            is_exact: false,
            text: PageText::Own,
        }
    }

    fn take_revisit(
        &self,
        number: usize,
        key: u64,
        original: Option<Stored>,
        is_same: bool,
    ) -> Page {
        let doc = self.n_pages;
        let text = match original {
            Some(original) if is_same => PageText::Original(original),
            _ => PageText::Unknown,
        };
        let cluster = original.map_or(doc, |original| original.cluster);
        let row = original.filter(|_| is_same).map(|original| original.row);
        Page {
            row: row_of_revisit(number as u64, (key, doc), cluster, row),
            key,
            doc,
            cluster,
            version: key,
            // A page that equals a near duplicate of the kept page is itself a near duplicate.
            is_exact: is_same && original.is_some_and(|original| original.doc == cluster),
            text,
        }
    }

    /// Reads a page that others duplicate; none if its record does not exist any more.
    pub(crate) fn read(
        &self,
        stored: Stored,
        searcher: &Searcher,
        fields: &Fields,
    ) -> Result<Option<Document>, Error> {
        let place = match stored.place {
            Some((file, position)) => {
                let file = &self.state.0[file as usize];
                Some((file.path().to_owned(), position))
            }
            None => self.place_of(stored.doc, searcher, fields)?,
        };
        let Some((file, position)) = place else {
            return Ok(None);
        };
        let mut found = fetch(&file, &[position], &self.folder.reading())?;
        Ok(found.pop().flatten())
    }

    /// The position of the record of a page, as stored in the index.
    fn place_of(
        &self,
        doc: u64,
        searcher: &Searcher,
        fields: &Fields,
    ) -> Result<Option<(PathBuf, Position)>, Error> {
        let path = self.folder.index_path();
        let damaged = Error::index(&path);
        let Some(address) = address_of(doc, searcher, fields).map_err(&damaged)? else {
            return Ok(None);
        };
        let row: TantivyDocument = searcher.doc(address).map_err(&damaged)?;
        let text = |field| row.get_first(field).and_then(|value| value.as_str());
        let source = text(fields.source).map(|source| self.folder.base.join(source));
        let position = text(fields.position).and_then(Position::parse);
        Ok(source.zip(position))
    }
}

/// Takes down a capture of a page, with its time and version.
fn note(latest: &mut HashMap<u64, (i64, u64)>, page: u64, capture: (i64, u64)) {
    let last = latest.entry(page).or_insert(capture);
    if capture.0 >= last.0 {
        *last = capture;
    }
}
