//! Output in parts of limited size, each a complete file of its format.

use std::io::{self, Write};

use super::packed::Packed;
use crate::source::member::FileCompression;

/// An output in parts of a limited size.
pub trait Parts: Write {
    /// Maximum bytes of a part, unless a single record is larger; none if there is no limit.
    fn limit(&self) -> Option<u64>;

    /// Number of bytes in this part.
    fn n_bytes(&self) -> u64;

    /// Ends this part and starts the next one.
    ///
    /// # Errors
    ///
    /// If the next part cannot be created.
    fn next_part(&mut self) -> io::Result<()>;
}

/// An output in one part.
pub(super) struct Whole<W>(pub(super) W);

impl<W: Write> Write for Whole<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl<W: Write> Parts for Whole<W> {
    fn limit(&self) -> Option<u64> {
        None
    }

    fn n_bytes(&self) -> u64 {
        0
    }

    fn next_part(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The bytes around and between the records of a part.
pub(super) struct Frame {
    pub(super) before: Vec<u8>,
    pub(super) between: &'static [u8],
    pub(super) after: &'static [u8],
}

impl Frame {
    pub(super) const LINES: Self = Self {
        before: Vec::new(),
        between: b"",
        after: b"",
    };
    pub(super) const SEQUENCE: Self = Self {
        before: Vec::new(),
        between: b"\n",
        after: b"\n",
    };

    pub(super) fn array() -> Self {
        Self {
            before: b"[\n".to_vec(),
            between: b",\n",
            after: b"\n]\n",
        }
    }
}

/// Writes records to parts, each compressed as a whole.
pub(super) struct Copies<P: Parts> {
    /// None only while the part is being changed.
    packed: Option<Packed<P>>,
    packing: FileCompression,
    frame: Frame,
    /// Records in this part.
    pub(super) n_records: u64,
    /// Bytes added since the compressed part last grew, and its size then. They show how much is
    /// still buffered.
    n_waiting: u64,
    n_seen: u64,
}

/// Maximum size of the end of a compressed stream.
const TAIL_BYTES: u64 = 64;

impl<P: Parts> Copies<P> {
    pub(super) fn new(out: P, packing: FileCompression, frame: Frame) -> io::Result<Self> {
        let mut copies = Self {
            packed: Some(Packed::new(out, packing)?),
            packing,
            frame,
            n_records: 0,
            n_waiting: 0,
            n_seen: 0,
        };
        copies.start()?;
        Ok(copies)
    }

    fn start(&mut self) -> io::Result<()> {
        (self.n_records, self.n_waiting, self.n_seen) = (0, 0, 0);
        let before = std::mem::take(&mut self.frame.before);
        let written = self.write_all(&before);
        self.frame.before = before;
        written
    }

    /// Adds a record to this part, or to a new part if it does not fit.
    pub(super) fn put(&mut self, record: &[u8]) -> io::Result<()> {
        self.make_room(record.len() as u64)?;
        if self.n_records > 0 {
            self.write_all(self.frame.between)?;
        }
        self.n_records += 1;
        self.write_all(record)
    }

    /// Starts a new part if a record of this size, not added yet, does not fit. Returns whether it
    /// did.
    pub(super) fn make_room(&mut self, n_bytes: u64) -> io::Result<bool> {
        let Some(packed) = &self.packed else {
            return Ok(false);
        };
        let Some(limit) = packed.out().limit() else {
            return Ok(false);
        };
        let frame = (self.frame.between.len() + self.frame.after.len()) as u64;
        let tail = match self.packing {
            FileCompression::Plain => 0,
            _ => TAIL_BYTES,
        };
        let there = packed.out().n_bytes() + self.n_waiting;
        if self.n_records == 0 || there + n_bytes + frame + tail <= limit {
            return Ok(false);
        }
        let mut out = self.end_part()?;
        out.next_part()?;
        self.packed = Some(Packed::new(out, self.packing)?);
        self.start()?;
        Ok(true)
    }

    fn end_part(&mut self) -> io::Result<P> {
        if self.n_records > 0 || !self.frame.before.is_empty() {
            self.write_all(self.frame.after)?;
        }
        let packed = self.packed.take();
        packed.ok_or(io::ErrorKind::WriteZero)?.finish()
    }

    pub(super) fn finish(mut self) -> io::Result<()> {
        self.end_part().map(drop)
    }
}

impl<P: Parts> Write for Copies<P> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let packed = self.packed.as_mut().ok_or(io::ErrorKind::WriteZero)?;
        let n = packed.write(bytes)?;
        let n_bytes = packed.out().n_bytes();
        self.n_waiting += n as u64;
        if n_bytes != self.n_seen || self.packing == FileCompression::Plain {
            (self.n_seen, self.n_waiting) = (n_bytes, 0);
        }
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
