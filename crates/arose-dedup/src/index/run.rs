//! Sorted runs: look up the documents with a key in one range of rows.
//!
//! *Question.* A sorted run contains the entries `(prefix, row)` of up to 2^29 rows, with twenty
//! entries per document. How can a prefix be looked up without a search in a file, and in little
//! space?
//!
//! *Idea.* The naive way stores 12 bytes per entry, sorted, and searches. But prefixes are uniform,
//! so the sorted order determines most of each prefix. Divide the space of prefixes into about as
//! many *quotients* as there are entries. Store the number of entries of each quotient in unary: a
//! one per entry, a zero per quotient. Only the bits below the quotient are left to store, 7 for 20
//! million documents. This part takes 9 bits per entry and stays in memory. It is both the filter
//! that rejects other keys and the index into the file. The file contains only row numbers, packed
//! to as many bits as the largest needs.
//!
//! *Papers.* The coding is that of Elias 1974 and Fano 1971. Used as a filter, it is the quotient
//! filter of Bender et al. 2012.
//!
//! *Layout.* A *bucket* is 64 quotients: first their unary part, then their low bits. A *directory*
//! stores for each bucket the number of entries before it, which determines the position of
//! everything else. `docs/formats.md` has the grammar.
//!
//! *Cost.* For 20 million documents of 20 keys: 1.1 bytes per entry in memory, 4.2 on disk. Looking
//! up a prefix takes two or three cache lines and no read if the run does not contain it, and one
//! read of about 200 bytes if it does. *Error.* `n / 2^35` entries match another key by chance; the
//! caller compares sketches.
//!
//! *Not for* keys that are not uniform: hash them first.

mod stream;

use std::ops::Range;
use std::path::Path;

use arose::digest::digest64;
use arose::mix::mix;
use xxhash_rust::xxh3::Xxh3Default;

use super::Error;
use super::bits::{Bits, BytePacker, bits, bits_of_bytes};
use super::file::{
    Allowance, Content, NumberReader, PREAMBLE_BYTES, Sealed, Sealer, TRAILER_BYTES,
};
use super::keys::{PREFIX_BITS, prefix_of};

pub(super) use stream::{Entries, RunWriter};

/// Maximum number of rows of a sorted run, so that prefix and row fit into 64 bits.
pub(super) const MAX_ROWS: u64 = 1 << ROW_BITS;
const ROW_BITS: u32 = 64 - PREFIX_BITS;

/// Maximum number of entries of a sorted run, which its directory counts.
pub(super) const MAX_ENTRIES: u64 = u32::MAX as u64;

/// Number of quotients in a bucket.
const BUCKET_BITS: u32 = 6;
const BUCKET: usize = 1 << BUCKET_BITS;

/// An entry in one number: the prefix of a key, then the row, counted from the first row of its
/// run. Sorting the numbers sorts by key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Entry(pub(super) u64);

impl Entry {
    #[inline]
    pub(super) fn new(key: u64, row: u32) -> Self {
        Self(key >> ROW_BITS << ROW_BITS | u64::from(row))
    }

    /// Returns the first bits of the key, and nothing else.
    #[inline]
    pub(super) fn prefix(self) -> u64 {
        self.0 >> ROW_BITS
    }

    #[inline]
    pub(super) fn row(self) -> u32 {
        (self.0 & (MAX_ROWS - 1)) as u32
    }
}

/// The numbers that determine the positions of everything in a sorted run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shape {
    first_row: u32,
    n_rows: u32,
    n_entries: u32,
    quotient_bits: u32,
}

impl Shape {
    const BYTES: usize = 24;

    fn new(first_row: u32, n_rows: u32, n_entries: u32) -> Self {
        // Between one and two entries per quotient.
        let quotient_bits = n_entries.max(1).ilog2().clamp(BUCKET_BITS, PREFIX_BITS - 1);
        Self {
            first_row,
            n_rows,
            n_entries,
            quotient_bits,
        }
    }

    fn low_bits(&self) -> u32 {
        PREFIX_BITS - self.quotient_bits
    }

    /// Returns the number of bits of the largest row number.
    fn row_bits(&self) -> u32 {
        (32 - self.n_rows.saturating_sub(1).leading_zeros()).max(1)
    }

    fn n_buckets(&self) -> usize {
        1 << (self.quotient_bits - BUCKET_BITS)
    }

    /// Returns where a bucket's bits start, given the number of entries before it.
    fn bucket_start(&self, bucket: usize, n_before: u32) -> usize {
        n_before as usize * (1 + self.low_bits() as usize) + bucket * BUCKET
    }

    fn n_block_words(&self) -> usize {
        self.bucket_start(self.n_buckets(), self.n_entries)
            .div_ceil(64)
    }

    fn row_section_bytes(&self) -> u64 {
        (u64::from(self.n_entries) * u64::from(self.row_bits())).div_ceil(8)
    }

    /// Returns the size of the part that stays in memory: directory, checksums, blocks, checksum.
    fn resident_bytes(&self) -> usize {
        4 * (self.n_buckets() + 1) + 2 * self.n_buckets() + 8 * self.n_block_words() + 8
    }

    fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let fields = [
            self.first_row,
            self.n_rows,
            self.n_entries,
            self.quotient_bits,
        ];
        for (bytes, field) in bytes.chunks_exact_mut(4).zip(fields) {
            bytes.copy_from_slice(&field.to_le_bytes());
        }
        let check = digest64(&bytes[..16]);
        bytes[16..].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8], path: &Path) -> Result<Self, Error> {
        let mut fields = NumberReader::new(bytes, path);
        let shape = Self {
            first_row: fields.u32()?,
            n_rows: fields.u32()?,
            n_entries: fields.u32()?,
            quotient_bits: fields.u32()?,
        };
        let is_whole = fields.u64()? == digest64(&bytes[..16]);
        if is_whole && shape == Self::new(shape.first_row, shape.n_rows, shape.n_entries) {
            Ok(shape)
        } else {
            Err(Error::damaged(path, "its header is invalid"))
        }
    }
}

/// Offset at which the row numbers of a file start.
const ROWS: u64 = (PREAMBLE_BYTES + Shape::BYTES) as u64;

/// A sorted, immutable set of entries: filter in memory, rows in a file.
#[derive(Debug)]
pub(super) struct Run {
    file: Sealed,
    shape: Shape,
    resident: Resident,
    pub(super) number: u64,
}

/// The position where a key would be.
pub(super) struct Probe {
    bucket: usize,
    /// The position in the bucket.
    quotient: usize,
    prefix: u64,
    /// Where the bucket's bits start.
    start: usize,
    /// The number of entries in the bucket.
    n: usize,
}

/// The part in memory.
#[derive(Debug)]
struct Resident {
    /// The number of entries before each bucket, followed by the total.
    directory: Vec<u32>,
    /// A checksum of the rows of each bucket.
    checks: Vec<u16>,
    /// Unary parts and low bits of all buckets.
    blocks: Vec<u64>,
}

impl Run {
    /// Opens a file that was sealed with this checksum and reads its filter.
    pub(super) fn open(path: &Path, number: u64, check: u64) -> Result<Self, Error> {
        let file = Sealed::open_expected(Content::Run, path, check)?;
        let n_header = (file.n_bytes - PREAMBLE_BYTES as u64).min(Shape::BYTES as u64);
        let header = file.read(PREAMBLE_BYTES as u64, n_header as usize)?;
        let shape = Shape::decode(&header, path)?;
        let resident_start = ROWS + shape.row_section_bytes();
        if resident_start + shape.resident_bytes() as u64 != file.n_bytes {
            return Err(Error::damaged(path, "its length differs from its header"));
        }
        let resident = Resident::read(&file, resident_start, &shape)?;
        Ok(Self {
            file,
            shape,
            resident,
            number,
        })
    }

    /// Loads the row numbers into memory, if there is space.
    pub(super) fn hold(&mut self, allowance: &Allowance) -> Result<(), Error> {
        let end = ROWS + self.shape.row_section_bytes();
        self.file.hold(end, allowance)
    }

    pub(super) fn first_row(&self) -> u32 {
        self.shape.first_row
    }

    pub(super) fn n_rows(&self) -> u32 {
        self.shape.n_rows
    }

    pub(super) fn n_entries(&self) -> u32 {
        self.shape.n_entries
    }

    /// Returns the checksum with which the file was sealed.
    pub(super) fn check(&self) -> u64 {
        self.file.check
    }

    pub(super) fn n_bytes(&self) -> u64 {
        self.file.n_bytes + TRAILER_BYTES as u64
    }

    /// Returns the memory use in bytes.
    pub(super) fn resident_bytes(&self) -> usize {
        self.shape.resident_bytes() + self.file.held().map_or(0, <[u8]>::len)
    }

    /// Appends the rows, in the whole index, of the entries that match a probe of this run.
    pub(super) fn find(&self, probe: &Probe, rows: &mut Vec<u32>) -> Result<(), Error> {
        let Some(range) = self.hit(probe) else {
            return Ok(());
        };
        if let Some(rows_held) = self.file.held().and_then(|held| held.get(ROWS as usize..)) {
            let first = self.resident.directory[probe.bucket] as usize;
            let width = self.shape.row_bits();
            let places = range.map(|i| (first + i) * width as usize);
            let found = places.map(|place| bits_of_bytes(rows_held, place, width));
            rows.extend(found.map(|row| self.shape.first_row + row));
        } else {
            let bucket_rows = self.read_bucket(probe.bucket)?;
            let found = bucket_rows[range].iter();
            rows.extend(found.map(|&row| self.shape.first_row + row));
        }
        Ok(())
    }

    /// Returns where a key would be.
    #[inline]
    pub(super) fn aim(&self, key: u64) -> Option<Probe> {
        let prefix = prefix_of(key);
        let quotient = (prefix >> self.shape.low_bits()) as usize;
        let (bucket, quotient) = (quotient / BUCKET, quotient % BUCKET);
        let bounds = self.resident.directory.get(bucket..=bucket + 1)?;
        let n = (bounds[1] - bounds[0]) as usize;
        let start = self.shape.bucket_start(bucket, bounds[0]);
        (n > 0).then_some(Probe {
            bucket,
            quotient,
            prefix,
            start,
            n,
        })
    }

    /// Prefetches the words that [`Run::find`] will probably read.
    #[inline]
    pub(super) fn touch(&self, probe: &Probe) -> u64 {
        let lows = probe.start + probe.n + BUCKET;
        let likely = lows + probe.n * self.shape.low_bits() as usize * probe.quotient / BUCKET;
        let word = |place: usize| self.resident.blocks.get(place / 64).copied();
        word(probe.start).unwrap_or(0) ^ word(likely).unwrap_or(0)
    }

    /// Returns the positions in its bucket of the entries with the prefix of a key.
    #[inline]
    fn hit(&self, probe: &Probe) -> Option<Range<usize>> {
        let low_bits = self.shape.low_bits();
        let blocks = &self.resident.blocks;
        let unary = group_start(blocks, probe.start, probe.quotient);
        let n_group = count_ones_from(blocks, probe.start + unary);
        if n_group == 0 {
            return None;
        }
        let first = unary - probe.quotient;
        let lows = probe.start + probe.n + BUCKET;
        let low_at = |i: usize| bits(blocks, lows + i * low_bits as usize, low_bits);
        let wanted = probe.prefix & ((1 << low_bits) - 1);
        // Most quotients have one or two entries, and most of these do not match.
        if n_group <= 4 && (first..first + n_group).all(|i| low_at(i) != wanted) {
            return None;
        }
        let from = partition(first..first + n_group, |i| low_at(i) < wanted);
        let to = partition(from..first + n_group, |i| low_at(i) == wanted);
        (from < to && to <= probe.n).then_some(from..to)
    }

    /// Returns the rows of a bucket, counted from the first of the run.
    fn read_bucket(&self, bucket: usize) -> Result<Vec<u32>, Error> {
        let [start, end] = self.bucket_bounds(bucket);
        let width = self.shape.row_bits() as usize;
        let first_byte = start * width / 8;
        let bytes = self.file.read(
            ROWS + first_byte as u64,
            (end * width).div_ceil(8) - first_byte,
        )?;
        let places = (start..end).map(|i| i * width - first_byte * 8);
        let rows: Vec<u32> = places
            .map(|place| bits_of_bytes(&bytes, place, width as u32))
            .collect();
        self.check_bucket(bucket, &rows)?;
        Ok(rows)
    }

    fn bucket_bounds(&self, bucket: usize) -> [usize; 2] {
        [bucket, bucket + 1].map(|i| self.resident.directory[i] as usize)
    }

    fn check_bucket(&self, bucket: usize, rows: &[u32]) -> Result<(), Error> {
        if check_of(rows.iter().copied()) == self.resident.checks[bucket] {
            Ok(())
        } else {
            Err(Error::damaged(
                &self.file.path,
                "a bucket has a wrong checksum",
            ))
        }
    }

    /// Returns the logarithm of the number of buckets to base 2.
    pub(super) fn bucket_bits(&self) -> u32 {
        self.shape.quotient_bits - BUCKET_BITS
    }

    /// Returns all entries, in order.
    pub(super) fn entries(&self) -> Entries<'_> {
        Entries::new(self)
    }

    /// Compares the checksum of the whole file.
    pub(super) fn verify(&self) -> Result<(), Error> {
        self.file.verify()
    }

    /// Visits the prefixes of all entries up to `end`, in order, and a few more. Reads no file.
    pub(super) fn for_each_prefix_up_to(&self, end: u64, mut visit: impl FnMut(u64)) {
        let n_buckets = (end >> (self.shape.low_bits() + BUCKET_BITS)) as usize + 1;
        for bucket in 0..n_buckets.min(self.shape.n_buckets()) {
            self.for_each_prefix(bucket, &mut visit);
        }
    }

    /// Appends the entries of a bucket with the given `rows`, for a run that starts `shift` rows
    /// earlier.
    fn decode_bucket(&self, bucket: usize, rows: &[u32], shift: u32, entries: &mut Vec<Entry>) {
        let mut rows = rows.iter();
        self.for_each_prefix(bucket, |prefix| {
            let row = rows.next();
            entries.extend(row.map(|row| Entry(prefix << ROW_BITS | u64::from(row + shift))));
        });
    }

    #[inline]
    fn for_each_prefix(&self, bucket: usize, mut visit: impl FnMut(u64)) {
        let low_bits = self.shape.low_bits();
        let blocks = &self.resident.blocks;
        let [first, end] = self.bucket_bounds(bucket);
        let mut unary = self.shape.bucket_start(bucket, first as u32);
        let mut lows = unary + (end - first) + BUCKET;
        for quotient in 0..BUCKET {
            let n = count_ones_from(blocks, unary);
            unary += n + 1;
            let high = ((bucket * BUCKET + quotient) as u64) << low_bits;
            for _ in 0..n {
                visit(high | bits(blocks, lows, low_bits));
                lows += low_bits as usize;
            }
        }
    }
}

impl Resident {
    fn read(file: &Sealed, start: u64, shape: &Shape) -> Result<Self, Error> {
        let mut reader = SectionReader {
            file,
            place: start,
            hasher: Xxh3Default::new(),
        };
        let resident = Self {
            directory: reader.numbers(shape.n_buckets() + 1, u32::from_le_bytes)?,
            checks: reader.numbers(shape.n_buckets(), u16::from_le_bytes)?,
            blocks: reader.numbers(shape.n_block_words(), u64::from_le_bytes)?,
        };
        let check = file.read(reader.place, 8)?;
        let is_whole = reader.hasher.digest().to_le_bytes() == *check;
        let directory = &resident.directory;
        if is_whole && directory.is_sorted() && directory.last() == Some(&shape.n_entries) {
            Ok(resident)
        } else {
            Err(Error::damaged(
                &file.path,
                "its filter has a wrong checksum",
            ))
        }
    }

    /// Writes the format that [`Resident::read`] reads.
    fn write(&self, sealer: &mut Sealer) -> Result<(), Error> {
        let mut hasher = Xxh3Default::new();
        let mut write = |bytes: &[u8]| {
            hasher.update(bytes);
            sealer.write(bytes)
        };
        for chunk in self.directory.chunks(1 << 14) {
            write(&flat(chunk.iter().map(|x| x.to_le_bytes())))?;
        }
        for chunk in self.checks.chunks(1 << 14) {
            write(&flat(chunk.iter().map(|x| x.to_le_bytes())))?;
        }
        for chunk in self.blocks.chunks(1 << 14) {
            write(&flat(chunk.iter().map(|x| x.to_le_bytes())))?;
        }
        let check = hasher.digest();
        sealer.write(&check.to_le_bytes())
    }
}

/// Reads numbers section by section, without having a section in memory twice.
struct SectionReader<'a> {
    file: &'a Sealed,
    place: u64,
    hasher: Xxh3Default,
}

impl SectionReader<'_> {
    fn numbers<const N: usize, T>(
        &mut self,
        n: usize,
        decode: impl Fn([u8; N]) -> T,
    ) -> Result<Vec<T>, Error> {
        let mut numbers = Vec::with_capacity(n);
        let mut chunk = vec![0; N << 15];
        while numbers.len() < n {
            let n_bytes = N * (n - numbers.len()).min(1 << 15);
            let bytes = &mut chunk[..n_bytes];
            self.file.read_into(self.place, bytes)?;
            self.hasher.update(bytes);
            self.place += n_bytes as u64;
            let (arrays, _) = bytes.as_chunks::<N>();
            numbers.extend(arrays.iter().map(|&array| decode(array)));
        }
        Ok(numbers)
    }
}

/// Returns the position, from `start` on, right after this many zeros.
#[inline]
fn group_start(words: &[u64], start: usize, n_zeros: usize) -> usize {
    let mut left = n_zeros as u32;
    let mut place = 0;
    while left > 0 {
        // Bits past the end read as zero, so this ends.
        let zeros = !bits(words, start + place, 64);
        match select(zeros, left - 1) {
            Ok(at) => return place + at as usize + 1,
            Err(n) => left -= n,
        }
        place += 64;
    }
    place
}

/// Returns the position of the `n`-th one, counted from 0, or the number of ones if there are no
/// more.
///
/// One word contains the counts of ones up to each byte side by side, so that one subtraction
/// compares all of them with `n` (Vigna 2008).
#[inline]
fn select(word: u64, n: u32) -> Result<u32, u32> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let pairs = word - (word >> 1 & 0x5555_5555_5555_5555);
    let fours = (pairs & 0x3333_3333_3333_3333) + (pairs >> 2 & 0x3333_3333_3333_3333);
    let sums = ((fours + (fours >> 4)) & 0x0F0F_0F0F_0F0F_0F0F).wrapping_mul(ONES);
    let n_ones = (sums >> 56) as u32;
    if n_ones <= n {
        return Err(n_ones);
    }
    let bytes_before = ((((u64::from(n) * ONES) | HIGH) - sums) & HIGH) >> 7;
    let shift = (bytes_before.wrapping_mul(ONES) >> 56 << 3) as u32;
    let rank = n - (sums << 8 >> shift & 0xFF) as u32;
    let byte = (word >> shift & 0xFF) as usize;
    Ok(shift + u32::from(SELECT_IN_BYTE[byte][rank as usize & 7]))
}

/// The positions of the ones in each byte.
static SELECT_IN_BYTE: [[u8; 8]; 256] = {
    let mut table = [[0; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut place, mut n) = (0, 0);
        while place < 8 {
            if byte >> place & 1 == 1 {
                table[byte][n] = place;
                n += 1;
            }
            place += 1;
        }
        byte += 1;
    }
    table
};

/// Returns the number of consecutive ones from `place` on.
#[inline]
fn count_ones_from(words: &[u64], place: usize) -> usize {
    let mut n = 0;
    loop {
        let ones = bits(words, place + n, 64).trailing_ones();
        n += ones as usize;
        if ones < 64 {
            return n;
        }
    }
}

/// Returns the first position of an ordered range where `before` is false.
fn partition(range: Range<usize>, before: impl Fn(usize) -> bool) -> usize {
    let (mut from, mut to) = (range.start, range.end);
    while from < to {
        let middle = from.midpoint(to);
        if before(middle) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    from
}

/// Returns a checksum of row numbers. Any single change in them changes the 64 bits from which it
/// is taken.
fn check_of(rows: impl Iterator<Item = u32>) -> u16 {
    let hash = rows.fold(0, |hash: u64, row| {
        (hash ^ u64::from(row))
            .wrapping_mul(CHECK_FACTOR)
            .rotate_left(29)
    });
    mix(hash) as u16
}

/// Odd, so that multiplication is reversible.
const CHECK_FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

fn flat<const N: usize>(numbers: impl Iterator<Item = [u8; N]>) -> Vec<u8> {
    numbers.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn selected_as_by_counting(word in any::<u64>(), sparse in any::<u64>(), n in 0..64_u32) {
            for word in [word, word & sparse, word | sparse, 0, u64::MAX] {
                let mut places = (0..64).filter(|place| word >> place & 1 == 1);
                let expected = places.nth(n as usize).ok_or(word.count_ones());
                prop_assert_eq!(select(word, n), expected);
            }
        }
    }
}
