//! Writes tables and texts from Python to disk, as the Parquet file that a run reads.
//!
//! Only the columns that a run needs are written, unless all of them are wanted in the kept output,
//! so other columns may have any type. Categories become their texts. The column `arose_id`
//! contains the ID of each row: that of the ID column, or else the name of the table and the number
//! of the row.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use arose_corpus::Fields;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, FieldRef, IntervalUnit, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use pyo3::prelude::*;
use pyo3::types::PyList;
use pyo3_arrow::input::AnyArray;
use serde::{Deserialize, Serialize};

use crate::error::{self, InputError, guarded};
use crate::options;
use crate::text::{is_text, next_texts, plain, quoted, type_name};

/// Number of rows of a row group, which one thread reads.
const GROUP_ROWS: usize = 1 << 14;
/// Maximum size of a row group in bytes.
const GROUP_BYTES: usize = 8 << 20;
/// Time between two progress reports.
const PAUSE: Duration = Duration::from_millis(50);
/// The name of this stage in progress reports.
const STAGE: &str = "load";
/// The column of IDs.
pub(crate) const OWN: &str = "arose_id";

/// Columns named by the caller. The default names apply to the others.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    name: String,
    text_field: Vec<String>,
    id_field: Vec<String>,
    url_field: Vec<String>,
    priority_field: Option<String>,
    time_field: Option<String>,
    /// Whether to write all columns.
    has_all: bool,
    /// For a reference: the columns that the run reads, whose names the columns of the reference
    /// get. Named fields may be missing.
    #[serde(default)]
    called: Option<Called>,
}

/// The names that the columns of a reference get.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Called {
    text: String,
    id: String,
}

/// The columns that a run reads.
#[derive(Debug, Clone, Default, Serialize)]
struct Roles {
    text: Option<String>,
    html: Option<String>,
    id: Option<String>,
    url: Option<String>,
    priority: Option<String>,
    time: Option<String>,
}

/// A Parquet file being written.
#[pyclass(frozen, module = "arose")]
pub(crate) struct Spill {
    state: Mutex<State>,
    /// Called with the number of rows so far, and their total if known.
    progress: Option<Py<PyAny>>,
    n_expected: Option<u64>,
}

struct State {
    path: PathBuf,
    wanted: Wanted,
    roles: Roles,
    /// The column from which IDs are taken.
    id_column: Option<String>,
    writer: Option<Writer>,
    n_rows: u64,
    /// Time of the last progress report.
    reported: Option<Instant>,
}

#[pymethods]
impl Spill {
    #[new]
    fn new(
        path: PathBuf,
        wanted: &str,
        progress: Option<Py<PyAny>>,
        n_expected: Option<u64>,
    ) -> PyResult<Self> {
        let state = State {
            path,
            wanted: options::parse(wanted)?,
            roles: Roles::default(),
            id_column: None,
            writer: None,
            n_rows: 0,
            reported: None,
        };
        Ok(Self {
            state: Mutex::new(state),
            progress,
            n_expected,
        })
    }

    /// Adds a table or an array of strings: anything with the Arrow interface.
    fn push(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<()> {
        let read = || data.extract::<AnyArray>()?.into_reader();
        let reader = guarded(read)?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *state;
        let field = reader.field();
        if !matches!(field.data_type(), DataType::Struct(_)) {
            state.wanted.refuse_columns()?;
            state.roles.text = Some("text".to_owned());
        }
        let mut batches = reader;
        loop {
            // Python code may produce the batches, and may be interrupted.
            py.check_signals()?;
            let batch = guarded(|| {
                py.detach(|| batches.next().transpose())
                    .map_err(error::arrow)
            })?;
            let Some(array) = batch else {
                break;
            };
            for start in (0..array.len()).step_by(GROUP_ROWS) {
                let part = array.slice(start, GROUP_ROWS.min(array.len() - start));
                py.detach(|| guarded(|| state.write(&field, part)))?;
                self.report(py, state)?;
            }
        }
        if state.writer.is_none() {
            let empty = arrow_array::new_empty_array(field.data_type());
            state.write(&field, empty)?;
        }
        Ok(())
    }

    /// Adds the texts of an iterable.
    fn push_texts(&self, py: Python<'_>, texts: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *state;
        state.wanted.refuse_columns()?;
        state.roles.text = Some("text".to_owned());
        let field = Arc::new(Field::new("text", DataType::Utf8, true));
        let mut items = texts.try_iter()?;
        loop {
            // Texts of a list are read without running Python code.
            py.check_signals()?;
            let batch = guarded(|| next_texts(&mut items, state.n_rows as usize))?;
            // Without any text, an empty batch defines the columns.
            if batch.is_empty() && state.writer.is_some() {
                return Ok(());
            }
            py.detach(|| guarded(|| state.write(&field, Arc::new(batch))))?;
            self.report(py, state)?;
        }
    }

    /// Closes the file. Returns the number of rows, the columns to read as JSON, and whether there
    /// is an ID column.
    fn finish(&self, py: Python<'_>) -> PyResult<(u64, String, bool)> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.writer.is_none() {
            drop(state);
            self.push_texts(py, PyList::empty(py).as_any())?;
            state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        }
        if let Some(writer) = state.writer.take() {
            py.detach(|| writer.finish())?;
        }
        let roles = serde_json::to_string(&state.roles).unwrap_or_default();
        Ok((state.n_rows, roles, state.id_column.is_some()))
    }
}

impl Spill {
    /// Reports the number of rows so far, but not too often.
    fn report(&self, py: Python<'_>, state: &mut State) -> PyResult<()> {
        let Some(progress) = &self.progress else {
            return Ok(());
        };
        if state.reported.is_some_and(|time| time.elapsed() < PAUSE) {
            return Ok(());
        }
        state.reported = Some(Instant::now());
        let call = (STAGE, state.n_rows, self.n_expected);
        progress.call1(py, call).map(drop)
    }
}

fn failed(cause: ParquetError) -> PyErr {
    error::input(cause)
}

impl State {
    /// Writes a batch: a struct of columns, or texts.
    fn write(&mut self, field: &FieldRef, array: ArrayRef) -> PyResult<()> {
        let (fields, columns): (Vec<FieldRef>, Vec<ArrayRef>) = match array.as_struct_opt() {
            Some(table) => (
                table.fields().iter().cloned().collect(),
                table.columns().to_vec(),
            ),
            None => {
                check_text(field)?;
                let field = Field::new("text", field.data_type().clone(), true);
                (vec![Arc::new(field)], vec![Arc::clone(&array)])
            }
        };
        if self.writer.is_none() && self.roles.text.is_none() {
            self.roles = self.wanted.choose(&fields)?;
            self.id_column = self.roles.id.take();
        }
        self.roles.id = Some(OWN.to_owned());
        let mut names = Vec::new();
        let mut arrays = Vec::new();
        for (field, column) in fields.iter().zip(&columns) {
            let is_used = self.roles.has(field.name());
            if (is_used || self.wanted.has_all) && field.name() != OWN {
                let column = plain(column)?;
                let name = self.name_of(field.name()).to_owned();
                names.push(Field::new(name, column.data_type().clone(), true));
                arrays.push(column);
            }
        }
        let id_column = fields
            .iter()
            .position(|field| Some(field.name()) == self.id_column.as_ref());
        let ids = self.ids(id_column.map(|i| &columns[i]), array.len());
        names.push(Field::new(self.name_of(OWN), DataType::Utf8, true));
        arrays.push(Arc::new(ids));
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => {
                let writer = self.open(Schema::new(names))?;
                self.writer.insert(writer)
            }
        };
        check_types(&writer.schema, &arrays)?;
        let batch = RecordBatch::try_new(Arc::clone(&writer.schema), arrays);
        let batch = batch.map_err(error::arrow)?;
        self.n_rows += batch.num_rows() as u64;
        writer.push(batch)
    }

    /// Returns the name under which a column is written.
    fn name_of<'n>(&'n self, column: &'n str) -> &'n str {
        let is_text = self.roles.text.as_deref() == Some(column);
        match &self.wanted.called {
            Some(called) if is_text => &called.text,
            Some(called) if column == OWN => &called.id,
            _ => column,
        }
    }

    /// Returns the IDs of the next rows.
    fn ids(&self, column: Option<&ArrayRef>, n: usize) -> StringArray {
        let name = &self.wanted.name;
        let ids = (0..n).map(|i| {
            let given = column.and_then(|column| arose_corpus::cell_text(column.as_ref(), i));
            given.unwrap_or_else(|| format!("{name}#{}", self.n_rows + i as u64))
        });
        StringArray::from_iter_values(ids)
    }

    fn open(&self, schema: Schema) -> PyResult<Writer> {
        let compression = match self.wanted.has_all {
            true => Compression::ZSTD(ZstdLevel::default()),
            false => Compression::UNCOMPRESSED,
        };
        let properties = WriterProperties::builder()
            .set_compression(compression)
            .set_dictionary_enabled(false)
            .set_statistics_enabled(parquet::file::properties::EnabledStatistics::None)
            .build();
        let mut fields = schema.fields().iter();
        if let Some(field) = fields.find(|field| !is_storable(field.data_type())) {
            return Err(InputError::new_err(format!(
                "column {} has type {}, which the kept output cannot hold; leave out `output`, or \
                 drop the column",
                quoted(field.name()),
                type_name(field.data_type())
            )));
        }
        let schema = Arc::new(schema);
        let file = File::create(&self.path).map_err(error::input)?;
        let writer = ArrowWriter::try_new(file, Arc::clone(&schema), Some(properties));
        let writer = writer.map_err(|cause| {
            let types = schema.fields().iter();
            let types: Vec<String> = types.map(|field| described(field)).collect();
            InputError::new_err(format!(
                "cannot write a column to Parquet: {}; columns: {}; leave out `output`, or drop the \
                 column",
                error::words(&cause),
                types.join(", ")
            ))
        })?;
        Ok(Writer::start(writer, schema))
    }
}

/// Returns an error if a batch has other columns than those before it.
fn check_types(schema: &Schema, arrays: &[ArrayRef]) -> PyResult<()> {
    if schema.fields().len() != arrays.len() {
        let names = schema.fields().iter();
        let names: Vec<&str> = names.map(|field| &**field.name()).collect();
        return Err(InputError::new_err(format!(
            "a batch has {} columns, expected {}: {}",
            arrays.len(),
            names.len(),
            names.join(", ")
        )));
    }
    for (field, array) in schema.fields().iter().zip(arrays) {
        if field.data_type() != array.data_type() {
            return Err(InputError::new_err(format!(
                "column {} has type {} in one batch and {} in another; cast it first",
                quoted(field.name()),
                type_name(field.data_type()),
                type_name(array.data_type())
            )));
        }
    }
    Ok(())
}

/// A thread that writes, so that the caller can produce the next batch in the meantime.
struct Writer {
    schema: SchemaRef,
    /// None once it is closed.
    batches: Option<SyncSender<RecordBatch>>,
    thread: Option<JoinHandle<Result<(), ParquetError>>>,
}

impl Writer {
    fn start(writer: ArrowWriter<File>, schema: SchemaRef) -> Self {
        let (sender, batches) = sync_channel(1);
        Self {
            schema,
            batches: Some(sender),
            thread: Some(std::thread::spawn(move || write_all(writer, &batches))),
        }
    }

    fn push(&mut self, batch: RecordBatch) -> PyResult<()> {
        let sent = self.batches.as_ref().map(|batches| batches.send(batch));
        match sent {
            Some(Ok(())) => Ok(()),
            // The thread has stopped and reports the reason.
            _ => self.close(),
        }
    }

    /// Waits until everything is written.
    fn finish(mut self) -> PyResult<()> {
        self.close()
    }

    fn close(&mut self) -> PyResult<()> {
        self.batches = None;
        match self.thread.take().map(JoinHandle::join) {
            None => Ok(()),
            Some(Ok(written)) => written.map_err(failed),
            Some(Err(panic)) => Err(error::panicked(&*panic)),
        }
    }
}

impl Drop for Writer {
    /// The thread must have ended before the file is removed.
    fn drop(&mut self) {
        let _ = self.close();
    }
}

fn write_all(
    mut writer: ArrowWriter<File>,
    batches: &Receiver<RecordBatch>,
) -> Result<(), ParquetError> {
    for batch in batches {
        for start in (0..batch.num_rows()).step_by(GROUP_ROWS) {
            let n = GROUP_ROWS.min(batch.num_rows() - start);
            writer.write(&batch.slice(start, n))?;
            if writer.in_progress_rows() >= GROUP_ROWS || writer.in_progress_size() >= GROUP_BYTES {
                writer.flush()?;
            }
        }
    }
    writer.close().map(drop)
}

impl Wanted {
    /// Returns an error if the caller names a column of texts, which have no columns.
    fn refuse_columns(&self) -> PyResult<()> {
        if self.called.is_some() {
            return Ok(());
        }
        let fields = [
            ("text_field", self.text_field.as_slice()),
            ("id_field", &self.id_field),
            ("url_field", &self.url_field),
            ("priority_field", self.priority_field.as_slice()),
            ("time_field", self.time_field.as_slice()),
        ];
        match fields.into_iter().find(|(_, names)| !names.is_empty()) {
            None => Ok(()),
            Some((parameter, names)) => Err(InputError::new_err(format!(
                "{parameter}={}: texts have no columns; remove it or pass a table",
                quoted(&names[0])
            ))),
        }
    }

    /// Returns the columns to read, or an error if one is missing or has the wrong type.
    fn choose(&self, fields: &[FieldRef]) -> PyResult<Roles> {
        let mut usual = Fields::default();
        usual.id.push(OWN.to_owned());
        let mut roles = Roles {
            text: self.find("text_field", &self.text_field, fields, &usual.text)?,
            id: self.find_id(fields, &usual.id)?,
            url: self.find("url_field", &self.url_field, fields, &usual.url)?,
            ..Roles::default()
        };
        if roles.text.is_none() {
            roles.html = self.find("text_field", &[], fields, &usual.html)?;
        }
        let Some(text) = roles.text.as_ref().or(roles.html.as_ref()) else {
            return Err(no_column("no text column", &usual.text, fields));
        };
        if let Some(field) = fields.iter().find(|field| field.name() == text) {
            check_text(field)?;
        }
        if let Some(name) = &self.priority_field {
            let names = std::slice::from_ref(name);
            roles.priority = self.find("priority_field", names, fields, &[])?;
            let field = fields.iter().find(|field| field.name() == name);
            if let Some(field) = field.filter(|field| !is_number(field.data_type())) {
                return Err(InputError::new_err(format!(
                    "priority_field={} has type {}, expected a column of numbers",
                    quoted(name),
                    type_name(field.data_type())
                )));
            }
        }
        let time = self.time_field.as_slice();
        roles.time = self.find("time_field", time, fields, &usual.fetched)?;
        Ok(roles)
    }

    /// Returns the ID column, which must contain texts or numbers.
    fn find_id(&self, fields: &[FieldRef], usual: &[String]) -> PyResult<Option<String>> {
        let found = self.find("id_field", &self.id_field, fields, usual)?;
        let field = fields
            .iter()
            .find(|field| Some(field.name()) == found.as_ref());
        match field.map(|field| field.data_type()) {
            Some(kind) if !is_text(kind) && !is_number(kind) => match self.id_field.is_empty() {
                true => Ok(None),
                false => Err(InputError::new_err(format!(
                    "id_field={} has type {}, expected a column of strings or numbers",
                    quoted(&found.unwrap_or_default()),
                    type_name(kind)
                ))),
            },
            _ => Ok(found),
        }
    }

    fn find(
        &self,
        parameter: &str,
        named: &[String],
        fields: &[FieldRef],
        usual: &[String],
    ) -> PyResult<Option<String>> {
        let has = |name: &&String| fields.iter().any(|field| field.name() == *name);
        if named.is_empty() {
            return Ok(usual.iter().find(has).cloned());
        }
        match named.iter().find(has) {
            Some(name) => Ok(Some(name.clone())),
            None if self.called.is_some() => Ok(usual.iter().find(has).cloned()),
            None => {
                let quoted: Vec<String> = named.iter().map(|name| quoted(name)).collect();
                let what = format!("{parameter}={}: no such column", quoted.join(" or "));
                Err(no_column(&what, &[], fields))
            }
        }
    }
}

impl Roles {
    fn has(&self, name: &str) -> bool {
        let all = [
            &self.text,
            &self.html,
            &self.id,
            &self.url,
            &self.priority,
            &self.time,
        ];
        all.into_iter().flatten().any(|role| role == name)
    }
}

pub(crate) fn no_column(what: &str, usual: &[String], fields: &[FieldRef]) -> PyErr {
    let mut words = what.to_owned();
    if !usual.is_empty() {
        words = format!("{words}: none of {}", usual.join(", "));
    }
    let columns: Vec<String> = fields.iter().map(|field| described(field)).collect();
    words = format!("{words}; columns found: {}", columns.join(", "));
    let mut texts = fields.iter().filter(|field| is_text(field.data_type()));
    if let (false, Some(first)) = (usual.is_empty(), texts.next()) {
        words = format!("{words}; pass text_field={}", quoted(first.name()));
    }
    InputError::new_err(words)
}

fn described(field: &Field) -> String {
    format!("{} ({})", field.name(), type_name(field.data_type()))
}

/// Returns whether a Parquet file can hold a type: not structs without fields, unions, and
/// intervals of three units.
fn is_storable(kind: &DataType) -> bool {
    match kind {
        DataType::Union(..) | DataType::Interval(IntervalUnit::MonthDayNano) => false,
        DataType::Struct(fields) => {
            let mut kinds = fields.iter().map(|field| field.data_type());
            !fields.is_empty() && kinds.all(is_storable)
        }
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _)
        | DataType::RunEndEncoded(_, field) => is_storable(field.data_type()),
        DataType::Dictionary(_, value) => is_storable(value),
        _ => true,
    }
}

fn is_number(kind: &DataType) -> bool {
    match kind {
        DataType::Dictionary(_, value) => is_number(value),
        DataType::Boolean | DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 => true,
        kind => kind.is_numeric() || *kind == DataType::Null,
    }
}

pub(crate) fn check_text(field: &Field) -> PyResult<()> {
    if is_text(field.data_type()) {
        return Ok(());
    }
    let kind = type_name(field.data_type());
    let what = match field.name().as_str() {
        "" => format!("an array of {kind}"),
        name => format!("column {} of type {kind}", quoted(name)),
    };
    Err(InputError::new_err(format!("{what}, expected strings")))
}

/// The default names of columns, by their contents.
#[pyfunction]
pub(crate) fn usual_names() -> BTreeMap<&'static str, Vec<String>> {
    let mut usual = Fields::default();
    usual.id.push(OWN.to_owned());
    BTreeMap::from([
        ("text", usual.text),
        ("html", usual.html),
        ("id", usual.id),
        ("url", usual.url),
        ("time", usual.fetched),
    ])
}
