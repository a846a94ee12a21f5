//! Fourth stage: occurrences of passages, by passage.
//!
//! Neighbouring runs of a document are joined, and occurrences sorted by their first place, which
//! identifies the passage. All windows of a passage have the same places, so its number of places
//! and of documents is known once its occurrences are together. Every occurrence is compared
//! with the first, token by token.

use std::path::Path;

use arose::mix::mix;
use arose::passage::Scope;
use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};

use super::anchors::Search;
use super::config::PassagesConfig;
use super::parts::{ByDocument, InOrder, Parts};
use super::runs::{LOOK_BACK, RUNS, Run, Runs};
use super::text::{Places, TextReader, Texts};
use crate::column::Writer;
use crate::{Error, Progress};

/// Occurrences by passage.
pub(crate) const OCCURRENCES: &str = "occurrences";
/// Passages in order of their first place.
pub(crate) const PASSAGES: &str = "passages";

/// An occurrence, or several at equal distances without gaps, sorted by the first place of its
/// passage, then by its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct OccurrenceRun {
    pub(crate) first_doc: u32,
    pub(crate) first_token: u32,
    pub(crate) doc: u32,
    /// Tokens of the first one.
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// The number of occurrences, and the number of tokens from one start to the next.
    pub(crate) times: u32,
    pub(crate) step: u32,
    /// The number of occurrences of its windows, limited to 32 bits.
    pub(crate) count: u32,
    /// From the start of the first one to the end of the last.
    pub(crate) bytes: [u32; 2],
    pub(crate) chars: [u32; 2],
}

impl OccurrenceRun {
    /// Returns the start of occurrence `i`.
    pub(crate) fn start_of(&self, i: u32) -> u32 {
        self.start + i * self.step
    }

    /// Returns the end of the last occurrence.
    pub(crate) fn last_end(&self) -> u32 {
        self.end + (self.times - 1) * self.step
    }

    /// Merges occurrences that follow at the same distance without a gap. Returns whether it did.
    fn extend(&mut self, next: &Self) -> bool {
        let distance = next.start - self.start;
        let step = match (self.times, next.times) {
            (1, 1) => distance,
            (1, _) => next.step,
            (_, 1) => self.step,
            _ if self.step == next.step => self.step,
            _ => return false,
        };
        let is_next = u64::from(distance) == u64::from(step) * u64::from(self.times)
            && step <= self.end - self.start;
        if is_next {
            self.step = step;
            self.times += next.times;
        }
        is_next
    }
}

/// A passage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct PassageRecord {
    pub(crate) n_places: u64,
    /// Number of records for these places.
    pub(crate) n_records: u64,
    pub(crate) n_docs: u32,
    /// Whether it occurs often enough.
    pub(crate) is_wanted: u32,
}

/// The results of the stage.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Occurrences {
    pub(crate) n_records: u64,
}

pub(crate) fn run(
    texts: &Texts,
    runs: &Path,
    found: &Runs,
    search: &Search,
    config: &PassagesConfig,
    folder: &Path,
    progress: &Progress,
) -> Result<Occurrences, Error> {
    progress.expect(found.n_runs);
    let n_parts = found.n_parts;
    let mut runs = InOrder::<Run>::new(&runs.join(RUNS), n_parts, search.allowance);
    let base = folder.join("found");
    let mut out = OccurrenceParts {
        parts: Parts::create(&base, n_parts)?,
        by_document: ByDocument::new(texts.docs()?.left(), n_parts),
        reader: texts.reader()?,
        places: Places::new(texts.reader()?),
        firsts: Firsts::new(texts.reader()?),
        open: Vec::new(),
    };
    let mut next = runs.next()?;
    while let Some(first) = next {
        let (mut whole, mut last) = (first, first);
        next = runs.next()?;
        let mut n_runs = 1;
        while let Some(run) = next.filter(|run| run.doc == last.doc && last.is_joined(run)) {
            whole.n_windows += run.n_windows;
            last = run;
            n_runs += 1;
            next = runs.next()?;
        }
        out.push(&whole, search)?;
        progress.advance(n_runs)?;
    }
    out.flush(0)?;
    out.parts.finish()?;
    let mut sorted = InOrder::new(&base, n_parts, search.allowance);
    group(&mut sorted, config, folder)
}

/// Occurrences that are being distributed to parts.
struct OccurrenceParts {
    parts: Parts<OccurrenceRun>,
    by_document: ByDocument,
    reader: TextReader,
    places: Places,
    firsts: Firsts,
    /// The last occurrences of a document, which may be repeated.
    open: Vec<OccurrenceRun>,
}

impl OccurrenceParts {
    fn push(&mut self, whole: &Run, search: &Search) -> Result<(), Error> {
        if self.open.last().is_some_and(|last| last.doc != whole.doc) {
            self.flush(0)?;
        }
        let one = OccurrenceRun {
            first_doc: whole.first_doc,
            first_token: whole.first_token,
            doc: whole.doc,
            start: whole.start,
            end: whole.start + whole.n_windows - 1 + search.n_tokens as u32,
            times: u32::from(whole.times),
            step: u32::from(whole.step),
            count: u32::try_from(whole.count).unwrap_or(u32::MAX),
            bytes: [0; 2],
            chars: [0; 2],
        };
        let same = self.open.iter_mut().rev().find(|open| {
            (open.first_doc, open.first_token, open.end - open.start)
                == (one.first_doc, one.first_token, one.end - one.start)
        });
        if same.is_some_and(|open| open.extend(&one)) {
            return Ok(());
        }
        self.open.push(one);
        if self.open.len() == 2 * LOOK_BACK {
            self.flush(LOOK_BACK)?;
        }
        Ok(())
    }

    /// Writes all occurrences except the last `n_left`.
    fn flush(&mut self, n_left: usize) -> Result<(), Error> {
        let n = self.open.len().saturating_sub(n_left);
        for mut found in self.open.drain(..n) {
            let span = found.start..found.last_end();
            let tokens = &self.reader.tokens(found.doc)?[span.start as usize..span.end as usize];
            // Tokens that repeat after each step make all occurrences equal.
            let n_overlap = tokens.len() - found.step as usize * usize::from(found.times > 1);
            if tokens[..n_overlap] != tokens[tokens.len() - n_overlap..] {
                return Err(Error::Collision);
            }
            let own = &tokens[..(found.end - found.start) as usize];
            if !self.firsts.is_equal(&found, own)? {
                return Err(Error::Collision);
            }
            [found.bytes, found.chars] = self.places.of(found.doc, span)?;
            self.parts
                .push(self.by_document.part(found.first_doc), &found)?;
        }
        Ok(())
    }
}

/// The tokens of passages at their first places. Documents come in order, so the first place of a
/// passage is known before the others, and is read again only if it was forgotten.
struct Firsts {
    reader: TextReader,
    /// The tokens of all known passages.
    tokens: Vec<u64>,
    /// Where they are, by a hash of the first place.
    known: Vec<KnownTokens>,
}

/// The tokens of a passage in memory.
#[derive(Clone, Copy)]
struct KnownTokens {
    first: [u32; 2],
    at: usize,
    n_tokens: usize,
}

/// Maximum number of tokens in memory, unless one passage has more.
const MAX_KNOWN: usize = 1 << 20;
const KNOWN_BITS: u32 = 14;

impl Firsts {
    fn new(reader: TextReader) -> Self {
        let empty = KnownTokens {
            first: [0; 2],
            at: 0,
            n_tokens: 0,
        };
        Self {
            reader,
            tokens: Vec::new(),
            known: vec![empty; 1 << KNOWN_BITS],
        }
    }

    /// Returns whether an occurrence has the tokens of the first place of its passage.
    fn is_equal(&mut self, found: &OccurrenceRun, own: &[u64]) -> Result<bool, Error> {
        let first = [found.first_doc, found.first_token];
        let hash = mix(u64::from(first[0]) << 32 | u64::from(first[1]));
        let slot = (hash >> (64 - KNOWN_BITS)) as usize;
        let known = self.known[slot];
        if known.first == first && known.n_tokens == own.len() {
            return Ok(own == &self.tokens[known.at..][..known.n_tokens]);
        }
        if self.tokens.len() + own.len() > MAX_KNOWN {
            self.tokens.clear();
            self.known.iter_mut().for_each(|known| known.n_tokens = 0);
        }
        let at = self.tokens.len();
        self.known[slot] = KnownTokens {
            first,
            at,
            n_tokens: own.len(),
        };
        if first == [found.doc, found.start] {
            self.tokens.extend_from_slice(own);
            return Ok(true);
        }
        self.tokens.resize(at + own.len(), 0);
        let tokens = &mut self.tokens[at..];
        self.reader.some_tokens(first[0], first[1], tokens)?;
        Ok(own == tokens)
    }
}

/// Writes occurrences passage by passage, and a record of each passage.
fn group(
    sorted: &mut InOrder<OccurrenceRun>,
    config: &PassagesConfig,
    folder: &Path,
) -> Result<Occurrences, Error> {
    let mut occurrences = Writer::create(&folder.join(OCCURRENCES))?;
    let mut passages = Writer::create(&folder.join(PASSAGES))?;
    let mut next = sorted.next()?;
    while let Some(first) = next {
        let (mut n_places, mut n_records, mut n_docs) = (0, 0, 0);
        let mut last_doc = None;
        let is_same = |found: &OccurrenceRun| {
            (found.first_doc, found.first_token) == (first.first_doc, first.first_token)
        };
        while let Some(found) = next.filter(is_same) {
            if found.end - found.start != first.end - first.start {
                return Err(Error::Collision);
            }
            n_places += u64::from(found.times);
            n_records += 1;
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
        passages.push(&PassageRecord {
            n_places,
            n_records,
            n_docs,
            is_wanted: u32::from(is_wanted),
        })?;
    }
    passages.finish()?;
    let n_records = occurrences.finish()?;
    Ok(Occurrences { n_records })
}
