//! A digest of everything a page shows, except session IDs in its links.
//!
//! For duplicate detection, the URLs of links are part of the text, so that lists of different
//! links differ. On a site that writes a session ID into every link, no two copies of a page would
//! then be equal. Here, URLs count without apparent session IDs and tracking parameters.

use std::collections::{HashMap, HashSet};

use arose::digest::digest64;
use arose::dust::{Class, is_known_name};
use arose_corpus::payload::Page;

/// Digests that are equal for pages that differ only in session IDs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Likeness {
    /// Of text, images and links.
    pub(crate) all: u64,
    /// Of text alone.
    pub(crate) words: u64,
}

impl Likeness {
    /// Computes the digests of a page.
    pub(super) fn of(page: &Page) -> Self {
        let metadata = page.metadata.as_deref();
        let visibility = metadata.and_then(|metadata| metadata.visibility.as_deref());
        let mut all = String::with_capacity(page.text.len() + page.text.len() / 8);
        let n_addresses = visibility.map_or(0, |visibility| visibility.addresses.len());
        let mut addresses = Vec::with_capacity(n_addresses + page.images.len());
        match visibility {
            Some(visibility) => {
                visibility.cut(&page.text, &mut all);
                let places = visibility.addresses.iter();
                let texts = places.filter_map(|&[start, end]| {
                    let text = page.text.get(start as usize..end as usize)?;
                    Some(Address::of(text.trim()))
                });
                addresses.extend(texts);
            }
            None => all.push_str(&page.text),
        }
        let words = digest64(all.as_bytes());
        addresses.extend(page.images.iter().map(|image| Address::of(&image.src)));
        let sessions = Sessions::of(&addresses);
        for address in &addresses {
            all.push('\n');
            sessions.push_without(address, &mut all);
        }
        Self {
            all: digest64(all.as_bytes()),
            words,
        }
    }
}

/// A URL without its fragment.
struct Address<'a> {
    path: &'a str,
    query: &'a str,
}

impl<'a> Address<'a> {
    fn of(text: &'a str) -> Self {
        let text = text.split('#').next().unwrap_or_default();
        let (path, query) = text.split_once('?').unwrap_or((text, ""));
        Self { path, query }
    }

    /// Returns the segments of its path, without parameters.
    fn segments(&self) -> impl Iterator<Item = &'a str> {
        let segments = self.path.split('/');
        segments.map(|segment| segment.split(';').next().unwrap_or_default())
    }

    /// Returns the parameters of its query, with their names and values.
    fn parameters(&self) -> impl Iterator<Item = (&'a str, &'a str, &'a str)> {
        let parameters = self.query.split('&');
        parameters.map(|parameter| {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            (parameter, name, value)
        })
    }
}

/// Where the links of a page have session IDs. Because a session ID may look like a word, most
/// values of a parameter decide.
#[derive(Default)]
struct Sessions<'a> {
    names: HashSet<&'a str>,
    /// Prefixes of segments, with the lengths of the segments.
    shapes: HashSet<(String, usize)>,
}

impl<'a> Sessions<'a> {
    fn of(addresses: &[Address<'a>]) -> Self {
        let mut sessions = Self::default();
        let mut balance: HashMap<&str, i64> = HashMap::new();
        for address in addresses {
            for (_, name, value) in address.parameters() {
                let is_session = Class::of(value).is_some();
                *balance.entry(name).or_default() += if is_session { 1 } else { -1 };
            }
            let classes = address.segments().filter_map(Class::of);
            let shapes = classes.map(|class| (class.prefix, class.length));
            sessions.shapes.extend(shapes);
        }
        let names = balance.into_iter().filter(|(_, balance)| *balance > 0);
        sessions.names = names.map(|(name, _)| name).collect();
        sessions
    }

    fn is_session(&self, segment: &str) -> bool {
        if self.shapes.is_empty() {
            return false;
        }
        let start = segment
            .bytes()
            .take(4)
            .position(|b| matches!(b, b'-' | b'_'));
        let (prefix, id) = segment.split_at(start.map_or(0, |at| at + 1));
        let is_plain = id.bytes().all(|b| b.is_ascii_alphanumeric());
        is_plain && self.shapes.contains(&(prefix.to_owned(), segment.len()))
    }

    /// Appends a URL without its session IDs and tracking parameters.
    fn push_without(&self, address: &Address<'_>, out: &mut String) {
        for segment in address.segments().filter(|one| !self.is_session(one)) {
            out.push_str(segment);
            out.push('/');
        }
        for (parameter, name, _) in address.parameters() {
            if !is_known_name(name) && !self.names.contains(name) {
                out.push('?');
                out.push_str(parameter);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arose_corpus::html::{HtmlConfig, Links, Mode, Switch};
    use arose_corpus::payload;

    fn likeness(html: &str) -> Likeness {
        let config = HtmlConfig {
            mode: Mode::Henzinger,
            visibility: Switch::On,
            links: Links::Collect,
            ..HtmlConfig::default()
        };
        let url = Some("http://h/");
        let page = payload::read(html.as_bytes(), Some("text/html"), url, &config);
        Likeness::of(&page.unwrap())
    }

    #[test]
    fn sessions_do_not_count_and_other_links_do() {
        let page = |link: &str| {
            likeness(&format!(
                "<p>one <a href='{link}'>two</a> three <img src=x>"
            ))
        };
        let plain = page("/a/b?id=7");
        for same in [
            "/a/b?id=7&sid=X3bk1LmPQ0z",
            "/a/b?PHPSESSID=1&id=7",
            "/S-fXyiE5bZS43/a/b?id=7",
            "/a/b;jsessionid=1?id=7#top",
        ] {
            assert_eq!(page(same), plain, "{same}");
        }
        for other in ["/a/b?id=8", "/a/c?id=7", "/a/b", "/a/b?id=7&page=2"] {
            assert_ne!(page(other), plain, "{other}");
        }
        assert_ne!(
            likeness("<p>one <a href='/a/b?id=7'>two</a> four <img src=x>"),
            plain
        );
        assert_ne!(
            likeness("<p>one <a href='/a/b?id=7'>two</a> three <img src=y>"),
            plain
        );
    }
}
