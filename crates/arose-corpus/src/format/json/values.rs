//! Reads JSON that is not JSON Lines: an array or a sequence of objects, in any layout.
//!
//! *Question.* Where does each object start and end, in one pass and in bounded memory? How much of
//! the input can be read after a flawed object?
//!
//! *Idea.* Only whitespace, commas and the brackets of an array are expected between objects. An
//! object is measured with the same grammar that later reads it. A flawed or oversized object is
//! skipped up to the first of two points: the point where its brackets close, or a line after the
//! flaw that starts like the line of the object, with the same indentation and `{`. In
//! machine-written JSON, a missing bracket or quote therefore loses one object. A flaw between
//! intact brackets loses one object in any layout.
//!
//! *Cost.* An object is measured once, or twice if it reaches beyond the bytes read so far. A
//! flawed object is scanned once more to skip it. Skipping never goes back further than the line
//! before the flaw, so no byte is measured for more than three objects. Memory use is one block
//! plus the largest object allowed.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use memchr::{memchr, memrchr};

use crate::config::Config;
use crate::document::{Item, Position, Reason};
use crate::format::Cut;
use crate::format::json::lines::{LineBlock, Wanted, read_object};
use crate::format::json::scan::{Extent, Flaw, extent};
use crate::format::row::RecordPlace;
use crate::pipeline::bookmark::CutterState;
use crate::source::raw::CHUNK;
use crate::source::stream::Stream;

/// Maximum length of the indentation that is stored.
const MAX_INDENT: usize = 64;

/// Complete objects and the bytes between them.
pub(crate) struct ObjectBlock {
    bytes: LineBlock,
    objects: Vec<Range<usize>>,
}

/// Cuts a stream into blocks of complete objects.
pub(crate) struct ValueCutter {
    source: Arc<Path>,
    stream: Stream,
    object_bytes: usize,
    block_bytes: usize,
    is_in_array: bool,
    /// The whitespace before the next byte on its line; none if there is anything else before it.
    indent: Option<Vec<u8>>,
}

/// What starts at a position of the window.
enum Next {
    /// A complete object or other value.
    Value(Range<usize>),
    /// Something to skip, starting here.
    Bad(usize, Bad),
    /// Nothing more; the input ends here.
    End(usize),
}

/// The reason for skipping.
enum Bad {
    /// Flawed at this byte of the window.
    Flawed(usize, Flaw),
    TooLarge,
    /// The stream breaks or ends inside it.
    CutOff,
    /// Not a value at all.
    Junk,
}

impl ValueCutter {
    pub(crate) fn new(source: &Arc<Path>, stream: Stream, config: &Config) -> Self {
        Self {
            source: Arc::clone(source),
            stream,
            object_bytes: config.limits.line_bytes,
            block_bytes: config.block_bytes.get(),
            is_in_array: false,
            indent: Some(Vec::new()),
        }
    }

    /// The state to resume from.
    pub(crate) fn state(&self) -> CutterState {
        CutterState::Values {
            is_in_array: self.is_in_array,
            indent: self.indent.clone(),
        }
    }

    pub(crate) fn set_state(&mut self, state: &CutterState) {
        if let CutterState::Values {
            is_in_array,
            indent,
        } = state
        {
            self.is_in_array = *is_in_array;
            self.indent = indent.clone();
        }
    }

    /// The file and the rest of its stream.
    pub(crate) fn stream(&mut self) -> (&Path, &mut Stream) {
        (&self.source, &mut self.stream)
    }

    /// The next block or warning; none at the end.
    pub(crate) fn next(&mut self) -> Option<Cut<ObjectBlock>> {
        let mut objects: Vec<Range<usize>> = Vec::new();
        let mut at = 0;
        loop {
            let is_full = !objects.is_empty() && at >= self.block_bytes;
            let next = match is_full {
                true => Next::End(at),
                false => self.find(at, objects.is_empty()),
            };
            match next {
                Next::Value(value) if self.stream.window()[value.start] == b'{' => {
                    at = value.end;
                    objects.push(value);
                    self.indent = None;
                }
                Next::Value(value) if objects.is_empty() => return Some(self.drop_value(value)),
                Next::Bad(start, bad) if objects.is_empty() => {
                    self.stream.consume(start);
                    return Some(Cut::Skipped(self.step_over(bad)));
                }
                Next::End(end) if objects.is_empty() => {
                    self.stream.consume(end);
                    return self.finish().map(Cut::Skipped);
                }
                // The next block starts with the flaw.
                Next::Value(Range { start: end, .. }) | Next::Bad(end, _) | Next::End(end) => {
                    let bytes = LineBlock::take(&self.source, &mut self.stream, end);
                    return Some(Cut::Block(ObjectBlock { bytes, objects }));
                }
            }
        }
    }

    /// The item at `position`; none if no object starts there.
    pub(crate) fn item_at(&mut self, position: Position, config: &Config) -> Option<Item> {
        if !self.stream.go_to(position) || self.stream.window().first() != Some(&b'{') {
            return None;
        }
        let Next::Value(value) = self.measure(0) else {
            return None;
        };
        let object = &self.stream.window()[value.clone()];
        let place = RecordPlace::new(&self.source, position);
        let item = read_object(object, place, &Wanted::new(&config.fields), config);
        self.stream.consume(value.end);
        Some(item)
    }

    /// The next value at or after byte `at` of the window. If earlier bytes are no longer needed,
    /// the bytes between values are not kept.
    fn find(&mut self, mut at: usize, is_free: bool) -> Next {
        loop {
            if is_free {
                self.stream.consume(at);
                at = 0;
            }
            let Some(&byte) = self.stream.fill(at + 1).get(at) else {
                return match self.stream.has_ended() {
                    true => Next::End(at),
                    false => Next::Bad(at, Bad::CutOff),
                };
            };
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' => self.note_space(byte),
                b'[' if !self.is_in_array => (self.is_in_array, self.indent) = (true, None),
                b']' if self.is_in_array => (self.is_in_array, self.indent) = (false, None),
                b',' => self.indent = None,
                0xef if self.stream.fill(at + 3)[at..].starts_with(b"\xef\xbb\xbf") => at += 2,
                _ => return self.measure(at),
            }
            at += 1;
            if !is_free && at >= self.block_bytes {
                return Next::End(at);
            }
        }
    }

    fn note_space(&mut self, byte: u8) {
        match (&mut self.indent, byte) {
            (_, b'\n') => self.indent = Some(Vec::new()),
            (Some(indent), _) if indent.len() < MAX_INDENT => indent.push(byte),
            _ => self.indent = None,
        }
    }

    /// The extent of the value at byte `at` of the window.
    fn measure(&mut self, at: usize) -> Next {
        let mut want = at + 1;
        loop {
            let window = self.stream.fill(want);
            let (length, is_object) = (window.len(), window[at] == b'{');
            let found = extent(&window[at..]);
            let is_flowing = self.stream.is_flowing();
            match found {
                Extent::Whole(n) if n > self.object_bytes => return Next::Bad(at, Bad::TooLarge),
                // A number may continue.
                Extent::Whole(n) if is_object || at + n < length || !is_flowing => {
                    return Next::Value(at..at + n);
                }
                Extent::Flawed(_, _) if !starts_value(self.stream.window()[at]) => {
                    return Next::Bad(at, Bad::Junk);
                }
                Extent::Flawed(n, flaw) => return Next::Bad(at, Bad::Flawed(at + n, flaw)),
                Extent::Whole(_) | Extent::Open => {}
            }
            if length - at > self.object_bytes {
                return Next::Bad(at, Bad::TooLarge);
            }
            if !is_flowing {
                return Next::Bad(at, Bad::CutOff);
            }
            want = at + ((length - at).max(CHUNK) * 2).min(self.object_bytes.saturating_add(1));
        }
    }

    /// Drops a value that is not an object.
    fn drop_value(&mut self, value: Range<usize>) -> Cut<ObjectBlock> {
        let place = RecordPlace::new(&self.source, self.stream.position(value.start));
        self.stream.consume(value.end);
        self.indent = None;
        Cut::Skipped(place.skipped(Reason::NotAnObject, "does not start with `{`"))
    }

    /// Skips the bad value at the first byte of the window.
    fn step_over(&mut self, bad: Bad) -> Item {
        let place = RecordPlace::new(&self.source, self.stream.position(0));
        match bad {
            Bad::Flawed(at, flaw) => {
                self.skip_object(at);
                place.skipped(Reason::NotAnObject, flaw)
            }
            Bad::TooLarge => {
                self.skip_object(self.object_bytes);
                let limit = self.object_bytes;
                place.skipped(
                    Reason::TooLarge,
                    format!("an object of more than {limit} bytes"),
                )
            }
            Bad::Junk => {
                self.skip_junk();
                place.skipped(Reason::NotAnObject, "does not start with `{`")
            }
            Bad::CutOff => match self.stream.resume() {
                Some(at_break) => {
                    // The next bytes are somewhere inside a value.
                    self.skip_to_line();
                    let place = RecordPlace::new(&self.source, at_break.position);
                    place.broken(at_break)
                }
                None => {
                    self.stream.consume(self.stream.window().len());
                    self.is_in_array = false;
                    place.skipped(Reason::Truncated, "the input ends inside a JSON value")
                }
            },
        }
    }

    /// The warning if the input ends inside an array.
    fn finish(&mut self) -> Option<Item> {
        let place = RecordPlace::new(&self.source, self.stream.position(0));
        let is_open = std::mem::take(&mut self.is_in_array);
        is_open.then(|| place.skipped(Reason::Truncated, "the input ends inside a JSON array"))
    }

    /// Skips the object at the first byte of the window, which is flawed at byte `flaw_at`.
    fn skip_object(&mut self, flaw_at: usize) {
        let window = self.stream.window();
        let before = &window[..flaw_at.min(window.len())];
        // A missing quote is noticed at the next key, on the line after that of the next object.
        let line_end = memrchr(b'\n', before);
        let not_before = line_end.map_or(before.len(), |end| {
            memrchr(b'\n', &before[..end]).map_or(1, |end| end + 1)
        });
        let indent = self.indent.take().unwrap_or_default();
        let mut skip = Skip {
            indent: &indent,
            not_before: not_before.max(1) as u64,
            depth: 0,
            is_quoted: false,
            is_escaped: false,
            matched: None,
            index: 0,
        };
        loop {
            let window = self.stream.fill(CHUNK);
            let (length, end) = (window.len(), skip.feed(window));
            self.stream.consume(end.unwrap_or(length));
            if end.is_some() {
                break;
            }
            if length == 0 {
                // The warning about the object is enough.
                self.is_in_array &= !self.stream.has_ended();
                break;
            }
        }
        self.indent = skip.is_at_line().then_some(indent);
    }

    /// Skips to the next line that starts with `{` and is indented like the last object.
    fn skip_to_line(&mut self) {
        let indent = self.indent.take().unwrap_or_default();
        let start = [b"\n", &indent[..], b"{"].concat();
        // A member often starts with a record.
        if self.stream.fill(start.len()).starts_with(&start[1..]) {
            self.stream.consume(indent.len());
            self.indent = Some(indent);
            return;
        }
        loop {
            let window = self.stream.fill(CHUNK);
            let length = window.len();
            if let Some(found) = memchr::memmem::find(window, &start) {
                self.stream.consume(found + start.len() - 1);
                self.indent = Some(indent);
                return;
            }
            // The start may span the end of the bytes examined so far.
            let keep = (start.len() - 1).min(length);
            if self.stream.fill(length + 1).len() == length {
                self.stream.consume(length);
                return;
            }
            self.stream.consume(length - keep);
        }
    }

    /// Skips to the next byte that may start an object.
    fn skip_junk(&mut self) {
        self.stream.consume(1);
        loop {
            let window = self.stream.fill(CHUNK);
            let (length, found) = (window.len(), memchr(b'{', window));
            self.stream.consume(found.unwrap_or(length));
            if found.is_some() || length == 0 {
                self.indent = None;
                return;
            }
        }
    }
}

fn starts_value(byte: u8) -> bool {
    matches!(
        byte,
        b'{' | b'[' | b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n'
    )
}

/// Searches for the end of a bad object.
struct Skip<'a> {
    indent: &'a [u8],
    /// Lines before this byte do not end it.
    not_before: u64,
    depth: u64,
    is_quoted: bool,
    is_escaped: bool,
    /// How much of the indentation the line has matched so far; none if the line does not match.
    matched: Option<usize>,
    /// Bytes seen.
    index: u64,
}

impl Skip<'_> {
    /// Examines more bytes. Returns the index in them at which the object ends.
    fn feed(&mut self, bytes: &[u8]) -> Option<usize> {
        for (i, &byte) in bytes.iter().enumerate() {
            if self.is_next_object(byte) {
                return Some(i);
            }
            self.index += 1;
            if self.closes(byte) {
                self.matched = None;
                return Some(i + 1);
            }
        }
        None
    }

    /// Whether it ended at a line rather than at a bracket.
    fn is_at_line(&self) -> bool {
        self.matched.is_some()
    }

    fn is_next_object(&mut self, byte: u8) -> bool {
        self.matched = match (self.matched, byte) {
            (_, b'\n') => Some(0),
            (Some(n), b'{') if n == self.indent.len() && self.index >= self.not_before => {
                return true;
            }
            (Some(n), byte) if self.indent.get(n) == Some(&byte) => Some(n + 1),
            _ => None,
        };
        false
    }

    fn closes(&mut self, byte: u8) -> bool {
        if self.is_quoted {
            let is_escaped = std::mem::take(&mut self.is_escaped);
            match byte {
                _ if is_escaped => {}
                b'\\' => self.is_escaped = true,
                b'"' => self.is_quoted = false,
                _ => {}
            }
            return false;
        }
        match byte {
            b'"' => self.is_quoted = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            _ => return false,
        }
        self.depth == 0 && byte != b'"'
    }
}

impl ObjectBlock {
    /// Each object with its position.
    pub(crate) fn objects(&self) -> impl Iterator<Item = (Position, &[u8])> {
        self.objects.iter().filter_map(|object| {
            let position = self.bytes.place(object.start).position;
            Some((position, self.bytes.bytes.get(object.clone())?))
        })
    }

    /// Makes a document of every object.
    pub(crate) fn read(&self, config: &Config, sink: &mut dyn FnMut(Item)) {
        let wanted = Wanted::new(&config.fields);
        for (position, object) in self.objects() {
            let place = RecordPlace::new(&self.bytes.source, position);
            sink(read_object(object, place, &wanted, config));
        }
    }
}
