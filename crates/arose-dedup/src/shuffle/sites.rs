//! Text that sites repeat, and sketches weighted by it, under the policy `content`.
//!
//! Pages of sites with enough pages are found first, so that documents of other sites cause no
//! further messages. Every distinct word pair of a remaining document becomes a posting, addressed
//! by the word pair and its site. So a large site is counted in many parts. Word pairs that enough
//! pages contain return to the shards of their documents, where weights and sketches are computed.

use std::sync::Arc;

use arose::mix::mix;
use arrow_array::RecordBatch;
use bytemuck::{Pod, Zeroable};
use serde_json::json;

use super::document::Docs;
use super::runs;
use super::spill::Scratch;
use super::wire::{Message, Sink, misfit, records, torn};
use super::{Context, Step, kind};
use crate::Error;
use crate::config::Config;
use crate::marks::{MarkRoom, MarkTables, Marker, Marks};
use crate::record::{DocRecord, EMPTY, Ordinal, SHORT, Vectors};
use crate::results::repeated;
use crate::sorter::Sorter;
use crate::stage::counts::{Framed, MIN_PAGES};
use crate::stage::sites::page_of;
use crate::stage::weigher::{Others, Weigher, key, others, salt};

/// A document under its site and its page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct SiteDoc {
    site: u64,
    url: u64,
    doc: u64,
}

/// A document and the first document of its page.
type PageOf = [Ordinal; 2];

/// A word pair of a site on one of its pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Posting {
    key: u64,
    page: Ordinal,
    doc: Ordinal,
}

/// A word pair of a document that other pages contain, and their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct RepeatedPair {
    doc: Ordinal,
    n_others: u32,
    key: u64,
}

/// The start of the counts of a document in a message.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct OthersHead {
    pub(super) doc: Ordinal,
    /// Number of word pairs, two bytes each.
    pub(super) n: u32,
}

/// The step that sends documents to the parts of their sites.
pub(super) struct Pages(Context);

impl Pages {
    pub(super) fn new(context: Context) -> Self {
        Self(context)
    }
}

impl Step for Pages {
    fn take(&mut self, message: &Message<'_>, out: &mut Sink) -> Result<(), Error> {
        let docs = Docs::of(message)?;
        let vectors = records::<Vectors>(message.more.as_deref().ok_or_else(torn)?)?;
        let start = self.0.start_of(message.part)? + message.seq as Ordinal;
        for (doc, (record, vectors)) in (start..).zip(docs.records.iter().zip(&vectors)) {
            let url = docs.name(record)?.url;
            let page = SiteDoc {
                site: vectors.site,
                url: page_of(url.as_deref(), record),
                doc: doc.into(),
            };
            let part = self.0.part_of(mix(page.site));
            out.push(kind::SITE, part, doc.into(), &[bytemuck::bytes_of(&page)])?;
        }
        Ok(())
    }

    fn end(&mut self, _: i64, _: &mut Sink) -> Result<(), Error> {
        Ok(())
    }
}

/// The step that finds the pages of sites that have enough of them.
pub(super) struct FindSites {
    context: Context,
    scratch: Scratch,
    docs: Option<Sorter<SiteDoc>>,
}

impl FindSites {
    pub(super) fn new(context: Context) -> Self {
        Self {
            scratch: Scratch::new(&context),
            context,
            docs: None,
        }
    }

    fn push(&self, page: PageOf, out: &mut Sink) -> Result<(), Error> {
        let part = self.context.shard_of(page[0]);
        let seq = page[0].into();
        out.push(kind::PAGE, part, seq, &[bytemuck::bytes_of(&page)])
    }
}

impl Step for FindSites {
    fn take(&mut self, message: &Message<'_>, _: &mut Sink) -> Result<(), Error> {
        if self.docs.is_none() {
            self.docs = Some(self.scratch.sorter()?);
        }
        let docs = self.docs.as_mut().expect("just set");
        docs.extend(&message.records()?)
    }

    fn end(&mut self, _: i64, out: &mut Sink) -> Result<(), Error> {
        let Some(docs) = self.docs.take() else {
            return Ok(());
        };
        let mut docs = docs.finish()?;
        let (mut n_sites, mut n_pages) = (0_u64, 0_u64);
        // The documents of the site until it has enough pages.
        let mut held: Vec<PageOf> = Vec::new();
        let (mut last, mut first, mut n_own) = (None, 0, 0);
        while let Some(next) = docs.next()? {
            let before = last.replace(next);
            let is_same_site = before.is_some_and(|before: SiteDoc| before.site == next.site);
            if !is_same_site {
                held.clear();
                n_own = 0;
            }
            let doc = next.doc as Ordinal;
            if !is_same_site || before.is_some_and(|before| before.url != next.url) {
                first = doc;
                n_own += 1;
                n_pages += match n_own {
                    n if n < MIN_PAGES => 0,
                    MIN_PAGES => MIN_PAGES.into(),
                    _ => 1,
                };
                n_sites += u64::from(n_own == MIN_PAGES);
            }
            held.push([doc, first]);
            if n_own >= MIN_PAGES {
                held.drain(..).try_for_each(|page| self.push(page, out))?;
            }
        }
        out.note(&json!({ "sites": n_sites, "pages": n_pages }))
    }
}

/// The documents of a shard with their texts.
#[derive(Default)]
struct Shard {
    docs: Vec<DocRecord>,
    vectors: Vec<Vectors>,
    tokens: Vec<u64>,
}

impl Shard {
    /// Takes a message about the shard; false if it is about something else.
    fn take(&mut self, message: &Message<'_>) -> Result<bool, Error> {
        match message.kind {
            kind::DOCS => {
                self.docs.extend(Docs::of(message)?.records);
                let vectors = message.more.as_deref().unwrap_or_default();
                self.vectors.extend(records::<Vectors>(vectors)?);
            }
            kind::TOKENS => self.tokens.extend(message.records::<u64>()?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Calls `each` with every document, its site and its tokens.
    fn for_each(
        &self,
        start: Ordinal,
        mut each: impl FnMut(Ordinal, &DocRecord, u64, &[u64]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut tokens = &self.tokens[..];
        for (doc, (record, vectors)) in (start..).zip(self.docs.iter().zip(&self.vectors)) {
            let n = record.n_tokens as usize;
            let (own, rest) = tokens.split_at_checked(n).ok_or_else(torn)?;
            tokens = rest;
            each(doc, record, vectors.site, own)?;
        }
        Ok(())
    }

    fn clear(&mut self) {
        self.docs.clear();
        self.vectors.clear();
        self.tokens.clear();
    }
}

/// The step that sends the word pairs of pages to the parts that count them.
pub(super) struct Postings {
    context: Context,
    weigher: Weigher,
    shard: Shard,
    pages: Vec<PageOf>,
}

impl Postings {
    pub(super) fn new(config: &Config, context: Context) -> Self {
        Self {
            context,
            weigher: Weigher::new(config),
            shard: Shard::default(),
            pages: Vec::new(),
        }
    }
}

impl Step for Postings {
    fn take(&mut self, message: &Message<'_>, _: &mut Sink) -> Result<(), Error> {
        if !self.shard.take(message)? {
            self.pages.extend(message.records::<PageOf>()?);
        }
        Ok(())
    }

    fn end(&mut self, part: i64, out: &mut Sink) -> Result<(), Error> {
        self.pages.sort_unstable();
        let mut pages = self.pages.iter().peekable();
        let (mut shingles, mut keys) = (Vec::new(), Vec::new());
        if pages.peek().is_some() {
            let start = self.context.start_of(part)?;
            self.shard.for_each(start, |doc, _, site, tokens| {
                let Some([_, page]) = pages.next_if(|page| page[0] == doc) else {
                    return Ok(());
                };
                self.weigher.shingle(tokens, &mut shingles);
                let salt = salt(site);
                let counted = shingles.iter().filter(|one| self.weigher.counts(**one));
                keys.clear();
                keys.extend(counted.map(|&shingle| key(shingle, salt)));
                keys.sort_unstable();
                keys.dedup();
                keys.iter().try_for_each(|&key| {
                    let posting = Posting {
                        key,
                        page: *page,
                        doc,
                    };
                    let to = self.context.part_of(key);
                    out.push(
                        kind::POSTING,
                        to,
                        doc.into(),
                        &[bytemuck::bytes_of(&posting)],
                    )
                })
            })?;
        }
        if let Some(page) = pages.next() {
            return Err(misfit("a page", page[0]));
        }
        self.shard.clear();
        self.pages.clear();
        Ok(())
    }
}

/// The step that counts the pages of word pairs.
pub(super) struct CountPages {
    context: Context,
    scratch: Scratch,
    postings: Option<Sorter<Posting>>,
}

impl CountPages {
    pub(super) fn new(context: Context) -> Self {
        Self {
            scratch: Scratch::new(&context),
            context,
            postings: None,
        }
    }

    fn push(&self, repeated: &RepeatedPair, out: &mut Sink) -> Result<(), Error> {
        let part = self.context.shard_of(repeated.doc);
        let seq = repeated.doc.into();
        out.push(kind::REPEATED, part, seq, &[bytemuck::bytes_of(repeated)])
    }
}

impl Step for CountPages {
    fn take(&mut self, message: &Message<'_>, _: &mut Sink) -> Result<(), Error> {
        if self.postings.is_none() {
            self.postings = Some(self.scratch.sorter()?);
        }
        let postings = self.postings.as_mut().expect("just set");
        postings.extend(&message.records()?)
    }

    fn end(&mut self, part: i64, out: &mut Sink) -> Result<(), Error> {
        let Some(postings) = self.postings.take() else {
            return Ok(());
        };
        let mut postings = postings.finish()?;
        let mut n_framed = 0_u64;
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
            if n_pages < MIN_PAGES {
                continue;
            }
            n_framed += 1;
            let framed = Framed {
                key,
                n_others: u64::from(n_pages) - 1,
            };
            let bytes = [bytemuck::bytes_of(&framed)];
            out.push(kind::FRAMED, part, n_framed as i64, &bytes)?;
            docs.iter().try_for_each(|&doc| {
                let n_others = n_pages - 1;
                self.push(&RepeatedPair { doc, n_others, key }, out)
            })?;
        }
        out.note(&json!({ "framed": n_framed }))
    }
}

/// The step that outputs a row for every word pair that enough pages of a site contain.
pub(super) struct ListRepeats;

impl Step for ListRepeats {
    fn take(&mut self, message: &Message<'_>, out: &mut Sink) -> Result<(), Error> {
        let columns = repeated::columns(&message.records::<Framed>()?);
        let batch = RecordBatch::try_new(Arc::new(repeated::schema()), columns);
        out.rows(batch.expect("columns are those of the schema"))
    }

    fn end(&mut self, _: i64, _: &mut Sink) -> Result<(), Error> {
        Ok(())
    }
}

/// The step that weighs the word pairs of documents and sketches them.
pub(super) struct Weights {
    context: Context,
    weigher: Weigher,
    marker: Marker,
    shard: Shard,
    repeated: Vec<RepeatedPair>,
    copies: Vec<Ordinal>,
}

impl Weights {
    pub(super) fn new(config: &Config, context: Context) -> Self {
        Self {
            context,
            weigher: Weigher::new(config),
            marker: Marker::new(config),
            shard: Shard::default(),
            repeated: Vec::new(),
            copies: Vec::new(),
        }
    }

    fn push(
        &self,
        doc: Ordinal,
        marks: &Marks,
        others: &[Others],
        part: i64,
        out: &mut Sink,
    ) -> Result<(), Error> {
        out.push(kind::MARKS, part, doc.into(), &[bytemuck::bytes_of(marks)])?;
        // Documents without a message have no repeated text.
        if others.iter().all(|&n| n == 0) {
            return Ok(());
        }
        let head = OthersHead {
            doc,
            n: others.len() as u32,
        };
        let pieces = [bytemuck::bytes_of(&head), bytemuck::cast_slice(others)];
        out.push(kind::OTHERS, part, doc.into(), &pieces)
    }
}

impl Step for Weights {
    fn take(&mut self, message: &Message<'_>, _: &mut Sink) -> Result<(), Error> {
        if self.shard.take(message)? {
            return Ok(());
        }
        match message.kind {
            kind::REPEATED => self.repeated.extend(message.records::<RepeatedPair>()?),
            _ => self.copies.extend(message.records::<Ordinal>()?),
        }
        Ok(())
    }

    fn end(&mut self, part: i64, out: &mut Sink) -> Result<(), Error> {
        let start = self.context.start_of(part)?;
        let (mut repeated, mut copies) = (
            std::mem::take(&mut self.repeated),
            std::mem::take(&mut self.copies),
        );
        repeated.sort_unstable_by_key(|one| (one.doc, one.key));
        copies.sort_unstable();
        let (mut left, mut copies) = (&repeated[..], copies.iter().peekable());
        let (mut shingles, mut numbers) = (Vec::new(), Vec::new());
        let mut room = MarkRoom::default();
        self.shard.for_each(start, |doc, record, site, tokens| {
            let n_own = left.partition_point(|one| one.doc <= doc);
            let (own, rest) = left.split_at(n_own);
            left = rest;
            let is_copy = copies.next_if(|copy| **copy == doc).is_some();
            if is_copy || record.flags & (SHORT | EMPTY) != 0 {
                // Their marks are not used, but others are found by position.
                return self.push(doc, &Marks::zeroed(), &[], part, out);
            }
            self.weigher.shingle(tokens, &mut shingles);
            let salt = salt(site);
            numbers.clear();
            numbers.extend(shingles.iter().map(|&shingle| {
                let found = own.binary_search_by_key(&key(shingle, salt), |one| one.key);
                found.map_or(0, |place| others(own[place].n_others.into()))
            }));
            self.weigher.sample(&shingles, &mut numbers);
            let marks = self
                .marker
                .marks_of_shingles(&shingles, &numbers, &mut room);
            self.push(doc, &marks, &numbers, part, out)
        })?;
        if let Some(one) = left.first() {
            return Err(misfit("a word pair", one.doc));
        }
        self.shard.clear();
        Ok(())
    }
}

/// The step that computes keys from marks.
pub(super) struct MarkKeys {
    context: Context,
    tables: MarkTables,
    /// The digest of every document of the shard; none if it has no keys.
    digests: Vec<Option<u64>>,
    /// Number of documents whose marks were processed.
    n_marked: usize,
}

impl MarkKeys {
    pub(super) fn new(config: &Config, context: Context) -> Result<Self, Error> {
        Ok(Self {
            context,
            tables: MarkTables::new(config)?,
            digests: Vec::new(),
            n_marked: 0,
        })
    }
}

impl Step for MarkKeys {
    fn take(&mut self, message: &Message<'_>, out: &mut Sink) -> Result<(), Error> {
        let start = self.context.start_of(message.part)?;
        match message.kind {
            kind::DOCS => {
                let docs = Docs::of(message)?.records.into_iter();
                self.digests.extend(docs.map(|record| {
                    (record.flags & (SHORT | EMPTY) == 0).then_some(record.digest[0])
                }));
            }
            kind::COPY => {
                for doc in message.records::<Ordinal>()? {
                    let digest = self.digests.get_mut((doc - start) as usize);
                    *digest.ok_or_else(|| misfit("a copy", doc))? = None;
                }
            }
            _ => {
                for marks in message.records::<Marks>()? {
                    let doc = start + self.n_marked as Ordinal;
                    let digest = self.digests.get(self.n_marked);
                    self.n_marked += 1;
                    if let Some(digest) = digest.ok_or_else(|| misfit("a sketch", doc))? {
                        runs::push_keys(&self.tables, &self.context, doc, *digest, &marks, out)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn end(&mut self, _: i64, _: &mut Sink) -> Result<(), Error> {
        self.digests.clear();
        self.n_marked = 0;
        Ok(())
    }
}
