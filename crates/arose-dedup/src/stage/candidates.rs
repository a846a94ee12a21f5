//! Third stage: pairs that share a key and pass the test of their sketches.
//!
//! Documents with equal keys in a table form a bucket ([`keys`](super::keys)). The sketches of the
//! documents that are in one, which are few among many, are gathered ([`sketches`](super::sketches)),
//! and each bucket gives a few candidates for each of its documents ([`Bucket`]). A pair that is
//! found in several tables is there once in the end.
//!
//! Keys take more space than all that this stage leaves. They are removed when the buckets are
//! written, and a run that was killed after that goes on from the buckets.
//!
//! Where all pairs are wanted, every pair of a bucket that passes the test is listed as well, if
//! the bucket has not more than [`STREAMED`] documents. These pairs decide nothing.
//!
//! Memory: the sketches gathered, from the file if they do not fit, and the sketches of the
//! buckets at work; the documents of a large bucket come one by one.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arose::rule::Criterion;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::column::{Scan, Writer};
use crate::config::{Config, ListedPairs};
use crate::docs::DocScan;
use crate::lookup::{Chosen, Flags};
use crate::record::{Copied, EMPTY, Ordinal, PairKey, SHORT};
use crate::scheme::{Bands, Rules, Tables};
use crate::sorter::Sorter;
use crate::stage::bucket::{Bucket, N_HUGE, Tally, is_huge, is_small, n_always};
use crate::stage::checkpoint::CHECKPOINT;
use crate::stage::exact::COPIES;
use crate::stage::keys::{Buckets, remove_runs, write_buckets};
use crate::stage::meetings::Meetings;
use crate::stage::sketches::{Gathered, gather_samples, gather_vectors};
use crate::work::{boot, read_json, write_json};
use crate::{Error, Progress};

/// The pairs that decide, each once, by ordinals.
pub(crate) const CANDIDATES: &str = "candidates";
/// The folder of those that are listed only.
pub(crate) const ALL: &str = "all";

/// Pairs tested before their results are put away, at most.
const WAVE_PAIRS: usize = 1 << 23;
/// Documents of buckets that are taken from the file at once.
const WAVE_MEMBERS: usize = 1 << 18;
/// Buckets of more documents are taken document by document.
const STREAMED: usize = 1 << 15;
/// Buckets of more documents are listed row by row.
const LISTED_AT_ONCE: usize = 1 << 10;
/// Buckets that a thread takes at once.
const N_BUCKETS: usize = 64;

/// What the stage found.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Candidates {
    pub(crate) n_pairs: u64,
    /// Pairs that were not listed although all are wanted.
    pub(crate) n_unlisted: u64,
    pub(crate) tally: Tally,
}

/// Finds the candidates among the documents in `read` and leaves them in `folder`.
pub(crate) fn run(
    read: &Path,
    exact: &Path,
    config: &Config,
    folder: &Path,
    progress: &Progress,
) -> Result<Candidates, Error> {
    let gathered = folder.join("gathered");
    match config.policy.criterion {
        Criterion::Jaccard(threshold) => {
            let tables = Bands::new(config, threshold)?;
            let chosen = find_buckets(&tables, [read, exact], config, folder, progress)?;
            let sketches = gather_samples(read, &chosen, config, config.part(2), &gathered)?;
            search(&tables, sketches, config, folder, progress)
        }
        _ => {
            let tables = Rules::new(config)?;
            let chosen = find_buckets(&tables, [read, exact], config, folder, progress)?;
            let sketches = match tables.n_tables() {
                0 => Gathered::none(),
                _ => gather_vectors(read, &chosen, config.part(2), &gathered)?,
            };
            search(&tables, sketches, config, folder, progress)
        }
    }
}

/// Says that the buckets are there and the keys are not needed any more.
#[derive(Serialize, Deserialize)]
struct BucketsMade {
    /// Which start of the machine it was written in.
    boot: String,
}

/// Writes the buckets, unless they are there; who is in one.
fn find_buckets(
    tables: &impl Tables,
    [read, exact]: [&Path; 2],
    config: &Config,
    folder: &Path,
    progress: &Progress,
) -> Result<Arc<Chosen>, Error> {
    let active = active(read, exact)?;
    let path = folder.join(CHECKPOINT);
    let made: Option<BucketsMade> = read_json(&path)?;
    if made.is_none_or(|made| made.boot != boot()) {
        write_buckets(read, tables.n_tables(), &active, config, folder, progress)?;
        write_json(&path, &BucketsMade { boot: boot() })?;
    }
    // From here on a run that was killed begins with the buckets, so they stay until the stage is
    // done (see `clean`).
    remove_runs(read)?;
    Ok(Arc::new(Buckets::chosen(folder, active.len())?))
}

/// The documents that may have near duplicates: not short, not a copy of an earlier one.
fn active(read: &Path, exact: &Path) -> Result<Flags, Error> {
    let mut docs = DocScan::open(read)?;
    let mut active = Flags::new(docs.left() as usize);
    for place in 0..active.len() {
        if docs
            .next()?
            .is_some_and(|doc| doc.flags & (SHORT | EMPTY) == 0)
        {
            active.set(place);
        }
    }
    let mut copies = Scan::<Copied>::open(&exact.join(COPIES))?;
    while let Some(copy) = copies.next()? {
        active.unset(copy.doc as usize);
    }
    Ok(active)
}

fn search<T: Tables>(
    tables: &T,
    sketches: Gathered<T::Sketch>,
    config: &Config,
    folder: &Path,
    progress: &Progress,
) -> Result<Candidates, Error> {
    let mut buckets = Buckets::open(folder)?;
    progress.expect(buckets.left());
    let wave_pairs = (config.part(64) as usize).clamp(1 << 12, WAVE_PAIRS);
    let mut search = Search {
        tables,
        sketches,
        cap: config.cap.get(),
        huge: BTreeSet::new(),
        meetings: Meetings::new(folder, config),
        out: PairSorter::new(folder, config),
        all: None,
        wave_pairs,
        n_unlisted: 0,
        tally: Tally::default(),
    };
    if config.pairs == ListedPairs::All {
        let folder = folder.join(ALL);
        std::fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
        search.all = Some(PairSorter::new(&folder, config));
    }
    let mut left = buckets.left();
    while let Some((table, n)) = buckets.peek() {
        if n > STREAMED {
            search.stream(table, n, &mut buckets)?;
        } else {
            search.expand(&next_wave(&mut buckets, table, search.wave_pairs)?)?;
        }
        let before = std::mem::replace(&mut left, buckets.left());
        progress.advance(before - left)?;
    }
    let Search {
        sketches,
        meetings,
        mut out,
        mut all,
        mut tally,
        n_unlisted,
        ..
    } = search;
    meetings.test(tables, &sketches, |pairs| {
        out.sorter.extend(pairs)?;
        let all = all.as_mut();
        all.map_or(Ok(()), |all| all.sorter.extend(pairs))
    })?;
    all.map_or(Ok(0), PairSorter::finish)?;
    // A pair that was not compared may be counted in each table that it meets in.
    tally.n_lost /= tables.n_meetings();
    let found = Candidates {
        n_pairs: out.finish()?,
        n_unlisted,
        tally,
    };
    sketches.remove()?;
    Ok(found)
}

/// Removes what only this stage needed, when it is done.
pub(crate) fn clean(folder: &Path) -> Result<(), Error> {
    Buckets::remove(folder)
}

/// Candidates on their way to a file.
struct PairSorter {
    folder: PathBuf,
    sorter: Sorter<PairKey>,
}

impl PairSorter {
    fn new(folder: &Path, config: &Config) -> Self {
        let sorter = Sorter::new(&folder.join("pairs"), config.part(8));
        Self {
            folder: folder.to_owned(),
            sorter,
        }
    }

    /// Writes every pair once; how many there are.
    fn finish(self) -> Result<u64, Error> {
        write_candidates(self.sorter, &self.folder)
    }
}

/// Writes every pair once into `folder`; how many there are.
pub(crate) fn write_candidates(pairs: Sorter<PairKey>, folder: &Path) -> Result<u64, Error> {
    let mut pairs = pairs.finish()?;
    let mut out = Writer::create(&folder.join(CANDIDATES))?;
    let mut last = None;
    while let Some(pair) = pairs.next()? {
        if last.replace(pair) != Some(pair) {
            out.push(&pair)?;
        }
    }
    out.finish()
}

/// Buckets of one table.
struct Wave {
    table: u32,
    members: Vec<Ordinal>,
    /// Where the buckets are in `members`.
    buckets: Vec<Range<usize>>,
}

/// The next buckets of a table that together have about so many pairs or documents.
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

/// What some buckets gave.
struct Expanded {
    /// The pairs of small buckets, which are not tested yet.
    met: Vec<PairKey>,
    pairs: Vec<PairKey>,
    /// Pairs that are listed only.
    all: Vec<PairKey>,
    tally: Tally,
}

/// Adds all pairs of a bucket.
fn push_met(docs: &[Ordinal], met: &mut Vec<PairKey>) {
    for (row, &b) in docs.iter().enumerate() {
        met.extend(docs[..row].iter().map(|&a| PairKey { a, b }));
    }
}

struct Search<'a, T: Tables> {
    tables: &'a T,
    sketches: Gathered<T::Sketch>,
    cap: usize,
    /// Tables and keys of huge buckets so far.
    huge: BTreeSet<(u32, u32)>,
    /// Pairs of small buckets.
    meetings: Meetings,
    out: PairSorter,
    /// Where all pairs go, if they are wanted.
    all: Option<PairSorter>,
    /// Pairs that are tested before their results are put away.
    wave_pairs: usize,
    /// Pairs of buckets too large to list.
    n_unlisted: u64,
    tally: Tally,
}

impl<T: Tables> Search<'_, T> {
    /// Finds the candidates in some buckets.
    fn expand(&mut self, wave: &Wave) -> Result<(), Error> {
        let chunks = wave.buckets.par_chunks(N_BUCKETS);
        let results = chunks.map(|buckets| self.expand_buckets(wave, buckets));
        let results = results.collect::<Result<Vec<_>, Error>>()?;
        for Expanded {
            met,
            pairs,
            all,
            tally,
        } in results
        {
            self.meetings.extend(&met)?;
            self.out.sorter.extend(&pairs)?;
            if let Some(sorter) = &mut self.all {
                sorter.sorter.extend(&all)?;
            }
            self.tally.add(&tally);
        }
        if self.all.is_some() {
            let large = |bucket: &&Range<usize>| bucket.len() > LISTED_AT_ONCE;
            for bucket in wave.buckets.iter().filter(large) {
                self.list_large(&wave.members[bucket.clone()])?;
            }
        }
        // Only later tables ask.
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

    fn expand_buckets(&self, wave: &Wave, buckets: &[Range<usize>]) -> Result<Expanded, Error> {
        let (mut met, mut pairs, mut all) = (Vec::new(), Vec::new(), Vec::new());
        let mut room = Bucket::new(0, self.cap);
        for bucket in buckets {
            if is_small(bucket.len(), self.cap) {
                push_met(&wave.members[bucket.clone()], &mut met);
                room.count(bucket.len());
                continue;
            }
            room.begin(bucket.len());
            let n_whole = self.n_whole(bucket.len());
            for (place, &doc) in wave.members[bucket.clone()].iter().enumerate() {
                let sketch = self.sketches.get(doc)?;
                if place < n_whole || self.is_in(wave.table, &sketch) {
                    room.push(self.tables, doc, sketch, &mut pairs);
                }
            }
            if self.all.is_some() && bucket.len() <= LISTED_AT_ONCE {
                self.push_all(&wave.members[bucket.clone()], &mut all)?;
            }
        }
        Ok(Expanded {
            met,
            pairs,
            all,
            tally: room.finish(),
        })
    }

    /// Finds the candidates in a bucket whose documents come one by one.
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
                self.out.sorter.extend(&pairs)?;
                pairs.clear();
            }
        }
        let key = key.filter(|_| is_huge(n, self.cap));
        self.huge.extend(key.map(|key| (table, key)));
        self.tally.add(&bucket.finish());
        if self.all.is_some() {
            self.n_unlisted += n as u64 * (n as u64 - 1) / 2;
        }
        Ok(())
    }

    /// The first documents of a bucket of `n` that take part in it whatever they did before.
    fn n_whole(&self, n: usize) -> usize {
        match is_huge(n, self.cap) {
            true => n_always(self.cap),
            false => n,
        }
    }

    /// Whether another document takes part in a huge bucket of this table.
    fn is_in(&self, table: u32, sketch: &T::Sketch) -> bool {
        let is_earlier = |t: &u32| self.huge.contains(&(*t, self.tables.key(*t, sketch)));
        (0..table).filter(is_earlier).count() < N_HUGE
    }

    /// Adds every pair of a bucket that passes the test.
    fn push_all(&self, docs: &[Ordinal], pairs: &mut Vec<PairKey>) -> Result<(), Error> {
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
            let found: Vec<Vec<PairKey>> = found.collect();
            for pairs in &found {
                if let Some(all) = &mut self.all {
                    all.sorter.extend(pairs)?;
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
        pairs: &mut Vec<PairKey>,
    ) {
        let b = docs[row];
        for (&a, sketch) in docs[..row].iter().zip(sketches) {
            if self.tables.accepts(sketch, &sketches[row]) {
                pairs.push(PairKey { a, b });
            }
        }
    }
}
