//! Queries to an index of passages.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use arose::passage::{RollingHash, gram_length};
use arose::shingle::{DEFAULT_W, ShingleSet, Shingler, containment};
use arose::winnow::{Ties, anchors};
use bytemuck::Zeroable;

use super::{ANCHORS, Anchor, NAME_ENDS, read_manifest, segment_path};
use crate::Error;
use crate::column::{Column, Scan};
use crate::passages::text::{DOCS, TOKENS, TextRecord};
use crate::stage::read::NAMES;

/// Maximum number of places examined for one anchor of a query.
const MAX_PLACES: u64 = 1000;

/// Maximum number of documents whose containment is computed for one query.
const MAX_DOCUMENTS: usize = 100;

/// The documents of an index that share runs with a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// Documents with such runs and their containment, largest first. If there are more than 100,
    /// only the 100 with the longest runs.
    pub documents: Vec<FoundDocument>,
    /// Runs of tokens that the text shares with documents, the longest first.
    pub runs: Vec<FoundRun>,
    /// Whether all runs of at least the length of a window are listed. Not guaranteed for shorter
    /// texts.
    pub is_guaranteed: bool,
    /// Whether some anchor had too many places to examine all of them.
    pub is_capped: bool,
}

/// A document that shares runs with a text.
///
/// Containment is that of sets of 5-token shingles, exact, since the index has the tokens.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundDocument {
    /// Its name.
    pub name: String,
    /// The share of the text that the document contains.
    pub containment: f64,
    /// The share of the document that the text contains.
    pub containment_there: f64,
}

/// A maximal run of tokens that a text shares with a document.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FoundRun {
    /// Its length.
    pub n_tokens: u32,
    /// The name of the document.
    pub name: String,
    /// The first token in the text.
    pub start: u32,
    /// The first token in the document.
    pub doc_start: u32,
}

/// Executes queries. Several processes may do so at once.
pub struct PassageReader {
    min: usize,
    segments: Vec<Open>,
}

struct Open {
    docs: Column<TextRecord>,
    tokens: Column<u64>,
    names: Column<u8>,
    name_ends: Column<u64>,
    anchors: Column<Anchor>,
    n_anchors: u64,
}

impl PassageReader {
    /// Opens an index for queries.
    ///
    /// # Errors
    ///
    /// If there is no index, or a file cannot be read.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        // A segment may be merged after the list is read and before its files are.
        match Self::open_once(folder) {
            Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                Self::open_once(folder)
            }
            opened => opened,
        }
    }

    fn open_once(folder: &Path) -> Result<Self, Error> {
        let manifest = read_manifest(folder)?;
        let segments = manifest.segments.iter();
        let segments = segments.map(|segment| Open::new(&segment_path(folder, segment.number)));
        Ok(Self {
            min: manifest.min,
            segments: segments.collect::<Result<_, Error>>()?,
        })
    }

    /// Returns the documents that contain passages of a text, given as token fingerprints.
    ///
    /// # Errors
    ///
    /// If a file cannot be read.
    pub fn query(&self, tokens: &[u64]) -> Result<Answer, Error> {
        let q = gram_length(self.min);
        let is_guaranteed = tokens.len() >= self.min;
        let grams = RollingHash::new(tokens).grams(q);
        let wanted: BTreeSet<u64> = match is_guaranteed {
            true => {
                let found = anchors(&grams, self.min - q + 1, Ties::Robust);
                found.into_iter().map(|anchor| anchor.hash).collect()
            }
            false => grams.iter().copied().collect(),
        };
        let least = if is_guaranteed { self.min } else { q };
        // At every position of the hash: of several equal grams, a document may have selected any.
        let mut places: Vec<(u64, u32)> = (0..)
            .zip(&grams)
            .filter(|(_, hash)| wanted.contains(hash))
            .map(|(place, hash)| (*hash, place))
            .collect();
        places.sort_unstable();
        let mut answer = Answer {
            documents: Vec::new(),
            runs: Vec::new(),
            is_guaranteed,
            is_capped: false,
        };
        let mut longest: Vec<(Reverse<u32>, usize, u32)> = Vec::new();
        for (number, segment) in self.segments.iter().enumerate() {
            let found = segment.find(tokens, &places, least as u32, &mut answer)?;
            let found = found.into_iter();
            longest.extend(found.map(|(doc, n_tokens)| (Reverse(n_tokens), number, doc)));
        }
        longest.sort_unstable();
        longest.truncate(MAX_DOCUMENTS);
        let shingler = Shingler::new(DEFAULT_W);
        let own = shingler.set(tokens);
        for (_, number, doc) in longest {
            let document = self.segments[number].contained(doc, &own, &shingler)?;
            answer.documents.push(document);
        }
        let most_first = |a: &FoundDocument, b: &FoundDocument| {
            let by_share = b.containment.total_cmp(&a.containment);
            by_share.then_with(|| a.name.cmp(&b.name))
        };
        answer.documents.sort_by(most_first);
        let longest_first = |a: &FoundRun, b: &FoundRun| {
            let key = |run: &FoundRun| (Reverse(run.n_tokens), run.start, run.doc_start);
            key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name))
        };
        answer.runs.sort_by(longest_first);
        Ok(answer)
    }

    /// Tokens in a window.
    #[must_use]
    pub fn min(&self) -> usize {
        self.min
    }
}

impl Open {
    fn new(path: &Path) -> Result<Self, Error> {
        Ok(Self {
            docs: Column::open(&path.join(DOCS), 0)?,
            tokens: Column::open(&path.join(TOKENS), 0)?,
            names: Column::open(&path.join(NAMES), 0)?,
            name_ends: Column::open(&path.join(NAME_ENDS), 0)?,
            anchors: Column::open(&path.join(ANCHORS), 0)?,
            n_anchors: Scan::<Anchor>::open(&path.join(ANCHORS))?.left(),
        })
    }

    fn anchor(&self, at: u64) -> Result<Anchor, Error> {
        let mut anchor = [Anchor::zeroed()];
        self.anchors.read_into(at, &mut anchor)?;
        Ok(anchor[0])
    }

    /// Returns the first anchor whose hash is not less.
    fn first_of(&self, hash: u64) -> Result<u64, Error> {
        let (mut low, mut high) = (0, self.n_anchors);
        while low < high {
            let middle = low.midpoint(high);
            match self.anchor(middle)?.hash() < hash {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        Ok(low)
    }

    /// Returns how much a document and a text share.
    fn contained(
        &self,
        doc: u32,
        text: &ShingleSet,
        shingler: &Shingler,
    ) -> Result<FoundDocument, Error> {
        let record = self.docs.get(doc)?;
        let mut tokens = vec![0; record.n_tokens as usize];
        self.tokens.read_into(record.tokens_at, &mut tokens)?;
        let there = shingler.set(&tokens);
        let share = |a, b| containment(a, b).unwrap_or(0.0);
        Ok(FoundDocument {
            name: self.name(doc)?,
            containment: share(text, &there),
            containment_there: share(&there, text),
        })
    }

    /// Adds the runs that a text shares with documents of the segment. Returns the longest run of
    /// each document.
    fn find(
        &self,
        text: &[u64],
        places: &[(u64, u32)],
        least: u32,
        answer: &mut Answer,
    ) -> Result<BTreeMap<u32, u32>, Error> {
        let mut longest: BTreeMap<u32, u32> = BTreeMap::new();
        // Runs so far: document, shift and end, with their start, so that no run is found twice.
        let mut known: BTreeMap<(u32, i64, u32), u32> = BTreeMap::new();
        for own in places.chunk_by(|a, b| a.0 == b.0) {
            let hash = own[0].0;
            let first = self.first_of(hash)?;
            for at in first..self.n_anchors {
                let anchor = self.anchor(at)?;
                if anchor.hash() != hash {
                    break;
                }
                if at - first == MAX_PLACES {
                    answer.is_capped = true;
                    break;
                }
                for &(_, place) in own {
                    let shift = i64::from(anchor.position) - i64::from(place);
                    let same = (anchor.doc, shift, place + 1)..=(anchor.doc, shift, u32::MAX);
                    let next = known.range(same).next();
                    if next.is_some_and(|(_, start)| *start <= place) {
                        continue;
                    }
                    let run = self.run_at(text, place, &anchor)?;
                    known.insert((anchor.doc, shift, run.end), run.start);
                    let n_tokens = run.end - run.start;
                    if n_tokens >= least {
                        let so_far = longest.entry(anchor.doc).or_default();
                        *so_far = n_tokens.max(*so_far);
                        let doc_start = (i64::from(run.start) + shift) as u32;
                        answer.runs.push(FoundRun {
                            n_tokens,
                            name: self.name(anchor.doc)?,
                            start: run.start,
                            doc_start,
                        });
                    }
                }
            }
        }
        Ok(longest)
    }

    /// Returns the tokens around `place` of a text that a document also has around an anchor.
    fn run_at(
        &self,
        text: &[u64],
        place: u32,
        anchor: &Anchor,
    ) -> Result<std::ops::Range<u32>, Error> {
        let record = self.docs.get(anchor.doc)?;
        let n_before = place.min(anchor.position);
        let n_after = (text.len() as u32 - place).min(record.n_tokens - anchor.position);
        let mut there = vec![0; (n_before + n_after) as usize];
        let at = record.tokens_at + u64::from(anchor.position - n_before);
        self.tokens.read_into(at, &mut there)?;
        let here = &text[(place - n_before) as usize..][..there.len()];
        let (before, after) = here.split_at(n_before as usize);
        let (before_there, after_there) = there.split_at(n_before as usize);
        let is_same = |(a, b): &(&u64, &u64)| a == b;
        let n_left = before.iter().rev().zip(before_there.iter().rev());
        let n_left = n_left.take_while(is_same).count() as u32;
        let n_right = after.iter().zip(after_there).take_while(is_same).count() as u32;
        // A hash collision gives an empty run here.
        Ok(place - n_left..place + n_right)
    }

    fn name(&self, doc: u32) -> Result<String, Error> {
        let end = |doc: u32| self.name_ends.get(doc);
        let start = doc.checked_sub(1).map_or(Ok(0), end)?;
        let mut bytes = vec![0; (end(doc)? - start) as usize];
        self.names.read_into(start, &mut bytes)?;
        let n_id = u32::from_le_bytes(*bytes.first_chunk().unwrap_or(&[0; 4])) as usize;
        let id = bytes.get(8..8 + n_id).unwrap_or_default();
        let url = bytes.get(8 + n_id..).unwrap_or_default();
        let name = if url.is_empty() { id } else { url };
        Ok(String::from_utf8_lossy(name).into_owned())
    }
}
