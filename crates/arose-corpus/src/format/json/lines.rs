//! JSON lines: cut into blocks at line ends, then read block by block.
//!
//! Cutting costs one backward search for a line end per block, so a single thread can feed many
//! that parse. A line longer than the limit is stepped over without being held.

use std::path::Path;
use std::sync::Arc;

use memchr::{memchr, memrchr};

use crate::config::{Config, Fields, N_SLOTS, Slot};
use crate::document::{Item, Position, Reason};
use crate::format::Cut;
use crate::format::json::scan::{self, Flaw, Quoted, Value};
use crate::format::row::{Place, Row};
use crate::source::raw::CHUNK;
use crate::source::stream::{Places, Stream};

/// Whole lines.
pub(crate) struct LineBlock {
    pub(crate) source: Arc<Path>,
    pub(crate) bytes: Vec<u8>,
    index: u64,
    places: Places,
}

/// Cuts a stream into blocks of whole lines.
pub(crate) struct LineCutter {
    source: Arc<Path>,
    stream: Stream,
    line_bytes: usize,
    block_bytes: usize,
}

impl LineCutter {
    pub(crate) fn new(source: &Arc<Path>, stream: Stream, config: &Config) -> Self {
        Self {
            source: Arc::clone(source),
            stream,
            line_bytes: config.limits.line_bytes,
            block_bytes: config.block_bytes.get(),
        }
    }

    /// The file and what is left of it.
    pub(crate) fn stream(&mut self) -> (&Path, &mut Stream) {
        (&self.source, &mut self.stream)
    }

    /// The next block or notice; none at the end.
    pub(crate) fn next(&mut self) -> Option<Cut<LineBlock>> {
        let mut want = self.block_bytes;
        loop {
            let window = self.stream.fill(want);
            if let Some(last) = memrchr(b'\n', window) {
                return Some(self.cut(last + 1));
            }
            let length = window.len();
            if length > self.line_bytes {
                return Some(Cut::Skipped(self.skip_line()));
            }
            if self.stream.is_flowing() {
                want = length.max(CHUNK) * 2;
                continue;
            }
            // The line that a break interrupts is lost, and the break is its warning.
            if let Some(at_break) = self.stream.resume() {
                let place = Place::new(&self.source, at_break.position);
                return Some(Cut::Skipped(place.broken(at_break)));
            }
            return (length > 0).then(|| self.cut(length));
        }
    }

    /// What the line at `position` holds; none if no line starts there.
    pub(crate) fn item_at(&mut self, position: Position, config: &Config) -> Option<Item> {
        if !self.stream.go_to_line(position) {
            return None;
        }
        let n = self.line_end()?;
        let line = &self.stream.window()[..n];
        let line = match line.strip_prefix(b"\xef\xbb\xbf") {
            Some(rest) if position == Position::default() => rest,
            _ => line,
        };
        let item = read_line(line, Place::new(&self.source, position), config);
        self.stream.consume(n);
        Some(item)
    }

    /// The length of the line at hand; none if it is too long or broken off.
    fn line_end(&mut self) -> Option<usize> {
        let mut want = CHUNK;
        loop {
            let window = self.stream.fill(want);
            if let Some(end) = memchr(b'\n', window) {
                return Some(end);
            }
            let length = window.len();
            if length > self.line_bytes {
                return None;
            }
            if !self.stream.is_flowing() {
                return self.stream.has_ended().then_some(length);
            }
            want = length.max(CHUNK) * 2;
        }
    }

    fn cut(&mut self, n: usize) -> Cut<LineBlock> {
        let (bytes, index, places) = self.stream.take(n);
        Cut::Block(LineBlock {
            source: Arc::clone(&self.source),
            bytes,
            index,
            places,
        })
    }

    fn skip_line(&mut self) -> Item {
        let place = Place::new(&self.source, self.stream.position(0));
        loop {
            let window = self.stream.fill(CHUNK);
            let (length, end) = (window.len(), memchr(b'\n', window));
            self.stream.consume(end.map_or(length, |end| end + 1));
            if end.is_some() || length == 0 {
                return long_line(&place, self.line_bytes);
            }
        }
    }
}

fn long_line(place: &Place, limit: usize) -> Item {
    place.skipped(
        Reason::TooLarge,
        format!("a line of more than {limit} bytes"),
    )
}

impl LineBlock {
    /// Each line that is not blank, with the index of its first byte.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &[u8])> {
        let ends = memchr::memchr_iter(b'\n', &self.bytes).chain([self.bytes.len()]);
        let mut start = 0;
        ends.filter_map(move |end| {
            let line = self.bytes.get(start..end)?;
            let from = std::mem::replace(&mut start, end + 1);
            (!line.trim_ascii().is_empty()).then_some((from, line))
        })
    }

    /// The place of the line that starts at byte `start`.
    pub(crate) fn place(&self, start: usize) -> Place {
        Place::new(&self.source, self.places.at(self.index + start as u64))
    }

    /// Reads every line.
    pub(crate) fn read(&self, config: &Config, sink: &mut dyn FnMut(Item)) {
        for (start, line) in self.lines() {
            let is_first = self.index == 0 && start == 0;
            let line = match line.strip_prefix(b"\xef\xbb\xbf") {
                Some(rest) if is_first => rest,
                _ => line,
            };
            sink(read_line(line, self.place(start), config));
        }
    }
}

fn read_line(line: &[u8], place: Place, config: &Config) -> Item {
    if line.len() > config.limits.line_bytes {
        return long_line(&place, config.limits.line_bytes);
    }
    let mut found = Found::default();
    let row = scan::scan(line, |key, value| found.offer(key, value, &config.fields))
        .and_then(|()| found.into_row());
    match row {
        Err(flaw) => place.skipped(Reason::NotAnObject, flaw),
        Ok(row) => row.into_item(place, config),
    }
}

/// The best value seen for each slot, with the rank of its name.
#[derive(Default)]
struct Found<'a> {
    best: [Option<(usize, Value<'a>)>; N_SLOTS],
    /// Whether a field for the text is null.
    is_null: bool,
}

impl<'a> Found<'a> {
    /// Keeps a value that is wanted; checks the others, which nobody will look at again.
    fn offer(&mut self, key: Quoted<'a>, value: Value<'a>, fields: &Fields) -> Result<(), Flaw> {
        let mut is_kept = false;
        for (slot, (best, names)) in self.best.iter_mut().zip(fields.lists()).enumerate() {
            let Some(rank) = names.iter().position(|name| key.is(name)) else {
                continue;
            };
            let is_better = best.as_ref().is_none_or(|(known, _)| rank <= *known);
            let is_gone = best.as_ref().is_some_and(|(known, _)| rank == *known);
            let is_text = [Slot::Text as usize, Slot::Html as usize].contains(&slot);
            self.is_null |= is_text && value == Value::Null;
            let replaced = match value {
                // Of equal keys the last counts, even if it holds nothing of use.
                Value::Null | Value::Other if is_gone => best.take(),
                Value::Null | Value::Other => None,
                _ if is_better => {
                    is_kept = true;
                    best.replace((rank, value))
                }
                _ => None,
            };
            replaced.map_or(Ok(()), |(_, value)| value.check())?;
        }
        match is_kept {
            true => Ok(()),
            false => value.check(),
        }
    }

    fn into_row(self) -> Result<Row<'a>, Flaw> {
        let mut row = Row {
            is_null: self.is_null,
            ..Row::default()
        };
        for (slot, best) in row.values.iter_mut().zip(self.best) {
            *slot = match best {
                Some((_, Value::Text(text))) => {
                    let (text, is_lossy) = text.unescape()?;
                    row.is_malformed |= is_lossy;
                    Some(text)
                }
                Some((_, Value::Number(number))) => Some(String::from_utf8_lossy(number)),
                Some((_, Value::Null | Value::Other)) | None => None,
            };
        }
        Ok(row)
    }
}
