//! Anchor texts of links, and their location on the page.
//!
//! The *anchor* of a link is its text, or the `alt` of an image in it. Its *tag path* is the link
//! and the two elements around it, each with its first class: `ul.menu>li>a`. Links in a menu share
//! one path and links in the text share another, so the path shows the kind of link.
//!
//! No tree is built: an element is open until its end tag, or until an element around it ends.

use std::collections::HashMap;

use super::tag::Tag;
use super::token::{Name, Tokenizer};

/// Anchors and tag paths of all links of a page, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Anchors {
    /// All anchors, concatenated.
    text: String,
    /// The end of each anchor, and the number of its path.
    ends: Vec<(u32, u32)>,
    /// Distinct paths.
    paths: Vec<String>,
}

/// Maximum bytes of one anchor.
const MAX_ANCHOR: usize = 200;
/// Maximum bytes of a name or class in a path.
const MAX_NAME: usize = 24;
/// Maximum number of distinct paths per page; further paths are empty.
const MAX_PATHS: usize = 1000;
/// Maximum number of open elements.
const MAX_DEPTH: usize = 512;
/// Number of elements in a path.
const LENGTH: usize = 3;

impl Anchors {
    /// Anchor and tag path of each link.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        (0..self.ends.len()).map(|at| self.get(at))
    }

    /// Anchor and tag path of a link.
    #[must_use]
    pub fn get(&self, at: usize) -> (&str, &str) {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before].0);
        let (end, path) = self.ends[at];
        let path = self.paths.get(path as usize).map_or("", String::as_str);
        (&self.text[start as usize..end as usize], path)
    }

    /// Number of links.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no links.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The anchors of the kept links.
    pub(super) fn kept(mut self, stays: &[bool]) -> Self {
        let mut kept = Self {
            paths: std::mem::take(&mut self.paths),
            ..Self::default()
        };
        for (at, _) in stays.iter().enumerate().filter(|&(_, stays)| *stays) {
            if at < self.ends.len() {
                kept.text.push_str(self.get(at).0);
                kept.ends.push((kept.text.len() as u32, self.ends[at].1));
            }
        }
        kept
    }
}

/// An open element.
#[derive(Debug)]
struct Element {
    tag: Tag,
    /// Name and class, as in a path.
    name: String,
}

/// Tracks anchors while a page is read.
#[derive(Debug, Default)]
pub(super) struct Follower {
    pub(super) found: Anchors,
    open: Vec<Element>,
    /// Numbers of paths.
    numbers: HashMap<String, u32>,
    /// Whether text belongs to the last link.
    is_in_link: bool,
}

impl Follower {
    /// Called when an element starts; `n_links` includes its own links.
    pub(super) fn start(&mut self, name: Name<'_>, tokenizer: &Tokenizer<'_>, n_links: usize) {
        let tag = name.tag;
        if may_stay_open(tag) && self.open.last().is_some_and(|last| last.tag == tag) {
            self.open.pop();
        }
        let element = Element {
            tag,
            name: named(name, tokenizer),
        };
        if self.is_in_link
            && matches!(tag, Tag::Img | Tag::Image)
            && let Some(alt) = tokenizer.attribute("alt")
        {
            self.text(&alt);
        }
        while self.found.ends.len() < n_links {
            let path = self.path(&element.name);
            self.found.ends.push((self.found.text.len() as u32, path));
            self.is_in_link = tag == Tag::A;
        }
        if !tag.is_void() && self.open.len() < MAX_DEPTH {
            self.open.push(element);
        }
    }

    /// Called when an element ends.
    pub(super) fn end(&mut self, name: Name<'_>) {
        if name.tag == Tag::A {
            self.is_in_link = false;
        }
        let same = |open: &Element| {
            open.tag == name.tag && (name.tag != Tag::Other || open.name.starts_with(name.raw))
        };
        // An end tag without a match nearby is an error of the page.
        let from = self.open.len().saturating_sub(16);
        if let Some(at) = self.open[from..].iter().rposition(same) {
            self.open.truncate(from + at);
        }
    }

    /// Called for text.
    pub(super) fn text(&mut self, text: &str) {
        if !self.is_in_link {
            return;
        }
        let n = self.found.ends.len();
        let start = n
            .checked_sub(2)
            .map_or(0, |before| self.found.ends[before].0);
        for word in text.split_whitespace() {
            let room = MAX_ANCHOR.saturating_sub(self.found.text.len() - start as usize);
            if room < word.len() + 1 {
                return;
            }
            if self.found.text.len() > start as usize {
                self.found.text.push(' ');
            }
            self.found.text.push_str(word);
            if let Some(end) = self.found.ends.last_mut() {
                end.0 = self.found.text.len() as u32;
            }
        }
    }

    /// The number of the path of a link.
    fn path(&mut self, link: &str) -> u32 {
        let around = self.open.len().saturating_sub(LENGTH - 1);
        let mut path = String::new();
        for element in &self.open[around..] {
            path.push_str(&element.name);
            path.push('>');
        }
        path.push_str(link);
        if let Some(&known) = self.numbers.get(&path) {
            return known;
        }
        let at = self.found.paths.len() as u32;
        if self.found.paths.len() < MAX_PATHS {
            self.found.paths.push(path.clone());
            self.numbers.insert(path, at);
        }
        at
    }
}

/// Elements whose end tag may be missing.
fn may_stay_open(tag: Tag) -> bool {
    matches!(
        tag,
        Tag::Li | Tag::P | Tag::Td | Tag::Th | Tag::Tr | Tag::Dt | Tag::Dd | Tag::Option
    )
}

/// The name of an element, and its first class.
fn named(name: Name<'_>, tokenizer: &Tokenizer<'_>) -> String {
    let mut text = match name.tag {
        Tag::Other => cut(name.raw).to_ascii_lowercase(),
        tag => tag.name().to_owned(),
    };
    let class = tokenizer.attribute("class");
    if let Some(class) = class
        .as_deref()
        .and_then(|all| all.split_whitespace().next())
    {
        text.push('.');
        text.push_str(cut(class));
    }
    text
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_NAME)]
}

#[cfg(test)]
mod tests {
    use super::super::{HtmlConfig, Links, Switch, extract};
    use url::Url;

    #[track_caller]
    fn check(html: &str, expected: &[(&str, &str)]) {
        let config = HtmlConfig {
            links: Links::Collect,
            anchors: Switch::On,
            ..HtmlConfig::default()
        };
        let url = Url::parse("http://a.example/").unwrap();
        let metadata = extract(html, Some(&url), &config).metadata;
        let anchors = metadata.anchors.unwrap();
        assert_eq!(anchors.iter().collect::<Vec<_>>(), expected);
        assert_eq!(anchors.len(), metadata.links.len());
    }

    #[test]
    fn text_and_place_of_links() {
        check(
            "<ul class='menu top'><li><a href=/x>The  <b>first</b>\n one</a> no<li class=b><a href=/y>2</a></ul>z",
            &[("The first one", "ul.menu>li>a"), ("2", "ul.menu>li.b>a")],
        );
        check(
            "<a href=/>x</a><x-y><a class=c href=/1><img alt='An image'></a>",
            &[("x", "a"), ("An image", "x-y>a.c")],
        );
    }

    /// Links that are not kept take their anchors with them.
    #[test]
    fn anchors_stay_with_their_links() {
        check(
            "<a href='mailto:x@y'>mail</a><p><a href='/1'>one</a><a href='javascript:x'>no</a><a href=/2>two",
            &[("one", "p>a"), ("two", "p>a")],
        );
        check(
            "<link rel=next href=/n><a href=/1>one",
            &[("", "link"), ("one", "a")],
        );
    }

    #[test]
    fn anchors_are_bounded() {
        let html = format!("<a href=/>{}</a>", "word ".repeat(1000));
        let config = HtmlConfig {
            links: Links::Collect,
            anchors: Switch::On,
            ..HtmlConfig::default()
        };
        let anchors = extract(&html, None, &config).metadata.anchors.unwrap();
        assert!(anchors.get(0).0.len() <= 200);
        let html: String = (0..5000)
            .map(|n| format!("<p class=c{n}><a href=/></a></p>"))
            .collect();
        let anchors = extract(&html, None, &config).metadata.anchors.unwrap();
        assert_eq!(anchors.len(), 5000);
        assert!(anchors.iter().filter(|(_, path)| path.is_empty()).count() >= 4000);
    }

    #[test]
    fn nobody_pays_who_does_not_ask() {
        let config = HtmlConfig {
            links: Links::Collect,
            ..HtmlConfig::default()
        };
        assert_eq!(
            extract("<a href=/>x</a>", None, &config).metadata.anchors,
            None
        );
    }
}
