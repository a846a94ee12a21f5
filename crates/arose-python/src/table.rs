//! Tables that are passed to Python.

use std::sync::Arc;

use arose_dedup::report::html::counted;
use arrow_array::{Array, ArrayRef, RecordBatch, StructArray};
use arrow_schema::{ArrowError, Field, FieldRef, Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use pyo3::exceptions::{PyImportError, PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};
use pyo3_arrow::error::PyArrowResult;
use pyo3_arrow::ffi::{
    ArrayIterator, to_array_pycapsules, to_schema_pycapsule, to_stream_pycapsule,
};

use crate::error;
use crate::text::quoted;

/// A table that every Arrow library accepts: `pyarrow.table(t)`, `polars.DataFrame(t)`.
#[pyclass(frozen, module = "arose")]
pub(crate) struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Table {
    pub(crate) fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Self { schema, batches }
    }

    pub(crate) fn of(batch: RecordBatch) -> Self {
        Self::new(batch.schema(), vec![batch])
    }

    pub(crate) fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    pub(crate) fn batches(&self) -> &[RecordBatch] {
        &self.batches
    }

    /// Returns the first rows in one batch.
    pub(crate) fn first(&self, n: usize) -> Result<RecordBatch, ArrowError> {
        let mut batches = Vec::new();
        let mut n_left = n;
        for batch in &self.batches {
            let n_here = n_left.min(batch.num_rows());
            batches.push(batch.slice(0, n_here));
            n_left -= n_here;
        }
        concat_batches(&self.schema, &batches)
    }

    /// Returns all rows in one batch.
    pub(crate) fn whole(&self) -> Result<RecordBatch, ArrowError> {
        match &self.batches[..] {
            [batch] => Ok(batch.clone()),
            batches => concat_batches(&self.schema, batches),
        }
    }
}

/// Imports another library, or returns an error that says what to install.
fn library<'py>(py: Python<'py>, name: &str, extra: &str) -> PyResult<Bound<'py, PyModule>> {
    py.import(name).map_err(|cause| {
        let error = PyImportError::new_err(format!(
            "{name} is not installed; run `pip install {extra}`"
        ));
        error.set_cause(py, Some(cause));
        error
    })
}

/// Converts a record batch to the struct that libraries exchange.
pub(crate) fn as_struct(batch: RecordBatch) -> ArrayRef {
    Arc::new(StructArray::from(batch))
}

pub(crate) fn struct_field(schema: &Schema) -> FieldRef {
    Arc::new(Field::new_struct("", schema.fields().clone(), false))
}

#[pymethods]
impl Table {
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyArrowResult<Bound<'py, PyCapsule>> {
        let batches = self.batches.clone().into_iter();
        let arrays = batches.map(|batch| Ok::<_, ArrowError>(as_struct(batch)));
        let reader = ArrayIterator::new(arrays.collect::<Vec<_>>(), struct_field(&self.schema));
        to_stream_pycapsule(py, Box::new(reader), requested_schema)
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyArrowResult<Bound<'py, PyTuple>> {
        let array = as_struct(self.whole()?);
        to_array_pycapsules(py, struct_field(&self.schema), &array, requested_schema)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyArrowResult<Bound<'py, PyCapsule>> {
        to_schema_pycapsule(py, self.schema.as_ref())
    }

    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    fn __repr__(&self) -> String {
        let names = self.column_names().join(", ");
        let rows = counted(self.__len__() as u64, "row", "rows");
        format!("<arose.Table of {rows}: {names}>")
    }

    /// The first rows, for notebooks.
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let result = slf.py().import("arose._result")?;
        result.call_method1("table_html", (slf, slf.repr()?))
    }

    /// Return a column as a pyarrow array.
    fn __getitem__<'py>(
        slf: &Bound<'py, Self>,
        name: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Ok(name) = name.extract::<&str>() else {
            return Err(PyTypeError::new_err(format!(
                "expected the name of a column, got {}; for rows, use to_pandas(), to_polars() or \
                 to_pyarrow()",
                name.get_type().name()?
            )));
        };
        let names = slf.get().column_names();
        if !names.contains(&name) {
            let names = names.join(", ");
            let words = format!("no column {}; columns: {names}", quoted(name));
            return Err(PyKeyError::new_err(words));
        }
        Self::to_pyarrow(slf)?.get_item(name)
    }

    /// The names of its columns.
    #[getter]
    fn column_names(&self) -> Vec<&str> {
        let fields = self.schema.fields().iter();
        fields.map(|field| field.name().as_str()).collect()
    }

    /// The number of rows.
    #[getter]
    fn num_rows(&self) -> usize {
        self.__len__()
    }

    /// The same as a `pyarrow.Table`.
    fn to_pyarrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        library(slf.py(), "pyarrow", "pyarrow")?.call_method1("table", (slf,))
    }

    /// The same as a `pandas.DataFrame`.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        library(slf.py(), "pandas", "arose[pandas]")?;
        library(slf.py(), "pyarrow", "arose[pandas]")?;
        Self::to_pyarrow(slf)?.call_method0("to_pandas")
    }

    /// The same as a `polars.DataFrame`.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        library(slf.py(), "polars", "polars")?.call_method1("DataFrame", (slf,))
    }

    /// Create a table from the bytes stored by pickle.
    #[staticmethod]
    fn from_bytes(bytes: Vec<u8>) -> PyResult<Self> {
        let builder = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes));
        let builder = builder.map_err(error::input)?;
        let schema = builder.schema().clone();
        let reader = builder
            .with_batch_size(1 << 16)
            .build()
            .map_err(error::input)?;
        let batches = reader
            .collect::<Result<Vec<_>, _>>()
            .map_err(error::arrow)?;
        Ok(Self::new(schema, batches))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Vec<u8>,))> {
        let table = slf.get();
        let mut writer = ArrowWriter::try_new(Vec::new(), Arc::clone(&table.schema), None)
            .map_err(error::input)?;
        for batch in &table.batches {
            writer.write(batch).map_err(error::input)?;
        }
        let bytes = writer.into_inner().map_err(error::input)?;
        Ok((slf.get_type().getattr("from_bytes")?, (bytes,)))
    }
}

/// Creates a column of a result.
pub(crate) fn column(name: &str, array: impl Array + 'static) -> (Field, ArrayRef) {
    let is_nullable = array.nulls().is_some();
    let field = Field::new(name, array.data_type().clone(), is_nullable);
    (field, Arc::new(array))
}

/// Creates a table of columns of equal length.
pub(crate) fn of_columns(columns: Vec<(Field, ArrayRef)>) -> Result<Table, ArrowError> {
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?;
    Ok(Table::of(batch))
}
