//! Mode `henzinger`: the term stream of Henzinger's 2006 comparison of near-duplicate algorithms.
//!
//! Tags are removed, block elements become whitespace, and comments and scripts are removed. The
//! URLs of links stay as text at their tag, so that two lists of different links differ. An image
//! is one term of its own, its `src` as written; see [`ImageTerm`]. Mode `visible` is the same
//! without URLs and images.

use url::Url;

use super::anchor::Follower;
use super::page::Collector;
use super::sink::{Gap, Sink};
use super::tag::Tag;
use super::token::{Name, Text, TextKind, Token, Tokenizer};
use super::visibility::Watch;
use super::{Extracted, HtmlConfig, HtmlWarning, ImageTerm, Mode, Switch};
use crate::body::payload::fitted;

/// Reads a page in this mode.
pub(super) fn extract(html: &str, page_url: Option<&Url>, config: &HtmlConfig) -> Extracted {
    let mut reader = Reader {
        config,
        sink: Sink::with_capacity(match html.len() {
            // Half is enough for nearly all pages. A large page is not held twice while its buffer
            // grows.
            n if n < LARGE => n / 2,
            n => n,
        }),
        images: Vec::new(),
        max_images: MAX_IMAGES + html.len() / size_of::<ImageTerm>(),
        collector: Collector::new(config.links),
        watch: (config.visibility == Switch::On).then(Watch::default),
        follower: (config.anchors == Switch::On).then(Follower::default),
        templates: 0,
        hides_text: false,
    };
    let mut tokenizer = Tokenizer::new(html);
    while let Some(token) = tokenizer.next_token() {
        match token {
            Token::Text(text) => reader.text(text),
            Token::Start(name) => reader.start(name, &tokenizer),
            Token::End(name) => reader.end(name),
            Token::Comment(_) | Token::Doctype(_) => {}
        }
    }
    let mut warnings = Vec::new();
    if reader.images.len() == reader.max_images {
        warnings.push(HtmlWarning::ImagesTruncated);
    }
    let anchors = reader.follower.map(|follower| follower.found);
    let mut metadata = reader
        .collector
        .finish(page_url, html.len(), anchors, &mut warnings);
    metadata.mode = Some(config.mode);
    metadata.visibility = reader.watch.map(|watch| Box::new(watch.found));
    Extracted {
        text: match html.len() {
            n if n < LARGE => reader.sink.text,
            _ => fitted(reader.sink.text),
        },
        images: reader.images,
        metadata,
        warnings,
    }
}

/// Minimum size at which memory for all text of a page is reserved at once.
const LARGE: usize = 256 << 10;

/// Number of images allowed for any page, however small; a larger page may have more.
const MAX_IMAGES: usize = 1 << 14;

struct Reader<'c> {
    config: &'c HtmlConfig,
    sink: Sink,
    images: Vec<ImageTerm>,
    max_images: usize,
    collector: Collector,
    watch: Option<Watch>,
    follower: Option<Follower>,
    /// Open `template` elements; their content is not part of the page.
    templates: usize,
    /// Whether the last tag opened an element whose text is not shown.
    hides_text: bool,
}

impl Reader<'_> {
    fn text(&mut self, text: Text<'_>) {
        if self.hides_text {
            self.collector.hidden_text(text.raw);
        }
        if self.hides_text || self.templates > 0 {
            return;
        }
        let decoded = text.decoded();
        self.collector.text(&decoded);
        let before = self.sink.text.len();
        if text.kind == TextKind::Data && memchr::memchr(b'\0', decoded.as_bytes()).is_some() {
            self.sink.push(&decoded.replace('\0', ""));
        } else {
            self.sink.push(&decoded);
        }
        if let Some(watch) = &mut self.watch {
            // The separator between two pieces of text is not text.
            let gap = self.sink.text.as_bytes().get(before);
            let n_gap = usize::from(before > 0 && gap.is_some_and(u8::is_ascii_whitespace));
            watch.text(self.sink.text.len() - before - n_gap);
        }
        if let Some(follower) = &mut self.follower {
            follower.text(&decoded);
        }
    }

    fn start<'a>(&mut self, name: Name<'a>, tokenizer: &Tokenizer<'a>) {
        self.hides_text = hides_text(name.tag);
        if name.tag == Tag::Template && !name.is_foreign {
            self.templates += 1;
        }
        if self.templates > 0 {
            return;
        }
        if name.tag.separates() {
            self.sink.gap(Gap::Line);
        }
        let address = self.collector.start(name, tokenizer);
        if let Some(watch) = &mut self.watch {
            watch.start(name, tokenizer);
        }
        if let Some(follower) = &mut self.follower {
            follower.start(name, tokenizer, self.collector.n_links());
        }
        if let Some(address) = address.filter(|_| self.config.mode == Mode::Henzinger) {
            let before = self.sink.text.len();
            self.sink.push_apart(&address);
            if let Some(watch) = &mut self.watch {
                watch.address(&self.sink.text, before);
            }
        }
        match name.tag {
            Tag::Img | Tag::Image => self.image(tokenizer),
            Tag::Area if self.config.alt == Switch::On => self.alt(tokenizer),
            Tag::Meta if self.config.meta == Switch::On => self.meta(tokenizer),
            _ => {}
        }
    }

    fn end(&mut self, name: Name<'_>) {
        self.hides_text = false;
        self.collector.end();
        if let Some(watch) = &mut self.watch {
            watch.end(name);
        }
        if let Some(follower) = &mut self.follower {
            follower.end(name);
        }
        if name.tag == Tag::Template {
            self.templates = self.templates.saturating_sub(1);
        }
        if name.tag.separates() {
            self.sink.gap(Gap::Line);
        }
    }

    fn image(&mut self, tokenizer: &Tokenizer<'_>) {
        if let Some(src) = tokenizer.attribute("src") {
            let src = src.trim();
            let is_term = !src.is_empty() && self.config.mode == Mode::Henzinger;
            if is_term && self.images.len() < self.max_images {
                self.images.push(ImageTerm {
                    at: self.sink.text.len(),
                    src: src.to_owned(),
                });
            }
        }
        if self.config.alt == Switch::On {
            self.alt(tokenizer);
        }
    }

    fn alt(&mut self, tokenizer: &Tokenizer<'_>) {
        if let Some(alt) = tokenizer.attribute("alt") {
            self.sink.push_apart(&alt);
        }
    }

    fn meta(&mut self, tokenizer: &Tokenizer<'_>) {
        let describes = |name: &str| {
            name.eq_ignore_ascii_case("description") || name.eq_ignore_ascii_case("keywords")
        };
        if tokenizer
            .attribute("name")
            .is_some_and(|name| describes(name.trim()))
            && let Some(content) = tokenizer.attribute("content")
        {
            self.sink.push_apart(&content);
        }
    }
}

/// Elements whose text a browser does not show.
pub(super) fn hides_text(tag: Tag) -> bool {
    matches!(
        tag,
        Tag::Script | Tag::Style | Tag::Noscript | Tag::Iframe | Tag::Noembed | Tag::Noframes
    )
}
