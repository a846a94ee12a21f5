//! Tables and texts of Python on their way to disk, as the Parquet file that a run reads.
//!
//! Only the columns that a run looks at are written, unless all are wanted in the kept output. So a
//! column of any type passes. Categories become the texts they stand for, and a table without IDs
//! gets some: its name and the number of the row.

use std::collections::BTreeMap;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use arose_corpus::Fields;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray, new_null_array};
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};
use arrow_select::take::take;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3_arrow::input::AnyArray;
use serde::{Deserialize, Serialize};

use crate::error::{self, InputError};
use crate::options;

/// Rows of a row group, which one thread reads.
const GROUP_ROWS: usize = 1 << 14;
/// Bytes of a row group.
const GROUP_BYTES: usize = 8 << 20;

/// Columns that the caller names. Those that are not named go by the usual names.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    name: String,
    text_field: Vec<String>,
    id_field: Vec<String>,
    url_field: Vec<String>,
    priority_field: Option<String>,
    time_field: Option<String>,
    /// Whether all columns are written.
    has_all: bool,
}

/// The columns that a run is to look at.
#[derive(Debug, Clone, Default, Serialize)]
struct Roles {
    text: Option<String>,
    html: Option<String>,
    id: Option<String>,
    url: Option<String>,
    priority: Option<String>,
    time: Option<String>,
}

/// A Parquet file that is being written.
#[pyclass(frozen, module = "arose")]
pub(crate) struct Spill {
    state: Mutex<State>,
}

struct State {
    path: PathBuf,
    wanted: Wanted,
    roles: Roles,
    writer: Option<(ArrowWriter<File>, SchemaRef)>,
    n_rows: u64,
}

#[pymethods]
impl Spill {
    #[new]
    fn new(path: PathBuf, wanted: &str) -> PyResult<Self> {
        let state = State {
            path,
            wanted: options::parse(wanted)?,
            roles: Roles::default(),
            writer: None,
            n_rows: 0,
        };
        Ok(Self {
            state: Mutex::new(state),
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
            state.roles.text = Some("text".to_owned());
        }
        let mut batches = reader;
        loop {
            // Whoever makes the batches may be Python, and may be stopped.
            py.check_signals()?;
            let batch = guarded(|| {
                py.detach(|| batches.next().transpose())
                    .map_err(error::arrow)
            })?;
            let Some(array) = batch else {
                break;
            };
            py.detach(|| guarded(|| state.write(&field, array)))?;
        }
        if state.writer.is_none() {
            let empty = arrow_array::new_empty_array(field.data_type());
            state.write(&field, empty)?;
        }
        Ok(())
    }

    /// Adds texts.
    fn push_texts(&self, py: Python<'_>, texts: Vec<Option<PyBackedStr>>) -> PyResult<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *state;
        state.roles.text = Some("text".to_owned());
        let field = Arc::new(Field::new("text", DataType::Utf8, true));
        let array: StringArray = texts.iter().map(|text| text.as_deref()).collect();
        py.detach(|| guarded(|| state.write(&field, Arc::new(array))))
    }

    /// Closes the file; the number of rows, and the columns to look at as JSON.
    fn finish(&self, py: Python<'_>) -> PyResult<(u64, String)> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.writer.is_none() {
            drop(state);
            self.push_texts(py, Vec::new())?;
            state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        }
        if let Some((writer, _)) = state.writer.take() {
            py.detach(|| writer.close()).map_err(failed)?;
        }
        let roles = serde_json::to_string(&state.roles).unwrap_or_default();
        Ok((state.n_rows, roles))
    }
}

/// Runs code that was not made for foreign data, with panics as errors.
fn guarded<T>(run: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| Err(error::panicked(&*panic)))
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
        }
        let mut names = Vec::new();
        let mut arrays = Vec::new();
        for (field, column) in fields.iter().zip(&columns) {
            let is_used = self.roles.has(field.name());
            if is_used || self.wanted.has_all {
                let column = plain(column)?;
                names.push(Field::new(field.name(), column.data_type().clone(), true));
                arrays.push(column);
            }
        }
        self.add_ids(&mut names, &mut arrays, array.len());
        let schema = match &self.writer {
            Some((_, schema)) => Arc::clone(schema),
            None => self.open(Schema::new(names))?,
        };
        let batch = RecordBatch::try_new(schema, arrays).map_err(error::arrow)?;
        self.n_rows += batch.num_rows() as u64;
        let Some((writer, _)) = &mut self.writer else {
            return Ok(());
        };
        for start in (0..batch.num_rows()).step_by(GROUP_ROWS) {
            let n = GROUP_ROWS.min(batch.num_rows() - start);
            writer.write(&batch.slice(start, n)).map_err(failed)?;
            if writer.in_progress_rows() >= GROUP_ROWS || writer.in_progress_size() >= GROUP_BYTES {
                writer.flush().map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Adds IDs where the table has none.
    fn add_ids(&mut self, names: &mut Vec<Field>, arrays: &mut Vec<ArrayRef>, n: usize) {
        const OWN: &str = "arose_id";
        match self.roles.id.as_deref() {
            Some(OWN) | None => self.roles.id = Some(OWN.to_owned()),
            Some(_) => return,
        }
        let name = &self.wanted.name;
        let rows = self.n_rows..self.n_rows + n as u64;
        let ids = StringArray::from_iter_values(rows.map(|row| format!("{name}#{row}")));
        names.push(Field::new(OWN, DataType::Utf8, true));
        arrays.push(Arc::new(ids));
    }

    fn open(&mut self, schema: Schema) -> PyResult<SchemaRef> {
        let compression = match self.wanted.has_all {
            true => Compression::ZSTD(ZstdLevel::default()),
            false => Compression::UNCOMPRESSED,
        };
        let properties = WriterProperties::builder()
            .set_compression(compression)
            .set_dictionary_enabled(false)
            .set_statistics_enabled(parquet::file::properties::EnabledStatistics::None)
            .build();
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
        self.writer = Some((writer, Arc::clone(&schema)));
        Ok(schema)
    }
}

impl Wanted {
    /// The columns to look at; an error where one is missing or of a type that does not fit.
    fn choose(&self, fields: &[FieldRef]) -> PyResult<Roles> {
        let usual = Fields::default();
        let mut roles = Roles {
            text: self.find("text_field", &self.text_field, fields, &usual.text)?,
            id: self.find("id_field", &self.id_field, fields, &usual.id)?,
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
                    "priority_field={name:?} has type {}, expected a column of numbers",
                    type_name(field.data_type())
                )));
            }
        }
        let time = self.time_field.as_slice();
        roles.time = self.find("time_field", time, fields, &usual.fetched)?;
        Ok(roles)
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
            None => {
                let quoted: Vec<String> = named.iter().map(|name| format!("{name:?}")).collect();
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

fn no_column(what: &str, usual: &[String], fields: &[FieldRef]) -> PyErr {
    let mut words = what.to_owned();
    if !usual.is_empty() {
        words = format!("{words}: none of {}", usual.join(", "));
    }
    let columns: Vec<String> = fields.iter().map(|field| described(field)).collect();
    words = format!("{words}; columns found: {}", columns.join(", "));
    let mut texts = fields.iter().filter(|field| is_text(field.data_type()));
    if let (false, Some(first)) = (usual.is_empty(), texts.next()) {
        words = format!("{words}; pass text_field={:?}", first.name());
    }
    InputError::new_err(words)
}

fn described(field: &Field) -> String {
    format!("{} ({})", field.name(), type_name(field.data_type()))
}

/// A type as Python libraries call it.
fn type_name(kind: &DataType) -> String {
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "string".to_owned(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "binary".to_owned(),
        DataType::Dictionary(_, value) => format!("dictionary of {}", type_name(value)),
        DataType::Struct(_) => "struct".to_owned(),
        DataType::List(_) | DataType::LargeList(_) => "list".to_owned(),
        DataType::Boolean => "bool".to_owned(),
        other => other.to_string().to_lowercase(),
    }
}

fn is_text(kind: &DataType) -> bool {
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => true,
        DataType::Dictionary(_, value) => is_text(value),
        _ => false,
    }
}

fn is_number(kind: &DataType) -> bool {
    match kind {
        DataType::Dictionary(_, value) => is_number(value),
        DataType::Boolean | DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 => true,
        kind => kind.is_numeric() || *kind == DataType::Null,
    }
}

fn check_text(field: &Field) -> PyResult<()> {
    if is_text(field.data_type()) {
        return Ok(());
    }
    let kind = type_name(field.data_type());
    let what = match field.name().as_str() {
        "" => format!("an array of {kind}"),
        name => format!("column {name:?} of type {kind}"),
    };
    Err(InputError::new_err(format!("{what}, expected strings")))
}

/// The same values without a dictionary. A column of nulls becomes one of texts.
fn plain(array: &ArrayRef) -> PyResult<ArrayRef> {
    match array.data_type() {
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let values = take(dictionary.values(), dictionary.keys(), None);
            values.map_err(error::arrow)
        }
        DataType::Null => Ok(new_null_array(&DataType::Utf8, array.len())),
        _ => Ok(Arc::clone(array)),
    }
}

/// The names under which columns are looked for, by what they hold.
#[pyfunction]
pub(crate) fn usual_names() -> BTreeMap<&'static str, Vec<String>> {
    let usual = Fields::default();
    BTreeMap::from([
        ("text", usual.text),
        ("html", usual.html),
        ("id", usual.id),
        ("url", usual.url),
        ("time", usual.fetched),
    ])
}
