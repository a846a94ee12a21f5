//! Structured data of a page: its kind, and sometimes its text.
//!
//! Only two fields are read from `application/ld+json`, by searching for their keys instead of
//! parsing. Such data is often broken, and a key means the same everywhere in it.

use super::super::entity::{Place, decode};
use super::features::word_hashes;
use super::tree::Tree;

/// An article, news or blog entry.
pub(super) const ARTICLE: u32 = 1;
/// A product with its offers.
pub(super) const PRODUCT: u32 = 2;
/// A list or collection of things.
pub(super) const LIST: u32 = 4;
/// A discussion or questions and answers.
pub(super) const FORUM: u32 = 8;

/// The kinds of page that the data names, as bits.
pub(super) fn types(json: &str) -> u32 {
    values(json, "\"@type\"").fold(0, |bits, value| bits | kind(value))
}

fn kind(name: &str) -> u32 {
    match name {
        "Article"
        | "NewsArticle"
        | "BlogPosting"
        | "TechArticle"
        | "Report"
        | "ReportageNewsArticle" => ARTICLE,
        "Product" | "ProductGroup" => PRODUCT,
        "ItemList" | "CollectionPage" | "OfferCatalog" | "SearchResultsPage" => LIST,
        "DiscussionForumPosting" | "QAPage" | "Question" => FORUM,
        _ => 0,
    }
}

/// The longest `articleBody`, decoded; empty if there is none.
pub(super) fn article_body(json: &str) -> String {
    let raw = values(json, "\"articleBody\"")
        .max_by_key(|value| value.len())
        .unwrap_or_default();
    let plain = unescape(raw);
    decode(&plain, Place::Text).into_owned()
}

/// The string values of a key, still escaped.
fn values<'j>(json: &'j str, key: &'j str) -> impl Iterator<Item = &'j str> {
    json.match_indices(key).filter_map(move |(at, _)| {
        let rest = json[at + key.len()..]
            .trim_start()
            .strip_prefix(':')?
            .trim_start();
        let rest = rest
            .strip_prefix('[')
            .unwrap_or(rest)
            .trim_start()
            .strip_prefix('"')?;
        let mut escaped = false;
        let end = rest.bytes().position(|byte| {
            let ends = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            ends
        })?;
        Some(&rest[..end])
    })
}

/// Decodes the escapes of a JSON string. Surrogates become spaces, because they never stand for
/// letters here.
fn unescape(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        out.push_str(&rest[..at]);
        let tail = &rest[at + 1..];
        let Some(escape) = tail.chars().next() else {
            return out;
        };
        let mut used = escape.len_utf8();
        match escape {
            'n' | 'r' | 't' | 'b' | 'f' => out.push(' '),
            'u' => {
                let code = tail
                    .get(1..5)
                    .and_then(|hex| u32::from_str_radix(hex, 16).ok());
                out.push(code.and_then(char::from_u32).unwrap_or(' '));
                used += if code.is_some() { 4 } else { 0 };
            }
            other => out.push(other),
        }
        rest = &tail[used..];
    }
    out.push_str(rest);
    out
}

/// Maximum number of word pairs of a body that are searched for; a longer body is a book.
const MAX_PAIRS: usize = 1 << 16;

/// For each block, the share of its word pairs that occur in the body; -1 without a body.
pub(super) fn overlaps(tree: &Tree, body: &str) -> Vec<f32> {
    let mut known: Vec<u64> = pairs(body).take(MAX_PAIRS).collect();
    if known.len() < 20 {
        return vec![-1.0; tree.blocks.len()];
    }
    known.sort_unstable();
    let share = |text: &str| {
        let (mut n, mut hits) = (0, 0);
        for pair in pairs(text) {
            n += 1;
            hits += u32::from(known.binary_search(&pair).is_ok());
        }
        if n == 0 { 0.0 } else { hits as f32 / n as f32 }
    };
    tree.blocks
        .iter()
        .map(|block| share(&tree.text[block.start..block.end]))
        .collect()
}

fn pairs(text: &str) -> impl Iterator<Item = u64> {
    let mut previous = None;
    word_hashes(text).filter_map(move |hash| {
        let pair = previous.map(|previous: u64| previous.rotate_left(17) ^ hash);
        previous = Some(hash);
        pair
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_found_anywhere() {
        assert_eq!(
            types(r#"{"@graph":[{"@type": "NewsArticle"},{"@type":["Product","x"]}]"#),
            3
        );
        assert_eq!(types(r#"{"@type": 5, "@type"#), 0);
    }

    #[test]
    fn the_longest_body_counts() {
        let json = r#"{"articleBody":"a \"b\" caf\u00e9\nx &amp; y","articleBody":"short"}"#;
        assert_eq!(article_body(json), "a \"b\" café x & y");
        assert_eq!(article_body(r#"{"articleBody":"never closed \"#), "");
    }
}
