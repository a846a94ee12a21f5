//! The shelf: byte strings by position, in a temporary file.
//!
//! *Question.* A crawl meets ten million hosts and needs some thousands of them at any time. Where
//! are the others? *Idea.* In a file with spots of 64 bytes, 128, 256 and so on; a byte string is
//! in the smallest spot that fits. When it is replaced, its spot becomes free, and the next byte
//! string of its size takes it. Nothing is synced, because the journal has everything that a
//! restart needs. The file has no name, so the system removes it with the process.
//!
//! Byte strings are written in batches by any thread ([`write`]), adjacent ones together. Until a
//! batch is written, its byte strings are in memory and are read from there.
//!
//! *Cost.* At most twice the bytes of the strings on disk, and eight bytes per string in memory.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Number of byte strings in a batch.
pub(super) const BATCH: usize = 1024;

/// Size of the smallest spots in bytes.
const LEAST: u64 = 64;

/// The position of a byte string: one more than its offset in units of [`LEAST`]; the low bits have
/// the logarithm of the size of its spot in such units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Spot(NonZeroU64);

const SIZE_BITS: u32 = 5;

impl Spot {
    fn size(self) -> usize {
        (self.0.get() & ((1 << SIZE_BITS) - 1)) as usize
    }

    fn offset(self) -> u64 {
        ((self.0.get() >> SIZE_BITS) - 1) * LEAST
    }

    fn n_bytes(self) -> u64 {
        LEAST << self.size()
    }
}

/// A byte string and its spot.
pub(super) type Piece = (Spot, Arc<[u8]>);

/// The file and its free spots.
#[derive(Debug)]
pub(super) struct Shelf {
    file: Arc<File>,
    /// In units of [`LEAST`].
    end: u64,
    /// By size.
    free: Vec<Vec<Spot>>,
    /// The next byte strings to be written, and all that are not in the file.
    batch: Vec<Piece>,
    unwritten: HashMap<Spot, Arc<[u8]>>,
}

impl Shelf {
    /// Creates an empty shelf in an empty file.
    pub(super) fn new(file: File) -> Self {
        Self {
            file: Arc::new(file),
            end: 0,
            free: Vec::new(),
            batch: Vec::new(),
            unwritten: HashMap::new(),
        }
    }

    /// Returns the file, to be read and written elsewhere.
    pub(super) fn file(&self) -> Arc<File> {
        Arc::clone(&self.file)
    }

    /// Stores a byte string; `old` is a spot that becomes free.
    pub(super) fn put(&mut self, bytes: &[u8], old: Option<Spot>) -> Spot {
        let n_bytes = bytes.len() as u64 + 4;
        let size = n_bytes.div_ceil(LEAST).next_power_of_two().ilog2() as usize;
        let spot = match old.filter(|old| old.size() == size) {
            Some(old) => old,
            None => {
                if let Some(old) = old {
                    self.free_of(old.size()).push(old);
                }
                self.room(size)
            }
        };
        let bytes: Arc<[u8]> = bytes.into();
        self.batch.push((spot, Arc::clone(&bytes)));
        self.unwritten.insert(spot, bytes);
        spot
    }

    /// Returns the next batch to be written, if it is full. Batches must be written in the order in
    /// which they are taken.
    pub(super) fn take_batch(&mut self) -> Option<Vec<Piece>> {
        let is_full = self.batch.len() >= BATCH;
        is_full.then(|| std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH)))
    }

    /// Records that a batch is in the file.
    pub(super) fn note_written(&mut self, batch: Vec<Piece>) {
        for (spot, bytes) in batch {
            let is_last = |last: &Arc<[u8]>| Arc::ptr_eq(last, &bytes);
            if self.unwritten.get(&spot).is_some_and(is_last) {
                self.unwritten.remove(&spot);
            }
        }
    }

    /// Returns a byte string that is not in the file yet.
    pub(super) fn unwritten(&self, spot: Spot) -> Option<&[u8]> {
        self.unwritten.get(&spot).map(|bytes| &**bytes)
    }

    /// Reads a byte string, which stays on the shelf.
    pub(super) fn get(&self, spot: Spot) -> io::Result<Vec<u8>> {
        match self.unwritten(spot) {
            Some(bytes) => Ok(bytes.to_vec()),
            None => read(&self.file, spot),
        }
    }

    fn free_of(&mut self, size: usize) -> &mut Vec<Spot> {
        if self.free.len() <= size {
            self.free.resize(size + 1, Vec::new());
        }
        &mut self.free[size]
    }

    fn room(&mut self, size: usize) -> Spot {
        if let Some(spot) = self.free_of(size).pop() {
            return spot;
        }
        let bits = (self.end + 1) << SIZE_BITS | size as u64;
        self.end += 1 << size;
        Spot(NonZeroU64::MIN.saturating_add(bits - 1))
    }
}

/// Reads a byte string that is in the file.
pub(super) fn read(file: &File, spot: Spot) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; spot.n_bytes().min(512) as usize];
    // The last spot of the file may not be full.
    read_at_most(file, &mut bytes, spot.offset())?;
    let length = bytes.first_chunk().copied().map_or(0, u32::from_le_bytes) as usize;
    if length + 4 > spot.n_bytes() as usize {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let n_read = bytes.len();
    bytes.resize(length + 4, 0);
    if length + 4 > n_read {
        let rest = &mut bytes[n_read..];
        file.read_exact_at(rest, spot.offset() + n_read as u64)?;
    }
    bytes.drain(..4);
    Ok(bytes)
}

/// Writes a batch. If several byte strings have the same spot, the last one counts.
pub(super) fn write(file: &File, batch: &[Piece]) -> io::Result<()> {
    let mut pieces: Vec<&Piece> = batch.iter().collect();
    pieces.sort_by_key(|(spot, _)| spot.offset());
    let (mut start, mut run) = (0, Vec::new());
    for (at, (spot, bytes)) in pieces.iter().enumerate() {
        let next = pieces.get(at + 1).map(|(spot, _)| spot.offset());
        if next == Some(spot.offset()) {
            continue;
        }
        if run.is_empty() {
            start = spot.offset();
        }
        run.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        run.extend_from_slice(bytes);
        let end = spot.offset() + spot.n_bytes();
        if next == Some(end) {
            run.resize((end - start) as usize, 0);
        } else {
            file.write_all_at(&run, start)?;
            run.clear();
        }
    }
    Ok(())
}

fn read_at_most(file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
    let mut n = 0;
    while n < bytes.len() {
        match file.read_at(&mut bytes[n..], at + n as u64)? {
            0 => break,
            more => n += more,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use arose::mix::SplitMix;

    /// Byte strings of all sizes can be read back, however often they are replaced and whenever
    /// they are written, and the file stays small.
    #[test]
    fn pieces_come_back() {
        // So many that some are not replaced between two batches.
        const N_PIECES: usize = 4000;
        let mut random = SplitMix::new(1);
        let mut shelf = Shelf::new(tempfile::tempfile().unwrap());
        let mut pieces: Vec<(Option<Spot>, Vec<u8>)> = vec![(None, Vec::new()); N_PIECES];
        let mut under_way = None;
        let mut n_read = 0;
        for round in 0..40_000_u64 {
            let at = random.below(N_PIECES as u64) as usize;
            let n = random.below([50, 300, 3000][round as usize % 3]) as usize;
            let bytes: Vec<u8> = (0..n).map(|_| random.next_u64() as u8).collect();
            let spot = shelf.put(&bytes, pieces[at].0);
            pieces[at] = (Some(spot), bytes);
            let (spot, bytes) = &pieces[random.below(N_PIECES as u64) as usize];
            if let Some(spot) = spot {
                n_read += u32::from(shelf.unwritten(*spot).is_none());
                assert_eq!(&shelf.get(*spot).unwrap(), bytes);
            }
            // Batches are written some time after they are taken.
            if round % 512 == 0
                && let Some(batch) = std::mem::replace(&mut under_way, shelf.take_batch())
            {
                write(&shelf.file(), &batch).unwrap();
                shelf.note_written(batch);
            }
        }
        assert!(n_read > 0);
        assert!(
            shelf.end * LEAST < N_PIECES as u64 * 3 * 4096,
            "{}",
            shelf.end
        );
    }
}
