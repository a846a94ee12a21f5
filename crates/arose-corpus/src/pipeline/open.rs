//! Opens an input and returns its records in portions.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use arose::digest::Digest;

use crate::body::payload::{Body, Kind, Parser};
use crate::config::Config;
use crate::document::{Document, Item, Position, Reason};
use crate::format::Cut;
use crate::format::csv::{RowBlock, RowCutter};
use crate::format::json::lines::{LineBlock, LineCutter};
use crate::format::json::values::{ObjectBlock, ValueCutter};
use crate::format::parquet::{OnDisk, RowGroup, Table};
use crate::format::row::RecordPlace;
use crate::format::sniff::{Format, sniff};
use crate::format::warc::cut::{Blocks, Record, RecordCutter};
use crate::format::warc::dialect::Dialect;
use crate::source::ahead::Ahead;
use crate::source::input::{Input, Origin, extension, unreadable};
use crate::source::member::FileCompression;
use crate::source::raw::{CHUNK, Handle};
use crate::source::stream::Stream;

/// An input being read.
pub(crate) enum Open {
    Lines(LineCutter),
    Values(ValueCutter),
    Rows(Box<RowCutter>),
    Records(RecordCutter),
    Table(Table),
    /// A file that is one document.
    Whole(Box<Whole>),
    /// A last item to deliver.
    Skipped(Option<Item>),
}

/// Part of an input, for any thread.
pub(crate) enum Task {
    Lines(LineBlock),
    Objects(ObjectBlock),
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
    /// Opens an input. If that fails, its only item is a warning.
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
        let Some(format) = sniff(&mut stream, &source, origin, config) else {
            return Open::Skipped(Some(unknown(&source, origin)));
        };
        // An uncompressed file that fails at its first byte, whatever its format.
        if stream.packing() == FileCompression::Plain
            && stream.window().is_empty()
            && let Some(at_break) = stream.resume()
        {
            let place = RecordPlace::new(&source, at_break.position);
            return Open::Skipped(Some(place.broken(at_break)));
        }
        let is_whole = matches!(
            format,
            Format::Html | Format::Xml | Format::Text | Format::Pdf
        );
        if !is_whole && stream.window().is_empty() && stream.has_ended() {
            let place = RecordPlace::new(&source, Position::default());
            return Open::Skipped(Some(place.skipped(Reason::Empty, EMPTY_FILE)));
        }
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
            Format::Json => Open::Values(ValueCutter::new(source, stream, config)),
            Format::Csv { delimiter } => {
                Open::Rows(Box::new(RowCutter::new(source, stream, delimiter, config)))
            }
            Format::Html => whole(stream, Kind::Html),
            Format::Xml => whole(stream, Kind::Xml),
            Format::Pdf => whole(stream, Kind::Pdf),
            Format::Text | Format::Parquet => whole(stream, Kind::Text),
        }
    }

    /// Parquet is read from its end, so an input that is not an uncompressed file is copied to one.
    fn table(source: &Arc<Path>, mut stream: Stream, is_file: bool, config: &Config) -> Self {
        let on_disk = match stream.packing() {
            FileCompression::Plain if is_file => OnDisk::Original(source.to_path_buf()),
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

    /// Lets other threads decode ahead of this one, if the input is a compressed file of records.
    pub(crate) fn read_ahead(&mut self, config: &Config) -> Option<Arc<Ahead>> {
        let (source, stream) = match self {
            Open::Lines(cutter) => cutter.stream(),
            Open::Values(cutter) => cutter.stream(),
            Open::Rows(cutter) => cutter.stream(),
            Open::Records(cutter) => cutter.stream(),
            Open::Table(_) | Open::Whole(_) | Open::Skipped(_) => return None,
        };
        let is_useful = stream.packing() != FileCompression::Plain && config.threads.get() > 1;
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
            Open::Values(cutter) => cutter.next().map(|cut| cut.into_task(Task::Objects)),
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
    /// Runs the task.
    pub(crate) fn run(self, config: &Config, sink: &mut dyn FnMut(Item)) {
        match self {
            Task::Lines(block) => block.read(config, sink),
            Task::Objects(block) => block.read(config, sink),
            Task::Rows(block) => block.read(config, sink),
            Task::Records(records) => read_records(&records, config, sink),
            Task::Group(group) => group.read(config, sink),
            Task::Whole(whole) => whole.read(config, sink),
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
                // A document carries the warning itself. Of two kinds of damage, the first is the
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
    /// Makes a document of the file. A truncated one is also reported.
    pub(crate) fn read(mut self, config: &Config, sink: &mut dyn FnMut(Item)) {
        match self.body(config) {
            Ok(body) => self.document(&body, config, sink),
            Err(item) => sink(item),
        }
    }

    /// All bytes of the file, or the reason why they are missing.
    fn body(&mut self, config: &Config) -> Result<Vec<u8>, Item> {
        let place = RecordPlace::new(&self.source, Position::default());
        let limit = config.limits.record_bytes;
        let n = self.stream.fill(limit + 1).len();
        if n > limit {
            let detail = format!("a file of more than {limit} bytes");
            return Err(place.lost_file(Reason::TooLarge, detail));
        }
        let (mut body, ..) = self.stream.take(n);
        if let Some(at_break) = self.stream.resume() {
            let place = RecordPlace::new(&self.source, at_break.position);
            return Err(place.lost_file(at_break.reason, at_break.detail));
        }
        // The buffer doubled while it was filled, so release the excess.
        if body.capacity() / 5 > n / 4 {
            body.shrink_to_fit();
        }
        Ok(body)
    }

    fn document(&self, body: &[u8], config: &Config, sink: &mut dyn FnMut(Item)) {
        let place = RecordPlace::new(&self.source, Position::default());
        let page = self.kind.read(&Body {
            bytes: body,
            charset: None,
            url: None,
            config: &config.html,
        });
        let mut page = match page {
            Ok(page) => page,
            Err((reason, detail)) => return sink(place.lost_file(reason, detail)),
        };
        let cut = page.is_cut.then(|| {
            let detail = "the XML is truncated; the text before that is a document";
            place.skipped(Reason::Truncated, detail)
        });
        let mut notes = page.notes();
        if body.is_empty() {
            notes.push((Reason::Empty, EMPTY_FILE.to_owned()));
        }
        let warnings = notes.into_iter();
        let warnings = warnings.map(|(reason, detail)| place.warning(reason, detail));
        let warnings = warnings.collect();
        sink(Item::Document(Box::new(Document {
            title: page.title,
            language: page.language,
            images: page.images,
            page: page.metadata,
            warnings,
            ..place.document(page.text, Digest::of_bytes(body))
        })));
        if let Some(cut) = cut {
            sink(cut);
        }
    }
}

/// The message about a file without content.
const EMPTY_FILE: &str = "0 bytes";

/// A file of unknown format. In a directory it is only counted by its extension. If the user passed
/// it, it is reported as lost.
fn unknown(source: &Arc<Path>, origin: Origin) -> Item {
    let place = RecordPlace::new(source, Position::default());
    match origin {
        Origin::Directory => place.skipped(Reason::UnknownFormat, extension(source)),
        Origin::Named => place.lost_file(Reason::UnknownFormat, ""),
    }
}

/// Opens a regular file. Others are rejected: a FIFO would block, and a device would never end.
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
