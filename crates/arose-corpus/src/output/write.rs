//! Writes documents as JSON Lines and Parquet.
//!
//! Both have the same fields under the names that the readers look for, so the output can be read
//! back. [`crate::format::warc::write`] writes web archives, and [`crate::output::keep`] copies
//! records unchanged.

use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, UInt16Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use serde_json::{Map, Value};

use crate::document::Document;
use crate::time;

/// Writes a document as one line of JSON.
///
/// # Errors
///
/// If the output cannot be written.
pub fn write_json(document: &Document, out: &mut impl Write) -> io::Result<()> {
    write_json_with(document, Map::new(), out)
}

/// Writes a document as one line of JSON, with further fields.
///
/// # Errors
///
/// If the output cannot be written.
pub fn write_json_with(
    document: &Document,
    fields: Map<String, Value>,
    out: &mut impl Write,
) -> io::Result<()> {
    let text = |value: &Option<String>| value.clone().map_or(Value::Null, Value::String);
    let warnings = document.warnings.iter();
    let warnings: Vec<Value> = warnings.map(|warning| warning.to_string().into()).collect();
    let mut object = fields;
    let mut put = |name: &str, value: Value| drop(object.insert(name.to_owned(), value));
    put("id", document.name().into());
    put("url", text(&document.url));
    put("title", text(&document.title));
    put("lang", text(&document.language));
    put("text", document.text.as_str().into());
    put("source", document.source.to_string_lossy().into());
    put("position", document.position.to_string().into());
    put("digest", document.digest.to_string().into());
    put("fetched", document.fetched.map(time::format).into());
    put("status", document.status.into());
    put("warnings", warnings.into());
    serde_json::to_writer(&mut *out, &object)?;
    out.write_all(b"\n")
}

/// Bytes of text held before they are passed to the encoder.
const BATCH_BYTES: usize = 8 << 20;

/// Encoded bytes after which a row group is closed.
const GROUP_BYTES: usize = 64 << 20;

/// Writes documents as rows.
pub struct ParquetWriter<W: Write + Send> {
    writer: ArrowWriter<W>,
    schema: Arc<Schema>,
    rows: Vec<Document>,
    n_bytes: usize,
}

impl<W: Write + Send> ParquetWriter<W> {
    /// Starts a file.
    ///
    /// # Errors
    ///
    /// If the output cannot be written.
    pub fn new(out: W) -> Result<Self, ParquetError> {
        let text = |name: &str| Field::new(name, DataType::Utf8, true);
        let schema = Arc::new(Schema::new(vec![
            text("id"),
            text("url"),
            text("title"),
            text("lang"),
            Field::new("text", DataType::Utf8, false),
            Field::new("source", DataType::Utf8, false),
            Field::new("offset", DataType::UInt64, false),
            Field::new("inner", DataType::UInt64, false),
            Field::new("digest", DataType::Utf8, false),
            Field::new("fetched", DataType::Int64, true),
            Field::new("status", DataType::UInt16, true),
        ]));
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .build();
        let writer = ArrowWriter::try_new(out, Arc::clone(&schema), Some(properties))?;
        Ok(Self {
            writer,
            schema,
            rows: Vec::new(),
            n_bytes: 0,
        })
    }

    /// Adds a row.
    ///
    /// # Errors
    ///
    /// If the output cannot be written.
    pub fn write(&mut self, document: Document) -> Result<(), ParquetError> {
        self.n_bytes += document.text.len() + 256;
        self.rows.push(document);
        match self.n_bytes >= BATCH_BYTES {
            true => self.flush(),
            false => Ok(()),
        }
    }

    /// Ends the file and returns the output.
    ///
    /// # Errors
    ///
    /// If the output cannot be written.
    pub fn finish(mut self) -> Result<W, ParquetError> {
        self.flush()?;
        self.writer.into_inner()
    }

    fn flush(&mut self) -> Result<(), ParquetError> {
        let rows = std::mem::take(&mut self.rows);
        self.n_bytes = 0;
        if rows.is_empty() {
            return Ok(());
        }
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns(&rows))?;
        self.writer.write(&batch)?;
        match self.writer.in_progress_size() >= GROUP_BYTES {
            true => self.writer.flush(),
            false => Ok(()),
        }
    }
}

fn columns(rows: &[Document]) -> Vec<ArrayRef> {
    fn text<'a>(rows: &'a [Document], of: impl Fn(&'a Document) -> Option<&'a str>) -> ArrayRef {
        Arc::new(rows.iter().map(of).collect::<StringArray>())
    }
    let owned = |of: fn(&Document) -> String| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(rows.iter().map(of)))
    };
    let number = |of: fn(&Document) -> u64| -> ArrayRef {
        Arc::new(UInt64Array::from_iter_values(rows.iter().map(of)))
    };
    vec![
        text(rows, |row| row.id.as_deref()),
        text(rows, |row| row.url.as_deref()),
        text(rows, |row| row.title.as_deref()),
        text(rows, |row| row.language.as_deref()),
        text(rows, |row| Some(&row.text)),
        owned(|row| row.source.to_string_lossy().into_owned()),
        number(|row| row.position.offset),
        number(|row| row.position.inner),
        owned(|row| row.digest.to_string()),
        Arc::new(rows.iter().map(|row| row.fetched).collect::<Int64Array>()),
        Arc::new(rows.iter().map(|row| row.status).collect::<UInt16Array>()),
    ]
}
