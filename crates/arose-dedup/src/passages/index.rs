//! An index of passages: finds the stored documents that contain passages of a text.
//!
//! The naive method scans all documents for each query. Instead, the index stores the anchors of
//! each document (robust winnowing, see [`arose::passage`]) sorted by hash, and its tokens. A query
//! selects the anchors of its own text, looks them up, and compares tokens from there in both
//! directions. This finds every shared run of at least the length of a window. A text shorter than
//! a window is looked up by all its grams, which finds matches without a guarantee.
//!
//! The index is a directory of immutable segments and a list of the valid ones, which is replaced
//! atomically. Adding documents writes a segment; segments of similar size are merged, so there are
//! few. One process writes while others read. Disk use is 8 bytes per token and 16 per anchor, of
//! which there are 0.07 per token for windows of 50 tokens and 0.25 for 13.

mod query;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use arose::passage::{RollingHash, check_length, gram_length};
use arose::winnow::{Ties, anchors};
use bytemuck::{Pod, Zeroable};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::config::{PassagesConfig, TextElements};
use super::read::{self, Read};
use super::text::{DOCS, STARTS, TEXTS, TOKENS, TextRecord, Texts};
use crate::column::{Scan, Writer};
use crate::disk::Lock;
use crate::names::NameScan;
use crate::sorter::Sorter;
use crate::stage::read::{NAMES, NULLS};
use crate::stage::update::{sync, sync_entry};
use crate::work::{read_json, write_json};
use crate::{Error, Progress};

pub use query::{Answer, FoundDocument, FoundRun, PassageReader};

/// The list of segments; its presence makes a directory an index of passages.
const MANIFEST: &str = "passages.json";
const ANCHORS: &str = "anchors";
/// The ends of the names.
const NAME_ENDS: &str = "name_ends";
const FORMAT: u32 = 1;

/// The list of valid segments.
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

/// The size of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassageIndexStatus {
    /// Documents.
    pub n_docs: u64,
    /// Their tokens.
    pub n_tokens: u64,
    /// Tokens in a window.
    pub min: usize,
    /// Segments.
    pub n_segments: usize,
    /// Bytes of all valid files.
    pub disk_bytes: u64,
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

/// Returns whether a directory is an index of passages.
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
    /// Creates an empty index for windows of `min` tokens, in a directory that is empty or missing.
    ///
    /// # Errors
    ///
    /// If the length is out of range, the directory is not empty, or it cannot be written.
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

    /// Opens an index for adding documents.
    ///
    /// # Errors
    ///
    /// If there is no index, or another process has it open.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let manifest = read_manifest(folder)?;
        let lock = lock(folder)?;
        let index = Self {
            folder: folder.to_owned(),
            // The list may have changed before the lock was taken.
            manifest: read_manifest(folder).unwrap_or(manifest),
            _lock: lock,
        };
        index.remove_leftovers()?;
        Ok(index)
    }

    /// Adds the documents of `inputs`, all or none. Returns their number.
    ///
    /// # Errors
    ///
    /// See [`Error`]. Malformed documents are not an error.
    pub fn add(
        &mut self,
        inputs: &[PathBuf],
        corpus: &arose_corpus::Config,
        memory: u64,
        progress: &Progress,
    ) -> Result<Added, Error> {
        let config = PassagesConfig {
            text: TextElements::Words,
            min: self.manifest.min,
            memory,
            corpus: corpus.clone(),
            ..PassagesConfig::default()
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

    /// Returns the size of the index.
    ///
    /// # Errors
    ///
    /// If a file cannot be read.
    pub fn status(folder: &Path) -> Result<PassageIndexStatus, Error> {
        let manifest = read_manifest(folder)?;
        let mut disk_bytes = 0;
        for segment in &manifest.segments {
            for name in [DOCS, NAMES, NAME_ENDS, TOKENS, ANCHORS] {
                let path = segment_path(folder, segment.number).join(name);
                let metadata = fs::metadata(&path).map_err(Error::io("read", &path))?;
                disk_bytes += metadata.len();
            }
        }
        Ok(PassageIndexStatus {
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

    /// Replaces the list of segments, once the new segment is on disk.
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

    /// Removes invalid segments: those of a killed process, and merged ones.
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

/// The result of adding documents.
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

/// Writes the end of each name in the file of names.
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

/// Writes the anchors of a segment, sorted by hash.
fn write_anchors(path: &Path, config: &PassagesConfig, progress: &Progress) -> Result<(), Error> {
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

/// Merges two segments into one.
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
