//! Fourth stage: `items.parquet` and `matches.parquet`.
//!
//! Every match is compared token by token before it is written or counted.

use std::cmp::Reverse;
use std::path::Path;

use arose::passage::{MIN_WHOLE, Removal, Role, removed};
use arose_corpus::Position;
use serde::{Deserialize, Serialize};

use super::matches::{CAPPED, COMMON, LINKS, SPANS_OF_ITEMS, Span};
use crate::names::NameScan;
use crate::passages::anchors::Search;
use crate::passages::documents::Groups;
use crate::passages::listing::{MAX_TOP, SHOWN_CHARS};
use crate::passages::partners::{Link, Partners, runs};
use crate::passages::read::Read;
use crate::passages::sheet::{Cell, ColumnKind, Head, Sheet};
use crate::passages::text::{PartReader, TextReader, TextRecord, Texts};
use crate::sorter::Sorter;
use crate::source::path_text;
use crate::{Error, Progress};

/// Pairs of documents and the items in them.
pub(crate) const PAIRS: &str = "pairs";

const ITEM_HEADS: [Head; 19] = [
    ("item", ColumnKind::Number, false),
    ("id", ColumnKind::Text, false),
    ("url", ColumnKind::Text, true),
    ("source", ColumnKind::Text, false),
    ("position", ColumnKind::Text, false),
    ("tokens", ColumnKind::Number, false),
    ("decided", ColumnKind::Flag, false),
    ("covered", ColumnKind::Number, false),
    ("share", ColumnKind::Share, false),
    ("common", ColumnKind::Number, false),
    ("longest", ColumnKind::Number, false),
    ("longest_start", ColumnKind::Number, true),
    ("longest_doc", ColumnKind::Number, true),
    ("longest_doc_start", ColumnKind::Number, true),
    ("best_doc", ColumnKind::Number, true),
    ("best_covered", ColumnKind::Number, false),
    ("best_share", ColumnKind::Share, true),
    ("documents", ColumnKind::Number, false),
    ("capped", ColumnKind::Flag, false),
];

const MATCH_HEADS: [Head; 9] = [
    ("item", ColumnKind::Number, false),
    ("start", ColumnKind::Number, false),
    ("end", ColumnKind::Number, false),
    ("doc", ColumnKind::Number, false),
    ("doc_start", ColumnKind::Number, false),
    ("doc_end", ColumnKind::Number, false),
    ("doc_start_byte", ColumnKind::Number, false),
    ("doc_end_byte", ColumnKind::Number, false),
    ("text", ColumnKind::Text, false),
];

/// The results of the stage.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Items {
    pub(crate) n_items: u64,
    pub(crate) n_tokens: u64,
    /// Number of items of which some tokens were found.
    pub(crate) n_found: u64,
    /// Number of items all of whose tokens were found.
    pub(crate) n_whole: u64,
    /// Number of items of which only common windows were found.
    pub(crate) n_common_only: u64,
    /// Number of items too short to decide.
    pub(crate) n_undecided: u64,
    pub(crate) covered: u64,
    pub(crate) n_capped: u64,
    pub(crate) n_matches: u64,
    pub(crate) n_unlisted: u64,
    pub(crate) top: Vec<TopItem>,
}

/// An item of which a large part was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TopItem {
    pub(crate) id: String,
    pub(crate) tokens: u32,
    pub(crate) covered: u32,
    pub(crate) longest: u32,
    pub(crate) documents: u32,
    pub(crate) text: String,
}

/// Paths of the results of earlier stages.
pub(crate) struct Stages<'a> {
    pub(crate) corpus: &'a Texts,
    pub(crate) reference: &'a Path,
    pub(crate) matches: &'a Path,
    pub(crate) out: &'a Path,
}

pub(crate) fn run(
    stages: &Stages<'_>,
    read: &Read,
    search: &Search,
    list: u64,
    folder: &Path,
    progress: &Progress,
) -> Result<Items, Error> {
    let texts = Texts::new(stages.reference);
    let mut spans = Groups::<Span>::open(&stages.matches.join(SPANS_OF_ITEMS))?;
    let mut links = Groups::<Link>::open(&stages.matches.join(LINKS))?;
    let mut names = NameScan::open(stages.reference)?;
    let mut docs = texts.docs()?;
    progress.expect(docs.left());
    let mut sheets = Sheets {
        items: Sheet::create(&stages.out.join("items.parquet"), &ITEM_HEADS)?,
        matches: Sheet::create(&stages.out.join("matches.parquet"), &MATCH_HEADS)?,
        pairs: Sorter::new(&folder.join("sort_pairs"), search.allowance / 2),
        items_read: texts.reader()?,
        item_parts: texts.parts()?,
        corpus: stages.corpus.reader()?,
        corpus_parts: stages.corpus.parts()?,
        n_tokens: search.n_tokens as u32,
        list,
        found: Items::default(),
    };
    let mut number = 0;
    while let Some(record) = docs.next()? {
        let own = spans.of(number, |span| span.doc)?;
        let own = Item {
            number,
            record,
            covered: covered(&own, 0),
            common: covered(&own, COMMON),
            is_capped: own.iter().any(|span| span.flags & CAPPED != 0),
            links: links.of(number, |link| link.doc)?,
        };
        let name = names.next()?;
        let source = path_text(&read.sources[record.source as usize].path);
        let n_docs = sheets.push_matches(&own)?;
        sheets.push_item(&own, n_docs, (&name.id, name.url.as_deref(), &source))?;
        number += 1;
        progress.advance(1)?;
    }
    sheets.items.finish()?;
    sheets.matches.finish()?;
    sheets.pairs.write(&folder.join(PAIRS))?;
    Ok(sheets.found)
}

/// Tokens in common windows and in other windows.
pub(super) fn covered(spans: &[Span], common: u32) -> u32 {
    ranges(spans, common)
        .iter()
        .map(|range| range.end - range.start)
        .sum()
}

/// Returns the tokens themselves, as disjoint ranges in order.
pub(super) fn ranges(spans: &[Span], common: u32) -> Vec<std::ops::Range<u32>> {
    let wanted = spans.iter().filter(|span| span.flags & COMMON == common);
    removed(
        wanted.map(|span| (span.start..span.end, Role::Later)),
        Removal::All,
    )
}

/// An item with the matches found.
struct Item {
    number: u32,
    record: TextRecord,
    covered: u32,
    common: u32,
    is_capped: bool,
    links: Vec<Link>,
}

struct Sheets {
    items: Sheet,
    matches: Sheet,
    pairs: Sorter<[u32; 2]>,
    items_read: TextReader,
    item_parts: PartReader,
    corpus: TextReader,
    corpus_parts: PartReader,
    n_tokens: u32,
    list: u64,
    found: Items,
}

impl Sheets {
    /// Writes the matches of an item. Returns the number of documents that contain them.
    fn push_matches(&mut self, own: &Item) -> Result<u32, Error> {
        let tokens = match own.links.is_empty() {
            true => Vec::new(),
            false => self.items_read.tokens(own.number)?.to_vec(),
        };
        let (mut n_docs, mut n_listed) = (0, 0);
        let mut buffer = Vec::new();
        for links in own.links.chunk_by(|a, b| a.partner == b.partner) {
            n_docs += 1;
            let doc = links[0].partner;
            self.pairs.push([doc, own.number])?;
            for run in runs(links, self.n_tokens) {
                let there = run.start.wrapping_add_signed(run.shift);
                let part = &tokens[run.start as usize..run.end as usize];
                buffer.resize(part.len(), 0);
                self.corpus.some_tokens(doc, there, &mut buffer)?;
                if buffer != part {
                    return Err(Error::Collision);
                }
                self.found.n_matches += 1;
                n_listed += 1;
                match n_listed > self.list {
                    true => self.found.n_unlisted += 1,
                    false => self.push_match(&run, there)?,
                }
            }
        }
        Ok(n_docs)
    }

    fn push_match(&mut self, run: &Link, there: u32) -> Result<(), Error> {
        let end_there = there + (run.end - run.start);
        let bytes = self.corpus.bytes(run.partner, there..end_there)?;
        let text = self
            .corpus_parts
            .shown(run.partner, [bytes.start, bytes.end], SHOWN_CHARS)?;
        let number = |n: u32| Cell::Number(u64::from(n));
        self.matches.push(&[
            number(run.doc),
            number(run.start),
            number(run.end),
            number(run.partner),
            number(there),
            number(end_there),
            number(bytes.start),
            number(bytes.end),
            Cell::Text(&text),
        ])
    }

    fn push_item(
        &mut self,
        own: &Item,
        n_docs: u32,
        (id, url, source): (&str, Option<&str>, &str),
    ) -> Result<(), Error> {
        let TextRecord {
            n_tokens,
            offset,
            inner,
            ..
        } = own.record;
        let is_decided = n_tokens >= self.n_tokens.min(MIN_WHOLE as u32);
        // Documents and items are numbered separately, so no partner is the item itself.
        let partners = Partners::of(u32::MAX, &own.links, self.n_tokens);
        let (longest, best) = (partners.longest, partners.best);
        let found = &mut self.found;
        found.n_items += 1;
        found.n_tokens += u64::from(n_tokens);
        found.n_found += u64::from(own.covered > 0);
        found.n_whole += u64::from(own.covered > 0 && own.covered == n_tokens);
        found.n_common_only += u64::from(own.covered == 0 && own.common > 0);
        found.n_undecided += u64::from(!is_decided);
        found.covered += u64::from(own.covered);
        found.n_capped += u64::from(own.is_capped);
        self.push_top(
            own,
            n_docs,
            id,
            longest.map_or(0, |longest| longest.n_tokens),
        )?;
        let share = |part: u32| f64::from(part) / f64::from(n_tokens.max(1));
        let number = |n: u32| Cell::Number(u64::from(n));
        let maybe = |n: Option<u32>| Cell::Maybe(n.map(u64::from));
        self.items.push(&[
            number(own.number),
            Cell::Text(id),
            Cell::MaybeText(url),
            Cell::Text(source),
            Cell::Text(&Position { offset, inner }.to_string()),
            number(n_tokens),
            Cell::Flag(is_decided),
            number(own.covered),
            Cell::Share(Some(share(own.covered))),
            number(own.common),
            number(longest.map_or(0, |longest| longest.n_tokens)),
            maybe(longest.map(|longest| longest.start)),
            maybe(longest.map(|longest| longest.doc)),
            maybe(longest.map(|longest| longest.start_there)),
            maybe(best.map(|best| best.doc)),
            number(best.map_or(0, |best| best.shared)),
            Cell::Share(best.map(|best| share(best.shared))),
            number(n_docs),
            Cell::Flag(own.is_capped),
        ])
    }

    /// Keeps the items of which the largest part was found.
    fn push_top(&mut self, own: &Item, n_docs: u32, id: &str, longest: u32) -> Result<(), Error> {
        // Shares are compared without rounding.
        let key =
            |covered: u32, tokens: u32| u64::from(covered) * (1 << 32) / u64::from(tokens.max(1));
        let order = |top: &TopItem| (Reverse(key(top.covered, top.tokens)), Reverse(top.longest));
        let tokens = own.record.n_tokens;
        let this = (Reverse(key(own.covered, tokens)), Reverse(longest));
        let is_more = |last: &TopItem| this < order(last);
        let top = &self.found.top;
        if own.covered == 0 || top.len() == MAX_TOP && !top.last().is_some_and(is_more) {
            return Ok(());
        }
        let bytes = [0, own.record.n_bytes];
        let text = self.item_parts.shown(own.number, bytes, SHOWN_CHARS)?;
        self.found.top.push(TopItem {
            id: id.to_owned(),
            tokens,
            covered: own.covered,
            longest,
            documents: n_docs,
            text,
        });
        self.found.top.sort_by_key(order);
        self.found.top.truncate(MAX_TOP);
        Ok(())
    }
}
