//! Columns of chunks in files that all executors can read.
//!
//! The output of reading is by far the largest data, and every engine copies a row many times. If
//! executors share a directory, the columns of chunks stay in a file for each part of the input.
//! Messages contain their positions instead, and the receiver of a message reads the file.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{File, Permissions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

use bytemuck::{Pod, Zeroable};
use tempfile::NamedTempFile;

use super::read::MAX_SHARDS;
use super::wire::{Cursor, Message};
use crate::Error;

/// The position of a column, or of a part of one, in the file of its part of the input.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct ChunkPlace {
    pub(super) start: u64,
    pub(super) n_bytes: u64,
}

/// Maximum number of open files.
const MAX_OPEN: usize = 64;

fn file_of(folder: &Path, number: i64) -> PathBuf {
    folder.join(format!("{number}.chunks"))
}

/// A file that is being written. It is renamed when it is complete. So of two attempts at one part
/// of the input, which write the same, either may come last.
pub(super) struct ChunkWriter {
    path: PathBuf,
    out: BufWriter<NamedTempFile>,
    n_bytes: u64,
}

impl ChunkWriter {
    pub(super) fn create(folder: &Path, number: i64) -> Result<Self, Error> {
        let file = std::fs::create_dir_all(folder).and_then(|()| {
            tempfile::Builder::new()
                .permissions(Permissions::from_mode(0o666))
                .tempfile_in(folder)
        });
        Ok(Self {
            path: file_of(folder, number),
            out: BufWriter::new(file.map_err(Error::io("create a file in", folder))?),
            n_bytes: 0,
        })
    }

    /// Writes a column. Returns its position.
    pub(super) fn put(&mut self, column: &[u8]) -> Result<Vec<u8>, Error> {
        let written = self.out.write_all(column);
        written.map_err(Error::io("write", &self.path))?;
        let place = ChunkPlace {
            start: self.n_bytes,
            n_bytes: column.len() as u64,
        };
        self.n_bytes += place.n_bytes;
        Ok(bytemuck::bytes_of(&place).to_vec())
    }

    pub(super) fn finish(self) -> Result<(), Error> {
        let io = |source| Error::io("write", &self.path)(source);
        let file = self
            .out
            .into_inner()
            .map_err(|error| io(error.into_error()))?;
        file.persist(&self.path).map_err(|error| io(error.error))?;
        Ok(())
    }
}

/// Reads columns back.
pub(super) struct ChunkReader {
    folder: PathBuf,
    /// By number of the part of the input.
    open: BTreeMap<i64, File>,
}

impl ChunkReader {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            open: BTreeMap::new(),
        }
    }

    /// Returns a message about a shard with its columns in place of their positions.
    pub(super) fn resolve(&mut self, message: &Message<'_>) -> Result<Message<'static>, Error> {
        let mut column = |place: &[u8]| {
            let place: ChunkPlace = Cursor(place).record()?;
            let mut column = vec![0; place.n_bytes as usize];
            self.read(message.part, place.start, &mut column)?;
            Ok::<_, Error>(column.into())
        };
        Ok(Message {
            bytes: column(&message.bytes)?,
            more: message.more.as_deref().map(column).transpose()?,
            ..*message
        })
    }

    /// Reads bytes of the file of a shard.
    pub(super) fn read(&mut self, shard: i64, start: u64, out: &mut [u8]) -> Result<(), Error> {
        let number = shard / MAX_SHARDS;
        let path = || file_of(&self.folder, number);
        if self.open.len() >= MAX_OPEN && !self.open.contains_key(&number) {
            self.open.clear();
        }
        let file = match self.open.entry(number) {
            Entry::Occupied(open) => open.into_mut(),
            Entry::Vacant(free) => {
                let file = File::open(path());
                free.insert(file.map_err(|source| Error::io("open", &path())(source))?)
            }
        };
        let read = file.read_exact_at(out, start);
        read.map_err(|source| Error::io("read", &path())(source))
    }
}
