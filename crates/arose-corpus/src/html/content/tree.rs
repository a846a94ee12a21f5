//! Splits a page into text blocks, each below the block elements that contain it.
//!
//! Inline elements are not part of the tree. Their text joins the block around them, and only
//! whether it was a link is recorded. That leaves the few rules by which one block element closes
//! another. The repairs that a browser makes to misnested inline tags are not needed. An end tag
//! finds its element in constant time through a list of open positions per name, and every element
//! is closed once. Time is therefore linear in the page, however it is nested.

use super::super::henzinger::hides_text;
use super::super::page::Collector;
use super::super::sink::{Gap, Sink};
use super::super::tag::Tag;
use super::super::token::{Name, Noscript, Text, TextKind, Token, Tokenizer};
use super::hints::Hints;

/// Maximum number of open elements; deeper ones count as part of those around them.
pub(super) const MAX_DEPTH: usize = 512;

/// Number of blocks allowed for any page, however small. A larger page may have one more per
/// [`BLOCK_BYTES`], and twice as many elements. Their measurements take about 300 bytes each.
const MAX_BLOCKS: usize = 1 << 14;
const BLOCK_BYTES: usize = 128;

/// A page split into blocks.
#[derive(Debug)]
pub(super) struct Tree {
    /// Elements in document order; the first is the root and its own parent.
    pub(super) nodes: Vec<Node>,
    /// Blocks in document order.
    pub(super) blocks: Vec<Block>,
    /// The text of all blocks, one line each.
    pub(super) text: String,
    /// Structured data the page carries: the content of `<script type=application/ld+json>`.
    pub(super) json_ld: String,
    /// `og:type`, in lower case.
    pub(super) og_type: String,
    /// Whether elements were nested too deeply to follow.
    pub(super) is_too_deep: bool,
    /// Whether there were more blocks or elements than the limits allow.
    pub(super) is_too_wide: bool,
}

/// A block element.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub(super) tag: Tag,
    pub(super) parent: u32,
    pub(super) depth: u16,
    /// The purposes that its own names indicate.
    pub(super) own: Hints,
    /// The purposes that its names and those of the elements around it indicate.
    pub(super) all: Hints,
    /// Elements around it, itself included, by [`ancestor_bit`].
    pub(super) ancestors: u32,
    /// Hash of tag and class, to recognize repeated items.
    pub(super) kind: u32,
    /// Its blocks, as a range of indices.
    pub(super) first_block: u32,
    pub(super) end_block: u32,
}

/// A run of text that no block element interrupts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Block {
    pub(super) node: u32,
    /// Its bytes in [`Tree::text`].
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) link_bytes: u32,
    pub(super) n_links: u32,
    pub(super) bold_bytes: u32,
    pub(super) n_breaks: u32,
    /// Images since the previous block.
    pub(super) n_images: u32,
}

/// Reads a page; metadata goes to the collector.
pub(super) fn read(html: &str, collector: &mut Collector) -> Tree {
    let mut builder = Builder::new(html.len());
    let mut tokenizer = Tokenizer::new(html).with_noscript(Noscript::Markup);
    while let Some(token) = tokenizer.next_token() {
        match token {
            Token::Text(text) => builder.text(text, collector),
            Token::Start(name) => builder.start(name, &tokenizer, collector),
            Token::End(name) => builder.end(name, collector),
            Token::Comment(_) | Token::Doctype(_) => {}
        }
    }
    builder.finish()
}

/// The use of the next text token.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Awaited {
    Content,
    JsonLd,
    Nothing,
}

struct Builder {
    tree: Tree,
    max_blocks: usize,
    max_nodes: usize,
    sink: Sink,
    /// Indices of open elements.
    stack: Vec<u32>,
    /// For each tag, the positions in `stack` where it is open.
    open: Vec<Vec<u32>>,
    /// Start tags beyond the depth limit that have not been closed.
    too_deep: usize,
    templates: usize,
    awaited: Awaited,
    /// The open element whose text is dropped.
    muted: Option<Tag>,
    block: Block,
    link_start: Option<usize>,
    bold_start: Option<usize>,
}

impl Builder {
    fn new(n_bytes: usize) -> Self {
        let root = Node {
            tag: Tag::Html,
            parent: 0,
            depth: 0,
            own: Hints::default(),
            all: Hints::default(),
            ancestors: 0,
            kind: 0,
            first_block: 0,
            end_block: 0,
        };
        Self {
            tree: Tree {
                nodes: vec![root],
                blocks: Vec::new(),
                text: String::new(),
                json_ld: String::new(),
                og_type: String::new(),
                is_too_deep: false,
                is_too_wide: false,
            },
            max_blocks: MAX_BLOCKS + n_bytes / BLOCK_BYTES,
            max_nodes: 2 * (MAX_BLOCKS + n_bytes / BLOCK_BYTES),
            sink: Sink::with_capacity(n_bytes / 4),
            stack: vec![0],
            open: vec![Vec::new(); Tag::Other as usize + 1],
            too_deep: 0,
            templates: 0,
            awaited: Awaited::Content,
            muted: None,
            block: Block::default(),
            link_start: None,
            bold_start: None,
        }
    }

    fn text(&mut self, text: Text<'_>, collector: &mut Collector) {
        if self.awaited == Awaited::JsonLd {
            self.tree.json_ld.push_str(text.raw);
            self.tree.json_ld.push('\n');
        }
        if self.awaited != Awaited::Content || self.templates > 0 {
            return;
        }
        let decoded = text.decoded();
        collector.text(&decoded);
        // Titles and form fields are not content.
        if self.muted.is_some() || text.kind == TextKind::Escapable {
            return;
        }
        if text.kind == TextKind::Data && memchr::memchr(b'\0', decoded.as_bytes()).is_some() {
            self.sink.push(&decoded.replace('\0', ""));
        } else {
            self.sink.push(&decoded);
        }
    }

    fn start<'a>(&mut self, name: Name<'a>, tokenizer: &Tokenizer<'a>, collector: &mut Collector) {
        self.awaited = awaited(name, tokenizer);
        if name.tag == Tag::Template && !name.is_foreign {
            self.templates += 1;
        }
        if self.templates > 0 {
            return;
        }
        collector.start(name, tokenizer);
        self.mute(name);
        match name.tag {
            Tag::A => {
                self.end_link();
                self.block.n_links += 1;
                self.link_start = Some(self.sink.text.len());
            }
            Tag::B | Tag::Strong => {
                self.bold_start.get_or_insert(self.sink.text.len());
            }
            Tag::Br => {
                self.block.n_breaks += 1;
                self.sink.gap(Gap::Line);
            }
            Tag::Img => self.block.n_images += 1,
            Tag::Meta => self.meta(tokenizer),
            Tag::Html | Tag::Body | Tag::Head => self.flush(),
            tag if !tag.separates() || name.is_foreign => {}
            tag if tag.is_void() => self.flush(),
            tag => self.open_block(tag, tokenizer),
        }
    }

    fn end(&mut self, name: Name<'_>, collector: &mut Collector) {
        self.awaited = Awaited::Content;
        collector.end();
        if name.tag == Tag::Template {
            self.templates = self.templates.saturating_sub(1);
        }
        if self.muted == Some(name.tag) {
            self.muted = None;
        }
        match name.tag {
            Tag::A => self.end_link(),
            Tag::B | Tag::Strong => self.end_bold(),
            Tag::Html | Tag::Body | Tag::Head => self.flush(),
            tag if !tag.separates() => {}
            tag => self.close_block(tag),
        }
    }

    /// Drops the text of drawings and option lists. Both end at the next block element at the
    /// latest, because pages often fail to close them.
    fn mute(&mut self, name: Name<'_>) {
        let opens = matches!(name.tag, Tag::Svg | Tag::Select) && !name.self_closing;
        let holds = name.is_foreign || matches!(name.tag, Tag::Option | Tag::Optgroup | Tag::Hr);
        if opens {
            self.muted = Some(name.tag);
        } else if name.tag.separates() && !holds {
            self.muted = None;
        }
    }

    fn meta(&mut self, tokenizer: &Tokenizer<'_>) {
        let is_type = |name: std::borrow::Cow<'_, str>| name.eq_ignore_ascii_case("og:type");
        if tokenizer.attribute("property").is_some_and(is_type)
            && let Some(content) = tokenizer.attribute("content")
        {
            self.tree.og_type = content.trim().to_ascii_lowercase();
        }
    }

    fn end_link(&mut self) {
        if let Some(start) = self.link_start.take() {
            self.block.link_bytes += self.bytes_since(start);
        }
    }

    /// Bytes of text since `start`, without the gap before them.
    fn bytes_since(&self, start: usize) -> u32 {
        self.sink.text[start..].trim_ascii_start().len() as u32
    }

    fn end_bold(&mut self) {
        if let Some(start) = self.bold_start.take() {
            self.block.bold_bytes += self.bytes_since(start);
        }
    }

    /// Ends the current block. A link or bold run continues in the next block.
    fn flush(&mut self) {
        let (in_link, in_bold) = (self.link_start.is_some(), self.bold_start.is_some());
        self.end_link();
        self.end_bold();
        let end = self.sink.text.len();
        let start = self.block.start;
        let is_full = self.tree.blocks.len() >= self.max_blocks;
        self.tree.is_too_wide |= is_full;
        if end > start && !is_full {
            // The line end that separates it from the previous block is not part of it.
            let skip = usize::from(self.sink.text.as_bytes()[start] == b'\n');
            let node = *self.stack.last().expect("the root is never closed");
            self.tree.blocks.push(Block {
                node,
                start: start + skip,
                end,
                ..self.block
            });
            self.block = Block {
                start: end,
                n_links: u32::from(in_link),
                ..Block::default()
            };
        }
        self.link_start = in_link.then_some(end);
        self.bold_start = in_bold.then_some(end);
        self.sink.gap(Gap::Line);
    }

    fn open_block(&mut self, tag: Tag, tokenizer: &Tokenizer<'_>) {
        self.flush();
        let is_too_deep = self.stack.len() >= MAX_DEPTH;
        let is_full = self.tree.nodes.len() >= self.max_nodes;
        self.tree.is_too_deep |= is_too_deep;
        self.tree.is_too_wide |= is_full;
        if is_too_deep || is_full {
            self.too_deep += 1;
            return;
        }
        self.close_implied(tag);
        let parent = *self.stack.last().expect("the root is never closed");
        let node = self.node(tag, parent, tokenizer);
        self.open[tag as usize].push(self.stack.len() as u32);
        self.stack.push(self.tree.nodes.len() as u32);
        self.tree.nodes.push(node);
    }

    fn node(&self, tag: Tag, parent: u32, tokenizer: &Tokenizer<'_>) -> Node {
        let around = &self.tree.nodes[parent as usize];
        let (own, kind) = names(tag, tokenizer);
        let first_block = self.tree.blocks.len() as u32;
        Node {
            tag,
            parent,
            depth: around.depth + 1,
            own,
            all: around.all.with(own),
            ancestors: around.ancestors | ancestor_bit(tag),
            kind,
            first_block,
            end_block: first_block,
        }
    }

    /// Closes the elements that the start of `tag` closes implicitly.
    fn close_implied(&mut self, tag: Tag) {
        match tag {
            Tag::Li => self.close_within(&[Tag::Li], &[&[Tag::Ul, Tag::Ol, Tag::Menu], CELLS]),
            Tag::Dt | Tag::Dd => self.close_within(&[Tag::Dt, Tag::Dd], &[&[Tag::Dl], CELLS]),
            Tag::Td | Tag::Th => {
                self.close_within(&[Tag::Td, Tag::Th], &[&[Tag::Tr, Tag::Table]]);
            }
            Tag::Tr => self.close_within(&[Tag::Tr], &[&[Tag::Table]]),
            Tag::Tbody | Tag::Thead | Tag::Tfoot => {
                self.close_within(&[Tag::Tbody, Tag::Thead, Tag::Tfoot], &[&[Tag::Table]]);
            }
            _ => {}
        }
        if !matches!(tag, Tag::Button | Tag::Object) {
            self.close_within(&[Tag::P], &[&[Tag::Button], CELLS]);
        }
    }

    fn close_block(&mut self, tag: Tag) {
        self.flush();
        if self.too_deep > 0 {
            self.too_deep -= 1;
        } else if HEADINGS.contains(&tag) {
            // The end tag of any heading closes a heading.
            self.close_within(HEADINGS, &[CELLS]);
        } else if is_table_part(tag) {
            self.close_within(&[tag], &[&[Tag::Table]]);
        } else {
            self.close_within(&[tag], &[CELLS]);
        }
    }

    /// Closes the innermost of `tags`, unless one of `bounds` is further inside.
    fn close_within(&mut self, tags: &[Tag], bounds: &[&[Tag]]) {
        let last = |tag: &Tag| self.open[*tag as usize].last().copied();
        let Some(at) = tags.iter().filter_map(last).max() else {
            return;
        };
        let bound = bounds.iter().copied().flatten().filter_map(last).max();
        if bound.is_none_or(|bound| bound <= at) {
            self.close_to(at as usize);
        }
    }

    /// Closes all elements from position `at` of the stack on.
    fn close_to(&mut self, at: usize) {
        while self.stack.len() > at {
            let node = self.stack.pop().expect("longer than `at`");
            let node = &mut self.tree.nodes[node as usize];
            node.end_block = self.tree.blocks.len() as u32;
            self.open[node.tag as usize].pop();
        }
    }

    fn finish(mut self) -> Tree {
        self.max_blocks = usize::MAX;
        self.flush();
        self.close_to(1);
        self.tree.nodes[0].end_block = self.tree.blocks.len() as u32;
        self.tree.text = self.sink.text;
        self.tree
    }
}

/// The use of the text after a start tag.
fn awaited(name: Name<'_>, tokenizer: &Tokenizer<'_>) -> Awaited {
    if !hides_text(name.tag) || name.tag == Tag::Noscript {
        return Awaited::Content;
    }
    let is_json_ld = name.tag == Tag::Script
        && tokenizer
            .attribute("type")
            .is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/ld+json"));
    if is_json_ld {
        Awaited::JsonLd
    } else {
        Awaited::Nothing
    }
}

const HEADINGS: &[Tag] = &[Tag::H1, Tag::H2, Tag::H3, Tag::H4, Tag::H5, Tag::H6];

/// Elements that are open outside of these are not closed from inside.
const CELLS: &[Tag] = &[Tag::Table, Tag::Td, Tag::Th, Tag::Caption, Tag::Object];

fn is_table_part(tag: Tag) -> bool {
    matches!(
        tag,
        Tag::Table
            | Tag::Caption
            | Tag::Tbody
            | Tag::Thead
            | Tag::Tfoot
            | Tag::Tr
            | Tag::Td
            | Tag::Th
    )
}

/// The purposes that the names of an element indicate, and a hash to recognize similar elements.
fn names(tag: Tag, tokenizer: &Tokenizer<'_>) -> (Hints, u32) {
    let mut hints = Hints::default();
    let mut kind = tag as u32 + 1;
    for attribute in tokenizer.attributes() {
        let is = |name: &str| attribute.name.eq_ignore_ascii_case(name);
        if is("class") {
            hints = hints.with(Hints::of_names(attribute.raw_value));
            for &byte in attribute.raw_value.as_bytes().iter().take(64) {
                kind = (kind ^ u32::from(byte)).wrapping_mul(0x0100_0193);
            }
        } else if is("id") || is("role") || is("itemprop") {
            hints = hints.with(Hints::of_names(attribute.raw_value));
        } else if is("hidden")
            || (is("aria-hidden") && attribute.raw_value.eq_ignore_ascii_case("true"))
            || (is("style") && hides(attribute.raw_value))
        {
            hints = hints.with(Hints::HIDDEN);
        }
    }
    (hints, kind)
}

fn hides(style: &str) -> bool {
    style.contains("display:none") || style.contains("display: none")
}

/// Elements that characterize everything inside them; the position is the bit.
pub(super) const ANCESTORS: [&[Tag]; 19] = [
    &[Tag::Nav],
    &[Tag::Header],
    &[Tag::Footer],
    &[Tag::Aside],
    &[Tag::Form, Tag::Fieldset],
    &[Tag::Main],
    &[Tag::Article],
    &[Tag::Section],
    &[Tag::Ul, Tag::Ol, Tag::Menu, Tag::Dir],
    &[Tag::Table],
    &[Tag::Figure],
    &[Tag::Dialog],
    &[Tag::Button, Tag::Label],
    &[Tag::Blockquote],
    &[Tag::Pre, Tag::Listing, Tag::Xmp],
    &[Tag::Dl],
    &[Tag::Details],
    &[Tag::Address],
    &[Tag::Noscript],
];

/// The bit of an element in [`Node::ancestors`], or 0.
fn ancestor_bit(tag: Tag) -> u32 {
    let at = ANCESTORS.iter().position(|tags| tags.contains(&tag));
    at.map_or(0, |at| 1 << at)
}
