//! Files of fixed-size records: written once in order, then scanned or looked up.
//!
//! Every stage writes columns, with one record per document or pair, in the byte order of the
//! machine. Only the run that wrote them reads them. A lookup reads from memory if the file fits
//! into its allowance and from the file otherwise, with the same result.

use std::fs::File;
use std::io::{BufReader, BufWriter, IoSlice, Read, Seek, SeekFrom, Write};
use std::marker::PhantomData;
use std::mem;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytemuck::Pod;

use crate::Error;
use crate::background::{Background, BackgroundFile};

/// Size in bytes of the buffer of a file being read or written.
pub(crate) const BUFFER_BYTES: usize = 1 << 18;

/// Writes records one after the other.
pub(crate) struct Writer<T> {
    path: PathBuf,
    file: Buffered,
    n_records: u64,
    records: PhantomData<T>,
}

/// A file with a buffer, and who writes it.
enum Buffered {
    Here(BufWriter<File>),
    There(BackgroundFile),
}

impl Buffered {
    fn new(file: File, background: Option<&Arc<Background>>) -> Self {
        match background {
            None => Self::Here(BufWriter::with_capacity(BUFFER_BYTES, file)),
            Some(background) => Self::There(BackgroundFile::new(file, BUFFER_BYTES, background)),
        }
    }

    fn write_all(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match self {
            Self::Here(file) => file.write_all(bytes),
            Self::There(file) => file.write_all(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match self {
            Self::Here(file) => file.flush(),
            Self::There(file) => file.flush(),
        }
    }
}

impl<T: Pod> Writer<T> {
    pub(crate) fn create(path: &Path) -> Result<Self, Error> {
        Self::create_on(None, path)
    }

    /// Creates a file that the thread writes, if there is one.
    pub(crate) fn create_on(
        background: Option<&Arc<Background>>,
        path: &Path,
    ) -> Result<Self, Error> {
        let file = File::create(path).map_err(Error::io("create", path))?;
        Ok(Self {
            path: path.to_owned(),
            file: Buffered::new(file, background),
            n_records: 0,
            records: PhantomData,
        })
    }

    /// Resumes after the first records of an unfinished file.
    pub(crate) fn resume(path: &Path, n_records: u64) -> Result<Self, Error> {
        Self::resume_on(None, path, n_records)
    }

    /// Like [`resume`](Self::resume), with a thread that writes the file, if there is one.
    pub(crate) fn resume_on(
        background: Option<&Arc<Background>>,
        path: &Path,
        n_records: u64,
    ) -> Result<Self, Error> {
        let file = truncated(path, n_records * size_of::<T>() as u64)?;
        Ok(Self {
            path: path.to_owned(),
            file: Buffered::new(file, background),
            n_records,
            records: PhantomData,
        })
    }

    /// Returns the number of records written so far.
    pub(crate) fn len(&self) -> u64 {
        self.n_records
    }

    /// Passes all data to the operating system, so that it survives this process.
    pub(crate) fn flush(&mut self) -> Result<(), Error> {
        self.file.flush().map_err(Error::io("write", &self.path))
    }

    pub(crate) fn push(&mut self, record: &T) -> Result<(), Error> {
        self.extend(std::slice::from_ref(record))
    }

    pub(crate) fn extend(&mut self, records: &[T]) -> Result<(), Error> {
        self.n_records += records.len() as u64;
        let bytes = bytemuck::cast_slice(records);
        self.file
            .write_all(bytes)
            .map_err(Error::io("write", &self.path))
    }

    pub(crate) fn finish(mut self) -> Result<u64, Error> {
        self.flush()?;
        Ok(self.n_records)
    }
}

/// Writes records that arrive in lists, without copying them.
pub(crate) struct ListWriter<T> {
    path: PathBuf,
    file: File,
    /// Lists that are to be written together.
    waiting: Vec<Vec<T>>,
    n_waiting_bytes: usize,
    n_records: u64,
}

/// Number of lists that are written together. The operating system accepts at most 1024.
const MAX_WAITING: usize = 512;

impl<T: Pod> ListWriter<T> {
    pub(crate) fn create(path: &Path) -> Result<Self, Error> {
        Ok(Self {
            path: path.to_owned(),
            file: File::create(path).map_err(Error::io("create", path))?,
            waiting: Vec::new(),
            n_waiting_bytes: 0,
            n_records: 0,
        })
    }

    /// Returns the number of records written so far.
    pub(crate) fn len(&self) -> u64 {
        self.n_records
    }

    /// Passes all data to the operating system, so that it survives this process.
    pub(crate) fn flush(&mut self) -> Result<(), Error> {
        self.write().map_err(Error::io("write", &self.path))
    }

    pub(crate) fn push(&mut self, records: Vec<T>) -> Result<(), Error> {
        self.n_records += records.len() as u64;
        self.n_waiting_bytes += size_of_val(&records[..]);
        self.waiting.push(records);
        if self.n_waiting_bytes < BUFFER_BYTES && self.waiting.len() < MAX_WAITING {
            return Ok(());
        }
        self.write().map_err(Error::io("write", &self.path))
    }

    fn write(&mut self) -> std::io::Result<()> {
        let lists = self.waiting.iter();
        let mut slices: Vec<IoSlice<'_>> = lists
            .map(|list| IoSlice::new(bytemuck::cast_slice(list)))
            .collect();
        let mut left = &mut slices[..];
        let mut n_left = mem::take(&mut self.n_waiting_bytes);
        while n_left > 0 {
            let n_written = match self.file.write_vectored(left) {
                Ok(0) => return Err(std::io::ErrorKind::WriteZero.into()),
                Ok(n_written) => n_written,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            IoSlice::advance_slices(&mut left, n_written);
            n_left -= n_written;
        }
        self.waiting.clear();
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<u64, Error> {
        self.flush()?;
        Ok(self.n_records)
    }
}

/// The records of a file in order.
pub(crate) struct Scan<T> {
    path: PathBuf,
    file: BufReader<File>,
    left: u64,
    records: PhantomData<T>,
}

impl<T: Pod> Scan<T> {
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(Error::io("open", path))?;
        let left = n_records::<T>(&file, path)?;
        Ok(Self {
            path: path.to_owned(),
            file: BufReader::with_capacity(BUFFER_BYTES, file),
            left,
            records: PhantomData,
        })
    }

    /// Returns the number of remaining records.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    pub(crate) fn next(&mut self) -> Result<Option<T>, Error> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let mut record = T::zeroed();
        self.file
            .read_exact(bytemuck::bytes_of_mut(&mut record))
            .map_err(Error::io("read", &self.path))?;
        Ok(Some(record))
    }
}

/// Writes records to their positions in a file, from many threads.
pub(crate) struct Slots<T> {
    path: PathBuf,
    file: File,
    records: PhantomData<fn(T)>,
}

impl<T: Pod> Slots<T> {
    /// Creates a file of this many records. Records that are never written are zero.
    pub(crate) fn create(path: &Path, n_records: u64) -> Result<Self, Error> {
        let file = File::create(path).map_err(Error::io("create", path))?;
        file.set_len(n_records * size_of::<T>() as u64)
            .map_err(Error::io("write", path))?;
        Ok(Self {
            path: path.to_owned(),
            file,
            records: PhantomData,
        })
    }

    /// Writes records from `start` on.
    pub(crate) fn write(&self, start: u64, records: &[T]) -> Result<(), Error> {
        let bytes = bytemuck::cast_slice(records);
        self.file
            .write_all_at(bytes, start * size_of::<T>() as u64)
            .map_err(Error::io("write", &self.path))
    }
}

/// Random access to records by number.
pub(crate) enum Column<T> {
    Memory(Vec<T>),
    File { path: PathBuf, file: File },
}

impl<T: Pod> Column<T> {
    /// Opens a column. It is loaded into memory if it has at most `allowance` bytes.
    pub(crate) fn open(path: &Path, allowance: u64) -> Result<Self, Error> {
        let file = File::open(path).map_err(Error::io("open", path))?;
        let n_records = n_records::<T>(&file, path)? as usize;
        if n_records as u64 * size_of::<T>() as u64 > allowance {
            return Ok(Self::File {
                path: path.to_owned(),
                file,
            });
        }
        let mut records = vec![T::zeroed(); n_records];
        (&file)
            .read_exact(bytemuck::cast_slice_mut(&mut records))
            .map_err(Error::io("read", path))?;
        Ok(Self::Memory(records))
    }

    /// Returns the number of records.
    pub(crate) fn len(&self) -> Result<u64, Error> {
        match self {
            Self::Memory(records) => Ok(records.len() as u64),
            Self::File { path, file } => n_records::<T>(file, path),
        }
    }

    /// Returns record `index`, which must exist.
    pub(crate) fn get(&self, index: u32) -> Result<T, Error> {
        match self {
            Self::Memory(records) => Ok(records[index as usize]),
            Self::File { path, file } => {
                let mut record = T::zeroed();
                let at = u64::from(index) * size_of::<T>() as u64;
                file.read_exact_at(bytemuck::bytes_of_mut(&mut record), at)
                    .map_err(Error::io("read", path))?;
                Ok(record)
            }
        }
    }

    /// Reads the records from `start` on, as many as fit into `out`.
    pub(crate) fn read_into(&self, start: u64, out: &mut [T]) -> Result<(), Error> {
        match self {
            Self::Memory(records) => {
                out.copy_from_slice(&records[start as usize..][..out.len()]);
                Ok(())
            }
            Self::File { path, file } => file
                .read_exact_at(bytemuck::cast_slice_mut(out), start * size_of::<T>() as u64)
                .map_err(Error::io("read", path)),
        }
    }
}

/// Looks up records whose numbers mostly ascend, with few reads of the file.
pub(crate) struct Ahead<T> {
    column: Column<T>,
    n_records: u64,
    /// The records that were read last, and the number of the first.
    records: Vec<T>,
    start: u64,
}

/// Number of bytes that are read at once.
const AHEAD_BYTES: usize = 1 << 14;

impl<T: Pod> Ahead<T> {
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let column = Column::open(path, 0)?;
        Ok(Self {
            n_records: column.len()?,
            column,
            records: Vec::new(),
            start: 0,
        })
    }

    /// Returns `n` records from `start` on, which must exist.
    pub(crate) fn get(&mut self, start: u64, n: usize) -> Result<&[T], Error> {
        let is_there =
            self.start <= start && start + n as u64 <= self.start + self.records.len() as u64;
        if !is_there {
            let n_left = self.n_records.saturating_sub(start);
            let n_ahead = (AHEAD_BYTES / size_of::<T>()) as u64;
            // Lookups that are far apart get no more than they need.
            let is_near = start >= self.start && start - self.start < 4 * n_ahead;
            let n_read = match is_near {
                true => n_ahead.min(n_left).max(n as u64),
                false => n as u64,
            };
            let mut records = mem::take(&mut self.records);
            records.resize(n_read as usize, T::zeroed());
            self.column.read_into(start, &mut records)?;
            (self.records, self.start) = (records, start);
        }
        Ok(&self.records[(start - self.start) as usize..][..n])
    }
}

/// Opens a file to write after its first bytes. Anything that follows them is cut off.
fn truncated(path: &Path, n_bytes: u64) -> Result<File, Error> {
    let file = File::options().write(true).open(path);
    let mut file = file.map_err(Error::io("open", path))?;
    let there = file.metadata().map_err(Error::io("read", path))?.len();
    if there < n_bytes {
        return Err(Error::Damaged {
            path: path.to_owned(),
            detail: format!("it has {there} bytes of {n_bytes}"),
        });
    }
    file.set_len(n_bytes).map_err(Error::io("write", path))?;
    file.seek(SeekFrom::End(0))
        .map_err(Error::io("write", path))?;
    Ok(file)
}

fn n_records<T>(file: &File, path: &Path) -> Result<u64, Error> {
    let n_bytes = file.metadata().map_err(Error::io("read", path))?.len();
    let size = size_of::<T>() as u64;
    if n_bytes % size == 0 {
        return Ok(n_bytes / size);
    }
    Err(Error::Damaged {
        path: path.to_owned(),
        detail: format!("{n_bytes} bytes are not a multiple of the record size {size}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_scanned_and_looked_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("numbers");
        let mut writer = Writer::<u64>::create(&path).unwrap();
        let numbers: Vec<u64> = (0..10_000).map(|i| i * i).collect();
        writer.push(&numbers[0]).unwrap();
        writer.extend(&numbers[1..]).unwrap();
        assert_eq!(writer.finish().unwrap(), 10_000);

        let mut scan = Scan::<u64>::open(&path).unwrap();
        assert_eq!(scan.next().unwrap(), Some(0));
        let mut scanned = vec![0];
        while let Some(number) = scan.next().unwrap() {
            scanned.push(number);
        }
        assert_eq!(scanned, numbers);
        for allowance in [0, 80_000] {
            let column = Column::<u64>::open(&path, allowance).unwrap();
            assert_eq!(column.get(9_999).unwrap(), 9_999 * 9_999);
            let mut middle = [0; 3];
            column.read_into(50, &mut middle).unwrap();
            assert_eq!(middle, [2500, 2601, 2704]);
        }
    }

    #[test]
    fn records_are_found_ahead() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("numbers");
        let mut writer = Writer::<u64>::create(&path).unwrap();
        let numbers: Vec<u64> = (0..10_000).collect();
        writer.extend(&numbers).unwrap();
        writer.finish().unwrap();
        let mut ahead = Ahead::<u64>::open(&path).unwrap();
        for (start, n) in [
            (0, 1),
            (5, 2043),
            (2047, 2),
            (3, 9000),
            (9_999, 1),
            (10_000, 0),
            (7, 3),
        ] {
            let expected = &numbers[start as usize..][..n];
            assert_eq!(ahead.get(start, n).unwrap(), expected);
        }
        assert!(ahead.get(9_999, 2).is_err());
        assert_eq!(ahead.get(9_998, 2).unwrap(), [9_998, 9_999]);
    }

    #[test]
    fn records_are_written_to_their_places() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("slots");
        let slots = Slots::<u64>::create(&path, 5).unwrap();
        slots.write(3, &[7, 8]).unwrap();
        slots.write(1, &[9]).unwrap();
        let mut scan = Scan::<u64>::open(&path).unwrap();
        let numbers = std::iter::from_fn(|| scan.next().unwrap());
        assert_eq!(numbers.collect::<Vec<_>>(), [0, 9, 0, 7, 8]);
    }

    #[test]
    fn lists_are_written_one_after_the_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lists");
        let mut writer = ListWriter::<u64>::create(&path).unwrap();
        let mut numbers = Vec::new();
        for n in (0..3000).chain([100_000, 0, 1]) {
            let list: Vec<u64> = (0..n % 7 + n / 10_000).collect();
            assert_eq!(writer.len(), numbers.len() as u64);
            numbers.extend(&list);
            writer.push(list).unwrap();
        }
        assert_eq!(writer.finish().unwrap(), numbers.len() as u64);
        let bytes = std::fs::read(&path).unwrap();
        assert!(bytes == bytemuck::cast_slice::<u64, u8>(&numbers));
    }

    #[test]
    fn writing_goes_on_after_what_counts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("records");
        let mut writer = Writer::<u64>::create(&path).unwrap();
        for n in 0..10 {
            writer.push(&n).unwrap();
        }
        writer.flush().unwrap();
        drop(writer);
        let mut writer = Writer::<u64>::resume(&path, 3).unwrap();
        assert_eq!(writer.len(), 3);
        writer.push(&77).unwrap();
        assert_eq!(writer.finish().unwrap(), 4);
        let mut scan = Scan::<u64>::open(&path).unwrap();
        let numbers = std::iter::from_fn(|| scan.next().unwrap());
        assert_eq!(numbers.collect::<Vec<_>>(), [0, 1, 2, 77]);
        assert!(matches!(
            Writer::<u64>::resume(&path, 5),
            Err(Error::Damaged { .. })
        ));
    }

    #[test]
    fn a_torn_record_is_damage() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("torn");
        std::fs::write(&path, [0; 12]).unwrap();
        assert!(matches!(
            Scan::<u64>::open(&path),
            Err(Error::Damaged { .. })
        ));
    }
}
