//! A decompressed byte stream that survives damage and knows its position.
//!
//! *Question.* How can reading continue after a damaged gzip member, and how can every byte have a
//! position that does not depend on how the file is read? A stream is a sequence of *members* (gzip
//! members, zstd frames, xz and bzip2 streams; an uncompressed file is one endless member). Each
//! output byte belongs to the member that made it, and its [`Position`] is the position of the
//! member in the file plus the index of the byte in the content of the member.
//!
//! *Idea.* Damage does not end the stream, it *breaks* it: the reader sees the bytes before the
//! break, drops the current record, and [resumes](Stream::resume) at the next place where a member
//! starts and its first bytes decode. The search starts up to 64 KiB before the place where the
//! decoder noticed the damage, since inflate notices late. So one bad member costs one record and
//! one warning, the work stays linear, and no seeking is needed: pipes are read as well as files.
//!
//! Members are decoded one after another as needed, or taken from those that other threads have
//! decoded [ahead](Stream::read_ahead). Only complete, undamaged members come from there, and only
//! if one starts exactly where the last one ended, so the output is the same either way.
//!
//! A member that grows beyond the allowed expansion is treated as damaged. A member truncated by
//! the end of the file ends the stream.

use std::collections::VecDeque;
use std::fs::File;
use std::sync::Arc;

use crate::config::{Config, Limits};
use crate::document::{Position, Reason};
use crate::source::ahead::{Ahead, Decoded};
use crate::source::member::{FileCompression, Member};
use crate::source::raw::{CHUNK, Handle, MEMORY, Raw};

/// More consumed bytes than this are freed as soon as little is left after them.
const LARGE: usize = 256 << 10;

/// Number of bytes of an uncompressed file that are read at once, if that many are requested. With
/// smaller steps, a growing window would be copied at each step.
const AT_ONCE: usize = 1 << 20;

/// A place where the stream is interrupted.
#[derive(Debug, Clone)]
pub(crate) struct Break {
    pub(crate) position: Position,
    pub(crate) reason: Reason,
    pub(crate) detail: String,
    /// Whether nothing can be read after it.
    pub(crate) is_last: bool,
}

/// The origin of a stretch of output.
#[derive(Debug, Clone, Copy)]
struct Segment {
    /// Index in the whole output of its first byte.
    start: u64,
    /// Offset of the member in the file.
    offset: u64,
}

/// Converts indices of the output to positions.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    packing: FileCompression,
    segments: VecDeque<Segment>,
}

impl Places {
    /// The position of output byte `index`.
    pub(crate) fn at(&self, index: u64) -> Position {
        let after = self
            .segments
            .partition_point(|segment| segment.start <= index);
        let Some(segment) = after.checked_sub(1).and_then(|i| self.segments.get(i)) else {
            return Position::default();
        };
        let inner = index - segment.start;
        match self.packing {
            FileCompression::Plain => Position {
                offset: segment.offset + inner,
                inner: 0,
            },
            _ => Position {
                offset: segment.offset,
                inner,
            },
        }
    }

    /// Drops segments that are completely before `index`.
    fn forget_before(&mut self, index: u64) {
        while self.segments.get(1).is_some_and(|next| next.start <= index) {
            self.segments.pop_front();
        }
    }
}

/// The stream: a window over the output, filled on demand.
pub(crate) struct Stream {
    raw: Raw,
    limits: Limits,
    member: Option<Member>,
    dictionary: Option<Arc<[u8]>>,
    /// Members that other threads decode before this one needs them.
    ahead: Option<Arc<Ahead>>,
    /// The members of one range that were decoded ahead.
    decoded: Option<Decoded>,
    window: Vec<u8>,
    /// Consumed bytes at the start of `window`.
    used: usize,
    /// Index in the whole output of `window[used]`.
    index: u64,
    places: Places,
    broken: Option<Break>,
    ended: bool,
}

impl Stream {
    /// Starts to read, and detects the compression from the first bytes.
    pub(crate) fn new(handle: Handle, limits: &Limits) -> Self {
        let mut raw = Raw::new(handle);
        let packing = FileCompression::sniff(raw.fill(CHUNK));
        Self::unpack(raw, packing, limits)
    }

    fn unpack(raw: Raw, packing: FileCompression, limits: &Limits) -> Self {
        let mut stream = Self {
            raw,
            limits: limits.clone(),
            member: None,
            dictionary: None,
            ahead: None,
            decoded: None,
            window: Vec::new(),
            used: 0,
            index: 0,
            places: Places {
                packing,
                segments: VecDeque::new(),
            },
            broken: None,
            ended: false,
        };
        match packing {
            FileCompression::Plain => stream.note_member(0),
            FileCompression::Zstd => stream.dictionary = read_dictionary(&mut stream.raw),
            FileCompression::Gzip | FileCompression::Xz | FileCompression::Bzip2 => {}
        }
        stream
    }

    /// The compression of the input.
    pub(crate) fn packing(&self) -> FileCompression {
        self.places.packing
    }

    /// Lets other threads decode members before this one reaches them, from the same `file`, opened
    /// again.
    pub(crate) fn read_ahead(&mut self, file: File, config: &Config) -> Arc<Ahead> {
        let (packing, dictionary) = (self.places.packing, self.dictionary.clone());
        let ahead = Ahead::new(file, packing, dictionary, self.raw.offset(), config);
        Arc::clone(self.ahead.insert(Arc::new(ahead)))
    }

    /// The available bytes.
    pub(crate) fn window(&self) -> &[u8] {
        &self.window[self.used..]
    }

    /// Tries to have at least `want` bytes available. Fewer mean that the stream breaks or ends
    /// after them.
    pub(crate) fn fill(&mut self, want: usize) -> &[u8] {
        // Moving the rest costs at most as much as was consumed. A window that stays large while
        // little of it is consumed at a time is thus not moved repeatedly.
        if self.window().len() < want && self.is_flowing() && self.used >= self.window().len() {
            self.window.drain(..self.used);
            self.used = 0;
        }
        while self.window.len() - self.used < want && self.is_flowing() {
            match self.places.packing {
                FileCompression::Plain => self.read_plain(want),
                _ => self.decode_step(),
            }
        }
        self.window()
    }

    /// Consumes `n` bytes of the window.
    pub(crate) fn consume(&mut self, n: usize) {
        let n = n.min(self.window().len());
        self.used += n;
        self.index += n as u64;
        self.places.forget_before(self.index);
        if self.used > LARGE && self.used / 4 >= self.window().len() {
            (self.window, self.used) = (self.window().to_vec(), 0);
        }
    }

    /// Removes `n` bytes from the window. Returns them with the data that converts their indices to
    /// positions.
    pub(crate) fn take(&mut self, n: usize) -> (Vec<u8>, u64, Places) {
        let (places, index) = (self.places.clone(), self.index);
        let rest = self
            .window
            .split_off((self.used + n).min(self.window.len()));
        let mut taken = std::mem::replace(&mut self.window, rest);
        taken.drain(..self.used);
        self.used = 0;
        self.index += taken.len() as u64;
        self.places.forget_before(self.index);
        (taken, index, places)
    }

    /// Number of bytes of output before the window.
    pub(crate) fn index(&self) -> u64 {
        self.index
    }

    /// The position of the byte `ahead` bytes into the window.
    pub(crate) fn position(&self, ahead: usize) -> Position {
        self.places.at(self.index + ahead as u64)
    }

    /// Indices in the window at which members start, in order and not below `from`.
    pub(crate) fn member_starts(&self, from: usize) -> impl Iterator<Item = usize> {
        let segments = &self.places.segments;
        let from = self.index + from as u64;
        let first = segments.partition_point(|segment| segment.start < from);
        let starts = segments.range(first..);
        starts.filter_map(|segment| usize::try_from(segment.start - self.index).ok())
    }

    /// Whether a member starts at this index of the window.
    pub(crate) fn is_member_start(&self, at: usize) -> bool {
        self.member_starts(at).next() == Some(at)
    }

    /// Up to `n` bytes at an offset of an uncompressed file, without moving there; none if the
    /// input cannot seek.
    pub(crate) fn peek(&mut self, offset: u64, n: usize) -> Option<Vec<u8>> {
        match self.places.packing {
            FileCompression::Plain => self.raw.peek(offset, n),
            _ => None,
        }
    }

    /// Whether [`seek`](Self::seek) is possible.
    pub(crate) fn can_seek(&self) -> bool {
        self.raw.can_seek()
    }

    /// Whether bytes may follow those in the window.
    pub(crate) fn is_flowing(&self) -> bool {
        self.broken.is_none() && !self.ended
    }

    /// Offset of the member that is interrupted after the bytes in the window.
    pub(crate) fn broken_member(&self) -> Option<u64> {
        self.broken
            .as_ref()
            .map(|at_break| at_break.position.offset)
    }

    /// Whether the bytes in the window are the last and the stream ended without an error.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended && self.broken.is_none()
    }

    /// Resumes after a break and drops the bytes before it; none if the stream has ended.
    pub(crate) fn resume(&mut self) -> Option<Break> {
        let mut at_break = self.broken.take()?;
        self.consume(self.window().len());
        at_break.is_last = !self.find_member();
        self.ended |= at_break.is_last;
        Some(at_break)
    }

    /// Moves back or forward to a position of this file, if the input can seek.
    pub(crate) fn seek(&mut self, position: Position) -> bool {
        if !self.raw.seek(position.offset) {
            return false;
        }
        self.index += self.window().len() as u64;
        self.window.clear();
        self.used = 0;
        (self.member, self.broken, self.ended) = (None, None, false);
        self.places.segments.clear();
        if self.places.packing == FileCompression::Plain {
            self.note_member(position.offset);
        }
        self.skip(position.inner);
        true
    }

    /// Moves to a position, by reading forward if it is ahead in the same member. Returns whether
    /// it was reached.
    pub(crate) fn go_to(&mut self, position: Position) -> bool {
        let here = self.place();
        let on = here.filter(|here| here.offset == position.offset);
        let on = on.and_then(|here| position.inner.checked_sub(here.inner));
        match on {
            Some(n) => self.skip(n) == n,
            None => self.seek(position),
        };
        self.place() == Some(position)
    }

    /// Like [`go_to`](Self::go_to), but only to the start of a line.
    pub(crate) fn go_to_line(&mut self, position: Position) -> bool {
        if self.place() == Some(position) {
            return true;
        }
        let before = match (self.places.packing, position.offset, position.inner) {
            (FileCompression::Plain, 0, _) => None,
            (FileCompression::Plain, offset, inner) => Some((offset - 1, inner)),
            (_, _, 0) => None,
            (_, offset, inner) => Some((offset, inner - 1)),
        };
        let Some((offset, inner)) = before else {
            return self.go_to(position);
        };
        if !self.go_to(Position { offset, inner }) || !matches!(self.window()[0], b'\n' | b'\r') {
            return false;
        }
        self.consume(1);
        self.place() == Some(position)
    }

    /// Moves to a position with `index` bytes of output before it, whatever they are. Returns
    /// whether it was reached.
    pub(crate) fn go_on(&mut self, position: Position, index: u64) -> bool {
        if !self.seek(position) {
            return false;
        }
        // Indices count from the start of the file, as if all of it had been read.
        let shift = index.wrapping_sub(self.index);
        self.index = index;
        for segment in &mut self.places.segments {
            segment.start = segment.start.wrapping_add(shift);
        }
        self.place() == Some(position)
    }

    /// The position of the next byte; none if there is none.
    pub(crate) fn place(&mut self) -> Option<Position> {
        // A member is noted when its first byte is decompressed.
        let is_byte = !self.fill(1).is_empty();
        is_byte.then(|| self.position(0))
    }

    /// Skips `n` bytes of output without holding them. Returns how many there were.
    pub(crate) fn skip(&mut self, n: u64) -> u64 {
        let mut left = n;
        while left > 0 {
            let have = self.fill(CHUNK).len() as u64;
            if have == 0 {
                break;
            }
            let step = have.min(left);
            self.consume(usize::try_from(step).unwrap_or(usize::MAX));
            left -= step;
        }
        n - left
    }

    /// Reads at most [`AT_ONCE`] bytes, or all that are already available. A length may be wrong,
    /// so memory for all of it is not reserved in advance.
    fn read_plain(&mut self, want: usize) {
        let have = self.window().len();
        let missing = want.saturating_sub(have);
        let step = missing.min(have.max(AT_ONCE)).max(CHUNK);
        let before = self.window.len();
        self.raw.drain_into(&mut self.window, step);
        if self.window.len() - before < step {
            self.finish_input();
        }
    }

    /// Decodes some more, and starts a member if none is open.
    fn decode_step(&mut self) {
        if self.member.is_none() && (self.take_decoded() || !self.open_member()) {
            return;
        }
        let Some(member) = &mut self.member else {
            return;
        };
        let input = self.raw.fill(1);
        let at_end = input.is_empty();
        match member.step(input, &mut self.window) {
            Err(detail) => self.break_off(Reason::BadCompression, detail),
            Ok(step) => {
                self.raw.consume(step.read);
                if self.limits.is_bomb(member.read, member.written) {
                    let detail = format!("{} bytes became {}", member.read, member.written);
                    self.break_off(Reason::Expansion, detail);
                } else if step.ended {
                    self.member = None;
                } else if at_end && step.written == 0 {
                    self.cut_off();
                } else if step.read + step.written == 0 {
                    let detail = "the decoder does not move".to_owned();
                    self.break_off(Reason::BadCompression, detail);
                }
            }
        }
    }

    /// Takes the member at the next byte if it was decoded ahead.
    fn take_decoded(&mut self) -> bool {
        let Some(ahead) = &self.ahead else {
            return false;
        };
        let offset = self.raw.offset();
        if !self
            .decoded
            .as_ref()
            .is_some_and(|decoded| decoded.covers(offset))
        {
            self.decoded = ahead.take(offset);
        }
        let decoded = self.decoded.take();
        let member = decoded.as_ref().and_then(|decoded| decoded.member(offset));
        if let Some((end, content)) = member {
            self.note_member(offset);
            self.window.extend_from_slice(content);
            self.raw.skip_to(end);
        }
        let is_taken = member.is_some();
        self.decoded = decoded;
        is_taken
    }

    /// Opens the member at the next byte; fails at the end of the input or if no member starts
    /// there.
    fn open_member(&mut self) -> bool {
        let padding = self.raw.fill(CHUNK).iter().take_while(|&&b| b == 0).count();
        self.raw.consume(padding);
        if padding > 0 {
            return false;
        }
        let head = self.raw.ahead();
        if head.is_empty() {
            self.finish_input();
            return false;
        }
        let starts_member = FileCompression::sniff(head) == self.places.packing;
        self.note_member(self.raw.offset());
        if !starts_member {
            self.break_off(Reason::BadCompression, "no member starts here".to_owned());
            return false;
        }
        self.member = Member::new(self.places.packing, self.dictionary.as_deref());
        self.member.is_some()
    }

    fn note_member(&mut self, offset: u64) {
        let start = self.index + self.window().len() as u64;
        // No byte belongs to a member without content, so its offset is not kept.
        if let Some(empty) = self
            .places
            .segments
            .back_mut()
            .filter(|last| last.start == start)
        {
            empty.offset = offset;
            return;
        }
        self.places.segments.push_back(Segment { start, offset });
    }

    fn break_off(&mut self, reason: Reason, detail: String) {
        let offset = self
            .places
            .segments
            .back()
            .map_or(0, |segment| segment.offset);
        let position = Position { offset, inner: 0 };
        self.member = None;
        self.broken = Some(Break {
            position,
            reason,
            detail,
            is_last: false,
        });
    }

    fn cut_off(&mut self) {
        let error = self.raw.take_error();
        match error {
            Some(error) => self.break_off(Reason::Unreadable, error.to_string()),
            None => self.break_off(Reason::Truncated, "the input ends in a member".to_owned()),
        }
    }

    fn finish_input(&mut self) {
        match self.raw.take_error() {
            Some(error) => self.break_off(Reason::Unreadable, error.to_string()),
            None => self.ended = true,
        }
    }

    /// Searches for the next member, starting shortly before the damage.
    fn find_member(&mut self) -> bool {
        let Some(damaged) = self.places.segments.back().map(|segment| segment.offset) else {
            return false;
        };
        let from = self.raw.offset().saturating_sub(MEMORY as u64);
        self.raw.go_to(from.max(damaged + 1));
        loop {
            let ahead = self.raw.fill(CHUNK);
            let Some(&first) = self.places.packing.magic().first() else {
                return false;
            };
            match memchr::memchr(first, ahead) {
                None if ahead.is_empty() => return false,
                None => self.raw.consume(self.raw.ahead().len()),
                Some(start) => {
                    self.raw.consume(start);
                    self.raw.fill(CHUNK);
                    if self.is_member_ahead() {
                        return true;
                    }
                    self.raw.consume(1);
                }
            }
        }
    }

    /// Whether a member starts at the next byte and its first bytes decode.
    fn is_member_ahead(&self) -> bool {
        let ahead = self.raw.ahead();
        if FileCompression::sniff(ahead) != self.places.packing {
            return false;
        }
        // A bzip2 block returns nothing before its end, and its ten magic bytes do not occur by
        // chance.
        if self.places.packing == FileCompression::Bzip2 {
            return true;
        }
        let Some(mut member) = Member::new(self.places.packing, self.dictionary.as_deref()) else {
            return false;
        };
        let mut output = Vec::new();
        let mut read = 0;
        while output.len() < 512 {
            match member.step(&ahead[read..], &mut output) {
                Err(_) => return false,
                Ok(step) if step.ended => return true,
                Ok(step) if step.read + step.written == 0 => return output.len() >= 64,
                Ok(step) => read += step.read,
            }
        }
        true
    }
}

/// The dictionary frame that a `.warc.zst` file may start with: a skippable frame, itself possibly
/// compressed.
fn read_dictionary(raw: &mut Raw) -> Option<Arc<[u8]>> {
    const MAGIC: [u8; 4] = 0x184d_2a5d_u32.to_le_bytes();
    const LARGEST: usize = 8 << 20;
    let head = raw.fill(8);
    let size = u32::from_le_bytes(head.get(4..8)?.try_into().ok()?);
    let size = usize::try_from(size).ok()?;
    if head[..4] != MAGIC || size > LARGEST {
        return None;
    }
    let content = raw.fill(8 + size).get(8..8 + size)?;
    match FileCompression::sniff(content) {
        FileCompression::Zstd => zstd::bulk::decompress(content, LARGEST).ok().map(Arc::from),
        _ => Some(Arc::from(content)),
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
