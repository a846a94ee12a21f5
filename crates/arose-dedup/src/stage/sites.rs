//! What sites repeat: how many other pages of its site contain each pair of words of a document.
//!
//! Only the policy `content` asks. A page is a URL, however often it was seen; documents without a
//! URL form one site, each of them a page. Sites with fewer than [`MIN_PAGES`] pages repeat nothing
//! that counts ([`arose::content::weight`]), so they are left out.
//!
//! Most word pairs are on few pages. A first pass counts them in a table of small counters, in
//! which several word pairs may share a counter, so it never counts too few; only what may be on
//! enough pages goes on. A second pass counts the pages of these word pairs in memory
//! ([`PageCounts`]). Where they do not fit, every word pair of a page becomes a record of its site,
//! its words and its page, sorted outside memory; those of many pages are counted, and the counts
//! sorted back to the documents: a document gets the list of its *frame*, the word pairs that weigh
//! less than one. Both ways are exact and give the same. With [`SiteCounts::Sampled`] one shingle
//! in [`SAMPLED`] is counted, and every position of a text takes the count of the nearest that was.
//!
//! The stage then leaves the marks of every document ([`Marks`]), from which candidates are found.
//!
//! Disk: 16 bytes per word pair of a site that enough pages contain, and the marks per document;
//! outside memory also 16 bytes per word pair of a page that may be on enough pages while they are
//! sorted, 16 per word pair of a frame, and 8 per document. Memory: an eighth of the allowance for
//! the counters, an eighth for the counts, and outside memory besides the sorters 4 bytes per page
//! that contains the most common word pair.

use std::path::Path;

use arose::content::{Content, shingler, weight};
use arose::digest::digest64;
use arose::mix::mix;
use arose::shingle::Shingler;
use bytemuck::{Pod, Zeroable};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::column::{Column, Scan, Writer};
use crate::config::{Config, SiteCounts};
use crate::lookup::Flags;
use crate::marks::{MarkRoom, Marker, Marks};
use crate::names::NameScan;
use crate::record::{Ordinal, Vectors};
use crate::sorter::Sorter;
use crate::stage::counts::{CountTable, Counters, Framed, MIN_PAGES, PageCounts, PageKeys};
use crate::stage::read::VECTORS;
use crate::stage::site_texts::Texts;
use crate::{Error, Progress};

/// The marks of each document.
pub(crate) const MARKS: &str = "marks";
/// The word pairs of sites that enough pages contain, by key.
pub(crate) const COUNTS: &str = "counts";
/// The frames of all documents, one after the other; only if the counts do not fit memory.
const FRAMES: &str = "frames";
/// Where the frame of each document begins, and where the last one ends.
const FRAMES_AT: &str = "frames_at";

/// One shingle in so many is counted if counts are sampled.
const SAMPLED: u64 = 16;

/// What the stage found.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Sites {
    /// Sites with enough pages, documents without a URL as one.
    pub(crate) n_sites: u64,
    /// Their pages.
    pub(crate) n_pages: u64,
    /// Word pairs of sites that weigh less than 1.
    pub(crate) n_framed: u64,
}

/// Counts what sites repeat and leaves counts and marks in `folder`; marks are of the active
/// documents only.
pub(crate) fn run(
    read: &Path,
    n_tokens: u64,
    active: &Flags,
    config: &Config,
    folder: &Path,
    progress: &Progress,
) -> Result<Sites, Error> {
    let mut found = Sites::default();
    progress.expect(4 * active.len() as u64);
    let pages = Pages {
        read,
        folder,
        config,
        progress,
        is_shared: find_pages(read, active.len(), config, folder, &mut found, progress)?,
    };
    let counters = Counters::new(n_tokens, config.part(8));
    pages.for_each(
        |_, keys, room: &mut Vec<u32>| counters.add(keys, room),
        |_| Ok(true),
    )?;
    found.n_framed = match pages.count_in_memory(&counters)? {
        Some(counts) => counts.write(&folder.join(COUNTS))?,
        None => pages.count_on_disk(&counters, active.len())?,
    };
    drop(counters);
    mark(read, active, config, folder, progress)?;
    Ok(found)
}

/// A document and its page, which is named by its first document.
type Page = [Ordinal; 2];

/// The documents of sites with enough pages, by ordinal.
const PAGES: &str = "pages";

/// Finds the documents of sites with enough pages; the pages that several documents are of are
/// flagged.
fn find_pages(
    read: &Path,
    n_docs: usize,
    config: &Config,
    folder: &Path,
    found: &mut Sites,
    progress: &Progress,
) -> Result<Flags, Error> {
    let mut is_shared = Flags::new(n_docs);
    let mut urls = Sorter::<[u64; 3]>::new(&folder.join("urls"), config.part(4));
    let mut vectors = Scan::<Vectors>::open(&read.join(VECTORS))?;
    let mut names = NameScan::open(read)?;
    let mut doc = 0;
    while let Some(Vectors { site, .. }) = vectors.next()? {
        let url = names.next()?.url;
        let url = url.map_or(doc, |url| digest64(url.as_bytes()));
        urls.push([site, url, doc])?;
        doc += 1;
        progress.advance(1)?;
    }
    let mut urls = urls.finish()?;
    let mut pages = Sorter::new(&folder.join("pages"), config.part(8));
    // Documents of a site that may yet have too few pages.
    let mut held: Vec<Page> = Vec::new();
    let (mut last, mut n_pages, mut first) = (None::<[u64; 2]>, 0, 0);
    while let Some([site, url, doc]) = urls.next()? {
        let doc = doc as Ordinal;
        if last.is_none_or(|[own, _]| own != site) {
            held.clear();
            n_pages = 0;
        }
        if last.replace([site, url]) != Some([site, url]) {
            first = doc;
            n_pages += 1;
            if n_pages == MIN_PAGES {
                found.n_sites += 1;
                found.n_pages += u64::from(n_pages) - 1;
            }
            found.n_pages += u64::from(n_pages >= MIN_PAGES);
        } else {
            is_shared.set(first as usize);
        }
        held.push([doc, first]);
        if n_pages >= MIN_PAGES {
            pages.extend(&held)?;
            held.clear();
        }
    }
    let mut pages = pages.finish()?;
    let mut out = Writer::create(&folder.join(PAGES))?;
    while let Some(page) = pages.next()? {
        out.push(&page)?;
    }
    out.finish()?;
    Ok(is_shared)
}

/// A word pair of a site on one of its pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Posting {
    key: u64,
    page: Ordinal,
    doc: Ordinal,
}

/// The documents of sites with enough pages.
struct Pages<'a> {
    read: &'a Path,
    folder: &'a Path,
    config: &'a Config,
    progress: &'a Progress,
    /// Of pages by their first document: whether others are of the same page.
    is_shared: Flags,
}

impl Pages<'_> {
    /// Calls `take` with every document and the keys of its word pairs, on all threads, and `put`
    /// with what came of some blocks of documents, in order, until it says that it is enough;
    /// whether it never did.
    fn for_each<T: Default + Send>(
        &self,
        take: impl Fn(Page, &mut Vec<u64>, &mut T) + Sync,
        mut put: impl FnMut(Vec<T>) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        let mut pages = Scan::<Page>::open(&self.folder.join(PAGES))?;
        let mut texts = Texts::open(self.read)?;
        let (mut next, weigher) = (pages.next()?, Weigher::new(self.config));
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
                let (mut shingles, mut keys) = (Vec::new(), Vec::new());
                for &page in &own[from..from + n] {
                    weigher.shingle(text.tokens(page[0]), &mut shingles);
                    let salt = salt(text.site(page[0]));
                    let counted = shingles.iter().filter(|shingle| weigher.counts(**shingle));
                    keys.clear();
                    keys.extend(counted.map(|&shingle| key(shingle, salt)));
                    take(page, &mut keys, &mut made);
                }
                Ok(made)
            });
            let made = made.collect::<Result<Vec<T>, Error>>()?;
            self.progress.advance(blocks.n_docs())?;
            if !put(made)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The pages of each word pair that may be on enough; none if they do not fit memory.
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

    /// Counts the pages of each word pair that may be on enough and writes the frames of `n_docs`
    /// documents; how many word pairs of sites are in one.
    fn count_on_disk(&self, counters: &Counters, n_docs: usize) -> Result<u64, Error> {
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
        let (counted, n_framed) = find_framed(postings, config, folder)?;
        write_frames(counted, n_docs, folder)?;
        Ok(n_framed)
    }
}

/// Makes keys of the shingles of a site differ from those of others.
pub(crate) fn salt(site: u64) -> u64 {
    mix(site ^ 0x5172_6573)
}

/// One number for a word pair of a site.
pub(crate) fn key(shingle: u64, salt: u64) -> u64 {
    mix(shingle ^ salt)
}

/// A word pair in the frame of a document: the document, the two halves of the key, and how many
/// other pages contain it.
type Counted = [u32; 4];

/// The word pairs that enough pages contain, with each document that does; how many they are.
fn find_framed(
    postings: Sorter<Posting>,
    config: &Config,
    folder: &Path,
) -> Result<(Sorter<Counted>, u64), Error> {
    let mut postings = postings.finish()?;
    let mut counted = Sorter::new(&folder.join("counted"), config.part(4));
    let mut counts = Writer::create(&folder.join(COUNTS))?;
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
    Ok((counted, counts.finish()?))
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

/// Writes the marks of the active documents; those of the others are zero.
fn mark(
    read: &Path,
    active: &Flags,
    config: &Config,
    folder: &Path,
    progress: &Progress,
) -> Result<(), Error> {
    let (marker, frames) = (Marker::new(config), Frames::open(folder, config)?);
    let mut texts = Texts::open(read)?;
    let mut out = Writer::create(&folder.join(MARKS))?;
    while let Some(blocks) = texts.next_blocks()? {
        let lists = blocks.blocks.par_iter().map(|block| {
            let text = texts.load(block)?;
            let (mut room, mut mark_room) = (Room::default(), MarkRoom::default());
            let mut list = vec![Marks::zeroed(); block.docs.len()];
            for (doc, marks) in block.docs.clone().zip(&mut list) {
                if active.is_set(doc as usize) {
                    frames.weigh(doc, text.site(doc), text.tokens(doc), &mut room)?;
                    *marks = marker.marks(&room.shingles, &room.weights, &mut mark_room);
                }
            }
            Ok(list)
        });
        let lists: Vec<Result<Vec<Marks>, Error>> = lists.collect();
        for list in lists {
            out.extend(&list?)?;
        }
        progress.advance(blocks.n_docs())?;
    }
    out.finish().map(drop)
}

/// Weighs the word pairs of documents by what their sites repeat.
pub(crate) struct Frames {
    weigher: Weigher,
    counts: Counts,
}

/// Where the other pages of a word pair are looked up.
enum Counts {
    Memory(CountTable),
    Disk {
        starts: Column<u64>,
        frames: Column<Framed>,
    },
}

/// The word pairs of a document, and memory that is used again.
#[derive(Default)]
pub(crate) struct Room {
    /// In text order.
    pub(crate) shingles: Vec<u64>,
    pub(crate) weights: Vec<f64>,
    keys: Vec<u64>,
    frame: Vec<Framed>,
}

impl Frames {
    /// Opens what the stage left in `folder`.
    pub(crate) fn open(folder: &Path, config: &Config) -> Result<Self, Error> {
        let frames = folder.join(FRAMES);
        let counts = match frames.exists() {
            false => Counts::Memory(CountTable::open(&folder.join(COUNTS))?),
            true => Counts::Disk {
                starts: Column::open(&folder.join(FRAMES_AT), config.part(32))?,
                frames: Column::open(&frames, config.part(16))?,
            },
        };
        Ok(Self {
            weigher: Weigher::new(config),
            counts,
        })
    }

    /// The content of a document of a site.
    pub(crate) fn content(
        &self,
        doc: Ordinal,
        site: u64,
        tokens: &[u64],
        room: &mut Room,
    ) -> Result<Content, Error> {
        self.weigh(doc, site, tokens, room)?;
        Ok(Content::of_weights(&room.shingles, &room.weights))
    }

    /// The shingles and weights of a document of a site.
    fn weigh(&self, doc: Ordinal, site: u64, tokens: &[u64], room: &mut Room) -> Result<(), Error> {
        let Room {
            shingles,
            weights,
            keys,
            frame,
        } = room;
        self.weigher.shingle(tokens, shingles);
        let salt = salt(site);
        match &self.counts {
            Counts::Memory(table) if self.weigher.counts == SiteCounts::Exact => {
                keys.clear();
                keys.extend(shingles.iter().map(|&shingle| key(shingle, salt)));
                weights.clear();
                table.look_up(keys, |n_others| weights.push(weight(n_others)));
            }
            Counts::Memory(table) => self.weigher.weigh(shingles, weights, |shingle| {
                table.n_others(key(shingle, salt))
            }),
            Counts::Disk { starts, frames } => {
                let mut ends = [0; 2];
                starts.read_into(doc.into(), &mut ends)?;
                frame.clear();
                frame.resize((ends[1] - ends[0]) as usize, Framed::zeroed());
                frames.read_into(ends[0], frame)?;
                self.weigher.weigh(shingles, weights, |shingle| {
                    let key = key(shingle, salt);
                    let place = frame.binary_search_by_key(&key, |framed| framed.key);
                    place.map_or(0, |place| frame[place].n_others)
                });
            }
        }
        Ok(())
    }
}

/// Turns counts into weights.
pub(crate) struct Weigher {
    shingler: Shingler,
    counts: SiteCounts,
}

impl Weigher {
    fn new(config: &Config) -> Self {
        Self::of(config.site_counts)
    }

    pub(crate) fn of(counts: SiteCounts) -> Self {
        Self {
            shingler: shingler(),
            counts,
        }
    }

    fn shingle(&self, tokens: &[u64], shingles: &mut Vec<u64>) {
        shingles.clear();
        self.shingler.shingles_into(tokens, shingles);
    }

    /// Whether a shingle is counted.
    fn counts(&self, shingle: u64) -> bool {
        match self.counts {
            SiteCounts::Exact => true,
            SiteCounts::Sampled => mix(shingle).is_multiple_of(SAMPLED),
        }
    }

    /// The weight of the shingle at each position, given the other pages that contain a shingle.
    pub(crate) fn weigh(
        &self,
        shingles: &[u64],
        weights: &mut Vec<f64>,
        n_others: impl Fn(u64) -> u64,
    ) {
        weights.clear();
        if self.counts == SiteCounts::Exact {
            weights.extend(shingles.iter().map(|&shingle| weight(n_others(shingle))));
            return;
        }
        let sampled = shingles.iter().enumerate();
        let sampled = sampled.filter(|(_, shingle)| self.counts(**shingle));
        let sampled: Vec<(usize, u64)> = sampled
            .map(|(position, &shingle)| (position, n_others(shingle)))
            .collect();
        let counts = nearest(&sampled, shingles.len());
        weights.extend(counts.into_iter().map(weight));
        weights.resize(shingles.len(), 1.0);
    }
}

/// For each position the number at the nearest sampled one, of two the first; none if there is no
/// sample.
fn nearest(sampled: &[(usize, u64)], n: usize) -> Vec<u64> {
    let mut numbers = Vec::with_capacity(n);
    for (place, &(position, number)) in sampled.iter().enumerate() {
        // Halfway to the next.
        let end = match sampled.get(place + 1) {
            Some((next, _)) => (position + next) / 2 + 1,
            None => n,
        };
        numbers.resize(end, number);
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issue_24_positions_take_the_nearest_sample() {
        assert!(nearest(&[], 3).is_empty());
        assert_eq!(nearest(&[(1, 7)], 4), [7; 4]);
        assert_eq!(nearest(&[(0, 7), (3, 9)], 6), [7, 7, 9, 9, 9, 9]);
        assert_eq!(nearest(&[(1, 7), (3, 9)], 5), [7, 7, 7, 9, 9]);
    }
}
