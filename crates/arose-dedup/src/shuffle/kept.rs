//! The positions of the kept records, for copying them.
//!
//! A part of the input is one file, a range of one, or many small ones, and has one or more shards.
//! `spans` determines the kept and dropped records of every shard. `kept` combines the shards of a
//! part, with a row for each file.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arose_corpus::{Dropped as DroppedRecords, DroppedRecord, Parts, Payloads, Position};
use arrow_array::{ArrayRef, BinaryArray, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};

use super::read::MAX_SHARDS;
use super::tables::Decided;
use super::wire::{Cursor, Message, Sink, records};
use super::{Context, Step, kind};
use crate::Error;
use crate::config::{Config, Empty};
use crate::error::InputChange;
use crate::losses::{IncompleteFile, refuse_lost};
use crate::record::EMPTY;
use crate::source::path_text;

/// Offset, and position in a compressed member.
type RecordPlace = [u64; 2];

/// Records of a file.
#[derive(Debug, Default)]
struct Spans {
    kept: Vec<RecordPlace>,
    dropped: Vec<RecordPlace>,
}

/// The step that determines the kept records of a shard.
pub(super) struct ShardSpans {
    empty: Empty,
    decided: Decided,
}

impl ShardSpans {
    pub(super) fn new(config: &Config, context: Context) -> Self {
        Self {
            empty: config.empty,
            decided: Decided::new(context),
        }
    }
}

impl Step for ShardSpans {
    fn take(&mut self, message: &Message<'_>, _: &mut Sink) -> Result<(), Error> {
        self.decided.take(message)
    }

    fn end(&mut self, part: i64, out: &mut Sink) -> Result<(), Error> {
        let (mut doc, docs, dropped) = self.decided.end(part)?;
        let mut dropped = dropped.iter().peekable();
        let mut files: BTreeMap<PathBuf, Spans> = BTreeMap::new();
        for docs in &docs {
            let source = |number: u64| docs.sources.get(number as usize).cloned();
            let mut add = |number: u64, place: RecordPlace, stays: bool| {
                let spans = files.entry(source(number).unwrap_or_default()).or_default();
                match stays {
                    true => spans.kept.push(place),
                    false => spans.dropped.push(place),
                }
            };
            for record in &docs.records {
                let is_dropped = dropped.next_if(|dropped| dropped.doc == doc).is_some();
                let is_empty = self.empty == Empty::Drop && record.flags & EMPTY != 0;
                let place = [record.offset, record.inner];
                add(record.source.into(), place, !is_dropped && !is_empty);
                doc += 1;
            }
            for null in &docs.nulls {
                add(null.source, [null.offset, null.inner], true);
            }
        }
        for (path, spans) in files {
            let name = path_text(&path);
            let counts = [name.len(), spans.kept.len(), spans.dropped.len()].map(|n| n as u64);
            let pieces: [&[u8]; 4] = [
                bytemuck::bytes_of(&counts),
                name.as_bytes(),
                bytemuck::cast_slice(&spans.kept),
                bytemuck::cast_slice(&spans.dropped),
            ];
            out.push(kind::SPANS, part / MAX_SHARDS, part, &pieces)?;
        }
        Ok(())
    }
}

/// The step that combines the files of a part of the input.
#[derive(Default)]
pub(super) struct FileSpans {
    files: BTreeMap<String, Spans>,
}

impl Step for FileSpans {
    fn take(&mut self, message: &Message<'_>, _: &mut Sink) -> Result<(), Error> {
        let mut cursor = Cursor(&message.bytes);
        while !cursor.is_empty() {
            let [n_name, n_kept, n_dropped] = cursor.record::<[u64; 3]>()?;
            let name = cursor.text(n_name as usize)?;
            let spans = self.files.entry(name).or_default();
            spans
                .kept
                .extend(cursor.records::<RecordPlace>(n_kept as usize)?);
            let dropped = cursor.records::<RecordPlace>(n_dropped as usize)?;
            spans.dropped.extend(dropped);
        }
        Ok(())
    }

    fn end(&mut self, part: i64, out: &mut Sink) -> Result<(), Error> {
        for (source, mut spans) in std::mem::take(&mut self.files) {
            for places in [&mut spans.kept, &mut spans.dropped] {
                places.sort_unstable();
                places.dedup();
            }
            let bytes = |places: &[RecordPlace]| -> ArrayRef {
                let bytes: &[u8] = bytemuck::cast_slice(places);
                Arc::new(BinaryArray::from_iter_values([bytes]))
            };
            let columns: Vec<ArrayRef> = vec![
                Arc::new(Int64Array::from(vec![part])),
                Arc::new(StringArray::from(vec![source])),
                bytes(&spans.kept),
                bytes(&spans.dropped),
            ];
            let batch = RecordBatch::try_new(Arc::new(schema()), columns);
            out.rows(batch.expect("columns are those of the schema"))?;
        }
        Ok(())
    }
}

/// The columns of `kept`.
pub(super) fn schema() -> Schema {
    Schema::new(vec![
        Field::new("part", DataType::Int64, false),
        Field::new("source", DataType::Utf8, false),
        Field::new("kept", DataType::Binary, false),
        Field::new("dropped", DataType::Binary, false),
    ])
}

/// Copies the records of the file `source` at the positions `kept` to `out`, and of an archive
/// everything else except the records at the positions `dropped`. Both are in the form that the
/// step `kept` outputs. Returns the file if some of its records could not be copied.
///
/// # Errors
///
/// If the file has changed since it was read, or the copy cannot be written.
pub fn copy_kept(
    source: &Path,
    kept: &[u8],
    dropped: &[u8],
    config: &Config,
    out: impl Parts + Send,
) -> Result<Option<IncompleteFile>, Error> {
    let positions = |bytes: &[u8]| -> Result<Vec<Position>, Error> {
        let places = records::<RecordPlace>(bytes)?.into_iter();
        Ok(places
            .map(|[offset, inner]| Position { offset, inner })
            .collect())
    };
    let kept = positions(kept)?;
    if arose_corpus::is_plain_json_lines(source, &config.corpus) {
        return copy_lines(source, &kept, out).map(|()| None);
    }
    let is_archive = arose_corpus::is_archive(source, &config.corpus);
    // If a file was passed twice, a record may be both kept and dropped.
    let dropped = positions(dropped)?.into_iter();
    let dropped: Vec<DroppedRecord> = dropped
        .filter(|position| kept.binary_search(position).is_err())
        .map(|position| DroppedRecord {
            position,
            original: None,
        })
        .collect();
    let mut payloads = Payloads::new();
    let mut dropped = DroppedRecords::new(&dropped, &[], &mut payloads);
    let dropped = is_archive.then_some(&mut dropped);
    let copied = arose_corpus::keep_parts(source, &kept, dropped, out, &config.corpus)?;
    if copied.missing > 0 {
        return Err(Error::InputChanged {
            path: source.to_owned(),
            change: InputChange::Content,
        });
    }
    let lost = copied.lost.as_ref().map(IncompleteFile::from);
    if let Some(lost) = &lost {
        refuse_lost(lost, config)?;
    }
    Ok(lost)
}

/// Copies the lines that start at these positions, which may be in a small part of a large file.
fn copy_lines(source: &Path, kept: &[Position], mut out: impl Write) -> Result<(), Error> {
    let io = |source_error| Error::io("copy", source)(source_error);
    let file = File::open(source).map_err(Error::io("open", source))?;
    let mut file = BufReader::with_capacity(1 << 20, file);
    let (mut at, mut line) = (0, Vec::new());
    for position in kept {
        let ahead = position.offset.wrapping_sub(at) as i64;
        file.seek_relative(ahead).map_err(io)?;
        line.clear();
        let n = file.read_until(b'\n', &mut line).map_err(io)?;
        if n == 0 {
            return Err(Error::InputChanged {
                path: source.to_owned(),
                change: InputChange::Content,
            });
        }
        at = position.offset + n as u64;
        if !line.ends_with(b"\n") {
            line.push(b'\n');
        }
        out.write_all(&line).map_err(io)?;
    }
    out.flush().map_err(io)
}
