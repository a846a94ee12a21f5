//! The persistent URL pool: which URLs are to be fetched, and which are done?
//!
//! *Question.* The queue of a crawl outlives the process and may hold more URLs than memory. After
//! a kill at any moment no URL may be lost, and queue, archive and seen set must agree.
//!
//! *Idea.* One file that grows at its end. Whatever changes is an [`Event`]; the events of a second
//! or so are one *frame*, which is written at once and counts wholly or not at all. A frame also
//! says how long the archive was, so what the archive has beyond that is cut off after a crash. A
//! queued URL is in memory only as the place of its event and its weight, 11 bytes; its text is
//! read back when its turn comes ([`Pool`]). Reading the file from the beginning restores the
//! queues. What is damage and what a crash explains is decided in [`frame`].
//!
//! Two threads share the work. The crawl gives events their places ([`Draft`]) and hands them on in
//! batches; the store writes them ([`Journal`]). When most of the file is about URLs that are done,
//! a [`Successor`] with the rest is written beside it and takes its place by being renamed: until
//! then the old one counts, afterwards the new one. Events keep their places. So the file is never
//! larger than some multiple of what is queued, and opening never takes longer than reading that.
//!
//! ```text
//! journal = magic version note note frame*
//! note    = synced checksum               8 bytes each, little-endian
//! frame   = length mark n_hosts place checksum event*
//! event   = tag number* (length bytes)?   numbers in groups of 7 bits, lowest first
//! ```
//!
//! *Cost.* A URL takes its path, that of the page it was found on and about six bytes, its end
//! about six. Opening reads the whole file, some million URLs a second. *Not for* finding a URL by
//! name: that is what the seen set is for.

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

/// A host's number, in the order in which hosts were met.
pub(crate) type HostId = u32;

/// The place of a queued URL: bytes of events before it, done or not.
pub(crate) type Place = u64;

/// The most bytes that the event of a URL can take.
const MAX_URL_EVENT: usize = 1 << 17;

/// An open journal.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: disk::File,
    /// Where the last whole frame ends.
    end: u64,
    /// The number of the commit that wrote it.
    mark: u64,
    /// Hosts met.
    n_hosts: u64,
    /// A place behind all events.
    place: Place,
    /// How far the file is known to be on the disk, and where that is noted next.
    synced: u64,
    slot: u64,
    /// Whether it is to take the place of another one, whose commits it repeats.
    is_successor: bool,
    pool: Arc<Pool>,
    /// Scratch.
    frame: Vec<u8>,
}

impl Journal {
    /// Makes an empty journal, which lasts when this returns.
    pub(crate) fn create(path: &Path) -> Result<Self, Error> {
        let mut journal = Self::begin(&new_path(path))?;
        journal.rename(path)?;
        Ok(journal)
    }

    /// An empty journal under a name for the time of writing, whose frames all have one mark.
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

    /// Opens a journal and hands its frames to `accept`, which may refuse one that is not known to
    /// have been on the disk; neither it nor what follows counts. Nothing is changed before
    /// [`Journal::cut`].
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

    /// Cuts off what a crash left behind the last frame that counts, and a successor that was not
    /// finished.
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

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// How long the file is.
    pub(crate) fn n_bytes(&self) -> u64 {
        self.end
    }

    /// The number of the last commit.
    pub(crate) fn mark(&self) -> u64 {
        self.mark
    }

    /// Whether all of it is known to be on the disk.
    pub(crate) fn is_synced(&self) -> bool {
        self.synced == self.end
    }

    /// Reads what is written, on any thread.
    pub(crate) fn pool(&self) -> Arc<Pool> {
        Arc::clone(&self.pool)
    }

    /// The batch that follows what is written.
    pub(crate) fn next_batch(&self) -> Batch {
        Batch::new(self.place, self.n_hosts)
    }

    /// Writes a frame: a batch, and further events that nobody asks for by their places. If that
    /// fails the journal is what it was, and the batch may be written again.
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

    /// Writes the frame whose events are in the scratch.
    fn write(&mut self, title: Title, span: Option<Span>) -> Result<(), Error> {
        frame::seal(&mut self.frame, self.end, title);
        let written = self.file.write_all_at(&self.frame, self.end);
        written.context("writing", &self.path)?;
        self.pool.table().spans.extend(span);
        self.mark = title.mark;
        self.end += self.frame.len() as u64;
        // A burst should not hold its memory for ever.
        self.frame.clear();
        self.frame.shrink_to(1 << 20);
        Ok(())
    }

    /// Returns when all that was written is on the disk, and notes so in the file. The note itself
    /// gets there with the next sync.
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

    /// What there is to be rewritten, on any thread: all of it, which must be on the disk.
    pub(crate) fn old(&self, rules_since: u64) -> Result<Old, Error> {
        let file = self.file.as_file().try_clone();
        Ok(Old {
            file: file.context("reading", &self.path)?,
            until: self.end,
            mark: self.mark,
            rules_since,
        })
    }

    /// Becomes its successor, which gets what was written meanwhile first.
    pub(crate) fn give_way(&mut self, successor: Successor) -> Result<(), Error> {
        let mut new = successor.journal;
        self.copy_from(successor.until, &mut new)?;
        new.rename(&self.path)?;
        // Readers go on with the new file; its places are the same.
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

    /// Takes the place of what has this name, wholly or not at all, and for good.
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

/// A file to be read by others.
fn copy_of(file: &disk::File, path: &Path) -> Result<Arc<fs::File>, Error> {
    let copy = file.as_file().try_clone();
    copy.map(Arc::new).context("opening", path)
}

/// Where the successor of a journal is written.
fn new_path(path: &Path) -> PathBuf {
    path.with_extension("new")
}
