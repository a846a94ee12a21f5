//! Detects the format of an input.
//!
//! The content takes precedence over the name: a WARC is a WARC whatever it is called, compressed
//! or not. Names only decide between formats that the content cannot tell apart (a Markdown file
//! may start with `{`), and which files in a directory are read.

use std::path::Path;

use crate::body::payload::{self, Kind};
use crate::config::Config;
use crate::format::json::scan::{self, Extent};
use crate::format::warc::dialect::Dialect;
use crate::source::input::Origin;
use crate::source::member::without_packing;
use crate::source::raw::CHUNK;
use crate::source::stream::Stream;

/// The format of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// WARC, WET, WAT.
    Warc,
    /// ARC.
    Arc,
    /// A JSON object per line.
    JsonLines,
    /// JSON objects in an array or one after the other, in any layout.
    Json,
    /// Parquet.
    Parquet,
    /// Rows of cells separated by this delimiter, with a header row.
    Csv { delimiter: u8 },
    /// One document: an HTML page.
    Html,
    /// One document: XML, possibly a feed.
    Xml,
    /// One document: text.
    Text,
    /// One document: PDF.
    Pdf,
}

/// Whether the name says that a file is one document, so that many of them can be handed out at
/// once.
pub(crate) fn is_document_name(path: &Path) -> bool {
    matches!(
        inner_extension(path).as_str(),
        "html" | "htm" | "xhtml" | "txt" | "text" | "md" | "markdown"
    )
}

/// The extension before that of the compression, in lower case.
fn inner_extension(path: &Path) -> String {
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .to_ascii_lowercase();
    without_packing(&name)
        .rsplit_once('.')
        .map_or(String::new(), |(_, extension)| extension.to_owned())
}

/// Detects the format of a stream from its beginning and its name; none if it cannot be read.
///
/// The first line of JSON may be as long as the line limit. It is read until its end is found or
/// the limit is reached.
pub(crate) fn sniff(
    stream: &mut Stream,
    path: &Path,
    origin: Origin,
    config: &Config,
) -> Option<Format> {
    let extension = inner_extension(path);
    let mut want = CHUNK;
    while is_long_object(stream.fill(want)) && is_any_json(&extension) && stream.is_flowing() {
        let length = stream.window().len();
        if length > config.limits.line_bytes {
            break;
        }
        want = (2 * length).min(config.limits.line_bytes.saturating_add(1));
    }
    sniff_head(stream.window(), &extension, origin, config)
}

/// Whether the extension leaves it to the content whether an input is JSON, and in which layout.
fn is_any_json(extension: &str) -> bool {
    const OTHERS: [&str; 21] = [
        "jsonl", "ndjson", "csv", "tsv", "tab", "html", "htm", "xhtml", "xml", "rss", "atom",
        "txt", "text", "md", "markdown", "parquet", "warc", "wet", "wat", "arc", "pdf",
    ];
    !OTHERS.contains(&extension)
}

/// Whether the input starts with an incomplete object on a line that has not ended.
fn is_long_object(head: &[u8]) -> bool {
    let start = unmarked(head).trim_ascii_start();
    start.starts_with(b"{")
        && memchr::memchr(b'\n', start).is_none()
        && scan::extent(start) == Extent::Open
}

/// The input without a byte-order mark.
fn unmarked(head: &[u8]) -> &[u8] {
    head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head)
}

fn sniff_head(head: &[u8], extension: &str, origin: Origin, config: &Config) -> Option<Format> {
    if head.starts_with(b"PAR1") {
        return Some(Format::Parquet);
    }
    if payload::is_pdf(head) {
        return Some(Format::Pdf);
    }
    let unmarked = unmarked(head);
    if let Some(dialect) = Dialect::sniff(unmarked) {
        return Some(match dialect {
            Dialect::Warc => Format::Warc,
            Dialect::Arc => Format::Arc,
        });
    }
    let line = unmarked.split(|&b| b == b'\n').next().unwrap_or_default();
    match extension {
        "jsonl" | "ndjson" => Some(Format::JsonLines),
        "json" => Some(named_json(unmarked)),
        "csv" => Some(delimited(line).unwrap_or(Format::Csv { delimiter: b',' })),
        "tsv" | "tab" => Some(Format::Csv { delimiter: b'\t' }),
        "html" | "htm" | "xhtml" => Some(Format::Html),
        "xml" | "rss" | "atom" => Some(Format::Xml),
        "txt" | "text" | "md" | "markdown" => Some(Format::Text),
        // A Parquet or WARC file without the proper start is damaged, not text.
        "parquet" => Some(Format::Parquet),
        "warc" | "wet" | "wat" => Some(Format::Warc),
        "arc" => Some(Format::Arc),
        "pdf" => Some(Format::Pdf),
        _ => match json(unmarked) {
            Some(Format::JsonLines) => Some(Format::JsonLines),
            // Directories contain much JSON that is not a corpus: settings, source maps, notebooks.
            Some(json) if origin == Origin::Named || has_text_field(unmarked, config) => Some(json),
            _ if origin == Origin::Directory && !config.files.has_any_kind() => None,
            _ => anonymous(head, line, config),
        },
    }
}

/// The layout of a file named as JSON; another format only if it cannot be JSON.
fn named_json(head: &[u8]) -> Format {
    let start = head.trim_ascii_start();
    match (json(head), start) {
        (Some(format), _) => format,
        // Flawed from the start: both layouts report it, but JSON Lines loses only one line.
        (None, [b'{', ..]) => Format::JsonLines,
        (None, [b'[', ..]) => Format::Json,
        (None, _) => Format::Text,
    }
}

/// The layout of JSON objects; none if the input starts with something else.
fn json(head: &[u8]) -> Option<Format> {
    let start = head.trim_ascii_start();
    match start.first()? {
        b'[' => {
            let object = start[1..].trim_ascii_start().strip_prefix(b"{")?;
            let is_object = matches!(object.trim_ascii_start().first(), Some(b'"' | b'}'));
            is_object.then_some(Format::Json)
        }
        b'{' => object_layout(start),
        _ => None,
    }
}

/// The layout of input that starts with `{`.
fn object_layout(start: &[u8]) -> Option<Format> {
    let line_end = memchr::memchr(b'\n', start).unwrap_or(start.len());
    match scan::extent(start) {
        Extent::Whole(n) if n > line_end => Some(Format::Json),
        Extent::Whole(n) => match start[n..line_end].trim_ascii() {
            [] => Some(Format::JsonLines),
            [b'{' | b',', ..] => Some(Format::Json),
            _ => has_object_line(start).then_some(Format::JsonLines),
        },
        Extent::Open if line_end < start.len() => Some(Format::Json),
        Extent::Open => Some(Format::JsonLines),
        Extent::Flawed(..) if !starts_with_key(start) => None,
        Extent::Flawed(at, _) => {
            let is_bare = start[1..line_end].trim_ascii().is_empty();
            let is_json = is_bare || at > line_end && !has_object_line(start);
            Some(match is_json {
                true => Format::Json,
                false => Format::JsonLines,
            })
        }
    }
}

/// Whether it starts with an opening bracket, a key and a colon.
fn starts_with_key(start: &[u8]) -> bool {
    let key = start[1..].trim_ascii_start();
    match scan::extent(key) {
        Extent::Whole(n) if key[0] == b'"' => key[n..].trim_ascii_start().starts_with(b":"),
        _ => false,
    }
}

/// Whether any of the first lines is an object.
fn has_object_line(start: &[u8]) -> bool {
    let mut lines = start.split(|&b| b == b'\n').take(64);
    lines.any(|line| scan::scan(line, |_, value| value.check()).is_ok())
}

/// Whether the first object has a field for text.
fn has_text_field(head: &[u8], config: &Config) -> bool {
    let start = head.trim_ascii_start();
    let start = start.strip_prefix(b"[").unwrap_or(start);
    let names = || config.fields.text.iter().chain(&config.fields.html);
    let mut has_text = false;
    // The object may continue after the beginning, so a missing end is not a flaw here.
    let _ = scan::scan(start, |key, _| {
        let is_start = |name: &String| name.split('.').next().is_some_and(|part| key.is(part));
        has_text |= names().any(|name| key.is(name) || is_start(name));
        Ok(())
    });
    has_text
}

/// The format of an input whose name says nothing about it.
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
        Kind::Pdf => Format::Pdf,
    })
}

/// The delimiter that occurs most in a header line.
fn delimited(line: &[u8]) -> Option<Format> {
    let count = |delimiter: u8| memchr::memchr_iter(delimiter, line).count();
    let delimiter = *b"\t;,".iter().max_by_key(|&&delimiter| count(delimiter))?;
    (count(delimiter) > 0).then_some(Format::Csv { delimiter })
}
