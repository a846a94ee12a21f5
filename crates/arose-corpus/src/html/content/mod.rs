//! Main content of a page: its text without navigation, advertisements and notices.
//!
//! A page is split into blocks of text, each below the elements that contain it. A method chooses
//! some of the blocks, and their text, in order, is the main content. There are two methods, which
//! implement [`MainContent`]:
//!
//! | method | word F1, 568 pages of 7 kinds | 4-gram F1, 181 articles |
//! |---|---|---|
//! | [`Forest`] (used by [`Mode::Content`]) | 0.866 | 0.951 |
//! | [`LinkDensity`] | 0.772 | 0.834 |
//!
//! The scores of the forest are from five-fold cross-validation: no page was seen in training. The
//! harness in `bench/extract` scores other libraries through the same trait.
//!
//! Not for pages that a script fills: text that is not in the HTML cannot be found.

mod density;
mod features;
mod forest;
mod forest_table;
mod hints;
mod json_ld;
mod tree;

use url::Url;

use super::page::{Collector, Links, Metadata};
use super::{Extracted, HtmlConfig, HtmlWarning, Mode};
use tree::Tree;

/// A method to find the main content.
pub trait MainContent {
    /// The main text of a page, one line per block; empty if it has none.
    fn main_text(&self, html: &str) -> String;
}

/// The learned method. See the table above, and the module of the forest for its design.
#[derive(Clone, Copy, Debug, Default)]
pub struct Forest;

impl MainContent for Forest {
    fn main_text(&self, html: &str) -> String {
        let mut collector = Collector::new(Links::Skip);
        let tree = tree::read(html, &mut collector);
        let chosen = choose_by_forest(&tree, &collector);
        join(&tree, &chosen)
    }
}

/// The simple rule: drops navigation elements and short blocks that are mostly links.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinkDensity;

impl MainContent for LinkDensity {
    fn main_text(&self, html: &str) -> String {
        let tree = tree::read(html, &mut Collector::new(Links::Skip));
        join(&tree, &density::choose(&tree))
    }
}

/// A block as input of the forest.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredBlock {
    /// Its text.
    pub text: String,
    /// Its features, in the order of the forest's table.
    pub features: Vec<f32>,
}

/// The blocks of a page with their features, for training a new forest.
#[must_use]
pub fn measure(html: &str) -> Vec<MeasuredBlock> {
    let mut collector = Collector::new(Links::Skip);
    let tree = tree::read(html, &mut collector);
    let page = features::MeasuredPage::new(&tree, collector.title());
    let text = |block: &tree::Block| tree.text[block.start..block.end].to_owned();
    tree.blocks
        .iter()
        .enumerate()
        .map(|(at, block)| MeasuredBlock {
            text: text(block),
            features: page.row(at).to_vec(),
        })
        .collect()
}

/// Reads a page in this mode.
pub(super) fn extract(html: &str, page_url: Option<&Url>, config: &HtmlConfig) -> Extracted {
    let mut collector = Collector::new(config.links);
    let tree = tree::read(html, &mut collector);
    let chosen = choose_by_forest(&tree, &collector);
    let mut warnings = Vec::new();
    if tree.is_too_deep {
        warnings.push(HtmlWarning::TooDeep);
    }
    if tree.is_too_wide {
        warnings.push(HtmlWarning::TooManyBlocks);
    }
    let metadata = collector.finish(page_url, html.len(), None, &mut warnings);
    Extracted {
        text: join(&tree, &chosen),
        images: Vec::new(),
        metadata: Metadata {
            mode: Some(Mode::Content),
            ..metadata
        },
        warnings,
    }
}

fn choose_by_forest(tree: &Tree, collector: &Collector) -> Vec<bool> {
    let page = features::MeasuredPage::new(tree, collector.title());
    // A row takes about 600 bytes, so rows are never held for all blocks.
    let probabilities = forest::probabilities(page.len(), |at| page.row(at));
    forest::choose(&probabilities, |at| page.n_words(at))
}

/// The chosen blocks, one per line.
fn join(tree: &Tree, chosen: &[bool]) -> String {
    let blocks = tree.blocks.iter().zip(chosen);
    let blocks = blocks.filter_map(|(block, &chosen)| chosen.then_some(block));
    let n_bytes = blocks
        .clone()
        .map(|block| 1 + block.end - block.start)
        .sum();
    let mut text = String::with_capacity(n_bytes);
    for block in blocks {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&tree.text[block.start..block.end]);
    }
    text
}

#[cfg(test)]
mod tests;
