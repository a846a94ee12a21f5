//! Third stage: pairs that share a key and whose sketches pass a test.
//!
//! Documents with equal keys in a table form a bucket ([`keys`](super::keys)). Each pair of small
//! buckets is tested once, in an order in which the sketches it needs are in memory together
//! ([`placed`](super::placed)). The sketches of the documents in larger buckets are gathered, and
//! each bucket gives a few candidates for each of its documents ([`Bucket`]). A pair that is found
//! in several tables is listed only once in the end.
//!
//! Keys take more space than all results of this stage. They are removed when the buckets are
//! written, and a run that is killed after that resumes with the buckets.
//!
//! If all pairs are requested, every pair of a bucket that passes the test is also listed, if the
//! bucket has no more than [`STREAMED`] documents. These pairs decide nothing.
//!
//! Memory: the sketches of larger buckets, from a file if they do not fit, and the sketches of the
//! current buckets. The documents of a large bucket are processed one by one.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arose::rule::Criterion;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::column::{Scan, Writer};
use crate::config::{Config, ListedPairs};
use crate::lookup::{Chosen, Flags, Lookup};
use crate::marks::MarkTables;
use crate::record::{CandidateKey, Copied, DocRecord, EMPTY, Ordinal, SHORT};
use crate::scheme::{Bands, KeyTables, Rules};
use crate::sorter::Sorter;
use crate::stage::bucket::{Bucket, N_HUGE, Tally, is_huge, n_always};
use crate::stage::checkpoint::CHECKPOINT;
use crate::stage::columns::{DOCS, VECTORS};
use crate::stage::exact::COPIES;
use crate::stage::keys::{
    Buckets, MET, remove_keys, write_buckets, write_buckets_of_sketches, write_distinct,
};
use crate::stage::placed::{self, Placed, Queue, members, places};
use crate::stage::sites::MARKS;
use crate::stage::sketches::{Gathered, SampleSketches, Sketches};
use crate::work::{boot, read_json, write_json};
use crate::{Error, Progress};

/// The pairs that decide, each once, by ordinals.
pub(crate) const CANDIDATES: &str = "candidates";
/// The directory of the pairs that are only listed.
pub(crate) const ALL: &str = "all";

/// Maximum number of pairs tested before their results are stored.
const WAVE_PAIRS: usize = 1 << 23;
/// Number of documents of buckets that are read from the file at once.
const WAVE_MEMBERS: usize = 1 << 18;
/// Buckets of more documents are processed document by document.
const STREAMED: usize = 1 << 15;
/// Buckets of more documents are listed row by row.
const LISTED_AT_ONCE: usize = 1 << 10;
/// Number of buckets that a thread processes at once.
const N_BUCKETS: usize = 64;

/// The results of the stage.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Candidates {
    pub(crate) n_pairs: u64,
    /// Number of pairs that were not listed although all were requested.
    pub(crate) n_unlisted: u64,
    pub(crate) tally: Tally,
    /// Number of documents too short to compare, and of places in lists of anchors (policy
    /// `contained`).
    #[serde(default)]
    pub(crate) n_unjudged: u64,
    #[serde(default)]
    pub(crate) n_slots: u64,
}

/// Finds the candidates among the documents in `read` and writes them to `folder`.
pub(crate) fn run(
    read: &Path,
    exact: &Path,
    sites: &Path,
    config: &Config,
    folder: &Path,
    progress: &Progress,
) -> Result<Candidates, Error> {
    let keyed = comparable(read)?;
    let active = without_copies(keyed.clone(), exact)?;
    let stage = StageInputs {
        active: &active,
        keyed: &keyed,
        config,
        folder,
        progress,
    };
    match config.policy.criterion {
        Criterion::Jaccard(threshold) => {
            let tables = Bands::new(config, threshold)?;
            stage.find_buckets(&tables, read, None)?;
            stage.search(&tables, |chosen| SampleSketches::open(read, chosen, config))
        }
        Criterion::Content(_) => {
            let tables = MarkTables::new(config)?;
            stage.search_stored(&tables, &sites.join(MARKS))
        }
        _ => {
            let tables = Rules::new(config)?;
            stage.search_stored(&tables, &read.join(VECTORS))
        }
    }
}

/// Writes an empty list of candidates to `folder`.
pub(crate) fn none(folder: &Path) -> Result<Candidates, Error> {
    Writer::<CandidateKey>::create(&folder.join(CANDIDATES))?.finish()?;
    Ok(Candidates::default())
}

/// Returns the documents that may have near duplicates: not short, and not an exact duplicate of an
/// earlier one.
pub(crate) fn active(read: &Path, exact: &Path) -> Result<Flags, Error> {
    without_copies(comparable(read)?, exact)
}

/// Returns the documents that are not short. These have keys.
fn comparable(read: &Path) -> Result<Flags, Error> {
    let mut docs = Scan::<DocRecord>::open(&read.join(DOCS))?;
    let mut comparable = Flags::new(docs.left() as usize);
    for place in 0..comparable.len() {
        if docs
            .next()?
            .is_some_and(|doc| doc.flags & (SHORT | EMPTY) == 0)
        {
            comparable.set(place);
        }
    }
    Ok(comparable)
}

/// Returns these documents without exact duplicates of earlier ones.
fn without_copies(mut active: Flags, exact: &Path) -> Result<Flags, Error> {
    let mut copies = Scan::<Copied>::open(&exact.join(COPIES))?;
    while let Some(copy) = copies.next()? {
        active.unset(copy.doc as usize);
    }
    Ok(active)
}

/// A note that the buckets are complete and the keys are no longer needed.
#[derive(Serialize, Deserialize)]
struct BucketsMade {
    /// The boot of the machine in which it was written.
    boot: String,
}

/// The inputs of the stage.
struct StageInputs<'a> {
    active: &'a Flags,
    /// The documents whose keys the first stage has written.
    keyed: &'a Flags,
    config: &'a Config,
    folder: &'a Path,
    progress: &'a Progress,
}

impl StageInputs<'_> {
    /// Finds the candidates by the sketches of all documents in a file.
    fn search_stored<T: KeyTables>(&self, tables: &T, path: &Path) -> Result<Candidates, Error> {
        self.find_buckets(tables, self.folder, Some(path))?;
        self.search(tables, |chosen| {
            Lookup::<T::Sketch>::open(path, chosen, self.config.part(4))
        })
    }

    /// Writes the buckets of the keys in a directory, unless the buckets exist. Computes the keys
    /// from the sketches if there are sketches.
    fn find_buckets<T: KeyTables>(
        &self,
        tables: &T,
        keys: &Path,
        sketches: Option<&Path>,
    ) -> Result<(), Error> {
        let path = self.folder.join(CHECKPOINT);
        let made: Option<BucketsMade> = read_json(&path)?;
        let n_tables = tables.n_tables();
        if made.is_none_or(|made| made.boot != boot()) {
            let Self {
                active,
                keyed,
                config,
                folder,
                progress,
            } = self;
            match sketches {
                None => write_buckets(keys, n_tables, [active, keyed], config, folder, progress)?,
                Some(sketches) => {
                    write_buckets_of_sketches(tables, sketches, active, config, folder, progress)?;
                }
            }
            write_json(&path, &BucketsMade { boot: boot() })?;
        }
        // From here on, a run that was killed resumes with the buckets.
        remove_keys(keys, n_tables)
    }

    fn search<T: KeyTables, S: Sketches<T::Sketch>>(
        &self,
        tables: &T,
        open: impl Fn(&Arc<Chosen>) -> Result<S, Error>,
    ) -> Result<Candidates, Error> {
        let Self {
            active,
            config,
            folder,
            progress,
            ..
        } = self;
        let mut out = CandidateSorters::new(config, folder)?;
        let large = Buckets::all_members(folder, active.len())?;
        let large = Arc::new(Chosen::new(large));
        let gathered = folder.join("gathered");
        let mut search = Search {
            tables,
            sketches: Gathered::new(&open(&large)?, &large, config.part(2), &gathered)?,
            cap: config.cap.get(),
            huge: BTreeSet::new(),
            out: &mut out,
            wave_pairs: (config.part(64) as usize).clamp(1 << 12, WAVE_PAIRS),
        };
        search.run(Buckets::open(folder)?, progress)?;
        search.sketches.remove()?;
        self.compare_met(tables, open, &mut out)?;
        // A pair that was not compared may be counted in each table in which it shares a key.
        out.tally.n_lost /= tables.n_meetings();
        out.finish(folder)
    }

    /// Tests the pairs of small buckets.
    fn compare_met<T: KeyTables, S: Sketches<T::Sketch>>(
        &self,
        tables: &T,
        open: impl Fn(&Arc<Chosen>) -> Result<S, Error>,
        out: &mut CandidateSorters,
    ) -> Result<(), Error> {
        let Self { config, folder, .. } = self;
        let pairs = folder.join(MET);
        let chosen = Arc::new(placed::chosen(&pairs, self.active.len())?);
        let sketches = open(&chosen)?;
        // Two blocks per batch, on every thread, in a quarter of the memory.
        let n_at_once = 8 * rayon::current_num_threads() as u64;
        let max_docs = config.memory / n_at_once / size_of::<T::Sketch>() as u64;
        let queue = Queue::new(&pairs, &chosen, |_| Ok(1), max_docs, config, folder)?;
        self.progress
            .expect(Scan::<CandidateKey>::open(&pairs)?.left());
        queue.judge(
            |batch| passing(tables, &sketches, batch),
            |batch, pairs| {
                out.pairs.extend(&pairs)?;
                if let Some(all) = &mut out.all {
                    all.extend(&pairs)?;
                }
                out.tally.n_tested += batch.len() as u64;
                self.progress.advance(batch.len() as u64)
            },
        )
    }
}

/// Returns the pairs that pass the test.
fn passing<T: KeyTables>(
    tables: &T,
    sketches: &impl Sketches<T::Sketch>,
    batch: &[Placed],
) -> Result<Vec<CandidateKey>, Error> {
    let docs = members(batch);
    let loaded = docs.iter().map(|&doc| sketches.sketch(doc));
    let loaded = loaded.collect::<Result<Vec<T::Sketch>, Error>>()?;
    let passes = |pair: &&Placed| {
        let [a, b] = places(&docs, pair);
        tables.accepts(&loaded[a], &loaded[b])
    };
    Ok(batch.iter().filter(passes).map(Placed::pair).collect())
}

/// Removes the temporary files of this stage.
pub(crate) fn clean(folder: &Path) -> Result<(), Error> {
    Buckets::remove(folder)
}

/// The results so far.
struct CandidateSorters {
    pairs: Sorter<CandidateKey>,
    /// The destination of all pairs, if they are requested, and the directory of the final file.
    all: Option<Sorter<CandidateKey>>,
    /// Number of pairs of buckets too large to list.
    n_unlisted: u64,
    tally: Tally,
}

impl CandidateSorters {
    fn new(config: &Config, folder: &Path) -> Result<Self, Error> {
        let sorter = |folder: &Path| Sorter::new(&folder.join("pairs"), config.part(8));
        let all = folder.join(ALL);
        let all = match config.pairs {
            ListedPairs::Verified => None,
            ListedPairs::All => {
                std::fs::create_dir_all(&all).map_err(Error::io("create", &all))?;
                Some(sorter(&all))
            }
        };
        Ok(Self {
            pairs: sorter(folder),
            all,
            n_unlisted: 0,
            tally: Tally::default(),
        })
    }

    fn finish(self, folder: &Path) -> Result<Candidates, Error> {
        if let Some(all) = self.all {
            write_candidates(all, &folder.join(ALL))?;
        }
        Ok(Candidates {
            n_pairs: write_candidates(self.pairs, folder)?,
            n_unlisted: self.n_unlisted,
            tally: self.tally,
            ..Candidates::default()
        })
    }
}

/// Writes every pair once to `folder`. Returns the number of pairs.
pub(crate) fn write_candidates(pairs: Sorter<CandidateKey>, folder: &Path) -> Result<u64, Error> {
    write_distinct(pairs, &folder.join(CANDIDATES))
}

/// Buckets of one table.
struct Wave {
    table: u32,
    members: Vec<Ordinal>,
    /// The ranges of the buckets in `members`.
    buckets: Vec<Range<usize>>,
}

/// Returns the next buckets of a table that together have about this many pairs or documents.
fn next_wave(buckets: &mut Buckets, table: u32, wave_pairs: usize) -> Result<Wave, Error> {
    let mut wave = Wave {
        table,
        members: Vec::new(),
        buckets: Vec::new(),
    };
    let mut n_pairs = 0;
    while let Some((next, n)) = buckets.peek()
        && next == table
        && n <= STREAMED
        && n_pairs < wave_pairs
        && wave.members.len() < WAVE_MEMBERS
    {
        buckets.step()?;
        let start = wave.members.len();
        for _ in 0..n {
            wave.members.push(buckets.member()?);
        }
        wave.buckets.push(start..wave.members.len());
        n_pairs += n * n / 2;
    }
    Ok(wave)
}

/// Finds the candidates in larger buckets.
struct Search<'a, T: KeyTables> {
    tables: &'a T,
    sketches: Gathered<T::Sketch>,
    cap: usize,
    /// Tables and keys of huge buckets so far.
    huge: BTreeSet<(u32, u64)>,
    out: &'a mut CandidateSorters,
    /// Pairs that are tested before their results are stored.
    wave_pairs: usize,
}

impl<T: KeyTables> Search<'_, T> {
    fn run(&mut self, mut buckets: Buckets, progress: &Progress) -> Result<(), Error> {
        let mut left = buckets.left();
        progress.expect(left);
        while let Some((table, n)) = buckets.peek() {
            if n > STREAMED {
                self.stream(table, n, &mut buckets)?;
            } else {
                self.expand(&next_wave(&mut buckets, table, self.wave_pairs)?)?;
            }
            let before = std::mem::replace(&mut left, buckets.left());
            progress.advance(before - left)?;
        }
        Ok(())
    }

    /// Finds the candidates in a list of buckets.
    fn expand(&mut self, wave: &Wave) -> Result<(), Error> {
        let chunks = wave.buckets.par_chunks(N_BUCKETS);
        let results = chunks.map(|buckets| self.expand_buckets(wave, buckets));
        let results = results.collect::<Result<Vec<_>, Error>>()?;
        for (pairs, all, tally) in results {
            self.out.pairs.extend(&pairs)?;
            if let Some(sorter) = &mut self.out.all {
                sorter.extend(&all)?;
            }
            self.out.tally.add(&tally);
        }
        if self.out.all.is_some() {
            let large = |bucket: &&Range<usize>| bucket.len() > LISTED_AT_ONCE;
            for bucket in wave.buckets.iter().filter(large) {
                self.list_large(&wave.members[bucket.clone()])?;
            }
        }
        // Only later tables need it.
        for bucket in wave
            .buckets
            .iter()
            .filter(|bucket| is_huge(bucket.len(), self.cap))
        {
            let sketch = self.sketches.get(wave.members[bucket.start])?;
            let key = self.tables.key(wave.table, &sketch);
            self.huge.insert((wave.table, key));
        }
        Ok(())
    }

    fn expand_buckets(
        &self,
        wave: &Wave,
        buckets: &[Range<usize>],
    ) -> Result<(Vec<CandidateKey>, Vec<CandidateKey>, Tally), Error> {
        let (mut pairs, mut all) = (Vec::new(), Vec::new());
        let mut room = Bucket::new(0, self.cap);
        for bucket in buckets {
            room.begin(bucket.len());
            let n_whole = self.n_whole(bucket.len());
            for (place, &doc) in wave.members[bucket.clone()].iter().enumerate() {
                let sketch = self.sketches.get(doc)?;
                if place < n_whole || self.is_in(wave.table, &sketch) {
                    room.push(self.tables, doc, sketch, &mut pairs);
                }
            }
            if self.out.all.is_some() && bucket.len() <= LISTED_AT_ONCE {
                self.push_all(&wave.members[bucket.clone()], &mut all)?;
            }
        }
        Ok((pairs, all, room.finish()))
    }

    /// Finds the candidates in a bucket whose documents are processed one by one.
    fn stream(&mut self, table: u32, n: usize, buckets: &mut Buckets) -> Result<(), Error> {
        buckets.step()?;
        let mut bucket = Bucket::new(n, self.cap);
        let n_whole = self.n_whole(n);
        let (mut pairs, mut key) = (Vec::new(), None);
        for place in 0..n {
            let doc = buckets.member()?;
            let sketch = self.sketches.get(doc)?;
            key.get_or_insert_with(|| self.tables.key(table, &sketch));
            if place < n_whole || self.is_in(table, &sketch) {
                bucket.push(self.tables, doc, sketch, &mut pairs);
                self.out.pairs.extend(&pairs)?;
                pairs.clear();
            }
        }
        let key = key.filter(|_| is_huge(n, self.cap));
        self.huge.extend(key.map(|key| (table, key)));
        self.out.tally.add(&bucket.finish());
        if self.out.all.is_some() {
            self.out.n_unlisted += n as u64 * (n as u64 - 1) / 2;
        }
        Ok(())
    }

    /// Returns the number of first documents of a bucket of `n` that always take part in it.
    fn n_whole(&self, n: usize) -> usize {
        match is_huge(n, self.cap) {
            true => n_always(self.cap),
            false => n,
        }
    }

    /// Returns whether another document takes part in a huge bucket of this table.
    fn is_in(&self, table: u32, sketch: &T::Sketch) -> bool {
        let is_earlier = |t: &u32| self.huge.contains(&(*t, self.tables.key(*t, sketch)));
        (0..table).filter(is_earlier).count() < N_HUGE
    }

    /// Adds every pair of a bucket that passes the test.
    fn push_all(&self, docs: &[Ordinal], pairs: &mut Vec<CandidateKey>) -> Result<(), Error> {
        let sketches = self.gather(docs)?;
        for row in 0..docs.len() {
            self.push_row(docs, &sketches, row, pairs);
        }
        Ok(())
    }

    /// Lists every pair of a large bucket that passes the test.
    fn list_large(&mut self, docs: &[Ordinal]) -> Result<(), Error> {
        let sketches = self.gather(docs)?;
        let n_rows = (self.wave_pairs / docs.len()).max(1);
        for start in (0..docs.len()).step_by(n_rows) {
            let rows = start..docs.len().min(start + n_rows);
            let found = rows.into_par_iter().map(|row| {
                let mut pairs = Vec::new();
                self.push_row(docs, &sketches, row, &mut pairs);
                pairs
            });
            let found: Vec<Vec<CandidateKey>> = found.collect();
            for pairs in &found {
                if let Some(all) = &mut self.out.all {
                    all.extend(pairs)?;
                }
            }
        }
        Ok(())
    }

    fn gather(&self, docs: &[Ordinal]) -> Result<Vec<T::Sketch>, Error> {
        docs.iter().map(|&doc| self.sketches.get(doc)).collect()
    }

    /// Adds the pairs of a document with those before it.
    fn push_row(
        &self,
        docs: &[Ordinal],
        sketches: &[T::Sketch],
        row: usize,
        pairs: &mut Vec<CandidateKey>,
    ) {
        let b = docs[row];
        for (&a, sketch) in docs[..row].iter().zip(sketches) {
            if self.tables.accepts(sketch, &sketches[row]) {
                pairs.push(CandidateKey { a, b });
            }
        }
    }
}
