//! The plain rule: drop what is navigation by its element, then short blocks that are mostly links.
//!
//! Good for documentation and simple pages, helpless where layout is made of `div`s alone; it is
//! the floor any learned method has to clear. No parameters were fitted.

use super::super::tag::Tag;
use super::tree::{Block, Tree};

/// Blocks with a larger share of link text are links.
const MAX_LINK_DENSITY: f64 = 0.5;
/// Blocks of at least so many words stay even when they are links.
const MIN_WORDS: usize = 10;

/// Which blocks to keep.
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
