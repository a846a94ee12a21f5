//! Tests of real sitemaps, each with its number of URLs.

use std::fs;

use arose_crawl::sitemap::{Limits, parse};

use crate::shared;

#[track_caller]
fn check(name: &str, n_pages: usize, n_sitemaps: usize) {
    let Some(folder) = shared::path("sitemap-samples/crawler-commons") else {
        return;
    };
    let sitemap = parse(&fs::read(folder.join(name)).unwrap(), Limits::default());
    let found = (sitemap.pages.len(), sitemap.sitemaps.len());
    assert_eq!(found, (n_pages, n_sitemaps), "{name}");
    let mut urls = sitemap.pages.iter().chain(&sitemap.sitemaps);
    assert!(urls.all(|entry| entry.url.starts_with("http")), "{name}");
    assert!(!sitemap.is_cut && !sitemap.is_damaged, "{name}");
}

#[test]
fn samples() {
    check("sitemaps/atom.xml", 1, 0);
    check("sitemaps/do-not-visit.txt", 1, 0);
    check("sitemaps/sitemap-with-bom.txt", 2, 0);
    check("sitemaps/sitemap.badns.xml", 2, 0);
    check("sitemaps/sitemap.index.xml", 0, 15);
    check("sitemaps/sitemap.ns.xml", 2, 0);
    check("sitemaps/sitemap.txt", 2, 0);
    check("sitemaps/sitemap.txt.gz", 5, 0);
    check("sitemaps/xmlSitemap.gz", 5, 0);
    check("rss/feed.rss", 4, 0);
    check("rss/xmlRss_pubDate.xml", 7, 0);
}

#[test]
fn extensions() {
    check(
        "sitemaps/extension/hebdenbridgetimes-articles-sitemap.xml",
        74,
        0,
    );
    check("sitemaps/extension/pagemaps-sitemap.xml", 2, 0);
    check("sitemaps/extension/shinpaideshou-news-sitemap.xml", 3, 0);
    check("sitemaps/extension/sitemap-images.xml", 1, 0);
    check("sitemaps/extension/sitemap-links.xml", 3, 0);
    check("sitemaps/extension/sitemap-mobile.xml", 3, 0);
    check("sitemaps/extension/sitemap-news.xml", 2, 0);
    check("sitemaps/extension/sitemap-videos-tvshow.xml", 1, 0);
    check("sitemaps/extension/sitemap-videos.xml", 3, 0);
}
