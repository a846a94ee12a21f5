//! Reader output: documents, and warnings about records that were skipped or damaged.
//!
//! Bad content is not an error. A reader yields a stream of [`Item`]s in input order. Each is a
//! [`Document`], or a [`Warning`] with file, position and reason. Nothing disappears without one of
//! the two.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use arose::digest::{ContentHasher, Digest};
use serde::{Deserialize, Serialize};

use crate::html::{ImageTerm, Metadata};
use crate::losses::{Loss, Losses};

/// One readable document from any source.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The ID from the input: an `id` field or a WARC record ID; none for plain files.
    pub id: Option<String>,
    /// Its URL, as written in the input.
    pub url: Option<String>,
    /// Its title, if the format or the page has one.
    pub title: Option<String>,
    /// Its language as stated in the input; never guessed.
    pub language: Option<String>,
    /// The text.
    pub text: String,
    /// The images of a page, as terms at places in the text; only in the mode `henzinger`.
    pub images: Vec<ImageTerm>,
    /// Metadata of a page, with its links if they were requested; none if it is not a page.
    pub page: Option<Box<Metadata>>,
    /// The file it was read from; `-` is standard input.
    pub source: Arc<Path>,
    /// Its position in that file.
    pub position: Position,
    /// The length in bytes of its line, if it is a line of an uncompressed JSON Lines file that was
    /// read whole, not as a range of lines ([`Part`](crate::Part)). That line may be read again and
    /// passed to [`read_line_text`](crate::read_line_text).
    pub line_bytes: Option<u32>,
    /// 128-bit xxh3 of the body bytes, with content codings removed and the character set
    /// unchanged.
    pub digest: Digest,
    /// When it was fetched, in seconds since 1970, UTC.
    pub fetched: Option<i64>,
    /// Its priority, from the requested field of the input.
    pub priority: Option<f64>,
    /// The HTTP status it was served with.
    pub status: Option<u16>,
    /// The page that it duplicates, as recorded by the crawler.
    pub duplicate_of: Option<Box<Original>>,
    /// Problems that did not make it unreadable.
    pub warnings: Vec<Warning>,
}

impl Document {
    /// The ID from the input, or else its file and position.
    #[must_use]
    pub fn name(&self) -> String {
        let place = || format!("{}#{}", self.source.display(), self.position);
        self.id.clone().unwrap_or_else(place)
    }

    /// The digest of text and images, equal for exact duplicates.
    #[must_use]
    pub fn content_digest(&self) -> Digest {
        content_digest(&self.text, &self.images)
    }
}

/// A page that another page duplicates, as the record of the other page states it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Original {
    /// Its URL.
    pub url: String,
    /// When it was fetched, in seconds since 1970, UTC.
    pub fetched: Option<i64>,
    /// The body that the archive has for the duplicate page.
    pub body: DuplicateBody,
}

/// The body of a page that duplicates another page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DuplicateBody {
    /// The page has a body of its own.
    Stored,
    /// The body equals that of the original, byte for byte, and is stored only there.
    Same,
    /// The page was a near duplicate, and its body was not stored.
    Dropped,
}

/// The content digest of a text with images between its tokens.
pub(crate) fn content_digest(text: &str, images: &[ImageTerm]) -> Digest {
    let mut hasher = ContentHasher::new();
    let mut start = 0;
    for image in images {
        let end = text.floor_char_boundary(image.at).max(start);
        hasher.push_text(&text[start..end]);
        hasher.push_image(&image.src);
        start = end;
    }
    hasher.push_text(&text[start..]);
    hasher.finish()
}

/// A position in a file that does not depend on how the file is split among threads.
///
/// Positions in one file have the order of its records.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Position {
    /// Uncompressed file: byte offset of the record. Compressed file: byte offset of the member
    /// (frame) that contains the record. Parquet: row.
    pub offset: u64,
    /// Compressed file: byte offset inside the decompressed member. Otherwise 0.
    pub inner: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.inner {
            0 => write!(f, "{}", self.offset),
            inner => write!(f, "{}+{inner}", self.offset),
        }
    }
}

impl Position {
    /// Names the position in a file for people: `pages.warc.gz, byte 516+20`, `table.parquet, row
    /// 7`, or the file alone for its beginning.
    ///
    /// ```
    /// use arose_corpus::Position;
    /// let position = Position { offset: 516, inner: 20 };
    /// assert_eq!(position.within("a.jsonl.gz".as_ref()), "a.jsonl.gz, byte 516+20");
    /// assert_eq!(Position::default().within("a.jsonl".as_ref()), "a.jsonl");
    /// ```
    #[must_use]
    pub fn within(&self, file: &Path) -> String {
        let name = match file == Path::new("-") {
            true => "standard input".to_owned(),
            false => file.display().to_string(),
        };
        let unit = match file.extension().and_then(|extension| extension.to_str()) {
            Some("parquet") => "row",
            _ => "byte",
        };
        match *self == Self::default() {
            true => name,
            false => format!("{name}, {unit} {self}"),
        }
    }

    /// Parses the output of [`Display`](fmt::Display).
    ///
    /// ```
    /// use arose_corpus::Position;
    /// assert_eq!(Position::parse("516+20"), Some(Position { offset: 516, inner: 20 }));
    /// assert_eq!(Position::parse("516+"), None);
    /// ```
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (offset, inner) = text.split_once('+').unwrap_or((text, "0"));
        let number = |digits: &str| match digits.bytes().all(|byte| byte.is_ascii_digit()) {
            true => digits.parse().ok(),
            false => None,
        };
        let (offset, inner) = (number(offset)?, number(inner)?);
        Some(Self { offset, inner })
    }
}

/// A warning: a skipped record, or a defect of a document that was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// The file.
    #[serde(with = "crate::pipeline::bookmark::path")]
    pub source: Arc<Path>,
    /// The position in the file.
    pub position: Position,
    /// The kind of problem, by which warnings are counted.
    pub reason: Reason,
    /// Details for people.
    pub detail: String,
    /// How much of the input is lost.
    pub loss: Loss,
}

impl Warning {
    /// Whether the warning is shown on its own, and not only counted.
    #[must_use]
    pub fn is_reported(&self) -> bool {
        self.reason.is_damage() || self.reason == Reason::Empty || self.loss == Loss::File
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.position.within(&self.source), self.reason)?;
        match self.detail.as_str() {
            "" => Ok(()),
            detail => write!(f, ": {detail}"),
        }
    }
}

/// The reason for a skipped record or a warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Reason {
    /// A record of a kind that has no document: a request, a revisit, a file header.
    RecordKind,
    /// A media type without text: an image, a font, a program.
    MediaType,
    /// A response whose status is not wanted.
    Status,
    /// A file of unknown format.
    UnknownFormat,
    /// A row or object whose text is null. There is nothing to compare, and nothing is damaged.
    NullText,
    /// A file of 0 bytes, or a directory without files to read.
    Empty,
    /// A file in a directory that was already read through another symbolic link.
    AlreadyRead,
    /// The file cannot be opened or read.
    Unreadable,
    /// A directory that contains itself through a symbolic link.
    SymlinkLoop,
    /// The input ends in the middle of a record or compressed member.
    Truncated,
    /// A compressed member that does not decode.
    BadCompression,
    /// A member or body that decompresses to far more than its size allows.
    Expansion,
    /// A record, line or body that is larger than its limit.
    TooLarge,
    /// An invalid WARC or ARC record header.
    BadHeader,
    /// A record that is longer or shorter than it declares.
    BadLength,
    /// An HTTP message with invalid framing.
    BadHttp,
    /// A line that is not a JSON object.
    NotAnObject,
    /// A CSV row that cannot be split into the columns of its header.
    BadRow,
    /// No field or column with text.
    NoText,
    /// A Parquet file or row group that does not decode.
    BadParquet,
    /// A PDF that is encrypted, damaged or beyond the limits.
    BadPdf,
    /// Bytes that are invalid in the character set and became U+FFFD.
    Malformed,
    /// A page that was read only in part: nested too deeply, too many links, an invalid base URL.
    OddPage,
}

impl Reason {
    /// Whether the input is damaged, rather than intact but not wanted.
    pub fn is_damage(self) -> bool {
        use Reason::*;
        let is_intact = matches!(self, NullText | Empty | AlreadyRead);
        !is_intact && !matches!(self, RecordKind | MediaType | Status | UnknownFormat)
    }

    /// How much input is lost to this by default, unless the reader knows better.
    #[must_use]
    pub fn loss(self) -> Loss {
        use Reason::*;
        match self {
            Unreadable | Truncated | BadParquet => Loss::File,
            // Files inside the loop are read at their own path; the other reasons only affect
            // characters.
            SymlinkLoop | Malformed | OddPage => Loss::Nothing,
            _ if self.is_damage() => Loss::Record,
            _ => Loss::Nothing,
        }
    }

    /// A short name that is the same in every version.
    pub fn name(self) -> &'static str {
        match self {
            Reason::RecordKind => "record kind without a document",
            Reason::MediaType => "media type without text",
            Reason::Status => "unwanted status",
            Reason::UnknownFormat => "unknown format",
            Reason::NullText => "null text",
            Reason::Empty => "empty input",
            Reason::AlreadyRead => "already read",
            Reason::Unreadable => "unreadable",
            Reason::SymlinkLoop => "symlink loop",
            Reason::Truncated => "truncated",
            Reason::BadCompression => "damaged compression",
            Reason::Expansion => "expands too far",
            Reason::TooLarge => "too large",
            Reason::BadHeader => "bad record header",
            Reason::BadLength => "wrong content length",
            Reason::BadHttp => "bad HTTP message",
            Reason::NotAnObject => "not a JSON object",
            Reason::BadRow => "bad row",
            Reason::NoText => "no text field",
            Reason::BadParquet => "damaged parquet",
            Reason::BadPdf => "unreadable PDF",
            Reason::Malformed => "malformed characters",
            Reason::OddPage => "odd page",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One item of a reader's output.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// A document.
    Document(Box<Document>),
    /// A record or file that did not become a document.
    Skipped(Warning),
}

impl Item {
    /// The file and position of the item.
    pub fn place(&self) -> (&Arc<Path>, Position) {
        match self {
            Item::Document(document) => (&document.source, document.position),
            Item::Skipped(warning) => (&warning.source, warning.position),
        }
    }
}

/// Counts of documents and skipped records.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Documents delivered.
    pub documents: u64,
    /// Bytes of text in them.
    pub text_bytes: u64,
    /// Skipped records by reason.
    pub skipped: BTreeMap<Reason, u64>,
    /// Warnings about delivered documents, by reason.
    pub marked: BTreeMap<Reason, u64>,
    /// Files in directories that were not read because their format is unknown, by extension
    /// (`.py`). `no extension` counts files without one, and `other` those with the 65th or a later
    /// extension.
    pub unknown_files: BTreeMap<String, u64>,
    /// Input that could not be read; complete when the iterator has ended.
    pub losses: Losses,
}

/// Maximum number of extensions by which files of unknown formats are counted.
const MAX_EXTENSIONS: usize = 64;

impl Counts {
    /// Counts one item.
    pub fn add(&mut self, item: &Item) {
        self.losses.add(item);
        match item {
            Item::Document(document) => {
                self.documents += 1;
                self.text_bytes += document.text.len() as u64;
                for warning in &document.warnings {
                    *self.marked.entry(warning.reason).or_default() += 1;
                }
            }
            Item::Skipped(warning) => {
                *self.skipped.entry(warning.reason).or_default() += 1;
                if warning.reason == Reason::UnknownFormat && warning.loss == Loss::Nothing {
                    self.add_unknown(&warning.detail, 1);
                }
            }
        }
    }

    fn add_unknown(&mut self, extension: &str, n: u64) {
        let has_room = self.unknown_files.len() < MAX_EXTENSIONS;
        let extension = match has_room || self.unknown_files.contains_key(extension) {
            true => extension,
            false => "other",
        };
        *self.unknown_files.entry(extension.to_owned()).or_default() += n;
    }

    /// Adds the counts of another part of the same corpus.
    pub fn merge(&mut self, other: &Counts) {
        self.documents += other.documents;
        self.text_bytes += other.text_bytes;
        for (reason, n) in &other.skipped {
            *self.skipped.entry(*reason).or_default() += n;
        }
        for (reason, n) in &other.marked {
            *self.marked.entry(*reason).or_default() += n;
        }
        for (extension, n) in &other.unknown_files {
            self.add_unknown(extension, *n);
        }
        self.losses.merge(&other.losses);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_names_file_position_and_reason() {
        let mut warning = Warning {
            source: Path::new("crawl.warc.gz").into(),
            position: Position {
                offset: 516,
                inner: 20,
            },
            reason: Reason::BadLength,
            detail: "says 12".to_owned(),
            loss: Loss::Record,
        };
        assert_eq!(
            warning.to_string(),
            "crawl.warc.gz, byte 516+20: wrong content length: says 12"
        );
        warning.detail.clear();
        warning.position.inner = 0;
        assert_eq!(
            warning.to_string(),
            "crawl.warc.gz, byte 516: wrong content length"
        );
    }
}
