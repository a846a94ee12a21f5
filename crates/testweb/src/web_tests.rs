//! Tests of the responses of a web, without a network.

use std::collections::BTreeMap;

use super::*;
use crate::config::PageCount;
use crate::truth::Likeness;

fn web() -> Web {
    Web::new(Config {
        n_hosts: 90,
        pages: PageCount::Fixed(30),
        copies: 0.2,
        ..Config::default()
    })
    .unwrap()
}

fn get(web: &Web, host: &str, target: &str, moment: &Moment) -> Reply {
    let request = Request {
        host,
        target,
        ..Request::default()
    };
    web.answer(&request, moment, Vec::new())
}

fn page(web: &Web, id: PageId) -> Reply {
    get(web, &web.host(id).name, &web.path(id), &Moment::default())
}

fn first(web: &Web, kind: Kind) -> u32 {
    let found = web.hosts().iter().position(|host| host.kind == kind);
    found.unwrap() as u32
}

#[test]
fn same_seed_same_bytes() {
    let (a, b) = (web(), web());
    for id in a.pages() {
        assert!(page(&a, id) == page(&b, id), "{}", a.url(id));
    }
    let other = Web::new(Config {
        seed: 2,
        ..a.config().clone()
    })
    .unwrap();
    let home = PageId { host: 0, page: 0 };
    assert!(page(&a, home) != page(&other, home));
}

/// The earlier content of the buffer must not appear.
#[test]
fn buffers_may_be_dirty() {
    let web = web();
    let request = Request {
        host: &web.hosts()[0].name,
        target: "/",
        ..Request::default()
    };
    let clean = web.answer(&request, &Moment::default(), Vec::new());
    assert!(web.answer(&request, &Moment::default(), vec![7; 99]) == clean);
}

/// The pages with equal bytes are exactly those that the ground truth calls exact duplicates.
#[test]
fn equal_bytes_are_the_exact_copies() {
    let web = web();
    let mut by_bytes: BTreeMap<Vec<u8>, Vec<PageId>> = BTreeMap::new();
    let mut by_truth: BTreeMap<PageId, Vec<PageId>> = BTreeMap::new();
    for id in web.pages() {
        by_bytes.entry(page(&web, id).body).or_default().push(id);
        match web.original(id) {
            Some((original, Likeness::Exact)) => by_truth.entry(original).or_default().push(id),
            Some((_, Likeness::Near)) => continue,
            None => by_truth.entry(id).or_default().push(id),
        }
    }
    // Near duplicates of one page may be exact duplicates of each other, on a near mirror.
    let is_near = |id: &PageId| matches!(web.original(*id), Some((_, Likeness::Near)));
    let sorted = |groups: Vec<Vec<PageId>>| {
        let mut groups: Vec<Vec<PageId>> = groups
            .into_iter()
            .map(|group| group.into_iter().filter(|id| !is_near(id)).collect())
            .filter(|group: &Vec<PageId>| !group.is_empty())
            .collect();
        groups.iter_mut().for_each(|group| group.sort());
        groups.sort();
        groups
    };
    let truth = sorted(by_truth.into_values().collect());
    assert_eq!(sorted(by_bytes.into_values().collect()), truth);
    assert!(truth.iter().any(|group| group.len() > 2));
}

/// Median 10 KiB and standard deviation 0.8 of the logarithm, within 4 standard errors of 3,000
/// pages (`1.2533 s / sqrt(n)` and `s / sqrt(2 n)`), and a tenth more since words and links have
/// sizes of their own.
#[test]
fn sizes_are_log_normal() {
    let web = Web::new(Config::plain(60)).unwrap();
    let mut logs: Vec<f64> = web
        .pages()
        .map(|id| (page(&web, id).body.len() as f64).ln())
        .collect();
    logs.sort_by(f64::total_cmp);
    let n = logs.len() as f64;
    let median = logs[logs.len() / 2] - 10_240_f64.ln();
    assert!(
        median.abs() < 4.0 * 1.2533 * 0.8 / n.sqrt() + 0.1,
        "{median}"
    );
    let mean = logs.iter().sum::<f64>() / n;
    let deviation = (logs.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt();
    assert!(
        (deviation - 0.8).abs() < 4.0 * 0.8 / (2.0 * n).sqrt() + 0.08,
        "{deviation}"
    );
}

#[test]
fn pages_of_a_template_share_half_their_text() {
    let web = web();
    let host = first(&web, Kind::Template);
    let [a, b] = [1, 2].map(|number| {
        let body = page(&web, PageId { host, page: number }).body;
        String::from_utf8(body).unwrap()
    });
    let lines = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| line.starts_with("<p>"));
        lines.map(str::to_owned).collect()
    };
    let (a, b) = (lines(&a), lines(&b));
    let shared = a.iter().filter(|line| b.contains(line)).count();
    let least = a.len().min(b.len());
    assert!(
        shared * 100 >= least * 40 && shared < least,
        "{shared} of {least}"
    );
}

#[test]
fn sessions_stay_and_do_not_matter() {
    let web = web();
    for kind in [Kind::PathCrumb, Kind::QueryCrumb] {
        let host = first(&web, kind);
        let name = &web.hosts()[host as usize].name;
        let hrefs = |target: &str| -> Vec<String> {
            let reply = get(&web, name, target, &Moment::default());
            let text = String::from_utf8(reply.body).unwrap();
            let links = text.split("href=\"").skip(1);
            let links = links.map(|rest| rest.split('"').next().unwrap().to_owned());
            links.filter(|link| link.starts_with('/')).collect()
        };
        let fresh = hrefs("/");
        let kept = hrefs(&fresh[0]);
        assert_eq!(fresh, kept, "{kind:?}");
        assert_ne!(hrefs(&web.path(PageId { host, page: 1 }))[0], fresh[0]);
        let ids = fresh.iter().map(|link| web.page_at(host, link));
        assert!(ids.into_iter().all(|id| id.is_some()));
    }
}

#[test]
fn clocks_tell_the_time() {
    let web = web();
    let name = &web.hosts()[first(&web, Kind::Timestamp) as usize].name;
    let at = |unix_seconds| {
        let moment = Moment {
            unix_seconds,
            ..Moment::default()
        };
        get(&web, name, "/", &moment)
    };
    assert!(at(1) == at(1) && at(1) != at(2));
    assert_eq!(at(1).wire, Wire::Chunked);
}

#[test]
fn pages_change_with_the_version() {
    let web = web();
    let host = first(&web, Kind::Changing);
    let name = &web.hosts()[host as usize].name;
    let mut n_changed = 0;
    for number in 0..30 {
        let id = PageId { host, page: number };
        for version in 1..20 {
            let at = |version| {
                let moment = Moment {
                    version,
                    ..Moment::default()
                };
                get(&web, name, &web.path(id), &moment)
            };
            let has_changed = web.page_version(id, version) != web.page_version(id, version - 1);
            assert_eq!(at(version) != at(version - 1), has_changed);
            n_changed += u32::from(has_changed);
        }
    }
    assert!((50..500).contains(&n_changed), "{n_changed}");
}

#[test]
fn validators() {
    let web = web();
    let reply = page(&web, PageId { host: 0, page: 0 });
    let tag = reply.headers.trim().strip_prefix("ETag: ").unwrap();
    let request = |if_none_match| Request {
        host: &web.hosts()[0].name,
        target: "/",
        if_none_match,
        ..Request::default()
    };
    let status = |tag| {
        web.answer(&request(tag), &Moment::default(), Vec::new())
            .status
    };
    assert_eq!((status(tag), status("\"x\"")), (304, 200));
}

#[test]
fn dates_of_change() {
    let web = web();
    let host = first(&web, Kind::Changing);
    let id = |page| PageId { host, page };
    let page = (0..30)
        .find(|&page| web.page_version(id(page), 9) == 9)
        .unwrap();
    let get = |version, if_modified_since| {
        let request = Request {
            host: &web.hosts()[host as usize].name,
            target: &web.path(id(page)),
            if_modified_since,
            ..Request::default()
        };
        let moment = Moment {
            version,
            ..Moment::default()
        };
        web.answer(&request, &moment, Vec::new())
    };
    let date = "Sat, 10 Jan 2026 00:00:00 GMT";
    assert!(
        get(9, "")
            .headers
            .contains(&format!("Last-Modified: {date}\r\n"))
    );
    assert_eq!((get(9, date).status, get(8, date).status), (304, 200));
}

#[test]
fn feeds_list_the_latest_changes() {
    let web = web();
    let host = first(&web, Kind::Changing);
    let name = &web.hosts()[host as usize].name;
    let at = |target: &str, version| {
        let moment = Moment {
            version,
            ..Moment::default()
        };
        let reply = get(&web, name, target, &moment);
        (reply.status, String::from_utf8(reply.body).unwrap())
    };
    assert!(at("/", 0).1.contains("href=\"/feed.xml\""));
    assert_eq!(at("/feed.xml", 0).1.matches("<item>").count(), 0);
    let (status, feed) = at("/feed.xml", 9);
    let date = "Sat, 10 Jan 2026 00:00:00 GMT";
    let n_pages = web.hosts()[host as usize].n_pages;
    for page in (0..n_pages).filter(|page| web.page_version(PageId { host, page: *page }, 9) == 9) {
        let path = web.path(PageId { host, page });
        let entry = format!("{path}</link><pubDate>{date}</pubDate>");
        assert!(feed.contains(&entry), "{entry} in {feed}");
    }
    assert_eq!((status, feed.matches("<item>").count() <= 50), (200, true));
    let plain = &web.hosts()[first(&web, Kind::Plain) as usize].name;
    let missing = get(&web, plain, "/feed.xml", &Moment::default());
    assert_eq!(missing.status, 404);
}

#[test]
fn sitemaps_have_dates_of_three_kinds() {
    let web = Web::new(Config {
        kinds: vec![(Kind::Changing, 1)],
        pages: PageCount::Fixed(30),
        ..Config::plain(9)
    });
    let web = web.unwrap();
    let changing = (0..).zip(web.hosts());
    let changing = changing.filter(|(_, host)| host.kind == Kind::Changing);
    let mut met = std::collections::BTreeSet::new();
    for (host, at) in changing {
        let moment = Moment {
            version: 9,
            ..Moment::default()
        };
        let reply = get(&web, &at.name, "/sitemap.xml", &moment);
        let xml = String::from_utf8(reply.body).unwrap();
        let n_urls = xml.matches("<url>").count() as u32;
        for page in 0..n_urls {
            let id = PageId { host, page };
            let step = match web.dates(host) {
                Dates::True => Some(web.page_version(id, 9)),
                Dates::Now => Some(9),
                Dates::Absent => None,
            };
            let date = step.map(|step| format!("<lastmod>2026-01-{:02}</lastmod>", step + 1));
            let entry = format!("{}</loc>{}</url>", web.path(id), date.unwrap_or_default());
            assert!(xml.contains(&entry), "{entry} in {xml}");
        }
        met.insert(format!("{:?}", web.dates(host)));
    }
    assert_eq!(met.len(), 3, "{met:?}");
}

#[test]
fn busy_hosts_ask_for_patience() {
    let web = web();
    let name = &web.hosts()[first(&web, Kind::Busy) as usize].name;
    let visit = |n_visit| {
        let moment = Moment {
            n_visit,
            ..Moment::default()
        };
        get(&web, name, "/", &moment)
    };
    let statuses: Vec<u16> = (0..10).map(|n| visit(n).status).collect();
    assert_eq!(statuses, [200, 200, 429, 200, 200, 200, 200, 503, 200, 200]);
    assert!(visit(2).headers.contains("Retry-After: 2\r\n"));
    assert!(
        visit(7)
            .headers
            .contains("Retry-After: Thu, 01 Jan 1970 00:00:03 GMT\r\n")
    );
}

#[test]
fn templates_are_packed_on_request() {
    use std::io::Read;
    let web = web();
    let host = first(&web, Kind::Template);
    let request = Request {
        host: &web.hosts()[host as usize].name,
        target: "/",
        accepts_gzip: true,
        ..Request::default()
    };
    let packed = web.answer(&request, &Moment::default(), Vec::new());
    assert!(packed.headers.contains("Content-Encoding: gzip"));
    let mut body = Vec::new();
    flate2::read::GzDecoder::new(&packed.body[..])
        .read_to_end(&mut body)
        .unwrap();
    assert!(body == page(&web, PageId { host, page: 0 }).body);
}

#[track_caller]
fn check_target(kind: Kind, path: &str, expected: &Target) {
    let web = web();
    let name = &web.hosts()[first(&web, kind) as usize].name;
    assert_eq!(web.target(name, path), *expected, "{kind:?} {path}");
}

#[test]
fn targets() {
    let redirect = |status, location: &str| {
        Target::Redirect(Redirect {
            status,
            location: Some(location.to_owned()),
        })
    };
    check_target(Kind::Redirects, "/hop/3", &redirect(307, "/hop/2"));
    check_target(Kind::Redirects, "/loop/a", &redirect(301, "/loop/b"));
    check_target(Kind::Redirects, "/self", &redirect(301, "/self"));
    check_target(Kind::Redirects, "/hop/x", &Target::Missing);
    check_target(Kind::Broken, "/fault/Reset", &Target::Fault(Fault::Reset));
    check_target(Kind::Plain, "/fault/Reset", &Target::Missing);
    check_target(Kind::Broken, "/noise/7", &Target::Noise(7));
    check_target(Kind::Broken, "/noise/x", &Target::Missing);
    check_target(Kind::Calendar, "/cal/2026/12", &Target::Trap);
    check_target(Kind::SoftNotFound, "/whatever", &Target::Trap);
    check_target(Kind::Plain, "/whatever", &Target::Missing);
    check_target(Kind::Plain, "/robots.txt", &Target::Robots);
    check_target(Kind::Plain, "/sitemap.xml", &Target::Sitemap);
    assert_eq!(web().target("nowhere.test", "/"), Target::NoHost);
}

/// Each page of a trap leads to pages of it that were not known before, forever.
#[test]
fn traps_go_on() {
    let web = web();
    let traps = [
        (Kind::Calendar, "/cal/2026/12"),
        (Kind::Maze, "/maze/0"),
        (Kind::SoftNotFound, "/gone/0"),
    ];
    for (kind, path) in traps {
        let name = &web.hosts()[first(&web, kind) as usize].name;
        let mut seen = std::collections::BTreeSet::from([path.to_owned()]);
        let mut path = path.to_owned();
        for _ in 0..100 {
            let body = get(&web, name, &path, &Moment::default()).body;
            let text = String::from_utf8(body).unwrap();
            let links = text
                .split("href=\"")
                .skip(1)
                .map(|rest| rest.split('"').next().unwrap());
            let new = links
                .map(str::to_owned)
                .find(|link| link != "/" && seen.insert(link.clone()));
            path = new.unwrap();
            assert_eq!(web.target(name, &path), Target::Trap);
        }
    }
}

#[test]
fn addresses_name_hosts_too() {
    let web = web();
    assert_eq!(web.find_host("127.1.0.1"), Some(0));
    assert_eq!(web.find_host("127.9.9.9"), None);
    assert_eq!(web.find_host("PLAIN0.test."), Some(0));
    assert_eq!(web.find_host("mirror0.test"), None);
    for name in ["", ".", "..", "0", "test", "plain.test", "a.b.c.d"] {
        assert_eq!(web.find_host(name), None, "{name}");
    }
}

#[test]
fn settings_are_checked() {
    let bad = [
        Config {
            n_hosts: 0,
            ..Config::default()
        },
        Config {
            copies: 1.5,
            ..Config::default()
        },
        Config {
            size_sigma: f64::NAN,
            ..Config::default()
        },
        Config {
            kinds: Vec::new(),
            ..Config::default()
        },
    ];
    for config in bad {
        assert!(matches!(Web::new(config), Err(Error::Parameter { .. })));
    }
}

proptest::proptest! {
    /// Every request gets a response.
    #[test]
    fn any_target_is_answered(host in 0_usize..90, target in "/[ -~]{0,40}") {
        let web = web_cached();
        let name = &web.hosts()[host].name;
        let _ = get(web, name, &target, &Moment::default());
        let _ = web.name(&target);
    }
}

fn web_cached() -> &'static Web {
    static WEB: std::sync::OnceLock<Web> = std::sync::OnceLock::new();
    WEB.get_or_init(web)
}

fn special(kind: Kind) -> Web {
    Web::new(Config {
        n_hosts: 3,
        pages: PageCount::Fixed(8),
        kinds: vec![(kind, 1)],
        ..Config::default()
    })
    .unwrap()
}

/// The text of a page: without tags, with digits unchanged.
fn text(web: &Web, host: u32, target: &str) -> String {
    let reply = get(
        web,
        &web.hosts()[host as usize].name,
        target,
        &Moment::default(),
    );
    assert_eq!(reply.status, 200, "{target}");
    let html = String::from_utf8(reply.body).unwrap();
    let parts = html.split('<').map(|part| match part.split_once('>') {
        Some((_, text)) => text,
        None => part,
    });
    parts.collect()
}

#[test]
fn twins_share_their_home_page_alone() {
    let web = special(Kind::SameHome);
    let home = |host| page(&web, PageId { host, page: 0 }).body;
    assert!(home(1) == home(2));
    let inner = |host| text(&web, host, &web.path(PageId { host, page: 1 }));
    assert_ne!(inner(1), inner(2));
}

#[test]
fn pages_of_a_shop_differ_in_numbers() {
    let web = special(Kind::Shop);
    let page = |page| text(&web, 1, &web.path(PageId { host: 1, page }));
    let words = |text: String| text.replace(|c: char| c.is_ascii_digit(), "");
    assert_ne!(page(1), page(2));
    assert_eq!(words(page(1)), words(page(2)));
}

#[test]
fn every_link_has_a_new_session_and_no_page_depends_on_it() {
    let web = special(Kind::FreshSessions);
    let path = web.path(PageId { host: 1, page: 1 });
    let texts = [1, 2].map(|n| text(&web, 1, &format!("{path}?sid={n}")));
    assert_eq!(texts[0], texts[1]);
    let links = |target: &str| -> std::collections::BTreeSet<String> {
        let reply = get(&web, &web.hosts()[1].name, target, &Moment::default());
        let html = String::from_utf8(reply.body).unwrap();
        let links = html.split("href=\"").skip(1);
        let links = links.filter_map(|link| link.split('"').next());
        links
            .filter(|link| link.contains("?sid="))
            .map(str::to_owned)
            .collect()
    };
    let (a, b) = (
        links(&format!("{path}?sid=1")),
        links(&format!("{path}?sid=2")),
    );
    assert!(a.len() > 3 && a.is_disjoint(&b), "{a:?} {b:?}");
}
