//! Copies web archives record by record.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use super::keep::Chosen;
use super::packed::Packed;
use super::parts::{Copies, Parts};
use super::revisit::{Decision, Dropped, RefersTo, revisit};
use crate::document::Position;
use crate::format::warc::cut::{Record, RecordCutter};
use crate::format::warc::dialect::Dialect;
use crate::source::member::FileCompression;

/// A web archive being copied.
pub(super) struct Archive<P: Parts> {
    /// The file from which compressed bytes are copied.
    original: File,
    /// How each record is compressed.
    packing: FileCompression,
    copies: Copies<P>,
    /// Number of bytes at the start of the file that every part needs: the zstd dictionary.
    n_prefix: u64,
}

impl<P: Parts> Archive<P> {
    pub(super) fn new(original: File, packing: FileCompression, copies: Copies<P>) -> Self {
        Self {
            original,
            packing,
            copies,
            n_prefix: 0,
        }
    }

    pub(super) fn keep(
        mut self,
        chosen: &mut Chosen<'_>,
        mut dropped: Option<&mut Dropped<'_>>,
        mut cutter: RecordCutter,
    ) -> io::Result<Copies<P>> {
        let file_end = self.original.metadata()?.len();
        // A record waits until the start of the next one is known.
        let mut waiting: Option<Record> = None;
        let mut is_first = true;
        loop {
            let next = cutter.record();
            if let Some(record) = waiting.take() {
                let end = match &next {
                    None => Some(file_end),
                    Some(Ok(next)) => Some(next.place.position)
                        .filter(|position| position.inner == 0)
                        .map(|position| position.offset),
                    Some(Err(_)) => None,
                };
                self.put(&record, end)?;
            }
            let record = match next {
                None => return Ok(self.copies),
                Some(Err(_)) => continue,
                Some(Ok(record)) => record,
            };
            let position = record.place.position;
            if std::mem::take(&mut is_first) && self.packing == FileCompression::Zstd {
                // A dictionary may precede the first record.
                self.n_prefix = position.offset;
                self.copy(0, position.offset)?;
            }
            let is_chosen = chosen.has(position);
            let is_about_file = matches!(record.head.kind.as_str(), "warcinfo" | "filedesc");
            let decision = match &mut dropped {
                Some(dropped) => dropped.next(&record),
                None if is_chosen || is_about_file => Decision::Copy,
                None => Decision::Omit,
            };
            match (decision, &dropped) {
                (Decision::Copy, _) => waiting = Some(record),
                (Decision::Revisit(original), Some(dropped)) => {
                    self.put_revisit(&record, original, dropped)?;
                }
                _ => {}
            }
        }
    }

    /// Writes a revisit record in place of a record.
    fn put_revisit(
        &mut self,
        record: &Record,
        original: &RefersTo,
        dropped: &Dropped<'_>,
    ) -> io::Result<()> {
        if record.dialect == Dialect::Arc {
            let message = "ARC has no revisit records; pass --dropped remove";
            return Err(io::Error::other(message));
        }
        let [head, block] = revisit(record, original, dropped.payload_of(original));
        self.pack(&[&head, &block, b"\r\n\r\n"])
    }

    /// Compresses a record on its own.
    fn pack(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        let mut packed = Packed::new(Vec::new(), self.packing)?;
        for part in parts {
            packed.write_all(part)?;
        }
        let record = packed.finish()?;
        self.make_room(record.len() as u64)?;
        self.copies.write_all(&record)
    }

    /// Starts a new part if a record of this size does not fit.
    fn make_room(&mut self, n_bytes: u64) -> io::Result<()> {
        if self.copies.make_room(n_bytes)? {
            self.copy(0, self.n_prefix)?;
        }
        self.copies.n_records += 1;
        Ok(())
    }

    /// Copies a record whose compressed bytes extend to `end`, if they contain no other record.
    fn put(&mut self, record: &Record, end: Option<u64>) -> io::Result<()> {
        let Position { offset, inner } = record.place.position;
        let is_alone = self.packing != FileCompression::Plain && inner == 0;
        if let Some(end) = end.filter(|&end| is_alone && end > offset) {
            self.make_room(end - offset)?;
            return self.copy(offset, end);
        }
        let separator: &[u8] = match record.dialect {
            Dialect::Warc => b"\r\n\r\n",
            Dialect::Arc => b"\n",
        };
        self.pack(&[&record.raw_head, &record.block, separator])
    }

    fn copy(&mut self, start: u64, end: u64) -> io::Result<()> {
        self.original.seek(SeekFrom::Start(start))?;
        io::copy(&mut (&self.original).take(end - start), &mut self.copies)?;
        Ok(())
    }
}
