//! CSV and TSV with a header row.
//!
//! A line end inside quotes is not the end of a row, so rows are split in order, by the state
//! machine of `csv-core`, while blocks are cut; the documents are made by workers. A quote that
//! never closes would swallow the file: a row beyond the limit is given up, and reading goes on
//! after the first line of it.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};

use crate::config::{Config, N_SLOTS};
use crate::document::{Item, Position, Reason};
use crate::format::Cut;
use crate::format::row::{Place, Row, no_text};
use crate::source::raw::CHUNK;
use crate::source::stream::Stream;

/// One row as split, with the bytes it was split from.
pub(crate) struct Cells {
    pub(crate) position: Position,
    pub(crate) raw: Vec<u8>,
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl Cells {
    fn get(&self, column: usize) -> Option<&[u8]> {
        let start = match column {
            0 => 0,
            _ => *self.ends.get(column - 1)?,
        };
        self.text.get(start..*self.ends.get(column)?)
    }

    fn names(&self) -> Vec<String> {
        let cells = (0..self.ends.len()).filter_map(|column| self.get(column));
        cells
            .map(|cell| String::from_utf8_lossy(cell).trim().to_owned())
            .collect()
    }
}

/// Rows for a worker.
pub(crate) struct RowBlock {
    source: Arc<Path>,
    columns: [Option<usize>; N_SLOTS],
    n_columns: usize,
    rows: Vec<Cells>,
}

/// Splits a stream into rows.
pub(crate) struct RowCutter {
    source: Arc<Path>,
    stream: Stream,
    reader: Reader,
    record_bytes: usize,
    block_bytes: usize,
    columns: [Option<usize>; N_SLOTS],
    n_columns: usize,
    header: Vec<u8>,
    pending: Option<Item>,
}

impl RowCutter {
    /// Reads the header row; if no column holds text, the only thing that comes out is a notice
    /// with the columns.
    pub(crate) fn new(source: &Arc<Path>, stream: Stream, delimiter: u8, config: &Config) -> Self {
        let mut cutter = Self {
            source: Arc::clone(source),
            stream,
            reader: ReaderBuilder::new().delimiter(delimiter).build(),
            record_bytes: config.limits.record_bytes,
            block_bytes: config.block_bytes.get(),
            columns: [None; N_SLOTS],
            n_columns: 0,
            header: Vec::new(),
            pending: None,
        };
        let names = match cutter.row() {
            Some(Ok(header)) => {
                let names = header.names();
                cutter.header = header.raw;
                names
            }
            Some(Err(item)) => {
                cutter.pending = Some(item);
                Vec::new()
            }
            None => Vec::new(),
        };
        cutter.n_columns = names.len();
        cutter.columns = config.fields.choose(&names);
        if cutter.columns[0].or(cutter.columns[1]).is_none() {
            let item = no_text(&cutter.place(Position::default()), &config.fields, &names);
            cutter.pending.get_or_insert(item);
            cutter.n_columns = 0;
        }
        cutter
    }

    /// The header row as it stands in the file.
    pub(crate) fn header(&self) -> &[u8] {
        &self.header
    }

    /// The file and what is left of it.
    pub(crate) fn stream(&mut self) -> (&Path, &mut Stream) {
        (&self.source, &mut self.stream)
    }

    /// The next rows or notice; none at the end.
    pub(crate) fn next(&mut self) -> Option<Cut<RowBlock>> {
        let mut rows = Vec::new();
        let mut n_bytes = 0;
        while self.pending.is_none() && self.n_columns > 0 && n_bytes < self.block_bytes {
            match self.row() {
                Some(Ok(row)) => {
                    n_bytes += row.raw.len();
                    rows.push(row);
                }
                Some(Err(item)) => self.pending = Some(item),
                None => break,
            }
        }
        if rows.is_empty() {
            return self.pending.take().map(Cut::Skipped);
        }
        Some(Cut::Block(self.block(rows)))
    }

    /// What the row at `position` holds; none if no row starts there.
    pub(crate) fn item_at(&mut self, position: Position, config: &Config) -> Option<Item> {
        if self.n_columns == 0 || !self.stream.go_to_line(position) {
            return None;
        }
        let row = match self.row()? {
            Ok(row) => row,
            Err(item) => return Some(item),
        };
        let mut found = None;
        self.block(vec![row])
            .read(config, &mut |item| found = Some(item));
        found
    }

    fn block(&self, rows: Vec<Cells>) -> RowBlock {
        RowBlock {
            source: Arc::clone(&self.source),
            columns: self.columns,
            n_columns: self.n_columns,
            rows,
        }
    }

    /// The next row, or the notice of a bad one; blank lines are passed over.
    pub(crate) fn row(&mut self) -> Option<Result<Cells, Item>> {
        self.skip_blank_lines();
        self.reader.reset();
        let mut split = Split::new();
        loop {
            let length = self.stream.fill(split.used + 1).len();
            let is_flowing = self.stream.is_flowing();
            let window = self.stream.window();
            if split.feed(&mut self.reader, window, !is_flowing) {
                return Some(self.finish(split));
            }
            if length > self.record_bytes {
                return Some(Err(self.give_up()));
            }
            if !is_flowing && length == split.used {
                return self.at_end(split);
            }
        }
    }

    fn finish(&mut self, split: Split) -> Result<Cells, Item> {
        if split.used > self.record_bytes {
            return Err(self.give_up());
        }
        if self.is_open(split.used) {
            let detail = "a quoted cell does not end".to_owned();
            return Err(self.drop_line(Reason::BadRow, detail));
        }
        let position = self.stream.position(0);
        let raw = self.stream.window()[..split.used].to_vec();
        self.stream.consume(split.used);
        Ok(Cells {
            position,
            raw,
            text: split.text,
            ends: split.ends,
        })
    }

    /// The stream has no more bytes: a last row without a line end counts, one cut by a break does
    /// not.
    fn at_end(&mut self, split: Split) -> Option<Result<Cells, Item>> {
        if let Some(at_break) = self.stream.resume() {
            let place = self.place(at_break.position);
            return Some(Err(place.broken(at_break)));
        }
        (split.used > 0 && split.is_done).then(|| self.finish(split))
    }

    /// Whether a row has swallowed the rest of the input since its last quote is open.
    fn is_open(&mut self, n: usize) -> bool {
        if self.stream.fill(n + 1).len() > n {
            return false;
        }
        let row = &self.stream.window()[..n];
        let n_lines = memchr::memchr_iter(b'\n', row.trim_ascii_end()).count();
        n_lines > 0 && memchr::memchr_iter(b'"', row).count() % 2 == 1
    }

    fn give_up(&mut self) -> Item {
        let detail = format!("a row of more than {} bytes", self.record_bytes);
        self.drop_line(Reason::TooLarge, detail)
    }

    /// Drops the first line of a row that does not end.
    fn drop_line(&mut self, reason: Reason, detail: String) -> Item {
        let place = self.place(self.stream.position(0));
        loop {
            let window = self.stream.fill(CHUNK);
            let (length, end) = (window.len(), memchr::memchr(b'\n', window));
            self.stream.consume(end.map_or(length, |end| end + 1));
            if end.is_some() || length == 0 {
                return place.skipped(reason, detail);
            }
        }
    }

    fn skip_blank_lines(&mut self) {
        while let Some(b'\r' | b'\n') = self.stream.fill(1).first() {
            self.stream.consume(1);
        }
    }

    fn place(&self, position: Position) -> Place {
        Place::new(&self.source, position)
    }
}

/// A row being split.
struct Split {
    used: usize,
    text: Vec<u8>,
    n_text: usize,
    ends: Vec<usize>,
    n_ends: usize,
    is_done: bool,
}

impl Split {
    fn new() -> Self {
        Self {
            used: 0,
            text: vec![0; 1024],
            n_text: 0,
            ends: vec![0; 16],
            n_ends: 0,
            is_done: false,
        }
    }

    /// Splits on with the rest of the window; whether the row is complete.
    fn feed(&mut self, reader: &mut Reader, window: &[u8], is_last: bool) -> bool {
        loop {
            let input = window.get(self.used..).unwrap_or_default();
            if input.is_empty() && !is_last {
                return false;
            }
            let (result, n_in, n_out, n_ends) = reader.read_record(
                input,
                &mut self.text[self.n_text..],
                &mut self.ends[self.n_ends..],
            );
            self.used += n_in;
            self.n_text += n_out;
            self.n_ends += n_ends;
            match result {
                ReadRecordResult::OutputFull => self.text.resize(self.text.len() * 2, 0),
                ReadRecordResult::OutputEndsFull => self.ends.resize(self.ends.len() * 2, 0),
                ReadRecordResult::Record => {
                    self.text.truncate(self.n_text);
                    self.ends.truncate(self.n_ends);
                    self.is_done = true;
                    // At the end of a stream a row that no line end closes may be cut off.
                    let is_closed = matches!(window[..self.used], [.., b'\r' | b'\n']);
                    return !is_last || is_closed;
                }
                ReadRecordResult::InputEmpty if !is_last => return false,
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::End => return false,
            }
        }
    }
}

impl RowBlock {
    /// Makes a document of every row.
    pub(crate) fn read(&self, config: &Config, sink: &mut dyn FnMut(Item)) {
        for cells in &self.rows {
            let place = Place::new(&self.source, cells.position);
            if cells.ends.len() > self.n_columns {
                let (found, expected) = (cells.ends.len(), self.n_columns);
                let detail = format!("{found} cells under {expected} columns");
                sink(place.skipped(Reason::BadRow, detail));
                continue;
            }
            sink(self.row(cells).into_item(place, config));
        }
    }

    fn row<'a>(&self, cells: &'a Cells) -> Row<'a> {
        // There is a column for the text, so a row too short to reach it has none.
        let mut row = Row {
            is_null: true,
            ..Row::default()
        };
        for (value, column) in row.values.iter_mut().zip(self.columns) {
            let Some(cell) = column.and_then(|column| cells.get(column)) else {
                continue;
            };
            let text = String::from_utf8_lossy(cell);
            row.is_malformed |= matches!(text, Cow::Owned(_));
            *value = Some(text);
        }
        row
    }
}
