//! The persistent URL pool: which URLs are to be fetched, and which are done?
//!
//! *Question.* The queue of a crawl outlives the process and may hold more URLs than memory. After
//! a kill at any moment no URL may be lost, and queue, archive and seen set must agree.
//!
//! *Idea.* One file that grows at its end. Whatever changes is an [`Event`]; the events of a second
//! or so are one *frame*, which is written at once and counts wholly or not at all. A frame also
//! says how long the archive was, so what the archive has beyond that is cut off after a crash. A
//! queued URL is in memory only as the place of its event, eight bytes; its text is read back when
//! its turn comes. Reading the file from the beginning restores the queues.
//!
//! When most of the file is about URLs that are done, a [successor](Journal::successor) with the
//! rest is written beside it and takes its place by being renamed: until then the old one counts,
//! afterwards the new one. So the file is never larger than some multiple of what is queued, and
//! opening never takes longer than reading that.
//!
//! ```text
//! journal = magic version frame*
//! frame   = length checksum event*        8 bytes each, little-endian
//! event   = tag number* (length bytes)?   numbers in groups of 7 bits, lowest first
//! ```
//!
//! *Cost.* A URL takes its path and some five bytes, its end some six. Opening reads the whole
//! file, some million URLs a second. *Not for* finding a URL by name: that is what the seen
//! set is for.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use arose::digest::digest64;

use crate::error::{Context, Error};

const MAGIC: &[u8; 8] = b"arosejrn";
const VERSION: u64 = 2;
const PREAMBLE: u64 = 16;
const FRAME_HEAD: u64 = 16;

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
    /// The counters of the statistics, eight bytes each.
    Counters(&'b [u8]),
    /// The crawl was left in good order: nothing was in flight.
    Closed,
    /// What a host's robots.txt says to us, as a file for everybody, and when it was read, in
    /// seconds since 1970.
    Rules {
        host: HostId,
        date: u64,
        text: &'b str,
    },
    /// A host's robots.txt cannot be had since then, in seconds since 1970; 0 if it can again.
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
    file: File,
    /// Where the last whole frame ends.
    end: u64,
    /// The next frame, its head left blank.
    frame: Vec<u8>,
}

impl Journal {
    /// Opens the journal and hands every event, with its place, to `apply`; makes an empty one if
    /// there is none. What a crash left behind the last whole frame is dropped.
    pub(crate) fn open(
        path: &Path,
        mut apply: impl FnMut(Event<'_>, Place) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let unfinished = new_path(path);
        if unfinished.exists() {
            std::fs::remove_file(&unfinished).context("removing", &unfinished)?;
        }
        let file = open_file(path)?;
        let length = file.metadata().context("reading", path)?.len();
        if length < PREAMBLE {
            write_preamble(&file, path)?;
        }
        let end = replay(&file, path, &mut apply)?;
        file.set_len(end).context("cutting", path)?;
        Ok(Self {
            path: path.to_owned(),
            file,
            end,
            frame: vec![0; FRAME_HEAD as usize],
        })
    }

    /// How long the file is.
    pub(crate) fn n_bytes(&self) -> u64 {
        self.end
    }

    /// Hands every event that is written, with its place, to `apply`.
    pub(crate) fn replay(
        &self,
        apply: impl FnMut(Event<'_>, Place) -> Result<(), Error>,
    ) -> Result<(), Error> {
        replay(&self.file, &self.path, apply).map(|_| ())
    }

    /// An empty journal beside this one, to [take its place](Self::give_way).
    pub(crate) fn successor(&self) -> Result<Self, Error> {
        let path = new_path(&self.path);
        let file = open_file(&path)?;
        file.set_len(0).context("cutting", &path)?;
        write_preamble(&file, &path)?;
        Ok(Self {
            path,
            file,
            end: PREAMBLE,
            frame: vec![0; FRAME_HEAD as usize],
        })
    }

    /// Becomes its successor, whose places count from now on. Before that all of it is on the disk.
    pub(crate) fn give_way(&mut self, mut successor: Self) -> Result<(), Error> {
        successor.write()?;
        successor.sync()?;
        std::fs::rename(&successor.path, &self.path).context("replacing", &self.path)?;
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let synced = File::open(folder).and_then(|folder| folder.sync_all());
        synced.context("writing", folder)?;
        successor.path.clone_from(&self.path);
        *self = successor;
        Ok(())
    }

    /// Adds an event to the next frame; returns its place.
    pub(crate) fn push(&mut self, event: Event<'_>) -> Place {
        let place = self.next_place();
        event.write(&mut self.frame);
        place
    }

    /// The place that the next event will have.
    pub(crate) fn next_place(&self) -> Place {
        self.end + self.frame.len() as u64
    }

    /// Bytes that wait to be written.
    pub(crate) fn pending(&self) -> usize {
        self.frame.len() - FRAME_HEAD as usize
    }

    /// Writes the frame. If that fails the journal is what it was, and may be written again.
    pub(crate) fn write(&mut self) -> Result<(), Error> {
        if self.pending() == 0 {
            return Ok(());
        }
        let (head, body) = self.frame.split_at_mut(FRAME_HEAD as usize);
        head[..8].copy_from_slice(&(body.len() as u64).to_le_bytes());
        head[8..].copy_from_slice(&checksum(body, self.end).to_le_bytes());
        let written = self.file.write_all_at(&self.frame, self.end);
        written.context("writing", &self.path)?;
        self.end += self.frame.len() as u64;
        self.frame.truncate(FRAME_HEAD as usize);
        // A burst should not hold its memory for ever.
        self.frame.shrink_to(1 << 20);
        Ok(())
    }

    /// Returns when all that was written is on the disk.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        self.file.sync_data().context("writing", &self.path)
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
                let read = self.file.read_exact_at(buffer, place);
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

/// Hands every event of the whole frames, with its place, to `apply`; returns where they end. The
/// file may be growing meanwhile.
pub(crate) fn replay(
    file: &File,
    path: &Path,
    mut apply: impl FnMut(Event<'_>, Place) -> Result<(), Error>,
) -> Result<u64, Error> {
    check_preamble(file, path)?;
    let length = file.metadata().context("reading", path)?.len();
    let mut end = PREAMBLE;
    let mut body = Vec::new();
    while read_frame(file, end, length, &mut body).context("reading", path)? {
        let mut reader = Reader {
            bytes: &body,
            at: 0,
        };
        while reader.at < body.len() {
            let place = end + FRAME_HEAD + reader.at as u64;
            let event = reader.event();
            let event = event.ok_or_else(|| Error::damaged(path, "an event makes no sense"))?;
            apply(event, place)?;
        }
        end += FRAME_HEAD + body.len() as u64;
    }
    Ok(end)
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

fn open_file(path: &Path) -> Result<File, Error> {
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).create(true).truncate(false);
    options.open(path).context("opening", path)
}

fn write_preamble(file: &File, path: &Path) -> Result<(), Error> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    file.write_all_at(&bytes, 0).context("writing", path)
}

fn check_preamble(file: &File, path: &Path) -> Result<(), Error> {
    let mut bytes = [0; PREAMBLE as usize];
    file.read_exact_at(&mut bytes, 0).context("reading", path)?;
    if &bytes[..8] != MAGIC {
        return Err(Error::damaged(path, "it is no journal of a crawl"));
    }
    let version = number(&bytes[8..]);
    if version != VERSION {
        return Err(Error::Mismatch {
            path: path.to_owned(),
            setting: "version",
            found: version,
            expected: VERSION,
        });
    }
    Ok(())
}

/// Reads the frame at `start` into `body`; false if there is no whole one.
fn read_frame(file: &File, start: u64, length: u64, body: &mut Vec<u8>) -> std::io::Result<bool> {
    let mut head = [0; FRAME_HEAD as usize];
    if length < start + FRAME_HEAD {
        return Ok(false);
    }
    file.read_exact_at(&mut head, start)?;
    let n_bytes = number(&head);
    if n_bytes == 0 || n_bytes > length - start - FRAME_HEAD {
        return Ok(false);
    }
    body.resize(n_bytes as usize, 0);
    file.read_exact_at(body, start + FRAME_HEAD)?;
    Ok(checksum(body, start) == number(&head[8..]))
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.first_chunk().copied().unwrap_or_default())
}

/// Of a frame at its place, so that no frame counts elsewhere.
fn checksum(body: &[u8], start: u64) -> u64 {
    digest64(body) ^ arose::mix::mix(start)
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
            Event::Counters(bytes) => put(8, &[], Some(bytes)),
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
            8 => Event::Counters(self.slice()?),
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

    const URL: Queued<'static> = Queued {
        host: 300,
        depth: 7,
        priority: u64::MAX,
        n_redirects: 2,
        kind: Kind::Sitemap,
        rest: "/a?b",
    };

    const EVENTS: [Event<'static>; 15] = [
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
        Event::Counters(&[1, 2, 3]),
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
    ];

    /// All events as they would be written in Rust.
    fn replay(path: &Path) -> (Journal, Vec<String>) {
        let mut found = Vec::new();
        let journal = Journal::open(path, |event, _| {
            found.push(format!("{event:?}"));
            Ok(())
        });
        (journal.unwrap(), found)
    }

    #[test]
    fn events_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let (mut journal, found) = replay(&path);
        assert!(found.is_empty());
        EVENTS.iter().for_each(|&event| {
            journal.push(event);
        });
        journal.write().unwrap();
        let expected: Vec<String> = EVENTS.iter().map(|event| format!("{event:?}")).collect();
        assert_eq!(replay(&path).1, expected);
    }

    #[test]
    fn urls_are_read_back_before_and_after_they_are_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let (mut journal, _) = replay(&path);
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
        let opened = Journal::open(&path, |event, place| {
            if matches!(event, Event::Url(_)) {
                found.push(place);
            }
            Ok(())
        });
        opened.unwrap();
        assert_eq!(found, places);
    }

    /// Until it is renamed a successor does not count, and then it alone does.
    #[test]
    fn a_successor_takes_the_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let (mut journal, _) = replay(&path);
        journal.push(Event::Host("http://a"));
        journal.push(Event::Closed);
        journal.write().unwrap();
        let mut successor = journal.successor().unwrap();
        successor.push(Event::Host("http://a"));
        successor.write().unwrap();
        assert_eq!(replay(&path).1.len(), 2);
        assert!(!new_path(&path).exists());
        let mut successor = journal.successor().unwrap();
        successor.push(Event::Host("http://a"));
        let place = successor.push(Event::Url(URL));
        journal.give_way(successor).unwrap();
        assert_eq!(journal.read(place, &mut Vec::new()).unwrap(), URL);
        journal.push(Event::Closed);
        journal.write().unwrap();
        assert_eq!(replay(&path).1.len(), 3);
    }

    /// However short a crash cuts the file, whole frames count and others do not.
    #[test]
    fn a_cut_journal_keeps_its_whole_frames() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let (mut journal, _) = replay(&path);
        let mut ends = vec![journal.end as usize];
        for event in EVENTS {
            journal.push(event);
            journal.write().unwrap();
            ends.push(journal.end as usize);
        }
        let whole = std::fs::read(&path).unwrap();
        for length in 0..=whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            let (mut journal, found) = replay(&path);
            let n_whole = ends.iter().filter(|&&end| end <= length).count();
            assert_eq!(found.len(), n_whole.saturating_sub(1), "{length}");
            journal.push(Event::Closed);
            journal.write().unwrap();
            assert_eq!(replay(&path).1.len(), found.len() + 1);
        }
    }

    #[test]
    fn other_files_and_versions_are_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let open = || Journal::open(&path, |_, _| Ok(())).unwrap_err().to_string();
        std::fs::write(&path, [7; 40]).unwrap();
        assert!(open().contains("no journal"));
        std::fs::write(&path, b"arosejrn\x03\0\0\0\0\0\0\0").unwrap();
        assert!(open().contains("version 3, not 2"));
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
