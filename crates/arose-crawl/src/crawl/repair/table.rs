//! Rebuilds the page table.
//!
//! *Question.* Rows of the page table are missing, or the journal that had newer ones is damaged.
//! When was each page visited, and when had it changed? *Idea.* Rows that can be read stay. For
//! other pages, and for pages with later visits, the archive has a record of every response. A
//! response with another content than the one before is a change, and so is a revisit record that
//! refers to another content. *Limits.* The archive does not have the importance of a page, the
//! history of the URL that has moved to it, and whether robots.txt forbids it.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use arose::freshness::PageStatistics;
use arose_corpus::time;
use arose_dedup::disk;

use super::name_hash;
use crate::archive::Stored;
use crate::crawl::listing;
use crate::crawl::visited::{TRIES, is_moved};
use crate::error::{Context, Error};
use crate::fetch::Head;
use crate::fingerprint::Fingerprint;
use crate::journal::Kind;
use crate::order::BASE;
use crate::pages::{PageId, Position, RECORD, Record, State, TABLE, importance};
use crate::url::NormalUrl;

/// A visit of a page, according to its archive record.
#[derive(Debug)]
pub(super) struct ArchivedVisit {
    pub(super) fingerprint: Fingerprint,
    pub(super) kind: Kind,
    pub(super) depth: u32,
    /// Seconds since 1970.
    pub(super) date: u32,
    pub(super) status: u16,
    pub(super) position: Position,
    /// The name of the record, and of the one that it refers to.
    pub(super) name: u64,
    pub(super) refers_to: Option<u64>,
    /// The digest of its content; 0 if it has none.
    pub(super) digest: u64,
}

impl ArchivedVisit {
    /// Describes the visit of an archive record, except for its digest.
    pub(super) fn of(record: &Stored, url: &NormalUrl, kind: Kind, depth: u32, file: u64) -> Self {
        let field = |name: &str| record.field(name).unwrap_or_default();
        let date = |name: &str| time::parse(field(name));
        let is_revisit = field("WARC-Type") == "revisit";
        let refers_to = date("WARC-Refers-To-Date").filter(|_| is_revisit);
        let at = date("WARC-Date").unwrap_or(0);
        Self {
            fingerprint: Fingerprint::of(url),
            kind,
            depth,
            date: u32::try_from(at).unwrap_or(0),
            status: Head::parse(&record.block).map_or(0, |head| head.status),
            position: Position {
                file: u32::try_from(file).unwrap_or(u32::MAX),
                offset: record.offset,
            },
            name: name_hash(at, url.as_str()),
            refers_to: refers_to.map(|date| name_hash(date, field("WARC-Refers-To-Target-URI"))),
            digest: 0,
        }
    }
}

/// A page as the archive has it.
#[derive(Debug)]
struct ArchivedPage {
    record: Record,
    /// The name of the archive record with its content.
    content: u64,
}

/// The rows of the new table.
#[derive(Debug, Default)]
pub(super) struct TableRows {
    /// Those in the journal.
    pub(super) journaled: BTreeMap<PageId, Record>,
    archived: BTreeMap<u128, ArchivedPage>,
    /// Digests of contents, by the names of their records.
    digests: HashMap<u64, u64>,
}

/// A table that is written and does not replace the old one yet.
#[derive(Debug)]
pub(super) struct WrittenTable {
    folder: PathBuf,
    pub(super) n_pages: u32,
    /// Number of rows from the archive.
    pub(super) n_restored: u64,
}

impl TableRows {
    /// Takes a visit. Those of a page come in the order of time.
    pub(super) fn take(&mut self, visit: &ArchivedVisit) {
        let digest = match visit.refers_to {
            Some(name) => self.digests.get(&name).copied().unwrap_or(0),
            None => visit.digest,
        };
        if visit.refers_to.is_none() && digest != 0 {
            self.digests.insert(visit.name, digest);
        }
        match self.archived.entry(visit.fingerprint.key()) {
            Entry::Vacant(entry) => drop(entry.insert(ArchivedPage::new(visit, digest))),
            Entry::Occupied(mut entry) => entry.get_mut().visit(visit, digest),
        }
    }

    /// Writes the new table beside the old one, in the directory of a crawl.
    pub(super) fn write(mut self, folder: &Path) -> Result<WrittenTable, Error> {
        let mut written = WrittenTable {
            folder: folder.join(TABLE),
            n_pages: 0,
            n_restored: 0,
        };
        disk::create_folder(&written.folder).context("creating", &written.folder)?;
        let path = written.new_path();
        let file = disk::File::create(&path).context("creating", &path)?;
        let mut out = BufWriter::with_capacity(1 << 20, file);
        listing::each(folder, &self.journaled, |page, record| {
            while written.n_pages < page {
                out.write_all(&[0; RECORD]).context("writing", &path)?;
                written.n_pages += 1;
            }
            let archived = self.archived.remove(&record.fingerprint.key());
            let archived = archived.map(|archived| archived.record);
            let is_newer = |archived: &Record| archived.statistics.last > record.statistics.last;
            let newer = archived
                .filter(is_newer)
                .map(|newer| newer.as_important(record));
            written.n_restored += u64::from(newer.is_some());
            written.push(&mut out, &newer.unwrap_or(*record))
        })?;
        for archived in self.archived.values() {
            written.n_restored += 1;
            written.push(&mut out, &archived.record)?;
        }
        let file = out.into_inner().map_err(|error| error.into_error());
        let file = file.context("writing", &path)?;
        file.sync().context("writing", &path)?;
        Ok(written)
    }
}

impl ArchivedPage {
    fn new(visit: &ArchivedVisit, digest: u64) -> Self {
        let mu = importance(visit.kind, BASE);
        Self {
            record: Record {
                fingerprint: visit.fingerprint,
                statistics: PageStatistics::new(visit.date, mu),
                first: visit.date,
                due: 0,
                position: visit.position,
                status: visit.status,
                n_versions: u16::from(digest != 0 || visit.refers_to.is_some()),
                kind: visit.kind,
                state: match visit.status {
                    404 | 410 => State::Missing(1),
                    _ => State::Live,
                },
                depth: u8::try_from(visit.depth).unwrap_or(u8::MAX),
                digest,
            },
            content: visit.refers_to.unwrap_or(visit.name),
        }
    }

    fn visit(&mut self, visit: &ArchivedVisit, digest: u64) {
        let record = &mut self.record;
        match visit.status {
            304 => record.statistics.visit(visit.date, false),
            200..=399 => {
                let content = visit.refers_to.unwrap_or(visit.name);
                let is_same = content == self.content || digest != 0 && digest == record.digest;
                let is_changed = !is_same && !is_moved(record, visit.status);
                record.statistics.visit(visit.date, is_changed);
                if !is_same {
                    record.n_versions = record.n_versions.saturating_add(1);
                    record.digest = digest;
                }
                record.status = visit.status;
                record.position = visit.position;
                self.content = content;
            }
            404 | 410 => {
                let n = match record.state {
                    State::Missing(n) => n.saturating_add(1),
                    _ => 1,
                };
                record.status = visit.status;
                record.statistics.last = visit.date;
                record.state = if n >= TRIES {
                    State::Gone
                } else {
                    State::Missing(n)
                };
                return;
            }
            status => {
                record.status = status;
                return;
            }
        }
        record.state = State::Live;
    }
}

impl Record {
    /// Returns the record with the importance of another one, and the earlier of both first visits.
    fn as_important(mut self, other: &Self) -> Self {
        self.statistics
            .set_importance(other.statistics.importance());
        self.first = self.first.min(other.first);
        self
    }
}

impl WrittenTable {
    fn new_path(&self) -> PathBuf {
        self.folder.join("records.new")
    }

    fn push(&mut self, out: &mut impl Write, record: &Record) -> Result<(), Error> {
        self.n_pages = self.n_pages.saturating_add(1);
        let written = out.write_all(&record.to_bytes());
        written.context("writing", &self.new_path())
    }

    /// Replaces the old table. The new journal has to be on the disk before: with it, the old table
    /// is too short, and with the old journal, numbers of pages in the new table may be wrong.
    pub(super) fn replace(&self) -> Result<(), Error> {
        let path = self.new_path();
        disk::rename(&path, &self.folder.join("records")).context("renaming", &path)?;
        disk::sync_folder(&self.folder).context("writing", &self.folder)
    }
}
