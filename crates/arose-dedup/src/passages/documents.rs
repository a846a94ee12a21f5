//! Eighth stage: `documents.parquet` and `removed.parquet`, and what is cut from each document.

use std::cmp::Reverse;
use std::ops::Range;
use std::path::Path;

use arose::passage::{Cells, Removal, Role, Unit, removed, units};
use arose::token::Tokenizer;
use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};

use super::anchors::Search;
use super::config::{Config, Remove, Text};
use super::listing::{CAPPED, LINKS, Link, MARKS, MAX_TOP, Mark};
use super::partners::Partners;
use super::read::Read;
use super::sheet::{Cell, Head, Kind, Sheet};
use super::text::{TextReader, TextRecord, Texts};
use crate::column::{Scan, Writer};
use crate::names::NameScan;
use crate::record::NullText;
use crate::sorter::Sorter;
use crate::source::path_text;
use crate::stage::columns::NULLS;
use crate::{Error, Progress};
use arose_corpus::Position;

/// Decisions by source and position.
pub(crate) const DECISIONS: &str = "decisions";
/// Ranges of bytes that are cut.
pub(crate) const CUTS: &str = "cuts";

const DOCUMENT_HEADS: [Head; 19] = [
    ("doc", Kind::Number, false),
    ("id", Kind::Text, false),
    ("url", Kind::Text, true),
    ("source", Kind::Text, false),
    ("position", Kind::Text, false),
    ("tokens", Kind::Number, false),
    ("covered", Kind::Number, false),
    ("share", Kind::Share, false),
    ("removed", Kind::Number, false),
    ("left", Kind::Number, false),
    ("kept", Kind::Flag, false),
    ("longest", Kind::Number, false),
    ("longest_doc", Kind::Number, true),
    ("longest_start", Kind::Number, true),
    ("best_doc", Kind::Number, true),
    ("shared", Kind::Number, false),
    ("containment", Kind::Share, true),
    ("best_containment", Kind::Share, true),
    ("capped", Kind::Flag, false),
];

const REMOVED_HEADS: [Head; 8] = [
    ("doc", Kind::Number, false),
    ("start", Kind::Number, false),
    ("end", Kind::Number, false),
    ("start_byte", Kind::Number, false),
    ("end_byte", Kind::Number, false),
    ("source_doc", Kind::Number, false),
    ("source_start", Kind::Number, false),
    ("source_end", Kind::Number, false),
];

/// What happens to a record of the input, sorted by place; of a file that was named twice, the
/// first document counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Decision {
    pub(crate) source: u64,
    pub(crate) offset: u64,
    pub(crate) inner: u64,
    pub(crate) doc: u32,
    pub(crate) kind: u32,
    /// Its first range in the file of cuts.
    pub(crate) cuts_at: u64,
    pub(crate) n_cuts: u64,
}

pub(crate) const KEEP: u32 = 0;
pub(crate) const CUT: u32 = 1;
pub(crate) const DROP: u32 = 2;

/// Windows of a passage that an occurrence has whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Whole {
    passage: u64,
    from: u32,
    to: u32,
}

/// What the stage found.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Documents {
    pub(crate) covered: u64,
    pub(crate) removed: u64,
    pub(crate) removed_bytes: u64,
    /// Documents of which something goes.
    pub(crate) n_changed: u64,
    /// Documents of which nothing is left.
    pub(crate) n_emptied: u64,
    /// Documents with too little left.
    pub(crate) n_dropped: u64,
    /// Distinct repeated windows that no document has whole any more.
    pub(crate) n_lost: u64,
    /// Documents whose partners are not all known.
    pub(crate) n_capped: u64,
    pub(crate) n_rows: u64,
    /// Documents with most repeated tokens, for people.
    pub(crate) top: Vec<TopDocument>,
}

/// A document with many repeated tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TopDocument {
    pub(crate) doc: u32,
    pub(crate) id: String,
    pub(crate) tokens: u32,
    pub(crate) covered: u32,
    pub(crate) removed: u32,
}

/// Where the stages before left their results.
pub(crate) struct Stages<'a> {
    pub(crate) read: &'a Path,
    pub(crate) listing: &'a Path,
    pub(crate) out: &'a Path,
}

pub(crate) fn run(
    stages: &Stages<'_>,
    read: &Read,
    n_distinct: u64,
    search: &Search,
    config: &Config,
    folder: &Path,
    progress: &Progress,
) -> Result<Documents, Error> {
    let texts = Texts::new(stages.read);
    let mut marks = Groups::<Mark>::open(&stages.listing.join(MARKS))?;
    let mut links = Groups::<Link>::open(&stages.listing.join(LINKS))?;
    let mut names = NameScan::open(stages.read)?;
    let mut docs = texts.docs()?;
    progress.expect(docs.left());
    let mut sheets = Sheets {
        documents: Sheet::create(&stages.out.join("documents.parquet"), &DOCUMENT_HEADS)?,
        removed: Sheet::create(&stages.out.join("removed.parquet"), &REMOVED_HEADS)?,
        cuts: Writer::create(&folder.join(CUTS))?,
        decisions: Sorter::new(&folder.join("sort_decisions"), search.allowance / 2),
        whole: Sorter::new(&folder.join("sort_whole"), search.allowance / 2),
        n_tokens: search.n_tokens as u32,
        remove: config.removal(),
        found: Documents::default(),
    };
    let reader = texts.reader()?;
    let mut doc = 0;
    while let Some(record) = docs.next()? {
        let own = Own {
            doc,
            record,
            marks: marks.of(doc, |mark| mark.doc)?,
            links: links.of(doc, |link| link.doc)?,
        };
        let cut = own.cut(&reader, config, &sheets.remove)?;
        let partners = Partners::of(doc, &own.links, sheets.n_tokens);
        let name = names.next()?;
        let source = path_text(&read.sources[record.source as usize].path);
        sheets.push_document(
            &own,
            &cut,
            &partners,
            &reader,
            (&name.id, name.url.as_deref(), &source),
        )?;
        sheets.push_removed(&own)?;
        sheets.decide(&own, &cut)?;
        sheets.push_whole(&own, &cut)?;
        doc += 1;
        progress.advance(1)?;
    }
    sheets.push_nulls(stages.read)?;
    sheets.finish(n_distinct, folder)
}

/// Records of one document after the other.
struct Groups<T> {
    scan: Scan<T>,
    next: Option<T>,
}

impl<T: Pod> Groups<T> {
    fn open(path: &Path) -> Result<Self, Error> {
        let mut scan = Scan::open(path)?;
        let next = scan.next()?;
        Ok(Self { scan, next })
    }

    fn of(&mut self, doc: u32, doc_of: impl Fn(&T) -> u32) -> Result<Vec<T>, Error> {
        let mut records = Vec::new();
        while let Some(record) = self.next.filter(|record| doc_of(record) == doc) {
            records.push(record);
            self.next = self.scan.next()?;
        }
        Ok(records)
    }
}

/// A document with its occurrences.
struct Own {
    doc: u32,
    record: TextRecord,
    marks: Vec<Mark>,
    links: Vec<Link>,
}

/// What goes from a document.
#[derive(Default)]
struct Cut {
    /// Tokens.
    tokens: Vec<Range<u32>>,
    bytes: Vec<Range<u32>>,
    n_tokens: u32,
}

impl Own {
    fn cut(&self, reader: &TextReader, config: &Config, remove: &Remove) -> Result<Cut, Error> {
        let roles = self
            .marks
            .iter()
            .map(|mark| (mark.start..mark.end, mark.role()));
        let spans = removed(roles, remove.removal);
        if spans.is_empty() {
            return Ok(Cut::default());
        }
        let cells = reader.cells(&self.record)?;
        let (tokens, bytes): (Vec<_>, Vec<_>) = match remove.cut {
            None => {
                let whole = cells.whole(&spans).into_iter();
                whole
                    .map(|range| (range.clone(), cells.bytes(range)))
                    .unzip()
            }
            Some(unit) => {
                let text = reader.text(&self.record)?;
                let units = token_units(&text, unit, &cells, config.text);
                inside(units, &spans).into_iter().unzip()
            }
        };
        let n_tokens = tokens.iter().map(|range| range.end - range.start).sum();
        Ok(Cut {
            tokens,
            bytes,
            n_tokens,
        })
    }

    fn covered(&self) -> u32 {
        let ranges = self
            .marks
            .iter()
            .map(|mark| (mark.start..mark.end, Role::Later));
        let ranges = removed(ranges, Removal::All);
        ranges.iter().map(|range| range.end - range.start).sum()
    }
}

/// Units with their tokens; one without tokens belongs to the unit before.
fn token_units(text: &str, unit: Unit, cells: &Cells, kind: Text) -> Vec<(Range<u32>, Range<u32>)> {
    let starts = cells.starts();
    let mut found: Vec<(Range<u32>, Range<u32>)> = Vec::new();
    let mut has_first = false;
    for bytes in units(text, unit) {
        // The cell of the first token begins with the text, wherever the token stands.
        has_first = has_first
            || kind == Text::Symbols
            || !Tokenizer::default().tokens(&text[bytes.clone()]).is_empty();
        let end = match has_first {
            true => starts.partition_point(|start| (*start as usize) < bytes.end) as u32,
            false => 0,
        };
        let start = found.last().map_or(0, |(tokens, _)| tokens.end);
        match found.last_mut() {
            Some(last) if start == end || last.0.is_empty() => {
                (last.0.end, last.1.end) = (end, bytes.end as u32);
            }
            _ => found.push((start..end, bytes.start as u32..bytes.end as u32)),
        }
    }
    found
}

/// The units all of whose tokens are in one of the spans, neighbours joined.
fn inside(
    units: Vec<(Range<u32>, Range<u32>)>,
    spans: &[Range<u32>],
) -> Vec<(Range<u32>, Range<u32>)> {
    let mut found: Vec<(Range<u32>, Range<u32>)> = Vec::new();
    for (tokens, bytes) in units {
        let after = spans.partition_point(|span| span.end < tokens.end);
        let is_inside = spans
            .get(after)
            .is_some_and(|span| span.start <= tokens.start);
        if !is_inside || tokens.is_empty() {
            continue;
        }
        match found.last_mut() {
            Some(last) if last.1.end == bytes.start => {
                (last.0.end, last.1.end) = (tokens.end, bytes.end);
            }
            _ => found.push((tokens, bytes)),
        }
    }
    found
}

/// All that the stage writes.
struct Sheets {
    documents: Sheet,
    removed: Sheet,
    cuts: Writer<[u32; 2]>,
    decisions: Sorter<Decision>,
    whole: Sorter<Whole>,
    n_tokens: u32,
    remove: Remove,
    found: Documents,
}

impl Sheets {
    fn push_document(
        &mut self,
        own: &Own,
        cut: &Cut,
        partners: &Partners,
        reader: &TextReader,
        (id, url, source): (&str, Option<&str>, &str),
    ) -> Result<(), Error> {
        let TextRecord {
            n_tokens,
            offset,
            inner,
            ..
        } = own.record;
        let covered = own.covered();
        let left = n_tokens - cut.n_tokens;
        let is_capped = own.marks.iter().any(|mark| mark.flags & CAPPED != 0);
        let found = &mut self.found;
        found.covered += u64::from(covered);
        found.removed += u64::from(cut.n_tokens);
        found.removed_bytes += cut
            .bytes
            .iter()
            .map(|range| range.len() as u64)
            .sum::<u64>();
        found.n_changed += u64::from(cut.n_tokens > 0);
        found.n_emptied += u64::from(cut.n_tokens > 0 && left == 0);
        found.n_capped += u64::from(is_capped);
        let is_more = |last: &TopDocument| covered > last.covered;
        if covered > 0 && (found.top.len() < MAX_TOP || found.top.last().is_some_and(is_more)) {
            found.top.push(TopDocument {
                doc: own.doc,
                id: id.to_owned(),
                tokens: n_tokens,
                covered,
                removed: cut.n_tokens,
            });
            found.top.sort_by_key(|one| (Reverse(one.covered), one.doc));
            found.top.truncate(MAX_TOP);
        }
        let share = |part: u32, whole: u32| f64::from(part) / f64::from(whole.max(1));
        let (best, longest) = (partners.best, partners.longest);
        let best_tokens = best.map(|best| reader.record(best.doc)).transpose()?;
        let containment = best.map(|best| share(best.shared, n_tokens));
        let best_containment = best
            .zip(best_tokens)
            .map(|(best, record)| share(best.shared_there, record.n_tokens));
        let number = |n: u32| Cell::Number(u64::from(n));
        self.documents.push(&[
            number(own.doc),
            Cell::Text(id),
            Cell::MaybeText(url),
            Cell::Text(source),
            Cell::Text(&Position { offset, inner }.to_string()),
            number(n_tokens),
            number(covered),
            Cell::Share(Some(share(covered, n_tokens))),
            number(cut.n_tokens),
            number(left),
            Cell::Flag(self.kind(own, cut) != DROP),
            number(longest.map_or(0, |longest| longest.n_tokens)),
            Cell::Maybe(longest.map(|longest| u64::from(longest.doc))),
            Cell::Maybe(longest.map(|longest| u64::from(longest.start))),
            Cell::Maybe(best.map(|best| u64::from(best.doc))),
            number(best.map_or(0, |best| best.shared)),
            Cell::Share(containment),
            Cell::Share(best_containment),
            Cell::Flag(is_capped),
        ])
    }

    /// Runs of windows that go, whose sources follow each other.
    fn push_removed(&mut self, own: &Own) -> Result<(), Error> {
        let is_listed =
            |mark: &&Mark| mark.role() == Role::Later || self.remove.removal == Removal::All;
        let mut runs: Vec<Mark> = Vec::new();
        for mark in own.marks.iter().filter(is_listed) {
            let follows = |last: &Mark| {
                let distance = mark.start - last.start;
                mark.start + self.n_tokens == last.end + 1
                    && last.source_doc == mark.source_doc
                    && last.source_token + distance == mark.source_token
            };
            match runs.last_mut() {
                Some(last) if follows(last) => {
                    last.end = mark.end;
                    last.bytes[1] = mark.bytes[1];
                }
                _ => runs.push(*mark),
            }
        }
        for run in runs {
            let source_end = run.source_token + (run.end - run.start);
            let numbers = [
                run.doc,
                run.start,
                run.end,
                run.bytes[0],
                run.bytes[1],
                run.source_doc,
                run.source_token,
                source_end,
            ];
            self.removed
                .push(&numbers.map(|number| Cell::Number(u64::from(number))))?;
        }
        Ok(())
    }

    fn kind(&self, own: &Own, cut: &Cut) -> u32 {
        match cut.n_tokens {
            0 => KEEP,
            n if own.record.n_tokens - n < self.remove.min_left => DROP,
            _ => CUT,
        }
    }

    fn decide(&mut self, own: &Own, cut: &Cut) -> Result<(), Error> {
        let kind = self.kind(own, cut);
        self.found.n_dropped += u64::from(kind == DROP);
        let cuts_at = self.cuts.len();
        for range in &cut.bytes {
            self.cuts.push(&[range.start, range.end])?;
        }
        self.decisions.push(Decision {
            source: u64::from(own.record.source),
            offset: own.record.offset,
            inner: own.record.inner,
            doc: own.doc,
            kind,
            cuts_at,
            n_cuts: cut.bytes.len() as u64,
        })
    }

    /// Tells which windows of its passages are still whole in a document.
    fn push_whole(&mut self, own: &Own, cut: &Cut) -> Result<(), Error> {
        for mark in &own.marks {
            let mut from = mark.start;
            let first = cut.tokens.partition_point(|range| range.end <= mark.start);
            let gone = cut.tokens[first..]
                .iter()
                .take_while(|range| range.start < mark.end);
            for (start, end) in gone
                .map(|range| (range.start, range.end))
                .chain([(mark.end, 0)])
            {
                if start >= from + self.n_tokens {
                    self.whole.push(Whole {
                        passage: mark.passage,
                        from: from - mark.start,
                        to: start - self.n_tokens + 1 - mark.start,
                    })?;
                }
                from = end;
            }
        }
        Ok(())
    }

    /// Records without text stay.
    fn push_nulls(&mut self, read: &Path) -> Result<(), Error> {
        let mut nulls = Scan::<NullText>::open(&read.join(NULLS))?;
        while let Some(record) = nulls.next()? {
            self.decisions.push(Decision {
                source: record.source,
                offset: record.offset,
                inner: record.inner,
                doc: u32::MAX,
                kind: KEEP,
                cuts_at: 0,
                n_cuts: 0,
            })?;
        }
        Ok(())
    }

    fn finish(mut self, n_distinct: u64, folder: &Path) -> Result<Documents, Error> {
        self.documents.finish()?;
        self.found.n_rows = self.removed.finish()?;
        self.cuts.finish()?;
        let mut decisions = self.decisions.finish()?;
        let mut out = Writer::create(&folder.join(DECISIONS))?;
        while let Some(decision) = decisions.next()? {
            out.push(&decision)?;
        }
        out.finish()?;
        let mut whole = self.whole.finish()?;
        let (mut n_whole, mut passage, mut end) = (0, u64::MAX, 0);
        while let Some(range) = whole.next()? {
            if range.passage != passage {
                (passage, end) = (range.passage, 0);
            }
            n_whole += u64::from(range.to.saturating_sub(range.from.max(end)));
            end = end.max(range.to);
        }
        self.found.n_lost = n_distinct - n_whole;
        Ok(self.found)
    }
}
