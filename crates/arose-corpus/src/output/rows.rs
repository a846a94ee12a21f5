//! Copies chosen rows of Parquet files.

use std::fs::File;
use std::sync::Arc;

use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ParquetRecordBatchReaderBuilder, RowSelection,
};
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::properties::WriterProperties;

use super::keep::Kept;
use super::parts::Parts;
use crate::document::Position;
use crate::format::parquet::guarded;

/// Copies rows with all their columns. Only row groups with chosen rows are looked at: others may
/// be damaged.
pub(super) fn keep_rows(
    file: File,
    positions: &[Position],
    out: impl Parts + Send,
) -> Result<Kept, ParquetError> {
    let mut rest = positions;
    guarded(|| {
        let metadata = ArrowReaderMetadata::load(&file, Default::default())?;
        let properties = like(metadata.metadata());
        let schema = Arc::clone(metadata.schema());
        let limit = out.limit();
        let new = |out| ArrowWriter::try_new(out, Arc::clone(&schema), Some(properties.clone()));
        let mut writer = new(out)?;
        let mut n_in_part = 0;
        let n_rows_at_once = rows_per_batch(metadata.metadata(), limit);
        let mut start = 0;
        for (number, group) in metadata.metadata().row_groups().iter().enumerate() {
            let n_rows = usize::try_from(group.num_rows()).unwrap_or(0);
            let end = start + n_rows as u64;
            let n_inside = rest.partition_point(|position| position.offset < end);
            let (inside, after) = rest.split_at(n_inside);
            rest = after;
            let rows = inside.iter().filter_map(|position| {
                let row = usize::try_from(position.offset.checked_sub(start)?).ok()?;
                Some(row..row + 1)
            });
            let rows = RowSelection::from_consecutive_ranges(rows, n_rows);
            start = end;
            if inside.is_empty() {
                continue;
            }
            let file = file.try_clone()?;
            let builder =
                ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata.clone());
            let builder = builder
                .with_row_groups(vec![number])
                .with_row_selection(rows);
            for batch in builder.with_batch_size(n_rows_at_once).build()? {
                let batch = batch?;
                // What waits is not packed yet, so this is more than the rows will take.
                let there = writer.bytes_written() + writer.in_progress_size();
                let n_bytes = (there + batch.get_array_memory_size()) as u64;
                if n_in_part > 0 && limit.is_some_and(|limit| n_bytes > limit) {
                    let mut out = writer.into_inner()?;
                    out.next_part()?;
                    (writer, n_in_part) = (new(out)?, 0);
                }
                n_in_part += batch.num_rows();
                writer.write(&batch)?;
            }
        }
        writer.close().map(drop)
    })?;
    Ok(Kept {
        copied: (positions.len() - rest.len()) as u64,
        missing: rest.len() as u64,
    })
}

/// As many rows as stay far below the 2 GiB that a column of text may have in a batch.
pub(super) fn rows_per_batch(metadata: &ParquetMetaData, limit: Option<u64>) -> usize {
    const BATCH_BYTES: i64 = 16 << 20;
    if let Some(limit) = limit.and_then(|limit| i64::try_from(limit / 8).ok())
        && limit < BATCH_BYTES
    {
        return rows_in(metadata, limit);
    }
    rows_in(metadata, BATCH_BYTES)
}

/// Rows that have so many bytes, about.
fn rows_in(metadata: &ParquetMetaData, n_bytes: i64) -> usize {
    let sizes = metadata.row_groups().iter();
    let largest = sizes.map(|group| group.total_byte_size() / group.num_rows().max(1));
    let n_rows = n_bytes / largest.max().unwrap_or(0).max(1);
    usize::try_from(n_rows).map_or(1, |n| n.clamp(1, 1024))
}

/// Settings that write a file like the one described: its compression and the notes of those who
/// made it.
pub(super) fn like(metadata: &ParquetMetaData) -> WriterProperties {
    let mut groups = metadata.row_groups().iter();
    let column = groups.next().and_then(|group| group.columns().first());
    let notes = metadata.file_metadata().key_value_metadata().cloned();
    let notes = notes.map(|mut notes| {
        // The writer adds its own.
        notes.retain(|note| note.key != "ARROW:schema");
        notes
    });
    WriterProperties::builder()
        .set_compression(column.map_or(Compression::UNCOMPRESSED, |column| column.compression()))
        .set_key_value_metadata(notes)
        .build()
}
