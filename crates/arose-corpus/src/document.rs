//! Reader output: documents, and warnings about records that were skipped or damaged.
//!
//! Bad content is not an error. A reader yields a stream of [`Item`]s in input order: a
//! [`Document`], or a [`Warning`] that names file, position and reason. Nothing disappears without
//! one of the two.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use arose::digest::{ContentHasher, Digest};
use serde::{Deserialize, Serialize};

use crate::html::{ImageTerm, Metadata};
use crate::losses::{Loss, Losses};

/// One readable document, wherever it came from.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The name the input gives it: an `id` field, a WARC record id; none for bare files.
    pub id: Option<String>,
    /// Its URL, as written in the input.
    pub url: Option<String>,
    /// Its title, where the format or the page has one.
    pub title: Option<String>,
    /// Its language as the input states it; nothing is guessed.
    pub language: Option<String>,
    /// The text.
    pub text: String,
    /// The images of a page, as terms at places of the text; none in other modes than `henzinger`.
    pub images: Vec<ImageTerm>,
    /// Metadata of a page, with its links if they were requested; none if it is not a page.
    pub page: Option<Box<Metadata>>,
    /// The file it was read from; `-` is standard input.
    pub source: Arc<Path>,
    /// Where in that file.
    pub position: Position,
    /// 128-bit xxh3 of the body bytes, content codings removed, character set untouched.
    pub digest: Digest,
    /// When it was fetched, in seconds since 1970, UTC.
    pub fetched: Option<i64>,
    /// Its priority, from the requested field of the input.
    pub priority: Option<f64>,
    /// The HTTP status it was served with.
    pub status: Option<u16>,
    /// The page of a crawl that it duplicates, if the crawler says so.
    pub duplicate_of: Option<Box<Original>>,
    /// What was wrong with it without making it unreadable.
    pub warnings: Vec<Warning>,
}

impl Document {
    /// The input's own name for it, else its file and position.
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

/// A page of a crawl that another one duplicates, as the record of the other one names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Original {
    /// Its URL.
    pub url: String,
    /// When it was fetched, in seconds since 1970, UTC.
    pub fetched: Option<i64>,
    /// What the archive has of the page that names it.
    pub body: DuplicateBody,
}

/// The body of a page that duplicates another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DuplicateBody {
    /// It has its own.
    Stored,
    /// It is that of the original, byte for byte, and stored only there.
    Same,
    /// It was a near duplicate, and was not stored.
    Dropped,
}

/// The content digest of a text with images between its words.
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

/// A place in a file that stays the same however the file is split among threads.
///
/// Positions of one file are ordered as its records are.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Position {
    /// Plain file: byte of the record. Compressed file: byte at which the member (frame) holding
    /// the record starts. Parquet: row.
    pub offset: u64,
    /// Compressed file: byte inside that member's content; else 0.
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
    /// Reads what [`Display`](fmt::Display) writes.
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

/// Something worth telling: a record that was skipped, or a blemish of one that was not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// The file.
    #[serde(with = "crate::pipeline::bookmark::path")]
    pub source: Arc<Path>,
    /// Where in the file.
    pub position: Position,
    /// What kind of thing happened; what counts are kept by.
    pub reason: Reason,
    /// The particulars, for people.
    pub detail: String,
    /// How much of the input is missing for it.
    pub loss: Loss,
}

impl Warning {
    /// Whether people want to see it by itself, and not only a count.
    #[must_use]
    pub fn is_reported(&self) -> bool {
        self.reason.is_damage() || self.reason == Reason::Empty || self.loss == Loss::File
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (source, position) = (self.source.display(), self.position);
        write!(f, "{source}:{position}: {}", self.reason)?;
        match self.detail.as_str() {
            "" => Ok(()),
            detail => write!(f, ": {detail}"),
        }
    }
}

/// Why something was skipped or marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Reason {
    /// A record of a kind without a document: a request, a revisit, a file header.
    RecordKind,
    /// A media type without text: an image, a font, a program.
    MediaType,
    /// A response whose status is not wanted.
    Status,
    /// A file whose format is not known.
    UnknownFormat,
    /// A row or object whose text is null: there is nothing to compare, and nothing is damaged.
    NullText,
    /// A file of 0 bytes, or a directory without files to read.
    Empty,
    /// A file in a directory that was read already, through another symbolic link.
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
    /// Larger than the limit for one record, line or body.
    TooLarge,
    /// A WARC or ARC record header that makes no sense.
    BadHeader,
    /// A record that is longer or shorter than it says.
    BadLength,
    /// An HTTP message that breaks its own framing.
    BadHttp,
    /// A line that is not a JSON object.
    NotAnObject,
    /// A CSV record that cannot be split into the columns of its header.
    BadRow,
    /// No field or column with text.
    NoText,
    /// A Parquet file or row group that does not decode.
    BadParquet,
    /// A PDF that is encrypted, damaged or beyond the limits.
    BadPdf,
    /// Bytes that are not valid in the character set; they became U+FFFD.
    Malformed,
    /// A page that was read only in part: nested too deep, too many links, a bad base.
    OddPage,
}

impl Reason {
    /// Whether the input is broken, rather than intact and not wanted.
    pub fn is_damage(self) -> bool {
        use Reason::*;
        let is_intact = matches!(self, NullText | Empty | AlreadyRead);
        !is_intact && !matches!(self, RecordKind | MediaType | Status | UnknownFormat)
    }

    /// How much is missing of an input that this happened to, unless the reader knows better.
    #[must_use]
    pub fn loss(self) -> Loss {
        use Reason::*;
        match self {
            Unreadable | Truncated | BadParquet => Loss::File,
            // Files inside the loop are read where they are; the others cost characters.
            SymlinkLoop | Malformed | OddPage => Loss::Nothing,
            _ if self.is_damage() => Loss::Record,
            _ => Loss::Nothing,
        }
    }

    /// A short name, the same in every version.
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

/// One step of a reader's output.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// A document.
    Document(Box<Document>),
    /// Something that did not become one.
    Skipped(Warning),
}

impl Item {
    /// The file and position this is about.
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
    /// Blemishes of delivered documents by reason.
    pub marked: BTreeMap<Reason, u64>,
    /// Files in directories that were not read because their format is unknown, by extension
    /// (`.py`). `no extension` and `other` stand for what has none and for the 65th and later.
    pub unknown_files: BTreeMap<String, u64>,
    /// What could not be read; complete when the iterator has ended.
    pub losses: Losses,
}

/// Extensions that files of unknown formats are counted by.
const MAX_EXTENSIONS: usize = 64;

impl Counts {
    /// Takes one item into account.
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
            "crawl.warc.gz:516+20: wrong content length: says 12"
        );
        warning.detail.clear();
        warning.position.inner = 0;
        assert_eq!(
            warning.to_string(),
            "crawl.warc.gz:516: wrong content length"
        );
    }
}
