//! Compares every result with that of brute force.

use arose::mix::SplitMix;
use arose::rule::{Criterion, Remove};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arose_search::{Collapse, GoOn, Hit, Index, Order, Part, Query, Request, Scope};

use crate::oracle::{Expected, Oracle};
use crate::support::{Page, dedup, dedup_by, indexed, n_matching, query, write_pages};

const WORDS: [&str; 12] = [
    "rose", "red", "thorn", "garden", "a", "the", "東京", "été", "x-ray", "of", "Rome", "bloom",
];

const SITES: [&str; 3] = ["www.roses.org", "roses.org", "shop.example.co.uk"];

/// Short pages, so that the index stores their lengths exactly; a third of them are copies.
fn pages(seed: u64, n: usize) -> Vec<Page> {
    let mut random = SplitMix::new(seed);
    let mut pages: Vec<Page> = Vec::new();
    for number in 0..n {
        let mut text = |n: u64| {
            let words: Vec<&str> = (0..n)
                .map(|_| WORDS[random.below(WORDS.len() as u64) as usize])
                .collect();
            words.join(" ")
        };
        let mut page = Page {
            title: Some(text(2)),
            text: text(20),
            ..Page::default()
        };
        if number > 3 && random.below(3) == 0 {
            let original = random.below(number as u64) as usize;
            page.text = match random.below(2) {
                0 => pages[original].text.clone(),
                _ => pages[original].text.to_uppercase(),
            };
        }
        let site = SITES[random.below(3) as usize];
        page.url = format!(
            "https://{site}/{}/{number}",
            WORDS[random.below(5) as usize]
        );
        page.language = ["en", "de"]
            .get(random.below(3) as usize)
            .map(|&name| name.to_owned());
        page.time = (random.below(4) > 0).then(|| random.below(50) as i64);
        pages.push(page);
    }
    pages
}

/// Eight pages, each of which shares more than 0.8 of its shingles with the next one and less with
/// the one after that: connected to each other, and more than one cluster.
fn short_chain(seed: u64) -> Vec<Page> {
    let mut random = SplitMix::new(seed);
    // Of one token each, so that the index stores the lengths of these pages exactly, too.
    let single = ["rose", "red", "thorn", "garden", "a", "the", "of", "Rome"];
    let words: Vec<&str> = (0..50)
        .map(|_| single[random.below(single.len() as u64) as usize])
        .collect();
    let page = |i: usize| Page {
        url: format!("https://{}/chain/{i}", SITES[i % 3]),
        text: words[2 * i..2 * i + 36].join(" "),
        time: Some(i as i64),
        ..Page::default()
    };
    (0..8).map(page).collect()
}

fn queries() -> Vec<Query> {
    let texts = [
        "rose",
        "ROSE garden",
        "rose OR thorn",
        "rose -thorn",
        "NOT rose",
        "-rose -thorn",
        "\"red rose\"",
        "\"red rose\" OR \"rose red\"",
        "(rose OR red) (garden OR bloom) -rome",
        "rose OR NOT thorn",
        "東京",
        "ÉTÉ",
        "x-ray",
        "title:rose",
        "title:\"rose red\"",
        "url:garden",
        "site:roses.org rose",
        "site:www.roses.org",
        "site:uk",
        "site:es.org",
        "lang:en rose",
        "lang:fr",
        "lang:EN rose",
        "gar*",
        "RO* -rose",
        "title:r* thorn",
        "url:gar*",
        "*",
        "* -rose",
        "year:1970 rose",
        "year:1971",
        "missing",
        "rose missing",
        "rose OR missing",
    ];
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn found(index: &Index, query: &Query, request: &Request) -> (u64, u64, Vec<Expected>) {
    let results = index.search(query, request).unwrap();
    let hits = results.hits.iter().map(|hit| Expected {
        doc: hit.doc,
        n_exact: hit.n_exact,
        n_near: hit.n_near,
        n_versions: hit.n_versions,
    });
    (results.n_documents, results.n_results, hits.collect())
}

/// Counts, order, representatives and numbers of near duplicates, page by page, also if clusters
/// are connected to each other.
#[test]
fn answers_equal_brute_force() {
    for seed in 0..2 {
        let folder = tempfile::tempdir().unwrap();
        let (input, out) = (folder.path().join("pages.jsonl"), folder.path().join("out"));
        let pages = [pages(seed, 80), short_chain(seed)].concat();
        write_pages(&input, &pages);
        dedup(&input, &out);
        let (index, oracle) = (indexed(&out), Oracle::new(&out, &pages));
        oracle.check_star(0.8);
        let n_of_chain = oracle.n_kept(80..88);
        assert!((2..8).contains(&n_of_chain), "{n_of_chain} of a chain");
        for query in queries() {
            check(&index, &oracle, &query);
        }
    }
}

/// Texts with a near duplicate, another version, and an exact duplicate of that version, each on
/// its own site.
fn with_versions(n: usize) -> Vec<Page> {
    let page = |family: usize, number: usize| {
        // Words at the end that only this one has: the shared parts are 0.93 and 0.83.
        let (n_other, name) = [(0, 'a'), (2, 'b'), (5, 'c'), (5, 'c')][number];
        let words = (0..30).map(|word| match word < 30 - n_other {
            true => format!("f{family}w{word}"),
            false => format!("f{family}{name}{word}"),
        });
        Page {
            url: format!("https://v{family}n{number}.example/"),
            title: Some(format!("rose {}", WORDS[number])),
            text: words.collect::<Vec<_>>().join(" "),
            ..Page::default()
        }
    };
    let families = (0..n).flat_map(|family| (0..4).map(move |number| (family, number)));
    families
        .map(|(family, number)| page(family, number))
        .collect()
}

#[test]
fn issue_24_versions_are_one_result() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("pages.jsonl"), folder.path().join("out"));
    let pages = [pages(24, 60), with_versions(6)].concat();
    write_pages(&input, &pages);
    let mut config = arose_dedup::Config::default();
    config.policy.criterion = Criterion::Content(Remove::Same);
    dedup_by(&input, &out, &config);
    let (index, oracle) = (indexed(&out), Oracle::new(&out, &pages));
    assert!(index.has_versions());
    for query in queries() {
        check(&index, &oracle, &query);
    }
    let ask = |text: &str, collapse| {
        let request = Request {
            collapse,
            ..Request::default()
        };
        let mut results = index.search(&query(text), &request).unwrap();
        (results.n_results, results.hits.remove(0))
    };
    let (n_results, hit) = ask("f3w0", Collapse::Content);
    assert_eq!((n_results, hit.doc, hit.group), (1, 72, 72));
    assert_eq!(hit.duplicates().unwrap(), "1 near duplicate and 2 versions");
    let (n_results, hit) = ask("f3c29", Collapse::Content);
    assert_eq!((n_results, hit.doc, hit.n_versions), (1, 74, 1));
    let (n_results, hit) = ask("f3w0", Collapse::Same);
    assert_eq!((n_results, hit.n_versions), (2, 0));
    assert_eq!(ask("f3w0", Collapse::Nothing).0, 4);
    let group = Request {
        group: Some(72),
        collapse: Collapse::Nothing,
        ..Request::default()
    };
    assert_eq!(index.search(&query("rose"), &group).unwrap().n_results, 4);
}

fn check(index: &Index, oracle: &Oracle, query: &Query) {
    let n_documents = oracle.matching(query).len() as u64;
    assert_eq!(n_matching(index, query), n_documents, "{query:?}");
    for collapse in [Collapse::Content, Collapse::Same, Collapse::Nothing] {
        let expected = oracle.results(query, collapse, |doc| oracle.time(doc));
        let request = Request {
            order: Order::Newest,
            limit: 7,
            collapse,
            ..Request::default()
        };
        for offset in [0, 7, 1000] {
            let request = Request { offset, ..request };
            let page: Vec<Expected> = expected.iter().skip(offset).take(7).cloned().collect();
            let n_results = expected.len() as u64;
            assert_eq!(
                found(index, query, &request),
                (n_documents, n_results, page),
                "{query:?} {request:?}"
            );
        }
        check_scores(index, oracle, query, collapse);
    }
}

/// Scores are those of BM25 to four digits, and results are in their order.
fn check_scores(index: &Index, oracle: &Oracle, query: &Query, collapse: Collapse) {
    let request = Request {
        limit: 1000,
        collapse,
        ..Request::default()
    };
    let results = index.search(query, &request).unwrap();
    let scores: Vec<f32> = results.hits.iter().map(|hit| hit.score.unwrap()).collect();
    assert!(scores.is_sorted_by(|a, b| a >= b), "{query:?} {scores:?}");
    let mut shown: Vec<(u64, u64, u64)> = results
        .hits
        .iter()
        .map(|hit| (hit.doc, hit.n_exact, hit.n_near))
        .collect();
    // Scores that are equal except for rounding may be in any order.
    let scored = |doc: usize| (oracle.score(doc, query) * 1e4).round();
    let expected = oracle.results(query, collapse, scored);
    let mut expected: Vec<(u64, u64, u64)> = expected
        .iter()
        .map(|result| (result.doc, result.n_exact, result.n_near))
        .collect();
    shown.sort_unstable();
    expected.sort_unstable();
    assert_eq!(shown, expected, "{query:?}");
    for hit in &results.hits {
        let score = oracle.score(hit.doc as usize, query);
        let difference = (score - f64::from(hit.score.unwrap())).abs();
        assert!(difference < 1e-3, "{query:?} {hit:?} {score}");
    }
}

/// A few results are the first of all results, in whichever way they are found. There are enough
/// documents that blocks of them are skipped.
#[test]
fn the_best_are_the_first_of_all() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("pages.jsonl"), folder.path().join("out"));
    write_pages(&input, &pages(5, 1500));
    dedup(&input, &out);
    let index = indexed(&out);
    for query in queries() {
        for collapse in [Collapse::Same, Collapse::Nothing] {
            let ask = |offset, limit| {
                let request = Request {
                    offset,
                    limit,
                    collapse,
                    ..Request::default()
                };
                index.search(&query, &request).unwrap()
            };
            let all = ask(0, 2000);
            assert_eq!(all.hits.len() as u64, all.n_results);
            for (offset, limit) in [(0, 1), (0, 10), (7, 5), (100, 20)] {
                let some = ask(offset, limit);
                assert_eq!(
                    (some.n_documents, some.n_results),
                    (all.n_documents, all.n_results)
                );
                let expected = all.hits.iter().skip(offset).take(limit);
                assert!(
                    some.hits.iter().eq(expected),
                    "{query:?} {collapse:?} {offset}"
                );
            }
        }
    }
}

/// A chain: each text shares more than 0.8 of its shingles with the next one, and less with those
/// after that.
fn chain(n: usize) -> Vec<Page> {
    let words: Vec<String> = (0..400).map(|i| format!("word{i}")).collect();
    let page = |i: usize| Page {
        url: format!("https://chain.org/{i}"),
        text: format!("chained {}", words[12 * i..12 * i + 180].join(" ")),
        ..Page::default()
    };
    (0..n).map(page).collect()
}

/// A run keeps several of a chain of 12 documents, and each of them is a result.
#[test]
fn issue_23_a_chain_is_not_one_result() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("pages.jsonl"), folder.path().join("out"));
    let pages = chain(12);
    write_pages(&input, &pages);
    dedup(&input, &out);
    let (index, oracle) = (indexed(&out), Oracle::new(&out, &pages));
    oracle.check_star(0.8);
    let results = index.search(
        &query("chained"),
        &Request {
            limit: 20,
            ..Request::default()
        },
    );
    let results = results.unwrap();
    let n_kept = results.hits.iter().filter(|hit| hit.kept).count();
    assert!(n_kept > 3, "{results:?}");
    assert_eq!(
        (results.n_documents, results.n_results),
        (12, n_kept as u64)
    );
    let n_shown: u64 = results.hits.iter().map(|hit| hit.n_near + 1).sum();
    assert_eq!(n_shown, 12);
    let kept = Request {
        scope: Scope::Kept,
        ..Request::default()
    };
    let kept = index.search(&query("chained"), &kept).unwrap();
    assert_eq!(
        (kept.n_documents, kept.n_results),
        (n_kept as u64, n_kept as u64)
    );
}

/// At most two results of a site are returned together; the others are omitted, which is reported.
#[test]
fn issue_23_a_site_does_not_fill_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("pages.jsonl"), folder.path().join("out"));
    let page = |i: usize| Page {
        // Twelve pages of the first site rank before one page each of five others.
        url: match i {
            0..12 => format!("https://www.big.org/{i}"),
            _ => format!("https://small{i}.org/"),
        },
        title: (i < 12).then(|| "rose rose".to_owned()),
        text: format!(
            "rose number{i} {}",
            (0..20).map(|j| format!("w{i}x{j} ")).collect::<String>()
        ),
        ..Page::default()
    };
    let pages: Vec<Page> = (0..17).map(page).collect();
    write_pages(&input, &pages);
    dedup(&input, &out);
    let index = indexed(&out);
    let ask = |query: &str, offset, limit, per_site| {
        let request = Request {
            offset,
            limit,
            per_site,
            ..Request::default()
        };
        index.search(&query.parse().unwrap(), &request).unwrap()
    };
    let shown = |results: &arose_search::Results| -> Vec<(usize, bool)> {
        results
            .hits
            .iter()
            .map(|hit| (hit.rank, hit.more_from_site))
            .collect()
    };
    let first = ask("rose", 0, 4, 2);
    assert_eq!(
        shown(&first),
        [(0, false), (1, true), (12, false), (13, false)]
    );
    assert_eq!((first.n_results, first.next), (17, Some(14)));
    assert_eq!(first.hits[0].site.as_deref(), Some("big.org"));
    let second = ask("rose", first.next.unwrap(), 4, 2);
    assert_eq!(shown(&second), [(14, false), (15, false), (16, false)]);
    assert_eq!(second.next, None);
    // The omitted results are found by naming the site, and by requesting all results.
    let site = ask("rose site:big.org", 0, 20, 2);
    assert_eq!((site.hits.len(), site.next), (12, None));
    let all = ask("rose", 0, 10, 0);
    assert_eq!((all.hits.len(), all.next), (10, Some(10)));
    assert!(all.hits.iter().all(|hit| !hit.more_from_site));
    // If only one site has results, they fill the page.
    let only = ask("title:rose", 0, 5, 2);
    assert_eq!(shown(&only), [0, 1, 2, 3, 4].map(|rank| (rank, false)));
    assert_eq!((only.n_results, only.next), (12, Some(5)));
    let rest = ask("title:rose", 10, 5, 2);
    assert_eq!(shown(&rest), [(10, false), (11, false)]);
    assert_eq!(rest.next, None);
}

/// A search that is stopped ends without a result.
#[test]
fn a_search_can_be_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("pages.jsonl"), folder.path().join("out"));
    write_pages(&input, &pages(3, 300));
    dedup(&input, &out);
    let index = indexed(&out);
    let never: GoOn = Arc::new(|| false);
    for query in queries() {
        for order in [Order::Score, Order::Newest] {
            let request = Request {
                order,
                ..Request::default()
            };
            let stopped = index.search_while(&query, &request, &never).unwrap();
            assert!(stopped.is_none(), "{query:?}");
        }
        let facets = index
            .facets_while(&query, &Request::default(), &never)
            .unwrap();
        assert_eq!(facets, None);
    }
}

/// Counts by site, language and year are those of brute force.
#[test]
fn facets_equal_brute_force() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("pages.jsonl"), folder.path().join("out"));
    let mut pages = pages(11, 120);
    for (i, page) in pages.iter_mut().enumerate() {
        page.time = page.time.map(|time| time + 31_556_952 * (i as i64 % 5));
    }
    write_pages(&input, &pages);
    dedup(&input, &out);
    let index = indexed(&out);
    let query: Query = "rose".parse().unwrap();
    let facets = index
        .facets_while(&query, &Request::default(), &(Arc::new(|| true) as GoOn))
        .unwrap()
        .unwrap();
    let matching = |page: &&Page| {
        let text = format!(
            "{} {}",
            page.title.as_deref().unwrap_or_default(),
            page.text
        );
        text.to_lowercase()
            .split_whitespace()
            .any(|word| word == "rose")
    };
    let count = |is: &dyn Fn(&Page) -> bool| {
        pages
            .iter()
            .filter(matching)
            .filter(|page| is(page))
            .count() as u64
    };
    assert_eq!(facets.sites.len(), 2);
    for (site, n) in &facets.sites {
        assert_eq!(
            *n,
            count(&|page| page.url.split('/').nth(2).unwrap().ends_with(&**site)),
            "{site}"
        );
    }
    assert_eq!(facets.languages.len(), 2);
    for (language, n) in &facets.languages {
        assert_eq!(*n, count(&|page| page.language.as_ref() == Some(language)));
    }
    let n_timed: u64 = facets.years.iter().map(|(_, n)| n).sum();
    assert_eq!(n_timed, count(&|page| page.time.is_some()));
    for (year, n) in &facets.years {
        let of_year: Query = format!("rose year:{year}").parse().unwrap();
        assert_eq!(n_matching(&index, &of_year), *n, "{year}");
    }
}

/// A query that reads more costs more, and one that matches nothing costs nothing.
#[test]
fn costs_are_known_before() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("pages.jsonl"), folder.path().join("out"));
    write_pages(&input, &pages(3, 300));
    dedup(&input, &out);
    let index = indexed(&out);
    let costs = |query: &str| index.cost(&query.parse().unwrap()).unwrap();
    let cost = |query: &str| costs(query).bytes;
    assert_eq!(cost("missing"), 0);
    assert!(cost("rose") > 0 && cost("rose") < cost("rose OR red"));
    let repeated = format!("\"{}\"", "rose ".repeat(250));
    assert!(cost(&repeated) > 200 * cost("rose"), "{}", cost(&repeated));
    assert!(cost("r*") > cost("ros*") && cost("ros*") > 0);
    // Reading before the first match cannot be stopped.
    assert_eq!(costs("r* OR rose").at_once, cost("r*"));
    assert_eq!(costs("\"red rose\" -thorn").at_once, 0);
}

/// The number of times that a search checks whether to continue, and of documents found.
fn n_looks(index: &Index, query: &str) -> (usize, u64) {
    let looks = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&looks);
    let go_on: GoOn = Arc::new(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        true
    });
    let query: Query = query.parse().unwrap();
    let results = index.search_while(&query, &Request::default(), &go_on);
    let n_documents = results.unwrap().unwrap().n_documents;
    (looks.load(Ordering::Relaxed), n_documents)
}

/// A phrase can be stopped between documents that do not have it, and between its words in one long
/// document. In the phrase query of the index library, both are one step.
#[test]
fn issue_23_phrases_can_be_stopped_anywhere() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("pages.jsonl"), folder.path().join("out"));
    let page = |i: usize, text: String| Page {
        url: format!("https://x.org/{i}"),
        text,
        ..Page::default()
    };
    let mut pages: Vec<Page> = (0..600)
        .map(|i| page(i, format!("thorn number{i} of many a red rose")))
        .collect();
    pages.push(page(600, "again ".repeat(20_000)));
    write_pages(&input, &pages);
    dedup(&input, &out);
    let index = indexed(&out);
    let (n_looks_beside, n_found) = n_looks(&index, "\"rose thorn\"");
    assert!(n_looks_beside >= 600 && n_found == 0, "{n_looks_beside}");
    let long = format!("\"{}\"", "again ".repeat(250));
    let (n_looks_inside, n_found) = n_looks(&index, &long);
    assert!(n_looks_inside >= 250 && n_found == 1, "{n_looks_inside}");
    // A search stopped at any check has no results.
    for last in [0, 1, 100, n_looks_inside - 1] {
        let left = AtomicUsize::new(last);
        let go_on: GoOn = Arc::new(move || {
            let taken =
                left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
            taken.is_ok()
        });
        let query: Query = long.parse().unwrap();
        let results = index.search_while(&query, &Request::default(), &go_on);
        assert_eq!(results.unwrap(), None, "{last}");
    }
}

/// Exactly the matching members of a cluster.
#[test]
fn a_result_can_be_expanded() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("pages.jsonl"), folder.path().join("out"));
    let pages = pages(9, 200);
    write_pages(&input, &pages);
    dedup(&input, &out);
    let index = indexed(&out);
    let query = query("rose");
    let results = index
        .search(
            &query,
            &Request {
                limit: 1000,
                ..Request::default()
            },
        )
        .unwrap();
    let n_others = |hit: &Hit| hit.n_exact + hit.n_near;
    let several = results.hits.iter().filter(|hit| n_others(hit) > 0);
    let mut n_expanded = 0;
    for hit in several {
        let request = Request {
            limit: 100,
            collapse: Collapse::Nothing,
            cluster: Some(hit.cluster),
            ..Request::default()
        };
        let members = index.search(&query, &request).unwrap();
        assert_eq!(members.n_documents, n_others(hit) + 1);
        assert!(
            members
                .hits
                .iter()
                .all(|member| member.cluster == hit.cluster)
        );
        n_expanded += 1;
    }
    assert!(n_expanded > 3, "the pages hold too few copies");
}

#[test]
fn hits_say_what_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("pages.jsonl"), folder.path().join("out"));
    let page = Page {
        url: "https://roses.org/a".to_owned(),
        title: Some("On roses".to_owned()),
        text: "A rose is <b>a rose</b>".to_owned(),
        language: Some("en".to_owned()),
        time: Some(7),
    };
    write_pages(&input, &[page]);
    dedup(&input, &out);
    let index = indexed(&out);
    let results = index
        .search(&Query::phrase("is"), &Request::default())
        .unwrap();
    let hit = &results.hits[0];
    assert_eq!(hit.url.as_deref(), Some("https://roses.org/a"));
    assert_eq!(hit.title.as_deref(), Some("On roses"));
    assert_eq!((hit.language.as_deref(), hit.time), (Some("en"), Some(7)));
    let shown: Vec<&str> = hit.snippet.iter().map(|fragment| &*fragment.text).collect();
    assert_eq!(shown, ["A rose ", "is", " <b>a rose</b>"]);
    assert_eq!(
        index.text(hit.doc).unwrap().as_deref(),
        Some("A rose is <b>a rose</b>")
    );
    assert_eq!(index.text(99).unwrap(), None);
    let in_title = Query::Words(Part::Title, vec!["roses".to_owned()]);
    assert_eq!(n_matching(&index, &in_title), 1);
}
