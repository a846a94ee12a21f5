//! Runs: immutable sorted files of records.
//!
//! ```text
//! run     = block* fence* filter* trailer
//! block   = record* zero* checksum        1,024 bytes; records ascend by key
//! record  = key place?                    16 bytes big-endian; 8 bytes little-endian
//! fence   = key                           the first key of a block
//! filter  = 80 bytes                      of a block
//! trailer = magic version width n_records checksum of fences and filters
//! ```
//!
//! Numbers are little-endian, checksums XXH3 of 64 bits over what comes before them in the block,
//! or over fences and filters. Fences and filters are in memory, 1.5 bytes a record; blocks are
//! read when a key may be in them, and together with those between them where they lie close: a few
//! keys cost a small read each, a great batch reads the run once from beginning to end.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use arose::digest::digest64;

use super::filter::{self, FILTER_BYTES};
use super::record::{Record, Width};
use crate::error::{Context, Error};

const BLOCK_BYTES: usize = 1024;
const CHECKSUM_BYTES: usize = 8;
const TRAILER_BYTES: usize = 32;
const MAGIC: &[u8; 8] = b"arose-sr";
const VERSION: u32 = 1;

/// How many blocks are read at once at most.
const MAX_SPAN: usize = 256;

/// Over how many blocks that nobody asked for a read goes on: copying one takes 50 ns, asking the
/// system for another piece of the file some 400.
const MAX_GAP: usize = 8;

const fn records_per_block(width: Width) -> usize {
    (BLOCK_BYTES - CHECKSUM_BYTES) / width.n_bytes()
}

/// An open run.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) path: PathBuf,
    pub(super) n_records: u64,
    file: File,
    width: Width,
    /// The first key of each block.
    fences: Vec<u128>,
    filters: Vec<u8>,
}

impl Run {
    /// Opens a run that [`RunWriter`] wrote, and reads its fences and filters.
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
            n_records(&trailer, width).ok_or(damaged("its end is not that of a run"))?;
        let n_blocks = n_records.div_ceil(records_per_block(width) as u64);
        let footer_bytes = n_blocks.saturating_mul(16 + FILTER_BYTES as u64);
        let footer_start = n_blocks.saturating_mul(BLOCK_BYTES as u64);
        if footer_start.saturating_add(footer_bytes) != trailer_start {
            return Err(damaged("its length does not fit its end"));
        }
        let mut footer = vec![0; footer_bytes as usize];
        file.read_exact_at(&mut footer, footer_start)
            .context("reading", path)?;
        if trailer[24..] != digest64(&footer).to_le_bytes() {
            return Err(damaged("its index has another checksum"));
        }
        let filters = footer.split_off(16 * n_blocks as usize);
        let fences = footer.as_chunks::<16>().0;
        Ok(Self {
            path: path.to_owned(),
            n_records,
            file,
            width,
            fences: fences.iter().map(|key| u128::from_be_bytes(*key)).collect(),
            filters,
        })
    }

    /// Looks for `keys`, which ascend; puts what is found into `places` and leaves what it holds
    /// already.
    pub(super) fn find_all(&self, keys: &[u128], places: &mut [Option<u64>]) -> Result<(), Error> {
        let mut candidates = self.candidates(keys, places);
        // A loop of its own, so that the processor may wait for many filters at once.
        candidates.retain(|candidate| {
            let filter = self.filter(candidate.block);
            filter::may_contain(filter, keys[candidate.index])
        });
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

    /// In which block each key that is not found yet would be.
    fn candidates(&self, keys: &[u128], places: &[Option<u64>]) -> Vec<Candidate> {
        let mut candidates = Vec::with_capacity(keys.len());
        let mut block = 0;
        for (index, &key) in keys.iter().enumerate() {
            if places[index].is_none() {
                block += gallop(&self.fences[block..], key);
                if self.fences.get(block).is_some_and(|&first| first <= key) {
                    candidates.push(Candidate { block, index });
                }
            }
        }
        candidates
    }

    fn filter(&self, block: usize) -> &[u8] {
        &self.filters[block * FILTER_BYTES..][..FILTER_BYTES]
    }

    /// The place of a key in a block.
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
                std::cmp::Ordering::Equal => return Some(Record::read(record).place),
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
            Err(Error::damaged(&self.path, "a block has another checksum"))
        }
    }

    /// All records from the first on.
    pub(super) fn cursor(&self) -> Cursor<'_> {
        Cursor {
            run: self,
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
struct Candidate {
    block: usize,
    index: usize,
}

/// How many of the candidates, at least one, are read together.
fn span(candidates: &[Candidate]) -> usize {
    let first = candidates[0].block;
    let is_near = |pair: &&[Candidate]| {
        pair[1].block - pair[0].block <= MAX_GAP && pair[1].block - first < MAX_SPAN
    };
    1 + candidates.windows(2).take_while(is_near).count()
}

/// How many of the ascending `fences`, but for the last of them, are at or below `key`: doubling
/// steps find the range, halving ones the place. Cheap where the answer is near.
fn gallop(fences: &[u128], key: u128) -> usize {
    let mut step = 1;
    while step < fences.len() && fences[step] <= key {
        step *= 2;
    }
    let low = step / 2;
    let high = step.min(fences.len());
    let n = fences[low..high].partition_point(|&fence| fence <= key);
    (low + n).saturating_sub(1)
}

/// Reads a run from beginning to end.
#[derive(Debug)]
pub(super) struct Cursor<'r> {
    run: &'r Run,
    next_block: usize,
    buffer: Vec<u8>,
    /// The block of the buffer that is being read, where in it, and how many records it has left.
    buffer_block: usize,
    at: usize,
    n_left: usize,
}

impl Cursor<'_> {
    /// The next record, if there is one.
    pub(super) fn next(&mut self) -> Result<Option<Record>, Error> {
        if self.n_left == 0 && !self.next_block()? {
            return Ok(None);
        }
        let width = self.run.width.n_bytes();
        let record = Record::read(&self.buffer[self.at..][..width]);
        self.at += width;
        self.n_left -= 1;
        Ok(Some(record))
    }

    fn next_block(&mut self) -> Result<bool, Error> {
        let n_blocks = self.run.fences.len();
        if self.next_block == n_blocks {
            return Ok(false);
        }
        self.buffer_block += 1;
        if self.buffer_block * BLOCK_BYTES >= self.buffer.len() {
            let last = n_blocks.min(self.next_block + MAX_SPAN) - 1;
            self.run.read(self.next_block, last, &mut self.buffer)?;
            self.buffer_block = 0;
        }
        self.at = self.buffer_block * BLOCK_BYTES;
        self.run.check(&self.buffer[self.at..][..BLOCK_BYTES])?;
        self.n_left = self.run.n_records_in(self.next_block);
        self.next_block += 1;
        Ok(true)
    }
}

/// Writes a run, record by record.
#[derive(Debug)]
pub(super) struct RunWriter {
    path: PathBuf,
    file: BufWriter<File>,
    width: Width,
    block: Vec<u8>,
    n_records: u64,
    fences: Vec<u128>,
    filters: Vec<u8>,
}

impl RunWriter {
    pub(super) fn create(path: &Path, width: Width) -> Result<Self, Error> {
        let file = File::create(path).context("creating", path)?;
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

    /// Adds a record, whose key must be above all before it.
    pub(super) fn push(&mut self, record: Record) -> Result<(), Error> {
        if self.block.is_empty() {
            self.fences.push(record.key);
            self.filters.resize(self.filters.len() + FILTER_BYTES, 0);
        }
        let filter_start = self.filters.len() - FILTER_BYTES;
        filter::add(&mut self.filters[filter_start..], record.key);
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

    /// Writes the end; what was written is on the disk when this returns.
    pub(super) fn finish(mut self) -> Result<(), Error> {
        if !self.block.is_empty() {
            self.write_block()?;
        }
        let mut footer: Vec<u8> = self
            .fences
            .iter()
            .flat_map(|key| key.to_be_bytes())
            .collect();
        footer.append(&mut self.filters);
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
            .and_then(|()| self.file.get_ref().sync_all())
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
            writer.push(Record { key, place }).unwrap();
        }
        writer.finish().unwrap();
    }

    fn keys(n: usize, seed: u64) -> Vec<u128> {
        let mut random = SplitMix::new(seed);
        // Few hosts, many pages each.
        let mut key = || u128::from(random.below(5)) << 64 | u128::from(random.next_u64());
        let mut keys: Vec<u128> = (0..n).map(|_| key()).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    #[track_caller]
    fn check(n: usize, width: Width) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        let all = keys(n, n as u64);
        let (odd, even): (Vec<_>, Vec<_>) = all.iter().enumerate().partition(|(n, _)| n % 2 == 1);
        let odd: Vec<u128> = odd.into_iter().map(|(_, &key)| key).collect();
        write(&path, width, &odd);
        let run = Run::open(&path, width).unwrap();
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
        for n in [0, 1, 2, 126, 127, 128, 5000, 60_000] {
            check(n, Width::Key);
            check(n, Width::KeyAndPlace);
        }
    }

    /// Any changed byte is an error that names the file, never a wrong answer.
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

    proptest! {
        #[test]
        fn galloping_finds_the_last_fence_below(
            mut fences in prop::collection::vec(0..50_u128, 1..40),
            key in 0..55_u128,
        ) {
            fences.sort_unstable();
            let expected = fences.partition_point(|&fence| fence <= key).saturating_sub(1);
            prop_assert_eq!(gallop(&fences, key), expected);
        }
    }
}
