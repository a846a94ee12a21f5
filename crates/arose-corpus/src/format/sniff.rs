//! Tells the format of an input.
//!
//! Content decides before names: a WARC is a WARC whatever it is called, packed or not. Names
//! decide only between formats that content cannot tell apart (a Markdown file may start with `{`),
//! and which files of a folder count.

use std::path::Path;

use crate::body::payload::{self, Kind};
use crate::config::Config;
use crate::format::json::scan;
use crate::format::warc::dialect::Dialect;
use crate::source::input::Origin;

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
    let is_object = scan::scan(line, |_, value| value.check()).is_ok();
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
        _ if origin == Origin::Folder && !config.files.has_any_kind() => None,
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
