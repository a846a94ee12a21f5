//! The shelf: byte strings by position, in a temporary file.
//!
//! *Question.* A crawl meets ten million hosts and needs some thousands of them at any time. Where
//! are the others, each of which is replaced again and again? Writing a byte string in its place
//! takes several microseconds, because it changes a page of the file that others have not changed.
//!
//! *Idea.* The file is written like a log (Rosenblum & Ousterhout 1992), in *segments* of 256 KiB.
//! A byte string goes to the end of the open segment, wherever its last version is, and a full
//! segment is written at once. The bytes of each segment that are still valid are counted. When the
//! file is twice as large as all valid byte strings, the segment with the fewest is *emptied*: they
//! are read, go to the open segment, and theirs is free. A byte string that is larger than a
//! segment gets several of its own. Nothing is synced, because the journal has everything that a
//! restart needs. The file has no name, so the system removes it with the process.
//!
//! Any thread may write segments ([`Segment::write`]), in the order in which they were taken. Until
//! a segment is written, it is in memory and is read from there.
//!
//! *Cost.* At most twice the bytes of the strings on disk and [`SLACK`], and eight bytes per string
//! in memory. At most one byte is written again for each byte that is replaced.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use crate::journal::HostId;

/// Size of a segment in bytes.
pub(super) const SEGMENT: usize = 256 << 10;

/// Bytes of segments that may have no valid byte strings, beside half of all.
const SLACK: u64 = 8 * SEGMENT as u64;

/// Maximum number of valid bytes of a segment that is emptied.
const MANY: u32 = SEGMENT as u32 / 2;

/// Bytes before each byte string: the number of its host and its length.
const HEAD: usize = 8;

/// The position of a byte string: one more than the offset of its head; the low bits have its
/// length with the head, if that fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spot(NonZeroU64);

const LENGTH_BITS: u32 = 24;
const MAX_LENGTH: u64 = (1 << LENGTH_BITS) - 1;

impl Spot {
    fn new(offset: u64, length: usize) -> Self {
        let bits = offset << LENGTH_BITS | (length as u64).min(MAX_LENGTH);
        Self(NonZeroU64::MIN.saturating_add(bits + (1 << LENGTH_BITS) - 1))
    }

    fn offset(self) -> u64 {
        (self.0.get() >> LENGTH_BITS) - 1
    }

    /// Returns its length, at most [`MAX_LENGTH`].
    fn length(self) -> u64 {
        self.0.get() & MAX_LENGTH
    }

    fn segment(self) -> usize {
        (self.offset() / SEGMENT as u64) as usize
    }
}

/// A full segment, to be written to the file.
#[derive(Debug, Clone)]
pub(super) struct Segment {
    number: usize,
    bytes: Arc<Vec<u8>>,
}

impl Segment {
    /// Writes the segment.
    pub(super) fn write(&self, file: &File) -> io::Result<()> {
        file.write_all_at(&self.bytes, start_of(self.number))
    }
}

/// A segment that was read to be emptied.
#[derive(Debug)]
pub(super) struct Emptied {
    number: usize,
    bytes: Vec<u8>,
}

impl Emptied {
    /// Reads a segment.
    pub(super) fn read(file: &File, number: usize) -> io::Result<Self> {
        let mut bytes = vec![0; SEGMENT];
        let mut n = 0;
        // The last one of the file may not be full.
        while n < SEGMENT {
            match file.read_at(&mut bytes[n..], start_of(number) + n as u64)? {
                0 => break,
                more => n += more,
            }
        }
        bytes.truncate(n);
        Ok(Self { number, bytes })
    }

    /// Returns its byte strings, valid or not, with their hosts and spots.
    pub(super) fn pieces(&self) -> impl Iterator<Item = (HostId, Spot, &[u8])> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let rest = self.bytes.get(at..)?;
            let (id, bytes) = parse(rest).filter(|(_, bytes)| !bytes.is_empty())?;
            let length = HEAD + bytes.len();
            let spot = Spot::new(start_of(self.number) + at as u64, length);
            at += length;
            Some((id, spot, bytes))
        })
    }
}

/// The file and the state of its segments.
#[derive(Debug)]
pub(super) struct Shelf {
    file: Arc<File>,
    segments: Vec<Use>,
    /// Free segments, and runs of them, by the logarithm of their number.
    free: Vec<Vec<usize>>,
    /// The open segment.
    open: Vec<u8>,
    open_number: usize,
    /// Full segments that no thread has taken, and all that are not in the file.
    full: Vec<Segment>,
    unwritten: HashMap<usize, Arc<Vec<u8>>>,
    /// Bytes of all valid byte strings, and of all segments that are not free; without large byte
    /// strings.
    n_valid: u64,
    n_used: u64,
}

/// The use of a segment.
#[derive(Debug, Clone, Copy, Default)]
struct Use {
    /// Bytes of valid byte strings.
    n_valid: u32,
    /// If a large byte string begins there, the logarithm of the number of its segments.
    size: u8,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Free,
    /// Open, or not in the file.
    Unwritten,
    Written,
    /// In the file, and being read to be emptied.
    Emptying,
}

impl Shelf {
    /// Creates an empty shelf in an empty file.
    pub(super) fn new(file: File) -> Self {
        let mut shelf = Self {
            file: Arc::new(file),
            segments: Vec::new(),
            free: Vec::new(),
            open: Vec::with_capacity(SEGMENT),
            open_number: 0,
            full: Vec::new(),
            unwritten: HashMap::new(),
            n_valid: 0,
            n_used: 0,
        };
        shelf.open_number = shelf.room(0);
        shelf
    }

    /// Returns the file, to be read and written elsewhere.
    pub(super) fn file(&self) -> Arc<File> {
        Arc::clone(&self.file)
    }

    /// Stores the byte string of a host, which must not be empty; `old` is a spot that becomes
    /// free.
    pub(super) fn put(&mut self, id: HostId, bytes: &[u8], old: Option<Spot>) -> Spot {
        if let Some(old) = old {
            self.remove(old);
        }
        let length = HEAD + bytes.len();
        let is_large = length > SEGMENT;
        if is_large || self.open.len() + length > SEGMENT {
            self.close();
        }
        if is_large {
            // The open segment has no byte strings, so it is left for others.
            let n_segments = length.div_ceil(SEGMENT).next_power_of_two();
            let number = self.room(n_segments.ilog2() as u8);
            let other = std::mem::replace(&mut self.open_number, number);
            let spot = self.append(id, bytes);
            self.close_open();
            self.open_number = other;
            return spot;
        }
        self.append(id, bytes)
    }

    /// Appends a byte string to the open segment.
    fn append(&mut self, id: HostId, bytes: &[u8]) -> Spot {
        let offset = start_of(self.open_number) + self.open.len() as u64;
        let spot = Spot::new(offset, HEAD + bytes.len());
        self.open.extend_from_slice(&id.to_le_bytes());
        self.open
            .extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        self.open.extend_from_slice(bytes);
        let segment = &mut self.segments[self.open_number];
        segment.n_valid += spot.length() as u32;
        if segment.size == 0 {
            self.n_valid += spot.length();
        }
        spot
    }

    /// Opens another segment, unless the open one has no byte strings.
    pub(super) fn close(&mut self) {
        if !self.open.is_empty() {
            self.close_open();
            self.open_number = self.room(0);
        }
    }

    fn close_open(&mut self) {
        let bytes = std::mem::replace(&mut self.open, Vec::with_capacity(SEGMENT));
        let (number, bytes) = (self.open_number, Arc::new(bytes));
        self.unwritten.insert(number, Arc::clone(&bytes));
        self.full.push(Segment { number, bytes });
    }

    /// Returns a full segment to be written. They must be written in the order in which they are
    /// taken.
    pub(super) fn take_full(&mut self) -> Option<Segment> {
        (!self.full.is_empty()).then(|| self.full.remove(0))
    }

    /// Records that a segment is in the file.
    pub(super) fn note_written(&mut self, segment: &Segment) {
        self.unwritten.remove(&segment.number);
        self.segments[segment.number].stage = Stage::Written;
        self.free_if_empty(segment.number);
    }

    /// Returns a byte string that is not in the file yet.
    pub(super) fn unwritten(&self, spot: Spot) -> Option<&[u8]> {
        let number = spot.segment();
        let bytes = match number == self.open_number {
            true => &self.open,
            false => &**self.unwritten.get(&number)?,
        };
        let at = spot.offset() - start_of(number);
        Some(parse(bytes.get(at as usize..)?)?.1)
    }

    /// Reads a byte string, which stays on the shelf.
    pub(super) fn get<'b>(&'b self, spot: Spot, buffer: &'b mut Vec<u8>) -> io::Result<&'b [u8]> {
        match self.unwritten(spot) {
            Some(bytes) => Ok(bytes),
            None => read(&self.file, spot, buffer),
        }
    }

    /// Returns the segment to be emptied next, if the file is too large: its valid byte strings are
    /// to be [put](Self::put) again.
    pub(super) fn next_to_empty(&mut self) -> Option<usize> {
        if self.n_used <= 2 * self.n_valid + SLACK {
            return None;
        }
        let segments = self.segments.iter().enumerate();
        let can_be_emptied = |segment: &Use| {
            segment.stage == Stage::Written && segment.size == 0 && segment.n_valid <= MANY
        };
        let least = segments
            .filter(|(_, segment)| can_be_emptied(segment))
            .min_by_key(|(_, segment)| segment.n_valid);
        let (number, _) = least?;
        self.segments[number].stage = Stage::Emptying;
        Some(number)
    }

    /// Records that the valid byte strings of a segment are elsewhere.
    pub(super) fn note_emptied(&mut self, segment: &Emptied) {
        self.segments[segment.number].stage = Stage::Written;
        self.free_if_empty(segment.number);
    }

    /// Frees a spot.
    fn remove(&mut self, spot: Spot) {
        let segment = &mut self.segments[spot.segment()];
        segment.n_valid -= spot.length() as u32;
        if segment.size == 0 {
            self.n_valid -= spot.length();
        }
        self.free_if_empty(spot.segment());
    }

    /// Frees a segment without valid byte strings if it is in the file. One that is being read is
    /// not used again until its byte strings have been compared with the valid ones.
    fn free_if_empty(&mut self, number: usize) {
        let segment = &mut self.segments[number];
        if segment.n_valid > 0 || segment.stage != Stage::Written {
            return;
        }
        segment.stage = Stage::Free;
        let size = segment.size;
        if size == 0 {
            self.n_used -= SEGMENT as u64;
        }
        self.free_of(size).push(number);
    }

    fn free_of(&mut self, size: u8) -> &mut Vec<usize> {
        let size = usize::from(size);
        if self.free.len() <= size {
            self.free.resize(size + 1, Vec::new());
        }
        &mut self.free[size]
    }

    /// Takes free segments in a row; `size` is the logarithm of their number.
    fn room(&mut self, size: u8) -> usize {
        let number = self.take_free(size).unwrap_or_else(|| {
            let end = self.segments.len();
            self.segments.resize(end + (1 << size), Use::default());
            end
        });
        if size == 0 {
            self.n_used += SEGMENT as u64;
        }
        let segment = &mut self.segments[number];
        (segment.size, segment.stage) = (size, Stage::Unwritten);
        number
    }

    /// Takes the shortest run that is long enough, and leaves what is not needed.
    fn take_free(&mut self, size: u8) -> Option<usize> {
        let is_free = |&longer: &u8| !self.free[usize::from(longer)].is_empty();
        let longer = (size..self.free.len() as u8).find(is_free)?;
        let number = self.free_of(longer).pop()?;
        for half in size..longer {
            self.free_of(half).push(number + (1 << half));
        }
        Some(number)
    }
}

/// Reads a byte string that is in the file.
pub(super) fn read<'b>(file: &File, spot: Spot, buffer: &'b mut Vec<u8>) -> io::Result<&'b [u8]> {
    buffer.resize(spot.length() as usize, 0);
    file.read_exact_at(buffer, spot.offset())?;
    if spot.length() == MAX_LENGTH {
        let length = HEAD + length_of(buffer).unwrap_or(0);
        buffer.resize(length, 0);
        file.read_exact_at(buffer, spot.offset())?;
    }
    let found = parse(buffer).map(|(_, bytes)| bytes);
    found.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Returns the host and the byte string at the start.
fn parse(bytes: &[u8]) -> Option<(HostId, &[u8])> {
    let id = HostId::from_le_bytes(*bytes.first_chunk()?);
    Some((id, bytes.get(HEAD..HEAD + length_of(bytes)?)?))
}

fn length_of(bytes: &[u8]) -> Option<usize> {
    let length = bytes.get(4..)?.first_chunk()?;
    Some(u32::from_le_bytes(*length) as usize)
}

fn start_of(number: usize) -> u64 {
    number as u64 * SEGMENT as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use arose::mix::SplitMix;

    /// Puts the valid byte strings of a segment elsewhere, as the crawl does.
    fn empty(shelf: &mut Shelf, pieces: &mut [(Option<Spot>, Vec<u8>)], number: usize) {
        let emptied = Emptied::read(&shelf.file(), number).unwrap();
        for (id, spot, bytes) in emptied.pieces() {
            if let Some(piece) = pieces.get_mut(id as usize)
                && piece.0 == Some(spot)
            {
                assert_eq!(bytes, piece.1);
                piece.0 = Some(shelf.put(id, bytes, Some(spot)));
            }
        }
        shelf.note_emptied(&emptied);
    }

    /// Byte strings of all sizes can be read back, however often they are replaced and whenever
    /// segments are written and emptied, and the file stays small.
    #[test]
    fn pieces_come_back() {
        const N_PIECES: usize = 20_000;
        let mut random = SplitMix::new(1);
        let mut shelf = Shelf::new(tempfile::tempfile().unwrap());
        let mut pieces: Vec<(Option<Spot>, Vec<u8>)> = vec![(None, Vec::new()); N_PIECES];
        let mut under_way = std::collections::VecDeque::new();
        let (mut buffer, mut n_read, mut n_emptied) = (Vec::new(), 0, 0);
        let (mut n_bytes, mut n_most) = (0, 0);
        for round in 0..200_000_u64 {
            let at = random.below(N_PIECES as u64) as usize;
            let most = match round % 20_000 {
                0 => 3 * SEGMENT,
                // More than the length that a spot has room for.
                7 => 20 << 20,
                n => [50, 300, 3000][n as usize % 3],
            };
            let least = if most > SEGMENT { most as u64 / 2 } else { 1 };
            let n = least + random.below(most as u64 - least);
            let bytes: Vec<u8> = (0..n).map(|n| (n ^ round) as u8).collect();
            let spot = shelf.put(at as HostId, &bytes, pieces[at].0);
            n_bytes = n_bytes + n as usize - pieces[at].1.len();
            n_most = n_most.max(n_bytes as u64);
            pieces[at] = (Some(spot), bytes);
            let (spot, bytes) = &pieces[random.below(N_PIECES as u64) as usize];
            if let Some(spot) = spot {
                n_read += u32::from(shelf.unwritten(*spot).is_none());
                assert_eq!(shelf.get(*spot, &mut buffer).unwrap(), bytes);
            }
            // Segments are written some time after they are taken.
            under_way.extend(std::iter::from_fn(|| shelf.take_full()));
            if random.below(300) == 0
                && let Some(segment) = under_way.pop_front()
            {
                segment.write(&shelf.file()).unwrap();
                shelf.note_written(&segment);
                if let Some(number) = shelf.next_to_empty() {
                    empty(&mut shelf, &mut pieces, number);
                    n_emptied += 1;
                }
            }
        }
        assert!(n_read > 1000 && n_emptied > 100, "{n_read} {n_emptied}");
        for (spot, bytes) in &pieces {
            let found = spot.map(|spot| shelf.get(spot, &mut buffer).unwrap().to_vec());
            assert_eq!(&found.unwrap_or_default(), bytes);
        }
        let (n_used, n_valid) = (shelf.n_used, shelf.n_valid);
        assert!(n_used <= 2 * n_valid + 2 * SLACK, "{n_used} {n_valid}");
        let n_bytes = (shelf.segments.len() * SEGMENT) as u64;
        assert!(n_bytes < 4 * n_most, "{n_bytes} {n_most}");
    }
}
