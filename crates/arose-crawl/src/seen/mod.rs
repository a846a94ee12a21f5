//! The duplicate-URI checker: was this URL met before?
//!
//! *Question.* Nine links in ten lead to pages that are already known. Each URL must come through
//! exactly once, among billions, in bounded memory, and also after the process was killed.
//!
//! *Idea.* A hash set in memory ends with the memory; a B-tree on disk costs a random read and
//! write per link. Instead, as in DRUM (Lee et al. 2008) and log-structured trees (O'Neil et al.
//! 1996), keep the keys in *runs*: sorted immutable files. New keys gather in a buffer in memory
//! and in a log; a full buffer is sorted and written as a run, merged with the newest runs while
//! these are less than twice as large, so that there are few runs and each key is rewritten a few
//! times. URLs are asked for in batches: a sorted batch meets the blocks of a run in order, many
//! keys of one host in one block, since keys begin with the host. A filter per block tells most
//! new keys without a look into it, and runs are held in memory as far as that is allowed. The
//! answer is exact all the same: a filter's yes is checked in the block.
//!
//! *Collisions.* By default the key is all that is kept, and two URLs of one fingerprint are one
//! (see [`crate::fingerprint`] for how rarely). [`Strings::Keep`] keeps the URLs as well, and
//! compares them when keys agree; a URL whose key is taken by another one gets a further key.
//!
//! *Parameters.* [`Config::buffer_keys`], [`Config::held_bytes`], and the size of batches, which
//! the caller chooses: large ones are cheaper each, small ones answer sooner. *Cost.* On disk 19
//! bytes a URL (27 and the URL itself if it is kept) and as much again while runs are merged; in
//! memory 2.7 bytes a URL, 50 bytes a key of the buffer, and the runs that are held, 16 bytes a
//! URL. Time per URL grows with the logarithm of their number: `examples/seen_scale.rs` takes 0.43
//! µs to normalise and ask for a URL among a million and 0.62 µs among 50 million, with 1 GB on
//! disk.
//!
//! *Safety.* [`Seen::commit`] makes all answers so far survive the end of the process,
//! [`Seen::sync`] also that of the machine. Answers that were not committed are forgotten by a
//! crash: whoever is told `New` first stores the URL and commits then, and nothing is lost. A power
//! cut may keep what was stored from the disk and not what was committed here, so commits have
//! *marks*, and the set is opened up to the mark that the store knows ([`Seen::open_until`]). Runs
//! are never undone: before the one commit that replaces runs ([`Seen::is_full`]) the store syncs.
//! A folder is used by one process at a time. Runs may be merged [aside](Merges::Aside), while the
//! set is used: what is merged stays in the log until the new run takes its place.
//!
//! *Not for* taking URLs back: there is no removal.
//!
//! ```
//! use arose_crawl::fingerprint::Fingerprint;
//! use arose_crawl::seen::{Membership, Config, Entry, Seen};
//! use arose_crawl::url::Normalizer;
//!
//! let folder = tempfile::tempdir()?;
//! let mut seen = Seen::open(folder.path(), Config::default())?;
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

/// How the set is kept.
#[derive(Debug, Clone, Copy)]
pub struct Config {
    /// How many new keys are gathered before they are written as a run; 50 bytes of memory each.
    pub buffer_keys: usize,
    /// Bytes of runs that may be held in memory; others are read as they are asked for.
    pub held_bytes: usize,
    /// Whether URLs are kept.
    pub strings: Strings,
    /// Where runs are merged.
    pub merges: Merges,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            buffer_keys: 1 << 18,
            held_bytes: 1 << 30,
            strings: Strings::Drop,
            merges: Merges::Here,
        }
    }
}

impl Config {
    fn width(&self) -> Width {
        match self.strings {
            Strings::Drop => Width::Key,
            Strings::Keep => Width::KeyAndPlace,
        }
    }
}

/// Whether URLs are kept beside their fingerprints. A folder stays what it was made as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strings {
    /// Fingerprints alone: two URLs that share one are taken for the same.
    Drop,
    /// URLs too: no two are ever confused.
    Keep,
}

/// Where runs are merged; the answers do not depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Merges {
    /// In the commit that finds the buffer full, which takes as long as that takes.
    Here,
    /// On a thread, while the set is used. Keys that come meanwhile gather in memory, up to
    /// four buffers; then commits wait.
    Aside,
}

/// Whether a URL was met before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Membership {
    /// Never. This is said once for each URL.
    New,
    /// Yes.
    Known,
}

/// A URL to be asked for.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'u> {
    /// Its fingerprint.
    pub fingerprint: Fingerprint,
    /// Itself, in normal form; not looked at unless [`Strings::Keep`].
    pub url: &'u str,
}

/// The set of URLs seen, in a folder.
#[derive(Debug)]
pub struct Seen {
    folder: PathBuf,
    /// Held as long as the folder is in use.
    _lock: disk::Lock,
    config: Config,
    width: Width,
    manifest: Manifest,
    /// The oldest first.
    runs: Vec<Arc<Run>>,
    log: KeyLog,
    /// Keys that are in no run, with the place of their URL.
    buffer: Keys,
    growth: Growth,
    /// Those of them that are not in the log either.
    uncommitted: Vec<KeyRecord>,
    strings: Option<strings::StringFile>,
    /// The mark of the last commit.
    mark: u64,
    /// How often the answer was `New` since the set was opened.
    n_new: u64,
}

/// Keys with the places of their URLs.
type Keys = HashMap<[u64; 2], u64, KeyHash>;

impl Seen {
    /// Opens the set in `folder`, or makes an empty one.
    ///
    /// # Errors
    ///
    /// If the folder is in use, was made with other settings, or is damaged.
    pub fn open(folder: &Path, config: Config) -> Result<Self, Error> {
        Self::open_until(folder, config, u64::MAX)
    }

    /// The mark of the last commit of the set in a folder, which is not changed; 0 if there is
    /// none.
    ///
    /// # Errors
    ///
    /// If the set was made with other settings or is damaged.
    pub fn last_mark(folder: &Path, config: Config) -> Result<u64, Error> {
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

    /// Opens the set as it was after the commit with mark `until`; what came later is forgotten.
    ///
    /// # Errors
    ///
    /// As [`Seen::open`], and if runs hold what came later.
    pub fn open_until(folder: &Path, config: Config, until: u64) -> Result<Self, Error> {
        disk::create_folder(folder).context("creating", folder)?;
        let lock = lock(folder)?;
        let width = config.width();
        let manifest = match Manifest::read(folder, width)? {
            Some(manifest) => manifest,
            None => found(folder, width)?,
        };
        if manifest.mark > until {
            let what = "it has URLs that the journal does not know";
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

    /// Where it is.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// How many URLs are in the set.
    #[must_use]
    pub fn len(&self) -> u64 {
        let in_runs: u64 = self.runs.iter().map(|run| run.n_records).sum();
        in_runs + self.growth.n_keys() + self.buffer.len() as u64
    }

    /// How many URLs of the set are committed.
    #[must_use]
    pub fn n_committed(&self) -> u64 {
        self.len() - self.uncommitted.len() as u64
    }

    /// How often the answer was [`Membership::New`] since the set was opened.
    #[must_use]
    pub fn n_new(&self) -> u64 {
        self.n_new
    }

    /// Whether no URL is in the set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Asks for a batch of URLs and adds those that are new. The answers are in the order of the
    /// batch; of a URL that is new and occurs twice in it, the first is `New`.
    ///
    /// # Errors
    ///
    /// If a file cannot be read or is damaged. Then none of the answers was given, but some URLs
    /// may have been added; the set should be dropped without a commit.
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

    /// Makes all answers given so far survive the end of this process. Writes a run when the buffer
    /// is full, which takes a while now and then.
    ///
    /// # Errors
    ///
    /// If a file cannot be written. The set is what it was, and may be committed again.
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
    /// As [`Seen::commit`].
    pub fn commit_as(&mut self, mark: u64) -> Result<(), Error> {
        self.commit_first(self.n_new, mark)
    }

    /// Commits the URLs that were new up to the moment when so many had been
    /// ([`Seen::n_new`]); later ones wait for another commit.
    ///
    /// # Errors
    ///
    /// As [`Seen::commit`].
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

    /// Whether the next commit replaces runs, which [`Seen::open_until`] cannot undo.
    ///
    /// # Errors
    ///
    /// If runs could not be merged.
    pub fn is_full(&mut self) -> Result<bool, Error> {
        match self.config.merges {
            Merges::Here => Ok(self.buffer.len() >= self.config.buffer_keys.max(1)),
            Merges::Aside => self.has_merged(),
        }
    }

    /// Commits, and returns when all of it is on the disk.
    ///
    /// # Errors
    ///
    /// As [`Seen::commit`].
    pub fn sync(&mut self) -> Result<(), Error> {
        self.commit()?;
        self.sync_committed()
    }

    /// Returns when all that was committed is on the disk.
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

    /// Answers for keys; `others` are those whose key is another URL's.
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

    /// Takes out the probes whose key is in a buffer: they are known, or another URL's.
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

    /// Whether the URL kept at `place` is this one; where none are kept, it is.
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

/// A key that is looked for, and whose it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Probe {
    key: u128,
    index: usize,
}

/// Makes an empty set.
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

/// The key of a URL whose first `n_tries` keys are taken: on the same host, elsewhere.
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

/// Scatters keys over a table. They are hashes already, but of a hash that everyone knows: the seed
/// keeps a hostile site from filling one bucket.
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

    /// The length of the key, which is always two.
    fn write_usize(&mut self, _: usize) {}

    fn finish(&self) -> u64 {
        self.state
    }
}
