//! Quality end to end: spam and good pages over HTTP, rules that reject, sites that fall.

use std::collections::BTreeSet;
use std::fs;

use arose_crawl::counters::Counter;
use arose_crawl::{End, Settings};
use testweb::{Config, Folder, Kind, PageCount, Server};

use crate::shared;
use crate::web::{fetched, home, run, settings};

/// A web with some spam of each kind among plain hosts.
fn spam(kinds: &[Kind], n_hosts: u32, n_pages: u32) -> Server {
    let mut weights = vec![(Kind::Plain, kinds.len() as u32)];
    weights.extend(kinds.iter().map(|kind| (*kind, 1)));
    Server::start(Config {
        pages: PageCount::Fixed(n_pages),
        // Long enough for copies to stay copies under other links.
        median_bytes: 40_960,
        size_sigma: 0.3,
        n_hosts,
        kinds: weights,
        robots: vec![(testweb::Robots::AllowAll, 1)],
        ..Config::plain(n_hosts)
    })
    .unwrap()
}

/// The plain hosts first, then the others, so that copies are told from what they copy.
fn two_runs(server: &Server, settings: &Settings) -> [arose_crawl::Summary; 2] {
    let folder = tempfile::tempdir().unwrap();
    let hosts = || (0..).zip(server.web.hosts());
    let of = |is_spam: bool| -> Vec<u32> {
        let hosts = hosts().filter(|(_, host)| host.kind.is_spam() == is_spam);
        hosts.map(|(host, _)| host).collect()
    };
    let names = |hosts: Vec<u32>| -> Vec<String> {
        let name = |host: u32| server.web.hosts()[host as usize].name.clone();
        hosts.into_iter().map(name).collect()
    };
    let homes = |hosts: Vec<u32>| -> Vec<String> {
        hosts.into_iter().map(|host| home(server, host)).collect()
    };
    let mut first = settings.clone();
    first.scope.blocked = names(of(true));
    let plain = run(folder.path(), first, &homes(of(false)));
    let all = run(folder.path(), settings.clone(), &homes(of(true)));
    [plain, all]
}

#[test]
fn spam_weighs_little_and_good_pages_much() {
    for kind in Kind::SPAM {
        let server = spam(&[kind], 8, 30);
        let [plain, all] = two_runs(&server, &settings(&server));
        let n_plain = plain.counters.get(Counter::Pages);
        assert_eq!(plain.counters.get(Counter::LowQuality), 0, "{kind:?}");
        let n_spam = all.counters.get(Counter::Pages) - n_plain;
        assert!(n_spam >= 60, "{kind:?}: {n_spam} pages");
        let n_light = all.counters.get(Counter::SpamLike);
        println!("{kind:?}: {n_light} of {n_spam} pages weigh 0.2 at most");
        assert!(
            n_light * 100 >= n_spam * 95,
            "{kind:?}: {n_light} of {n_spam}"
        );
        // Quality alone rejects nothing.
        assert_eq!(all.end, End::Done);
        assert_eq!((all.n_queued, all.counters.balance()), (0, 0));
        assert_eq!(all.counters.get(Counter::QualityRejected), 0);
        server.stop().unwrap();
    }
}

/// The pages of `extract-wcxb-dev`, served as files: 98% weigh at least 0.5.
#[test]
fn reviewed_pages_weigh_enough() {
    let Some(pages) = shared::rows("extract-wcxb-dev/pages.jsonl.zst") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let is_good = |page: &&serde_json::Value| {
        let text = page["main_content"].as_str();
        text.is_some_and(|text| !text.trim().is_empty())
    };
    let pages: Vec<_> = pages.iter().filter(is_good).collect();
    for (i, page) in pages.iter().enumerate() {
        let html = page["html"].as_str().unwrap();
        fs::write(folder.path().join(format!("{i}.html")), html).unwrap();
    }
    let server = Server::start(Config {
        folders: vec![Folder {
            host: "good.test".to_owned(),
            path: folder.path().to_owned(),
        }],
        ..Config::plain(1)
    });
    let server = server.unwrap();
    let mut settings = settings(&server);
    settings.scope.max_depth = 0;
    settings.duplicates.check = false;
    let origin = server.web.origin("good.test");
    let seeds: Vec<String> = (0..pages.len())
        .map(|i| format!("{origin}/{i}.html"))
        .collect();
    let crawl = tempfile::tempdir().unwrap();
    let summary = run(crawl.path(), settings, &seeds);
    let n_pages = summary.counters.get(Counter::Pages);
    let n_light = summary.counters.get(Counter::LowQuality);
    println!("{n_light} of {n_pages} good pages weigh less than 0.5");
    assert_eq!(n_pages, pages.len() as u64);
    assert!(n_light * 50 <= n_pages, "{n_light}");
    server.stop().unwrap();
}

/// Half of the web is spam, and good pages link to it as often as to each other: among the first
/// quarter of the fetches it has at most a fifth of its share. Any host may be asked at any time,
/// so that what is fetched first is what goes first.
#[test]
fn issue_26_spam_is_rare_among_the_first_pages() {
    const N_HOSTS: u32 = 48;
    const N_PAGES: u32 = 250;
    let server = Server::start(Config {
        pages: PageCount::Fixed(N_PAGES),
        ..Config::spam(N_HOSTS)
    });
    let server = server.unwrap();
    let kind = |host: u32| server.web.hosts()[host as usize].kind;
    let (spam, good): (Vec<u32>, Vec<u32>) = (0..N_HOSTS).partition(|host| kind(*host).is_spam());
    let mut settings = settings(&server);
    settings.duplicates = Settings::default().duplicates;
    settings.fetch.in_flight = 8;
    settings.stop.pages = u64::from(N_HOSTS * N_PAGES / 4);
    let homes: Vec<String> = good.iter().map(|&host| home(&server, host)).collect();
    let folder = tempfile::tempdir().unwrap();
    let summary = run(folder.path(), settings, &homes);
    assert_eq!(summary.end, End::Limit);
    let pages = fetched(&server);
    let n_spam = pages.keys().filter(|id| kind(id.host).is_spam()).count();
    let share = spam.len() as f64 / f64::from(N_HOSTS);
    let found = n_spam as f64 / pages.len() as f64;
    println!(
        "{n_spam} of {} pages are spam: {found:.4}, share of hosts {share:.3}",
        pages.len()
    );
    assert!((0.4..0.6).contains(&share) && n_spam > 0);
    assert!(found <= share / 5.0, "{found} {share}");
    // Why a page of such a host waits: the quality of its site is among the reasons.
    let poor = arose_crawl::status(folder.path()).unwrap().poor_sites;
    let name = |host: u32| &server.web.hosts()[host as usize].name;
    let is_poor = |host: u32| poor.iter().find(|site| name(host).ends_with(&site.name));
    let found = spam.iter().find_map(|&host| Some((host, is_poor(host)?)));
    let (host, site) = found.expect("a site with pages of low quality");
    let standing = (0..N_PAGES).rev().find_map(|page| {
        let url = server.web.url(testweb::PageId { host, page });
        arose_crawl::standing(folder.path(), &url).unwrap()
    });
    assert_eq!(standing.unwrap().quality.as_ref(), Some(site));
    server.stop().unwrap();
}

/// Documentation that is installed, served as files: the defaults lose no page of it. The
/// environment may name a folder of several.
#[test]
fn issue_26_documentation_loses_no_page() {
    let path =
        std::env::var("AROSE_DOCS").unwrap_or_else(|_| "/usr/share/doc/valgrind/html".into());
    if !std::path::Path::new(&path).join("index.html").is_file() {
        println!("skipped: no {path}");
        return;
    }
    let server = Server::start(Config {
        folders: vec![Folder {
            host: "docs.test".to_owned(),
            path: path.into(),
        }],
        ..Config::plain(1)
    });
    let server = server.unwrap();
    let seeds = [server.web.origin("docs.test") + "/index.html"];
    let mut quick = settings(&server);
    quick.duplicates = Settings::default().duplicates;
    let mut plain = settings(&server);
    plain.crawl.order = arose_crawl::settings::Order::Breadth;
    plain.duplicates.check = false;
    // Directories of copies are put aside for a day each; the copies do not count for the weight.
    let mut patient = quick.clone();
    patient.duplicates.stale_after = 0;
    let [all, weighed, found] = [plain, patient, quick].map(|settings| {
        let folder = tempfile::tempdir().unwrap();
        let summary = run(folder.path(), settings, &seeds);
        let count = |counter| summary.counters.get(counter);
        let (n_pages, n_low) = (count(Counter::Pages), count(Counter::LowQuality));
        let n_aside = summary.n_aside;
        println!(
            "{n_pages} pages, {n_low} weigh less than 0.5, {n_aside} URLs in stale directories"
        );
        assert_eq!(count(Counter::BadSites), 0);
        assert_eq!(summary.n_queued, n_aside);
        let lines = arose_crawl::index_lines(folder.path()).unwrap();
        let url = |line: &String| line.split('"').nth(3).unwrap().to_owned();
        lines.iter().map(url).collect::<BTreeSet<String>>()
    });
    assert!(all.len() > 20, "{}", all.len());
    assert_eq!(weighed, all);
    assert_eq!(found, all);
    server.stop().unwrap();
}

#[test]
fn rules_reject_and_are_counted() {
    let server = spam(&[Kind::Stuffed], 4, 30);
    let mut settings = settings(&server);
    settings.scope.sitemaps = false;
    settings.quality.reject = vec!["words < 1".to_owned(), "reuse > 8".to_owned()];
    let stuffed = (0..).zip(server.web.hosts());
    let stuffed = stuffed.filter(|(_, host)| host.kind == Kind::Stuffed);
    let homes: Vec<String> = stuffed.map(|(host, _)| home(&server, host)).collect();
    let folder = tempfile::tempdir().unwrap();
    let summary = run(folder.path(), settings, &homes);
    // Home pages and no more: their links are not followed.
    let n = homes.len() as u64;
    assert_eq!(summary.counters.get(Counter::Pages), n);
    assert_eq!(summary.counters.get(Counter::QualityRejected), n);
    let by_rule: Vec<_> = summary.counters.quality_rejections().collect();
    assert_eq!(by_rule, [("reuse>8", n)]);
    let log = fs::read_to_string(folder.path().join("crawl.log")).unwrap();
    let lines = log
        .lines()
        .filter(|line| line.contains(" quality:reuse>8 "));
    assert_eq!(lines.count() as u64, n, "{log}");
    assert_eq!(fetched(&server).len() as u64, n);
    server.stop().unwrap();
}

#[test]
fn bad_rules_are_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("crawl");
    let mut settings = Settings::default();
    settings.network.allow_private = true;
    settings.quality.reject = vec!["ratio >> 4".to_owned()];
    let seeds = arose_crawl::Seeds {
        pages: vec!["http://127.0.0.1:9/".to_owned()],
        sitemaps: Vec::new(),
    };
    let error = arose_crawl::crawl(&dir, settings, seeds, &arose_crawl::Control::default());
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("rule `ratio >> 4`: `>4` is not a number"),
        "{error}"
    );
    assert!(!dir.exists());
}

/// Sites of spam get twenty pages and then one per day; the others get everything.
#[test]
fn sites_of_spam_fall() {
    let server = spam(&[Kind::Farm], 6, 200);
    let mut settings = settings(&server);
    settings.duplicates.stale_after = 1000;
    settings.stop.patience = 0.5;
    let [plain, all] = two_runs(&server, &settings);
    let is_farm = |host: u32| server.web.hosts()[host as usize].kind == Kind::Farm;
    let farms: BTreeSet<u32> = (0..6).filter(|host| is_farm(*host)).collect();
    let counts = farms.iter().map(|farm| {
        let pages = fetched(&server);
        pages.keys().filter(|id| id.host == *farm).count()
    });
    for n in counts {
        // Requests go on while pages wait to be read.
        assert!((20..150).contains(&n), "{n} pages of a farm");
    }
    assert_eq!(all.counters.get(Counter::BadSites), farms.len() as u64);
    assert_eq!(plain.counters.get(Counter::BadSites), 0);
    // The first host keeps some of its pages private.
    let n_plain = (6 - farms.len() as u64) * 200;
    let n_pages = plain.counters.get(Counter::Pages);
    assert!((n_plain - 30..=n_plain).contains(&n_pages), "{n_pages}");
    server.stop().unwrap();
}
