//! The log: records that are in no run yet, so that no crash loses them.
//!
//! ```text
//! log   = frame*
//! frame = n_records strings_end checksum record*     8 bytes each, little-endian
//! ```
//!
//! One commit is one frame and one write. A frame that a crash cut short has the wrong checksum; it
//! and what follows are overwritten by the next commit.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use arose::digest::digest64;

use super::record::{Record, Width};
use crate::error::{Context, Error};

const HEAD_BYTES: usize = 24;

/// An open log.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) path: PathBuf,
    file: File,
    width: Width,
    /// Where the last whole frame ends.
    end: u64,
}

/// What a log held when it was opened.
#[derive(Debug, Default)]
pub(super) struct Replay {
    pub(super) records: Vec<Record>,
    /// How much of the kept strings its last frame vouches for.
    pub(super) strings_end: Option<u64>,
}

impl Log {
    /// Starts an empty log.
    pub(super) fn create(path: &Path, width: Width) -> Result<Self, Error> {
        let file = File::create(path).context("creating", path)?;
        Ok(Self {
            path: path.to_owned(),
            file,
            width,
            end: 0,
        })
    }

    /// Opens a log and reads its whole frames, up to one that speaks of more kept strings than
    /// there are bytes: after a loss of power the log may be ahead of them.
    pub(super) fn open(
        path: &Path,
        width: Width,
        n_string_bytes: u64,
    ) -> Result<(Self, Replay), Error> {
        let bytes = std::fs::read(path).context("reading", path)?;
        let mut replay = Replay::default();
        let mut rest = bytes.as_slice();
        while let Some(frame) = read_frame(rest, width)
            && frame.strings_end <= n_string_bytes
        {
            replay.records.extend(frame.records);
            replay.strings_end = Some(frame.strings_end);
            rest = frame.rest;
        }
        let file = OpenOptions::new()
            .write(true)
            .open(path)
            .context("opening", path)?;
        let log = Self {
            path: path.to_owned(),
            file,
            width,
            end: (bytes.len() - rest.len()) as u64,
        };
        Ok((log, replay))
    }

    /// Appends a frame. If that fails, the log is what it was.
    pub(super) fn append(&mut self, records: &[Record], strings_end: u64) -> Result<(), Error> {
        let mut frame = vec![0; HEAD_BYTES];
        for record in records {
            record.write(self.width, &mut frame);
        }
        frame[..8].copy_from_slice(&(records.len() as u64).to_le_bytes());
        frame[8..16].copy_from_slice(&strings_end.to_le_bytes());
        let checksum = checksum(&frame);
        frame[16..HEAD_BYTES].copy_from_slice(&checksum.to_le_bytes());
        self.file
            .write_all_at(&frame, self.end)
            .context("writing", &self.path)?;
        self.end += frame.len() as u64;
        Ok(())
    }

    /// Returns when all frames are on the disk.
    pub(super) fn sync(&self) -> Result<(), Error> {
        self.file.sync_data().context("writing", &self.path)
    }
}

/// Of a frame with a checksum of zero.
fn checksum(frame: &[u8]) -> u64 {
    digest64(frame)
}

/// A frame, and what follows it.
struct Frame<'b> {
    records: Vec<Record>,
    strings_end: u64,
    rest: &'b [u8],
}

/// Reads the frame at the beginning of `bytes`, if it is whole.
fn read_frame(bytes: &[u8], width: Width) -> Option<Frame<'_>> {
    let head = bytes.first_chunk::<HEAD_BYTES>()?;
    let number = |at: usize| {
        let bytes = head[at..].first_chunk::<8>().copied();
        u64::from_le_bytes(bytes.unwrap_or_default())
    };
    let (n_records, strings_end, expected) = (number(0), number(8), number(16));
    let n_bytes = usize::try_from(n_records)
        .ok()?
        .checked_mul(width.n_bytes())?
        .checked_add(HEAD_BYTES)?;
    let (frame, rest) = bytes.split_at_checked(n_bytes)?;
    let mut blank = frame.to_vec();
    blank[16..HEAD_BYTES].fill(0);
    if checksum(&blank) != expected {
        return None;
    }
    let records = frame[HEAD_BYTES..].chunks_exact(width.n_bytes());
    Some(Frame {
        records: records.map(Record::read).collect(),
        strings_end,
        rest,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(n: u64) -> Record {
        Record {
            key: u128::from(n) << 64 | 7,
            place: n,
        }
    }

    /// However short a crash cuts the file, the frames before the cut are there, and a further one
    /// can be written.
    #[test]
    fn a_cut_log_keeps_its_whole_frames() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let width = Width::KeyAndPlace;
        let frames: [Vec<Record>; 3] = [
            (0..3).map(record).collect(),
            vec![record(3)],
            (4..9).map(record).collect(),
        ];
        let mut log = Log::create(&path, width).unwrap();
        let mut ends = vec![0];
        for frame in &frames {
            log.append(frame, frame.len() as u64).unwrap();
            ends.push(log.end as usize);
        }
        let whole = std::fs::read(&path).unwrap();
        for length in 0..=whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            let (mut log, replay) = Log::open(&path, width, 9).unwrap();
            let n_whole = ends.iter().filter(|&&end| end <= length).count() - 1;
            assert_eq!(replay.records, frames[..n_whole].concat(), "{length}");
            log.append(&[record(42)], 0).unwrap();
            let (_, again) = Log::open(&path, width, 9).unwrap();
            assert_eq!(again.records.last(), Some(&record(42)), "{length}");
            assert_eq!(again.records.len(), replay.records.len() + 1);
        }
    }

    #[test]
    fn a_log_ahead_of_the_strings_is_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut log = Log::create(&path, Width::KeyAndPlace).unwrap();
        log.append(&[record(1)], 10).unwrap();
        log.append(&[record(2)], 20).unwrap();
        let (_, replay) = Log::open(&path, Width::KeyAndPlace, 19).unwrap();
        assert_eq!(replay.records, [record(1)]);
        assert_eq!(replay.strings_end, Some(10));
    }

    #[test]
    fn a_changed_byte_ends_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut log = Log::create(&path, Width::Key).unwrap();
        log.append(&[record(1)], 0).unwrap();
        let good = std::fs::read(&path).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            std::fs::write(&path, &bad).unwrap();
            let (_, replay) = Log::open(&path, Width::Key, 0).unwrap();
            assert!(replay.records.is_empty(), "{at}");
        }
    }
}
