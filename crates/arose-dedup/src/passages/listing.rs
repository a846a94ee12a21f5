//! Fifth stage: `passages.parquet` and `places.parquet`, and the marks for the documents.

use std::cmp::Reverse;
use std::ops::Range;
use std::path::Path;

use arose::passage::{Place, Role};
use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use super::anchors::Search;
use super::config::PassagesConfig;
use super::occurrences::{OCCURRENCES, OccurrenceRun, PASSAGES, PassageRecord};
use super::parts::{ByDocument, Parts};
use super::sheet::{Cell, ColumnKind, Head, Sheet};
use super::text::{Places, TextReader, Texts};
use crate::column::{Scan, Writer};
use crate::{Error, Progress};

/// Occurrences, in parts by document.
pub(crate) const MARKS: &str = "marks";
/// The places of passages, of which marks know their part.
pub(crate) const LISTS: &str = "lists";

/// Passages with more places are linked only to their first place.
pub(crate) const MAX_LINKED: u64 = 64;
/// Maximum number of characters shown of a passage.
pub(crate) const SHOWN_CHARS: usize = 200;

const PASSAGE_HEADS: [Head; 8] = [
    ("passage", ColumnKind::Number, false),
    ("digest", ColumnKind::Text, false),
    ("tokens", ColumnKind::Number, false),
    ("occurrences", ColumnKind::Number, false),
    ("documents", ColumnKind::Number, false),
    ("first_doc", ColumnKind::Number, false),
    ("first_token", ColumnKind::Number, false),
    ("text", ColumnKind::Text, false),
];

const PLACE_HEADS: [Head; 9] = [
    ("passage", ColumnKind::Number, false),
    ("doc", ColumnKind::Number, false),
    ("rank", ColumnKind::Number, false),
    ("start", ColumnKind::Number, false),
    ("end", ColumnKind::Number, false),
    ("start_char", ColumnKind::Number, false),
    ("end_char", ColumnKind::Number, false),
    ("start_byte", ColumnKind::Number, false),
    ("end_byte", ColumnKind::Number, false),
];

/// An occurrence, or several at equal distances without gaps, sorted by its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Mark {
    pub(crate) doc: u32,
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// [`FIRST`], [`LATER`] or neither, and [`CAPPED`]. The bits from [`LISTED`] on are the number
    /// of records in the list of its passage.
    pub(crate) flags: u32,
    /// The first place of the passage, or the second place for a first occurrence.
    pub(crate) source_doc: u32,
    pub(crate) source_token: u32,
    /// From the start of the first one to the end of the last.
    pub(crate) bytes: [u32; 2],
    /// The number of occurrences, and the number of tokens from one start to the next.
    pub(crate) times: u32,
    pub(crate) step: u32,
    pub(crate) passage: u64,
    /// The first record of the list.
    pub(crate) list_at: u64,
}

/// An occurrence in the list of its passage, or several at equal distances. The list of a passage
/// with many places has only the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Listed {
    pub(crate) doc: u32,
    pub(crate) start: u32,
    pub(crate) times: u32,
    pub(crate) step: u32,
}

pub(crate) const FIRST: u32 = 1;
pub(crate) const LATER: u32 = 2;
/// Not all places of the passage are linked.
pub(crate) const CAPPED: u32 = 4;
const LISTED: u32 = 8;

impl Mark {
    /// The tokens of each occurrence.
    pub(crate) fn spans(self) -> impl Iterator<Item = Range<u32>> {
        (0..self.times).map(move |i| self.start + i * self.step..self.end + i * self.step)
    }

    /// The number of records in the list of its passage.
    pub(crate) fn n_listed(&self) -> usize {
        (self.flags >> LISTED) as usize
    }

    /// The end of the last one.
    pub(crate) fn last_end(&self) -> u32 {
        self.end + (self.times - 1) * self.step
    }

    pub(crate) fn role(&self) -> Role {
        match self.flags & (FIRST | LATER) {
            FIRST => Role::First,
            LATER => Role::Later,
            _ => Role::Own,
        }
    }
}

/// The results of the stage.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Listing {
    pub(crate) n_passages: u64,
    pub(crate) n_occurrences: u64,
    /// Number of repeated windows, and of distinct windows among them.
    pub(crate) n_repeated: u64,
    pub(crate) n_distinct: u64,
    pub(crate) n_later: u64,
    /// Number of places that are counted but not listed, and of their passages.
    pub(crate) n_unlisted: u64,
    pub(crate) n_capped: u64,
    pub(crate) longest: u64,
    pub(crate) most_places: u64,
    /// Number of parts of the marks.
    pub(crate) n_parts: u64,
    /// The passages with the most places, for people.
    pub(crate) top: Vec<TopPassage>,
}

/// A passage with many places.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct TopPassage {
    pub(crate) occurrences: u64,
    pub(crate) documents: u64,
    pub(crate) tokens: u64,
    pub(crate) passage: u64,
    pub(crate) first_doc: u64,
    pub(crate) text: String,
}

/// Maximum number of passages shown to people.
pub(crate) const MAX_TOP: usize = 20;

pub(crate) fn run(
    texts: &Texts,
    [occurrences, folder, out]: [&Path; 3],
    n_parts: u64,
    search: &Search,
    config: &PassagesConfig,
    progress: &Progress,
) -> Result<Listing, Error> {
    let mut passages = Scan::<PassageRecord>::open(&occurrences.join(PASSAGES))?;
    let mut found = Scan::<OccurrenceRun>::open(&occurrences.join(OCCURRENCES))?;
    progress.expect(found.left());
    let mut lister = Lister {
        reader: texts.reader()?,
        near: Places::new(texts.reader()?),
        config,
        passages: Sheet::create(&out.join("passages.parquet"), &PASSAGE_HEADS)?,
        places: Sheet::create(&out.join("places.parquet"), &PLACE_HEADS)?,
        marks: Parts::create(&folder.join(MARKS), n_parts)?,
        by_document: ByDocument::new(texts.docs()?.left(), n_parts),
        lists: Writer::create(&folder.join(LISTS))?,
        n_tokens: search.n_tokens as u32,
        listing: Listing {
            n_parts,
            ..Listing::default()
        },
    };
    while let Some(passage) = passages.next()? {
        let n_before = found.left();
        lister.passage(&passage, &mut found)?;
        progress.advance(n_before - found.left())?;
    }
    lister.passages.finish()?;
    lister.places.finish()?;
    lister.marks.finish()?;
    lister.lists.finish()?;
    Ok(lister.listing)
}

/// The list of a passage, with the flags of its marks.
#[derive(Clone, Copy)]
struct List {
    at: u64,
    flags: u32,
}

struct Lister<'a> {
    reader: TextReader,
    /// Places of occurrences inside a record of several.
    near: Places,
    config: &'a PassagesConfig,
    passages: Sheet,
    places: Sheet,
    marks: Parts<Mark>,
    by_document: ByDocument,
    lists: Writer<Listed>,
    n_tokens: u32,
    listing: Listing,
}

impl Lister<'_> {
    /// Processes the occurrences of a passage.
    fn passage(
        &mut self,
        passage: &PassageRecord,
        found: &mut Scan<OccurrenceRun>,
    ) -> Result<(), Error> {
        let mut next = || Ok::<_, Error>(found.next()?.expect("as many as the passage says"));
        if passage.is_wanted == 0 {
            return (0..passage.n_records).try_for_each(|_| next().map(drop));
        }
        let first = next()?;
        self.row(passage, &first)?;
        let list = match passage.n_places > MAX_LINKED {
            true => List {
                at: self.lists.len(),
                flags: 1 << LISTED | CAPPED,
            },
            false => List {
                at: self.lists.len(),
                flags: (passage.n_records as u32) << LISTED,
            },
        };
        let mut rank = 0;
        for number in 0..passage.n_records {
            let one = if number == 0 { first } else { next()? };
            match number {
                0 => self.mark_first(&first, list)?,
                1 if first.times == 1 => {
                    // The first occurrence is listed with the second as its source.
                    self.mark(&first, [one.doc, one.start], list)?;
                    self.mark(&one, [first.doc, first.start], list)?;
                }
                _ => self.mark(&one, [first.doc, first.start], list)?,
            }
            self.places(&mut rank, &one)?;
            if number == 0 || list.flags & CAPPED == 0 {
                self.lists.push(&Listed {
                    doc: one.doc,
                    start: one.start,
                    times: one.times,
                    step: one.step,
                })?;
            }
        }
        self.count(passage, &first);
        Ok(())
    }

    /// If the first occurrence is repeated immediately, the others of its record are later ones.
    fn mark_first(&mut self, first: &OccurrenceRun, list: List) -> Result<(), Error> {
        if first.times == 1 {
            return Ok(());
        }
        let second = first.start_of(1);
        let [bytes, _] = self.near.of(first.doc, first.start..first.end)?;
        let alone = OccurrenceRun {
            times: 1,
            bytes,
            ..*first
        };
        self.mark(&alone, [first.doc, second], list)?;
        let [bytes, _] = self.near.of(first.doc, second..first.last_end())?;
        let others = OccurrenceRun {
            start: second,
            end: first.end + first.step,
            times: first.times - 1,
            bytes,
            ..*first
        };
        self.mark(&others, [first.doc, first.start], list)
    }

    /// Lists the places of a record, up to the limit.
    fn places(&mut self, rank: &mut u64, one: &OccurrenceRun) -> Result<(), Error> {
        for i in 0..one.times {
            if *rank >= self.config.list {
                return Ok(());
            }
            let tokens = one.start_of(i)..one.end + i * one.step;
            let [bytes, chars] = match one.times {
                1 => [one.bytes, one.chars],
                _ => self.near.of(one.doc, tokens.clone())?,
            };
            self.place(*rank, one.doc, tokens, bytes, chars)?;
            *rank += 1;
        }
        Ok(())
    }

    fn count(&mut self, passage: &PassageRecord, first: &OccurrenceRun) {
        let listing = &mut self.listing;
        let n_windows = u64::from(first.end - first.start - self.n_tokens + 1);
        listing.n_passages += 1;
        listing.n_occurrences += passage.n_places;
        listing.n_repeated += passage.n_places * n_windows;
        listing.n_distinct += n_windows;
        let n_unlisted = passage.n_places.saturating_sub(self.config.list);
        listing.n_unlisted += n_unlisted;
        listing.n_capped += u64::from(n_unlisted > 0);
        listing.longest = listing.longest.max(u64::from(first.end - first.start));
        listing.most_places = listing.most_places.max(passage.n_places);
    }

    fn row(&mut self, passage: &PassageRecord, first: &OccurrenceRun) -> Result<(), Error> {
        let mut tokens = vec![0; (first.end - first.start) as usize];
        self.reader
            .some_tokens(first.doc, first.start, &mut tokens)?;
        let digest = format!("{:032x}", xxh3_128(bytemuck::cast_slice(&tokens)));
        let n_tokens = tokens.len() as u64;
        let bytes = match first.times {
            1 => first.bytes,
            _ => self.near.of(first.doc, first.start..first.end)?[0],
        };
        let text = self.reader.shown(first.doc, bytes, SHOWN_CHARS)?;
        let top = &mut self.listing.top;
        if top.len() < MAX_TOP
            || top
                .last()
                .is_some_and(|last| passage.n_places > last.occurrences)
        {
            top.push(TopPassage {
                occurrences: passage.n_places,
                documents: u64::from(passage.n_docs),
                tokens: n_tokens,
                passage: self.listing.n_passages,
                first_doc: u64::from(first.doc),
                text: text.clone(),
            });
            top.sort_by_key(|one| (Reverse(one.occurrences), one.passage));
            top.truncate(MAX_TOP);
        }
        self.passages.push(&[
            Cell::Number(self.listing.n_passages),
            Cell::Text(&digest),
            Cell::Number(n_tokens),
            Cell::Number(passage.n_places),
            Cell::Number(u64::from(passage.n_docs)),
            Cell::Number(u64::from(first.doc)),
            Cell::Number(u64::from(first.start)),
            Cell::Text(&text),
        ])
    }

    fn place(
        &mut self,
        rank: u64,
        doc: u32,
        tokens: Range<u32>,
        bytes: [u32; 2],
        chars: [u32; 2],
    ) -> Result<(), Error> {
        let number = |number: u32| Cell::Number(u64::from(number));
        self.places.push(&[
            Cell::Number(self.listing.n_passages),
            number(doc),
            Cell::Number(rank),
            number(tokens.start),
            number(tokens.end),
            number(chars[0]),
            number(chars[1]),
            number(bytes[0]),
            number(bytes[1]),
        ])
    }

    fn mark(&mut self, one: &OccurrenceRun, source: [u32; 2], list: List) -> Result<(), Error> {
        let own = Place {
            doc: one.doc,
            token: one.start,
        };
        let first = Place {
            doc: one.first_doc,
            token: one.first_token,
        };
        let role = match self.config.scope.role(own, first) {
            Role::First => FIRST,
            Role::Later => {
                let n_windows = one.end - one.start - self.n_tokens + 1;
                self.listing.n_later += u64::from(one.times) * u64::from(n_windows);
                LATER
            }
            Role::Own => 0,
        };
        let mark = Mark {
            doc: one.doc,
            start: one.start,
            end: one.end,
            flags: role | list.flags,
            source_doc: source[0],
            source_token: source[1],
            bytes: one.bytes,
            times: one.times,
            step: one.step,
            passage: self.listing.n_passages,
            list_at: list.at,
        };
        self.marks.push(self.by_document.part(one.doc), &mark)
    }
}
