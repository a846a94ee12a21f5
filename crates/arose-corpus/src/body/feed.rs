//! Extracts the text of feeds (RSS, Atom) and of other XML.
//!
//! A feed becomes one document: the title of the feed, then the title and the contents of each
//! entry. Contents are HTML, either escaped or as elements of the XML itself. Both are extracted
//! like any page, so block elements separate words and inline elements do not. XML that is not a
//! feed gives its character data, with a line end between elements. End tags without a start tag
//! and bare `&` are skipped. If markup never ends, the text is everything before it. XML is
//! truncated if its last end tag is not that of the root.

use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

use crate::body::payload::{self, Page};
use crate::html;

/// Elements of a feed that contain text for readers.
const READABLE: [&str; 7] = [
    "title",
    "description",
    "summary",
    "content",
    "encoded",
    "subtitle",
    "tagline",
];

/// Maximum number of open elements that the XML reader tracks. It stores their names, which are not
/// needed here.
const MAX_OPEN: usize = 4096;

/// Reads XML.
pub(crate) fn read(source: &str) -> Page {
    let mut state = FeedState::default();
    let mut rest = source;
    let mut reader = reader(rest);
    let mut n_open = 0;
    loop {
        match reader.read_event() {
            Ok(Event::Start(tag)) => {
                state.open(&tag);
                n_open += 1;
            }
            Ok(Event::End(tag)) => state.close(tag.local_name().as_ref()),
            Ok(Event::Empty(tag)) => {
                state.open(&tag);
                state.close(tag.local_name().as_ref());
            }
            Ok(Event::Text(text)) => state.add(&text),
            Ok(Event::CData(data)) => state.add(&data),
            Ok(Event::GeneralRef(name)) => state.add(&reference(&name)),
            Ok(Event::Eof) => {
                let is_cut = state.n_elements > 0 && !state.is_closed;
                return state.finish(is_cut);
            }
            Err(_) => return state.finish(true),
            Ok(_) => {}
        }
        if n_open == MAX_OPEN {
            let used = usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX);
            rest = rest.get(used..).unwrap_or_default();
            (reader, n_open) = (self::reader(rest), 0);
        }
    }
}

fn reader(source: &str) -> Reader<&[u8]> {
    let mut reader = Reader::from_str(source);
    let config = reader.config_mut();
    config.check_end_names = false;
    config.allow_unmatched_ends = true;
    config.allow_dangling_amp = true;
    reader
}

#[derive(Default)]
struct FeedState {
    n_elements: u64,
    /// The name of the element that contains all others.
    root: String,
    /// Whether the last end tag is that of the root.
    is_closed: bool,
    is_feed: bool,
    title: Option<String>,
    text: String,
    /// The readable element being read.
    element: Option<Readable>,
}

/// An element of a feed that contains text for readers.
struct Readable {
    is_title: bool,
    /// Its contents as HTML.
    html: String,
    /// Elements open inside it.
    depth: usize,
}

impl FeedState {
    fn open(&mut self, tag: &BytesStart<'_>) {
        let name = tag.local_name();
        let name = name.as_ref();
        self.n_elements += 1;
        if self.n_elements == 1 {
            self.is_feed = matches!(name, "rss" | "feed" | "RDF");
            self.root = name.to_owned();
        }
        if !self.is_feed {
            self.end_line();
        } else if let Some(element) = &mut self.element {
            element.open(name, tag.attributes_raw());
        } else if READABLE.contains(&name) {
            self.element = Some(Readable {
                is_title: name == "title",
                html: String::new(),
                depth: 0,
            });
        }
    }

    fn close(&mut self, name: &str) {
        self.is_closed = name == self.root;
        if !self.is_feed {
            self.end_line();
        }
        match &mut self.element {
            Some(element) if element.depth > 0 => element.close(name),
            Some(_) if READABLE.contains(&name) || self.is_closed => self.end_element(),
            Some(_) | None => {}
        }
    }

    fn end_element(&mut self) {
        let Some(element) = self.element.take() else {
            return;
        };
        let content = payload::html(&element.html, None, &html::HtmlConfig::default()).text;
        let content = content.trim();
        if element.is_title && self.title.is_none() {
            self.title = Some(content.to_owned()).filter(|title| !title.is_empty());
        }
        self.text.push_str(content);
        self.end_line();
    }

    fn add(&mut self, text: &str) {
        match (&mut self.element, self.is_feed) {
            (Some(element), _) => element.add(text),
            (None, false) => self.text.push_str(text),
            (None, true) => {}
        }
    }

    fn end_line(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
    }

    fn finish(mut self, is_cut: bool) -> Page {
        self.end_element();
        Page {
            title: self.title,
            text: self.text,
            details: Vec::from_iter(is_cut.then(|| "the XML is truncated".to_owned())),
            is_cut,
            ..Page::default()
        }
    }
}

impl Readable {
    fn open(&mut self, name: &str, attributes: &str) {
        for part in ["<", name, " ", attributes.trim_end_matches(['/', ' ']), ">"] {
            self.html.push_str(part);
        }
        self.depth += 1;
    }

    fn close(&mut self, name: &str) {
        for part in ["</", name, ">"] {
            self.html.push_str(part);
        }
        self.depth -= 1;
    }

    /// Text directly in the element is HTML; text in elements inside it is text.
    fn add(&mut self, text: &str) {
        match self.depth {
            0 => self.html.push_str(text),
            _ => push_escaped(&mut self.html, text),
        }
    }
}

/// Appends text so that it is read as text, escaping only what could start a tag or a reference.
fn push_escaped(html: &mut String, text: &str) {
    let mut rest = text;
    while let Some(at) = memchr::memchr2(b'<', b'&', rest.as_bytes()) {
        let next = rest.as_bytes().get(at + 1).copied();
        let starts = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'!' | b'?' | b'#');
        html.push_str(&rest[..at]);
        html.push_str(match (next.is_none_or(starts), &rest[at..=at]) {
            (true, "<") => "&lt;",
            (true, _) => "&amp;",
            (false, sign) => sign,
        });
        rest = &rest[at + 1..];
    }
    html.push_str(rest);
}

/// The text of the reference `&name;`; unknown names are kept unchanged.
fn reference(name: &str) -> String {
    let number = name
        .strip_prefix('#')
        .and_then(|digits| match digits.strip_prefix(['x', 'X']) {
            Some(digits) => u32::from_str_radix(digits, 16).ok(),
            None => digits.parse().ok(),
        });
    match (number.and_then(char::from_u32), name) {
        (Some(letter), _) => letter.to_string(),
        (None, "amp") => "&".to_owned(),
        (None, "lt") => "<".to_owned(),
        (None, "gt") => ">".to_owned(),
        (None, "quot") => "\"".to_owned(),
        (None, "apos") => "'".to_owned(),
        (None, _) => format!("&{name};"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(source: &str, title: Option<&str>, words: &str) {
        let page = read(source);
        assert_eq!(page.title.as_deref(), title);
        let text: Vec<&str> = page.text.split_whitespace().collect();
        assert_eq!(text.join(" "), words);
    }

    #[test]
    fn rss() {
        check(
            "<?xml version='1.0'?><rss><channel><title>News</title><link>http://x</link><item><title>A &amp; B</title>\
             <description>&lt;p>one&lt;/p></description><content:encoded><![CDATA[<b>two</b>]]></content:encoded>\
             </item></channel></rss>",
            Some("News"),
            "News A & B one two",
        );
    }

    #[test]
    fn atom() {
        check(
            "<feed><title>F</title><entry><title>E</title><id>1</id><content type='xhtml'><div>x <i>y</i></div>\
             </content></entry></feed>",
            Some("F"),
            "F E x y",
        );
    }

    /// As in a page: block elements and line breaks separate words, inline elements do not.
    #[test]
    fn issue_19_elements_separate_words() {
        let parts = "<p>one</p><p>two</p>three<br/>four f<b>iv</b>e";
        let words = "one two three four five";
        check(
            &format!("<feed><content><div>{parts}</div></content></feed>"),
            None,
            words,
        );
        check(
            &format!("<rss><description>{parts}</description></rss>"),
            None,
            words,
        );
        let escaped = parts.replace('<', "&lt;");
        check(
            &format!("<rss><description>{escaped}</description></rss>"),
            None,
            words,
        );
        let data = format!("<rss><description><![CDATA[{parts}]]></description></rss>");
        check(&data, None, words);
        let prefixed = "<feed xmlns:h='x'><content><h:p>one</h:p><h:p>two</h:p></content></feed>";
        check(prefixed, None, "one two");
        let other = "<doc><p>one</p><p>two</p>three<br/>four</doc>";
        check(other, None, "one two three four");
    }

    #[test]
    fn text_inside_elements_of_a_feed_stays_text() {
        let source = "<feed><content><div>1 &lt; 2 &lt;b> &amp;lt; <a href='x?a&amp;b'>c</a>\
                      <script>hidden</script><![CDATA[<i>]]></div></content></feed>";
        check(source, None, "1 < 2 <b> &lt; c<i>");
    }

    #[test]
    fn an_element_inside_one_of_its_own_name() {
        let source = "<feed><content><content>one</content> two</content><title>T</title></feed>";
        check(source, Some("T"), "one two T");
    }

    #[test]
    fn other_xml_and_damage() {
        check("<a><b>one</b><c>two&#x21;</c></a>", None, "one two!");
        check("<a>one<b", None, "one");
        check("<rss><title>cut", Some("cut"), "cut");
    }

    /// Sloppy feeds are read to the end.
    #[test]
    fn issue_19_flaws_do_not_end_a_feed() {
        check(
            "<rss><item><title>Fish & Chips, AT&T;</title></p><description>one</b> two</description>\
             </item><item><title>three</title></item></rss>",
            Some("Fish & Chips, AT&T;"),
            "Fish & Chips, AT&T; one two three",
        );
    }

    #[test]
    fn issue_19_what_ends_too_early_is_cut() {
        let whole =
            "<?xml version='1.0'?><rss a='b'><item><title>A<br></title><![CDATA[x]]></item></rss>";
        assert!(!read(whole).is_cut);
        assert!(!read(&format!("{whole}\n<!-- end -->\n")).is_cut);
        for n in whole.find("<rss").unwrap() + 1..whole.len() {
            assert!(read(&whole[..n]).is_cut, "{n}");
        }
        for text in ["", "no XML at all", "<r/>"] {
            assert!(!read(text).is_cut, "{text}");
        }
    }

    /// Elements are read even if they are deeper than the reader tracks.
    #[test]
    fn issue_19_deep_elements() {
        let n = 3 * MAX_OPEN + 7;
        let source = format!("<r>{}x&amp;y{}z</r>", "<a>".repeat(n), "</a>".repeat(n));
        check(&source, None, "x&y z");
        assert!(!read(&source).is_cut);
    }

    proptest! {
        #[test]
        fn any_text(source in "\\PC{0,60}|[<>/a-c&;#! \\[\\]CDAT]{0,60}") {
            let page = read(&source);
            prop_assert!(page.text.len() <= 2 * source.len() + 2);
        }
    }
}
