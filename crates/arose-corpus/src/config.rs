//! Settings of a reader: field names, limits, threads.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use crate::html;

/// How to read a corpus.
#[derive(Debug, Clone)]
pub struct Config {
    /// Names of the fields or columns for each part of a document.
    pub fields: Fields,
    /// Size limits.
    pub limits: Limits,
    /// How web pages are read.
    pub html: html::HtmlConfig,
    /// Which HTTP responses are documents.
    pub statuses: Statuses,
    /// How revisit records are read.
    pub revisits: Revisits,
    /// Which files of directories are read.
    pub files: Files,
    /// Number of worker threads; does not affect the output. Default: the number of cores.
    pub threads: NonZeroUsize,
    /// Input handed to a worker at a time, in bytes; does not affect the output. Default: 1 MiB.
    ///
    /// Memory use is about `3 * threads * (block_bytes + the largest record)`, plus up to `8 *
    /// threads * block_bytes` for compressed files with many members.
    pub block_bytes: NonZeroUsize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            fields: Fields::default(),
            limits: Limits::default(),
            html: html::HtmlConfig::default(),
            statuses: Statuses::Any,
            revisits: Revisits::default(),
            files: Files::default(),
            threads: std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            block_bytes: NonZeroUsize::new(1 << 20).expect("a million is not zero"),
        }
    }
}

/// Names of the fields (JSON) and columns (Parquet, CSV) that are read.
///
/// In each list, the first name wins for which a record has a string or number. A name with a dot
/// may lead into nested JSON objects and Parquet structs. `data.text` is the field `text` of
/// `data`, unless there is a field with the whole name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fields {
    /// The text. Default `text`, `content`, `raw_content`, `body`.
    pub text: Vec<String>,
    /// HTML to extract the text from, if there is no text field. Default `html`, `raw_html`.
    pub html: Vec<String>,
    /// The ID of the document. Default `id`, `doc_id`, `uid`, `_id`.
    pub id: Vec<String>,
    /// Its URL. Default `url`, `uri`, `link`, `source_url`.
    pub url: Vec<String>,
    /// Its title. Default `title`.
    pub title: Vec<String>,
    /// Its language. Default `language`, `lang`.
    pub language: Vec<String>,
    /// When it was fetched, ISO 8601 or seconds since 1970. Default `fetched`, `date`, `timestamp`,
    /// `date_download`.
    pub fetched: Vec<String>,
    /// A number for choosing the duplicate to keep. Default none.
    pub priority: Vec<String>,
}

impl Default for Fields {
    fn default() -> Self {
        let names = |list: &[&str]| list.iter().map(|&name| name.to_owned()).collect();
        Self {
            text: names(&["text", "content", "raw_content", "body"]),
            html: names(&["html", "raw_html"]),
            id: names(&["id", "doc_id", "uid", "_id"]),
            url: names(&["url", "uri", "link", "source_url"]),
            title: names(&["title"]),
            language: names(&["language", "lang"]),
            fetched: names(&["fetched", "date", "timestamp", "date_download"]),
            priority: Vec::new(),
        }
    }
}

impl Fields {
    /// All lists, in the order of [`Slot`].
    pub(crate) fn lists(&self) -> [&[String]; N_SLOTS] {
        [
            &self.text,
            &self.html,
            &self.id,
            &self.url,
            &self.title,
            &self.language,
            &self.fetched,
            &self.priority,
        ]
    }

    /// The names of the text fields, for a message.
    pub(crate) fn text_names(&self) -> String {
        let names: Vec<&str> = self.text.iter().chain(&self.html).map(|n| &**n).collect();
        names.join(", ")
    }

    /// The index of the column that fills each slot.
    pub(crate) fn choose(&self, columns: &[String]) -> [Option<usize>; N_SLOTS] {
        self.lists().map(|names| {
            let mut places = names
                .iter()
                .filter_map(|name| columns.iter().position(|column| column == name));
            places.next()
        })
    }
}

/// The part of a path after its first key or column: for `data.text` and the key `data`, `text`.
pub(crate) fn below<'n>(name: &'n str, key: &str) -> Option<&'n str> {
    name.strip_prefix(key)?.strip_prefix('.')
}

/// The index of a field's list in [`Fields::lists`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    Text,
    Html,
    Id,
    Url,
    Title,
    Language,
    Fetched,
    Priority,
}

/// Number of slots.
pub(crate) const N_SLOTS: usize = 8;

/// Sizes above which input is skipped with a warning.
///
/// Nothing larger than a limit is ever held in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// One record: a WARC block, a CSV row, or a file that is one document. Default 64 MiB.
    pub record_bytes: usize,
    /// One line of JSON. Default 64 MiB.
    pub line_bytes: usize,
    /// The header of one WARC, ARC or HTTP message. Default 256 KiB.
    pub header_bytes: usize,
    /// One HTTP body after decoding. Default 64 MiB.
    pub body_bytes: usize,
    /// One page of a Parquet column after decompression. Default 512 MiB.
    pub page_bytes: usize,
    /// Maximum output per byte of input of a compressed member, body or page. Applies only above 16
    /// MiB of output. Default 400; deflate itself cannot exceed 1032.
    pub expansion: u64,
    /// Text of one Parquet file, in addition to `expansion` times its size: a value that fills many
    /// rows is stored once. Default 4 GiB.
    pub table_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            record_bytes: 64 << 20,
            line_bytes: 64 << 20,
            header_bytes: 256 << 10,
            body_bytes: 64 << 20,
            page_bytes: 512 << 20,
            expansion: 400,
            table_bytes: 4 << 30,
        }
    }
}

impl Limits {
    /// Output below this size never counts as a decompression bomb.
    pub(crate) const HARMLESS_BYTES: u64 = 16 << 20;

    /// Whether `output` bytes are too many for `input` bytes.
    pub(crate) fn is_bomb(&self, input: u64, output: u64) -> bool {
        output > Self::HARMLESS_BYTES && output / self.expansion.max(1) > input
    }
}

/// Which HTTP responses become documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statuses {
    /// All: the document states its status, and the consumer decides.
    Any,
    /// Only 2xx; others are skipped and counted.
    Success,
}

/// How to read revisit records, which say that a page duplicates another page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Revisits {
    /// They are skipped and counted.
    #[default]
    Skip,
    /// They are documents without text; they name their original if the record does.
    Read,
}

/// Which files of directories are read. Files that the user passes are always read.
///
/// Hidden files and directories, whose names start with a dot, are never read. A pattern with a `/`
/// is matched against the path below the directory that the user passes, any other pattern against
/// the name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files {
    /// Patterns of the files to read, whatever their kind. If empty, all files of known kinds are
    /// read.
    pub include: Vec<String>,
    /// Patterns of files and directories to leave out.
    pub exclude: Vec<String>,
    /// Whether files of unknown kinds are also read if they contain text.
    pub all_text: bool,
    /// Directories that are not entered, such as the output of the run.
    pub skip: Vec<PathBuf>,
}

impl Files {
    /// Whether files are read even if their names do not indicate a format.
    pub(crate) fn has_any_kind(&self) -> bool {
        self.all_text || !self.include.is_empty()
    }
}
