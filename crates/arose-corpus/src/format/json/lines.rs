//! Reads JSON Lines: splits the stream at line ends and reads it block by block.
//!
//! Cutting takes one backward search for a line end per block, so one thread can feed many parsing
//! threads. A line longer than the limit is skipped without being held in memory. If the last line
//! has no line end and its JSON is incomplete, the input was truncated.

use std::path::Path;
use std::sync::Arc;

use memchr::{memchr, memrchr};

use crate::config::{Config, Fields, N_SLOTS, Slot, below};
use crate::document::{Item, Position, Reason};
use crate::format::Cut;
use crate::format::json::scan::{self, Extent, Flaw, Quoted, Value};
use crate::format::row::{RecordPlace, Row};
use crate::source::raw::CHUNK;
use crate::source::stream::{Places, Stream};

/// Complete lines.
pub(crate) struct LineBlock {
    pub(crate) source: Arc<Path>,
    pub(crate) bytes: Vec<u8>,
    index: u64,
    places: Places,
    /// Whether this is the last line and has no line end.
    is_unended: bool,
}

/// Cuts a stream into blocks of complete lines.
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

    /// The file and the rest of its stream.
    pub(crate) fn stream(&mut self) -> (&Path, &mut Stream) {
        (&self.source, &mut self.stream)
    }

    /// The next block or warning; none at the end.
    pub(crate) fn next(&mut self) -> Option<Cut<LineBlock>> {
        let mut want = self.block_bytes;
        loop {
            let window = self.stream.fill(want);
            if let Some(last) = memrchr(b'\n', window) {
                let block = LineBlock::take(&self.source, &mut self.stream, last + 1);
                return Some(Cut::Block(block));
            }
            let length = window.len();
            if length > self.line_bytes {
                return Some(Cut::Skipped(self.skip_line()));
            }
            if self.stream.is_flowing() {
                want = length.max(CHUNK) * 2;
                continue;
            }
            // The line that a break interrupts is lost; the warning about the break covers it.
            if let Some(at_break) = self.stream.resume() {
                let place = RecordPlace::new(&self.source, at_break.position);
                return Some(Cut::Skipped(place.broken(at_break)));
            }
            return (length > 0).then(|| {
                let mut last = LineBlock::take(&self.source, &mut self.stream, length);
                last.is_unended = true;
                Cut::Block(last)
            });
        }
    }

    /// The item at `position`; none if no line starts there.
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
        let place = RecordPlace::new(&self.source, position);
        let item = read_object(line, place, &Wanted::new(&config.fields), config);
        self.stream.consume(n);
        Some(item)
    }

    /// The length of the current line; none if it is too long or interrupted.
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

    fn skip_line(&mut self) -> Item {
        let place = RecordPlace::new(&self.source, self.stream.position(0));
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

fn long_line(place: &RecordPlace, limit: usize) -> Item {
    place.skipped(
        Reason::TooLarge,
        format!("a line of more than {limit} bytes"),
    )
}

impl LineBlock {
    /// Takes the next `n` bytes out of a stream.
    pub(crate) fn take(source: &Arc<Path>, stream: &mut Stream, n: usize) -> Self {
        let (bytes, index, places) = stream.take(n);
        Self {
            source: Arc::clone(source),
            bytes,
            index,
            places,
            is_unended: false,
        }
    }

    /// Each nonblank line, with the index of its first byte.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &[u8])> {
        let ends = memchr::memchr_iter(b'\n', &self.bytes).chain([self.bytes.len()]);
        let mut start = 0;
        ends.filter_map(move |end| {
            let line = self.bytes.get(start..end)?;
            let from = std::mem::replace(&mut start, end + 1);
            (!line.trim_ascii().is_empty()).then_some((from, line))
        })
    }

    /// The position of the line that starts at byte `start`.
    pub(crate) fn place(&self, start: usize) -> RecordPlace {
        RecordPlace::new(&self.source, self.places.at(self.index + start as u64))
    }

    /// Reads every line.
    pub(crate) fn read(&self, config: &Config, sink: &mut dyn FnMut(Item)) {
        let wanted = Wanted::new(&config.fields);
        for (start, line) in self.lines() {
            let is_first = self.index == 0 && start == 0;
            let line = match line.strip_prefix(b"\xef\xbb\xbf") {
                Some(rest) if is_first => rest,
                _ => line,
            };
            if self.is_unended && scan::extent(line.trim_ascii_start()) == Extent::Open {
                let detail = "the input ends inside a JSON value";
                sink(self.place(start).skipped(Reason::Truncated, detail));
                continue;
            }
            sink(read_object(line, self.place(start), &wanted, config));
        }
    }
}

/// Makes a document of an object.
pub(crate) fn read_object(
    object: &[u8],
    place: RecordPlace,
    wanted: &Wanted<'_>,
    config: &Config,
) -> Item {
    if object.len() > config.limits.line_bytes {
        return long_line(&place, config.limits.line_bytes);
    }
    let mut found = Found::default();
    let row = scan::scan(object, |key, value| {
        found.offer(key, value, wanted.fields)?;
        match wanted.paths.is_empty() {
            true => Ok(()),
            false => found.descend(key, value, &wanted.paths),
        }
    })
    .and_then(|()| found.into_row());
    match row {
        Err(flaw) => place.skipped(Reason::NotAnObject, flaw),
        Ok(row) => row.into_item(place, config),
    }
}

/// The object with another text in the field that its text is read from; all other bytes are
/// unchanged. None if it has no such field.
pub(crate) fn with_text(object: &[u8], text: &str, wanted: &Wanted<'_>) -> Option<Vec<u8>> {
    let mut found = Found::default();
    let scanned = scan::scan(object, |key, value| {
        found.offer(key, value, wanted.fields)?;
        found.descend(key, value, &wanted.paths)
    });
    scanned.ok()?;
    let (slice, n_quotes) = match found.best[Slot::Text as usize]? {
        (_, Value::Text(text)) => (text.raw(), 1),
        (_, Value::Number(number)) => (number, 0),
        (_, Value::Object(_) | Value::Null | Value::Other) => return None,
    };
    // The slice is part of the object.
    let start = slice.as_ptr().addr() - object.as_ptr().addr() - n_quotes;
    let end = start + slice.len() + 2 * n_quotes;
    let quoted = serde_json::to_vec(text).ok()?;
    Some([&object[..start], &quoted[..], &object[end..]].concat())
}

/// The names of the fields to look for.
pub(crate) struct Wanted<'a> {
    fields: &'a Fields,
    /// Names that may lead into nested objects.
    paths: Vec<FieldPath<'a>>,
}

/// A name with a dot: `data.text` is the field `text` of the object `data`, unless there is a field
/// with the whole name.
struct FieldPath<'a> {
    slot: usize,
    /// See [`Found`].
    rank: usize,
    name: &'a str,
}

impl<'a> Wanted<'a> {
    pub(crate) fn new(fields: &'a Fields) -> Self {
        let lists = fields.lists().into_iter().enumerate();
        let paths = lists.flat_map(|(slot, names)| {
            let names = names.iter().enumerate();
            names
                .filter(|(_, name)| name.contains('.'))
                .map(move |(rank, name)| FieldPath {
                    slot,
                    rank: 2 * rank + 1,
                    name,
                })
        });
        Self {
            fields,
            paths: paths.collect(),
        }
    }
}

/// The string, number or null that a path leads to in an object.
fn look_up<'a>(object: &'a [u8], name: &str) -> Option<Value<'a>> {
    let (mut literal, mut nested) = (None, None);
    let looked = scan::scan(object, |key, value| {
        let (key, _) = key.unescape()?;
        if key == name {
            literal = Some(value).filter(|v| !matches!(v, Value::Object(_) | Value::Other));
        } else if let Some(rest) = below(name, &key) {
            nested = match value {
                Value::Object(object) => look_up(object, rest),
                _ => None,
            };
        }
        Ok(())
    });
    looked.ok().and(literal.or(nested))
}

/// Whether a slot is for the text, or for the HTML that it is extracted from.
fn is_text(slot: usize) -> bool {
    slot == Slot::Text as usize || slot == Slot::Html as usize
}

/// The best value seen for each slot, with the rank of its name: twice the index of the name in its
/// list, plus one for a value found by a path.
#[derive(Default)]
struct Found<'a> {
    best: [Option<(usize, Value<'a>)>; N_SLOTS],
    /// Whether a field for the text is null.
    is_null: bool,
}

impl<'a> Found<'a> {
    /// Keeps a wanted value. Checks all other values, which are not looked at again.
    fn offer(&mut self, key: Quoted<'a>, value: Value<'a>, fields: &Fields) -> Result<(), Flaw> {
        let mut is_kept = false;
        for (slot, (best, names)) in self.best.iter_mut().zip(fields.lists()).enumerate() {
            let Some(rank) = names.iter().position(|name| key.is(name)) else {
                continue;
            };
            let rank = 2 * rank;
            let is_better = best.as_ref().is_none_or(|(known, _)| rank <= *known);
            let is_gone = best.as_ref().is_some_and(|(known, _)| rank == *known);
            self.is_null |= is_text(slot) && value == Value::Null;
            let replaced = match value {
                // The last of equal keys counts, even if its value is unusable.
                Value::Null | Value::Object(_) | Value::Other if is_gone => best.take(),
                Value::Null | Value::Object(_) | Value::Other => None,
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

    /// Keeps the values that paths lead to below a key.
    fn descend(
        &mut self,
        key: Quoted<'a>,
        value: Value<'a>,
        paths: &[FieldPath<'_>],
    ) -> Result<(), Flaw> {
        let (key, _) = key.unescape()?;
        for path in paths {
            let Some(rest) = below(path.name, &key) else {
                continue;
            };
            let best = &mut self.best[path.slot];
            // The last of equal keys counts. Values of nested objects have already been checked.
            best.take_if(|(known, _)| *known == path.rank);
            let is_better = best.as_ref().is_none_or(|(known, _)| path.rank < *known);
            let (true, Value::Object(object)) = (is_better, value) else {
                continue;
            };
            match look_up(object, rest) {
                Some(Value::Null) => self.is_null |= is_text(path.slot),
                Some(value) => {
                    let replaced = best.replace((path.rank, value));
                    replaced.map_or(Ok(()), |(_, value)| value.check())?;
                }
                None => {}
            }
        }
        Ok(())
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
                Some((_, Value::Null | Value::Object(_) | Value::Other)) | None => None,
            };
        }
        Ok(row)
    }
}
