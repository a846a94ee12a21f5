//! Parquet: one task per row group, only the wanted columns.
//!
//! The footer says which columns exist, so a file without a text column is refused before any row
//! is read. A row group that does not decode is reported at the first row that was lost, and the
//! others are read all the same. The format's library is not ours and its input may be hostile, so
//! a panic inside it is taken as damage, too.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, TimeUnit};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ParquetRecordBatchReaderBuilder, RowSelection,
};
use parquet::errors::ParquetError;

use crate::config::{Config, N_SLOTS};
use crate::document::{Item, Position, Reason};
use crate::format::row::no_text;
use crate::format::row::{Place, Row};

/// A file whose footer has been read.
pub(crate) struct Table {
    source: Arc<Path>,
    /// Where the bytes are: the source itself, or the copy of a pipe.
    file: Arc<OnDisk>,
    metadata: ArrowReaderMetadata,
    columns: [Option<usize>; N_SLOTS],
    next_group: usize,
    next_row: u64,
}

/// A file to open again and again, deleted afterwards if it is a copy.
pub(crate) enum OnDisk {
    Original(PathBuf),
    Copy(tempfile::TempPath),
}

impl OnDisk {
    fn path(&self) -> &Path {
        match self {
            OnDisk::Original(path) => path,
            OnDisk::Copy(path) => path,
        }
    }
}

/// One row group for a worker.
pub(crate) struct RowGroup {
    source: Arc<Path>,
    file: Arc<OnDisk>,
    metadata: ArrowReaderMetadata,
    columns: [Option<usize>; N_SLOTS],
    group: usize,
    first_row: u64,
}

impl Table {
    /// Reads the footer; the notice of what is wrong if there is nothing to read.
    pub(crate) fn open(source: &Arc<Path>, file: OnDisk, config: &Config) -> Result<Self, Item> {
        let place = Place::new(source, Position::default());
        let metadata = load(file.path())
            .map_err(|error| place.skipped(Reason::BadParquet, error.to_string()))?;
        let fields = metadata.schema().fields();
        let names: Vec<String> = fields.iter().map(|field| field.name().clone()).collect();
        let columns = config.fields.choose(&names);
        if columns[0].or(columns[1]).is_none() {
            return Err(no_text(&place, &config.fields, &names));
        }
        Ok(Self {
            source: Arc::clone(source),
            file: Arc::new(file),
            metadata,
            columns,
            next_group: 0,
            next_row: 0,
        })
    }

    /// The next row group; none at the end.
    pub(crate) fn next(&mut self) -> Option<RowGroup> {
        let group = self.metadata.metadata().row_groups().get(self.next_group)?;
        let task = RowGroup {
            source: Arc::clone(&self.source),
            file: Arc::clone(&self.file),
            metadata: self.metadata.clone(),
            columns: self.columns,
            group: self.next_group,
            first_row: self.next_row,
        };
        self.next_group += 1;
        self.next_row += u64::try_from(group.num_rows()).unwrap_or(0);
        Some(task)
    }

    /// What the rows at these positions hold; none where there is no row.
    pub(crate) fn rows_at(mut self, positions: &[Position], config: &Config) -> Vec<Option<Item>> {
        let mut rows: Vec<u64> = positions.iter().map(|position| position.offset).collect();
        rows.sort_unstable();
        rows.dedup();
        let mut rest = rows.as_slice();
        let mut found = BTreeMap::new();
        while let Some(group) = self.next() {
            let n_inside = rest.partition_point(|&row| row < self.next_row);
            let (inside, after) = rest.split_at(n_inside);
            if !inside.is_empty() {
                group.read_chosen(inside, config, &mut |item| {
                    found.insert(item.place().1, item);
                });
            }
            rest = after;
        }
        let items = positions.iter().map(|position| found.remove(position));
        items.collect()
    }
}

/// Reads a footer.
pub(crate) fn load(path: &Path) -> Result<ArrowReaderMetadata, ParquetError> {
    let file = File::open(path)?;
    guarded(|| ArrowReaderMetadata::load(&file, Default::default()))
}

/// Runs code of the format's library, with panics as errors.
pub(crate) fn guarded<T>(run: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    catch_unwind(AssertUnwindSafe(run))
        .unwrap_or_else(|_| Err(ParquetError::General("the decoder gave up".to_owned())))
}

impl RowGroup {
    /// Makes a document of every row.
    pub(crate) fn read(&self, config: &Config, sink: &mut dyn FnMut(Item)) {
        self.read_rows(self.first_row.., None, config, sink);
    }

    /// Makes a document of each of these rows, which must ascend and lie in this group.
    fn read_chosen(&self, rows: &[u64], config: &Config, sink: &mut dyn FnMut(Item)) {
        let ranges = rows.iter().filter_map(|row| {
            let index = usize::try_from(row - self.first_row).ok()?;
            Some(index..index + 1)
        });
        let selection = RowSelection::from_consecutive_ranges(ranges, self.n_rows());
        self.read_rows(rows.iter().copied(), Some(selection), config, sink);
    }

    fn n_rows(&self) -> usize {
        let group = self.metadata.metadata().row_group(self.group);
        usize::try_from(group.num_rows()).unwrap_or(0)
    }

    /// Makes documents of the selected rows, whose numbers are given, too.
    fn read_rows(
        &self,
        mut rows: impl Iterator<Item = u64>,
        selection: Option<RowSelection>,
        config: &Config,
        sink: &mut dyn FnMut(Item),
    ) {
        let mut result = self.batches(selection, config);
        while let Ok(batches) = &mut result {
            match guarded(|| batches.next().transpose().map_err(ParquetError::from)) {
                Ok(Some(batch)) => self.read_batch(&batch, &mut rows, config, sink),
                Ok(None) => return,
                Err(error) => result = Err(error),
            }
        }
        if let Err(error) = result {
            let lost = rows.next().unwrap_or(self.first_row);
            let place = Place::new(&self.source, at_row(lost));
            sink(place.skipped(
                Reason::BadParquet,
                format!("row group {}: {error}", self.group),
            ));
        }
    }

    fn batches(
        &self,
        selection: Option<RowSelection>,
        config: &Config,
    ) -> Result<impl Iterator<Item = Result<RecordBatch, arrow_schema::ArrowError>>, ParquetError>
    {
        let file = File::open(self.file.path())?;
        let group = self.metadata.metadata().row_group(self.group);
        let n_bytes = usize::try_from(group.total_byte_size()).unwrap_or(0);
        // Batches of about one block, so that long texts do not pile up.
        let rows_per_block = config.block_bytes.get() / (n_bytes / self.n_rows().max(1)).max(1);
        guarded(|| {
            let schema = self.metadata.metadata().file_metadata().schema_descr();
            let mask = ProjectionMask::roots(schema, self.columns.iter().flatten().copied());
            let builder =
                ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.metadata.clone())
                    .with_projection(mask)
                    .with_row_groups(vec![self.group])
                    .with_batch_size(rows_per_block.clamp(1, 8192));
            match selection {
                Some(selection) => builder.with_row_selection(selection).build(),
                None => builder.build(),
            }
        })
    }

    fn read_batch(
        &self,
        batch: &RecordBatch,
        rows: &mut dyn Iterator<Item = u64>,
        config: &Config,
        sink: &mut dyn FnMut(Item),
    ) {
        let names = self.metadata.schema().fields();
        let arrays = self.columns.map(|column| {
            let name = names.get(column?)?.name();
            batch.column_by_name(name)
        });
        for (i, row) in (0..batch.num_rows()).zip(rows) {
            let place = Place::new(&self.source, at_row(row));
            let mut row = Row {
                is_null: arrays[..2].iter().flatten().any(|array| is_null(array, i)),
                ..Row::default()
            };
            for (value, array) in row.values.iter_mut().zip(&arrays) {
                let cell = array.and_then(|array| cell(array, i));
                row.is_malformed |= cell.as_ref().is_some_and(|cell| cell.is_malformed);
                *value = cell.map(|cell| cell.text);
            }
            sink(row.into_item(place, config));
        }
    }
}

/// Whether a cell holds nothing. A column of nulls alone has a type of its own, and no mask.
fn is_null(array: &dyn Array, i: usize) -> bool {
    array.is_null(i) || *array.data_type() == DataType::Null
}

fn at_row(row: u64) -> Position {
    Position {
        offset: row,
        inner: 0,
    }
}

struct Cell<'a> {
    text: Cow<'a, str>,
    is_malformed: bool,
}

impl<'a> From<&'a [u8]> for Cell<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let is_malformed = matches!(text, Cow::Owned(_));
        Cell { text, is_malformed }
    }
}

/// A string, a whole number or a time as text; none for other types.
fn cell(array: &dyn Array, i: usize) -> Option<Cell<'_>> {
    if array.is_null(i) {
        return None;
    }
    let bytes = match array.data_type() {
        DataType::Utf8 => array.as_string_opt::<i32>()?.value(i).as_bytes(),
        DataType::LargeUtf8 => array.as_string_opt::<i64>()?.value(i).as_bytes(),
        DataType::Utf8View => array.as_string_view_opt()?.value(i).as_bytes(),
        DataType::Binary => array.as_binary_opt::<i32>()?.value(i),
        DataType::LargeBinary => array.as_binary_opt::<i64>()?.value(i),
        DataType::BinaryView => array.as_binary_view_opt()?.value(i),
        _ => {
            let text = Cow::Owned(number(array, i)?);
            let is_malformed = false;
            return Some(Cell { text, is_malformed });
        }
    };
    Some(Cell::from(bytes))
}

fn number(array: &dyn Array, i: usize) -> Option<String> {
    macro_rules! value {
        ($type:ty) => {
            array.as_primitive_opt::<$type>()?.value(i)
        };
    }
    Some(match array.data_type() {
        DataType::Int8 => value!(Int8Type).to_string(),
        DataType::Int16 => value!(Int16Type).to_string(),
        DataType::Int32 => value!(Int32Type).to_string(),
        DataType::Int64 => value!(Int64Type).to_string(),
        DataType::UInt8 => value!(UInt8Type).to_string(),
        DataType::UInt16 => value!(UInt16Type).to_string(),
        DataType::UInt32 => value!(UInt32Type).to_string(),
        DataType::UInt64 => value!(UInt64Type).to_string(),
        DataType::Timestamp(unit, _) => crate::time::format(match unit {
            TimeUnit::Second => value!(TimestampSecondType),
            TimeUnit::Millisecond => value!(TimestampMillisecondType).div_euclid(1000),
            TimeUnit::Microsecond => value!(TimestampMicrosecondType).div_euclid(1_000_000),
            TimeUnit::Nanosecond => value!(TimestampNanosecondType).div_euclid(1_000_000_000),
        }),
        _ => return None,
    })
}
