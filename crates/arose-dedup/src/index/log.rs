//! The log: all changes since the last sorted run was written, so that no acknowledged change is
//! lost.
//!
//! Changes are appended in *frames*. A frame has a checksum of its head and one of its body, and is
//! atomic. A process may die while it appends, so the last frame may be partial. That frame was
//! never acknowledged and is dropped. Any other frame that does not match its checksum is damage.
//! If the caller knows which part of the log was on disk ([`super::Committed`]), later frames may
//! be partial after a power failure and are dropped too.

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arose::digest::{Digest, digest64};

use super::Error;
use super::file::{Content, NumberReader, PREAMBLE_BYTES, u32_at, u64_at};
use super::sketch::{Pairs, SiteTag, Sketch};
use crate::disk::File;

/// One change.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum LogChange {
    Insert(String, Sketch),
    /// The document in this row was removed.
    Remove(u32),
    /// A page of a site was counted, which adds one to each of these numbers.
    Count(Vec<u64>),
}

/// Bytes before the body of a frame: length, checksum of the length, checksum of the body.
const HEAD_BYTES: usize = 16;

/// Maximum bytes of a frame's body.
pub(super) const MAX_FRAME: usize = 1 << 30;

/// A log that can be appended to.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) file: Arc<File>,
    pub(super) path: PathBuf,
    pub(super) number: u64,
    /// Length up to the end of the last complete frame.
    pub(super) n_bytes: u64,
    is_broken: bool,
}

impl Log {
    /// Starts an empty log.
    pub(super) fn create(path: &Path, number: u64) -> Result<Self, Error> {
        let file = File::create(path).map_err(Error::io("create", path))?;
        file.write_all_at(&Content::Log.preamble(), 0)
            .and_then(|()| file.sync())
            .map_err(Error::io("write", path))?;
        Ok(Self::new(file, path, number, PREAMBLE_BYTES as u64))
    }

    /// Opens a log for appending, and drops a partial frame at its end.
    pub(super) fn open(path: &Path, number: u64, n_bytes: u64) -> Result<Self, Error> {
        let file = File::open(path).map_err(Error::io("open", path))?;
        let metadata = file.as_file().metadata().map_err(Error::io("read", path))?;
        if metadata.len() > n_bytes {
            let cut = file.set_len(n_bytes).and_then(|()| file.sync());
            cut.map_err(Error::io("write", path))?;
        }
        Ok(Self::new(file, path, number, n_bytes))
    }

    fn new(file: File, path: &Path, number: u64, n_bytes: u64) -> Self {
        Self {
            file: Arc::new(file),
            path: path.to_owned(),
            number,
            n_bytes,
            is_broken: false,
        }
    }

    /// Makes all further appends fail.
    pub(super) fn refuse(&mut self) {
        self.is_broken = true;
    }

    /// Appends a frame. If that fails, the log is unchanged, unless the start of the frame cannot
    /// be removed: then all further appends fail.
    pub(super) fn append(&mut self, frame: &Frame) -> Result<(), Error> {
        if self.is_broken {
            return Err(Error::Broken);
        }
        let bytes = frame.finish()?;
        match self.file.write_all_at(&bytes, self.n_bytes) {
            Ok(()) => {
                self.n_bytes += bytes.len() as u64;
                Ok(())
            }
            Err(error) => {
                self.is_broken = self.file.set_len(self.n_bytes).is_err();
                Err(Error::io("write", &self.path)(error))
            }
        }
    }
}

/// A frame of changes that take effect together or not at all.
#[derive(Debug)]
pub(super) struct Frame {
    bytes: Vec<u8>,
}

impl Frame {
    pub(super) fn new() -> Self {
        let bytes = vec![0; HEAD_BYTES];
        Self { bytes }
    }

    pub(super) fn insert(&mut self, name: &str, sketch: &Sketch) {
        let bytes = &mut self.bytes;
        // A document that is still to be weighed has word pairs instead of words.
        bytes.push(if sketch.pairs.is_some() { 4 } else { 1 });
        bytes.extend((name.len() as u16).to_le_bytes());
        bytes.extend(name.as_bytes());
        bytes.extend(sketch.digest.0.to_le_bytes());
        bytes.extend(sketch.site.map_or(0, |site| site.0.get()).to_le_bytes());
        bytes.push(sketch.is_short.into());
        if let Some(pairs) = &sketch.pairs {
            bytes.push(pairs.page.is_some().into());
            bytes.extend(pairs.page.unwrap_or(0).to_le_bytes());
            push_all(bytes, &pairs.shingles);
            return;
        }
        bytes.extend((sketch.words.len() as u16).to_le_bytes());
        let words = sketch.words.iter();
        words.for_each(|word| bytes.extend(word.to_le_bytes()));
    }

    pub(super) fn remove(&mut self, row: u32) {
        self.bytes.push(2);
        self.bytes.extend(row.to_le_bytes());
    }

    pub(super) fn count(&mut self, keys: &[u64]) {
        if !keys.is_empty() {
            self.bytes.push(3);
            push_all(&mut self.bytes, keys);
        }
    }

    fn finish(&self) -> Result<Vec<u8>, Error> {
        let mut bytes = self.bytes.clone();
        let (head, body) = bytes.split_at_mut(HEAD_BYTES);
        if body.len() > MAX_FRAME {
            return Err(Error::parameter("batch", body.len(), "at most a gigabyte"));
        }
        head[..4].copy_from_slice(&(body.len() as u32).to_le_bytes());
        head[8..].copy_from_slice(&digest64(body).to_le_bytes());
        let check = head_check(head);
        head[4..8].copy_from_slice(&check.to_le_bytes());
        Ok(bytes)
    }
}

/// Returns the changes in a log, and its length up to the last complete frame. Only frames after
/// `n_safe` bytes may be partial: the rest is known to have been on disk.
pub(super) fn replay(
    path: &Path,
    n_safe: u64,
    mut apply: impl FnMut(LogChange) -> Result<(), Error>,
) -> Result<u64, Error> {
    let file = fs::File::open(path).map_err(Error::io("open", path))?;
    let mut file = BufReader::new(file);
    let mut head = [0; PREAMBLE_BYTES];
    let n = read_up_to(&mut file, &mut head, path)?;
    Content::Log.check_preamble(&head[..n], path)?;
    let mut place = PREAMBLE_BYTES as u64;
    let mut body = Vec::new();
    loop {
        let mut head = [0; HEAD_BYTES];
        if read_up_to(&mut file, &mut head, path)? < HEAD_BYTES {
            break;
        }
        if head_check(&head) != u32_at(&head, 4) {
            // After a power failure, space that was allocated to the file but never written reads
            // as zeros.
            if place >= n_safe || head == [0; HEAD_BYTES] && is_blank(&mut file, path)? {
                break;
            }
            return Err(Error::damaged(path, format!("bad frame at byte {place}")));
        }
        // Memory grows with what there is to read, whatever the head says.
        let n = u32_at(&head, 0).into();
        body.clear();
        let read = file.by_ref().take(n).read_to_end(&mut body);
        if (read.map_err(Error::io("read", path))? as u64) < n {
            break;
        }
        if digest64(&body) != u64_at(&head, 8) {
            if place >= n_safe {
                break;
            }
            return Err(Error::damaged(path, format!("bad frame at byte {place}")));
        }
        let mut fields = NumberReader::new(&body, path);
        while !fields.is_empty() {
            apply(LogChange::decode(&mut fields, path)?)?;
        }
        place += HEAD_BYTES as u64 + n;
    }
    Ok(place)
}

/// Fills the buffer as far as the file goes. Returns the number of bytes.
fn read_up_to(file: &mut impl Read, buffer: &mut [u8], path: &Path) -> Result<usize, Error> {
    let mut n = 0;
    while n < buffer.len() {
        match file.read(&mut buffer[n..]) {
            Ok(0) => break,
            Ok(more) => n += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::io("read", path)(error)),
        }
    }
    Ok(n)
}

/// Returns whether the rest of the file is zeros.
fn is_blank(file: &mut impl BufRead, path: &Path) -> Result<bool, Error> {
    loop {
        let bytes = file.fill_buf().map_err(Error::io("read", path))?;
        if bytes.is_empty() {
            return Ok(true);
        }
        if bytes.iter().any(|&byte| byte != 0) {
            return Ok(false);
        }
        let n = bytes.len();
        file.consume(n);
    }
}

impl LogChange {
    fn decode(fields: &mut NumberReader<'_>, path: &Path) -> Result<Self, Error> {
        let kind = fields.u8()?;
        match kind {
            1 | 4 => {
                let n_name = fields.u16()?.into();
                let name = String::from_utf8(fields.bytes(n_name)?.to_vec());
                let name = name.map_err(|_| Error::damaged(path, "a name is not text"))?;
                let digest = u128::from(fields.u64()?) | u128::from(fields.u64()?) << 64;
                let mut sketch = Sketch {
                    digest: Digest(digest),
                    site: NonZeroU32::new(fields.u32()?).map(SiteTag),
                    is_short: fields.u8()? != 0,
                    words: Vec::new(),
                    pairs: None,
                };
                match kind {
                    1 => {
                        let n = fields.u16()?;
                        sketch.words = numbers(fields, n.into())?;
                    }
                    _ => sketch.pairs = Some(pairs(fields)?),
                }
                Ok(Self::Insert(name, sketch))
            }
            2 => Ok(Self::Remove(fields.u32()?)),
            3 => {
                let n = fields.u32()?;
                Ok(Self::Count(numbers(fields, n)?))
            }
            _ => Err(Error::damaged(path, "an unknown kind of change")),
        }
    }
}

fn push_all(bytes: &mut Vec<u8>, numbers: &[u64]) {
    bytes.extend((numbers.len() as u32).to_le_bytes());
    numbers
        .iter()
        .for_each(|number| bytes.extend(number.to_le_bytes()));
}

fn numbers(fields: &mut NumberReader<'_>, n: u32) -> Result<Vec<u64>, Error> {
    (0..n).map(|_| fields.u64()).collect()
}

fn pairs(fields: &mut NumberReader<'_>) -> Result<Pairs, Error> {
    let has_page = fields.u8()? != 0;
    let page = fields.u64()?;
    let n = fields.u32()?;
    Ok(Pairs {
        page: has_page.then_some(page),
        shingles: numbers(fields, n)?,
    })
}

/// The checksum of the length and of the checksum of the body.
fn head_check(head: &[u8]) -> u32 {
    let mut content = [0; 12];
    content[..4].copy_from_slice(&head[..4]);
    content[4..].copy_from_slice(&head[8..16]);
    digest64(&content) as u32
}
