//! Copies rows of Parquet files with all their columns, in bounded memory.
//!
//! Most of these columns have not been read before. They may be damaged or hostile, like those with
//! the text, and are decoded within the same bounds; see [`crate::format::parquet`]. A batch has as
//! many rows as fit into [`BATCH_BLOCKS`] by the densest page of each column. Rows are written to
//! the output as soon as [`GROUP_BLOCKS`] are waiting. Rows that cannot be decoded are omitted, and
//! the file is reported as incomplete.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, OffsetSizeTrait, RecordBatch};
use arrow_schema::{DataType, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ParquetRecordBatchReader, RowSelection, RowSelector,
};
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, Encoding};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::properties::WriterProperties;

use super::keep::Kept;
use super::parts::Parts;
use crate::config::Config;
use crate::document::{Position, Reason, Warning};
use crate::format::parquet::pages::{MAX_ROWS, Values};
use crate::format::parquet::unpack::{Refusal, Selected};
use crate::format::parquet::{Bounds, damage, guarded, with_views};
use crate::losses::Loss;

/// Approximate size of a batch in blocks of input; a larger row is a batch of its own.
const BATCH_BLOCKS: u64 = 16;

/// Number of blocks of input that wait before they are written as a row group.
const GROUP_BLOCKS: usize = 64;

/// A file whose rows are copied.
pub(super) struct Rows<'a> {
    source: &'a Path,
    file: File,
    metadata: ArrowReaderMetadata,
    values: Values,
    bounds: Bounds,
    n_bytes: u64,
    config: &'a Config,
    batch_bytes: u64,
}

/// Why rows are missing.
type Lost = (Reason, String);

impl<'a> Rows<'a> {
    /// Reads the footer.
    pub(super) fn open(
        source: &'a Path,
        file: File,
        config: &'a Config,
    ) -> Result<Self, ParquetError> {
        let metadata = guarded(|| ArrowReaderMetadata::load(&file, Default::default()))?;
        let n_bytes = file.metadata()?.len();
        let bounds = Bounds::check(metadata.metadata(), n_bytes)
            .map_err(|(_, detail)| ParquetError::General(detail))?;
        let (metadata, values) = with_views(metadata);
        Ok(Self {
            source,
            file,
            metadata,
            values,
            bounds,
            n_bytes,
            config,
            batch_bytes: config.block_bytes.get() as u64 * BATCH_BLOCKS,
        })
    }

    /// The columns as read and written here, with texts as views.
    pub(super) fn schema(&self) -> &SchemaRef {
        self.metadata.schema()
    }

    /// Number of rows of each row group.
    pub(super) fn groups(&self) -> impl Iterator<Item = usize> {
        let groups = self.metadata.metadata().row_groups().iter();
        groups.map(|group| usize::try_from(group.num_rows()).unwrap_or(0))
    }

    /// A writer for files with the properties of this one.
    pub(super) fn writer<W: std::io::Write + Send>(
        &self,
        out: W,
    ) -> Result<ArrowWriter<W>, ParquetError> {
        let options = ArrowWriterOptions::new()
            .with_properties(like(self.metadata.metadata(), self.config))
            // The Arrow metadata of the file stays, if there is any, because its types are not
            // views.
            .with_skip_arrow_metadata(true);
        ArrowWriter::try_new_with_options(out, Arc::clone(self.schema()), options)
    }

    /// Passes on the rows of a row group. `select` chooses rows and leaves out a given number of
    /// leading ones. Returns how many rows there were and, if some are missing, why.
    pub(super) fn read(
        &self,
        group: usize,
        select: impl Fn(usize) -> RowSelection,
        take: &mut dyn FnMut(RecordBatch) -> Result<(), ParquetError>,
    ) -> Result<(usize, Option<Lost>), ParquetError> {
        let n_rows = select(0).row_count();
        let (mut n_done, mut n_bytes, mut lost) = (0, 0, None);
        // Damage loses a batch, and so does a list that is too large for many rows at once. With
        // smaller batches, fewer rows before the damage are lost.
        for most_rows in [MAX_ROWS as usize, 64, 1] {
            let opened = self.batches(group, select(n_done), most_rows);
            let (mut batches, refusal) = match opened {
                Ok(opened) => opened,
                Err(why) => return Ok((n_done, Some(why))),
            };
            loop {
                match guarded(|| batches.next().transpose().map_err(ParquetError::from)) {
                    Ok(Some(batch)) => {
                        n_bytes += row_bytes(&batch);
                        if n_bytes > self.most_bytes(group) {
                            let detail = format!("more than {} bytes", self.most_bytes(group));
                            return Ok((n_done, Some((Reason::Expansion, detail))));
                        }
                        n_done += batch.num_rows();
                        in_pieces(batch, self.batch_bytes, take)?;
                    }
                    Ok(None) if n_done < n_rows => {
                        let detail = "fewer rows than declared".to_owned();
                        return Ok((n_done, Some((Reason::BadParquet, detail))));
                    }
                    Ok(None) => return Ok((n_done, None)),
                    Err(error) => {
                        let why = refusal.get().cloned();
                        lost = Some(why.unwrap_or_else(|| damage(&error)));
                        break;
                    }
                }
            }
        }
        Ok((n_done, lost))
    }

    /// The output allowed for a row group of this size.
    fn most_bytes(&self, group: usize) -> u64 {
        let group = self.metadata.metadata().row_group(group);
        let [n_rows, packed_bytes] =
            [group.num_rows(), group.compressed_size()].map(|n| u64::try_from(n).unwrap_or(0));
        self.bounds
            .text_of(n_rows, packed_bytes, &self.config.limits)
    }

    fn batches(
        &self,
        group: usize,
        rows: RowSelection,
        most_rows: usize,
    ) -> Result<(ParquetRecordBatchReader, Refusal), Lost> {
        let limits = &self.config.limits;
        let selected = Selected {
            metadata: &self.metadata,
            group,
            columns: (0..self.metadata.metadata().row_group(group).num_columns()).collect(),
            rows: Some(rows),
            values: self.values,
        };
        let checked = selected.check(&self.file, self.config.block_bytes.get(), limits)?;
        let sum = |bytes: fn(&_) -> u64| checked.iter().map(bytes).fold(0, u64::saturating_add);
        let held_bytes = sum(|column| column.held_bytes);
        let most = self.n_bytes.saturating_mul(HELD_PER_BYTE) + limits.page_bytes as u64;
        if held_bytes > most {
            let detail = format!("pages of {held_bytes} bytes side by side");
            return Err((Reason::Expansion, detail));
        }
        let row_bytes = sum(|column| column.row_bytes).max(1);
        let n_rows = usize::try_from(self.batch_bytes / row_bytes).unwrap_or(usize::MAX);
        let file = self
            .file
            .try_clone()
            .map_err(|error| (Reason::Unreadable, error.to_string()))?;
        selected.open(file, checked, n_rows.clamp(1, most_rows), limits)
    }

    /// A warning that rows are missing, starting with this one.
    pub(super) fn warning(&self, group: usize, row: u64, (reason, detail): Lost) -> Warning {
        Warning {
            source: self.source.into(),
            position: Position {
                offset: row,
                inner: 0,
            },
            reason,
            detail: format!("row group {group} cannot be copied: {detail}"),
            loss: Loss::File,
        }
    }
}

/// Maximum bytes of pages held together, one per column, per byte of the file.
const HELD_PER_BYTE: u64 = 4;

/// Copies chosen rows. Row groups without chosen rows are not read, because they may be damaged.
pub(super) fn keep_rows(
    source: &Path,
    file: File,
    positions: &[Position],
    out: impl Parts + Send,
    config: &Config,
) -> Result<Kept, ParquetError> {
    let mut rows = Rows::open(source, file, config)?;
    let limit = out.limit();
    if let Some(limit) = limit {
        rows.batch_bytes = rows.batch_bytes.min(limit / 8);
    }
    let mut writer = Some(rows.writer(out)?);
    let mut n_in_part = 0;
    let mut kept = Kept::default();
    let mut rest = positions;
    let mut start = 0;
    for (number, n_rows) in rows.groups().enumerate() {
        let end = start + n_rows as u64;
        let n_inside = rest.partition_point(|position| position.offset < end);
        let (inside, after) = rest.split_at(n_inside);
        let first = start;
        (rest, start) = (after, end);
        if inside.is_empty() {
            continue;
        }
        let select = |n_done: usize| {
            let rows = inside[n_done..].iter().filter_map(|position| {
                let row = usize::try_from(position.offset.checked_sub(first)?).ok()?;
                Some(row..row + 1)
            });
            RowSelection::from_consecutive_ranges(rows, n_rows)
        };
        let (n_done, lost) = rows.read(number, select, &mut |batch| {
            let mut open = writer.take().expect("there always is a writer");
            // Waiting rows are not compressed yet, so this overestimates their final size.
            let there = (open.bytes_written() + open.in_progress_size()) as u64;
            let n_bytes = there + row_bytes(&batch);
            if n_in_part > 0 && limit.is_some_and(|limit| n_bytes > limit) {
                let mut out = guarded(|| open.into_inner())?;
                out.next_part()?;
                (open, n_in_part) = (rows.writer(out)?, 0);
            }
            n_in_part += batch.num_rows();
            guarded(|| open.write(&batch))?;
            writer = Some(open);
            Ok(())
        })?;
        kept.copied += n_done as u64;
        if let Some(lost) = lost {
            let row = inside.get(n_done).map_or(first, |row| row.offset);
            let warning = || rows.warning(number, row, lost);
            kept.lost.get_or_insert_with(warning);
        }
    }
    kept.missing = rest.len() as u64;
    if let Some(writer) = writer {
        guarded(|| writer.close())?;
    }
    Ok(kept)
}

/// All rows of a row group except the first `n_done`.
pub(super) fn rows_after(n_rows: usize, n_done: usize) -> RowSelection {
    let selectors = vec![
        RowSelector::skip(n_done),
        RowSelector::select(n_rows - n_done),
    ];
    selectors.into()
}

/// Passes on a batch, in pieces if it is larger than `most` bytes. A text that many rows share is
/// held once, but may be written once for each of them.
fn in_pieces(
    batch: RecordBatch,
    most: u64,
    take: &mut dyn FnMut(RecordBatch) -> Result<(), ParquetError>,
) -> Result<(), ParquetError> {
    let n_rows = batch.num_rows();
    if n_rows < 2 || row_bytes(&batch) <= most {
        return take(batch);
    }
    let middle = n_rows / 2;
    in_pieces(batch.slice(0, middle), most, take)?;
    in_pieces(batch.slice(middle, n_rows - middle), most, take)
}

/// Size of the values of a batch in bytes.
fn row_bytes(batch: &RecordBatch) -> u64 {
    batch.columns().iter().map(|column| n_bytes(column)).sum()
}

/// Size of values in bytes. Values that share memory are counted separately.
fn n_bytes(array: &dyn Array) -> u64 {
    // The low half of a view is its length.
    let lengths = |views: &[u128]| {
        views
            .iter()
            .map(|&view| u64::from(view as u32))
            .sum::<u64>()
    };
    match array.data_type() {
        DataType::Utf8View => lengths(array.as_string_view().views()),
        DataType::BinaryView => lengths(array.as_binary_view().views()),
        DataType::Struct(_) => {
            let columns = array.as_struct().columns().iter();
            columns.map(|column| n_bytes(column)).sum()
        }
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            n_bytes(&within(list.values(), list.value_offsets()))
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            n_bytes(&within(list.values(), list.value_offsets()))
        }
        DataType::FixedSizeList(..) => n_bytes(array.as_fixed_size_list().values()),
        DataType::Map(..) => {
            let map = array.as_map();
            n_bytes(&within(map.entries(), map.value_offsets()))
        }
        _ => {
            let size = array.to_data().get_slice_memory_size();
            size.unwrap_or_else(|_| array.get_buffer_memory_size()) as u64
        }
    }
}

/// The values of the lists with these offsets.
fn within<O: OffsetSizeTrait>(values: &dyn Array, offsets: &[O]) -> ArrayRef {
    match (offsets.first(), offsets.last()) {
        (Some(first), Some(last)) => {
            values.slice(first.as_usize(), last.as_usize() - first.as_usize())
        }
        _ => values.slice(0, 0),
    }
}

/// Settings to write a file like the one described: its compression, its columns with dictionaries,
/// and its metadata.
fn like(metadata: &ParquetMetaData, config: &Config) -> WriterProperties {
    let mut groups = metadata.row_groups().iter();
    let columns = groups.next().map_or(&[][..], |group| group.columns());
    let notes = metadata.file_metadata().key_value_metadata().cloned();
    let codec = columns.first().map(ColumnChunkMetaData::compression);
    let mut properties = WriterProperties::builder();
    for column in columns.iter().filter(|column| !has_dictionary(column)) {
        let path = column.column_path().clone();
        properties = properties.set_column_dictionary_enabled(path, false);
    }
    properties
        .set_compression(codec.unwrap_or(Compression::UNCOMPRESSED))
        .set_key_value_metadata(notes)
        .set_max_row_group_bytes(Some(config.block_bytes.get() * GROUP_BLOCKS))
        .build()
}

/// Whether a column uses a dictionary; some writers do not record its position.
fn has_dictionary(column: &ColumnChunkMetaData) -> bool {
    let by_dictionary = [Encoding::RLE_DICTIONARY, Encoding::PLAIN_DICTIONARY];
    column
        .encodings()
        .any(|encoding| by_dictionary.contains(&encoding))
}
