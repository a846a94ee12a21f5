//! Opens an input: tells its format and hands out its records in portions.
//!
//! Content decides before names: a WARC is a WARC whatever it is called, packed or not. Names
//! decide only between formats that content cannot tell apart (a Markdown file may start with `{`),
//! and which files of a folder count.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use crate::ahead::Ahead;
use crate::config::Config;
use crate::csv::{RowBlock, RowCutter};
use arose::digest::Digest;

use crate::document::{Document, Item, Position, Reason};
use crate::input::{Input, Origin, unreadable};
use crate::json;
use crate::lines::{Cut, LineBlock, LineCutter};
use crate::member::Packing;
use crate::parquet::{OnDisk, RowGroup, Table};
use crate::payload::{self, Kind};
use crate::raw::{CHUNK, Handle};
use crate::row::Place;
use crate::stream::Stream;
use crate::warc::cut::{Blocks, Record, RecordCutter};
use crate::warc::dialect::Dialect;

/// What the content of an input is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// WARC, WET, WAT.
    Warc,
    /// ARC.
    Arc,
    /// A JSON object per line.
    JsonLines,
    /// Parquet.
    Parquet,
    /// Rows of cells between these delimiters, a header row first.
    Csv { delimiter: u8 },
    /// One document: a page of HTML.
    Html,
    /// One document: XML, a feed perhaps.
    Xml,
    /// One document: text.
    Text,
}

/// An input being read.
pub(crate) enum Open {
    Lines(LineCutter),
    Rows(Box<RowCutter>),
    Records(RecordCutter),
    Table(Table),
    /// A file that is one document.
    Whole(Box<Whole>),
    /// What is left to say.
    Skipped(Option<Item>),
}

/// Part of an input, for any thread.
pub(crate) enum Task {
    Lines(LineBlock),
    Rows(RowBlock),
    Records(Vec<Result<Record, Item>>),
    Group(Box<RowGroup>),
    Whole(Box<Whole>),
    /// Small files to open.
    Files(Vec<Input>),
    Item(Item),
}

pub(crate) struct Whole {
    source: Arc<Path>,
    stream: Stream,
    kind: Kind,
}

impl Open {
    /// Opens an input; what cannot be opened gives its notice.
    pub(crate) fn new(input: Input, config: &Config) -> Self {
        let (source, origin, handle) = match input {
            Input::Skipped(item) => return Open::Skipped(Some(item)),
            Input::Pipe(name, reader) => (name, Origin::Named, Handle::Pipe(reader)),
            Input::File(path, origin) => match open_file(&path) {
                Ok(file) => (path, origin, Handle::File(file)),
                Err(error) => return Open::Skipped(Some(unreadable(&path, &error))),
            },
        };
        let is_file = matches!(handle, Handle::File(_));
        let mut stream = Stream::new(handle, &config.limits);
        let Some(format) = sniff(stream.fill(CHUNK), &source, origin, config) else {
            let place = Place::new(&source, Position::default());
            return Open::Skipped(Some(place.skipped(Reason::UnknownFormat, "")));
        };
        match format {
            Format::Parquet => Self::table(&source, stream, is_file, config),
            _ => Self::with_format(&source, stream, format, config),
        }
    }

    fn with_format(source: &Arc<Path>, stream: Stream, format: Format, config: &Config) -> Self {
        let records = |stream, dialect| {
            let cutter = RecordCutter::new(source, stream, dialect, config, Blocks::Documents);
            Open::Records(cutter)
        };
        let whole = |stream, kind| {
            let source = Arc::clone(source);
            Open::Whole(Box::new(Whole {
                source,
                stream,
                kind,
            }))
        };
        match format {
            Format::Warc => records(stream, Dialect::Warc),
            Format::Arc => records(stream, Dialect::Arc),
            Format::JsonLines => Open::Lines(LineCutter::new(source, stream, config)),
            Format::Csv { delimiter } => {
                Open::Rows(Box::new(RowCutter::new(source, stream, delimiter, config)))
            }
            Format::Html => whole(stream, Kind::Html),
            Format::Xml => whole(stream, Kind::Xml),
            Format::Text | Format::Parquet => whole(stream, Kind::Text),
        }
    }

    /// Parquet is read from its end, so what is not a plain file is copied to one.
    fn table(source: &Arc<Path>, mut stream: Stream, is_file: bool, config: &Config) -> Self {
        let on_disk = match stream.packing() {
            Packing::Plain if is_file => OnDisk::Original(source.to_path_buf()),
            _ => match spool(&mut stream) {
                Ok(copy) => OnDisk::Copy(copy),
                Err(error) => return Open::Skipped(Some(unreadable(source, &error))),
            },
        };
        match Table::open(source, on_disk, config) {
            Ok(table) => Open::Table(table),
            Err(item) => Open::Skipped(Some(item)),
        }
    }

    /// Lets other threads decode ahead of this one, where the input is a packed file of records.
    pub(crate) fn read_ahead(&mut self, config: &Config) -> Option<Arc<Ahead>> {
        let (source, stream) = match self {
            Open::Lines(cutter) => cutter.stream(),
            Open::Rows(cutter) => cutter.stream(),
            Open::Records(cutter) => cutter.stream(),
            Open::Table(_) | Open::Whole(_) | Open::Skipped(_) => return None,
        };
        let is_useful = stream.packing() != Packing::Plain && config.threads.get() > 1;
        if !is_useful || !stream.can_seek() {
            return None;
        }
        let file = open_file(source).ok()?;
        Some(stream.read_ahead(file, config))
    }

    /// The next part; none at the end.
    pub(crate) fn next(&mut self) -> Option<Task> {
        match self {
            Open::Lines(cutter) => cutter.next().map(|cut| cut.into_task(Task::Lines)),
            Open::Rows(cutter) => cutter.next().map(|cut| cut.into_task(Task::Rows)),
            Open::Records(cutter) => cutter.next().map(|cut| cut.into_task(Task::Records)),
            Open::Table(table) => table.next().map(|group| Task::Group(Box::new(group))),
            Open::Skipped(item) => item.take().map(Task::Item),
            Open::Whole(_) => match std::mem::replace(self, Open::Skipped(None)) {
                Open::Whole(whole) => Some(Task::Whole(whole)),
                _ => None,
            },
        }
    }
}

impl<B> Cut<B> {
    fn into_task(self, task: impl FnOnce(B) -> Task) -> Task {
        match self {
            Cut::Block(block) => task(block),
            Cut::Skipped(item) => Task::Item(item),
        }
    }
}

impl Task {
    /// Does the work.
    pub(crate) fn run(self, config: &Config, sink: &mut dyn FnMut(Item)) {
        match self {
            Task::Lines(block) => block.read(config, sink),
            Task::Rows(block) => block.read(config, sink),
            Task::Records(records) => read_records(&records, config, sink),
            Task::Group(group) => group.read(config, sink),
            Task::Whole(whole) => sink(whole.read(config)),
            Task::Item(item) => sink(item),
            Task::Files(inputs) => {
                for input in inputs {
                    let mut open = Open::new(input, config);
                    while let Some(task) = open.next() {
                        task.run(config, sink);
                    }
                }
            }
        }
    }
}

fn read_records(records: &[Result<Record, Item>], config: &Config, sink: &mut dyn FnMut(Item)) {
    for record in records {
        match record {
            Err(item) => sink(item.clone()),
            Ok(record) => {
                let item = record.read(config);
                // A document carries the warning itself; of two kinds of damage the first is the
                // cause.
                if let (Item::Skipped(skipped), Some(warning)) = (&item, &record.warning) {
                    sink(Item::Skipped(warning.clone()));
                    if skipped.reason.is_damage() {
                        continue;
                    }
                }
                sink(item);
            }
        }
    }
}

impl Whole {
    pub(crate) fn read(mut self, config: &Config) -> Item {
        let place = Place::new(&self.source, Position::default());
        let limit = config.limits.record_bytes;
        if self.stream.fill(limit + 1).len() > limit {
            return place.skipped(
                Reason::TooLarge,
                format!("a file of more than {limit} bytes"),
            );
        }
        let body = self.stream.window().to_vec();
        if let Some(at_break) = self.stream.resume() {
            let place = Place::new(&self.source, at_break.position);
            return place.skipped(at_break.reason, at_break.detail);
        }
        let mut page = payload::read_as(&body, self.kind, None, None, &config.html);
        let notes = page.notes().into_iter();
        let warnings = notes.map(|(reason, detail)| place.warning(reason, detail));
        let warnings = warnings.collect();
        Item::Document(Box::new(Document {
            title: page.title,
            language: page.language,
            images: page.images,
            page: page.metadata,
            warnings,
            ..place.document(page.text, Digest::of_bytes(&body))
        }))
    }
}

/// Opens a regular file. Others are refused: a FIFO would block, a device would not end.
fn open_file(path: &Path) -> io::Result<File> {
    match std::fs::metadata(path)?.is_file() {
        true => File::open(path),
        false => Err(io::Error::other("not a regular file")),
    }
}

/// Copies a stream into a file that disappears when it is no longer needed.
fn spool(stream: &mut Stream) -> io::Result<tempfile::TempPath> {
    let mut file = tempfile::NamedTempFile::new()?;
    loop {
        let window = stream.fill(CHUNK);
        if window.is_empty() {
            break;
        }
        file.write_all(window)?;
        let n = window.len();
        stream.consume(n);
    }
    file.flush()?;
    match stream.resume() {
        Some(at_break) => Err(io::Error::other(at_break.detail)),
        None => Ok(file.into_temp_path()),
    }
}

/// Whether a file is one document by its name, so that many of them can be handed out at once.
pub(crate) fn is_document_name(path: &Path) -> bool {
    matches!(
        inner_extension(path).as_str(),
        "html" | "htm" | "xhtml" | "txt" | "text" | "md" | "markdown"
    )
}

/// The extension before the one of a packing, in lower case.
fn inner_extension(path: &Path) -> String {
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .to_ascii_lowercase();
    let name = [".gz", ".zst", ".gzip", ".zstd"]
        .iter()
        .find_map(|packing| name.strip_suffix(packing))
        .unwrap_or(&name);
    name.rsplit_once('.')
        .map_or(String::new(), |(_, extension)| extension.to_owned())
}

/// Tells the format from the first bytes and the name; none if it cannot be read.
pub(crate) fn sniff(head: &[u8], path: &Path, origin: Origin, config: &Config) -> Option<Format> {
    if head.starts_with(b"PAR1") {
        return Some(Format::Parquet);
    }
    let unmarked = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    if let Some(dialect) = Dialect::sniff(unmarked) {
        return Some(match dialect {
            Dialect::Warc => Format::Warc,
            Dialect::Arc => Format::Arc,
        });
    }
    let line = unmarked.split(|&b| b == b'\n').next().unwrap_or_default();
    let is_object = json::scan(line, |_, value| value.check()).is_ok();
    match inner_extension(path).as_str() {
        "jsonl" | "ndjson" => Some(Format::JsonLines),
        "json" if is_object => Some(Format::JsonLines),
        "csv" => Some(delimited(line).unwrap_or(Format::Csv { delimiter: b',' })),
        "tsv" | "tab" => Some(Format::Csv { delimiter: b'\t' }),
        "html" | "htm" | "xhtml" => Some(Format::Html),
        "xml" | "rss" | "atom" => Some(Format::Xml),
        "txt" | "text" | "md" | "markdown" | "json" => Some(Format::Text),
        // A Parquet or WARC file that does not start as one is damaged, not text.
        "parquet" => Some(Format::Parquet),
        "warc" | "wet" | "wat" => Some(Format::Warc),
        "arc" => Some(Format::Arc),
        _ if is_object => Some(Format::JsonLines),
        _ if origin == Origin::Folder => None,
        _ => anonymous(head, line, config),
    }
}

/// The format of an input that no name tells anything about.
fn anonymous(head: &[u8], line: &[u8], config: &Config) -> Option<Format> {
    if let Some(Format::Csv { delimiter }) = delimited(line) {
        let names = line.split(|&b| b == delimiter);
        let names: Vec<String> = names
            .map(|name| {
                String::from_utf8_lossy(name)
                    .trim()
                    .trim_matches('"')
                    .to_owned()
            })
            .collect();
        let columns = config.fields.choose(&names);
        if columns[0].or(columns[1]).is_some() {
            return Some(Format::Csv { delimiter });
        }
    }
    Some(match payload::sniff(head, false)? {
        Kind::Html => Format::Html,
        Kind::Xml => Format::Xml,
        Kind::Text => Format::Text,
    })
}

/// The delimiter that occurs most in a header line.
fn delimited(line: &[u8]) -> Option<Format> {
    let count = |delimiter: u8| memchr::memchr_iter(delimiter, line).count();
    let delimiter = *b"\t;,".iter().max_by_key(|&&delimiter| count(delimiter))?;
    (count(delimiter) > 0).then_some(Format::Csv { delimiter })
}
