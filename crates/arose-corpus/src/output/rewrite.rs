//! Copies the records of a file, with the text of some replaced, into a file of the same format.
//!
//! | format | a changed record |
//! |---|---|
//! | JSON Lines, other JSON | the object with another string in its text field |
//! | CSV, TSV | the row with another cell |
//! | Parquet | the row with another value in its text column |
//! | plain text | the new text |
//!
//! All other records are copied byte for byte, and all other fields are unchanged. Web pages and
//! archives cannot be rewritten, because their text is extracted from markup.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BooleanArray, LargeStringArray, RecordBatch, StringArray, StringViewArray,
    StructArray,
};
use arrow_schema::DataType;
use arrow_select::filter::filter_record_batch;
use parquet::errors::ParquetError;

use super::keep::starts_array;
use super::packed::Packed;
use super::parts::Frame;
use super::rows::{Rows, rows_after};
use crate::config::Config;
use crate::document::{Position, Warning};
use crate::error::Error;
use crate::format::Cut;
use crate::format::csv::RowCutter;
use crate::format::json::lines::{LineCutter, Wanted, with_text};
use crate::format::json::values::ValueCutter;
use crate::format::parquet::{choose, guarded};
use crate::format::sniff::{Format, sniff};
use crate::source::input::Origin;
use crate::source::raw::Handle;
use crate::source::stream::Stream;

/// The change to a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// It is copied.
    Keep,
    /// It is omitted.
    Drop,
    /// It is copied with this text.
    Text(String),
}

/// Decides about records, in the order of their positions.
type Decide<'a> = &'a mut dyn FnMut(Position) -> io::Result<Change>;

/// Whether the texts of a file can be replaced; false for web pages, PDF files and archives.
#[must_use]
pub fn is_rewritable(source: &Path, config: &Config) -> bool {
    let Ok(file) = File::open(source) else {
        return true;
    };
    let mut stream = Stream::new(Handle::File(file), &config.limits);
    !matches!(
        sniff(&mut stream, source, Origin::Named, config),
        Some(Format::Warc | Format::Arc | Format::Html | Format::Xml | Format::Pdf)
    )
}

/// Copies the file `source` to `out` with the changes of `decide`.
///
/// Returns the first record passed to `decide` that could not be copied, if there is one: for
/// example, a Parquet row with a damaged cell.
///
/// # Errors
///
/// If the file cannot be read, the output cannot be written, or a text cannot be replaced.
pub fn rewrite(
    source: &Path,
    out: impl Write + Send,
    config: &Config,
    decide: Decide<'_>,
) -> Result<Option<Warning>, Error> {
    let io = |what| {
        move |error| Error::Io {
            what,
            path: source.to_owned(),
            source: error,
        }
    };
    let open = || File::open(source).map_err(io("cannot open"));
    let mut stream = Stream::new(Handle::File(open()?), &config.limits);
    let format = sniff(&mut stream, source, Origin::Named, config);
    let packing = stream.packing();
    let path: Arc<Path> = source.into();
    if format == Some(Format::Parquet) {
        let lost = rewrite_rows(source, open()?, out, config, decide);
        return lost.map_err(|error| Error::Parquet {
            path: source.to_owned(),
            source: error,
        });
    }
    let result = Packed::new(out, packing).and_then(|out| match format {
        Some(Format::JsonLines) => {
            let cutter = LineCutter::new(&path, stream, config);
            rewrite_lines(cutter, config, out, decide)
        }
        Some(Format::Json) => {
            let frame = match starts_array(&stream) {
                true => Frame::array(),
                false => Frame::SEQUENCE,
            };
            let cutter = ValueCutter::new(&path, stream, config);
            rewrite_objects(cutter, config, frame, out, decide)
        }
        Some(Format::Csv { delimiter }) => {
            let cutter = RowCutter::new(&path, stream, delimiter, config);
            rewrite_cells(cutter, delimiter, out, decide)
        }
        _ => rewrite_whole(stream, out, decide),
    });
    result.map_err(io("cannot rewrite")).map(|()| None)
}

fn no_place() -> io::Error {
    let message = "a record has no field that can contain the text";
    io::Error::new(io::ErrorKind::InvalidData, message)
}

fn rewrite_lines(
    mut cutter: LineCutter,
    config: &Config,
    mut out: Packed<impl Write>,
    decide: Decide<'_>,
) -> io::Result<()> {
    let wanted = Wanted::new(&config.fields);
    while let Some(cut) = cutter.next() {
        let Cut::Block(block) = cut else {
            continue;
        };
        for (start, line) in block.lines() {
            match decide(block.place(start).position)? {
                Change::Drop => {}
                Change::Keep => out.put_line(line)?,
                Change::Text(text) => {
                    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
                    let line = with_text(line, &text, &wanted).ok_or_else(no_place)?;
                    out.put_line(&line)?;
                }
            }
        }
    }
    out.finish().map(drop)
}

fn rewrite_objects(
    mut cutter: ValueCutter,
    config: &Config,
    frame: Frame,
    mut out: Packed<impl Write>,
    decide: Decide<'_>,
) -> io::Result<()> {
    let wanted = Wanted::new(&config.fields);
    let mut next = &frame.before[..];
    let mut has_any = false;
    while let Some(cut) = cutter.next() {
        let Cut::Block(block) = cut else {
            continue;
        };
        for (position, object) in block.objects() {
            let changed = match decide(position)? {
                Change::Drop => continue,
                Change::Keep => None,
                Change::Text(text) => Some(with_text(object, &text, &wanted).ok_or_else(no_place)?),
            };
            has_any = true;
            out.write_all(std::mem::replace(&mut next, frame.between))?;
            out.write_all(changed.as_deref().unwrap_or(object))?;
        }
    }
    if !has_any {
        out.write_all(&frame.before)?;
    }
    if has_any || !frame.before.is_empty() {
        out.write_all(frame.after)?;
    }
    out.finish().map(drop)
}

fn rewrite_cells(
    mut cutter: RowCutter,
    delimiter: u8,
    mut out: Packed<impl Write>,
    decide: Decide<'_>,
) -> io::Result<()> {
    out.put_line(cutter.header())?;
    let (column, style) = (cutter.text_column(), cutter.style(delimiter));
    while let Some(row) = cutter.row() {
        let Ok(row) = row else {
            continue;
        };
        match decide(row.position)? {
            Change::Drop => {}
            Change::Keep => out.put_line(&row.raw)?,
            Change::Text(text) => {
                let column = column.ok_or_else(no_place)?;
                let changed = row.with_text(column, &text, style).ok_or_else(no_place)?;
                out.put_line(&changed)?;
            }
        }
    }
    out.finish().map(drop)
}

/// A file that is one document.
fn rewrite_whole(
    mut stream: Stream,
    mut out: Packed<impl Write>,
    decide: Decide<'_>,
) -> io::Result<()> {
    match decide(Position::default())? {
        Change::Drop => {}
        Change::Text(text) => out.write_all(text.as_bytes())?,
        Change::Keep => loop {
            let n = stream.fill(1).len();
            if n == 0 {
                break;
            }
            out.write_all(stream.window())?;
            stream.consume(n);
        },
    }
    out.finish().map(drop)
}

fn rewrite_rows(
    source: &Path,
    file: File,
    out: impl Write + Send,
    config: &Config,
    decide: Decide<'_>,
) -> Result<Option<Warning>, ParquetError> {
    let rows = Rows::open(source, file, config)?;
    let mut writer = rows.writer(out)?;
    let [text, ..] = choose(rows.schema().fields(), &config.fields);
    let mut row = 0;
    let mut decide = || {
        let position = Position {
            offset: row,
            inner: 0,
        };
        row += 1;
        decide(position)
    };
    let (mut first_row, mut first_lost) = (0, None);
    for (number, n_rows) in rows.groups().enumerate() {
        let select = |n_done| rows_after(n_rows, n_done);
        let (n_done, lost) = rows.read(number, select, &mut |batch| {
            let changes = (0..batch.num_rows()).map(|_| decide());
            let changes = changes.collect::<io::Result<Vec<Change>>>()?;
            let batch = changed(&batch, text.as_deref(), &changes)?;
            guarded(|| writer.write(&batch))
        })?;
        // `decide` counts the rows, so it must be called for every row.
        for _ in n_done..n_rows {
            decide()?;
        }
        if let Some(lost) = lost {
            let warning = || rows.warning(number, first_row + n_done as u64, lost);
            first_lost.get_or_insert_with(warning);
        }
        first_row += n_rows as u64;
    }
    guarded(|| writer.close())?;
    Ok(first_lost)
}

fn is_text(kind: &DataType) -> bool {
    matches!(
        kind,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
    )
}

fn changed(
    batch: &RecordBatch,
    text: Option<&[String]>,
    changes: &[Change],
) -> Result<RecordBatch, ParquetError> {
    let mut columns = batch.columns().to_vec();
    if changes
        .iter()
        .any(|change| matches!(change, Change::Text(_)))
    {
        let place = || {
            let (name, inner) = text?.split_first()?;
            let column = batch.schema().index_of(name).ok()?;
            Some((column, replaced_in(&columns[column], inner, changes)?))
        };
        let (column, array) = place().ok_or_else(|| ParquetError::External(no_place().into()))?;
        columns[column] = array;
    }
    let batch = RecordBatch::try_new(batch.schema(), columns)?;
    let is_kept: BooleanArray = changes
        .iter()
        .map(|change| Some(*change != Change::Drop))
        .collect();
    Ok(filter_record_batch(&batch, &is_kept)?)
}

/// A column with the changed values in the field that `names` lead to; none if it cannot contain
/// them.
fn replaced_in(array: &ArrayRef, names: &[String], changes: &[Change]) -> Option<ArrayRef> {
    let Some((name, rest)) = names.split_first() else {
        return is_text(array.data_type()).then(|| replaced(array, changes));
    };
    let parent = array.as_struct_opt()?;
    let (index, _) = parent.fields().find(name)?;
    let mut columns = parent.columns().to_vec();
    columns[index] = replaced_in(&columns[index], rest, changes)?;
    let nulls = parent.nulls().cloned();
    let array = StructArray::try_new(parent.fields().clone(), columns, nulls);
    array.ok().map(|array| Arc::new(array) as ArrayRef)
}

/// A column of text with the changed values.
fn replaced(array: &ArrayRef, changes: &[Change]) -> ArrayRef {
    fn values<'a>(
        array: &dyn Array,
        changes: &'a [Change],
        value: impl Fn(usize) -> &'a str,
    ) -> Vec<Option<&'a str>> {
        let values = changes.iter().enumerate().map(|(i, change)| match change {
            Change::Text(text) => Some(&text[..]),
            _ if array.is_null(i) => None,
            _ => Some(value(i)),
        });
        values.collect()
    }
    match array.data_type() {
        DataType::LargeUtf8 => {
            let texts = array.as_string::<i64>();
            Arc::new(LargeStringArray::from(values(array, changes, |i| {
                texts.value(i)
            })))
        }
        DataType::Utf8View => {
            let texts = array.as_string_view();
            let values = values(array, changes, |i| texts.value(i));
            Arc::new(values.into_iter().collect::<StringViewArray>())
        }
        _ => {
            let texts = array.as_string::<i32>();
            Arc::new(StringArray::from(values(array, changes, |i| {
                texts.value(i)
            })))
        }
    }
}
