//! The repository: what was fetched, as a web archive.
//!
//! Every response is a record of a WARC file (ISO 28500, version 1.1), a gzip member of its own, so
//! that it can be read alone; a CDXJ line beside it says where. A page with the same payload as
//! another is a *revisit* record of the standard profile `identical-payload-digest`: the head of
//! the response and the record that has the body. A near duplicate is stored whole, with what it
//! resembles and by which rule. If the settings drop its body, it is a revisit record of the
//! profile [`NEAR_DUPLICATE`], which no other software can replay.
//!
//! Files only grow. How much of the last one counts is written in the journal; the rest, after a
//! crash, is cut off. A full file is followed by the next: `00000.warc.gz`, `00001.warc.gz`.
//!
//! Records are packed where pages are read ([`Packer`], on any thread) and written here in order.

mod scan;

use std::path::{Path, PathBuf};

use arose::digest::digest64;
use arose::mix::mix;
use arose_corpus::{IDENTICAL, NEAR_DUPLICATE, time};
use arose_dedup::disk;
use data_encoding::BASE32;
use flate2::{Compress, Compression, Crc, FlushCompress, Status};
use sha1::{Digest as _, Sha1};

use crate::content::Original;
use crate::error::{Context, Error};
use crate::fetch::Cut;
use crate::journal::Event;
use crate::settings::DuplicateBody;
pub(crate) use scan::{FileScan, Stored, bears_out, files, mend_index, name_in_line};

/// Bytes gathered before they are written.
const BUFFER: usize = 1 << 20;

/// The archive, open for appending.
#[derive(Debug)]
pub(crate) struct Archive {
    folder: PathBuf,
    max_file: u64,
    /// Number of the file being written.
    pub(crate) file: u64,
    records: Growing,
    index: Growing,
    /// Files that are full and may not be on the disk yet.
    closed: Vec<Growing>,
    /// How far files go that became full since the last flush.
    full: Vec<Extent>,
    /// Whether there are names that may not be on the disk yet.
    has_new_names: bool,
}

/// Which archive of a crawl.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Pages,
    Robots,
}

/// How far an archive is valid.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) file: u64,
    pub(crate) bytes: u64,
    pub(crate) index_bytes: u64,
}

impl Extent {
    /// As the journal has it.
    pub(crate) fn event(self) -> Event<'static> {
        Event::Archive {
            file: self.file,
            bytes: self.bytes,
            index_bytes: self.index_bytes,
        }
    }

    /// What an event of the journal says of an archive.
    pub(crate) fn of(event: &Event<'_>) -> Option<(Self, Part)> {
        let (file, bytes, index_bytes, part) = match *event {
            Event::Archive {
                file,
                bytes,
                index_bytes,
            } => (file, bytes, index_bytes, Part::Pages),
            Event::RobotsArchive {
                file,
                bytes,
                index_bytes,
            } => (file, bytes, index_bytes, Part::Robots),
            _ => return None,
        };
        let extent = Self {
            file,
            bytes,
            index_bytes,
        };
        Some((extent, part))
    }

    /// As the journal has it for robots.txt files.
    pub(crate) fn robots_event(self) -> Event<'static> {
        Event::RobotsArchive {
            file: self.file,
            bytes: self.bytes,
            index_bytes: self.index_bytes,
        }
    }
}

impl Archive {
    /// Opens the archive and cuts off what lies behind `extent`; files after it are removed.
    /// Nothing is changed if less than that is there.
    pub(crate) fn open(folder: &Path, extent: Extent, max_file: u64) -> Result<Self, Error> {
        check(folder, extent)?;
        disk::create_folder(folder).context("creating", folder)?;
        for file in extent.file + 1.. {
            let later = [warc_path(folder, file), cdxj_path(folder, file)];
            let mut later = later.iter().filter(|path| path.exists()).peekable();
            if later.peek().is_none() {
                break;
            }
            for path in later {
                disk::remove(path).context("removing", path)?;
            }
        }
        let mut archive = Self {
            folder: folder.to_owned(),
            max_file,
            file: extent.file,
            records: Growing::open(&warc_path(folder, extent.file), extent.bytes)?,
            index: Growing::open(&cdxj_path(folder, extent.file), extent.index_bytes)?,
            closed: Vec::new(),
            full: Vec::new(),
            has_new_names: true,
        };
        if extent.bytes == 0 {
            archive.begin()?;
        }
        Ok(archive)
    }

    /// Appends a packed record and the line that says where it is.
    pub(crate) fn append(&mut self, record: &Packed) -> Result<(), Error> {
        if self.records.end() >= self.max_file {
            self.next_file()?;
        }
        let offset = self.records.end();
        if let Some(line) = &record.line {
            let length = record.n_indexed;
            let place = place_of(length as u64, offset, self.file);
            self.index.push(line.as_bytes())?;
            self.index.push(place.as_bytes())?;
        }
        self.records.push(&record.bytes)
    }

    /// Hands all that was appended to the system; returns how far the archive goes.
    pub(crate) fn flush(&mut self) -> Result<Extent, Error> {
        self.records.write()?;
        self.index.write()?;
        Ok(Extent {
            file: self.file,
            bytes: self.records.end(),
            index_bytes: self.index.end(),
        })
    }

    /// Goes on with another file. The full one is closed when it is on the disk.
    fn next_file(&mut self) -> Result<(), Error> {
        let extent = self.flush()?;
        self.full.push(extent);
        let records = Growing::open(&warc_path(&self.folder, self.file + 1), 0)?;
        let index = Growing::open(&cdxj_path(&self.folder, self.file + 1), 0)?;
        self.file += 1;
        self.closed
            .push(std::mem::replace(&mut self.records, records));
        self.closed.push(std::mem::replace(&mut self.index, index));
        self.has_new_names = true;
        self.begin()
    }

    /// How far files go that became full since this was asked last.
    pub(crate) fn take_full(&mut self) -> Vec<Extent> {
        std::mem::take(&mut self.full)
    }

    /// Returns when all that was handed over is on the disk.
    pub(crate) fn sync(&mut self) -> Result<(), Error> {
        self.closed.iter().try_for_each(Growing::sync)?;
        self.closed.clear();
        self.records.sync()?;
        self.index.sync()?;
        if self.has_new_names {
            disk::sync_folder(&self.folder).context("writing", &self.folder)?;
            self.has_new_names = false;
        }
        Ok(())
    }

    /// The record that each file begins with.
    fn begin(&mut self) -> Result<(), Error> {
        let body = format!(
            "software: arose/{}\r\nformat: WARC File Format 1.1\r\nrobots: obey\r\n",
            env!("CARGO_PKG_VERSION")
        );
        let name = warc_name(self.file);
        let head = format!(
            "WARC/1.1\r\nWARC-Type: warcinfo\r\nWARC-Record-ID: <{}>\r\nWARC-Date: {}\r\n\
             WARC-Filename: {name}\r\nContent-Type: application/warc-fields\r\n\
             Content-Length: {}\r\n\r\n",
            record_id(name.as_bytes(), 0),
            time::format(0),
            body.len()
        );
        let bytes = Packer::new(6).pack(&[head.as_bytes(), body.as_bytes(), b"\r\n\r\n"]);
        self.records.push(&bytes)
    }
}

/// The end of a line of the index.
fn place_of(length: u64, offset: u64, file: u64) -> String {
    let name = warc_name(file);
    format!("\"length\": \"{length}\", \"offset\": \"{offset}\", \"filename\": \"{name}\"}}\n")
}

/// Whether at least so much of an archive is there.
pub(crate) fn check(folder: &Path, extent: Extent) -> Result<(), Error> {
    let (records, index) = (
        warc_path(folder, extent.file),
        cdxj_path(folder, extent.file),
    );
    for (path, n_bytes) in [(records, extent.bytes), (index, extent.index_bytes)] {
        let length = match path.metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
            metadata => metadata.context("reading", &path)?.len(),
        };
        if length < n_bytes {
            let what = "it is shorter than the journal says";
            return Err(Error::damaged_at(&path, length, what));
        }
    }
    Ok(())
}

pub(crate) fn warc_name(file: u64) -> String {
    format!("{file:05}.warc.gz")
}

pub(crate) fn warc_path(folder: &Path, file: u64) -> PathBuf {
    folder.join(warc_name(file))
}

pub(crate) fn cdxj_path(folder: &Path, file: u64) -> PathBuf {
    folder.join(format!("{file:05}.cdxj"))
}

/// A file that is written at its end, in large pieces.
#[derive(Debug)]
struct Growing {
    path: PathBuf,
    file: disk::File,
    written: u64,
    pending: Vec<u8>,
}

impl Growing {
    fn open(path: &Path, valid: u64) -> Result<Self, Error> {
        let file = disk::File::open_or_create(path).context("opening", path)?;
        let length = file.as_file().metadata().context("reading", path)?.len();
        if length > valid {
            let cut = file.set_len(valid).and_then(|()| file.sync());
            cut.context("cutting", path)?;
        }
        Ok(Self {
            path: path.to_owned(),
            file,
            written: valid,
            pending: Vec::new(),
        })
    }

    fn push(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.pending.extend_from_slice(bytes);
        if self.pending.len() >= BUFFER {
            self.write()?;
        }
        Ok(())
    }

    /// If that fails, what is pending stays so, and may be written again.
    fn write(&mut self) -> Result<(), Error> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let written = self.file.write_all_at(&self.pending, self.written);
        written.context("writing", &self.path)?;
        self.written += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }

    fn end(&self) -> u64 {
        self.written + self.pending.len() as u64
    }

    fn sync(&self) -> Result<(), Error> {
        self.file.sync().context("writing", &self.path)
    }
}

/// An answer to be written down.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record<'a> {
    pub(crate) url: &'a str,
    /// Seconds since 1970.
    pub(crate) date: i64,
    pub(crate) address: std::net::IpAddr,
    pub(crate) status: u16,
    pub(crate) media_type: &'a str,
    pub(crate) head: &'a [u8],
    pub(crate) body: &'a [u8],
    /// The digest of the body.
    pub(crate) payload: &'a str,
    pub(crate) cut: Option<Cut>,
    pub(crate) original: Option<&'a Original>,
    /// What becomes of the body if the original has another payload.
    pub(crate) near_duplicates: DuplicateBody,
    /// What was asked, if that is to be written too.
    pub(crate) request: Option<&'a [u8]>,
}

/// A record ready to be appended.
#[derive(Debug, Default)]
pub(crate) struct Packed {
    bytes: Vec<u8>,
    /// The first of the bytes: the answer, which the index knows.
    n_indexed: usize,
    /// The line of the index up to where the place goes.
    line: Option<String>,
}

impl Packed {
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Record<'_> {
    pub(crate) fn pack(&self, packer: &mut Packer) -> Packed {
        let is_same = |original: &Original| original.payload == self.payload;
        let drops = self.near_duplicates == DuplicateBody::Drop;
        let revisited = self.original.filter(|original| drops || is_same(original));
        let is_revisit = revisited.is_some();
        let body = if is_revisit { &[] } else { self.body };
        let head = head_as_stored(self.head);
        let date = time::format(self.date);
        let mut fields = String::with_capacity(512);
        let mut field = |name: &str, value: &str| {
            fields.push_str(name);
            fields.push_str(": ");
            fields.push_str(value);
            fields.push_str("\r\n");
        };
        field("WARC-Type", if is_revisit { "revisit" } else { "response" });
        let id = response_id(self.url, self.date, self.payload);
        field("WARC-Record-ID", &format!("<{id}>"));
        field("WARC-Date", &date);
        field("WARC-Target-URI", self.url);
        field("WARC-IP-Address", &self.address.to_string());
        field("WARC-Payload-Digest", self.payload);
        if let Some(cut) = self.cut {
            field("WARC-Truncated", cut.as_str());
        }
        if let Some(original) = revisited {
            let profile = if is_same(original) {
                IDENTICAL
            } else {
                NEAR_DUPLICATE
            };
            let id = response_id(&original.url, original.date, &original.payload);
            field("WARC-Profile", profile);
            field("WARC-Refers-To", &format!("<{id}>"));
            field("WARC-Refers-To-Target-URI", &original.url);
            field("WARC-Refers-To-Date", &time::format(original.date));
        } else if let Some(original) = self.original {
            // The standard keeps its own fields for revisit records.
            field("Arose-Duplicate-Of", &original.url);
            field("Arose-Duplicate-Of-Date", &time::format(original.date));
        }
        if let Some(original) = self.original {
            let rule = if is_same(original) {
                "same-payload"
            } else {
                original.rule
            };
            field("Arose-Duplicate-Rule", rule);
            let similarity = format!("{:.4}", original.similarity);
            field("Arose-Duplicate-Similarity", &similarity);
        }
        field("Content-Type", "application/http; msgtype=response");
        field("Content-Length", &(head.len() + body.len()).to_string());
        let parts = [
            b"WARC/1.1\r\n",
            fields.as_bytes(),
            b"\r\n",
            &head,
            body,
            b"\r\n\r\n",
        ];
        let mut bytes = packer.pack(&parts);
        let n_indexed = bytes.len();
        if let Some(request) = self.request {
            bytes.extend(self.pack_request(request, &id, &date, packer));
        }
        Packed {
            bytes,
            n_indexed,
            line: Some(self.line(&date, is_revisit)),
        }
    }

    /// A record of the request for the record `answer`.
    fn pack_request(&self, bytes: &[u8], answer: &str, date: &str, packer: &mut Packer) -> Vec<u8> {
        let id = record_id(answer.as_bytes(), bytes.len() as u64);
        let head = format!(
            "WARC/1.1\r\nWARC-Type: request\r\nWARC-Record-ID: <{id}>\r\nWARC-Date: {date}\r\n\
             WARC-Target-URI: {}\r\nWARC-IP-Address: {}\r\nWARC-Concurrent-To: <{answer}>\r\n\
             Content-Type: application/http; msgtype=request\r\nContent-Length: {}\r\n\r\n",
            self.url,
            self.address,
            bytes.len()
        );
        packer.pack(&[head.as_bytes(), bytes, b"\r\n\r\n"])
    }

    /// `org,example)/path 20240518015810 {"url": …, ` and so on, without the place.
    fn line(&self, date: &str, is_revisit: bool) -> String {
        let digits: String = date.chars().filter(char::is_ascii_digit).collect();
        let media_type = if is_revisit {
            "warc/revisit"
        } else {
            self.media_type
        };
        let digest = self.payload.strip_prefix("sha1:").unwrap_or(self.payload);
        format!(
            "{} {digits} {{\"url\": \"{}\", \"mime\": \"{}\", \"status\": \"{}\", \"digest\": \"{digest}\", ",
            sort_key(self.url),
            self.url,
            json_text(media_type),
            self.status,
        )
    }
}

/// The URL with its host from the end, so that a site's pages lie together: `org,example)/path`.
fn sort_key(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (host, port) = match authority.rfind(':') {
        Some(colon) if !authority.ends_with(']') => authority.split_at(colon),
        _ => (authority, ""),
    };
    let is_address = host.starts_with('[') || host.ends_with(|last: char| last.is_ascii_digit());
    let reversed = match is_address {
        true => host.to_owned(),
        false => host.rsplit('.').collect::<Vec<_>>().join(","),
    };
    format!("{reversed}{port}){}", path.to_ascii_lowercase())
}

/// Text that came from a server, fit to stand between quotation marks.
fn json_text(text: &str) -> String {
    let is_plain = |c: &char| c.is_ascii_graphic() && !matches!(c, '"' | '\\');
    text.chars().filter(is_plain).take(100).collect()
}

/// Chunks have been joined, so the header that announces them is renamed, as is the custom.
fn head_as_stored(head: &[u8]) -> std::borrow::Cow<'_, [u8]> {
    const NAME: &[u8] = b"\ntransfer-encoding";
    let found = memchr::memchr_iter(b'\n', head).find(|&at| {
        let line = head.get(at..at + NAME.len());
        line.is_some_and(|line| line.eq_ignore_ascii_case(NAME))
    });
    match found {
        None => head.into(),
        Some(at) => [&head[..=at], b"X-Crawl-", &head[at + 1..]].concat().into(),
    }
}

/// The ID of the record of a response.
fn response_id(url: &str, date: i64, payload: &str) -> String {
    record_id(url.as_bytes(), date as u64 ^ digest64(payload.as_bytes()))
}

/// A UUID (version 8: of our own making) that is the same for the same record.
fn record_id(name: &[u8], salt: u64) -> String {
    let first = mix(digest64(name) ^ mix(salt));
    let second = mix(first ^ mix(name.len() as u64));
    format!(
        "urn:uuid:{:08x}-{:04x}-8{:03x}-8{:03x}-{:012x}",
        first >> 32,
        first >> 16 & 0xffff,
        first & 0xfff,
        second >> 52,
        second & 0xffff_ffff_ffff
    )
}

/// The digest of a payload, as archives write it.
pub(crate) fn payload_digest(body: &[u8]) -> String {
    let mut text = String::with_capacity(37);
    text.push_str("sha1:");
    BASE32.encode_append(&Sha1::digest(body), &mut text);
    text
}

/// Makes gzip members, all with one compressor: its tables are large and need not be made anew.
pub(crate) struct Packer {
    compress: Compress,
}

impl std::fmt::Debug for Packer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Packer").finish_non_exhaustive()
    }
}

impl Packer {
    pub(crate) fn new(level: u32) -> Self {
        let compress = Compress::new(Compression::new(level.clamp(1, 9)), false);
        Self { compress }
    }

    /// The parts as one member.
    pub(crate) fn pack(&mut self, parts: &[&[u8]]) -> Vec<u8> {
        self.compress.reset();
        let n_bytes: usize = parts.iter().map(|part| part.len()).sum();
        let mut out = Vec::with_capacity(n_bytes / 2 + 128);
        out.extend_from_slice(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 0xff]);
        let mut crc = Crc::new();
        for part in parts {
            crc.update(part);
            self.push(part, FlushCompress::None, &mut out);
        }
        self.push(&[], FlushCompress::Finish, &mut out);
        out.extend_from_slice(&crc.sum().to_le_bytes());
        out.extend_from_slice(&(n_bytes as u32).to_le_bytes());
        out
    }

    fn push(&mut self, mut part: &[u8], flush: FlushCompress, out: &mut Vec<u8>) {
        loop {
            if out.capacity() - out.len() < 64 {
                out.reserve(out.len().max(4096));
            }
            let before = self.compress.total_in();
            let status = self.compress.compress_vec(part, out, flush);
            part = &part[(self.compress.total_in() - before) as usize..];
            match (flush, status) {
                (FlushCompress::Finish, Ok(Status::StreamEnd)) | (_, Err(_)) => return,
                (FlushCompress::None, _) if part.is_empty() => return,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    use proptest::prelude::*;

    const RECORD: Record<'static> = Record {
        url: "http://www.example.org:8080/A?b",
        date: 0,
        address: std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST),
        status: 200,
        media_type: "text/html",
        head: b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        body: b"rose",
        payload: "sha1:X",
        cut: None,
        original: None,
        near_duplicates: DuplicateBody::Keep,
        request: None,
    };

    fn unpack(bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        flate2::read::MultiGzDecoder::new(bytes)
            .read_to_end(&mut out)
            .unwrap();
        out
    }

    fn text(record: &Record<'_>) -> String {
        let packed = record.pack(&mut Packer::new(1));
        String::from_utf8(unpack(&packed.bytes)).unwrap()
    }

    #[test]
    fn responses() {
        let text = text(&RECORD);
        assert!(
            text.starts_with("WARC/1.1\r\nWARC-Type: response\r\n"),
            "{text}"
        );
        assert!(
            text.contains("\r\nX-Crawl-Transfer-Encoding: chunked\r\n"),
            "{text}"
        );
        assert!(text.ends_with("\r\n\r\nrose\r\n\r\n"), "{text}");
        assert!(text.contains(&format!(
            "\r\nContent-Length: {}\r\n",
            RECORD.head.len() + 8 + 4
        )));
    }

    #[test]
    fn duplicates_are_revisits() {
        let original = Original {
            url: "http://o/".to_owned(),
            payload: "sha1:X".to_owned(),
            date: 60,
            rule: "exact",
            similarity: 1.0,
        };
        let record = Record {
            original: Some(&original),
            ..RECORD
        };
        let same = text(&record);
        assert!(same.contains("\r\nWARC-Type: revisit\r\n"), "{same}");
        assert!(same.contains("/identical-payload-digest\r\n"), "{same}");
        assert!(
            same.contains("\r\nWARC-Refers-To-Target-URI: http://o/\r\n"),
            "{same}"
        );
        assert!(
            same.contains("\r\nWARC-Refers-To-Date: 1970-01-01T00:01:00Z\r\n"),
            "{same}"
        );
        assert!(same.ends_with("chunked\r\n\r\n\r\n\r\n"), "{same}");
        let id = response_id("http://o/", 60, "sha1:X");
        assert!(
            same.contains(&format!("\r\nWARC-Refers-To: <{id}>\r\n")),
            "{same}"
        );
        let near = Original {
            payload: "sha1:Y".to_owned(),
            rule: "combined",
            ..original.clone()
        };
        let record = Record {
            original: Some(&near),
            ..record
        };
        let dropped = text(&Record {
            near_duplicates: DuplicateBody::Drop,
            ..record
        });
        assert!(dropped.contains(NEAR_DUPLICATE) && dropped.contains("WARC-Type: revisit"));
        let kept = text(&record);
        assert!(kept.contains("WARC-Type: response") && kept.ends_with("rose\r\n\r\n"));
        assert!(!kept.contains("WARC-Refers-To"), "{kept}");
        for text in [dropped, kept.clone()] {
            assert!(text.contains("\r\nArose-Duplicate-Rule: combined\r\n"));
        }
        assert!(
            kept.contains("\r\nArose-Duplicate-Of: http://o/\r\n"),
            "{kept}"
        );
    }

    #[test]
    fn lines_of_the_index_say_where_records_are() {
        let folder = tempfile::tempdir().unwrap();
        let mut archive = Archive::open(folder.path(), Extent::default(), 1 << 20).unwrap();
        let packed = RECORD.pack(&mut Packer::new(1));
        archive.append(&packed).unwrap();
        archive.append(&packed).unwrap();
        archive.flush().unwrap();
        let bytes = std::fs::read(folder.path().join("00000.warc.gz")).unwrap();
        let index = std::fs::read_to_string(folder.path().join("00000.cdxj")).unwrap();
        assert_eq!(index.lines().count(), 2);
        for line in index.lines() {
            let (key, rest) = line.split_once(' ').unwrap();
            assert_eq!(key, "org,example,www:8080)/a?b");
            let (date, json) = rest.split_once(' ').unwrap();
            assert_eq!(date, "19700101000000");
            let json: serde_json::Value = serde_json::from_str(json).unwrap();
            let number = |name: &str| json[name].as_str().unwrap().parse::<usize>().unwrap();
            let member = &bytes[number("offset")..][..number("length")];
            assert!(unpack(member).starts_with(b"WARC/1.1\r\nWARC-Type: response"));
        }
    }

    /// The request follows its answer and names it; the index speaks of the answer alone.
    #[test]
    fn requests_stand_beside_their_answers() {
        let with = Record {
            request: Some(b"GET / HTTP/1.1\r\n\r\n"),
            ..RECORD
        };
        let packed = with.pack(&mut Packer::new(1));
        let alone = RECORD.pack(&mut Packer::new(1));
        assert_eq!(packed.bytes[..packed.n_indexed], alone.bytes);
        let answer = text(&RECORD);
        let request = String::from_utf8(unpack(&packed.bytes[packed.n_indexed..])).unwrap();
        let id = answer
            .lines()
            .find_map(|line| line.strip_prefix("WARC-Record-ID: "))
            .unwrap();
        assert!(
            request.contains(&format!("\r\nWARC-Concurrent-To: {id}\r\n")),
            "{request}"
        );
        assert!(
            request.ends_with("\r\n\r\nGET / HTTP/1.1\r\n\r\n\r\n\r\n"),
            "{request}"
        );
    }

    #[test]
    fn what_the_journal_does_not_know_is_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let packed = RECORD.pack(&mut Packer::new(1));
        let mut archive = Archive::open(folder.path(), Extent::default(), 300).unwrap();
        archive.append(&packed).unwrap();
        let extent = archive.flush().unwrap();
        for _ in 0..5 {
            archive.append(&packed).unwrap();
        }
        assert!(archive.flush().unwrap().file > 1);
        drop(archive);
        let mut archive = Archive::open(folder.path(), extent, 300).unwrap();
        assert_eq!(archive.flush().unwrap(), extent);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
        let beyond = Extent {
            bytes: extent.bytes + 1,
            ..extent
        };
        assert!(Archive::open(folder.path(), beyond, 300).is_err());
    }

    /// What is missing is named, and nothing is made or cut because of it.
    #[test]
    fn a_missing_archive_stays_missing() {
        let folder = tempfile::tempdir().unwrap();
        let extent = Extent {
            file: 2,
            bytes: 10,
            index_bytes: 5,
        };
        std::fs::write(warc_path(folder.path(), 3), b"later").unwrap();
        let error = Archive::open(folder.path(), extent, 300).unwrap_err();
        assert!(error.to_string().contains("00002.warc.gz"), "{error}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    /// An extent is borne out by whole records with their lines, and by nothing else.
    #[test]
    fn records_bear_out_what_is_said_of_them() {
        let folder = tempfile::tempdir().unwrap();
        let packed = RECORD.pack(&mut Packer::new(1));
        let mut archive = Archive::open(folder.path(), Extent::default(), 1 << 20).unwrap();
        let start = Extent::default();
        let mut extents = Vec::new();
        for _ in 0..3 {
            archive.append(&packed).unwrap();
            extents.push(archive.flush().unwrap());
        }
        let bears = |from, to| bears_out(folder.path(), from, to).unwrap();
        assert!(bears(start, extents[2]) && bears(extents[0], extents[1]));
        let without_line = Extent {
            index_bytes: extents[0].index_bytes,
            ..extents[1]
        };
        assert!(!bears(extents[0], without_line));
        let amid = Extent {
            bytes: extents[2].bytes - 1,
            ..extents[2]
        };
        assert!(!bears(start, amid));
        for (path, at) in [
            (warc_path(folder.path(), 0), extents[1].bytes + 40),
            (cdxj_path(folder.path(), 0), extents[1].index_bytes + 60),
        ] {
            let whole = std::fs::read(&path).unwrap();
            let mut torn = whole.clone();
            torn[at as usize..].fill(0);
            std::fs::write(&path, &torn).unwrap();
            assert!(bears(start, extents[1]) && !bears(start, extents[2]));
            std::fs::write(&path, &whole[..at as usize]).unwrap();
            assert!(bears(start, extents[1]) && !bears(start, extents[2]));
            std::fs::write(&path, &whole).unwrap();
        }
        let line = index_line(folder.path());
        assert_eq!(name_in_line(&line).map(|(url, _)| url), Some(RECORD.url));
    }

    fn index_line(folder: &Path) -> String {
        let text = std::fs::read_to_string(cdxj_path(folder, 0)).unwrap();
        text.lines().next().unwrap().to_owned()
    }

    #[test]
    fn what_servers_send_stays_within_its_line() {
        let evil = Record {
            media_type: "a\"}\n\\x",
            ..RECORD
        };
        assert!(evil.line("1970", false).contains("\"mime\": \"a}x\""));
    }

    proptest! {
        #[test]
        fn members_hold_what_was_packed(parts in prop::collection::vec(any::<Vec<u8>>(), 0..4), level in 1..10_u32) {
            let mut packer = Packer::new(level);
            let slices: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
            for _ in 0..2 {
                prop_assert_eq!(unpack(&packer.pack(&slices)), parts.concat());
            }
        }
    }
}
