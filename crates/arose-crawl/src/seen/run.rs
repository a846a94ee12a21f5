//! Sorted runs: immutable sorted files of records.
//!
//! ```text
//! run     = block* fence* filter* trailer
//! block   = record* zero* checksum        512 bytes; records ascend by key
//! record  = key place?                    16 bytes big-endian; 8 bytes little-endian
//! fence   = key                           the first key of a block
//! filter  = 64 bytes                      of a block
//! trailer = magic version width n_records checksum of fences and filters
//! ```
//!
//! Numbers are little-endian. Checksums are XXH3 with 64 bits over the bytes before them in the
//! block, or over fences and filters. Fences and filters are in memory, 2.7 bytes per record. So
//! are the blocks of a sorted run that is [held](Run::hold). Other blocks are read when a key may
//! be in them, together with the blocks between them if they are close. So a few keys cost a small
//! read each, and a large batch reads the sorted run once from beginning to end.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use arose::digest::digest64;
use arose_dedup::disk;

use super::filter::{FILTER_BYTES, Filter};
use super::record::{KeyRecord, Width};
use crate::error::{Context, Error};

const BLOCK_BYTES: usize = 512;
const CHECKSUM_BYTES: usize = 8;
const TRAILER_BYTES: usize = 32;
const MAGIC: &[u8; 8] = b"arose-sr";
const VERSION: u32 = 1;

/// Maximum number of blocks read at once.
const MAX_SPAN: usize = 256;

/// Maximum number of unneeded blocks within one read: copying them takes no longer than another
/// read from the system. 2, 4, 8 and 16 do not differ measurably.
const MAX_GAP: usize = 8;

/// Number of keys whose memory is touched before the first of them is searched. So the CPU waits
/// for all of them at once and not for one after the other.
const AHEAD: usize = 32;

fn touch(bytes: impl Iterator<Item = u8>) {
    std::hint::black_box(bytes.fold(0, |all, byte| all ^ byte));
}

const fn records_per_block(width: Width) -> usize {
    (BLOCK_BYTES - CHECKSUM_BYTES) / width.n_bytes()
}

/// An open sorted run.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) path: PathBuf,
    pub(super) n_records: u64,
    file: File,
    width: Width,
    /// The first key of each block.
    fences: Fences,
    filters: Vec<Filter>,
    /// All blocks, if they are in memory.
    held: OnceLock<Vec<u8>>,
}

impl Run {
    /// Opens a sorted run that [`RunWriter`] wrote, and reads its fences and filters.
    pub(super) fn open(path: &Path, width: Width) -> Result<Self, Error> {
        let file = File::open(path).context("opening", path)?;
        let n_bytes = file.metadata().context("reading", path)?.len();
        let damaged = |what| Error::damaged(path, what);
        let trailer_start = n_bytes
            .checked_sub(TRAILER_BYTES as u64)
            .ok_or(damaged("it is too short"))?;
        let mut trailer = [0; TRAILER_BYTES];
        file.read_exact_at(&mut trailer, trailer_start)
            .context("reading", path)?;
        let n_records =
            n_records(&trailer, width).ok_or(damaged("its end is not that of a sorted run"))?;
        let n_blocks = n_records.div_ceil(records_per_block(width) as u64);
        let footer_bytes = n_blocks.saturating_mul(16 + FILTER_BYTES as u64);
        let footer_start = n_blocks.saturating_mul(BLOCK_BYTES as u64);
        if footer_start.saturating_add(footer_bytes) != trailer_start {
            return Err(damaged("its length does not match its end"));
        }
        let mut footer = vec![0; footer_bytes as usize];
        file.read_exact_at(&mut footer, footer_start)
            .context("reading", path)?;
        if trailer[24..] != digest64(&footer).to_le_bytes() {
            return Err(damaged("its index has a wrong checksum"));
        }
        let (fences, filters) = footer.split_at(16 * n_blocks as usize);
        let fences = fences.as_chunks::<16>().0.iter();
        let filters = filters.as_chunks::<FILTER_BYTES>().0.iter();
        Ok(Self {
            path: path.to_owned(),
            n_records,
            file,
            width,
            fences: Fences::new(fences.map(|key| u128::from_be_bytes(*key)).collect()),
            filters: filters.map(Filter::from_bytes).collect(),
            held: OnceLock::new(),
        })
    }

    /// Returns the size of all blocks.
    pub(super) fn n_block_bytes(&self) -> usize {
        self.fences.keys.len() * BLOCK_BYTES
    }

    /// Reads all blocks into memory; later lookups use them. May be called on another thread than
    /// lookups.
    pub(super) fn hold(&self) -> Result<(), Error> {
        if self.held.get().is_none() {
            let mut blocks = vec![0; self.n_block_bytes()];
            let read = self.file.read_exact_at(&mut blocks, 0);
            read.context("reading", &self.path)?;
            let mut all = blocks.as_chunks::<BLOCK_BYTES>().0.iter();
            all.try_for_each(|block| self.check(block))?;
            // If another thread was faster, it has read the same bytes.
            let _ = self.held.set(blocks);
        }
        Ok(())
    }

    /// Looks up `keys`, which ascend. Writes positions that are found into `places`, and leaves
    /// those that are already there.
    pub(super) fn find_all(&self, keys: &[u128], places: &mut [Option<u64>]) -> Result<(), Error> {
        let mut candidates = self.candidates(keys, places);
        self.keep_possible(keys, &mut candidates);
        if let Some(blocks) = self.held.get() {
            let blocks = blocks.as_chunks::<BLOCK_BYTES>().0;
            for some in candidates.chunks(AHEAD) {
                let lines = some
                    .iter()
                    .map(|found| blocks[found.block].iter().step_by(64));
                touch(lines.flatten().copied());
                for &PossibleKey { block, index } in some {
                    places[index] = self.search(block, &blocks[block], keys[index]);
                }
            }
            return Ok(());
        }
        let mut buffer = Vec::new();
        let mut rest = candidates.as_slice();
        while let [first, ..] = rest {
            let n = span(rest);
            let (span, after) = rest.split_at(n);
            self.read(first.block, span[n - 1].block, &mut buffer)?;
            for candidate in span {
                let start = (candidate.block - first.block) * BLOCK_BYTES;
                let block = &buffer[start..][..BLOCK_BYTES];
                self.check(block)?;
                let key = keys[candidate.index];
                places[candidate.index] = self.search(candidate.block, block, key);
            }
            rest = after;
        }
        Ok(())
    }

    /// Returns the block in which each key that is not found yet would be.
    fn candidates(&self, keys: &[u128], places: &[Option<u64>]) -> Vec<PossibleKey> {
        let mut candidates = Vec::with_capacity(keys.len());
        for start in (0..keys.len()).step_by(AHEAD) {
            let some = start..keys.len().min(start + AHEAD);
            touch(keys[some.clone()].iter().map(|&key| self.fences.near(key)));
            for index in some.filter(|&index| places[index].is_none()) {
                if let Some(block) = self.fences.block_of(keys[index]) {
                    candidates.push(PossibleKey { block, index });
                }
            }
        }
        candidates
    }

    /// Keeps the candidates that pass the filter of their block.
    fn keep_possible(&self, keys: &[u128], candidates: &mut Vec<PossibleKey>) {
        let mut n_kept = 0;
        for at in 0..candidates.len() {
            if at % AHEAD == 0 {
                let some = candidates[at..].iter().take(AHEAD);
                touch(some.map(|found| self.filters[found.block].any_byte()));
            }
            let candidate = candidates[at];
            candidates[n_kept] = candidate;
            let filter = &self.filters[candidate.block];
            n_kept += usize::from(filter.may_contain(keys[candidate.index]));
        }
        candidates.truncate(n_kept);
    }

    /// Returns the position of a key in a block.
    fn search(&self, block: usize, bytes: &[u8], key: u128) -> Option<u64> {
        let width = self.width.n_bytes();
        let key_bytes = key.to_be_bytes();
        let (mut low, mut high) = (0, self.n_records_in(block));
        while low < high {
            let middle = (low + high) / 2;
            let record = &bytes[middle * width..][..width];
            match record[..16].cmp(&key_bytes) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Some(KeyRecord::read(record).place),
            }
        }
        None
    }

    fn n_records_in(&self, block: usize) -> usize {
        let before = block * records_per_block(self.width);
        (self.n_records as usize - before).min(records_per_block(self.width))
    }

    /// Reads the blocks from `first` to `last` into `buffer`.
    fn read(&self, first: usize, last: usize, buffer: &mut Vec<u8>) -> Result<(), Error> {
        buffer.resize((last + 1 - first) * BLOCK_BYTES, 0);
        let start = first as u64 * BLOCK_BYTES as u64;
        self.file
            .read_exact_at(buffer, start)
            .context("reading", &self.path)
    }

    fn check(&self, block: &[u8]) -> Result<(), Error> {
        let (records, checksum) = block.split_at(BLOCK_BYTES - CHECKSUM_BYTES);
        if digest64(records).to_le_bytes() == checksum {
            Ok(())
        } else {
            Err(Error::damaged(&self.path, "a block has a wrong checksum"))
        }
    }

    /// Reads all records from the first on.
    pub(super) fn cursor(&self) -> Cursor<'_> {
        Cursor {
            run: self,
            held: self.held.get().map(Vec::as_slice),
            next_block: 0,
            buffer: Vec::new(),
            buffer_block: 0,
            at: 0,
            n_left: 0,
        }
    }
}

fn n_records(trailer: &[u8; TRAILER_BYTES], width: Width) -> Option<u64> {
    let mut expected = MAGIC.to_vec();
    expected.extend_from_slice(&VERSION.to_le_bytes());
    expected.extend_from_slice(&(width.n_bytes() as u32).to_le_bytes());
    let (start, rest) = trailer.split_at(16);
    let n = rest.first_chunk::<8>()?;
    (start == expected).then(|| u64::from_le_bytes(*n))
}

/// A key that may be in a block.
#[derive(Debug, Clone, Copy)]
struct PossibleKey {
    block: usize,
    index: usize,
}

/// Returns how many of the candidates, at least one, are read together.
fn span(candidates: &[PossibleKey]) -> usize {
    let first = candidates[0].block;
    let is_near = |pair: &&[PossibleKey]| {
        pair[1].block - pair[0].block <= MAX_GAP && pair[1].block - first < MAX_SPAN
    };
    1 + candidates.windows(2).take_while(is_near).count()
}

/// The first keys of blocks, which ascend, with an index by leading bits.
#[derive(Debug)]
struct Fences {
    keys: Vec<u128>,
    /// For each `n` of `n_bits` bits: the number of keys whose leading bits are below `n`.
    starts: Vec<u32>,
    n_bits: u32,
}

impl Fences {
    /// Indexes fences by so many leading bits that about four begin with the same bits, because
    /// hosts are hashes and there are many. With few hosts, the search takes a few more steps.
    fn new(keys: Vec<u128>) -> Self {
        let n_bits = (keys.len() / 4).checked_ilog2().unwrap_or(0);
        let mut fences = Self {
            keys,
            starts: Vec::with_capacity((1 << n_bits) + 1),
            n_bits,
        };
        let mut n_before = 0;
        for n in 0..=1 << n_bits {
            let is_before = |key: &u128| fences.bits(*key) < n;
            n_before += fences.keys[n_before..]
                .iter()
                .take_while(|key| is_before(key))
                .count();
            fences.starts.push(n_before as u32);
        }
        fences
    }

    fn bits(&self, key: u128) -> usize {
        (key.rotate_left(self.n_bits) as usize) & ((1 << self.n_bits) - 1)
    }

    /// Returns a byte from where the search for a key begins.
    fn near(&self, key: u128) -> u8 {
        let start = self.starts[self.bits(key)] as usize;
        self.keys.get(start).map_or(0, |&key| key as u8)
    }

    /// Returns the block that would contain a key: the last one that begins at or below it.
    fn block_of(&self, key: u128) -> Option<usize> {
        let bits = self.bits(key);
        let (start, end) = (self.starts[bits] as usize, self.starts[bits + 1] as usize);
        let n = self.keys[start..end].partition_point(|&fence| fence <= key);
        (start + n).checked_sub(1)
    }
}

/// Reads a sorted run from beginning to end.
#[derive(Debug)]
pub(super) struct Cursor<'r> {
    run: &'r Run,
    /// All blocks, if they were in memory when the cursor was created.
    held: Option<&'r [u8]>,
    next_block: usize,
    buffer: Vec<u8>,
    /// The current block in the buffer, the position in it, and its number of records left.
    buffer_block: usize,
    at: usize,
    n_left: usize,
}

impl Cursor<'_> {
    /// Returns the next record, if there is one.
    pub(super) fn next(&mut self) -> Result<Option<KeyRecord>, Error> {
        if self.n_left == 0 && !self.next_block()? {
            return Ok(None);
        }
        let width = self.run.width.n_bytes();
        let bytes = self.held.unwrap_or(&self.buffer);
        let record = KeyRecord::read(&bytes[self.at..][..width]);
        self.at += width;
        self.n_left -= 1;
        Ok(Some(record))
    }

    fn next_block(&mut self) -> Result<bool, Error> {
        let n_blocks = self.run.fences.keys.len();
        if self.next_block == n_blocks {
            return Ok(false);
        }
        if self.held.is_some() {
            self.at = self.next_block * BLOCK_BYTES;
        } else {
            self.buffer_block += 1;
            if self.buffer_block * BLOCK_BYTES >= self.buffer.len() {
                let last = n_blocks.min(self.next_block + MAX_SPAN) - 1;
                self.run.read(self.next_block, last, &mut self.buffer)?;
                self.buffer_block = 0;
            }
            self.at = self.buffer_block * BLOCK_BYTES;
            self.run.check(&self.buffer[self.at..][..BLOCK_BYTES])?;
        }
        self.n_left = self.run.n_records_in(self.next_block);
        self.next_block += 1;
        Ok(true)
    }
}

/// Writes a sorted run, record by record.
#[derive(Debug)]
pub(super) struct RunWriter {
    path: PathBuf,
    file: BufWriter<disk::File>,
    width: Width,
    block: Vec<u8>,
    n_records: u64,
    fences: Vec<u128>,
    filters: Vec<Filter>,
}

impl RunWriter {
    pub(super) fn create(path: &Path, width: Width) -> Result<Self, Error> {
        let file = disk::File::create(path).context("creating", path)?;
        Ok(Self {
            path: path.to_owned(),
            file: BufWriter::with_capacity(1 << 20, file),
            width,
            block: Vec::with_capacity(BLOCK_BYTES),
            n_records: 0,
            fences: Vec::new(),
            filters: Vec::new(),
        })
    }

    /// Adds a record, whose key must be above all previous keys.
    pub(super) fn push(&mut self, record: KeyRecord) -> Result<(), Error> {
        if self.block.is_empty() {
            self.fences.push(record.key);
            self.filters.push(Filter::default());
        }
        if let Some(filter) = self.filters.last_mut() {
            filter.add(record.key);
        }
        record.write(self.width, &mut self.block);
        self.n_records += 1;
        if self.block.len() == records_per_block(self.width) * self.width.n_bytes() {
            self.write_block()?;
        }
        Ok(())
    }

    fn write_block(&mut self) -> Result<(), Error> {
        self.block.resize(BLOCK_BYTES - CHECKSUM_BYTES, 0);
        let checksum = digest64(&self.block);
        self.block.extend_from_slice(&checksum.to_le_bytes());
        self.file
            .write_all(&self.block)
            .context("writing", &self.path)?;
        self.block.clear();
        Ok(())
    }

    /// Writes the trailer; everything is on the disk when this returns.
    pub(super) fn finish(mut self) -> Result<(), Error> {
        if !self.block.is_empty() {
            self.write_block()?;
        }
        let mut footer: Vec<u8> = self
            .fences
            .iter()
            .flat_map(|key| key.to_be_bytes())
            .collect();
        footer.extend(self.filters.iter().flat_map(|filter| filter.to_bytes()));
        let checksum = digest64(&footer);
        footer.extend_from_slice(MAGIC);
        footer.extend_from_slice(&VERSION.to_le_bytes());
        footer.extend_from_slice(&(self.width.n_bytes() as u32).to_le_bytes());
        footer.extend_from_slice(&self.n_records.to_le_bytes());
        footer.extend_from_slice(&checksum.to_le_bytes());
        let written = self
            .file
            .write_all(&footer)
            .and_then(|()| self.file.flush());
        written
            .and_then(|()| self.file.get_ref().sync())
            .context("writing", &self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arose::mix::SplitMix;
    use proptest::prelude::*;

    fn write(path: &Path, width: Width, keys: &[u128]) {
        let mut writer = RunWriter::create(path, width).unwrap();
        for &key in keys {
            let place = if width == Width::Key { 0 } else { key as u64 };
            writer.push(KeyRecord { key, place }).unwrap();
        }
        writer.finish().unwrap();
    }

    fn keys(n: usize, seed: u64) -> Vec<u128> {
        let mut random = SplitMix::new(seed);
        // Few hosts with many pages each.
        let mut key = || u128::from(random.below(5)) << 64 | u128::from(random.next_u64());
        let mut keys: Vec<u128> = (0..n).map(|_| key()).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    #[track_caller]
    fn check(n: usize, width: Width, is_held: bool) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        let all = keys(n, n as u64);
        let (odd, even): (Vec<_>, Vec<_>) = all.iter().enumerate().partition(|(n, _)| n % 2 == 1);
        let odd: Vec<u128> = odd.into_iter().map(|(_, &key)| key).collect();
        write(&path, width, &odd);
        let run = Run::open(&path, width).unwrap();
        if is_held {
            run.hold().unwrap();
        }
        let mut places = vec![None; all.len()];
        run.find_all(&all, &mut places).unwrap();
        for (n, place) in places.iter().enumerate() {
            let expected = match width {
                Width::Key => 0,
                Width::KeyAndPlace => all[n] as u64,
            };
            assert_eq!(*place, (n % 2 == 1).then_some(expected));
        }
        assert_eq!(even.len() + odd.len(), all.len());
        let mut cursor = run.cursor();
        let read: Vec<u128> =
            std::iter::from_fn(|| cursor.next().unwrap().map(|record| record.key)).collect();
        assert_eq!(read, odd);
    }

    #[test]
    fn what_was_written_is_found_and_nothing_else() {
        for n in [0, 1, 2, 62, 63, 64, 126, 127, 128, 5000, 60_000] {
            for is_held in [false, true] {
                check(n, Width::Key, is_held);
                check(n, Width::KeyAndPlace, is_held);
            }
        }
    }

    #[test]
    fn nothing_is_in_an_empty_run() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        write(&path, Width::Key, &[]);
        let run = Run::open(&path, Width::Key).unwrap();
        let mut places = vec![None; 2];
        run.find_all(&[0, u128::MAX], &mut places).unwrap();
        assert_eq!(places, [None, None]);
    }

    /// Any changed byte is an error that names the file, never a wrong result.
    #[test]
    fn damage_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        let keys = keys(600, 1);
        write(&path, Width::Key, &keys);
        let good = std::fs::read(&path).unwrap();
        for at in (0..good.len()).step_by(37) {
            let mut bad = good.clone();
            bad[at] ^= 4;
            std::fs::write(&path, &bad).unwrap();
            let result = Run::open(&path, Width::Key).and_then(|run| {
                let mut places = vec![None; keys.len()];
                run.find_all(&keys, &mut places)
            });
            let held = Run::open(&path, Width::Key).and_then(|run| run.hold());
            assert!(held.is_err(), "{at}");
            let error = result.expect_err("damage").to_string();
            assert!(
                error.contains("damaged") && error.contains("run"),
                "{at}: {error}"
            );
        }
        for length in [0, 10, 31, 1024, good.len() - 1] {
            std::fs::write(&path, &good[..length]).unwrap();
            assert!(Run::open(&path, Width::Key).is_err(), "{length}");
        }
        std::fs::write(&path, &good).unwrap();
        assert!(Run::open(&path, Width::KeyAndPlace).is_err());
    }

    /// Keys everywhere, many on one host, and the smallest and largest possible keys.
    fn spread() -> impl Strategy<Value = u128> {
        prop_oneof![any::<u128>(), 0..50_u128, Just(u128::MAX)]
    }

    proptest! {
        #[test]
        fn a_key_is_in_the_last_block_that_begins_below(
            mut keys in prop::collection::vec(spread(), 0..400),
            key in spread(),
        ) {
            keys.sort_unstable();
            let expected = keys.partition_point(|&fence| fence <= key).checked_sub(1);
            prop_assert_eq!(Fences::new(keys).block_of(key), expected);
        }
    }
}
