//! Texts from Python: a list of strings or any Arrow string array, read where they lie.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3_arrow::input::AnyArray;

/// Texts that are kept alive while Rust works on them.
pub(crate) enum Texts {
    Arrow(Vec<ArrayRef>),
    List(Vec<Option<PyBackedStr>>),
}

impl Texts {
    pub(crate) fn extract(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let has = |name| object.hasattr(name);
        if has("__arrow_c_array__")? || has("__arrow_c_stream__")? {
            let (chunks, field) = object
                .extract::<AnyArray>()?
                .into_chunked_array()?
                .into_inner();
            return match field.data_type() {
                DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                    Ok(Self::Arrow(chunks))
                }
                other => Err(PyTypeError::new_err(format!(
                    "expected an array of strings, got one of {other}; of a table give the column"
                ))),
            };
        }
        if object.is_instance_of::<pyo3::types::PyString>() {
            return Err(PyTypeError::new_err(
                "expected a list of strings, got a single one; put it into a list",
            ));
        }
        let list = object.try_iter()?.map(|item| item?.extract());
        Ok(Self::List(list.collect::<PyResult<_>>()?))
    }

    /// Every text, none where there is null.
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
}
