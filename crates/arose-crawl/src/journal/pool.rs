//! Reads queued URLs by their positions in the journal.
//!
//! A position is the number of bytes of events before it in the whole life of a crawl. So it does
//! not change when the file is rewritten without finished URLs. A table maps positions to frames:
//! 24 bytes for each frame with URLs. If nothing was left out of a frame, a URL is read alone.
//! Otherwise its frame, which is short, is searched.
//!
//! The lock is held while the table is searched or changed, but not while the file is read.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::event::{Decoder, Event, Queued, url_at};
use super::frame::{Frame, HEAD};
use super::{MAX_URL_EVENT, Place};
use crate::error::{Context, Error};

/// Bytes that are read first to find a URL; nearly all URLs fit.
const FIRST_READ: usize = 192;

/// Reads queued URLs, on any thread.
#[derive(Debug)]
pub(crate) struct Pool {
    path: PathBuf,
    table: Mutex<Table>,
}

#[derive(Debug)]
pub(super) struct Table {
    pub(super) file: Arc<File>,
    /// In ascending order.
    pub(super) spans: Vec<Span>,
}

/// A frame with URLs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    /// The position of its first event.
    pub(super) place: Place,
    /// The offset of its events in the file.
    pub(super) at: u64,
    /// Length of its events in bytes, and whether none was left out between them.
    pub(super) n_bytes: u32,
    pub(super) is_dense: bool,
}

impl Span {
    /// Describes a frame; `None` if it has no URLs.
    pub(super) fn of(frame: &Frame<'_>) -> Option<Self> {
        let is_url =
            |(event, _): &(Event<'_>, Place)| matches!(event, Event::Url(_) | Event::Again { .. });
        let at = frame.start + HEAD as u64;
        let n_bytes = u32::try_from(frame.end - at).ok()?;
        frame.events.iter().any(is_url).then_some(Self {
            place: frame.place,
            at,
            n_bytes,
            is_dense: frame.is_dense,
        })
    }

    /// Describes the same frame in another file.
    pub(super) fn moved(self, from: u64, to: u64) -> Self {
        Self {
            at: self.at - from + to,
            ..self
        }
    }
}

impl Pool {
    pub(super) fn new(path: PathBuf, file: Arc<File>, spans: Vec<Span>) -> Self {
        Self {
            path,
            table: Mutex::new(Table { file, spans }),
        }
    }

    /// Returns the table, to change it.
    pub(super) fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads a queued URL; `buffer` is scratch space.
    pub(crate) fn read<'b>(
        &self,
        place: Place,
        buffer: &'b mut Vec<u8>,
    ) -> Result<Queued<'b>, Error> {
        let damaged = || Error::damaged(&self.path, "a queued URL is not at its position");
        let (file, span) = {
            let table = self.table();
            let after = table.spans.partition_point(|span| span.place <= place);
            let found = after.checked_sub(1).and_then(|at| table.spans.get(at));
            (Arc::clone(&table.file), *found.ok_or_else(damaged)?)
        };
        let offset = match span.is_dense {
            true => self.read_alone(&file, span, place, buffer)?,
            false => self.read_in_frame(&file, span, place, buffer)?,
        };
        let bytes = offset.and_then(|offset| buffer.get(offset..));
        bytes.and_then(url_at).ok_or_else(damaged)
    }

    /// Returns the range of the URL in the buffer.
    fn read_alone(
        &self,
        file: &File,
        span: Span,
        place: Place,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<usize>, Error> {
        let offset = place - span.place;
        let Some(n_left) = u64::from(span.n_bytes).checked_sub(offset) else {
            return Ok(None);
        };
        for length in [FIRST_READ, MAX_URL_EVENT] {
            buffer.resize(n_left.min(length as u64) as usize, 0);
            let read = file.read_exact_at(buffer, span.at + offset);
            read.context("reading", &self.path)?;
            if url_at(buffer).is_some() {
                return Ok(Some(0));
            }
        }
        Ok(None)
    }

    fn read_in_frame(
        &self,
        file: &File,
        span: Span,
        place: Place,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<usize>, Error> {
        buffer.resize(span.n_bytes as usize, 0);
        let read = file.read_exact_at(buffer, span.at);
        read.context("reading", &self.path)?;
        let mut reader = Decoder {
            bytes: buffer,
            at: 0,
        };
        let mut here = span.place;
        while here <= place {
            let before = reader.at;
            match reader.event() {
                Some(Event::Skip { n_bytes }) => here = here.saturating_add(n_bytes),
                Some(_) if here == place => return Ok(Some(before)),
                Some(_) => here += (reader.at - before) as u64,
                None => break,
            }
        }
        Ok(None)
    }
}
