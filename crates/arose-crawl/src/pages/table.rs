//! The file of the page table: records by page number.

use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use arose_dedup::disk;

use super::record::RECORD;
use super::{PageId, Record};
use crate::error::{Context, Error};

/// The directory of the table, in the directory of the crawl.
pub(crate) const TABLE: &str = "pages";

/// Number of records read at a time.
const PIECE: usize = 4096;

/// The table, open for changes.
#[derive(Debug)]
pub(crate) struct Table {
    folder: PathBuf,
    records: disk::File,
    n_pages: u32,
    /// Records in the journal that may not be in the file.
    dirty: BTreeMap<PageId, Record>,
    has_new_names: bool,
}

impl Table {
    /// Opens the table in a directory, whose file must have at least `n_stored` pages. The records
    /// in `journaled` are newer than those in the file.
    pub(crate) fn open(
        folder: &Path,
        n_stored: u32,
        journaled: BTreeMap<PageId, Record>,
    ) -> Result<Self, Error> {
        disk::create_folder(folder).context("creating", folder)?;
        let path = folder.join("records");
        let records = disk::File::open_or_create(&path).context("opening", &path)?;
        let n_there = n_whole(records.as_file())?;
        check_length(&path, n_there, n_stored)?;
        let n_journaled = journaled.keys().next_back().map_or(0, |last| last + 1);
        Ok(Self {
            folder: folder.to_owned(),
            records,
            n_pages: n_there.max(n_journaled),
            dirty: journaled,
            has_new_names: true,
        })
    }

    /// Returns the number of pages in any state.
    pub(crate) fn n_pages(&self) -> u32 {
        self.n_pages
    }

    /// Returns the record of a page.
    pub(crate) fn get(&self, page: PageId) -> Result<Option<Record>, Error> {
        if let Some(record) = self.dirty.get(&page) {
            return Ok(Some(*record));
        }
        let mut row = [0; RECORD];
        let is_there = read_at(&self.records, &mut row, page);
        let is_there = is_there.context("reading", &self.folder)?;
        Ok(Record::from_bytes(&row).filter(|_| is_there))
    }

    /// Takes a record that a commit wrote to the journal.
    pub(crate) fn put(&mut self, page: PageId, record: Record) {
        self.n_pages = self.n_pages.max(page.saturating_add(1));
        self.dirty.insert(page, record);
    }

    /// Writes all records to the disk. The journal with these records must be on the disk before.
    pub(crate) fn sync(&mut self) -> Result<(), Error> {
        if !self.dirty.is_empty() {
            let rows = self.dirty.iter();
            let rows = rows.map(|(page, record)| (*page, record.to_bytes()));
            write_runs(&self.records, rows).context("writing", &self.folder)?;
            self.records.sync().context("writing", &self.folder)?;
            self.dirty.clear();
        }
        if std::mem::take(&mut self.has_new_names) {
            disk::sync_folder(&self.folder).context("writing", &self.folder)?;
        }
        Ok(())
    }

    /// Returns the number of pages that are durably in the file after [`Table::sync`].
    pub(crate) fn n_stored(&self) -> u32 {
        match self.dirty.is_empty() {
            true => self.n_pages,
            false => self
                .dirty
                .keys()
                .next()
                .map_or(0, |first| (*first).min(self.n_pages)),
        }
    }

    /// Calls `take` with all pages in order, without those that were never written.
    pub(crate) fn each(&self, mut take: impl FnMut(PageId, &Record)) -> Result<(), Error> {
        let mut buffer = vec![0; PIECE * RECORD];
        let mut page = 0;
        while page < self.n_pages {
            let n = (self.n_pages - page).min(PIECE as u32) as usize;
            let bytes = &mut buffer[..n * RECORD];
            bytes.fill(0);
            let at = u64::from(page) * RECORD as u64;
            read_some(&self.records, bytes, at).context("reading", &self.folder)?;
            for (bytes, number) in bytes.as_chunks::<RECORD>().0.iter().zip(page..) {
                let journaled = self.dirty.get(&number).copied();
                if let Some(record) = journaled.or_else(|| Record::from_bytes(bytes)) {
                    take(number, &record);
                }
            }
            page += n as u32;
        }
        Ok(())
    }
}

/// Returns an error if the table in a directory has fewer rows than the journal says.
pub(crate) fn check(folder: &Path, n_stored: u32) -> Result<(), Error> {
    let path = folder.join("records");
    let n_there = match std::fs::File::open(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
        file => n_whole(&file.context("reading", &path)?)?,
    };
    check_length(&path, n_there, n_stored)
}

fn check_length(path: &Path, n_there: u32, n_stored: u32) -> Result<(), Error> {
    let what = "it is shorter than the journal says; rebuild it with `arose crawl repair`";
    match n_there < n_stored {
        true => Err(Error::damaged(path, what)),
        false => Ok(()),
    }
}

/// Returns the number of complete rows in a file.
fn n_whole(file: &std::fs::File) -> Result<u32, Error> {
    let length = file.metadata().context("reading", Path::new(TABLE))?.len();
    Ok(u32::try_from(length / RECORD as u64).unwrap_or(u32::MAX))
}

/// Reads a row; returns whether it is there.
fn read_at(file: &disk::File, row: &mut [u8], page: PageId) -> std::io::Result<bool> {
    let at = u64::from(page) * row.len() as u64;
    match file.as_file().read_exact_at(row, at) {
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(false),
        read => read.map(|()| true),
    }
}

/// Reads as many bytes as there are.
fn read_some(file: &disk::File, mut bytes: &mut [u8], mut at: u64) -> std::io::Result<()> {
    while !bytes.is_empty() {
        match file.as_file().read_at(bytes, at)? {
            0 => break,
            n => {
                bytes = &mut bytes[n..];
                at += n as u64;
            }
        }
    }
    Ok(())
}

/// Writes rows in ascending order, adjacent ones together.
fn write_runs(
    file: &disk::File,
    rows: impl Iterator<Item = (PageId, [u8; RECORD])>,
) -> std::io::Result<()> {
    let mut run: Vec<u8> = Vec::new();
    let mut start = 0;
    for (page, row) in rows {
        let is_next = u64::from(page) == start + (run.len() / RECORD) as u64;
        if !run.is_empty() && (!is_next || run.len() > 1 << 20) {
            file.write_all_at(&run, start * RECORD as u64)?;
            run.clear();
        }
        if run.is_empty() {
            start = u64::from(page);
        }
        run.extend_from_slice(&row);
    }
    match run.is_empty() {
        true => Ok(()),
        false => file.write_all_at(&run, start * RECORD as u64),
    }
}
