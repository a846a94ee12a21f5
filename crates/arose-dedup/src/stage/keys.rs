//! Buckets of documents under equal keys, on disk.
//!
//! One pass over the sketches gives all keys of all tables, which are sorted outside memory, a
//! table at a time. Buckets of two documents or more are written down: how many documents, then
//! who. Memory: a quarter of the allowance, whatever the buckets look like.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use crate::column::{Column, Scan, Writer};
use crate::config::Config;
use crate::lookup::{Chosen, Flags};
use crate::record::Ordinal;
use crate::scheme::Tables;
use crate::sorter::{Sorted, Sorter};
use crate::{Error, Progress};

/// The table and the number of documents of each bucket.
const HEADS: &str = "heads";
/// The documents of all buckets, one bucket after the other, each by ordinal.
const MEMBERS: &str = "members";

/// Documents whose keys are made together on one thread.
const BLOCK: usize = 1 << 12;

/// A key and who has it, as one number that is sorted by both.
type Entry = u64;

fn entry(key: u32, doc: Ordinal) -> Entry {
    u64::from(key) << 32 | u64::from(doc)
}

fn key_and_doc(entry: Entry) -> (u32, Ordinal) {
    ((entry >> 32) as u32, entry as Ordinal)
}

/// Writes the buckets of the active documents in all tables, and says who is in one.
pub(crate) fn write_buckets<T: Tables>(
    tables: &T,
    sketches: &Path,
    active: &Flags,
    config: &Config,
    folder: &Path,
    progress: &Progress,
) -> Result<Chosen, Error> {
    let n_active = active.count();
    let n_tables = u64::from(tables.n_tables());
    // A key is made and sorted, and its document compared under it, unless it is alone there.
    progress.expect(3 * n_tables * n_active);
    let allowance = config.part(4) / n_tables.max(1);
    let sorters = (0..n_tables).map(|table| {
        let base = folder.join(format!("keys{table}"));
        Sorter::<Entry>::new(&base, allowance)
    });
    let mut sorters: Vec<_> = sorters.collect();
    let sketches = Column::open(sketches, 0)?;
    let n_at_once = 2 * BLOCK * rayon::current_num_threads();
    for start in (0..active.len()).step_by(n_at_once) {
        let docs = start..active.len().min(start + n_at_once);
        for lists in entries(tables, &sketches, docs, active)? {
            for (sorter, list) in sorters.iter_mut().zip(lists) {
                sorter.extend(&list)?;
                progress.advance(list.len() as u64)?;
            }
        }
    }
    let mut out = BucketWriter::create(folder, active.len())?;
    for (table, sorter) in (0..).zip(sorters) {
        out.write_table(table, sorter.finish()?, progress)?;
    }
    out.finish()
}

/// The keys of some documents: for each block a list for each table.
fn entries<T: Tables>(
    tables: &T,
    sketches: &Column<T::Sketch>,
    docs: Range<usize>,
    active: &Flags,
) -> Result<Vec<Vec<Vec<Entry>>>, Error> {
    let starts: Vec<usize> = docs.clone().step_by(BLOCK).collect();
    let blocks = starts.into_par_iter().map(|start| {
        let n = BLOCK.min(docs.end - start);
        let mut room = vec![bytemuck::Zeroable::zeroed(); n];
        sketches.read_into(start as u64, &mut room)?;
        let docs = (start as Ordinal..).zip(&room);
        let docs: Vec<_> = docs
            .filter(|(doc, _)| active.is_set(*doc as usize))
            .collect();
        let lists = (0..tables.n_tables()).map(|table| {
            let docs = docs.iter();
            let entries = docs.map(|(doc, sketch)| entry(tables.key(table, sketch), *doc));
            entries.collect()
        });
        Ok(lists.collect())
    });
    blocks.collect()
}

struct BucketWriter {
    heads: Writer<[u32; 2]>,
    members: Writer<Ordinal>,
    is_met: Flags,
}

impl BucketWriter {
    fn create(folder: &Path, n_docs: usize) -> Result<Self, Error> {
        Ok(Self {
            heads: Writer::create(&folder.join(HEADS))?,
            members: Writer::create(&folder.join(MEMBERS))?,
            is_met: Flags::new(n_docs),
        })
    }

    fn write_table(
        &mut self,
        table: u32,
        mut sorted: Sorted<Entry>,
        progress: &Progress,
    ) -> Result<(), Error> {
        let mut first = sorted.next()?.map(key_and_doc);
        while let Some((key, doc)) = first {
            let mut n = 1_u32;
            first = sorted.next()?.map(key_and_doc);
            while let Some((next_key, next)) = first
                && next_key == key
            {
                if n == 1 {
                    self.push(doc)?;
                }
                self.push(next)?;
                n += 1;
                first = sorted.next()?.map(key_and_doc);
            }
            if n > 1 {
                self.heads.push(&[table, n])?;
            }
            progress.advance(if n > 1 { n.into() } else { 2 })?;
        }
        Ok(())
    }

    fn push(&mut self, doc: Ordinal) -> Result<(), Error> {
        self.is_met.set(doc as usize);
        self.members.push(&doc)
    }

    fn finish(self) -> Result<Chosen, Error> {
        self.heads.finish()?;
        self.members.finish()?;
        Ok(Chosen::new(self.is_met))
    }
}

/// The buckets in the order of tables and keys.
pub(crate) struct Buckets {
    paths: [PathBuf; 2],
    heads: Scan<[u32; 2]>,
    members: Scan<Ordinal>,
    next: Option<[u32; 2]>,
}

impl Buckets {
    pub(crate) fn open(folder: &Path) -> Result<Self, Error> {
        let paths = [HEADS, MEMBERS].map(|name| folder.join(name));
        let mut heads = Scan::open(&paths[0])?;
        Ok(Self {
            members: Scan::open(&paths[1])?,
            next: heads.next()?,
            heads,
            paths,
        })
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
            path: self.paths[1].clone(),
            detail: "a bucket is cut short".to_owned(),
        })
    }

    /// Documents that are still to come.
    pub(crate) fn left(&self) -> u64 {
        self.members.left()
    }

    /// Removes the files.
    pub(crate) fn remove(self) -> Result<(), Error> {
        let mut paths = self.paths.iter();
        paths.try_for_each(|path| fs::remove_file(path).map_err(Error::io("remove", path)))
    }
}
