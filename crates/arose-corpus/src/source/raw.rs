//! Bytes of a file or pipe as stored, with a short history.
//!
//! Everything is read in chunks of constant size, and short reads from a pipe are topped up. The
//! point at which a decoder notices damage, and hence the output, therefore does not depend on how
//! the input arrives.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// Bytes per read.
pub(crate) const CHUNK: usize = 64 << 10;

/// Number of consumed bytes to which the reader can still go back.
pub(crate) const MEMORY: usize = 64 << 10;

/// The source of bytes.
pub(crate) enum Handle {
    /// Can seek.
    File(File),
    /// Can only be read forward.
    Pipe(Box<dyn Read + Send>),
}

/// A handle with the most recent bytes.
pub(crate) struct Raw {
    handle: Handle,
    /// Whether the handle is a regular file, not one that can only be read forward.
    is_in_file: bool,
    buffer: Vec<u8>,
    /// Index of the first byte not yet consumed.
    next: usize,
    /// Offset of `buffer[0]` in the file.
    origin: u64,
    ended: bool,
    error: Option<io::Error>,
}

impl Raw {
    pub(crate) fn new(handle: Handle) -> Self {
        let metadata = match &handle {
            Handle::File(file) => file.metadata().ok(),
            Handle::Pipe(_) => None,
        };
        Self {
            is_in_file: metadata.is_some_and(|metadata| metadata.is_file()),
            handle,
            buffer: Vec::new(),
            next: 0,
            origin: 0,
            ended: false,
            error: None,
        }
    }

    /// Offset of the first byte not yet consumed.
    pub(crate) fn offset(&self) -> u64 {
        self.origin + self.next as u64
    }

    /// The bytes read but not consumed.
    pub(crate) fn ahead(&self) -> &[u8] {
        &self.buffer[self.next..]
    }

    pub(crate) fn consume(&mut self, n: usize) {
        self.next = (self.next + n).min(self.buffer.len());
    }

    /// Tries to have at least `want` bytes ahead; returns fewer at the end of the input.
    pub(crate) fn fill(&mut self, want: usize) -> &[u8] {
        while self.ahead().len() < want && !self.ended {
            self.read_chunk();
        }
        self.ahead()
    }

    /// Reads up to an offset and ignores the bytes before it. The buffer is the same as if they had
    /// been consumed piece by piece.
    pub(crate) fn skip_to(&mut self, offset: u64) {
        while self.offset() < offset {
            let missing = usize::try_from(offset - self.offset()).unwrap_or(usize::MAX);
            if self.fill(1).is_empty() {
                return;
            }
            self.consume(missing.min(self.ahead().len()));
        }
    }

    /// Moves to an offset inside the buffer, or to the nearest one that the buffer contains.
    pub(crate) fn go_to(&mut self, offset: u64) {
        let index = offset.saturating_sub(self.origin);
        let last = self.buffer.len();
        self.next = usize::try_from(index).map_or(last, |index| index.min(last));
    }

    /// Whether the bytes can be read again at any offset.
    pub(crate) fn is_in_file(&self) -> bool {
        self.is_in_file
    }

    /// Whether [`seek`](Self::seek) is possible.
    pub(crate) fn can_seek(&self) -> bool {
        matches!(self.handle, Handle::File(_))
    }

    /// Moves to any offset, if the handle can seek.
    pub(crate) fn seek(&mut self, offset: u64) -> bool {
        let Handle::File(file) = &mut self.handle else {
            return false;
        };
        if file.seek(SeekFrom::Start(offset)).is_err() {
            return false;
        }
        self.buffer.clear();
        (self.next, self.origin) = (0, offset);
        self.ended = false;
        true
    }

    /// Up to `n` bytes at any offset of a file; the current position does not change.
    pub(crate) fn peek(&mut self, offset: u64, n: usize) -> Option<Vec<u8>> {
        let next = self.origin + self.buffer.len() as u64;
        let Handle::File(file) = &mut self.handle else {
            return None;
        };
        let mut bytes = Vec::new();
        // Seeking far beyond the end of a file may fail.
        let result = file
            .seek(SeekFrom::Start(offset))
            .and_then(|_| file.take(n as u64).read_to_end(&mut bytes));
        if let Err(error) = file.seek(SeekFrom::Start(next)) {
            (self.error, self.ended) = (Some(error), true);
        }
        if result.is_err() {
            bytes.clear();
        }
        Some(bytes)
    }

    /// Appends the bytes ahead, and then up to `n` more directly from the handle.
    pub(crate) fn drain_into(&mut self, out: &mut Vec<u8>, n: usize) {
        out.extend_from_slice(&self.buffer[self.next..]);
        self.origin += self.buffer.len() as u64;
        self.buffer.clear();
        self.next = 0;
        if !self.ended {
            self.origin += self.read_more(out, n);
        }
    }

    /// The error that stopped reading; returned once.
    pub(crate) fn take_error(&mut self) -> Option<io::Error> {
        self.error.take()
    }

    fn read_chunk(&mut self) {
        let forget = self.next.saturating_sub(MEMORY);
        if forget >= CHUNK {
            self.buffer.drain(..forget);
            self.next -= forget;
            self.origin += forget as u64;
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        self.read_more(&mut buffer, CHUNK);
        self.buffer = buffer;
    }

    fn read_more(&mut self, out: &mut Vec<u8>, n: usize) -> u64 {
        let before = out.len();
        out.reserve(n);
        // Matching on the file lets the library read into the reserved space without zeroing it
        // first.
        let result = match &mut self.handle {
            Handle::File(file) => file.take(n as u64).read_to_end(out),
            Handle::Pipe(pipe) => pipe.take(n as u64).read_to_end(out),
        };
        let n_read = out.len() - before;
        if let Err(error) = result {
            self.error = Some(error);
            self.ended = true;
        }
        self.ended |= n_read < n;
        n_read as u64
    }
}
