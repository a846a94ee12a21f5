//! What sites repeat: how many other pages of its site contain each pair of words of a document.
//!
//! Only the policy `content` asks. A page is a URL, however often it was seen; documents without a
//! URL form one site, each of them a page. Sites with fewer than [`MIN_PAGES`] pages repeat nothing
//! that counts ([`arose::content::weight`]), so they are left out.
//!
//! Every distinct pair of words of a page is a record of its site, its words and its page. Most are
//! on few pages. A first pass counts them in a table of small counters, in which several word pairs
//! may share a counter, so it never counts too few; only what may be on enough pages goes on. These
//! records are sorted outside memory, those of many pages are counted, and the counts sorted back
//! to the documents: a document gets the list of its *frame*, the word pairs that weigh less than
//! one. This is exact. With [`SiteCounts::Sampled`] one shingle in [`SAMPLED`] is counted, and
//! every position of a text takes the count of the nearest that was.
//!
//! The stage then leaves the marks of every document ([`Marks`]), from which candidates are found.
//!
//! Disk: 16 bytes per word pair of a page that may be on enough pages while they are sorted, 16 per
//! word pair of a frame, 8 and the marks per document. Memory: besides the sorters, an eighth of
//! the allowance for the counters, and 4 bytes per page that contains the most common word pair.

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use arose::content::{Content, FREE_PAGES, shingler};
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
use crate::record::{DocRecord, Ordinal, Vectors};
use crate::sorter::Sorter;
use crate::stage::read::{DOCS, TOKENS, VECTORS};
use crate::{Error, Progress};

/// The marks of each document.
pub(crate) const MARKS: &str = "marks";
/// The frames of all documents, one after the other.
const FRAMES: &str = "frames";
/// Where the frame of each document begins, and where the last one ends.
const FRAMES_AT: &str = "frames_at";

/// Pages that a site needs for any word pair to weigh less than 1.
const MIN_PAGES: usize = FREE_PAGES as usize + 2;
/// One shingle in so many is counted if counts are sampled.
const SAMPLED: u64 = 16;
/// Tokens of documents that a thread takes at once.
const BLOCK_TOKENS: u64 = 1 << 17;

/// What the stage found.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Sites {
    /// Sites with enough pages, documents without a URL as one.
    pub(crate) n_sites: u64,
    /// Their pages.
    pub(crate) n_pages: u64,
    /// Word pairs of documents that weigh less than 1.
    pub(crate) n_framed: u64,
}

/// A word pair that other pages of the site contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Framed {
    key: u64,
    n_others: u64,
}

/// Counts what sites repeat and leaves frames and marks in `folder`; marks are of the active
/// documents only.
pub(crate) fn run(
    read: &Path,
    active: &Flags,
    config: &Config,
    folder: &Path,
    progress: &Progress,
) -> Result<Sites, Error> {
    let mut found = Sites::default();
    progress.expect(4 * active.len() as u64);
    find_pages(read, config, folder, &mut found, progress)?;
    let counters = Counters::new(config.part(8));
    for_each_page(read, folder, config, progress, |_, shingles, salt| {
        for &shingle in shingles {
            counters.add(key(shingle, salt));
        }
        Vec::new()
    })?
    .finish()?;
    let postings = for_each_page(read, folder, config, progress, |page, shingles, salt| {
        let [doc, page] = page;
        let keys = shingles.iter().map(|&shingle| key(shingle, salt));
        let mut keys: Vec<u64> = keys.filter(|&key| counters.may_be_framed(key)).collect();
        keys.sort_unstable();
        keys.dedup();
        let postings = keys.into_iter().map(|key| Posting { key, page, doc });
        postings.collect()
    })?;
    drop(counters);
    found.n_framed = count(postings, active.len(), config, folder)?;
    mark(read, active, config, folder, progress)?;
    Ok(found)
}

/// A document and its page, which is named by its first document.
type Page = [Ordinal; 2];

/// The documents of sites with enough pages, by ordinal.
const PAGES: &str = "pages";

/// Finds the documents of sites with enough pages.
fn find_pages(
    read: &Path,
    config: &Config,
    folder: &Path,
    found: &mut Sites,
    progress: &Progress,
) -> Result<(), Error> {
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
                found.n_pages += n_pages as u64 - 1;
            }
            found.n_pages += u64::from(n_pages >= MIN_PAGES);
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
    out.finish().map(drop)
}

/// Counts keys up to [`MIN_PAGES`], too many at times: keys may share a counter.
struct Counters {
    counters: Vec<AtomicU8>,
    mask: u64,
}

/// Counters, at most.
const MAX_COUNTERS: u64 = 1 << 26;

impl Counters {
    /// As many as fit `allowance` bytes, a power of two.
    fn new(allowance: u64) -> Self {
        let n = 1 << allowance.clamp(1 << 10, MAX_COUNTERS).ilog2();
        Self {
            counters: (0..n).map(|_| AtomicU8::new(0)).collect(),
            mask: n - 1,
        }
    }

    fn add(&self, key: u64) {
        let counter = &self.counters[(key & self.mask) as usize];
        // Whoever finds it full adds nothing; the others are too few to overflow it.
        if usize::from(counter.load(Relaxed)) < MIN_PAGES {
            counter.fetch_add(1, Relaxed);
        }
    }

    /// Whether a key was counted often enough, or one that shares its counter.
    fn may_be_framed(&self, key: u64) -> bool {
        let counter = &self.counters[(key & self.mask) as usize];
        usize::from(counter.load(Relaxed)) >= MIN_PAGES
    }
}

/// A word pair of a site on one of its pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Posting {
    key: u64,
    page: Ordinal,
    doc: Ordinal,
}

/// Calls `post` with every page, the shingles of its document that are counted, and the salt of its
/// site, on all threads; sorts the postings it makes.
fn for_each_page(
    read: &Path,
    folder: &Path,
    config: &Config,
    progress: &Progress,
    post: impl Fn(Page, &[u64], u64) -> Vec<Posting> + Sync,
) -> Result<Sorter<Posting>, Error> {
    let mut postings = Sorter::new(&folder.join("postings"), config.part(4));
    let mut pages = Scan::<Page>::open(&folder.join(PAGES))?;
    let mut texts = Texts::open(read)?;
    let (mut next, weigher) = (pages.next()?, Weigher::new(config));
    while let Some(blocks) = texts.next_blocks()? {
        let mut own = Vec::new();
        while let Some(page) = next.filter(|page| page[0] < blocks.end) {
            own.push(page);
            next = pages.next()?;
        }
        let lists = blocks.blocks.par_iter().map(|block| {
            let from = own.partition_point(|[doc, _]| *doc < block.docs.start);
            let n = own[from..].partition_point(|[doc, _]| *doc < block.docs.end);
            let text = texts.load(block)?;
            let (mut list, mut shingles) = (Vec::new(), Vec::new());
            for &page in &own[from..from + n] {
                let [doc, _] = page;
                weigher.shingle(text.tokens(doc), &mut shingles);
                shingles.retain(|&shingle| weigher.counts(shingle));
                list.extend(post(page, &shingles, salt(text.site(doc))));
            }
            Ok(list)
        });
        let lists: Vec<Result<Vec<Posting>, Error>> = lists.collect();
        for list in lists {
            postings.extend(&list?)?;
        }
        progress.advance(blocks.n_docs())?;
    }
    Ok(postings)
}

/// Makes keys of the shingles of a site differ from those of others.
fn salt(site: u64) -> u64 {
    mix(site ^ 0x5172_6573)
}

fn key(shingle: u64, salt: u64) -> u64 {
    mix(shingle ^ salt)
}

/// A word pair in the frame of a document: the document, the two halves of the key, and how many
/// other pages contain it.
type Counted = [u32; 4];

/// Counts the pages of each word pair and writes the frames of `n_docs` documents; the number of
/// word pairs in them.
fn count(
    postings: Sorter<Posting>,
    n_docs: usize,
    config: &Config,
    folder: &Path,
) -> Result<u64, Error> {
    let mut counted = find_framed(postings, config, folder)?.finish()?;
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
    frames.finish()
}

/// The word pairs that enough pages contain, with each document that does.
fn find_framed(
    postings: Sorter<Posting>,
    config: &Config,
    folder: &Path,
) -> Result<Sorter<Counted>, Error> {
    let mut postings = postings.finish()?;
    let mut counted = Sorter::new(&folder.join("counted"), config.part(4));
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
        if n_pages as usize >= MIN_PAGES {
            for &doc in &docs {
                counted.push([doc, (key >> 32) as u32, key as u32, n_pages - 1])?;
            }
        }
    }
    Ok(counted)
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
            let mut room = MarkRoom::default();
            let mut list = vec![Marks::zeroed(); block.docs.len()];
            for (doc, marks) in block.docs.clone().zip(&mut list) {
                if active.is_set(doc as usize) {
                    let content = frames.content(doc, text.site(doc), text.tokens(doc))?;
                    *marks = marker.marks(&content, &mut room);
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
    starts: Column<u64>,
    frames: Column<Framed>,
}

impl Frames {
    /// Opens what the stage left in `folder`.
    pub(crate) fn open(folder: &Path, config: &Config) -> Result<Self, Error> {
        Ok(Self {
            weigher: Weigher::new(config),
            starts: Column::open(&folder.join(FRAMES_AT), config.part(32))?,
            frames: Column::open(&folder.join(FRAMES), config.part(16))?,
        })
    }

    /// The content of a document of a site.
    pub(crate) fn content(
        &self,
        doc: Ordinal,
        site: u64,
        tokens: &[u64],
    ) -> Result<Content, Error> {
        let mut ends = [0; 2];
        self.starts.read_into(doc.into(), &mut ends)?;
        let mut frame = vec![Framed::zeroed(); (ends[1] - ends[0]) as usize];
        self.frames.read_into(ends[0], &mut frame)?;
        let mut shingles = Vec::new();
        self.weigher.shingle(tokens, &mut shingles);
        Ok(self.weigher.content(&shingles, salt(site), &frame))
    }
}

/// Turns counts into weights.
struct Weigher {
    shingler: Shingler,
    counts: SiteCounts,
}

impl Weigher {
    fn new(config: &Config) -> Self {
        Self {
            shingler: shingler(),
            counts: config.site_counts,
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

    fn content(&self, shingles: &[u64], salt: u64, frame: &[Framed]) -> Content {
        let n_others = |shingle: u64| {
            let key = key(shingle, salt);
            let place = frame.binary_search_by_key(&key, |framed| framed.key);
            place.map_or(0, |place| frame[place].n_others)
        };
        if self.counts == SiteCounts::Exact {
            return Content::of_site(shingles, n_others);
        }
        let sampled = shingles.iter().enumerate();
        let sampled = sampled.filter(|(_, shingle)| self.counts(**shingle));
        let sampled: Vec<(usize, u64)> = sampled
            .map(|(position, &shingle)| (position, n_others(shingle)))
            .collect();
        Content::of_counts(shingles, &nearest(&sampled, shingles.len()))
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

/// The texts of all documents in blocks.
struct Texts {
    records: Column<DocRecord>,
    vectors: Column<Vectors>,
    tokens: Column<u64>,
    docs: Scan<DocRecord>,
    /// The next document, read already.
    next: Option<DocRecord>,
    doc: Ordinal,
}

/// Blocks of documents in order.
struct Blocks {
    blocks: Vec<Block>,
    end: Ordinal,
}

impl Blocks {
    fn n_docs(&self) -> u64 {
        let lengths = self.blocks.iter().map(|block| block.docs.len() as u64);
        lengths.sum()
    }
}

/// Documents that follow each other, and where their tokens are.
struct Block {
    docs: Range<Ordinal>,
    tokens: Range<u64>,
}

/// The tokens and sites of a block.
struct BlockText {
    start: Ordinal,
    records: Vec<DocRecord>,
    vectors: Vec<Vectors>,
    tokens: Vec<u64>,
}

impl BlockText {
    fn tokens(&self, doc: Ordinal) -> &[u64] {
        let record = &self.records[(doc - self.start) as usize];
        let start = (record.tokens_at - self.records[0].tokens_at) as usize;
        &self.tokens[start..][..record.n_tokens as usize]
    }

    fn site(&self, doc: Ordinal) -> u64 {
        self.vectors[(doc - self.start) as usize].site
    }
}

impl Texts {
    fn open(read: &Path) -> Result<Self, Error> {
        let mut docs = Scan::open(&read.join(DOCS))?;
        Ok(Self {
            records: Column::open(&read.join(DOCS), 0)?,
            vectors: Column::open(&read.join(VECTORS), 0)?,
            tokens: Column::open(&read.join(TOKENS), 0)?,
            next: docs.next()?,
            docs,
            doc: 0,
        })
    }

    /// The next blocks, two for each thread; none at the end.
    fn next_blocks(&mut self) -> Result<Option<Blocks>, Error> {
        let n_blocks = 2 * rayon::current_num_threads();
        let mut blocks = Vec::with_capacity(n_blocks);
        while blocks.len() < n_blocks
            && let Some(first) = self.next
        {
            let start = self.doc;
            let mut end = first.tokens_at;
            while let Some(record) = self.next
                && (end == first.tokens_at || end - first.tokens_at < BLOCK_TOKENS)
                && (self.doc - start) < BLOCK_TOKENS as Ordinal
            {
                end = record.tokens_at + u64::from(record.n_tokens);
                self.next = self.docs.next()?;
                self.doc += 1;
            }
            blocks.push(Block {
                docs: start..self.doc,
                tokens: first.tokens_at..end,
            });
        }
        let end = self.doc;
        Ok((!blocks.is_empty()).then_some(Blocks { blocks, end }))
    }

    fn load(&self, block: &Block) -> Result<BlockText, Error> {
        let (start, n) = (block.docs.start, block.docs.len());
        let mut text = BlockText {
            start,
            records: vec![DocRecord::zeroed(); n],
            vectors: vec![Vectors::zeroed(); n],
            tokens: vec![0; (block.tokens.end - block.tokens.start) as usize],
        };
        self.records.read_into(start.into(), &mut text.records)?;
        self.vectors.read_into(start.into(), &mut text.vectors)?;
        self.tokens
            .read_into(block.tokens.start, &mut text.tokens)?;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counters never say that a key is on fewer pages than it is.
    #[test]
    fn issue_24_counters_lose_nothing() {
        let counters = Counters::new(0);
        for key in (0..3000).map(mix) {
            for _ in 0..key % 7 {
                counters.add(key);
            }
        }
        let often = (0..3000).map(mix).filter(|key| key % 7 >= 5);
        assert!(often.into_iter().all(|key| counters.may_be_framed(key)));
        let few = Counters::new(1 << 20);
        (0..4).for_each(|_| few.add(7));
        assert!(!few.may_be_framed(7));
        (0..1000).for_each(|_| few.add(7));
        assert!(few.may_be_framed(7) && !few.may_be_framed(8));
    }

    #[test]
    fn issue_24_positions_take_the_nearest_sample() {
        assert!(nearest(&[], 3).is_empty());
        assert_eq!(nearest(&[(1, 7)], 4), [7; 4]);
        assert_eq!(nearest(&[(0, 7), (3, 9)], 6), [7, 7, 9, 9, 9, 9]);
        assert_eq!(nearest(&[(1, 7), (3, 9)], 5), [7, 7, 7, 9, 9]);
    }
}
