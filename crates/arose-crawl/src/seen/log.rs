//! The log: records that are not in a sorted run yet, so that a crash does not lose them.
//!
//! ```text
//! log   = frame*
//! frame = n_records strings_end mark checksum record*     8 bytes each, little-endian
//! ```
//!
//! One commit is one frame and one write. A frame that a crash left partial has the wrong checksum;
//! it is cut off with everything after it. So are frames with a higher mark than the caller knows:
//! after a power failure, their counterparts elsewhere may not be on the disk.

use std::path::{Path, PathBuf};

use arose::digest::digest64;
use arose::mix::mix;
use arose_dedup::disk::File;

use super::record::{KeyRecord, Width};
use crate::error::{Context, Error};

const HEAD_BYTES: usize = 32;
const CHECKSUM: usize = 24;

/// An open log.
#[derive(Debug)]
pub(super) struct KeyLog {
    pub(super) path: PathBuf,
    file: File,
    width: Width,
    /// The end of the last complete frame.
    end: u64,
}

/// The contents of a log when it was opened.
#[derive(Debug, Default)]
pub(super) struct Replay {
    pub(super) records: Vec<KeyRecord>,
    /// The length of the kept strings that its last frame confirms.
    pub(super) strings_end: Option<u64>,
    /// The mark of its last frame.
    pub(super) mark: Option<u64>,
    /// The end of that frame.
    end: u64,
}

impl KeyLog {
    /// Creates an empty log.
    pub(super) fn create(path: &Path, width: Width) -> Result<Self, Error> {
        let file = File::create(path).context("creating", path)?;
        Ok(Self {
            path: path.to_owned(),
            file,
            width,
            end: 0,
        })
    }

    /// Opens a log, reads its [valid](Valid) frames and cuts off the rest.
    pub(super) fn open(path: &Path, width: Width, valid: Valid) -> Result<(Self, Replay), Error> {
        let file = File::open(path).context("opening", path)?;
        let replay = read(path, width, valid)?;
        let metadata = file.as_file().metadata().context("reading", path)?;
        if metadata.len() > replay.end {
            let cut = file.set_len(replay.end).and_then(|()| file.sync());
            cut.context("cutting", path)?;
        }
        let log = Self {
            path: path.to_owned(),
            file,
            width,
            end: replay.end,
        };
        Ok((log, replay))
    }

    /// Appends a frame. On failure, the log is unchanged.
    pub(super) fn append(
        &mut self,
        records: &[KeyRecord],
        strings_end: u64,
        mark: u64,
    ) -> Result<(), Error> {
        let mut frame = vec![0; HEAD_BYTES];
        for record in records {
            record.write(self.width, &mut frame);
        }
        frame[..8].copy_from_slice(&(records.len() as u64).to_le_bytes());
        frame[8..16].copy_from_slice(&strings_end.to_le_bytes());
        frame[16..CHECKSUM].copy_from_slice(&mark.to_le_bytes());
        let checksum = checksum(&frame, self.end);
        frame[CHECKSUM..HEAD_BYTES].copy_from_slice(&checksum.to_le_bytes());
        self.file
            .write_all_at(&frame, self.end)
            .context("writing", &self.path)?;
        self.end += frame.len() as u64;
        Ok(())
    }

    /// Returns when all frames are on the disk.
    pub(super) fn sync(&self) -> Result<(), Error> {
        self.file.sync().context("writing", &self.path)
    }
}

/// Which frames of a log are valid.
#[derive(Debug, Clone, Copy)]
pub(super) struct Valid {
    /// Those that refer to at most this many bytes of kept strings: after a power failure, the log
    /// may be ahead of them.
    pub(super) n_string_bytes: u64,
    /// Those up to this mark.
    pub(super) until: u64,
}

/// Reads the valid frames of a log.
pub(super) fn read(path: &Path, width: Width, valid: Valid) -> Result<Replay, Error> {
    let bytes = std::fs::read(path).context("reading", path)?;
    let mut replay = Replay::default();
    let mut rest = bytes.as_slice();
    while let Some(frame) = read_frame(rest, width, replay.end)
        && frame.strings_end <= valid.n_string_bytes
        && frame.mark <= valid.until
    {
        replay.records.extend(frame.records);
        replay.strings_end = Some(frame.strings_end);
        replay.mark = Some(frame.mark);
        rest = frame.rest;
        replay.end = (bytes.len() - rest.len()) as u64;
    }
    Ok(replay)
}

/// Returns the checksum of a frame whose checksum field is zero, at its position.
fn checksum(frame: &[u8], start: u64) -> u64 {
    digest64(frame) ^ mix(start)
}

/// A frame, and the bytes after it.
struct LogFrame<'b> {
    records: Vec<KeyRecord>,
    strings_end: u64,
    mark: u64,
    rest: &'b [u8],
}

/// Reads the frame at the beginning of `bytes`, if it is complete.
fn read_frame(bytes: &[u8], width: Width, start: u64) -> Option<LogFrame<'_>> {
    let head = bytes.first_chunk::<HEAD_BYTES>()?;
    let number = |at: usize| {
        let bytes = head[at..].first_chunk::<8>().copied();
        u64::from_le_bytes(bytes.unwrap_or_default())
    };
    let (n_records, strings_end, expected) = (number(0), number(8), number(CHECKSUM));
    let n_bytes = usize::try_from(n_records)
        .ok()?
        .checked_mul(width.n_bytes())?
        .checked_add(HEAD_BYTES)?;
    let (frame, rest) = bytes.split_at_checked(n_bytes)?;
    let mut blank = frame.to_vec();
    blank[CHECKSUM..HEAD_BYTES].fill(0);
    if checksum(&blank, start) != expected {
        return None;
    }
    let records = frame[HEAD_BYTES..].chunks_exact(width.n_bytes());
    Some(LogFrame {
        records: records.map(KeyRecord::read).collect(),
        strings_end,
        mark: number(16),
        rest,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Valid = Valid {
        n_string_bytes: 9,
        until: u64::MAX,
    };

    fn record(n: u64) -> KeyRecord {
        KeyRecord {
            key: u128::from(n) << 64 | 7,
            place: n,
        }
    }

    /// Wherever a crash cuts the file, the frames before the cut are there, and another one can be
    /// written.
    #[test]
    fn a_cut_log_keeps_its_whole_frames() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let width = Width::KeyAndPlace;
        let frames: [Vec<KeyRecord>; 3] = [
            (0..3).map(record).collect(),
            vec![record(3)],
            (4..9).map(record).collect(),
        ];
        let mut log = KeyLog::create(&path, width).unwrap();
        let mut ends = vec![0];
        for frame in &frames {
            log.append(frame, frame.len() as u64, 1).unwrap();
            ends.push(log.end as usize);
        }
        let whole = std::fs::read(&path).unwrap();
        for length in 0..=whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            let (mut log, replay) = KeyLog::open(&path, width, ALL).unwrap();
            let n_whole = ends.iter().filter(|&&end| end <= length).count() - 1;
            assert_eq!(replay.records, frames[..n_whole].concat(), "{length}");
            log.append(&[record(42)], 0, 1).unwrap();
            let (_, again) = KeyLog::open(&path, width, ALL).unwrap();
            assert_eq!(again.records.last(), Some(&record(42)), "{length}");
            assert_eq!(again.records.len(), replay.records.len() + 1);
        }
    }

    #[test]
    fn a_log_ahead_of_the_strings_is_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut log = KeyLog::create(&path, Width::KeyAndPlace).unwrap();
        log.append(&[record(1)], 10, 1).unwrap();
        log.append(&[record(2)], 20, 2).unwrap();
        let valid = Valid {
            n_string_bytes: 19,
            ..ALL
        };
        let (_, replay) = KeyLog::open(&path, Width::KeyAndPlace, valid).unwrap();
        assert_eq!(replay.records, [record(1)]);
        assert_eq!(replay.strings_end, Some(10));
    }

    /// Frames with a higher mark are cut off, and do not reappear after the next frame.
    #[test]
    fn a_log_counts_up_to_a_mark() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut log = KeyLog::create(&path, Width::Key).unwrap();
        for mark in 1..5 {
            log.append(&[record(mark)], 0, mark).unwrap();
        }
        let valid = Valid { until: 2, ..ALL };
        let (mut log, replay) = KeyLog::open(&path, Width::Key, valid).unwrap();
        assert_eq!((replay.records.len(), replay.mark), (2, Some(2)));
        log.append(&[record(9)], 0, 3).unwrap();
        let (_, replay) = KeyLog::open(&path, Width::Key, ALL).unwrap();
        assert_eq!((replay.records.len(), replay.mark), (3, Some(3)));
    }

    #[test]
    fn a_changed_byte_ends_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut log = KeyLog::create(&path, Width::Key).unwrap();
        log.append(&[record(1)], 0, 1).unwrap();
        let good = std::fs::read(&path).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            std::fs::write(&path, &bad).unwrap();
            let (_, replay) = KeyLog::open(&path, Width::Key, ALL).unwrap();
            assert!(replay.records.is_empty(), "{at}");
        }
    }
}
