//! The state of an index at one moment, and queries on it.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arose::DocId;
use arose::rule::{Evidence, Rule};

use super::dead::Dead;
use super::file::{Allowance, Content};
use super::keys::KeyPlan;
use super::log::{self, Frame, LogChange};
use super::manifest::Manifest;
use super::own::Weighed;
use super::recent::Recent;
use super::records::Records;
use super::run::Run;
use super::screen::Screen;
use super::settings::Settings;
use super::site_counts::SiteCountTable;
use super::sketch::Sketch;
use super::{Committed, Error};

/// A duplicate that was found, with its evidence.
#[derive(Debug, Clone, PartialEq)]
pub struct Match {
    /// The name under which it was inserted.
    pub name: String,
    /// Its row in the index. Earlier documents have smaller rows. Compaction closes gaps and so
    /// changes rows.
    pub doc: DocId,
    /// The rule that makes it a duplicate of the query.
    pub rule: Rule,
    /// The scores.
    pub evidence: Evidence,
    /// A number in `0..=1` by which to rank matches: the score that the rule uses, or 1 for an
    /// exact duplicate.
    pub similarity: f64,
    /// The scores of the policy `content`, and the number of pages on which they are based.
    pub content: Option<ContentScores>,
}

/// The scores of the policy `content`, as far as the sites of both documents are known to the
/// index.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ContentScores {
    /// The share of own text that both documents have in common, in the same order.
    pub weighted: f64,
    /// The same with every weight 1.
    pub unweighted: f64,
    /// Number of pages of the query's site counted so far. A template is not recognized before five
    /// of its pages, and not reliably before nine.
    pub n_site_pages: u64,
}

/// The number of documents in an index, and its disk and memory use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexStatus {
    /// Documents that can be found.
    pub n_docs: u64,
    /// Removed documents that still take space.
    pub n_dead: u64,
    /// Documents in memory, which on disk are only in the log.
    pub n_recent: u64,
    /// Sorted runs. A query looks into each of them.
    pub n_runs: usize,
    /// Files of records.
    pub n_record_files: usize,
    /// Entries in all sorted runs.
    pub n_entries: u64,
    /// Bytes of all files except the log.
    pub disk_bytes: u64,
    /// Bytes of filters, cached files and recent documents in memory.
    pub memory_bytes: u64,
}

/// Number of keys that are looked up together. Reading for more keys would evict the data of the
/// first from the cache.
const MAX_OVERLAP: usize = 64;

/// A document in the form that the index stores.
pub(super) struct Prepared<'a> {
    pub(super) name: &'a str,
    pub(super) sketch: Cow<'a, Sketch>,
    /// The keys to which its page adds one in the counts of its site.
    pub(super) counted: Vec<u64>,
}

impl<'a> Prepared<'a> {
    /// Takes the weighed form of a document, if it has one.
    pub(super) fn new(name: &'a str, sketch: &'a Sketch, weighed: Option<Weighed>) -> Self {
        let (sketch, counted) = match weighed {
            Some(Weighed { sketch, keys, .. }) => (Cow::Owned(sketch), keys),
            None => (Cow::Borrowed(sketch), Vec::new()),
        };
        Self {
            name,
            sketch,
            counted,
        }
    }

    /// Appends the changes of its insertion.
    pub(super) fn write(&self, frame: &mut Frame) {
        frame.insert(self.name, &self.sketch);
        frame.count(&self.counted);
    }
}

/// All data that a query reads.
#[derive(Debug)]
pub(super) struct State {
    pub(super) plan: Arc<KeyPlan>,
    /// In the order of their rows, as are the runs.
    pub(super) records: Vec<Arc<Records>>,
    pub(super) runs: Vec<Arc<Run>>,
    pub(super) recent: Recent,
    pub(super) dead: Dead,
    /// Counts of text that sites repeat; empty unless the policy is `content`.
    pub(super) counts: SiteCountTable,
    /// Memory for files that are read often.
    pub(super) allowance: Allowance,
}

/// Maximum number of documents that a query of the policy `content` compares: those with the most
/// keys in common. Thousands of pages of one template may share a key without being duplicates.
pub(super) const MAX_JUDGED: usize = 512;

impl State {
    /// Opens the files that a manifest lists and replays its log. Also returns the length of the
    /// log.
    pub(super) fn open(
        folder: &Path,
        manifest: &Manifest,
        allowance: Allowance,
        committed: Option<Committed>,
        max_counted: u32,
    ) -> Result<(Self, u64), Error> {
        let plan = Arc::new(KeyPlan::new(&manifest.settings));
        let mut runs = Vec::new();
        for part in &manifest.runs {
            let path = Content::Run.path(folder, part.number);
            let mut run = Run::open(&path, part.number, part.check)?;
            run.hold(&allowance)?;
            runs.push(Arc::new(run));
        }
        let mut records = Vec::new();
        for part in &manifest.records {
            let path = Content::Records.path(folder, part.number);
            let mut file = Records::open(&path, part.check)?;
            file.hold(&allowance)?;
            records.push(Arc::new(file));
        }
        let dead = match manifest.dead {
            Some(part) => Dead::read(&Content::Dead.path(folder, part.number), part.check)?,
            None => Dead::default(),
        };
        let counts = match manifest.counts {
            Some(part) => {
                let path = Content::SiteCounts.path(folder, part.number);
                SiteCountTable::read(&path, part.check, max_counted)?
            }
            None => SiteCountTable::new(max_counted),
        };
        let n_rows = check_cover(folder, &plan, &records, &runs)?;
        let mut state = Self {
            recent: Recent::new(n_rows, manifest.settings.n_words()),
            plan,
            records,
            runs,
            dead,
            counts,
            allowance,
        };
        let committed = committed.unwrap_or_else(|| Committed::read(folder));
        let n_safe = committed.n_safe(manifest.log);
        let n_bytes = state.replay(&Content::Log.path(folder, manifest.log), n_safe)?;
        Ok((state, n_bytes))
    }

    fn replay(&mut self, path: &Path, n_safe: u64) -> Result<u64, Error> {
        let n_words = self.plan.n_words;
        let mut keys = Vec::new();
        log::replay(path, n_safe, |change| match change {
            LogChange::Insert(_, sketch) if sketch.pairs.is_some() || !fits(&sketch, n_words) => {
                Err(Error::damaged(path, "a sketch of another kind"))
            }
            LogChange::Insert(name, sketch) => {
                self.insert(&name, &sketch, &mut keys);
                Ok(())
            }
            LogChange::Count(keys) => {
                self.count(&keys);
                Ok(())
            }
            LogChange::Remove(row) if row >= self.recent.next_row() => {
                Err(Error::damaged(path, "a removed row does not exist"))
            }
            LogChange::Remove(row) => {
                self.dead.insert(row);
                Ok(())
            }
        })
    }

    /// Counts a page of a site.
    pub(super) fn count(&mut self, keys: &[u64]) {
        keys.iter().for_each(|&key| self.counts.add(key, 1));
    }

    /// Returns the weighed form of a document that is still to be weighed; none for all others.
    pub(super) fn weigh(&self, sketch: &Sketch) -> Option<Weighed> {
        self.weigh_by(sketch, |keys, numbers| self.counts.get_all(keys, numbers))
    }

    fn weigh_by(&self, sketch: &Sketch, n: impl FnOnce(&[u64], &mut Vec<u32>)) -> Option<Weighed> {
        let (weighing, pairs) = (self.plan.weighing.as_ref()?, sketch.pairs.as_ref()?);
        Some(weighing.weigh(sketch, pairs, n))
    }

    /// Returns documents in the form in which the index stores them if they are inserted in this
    /// order.
    pub(super) fn prepare<'a>(&self, documents: &[(&'a str, &'a Sketch)]) -> Vec<Prepared<'a>> {
        // What the documents before a document add to the counts.
        let mut added = SiteCountTable::new(u32::MAX);
        let prepared = documents.iter().map(|&(name, sketch)| {
            let n = |keys: &[u64], numbers: &mut Vec<u32>| {
                self.counts.get_all(keys, numbers);
                let sums = keys.iter().zip(numbers);
                sums.for_each(|(&key, number)| *number += added.get(key));
            };
            let prepared = Prepared::new(name, sketch, self.weigh_by(sketch, n));
            prepared.counted.iter().for_each(|&key| added.add(key, 1));
            prepared
        });
        prepared.collect()
    }

    /// Adds a document; `keys` is scratch space.
    pub(super) fn insert(&mut self, name: &str, sketch: &Sketch, keys: &mut Vec<u64>) {
        self.plan.document_keys(name, sketch, keys);
        self.recent.push(name, sketch, keys);
    }

    /// Returns all documents that match the rule with a sketch of this index's kind, in the order
    /// of insertion.
    pub(super) fn query(&self, sketch: &Sketch) -> Result<Vec<Match>, Error> {
        self.query_weighed(sketch, self.weigh(sketch).as_ref())
    }

    /// As [`State::query`], for a document whose weighed form is known, if it has one.
    pub(super) fn query_weighed(
        &self,
        sketch: &Sketch,
        weighed: Option<&Weighed>,
    ) -> Result<Vec<Match>, Error> {
        match weighed {
            Some(weighed) => self.query_kept(&weighed.sketch, weighed.n_pages),
            None => self.query_kept(sketch, 0),
        }
    }

    fn query_kept(&self, sketch: &Sketch, n_pages: u64) -> Result<Vec<Match>, Error> {
        let mut keys = Vec::new();
        self.plan.sketch_keys(sketch, &mut keys);
        let rows = match self.plan.weighing {
            Some(_) => self.likely(&keys)?,
            None => self.candidates(&keys)?,
        };
        let test = self.plan.test(sketch);
        self.judge(sketch, n_pages, rows.into_iter(), |other| {
            test.passes(other)
        })
    }

    /// Returns the result of [`State::query`] by comparing every document. Used as an oracle.
    pub(super) fn scan(&self, sketch: &Sketch) -> Result<Vec<Match>, Error> {
        let rows = 0..self.recent.next_row();
        let rows = rows.filter(|&row| !self.dead.contains(row));
        match self.weigh(sketch) {
            Some(weighed) => self.judge(&weighed.sketch, weighed.n_pages, rows, |_| true),
            None => self.judge(sketch, 0, rows, |_| true),
        }
    }

    /// Returns the rows that pass a test and match the rule with a sketch.
    fn judge(
        &self,
        sketch: &Sketch,
        n_pages: u64,
        rows: impl Iterator<Item = u32>,
        test: impl Fn(&Sketch) -> bool,
    ) -> Result<Vec<Match>, Error> {
        let mut matches = Vec::new();
        let mut reader = RowReader::new(self);
        for row in rows {
            let other = reader.sketch(row)?;
            if !test(other) {
                continue;
            }
            let judged = self.plan.judge(sketch, other);
            if let Some(rule) = judged.rule {
                matches.push(Match {
                    name: self.name(row)?,
                    doc: DocId(row.into()),
                    rule,
                    similarity: judged.similarity,
                    evidence: judged.evidence,
                    content: judged.score.map(|score| ContentScores {
                        weighted: score.s,
                        unweighted: score.u,
                        n_site_pages: n_pages,
                    }),
                });
            }
        }
        Ok(matches)
    }

    /// Returns the row of the document with this name.
    pub(super) fn row_of(&self, name: &str) -> Result<Option<u32>, Error> {
        for row in self.candidates(&[self.plan.name_key(name)])? {
            if self.name(row)? == name {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    /// Returns a name of these documents that is already in the index, or that two of them have.
    /// Names that do not pass the filter are known to be new.
    pub(super) fn find_taken_name(
        &self,
        documents: &[(&str, &Sketch)],
        screen: Option<&Screen>,
    ) -> Result<Option<String>, Error> {
        let names = || documents.iter().map(|(name, _)| *name);
        let mut keys: Vec<u64> = names().map(|name| self.plan.name_key(name)).collect();
        // In this order the filters are read from start to end, which uses the caches better.
        keys.sort_unstable();
        let passed = |key: &u64| screen.is_none_or(|screen| screen.may_hold(*key));
        let likely: Vec<u64> = keys.iter().copied().filter(passed).collect();
        for row in self.candidates(&likely)? {
            let name = self.name(row)?;
            if names().any(|other| other == name) {
                return Ok(Some(name));
            }
        }
        if keys.windows(2).all(|two| two[0] != two[1]) {
            return Ok(None);
        }
        // Equal names have equal keys, and different names almost never do.
        let mut seen = BTreeSet::new();
        let twice = names().find(|&name| !seen.insert(name));
        Ok(twice.map(str::to_owned))
    }

    /// Returns the sketch in a row.
    pub(super) fn sketch(&self, row: u32) -> Result<Sketch, Error> {
        Ok(RowReader::new(self).sketch(row)?.clone())
    }

    pub(super) fn name(&self, row: u32) -> Result<String, Error> {
        match row.checked_sub(self.recent.first_row) {
            Some(number) => Ok(self.recent.block.name(number as usize).to_owned()),
            None => {
                let records = self.records_of(row);
                records.name(row - records.first_row())
            }
        }
    }

    /// Returns the names of the documents in a range of rows, in order.
    pub(super) fn names_in(&self, rows: Range<u32>) -> Result<Vec<String>, Error> {
        let rows = rows.start..rows.end.min(self.recent.next_row());
        let rows = rows.filter(|&row| !self.dead.contains(row));
        rows.map(|row| self.name(row)).collect()
    }

    pub(super) fn status(&self) -> IndexStatus {
        let n_rows = u64::from(self.recent.next_row());
        let files = self.records.iter().map(|records| records.n_bytes());
        let filters = self.runs.iter().map(|run| run.resident_bytes());
        let held = self.records.iter().map(|records| records.held_bytes());
        IndexStatus {
            n_docs: n_rows - self.dead.len(),
            n_dead: self.dead.len(),
            n_recent: self.recent.n_rows() as u64,
            n_runs: self.runs.len(),
            n_record_files: self.records.len(),
            n_entries: self.runs.iter().map(|run| u64::from(run.n_entries())).sum(),
            disk_bytes: files.chain(self.runs.iter().map(|run| run.n_bytes())).sum(),
            memory_bytes: (filters.chain(held).sum::<usize>()
                + self.recent.n_bytes()
                + self
                    .plan
                    .weighing
                    .as_ref()
                    .map_or(0, |_| self.counts.n_bytes())) as u64,
        }
    }

    /// Returns the rows that have one of these keys and are not removed, ascending, and some
    /// others.
    fn candidates(&self, keys: &[u64]) -> Result<Vec<u32>, Error> {
        let mut rows = self.met(keys)?;
        rows.dedup();
        Ok(rows)
    }

    /// Returns the [`MAX_JUDGED`] rows that have the most of these keys and are not removed,
    /// ascending. Older rows win ties.
    pub(super) fn likely(&self, keys: &[u64]) -> Result<Vec<u32>, Error> {
        let met = self.met(keys)?;
        let mut rows: Vec<(Reverse<usize>, u32)> = met
            .chunk_by(|one, other| one == other)
            .map(|run| (Reverse(run.len()), run[0]))
            .collect();
        if rows.len() > MAX_JUDGED {
            rows.select_nth_unstable(MAX_JUDGED);
            rows.truncate(MAX_JUDGED);
        }
        let mut rows: Vec<u32> = rows.into_iter().map(|(_, row)| row).collect();
        rows.sort_unstable();
        Ok(rows)
    }

    /// Returns the rows that have these keys and are not removed, ascending, once for each key.
    fn met(&self, keys: &[u64]) -> Result<Vec<u32>, Error> {
        let mut rows = Vec::new();
        for keys in keys.chunks(MAX_OVERLAP) {
            self.find_in_runs(keys, &mut rows)?;
        }
        self.recent.find(keys, &mut rows);
        rows.sort_unstable();
        rows.retain(|&row| !self.dead.contains(row));
        Ok(rows)
    }

    fn find_in_runs(&self, keys: &[u64], rows: &mut Vec<u32>) -> Result<(), Error> {
        // All directories, then all filters, then the results: so the cache misses of different
        // keys, which take most of the time, overlap.
        let mut probes = Vec::with_capacity(keys.len() * self.runs.len());
        for run in &self.runs {
            let aims = keys.iter().filter_map(|&key| run.aim(key));
            probes.extend(aims.map(|probe| (run, probe)));
        }
        let touched = probes
            .iter()
            .fold(0, |sum, (run, probe)| sum ^ run.touch(probe));
        std::hint::black_box(touched);
        for (run, probe) in &probes {
            run.find(probe, rows)?;
        }
        Ok(())
    }

    /// Returns the file with a row that is not recent.
    fn records_of(&self, row: u32) -> &Records {
        let after = self
            .records
            .partition_point(|records| records.first_row() <= row);
        &self.records[after - 1]
    }
}

/// Reads rows one after the other into the same memory.
struct RowReader<'a> {
    state: &'a State,
    sketch: Sketch,
    buffer: Vec<u8>,
}

impl<'a> RowReader<'a> {
    fn new(state: &'a State) -> Self {
        Self {
            state,
            sketch: Sketch::empty(),
            buffer: Vec::new(),
        }
    }

    fn sketch(&mut self, row: u32) -> Result<&Sketch, Error> {
        let recent = &self.state.recent;
        match row.checked_sub(recent.first_row) {
            Some(number) => recent.block.sketch_into(number as usize, &mut self.sketch),
            None => {
                let records = self.state.records_of(row);
                let number = row - records.first_row();
                records.sketch_into(number, &mut self.sketch, &mut self.buffer)?;
            }
        }
        Ok(&self.sketch)
    }
}

/// Returns whether a sketch has as many words as the index stores, or none.
fn fits(sketch: &Sketch, n_words: usize) -> bool {
    sketch.words.is_empty() || sketch.words.len() == n_words
}

/// Returns an error for a sketch of another kind.
pub(super) fn check_sketch(
    sketch: &Sketch,
    n_words: usize,
    settings: &Settings,
) -> Result<(), Error> {
    if sketch.pairs.is_some() && !settings.is_content() {
        let expected = "none: the index is not of the policy `content`";
        return Err(Error::parameter("word pairs of a sketch", "some", expected));
    }
    if fits(sketch, n_words) {
        Ok(())
    } else {
        let expected = "as many as the index stores";
        Err(Error::parameter(
            "words of a sketch",
            sketch.words.len(),
            expected,
        ))
    }
}

/// Checks that records and sorted runs each cover the same rows without a gap. Returns the number
/// of rows.
fn check_cover(
    folder: &Path,
    plan: &KeyPlan,
    records: &[Arc<Records>],
    runs: &[Arc<Run>],
) -> Result<u32, Error> {
    let damaged = |what: &str| Error::damaged(&Content::Manifest.path(folder, 0), what);
    let mut n_rows = 0;
    for records in records {
        if records.first_row() != n_rows || records.n_words() != plan.n_words {
            return Err(damaged(
                "a file of records does not follow the previous one",
            ));
        }
        n_rows += records.n_rows();
    }
    let mut n_run_rows = 0;
    for run in runs {
        if run.first_row() != n_run_rows {
            return Err(damaged("a run does not follow the previous one"));
        }
        n_run_rows += run.n_rows();
    }
    if n_rows == n_run_rows {
        Ok(n_rows)
    } else {
        Err(damaged("records and runs do not cover the same rows"))
    }
}
