//! Columns of the Parquet files of a run, read in batches.
//!
//! A table is a file, or a directory of files if a cluster has written it.

use std::fs::File;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, RecordBatch, RecordBatchOptions, StringArray,
    UInt32Array, UInt64Array,
};
use arrow_schema::{Field, Schema};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::statistics::Statistics;

use super::Error;

/// Number of rows in memory at a time.
const BATCH_ROWS: usize = 4096;

/// Rows of selected columns of a file.
pub(crate) struct Batch<'a> {
    path: &'a Path,
    batch: RecordBatch,
}

impl Batch<'_> {
    pub(crate) fn columns(&self) -> &RecordBatch {
        &self.batch
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.batch.num_rows()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.batch.column_by_name(name).is_some()
    }

    pub(crate) fn u64s(&self, name: &str) -> Result<&UInt64Array, Error> {
        self.column(name, |array| array.as_primitive_opt::<UInt64Type>())
    }

    pub(crate) fn u32s(&self, name: &str) -> Result<&UInt32Array, Error> {
        self.column(name, |array| array.as_primitive_opt::<UInt32Type>())
    }

    pub(crate) fn f64s(&self, name: &str) -> Result<&Float64Array, Error> {
        self.column(name, |array| array.as_primitive_opt::<Float64Type>())
    }

    pub(crate) fn bools(&self, name: &str) -> Result<&BooleanArray, Error> {
        self.column(name, |array| array.as_boolean_opt())
    }

    pub(crate) fn strings(&self, name: &str) -> Result<&StringArray, Error> {
        self.column(name, |array| array.as_string_opt::<i32>())
    }

    fn column<'a, T>(
        &'a self,
        name: &str,
        cast: impl FnOnce(&'a dyn Array) -> Option<&'a T>,
    ) -> Result<&'a T, Error> {
        let array = self.batch.column_by_name(name);
        let array = array.and_then(|array| cast(array.as_ref()));
        array.ok_or_else(|| {
            let what = format!("column `{name}` is missing or has another type");
            Error::damaged(self.path, what)
        })
    }
}

/// Calls `each` with all rows of these columns.
pub(crate) fn scan<E: From<Error>>(
    path: &Path,
    columns: &[&str],
    mut each: impl FnMut(&Batch<'_>) -> Result<(), E>,
) -> Result<(), E> {
    for file in files(path)? {
        read(&file, columns, open(&file)?, &mut each)?;
    }
    Ok(())
}

/// Calls `each` with these rows, which must be ascending, of these columns. Rows beyond the end are
/// skipped.
pub(crate) fn select(
    path: &Path,
    columns: &[&str],
    rows: &[u64],
    mut each: impl FnMut(&Batch<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let (mut start, mut rows) = (0, rows);
    for file in files(path)? {
        let builder = open(&file)?;
        let n_rows = builder.metadata().file_metadata().num_rows();
        let n_rows = usize::try_from(n_rows).unwrap_or(0);
        let end = start + n_rows as u64;
        let (own, others) = rows.split_at(rows.partition_point(|row| *row < end));
        rows = others;
        if !own.is_empty() {
            let ranges = own.iter().map(|row| (row - start) as usize);
            let ranges = ranges.map(|row| row..row + 1);
            let selection = RowSelection::from_consecutive_ranges(ranges, n_rows);
            let builder = builder.with_row_selection(selection);
            read(&file, columns, builder, &mut each)?;
        }
        start = end;
    }
    Ok(())
}

/// Calls `each` with the rows of these columns, in row groups whose column `range.0` may contain a
/// value in `range.1`.
pub(crate) fn scan_groups(
    path: &Path,
    columns: &[&str],
    (key, range): (&str, RangeInclusive<u64>),
    mut each: impl FnMut(&Batch<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    for file in files(path)? {
        let builder = open(&file)?;
        let groups = builder.metadata().row_groups().iter().enumerate();
        let chosen = groups.filter(|(_, group)| may_hold(group, key, &range));
        let chosen: Vec<usize> = chosen.map(|(i, _)| i).collect();
        if !chosen.is_empty() {
            read(&file, columns, builder.with_row_groups(chosen), &mut each)?;
        }
    }
    Ok(())
}

/// Returns the files of a table: itself, or those of a directory, which a cluster writes, by name.
/// This is the order of their rows.
fn files(path: &Path) -> Result<Vec<PathBuf>, Error> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let failed = |source| Error::Io {
        what: "cannot open",
        path: path.to_owned(),
        source,
    };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let file = entry.map_err(failed)?.path();
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        // Other files of writers begin with one of these.
        let is_table = name.ends_with(".parquet") && !name.starts_with(['.', '_']);
        if is_table {
            files.push(file);
        }
    }
    if files.is_empty() {
        return Err(Error::damaged(path, "the directory has no Parquet files"));
    }
    files.sort();
    Ok(files)
}

/// Returns whether a row group may contain a value in a range; true if it has no statistics.
fn may_hold(group: &RowGroupMetaData, key: &str, range: &RangeInclusive<u64>) -> bool {
    let mut columns = group.columns().iter();
    let column = columns.find(|column| column.column_path().string() == key);
    let statistics = column.and_then(|column| column.statistics());
    match statistics {
        Some(Statistics::Int64(values)) => match (values.min_opt(), values.max_opt()) {
            // The format stores unsigned numbers as signed ones.
            (Some(&min), Some(&max)) => min as u64 <= *range.end() && max as u64 >= *range.start(),
            _ => true,
        },
        _ => true,
    }
}

fn open(path: &Path) -> Result<ParquetRecordBatchReaderBuilder<File>, Error> {
    let file = File::open(path).map_err(|source| Error::Io {
        what: "cannot open",
        path: path.to_owned(),
        source,
    })?;
    // The types of Parquet itself are sufficient, and do not depend on the columns in memory at the
    // time of writing.
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    ParquetRecordBatchReaderBuilder::try_new_with_options(file, options).map_err(in_file(path))
}

fn read<E: From<Error>>(
    path: &Path,
    columns: &[&str],
    builder: ParquetRecordBatchReaderBuilder<File>,
    mut each: impl FnMut(&Batch<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let mask = ProjectionMask::columns(builder.parquet_schema(), columns.iter().copied());
    let builder = builder.with_projection(mask).with_batch_size(BATCH_ROWS);
    for batch in builder.build().map_err(in_file(path))? {
        let batch = batch.map_err(|source| in_file(path)(source.into()))?;
        let batch = unsigned(&batch);
        each(&Batch { path, batch })?;
    }
    Ok(())
}

/// Names of 32-bit columns in the tables of a run on a single machine.
const NARROW: [&str; 4] = ["n_tokens", "b_sim", "c_sim", "other_pages"];

/// Converts a batch to the types of a run on a single machine. A cluster writes only signed numbers
/// of 64 bits, since Spark has no unsigned ones.
fn unsigned(batch: &RecordBatch) -> RecordBatch {
    let schema = batch.schema();
    let fields = schema.fields().iter().zip(batch.columns());
    let (fields, columns): (Vec<Field>, Vec<ArrayRef>) = fields
        .map(|(field, column)| {
            let column = unsigned_column(field.name(), column);
            let data_type = column.data_type().clone();
            (Field::new(field.name(), data_type, true), column)
        })
        .unzip();
    let schema = Arc::new(Schema::new(fields));
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(schema, columns, &options).expect("as many columns as before")
}

fn unsigned_column(name: &str, column: &ArrayRef) -> ArrayRef {
    match column.as_primitive_opt::<Int64Type>() {
        None => Arc::clone(column),
        Some(numbers) if NARROW.contains(&name) => {
            Arc::new(numbers.unary::<_, UInt32Type>(|number| number as u32))
        }
        Some(numbers) => Arc::new(numbers.unary::<_, UInt64Type>(|number| number as u64)),
    }
}

fn in_file(path: &Path) -> impl FnOnce(ParquetError) -> Error {
    |source| Error::Parquet {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Int64Array;
    use parquet::arrow::ArrowWriter;

    use super::*;

    fn write(path: &Path, columns: Vec<(&str, ArrayRef)>) {
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let file = File::create(path).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
    }

    fn signed(numbers: impl IntoIterator<Item = i64>) -> ArrayRef {
        Arc::new(numbers.into_iter().collect::<Int64Array>())
    }

    /// Rows 0 to 9 in three files, with signed numbers, next to other files of a writer.
    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, docs) in [("00002", 7..10), ("00000", 0..4), ("00001", 4..7)] {
            let path = folder.path().join(format!("{name}.parquet"));
            let n_tokens = signed(docs.clone().map(|doc| doc * 10));
            write(&path, vec![("doc", signed(docs)), ("n_tokens", n_tokens)]);
        }
        std::fs::write(folder.path().join("_SUCCESS"), "").unwrap();
        std::fs::write(folder.path().join(".00000.parquet.crc"), "crc").unwrap();
        folder
    }

    fn rows(batch: &Batch<'_>) -> Vec<(u64, u32)> {
        let docs = batch.u64s("doc").unwrap().values().iter().copied();
        let n_tokens = batch.u32s("n_tokens").unwrap().values().iter().copied();
        docs.zip(n_tokens).collect()
    }

    #[test]
    fn a_directory_is_a_table_in_the_order_of_its_files() {
        let folder = folder();
        let mut found = Vec::new();
        scan(folder.path(), &["doc", "n_tokens"], |batch| {
            found.extend(rows(batch));
            Ok::<(), Error>(())
        })
        .unwrap();
        assert_eq!(
            found,
            (0..10).map(|i| (i, i as u32 * 10)).collect::<Vec<_>>()
        );
    }

    #[test]
    fn rows_are_selected_across_files() {
        let folder = folder();
        let mut found = Vec::new();
        let wanted = [0, 3, 4, 6, 9, 10, 77];
        select(folder.path(), &["doc", "n_tokens"], &wanted, |batch| {
            found.extend(rows(batch).iter().map(|(doc, _)| *doc));
            Ok(())
        })
        .unwrap();
        assert_eq!(found, [0, 3, 4, 6, 9]);
        found.clear();
        scan_groups(
            folder.path(),
            &["doc", "n_tokens"],
            ("doc", 5..=6),
            |batch| {
                found.extend(rows(batch).iter().map(|(doc, _)| *doc));
                Ok(())
            },
        )
        .unwrap();
        assert_eq!(found, [4, 5, 6]);
    }

    #[test]
    fn a_directory_without_tables_is_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let failed = scan(folder.path(), &["doc"], |_| Ok::<(), Error>(()));
        assert!(matches!(failed, Err(Error::Damaged { .. })));
    }
}
