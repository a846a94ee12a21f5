//! Checkpoints of the first stage: how much of the input is in the columns, and where to resume.
//!
//! Reading takes the longest of all stages, so it does not start over after a kill. A checkpoint
//! has a bookmark of the reader and the lengths of the columns at that point. Anything beyond these
//! lengths is cut off. Like all work files, it is not forced to disk: after a crash of the machine,
//! reading starts over.

use std::fs::File;
use std::io::{BufRead, BufReader, Write as _};
use std::marker::PhantomData;
use std::path::Path;
use std::time::{Duration, Instant};

use arose_corpus::Bookmark;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::column::Writer;
use crate::dictionary::TokenState;
use crate::record::{DocRecord, NullText};
use crate::stage::columns::Waiting;
use crate::stage::read::Read;
use crate::work::{boot, read_json, write_json};

/// The name of the file in the directory of the stage.
pub(crate) const CHECKPOINT: &str = "checkpoint.json";

/// Number of records between two checks of the time.
const LOOK_EVERY: u64 = 8;

/// The state of the columns.
#[derive(Serialize, Deserialize)]
pub(crate) struct Checkpoint {
    /// The boot of the machine in which it was written.
    pub(crate) boot: String,
    pub(crate) bookmark: Bookmark,
    /// Number of documents and skipped records.
    pub(crate) n_rows: u64,
    /// Number of documents, one of which may not be in the column of documents yet.
    pub(crate) n_documents: u64,
    pub(crate) n_docs: u64,
    pub(crate) tokens: TokenState,
    /// Number of stored sketches.
    pub(crate) n_sketches: u64,
    /// Number of documents with keys.
    pub(crate) n_keyed: u64,
    pub(crate) n_name_bytes: u64,
    pub(crate) n_nulls: u64,
    pub(crate) n_sources: u64,
    /// The source of the last record.
    pub(crate) last: Option<u32>,
    pub(crate) waiting: Option<WaitingBytes>,
    /// The results so far, without the sources.
    pub(crate) found: Read,
}

impl Checkpoint {
    /// Reads the checkpoint of a directory, if it is valid.
    pub(crate) fn read(folder: &Path) -> Result<Option<Self>, Error> {
        let there: Option<Self> = read_json(&folder.join(CHECKPOINT))?;
        Ok(there.filter(|there| there.boot == boot()))
    }

    /// Replaces the previous checkpoint by this one.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), Error> {
        write_json(&folder.join(CHECKPOINT), self)
    }
}

/// The bytes of a record whose end is not known yet.
#[derive(Serialize, Deserialize)]
pub(crate) enum WaitingBytes {
    Document(Vec<u8>),
    Null(Vec<u8>),
}

impl From<&Waiting> for WaitingBytes {
    fn from(waiting: &Waiting) -> Self {
        match waiting {
            Waiting::Document(record) => Self::Document(bytemuck::bytes_of(record).to_vec()),
            Waiting::Null(record) => Self::Null(bytemuck::bytes_of(record).to_vec()),
        }
    }
}

impl WaitingBytes {
    /// Returns the record; none if the bytes are invalid.
    pub(crate) fn record(&self) -> Option<Waiting> {
        match self {
            Self::Document(bytes) => {
                let record: DocRecord = bytemuck::try_pod_read_unaligned(bytes).ok()?;
                Some(Waiting::Document(record))
            }
            Self::Null(bytes) => {
                let record: NullText = bytemuck::try_pod_read_unaligned(bytes).ok()?;
                Some(Waiting::Null(record))
            }
        }
    }
}

/// Determines when the next checkpoint is due.
pub(crate) struct Clock {
    due: Instant,
    is_due: bool,
}

impl Clock {
    pub(crate) fn new(interval: Duration) -> Self {
        Self {
            due: Instant::now() + interval,
            is_due: false,
        }
    }

    /// Returns whether a checkpoint is due after this many records.
    pub(crate) fn is_due(&mut self, n_rows: u64) -> bool {
        if !self.is_due && n_rows.is_multiple_of(LOOK_EVERY) {
            self.is_due = Instant::now() >= self.due;
        }
        self.is_due
    }
}

/// A growing file with a JSON value on each line.
pub(crate) struct Lines<T> {
    bytes: Writer<u8>,
    values: PhantomData<T>,
}

impl<T: Serialize + DeserializeOwned> Lines<T> {
    pub(crate) fn create(path: &Path) -> Result<Self, Error> {
        Ok(Self {
            bytes: Writer::create(path)?,
            values: PhantomData,
        })
    }

    /// Resumes after the first lines of a file. Appends their values to `values`.
    pub(crate) fn resume(path: &Path, n_lines: u64, values: &mut Vec<T>) -> Result<Self, Error> {
        let damaged = |detail: String| Error::Damaged {
            path: path.to_owned(),
            detail,
        };
        let mut file = BufReader::new(File::open(path).map_err(Error::io("open", path))?);
        let mut line = Vec::new();
        let mut n_bytes = 0;
        for _ in 0..n_lines {
            line.clear();
            n_bytes += file
                .read_until(b'\n', &mut line)
                .map_err(Error::io("read", path))? as u64;
            let value =
                serde_json::from_slice(&line).map_err(|error| damaged(error.to_string()))?;
            values.push(value);
        }
        Ok(Self {
            bytes: Writer::resume(path, n_bytes)?,
            values: PhantomData,
        })
    }

    pub(crate) fn push(&mut self, value: &T) -> Result<(), Error> {
        let mut line = Vec::new();
        serde_json::to_writer(&mut line, value).expect("own types have string keys");
        line.write_all(b"\n").expect("vectors take all bytes");
        self.bytes.extend(&line)
    }

    pub(crate) fn flush(&mut self) -> Result<(), Error> {
        self.bytes.flush()
    }
}
