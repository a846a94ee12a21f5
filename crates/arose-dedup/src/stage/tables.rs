//! Last stage, first part: `documents.parquet` and `pairs.parquet`.
//!
//! Inside the run one document stands for all of equal content; here every document gets its row
//! and every pair its copies: a pair of contents held by `x` and `y` documents stands for `x y`
//! pairs. That may be far more than anyone wants (a million copies of one page are half a trillion
//! pairs), so products above a limit are listed from first to first only, and copies beyond it from
//! the first to each, which still ties all of them together. The limit is the largest power of two
//! with which about 64 pairs a document are listed ([`Products`]), so it does not bind for most
//! corpora.
//!
//! Under the site policy contents are judged by the sites of their first documents. Copies on other
//! sites share that verdict, but a pair of them is listed only if the rule holds for their own.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arose::rule::{Criterion, Evidence, Policy, Rule, decide};
use arose_corpus::Position;
use arrow_array::builder::{
    BooleanBuilder, Float64Builder, StringBuilder, UInt32Builder, UInt64Builder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use bytemuck::{Pod, Zeroable};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use serde::{Deserialize, Serialize};

use crate::column::{Column, Scan};
use crate::config::{Config, Empty, Verify};
use crate::lookup::Chosen;
use crate::names::{Ids, Name, NameScan};
use crate::products::Products;
use crate::record::{Accepted, Copied, DocRecord, EMPTY, NO_SCORE, Ordinal, Vectors, rule_index};
use crate::scheme::site_relation;
use crate::sorter::Sorter;
use crate::source::path_text;
use crate::stage::cluster::{KEEPERS, LABELS, STARS, Star};
use crate::stage::exact::COPIES;
use crate::stage::kept::Span;
use crate::stage::known::Answers;
use crate::stage::read::{DOCS, Read, VECTORS};
use crate::stage::verdict::Verdict;
use crate::stage::verify::PAIRS;
use crate::{Error, Progress};

const BATCH_ROWS: usize = 1 << 14;

/// What was written.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Rows {
    pub(crate) kept: u64,
    pub(crate) dropped_exact: u64,
    pub(crate) dropped_near: u64,
    /// Without text, if they are not wanted.
    #[serde(default)]
    pub(crate) dropped_empty: u64,
    /// Of what an index holds.
    #[serde(default)]
    pub(crate) dropped_known: u64,
    /// Rows in `pairs.parquet`.
    pub(crate) pairs: u64,
    /// Pairs of copies that stand for too many to list.
    pub(crate) pairs_not_listed: u64,
    /// The file or folder of the documents kept.
    pub(crate) kept_in: String,
}

/// Where the stages before left their results.
pub(crate) struct Stages<'a> {
    pub(crate) read: &'a Path,
    pub(crate) exact: &'a Path,
    pub(crate) verify: &'a Path,
    pub(crate) cluster: &'a Path,
    /// Where an index was asked, if one was.
    pub(crate) known: Option<&'a Path>,
}

/// Writes the row of every document; `keep` is told which stay, and where these are.
pub(crate) fn write_documents(
    stages: &Stages<'_>,
    read: &Read,
    config: &Config,
    path: &Path,
    progress: &Progress,
    mut keep: impl FnMut(Ordinal, u32, Span) -> Result<(), Error>,
) -> Result<Rows, Error> {
    let mut records = Scan::<DocRecord>::open(&stages.read.join(DOCS))?;
    let mut names = NameScan::open(stages.read)?;
    let stars = Column::<Star>::open(&stages.cluster.join(STARS), config.part(8))?;
    let keepers = Column::<Ordinal>::open(&stages.cluster.join(KEEPERS), config.part(8))?;
    let mut labels = Scan::<Ordinal>::open(&stages.cluster.join(LABELS))?;
    let answers = stages.known.map(|folder| Answers::open(folder, config));
    let answers = answers.transpose()?;
    let mut copies = Scan::<Copied>::open(&stages.exact.join(COPIES))?;
    let mut next_copy = copies.next()?;
    progress.expect(read.n_docs);
    let mut table = Table::create(path, document_schema())?;
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
        let label = labels.next()?.expect("a label for every document");
        let held = answers
            .as_ref()
            .map(|answers| Verdict::held(first, answers));
        let record = records.next()?.expect("a record for every document");
        let verdict = match held.transpose()?.flatten() {
            Some(verdict) => verdict,
            None if config.empty == Empty::Drop && record.flags & EMPTY != 0 => Verdict::EMPTY,
            None => Verdict::of(doc, first, &stars, &keepers)?,
        };
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
            Some(_) if verdict.known_as.is_some() => rows.dropped_known += 1,
            Some(Rule::Exact) => rows.dropped_exact += 1,
            Some(Rule::Empty) => rows.dropped_empty += 1,
            Some(_) => rows.dropped_near += 1,
        }
        let source = &read.sources[record.source as usize].path;
        batch.push(doc, &names.next()?, &record, source, label, &verdict);
        if batch.doc_len() == BATCH_ROWS {
            table.write(batch.finish())?;
            progress.advance(BATCH_ROWS as u64)?;
        }
    }
    table.write(batch.finish())?;
    table.close()?;
    Ok(rows)
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
    ])
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
        label: Ordinal,
        verdict: &Verdict,
    ) {
        let position = Position {
            offset: record.offset,
            inner: record.inner,
        };
        self.doc.append_value(doc.into());
        self.id.append_value(&name.id);
        self.url.append_option(name.url.as_deref());
        self.source.append_value(path_text(source));
        self.position.append_value(position.to_string());
        self.digest.append_value(record.content().to_string());
        self.n_tokens.append_value(record.n_tokens);
        self.cluster.append_value(label.into());
        self.kept.append_value(verdict.rule.is_none());
        self.kept_doc.append_option(verdict.kept_doc.map(u64::from));
        self.rule.append_option(verdict.rule.map(Rule::as_str));
        self.similarity.append_option(verdict.similarity);
        self.known_as.append_option(verdict.known_as.as_deref());
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
        ]
    }
}

/// A pair to be listed, in the order of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Listed {
    pub(crate) a: Ordinal,
    pub(crate) b: Ordinal,
    /// Bits of the coefficient.
    jaccard: u64,
    b_sim: u16,
    c_sim: u16,
    rule: u32,
}

/// Writes every accepted pair, copies included, by ordinals.
pub(crate) fn write_pairs(
    stages: &Stages<'_>,
    config: &Config,
    scratch: &Path,
    path: &Path,
    rows: &mut Rows,
) -> Result<(), Error> {
    let classes = Classes::load(stages)?;
    let sites = Sites::open(stages, config)?;
    let n_dropped = rows.dropped_exact + rows.dropped_near + rows.dropped_empty;
    let n_docs = rows.kept + n_dropped + rows.dropped_known;
    let limit = classes.limit(stages, n_docs)?;
    let mut sorter = Sorter::new(&scratch.join("listed"), config.part(4));
    classes.list_copies(stages, limit, rows, &mut sorter)?;
    let mut pairs = Scan::<Accepted>::open(&stages.verify.join(PAIRS))?;
    while let Some(pair) = pairs.next()? {
        classes.list_pair(&pair, limit, sites.as_ref(), rows, &mut sorter)?;
    }
    let mut listed = sorter.finish()?;
    let chosen = Arc::new(clustered(stages, n_docs)?);
    let ids = Ids::open(stages.read, n_docs, &chosen, config.part(4))?;
    let mut table = Table::create(path, pair_schema())?;
    let mut batch = PairRows::default();
    while let Some(pair) = listed.next()? {
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

/// The documents that are not alone in their cluster: those that are in a pair.
fn clustered(stages: &Stages<'_>, n_docs: u64) -> Result<Chosen, Error> {
    let mut labels = Scan::<Ordinal>::open(&stages.cluster.join(LABELS))?;
    let mut is_clustered = vec![false; n_docs as usize];
    for doc in 0..n_docs as usize {
        let label = labels.next()?.expect("a label for every document") as usize;
        if label != doc {
            (is_clustered[doc], is_clustered[label]) = (true, true);
        }
    }
    Ok(Chosen::new(&is_clustered))
}

/// The copies of each content.
struct Classes {
    /// Sorted by first document.
    copies: Vec<Copied>,
}

impl Classes {
    fn load(stages: &Stages<'_>) -> Result<Self, Error> {
        let mut scan = Scan::<Copied>::open(&stages.exact.join(COPIES))?;
        let mut copies = Vec::with_capacity(scan.left() as usize);
        while let Some(copy) = scan.next()? {
            copies.push(copy);
        }
        copies.sort_unstable_by_key(|copy| (copy.first, copy.doc));
        Ok(Self { copies })
    }

    /// The copies of the content that `first` is first of, itself not included.
    fn copies_of(&self, first: Ordinal) -> &[Copied] {
        let start = self.copies.partition_point(|copy| copy.first < first);
        let n = self.copies[start..].partition_point(|copy| copy.first == first);
        &self.copies[start..start + n]
    }

    /// The documents of a content.
    fn members(&self, first: Ordinal) -> impl Iterator<Item = Ordinal> + Clone {
        let copies = self.copies_of(first).iter().map(|copy| copy.doc);
        std::iter::once(first).chain(copies)
    }

    fn size(&self, first: Ordinal) -> u64 {
        self.copies_of(first).len() as u64 + 1
    }

    /// The largest product of copies that is listed in full.
    fn limit(&self, stages: &Stages<'_>, n_docs: u64) -> Result<u64, Error> {
        let mut products = Products::default();
        for class in self.copies.chunk_by(|a, b| a.first == b.first) {
            let n = class.len() as u64 + 1;
            products.count(n * (n - 1) / 2);
        }
        let mut pairs = Scan::<Accepted>::open(&stages.verify.join(PAIRS))?;
        while let Some(pair) = pairs.next()? {
            products.count(self.size(pair.a) * self.size(pair.b));
        }
        Ok(products.limit(n_docs))
    }

    /// Lists the pairs of equal content. Those of documents without tokens carry no scores.
    fn list_copies(
        &self,
        stages: &Stages<'_>,
        limit: u64,
        rows: &mut Rows,
        sorter: &mut Sorter<Listed>,
    ) -> Result<(), Error> {
        let docs = Column::<DocRecord>::open(&stages.read.join(DOCS), 0)?;
        for class in self.copies.chunk_by(|a, b| a.first == b.first) {
            let first = class[0].first;
            let exact = exact_scores(docs.get(first)?.n_tokens);
            let n = class.len() as u64 + 1;
            if n * (n - 1) / 2 > limit {
                rows.pairs_not_listed += n * (n - 1) / 2 - class.len() as u64;
                for copy in class {
                    sorter.push(listed(first, copy.doc, &exact))?;
                }
                continue;
            }
            let members: Vec<Ordinal> = self.members(first).collect();
            for (i, &a) in members.iter().enumerate() {
                for &b in &members[i + 1..] {
                    sorter.push(listed(a, b, &exact))?;
                }
            }
        }
        Ok(())
    }

    fn list_pair(
        &self,
        pair: &Accepted,
        limit: u64,
        sites: Option<&Sites>,
        rows: &mut Rows,
        sorter: &mut Sorter<Listed>,
    ) -> Result<(), Error> {
        if self.copies.is_empty() {
            return sorter.push(listed(pair.a, pair.b, pair));
        }
        let product = self.size(pair.a) * self.size(pair.b);
        if product > limit {
            rows.pairs_not_listed += product - 1;
            return sorter.push(listed(pair.a, pair.b, pair));
        }
        for a in self.members(pair.a) {
            for b in self.members(pair.b) {
                let rule = match sites {
                    None => Some(pair.rule),
                    Some(sites) => sites.rule(a, b, pair)?,
                };
                if let Some(rule) = rule {
                    sorter.push(listed(a, b, &Accepted { rule, ..*pair }))?;
                }
            }
        }
        Ok(())
    }
}

/// The scores of two documents of equal content, which have none without tokens.
pub(crate) fn exact_scores(n_tokens: u32) -> Accepted {
    let has_none = n_tokens == 0;
    let score = |score| if has_none { NO_SCORE } else { score };
    Accepted {
        a: 0,
        b: 0,
        jaccard: if has_none { f64::NAN } else { 1.0 },
        b_sim: score(6),
        c_sim: score(384),
        rule: rule_index(Rule::Exact),
    }
}

/// Judges pairs of copies by their own sites.
struct Sites {
    policy: Policy,
    vectors: Column<Vectors>,
}

impl Sites {
    /// None if sites do not matter.
    fn open(stages: &Stages<'_>, config: &Config) -> Result<Option<Self>, Error> {
        if !has_site_rule(config) {
            return Ok(None);
        }
        Ok(Some(Self {
            policy: config.policy,
            vectors: Column::open(&stages.read.join(VECTORS), config.part(8))?,
        }))
    }

    fn rule(&self, a: Ordinal, b: Ordinal, scores: &Accepted) -> Result<Option<u32>, Error> {
        let sites = [self.vectors.get(a)?.site, self.vectors.get(b)?.site];
        Ok(site_rule(&self.policy, sites, scores))
    }
}

/// Whether copies are judged by their own sites.
pub(crate) fn has_site_rule(config: &Config) -> bool {
    matches!(config.policy.criterion, Criterion::Site { .. }) && config.verify != Verify::None
}

/// The rule under which documents of these sites are alike, given the scores of their contents.
pub(crate) fn site_rule(policy: &Policy, sites: [u64; 2], scores: &Accepted) -> Option<u32> {
    let evidence = Evidence {
        site: site_relation(sites),
        b_sim: scores.b_sim.into(),
        c_sim: scores.c_sim.into(),
        jaccard: None,
        same_content: false,
        either_short: false,
    };
    decide(policy, &evidence).map(rule_index)
}

pub(crate) fn listed(a: Ordinal, b: Ordinal, scores: &Accepted) -> Listed {
    Listed {
        a: a.min(b),
        b: a.max(b),
        jaccard: scores.jaccard.to_bits(),
        b_sim: scores.b_sim,
        c_sim: scores.c_sim,
        rule: scores.rule,
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
    rule: StringBuilder,
    verified: StringBuilder,
}

impl PairRows {
    pub(crate) fn push(&mut self, pair: &Listed, ids: [&str; 2], verify: Verify) {
        let score = |score: u16| (score != NO_SCORE).then_some(u32::from(score));
        let jaccard = f64::from_bits(pair.jaccard);
        let rule = Rule::ALL[pair.rule as usize];
        // Equal content needs no other check.
        let verified = match rule {
            Rule::Exact => "text",
            _ => verify.as_str(),
        };
        self.a.append_value(pair.a.into());
        self.b.append_value(pair.b.into());
        self.id_a.append_value(ids[0]);
        self.id_b.append_value(ids[1]);
        self.jaccard
            .append_option((!jaccard.is_nan()).then_some(jaccard));
        self.b_sim.append_option(score(pair.b_sim));
        self.c_sim.append_option(score(pair.c_sim));
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
            Arc::new(self.rule.finish()),
            Arc::new(self.verified.finish()),
        ]
    }
}

/// A Parquet file being written.
pub(crate) struct Table {
    path: PathBuf,
    schema: Arc<Schema>,
    writer: ArrowWriter<BufWriter<File>>,
}

impl Table {
    pub(crate) fn create(path: &Path, schema: Schema) -> Result<Self, Error> {
        let file = File::create(path).map_err(Error::io("create", path))?;
        let schema = Arc::new(schema);
        let level = ZstdLevel::try_new(1).map_err(failed(path))?;
        let mut properties = WriterProperties::builder().set_compression(Compression::ZSTD(level));
        for unique in ["doc", "id", "url", "position", "digest"] {
            properties = properties.set_column_dictionary_enabled(unique.into(), false);
        }
        let properties = properties.build();
        let file = BufWriter::new(file);
        let writer = ArrowWriter::try_new(file, Arc::clone(&schema), Some(properties));
        Ok(Self {
            path: path.to_owned(),
            schema,
            writer: writer.map_err(failed(path))?,
        })
    }

    pub(crate) fn write(&mut self, columns: Vec<ArrayRef>) -> Result<(), Error> {
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns);
        let batch = batch.map_err(|error| failed(&self.path)(error.into()))?;
        self.writer.write(&batch).map_err(failed(&self.path))
    }

    pub(crate) fn close(self) -> Result<(), Error> {
        self.writer.close().map(drop).map_err(failed(&self.path))
    }
}

fn failed(path: &Path) -> impl FnOnce(ParquetError) -> Error {
    move |source| Error::Parquet {
        path: path.to_owned(),
        source,
    }
}
