//! The simple rule: drops navigation elements, then short blocks that are mostly links.
//!
//! It works well on documentation and simple pages, and badly where the layout consists of `div`s
//! alone. It is the baseline that a learned method must beat. No parameters were fitted.

use super::super::tag::Tag;
use super::tree::{Block, Tree};

/// Blocks with a larger share of link text count as links.
const MAX_LINK_DENSITY: f64 = 0.5;
/// Blocks with at least this many words are kept even if they are links.
const MIN_WORDS: usize = 10;

/// Chooses the blocks to keep.
pub(super) fn choose(tree: &Tree) -> Vec<bool> {
    let mut dropped = vec![false; tree.nodes.len()];
    for at in 1..tree.nodes.len() {
        let node = &tree.nodes[at];
        // Parents come before their children.
        dropped[at] = dropped[node.parent as usize] || is_furniture(node.tag);
    }
    tree.blocks
        .iter()
        .map(|block| !dropped[block.node as usize] && !is_link_list(tree, block))
        .collect()
}

fn is_furniture(tag: Tag) -> bool {
    matches!(
        tag,
        Tag::Nav | Tag::Header | Tag::Footer | Tag::Aside | Tag::Form | Tag::Object | Tag::Noscript
    )
}

fn is_link_list(tree: &Tree, block: &Block) -> bool {
    let text = &tree.text[block.start..block.end];
    let density = f64::from(block.link_bytes) / text.len() as f64;
    density > MAX_LINK_DENSITY && text.split_whitespace().count() < MIN_WORDS
}
