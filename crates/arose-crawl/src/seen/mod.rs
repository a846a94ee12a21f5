//! The seen set: an exact, persistent set of all URLs met, in bounded memory.
//!
//! *Question.* Nine links in ten lead to pages that are already known. Each URL must be reported as
//! new exactly once, among billions, in bounded memory, and also after the process was killed.
//!
//! *Idea.* A hash set in memory is limited by the memory, and a B-tree on disk costs a random read
//! and write per link. Instead, as in DRUM (Lee et al. 2008) and log-structured trees (O'Neil et
//! al. 1996), the keys are in *sorted runs*: immutable sorted files. New keys are collected in a
//! buffer in memory and in a log. A full buffer is sorted and written as a sorted run. It is merged
//! with the newest sorted runs while these are less than twice as large. So there are few sorted
//! runs, and each key is rewritten a few times. URLs are looked up in batches: a sorted batch meets
//! the blocks of a sorted run in order. Because keys begin with the host, many keys of one host are
//! in one block. A filter per block recognizes most new keys without a search in it, and sorted
//! runs are kept in memory up to a limit. The result is exact all the same: a positive result of a
//! filter is checked in the block.
//!
//! *Collisions.* By default only the key is kept, and two URLs with one fingerprint are taken for
//! the same (see [`crate::fingerprint`] for how rarely). [`Strings::Keep`] also keeps the URLs, and
//! compares them if keys are equal. A URL whose key belongs to another one gets a further key.
//!
//! *Parameters.* [`SeenConfig::buffer_keys`], [`SeenConfig::held_bytes`], and the size of batches,
//! which the caller chooses: large ones cost less per URL, small ones return sooner. *Cost.* On
//! disk 19 bytes per URL (27 and the URL itself if it is kept) and as much again while sorted runs
//! are merged. In memory 2.7 bytes per URL, 50 bytes per key of the buffer, and 16 bytes per URL of
//! the sorted runs in memory. Time per URL grows with the logarithm of their number:
//! `examples/seen_scale.rs` takes 0.43 µs to normalize and look up a URL among a million and 0.62
//! µs among 50 million, with 1 GB on disk.
//!
//! *Safety.* After [`Seen::commit`] all results so far survive the end of the process, after
//! [`Seen::sync`] also that of the machine. A crash forgets results that were not committed. So a
//! caller that receives `New` first stores the URL and then commits, and nothing is lost. A power
//! failure may lose stored URLs and keep those committed here. So commits have *marks*, and the set
//! is opened up to the mark that the store knows ([`Seen::open_until`]). Sorted runs are never
//! undone: before the one commit that replaces sorted runs ([`Seen::is_full`]), the store syncs. A
//! directory is used by one process at a time. Sorted runs may be merged [aside](Merges::Aside),
//! while the set is used: their new keys stay in the log until the new sorted run is installed.
//!
//! *Not for* removing URLs: there is no removal.
//!
//! ```
//! use arose_crawl::fingerprint::Fingerprint;
//! use arose_crawl::seen::{Membership, SeenConfig, Entry, Seen};
//! use arose_crawl::url::Normalizer;
//!
//! let folder = tempfile::tempdir()?;
//! let mut seen = Seen::open(folder.path(), SeenConfig::default())?;
//! let url = Normalizer::default().normalize("http://abc.com/", None)?;
//! let entry = Entry { fingerprint: Fingerprint::of(&url), url: url.as_str() };
//! assert_eq!(seen.insert(&[entry, entry])?, [Membership::New, Membership::Known]);
//! seen.commit()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod filter;
mod growth;
mod log;
mod manifest;
mod merge;
mod record;
mod run;
mod strings;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arose::mix::mix;
use arose_dedup::disk;

use crate::error::{Context, Error};
use crate::fingerprint::Fingerprint;
use growth::Growth;
use log::{KeyLog, Valid};
use manifest::Manifest;
use record::{KeyRecord, Width};
use run::Run;

/// Settings of the set.
#[derive(Debug, Clone, Copy)]
pub struct SeenConfig {
    /// Number of new keys that are collected before they are written as a sorted run; 50 bytes of
    /// memory each.
    pub buffer_keys: usize,
    /// Maximum number of bytes of sorted runs in memory; others are read when needed.
    pub held_bytes: usize,
    /// Whether URLs are kept.
    pub strings: Strings,
    /// Where sorted runs are merged.
    pub merges: Merges,
}

impl Default for SeenConfig {
    fn default() -> Self {
        Self {
            buffer_keys: 1 << 18,
            held_bytes: 1 << 30,
            strings: Strings::Drop,
            merges: Merges::Here,
        }
    }
}

impl SeenConfig {
    fn width(&self) -> Width {
        match self.strings {
            Strings::Drop => Width::Key,
            Strings::Keep => Width::KeyAndPlace,
        }
    }
}

/// Whether URLs are kept in addition to their fingerprints. This cannot change for an existing
/// directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strings {
    /// Only fingerprints: two URLs that share one are taken for the same.
    Drop,
    /// URLs too: two URLs are never confused.
    Keep,
}

/// Where sorted runs are merged; this does not affect results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Merges {
    /// In the commit that finds the buffer full, which waits for the merge.
    Here,
    /// On a thread, while the set is used. Keys that arrive meanwhile are collected in memory, up
    /// to four buffers; then commits wait.
    Aside,
}

/// Whether a URL was met before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Membership {
    /// Never. This is returned once for each URL.
    New,
    /// Yes.
    Known,
}

/// A URL to be looked up.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'u> {
    /// Its fingerprint.
    pub fingerprint: Fingerprint,
    /// The normalized URL; not used unless [`Strings::Keep`].
    pub url: &'u str,
}

/// The set of URLs seen, in a directory.
#[derive(Debug)]
pub struct Seen {
    folder: PathBuf,
    /// Locked as long as the directory is in use.
    _lock: disk::Lock,
    config: SeenConfig,
    width: Width,
    manifest: Manifest,
    /// Oldest first.
    runs: Vec<Arc<Run>>,
    log: KeyLog,
    /// Keys that are not in a sorted run, with the positions of their URLs.
    buffer: Keys,
    growth: Growth,
    /// Those of them that are not in the log either.
    uncommitted: Vec<KeyRecord>,
    strings: Option<strings::StringFile>,
    /// The mark of the last commit.
    mark: u64,
    /// How often the result was `New` since the set was opened.
    n_new: u64,
}

/// Keys with the positions of their URLs.
type Keys = HashMap<[u64; 2], u64, KeyHash>;

impl Seen {
    /// Opens the set in `folder`, or creates an empty one.
    ///
    /// # Errors
    ///
    /// If the directory is in use, was created with other settings, or is damaged.
    pub fn open(folder: &Path, config: SeenConfig) -> Result<Self, Error> {
        Self::open_until(folder, config, u64::MAX)
    }

    /// Returns the mark of the last commit of the set in a directory, which is not changed; 0 if
    /// there is no set.
    ///
    /// # Errors
    ///
    /// If the set was created with other settings or is damaged.
    pub fn last_mark(folder: &Path, config: SeenConfig) -> Result<u64, Error> {
        let width = config.width();
        let Some(manifest) = Manifest::read(folder, width)? else {
            return Ok(0);
        };
        let all = Valid {
            n_string_bytes: u64::MAX,
            until: u64::MAX,
        };
        let replay = log::read(&manifest.log_path(folder), width, all)?;
        Ok(replay.mark.unwrap_or(manifest.mark))
    }

    /// Opens the set as it was after the commit with mark `until`; later commits are forgotten.
    ///
    /// # Errors
    ///
    /// Those of [`Seen::open`], and if sorted runs include later commits.
    pub fn open_until(folder: &Path, config: SeenConfig, until: u64) -> Result<Self, Error> {
        disk::create_folder(folder).context("creating", folder)?;
        let lock = lock(folder)?;
        let width = config.width();
        let manifest = match Manifest::read(folder, width)? {
            Some(manifest) => manifest,
            None => found(folder, width)?,
        };
        if manifest.mark > until {
            let what = "it has URLs that are not in the journal";
            return Err(Error::damaged(folder, what));
        }
        manifest.remove_others(folder)?;
        let runs = manifest.runs.iter();
        let runs =
            runs.map(|&number| Run::open(&manifest::run_path(folder, number), width).map(Arc::new));
        let runs = runs.collect::<Result<Vec<Arc<Run>>, Error>>()?;
        let strings = match config.strings {
            Strings::Drop => None,
            Strings::Keep => Some(strings::StringFile::open(&folder.join("strings"))?),
        };
        let valid = Valid {
            n_string_bytes: strings.as_ref().map_or(0, strings::StringFile::end),
            until,
        };
        let log_path = manifest.log_path(folder);
        let (log, replay) = KeyLog::open(&log_path, width, valid)?;
        let strings = match strings {
            Some(strings) => {
                let end = replay.strings_end.unwrap_or(manifest.strings_end);
                Some(strings.cut(end)?)
            }
            None => None,
        };
        let mut buffer = HashMap::with_hasher(KeyHash::new());
        buffer.extend(
            replay
                .records
                .iter()
                .map(|record| (words(record.key), record.place)),
        );
        let seen = Self {
            folder: folder.to_owned(),
            _lock: lock,
            config,
            width,
            mark: replay.mark.unwrap_or(manifest.mark),
            manifest,
            runs,
            log,
            buffer,
            growth: Growth::default(),
            uncommitted: Vec::new(),
            strings,
            n_new: 0,
        };
        seen.hold_runs()?;
        Ok(seen)
    }

    /// Returns its directory.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the number of URLs in the set.
    #[must_use]
    pub fn len(&self) -> u64 {
        let in_runs: u64 = self.runs.iter().map(|run| run.n_records).sum();
        in_runs + self.growth.n_keys() + self.buffer.len() as u64
    }

    /// Returns the number of committed URLs in the set.
    #[must_use]
    pub fn n_committed(&self) -> u64 {
        self.len() - self.uncommitted.len() as u64
    }

    /// Returns how often the result was [`Membership::New`] since the set was opened.
    #[must_use]
    pub fn n_new(&self) -> u64 {
        self.n_new
    }

    /// Whether no URL is in the set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Looks up a batch of URLs and adds those that are new. The results are in the order of the
    /// batch. If a new URL occurs twice in it, the first is `New`.
    ///
    /// # Errors
    ///
    /// If a file cannot be read or is damaged. Then there are no results, but some URLs may have
    /// been added; drop the set without a commit.
    pub fn insert(&mut self, batch: &[Entry<'_>]) -> Result<Vec<Membership>, Error> {
        let mut answers = vec![Membership::Known; batch.len()];
        let mut probes: Vec<Probe> = (0..batch.len())
            .map(|index| Probe {
                key: batch[index].fingerprint.key(),
                index,
            })
            .collect();
        for n_tries in 1.. {
            let mut others = Vec::new();
            self.probe(batch, probes, &mut answers, &mut others)?;
            if others.is_empty() {
                break;
            }
            for probe in &mut others {
                probe.key = further_key(batch[probe.index].fingerprint, n_tries);
            }
            probes = others;
        }
        Ok(answers)
    }

    /// Makes all results so far survive the end of this process. Writes a sorted run when the
    /// buffer is full, which occasionally takes a while.
    ///
    /// # Errors
    ///
    /// If a file cannot be written. The set is unchanged, and may be committed again.
    pub fn commit(&mut self) -> Result<(), Error> {
        match self.uncommitted.is_empty() {
            true => Ok(()),
            false => {
                self.is_full()?;
                self.commit_as(self.mark + 1)
            }
        }
    }

    /// Commits with a mark, which must not be below that of the last commit.
    ///
    /// # Errors
    ///
    /// Those of [`Seen::commit`].
    pub fn commit_as(&mut self, mark: u64) -> Result<(), Error> {
        self.commit_first(self.n_new, mark)
    }

    /// Commits the URLs that were new when the count ([`Seen::n_new`]) had this value; later ones
    /// wait for another commit.
    ///
    /// # Errors
    ///
    /// Those of [`Seen::commit`].
    pub fn commit_first(&mut self, n_new: u64, mark: u64) -> Result<(), Error> {
        if let Some(strings) = &mut self.strings {
            strings.write()?;
        }
        let n_later = usize::try_from(self.n_new.saturating_sub(n_new)).unwrap_or(usize::MAX);
        let n = self.uncommitted.len().saturating_sub(n_later);
        if n > 0 || self.mark < mark {
            let strings_end = self.strings_end();
            self.log.append(&self.uncommitted[..n], strings_end, mark)?;
            self.uncommitted.drain(..n);
            self.mark = mark;
        }
        self.grow()
    }

    /// Whether the next commit replaces sorted runs, which [`Seen::open_until`] cannot undo.
    ///
    /// # Errors
    ///
    /// If sorted runs could not be merged.
    pub fn is_full(&mut self) -> Result<bool, Error> {
        match self.config.merges {
            Merges::Here => Ok(self.buffer.len() >= self.config.buffer_keys.max(1)),
            Merges::Aside => self.has_merged(),
        }
    }

    /// Commits, and returns when everything is on the disk.
    ///
    /// # Errors
    ///
    /// Those of [`Seen::commit`].
    pub fn sync(&mut self) -> Result<(), Error> {
        self.commit()?;
        self.sync_committed()
    }

    /// Returns when all committed URLs are on the disk.
    ///
    /// # Errors
    ///
    /// If a file cannot be written.
    pub fn sync_committed(&mut self) -> Result<(), Error> {
        if let Some(strings) = &self.strings {
            strings.sync()?;
        }
        self.log.sync()
    }

    /// Looks up keys; `others` gets the probes whose key belongs to another URL.
    fn probe(
        &mut self,
        batch: &[Entry<'_>],
        mut probes: Vec<Probe>,
        answers: &mut [Membership],
        others: &mut Vec<Probe>,
    ) -> Result<(), Error> {
        let frozen = self.growth.keys();
        for keys in [Some(&self.buffer), frozen.as_deref()]
            .into_iter()
            .flatten()
        {
            self.take_buffered(keys, batch, &mut probes, others)?;
        }
        probes.sort_unstable();
        let mut keys: Vec<u128> = probes.iter().map(|probe| probe.key).collect();
        keys.dedup();
        let mut places = vec![None; keys.len()];
        for run in self.runs.iter().rev() {
            run.find_all(&keys, &mut places)?;
        }
        let same_key = probes.chunk_by(|a, b| a.key == b.key);
        for (group, place) in same_key.zip(places) {
            let (place, rest) = match place {
                Some(place) => (place, group),
                None => {
                    answers[group[0].index] = Membership::New;
                    (self.add(group[0].key, &batch[group[0].index]), &group[1..])
                }
            };
            for &probe in rest {
                if !self.is_same(place, &batch[probe.index])? {
                    others.push(probe);
                }
            }
        }
        Ok(())
    }

    /// Removes the probes whose key is in a buffer: they are known, or the key belongs to another
    /// URL.
    fn take_buffered(
        &self,
        keys: &Keys,
        batch: &[Entry<'_>],
        probes: &mut Vec<Probe>,
        others: &mut Vec<Probe>,
    ) -> Result<(), Error> {
        let mut n_kept = 0;
        for at in 0..probes.len() {
            let probe = probes[at];
            match keys.get(&words(probe.key)) {
                None => {
                    probes[n_kept] = probe;
                    n_kept += 1;
                }
                Some(&place) if !self.is_same(place, &batch[probe.index])? => others.push(probe),
                Some(_) => {}
            }
        }
        probes.truncate(n_kept);
        Ok(())
    }

    fn add(&mut self, key: u128, entry: &Entry<'_>) -> u64 {
        let strings = self.strings.as_mut();
        let place = strings.map_or(0, |strings| strings.push(entry.url));
        self.buffer.insert(words(key), place);
        self.uncommitted.push(KeyRecord { key, place });
        self.n_new += 1;
        place
    }

    /// Whether the URL kept at `place` is this one; true if no URLs are kept.
    fn is_same(&self, place: u64, entry: &Entry<'_>) -> Result<bool, Error> {
        match &self.strings {
            Some(strings) => strings.is_at(place, entry.url),
            None => Ok(true),
        }
    }

    fn strings_end(&self) -> u64 {
        self.strings.as_ref().map_or(0, strings::StringFile::end)
    }
}

/// A key to be looked up, and the index of its URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Probe {
    key: u128,
    index: usize,
}

/// Creates an empty set.
fn found(folder: &Path, width: Width) -> Result<Manifest, Error> {
    let manifest = Manifest::default();
    KeyLog::create(&manifest.log_path(folder), width)?;
    manifest.write(folder, width)?;
    manifest::sync(folder)?;
    Ok(manifest)
}

fn lock(folder: &Path) -> Result<disk::Lock, Error> {
    let path = folder.join("lock");
    let lock = disk::Lock::take(&path).context("locking", &path)?;
    lock.ok_or_else(|| Error::Locked {
        path: folder.to_owned(),
    })
}

/// Returns the key of a URL whose first `n_tries` keys are taken: same host hash, another rest.
fn further_key(fingerprint: Fingerprint, n_tries: u64) -> u128 {
    let rest = mix(fingerprint.rest ^ mix(n_tries));
    Fingerprint {
        rest,
        ..fingerprint
    }
    .key()
}

fn words(key: u128) -> [u64; 2] {
    [(key >> 64) as u64, key as u64]
}

/// Hashes keys for a table. They are hashes already, but of a public function: the seed keeps a
/// hostile site from filling one bucket.
#[derive(Debug, Clone, Copy)]
struct KeyHash {
    seed: u64,
}

impl KeyHash {
    fn new() -> Self {
        Self {
            seed: RandomState::new().build_hasher().finish() | 1,
        }
    }
}

impl BuildHasher for KeyHash {
    type Hasher = KeyHasher;

    fn build_hasher(&self) -> KeyHasher {
        KeyHasher {
            seed: self.seed,
            state: 0,
        }
    }
}

#[derive(Debug)]
struct KeyHasher {
    seed: u64,
    state: u64,
}

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        for word in bytes.as_chunks::<8>().0 {
            self.write_u64(u64::from_ne_bytes(*word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.state ^ word) * u128::from(self.seed);
        self.state = (product >> 64) as u64 ^ product as u64;
    }

    /// Ignores the length of the key, which is always two.
    fn write_usize(&mut self, _: usize) {}

    fn finish(&self) -> u64 {
        self.state
    }
}
