//! Computes the features of each block by which a classifier tells content from the rest.
//!
//! There are four kinds of features: of the block itself (length, links, punctuation), of its names
//! and the elements around it, of its neighbours in reading order, and of its containers. Both
//! containers and windows are ranges of blocks, so their sums come from prefix sums. Time is
//! `O(blocks log blocks)`.

use super::super::tag::Tag;
use super::json_ld;
use super::tree::{ANCESTORS, Block, Node, Tree};

/// Number of features per block.
pub(super) const N_FEATURES: usize = 157;

/// Maximum number of title words that are compared; more would take quadratic time on a page with a
/// huge title.
const MAX_TITLE_WORDS: usize = 64;

/// The features of one block.
pub(super) type Row = [f32; N_FEATURES];

/// The properties of a block that follow from its text alone.
#[derive(Clone, Copy, Debug, Default)]
struct Words {
    words: u32,
    chars: u32,
    capitals: u32,
    digits: u32,
    commas: u32,
    sentences: u32,
    ends_sentence: bool,
    has_price: bool,
    has_copyright: bool,
    title_words: u32,
    hash: u64,
}

/// Sums over a range of blocks.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    words: f32,
    link_words: f32,
    /// Words of blocks that read like prose.
    prose_words: f32,
    sentences: f32,
    prices: f32,
    blocks: f32,
    link_blocks: f32,
}

/// The measured blocks of a page.
pub(super) struct MeasuredPage<'t> {
    tree: &'t Tree,
    words: Vec<Words>,
    /// Sums before each block, and over all blocks.
    prefix: Vec<Sums>,
    /// Number of elements of the same kind under the same parent, per node.
    siblings: Vec<u32>,
    /// Number of blocks with the same text, per block.
    copies: Vec<u32>,
    /// The element that contains most of the prose.
    top: u32,
    /// The first top-level heading, as a block.
    first_h1: Option<usize>,
    /// The nearest prose block before and after each block.
    prose_before: Vec<u32>,
    prose_after: Vec<u32>,
    page_row: [f32; N_PAGE],
    body_overlap: Vec<f32>,
}

/// Features that are the same for all blocks of a page.
const N_PAGE: usize = 18;

impl<'t> MeasuredPage<'t> {
    pub(super) fn new(tree: &'t Tree, title: &str) -> Self {
        let title: Vec<u64> = word_hashes(title).take(MAX_TITLE_WORDS).collect();
        let words: Vec<Words> = tree
            .blocks
            .iter()
            .map(|block| count(&tree.text[block.start..block.end], &title))
            .collect();
        let prefix = prefix_sums(tree, &words);
        let first_h1 = tree
            .blocks
            .iter()
            .position(|block| tree.nodes[block.node as usize].tag == Tag::H1);
        let is_prose: Vec<bool> = words
            .iter()
            .zip(&tree.blocks)
            .map(|(words, block)| is_prose(words, block))
            .collect();
        let body = json_ld::article_body(&tree.json_ld);
        let mut page = Self {
            tree,
            siblings: count_siblings(&tree.nodes),
            copies: count_copies(&words),
            top: top_node(tree, &words),
            first_h1,
            prose_before: distance(is_prose.iter().copied()),
            prose_after: {
                let mut after = distance(is_prose.iter().rev().copied());
                after.reverse();
                after
            },
            body_overlap: json_ld::overlaps(tree, &body),
            words,
            prefix,
            page_row: [0.0; N_PAGE],
        };
        page.page_row = page.page_features(!body.is_empty());
        page
    }

    /// Number of blocks.
    pub(super) fn len(&self) -> usize {
        self.words.len()
    }

    /// Number of words of a block.
    pub(super) fn n_words(&self, at: usize) -> f64 {
        f64::from(self.words[at].words as f32)
    }

    fn sums(&self, from: usize, to: usize) -> Sums {
        let (a, b) = (self.prefix[from], self.prefix[to.max(from)]);
        Sums {
            words: b.words - a.words,
            link_words: b.link_words - a.link_words,
            prose_words: b.prose_words - a.prose_words,
            sentences: b.sentences - a.sentences,
            prices: b.prices - a.prices,
            blocks: b.blocks - a.blocks,
            link_blocks: b.link_blocks - a.link_blocks,
        }
    }

    fn node_sums(&self, node: &Node) -> Sums {
        self.sums(node.first_block as usize, node.end_block as usize)
    }

    fn node(&self, at: u32) -> &'t Node {
        &self.tree.nodes[at as usize]
    }

    fn page_features(&self, has_body: bool) -> [f32; N_PAGE] {
        let all = self.sums(0, self.words.len());
        let count = |tag: Tag| {
            self.tree
                .nodes
                .iter()
                .filter(|node| node.tag == tag)
                .count() as f32
        };
        let longest = self
            .words
            .iter()
            .map(|words| words.words)
            .max()
            .unwrap_or(0);
        let top = self.node_sums(self.node(self.top));
        let types = json_ld::types(&self.tree.json_ld);
        let og = |word: &str| f32::from(u8::from(self.tree.og_type.contains(word)));
        let has = |bit: u32| f32::from(u8::from(types & bit != 0));
        [
            all.words,
            ratio(all.link_words, all.words),
            all.blocks,
            ratio(all.prose_words, all.words),
            ratio(all.words, all.blocks),
            all.sentences,
            all.prices,
            longest as f32,
            count(Tag::Main),
            count(Tag::Article),
            count(Tag::P),
            count(Tag::Li),
            ratio(top.words, all.words),
            og("article"),
            og("product"),
            has(json_ld::ARTICLE),
            has(json_ld::PRODUCT | json_ld::LIST) + 2.0 * has(json_ld::FORUM),
            f32::from(u8::from(has_body)),
        ]
    }

    /// The features of a block.
    pub(super) fn row(&self, at: usize) -> Row {
        let mut out = Writer {
            row: [0.0; N_FEATURES],
            at: 0,
        };
        self.own(at, &mut out);
        self.surroundings(at, &mut out);
        self.position(at, &mut out);
        self.neighbours(at, &mut out);
        self.containers(at, &mut out);
        out.extend(&self.page_row);
        debug_assert_eq!(out.at, N_FEATURES);
        out.row
    }

    fn own(&self, at: usize, out: &mut Writer) {
        let (words, block) = (&self.words[at], &self.tree.blocks[at]);
        let n_words = words.words as f32;
        let bytes = (block.end - block.start) as f32;
        out.push(n_words);
        out.push(ratio(words.chars as f32, n_words));
        out.push(ratio(block.link_bytes as f32, bytes).min(1.0));
        out.push(block.n_links as f32);
        out.push(words.sentences as f32);
        out.flag(words.ends_sentence);
        out.push(ratio(words.commas as f32, n_words));
        out.push(ratio(words.capitals as f32, n_words));
        out.push(ratio(words.digits as f32, words.chars as f32));
        out.push(ratio(block.bold_bytes as f32, bytes).min(1.0));
        out.push(block.n_breaks as f32);
        out.push(block.n_images as f32);
        out.flag(words.has_price);
        out.flag(words.has_copyright);
        out.push(self.copies[at] as f32);
        out.push(ratio(words.title_words as f32, n_words));
        out.push(self.body_overlap[at]);
        let tag = self.node(block.node).tag;
        out.push(heading_level(tag));
        for class in TAG_CLASSES {
            out.flag(class.contains(&tag));
        }
    }

    fn surroundings(&self, at: usize, out: &mut Writer) {
        let owner = self.node(self.tree.blocks[at].node);
        let parent = self.node(owner.parent);
        let grandparent = self.node(parent.parent);
        let near = owner.own.with(parent.own).with(grandparent.own);
        out.bits(owner.ancestors, ANCESTORS.len());
        out.bits(near.0, super::hints::PURPOSES.len());
        out.bits(owner.all.0, super::hints::PURPOSES.len());
    }

    fn position(&self, at: usize, out: &mut Writer) {
        let n = self.words.len();
        let (before, all) = (self.prefix[at], self.prefix[n]);
        out.push(at as f32 / n as f32);
        out.push(ratio(before.words, all.words));
        out.push(before.words);
        out.push(all.words - before.words);
        out.push(ratio(before.prose_words, all.prose_words));
        let depth = self.node(self.tree.blocks[at].node).depth;
        out.push(f32::from(depth));
        out.push(
            self.first_h1
                .map_or(-1000.0, |h1| (at as f32 - h1 as f32).clamp(-100.0, 100.0)),
        );
        out.push(self.prose_before[at] as f32);
        out.push(self.prose_after[at] as f32);
    }

    fn neighbours(&self, at: usize, out: &mut Writer) {
        let n = self.words.len();
        let one = |to: Option<usize>| to.filter(|&to| to < n).map(|to| self.sums(to, to + 1));
        for to in [
            at.checked_sub(2),
            at.checked_sub(1),
            Some(at + 1),
            Some(at + 2),
        ] {
            let sums = one(to);
            out.push(sums.map_or(-1.0, |sums| sums.words));
            out.push(sums.map_or(-1.0, |sums| ratio(sums.link_words, sums.words)));
        }
        let (previous, next) = (at.saturating_sub(1), (at + 1).min(n - 1));
        let tag = |at: usize| self.node(self.tree.blocks[at].node).tag;
        out.flag(tag(at) == tag(previous));
        out.flag(tag(at) == tag(next));
        out.push(heading_level(tag(previous)));
        for reach in [3, 10] {
            for (from, to) in [
                (at.saturating_sub(reach), at),
                ((at + 1).min(n), (at + 1 + reach).min(n)),
            ] {
                let sums = self.sums(from, to);
                out.push(sums.words);
                out.push(ratio(sums.link_words, sums.words));
                out.push(ratio(sums.prose_words, sums.words));
            }
        }
    }

    fn containers(&self, at: usize, out: &mut Writer) {
        let all = self.prefix[self.words.len()];
        let mut node_at = self.tree.blocks[at].node;
        for level in 0..4 {
            let node = self.node(node_at);
            let sums = self.node_sums(node);
            out.push(ratio(sums.words, all.words));
            out.push(ratio(sums.link_words, sums.words));
            out.push(ratio(sums.words, sums.blocks));
            out.push(ratio(sums.prose_words, sums.words));
            if level < 3 {
                out.push(self.siblings[node_at as usize] as f32);
            }
            node_at = node.parent;
        }
        let top = self.node(self.top);
        let inside = at >= top.first_block as usize && at < top.end_block as usize;
        out.flag(inside);
        out.push(self.levels_to_common(at));
    }

    /// Number of levels from the top element to the first one that also contains the block.
    fn levels_to_common(&self, at: usize) -> f32 {
        let mut node = self.node(self.top);
        let mut levels = 0.0;
        while !(at >= node.first_block as usize && at < node.end_block as usize) && levels < 20.0 {
            node = self.node(node.parent);
            levels += 1.0;
        }
        levels
    }
}

/// Fills a row from left to right.
struct Writer {
    row: Row,
    at: usize,
}

impl Writer {
    fn push(&mut self, value: f32) {
        if let Some(slot) = self.row.get_mut(self.at) {
            *slot = value;
        }
        self.at += 1;
    }

    fn flag(&mut self, value: bool) {
        self.push(f32::from(u8::from(value)));
    }

    fn bits(&mut self, bits: u32, n: usize) {
        for at in 0..n {
            self.flag(bits >> at & 1 != 0);
        }
    }

    fn extend(&mut self, values: &[f32]) {
        for &value in values {
            self.push(value);
        }
    }
}

/// Tags that contain blocks directly, grouped by use.
const TAG_CLASSES: [&[Tag]; 9] = [
    &[Tag::P],
    &[Tag::Li],
    &[Tag::Td, Tag::Th],
    &[Tag::Dt, Tag::Dd],
    &[Tag::Pre, Tag::Blockquote, Tag::Listing],
    &[Tag::Button, Tag::Label, Tag::Legend],
    &[Tag::Figcaption, Tag::Figure, Tag::Caption],
    &[Tag::Div, Tag::Section, Tag::Article, Tag::Main],
    &[Tag::Summary, Tag::Details],
];

fn heading_level(tag: Tag) -> f32 {
    match tag {
        Tag::H1 => 1.0,
        Tag::H2 => 2.0,
        Tag::H3 => 3.0,
        Tag::H4 => 4.0,
        Tag::H5 => 5.0,
        Tag::H6 => 6.0,
        _ => 0.0,
    }
}

fn ratio(part: f32, whole: f32) -> f32 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// Long enough, with few links, and punctuated: a paragraph rather than a label.
fn is_prose(words: &Words, block: &Block) -> bool {
    let bytes = (block.end - block.start) as u32;
    words.words >= 12 && words.sentences >= 1 && block.link_bytes * 2 < bytes
}

fn link_words(words: &Words, block: &Block) -> f32 {
    let bytes = (block.end - block.start) as f32;
    words.words as f32 * ratio(block.link_bytes as f32, bytes).min(1.0)
}

fn prefix_sums(tree: &Tree, words: &[Words]) -> Vec<Sums> {
    let mut sums = Sums::default();
    let mut prefix = Vec::with_capacity(words.len() + 1);
    prefix.push(sums);
    for (words, block) in words.iter().zip(&tree.blocks) {
        let link = link_words(words, block);
        sums.words += words.words as f32;
        sums.link_words += link;
        if is_prose(words, block) {
            sums.prose_words += words.words as f32;
        }
        sums.sentences += words.sentences as f32;
        sums.prices += f32::from(u8::from(words.has_price));
        sums.blocks += 1.0;
        sums.link_blocks += f32::from(u8::from(link * 2.0 > words.words as f32));
        prefix.push(sums);
    }
    prefix
}

/// For each node, the number of nodes of its kind under its parent.
fn count_siblings(nodes: &[Node]) -> Vec<u32> {
    let mut keys: Vec<(u32, u32, u32)> = nodes
        .iter()
        .enumerate()
        .map(|(at, node)| (node.parent, node.kind, at as u32))
        .collect();
    keys.sort_unstable();
    let mut counts = vec![0; nodes.len()];
    for group in keys.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
        for &(_, _, at) in group {
            counts[at as usize] = group.len() as u32;
        }
    }
    counts
}

/// For each block, the number of blocks with its text.
fn count_copies(words: &[Words]) -> Vec<u32> {
    let mut keys: Vec<(u64, u32)> = words
        .iter()
        .enumerate()
        .map(|(at, words)| (words.hash, at as u32))
        .collect();
    keys.sort_unstable();
    let mut counts = vec![0; words.len()];
    for group in keys.chunk_by(|a, b| a.0 == b.0) {
        for &(_, at) in group {
            counts[at as usize] = group.len() as u32;
        }
    }
    counts
}

/// The element with the highest prose score. Each paragraph gives its parent a full score and the
/// element above it half, both scaled down by links.
fn top_node(tree: &Tree, words: &[Words]) -> u32 {
    let mut scores = vec![0.0f32; tree.nodes.len()];
    for (words, block) in words.iter().zip(&tree.blocks) {
        if !is_prose(words, block) {
            continue;
        }
        let score = words.words as f32 - link_words(words, block);
        let mut node = block.node;
        for share in [0.5, 1.0, 0.5] {
            scores[node as usize] += score * share;
            node = tree.nodes[node as usize].parent;
        }
    }
    let best = scores
        .iter()
        .enumerate()
        .max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(&a.0)));
    best.map_or(0, |(at, _)| at as u32)
}

/// For each item, the distance back to the last true item; at most 50.
fn distance(items: impl Iterator<Item = bool>) -> Vec<u32> {
    let mut steps = 50;
    items
        .map(|hit| {
            let here = steps;
            steps = if hit { 1 } else { (steps + 1).min(50) };
            here
        })
        .collect()
}

/// Counts words, punctuation and other properties of a text.
fn count(text: &str, title: &[u64]) -> Words {
    let mut found = Words::default();
    let mut in_word = false;
    let mut previous = ' ';
    for char in text.chars() {
        let starts = !in_word || is_ideograph(char);
        in_word = char.is_alphanumeric();
        if in_word {
            found.words += u32::from(starts);
            found.chars += 1;
            found.capitals += u32::from(starts && char.is_uppercase());
            found.digits += u32::from(char.is_ascii_digit());
        }
        match char {
            ',' | '、' | '，' | ';' => found.commas += 1,
            '.' | '!' | '?' | '…' => found.ends_sentence = true,
            '。' | '！' | '？' => {
                found.ends_sentence = true;
                found.sentences += 1;
            }
            '$' | '€' | '£' | '¥' | '₹' => found.has_price = true,
            '©' => found.has_copyright = true,
            ' ' | '\n' => {
                found.sentences += u32::from(matches!(previous, '.' | '!' | '?' | ':'));
            }
            '"' | '”' | '’' | '\'' | ')' | ']' => {}
            _ => found.ends_sentence = false,
        }
        previous = char;
    }
    found.sentences += u32::from(matches!(previous, '.' | '!' | '?' | '…'));
    for hash in word_hashes(text) {
        found.hash = (found.hash ^ hash).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        found.title_words += u32::from(title.contains(&hash));
    }
    found
}

/// Scripts written without spaces: each character counts as a word.
fn is_ideograph(char: char) -> bool {
    matches!(char, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
}

/// A hash of each word in lower case (ASCII only; other scripts unchanged).
pub(super) fn word_hashes(text: &str) -> impl Iterator<Item = u64> {
    text.split(|char: char| !char.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(|word| {
            word.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
                (hash ^ u64::from(byte.to_ascii_lowercase())).wrapping_mul(0x0100_0000_01b3)
            })
        })
}
