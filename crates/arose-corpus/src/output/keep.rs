//! Copies chosen records of a file, bytes untouched, into a file of the same format.
//!
//! Deduplication decides which documents stay; here they leave in the format they came in, with
//! every field that we do not even know. The file is read a second time, in order, and compared
//! with the ascending list of positions:
//!
//! | format | what is copied |
//! |---|---|
//! | JSON Lines | the line |
//! | other JSON | the object: in an array if it was in one, else ended by a line end |
//! | CSV | the header row and the row |
//! | Parquet | the row with all its columns, and the file's own metadata |
//! | WARC, ARC | the record, and every record that is no dropped document: requests, images, revisits |
//! | a file that is one document | the file |
//!
//! The copy is compressed like the original. A record of an archive that is alone in its gzip
//! member or zstd frame is copied as it is, so the cost is that of reading; others are compressed
//! again, one member each. A copy in xz or bzip2 is one stream. A record with a wrong length is
//! copied with the block that was found, and its header, wrong length included, stays as it was.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use bzip2::write::BzEncoder;
use flate2::write::GzEncoder;
use liblzma::write::XzEncoder;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ParquetRecordBatchReaderBuilder, RowSelection,
};
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::properties::WriterProperties;

use crate::config::Config;
use crate::document::Position;
use crate::error::Error;
use crate::format::Cut;
use crate::format::csv::RowCutter;
use crate::format::json::lines::LineCutter;
use crate::format::json::values::ValueCutter;
use crate::format::parquet::guarded;
use crate::format::sniff::{Format, is_document_name, sniff};
use crate::format::warc::cut::{Blocks, Record, RecordCutter};
use crate::format::warc::dialect::Dialect;
use crate::output::revisit::{Dropped, Fate, RefersTo, revisit};
use crate::source::input::Origin;
use crate::source::member::Packing;
use crate::source::raw::Handle;
use crate::source::stream::Stream;

/// What came of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Kept {
    /// Positions at which a record was found and copied.
    pub copied: u64,
    /// Positions at which no record starts.
    pub missing: u64,
}

/// Copies the records of the file `source` that start at `positions`, which must ascend. Of an
/// archive, the records that describe the file are copied too.
///
/// # Errors
///
/// If the file cannot be read or the output not be written.
pub fn keep(
    source: &Path,
    positions: &[Position],
    out: impl Write + Send,
    config: &Config,
) -> Result<Kept, Error> {
    keep_parts(source, positions, None, Whole(out), config)
}

/// As [`keep`], into an output that may have several parts. Of an archive, all records are copied
/// but those that are dropped, if that is told; records at `positions` have to be among them.
///
/// # Errors
///
/// If the file cannot be read or the output not be written.
pub fn keep_parts(
    source: &Path,
    positions: &[Position],
    dropped: Option<&mut Dropped<'_>>,
    out: impl Parts + Send,
    config: &Config,
) -> Result<Kept, Error> {
    let io = |what| {
        move |error| Error::Io {
            what,
            path: source.to_owned(),
            source: error,
        }
    };
    let open = || File::open(source).map_err(io("cannot open"));
    let mut stream = Stream::new(Handle::File(open()?), &config.limits);
    let format = sniff(&mut stream, source, Origin::Named, config);
    let packing = stream.packing();
    let mut chosen = Chosen {
        positions,
        kept: Kept::default(),
    };
    let path: Arc<Path> = source.into();
    let result = match format {
        Some(Format::Parquet) => {
            return keep_rows(open()?, positions, out).map_err(|error| Error::Parquet {
                path: source.to_owned(),
                source: error,
            });
        }
        Some(Format::JsonLines) => {
            let cutter = LineCutter::new(&path, stream, config);
            let copies = Copies::new(out, packing, Frame::LINES);
            copies.and_then(|copies| keep_lines(&mut chosen, cutter, copies))
        }
        Some(Format::Json) => {
            let frame = match starts_array(&stream) {
                true => Frame::array(),
                false => Frame::SEQUENCE,
            };
            let cutter = ValueCutter::new(&path, stream, config);
            let copies = Copies::new(out, packing, frame);
            copies.and_then(|copies| keep_objects(&mut chosen, cutter, copies))
        }
        Some(Format::Csv { delimiter }) => {
            let cutter = RowCutter::new(&path, stream, delimiter, config);
            let frame = Frame {
                before: line(cutter.header()),
                ..Frame::LINES
            };
            let copies = Copies::new(out, packing, frame);
            copies.and_then(|copies| keep_cells(&mut chosen, cutter, copies))
        }
        Some(format @ (Format::Warc | Format::Arc)) => {
            let dialect = match format {
                Format::Arc => Dialect::Arc,
                _ => Dialect::Warc,
            };
            let cutter = RecordCutter::new(&path, stream, dialect, config, Blocks::All);
            let original = open()?;
            match packing {
                // These are made for whole files: what compresses well there does not by record.
                Packing::Xz | Packing::Bzip2 => {
                    Copies::new(out, packing, Frame::LINES).and_then(|copies| {
                        let archive = Archive::new(original, Packing::Plain, copies);
                        archive.keep(&mut chosen, dropped, cutter)?.finish()
                    })
                }
                _ => {
                    let copies = Copies::new(out, Packing::Plain, Frame::LINES);
                    copies.and_then(|copies| {
                        let archive = Archive::new(original, packing, copies);
                        archive.keep(&mut chosen, dropped, cutter)?.finish()
                    })
                }
            }
        }
        Some(Format::Html | Format::Xml | Format::Text) | None => {
            keep_whole(&mut chosen, open()?, out)
        }
    };
    result.map_err(io("cannot copy"))?;
    Ok(chosen.finish())
}

/// Copies parts of a plain file of lines, given as ascending ranges of bytes that each end where a
/// line does.
///
/// For those who know where their records end.
///
/// # Errors
///
/// If the file cannot be read or the output not be written.
pub fn keep_ranges(
    source: &Path,
    ranges: &[Range<u64>],
    out: &mut impl Write,
) -> Result<(), Error> {
    let mut copy = || {
        let mut file = File::open(source)?;
        copy_ranges(&file, ranges, out)?;
        if let Some(last) = ranges.last().filter(|last| last.end > last.start) {
            let mut byte = [0];
            file.seek(SeekFrom::Start(last.end - 1))?;
            file.read_exact(&mut byte)?;
            if byte != *b"\n" {
                out.write_all(b"\n")?;
            }
        }
        Ok(())
    };
    copy().map_err(|error| Error::Io {
        what: "cannot copy",
        path: source.to_owned(),
        source: error,
    })
}

/// Bytes that are copied together.
const COPY_BYTES: usize = 256 << 10;

/// Copies ranges by way of a buffer: many short ones then take a third less time than if the kernel
/// copied each from file to file.
fn copy_ranges(file: &File, ranges: &[Range<u64>], out: &mut impl Write) -> io::Result<()> {
    let mut buffer = vec![0; COPY_BYTES];
    let mut n = 0;
    for range in ranges {
        let mut at = range.start;
        while at < range.end {
            let room = (range.end - at).min((COPY_BYTES - n) as u64) as usize;
            match file.read_at(&mut buffer[n..n + room], at) {
                Ok(0) => break,
                Ok(n_read) => (n, at) = (n + n_read, at + n_read as u64),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if n == COPY_BYTES {
                out.write_all(&buffer)?;
                n = 0;
            }
        }
    }
    out.write_all(&buffer[..n])
}

/// Whether a file holds plain JSON lines, whose records are ranges of bytes.
#[must_use]
pub fn is_plain_json_lines(source: &Path, config: &Config) -> bool {
    let Ok(file) = File::open(source) else {
        return false;
    };
    let mut stream = Stream::new(Handle::File(file), &config.limits);
    let format = sniff(&mut stream, source, Origin::Named, config);
    matches!(format, Some(Format::JsonLines)) && stream.packing() == Packing::Plain
}

/// Whether a file is a web archive.
#[must_use]
pub fn is_archive(source: &Path, config: &Config) -> bool {
    // Of a directory of pages, none is opened for this.
    if is_document_name(source) {
        return false;
    }
    let Ok(file) = File::open(source) else {
        return false;
    };
    let mut stream = Stream::new(Handle::File(file), &config.limits);
    let format = sniff(&mut stream, source, Origin::Named, config);
    matches!(format, Some(Format::Warc | Format::Arc))
}

/// Whether a file holds one JSON array, so that nothing may follow the copy of its records.
#[must_use]
pub fn is_json_array(source: &Path, config: &Config) -> bool {
    let Ok(file) = File::open(source) else {
        return false;
    };
    let mut stream = Stream::new(Handle::File(file), &config.limits);
    let format = sniff(&mut stream, source, Origin::Named, config);
    matches!(format, Some(Format::Json)) && starts_array(&stream)
}

/// Whether the window starts with an array.
pub(super) fn starts_array(stream: &Stream) -> bool {
    let head = stream.window();
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    head.trim_ascii_start().starts_with(b"[")
}

/// The positions still to come.
struct Chosen<'a> {
    positions: &'a [Position],
    kept: Kept,
}

impl Chosen<'_> {
    /// Whether the record at `position` stays; records must be asked for in order.
    fn has(&mut self, position: Position) -> bool {
        while let [first, rest @ ..] = self.positions
            && *first <= position
        {
            let is_it = *first == position;
            self.positions = rest;
            if is_it {
                self.kept.copied += 1;
                return true;
            }
            self.kept.missing += 1;
        }
        false
    }

    fn finish(self) -> Kept {
        Kept {
            missing: self.kept.missing + self.positions.len() as u64,
            ..self.kept
        }
    }
}

/// An output that is packed as a whole.
pub(super) enum Packed<W: Write> {
    Plain(W),
    Gzip(GzEncoder<W>),
    Zstd(zstd::Encoder<'static, W>),
    Xz(XzEncoder<W>),
    Bzip2(BzEncoder<W>),
}

impl<W: Write> Packed<W> {
    pub(super) fn new(out: W, packing: Packing) -> io::Result<Self> {
        Ok(match packing {
            Packing::Plain => Packed::Plain(out),
            Packing::Gzip => Packed::Gzip(GzEncoder::new(out, flate2::Compression::default())),
            Packing::Zstd => Packed::Zstd(zstd::Encoder::new(out, 0)?),
            Packing::Xz => Packed::Xz(XzEncoder::new(out, liblzma::stream::PRESET_DEFAULT)),
            Packing::Bzip2 => Packed::Bzip2(BzEncoder::new(out, bzip2::Compression::best())),
        })
    }

    /// Writes a line, ended whether or not the original was.
    pub(super) fn put_line(&mut self, line: &[u8]) -> io::Result<()> {
        self.write_all(line.strip_suffix(b"\n").unwrap_or(line))?;
        self.write_all(b"\n")
    }

    pub(super) fn finish(self) -> io::Result<W> {
        let mut out = match self {
            Packed::Plain(out) => out,
            Packed::Gzip(out) => out.finish()?,
            Packed::Zstd(out) => out.finish()?,
            Packed::Xz(out) => out.finish()?,
            Packed::Bzip2(out) => out.finish()?,
        };
        out.flush()?;
        Ok(out)
    }

    fn out(&self) -> &W {
        match self {
            Packed::Plain(out) => out,
            Packed::Gzip(out) => out.get_ref(),
            Packed::Zstd(out) => out.get_ref(),
            Packed::Xz(out) => out.get_ref(),
            Packed::Bzip2(out) => out.get_ref(),
        }
    }
}

impl<W: Write> Write for Packed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Packed::Plain(out) => out.write(bytes),
            Packed::Gzip(out) => out.write(bytes),
            Packed::Zstd(out) => out.write(bytes),
            Packed::Xz(out) => out.write(bytes),
            Packed::Bzip2(out) => out.write(bytes),
        }
    }

    /// Nothing: a flush would cost compression, and [`finish`](Packed::finish) writes the rest.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An output in parts of a limited size.
pub trait Parts: Write {
    /// The most bytes a part may have, unless a single record has more; none if there is no limit.
    fn limit(&self) -> Option<u64>;

    /// Bytes in this part.
    fn n_bytes(&self) -> u64;

    /// Ends this part and starts the next one.
    ///
    /// # Errors
    ///
    /// If the next one cannot be made.
    fn next_part(&mut self) -> io::Result<()>;
}

/// An output in one part.
struct Whole<W>(W);

impl<W: Write> Write for Whole<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl<W: Write> Parts for Whole<W> {
    fn limit(&self) -> Option<u64> {
        None
    }

    fn n_bytes(&self) -> u64 {
        0
    }

    fn next_part(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What stands around the records of a part.
pub(super) struct Frame {
    pub(super) before: Vec<u8>,
    pub(super) between: &'static [u8],
    pub(super) after: &'static [u8],
}

impl Frame {
    const LINES: Self = Self {
        before: Vec::new(),
        between: b"",
        after: b"",
    };
    pub(super) const SEQUENCE: Self = Self {
        before: Vec::new(),
        between: b"\n",
        after: b"\n",
    };

    pub(super) fn array() -> Self {
        Self {
            before: b"[\n".to_vec(),
            between: b",\n",
            after: b"\n]\n",
        }
    }
}

/// Records on their way into parts, each packed as a whole.
struct Copies<P: Parts> {
    /// None only while a part is changed.
    packed: Option<Packed<P>>,
    packing: Packing,
    frame: Frame,
    /// Records in this part.
    n_records: u64,
    /// Bytes put in since the packed part last grew, and its size then: what is on its way.
    n_waiting: u64,
    n_seen: u64,
}

/// What the end of a packed stream takes, at most.
const TAIL_BYTES: u64 = 64;

impl<P: Parts> Copies<P> {
    fn new(out: P, packing: Packing, frame: Frame) -> io::Result<Self> {
        let mut copies = Self {
            packed: Some(Packed::new(out, packing)?),
            packing,
            frame,
            n_records: 0,
            n_waiting: 0,
            n_seen: 0,
        };
        copies.start()?;
        Ok(copies)
    }

    fn start(&mut self) -> io::Result<()> {
        (self.n_records, self.n_waiting, self.n_seen) = (0, 0, 0);
        let before = std::mem::take(&mut self.frame.before);
        let written = self.write_all(&before);
        self.frame.before = before;
        written
    }

    /// Puts a record into this part, or into a new one if it has no room.
    fn put(&mut self, record: &[u8]) -> io::Result<()> {
        self.make_room(record.len() as u64)?;
        if self.n_records > 0 {
            self.write_all(self.frame.between)?;
        }
        self.n_records += 1;
        self.write_all(record)
    }

    /// Starts a new part if a record of this size, not put in yet, has no room; whether it did.
    fn make_room(&mut self, n_bytes: u64) -> io::Result<bool> {
        let Some(packed) = &self.packed else {
            return Ok(false);
        };
        let Some(limit) = packed.out().limit() else {
            return Ok(false);
        };
        let frame = (self.frame.between.len() + self.frame.after.len()) as u64;
        let tail = match self.packing {
            Packing::Plain => 0,
            _ => TAIL_BYTES,
        };
        let there = packed.out().n_bytes() + self.n_waiting;
        if self.n_records == 0 || there + n_bytes + frame + tail <= limit {
            return Ok(false);
        }
        let mut out = self.end_part()?;
        out.next_part()?;
        self.packed = Some(Packed::new(out, self.packing)?);
        self.start()?;
        Ok(true)
    }

    fn end_part(&mut self) -> io::Result<P> {
        if self.n_records > 0 || !self.frame.before.is_empty() {
            self.write_all(self.frame.after)?;
        }
        let packed = self.packed.take();
        packed.ok_or(io::ErrorKind::WriteZero)?.finish()
    }

    fn finish(mut self) -> io::Result<()> {
        self.end_part().map(drop)
    }
}

impl<P: Parts> Write for Copies<P> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let packed = self.packed.as_mut().ok_or(io::ErrorKind::WriteZero)?;
        let n = packed.write(bytes)?;
        let n_bytes = packed.out().n_bytes();
        self.n_waiting += n as u64;
        if n_bytes != self.n_seen || self.packing == Packing::Plain {
            (self.n_seen, self.n_waiting) = (n_bytes, 0);
        }
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A line, ended whether or not the original was.
fn line(bytes: &[u8]) -> Vec<u8> {
    [bytes.strip_suffix(b"\n").unwrap_or(bytes), b"\n"].concat()
}

fn keep_lines(
    chosen: &mut Chosen<'_>,
    mut cutter: LineCutter,
    mut copies: Copies<impl Parts>,
) -> io::Result<()> {
    while let Some(cut) = cutter.next() {
        let Cut::Block(block) = cut else {
            continue;
        };
        for (start, bytes) in block.lines() {
            if chosen.has(block.place(start).position) {
                copies.put(&line(bytes))?;
            }
        }
    }
    copies.finish()
}

fn keep_objects(
    chosen: &mut Chosen<'_>,
    mut cutter: ValueCutter,
    mut copies: Copies<impl Parts>,
) -> io::Result<()> {
    while let Some(cut) = cutter.next() {
        let Cut::Block(block) = cut else {
            continue;
        };
        for (position, object) in block.objects() {
            if chosen.has(position) {
                copies.put(object)?;
            }
        }
    }
    copies.finish()
}

fn keep_cells(
    chosen: &mut Chosen<'_>,
    mut cutter: RowCutter,
    mut copies: Copies<impl Parts>,
) -> io::Result<()> {
    while let Some(row) = cutter.row() {
        if let Ok(row) = row
            && chosen.has(row.position)
        {
            copies.put(&line(&row.raw))?;
        }
    }
    copies.finish()
}

/// A file that is one document stays or goes.
fn keep_whole(chosen: &mut Chosen<'_>, mut original: File, mut out: impl Write) -> io::Result<()> {
    if chosen.has(Position::default()) {
        io::copy(&mut original, &mut out)?;
    }
    out.flush()
}

/// A web archive being copied.
struct Archive<P: Parts> {
    /// The file, to copy packed bytes from.
    original: File,
    /// How each record is packed.
    packing: Packing,
    copies: Copies<P>,
    /// Bytes at the start of the file that every part needs: the dictionary of zstd.
    n_prefix: u64,
}

impl<P: Parts> Archive<P> {
    fn new(original: File, packing: Packing, copies: Copies<P>) -> Self {
        Self {
            original,
            packing,
            copies,
            n_prefix: 0,
        }
    }

    fn keep(
        mut self,
        chosen: &mut Chosen<'_>,
        mut dropped: Option<&mut Dropped<'_>>,
        mut cutter: RecordCutter,
    ) -> io::Result<Copies<P>> {
        let file_end = self.original.metadata()?.len();
        // A record waits until it is known where the next one starts.
        let mut waiting: Option<Record> = None;
        let mut is_first = true;
        loop {
            let next = cutter.record();
            if let Some(record) = waiting.take() {
                let end = match &next {
                    None => Some(file_end),
                    Some(Ok(next)) => Some(next.place.position)
                        .filter(|position| position.inner == 0)
                        .map(|position| position.offset),
                    Some(Err(_)) => None,
                };
                self.put(&record, end)?;
            }
            let record = match next {
                None => return Ok(self.copies),
                Some(Err(_)) => continue,
                Some(Ok(record)) => record,
            };
            let position = record.place.position;
            if std::mem::take(&mut is_first) && self.packing == Packing::Zstd {
                // A dictionary may come before the first record.
                self.n_prefix = position.offset;
                self.copy(0, position.offset)?;
            }
            let is_chosen = chosen.has(position);
            let is_about_file = matches!(record.head.kind.as_str(), "warcinfo" | "filedesc");
            let fate = match &mut dropped {
                Some(dropped) => dropped.next(&record),
                None if is_chosen || is_about_file => Fate::Stays,
                None => Fate::Goes,
            };
            match (fate, &dropped) {
                (Fate::Stays, _) => waiting = Some(record),
                (Fate::Revisit(original), Some(dropped)) => {
                    self.put_revisit(&record, original, dropped)?;
                }
                _ => {}
            }
        }
    }

    /// Writes a revisit record in the place of one.
    fn put_revisit(
        &mut self,
        record: &Record,
        original: &RefersTo,
        dropped: &Dropped<'_>,
    ) -> io::Result<()> {
        if record.dialect == Dialect::Arc {
            let message = "ARC has no revisit records; pass --dropped remove";
            return Err(io::Error::other(message));
        }
        let [head, block] = revisit(record, original, dropped.payload_of(original));
        self.pack(&[&head, &block, b"\r\n\r\n"])
    }

    /// Packs a record by itself.
    fn pack(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        let mut packed = Packed::new(Vec::new(), self.packing)?;
        for part in parts {
            packed.write_all(part)?;
        }
        let record = packed.finish()?;
        self.make_room(record.len() as u64)?;
        self.copies.write_all(&record)
    }

    /// Starts a new part if a record of this size has no room.
    fn make_room(&mut self, n_bytes: u64) -> io::Result<()> {
        if self.copies.make_room(n_bytes)? {
            self.copy(0, self.n_prefix)?;
        }
        self.copies.n_records += 1;
        Ok(())
    }

    /// Copies a record whose packed bytes reach to `end`, if it is alone in them.
    fn put(&mut self, record: &Record, end: Option<u64>) -> io::Result<()> {
        let Position { offset, inner } = record.place.position;
        let is_alone = self.packing != Packing::Plain && inner == 0;
        if let Some(end) = end.filter(|&end| is_alone && end > offset) {
            self.make_room(end - offset)?;
            return self.copy(offset, end);
        }
        let separator: &[u8] = match record.dialect {
            Dialect::Warc => b"\r\n\r\n",
            Dialect::Arc => b"\n",
        };
        self.pack(&[&record.raw_head, &record.block, separator])
    }

    fn copy(&mut self, start: u64, end: u64) -> io::Result<()> {
        self.original.seek(SeekFrom::Start(start))?;
        io::copy(&mut (&self.original).take(end - start), &mut self.copies)?;
        Ok(())
    }
}

/// Copies rows with all their columns. Only row groups with chosen rows are looked at: others may
/// be damaged.
fn keep_rows(
    file: File,
    positions: &[Position],
    out: impl Parts + Send,
) -> Result<Kept, ParquetError> {
    let mut rest = positions;
    guarded(|| {
        let metadata = ArrowReaderMetadata::load(&file, Default::default())?;
        let properties = like(metadata.metadata());
        let schema = Arc::clone(metadata.schema());
        let limit = out.limit();
        let new = |out| ArrowWriter::try_new(out, Arc::clone(&schema), Some(properties.clone()));
        let mut writer = new(out)?;
        let mut n_in_part = 0;
        let n_rows_at_once = rows_per_batch(metadata.metadata(), limit);
        let mut start = 0;
        for (number, group) in metadata.metadata().row_groups().iter().enumerate() {
            let n_rows = usize::try_from(group.num_rows()).unwrap_or(0);
            let end = start + n_rows as u64;
            let n_inside = rest.partition_point(|position| position.offset < end);
            let (inside, after) = rest.split_at(n_inside);
            rest = after;
            let rows = inside.iter().filter_map(|position| {
                let row = usize::try_from(position.offset.checked_sub(start)?).ok()?;
                Some(row..row + 1)
            });
            let rows = RowSelection::from_consecutive_ranges(rows, n_rows);
            start = end;
            if inside.is_empty() {
                continue;
            }
            let file = file.try_clone()?;
            let builder =
                ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata.clone());
            let builder = builder
                .with_row_groups(vec![number])
                .with_row_selection(rows);
            for batch in builder.with_batch_size(n_rows_at_once).build()? {
                let batch = batch?;
                // What waits is not packed yet, so this is more than the rows will take.
                let there = writer.bytes_written() + writer.in_progress_size();
                let n_bytes = (there + batch.get_array_memory_size()) as u64;
                if n_in_part > 0 && limit.is_some_and(|limit| n_bytes > limit) {
                    let mut out = writer.into_inner()?;
                    out.next_part()?;
                    (writer, n_in_part) = (new(out)?, 0);
                }
                n_in_part += batch.num_rows();
                writer.write(&batch)?;
            }
        }
        writer.close().map(drop)
    })?;
    Ok(Kept {
        copied: (positions.len() - rest.len()) as u64,
        missing: rest.len() as u64,
    })
}

/// As many rows as stay far below the 2 GiB that a column of text may have in a batch.
pub(super) fn rows_per_batch(metadata: &ParquetMetaData, limit: Option<u64>) -> usize {
    const BATCH_BYTES: i64 = 16 << 20;
    if let Some(limit) = limit.and_then(|limit| i64::try_from(limit / 8).ok())
        && limit < BATCH_BYTES
    {
        return rows_in(metadata, limit);
    }
    rows_in(metadata, BATCH_BYTES)
}

/// Rows that have so many bytes, about.
fn rows_in(metadata: &ParquetMetaData, n_bytes: i64) -> usize {
    let sizes = metadata.row_groups().iter();
    let largest = sizes.map(|group| group.total_byte_size() / group.num_rows().max(1));
    let n_rows = n_bytes / largest.max().unwrap_or(0).max(1);
    usize::try_from(n_rows).map_or(1, |n| n.clamp(1, 1024))
}

/// Settings that write a file like the one described: its compression and the notes of those who
/// made it.
pub(super) fn like(metadata: &ParquetMetaData) -> WriterProperties {
    let mut groups = metadata.row_groups().iter();
    let column = groups.next().and_then(|group| group.columns().first());
    let notes = metadata.file_metadata().key_value_metadata().cloned();
    let notes = notes.map(|mut notes| {
        // The writer adds its own.
        notes.retain(|note| note.key != "ARROW:schema");
        notes
    });
    WriterProperties::builder()
        .set_compression(column.map_or(Compression::UNCOMPRESSED, |column| column.compression()))
        .set_key_value_metadata(notes)
        .build()
}
