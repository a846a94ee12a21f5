//! Results in terms of the rows of the caller's table.
//!
//! A run numbers documents, and a row without text is not a document. Here every row has one line,
//! in order, and references to documents become references to rows.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{BooleanBufferBuilder, ListBuilder, UInt64Builder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchReader, StringArray, UInt32Array,
    UInt64Array,
};
use arrow_buffer::BooleanBuffer;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use arrow_select::filter::filter_record_batch;
use arrow_select::take::take;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use pyo3_arrow::input::AnyRecordBatch;

use crate::error::{self, AroseError};
use crate::results::Columns;
use crate::table::{self, Table};
use crate::text::Texts;

/// The documents of a run, or the items of a reference, as rows of the caller's table.
pub(crate) struct Numbering<'a> {
    /// The row of each document; none if every row is a document.
    row_of: Option<Vec<u64>>,
    n_rows: u64,
    name: &'a str,
    /// IDs of all rows, if the table has IDs and not every row is a document.
    ids: Vec<Option<String>>,
    /// Columns with numbers of documents, and their names in the result.
    columns: &'static [(&'static str, &'static str)],
}

/// The names of the columns of documents, in terms of rows.
pub(crate) const DOCUMENTS: &[(&str, &str)] = &[
    ("doc", "row"),
    ("cluster", "cluster"),
    ("group", "group"),
    ("kept_doc", "kept_row"),
    ("a", "a"),
    ("b", "b"),
    ("first_doc", "first_row"),
    ("source_doc", "source_row"),
    ("longest_doc", "longest_row"),
    ("best_doc", "best_row"),
];

/// The names of the columns of items, in terms of rows.
pub(crate) const ITEMS: &[(&str, &str)] = &[("item", "item")];

impl<'a> Numbering<'a> {
    /// Reads the file of documents, or of items, for a table of `n_rows` rows with this name.
    pub(crate) fn new(
        path: &Path,
        n_rows: u64,
        name: &'a str,
        columns: &'static [(&'static str, &'static str)],
    ) -> PyResult<Self> {
        Ok(Self {
            row_of: row_numbers(path, n_rows)?,
            n_rows,
            name,
            ids: Vec::new(),
            columns,
        })
    }

    /// Adds the IDs of the rows that are not documents, from a column of the file of the table.
    pub(crate) fn with_ids(mut self, file: &Path, column: &str) -> PyResult<Self> {
        if self.row_of.is_some() {
            self.ids = read_column(file, column)?;
        }
        Ok(self)
    }

    /// Replaces documents by rows in a table that refers to documents.
    pub(crate) fn renumber(&self, table: &Table) -> PyResult<Table> {
        let schema = self.schema(&table.schema(), |_| true);
        let batches = table.batches().iter().map(|batch| {
            let schema_there = batch.schema();
            let columns = schema_there.fields().iter().zip(batch.columns());
            let columns = columns.map(|(field, array)| match self.called(field.name()) {
                Some(_) => self.as_rows(array),
                None => Arc::clone(array),
            });
            RecordBatch::try_new(Arc::clone(&schema), columns.collect())
        });
        let batches = batches.collect::<Result<_, _>>().map_err(error::arrow)?;
        Ok(Table::new(schema, batches))
    }

    /// Returns the file of all documents, with a line for each row.
    pub(crate) fn spread(&self, path: &Path) -> PyResult<Table> {
        let (schema, batches) = Columns::open(path, is_shown)?.read()?;
        self.spread_batches(&schema, batches)
    }

    /// Returns the table of all documents, with a line for each row.
    pub(crate) fn spread_table(&self, table: &Table) -> PyResult<Table> {
        self.spread_batches(&table.schema(), table.batches().to_vec())
    }

    fn spread_batches(&self, there: &SchemaRef, batches: Vec<RecordBatch>) -> PyResult<Table> {
        let schema = self.schema(there, is_shown);
        let mut spread = Vec::new();
        let (mut n_docs, mut first_row) = (0, 0);
        // Rows after the last document, or all rows if there is none, have a batch of their own.
        let end = [RecordBatch::new_empty(Arc::clone(there))];
        for batch in batches.into_iter().chain(end) {
            let docs = n_docs..n_docs + batch.num_rows();
            n_docs = docs.end;
            let rows = self.row_of.as_ref().map(|row_of| &row_of[docs]);
            let end = match rows {
                None => n_docs as u64,
                Some(rows) => rows.last().map_or(self.n_rows, |row| row + 1),
            };
            if end > first_row || self.n_rows == 0 {
                let columns = self.spread_batch(&batch, rows, first_row..end);
                let batch =
                    RecordBatch::try_new(Arc::clone(&schema), columns.map_err(error::arrow)?);
                spread.push(batch.map_err(error::arrow)?);
            }
            first_row = end;
        }
        Ok(Table::new(schema, spread))
    }

    /// Returns the columns of a batch, with a line for each of these rows.
    fn spread_batch(
        &self,
        batch: &RecordBatch,
        rows: Option<&[u64]>,
        all: Range<u64>,
    ) -> Result<Vec<ArrayRef>, ArrowError> {
        let lines = rows.and_then(|rows| lines(rows, &all));
        let schema = batch.schema();
        let mut columns: Vec<ArrayRef> = Vec::new();
        for (i, (field, array)) in schema.fields().iter().zip(batch.columns()).enumerate() {
            let spread = |array: &ArrayRef| match &lines {
                None => Ok(Arc::clone(array)),
                Some(lines) => take(array, lines, None),
            };
            columns.push(match field.name().as_str() {
                name if !is_shown(name) => continue,
                "id" => self.ids(&spread(array)?, all.start),
                "kept" => kept_or_null(&spread(array)?),
                // The first column is that of the documents themselves.
                _ if i == 0 => Arc::new(UInt64Array::from_iter_values(all.clone())),
                name => match self.called(name) {
                    Some(_) => spread(&self.as_rows(array))?,
                    None => spread(array)?,
                },
            });
        }
        Ok(columns)
    }

    /// Returns the name of a column of numbers.
    fn called(&self, name: &str) -> Option<&'static str> {
        let mut columns = self.columns.iter();
        columns.find_map(|(old, new)| (*old == name).then_some(*new))
    }

    fn schema(&self, schema: &Schema, is_shown: impl Fn(&str) -> bool) -> SchemaRef {
        let fields = schema
            .fields()
            .iter()
            .filter(|field| is_shown(field.name()));
        let fields = fields.map(|field| {
            let name = self.called(field.name()).unwrap_or(field.name());
            Field::new(name, field.data_type().clone(), true)
        });
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }

    /// Converts numbers of documents to numbers of rows.
    fn as_rows(&self, documents: &ArrayRef) -> ArrayRef {
        let Some(row_of) = &self.row_of else {
            return Arc::clone(documents);
        };
        let documents = documents.as_primitive::<UInt64Type>();
        let row = |doc: u64| row_of.get(doc as usize).copied();
        let rows: UInt64Array = documents.iter().map(|doc| doc.and_then(row)).collect();
        Arc::new(rows)
    }

    /// Returns the IDs of rows. The ID of a row without text and ID is its number.
    fn ids(&self, ids: &ArrayRef, first_row: u64) -> ArrayRef {
        if ids.null_count() == 0 {
            return Arc::clone(ids);
        }
        let own = |row: u64| {
            let given = self.ids.get(row as usize).cloned().flatten();
            given.unwrap_or_else(|| format!("{}#{row}", self.name))
        };
        let ids = (first_row..).zip(ids.as_string::<i32>());
        let ids = ids.map(|(row, id)| id.map_or_else(|| own(row), str::to_owned));
        Arc::new(StringArray::from_iter_values(ids))
    }
}

/// Reads a column of texts of a Parquet file.
pub(crate) fn read_column(path: &Path, name: &str) -> PyResult<Vec<Option<String>>> {
    let mut texts = Vec::new();
    let (_, batches) = Columns::open(path, |column| column == name)?.read()?;
    for batch in batches {
        let array = column(&batch, name).map_err(error::arrow)?;
        let views = Texts::of_arrays(&[Arc::clone(array)])?;
        let views = views.views();
        texts.extend(views.into_iter().map(|text| text.map(str::to_owned)));
    }
    Ok(texts)
}

/// Whether a column is meaningful to the caller: the position of a row in a temporary file is not.
fn is_shown(name: &str) -> bool {
    !matches!(name, "source" | "position")
}

/// Returns the row of each document; none if every row is a document.
fn row_numbers(path: &Path, n_rows: u64) -> PyResult<Option<Vec<u64>>> {
    let positions = Columns::open(path, |name| name == "position")?;
    // Rows ascend, and a row is at most one document.
    if positions.n_rows() == n_rows {
        return Ok(None);
    }
    let mut rows = Vec::new();
    for batch in positions.read()?.1 {
        let positions = column(&batch, "position").map_err(error::arrow)?;
        for position in positions.as_string::<i32>() {
            let row = position.and_then(|position| position.parse().ok());
            rows.push(row.ok_or_else(|| AroseError::new_err("a position that is not a row"))?);
        }
    }
    Ok(Some(rows))
}

pub(crate) fn column<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a ArrayRef, ArrowError> {
    let missing = || ArrowError::SchemaError(format!("no column `{name}`"));
    batch.column_by_name(name).ok_or_else(missing)
}

/// Returns the position of every row among `rows`; none if these are all rows.
fn lines(rows: &[u64], all: &Range<u64>) -> Option<UInt32Array> {
    if rows.len() as u64 == all.end - all.start {
        return None;
    }
    let mut lines = vec![None; (all.end - all.start) as usize];
    for (line, &row) in rows.iter().enumerate() {
        lines[(row - all.start) as usize] = Some(line as u32);
    }
    Some(UInt32Array::from(lines))
}

/// Whether rows are kept. A row without text has no duplicate.
fn kept_or_null(kept: &ArrayRef) -> ArrayRef {
    if kept.null_count() == 0 {
        return Arc::clone(kept);
    }
    let kept = kept.as_boolean().iter();
    let kept: BooleanArray = kept.map(|kept| kept.or(Some(true))).collect();
    Arc::new(kept)
}

/// Returns a row per cluster: its number, the ID of the kept document, the number of documents, and
/// their list; largest first.
#[pyfunction]
pub(crate) fn clusters(py: Python<'_>, documents: &Bound<'_, Table>) -> PyResult<Table> {
    let documents = documents.get();
    py.detach(|| list_clusters(documents.batches()))
        .map_err(error::arrow)
}

fn list_clusters(documents: &[RecordBatch]) -> Result<Table, ArrowError> {
    // Most documents are alone, so members are counted before they are listed.
    let mut sizes: BTreeMap<u64, u64> = BTreeMap::new();
    for batch in documents {
        let of = column(batch, "cluster")?.as_primitive::<UInt64Type>();
        let own = own_numbers(batch)?;
        for (cluster, number) in of.iter().zip(own.values()) {
            if let Some(cluster) = cluster.filter(|cluster| cluster != number) {
                *sizes.entry(cluster).or_insert(1) += 1;
            }
        }
    }
    let mut members: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let mut kept_ids = BTreeMap::new();
    for batch in documents {
        let of = column(batch, "cluster")?.as_primitive::<UInt64Type>();
        let ids = column(batch, "id")?.as_string::<i32>();
        let own = own_numbers(batch)?;
        for (i, (cluster, &number)) in of.iter().zip(own.values()).enumerate() {
            let Some(cluster) = cluster.filter(|cluster| sizes.contains_key(cluster)) else {
                continue;
            };
            members.entry(cluster).or_default().push(number);
            if cluster == number {
                kept_ids.insert(cluster, ids.value(i));
            }
        }
    }
    let mut found: Vec<(u64, Vec<u64>)> = members.into_iter().collect();
    found.sort_by_key(|(cluster, members)| (std::cmp::Reverse(members.len()), *cluster));
    let mut lists = ListBuilder::new(UInt64Builder::new());
    for (_, members) in &found {
        lists.values().append_slice(members);
        lists.append(true);
    }
    let sizes = found.iter().map(|(_, members)| members.len() as u64);
    let names = found
        .iter()
        .map(|(cluster, _)| kept_ids.get(cluster).copied());
    table::of_columns(vec![
        table::column(
            "cluster",
            UInt64Array::from_iter_values(found.iter().map(|f| f.0)),
        ),
        table::column("kept_id", names.collect::<StringArray>()),
        table::column("size", UInt64Array::from_iter_values(sizes)),
        table::column("members", lists.finish()),
    ])
}

/// Returns the numbers of documents or rows themselves.
fn own_numbers(batch: &RecordBatch) -> Result<&UInt64Array, ArrowError> {
    let own = match batch.column_by_name("row") {
        Some(rows) => rows,
        None => column(batch, "doc")?,
    };
    Ok(own.as_primitive::<UInt64Type>())
}

/// Returns the documents of rows, or an error if a row has no text.
#[pyfunction]
pub(crate) fn documents_of(documents: &Bound<'_, Table>, rows: Vec<usize>) -> PyResult<Vec<u64>> {
    let documents = documents.get().whole().map_err(error::arrow)?;
    let tokens = column(&documents, "n_tokens").map_err(error::arrow)?;
    let found = rows.into_iter().map(|row| match tokens.is_valid(row) {
        true => Ok((0..row).filter(|&row| tokens.is_valid(row)).count() as u64),
        false => Err(PyValueError::new_err(format!("row {row} has no text"))),
    });
    found.collect()
}

/// Returns the first rows of a table, by column. Values other than numbers, texts and lists of
/// these become None.
#[pyfunction]
pub(crate) fn first_rows<'py>(
    table: &Bound<'py, Table>,
    most: usize,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let py = table.py();
    let batch = table.get().first(most).map_err(error::arrow)?;
    let rows = (0..batch.num_rows()).map(|row| {
        let values = PyDict::new(py);
        for (field, array) in batch.schema().fields().iter().zip(batch.columns()) {
            values.set_item(field.name(), value(py, array, row)?)?;
        }
        Ok(values)
    });
    rows.collect()
}

fn value<'py>(py: Python<'py>, array: &ArrayRef, row: usize) -> PyResult<Bound<'py, PyAny>> {
    let none = || Ok(py.None().into_bound(py));
    if array.is_null(row) {
        return none();
    }
    macro_rules! number {
        ($type:ty) => {{
            let number = array.as_primitive::<$type>().value(row);
            Ok(number.into_pyobject(py)?.into_any())
        }};
    }
    match array.data_type() {
        DataType::Utf8 => {
            let text = array.as_string::<i32>().value(row);
            Ok(text.into_pyobject(py)?.into_any())
        }
        DataType::Boolean => {
            let flag = array.as_boolean().value(row).into_pyobject(py)?;
            Ok(flag.to_owned().into_any())
        }
        DataType::UInt32 => number!(UInt32Type),
        DataType::UInt64 => number!(UInt64Type),
        DataType::Int64 => number!(Int64Type),
        DataType::Float32 => number!(Float32Type),
        DataType::Float64 => number!(Float64Type),
        DataType::List(_) => list(py, &array.as_list::<i32>().value(row)),
        DataType::FixedSizeList(..) => list(py, &array.as_fixed_size_list().value(row)),
        _ => none(),
    }
}

fn list<'py>(py: Python<'py>, items: &ArrayRef) -> PyResult<Bound<'py, PyAny>> {
    let items = (0..items.len()).map(|i| value(py, items, i));
    let items = items.collect::<PyResult<Vec<_>>>()?;
    Ok(PyList::new(py, items)?.into_any())
}

/// Returns a byte per document or row: 1 if it is kept.
#[pyfunction]
pub(crate) fn mask(py: Python<'_>, documents: &Bound<'_, Table>) -> PyResult<Vec<u8>> {
    let documents = documents.get();
    let kept = py.detach(|| kept_of(documents)).map_err(error::arrow)?;
    Ok(kept.iter().map(u8::from).collect())
}

/// Returns whether each document or row is kept.
fn kept_of(documents: &Table) -> Result<BooleanBuffer, ArrowError> {
    let mut kept = BooleanBufferBuilder::new(0);
    for batch in documents.batches() {
        for is_kept in column(batch, "kept")?.as_boolean() {
            kept.append(is_kept == Some(true));
        }
    }
    Ok(kept.finish())
}

/// Returns the kept rows of a table.
#[pyfunction]
pub(crate) fn filter(
    py: Python<'_>,
    documents: &Bound<'_, Table>,
    data: &Bound<'_, PyAny>,
) -> PyResult<Table> {
    let reader = error::guarded(|| data.extract::<AnyRecordBatch>()?.into_reader())?;
    let documents = documents.get();
    let filter = || {
        let kept = BooleanArray::new(kept_of(documents).map_err(error::arrow)?, None);
        let schema = reader.schema();
        let (mut batches, mut start) = (Vec::new(), 0);
        for batch in reader {
            let batch = batch.map_err(error::arrow)?;
            let end = start + batch.num_rows();
            if end <= kept.len() {
                let is_kept = kept.slice(start, batch.num_rows());
                batches.push(filter_record_batch(&batch, &is_kept).map_err(error::arrow)?);
            }
            start = end;
        }
        match start == kept.len() {
            true => Ok(Table::new(schema, batches)),
            false => Err(PyValueError::new_err(format!(
                "data has {start} rows, expected {}: pass what was deduplicated",
                kept.len()
            ))),
        }
    };
    py.detach(|| error::guarded(filter))
}
