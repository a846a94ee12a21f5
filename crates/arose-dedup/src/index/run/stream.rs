//! Sequential access to sorted runs: read for merging, written from sorted entries.

use std::path::Path;

use super::{
    BUCKET, BUCKET_BITS, Bits, BytePacker, Content, Entry, Error, ROWS, Resident, Run, Sealed,
    Sealer, Shape, bits_of_bytes, check_of,
};

/// An iterator over the entries of a sorted run, which reads its file from start to end.
pub(in super::super) struct Entries<'a> {
    run: &'a Run,
    next_bucket: usize,
    rows: Vec<u32>,
    /// A part of the file.
    window: Vec<u8>,
    window_start: usize,
}

impl<'a> Entries<'a> {
    const WINDOW: usize = 1 << 18;

    pub(super) fn new(run: &'a Run) -> Self {
        Self {
            run,
            next_bucket: 0,
            rows: Vec::new(),
            window: Vec::new(),
            window_start: 0,
        }
    }

    /// Appends the entries of the next of `2^block_bits` equal parts of the space of prefixes, for
    /// a run that starts `shift` rows earlier. The run must have at least as many buckets as there
    /// are parts.
    pub(in super::super) fn read_block(
        &mut self,
        block_bits: u32,
        shift: u32,
        entries: &mut Vec<Entry>,
    ) -> Result<(), Error> {
        for _ in 0..1_u64 << (self.run.bucket_bits() - block_bits) {
            self.read_bucket(shift, entries)?;
        }
        Ok(())
    }

    fn read_bucket(&mut self, shift: u32, entries: &mut Vec<Entry>) -> Result<(), Error> {
        let (run, bucket) = (self.run, self.next_bucket);
        let [start, end] = run.bucket_bounds(bucket);
        let width = run.shape.row_bits() as usize;
        let (first_byte, end_byte) = (start * width / 8, (end * width).div_ceil(8));
        if end_byte > self.window_start + self.window.len() {
            let all = run.shape.row_section_bytes() as usize;
            let n = (all - first_byte).min(Self::WINDOW.max(end_byte - first_byte));
            self.window = run.file.read(ROWS + first_byte as u64, n)?;
            self.window_start = first_byte;
        }
        let offset = self.window_start * 8;
        self.rows.clear();
        let places = (start..end).map(|i| i * width - offset);
        self.rows
            .extend(places.map(|place| bits_of_bytes(&self.window, place, width as u32)));
        run.check_bucket(bucket, &self.rows)?;
        run.decode_bucket(bucket, &self.rows, shift, entries);
        self.next_bucket += 1;
        Ok(())
    }
}

/// Writes a sorted run from sorted entries.
pub(in super::super) struct RunWriter {
    sealer: Sealer,
    shape: Shape,
    packer: BytePacker,
    packed: Vec<u8>,
    directory: Vec<u32>,
    checks: Vec<u16>,
    blocks: Bits,
    n_entries: u32,
    bucket: Vec<Entry>,
}

impl RunWriter {
    /// Begins a sorted run with this many rows, at most [`MAX_ROWS`], and this many entries.
    pub(in super::super) fn create(
        path: &Path,
        first_row: u32,
        n_rows: u32,
        n_entries: u32,
    ) -> Result<Self, Error> {
        let shape = Shape::new(first_row, n_rows, n_entries);
        let mut sealer = Sealer::create(Content::Run, path)?;
        sealer.write(&shape.encode())?;
        let mut directory = Vec::with_capacity(shape.n_buckets() + 1);
        directory.push(0);
        Ok(Self {
            sealer,
            shape,
            packer: BytePacker::new(shape.row_bits()),
            packed: Vec::new(),
            directory,
            checks: Vec::with_capacity(shape.n_buckets()),
            blocks: Bits::with_capacity(64 * shape.n_block_words()),
            n_entries: 0,
            bucket: Vec::new(),
        })
    }

    /// Adds the next entry, which must not be smaller than the previous one.
    #[inline]
    pub(in super::super) fn push(&mut self, entry: Entry) -> Result<(), Error> {
        let bucket = (entry.prefix() >> (self.shape.low_bits() + BUCKET_BITS)) as usize;
        while self.checks.len() < bucket {
            self.close_bucket()?;
        }
        self.bucket.push(entry);
        Ok(())
    }

    /// Seals the file and opens it, without reading its filter again.
    pub(in super::super) fn finish(mut self, path: &Path, number: u64) -> Result<Run, Error> {
        while self.checks.len() < self.shape.n_buckets() {
            self.close_bucket()?;
        }
        debug_assert_eq!(self.n_entries, self.shape.n_entries);
        self.packer.finish(&mut self.packed);
        self.sealer.write(&self.packed)?;
        let resident = Resident {
            directory: self.directory,
            checks: self.checks,
            blocks: self.blocks.into_words(),
        };
        resident.write(&mut self.sealer)?;
        let check = self.sealer.seal()?;
        Ok(Run {
            file: Sealed::open_expected(Content::Run, path, check)?,
            shape: self.shape,
            resident,
            number,
        })
    }

    fn close_bucket(&mut self) -> Result<(), Error> {
        let low_bits = self.shape.low_bits();
        let mut entries = self.bucket.iter().peekable();
        let first = (self.checks.len() * BUCKET) as u64;
        for quotient in first..first + BUCKET as u64 {
            let mut n = 0;
            while entries
                .next_if(|entry| entry.prefix() >> low_bits == quotient)
                .is_some()
            {
                n += 1;
            }
            self.blocks.push_unary(n);
        }
        for entry in &self.bucket {
            self.blocks
                .push(entry.prefix() & ((1 << low_bits) - 1), low_bits);
            self.packer.push(entry.row(), &mut self.packed);
        }
        self.n_entries += self.bucket.len() as u32;
        self.directory.push(self.n_entries);
        self.checks
            .push(check_of(self.bucket.iter().map(|entry| entry.row())));
        self.bucket.clear();
        if self.packed.len() >= 1 << 16 {
            self.sealer.write(&self.packed)?;
            self.packed.clear();
        }
        Ok(())
    }
}
