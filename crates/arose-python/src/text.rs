//! Texts from Python: a list of strings or any Arrow string array, read in place.

use std::sync::Arc;

use arrow_array::builder::{ArrayBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, StringArray, new_null_array};
use arrow_schema::DataType;
use arrow_select::take::take;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBytes, PyDict, PyIterator, PyString};
use pyo3_arrow::input::AnyArray;

use crate::error;

/// Number of texts taken from an iterator at once.
const BATCH_TEXTS: usize = 8192;
/// Maximum total bytes of these, unless a single text has more.
const BATCH_BYTES: usize = 8 << 20;

/// Start of the names under which pandas passes an index without a name.
const PANDAS_INDEX: &str = "__index_level_";

/// Texts that stay alive while Rust works on them.
pub(crate) enum Texts {
    Arrow(Vec<ArrayRef>),
    List(Vec<Option<PyBackedStr>>),
}

impl Texts {
    pub(crate) fn extract(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        if is_arrow(object)? {
            // Foreign data may have types that the Arrow library does not expect.
            let read = || Ok(object.extract::<AnyArray>()?.into_chunked_array()?);
            let (chunks, field) = error::guarded(read)?.into_inner();
            check_strings(field.data_type())?;
            return Self::of_arrays(&chunks);
        }
        if object.is_instance_of::<PyString>() {
            return Err(PyTypeError::new_err(
                "expected a list of strings, got a single one; put it into a list",
            ));
        }
        let items = object.try_iter()?.enumerate();
        let texts = items.map(|(i, item)| text(&item?, i));
        Ok(Self::List(texts.collect::<PyResult<_>>()?))
    }

    /// Takes arrays of strings, or of categories that represent strings.
    pub(crate) fn of_arrays(chunks: &[ArrayRef]) -> PyResult<Self> {
        let chunks = chunks.iter().map(plain);
        Ok(Self::Arrow(chunks.collect::<PyResult<_>>()?))
    }

    /// Returns every text; none for nulls.
    pub(crate) fn views(&self) -> Vec<Option<&str>> {
        match self {
            Self::List(list) => list.iter().map(|text| text.as_deref()).collect(),
            Self::Arrow(chunks) => {
                let n = chunks.iter().map(|chunk| chunk.len()).sum();
                let mut views = Vec::with_capacity(n);
                for chunk in chunks {
                    match chunk.data_type() {
                        DataType::Utf8 => views.extend(chunk.as_string::<i32>()),
                        DataType::LargeUtf8 => views.extend(chunk.as_string::<i64>()),
                        _ => views.extend(chunk.as_string_view()),
                    }
                }
                views
            }
        }
    }

    /// Returns every text, or an error if one is null.
    pub(crate) fn all(&self, what: &str) -> PyResult<Vec<&str>> {
        let views = self.views().into_iter().enumerate();
        let texts = views.map(|(number, text)| {
            text.ok_or_else(|| {
                PyTypeError::new_err(format!("{what} {number} is None, expected str"))
            })
        });
        texts.collect()
    }
}

/// Returns the next texts of an iterator, of which the first has this number; none at its end.
pub(crate) fn next_texts(items: &mut Bound<'_, PyIterator>, first: usize) -> PyResult<StringArray> {
    let mut texts = StringBuilder::new();
    for item in items.by_ref().take(BATCH_TEXTS) {
        texts.append_option(text(&item?, first + texts.len())?);
        if texts.values_slice().len() >= BATCH_BYTES {
            break;
        }
    }
    Ok(texts.finish())
}

/// Returns whether an object has the Arrow interface.
pub(crate) fn is_arrow(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(object.hasattr("__arrow_c_array__")? || object.hasattr("__arrow_c_stream__")?)
}

/// Returns the text of an item of a list. For a missing text, pandas and NumPy have a value that
/// does not equal itself.
pub(crate) fn text(item: &Bound<'_, PyAny>, number: usize) -> PyResult<Option<PyBackedStr>> {
    if item.is_none() {
        return Ok(None);
    }
    if let Ok(text) = item.cast::<PyString>() {
        let text = PyBackedStr::try_from(text.clone());
        return text.map(Some).map_err(|cause| {
            error::InputError::new_err(format!("item {number} is not valid Unicode: {cause}"))
        });
    }
    let is_missing = item.ne(item).unwrap_or(false);
    let is_na = || item.get_type().name().is_ok_and(|name| name == "NAType");
    if is_missing || is_na() {
        return Ok(None);
    }
    let kind = item.get_type().name()?;
    let advice = if item.is_instance_of::<PyDict>() {
        "; pass the text of each, or make a table of them"
    } else if item.is_instance_of::<PyBytes>() {
        "; decode the texts first"
    } else {
        ""
    };
    Err(PyTypeError::new_err(format!(
        "item {number} is {kind}, expected str or None{advice}"
    )))
}

fn check_strings(kind: &DataType) -> PyResult<()> {
    if is_text(kind) {
        return Ok(());
    }
    Err(PyTypeError::new_err(match kind {
        DataType::Struct(fields) => {
            let names = fields.iter().map(|field| field.name().as_str());
            // The index of a pandas frame is not a column to the caller.
            let names: Vec<&str> = names
                .filter(|name| !name.starts_with(PANDAS_INDEX))
                .collect();
            let names = names.join(", ");
            format!("expected an array of strings, got a table; pass one of its columns: {names}")
        }
        kind => format!(
            "expected an array of strings, got one of {}",
            type_name(kind)
        ),
    }))
}

/// Returns the name of a type as in Python libraries.
pub(crate) fn type_name(kind: &DataType) -> String {
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "string".to_owned(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "binary".to_owned(),
        DataType::Dictionary(_, value) => format!("dictionary of {}", type_name(value)),
        DataType::Struct(_) => "struct".to_owned(),
        DataType::List(_)
        | DataType::LargeList(_)
        | DataType::ListView(_)
        | DataType::LargeListView(_)
        | DataType::FixedSizeList(..) => "list".to_owned(),
        DataType::Map(..) => "map".to_owned(),
        DataType::Union(..) => "union".to_owned(),
        DataType::RunEndEncoded(_, values) => {
            format!("run-end encoded {}", type_name(values.data_type()))
        }
        DataType::FixedSizeBinary(_) => "binary".to_owned(),
        DataType::Boolean => "bool".to_owned(),
        DataType::Timestamp(..) => "timestamp".to_owned(),
        DataType::Time32(_) | DataType::Time64(_) => "time".to_owned(),
        DataType::Duration(_) => "duration".to_owned(),
        DataType::Interval(_) => "interval".to_owned(),
        DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..)
        | DataType::Decimal256(..) => "decimal".to_owned(),
        number => number.to_string().to_lowercase(),
    }
}

/// Quotes a text as Python's `repr` does.
pub(crate) fn quoted(text: &str) -> String {
    let quote = match text.contains('\'') && !text.contains('"') {
        true => '"',
        false => '\'',
    };
    let mut shown = String::from(quote);
    for c in text.chars() {
        match c {
            '\\' => shown.push_str("\\\\"),
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            c if c == quote => shown.extend(['\\', c]),
            c if c.is_control() && c as u32 <= 0xff => {
                shown.push_str(&format!("\\x{:02x}", c as u32))
            }
            c => shown.push(c),
        }
    }
    shown.push(quote);
    shown
}

/// Returns whether values of a type are texts or represent texts.
pub(crate) fn is_text(kind: &DataType) -> bool {
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => true,
        DataType::Dictionary(_, value) => is_text(value),
        _ => false,
    }
}

/// Returns the same values without a dictionary. A column of nulls becomes a column of texts.
pub(crate) fn plain(array: &ArrayRef) -> PyResult<ArrayRef> {
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
