//! Copies selected records of a file, byte for byte, into a file of the same format.
//!
//! Kept documents are written in their input format, with every field, even unknown ones. The file
//! is read a second time, in order, and compared with the ascending list of positions:
//!
//! | format | part that is copied |
//! |---|---|
//! | JSON Lines | the line |
//! | other JSON | the object: in an array if it was in one, otherwise followed by a line end |
//! | CSV | the header row and the row |
//! | Parquet | the row with all its columns, and the metadata of the file |
//! | WARC, ARC | the record, and every record that is not a dropped document: requests, images, revisits |
//! | a file that is one document | the file |
//!
//! The copy is compressed like the original. A record of an archive that is alone in its gzip
//! member or zstd frame is copied unchanged, so the cost is that of reading; others are compressed
//! again, one member each. A copy in xz or bzip2 is one stream. A record with a wrong length is
//! copied with the block that was found, and its header, including the wrong length, is unchanged.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use super::archive::Archive;
use super::parts::{Copies, Frame, Parts, Whole};
use super::revisit::Dropped;
use super::rows::keep_rows;
use crate::config::Config;
use crate::document::{Position, Warning};
use crate::error::Error;
use crate::format::Cut;
use crate::format::csv::RowCutter;
use crate::format::json::lines::LineCutter;
use crate::format::json::values::ValueCutter;
use crate::format::sniff::{Format, is_document_name, sniff};
use crate::format::warc::cut::{Blocks, RecordCutter};
use crate::format::warc::dialect::Dialect;
use crate::source::input::Origin;
use crate::source::member::FileCompression;
use crate::source::raw::Handle;
use crate::source::stream::Stream;

/// The result of copying.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kept {
    /// Positions at which a record was found and copied.
    pub copied: u64,
    /// Positions at which no record starts.
    pub missing: u64,
    /// The first record that exists but could not be copied: for example, a Parquet row with a
    /// damaged cell in a column other than the text.
    pub lost: Option<Warning>,
}

/// Copies the records of the file `source` that start at `positions`, which must ascend. For an
/// archive, the records that describe the file are copied too.
///
/// # Errors
///
/// If the file cannot be read or the output cannot be written.
pub fn keep(
    source: &Path,
    positions: &[Position],
    out: impl Write + Send,
    config: &Config,
) -> Result<Kept, Error> {
    keep_parts(source, positions, None, Whole(out), config)
}

/// Like [`keep`], with an output that may have several parts. For an archive with `dropped`, all
/// records are copied except the dropped ones; the records at `positions` must be among the copied
/// ones.
///
/// # Errors
///
/// If the file cannot be read or the output cannot be written.
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
            let kept = keep_rows(source, open()?, positions, out, config);
            return kept.map_err(|error| Error::Parquet {
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
                // These formats are designed for whole files and compress single records badly.
                FileCompression::Xz | FileCompression::Bzip2 => {
                    Copies::new(out, packing, Frame::LINES).and_then(|copies| {
                        let archive = Archive::new(original, FileCompression::Plain, copies);
                        archive.keep(&mut chosen, dropped, cutter)?.finish()
                    })
                }
                _ => {
                    let copies = Copies::new(out, FileCompression::Plain, Frame::LINES);
                    copies.and_then(|copies| {
                        let archive = Archive::new(original, packing, copies);
                        archive.keep(&mut chosen, dropped, cutter)?.finish()
                    })
                }
            }
        }
        Some(Format::Html | Format::Xml | Format::Text | Format::Pdf) | None => {
            keep_whole(&mut chosen, open()?, out)
        }
    };
    result.map_err(io("cannot copy"))?;
    Ok(chosen.finish())
}

/// Copies parts of an uncompressed file of lines, given as ascending byte ranges that each end at a
/// line end.
///
/// For callers that know where their records end.
///
/// # Errors
///
/// If the file cannot be read or the output cannot be written.
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

/// Number of bytes copied together.
const COPY_BYTES: usize = 256 << 10;

/// Copies ranges through a buffer. For many short ranges this takes a third less time than if the
/// kernel copied each from file to file.
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

/// Whether a file contains uncompressed JSON Lines, whose records are byte ranges.
#[must_use]
pub fn is_plain_json_lines(source: &Path, config: &Config) -> bool {
    let Ok(file) = File::open(source) else {
        return false;
    };
    let mut stream = Stream::new(Handle::File(file), &config.limits);
    let format = sniff(&mut stream, source, Origin::Named, config);
    matches!(format, Some(Format::JsonLines)) && stream.packing() == FileCompression::Plain
}

/// Whether a file is a web archive.
#[must_use]
pub fn is_archive(source: &Path, config: &Config) -> bool {
    // No file of a directory of pages is opened for this.
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

/// Whether a file contains one JSON array, so that nothing may follow the copy of its records.
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

/// The remaining positions.
pub(super) struct Chosen<'a> {
    positions: &'a [Position],
    kept: Kept,
}

impl Chosen<'_> {
    /// Whether the record at `position` is kept; records must be requested in order.
    pub(super) fn has(&mut self, position: Position) -> bool {
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

/// A line with a line end, even if the original had none.
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

/// Keeps or drops a file that is one document.
fn keep_whole(chosen: &mut Chosen<'_>, mut original: File, mut out: impl Write) -> io::Result<()> {
    if chosen.has(Position::default()) {
        io::copy(&mut original, &mut out)?;
    }
    out.flush()
}
