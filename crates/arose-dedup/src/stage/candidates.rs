//! Third stage: pairs that share a key and pass the test of their sketches.
//!
//! Documents with equal keys in a table form a run. The first pass takes the keys from the
//! sketches, table by table, sorts them and writes down the runs; the second gathers the sketches
//! of the documents that are in one, which are few among many, and tests all pairs inside each run,
//! each pair in the first table in which it meets only, so nothing is found twice.
//!
//! A run longer than the cap is not expanded: `n` documents under one key would be `n^2 / 2` pairs.
//! Its members are compared with the run's *leaders*, those that are unlike all leaders before
//! them, up to [`N_LEADERS`], and with the [`N_NEIGHBOURS`] members before them; the [`N_TIES`]
//! closest of each become candidates. So every document still meets some that it is like, at a cost
//! linear in the run, and the pairs that were not tested are counted. A pair that met in such a run
//! is looked for once more in its later tables. What a million documents share they share in many
//! tables, and later ones would bring a document to the same others again: of runs that are
//! [`HUGE`] it takes part in the first [`N_HUGE`], and gets one candidate of each sort.
//!
//! Memory: as many tables as fit, or one in ranges of keys, and the sketches gathered, from the
//! file if they do not fit.

use std::cmp::Reverse;
use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arose::rule::Criterion;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::column::{Column, Scan, Writer};
use crate::config::Config;
use crate::lookup::{Chosen, Lookup};
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
/// Runs so many times as long as the cap are huge.
pub(crate) const HUGE: usize = 8;
/// Huge runs that a document takes part in.
pub(crate) const N_HUGE: usize = 2;

/// Documents under equal keys: table, number, and that many ordinals; again and again.
const RUNS: &str = "runs";

/// Pairs tested before their results are put away.
const WAVE_PAIRS: u64 = 1 << 26;
/// Members of runs that are taken from the file at once, unless one run has more.
const WAVE_MEMBERS: usize = 1 << 20;

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
    let (pairs, mut found) = match config.policy.criterion {
        Criterion::Jaccard(threshold) => {
            let tables = Bands::new(config, threshold)?;
            let sketches = read.join(SAMPLES);
            search(&tables, &sketches, &active, config, folder, progress)?
        }
        _ => {
            let tables = Rules::new(config)?;
            let sketches = read.join(VECTORS);
            search(&tables, &sketches, &active, config, folder, progress)?
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

fn search<T: Tables>(
    tables: &T,
    sketches: &Path,
    active: &[bool],
    config: &Config,
    folder: &Path,
    progress: &Progress,
) -> Result<(Sorter<PairKey>, Candidates), Error> {
    let path = folder.join(RUNS);
    let (chosen, n_entries) = write_runs(tables, sketches, active, config, &path, progress)?;
    let mut runs = Runs::open(&path)?;
    progress.expect(n_entries + runs.scan.left());
    let mut search = Search {
        tables,
        sketches: Lookup::open(sketches, &Arc::new(chosen), 5 * config.part(8))?,
        cap: config.cap.get(),
        long: BTreeSet::new(),
        huge: BTreeSet::new(),
        found: Candidates::default(),
    };
    let mut out = Sorter::new(&folder.join("pairs"), config.part(4));
    let mut left = runs.scan.left();
    while let Some(wave) = runs.next_wave(search.cap)? {
        for pair in search.expand(&wave)? {
            out.push(pair)?;
        }
        let before = std::mem::replace(&mut left, runs.scan.left());
        progress.advance(before - left)?;
    }
    fs::remove_file(&path).map_err(Error::io("remove", &path))?;
    Ok((out, search.found))
}

/// Writes the runs of all tables to `path`; the documents in them, and how many keys there were.
fn write_runs<T: Tables>(
    tables: &T,
    sketches: &Path,
    active: &[bool],
    config: &Config,
    path: &Path,
    progress: &Progress,
) -> Result<(Chosen, u64), Error> {
    let n_active = active.iter().filter(|is_active| **is_active).count() as u64;
    let n_tables = tables.n_tables();
    let table_bytes = (n_active * size_of::<u64>() as u64).max(1);
    let n_ranges = table_bytes.div_ceil(config.part(8).max(1));
    progress.expect(u64::from(n_tables) * n_active);
    let sketches = Column::open(sketches, config.part(2))?;
    // Several tables are made in one reading, where sketches have to be read.
    let n_together = match &sketches {
        Column::Memory(_) => 1,
        Column::File { .. } => (config.part(8) / table_bytes).clamp(1, n_tables.max(1).into()),
    };
    let mut is_met = vec![false; active.len()];
    let mut out = Writer::create(path)?;
    for first in (0..n_tables).step_by(n_together as usize) {
        let group = first..(first + n_together as u32).min(n_tables);
        for range in 0..n_ranges {
            let keep = |key| open_part(key, range, n_ranges);
            let lists = entries(tables, &sketches, active, group.clone(), keep)?;
            for (table, entries) in group.clone().zip(lists) {
                let runs = entries.chunk_by(|a, b| a >> 32 == b >> 32);
                for run in runs.filter(|run| run.len() > 1) {
                    out.extend(&[table, run.len() as u32])?;
                    for &entry in run {
                        out.push(&(entry as Ordinal))?;
                        is_met[entry as Ordinal as usize] = true;
                    }
                }
                progress.advance(entries.len() as u64)?;
            }
        }
    }
    out.finish()?;
    Ok((Chosen::new(&is_met), u64::from(n_tables) * n_active))
}

/// If a key is in the given one of so many equal ranges: 32 bits that say where, evenly.
fn open_part(key: u64, range: u64, n_ranges: u64) -> Option<u32> {
    let scaled = u128::from(key) * u128::from(n_ranges);
    ((scaled >> 64) as u64 == range).then_some((scaled >> 32) as u32)
}

/// The active documents in some tables, in order: what `keep` leaves of the key, then the ordinal,
/// in 32 bits each. Runs are split by the whole keys later.
fn entries<T: Tables>(
    tables: &T,
    sketches: &Column<T::Sketch>,
    active: &[bool],
    group: Range<u32>,
    keep: impl Fn(u64) -> Option<u32> + Sync,
) -> Result<Vec<Vec<u64>>, Error> {
    const BLOCK: usize = 1 << 14;
    let blocks = active.par_chunks(BLOCK).enumerate().map(|(block, active)| {
        let start = block * BLOCK;
        let mut room = vec![bytemuck::Zeroable::zeroed(); active.len()];
        sketches.read_into(start as u64, &mut room)?;
        let mut lists = vec![Vec::new(); group.len()];
        let docs = (start as u64..).zip(&room).zip(active);
        for ((doc, sketch), _) in docs.filter(|(_, is_active)| **is_active) {
            for (table, list) in group.clone().zip(&mut lists) {
                let key = keep(tables.key(table, sketch));
                list.extend(key.map(|key| u64::from(key) << 32 | doc));
            }
        }
        Ok(lists)
    });
    let blocks = blocks.collect::<Result<Vec<_>, Error>>()?;
    let mut lists = vec![Vec::new(); group.len()];
    for block in blocks {
        for (list, part) in lists.iter_mut().zip(block) {
            list.extend(part);
        }
    }
    for list in &mut lists {
        list.par_sort_unstable();
    }
    Ok(lists)
}

/// The file of runs.
struct Runs {
    scan: Scan<Ordinal>,
    /// Table and number of the run whose members come next.
    head: Option<[u32; 2]>,
}

/// Runs of one table.
struct Wave {
    table: u32,
    members: Vec<Ordinal>,
    /// Where the runs are in `members`.
    runs: Vec<Range<usize>>,
}

impl Runs {
    fn open(path: &Path) -> Result<Self, Error> {
        let mut runs = Self {
            scan: Scan::open(path)?,
            head: None,
        };
        runs.head = runs.next_head()?;
        Ok(runs)
    }

    fn next_head(&mut self) -> Result<Option<[u32; 2]>, Error> {
        let Some(table) = self.scan.next()? else {
            return Ok(None);
        };
        Ok(self.scan.next()?.map(|n| [table, n]))
    }

    /// The next runs, all of one table, that together hold about so many pairs or members.
    fn next_wave(&mut self, cap: usize) -> Result<Option<Wave>, Error> {
        let Some([table, _]) = self.head else {
            return Ok(None);
        };
        let mut wave = Wave {
            table,
            members: Vec::new(),
            runs: Vec::new(),
        };
        let mut n_pairs = 0;
        while let Some([next, n]) = self.head
            && next == table
            && n_pairs < WAVE_PAIRS
            && wave.members.len() < WAVE_MEMBERS
        {
            let start = wave.members.len();
            for _ in 0..n {
                wave.members.extend(self.scan.next()?);
            }
            wave.runs.push(start..wave.members.len());
            n_pairs += u64::from(n) * (n as usize).min(cap) as u64 / 2;
            self.head = self.next_head()?;
        }
        Ok(Some(wave))
    }
}

struct Search<'a, T: Tables> {
    tables: &'a T,
    sketches: Lookup<T::Sketch>,
    cap: usize,
    /// Tables and keys of long runs so far.
    long: BTreeSet<(u32, u64)>,
    /// Those of them that are huge.
    huge: BTreeSet<(u32, u64)>,
    found: Candidates,
}

/// Documents under one key, in order, and their sketches.
struct Run<S> {
    key: u64,
    docs: Vec<Ordinal>,
    sketches: Vec<S>,
}

/// What runs gave.
#[derive(Default)]
struct RunPairs {
    pairs: Vec<PairKey>,
    n_tested: u64,
    /// Key and length of those beyond the cap.
    long: Vec<(u64, u64)>,
}

impl<T: Tables> Search<'_, T> {
    /// The candidates in a few runs.
    fn expand(&mut self, wave: &Wave) -> Result<Vec<PairKey>, Error> {
        let runs = wave.runs.par_iter().map(|run| {
            let mut result = RunPairs::default();
            for run in self.load(wave.table, &wave.members[run.clone()])? {
                if run.docs.len() > self.cap {
                    result.long.push((run.key, run.docs.len() as u64));
                    self.expand_long(wave.table, &run, &mut result);
                } else {
                    self.expand_run(wave.table, &run, &mut result);
                }
            }
            Ok(result)
        });
        let results = runs.collect::<Result<Vec<_>, Error>>()?;
        for result in &results {
            self.found.n_tested += result.n_tested;
            for &(key, n) in &result.long {
                // Only later tables ask.
                self.long.insert((wave.table, key));
                if n > self.cap.saturating_mul(HUGE) as u64 {
                    self.huge.insert((wave.table, key));
                }
                self.found.note_long_run(n);
            }
        }
        Ok(results.into_iter().flat_map(|run| run.pairs).collect())
    }

    /// Members with their sketches, split by whole keys.
    fn load(&self, table: u32, members: &[Ordinal]) -> Result<Vec<Run<T::Sketch>>, Error> {
        let sketches = members.iter().map(|&doc| self.sketches.get(doc));
        let sketches = sketches.collect::<Result<Vec<_>, Error>>()?;
        let key = |sketch| self.tables.key(table, sketch);
        let first = key(&sketches[0]);
        if sketches.iter().all(|sketch| key(sketch) == first) {
            return Ok(vec![Run {
                key: first,
                docs: members.to_vec(),
                sketches,
            }]);
        }
        let mut places: Vec<(u64, usize)> = sketches.iter().map(key).zip(0..).collect();
        places.sort_unstable();
        let runs = places.chunk_by(|a, b| a.0 == b.0);
        let runs = runs.filter(|run| run.len() > 1).map(|run| Run {
            key: run[0].0,
            docs: run.iter().map(|&(_, place)| members[place]).collect(),
            sketches: run.iter().map(|&(_, place)| sketches[place]).collect(),
        });
        Ok(runs.collect())
    }

    fn expand_run(&self, table: u32, run: &Run<T::Sketch>, result: &mut RunPairs) {
        let is_new = |a: &T::Sketch, b: &T::Sketch| self.meets_first_in(table, a, b);
        let pairs = alike(self.tables, &run.sketches, is_new);
        let pairs = pairs.into_iter().map(|(i, j)| pair(run, i, j));
        result.pairs.extend(pairs);
        let n = run.docs.len() as u64;
        result.n_tested += n * (n - 1) / 2;
    }

    /// Compares each member with leaders and neighbours.
    fn expand_long(&self, table: u32, run: &Run<T::Sketch>, result: &mut RunPairs) {
        let is_new = |a: &T::Sketch, b: &T::Sketch| self.meets_first_in(table, a, b);
        let is_huge = run.docs.len() > self.cap.saturating_mul(HUGE);
        let is_in = |sketch: &T::Sketch| {
            let is_earlier = |t: &u32| self.huge.contains(&(*t, self.tables.key(*t, sketch)));
            !is_huge || (0..table).filter(is_earlier).count() < N_HUGE
        };
        let mut members = LongRun::new(is_huge);
        let docs = run.docs.iter().zip(&run.sketches);
        for (&b, &sketch) in docs.filter(|(_, sketch)| is_in(sketch)) {
            let ties = members.push(self.tables, b, sketch, is_new);
            let ties = ties.into_iter().map(|a| PairKey { a, b });
            result.pairs.extend(ties);
        }
        result.n_tested += members.n_tested;
    }

    /// Whether no earlier table has tested this pair in a run that was expanded.
    fn meets_first_in(&self, table: u32, a: &T::Sketch, b: &T::Sketch) -> bool {
        meets_first_in(self.tables, &self.long, table, a, b)
    }
}

/// The places of the members of a run that are candidates of each other, the earlier one first.
pub(crate) fn alike<T: Tables>(
    tables: &T,
    sketches: &[T::Sketch],
    is_new: impl Fn(&T::Sketch, &T::Sketch) -> bool,
) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    for (j, b) in sketches.iter().enumerate() {
        for (i, a) in sketches[..j].iter().enumerate() {
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
    n_ties: usize,
    pub(crate) n_tested: u64,
}

impl<S: Copy> LongRun<S> {
    pub(crate) fn new(is_huge: bool) -> Self {
        Self {
            leaders: Vec::new(),
            neighbours: VecDeque::new(),
            n_ties: if is_huge { 1 } else { N_TIES },
            n_tested: 0,
        }
    }

    /// Takes the next member, by ordinal, and gives the earlier ones that it is a candidate of.
    pub(crate) fn push<T: Tables<Sketch = S>>(
        &mut self,
        tables: &T,
        doc: Ordinal,
        sketch: S,
        is_new: impl Fn(&S, &S) -> bool,
    ) -> Vec<Ordinal> {
        let is_leader = |doc: Ordinal| self.leaders.iter().any(|(leader, _)| *leader == doc);
        let strangers = self.neighbours.iter().filter(|(doc, _)| !is_leader(*doc));
        let followed = closest(tables, &sketch, self.leaders.iter(), self.n_ties);
        let others = closest(tables, &sketch, strangers, self.n_ties);
        self.n_tested += (self.leaders.len() + N_NEIGHBOURS) as u64;
        let ties = followed.iter().chain(&others);
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

/// Those `n` of a few others that are closest to a sketch, if it is like them.
fn closest<'a, T: Tables>(
    tables: &T,
    sketch: &T::Sketch,
    others: impl Iterator<Item = &'a (Ordinal, T::Sketch)>,
    n: usize,
) -> Vec<&'a (Ordinal, T::Sketch)>
where
    T::Sketch: 'a,
{
    let alike = others.filter(|(_, other)| tables.accepts(other, sketch));
    let mut alike: Vec<_> = alike
        .map(|other| (Reverse(tables.closeness(&other.1, sketch)), other))
        .collect();
    alike.sort_by_key(|(closeness, _)| *closeness);
    alike.truncate(n);
    alike.into_iter().map(|(_, other)| other).collect()
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
fn pair<S>(run: &Run<S>, i: usize, j: usize) -> PairKey {
    PairKey {
        a: run.docs[i],
        b: run.docs[j],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arose::Threshold;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_key_is_in_one_range_and_ranges_keep_the_order(
            a: u64, b: u64, n_ranges in 1_u64..1000
        ) {
            let place = |key| {
                let parts = (0..n_ranges).filter_map(|range| {
                    open_part(key, range, n_ranges).map(|part| (range, part))
                });
                parts.collect::<Vec<_>>()
            };
            prop_assert_eq!(place(a).len(), 1);
            prop_assert_eq!(place(a) <= place(b), a <= b || place(a) == place(b));
        }
    }

    /// Two keys that agree in what a range leaves open come as one run out of the file.
    #[test]
    fn runs_are_split_by_whole_keys() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(SAMPLES);
        let mut writer = Writer::<crate::record::Samples>::create(&path).unwrap();
        let tables = Bands::new(&Config::default(), Threshold::new(0.8).unwrap()).unwrap();
        for doc in 0..5 {
            writer.push(&tables.keep(&[doc % 2; 128], &[])).unwrap();
        }
        writer.finish().unwrap();
        let chosen = Arc::new(Chosen::new(&[true; 5]));
        let search = Search {
            tables: &tables,
            sketches: Lookup::open(&path, &chosen, 1 << 20).unwrap(),
            cap: 10,
            long: BTreeSet::new(),
            huge: BTreeSet::new(),
            found: Candidates::default(),
        };
        let runs = search.load(3, &[0, 1, 2, 3, 4]).unwrap();
        let mut docs: Vec<_> = runs.iter().map(|run| &run.docs[..]).collect();
        docs.sort();
        assert_eq!(docs, [&[0, 2, 4][..], &[1, 3]]);
        for run in &runs {
            let keys = run.sketches.iter().map(|sketch| tables.key(3, sketch));
            assert!(keys.into_iter().all(|key| key == run.key));
        }
        assert_eq!(search.load(0, &[1, 3]).unwrap().len(), 1);
        assert!(search.load(0, &[0, 1]).unwrap().is_empty());
    }
}
