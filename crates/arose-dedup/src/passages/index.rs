//! An index of passages: which stored documents have passages of a text?
//!
//! The naive way scans all documents for each question. Instead the index keeps the anchors of each
//! document (robust winnowing, see [`arose::passage`]) sorted by hash, and its tokens. A question
//! selects the anchors of its own text, looks them up, and compares tokens from there in both
//! directions: every shared run of at least the length of a window is found. A text shorter than a
//! window is looked up by all its grams, which finds what it can and guarantees nothing.
//!
//! The index is a directory of immutable segments and a list of those that count, which is replaced
//! at once. Adding writes a segment; segments of similar size are merged, so there are few. One
//! process writes while others read. Disk: 8 bytes per token, and 16 per anchor, of which there are
//! 0.07 per token for windows of 50 tokens and 0.25 for 13.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use arose::passage::{RollingHash, check_length, gram_length};
use arose::winnow::{Ties, anchors};
use bytemuck::{Pod, Zeroable};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::config::{Config, Text};
use super::read::{self, Read};
use super::text::{DOCS, STARTS, TEXTS, TOKENS, TextRecord, Texts};
use crate::column::{Column, Scan, Writer};
use crate::disk::Lock;
use crate::names::NameScan;
use crate::sorter::Sorter;
use crate::stage::read::{NAMES, NULLS};
use crate::stage::update::{sync, sync_entry};
use crate::work::{read_json, write_json};
use crate::{Error, Progress};

/// The list of segments; its presence makes a directory an index of passages.
const MANIFEST: &str = "passages.json";
const ANCHORS: &str = "anchors";
/// The ends of the names.
const NAME_ENDS: &str = "name_ends";
const FORMAT: u32 = 1;
/// Places looked at for one anchor of a question.
const MAX_PLACES: u64 = 1000;

/// Says which segments count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Manifest {
    format: u32,
    /// Tokens in a window.
    min: usize,
    /// The number of the next segment.
    next: u64,
    segments: Vec<Segment>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Segment {
    number: u64,
    n_docs: u64,
    n_tokens: u64,
}

/// What an index holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stats {
    /// Documents.
    pub n_docs: u64,
    /// Their tokens.
    pub n_tokens: u64,
    /// Tokens in a window.
    pub min: usize,
    /// Segments.
    pub n_segments: usize,
    /// Bytes of all files that count.
    pub disk_bytes: u64,
}

/// What an index has of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Runs of tokens that the text shares with documents, the longest first.
    pub runs: Vec<FoundRun>,
    /// Whether all runs of at least the length of a window are there: not for shorter texts.
    pub is_guaranteed: bool,
    /// Whether some anchor had too many places to look at all of them.
    pub is_capped: bool,
}

/// A maximal run of tokens that a text shares with a document.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FoundRun {
    /// Its length.
    pub n_tokens: u32,
    /// What the document is called.
    pub name: String,
    /// The first token in the text.
    pub start: u32,
    /// The first token in the document.
    pub doc_start: u32,
}

/// An anchor, sorted by its hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Anchor {
    high: u32,
    low: u32,
    doc: u32,
    position: u32,
}

impl Anchor {
    fn hash(&self) -> u64 {
        u64::from(self.high) << 32 | u64::from(self.low)
    }
}

/// Whether a directory is an index of passages.
#[must_use]
pub fn is_index(folder: &Path) -> bool {
    folder.join(MANIFEST).is_file()
}

/// An index of passages, for one writer.
pub struct PassageIndex {
    folder: PathBuf,
    manifest: Manifest,
    _lock: Lock,
}

impl PassageIndex {
    /// Makes an empty index for windows of `min` tokens, in a directory that is empty or missing.
    ///
    /// # Errors
    ///
    /// If the length is out of range, the directory is in use, or it cannot be written.
    pub fn create(folder: &Path, min: usize) -> Result<Self, Error> {
        check_length("--min", min)?;
        fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
        let mut entries = fs::read_dir(folder).map_err(Error::io("read", folder))?;
        if entries.next().is_some() {
            return Err(Error::Foreign {
                path: folder.to_owned(),
            });
        }
        let manifest = Manifest {
            format: FORMAT,
            min,
            next: 0,
            segments: Vec::new(),
        };
        let lock = lock(folder)?;
        write_manifest(folder, &manifest)?;
        Ok(Self {
            folder: folder.to_owned(),
            manifest,
            _lock: lock,
        })
    }

    /// Opens an index to add to it.
    ///
    /// # Errors
    ///
    /// If there is none, or another process has it open.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let manifest = read_manifest(folder)?;
        let lock = lock(folder)?;
        let index = Self {
            folder: folder.to_owned(),
            // It may have changed until the lock was taken.
            manifest: read_manifest(folder).unwrap_or(manifest),
            _lock: lock,
        };
        index.remove_leftovers()?;
        Ok(index)
    }

    /// Adds the documents of `inputs`; how many they are. All are added or none.
    ///
    /// # Errors
    ///
    /// See [`Error`]; bad documents are none.
    pub fn add(
        &mut self,
        inputs: &[PathBuf],
        corpus: &arose_corpus::Config,
        memory: u64,
        progress: &Progress,
    ) -> Result<Added, Error> {
        let config = Config {
            text: Text::Words,
            min: self.manifest.min,
            memory,
            corpus: corpus.clone(),
            ..Config::default()
        };
        let number = self.manifest.next;
        let path = self.segment_path(number);
        fs::create_dir_all(&path).map_err(Error::io("create", &path))?;
        let skip = vec![self.folder.clone()];
        let read = read::run(inputs, &config, skip, &path, progress)?;
        for name in [STARTS, TEXTS, NULLS] {
            remove_file(&path.join(name))?;
        }
        write_name_ends(&path, read.n_docs)?;
        write_anchors(&path, &config, progress)?;
        self.manifest.next += 1;
        if read.n_docs > 0 {
            self.manifest.segments.push(Segment {
                number,
                n_docs: read.n_docs,
                n_tokens: read.n_tokens,
            });
        }
        self.commit(&path)?;
        self.merge_some(config.part(4))?;
        self.remove_leftovers()?;
        Ok(Added { read })
    }

    /// What the index holds.
    ///
    /// # Errors
    ///
    /// If a file cannot be read.
    pub fn stats(folder: &Path) -> Result<Stats, Error> {
        let manifest = read_manifest(folder)?;
        let mut disk_bytes = 0;
        for segment in &manifest.segments {
            for name in [DOCS, NAMES, NAME_ENDS, TOKENS, ANCHORS] {
                let path = segment_path(folder, segment.number).join(name);
                let metadata = fs::metadata(&path).map_err(Error::io("read", &path))?;
                disk_bytes += metadata.len();
            }
        }
        Ok(Stats {
            n_docs: manifest.segments.iter().map(|segment| segment.n_docs).sum(),
            n_tokens: manifest
                .segments
                .iter()
                .map(|segment| segment.n_tokens)
                .sum(),
            min: manifest.min,
            n_segments: manifest.segments.len(),
            disk_bytes,
        })
    }

    fn segment_path(&self, number: u64) -> PathBuf {
        segment_path(&self.folder, number)
    }

    /// Makes the list of segments count, once the new one is on the disk.
    fn commit(&self, segment: &Path) -> Result<(), Error> {
        sync(segment)?;
        write_manifest(&self.folder, &self.manifest)
    }

    /// Merges the last two segments while the last is at least half as large as the one before.
    fn merge_some(&mut self, allowance: u64) -> Result<(), Error> {
        while let [.., a, b] = &self.manifest.segments[..] {
            let n_docs = a.n_docs + b.n_docs;
            if 2 * b.n_tokens < a.n_tokens || n_docs >= u64::from(u32::MAX) {
                return Ok(());
            }
            let merged = Segment {
                number: self.manifest.next,
                n_docs,
                n_tokens: a.n_tokens + b.n_tokens,
            };
            let paths = [a, b].map(|segment| self.segment_path(segment.number));
            let path = self.segment_path(merged.number);
            merge(&paths, &path, allowance)?;
            self.manifest.next += 1;
            let n = self.manifest.segments.len();
            self.manifest.segments.truncate(n - 2);
            self.manifest.segments.push(merged);
            self.commit(&path)?;
        }
        Ok(())
    }

    /// Removes segments that do not count: of a process that was killed, or merged ones.
    fn remove_leftovers(&self) -> Result<(), Error> {
        let known = self.manifest.segments.iter();
        let known: BTreeSet<PathBuf> = known.map(|s| self.segment_path(s.number)).collect();
        for entry in fs::read_dir(&self.folder).map_err(Error::io("read", &self.folder))? {
            let path = entry.map_err(Error::io("read", &self.folder))?.path();
            if path.is_dir() && !known.contains(&path) {
                fs::remove_dir_all(&path).map_err(Error::io("remove", &path))?;
            }
        }
        Ok(())
    }
}

/// What was added.
pub struct Added {
    read: Read,
}

impl Added {
    /// Documents.
    #[must_use]
    pub fn n_docs(&self) -> u64 {
        self.read.n_docs
    }

    /// Files that could not be read completely.
    #[must_use]
    pub fn n_incomplete(&self) -> u64 {
        self.read.losses.n_files
    }

    /// The first warnings, for people.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.read.warnings
    }
}

/// Answers questions; several processes may.
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
    /// Opens an index to ask it.
    ///
    /// # Errors
    ///
    /// If there is none, or a file cannot be read.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        // A segment may be merged between the look at the list and at the files.
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

    /// Which documents have passages of a text, given as token fingerprints.
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
        // Wherever the hash stands: of several equal grams a document may have selected any.
        let mut places: Vec<(u64, u32)> = (0..)
            .zip(&grams)
            .filter(|(_, hash)| wanted.contains(hash))
            .map(|(place, hash)| (*hash, place))
            .collect();
        places.sort_unstable();
        let mut answer = Answer {
            runs: Vec::new(),
            is_guaranteed,
            is_capped: false,
        };
        for segment in &self.segments {
            segment.find(tokens, &places, least as u32, &mut answer)?;
        }
        let longest_first = |a: &FoundRun, b: &FoundRun| {
            let key = |run: &FoundRun| (std::cmp::Reverse(run.n_tokens), run.start, run.doc_start);
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

    /// The first anchor whose hash is not less.
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

    /// Adds the runs that a text shares with documents of the segment.
    fn find(
        &self,
        text: &[u64],
        places: &[(u64, u32)],
        least: u32,
        answer: &mut Answer,
    ) -> Result<(), Error> {
        // Runs so far: document, shift and end, with their start, so that none is found twice.
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
        Ok(())
    }

    /// The tokens around `place` of a text that a document has around an anchor.
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
        // A hash that only looks the same gives an empty run here.
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

/// Leaves where each name ends in the file of names.
fn write_name_ends(path: &Path, n_docs: u64) -> Result<(), Error> {
    let mut names = NameScan::open(path)?;
    let mut ends = Writer::<u64>::create(&path.join(NAME_ENDS))?;
    let mut end = 0;
    for _ in 0..n_docs {
        let name = names.next()?;
        end += 8 + name.id.len() as u64 + name.url.map_or(0, |url| url.len() as u64);
        ends.push(&end)?;
    }
    ends.finish().map(drop)
}

/// Leaves the anchors of a segment by hash.
fn write_anchors(path: &Path, config: &Config, progress: &Progress) -> Result<(), Error> {
    let (min, q) = (config.min, gram_length(config.min));
    let mut sorter = Sorter::<Anchor>::new(&path.join("sort"), config.part(4));
    let batch_tokens = (config.part(4) / 64).clamp(1 << 12, 1 << 20);
    Texts::new(path).batches(batch_tokens, progress, |batch| {
        let lists = batch.par_iter().map(|(doc, tokens)| {
            let grams = RollingHash::new(tokens).grams(q);
            let found = anchors(&grams, min - q + 1, Ties::Robust).into_iter();
            found
                .map(|anchor| Anchor {
                    high: (anchor.hash >> 32) as u32,
                    low: anchor.hash as u32,
                    doc: *doc,
                    position: anchor.position as u32,
                })
                .collect()
        });
        let lists: Vec<Vec<Anchor>> = lists.collect();
        lists.iter().try_for_each(|list| sorter.extend(list))
    })?;
    sorter.write(&path.join(ANCHORS)).map(drop)
}

/// Makes one segment of two.
fn merge(paths: &[PathBuf; 2], out: &Path, allowance: u64) -> Result<(), Error> {
    fs::create_dir_all(out).map_err(Error::io("create", out))?;
    let mut docs = Writer::<TextRecord>::create(&out.join(DOCS))?;
    let mut ends = Writer::<u64>::create(&out.join(NAME_ENDS))?;
    let mut tokens = Writer::<u64>::create(&out.join(TOKENS))?;
    let mut names = Writer::<u8>::create(&out.join(NAMES))?;
    let mut sorter = Sorter::<Anchor>::new(&out.join("sort"), allowance);
    for path in paths {
        let (n_docs, n_tokens, n_bytes) = (docs.len() as u32, tokens.len(), names.len());
        for_each(&path.join(ANCHORS), |anchor: Anchor| {
            let doc = anchor.doc + n_docs;
            sorter.push(Anchor { doc, ..anchor })
        })?;
        for_each(&path.join(DOCS), |record: TextRecord| {
            let tokens_at = record.tokens_at + n_tokens;
            docs.push(&TextRecord {
                tokens_at,
                ..record
            })
        })?;
        for_each(&path.join(NAME_ENDS), |end: u64| {
            ends.push(&(end + n_bytes))
        })?;
        for_each(&path.join(TOKENS), |token: u64| tokens.push(&token))?;
        for_each(&path.join(NAMES), |byte: u8| names.push(&byte))?;
    }
    docs.finish()?;
    ends.finish()?;
    tokens.finish()?;
    names.finish()?;
    sorter.write(&out.join(ANCHORS)).map(drop)
}

fn for_each<T: Pod>(
    path: &Path,
    mut take: impl FnMut(T) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut scan = Scan::<T>::open(path)?;
    while let Some(record) = scan.next()? {
        take(record)?;
    }
    Ok(())
}

fn segment_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("segment-{number}"))
}

fn lock(folder: &Path) -> Result<Lock, Error> {
    let path = folder.join("lock");
    let lock = Lock::take(&path).map_err(Error::io("lock", &path))?;
    lock.ok_or_else(|| Error::Busy {
        path: folder.to_owned(),
    })
}

fn read_manifest(folder: &Path) -> Result<Manifest, Error> {
    let path = folder.join(MANIFEST);
    let manifest: Option<Manifest> = read_json(&path)?;
    match manifest {
        Some(manifest) if manifest.format == FORMAT => Ok(manifest),
        Some(manifest) => Err(Error::Damaged {
            path,
            detail: format!("format {} is not known, expected {FORMAT}", manifest.format),
        }),
        None => Err(Error::NoPassages {
            path: folder.to_owned(),
        }),
    }
}

fn write_manifest(folder: &Path, manifest: &Manifest) -> Result<(), Error> {
    let path = folder.join(MANIFEST);
    write_json(&path, manifest)?;
    sync(&path)?;
    sync_entry(&path)
}

fn remove_file(path: &Path) -> Result<(), Error> {
    fs::remove_file(path).map_err(Error::io("remove", path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arose::mix::SplitMix;
    use arose::passage::Reference;
    use arose::token::Tokenizer;

    fn add(index: &mut PassageIndex, folder: &Path, texts: &[String], first: usize) {
        let path = folder.join(format!("in{first}.jsonl"));
        let lines = texts.iter().enumerate().map(|(i, text)| {
            let id = format!("d{}", first + i);
            serde_json::json!({ "id": id, "text": text }).to_string() + "\n"
        });
        fs::write(&path, lines.collect::<String>()).unwrap();
        let corpus = arose_corpus::Config::default();
        let added = index.add(&[path], &corpus, 1 << 20, &Progress::of_passages());
        assert_eq!(added.unwrap().n_docs(), texts.len() as u64);
    }

    /// Whatever was added when, a question finds the shared runs that all texts have.
    #[test]
    fn issue_29_an_index_answers_as_brute_force_does_and_grows() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("index");
        let mut random = SplitMix::new(3);
        let mut text =
            |n: u64| -> String { (0..n).map(|_| format!("w{} ", random.below(6))).collect() };
        let mut all: Vec<String> = Vec::new();
        let mut index = PassageIndex::create(&place, 8).unwrap();
        let tokens = |text: &str| Tokenizer::default().tokens(text).fingerprints;
        for n_new in [5, 1, 1, 9, 2, 1] {
            let texts: Vec<String> = (0..n_new).map(|_| text(60)).collect();
            add(&mut index, folder.path(), &texts, all.len());
            all.extend(texts);
            let stats = PassageIndex::stats(&place).unwrap();
            assert_eq!(stats.n_docs, all.len() as u64);
            assert!(stats.n_segments <= 4, "{stats:?}");
            let items: Vec<Vec<u64>> = all.iter().map(|text| tokens(text)).collect();
            let reference = Reference::new(items.iter().map(Vec::as_slice), 8);
            let reader = PassageReader::open(&place).unwrap();
            for question in [text(50), all[0].clone(), text(9)] {
                let question = tokens(&question);
                let answer = reader.query(&question).unwrap();
                assert!(answer.is_guaranteed && !answer.is_capped);
                let mut found: Vec<_> = answer
                    .runs
                    .iter()
                    .map(|run| (run.name.clone(), run.doc_start, run.start, run.n_tokens))
                    .collect();
                let mut expected: Vec<_> = reference
                    .shared_runs(&question)
                    .into_iter()
                    .map(|run| {
                        let n = run.item_tokens.end - run.item_tokens.start;
                        (
                            format!("d{}", run.item),
                            run.item_tokens.start,
                            run.start,
                            n,
                        )
                    })
                    .collect();
                found.sort();
                expected.sort();
                assert_eq!(found, expected);
            }
        }
        // Fewer tokens than a window: what is found is not guaranteed to be all.
        let reader = PassageReader::open(&place).unwrap();
        let question = tokens(
            &all[3]
                .split(' ')
                .skip(10)
                .take(7)
                .collect::<Vec<_>>()
                .join(" "),
        );
        let answer = reader.query(&question).unwrap();
        assert!(!answer.is_guaranteed);
        assert!(answer.runs.iter().all(|run| run.n_tokens >= 4));
        // A second writer is refused.
        assert!(matches!(
            PassageIndex::open(&place),
            Err(Error::Busy { .. })
        ));
        drop(index);
        // What a killed process has left does not count, and goes.
        fs::create_dir(place.join("segment-99")).unwrap();
        assert_eq!(
            PassageIndex::stats(&place).unwrap().n_docs,
            all.len() as u64
        );
        drop(PassageIndex::open(&place).unwrap());
        assert!(!place.join("segment-99").exists());
    }

    #[test]
    fn issue_29_no_index_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!is_index(folder.path()));
        let missing = PassageReader::open(folder.path());
        assert!(matches!(missing, Err(Error::NoPassages { .. })));
        for min in [0, 65_537] {
            let created = PassageIndex::create(&folder.path().join("new"), min);
            assert!(matches!(created, Err(Error::Setting(_))));
        }
        fs::write(folder.path().join("other"), "x").unwrap();
        let created = PassageIndex::create(folder.path(), 50);
        assert!(matches!(created, Err(Error::Foreign { .. })));
    }
}
