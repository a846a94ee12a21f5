//! Sitemaps: the pages that a site lists itself.
//!
//! *Question.* robots.txt refers to files that list pages, or more such files. Which URLs are in
//! them?
//!
//! *Idea.* The bytes decide, not the media type of the server: gzip is decompressed, text that
//! begins with `<` is XML, and everything else is one URL per line. In XML only the names of
//! elements count, not their namespace, because many files have a wrong one. `loc` in `url` is a
//! page, and `loc` in `sitemap` another sitemap; if `loc` is missing, the URL may be the text of
//! the element itself. The `link` of an `item` or `entry` is a page too, because the protocol
//! allows RSS and Atom. The URLs of images and videos are ignored. Damaged XML gives the URLs
//! before the damage.
//!
//! URLs are returned as written, without surrounding whitespace. They are normalized and checked
//! like any link, relative to the sitemap.
//!
//! *Cost.* Linear. *Limits.* [`Limits`] on the bytes after decompression, and on entries: the
//! protocol allows 50 MiB and 50,000. Bytes and entries beyond that are not read, and the result
//! says so.

use std::io::Read;

use flate2::read::MultiGzDecoder;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

use crate::mark::without_mark;

/// Maximum number of bytes in the protocol, after decompression.
pub(crate) const MAX_BYTES: u64 = 50 << 20;

/// How much of a sitemap is read.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Maximum number of bytes, after decompression.
    pub max_bytes: u64,
    /// Maximum number of pages and sitemaps.
    pub max_entries: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_bytes: MAX_BYTES,
            max_entries: 50_000,
        }
    }
}

/// The contents of a sitemap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sitemap {
    /// Pages.
    pub pages: Vec<Listing>,
    /// Further sitemaps.
    pub sitemaps: Vec<Listing>,
    /// Whether a limit was reached.
    pub is_cut: bool,
    /// Whether something could not be read: compressed data, XML, or a line that is not a URL.
    pub is_damaged: bool,
}

/// One listed URL.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// As written.
    pub url: String,
    /// Its last modification, as written.
    pub last_modified: Option<String>,
    /// Its rank among the pages of its site, as written.
    pub priority: Option<String>,
}

impl Listing {
    /// Returns its last modification, in seconds since 1970. A date without a time is the start of
    /// that day.
    pub(crate) fn modified(&self) -> Option<u32> {
        let text = self.last_modified.as_deref()?.trim();
        let seconds = arose_corpus::time::parse(text).or_else(|| mail_date(text));
        seconds?.try_into().ok()
    }

    /// Returns the priority as a number; NaN if there is none.
    pub(crate) fn priority(&self) -> f32 {
        let text = self.priority.as_deref();
        text.and_then(|text| text.parse().ok()).unwrap_or(f32::NAN)
    }
}

/// Returns the time of a date as in mail, which RSS has: `Wed, 02 Oct 2002 08:00:00 -0500`. Zones
/// are numbers or the names of RFC 822; others count as UTC.
fn mail_date(text: &str) -> Option<i64> {
    const HOURS: [(&str, i64); 8] = [
        ("EST", -5),
        ("EDT", -4),
        ("CST", -6),
        ("CDT", -5),
        ("MST", -7),
        ("MDT", -6),
        ("PST", -8),
        ("PDT", -7),
    ];
    let (date, zone) = text.rsplit_once([' ', '\t']).unwrap_or((text, ""));
    let number = zone.strip_prefix(['+', '-']);
    let number = number.filter(|n| n.len() == 4 && n.bytes().all(|b| b.is_ascii_digit()));
    let seconds_east = match number.and_then(|number| number.parse::<i64>().ok()) {
        Some(number) => {
            let seconds = (number / 100 * 60 + number % 100) * 60;
            if zone.starts_with('-') {
                -seconds
            } else {
                seconds
            }
        }
        None => {
            let named = HOURS.iter().find(|(name, _)| *name == zone);
            named.map_or(0, |(_, hours)| hours * 3600)
        }
    };
    let date = if number.is_some() { date } else { text };
    let seconds = i64::try_from(crate::date::parse(date)?).ok()?;
    seconds.checked_sub(seconds_east)
}

/// Reads a sitemap; any bytes are legal.
///
/// ```
/// use arose_crawl::sitemap::{Limits, parse};
/// let sitemap = parse(b"<urlset><url><loc> http://h/?a&amp;b </loc></url>", Limits::default());
/// assert_eq!(sitemap.pages[0].url, "http://h/?a&b");
/// ```
#[must_use]
pub fn parse(bytes: &[u8], limits: Limits) -> Sitemap {
    let mut sitemap = Sitemap::default();
    let mut text = Vec::new();
    let read = if bytes.starts_with(&[0x1F, 0x8B]) {
        read_up_to(MultiGzDecoder::new(bytes), limits, &mut text)
    } else {
        read_up_to(bytes, limits, &mut text)
    };
    sitemap.is_damaged = read.is_err();
    if text.len() as u64 > limits.max_bytes {
        sitemap.is_cut = true;
        text.pop();
    }
    let text = without_mark(&text);
    let text = String::from_utf8_lossy(&text);
    if text.trim_start().starts_with('<') {
        parse_xml(&text, limits, &mut sitemap);
    } else {
        parse_lines(&text, limits, &mut sitemap);
    }
    sitemap
}

/// Reads one byte more than the limit, to detect longer input.
fn read_up_to(reader: impl Read, limits: Limits, out: &mut Vec<u8>) -> std::io::Result<usize> {
    let limit = limits.max_bytes.saturating_add(1);
    reader.take(limit).read_to_end(out)
}

impl Sitemap {
    /// Adds an entry unless the limit is reached.
    fn push(&mut self, kind: EntryKind, entry: Listing, limits: Limits) {
        if self.pages.len() + self.sitemaps.len() >= limits.max_entries {
            self.is_cut = true;
        } else if kind == EntryKind::Sitemap {
            self.sitemaps.push(entry);
        } else {
            self.pages.push(entry);
        }
    }
}

fn parse_lines(text: &str, limits: Limits, sitemap: &mut Sitemap) {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    for line in lines {
        if is_web(line) {
            let entry = Listing {
                url: line.to_owned(),
                ..Listing::default()
            };
            sitemap.push(EntryKind::Page, entry, limits);
        } else {
            sitemap.is_damaged = true;
        }
        if sitemap.is_cut {
            return;
        }
    }
}

fn is_web(line: &str) -> bool {
    let has_scheme = |scheme: &str| {
        let start = line.get(..scheme.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    };
    has_scheme("http://") || has_scheme("https://")
}

fn parse_xml(text: &str, limits: Limits, sitemap: &mut Sitemap) {
    let mut reader = Reader::from_str(text);
    let config = reader.config_mut();
    config.check_end_names = false;
    config.allow_dangling_amp = true;
    let mut state = State {
        sitemap,
        limits,
        open: Vec::new(),
        n_deeper: 0,
        draft: None,
    };
    while !state.sitemap.is_cut {
        match reader.read_event() {
            Ok(Event::Start(tag)) => state.start(&tag),
            Ok(Event::Empty(tag)) => {
                state.start(&tag);
                state.end();
            }
            Ok(Event::End(_)) => state.end(),
            Ok(Event::Text(text)) => state.text(&text),
            Ok(Event::CData(data)) => state.text(&data),
            Ok(Event::GeneralRef(name)) => state.text(&reference(&name)),
            Ok(Event::Eof) => break,
            Ok(_) => {}
            Err(_) => {
                state.sitemap.is_damaged = true;
                break;
            }
        }
    }
    state.finish_entry();
}

/// Returns the text of an entity; empty if it is not predefined in XML.
fn reference(name: &str) -> String {
    let entity = format!("&{name};");
    quick_xml::escape::unescape(&entity).map_or_else(|_| String::new(), |text| text.into_owned())
}

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EntryKind {
    Page,
    Sitemap,
    /// An entry of a feed, whose URL is in `link`.
    FeedItem,
}

/// Elements with a meaning here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Element {
    Entry(EntryKind),
    Url,
    /// The `guid` of a feed, which may be the URL if there is no other.
    Fallback,
    LastModified,
    Priority,
    Other,
}

/// The state of the reader.
struct State<'s> {
    sitemap: &'s mut Sitemap,
    limits: Limits,
    /// The open elements, the innermost last; those below [`MAX_DEPTH`] are only counted.
    open: Vec<Element>,
    n_deeper: usize,
    /// The entry being read.
    draft: Option<OpenEntry>,
}

struct OpenEntry {
    kind: EntryKind,
    url: String,
    last_modified: String,
    priority: String,
    /// Text of the entry itself or of a fallback, for entries without `loc` or `link`.
    text: String,
}

/// Maximum nesting depth of elements. Sitemaps need four.
const MAX_DEPTH: usize = 64;

/// Maximum length of a text; the rest of a longer one is dropped.
const MAX_TEXT: usize = 8 << 10;

impl State<'_> {
    fn start(&mut self, tag: &BytesStart<'_>) {
        if self.open.len() == MAX_DEPTH {
            self.n_deeper += 1;
            return;
        }
        let element = self.element(tag.local_name().as_ref());
        if let Element::Entry(kind) = element {
            // An entry that was not closed ends where the next begins.
            self.finish_entry();
            self.draft = Some(OpenEntry {
                kind,
                url: String::new(),
                last_modified: String::new(),
                priority: String::new(),
                text: String::new(),
            });
        }
        let kind = self.draft.as_ref().map(|draft| draft.kind);
        if element == Element::Url && kind == Some(EntryKind::FeedItem) {
            self.take_href(tag);
        }
        self.open.push(element);
    }

    /// Returns the meaning of an element inside the innermost open one.
    fn element(&self, name: &str) -> Element {
        let name = name.to_ascii_lowercase();
        match (self.open.last(), name.as_str()) {
            (_, "url") => Element::Entry(EntryKind::Page),
            (_, "sitemap") => Element::Entry(EntryKind::Sitemap),
            (_, "item" | "entry") => Element::Entry(EntryKind::FeedItem),
            (Some(Element::Entry(EntryKind::Page | EntryKind::Sitemap)), "loc") => Element::Url,
            (Some(Element::Entry(EntryKind::FeedItem)), "link") => Element::Url,
            (Some(Element::Entry(EntryKind::FeedItem)), "guid") => Element::Fallback,
            (Some(Element::Entry(_)), "lastmod" | "updated" | "pubdate") => Element::LastModified,
            (Some(Element::Entry(EntryKind::Page)), "priority") => Element::Priority,
            _ => Element::Other,
        }
    }

    /// Takes the URL from an attribute, where Atom has it. Of several links, one leads to the page.
    fn take_href(&mut self, tag: &BytesStart<'_>) {
        let attribute = |name: &str| {
            let attribute = tag.try_get_attribute(name).ok().flatten()?;
            let value = quick_xml::escape::unescape(&attribute.value).ok()?;
            Some(value.into_owned())
        };
        let is_page = attribute("rel").is_none_or(|rel| rel == "alternate");
        if let Some(draft) = self.draft.as_mut().filter(|draft| draft.url.is_empty())
            && is_page
        {
            push_text(&mut draft.url, &attribute("href").unwrap_or_default());
        }
    }

    fn end(&mut self) {
        if self.n_deeper > 0 {
            self.n_deeper -= 1;
        } else if let Some(Element::Entry(_)) = self.open.pop() {
            self.finish_entry();
        }
    }

    fn text(&mut self, text: &str) {
        let Some(draft) = self.draft.as_mut().filter(|_| self.n_deeper == 0) else {
            return;
        };
        match self.open.last() {
            Some(Element::Url) => push_text(&mut draft.url, text),
            Some(Element::LastModified) => push_text(&mut draft.last_modified, text),
            Some(Element::Priority) => push_text(&mut draft.priority, text),
            Some(Element::Entry(_) | Element::Fallback) => push_text(&mut draft.text, text),
            _ => {}
        }
    }

    fn finish_entry(&mut self) {
        let Some(draft) = self.draft.take() else {
            return;
        };
        let mut url = draft.url.trim();
        if url.is_empty() {
            url = draft.text.trim();
            if !is_web(url) {
                return;
            }
        }
        let written = |text: &str| (!text.trim().is_empty()).then(|| text.trim().to_owned());
        let entry = Listing {
            url: url.to_owned(),
            last_modified: written(&draft.last_modified),
            priority: written(&draft.priority),
        };
        self.sitemap.push(draft.kind, entry, self.limits);
    }
}

/// Appends as much of `text` as fits.
fn push_text(out: &mut String, text: &str) {
    let room = MAX_TEXT.saturating_sub(out.len());
    let end = text.floor_char_boundary(room);
    out.push_str(&text[..end]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn urls(entries: &[Listing]) -> Vec<&str> {
        entries.iter().map(|entry| entry.url.as_str()).collect()
    }

    #[track_caller]
    fn check(text: &str, pages: &[&str], sitemaps: &[&str]) {
        let sitemap = parse(text.as_bytes(), Limits::default());
        assert_eq!(urls(&sitemap.pages), pages, "{text}");
        assert_eq!(urls(&sitemap.sitemaps), sitemaps, "{text}");
    }

    #[test]
    fn xml() {
        let text = "<?xml version='1.0'?><s:urlset xmlns:s='wrong'><s:url><s:loc>\n http://h/1 \n\
                    </s:loc><image:image><image:loc>http://h/i.png</image:loc></image:image>\
                    <s:lastmod>2005-01-01</s:lastmod></s:url><url><loc><![CDATA[http://h/2?a&b]]>\
                    </loc></url><url><loc>http://h/3?a&amp;b&#x26;c</loc></url></s:urlset>";
        check(
            text,
            &["http://h/1", "http://h/2?a&b", "http://h/3?a&b&c"],
            &[],
        );
        let sitemap = parse(text.as_bytes(), Limits::default());
        assert_eq!(
            sitemap.pages[0].last_modified.as_deref(),
            Some("2005-01-01")
        );
        assert!(!sitemap.is_damaged && !sitemap.is_cut);
    }

    #[test]
    fn indexes() {
        let text = "<sitemapindex><sitemap><loc>http://h/a.xml</loc></sitemap>\
                    <sitemap>\nhttp://h/b.xml?x&amp;y\n</sitemap></sitemapindex>";
        check(text, &[], &["http://h/a.xml", "http://h/b.xml?x&y"]);
    }

    #[test]
    fn dates_of_feeds() {
        for (text, expected) in [
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777)),
            ("Sun, 06 Nov 1994 08:49:37 +0000", Some(784_111_777)),
            ("06 Nov 1994 03:49:37 -0500", Some(784_111_777)),
            ("06 Nov 94 03:49:37 EST", Some(784_111_777)),
            ("Sun, 06 Nov 1994 10:19:37 +0130", Some(784_111_777)),
            ("1994-11-06T09:49:37+01:00", Some(784_111_777)),
            ("Sun, 06 Nov 1994 08:49:37 +12", Some(784_111_777)),
            ("yesterday", None),
        ] {
            let entry = Listing {
                last_modified: Some(text.to_owned()),
                ..Listing::default()
            };
            assert_eq!(entry.modified(), expected, "{text}");
        }
    }

    #[test]
    fn feeds() {
        let rss = "<rss><channel><link>http://h/</link><item><link>http://h/1</link></item>\
                   <item><title>no link</title></item><item><guid>http://h/2</guid></item>\
                   <item><guid>urn:3</guid></item></channel></rss>";
        check(rss, &["http://h/1", "http://h/2"], &[]);
        let atom = "<feed><link href='http://h/'/><entry><link rel='edit' href='http://h/e'/>\
                    <link href='http://h/1?a&amp;b'/><link rel='alternate' href='http://h/2'/></entry></feed>";
        check(atom, &["http://h/1?a&b"], &[]);
    }

    #[test]
    fn lines() {
        check(
            "\u{FEFF}http://h/1\r\n\n  HTTPS://h/2  \nftp://h\n",
            &["http://h/1", "HTTPS://h/2"],
            &[],
        );
        assert!(
            parse(b"<html><body>404", Limits::default())
                .pages
                .is_empty()
        );
        assert!(parse(b"not found", Limits::default()).is_damaged);
    }

    #[test]
    fn damage_keeps_what_came_before() {
        let text = "<urlset><url><loc>http://h/1</loc><url><loc>http://h/2?a&b=c</loc></url><url><loc>http://h/3</loc><";
        check(text, &["http://h/1", "http://h/2?a&b=c", "http://h/3"], &[]);
        assert!(parse(text.as_bytes(), Limits::default()).is_damaged);
    }

    #[test]
    fn limits_are_kept() {
        let text = "http://h/1\nhttp://h/2\nhttp://h/3";
        let limits = |max_bytes, max_entries| Limits {
            max_bytes,
            max_entries,
        };
        let few = parse(text.as_bytes(), limits(1000, 2));
        assert_eq!((few.pages.len(), few.is_cut), (2, true));
        let all = parse(text.as_bytes(), limits(1000, 3));
        assert_eq!((all.pages.len(), all.is_cut), (3, false));
        let short = parse(text.as_bytes(), limits(11, 9));
        assert_eq!((short.pages.len(), short.is_cut), (1, true));
    }

    /// A decompression bomb: ten megabytes of spaces in ten kilobytes.
    #[test]
    fn a_small_file_cannot_become_a_large_one() {
        use std::io::Write;
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(&vec![b' '; 10 << 20]).unwrap();
        let bomb = encoder.finish().unwrap();
        let limits = Limits {
            max_bytes: 1000,
            ..Limits::default()
        };
        assert!(parse(&bomb, limits).is_cut);
    }

    #[test]
    fn deep_nesting_is_linear() {
        let text = "<url>".repeat(200_000) + "<loc>http://h/</loc>";
        let sitemap = parse(text.as_bytes(), Limits::default());
        assert!(sitemap.pages.len() <= 1);
    }

    proptest! {
        #[test]
        fn any_bytes_are_legal(bytes in any::<Vec<u8>>(), tags in "(<(/?(url|loc|item|sitemap|link)|[!?]?[a&]{0,3})>?|h){0,20}") {
            let _ = parse(&bytes, Limits::default());
            let sitemap = parse(tags.as_bytes(), Limits::default());
            prop_assert!(sitemap.pages.len() <= tags.len());
        }
    }
}
