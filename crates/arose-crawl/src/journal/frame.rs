//! Frames of the journal: which of them are valid after a crash, and what counts as damage.
//!
//! *Question.* A byte is not what was written. Did a crash keep the end of the file from reaching
//! the disk, or was the file changed? In the first case, the end is cut off and its pages are
//! fetched again. In the second case, the crawl must stop, or it would discard intact data.
//!
//! *Idea.* After each sync, the beginning of the file notes how much was synced, alternating
//! between two positions, so that one of them is always intact. Any error before that point is
//! damage. After it, a power failure may leave any page unwritten, which then reads as zeros up to
//! its end. So a bad frame there is partial if no intact frame follows it or if it has such a hole,
//! and damaged otherwise.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use arose::digest::digest64;
use arose::mix::mix;

use super::event::Decoder;
use super::{Event, Place};
use crate::error::{Context, Error};

pub(super) const MAGIC: &[u8; 8] = b"arosejrn";
/// Since version 9, records of pages have no sketch.
pub(super) const VERSION: u64 = 9;
/// Magic, version, and two notes of how much of the file was synced.
pub(super) const PREAMBLE: u64 = 48;
/// Length, mark, number of hosts, position of the first event, checksum.
pub(super) const HEAD: usize = 40;
const CHECKSUM: usize = HEAD - 8;
/// Numbers in a header are mixed with this value, so that they do not look like unwritten bytes.
const MASK: u64 = 0xa5a5_a5a5_a5a5_a5a5;

/// An intact frame.
#[derive(Debug)]
pub(crate) struct Frame<'b> {
    /// Its begin and end in the file.
    pub(super) start: u64,
    pub(super) end: u64,
    /// The position of its first event.
    pub(super) place: Place,
    /// Whether no event was left out between two others.
    pub(super) is_dense: bool,
    /// The number of the commit that wrote it.
    pub(crate) mark: u64,
    /// Number of hosts met before it.
    pub(crate) n_hosts: u64,
    /// Whether it is known to have been on disk.
    pub(crate) is_synced: bool,
    pub(crate) events: Vec<(Event<'b>, Place)>,
}

impl Frame<'_> {
    pub(super) fn n_hosts_after(&self) -> u64 {
        let is_host = |(event, _): &&(Event<'_>, Place)| matches!(event, Event::Host(_));
        self.n_hosts + self.events.iter().filter(is_host).count() as u64
    }

    /// Returns a position after its events.
    fn places_end(&self) -> Place {
        let last = self.events.last();
        last.map_or(self.place, |(_, place)| place + (self.end - self.start))
    }
}

/// The valid part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counted {
    /// The end of the last valid frame.
    pub(super) end: u64,
    pub(super) mark: u64,
    pub(super) n_hosts: u64,
    /// A position after all events.
    pub(super) place: Place,
    pub(super) synced: u64,
    /// Where the synced size is noted next: not at the note with the largest size.
    pub(super) slot: u64,
}

/// Passes the frames to `accept` until it refuses one, and returns the valid part. The file may
/// grow in the meantime.
pub(crate) fn replay(
    file: &File,
    path: &Path,
    accept: impl FnMut(&Frame<'_>) -> Result<bool, Error>,
) -> Result<Counted, Error> {
    let (synced, slot) = check_preamble(file, path)?;
    let length = file.metadata().context("reading", path)?.len();
    if length < synced {
        return Err(Error::damaged_at(path, length, "its end is missing"));
    }
    replay_to(length, (synced, slot), file, path, accept)
}

/// Like [`replay`], for the frames before `until`, all of which are on disk.
pub(super) fn replay_synced(
    until: u64,
    file: &File,
    path: &Path,
    accept: impl FnMut(&Frame<'_>) -> Result<bool, Error>,
) -> Result<Counted, Error> {
    replay_to(until, (until, 0), file, path, accept)
}

/// Passes intact frames and their bytes to `take`, from a part of a file that contains nothing
/// else.
pub(super) fn each(
    range: std::ops::Range<u64>,
    file: &File,
    path: &Path,
    mut take: impl FnMut(&Frame<'_>, &[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let (mut start, mut body, mut bytes) = (range.start, Vec::new(), Vec::new());
    while start < range.end {
        let read = read_frame(file, start, range.end, &mut body).context("reading", path)?;
        let lost = || Error::damaged_at(path, start, "a frame does not match its checksum");
        let head = read.ok_or_else(lost)?;
        bytes.clear();
        bytes.extend_from_slice(&head);
        bytes.extend_from_slice(&body);
        let frame = decode(&head, &body, start, path)?;
        take(&frame, &bytes)?;
        start = frame.end;
    }
    Ok(())
}

fn replay_to(
    length: u64,
    (synced, slot): (u64, u64),
    file: &File,
    path: &Path,
    mut accept: impl FnMut(&Frame<'_>) -> Result<bool, Error>,
) -> Result<Counted, Error> {
    let mut counted = Counted {
        end: PREAMBLE,
        mark: 0,
        n_hosts: 0,
        place: PREAMBLE,
        synced,
        slot: 1 - slot,
    };
    let mut body = Vec::new();
    while let Some(head) =
        read_frame(file, counted.end, length, &mut body).context("reading", path)?
    {
        let mut frame = decode(&head, &body, counted.end, path)?;
        if frame.n_hosts != counted.n_hosts {
            let what = "a frame does not follow the one before";
            return Err(Error::damaged_at(path, counted.end, what));
        }
        frame.is_synced = frame.end <= synced;
        if !accept(&frame)? {
            return Ok(counted);
        }
        counted.end = frame.end;
        counted.mark = frame.mark;
        counted.n_hosts = frame.n_hosts_after();
        counted.place = counted.place.max(frame.places_end());
    }
    let is_damaged = counted.end < synced || !is_torn(file, path, counted.end, length)?;
    match is_damaged {
        true => {
            let what = "a frame does not match its checksum";
            Err(Error::damaged_at(path, counted.end, what))
        }
        false => Ok(counted),
    }
}

/// Passes every intact frame of a damaged file to `accept`, wherever it is, and returns the number
/// of bytes between them.
pub(crate) fn salvage(
    file: &File,
    path: &Path,
    mut accept: impl FnMut(&Frame<'_>) -> Result<(), Error>,
) -> Result<u64, Error> {
    let length = file.metadata().context("reading", path)?.len();
    let (mut end, mut n_lost) = (PREAMBLE.min(length), 0);
    let mut body = Vec::new();
    loop {
        let read = read_frame(file, end, length, &mut body).context("reading", path)?;
        // An intact frame with malformed contents was written by another program.
        let frame = read.and_then(|head| decode(&head, &body, end, path).ok());
        let next = match frame {
            Some(frame) => {
                accept(&frame)?;
                frame.end
            }
            None => {
                let next = next_whole(file, path, end, length)?.unwrap_or(length);
                n_lost += next - end;
                next
            }
        };
        if next >= length {
            return Ok(n_lost);
        }
        end = next;
    }
}

/// Whether the bytes from `start` on may be the result of a crash.
fn is_torn(file: &File, path: &Path, start: u64, length: u64) -> Result<bool, Error> {
    let Some(next) = next_whole(file, path, start, length)? else {
        return Ok(true);
    };
    const SECTOR: u64 = 512;
    const HOLE: usize = 4;
    let mut bytes = [0; HOLE];
    let first = (start / SECTOR + 1) * SECTOR;
    for boundary in (first..=next).step_by(SECTOR as usize) {
        if boundary < start + HOLE as u64 {
            continue;
        }
        let read = file.read_exact_at(&mut bytes, boundary - HOLE as u64);
        read.context("reading", path)?;
        if bytes == [0; HOLE] {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the position of the first intact frame after `start`.
fn next_whole(file: &File, path: &Path, start: u64, length: u64) -> Result<Option<u64>, Error> {
    const WINDOW: usize = 1 << 20;
    let mut window = Vec::new();
    let mut body = Vec::new();
    let mut from = start + 1;
    while from + (HEAD as u64) < length {
        let n_bytes = (length - from).min((WINDOW + HEAD) as u64) as usize;
        window.resize(n_bytes, 0);
        file.read_exact_at(&mut window, from)
            .context("reading", path)?;
        for (at, head) in (from..).zip(window.windows(HEAD)).take(WINDOW) {
            let n_bytes = field(head, 0);
            let is_possible = n_bytes > 0 && n_bytes <= length - at - HEAD as u64;
            if is_possible
                && read_frame(file, at, length, &mut body)
                    .context("reading", path)?
                    .is_some()
            {
                return Ok(Some(at));
            }
        }
        from += WINDOW as u64;
    }
    Ok(None)
}

fn decode<'b>(
    head: &[u8; HEAD],
    body: &'b [u8],
    start: u64,
    path: &Path,
) -> Result<Frame<'b>, Error> {
    let mut reader = Decoder { bytes: body, at: 0 };
    let mut events = Vec::new();
    let first = field(head, 3);
    let (mut place, mut is_dense) = (first, true);
    while reader.at < body.len() {
        let before = reader.at;
        let event = reader.event();
        let at = start + (HEAD + before) as u64;
        let unknown = || Error::damaged_at(path, at, "an event is malformed");
        let n_bytes = match event.ok_or_else(unknown)? {
            Event::Skip { n_bytes } => {
                is_dense = false;
                n_bytes
            }
            event => {
                events.push((event, place));
                (reader.at - before) as u64
            }
        };
        place = place.checked_add(n_bytes).ok_or_else(unknown)?;
    }
    Ok(Frame {
        start,
        end: start + (HEAD + body.len()) as u64,
        place: first,
        is_dense,
        mark: field(head, 1),
        n_hosts: field(head, 2),
        is_synced: false,
        events,
    })
}

/// Reads the frame at `start` into `body`; returns none if there is no intact frame.
fn read_frame(
    file: &File,
    start: u64,
    length: u64,
    body: &mut Vec<u8>,
) -> std::io::Result<Option<[u8; HEAD]>> {
    let mut head = [0; HEAD];
    if length < start + HEAD as u64 {
        return Ok(None);
    }
    file.read_exact_at(&mut head, start)?;
    let n_bytes = field(&head, 0);
    if n_bytes == 0 || n_bytes > length - start - HEAD as u64 {
        return Ok(None);
    }
    body.resize(n_bytes as usize, 0);
    file.read_exact_at(body, start + HEAD as u64)?;
    let is_whole = checksum(&head[8..CHECKSUM], body, start) == number(&head[CHECKSUM..]);
    Ok(is_whole.then_some(head))
}

/// The header of a frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Title {
    pub(super) mark: u64,
    pub(super) n_hosts: u64,
    pub(super) place: Place,
}

/// Fills in the header of a frame to be written at `start`.
pub(super) fn seal(frame: &mut [u8], start: u64, title: Title) {
    let (head, body) = frame.split_at_mut(HEAD);
    let numbers = [body.len() as u64, title.mark, title.n_hosts, title.place];
    for (field, number) in head.as_chunks_mut::<8>().0.iter_mut().zip(numbers) {
        *field = (number ^ MASK).to_le_bytes();
    }
    let sum = checksum(&head[8..CHECKSUM], body, start);
    head[CHECKSUM..].copy_from_slice(&sum.to_le_bytes());
}

/// The checksum of a frame at its position, so that no frame is valid elsewhere.
fn checksum(head: &[u8], body: &[u8], start: u64) -> u64 {
    digest64(body) ^ mix(start) ^ mix(digest64(head))
}

/// The first bytes of a file of which nothing is synced yet.
pub(super) fn preamble() -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    (0..2).for_each(|slot| bytes.extend(note(PREAMBLE, slot)));
    bytes
}

/// Returns the position and content of the note of how much was synced.
pub(super) fn note_at(synced: u64, slot: u64) -> (u64, [u8; 16]) {
    (16 + 16 * slot, note(synced, slot))
}

fn note(synced: u64, slot: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&synced.to_le_bytes());
    let sum = mix(digest64(&bytes[..8]) ^ mix(slot));
    bytes[8..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// Returns how much of the file was synced, and which note says so.
fn check_preamble(file: &File, path: &Path) -> Result<(u64, u64), Error> {
    let mut bytes = [0; PREAMBLE as usize];
    let length = file.metadata().context("reading", path)?.len();
    if length < 16 {
        return Err(Error::damaged_at(path, length, "its beginning is missing"));
    }
    let n_read = length.min(PREAMBLE) as usize;
    let read = file.read_exact_at(&mut bytes[..n_read], 0);
    read.context("reading", path)?;
    if &bytes[..8] != MAGIC {
        return Err(Error::damaged_at(
            path,
            0,
            "it is not the journal of a crawl",
        ));
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
    let notes = (0..2).filter_map(|slot| {
        let bytes = &bytes[16 + 16 * slot as usize..][..16];
        let synced = number(bytes);
        (bytes == note(synced, slot)).then_some((synced, slot))
    });
    let unknown = || Error::damaged_at(path, 16, "the notes of how much was synced are unreadable");
    notes.max().ok_or_else(unknown)
}

/// A number of a header.
fn field(head: &[u8], at: usize) -> u64 {
    number(&head[8 * at..]) ^ MASK
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.first_chunk().copied().unwrap_or_default())
}
