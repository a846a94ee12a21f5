//! Makes the index and keeps it up to date.
//!
//! *Question.* A run was repeated with more input, or a crawl has gone on. How to bring the index
//! up to date without making it anew, and without anyone ever seeing half of it?
//!
//! *Idea.* An index is a set of rows: a document with its place, content, cluster and fate. Give
//! each a 64-bit name made of all that. Rows that should be there and are not are added, rows that
//! are there and should not be are removed, and all others are left alone. Source files in which
//! nothing is new are not even opened. One commit at the end replaces the old set of rows by the
//! new one: readers see the one or the other. A first index, which nobody reads yet, is committed
//! in parts, so that making it goes on where it was stopped.
//!
//! *Cost.* Reading the sources that have something new; indexing what is new; 8 bytes of memory per
//! document, and [`Config::memory`] for the index itself. *Error.* Two rows share a name with
//! probability 2^-64, and one of them is then missing.

use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arose::token::fingerprint;
use arose_corpus::{Document, Item, read};
use arose_dedup::results::Detail;
use arose_dedup::results::documents::{self, host_of};
use serde::{Deserialize, Serialize};
use tantivy::{Index, IndexSettings, IndexWriter, TantivyDocument, Term};

use crate::Error;
use crate::columns::Group;
use crate::folder::{Folder, Kind, Stamp};
use crate::schema::{Fields, ROW, register};
use crate::texts::{Runs, Texts};

/// Text after which a first index is committed in between.
const COMMIT_BYTES: u64 = 2 << 30;

/// Bytes of texts that are packed together, at least. Whoever wants one document unpacks them all,
/// so this is less than the size of most.
const STORE_BLOCK: usize = 4 << 10;

/// How to make an index.
#[derive(Debug, Clone)]
pub struct Config {
    /// Threads that index; the answers are the same for any number. Default: the cores.
    pub threads: NonZeroUsize,
    /// Memory for the index while it is made, in bytes. Default 512 MiB.
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

/// How far the work is; filled by [`update`], read by whoever watches it.
#[derive(Debug, Default)]
pub struct Progress {
    /// Documents looked at.
    pub n_documents: AtomicU64,
    /// Bytes of text indexed.
    pub text_bytes: AtomicU64,
    /// Set it to stop.
    pub stop: AtomicBool,
}

/// What an update did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Updated {
    /// Documents in the index.
    pub n_documents: u64,
    /// Documents that were added or have changed.
    pub n_added: u64,
    /// Documents that were removed or have changed.
    pub n_removed: u64,
    /// Documents of a run whose source has gone or changed: they are found by address only.
    pub n_without_text: u64,
    /// Archives read now that could not be read completely, with the reason.
    pub incomplete: Vec<String>,
}

/// What a commit says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Payload {
    pub(crate) is_complete: bool,
    stamps: Vec<Stamp>,
    n_without_text: u64,
}

impl Payload {
    /// What the last commit of an index says.
    pub(crate) fn of(index: &Index) -> Option<Self> {
        let payload = index.load_metas().ok()?.payload?;
        serde_json::from_str(&payload).ok()
    }
}

/// Brings the index of a folder up to date.
///
/// # Errors
///
/// If the folder cannot be read, the index cannot be written, or [`Progress::stop`] was set. The
/// index that was there before is then there still.
pub fn update(folder: &Folder, config: &Config, progress: &Progress) -> Result<Updated, Error> {
    let path = folder.index_path();
    let index = open_or_create(&path)?;
    let stamps = folder.stamps()?;
    let before = Payload::of(&index);
    if let Some(payload) = &before
        && payload.is_complete
        && payload.stamps == stamps
    {
        return Ok(Updated {
            n_documents: n_documents(&index, &path)?,
            n_without_text: payload.n_without_text,
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
        held: held_rows(&index, &path)?,
        is_first: before.as_ref().is_none_or(|payload| !payload.is_complete),
        before,
        writer: writer.map_err(&in_index)?,
        uncommitted_bytes: 0,
        updated: Updated::default(),
        progress,
    };
    match &folder.kind {
        Kind::Run(_) => update.take_run()?,
        Kind::Archives(_) => update.take_archives(&stamps)?,
    }
    update.finish(stamps)?;
    let mut updated = update.updated;
    let merged = update.writer.wait_merging_threads();
    merged.map_err(&in_index)?;
    updated.n_documents = n_documents(&index, &path)?;
    Ok(updated)
}

/// Removes the index of a folder.
///
/// # Errors
///
/// If its files cannot be removed.
pub fn remove(folder: &Folder) -> Result<(), Error> {
    let path = folder.index_path();
    match fs::remove_dir_all(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io("remove", &path)(error))
        }
        _ => Ok(()),
    }
}

/// Opens the index at `path`.
pub(crate) fn open(path: &Path) -> Result<Index, Error> {
    let index = Index::open_in_dir(path).map_err(Error::index(path))?;
    if index.schema() != Fields::schema() {
        return Err(Error::Damaged {
            path: path.to_owned(),
            detail: "it has other fields".to_owned(),
        });
    }
    register(&index);
    Ok(index)
}

fn open_or_create(path: &Path) -> Result<Index, Error> {
    if path.join("meta.json").exists() {
        return open(path);
    }
    fs::create_dir_all(path).map_err(Error::io("create", path))?;
    let settings = IndexSettings {
        docstore_blocksize: STORE_BLOCK,
        ..IndexSettings::default()
    };
    let builder = Index::builder().schema(Fields::schema()).settings(settings);
    let index = builder.create_in_dir(path).map_err(Error::index(path))?;
    register(&index);
    Ok(index)
}

fn n_documents(index: &Index, path: &Path) -> Result<u64, Error> {
    let reader = index.reader().map_err(Error::index(path))?;
    Ok(reader.searcher().num_docs())
}

/// The names of all rows in the index, in order.
fn held_rows(index: &Index, path: &Path) -> Result<Vec<u64>, Error> {
    let in_index = Error::index(path);
    let searcher = index.reader().map_err(&in_index)?.searcher();
    let mut rows = Vec::new();
    for segment in searcher.segment_readers() {
        let column = segment.fast_fields().column_first_or_default::<u64>(ROW);
        let column = column.map_err(&in_index)?;
        rows.extend(segment.doc_ids_alive().map(|doc| column.get_val(doc)));
    }
    rows.sort_unstable();
    Ok(rows)
}

/// An update under way.
struct Update<'a> {
    folder: &'a Folder,
    path: &'a Path,
    fields: Fields,
    /// Rows that were in the index, in order.
    held: Vec<u64>,
    before: Option<Payload>,
    /// Whether nobody reads the index yet.
    is_first: bool,
    writer: IndexWriter,
    uncommitted_bytes: u64,
    updated: Updated,
    progress: &'a Progress,
}

/// What a run says about a document, besides its text.
struct Row {
    doc: u64,
    detail: Detail,
    group: Group,
}

impl Update<'_> {
    fn is_held(&self, row: u64) -> bool {
        self.held.binary_search(&row).is_ok()
    }

    /// Adds what is new in a run and removes what is no longer in it.
    fn take_run(&mut self) -> Result<(), Error> {
        let path = self.folder.documents();
        let is_alone = alone(&path)?;
        let group_of = |detail: &Detail| match is_alone.get(detail.cluster as usize) {
            Some(true) => Group::alone(),
            _ if detail.kept => Group::kept(detail.cluster),
            _ => Group::dropped(detail.cluster),
        };
        let (mut wanted, mut runs) = (Vec::new(), Runs::default());
        documents::for_each(&path, |doc, detail| {
            let name = name(doc, &detail, group_of(&detail));
            wanted.push(name);
            let run = runs.follow(&detail.source, detail.position);
            runs.0[run].is_wanted |= !self.is_held(name);
            Ok::<_, Error>(())
        })?;
        self.remove_others(wanted);
        let mut texts = Texts::start(self.folder, &runs)?;
        let mut at = Runs::default();
        documents::for_each(&path, |doc, detail| {
            let run = at.follow(&detail.source, detail.position);
            let position = detail.position.unwrap_or_default();
            let document = texts.find(run, position);
            let group = group_of(&detail);
            self.take_row(Row { doc, detail, group }, document)
        })
    }

    fn take_row(&mut self, row: Row, document: Option<Box<Document>>) -> Result<(), Error> {
        self.watch()?;
        let name = name(row.doc, &row.detail, row.group);
        if self.is_held(name) {
            return Ok(());
        }
        self.updated.n_without_text += u64::from(document.is_none());
        let mut entry = TantivyDocument::default();
        let fields = &self.fields;
        entry.add_u64(fields.row, name);
        entry.add_u64(fields.doc, row.doc);
        entry.add_u64(fields.cluster, row.detail.cluster);
        entry.add_u64(fields.group, row.group.as_u64());
        entry.add_text(fields.id, &row.detail.id);
        let url = row.detail.url.as_deref();
        describe(&mut entry, fields, url, document.as_deref());
        let n_bytes = document.map_or(0, |document| document.text.len());
        self.add(entry, n_bytes)
    }

    /// Adds what is new in archives and removes what is no longer in them.
    fn take_archives(&mut self, stamps: &[Stamp]) -> Result<(), Error> {
        let old = self
            .before
            .as_ref()
            .map_or(&[][..], |payload| &payload.stamps[..]);
        let is_grown = old.len() <= stamps.len()
            && old
                .iter()
                .zip(stamps)
                .all(|(old, new)| old.path() == new.path());
        // Files that are as they were when all of them were read need not be read again, as long
        // as the documents in them keep their numbers.
        let n_known = match !self.is_first && is_grown {
            true => old
                .iter()
                .zip(stamps)
                .take_while(|(old, new)| old == new)
                .count(),
            false => 0,
        };
        let (mut wanted, mut doc) = self.known_rows(n_known)?;
        for (number, stamp) in stamps.iter().enumerate().skip(n_known) {
            let mut items = read(&[stamp.path().to_owned()], self.folder.reading())?;
            for item in items.by_ref() {
                self.watch()?;
                let Item::Document(document) = item else {
                    continue;
                };
                let name = name_in_archive(number as u64, doc, &document);
                wanted.push(name);
                if !self.is_held(name) {
                    let n_bytes = document.text.len();
                    let entry = self.entry_of_archive(name, doc, &document);
                    self.add(entry, n_bytes)?;
                }
                doc += 1;
            }
            let lost = items.counts().losses.files.iter();
            self.updated
                .incomplete
                .extend(lost.map(ToString::to_string));
        }
        self.remove_others(wanted);
        Ok(())
    }

    /// The rows of the first `n_files` archives, and how many there are.
    fn known_rows(&self, n_files: usize) -> Result<(Vec<u64>, u64), Error> {
        let mask = (1 << FILE_BITS) - 1;
        let rows = self.held.iter().copied();
        let known: Vec<u64> = rows.filter(|row| row & mask < n_files as u64).collect();
        let n_docs = known.len() as u64;
        Ok((known, n_docs))
    }

    fn entry_of_archive(&self, name: u64, doc: u64, document: &Document) -> TantivyDocument {
        let mut entry = TantivyDocument::default();
        let fields = &self.fields;
        entry.add_u64(fields.row, name);
        entry.add_u64(fields.doc, doc);
        entry.add_u64(fields.cluster, doc);
        entry.add_u64(fields.group, Group::alone().as_u64());
        entry.add_text(fields.id, document.name());
        describe(&mut entry, fields, document.url.as_deref(), Some(document));
        entry
    }

    fn add(&mut self, entry: TantivyDocument, n_bytes: usize) -> Result<(), Error> {
        let added = self.writer.add_document(entry);
        added.map_err(Error::index(self.path))?;
        self.updated.n_added += 1;
        self.uncommitted_bytes += n_bytes as u64;
        self.progress
            .text_bytes
            .fetch_add(n_bytes as u64, Ordering::Relaxed);
        if self.is_first && self.uncommitted_bytes > COMMIT_BYTES {
            self.uncommitted_bytes = 0;
            return self.commit(&Payload {
                is_complete: false,
                stamps: Vec::new(),
                n_without_text: 0,
            });
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

    /// Removes the rows that are not among these.
    fn remove_others(&mut self, mut wanted: Vec<u64>) {
        wanted.sort_unstable();
        for &row in &self.held {
            if wanted.binary_search(&row).is_err() {
                self.writer
                    .delete_term(Term::from_field_u64(self.fields.row, row));
                self.updated.n_removed += 1;
            }
        }
    }

    fn finish(&mut self, stamps: Vec<Stamp>) -> Result<(), Error> {
        let payload = Payload {
            is_complete: true,
            stamps,
            n_without_text: self.updated.n_without_text,
        };
        self.commit(&payload)
    }

    fn commit(&mut self, payload: &Payload) -> Result<(), Error> {
        let in_index = Error::index(self.path);
        let payload = serde_json::to_string(payload).expect("a payload is plain data");
        let mut prepared = self.writer.prepare_commit().map_err(&in_index)?;
        prepared.set_payload(&payload);
        prepared.commit().map_err(&in_index)?;
        Ok(())
    }
}

/// For each cluster, by its kept document, whether it has one document only.
fn alone(path: &Path) -> Result<Vec<bool>, Error> {
    let (mut n_docs, mut kept) = (0, Vec::new());
    documents::for_each_cluster(path, |doc, cluster| {
        n_docs += 1;
        kept.extend((cluster != doc).then_some(cluster));
    })?;
    let mut is_alone = vec![true; n_docs];
    for cluster in kept {
        if let Some(flag) = is_alone.get_mut(cluster as usize) {
            *flag = false;
        }
    }
    Ok(is_alone)
}

/// What a row of a run is called: another name if anything about it is other.
fn name(doc: u64, detail: &Detail, group: Group) -> u64 {
    let position = detail.position.unwrap_or_default();
    let mut bytes = detail.source.as_bytes().to_vec();
    for number in [
        doc,
        position.offset,
        position.inner,
        group.as_u64(),
        detail.cluster,
    ] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes.extend_from_slice(detail.digest.as_bytes());
    fingerprint(&bytes)
}

/// Bits of a name that tell the archive; with more archives some share a number, and are then read
/// again more often.
const FILE_BITS: u32 = 20;

/// What a row of an archive is called; its last bits are the number of the file.
fn name_in_archive(file: u64, doc: u64, document: &Document) -> u64 {
    let mut bytes = Vec::new();
    for number in [file, doc, document.position.offset, document.position.inner] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes.extend_from_slice(document.digest.to_string().as_bytes());
    let mask = (1 << FILE_BITS) - 1;
    (fingerprint(&bytes) & !mask) | (file & mask)
}

/// The fields that depend on the document itself.
fn describe(
    entry: &mut TantivyDocument,
    fields: &Fields,
    url: Option<&str>,
    document: Option<&Document>,
) {
    if let Some(url) = url {
        entry.add_text(fields.url, url);
        entry.add_text(fields.url_words, url);
        domains(url).for_each(|domain| entry.add_text(fields.site, domain));
    }
    let Some(document) = document else {
        return;
    };
    if let Some(title) = &document.title {
        entry.add_text(fields.title, title);
        entry.add_text(fields.title_words, title);
        entry.add_text(fields.body, title);
    }
    entry.add_text(fields.body, &document.text);
    entry.add_text(fields.text, &document.text);
    if let Some(language) = &document.language {
        entry.add_text(fields.stated_language, language);
        languages(language).for_each(|language| entry.add_text(fields.language, language));
    }
    if let Some(time) = document.fetched {
        entry.add_i64(fields.time, time);
    }
}

/// The host of an address and every domain it is in.
fn domains(url: &str) -> impl Iterator<Item = String> {
    let host = host_of(url).unwrap_or_default();
    let name = match host.starts_with('[') {
        true => host,
        false => host.split(':').next().unwrap_or_default(),
    };
    let name = name.trim_end_matches('.').to_lowercase();
    let mut rest = (!name.is_empty()).then_some(name);
    std::iter::from_fn(move || {
        let this = rest.take()?;
        rest = this.split_once('.').map(|(_, above)| above.to_owned());
        Some(this)
    })
}

/// A language as stated, and without its region.
fn languages(stated: &str) -> impl Iterator<Item = String> {
    let full = stated.trim().to_lowercase().replace('_', "-");
    let main = full.split_once('-').map(|(main, _)| main.to_owned());
    [Some(full), main].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, expected: &[&str]) {
        assert_eq!(domains(url).collect::<Vec<_>>(), expected, "{url}");
    }

    #[test]
    fn a_host_is_in_its_domains() {
        check("https://A.b.org:80/x", &["a.b.org", "b.org", "org"]);
        check("http://localhost", &["localhost"]);
        check("http://[::1]:80/", &["[::1]:80"]);
        check("nothing", &[]);
    }

    #[test]
    fn a_language_is_its_own_and_its_main_one() {
        assert_eq!(languages("en_GB").collect::<Vec<_>>(), ["en-gb", "en"]);
        assert_eq!(languages("de").collect::<Vec<_>>(), ["de"]);
    }
}
