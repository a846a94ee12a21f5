//! Decompresses members before the reader reaches them.
//!
//! *Question.* A web archive is one long file of small members, and decompression takes most of the
//! time. How can many threads decompress it, if nothing says where members start?
//!
//! *Idea.* By guessing. The file is divided into *ranges* of equal size. An idle thread takes the
//! next range, searches for the bytes that members start with, and decodes from there. A member
//! that decodes to its end with a correct checksum is stored under its start; the next member is
//! searched for where it ends. The reader reads the file from the front. Before it opens a member,
//! it checks whether one that starts at exactly this byte is stored. The content of a member
//! depends only on the bytes of the file from there on, so the result is correct however it was
//! found: a wrong guess is never used, and members that are damaged or too large are decoded by the
//! reader itself.
//!
//! If no thread has started a range when the reader arrives, the reader decodes it. If a thread is
//! working on it, the reader decodes another range meanwhile, and waits only if there is none. So a
//! single thread decodes every byte once, and a file that is one member costs the others a search
//! through a few ranges.
//!
//! *Cost.* The compressed bytes are read from the file three times instead of once. Memory is at
//! most two ranges per thread, each decoded to at most four blocks. *Not for* pipes, which cannot
//! be read at two places.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};

use memchr::memmem;

use crate::config::{Config, Limits};
use crate::source::member::{FileCompression, Member};

/// The ranges of one file. The thread that calls [`help`](Self::help) fills it, and the reader of
/// the file empties it through [`take`](Self::take).
pub(crate) struct Ahead {
    packing: FileCompression,
    dictionary: Option<Arc<[u8]>>,
    /// Locked to read one range, while no other lock is held.
    file: Mutex<File>,
    /// Locked only to inspect or update the ranges.
    ranges: Mutex<Ranges>,
    /// Notified whenever a range is done.
    done: Condvar,
    range_bytes: u64,
    /// Maximum decoded size of one range.
    most_bytes: usize,
}

/// The state of all ranges.
struct Ranges {
    /// The next range to start.
    next: u64,
    /// One beyond the last range of the file.
    end: u64,
    /// Ranges that are started and not yet requested: in progress or done.
    begun: BTreeMap<u64, Option<Decoded>>,
    /// Maximum number of such ranges.
    most: usize,
}

/// The complete members that start in one range.
pub(crate) struct Decoded {
    range: std::ops::Range<u64>,
    spans: Vec<MemberSpan>,
    bytes: Vec<u8>,
}

/// One member: its place in the file, and its decoded bytes in [`Decoded::bytes`].
struct MemberSpan {
    packed: std::ops::Range<u64>,
    content: std::ops::Range<usize>,
}

impl Ahead {
    /// For a reader that has reached `offset` of the file.
    pub(crate) fn new(
        file: File,
        packing: FileCompression,
        dictionary: Option<Arc<[u8]>>,
        offset: u64,
        config: &Config,
    ) -> Self {
        let block_bytes = config.block_bytes.get();
        let range_bytes = (block_bytes as u64 / 4).max(1);
        let file_bytes = file.metadata().map_or(0, |metadata| metadata.len());
        Self {
            packing,
            dictionary,
            file: Mutex::new(file),
            ranges: Mutex::new(Ranges {
                next: offset / range_bytes,
                end: file_bytes.div_ceil(range_bytes),
                begun: BTreeMap::new(),
                most: 2 * config.threads.get(),
            }),
            done: Condvar::new(),
            range_bytes,
            // Excessive expansion must be noticed by the reader itself.
            most_bytes: (4 * block_bytes).min(Limits::HARMLESS_BYTES as usize),
        }
    }

    /// Decodes a range, if there is one left to start. Returns whether there was.
    pub(crate) fn help(&self) -> bool {
        let begun = self.lock().begin();
        match begun {
            Some(index) => self.work(index),
            None => return false,
        }
        true
    }

    /// The decoded members of the range that contains `offset`; none if the caller must decode it.
    pub(crate) fn take(&self, offset: u64) -> Option<Decoded> {
        let wanted = offset / self.range_bytes;
        let mut ranges = self.lock();
        loop {
            ranges.forget_before(wanted);
            match ranges.begun.get(&wanted) {
                Some(Some(_)) => return ranges.begun.remove(&wanted).flatten(),
                Some(None) => {}
                None => {
                    ranges.next = ranges.next.max(wanted + 1);
                    return None;
                }
            }
            ranges = match ranges.begin() {
                Some(other) => {
                    drop(ranges);
                    self.work(other);
                    self.lock()
                }
                None => self
                    .done
                    .wait(ranges)
                    .unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Locks the ranges. Code that holds this lock cannot panic half-way.
    fn lock(&self) -> MutexGuard<'_, Ranges> {
        self.ranges.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decodes range `index` and stores it. If that fails, an empty range is stored, so that no
    /// thread waits for it.
    fn work(&self, index: u64) {
        let start = index * self.range_bytes;
        let mut promise = Promise {
            ahead: self,
            index,
            decoded: Decoded {
                range: start..start + self.range_bytes,
                spans: Vec::new(),
                bytes: Vec::new(),
            },
        };
        if let Ok(packed) = self.read(start) {
            promise.decoded.fill(&packed, self);
        }
    }

    /// The bytes of a range, and as many bytes after it for members that reach beyond it.
    fn read(&self, start: u64) -> io::Result<Vec<u8>> {
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let mut file: &File = &file;
        file.seek(SeekFrom::Start(start))?;
        let mut packed = Vec::new();
        file.take(2 * self.range_bytes).read_to_end(&mut packed)?;
        Ok(packed)
    }
}

impl Ranges {
    fn begin(&mut self) -> Option<u64> {
        let index = self.next;
        let may_begin = index < self.end && self.begun.len() < self.most;
        may_begin.then(|| {
            self.next += 1;
            self.begun.insert(index, None);
            index
        })
    }

    /// Drops finished ranges that the reader has passed.
    fn forget_before(&mut self, wanted: u64) {
        self.begun
            .retain(|&index, decoded| index >= wanted || decoded.is_none());
    }
}

/// A range in progress; it is done when this value is dropped, for whatever reason.
struct Promise<'a> {
    ahead: &'a Ahead,
    index: u64,
    decoded: Decoded,
}

impl Drop for Promise<'_> {
    fn drop(&mut self) {
        let empty = Decoded {
            range: 0..0,
            spans: Vec::new(),
            bytes: Vec::new(),
        };
        let decoded = std::mem::replace(&mut self.decoded, empty);
        self.ahead.lock().begun.insert(self.index, Some(decoded));
        self.ahead.done.notify_all();
    }
}

impl Decoded {
    /// Whether a member that starts at `offset` would be in this range.
    pub(crate) fn covers(&self, offset: u64) -> bool {
        self.range.contains(&offset)
    }

    /// The member that starts at `offset`: its end, and its content.
    pub(crate) fn member(&self, offset: u64) -> Option<(u64, &[u8])> {
        let found = self
            .spans
            .binary_search_by_key(&offset, |span| span.packed.start);
        let span = self.spans.get(found.ok()?)?;
        Some((span.packed.end, self.bytes.get(span.content.clone())?))
    }

    /// Decodes all members that start in the range; `packed` contains its bytes.
    fn fill(&mut self, packed: &[u8], ahead: &Ahead) {
        let magic = memmem::Finder::new(ahead.packing.magic());
        let mut at = 0;
        while let Some(found) = packed.get(at..).and_then(|rest| magic.find(rest)) {
            let start = at + found;
            let offset = self.range.start + start as u64;
            if !self.covers(offset) || self.bytes.len() >= ahead.most_bytes {
                return;
            }
            let before = self.bytes.len();
            match ahead.decode(&packed[start..], &mut self.bytes) {
                None => {
                    self.bytes.truncate(before);
                    at = start + 1;
                }
                Some(n) => {
                    at = start + n;
                    self.spans.push(MemberSpan {
                        packed: offset..offset + n as u64,
                        content: before..self.bytes.len(),
                    });
                }
            }
        }
    }
}

impl Ahead {
    /// Decodes the member at the start of `packed`. Returns its compressed size if it is complete.
    fn decode(&self, packed: &[u8], output: &mut Vec<u8>) -> Option<usize> {
        if FileCompression::sniff(packed) != self.packing {
            return None;
        }
        let mut member = Member::new(self.packing, self.dictionary.as_deref())?;
        let mut at = 0;
        while output.len() < self.most_bytes {
            let step = member.step(&packed[at..], output).ok()?;
            at += step.read;
            match step.ended {
                true => return Some(at),
                false if step.read + step.written == 0 => return None,
                false => {}
            }
        }
        None
    }
}

/// The place where the thread that reads a file asks other threads for help.
#[derive(Default)]
pub(crate) struct Board(Mutex<Weak<Ahead>>);

impl Board {
    /// Requests help with one file, or with none.
    pub(crate) fn post(&self, ahead: Option<&Arc<Ahead>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) =
            ahead.map_or_else(Weak::new, Arc::downgrade);
    }

    /// Does some requested work; false if there is none.
    pub(crate) fn help(&self) -> bool {
        let ahead = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .upgrade();
        ahead.is_some_and(|ahead| ahead.help())
    }
}

#[cfg(test)]
#[path = "ahead_tests.rs"]
mod tests;
