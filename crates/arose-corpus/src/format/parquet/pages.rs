//! Computes the memory needed by the pages of a column from their headers, before decoding.
//!
//! *Question.* The Parquet library trusts the page size in the header, and some codecs write as
//! much as the compressed bytes give. How can a column of a hostile file be decoded in bounded
//! memory?
//!
//! *Idea.* Go from header to header without reading the bytes between them. A header gives the
//! input and output size of the codec, the number of values and their encoding. A page that is too
//! large, or expands too far, is rejected with its row group. So is a column with more values than
//! the row group has rows. For codecs that may give more than the header says,
//! [`unpack`](super::unpack) stops at that size. The pages of a batch are held together, so a batch
//! has as many rows as fit into a block at the density of the densest page. It has fewer if a value
//! may repeat the one before it.
//!
//! *Cost.* One short read per page.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use parquet::basic::{Compression, Type};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::schema::types::ColumnDescriptor;

use crate::config::Limits;
use crate::document::Reason;

/// Maximum number of rows in a batch.
pub(crate) const MAX_ROWS: u64 = 8192;

/// Maximum size of a page header; its statistics may contain whole values.
const MAX_HEADER: usize = 1 << 20;

/// Maximum number of bytes that LZ4 produces from one byte.
const MAX_LZ4: u64 = 255;

/// How the values of a column are held after decoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Values {
    /// A text that fills many rows is held once.
    Shared,
    /// Each row has its own copy.
    Copied,
}

/// The result of checking the headers of a column.
pub(crate) struct Checked {
    /// Number of rows to decode at once.
    pub(crate) rows_at_once: usize,
    /// Memory of a value where the column is densest; at least that of an empty value.
    pub(crate) value_bytes: u64,
    /// Memory of a row: that of one value, or for lists the average per row.
    pub(crate) row_bytes: u64,
    /// Memory of the pages themselves: the dictionary and the largest other page.
    pub(crate) held_bytes: u64,
    /// The decompressed size of each page by its header, in file order.
    pub(crate) sizes: VecDeque<usize>,
}

/// Size of a decoded value of a column without text.
fn empty_bytes(column: &ColumnDescriptor) -> u64 {
    /// A view, or a number with its metadata.
    const VALUE_BYTES: u64 = 16;
    match column.physical_type() {
        Type::FIXED_LEN_BYTE_ARRAY => u64::try_from(column.type_length()).unwrap_or(0),
        _ => 0,
    }
    .max(VALUE_BYTES)
}

/// Checks all pages of a column of a row group with `n_rows` rows.
pub(crate) fn check(
    file: &mut File,
    column: &ColumnChunkMetaData,
    n_rows: usize,
    values: Values,
    block_bytes: usize,
    limits: &Limits,
) -> Result<Checked, (Reason, String)> {
    let (start, length) = column.byte_range();
    let end = start.saturating_add(length);
    let codec = column.compression();
    let descriptor = column.column_descr();
    let is_repeated = descriptor.max_rep_level() > 0;
    let most_values = match is_repeated {
        // The size of lists is bounded when they are decoded.
        true => u64::MAX,
        false => n_rows as u64,
    };
    // Values of a fixed size have that size, whatever their source.
    let values = match descriptor.physical_type() {
        Type::BYTE_ARRAY => values,
        _ => Values::Shared,
    };
    let (mut at, mut n_values, mut at_once) = (start, 0_u64, MAX_ROWS);
    let mut value_bytes = empty_bytes(descriptor);
    let (mut dictionary, mut largest, mut total) = (0_u64, 0, 0_u64);
    let mut sizes = VecDeque::new();
    while at < end {
        let page = match header_at(file, at, end) {
            Ok(Some((header, n))) => ParquetPage { at: at + n, header },
            // Some writers leave bytes after the last page.
            Ok(None) if n_values >= u64::try_from(column.num_values()).unwrap_or(0) => break,
            Ok(None) => return Err((Reason::BadParquet, format!("no page header at byte {at}"))),
            Err(error) => return Err((Reason::Unreadable, error.to_string())),
        };
        page.check(file, codec, limits)?;
        at_once = at_once.min(page.rows_at_once(values, block_bytes as u64, limits));
        n_values = n_values.saturating_add(page.header.values());
        if n_values > most_values {
            let detail = format!("{n_values} values in a column of {n_rows} rows");
            return Err((Reason::BadParquet, detail));
        }
        value_bytes = value_bytes.max(page.value_bytes(values));
        let n_bytes = page.header.uncompressed();
        match page.header.is_dictionary() {
            true => dictionary = dictionary.saturating_add(n_bytes),
            false => largest = largest.max(n_bytes),
        }
        total = total.saturating_add(n_bytes);
        if !page.header.is_index() {
            sizes.push_back(usize::try_from(page.header.uncompressed()).unwrap_or(usize::MAX));
        }
        at = page.at.saturating_add(page.header.compressed());
    }
    let row_bytes = match is_repeated {
        true => {
            let all = total.max(n_values.saturating_mul(empty_bytes(descriptor)));
            all.div_ceil((n_rows as u64).max(1))
        }
        false => value_bytes,
    };
    Ok(Checked {
        rows_at_once: usize::try_from(at_once.max(1)).unwrap_or(1),
        value_bytes,
        row_bytes,
        held_bytes: dictionary.saturating_add(largest),
        sizes,
    })
}

/// The wanted fields of a page header.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Header {
    /// The kind of page: data in version 1 or 2, index, or dictionary.
    kind: i64,
    uncompressed: i64,
    compressed: i64,
    n_values: i64,
    encoding: i64,
    /// Whether the values are stored in plain encoding.
    is_plain: bool,
}

impl Header {
    fn compressed(&self) -> u64 {
        u64::try_from(self.compressed).unwrap_or(0)
    }

    fn uncompressed(&self) -> u64 {
        u64::try_from(self.uncompressed).unwrap_or(u64::MAX)
    }

    /// Number of values of a data page.
    fn values(&self) -> u64 {
        match self.is_dictionary() || self.is_index() {
            true => 0,
            false => u64::try_from(self.n_values).unwrap_or(0),
        }
    }

    fn is_index(&self) -> bool {
        self.kind == 1
    }

    fn is_dictionary(&self) -> bool {
        self.kind == 2
    }
}

struct ParquetPage {
    header: Header,
    /// Offset of its content.
    at: u64,
}

impl ParquetPage {
    /// Whether the page may be decoded.
    fn check(
        &self,
        file: &mut File,
        codec: Compression,
        limits: &Limits,
    ) -> Result<(), (Reason, String)> {
        let (input, output) = (self.header.compressed(), self.header.uncompressed());
        if output > limits.page_bytes as u64 {
            return Err(too_large(limits));
        }
        if limits.is_bomb(input, output) {
            let detail = format!("a page of {input} bytes becomes {output}");
            return Err((Reason::Expansion, detail));
        }
        // Of the codecs with this name, only one may give more than is requested.
        let is_frame = codec == Compression::LZ4
            && !self.header.is_plain
            && input.saturating_mul(MAX_LZ4) > limits.page_bytes as u64
            && self.starts_lz4_frame(file);
        match is_frame {
            true => Err(too_large(limits)),
            false => Ok(()),
        }
    }

    fn starts_lz4_frame(&self, file: &mut File) -> bool {
        const MAGIC: [u8; 4] = 0x184d_2204_u32.to_le_bytes();
        let mut start = [0; 4];
        let is_read = file.seek(SeekFrom::Start(self.at)).is_ok();
        is_read && file.read_exact(&mut start).is_ok() && start == MAGIC
    }

    /// Whether each value may be as large as the page.
    fn repeats(&self, values: Values) -> bool {
        /// Each value is stored as the prefix that it shares with the previous value, and the rest.
        const DELTA_BYTE_ARRAY: i64 = 7;
        let is_copied = values == Values::Copied && self.header.is_dictionary();
        is_copied || self.header.encoding == DELTA_BYTE_ARRAY
    }

    /// Memory of a value in this page.
    fn value_bytes(&self, values: Values) -> u64 {
        let n_bytes = self.header.uncompressed();
        match self.header.is_dictionary() {
            _ if self.repeats(values) => n_bytes,
            true => 0,
            false => n_bytes.div_ceil(self.header.values().max(1)),
        }
    }

    /// Number of rows whose values in this page may be held at once.
    fn rows_at_once(&self, values: Values, block_bytes: u64, limits: &Limits) -> u64 {
        let n_bytes = self.header.uncompressed().max(1);
        if self.repeats(values) {
            return limits.page_bytes as u64 / n_bytes;
        }
        match self.header.is_dictionary() {
            true => MAX_ROWS,
            false => block_bytes.saturating_mul(self.header.values()) / n_bytes,
        }
    }
}

fn too_large(limits: &Limits) -> (Reason, String) {
    let detail = format!("a page of more than {} bytes", limits.page_bytes);
    (Reason::TooLarge, detail)
}

/// The header at an offset of the file, and its length; none if there is none before `end`.
fn header_at(file: &mut File, at: u64, end: u64) -> io::Result<Option<(Header, u64)>> {
    let mut bytes = Vec::new();
    let mut want = 512;
    while want <= MAX_HEADER {
        file.seek(SeekFrom::Start(at + bytes.len() as u64))?;
        let missing = (want - bytes.len()) as u64;
        let before = bytes.len();
        let left = end.saturating_sub(at + bytes.len() as u64);
        file.take(missing.min(left)).read_to_end(&mut bytes)?;
        let mut fields = ThriftStruct { rest: &bytes };
        if let Some(header) = header(&mut fields) {
            let n = (bytes.len() - fields.rest.len()) as u64;
            let is_inside = header.compressed >= 0
                && header.uncompressed >= 0
                && at.saturating_add(n).saturating_add(header.compressed()) <= end;
            return Ok(is_inside.then_some((header, n)));
        }
        if bytes.len() - before < want - before {
            break;
        }
        want *= 4;
    }
    Ok(None)
}

/// Reads the struct `PageHeader` of the format.
fn header(fields: &mut ThriftStruct<'_>) -> Option<Header> {
    let mut header = Header::default();
    let mut has = [false; 2];
    fields.each(&mut |id, kind, fields| {
        match id {
            1 => header.kind = fields.number(kind)?,
            2 => (header.uncompressed, has[0]) = (fields.number(kind)?, true),
            3 => (header.compressed, has[1]) = (fields.number(kind)?, true),
            5 | 7 | 8 if kind == STRUCT => fields.each(&mut |inner, kind, fields| {
                match (id, inner) {
                    (_, 1) => header.n_values = fields.number(kind)?,
                    (5 | 7, 2) | (8, 4) => header.encoding = fields.number(kind)?,
                    (8, 7) => header.is_plain = kind == FALSE,
                    _ => fields.skip(kind, 0)?,
                }
                Some(())
            })?,
            _ => fields.skip(kind, 0)?,
        }
        Some(())
    })?;
    has.iter().all(|has| *has).then_some(header)
}

/// Types of Thrift's compact protocol. The type of a boolean field is also its value.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const STRUCT: u8 = 12;

/// Maximum nesting of skipped structs.
const MAX_DEPTH: usize = 16;

/// A struct in Thrift's compact protocol. Malformed or missing parts give none.
struct ThriftStruct<'a> {
    rest: &'a [u8],
}

impl ThriftStruct<'_> {
    /// Calls `read` for each field with its number and type; it must take the value.
    fn each(&mut self, read: &mut dyn FnMut(i64, u8, &mut Self) -> Option<()>) -> Option<()> {
        let mut id = 0;
        loop {
            let byte = self.byte()?;
            let kind = byte & 15;
            match (kind, byte >> 4) {
                (0, _) => return Some(()),
                (_, 0) => id = self.zigzag()?,
                (_, delta) => id += i64::from(delta),
            }
            read(id, kind, self)?;
        }
    }

    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(byte)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn zigzag(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// The value of an integer field.
    fn number(&mut self, kind: u8) -> Option<i64> {
        match kind {
            4..=6 => self.zigzag(),
            _ => None,
        }
    }

    fn skip(&mut self, kind: u8, depth: usize) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        match kind {
            TRUE | FALSE => Some(()),
            3 => self.byte().map(drop),
            4..=6 => self.varint().map(drop),
            7 => self.step(8),
            8 => {
                let n = self.varint()?;
                self.step(n)
            }
            9 | 10 => {
                let byte = self.byte()?;
                let n = match byte >> 4 {
                    15 => self.varint()?,
                    n => u64::from(n),
                };
                (0..n).try_for_each(|_| match byte & 15 {
                    TRUE | FALSE => self.byte().map(drop),
                    kind => self.skip(kind, depth + 1),
                })
            }
            STRUCT => self.each(&mut |_, kind, fields| fields.skip(kind, depth + 1)),
            _ => None,
        }
    }

    fn step(&mut self, n: u64) -> Option<()> {
        self.rest = self.rest.get(usize::try_from(n).ok()?..)?;
        Some(())
    }
}
