//! Quality of the documents: a record for each, counts of failed rules, and columns.
//!
//! Documents that a chosen filter rejects take no part in the rest of the run: they have no tokens
//! there, and nothing is dropped for them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arose::quality::{Family, N_RULES, RULES, Selection};
use arose_corpus::Document;
use arose_corpus::html::Switch;
use arose_corpus::quality::{Assessment, Assessor, SIGNALS};
use arrow_array::ArrayRef;
use arrow_array::builder::{Float32Builder, StringBuilder};
use arrow_schema::{DataType, Field, Schema};
use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Error;
use crate::column::{Column, Writer};
use crate::config::{Config, Quality};
use crate::record::{ALONE, DocRecord, EMPTY, FILTERED};
use crate::report::html::clip;

/// The file of the first stage.
const QUALITY: &str = "quality";

thread_local! {
    static ASSESSOR: RefCell<Assessor> = RefCell::default();
}

/// Requests the data of pages on which quality depends.
pub(crate) fn ask(config: &Config, corpus: &mut arose_corpus::Config) {
    if config.quality.is_some() {
        corpus.html.visibility = Switch::On;
    }
}

/// Returns the quality of a document with this many tokens, if quality is measured.
pub(crate) fn row(
    config: &Config,
    document: &Document,
    n_tokens: usize,
) -> Option<Box<QualityRow>> {
    config.quality?;
    let n_tokens = u32::try_from(n_tokens).unwrap_or(u32::MAX);
    let found = ASSESSOR.with_borrow_mut(|assessor| assessor.document(document));
    Some(Box::new(QualityRow::new(&found, n_tokens, &document.text)))
}

/// The quality of a document.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct QualityRecord {
    /// The rules that it fails.
    failed: u64,
    /// The value of each rule.
    rules: [f32; N_RULES],
    /// The values of [`SIGNALS`]; NaN if unknown.
    signals: [f32; SIGNALS.len()],
    /// Number of tokens, even if the run ignores them.
    n_tokens: u32,
    reserved: u32,
}

impl QualityRecord {
    pub(crate) fn new(found: &Assessment, n_tokens: u32) -> Self {
        Self {
            failed: Selection::failed(&found.signals).0,
            rules: std::array::from_fn(|i| RULES[i].value(&found.signals) as f32),
            signals: found
                .values()
                .map(|value| value.map_or(f32::NAN, |value| value as f32)),
            n_tokens,
            reserved: 0,
        }
    }

    /// Returns the rules that the document fails.
    pub(crate) fn failed(&self) -> Selection {
        Selection(self.failed)
    }
}

/// A document with the data that the tally needs.
pub(crate) struct QualityRow {
    record: QualityRecord,
    /// The first words, if a rule fails.
    excerpt: String,
}

/// Maximum number of characters of an excerpt.
const EXCERPT_CHARS: usize = 160;

impl QualityRow {
    pub(crate) fn new(found: &Assessment, n_tokens: u32, text: &str) -> Self {
        let record = QualityRecord::new(found, n_tokens);
        let excerpt = match record.failed == 0 {
            true => String::new(),
            false => excerpt(text),
        };
        Self { record, excerpt }
    }

    /// Removes the tokens of a document that the filter rejects. Without them it is like an empty
    /// document, which is never a duplicate.
    pub(crate) fn filter(&self, config: Quality, doc: &mut DocRecord, tokens: &mut Vec<u64>) {
        if !self.record.failed().intersection(config.filter).is_empty() {
            *tokens = Vec::new();
            doc.n_tokens = 0;
            doc.flags |= FILTERED | EMPTY | ALONE;
        }
    }
}

/// Returns the first words of a text, on one line.
fn excerpt(text: &str) -> String {
    let mut line = String::new();
    let mut n_chars = 0;
    for word in text.split_whitespace() {
        if n_chars > EXCERPT_CHARS {
            break;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&clip(word, EXCERPT_CHARS));
        n_chars += 1 + word.chars().take(EXCERPT_CHARS).count();
    }
    clip(&line, EXCERPT_CHARS)
}

/// The column of the first stage, if quality is measured.
pub(crate) struct QualityColumn(Option<Writer<QualityRecord>>);

impl QualityColumn {
    pub(crate) fn create(folder: &Path, config: &Config) -> Result<Self, Error> {
        let writer = config
            .quality
            .map(|_| Writer::create(&folder.join(QUALITY)));
        Ok(Self(writer.transpose()?))
    }

    /// Resumes after this many records.
    pub(crate) fn resume(folder: &Path, config: &Config, n: u64) -> Result<Self, Error> {
        let writer = config
            .quality
            .map(|_| Writer::resume(&folder.join(QUALITY), n));
        Ok(Self(writer.transpose()?))
    }

    pub(crate) fn push(&mut self, row: &QualityRow) -> Result<(), Error> {
        self.0
            .as_mut()
            .map_or(Ok(()), |writer| writer.push(&row.record))
    }

    pub(crate) fn flush(&mut self) -> Result<(), Error> {
        self.0.as_mut().map_or(Ok(()), Writer::flush)
    }

    pub(crate) fn finish(self) -> Result<(), Error> {
        self.0.map_or(Ok(()), |writer| writer.finish().map(drop))
    }
}

/// Maximum number of examples per rule.
const MAX_EXAMPLES: usize = 3;

/// The number of documents that fail each rule.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct QualityTally {
    /// By rule.
    rules: BTreeMap<String, RuleTally>,
    /// Number of documents that fail a rule of a family.
    families: BTreeMap<String, u64>,
    /// Number of documents that fail any rule.
    any: u64,
    /// Number of documents whose weight is below 0.5.
    light: u64,
    /// Number of documents that the filter rejects.
    pub(crate) filtered: u64,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct RuleTally {
    n: u64,
    examples: Vec<ShownExample>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct ShownExample {
    id: String,
    value: f64,
    text: String,
}

impl QualityTally {
    pub(crate) fn add(&mut self, row: &QualityRow, id: &str) {
        let failed = row.record.failed();
        for (rule, value) in RULES.iter().zip(row.record.rules) {
            let Some(rules) = Selection::named(rule.name) else {
                continue;
            };
            if failed.intersection(rules).is_empty() {
                continue;
            }
            let tally = self.rules.entry(rule.name.to_owned()).or_default();
            tally.n += 1;
            if tally.examples.len() < MAX_EXAMPLES {
                tally.examples.push(ShownExample {
                    id: clip(id, EXCERPT_CHARS),
                    value: crate::job::rounded(value.into()),
                    text: row.excerpt.clone(),
                });
            }
        }
        for family in Family::ALL.map(Family::as_str) {
            let rules = Selection::named(family).unwrap_or_default();
            let n = self.families.entry(family.to_owned()).or_default();
            *n += u64::from(!failed.intersection(rules).is_empty());
        }
        self.any += u64::from(!failed.is_empty());
        self.light += u64::from(row.record.signals[0] < 0.5);
    }

    /// Returns its part of the summary.
    pub(crate) fn summary(&self, filter: Selection) -> Value {
        let rules = RULES.iter().map(|rule| {
            let tally = self.rules.get(rule.name).cloned().unwrap_or_default();
            json!({
                "rule": rule.name,
                "measures": rule.measures,
                "passes": rule.bound.to_string(),
                "fails": tally.n,
                "examples": tally.examples,
            })
        });
        json!({
            "filter": filter.rules().map(|rule| rule.name).collect::<Vec<_>>(),
            "fails_any": self.any,
            "fails_by_family": self.families,
            "below_half": self.light,
            "rules": rules.collect::<Vec<_>>(),
        })
    }
}

/// Adds columns to the table of documents, if quality was measured.
pub(crate) struct QualityTable(Option<(Column<QualityRecord>, Selection)>);

impl QualityTable {
    pub(crate) fn open(read: &Path, config: &Config) -> Result<Self, Error> {
        let Some(quality) = config.quality else {
            return Ok(Self(None));
        };
        let records = Column::open(&read.join(QUALITY), 0)?;
        Ok(Self(Some((records, quality.filter))))
    }

    pub(crate) fn schema(&self, schema: Schema) -> Schema {
        if self.0.is_none() {
            return schema;
        }
        let own = schema.fields.iter().map(|field| (**field).clone());
        Schema::new(own.chain(fields()).collect::<Vec<_>>())
    }

    /// Returns the columns of documents from `start` on, and sets their numbers of tokens, which
    /// are zero in the records of rejected documents.
    pub(crate) fn columns(
        &self,
        start: u64,
        docs: &mut [DocRecord],
    ) -> Result<Vec<ArrayRef>, Error> {
        let Some((records, filter)) = &self.0 else {
            return Ok(Vec::new());
        };
        let mut found = vec![QualityRecord::zeroed(); docs.len()];
        records.read_into(start, &mut found)?;
        let mut rows = QualityRows::default();
        for (doc, found) in docs.iter_mut().zip(&found) {
            doc.n_tokens = found.n_tokens;
            rows.push(found, *filter);
        }
        Ok(rows.finish())
    }
}

/// Returns the columns of the table of documents.
fn fields() -> impl Iterator<Item = Field> {
    let numbers = SIGNALS
        .into_iter()
        .chain(RULES.iter().map(|rule| rule.name));
    let numbers = numbers.map(|name| Field::new(name, DataType::Float32, true));
    let texts = ["failed_rules", "filtered_by"].map(|name| Field::new(name, DataType::Utf8, true));
    numbers.chain(texts)
}

/// Rows of these columns.
#[derive(Default)]
struct QualityRows {
    signals: [Float32Builder; SIGNALS.len()],
    rules: Vec<Float32Builder>,
    failed: StringBuilder,
    filtered_by: StringBuilder,
}

impl QualityRows {
    fn push(&mut self, record: &QualityRecord, filter: Selection) {
        let known = |value: f32| (!value.is_nan()).then_some(value);
        for (column, value) in self.signals.iter_mut().zip(record.signals) {
            column.append_option(known(value));
        }
        self.rules.resize_with(N_RULES, Float32Builder::default);
        for (column, value) in self.rules.iter_mut().zip(record.rules) {
            column.append_option(known(value));
        }
        let names = |rules: Selection| (!rules.is_empty()).then(|| rules.names());
        let failed = record.failed();
        self.failed.append_option(names(failed));
        let filtered = failed.intersection(filter);
        self.filtered_by.append_option(names(filtered));
    }

    fn finish(&mut self) -> Vec<ArrayRef> {
        self.rules.resize_with(N_RULES, Float32Builder::default);
        let numbers = self.signals.iter_mut().chain(&mut self.rules);
        let numbers = numbers.map(|column| Arc::new(column.finish()) as ArrayRef);
        let mut columns: Vec<ArrayRef> = numbers.collect();
        columns.push(Arc::new(self.failed.finish()));
        columns.push(Arc::new(self.filtered_by.finish()));
        columns
    }
}
