//! Last stage, first part: `documents.parquet` and `pairs.parquet`.
//!
//! Within the run, one document represents all its exact duplicates. Here every document gets a
//! row, and so does every pair of a dropped document with its kept one and every other pair
//! verified on the way. If all pairs are requested, [`listing`](super::listing) provides them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arose::rule::{Criterion, Rule};
use arose_corpus::Position;
use arrow_array::ArrayRef;
use arrow_array::builder::{
    BooleanBuilder, Float64Builder, StringBuilder, UInt32Builder, UInt64Builder,
};
use arrow_schema::{DataType, Field, Schema};
use serde::{Deserialize, Serialize};

use crate::column::{Column, Scan};
use crate::config::{Config, Empty, ListedPairs, Verify};
use crate::lookup::{Chosen, Flags};
use crate::losses::IncompleteFile;
use crate::names::{Ids, Name, NameScan};
use crate::record::{Accepted, Copied, DocRecord, EMPTY, FILTERED, NO_SCORE, Ordinal, SUPERSEDED};
use crate::sorter::Sorter;
use crate::source::path_cow;
use crate::stage::cluster::{KEEPERS, NOT_TAKEN, STARS, Star, repair_folder};
use crate::stage::columns::DOCS;
use crate::stage::exact::COPIES;
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

const BATCH_ROWS: usize = 1 << 14;

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
    let mut records = Scan::<DocRecord>::open(&stages.read.join(DOCS))?;
    let mut names = NameScan::open(stages.read)?;
    let stars = Column::<Star>::open(&stages.cluster.join(STARS), config.part(8))?;
    let keepers = Column::<Ordinal>::open(&stages.cluster.join(KEEPERS), config.part(8))?;
    let versions = stages
        .has_versions
        .then(|| Column::<Ordinal>::open(&stages.cluster.join(VERSIONS), config.part(16)));
    let versions = versions.transpose()?;
    let matches = stages
        .lookup
        .map(|folder| IndexMatches::open(folder, config));
    let matches = matches.transpose()?;
    // Read in document order; an exact duplicate uses those of the first document.
    let mut own_stars = Scan::<Star>::open(&stages.cluster.join(STARS))?;
    let mut own_keepers = Scan::<Ordinal>::open(&stages.cluster.join(KEEPERS))?;
    let mut copies = Scan::<Copied>::open(&stages.exact.join(COPIES))?;
    let mut next_copy = copies.next()?;
    let copy_rule = match config.policy.criterion {
        Criterion::Url => Rule::Url,
        _ => Rule::Exact,
    };
    // A row for each document, then its copy in the kept output or its pair.
    progress.expect(2 * read.n_docs);
    let mut quality = QualityTable::open(stages.read, config)?;
    let mut table = Table::create_for(config.output.kept, path, quality.schema(document_schema()))?;
    let mut batch = DocumentRows::default();
    let mut rows = Rows::default();
    for doc in 0..read.n_docs as Ordinal {
        let first = match next_copy {
            Some(copy) if copy.doc == doc => {
                next_copy = copies.next()?;
                copy.first
            }
            _ => doc,
        };
        let in_index = matches
            .as_ref()
            .map(|matches| Verdict::in_index(first, matches));
        let record = records.next()?.expect("a record for every document");
        let mut star = own_stars.next()?.expect("a star for every document");
        let mut keeper = own_keepers.next()?.expect("a keeper for every document");
        if first != doc {
            (star, keeper) = (stars.get(first)?, keepers.get(first)?);
        }
        let mut verdict = match in_index.transpose()?.flatten() {
            _ if record.flags & SUPERSEDED != 0 => Verdict::SUPERSEDED,
            _ if record.flags & FILTERED != 0 => Verdict::FILTERED,
            Some(verdict) => verdict,
            None if config.empty == Empty::Drop && record.flags & EMPTY != 0 => Verdict::EMPTY,
            None => Verdict::of(doc, &record, &star, keeper, &keepers, copy_rule)?,
        };
        let is_decided_here = verdict.kept_doc.is_some() || verdict.rule.is_none();
        if let Some(versions) = versions.as_ref().filter(|_| is_decided_here) {
            let kept = if star.centre == NOT_TAKEN {
                first
            } else {
                star.centre
            };
            verdict.group = Some(keepers.get(versions.get(kept)?)?);
        }
        dropped.add(doc, &verdict)?;
        let position = Position {
            offset: record.offset,
            inner: record.inner,
        };
        match verdict.rule {
            None => {
                rows.kept += 1;
                let end = record.end;
                keep(doc, record.source, Span { position, end })?;
            }
            Some(Rule::Filter) => rows.dropped_filtered += 1,
            Some(Rule::Superseded) => rows.dropped_superseded += 1,
            Some(_) if verdict.known_as.is_some() => rows.dropped_known += 1,
            Some(Rule::Exact) => rows.dropped_exact += 1,
            Some(Rule::Empty) => rows.dropped_empty += 1,
            Some(_) => rows.dropped_near += 1,
        }
        let source = &read.sources[record.source as usize].path;
        let shown = quality.next(&record)?;
        batch.push(doc, &names.next()?, &shown, source, &verdict);
        if batch.doc_len() == BATCH_ROWS {
            table.write(quality.columns(batch.finish()))?;
            progress.advance(BATCH_ROWS as u64)?;
        }
    }
    progress.advance(batch.doc_len() as u64)?;
    table.write(quality.columns(batch.finish()))?;
    table.close()?;
    // These have no pair.
    let others = rows.dropped_filtered + rows.dropped_superseded;
    progress.advance(rows.dropped_known + rows.dropped_empty + others)?;
    Ok(rows)
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
    cluster: UInt64Builder,
    kept: BooleanBuilder,
    kept_doc: UInt64Builder,
    rule: StringBuilder,
    similarity: Float64Builder,
    known_as: StringBuilder,
    group: UInt64Builder,
}

impl DocumentRows {
    fn doc_len(&self) -> usize {
        use arrow_array::builder::ArrayBuilder;
        self.doc.len()
    }

    pub(crate) fn push(
        &mut self,
        doc: Ordinal,
        name: &Name,
        record: &DocRecord,
        source: &Path,
        verdict: &Verdict,
    ) {
        let position = Position {
            offset: record.offset,
            inner: record.inner,
        };
        self.doc.append_value(doc.into());
        self.id.append_value(&name.id);
        self.url.append_option(name.url.as_deref());
        self.source.append_value(path_cow(source));
        append_display(&mut self.position, position);
        append_display(&mut self.digest, record.content());
        self.n_tokens.append_value(record.n_tokens);
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
