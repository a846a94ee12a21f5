//! Builds the index and keeps it up to date.
//!
//! *Question.* A run was repeated with more input, or a crawl has continued. How can the index be
//! updated without rebuilding it, and without readers ever seeing a partial state?
//!
//! *Idea.* An index is a set of rows, each identified by a 64-bit hash of all its data
//! ([`crate::rows`]). Missing rows are added, obsolete rows are removed, and all others are left
//! unchanged. A source file is not opened if it is unchanged and all its documents are in the
//! index. One commit at the end replaces the old set of rows by the new one, so readers see either
//! the old or the new set. A first index, which has no readers yet, is committed in parts, so that
//! an interrupted update resumes.
//!
//! *Missing texts.* A document whose text cannot be read has a row with another hash, which records
//! this. It is counted in every update, and replaced as soon as the text can be read.
//!
//! *Cost.* Reading changed sources, indexing new rows, and 56 bytes of memory per document, more
//! for archives ([`crate::pages`]), plus [`Config::memory`] for the index itself. *Error.* Two rows
//! share a hash with probability 2^-63, and one of them is then missing.

use std::collections::HashSet;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arose_corpus::{Document, Item, read};
use arose_dedup::results::Detail;
use arose_dedup::results::documents;
use serde::{Deserialize, Serialize};
use tantivy::{Index, IndexSettings, IndexWriter, Searcher, Term};

use crate::Error;
use crate::current::{SUPERSEDED, page_of};
use crate::directory::{self, is_read_only, open_read_only};
use crate::pages::{Page, PageText, Pages};
use crate::rows::{
    Entry, has_text, is_of_first, is_superseded, key_in_run, page_has_text, row_in_run,
};
use crate::schema::{CLUSTER, DOC, FETCHED, Fields, KEY, PAGE, ROW, VERSION, register};
use crate::search_dir::{Kind, SearchDir, Stamp, State};
use crate::texts::{Runs, Texts};

/// Bytes of text after which a first index is committed.
const COMMIT_BYTES: u64 = 2 << 30;

/// Minimum number of bytes of texts that are compressed together. Reading one document decompresses
/// them all, so this is less than the size of most documents.
const STORE_BLOCK: usize = 4 << 10;

/// How to build an index.
#[derive(Debug, Clone)]
pub struct Config {
    /// Number of indexing threads; does not affect results. Default: the number of cores.
    pub threads: NonZeroUsize,
    /// Memory for the index while it is built, in bytes. Default 512 MiB.
    pub memory: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            threads: std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            memory: 512 << 20,
        }
    }
}

/// Progress of an update; filled by [`update`].
#[derive(Debug, Default)]
pub struct Progress {
    /// Number of documents processed.
    pub n_documents: AtomicU64,
    /// Bytes of text indexed.
    pub text_bytes: AtomicU64,
    /// Set to true to stop.
    pub stop: AtomicBool,
}

/// The result of an update.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Updated {
    /// Number of documents in the index.
    pub n_documents: u64,
    /// Number of documents that were added or have changed.
    pub n_added: u64,
    /// Number of documents that were removed or have changed.
    pub n_removed: u64,
    /// Number of documents whose text could not be read, and of archived pages without a body. They
    /// are found by URL only, and are tried again when a source has changed.
    pub n_without_text: u64,
    /// A source of such a document, for a message.
    pub without_text: Option<PathBuf>,
    /// Sources that this update could not read completely, with the reason.
    pub incomplete: Vec<String>,
}

/// The metadata of a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Payload {
    pub(crate) is_complete: bool,
    pub(crate) state: State,
    n_without_text: u64,
    without_text: Option<PathBuf>,
}

impl Payload {
    /// The metadata of the last commit of an index.
    pub(crate) fn of(index: &Index) -> Option<Self> {
        let payload = index.load_metas().ok()?.payload?;
        serde_json::from_str(&payload).ok()
    }

    /// Whether an index is complete and was made from these files.
    fn is_of(&self, state: &State) -> bool {
        self.is_complete && self.state == *state
    }
}

/// Updates the index of a directory.
///
/// # Errors
///
/// If the directory cannot be read, the index cannot be written, or [`Progress::stop`] was set. The
/// previous index is then still there.
pub fn update(folder: &SearchDir, config: &Config, progress: &Progress) -> Result<Updated, Error> {
    let path = folder.index_path();
    let state = folder.state()?;
    let Some(index) = open_or_create(folder, &state)? else {
        return Err(Error::ReadOnly {
            path: folder.path.clone(),
        });
    };
    let before = Payload::of(&index);
    if let Some(payload) = &before
        && payload.is_of(&state)
    {
        return Ok(Updated {
            n_documents: n_documents(&index, &path)?,
            n_without_text: payload.n_without_text,
            without_text: payload.without_text.clone(),
            ..Updated::default()
        });
    }
    let in_index = Error::index(&path);
    let threads = config.threads.get().min(8);
    let writer = index.writer_with_num_threads(threads, config.memory.max(threads * (16 << 20)));
    let mut update = Update {
        folder,
        path: &path,
        fields: Fields::new(),
        rows: indexed_rows(&index, &path)?,
        is_first: before.as_ref().is_none_or(|payload| !payload.is_complete),
        before: before.map(|payload| payload.state).unwrap_or_default(),
        state: &state,
        searcher: index.reader().map_err(&in_index)?.searcher(),
        writer: writer.map_err(&in_index)?,
        uncommitted_bytes: 0,
        updated: Updated::default(),
        progress,
    };
    let wanted = match &folder.kind {
        Kind::Run(_) => update.take_run()?,
        Kind::Archives(_) => update.take_archives()?,
    };
    update.remove_others(wanted);
    update.commit(Completeness::All)?;
    let mut updated = update.updated;
    let merged = update.writer.wait_merging_threads();
    merged.map_err(&in_index)?;
    updated.n_documents = n_documents(&index, &path)?;
    Ok(updated)
}

/// Removes the index of a directory.
///
/// # Errors
///
/// If its files cannot be removed.
pub fn remove(folder: &SearchDir) -> Result<(), Error> {
    let path = folder.index_path();
    match fs::remove_dir_all(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) if is_read_only(error.kind()) => Err(Error::ReadOnly {
            path: folder.path.clone(),
        }),
        Err(error) => Err(Error::io("remove", &path)(error)),
        Ok(()) => Ok(()),
    }
}

/// Opens the index at `path`, which may be in a read-only directory.
pub(crate) fn open(path: &Path) -> Result<Index, Error> {
    let index = open_read_only(path).map_err(Error::index(path))?;
    checked(index, path)
}

fn checked(index: Index, path: &Path) -> Result<Index, Error> {
    if index.schema() != Fields::schema() {
        return Err(Error::Damaged {
            path: path.to_owned(),
            detail: "other fields".to_owned(),
        });
    }
    register(&index);
    Ok(index)
}

/// The index of a directory, to be written if it does not match `state`; none if that is not
/// allowed.
fn open_or_create(folder: &SearchDir, state: &State) -> Result<Option<Index>, Error> {
    let path = folder.index_path();
    if path.join("meta.json").exists() {
        let index = open(&path)?;
        if Payload::of(&index).is_some_and(|payload| payload.is_of(state)) {
            return Ok(Some(index));
        }
        if !can_write(&path)? {
            return Ok(None);
        }
        return create(&path).map(Some);
    }
    match fs::create_dir_all(&path) {
        Err(error) if is_read_only(error.kind()) => return Ok(None),
        created => created.map_err(Error::io("create", &path))?,
    }
    if !can_write(&path)? {
        return Ok(None);
    }
    create(&path).map(Some)
}

/// Opens an index for writing, or creates it.
fn create(path: &Path) -> Result<Index, Error> {
    let settings = IndexSettings {
        docstore_blocksize: STORE_BLOCK,
        ..IndexSettings::default()
    };
    let builder = Index::builder().schema(Fields::schema()).settings(settings);
    let index = directory::open_or_create(path, builder).map_err(Error::index(path))?;
    checked(index, path)
}

/// Whether files can be created in a directory.
fn can_write(path: &Path) -> Result<bool, Error> {
    let probe = path.join(".writable");
    match fs::write(&probe, "") {
        Ok(()) => {
            // A probe file that remains is harmless.
            drop(fs::remove_file(&probe));
            Ok(true)
        }
        Err(error) if is_read_only(error.kind()) => Ok(false),
        Err(error) => Err(Error::io("write to", path)(error)),
    }
}

fn n_documents(index: &Index, path: &Path) -> Result<u64, Error> {
    let reader = index.reader().map_err(Error::index(path))?;
    Ok(reader.searcher().num_docs())
}

/// A row of the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct IndexedRow {
    pub(crate) key: u64,
    pub(crate) row: u64,
    pub(crate) doc: u64,
    pub(crate) cluster: u64,
    pub(crate) page: u64,
    pub(crate) version: u64,
    pub(crate) time: i64,
}

/// All rows in the index, in the order of their keys.
fn indexed_rows(index: &Index, path: &Path) -> Result<Vec<IndexedRow>, Error> {
    let in_index = Error::index(path);
    let searcher = index.reader().map_err(&in_index)?.searcher();
    let mut all = Vec::new();
    for segment in searcher.segment_readers() {
        let column = |name: &str| {
            let column = segment.fast_fields().column_first_or_default::<u64>(name);
            column.map_err(&in_index)
        };
        let (keys, rows) = (column(KEY)?, column(ROW)?);
        let (docs, clusters) = (column(DOC)?, column(CLUSTER)?);
        let (pages, versions) = (column(PAGE)?, column(VERSION)?);
        let times = segment.fast_fields().i64(FETCHED).map_err(&in_index)?;
        all.extend(segment.doc_ids_alive().map(|doc| IndexedRow {
            key: keys.get_val(doc),
            row: rows.get_val(doc),
            doc: docs.get_val(doc),
            cluster: clusters.get_val(doc),
            page: pages.get_val(doc),
            version: versions.get_val(doc),
            time: times.first(doc).unwrap_or_default(),
        }));
    }
    all.sort_unstable();
    Ok(all)
}

/// How complete an index is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Completeness {
    Some,
    All,
}

/// An update in progress.
struct Update<'a> {
    folder: &'a SearchDir,
    path: &'a Path,
    fields: Fields,
    /// The rows of the old index, in the order of their keys.
    rows: Vec<IndexedRow>,
    /// The files that the old index was made from.
    before: State,
    /// The files that the new index is made from.
    state: &'a State,
    /// Whether the index has no readers yet.
    is_first: bool,
    /// A searcher of the old index.
    searcher: Searcher,
    writer: IndexWriter,
    uncommitted_bytes: u64,
    updated: Updated,
    progress: &'a Progress,
}

impl Update<'_> {
    /// The row in the index with this key.
    fn row_of(&self, key: u64) -> Option<u64> {
        let at = self.rows.partition_point(|row| row.key < key);
        let row = self.rows.get(at).filter(|row| row.key == key)?;
        Some(row.row)
    }

    /// Adds the new rows of a run and returns all rows that belong to it.
    fn take_run(&mut self) -> Result<Vec<u64>, Error> {
        let path = self.folder.documents();
        let old: HashSet<&Stamp> = self.before.0.iter().collect();
        let stamps = self.state.0.iter().filter(|stamp| old.contains(stamp));
        let unchanged: HashSet<&Path> = stamps.map(Stamp::path).collect();
        let mut runs = Runs::default();
        documents::for_each(&path, |doc, detail| {
            let (run, is_new) = runs.follow(&detail.source, detail.position);
            if is_new {
                let file = self.folder.source(&detail.source);
                runs.0[run].is_wanted = !unchanged.contains(&*file);
                runs.0[run].file = file;
            }
            let row = self.row_of(key_in_run(doc, &detail));
            runs.0[run].is_wanted |= !row.is_some_and(has_text);
            Ok::<_, Error>(())
        })?;
        let mut texts = Texts::start(self.folder, &runs)?;
        let (mut at, mut wanted) = (Runs::default(), Vec::new());
        documents::for_each(&path, |doc, detail| {
            self.watch()?;
            let (run, _) = at.follow(&detail.source, detail.position);
            let key = key_in_run(doc, &detail);
            let row = match runs.0[run].is_wanted {
                // All rows of the run are already in the index, as the first pass has found.
                false => self.row_of(key).unwrap_or_default(),
                true => {
                    let document = texts.find(run, detail.position.unwrap_or_default());
                    if document.is_none() {
                        self.updated.n_without_text += 1;
                        let without = &mut self.updated.without_text;
                        without.get_or_insert_with(|| runs.0[run].file.clone());
                    }
                    self.take_row(key, (doc, &detail), document.as_deref())?
                }
            };
            wanted.push(row);
            Ok::<_, Error>(())
        })?;
        self.updated.incomplete.extend(texts.incomplete());
        Ok(wanted)
    }

    /// Adds the row of a document of a run if it is missing, and returns its hash.
    fn take_row(
        &mut self,
        key: u64,
        (doc, detail): (u64, &Detail),
        document: Option<&Document>,
    ) -> Result<u64, Error> {
        let row = row_in_run(key, document);
        if self.row_of(key) != Some(row) {
            let entry = Entry {
                row,
                key,
                doc,
                cluster: detail.cluster,
                group: detail.group,
                page: match is_superseded(detail) {
                    true => SUPERSEDED,
                    false => page_of(detail.url.as_deref()),
                },
                version: key,
                fetched: document.and_then(|document| document.fetched),
                is_kept: detail.kept,
                is_exact: detail.rule.as_deref() == Some("exact"),
                id: &detail.id,
                url: detail.url.as_deref(),
                source: &detail.source,
                position: detail.position,
                document,
                original: None,
            };
            self.add(&entry)?;
        }
        Ok(row)
    }

    /// Adds the new rows of archives and returns all rows that belong to them. Pages that the
    /// crawler recorded as duplicates are in the cluster of their original.
    fn take_archives(&mut self) -> Result<Vec<u64>, Error> {
        let n_known = self.n_known_archives();
        let known = self.rows.iter().copied();
        let known = known.filter(|row| is_of_first(row.row, n_known));
        let known: Vec<IndexedRow> = known.collect();
        let mut wanted: Vec<u64> = known.iter().map(|row| row.row).collect();
        let mut pages = Pages::new(self.folder, self.state, &known);
        drop(known);
        let indexed_rows: HashSet<u64> = self.rows.iter().map(|row| row.row).collect();
        let state = self.state;
        for (number, stamp) in state.0.iter().enumerate().skip(n_known) {
            let mut items = read(&[stamp.path().to_owned()], self.folder.reading())?;
            for item in items.by_ref() {
                self.watch()?;
                let Item::Document(document) = item else {
                    continue;
                };
                let Some(page) = pages.take(number, &document) else {
                    continue;
                };
                if !indexed_rows.contains(&page.row) {
                    self.add_page(&page, &document, &pages)?;
                }
                wanted.push(page.row);
            }
            let lost = items.counts().losses.files.iter();
            self.updated
                .incomplete
                .extend(lost.map(ToString::to_string));
        }
        let mut without = wanted.iter().filter(|row| !page_has_text(**row)).peekable();
        self.updated.without_text = without.peek().map(|_| self.folder.path.clone());
        self.updated.n_without_text = without.count() as u64;
        Ok(wanted)
    }

    /// The number of leading archives that are unchanged since all archives were read, so that
    /// their documents keep their numbers.
    fn n_known_archives(&self) -> usize {
        let (old, new) = (&self.before.0, &self.state.0);
        let mut both = old.iter().zip(new);
        let is_grown = old.len() <= new.len() && both.all(|(old, new)| old.path() == new.path());
        match !self.is_first && is_grown {
            true => {
                let both = old.iter().zip(new);
                both.take_while(|(old, new)| old == new).count()
            }
            false => 0,
        }
    }

    fn add_page(
        &mut self,
        page: &Page,
        document: &Document,
        pages: &Pages<'_>,
    ) -> Result<(), Error> {
        let source = document.source.strip_prefix(&self.folder.base);
        let source = source.unwrap_or(&document.source).to_string_lossy();
        let shared = match page.text {
            PageText::Original(stored) => pages.read(stored, &self.searcher, &self.fields)?,
            PageText::Own | PageText::Unknown => None,
        };
        // The time is that of the visit, whatever the source of the text.
        let fetched = document.fetched;
        let shared = shared.map(|shared| Document { fetched, ..shared });
        self.add(&Entry {
            row: page.row,
            key: page.key,
            doc: page.doc,
            cluster: page.cluster,
            // A crawler does not record versions.
            group: page.cluster,
            page: page_of(document.url.as_deref()),
            version: page.version,
            fetched,
            is_kept: page.doc == page.cluster,
            is_exact: page.is_exact,
            id: &document.name(),
            url: document.url.as_deref(),
            source: &source,
            position: Some(document.position),
            document: match page.text {
                PageText::Own => Some(document),
                _ => shared.as_ref(),
            },
            original: match page.text {
                PageText::Original(stored) => Some(stored.doc),
                _ => None,
            },
        })
    }

    fn add(&mut self, entry: &Entry<'_>) -> Result<(), Error> {
        let added = self.writer.add_document(entry.to_document(&self.fields));
        added.map_err(Error::index(self.path))?;
        let n_bytes = entry
            .document
            .map_or(0, |document| document.text.len() as u64);
        self.updated.n_added += 1;
        self.uncommitted_bytes += n_bytes;
        self.progress
            .text_bytes
            .fetch_add(n_bytes, Ordering::Relaxed);
        if self.is_first && self.uncommitted_bytes > COMMIT_BYTES {
            self.uncommitted_bytes = 0;
            return self.commit(Completeness::Some);
        }
        Ok(())
    }

    fn watch(&self) -> Result<(), Error> {
        self.progress.n_documents.fetch_add(1, Ordering::Relaxed);
        match self.progress.stop.load(Ordering::Relaxed) {
            true => Err(Error::Stopped),
            false => Ok(()),
        }
    }

    /// Removes all rows except these.
    fn remove_others(&mut self, mut wanted: Vec<u64>) {
        wanted.sort_unstable();
        for row in &self.rows {
            if wanted.binary_search(&row.row).is_err() {
                self.writer
                    .delete_term(Term::from_field_u64(self.fields.row, row.row));
                self.updated.n_removed += 1;
            }
        }
    }

    fn commit(&mut self, part: Completeness) -> Result<(), Error> {
        let payload = Payload {
            is_complete: part == Completeness::All,
            state: self.state.clone(),
            n_without_text: self.updated.n_without_text,
            without_text: self.updated.without_text.clone(),
        };
        let in_index = Error::index(self.path);
        let payload = serde_json::to_string(&payload).expect("a payload is plain data");
        let mut prepared = self.writer.prepare_commit().map_err(&in_index)?;
        prepared.set_payload(&payload);
        prepared.commit().map_err(&in_index)?;
        Ok(())
    }
}
