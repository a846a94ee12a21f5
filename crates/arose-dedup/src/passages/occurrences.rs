//! Sixth stage: occurrences of passages, by passage.
//!
//! Neighbouring runs of a document are joined, and occurrences sorted by their first place, which
//! identifies the passage. All windows of a passage have the same places, so its number of places
//! and of documents is known once its occurrences are together.

use std::path::Path;

use arose::passage::Scope;
use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};

use super::anchors::Search;
use super::config::Config;
use super::runs::{RUNS, Run, is_joined};
use super::text::{TextReader, Texts};
use crate::column::{Scan, Writer};
use crate::sorter::Sorter;
use crate::{Error, Progress};

/// Occurrences by passage.
pub(crate) const OCCURRENCES: &str = "occurrences";
/// Passages in order of their first place.
pub(crate) const PASSAGES: &str = "passages";

/// An occurrence, sorted by the first place of its passage, then by its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Found {
    pub(crate) first_doc: u32,
    pub(crate) first_token: u32,
    pub(crate) doc: u32,
    /// Tokens.
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) bytes: [u32; 2],
    pub(crate) chars: [u32; 2],
    /// How often its windows occur, as far as 32 bits tell.
    pub(crate) count: u32,
}

/// A passage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Passage {
    pub(crate) n_places: u64,
    pub(crate) n_docs: u32,
    /// Whether it occurs often enough.
    pub(crate) is_wanted: u32,
}

/// What the stage found.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Occurrences {
    pub(crate) n_occurrences: u64,
}

pub(crate) fn run(
    texts: &Texts,
    runs: &Path,
    search: &Search,
    config: &Config,
    folder: &Path,
    progress: &Progress,
) -> Result<Occurrences, Error> {
    let mut runs = Scan::<Run>::open(&runs.join(RUNS))?;
    progress.expect(runs.left());
    let mut sorter = Sorter::<Found>::new(&folder.join("sort"), search.allowance);
    let mut next = runs.next()?;
    let mut places = Places::new(texts.reader()?);
    while let Some(first) = next {
        let mut whole = first;
        next = runs.next()?;
        let mut n_runs = 1;
        while let Some(run) =
            next.filter(|run| run.doc == whole.doc && is_joined(&whole, run.start, run.flags))
        {
            whole.n_windows += run.n_windows;
            whole.flags = run.flags;
            n_runs += 1;
            next = runs.next()?;
        }
        let end = whole.start + whole.n_windows - 1 + search.n_tokens as u32;
        let [bytes, chars] = places.of(whole.doc, whole.start, end)?;
        sorter.push(Found {
            first_doc: whole.first_doc,
            first_token: whole.first_token,
            doc: whole.doc,
            start: whole.start,
            end,
            bytes,
            chars,
            count: u32::try_from(whole.count).unwrap_or(u32::MAX),
        })?;
        progress.advance(n_runs)?;
    }
    drop(places);
    group(sorter, config, folder)
}

/// Writes occurrences passage by passage, and what is known of each passage.
fn group(sorter: Sorter<Found>, config: &Config, folder: &Path) -> Result<Occurrences, Error> {
    let mut sorted = sorter.finish()?;
    let mut occurrences = Writer::create(&folder.join(OCCURRENCES))?;
    let mut passages = Writer::create(&folder.join(PASSAGES))?;
    let mut next = sorted.next()?;
    while let Some(first) = next {
        let (mut n_places, mut n_docs) = (0, 0);
        let mut last_doc = None;
        let is_same = |found: &Found| {
            (found.first_doc, found.first_token) == (first.first_doc, first.first_token)
        };
        while let Some(found) = next.filter(is_same) {
            n_places += 1;
            n_docs += u32::from(last_doc != Some(found.doc));
            last_doc = Some(found.doc);
            occurrences.push(&found)?;
            next = sorted.next()?;
        }
        let is_first = (first.doc, first.start) == (first.first_doc, first.first_token);
        if !is_first || u32::try_from(n_places).unwrap_or(u32::MAX) != first.count {
            return Err(Error::Collision);
        }
        let is_wanted = match config.scope {
            Scope::Across => u64::from(n_docs) >= config.times.get(),
            Scope::Any | Scope::Within => n_places >= config.times.get(),
        };
        passages.push(&Passage {
            n_places,
            n_docs,
            is_wanted: u32::from(is_wanted),
        })?;
    }
    let n_occurrences = occurrences.finish()?;
    passages.finish()?;
    Ok(Occurrences { n_occurrences })
}

/// Finds bytes and characters of tokens, document after document.
struct Places {
    reader: TextReader,
    doc: Option<u32>,
    starts: Vec<u32>,
    text: String,
    is_ascii: bool,
    /// Bytes and characters up to the last start, and up to the last end.
    known: [[u32; 2]; 2],
}

impl Places {
    fn new(reader: TextReader) -> Self {
        Self {
            reader,
            doc: None,
            starts: Vec::new(),
            text: String::new(),
            is_ascii: true,
            known: [[0; 2]; 2],
        }
    }

    /// Bytes and characters of tokens; starts and ends must ascend inside a document.
    fn of(&mut self, doc: u32, start: u32, end: u32) -> Result<[[u32; 2]; 2], Error> {
        if self.doc != Some(doc) {
            let record = self.reader.record(doc)?;
            let cells = self.reader.cells(&record)?;
            self.starts = cells.starts().to_vec();
            self.starts.push(record.n_bytes);
            self.text = self.reader.text(&record)?;
            self.is_ascii = self.text.is_ascii();
            self.known = [[0; 2]; 2];
            self.doc = Some(doc);
        }
        let bytes = [start, end].map(|token| self.starts[token as usize]);
        if self.is_ascii {
            return Ok([bytes, bytes]);
        }
        for (known, byte) in self.known.iter_mut().zip(bytes) {
            let between = &self.text[known[0] as usize..byte as usize];
            *known = [byte, known[1] + between.chars().count() as u32];
        }
        Ok([bytes, self.known.map(|[_, chars]| chars)])
    }
}
