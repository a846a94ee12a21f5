//! Results by the rows of the caller's table.
//!
//! A run numbers documents, and a row without text is none. Here every row has its line, in order,
//! and everything that refers to a document refers to its row.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, UInt64Builder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, RecordBatch, StringArray, UInt32Array, UInt64Array,
};
use arrow_schema::{ArrowError, DataType, Field};
use arrow_select::filter::filter_record_batch;
use arrow_select::take::take;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3_arrow::input::AnyRecordBatch;

use crate::error;
use crate::table::{self, Table};

/// The tables of documents and pairs of a run over one table of `n_rows` rows.
pub(crate) fn aligned(
    documents: &Table,
    pairs: &Table,
    n_rows: u64,
    name: &str,
) -> PyResult<(Table, Table)> {
    let align = || {
        let documents = documents.whole()?;
        let pairs = pairs.whole()?;
        let row_of = row_numbers(&documents)?;
        Ok((
            align_documents(&documents, &row_of, n_rows, name)?,
            align_pairs(&pairs, &row_of)?,
        ))
    };
    align().map_err(error::arrow)
}

/// The row of each document.
fn row_numbers(documents: &RecordBatch) -> Result<Vec<u64>, ArrowError> {
    let positions = column(documents, "position")?.as_string::<i32>();
    let rows = positions.iter().map(|position| {
        let row = position.and_then(|position| position.parse().ok());
        row.ok_or_else(|| ArrowError::ParseError("a position that is not a row".to_owned()))
    });
    rows.collect()
}

fn column<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a ArrayRef, ArrowError> {
    let missing = || ArrowError::SchemaError(format!("no column `{name}`"));
    batch.column_by_name(name).ok_or_else(missing)
}

fn align_documents(
    documents: &RecordBatch,
    row_of: &[u64],
    n_rows: u64,
    name: &str,
) -> Result<Table, ArrowError> {
    let mut lines = vec![None; n_rows as usize];
    for (line, &row) in row_of.iter().enumerate() {
        lines[row as usize] = Some(line as u32);
    }
    let lines = UInt32Array::from(lines);
    let of = |name: &str| take(column(documents, name)?, &lines, None);
    let rows_in = |name: &str| take(&as_rows(column(documents, name)?, row_of), &lines, None);
    let kept = of("kept")?;
    // A row without text has no duplicate.
    let kept: BooleanArray = kept
        .as_boolean()
        .iter()
        .map(|kept| kept.or(Some(true)))
        .collect();
    let ids = of("id")?;
    let own = |row: usize| format!("{name}#{row}");
    let ids: StringArray = ids
        .as_string::<i32>()
        .iter()
        .enumerate()
        .map(|(row, id)| Some(id.map_or_else(|| own(row), str::to_owned)))
        .collect();
    let mut columns = vec![
        table::column("row", UInt64Array::from_iter_values(0..n_rows)),
        table::column("id", ids),
    ];
    let mut add = |name: &str, array: ArrayRef| {
        columns.push((Field::new(name, array.data_type().clone(), true), array));
    };
    add("url", of("url")?);
    add("digest", of("digest")?);
    add("n_tokens", of("n_tokens")?);
    add("cluster", rows_in("cluster")?);
    add("kept", Arc::new(kept));
    add("kept_row", rows_in("kept_doc")?);
    add("rule", of("rule")?);
    add("similarity", of("similarity")?);
    add("known_as", of("known_as")?);
    table::of_columns(columns)
}

/// Numbers of documents as numbers of rows.
fn as_rows(documents: &ArrayRef, row_of: &[u64]) -> UInt64Array {
    let documents = documents.as_primitive::<UInt64Type>();
    let row = |doc: u64| row_of.get(doc as usize).copied();
    documents.iter().map(|doc| doc.and_then(row)).collect()
}

fn align_pairs(pairs: &RecordBatch, row_of: &[u64]) -> Result<Table, ArrowError> {
    let mut columns = pairs.columns().to_vec();
    for name in ["a", "b"] {
        let index = pairs.schema().index_of(name)?;
        columns[index] = Arc::new(as_rows(&columns[index], row_of));
    }
    RecordBatch::try_new(pairs.schema(), columns).map(Table::of)
}

/// A row per cluster: its number, the ID of the kept document, how many documents it has, and
/// which; largest first.
#[pyfunction]
pub(crate) fn clusters(py: Python<'_>, documents: &Bound<'_, Table>) -> PyResult<Table> {
    let documents = documents.get();
    py.detach(|| list_clusters(&documents.whole()?))
        .map_err(error::arrow)
}

fn list_clusters(documents: &RecordBatch) -> Result<Table, ArrowError> {
    let own = match documents.column_by_name("row") {
        Some(rows) => rows,
        None => column(documents, "doc")?,
    };
    let own = own.as_primitive::<UInt64Type>();
    let of = column(documents, "cluster")?.as_primitive::<UInt64Type>();
    let ids = column(documents, "id")?.as_string::<i32>();
    let mut members: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let mut kept_ids = BTreeMap::new();
    for i in 0..documents.num_rows() {
        if of.is_valid(i) {
            let (cluster, number) = (of.value(i), own.value(i));
            members.entry(cluster).or_default().push(number);
            if cluster == number {
                kept_ids.insert(cluster, ids.value(i));
            }
        }
    }
    let mut found: Vec<(u64, Vec<u64>)> =
        members.into_iter().filter(|(_, m)| m.len() > 1).collect();
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

/// The documents of rows; an error where a row has no text.
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

/// The first rows of a table, by column; what is no number or text is None.
#[pyfunction]
pub(crate) fn first_rows<'py>(
    table: &Bound<'py, Table>,
    most: usize,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let py = table.py();
    let batch = table.get().whole().map_err(error::arrow)?;
    let rows = (0..batch.num_rows().min(most)).map(|row| {
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
    match array.data_type() {
        DataType::Utf8 => Ok(array
            .as_string::<i32>()
            .value(row)
            .into_pyobject(py)?
            .into_any()),
        DataType::UInt64 => {
            let number = array.as_primitive::<UInt64Type>().value(row);
            Ok(number.into_pyobject(py)?.into_any())
        }
        DataType::Float64 => {
            let number = array.as_primitive::<Float64Type>().value(row);
            Ok(number.into_pyobject(py)?.into_any())
        }
        _ => none(),
    }
}

/// A byte per document or row: 1 where it is kept.
#[pyfunction]
pub(crate) fn mask(py: Python<'_>, documents: &Bound<'_, Table>) -> PyResult<Vec<u8>> {
    let documents = documents.get();
    py.detach(|| {
        let documents = documents.whole()?;
        let kept = column(&documents, "kept")?.as_boolean();
        Ok(kept
            .iter()
            .map(|kept| u8::from(kept == Some(true)))
            .collect())
    })
    .map_err(error::arrow)
}

/// The rows of a table that are kept.
#[pyfunction]
pub(crate) fn filter(
    py: Python<'_>,
    documents: &Bound<'_, Table>,
    data: AnyRecordBatch,
) -> PyResult<Table> {
    let reader = data.into_reader()?;
    let documents = documents.get();
    py.detach(|| {
        let documents = documents.whole().map_err(error::arrow)?;
        let kept = column(&documents, "kept")
            .map_err(error::arrow)?
            .as_boolean();
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
    })
}
