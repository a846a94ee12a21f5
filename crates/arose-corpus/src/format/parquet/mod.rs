//! Reads Parquet: one task per row group, and only the wanted columns.
//!
//! The footer lists the columns, so a file without a text column is rejected before any row is
//! read. A row group that cannot be decoded is reported at the first lost row, and the other row
//! groups are still read. The Parquet library is third-party code and its input may be hostile.
//! Therefore a panic inside it counts as damage, and [`pages`] and [`unpack`] bound its memory.
//!
//! A run of equal values takes only a few bytes, however long it is, so a short file may claim
//! billions of rows, null or equal. Rows and text are therefore bounded by the size of the file;
//! see [`Bounds`].

mod lists;
pub(crate) mod pages;
pub(crate) mod unpack;

use std::collections::BTreeMap;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Field, FieldRef, Schema};
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, RowSelection,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;

use crate::config::{Config, Fields, Limits, N_SLOTS, below};
use crate::document::{Item, Position, Reason};
use crate::format::cell::{cell, is_readable};
use crate::format::row::{RecordPlace, Row, no_text};
use crate::pipeline::bookmark::{CutterState, Within};
use pages::Values;
use unpack::{Refusal, Selected};

/// A file whose footer has been read.
pub(crate) struct Table {
    source: Arc<Path>,
    /// The file with the bytes: the source itself, or a copy of a pipe.
    file: Arc<OnDisk>,
    metadata: ArrowReaderMetadata,
    values: Values,
    columns: Arc<Columns>,
    bounds: Bounds,
    limits: Limits,
    next_group: usize,
    next_row: u64,
}

/// For each slot, the column with its values: a name, or the names that lead to a struct field.
pub(crate) type Columns = [Option<Vec<String>>; N_SLOTS];

/// A file that can be opened repeatedly; a copy is deleted afterwards.
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
    values: Values,
    columns: Arc<Columns>,
    group: usize,
    first_row: u64,
    /// Maximum bytes of text from this row group.
    most_bytes: u64,
}

/// Limits on the output of a file, derived from its size.
pub(crate) struct Bounds {
    n_rows: u64,
}

impl Bounds {
    /// Number of rows allowed for every file, in addition to those that its size allows.
    const HARMLESS_ROWS: u64 = 16 << 20;
    /// Maximum rows per byte of the file; distinct values take far more space.
    const ROWS_PER_BYTE: u64 = 16;

    /// Checks the footer against the size of the file.
    pub(crate) fn check(
        metadata: &ParquetMetaData,
        file_bytes: u64,
    ) -> Result<Self, (Reason, String)> {
        let groups = metadata.row_groups();
        let rows = groups.iter().map(|group| u64::try_from(group.num_rows()));
        let n_rows = rows.fold(0, |sum: u64, n| sum.saturating_add(n.unwrap_or(0)));
        let columns = groups.iter().flat_map(|group| group.columns());
        let mut n_bytes: u64 = 0;
        for column in columns {
            let Ok(n) = u64::try_from(column.compressed_size()) else {
                let detail = format!("a column of {} bytes", column.compressed_size());
                return Err((Reason::BadParquet, detail));
            };
            n_bytes = n_bytes.saturating_add(n);
        }
        if n_bytes > file_bytes {
            let detail = format!("columns of {n_bytes} bytes in a file of {file_bytes}");
            return Err((Reason::BadParquet, detail));
        }
        let most = Self::ROWS_PER_BYTE.saturating_mul(file_bytes) + Self::HARMLESS_ROWS;
        if n_rows > most {
            let detail = format!("{n_rows} rows in a file of {file_bytes} bytes");
            return Err((Reason::Expansion, detail));
        }
        Ok(Self { n_rows })
    }

    /// The share of a row group in the text allowed for the file.
    pub(crate) fn text_of(&self, n_rows: u64, packed_bytes: u64, limits: &Limits) -> u64 {
        let share =
            u128::from(limits.table_bytes) * u128::from(n_rows) / u128::from(self.n_rows.max(1));
        let share = u64::try_from(share).unwrap_or(limits.table_bytes);
        let by_size = limits.expansion.saturating_mul(packed_bytes);
        by_size.saturating_add(share)
    }
}

impl Table {
    /// Reads the footer. Returns a warning if there is nothing to read.
    pub(crate) fn open(source: &Arc<Path>, file: OnDisk, config: &Config) -> Result<Self, Item> {
        let place = RecordPlace::new(source, Position::default());
        let metadata = load(file.path())
            .map_err(|error| place.skipped(Reason::BadParquet, error.to_string()))?;
        let file_bytes = std::fs::metadata(file.path())
            .map_err(|error| place.skipped(Reason::Unreadable, error.to_string()))?
            .len();
        let bounds = Bounds::check(metadata.metadata(), file_bytes)
            .map_err(|(reason, detail)| place.lost_file(reason, detail))?;
        let (metadata, values) = with_views(metadata);
        let columns = choose(metadata.schema().fields(), &config.fields);
        if columns[0].is_none() && columns[1].is_none() {
            let fields = metadata.schema().fields().iter();
            let names: Vec<String> = fields.map(|field| described(field)).collect();
            return Err(no_text(&place, &config.fields, &names));
        }
        Ok(Self {
            source: Arc::clone(source),
            file: Arc::new(file),
            metadata,
            values,
            columns: Arc::new(columns),
            bounds,
            limits: config.limits.clone(),
            next_group: 0,
            next_row: 0,
        })
    }

    /// The position of the next row group.
    pub(crate) fn within(&self) -> Within {
        Within {
            position: Position {
                offset: self.next_row,
                inner: 0,
            },
            index: self.next_group as u64,
            state: CutterState::None,
        }
    }

    /// Moves to a row group.
    pub(crate) fn go_on(&mut self, within: &Within) -> bool {
        self.next_group = usize::try_from(within.index).unwrap_or(usize::MAX);
        self.next_row = within.position.offset;
        true
    }

    /// The next row group; none at the end.
    pub(crate) fn next(&mut self) -> Option<RowGroup> {
        let group = self.metadata.metadata().row_groups().get(self.next_group)?;
        let n_rows = u64::try_from(group.num_rows()).unwrap_or(0);
        let packed_bytes = u64::try_from(group.compressed_size()).unwrap_or(0);
        let task = RowGroup {
            source: Arc::clone(&self.source),
            file: Arc::clone(&self.file),
            metadata: self.metadata.clone(),
            values: self.values,
            columns: Arc::clone(&self.columns),
            group: self.next_group,
            first_row: self.next_row,
            most_bytes: self.bounds.text_of(n_rows, packed_bytes, &self.limits),
        };
        self.next_group += 1;
        self.next_row += n_rows;
        Some(task)
    }

    /// The items at these rows; none where there is no row.
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

/// The same file with texts read as views. A text that fills many rows is then held once, as in the
/// file, and not once per row.
pub(crate) fn with_views(metadata: ArrowReaderMetadata) -> (ArrowReaderMetadata, Values) {
    let fields: Vec<FieldRef> = metadata.schema().fields().iter().map(viewed).collect();
    let schema = Schema::new_with_metadata(fields, metadata.schema().metadata().clone());
    let options = ArrowReaderOptions::new().with_schema(Arc::new(schema));
    let file = Arc::clone(metadata.metadata());
    match guarded(|| ArrowReaderMetadata::try_new(file, options)) {
        Ok(metadata) => (metadata, Values::Shared),
        Err(_) => (metadata, Values::Copied),
    }
}

fn viewed(field: &FieldRef) -> FieldRef {
    fn view(kind: &DataType) -> DataType {
        match kind {
            DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
            DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
            DataType::Dictionary(_, value) => view(value),
            DataType::Struct(fields) => DataType::Struct(fields.iter().map(viewed).collect()),
            DataType::List(field) => DataType::List(viewed(field)),
            DataType::LargeList(field) => DataType::LargeList(viewed(field)),
            DataType::FixedSizeList(field, n) => DataType::FixedSizeList(viewed(field), *n),
            DataType::Map(field, is_sorted) => DataType::Map(viewed(field), *is_sorted),
            other => other.clone(),
        }
    }
    let field = Field::clone(field);
    let kind = view(field.data_type());
    Arc::new(field.with_data_type(kind))
}

/// For each slot, the first name of a column whose type can be read.
pub(crate) fn choose(fields: &arrow_schema::Fields, wanted: &Fields) -> Columns {
    let lists = wanted.lists();
    lists.map(|names| names.iter().find_map(|name| find(fields, name)))
}

/// The path to a column. A column with the whole name takes precedence over a struct field.
fn find(fields: &arrow_schema::Fields, name: &str) -> Option<Vec<String>> {
    let mut all = fields.iter();
    if all.any(|field| field.name() == name && is_readable(field.data_type())) {
        return Some(vec![name.to_owned()]);
    }
    fields.iter().find_map(|field| {
        let DataType::Struct(inner) = field.data_type() else {
            return None;
        };
        let mut names = vec![field.name().clone()];
        names.extend(find(inner, below(name, field.name())?)?);
        Some(names)
    })
}

/// The name of a column, with its type if it cannot be read because of its type.
fn described(field: &Field) -> String {
    match field.data_type() {
        kind if is_readable(kind) => field.name().clone(),
        DataType::Struct(inner) => {
            let names: Vec<&str> = inner.iter().map(|field| field.name().as_str()).collect();
            format!("{} (struct of {})", field.name(), names.join(", "))
        }
        kind => format!("{} ({kind}, not read)", field.name()),
    }
}

pub(crate) fn damage(error: &ParquetError) -> (Reason, String) {
    (Reason::BadParquet, error.to_string())
}

/// Runs code of the Parquet library, with panics turned into errors.
pub(crate) fn guarded<T>(run: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    catch_unwind(AssertUnwindSafe(run))
        .unwrap_or_else(|_| Err(ParquetError::General("the decoder failed".to_owned())))
}

impl RowGroup {
    /// Makes a document of every row.
    pub(crate) fn read(&self, config: &Config, sink: &mut dyn FnMut(Item)) {
        self.read_rows(self.first_row.., None, config, sink);
    }

    /// Makes a document of each of these rows, which must ascend and be in this row group.
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

    /// Makes documents of the selected rows, whose numbers are also given.
    fn read_rows(
        &self,
        mut rows: impl Iterator<Item = u64>,
        selection: Option<RowSelection>,
        config: &Config,
        sink: &mut dyn FnMut(Item),
    ) {
        let mut n_bytes = 0;
        let mut result = self.batches(selection, config);
        while let Ok((batches, refusal)) = &mut result {
            let read = match guarded(|| batches.next().transpose().map_err(ParquetError::from)) {
                Ok(Some(batch)) => self.read_batch(&batch, &mut rows, &mut n_bytes, config, sink),
                Ok(None) => return,
                Err(error) => Err(refusal.get().cloned().unwrap_or_else(|| damage(&error))),
            };
            if let Err(lost) = read {
                result = Err(lost);
            }
        }
        if let Err((reason, detail)) = result {
            let lost = rows.next().unwrap_or(self.first_row);
            let place = RecordPlace::new(&self.source, at_row(lost));
            sink(place.lost_file(reason, format!("row group {}: {detail}", self.group)));
        }
    }

    fn batches(
        &self,
        rows: Option<RowSelection>,
        config: &Config,
    ) -> Result<(ParquetRecordBatchReader, Refusal), (Reason, String)> {
        let file = File::open(self.file.path())
            .map_err(|error| (Reason::Unreadable, error.to_string()))?;
        let schema = self.metadata.metadata().file_metadata().schema_descr();
        let columns = schema.columns().iter().enumerate();
        let wanted = columns.filter(|(_, column)| {
            let mut wanted = self.columns.iter().flatten();
            wanted.any(|names| names == column.path().parts())
        });
        let selected = Selected {
            metadata: &self.metadata,
            group: self.group,
            columns: wanted.map(|(i, _)| i).collect(),
            rows,
            values: self.values,
        };
        let checked = selected.check(&file, config.block_bytes.get(), &config.limits)?;
        let rows_at_once = checked.iter().map(|column| column.rows_at_once).min();
        selected.open(file, checked, rows_at_once.unwrap_or(1), &config.limits)
    }

    /// Makes documents of a batch, unless it has more text than the row group may give.
    fn read_batch(
        &self,
        batch: &RecordBatch,
        rows: &mut dyn Iterator<Item = u64>,
        n_bytes: &mut u64,
        config: &Config,
        sink: &mut dyn FnMut(Item),
    ) -> Result<(), (Reason, String)> {
        let arrays: Vec<Vec<&dyn Array>> = self.columns.iter().map(|c| way(batch, c)).collect();
        let limit = config.limits.record_bytes;
        for i in 0..batch.num_rows() {
            let mut row = Row {
                is_null: arrays[..2].iter().any(|way| is_null(way, i)),
                ..Row::default()
            };
            for (value, way) in row.values.iter_mut().zip(&arrays) {
                let cell = way
                    .last()
                    .filter(|_| !is_null(way, i))
                    .and_then(|array| cell(*array, i));
                row.is_malformed |= cell.as_ref().is_some_and(|cell| cell.is_malformed);
                *value = cell.map(|cell| cell.text);
            }
            let lengths = row.values.iter().flatten().map(|value| value.len());
            let (longest, sum) =
                lengths.fold((0, 0), |(longest, sum), n| (n.max(longest), sum + n));
            *n_bytes += sum as u64;
            if *n_bytes > self.most_bytes {
                let detail = format!("more than {} bytes of text", self.most_bytes);
                return Err((Reason::Expansion, detail));
            }
            let Some(number) = rows.next() else {
                return Ok(());
            };
            let place = RecordPlace::new(&self.source, at_row(number));
            sink(match longest > limit {
                true => place.skipped(
                    Reason::TooLarge,
                    format!("a cell of more than {limit} bytes"),
                ),
                false => row.into_item(place, config),
            });
        }
        Ok(())
    }
}

/// The arrays that lead to a column: structs, then its values. None if there is no column.
fn way<'a>(batch: &'a RecordBatch, names: &Option<Vec<String>>) -> Vec<&'a dyn Array> {
    let Some([first, rest @ ..]) = names.as_deref() else {
        return Vec::new();
    };
    let Some(root) = batch.column_by_name(first) else {
        return Vec::new();
    };
    let mut way = vec![root.as_ref()];
    for name in rest {
        let parent = way.last().and_then(|array| array.as_struct_opt());
        match parent.and_then(|parent| parent.column_by_name(name)) {
            Some(child) => way.push(child.as_ref()),
            None => return Vec::new(),
        }
    }
    way
}

/// Whether a cell is null. A field of a null struct is null. A column with only nulls has a type of
/// its own and no mask.
fn is_null(way: &[&dyn Array], i: usize) -> bool {
    way.iter()
        .any(|array| array.is_null(i) || *array.data_type() == DataType::Null)
}

fn at_row(row: u64) -> Position {
    Position {
        offset: row,
        inner: 0,
    }
}
