//! Finds the records of an archive, even if it is damaged.
//!
//! A record declares the length of its block, and after the block another record starts. If the two
//! disagree, the start of the next record is trusted more than the length. A start is eight bytes
//! that hardly occur otherwise, while a length is any number. Therefore:
//!
//! - a block that is too long is cut where a record starts inside it;
//! - a block that is too short extends to the next start;
//! - a block that is not completely in the input, or a header that cannot be read, is lost, and
//!   reading continues at the next start.
//!
//! A block beyond the size limit is skipped, with everything in it that looks like a record. If no
//! record starts where it ends, its length was wrong, and reading continues at the first start
//! inside it. In an uncompressed file, the end is read first. Other streams cannot go back. There,
//! the first start inside the block is kept, with as many bytes after it as the limit allows, until
//! the end shows which of the two is right. If that is not enough, a start is trusted only where a
//! compressed member starts too, because no body can contain such a start.
//!
//! Every byte is searched a constant number of times, whatever the lengths say.

use std::path::Path;
use std::sync::Arc;

use crate::body::http;
use crate::config::{Config, Limits};
use crate::document::{Item, Position, Reason, Warning};
use crate::format::Cut;
use crate::format::row::RecordPlace;
use crate::format::warc::dialect::{Dialect, Head, Parsed, START_BYTES};
use crate::pipeline::fetch::Stored;
use crate::source::raw::CHUNK;
use crate::source::stream::Stream;

/// One record.
pub(crate) struct Record {
    pub(crate) place: RecordPlace,
    pub(crate) dialect: Dialect,
    pub(crate) head: Head,
    /// The header as written in the file.
    pub(crate) raw_head: Vec<u8>,
    /// The block; empty for kinds without a document, unless all blocks are wanted.
    pub(crate) block: Vec<u8>,
    /// A warning about the record, if any.
    pub(crate) warning: Option<Warning>,
}

/// Which blocks to return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Blocks {
    /// Blocks that may contain a document.
    Documents,
    /// All blocks.
    All,
}

/// Finds records in a stream.
pub(crate) struct RecordCutter {
    source: Arc<Path>,
    stream: Stream,
    dialect: Dialect,
    limits: Limits,
    block_bytes: usize,
    blocks: Blocks,
}

impl RecordCutter {
    pub(crate) fn new(
        source: &Arc<Path>,
        stream: Stream,
        dialect: Dialect,
        config: &Config,
        blocks: Blocks,
    ) -> Self {
        Self {
            source: Arc::clone(source),
            stream,
            dialect,
            limits: config.limits.clone(),
            block_bytes: config.block_bytes.get(),
            blocks,
        }
    }

    /// The file and the rest of its stream.
    pub(crate) fn stream(&mut self) -> (&Path, &mut Stream) {
        (&self.source, &mut self.stream)
    }

    /// Some records and warnings, in order; none at the end.
    pub(crate) fn next(&mut self) -> Option<Cut<Vec<Result<Record, Item>>>> {
        let mut records = Vec::new();
        let mut n_bytes = 0;
        while n_bytes < self.block_bytes {
            let Some(record) = self.record() else {
                break;
            };
            let held = |record: &Record| record.raw_head.len() + record.block.len();
            n_bytes += 512 + record.as_ref().map_or(0, held);
            records.push(record);
        }
        (!records.is_empty()).then_some(Cut::Block(records))
    }

    /// The next record, or the warning about lost input; none at the end.
    pub(crate) fn record(&mut self) -> Option<Result<Record, Item>> {
        while let Some(b'\r' | b'\n' | b' ') = self.stream.fill(1).first() {
            self.stream.consume(1);
        }
        if self.stream.window().is_empty() {
            let at_break = self.stream.resume()?;
            let place = RecordPlace::new(&self.source, at_break.position);
            return Some(Err(place.broken(at_break)));
        }
        let place = self.place();
        if !self.is_start(0) {
            return Some(Err(self.skip_to_start(&place, "no record starts here")));
        }
        Some(match self.header() {
            Parsed::Head(n, head) => self.with_block(place, n, *head),
            Parsed::Bad(n, detail) => {
                self.stream.consume(n);
                Err(self.skip_to_start(&place, &detail))
            }
            Parsed::Open => Err(self.lost(&place)),
        })
    }

    /// The item at `position`; none if no record starts there.
    pub(crate) fn item_at(&mut self, position: Position, config: &Config) -> Option<Item> {
        if !self.stream.go_to(position) {
            return None;
        }
        Some(match self.record()? {
            Ok(record) => record.read(config),
            Err(item) => item,
        })
    }

    /// The body of the record at `position`; none if no record starts there or it has no body.
    pub(crate) fn stored_at(&mut self, position: Position, config: &Config) -> Option<Stored> {
        if !self.stream.go_to(position) {
            return None;
        }
        self.record()?.ok()?.stored(config)
    }

    fn place(&self) -> RecordPlace {
        RecordPlace::new(&self.source, self.stream.position(0))
    }

    /// Reads the current header. It is open only if the input ends inside it.
    fn header(&mut self) -> Parsed {
        let mut want = START_BYTES;
        loop {
            let window = self.stream.fill(want);
            let bytes = &window[..window.len().min(self.limits.header_bytes)];
            let parsed = self.dialect.parse(bytes);
            if parsed != Parsed::Open {
                return parsed;
            }
            if bytes.len() == self.limits.header_bytes {
                let n = self.limits.header_bytes;
                return Parsed::Bad(1, format!("a header of more than {n} bytes"));
            }
            if !self.stream.is_flowing() {
                return Parsed::Open;
            }
            want *= 2;
        }
    }

    /// Takes the block of a record whose header is `n` bytes long.
    fn with_block(&mut self, place: RecordPlace, n: usize, head: Head) -> Result<Record, Item> {
        let length = usize::try_from(head.length).unwrap_or(usize::MAX);
        if length > self.limits.record_bytes {
            return Err(self.skip_block(&place, n, head.length));
        }
        let end = n + length;
        let have = self.stream.fill(end + START_BYTES).len();
        if have >= end && self.is_boundary(end) {
            if self.is_in_doubt(end) {
                return Err(self.lost(&place));
            }
            let warning = self.unseparated(&place, end);
            return Ok(self.take(place, head, n..end, end, warning));
        }
        let warning = place.warning(Reason::BadLength, format!("declares {length}"));
        if let Some(start) = self.start_within(n, end.min(have)) {
            let block = n..self.trimmed(n, start);
            return Ok(self.take(place, head, block, start, Some(warning)));
        }
        if have < end {
            // Some tools changed line ends without updating the length. The HTTP message itself
            // shows whether it is complete.
            let is_whole = http::is_whole(&self.stream.window()[n..], &self.limits);
            if is_whole && self.stream.has_ended() {
                return Ok(self.take(place, head, n..have, have, Some(warning)));
            }
            return Err(self.lost(&place));
        }
        if let Some(start) = self.start_after(n, end) {
            let block = n..self.trimmed(n, start);
            return Ok(self.take(place, head, block, start, Some(warning)));
        }
        if self.stream.broken_member() == Some(self.stream.position(end - 1).offset) {
            return Err(self.lost(&place));
        }
        let record = self.take(place, head, n..end, end, Some(warning));
        self.find_start();
        Ok(record)
    }

    /// Returns a record and moves to the start of the next one.
    fn take(
        &mut self,
        place: RecordPlace,
        head: Head,
        block: std::ops::Range<usize>,
        next: usize,
        warning: Option<Warning>,
    ) -> Record {
        let window = self.stream.window();
        let is_wanted = self.blocks == Blocks::All || head.may_be_document();
        let bytes = if is_wanted {
            &window[block.clone()]
        } else {
            &[]
        };
        let record = Record {
            place,
            dialect: self.dialect,
            head,
            raw_head: window[..block.start].to_vec(),
            block: bytes.to_vec(),
            warning,
        };
        self.stream.consume(next);
        record
    }

    /// A WARC record must be followed by line ends. If there are none, its length includes them.
    fn unseparated(&self, place: &RecordPlace, end: usize) -> Option<Warning> {
        let is_unseparated = match (self.dialect, self.stream.window().get(end)) {
            (Dialect::Warc, Some(next)) => !matches!(next, b'\r' | b'\n'),
            _ => false,
        };
        is_unseparated.then(|| place.warning(Reason::BadLength, "no line end after the block"))
    }

    /// Whether the member ends with an error right after a record. Its checksum is wrong, so the
    /// record may be wrong too.
    fn is_in_doubt(&self, end: usize) -> bool {
        let rest = &self.stream.window()[end..];
        let last = self.stream.position(end.saturating_sub(1));
        self.stream.broken_member() == Some(last.offset)
            && rest.iter().all(|b| matches!(b, b'\r' | b'\n'))
    }

    /// Skips to the next start after bytes that are not a record. If a break follows, it is part of
    /// the same damage.
    fn skip_to_start(&mut self, place: &RecordPlace, detail: &str) -> Item {
        self.find_start();
        if self.stream.window().is_empty()
            && let Some(at_break) = self.stream.resume()
        {
            return place.broken(at_break);
        }
        place.skipped(Reason::BadHeader, detail)
    }

    /// Reports that the rest of the current record is missing.
    fn lost(&mut self, place: &RecordPlace) -> Item {
        if let Some(at_break) = self.stream.resume() {
            return place.broken(at_break);
        }
        self.stream.consume(self.stream.window().len());
        place.skipped(Reason::Truncated, "the input ends in a record")
    }

    /// Whether a record starts `at` bytes into the window.
    fn is_start(&mut self, at: usize) -> bool {
        let window = self.stream.fill(at + START_BYTES);
        self.dialect.is_start(window.get(at..).unwrap_or_default())
    }

    /// Whether the input ends, a member starts or a record starts after `at` and line ends.
    fn is_boundary(&mut self, at: usize) -> bool {
        for at in at..at + MAX_LINE_ENDS {
            let next = self.stream.fill(at + 1).get(at).copied();
            if self.stream.is_member_start(at) {
                return true;
            }
            match next {
                Some(b'\r' | b'\n') => {}
                Some(_) => return self.is_start(at),
                None => return true,
            }
        }
        // After this many line ends, the next bytes are checked when reading reaches them.
        true
    }

    /// The first start of a record in a part of the window, after a line end or at the start of a
    /// member.
    fn start_within(&self, from: usize, to: usize) -> Option<usize> {
        let window = self.stream.window();
        let before = from.saturating_sub(1);
        let reach = (to + START_BYTES).min(window.len());
        let after_line = self
            .dialect
            .find_start(window.get(before..reach)?)
            .map(|i| before + i);
        let at_member = self
            .stream
            .member_starts(from)
            .take_while(|&i| i < reach)
            .find(|&i| self.dialect.is_start(&window[i..]));
        let start = after_line.into_iter().chain(at_member).min()?;
        (start < to).then_some(start)
    }

    /// The next start after a block that is too short, if it is within the size limit.
    fn start_after(&mut self, n: usize, end: usize) -> Option<usize> {
        let most = n + self.limits.record_bytes;
        let mut want = end + CHUNK;
        loop {
            let have = self.stream.fill(want + START_BYTES).len();
            let is_last = !self.stream.is_flowing() || have >= most;
            let to = if self.stream.is_flowing() {
                have - START_BYTES
            } else {
                have
            };
            match self.start_within(end, to.min(most)) {
                Some(start) => return Some(start),
                None if is_last => return None,
                None => want = have * 2,
            }
        }
    }

    /// The end of the block before `start`, without the line ends that separate records.
    fn trimmed(&self, n: usize, start: usize) -> usize {
        let block = &self.stream.window()[n..start];
        let separators: &[&[u8]] = match self.dialect {
            Dialect::Warc => &[b"\r\n\r\n", b"\n\n"],
            Dialect::Arc => &[b"\n"],
        };
        let trimmed = separators
            .iter()
            .find_map(|line_ends| block.strip_suffix(*line_ends));
        n + trimmed.unwrap_or(block).len()
    }

    /// Skips to the next start of a record, or to the end of the stream or a break in it.
    fn find_start(&mut self) {
        if self.is_start(0) {
            return;
        }
        loop {
            let have = self.stream.fill(CHUNK + START_BYTES).len();
            let is_last = !self.stream.is_flowing();
            let to = if is_last { have } else { have - START_BYTES };
            match self.start_within(1, to) {
                Some(start) => return self.stream.consume(start),
                // The byte before the next one to check stays, because it may be a line end.
                None => self.stream.consume(if is_last { have } else { to - 1 }),
            }
            if is_last {
                return;
            }
        }
    }

    /// Skips a block that is too large to hold in memory.
    fn skip_block(&mut self, place: &RecordPlace, n: usize, length: u64) -> Item {
        let last = self.stream.position(n - 1).offset.saturating_add(length);
        let skipped = match self.stream.peek(last, 1 + MAX_LINE_ENDS + START_BYTES) {
            Some(end) => self.jump_over(n, last, &end),
            None => self.read_over(n, length),
        };
        let detail = match skipped {
            Skip::Right => format!("a record of {length} bytes"),
            Skip::Wrong => {
                self.find_start();
                if self.stream.window().is_empty() {
                    self.stream.resume();
                }
                format!("a record that declares {length} bytes")
            }
            Skip::Lost => {
                self.find_start();
                format!(
                    "a record that declares {length} bytes; records inside it may be lost, pass the file \
                     itself instead of a pipe"
                )
            }
        };
        place.skipped(Reason::TooLarge, detail)
    }

    /// Moves to the end of the block, if a record starts or the input ends there. `end` contains
    /// the bytes there, starting with the last byte of the block.
    fn jump_over(&mut self, n: usize, last: u64, end: &[u8]) -> Skip {
        let is_boundary = end.split_first().is_some_and(|(_, after)| {
            let is_line_end = |b: &u8| matches!(b, b'\r' | b'\n');
            let line_ends = after.iter().take_while(|b| is_line_end(b)).count();
            let next = &after[line_ends..];
            line_ends >= MAX_LINE_ENDS || next.is_empty() || self.dialect.is_start(next)
        });
        let next = Position {
            offset: last.saturating_add(1),
            inner: 0,
        };
        if is_boundary && self.stream.seek(next) {
            return Skip::Right;
        }
        // The line end before the block stays, because a record may start right after it.
        self.stream.consume(n - 1);
        Skip::Wrong
    }

    /// Reads to the end of the block and holds the bytes after the first start inside it.
    fn read_over(&mut self, n: usize, length: u64) -> Skip {
        self.stream.consume(n - 1);
        let mut left = length.saturating_add(1);
        while left > 0 {
            let have = self.stream.fill(CHUNK + START_BYTES).len();
            let is_last = !self.stream.is_flowing();
            let step = match is_last {
                true => have,
                false => have - START_BYTES - 1,
            };
            let step = usize::try_from(left).map_or(step, |left| left.min(step));
            if let Some(start) = self.start_within(1, step + 1) {
                self.stream.consume(start);
                return self.hold(left - start as u64);
            }
            self.stream.consume(step);
            left -= step as u64;
            if is_last && left > 0 {
                return Skip::Wrong;
            }
        }
        self.at_end_of_block()
    }

    /// Called at a possible record inside a block with `left` bytes to go. Skips it if a record
    /// starts where the block ends.
    fn hold(&mut self, left: u64) -> Skip {
        let limit = self.limits.record_bytes;
        let end = usize::try_from(left).unwrap_or(usize::MAX);
        let have = self.stream.fill(end.min(limit)).len();
        match () {
            () if end <= have => {
                if !self.is_boundary(end) {
                    return Skip::Wrong;
                }
                self.stream.consume(end);
                Skip::Right
            }
            () if !self.stream.is_flowing() || self.stream.is_member_start(0) => Skip::Wrong,
            () if self.stream.skip(left) < left => Skip::Lost,
            () => match self.at_end_of_block() {
                Skip::Right => Skip::Right,
                Skip::Wrong | Skip::Lost => Skip::Lost,
            },
        }
    }

    fn at_end_of_block(&mut self) -> Skip {
        match self.is_boundary(0) {
            true => Skip::Right,
            false => Skip::Wrong,
        }
    }
}

/// The result of skipping a block.
enum Skip {
    /// A record starts, or the input ends, where it ends.
    Right,
    /// Its length is wrong, and reading continues at the next start.
    Wrong,
    /// The same, but a start inside it may have been missed, and the stream cannot go back.
    Lost,
}

/// Maximum number of line ends between records that are checked ahead of reading.
const MAX_LINE_ENDS: usize = 4096;
