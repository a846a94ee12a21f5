//! Reads CSV and TSV with a header row.
//!
//! A line end inside quotes does not end a row. Rows are therefore split in order, by the state
//! machine of `csv-core`, while blocks are cut. Workers make the documents. A quote that is never
//! closed would swallow the file. Therefore a row beyond the size limit is abandoned, and reading
//! continues after its first line. A file with many unclosed quotes would be scanned again for each
//! of them. Once more bytes have been scanned in vain than [`in_vain`] allows, a row ends with its
//! line, up to the point that the abandoned rows had reached. The work is thus linear in the size
//! of the file.
//!
//! A file that ends inside a quoted cell is truncated or lacks a quote. The two cannot be told
//! apart, so the file counts as truncated, and the lines after that quote are read as rows.
//!
//! TSV has no quotes: a quote is an ordinary character. If the header is in quotes, the file does
//! use quotes, and all of it is read like CSV. A quoted cell under an unquoted header is kept
//! unchanged, with a warning.

mod cells;

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};

use cells::Quotes;
pub(crate) use cells::{Cells, Style};

use crate::config::{Config, N_SLOTS, Slot};
use crate::document::{Item, Position, Reason};
use crate::format::Cut;
use crate::format::row::{RecordPlace, Row, no_text};
use crate::losses::Loss;
use crate::pipeline::bookmark::CutterState;
use crate::source::raw::CHUNK;
use crate::source::stream::Stream;

/// Rows for a worker.
pub(crate) struct RowBlock {
    source: Arc<Path>,
    columns: [Option<usize>; N_SLOTS],
    n_columns: usize,
    quotes: Quotes,
    rows: Vec<Cells>,
}

/// Maximum number of cells per row; a row with more is bad.
const MAX_CELLS: usize = 1 << 16;

/// Approximate memory of a row in addition to its bytes.
const ROW_BYTES: usize = 192;

/// Buffers larger than this are handed on instead of being copied.
const LARGE: usize = 64 << 10;

/// Number of bytes that may have been scanned in vain when `n` bytes have been consumed.
fn in_vain(n: u64) -> u64 {
    (4 << 20) + 4 * n
}

/// Splits a stream into rows.
pub(crate) struct RowCutter {
    source: Arc<Path>,
    stream: Stream,
    reader: Reader,
    quotes: Quotes,
    split: Split,
    /// Bytes of abandoned rows, and the index up to which such rows reached.
    given_up: u64,
    given_up_to: u64,
    record_bytes: usize,
    block_bytes: usize,
    columns: [Option<usize>; N_SLOTS],
    n_columns: usize,
    header: Vec<u8>,
    pending: Option<Item>,
    /// A warning to deliver with the next row.
    note: Option<&'static str>,
}

impl RowCutter {
    /// Reads the header row. If no column contains text, the only output is a warning with the
    /// columns.
    pub(crate) fn new(source: &Arc<Path>, stream: Stream, delimiter: u8, config: &Config) -> Self {
        let quotes = match delimiter {
            b'\t' => Quotes::Plain,
            _ => Quotes::Enclose,
        };
        let mut cutter = Self {
            source: Arc::clone(source),
            stream,
            reader: reader(delimiter, quotes),
            quotes,
            split: Split::default(),
            given_up: 0,
            given_up_to: 0,
            record_bytes: config.limits.record_bytes,
            block_bytes: config.block_bytes.get(),
            columns: [None; N_SLOTS],
            n_columns: 0,
            header: Vec::new(),
            pending: None,
            note: None,
        };
        let names = match cutter.row() {
            Some(Ok(header)) if header.n_cells > header.ends.len() => {
                let place = RecordPlace::new(source, header.position);
                let detail = format!("a header of {} cells; at most {MAX_CELLS}", header.n_cells);
                cutter.pending = Some(place.skipped(Reason::BadRow, detail));
                Vec::new()
            }
            Some(Ok(header)) => {
                let names = header.names();
                cutter.header = header.raw;
                cutter.unquoted(names, delimiter)
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

    /// The names of the columns. If they are in quotes, the rest of the file is read with quotes.
    fn unquoted(&mut self, names: Vec<String>, delimiter: u8) -> Vec<String> {
        if self.quotes == Quotes::Enclose || !names.iter().any(|name| is_quoted(name.as_bytes())) {
            return names;
        }
        self.quotes = Quotes::Enclose;
        self.reader = reader(delimiter, self.quotes);
        self.note = Some("the header of a TSV file is in quotes; all of it is read like CSV");
        let inner = |name: &String| match is_quoted(name.as_bytes()) {
            true => name[1..name.len() - 1].replace("\"\"", "\""),
            false => name.clone(),
        };
        names.iter().map(inner).collect()
    }

    /// The column with the texts; none if they are extracted from HTML.
    pub(crate) fn text_column(&self) -> Option<usize> {
        self.columns[Slot::Text as usize]
    }

    /// How cells are written.
    pub(crate) fn style(&self, delimiter: u8) -> Style {
        Style {
            delimiter,
            quotes: self.quotes,
        }
    }

    /// The header row as written in the file.
    pub(crate) fn header(&self) -> &[u8] {
        &self.header
    }

    /// The state to resume from; none while a warning is still to be delivered.
    pub(crate) fn state(&self) -> Option<CutterState> {
        let is_settled = self.pending.is_none() && self.note.is_none() && self.n_columns > 0;
        is_settled.then_some(CutterState::Rows {
            given_up: self.given_up,
            given_up_to: self.given_up_to,
        })
    }

    pub(crate) fn set_state(&mut self, state: &CutterState) {
        if let CutterState::Rows {
            given_up,
            given_up_to,
        } = *state
        {
            (self.given_up, self.given_up_to) = (given_up, given_up_to);
            self.note = None;
        }
    }

    /// The file and the rest of its stream.
    pub(crate) fn stream(&mut self) -> (&Path, &mut Stream) {
        (&self.source, &mut self.stream)
    }

    /// The next rows or warning; none at the end.
    pub(crate) fn next(&mut self) -> Option<Cut<RowBlock>> {
        let mut rows = Vec::new();
        let mut n_bytes = 0;
        while self.pending.is_none() && self.n_columns > 0 && n_bytes < self.block_bytes {
            match self.row() {
                Some(Ok(row)) => {
                    n_bytes += ROW_BYTES + row.raw.len();
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

    /// The item at `position`; none if no row starts there.
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
            quotes: self.quotes,
            rows,
        }
    }

    /// The next row, or the warning about a bad one; blank lines are skipped.
    pub(crate) fn row(&mut self) -> Option<Result<Cells, Item>> {
        self.skip_blank_lines();
        self.reader.reset();
        self.split.start();
        if self.is_in_doubt()
            && let Some(n) = self.line_end()
        {
            let line = &self.stream.window()[..n];
            return Some(match self.split.feed(&mut self.reader, line, false) {
                true => Ok(self.take()),
                false => {
                    let detail = "unclosed quote in this line, as in many before it";
                    Err(self.drop_line(Reason::BadRow, detail.to_owned()))
                }
            });
        }
        loop {
            let length = self.stream.fill(self.split.used + 1).len();
            let is_flowing = self.stream.is_flowing();
            let window = self.stream.window();
            if self.split.feed(&mut self.reader, window, !is_flowing) {
                return Some(self.finish());
            }
            if length > self.record_bytes {
                return Some(Err(self.give_up()));
            }
            if !is_flowing && length == self.split.used {
                return self.at_end();
            }
        }
    }

    /// Whether too many bytes were scanned in vain to look beyond the end of a line here.
    fn is_in_doubt(&self) -> bool {
        let here = self.stream.index();
        here < self.given_up_to && self.given_up > in_vain(here)
    }

    /// The length of the current line with its line end; none if it has none within the size limit.
    fn line_end(&mut self) -> Option<usize> {
        let mut from = 0;
        loop {
            let window = self.stream.fill(from + 1);
            if let Some(end) = memchr::memchr(b'\n', window.get(from..)?) {
                return Some(from + end + 1);
            }
            if window.len() == from || from > self.record_bytes {
                return None;
            }
            from = window.len();
        }
    }

    fn finish(&mut self) -> Result<Cells, Item> {
        if self.split.used > self.record_bytes {
            return Err(self.give_up());
        }
        if self.has_odd_quotes() {
            self.note_in_vain();
            let detail = "unclosed quote".to_owned();
            return Err(self.drop_line(Reason::BadRow, detail));
        }
        Ok(self.take())
    }

    /// Hands out the row that was split.
    fn take(&mut self) -> Cells {
        let used = self.split.used;
        let position = self.stream.position(0);
        let raw = self.stream.window()[..used].to_vec();
        self.stream.consume(used);
        let (text, ends, n_cells) = self.split.take();
        Cells {
            position,
            raw,
            text,
            ends,
            n_cells,
            note: self.note.take(),
        }
    }

    /// Handles the end of the stream. A last row without a line end counts; a row interrupted by a
    /// break does not.
    fn at_end(&mut self) -> Option<Result<Cells, Item>> {
        if let Some(at_break) = self.stream.resume() {
            let place = self.place(at_break.position);
            return Some(Err(place.broken(at_break)));
        }
        if self.split.is_open {
            self.note_in_vain();
            let detail = "the input ends inside a quoted cell".to_owned();
            return Some(Err(self.drop_line(Reason::Truncated, detail)));
        }
        let text_column = self.columns[0].max(self.columns[1]);
        if self.split.is_done && text_column.is_some_and(|column| column >= self.split.n_cells) {
            let detail = "the input ends inside a row, before its text".to_owned();
            return Some(Err(self.drop_line(Reason::Truncated, detail)));
        }
        (self.split.used > 0 && self.split.is_done).then(|| self.finish())
    }

    /// Whether a row takes all lines up to the end of the input and has an odd number of quotes.
    /// Then a quote is missing or extra, and the row ended by chance.
    fn has_odd_quotes(&mut self) -> bool {
        let n = self.split.used;
        if self.stream.fill(n + 1).len() > n {
            return false;
        }
        let row = &self.stream.window()[..n];
        let n_lines = memchr::memchr_iter(b'\n', row.trim_ascii_end()).count();
        n_lines > 0 && memchr::memchr_iter(b'"', row).count() % 2 == 1
    }

    fn give_up(&mut self) -> Item {
        self.note_in_vain();
        let detail = format!("a row of more than {} bytes", self.record_bytes);
        self.drop_line(Reason::TooLarge, detail)
    }

    fn note_in_vain(&mut self) {
        let n = self.split.used as u64;
        self.given_up += n;
        self.given_up_to = self.given_up_to.max(self.stream.index() + n);
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

    fn place(&self, position: Position) -> RecordPlace {
        RecordPlace::new(&self.source, position)
    }
}

fn reader(delimiter: u8, quotes: Quotes) -> Reader {
    ReaderBuilder::new()
        .delimiter(delimiter)
        .quoting(quotes == Quotes::Enclose)
        .build()
}

/// Whether a cell looks like a quoted one: the quotes inside it come in pairs.
fn is_quoted(cell: &[u8]) -> bool {
    let Some(inner) = cell
        .strip_prefix(b"\"")
        .and_then(|rest| rest.strip_suffix(b"\""))
    else {
        return false;
    };
    let mut rest = inner;
    while let Some(at) = memchr::memchr(b'"', rest) {
        if rest.get(at + 1) != Some(&b'"') {
            return false;
        }
        rest = &rest[at + 2..];
    }
    true
}

/// A row being split; its buffers are reused for the next row.
#[derive(Default)]
struct Split {
    used: usize,
    text: Vec<u8>,
    n_text: usize,
    ends: Vec<usize>,
    n_ends: usize,
    n_cells: usize,
    is_done: bool,
    /// Whether the input ends inside a quoted cell of the row.
    is_open: bool,
}

impl Split {
    fn start(&mut self) {
        if self.text.is_empty() {
            self.text.resize(1024, 0);
        }
        if self.ends.is_empty() {
            self.ends.resize(16, 0);
        }
        (self.used, self.n_text, self.n_ends, self.n_cells) = (0, 0, 0, 0);
        (self.is_done, self.is_open) = (false, false);
    }

    /// The text of the row, the ends of its cells and their number.
    fn take(&mut self) -> (Vec<u8>, Vec<usize>, usize) {
        let text = match self.n_text > LARGE {
            true => {
                self.text.truncate(self.n_text);
                std::mem::take(&mut self.text)
            }
            false => self.text[..self.n_text].to_vec(),
        };
        (text, self.ends[..self.n_ends].to_vec(), self.n_cells)
    }

    /// Continues splitting with the rest of the window. Returns whether the row is complete.
    fn feed(&mut self, reader: &mut Reader, window: &[u8], is_last: bool) -> bool {
        loop {
            let rest = window.get(self.used..).unwrap_or_default();
            if rest.is_empty() && !is_last {
                return false;
            }
            // A line end closes the last row, unless it is in quotes.
            let is_end = rest.is_empty() && self.used > 0;
            let input = match is_end {
                true => b"\n",
                false => rest,
            };
            let (result, n_in, n_out, n_ends) = reader.read_record(
                input,
                &mut self.text[self.n_text..],
                &mut self.ends[self.n_ends..],
            );
            if !is_end {
                self.used += n_in;
            }
            self.n_text += n_out;
            self.n_ends += n_ends;
            self.n_cells += n_ends;
            match result {
                ReadRecordResult::OutputFull => self.text.resize(self.text.len() * 2, 0),
                ReadRecordResult::OutputEndsFull if self.ends.len() < MAX_CELLS => {
                    self.ends.resize(self.ends.len() * 2, 0);
                }
                // The row is bad, so the ends of its cells no longer matter.
                ReadRecordResult::OutputEndsFull => self.n_ends = 0,
                ReadRecordResult::Record => {
                    self.is_done = true;
                    // At the end of a stream, a row without a line end may be truncated.
                    let is_closed = matches!(window[..self.used], [.., b'\r' | b'\n']);
                    return !is_last || is_closed;
                }
                ReadRecordResult::InputEmpty if !is_last => return false,
                ReadRecordResult::InputEmpty if is_end => {
                    self.is_open = true;
                    return false;
                }
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
            let place = RecordPlace::new(&self.source, cells.position);
            if cells.n_cells > self.n_columns {
                let (found, expected) = (cells.n_cells, self.n_columns);
                let detail = format!("{found} cells under {expected} columns");
                sink(place.skipped(Reason::BadRow, detail));
                continue;
            }
            let mut item = self.row(cells).into_item(place.clone(), config);
            let notes = cells.note.map(str::to_owned).into_iter();
            let notes = notes.chain(self.contradiction(cells));
            match &mut item {
                Item::Document(document) => {
                    let warnings = notes.map(|detail| place.warning(Reason::BadRow, detail));
                    document.warnings.extend(warnings);
                }
                Item::Skipped(warning) => {
                    for note in notes {
                        // A wrongly split row has no text, but its text is not null.
                        if warning.reason == Reason::NullText {
                            (warning.reason, warning.loss) = (Reason::BadRow, Loss::Record);
                            warning.detail = note;
                        } else {
                            warning.detail = format!("{}; {note}", warning.detail);
                        }
                    }
                }
            }
            sink(item);
        }
    }

    /// What looks like quoting in a row of TSV, which has no quotes.
    fn contradiction(&self, cells: &Cells) -> Option<String> {
        if self.quotes == Quotes::Enclose || memchr::memchr(b'"', &cells.text).is_none() {
            return None;
        }
        let n_cells = cells.ends.len();
        let quoted = (0..n_cells).find(|&column| cells.get(column).is_some_and(is_quoted));
        if let Some(column) = quoted {
            return Some(format!(
                "cell {} is in quotes, which TSV does not have; they are kept as text",
                column + 1
            ));
        }
        let last = cells.get(n_cells.checked_sub(1)?)?;
        (n_cells < self.n_columns && last.starts_with(b"\"")).then(|| {
            format!(
                "{n_cells} cells under {} columns, and the last opens a quote; TSV has no quotes, so \
                 the row ends with its line",
                self.n_columns
            )
        })
    }

    fn row<'a>(&self, cells: &'a Cells) -> Row<'a> {
        // There is a text column, so a row too short to reach it has no text.
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
