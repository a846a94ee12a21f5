//! Third stage: pairs that share a key and pass the test of their sketches.
//!
//! One table at a time: every document's key is taken from its sketch and sorted, and documents
//! with equal keys form a run. Inside a run all pairs are tested, each in the first table in which
//! it meets only, so nothing is found twice.
//!
//! A run longer than the cap is not expanded: `n` documents under one key would be `n^2 / 2` pairs.
//! Its members are compared with the run's *leaders*, those that are unlike all leaders before
//! them, up to [`N_LEADERS`], and with the [`N_NEIGHBOURS`] members before them, of which the
//! [`N_TIES`] closest become candidates. So every document still
//! meets some that it is like, at a cost linear in the run, and the pairs that were not tested are
//! counted. A pair that met in such a run is looked for once more in its later tables.
//!
//! Memory: one table, in ranges of keys if it does not fit, and the sketches, from the file if they
//! do not.

use std::cmp::Reverse;
use std::collections::{BTreeSet, VecDeque};
use std::path::Path;

use arose::rule::Criterion;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::column::{Column, Scan, Writer};
use crate::config::Config;
use crate::record::{Copied, DocRecord, EMPTY, Ordinal, PairKey, SHORT};
use crate::scheme::{Bands, Rules, Tables};
use crate::sorter::Sorter;
use crate::stage::exact::COPIES;
use crate::stage::read::{DOCS, SAMPLES, VECTORS};
use crate::{Error, Progress};

/// The pairs, each once, by ordinals.
pub(crate) const CANDIDATES: &str = "candidates";

/// Members of a long run that all its members are compared with.
pub(crate) const N_LEADERS: usize = 16;
/// Members of a long run that the next one is compared with.
pub(crate) const N_NEIGHBOURS: usize = 16;
/// Candidates that a member of a long run gets from its leaders, and from its neighbours.
const N_TIES: usize = 3;

/// Pairs tested before their results are put away.
const WAVE_PAIRS: u64 = 1 << 26;

/// What the stage found.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Candidates {
    pub(crate) n_pairs: u64,
    /// Pairs whose sketches were compared.
    pub(crate) n_tested: u64,
    /// Runs longer than the cap.
    pub(crate) long_runs: u64,
    /// Members of the longest of them.
    pub(crate) longest_run: u64,
    /// Members of long runs, each as often as it is in one.
    pub(crate) long_members: u64,
    /// Pairs inside long runs that were not tested there.
    pub(crate) untested: u64,
}

/// Finds the candidates among the documents in `read` and leaves them in `folder`.
pub(crate) fn run(
    read: &Path,
    exact: &Path,
    config: &Config,
    folder: &Path,
    progress: &Progress,
) -> Result<Candidates, Error> {
    let active = active(read, exact)?;
    let out = Sorter::new(&folder.join("pairs"), config.part(4));
    let (pairs, mut found) = match config.policy.criterion {
        Criterion::Jaccard(threshold) => {
            let tables = Bands::new(config, threshold)?;
            let sketches = Column::open(&read.join(SAMPLES), config.part(2))?;
            search(&tables, &sketches, &active, config, out, progress)?
        }
        _ => {
            let tables = Rules::new(config)?;
            let sketches = Column::open(&read.join(VECTORS), config.part(2))?;
            search(&tables, &sketches, &active, config, out, progress)?
        }
    };
    let mut pairs = pairs.finish()?;
    let mut out = Writer::create(&folder.join(CANDIDATES))?;
    let mut last = None;
    while let Some(pair) = pairs.next()? {
        if last.replace(pair) != Some(pair) {
            out.push(&pair)?;
        }
    }
    found.n_pairs = out.finish()?;
    Ok(found)
}

/// The documents that may have near duplicates: not short, not a copy of an earlier one.
fn active(read: &Path, exact: &Path) -> Result<Vec<bool>, Error> {
    let mut docs = Scan::<DocRecord>::open(&read.join(DOCS))?;
    let mut active = Vec::with_capacity(docs.left() as usize);
    while let Some(doc) = docs.next()? {
        active.push(doc.flags & (SHORT | EMPTY) == 0);
    }
    let mut copies = Scan::<Copied>::open(&exact.join(COPIES))?;
    while let Some(copy) = copies.next()? {
        active[copy.doc as usize] = false;
    }
    Ok(active)
}

/// A document under its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    key: u64,
    doc: Ordinal,
}

fn search<T: Tables>(
    tables: &T,
    sketches: &Column<T::Sketch>,
    active: &[bool],
    config: &Config,
    mut out: Sorter<PairKey>,
    progress: &Progress,
) -> Result<(Sorter<PairKey>, Candidates), Error> {
    let n_active = active.iter().filter(|is_active| **is_active).count() as u64;
    let n_ranges = (n_active * size_of::<Entry>() as u64).div_ceil(config.part(8).max(1));
    let n_ranges = n_ranges.max(1);
    progress.expect(u64::from(tables.n_tables()) * n_active);
    let mut search = Search {
        tables,
        sketches,
        cap: config.cap.get(),
        long: BTreeSet::new(),
        found: Candidates::default(),
    };
    for table in 0..tables.n_tables() {
        for range in 0..n_ranges {
            let entries = search.entries(table, active, |key| in_range(key, range, n_ranges))?;
            let n_entries = entries.len() as u64;
            for wave in waves(&entries, search.cap) {
                for pair in search.expand(table, wave)? {
                    out.push(pair)?;
                }
            }
            progress.advance(n_entries)?;
        }
    }
    Ok((out, search.found))
}

/// Whether a key is in the given one of so many equal ranges.
fn in_range(key: u64, range: u64, n_ranges: u64) -> bool {
    (u128::from(key) * u128::from(n_ranges)) >> 64 == u128::from(range)
}

/// Cuts sorted entries at the ends of runs, such that a part holds about [`WAVE_PAIRS`].
fn waves(entries: &[Entry], cap: usize) -> impl Iterator<Item = &[Entry]> {
    let mut rest = entries;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (mut n_pairs, mut end) = (0, 0);
        for run in rest.chunk_by(|a, b| a.key == b.key) {
            end += run.len();
            n_pairs += run.len() as u64 * run.len().min(cap) as u64 / 2;
            if n_pairs >= WAVE_PAIRS {
                break;
            }
        }
        let (wave, after) = rest.split_at(end);
        rest = after;
        Some(wave)
    })
}

struct Search<'a, T: Tables> {
    tables: &'a T,
    sketches: &'a Column<T::Sketch>,
    cap: usize,
    /// Tables and keys of long runs so far.
    long: BTreeSet<(u32, u64)>,
    found: Candidates,
}

/// What a run gave.
#[derive(Default)]
struct RunPairs {
    pairs: Vec<PairKey>,
    n_tested: u64,
}

impl<T: Tables> Search<'_, T> {
    /// The keys of the active documents in one table, those that are `wanted`, in order.
    fn entries(
        &self,
        table: u32,
        active: &[bool],
        wanted: impl Fn(u64) -> bool + Sync,
    ) -> Result<Vec<Entry>, Error> {
        const BLOCK: usize = 1 << 14;
        let blocks = active.par_chunks(BLOCK).enumerate().map(|(block, active)| {
            let start = block * BLOCK;
            let mut sketches = vec![bytemuck::Zeroable::zeroed(); active.len()];
            self.sketches.read_into(start as u64, &mut sketches)?;
            let entries = (start as Ordinal..).zip(&sketches).zip(active);
            let entries = entries.filter(|(_, is_active)| **is_active);
            let entries = entries.map(|((doc, sketch), _)| Entry {
                key: self.tables.key(table, sketch),
                doc,
            });
            Ok(entries
                .filter(|entry| wanted(entry.key))
                .collect::<Vec<_>>())
        });
        let blocks = blocks.collect::<Result<Vec<_>, Error>>()?;
        let mut entries = blocks.concat();
        entries.par_sort_unstable();
        Ok(entries)
    }

    /// The candidates in the runs of a part of a table.
    fn expand(&mut self, table: u32, wave: &[Entry]) -> Result<Vec<PairKey>, Error> {
        let cap = self.cap;
        let long_runs = wave
            .chunk_by(|a, b| a.key == b.key)
            .filter(|run| run.len() > cap);
        for run in long_runs {
            self.long.insert((table, run[0].key));
            self.found.note_long_run(run.len() as u64);
        }
        let runs = wave.par_chunk_by(|a, b| a.key == b.key);
        let runs = runs.filter(|run| run.len() > 1).map(|run| {
            if run.len() > cap {
                self.expand_long(table, run)
            } else {
                self.expand_run(table, run)
            }
        });
        let results = runs.collect::<Result<Vec<_>, Error>>()?;
        self.found.n_tested += results.iter().map(|run| run.n_tested).sum::<u64>();
        Ok(results.into_iter().flat_map(|run| run.pairs).collect())
    }

    fn expand_run(&self, table: u32, run: &[Entry]) -> Result<RunPairs, Error> {
        let sketches = self.gather(run)?;
        let is_new = |a: &T::Sketch, b: &T::Sketch| self.meets_first_in(table, a, b);
        let n = run.len() as u64;
        Ok(RunPairs {
            pairs: alike(self.tables, &sketches, is_new)
                .into_iter()
                .map(|(i, j)| pair(run, i, j))
                .collect(),
            n_tested: n * (n - 1) / 2,
        })
    }

    /// Compares each member with leaders and neighbours.
    fn expand_long(&self, table: u32, run: &[Entry]) -> Result<RunPairs, Error> {
        let sketches = self.gather(run)?;
        let is_new = |a: &T::Sketch, b: &T::Sketch| self.meets_first_in(table, a, b);
        let mut members = LongRun::default();
        let mut result = RunPairs::default();
        for (entry, sketch) in run.iter().zip(sketches) {
            let ties = members.push(self.tables, entry.doc, sketch, is_new);
            let ties = ties.into_iter();
            result
                .pairs
                .extend(ties.map(|a| PairKey { a, b: entry.doc }));
        }
        result.n_tested = members.n_tested;
        Ok(result)
    }

    /// Whether no earlier table has tested this pair in a run that was expanded.
    fn meets_first_in(&self, table: u32, a: &T::Sketch, b: &T::Sketch) -> bool {
        meets_first_in(self.tables, &self.long, table, a, b)
    }

    fn gather(&self, run: &[Entry]) -> Result<Vec<T::Sketch>, Error> {
        run.iter()
            .map(|entry| self.sketches.get(entry.doc))
            .collect()
    }
}

/// The places of the members of a run that are candidates of each other, the earlier one first.
pub(crate) fn alike<T: Tables>(
    tables: &T,
    sketches: &[T::Sketch],
    is_new: impl Fn(&T::Sketch, &T::Sketch) -> bool,
) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    for (i, a) in sketches.iter().enumerate() {
        for (j, b) in sketches.iter().enumerate().skip(i + 1) {
            if tables.accepts(a, b) && is_new(a, b) {
                pairs.push((i, j));
            }
        }
    }
    pairs
}

/// What the members of a long run are compared with: enough to take them one by one.
pub(crate) struct LongRun<S> {
    leaders: Vec<(Ordinal, S)>,
    /// The last members, oldest first.
    neighbours: VecDeque<(Ordinal, S)>,
    pub(crate) n_tested: u64,
}

impl<S> Default for LongRun<S> {
    fn default() -> Self {
        Self {
            leaders: Vec::new(),
            neighbours: VecDeque::new(),
            n_tested: 0,
        }
    }
}

impl<S: Copy> LongRun<S> {
    /// Takes the next member, by ordinal, and gives the earlier ones that it is a candidate of.
    pub(crate) fn push<T: Tables<Sketch = S>>(
        &mut self,
        tables: &T,
        doc: Ordinal,
        sketch: S,
        is_new: impl Fn(&S, &S) -> bool,
    ) -> Vec<Ordinal> {
        let accepted = |(_, other): &&(Ordinal, S)| tables.accepts(other, &sketch);
        let followed: Vec<(Ordinal, S)> = self.leaders.iter().filter(accepted).copied().collect();
        let is_leader = |doc: Ordinal| self.leaders.iter().any(|(leader, _)| *leader == doc);
        let strangers = self.neighbours.iter().filter(|(doc, _)| !is_leader(*doc));
        let mut others: Vec<(Ordinal, S)> = strangers.filter(accepted).copied().collect();
        others.sort_by_key(|(_, other)| Reverse(tables.closeness(other, &sketch)));
        others.truncate(N_TIES);
        self.n_tested += (self.leaders.len() + N_NEIGHBOURS) as u64;
        let ties = followed.iter().take(N_TIES).chain(&others);
        let new = ties.filter(|(_, other)| is_new(other, &sketch));
        let new: Vec<Ordinal> = new.map(|(doc, _)| *doc).collect();
        if followed.is_empty() && self.leaders.len() < N_LEADERS {
            self.leaders.push((doc, sketch));
        }
        if self.neighbours.len() == N_NEIGHBOURS {
            self.neighbours.pop_front();
        }
        self.neighbours.push_back((doc, sketch));
        new
    }
}

/// Whether two documents that meet in `table` meet in no earlier one, long runs aside.
pub(crate) fn meets_first_in<T: Tables>(
    tables: &T,
    long: &BTreeSet<(u32, u64)>,
    table: u32,
    a: &T::Sketch,
    b: &T::Sketch,
) -> bool {
    let mut earlier = (0..table).filter(|&table| tables.meet_in(table, a, b));
    earlier.all(|table| !long.is_empty() && long.contains(&(table, tables.key(table, a))))
}

impl Candidates {
    pub(crate) fn note_long_run(&mut self, n: u64) {
        let compared = (N_LEADERS + N_NEIGHBOURS) as u64;
        self.long_runs += 1;
        self.longest_run = self.longest_run.max(n);
        self.long_members += n;
        self.untested += (n * (n - 1) / 2).saturating_sub(n * compared);
    }
}

/// Members `i < j` of a run, which is sorted by document.
fn pair(run: &[Entry], i: usize, j: usize) -> PairKey {
    PairKey {
        a: run[i].doc,
        b: run[j].doc,
    }
}
