//! The files of the page table: records and sketches, by page number.

use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use arose_dedup::disk;

use super::record::{RECORD, SKETCH};
use super::{PageId, Record, Sketch, Slot};
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
    sketches: disk::File,
    n_pages: u32,
    /// Data in the journal that may not be in the files.
    dirty: BTreeMap<PageId, Slot>,
    has_new_names: bool,
}

impl Table {
    /// Opens the table in a directory, whose files must have at least `n_stored` pages. The data in
    /// `journaled` is newer than that in the files.
    pub(crate) fn open(
        folder: &Path,
        n_stored: u32,
        journaled: BTreeMap<PageId, Slot>,
    ) -> Result<Self, Error> {
        disk::create_folder(folder).context("creating", folder)?;
        let open = |name: &str| {
            let path = folder.join(name);
            disk::File::open_or_create(&path).context("opening", &path)
        };
        let (records, sketches) = (open("records")?, open("sketches")?);
        let n_there = n_whole(&records, RECORD)?.min(n_whole(&sketches, SKETCH)?);
        if n_there < n_stored {
            let what = "it is shorter than the journal says; rebuild it with `arose crawl repair`";
            return Err(Error::damaged(&folder.join("records"), what));
        }
        let n_journaled = journaled.keys().next_back().map_or(0, |last| last + 1);
        Ok(Self {
            folder: folder.to_owned(),
            records,
            sketches,
            n_pages: n_there.max(n_journaled),
            dirty: journaled,
            has_new_names: true,
        })
    }

    /// Returns the number of pages in any state.
    pub(crate) fn n_pages(&self) -> u32 {
        self.n_pages
    }

    /// Returns the data of a page.
    pub(crate) fn get(&self, page: PageId) -> Result<Option<Slot>, Error> {
        if let Some(slot) = self.dirty.get(&page) {
            return Ok(Some(*slot));
        }
        let (mut record, mut sketch) = ([0; RECORD], [0; SKETCH]);
        let is_there = read_at(&self.records, &mut record, page)
            .and_then(|n| Ok(n & read_at(&self.sketches, &mut sketch, page)?));
        let is_there = is_there.context("reading", &self.folder)?;
        let record = Record::from_bytes(&record).filter(|_| is_there);
        Ok(record.map(|record| Slot {
            record,
            sketch: Sketch::from_bytes(&sketch),
        }))
    }

    /// Records data that a commit wrote to the journal.
    pub(crate) fn put(&mut self, page: PageId, slot: Slot) {
        self.n_pages = self.n_pages.max(page.saturating_add(1));
        self.dirty.insert(page, slot);
    }

    /// Writes all recorded data to the disk. The journal with this data must be on the disk before.
    pub(crate) fn sync(&mut self) -> Result<(), Error> {
        if !self.dirty.is_empty() {
            let rows = || self.dirty.iter().map(|(page, slot)| (*page, slot));
            write_runs(
                &self.records,
                rows().map(|(page, slot)| (page, slot.record.to_bytes())),
            )
            .context("writing", &self.folder)?;
            write_runs(
                &self.sketches,
                rows().map(|(page, slot)| (page, slot.sketch.to_bytes())),
            )
            .context("writing", &self.folder)?;
            self.records.sync().context("writing", &self.folder)?;
            self.sketches.sync().context("writing", &self.folder)?;
            self.dirty.clear();
        }
        if std::mem::take(&mut self.has_new_names) {
            disk::sync_folder(&self.folder).context("writing", &self.folder)?;
        }
        Ok(())
    }

    /// Returns the number of pages that are durably in the files after [`Table::sync`].
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
                let journaled = self.dirty.get(&number).map(|slot| slot.record);
                if let Some(record) = journaled.or_else(|| Record::from_bytes(bytes)) {
                    take(number, &record);
                }
            }
            page += n as u32;
        }
        Ok(())
    }
}

/// Returns the number of complete rows in a file.
fn n_whole(file: &disk::File, width: usize) -> Result<u32, Error> {
    let metadata = file.as_file().metadata();
    let length = metadata.context("reading", Path::new(TABLE))?.len();
    Ok(u32::try_from(length / width as u64).unwrap_or(u32::MAX))
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
fn write_runs<const N: usize>(
    file: &disk::File,
    rows: impl Iterator<Item = (PageId, [u8; N])>,
) -> std::io::Result<()> {
    let mut run: Vec<u8> = Vec::new();
    let mut start = 0;
    for (page, row) in rows {
        let is_next = u64::from(page) == start + (run.len() / N) as u64;
        if !run.is_empty() && (!is_next || run.len() > 1 << 20) {
            file.write_all_at(&run, start * N as u64)?;
            run.clear();
        }
        if run.is_empty() {
            start = u64::from(page);
        }
        run.extend_from_slice(&row);
    }
    match run.is_empty() {
        true => Ok(()),
        false => file.write_all_at(&run, start * N as u64),
    }
}
