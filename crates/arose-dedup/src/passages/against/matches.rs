//! Third stage: the windows that the reference and the corpus share.
//!
//! The stage writes three files. `spans_of_items` and `spans_of_docs` list the windows of either
//! side that the other side also contains, by place. `links` lists pairs of them by item, document
//! and shift. A window with more than [`MAX_LINKED`] places in the reference is linked only to the
//! first of them. A window in more than `common` documents is not linked.

use std::path::Path;

use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};

use super::{ReferenceSearch, lookup, short, sorted};
use crate::column::Column;
use crate::passages::anchors::Search;
use crate::passages::listing::MAX_LINKED;
use crate::passages::partners::Link;
use crate::passages::text::{DOCS, TOKENS, TextRecord, Texts};
use crate::sorter::Sorter;
use crate::{Error, Progress};
use arose::passage::{BYTES_PER_WINDOW, Reference, ReferenceBuilder};

/// Windows of items that the corpus also contains, by place.
pub(crate) const SPANS_OF_ITEMS: &str = "spans_of_items";
/// Windows of documents that the reference also contains, by place.
pub(crate) const SPANS_OF_DOCS: &str = "spans_of_docs";
/// Pairs of them. The item comes first.
pub(crate) const LINKS: &str = "links";

/// The window is in too many documents to list each of them.
pub(crate) const COMMON: u32 = 1;
/// The window has more places in the reference than were linked.
pub(crate) const CAPPED: u32 = 2;

/// A window, or a whole short item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Span {
    /// Item or document.
    pub(crate) doc: u32,
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) flags: u32,
}

/// The results of the stage.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Matches {
    /// Number of windows of the items, and of distinct windows among them. The latter is known only
    /// if all windows were in memory.
    pub(crate) n_windows: u64,
    pub(crate) n_distinct: Option<u64>,
    /// Number of distinct windows that both sides contain, and of those in too many documents.
    pub(crate) n_found: u64,
    pub(crate) n_common: u64,
    /// `memory` or `anchors`.
    pub(crate) method: String,
}

/// The corpus and the reference.
pub(crate) struct Sides<'a> {
    pub(crate) corpus: &'a Texts,
    pub(crate) reference: &'a Texts,
}

pub(crate) fn run(
    sides: &Sides<'_>,
    against: &ReferenceSearch,
    search: &Search,
    memory: u64,
    folder: &Path,
    progress: &Progress,
) -> Result<Matches, Error> {
    let mut out = MatchSorters::new(folder, search, against.common.get());
    let fits = n_windows(sides.reference, search)? * BYTES_PER_WINDOW <= memory;
    let mut found = match fits {
        true => {
            let reference = whole(sides.reference, search)?;
            lookup::run(sides.corpus, &reference, search, folder, &mut out, progress)?
        }
        false => sorted::run(sides, search, folder, &mut out, progress)?,
    };
    found.n_windows = n_windows(sides.reference, search)?;
    short::run(sides, search, memory, folder, &mut out, progress)?;
    out.finish(folder)?;
    Ok(found)
}

/// Returns the number of windows of all items.
fn n_windows(reference: &Texts, search: &Search) -> Result<u64, Error> {
    let mut items = reference.docs()?;
    let mut n = 0;
    while let Some(item) = items.next()? {
        n += (u64::from(item.n_tokens) + 1).saturating_sub(search.n_tokens as u64);
    }
    Ok(n)
}

/// Loads the reference into memory.
pub(super) fn whole(texts: &Texts, search: &Search) -> Result<Reference, Error> {
    let mut builder = ReferenceBuilder::new(search.n_tokens);
    let items = Column::<TextRecord>::open(&texts.path(DOCS), 0)?;
    let tokens = Column::<u64>::open(&texts.path(TOKENS), 0)?;
    let mut buffer = Vec::new();
    for item in 0..texts.docs()?.left() as u32 {
        let record = items.get(item)?;
        buffer.resize(record.n_tokens as usize, 0);
        tokens.read_into(record.tokens_at, &mut buffer)?;
        builder.push(&buffer);
    }
    Ok(builder.finish())
}

/// The sorters of the output records.
pub(crate) struct MatchSorters {
    items: Sorter<Span>,
    docs: Sorter<Span>,
    links: Sorter<Link>,
    common: u64,
}

impl MatchSorters {
    pub(super) fn new(folder: &Path, search: &Search, common: u64) -> Self {
        let part = search.allowance / 3;
        Self {
            items: Sorter::new(&folder.join("sort_items"), part),
            docs: Sorter::new(&folder.join("sort_docs"), part),
            links: Sorter::new(&folder.join("sort_links"), part),
            common,
        }
    }

    /// Returns the flags of a window, given the number of documents that contain it.
    pub(crate) fn flags(&self, n_docs: u64, n_places: usize) -> u32 {
        let flag = |is_set: bool, flag| if is_set { flag } else { 0 };
        flag(n_docs > self.common, COMMON) | flag(n_places > MAX_LINKED as usize, CAPPED)
    }

    pub(crate) fn push_item(&mut self, span: Span) -> Result<(), Error> {
        self.items.push(span)
    }

    pub(crate) fn push_doc(&mut self, span: Span) -> Result<(), Error> {
        self.docs.push(span)
    }

    /// Links `n` tokens of an item with those of a document.
    pub(crate) fn link(&mut self, item: [u32; 2], doc: [u32; 2], n: u32) -> Result<(), Error> {
        self.links.push(Link {
            doc: item[0],
            partner: doc[0],
            shift: doc[1].wrapping_sub(item[1]) as i32,
            start: item[1],
            end: item[1] + n,
        })
    }

    pub(super) fn finish(self, folder: &Path) -> Result<(), Error> {
        self.items.write(&folder.join(SPANS_OF_ITEMS))?;
        self.docs.write(&folder.join(SPANS_OF_DOCS))?;
        self.links.write(&folder.join(LINKS)).map(drop)
    }
}

/// Returns the places of a window that are linked.
pub(crate) fn linked<T>(places: &[T]) -> &[T] {
    match places.len() as u64 > MAX_LINKED {
        true => &places[..1],
        false => places,
    }
}
