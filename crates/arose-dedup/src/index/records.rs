//! Records: names and sketches of documents, in the order of insertion.
//!
//! Names vary in length and sketches do not, so they are stored separately. *Rows* have equal size,
//! and each stores the end of its name in a *heap* of names. Row and name have their own checksums,
//! since they are read one at a time. The documents in memory ([`Block`]) and those in a file
//! ([`Records`]) have the same layout.

use std::num::NonZeroU32;
use std::ops::Range;
use std::path::Path;

use arose::digest::{Digest, digest64};

use super::Error;
use super::file::{
    Allowance, Content, NumberReader, PREAMBLE_BYTES, Sealed, Sealer, TRAILER_BYTES, u32_at, u64_at,
};
use super::sketch::{SiteTag, Sketch};

/// Bytes of a row without the words: digest, site, end of name and flags, checksum of the name,
/// checksum of the row.
const FIXED_BYTES: usize = 16 + 4 + 4 + 2 + 2;

/// Maximum bytes of names in one block. The other four bits of the field are flags.
pub(super) const MAX_NAMES: usize = (1 << 28) - 1;

/// Maximum length of a name.
pub const MAX_NAME: usize = u16::MAX as usize;

const SHORT: u32 = 1 << 28;
const WITHOUT_WORDS: u32 = 1 << 29;

/// Returns the size of a row with this many words.
pub(super) fn row_bytes(n_words: usize) -> usize {
    FIXED_BYTES + 8 * n_words
}

/// Rows and names in memory.
#[derive(Debug, Clone)]
pub(super) struct Block {
    n_words: usize,
    rows: Vec<u8>,
    names: Vec<u8>,
}

impl Block {
    pub(super) fn new(n_words: usize) -> Self {
        let (rows, names) = (Vec::new(), Vec::new());
        Self {
            n_words,
            rows,
            names,
        }
    }

    pub(super) fn n_words(&self) -> usize {
        self.n_words
    }

    pub(super) fn n_rows(&self) -> usize {
        self.rows.len() / row_bytes(self.n_words)
    }

    pub(super) fn n_bytes(&self) -> usize {
        self.rows.len() + self.names.len()
    }

    /// Returns whether there is space for this many names of any length.
    pub(super) fn has_room_for(&self, n: usize) -> bool {
        self.names.len() + n * MAX_NAME <= MAX_NAMES
    }

    /// Appends a document. There must be space for its name, and the sketch must be of the index's
    /// kind.
    pub(super) fn push(&mut self, name: &str, sketch: &Sketch) {
        let start = self.rows.len();
        self.names.extend_from_slice(name.as_bytes());
        let mut end = self.names.len() as u32;
        if sketch.is_short {
            end |= SHORT;
        }
        if sketch.words.is_empty() {
            end |= WITHOUT_WORDS;
        }
        let rows = &mut self.rows;
        rows.extend(sketch.digest.0.to_le_bytes());
        rows.extend(sketch.site.map_or(0, |site| site.0.get()).to_le_bytes());
        rows.extend(end.to_le_bytes());
        rows.extend((digest64(name.as_bytes()) as u16).to_le_bytes());
        let words = sketch.words.iter().chain(std::iter::repeat(&0));
        words
            .take(self.n_words)
            .for_each(|word| rows.extend(word.to_le_bytes()));
        let check = digest64(&rows[start..]) as u16;
        rows.extend(check.to_le_bytes());
    }

    /// Returns the row with a number that exists.
    fn row(&self, number: usize) -> &[u8] {
        let size = row_bytes(self.n_words);
        &self.rows[number * size..(number + 1) * size]
    }

    pub(super) fn sketch_into(&self, number: usize, sketch: &mut Sketch) {
        decode(self.row(number), sketch);
    }

    pub(super) fn name(&self, number: usize) -> &str {
        let start = number
            .checked_sub(1)
            .map_or(0, |before| name_end(self.row(before)));
        let name = &self.names[start..name_end(self.row(number))];
        std::str::from_utf8(name).expect("names come in as text")
    }

    /// Writes a file of these records.
    pub(super) fn write(&self, path: &Path, first_row: u32) -> Result<u64, Error> {
        let mut sealer = Sealer::create(Content::Records, path)?;
        sealer.write(&Header::of(self, first_row).encode())?;
        sealer.write(&self.rows)?;
        sealer.write(&self.names)?;
        sealer.seal()
    }
}

/// The first bytes of the body of a file of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Header {
    first_row: u32,
    n_rows: u32,
    n_words: u32,
    names_bytes: u32,
}

impl Header {
    const BYTES: usize = 24;

    fn of(block: &Block, first_row: u32) -> Self {
        Self {
            first_row,
            n_rows: block.n_rows() as u32,
            n_words: block.n_words as u32,
            names_bytes: block.names.len() as u32,
        }
    }

    fn encode(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let fields = [self.first_row, self.n_rows, self.n_words, self.names_bytes];
        for (bytes, field) in bytes.chunks_exact_mut(4).zip(fields) {
            bytes.copy_from_slice(&field.to_le_bytes());
        }
        let check = digest64(&bytes[..16]);
        bytes[16..].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8], path: &Path) -> Result<Self, Error> {
        let mut fields = NumberReader::new(bytes, path);
        let header = Self {
            first_row: fields.u32()?,
            n_rows: fields.u32()?,
            n_words: fields.u32()?,
            names_bytes: fields.u32()?,
        };
        if fields.u64()? == digest64(&bytes[..16]) {
            Ok(header)
        } else {
            Err(Error::damaged(path, "its header is invalid"))
        }
    }
}

/// Offset at which the rows of a file start.
const ROWS: u64 = (PREAMBLE_BYTES + Header::BYTES) as u64;

/// Rows and names in a file.
#[derive(Debug)]
pub(super) struct Records {
    file: Sealed,
    header: Header,
}

impl Records {
    /// Opens a file that was sealed with this checksum.
    pub(super) fn open(path: &Path, check: u64) -> Result<Self, Error> {
        let file = Sealed::open_expected(Content::Records, path, check)?;
        let n_header = (file.n_bytes - PREAMBLE_BYTES as u64).min(Header::BYTES as u64);
        let header = Header::decode(&file.read(PREAMBLE_BYTES as u64, n_header as usize)?, path)?;
        let size = row_bytes(header.n_words as usize) as u64;
        let expected = ROWS + u64::from(header.n_rows) * size + u64::from(header.names_bytes);
        if expected != file.n_bytes {
            return Err(Error::damaged(path, "its length differs from its header"));
        }
        Ok(Self { file, header })
    }

    /// Loads the file into memory, if there is space.
    pub(super) fn hold(&mut self, allowance: &Allowance) -> Result<(), Error> {
        self.file.hold(self.file.n_bytes, allowance)
    }

    /// Returns the memory use in bytes.
    pub(super) fn held_bytes(&self) -> usize {
        self.file.held().map_or(0, <[u8]>::len)
    }

    pub(super) fn first_row(&self) -> u32 {
        self.header.first_row
    }

    pub(super) fn n_rows(&self) -> u32 {
        self.header.n_rows
    }

    pub(super) fn n_words(&self) -> usize {
        self.header.n_words as usize
    }

    pub(super) fn n_bytes(&self) -> u64 {
        self.file.n_bytes + TRAILER_BYTES as u64
    }

    /// Returns the sketch in a row of this file, counted from its first row.
    pub(super) fn sketch_into(
        &self,
        number: u32,
        sketch: &mut Sketch,
        buffer: &mut Vec<u8>,
    ) -> Result<(), Error> {
        self.read_rows(number..number + 1, buffer)?;
        decode(buffer, sketch);
        Ok(())
    }

    /// Returns the name in a row of this file.
    pub(super) fn name(&self, number: u32) -> Result<String, Error> {
        // The preceding row says where the name starts, so both are read at once.
        let first = number.saturating_sub(1);
        let mut rows = Vec::new();
        self.read_rows(first..number + 1, &mut rows)?;
        let (before, row) = rows.split_at(rows.len() - self.size());
        let start = if before.is_empty() {
            0
        } else {
            name_end(before)
        };
        let (end, check) = (name_end(row), name_check(row));
        if start > end || end > self.header.names_bytes as usize {
            return Err(self.damaged("a name is out of bounds"));
        }
        let name = self
            .file
            .read(self.names_start() + start as u64, end - start)?;
        self.check_name(name, check)
    }

    /// Reads everything into memory and verifies it.
    pub(super) fn load(&self) -> Result<Block, Error> {
        let n_rows_bytes = self.header.n_rows as usize * self.size();
        let rows = self.file.read(ROWS, n_rows_bytes)?;
        let names = self
            .file
            .read(self.names_start(), self.header.names_bytes as usize)?;
        let mut start = 0;
        for row in rows.chunks_exact(self.size()) {
            self.check_row(row)?;
            let end = name_end(row);
            let Some(name) = names.get(start..end) else {
                return Err(self.damaged("a name is out of bounds"));
            };
            self.check_name(name.to_vec(), name_check(row))?;
            start = end;
        }
        Ok(Block {
            n_words: self.n_words(),
            rows,
            names,
        })
    }

    /// Compares the checksum of the whole file.
    pub(super) fn verify(&self) -> Result<(), Error> {
        self.file.verify()
    }

    fn size(&self) -> usize {
        row_bytes(self.n_words())
    }

    fn names_start(&self) -> u64 {
        ROWS + u64::from(self.header.n_rows) * self.size() as u64
    }

    fn read_rows(&self, numbers: Range<u32>, buffer: &mut Vec<u8>) -> Result<(), Error> {
        if numbers.end > self.header.n_rows {
            return Err(self.damaged("a sorted run refers to a row that does not exist"));
        }
        buffer.resize(numbers.len() * self.size(), 0);
        let start = ROWS + u64::from(numbers.start) * self.size() as u64;
        self.file.read_into(start, buffer)?;
        let mut rows = buffer.chunks_exact(self.size());
        rows.try_for_each(|row| self.check_row(row))
    }

    fn check_row(&self, row: &[u8]) -> Result<(), Error> {
        let (content, check) = row.split_at(row.len() - 2);
        if digest64(content) as u16 == u16::from_le_bytes([check[0], check[1]]) {
            Ok(())
        } else {
            Err(self.damaged("a row has a wrong checksum"))
        }
    }

    fn check_name(&self, name: Vec<u8>, check: u16) -> Result<String, Error> {
        if digest64(&name) as u16 != check {
            return Err(self.damaged("a name has a wrong checksum"));
        }
        String::from_utf8(name).map_err(|_| self.damaged("a name is not text"))
    }

    fn damaged(&self, what: &str) -> Error {
        Error::damaged(&self.file.path, what)
    }
}

fn decode(row: &[u8], sketch: &mut Sketch) {
    let flags = u32_at(row, 20);
    let digest = u128::from(u64_at(row, 0)) | u128::from(u64_at(row, 8)) << 64;
    sketch.digest = Digest(digest);
    sketch.site = NonZeroU32::new(u32_at(row, 16)).map(SiteTag);
    sketch.is_short = flags & SHORT != 0;
    sketch.words.clear();
    if flags & WITHOUT_WORDS == 0 {
        let words = row[FIXED_BYTES - 2..row.len() - 2].chunks_exact(8);
        sketch.words.extend(words.map(|word| u64_at(word, 0)));
    }
}

fn name_end(row: &[u8]) -> usize {
    (u32_at(row, 20) & MAX_NAMES as u32) as usize
}

fn name_check(row: &[u8]) -> u16 {
    u16::from_le_bytes([row[24], row[25]])
}
