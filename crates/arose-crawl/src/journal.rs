//! The persistent URL pool: stores which URLs are queued and which are done.
//!
//! *Question.* The queue of a crawl outlives the process and may contain more URLs than fit in
//! memory. After a kill at any moment no URL may be lost, and queue, archive and seen set must
//! agree.
//!
//! *Idea.* One file that grows at its end. Every change is an [`Event`]. The events of about a
//! second form one *frame*, which is written at once and is atomic. A frame also records the length
//! of the archive, so that anything beyond it is cut off after a crash. In memory, a queued URL is
//! only the position of its event and its weight, 11 bytes; its text is read back when its turn
//! comes ([`Pool`]). Reading the file from the beginning restores the queues. [`frame`]
//! distinguishes damage from the effects of a crash.
//!
//! Two threads share the work. The crawl assigns positions to events ([`Draft`]) and passes them on
//! in batches; the store writes them ([`Journal`]). When most of the file is about completed URLs,
//! a [`Successor`] with the rest is written beside it and replaces it by renaming: until then the
//! old file is valid, afterwards the new one. Events keep their positions. So the size of the file
//! is bounded by a multiple of the queue, and so is the time to open it.
//!
//! ```text
//! journal = magic version note note frame*
//! note    = synced checksum               8 bytes each, little-endian
//! frame   = length mark n_hosts place checksum event*
//! event   = tag number* (length bytes)?   numbers in groups of 7 bits, lowest first
//! ```
//!
//! *Cost.* A URL takes its path, the path of the page on which it was found and about six bytes;
//! its completion takes about six. Opening reads the whole file, about a million URLs per second.
//! *Not for* finding a URL by name: use the seen set.

mod by_host;
mod compact;
mod draft;
mod event;
mod frame;
mod pool;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arose_dedup::disk;

use crate::error::{Context, Error};
pub(crate) use by_host::{ByHost, PART, Told};
pub(crate) use compact::{MAX_CONTENTS, Old, Successor};
pub(crate) use draft::{Batch, Draft};
pub(crate) use event::{Decoder, Event, Kind, Queued, push_number};
pub(crate) use frame::{Frame, replay, salvage};
use frame::{HEAD, PREAMBLE, Title};
pub(crate) use pool::Pool;
use pool::Span;

/// The number of a host, in the order in which hosts were met.
pub(crate) type HostId = u32;

/// The position of a queued URL: bytes of events before it, done or not.
pub(crate) type Place = u64;

/// Maximum size in bytes of the event of a URL.
const MAX_URL_EVENT: usize = 1 << 17;

/// An open journal.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: disk::File,
    /// The end of the last intact frame.
    end: u64,
    /// The number of the commit that wrote it.
    mark: u64,
    /// Number of hosts met.
    n_hosts: u64,
    /// A position after all events.
    place: Place,
    /// How much of the file is known to be on disk, and where that is noted next.
    synced: u64,
    slot: u64,
    /// Whether it will replace another journal, whose commits it repeats.
    is_successor: bool,
    pool: Arc<Pool>,
    /// Reused memory.
    frame: Vec<u8>,
}

impl Journal {
    /// Creates an empty journal, which is durable when this returns.
    pub(crate) fn create(path: &Path) -> Result<Self, Error> {
        let mut journal = Self::begin(&new_path(path))?;
        journal.rename(path)?;
        Ok(journal)
    }

    /// Creates an empty journal under a temporary name, whose frames all have one mark.
    pub(crate) fn begin_at(path: &Path, mark: u64) -> Result<Self, Error> {
        let mut journal = Self::begin(path)?;
        journal.mark = mark;
        journal.is_successor = true;
        Ok(journal)
    }

    fn begin(path: &Path) -> Result<Self, Error> {
        let file = disk::File::create(path).context("creating", path)?;
        let written = file.write_all_at(&frame::preamble(), 0);
        written.context("writing", path)?;
        Ok(Self {
            path: path.to_owned(),
            pool: Arc::new(Pool::new(
                path.to_owned(),
                copy_of(&file, path)?,
                Vec::new(),
            )),
            file,
            end: PREAMBLE,
            mark: 0,
            n_hosts: 0,
            place: PREAMBLE,
            synced: PREAMBLE,
            slot: 0,
            is_successor: false,
            frame: Vec::new(),
        })
    }

    /// Opens a journal and passes its frames to `accept`, which may refuse a frame that is not
    /// known to have been on disk. Then neither that frame nor anything after it is valid. The file
    /// is not changed before [`Journal::cut`].
    pub(crate) fn open(
        path: &Path,
        mut accept: impl FnMut(&Frame<'_>) -> Result<bool, Error>,
    ) -> Result<Self, Error> {
        let file = disk::File::open(path).context("opening", path)?;
        let mut spans: Vec<Span> = Vec::new();
        let counted = replay(file.as_file(), path, |frame| {
            let is_accepted = accept(frame)?;
            spans.extend(Span::of(frame).filter(|_| is_accepted));
            Ok(is_accepted)
        })?;
        Ok(Self {
            path: path.to_owned(),
            pool: Arc::new(Pool::new(path.to_owned(), copy_of(&file, path)?, spans)),
            file,
            end: counted.end,
            mark: counted.mark,
            n_hosts: counted.n_hosts,
            place: counted.place,
            synced: counted.synced,
            slot: counted.slot,
            is_successor: false,
            frame: Vec::new(),
        })
    }

    /// Cuts off what a crash left after the last valid frame, and deletes an unfinished successor.
    pub(crate) fn cut(&mut self) -> Result<(), Error> {
        let unfinished = new_path(&self.path);
        if unfinished.exists() {
            disk::remove(&unfinished).context("removing", &unfinished)?;
        }
        let metadata = self.file.as_file().metadata();
        if metadata.context("reading", &self.path)?.len() > self.end {
            let cut = self.file.set_len(self.end);
            cut.and_then(|()| self.file.sync())
                .context("cutting", &self.path)?;
        }
        Ok(())
    }

    /// Returns its path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the size of the file.
    pub(crate) fn n_bytes(&self) -> u64 {
        self.end
    }

    /// Returns the number of the last commit.
    pub(crate) fn mark(&self) -> u64 {
        self.mark
    }

    /// Whether all of it is known to be on disk.
    pub(crate) fn is_synced(&self) -> bool {
        self.synced == self.end
    }

    /// Returns a reader of the written part, for any thread.
    pub(crate) fn pool(&self) -> Arc<Pool> {
        Arc::clone(&self.pool)
    }

    /// Returns the batch that follows the written part.
    pub(crate) fn next_batch(&self) -> Batch {
        Batch::new(self.place, self.n_hosts)
    }

    /// Writes a frame: a batch, and further events that are never looked up by position. If that
    /// fails, the journal is unchanged, and the batch may be written again.
    pub(crate) fn append(&mut self, batch: &Batch, more: &[Event<'_>]) -> Result<(), Error> {
        self.frame.clear();
        self.frame.resize(HEAD, 0);
        self.frame.extend_from_slice(&batch.events);
        for event in more {
            event.write(&mut self.frame);
        }
        if self.frame.len() == HEAD {
            return Ok(());
        }
        let title = Title {
            mark: self.mark + u64::from(!self.is_successor),
            n_hosts: batch.n_hosts,
            place: batch.place,
        };
        let span = batch.span(self.end + HEAD as u64);
        self.write(title, span)?;
        self.n_hosts = batch.n_hosts_after();
        self.place = self.place.max(batch.end());
        Ok(())
    }

    /// Writes the frame whose events are in the buffer.
    fn write(&mut self, title: Title, span: Option<Span>) -> Result<(), Error> {
        frame::seal(&mut self.frame, self.end, title);
        let written = self.file.write_all_at(&self.frame, self.end);
        written.context("writing", &self.path)?;
        self.pool.table().spans.extend(span);
        self.mark = title.mark;
        self.end += self.frame.len() as u64;
        // Releases the memory of a burst.
        self.frame.clear();
        self.frame.shrink_to(1 << 20);
        Ok(())
    }

    /// Returns when all written data is on disk, and notes so in the file. The note itself is
    /// synced with the next call.
    pub(crate) fn sync(&mut self) -> Result<(), Error> {
        self.file.sync().context("writing", &self.path)?;
        if self.synced != self.end {
            let (at, note) = frame::note_at(self.end, self.slot);
            let written = self.file.write_all_at(&note, at);
            written.context("writing", &self.path)?;
            self.slot = 1 - self.slot;
            self.synced = self.end;
        }
        Ok(())
    }

    /// Returns the part to be rewritten, for any thread: all of it, which must be on disk.
    pub(crate) fn old(&self, rules_since: u64) -> Result<Old, Error> {
        let file = self.file.as_file().try_clone();
        Ok(Old {
            file: file.context("reading", &self.path)?,
            until: self.end,
            mark: self.mark,
            rules_since,
        })
    }

    /// Replaces the journal by its successor, to which frames written in the meantime are copied
    /// first.
    pub(crate) fn give_way(&mut self, successor: Successor) -> Result<(), Error> {
        let mut new = successor.journal;
        self.copy_from(successor.until, &mut new)?;
        new.rename(&self.path)?;
        // Readers continue with the new file; its positions are the same.
        std::mem::swap(&mut *self.pool.table(), &mut *new.pool.table());
        new.pool = Arc::clone(&self.pool);
        new.place = self.place;
        *self = new;
        Ok(())
    }

    /// Copies the frames from a position on.
    fn copy_from(&self, from: u64, new: &mut Self) -> Result<(), Error> {
        let file = self.file.as_file();
        frame::each(from..self.end, file, &self.path, |frame, bytes| {
            new.frame.clear();
            new.frame.extend_from_slice(bytes);
            let span = Span::of(frame).map(|span| span.moved(frame.start, new.end));
            let title = Title {
                mark: frame.mark,
                n_hosts: frame.n_hosts,
                place: frame.place,
            };
            new.write(title, span)?;
            new.n_hosts = frame.n_hosts_after();
            Ok(())
        })
    }

    /// Replaces the file of this name, atomically and durably.
    pub(crate) fn rename(&mut self, path: &Path) -> Result<(), Error> {
        self.sync()?;
        self.file.sync().context("writing", &self.path)?;
        disk::rename(&self.path, path).context("replacing", path)?;
        let folder = path.parent().unwrap_or(Path::new("."));
        disk::sync_folder(folder).context("writing", folder)?;
        path.clone_into(&mut self.path);
        self.is_successor = false;
        Ok(())
    }
}

/// A file that others read.
fn copy_of(file: &disk::File, path: &Path) -> Result<Arc<fs::File>, Error> {
    let copy = file.as_file().try_clone();
    copy.map(Arc::new).context("opening", path)
}

/// Returns the path of the successor of a journal.
fn new_path(path: &Path) -> PathBuf {
    path.with_extension("new")
}
