//! Counts of repeated text: the number of other pages of its site that contain each word pair of a
//! document.
//!
//! Only the policy `content` needs these. A page is a URL, however often it occurs. Documents
//! without a URL form one site, in which each text is a page, however often it occurs. On sites
//! with fewer than [`MIN_PAGES`] pages, repeated text does not count ([`arose::content::weight`]).
//!
//! Documents are processed site by site. The word pairs of a site are counted in tables that fit
//! into the cache ([`SiteTable`]). The counts are used immediately for the marks of its documents
//! ([`Marks`]), by which candidates are found. They are also written as the number of other pages
//! of every word pair, from which verification computes its weights. Sites that are too large for
//! this are counted together afterwards ([`large_sites`](super::large_sites)), with the same
//! result. With [`SiteCounts::Sampled`](crate::config::SiteCounts::Sampled), one shingle in 16 is
//! counted, and every position of a text uses the count of the nearest counted one.
//!
//! Disk: 16 bytes per word pair of a site that enough pages contain, 2 per word pair of a document
//! with such a word pair, the marks per document, and 40 per document while they are sorted.
//! Memory: an eighth of the allowance for the sorter, and a quarter for the current sites.

use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use arose::content::weight;
use arose::digest::digest64;
use bytemuck::{Pod, Zeroable};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::large_sites::{self, LARGE_COUNTS, Large};
use super::sequences::Sequences;
use super::site_table::{MAX_COUNT, SiteTable};
use crate::column::{Column, Scan, Slots};
use crate::config::Config;
use crate::dictionary::{TokenColumn, TokenPlace};
use crate::lookup::Flags;
use crate::marks::{MarkRoom, Marker, Marks};
use crate::names::NameScan;
use crate::record::{DocRecord, Ordinal};
use crate::sorter::{Sorted, Sorter};
use crate::stage::columns::{DOCS, SITES};
use crate::stage::counts::{Framed, MIN_PAGES};
use crate::stage::weigher::{Others, Weigher, key, salt};
use crate::{Error, Progress};

/// The marks of each document.
pub(crate) const MARKS: &str = "marks";
/// The word pairs of sites that enough pages contain, by key.
pub(crate) const COUNTS: &str = "counts";
/// For each token of the input, the number of other pages of its site that contain the word pair
/// starting with it.
const OTHERS: &str = "others";

/// Number of tokens of sites that a thread processes at once.
const LOT_TOKENS: u64 = 1 << 17;
/// Maximum number of tokens of a site that is counted in the cache.
const SITE_TOKENS: u64 = 1 << 20;
/// Maximum bytes of memory per token of a site: a word pair and its place, four counters, an entry
/// of the table, and the spare capacity of growing vectors.
const BYTES_PER_TOKEN: u64 = 76;

/// The results of the stage.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct SiteResults {
    /// Number of sites with enough pages. Documents without a URL are one site.
    pub(crate) n_sites: u64,
    /// Number of their pages.
    pub(crate) n_pages: u64,
    /// Number of word pairs of sites that weigh less than 1.
    pub(crate) n_framed: u64,
}

/// Counts the text that sites repeat and writes counts and marks to `folder`. There are marks only
/// of the active documents.
pub(crate) fn run(
    read: &Path,
    n_tokens: u64,
    active: &Flags,
    config: &Config,
    folder: &Path,
    progress: &Progress,
) -> Result<SiteResults, Error> {
    let mut found = SiteResults::default();
    progress.expect(2 * active.len() as u64);
    let tokens = TokenColumn::open(read)?;
    let sketches = Sketches::create(active, tokens.n_units()?, config, folder)?;
    let mut lots = Lots {
        docs: sort_by_site(read, config, folder, progress)?,
        next: None,
        large: Large::new(active.len(), config, folder),
        max_tokens: max_tokens(config),
    };
    let mut counts = Sorter::new(&folder.join("framed"), config.part(8));
    let n_lots = 2 * rayon::current_num_threads();
    loop {
        let made = (0..n_lots).map(|_| lots.next_lot(&mut found));
        let made = made.collect::<Result<Vec<_>, Error>>()?;
        let made: Vec<Lot> = made.into_iter().flatten().collect();
        if made.is_empty() {
            break;
        }
        let framed = made.par_iter().map(|lot| sketches.lot(lot, &tokens));
        for framed in framed.collect::<Vec<_>>() {
            counts.extend(&framed?)?;
        }
        let sites = made.iter().flatten();
        progress.advance(sites.map(|site| site.docs.len() as u64).sum())?;
    }
    let Lots { docs, large, .. } = lots;
    drop(docs);
    progress.advance(large.n_docs())?;
    if let Some(pages) = large.finish()? {
        large_sites::run(&pages, read, n_tokens, &sketches, config, progress)?;
        let mut framed = Scan::<Framed>::open(&folder.join(LARGE_COUNTS))?;
        while let Some(framed) = framed.next()? {
            counts.push(framed)?;
        }
    }
    found.n_framed = counts.write(&folder.join(COUNTS))?;
    Ok(found)
}

/// Returns the maximum number of tokens of a site that is counted in the cache.
fn max_tokens(config: &Config) -> u64 {
    let n_threads = rayon::current_num_threads() as u64;
    (config.part(4) / n_threads / BYTES_PER_TOKEN).min(SITE_TOKENS)
}

/// A document under its site and its page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct SiteDoc {
    site: u64,
    url: u64,
    tokens_at: u64,
    doc: Ordinal,
    n_tokens: u32,
    n_literals: u32,
    dictionary: u32,
}

impl SiteDoc {
    fn tokens(&self) -> TokenPlace {
        TokenPlace {
            at: self.tokens_at,
            n_tokens: self.n_tokens,
            n_literals: self.n_literals,
            dictionary: self.dictionary as u16,
        }
    }
}

/// Sorts all documents by site, page and ordinal.
fn sort_by_site(
    read: &Path,
    config: &Config,
    folder: &Path,
    progress: &Progress,
) -> Result<Sorted<SiteDoc>, Error> {
    let mut docs = Sorter::new(&folder.join("docs"), config.part(8));
    let mut sites = Scan::<u64>::open(&read.join(SITES))?;
    let mut records = Scan::<DocRecord>::open(&read.join(DOCS))?;
    let mut names = NameScan::open(read)?;
    let mut doc = 0;
    while let (Some(site), Some(record)) = (sites.next()?, records.next()?) {
        let url = names.next()?.url;
        docs.push(SiteDoc {
            site,
            url: page_of(url.as_deref(), &record),
            doc: doc as Ordinal,
            n_tokens: record.n_tokens,
            tokens_at: record.tokens_at,
            n_literals: record.n_literals,
            dictionary: record.dictionary.into(),
        })?;
        doc += 1;
        progress.advance(1)?;
    }
    docs.finish()
}

/// Returns the page of a document: its URL, or its text if it has none.
pub(crate) fn page_of(url: Option<&str>, record: &DocRecord) -> u64 {
    match url {
        Some(url) => digest64(url.as_bytes()),
        None => record.digest[0],
    }
}

/// Sites that a thread processes at once.
type Lot = Vec<Site>;

/// The documents of a site, with those of one page adjacent.
#[derive(Default)]
struct Site {
    docs: Vec<SiteDoc>,
    n_tokens: u64,
    n_pages: u64,
}

impl Site {
    /// Returns the documents, and the positions of their word pairs among all of the site.
    fn places(&self) -> impl Iterator<Item = (&SiteDoc, Range<usize>)> {
        self.docs.iter().scan(0, |end, doc| {
            let start = *end;
            *end += n_shingles(doc.n_tokens);
            Some((doc, start..*end))
        })
    }
}

/// Divides the documents into batches.
struct Lots<'a> {
    docs: Sorted<SiteDoc>,
    /// The next document, already read.
    next: Option<SiteDoc>,
    /// The destination of sites that are too large.
    large: Large<'a>,
    max_tokens: u64,
}

impl Lots<'_> {
    /// Returns the next sites; none at the end.
    fn next_lot(&mut self, found: &mut SiteResults) -> Result<Option<Lot>, Error> {
        let (mut lot, mut n_tokens) = (Lot::new(), 0);
        while n_tokens < LOT_TOKENS
            && let Some(site) = self.next_site(found)?
        {
            // Sites with few words also take time.
            n_tokens += site.n_tokens + site.docs.len() as u64;
            lot.push(site);
        }
        Ok((!lot.is_empty()).then_some(lot))
    }

    /// Returns the next site that is not too large.
    fn next_site(&mut self, found: &mut SiteResults) -> Result<Option<Site>, Error> {
        loop {
            let first = match self.next.take() {
                Some(next) => Some(next),
                None => self.docs.next()?,
            };
            let Some(first) = first else {
                return Ok(None);
            };
            let (mut site, mut is_large) = (Site::default(), false);
            let (mut last, mut next) = (None, Some(first));
            while let Some(doc) = next.filter(|doc| doc.site == first.site) {
                let is_new = last.replace(doc.url) != Some(doc.url);
                site.n_pages += u64::from(is_new);
                site.n_tokens += u64::from(doc.n_tokens);
                site.docs.push(doc);
                is_large |= site.n_tokens > self.max_tokens || site.docs.len() > MAX_COUNT as usize;
                if is_large {
                    let pages = site.docs.drain(..).map(|doc| (doc.url, doc.doc));
                    self.large.extend(pages)?;
                }
                next = self.docs.next()?;
            }
            self.next = next;
            if site.n_pages >= MIN_PAGES.into() {
                found.n_sites += 1;
                found.n_pages += site.n_pages;
            }
            if !is_large {
                return Ok(Some(site));
            }
            self.large.end_site();
        }
    }
}

/// Writes the marks of active documents, and the number of other pages of their word pairs.
pub(super) struct Sketches<'a> {
    active: &'a Flags,
    pub(super) folder: &'a Path,
    pub(super) weigher: Weigher,
    marker: Marker,
    marks: Slots<Marks>,
    others: Slots<Others>,
    /// Memory that threads return for reuse.
    spare: Mutex<Vec<(SiteTable, SketchRoom)>>,
}

impl<'a> Sketches<'a> {
    fn create(
        active: &'a Flags,
        n_units: u64,
        config: &Config,
        folder: &'a Path,
    ) -> Result<Self, Error> {
        Ok(Self {
            active,
            folder,
            weigher: Weigher::new(config),
            marker: Marker::new(config),
            marks: Slots::create(&folder.join(MARKS), active.len() as u64)?,
            others: Slots::create(&folder.join(OTHERS), n_units)?,
            spare: Mutex::default(),
        })
    }

    pub(super) fn is_active(&self, doc: Ordinal) -> bool {
        self.active.is_set(doc as usize)
    }

    /// Counts and sketches these sites. Returns their word pairs that weigh less than 1.
    fn lot(&self, lot: &[Site], tokens: &TokenColumn) -> Result<Vec<Framed>, Error> {
        let (mut table, mut room) = self.spare().pop().unwrap_or_default();
        let mut framed = Vec::new();
        for site in lot {
            if site.n_pages < MIN_PAGES.into() {
                self.sketch_unframed(site, tokens, &mut room)?;
                continue;
            }
            self.count(site, tokens, &mut table, &mut room)?;
            for (doc, places) in site.places() {
                if self.is_active(doc.doc) {
                    let shingles = table.shingles(places.clone());
                    room.others.clear();
                    room.others.extend(table.others(places));
                    self.weigher.sample(shingles, &mut room.others);
                    let place = (doc.doc, doc.tokens_at);
                    self.sketch(place, shingles, &room.others, &mut room.marks)?;
                }
            }
            let salt = salt(site.docs.first().map_or(0, |doc| doc.site));
            let counted = table.framed();
            let counted = counted.filter(|(shingle, _)| self.weigher.counts(*shingle));
            framed.extend(counted.map(|(shingle, n_others)| Framed {
                key: key(shingle, salt),
                n_others,
            }));
        }
        self.spare().push((table, room));
        Ok(framed)
    }

    fn spare(&self) -> MutexGuard<'_, Vec<(SiteTable, SketchRoom)>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the text that a site repeats.
    fn count(
        &self,
        site: &Site,
        tokens: &TokenColumn,
        table: &mut SiteTable,
        room: &mut SketchRoom,
    ) -> Result<(), Error> {
        table.begin(site.n_tokens);
        for doc in &site.docs {
            room.tokens.clear();
            tokens.read(&doc.tokens(), &mut room.tokens)?;
            table.gather(|shingles| self.weigher.shingles_into(&room.tokens, shingles));
        }
        let mut last = None;
        for (doc, places) in site.places() {
            if last.replace(doc.url) != Some(doc.url) {
                table.begin_page();
            }
            table.count(places);
        }
        Ok(())
    }

    /// Sketches the active documents of a site with too few pages to repeat text.
    fn sketch_unframed(
        &self,
        site: &Site,
        tokens: &TokenColumn,
        room: &mut SketchRoom,
    ) -> Result<(), Error> {
        for doc in site.docs.iter().filter(|doc| self.is_active(doc.doc)) {
            room.tokens.clear();
            tokens.read(&doc.tokens(), &mut room.tokens)?;
            room.shingles.clear();
            self.weigher.shingles_into(&room.tokens, &mut room.shingles);
            room.others.clear();
            room.others.resize(room.shingles.len(), 0);
            let place = (doc.doc, doc.tokens_at);
            self.sketch(place, &room.shingles, &room.others, &mut room.marks)?;
        }
        Ok(())
    }

    /// Sketches a document, given the number of other pages of each word pair.
    pub(super) fn sketch(
        &self,
        (doc, tokens_at): (Ordinal, u64),
        shingles: &[u64],
        others: &[Others],
        room: &mut MarkRoom,
    ) -> Result<(), Error> {
        let marks = self.marker.marks_of_shingles(shingles, others, room);
        self.write(doc, tokens_at, &marks, others)
    }

    fn write(
        &self,
        doc: Ordinal,
        tokens_at: u64,
        marks: &Marks,
        others: &[Others],
    ) -> Result<(), Error> {
        self.marks.write(doc.into(), std::slice::from_ref(marks))?;
        // Positions that are not written are zero.
        if others.iter().any(|&n| n > 0) {
            self.others.write(tokens_at, others)?;
        }
        Ok(())
    }
}

/// Reused memory.
#[derive(Default)]
struct SketchRoom {
    tokens: Vec<u64>,
    shingles: Vec<u64>,
    others: Vec<Others>,
    marks: MarkRoom,
}

/// Returns the word pairs of a document. A document with a single token has one.
fn n_shingles(n_tokens: u32) -> usize {
    match n_tokens {
        0 | 1 => n_tokens as usize,
        n => n as usize - 1,
    }
}

/// Weighs the word pairs of documents by how often their sites repeat them.
pub(crate) struct Frames {
    weigher: Weigher,
    others: Column<Others>,
}

/// Reused memory.
#[derive(Default)]
pub(crate) struct Room {
    shingles: Vec<u64>,
    others: Vec<Others>,
}

impl Frames {
    /// Opens the results of the stage in `folder`.
    pub(crate) fn open(folder: &Path, config: &Config) -> Result<Self, Error> {
        Ok(Self {
            weigher: Weigher::new(config),
            others: Column::open(&folder.join(OTHERS), 0)?,
        })
    }

    /// Adds a document, whose tokens are at this position of the input, to the compared documents.
    pub(super) fn push(
        &self,
        tokens_at: u64,
        tokens: &[u64],
        room: &mut Room,
        sequences: &mut Sequences,
    ) -> Result<(), Error> {
        self.weigher.shingle(tokens, &mut room.shingles);
        room.others.resize(room.shingles.len(), 0);
        self.others.read_into(tokens_at, &mut room.others)?;
        let weights = room.others.iter().map(|&n| weight(n.into()));
        sequences.push(&room.shingles, weights.collect());
        Ok(())
    }
}
