//! The text of feeds (RSS, Atom) and of other XML.
//!
//! A feed becomes one document: the title of the feed, then of each entry its title and its
//! contents. Contents are HTML packed into XML; they are unpacked like any page. XML that is no
//! feed gives its character data, elements apart by a line. Damaged XML gives what was read before
//! the damage.

use quick_xml::events::Event;
use quick_xml::reader::Reader;

use crate::body::payload::{self, Page};
use crate::html;

/// Elements of a feed that hold text for readers.
const READABLE: [&str; 7] = [
    "title",
    "description",
    "summary",
    "content",
    "encoded",
    "subtitle",
    "tagline",
];

/// Reads XML.
pub(crate) fn read(source: &str) -> Page {
    let mut state = State::default();
    let mut reader = Reader::from_str(source);
    reader.config_mut().check_end_names = false;
    loop {
        match reader.read_event() {
            Ok(Event::Start(tag)) => {
                state.n_elements += 1;
                state.open(tag.local_name().as_ref());
            }
            Ok(Event::End(tag)) => state.close(tag.local_name().as_ref()),
            Ok(Event::Text(text)) => state.add(&text),
            Ok(Event::CData(data)) => state.add(&data),
            Ok(Event::GeneralRef(name)) => state.add(&reference(&name)),
            Ok(Event::Eof) | Err(_) => return state.finish(),
            Ok(_) => {}
        }
    }
}

#[derive(Default)]
struct State {
    n_elements: u64,
    is_feed: bool,
    title: Option<String>,
    text: String,
    /// The readable element being read, and its text so far.
    element: Option<(String, String)>,
}

impl State {
    fn open(&mut self, name: &str) {
        if self.n_elements == 1 {
            self.is_feed = matches!(name, "rss" | "feed" | "RDF");
        }
        if self.is_feed && self.element.is_none() && READABLE.contains(&name) {
            self.element = Some((name.to_owned(), String::new()));
        }
        if !self.is_feed {
            self.end_line();
        }
    }

    fn close(&mut self, name: &str) {
        if !self.is_feed {
            self.end_line();
        }
        let Some((_, content)) = self.element.take_if(|(open, _)| open == name) else {
            return;
        };
        let content = payload::html(&content, None, &html::Config::default()).text;
        let content = content.trim();
        if name == "title" && self.title.is_none() {
            self.title = Some(content.to_owned()).filter(|title| !title.is_empty());
        }
        self.text.push_str(content);
        self.end_line();
    }

    fn add(&mut self, text: &str) {
        match (&mut self.element, self.is_feed) {
            (Some((_, content)), _) => content.push_str(text),
            (None, false) => self.text.push_str(text),
            (None, true) => {}
        }
    }

    fn end_line(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
    }

    fn finish(mut self) -> Page {
        if let Some((name, _)) = self.element.clone() {
            self.close(&name);
        }
        Page {
            title: self.title,
            text: self.text,
            ..Page::default()
        }
    }
}

/// What `&name;` stands for; unknown names stay as they are.
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

    #[test]
    fn other_xml_and_damage() {
        check("<a><b>one</b><c>two&#x21;</c></a>", None, "one two!");
        check("<a>one<b", None, "one");
        check("<rss><title>cut", Some("cut"), "cut");
    }

    proptest! {
        #[test]
        fn any_text(source in "\\PC{0,60}|[<>/a-c&;#! \\[\\]CDAT]{0,60}") {
            let page = read(&source);
            prop_assert!(page.text.len() <= 2 * source.len() + 2);
        }
    }
}
