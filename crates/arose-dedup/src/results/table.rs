//! Columns of the Parquet files of a run, read in batches.

use std::fs::File;
use std::ops::RangeInclusive;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array, BooleanArray, Float64Array, RecordBatch, StringArray, UInt32Array, UInt64Array,
};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::statistics::Statistics;

use super::Error;

/// Rows held at a time.
const BATCH_ROWS: usize = 4096;

/// Rows of some columns of a file.
pub(crate) struct Batch<'a> {
    path: &'a Path,
    batch: RecordBatch,
}

impl Batch<'_> {
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
    each: impl FnMut(&Batch<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let builder = open(path)?;
    read(path, columns, builder, each)
}

/// Calls `each` with these rows, which must ascend, of these columns; rows beyond the end are
/// skipped.
pub(crate) fn select(
    path: &Path,
    columns: &[&str],
    rows: &[u64],
    each: impl FnMut(&Batch<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let builder = open(path)?;
    let n_rows = builder.metadata().file_metadata().num_rows();
    let n_rows = usize::try_from(n_rows).unwrap_or(0);
    let rows = rows.iter().filter_map(|&row| usize::try_from(row).ok());
    let ranges = rows.filter(|&row| row < n_rows).map(|row| row..row + 1);
    let selection = RowSelection::from_consecutive_ranges(ranges, n_rows);
    read(path, columns, builder.with_row_selection(selection), each)
}

/// Calls `each` with the rows of these columns in row groups where the column `range.0` may hold a
/// value in `range.1`.
pub(crate) fn scan_groups(
    path: &Path,
    columns: &[&str],
    (key, range): (&str, RangeInclusive<u64>),
    each: impl FnMut(&Batch<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let builder = open(path)?;
    let groups = builder.metadata().row_groups().iter().enumerate();
    let chosen = groups.filter(|(_, group)| may_hold(group, key, &range));
    let chosen = chosen.map(|(i, _)| i).collect();
    read(path, columns, builder.with_row_groups(chosen), each)
}

/// Whether a row group may hold a value in a range; yes if it does not say.
fn may_hold(group: &RowGroupMetaData, key: &str, range: &RangeInclusive<u64>) -> bool {
    let mut columns = group.columns().iter();
    let column = columns.find(|column| column.column_path().string() == key);
    let statistics = column.and_then(|column| column.statistics());
    match statistics {
        Some(Statistics::Int64(values)) => match (values.min_opt(), values.max_opt()) {
            // The format keeps unsigned numbers in signed ones.
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
    // What Parquet itself says of the types is enough, and does not depend on how columns were held
    // when they were written.
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
        each(&Batch { path, batch })?;
    }
    Ok(())
}

fn in_file(path: &Path) -> impl FnOnce(ParquetError) -> Error {
    |source| Error::Parquet {
        path: path.to_owned(),
        source,
    }
}
