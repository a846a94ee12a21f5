//! Keys of documents, and buckets of documents under equal keys, on disk.
//!
//! Keys are made while the input is read, when the sketches are at hand, and written in *runs*: the
//! keys of as many documents as memory holds, sorted table by table. The runs of a table are then
//! merged, so all tables together are read once, and sketches are not read at all. Buckets of two
//! documents or more are written down: how many documents, then who.
//!
//! Memory: a quarter of the allowance, whatever the buckets look like.

use std::fs;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use crate::column::{BUFFER_BYTES, Scan, Writer};
use crate::config::Config;
use crate::lookup::{Chosen, Flags};
use crate::record::Ordinal;
use crate::sorter::{Sorted, merge};
use crate::{Error, Progress};

/// The table and the number of documents of each bucket.
const HEADS: &str = "heads";
/// The documents of all buckets, one bucket after the other, each by ordinal.
const MEMBERS: &str = "members";

/// Documents of a run, at least.
const MIN_RUN: usize = 1 << 10;
/// Bytes in memory of each run that is merged, at least.
const MIN_BUFFER: usize = 1 << 12;

/// A key and who has it, as one number that is sorted by both.
type Entry = u64;

fn entry(key: u32, doc: Ordinal) -> Entry {
    u64::from(key) << 32 | u64::from(doc)
}

fn key_and_doc(entry: Entry) -> (u32, Ordinal) {
    ((entry >> 32) as u32, entry as Ordinal)
}

fn run_path(folder: &Path, run: u32) -> PathBuf {
    folder.join(format!("keys{run}"))
}

/// The files of the runs in a folder.
fn run_paths(folder: &Path, first: u32) -> impl Iterator<Item = PathBuf> {
    let paths = (first..).map(move |run| run_path(folder, run));
    paths.take_while(|path| path.exists())
}

/// Writes the keys of documents, each with one in every table.
pub(crate) struct KeyWriter {
    folder: PathBuf,
    /// Keys that wait to be sorted, by table.
    tables: Vec<Vec<Entry>>,
    /// Documents of a run.
    capacity: usize,
    n_runs: u32,
}

impl KeyWriter {
    /// Goes on after the first runs in a folder; later ones are removed.
    pub(crate) fn open(
        folder: &Path,
        n_tables: u32,
        n_runs: u32,
        config: &Config,
    ) -> Result<Self, Error> {
        for path in run_paths(folder, n_runs) {
            fs::remove_file(&path).map_err(Error::io("remove", &path))?;
        }
        let bytes_per_doc = u64::from(n_tables.max(1)) * size_of::<Entry>() as u64;
        Ok(Self {
            folder: folder.to_owned(),
            tables: vec![Vec::new(); n_tables as usize],
            capacity: ((config.part(4) / bytes_per_doc) as usize).max(MIN_RUN),
            n_runs,
        })
    }

    /// Takes the keys of a document that comes after all before it.
    pub(crate) fn push(&mut self, doc: Ordinal, keys: &[u32]) -> Result<(), Error> {
        for (table, key) in self.tables.iter_mut().zip(keys) {
            table.push(entry(*key, doc));
        }
        match self.tables.first() {
            Some(table) if table.len() == self.capacity => self.flush().map(drop),
            _ => Ok(()),
        }
    }

    /// Writes what waits; how many runs there are.
    pub(crate) fn flush(&mut self) -> Result<u32, Error> {
        if self.tables.first().is_none_or(Vec::is_empty) {
            return Ok(self.n_runs);
        }
        self.tables
            .par_iter_mut()
            .for_each(|table| table.sort_unstable());
        let mut out = Writer::create(&run_path(&self.folder, self.n_runs))?;
        for table in &mut self.tables {
            out.extend(table)?;
            table.clear();
        }
        out.finish()?;
        self.n_runs += 1;
        Ok(self.n_runs)
    }
}

/// Removes the runs in a folder, when nobody needs them any more.
pub(crate) fn remove_runs(folder: &Path) -> Result<(), Error> {
    // From the last, so that what is left after a kill is found again.
    let paths: Vec<PathBuf> = run_paths(folder, 0).collect();
    let mut paths = paths.iter().rev();
    paths.try_for_each(|path| fs::remove_file(path).map_err(Error::io("remove", path)))
}

/// Writes the buckets of the active documents in all tables, by the keys in `read`.
pub(crate) fn write_buckets(
    read: &Path,
    n_tables: u32,
    active: &Flags,
    config: &Config,
    folder: &Path,
    progress: &Progress,
) -> Result<(), Error> {
    let runs: Vec<PathBuf> = run_paths(read, 0).collect();
    progress.expect(u64::from(n_tables) * active.count());
    let share = config.part(4) as usize / runs.len().max(1);
    let buffer = share.clamp(MIN_BUFFER, BUFFER_BYTES);
    let mut out = BucketWriter::create(folder)?;
    for table in 0..n_tables {
        let scans = runs.iter().map(|path| {
            let part = u64::from(table)..u64::from(table) + 1;
            Scan::open_part(path, part, n_tables.into(), buffer)
        });
        let sorted = merge(scans.collect::<Result<_, Error>>()?)?;
        out.write_table(table, &mut Active { sorted, active }, progress)?;
    }
    out.finish()
}

/// The keys of active documents in order.
struct Active<'a> {
    sorted: Sorted<Entry>,
    active: &'a Flags,
}

impl Active<'_> {
    fn next(&mut self) -> Result<Option<(u32, Ordinal)>, Error> {
        while let Some(entry) = self.sorted.next()? {
            let (key, doc) = key_and_doc(entry);
            if self.active.is_set(doc as usize) {
                return Ok(Some((key, doc)));
            }
        }
        Ok(None)
    }
}

struct BucketWriter {
    heads: Writer<[u32; 2]>,
    members: Writer<Ordinal>,
}

impl BucketWriter {
    fn create(folder: &Path) -> Result<Self, Error> {
        Ok(Self {
            heads: Writer::create(&folder.join(HEADS))?,
            members: Writer::create(&folder.join(MEMBERS))?,
        })
    }

    fn write_table(
        &mut self,
        table: u32,
        keys: &mut Active<'_>,
        progress: &Progress,
    ) -> Result<(), Error> {
        let mut first = keys.next()?;
        while let Some((key, doc)) = first {
            let mut n = 1_u32;
            first = keys.next()?;
            while let Some((next_key, next)) = first
                && next_key == key
            {
                if n == 1 {
                    self.members.push(&doc)?;
                }
                self.members.push(&next)?;
                n += 1;
                first = keys.next()?;
            }
            if n > 1 {
                self.heads.push(&[table, n])?;
            }
            progress.advance(n.into())?;
        }
        Ok(())
    }

    fn finish(self) -> Result<(), Error> {
        self.heads.finish()?;
        self.members.finish().map(drop)
    }
}

/// The buckets in the order of tables and keys.
pub(crate) struct Buckets {
    path: PathBuf,
    heads: Scan<[u32; 2]>,
    members: Scan<Ordinal>,
    next: Option<[u32; 2]>,
}

impl Buckets {
    pub(crate) fn open(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(MEMBERS);
        let mut heads = Scan::open(&folder.join(HEADS))?;
        Ok(Self {
            members: Scan::open(&path)?,
            next: heads.next()?,
            heads,
            path,
        })
    }

    /// Who of `n_docs` documents is in a bucket.
    pub(crate) fn chosen(folder: &Path, n_docs: usize) -> Result<Chosen, Error> {
        let mut is_met = Flags::new(n_docs);
        let mut members = Scan::<Ordinal>::open(&folder.join(MEMBERS))?;
        while let Some(doc) = members.next()? {
            is_met.set(doc as usize);
        }
        Ok(Chosen::new(is_met))
    }

    /// Table and size of the next bucket.
    pub(crate) fn peek(&self) -> Option<(u32, usize)> {
        self.next.map(|[table, n]| (table, n as usize))
    }

    /// Goes to the next bucket, whose documents [`member`](Self::member) gives.
    pub(crate) fn step(&mut self) -> Result<(), Error> {
        self.next = self.heads.next()?;
        Ok(())
    }

    /// The next document of the bucket, which must be there.
    pub(crate) fn member(&mut self) -> Result<Ordinal, Error> {
        self.members.next()?.ok_or_else(|| Error::Damaged {
            path: self.path.clone(),
            detail: "a bucket is truncated".to_owned(),
        })
    }

    /// Documents that are still to come.
    pub(crate) fn left(&self) -> u64 {
        self.members.left()
    }

    /// Removes the files, if they are there.
    pub(crate) fn remove(folder: &Path) -> Result<(), Error> {
        for path in [HEADS, MEMBERS].map(|name| folder.join(name)) {
            if path.exists() {
                fs::remove_file(&path).map_err(Error::io("remove", &path))?;
            }
        }
        Ok(())
    }
}
