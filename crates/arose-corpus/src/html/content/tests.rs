//! Tests of both methods and of the tree they share.

use super::*;

const PAGE: &str = "<html><head><title>Roses</title></head><body>\
    <nav><ul><li><a href=/>Home</a><li><a href=/a>About</a></ul></nav>\
    <main><h1>Roses</h1><p>A rose is a rose is a rose, as the poem has it, and no other flower has \
    been named in so many lines. It was grown in gardens long before anyone wrote about it.</p>\
    <p>Most roses that are sold today go back to a few crossings made in the nineteenth century, \
    when breeders in France and England brought plants from China to their gardens.</p></main>\
    <footer><p>Copyright 2020. <a href=/legal>Legal notice</a></p></footer></body></html>";

fn methods() -> [Box<dyn MainContent>; 2] {
    [Box::new(Forest), Box::new(LinkDensity)]
}

fn blocks(html: &str) -> Vec<String> {
    let tree = tree::read(html, &mut Collector::new(Links::Skip));
    tree.blocks
        .iter()
        .map(|block| tree.text[block.start..block.end].to_owned())
        .collect()
}

/// The elements around the block that contains `text`.
fn path(html: &str, text: &str) -> String {
    let tree = tree::read(html, &mut Collector::new(Links::Skip));
    let holds = |block: &&tree::Block| &tree.text[block.start..block.end] == text;
    let mut node = tree.blocks.iter().find(holds).unwrap().node;
    let mut names = Vec::new();
    while node != 0 {
        names.push(tree.nodes[node as usize].tag.name());
        node = tree.nodes[node as usize].parent;
    }
    names.reverse();
    names.join(" ")
}

#[test]
fn the_main_paragraph_survives() {
    for method in methods() {
        let text = method.main_text(PAGE);
        assert!(text.contains("A rose is a rose is a rose"), "{text}");
        assert!(text.contains("brought plants from China"), "{text}");
        assert!(!text.contains("About"), "{text}");
        assert!(!text.contains("Legal"), "{text}");
    }
}

#[test]
fn empty_pages_have_no_content() {
    for method in methods() {
        for html in [
            "",
            "<p>",
            "\0",
            "<title>x</title>",
            "<script>alert('x')</script>",
        ] {
            assert_eq!(method.main_text(html), "");
        }
    }
}

#[test]
fn blocks_end_at_block_elements() {
    assert_eq!(blocks("a <b>b</b><p>c<br>d<p>e"), ["a b", "c\nd", "e"]);
    assert_eq!(blocks("<a href=x><div>a</div>b</a>"), ["a", "b"]);
    assert_eq!(
        blocks("a<select><option>b</select>c<textarea>d</textarea>e"),
        ["a", "c", "e"]
    );
    assert_eq!(blocks("<svg><text>a</text><p>b"), ["b"]);
    assert_eq!(
        blocks("<noscript>a</noscript><template>b</template>"),
        ["a"]
    );
}

#[test]
fn elements_close_each_other() {
    assert_eq!(path("<p>a<div>b", "b"), "div");
    assert_eq!(path("<ul><li>a<ul><li>b</ul><li>c", "c"), "ul li");
    assert_eq!(path("<table><tr><td>a<td>b<tr><td>c", "c"), "table tr td");
    assert_eq!(path("<div><table><td>a</div>b", "b"), "div table td");
    assert_eq!(path("<div><table><td>a</table>b", "b"), "div");
    assert_eq!(path("<h2>a</h3><p>b", "b"), "p");
    assert_eq!(path("<dl><dt>a<dd>b<dt>c", "c"), "dl dt");
    assert_eq!(path("<div></p></span></div><p>a", "a"), "p");
}

#[test]
fn links_are_measured_across_blocks() {
    let tree = tree::read("x<a>y<p>zz</a>t", &mut Collector::new(Links::Skip));
    let links: Vec<u32> = tree.blocks.iter().map(|block| block.link_bytes).collect();
    assert_eq!(links, [1, 2]);
}

/// A tree that is too deep is followed up to a limit, and end tags still work below it.
#[test]
fn hostile_nesting_is_flattened() {
    let n = 200_000;
    for tag in ["div", "b", "table", "p", "ul><li", "svg", "a", "select"] {
        let html = format!("{}rose", format!("<{tag}>").repeat(n));
        let tree = tree::read(&html, &mut Collector::new(Links::Skip));
        assert!(
            tree.nodes
                .iter()
                .all(|node| (node.depth as usize) <= tree::MAX_DEPTH)
        );
    }
    let html = format!("{}{}<p>rose", "<div>".repeat(n), "</div>".repeat(n));
    assert_eq!(path(&html, "rose"), "p");
    let html = format!("{}{}", "<div>".repeat(n), "</section></b></td>".repeat(n));
    assert!(Forest.main_text(&html).is_empty());
}
