//! The online index: finds documents already in the index that a new document duplicates.
//!
//! *Question.* Documents arrive one at a time, and each needs an immediate answer: which of the
//! millions of documents in the index does it duplicate, by which rule, and how similar are they?
//! The index must survive the process, and its memory must be bounded.
//!
//! *Idea.* Comparing with all sketches is exact but too slow. Any two documents that match the rule
//! share a *key*: a band of MinHash values, a super-shingle or a pair of them, a piece of the
//! simhash, or the digest (see [`Kind`]). So the index stores sorted lists of `(key, row)`. A query
//! looks up its twenty keys and compares the stored sketches of the few rows found. This is the
//! lecture's B-tree of sketch values, built from immutable sorted runs. A B-tree would write a page
//! for each of the twenty keys of each document. The most recent documents are in memory and in a
//! log. When there are too many of them, they become a sorted run. A separate thread merges sorted
//! runs of similar size.
//!
//! *Papers.* Broder 1997, Fetterly, Manasse & Najork 2003 and Henzinger 2006 for the keys; O'Neil,
//! Cheng, Gawlick & O'Neil 1996 for the merging of runs; Bender et al. 2012 for the filters.
//!
//! *Parameters.* [`Settings`] when it is created, [`Options`] when it is opened.
//!
//! *Cost.* Under the policy `jaccard` ([`Kind::Jaccard`]), a document takes a record of 372 bytes,
//! its name, and 4.1 bytes for each of twenty entries: about 465 bytes on disk, and 20 in memory.
//! With super-shingles and simhash ([`Kind::Compact`]), a record has 124 bytes and a document takes
//! about 215. Under the default policy `content` ([`Kind::Content`]), a record has 1,260 bytes, and
//! the index counts what sites repeat, in at most 67 MB of memory. The measurements are in
//! `bench/records`.
//!
//! *Error.* None for [`Kind::Compact`], [`Kind::Full`] and [`Kind::Exact`]: the result equals that
//! of comparing every document ([`Index::scan`]), hence exactly that of the rule. [`Kind::Jaccard`]
//! has the error of the candidates of a run, which use the same keys and pass the same test. It
//! finds a pair at the threshold with the requested probability. It may take a pair below the
//! threshold for duplicates, since there are no texts to verify it. [`Kind::Content`] has the error
//! of its candidates, and knows only the pages of a site that came before. `docs/formats.md` lists
//! the probabilities.
//!
//! *Guarantees.* One writer and any number of readers, also in other processes ([`Reader`]). Once
//! its insertion has returned, a document survives a kill of the process. After [`Index::commit`],
//! it also survives a power failure. Insertion is atomic.
//!
//! *Not for* a complete corpus: a run of `arose dedup` finds all its pairs at once, and faster.
//!
//! ```
//! use arose_dedup::index::{Index, Seen, Settings, Sketcher};
//! let folder = tempfile::tempdir().unwrap();
//! let index = Index::create(folder.path(), Settings::default())?;
//! let sketcher = Sketcher::new(index.settings());
//! let page = "Once upon a midnight dreary, while I pondered, weak and weary, over many a quaint";
//! let seen = index.query_or_insert("the raven", &sketcher.sketch(page, None))?;
//! assert_eq!(seen, Seen::New);
//! let found = index.query(&sketcher.sketch(&page.replace(' ', "\n"), None))?;
//! assert_eq!(found[0].name, "the raven");
//! assert_eq!(found[0].rule.as_str(), "exact");
//! # Ok::<(), arose_dedup::index::Error>(())
//! ```

mod bits;
mod clusters;
mod committed;
mod compact;
mod dead;
mod error;
mod file;
mod folder;
mod keys;
mod log;
mod manifest;
mod merge;
mod merger;
mod order;
mod own;
mod pending;
mod reader;
mod recent;
mod records;
mod run;
mod screen;
mod settings;
mod site_counts;
mod sketch;
mod state;
mod verify;
mod writer;

#[cfg(test)]
mod content_tests;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::num::NonZeroU32;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::JoinHandle;

pub use clusters::Clusters;
pub use committed::Committed;
pub use error::Error;
pub(crate) use pending::Pending;
pub use reader::Reader;
pub use records::MAX_NAME;
pub use settings::{FeatureKeys, Kind, Settings};
pub use sketch::{Pairs, SiteTag, Sketch, Sketcher, name};
pub use state::{ContentScores, IndexStatus, Match};
pub use verify::{Verified, verify};

use crate::disk;
use file::{Allowance, Content, sync_folder};
use folder::{Fresh, check_unused, discard, remove_leftovers, take_lock};
use log::{Frame, Log};
use manifest::{Manifest, Part};
use merger::Merger;
use state::{Prepared, State, check_sketch};
use writer::Writer;

/// How to run an index. These options are not stored in the index and may change at each opening.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Number of documents in memory before they become a sorted run. A larger number takes more
    /// memory, about 600 bytes per document, and a longer time to open, but gives fewer and larger
    /// sorted runs. Default: 100,000.
    pub recent_docs: NonZeroU32,
    /// Bytes of files kept in memory, in addition to the filters, to avoid reads during queries.
    /// Default: 64 MiB, which is enough for all files of about 270,000 documents.
    pub cache_bytes: u64,
    /// Maximum number of counts of repeated text that the policy `content` remembers. A count takes
    /// 11 to 22 bytes of memory. Default: 6 million, enough for fifty thousand pages of 500 words,
    /// in 67 MB.
    pub counted_pairs: NonZeroU32,
    /// The last result of [`Index::committed`], for callers that store it elsewhere. Only later
    /// frames may be partial after a power failure, and are then dropped. Without it, the index
    /// uses its own note.
    pub committed: Option<Committed>,
}

impl Default for Options {
    fn default() -> Self {
        let recent_docs = NonZeroU32::new(100_000).expect("not zero");
        let counted_pairs = NonZeroU32::new(MAX_COUNTED).expect("not zero");
        let cache_bytes = 64 << 20;
        Self {
            recent_docs,
            counted_pairs,
            cache_bytes,
            committed: None,
        }
    }
}

/// The result of [`Index::query_or_insert`].
#[derive(Debug, Clone, PartialEq)]
pub enum Seen {
    /// The duplicates, in the order of insertion. The document was not inserted.
    Known(Vec<Match>),
    /// There are no duplicates. The document was inserted.
    New,
}

/// An index open for writing and reading.
///
/// All methods take `&self`, so threads can share an index. Writers wait for each other. Readers
/// wait only for the instant in which a document appears.
#[derive(Debug)]
pub struct Index {
    shared: Arc<Shared>,
    merging: Option<JoinHandle<()>>,
}

/// The state that the index and its merging thread share. Locks are taken in the order of the
/// fields.
#[derive(Debug)]
struct Shared {
    folder: PathBuf,
    settings: Settings,
    /// Number of words of a sketch under the settings, stored because computing it takes time.
    n_words: usize,
    options: Options,
    /// Locked during every change.
    writer: Mutex<Writer>,
    /// The manifest in the directory. Locked while files appear and disappear.
    manifest: Mutex<Manifest>,
    /// The state that queries read. Locked for writing only while memory changes.
    state: RwLock<State>,
    /// Which part of which log is known to be on disk.
    synced: Mutex<(u64, u64)>,
    merger: Merger,
}

/// Size in bytes at which a log of the policy `content` is written out as files.
const MAX_LOG: u64 = 128 << 20;

/// Default number of counts of repeated text.
const MAX_COUNTED: u32 = 6_000_000;

/// Number of documents that [`Index::insert_all`] writes to the log at once.
const GROUP: usize = 1024;

impl Index {
    /// Creates an empty index in a directory that is empty or does not exist.
    ///
    /// # Errors
    ///
    /// If the directory is not empty or cannot be written, or if the settings are invalid.
    pub fn create(folder: &Path, settings: Settings) -> Result<Self, Error> {
        settings.check()?;
        disk::create_folder(folder).map_err(Error::io("create", folder))?;
        let lock = take_lock(folder)?;
        check_unused(folder)?;
        let mut manifest = Manifest::new(settings);
        manifest.log = manifest.take_number();
        Log::create(&Content::Log.path(folder, manifest.log), manifest.log)?;
        manifest.write(folder)?;
        sync_folder(folder)?;
        drop(lock);
        Self::open(folder)
    }

    /// Opens an index for writing.
    ///
    /// # Errors
    ///
    /// If there is no index, another writer has it open, or a file is damaged or has an unknown
    /// format.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        Self::open_with(folder, Options::default())
    }

    /// Opens an index for writing, with options.
    ///
    /// # Errors
    ///
    /// As [`Index::open`].
    pub fn open_with(folder: &Path, options: Options) -> Result<Self, Error> {
        // Checked before locking, which would create a file in a directory that is not an index.
        Manifest::read(folder)?;
        let lock = take_lock(folder)?;
        let manifest = Manifest::read(folder)?;
        remove_leftovers(folder, &manifest)?;
        let (state, log_bytes) = State::open(
            folder,
            &manifest,
            Allowance::new(options.cache_bytes),
            options.committed,
            options.counted_pairs.get(),
        )?;
        let log_path = Content::Log.path(folder, manifest.log);
        let n_dead_written = match manifest.dead {
            Some(part) => {
                dead::Dead::read(&Content::Dead.path(folder, part.number), part.check)?.len()
            }
            None => 0,
        };
        let writer = Writer {
            log: Log::open(&log_path, manifest.log, log_bytes)?,
            n_dead_written,
            keys: Vec::new(),
            n_inserted: 0,
            names: None,
            _lock: lock,
        };
        let shared = Arc::new(Shared {
            folder: folder.to_owned(),
            settings: manifest.settings,
            n_words: manifest.settings.n_words(),
            options,
            writer: Mutex::new(writer),
            synced: Mutex::new((manifest.log, 0)),
            manifest: Mutex::new(manifest),
            state: RwLock::new(state),
            merger: Merger::default(),
        });
        let merging = merger::start(Arc::clone(&shared))?;
        Ok(Self {
            shared,
            merging: Some(merging),
        })
    }

    /// Returns the settings with which the index was created.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// Adds a document under a unique name.
    ///
    /// # Errors
    ///
    /// If the name is already in the index, the sketch is of another kind, or writing fails.
    /// Nothing has changed then.
    pub fn insert(&self, name: &str, sketch: &Sketch) -> Result<(), Error> {
        self.shared.insert_group(&[(name, sketch)])
    }

    /// Adds documents in order, faster than one at a time.
    ///
    /// # Errors
    ///
    /// As [`Index::insert`]. Documents are inserted in batches of 1,024. If an error occurs, no
    /// document of its batch was inserted; earlier batches remain.
    pub fn insert_all(&self, documents: &[(&str, &Sketch)]) -> Result<(), Error> {
        let mut groups = documents.chunks(GROUP);
        groups.try_for_each(|group| self.shared.insert_group(group))
    }

    /// Returns all documents that match the rule with a sketch, in the order of insertion.
    ///
    /// # Errors
    ///
    /// If the sketch is of another kind, or a file cannot be read or is damaged.
    pub fn query(&self, sketch: &Sketch) -> Result<Vec<Match>, Error> {
        self.shared.check_sketch(sketch)?;
        self.shared.read()?.query(sketch)
    }

    /// Returns the keys under which a document with this sketch is found. Two documents that match
    /// have a key in common.
    ///
    /// # Errors
    ///
    /// If the sketch is of another kind, or the index is [broken](Error::Broken).
    pub fn keys(&self, sketch: &Sketch) -> Result<Vec<u64>, Error> {
        self.shared.check_sketch(sketch)?;
        let mut keys = Vec::new();
        self.shared.read()?.plan.sketch_keys(sketch, &mut keys);
        Ok(keys)
    }

    /// Returns the result of [`Index::query`] by comparing every document. Slow; used as an oracle.
    ///
    /// # Errors
    ///
    /// As [`Index::query`].
    pub fn scan(&self, sketch: &Sketch) -> Result<Vec<Match>, Error> {
        self.shared.check_sketch(sketch)?;
        self.shared.read()?.scan(sketch)
    }

    /// Inserts a document unless the index contains a duplicate of it. The crawler uses this
    /// method.
    ///
    /// No other writer can act between lookup and insertion, so of two duplicates that arrive at
    /// the same time, exactly one is new.
    ///
    /// # Errors
    ///
    /// As [`Index::insert`]. The name is checked only if there is no duplicate.
    pub fn query_or_insert(&self, name: &str, sketch: &Sketch) -> Result<Seen, Error> {
        self.shared.check_sketch(sketch)?;
        // Weighing takes longest, so other threads may write meanwhile. Pages of the same site that
        // they add are not counted yet.
        let weighed = self.shared.read()?.weigh(sketch);
        let mut writer = self.shared.write_log()?;
        let found = self
            .shared
            .read()?
            .query_weighed(sketch, weighed.as_ref())?;
        if found.is_empty() {
            self.shared.check_new(&mut writer, &[(name, sketch)])?;
            let prepared = Prepared::new(name, sketch, weighed);
            self.shared.insert_prepared(&mut writer, &[prepared])?;
            return Ok(Seen::New);
        }
        // A duplicate is also a page of its site.
        if let Some(weighed) = weighed {
            self.shared.count_page(&mut writer, &weighed.keys)?;
        }
        Ok(Seen::Known(found))
    }

    /// Removes a document. Returns whether it was in the index.
    ///
    /// # Errors
    ///
    /// If a file cannot be read, or writing fails. Nothing has changed then.
    pub fn remove(&self, name: &str) -> Result<bool, Error> {
        let mut writer = self.shared.write_log()?;
        let Some(row) = self.shared.read()?.row_of(name)? else {
            return Ok(false);
        };
        let mut frame = Frame::new();
        frame.remove(row);
        writer.log.append(&frame)?;
        self.shared.change()?.dead.insert(row);
        Ok(true)
    }

    /// Sets the sketch of a document, new or not. Returns whether the document was in the index.
    /// Readers see the old sketch or the new one, never both or neither.
    ///
    /// # Errors
    ///
    /// If the sketch is of another kind, a file cannot be read, or writing fails. Nothing has
    /// changed then.
    pub fn replace(&self, name: &str, sketch: &Sketch) -> Result<bool, Error> {
        self.shared.check_document(name, sketch)?;
        let mut writer = self.shared.write_log()?;
        self.shared.make_room(&mut writer)?;
        let state = self.shared.read()?;
        let former = state.row_of(name)?;
        let prepared = state.prepare(&[(name, sketch)]);
        drop(state);
        let mut frame = Frame::new();
        former.iter().for_each(|&row| frame.remove(row));
        prepared.iter().for_each(|one| one.write(&mut frame));
        writer.log.append(&frame)?;
        let mut state = self.shared.change()?;
        former.iter().for_each(|&row| state.dead.insert(row));
        let prepared = prepared.iter();
        prepared.for_each(|one| writer.insert(&mut state, one));
        Ok(former.is_some())
    }

    /// Returns the sketch of a document, if it is in the index.
    ///
    /// # Errors
    ///
    /// If a file cannot be read or is damaged.
    pub fn sketch(&self, name: &str) -> Result<Option<Sketch>, Error> {
        let state = self.shared.read()?;
        let row = state.row_of(name)?;
        row.map(|row| state.sketch(row)).transpose()
    }

    /// Compares two sketches of this index's kind as [`Index::query`] does.
    ///
    /// # Errors
    ///
    /// If a sketch is of another kind.
    pub fn compare(
        &self,
        a: &Sketch,
        b: &Sketch,
    ) -> Result<(Option<arose::rule::Rule>, f64), Error> {
        self.shared
            .check_sketch(a)
            .and(self.shared.check_sketch(b))?;
        let state = self.shared.read()?;
        let [a, b] = [a, b].map(|sketch| match state.weigh(sketch) {
            Some(weighed) => Cow::Owned(weighed.sketch),
            None => Cow::Borrowed(sketch),
        });
        let judged = state.plan.judge(&a, &b);
        Ok((judged.rule, judged.similarity))
    }

    /// Waits until every acknowledged change is on disk and survives a power failure. Concurrent
    /// calls share one wait.
    ///
    /// # Errors
    ///
    /// If the disk reports an error.
    pub fn commit(&self) -> Result<(), Error> {
        let (file, path, number, n_bytes) = {
            let writer = self.shared.write_log()?;
            let log = &writer.log;
            (
                Arc::clone(&log.file),
                log.path.clone(),
                log.number,
                log.n_bytes,
            )
        };
        let mut synced = lock(&self.shared.synced)?;
        if *synced < (number, n_bytes) {
            file.sync().map_err(Error::io("write", &path))?;
            *synced = (number, n_bytes);
            let log = number;
            Committed { log, n_bytes }.write(&self.shared.folder)?;
        }
        Ok(())
    }

    /// Returns the part of the log that the last [`Index::commit`] covered.
    ///
    /// # Errors
    ///
    /// If the index is [broken](Error::Broken).
    pub fn committed(&self) -> Result<Committed, Error> {
        let (log, n_bytes) = *lock(&self.shared.synced)?;
        Ok(Committed { log, n_bytes })
    }

    /// Returns the row that the next document will get.
    ///
    /// # Errors
    ///
    /// If the index is [broken](Error::Broken).
    pub fn next_row(&self) -> Result<u32, Error> {
        Ok(self.shared.read()?.recent.next_row())
    }

    /// Returns the names of the documents from a row on, in the order of insertion.
    ///
    /// # Errors
    ///
    /// If a file cannot be read or is damaged.
    pub fn names_from(&self, row: u32) -> Result<Vec<String>, Error> {
        self.names_in(row..u32::MAX)
    }

    /// Returns the names of the documents in a range of rows, in the order of insertion.
    ///
    /// # Errors
    ///
    /// If a file cannot be read or is damaged.
    pub fn names_in(&self, rows: Range<u32>) -> Result<Vec<String>, Error> {
        self.shared.read()?.names_in(rows)
    }

    /// Returns the number of documents, and the disk and memory use.
    ///
    /// # Errors
    ///
    /// If the index is [broken](Error::Broken).
    pub fn status(&self) -> Result<IndexStatus, Error> {
        Ok(self.shared.read()?.status())
    }

    /// Reclaims the space of removed documents and merges all sorted runs into one. Readers
    /// continue; writers wait.
    ///
    /// # Errors
    ///
    /// If a file cannot be read or written. The index is then unchanged.
    pub fn compact(&self) -> Result<(), Error> {
        let mut writer = self.shared.write_log()?;
        self.shared.flush(&mut writer)?;
        compact::compact(&self.shared, &mut writer)
    }

    /// Reads every file and checks that records, entries and checksums agree.
    ///
    /// # Errors
    ///
    /// The first problem found.
    pub fn verify(&self) -> Result<Verified, Error> {
        // Prevents files from being removed during the check.
        let _manifest = self.shared.manifest()?;
        verify(&self.shared.folder)
    }

    /// Waits until no merge is due. Queries are then fastest.
    ///
    /// # Errors
    ///
    /// If merging failed. Merging is tried again when the next sorted run is written.
    pub fn wait_for_merging(&self) -> Result<(), Error> {
        self.shared.merger.wait_until_idle()
    }
}

impl Drop for Index {
    fn drop(&mut self) {
        // When a process closes the index normally, everything in it counts as committed. If the
        // disk reports an error, data missing after a power failure is detected when the index is
        // opened.
        let _ = self.commit();
        self.shared.merger.stop();
        if let Some(merging) = self.merging.take() {
            // A panic there has been reported on standard error and changed nothing here.
            let _ = merging.join();
        }
    }
}

impl Shared {
    fn insert_group(&self, documents: &[(&str, &Sketch)]) -> Result<(), Error> {
        let mut writer = self.write_log()?;
        self.check_new(&mut writer, documents)?;
        let prepared = self.read()?.prepare(documents);
        self.insert_prepared(&mut writer, &prepared)
    }

    /// Makes room for these documents, and checks that they can be inserted.
    fn check_new(&self, writer: &mut Writer, documents: &[(&str, &Sketch)]) -> Result<(), Error> {
        self.make_room(writer)?;
        for &(name, sketch) in documents {
            self.check_document(name, sketch)?;
        }
        let state = self.read()?;
        writer.screen_names(&state, documents.len());
        match state.find_taken_name(documents, writer.names.as_ref())? {
            Some(name) => Err(Error::Exists { name }),
            None => Ok(()),
        }
    }

    fn insert_prepared(&self, writer: &mut Writer, prepared: &[Prepared<'_>]) -> Result<(), Error> {
        let mut frame = Frame::new();
        prepared.iter().for_each(|one| one.write(&mut frame));
        writer.log.append(&frame)?;
        for one in prepared {
            writer.insert(&mut *self.change()?, one);
        }
        Ok(())
    }

    /// Counts pages of sites, given their keys with that of the page last, unless they were counted
    /// before.
    fn count_pages(&self, pages: &[Vec<u64>]) -> Result<(), Error> {
        let mut writer = self.write_log()?;
        for keys in pages {
            let state = self.read()?;
            let is_new = keys.last().is_some_and(|&page| state.counts.get(page) == 0);
            drop(state);
            if is_new {
                self.count_page(&mut writer, keys)?;
            }
        }
        Ok(())
    }

    /// Counts a page of a site without inserting it.
    fn count_page(&self, writer: &mut Writer, keys: &[u64]) -> Result<(), Error> {
        if keys.is_empty() {
            return Ok(());
        }
        self.make_room(writer)?;
        let mut frame = Frame::new();
        frame.count(keys);
        writer.log.append(&frame)?;
        self.change()?.count(keys);
        Ok(())
    }

    /// Turns the recent documents into a sorted run if there are too many.
    fn make_room(&self, writer: &mut Writer) -> Result<(), Error> {
        let state = self.read()?;
        let recent = &state.recent;
        let mut most = self.options.recent_docs.get() as usize;
        // Under this policy a document takes about three times as much. Pages that are counted but
        // not inserted are in the log alone.
        if self.settings.is_content() {
            most = most.div_ceil(3);
        }
        let is_long = self.settings.is_content() && writer.log.n_bytes > MAX_LOG;
        let is_full = recent.n_rows() >= most || is_long;
        let has_room = recent.block.has_room_for(GROUP);
        let has_rows = recent.next_row() < u32::MAX - GROUP as u32;
        drop(state);
        if !has_rows {
            return Err(Error::Full);
        }
        if is_full || !has_room {
            self.flush(writer)?;
            self.merger.wake();
            self.merger.wait_for_room(|| Ok(self.read()?.runs.len()))?;
        }
        Ok(())
    }

    /// Writes the recent documents as records and a sorted run, and starts a new log.
    fn flush(&self, writer: &mut Writer) -> Result<(), Error> {
        let mut manifest = self.manifest()?;
        let mut next = manifest.clone();
        let mut fresh = Fresh::new(&self.folder);
        let state = self.read()?;
        let part = match state.recent.n_rows() {
            0 => None,
            _ => Some(
                state
                    .recent
                    .write(&mut next, &mut fresh, &state.allowance)?,
            ),
        };
        let n_dead = state.dead.len();
        let old_dead = next.dead;
        if n_dead != writer.n_dead_written {
            let number = next.take_number();
            let path = fresh.path(Content::Dead, number);
            let check = state.dead.write(&path)?;
            next.dead = Some(Part { number, check });
        }
        let old_counts = next.counts;
        if self.settings.is_content() && state.counts.is_changed() {
            let number = next.take_number();
            let path = fresh.path(Content::SiteCounts, number);
            let check = state.counts.write(&path)?;
            next.counts = Some(Part { number, check });
        }
        if next == *manifest {
            return Ok(());
        }
        let next_recent = state.recent.next();
        drop(state);
        next.log = next.take_number();
        let log = Log::create(&fresh.path(Content::Log, next.log), next.log)?;
        next.write(&self.folder)?;
        fresh.keep(&next);
        let mut state = self.change()?;
        if let Some((records, run)) = part {
            state.records.push(Arc::new(records));
            state.runs.push(Arc::new(run));
            state.recent = next_recent;
        }
        state.counts.set_written();
        drop(state);
        let old_log = std::mem::replace(&mut writer.log, log);
        writer.n_dead_written = n_dead;
        *manifest = next;
        sync_or_refuse(&self.folder, writer)?;
        if let Some(part) = old_dead.filter(|part| manifest.dead != Some(*part)) {
            discard(&Content::Dead.path(&self.folder, part.number));
        }
        if let Some(part) = old_counts.filter(|part| manifest.counts != Some(*part)) {
            discard(&Content::SiteCounts.path(&self.folder, part.number));
        }
        discard(&old_log.path);
        Ok(())
    }

    fn check_document(&self, name: &str, sketch: &Sketch) -> Result<(), Error> {
        if name.len() > MAX_NAME {
            let expected = "at most 65535 bytes";
            return Err(Error::parameter("length of a name", name.len(), expected));
        }
        self.check_sketch(sketch)
    }

    fn check_sketch(&self, sketch: &Sketch) -> Result<(), Error> {
        check_sketch(sketch, self.n_words, &self.settings)
    }

    fn write_log(&self) -> Result<MutexGuard<'_, Writer>, Error> {
        lock(&self.writer)
    }

    fn manifest(&self) -> Result<MutexGuard<'_, Manifest>, Error> {
        lock(&self.manifest)
    }

    fn read(&self) -> Result<RwLockReadGuard<'_, State>, Error> {
        self.state.read().map_err(|_| Error::Broken)
    }

    fn change(&self) -> Result<RwLockWriteGuard<'_, State>, Error> {
        self.state.write().map_err(|_| Error::Broken)
    }
}

/// Waits until a new manifest is on disk. If this fails, nothing further is acknowledged: after a
/// power failure, the directory may have the previous manifest, which does not list the new log.
fn sync_or_refuse(folder: &Path, writer: &mut Writer) -> Result<(), Error> {
    sync_folder(folder).inspect_err(|_| writer.log.refuse())
}

fn lock<T>(mutex: &Mutex<T>) -> Result<MutexGuard<'_, T>, Error> {
    mutex.lock().map_err(|_| Error::Broken)
}
