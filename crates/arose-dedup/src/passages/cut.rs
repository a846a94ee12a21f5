//! The spans cut from documents, and the decisions that the last stage carries out.

use std::ops::Range;
use std::path::Path;

use arose::passage::{Cells, Unit, units};
use arose::token::Tokenizer;
use bytemuck::{Pod, Zeroable};

use super::config::{Remove, TextElements};
use super::text::{TextReader, TextRecord};
use crate::Error;
use crate::column::{Scan, Writer};
use crate::record::NullText;
use crate::sorter::Sorter;
use crate::stage::read::NULLS;

/// Decisions by source and position.
pub(crate) const DECISIONS: &str = "decisions";
/// Byte ranges to cut.
pub(crate) const CUTS: &str = "cuts";

/// The decision on a record of the input, sorted by place. If a file was passed twice, the first
/// document decides.
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

/// What is cut from a document.
#[derive(Default)]
pub(crate) struct Cut {
    /// Number of tokens cut.
    pub(crate) tokens: Vec<Range<u32>>,
    pub(crate) bytes: Vec<Range<u32>>,
    pub(crate) n_tokens: u32,
}

impl Cut {
    /// Returns the cuts for spans of tokens, which must be disjoint and in order.
    pub(crate) fn of(
        spans: &[Range<u32>],
        record: &TextRecord,
        reader: &mut TextReader,
        text: TextElements,
        remove: &Remove,
    ) -> Result<Self, Error> {
        if spans.is_empty() {
            return Ok(Self::default());
        }
        let cells = reader.cells(record)?;
        let (tokens, bytes): (Vec<_>, Vec<_>) = match remove.cut {
            None => {
                let whole = cells.whole(spans).into_iter();
                whole
                    .map(|range| (range.clone(), cells.bytes(range)))
                    .unzip()
            }
            Some(unit) => {
                let units = token_units(&reader.text(record)?, unit, &cells, text);
                inside(units, spans).into_iter().unzip()
            }
        };
        let n_tokens = tokens.iter().map(|range| range.end - range.start).sum();
        Ok(Self {
            tokens,
            bytes,
            n_tokens,
        })
    }

    /// Returns a cut of the whole document.
    pub(crate) fn whole(record: &TextRecord) -> Self {
        let all = |n: u32| {
            std::iter::once(0..n)
                .filter(|range| !range.is_empty())
                .collect()
        };
        Self {
            tokens: all(record.n_tokens),
            bytes: all(record.n_bytes),
            n_tokens: record.n_tokens,
        }
    }

    /// Returns the decision on the document.
    pub(crate) fn kind(&self, record: &TextRecord, remove: &Remove) -> u32 {
        match self.n_tokens {
            0 => KEEP,
            n if record.n_tokens - n < remove.min_left => DROP,
            _ => CUT,
        }
    }
}

/// Returns the units with their tokens. A unit without tokens belongs to the preceding one.
fn token_units(
    text: &str,
    unit: Unit,
    cells: &Cells,
    kind: TextElements,
) -> Vec<(Range<u32>, Range<u32>)> {
    let starts = cells.starts();
    let mut found: Vec<(Range<u32>, Range<u32>)> = Vec::new();
    let mut has_first = false;
    for bytes in units(text, unit) {
        // The cell of the first token starts at the beginning of the text.
        has_first = has_first
            || kind == TextElements::Symbols
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

/// Returns the units all of whose tokens are in one of the spans, with neighbours joined.
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

/// Writes decisions in the order of the input.
pub(crate) struct DecisionWriter {
    cuts: Writer<[u32; 2]>,
    decisions: Sorter<Decision>,
}

impl DecisionWriter {
    pub(crate) fn create(folder: &Path, allowance: u64) -> Result<Self, Error> {
        Ok(Self {
            cuts: Writer::create(&folder.join(CUTS))?,
            decisions: Sorter::new(&folder.join("sort_decisions"), allowance),
        })
    }

    pub(crate) fn push(
        &mut self,
        doc: u32,
        record: &TextRecord,
        kind: u32,
        cut: &Cut,
    ) -> Result<(), Error> {
        let cuts_at = self.cuts.len();
        for range in &cut.bytes {
            self.cuts.push(&[range.start, range.end])?;
        }
        self.decisions.push(Decision {
            source: u64::from(record.source),
            offset: record.offset,
            inner: record.inner,
            doc,
            kind,
            cuts_at,
            n_cuts: cut.bytes.len() as u64,
        })
    }

    /// Records without text are kept.
    pub(crate) fn push_nulls(&mut self, read: &Path) -> Result<(), Error> {
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

    pub(crate) fn finish(self, folder: &Path) -> Result<(), Error> {
        self.cuts.finish()?;
        self.decisions.write(&folder.join(DECISIONS)).map(drop)
    }
}
