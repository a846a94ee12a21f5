//! Reads archive files record by record.
//!
//! After a crash the journal may give an extent that is not on the disk; [`bears_out`] finds out.
//! If the journal is lost, [`Scanner`] recovers the records.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use arose_dedup::disk;
use flate2::bufread::GzDecoder;

use super::record::{Record, bare_media_type, record_id};
use super::{Extent, cdxj_path, files, place_of, warc_path};
use crate::error::{Context, Error};
use crate::fetch::Head;
use crate::pages::{Position, Sketch};
use crate::settings::DuplicateBody;

/// Maximum number of bytes of a record that are decompressed.
const MAX_RECORD: u64 = 1 << 30;

/// A record and its position in the file.
#[derive(Debug, Default)]
pub(crate) struct Stored {
    pub(crate) offset: u64,
    pub(crate) length: u64,
    /// Lines of the header of the record.
    head: String,
    /// The content block of the record.
    pub(crate) block: Vec<u8>,
}

impl Stored {
    /// Returns a field of the header.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// Whether the index has a line for this record.
    pub(crate) fn is_indexed(&self) -> bool {
        matches!(self.field("WARC-Type"), Some("response" | "revisit"))
    }

    /// Reads a record of which the body may be missing.
    fn parse_head(bytes: &[u8], offset: u64) -> Option<Self> {
        let (start, end) = ends(bytes)?;
        // A response without an empty line has no body.
        let end = end.unwrap_or(bytes.len());
        let head = String::from_utf8_lossy(&bytes[..start - 4]).into_owned();
        let record = Self {
            offset,
            length: 0,
            block: bytes[start..end].to_vec(),
            head,
        };
        record.head.starts_with("WARC/").then_some(record)
    }

    fn parse(bytes: &[u8], offset: u64, length: u64) -> Option<Self> {
        let end = memchr::memmem::find(bytes, b"\r\n\r\n")?;
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let mut record = Self {
            offset,
            length,
            head,
            block: Vec::new(),
        };
        let n_bytes: usize = record.field("Content-Length")?.parse().ok()?;
        let block = bytes.get(end + 4..)?.get(..n_bytes)?;
        record.block = block.to_vec();
        record.head.starts_with("WARC/").then_some(record)
    }
}

/// Reads the records of a file, each a gzip member.
#[derive(Debug)]
pub(crate) struct Scanner {
    file: Counting,
    /// The end of the last complete record.
    pub(crate) end: u64,
    /// The length of the file, or of its valid part.
    length: u64,
}

impl Scanner {
    /// Reads the records between two positions.
    pub(crate) fn open(path: &Path, start: u64, end: u64) -> Result<Self, Error> {
        let mut file = File::open(path).context("reading", path)?;
        let length = file.metadata().context("reading", path)?.len();
        file.seek(SeekFrom::Start(start)).context("reading", path)?;
        Ok(Self {
            file: Counting {
                inner: BufReader::with_capacity(1 << 16, file),
                n_bytes: start,
            },
            end: start,
            length: length.min(end),
        })
    }

    /// Whether the valid part was read completely.
    pub(crate) fn is_at_end(&self) -> bool {
        self.end == self.length
    }

    /// Returns the next record; `None` at the end, and at the first position without a valid
    /// record.
    pub(crate) fn next(&mut self) -> Option<Stored> {
        if self.end >= self.length {
            return None;
        }
        let mut bytes = Vec::new();
        let member = GzDecoder::new(&mut self.file);
        member.take(MAX_RECORD).read_to_end(&mut bytes).ok()?;
        let length = self.file.n_bytes - self.end;
        let record = Stored::parse(&bytes, self.end, length)?;
        if self.file.n_bytes > self.length {
            return None;
        }
        self.end = self.file.n_bytes;
        Some(record)
    }
}

/// Reads the record at a position that the archive has written; `None` if there is none.
pub(crate) fn read_at(folder: &Path, position: Position) -> Result<Option<Stored>, Error> {
    let path = warc_path(folder, position.file.into())?;
    match Scanner::open(&path, position.offset, u64::MAX) {
        Ok(mut scanner) => Ok(scanner.next()),
        // Archives may have been moved.
        Err(_) if !path.exists() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Maximum number of bytes of a record in front of its body.
const MAX_HEAD: u64 = 1 << 20;

/// Reads the heads of many records: the header of a record and that of the response in it. Bodies
/// are not decompressed, files are listed once, and the last one stays open.
#[derive(Debug)]
pub(crate) struct Heads {
    folder: PathBuf,
    paths: Option<BTreeMap<u64, PathBuf>>,
    open: Option<(u64, File)>,
}

impl Heads {
    pub(crate) fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            paths: None,
            open: None,
        }
    }

    /// Returns the head of the record at a position that the archive has written, with a block that
    /// ends where the body would begin; `None` if there is no record.
    pub(crate) fn read(&mut self, position: Position) -> Result<Option<Stored>, Error> {
        let number = u64::from(position.file);
        if self.open.as_ref().is_none_or(|(open, _)| *open != number) {
            let Some(file) = self.open(number)? else {
                return Ok(None);
            };
            self.open = Some((number, file));
        }
        let Some((_, file)) = &self.open else {
            return Ok(None);
        };
        let offset = position.offset;
        let file = BufReader::with_capacity(1 << 12, At { file, offset });
        let bytes = head_bytes(GzDecoder::new(file).take(MAX_HEAD));
        Ok(bytes.and_then(|bytes| Stored::parse_head(&bytes, offset)))
    }

    fn open(&mut self, number: u64) -> Result<Option<File>, Error> {
        let folder = &self.folder;
        let paths = match &mut self.paths {
            Some(paths) => paths,
            none => none.insert(files(folder)?.into_iter().collect()),
        };
        let Some(path) = paths.get(&number) else {
            return Ok(None);
        };
        match File::open(path) {
            // Archives may have been moved.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            opened => opened.map(Some).context("reading", path),
        }
    }
}

/// A file from a position on.
struct At<'a> {
    file: &'a File,
    offset: u64,
}

impl Read for At<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = self.file.read_at(buffer, self.offset)?;
        self.offset += n as u64;
        Ok(n)
    }
}

/// Reads a record until the body of the response in it begins, or to its end; `None` if it is
/// damaged before that.
fn head_bytes(mut record: impl Read) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(1 << 12);
    let mut piece = [0; 1 << 11];
    loop {
        let from = bytes.len().saturating_sub(3);
        let n = record.read(&mut piece).ok()?;
        bytes.extend_from_slice(&piece[..n]);
        let has_end = memchr::memmem::find(&bytes[from..], b"\r\n\r\n").is_some();
        if n == 0 || has_end && ends(&bytes).is_some_and(|(_, end)| end.is_some()) {
            return Some(bytes);
        }
    }
}

/// The ends of the header of a record, and of the response in it if there is one.
fn ends(bytes: &[u8]) -> Option<(usize, Option<usize>)> {
    let first = memchr::memmem::find(bytes, b"\r\n\r\n")? + 4;
    let second = memchr::memmem::find(&bytes[first..], b"\r\n\r\n");
    Some((first, second.map(|second| first + second + 4)))
}

/// A reader that counts the bytes read.
#[derive(Debug)]
struct Counting {
    inner: BufReader<File>,
    n_bytes: u64,
}

impl Read for Counting {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.n_bytes += n as u64;
        Ok(n)
    }
}

impl BufRead for Counting {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, n: usize) {
        self.n_bytes += n as u64;
        self.inner.consume(n);
    }
}

/// Whether a file and its index are complete between two extents: only complete records, and a line
/// for each record that needs one.
pub(crate) fn bears_out(folder: &Path, from: Extent, to: Extent) -> Result<bool, Error> {
    let (path, index_path) = (warc_path(folder, to.file)?, cdxj_path(folder, to.file)?);
    let has = |path: &Path, n: u64| path.metadata().is_ok_and(|file| file.len() >= n);
    if !has(&path, to.bytes) || !has(&index_path, to.index_bytes) {
        return Ok(false);
    }
    let range = from.index_bytes..to.index_bytes;
    let Some(lines) = index_part(&index_path, range)? else {
        return Ok(false);
    };
    let mut places = lines.lines().map(place_in_line);
    let mut scanner = Scanner::open(&path, from.bytes, to.bytes)?;
    while let Some(record) = scanner.next() {
        if record.is_indexed() && places.next() != Some(Some((record.offset, record.length))) {
            return Ok(false);
        }
    }
    Ok(scanner.is_at_end() && scanner.end == to.bytes && places.next().is_none())
}

/// Returns the lines of an index between two positions; `None` if the bytes there are not lines.
fn index_part(path: &Path, range: std::ops::Range<u64>) -> Result<Option<String>, Error> {
    let Some(n_bytes) = range.end.checked_sub(range.start) else {
        return Ok(None);
    };
    let mut file = File::open(path).context("reading", path)?;
    file.seek(SeekFrom::Start(range.start))
        .context("reading", path)?;
    let mut bytes = Vec::new();
    file.take(n_bytes)
        .read_to_end(&mut bytes)
        .context("reading", path)?;
    let text = String::from_utf8(bytes).ok();
    Ok(text.filter(|text| text.is_empty() || text.ends_with('\n')))
}

/// Returns offset and length of the record that a line of the index refers to.
fn place_in_line(line: &str) -> Option<(u64, u64)> {
    let number = |name: &str| {
        let (_, rest) = line.rsplit_once(name)?;
        rest.split_once('"')?.0.parse().ok()
    };
    Some((number("\"offset\": \"")?, number("\"length\": \"")?))
}

/// Returns file and offset of the record that a line of the index refers to.
pub(crate) fn place_of_line(line: &str) -> Option<(String, u64)> {
    let (_, json) = line.split_once('{')?;
    let json: serde_json::Value = serde_json::from_str(&format!("{{{json}")).ok()?;
    let offset = json["offset"].as_str()?.parse().ok()?;
    Some((json["filename"].as_str()?.to_owned(), offset))
}

/// Returns the URL and the 14 digits of the date of a line of the index.
pub(crate) fn name_in_line(line: &str) -> Option<(String, &str)> {
    let (_, rest) = line.split_once(' ')?;
    let (digits, json) = rest.split_once(' ')?;
    let json: serde_json::Value = serde_json::from_str(json).ok()?;
    Some((json["url"].as_str()?.to_owned(), digits))
}

/// Returns the ID of the `warcinfo` record at the start of a file, or a derived ID if that record
/// is damaged.
pub(super) fn first_id(path: &Path) -> Result<String, Error> {
    let first = Scanner::open(path, 0, u64::MAX)?.next();
    let id = first
        .as_ref()
        .and_then(|record| record.field("WARC-Record-ID"));
    let id = id.and_then(|id| id.strip_prefix('<')?.strip_suffix('>'));
    let name = path.as_os_str().as_encoded_bytes();
    Ok(id.map_or_else(|| record_id(name, 0), str::to_owned))
}

/// The result of scanning an archive file.
#[derive(Debug, Default)]
pub(crate) struct FileScan {
    /// Bytes between records.
    pub(crate) n_damaged: u64,
    /// The end of the last record.
    end: u64,
}

impl FileScan {
    /// Calls `take` with all records of a file, including those after damage.
    pub(crate) fn read(path: &Path, mut take: impl FnMut(&Stored)) -> Result<Self, Error> {
        let mut scan = Self::default();
        let mut start = 0;
        loop {
            let mut scanner = Scanner::open(path, start, u64::MAX)?;
            let mut n_records = 0;
            while let Some(record) = scanner.next() {
                take(&record);
                n_records += 1;
            }
            if n_records > 0 {
                scan.n_damaged += start - scan.end;
                scan.end = scanner.end;
            }
            if scanner.is_at_end() {
                return Ok(scan);
            }
            let Some(next) = next_member(path, scanner.end + 1)? else {
                return Ok(scan);
            };
            start = next;
        }
    }

    /// Moves the bytes after the last record to a separate file, so that the archive can be read to
    /// its end. Returns their number.
    pub(crate) fn cut(&self, path: &Path) -> Result<u64, Error> {
        let length = path.metadata().context("reading", path)?.len();
        let n_bytes = length - self.end;
        if n_bytes > 0 {
            let mut bytes = Vec::new();
            let mut tail = File::open(path).context("reading", path)?;
            tail.seek(SeekFrom::Start(self.end))
                .and_then(|_| tail.read_to_end(&mut bytes))
                .context("reading", path)?;
            let mut name = path.file_name().unwrap_or_default().to_owned();
            name.push(".rest");
            let rest = path.with_file_name(name);
            disk::replace(&rest, &bytes).context("writing", &rest)?;
            let file = disk::File::open(path).context("opening", path)?;
            let cut = file.set_len(self.end).and_then(|()| file.sync());
            cut.context("cutting", path)?;
        }
        Ok(n_bytes)
    }
}

/// Returns the next possible start of a gzip member.
fn next_member(path: &Path, start: u64) -> Result<Option<u64>, Error> {
    const WINDOW: u64 = 1 << 20;
    let mut file = File::open(path).context("reading", path)?;
    let length = file.metadata().context("reading", path)?.len();
    let mut bytes = Vec::new();
    let mut from = start;
    while from < length {
        bytes.clear();
        file.seek(SeekFrom::Start(from)).context("reading", path)?;
        (&mut file)
            .take(WINDOW + 2)
            .read_to_end(&mut bytes)
            .context("reading", path)?;
        if let Some(at) = memchr::memmem::find(&bytes, &[0x1f, 0x8b, 8]) {
            return Ok(Some(from + at as u64));
        }
        from += WINDOW;
    }
    Ok(None)
}

impl Stored {
    /// Returns the line of the index for this record in a file with this stem; `None` if the index
    /// has no line for it.
    pub(crate) fn line(&self, stem: &str) -> Option<String> {
        if !self.is_indexed() {
            return None;
        }
        let is_revisit = self.field("WARC-Type") == Some("revisit");
        let head = Head::parse(&self.block);
        let media_type = head.and_then(|head| head.get("content-type"));
        let record = Record {
            url: self.field("WARC-Target-URI")?,
            date: 0,
            address: std::net::IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED),
            status: head.map_or(0, |head| head.status),
            media_type: media_type.map_or("", bare_media_type),
            head: &[],
            body: &[],
            payload: self.field("WARC-Payload-Digest").unwrap_or_default(),
            cut: None,
            original: None,
            near_duplicates: DuplicateBody::Keep,
            request: None,
            sketch: Sketch::default(),
        };
        let line = record.line(self.field("WARC-Date")?, is_revisit);
        Some(line + &place_of(self.length, self.offset, stem))
    }
}

/// Rewrites an index unless it already lists these records; returns whether it did.
pub(crate) fn mend_index(path: &Path, lines: &[String]) -> Result<bool, Error> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let is_whole = text.is_empty() || text.ends_with('\n');
    let places =
        |lines: &mut dyn Iterator<Item = &str>| -> Vec<_> { lines.map(place_in_line).collect() };
    let expected = places(&mut lines.iter().map(|line| line.trim_end()));
    if is_whole && path.exists() && places(&mut text.lines()) == expected {
        return Ok(false);
    }
    disk::replace(path, lines.concat().as_bytes()).context("writing", path)?;
    Ok(true)
}
