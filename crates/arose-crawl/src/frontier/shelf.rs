//! The shelf: pieces of bytes by number, in a file that nobody needs after the process.
//!
//! *Question.* A crawl meets ten million hosts, and at any time cares for some thousands. Where are
//! the others? *Idea.* In a file with places of 64 bytes, 128, 256 and so on; a piece lies in the
//! smallest that holds it. A piece that is replaced gives its place back, and the next of its size
//! takes it. Nothing is synced: the journal has all that a restart needs. The file has no name, so
//! the system removes it with the process.
//!
//! *Cost.* No more than twice the bytes of the pieces on disk, eight bytes a piece in memory.

use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;

/// Bytes of the smallest places.
const LEAST: u64 = 64;

/// Where a piece is: one more than its position in units of [`LEAST`], and the logarithm of the
/// size of its place in such units, in the low bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spot(NonZeroU64);

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

/// The file and its free places.
#[derive(Debug)]
pub(crate) struct Shelf {
    file: File,
    /// In units of [`LEAST`].
    end: u64,
    /// By size.
    free: Vec<Vec<Spot>>,
}

impl Shelf {
    /// An empty shelf in an empty file.
    pub(crate) fn new(file: File) -> Self {
        Self {
            file,
            end: 0,
            free: Vec::new(),
        }
    }

    /// Puts a piece where there is room; `old` is a place that is given back.
    pub(crate) fn put(&mut self, bytes: &[u8], old: Option<Spot>) -> io::Result<Spot> {
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
        let mut piece = Vec::with_capacity(bytes.len() + 4);
        piece.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        piece.extend_from_slice(bytes);
        self.file.write_all_at(&piece, spot.offset())?;
        Ok(spot)
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

    /// Reads a piece; it stays where it is.
    pub(crate) fn get(&self, spot: Spot) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; spot.n_bytes().min(512) as usize];
        // The last place of the file may not be full.
        read_at_most(&self.file, &mut bytes, spot.offset())?;
        let length = bytes.first_chunk().copied().map_or(0, u32::from_le_bytes) as usize;
        if length + 4 > spot.n_bytes() as usize {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let n_read = bytes.len();
        bytes.resize(length + 4, 0);
        if length + 4 > n_read {
            let rest = &mut bytes[n_read..];
            self.file
                .read_exact_at(rest, spot.offset() + n_read as u64)?;
        }
        bytes.drain(..4);
        Ok(bytes)
    }
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

    /// Pieces of all sizes come back, however often they are replaced, and the file stays small.
    #[test]
    fn pieces_come_back() {
        let mut random = SplitMix::new(1);
        let mut shelf = Shelf::new(tempfile::tempfile().unwrap());
        let mut pieces: Vec<(Option<Spot>, Vec<u8>)> = vec![(None, Vec::new()); 40];
        for round in 0..4000_u64 {
            let at = random.below(40) as usize;
            let n = random.below([50, 300, 3000][round as usize % 3]) as usize;
            let bytes: Vec<u8> = (0..n).map(|_| random.next_u64() as u8).collect();
            let spot = shelf.put(&bytes, pieces[at].0).unwrap();
            pieces[at] = (Some(spot), bytes);
            let (spot, bytes) = &pieces[random.below(40) as usize];
            if let Some(spot) = spot {
                assert_eq!(&shelf.get(*spot).unwrap(), bytes);
            }
        }
        assert!(shelf.end * LEAST < 40 * 3 * 4096, "{}", shelf.end);
    }
}
