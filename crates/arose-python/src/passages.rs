//! Repeated passages: from files or rows to tables.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use arose::passage::{Scope, Unit};
use arose_dedup::passages::against::{self, Reference};
use arose_dedup::passages::{self as job, Choices, Digits, PassagesConfig, Tokens, Which};
use arose_dedup::{Moved, Progress, Start};
use arrow_array::cast::AsArray;
use pyo3::prelude::*;
use serde::Deserialize;

use crate::dedup::watched;
use crate::error;
use crate::options::{self, Reading};
use crate::results::{on_threads, read_parquet};
use crate::rows::{self as by_rows, Numbering};
use crate::spill;
use crate::table::Table;

/// Settings, with the names of the command line.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    unit: UnitName,
    min: Option<usize>,
    span: Option<usize>,
    min_unit: Option<u32>,
    digits: Option<DigitsName>,
    tokens: Option<TokensName>,
    times: Option<NonZeroU64>,
    scope: Option<ScopeName>,
    list: Option<u64>,
    remove: Option<RemoveName>,
    whole_first: bool,
    cut: Option<CutName>,
    seam: Option<String>,
    min_left: Option<u32>,
    common: Option<NonZeroU64>,
    memory: Option<u64>,
    /// Files of the reference.
    against: Vec<PathBuf>,
    reading: Reading,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum UnitName {
    Token,
    Line,
    Paragraph,
    Sentence,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum CutName {
    Sentence,
    Line,
    Paragraph,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum DigitsName {
    Keep,
    Zero,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum TokensName {
    Words,
    All,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ScopeName {
    Any,
    Across,
    Within,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RemoveName {
    Later,
    All,
    Spans,
    Documents,
}

/// A Python table that was written to a file.
#[pyclass(frozen, module = "arose")]
pub(crate) struct Rows {
    file: PathBuf,
    name: String,
    n_rows: u64,
    /// Whether there is a column of IDs.
    has_ids: bool,
}

#[pymethods]
impl Rows {
    #[new]
    fn new(file: PathBuf, name: String, n_rows: u64, has_ids: bool) -> Self {
        Self {
            file,
            name,
            n_rows,
            has_ids,
        }
    }
}

impl Rows {
    /// Returns how its rows became documents, from the table of documents.
    pub(crate) fn numbering<'a>(
        &'a self,
        table: &Path,
        output: &Path,
        columns: &'static [(&'static str, &'static str)],
    ) -> PyResult<Numbering<'a>> {
        let numbering = Numbering::new(table, self.n_rows, &self.name, columns)?;
        let file = output.join(format!(".arose/input/{}.parquet", self.name));
        match self.has_ids && file.exists() {
            true => numbering.with_ids(&file, spill::OWN),
            false => Ok(numbering),
        }
    }

    pub(crate) fn moved(&self) -> Moved {
        Moved {
            name: self.name.clone(),
            file: self.file.clone(),
        }
    }
}

/// Runs the job on files or on a table. Returns the summary as JSON, and the tables by name.
///
/// Searches for the items of a reference, if `reference` is a table or the options have files.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "as many as the job has")]
pub(crate) fn passages(
    py: Python<'_>,
    inputs: Vec<PathBuf>,
    rows: Option<Py<Rows>>,
    reference: Option<Py<Rows>>,
    output: PathBuf,
    options: &str,
    force: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<(String, BTreeMap<&'static str, Table>)> {
    let options: Options = options::parse(options)?;
    let rows = rows.as_ref().map(Py::get);
    let reference = reference.as_ref().map(Py::get);
    let (inputs, is_crawl) = options::expanded(inputs)?;
    let against = match reference {
        Some(rows) => Some(Reference::Table(rows.moved())),
        None if options.against.is_empty() => None,
        None => Some(Reference::Files(options.against.clone())),
    };
    let choices = options.choices();
    choices.check(against.is_some()).map_err(error::run)?;
    let config = options.config(&choices, against.is_some(), is_crawl);
    let against = against.map(|reference| choices.against(reference));
    let moved = rows.map(Rows::moved);
    let counters = match against {
        Some(_) => Progress::of_reference(),
        None => Progress::of_passages(),
    };
    let work = |start: Start, counters: &Progress| match (&against, &moved) {
        (None, None) => job::run(&inputs, &config, &output, start, counters),
        (None, Some(table)) => job::run_moved(table, &config, &output, start, counters),
        (Some(what), None) => against::run(&inputs, what, &config, &output, start, counters),
        (Some(what), Some(table)) => {
            against::run_moved(table, what, &config, &output, start, counters)
        }
    };
    let summary = watched(py, force, counters, progress, work)?;
    let tables = || tables(&output, against.is_some(), rows, reference);
    let tables = py.detach(|| on_threads(config.corpus.threads, tables))?;
    Ok((summary, tables))
}

impl Options {
    fn choices(&self) -> Choices {
        Choices {
            unit: match self.unit {
                UnitName::Token => None,
                UnitName::Line => Some(Unit::Line),
                UnitName::Paragraph => Some(Unit::Paragraph),
                UnitName::Sentence => Some(Unit::Sentence),
            },
            min: self.min,
            span: self.span,
            min_unit: self.min_unit,
            digits: self.digits.map(|digits| match digits {
                DigitsName::Keep => Digits::Keep,
                DigitsName::Zero => Digits::Zero,
            }),
            tokens: self.tokens.map(|tokens| match tokens {
                TokensName::Words => Tokens::Words,
                TokensName::All => Tokens::All,
            }),
            times: self.times,
            scope: self.scope.map(|scope| match scope {
                ScopeName::Any => Scope::Any,
                ScopeName::Across => Scope::Across,
                ScopeName::Within => Scope::Within,
            }),
            list: self.list,
            remove: self.remove.map(|which| match which {
                RemoveName::Later => Which::Later,
                RemoveName::All => Which::All,
                RemoveName::Spans => Which::Spans,
                RemoveName::Documents => Which::Documents,
            }),
            whole_first: self.whole_first,
            cut: self.cut.map(|cut| match cut {
                CutName::Sentence => Unit::Sentence,
                CutName::Line => Unit::Line,
                CutName::Paragraph => Unit::Paragraph,
            }),
            seam: self.seam.clone(),
            min_left: self.min_left,
            common: self.common,
        }
    }

    fn config(&self, choices: &Choices, has_reference: bool, is_crawl: bool) -> PassagesConfig {
        let mut corpus = self.reading.config();
        options::allow_large_documents(&mut corpus);
        if is_crawl {
            corpus.statuses = arose_corpus::Statuses::Success;
        }
        let memory = options::memory(self.memory);
        choices.config(has_reference, memory, self.reading.on_loss(), corpus)
    }
}

/// Returns the tables of a run, with rows of the caller's tables in place of documents.
fn tables(
    output: &Path,
    has_reference: bool,
    rows: Option<&Rows>,
    reference: Option<&Rows>,
) -> PyResult<BTreeMap<&'static str, Table>> {
    let names: &[&'static str] = match has_reference {
        true => &["items", "matches", "documents"],
        false => &["passages", "places", "documents", "removed"],
    };
    let path = |name: &str| output.join(format!("{name}.parquet"));
    let mut tables = BTreeMap::new();
    for name in names {
        tables.insert(*name, read_parquet(&path(name))?);
    }
    for (owner, of, columns) in [
        ("documents", rows, by_rows::DOCUMENTS),
        ("items", reference, by_rows::ITEMS),
    ] {
        let own = of.and_then(|_| tables.remove(owner));
        let (Some(of), Some(own)) = (of, own) else {
            continue;
        };
        let numbering = of.numbering(&path(owner), output, columns)?;
        for table in tables.values_mut() {
            *table = numbering.renumber(table)?;
        }
        tables.insert(owner, numbering.spread_table(&own)?);
    }
    Ok(tables)
}

/// Returns the texts of all rows without the removed passages; none where a row was dropped or has
/// no text.
#[pyfunction]
pub(crate) fn kept_texts(
    py: Python<'_>,
    kept: PathBuf,
    column: &str,
    documents: &Bound<'_, Table>,
) -> PyResult<Vec<Option<String>>> {
    let documents = documents.get();
    py.detach(|| {
        let is_table = kept
            .extension()
            .is_some_and(|extension| extension == "parquet");
        let mut texts = match is_table {
            true => by_rows::read_column(&kept, column)?,
            // Without any text, no file was written.
            false => Vec::new(),
        }
        .into_iter();
        let documents = documents.whole().map_err(error::arrow)?;
        let is_kept = by_rows::column(&documents, "kept").map_err(error::arrow)?;
        let found = is_kept.as_boolean().iter().map(|is_kept| match is_kept {
            Some(true) => texts.next().flatten(),
            _ => None,
        });
        Ok(found.collect())
    })
}
