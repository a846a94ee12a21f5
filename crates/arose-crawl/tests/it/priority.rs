//! The order of a crawl, end to end: mass, repeated links, redirects, sitemaps, shares, and the
//! same order after a kill at any moment.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;

use arose::mix::SplitMix;
use arose_crawl::counters::Counter;
use arose_crawl::rehearsal::{Rehearsal, Site};
use arose_crawl::settings::{Budget, Order};
use arose_crawl::{End, Settings, standing, status};

use crate::script::{Reply, Request, Web, page, response, settings};

const ONE: &[(&str, &[&str])] = &[("a.test", &["10.0.0.1"])];
const HOME: &[&str] = &["http://a.test/"];

fn web_of(links: &'static [(&'static str, &'static [&'static str])]) -> Web {
    Web::new(ONE, move |request| match request.target.as_str() {
        "/robots.txt" => response(404, "", b""),
        target => {
            let found = links.iter().find(|(page, _)| *page == target);
            page(request, found.map(|(_, links)| *links).unwrap_or_default())
        }
    })
}

fn order_of(web: &Web, settings: Settings) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let summary = web.crawl(folder.path(), settings, HOME);
    assert_eq!(summary.end, End::Done);
    web.targets("a.test")
}

/// A page that several others link to comes before those found earlier, even if the links have the
/// same text on every page. Breadth first ignores this.
#[test]
fn repeated_links_count() {
    const LINKS: &[(&str, &[&str])] = &[
        ("/", &["/a", "/b", "/c", "/d", "/e"]),
        ("/a", &["/e", "/e", "/a"]),
        ("/e", &["/d"]),
    ];
    let order = order_of(&web_of(LINKS), settings());
    assert_eq!(order, ["/", "/a", "/e", "/d", "/b", "/c"]);
    let mut breadth = settings();
    breadth.crawl.order = Order::Breadth;
    let order = order_of(&web_of(LINKS), breadth);
    assert_eq!(order, ["/", "/a", "/b", "/c", "/d", "/e"]);
}

/// A redirect passes its whole weight to its target.
#[test]
fn redirects_pass_everything_on() {
    let web = Web::new(ONE, |request| match request.target.as_str() {
        "/robots.txt" => response(404, "", b""),
        "/" => page(request, &["/r", "/b", "/c", "/t"]),
        "/r" => response(301, "Location: /t\r\n", b""),
        _ => page(request, &[]),
    });
    assert_eq!(order_of(&web, settings()), ["/", "/r", "/t", "/b", "/c"]);
}

/// Priorities in a sitemap order the pages that it lists, unless they are all the same. Values
/// outside 0 to 1 are ignored.
#[test]
fn priorities_of_sitemaps_order_a_site() {
    let order = |priorities: [&'static str; 5]| {
        let web = Web::new(ONE, move |request| match request.target.as_str() {
            "/robots.txt" => response(200, "", b"Sitemap: http://a.test/map.xml\n"),
            "/map.xml" => {
                let url = |(n, priority): (usize, &&str)| {
                    format!("<url><loc>/{n}</loc><priority>{priority}</priority></url>")
                };
                let urls: String = priorities.iter().enumerate().map(url).collect();
                let body = format!("<urlset>{urls}</urlset>");
                response(200, "Content-Type: text/xml\r\n", body.as_bytes())
            }
            _ => page(request, &[]),
        });
        let mut order = order_of(&web, settings());
        order.retain(|target| !["/", "/map.xml"].contains(&target.as_str()));
        order
    };
    assert_eq!(
        order(["0.1", "0.9", "NaN", "0.5", "1.0"]),
        ["/4", "/1", "/2", "/3", "/0"]
    );
    assert_eq!(order(["0.8"; 5]), ["/0", "/1", "/2", "/3", "/4"]);
    let absurd = ["1e30", "-1", "inf", "NaN", "high"];
    assert_eq!(order(absurd), ["/0", "/1", "/2", "/3", "/4"]);
}

/// A page of a hundred thousand links, a thousand of which are repeated, and links to itself.
#[test]
fn a_page_with_many_links() {
    let web = Web::new(ONE, |request| match request.target.as_str() {
        "/robots.txt" => response(404, "", b""),
        "/" => {
            let link = |n: u32| format!("<a href=/{n}>x</a>");
            let again = |n: u32| format!("<a href=/{n}>y</a><a href=/>z</a>");
            let links = (0..100_000).map(link).chain((0..1000).map(again));
            let body: String = links.collect();
            response(200, "Content-Type: text/html\r\n", body.as_bytes())
        }
        _ => page(request, &["/77", "/77", "/"]),
    });
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings();
    settings.stop.pages = 4;
    settings.duplicates.check = false;
    let summary = web.crawl(folder.path(), settings, HOME);
    assert_eq!(summary.end, End::Limit);
    assert_eq!(summary.n_queued, 99_997);
    assert_eq!(web.targets("a.test"), ["/", "/0", "/77", "/1"]);
    let status = status(folder.path()).unwrap();
    assert_eq!((status.n_queued, status.waiting.len()), (99_997, 10));
    let first = &status.waiting[0];
    assert_eq!(first.url, "http://a.test/2");
    let each = 0.15 + 8.5 / 100_001.0;
    assert!((first.mass / each - 1.0).abs() < 2e-3, "{first:?}");
    assert_eq!((status.sites.len(), status.sites[0].n_pages), (1, 4));
    assert!((status.sites[0].trust - 1.0).abs() < 1e-3);
    let one = standing(folder.path(), "http://a.test/5").unwrap().unwrap();
    assert_eq!(
        (one.mass, one.url.as_str()),
        (first.mass, "http://a.test/5")
    );
    assert_eq!(standing(folder.path(), "http://a.test/77").unwrap(), None);
    assert_eq!(standing(folder.path(), "http://b.test/").unwrap(), None);
    assert!(standing(folder.path(), "no url").is_err());
}

const N_PAGES: u64 = 52;

/// A site whose pages have a few links each, to a few pages more often than to others. Some look
/// like spam and pass little on.
fn tangle(request: &Request) -> Reply {
    if request.target == "/robots.txt" {
        return response(404, "", b"");
    }
    let n: u64 = request.target[1..].parse().unwrap_or(0);
    let mut random = SplitMix::new(n);
    let mut links: Vec<String> = (0..4)
        .map(|_| {
            let most = 1 + random.below(N_PAGES);
            format!("/{}", random.below(most))
        })
        .collect();
    links.push(format!("/{}", (n + 1) % N_PAGES));
    if n % 7 == 3 {
        let links = links
            .iter()
            .map(|link| format!("<a href={link}>pills</a> "));
        let body = format!(
            "<p>{} {}",
            "cheap pills online ".repeat(100),
            links.collect::<String>()
        );
        return response(200, "Content-Type: text/html\r\n", body.as_bytes());
    }
    let links: Vec<&str> = links.iter().map(String::as_str).collect();
    page(request, &links)
}

fn careful(compact: u64) -> Settings {
    let mut settings = settings();
    settings.archive.commit = 0.01;
    settings.archive.compact = compact;
    settings.machine.hosts_in_memory = 1;
    settings.duplicates.check = false;
    settings.duplicates.stale_after = 0;
    settings
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).unwrap()),
        }
    }
}

/// After a kill at any request, a crawl continues in the order in which it would have continued.
#[test]
fn the_same_order_after_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let kept = tempfile::tempdir().unwrap();
    let snapshots: Rc<RefCell<Vec<PathBuf>>> = Rc::default();
    let (root, to) = (folder.path().to_owned(), kept.path().to_owned());
    let list = Rc::clone(&snapshots);
    let web = Web::new(ONE, move |request| {
        let mut list = list.borrow_mut();
        let snapshot = to.join(list.len().to_string());
        copy(&root, &snapshot);
        list.push(snapshot);
        tangle(request)
    });
    let summary = web.crawl(folder.path(), careful(1000), HOME);
    assert_eq!(summary.counters.get(Counter::SpamLike), N_PAGES / 7);
    let whole = web.targets("a.test");
    assert_eq!(whole.len() as u64, N_PAGES + 1);
    let by_number = (0..N_PAGES).map(|n| format!("/{n}"));
    assert!(!whole.iter().skip(1).cloned().eq(by_number.skip(1)));
    let snapshots = snapshots.take();
    assert!(snapshots.len() > 50, "{}", snapshots.len());
    for (n_requests, snapshot) in snapshots.iter().enumerate() {
        // The first request is for robots.txt.
        let n_before = n_requests.saturating_sub(1);
        let web = Web::new(ONE, tangle);
        let compact = if n_requests % 5 == 0 { 1000 } else { 64 << 20 };
        let summary = web.crawl(snapshot, careful(compact), HOME);
        assert_eq!((summary.end, summary.n_queued), (End::Done, 0));
        let rest = web.targets("a.test");
        // Pages parsed at the time of the kill may not have been committed.
        assert!(whole.ends_with(&rest), "{n_before}: {rest:?} of {whole:?}");
        let n_again = (rest.len() + n_before).checked_sub(whole.len());
        assert!(n_again.is_some_and(|n| n <= 1), "{n_before}: {n_again:?}");
    }
}

const FOLDER: &str = "AROSE_ORDER_FOLDER";
const LAST: &str = "AROSE_ORDER_LAST";

/// The process that the next test kills: it names each request and stops at the last one. Without a
/// directory in the environment there is nothing to do.
#[test]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let last: usize = std::env::var(LAST).unwrap().parse().unwrap();
    let n_requests = RefCell::new(0);
    let web = Web::new(ONE, move |request| {
        println!("\nasked {}", request.target);
        *n_requests.borrow_mut() += 1;
        while *n_requests.borrow() == last {
            std::thread::park();
        }
        tangle(request)
    });
    web.crawl(Path::new(&folder), careful(1000), HOME);
}

/// A process is killed with -9 at fifty moments: the crawl continues in the order in which it would
/// have continued.
#[test]
fn issue_26_the_same_order_after_kill_9() {
    let web = Web::new(ONE, tangle);
    let folder = tempfile::tempdir().unwrap();
    web.crawl(folder.path(), careful(1000), HOME);
    let whole: Vec<String> = web
        .log()
        .into_iter()
        .map(|request| request.target)
        .collect();
    for last in 1..=50 {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["priority::child", "--exact", "--nocapture"])
            .env(FOLDER, folder.path())
            .env(LAST, last.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let asked = lines.filter_map(|line| Some(line.unwrap().strip_prefix("asked ")?.to_owned()));
        let asked: Vec<String> = asked.take(last).collect();
        child.kill().unwrap();
        assert!(!child.wait().unwrap().success());
        assert_eq!(asked, whole[..last]);
        let web = Web::new(ONE, tangle);
        let summary = web.crawl(folder.path(), careful(64 << 20), HOME);
        assert_eq!((summary.end, summary.n_queued), (End::Done, 0));
        let rest = web.targets("a.test");
        assert!(whole.ends_with(&rest), "{last}: {rest:?} of {whole:?}");
        // The open request is made again, and perhaps the one before, if it was not committed.
        let n_again = (rest.len() + last).checked_sub(whole.len());
        assert!(n_again.is_some_and(|n| n <= 2), "{last}: {n_again:?}");
    }
}

/// Quality multiplies the mass that a page passes on, and the importance by which it is visited
/// again; the page itself is fetched all the same.
#[test]
fn issue_26_quality_weighs_mass_and_importance() {
    let web = Web::new(ONE, |request| match request.target.as_str() {
        "/robots.txt" => response(404, "", b""),
        "/" => page(request, &["/good", "/spam"]),
        "/good" => page(request, &["/of_good"]),
        "/spam" => {
            let text = "cheap pills online ".repeat(100);
            let body = format!("<p>{text}<a href=/of_spam>x</a>");
            response(200, "Content-Type: text/html\r\n", body.as_bytes())
        }
        _ => page(request, &[]),
    });
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings();
    settings.duplicates.check = false;
    let summary = web.crawl(folder.path(), settings, HOME);
    assert_eq!(
        (summary.end, summary.counters.get(Counter::SpamLike)),
        (End::Done, 1)
    );
    let mut importance: BTreeMap<String, f64> = BTreeMap::new();
    arose_crawl::list_pages(folder.path(), 1_700_001_000, |page| {
        importance.insert(page.url.unwrap(), page.importance);
        Ok(())
    })
    .unwrap();
    let found = |target: &str| importance[&format!("http://a.test{target}")];
    let mass = 0.15 + 0.85 * 10.0 / 2.0;
    for (target, expected) in [
        ("/", 10.0),
        ("/good", mass),
        ("/spam", 0.1 * mass),
        ("/of_good", 0.15 + 0.85 * mass),
        ("/of_spam", 0.15 + 0.1 * 0.85 * mass),
    ] {
        let found = found(target);
        assert!(
            (found / expected - 1.0).abs() < 0.01,
            "{target}: {found}, not {expected}"
        );
    }
}

/// `n` hosts of one page each with links to further ones, all with the same tags at one IP address.
/// Returns the number of pages fetched of each, with that of the sites that fell.
fn alike(n: usize) -> (BTreeSet<usize>, u64) {
    let names: Vec<String> = (0..n).map(|n| format!("s{n}.test")).collect();
    let mut all: Vec<(&str, &[&str])> = vec![("hub.test", &["10.0.0.1"])];
    all.extend(names.iter().map(|name| (name.as_str(), &["10.0.0.2"][..])));
    let homes: Vec<String> = names.iter().map(|name| format!("http://{name}/")).collect();
    let web = Web::new(&all, move |request| match request.target.as_str() {
        "/robots.txt" => response(404, "", b""),
        "/" if request.host == "hub.test" => {
            let homes: Vec<&str> = homes.iter().map(String::as_str).collect();
            page(request, &homes)
        }
        "/" => page(request, &["/1", "/2", "/3"]),
        _ => page(request, &[]),
    });
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings();
    settings.scope.reach = arose_crawl::settings::Reach::Web;
    settings.crawl.order = Order::Breadth;
    settings.duplicates.check = false;
    settings.rules.on = false;
    let summary = web.crawl(folder.path(), settings, &["http://hub.test/"]);
    let mut n_pages = BTreeMap::new();
    for request in web.log() {
        let is_page = request.target != "/robots.txt" && request.host != "hub.test";
        *n_pages.entry(request.host).or_insert(0) += usize::from(is_page);
    }
    n_pages.remove("hub.test");
    assert_eq!(n_pages.len(), n);
    let n_all: usize = n_pages.values().sum();
    assert_eq!(summary.n_aside as usize, 4 * n - n_all);
    (
        n_pages.into_values().collect(),
        summary.counters.get(Counter::BadSites),
    )
}

/// A thousand hosts at one IP address whose home pages have the same tags get one further page a
/// day each; fewer get everything.
#[test]
fn issue_26_hosts_of_one_template_get_a_page_a_day() {
    assert_eq!(alike(1050), (BTreeSet::from([2]), 1050));
    assert_eq!(alike(900), (BTreeSet::from([4]), 0));
}

/// Sites take turns by trust: a site that many pages of others link to is not held back by one with
/// many pages and few links from elsewhere.
#[test]
fn trust_from_other_sites_counts() {
    const NAMES: &[(&str, &[&str])] = &[
        ("seed.test", &["10.0.0.1"]),
        ("good.test", &["10.0.0.2"]),
        ("farm.test", &["10.0.0.3"]),
    ];
    let web = Web::new(NAMES, |request| {
        if request.target == "/robots.txt" {
            return response(404, "", b"");
        }
        let n: u32 = request.target[1..].parse().unwrap_or(0);
        let links: Vec<String> = match request.host.as_str() {
            "seed.test" => {
                let own = (1..40).map(|n| format!("/{n}"));
                let good = (0..5).map(|at| format!("http://good.test/{}", 5 * n + at));
                let farm = (n == 3).then(|| "http://farm.test/0".to_owned());
                own.chain(good).chain(farm).collect()
            }
            "good.test" => vec![format!("/{}", n + 1)],
            _ => (1..30)
                .map(|at| format!("/{}", (n * 31 + at) % 5000))
                .collect(),
        };
        let links: Vec<&str> = links.iter().map(String::as_str).collect();
        page(request, &links)
    });
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings();
    settings.scope.reach = arose_crawl::settings::Reach::Web;
    settings.budget.pages = 20;
    settings.duplicates.stale_after = 0;
    // One request at a time, so that hosts have to wait.
    settings.fetch.in_flight = 1;
    settings.polite.delay = 0.0;
    settings.polite.address_delay = 0.0;
    settings.polite.factor = 0.0;
    settings.stop.pages = 200;
    web.crawl(folder.path(), settings, &["http://seed.test/"]);
    let n_of = |host: &str| web.targets(host).len();
    assert!(
        n_of("farm.test") * 3 < n_of("good.test"),
        "{} {}",
        n_of("farm.test"),
        n_of("good.test")
    );
    let status = status(folder.path()).unwrap();
    let names: Vec<&str> = status.sites.iter().map(|site| site.name.as_str()).collect();
    assert_eq!(names, ["seed.test", "good.test", "farm.test"]);
    assert!(status.sites[2].share < 0.2, "{:?}", status.sites);
}

/// A million pages, each with a domain of its own, link to one page while its host rests: its mass
/// is bounded, and every page is fetched once.
#[test]
fn issue_26_a_million_pages_point_to_one() {
    const N_PAGES: u32 = 1_000_000;
    const TARGET: u32 = 2;
    let links = |page: u32| -> Vec<u32> {
        match page {
            0 => vec![1, 3, 4, 5],
            1 | TARGET => Vec::new(),
            _ => {
                let found = [2 * page, 2 * page + 1];
                let found = found.into_iter().filter(|page| *page < N_PAGES);
                found.chain([TARGET, TARGET, page]).collect()
            }
        }
    };
    let site = |page: u32| Site(if page == TARGET { 1 } else { page });
    let mut rehearsal = Rehearsal::new(Order::Opic, Budget::default(), 2 * N_PAGES);
    rehearsal.seed(0, Site(0));
    let mut is_fetched = vec![false; N_PAGES as usize];
    let mut mass = 0.0;
    while let Some(page) = rehearsal.fetch(links, site) {
        assert!(!std::mem::replace(&mut is_fetched[page as usize], true));
        if page == TARGET {
            mass = rehearsal.last().unwrap().mass;
        }
    }
    assert!(is_fetched.iter().all(|is_fetched| *is_fetched));
    // The largest possible mass.
    assert!((2000.0..=2048.0).contains(&mass), "{mass}");
}

/// A site links to a hundred thousand domains of its owner, which link to each other and back. They
/// do not delay the pages of a good site that the seed links to as well, and all are fetched once.
#[test]
fn issue_26_a_hundred_thousand_domains_of_one_owner() {
    const N_PAGES: u32 = 300;
    const N_DOMAINS: u32 = 100_000;
    const OWNER: u32 = 1000;
    let links = |page: u32| -> Vec<u32> {
        match page {
            0 => vec![1, OWNER],
            1..N_PAGES => vec![0, 2 * page % N_PAGES, (2 * page + 1) % N_PAGES],
            OWNER => (OWNER + 1..OWNER + 1000).collect(),
            _ => {
                let next = (0..20).map(|n| OWNER + 1 + (20 * (page - OWNER) + n) % N_DOMAINS);
                next.chain([OWNER, page]).collect()
            }
        }
    };
    let site = |page: u32| Site(if page < N_PAGES { page.min(1) } else { page });
    let mut rehearsal = Rehearsal::new(Order::Opic, Budget::default(), 0);
    rehearsal.seed(0, Site(0));
    let mut fetched = Vec::new();
    while let Some(page) = rehearsal.fetch(links, site) {
        fetched.push(page);
    }
    let n_good = |pages: &[u32]| pages.iter().filter(|page| **page < N_PAGES).count();
    let n_all = n_good(&fetched);
    println!("{n_all} good pages of {}", fetched.len());
    assert!(n_all > 250 && fetched.len() > 90_000);
    assert_eq!(n_good(&fetched[..2 * n_all]), n_all);
    let distinct: BTreeSet<u32> = fetched.iter().copied().collect();
    assert_eq!(distinct.len(), fetched.len());
}
