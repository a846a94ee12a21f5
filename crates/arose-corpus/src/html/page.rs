//! Metadata and links of a page, shared by all modes.
//!
//! The collector looks at each start tag once. URLs are resolved at the end, because `<base>` may
//! come late, and only on request. Resolving is the most expensive part of reading a page full of
//! links.

use std::borrow::Cow;

use url::Url;

use super::resolve::{Resolver, is_web};
use super::sink::Sink;
use super::tag::Tag;
use super::token::{Name, Tokenizer};
use super::{Anchors, HtmlWarning, Mode, Visibility, css};

/// A link to follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Absolute `http` or `https` URL; as written if the URL of the page is unknown.
    pub url: String,
    /// Whether the link has `rel=nofollow`.
    pub nofollow: bool,
}

/// The page in another language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alternate {
    /// As written: a language tag or `x-default`.
    pub lang: String,
    /// Resolved like [`Link::url`].
    pub url: String,
}

/// `<meta name=robots>`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetaRobots {
    /// The page asks not to be indexed.
    pub noindex: bool,
    /// The page asks that none of its links be followed.
    pub nofollow: bool,
}

/// `<meta http-equiv=refresh>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refresh {
    /// Delay in whole seconds.
    pub seconds: u32,
    /// The target, resolved like [`Link::url`]; none means the page itself.
    pub url: Option<String>,
}

/// Metadata of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// The first `<title>`, with whitespace collapsed; none if empty.
    pub title: Option<String>,
    /// `lang` of `<html>`, else `xml:lang`, else `<meta http-equiv=content-language>`.
    pub lang: Option<String>,
    /// The first `<base href>`, resolved against the URL of the page.
    pub base: Option<String>,
    /// The first `<link rel=canonical>`.
    pub canonical: Option<String>,
    /// `<link rel=alternate hreflang=…>` in order.
    pub alternates: Vec<Alternate>,
    /// `<link rel=alternate>` of an RSS or Atom type in order, the first 16; empty if links are
    /// [skipped](Links::Skip).
    pub feeds: Vec<String>,
    /// The union of all `<meta name=robots>`.
    pub robots: MetaRobots,
    /// The first `<meta http-equiv=refresh>`.
    pub refresh: Option<Refresh>,
    /// `href` of `a`, `area` and those `link`s that lead to a page, and `src` of `frame` and
    /// `iframe`, in order.
    pub links: Vec<Link>,
    /// URLs of the files needed to show the page, in order: styles, images, scripts, fonts, audio
    /// and video. Empty unless [`Links::CollectAll`].
    pub requisites: Vec<String>,
    /// How much of the text is hidden or inside links; none unless
    /// [`HtmlConfig::visibility`](super::HtmlConfig::visibility) is on.
    pub visibility: Option<Box<Visibility>>,
    /// Anchor text and tag path of each of [`Self::links`]; none unless
    /// [`HtmlConfig::anchors`](super::HtmlConfig::anchors) is on.
    pub anchors: Option<Box<Anchors>>,
    /// The mode in which the text was read: `visible` instead of `content` if a page has no main
    /// content. None if the document is not HTML.
    pub mode: Option<Mode>,
}

/// Whether to collect the URLs of links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Links {
    /// Leave [`Metadata::links`] empty.
    #[default]
    Skip,
    /// Collect and resolve them.
    Collect,
    /// Also collect the URLs of files needed to show the page.
    CollectAll,
}

/// Collects metadata while a page is read.
#[derive(Debug)]
pub(super) struct Collector {
    links: Links,
    found: Metadata,
    /// Links as written.
    hrefs: Hrefs,
    /// URLs of the files that the page needs, as written.
    requisites: Hrefs,
    reads_title: bool,
    reads_style: bool,
}

/// Links as written, in one string: a page consisting only of links has one per eight bytes.
#[derive(Debug, Default)]
struct Hrefs {
    text: String,
    /// Twice the end of each link, plus one if it must not be followed.
    ends: Vec<usize>,
}

impl Hrefs {
    fn push(&mut self, href: &str, nofollow: bool) {
        self.text.push_str(href);
        self.ends.push(self.text.len() << 1 | usize::from(nofollow));
    }

    fn iter(&self) -> impl Iterator<Item = (&str, bool)> {
        let mut start = 0;
        self.ends.iter().map(move |end| {
            let from = std::mem::replace(&mut start, end >> 1);
            (&self.text[from..end >> 1], end & 1 != 0)
        })
    }
}

impl Collector {
    pub(super) fn new(links: Links) -> Self {
        Self {
            links,
            found: Metadata::default(),
            hrefs: Hrefs::default(),
            requisites: Hrefs::default(),
            reads_title: false,
            reads_style: false,
        }
    }

    /// Processes the start tag just read. Returns the URL it points to, for the text of the caller.
    #[inline]
    pub(super) fn start<'a>(
        &mut self,
        name: Name<'a>,
        tokenizer: &Tokenizer<'a>,
    ) -> Option<Cow<'a, str>> {
        self.reads_title = false;
        if self.links == Links::CollectAll {
            self.require(name, tokenizer);
        }
        match name.tag {
            Tag::A | Tag::Area => return self.link(tokenizer, "href"),
            Tag::Frame | Tag::Iframe => return self.link(tokenizer, "src"),
            Tag::Title => {
                self.reads_title = self.found.title.is_none() && !name.is_foreign;
            }
            Tag::Base => {
                let href = || trimmed(tokenizer, "href");
                self.found.base = self.found.base.take().or_else(href);
            }
            Tag::Html => {
                let lang = || trimmed(tokenizer, "lang").or_else(|| trimmed(tokenizer, "xml:lang"));
                self.found.lang = self.found.lang.take().or_else(lang);
            }
            Tag::Link => self.link_element(tokenizer),
            Tag::Meta => self.meta(tokenizer),
            _ => {}
        }
        None
    }

    /// Processes text just read.
    #[inline]
    pub(super) fn text(&mut self, decoded: &str) {
        if self.reads_title {
            self.reads_title = false;
            let mut title = Sink::default();
            title.push(decoded);
            self.found.title = Some(title.text).filter(|title| !title.is_empty());
        }
    }

    /// Processes text that is not shown, which may be a style sheet.
    #[inline]
    pub(super) fn hidden_text(&mut self, raw: &str) {
        if self.reads_style {
            css::urls(raw).for_each(|url| self.requisites.push(url, false));
        }
    }

    /// Collects the URLs of files that are needed to show a tag.
    fn require(&mut self, name: Name<'_>, tokenizer: &Tokenizer<'_>) {
        self.reads_style = name.tag == Tag::Style;
        if let Some(style) = tokenizer.attribute("style") {
            css::urls(&style).for_each(|url| self.requisites.push(url, false));
        }
        let attributes: &[&str] = match name.tag {
            Tag::Link => {
                let rel = tokenizer.attribute("rel").unwrap_or_default();
                match SHOWN_RELATIONS.iter().any(|shown| has_word(&rel, shown)) {
                    true => &["href"],
                    false => &[],
                }
            }
            Tag::Img | Tag::Image => &["src", "href", "xlink:href"],
            Tag::Body | Tag::Table | Tag::Td => &["background"],
            _ => match name.raw.to_ascii_lowercase().as_str() {
                "script" | "source" | "audio" | "embed" | "track" | "input" => &["src"],
                "video" => &["src", "poster"],
                "object" => &["data"],
                "use" => &["href", "xlink:href"],
                _ => &[],
            },
        };
        for attribute in attributes {
            if let Some(url) = tokenizer.attribute(attribute) {
                self.requisites.push(&url, false);
            }
        }
        if let Some(set) = tokenizer.attribute("srcset") {
            let first =
                |candidate: &'_ str| candidate.split_ascii_whitespace().next().map(str::to_owned);
            let urls = set.split(',').filter_map(first);
            urls.for_each(|url| self.requisites.push(&url, false));
        }
    }

    /// Processes an end tag just read.
    #[inline]
    pub(super) fn end(&mut self) {
        self.reads_title = false;
        self.reads_style = false;
    }

    /// Links found so far.
    pub(super) fn n_links(&self) -> usize {
        self.hrefs.ends.len()
    }

    /// The title so far; may be empty.
    pub(super) fn title(&self) -> &str {
        self.found.title.as_deref().unwrap_or_default()
    }

    /// Everything found, with URLs resolved.
    pub(super) fn finish(
        self,
        page_url: Option<&Url>,
        input_bytes: usize,
        anchors: Option<Anchors>,
        warnings: &mut Vec<HtmlWarning>,
    ) -> Metadata {
        let mut found = self.found;
        let declared = found.base.as_deref().and_then(|href| parse(page_url, href));
        if found.base.is_some() && declared.is_none() {
            warnings.push(HtmlWarning::BadBase);
        }
        let mut resolver = Budgeted {
            base: Base::new(declared.as_ref().or(page_url)),
            left: LINK_BYTES_SLACK + LINK_EXPANSION * input_bytes,
        };
        if matches!(resolver.base, Base::TooLong) {
            warnings.push(HtmlWarning::LongBase);
        }
        found.base = declared.as_ref().map(Url::to_string);
        found.canonical = found.canonical.and_then(|href| resolver.resolve(&href));
        if let Some(refresh) = &mut found.refresh {
            refresh.url = refresh.url.take().and_then(|href| resolver.resolve(&href));
        }
        found.alternates.retain_mut(|alternate| {
            let url = resolver.resolve(&alternate.url);
            url.map(|url| alternate.url = url).is_some()
        });
        found.feeds.retain_mut(|feed| {
            let url = resolver.resolve(feed);
            url.map(|url| *feed = url).is_some()
        });
        let n_links = self.hrefs.ends.len().min(resolver.left / LINK_BYTES);
        found.links.reserve_exact(n_links);
        let mut stays = Vec::new();
        for (href, nofollow) in self.hrefs.iter() {
            let url = resolver.resolve(href.trim());
            if anchors.is_some() {
                stays.push(url.is_some());
            }
            found.links.extend(url.map(|url| Link { url, nofollow }));
        }
        found.anchors = anchors.map(|anchors| Box::new(anchors.kept(&stays)));
        for (href, _) in self.requisites.iter() {
            let href = href.trim();
            let is_data = href
                .get(..5)
                .is_some_and(|head| head.eq_ignore_ascii_case("data:"));
            if !href.is_empty() && !is_data {
                found.requisites.extend(resolver.resolve(href));
            }
        }
        if resolver.left == 0 {
            warnings.push(HtmlWarning::LinksTruncated);
        }
        found
    }

    fn link<'a>(&mut self, tokenizer: &Tokenizer<'a>, attribute: &str) -> Option<Cow<'a, str>> {
        let href = tokenizer.attribute(attribute)?;
        if self.links != Links::Skip {
            let nofollow = tokenizer
                .attribute("rel")
                .is_some_and(|rel| has_word(&rel, "nofollow"));
            self.hrefs.push(&href, nofollow);
        }
        Some(href)
    }

    fn link_element(&mut self, tokenizer: &Tokenizer<'_>) {
        let (Some(rel), Some(href)) = (tokenizer.attribute("rel"), trimmed(tokenizer, "href"))
        else {
            return;
        };
        if has_word(&rel, "canonical") && self.found.canonical.is_none() {
            self.found.canonical = Some(href);
        } else if has_word(&rel, "alternate") && is_feed(tokenizer) {
            if self.links != Links::Skip && self.found.feeds.len() < MAX_FEEDS {
                self.found.feeds.push(href);
            }
        } else if has_word(&rel, "alternate")
            && let Some(lang) = trimmed(tokenizer, "hreflang")
        {
            self.found.alternates.push(Alternate { lang, url: href });
        } else if PAGE_RELATIONS.iter().any(|page| has_word(&rel, page)) {
            self.link(tokenizer, "href");
        }
    }

    fn meta(&mut self, tokenizer: &Tokenizer<'_>) {
        let Some(content) = tokenizer.attribute("content") else {
            return;
        };
        let is = |attribute: &str, value: &str| {
            tokenizer
                .attribute(attribute)
                .is_some_and(|found| found.trim().eq_ignore_ascii_case(value))
        };
        if is("name", "robots") {
            self.found.robots.noindex |= has_word(&content, "noindex") | has_word(&content, "none");
            self.found.robots.nofollow |=
                has_word(&content, "nofollow") | has_word(&content, "none");
        } else if is("http-equiv", "refresh") {
            self.found.refresh = self
                .found
                .refresh
                .take()
                .or_else(|| parse_refresh(&content));
        } else if is("http-equiv", "content-language") {
            let lang = || Some(content.trim().to_owned()).filter(|lang| !lang.is_empty());
            self.found.lang = self.found.lang.take().or_else(lang);
        }
    }
}

/// The relations in which a `<link>` leads to a page for readers, as `<a>` does.
const PAGE_RELATIONS: [&str; 6] = ["author", "help", "license", "next", "prev", "search"];

/// The relations in which a `<link>` names a file that is needed to show the page.
const SHOWN_RELATIONS: [&str; 7] = [
    "stylesheet",
    "icon",
    "apple-touch-icon",
    "mask-icon",
    "manifest",
    "preload",
    "modulepreload",
];

/// Resolved links together may take this many times the bytes of the page, plus some slack.
/// Otherwise a long `<base>` before many short links could exhaust the memory.
const LINK_EXPANSION: usize = 2;
const LINK_BYTES_SLACK: usize = 1 << 20;

/// Memory of a link in addition to its bytes.
const LINK_BYTES: usize = size_of::<Link>();

/// Maximum number of feeds of a page.
const MAX_FEEDS: usize = 16;

/// No server accepts a longer base, and the time to resolve a link is proportional to its length.
const MAX_BASE_BYTES: usize = 8 << 10;

/// The base that links are resolved against.
enum Base<'u> {
    Known(Resolver<'u>),
    /// Links that need the base are dropped.
    TooLong,
    /// Links stay as written.
    Unknown,
}

impl<'u> Base<'u> {
    fn new(url: Option<&'u Url>) -> Self {
        match url {
            Some(url) if url.as_str().len() > MAX_BASE_BYTES => Self::TooLong,
            Some(url) => Self::Known(Resolver::new(url)),
            None => Self::Unknown,
        }
    }
}

/// Resolves links within a memory budget.
struct Budgeted<'u> {
    base: Base<'u>,
    left: usize,
}

impl Budgeted<'_> {
    /// The absolute web URL, or the link itself if there is no base to resolve it against.
    fn resolve(&mut self, href: &str) -> Option<String> {
        if self.left == 0 {
            return None;
        }
        let url = match &self.base {
            Base::Known(resolver) => resolver.resolve(href)?,
            Base::TooLong => parse(None, href)?.into(),
            Base::Unknown => href.to_owned(),
        };
        self.left = self.left.saturating_sub(LINK_BYTES + url.len());
        Some(url)
    }
}

fn parse(base: Option<&Url>, href: &str) -> Option<Url> {
    let url = match base {
        Some(base) => base.join(href),
        None => Url::parse(href),
    };
    url.ok().filter(is_web)
}

/// Parses `5; url=/next` in the many forms that browsers accept.
fn parse_refresh(content: &str) -> Option<Refresh> {
    let content = content.trim_start();
    let digits = content.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 && !content.starts_with('.') {
        return None;
    }
    let seconds = content[..digits]
        .parse()
        .unwrap_or(if digits == 0 { 0 } else { u32::MAX });
    let rest = content[digits..].trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let rest = rest.trim_start();
    let rest = rest.strip_prefix([';', ',']).unwrap_or(rest).trim();
    let url = strip_url_key(rest);
    let url = match url.chars().next() {
        Some(quote @ ('"' | '\'')) => url[1..].split(quote).next().unwrap_or_default(),
        _ => url,
    };
    Some(Refresh {
        seconds,
        url: (!url.is_empty()).then(|| url.to_owned()),
    })
}

/// Removes `url =` from the start of the text, if it is there.
fn strip_url_key(text: &str) -> &str {
    let Some((key, tail)) = text.split_at_checked(3) else {
        return text;
    };
    match tail.trim_start().strip_prefix('=') {
        Some(value) if key.eq_ignore_ascii_case("url") => value.trim_start(),
        _ => text,
    }
}

/// Whether a list separated by whitespace or commas contains the word, in any case.
fn has_word(list: &str, word: &str) -> bool {
    list.split([' ', ',', '\t', '\n', '\r', '\x0c'])
        .any(|item| item.eq_ignore_ascii_case(word))
}

/// Whether a `link` has the media type of a feed.
fn is_feed(tokenizer: &Tokenizer<'_>) -> bool {
    let media_type = tokenizer.attribute("type").unwrap_or_default();
    let media_type = media_type.split(';').next().unwrap_or_default().trim();
    let feeds = ["application/rss+xml", "application/atom+xml"];
    feeds
        .iter()
        .any(|feed| media_type.eq_ignore_ascii_case(feed))
}

/// An attribute without surrounding whitespace; none if empty.
fn trimmed(tokenizer: &Tokenizer<'_>, name: &str) -> Option<String> {
    let value = tokenizer.attribute(name)?;
    let value = value.trim();
    (!value.is_empty()).then(|| value.to_owned())
}
