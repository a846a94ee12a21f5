//! Extracts text and links from PDF files, with the crate `lopdf`.
//!
//! *Question.* Papers, manuals and laws are on the web as PDF. What is their text, and what are
//! their links?
//!
//! *Idea.* The content of a page is a program that draws. Its strings, decoded by their fonts, are
//! the text, in drawing order. A move to another line ends a line; a move within a line and a wide
//! gap separate words. Links are the URLs of annotations, and the title is the one that the file
//! declares.
//!
//! *Bounds.* A hostile PDF can expand without end. All limits count work, not time, so that the
//! same file gives the same text everywhere: objects ([`MAX_OBJECTS`]), bytes of object streams
//! ([`OBJECT_BYTES`] and four times the file), bytes of one page ([`PAGE_BYTES`]) and of all pages
//! ([`TOTAL_BYTES`]), pages and fonts. Content beyond a limit is left out and noted. Brackets nest
//! at most as deep as `lopdf` reads them. If the parser fails, the file counts as damaged.
//!
//! *Not for* scanned pages, whose text is a picture, nor for layout: columns and tables appear in
//! drawing order.

use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};

use lopdf::content::Content;
use lopdf::{Dictionary, Document, Encoding, Error, LoadOptions, Object, ObjectId};
use url::Url;

use super::payload::Page;
use crate::document::Reason;
use crate::html::{self, Link, Links, Metadata};

/// Maximum number of objects in a file.
pub(super) const MAX_OBJECTS: usize = 500_000;

/// Bytes that object streams may expand to, in addition to four times the file size.
pub(super) const OBJECT_BYTES: usize = 16 << 20;

/// Bytes that the content of one page may expand to.
pub(super) const PAGE_BYTES: usize = 4 << 20;

/// Bytes that the contents of all pages and fonts may expand to.
pub(super) const TOTAL_BYTES: usize = 64 << 20;

const MAX_PAGES: usize = 20_000;
const MAX_FONTS: usize = 2_000;
const MAX_PAGE_FONTS: usize = 256;
const FONT_BYTES: usize = 1 << 20;
const MAX_LINKS: usize = 20_000;

/// Maximum nesting of page groups.
const MAX_DEPTH: usize = 64;

/// The message for a file that requires a password.
const ENCRYPTED: &str = "encrypted PDF";

/// Minimum gap in a line that separates words, in thousandths of the font size.
const WORD_GAP: f32 = 180.0;

/// Reads a file fetched from `url`. An error says why it has no text.
pub(super) fn read(
    body: &[u8],
    url: Option<&str>,
    config: &html::HtmlConfig,
) -> Result<Page, (Reason, String)> {
    // The parser is not supposed to panic. If it does, the file counts as damaged.
    let read = catch_unwind(AssertUnwindSafe(|| read_file(body, url, config)));
    let read = read.unwrap_or_else(|_| Err("damaged PDF: the parser failed".to_owned()));
    match read {
        Ok(page) if page.text.is_empty() => {
            Err((Reason::MediaType, "application/pdf without text".to_owned()))
        }
        read => read.map_err(|detail| (Reason::BadPdf, detail)),
    }
}

fn read_file(body: &[u8], url: Option<&str>, config: &html::HtmlConfig) -> Result<Page, String> {
    let n_objects = memchr::memmem::find_iter(body, b" obj").count();
    if n_objects > MAX_OBJECTS {
        return Err(format!("PDF with more than {MAX_OBJECTS} objects"));
    }
    let options = LoadOptions {
        max_decompressed_size: Some(stream_limit(body)),
        ..LoadOptions::default()
    };
    let document = Document::load_mem_with_options(body, options).map_err(|error| match error {
        Error::InvalidPassword | Error::Decryption(_) => ENCRYPTED.to_owned(),
        error => format!("damaged PDF: {error}"),
    })?;
    if document.is_encrypted() {
        return Err(ENCRYPTED.to_owned());
    }
    let mut reader = Reader {
        document: &document,
        encodings: HashMap::new(),
        left: TOTAL_BYTES,
        n_unread: 0,
        text: String::new(),
        links: Vec::new(),
        base: url.and_then(|url| Url::parse(url).ok()),
        wants_links: config.links != Links::Skip,
    };
    let mut n_pages = 0;
    for page in document.page_iter().take(MAX_PAGES) {
        n_pages += 1;
        reader.page(page);
    }
    if n_pages == 0 {
        return Err("damaged PDF: no pages".to_owned());
    }
    Ok(reader.finish())
}

/// The number of bytes that each object stream may expand to, so that all together stay within a
/// limit. The type of a stream may be written with escapes, so every escape in a name counts as a
/// stream as well.
fn stream_limit(body: &[u8]) -> usize {
    let named = memchr::memmem::find_iter(body, b"/ObjStm").count();
    let escapes = memchr::memchr_iter(b'#', body).filter(|&at| {
        let digits = body.get(at + 1..at + 3);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
            && body[at.saturating_sub(6)..at].contains(&b'/')
    });
    let n_streams = 1 + named + escapes.count();
    let all = OBJECT_BYTES.saturating_add(4 * body.len());
    (all / n_streams).clamp(4 << 10, OBJECT_BYTES)
}

struct Reader<'d> {
    document: &'d Document,
    /// Keyed by the memory address of the font's dictionary.
    encodings: HashMap<usize, Option<Encoding<'d>>>,
    /// Bytes that may still be expanded.
    left: usize,
    /// Pages that were not read, or not completely.
    n_unread: usize,
    text: String,
    links: Vec<Link>,
    base: Option<Url>,
    wants_links: bool,
}

impl<'d> Reader<'d> {
    fn page(&mut self, page: ObjectId) {
        if self.wants_links {
            self.annotations(page);
        }
        let limit = PAGE_BYTES.min(self.left);
        let content = self.document.get_page_content_with_limit(page, limit);
        let Some(content) = content.ok().filter(|_| limit > 0) else {
            self.left = self.left.saturating_sub(PAGE_BYTES / 4);
            self.n_unread += 1;
            return;
        };
        self.left = self.left.saturating_sub(content.len());
        let fonts = self.fonts(page);
        self.draw(&content, &fonts);
        self.end_line();
    }

    /// The fonts of a page by name: its own, or those of the nearest page group above it that has
    /// fonts.
    fn fonts(&self, page: ObjectId) -> BTreeMap<Vec<u8>, &'d Dictionary> {
        let document = self.document;
        let within = |from: &'d Dictionary, key: &[u8]| -> Option<&'d Dictionary> {
            let (_, found) = document.dereference(from.get(key).ok()?).ok()?;
            found.as_dict().ok()
        };
        let mut node = document.get_dictionary(page).ok();
        for _ in 0..MAX_DEPTH {
            let Some(current) = node else { break };
            if let Some(resources) = within(current, b"Resources") {
                let Some(fonts) = within(resources, b"Font") else {
                    break;
                };
                let names = fonts.iter().map(|(name, _)| name).take(MAX_PAGE_FONTS);
                let font = |name: &Vec<u8>| Some((name.clone(), within(fonts, name)?));
                return names.filter_map(font).collect();
            }
            node = within(current, b"Parent");
        }
        BTreeMap::new()
    }

    /// Takes the strings from the program of a page.
    fn draw(&mut self, content: &[u8], fonts: &BTreeMap<Vec<u8>, &'d Dictionary>) {
        let mut font = None;
        let mut line = 0.0;
        for operation in <Content>::decode_iter(content) {
            let Ok(operation) = operation else {
                self.n_unread += 1;
                return;
            };
            let operands = &operation.operands;
            match operation.operator.as_str() {
                "Tf" => {
                    let name = operands.first().and_then(|name| name.as_name().ok());
                    font = name.and_then(|name| fonts.get(name)).copied();
                    if let Some(font) = font {
                        self.know(font);
                    }
                }
                "Tj" | "TJ" => self.show(font, operands),
                "'" | "\"" => {
                    self.end_line();
                    self.show(font, operands.last().map_or(&[], std::slice::from_ref));
                }
                "T*" | "ET" => self.end_line(),
                "Td" | "TD" => match number(operands, 1) {
                    0.0 => self.end_word(),
                    _ => self.end_line(),
                },
                "Tm" => {
                    let before = std::mem::replace(&mut line, number(operands, 5));
                    match (before - line).abs() < 1.0 {
                        true => self.end_word(),
                        false => self.end_line(),
                    }
                }
                _ => {}
            }
        }
    }

    /// Caches the encoding of a font.
    fn know(&mut self, font: &'d Dictionary) {
        let key = std::ptr::from_ref(font) as usize;
        if self.encodings.contains_key(&key) {
            return;
        }
        let limit = FONT_BYTES.min(self.left);
        let encoding = match self.encodings.len() < MAX_FONTS {
            true => font.get_font_encoding_with_limit(self.document, limit).ok(),
            false => None,
        };
        self.left = self.left.saturating_sub(FONT_BYTES / 64);
        self.encodings.insert(key, encoding);
    }

    fn show(&mut self, font: Option<&'d Dictionary>, operands: &[Object]) {
        let Some(font) = font else { return };
        let key = std::ptr::from_ref(font) as usize;
        let Some(Some(encoding)) = self.encodings.get(&key) else {
            return;
        };
        for operand in operands {
            let parts = match operand {
                Object::Array(parts) => parts.as_slice(),
                other => std::slice::from_ref(other),
            };
            for part in parts {
                match part {
                    Object::String(bytes, _) => {
                        if let Ok(text) = Document::decode_text(encoding, bytes) {
                            push(&mut self.text, &text);
                        }
                    }
                    gap if gap.as_float().is_ok_and(|gap| -gap > WORD_GAP) => {
                        space(&mut self.text, ' ');
                    }
                    _ => {}
                }
            }
        }
    }

    fn end_word(&mut self) {
        space(&mut self.text, ' ');
    }

    fn end_line(&mut self) {
        space(&mut self.text, '\n');
    }

    /// Takes the URLs that the annotations of a page link to.
    fn annotations(&mut self, page: ObjectId) {
        for annotation in self.document.get_page_annotations(page).unwrap_or_default() {
            let action = self.document.get_dict_in_dict(annotation, b"A");
            let Ok(address) = action.and_then(|action| action.get(b"URI")) else {
                continue;
            };
            let address = self.document.dereference(address);
            let Ok(Ok(bytes)) = address.map(|(_, address)| address.as_str()) else {
                continue;
            };
            if self.links.len() < MAX_LINKS {
                let text = String::from_utf8_lossy(bytes);
                self.links.extend(link(text.trim(), self.base.as_ref()));
            }
        }
    }

    fn finish(mut self) -> Page {
        let end = self.text.trim_end().len();
        self.text.truncate(end);
        let title = title(self.document);
        let details = match self.n_unread {
            0 => Vec::new(),
            n => vec![format!(
                "{n} pages of a PDF were not read: damaged or too large"
            )],
        };
        Page {
            title: title.clone(),
            text: self.text,
            details,
            metadata: Some(Box::new(Metadata {
                title,
                links: self.links,
                ..Metadata::default()
            })),
            ..Page::default()
        }
    }
}

/// Appends text; control characters are layout.
fn push(text: &mut String, more: &str) {
    for c in more.chars() {
        match c.is_control() || c.is_whitespace() {
            true => space(text, ' '),
            false => text.push(c),
        }
    }
}

/// Adds a separator before the next text; a line end takes precedence over a space.
fn space(text: &mut String, separator: char) {
    match text.chars().next_back() {
        None | Some('\n') => {}
        Some(' ') if separator == '\n' => {
            text.pop();
            text.push('\n');
        }
        Some(' ') => {}
        Some(_) => text.push(separator),
    }
}

fn number(operands: &[Object], at: usize) -> f32 {
    let operand = operands.get(at);
    operand
        .and_then(|number| number.as_float().ok())
        .unwrap_or_default()
}

fn link(text: &str, base: Option<&Url>) -> Option<Link> {
    let url = match base {
        Some(base) => base.join(text),
        None => Url::parse(text),
    };
    let url = url
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https"))?;
    Some(Link {
        url: url.into(),
        nofollow: false,
    })
}

fn title(document: &Document) -> Option<String> {
    let info = document.trailer.get(b"Info").ok()?;
    let (_, info) = document.dereference(info).ok()?;
    let title = info.as_dict().ok()?.get(b"Title").ok()?;
    let (_, title) = document.dereference(title).ok()?;
    let title = lopdf::decode_text_string(title).ok()?;
    let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
    (!title.is_empty()).then_some(title)
}

#[cfg(test)]
mod tests;
