//! File names, preambles, trailers, checksums and renaming, common to all files of an index.
//!
//! Every file starts with a *preamble* with its type and version. Sealed files are written once,
//! from start to end, and close with a *trailer*, a checksum of everything before it. They appear
//! under their name only when they are complete and on disk.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use arose::digest::digest64;
use xxhash_rust::xxh3::Xxh3Default;

use super::Error;
use crate::disk;

/// The newest format this program knows.
pub(super) const VERSION: u16 = 2;

/// The first bytes of every file of an index.
const MAGIC: [u8; 8] = *b"AROSEIDX";

/// The bytes before and after the body.
pub(super) const PREAMBLE_BYTES: usize = 16;
pub(super) const TRAILER_BYTES: usize = 24;

/// The content of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    Manifest,
    Log,
    Records,
    Run,
    Dead,
    SiteCounts,
}

impl Content {
    const ALL: [Self; 6] = [
        Self::Manifest,
        Self::Log,
        Self::Records,
        Self::Run,
        Self::Dead,
        Self::SiteCounts,
    ];

    fn number(self) -> u16 {
        match self {
            Self::Manifest => 1,
            Self::Log => 2,
            Self::Records => 3,
            Self::Run => 4,
            Self::Dead => 5,
            Self::SiteCounts => 6,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Manifest => "manifest",
            Self::Log => "log",
            Self::Records => "records",
            Self::Run => "run",
            Self::Dead => "dead",
            Self::SiteCounts => "counts",
        }
    }

    /// Returns the file with this content and number. There is only one manifest.
    pub(super) fn path(self, folder: &Path, number: u64) -> PathBuf {
        match self {
            Self::Manifest => folder.join(self.name()),
            _ => folder.join(format!("{}-{number:06}", self.name())),
        }
    }

    /// Returns content and number of a file with this name; none if it does not belong to an index.
    pub(super) fn of_name(name: &str) -> Option<(Self, u64)> {
        let (stem, number) = name.split_once('-')?;
        let content = Self::ALL
            .into_iter()
            .find(|content| content.name() == stem)?;
        Some((content, number.parse().ok()?))
    }

    /// Returns the first bytes of such a file.
    pub(super) fn preamble(self) -> [u8; PREAMBLE_BYTES] {
        let mut bytes = [0; PREAMBLE_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&self.number().to_le_bytes());
        bytes[10..12].copy_from_slice(&VERSION.to_le_bytes());
        let check = digest64(&bytes[..12]) as u32;
        bytes[12..].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    /// Returns an error for bytes without the preamble of such a file.
    pub(super) fn check_preamble(self, bytes: &[u8], path: &Path) -> Result<(), Error> {
        let foreign = || Error::Foreign {
            path: path.to_owned(),
        };
        let bytes = bytes.first_chunk::<PREAMBLE_BYTES>().ok_or_else(foreign)?;
        if bytes[..8] != MAGIC {
            return Err(foreign());
        }
        if digest64(&bytes[..12]) as u32 != u32_at(bytes, 12) {
            return Err(Error::damaged(path, "its preamble is invalid"));
        }
        let [number, version] = [8, 10].map(|at| u16::from_le_bytes([bytes[at], bytes[at + 1]]));
        if version < VERSION {
            return Err(Error::Older {
                path: path.to_owned(),
                version,
                known: VERSION,
            });
        }
        if version > VERSION {
            return Err(Error::Newer {
                path: path.to_owned(),
                version,
                known: VERSION,
            });
        }
        if number != self.number() {
            let what = format!("it is not a {}", self.name());
            return Err(Error::damaged(path, what));
        }
        Ok(())
    }
}

/// A writer of a sealed file.
pub(super) struct Sealer {
    file: BufWriter<disk::File>,
    path: PathBuf,
    hasher: Xxh3Default,
    n_bytes: u64,
}

impl Sealer {
    /// Begins a file under a temporary name.
    pub(super) fn create(content: Content, path: &Path) -> Result<Self, Error> {
        let unfinished = unfinished(path);
        let file = disk::File::create(&unfinished).map_err(Error::io("create", &unfinished))?;
        let mut sealer = Self {
            file: BufWriter::with_capacity(1 << 18, file),
            path: path.to_owned(),
            hasher: Xxh3Default::new(),
            n_bytes: 0,
        };
        sealer.write(&content.preamble())?;
        Ok(sealer)
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.hasher.update(bytes);
        self.n_bytes += bytes.len() as u64;
        self.file
            .write_all(bytes)
            .map_err(Error::io("write", &self.path))
    }

    /// Closes the file, waits until it is on disk and renames it. Returns the checksum that
    /// identifies its content.
    pub(super) fn seal(mut self) -> Result<u64, Error> {
        let check = self.hasher.digest();
        let mut trailer = [0; TRAILER_BYTES];
        trailer[..8].copy_from_slice(&self.n_bytes.to_le_bytes());
        trailer[8..16].copy_from_slice(&check.to_le_bytes());
        let own_check = digest64(&trailer[..16]);
        trailer[16..].copy_from_slice(&own_check.to_le_bytes());
        let write = |file: &mut BufWriter<disk::File>| {
            file.write_all(&trailer)?;
            file.flush()?;
            file.get_ref().sync()
        };
        write(&mut self.file).map_err(Error::io("write", &self.path))?;
        let unfinished = unfinished(&self.path);
        disk::rename(&unfinished, &self.path).map_err(Error::io("rename", &unfinished))?;
        Ok(check)
    }
}

/// Writes a small sealed file at once.
pub(super) fn write_sealed(content: Content, path: &Path, body: &[u8]) -> Result<u64, Error> {
    let mut sealer = Sealer::create(content, path)?;
    sealer.write(body)?;
    sealer.seal()
}

/// Waits until the names in a directory are on disk.
pub(super) fn sync_folder(folder: &Path) -> Result<(), Error> {
    disk::sync_folder(folder).map_err(Error::io("write", folder))
}

/// Memory for files that are read often, shared by all files of an index.
#[derive(Debug, Clone, Default)]
pub(super) struct Allowance {
    left: Arc<AtomicU64>,
}

impl Allowance {
    pub(super) fn new(n_bytes: u64) -> Self {
        let left = Arc::new(AtomicU64::new(n_bytes));
        Self { left }
    }

    fn take(&self, n_bytes: u64) -> Option<FileStart> {
        let enough = |left: u64| left.checked_sub(n_bytes);
        self.left.fetch_update(Relaxed, Relaxed, enough).ok()?;
        Some(FileStart {
            bytes: Vec::new(),
            n_taken: n_bytes,
            allowance: self.clone(),
        })
    }
}

/// The first bytes of a file, in memory.
#[derive(Debug)]
struct FileStart {
    bytes: Vec<u8>,
    n_taken: u64,
    allowance: Allowance,
}

impl Drop for FileStart {
    fn drop(&mut self) {
        self.allowance.left.fetch_add(self.n_taken, Relaxed);
    }
}

/// A sealed file, open for random access.
#[derive(Debug)]
pub(super) struct Sealed {
    file: File,
    held: Option<FileStart>,
    pub(super) path: PathBuf,
    /// Length with preamble, without trailer.
    pub(super) n_bytes: u64,
    /// Checksum of everything except the trailer.
    pub(super) check: u64,
}

impl Sealed {
    /// Opens a file and checks its first and last bytes and its length.
    pub(super) fn open(content: Content, path: &Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(Error::io("open", path))?;
        let length = file.metadata().map_err(Error::io("read", path))?.len();
        let mut sealed = Self {
            file,
            held: None,
            path: path.to_owned(),
            n_bytes: length,
            check: 0,
        };
        let preamble = sealed.read(0, length.min(PREAMBLE_BYTES as u64) as usize)?;
        content.check_preamble(&preamble, path)?;
        let Some(n_bytes) = length.checked_sub(TRAILER_BYTES as u64) else {
            return Err(Error::damaged(path, "its end is missing"));
        };
        let trailer = sealed.read(n_bytes, TRAILER_BYTES)?;
        if digest64(&trailer[..16]) != u64_at(&trailer, 16) || u64_at(&trailer, 0) != n_bytes {
            return Err(Error::damaged(path, "its trailer is invalid"));
        }
        sealed.n_bytes = n_bytes;
        sealed.check = u64_at(&trailer, 8);
        Ok(sealed)
    }

    /// Opens the file that was sealed with a given checksum.
    pub(super) fn open_expected(content: Content, path: &Path, check: u64) -> Result<Self, Error> {
        let sealed = Self::open(content, path)?;
        if sealed.check == check {
            Ok(sealed)
        } else {
            Err(Error::damaged(
                path,
                "it is not the file that the manifest lists",
            ))
        }
    }

    /// Reads this many bytes from a position inside the file.
    pub(super) fn read(&self, start: u64, n_bytes: usize) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; n_bytes];
        self.read_into(start, &mut bytes)?;
        Ok(bytes)
    }

    /// Fills `bytes` from a position inside the file.
    pub(super) fn read_into(&self, start: u64, bytes: &mut [u8]) -> Result<(), Error> {
        let end = start as usize + bytes.len();
        match self.held().and_then(|held| held.get(start as usize..end)) {
            Some(held) => bytes.copy_from_slice(held),
            None => self.read_file_into(start, bytes)?,
        }
        Ok(())
    }

    fn read_file_into(&self, start: u64, bytes: &mut [u8]) -> Result<(), Error> {
        self.file
            .read_exact_at(bytes, start)
            .map_err(Error::io("read", &self.path))
    }

    /// Loads the first bytes into memory if there is space. The whole file is verified.
    pub(super) fn hold(&mut self, n_bytes: u64, allowance: &Allowance) -> Result<(), Error> {
        let Some(mut held) = allowance.take(n_bytes) else {
            return Ok(());
        };
        self.verify()?;
        held.bytes = self.read(0, n_bytes as usize)?;
        self.held = Some(held);
        Ok(())
    }

    /// Returns the first bytes if they are in memory and therefore verified.
    pub(super) fn held(&self) -> Option<&[u8]> {
        self.held.as_ref().map(|held| &*held.bytes)
    }

    /// Reads the whole file and compares its checksum.
    pub(super) fn verify(&self) -> Result<(), Error> {
        let mut hasher = Xxh3Default::new();
        let mut chunk = vec![0; 1 << 18];
        let mut start = 0;
        while start < self.n_bytes {
            let n = (self.n_bytes - start).min(chunk.len() as u64) as usize;
            self.read_file_into(start, &mut chunk[..n])?;
            hasher.update(&chunk[..n]);
            start += n as u64;
        }
        if hasher.digest() == self.check {
            Ok(())
        } else {
            Err(Error::damaged(&self.path, "its checksum is wrong"))
        }
    }
}

/// Returns the verified body of a small sealed file, and its checksum.
pub(super) fn read_sealed(content: Content, path: &Path) -> Result<(Vec<u8>, u64), Error> {
    let sealed = Sealed::open(content, path)?;
    sealed.verify()?;
    let n_body = sealed.n_bytes.saturating_sub(PREAMBLE_BYTES as u64);
    let body = sealed.read(PREAMBLE_BYTES as u64, n_body as usize)?;
    Ok((body, sealed.check))
}

/// Returns the name of a file that is being written.
fn unfinished(path: &Path) -> PathBuf {
    path.with_extension("part")
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let chunk = bytes[at..].first_chunk();
    u32::from_le_bytes(*chunk.expect("callers name places inside"))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let chunk = bytes[at..].first_chunk();
    u64::from_le_bytes(*chunk.expect("callers name places inside"))
}

/// Takes numbers from the front of bytes, which may be too few.
pub(super) struct NumberReader<'a> {
    rest: &'a [u8],
    path: &'a Path,
}

impl<'a> NumberReader<'a> {
    pub(super) fn new(bytes: &'a [u8], path: &'a Path) -> Self {
        Self { rest: bytes, path }
    }

    pub(super) fn bytes(&mut self, n: usize) -> Result<&'a [u8], Error> {
        match self.rest.split_at_checked(n) {
            Some((bytes, rest)) => {
                self.rest = rest;
                Ok(bytes)
            }
            None => Err(Error::damaged(self.path, "it is too short")),
        }
    }

    pub(super) fn u8(&mut self) -> Result<u8, Error> {
        Ok(self.bytes(1)?[0])
    }

    pub(super) fn u16(&mut self) -> Result<u16, Error> {
        let bytes = self.bytes(2)?;
        Ok(u16::from_le_bytes([bytes[0], bytes[1]]))
    }

    pub(super) fn u32(&mut self) -> Result<u32, Error> {
        Ok(u32_at(self.bytes(4)?, 0))
    }

    pub(super) fn u64(&mut self) -> Result<u64, Error> {
        Ok(u64_at(self.bytes(8)?, 0))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Returns an error if bytes are left.
    pub(super) fn end(&self) -> Result<(), Error> {
        if self.is_empty() {
            Ok(())
        } else {
            Err(Error::damaged(self.path, "it is too long"))
        }
    }
}
