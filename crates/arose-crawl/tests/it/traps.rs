//! Traps and what only looks like one: sites that make up URLs without end, documentation whose
//! pages resemble each other, mirrors.

use std::collections::BTreeSet;

use arose_crawl::counters::Counter;
use arose_crawl::{End, Settings};

use crate::script::{Reply, Request, Web, page, response, settings};

const N_PAGES: usize = 400;
const N_LISTS: usize = 8;

/// The settings of other tests, with the defaults for duplicates and budgets.
fn usual() -> Settings {
    let mut settings = settings();
    settings.budget = Settings::default().budget;
    settings.stop.patience = 10.0;
    settings.polite.delay = 0.0;
    settings.polite.address_delay = 0.0;
    settings.polite.factor = 0.0;
    settings
}

/// A page of text that others have too, except for one word, with some links.
fn similar(word: &str, links: &[String]) -> Reply {
    let words: Vec<String> = (0..300).map(|n| format!("w{}", n * n + 7)).collect();
    let links: Vec<String> = links
        .iter()
        .map(|link| format!("<a href='{link}'>more</a>"))
        .collect();
    let body = format!("<p>{} {word}</p>{}", words.join(" "), links.join(" "));
    response(200, "Content-Type: text/html\r\n", body.as_bytes())
}

/// A manual: lists with a text of their own lead to pages that differ in a word and lead to each
/// other. Each leads to one further page that differs in a word, or to three of endless ones if
/// there is a trap.
fn manual(request: &Request, has_trap: bool) -> Reply {
    let target = request.target.as_str();
    let number = |prefix: &str| target.strip_prefix(prefix)?.parse::<usize>().ok();
    if target == "/robots.txt" {
        return response(404, "", b"");
    }
    if let Some(list) = number("/list/") {
        let pages = (0..N_PAGES).filter(|page| page % N_LISTS == list);
        let links: Vec<String> = pages.map(|page| format!("/api/{page}")).collect();
        let links: Vec<&str> = links.iter().map(String::as_str).collect();
        return page(request, &links);
    }
    if let Some(page) = number("/api/") {
        let next = format!("/api/{}", (page + 1) % N_PAGES);
        let mut links = vec!["/".to_owned(), next];
        match has_trap {
            true => links.extend((0..3).map(|n| format!("/api/{}", 3 * page + N_PAGES + n))),
            false => links.push(format!("/api/{page}/uses")),
        }
        return similar(&format!("page{page}"), &links);
    }
    if target.ends_with("/uses") {
        return similar(target, &["/".to_owned()]);
    }
    let links: Vec<String> = (0..N_LISTS).map(|list| format!("/list/{list}")).collect();
    let links: Vec<&str> = links.iter().map(String::as_str).collect();
    page(request, &links)
}

const ONE: &[(&str, &[&str])] = &[("a.test", &["10.0.0.1"])];

/// Eight hundred pages that differ in a word are all fetched, although they are duplicates in a row
/// and half of them are found only on duplicates.
#[test]
fn issue_26_similar_pages_of_a_list_are_all_fetched() {
    let web = Web::new(ONE, |request| manual(request, false));
    let folder = tempfile::tempdir().unwrap();
    let summary = web.crawl(folder.path(), usual(), &["http://a.test/"]);
    let n_near = summary.counters.get(Counter::NearDuplicates);
    assert!(n_near as usize >= 2 * N_PAGES - 5, "{n_near}");
    assert_eq!((summary.end, summary.n_queued), (End::Done, 0));
    assert_eq!(summary.counters.get(Counter::Stale), 0);
    let targets: BTreeSet<String> = web.targets("a.test").into_iter().collect();
    assert_eq!(targets.len(), 1 + N_LISTS + 2 * N_PAGES);
}

/// If such pages also lead to endless others in the same directory, these are noticed, and all
/// pages of the lists are fetched nevertheless. A restart does not make the crawl forget where a
/// URL was found.
#[test]
fn issue_26_a_trap_among_them_is_noticed() {
    for stops in [&[0][..], &[30, 60, 200, 420, 430, 440, 0]] {
        let web = Web::new(ONE, |request| manual(request, true));
        let folder = tempfile::tempdir().unwrap();
        for &stop in stops {
            let mut settings = usual();
            settings.stop.pages = stop;
            web.crawl(folder.path(), settings, &["http://a.test/"]);
        }
        let targets: BTreeSet<String> = web.targets("a.test").into_iter().collect();
        for n in 0..N_PAGES {
            assert!(targets.contains(&format!("/api/{n}")), "{n}");
        }
        let n_more = targets.len() - (1 + N_LISTS + N_PAGES);
        println!("{n_more} pages of the trap");
        // Fifty in a row for each run, and those that the first pages of their kind lead to.
        assert!((50..200).contains(&n_more), "{n_more}");
    }
}

/// Two hosts have the pages of a third, found on each other; each page is fetched from each host.
#[test]
fn issue_26_mirrors_are_fetched_as_a_whole() {
    const NAMES: &[(&str, &[&str])] = &[
        ("a.test", &["10.0.0.1"]),
        ("b.test", &["10.0.0.2"]),
        ("c.test", &["10.0.0.3"]),
    ];
    let web = Web::new(NAMES, |request| {
        if request.target == "/robots.txt" {
            return response(404, "", b"");
        }
        let n: usize = request.target[1..].parse().unwrap_or(0);
        let links: Vec<String> = (2 * n + 1..2 * n + 3)
            .filter(|n| *n < N_PAGES)
            .map(|n| format!("/{n}"))
            .collect();
        let links: Vec<&str> = links.iter().map(String::as_str).collect();
        let original = Request {
            host: "a.test".to_owned(),
            ..request.clone()
        };
        page(&original, &links)
    });
    let folder = tempfile::tempdir().unwrap();
    let seeds = ["http://a.test/", "http://b.test/", "http://c.test/"];
    let summary = web.crawl(folder.path(), usual(), &seeds);
    let n_copies = summary.counters.get(Counter::ExactDuplicates);
    assert_eq!(n_copies as usize, 2 * N_PAGES);
    assert_eq!((summary.end, summary.n_queued), (End::Done, 0));
    for (name, _) in NAMES {
        assert_eq!(web.targets(name).len(), N_PAGES, "{name}");
    }
}
