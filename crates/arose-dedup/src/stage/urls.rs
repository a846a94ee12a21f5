//! Normalized URLs, sites and hosts of documents, for the first stage.

use arose::site::{SiteKind, site};
use arose_corpus::Document;
use arose_corpus::url::Normalizer;

/// Returns the normalized URL of a document, or its URL unchanged if it is not a web URL.
pub(super) fn normal_url(document: &Document) -> String {
    let url = document.url.as_deref().unwrap_or_default();
    match Normalizer::default().normalize(url, None) {
        Ok(normal) => normal.as_str().to_owned(),
        Err(_) => url.to_owned(),
    }
}

/// Returns a digest of the site of a URL; zero for documents without one.
pub(crate) fn site_digest(url: Option<&str>, kind: SiteKind) -> u64 {
    let Some(host) = url.and_then(host) else {
        return 0;
    };
    arose::digest::digest64(site(host, kind).as_bytes()).max(1)
}

/// Returns the host of a URL, as written.
pub(crate) fn host(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    (!host.is_empty()).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    #[test]
    fn hosts_are_cut_out_of_addresses() {
        let cases = [
            ("http://site1.example/page274", Some("site1.example")),
            ("https://user:pw@x.org:8080?q#f", Some("x.org:8080")),
            ("file:///tmp/x", None),
            ("mailto:a@b.c", None),
            ("", None),
        ];
        for (url, expected) in cases {
            assert_eq!(host(url), expected, "{url}");
        }
    }

    #[test]
    fn pages_of_one_site_have_one_number() {
        let kind = Config::default().site;
        let [one, other, none] = ["http://site1.example/a", "http://site1.example/b", "x"]
            .map(|url| site_digest(Some(url), kind));
        assert_eq!(one, other);
        assert_eq!(none, 0);
    }
}
