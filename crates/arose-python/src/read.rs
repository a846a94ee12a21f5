//! Reading documents from files, one record batch at a time.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use arose_corpus::{Document, Documents, Item, Loss, Warning};
use arrow_array::builder::{Int64Builder, StringBuilder, UInt16Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use pyo3_arrow::error::PyArrowResult;
use pyo3_arrow::ffi::{ArrayIterator, to_stream_pycapsule};

use crate::error;
use crate::options::{self, Reading};
use crate::table::{Table, as_struct, struct_field};

/// Bytes of text in a batch, unless a single document has more.
const BATCH_BYTES: usize = 8 << 20;
/// Maximum number of documents in a batch.
const BATCH_DOCS: usize = 1 << 14;
/// Maximum number of warnings that are stored verbatim.
const MAX_WARNINGS: usize = 20;

static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    let text = |name: &str, is_nullable| Field::new(name, DataType::Utf8, is_nullable);
    Arc::new(Schema::new(vec![
        text("id", false),
        text("url", true),
        text("title", true),
        text("language", true),
        text("text", false),
        text("source", false),
        text("position", false),
        text("digest", false),
        Field::new("fetched", DataType::Int64, true),
        Field::new("status", DataType::UInt16, true),
    ]))
});

/// Documents of files, in input order; an iterator of tables and an Arrow stream.
#[pyclass(frozen, module = "arose")]
pub(crate) struct Reader {
    state: Arc<Mutex<State>>,
}

struct State {
    documents: Documents<Item>,
    skipped: BTreeMap<&'static str, u64>,
    warnings: Vec<String>,
    is_strict: bool,
    /// The error that ended a strict reader.
    lost: Option<Warning>,
    /// The name of the table that is read, if it is not files.
    table: Option<TableFile>,
}

/// A table that was written to a file, which is removed after reading.
struct TableFile {
    name: String,
    file: PathBuf,
}

impl Drop for TableFile {
    fn drop(&mut self) {
        // The directory was created for this file alone.
        let _ = std::fs::remove_file(&self.file);
        let _ = self.file.parent().map(std::fs::remove_dir);
    }
}

#[pyfunction]
pub(crate) fn read(paths: Vec<PathBuf>, options: &str) -> PyResult<Reader> {
    open(&paths, options, None)
}

/// Reads a table that was written to `file`, which is removed at the end.
#[pyfunction]
pub(crate) fn read_table(file: PathBuf, name: String, options: &str) -> PyResult<Reader> {
    let paths = [file.clone()];
    open(&paths, options, Some(TableFile { name, file }))
}

fn open(paths: &[PathBuf], options: &str, table: Option<TableFile>) -> PyResult<Reader> {
    let reading: Reading = options::parse(options)?;
    let documents = arose_corpus::read(paths, reading.config()).map_err(error::input)?;
    Ok(Reader {
        state: Arc::new(Mutex::new(State {
            documents,
            skipped: BTreeMap::new(),
            warnings: Vec::new(),
            is_strict: reading.strict,
            lost: None,
            table,
        })),
    })
}

/// Returns the next batch. A strict reader that lost something returns its last batch and then the
/// error.
fn next_batch(state: &Mutex<State>) -> PyResult<Option<RecordBatch>> {
    error::guarded(|| take_batch(state))
}

fn take_batch(state: &Mutex<State>) -> PyResult<Option<RecordBatch>> {
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    match (state.next_batch(), &state.lost) {
        (None, Some(warning)) => Err(error::InputLost::new_err(format!(
            "the input is incomplete: {warning}; repair the input or set strict=False"
        ))),
        (batch, _) => Ok(batch),
    }
}

impl State {
    fn next_batch(&mut self) -> Option<RecordBatch> {
        let mut rows = Rows::default();
        let mut n_bytes = 0;
        while n_bytes < BATCH_BYTES && rows.n < BATCH_DOCS && self.lost.is_none() {
            match self.documents.next() {
                Some(Item::Document(document)) => {
                    n_bytes += document.text.len();
                    let name = self.table.as_ref().map(|table| &*table.name);
                    rows.push(&document, name);
                }
                Some(Item::Skipped(warning)) => {
                    *self.skipped.entry(warning.reason.name()).or_default() += 1;
                    if warning.is_reported() && self.warnings.len() < MAX_WARNINGS {
                        self.warnings.push(warning.to_string());
                    }
                    if self.is_strict && warning.loss != Loss::Nothing {
                        self.lost = Some(warning);
                    }
                }
                None => break,
            }
        }
        (rows.n > 0).then(|| rows.finish())
    }
}

#[pymethods]
impl Reader {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Table>> {
        py.check_signals()?;
        Ok(py.detach(|| next_batch(&self.state))?.map(Table::of))
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyArrowResult<Bound<'py, PyCapsule>> {
        let state = Arc::clone(&self.state);
        let external = |error: PyErr| ArrowError::ExternalError(Box::new(error));
        let batches = std::iter::from_fn(move || {
            let batch = next_batch(&state).map_err(external).transpose()?;
            Some(batch.map(as_struct))
        });
        let reader = ArrayIterator::new(batches, struct_field(&SCHEMA));
        to_stream_pycapsule(py, Box::new(reader), requested_schema)
    }

    /// Skipped records so far, by reason.
    #[getter]
    fn skipped(&self, py: Python<'_>) -> BTreeMap<&'static str, u64> {
        py.detach(|| self.locked(|state| state.skipped.clone()))
    }

    /// The first damaged records, with file, position and reason.
    #[getter]
    fn warnings(&self, py: Python<'_>) -> Vec<String> {
        py.detach(|| self.locked(|state| state.warnings.clone()))
    }

    /// Files that could not be read completely, with position and reason. Complete when the reader
    /// has ended.
    #[getter]
    fn incomplete_files(&self, py: Python<'_>) -> Vec<String> {
        let names = |state: &State| {
            let files = &state.documents.counts().losses.files;
            files.iter().map(ToString::to_string).collect()
        };
        py.detach(|| self.locked(names))
    }

    /// Files in directories whose format is unknown, by extension.
    #[getter]
    fn unknown_files(&self, py: Python<'_>) -> BTreeMap<String, u64> {
        py.detach(|| self.locked(|state| state.documents.counts().unknown_files.clone()))
    }

    /// Return everything that is left, in one table.
    fn read_all(&self, py: Python<'_>) -> PyResult<Table> {
        let mut batches = Vec::new();
        while let Some(batch) = py.detach(|| next_batch(&self.state))? {
            batches.push(batch);
            py.check_signals()?;
        }
        Ok(Table::new(Arc::clone(&SCHEMA), batches))
    }
}

impl Reader {
    fn locked<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[derive(Default)]
struct Rows {
    n: usize,
    /// In the order of the schema: eight columns of text.
    texts: [StringBuilder; 8],
    fetched: Int64Builder,
    status: UInt16Builder,
}

impl Rows {
    /// Adds a document of a table with this name, or of a file.
    fn push(&mut self, document: &Document, table: Option<&str>) {
        self.n += 1;
        let source = match table {
            Some(name) => name.to_owned(),
            None => document.source.display().to_string(),
        };
        let name = document.name();
        let [position, digest] = [document.position.to_string(), document.digest.to_string()];
        let values = [
            Some(name.as_str()),
            document.url.as_deref(),
            document.title.as_deref(),
            document.language.as_deref(),
            Some(document.text.as_str()),
            Some(source.as_str()),
            Some(position.as_str()),
            Some(digest.as_str()),
        ];
        for (column, value) in self.texts.iter_mut().zip(values) {
            column.append_option(value);
        }
        self.fetched.append_option(document.fetched);
        self.status.append_option(document.status);
    }

    fn finish(mut self) -> RecordBatch {
        let texts = self.texts.iter_mut();
        let mut columns: Vec<ArrayRef> = texts.map(|text| Arc::new(text.finish()) as _).collect();
        columns.push(Arc::new(self.fetched.finish()));
        columns.push(Arc::new(self.status.finish()));
        RecordBatch::try_new(Arc::clone(&SCHEMA), columns).expect("columns are those of the schema")
    }
}
