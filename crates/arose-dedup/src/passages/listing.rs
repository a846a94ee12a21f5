//! Seventh stage: `passages.parquet` and `places.parquet`, and the marks for the documents.
//!
//! Every occurrence is compared token by token with the first before it is written anywhere.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::Path;

use arose::passage::{Place, Role, Scope};
use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use super::anchors::Search;
use super::config::Config;
use super::occurrences::{Found, OCCURRENCES, PASSAGES, Passage};
use super::sheet::{Cell, Head, Kind, Sheet};
use super::text::{TextReader, Texts};
use crate::column::Scan;
use crate::sorter::Sorter;
use crate::{Error, Progress};

/// Occurrences by document.
pub(crate) const MARKS: &str = "marks";
/// Pairs of occurrences by document.
pub(crate) const LINKS: &str = "links";

/// Passages with more places are linked to their first one only.
pub(crate) const MAX_LINKED: u64 = 64;
/// Characters shown of a passage.
pub(crate) const SHOWN_CHARS: usize = 200;

const PASSAGE_HEADS: [Head; 8] = [
    ("passage", Kind::Number, false),
    ("digest", Kind::Text, false),
    ("tokens", Kind::Number, false),
    ("occurrences", Kind::Number, false),
    ("documents", Kind::Number, false),
    ("first_doc", Kind::Number, false),
    ("first_token", Kind::Number, false),
    ("text", Kind::Text, false),
];

const PLACE_HEADS: [Head; 9] = [
    ("passage", Kind::Number, false),
    ("doc", Kind::Number, false),
    ("rank", Kind::Number, false),
    ("start", Kind::Number, false),
    ("end", Kind::Number, false),
    ("start_char", Kind::Number, false),
    ("end_char", Kind::Number, false),
    ("start_byte", Kind::Number, false),
    ("end_byte", Kind::Number, false),
];

/// An occurrence, sorted by its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Mark {
    pub(crate) doc: u32,
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// [`FIRST`], [`LATER`] or neither, and [`CAPPED`].
    pub(crate) flags: u32,
    /// The first place of the passage; of a first occurrence, the second place.
    pub(crate) source_doc: u32,
    pub(crate) source_token: u32,
    pub(crate) bytes: [u32; 2],
    pub(crate) passage: u64,
}

pub(crate) const FIRST: u32 = 1;
pub(crate) const LATER: u32 = 2;
/// Not all places of the passage are linked.
pub(crate) const CAPPED: u32 = 4;

impl Mark {
    pub(crate) fn role(&self) -> Role {
        match self.flags & (FIRST | LATER) {
            FIRST => Role::First,
            LATER => Role::Later,
            _ => Role::Own,
        }
    }
}

/// An occurrence that stands in a partner too, `shift` tokens further, sorted so that runs follow
/// each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Link {
    pub(crate) doc: u32,
    pub(crate) partner: u32,
    pub(crate) shift: i32,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// What the stage found.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Listing {
    pub(crate) n_passages: u64,
    pub(crate) n_occurrences: u64,
    /// Repeated windows, and distinct ones among them.
    pub(crate) n_repeated: u64,
    pub(crate) n_distinct: u64,
    pub(crate) n_later: u64,
    /// Places that are counted and not listed, and the passages they belong to.
    pub(crate) n_unlisted: u64,
    pub(crate) n_capped: u64,
    pub(crate) longest: u64,
    pub(crate) most_places: u64,
    /// The passages with most places, for people.
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

/// Passages shown to people.
pub(crate) const MAX_TOP: usize = 20;

pub(crate) fn run(
    texts: &Texts,
    occurrences: &Path,
    search: &Search,
    config: &Config,
    [folder, out]: [&Path; 2],
    progress: &Progress,
) -> Result<Listing, Error> {
    let mut passages = Scan::<Passage>::open(&occurrences.join(PASSAGES))?;
    let mut found = Scan::<Found>::open(&occurrences.join(OCCURRENCES))?;
    progress.expect(found.left());
    let mut lister = Lister {
        reader: texts.reader()?,
        config,
        passages: Sheet::create(&out.join("passages.parquet"), &PASSAGE_HEADS)?,
        places: Sheet::create(&out.join("places.parquet"), &PLACE_HEADS)?,
        marks: Sorter::new(&folder.join("sort_marks"), search.allowance / 2),
        links: Sorter::new(&folder.join("sort_links"), search.allowance / 2),
        n_tokens: search.n_tokens as u32,
        listing: Listing::default(),
    };
    while let Some(passage) = passages.next()? {
        lister.passage(&passage, &mut found)?;
        progress.advance(passage.n_places)?;
    }
    lister.passages.finish()?;
    lister.places.finish()?;
    lister.marks.write(&folder.join(MARKS))?;
    lister.links.write(&folder.join(LINKS))?;
    Ok(lister.listing)
}

struct Lister<'a> {
    reader: TextReader,
    config: &'a Config,
    passages: Sheet,
    places: Sheet,
    marks: Sorter<Mark>,
    links: Sorter<Link>,
    n_tokens: u32,
    listing: Listing,
}

impl Lister<'_> {
    /// Takes the occurrences of a passage.
    fn passage(&mut self, passage: &Passage, found: &mut Scan<Found>) -> Result<(), Error> {
        let mut next = || Ok::<_, Error>(found.next()?.expect("as many as the passage says"));
        if passage.is_wanted == 0 {
            return (0..passage.n_places).try_for_each(|_| next().map(drop));
        }
        let first = next()?;
        let mut check = Check::new(&first, &mut self.reader)?;
        self.row(passage, &first, &check.tokens)?;
        let is_capped = passage.n_places > MAX_LINKED;
        let mut few = vec![first];
        for rank in 0..passage.n_places {
            let one = if rank == 0 { first } else { next()? };
            if rank > 0 {
                check.compare(&one, &mut self.reader)?;
            }
            if rank == 1 {
                // The first occurrence is listed with the second as its source.
                self.mark(&first, &one, is_capped)?;
            }
            if rank > 0 {
                self.mark(&one, &first, is_capped)?;
            }
            if rank < self.config.list {
                self.place(rank, &one)?;
            }
            match (rank, is_capped) {
                (0, _) => {}
                (_, true) => self.link(&one, &first)?,
                (_, false) => few.push(one),
            }
        }
        if !is_capped {
            for (i, a) in few.iter().enumerate() {
                for (_, b) in few.iter().enumerate().filter(|(j, _)| *j != i) {
                    self.link(a, b)?;
                }
            }
        }
        self.count(passage, &first);
        Ok(())
    }

    fn count(&mut self, passage: &Passage, first: &Found) {
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

    fn row(&mut self, passage: &Passage, first: &Found, tokens: &[u64]) -> Result<(), Error> {
        let digest = format!("{:032x}", xxh3_128(bytemuck::cast_slice(tokens)));
        let text = self.reader.shown(first.doc, first.bytes, SHOWN_CHARS)?;
        let top = &mut self.listing.top;
        if top.len() < MAX_TOP
            || top
                .last()
                .is_some_and(|last| passage.n_places > last.occurrences)
        {
            top.push(TopPassage {
                occurrences: passage.n_places,
                documents: u64::from(passage.n_docs),
                tokens: tokens.len() as u64,
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
            Cell::Number(tokens.len() as u64),
            Cell::Number(passage.n_places),
            Cell::Number(u64::from(passage.n_docs)),
            Cell::Number(u64::from(first.doc)),
            Cell::Number(u64::from(first.start)),
            Cell::Text(&text),
        ])
    }

    fn place(&mut self, rank: u64, one: &Found) -> Result<(), Error> {
        let numbers = [
            one.start,
            one.end,
            one.chars[0],
            one.chars[1],
            one.bytes[0],
            one.bytes[1],
        ];
        let mut cells = vec![
            Cell::Number(self.listing.n_passages),
            Cell::Number(u64::from(one.doc)),
            Cell::Number(rank),
        ];
        cells.extend(numbers.map(|number| Cell::Number(u64::from(number))));
        self.places.push(&cells)
    }

    fn mark(&mut self, one: &Found, source: &Found, is_capped: bool) -> Result<(), Error> {
        let place = |found: &Found| Place {
            doc: found.doc,
            token: found.start,
        };
        let first = Place {
            doc: one.first_doc,
            token: one.first_token,
        };
        let role = match self.config.scope.role(place(one), first) {
            Role::First => FIRST,
            Role::Later => {
                self.listing.n_later += u64::from(one.end - one.start - self.n_tokens + 1);
                LATER
            }
            Role::Own => 0,
        };
        self.marks.push(Mark {
            doc: one.doc,
            start: one.start,
            end: one.end,
            flags: role | if is_capped { CAPPED } else { 0 },
            source_doc: source.doc,
            source_token: source.start,
            bytes: one.bytes,
            passage: self.listing.n_passages,
        })
    }

    fn link(&mut self, one: &Found, other: &Found) -> Result<(), Error> {
        if self.config.scope == Scope::Across && one.doc == other.doc {
            return Ok(());
        }
        self.links.push(Link {
            doc: one.doc,
            partner: other.doc,
            shift: other.start.wrapping_sub(one.start) as i32,
            start: one.start,
            end: one.end,
        })
    }
}

/// Compares occurrences with the first one.
struct Check {
    tokens: Vec<u64>,
    /// The occurrence compared last.
    last: (u32, u32),
    /// Distances at which the passage is known to repeat itself.
    periods: BTreeSet<u32>,
}

impl Check {
    fn new(first: &Found, reader: &mut TextReader) -> Result<Self, Error> {
        Ok(Self {
            tokens: reader
                .near_tokens(first.doc, first.start..first.end)?
                .to_vec(),
            last: (first.doc, first.start),
            periods: BTreeSet::new(),
        })
    }

    /// An error if the tokens are not those of the first occurrence.
    ///
    /// If an occurrence overlaps the one before by a distance `d`, the passage repeats itself after
    /// `d` tokens. Once that is known, the last `d` tokens tell all: the work is linear even where
    /// every token starts an occurrence.
    fn compare(&mut self, one: &Found, reader: &mut TextReader) -> Result<(), Error> {
        let n = self.tokens.len();
        if (one.end - one.start) as usize != n {
            return Err(Error::Collision);
        }
        let (doc, start) = std::mem::replace(&mut self.last, (one.doc, one.start));
        let distance = match doc == one.doc {
            true => one.start - start,
            false => u32::MAX,
        };
        let is_overlap = (distance as usize) < n;
        let n_new = match is_overlap && self.periods.contains(&distance) {
            true => distance as usize,
            false => n,
        };
        let from = one.end - n_new as u32;
        if *reader.near_tokens(one.doc, from..one.end)? != self.tokens[n - n_new..] {
            return Err(Error::Collision);
        }
        if is_overlap {
            self.periods.insert(distance);
        }
        Ok(())
    }
}
