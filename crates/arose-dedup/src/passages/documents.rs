//! Sixth stage: `documents.parquet` and `removed.parquet`, and the spans cut from each document.

use std::cmp::Reverse;
use std::ops::Range;
use std::path::Path;

use arose::passage::{Removal, Role, removed};
use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};

use super::anchors::Search;
use super::config::{PassagesConfig, Remove};
use super::cut::{Cut, DROP, DecisionWriter};
use super::listing::{CAPPED, LISTS, Listing, MARKS, MAX_TOP, Mark};
use super::partners::{Linker, Partners};
use super::parts::InOrder;
use super::read::Read;
use super::sheet::{Cell, ColumnKind, Head, Sheet};
use super::text::{TextReader, TextRecord, Texts};
use crate::column::{Column, Scan};
use crate::names::NameScan;
use crate::sorter::Sorter;
use crate::source::path_text;
use crate::{Error, Progress};
use arose_corpus::Position;

const DOCUMENT_HEADS: [Head; 19] = [
    ("doc", ColumnKind::Number, false),
    ("id", ColumnKind::Text, false),
    ("url", ColumnKind::Text, true),
    ("source", ColumnKind::Text, false),
    ("position", ColumnKind::Text, false),
    ("tokens", ColumnKind::Number, false),
    ("covered", ColumnKind::Number, false),
    ("share", ColumnKind::Share, false),
    ("removed", ColumnKind::Number, false),
    ("left", ColumnKind::Number, false),
    ("kept", ColumnKind::Flag, false),
    ("longest", ColumnKind::Number, false),
    ("longest_doc", ColumnKind::Number, true),
    ("longest_start", ColumnKind::Number, true),
    ("best_doc", ColumnKind::Number, true),
    ("shared", ColumnKind::Number, false),
    ("containment", ColumnKind::Share, true),
    ("best_containment", ColumnKind::Share, true),
    ("capped", ColumnKind::Flag, false),
];

const REMOVED_HEADS: [Head; 9] = [
    ("doc", ColumnKind::Number, false),
    ("start", ColumnKind::Number, false),
    ("end", ColumnKind::Number, false),
    ("start_byte", ColumnKind::Number, false),
    ("end_byte", ColumnKind::Number, false),
    ("source_doc", ColumnKind::Number, false),
    ("source_start", ColumnKind::Number, false),
    ("source_end", ColumnKind::Number, false),
    ("period", ColumnKind::Number, true),
];

/// Windows of a passage that an occurrence contains completely.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Whole {
    passage: u64,
    from: u32,
    to: u32,
}

/// The results of the stage.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Documents {
    pub(crate) covered: u64,
    pub(crate) removed: u64,
    pub(crate) removed_bytes: u64,
    /// Number of documents from which something is cut.
    pub(crate) n_changed: u64,
    /// Number of documents of which nothing is left.
    pub(crate) n_emptied: u64,
    /// Number of documents with too little left.
    pub(crate) n_dropped: u64,
    /// Number of distinct repeated windows that no document contains completely after the cut.
    pub(crate) n_lost: u64,
    /// Number of documents whose partners are not all known.
    pub(crate) n_capped: u64,
    pub(crate) n_rows: u64,
    /// Documents with the most repeated tokens, for people.
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

/// Paths of the results of earlier stages.
pub(crate) struct Stages<'a> {
    pub(crate) read: &'a Path,
    pub(crate) listing: &'a Path,
    pub(crate) out: &'a Path,
}

pub(crate) fn run(
    stages: &Stages<'_>,
    read: &Read,
    listing: &Listing,
    search: &Search,
    config: &PassagesConfig,
    folder: &Path,
    progress: &Progress,
) -> Result<Documents, Error> {
    let texts = Texts::new(stages.read);
    let marks = stages.listing.join(MARKS);
    let mut marks = Marks::open(&marks, listing.n_parts, search.allowance)?;
    let linker = Linker {
        lists: Column::open(&stages.listing.join(LISTS), search.allowance)?,
        scope: config.scope,
    };
    let mut names = NameScan::open(stages.read)?;
    let mut docs = texts.docs()?;
    progress.expect(docs.left());
    let mut sheets = Sheets {
        documents: Sheet::create(&stages.out.join("documents.parquet"), &DOCUMENT_HEADS)?,
        removed: Sheet::create(&stages.out.join("removed.parquet"), &REMOVED_HEADS)?,
        decisions: DecisionWriter::create(folder, search.allowance / 2)?,
        whole: Sorter::new(&folder.join("sort_whole"), search.allowance / 2),
        n_tokens: search.n_tokens as u32,
        remove: config.removal(),
        found: Documents::default(),
    };
    let mut reader = texts.reader()?;
    let mut doc = 0;
    while let Some(record) = docs.next()? {
        let own = Own {
            doc,
            record,
            marks: marks.of(doc)?,
        };
        let cut = own.cut(&mut reader, config, &sheets.remove)?;
        let partners = Partners::of(doc, &linker.links(&own.marks)?, sheets.n_tokens);
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
        let kind = sheets.kind(&own, &cut);
        sheets.found.n_dropped += u64::from(kind == DROP);
        sheets.decisions.push(doc, &record, kind, &cut)?;
        sheets.push_whole(&own, &cut)?;
        doc += 1;
        progress.advance(1)?;
    }
    sheets.decisions.push_nulls(stages.read)?;
    sheets.finish(listing.n_distinct, folder)
}

/// Reads the occurrences of one document after the other.
struct Marks {
    sorted: InOrder<Mark>,
    next: Option<Mark>,
}

impl Marks {
    fn open(base: &Path, n_parts: u64, allowance: u64) -> Result<Self, Error> {
        let mut sorted = InOrder::new(base, n_parts, allowance);
        let next = sorted.next()?;
        Ok(Self { sorted, next })
    }

    fn of(&mut self, doc: u32) -> Result<Vec<Mark>, Error> {
        let mut marks = Vec::new();
        while let Some(mark) = self.next.filter(|mark| mark.doc == doc) {
            marks.push(mark);
            self.next = self.sorted.next()?;
        }
        Ok(marks)
    }
}

/// Reads the records of one document after the other.
pub(crate) struct Groups<T> {
    scan: Scan<T>,
    next: Option<T>,
}

impl<T: Pod> Groups<T> {
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let mut scan = Scan::open(path)?;
        let next = scan.next()?;
        Ok(Self { scan, next })
    }

    pub(crate) fn of(&mut self, doc: u32, doc_of: impl Fn(&T) -> u32) -> Result<Vec<T>, Error> {
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
}

impl Own {
    fn cut(
        &self,
        reader: &mut TextReader,
        config: &PassagesConfig,
        remove: &Remove,
    ) -> Result<Cut, Error> {
        let spans = removed(self.ranges(), remove.removal);
        Cut::of(&spans, &self.record, reader, config.text, remove)
    }

    /// Returns the tokens of all occurrences, in order.
    fn ranges(&self) -> impl Iterator<Item = (Range<u32>, Role)> {
        let marks = self.marks.iter();
        marks.map(|mark| (mark.start..mark.last_end(), mark.role()))
    }

    fn covered(&self) -> u32 {
        let ranges = removed(self.ranges(), Removal::All);
        ranges.iter().map(|range| range.end - range.start).sum()
    }
}

/// The files that the stage writes.
struct Sheets {
    documents: Sheet,
    removed: Sheet,
    decisions: DecisionWriter,
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

    /// Runs of removed windows whose sources follow each other.
    fn push_removed(&mut self, own: &Own) -> Result<(), Error> {
        let is_listed =
            |mark: &&Mark| mark.role() == Role::Later || self.remove.removal == Removal::All;
        let mut runs: Vec<Mark> = Vec::new();
        for mark in own.marks.iter().filter(is_listed) {
            let follows = |last: &Mark| {
                let distance = mark.start - last.start;
                mark.start + self.n_tokens == last.end + 1
                    && (last.times, last.step) == (mark.times, mark.step)
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
            let period = (run.times > 1).then_some(u64::from(run.step));
            let numbers = [
                run.doc,
                run.start,
                run.last_end(),
                run.bytes[0],
                run.bytes[1],
                run.source_doc,
                run.source_token,
                source_end,
            ];
            let mut cells: Vec<Cell<'_>> =
                numbers.map(|number| Cell::Number(u64::from(number))).into();
            cells.push(Cell::Maybe(period));
            self.removed.push(&cells)?;
        }
        Ok(())
    }

    fn kind(&self, own: &Own, cut: &Cut) -> u32 {
        cut.kind(&own.record, &self.remove)
    }

    /// Records which windows of its passages a document still contains completely.
    fn push_whole(&mut self, own: &Own, cut: &Cut) -> Result<(), Error> {
        for mark in &own.marks {
            let first = cut.tokens.partition_point(|range| range.end <= mark.start);
            let is_gone =
                |range: &Range<u32>| range.start <= mark.start && mark.last_end() <= range.end;
            if cut.tokens.get(first).is_some_and(is_gone) {
                continue;
            }
            for span in mark.spans() {
                self.push_whole_windows(mark.passage, span, &cut.tokens[first..])?;
            }
        }
        Ok(())
    }

    /// Returns the windows of an occurrence that remain complete after the cuts.
    fn push_whole_windows(
        &mut self,
        passage: u64,
        span: Range<u32>,
        gone: &[Range<u32>],
    ) -> Result<(), Error> {
        let first = gone.partition_point(|range| range.end <= span.start);
        let gone = gone[first..].iter();
        let gone = gone.take_while(|range| range.start < span.end);
        let mut from = span.start;
        for (start, end) in gone
            .map(|range| (range.start, range.end))
            .chain([(span.end, 0)])
        {
            if start >= from + self.n_tokens {
                self.whole.push(Whole {
                    passage,
                    from: from - span.start,
                    to: start - self.n_tokens + 1 - span.start,
                })?;
            }
            from = end;
        }
        Ok(())
    }

    fn finish(mut self, n_distinct: u64, folder: &Path) -> Result<Documents, Error> {
        self.documents.finish()?;
        self.found.n_rows = self.removed.finish()?;
        self.decisions.finish(folder)?;
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
