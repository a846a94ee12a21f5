//! An index as it is at one moment, and the answers it gives.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arose::DocId;
use arose::rule::{Evidence, Rule};

use super::dead::Dead;
use super::file::{Allowance, Content};
use super::keys::Plan;
use super::log::{self, Change, Frame};
use super::manifest::Manifest;
use super::own::Weighed;
use super::recent::Recent;
use super::records::Records;
use super::run::Run;
use super::screen::Screen;
use super::settings::Settings;
use super::site_counts::SiteCounts;
use super::sketch::Sketch;
use super::{Committed, Error};

/// A document found, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Match {
    /// The name it was inserted under.
    pub name: String,
    /// Its place in the index: smaller came earlier. Compaction closes gaps and so changes places.
    pub doc: DocId,
    /// The rule that makes it a duplicate of the query.
    pub rule: Rule,
    /// The scores.
    pub evidence: Evidence,
    /// One number in `0..=1` to rank matches by: the score that the rule looks at, 1 for equal
    /// content.
    pub similarity: f64,
    /// The scores of the policy `content`, and how many pages they rest on.
    pub content: Option<ContentScores>,
}

/// The scores of the policy `content`, as far as an index knows the sites of both documents.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ContentScores {
    /// The share of the own text that both have in common, in the same order.
    pub weighted: f64,
    /// The same with every weight 1.
    pub unweighted: f64,
    /// Pages of the query's site that were counted so far. A template is not known before five of
    /// its pages, and not surely before nine.
    pub n_site_pages: u64,
}

/// What an index holds, and what it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stats {
    /// Documents that can be found.
    pub n_docs: u64,
    /// Removed documents that still take space.
    pub n_dead: u64,
    /// Documents in memory, which only the log holds.
    pub n_recent: u64,
    /// Sorted runs; a query looks into each.
    pub n_runs: usize,
    /// Files of records.
    pub n_record_files: usize,
    /// Entries in all runs.
    pub n_entries: u64,
    /// Bytes of all files but the log.
    pub disk_bytes: u64,
    /// Bytes of filters, held files and recent documents in memory.
    pub memory_bytes: u64,
}

/// Keys that are looked up together; what more of them read would drive out what the first read.
const MAX_OVERLAP: usize = 64;

/// A document as the index keeps it.
pub(super) struct Prepared<'a> {
    pub(super) name: &'a str,
    pub(super) sketch: Cow<'a, Sketch>,
    /// What its page adds to the counts of its site.
    pub(super) counted: Vec<u64>,
}

impl Prepared<'_> {
    /// Writes what happens when it is inserted.
    pub(super) fn write(&self, frame: &mut Frame) {
        frame.insert(self.name, &self.sketch);
        frame.count(&self.counted);
    }
}

/// Everything a query looks at.
#[derive(Debug)]
pub(super) struct State {
    pub(super) plan: Arc<Plan>,
    /// In the order of their rows, as are the runs.
    pub(super) records: Vec<Arc<Records>>,
    pub(super) runs: Vec<Arc<Run>>,
    pub(super) recent: Recent,
    pub(super) dead: Dead,
    /// What sites repeat; empty unless the policy is `content`.
    pub(super) counts: SiteCounts,
    /// Memory for files that are read often.
    pub(super) allowance: Allowance,
}

/// Documents that a query of the policy `content` compares at most: those with most keys in common.
/// Thousands of pages of one template may have a key in common and are none of them duplicates.
pub(super) const MAX_JUDGED: usize = 512;

impl State {
    /// Opens the files that a manifest names and replays its log, of which the length is returned.
    pub(super) fn open(
        folder: &Path,
        manifest: &Manifest,
        allowance: Allowance,
        committed: Option<Committed>,
        max_counted: u32,
    ) -> Result<(Self, u64), Error> {
        let plan = Arc::new(Plan::new(&manifest.settings));
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
                SiteCounts::read(&path, part.check, max_counted)?
            }
            None => SiteCounts::new(max_counted),
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
            Change::Insert(_, sketch) if sketch.pairs.is_some() || !fits(&sketch, n_words) => {
                Err(Error::damaged(path, "a sketch of another kind"))
            }
            Change::Insert(name, sketch) => {
                self.insert(&name, &sketch, &mut keys);
                Ok(())
            }
            Change::Count(keys) => {
                self.count(&keys);
                Ok(())
            }
            Change::Remove(row) if row >= self.recent.next_row() => {
                Err(Error::damaged(path, "a row outside was removed"))
            }
            Change::Remove(row) => {
                self.dead.insert(row);
                Ok(())
            }
        })
    }

    /// Counts a page of a site.
    pub(super) fn count(&mut self, keys: &[u64]) {
        keys.iter().for_each(|&key| self.counts.add(key, 1));
    }

    /// A document that is to be weighed, as the index keeps it; none if it is so already.
    pub(super) fn weigh(&self, name: Option<&str>, sketch: &Sketch) -> Option<Weighed> {
        self.weigh_by(name, sketch, |key| self.counts.get(key))
    }

    fn weigh_by(
        &self,
        name: Option<&str>,
        sketch: &Sketch,
        n: impl Fn(u64) -> u32,
    ) -> Option<Weighed> {
        let (weighing, pairs) = (self.plan.weighing.as_ref()?, sketch.pairs.as_ref()?);
        Some(weighing.weigh(sketch, pairs, name, n))
    }

    /// Documents as the index keeps them if they are inserted one after the other.
    pub(super) fn prepare<'a>(&self, documents: &[(&'a str, &'a Sketch)]) -> Vec<Prepared<'a>> {
        let mut added: HashMap<u64, u32> = HashMap::new();
        let prepared = documents.iter().map(|&(name, sketch)| {
            let n = |key| self.counts.get(key) + added.get(&key).copied().unwrap_or(0);
            let (sketch, counted) = match self.weigh_by(Some(name), sketch, n) {
                Some(Weighed { sketch, keys, .. }) => (Cow::Owned(sketch), keys),
                None => (Cow::Borrowed(sketch), Vec::new()),
            };
            for &key in &counted {
                *added.entry(key).or_default() += 1;
            }
            Prepared {
                name,
                sketch,
                counted,
            }
        });
        prepared.collect()
    }

    /// Adds a document; `keys` is scratch.
    pub(super) fn insert(&mut self, name: &str, sketch: &Sketch, keys: &mut Vec<u64>) {
        self.plan.document_keys(name, sketch, keys);
        self.recent.push(name, sketch, keys);
    }

    /// All documents that meet the rule with a sketch of this index's kind, in the order in which
    /// they came.
    pub(super) fn query(&self, sketch: &Sketch) -> Result<Vec<Match>, Error> {
        match self.weigh(None, sketch) {
            Some(weighed) => self.query_kept(&weighed.sketch, weighed.n_pages),
            None => self.query_kept(sketch, 0),
        }
    }

    /// As [`State::query`] for a document with a name, and its weighed form if it has one.
    pub(super) fn query_as(
        &self,
        name: &str,
        sketch: &Sketch,
    ) -> Result<(Vec<Match>, Option<Weighed>), Error> {
        let weighed = self.weigh(Some(name), sketch);
        let found = match &weighed {
            Some(weighed) => self.query_kept(&weighed.sketch, weighed.n_pages)?,
            None => self.query_kept(sketch, 0)?,
        };
        Ok((found, weighed))
    }

    fn query_kept(&self, sketch: &Sketch, n_pages: u64) -> Result<Vec<Match>, Error> {
        let mut keys = Vec::new();
        self.plan.sketch_keys(sketch, &mut keys);
        let rows = match self.plan.weighing {
            Some(_) => self.likely(&keys)?,
            None => self.candidates(&keys)?,
        };
        self.judge(sketch, n_pages, rows.into_iter())
    }

    /// The answer of [`State::query`] by looking at every document: the oracle.
    pub(super) fn scan(&self, sketch: &Sketch) -> Result<Vec<Match>, Error> {
        let rows = 0..self.recent.next_row();
        let rows = rows.filter(|&row| !self.dead.contains(row));
        match self.weigh(None, sketch) {
            Some(weighed) => self.judge(&weighed.sketch, weighed.n_pages, rows),
            None => self.judge(sketch, 0, rows),
        }
    }

    /// The rows that meet the rule with a sketch.
    fn judge(
        &self,
        sketch: &Sketch,
        n_pages: u64,
        rows: impl Iterator<Item = u32>,
    ) -> Result<Vec<Match>, Error> {
        let mut matches = Vec::new();
        let mut reader = RowReader::new(self);
        for row in rows {
            let judged = self.plan.judge(sketch, reader.sketch(row)?);
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

    /// The row of the document with this name.
    pub(super) fn row_of(&self, name: &str) -> Result<Option<u32>, Error> {
        for row in self.candidates(&[self.plan.name_key(name)])? {
            if self.name(row)? == name {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    /// A name of these documents that is in the index, or that two of them have. Names that do not
    /// pass the screen are known to be new.
    pub(super) fn find_taken_name(
        &self,
        documents: &[(&str, &Sketch)],
        screen: Option<&Screen>,
    ) -> Result<Option<String>, Error> {
        let names = || documents.iter().map(|(name, _)| *name);
        let mut keys: Vec<u64> = names().map(|name| self.plan.name_key(name)).collect();
        // In this order the filters are read from start to end, which is kinder to the caches.
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
        // Equal names have equal keys, and others hardly ever.
        let mut seen = BTreeSet::new();
        let twice = names().find(|&name| !seen.insert(name));
        Ok(twice.map(str::to_owned))
    }

    /// The sketch in a row.
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

    /// The names of the documents in some rows, in order.
    pub(super) fn names_in(&self, rows: Range<u32>) -> Result<Vec<String>, Error> {
        let rows = rows.start..rows.end.min(self.recent.next_row());
        let rows = rows.filter(|&row| !self.dead.contains(row));
        rows.map(|row| self.name(row)).collect()
    }

    pub(super) fn stats(&self) -> Stats {
        let n_rows = u64::from(self.recent.next_row());
        let files = self.records.iter().map(|records| records.n_bytes());
        let filters = self.runs.iter().map(|run| run.resident_bytes());
        let held = self.records.iter().map(|records| records.held_bytes());
        Stats {
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

    /// The living rows with one of these keys, ascending, and some that have none.
    fn candidates(&self, keys: &[u64]) -> Result<Vec<u32>, Error> {
        let mut rows = self.met(keys)?;
        rows.dedup();
        Ok(rows)
    }

    /// Of the living rows with one of these keys those with most, [`MAX_JUDGED`] of them, the older
    /// first; ascending.
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

    /// The living rows with these keys, ascending, once for each key.
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
        // All directories, then all filters, then the answers: so the cache misses of different
        // keys overlap, and they are most of the time.
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

    /// The file that holds a row which is not recent.
    fn records_of(&self, row: u32) -> &Records {
        let after = self
            .records
            .partition_point(|records| records.first_row() <= row);
        &self.records[after - 1]
    }
}

/// Reads one row after the other into the same memory.
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

/// Whether a sketch has as many words as the index keeps, or none.
fn fits(sketch: &Sketch, n_words: usize) -> bool {
    sketch.words.is_empty() || sketch.words.len() == n_words
}

/// Refuses a sketch of another kind.
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
        let expected = "as many as the index keeps";
        Err(Error::parameter(
            "words of a sketch",
            sketch.words.len(),
            expected,
        ))
    }
}

/// Records and runs must each cover the same rows without a gap; the number of these.
fn check_cover(
    folder: &Path,
    plan: &Plan,
    records: &[Arc<Records>],
    runs: &[Arc<Run>],
) -> Result<u32, Error> {
    let damaged = |what: &str| Error::damaged(&Content::Manifest.path(folder, 0), what);
    let mut n_rows = 0;
    for records in records {
        if records.first_row() != n_rows || records.n_words() != plan.n_words {
            return Err(damaged("a file of records does not follow the one before"));
        }
        n_rows += records.n_rows();
    }
    let mut n_run_rows = 0;
    for run in runs {
        if run.first_row() != n_run_rows {
            return Err(damaged("a run does not follow the one before"));
        }
        n_run_rows += run.n_rows();
    }
    if n_rows == n_run_rows {
        Ok(n_rows)
    } else {
        Err(damaged("records and runs do not cover the same rows"))
    }
}
