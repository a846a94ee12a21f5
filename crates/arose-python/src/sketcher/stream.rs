//! Sketches of texts that arrive in batches, as batches.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyCapsule, PyIterator};
use pyo3_arrow::error::PyArrowResult;
use pyo3_arrow::ffi::{ArrayIterator, ArrayReader, to_stream_pycapsule};

use super::Sketcher;
use crate::error;
use crate::spill::{check_text, no_column};
use crate::table::{Table, as_struct, struct_field};
use crate::text::Texts;

/// Maximum number of texts that are sketched at once.
const BATCH_TEXTS: usize = 1 << 13;

/// Sketches of a stream of texts; an iterator of tables and an Arrow stream.
#[pyclass(frozen, module = "arose")]
pub(crate) struct SketchReader {
    pub(super) stream: Arc<Stream>,
    pub(super) schema: SchemaRef,
}

pub(super) struct Stream {
    pub(super) sketcher: Py<Sketcher>,
    pub(super) source: Mutex<Source>,
}

/// The source of texts.
pub(super) enum Source {
    /// Lists of texts.
    Python(Py<PyIterator>),
    /// Batches of texts, or of tables of which one column has the texts.
    Arrow(Box<dyn ArrayReader + Send>, Option<String>),
    /// Parts of a batch that was too large, and the source of the following texts.
    Parts(VecDeque<ArrayRef>, Box<Source>),
    End,
}

/// The column of texts in a table; none if there are only texts.
pub(super) fn column_of(field: &FieldRef, names: &[String]) -> PyResult<Option<String>> {
    let DataType::Struct(fields) = field.data_type() else {
        check_text(field)?;
        return Ok(None);
    };
    let mut named = names.iter();
    let found = named.find_map(|name| fields.iter().find(|field| field.name() == name));
    let Some(field) = found else {
        let fields: Vec<FieldRef> = fields.iter().cloned().collect();
        return Err(no_column("no text column", names, &fields));
    };
    check_text(field)?;
    Ok(Some(field.name().clone()))
}

/// Returns the schema of all batches. Whether a batch has nulls is known only when it arrives.
pub(super) fn nullable(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter();
    let fields = fields.map(|field| Field::clone(field).with_nullable(true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

impl Stream {
    fn next(&self, py: Python<'_>) -> PyResult<Option<RecordBatch>> {
        let source = self.source.lock_py_attached(py);
        let mut source = source.unwrap_or_else(PoisonError::into_inner);
        let Some(texts) = error::guarded(|| source.next(py))? else {
            return Ok(None);
        };
        let table = self.sketcher.get().sketch_all(py, &texts)?;
        let batch = table.whole().map_err(error::arrow)?;
        let schema = nullable(&batch.schema());
        let batch = RecordBatch::try_new(schema, batch.columns().to_vec());
        batch.map(Some).map_err(error::arrow)
    }
}

impl Source {
    /// Returns the next texts. An error ends the stream.
    fn next(&mut self, py: Python<'_>) -> PyResult<Option<Texts>> {
        let (texts, rest) = match std::mem::replace(self, Self::End) {
            Self::End => return Ok(None),
            Self::Python(batches) => match batches.bind(py).clone().next() {
                None => return Ok(None),
                Some(batch) => match Texts::extract(&batch?)? {
                    Texts::Arrow(chunks) => {
                        Self::Python(batches).after(chunks.iter().flat_map(parts).collect())?
                    }
                    texts @ Texts::List(_) => (texts, Self::Python(batches)),
                },
            },
            Self::Arrow(mut batches, column) => {
                py.check_signals()?;
                let batch = py.detach(|| batches.next().transpose());
                let Some(batch) = batch.map_err(error::arrow)? else {
                    return Ok(None);
                };
                let texts = match &column {
                    Some(name) => batch.as_struct().column_by_name(name).cloned(),
                    None => Some(batch),
                };
                let texts = texts.expect("the column was found in the schema");
                Self::Arrow(batches, column).after(parts(&texts))?
            }
            Self::Parts(parts, after) => after.after(parts)?,
        };
        *self = rest;
        Ok(Some(texts))
    }

    /// Returns the first of several parts, and the source of the rest: the other parts, and this.
    fn after(self, mut parts: VecDeque<ArrayRef>) -> PyResult<(Texts, Self)> {
        let first = parts.pop_front();
        let rest = match parts.is_empty() {
            true => self,
            false => Self::Parts(parts, Box::new(self)),
        };
        Ok((Texts::of_arrays(first.as_slice())?, rest))
    }
}

/// Splits an array into pieces of bounded length.
fn parts(array: &ArrayRef) -> VecDeque<ArrayRef> {
    let starts = (0..array.len()).step_by(BATCH_TEXTS);
    let part = |start: usize| array.slice(start, BATCH_TEXTS.min(array.len() - start));
    starts.map(part).collect()
}

#[pymethods]
impl SketchReader {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Table>> {
        Ok(self.stream.next(py)?.map(Table::of))
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyArrowResult<Bound<'py, PyCapsule>> {
        let stream = Arc::clone(&self.stream);
        let external = |error: PyErr| ArrowError::ExternalError(Box::new(error));
        let batches = std::iter::from_fn(move || {
            let batch = Python::attach(|py| stream.next(py));
            let batch = batch.map_err(external).transpose()?;
            Some(batch.map(as_struct))
        });
        let reader = ArrayIterator::new(batches, struct_field(&self.schema));
        to_stream_pycapsule(py, Box::new(reader), requested_schema)
    }

    /// Return everything that is left, in one table.
    fn read_all(&self, py: Python<'_>) -> PyResult<Table> {
        let mut batches = Vec::new();
        while let Some(batch) = self.stream.next(py)? {
            batches.push(batch);
        }
        Ok(Table::new(Arc::clone(&self.schema), batches))
    }
}
