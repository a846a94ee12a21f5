//! Extracts the text of a document from a body and its media type.
//!
//! This module alone decides which media types contain text and how each is read:
//!
//! | type | text |
//! |---|---|
//! | HTML, XHTML | extracted |
//! | RSS, Atom | titles and contents of the feed and its entries |
//! | other XML | its character data |
//! | JSON, plain text, Markdown and similar types | unchanged |
//! | PDF | the strings of its pages, in drawing order |
//! | style sheets, scripts, images and all others | none: skipped with a reason |
//!
//! If the type is missing or meaningless, the first bytes decide.
//!
//! A [`Parser`] reads one kind of body. Those above are built in; [`read_with`] takes more.

use arose::digest::Digest;
use url::Url;

use crate::body::charset::{self, Markup};
use crate::body::http::Note;
use crate::body::{feed, pdf};
use crate::document::{Reason, content_digest};
use crate::html::{self, ImageTerm, Metadata};

/// The text and metadata of a document.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Page {
    /// Its title.
    pub title: Option<String>,
    /// The language that the document declares.
    pub language: Option<String>,
    /// Its text.
    pub text: String,
    /// Its images, as terms between the tokens.
    pub images: Vec<ImageTerm>,
    /// Metadata of a web page; none if it is not a web page.
    pub metadata: Option<Box<Metadata>>,
    /// Problems found in a web page.
    pub details: Vec<String>,
    /// Whether malformed bytes were replaced while decoding.
    pub is_malformed: bool,
    /// Whether it is truncated XML: the end tag of the root is missing.
    pub is_cut: bool,
}

/// A body to read.
#[derive(Debug, Clone, Copy)]
pub struct Body<'a> {
    /// Its bytes, with content codings removed.
    pub bytes: &'a [u8],
    /// The character set that the HTTP header names.
    pub charset: Option<&'a str>,
    /// Where it came from.
    pub url: Option<&'a str>,
    /// Which text and links to extract.
    pub config: &'a html::HtmlConfig,
}

/// Reads bodies of one kind: text, title, links.
///
/// The output must be bounded by the input, because bodies may be hostile. A body that cannot be
/// read gives an error with a reason, never a panic.
///
/// ```
/// use arose_corpus::payload::{Body, Page, Parser, read_with};
/// use arose_corpus::{Reason, html};
///
/// /// Subtitles: numbers and times are not text.
/// struct Subtitles;
///
/// impl Parser for Subtitles {
///     fn reads(&self, media_type: &str, _body: &[u8]) -> bool {
///         media_type == "application/x-subrip"
///     }
///
///     fn read(&self, body: &Body<'_>) -> Result<Page, (Reason, String)> {
///         let text = String::from_utf8_lossy(body.bytes);
///         let is_said = |line: &&str| line.chars().any(char::is_alphabetic);
///         let text = text.lines().filter(is_said).collect::<Vec<_>>().join("\n");
///         Ok(Page { text, ..Page::default() })
///     }
/// }
///
/// let body = b"1\n00:00:01,000 --> 00:00:03,000\nA rose is a rose.\n";
/// let config = html::HtmlConfig::default();
/// let page = read_with(&[&Subtitles], body, Some("application/x-subrip"), None, &config);
/// assert_eq!(page.unwrap().text, "A rose is a rose.");
/// ```
pub trait Parser {
    /// Whether this parser reads bodies with a given media type (lower case, without parameters)
    /// that begin like `body`.
    fn reads(&self, media_type: &str, body: &[u8]) -> bool;

    /// Reads a body.
    ///
    /// # Errors
    ///
    /// If the body has no text, with the reason.
    fn read(&self, body: &Body<'_>) -> Result<Page, (Reason, String)>;
}

/// The kind of a body: one for each built-in parser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Html,
    Xml,
    Text,
    Pdf,
}

impl Page {
    /// The digest of text and images, equal for exact duplicates.
    #[must_use]
    pub fn content_digest(&self) -> Digest {
        content_digest(&self.text, &self.images)
    }

    /// Warnings for users of the document.
    pub(crate) fn notes(&mut self) -> Vec<Note> {
        let malformed = self
            .is_malformed
            .then(|| (Reason::Malformed, String::new()));
        let odd = self
            .details
            .drain(..)
            .map(|detail| (Reason::OddPage, detail));
        malformed.into_iter().chain(odd).collect()
    }
}

/// Reads a body with the given `Content-Type`, fetched from `url`.
///
/// # Errors
///
/// If the body has no text, with the reason.
pub fn read(
    body: &[u8],
    content_type: Option<&str>,
    url: Option<&str>,
    config: &html::HtmlConfig,
) -> Result<Page, (Reason, String)> {
    read_with(&[], body, content_type, url, config)
}

/// Like [`read`], with further parsers, which are tried first.
///
/// # Errors
///
/// If the body has no text, with the reason.
pub fn read_with(
    parsers: &[&dyn Parser],
    body: &[u8],
    content_type: Option<&str>,
    url: Option<&str>,
    config: &html::HtmlConfig,
) -> Result<Page, (Reason, String)> {
    let value = content_type.unwrap_or_default();
    let essence = value
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    let body = Body {
        bytes: body,
        charset: charset::content_type_charset(value),
        url,
        config,
    };
    if let Some(parser) = parsers.iter().find(|one| one.reads(&essence, body.bytes)) {
        return parser.read(&body);
    }
    match kind_of(&essence, body.bytes) {
        Some(kind) => kind.read(&body),
        None => Err((Reason::MediaType, essence)),
    }
}

impl Parser for Kind {
    fn reads(&self, media_type: &str, body: &[u8]) -> bool {
        kind_of(media_type, body) == Some(*self)
    }

    fn read(&self, body: &Body<'_>) -> Result<Page, (Reason, String)> {
        let markup = match self {
            Self::Html => Markup::Html,
            Self::Xml => Markup::Xml,
            Self::Text => Markup::None,
            Self::Pdf => return pdf::read(body.bytes, body.url, body.config),
        };
        let encoding = charset::choose(body.bytes, body.charset, markup);
        let (text, is_malformed) = charset::decode_as(body.bytes, encoding);
        let page = match markup {
            Markup::Html => html(&text, body.url, body.config),
            Markup::Xml => feed::read(&text),
            Markup::None => Page {
                text: fitted(text.into_owned()),
                ..Page::default()
            },
        };
        Ok(Page {
            is_malformed,
            ..page
        })
    }
}

/// A text without excess capacity.
pub(crate) fn fitted(mut text: String) -> String {
    if text.capacity() / 2 > text.len() {
        text.shrink_to_fit();
    }
    text
}

/// The kind of a body with this media type; none if it has no text.
fn kind_of(essence: &str, body: &[u8]) -> Option<Kind> {
    match essence {
        "text/html" | "application/xhtml+xml" => Some(Kind::Html),
        "text/xml" | "application/xml" => Some(xml_kind(body)),
        "application/pdf" | "application/x-pdf" => Some(Kind::Pdf),
        "application/json" | "application/ld+json" | "application/x-ndjson" => Some(Kind::Text),
        "text/css" | "text/javascript" | "text/ecmascript" | "text/dns" => None,
        ""
        | "text/plain"
        | "application/octet-stream"
        | "application/unknown"
        | "unknown/unknown"
        | "*/*"
        | "unk"
        | "no-type" => sniff(body, essence == "text/plain"),
        _ if essence.starts_with("image/") => None,
        _ if essence.ends_with("+xml") => Some(xml_kind(body)),
        _ if essence.ends_with("+json") || essence.starts_with("text/") => Some(Kind::Text),
        _ => None,
    }
}

/// The kind of XML, which may be a web page.
fn xml_kind(body: &[u8]) -> Kind {
    let head = body[..body.len().min(1024)].to_ascii_lowercase();
    match memchr::memmem::find(&head, b"<html").is_some() {
        true => Kind::Html,
        false => Kind::Xml,
    }
}

/// Detects the kind of a body from its first bytes. Text that is declared as such stays text even
/// if it looks like markup.
pub(crate) fn sniff(body: &[u8], is_declared_text: bool) -> Option<Kind> {
    let head = &body[..body.len().min(1024)];
    if is_pdf(head) {
        return Some(Kind::Pdf);
    }
    let has_utf16_mark = head.starts_with(&[0xff, 0xfe]) || head.starts_with(&[0xfe, 0xff]);
    if !has_utf16_mark && is_binary(head, is_declared_text) {
        return None;
    }
    if is_declared_text {
        return Some(Kind::Text);
    }
    let head = match has_utf16_mark {
        // In ASCII text encoded as UTF-16, every other byte is zero.
        true => head[2..].iter().copied().filter(|&b| b != 0).collect(),
        false => head.to_vec(),
    };
    let start = head.trim_ascii_start().to_ascii_lowercase();
    let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&start);
    let start = start.trim_ascii_start();
    Some(match () {
        () if start.starts_with(b"<?xml") => xml_kind(&head),
        () if start.starts_with(b"<rss") || start.starts_with(b"<feed") => Kind::Xml,
        () if starts_page(start) => Kind::Html,
        () => Kind::Text,
    })
}

/// Whether the first bytes are those of a PDF.
pub(crate) fn is_pdf(head: &[u8]) -> bool {
    head.starts_with(b"%PDF-")
}

/// Whether the first bytes are those of a file without text.
///
/// The MIME Sniffing Standard calls a body binary if it has a single control character. Real text
/// has such characters now and then, left over from word processors and terminals. Here a body is
/// binary only if it has at least five, and more than one in 32 bytes. A zero byte counts for more,
/// and is enough if the body is not declared as text.
fn is_binary(head: &[u8], is_declared_text: bool) -> bool {
    const MAGIC: [&[u8]; 8] = [
        b"%!PS-Adobe-",
        b"GIF87a",
        b"GIF89a",
        b"\x89PNG\r\n\x1a\n",
        b"\xff\xd8\xff",
        b"PK\x03\x04",
        b"Rar!\x1a\x07",
        b"\x1f\x8b\x08",
    ];
    let is_control = |b: &&u8| matches!(b, 0..=8 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f);
    let n_controls = head.iter().filter(is_control).count();
    let has_zero = memchr::memchr(0, head).is_some();
    MAGIC.iter().any(|magic| head.starts_with(magic))
        || n_controls * 32 > head.len() && (n_controls > 4 || has_zero)
        || has_zero && !is_declared_text
}

/// Whether a web page starts here, in lower case: the table of the MIME Sniffing Standard for
/// unknown types. As in browsers, tags may end with a slash or any whitespace, not only with a
/// space or `>`. A comment starts a page whatever its content.
fn starts_page(start: &[u8]) -> bool {
    const TAGS: [&[u8]; 16] = [
        b"<!doctype html",
        b"<html",
        b"<head",
        b"<script",
        b"<iframe",
        b"<h1",
        b"<div",
        b"<font",
        b"<table",
        b"<a",
        b"<style",
        b"<title",
        b"<b",
        b"<body",
        b"<br",
        b"<p",
    ];
    let ends = |rest: &[u8]| {
        matches!(
            rest.first(),
            Some(b' ' | b'>' | b'/' | b'\t' | b'\n' | b'\x0c' | b'\r')
        )
    };
    let mut tags = TAGS.iter().filter_map(|tag| start.strip_prefix(*tag));
    start.starts_with(b"<!--") || tags.any(ends)
}

/// The text of a web page that was fetched from `url`.
pub(crate) fn html(source: &str, url: Option<&str>, config: &html::HtmlConfig) -> Page {
    let url = url.and_then(|url| Url::parse(url).ok());
    let extracted = html::extract(source, url.as_ref(), config);
    let details = extracted.warnings.iter().map(|warning| warning.to_string());
    Page {
        title: extracted.metadata.title.clone(),
        language: extracted.metadata.lang.clone(),
        text: extracted.text,
        images: extracted.images,
        details: details.collect(),
        metadata: Some(Box::new(extracted.metadata)),
        ..Page::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(content_type: Option<&str>, body: &[u8], expected: Result<&str, Reason>) {
        let config = html::HtmlConfig::default();
        let text = read(body, content_type, None, &config).map(|page| page.text.trim().to_owned());
        let text = text.map_err(|(reason, _)| reason);
        assert_eq!(text.as_ref().map(String::as_str).map_err(|r| *r), expected);
    }

    #[test]
    fn by_type() {
        check(Some("text/html"), b"<p>rose</p>", Ok("rose"));
        check(Some("TEXT/HTML ; charset=x"), b"<p>rose</p>", Ok("rose"));
        check(Some("text/plain"), b"<p>rose</p>", Ok("<p>rose</p>"));
        check(Some("application/json"), b"{\"a\":1}", Ok("{\"a\":1}"));
        check(Some("text/xml"), b"<?xml version='1.0'?><a>b</a>", Ok("b"));
        check(
            Some("application/xml"),
            b"<?xml version='1.0'?><html><p>b",
            Ok("b"),
        );
        check(Some("image/svg+xml"), b"<svg/>", Err(Reason::MediaType));
        check(Some("image/png"), b"text", Err(Reason::MediaType));
        check(Some("text/css"), b"a{}", Err(Reason::MediaType));
        check(Some("application/pdf"), b"%PDF", Err(Reason::BadPdf));
    }

    #[test]
    fn by_content() {
        check(None, b"  <!DOCTYPE html><p>rose", Ok("rose"));
        check(None, b"rose", Ok("rose"));
        check(None, b"\x89PNG\0", Err(Reason::MediaType));
        check(None, b"%PDF-1.7\n1 0 obj", Err(Reason::BadPdf));
        check(Some("text/plain"), b"GIF\0\x01", Err(Reason::MediaType));
        check(Some("application/octet-stream"), b"<html>rose", Ok("rose"));
    }

    /// The table of the MIME Sniffing Standard, with the bytes that may precede and follow the
    /// tags.
    #[test]
    fn issue_19_pages_without_a_media_type() {
        let kind = |body: &str| sniff(body.as_bytes(), false);
        for tag in [
            "<!DOCTYPE HTML",
            "<HTML",
            "<head",
            "<Script",
            "<iframe",
            "<h1",
            "<div",
            "<font",
            "<table",
            "<a",
            "<style",
            "<title",
            "<b",
            "<body",
            "<br",
            "<p",
        ] {
            for before in ["", "\u{feff}\n", " \t\r\n\x0c", "\n\u{feff} "] {
                for after in [" class=x>", ">", "\n>"] {
                    let body = format!("{before}{tag}{after}rose");
                    assert_eq!(kind(&body), Some(Kind::Html), "{body:?}");
                }
            }
            assert_eq!(kind(&format!("{tag}x>")), Some(Kind::Text), "{tag}");
            assert_eq!(kind(&format!("x{tag}>")), Some(Kind::Text), "{tag}");
        }
        assert_eq!(kind("<!-- x -->"), Some(Kind::Html));
        assert_eq!(kind("<br/>"), Some(Kind::Html));
        assert_eq!(kind("<blockquote>"), Some(Kind::Text));
        let utf16 = "\u{feff}<html>".encode_utf16().flat_map(u16::to_le_bytes);
        let utf16: Vec<u8> = utf16.collect();
        assert_eq!(sniff(&utf16, false), Some(Kind::Html));
    }

    #[test]
    fn issue_19_text_with_a_control_character() {
        for control in ["\x0b", "\x08", "\x01", "\0"] {
            let text = format!("a rose is a rose is {control} a rose is a rose");
            check(Some("text/plain"), text.as_bytes(), Ok(&text));
        }
        let text = "a rose is a rose is \x0b a rose is a rose";
        check(None, text.as_bytes(), Ok(text));
        check(
            Some("text/plain"),
            b"rose \x0b\x08 rose",
            Ok("rose \x0b\x08 rose"),
        );
        let binary: Vec<u8> = (0..=255).collect();
        check(Some("text/plain"), &binary, Err(Reason::MediaType));
    }

    #[test]
    fn charset_of_the_header() {
        check(Some("text/plain; charset=koi8-r"), b"\xd2", Ok("р"));
    }
}
