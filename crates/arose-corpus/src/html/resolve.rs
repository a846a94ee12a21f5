//! Resolves links to absolute URLs.
//!
//! Parsing a URL by the WHATWG rules takes about 300 ns, and a page of documentation has one link
//! per 200 bytes. Parsing took half of the time of reading such a page. But most links are plain:
//! they consist of letters, digits and slashes that the rules leave unchanged. Plain links are
//! appended to the right part of the base; all others go to the parser. Both ways give the same
//! result, which is tested.

use url::{Position, Url};

/// Resolves many links against one base.
#[derive(Debug)]
pub(super) struct Resolver<'u> {
    base: &'u Url,
    /// Lengths of the base URL up to its path, its query and its fragment.
    before_path: usize,
    after_path: usize,
    after_query: usize,
    /// Whether the base is a web URL.
    is_web: bool,
}

impl<'u> Resolver<'u> {
    pub(super) fn new(base: &'u Url) -> Self {
        Self {
            base,
            before_path: base[..Position::BeforePath].len(),
            after_path: base[..Position::AfterPath].len(),
            after_query: base[..Position::AfterQuery].len(),
            is_web: is_web(base),
        }
    }

    /// The absolute web URL of a link, or none.
    pub(super) fn resolve(&self, href: &str) -> Option<String> {
        self.glue(href)
            .or_else(|| self.parse(href).map(String::from))
    }

    /// Resolves with the parser. Only web URLs, and local files from local files.
    pub(super) fn parse(&self, href: &str) -> Option<Url> {
        let is_file = |url: &Url| url.scheme() == "file";
        let is_kept = |url: &Url| is_web(url) || is_file(self.base) && is_file(url);
        self.base.join(href).ok().filter(is_kept)
    }

    /// Resolves by concatenation; none if the link is not plain.
    fn glue(&self, href: &str) -> Option<String> {
        if is_plain_absolute(href) {
            return Some(href.to_owned());
        }
        if !self.is_web {
            return None;
        }
        let (kept, rest) = match href.as_bytes() {
            [] | [b'#', ..] => (self.after_query, href),
            [b'?', ..] => (self.after_path, href),
            [b'/', b'/', ..] => return None,
            [b'/', ..] => (self.before_path, href),
            _ => self.climb(href),
        };
        if !is_plain(rest) {
            return None;
        }
        let mut url = String::with_capacity(kept + rest.len());
        url.push_str(&self.base.as_str()[..kept]);
        url.push_str(rest);
        Some(url)
    }

    /// Removes leading `./` and `../` from a link. Returns how much of the base remains.
    fn climb<'h>(&self, href: &'h str) -> (usize, &'h str) {
        let path = &self.base.as_str().as_bytes()[..self.after_path];
        let directory = |end: usize| {
            let slash = memchr::memrchr(b'/', &path[self.before_path..end]);
            slash.map_or(end, |slash| self.before_path + slash + 1)
        };
        let mut kept = directory(path.len());
        let mut rest = href;
        loop {
            if let Some(tail) = rest.strip_prefix("./") {
                rest = tail;
            } else if let Some(tail) = rest.strip_prefix("../") {
                // The slash of the root cannot be removed.
                kept = directory((kept - 1).max(self.before_path + 1));
                rest = tail;
            } else {
                return (kept, rest);
            }
        }
    }
}

pub(super) fn is_web(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
}

/// Whether the parser would leave an absolute URL unchanged.
fn is_plain_absolute(href: &str) -> bool {
    let Some(rest) = href
        .strip_prefix("https://")
        .or_else(|| href.strip_prefix("http://"))
    else {
        return false;
    };
    let Some(slash) = memchr::memchr(b'/', rest.as_bytes()) else {
        return false;
    };
    let (host, path) = rest.split_at(slash);
    is_plain_host(host) && is_plain(path)
}

/// Lower-case labels without encoding, of which the last is not a number.
fn is_plain_host(host: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty()
            && !label.starts_with("xn--")
            && label
                .bytes()
                .all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-'))
    };
    let last = host.rsplit('.').next().unwrap_or_default();
    last.bytes()
        .next()
        .is_some_and(|first| first.is_ascii_lowercase())
        && host.split('.').all(is_label)
}

/// Whether the parser would leave a path, query and fragment unchanged: no character that is
/// encoded or ends a scheme, and no segment that starts with a dot.
fn is_plain(text: &str) -> bool {
    let mut previous = b'/';
    text.bytes().all(|byte| {
        let fits = PLAIN[byte as usize] && !(byte == b'.' && previous == b'/');
        previous = byte;
        fits
    })
}

static PLAIN: [bool; 256] = {
    let mut table = [false; 256];
    let bytes = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/-_.~+=&,;@!$*()?#";
    let mut at = 0;
    while at < bytes.len() {
        table[bytes[at] as usize] = true;
        at += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BASES: [&str; 6] = [
        "https://example.org/",
        "http://example.org:8080/a/b/c.html?q=1/2#f/g",
        "https://user@example.org/a/b/?x",
        "https://example.org//a//b",
        "https://example.org/#only",
        "file:///a/b/c",
    ];

    /// The result of the parser alone. Only local files lead to local files.
    fn parsed(base: &Url, href: &str) -> Option<String> {
        let url = base.join(href).ok()?;
        let is_local = [base, &url].iter().all(|url| url.scheme() == "file");
        (is_web(&url) || is_local).then(|| url.into())
    }

    #[track_caller]
    fn check(href: &str) {
        for base in BASES {
            let base = Url::parse(base).unwrap();
            assert_eq!(
                Resolver::new(&base).resolve(href),
                parsed(&base, href),
                "{base} {href}"
            );
        }
    }

    #[test]
    fn forms_of_links() {
        for href in [
            "",
            "#",
            "#x",
            "?",
            "?a=b",
            "x",
            "x/y.html",
            "/",
            "/x",
            "//h/x",
            "///x",
            ".",
            "..",
            "./",
            "../",
            "../x",
            "../../../../x",
            "./../x",
            "x/../y",
            "x/./y",
            ".x",
            "x/.y",
            "x:y",
            "a?b:c",
            "http://h",
            "http://h/",
            "https://H/x",
            "http://1.2.3.4/",
            "http://1.2/",
            "http://0x7/",
            "http://xn--a/",
            "http://a..b/",
            "http://a-b.c/x?y#z",
            "https://h/../x",
            "https:x",
            "mailto:x",
            "javascript:x()",
            "x y",
            "x\\y",
            "é",
            "%2e%2e/x",
            "a%zz",
            "x#y#z",
            "x?y?z#?",
            "http://h/x//y",
            "x//y",
            "x/;p=1",
            "*",
            "(x)",
            "http://user@h/x",
            "http://h:80/x",
            "file:///x",
            "file:x",
        ] {
            check(href);
        }
    }

    #[test]
    fn no_page_of_the_web_leads_to_a_file() {
        for base in BASES.iter().filter(|base| !base.starts_with("file:")) {
            let base = Url::parse(base).unwrap();
            for href in ["file:///x", "file:x", "FILE:/x", " file://h/x"] {
                assert_eq!(Resolver::new(&base).resolve(href), None, "{base} {href}");
            }
        }
    }

    #[test]
    fn plain_links_are_glued() {
        let base = Url::parse("https://example.org/a/b").unwrap();
        let resolver = Resolver::new(&base);
        for href in ["x/y.html#z", "../x", "/x?y=z", "#x", "https://other.org/x"] {
            assert!(resolver.glue(href).is_some(), "{href}");
        }
    }

    proptest! {
        #[test]
        fn gluing_and_parsing_agree(
            base in prop::sample::select(BASES.to_vec()),
            href in "(https?://[a-z0-9.-]{0,8})?[a-z0-9./?#&=:%~ -]{0,12}",
        ) {
            let base = Url::parse(base).unwrap();
            prop_assert_eq!(Resolver::new(&base).resolve(&href), parsed(&base, &href));
        }
    }
}
