//! Reads single documents again, by their positions.
//!
//! *Question.* A report shows a few dozen documents of a corpus. How can their texts be read
//! without reading the corpus again?
//!
//! *Idea.* A [`Position`] locates a record, so go there:
//!
//! | input | access to a record |
//! |---|---|
//! | uncompressed file | one seek |
//! | one compressed member per record | one seek |
//! | records inside a large member | a seek to the member, then decompression up to the record |
//! | Parquet | the row groups that contain the rows, decoding only those rows |
//! | a file that is one document | the file |
//!
//! *Cost.* 64 KiB of reading and the record itself per position. Positions inside one large member
//! are served in one pass over it.
//!
//! *Error.* A file may have changed. If no record starts at a position, or the record contains no
//! document, the result has none. In JSON that is not JSON Lines, any object that starts at a
//! position counts as the record. If a record was replaced by another of the same length, this is
//! not noticed. Compare [`Document::digest`] if that matters.
//!
//! *Not for* reading much of a file: [`read`](crate::read()) uses all cores and reads forward.

use std::path::Path;

use crate::config::Config;
use crate::document::{Document, Item, Position};
use crate::error::Error;
use crate::pipeline::open::Open;
use crate::source::input::{Input, Origin};

/// The documents of the file `source` at `positions`, which must ascend; none where there is no
/// document.
///
/// # Errors
///
/// If the file does not exist.
pub fn fetch(
    source: &Path,
    positions: &[Position],
    config: &Config,
) -> Result<Vec<Option<Document>>, Error> {
    if !source.is_file() {
        let path = source.to_owned();
        return Err(Error::NotFound { path });
    }
    let input = Input::File(source.into(), Origin::Named);
    Ok(match Open::new(input, config) {
        Open::Table(table) => table.rows_at(positions, config),
        mut open => positions
            .iter()
            .map(|&at| open.item_at(at, config))
            .collect(),
    }
    .into_iter()
    .map(|item| match item {
        Some(Item::Document(document)) => Some(*document),
        Some(Item::Skipped(_)) | None => None,
    })
    .collect())
}

/// The body of an archived record, with content codings removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// The bytes, in their own character set.
    pub body: Vec<u8>,
    /// The media type as the server stated it.
    pub content_type: Option<String>,
}

/// The body of the record at `position` of the archive `source`. None if the file is not an
/// archive, no record starts there, or it has no body.
///
/// # Errors
///
/// If the file does not exist.
pub fn fetch_stored(
    source: &Path,
    position: Position,
    config: &Config,
) -> Result<Option<Stored>, Error> {
    if !source.is_file() {
        let path = source.to_owned();
        return Err(Error::NotFound { path });
    }
    let input = Input::File(source.into(), Origin::Named);
    Ok(match Open::new(input, config) {
        Open::Records(mut cutter) => cutter.stored_at(position, config),
        _ => None,
    })
}

impl Open {
    /// The item at a position of an input that is not a table; none if no record starts there.
    fn item_at(&mut self, position: Position, config: &Config) -> Option<Item> {
        let item = match self {
            Open::Lines(cutter) => cutter.item_at(position, config)?,
            Open::Values(cutter) => cutter.item_at(position, config)?,
            Open::Rows(cutter) => cutter.item_at(position, config)?,
            Open::Records(cutter) => cutter.item_at(position, config)?,
            Open::Whole(_) => match std::mem::replace(self, Open::Skipped(None)) {
                Open::Whole(whole) => {
                    let mut first = None;
                    whole.read(config, &mut |item| _ = first.get_or_insert(item));
                    first?
                }
                _ => return None,
            },
            Open::Table(_) | Open::Skipped(_) => return None,
        };
        (item.place().1 == position).then_some(item)
    }
}
