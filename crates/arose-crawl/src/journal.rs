//! The persistent URL pool: which URLs are to be fetched, and which are done?
//!
//! *Question.* The queue of a crawl outlives the process and may hold more URLs than memory. After
//! a kill at any moment no URL may be lost, and queue, archive and seen set must agree.
//!
//! *Idea.* One file that grows at its end. Whatever changes is an [`Event`]; the events of a second
//! or so are one *frame*, which is written at once and counts wholly or not at all. A frame also
//! says how long the archive was, so what the archive has beyond that is cut off after a crash. A
//! queued URL is in memory only as the place of its event, eight bytes; its text is read back when
//! its turn comes. Reading the file from the beginning restores the queues. What is damage and what
//! a crash explains is decided in [`frame`].
//!
//! When most of the file is about URLs that are done, a [successor](Journal::successor) with the
//! rest is written beside it and takes its place by being renamed: until then the old one counts,
//! afterwards the new one. So the file is never larger than some multiple of what is queued, and
//! opening never takes longer than reading that.
//!
//! ```text
//! journal = magic version note note frame*
//! note    = synced checksum               8 bytes each, little-endian
//! frame   = length mark n_hosts checksum event*
//! event   = tag number* (length bytes)?   numbers in groups of 7 bits, lowest first
//! ```
//!
//! *Cost.* A URL takes its path and some five bytes, its end some six. Opening reads the whole
//! file, some million URLs a second. *Not for* finding a URL by name: that is what the seen
//! set is for.

mod frame;

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use arose_dedup::disk;

use crate::error::{Context, Error};
pub(crate) use frame::{Frame, replay, salvage};
use frame::{HEAD, PREAMBLE};

/// A host's number, in the order in which hosts were met.
pub(crate) type HostId = u32;

/// The place of a queued URL in the journal.
pub(crate) type Place = u64;

/// Something that happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event<'b> {
    /// A host was met; hosts are numbered in this order. Its `scheme://host[:port]`.
    Host(&'b str),
    /// A URL was queued.
    Url(Queued<'b>),
    /// A URL needs no further request.
    Done { host: HostId, place: Place },
    /// A URL was requested this many times without success, and is to be tried again.
    Tried {
        host: HostId,
        place: Place,
        n_tries: u8,
    },
    /// A URL is not to be requested: robots.txt or the settings do not allow it.
    Dropped { host: HostId, place: Place },
    /// A host asks for so many milliseconds between requests.
    Delay { host: HostId, millis: u64 },
    /// A host is to be left alone until then, in milliseconds since 1970.
    NotBefore { host: HostId, millis: u64 },
    /// A site, by the hash of its name, links to a host of another site.
    Referrer { host: HostId, site: u64 },
    /// So far the archive is valid: number of the file, bytes of it and of its index.
    Archive {
        file: u64,
        bytes: u64,
        index_bytes: u64,
    },
    /// The counters, a line each.
    Counters(&'b str),
    /// The crawl was left in good order: nothing was in flight.
    Closed,
    /// What a host's robots.txt says to us, as a file for everybody, and when it was read, in
    /// seconds since 1970.
    Rules {
        host: HostId,
        date: u64,
        text: &'b str,
    },
    /// Since when a host's robots.txt is not available, in seconds since 1970; 0 if it is again.
    Unreachable { host: HostId, since: u64 },
    /// So many pages of a host's site were fetched.
    Pages { host: HostId, n: u64 },
    /// A URL is lost for now: no try got a response. With place 0, all URLs of the host are.
    Lost { host: HostId, place: Place },
    /// What is lost at a host is asked for again.
    Found { host: HostId },
    /// As [`Event::Archive`], of the archive of robots.txt files.
    RobotsArchive {
        file: u64,
        bytes: u64,
        index_bytes: u64,
    },
    /// So many URLs of the seen set were on the disk.
    Seen { n_urls: u64 },
    /// All rows of the index of contents below this one are of records in the archive, and so much
    /// of its log was on the disk: its number, and bytes.
    Contents { row: u32, log: u64, bytes: u64 },
}

/// A queued URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Queued<'b> {
    /// Whose it is.
    pub(crate) host: HostId,
    /// Links from a seed.
    pub(crate) depth: u32,
    /// Orders the URLs of a host; the smallest first.
    pub(crate) priority: u64,
    /// Redirects that led here.
    pub(crate) n_redirects: u8,
    /// What it is.
    pub(crate) kind: Kind,
    /// Path and query.
    pub(crate) rest: &'b str,
}

/// What a URL is expected to lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A page.
    Page,
    /// A list of pages.
    Sitemap,
}

/// An open journal.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: disk::File,
    /// Where the last whole frame ends.
    end: u64,
    /// The number of the commit that wrote it.
    mark: u64,
    /// Hosts met, those of the next frame left out and included.
    n_hosts: u64,
    n_hosts_next: u64,
    /// How far the file is known to be on the disk, and where that is noted next.
    synced: u64,
    slot: u64,
    /// Whether it is to take the place of another one, whose commits it repeats.
    is_successor: bool,
    /// The next frame, its head left blank.
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
            file,
            end: PREAMBLE,
            mark: 0,
            n_hosts: 0,
            n_hosts_next: 0,
            synced: PREAMBLE,
            slot: 0,
            is_successor: false,
            frame: vec![0; HEAD],
        })
    }

    /// Opens a journal and hands its frames to `accept`, which may refuse one that is not known to
    /// have been on the disk; neither it nor what follows counts. Nothing is changed before
    /// [`Journal::cut`].
    pub(crate) fn open(
        path: &Path,
        accept: impl FnMut(&Frame<'_>) -> Result<bool, Error>,
    ) -> Result<Self, Error> {
        let file = disk::File::open(path).context("opening", path)?;
        let counted = replay(file.as_file(), path, accept)?;
        Ok(Self {
            path: path.to_owned(),
            file,
            end: counted.end,
            mark: counted.mark,
            n_hosts: counted.n_hosts,
            n_hosts_next: counted.n_hosts,
            synced: counted.synced,
            slot: counted.slot,
            is_successor: false,
            frame: vec![0; HEAD],
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

    /// Hands every event that is written, with its place, to `apply`.
    pub(crate) fn replay(
        &self,
        mut apply: impl FnMut(Event<'_>, Place) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let apply = |frame: &Frame<'_>| {
            let mut events = frame.events.iter();
            events.try_for_each(|&(event, place)| apply(event, place))?;
            Ok(true)
        };
        replay(self.file.as_file(), &self.path, apply).map(|_| ())
    }

    /// An empty journal beside this one, to [take its place](Self::give_way).
    pub(crate) fn successor(&self) -> Result<Self, Error> {
        Self::begin_at(&new_path(&self.path), self.mark)
    }

    /// Becomes its successor, whose places count from now on. Before that all of it is on the disk.
    pub(crate) fn give_way(&mut self, mut successor: Self) -> Result<(), Error> {
        successor.write()?;
        successor.rename(&self.path)?;
        *self = successor;
        Ok(())
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

    /// Adds an event to the next frame; returns its place.
    pub(crate) fn push(&mut self, event: Event<'_>) -> Place {
        let place = self.next_place();
        event.write(&mut self.frame);
        self.n_hosts_next += u64::from(matches!(event, Event::Host(_)));
        place
    }

    /// The place that the next event will have.
    pub(crate) fn next_place(&self) -> Place {
        self.end + self.frame.len() as u64
    }

    /// Bytes that wait to be written.
    pub(crate) fn pending(&self) -> usize {
        self.frame.len() - HEAD
    }

    /// Writes the frame. If that fails the journal is what it was, and may be written again.
    pub(crate) fn write(&mut self) -> Result<(), Error> {
        if self.pending() == 0 {
            return Ok(());
        }
        let mark = self.mark + u64::from(!self.is_successor);
        frame::seal(&mut self.frame, self.end, mark, self.n_hosts);
        let written = self.file.write_all_at(&self.frame, self.end);
        written.context("writing", &self.path)?;
        self.end += self.frame.len() as u64;
        self.mark = mark;
        self.n_hosts = self.n_hosts_next;
        self.frame.truncate(HEAD);
        // A burst should not hold its memory for ever.
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

    /// Reads a queued URL back; `buffer` is scratch.
    pub(crate) fn read<'b>(
        &self,
        place: Place,
        buffer: &'b mut Vec<u8>,
    ) -> Result<Queued<'b>, Error> {
        let damaged = || Error::damaged(&self.path, "a queued URL is not where it should be");
        if let Some(at) = place.checked_sub(self.end) {
            let bytes = self.frame.get(at as usize..).ok_or_else(damaged)?;
            buffer.clear();
            buffer.extend_from_slice(&bytes[..bytes.len().min(MAX_URL_EVENT)]);
        } else {
            // Nearly all URLs fit the first length.
            for length in [FIRST_READ, MAX_URL_EVENT] {
                let length = (self.end - place).min(length as u64) as usize;
                buffer.resize(length, 0);
                let read = self.file.as_file().read_exact_at(buffer, place);
                read.context("reading", &self.path)?;
                if is_url(buffer) {
                    break;
                }
            }
        }
        let mut reader = Reader {
            bytes: buffer,
            at: 0,
        };
        match reader.event() {
            Some(Event::Url(queued)) => Ok(queued),
            _ => Err(damaged()),
        }
    }
}

/// Bytes that are read first to find a URL, and the most that one can take.
const FIRST_READ: usize = 192;
const MAX_URL_EVENT: usize = 1 << 17;

fn is_url(bytes: &[u8]) -> bool {
    matches!(Reader { bytes, at: 0 }.event(), Some(Event::Url(_)))
}

/// Where the successor of a journal is written.
fn new_path(path: &Path) -> PathBuf {
    path.with_extension("new")
}

impl Event<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        let mut put = |tag: u8, numbers: &[u64], bytes: Option<&[u8]>| {
            out.push(tag);
            numbers.iter().for_each(|&number| push_number(out, number));
            if let Some(bytes) = bytes {
                push_number(out, bytes.len() as u64);
                out.extend_from_slice(bytes);
            }
        };
        match *self {
            Event::Host(origin) => put(1, &[], Some(origin.as_bytes())),
            Event::Url(url) => {
                let kind = match url.kind {
                    Kind::Page => 0,
                    Kind::Sitemap => 1,
                };
                let flags = u64::from(url.n_redirects) << 1 | kind;
                let numbers = [url.host.into(), url.depth.into(), url.priority, flags];
                put(2, &numbers, Some(url.rest.as_bytes()));
            }
            Event::Done { host, place } => put(3, &[host.into(), place], None),
            Event::Delay { host, millis } => put(4, &[host.into(), millis], None),
            Event::NotBefore { host, millis } => put(5, &[host.into(), millis], None),
            Event::Referrer { host, site } => put(6, &[host.into(), site], None),
            Event::Archive {
                file,
                bytes,
                index_bytes,
            } => put(7, &[file, bytes, index_bytes], None),
            Event::Counters(text) => put(8, &[], Some(text.as_bytes())),
            Event::Closed => put(9, &[], None),
            Event::Rules { host, date, text } => {
                put(10, &[host.into(), date], Some(text.as_bytes()));
            }
            Event::Unreachable { host, since } => put(11, &[host.into(), since], None),
            Event::Pages { host, n } => put(12, &[host.into(), n], None),
            Event::Lost { host, place } => put(30, &[host.into(), place], None),
            Event::Found { host } => put(31, &[host.into()], None),
            Event::RobotsArchive {
                file,
                bytes,
                index_bytes,
            } => put(13, &[file, bytes, index_bytes], None),
            Event::Tried {
                host,
                place,
                n_tries,
            } => put(20, &[host.into(), place, n_tries.into()], None),
            Event::Dropped { host, place } => put(21, &[host.into(), place], None),
            Event::Seen { n_urls } => put(40, &[n_urls], None),
            Event::Contents { row, log, bytes } => put(41, &[row.into(), log, bytes], None),
        }
    }
}

fn push_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Reads events; nothing where the bytes are none.
struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Reader<'b> {
    fn event(&mut self) -> Option<Event<'b>> {
        let tag = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(match tag {
            1 => Event::Host(self.text()?),
            2 => self.url()?,
            3 => Event::Done {
                host: self.host()?,
                place: self.number()?,
            },
            4 => Event::Delay {
                host: self.host()?,
                millis: self.number()?,
            },
            5 => Event::NotBefore {
                host: self.host()?,
                millis: self.number()?,
            },
            6 => Event::Referrer {
                host: self.host()?,
                site: self.number()?,
            },
            7 => Event::Archive {
                file: self.number()?,
                bytes: self.number()?,
                index_bytes: self.number()?,
            },
            8 => Event::Counters(self.text()?),
            9 => Event::Closed,
            10 => Event::Rules {
                host: self.host()?,
                date: self.number()?,
                text: self.text()?,
            },
            11 => Event::Unreachable {
                host: self.host()?,
                since: self.number()?,
            },
            12 => Event::Pages {
                host: self.host()?,
                n: self.number()?,
            },
            13 => Event::RobotsArchive {
                file: self.number()?,
                bytes: self.number()?,
                index_bytes: self.number()?,
            },
            20 => Event::Tried {
                host: self.host()?,
                place: self.number()?,
                n_tries: self.number()?.try_into().ok()?,
            },
            21 => Event::Dropped {
                host: self.host()?,
                place: self.number()?,
            },
            30 => Event::Lost {
                host: self.host()?,
                place: self.number()?,
            },
            31 => Event::Found { host: self.host()? },
            40 => Event::Seen {
                n_urls: self.number()?,
            },
            41 => Event::Contents {
                row: self.number()?.try_into().ok()?,
                log: self.number()?,
                bytes: self.number()?,
            },
            _ => return None,
        })
    }

    fn url(&mut self) -> Option<Event<'b>> {
        let host = self.host()?;
        let depth = self.number()?.try_into().ok()?;
        let priority = self.number()?;
        let flags = self.number()?;
        Some(Event::Url(Queued {
            host,
            depth,
            priority,
            n_redirects: (flags >> 1).try_into().ok()?,
            kind: if flags & 1 == 0 {
                Kind::Page
            } else {
                Kind::Sitemap
            },
            rest: self.text()?,
        }))
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = *self.bytes.get(self.at)?;
            self.at += 1;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn host(&mut self) -> Option<HostId> {
        self.number()?.try_into().ok()
    }

    fn slice(&mut self) -> Option<&'b [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let slice = self.bytes.get(self.at..self.at.checked_add(length)?)?;
        self.at += length;
        Some(slice)
    }

    fn text(&mut self) -> Option<&'b str> {
        std::str::from_utf8(self.slice()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs::File;

    const URL: Queued<'static> = Queued {
        host: 300,
        depth: 7,
        priority: u64::MAX,
        n_redirects: 2,
        kind: Kind::Sitemap,
        rest: "/a?b",
    };

    const EVENTS: [Event<'static>; 19] = [
        Event::Host("http://h:8080"),
        Event::Url(URL),
        Event::Done {
            host: 1,
            place: u64::MAX,
        },
        Event::Delay {
            host: 1,
            millis: 1500,
        },
        Event::NotBefore {
            host: 1,
            millis: 1 << 41,
        },
        Event::Referrer {
            host: 1,
            site: u64::MAX,
        },
        Event::Archive {
            file: 3,
            bytes: 1 << 30,
            index_bytes: 9,
        },
        Event::Counters("pages 3\n"),
        Event::Closed,
        Event::Rules {
            host: 2,
            date: 1 << 31,
            text: "User-agent: *\nDisallow: /\n",
        },
        Event::Unreachable { host: 2, since: 7 },
        Event::Pages { host: 2, n: 9 },
        Event::Lost { host: 2, place: 9 },
        Event::Found { host: 2 },
        Event::RobotsArchive {
            file: 1,
            bytes: 2,
            index_bytes: 3,
        },
        Event::Tried {
            host: 2,
            place: 1 << 40,
            n_tries: 255,
        },
        Event::Dropped { host: 2, place: 16 },
        Event::Seen { n_urls: 1 << 33 },
        Event::Contents {
            row: 4,
            log: 5,
            bytes: 6,
        },
    ];

    /// Opens a journal, or makes one; all events as they would be written in Rust.
    fn reopen(path: &Path) -> Result<(Journal, Vec<String>), Error> {
        if !path.exists() {
            return Ok((Journal::create(path)?, Vec::new()));
        }
        let mut found = Vec::new();
        let mut journal = Journal::open(path, |frame| {
            found.extend(frame.events.iter().map(|(event, _)| format!("{event:?}")));
            Ok(true)
        })?;
        journal.cut()?;
        Ok((journal, found))
    }

    fn fresh() -> (tempfile::TempDir, PathBuf, Journal) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let journal = reopen(&path).unwrap().0;
        (folder, path, journal)
    }

    #[test]
    fn events_come_back() {
        let (_folder, path, mut journal) = fresh();
        EVENTS.iter().for_each(|&event| {
            journal.push(event);
        });
        journal.write().unwrap();
        let expected: Vec<String> = EVENTS.iter().map(|event| format!("{event:?}")).collect();
        assert_eq!(reopen(&path).unwrap().1, expected);
    }

    #[test]
    fn urls_are_read_back_before_and_after_they_are_written() {
        let (_folder, path, mut journal) = fresh();
        let long = format!("/{}", "x".repeat(2000));
        let url = Queued { rest: &long, ..URL };
        let places = [journal.push(Event::Url(URL)), journal.push(Event::Url(url))];
        let mut buffer = Vec::new();
        for _ in 0..2 {
            assert_eq!(journal.read(places[0], &mut buffer).unwrap(), URL);
            assert_eq!(journal.read(places[1], &mut buffer).unwrap(), url);
            assert!(journal.read(places[0] + 1, &mut buffer).is_err());
            journal.write().unwrap();
        }
        let mut found = Vec::new();
        let opened = Journal::open(&path, |frame| {
            let events = frame.events.iter();
            let urls = events.filter(|(event, _)| matches!(event, Event::Url(_)));
            found.extend(urls.map(|(_, place)| *place));
            Ok(true)
        });
        opened.unwrap();
        assert_eq!(found, places);
    }

    /// Until it is renamed a successor does not count, and then it alone does.
    #[test]
    fn a_successor_takes_the_place() {
        let (_folder, path, mut journal) = fresh();
        journal.push(Event::Host("http://a"));
        journal.push(Event::Closed);
        journal.write().unwrap();
        let mut successor = journal.successor().unwrap();
        successor.push(Event::Host("http://a"));
        successor.write().unwrap();
        assert_eq!(reopen(&path).unwrap().1.len(), 2);
        assert!(!new_path(&path).exists());
        let mut successor = journal.successor().unwrap();
        successor.push(Event::Host("http://a"));
        let place = successor.push(Event::Url(URL));
        journal.give_way(successor).unwrap();
        assert_eq!(journal.read(place, &mut Vec::new()).unwrap(), URL);
        assert_eq!(journal.mark(), 1);
        journal.push(Event::Closed);
        journal.write().unwrap();
        let (journal, found) = reopen(&path).unwrap();
        assert_eq!((found.len(), journal.mark()), (3, 2));
    }

    /// A journal of a frame for each event, and where they end.
    fn written() -> (tempfile::TempDir, PathBuf, Vec<usize>) {
        let (folder, path, mut journal) = fresh();
        let mut ends = vec![journal.end as usize];
        for event in EVENTS {
            journal.push(event);
            journal.write().unwrap();
            ends.push(journal.end as usize);
        }
        (folder, path, ends)
    }

    /// However short a crash cuts the file, whole frames count and others do not.
    #[test]
    fn a_cut_journal_keeps_its_whole_frames() {
        let (_folder, path, ends) = written();
        let whole = std::fs::read(&path).unwrap();
        for length in ends[0]..=whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            let (mut journal, found) = reopen(&path).unwrap();
            let n_whole = ends.iter().filter(|&&end| end <= length).count();
            assert_eq!(found.len(), n_whole - 1, "{length}");
            journal.push(Event::Closed);
            journal.write().unwrap();
            assert_eq!(reopen(&path).unwrap().1.len(), found.len() + 1);
        }
    }

    /// A flipped bit is no torn end, synced or not: it is named, and nothing is changed. Only the
    /// last frame of an unsynced file may be one that was being written.
    #[test]
    fn a_flipped_bit_is_damage() {
        for is_synced in [false, true] {
            let (_folder, path, ends) = written();
            if is_synced {
                let mut journal = reopen(&path).unwrap().0;
                journal.sync().unwrap();
                assert!(journal.is_synced());
            }
            let whole = std::fs::read(&path).unwrap();
            let last = match is_synced {
                false => ends[ends.len() - 2],
                true => whole.len(),
            };
            for at in ends[0]..last {
                let mut bad = whole.clone();
                bad[at] ^= 4;
                std::fs::write(&path, &bad).unwrap();
                let error = reopen(&path).unwrap_err().to_string();
                let start = ends.iter().rev().find(|&&end| end <= at).unwrap();
                let expected = format!("is damaged at byte {start}: ");
                assert!(error.contains(&expected), "{at}: {error}");
                assert_eq!(std::fs::read(&path).unwrap(), bad);
            }
            if is_synced {
                std::fs::write(&path, &whole[..whole.len() - 1]).unwrap();
                assert!(reopen(&path).is_err());
            }
        }
    }

    /// A page that was never written is a hole, after which nothing counts; before the end of what
    /// was synced there are none.
    #[test]
    fn a_hole_is_a_torn_end() {
        let (_folder, path, mut journal) = fresh();
        let rest = "x".repeat(300);
        for n in 0..20 {
            journal.push(Event::Url(Queued { rest: &rest, ..URL }));
            journal.write().unwrap();
            if n == 9 {
                journal.sync().unwrap();
            }
        }
        let whole = std::fs::read(&path).unwrap();
        for page in 0..whole.len() / 512 {
            let mut torn = whole.clone();
            torn[page * 512..][..512].fill(0);
            if page == 0 {
                torn[..48].copy_from_slice(&whole[..48]);
            }
            std::fs::write(&path, &torn).unwrap();
            match ((page * 512) as u64) < journal.synced {
                true => assert!(reopen(&path).is_err(), "{page}"),
                false => assert!((10..20).contains(&reopen(&path).unwrap().1.len())),
            }
        }
    }

    /// Either note of how far the file was synced may be torn, but not both.
    #[test]
    fn one_note_is_enough() {
        let (_folder, path, mut journal) = fresh();
        for _ in 0..2 {
            journal.push(Event::Closed);
            journal.write().unwrap();
            journal.sync().unwrap();
        }
        let whole = std::fs::read(&path).unwrap();
        for slot in [16, 32] {
            let mut torn = whole.clone();
            torn[slot + 3] ^= 1;
            std::fs::write(&path, &torn).unwrap();
            assert_eq!(reopen(&path).unwrap().1.len(), 2);
            torn[48 - slot + 3] ^= 1;
            std::fs::write(&path, &torn).unwrap();
            let error = reopen(&path).unwrap_err().to_string();
            assert!(error.contains("damaged at byte 16"), "{error}");
        }
    }

    #[test]
    fn whole_frames_are_salvaged_from_around_the_damage() {
        let (_folder, path, ends) = written();
        let whole = std::fs::read(&path).unwrap();
        let salvaged = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            let mut n_events = 0;
            let n_lost = salvage(&File::open(&path).unwrap(), &path, |frame| {
                n_events += frame.events.len();
                Ok(())
            });
            (n_events, n_lost.unwrap())
        };
        assert_eq!(salvaged(&whole), (EVENTS.len(), 0));
        for pair in ends.windows(2) {
            let mut bad = whole.clone();
            bad[pair[0] + 5] ^= 1;
            let n_lost = (pair[1] - pair[0]) as u64;
            assert_eq!(salvaged(&bad), (EVENTS.len() - 1, n_lost));
        }
        assert_eq!(salvaged(&[]), (0, 0));
        assert_eq!(salvaged(&[7; 400]), (0, 352));
    }

    #[test]
    fn other_files_and_versions_are_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let open = || reopen(&path).unwrap_err().to_string();
        std::fs::write(&path, [7; 60]).unwrap();
        assert!(open().contains("no journal"));
        std::fs::write(&path, b"arosejrn\x02\0\0\0\0\0\0\0").unwrap();
        assert!(open().contains("version 2, not 4"));
        std::fs::write(&path, b"").unwrap();
        assert!(open().contains("damaged at byte 0"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_legal(bytes in any::<Vec<u8>>()) {
            let mut reader = Reader { bytes: &bytes, at: 0 };
            while reader.event().is_some() {}
            prop_assert!(reader.at <= bytes.len());
        }
    }
}
