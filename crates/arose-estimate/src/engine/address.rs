//! Compares URLs: search engines spell the URL of the same page in different ways.

use url::Url;

/// A normalized URL: host in lower case, no default port, no fragment, no trailing slash, `https`
/// as `http`. Other strings are unchanged.
///
/// Other equivalent URLs are found by near-duplicate matching.
pub(super) fn normal(address: &str) -> String {
    let address = address.trim();
    let Ok(mut url) = Url::parse(address) else {
        return address.to_owned();
    };
    url.set_fragment(None);
    let text = String::from(url);
    let text = match text.strip_prefix("https://") {
        Some(rest) => format!("http://{rest}"),
        None => text,
    };
    text.strip_suffix('/').unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_page_one_spelling() {
        for (address, expected) in [
            (
                "HTTP://Example.ORG:80/a/?q=1#top",
                "http://example.org/a/?q=1",
            ),
            ("https://example.org/", "http://example.org"),
            ("http://example.org", "http://example.org"),
            (" pages.jsonl#12 ", "pages.jsonl#12"),
            ("http://example.org/%7Ea/../B", "http://example.org/B"),
        ] {
            assert_eq!(normal(address), expected, "{address}");
            assert_eq!(normal(expected), expected);
        }
    }
}
