//! Counts of repeated text for sites that are too large for memory, processed together.
//!
//! Most word pairs are on few pages. A first pass counts them in a table of small counters. Several
//! word pairs may share a counter, so the counts are never too low. Only word pairs that may be on
//! enough pages are processed further. A second pass counts the pages of these word pairs in memory
//! ([`PageCounts`]). If they do not fit, every word pair of a page becomes a record of its site,
//! its words and its page, sorted on disk. Those on many pages are counted, and the counts are
//! sorted back to the documents: a document gets the list of its *frame*, the word pairs that weigh
//! less than one. Both ways are exact and give the same result.

use std::path::Path;

use bytemuck::{Pod, Zeroable};
use rayon::prelude::*;

use crate::column::{Column, Scan, Writer};
use crate::config::Config;
use crate::lookup::Flags;
use crate::marks::MarkRoom;
use crate::record::Ordinal;
use crate::sorter::Sorter;
use crate::stage::counts::{CountTable, Counters, Framed, MIN_PAGES, PageCounts, PageKeys};
use crate::stage::site_texts::Texts;
use crate::stage::sites::Sketches;
use crate::stage::weigher::{Others, Weigher, key, others, salt};
use crate::{Error, Progress};

/// A document and its page, identified by the first document of the page.
pub(super) type PageOf = [Ordinal; 2];

/// The documents of large sites, by ordinal.
pub(super) const PAGES: &str = "pages";
/// Their word pairs that enough pages contain, by key.
pub(super) const LARGE_COUNTS: &str = "large_counts";
/// The frames of all documents, one after the other; only if the counts do not fit in memory.
const FRAMES: &str = "frames";
/// Where the frame of each document begins, and where the last one ends.
const FRAMES_AT: &str = "frames_at";

/// A word pair of a site on one of its pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Posting {
    key: u64,
    page: Ordinal,
    doc: Ordinal,
}

/// Collects the documents of large sites.
pub(super) struct Large<'a> {
    folder: &'a Path,
    pages: Sorter<PageOf>,
    is_shared: Flags,
    n_docs: u64,
    /// The URL of the last document, and the first document of its page.
    last: Option<(u64, Ordinal)>,
}

impl<'a> Large<'a> {
    pub(super) fn new(n_docs: usize, config: &Config, folder: &'a Path) -> Self {
        Self {
            folder,
            pages: Sorter::new(&folder.join("pages"), config.part(8)),
            is_shared: Flags::new(n_docs),
            n_docs: 0,
            last: None,
        }
    }

    /// Adds documents of a site with the digests of their URLs. Documents of one page must be
    /// adjacent.
    pub(super) fn extend(
        &mut self,
        mut docs: impl Iterator<Item = (u64, Ordinal)>,
    ) -> Result<(), Error> {
        docs.try_for_each(|(url, doc)| {
            let first = match self.last {
                Some((last, first)) if last == url => {
                    self.is_shared.set(first as usize);
                    first
                }
                _ => doc,
            };
            self.last = Some((url, first));
            self.n_docs += 1;
            self.pages.push([doc, first])
        })
    }

    /// Ends a site: the next document belongs to another.
    pub(super) fn end_site(&mut self) {
        self.last = None;
    }

    /// Returns the number of documents added.
    pub(super) fn n_docs(&self) -> u64 {
        self.n_docs
    }

    /// Returns, for the first document of each page, whether the page has several documents; none
    /// if there are no documents.
    pub(super) fn finish(self) -> Result<Option<Flags>, Error> {
        if self.n_docs == 0 {
            return Ok(None);
        }
        self.pages.write(&self.folder.join(PAGES))?;
        Ok(Some(self.is_shared))
    }
}

/// Counts the text that the large sites repeat, writes [`LARGE_COUNTS`], and sketches their
/// documents.
pub(super) fn run(
    is_shared: &Flags,
    read: &Path,
    n_tokens: u64,
    sketches: &Sketches<'_>,
    config: &Config,
    progress: &Progress,
) -> Result<(), Error> {
    let pages = Pages {
        read,
        folder: sketches.folder,
        weigher: &sketches.weigher,
        config,
        progress,
        is_shared,
    };
    let n_docs = is_shared.len();
    progress.expect(3 * n_docs as u64);
    let counters = Counters::new(n_tokens, config.part(8));
    pages.for_each(
        |_, keys, room: &mut Vec<u32>| counters.add(keys, room),
        |_| Ok(true),
    )?;
    match pages.count_in_memory(&counters)? {
        Some(counts) => drop(counts.write(&sketches.folder.join(LARGE_COUNTS))?),
        None => pages.count_on_disk(&counters, n_docs)?,
    }
    drop(counters);
    pages.sketch(sketches)
}

/// The documents of large sites.
struct Pages<'a> {
    read: &'a Path,
    folder: &'a Path,
    weigher: &'a Weigher,
    config: &'a Config,
    progress: &'a Progress,
    /// For the first document of each page: whether the page has other documents.
    is_shared: &'a Flags,
}

/// A document and its text.
struct PageText<'a> {
    page: PageOf,
    site: u64,
    tokens_at: u64,
    tokens: &'a [u64],
}

impl Pages<'_> {
    /// Calls `take` with every document and the keys of its word pairs, on all threads. Calls `put`
    /// with the results of some blocks of documents, in order, until it asks to stop. Returns
    /// whether it never did.
    fn for_each<T: Default + Send>(
        &self,
        take: impl Fn(PageOf, &mut Vec<u64>, &mut T) + Sync,
        put: impl FnMut(Vec<T>) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        #[derive(Default)]
        struct Made<T> {
            made: T,
            shingles: Vec<u64>,
            keys: Vec<u64>,
        }
        let mut put = put;
        self.for_each_text(
            |text, room: &mut Made<T>| {
                let Made {
                    made,
                    shingles,
                    keys,
                } = room;
                self.weigher.shingle(text.tokens, shingles);
                let salt = salt(text.site);
                let counted = shingles.iter().filter(|one| self.weigher.counts(**one));
                keys.clear();
                keys.extend(counted.map(|&shingle| key(shingle, salt)));
                take(text.page, keys, made);
                Ok(())
            },
            |made| put(made.into_iter().map(|made| made.made).collect()),
        )
    }

    /// As [`Pages::for_each`], with the text of every document.
    fn for_each_text<T: Default + Send>(
        &self,
        take: impl Fn(PageText<'_>, &mut T) -> Result<(), Error> + Sync,
        mut put: impl FnMut(Vec<T>) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        let mut pages = Scan::<PageOf>::open(&self.folder.join(PAGES))?;
        let mut texts = Texts::open(self.read)?;
        let mut next = pages.next()?;
        while let Some(blocks) = texts.next_blocks()? {
            let mut own = Vec::new();
            while let Some(page) = next.filter(|page| page[0] < blocks.end) {
                own.push(page);
                next = pages.next()?;
            }
            let made = blocks.blocks.par_iter().map(|block| {
                let from = own.partition_point(|[doc, _]| *doc < block.docs.start);
                let n = own[from..].partition_point(|[doc, _]| *doc < block.docs.end);
                let mut made = T::default();
                if n == 0 {
                    return Ok(made);
                }
                let text = texts.load(block)?;
                for &page in &own[from..from + n] {
                    let text = PageText {
                        page,
                        site: text.site(page[0]),
                        tokens_at: text.tokens_at(page[0]),
                        tokens: text.tokens(page[0]),
                    };
                    take(text, &mut made)?;
                }
                Ok(made)
            });
            let made = made.collect::<Result<Vec<T>, Error>>()?;
            self.progress.advance(blocks.n_docs())?;
            if !put(made)? {
                let n_left = self.is_shared.len() as u64 - u64::from(blocks.end);
                self.progress.advance(n_left)?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Sketches the active documents.
    fn sketch(&self, sketches: &Sketches<'_>) -> Result<(), Error> {
        let frames = Frames::open(self.folder, self.weigher, self.config)?;
        self.for_each_text(
            |text, (room, marks): &mut (Room, MarkRoom)| {
                if !sketches.is_active(text.page[0]) {
                    return Ok(());
                }
                frames.count(&text, room)?;
                let place = (text.page[0], text.tokens_at);
                sketches.sketch(place, &room.shingles, &room.others, marks)
            },
            |_| Ok(true),
        )?;
        Ok(())
    }

    /// Returns the number of pages of each word pair that may be on enough pages; none if they do
    /// not fit into memory.
    fn count_in_memory(&self, counters: &Counters) -> Result<Option<PageCounts>, Error> {
        let mut counts = PageCounts::new(self.config.part(8));
        // Pages of several documents are counted when all of these are known.
        let mut shared = Sorter::<[u64; 2]>::new(&self.folder.join("shared"), self.config.part(8));
        let all = self.for_each(
            |[_, page], keys, (list, shared): &mut (PageKeys, Vec<[u64; 2]>)| {
                keys.retain(|&key| counters.may_be_framed(key));
                match self.is_shared.is_set(page as usize) {
                    false => list.push(keys),
                    true => shared.extend(keys.iter().map(|&key| [key, page.into()])),
                }
            },
            |made| {
                let (lists, records): (Vec<_>, Vec<_>) = made.into_iter().unzip();
                for records in &records {
                    shared.extend(records)?;
                }
                Ok(counts.add(&lists))
            },
        )?;
        if !all {
            return Ok(None);
        }
        let (mut shared, mut last) = (shared.finish()?, None);
        while let Some(record) = shared.next()? {
            if last.replace(record) != Some(record) && !counts.add_one(record[0]) {
                return Ok(None);
            }
        }
        Ok(Some(counts))
    }

    /// Counts the pages of each word pair that may be on enough pages, and writes the frames of
    /// `n_docs` documents.
    fn count_on_disk(&self, counters: &Counters, n_docs: usize) -> Result<(), Error> {
        let (folder, config) = (self.folder, self.config);
        let mut postings = Sorter::new(&folder.join("postings"), config.part(4));
        self.progress.expect(n_docs as u64);
        self.for_each(
            |[doc, page], keys, list: &mut Vec<Posting>| {
                keys.retain(|&key| counters.may_be_framed(key));
                keys.sort_unstable();
                keys.dedup();
                list.extend(keys.iter().map(|&key| Posting { key, page, doc }));
            },
            |lists| {
                for list in &lists {
                    postings.extend(list)?;
                }
                Ok(true)
            },
        )?;
        let counted = find_framed(postings, config, folder)?;
        write_frames(counted, n_docs, folder)
    }
}

/// A word pair in the frame of a document: the document, the two halves of the key, and the number
/// of other pages that contain it.
type Counted = [u32; 4];

/// Returns the word pairs that enough pages contain, with each document that contains them.
fn find_framed(
    postings: Sorter<Posting>,
    config: &Config,
    folder: &Path,
) -> Result<Sorter<Counted>, Error> {
    let mut postings = postings.finish()?;
    let mut counted = Sorter::new(&folder.join("counted"), config.part(4));
    let mut counts = Writer::create(&folder.join(LARGE_COUNTS))?;
    let mut docs: Vec<Ordinal> = Vec::new();
    let mut next = postings.next()?;
    while let Some(Posting { key, .. }) = next {
        docs.clear();
        let (mut n_pages, mut last) = (0, None);
        while let Some(posting) = next.filter(|next| next.key == key) {
            n_pages += u32::from(last.replace(posting.page) != Some(posting.page));
            docs.push(posting.doc);
            next = postings.next()?;
        }
        if n_pages >= MIN_PAGES {
            let n_others = n_pages - 1;
            counts.push(&Framed {
                key,
                n_others: n_others.into(),
            })?;
            for &doc in &docs {
                counted.push([doc, (key >> 32) as u32, key as u32, n_others])?;
            }
        }
    }
    counts.finish()?;
    Ok(counted)
}

/// Writes the frames of `n_docs` documents.
fn write_frames(counted: Sorter<Counted>, n_docs: usize, folder: &Path) -> Result<(), Error> {
    let mut counted = counted.finish()?;
    let mut frames = Writer::create(&folder.join(FRAMES))?;
    let mut starts = Writer::create(&folder.join(FRAMES_AT))?;
    let mut next = counted.next()?;
    for doc in 0..n_docs as Ordinal {
        starts.push(&frames.len())?;
        while let Some([_, high, low, n_others]) = next.filter(|next| next[0] == doc) {
            let key = u64::from(high) << 32 | u64::from(low);
            let n_others = n_others.into();
            frames.push(&Framed { key, n_others })?;
            next = counted.next()?;
        }
    }
    starts.push(&frames.len())?;
    starts.finish()?;
    frames.finish().map(drop)
}

/// Finds the number of other pages of the word pairs of documents.
struct Frames<'a> {
    weigher: &'a Weigher,
    counts: CountSource,
}

/// The source of the numbers of other pages of a word pair.
enum CountSource {
    Memory(CountTable),
    Disk {
        starts: Column<u64>,
        frames: Column<Framed>,
    },
}

/// The word pairs of a document, and reused memory.
#[derive(Default)]
struct Room {
    /// In text order.
    shingles: Vec<u64>,
    others: Vec<Others>,
    keys: Vec<u64>,
    frame: Vec<Framed>,
}

impl<'a> Frames<'a> {
    fn open(folder: &Path, weigher: &'a Weigher, config: &Config) -> Result<Self, Error> {
        let frames = folder.join(FRAMES);
        let counts = match frames.exists() {
            false => CountSource::Memory(CountTable::open(&folder.join(LARGE_COUNTS))?),
            true => CountSource::Disk {
                starts: Column::open(&folder.join(FRAMES_AT), config.part(32))?,
                frames: Column::open(&frames, config.part(16))?,
            },
        };
        Ok(Self { weigher, counts })
    }

    /// Finds the shingles of a document and the number of other pages of each.
    fn count(&self, text: &PageText<'_>, room: &mut Room) -> Result<(), Error> {
        let Room {
            shingles,
            others: numbers,
            keys,
            frame,
        } = room;
        self.weigher.shingle(text.tokens, shingles);
        let salt = salt(text.site);
        keys.clear();
        keys.extend(shingles.iter().map(|&shingle| key(shingle, salt)));
        numbers.clear();
        match &self.counts {
            CountSource::Memory(table) => table.look_up(keys, |n| numbers.push(others(n))),
            CountSource::Disk { starts, frames } => {
                let mut ends = [0; 2];
                starts.read_into(text.page[0].into(), &mut ends)?;
                frame.clear();
                frame.resize((ends[1] - ends[0]) as usize, Framed::zeroed());
                frames.read_into(ends[0], frame)?;
                numbers.extend(keys.iter().map(|key| {
                    let place = frame.binary_search_by_key(key, |framed| framed.key);
                    place.map_or(0, |place| others(frame[place].n_others))
                }));
            }
        }
        self.weigher.sample(shingles, numbers);
        Ok(())
    }
}
