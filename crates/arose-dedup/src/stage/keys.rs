//! Keys of documents on disk, and the buckets of documents that share a key.
//!
//! The keys of a table are a column of five bytes per document with a sketch, in the order of the
//! documents. Keys that are computed from stored sketches are there for a few tables at a time. The
//! columns are read one after the other. The documents of a table are sorted by key,
//! on disk if they do not fit into memory, and those with equal keys form a bucket. Buckets of a
//! few documents are written as pairs, each once even if it is in several tables. Larger buckets
//! are written as a number of documents, followed by the documents. Memory: a quarter of the
//! allowance, and an eighth for the pairs, whatever the size of the buckets. Disk: eight bytes per
//! document in addition to the columns, and eight per pair.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;

use crate::background::Background;
use crate::column::{Column, Scan, Writer};
use crate::config::Config;
use crate::lookup::Flags;
use crate::record::{CandidateKey, Ordinal};
use crate::scheme::{KEY_BITS, KeyTables};
use crate::sorter::Sorter;
use crate::{Error, Progress};

/// Pairs of documents in small buckets, each once.
pub(crate) const MET: &str = "met";
/// The table and the number of documents of each larger bucket.
const HEADS: &str = "heads";
/// The documents of those buckets, one bucket after the other, each by ordinal.
const MEMBERS: &str = "members";

/// Number of documents whose keys are computed or written together.
const BLOCK: usize = 1 << 12;
/// Number of tables whose keys are computed from sketches at once. All sketches are read for each
/// group of tables.
const N_TOGETHER: u32 = 16;
/// Maximum number of documents of a bucket that is written as pairs, unless the cap is less.
const N_PAIRED: usize = 8;

/// A key in its stored form.
pub(crate) type Key = [u8; KEY_BITS as usize / 8];

/// Returns the bytes of a key.
pub(crate) fn packed(key: u64) -> Key {
    let mut bytes = Key::default();
    bytes.copy_from_slice(&key.to_le_bytes()[..size_of::<Key>()]);
    bytes
}

fn unpacked(bytes: Key) -> u64 {
    let mut key = [0; 8];
    key[..size_of::<Key>()].copy_from_slice(&bytes);
    u64::from_le_bytes(key)
}

fn column_path(folder: &Path, table: u32) -> PathBuf {
    folder.join(format!("keys{table}"))
}

/// Writes the keys of documents, one document after the other.
pub(crate) struct KeyWriter {
    columns: Vec<Writer<Key>>,
    /// The keys of a batch of documents, by document.
    waiting: Vec<Key>,
    column: Vec<Key>,
}

impl KeyWriter {
    /// Creates the columns, which the thread writes, if there is one.
    pub(crate) fn create(
        background: Option<&Arc<Background>>,
        folder: &Path,
        tables: Range<u32>,
    ) -> Result<Self, Error> {
        let create = |table| Writer::create_on(background, &column_path(folder, table));
        let columns = tables.map(create);
        Ok(Self::of(columns.collect::<Result<_, Error>>()?))
    }

    /// Resumes after the keys of this many documents.
    pub(crate) fn resume(
        background: Option<&Arc<Background>>,
        folder: &Path,
        n_tables: u32,
        n_keyed: u64,
    ) -> Result<Self, Error> {
        let resume = |table| Writer::resume_on(background, &column_path(folder, table), n_keyed);
        let columns = (0..n_tables).map(resume);
        Ok(Self::of(columns.collect::<Result<_, Error>>()?))
    }

    fn of(columns: Vec<Writer<Key>>) -> Self {
        Self {
            columns,
            waiting: Vec::new(),
            column: Vec::new(),
        }
    }

    /// Returns the number of documents whose keys were written.
    pub(crate) fn len(&self) -> u64 {
        let n_waiting = self.waiting.len() / self.columns.len().max(1);
        self.columns.first().map_or(0, Writer::len) + n_waiting as u64
    }

    /// Writes the keys of the next document in all tables; nothing if it has none.
    pub(crate) fn push(&mut self, keys: &[Key]) -> Result<(), Error> {
        self.waiting.extend_from_slice(keys);
        match self.waiting.len() >= BLOCK * self.columns.len() {
            true => self.write(),
            false => Ok(()),
        }
    }

    fn write(&mut self) -> Result<(), Error> {
        let n_tables = self.columns.len();
        for (table, writer) in self.columns.iter_mut().enumerate() {
            self.column.clear();
            let keys = self.waiting.iter().skip(table).step_by(n_tables);
            self.column.extend(keys);
            writer.extend(&self.column)?;
        }
        self.waiting.clear();
        Ok(())
    }

    /// Passes all data to the operating system, so that it survives this process.
    pub(crate) fn flush(&mut self) -> Result<(), Error> {
        self.write()?;
        self.columns.iter_mut().try_for_each(Writer::flush)
    }
}

/// Writes the keys of the active documents in these tables to `folder`, computed from the sketches
/// of all documents.
fn write_keys<T: KeyTables>(
    tables: &T,
    group: Range<u32>,
    sketches: &Column<T::Sketch>,
    active: &Flags,
    folder: &Path,
) -> Result<(), Error> {
    let mut out = KeyWriter::create(Background::start().as_ref(), folder, group.clone())?;
    let n_docs = active.len();
    let n_at_once = 2 * BLOCK * rayon::current_num_threads();
    for start in (0..n_docs).step_by(n_at_once) {
        let end = n_docs.min(start + n_at_once);
        let starts: Vec<usize> = (start..end).step_by(BLOCK).collect();
        let blocks = starts.into_par_iter().map(|start| {
            let mut room = vec![bytemuck::Zeroable::zeroed(); BLOCK.min(end - start)];
            sketches.read_into(start as u64, &mut room)?;
            let numbered = (start..).zip(&room);
            let active = numbered.filter(|(doc, _)| active.is_set(*doc));
            let keys = active.flat_map(|(_, sketch)| {
                let group = group.clone();
                group.map(move |table| packed(tables.key(table, sketch)))
            });
            Ok(keys.collect())
        });
        for keys in blocks.collect::<Result<Vec<Vec<Key>>, Error>>()? {
            let docs = keys.chunks_exact(group.len());
            docs.into_iter().try_for_each(|keys| out.push(keys))?;
        }
    }
    out.flush()
}

/// Removes the keys in `folder`.
pub(crate) fn remove_keys(folder: &Path, n_tables: u32) -> Result<(), Error> {
    (0..n_tables).try_for_each(|table| remove_if_there(&column_path(folder, table)))
}

/// Writes the buckets of the active documents to `folder`, by the keys in another directory, which
/// contains those of all documents in `keyed`. Active documents have keys.
pub(crate) fn write_buckets(
    keys: &Path,
    n_tables: u32,
    [active, keyed]: [&Flags; 2],
    config: &Config,
    folder: &Path,
    progress: &Progress,
) -> Result<(), Error> {
    progress.expect(u64::from(n_tables) * active.count());
    let mut out = BucketWriter::create(folder, config)?;
    for table in 0..n_tables {
        let path = column_path(keys, table);
        out.write_table(table, &path, [active, keyed], config, progress)?;
    }
    out.finish(folder)
}

/// Writes the buckets of the active documents to `folder`, by the sketches of all documents in a
/// file. The keys of a few tables at a time are on disk.
pub(crate) fn write_buckets_of_sketches<T: KeyTables>(
    tables: &T,
    sketches: &Path,
    active: &Flags,
    config: &Config,
    folder: &Path,
    progress: &Progress,
) -> Result<(), Error> {
    let n_tables = tables.n_tables();
    progress.expect(u64::from(n_tables) * active.count());
    let sketches = Column::<T::Sketch>::open(sketches, 0)?;
    let mut out = BucketWriter::create(folder, config)?;
    for start in (0..n_tables).step_by(N_TOGETHER as usize) {
        let group = start..n_tables.min(start + N_TOGETHER);
        write_keys(tables, group.clone(), &sketches, active, folder)?;
        for table in group {
            let path = column_path(folder, table);
            out.write_table(table, &path, [active; 2], config, progress)?;
            remove_if_there(&path)?;
        }
    }
    out.finish(folder)
}

/// How a key and a document are combined into one number, which sorts by both. If there is not
/// enough space, the higher bits of the key are dropped.
#[derive(Clone, Copy)]
struct Packing {
    doc_bits: u32,
}

impl Packing {
    fn of(n_docs: usize) -> Self {
        let doc_bits = usize::BITS - n_docs.leading_zeros();
        Self { doc_bits }
    }

    fn entry(self, key: u64, doc: Ordinal) -> u64 {
        key << self.doc_bits | u64::from(doc)
    }

    fn key_and_doc(self, entry: u64) -> (u64, Ordinal) {
        let doc = entry & ((1 << self.doc_bits) - 1);
        (entry >> self.doc_bits, doc as Ordinal)
    }
}

struct BucketWriter {
    folder: PathBuf,
    met: Sorter<CandidateKey>,
    heads: Writer<[u32; 2]>,
    members: Writer<Ordinal>,
    /// The documents of the current bucket, until there are too many.
    bucket: Vec<Ordinal>,
    /// Maximum number of documents of a bucket that is written as pairs.
    n_paired: usize,
}

impl BucketWriter {
    fn create(folder: &Path, config: &Config) -> Result<Self, Error> {
        Ok(Self {
            folder: folder.to_owned(),
            met: Sorter::new(&folder.join("meetings"), config.part(8)),
            heads: Writer::create(&folder.join(HEADS))?,
            members: Writer::create(&folder.join(MEMBERS))?,
            bucket: Vec::with_capacity(N_PAIRED),
            n_paired: N_PAIRED.min(config.cap.get()),
        })
    }

    fn write_table(
        &mut self,
        table: u32,
        path: &Path,
        [active, keyed]: [&Flags; 2],
        config: &Config,
        progress: &Progress,
    ) -> Result<(), Error> {
        let packing = Packing::of(active.len());
        let mut sorter = Sorter::new(&self.folder.join("keys"), config.part(4));
        let mut keys = Scan::<Key>::open(path)?;
        let (n_there, n_keyed) = (keys.left(), keyed.count());
        if n_there != n_keyed {
            return Err(Error::Damaged {
                path: path.to_owned(),
                detail: format!("it has the keys of {n_there} documents, expected {n_keyed}"),
            });
        }
        for doc in keyed.iter() {
            if let Some(key) = keys.next()?
                && active.is_set(doc as usize)
            {
                sorter.push(packing.entry(unpacked(key), doc))?;
            }
        }
        let mut sorted = sorter.finish()?;
        let mut next = sorted.next()?.map(|entry| packing.key_and_doc(entry));
        while let Some((key, first)) = next {
            let mut n = 1_u32;
            self.bucket.clear();
            self.bucket.push(first);
            next = sorted.next()?.map(|entry| packing.key_and_doc(entry));
            while let Some((next_key, doc)) = next
                && next_key == key
            {
                if self.bucket.len() == self.n_paired {
                    self.members.extend(&self.bucket)?;
                    self.bucket.clear();
                }
                self.bucket.push(doc);
                n += 1;
                next = sorted.next()?.map(|entry| packing.key_and_doc(entry));
            }
            self.end_bucket(table, n)?;
            progress.advance(n.into())?;
        }
        Ok(())
    }

    fn end_bucket(&mut self, table: u32, n: u32) -> Result<(), Error> {
        if n as usize > self.n_paired {
            self.members.extend(&self.bucket)?;
            return self.heads.push(&[table, n]);
        }
        for (row, &b) in self.bucket.iter().enumerate() {
            for &a in &self.bucket[..row] {
                self.met.push(CandidateKey { a, b })?;
            }
        }
        Ok(())
    }

    fn finish(self, folder: &Path) -> Result<(), Error> {
        self.heads.finish()?;
        self.members.finish()?;
        write_distinct(self.met, &folder.join(MET)).map(drop)
    }
}

/// Writes every pair once. Returns the number of pairs.
pub(crate) fn write_distinct(pairs: Sorter<CandidateKey>, path: &Path) -> Result<u64, Error> {
    let mut pairs = pairs.finish()?;
    let mut out = Writer::create(path)?;
    let mut last = None;
    while let Some(pair) = pairs.next()? {
        if last.replace(pair) != Some(pair) {
            out.push(&pair)?;
        }
    }
    out.finish()
}

/// A reader of the larger buckets, in the order of tables and keys.
pub(crate) struct Buckets {
    path: PathBuf,
    heads: Scan<[u32; 2]>,
    members: Scan<Ordinal>,
    next: Option<[u32; 2]>,
}

impl Buckets {
    pub(crate) fn open(folder: &Path) -> Result<Self, Error> {
        let [heads, members] = [HEADS, MEMBERS].map(|name| folder.join(name));
        let mut heads = Scan::open(&heads)?;
        Ok(Self {
            members: Scan::open(&members)?,
            next: heads.next()?,
            heads,
            path: members,
        })
    }

    /// Opens the buckets in `folder`, of `n_docs` documents.
    pub(crate) fn all_members(folder: &Path, n_docs: usize) -> Result<Flags, Error> {
        let mut members = Scan::<Ordinal>::open(&folder.join(MEMBERS))?;
        let mut is_met = Flags::new(n_docs);
        while let Some(doc) = members.next()? {
            is_met.set(doc as usize);
        }
        Ok(is_met)
    }

    /// Returns table and size of the next bucket.
    pub(crate) fn peek(&self) -> Option<(u32, usize)> {
        self.next.map(|[table, n]| (table, n as usize))
    }

    /// Moves to the next bucket, whose documents [`member`](Self::member) returns.
    pub(crate) fn step(&mut self) -> Result<(), Error> {
        self.next = self.heads.next()?;
        Ok(())
    }

    /// Returns the next document of the bucket, which must exist.
    pub(crate) fn member(&mut self) -> Result<Ordinal, Error> {
        self.members.next()?.ok_or_else(|| Error::Damaged {
            path: self.path.clone(),
            detail: "a bucket is incomplete".to_owned(),
        })
    }

    /// Returns the number of remaining documents.
    pub(crate) fn left(&self) -> u64 {
        self.members.left()
    }

    /// Removes the files in `folder`, if they exist.
    pub(crate) fn remove(folder: &Path) -> Result<(), Error> {
        let mut names = [HEADS, MEMBERS, MET].into_iter();
        names.try_for_each(|name| remove_if_there(&folder.join(name)))
    }
}

fn remove_if_there(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io("remove", path)(error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arose::mix::SplitMix;
    use std::collections::{BTreeMap, BTreeSet};

    const N_TABLES: u32 = 3;

    /// The keys of some documents in all tables. Some keys are common, most are rare, and some
    /// differ only in their highest bits.
    fn keys(n_docs: u32) -> Vec<Vec<Key>> {
        let mut random = SplitMix::new(8);
        let mut key = || match random.below(4) {
            0 => random.below(4),
            1 => (1 << 39) | random.below(40),
            _ => random.below(u64::from(n_docs)),
        };
        (0..n_docs)
            .map(|_| (0..N_TABLES).map(|_| packed(key())).collect())
            .collect()
    }

    type Found = (BTreeSet<CandidateKey>, Vec<(u32, Vec<Ordinal>)>);

    /// Pairs of small buckets, and larger buckets, computed the simple way.
    fn expected(keys: &[Vec<Key>], active: &Flags) -> Found {
        let (mut met, mut larger) = (BTreeSet::new(), Vec::new());
        for table in 0..N_TABLES {
            let mut buckets: BTreeMap<u64, Vec<Ordinal>> = BTreeMap::new();
            for (doc, keys) in (0..).zip(keys) {
                if active.is_set(doc as usize) {
                    let key = unpacked(keys[table as usize]);
                    buckets.entry(key).or_default().push(doc);
                }
            }
            for docs in buckets.into_values() {
                match docs.len() {
                    0..=N_PAIRED => {
                        let pairs = docs.iter().enumerate();
                        met.extend(pairs.flat_map(|(row, &b)| {
                            docs[..row].iter().map(move |&a| CandidateKey { a, b })
                        }));
                    }
                    _ => larger.push((table, docs)),
                }
            }
        }
        (met, larger)
    }

    fn found(folder: &Path) -> Found {
        let mut scan = Scan::<CandidateKey>::open(&folder.join(MET)).unwrap();
        let pairs: Vec<_> = std::iter::from_fn(|| scan.next().unwrap()).collect();
        let met: BTreeSet<_> = pairs.iter().copied().collect();
        assert_eq!(met.len(), pairs.len(), "a pair is there twice");
        let mut buckets = Buckets::open(folder).unwrap();
        let mut larger = Vec::new();
        while let Some((table, n)) = buckets.peek() {
            buckets.step().unwrap();
            let docs = (0..n).map(|_| buckets.member().unwrap()).collect();
            larger.push((table, docs));
        }
        (met, larger)
    }

    /// Buckets consist of documents with equal keys, in memory and on disk, also if some documents
    /// have no keys and writing the keys was interrupted.
    #[test]
    fn issue_20_buckets_are_those_of_equal_keys() {
        let mut keys = keys(20_000);
        let mut active = Flags::all(keys.len());
        active.unset(7);
        active.unset(19_999);
        let mut keyed = Flags::all(keys.len());
        for doc in [0, 8, 9, 70, 8_500, 19_998] {
            keys[doc].clear();
            active.unset(doc);
            keyed.unset(doc);
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let mut writer = KeyWriter::create(None, path, 0..N_TABLES).unwrap();
        keys[..9_000]
            .iter()
            .for_each(|keys| writer.push(keys).unwrap());
        writer.flush().unwrap();
        drop(writer);
        let n_keyed = keys[..8_001].iter().filter(|keys| !keys.is_empty()).count() as u64;
        let mut writer = KeyWriter::resume(None, path, N_TABLES, n_keyed).unwrap();
        assert_eq!(writer.len(), n_keyed);
        keys[8_001..]
            .iter()
            .for_each(|keys| writer.push(keys).unwrap());
        assert_eq!(writer.len(), keyed.count());
        writer.flush().unwrap();
        assert_eq!(writer.len(), keyed.count());
        let expected = expected(&keys, &active);
        assert!(expected.0.len() > 1000 && expected.1.len() > 3);
        for memory in [1, 1 << 30] {
            let config = Config {
                memory,
                ..Config::default()
            };
            let progress = Progress::default();
            let flags = [&active, &keyed];
            write_buckets(path, N_TABLES, flags, &config, path, &progress).unwrap();
            assert!(found(path) == expected);
        }
        // Keys of other documents are not taken for these.
        keyed.set(0);
        let flags = [&active, &keyed];
        let (config, progress) = (Config::default(), Progress::default());
        let failed = write_buckets(path, N_TABLES, flags, &config, path, &progress);
        assert!(matches!(failed, Err(Error::Damaged { .. })));
        remove_keys(path, N_TABLES).unwrap();
        Buckets::remove(path).unwrap();
        assert_eq!(fs::read_dir(path).unwrap().count(), 0);
    }

    /// With more documents than fit beside a complete key, the higher bits of keys are ignored.
    #[test]
    fn keys_give_way_to_documents() {
        for (n_docs, doc_bits) in [(1, 1), (100_000_000, 27), (u32::MAX as usize, 32)] {
            let packing = Packing::of(n_docs);
            assert_eq!(packing.doc_bits, doc_bits);
            let doc = (n_docs - 1) as Ordinal;
            let key = (1 << KEY_BITS) - 5;
            let kept = key & (u64::MAX >> doc_bits);
            assert_eq!(packing.key_and_doc(packing.entry(key, doc)), (kept, doc));
        }
    }
}
