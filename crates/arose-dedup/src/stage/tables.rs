//! Last stage, first part: `documents.parquet` and `pairs.parquet`.
//!
//! Within the run, one document represents all its exact duplicates. Here every document gets a
//! row, and so does every pair of a dropped document with its kept one and every other pair
//! verified on the way. If all pairs are requested, [`listing`](super::listing) provides them.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arose::rule::Rule;
use arose_corpus::html::Mode;
use arrow_array::ArrayRef;
use arrow_array::builder::{
    BooleanBuilder, Float64Builder, StringBuilder, UInt32Builder, UInt64Builder,
};
use arrow_schema::{DataType, Field, Schema};
use bytemuck::Zeroable;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::column::{Column, Scan};
use crate::config::{Config, Empty, ListedPairs, Verify};
use crate::lookup::{Chosen, Flags};
use crate::losses::IncompleteFile;
use crate::names::{Ids, NameRange};
use crate::record::{Accepted, Copied, DocRecord, EMPTY, FILTERED, NO_SCORE, Ordinal, SUPERSEDED};
use crate::sorter::Sorter;
use crate::source::path_cow;
use crate::stage::cluster::{KEEPERS, NOT_TAKEN, STARS, Star, repair_folder};
use crate::stage::columns::{DOCS, NAMES};
use crate::stage::exact::{self, COPIES};
use crate::stage::indexed::IndexMatches;
use crate::stage::kept::Span;
use crate::stage::listing::list_all;
use crate::stage::quality::QualityTable;
use crate::stage::read::Read;
use crate::stage::verdict::Verdict;
use crate::stage::verify::PAIRS;
use crate::stage::versions::{KEPT_VERSIONS, VERSIONS};
use crate::table::Table;
use crate::{Error, Progress};

/// Number of pairs whose rows are made together.
const BATCH_ROWS: usize = 1 << 14;
/// Number of documents whose rows a thread makes together.
const BATCH_DOCS: u64 = 1 << 12;

/// Counts of written rows.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Rows {
    pub(crate) kept: u64,
    pub(crate) dropped_exact: u64,
    pub(crate) dropped_near: u64,
    /// Dropped because they have no text, if empty documents are dropped.
    #[serde(default)]
    pub(crate) dropped_empty: u64,
    /// Rejected by a filter.
    #[serde(default)]
    pub(crate) dropped_filtered: u64,
    /// Versions of pages that were fetched again later.
    #[serde(default)]
    pub(crate) dropped_superseded: u64,
    /// Already in the index.
    #[serde(default)]
    pub(crate) dropped_known: u64,
    /// Kept documents for which others were dropped.
    pub(crate) clusters: u64,
    /// Number of documents of the largest cluster.
    pub(crate) largest_cluster: u64,
    /// Number of documents in clusters.
    pub(crate) clustered: u64,
    /// Number of rows in `pairs.parquet`.
    pub(crate) pairs: u64,
    /// Pairs of exact duplicates that represent too many pairs to list.
    pub(crate) pairs_not_listed: u64,
    /// The file or directory of the kept documents.
    pub(crate) kept_in: Option<String>,
    /// Files with kept records that could not be copied.
    #[serde(default)]
    pub(crate) lost: Vec<IncompleteFile>,
}

impl Rows {
    /// Counts a document.
    fn count(&mut self, verdict: &Verdict) {
        let n = match verdict.rule {
            None => &mut self.kept,
            Some(Rule::Filter) => &mut self.dropped_filtered,
            Some(Rule::Superseded) => &mut self.dropped_superseded,
            Some(_) if verdict.known_as.is_some() => &mut self.dropped_known,
            Some(Rule::Exact) => &mut self.dropped_exact,
            Some(Rule::Empty) => &mut self.dropped_empty,
            Some(_) => &mut self.dropped_near,
        };
        *n += 1;
    }
}

/// The directories of the earlier stages.
pub(crate) struct Stages<'a> {
    pub(crate) read: &'a Path,
    /// Whether kept documents were grouped by their versions.
    pub(crate) has_versions: bool,
    pub(crate) exact: &'a Path,
    pub(crate) verify: &'a Path,
    pub(crate) cluster: &'a Path,
    /// Rounds of repair that found pairs.
    pub(crate) n_repairs: u32,
    /// The directory of index lookups, if there is an index.
    pub(crate) lookup: Option<&'a Path>,
}

impl Stages<'_> {
    /// The files of the accepted pairs.
    pub(crate) fn accepted(&self) -> impl Iterator<Item = PathBuf> {
        let repairs = (0..self.n_repairs).map(|round| repair_folder(self.cluster, round));
        let versions = self.has_versions.then(|| self.cluster.join(KEPT_VERSIONS));
        let folders = std::iter::once(self.verify.to_owned()).chain(repairs);
        let folders = folders.chain(versions);
        folders.map(|folder| folder.join(PAIRS))
    }
}

/// Writes a row for every document. `keep` is called with the kept documents and their positions.
/// Documents dropped for a document of the run are added to `dropped`.
pub(crate) fn write_documents(
    stages: &Stages<'_>,
    read: &Read,
    config: &Config,
    path: &Path,
    progress: &Progress,
    dropped: &mut Dropped,
    mut keep: impl FnMut(Ordinal, u32, Span) -> Result<(), Error>,
) -> Result<Rows, Error> {
    let decisions = Decisions::open(stages, read, config)?;
    let mut copies = Scan::<Copied>::open(&stages.exact.join(COPIES))?;
    let mut next_copy = copies.next()?;
    // A row for each document, then its copy in the kept output or its pair.
    progress.expect(2 * read.n_docs);
    let schema = decisions.quality.schema(document_schema());
    let mut table = Table::create_together(config.output.kept, path, schema)?;
    let mut rows = Rows::default();
    let n_at_once = 2 * BATCH_DOCS * rayon::current_num_threads() as u64;
    let mut start = 0;
    while start < read.n_docs {
        let end = read.n_docs.min(start + n_at_once);
        let mut batches = Vec::new();
        for start in (start..end).step_by(BATCH_DOCS as usize) {
            let docs = start..end.min(start + BATCH_DOCS);
            let mut own_copies = Vec::new();
            while let Some(copy) = next_copy.filter(|copy| u64::from(copy.doc) < docs.end) {
                own_copies.push(copy);
                next_copy = copies.next()?;
            }
            batches.push((docs, own_copies));
        }
        let decided = batches.into_par_iter();
        let decided = decided.map(|(docs, copies)| decisions.decide(docs, &copies));
        let mut columns = Vec::new();
        for batch in decided.collect::<Result<Vec<_>, Error>>()? {
            let n_docs = batch.verdicts.len() as u64;
            for ((doc, record), verdict) in (start..).zip(&batch.records).zip(&batch.verdicts) {
                rows.count(verdict);
                dropped.add(doc as Ordinal, verdict)?;
                if verdict.rule.is_none() {
                    let position = record.position();
                    let end = record.end;
                    keep(doc as Ordinal, record.source, Span { position, end })?;
                }
            }
            columns.push(batch.columns);
            progress.advance(n_docs)?;
            start += n_docs;
        }
        table.write_all(columns)?;
    }
    table.close()?;
    // These have no pair.
    let others = rows.dropped_filtered + rows.dropped_superseded;
    progress.advance(rows.dropped_known + rows.dropped_empty + others)?;
    Ok(rows)
}

/// What the decisions on documents depend on, for any thread to read.
struct Decisions<'a> {
    read: &'a Read,
    empty: Empty,
    /// The rule of exact duplicates.
    copy_rule: Rule,
    records: Column<DocRecord>,
    names: Column<u8>,
    stars: Column<Star>,
    keepers: Column<Ordinal>,
    versions: Option<Column<Ordinal>>,
    matches: Option<IndexMatches>,
    quality: QualityTable,
}

/// Documents with their rows and decisions.
struct Decided {
    columns: Vec<ArrayRef>,
    records: Vec<DocRecord>,
    verdicts: Vec<Verdict>,
}

impl<'a> Decisions<'a> {
    fn open(stages: &Stages<'_>, read: &'a Read, config: &Config) -> Result<Self, Error> {
        let versions = stages.cluster.join(VERSIONS);
        let versions = stages
            .has_versions
            .then(|| Column::open(&versions, config.part(16)));
        let matches = stages
            .lookup
            .map(|folder| IndexMatches::open(folder, config));
        Ok(Self {
            read,
            empty: config.empty,
            copy_rule: exact::copy_rule(config),
            records: Column::open(&stages.read.join(DOCS), 0)?,
            names: Column::open(&stages.read.join(NAMES), 0)?,
            stars: Column::open(&stages.cluster.join(STARS), config.part(8))?,
            keepers: Column::open(&stages.cluster.join(KEEPERS), config.part(8))?,
            versions: versions.transpose()?,
            matches: matches.transpose()?,
            quality: QualityTable::open(stages.read, config)?,
        })
    }

    /// Decides on documents, of which these are copies of earlier documents.
    fn decide(&self, docs: Range<u64>, copies: &[Copied]) -> Result<Decided, Error> {
        let n_docs = (docs.end - docs.start) as usize;
        let mut records = vec![DocRecord::zeroed(); n_docs];
        self.records.read_into(docs.start, &mut records)?;
        let mut stars = vec![Star::zeroed(); n_docs];
        self.stars.read_into(docs.start, &mut stars)?;
        let mut keepers = vec![0; n_docs];
        self.keepers.read_into(docs.start, &mut keepers)?;
        // Rejected documents are shown with the number of their tokens.
        let mut shown = records.clone();
        let quality = self.quality.columns(docs.start, &mut shown)?;
        let mut names = self.names(&docs, &records)?;
        let mut copies = copies.iter().peekable();
        let mut rows = DocumentRows::default();
        let mut verdicts = Vec::with_capacity(n_docs);
        for (i, doc) in (docs.start as Ordinal..).take(n_docs).enumerate() {
            let copy = copies.next_if(|copy| copy.doc == doc);
            let first = copy.map_or(doc, |copy| copy.first);
            let (mut star, mut keeper) = (stars[i], keepers[i]);
            // An exact duplicate uses those of the first document.
            if first != doc {
                (star, keeper) = (self.stars.get(first)?, self.keepers.get(first)?);
            }
            let verdict = self.verdict(doc, first, &records[i], &star, keeper)?;
            let source = &self.read.sources[records[i].source as usize].path;
            let (id, url) = names.next();
            rows.push(doc, (&id, url.as_deref()), &shown[i], source, &verdict);
            verdicts.push(verdict);
        }
        let mut columns = rows.finish();
        columns.extend(quality);
        Ok(Decided {
            columns,
            records,
            verdicts,
        })
    }

    /// Reads the names of documents.
    fn names(&self, docs: &Range<u64>, records: &[DocRecord]) -> Result<NameRange, Error> {
        let start = records.first().map_or(0, |record| record.names_at);
        let end = match docs.end < self.read.n_docs {
            true => self.records.get(docs.end as Ordinal)?.names_at,
            false => self.names.len()?,
        };
        NameRange::read(&self.names, start, end)
    }

    /// Decides on a document by star and keeper of `first`, the first document of its content.
    fn verdict(
        &self,
        doc: Ordinal,
        first: Ordinal,
        record: &DocRecord,
        star: &Star,
        keeper: Ordinal,
    ) -> Result<Verdict, Error> {
        let in_index = self.matches.as_ref();
        let in_index = in_index.map(|matches| Verdict::in_index(first, matches));
        let mut verdict = match in_index.transpose()?.flatten() {
            _ if record.flags & SUPERSEDED != 0 => Verdict::SUPERSEDED,
            _ if record.flags & FILTERED != 0 => Verdict::FILTERED,
            Some(verdict) => verdict,
            None if self.empty == Empty::Drop && record.flags & EMPTY != 0 => Verdict::EMPTY,
            None => Verdict::of(doc, record, star, keeper, &self.keepers, self.copy_rule)?,
        };
        let is_decided_here = verdict.kept_doc.is_some() || verdict.rule.is_none();
        if let Some(versions) = self.versions.as_ref().filter(|_| is_decided_here) {
            let kept = if star.centre == NOT_TAKEN {
                first
            } else {
                star.centre
            };
            verdict.group = Some(self.keepers.get(versions.get(kept)?)?);
        }
        Ok(verdict)
    }
}

/// Documents dropped for others of the run, to be counted and listed.
pub(crate) struct Dropped {
    /// The kept document of each.
    kept: Sorter<Ordinal>,
    /// Their pairs.
    pairs: Sorter<Accepted>,
    is_listed: Flags,
    listing: ListedPairs,
}

impl Dropped {
    pub(crate) fn new(n_docs: u64, config: &Config, scratch: &Path) -> Self {
        Self {
            kept: Sorter::new(&scratch.join("kept_docs"), config.part(16)),
            pairs: Sorter::new(&scratch.join("listed"), config.part(8)),
            is_listed: Flags::new(n_docs as usize),
            listing: config.pairs,
        }
    }

    fn add(&mut self, doc: Ordinal, verdict: &Verdict) -> Result<(), Error> {
        let Some(kept) = verdict.kept_doc else {
            return Ok(());
        };
        self.kept.push(kept)?;
        self.is_listed.set(doc as usize);
        self.is_listed.set(kept as usize);
        match (self.listing, verdict.scores) {
            (ListedPairs::Verified, Some(scores)) => {
                self.pairs.push(Accepted::new(kept, doc, scores))
            }
            _ => Ok(()),
        }
    }

    /// Adds the other verified pairs.
    fn add_verified(&mut self, stages: &Stages<'_>) -> Result<(), Error> {
        for path in stages.accepted() {
            let mut pairs = Scan::<Accepted>::open(&path)?;
            while let Some(pair) = pairs.next()? {
                self.is_listed.set(pair.a as usize);
                self.is_listed.set(pair.b as usize);
                self.pairs.push(pair)?;
            }
        }
        Ok(())
    }

    /// Counts the clusters and writes the pairs, by ordinals.
    pub(crate) fn write_pairs(
        mut self,
        stages: &Stages<'_>,
        config: &Config,
        scratch: &Path,
        path: &Path,
        rows: &mut Rows,
        progress: &Progress,
    ) -> Result<(), Error> {
        let n_docs = self.is_listed.len() as u64;
        if self.listing == ListedPairs::All {
            list_all(stages, n_docs, config, scratch, rows, &mut self.pairs)?;
            // Pairs of documents that belong to different clusters are listed too.
            self.is_listed = Flags::all(self.is_listed.len());
        } else {
            self.add_verified(stages)?;
        }
        count_clusters(self.kept, rows)?;
        let chosen = Arc::new(Chosen::new(self.is_listed));
        let ids = Ids::open(stages.read, n_docs, &chosen, config.part(4))?;
        write_rows(self.pairs, &ids, config, path, rows)?;
        progress.advance(rows.dropped_exact + rows.dropped_near)
    }
}

fn count_clusters(kept: Sorter<Ordinal>, rows: &mut Rows) -> Result<(), Error> {
    let mut kept = kept.finish()?;
    let mut next = kept.next()?;
    while let Some(doc) = next {
        let mut n = 1;
        while next == Some(doc) {
            n += 1;
            next = kept.next()?;
        }
        rows.clusters += 1;
        rows.clustered += n;
        rows.largest_cluster = rows.largest_cluster.max(n);
    }
    Ok(())
}

fn write_rows(
    pairs: Sorter<Accepted>,
    ids: &Ids,
    config: &Config,
    path: &Path,
    rows: &mut Rows,
) -> Result<(), Error> {
    let mut pairs = pairs.finish()?;
    let mut table = Table::create_for(config.output.kept, path, pair_schema())?;
    let mut batch = PairRows::default();
    let mut last = None;
    while let Some(pair) = pairs.next()? {
        // A dropped document and its kept one were verified.
        if last.replace([pair.a, pair.b]) == Some([pair.a, pair.b]) {
            continue;
        }
        ids.with(pair.a, |a| {
            ids.with(pair.b, |b| batch.push(&pair, [a, b], config.verify))
        })??;
        rows.pairs += 1;
        if rows.pairs.is_multiple_of(BATCH_ROWS as u64) {
            table.write(batch.finish())?;
        }
    }
    table.write(batch.finish())?;
    table.close()
}

pub(crate) fn document_schema() -> Schema {
    Schema::new(vec![
        Field::new("doc", DataType::UInt64, false),
        Field::new("id", DataType::Utf8, false),
        Field::new("url", DataType::Utf8, true),
        Field::new("source", DataType::Utf8, false),
        Field::new("position", DataType::Utf8, false),
        Field::new("digest", DataType::Utf8, false),
        Field::new("n_tokens", DataType::UInt32, false),
        Field::new("mode", DataType::Utf8, true),
        Field::new("cluster", DataType::UInt64, false),
        Field::new("kept", DataType::Boolean, false),
        Field::new("kept_doc", DataType::UInt64, true),
        Field::new("rule", DataType::Utf8, true),
        Field::new("similarity", DataType::Float64, true),
        Field::new("known_as", DataType::Utf8, true),
        Field::new("group", DataType::UInt64, false),
    ])
}

/// Appends a value as text, without a string in between.
fn append_display(texts: &mut StringBuilder, value: impl std::fmt::Display) {
    use std::fmt::Write as _;
    write!(texts, "{value}").expect("a builder takes all texts");
    // Ends the value that was written.
    texts.append_value("");
}

#[derive(Default)]
pub(crate) struct DocumentRows {
    doc: UInt64Builder,
    id: StringBuilder,
    url: StringBuilder,
    source: StringBuilder,
    position: StringBuilder,
    digest: StringBuilder,
    n_tokens: UInt32Builder,
    mode: StringBuilder,
    cluster: UInt64Builder,
    kept: BooleanBuilder,
    kept_doc: UInt64Builder,
    rule: StringBuilder,
    similarity: Float64Builder,
    known_as: StringBuilder,
    group: UInt64Builder,
}

impl DocumentRows {
    /// Adds the row of a document with this ID and URL.
    pub(crate) fn push(
        &mut self,
        doc: Ordinal,
        (id, url): (&str, Option<&str>),
        record: &DocRecord,
        source: &Path,
        verdict: &Verdict,
    ) {
        self.doc.append_value(doc.into());
        self.id.append_value(id);
        self.url.append_option(url);
        self.source.append_value(path_cow(source));
        append_display(&mut self.position, record.position());
        append_display(&mut self.digest, record.content());
        self.n_tokens.append_value(record.n_tokens);
        self.mode.append_option(record.mode().map(Mode::as_str));
        let cluster = verdict.kept_doc.unwrap_or(doc);
        self.cluster.append_value(cluster.into());
        self.kept.append_value(verdict.rule.is_none());
        self.kept_doc.append_option(verdict.kept_doc.map(u64::from));
        self.rule.append_option(verdict.rule.map(Rule::as_str));
        self.similarity.append_option(verdict.similarity);
        self.known_as.append_option(verdict.known_as.as_deref());
        self.group
            .append_value(verdict.group.unwrap_or(cluster).into());
    }

    pub(crate) fn finish(&mut self) -> Vec<ArrayRef> {
        vec![
            Arc::new(self.doc.finish()),
            Arc::new(self.id.finish()),
            Arc::new(self.url.finish()),
            Arc::new(self.source.finish()),
            Arc::new(self.position.finish()),
            Arc::new(self.digest.finish()),
            Arc::new(self.n_tokens.finish()),
            Arc::new(self.mode.finish()),
            Arc::new(self.cluster.finish()),
            Arc::new(self.kept.finish()),
            Arc::new(self.kept_doc.finish()),
            Arc::new(self.rule.finish()),
            Arc::new(self.similarity.finish()),
            Arc::new(self.known_as.finish()),
            Arc::new(self.group.finish()),
        ]
    }
}

pub(crate) fn pair_schema() -> Schema {
    Schema::new(vec![
        Field::new("a", DataType::UInt64, false),
        Field::new("b", DataType::UInt64, false),
        Field::new("id_a", DataType::Utf8, false),
        Field::new("id_b", DataType::Utf8, false),
        Field::new("jaccard", DataType::Float64, true),
        Field::new("b_sim", DataType::UInt32, true),
        Field::new("c_sim", DataType::UInt32, true),
        Field::new("content", DataType::Float64, true),
        Field::new("content_unweighted", DataType::Float64, true),
        Field::new("rule", DataType::Utf8, false),
        Field::new("verified", DataType::Utf8, false),
    ])
}

#[derive(Default)]
pub(crate) struct PairRows {
    a: UInt64Builder,
    b: UInt64Builder,
    id_a: StringBuilder,
    id_b: StringBuilder,
    jaccard: Float64Builder,
    b_sim: UInt32Builder,
    c_sim: UInt32Builder,
    content: Float64Builder,
    content_unweighted: Float64Builder,
    rule: StringBuilder,
    verified: StringBuilder,
}

impl PairRows {
    pub(crate) fn push(&mut self, pair: &Accepted, ids: [&str; 2], verify: Verify) {
        let score = |score: u16| (score != NO_SCORE).then_some(u32::from(score));
        let scores = &pair.scores;
        let rule = scores.rule();
        // Exact duplicates need no further verification.
        let verified = match rule {
            Rule::Exact => "text",
            _ => verify.as_str(),
        };
        self.a.append_value(pair.a.into());
        self.b.append_value(pair.b.into());
        self.id_a.append_value(ids[0]);
        self.id_b.append_value(ids[1]);
        self.jaccard.append_option(scores.jaccard());
        self.b_sim.append_option(score(scores.b_sim));
        self.c_sim.append_option(score(scores.c_sim));
        let [weighted, plain] = scores.content();
        self.content.append_option(weighted);
        self.content_unweighted.append_option(plain);
        self.rule.append_value(rule.as_str());
        self.verified.append_value(verified);
    }

    pub(crate) fn finish(&mut self) -> Vec<ArrayRef> {
        vec![
            Arc::new(self.a.finish()),
            Arc::new(self.b.finish()),
            Arc::new(self.id_a.finish()),
            Arc::new(self.id_b.finish()),
            Arc::new(self.jaccard.finish()),
            Arc::new(self.b_sim.finish()),
            Arc::new(self.c_sim.finish()),
            Arc::new(self.content.finish()),
            Arc::new(self.content_unweighted.finish()),
            Arc::new(self.rule.finish()),
            Arc::new(self.verified.finish()),
        ]
    }
}
